r"""Noise that meets a notion of privacy exactly: the canonical noises, and which of them a notion calls for.

Canonical noise has :math:`F(x + width) = h(F(x))` for the h of its notion (Awan and Vadhan 2023): no noise is tighter.

- ``Tulap`` is canonical for ``pure``: no epsilon-DP test on two points decides better.
- ``TruncatedTulap`` is canonical for ``approx``: it is Tulap noise with bounded support.
- ``Uniform`` is canonical for ``tv`` and ``Gaussian`` for ``gdp``; ``zcdp``, ``renyi`` and ``kl`` use it too.

A Gaussian is an exact normal number rounded to the lattice, of which as many digits are drawn as rounding needs. What
is released is post-processing of an exact Gaussian, hence exactly mu-GDP; a discrete Gaussian is not. Reference: Karney
2016, "Sampling exactly from the normal distribution", algorithm N. Arguments: proof.md.

:func:`canonical_noise` is what the tight test adds, :func:`counts_noise` what many counts need, and :func:`loss_range`
the privacy loss that a notion allows the exponential mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.numbers import Floats, exp_bounds, first_true, rational, root, square_root
from privatest.privacy import randomness as coins
from privatest.privacy.divergences import from_logit, golden_maximum, normal
from privatest.privacy.noise import (
    Noise,
    WholeWidths,
    positive_within_double,
    two_sided_characteristic,
    uniform_characteristic,
    whole_quotient,
)
from privatest.privacy.notions import Approx, Gdp, Kl, Neighbourhood, Notion, Pure, Renyi, Tv, Zcdp, per_row
from privatest.privacy.randomness import RandomSource

# Exponentials are enclosed to this many bits beyond those of the number that they are compared with.
_BITS = 128


@dataclass(frozen=True)
class Tulap(WholeWidths):
    r"""N = width G + U: a two-sided geometric spread evenly over blocks of ``width`` lattice values.

    .. math:: \Pr[G = g] = \tanh(\epsilon/2)\, e^{-\epsilon |g|}, \qquad
              U \sim \mathrm{Unif}\{-\tfrac{w-1}{2}, \dots, \tfrac{w-1}{2}\}

    Guarantees: with b = e^-epsilon and F the cdf, F(x + width) = min(F(x)/b, 1 - b (1 - F(x))) at every
    lattice x: the epsilon-DP constraint is met with equality. Half integers when the width is even.
    Reference: Awan and Slavkovic 2018; Awan and Vadhan 2023.

    >>> Tulap(Fraction(1, 2), 3).privacy_loss(3)
    0.5
    """

    kind: ClassVar[str] = "tulap"
    test: ClassVar[str] = "tight"

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.width % 2 else Fraction(1, 2)

    @property
    def variance(self) -> float:
        # Var G = 2b/(1-b)^2 = 1/(2 sinh(epsilon/2)^2), Var U = (w^2 - 1)/12.
        epsilon = float(self.epsilon)
        blocks = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
        return self.width**2 * blocks + (self.width**2 - 1) / 12

    @property
    def rough(self) -> tuple[float, float]:
        return self.width / math.sqrt(12), self.width / float(self.epsilon)

    def window(self, nats: float) -> int:
        return math.ceil((nats / float(self.epsilon) + 1) * self.width)

    def draw_doubled(self, source: RandomSource) -> int:
        w = self.width
        g = coins.two_sided_geometric(self.epsilon.numerator, self.epsilon.denominator, source)
        return 2 * (w * g + source.below(w)) - (w - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        g, _ = self._block(v)
        epsilon = float(self.epsilon)
        return math.log(math.tanh(epsilon / 2)) - math.log(self.width) - epsilon * np.abs(g)

    def _log_lower(self, v: Floats) -> Floats:
        # g <= 0 here: Pr[N <= v] = Pr[G < g] + Pr[G = g] (r+1)/w, and Pr[G < g] = b^(1-g)/(1+b).
        g, r = self._block(v)
        epsilon = float(self.epsilon)
        b = math.exp(-epsilon)
        within = b - math.expm1(-epsilon) * ((r + 1) / self.width)
        return epsilon * g + np.log(within) - math.log1p(b)

    def _block(self, v: Floats) -> tuple[Floats, Floats]:
        """v = width g + (r - (width-1)/2) with 0 <= r < width."""
        w = float(self.width)
        j = v + (w - 1) / 2
        g = whole_quotient(j, w)
        return g, np.minimum(np.maximum(j - w * g, 0), w - 1)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        w = float(self.width)
        blocks = two_sided_characteristic(float(self.epsilon), w * t)
        return np.asarray(blocks * uniform_characteristic(w, t))

    def hides(self, shift: int) -> bool:
        """Whether moving the total by ``shift`` costs at most epsilon, exactly."""
        return self.exact_loss(shift) <= self.epsilon

    def exact_loss(self, shift: int) -> Fraction:
        """As in the base class, but never None."""
        loss = super().exact_loss(shift)
        assert loss is not None
        return loss


@dataclass(frozen=True)
class TruncatedTulap(Noise):
    r"""Tulap noise with bounded support: blocks of ``width`` values, each block e^-epsilon as likely as the one before.

    With b = e^-epsilon, a value of block g has probability :math:`m b^{|g|}/w`, m = (1 - b + 2 delta b)/(1 + b), until
    all of the mass is used up; the last value on either side has the remaining mass.

    Guarantees: at every lattice x, F(x + width) = h(F(x)) with the h of ``approx(epsilon, delta)``: the constraint is
    met with equality. Half integers if the width is even.
    Reference: Awan and Slavkovic 2018 (the truncated law); Awan and Vadhan 2023 (canonical).

    >>> TruncatedTulap(Fraction(1), Fraction(1, 100), 3).guarantee(3)
    approx(1, 0.01)
    """

    epsilon: Fraction
    delta: Fraction
    width: int
    kind: ClassVar[str] = "truncated_tulap"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_within_double(epsilon=self.epsilon))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))
        delta = rational(self.delta, "delta")
        if not Fraction(1, 10**100) <= delta < 1:
            raise InvalidInput(f"delta={shown(self.delta)} must lie between 1e-100 and 1. For delta 0 use Tulap noise.")
        object.__setattr__(self, "delta", delta)

    @property
    def plateau(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> TruncatedTulap | None:
        """Return None unless the spacing is 1: the support does not end at a multiple of a larger spacing."""
        return self if spacing == 1 else None

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.width % 2 else Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        """The rate of Tulap noise, which has more mass beyond every value."""
        return float(self.epsilon / self.width)

    @cached_property
    def _end(self) -> tuple[int, int, float]:
        """K, f, share: blocks up to K and f values of the next are whole, and one more has this share of its mass."""
        last = first_true(lambda block: self._values_beyond(block)[0] < self.width, 0)
        return last, *self._values_beyond(last)

    def _values_beyond(self, block: int) -> tuple[int, float]:
        """The number of values of the next block that the mass beyond a block makes: its whole part and the rest."""
        bits = _BITS
        # Invariant: with fewer bits the whole part is not determined.
        while math.floor((ends := self._values_left(block, bits))[0]) != math.floor(ends[1]):
            bits *= 2
        return math.floor(ends[0]), float(sum(ends) / 2 - math.floor(ends[0]))

    def _values_left(self, block: int, bits: int) -> tuple[Fraction, Fraction]:
        r"""Bounds on the number of values of the next block that the mass beyond a block makes.

        .. math:: w \frac{p_0 - \delta b (b^{-K} - 1)/(1 - b)}{m b}, \qquad p_0 = \frac{b (1 - \delta)}{1 + b}
        """
        if not block and self.delta == Fraction(1, 2):  # true for every b; no bounds would ever tell it apart
            return Fraction(self.width, 2), Fraction(self.width, 2)
        p, q = self.epsilon.numerator, self.epsilon.denominator
        size = bits + 2 * math.ceil((block + 2) * self.epsilon)
        one = Fraction(1, 1 << size)
        b_low, b_high = (one * end for end in exp_bounds(p, q, size))
        power_low, power_high = (one * end for end in exp_bounds(block * p, q, size))

        def at(b: Fraction, other: Fraction, power: Fraction) -> Fraction:
            """The formula, which is monotone in each of the three places where b occurs."""
            first = (1 - self.delta) / (1 + other)
            second = self.delta * (1 / power - 1) / (1 - other)
            m = (1 - b + 2 * self.delta * b) / (1 + b)
            return self.width * (first - second) / m

        # A function that is monotone in each argument has its smallest and its largest value at corners.
        corners = [
            at(x, y, z) for x in (b_low, b_high) for y in (b_low, b_high) for z in (power_low, power_high) if z > 0
        ]
        if power_low <= 0:
            return Fraction(-1), max(corners)
        return min(corners), max(corners)

    @cached_property
    def _first_mass(self) -> float:
        """m, the mass of block 0."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        return (-math.expm1(-epsilon) + 2 * delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))

    @property
    def largest(self) -> float:
        """The largest value."""
        last, whole, _ = self._end
        return self.width * (last + 1) - (self.width - 1) / 2 + whole

    @property
    def variance(self) -> float:
        last, whole, share = self._end
        w, m, epsilon = self.width, self._first_mass, float(self.epsilon)
        blocks = np.arange(1, last + 1, dtype=np.float64)
        inside = 2 * m * np.sum(np.exp(-epsilon * blocks) * ((w * blocks) ** 2 + (w**2 - 1) / 12))
        start = w * (last + 1) - (w - 1) / 2
        # beyond the whole blocks lie `whole` values from `start` on, and one more with its share
        middle = start + (whole - 1) / 2
        ends = whole * (middle**2 + (whole**2 - 1) / 12) + share * (start + whole) ** 2
        return float(m * (w**2 - 1) / 12 + inside + 2 * m * math.exp(-epsilon * (last + 1)) / w * ends)

    def reach(self, nats: float) -> float:
        return min(super().reach(nats), self.largest)

    def window(self, nats: float) -> int:
        return min(Tulap(self.epsilon, self.width).window(nats), math.ceil(self.largest))

    def guarantee(self, shift: int) -> Notion | None:
        return Approx(self.epsilon, self.delta) if 0 < abs(shift) <= self.width else None

    def scattered(self, rows: int) -> Notion | None:
        """The rows in one count, where delta grows faster than in several."""
        return Approx(self.epsilon, self.delta).grouped(rows)

    def draw_doubled(self, source: RandomSource) -> int:
        # Invariant: rejected values lie beyond the end and leave no trace.
        while not self.keeps(doubled := self.untruncated.draw_doubled(source), source):
            pass
        return doubled

    @cached_property
    def untruncated(self) -> Tulap:
        """The noise whose tails do not end. A draw of this noise is a draw of that one which is not rejected."""
        return Tulap(self.epsilon, self.width)

    @cached_property
    def whole(self) -> int:
        """Twice the largest distance from 0 up to which no value is ever rejected."""
        return 2 * self.width * (self._end[0] + 1) - self.width

    def keeps(self, doubled: int, source: RandomSource) -> bool:
        """Whether to keep a draw of :attr:`untruncated`, given twice its value. At the very end, chance decides."""
        if abs(doubled) <= self.whole:
            return True
        last, whole, _ = self._end
        block, place = divmod((abs(doubled) + self.width - 1) // 2, self.width)
        return block <= last or (block == last + 1 and (place < whole or (place == whole and self._kept(source))))

    def _kept(self, source: RandomSource) -> bool:
        """True with a probability equal to the share of its mass that the last value has."""
        last, whole, _ = self._end

        def share(bits: int) -> tuple[int, int]:
            low, high = (end - whole for end in self._values_left(last, bits + _BITS))
            return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))

        return coins.UniformDigits(source).is_below(share)

    def _places(self, v: Floats) -> tuple[Floats, Floats]:
        """The block of abs(v), and the place of abs(v) in it, counted outwards."""
        w = float(self.width)
        j = np.abs(v) + (w - 1) / 2
        block = whole_quotient(j, w)
        return block, np.clip(np.rint(j - w * block), 0, w - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        last, whole, share = self._end
        block, place = self._places(v)
        mass = math.log(self._first_mass / self.width) - float(self.epsilon) * block
        beyond = np.where(place < whole, 0.0, np.where(place == whole, math.log(share) if share else -np.inf, -np.inf))
        return np.where(block <= last, mass, np.where(block == last + 1, mass + beyond, -np.inf))

    def _log_lower(self, v: Floats) -> Floats:
        """Pr[N <= v] for v < 0: the mass beyond the block of abs(v), and that of the block from abs(v) outwards."""
        last, whole, share = self._end
        epsilon, w = float(self.epsilon), float(self.width)
        block, place = self._places(v)
        inner = np.minimum(block, last)
        left = (whole + share) / w * np.exp(-epsilon * (last + 1 - inner))
        # In units of the mass of the block: the blocks up to the last whole one, and the end.
        between = math.exp(-epsilon) * np.expm1(-epsilon * (last - inner)) / math.expm1(-epsilon)
        inside = between + left + (w - place) / w
        # Block 0 has values on either side of 0: they are counted from the far end of the block.
        inside = np.where(block == 0, between + left + (v + (w - 1) / 2 + 1) / w, inside)
        outside = np.maximum(whole + share - place, 0.0) / w
        shares = np.where(block <= last, inside, np.where(block == last + 1, outside, 0.0))
        return math.log(self._first_mass) - epsilon * block + np.log(shares)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        last, whole, share = self._end
        w, m, epsilon = float(self.width), self._first_mass, float(self.epsilon)
        kernel = uniform_characteristic(w, t)
        start = w * (last + 1) - (w - 1) / 2
        row = whole * uniform_characteristic(whole, t) if whole else np.zeros_like(t)
        blocks: NDArray[Any] = np.ones_like(kernel)
        ends: NDArray[Any] = np.zeros_like(kernel)
        for sign in (1, -1):
            ahead = -epsilon + sign * 1j * w * t
            blocks = blocks + np.exp(ahead) * np.expm1(last * ahead) / np.expm1(ahead)
            rows = np.exp(sign * 1j * t * (start + (whole - 1) / 2)) * row
            ends = ends + rows + share * np.exp(sign * 1j * t * (start + whole))
        total = m * (blocks * kernel + math.exp(-epsilon * (last + 1)) / w * ends)
        return np.asarray(total if np.iscomplexobj(t) else np.real(total))


@dataclass(frozen=True)
class Uniform(Noise):
    """N uniform on ``points`` consecutive lattice values centred at 0, which are half integers if ``points`` is even.

    Guarantees: noisy totals of totals d apart have a total variation of exactly d/points.

    >>> Uniform(10).guarantee(1)
    tv(0.1)
    """

    points: int
    kind: ClassVar[str] = "uniform"
    grain: ClassVar[int] = 8  # rounding the points up to a whole number then adds at most 1/8 of a width

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", numbers.positive_integer(points=self.points))

    @property
    def plateau(self) -> int:
        return self.points

    def coarser(self, spacing: int) -> Uniform | None:
        return None if self.points % spacing else Uniform(self.points // spacing)

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.points % 2 else Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        return (self.points**2 - 1) / 12

    def reach(self, nats: float) -> float:  # noqa: ARG002 - the support is bounded
        return self.points / 2

    def exponent(self, x: float) -> float:  # noqa: ARG002 - nothing is exponentiated
        return 0.0

    def drift(self, theta: float) -> float:
        """The mean of the law tilted by e^(theta N)."""
        m = float(self.points)
        if theta * m < 1e-3:
            return theta * self.variance
        return 0.5 * (m / math.tanh(m * theta / 2) - 1 / math.tanh(theta / 2))

    def guarantee(self, shift: int) -> Notion | None:
        return Tv(Fraction(abs(shift), self.points)) if 0 < abs(shift) < self.points else None

    def scattered(self, rows: int) -> Notion | None:
        """The total variations add up, whether the rows move one count or several."""
        return self.guarantee(rows)

    def draw_doubled(self, source: RandomSource) -> int:
        return 2 * source.below(self.points) - (self.points - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(np.abs(v) <= (self.points - 1) / 2, -math.log(self.points), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.log(np.maximum(v + (self.points + 1) / 2, 0.0) / self.points)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return uniform_characteristic(float(self.points), t)


# From this deviation on the mass of a lattice value is integrated: the difference of two tails would lose digits.
_WIDE = 8.0


@dataclass(frozen=True)
class Gaussian(Noise):
    r"""The nearest integer to a normal number of standard deviation width/mu.

    .. math:: \Pr[N = k] = \Phi\Big(\frac{k + 1/2}{\sigma}\Big) - \Phi\Big(\frac{k - 1/2}{\sigma}\Big), \qquad
              \sigma = \frac{width}{\mu}

    Guarantees: noisy totals of totals d apart meet (mu d/width)-GDP exactly, as if the normal number itself were added.

    >>> Gaussian(Fraction(1, 2), 100).guarantee(200)
    gdp(1)
    """

    mu: Fraction
    width: int
    kind: ClassVar[str] = "gaussian"
    grain: ClassVar[int] = 8  # rounding then adds 1/768 of the squared width to the variance

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive_within_double(mu=self.mu))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))

    @property
    def sd(self) -> float:
        """Standard deviation before rounding."""
        return float(self.width / self.mu)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        if self.sd >= 2:  # rounding adds 1/12, up to e^(-2 pi^2 sd^2)
            return self.sd**2 + 1 / 12
        value = np.arange(math.ceil(40 * self.sd) + 2, dtype=np.float64)
        return float(2 * np.sum(value**2 * self.pmf(value)))

    def reach(self, nats: float) -> float:
        return self.sd * math.sqrt(2 * nats) + 1

    def transform_reach(self, nats: float) -> float:
        return math.sqrt(2 * nats) / self.sd

    def exponent(self, x: float) -> float:
        return (x / self.sd) ** 2 / 2

    def drift(self, theta: float) -> float:
        """The mean of the law tilted by e^(theta N)."""
        return self.sd**2 * theta

    def log_excess(self, theta: float) -> float:
        return (self.sd * theta) ** 2 / 2 + theta / 2

    def guarantee(self, shift: int) -> Notion | None:
        return Gdp(self.mu * abs(shift) / self.width) if shift else None

    def scattered(self, rows: int) -> Notion | None:
        """The rows in one count: the squares of the shifts of several counts add up, which is less."""
        return self.guarantee(rows)

    def hides(self, shift: int) -> bool:
        return abs(shift) <= self.width

    def draw_doubled(self, source: RandomSource) -> int:
        return self.rounded(*_half_normal(source), source)

    def rounded(self, whole: int, digits: coins.UniformDigits, source: RandomSource) -> int:
        """Twice the integer nearest to ``whole + digits`` deviations, with a fair sign. Draws the digits it needs."""
        top, bottom = self.width * self.mu.denominator, self.mu.numerator  # the deviation is top/bottom
        # Invariant: by the digits known so far, the number plus 1/2 lies in [low, high)/(2 bottom 2^bits).
        while True:
            known = (whole << digits.bits) + digits.value
            half = bottom << digits.bits
            low, high = 2 * top * known + half, 2 * top * (known + 1) + half
            rounded = low // (2 * half)
            if high <= (rounded + 1) * 2 * half:
                return 2 * rounded if source.bits(1) else -2 * rounded
            digits.extend()

    def _log_pmf(self, v: Floats) -> Floats:
        from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

        sd, size = self.sd, np.abs(v)
        if sd < _WIDE:
            near, far = log_ndtr(-(size - 0.5) / sd), log_ndtr(-(size + 0.5) / sd)
            middle = math.log(math.erf(0.5 / sd / math.sqrt(2)))
            return np.where(size == 0, middle, near + np.log(-np.expm1(far - near)))
        nodes, weights = np.polynomial.legendre.leggauss(20)
        u = nodes / 2
        inside = np.exp(-np.multiply.outer(size / sd**2, u) - u**2 / (2 * sd**2)) @ (weights / 2)
        return np.asarray(-((size / sd) ** 2) / 2 - math.log(sd * math.sqrt(2 * math.pi)) + np.log(inside))

    def _log_lower(self, v: Floats) -> Floats:
        from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

        return np.asarray(log_ndtr((v + 0.5) / self.sd))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""Poisson summation of the normal law's transform times that of the rounding.

        .. math:: \sum_k e^{-\sigma^2 (t + 2\pi k)^2/2} \frac{(-1)^k \sin(t/2)}{(t + 2\pi k)/2}
        """
        sd = self.sd
        safe = np.where(t == 0, 1, t)
        total = np.where(t == 0, 1, np.exp(-((sd * t) ** 2) / 2) * np.sin(safe / 2) / (safe / 2))
        for k in range(1, math.ceil(9.5 / (2 * math.pi * sd)) + 1):
            for turned in (t + 2 * math.pi * k, t - 2 * math.pi * k):
                total = total + (-1) ** k * np.exp(-((sd * turned) ** 2) / 2) * np.sin(t / 2) / (turned / 2)
        return np.asarray(total)


def _half_normal(source: RandomSource) -> tuple[int, coins.UniformDigits]:
    """k and x such that k + x has the law of the absolute value of a standard normal number (algorithm N).

    k is kept in proportion to e^(-k/2) e^(-k(k-1)/2) = e^(-k^2/2), x in proportion to e^(-x(2k+x)/2).
    """
    # Invariant: a rejected pair leaves no trace.
    while True:
        k = 0
        while coins.bernoulli_exp(1, 2, source):
            k += 1
        if not coins.bernoulli_exp(k * (k - 1), 2, source):
            continue
        x = coins.UniformDigits(source)
        if all(_kept_share(x, k, source) for _ in range(k + 1)):
            return k, x


def _kept_share(x: coins.UniformDigits, k: int, source: RandomSource) -> bool:
    """True with probability e^(-y), y = x (2k + x)/(2k + 2) < 1: ``_bernoulli_exp_within_one`` with a lazy y."""
    j = 1
    # Invariant: the coins y/1, ..., y/(j-1) all came up true.
    while _below_mass(x, k, j, source):
        j += 1
    return j & 1 == 1


def _below_mass(x: coins.UniformDigits, k: int, j: int, source: RandomSource) -> bool:
    """True with probability y/j = x (2k + x)/(j (2k + 2))."""

    def mass(bits: int) -> tuple[int, int]:
        while x.bits < bits:
            x.extend()
        low, high = (value * ((2 * k << x.bits) + value) << bits for value in (x.value, x.value + 1))
        scale = j * (2 * k + 2) << 2 * x.bits
        return low // scale, -(-high // scale)

    return coins.UniformDigits(source).is_below(mass)


CANONICAL = (Tulap, TruncatedTulap, Uniform, Gaussian)
"""The kinds of noise that :func:`canonical_noise` returns."""


def canonical_noise(notion: Notion, width: int | Fraction, *, whole: bool = False) -> Noise:
    r"""The noise with which noisy totals meet the notion, so that statistics may be released.

    For pure, approx, tv and gdp it is the canonical one, :math:`F(x + width) = h(F(x))` (Awan and Vadhan 2023): no
    noise is tighter. For zcdp, renyi and kl it is Gaussian noise that meets the divergence.

    Args:
        notion: the notion that the noisy totals meet.
        width: the largest difference between the totals of neighbours, in lattice steps.
        whole: whether the noise must lie on the integers; it then has one more value instead of half integers.

    >>> canonical_noise(Tv(Fraction(1, 10)), 3), canonical_noise(Zcdp(Fraction(1, 2)), 3).guarantee(3)
    (Uniform(points=30), gdp(1))
    """
    width = math.ceil(width)
    blocks = width | 1 if whole else width
    if (isinstance(notion, Pure) and notion.loss != math.inf) or (isinstance(notion, Approx) and not notion.delta):
        return Tulap(notion.loss, blocks)
    if isinstance(notion, Approx) and notion.loss:
        return TruncatedTulap(notion.loss, notion.delta, blocks)
    if isinstance(notion, Approx | Tv):
        points = math.ceil(width / notion.exact[-1])
        return Uniform(points | 1 if whole else points)
    if isinstance(notion, Gdp):
        return Gaussian(notion.mu, width)
    if isinstance(notion, Zcdp | Renyi | Kl):
        rho = notion.exact[-1] / (notion.order if isinstance(notion, Renyi) else 1)
        return Gaussian(square_root(2 * rho, up=False), width)
    raise InvalidInput(f"{notion} has no noise: it is not private.")


def counts_noise(notion: Notion, around: Neighbourhood) -> Noise:
    """The noise on each of many counts with which all of them together meet the notion.

    Replacing a person takes up to ``rows`` records out of some counts and puts as many into others, which may all be
    different counts. :func:`counts_guarantee` says what hides that.

    >>> counts_noise(Pure(1), Neighbourhood()), counts_noise(Zcdp(1), Neighbourhood("add-remove"))
    (Tulap(epsilon=Fraction(1, 2), width=1), Gaussian(mu=Fraction(282842712474619, 200000000000000), width=1))
    """
    return canonical_noise(per_row(notion.share(_sides(around)), around.rows), 1)


def counts_guarantee(noise: Noise, around: Neighbourhood) -> list[Notion | None]:
    """The notions that add up to the guarantee of many counts with this noise: for rows taken out, and rows put in."""
    return [noise.scattered(around.rows)] * _sides(around)


def _sides(around: Neighbourhood) -> int:
    """How often neighbours differ by up to ``rows`` records that move counts the same way."""
    return 2 if around.kind == "replace" else 1


def loss_range(notion: Notion) -> Fraction:
    r"""The largest e such that a mechanism whose privacy losses lie in *some* interval of length e meets the notion.

    The exponential mechanism with rate e is such a mechanism if a record moves all utilities the same way, by at most
    1. Then no event's log odds change by more than e, :math:`h(p) = \sigma(\sigma^{-1}(p) + e)`, and every Renyi
    divergence of order a is at most :math:`a e^2/8`. Argument: proof.md. The result is rounded down unless it is
    rational; for pure it is epsilon.

    >>> loss_range(Pure(1)), loss_range(Zcdp(0.5)), round(float(loss_range(Tv(0.1))), 6)
    (Fraction(1, 1), Fraction(2, 1), 0.401341)
    """
    if isinstance(notion, Pure):
        return Fraction(notion.loss)
    if isinstance(notion, Tv):  # h gains at most tanh(e/4)
        return _below(4 * math.atanh(float(notion.eta)))
    if isinstance(notion, Gdp):  # the two h touch where both are balanced
        up, down = normal(float(notion.mu) / 2)
        return _below(2 * (math.log(up) - math.log(down)))
    if isinstance(notion, Approx):
        return max(_approx_range(notion), Fraction(notion.loss))
    bound = notion.exact[-1]
    order = notion.order if isinstance(notion, Renyi) else 1
    loss = 0 if isinstance(notion, Zcdp) else bound  # the divergence of one order is at most the loss
    return max(square_root(8 * bound / order, up=False), Fraction(loss))


def _below(value: float) -> Fraction:
    """A short rational that is safely at most the computed value."""
    return Fraction(f"{value * (1 - 1e-9):.12g}")


def _approx_range(notion: Approx) -> Fraction:
    """The largest e with sigma(sigma^-1(p) + e) - e^epsilon p <= delta for every p, rounded down."""
    factor = math.exp(min(notion.epsilon, 700.0))

    def too_long(e: float, delta: float = float(notion.delta) * (1 - 1e-9)) -> bool:
        return golden_maximum(lambda y: from_logit(y + e)[0] - factor * from_logit(y)[0], -745.0, 20.0) > delta

    low, high = notion.epsilon, notion.epsilon + 1
    while not too_long(high):
        low, high = high, 2 * high
    return _below(root(too_long, low, high, relative=1e-13)[0])
