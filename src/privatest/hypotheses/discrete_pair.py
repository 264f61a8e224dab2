"""Pairs on labels or on the integers: finitely many atoms, every quantity a sum."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from privatest.hypotheses.distribution import Distribution, Labels, Pair, Term, hockey_stick_term, kullback_leibler_term
from privatest.hypotheses.integers import IntegerBlocks, Integers, Ints, common_atoms
from privatest.numbers import Floats

__all__ = ["DiscretePair"]

SAME_LEVEL = 4e-16
"""A ratio this close (relatively) to a level is taken to be at it: they differ by rounding only."""


class DiscretePair(Pair):
    """Atoms with masses ``p`` under P and ``q`` under Q, and their ratios L.

    ``labels`` names the atoms (kind "labels"), or ``first`` and ``last`` give the integers each holds (kind
    "integers"); the outermost atoms may reach the ends of int64, meaning "and beyond".
    """

    def __init__(
        self,
        null: Distribution,
        alternative: Distribution,
        p: Floats,
        q: Floats,
        *,
        logs: tuple[Floats, Floats] | None = None,
        labels: tuple[Hashable, ...] = (),
        blocks: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.null, self.alternative = null, alternative
        self.p, self.q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        self.labels = labels
        self._blocks = blocks
        self._log_p: Floats
        self._log_q: Floats
        with np.errstate(divide="ignore", invalid="ignore"):
            self._log_p, self._log_q = logs if logs is not None else (np.log(self.p), np.log(self.q))
            ratios = np.asarray(self._log_p - self._log_q)
        self.ratios: Floats = ratios if logs is not None else _sharpened(ratios, self.p, self.q)
        self._noise: Floats = np.zeros(ratios.size)
        if logs is not None:  # each log carries a rounding error of its own size
            self._noise = np.nan_to_num(2.3e-16 * (np.abs(self._log_p) + np.abs(self._log_q)), posinf=0.0)
        for array in (self.p, self.q, self.ratios):
            array.flags.writeable = False

    @classmethod
    def from_labels(cls, null: Labels, alternative: Labels) -> DiscretePair:
        """Both on the same labels, in the null's order."""
        place = {label: index for index, label in enumerate(alternative.labels)}
        order = [place[label] for label in null.labels]
        return cls(null, alternative, null.probabilities, alternative.probabilities[order], labels=null.labels)

    @classmethod
    def from_integers(cls, null: Integers, alternative: Integers) -> DiscretePair:
        first, last, (p, q), (log_p, log_q) = common_atoms((null, alternative))
        return cls(null, alternative, p, q, logs=(log_p, log_q), blocks=(first, last))

    @property
    def logs(self) -> tuple[Floats, Floats]:
        """Log masses of the atoms under P and Q; finite where a mass merely underflows."""
        return self._log_p, self._log_q

    def on_same_atoms(self, log_p: Floats, log_q: Floats, text: str) -> DiscretePair:
        """Another pair on these atoms, from the logarithms of its masses up to a factor each."""
        with np.errstate(under="ignore"):
            log_p = log_p - math.log(_total(np.exp(log_p)))
            log_q = log_q - math.log(_total(np.exp(log_q)))
            p, q = np.exp(log_p), np.exp(log_q)
        if self._blocks is None:
            names = self.labels
            return DiscretePair(Labels(names, p), Labels(names, q), p, q, logs=(log_p, log_q), labels=names)
        first, last = self._blocks
        laws = [
            IntegerBlocks(first, last, mass, f"{word} of {text}") for mass, word in ((p, "null"), (q, "alternative"))
        ]
        return DiscretePair(laws[0], laws[1], p, q, logs=(log_p, log_q), blocks=self._blocks)

    @property
    def kind(self) -> str:
        return "labels" if self._blocks is None else "integers"

    @property
    def first(self) -> Ints:
        """Smallest integer of each atom (kind "integers")."""
        return self._integers()[0]

    @property
    def last(self) -> Ints:
        """Largest integer of each atom (kind "integers")."""
        return self._integers()[1]

    def _integers(self) -> tuple[Ints, Ints]:
        if self._blocks is None:
            raise AttributeError("a pair on labels has labels, not integer ranges")
        return self._blocks

    def ratio(self, x: Any) -> Floats:
        if self._blocks is None:
            return self._label_ratio(x)
        values = np.asarray(x)
        if values.dtype.kind not in "biuf":
            return np.full(values.shape, np.nan)
        first, last = self._blocks
        k = values.astype(float) if values.dtype.kind in "fu" else values.astype(np.int64)
        index = np.clip(np.searchsorted(first, k, side="right") - 1, 0, None)
        inside = (k >= first[index]) & (k <= last[index]) & (k == np.floor(k))
        return np.asarray(np.where(inside, self.ratios[index], np.nan))

    def _label_ratio(self, x: Any) -> Floats:
        if isinstance(x, (str, bytes)) or not isinstance(x, Iterable):
            return np.asarray(self._ratio_of(x))
        if isinstance(x, tuple) and x in self._place:  # a label may itself be a tuple
            return np.asarray(self._ratio_of(x))
        values = x.ravel().tolist() if isinstance(x, np.ndarray) else list(x)
        flat = np.array([self._ratio_of(value) for value in values], dtype=float)
        return flat.reshape(x.shape) if isinstance(x, np.ndarray) else flat

    def _ratio_of(self, label: Any) -> float:
        try:
            index = self._place.get(label)
        except TypeError:  # unhashable: no label of ours
            return math.nan
        return math.nan if index is None else float(self.ratios[index])

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {label: index for index, label in enumerate(self.labels)}

    @cached_property
    def ratio_range(self) -> tuple[float, float]:
        seen = self.ratios[~np.isnan(self.ratios)]
        ends = self._endless()
        return min([float(seen.min()), *ends]), max([float(seen.max()), *ends])

    def _endless(self) -> list[float]:
        """Values of L beyond the atoms: at a far end of the support, or the infinity it is heading for."""
        laws = (self.null, self.alternative)
        if self._blocks is None or self.ratios.size < 4:
            return []
        found: list[float] = []
        for side in (0, 1):
            ratios = self.ratios[::-1] if side else self.ratios
            outer, inner = ratios[1], ratios[ratios.size // 4]  # the outermost atom itself may be pooled
            ends = [law.support[side] for law in laws if isinstance(law, Integers)]
            end = (max if side else min)(ends)
            if math.isfinite(end):
                with np.errstate(invalid="ignore"):
                    at_end = float(np.subtract(*(law.logpmf(end) for law in laws if isinstance(law, Integers))))
                found += [] if math.isnan(at_end) else [at_end]
            elif np.isfinite(outer) and np.isfinite(inner) and abs(outer - inner) > 1e-9 * (1 + abs(outer)):
                found.append(math.copysign(math.inf, outer - inner))
        return found

    def where_above(self, level: float) -> Any:
        """Mask of the atoms with L > level."""
        with np.errstate(invalid="ignore"):
            return self.ratios > level + self._slack(level)

    def where_below(self, level: float) -> Any:
        """Mask of the atoms with L < level."""
        with np.errstate(invalid="ignore"):
            return self.ratios < level - self._slack(level)

    def _slack(self, level: float) -> Any:
        return SAME_LEVEL * abs(level) + self._noise if level != 0 else 0.0

    def above(self, level: float) -> tuple[float, float]:
        there = self.where_above(level)
        return _total(self.p[there]), _total(self.q[there])

    def below(self, level: float) -> tuple[float, float]:
        there = self.where_below(level)
        return _total(self.p[there]), _total(self.q[there])

    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        del levels  # a sum does not mind kinks
        return self._sum(term, (self.p > 0) | (self.q > 0))

    def _sum(self, term: Term, there: Any) -> float:
        with np.errstate(all="ignore"):
            values, _ = term(self._log_p[there], self._log_q[there], self.ratios[there])
        return _total(values)

    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        there = self.where_below(-level) if reverse else self.where_above(level)
        return min(self._sum(hockey_stick_term(level, reverse=reverse), there), 1.0)

    def _kullback_leibler(self, *, reverse: bool) -> float:
        lost = (self.p == 0) & (self.q > 0) if reverse else (self.q == 0) & (self.p > 0)
        # an atom whose mass merely underflowed has a finite log
        if bool(np.any(lost & ~np.isfinite(self._log_p if reverse else self._log_q))):
            return math.inf
        return self.integral(kullback_leibler_term(reverse=reverse))


def _sharpened(ratios: Floats, p: Floats, q: Floats) -> Floats:
    """log(p/q) as log1p((p - q)/q) where p and q are within a factor of two, so that p - q is exact."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.abs(ratios) < 0.69, np.log1p((p - q) / q), ratios))


def _total(values: Floats) -> float:
    """Sum, exactly rounded where that is quick; numpy's pairwise sum for the largest arrays."""
    return math.fsum(values.tolist()) if values.size <= 4096 else float(values.sum())
