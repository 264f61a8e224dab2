"""Distributions made of others: finite mixtures, and densities spliced from two others, piece by piece.

On each piece of a splice the density is a P + b Q with constants a and b, as in the cores and tails of the
decomposition: P~ = min{P, c Q}, or what P has above c Q.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.hypotheses.distribution import (
    Distribution,
    IntegerBlocks,
    Labels,
    Reals,
    WholeNumbers,
    check_probabilities,
)
from privatest.hypotheses.families import number_text
from privatest.numbers import Floats, Integers, distinct


def mixed(weights: ArrayLike, parts: Sequence[Distribution], name: str) -> Distribution:
    """The distribution that draws part i with probability ``weights[i]``; parts of weight 0 are left out."""
    w = check_probabilities(weights, f"{name} weights")
    kept = [(float(weight), law) for weight, law in zip(w, parts, strict=True) if weight > 0]
    w = np.array([weight for weight, _ in kept])
    w /= w.sum()
    laws = [law for _, law in kept]
    reals = [law for law in laws if isinstance(law, Reals)]
    if len(reals) == len(laws):
        return MixedReals(w, reals)
    labels = [law for law in laws if isinstance(law, Labels)]
    if len(labels) == len(laws):
        return _mixed_labels(w, labels, name)
    if reals:
        raise InvalidDistribution(f"{name} mixes continuous with discrete parts: all must be of one kind.")
    integers: list[WholeNumbers] = []
    for law in laws:
        found = IntegerBlocks.from_labels(law) if isinstance(law, Labels) else law
        if not isinstance(found, WholeNumbers):
            raise InvalidDistribution(f"{name} mixes {law.describe()} with integer parts: its labels must be integers.")
        integers.append(found)
    return MixedIntegers(w, integers)


def _mixed_labels(weights: Floats, parts: Sequence[Labels], name: str) -> Labels:
    total: dict[Hashable, float] = {}
    for weight, part in zip(weights, parts, strict=True):
        for label, probability in zip(part.labels, part.probabilities, strict=True):
            total[label] = total.get(label, 0.0) + float(weight) * float(probability)
    return Labels(tuple(total), list(total.values()), name)


def _log_mix(weights: Floats, logs: list[Floats]) -> Floats:
    """log sum of w_i e^(l_i), scaled by the largest."""
    stack = np.stack([np.log(w) + log for w, log in zip(weights, logs, strict=True)])
    top = stack.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.isfinite(top), safe + np.log(np.exp(stack - safe).sum(axis=0)), top))


class _Mixed:
    """What mixtures of densities and of mass functions have in common."""

    weights: Floats
    parts: tuple[Any, ...]

    def __init__(self, weights: Floats, parts: Sequence[Distribution]) -> None:
        self.weights, self.parts = weights, tuple(parts)

    def _text(self, words: list[str]) -> str:
        pieces = (f"{number_text(w)}, {word}" for w, word in zip(self.weights, words, strict=True))
        return f"mixture({', '.join(pieces)})"

    @property
    def spec(self) -> str | None:
        words = [part.spec for part in self.parts]
        return None if any(word is None for word in words) else self._text(words)

    @property
    def named(self) -> bool:
        return all(part.named for part in self.parts)

    def describe(self) -> str:
        return self._text([part.describe() for part in self.parts])

    @property
    def support(self) -> tuple[float, float]:
        return min(part.support[0] for part in self.parts), max(part.support[1] for part in self.parts)

    def cdf(self, x: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.cdf(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def sf(self, x: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.sf(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def _sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        counts = rng.multinomial(size, self.weights)
        drawn = [part.sample(rng, int(count)) for part, count in zip(self.parts, counts, strict=True)]
        return rng.permutation(np.concatenate(drawn))


class MixedReals(_Mixed, Reals):
    """A mixture of densities."""

    def logpdf(self, x: ArrayLike) -> Floats:
        return _log_mix(self.weights, [part.logpdf(x) for part in self.parts])

    @cached_property
    def breaks(self) -> Floats:
        ends = [end for part in self.parts for end in part.support if np.isfinite(end)]
        return np.unique(np.concatenate([*(part.breaks for part in self.parts), ends]))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(self._sample(rng, size), dtype=float)


class MixedIntegers(_Mixed, WholeNumbers):
    """A mixture of distributions on the integers."""

    def logpmf(self, k: ArrayLike) -> Floats:
        return _log_mix(self.weights, [part.logpmf(k) for part in self.parts])

    @cached_property
    def edges(self) -> Integers:
        return distinct(np.concatenate([part.edges for part in self.parts]))

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return self._sample(rng, size).astype(np.int64)


@dataclass(frozen=True)
class SplicePiece:
    """On (lower, upper) the density is ``of_first`` times the first plus ``of_second`` times the second."""

    lower: float
    upper: float
    of_first: float
    of_second: float


class Splice(Reals):
    """Piecewise linear combination of two densities; pieces from left to right, zero between them.

    Guarantees: the masses of the pieces sum to 1 (they are normalised by what they do sum to, which the
    caller has made 1 but for rounding).
    """

    def __init__(self, first: Reals, second: Reals, pieces: Sequence[SplicePiece], text: str) -> None:
        self._first, self._second = first, second
        self._pieces = tuple(piece for piece in pieces if piece.upper > piece.lower)
        self._text = text
        self._lower = np.array([piece.lower for piece in self._pieces])
        self._upper = np.array([piece.upper for piece in self._pieces])
        self._a = np.array([piece.of_first for piece in self._pieces])
        self._b = np.array([piece.of_second for piece in self._pieces])
        masses = self._combine(np.arange(len(self._pieces)), self._lower, self._upper)
        total = math.fsum(masses.tolist())
        self._masses = masses / total
        self._log_total = math.log(total)

    @property
    def support(self) -> tuple[float, float]:
        ends = (self._first.support, self._second.support)
        lo, hi = min(end[0] for end in ends), max(end[1] for end in ends)
        return max(lo, float(self._lower[0])), min(hi, float(self._upper[-1]))

    def describe(self) -> str:
        return self._text

    def _combine(self, index: NDArray[np.intp], lower: Floats, upper: Floats) -> Floats:
        """Mass of (lower, upper) inside piece ``index``, before normalisation."""
        a, b = self._a[index], self._b[index]
        upper = np.maximum(upper, lower)
        of_first = np.where(a != 0, a * self._first.mass(lower, upper), 0.0)
        of_second = np.where(b != 0, b * self._second.mass(lower, upper), 0.0)
        return np.asarray(np.maximum(of_first + of_second, 0.0))

    def _find(self, x: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Which piece each x lies in, and whether in any."""
        index = np.clip(np.searchsorted(self._lower, x, side="right") - 1, 0, None)
        return index, (x >= self._lower[index]) & (x <= self._upper[index])

    def logpdf(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, dtype=float)
        index, inside = self._find(values)
        a, b = self._a[index], self._b[index]
        with np.errstate(all="ignore"):
            log_first = np.log(np.abs(a)) + self._first.logpdf(values)
            log_second = np.log(np.abs(b)) + self._second.logpdf(values)
            top = np.where(a * b < 0, np.where(a > 0, log_first, log_second), np.maximum(log_first, log_second))
            gap = np.where(top == log_first, log_second, log_first) - top
            # sum, or what is left of the positive part when the other is taken away (NaN if less than
            # nothing)
            both = np.where(a * b < 0, np.log(-np.expm1(gap)), np.log1p(np.exp(gap)))
            log = top + np.where(gap == -np.inf, 0.0, both)
        return np.asarray(np.where(inside & ~np.isnan(log), log - self._log_total, -np.inf))

    def cdf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=False)

    def sf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=True)

    def _cumulative(self, x: ArrayLike, *, upper: bool) -> Floats:
        values = np.asarray(x, dtype=float)
        flat = values.ravel()
        index = np.searchsorted(self._lower, flat, side="right") - 1
        safe = np.clip(index, 0, None)
        scale = math.exp(-self._log_total)
        if upper:
            after = np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])
            part = self._combine(safe, np.maximum(flat, self._lower[safe]), self._upper[safe]) * scale
            mass = np.where(index < 0, 1.0, after[safe + 1] + np.where(flat < self._upper[safe], part, 0.0))
        else:
            before = np.concatenate([[0.0], np.cumsum(self._masses)])
            part = self._combine(safe, self._lower[safe], np.minimum(flat, self._upper[safe])) * scale
            mass = np.where(index < 0, 0.0, before[safe] + part)
        mass = np.where(np.isnan(flat), np.nan, np.clip(mass, 0.0, 1.0))
        return np.asarray(mass.reshape(values.shape))

    @cached_property
    def breaks(self) -> Floats:
        points = np.concatenate([self._first.breaks, self._second.breaks])
        _, inside = self._find(points)
        edges = np.concatenate([self._lower, self._upper])
        everything = np.concatenate([points[inside], edges])
        return np.unique(everything[np.isfinite(everything)])
