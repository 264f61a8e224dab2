r"""The best decisions that a notion allows: its chains, in doubles and drawn exactly, and the stair for ``pure``.

A decision that changes as much with each record as the notion allows follows a chain g(k + 1) = h(g(k)), where g(k) is
the probability of "null" if k records speak for it. No decision does better, so bounds are computed from chains too.

**In doubles.** All chains together are one distribution function F with

.. math:: F(t + 1) = h(F(t)), \qquad F(-t) = 1 - F(t),

the law of the canonical noise (Awan and Vadhan 2023): a chain is F at t, t + 1, t + 2, ... A finite :class:`Ladder` has
a few rungs to each record, numbered by whole numbers; rung 0 is where h is balanced. Where h is made of straight lines,
the rungs are the kinks of F, and between two rungs every chain is linear in its start.

**The stair.** Every epsilon-DP test is a mixture of tests that add a two-sided geometric number G to an integer which
one record moves by at most 1. Such an integer is the level of the total, the number of whole widths by which it exceeds
a cutoff:

.. math:: T = \lceil (S - \kappa)/w \rceil + G, \qquad S + wG > \kappa \iff T \ge 1.

So a decision has the error rates of the noise wG, which is :class:`Stair`. Only T may leave, because S + wG tells S
modulo w. Tulap noise is the average of the stairs over all cutoffs.

**Drawn exactly.** The noise :class:`Chain` makes a decision that looks at the level of a total, which one record moves
by one at most. Here g has values on a grid of 2^-192, each rounded down from what is proven to be at most h of the one
before (rigorous enclosures: Johansson's Arb, by python-flint). So the decision is a coin with a rational probability,
and no draw depends on a rounding. Under approx and tv the noisy level may leave, too: that is proven of the whole
numbers themselves (:func:`levels_leave`). Under the others only the decision may: for zcdp, renyi and kl nothing else
is private, and for gdp nothing else is proven.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest import numbers
from privatest.errors import InvalidInput, MissingExtra, shown
from privatest.numbers import Floats, Integers, clipped, exp_below
from privatest.privacy import randomness as coins
from privatest.privacy.divergences import Odds, quantile
from privatest.privacy.noise import Noise, WholeWidths, two_sided_characteristic, whole_quotient
from privatest.privacy.notion import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, is_straight
from privatest.privacy.randomness import RandomSource

SMALLEST = 1e-18
"""A chain ends where 1 - g falls to this or below."""
LONGEST = 1_000_000
"""The largest number of values of a chain."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """F at a few rungs to each record, hence all chains of a notion.

    Attributes:
        notion: the notion whose h the chains follow.
        starts: F and 1 - F at rungs 0, ..., ``fine``: from p to 1 - p, where h(p) = 1 - p.
        rests: 1 - F at rungs 0, 1, 2, ..., each with a small relative error; beyond the last rung it is 0.
    """

    notion: Notion
    starts: tuple[Odds, ...]
    rests: Floats

    @property
    def fine(self) -> int:
        """The number of rungs to a record."""
        return len(self.starts) - 1

    @property
    def records(self) -> int:
        """The number of records that lead from the middle to the end."""
        return -(-len(self.rests) // self.fine)

    def above(self, rungs: Integers) -> Floats:
        """1 - F at each rung. At negative rungs F mirrors its values at positive ones."""
        up = clipped(rungs, 0, len(self.rests))
        down = clipped(self.fine - rungs, 0, len(self.rests))
        ended = np.append(self.rests, 0.0)
        return np.where(rungs >= 0, ended[up], 1.0 - ended[down])

    def below(self, rungs: Integers) -> Floats:
        """F at each rung."""
        return self.above(self.fine - rungs)

    def between(self, rung: int, share: float) -> Odds:
        """The start at ``share``, from 0 to 1, of the way from one of the rungs 0, ..., ``fine`` - 1 to the next."""
        (p, rest), (q, other) = self.starts[rung], self.starts[rung + 1]
        return p + share * (q - p), rest + share * (other - rest)


@lru_cache(maxsize=32)
def make_ladder(notion: Notion, fine: int) -> Ladder:
    """Return the ladder with at most ``fine`` rungs to a record, and fewer if one record gains little.

    If h is made of straight lines, the rungs are the kinks of F.

    >>> make_ladder(Tv(0.25), 4).starts
    ((0.375, 0.625), (0.5, 0.5), (0.625, 0.375))
    """
    low, high = notion.balanced
    fine = math.ceil(fine * min(2 * (high - low), 1.0))
    inner = _kinks(notion) if is_straight(notion) else [low + (high - low) * i / fine for i in range(1, fine)]
    starts = ((low, high), *((s, 1 - s) for s in inner), (high, low))
    rows = [chain(notion, *start) for start in starts[:-1]]
    rests = np.zeros((max(map(len, rows)), len(rows)))
    for i, row in enumerate(rows):
        rests[: len(row), i] = row
    flat = rests.ravel()
    return Ladder(notion, starts, flat[: int(np.flatnonzero(flat)[-1]) + 1])


def chain(notion: Notion, p: float, rest: float) -> list[float]:
    """1 - g for g = p, h(p), h(h(p)), ... until nothing is left. ``rest`` is 1 - p."""
    rests = [rest]
    while rest > SMALLEST and len(rests) < LONGEST:
        before = rest
        p, rest = notion.step(p, rest)
        if not rest < before:  # a chain that stands still
            break
        rests.append(rest)
    return rests


def _kinks(notion: Notion) -> list[float]:
    """The starts from which the chain or its mirror image reaches 1 - h(0), where h becomes 1, in increasing order."""
    low, high = notion.balanced
    left, taken = notion.step(0.0, 1.0)[::-1]  # 1 - h(0) and h(0)
    starts = set()
    if taken > 0:
        p, rest = left, taken
        # Invariant: the chain from p meets 1 - h(0); its rest grows by one record at a time.
        while p > high:
            rest, p = notion.step(rest, p)
        starts = {s for s in (p, rest) if low * (1 + 1e-12) < s < high * (1 - 1e-12)}
        if math.isclose(p, rest, rel_tol=1e-12):
            starts = {0.5}
    return sorted(starts)


BITS = 192
ONE = 1 << BITS
# The chain ends where a probability or its complement is below 2^-100: equal probabilities meet every notion.
TAIL = 1 << (BITS - 100)
MOST_LEVELS = 20_000
# 1 - h is computed in doubles and enlarged by these relative amounts, one after the other, until a proof succeeds.
SLACKS = (4e-13, 1e-11, 1e-9, 1e-7, 1e-5)
# The level of a draw beyond the last level, for which the decision is the same at every level.
BEYOND = 1 << 80


@dataclass(frozen=True)
class Stair(WholeWidths):
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


@dataclass(frozen=True)
class Chain(Noise):
    r"""N = width G with Pr[G > -k] = g(k), where g is the chain of a notion: a decision by the level of a total.

    Guarantees: the decision meets the notion for any two totals at most ``width`` apart. Draws are exact.

    Attributes:
        notion: the notion that the decision meets.
        width: the largest difference between the totals of neighbours, in lattice steps.
        start: g(0), the probability of "null" at level 0.
        flipped: whether this is -N.
    """

    notion: Notion
    width: int
    start: Fraction
    flipped: bool = False
    kind: ClassVar[str] = "chain"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))
        if not 0 < self.start < 1:
            raise InvalidInput(f"start={shown(self.start)} must lie strictly between 0 and 1.")
        _ = self._heights  # refuses before any draw what cannot be computed

    @property
    def _heights(self) -> tuple[int, tuple[int, ...]]:
        """The first level, and 2^192 g at it and at all later ones; beyond either end g stays as it is there."""
        first, heights = chain_levels(self.notion, self.start)
        if not self.flipped:
            return first, heights
        # -G: Pr[-G > -k] = 1 - Pr[G > k - 1]
        return 1 - (first + len(heights) - 1), tuple(ONE - height for height in reversed(heights))

    @property
    def heights(self) -> tuple[int, ...]:
        """2^192 times the probability of "null" at each level; beyond either end it stays as it is there."""
        return self._heights[1]

    @property
    def _logs(self) -> tuple[int, Floats, Floats]:
        """The first level, and log g and log(1 - g) at it and at all later ones."""
        return _logs(*self._heights)

    @property
    def decision_only(self) -> bool:
        """Whether only the decision may leave. Otherwise the total's level plus G may leave, too."""
        return not levels_leave(self.notion, self.heights)

    @property
    def mirrored(self) -> Chain:
        return Chain(self.notion, self.width, self.start, not self.flipped)

    @property
    def plateau(self) -> int:
        return self.width

    @property
    def spacing(self) -> int:
        return self.width

    def coarser(self, spacing: int) -> Chain | None:
        whole = self.width % spacing == 0
        return Chain(self.notion, self.width // spacing, self.start, self.flipped) if whole else None

    def describe(self) -> str:
        return f"Chain of {self.notion}"

    def _law(self) -> tuple[Floats, Floats]:
        """Values of G and their probabilities, without the 2^-100 beyond either end."""
        first, log_g, log_rest = self._logs
        g, rest = np.exp(log_g), np.exp(log_rest)
        # Pr[G = -k + 1] = g(k) - g(k - 1), computed from the smaller tail, which has more digits.
        masses = np.where(g[1:] < 0.5, np.diff(g), -np.diff(rest))
        values: Floats = 1.0 - (first + np.arange(1, len(g), dtype=np.float64))
        return values, np.maximum(masses, 0.0)

    @property
    def decay_rate(self) -> float:
        values, _ = self._law()
        return 69.0 / (self.width * float(np.abs(values).max(initial=1.0) + 1.0))

    def reach(self, nats: float) -> float:
        first, log_g, log_rest = self._logs
        levels = first + np.arange(len(log_g))
        inside = levels[(log_g > -nats) & (log_rest > -nats)]
        return self.width * (float(np.abs(inside).max(initial=0)) + 2.0)

    def log_excess(self, theta: float) -> float:
        values, masses = self._law()
        return math.log(float(masses @ np.exp(np.minimum(theta * self.width * values, 700.0))))

    @property
    def variance(self) -> float:
        values, masses = self._law()
        mean = float(masses @ values)
        return self.width**2 * float(masses @ (values - mean) ** 2)

    def draw_doubled(self, source: RandomSource) -> int:
        first, heights = self._heights
        place = bisect_right(heights, source.bits(BITS))  # the decision is "null" from this level on
        if place == 0:
            return 2 * self.width * BEYOND
        return -2 * self.width * BEYOND if place == len(heights) else 2 * self.width * (1 - first - place)

    def _at(self, v: Floats) -> tuple[Floats, Floats]:
        """log Pr[N > v] and log Pr[N <= v], which are log g and log(1 - g) at level -floor(v/width)."""
        first, log_g, log_rest = self._logs
        place = np.clip(-whole_quotient(v, self.width) - first, 0, len(log_g) - 1)
        place = np.where(np.isnan(place), 0, place).astype(np.intp)
        return log_g[place], log_rest[place]

    def _log_pmf(self, v: Floats) -> Floats:
        values, masses = self._law()
        whole = v / self.width
        place = np.clip(values[0] - whole, 0, len(values) - 1)
        place = np.where(np.isnan(place), 0, place).astype(np.intp)
        hit = values[place] == whole
        return np.where(hit, np.log(masses[place]), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return self._at(v)[1]

    def _probability(
        self, x: ArrayLike | Fraction, below: Callable[[Floats], Floats], above: Callable[[Floats], Floats]
    ) -> Floats:
        """As in the base class, but without symmetry."""
        v = np.floor(np.asarray(x, dtype=np.float64))
        with np.errstate(all="ignore"):
            log_above, log_below = self._at(v)
            small = log_below < log_above
            values = np.where(small, below(np.where(small, log_below, -1.0)), above(np.where(small, -1.0, log_above)))
        result: Floats = np.asarray(values)[()]
        return result

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        values, masses = self._law()
        return np.asarray(np.exp(1j * np.multiply.outer(t, self.width * values)) @ masses)

    def guarantee(self, shift: int) -> Notion | None:
        """Return the notion that the decision meets."""
        return self.notion if 0 < abs(shift) <= self.width else None


def decision_noise(notion: Notion, width: int | Fraction, start: Fraction | None = None) -> Noise:
    """The noise of the best decision under a notion: the stair for ``pure``, else the notion's chain from a start.

    Args:
        notion: the notion that the decision meets.
        width: the largest difference between the totals of neighbours, in lattice steps.
        start: Pr["null"] at level 0; the first of :func:`chain_starts` if None.

    >>> decision_noise(Pure(Fraction(1)), 3)
    Stair(epsilon=Fraction(1, 1), width=3)
    """
    if isinstance(notion, Pure):
        return Stair(notion.loss, math.ceil(width))
    return Chain(notion, math.ceil(width), chain_starts(notion)[0] if start is None else start)


def chain_starts(notion: Notion) -> list[Fraction]:
    """Return the starts to choose from. The chain has the value 1/2 halfway between two levels, or at a level."""
    low = Fraction(round(notion.balanced[0] * (1 << 60)), 1 << 60)
    return [low] if isinstance(notion, Pure) else [low, Fraction(1, 2)]


@lru_cache(maxsize=64)
def _logs(first: int, heights: tuple[int, ...]) -> tuple[int, Floats, Floats]:
    logs = [_log(height) for height in heights], [_log(ONE - height) for height in heights]
    return first, np.array(logs[0]), np.array(logs[1])


def _log(height: int) -> float:
    return math.log(height) - BITS * math.log(2) if height else -math.inf


@lru_cache(maxsize=64)
def chain_levels(notion: Notion, start: Fraction) -> tuple[int, tuple[int, ...]]:
    """Return the first level of a chain, and 2^192 g at it and at all later ones. At level 0, g is the start, rounded.

    Guarantees: for any two neighbouring levels, and for those beyond the ends, the two probabilities are proven to meet
    the notion both ways.
    """
    middle = round(start * ONE)
    up = _upwards(notion, middle)
    down = _upwards(notion, ONE - middle)  # q <= h(p) iff 1 - p <= h(1 - q)
    heights = [*(ONE - height for height in reversed(down[1:])), *up]
    return 1 - len(down), tuple(heights)


def _upwards(notion: Notion, start: int) -> list[int]:
    """2^192 g at level 0, where it is ``start``, and at all later levels."""
    heights = [start]
    while ONE - heights[-1] > TAIL:
        following = _following(notion, heights[-1])
        if following <= heights[-1]:
            break
        heights.append(following)
        if len(heights) > MOST_LEVELS:
            raise InvalidInput(
                f"privacy={notion.text!r} is so strong that a decision has more than {MOST_LEVELS} levels. "
                "Use release='statistic'."
            )
    left = ONE - heights[-1]
    if left > 0 and isinstance(notion, Approx | Tv) and left <= math.floor(notion.exact[-1] * ONE):
        heights.append(ONE)  # delta, or eta, covers what is left
    return heights


def _following(notion: Notion, height: int) -> int:
    """Nearly the largest height that is proven to be at most 2^192 h at this height."""
    if isinstance(notion, Tv):
        return min(height + math.floor(Fraction(notion.eta) * ONE), ONE)
    if isinstance(notion, Pure | Approx):
        return _by_lines(notion, height)
    arb = _arb()
    p, rest = height / ONE, (ONE - height) / ONE
    if isinstance(notion, Gdp):
        return _gaussian(arb, notion, height, quantile(p, rest))
    _, left = notion.step(p, rest)
    for slack in SLACKS:
        higher = ONE - math.ceil(Fraction(left * (1 + slack)) * ONE)
        if higher <= height:
            return height
        if proven(notion, height, higher):
            return higher
    return height


def _by_lines(notion: Pure | Approx, height: int) -> int:
    """min(e^eps p + delta, 1 - e^-eps (1 - p - delta), 1), rounded down by bounds on the exponentials."""
    # Slightly less than delta, so that what all levels lose by rounding down fits in: see `levels_leave`.
    delta = notion.delta * (1 - Fraction(1, 1 << 60)) if isinstance(notion, Approx) else Fraction(0)
    shrink = 1 / exp_below(Fraction(notion.loss), BITS + 64) if notion.loss else Fraction(1)  # at least e^-eps
    p = Fraction(height, ONE)
    if 1 - p <= delta:
        return ONE
    return math.floor(min(p / shrink + delta, 1 - shrink * (1 - p - delta)) * ONE)


@lru_cache(maxsize=64)
def levels_leave(notion: Notion, heights: tuple[int, ...]) -> bool:
    """Whether the level plus G, with Pr[G > -k] given by ``heights``, is proven to meet the notion itself.

    For two such noisy levels one apart and all events, the sum of q - e^epsilon p over the values where it is positive
    must be at most delta, both ways. It is computed in whole numbers with a rational lower bound on e^epsilon, so that
    rounding never makes it true.
    """
    if not isinstance(notion, Approx | Tv) or heights[0] != 0 or heights[-1] != ONE:
        return False
    loss = notion.loss if isinstance(notion, Approx) else Fraction(0)
    least = exp_below(Fraction(loss), BITS + 64) if loss else Fraction(1)  # at most e^epsilon
    masses = [0, *(high - low for low, high in pairwise(heights)), 0]
    return all(
        sum((max(q - least * p, Fraction(0)) for p, q in pairwise(side)), Fraction(0)) <= notion.exact[-1] * ONE
        for side in (masses, masses[::-1])
    )


def _arb() -> Any:
    """Return the library of rigorous real numbers, with a precision far beyond the grid's."""
    try:
        import flint  # an extra
    except ImportError:
        raise MissingExtra.of("release='decision' under gdp, zcdp, renyi or kl needs python-flint.", "exact") from None
    flint.ctx.prec = BITS + 128
    return flint


def _real(flint: Any, value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _gaussian(flint: Any, notion: Gdp, height: int, about: float) -> int:
    """Phi(x + mu), rounded down, for an x with Phi(x) proven to be at most p. So it is at most h(p)."""
    half, root = flint.arb(1) / 2, flint.arb(2).sqrt()
    rest = _real(flint, Fraction(ONE - height, ONE))
    x = Fraction(about)
    step = Fraction(max(abs(about), 1.0)) / (1 << 50)
    for _ in range(40):
        if half * (_real(flint, x) / root).erfc() >= rest:  # 1 - Phi(x) >= 1 - p
            left = half * (_real(flint, x + notion.mu) / root).erfc()
            return max(ONE - _ceiling(flint, left), height)
        x, step = x - step, 2 * step
    return height


def _ceiling(flint: Any, value: Any) -> int:
    """Return a whole number of grid steps that is at least the value."""
    scaled = (value * _real(flint, Fraction(ONE))).upper().ceil()
    return int(scaled.unique_fmpz()) if scaled.is_exact() else ONE


def proven(notion: Notion, low: int, high: int) -> bool:
    """Whether the probabilities low/2^192 and high/2^192 are proven to meet the notion, both ways."""
    flint = _arb()
    p, u, q, v = (_real(flint, Fraction(value, ONE)) for value in (low, ONE - low, high, ONE - high))
    if isinstance(notion, Kl):
        eta = _real(flint, notion.eta)
        return all(bool(a * (a / c).log() + b * (b / d).log() <= eta) for a, b, c, d in ((p, u, q, v), (q, v, p, u)))
    if isinstance(notion, Renyi):
        order, bound = _real(flint, notion.order), _real(flint, notion.bound)
        most = ((order - 1) * bound).exp()
        return all(
            bool(a * ((order - 1) * (a / c).log()).exp() + b * ((order - 1) * (b / d).log()).exp() <= most)
            for a, b, c, d in ((p, u, q, v), (q, v, p, u))
        )
    assert isinstance(notion, Zcdp)
    rho = _real(flint, notion.rho)
    return all(_concentrated(flint, rho, *four) for four in ((p, u, q, v), (q, v, p, u)))


def _concentrated(flint: Any, rho: Any, p: Any, u: Any, q: Any, v: Any) -> bool:
    r"""Whether :math:`\varphi(s) = \rho s (s + 1) - \log E e^{s \log(P/Q)} \ge 0` for all s = a - 1 > 0.

    On an interval it is at least its tangent at the middle minus the largest effect of the second derivative, which is
    enclosed. On the first interval, which starts at s = 0 where it is 0, it must rise. Orders beyond the largest
    log-ratio over rho need no check.
    """
    first, second = (p / q).log(), (u / v).log()
    gap, odds = second - first, (u / p).log()
    far = max(float(abs(first).upper()), float(abs(second).upper())) / float(rho.lower()) + 1.0

    def shares(s: Any) -> tuple[Any, Any]:
        """Return the probabilities of (p, u), tilted by e^(s log(P/Q))."""
        other = 1 / (1 + (-(odds + s * gap)).exp())
        return 1 - other, other

    def bend(low: Fraction, high: Fraction) -> Any:
        """Return a lower bound on the second derivative between two points; the variance of a share is at most 1/4."""
        middle, radius = (low + high) / 2, (high - low) / 2
        one, other = shares(flint.arb(_real(flint, middle).mid(), _real(flint, radius).upper()))
        variance, quarter = (one * other).upper(), flint.arb(1) / 4
        return 2 * rho - (variance if bool(variance <= quarter) else quarter) * gap * gap

    todo = [(Fraction(0), Fraction(far))]
    for _ in range(4000):
        if not todo:
            return True
        low, high = todo.pop()
        down = bend(low, high)
        down = flint.arb(0) if down >= 0 else flint.arb(down.lower())
        if low == 0:
            one, other = shares(flint.arb(0))
            if rho - (one * first + other * second) + down * _real(flint, high) / 2 >= 0:
                continue
        else:
            middle, radius = _real(flint, (low + high) / 2), _real(flint, (high - low) / 2)
            one, other = shares(middle)
            value = rho * middle * (middle + 1) - (p * (middle * first).exp() + u * (middle * second).exp()).log()
            slope = rho * (2 * middle + 1) - (one * first + other * second)
            if value - abs(slope) * radius + down * radius * radius / 2 >= 0:
                continue
        if high - low < Fraction(1, 1 << 40):
            return False
        todo += [(low, (low + high) / 2), ((low + high) / 2, high)]
    return False
