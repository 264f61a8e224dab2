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
from privatest.privacy import Noise, Notion, Source, noise_from_dict
from privatest.privacy.asked import counts_noise
from privatest.privacy.draws import draw_many
from privatest.privacy.noise import Neighbourhood
from privatest.scores.score import DyadicCells, cells_from_dict

__all__ = ["MOST_BINS", "STARTS", "Location"]

PLACES = 64
"""At so many places of a cell the coverage of two steps is looked at."""
STARTS = 8
"""At how many places the bins can start, each as likely."""
MOST_BINS = 1 << 19
TILTS = 24
UNSEEN = 1e-12
"""Bins that lie beyond all but so much of the mass on either side are as good as empty."""


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

    def chosen(self, counts: list[int], source: Source) -> tuple[int, int]:
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
        box = family.box(value, value)
        members = [box.member(corner) for corner in box.corners()]
        return max(self._misses(member, n, level) for member in members)

    def _misses(self, member: Numbers, n: int, level: float) -> float:
        total = 0.0
        few = member.ppf(np.array([UNSEEN, 1 - UNSEEN]))
        for start in range(STARTS):
            first, last = self.place_of(start, few).tolist()
            inner = member.cdf(self.begins(start, np.arange(first + 1, last + 1)))
            masses = np.maximum(np.diff(np.concatenate([[0.0], inner, [1.0]])), 0.0)
            best = int(np.argmax(masses))
            chances = self._beating(masses, float(masses[best]), n)
            chances[best] = 1.0
            # All other bins together hold at most this much.
            others = (self.bins - len(masses)) * float(self._beating(np.array([2 * UNSEEN]), float(masses[best]), n)[0])
            total += float(np.minimum(chances, level).sum()) + min(others, 1.0)
        return total / STARTS

    def _beating(self, masses: Floats, best: float, n: int) -> Floats:
        """At most how likely bins of these probabilities have a larger noisy count than one of probability best."""
        s, log_mgf = self._tilts
        ahead = np.maximum(masses[:, None] * np.expm1(s) + best * np.expm1(-s), -1 + 1e-15)
        found: Floats = np.exp(np.minimum(n * np.log1p(ahead) + 2 * log_mgf, 0.0)).min(axis=1)
        return found

    def second_level(self, asked: OneParameter, n: int, level: float) -> float | None:
        """The confidence the second step needs for both together to have the level; None where none is enough.

        Where in a cell the true value lies matters, and which cell hardly does. The level is found for a few places,
        and then for the worst of many, until that is among the few.
        """
        middle, cell, most = sum(asked.inner) / 2, self.length / STARTS, (1 - level) * (1 - 1e-4)
        fine = [middle + cell * place / PLACES for place in range(PLACES)]
        values = fine[:: PLACES // 4]

        def misses(share: float, places: list[float]) -> list[float]:
            return [self.misses(asked, value, n, share) for value in places]

        if max(misses(0.0, values)) > (1 - level) / 4:
            return None
        while True:
            # Invariant: `low` is a level of misses that is small enough, `high` is not.
            low, high = 0.0, 1 - level
            for _ in range(12):
                share = (low + high) / 2
                low, high = (share, high) if max(misses(share, values)) <= most else (low, share)
            found = misses(low, fine)
            worst = fine[int(np.argmax(found))]
            if max(found) <= most or worst in values:
                return 1 - low if low > (1 - level) / 2 else None
            values = [*values, worst]

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
