r"""The first step of an estimate over a wide range: about where is it?

The records are counted in bins, each bin's count gets noise, and the fullest bin says where to look. Which bin that is
follows from the noisy counts alone, all of which could be published: replacing a row moves two counts by one each.

The records decide twice, in this step and in the next, so the next step's interval is not as good as if it had been
made for this bin beforehand. But for each bin b that could be chosen it misses with probability :math:`\alpha'` or
less:

.. math:: \Pr_\theta[\text{miss}] \le \sum_b \min(\Pr_\theta[B = b],\ \alpha'),

and :math:`\Pr_\theta[B = b]` is small for all bins but the one in which most records lie, or the two between which they
are divided. The bins start at a random place, so the latter is rare. A bin b with probability :math:`p_b` beats another
with :math:`p_j` with probability at most
:math:`(1 + p_b (e^s - 1) + p_j (e^{-s} - 1))^n\, (E e^{sG})^2` for every s, G the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privatest.errors import InvalidDocument
from privatest.hypotheses.distribution import Numbers
from privatest.hypotheses.one_parameter import OneParameter
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Notion, RandomSource, noise_from_dict
from privatest.privacy.bulk_draws import draw_many
from privatest.privacy.canonical import counts_noise
from privatest.privacy.notions import Neighbourhood
from privatest.scores.score import DyadicCells, cells_from_dict

PLACES = 64
"""At so many places of a cell the coverage of two steps is looked at."""
STARTS = 8
"""At how many places the bins can start, each as likely."""
MOST_BINS = 1 << 19
TILTS = 24
UNSEEN = 1e-12
"""Bins that lie beyond all but so much of the mass on either side are as good as empty."""


@dataclass(frozen=True)
class _Misses:
    """How often each bin is chosen at most, over all places where bins start.

    Attributes:
        unseen: all bins together that are as good as empty.
        rarely: the sum over those that are chosen less often than any level asked for.
        often: all others.
    """

    unseen: float
    rarely: float
    often: Floats

    def at(self, level: float) -> float:
        """At most how often a second step misses, if for each bin it does so with probability level."""
        return (self.unseen + self.rarely + float(np.minimum(self.often, level).sum())) / STARTS


@dataclass(frozen=True)
class Location:
    """Bins of equal length, and the noise on their counts.

    Attributes:
        cells: ``STARTS`` of them make a bin.
        noise: on each count.
    """

    cells: DyadicCells
    noise: Noise

    @classmethod
    def over(cls, low: float, high: float, length: float, notion: Notion, around: Neighbourhood) -> Location:
        """Bins of about this length, from low to high; those at both ends go on for ever."""
        exponent = -round(math.log2(length / STARTS))
        first = math.floor(math.ldexp(low, exponent)) - STARTS
        last = math.floor(math.ldexp(high, exponent)) + STARTS
        return cls(DyadicCells(exponent, first, last - first + 1), counts_noise(notion, around))

    @property
    def length(self) -> float:
        """Of a bin."""
        return STARTS / self.cells.factor

    @property
    def bins(self) -> int:
        """How many there are, wherever they start."""
        return -(-self.cells.size // STARTS) + 1

    def begins(self, start: int, places: Integers) -> Floats:
        """Where these bins begin, if bins start at ``start``; the first and the last of all go on for ever."""
        return np.ldexp((self.cells.first + STARTS * places - start).astype(np.float64), -self.cells.exponent)

    def place_of(self, start: int, values: Floats) -> Integers:
        """The bins that hold these numbers."""
        cells = np.floor(values * self.cells.factor) - self.cells.first + start
        found: Integers = np.clip(cells // STARTS, 0, self.bins - 1).astype(np.int64)
        return found

    def chosen(self, counts: list[int], source: RandomSource) -> tuple[int, int]:
        """Where the bins start, drawn, and the bin with the largest noisy count."""
        start = int(source.below(STARTS))
        noisy = 2 * self._in_bins(np.array(counts[:-1], dtype=np.int64), start)
        noisy += draw_many(self.noise, self.bins, source)
        return start, int(np.argmax(noisy))

    def _in_bins(self, counts: Integers, start: int) -> Integers:
        padded = np.zeros(self.bins * STARTS, dtype=np.int64)
        padded[start : start + len(counts)] = counts
        found: Integers = padded.reshape(self.bins, STARTS).sum(axis=1)
        return found

    @cached_property
    def _tilts(self) -> tuple[Floats, Floats]:
        """Values of s, and the logarithm of E exp(sG) at each."""
        rate, deviation = self.noise.decay_rate, math.sqrt(self.noise.variance)
        s = rate * np.linspace(0.02, 0.98, TILTS) if rate < math.inf else np.geomspace(0.1, 10, TILTS) / deviation
        return s, np.log(np.real(self.noise.characteristic(-1j * s)))

    def misses(self, family: OneParameter, value: float, n: int, level: float) -> float:
        """At most how often a second step misses the true value, if for each bin it does so with probability level."""
        return max(misses.at(level) for misses in self._misses(family, value, n, level))

    def _misses(self, family: OneParameter, value: float, n: int, least: float) -> list[_Misses]:
        """What :meth:`misses` adds up for every level from ``least``, for each extreme of the other parameters."""
        box = family.box(value, value)
        return [self._misses_of(box.member(corner), n, least) for corner in box.corners()]

    def _misses_of(self, member: Numbers, n: int, least: float) -> _Misses:
        few = member.ppf(np.array([UNSEEN, 1 - UNSEEN]))
        seen = [self.place_of(start, few) for start in range(STARTS)]
        # Every end of a bin, wherever bins start, is the end of a cell.
        cells = [STARTS * (first + 1) - start for start, (first, _) in enumerate(seen)]
        lowest = min(cells)
        highest = max(STARTS * last - start for start, (_, last) in enumerate(seen))
        below = member.cdf(
            np.ldexp((self.cells.first + np.arange(lowest, highest + 1)).astype(np.float64), -self.cells.exponent)
        )
        found, unseen = [], 0.0
        for cell, (first, last) in zip(cells, seen, strict=True):
            inner = below[cell - lowest :: STARTS][: last - first]
            masses = np.maximum(np.diff(np.concatenate([[0.0], inner, [1.0]])), 0.0)
            best = int(np.argmax(masses))
            # The last one stands for all other bins, which hold at most this much.
            chances = self._beating(np.append(masses, 2 * UNSEEN), float(masses[best]), n)
            chances[best] = 1.0
            unseen += min((self.bins - len(masses)) * float(chances[-1]), 1.0)
            found.append(chances[:-1])
        chances = np.concatenate(found)
        large = chances > least
        return _Misses(unseen, float(chances[~large].sum()), chances[large])

    def _beating(self, masses: Floats, best: float, n: int) -> Floats:
        """At most how likely bins of these probabilities have a larger noisy count than one of probability best."""
        s, log_mgf = self._tilts
        ahead = np.maximum(masses[:, None] * np.expm1(s) + best * np.expm1(-s), -1 + 1e-15)
        found: Floats = np.exp(np.minimum(n * np.log1p(ahead) + 2 * log_mgf, 0.0).min(axis=1))
        return found

    def second_level(self, asked: OneParameter, n: int, level: float) -> float | None:
        """The confidence the second step needs for both together to have the level; None where none is enough.

        Where in a cell the true value lies matters, and which cell hardly does: the worst of many places counts.
        """
        middle, cell, most = sum(asked.inner) / 2, self.length / STARTS, (1 - level) * (1 - 1e-4)
        low, high = (1 - level) / 2, 1 - level
        places: list[_Misses] = []
        # A few far from each other come first: they often suffice to see that nothing is enough.
        for place in sorted(range(PLACES), key=lambda place: place % (PLACES // 4)):
            here = self._misses(asked, middle + cell * place / PLACES, n, low)
            if any(one.unseen > STARTS * (1 - level) / 4 or one.at(low) > most for one in here):
                return None
            places += here
        # Invariant: `low` is a level of misses that is small enough, `high` is not.
        for _ in range(11):
            share = (low + high) / 2
            low, high = (share, high) if max(one.at(share) for one in places) <= most else (low, share)
        return 1 - low if low > (1 - level) / 2 else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"cells": self.cells.to_dict(), "noise": self.noise.to_dict()}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Location:
        """What :meth:`to_dict` wrote."""
        cells, noise = cells_from_dict(document["cells"]), noise_from_dict(document["noise"])
        if not isinstance(cells, DyadicCells) or not noise.total_leaves or cells.size > STARTS * MOST_BINS:
            raise InvalidDocument(
                "The first step of an estimate counts dyadic cells, with noise on every whole number."
            )
        return cls(cells, noise)
