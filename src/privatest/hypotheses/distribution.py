r"""Distributions of one record: single ones, mixtures of them, and densities that are spliced from two others.

A distribution is on labels with probabilities (:class:`Labels`), on the integers (:class:`WholeNumbers`) or has a
density on the line (:class:`Reals`). A :class:`Hypothesis` is a set of distributions; sets are in ``sets.py``, named
families in ``families.py``. On each piece of a :class:`Splice` the density is a P + b Q with constants a and b, as in
the cores and tails of the decomposition: P~ = min{P, c Q}, or what P has above c Q.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.numbers import Floats, Integers, distinct

if TYPE_CHECKING:
    from privatest.hypotheses.sets import Box, Corruption


SUM_TOLERANCE = 1e-9
MOST_TYPED = 20
"""Length of the longest list in which a user would look for a wrong probability; a longer one is taken for data."""
TAKEN_FOR_DATA = (
    "is taken for data: its values do not sum to 1 as probabilities do, or are all 0 or 1. Say what P and Q are, as in "
    "design('bernoulli(0.3)', 'bernoulli(0.4)', epsilon=1, n=100), and give the data to run(data). "
    "A law with all its mass in one place is a mapping: {0: 0, 1: 1}."
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def number_text(value: float) -> str:
    """Return the shortest text that reads back to the same float; whole numbers without a point."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


Side = Literal["low", "high"]
"""Which laws of a score are the worst for a test: low ones for the null, high ones for the alternative."""


class Hypothesis(ABC):
    """A set of distributions of one record. One distribution is the smallest set.

    Public by definition: a hypothesis holds nothing about anybody's data.
    """

    @property
    @abstractmethod
    def kind(self) -> str:
        """``"labels"``, ``"integers"`` or ``"reals"``."""

    @property
    def spec(self) -> str | None:
        """The text that :func:`parse` reads back to this hypothesis, or None if there is none."""
        return None

    @property
    def named(self) -> bool:
        """Whether no other hypothesis has the same description."""
        return self.spec is not None

    @abstractmethod
    def describe(self) -> str:
        """Return a short text for people, such as ``normal(0, 1)``."""

    @abstractmethod
    def leaves(self) -> list[Leaf]:
        """The distributions and boxes of which the hypothesis is the union, with their corruptions, innermost first."""

    def __repr__(self) -> str:
        return self.describe()


class Distribution(Hypothesis):
    """One distribution of a record."""

    def leaves(self) -> list[Leaf]:
        return [Leaf(self)]

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """``size`` simulated records. For simulations only: never part of a private release."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """A part of a hypothesis: one distribution or a box of parameters, and the corruptions of its records."""

    of: Distribution | Box
    corruptions: tuple[Corruption, ...] = ()

    def worst(self, law: Floats, side: Side) -> Floats:
        """Return the law of :meth:`Corruption.worst` after all corruptions."""
        for corruption in self.corruptions:
            law = corruption.worst(law, side)
        return law

    @property
    def share(self) -> float:
        """The largest total variation by which the corruptions can move a distribution."""
        return 1 - math.prod(1 - corruption.share for corruption in self.corruptions)


class Numbers(Distribution):
    """A distribution of numbers, on the integers or on the real line, which is accurate in both tails."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest interval that holds all mass; ends may be infinite."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """Pr[X <= x], accurate relatively in the left tail."""

    @abstractmethod
    def sf(self, x: ArrayLike) -> Floats:
        """Pr[X > x], accurate relatively in the right tail."""

    @abstractmethod
    def ppf(self, u: ArrayLike) -> Floats:
        """Smallest x with cdf(x) >= u."""

    @abstractmethod
    def isf(self, u: ArrayLike) -> Floats:
        """Smallest x with sf(x) <= u."""


