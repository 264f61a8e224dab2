r"""Tulap, the tight noise: no epsilon-DP test on two points decides better. Also its truncated kin, and the stair.

``TruncatedTulap`` is canonical for (epsilon, delta): it is Tulap with tails that end.

``Stair`` is the noise of the best decision, and Tulap is its average over all offsets. It releases a level of the total
and never the noisy total itself. Every epsilon-DP test is a mixture of tests that add a two-sided geometric number G to
an integer which one record moves by at most 1. Such an integer is the level of the total, the number of whole widths by
which it exceeds a cutoff:

.. math:: T = \lceil (S - \kappa)/w \rceil + G, \qquad S + wG > \kappa \iff T \ge 1.

So a decision has the error rates of the noise wG. Only T may leave, because S + wG tells S modulo w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.numbers import Floats, exp_bounds, first_true, rational
from privatest.privacy import randomness as coins
from privatest.privacy.noise import (
    Noise,
    positive_within_double,
    two_sided_characteristic,
    uniform_characteristic,
    whole_quotient,
)
from privatest.privacy.notions import Approx, Notion
from privatest.privacy.randomness import RandomSource


@dataclass(frozen=True)
class _WholeWidths(Noise):
    """What ``Stair`` and ``Tulap`` share: a two-sided geometric number of whole widths."""

    epsilon: Fraction
    width: int

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - whatever a step is
        return cls(epsilon, math.ceil(width))

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive_within_double(epsilon=self.epsilon))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))

    @property
    def plateau(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> Self | None:
        return None if self.width % spacing else type(self)(self.epsilon, self.width // spacing)

    @property
    def decay_rate(self) -> float:
        return float(self.epsilon / self.width)

    def _exact_loss(self, shift: int) -> Fraction:
        """One epsilon for each width, or part of a width, by which the total moves."""
        return self.epsilon * -(-shift // self.width)


@dataclass(frozen=True)
class Stair(_WholeWidths):
    r"""N = width G, G a two-sided geometric: Pr[G = g] = tanh(epsilon/2) e^(-epsilon abs(g)).

    Guarantees: the level of S + N, counted in widths from any public cutoff, is epsilon-DP if S moves by at most
    ``width``. S + N itself is not private: ``spacing`` says so, and tests release the level only.
    Reference: Awan and Slavkovic 2018 (their F is the average of these decisions over all cutoffs).

    >>> Stair(Fraction(1, 2), 3).privacy_loss(3), Stair(Fraction(1, 2), 3).spacing
    (0.5, 3)
    """

    kind: ClassVar[str] = "stair"
    test: ClassVar[str] = "stair"

    @property
    def spacing(self) -> int:
        return self.width

    @property
    def variance(self) -> float:
        epsilon = float(self.epsilon)
        return self.width**2 * 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2

    def draw_doubled(self, source: RandomSource) -> int:
        p, q = self.epsilon.numerator, self.epsilon.denominator
        return 2 * self.width * coins.two_sided_geometric(p, q, source)

    def _log_pmf(self, v: Floats) -> Floats:
        epsilon, g = float(self.epsilon), v / self.width
        return np.where(g == np.floor(g), math.log(math.tanh(epsilon / 2)) - epsilon * np.abs(g), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        # Pr[G <= -m] = b^m/(1+b) for m >= 0.
        epsilon = float(self.epsilon)
        return epsilon * whole_quotient(v, self.width) - math.log1p(math.exp(-epsilon))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return two_sided_characteristic(float(self.epsilon), self.width * t)


_BITS = 128


@dataclass(frozen=True)
class Tulap(_WholeWidths):
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
    r"""Tulap noise whose tails end: blocks of ``width`` values, each block e^-epsilon as likely as the one before.

    With b = e^-epsilon, a value of block g has probability :math:`m b^{|g|}/w`, m = (1 - b + 2 delta b)/(1 + b), until
    all of the mass is used up; the last value on either side has what is left.

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
            raise InvalidInput(f"delta={shown(self.delta)} must lie between 1e-100 and 1: for 0 there is Tulap.")
        object.__setattr__(self, "delta", delta)

    @property
    def plateau(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> TruncatedTulap | None:
        """None unless the spacing is 1, because the end is not at a multiple of the spacing."""
        return self if spacing == 1 else None

    @property
    def offset(self) -> Fraction:
        return Fraction(0) if self.width % 2 else Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        """The rate of Tulap, which has more mass beyond any value."""
        return float(self.epsilon / self.width)

    @cached_property
    def _end(self) -> tuple[int, int, float]:
        """K, f, share: blocks up to K and f values of the next are whole, and one more has this share of its mass."""
        last = first_true(lambda block: not self._fills_next(block), 0)
        bits = _BITS
        # Invariant: too few digits are known to tell the number of whole values.
        while True:
            low, high = self._values_left(last, bits)
            if math.floor(low) == math.floor(high):
                return last, math.floor(low), float((low + high) / 2 - math.floor(low))
            bits *= 2

    def _fills_next(self, block: int) -> bool:
        """Whether the mass beyond a block fills the next block."""
        bits = _BITS
        # Invariant: too few digits are known to compare the number of values with the width.
        while True:
            least, most = self._values_left(block, bits)
            if least >= self.width:
                return True
            if most < self.width:
                return False
            bits *= 2

    def _values_left(self, block: int, bits: int) -> tuple[Fraction, Fraction]:
        r"""Bounds on the number of values of the next block that the mass beyond a block makes.

        .. math:: w \frac{p_0 - \delta b (b^{-K} - 1)/(1 - b)}{m b}, \qquad p_0 = \frac{b (1 - \delta)}{1 + b}
        """
        if not block and self.delta == Fraction(1, 2):  # whatever b is; here alone bounds of any precision overlap
            return Fraction(self.width, 2), Fraction(self.width, 2)
        p, q = self.epsilon.numerator, self.epsilon.denominator
        size = bits + 2 * math.ceil((block + 2) * self.epsilon)
        one = Fraction(1, 1 << size)
        b_low, b_high = (one * end for end in exp_bounds(p, q, size))
        power_low, power_high = (one * end for end in exp_bounds(block * p, q, size))

        def at(b: Fraction, other: Fraction, power: Fraction) -> Fraction:
            """The formula, monotone in each of the three places where b stands."""
            first = (1 - self.delta) / (1 + other)
            second = self.delta * (1 / power - 1) / (1 - other)
            m = (1 - b + 2 * self.delta * b) / (1 + b)
            return self.width * (first - second) / m

        # It is monotone in each place, so that its least and its most are at corners.
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
        """Twice a number: no value that is at most as far from 0 is ever rejected."""
        return 2 * self.width * (self._end[0] + 1) - self.width

    def keeps(self, doubled: int, source: RandomSource) -> bool:
        """Whether to keep a draw of :attr:`untruncated`, given twice its value. At the very end, chance decides."""
        if abs(doubled) <= self.whole:
            return True
        last, whole, _ = self._end
        block, place = divmod((abs(doubled) + self.width - 1) // 2, self.width)
        return block <= last or (block == last + 1 and (place < whole or (place == whole and self._kept(source))))

    def _kept(self, source: RandomSource) -> bool:
        """True with the probability that is the last value's share: lazily drawn bits are compared with its bounds."""
        last, whole, _ = self._end
        bits, uniform = 64, source.bits(64)
        # Invariant: the uniform number lies in [uniform, uniform + 1)/2^bits, within the bounds of the share.
        while True:
            low, high = (end - whole for end in self._values_left(last, bits + _BITS))
            if Fraction(uniform + 1, 1 << bits) <= low:
                return True
            if Fraction(uniform, 1 << bits) >= high:
                return False
            bits, uniform = bits + 64, uniform << 64 | source.bits(64)

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
