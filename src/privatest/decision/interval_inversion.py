r"""Intervals for a parameter from a noisy total: all values for which the total is not too extreme.

Both tails of the noisy total, :math:`\Pr_\theta[T \le t]` and :math:`\Pr_\theta[T \ge t]`, are known exactly for every
:math:`\theta`. The interval holds every :math:`\theta` for which neither is at most (1 - confidence)/2. Each tail
excludes the true :math:`\theta` with at most that probability, whatever :math:`\theta` is, which proves the coverage.
If other parameters are known only roughly, both tails are the largest over their ranges.

An end is found as a root of the tail and then *certified*: the envelope of all members beyond it, a law at least as
extreme as each of theirs, is rejected too. If that fails because the tail is not monotone, the range beyond the end is
halved until each part is rejected or belongs to the interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from privatest.errors import InvalidInput
from privatest.hypotheses.distribution import Side
from privatest.laws import Curves, NoisyTotal
from privatest.numbers import Floats
from privatest.privacy import Noise
from privatest.scores import Score
from privatest.scores.score_law import every_score, member_law, range_law

if TYPE_CHECKING:
    from privatest.hypotheses.one_parameter import OneParameter


HALF = Fraction(1, 2)
SIDES: tuple[Side, Side] = ("low", "high")
FINE = 1e-9
"""The accuracy of an interval's ends, as a share of the range."""
MISCOUNTED = 0.05
"""The share of an interval's error probability that is spent on a wrong number of records, if that is not public."""
MOST_NUMBERS = 256
"""The most numbers of records that are inverted one by one; of more, several are bounded together."""
UNLIKELY = 1e-4
"""The share of a tail's level that the records in which such numbers differ may add to it."""
MOST_LOOKS = 2_000
"""The most tails that are computed where a tail is not monotone in the parameter."""
COMPARED = 33
"""The number of values of the parameter at which a score's laws are compared."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)
FEW = np.cos(np.pi * (np.arange(8) + 0.5) / 8)
"""Chebyshev nodes on [-1, 1] at which the curve of accepted totals is computed."""


@dataclass(frozen=True, eq=False)
class Inversion:
    """The law of a noisy total under every member of a family with one unknown parameter.

    Attributes:
        family: the parameter, its range, and the other parameters.
        score, noise, n: the total is the sum of n records' scores, plus noise.
        scale, shift: each record adds ``scale * s - shift``.
        count_noise: the noise on the number of records, if that is not public; n is then the expected number.
        more: tails bound those of every number of records from n to n + ``more``.
        chance: the largest probability that these further records move a total by more than :meth:`_moved` says.
    """

    family: OneParameter
    score: Score
    noise: Noise
    n: int
    scale: int = 1
    shift: int = 0
    count_noise: Noise | None = None
    more: int = 0
    chance: float = 0.0

    def counted(self, count: Fraction | None) -> Inversion:
        """Return the inversion for the number of records that a noisy number suggests."""
        return self if count is None else replace(self, n=max(round(count), 1), count_noise=None)

    def _numbers(self, count: Fraction | None, miss: float, level: float) -> list[Inversion]:
        """Return inversions that cover every number of records that a noisy number leaves possible.

        If more than ``MOST_NUMBERS`` are possible, each inversion covers several numbers. How many it covers depends on
        the noise alone, not on what was drawn.

        Args:
            count: the noisy number of records; None if the number is public.
            miss: the largest probability that the true number is not covered.
            level: the level that tails are compared with.
        """
        if count is None or self.count_noise is None:
            return [self]
        away = self.off_by(miss)
        numbers = range(max(math.ceil(count - away), 1), max(math.floor(count + away), 1) + 1)
        each = self._together(away)
        return [
            replace(self, n=n, count_noise=None, more=min(each, numbers[-1] - n + 1) - 1, chance=UNLIKELY * level)
            for n in numbers[::each]
        ]

    def _together(self, away: int) -> int:
        """Return how many numbers of records one inversion covers, if a noisy number is off by at most ``away``."""
        return -(-(2 * away + 1) // MOST_NUMBERS)

    def off_by(self, miss: float) -> int:
        """Return the distance from the true number of records that a noisy number exceeds with probability ``miss``."""
        assert self.count_noise is not None
        return max(self.count_noise.beyond(miss / 2), 1)

    def _tails(self, confidence: float) -> tuple[float, float]:
        """Return the error probabilities of an interval: on each side, and about the number of records."""
        counting = MISCOUNTED * (1 - confidence) if self.count_noise is not None else 0.0
        return (1 - confidence - counting) / 2, counting

    def _total(self, law: Floats) -> NoisyTotal:
        return NoisyTotal(self.scale * every_score(self.score) - self.shift, law, self.n, self.noise)

    def total(self, value: float) -> NoisyTotal:
        """Return the law of the noisy total for a value of the parameter, with the other parameters mid-range."""
        if self.family.is_share:
            return self._total(range_law(self.score, self.family, value, value, "low"))
        return self._total(member_law(self.score, self.family.member(value)))

    @cached_property
    def rising(self) -> bool:
        """Whether totals rise with the parameter."""
        low, high = (range_law(self.score, self.family, end, end, "low") for end in self.family.inner)
        scores = every_score(self.score)
        return float(high @ scores) > float(low @ scores)

    def at_most(self, low: float, high: float, noisy: Fraction) -> float:
        """Return the largest probability of a total up to ``noisy`` with the parameter in [low, high]."""
        law = range_law(self.score, self.family, low, high, "low")
        return self._with_more(self._total(law).cdf(noisy + self._moved(law, -1)))

    def at_least(self, low: float, high: float, noisy: Fraction) -> float:
        """Return the largest probability of a total of ``noisy`` or more with the parameter in [low, high]."""
        law = range_law(self.score, self.family, low, high, "high")
        return self._with_more(self._total(law).sf(noisy - HALF - self._moved(law, 1)))

    def _with_more(self, tail: float) -> float:
        return min(tail + self.chance, 1.0) if self.more else tail

    def _moved(self, law: Floats, side: int) -> int:
        r"""Return how far up (``side`` 1) or down (-1) ``more`` further records can move a total.

        Further than :math:`\pm m \mu + (b - a) \sqrt{m \log(1/\text{chance})/2}` m records of mean :math:`\mu` in
        [a, b] move it with probability ``chance`` at most (Hoeffding 1963), and further than m times the end never.
        """
        if not self.more:
            return 0
        moves = side * (self.scale * every_score(self.score) - self.shift)
        drift, most = max(float(law @ moves), 0.0), max(int(moves.max()), 0)
        spread = float(moves.max() - moves.min()) * math.sqrt(self.more * -math.log(self.chance) / 2)
        return min(math.ceil(self.more * drift + spread), self.more * most)

    def _too_large(self, noisy: Fraction) -> Callable[[float, float], float]:
        """Return the tail probability that is small if the parameter is too large for this total."""
        tail = self.at_most if self.rising else self.at_least
        return lambda low, high: tail(low, high, noisy)

    def _too_small(self, noisy: Fraction) -> Callable[[float, float], float]:
        """Return the tail probability that is small if the parameter is too small for this total."""
        tail = self.at_least if self.rising else self.at_most
        return lambda low, high: tail(low, high, noisy)

    def _mean(self, value: float) -> float:
        """Return the mean of the noisy total for a value of the parameter."""
        return self.total(value).mean

    def _rough(self, noisy: Fraction) -> tuple[float, float]:
        """A first estimate: the value of the parameter whose mean total is this one, and about its standard error."""
        low, high = self.family.inner
        level, sign = float(noisy), 1 if self.rising else -1
        value = low
        if sign * (self._mean(high) - level) <= 0:
            value = high
        elif sign * (self._mean(low) - level) < 0:
            value = float(brentq(lambda at: self._mean(at) - level, low, high, xtol=1e-7 * (high - low), rtol=1e-9))
        return value, self.spread(value)

    def spread(self, value: float) -> float:
        """Return the approximate standard deviation of the estimate for a value of the parameter."""
        low, high = self.family.inner
        step = 1e-5 * (high - low)
        before, after = max(value - step, low), min(value + step, high)
        slope = abs(self._mean(after) - self._mean(before)) / (after - before)
        return min(self.total(value).deviation / slope if slope > 0 else math.inf, high - low)

    def interval(self, noisy: Fraction, confidence: float, count: Fraction | None = None) -> tuple[float, float]:
        """Return the interval of all values of the parameter that a noisy total does not reject.

        If no value fits, it is the end of the range that comes nearest.

        Guarantees: whatever the true value of the parameter in its range and of the other parameters in theirs, the
        interval of a run holds it with a probability of at least ``confidence``.
        """
        half, counting = self._tails(confidence)
        numbers = self._numbers(count, counting, half)
        low, high = self.family.inner
        start, step = numbers[len(numbers) // 2]._rough(noisy)
        top = _last_accepted_by_any([one._too_large(noisy) for one in numbers], (low, high), half, start, step)
        mirrored = [_mirrored(one._too_small(noisy)) for one in numbers]
        bottom = _last_accepted_by_any(mirrored, (-high, -low), half, -start, step)
        top, bottom = low if top is None else top, high if bottom is None else -bottom
        bottom, top = min(bottom, top), max(bottom, top)
        # An end that is not a member of the family stands for all values beyond the last member computed.
        return self.family.low if bottom == low else bottom, self.family.high if top == high else top

    def estimate(self, noisy: Fraction) -> float:
        """Return the median-unbiased estimate: the value for which a total is at most this one with probability 1/2."""
        sign = 1 if self.rising else -1

        def above_half(value: float) -> float:
            return sign * (self.total(value).cdf(noisy) - 0.5)

        low, high = self.family.inner
        start, step = self._rough(noisy)
        # Invariant: totals rise with the parameter, so `above_half` falls; it is >= 0 at `least`, and <= 0 at `most`.
        least = most = start
        while above_half(least) < 0:
            if least == low:
                return self.family.low
            least, step = max(least - step, low), 2 * step
        while above_half(most) > 0:
            if most == high:
                return self.family.high
            most, step = min(most + step, high), 2 * step
        if least == most:
            return least
        return float(brentq(above_half, least, most, xtol=FINE * (high - low), rtol=1e-12))

    def beyond(self, noisy: Fraction, extreme: float, count: Fraction | None = None) -> str:
        """Return "below" or "above" if no value of the range fits a total and it lies on that side; else ""."""
        low, high = self.family.inner
        numbers = self._numbers(count, extreme / 2, extreme / 2)
        numbers = [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
        if max(2 * one._too_large(noisy)(low, low) for one in numbers) < extreme:
            return "below"
        return "above" if max(2 * one._too_small(noisy)(high, high) for one in numbers) < extreme else ""

    def accepted(
        self, value: float, confidence: float, cutoff: Callable[[Curves, float], Fraction] = Curves.cutoff_for_alpha
    ) -> tuple[Fraction, Fraction]:
        """The totals for which the interval holds a value: above the first number, up to and including the second.

        Args:
            value: the value of the parameter.
            confidence: the confidence of the interval.
            cutoff: the method of the curves that finds an end, exactly or approximately.
        """
        half, counting = self._tails(confidence)
        if self.count_noise is not None:  # the ends and the middle of the possible numbers of records
            away = self.off_by(counting)
            more, chance = self._together(away) - 1, UNLIKELY * half
            about = [
                replace(self, n=max(self.n + d, 1), count_noise=None, more=more, chance=chance)
                for d in (-away, 0, away - more)
            ]
            ends = [one.accepted(value, 1 - 2 * half, cutoff) for one in about]
            return min(least for least, _ in ends), max(most for _, most in ends)
        lows, highs = (range_law(self.score, self.family, value, value, side) for side in SIDES)
        down, up = self._moved(lows, -1), self._moved(highs, 1)
        support = self.scale * every_score(self.score) - self.shift
        # Scores that no record has, such as those of odd records, may lie beside the lattice of all others.
        low, high = lows > 0, highs[::-1] > 0
        lows, highs = lows[low], highs[::-1][high]
        least = cutoff(Curves(support[low], lows, lows, self.n, self.noise), half)
        most = cutoff(Curves(-support[::-1][high], highs, highs, self.n, self.noise), half)
        return least - down, up - most

    def coverage(self, value: float, confidence: float) -> float:
        """The probability that the interval holds the true value; a lower bound if other parameters have ranges."""
        half, counting = self._tails(confidence)
        least, most = replace(self, count_noise=None).accepted(value, 1 - 2 * half)
        # If no value of the range fits a total, the interval is the nearest end of the range, and so holds that end.
        lowest, highest = self.family.inner if self.rising else self.family.inner[::-1]
        below = 0.0 if value == lowest else self.at_most(value, value, least)
        return 1.0 - counting - below - (0.0 if value == highest else self.at_least(value, value, most + HALF))

    def expected_length(self, value: float, confidence: float) -> float:
        """Return the mean length of the interval for a value of the parameter, to three digits or more.

        By Pratt's identity it is the integral, over all values, of the probability that the interval holds them. The
        totals between which it holds a value are smooth functions of the value: a few are computed, the others are
        interpolated.
        """
        totals, length = self.total(value), 0.0
        for end in self.typical(value, confidence, 5.0):
            if end != value:
                places = value + (end - value) * (1 + FEW) / 2
                ends = [self.accepted(place, confidence, Curves.about_cutoff_for_alpha) for place in places.tolist()]
                base = ends[len(ends) // 2][0]
                curves = np.array([[float(least - base), float(most - base)] for least, most in ends])
                fitted = np.polynomial.chebyshev.chebfit(FEW, curves, len(FEW) - 1)
                least, most = np.polynomial.chebyshev.chebval(NODES, fitted)
                length += abs(end - value) / 2 * float(WEIGHTS @ _held(totals, base, least, most))
        return length

    def typical(self, value: float, confidence: float, times: float) -> tuple[float, float]:
        """The interval for a middle total under a value of the parameter, stretched ``times`` times in the range."""
        least, most = self.accepted(value, confidence, Curves.about_cutoff_for_alpha)
        middle = _on_lattice((least + most) / 2, self.noise)
        ends = replace(self, count_noise=None).interval(middle, confidence)
        low, high = self.family.inner
        stretched = [value + times * (end - value) for end in ends]
        return max(min(stretched[0], value), low), min(max(stretched[1], value), high)

    def check_monotone(self, working: str) -> None:
        """Raise InvalidInput for a family whose totals are not monotone in the parameter.

        Args:
            working: the families that are, for the message.
        """
        values = self.family.spaced(COMPARED)
        below = [range_law(self.score, self.family, value, value, "low").cumsum() for value in values]
        steps = [(one - other) if self.rising else (other - one) for one, other in itertools.pairwise(below)]
        if min(float(step.min()) for step in steps) < -1e-9:
            raise InvalidInput(
                f"family={self.family.text!r} has no score that moves one way as {self.family.name} grows, so no "
                f"interval can be computed from its sum. Use {working}."
            )


def _held(totals: NoisyTotal, base: Fraction, least: Floats, most: Floats) -> Floats:
    """Return the probability of a total between base + least and base + most, for each pair of the two arrays."""
    edges = [base + _between_totals(each) for each in np.concatenate([least, most]).tolist()]
    order = sorted(range(len(edges)), key=edges.__getitem__)
    below = np.zeros(len(edges))
    below[order] = totals.cdfs([edges[i] for i in order])
    held: Floats = np.maximum(below[len(least) :] - below[: len(least)], 0.0)
    return held


def _mirrored(tail: Callable[[float, float], float]) -> Callable[[float, float], float]:
    """Return the tail as a function of the negated parameter."""
    return lambda low, high: tail(-high, -low)


def _last_accepted_by_any(
    tails: list[Callable[[float, float], float]], ends: tuple[float, float], level: float, start: float, step: float
) -> float | None:
    """Return the last value that one of several tails accepts (:func:`_last_accepted`); beyond it, all tails reject."""
    last: float | None = None
    # The first, the last and the middle tail are tried first. The others seldom move the end.
    order = dict.fromkeys([0, len(tails) - 1, len(tails) // 2, *range(len(tails))])
    for tail in (tails[i] for i in order):
        if last is None:
            last = _last_accepted(tail, *ends, level, start, step)
        elif last < ends[1] and tail(last, ends[1]) > level:
            last = _last_accepted(tail, last, ends[1], level, last, step)
    return last


def _last_accepted(
    tail: Callable[[float, float], float], low: float, high: float, level: float, start: float, step: float
) -> float | None:
    """Return the largest value whose tail is above the level, or slightly more; None if all values are rejected.

    ``tail(a, b)`` is the largest tail over [a, b].

    Guarantees: all values beyond the result are rejected.
    """
    fine, inside, outside = FINE * (high - low), start, start
    # Invariant: the tail at `inside` is above the level, at `outside` it is not, once both loops are over.
    while tail(inside, inside) <= level:
        if inside == low:
            return (
                None
                if tail(low, high) <= level
                else _last_by_halving(tail, low, high, level, fine, iter(range(MOST_LOOKS)))
            )
        inside, outside, step = max(inside - step, low), inside, 2 * step
    step = max(step, fine)
    while outside <= inside or tail(outside, outside) > level:
        if outside == high:
            return high
        inside, outside, step = max(inside, outside), min(max(inside, outside) + step, high), 2 * step
    root = float(brentq(lambda value: normal_gap(tail(value, value), level), inside, outside, xtol=fine, rtol=1e-12))
    for away in (fine, 8 * fine, 64 * fine):
        end = min(root + away, high)
        if end == high or tail(end, high) <= level:
            return end
    return _last_by_halving(tail, low, high, level, fine, iter(range(MOST_LOOKS)))


def normal_gap(tail: float, level: float) -> float:
    """A number that is above 0 if the tail is above the level, and nearly linear in the parameter, unlike the tail."""
    return float(ndtri(min(max(tail, 1e-300), 1 - 1e-16)) - ndtri(level))


def _on_lattice(total: Fraction, noise: Noise) -> Fraction:
    """Return the value of a noisy total just below a number."""
    return math.floor(total) + noise.offset


def _between_totals(number: float) -> Fraction:
    """Return a number halfway between two values of a noisy total, near this one."""
    return math.floor(number) + Fraction(1, 4)


def _last_by_halving(
    tail: Callable[[float, float], float], low: float, high: float, level: float, fine: float, looks: Iterator[int]
) -> float | None:
    """Return the result of :func:`_last_accepted` by halving [low, high], for tails that are not monotone.

    Once ``looks`` is exhausted, all remaining values count as accepted.
    """
    if next(looks, None) is None:
        return high
    if tail(low, high) <= level:
        return None
    if high - low <= fine:
        return high
    middle = (low + high) / 2
    last = _last_by_halving(tail, middle, high, level, fine, looks)
    return last if last is not None else _last_by_halving(tail, low, middle, level, fine, looks)
