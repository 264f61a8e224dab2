"""Pairs on labels or on the integers: finitely many atoms, every quantity a sum. And distributions on the integers.

Supports may be infinite. Two distributions are compared on atoms: single integers wherever that is
affordable, and far out in very wide or heavy tails (zipf) blocks whose width grows in proportion to their
distance from the bulk, so that log-likelihood ratios hardly vary inside one.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.hypotheses.distribution import (
    Distribution,
    Labels,
    Numbers,
    Pair,
    Term,
    hockey_stick_term,
    kullback_leibler_term,
)
from privatest.hypotheses.families import FromScipy
from privatest.hypotheses.formulas import FrozenIntegers
from privatest.numbers import Floats, distinct, quiet

__all__ = ["DiscretePair", "IntegerBlocks", "Integers", "Ints", "ScipyIntegers", "common_atoms"]


Ints = NDArray[np.int64]

FARTHEST: Final = 2**53
"""Beyond this a float no longer tells neighbouring integers apart, and scipy computes with floats."""
DENSE: Final = 2**17
"""Up to so many integers each is an atom of its own."""
FINENESS: Final = 2048
"""A block at distance d from a bulk of half-width s holds about (d + s) / FINENESS integers."""
NEGLIGIBLE: Final = math.log(1e-300)
INVISIBLE: Final = math.log(1e-20)
"""Integers more likely than this stay single where there are not too many of them."""


FARTHEST_CENTRE = 2.0**53


class Integers(Numbers):
    """A probability mass function on the integers."""

    kind = "integers"

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> Floats:
        """Log probability; -inf off the support and between the integers."""

    @property
    @abstractmethod
    def edges(self) -> Ints:
        """Sorted starts of atoms that resolve this distribution; the last edge ends the last atom."""

    def pmf(self, k: ArrayLike) -> Floats:
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(self.logpmf(k)))

    def ppf(self, u: ArrayLike) -> Floats:
        return self._search(u, upper=False)

    def isf(self, u: ArrayLike) -> Floats:
        return self._search(u, upper=True)

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return self.ppf(rng.random(size)).astype(np.int64)

    def _search(self, u: ArrayLike, *, upper: bool) -> Floats:
        """Bisection of all targets at once. Invariant: the quantile lies in (low, high]."""
        target = np.asarray(u, dtype=float)
        low = np.full(target.shape, float(self.edges[0]) - 1)
        high = np.full(target.shape, float(self.edges[-1]) - 1)
        while bool(np.any(high - low > 1)):
            middle = np.floor((low + high) / 2)
            there = self.sf(middle) <= target if upper else self.cdf(middle) >= target
            high, low = np.where(there, middle, high), np.where(there, low, middle)
        lowest, highest = self.support
        never = target <= 0 if upper else target >= 1
        always = target >= 1 if upper else target <= 0
        return np.asarray(np.where(never, highest, np.where(always, lowest - 1, high)))


class ScipyIntegers(FromScipy, Integers):
    """A frozen discrete scipy distribution on the integers."""

    def __init__(self, frozen: Any, spec: str | None = None, name: str = "distribution") -> None:
        super().__init__(frozen, spec)
        lo, hi = self._support
        if math.isnan(lo) or math.isnan(hi):
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its support."
            )
        if (math.isfinite(lo) and lo != round(lo)) or (math.isfinite(hi) and hi != round(hi)):
            raise InvalidDistribution(
                f"{name}={self.describe()} has mass off the integers (its support starts at {lo!r}): "
                "shift it to the integers, or give a mapping from label to probability."
            )
        points = getattr(getattr(frozen, "dist", None), "xk", None)
        if points is not None and bool(np.any(np.asarray(points, dtype=float) % 1 != 0)):
            raise InvalidDistribution(
                f"{name}={self.describe()} has mass off the integers: give a mapping from label to probability instead."
            )
        if _has_cdf(self._frozen) and self._beyond(FARTHEST_CENTRE) > 0.1:
            raise InvalidDistribution(
                f"{name}={self.describe()} has its mass beyond 2^53, where floating-point numbers do not tell one "
                "integer from the next. Count in thousands, or take a continuous distribution."
            )
        if isinstance(self._frozen, FrozenIntegers):  # our formulas fail everywhere or nowhere: no need for the edges
            ends = np.array([lo, min(lo + 1, hi)])
        else:
            ends = self.edges[[0, self.edges.size // 2, -2]].astype(float)
        if np.isnan(self.logpmf(ends)).any():
            raise InvalidDistribution(
                f"{name}={self.describe()} has invalid parameters: scipy gives NaN for its masses."
            )

    def _beyond(self, far: float) -> float:
        with quiet():
            return float(np.asarray(self._frozen.sf(far))) + float(np.asarray(self._frozen.cdf(-far)))

    def logpmf(self, k: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(self._frozen.logpmf(k), dtype=float)

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return np.asarray(self._given.rvs(size=size, random_state=rng)).astype(np.int64)

    @cached_property
    def edges(self) -> Ints:
        centre, spread = self._bulk()
        lo = self._reach(centre, -1)
        hi = self._reach(centre, +1)
        if hi - lo < DENSE:
            return np.arange(lo, hi + 2, dtype=np.int64)
        right = centre + _growing_steps(spread, hi - centre, abs(self._reach(centre, +1, INVISIBLE) - centre))
        left = centre - _growing_steps(spread, centre - lo, abs(self._reach(centre, -1, INVISIBLE) - centre))
        return distinct(np.concatenate([left, right, [lo, hi + 1]]))

    def _bulk(self) -> tuple[int, int]:
        """Median and half the distance between the quartiles, where scipy has a cdf; else the finite end."""
        lo, hi = self._support
        if _has_cdf(self._frozen):
            with quiet():
                first, middle, third = np.asarray(self._frozen.ppf([0.25, 0.5, 0.75]), dtype=float)
            if all(math.isfinite(x) and abs(x) < FARTHEST for x in (first, middle, third)):
                return int(middle), max(1, int(third - first) // 2)
        start = lo if math.isfinite(lo) else hi if math.isfinite(hi) else 0.0
        return int(max(-FARTHEST, min(FARTHEST, start))), 1

    def _reach(self, centre: int, side: int, bar: float = NEGLIGIBLE) -> int:
        """How far out to go: the end of the support, or where the log of single masses is below the bar."""
        end = self._support[(side + 1) // 2]
        limit = int(min(abs(end - centre), FARTHEST)) if math.isfinite(end) else FARTHEST - abs(centre)
        if limit < DENSE // 2 and math.isfinite(end):
            return centre + side * limit
        steps = np.unique(np.minimum(2 ** np.arange(0, 54, dtype=np.int64), limit))
        # after the last step at which there still is mass everything is negligible; refine that step
        for _ in range(6):
            alive = np.flatnonzero(self.logpmf((centre + side * steps).astype(float)) >= bar)
            last = int(alive[-1]) if alive.size else 0
            if last == steps.size - 1 or steps[last + 1] - steps[last] <= 8:
                break
            steps = np.unique(np.linspace(steps[last], steps[last + 1], 65).astype(np.int64))
        return centre + side * int(steps[min(last + 1, steps.size - 1)])


def _has_cdf(frozen: Any) -> bool:
    """Whether scipy has a formula for the cdf; its generic one adds up masses."""
    family = getattr(frozen, "dist", None)
    if family is None:
        return True
    from scipy import stats

    return type(family)._cdf is not stats.rv_discrete._cdf


class IntegerBlocks(Integers):
    """Masses on disjoint blocks of integers, spread evenly inside each block."""

    def __init__(self, first: Ints, last: Ints, masses: Floats, text: str = "", *, named: bool = False) -> None:
        keep = masses > 0
        self.first, self.last = np.asarray(first)[keep], np.asarray(last)[keep]
        self.masses: Floats = np.asarray(masses, dtype=float)[keep]
        self._text, self._named = text or f"integers({self.masses.size} atoms)", named
        with np.errstate(divide="ignore"):
            # floats: the outermost blocks may reach the ends of int64
            self._logs = np.log(self.masses) - np.log(self.last.astype(float) - self.first.astype(float) + 1)

    @classmethod
    def from_labels(cls, labels: Labels) -> IntegerBlocks | None:
        """The same distribution on the integers, or None where some label is no integer."""
        values = []
        for label in labels.labels:
            if not isinstance(label, (int, np.integer)) or abs(int(label)) > FARTHEST:
                return None
            values.append(int(label))
        order = np.argsort(values, kind="stable")
        k = np.array(values, dtype=np.int64)[order]
        return cls(k, k, labels.probabilities[order], labels.describe(), named=labels.named)

    @property
    def named(self) -> bool:
        return self._named

    @property
    def support(self) -> tuple[float, float]:
        return float(self.first[0]), float(self.last[-1])

    def describe(self) -> str:
        return self._text

    def logpmf(self, k: ArrayLike) -> Floats:
        x = np.asarray(k, dtype=float)
        index = np.clip(np.searchsorted(self.first, x, side="right") - 1, 0, None)
        inside = (x >= self.first[index]) & (x <= self.last[index]) & (x == np.floor(x))
        return np.asarray(np.where(inside, self._logs[index], -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        k = np.floor(np.asarray(x, dtype=float))
        before = np.concatenate([[0.0], np.cumsum(self.masses)])
        index = np.searchsorted(self.last, k, side="right")
        return np.asarray(np.minimum(before[index] + self._part(index, k, below=True), 1.0))

    def sf(self, x: ArrayLike) -> Floats:
        k = np.floor(np.asarray(x, dtype=float))
        after = np.concatenate([np.cumsum(self.masses[::-1])[::-1], [0.0]])
        index = np.searchsorted(self.first, k, side="right")
        return np.asarray(np.minimum(after[index] + self._part(index - 1, k, below=False), 1.0))

    def _part(self, index: NDArray[np.intp], x: Floats, *, below: bool) -> Floats:
        """Mass of block ``index`` at or below x, or above it; nothing where x is in no such block."""
        safe = np.clip(index, 0, self.masses.size - 1)
        first, last = self.first[safe].astype(float), self.last[safe].astype(float)
        inside = (index >= 0) & (index < self.masses.size) & (x >= first) & (x <= last)
        share = (x - first + 1 if below else last - x) / (last - first + 1)
        return np.asarray(np.where(inside, share * self.masses[safe], 0.0))

    @cached_property
    def edges(self) -> Ints:
        ends = np.minimum(self.last, np.iinfo(np.int64).max - 1) + 1
        return distinct(np.concatenate([self.first, ends]))


def common_atoms(laws: Sequence[Integers]) -> tuple[Ints, Ints, list[Floats], list[Floats]]:
    """Atoms fine enough for all laws: first and last integers, and each law's masses and log masses.

    Guarantees: every law's masses sum to 1 within 1e-12, mass beyond the outermost atoms being pooled into
    them.
    """
    edges = distinct(np.concatenate([law.edges for law in laws]))
    first, last = edges[:-1].copy(), edges[1:] - 1
    logs = [_block_log_masses(law, first, last) for law in laws]
    first, last, logs = _with_beyond(laws, first, last, logs)
    with np.errstate(under="ignore"):
        masses = [np.exp(log) for log in logs]
    for law, mass, log in zip(laws, masses, logs, strict=True):
        rest = 1.0 - float(mass.sum())
        index = -1 if law.support[1] >= float(last[-1]) else 0
        if rest > 1e-12:  # a tail so heavy that it leaves the integers floats can count
            mass[index] += rest
            log[index] = math.log(mass[index])
        else:
            total = float(mass.sum())
            mass /= total
            log -= math.log(total)
    keep = np.any([log > -np.inf for log in logs], axis=0)  # a mass may underflow and yet have a ratio
    # where even the logs beyond the atoms are lost, the outermost atom stands for them
    extended = np.flatnonzero(keep)[[0, -1]]
    first[extended[0]], last[extended[1]] = first[0], last[-1]
    return first[keep], last[keep], [mass[keep] for mass in masses], [log[keep] for log in logs]


def _with_beyond(
    laws: Sequence[Integers], first: Ints, last: Ints, logs: list[Floats]
) -> tuple[Ints, Ints, list[Floats]]:
    """The atoms, and one more on each side where a support goes on, as heavy as its nearest integer."""
    lowest, highest = min(law.support[0] for law in laws), max(law.support[1] for law in laws)
    extremes = np.iinfo(np.int64)
    if highest > float(last[-1]):
        start = int(last[-1]) + 1
        first = np.append(first, start)
        last = np.append(last, int(highest) if math.isfinite(highest) else extremes.max)
        logs = [np.append(log, law.logpmf(float(start))) for law, log in zip(laws, logs, strict=True)]
    if lowest < float(first[0]):
        start = int(first[0]) - 1
        last = np.insert(last, 0, start)
        first = np.insert(first, 0, int(lowest) if math.isfinite(lowest) else extremes.min)
        logs = [np.insert(log, 0, law.logpmf(float(start))) for law, log in zip(laws, logs, strict=True)]
    return first, last, logs


def _block_log_masses(law: Integers, first: Ints, last: Ints) -> Floats:
    """Log mass of each block: exact for one or two integers, by the parabola through three for more."""
    log = np.array(law.logpmf(first.astype(float)), dtype=float)
    wide = np.flatnonzero(last > first)
    if wide.size == 0:
        return log
    a, b = first[wide], last[wide]
    odd_end = np.where((b - a) % 2 == 0, b, b - 1)  # an odd number of integers a..odd_end, and perhaps b besides
    half = (odd_end - a) // 2
    lows = log[wide]
    mids, highs = law.logpmf((a + half).astype(float)), law.logpmf(odd_end.astype(float))
    ends = np.full(wide.size, -np.inf)
    ends[b > odd_end] = law.logpmf(b[b > odd_end].astype(float))
    top = np.max([lows, mids, highs, ends], axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore"):
        f_low, f_mid, f_high, f_end = (np.exp(part - safe) for part in (lows, mids, highs, ends))
    h = half.astype(float)
    n = 2 * h + 1
    # sum over j = -h..h of f0 + b j + c j^2, with c from the second difference
    curve = np.where(h > 0, (f_low + f_high - 2 * f_mid) / np.maximum(2 * h * h, 1.0), 0.0)
    total = n * f_mid + curve * n * h * (h + 1) / 3 + np.where(b > odd_end, f_end, 0.0)
    with np.errstate(divide="ignore"):
        log[wide] = np.where(np.isfinite(top), safe + np.log(np.maximum(total, 0.0)), -np.inf)
    return log


def _growing_steps(spread: int, reach: int, visible: int) -> Ints:
    """0 = d_0 < d_1 < ... < reach, single steps first, then steps of (d + spread) / FINENESS."""
    few = visible <= DENSE
    base = 1 if few else max(1, spread // FINENESS)
    flat = max(0, min(reach, max(2 * FINENESS * base - spread, visible if few else 0)))
    steps = np.arange(0, flat + 1, base, dtype=np.int64)
    start = float(flat + spread)
    count = max(0, math.ceil(math.log((reach + spread + 1.0) / start) / math.log1p(1 / FINENESS))) if start > 0 else 0
    grown = start * np.exp(np.arange(1, count + 1) * math.log1p(1 / FINENESS)) - spread
    return distinct(np.concatenate([steps, np.minimum(grown, reach).astype(np.int64)]))


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
