r"""Goldreich's map from identity to uniformity, record by record.

With probability 1/2 replace the record by a uniform symbol, so that P becomes P' = (P + U)/2 >= 1/(2k). Cut the
unit of probability into M = 4k grains; symbol x owns g_x = floor(M P'_x) of them. Keep the record with
probability g_x/(M P'_x), else send it to a further symbol that owns the grains left over; then draw one of the owner's
grains. Records from P become exactly uniform on the M grains, records at distance gamma from P are at
distance at least gamma/4 (in fact gamma/3) from uniform, and since each record is mapped by itself, privacy is kept.

Reference: Goldreich 2016, "The uniform distribution is complete with respect to testing identity".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privatest.numbers import Floats, Integers, rational
from privatest.privacy import Source

__all__ = ["Grains", "exact_probabilities"]


GRAINS_PER_SYMBOL = 4


def exact_probabilities(p: Sequence[float] | Floats) -> tuple[Fraction, ...]:
    """The rationals meant by the floats, divided by their sum so that they sum to exactly 1."""
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
    """Grains of each symbol and, last, of the symbol for what is not kept."""

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
        """M, the number of grains."""
        return sum(self.owned)

    @cached_property
    def _first(self) -> list[int]:
        return [0, *np.cumsum(self.owned).tolist()]

    @cached_property
    def _keep_floats(self) -> Floats:
        return np.array([float(x) for x in self.keep])

    def draw(self, counts: Integers, source: Source) -> Integers:
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
