r"""The first step of an estimate over a wide range: a private answer to the question about where the records lie.

The records are counted in bins, each bin's count gets noise, and the fullest bin says where to look. Only the noisy
counts decide which bin that is, and all of them could be published: replacing a row moves two counts by one each.

Both steps use the same records, so the interval of the second step is not as good as if it had been designed for the
chosen bin beforehand. But for each bin b that could be chosen it misses with probability at most :math:`\alpha'`:

.. math:: \Pr_\theta[\text{miss}] \le \sum_b \min(\Pr_\theta[B = b],\ \alpha'),

and :math:`\Pr_\theta[B = b]` is small for all bins but the one in which most records lie, or the two between which they
are divided. The bins start at a random place, so the latter is rare. A bin b with probability :math:`p_b` beats another
with :math:`p_j` with probability at most
:math:`(1 + p_b (e^s - 1) + p_j (e^{-s} - 1))^n\, (E e^{sG})^2` for every s, where G is the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privatest.errors import InvalidInput
from privatest.hypotheses.distribution import Numbers
from privatest.hypotheses.one_parameter import OneParameter
from privatest.numbers import Floats, Integers, root
from privatest.privacy import Noise, Notion, RandomSource
from privatest.privacy.bulk_draws import draw_many
from privatest.privacy.canonical_noise import counts_noise
from privatest.privacy.notion import Neighbourhood
from privatest.scores.score import DyadicCells

PLACES = 64
"""Number of places of a cell at which the coverage of two steps is computed."""
STARTS = 8
"""Number of places at which the bins can start; each is equally likely."""
MOST_BINS = 1 << 19
TILTS = 24
UNSEEN = 1e-12
"""Bins beyond this quantile, on either side, count as empty."""


@dataclass(frozen=True)
class _Choices:
    """Bounds on the probabilities with which each bin is chosen, added up over all places where the bins start.

    Attributes:
        unseen: the sum over the bins that count as empty.
        rare: the sum over the bins whose probability is below every level in question.
        others: the probabilities of all other bins.
    """

    unseen: float
    rare: float
    others: Floats

    def misses(self, level: float) -> float:
        """The largest probability of a miss by a second step that misses with probability ``level`` for each bin."""
        return (self.unseen + self.rare + float(np.minimum(self.others, level).sum())) / STARTS


@dataclass(frozen=True)
class Location:
    """Bins of equal length, and the noise on their counts.

    Attributes:
        cells: ``STARTS`` cells make a bin.
        noise: what is added to each count.
    """

    cells: DyadicCells
    noise: Noise

    def __post_init__(self) -> None:
        if not isinstance(self.cells, DyadicCells) or not self.noise.total_leaves:
            raise InvalidInput("The first step of an estimate counts dyadic cells, with noise on every whole number.")
        if self.cells.size > STARTS * MOST_BINS:
            raise InvalidInput(f"The first step of an estimate has at most {MOST_BINS} bins.")

    @classmethod
    def over(cls, low: float, high: float, length: float, notion: Notion, around: Neighbourhood) -> Location:
        """Bins of about this length from low to high; the first and the last bin have no outer end."""
        exponent = -round(math.log2(length / STARTS))
        first = math.floor(math.ldexp(low, exponent)) - STARTS
        last = math.floor(math.ldexp(high, exponent)) + STARTS
        return cls(DyadicCells(exponent, first, last - first + 1), counts_noise(notion, around))

    @property
    def length(self) -> float:
        """Length of a bin."""
        return STARTS / self.cells.factor

    @property
    def bins(self) -> int:
        """Number of bins, wherever they start."""
        return -(-self.cells.size // STARTS) + 1

    def begins(self, start: int, places: Integers) -> Floats:
        """The lower ends of these bins, if the bins start at ``start``."""
        return np.ldexp((self.cells.first + STARTS * places - start).astype(np.float64), -self.cells.exponent)

    def place_of(self, start: int, values: Floats) -> Integers:
        """The bins that hold these numbers, if the bins start at ``start``."""
        cells = np.floor(values * self.cells.factor) - self.cells.first + start
        places: Integers = np.clip(cells // STARTS, 0, self.bins - 1).astype(np.int64)
        return places

    def chosen(self, counts: list[int], source: RandomSource) -> tuple[int, int]:
        """Draw where the bins start; return that, and the bin with the largest noisy count.

        Args:
            counts: the number of records in each cell, that of odd records last.
            source: where randomness comes from.
        """
        start = int(source.below(STARTS))
        padded = np.zeros(self.bins * STARTS, dtype=np.int64)
        padded[start : start + len(counts) - 1] = counts[:-1]
        doubled = 2 * padded.reshape(self.bins, STARTS).sum(axis=1) + draw_many(self.noise, self.bins, source)
        return start, int(np.argmax(doubled))

    @cached_property
    def _tilts(self) -> tuple[Floats, Floats]:
        """Values of s, and the logarithm of E exp(sG) at each."""
        rate, deviation = self.noise.decay_rate, math.sqrt(self.noise.variance)
        s = rate * np.linspace(0.02, 0.98, TILTS) if rate < math.inf else np.geomspace(0.1, 10, TILTS) / deviation
        return s, np.log(np.real(self.noise.characteristic(-1j * s)))

    def misses(self, family: OneParameter, value: float, n: int, level: float) -> float:
        """The largest probability that two steps miss the true value.

        Args:
            family, value: the family and the true value of its parameter.
            n: number of records.
            level: the probability with which the second step misses, for each bin.
        """
        return max(choices.misses(level) for choices in self._choices(family, value, n, level))

    def _choices(self, family: OneParameter, value: float, n: int, least: float) -> list[_Choices]:
        """How often each bin is chosen, at each extreme of the other parameters, for levels from ``least`` on."""
        box = family.box(value, value)
        return [self._choices_under(box.member(corner), n, least) for corner in box.corners()]

    def _choices_under(self, member: Numbers, n: int, least: float) -> _Choices:
        few = member.ppf(np.array([UNSEEN, 1 - UNSEEN]))
        seen = [self.place_of(start, few) for start in range(STARTS)]
        # Every end of a bin, wherever bins start, is the end of a cell.
        cells = [STARTS * (first + 1) - start for start, (first, _) in enumerate(seen)]
        lowest = min(cells)
        highest = max(STARTS * last - start for start, (_, last) in enumerate(seen))
        edges = (self.cells.first + np.arange(lowest, highest + 1)).astype(np.float64)
        below = member.cdf(np.ldexp(edges, -self.cells.exponent))
        chances, unseen = [], 0.0
        for cell, (first, last) in zip(cells, seen, strict=True):
            inner = below[cell - lowest :: STARTS][: last - first]
            masses = np.maximum(np.diff(np.concatenate([[0.0], inner, [1.0]])), 0.0)
            best = int(np.argmax(masses))
            # The last entry stands for all other bins, which hold at most this much.
            winning = self._chances_to_win(np.append(masses, 2 * UNSEEN), float(masses[best]), n)
            winning[best] = 1.0
            unseen += min((self.bins - len(masses)) * float(winning[-1]), 1.0)
            chances.append(winning[:-1])
        every = np.concatenate(chances)
        large = every > least
        return _Choices(unseen, float(every[~large].sum()), every[large])

    def _chances_to_win(self, masses: Floats, best: float, n: int) -> Floats:
        """Bounds on the probabilities with which bins of these masses get larger noisy counts than one of mass best."""
        s, log_mgf = self._tilts
        ahead = np.maximum(masses[:, None] * np.expm1(s) + best * np.expm1(-s), -1 + 1e-15)
        chances: Floats = np.exp(np.minimum(n * np.log1p(ahead) + 2 * log_mgf, 0.0).min(axis=1))
        return chances

    def second_level(self, family: OneParameter, n: int, level: float) -> float | None:
        """The confidence of the second step with which both steps together have ``level``; None if none is enough.

        The place of the true value within its cell matters, and which cell it is hardly does: the worst of many places
        counts.
        """
        middle, cell, most = sum(family.inner) / 2, self.length / STARTS, (1 - level) * (1 - 1e-4)
        low, high = (1 - level) / 2, 1 - level
        places: list[_Choices] = []
        # Places that are far apart come first: a few of them often show that no confidence is enough.
        for place in sorted(range(PLACES), key=lambda place: place % (PLACES // 4)):
            here = self._choices(family, middle + cell * place / PLACES, n, low)
            if any(one.unseen > STARTS * (1 - level) / 4 or one.misses(low) > most for one in here):
                return None
            places += here
        too_many, tolerance = lambda share: max(one.misses(share) for one in places) > most, (1 - level) / 2**12
        share, _ = root(too_many, low, high, absolute=tolerance)
        return 1 - share if share > low else None