class Reals(Numbers):
    """A density on an interval, with a cdf and its complement that are accurate in their own tails."""

    kind = "reals"

    @abstractmethod
    def logpdf(self, x: ArrayLike) -> Floats:
        """Log density; -inf off the support."""

    @property
    @abstractmethod
    def breaks(self) -> Floats:
        """Finite points between which the density is tame: quantiles far into both tails, ends, kinks."""

    @property
    def cut(self) -> float | None:
        """Where the shape is unknown and only the side of a number counts: the number that divides them."""
        return None

    def pdf(self, x: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(self.logpdf(x)))

    def ppf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=False)

    def isf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=True)

    def mass(self, lower: ArrayLike, upper: ArrayLike) -> Floats:
        """Pr[lower < X <= upper] from whichever tail does not cancel."""
        a, b = np.broadcast_arrays(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
        both = np.concatenate([a.ravel(), b.ravel()])
        cdf = self.cdf(both).reshape(2, -1)
        sf = self.sf(both).reshape(2, -1)
        centre = 1.0 - (cdf[0] + sf[1])
        mass = np.where(cdf[1] <= 0.5, cdf[1] - cdf[0], np.where(sf[0] <= 0.5, sf[0] - sf[1], centre))
        return np.asarray(np.maximum(mass, 0.0).reshape(a.shape))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return self.ppf(rng.random(size))


def inverse_cdf(law: Reals, u: Floats, *, upper: bool) -> Floats:
    """Quantiles by bisection of all targets at once, from brackets on the law's own breaks.

    Invariant: the quantile lies in (low, high].
    """
    lo, hi = law.support
    grid = np.unique(np.concatenate([law.breaks, [x for x in (lo, hi) if math.isfinite(x)]]))
    flat = np.atleast_1d(u).ravel()

    def reached(x: Floats, target: Floats) -> Any:
        return law.sf(x) <= target if upper else law.cdf(x) >= target

    on_grid = law.sf(grid) if upper else law.cdf(grid)
    order = -on_grid if upper else on_grid
    index = np.searchsorted(np.maximum.accumulate(order), -flat if upper else flat, side="left")
    low = np.where(index > 0, grid[np.minimum(np.maximum(index - 1, 0), grid.size - 1)], grid[0])
    high = grid[np.minimum(index, grid.size - 1)]
    for _ in range(80):
        middle = low + (high - low) / 2
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            break
        there = reached(middle, flat)
        high = np.where(there & open_, middle, high)
        low = np.where(~there & open_, middle, low)
    x = high.astype(float)
    outside = np.isnan(flat) | (flat < 0) | (flat > 1)
    at_lo, at_hi = (flat == 1, flat == 0) if upper else (flat == 0, flat == 1)
    x = np.where(at_lo, lo, np.where(at_hi, hi, np.where(outside, np.nan, x)))
    return np.asarray(x.reshape(np.shape(u)))


def smallest_integers(reached: Callable[[Floats], Any], low: Floats, high: Floats) -> Floats:
    """For each place the smallest integer in (low, high] at which the monotone condition ``reached`` is true.

    Invariant: the result lies in (low, high].
    """
    while bool(np.any(high - low > 1)):
        middle = np.floor((low + high) / 2)
        there = reached(middle)
        high, low = np.where(there, middle, high), np.where(there, low, middle)
    return high


class WholeNumbers(Numbers):
    """A probability mass function on the integers."""

    kind = "integers"

    @abstractmethod
    def logpmf(self, k: ArrayLike) -> Floats:
        """Log probability; -inf off the support and between the integers."""

    @property
    @abstractmethod
    def edges(self) -> Integers:
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
        target = np.asarray(u, dtype=float)
        low, high = (np.full(target.shape, float(end) - 1) for end in self.edges[[0, -1]])
        high = smallest_integers(lambda k: self.sf(k) <= target if upper else self.cdf(k) >= target, low, high)
        lowest, highest = self.support
        never = target <= 0 if upper else target >= 1
        always = target >= 1 if upper else target <= 0
        return np.asarray(np.where(never, highest, np.where(always, lowest - 1, high)))


class Labels(Distribution):
    """A finite domain of hashable labels with their probabilities.

    Guarantees: probabilities are finite, non-negative and sum to 1 within 1e-9; labels are distinct.

    >>> Labels.from_mapping({"a": 0.25, "b": 0.75})
    categorical(a=0.25, b=0.75)
    """

    kind = "labels"

    def __init__(self, labels: Sequence[Hashable], probabilities: ArrayLike, name: str = "distribution") -> None:
        self.labels: tuple[Hashable, ...] = tuple(labels)
        self.probabilities: Floats = check_probabilities(probabilities, name)
        if len(self.labels) != self.probabilities.size:
            raise InvalidDistribution(
                f"{name} has {len(self.labels)} labels but {self.probabilities.size} probabilities: give one for each."
            )
        if len(set(self.labels)) != len(self.labels):
            raise InvalidDistribution(f"{name} names a label twice: {_first_repeated(self.labels)!r}.")

    @classmethod
    def from_mapping(cls, mapping: Mapping[Hashable, Any], name: str = "distribution") -> Labels:
        if not mapping:
            raise InvalidDistribution(f"{name} is an empty mapping: it needs at least one label with its probability.")
        return cls(tuple(mapping), list(mapping.values()), name)

    @classmethod
    def from_array(cls, probabilities: ArrayLike, name: str = "distribution") -> Labels:
        """Return a law on the labels 0, ..., k - 1. Numbers that look like data, not probabilities, are refused."""
        data = False
        try:
            checked = check_probabilities(probabilities, name)
        except InvalidDistribution:
            data = not _could_be_typed(probabilities)
            if not data:
                raise
        if data or (checked.size > 2 and bool(np.all((checked == 0) | (checked == 1)))):
            raise InvalidDistribution(f"{name} {TAKEN_FOR_DATA}")
        return cls(range(checked.size), checked, name)

    @property
    def spec(self) -> str | None:
        values = [repr(float(value)) for value in self.probabilities]
        if self.labels == tuple(range(len(self.labels))) and not any(isinstance(x, bool) for x in self.labels):
            return f"categorical({', '.join(values)})"
        words = [_label_text(label) for label in self.labels]
        if any(word is None for word in words):
            return None
        return f"categorical({', '.join(f'{word}={value}' for word, value in zip(words, values, strict=True))})"

    @property
    def named(self) -> bool:
        return self.describe() == self.spec

    def describe(self) -> str:
        text = self.spec
        short = text is not None and len(self.labels) <= 6 and len(text) <= 120
        return text if short and text is not None else f"categorical({len(self.labels)} labels)"

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        total = self.probabilities / self.probabilities.sum()
        picks = rng.choice(len(self.labels), size=size, p=total)
        return label_array(self.labels)[picks]


def label_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """Return the labels as one array: integers or text where all are, objects otherwise."""
    if all(type(label) is int and abs(label) < 2**62 for label in labels):
        return np.array(labels, dtype=np.int64)
    if all(type(label) is str for label in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    for index, label in enumerate(labels):
        array[index] = label
    return array


def check_probabilities(values: ArrayLike, name: str) -> Floats:
    """``values`` as a probability vector, or an error that says what is wrong with them."""
    try:
        raw = np.asarray(values)
    except Exception:  # what the values are is not for messages
        raise InvalidDistribution(f"{name} must be a flat list of probabilities.") from None
    if raw.ndim != 1:
        raise InvalidDistribution(
            f"{name} has {raw.ndim} dimensions: probabilities must be one-dimensional, one number for each outcome."
        )
    if raw.size == 0:
        raise InvalidDistribution(f"{name} is empty: it needs at least one probability.")
    if raw.dtype == object:
        raw = _numbers(raw, name)
    if raw.dtype.kind not in "iuf":
        raise InvalidDistribution(f"{name} holds {raw.dtype.name} values: probabilities must be real numbers.")
    p = raw.astype(np.float64)
    if np.isnan(p).any():
        raise InvalidDistribution(f"{name} has a probability that is NaN.")
    if (p < 0).any():
        raise InvalidDistribution(f"{name} has a negative probability: all must be at least 0.")
    total = math.fsum(p.tolist()) if np.isfinite(p).all() else math.inf
    if not abs(total - 1) <= SUM_TOLERANCE:
        # Not the sum: these may be data, or counts of data.
        more = "more" if total > 1 else "less"
        raise InvalidDistribution(f"{name} has probabilities that sum to {more} than 1: they must sum to 1.")
    return p


def _numbers(raw: NDArray[Any], name: str) -> NDArray[Any]:
    """Fractions, decimals and integers as floats; anything else is refused by name."""
    try:
        if any(isinstance(value, (bool, str, bytes, complex)) for value in raw):
            raise TypeError
        return np.array([float(value) for value in raw])
    except Exception:  # a number type of the user's may raise anything, and quote what it is
        kinds = ", ".join(sorted({type(value).__name__ for value in raw}))
        raise InvalidDistribution(f"{name} holds {kinds} values: probabilities must be real numbers.") from None


def _could_be_typed(values: ArrayLike) -> bool:
    """Whether a user may have typed these: few numbers from 0 to 1, not all 0 or 1; no numbers; or a table."""
    try:
        raw = np.asarray(values)
        if raw.ndim != 1 or raw.size == 0:
            return True
        few = raw.size <= MOST_TYPED and raw.dtype.kind in "iufO"
        return few and all(0 <= each <= 1 for each in raw.tolist()) and not all(each in (0, 1) for each in raw.tolist())
    except Exception:  # whatever these are
        return False


def _first_repeated(labels: Iterable[Hashable]) -> Hashable:
    seen: set[Hashable] = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None


def _label_text(label: Hashable) -> str | None:
    """Return the label as the text parser reads it back, where it can."""
    if type(label) is int:
        return str(label)
    if type(label) is not str or not label.isprintable():
        return None
    if _WORD.match(label):
        return label
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'


class IntegerBlocks(WholeNumbers):
    """Masses on disjoint blocks of integers, spread evenly inside each block."""

    def __init__(self, first: Integers, last: Integers, masses: Floats, text: str = "", *, named: bool = False) -> None:
        keep = masses > 0
        self.first, self.last = np.asarray(first)[keep], np.asarray(last)[keep]
        self.masses: Floats = np.asarray(masses, dtype=float)[keep]
        self._text, self._named = text or f"integers({self.masses.size} atoms)", named
        with np.errstate(divide="ignore"):
            # floats: the outermost blocks may reach the ends of int64
            self._logs = np.log(self.masses) - np.log(self.last.astype(float) - self.first.astype(float) + 1)

    @classmethod
    def from_labels(cls, labels: Labels) -> IntegerBlocks | None:
        """Return the same distribution on the integers, or None where some label is no integer."""
        values = []
        for label in labels.labels:
            if not isinstance(label, (int, np.integer)) or abs(int(label)) > 2**53:
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
    def edges(self) -> Integers:
        ends = np.minimum(self.last, np.iinfo(np.int64).max - 1) + 1
        return distinct(np.concatenate([self.first, ends]))


def mixed(weights: ArrayLike, parts: Sequence[Distribution], name: str) -> Distribution:
    """Return the distribution that draws part i with probability ``weights[i]``; parts of weight 0 are left out."""
    w = check_probabilities(weights, f"{name} weights")
    positive = [(float(weight), law) for weight, law in zip(w, parts, strict=True) if weight > 0]
    w = np.array([weight for weight, _ in positive])
    w /= w.sum()
    laws = [law for _, law in positive]
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
        whole = IntegerBlocks.from_labels(law) if isinstance(law, Labels) else law
        if not isinstance(whole, WholeNumbers):
            raise InvalidDistribution(f"{name} mixes {law.describe()} with integer parts: its labels must be integers.")
        integers.append(whole)
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
        """Return the index of the piece that holds each x, and whether any piece holds it."""
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
