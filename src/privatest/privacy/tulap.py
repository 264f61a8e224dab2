r"""Tulap noise, the noise of the tight test, its truncated form, and uniform noise: their laws and exact draws.

- ``Tulap`` is canonical for ``pure``: no epsilon-DP test on two points decides better.
- ``TruncatedTulap`` is canonical for ``approx``: it is Tulap noise with bounded support.
- ``Uniform`` is canonical for ``tv``.

A draw of Tulap noise is a two-sided geometric number of whole widths plus a uniform part of a width; a draw of the
truncated noise is a draw of Tulap noise that is not rejected. Many draws at once: ``bulk_draws.py``. Arguments:
proof.md.
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
from privatest.numbers import Floats, exp_bounds, first_true, rational
from privatest.privacy import randomness as coins
from privatest.privacy.noise import (
    Noise,
    WholeWidths,
    positive_within_double,
    two_sided_characteristic,
    uniform_characteristic,
    whole_quotient,
)
from privatest.privacy.notion import Approx, Notion, Tv
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
            """Return the formula, which is monotone in each of the three places where b occurs."""
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
        """Return the guarantee for all rows in one count, where delta grows faster than in several counts."""
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
        return block <= last or (block == last + 1 and (place < whole or (place == whole and self._accepts(source))))

    def _accepts(self, source: RandomSource) -> bool:
        """Return True with a probability equal to the share of its mass that the last value has."""
        last, whole, _ = self._end

        def share(bits: int) -> tuple[int, int]:
            low, high = (end - whole for end in self._values_left(last, bits + _BITS))
            return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))

        return coins.UniformDigits(source).is_below(share)

    def _places(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the block of abs(v), and the place of abs(v) in it, counted outwards."""
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
        """Return the mean of the law tilted by e^(theta N)."""
        m = float(self.points)
        if theta * m < 1e-3:
            return theta * self.variance
        return 0.5 * (m / math.tanh(m * theta / 2) - 1 / math.tanh(theta / 2))

    def guarantee(self, shift: int) -> Notion | None:
        return Tv(Fraction(abs(shift), self.points)) if 0 < abs(shift) < self.points else None

    def scattered(self, rows: int) -> Notion | None:
        """Return the guarantee for any rows: total variations add up, whether the rows move one count or several."""
        return self.guarantee(rows)

    def draw_doubled(self, source: RandomSource) -> int:
        return 2 * source.below(self.points) - (self.points - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(np.abs(v) <= (self.points - 1) / 2, -math.log(self.points), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.log(np.maximum(v + (self.points + 1) / 2, 0.0) / self.points)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return uniform_characteristic(float(self.points), t)
