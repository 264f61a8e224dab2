r"""The exact law of a noisy total: T = s_1 + ... + s_n + N, scores independent, N the noise.

Two methods, which agree (tests/laws/test_noisy_total.py):

- *convolution*: the law of the sum of scores on a window that holds all but 1e-18 of it, by FFT, then
  :math:`\Pr[T \le x] = \sum_j \Pr[S = j] F_N(x - j)`. For small and moderate n.
- *inversion*: one Fourier integral along a line through the saddle point, whose integrand is negligible beyond
  :math:`|t| \sim 1/(\sigma \sqrt n)`, so that the cost does not depend on n. For large n.

Both use the law tilted by :math:`e^{\theta s}` with the saddle point's :math:`\theta`, which gives tail
probabilities a small relative error; a probability above 1/2 or so is computed as one minus its complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from privatest.errors import InvalidInput
from privatest.laws.fourier import (
    Complexes,
    central_reach,
    doubling_panels,
    fast_length,
    log_transform,
    probabilities,
    side_lobes,
    sum_laws,
)
from privatest.numbers import Floats, Integers, dot, first_true, root, row_dots
from privatest.privacy import Noise

# exp(-42) < 1e-18: the mass that windows may leave out.
NEGLIGIBLE_EXPONENT = 42.0
# A step that n records take with a smaller probability need not fit into a window.
RAREST_STEP = 3e-19


def tilt(steps: Floats, law: Floats, theta: float) -> tuple[Floats, float]:
    """Return the law tilted by e^(theta step), and the logarithm of its normalising constant."""
    exponents = theta * steps
    shift = float(exponents.max())
    with np.errstate(under="ignore"):
        weights = law * np.exp(exponents - shift)
    mass = float(weights.sum())
    return weights / mass, shift + math.log(mass)


def saddle(
    steps: Floats, law: Floats, n: int, level: float, most: float, drift: Callable[[float], float] = lambda _: 0.0
) -> float:
    """theta in [0, most] that minimises n log M(theta) - theta level: the best tilt for Pr[J + N > level].

    ``drift(theta)`` is the mean of the noise tilted by theta, for a noise whose tails are so light that this bounds
    theta. The result is rounded to a binary fraction, by at most a quarter of the tilted sum's standard deviation, so
    that neighbouring levels share it and the window computed for it.
    """
    goal = level / n
    if float(law @ steps) >= goal:
        return 0.0

    def reaches(theta: float) -> bool:
        """Whether the mean of the tilted total is at least the level; it increases with theta."""
        return float(tilt(steps, law, theta)[0] @ steps) + drift(theta) / n >= goal

    limit = most * (1 - 1e-9)
    if math.isinf(limit):
        limit = 1e-6
        while limit < 700 and not reaches(limit):
            limit *= 2
    if not reaches(limit):
        return limit
    left, right = root(reaches, 0.0, limit, relative=1e-3)
    centre = (left + right) / 2
    tilted, _ = tilt(steps, law, centre)
    deviation = math.sqrt(n * max(float(tilted @ (steps - tilted @ steps) ** 2), 1e-300))
    grain = math.ldexp(1.0, math.floor(math.log2(0.5 / deviation)))
    return min(round(centre / grain) * grain, limit)


def window_ends(steps: Floats, law: Floats, n: int) -> tuple[int, int]:
    """Ends of a window that the sum of n steps leaves with probability under 2e-18.

    Steps at either end that n records hardly ever take are left out of the bound, as a single far one would spoil it.
    """
    inner = (n * np.cumsum(law) > RAREST_STEP) & (n * np.cumsum(law[::-1])[::-1] > RAREST_STEP)
    return chernoff_windows(steps[inner], law[inner], [n])[0]


_TILTS = np.geomspace(1e-2, 50.0, 40)
"""Tilts times the standard deviation of the sum."""


def chernoff_windows(steps: Floats, law: Floats, counts: Sequence[int]) -> list[tuple[int, int]]:
    """For each count, a window that the sum of that many steps leaves with probability under 2e-18.

    By Chernoff's bound for the largest count: the sum of fewer steps stays as near to its own mean.
    """
    most = max(counts)
    mean = float(law @ steps)
    spread = math.sqrt(max(float(law @ (steps - mean) ** 2), 1e-300))
    u = _TILTS / (spread * math.sqrt(most))
    down, up = (_chernoff_reach(sign * (steps - mean), law, most, u) for sign in (-1.0, 1.0))
    least, largest = float(steps[0]), float(steps[-1])
    return [(math.floor(max(n * mean - down, n * least)), math.ceil(min(n * mean + up, n * largest))) for n in counts]


def _chernoff_reach(away: Floats, law: Floats, most: int, u: Floats) -> float:
    """Return the least of (n log E e^(u away) + exponent)/u over the tilts u."""
    exponents = np.multiply.outer(u, away)
    with np.errstate(under="ignore"):
        cumulants = np.log(row_dots(np.exp(np.minimum(exponents, 600.0)), law))
    cumulants[exponents.max(axis=1) > 600.0] = math.inf
    return float(((most * cumulants + NEGLIGIBLE_EXPONENT) / u).min())


# exp(-46) = 1e-20: smaller parts of the integrand are left out.
_NEGLIGIBLE = 46.0
# The largest logarithm of a transform of noise: doubles hold e^709.
_LARGEST_EXPONENT = 600.0
_MOST_PANELS = 1 << 16
_ROUNDING = 2.3e-16


def upper_tail_by_inversion(
    steps: Floats,
    law: Floats,
    n: int,
    noise: Noise,
    y: Fraction,
    spacing: int,
    theta: float,
    most_lobes: int = 0,
    most_work: float = 1 << 26,
) -> tuple[float, float] | None:
    r"""Pr[spacing J + N > y] and a bound on its error, or None if the integrand is too rough.

    .. math:: \Pr[J + N > y] = \frac{1}{2\pi} \int_{-\pi}^{\pi} \frac{M_J(z) M_N(z) e^{-z y}}{2 \sinh(z/2)} dt,
              \qquad z = \theta + i t,

    for y halfway between two values of J + N and any 0 < theta inside the noise's strip of convergence;
    ``theta`` is best near the saddle point. The integrand has a peak at t = 0 and, where the scores nearly lie
    on a coarser lattice, others: more than ``most_lobes`` of them are too many, and so is more than ``most_work``,
    nodes times steps.
    """
    if spacing > 1:
        if (coarse := noise.coarser(spacing)) is not None:
            if noise.spacing > 1:  # J + N lies on the coarser lattice itself
                middle = math.floor(y / spacing) + Fraction(1, 2)
                return upper_tail_by_inversion(steps, law, n, coarse, middle, 1, theta * spacing, most_lobes, most_work)
            return _on_coarser_lattice(steps, law, n, coarse, y, spacing, theta, most_lobes, most_work)
        steps = steps * spacing
    mean = math.fsum(law * steps)
    spread = math.sqrt(n * math.fsum(law * (steps - mean) ** 2) + noise.variance)
    # At a distance from the pole at 0 of about one over the standard deviation, well inside the strip.
    theta = min(max(theta, 1.0 / spread), 0.9 * noise.decay_rate)
    while noise.log_excess(theta) > _LARGEST_EXPONENT:
        theta *= 0.9
    if theta * float(steps[-1] - mean) > 500:  # exponentials would overflow
        return None
    tilted, _ = tilt(steps, law, theta)
    reach = central_reach(steps, tilted, n, _NEGLIGIBLE)
    # The transform of a flat law has poles beside all multiples of 2 pi/plateau; only those at 0 are resolved.
    if reach is None or reach * noise.plateau > 5.0:
        return None
    lobes = side_lobes(steps, tilted, n, reach, _NEGLIGIBLE, most_lobes)
    if lobes is None or (len(lobes) and noise.spacing > 1):  # spaced values have poles beside other peaks, too
        return None
    first, last = window_ends(steps, tilted, n)
    bandwidth = float(max(abs(y - first), abs(last - y)))
    # The first panel is half the smallest scale of the integrand.
    scale = min(theta, noise.decay_rate - theta, 1.0 / spread)
    panels = doubling_panels(scale / 2, reach, bandwidth, _MOST_PANELS)
    nodes = None if panels is None else _nodes_at_every_peak(lobes, *panels, reach)
    if nodes is None or len(nodes[0]) * len(steps) > most_work:
        return None
    return _integral(steps, law, n, noise, y, theta, reach, *nodes)


def _integral(
    steps: Floats,
    law: Floats,
    n: int,
    noise: Noise,
    y: Fraction,
    theta: float,
    reach: float,
    t: Floats,
    weights: Floats,
) -> tuple[float, float]:
    z = theta + 1j * np.concatenate([[0.0], t])
    mu, logs = log_transform(steps, law, z)
    away = float(y - n * Fraction(mu))
    # The noise's transform is largest at t = 0, where it may be e^600 and the sum's e^-600: only their product
    # fits into a double.
    transform = noise.characteristic(-1j * z)
    highest = math.hypot(transform[0].real, transform[0].imag)
    with np.errstate(under="ignore"):
        factors = np.exp(n * logs - z * away + math.log(highest)) / (2 * np.sinh(z / 2))
        value = math.fsum(weights * (factors * (transform / highest)).real[1:]) / math.pi
        # Rounding: of the largest value of the noise's transform, of the exponent's terms and, beside the other peaks,
        # where the transform of the law is not near 1, of n times a phase.
        rounding = 20 + 8 * n * np.abs(logs.real) + 4 * np.abs(n * logs.imag - z.imag * away) + 2 * abs(theta * away)
        rounding[1:] += np.where(t > reach, n * (1 + t * float(steps[-1] - steps[0])), 0.0)
        sizes = np.abs(factors) / math.pi
        error = _ROUNDING * math.fsum(weights * (rounding * sizes)[1:])
    # Beyond the reach |sinh(z/2)| is at least sin(reach/2).
    outside = math.exp(-_NEGLIGIBLE) * float(sizes[0]) * math.pi * math.sinh(theta / 2) / math.sin(reach / 2)
    return min(max(value, 0.0), 1.0), min(error + outside, 1.0)


def _nodes_at_every_peak(lobes: Floats, t: Floats, weights: Floats, reach: float) -> tuple[Floats, Floats] | None:
    """Return the nodes around 0, repeated on both sides of every other peak; None if peaks overlap."""
    if len(lobes) == 0:
        return t, weights
    at_pi = np.abs(lobes - math.pi) < 1e-3 * reach  # only half of a peak at pi counts
    inner = lobes[~at_pi]
    centres = np.concatenate([[0.0], inner, [math.pi] if np.any(at_pi) else []])
    if np.any(np.diff(centres) < 2 * reach) or np.any(inner > math.pi - reach):
        return None
    sides = [t, *(inner[:, None] + t).reshape(1, -1), *(inner[:, None] - t).reshape(1, -1)]
    shares = [weights, np.tile(weights, 2 * len(inner))]
    if np.any(at_pi):
        sides.append(math.pi - t)
        shares.append(weights)
    return np.concatenate(sides), np.concatenate(shares)


def _on_coarser_lattice(
    steps: Floats,
    law: Floats,
    n: int,
    coarse: Noise,
    y: Fraction,
    spacing: int,
    theta: float,
    most_lobes: int,
    most_work: float,
) -> tuple[float, float] | None:
    """The probability where N = spacing N' + V, with noise N' on a coarser lattice and V uniform on ``spacing`` points.

    It is an average over V, in which only two neighbouring levels of N' occur. V is centred at 0.
    """
    offset = coarse.offset
    half = Fraction(spacing - 1, 2)
    highest = math.floor((y + half) / spacing - offset)
    # V = -half + v, v = 0..spacing-1, moves the level past `highest` once (y + half - v)/spacing - offset < highest.
    still = min(math.floor(y + half - spacing * (highest + offset)) + 1, spacing)
    value = error = 0.0
    for level, share in ((highest, still), (highest - 1, spacing - still)):
        if share:
            middle = level + offset + Fraction(1, 2)
            tail = upper_tail_by_inversion(steps, law, n, coarse, middle, 1, theta * spacing, most_lobes, most_work)
            if tail is None:
                return None
            value += tail[0] * share / spacing
            error += tail[1] * share / spacing
    return value, error


# Beyond this n the FFT's rounding, n times 1e-16, starts to show.
MOST_CONVOLVED = 1_000
LARGEST_WINDOW = 1 << 24


@dataclass(frozen=True, eq=False)
class Window:
    """The law of J tilted by e^(theta J), on consecutive integers.

    Attributes:
        start: the first integer.
        weights: probabilities of it and of those that follow, under the tilted law.
        log_mass: log E e^(theta (J - start)), with which the tilt is undone.
        accuracy: error of the vector of weights, relative to its norm.
    """

    start: int
    weights: Floats
    log_mass: float
    accuracy: float


def convolve(steps: Floats, law: Floats, n: int, theta: float) -> Window:
    """Return the tilted law of the sum of n independent steps."""
    tilted, _ = tilt(steps, law, theta)
    first, last = window_ends(steps, tilted, n)
    size = fast_length(last - first + 1)
    if size > LARGEST_WINDOW:
        raise InvalidInput(
            f"n={n} is too large for exact error rates on this lattice. Use a clamp nearer to the "
            "ratio's spread, or fewer records."
        )
    # Centred on the rounded mean, so that phases near the main lobe stay small and exact.
    centre = round(float(tilted @ steps))
    places, shift = steps.astype(np.int64) - centre, n * centre
    accuracy = _ROUNDING * math.log2(size + 1)
    central = _waves_near_zero(places, tilted, n, size) if n > MOST_CONVOLVED else None
    if central is None:
        (weights,) = sum_laws(places, [tilted], [[n]], [(first - shift, last - shift)])
        accuracy *= n + 1
    else:
        weights = probabilities(central[0], size, first=first - shift, count=last - first + 1)
        accuracy += central[1]
    if theta == 0:
        return Window(first, weights, 0.0, accuracy)
    # An error of 1e-16 in log M(theta) would be multiplied by n, and so would one of its size about 0.
    mean = math.fsum(law * steps)
    if theta * (steps[-1] - mean) < 500:
        mean, logs = log_transform(steps, law, np.array([theta + 0j]))
        cumulant = float(logs[0].real)
    else:
        cumulant = tilt(steps - mean, law, theta)[1]
        accuracy += 4 * _ROUNDING * n * abs(cumulant)
    return Window(first, weights, n * cumulant + theta * float(n * Fraction(mean) - first), accuracy)


def _waves_near_zero(places: Integers, law: Floats, n: int, size: int) -> tuple[Complexes, float] | None:
    """Logarithms of the Fourier coefficients of the sum of n steps, and their error; None if other peaks matter.

    Only those near 0 are computed, each to full accuracy, because multiplied by n the rounding of an FFT would show.
    """
    steps = places.astype(np.float64)
    reach = central_reach(steps, law, n, NEGLIGIBLE_EXPONENT)
    lobes = None if reach is None else side_lobes(steps, law, n, reach, NEGLIGIBLE_EXPONENT, most=0)
    if reach is None or lobes is None:
        return None
    near = math.ceil(reach * size / (2 * math.pi)) + 1
    t = 2 * math.pi * np.arange(min(near, size // 2 + 1)) / size
    mean, logs = log_transform(steps, law, (-1j * t).astype(np.complex128))
    waves = np.full(size // 2 + 1, -np.inf, dtype=np.complex128)
    # The mean is at most half a step, and its multiple is taken modulo the window.
    turns = math.fmod(n * mean, size) if abs(mean) < 2**-20 else n * mean
    waves[: len(t)] = n * logs - 1j * t * turns
    return waves, _ROUNDING * (NEGLIGIBLE_EXPONENT * 8 + 4 * abs(n * mean) * reach)


# Below this many points a plain sum of positive terms is cheap.
SMALLEST_WINDOW = 1 << 11
# Below this many points a convolution is cheaper than the integral.
SMALL_WINDOW = 1 << 13
# Cost of one point of a window, in nodes times steps of the integral.
INVERSION_PER_POINT = 64
# Beyond this many points an integral over many peaks is cheaper than a convolution.
LARGE_WINDOW = 1 << 22
MOST_LOBES = 1 << 15
# Windows kept for the next probability, in numbers: 32 MB.
MOST_KEPT = 1 << 22
# Points to which a sum's law is pooled when many probabilities are computed for a picture.
POOLED = 1 << 11
# Probabilities of the noise that are quickly computed.
MOST_LEVELS = 1 << 19
# Scores with a smaller probability are left out of a law that is otherwise too long to be convolved.
NEGLIGIBLE_PROBABILITY = 1e-17
# With a larger relative error another tilt is tried.
POOR = 1e-9
# Scores rarer than this are left out: no probability that a double can distinguish from 0 depends on them.
RAREST = 1e-290
# e^-740 is near the least positive double.
LEAST_EXPONENT = -740.0
# Probabilities above this are far from that.
PLAINLY_POSITIVE = 1e-300


@dataclass(frozen=True)
class Bounded:
    """A probability with a bound on its absolute error."""

    value: float
    error: float

    @property
    def lower(self) -> float:
        """A lower bound on the probability."""
        return max(self.value - self.error, 0.0)

    @property
    def upper(self) -> float:
        """An upper bound on the probability."""
        return min(self.value + self.error, 1.0)

    @property
    def certified(self) -> float:
        """The value if nine of its digits are certain, else the upper bound, which is never too small."""
        return self.value if self.error <= max(POOR * self.value, PLAINLY_POSITIVE) else self.upper


@dataclass(frozen=True, eq=False)
class IntegerLaw:
    """The law of an integer statistic: its values in increasing order, and their probabilities."""

    values: Integers
    masses: Floats

    @cached_property
    def _away(self) -> Floats:
        return np.asarray((self.values - self.values[0]).astype(np.float64))

    @cached_property
    def mean(self) -> float:
        """Mean of the statistic."""
        return float(self.values[0]) + float(self.masses @ self._away)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the statistic."""
        return math.sqrt(float(self.masses @ (self._away - float(self.masses @ self._away)) ** 2))

    def sf(self, x: Fraction, noise: Noise) -> float:
        """Pr[V + N > x] for the statistic V and independent noise N."""
        return min(float(self.masses @ noise.sf(float(x - int(self.values[0])) - self._away)), 1.0)

    def cdf(self, x: Fraction, noise: Noise) -> float:
        """Pr[V + N <= x]."""
        return min(float(self.masses @ noise.cdf(float(x - int(self.values[0])) - self._away)), 1.0)

    def cutoff(self, level: float, noise: Noise) -> Fraction:
        """Return the smallest c halfway between two values of V + N with Pr[V + N > c] <= level."""
        shift = noise.offset + Fraction(1, 2)
        span = max(1, round(self.deviation + math.sqrt(noise.variance)))
        low = round(self.mean) - span
        while self.sf(low + shift, noise) <= level:
            low, span = low - span, 2 * span
        return first_true(lambda c: self.sf(c + shift, noise) <= level, low) + shift

    def noisy_cdfs(self, edges: Floats, noise: Noise) -> Floats:
        """Pr[V + N <= first value + edge] for increasing edges.

        Exact for few values, and for consecutive values with edges whole numbers apart; else the masses are pooled to a
        fine grid.
        """
        points, masses, places = self._away, self.masses, edges - edges[0]
        if points[-1] + 1 == points.size and np.all(places == np.floor(places)):
            count = places[-1] + points.size
            if count < min(points.size * edges.size, MOST_LEVELS):
                levels = noise.cdf(edges[0] - points[-1] + np.arange(count))[::-1]
                ends = (places[-1] - places).astype(np.int64)
                return np.array([masses @ levels[end : end + points.size] for end in ends])
        if points.size * edges.size > MOST_LEVELS:
            # The mass of each value is shared between the two nearest points of a grid much finer than the edges.
            grid = np.linspace(0.0, points[-1], POOLED)
            place = points / grid[1]
            lower = np.clip(place.astype(np.int64), 0, POOLED - 2)
            upper = masses * (place - lower)
            pooled = np.bincount(lower, masses - upper, POOLED) + np.bincount(lower + 1, upper, POOLED)
            points, masses = grid, np.asarray(pooled, dtype=np.float64)
        return np.asarray(noise.cdf(edges[:, None] - points[None, :]) @ masses)


