"""The domain of a fit test: its symbols with their probabilities under P, their counts, and Goldreich's map.

A finite P is taken as it is, a continuous or infinite one is cut into bins (:func:`read_domain`). Every engine counts
the records of each symbol (:func:`histogram`).

:class:`Grains` is Goldreich's map from identity to uniformity, record by record. With probability 1/2 replace the
record by a uniform symbol, so that P becomes P' = (P + U)/2 >= 1/(2k). Cut the unit of probability into M = 4k grains;
symbol x owns g_x = floor(M P'_x) of them. Keep the record with probability g_x/(M P'_x), else send it to a further
symbol that owns the grains left over; then draw one of the owner's grains. Records from P become exactly uniform on
the M grains, records at distance gamma from P are at distance at least gamma/4 (in fact gamma/3) from uniform, and
since each record is mapped by itself, privacy is kept.

Reference: Goldreich 2016, "The uniform distribution is complete with respect to testing identity".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.engines import Records
from privatest.engines.records import counting_score
from privatest.errors import InvalidDistribution, InvalidInput
from privatest.hypotheses import Distribution, Labels, Reals, WholeNumbers, as_distribution
from privatest.numbers import Floats, Integers, rational
from privatest.privacy import RandomSource
from privatest.privacy.bulk_draws import draw_rows
from privatest.scores import Cells, EdgeCells, IntegerCells, LabelCells

GRAINS_PER_SYMBOL = 4


def exact_probabilities(p: Sequence[float] | Floats) -> tuple[Fraction, ...]:
    """The rationals that the floats stand for, divided by their sum, so that they sum to exactly 1."""
    numbers = [rational(float(x)) for x in p]
    total = sum(numbers)
    return tuple(x / total for x in numbers)


@dataclass(frozen=True)
class Grains:
    """The map for one P.

    Guarantees: exact; P becomes uniform on ``count`` grains; a record's grain depends on that record alone.

    >>> Grains.of([0.2, 0.3, 0.5]).owned
    (3, 3, 5, 1)
    """

    keep: tuple[Fraction, ...]
    owned: tuple[int, ...]
    """Number of grains of each symbol and, last, of the symbol for records that are not kept."""

    @classmethod
    def of(cls, p: Sequence[float] | Floats) -> Grains:
        """The map that makes P uniform."""
        exact = exact_probabilities(p)
        k = len(exact)
        grains = [GRAINS_PER_SYMBOL * k * (x + Fraction(1, k)) / 2 for x in exact]
        owned = [int(x) for x in grains]
        keep = tuple(Fraction(g) / x for g, x in zip(owned, grains, strict=True))
        return cls(keep, (*owned, GRAINS_PER_SYMBOL * k - sum(owned)))

    @property
    def count(self) -> int:
        """M, the number of all grains."""
        return sum(self.owned)

    @cached_property
    def _first(self) -> list[int]:
        return [0, *np.cumsum(self.owned).tolist()]

    @cached_property
    def _keep_floats(self) -> Floats:
        return np.array([float(x) for x in self.keep])

    def draw(self, counts: Integers, source: RandomSource) -> Integers:
        """The histogram over grains of records with this histogram over symbols."""
        k = len(self.keep)
        found = [0] * self.count
        for symbol, count in enumerate(counts.tolist()):
            for _ in range(count):
                x = source.below(k) if source.bits(1) else symbol
                if source.below(self.keep[x].denominator) >= self.keep[x].numerator:
                    x = k
                found[self._first[x] + source.below(self.owned[x])] += 1
        return np.array(found, dtype=np.int64)

    def image(self, q: Floats) -> Floats:
        """The law of the grain of a record from q, in floats: for planning only."""
        k = len(self.keep)
        mixed = (q + 1 / k) / 2
        kept = mixed * self._keep_floats
        mass = np.append(kept, max(1.0 - float(kept.sum()), 0.0))
        owned = np.array(self.owned)
        share = np.where(owned > 0, mass / np.maximum(owned, 1), 0.0)
        # Equal probabilities must be equal floats: they are grouped.
        law = np.repeat(np.where(np.abs(share * self.count - 1) < 1e-12, 1 / self.count, share), owned)
        return np.asarray(law / law.sum() if np.any(law != law[0]) else law)


Indices = npt.NDArray[np.intp]
MOST_SYMBOLS = 1 << 20
# A finite set of integers up to this size is taken as it is.
MOST_INTEGERS = 1 << 12
MOST_BINS = 1 << 16


@dataclass(frozen=True, eq=False)
class Domain:
    """Symbols with their probabilities under P.

    Attributes:
        cells: which symbol a record is; what makes no sense is counted as the most likely symbol.
        probabilities: P, one number for each symbol.
        null: short description of P.
        bins: how P was cut, or None for a domain that is finite as given.
    """

    cells: Cells
    probabilities: Floats
    null: str
    bins: str | None = None

    def __post_init__(self) -> None:
        p = self.probabilities
        if p.ndim != 1 or not np.all(p >= 0) or not abs(math.fsum(p.tolist()) - 1) < 1e-9:
            raise InvalidInput("The probabilities of the null do not sum to 1.")
        if self.cells.count != len(p):
            raise InvalidInput(f"The null has {len(p)} probabilities for {self.cells.count} cells.")


def read_domain(null: Any, distance: float, bins: int | None = None) -> Domain:
    """P over a finite set of symbols.

    Continuous and infinite P are cut into about ``bins`` bins of equal probability, by default 4/distance: where a
    density crosses that of P inside a bin, at most the bin's mass, a quarter of the distance, is lost.
    """
    law = as_distribution(null, "null")
    if bins is not None:
        bins = numbers.positive_integer(bins=bins)
        if not 2 <= bins <= MOST_BINS:
            raise InvalidInput(f"bins={bins} must lie between 2 and {MOST_BINS}.")
    domain = _of(law, distance, bins)
    k = len(domain.probabilities)
    if k > MOST_SYMBOLS:
        raise InvalidDistribution(f"null {domain.null} has {k} outcomes, more than {MOST_SYMBOLS}. Pool some.")
    if k < 2:
        raise InvalidDistribution(f"null {domain.null} has a single outcome: there is nothing to test.")
    return domain


def _of(law: Distribution, distance: float, bins: int | None) -> Domain:
    wanted = bins if bins is not None else min(math.ceil(4 / distance), MOST_BINS)
    if isinstance(law, Reals):
        return _equal_bins(law, wanted)
    if isinstance(law, WholeNumbers):
        lo, hi = law.support
        if bins is None and hi - lo < MOST_INTEGERS:
            numbers = np.arange(int(lo), int(hi) + 1, dtype=np.int64)
            p = _normalised(law.pmf(numbers.astype(np.float64)))
            return Domain(IntegerCells(numbers, int(hi)), p, law.describe())
        return _integer_bins(law, wanted)
    assert isinstance(law, Labels)
    if bins is not None:
        raise InvalidInput(
            f"bins={bins} does not apply to null {law.describe()}: its domain is finite. Leave bins out."
        )
    return Domain(LabelCells(law.labels), _normalised(law.probabilities), law.describe())


def _equal_bins(law: Reals, bins: int) -> Domain:
    edges = np.unique(law.ppf(np.arange(1, bins) / bins))
    low, high = law.support
    edges = edges[np.isfinite(edges) & (edges > low) & (edges < high)]
    masses = law.mass(np.append(low, edges), np.append(edges, high))
    text = f"{len(masses)} bins of equal probability"
    if len(masses) < 2:
        raise InvalidDistribution(f"null {law.describe()} cannot be cut into {bins} bins: its quantiles coincide.")
    return Domain(EdgeCells(tuple(edges.tolist()), low, high), _normalised(masses), law.describe(), text)


def _integer_bins(law: WholeNumbers, bins: int) -> Domain:
    lo, hi = law.support
    limits = np.iinfo(np.int64)
    ends = np.unique(law.ppf(np.arange(1, bins) / bins)).astype(np.int64)
    ends = ends[ends < hi]
    first = np.append(limits.min if math.isinf(lo) else int(lo), ends + 1).astype(np.int64)
    last = limits.max if math.isinf(hi) else int(hi)
    below = np.append(law.cdf(ends.astype(np.float64)), 1.0)
    p = _normalised(np.diff(below, prepend=0.0))
    return Domain(IntegerCells(first, int(last)), p, law.describe(), f"{len(p)} runs of integers, the tails pooled")


def _normalised(masses: Floats) -> Floats:
    """Probabilities that sum to 1; equal floats where they differ by rounding from a common value."""
    p = np.asarray(masses, dtype=np.float64) / math.fsum(masses.tolist())
    if np.all(np.abs(p * len(p) - 1) < 1e-9):
        return np.full(len(p), 1 / len(p))
    return p


Counts = npt.NDArray[np.int64]


def histogram(records: Records, cells: Cells, odd: int, source: RandomSource) -> Counts:
    """Counts of the symbols; records that make no sense count as symbol ``odd``.

    Of persons who have more rows than count, rows are drawn from ``source``. The counts are raw: they must not leave
    the process except through a test's noise.
    """
    records.check(counting_score(cells))
    return symbols(np.array(records.histogram(cells, partial(draw_rows, source)), dtype=np.int64), odd)


def symbols(counts: Counts, odd: int) -> Counts:
    """Counts of the cells, the odd cell last, as counts of the symbols."""
    found = counts[:-1].copy()
    found[odd] += counts[-1]
    return found
