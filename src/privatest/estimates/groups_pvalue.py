r"""The p-value of two groups over the common rate, the interval of their difference, and the power of the test.

The groups are different people, so each group's noisy count costs epsilon once, and both together cost no more. With
:math:`\lambda` the rate of both groups together and :math:`\Delta` the difference of the two rates, the difference of
the noisy rates is stochastically increasing in :math:`\Delta`. :math:`\lambda` is not known: a difference is rejected
by the largest tail over all :math:`\lambda` that the noisy total of both groups does not reject, plus the probability g
that the true one is not among these (Berger and Boos 1994). That holds for every rate and every n, and costs g =
1/10,000.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from privatest.decision.interval_inversion import normal_gap
from privatest.laws.block_laws import Counted, NoisyCount, upper_tail
from privatest.numbers import Floats, Integers, clipped

ALTERNATIVES = ("two-sided", "greater", "less")
LOOKED_AT = 7
"""Number of common rates at which a tail is computed before its maximum is searched for between two of them."""
CLOSE = 1e-4
"""The relative accuracy of a largest tail."""
LEFT = 1e-8
"""The absolute amount by which a largest tail may be too large besides."""
OVERSAMPLED = 256
"""Points of a grid for each degree of a polynomial: 1/cos(pi/256) is 1 + CLOSE at most."""
MOST_NODES = 384
CORNERS = 64
RADII = 1 + np.geomspace(1e-3, 60.0, 64)
TABLED = 17
"""Number of common rates for which the power looks up the required statistic."""
FINE = 1e-6
STEP = 1e-3
"""The accuracy of a required statistic, which is rounded to the safe side."""


@dataclass(frozen=True, eq=False)
class TwoCounts:
    """The laws of two noisy counts at every pair of rates, with p-value, interval and power of their comparison.

    Attributes:
        control, treatment: the noisy counts, in the same units.
        alternative: "two-sided", "greater" (the treatment's rate is) or "less".
        noise_variances: the variances of the two noises, in squared records.
        ignored: g, the probability with which the true common rate may be left out.
    """

    control: NoisyCount
    treatment: NoisyCount
    alternative: str = "two-sided"
    noise_variances: tuple[float, float] = (0.0, 0.0)
    ignored: float = 1e-4

    @cached_property
    def swapped(self) -> TwoCounts:
        """The comparison with the roles of the groups exchanged."""
        other = {"greater": "less", "less": "greater"}.get(self.alternative, self.alternative)
        return TwoCounts(self.treatment, self.control, other, self.noise_variances[::-1], self.ignored)

    @property
    def _sides(self) -> int:
        return 2 if self.alternative == "two-sided" else 1

    @property
    def _looks_above(self) -> bool:
        """Whether large differences speak against the null."""
        return self.alternative != "less"

    @property
    def _looks_below(self) -> bool:
        return self.alternative != "greater"

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Weights of the two counts in the difference of the rates, times both numbers of records."""
        return -self.treatment.n, self.control.n

    @property
    def _slack(self) -> int:
        """The largest error of a difference that comes from rounding noise to the lattice."""
        return self.control.noise.slack * self.treatment.n + self.treatment.noise.slack * self.control.n

    @property
    def _unit(self) -> int:
        """A difference of 1, in these units."""
        return self.control.n * self.treatment.n * self.control.noise.fine

    def rates(self, common: float, difference: float) -> tuple[float, float]:
        """The rates of control and treatment, within 0 and 1, given their common rate and their difference."""
        a, b = self.control.n, self.treatment.n
        low, high = common - difference * b / (a + b), common + difference * a / (a + b)
        return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)

    def commons(self, difference: float) -> tuple[float, float]:
        """The common rates between which both rates lie in [0, 1]."""
        a, b = self.control.n, self.treatment.n
        above, below = difference * a / (a + b), difference * b / (a + b)
        return max(below, -above, 0.0), min(1 - above, 1 + below, 1.0)

    def _laws(self, common: float, difference: float) -> tuple[Counted, Counted]:
        first, second = self.rates(common, difference)
        return self.control.law(first), self.treatment.law(second)

    def left(self, both: int, difference: float) -> tuple[float, float]:
        """The interval of common rates that a noisy total of both groups does not reject; if there is none, a point."""
        low, high = self.commons(difference)
        slack = self.control.noise.slack + self.treatment.noise.slack

        def above(common: float) -> float:
            return normal_gap(upper_tail(*self._laws(common, difference), (1, 1), both - slack), self.ignored / 2)

        def below(common: float) -> float:
            return normal_gap(
                1 - upper_tail(*self._laws(common, difference), (1, 1), both + slack + 1), self.ignored / 2
            )

        records = self.control.n + self.treatment.n
        start = min(max(both / (records * self.control.noise.fine), low), high)
        spread = math.sqrt(start * (1 - start) / records + sum(self.noise_variances) / records**2) + 1 / records
        least = -_crossing(lambda common: above(-common), -start, -low, 4 * spread)
        most = _crossing(below, start, high, 4 * spread)
        return max(least - FINE, low), min(most + FINE, high)

    def _largest(self, tail: Callable[[float], float], ends: tuple[float, float], difference: float = 0.0) -> float:
        r"""An upper bound on a tail at every common rate between two ends, at most ``CLOSE`` of it and ``LEFT`` above.

        A tail is a polynomial :math:`\sum_{xy} \Pr_\lambda[x, y]\, h(x, y)` in the common rate, with h in [0, 1] what
        the noise does. So it is interpolated at Chebyshev's points, and what the interpolation leaves is bounded by the
        polynomial's size on an ellipse (:meth:`_degree`). Between points of a fine grid a polynomial of degree d in the
        cosine exceeds the grid's largest value by at most a factor (Ehlich and Zeller 1964).
        """
        low, high = ends
        degree = self._degree(ends, difference) if low < high else 0
        if degree == 0:
            return tail(low)
        if degree > MOST_NODES:
            return self._largest_of_cells(tail, ends)
        angles = math.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)
        places = clipped((low + high) / 2 + (high - low) / 2 * np.cos(angles), low, high)
        values = np.array([tail(place) for place in places.tolist()])
        size = OVERSAMPLED * degree
        waves = np.exp(-0.5j * math.pi * np.arange(degree + 1) / (degree + 1))
        coefficients = (np.fft.fft(values, 2 * (degree + 1))[: degree + 1] * waves).real * size / (degree + 1)
        return float(np.fft.irfft(coefficients, size).max()) / math.cos(math.pi / OVERSAMPLED) + LEFT

    def _degree(self, ends: tuple[float, float], difference: float) -> int:
        r"""The degree from which on a polynomial through Chebyshev's points is within ``LEFT`` of every tail.

        Of :math:`|f| \le M` on the ellipse of axes :math:`(\rho \pm 1/\rho)/2` it leaves
        :math:`4 M \rho^{-d}/(\rho - 1)` (Trefethen, Approximation Theory and Approximation Practice, theorem 8.2).
        At complex rates the binomials' terms add up to :math:`(|a| + |1 - a|)^n` for the control and the same for the
        treatment, at most the mean of both bases to the power of both n; that mean is convex, so it is largest at a
        corner of a polygon around the ellipse.
        """
        a, b = self.control.n, self.treatment.n
        corners = np.exp(2j * math.pi * np.arange(CORNERS) / CORNERS) / math.cos(math.pi / CORNERS)
        rho = RADII[:, None]
        around = (ends[0] + ends[1]) / 2 + (ends[1] - ends[0]) / 4 * (
            (rho + 1 / rho) * corners.real + 1j * (rho - 1 / rho) * corners.imag
        )
        first, second = around - difference * b / (a + b), around + difference * a / (a + b)
        excess = sum(n * (np.abs(rate) + np.abs(1 - rate) - 1) for n, rate in ((a, first), (b, second))) / (a + b)
        logs = (a + b) * np.log1p(np.maximum(excess, 0.0).max(axis=1))
        return math.ceil(float(((logs + np.log(4 / (LEFT * (RADII - 1)))) / np.log(RADII)).min()))

    def _largest_of_cells(self, tail: Callable[[float], float], ends: tuple[float, float]) -> float:
        """Do what :meth:`_largest` does if the noise is so wide that this takes fewer points; LEFT does not hold then.

        Between neighbouring points a function exceeds the larger of both by at most an eighth of their distance's
        square times its second derivative. That of a tail is a mean of second differences of h, which are at most those
        of the noise, added up.
        """
        bends = 0.0
        for one, other in ((self.control, self.treatment), (self.treatment, self.control)):
            bends += one.n**2 * one.noise.bend + 2 * one.n * one.noise.slope * other.n * other.noise.slope
        values = [tail(place) for place in np.linspace(*ends, MOST_NODES + 1).tolist()]
        return max(values) + ((ends[1] - ends[0]) / MOST_NODES) ** 2 / 8 * bends

    def _about_largest(self, tail: Callable[[float], float], ends: tuple[float, float]) -> float:
        """Approximate the largest tail over the common rates between two ends, to search for an end of an interval."""
        grid = np.sin(np.linspace(math.asin(math.sqrt(ends[0])), math.asin(math.sqrt(ends[1])), LOOKED_AT)) ** 2
        values = [tail(float(common)) for common in grid]
        best = int(np.argmax(values))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
        for _ in range(12):  # golden section
            a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            one, other = tail(a), tail(b)
            values += [one, other]
            low, high = (low, b) if one > other else (a, high)
            if max(values) - min(one, other) < CLOSE * max(values):
                break
        return max(values)

    # The test: differences in units of their own standard error ------------------------------------------------------
    # Counts below 0 or above all, which noise makes, count as these ends: only then does the statistic grow with the
    # treatment's count, whatever the control's, so that all counts from some on are as extreme.

    def _error(self, both: Floats) -> Floats:
        """The approximate standard error of the difference of noisy rates, given a total of both groups."""
        a, b, fine = self.control.n, self.treatment.n, self.control.noise.fine
        common = clipped(both / ((a + b) * fine), 0.0, 1.0)
        noise = self.noise_variances[0] / a**2 + self.noise_variances[1] / b**2
        variance = common * (1 - common) * (1 / a + 1 / b) + noise + 1 / (a * b * (a + b))
        return self._unit * np.sqrt(variance)

    def apart(self, counts: tuple[int, int]) -> int:
        """The difference of the noisy rates, times both numbers and the fineness."""
        return self._weights[0] * counts[0] + self._weights[1] * counts[1]

    def _within(self, count: NoisyCount, values: Integers) -> Integers:
        """The noisy counts, clipped to the numbers between 0 and all records."""
        return clipped(values, 0, count.n * count.noise.fine)

    def statistics(self, control: Integers, treatment: Integers) -> Floats:
        """The differences of the noisy rates over about their standard errors, increasing in the treatment's count."""
        one, other = self._within(self.control, control), self._within(self.treatment, treatment)
        apart = (self._weights[0] * one + self._weights[1] * other).astype(np.float64)
        return apart / self._error((one + other).astype(np.float64))

    def statistic(self, counts: tuple[int, int]) -> float:
        """The statistic of two noisy counts."""
        return float(self.statistics(np.array([counts[0]]), np.array([counts[1]]))[0])

    def _needed(self, values: Integers, first: int, end: int, least: Callable[[Floats], Floats]) -> Integers:
        """For each count of the control, the smallest of the treatment, ``first`` to ``end``, that is as extreme.

        There the statistic reaches the value that ``least`` returns for the total of both.
        """
        low = np.full(len(values), first - 1, dtype=np.int64)
        high = np.full(len(values), end, dtype=np.int64)
        # Invariant: at `low` the statistic is too small, at `high` large enough; it grows with the treatment's count.
        while np.any(high - low > 1):
            middle = (low + high) // 2
            # With slack, what may have been rounded counts as more extreme: the control less, the treatment more.
            seen = self.statistics(values - self.control.noise.slack, middle + self.treatment.noise.slack)
            fine = seen >= least((values + middle).astype(np.float64))
            low, high = np.where(fine, low, middle), np.where(fine, middle, high)
        return high

    def _from(self, least: float, ends: tuple[float, float]) -> Callable[[float], float]:
        """The probability of a statistic of at least ``least``, as a function of the common rate between two ends.

        Which counts are as extreme does not depend on the rate, and windows of counts rise with it: one table serves.
        """
        (one, other), (last_one, last_other) = (self._laws(end, 0.0) for end in ends)
        values = np.arange(one.first, last_one.end, dtype=np.int64)
        needed = self._needed(values, other.first, last_other.end, lambda both: np.full(len(both), least))

        def tail(common: float) -> float:
            here, there = self._laws(common, 0.0)
            return float(here.masses @ there.at_least(needed[here.first - one.first :][: len(here.masses)]))

        return tail

    def pvalue(self, counts: tuple[int, int]) -> float:
        """A bound on the probability of a statistic at least as extreme, whatever the common rate is."""
        ends, tails = self.left(sum(counts), 0.0), []
        sides = [(self, counts, self._looks_above), (self.swapped, counts[::-1], self._looks_below)]
        for side, seen, looks in sides:
            if looks:
                least = side.statistic(seen)
                least -= 1e-12 * abs(least)
                tails.append(side._largest(side._from(least, ends), ends))
        return min(self._sides * min(tails) + self.ignored, 1.0)

    # The interval: differences that are not rejected -----------------------------------------------------------------

    def interval(self, counts: tuple[int, int], confidence: float) -> tuple[float, float]:
        """The interval of all differences that are not rejected; for a one-sided question one end is -1 or 1."""
        low = self._lower_end(counts, confidence) if self._looks_above else -1.0
        high = -self.swapped._lower_end(counts[::-1], confidence) if self._looks_below else 1.0
        return low, high

    def _lower_end(self, counts: tuple[int, int], confidence: float) -> float:
        """The smallest difference under which the observed one, or a larger one, is not too unlikely."""
        level = (1 - confidence - self.ignored) / self._sides
        apart, both = self.apart(counts), sum(counts)
        start = min(max(apart / self._unit, -1.0), 1.0)
        step = float(self._error(np.array([float(both)]))[0]) / self._unit

        def tails(difference: float) -> tuple[Callable[[float], float], tuple[float, float]]:
            return partial(self._reached, difference=difference, apart=apart), self.left(both, difference)

        def gap(difference: float) -> float:
            return normal_gap(self._about_largest(*tails(-difference)), level * (1 - 5 * CLOSE))

        end, away = -_crossing(gap, -start, 1.0, 2.5 * step) - 2 * FINE, max(step / 1000, FINE)
        # Invariant: whatever was overlooked so far, the certified tail at the end is what rejects it.
        while end > -1 and self._largest(*tails(end), end) > level:
            end, away = end - away, 2 * away
        return max(end, -1.0)

    def _reached(self, common: float, difference: float, apart: int) -> float:
        return upper_tail(*self._laws(common, difference), self._weights, apart - self._slack)

    # Power: what statistic a total of both groups demands -----------------------------------------------------------

    def power(self, rates: tuple[float, float], alpha: float) -> float:
        """The probability of a p-value up to alpha where the groups have these rates."""
        probability = 0.0
        if self._looks_above:
            probability += self._rejecting(rates, alpha)
        if self._looks_below:
            probability += self.swapped._rejecting(rates[::-1], alpha)
        return probability

    def _rejecting(self, rates: tuple[float, float], alpha: float) -> float:
        """The probability that the treatment's noisy rate is larger, with a p-value of at most alpha."""
        one, other = self.control.law(rates[0]), self.treatment.law(rates[1])
        totals, demanded = self._demanded(alpha, self._window(one, other))
        needed = self._needed(one.values, other.first, other.end, lambda both: np.interp(both, totals, demanded))
        return float(one.masses @ other.at_least(needed))

    def _window(self, one: Counted, other: Counted) -> tuple[int, int]:
        """The totals of both groups between which all but 1e-7 of their law lies."""
        ends = []
        for side in (1, -1):
            total = 0
            for law in (one, other):
                beyond = np.cumsum(law.masses[::side])
                away = int(np.searchsorted(beyond, 5e-8))
                total += law.first + away if side == 1 else law.first + len(law.masses) - 1 - away
            ends.append(total)
        return ends[0], ends[1]

    @cached_property
    def _statistics(self) -> dict[tuple[float, int, int], float]:
        return {}

    @cached_property
    def _lefts(self) -> dict[int, tuple[float, float]]:
        return {}

    def _left_angles(self, both: int) -> tuple[float, float]:
        """Angles whose squared sines are the ends of :meth:`left`, from a cache."""
        if both not in self._lefts:
            low, high = self.left(both, 0.0)
            self._lefts[both] = math.asin(math.sqrt(low)), math.asin(math.sqrt(high))
        return self._lefts[both]

    def _demanded(self, alpha: float, window: tuple[int, int]) -> tuple[Floats, Floats]:
        """Totals of both groups, and for each the smallest statistic with a p-value of at most alpha.

        What a common rate demands is computed at whole numbers of steps, of angles whose squared sines are rates, and
        kept for other windows, as are the rates that a total leaves: totals are multiples of a power of 2. A total
        demands the most that any of those does that it leaves, and the next beyond.
        """
        apart = 1 << max(math.floor(math.log2(max(window[1] - window[0], 1) / (TABLED - 1))), 0)
        totals = np.arange(window[0] // apart, -(-window[1] // apart) + 1) * apart
        left = [self._left_angles(both) for both in totals.tolist()]
        widest = max(high - low for low, high in left)
        steps = 2 ** max(math.ceil(math.log2(math.pi / 2 * (TABLED - 1) / (2 * widest))), 0)
        levels = []
        for low, high in left:
            first, last = (edge(end * steps / (math.pi / 2)) for edge, end in ((math.floor, low), (math.ceil, high)))
            levels.append(max(self._demand(alpha, step, steps) for step in range(first, last + 1)))
        return totals.astype(np.float64), np.array(levels)

    def _demand(self, alpha: float, step: int, steps: int) -> float:
        if (alpha, step, steps) not in self._statistics:
            common = math.sin(math.pi / 2 * min(step, steps) / steps) ** 2
            self._statistics[alpha, step, steps] = self._least_statistic(common, (alpha - self.ignored) / self._sides)
        return self._statistics[alpha, step, steps]

    def _least_statistic(self, common: float, level: float) -> float:
        """The smallest value that the statistic reaches with a probability of at most ``level`` at a common rate."""

        def reached(least: float) -> float:
            return self._from(least, (common, common))(common)

        start = float(ndtri(1 - level))
        low, high = max(start - 0.25, 0.0), start + 0.25
        while reached(high) > level and high < 1e6:
            low, high = high, 2 * high
        while low > 0 and reached(low) <= level:
            low, high = max(2 * low - high - 0.25, 0.0), low
        # Invariant: at `high` it is at most the level, at `low` it is not (or low is 0).
        last = (low, math.nan), (high, math.nan)
        while high - low > STEP:
            middle = _between(last, low, high)
            seen = reached(middle)
            low, high = (low, middle) if seen <= level else (middle, high)
            last = last[1], (middle, normal_gap(seen, level))
        return high


GOLDEN = (math.sqrt(5) - 1) / 2


def _between(last: tuple[tuple[float, float], tuple[float, float]], low: float, high: float) -> float:
    """Where a line through two points crosses 0, moved a little to the farther end; else the middle of both ends."""
    (a, at_a), (b, at_b) = last
    middle = (low + high) / 2
    if not (math.isfinite(at_a) and math.isfinite(at_b)) or at_a == at_b:
        return middle
    secant = b - at_b * (b - a) / (at_b - at_a)
    secant += STEP / 3 if secant - low < high - secant else -STEP / 3
    return secant if low + STEP / 4 < secant < high - STEP / 4 else middle


def _crossing(gap: Callable[[float], float], start: float, end: float, step: float) -> float:
    """The place between start and end from which on a gap is no longer positive; the end if there is none."""
    inside, outside = start, min(start + step, end)
    while outside < end and gap(outside) > 0:
        inside, step = outside, 2 * step
        outside = min(outside + step, end)
    if gap(outside) > 0:
        return outside
    if gap(inside) <= 0:
        return inside
    return float(brentq(gap, inside, outside, xtol=FINE, rtol=1e-10))