@dataclass(frozen=True, eq=False)
class NoisyTotal:
    """The law of the noisy total of ``n`` scores, each with probability ``law`` on ``support``."""

    support: Integers
    law: Floats
    n: int
    noise: Noise
    mirror_of: NoisyTotal | None = field(default=None, repr=False)

    def cdf(self, x: Fraction | int) -> float:
        """Pr[T <= x]; an upper bound on it if fewer than nine digits are known."""
        return self.bounded_cdf(x).certified

    def sf(self, x: Fraction | int) -> float:
        """Pr[T > x]; an upper bound on it if fewer than nine digits are known."""
        return self.bounded_sf(x).certified

    def bounded_cdf(self, x: Fraction | int) -> Bounded:
        """Pr[T <= x] with a bound on its error; the relative error is small in the lower tail."""
        # -T has the mirrored laws, of the scores and of the noise.
        return self._mirror._tail(-self._between(x))

    def bounded_sf(self, x: Fraction | int) -> Bounded:
        """Pr[T > x] with a bound on its error; the relative error is small in the upper tail."""
        return self._tail(self._between(x))

    def masses(self, edges: Sequence[Fraction | int]) -> Floats:
        """Pr[edge < T <= next edge] for increasing edges, with errors of at most 1e-4, for pictures."""
        return np.maximum(np.diff(self.cdfs(edges)), 0.0)

    def cdfs(self, edges: Sequence[Fraction | int]) -> Floats:
        """Pr[T <= edge] for increasing edges, with errors of at most 1e-4, for pictures."""
        if self._is_long:
            return np.array([self.cdf(edge) for edge in edges])
        total = self.sum_law()
        away = np.array([float(edge - int(total.values[0])) for edge in map(self._between, edges)])
        return total.noisy_cdfs(away, self.noise)

    def _between(self, x: Fraction | int) -> Fraction:
        """Return the midpoint between the two values of T around x: the same event without ties."""
        offset = self.noise.offset
        return math.floor(Fraction(x) - offset) + offset + Fraction(1, 2)

    @cached_property
    def _mirror(self) -> NoisyTotal:
        """The law of -T."""
        if self.mirror_of is not None:
            return self.mirror_of
        return NoisyTotal(-self.support[::-1], self.law[::-1], self.n, self.noise.mirrored, mirror_of=self)

    @cached_property
    def _atoms(self) -> tuple[int, int, Floats, Floats]:
        """(low, spacing, steps, law): the scores that occur are low + spacing * steps, with the largest spacing."""
        visited = self.law > RAREST
        scores, law = self.support[visited], self.law[visited]
        low = int(scores[0])
        spacing = int(np.gcd.reduce(scores - low)) or 1
        return low, spacing, ((scores - low) // spacing).astype(np.float64), law / math.fsum(law)

    def _tail(self, x: Fraction) -> Bounded:
        """Pr[T > x] for x between two values of T."""
        low, spacing, steps, law = self._atoms
        y = x - self.n * low  # Pr[spacing * J + N > y], J the sum of n steps
        if len(steps) == 1:
            value, rest = float(self.noise.sf(float(y))), float(self.noise.cdf(float(y)))
            digits = 8 + 2 * min(self.noise.exponent(float(y)), 800.0)
            return Bounded(value, _ROUNDING * (digits * min(value, rest) + (value > 0.5)))
        if self._is_long and (tail := self._tail_with_far_step(x)) is not None:
            return tail
        try:
            if y < self.n * spacing * Fraction(math.fsum(law * steps)):
                below = self._mirror._upper(-x)
                return Bounded(1.0 - below.value, below.error + _ROUNDING)
            return self._upper(x)
        except InvalidInput:
            ends = self._negligible_ends
            if ends is None:
                raise
            inner, missed = ends[0]._tail(x), ends[1]
            return Bounded(inner.value, inner.error + missed)

    def _upper(self, x: Fraction) -> Bounded:
        """Pr[T > x] for x between two values of T, not below the mean."""
        low, spacing, steps, law = self._atoms
        y = x - self.n * low
        window = self._deviation * 19
        few = window <= SMALL_WINDOW and self.n * steps[-1] < SMALLEST_WINDOW
        if few and (enumerated := self._upper_by_enumeration(y)).value > PLAINLY_POSITIVE:
            return enumerated  # Chernoff's bound below would be above it
        theta = saddle(
            steps,
            law,
            self.n,
            float(y / spacing),
            self.noise.decay_rate * spacing,
            lambda theta: self.noise.drift(theta / spacing) / spacing,
        )
        if self._log_bound(y, theta / spacing) < LEAST_EXPONENT:
            return Bounded(0.0, math.exp(LEAST_EXPONENT))
        arguments = (steps, law, self.n, self.noise, y, spacing, theta / spacing)
        if window > SMALL_WINDOW:
            inverted = upper_tail_by_inversion(*arguments, 0, INVERSION_PER_POINT * window)
            if inverted is None and window > LARGE_WINDOW:
                inverted = upper_tail_by_inversion(*arguments, MOST_LOBES)
            if inverted is not None:
                return Bounded(*inverted)
        if self.n * steps[-1] < SMALLEST_WINDOW:
            return self._upper_by_enumeration(y)
        best = self._upper_by_convolution(y, theta)
        if best.error > POOR * best.value:
            # A noise whose tails fall in steep stairs (a large epsilon) may need another tilt.
            others = [self._upper_by_convolution(y, theta * share) for share in (0.0, 0.25, 0.5, 0.75)]
            best = min([best, *others], key=lambda one: one.error)
        return best

    def _log_bound(self, y: Fraction, theta: float) -> float:
        """log E e^(theta (J + N - y)), Chernoff's bound on the probability."""
        _, spacing, steps, law = self._atoms
        theta = min(theta, 0.9 * self.noise.decay_rate)
        if theta == 0:
            return 0.0
        mean = math.fsum(law * steps)
        _, log_mass = tilt(steps - mean, law, theta * spacing)
        noise = math.hypot(*self.noise.characteristic(np.array([-1j * theta])).view(np.float64))
        log_noise = math.log(noise) if noise < math.inf else self.noise.log_excess(theta)
        return self.n * log_mass - theta * float(y - self.n * spacing * Fraction(mean)) + log_noise

    def _upper_by_convolution(self, y: Fraction, theta: float) -> Bounded:
        spacing = self._atoms[1]
        window = self._window(theta)
        start, weights, log_mass = window.start, window.weights, window.log_mass
        places = np.arange(len(weights), dtype=np.float64)
        tails = self.noise.logsf(float(y - spacing * start) - spacing * places)
        # The tilt is undone inside the exponential, relative to the largest term, so that nothing overflows.
        exponents = tails - theta * places + log_mass
        top = float(exponents.max())
        # Outside of the window a term is at most this: E e^(theta J) over e^(theta y), times the noise's stairs.
        stairs = self.noise.log_excess(theta / spacing)
        outside = log_mass - theta * float(y / spacing - start) + stairs - NEGLIGIBLE_EXPONENT
        if math.isinf(top):
            return Bounded(0.0, 2 * math.exp(min(outside, 0.0)))
        with np.errstate(under="ignore"):
            terms = np.exp(exponents - top)
            value = dot(weights, terms)
            # Rounding of the transforms is spread evenly over the window: Cauchy and Schwarz.
            error = window.accuracy * math.sqrt(dot(weights, weights)) * math.sqrt(dot(terms, terms))
            # Every term is positive, so that beyond this only the exponents' own rounding counts, term by term.
            sizes = np.where(np.isinf(tails), 0.0, np.abs(tails)) + theta * places
            digits = dot(weights * terms, sizes) + value * (abs(log_mass) + 8)
        factor = math.exp(min(top, 700.0))
        error = factor * (error + 2 * _ROUNDING * digits) + 2 * math.exp(min(outside, 0.0))
        return Bounded(min(factor * value, 1.0), min(error, 1.0))

    def _upper_by_enumeration(self, y: Fraction) -> Bounded:
        """Pr[spacing J + N > y] as a sum of positive terms, with a small relative error for every noise."""
        weights = self._enumerated
        tails = self.noise.sf(float(y) - self._atoms[1] * np.arange(len(weights), dtype=np.float64))
        with np.errstate(under="ignore"):
            value = dot(weights, tails)
        reach = self.noise.exponent(abs(float(y)) + self._atoms[1] * len(weights))
        digits = 8 + min(2 * reach, 800.0) + (4 + math.sqrt(len(weights))) * self.n.bit_length()
        return Bounded(min(value, 1.0), _ROUNDING * digits * value)

    @cached_property
    def _enumerated(self) -> Floats:
        """The law of J by direct convolution and repeated squaring."""
        _, _, steps, law = self._atoms
        base = np.bincount(steps.astype(np.int64), weights=law)
        masses = np.ones(1)
        with np.errstate(under="ignore"):
            for bit in bin(self.n)[2:]:
                masses = np.convolve(masses, masses)
                if bit == "1":
                    masses = np.convolve(masses, base)
        return masses

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of J."""
        _, _, steps, law = self._atoms
        return math.sqrt(self.n * math.fsum(law * (steps - math.fsum(law * steps)) ** 2))

    @cached_property
    def _is_long(self) -> bool:
        """Whether the law of J takes more points than are comfortably convolved."""
        _, _, steps, law = self._atoms
        first, last = window_ends(steps, law, self.n)
        return last - first > LARGE_WINDOW

    def _tail_with_far_step(self, x: Fraction) -> Bounded | None:
        """The tail if one value outweighs n others, as infinite ratios do: one such record decides. Else None."""
        low, spacing, steps, law = self._atoms
        for far in (-1, 0):
            others = np.delete(np.arange(len(steps)), far)
            if abs(steps[far] - steps[others[far]]) <= self.n * abs(steps[others[-1]] - steps[others[0]]):
                continue
            scores = (low + spacing * steps).astype(np.int64)
            share, rest = float(law[far]), math.fsum(law[others])
            log_never = self.n * (math.log1p(-share) if share < 0.5 else math.log(rest))
            never, ever = math.exp(log_never), -math.expm1(log_never)
            # The noise would have to make up for one far record among those that speak most against it.
            nearest = int(scores[far]) + (self.n - 1) * int(scores[others[0 if far else -1]])
            missed = float((self.noise.cdf if far else self.noise.sf)(float(x - nearest)))
            if missed < NEGLIGIBLE_PROBABILITY:
                inner = Bounded(0.0, 1.0)
                if never > 1e-300:
                    inner = NoisyTotal(scores[others], law[others] / rest, self.n, self.noise)._tail(x)
                value = never * inner.value + (ever if far else 0.0)
                rounding = 8 * _ROUNDING * (value + self.n * _ROUNDING)
                return Bounded(value, never * inner.error + ever * missed + rounding)
        return None

    @cached_property
    def _negligible_ends(self) -> tuple[NoisyTotal, float] | None:
        """The total without the scores at both ends that hardly ever occur, and the probability that one does."""
        low, spacing, steps, law = self._atoms
        relevant = (self.n * np.cumsum(law) > NEGLIGIBLE_PROBABILITY) & (
            self.n * np.cumsum(law[::-1])[::-1] > NEGLIGIBLE_PROBABILITY
        )
        if np.all(relevant):
            return None
        scores = (low + spacing * steps).astype(np.int64)
        return NoisyTotal(scores[relevant], law[relevant], self.n, self.noise), self.n * math.fsum(law[~relevant])

    @property
    def mean(self) -> float:
        """Mean of the sum of scores."""
        return self.n * float(self.law @ self.support)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noisy total."""
        spread = float(self.law @ (self.support - self.mean / self.n) ** 2)
        return math.sqrt(self.n * spread + self.noise.variance)

    def sum_law(self) -> IntegerLaw:
        """Return the law of the sum of scores, without noise; all but 1e-18 of it."""
        low, spacing, steps, _ = self._atoms
        if len(steps) == 1:
            return IntegerLaw(np.array([self.n * low]), np.ones(1))
        window = self._window(0.0)
        places = window.start + np.arange(len(window.weights), dtype=np.int64)
        return IntegerLaw(self.n * low + spacing * places, window.weights)

    @cached_property
    def _windows(self) -> dict[float, Window]:
        """A cache of windows by tilt. They depend on the design, never on data."""
        return {}

    def _window(self, theta: float) -> Window:
        """Return the law of J tilted by theta."""
        if theta not in self._windows:
            _, _, steps, law = self._atoms
            new = convolve(steps, law, self.n, theta)
            if sum(len(window.weights) for window in self._windows.values()) + len(new.weights) > MOST_KEPT:
                self._windows.clear()
            self._windows[theta] = new
        return self._windows[theta]
