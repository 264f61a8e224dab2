r"""Divergences of two coins, accurate where they are nearly the same or nearly certain; and what is found with them.

A coin is given by both of its probabilities, each accurate relative to itself.

Notions of stability: privacy is one function.

A notion says, of a test that says "yes" with probability p on a data set, the largest probability h(p) with which it
may say so on a neighbour. h is concave, h(p) >= p, and q <= h(p) iff 1 - p <= h(1 - q); 1 - h is the trade-off function
of Dong, Roth and Su (2022). What no test can gain over d records, the best test on two points, the canonical noise: all
of it follows from h.

=====================  ===========================================================================================
notion                 h(p)
=====================  ===========================================================================================
``pure(eps)``          min(e^eps p, 1 - e^-eps (1 - p))
``approx(eps, d)``     min(e^eps p + d, 1 - e^-eps (1 - p - d), 1)
``tv(eta)``            min(p + eta, 1)
``gdp(mu)``            Phi(Phi^-1(p) + mu)
``zcdp(rho)``          the largest q with D_a(p, q) and D_a(q, p) at most rho a, for all a > 1 (Renyi divergences)
``renyi(a, bound)``    the same with D_a at most the bound, at one order
``kl(eta)``            the same for the divergence of Kullback and Leibler, D_1
=====================  ===========================================================================================

The first four say all there is to say by h: whatever noise meets h makes the noisy total itself private. Of the last
three h is what they allow a *decision*; a noisy total needs noise that meets the divergence itself.

What several private answers cost together, where that is one number that adds up.

==============  ==============  ================================================================
a budget in     adds up         because
==============  ==============  ================================================================
``pure``        epsilon         losses add up
``zcdp``        rho             Renyi divergences of every order add up (Bun and Steinke 2016)
``gdp``         mu squared      shifts of independent Gaussians add up (Dong, Roth and Su 2022)
``renyi``       the bound       divergences of that order add up (Mironov 2017)
``tv``, ``kl``  eta             total variation is subadditive; the chain rule of divergences
==============  ==============  ================================================================

Guarantees: the sums are exact rationals; they also hold where what is asked next, and at which price, is chosen after
looking at the answers before (Feldman and Zrnic 2021 for Renyi divergences, hence zcdp; Smith and Thakurta 2022 for
gdp). (epsilon, delta) is not among them: what it takes is composed as a whole, in ``ledger/account.py``; here it only
adds up, which holds too, and is loose.

The ladder of a notion: every probability that a decision may have, one record after the other.

A decision that gains all it may from each record runs along a chain g(k + 1) = h(g(k)). All chains together are one
distribution function F with

.. math:: F(t + 1) = h(F(t)), \qquad F(-t) = 1 - F(t),

the law of the canonical noise (Awan and Vadhan 2023): a chain is F at t, t + 1, t + 2, ... On a finite ladder there are
a few rungs to each record, numbered by whole numbers; rung 0 is where h is balanced, and one record is ``fine`` rungs.

For h made of straight lines the rungs are the kinks of F: between two rungs every chain is linear in its start.

Lines that h does not exceed prove that a test is private: exact ones, and tangents of a curved h. Every line comes with
its mirror image: q <= slope p + height says, of the other decision, 1 - p <= slope (1 - q) + height; h has both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidInput, shown
from privatest.numbers import Floats, Integers, Number, clipped, exp_below, positive, rational, square_root

Odds = tuple[float, float]
"""A probability and its complement, each accurate relative to itself."""


def from_logit(y: float) -> Odds:
    """e^y/(1 + e^y) and its complement."""
    small = math.exp(-abs(y))
    less, more = small / (1 + small), 1 / (1 + small)
    return (more, less) if y >= 0 else (less, more)


def normal(z: float) -> Odds:
    """Phi(z) and 1 - Phi(z)."""
    scaled = z / math.sqrt(2)
    return math.erfc(-scaled) / 2, math.erfc(scaled) / 2


def log_normal(z: float) -> float:
    from scipy.special import log_ndtr  # start-up: planning a pure test needs no scipy

    return float(log_ndtr(z))


def quantile(p: float, rest: float) -> float:
    """z with Phi(z) = p, accurate in both tails."""
    from scipy.special import ndtri  # start-up: planning a pure test needs no scipy

    return float(ndtri(p)) if p <= 0.5 else -float(ndtri(rest))


def kullback(p: float, u: float, q: float, v: float) -> float:
    """p log(p/q) + u log(u/v), for p + u = q + v = 1, as a sum of two terms that are not negative."""
    total = 0.0
    for a, b in ((p, q), (u, v)):
        r = log_ratio(b, a)
        total += a * (math.expm1(r) - r) if abs(r) < 1 else (b - a) - a * r
    return total


def renyi_divergence(p: float, u: float, q: float, v: float, order: float) -> float:
    """Divergence of (p, u) from (q, v), of an order above 1."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    if order * max(first, second) > 30:
        a, b = math.log(q) + order * first, math.log(v) + order * second
        return (max(a, b) + math.log1p(math.exp(-abs(a - b)))) / (order - 1)
    terms = ((q, first), (v, second))
    return math.log1p(sum(a * (math.expm1(order * r) - order * math.expm1(r)) for a, r in terms)) / (order - 1)


def concentration(p: float, u: float, q: float, v: float) -> float:
    """The supremum over orders a > 1 of the divergence over a; at 1 it is the divergence of Kullback and Leibler."""
    largest = max(abs(log_ratio(p, q)), abs(log_ratio(u, v)))
    base = kullback(p, u, q, v)
    if base <= 0:
        return 0.0

    def over_order(s: float) -> float:
        order = 1 + math.exp(s)
        return renyi_divergence(p, u, q, v, order) / order

    # D_a is at most `largest`, so that beyond largest/base the ratio is below its value at 1.
    return max(base, golden_maximum(over_order, -9.0, math.log(max(largest / base, 1.0) + 1.0)))


def concentrated(p: float, u: float, rho: float) -> tuple[float, float]:
    """The largest logit whose coin has :func:`concentration` at most rho from and to (p, u), and the order that binds.

    The least of what the orders allow, one by one; the order 1 stands for Kullback and Leibler.
    """
    start = math.log(p) - math.log(u)

    def first(y: float) -> float:
        q, v = from_logit(y)
        return max(kullback(p, u, q, v), kullback(q, v, p, u)) - rho

    last = root(first, start)
    return min((last, 1.0), *(_binding((p, u), rho, start, last, forward) for forward in (True, False)))


def _binding(coin: Odds, rho: float, start: float, last: float, forward: bool) -> tuple[float, float]:
    """The logit that the orders allow in one direction, at most ``last``, and the order that binds (1: none)."""
    binding = 1.0

    def excess(order: float, y: float) -> float:
        other = from_logit(y)
        found = renyi_divergence(*coin, *other, order) if forward else renyi_divergence(*other, *coin, order)
        return found - rho * order

    def worst(y: float) -> tuple[float, float]:
        """The order that is exceeded most at this logit, and by how much of it."""
        # Divergences are at most the largest ratio: no order beyond this one binds.
        most = max(abs(log_ratio(a, b)) for a, b in zip(coin, from_logit(y), strict=True)) / rho
        end = math.log(max(most, 1.0) + 1.0)
        s, top = golden_peak(lambda s: excess(1 + math.exp(s), y) / (1 + math.exp(s)), -9.0, end)
        return 1 + math.exp(s), top

    # Invariant: the orders allow no more than `last`. The one that is exceeded most there says how much less.
    for _ in range(20):
        order, top = worst(last)
        if top <= 1e-15 * rho:
            break
        found = root(partial(excess, order), start)
        if not found < last - 1e-16 * max(abs(last), 1e-2):
            break
        last, binding = found, order
    return last, binding


def kullback_slope(p: float, u: float, q: float, v: float) -> tuple[float, float]:
    """Derivatives of :func:`kullback` in p and in q."""
    return log_ratio(p, q) - log_ratio(u, v), (q - p) / (q * v)


def renyi_slope(p: float, u: float, q: float, v: float, order: float) -> tuple[float, float]:
    """Derivatives of :func:`renyi_divergence` in p and in q, both times one positive factor."""
    first, second = log_ratio(p, q), log_ratio(u, v)
    most = (order - 1) * max(first, second)
    a, b = math.exp((order - 1) * first - most), math.exp((order - 1) * second - most)
    return order * (a - b), (order - 1) * (b * u / v - a * p / q)


def log_ratio(a: float, b: float) -> float:
    """log(a/b), also where the quotient is near 1 or out of range."""
    difference = (a - b) / b
    return math.log1p(difference) if abs(difference) < 0.5 else math.log(a) - math.log(b)


_GOLDEN = (math.sqrt(5) - 1) / 2
_GRID = 24


def golden_maximum(of: Callable[[float], float], low: float, high: float) -> float:
    """The largest value between the two ends."""
    return golden_peak(of, low, high)[1]


def golden_peak(of: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Where a function is largest, and how large: on a grid, then by golden section around its best point."""
    points = [low + (high - low) * i / _GRID for i in range(_GRID + 1)]
    values = [of(x) for x in points]
    top = max(range(len(values)), key=values.__getitem__)
    left, right = points[max(top - 1, 0)], points[min(top + 1, _GRID)]
    x, y = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    fx, fy = of(x), of(y)
    best = max((values[top], points[top]), (fx, x), (fy, y))
    # Invariant: the largest value between the neighbours of the grid's best lies between left and right.
    while right - left > 1e-8 * max(abs(left), abs(right), 1e-3):
        if fx < fy:
            left, x, fx = x, y, fy
            y = left + _GOLDEN * (right - left)
            fy = of(y)
        else:
            right, y, fy = y, x, fx
            x = right - _GOLDEN * (right - left)
            fx = of(x)
        best = max(best, (fx, x), (fy, y))
    return best[1], best[0]


def root(excess: Callable[[float], float], start: float) -> float:
    """The last y from ``start`` on at which an increasing excess is not positive; it is negative at the start.

    Invariant of the bisection: the excess is not positive at `low` and positive at `high`; what is returned is `low`.
    """
    low, step = start, 1e-3
    high = low + step
    while excess(high) <= 0:
        low, step = high, 2 * step
        high = low + step
        if high > 700:
            return low
    below, above = excess(low), excess(high)
    for turn in range(200):
        if high - low <= 2e-16 * max(abs(low), abs(high), 1e-2):
            break
        # Regula falsi, every third time a plain halving.
        middle = (low + high) / 2 if turn % 3 == 2 else low - below * (high - low) / (above - below)
        if not low < middle < high:
            middle = (low + high) / 2
            if not low < middle < high:
                break
        value = excess(middle)
        if value <= 0:
            low, below = middle, value
        else:
            high, above = middle, value
    return low


@dataclass(frozen=True)
class Notion(ABC):
    """A notion of stability at one budget. Parameters are exact: a float is read as its shortest decimal.

    Guarantees: equal notions have equal exact parameters; its ``text`` means the same notion (``as_notion``).

    Attributes:
        name: what texts and documents call it.
        tradeoff: whether h says all of it, so that noise which meets h makes the noisy total itself private.
    """

    name: ClassVar[str]
    tradeoff: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, positive(**{field.name: getattr(self, field.name)}))

    @property
    def exact(self) -> tuple[Fraction, ...]:
        """The parameters, in their order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def text(self) -> str:
        """Short and exact: what texts, documents and ledgers call it.

        >>> Zcdp(0.5).text, Pure(Fraction(1, 3)).text
        ('zcdp(0.5)', 'pure(1/3)')
        """
        return f"{self.name}({', '.join(map(_written, self.exact))})"

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{float(value):g}' for value in self.exact)})"

    @abstractmethod
    def step(self, p: float, rest: float) -> Odds:
        """h(p) and 1 - h(p), each accurate relative to itself, from p and 1 - p that are."""

    @property
    @abstractmethod
    def balanced(self) -> Odds:
        """The p at which h(p) = 1 - p, and that complement: where h gains the most."""

    def h(self, p: ArrayLike, records: int = 1) -> Floats:
        """The largest probability on a data set that differs in ``records`` records, of what has probability p here.

        Guarantees: relative error of order 1e-12 for small values; see :meth:`rise` for values near 1.

        >>> float(Tv(0.25).h(0.5)), float(Pure(1).h(0.0))
        (0.75, 0.0)
        """
        return self._each(p, lambda value: self.rise(value, 1 - value, records)[0])

    def least(self, p: ArrayLike, records: int = 1) -> Floats:
        """The smallest probability there, of what has probability p here: 1 - h(1 - p).

        >>> round(float(Pure(1).least(0.5)), 6)
        0.18394
        """
        return self._each(p, lambda value: self.rise(1 - value, value, records)[1])

    def rise(self, p: float, rest: float, records: int) -> Odds:
        """:meth:`step` as often as there are records."""
        for _ in range(_whole(records)):
            if not rest > 0:
                break
            p, rest = self.step(p, rest)
        return p, rest

    def gain(self, records: int = 1) -> float:
        r"""The most by which ``records`` records can move a probability: :math:`\max_p h^d(p) - p`.

        The graph of h^d is symmetric, so the gain is largest where it meets 1 - p: halfway up from 1/2, or from where h
        itself is balanced.

        >>> round(Pure(1).gain(), 9) == round(math.tanh(1 / 2), 9), round(Tv(0.1).gain(3), 9)
        (True, 0.3)
        """
        half, odd = divmod(_whole(records), 2)
        up, rest = self.rise(*(self.balanced[::-1] if odd else (0.5, 0.5)), half)
        return up - rest

    @staticmethod
    def _each(p: ArrayLike, of: Callable[[float], float]) -> Floats:
        values = np.asarray(p, dtype=np.float64)
        if np.any(~((values >= 0) & (values <= 1))):
            raise InvalidInput("p must be a probability, from 0 to 1.")
        found = np.array([of(float(value)) for value in values.ravel()]).reshape(values.shape)
        result: Floats = found[()]
        return result

    @property
    def epsilon(self) -> Any:
        """The privacy loss where this notion bounds it, else infinity."""
        return math.inf

    @property
    def equivalent(self) -> Fraction:
        """The epsilon of the pure notion that allows one record to gain as much; for a first idea of scales."""
        return Fraction(f"{2 * math.atanh(min(self.gain(), 1 - 1e-12)):.12g}")

    @property
    def price(self) -> Fraction | Notion | None:
        """What a ledger is asked for: epsilon where this is pure, else itself; None where it is not private."""
        return self

    # What a budget is worth to several answers.

    def split(self, part: Number) -> Notion:
        """A part of it: answers whose parts add up to 1, each chosen after the ones before, meet it together.

        Guarantees: never more than the part: mu of gdp, whose square it is that adds up, is rounded down.

        >>> Zcdp(0.5).split(0.25), Gdp(1).split(0.25), Approx(1, 1e-6).split(0.25)
        (zcdp(0.125), gdp(0.5), approx(0.25, 2.5e-07))
        """
        some = rational(part, "part")
        if not 0 < some <= 1:
            raise InvalidInput(f"part={shown(part)} must lie in (0, 1]: it is a part of {self}.")
        return self._part(some)

    def share(self, answers: int) -> Notion:
        """What each of so many answers may cost, so that together they meet it: :meth:`split`, evenly.

        >>> Pure(1).share(4), Renyi(3, 0.5).share(5)
        (pure(0.25), renyi(3, 0.1))
        """
        if _whole(answers) < 1:
            raise InvalidInput(f"answers={shown(answers)} must be at least 1.")
        return self._part(Fraction(1, answers))

    def _part(self, part: Fraction) -> Notion:
        """The last parameter is what adds up; argument: proof.md."""
        kind: Callable[..., Notion] = type(self)
        return kind(*self.exact[:-1], part * self.exact[-1])

    # What a guarantee in one notion is worth in another.

    def implies(self, other: Notion) -> bool:
        """Whether whatever meets this notion also meets the other one. Never true by rounding.

        >>> Gdp(1).implies(Zcdp(0.5)), Zcdp(0.5).implies(Gdp(1)), Pure(1).implies(Approx(1, 1e-6))
        (True, False, True)
        """
        if type(other) is type(self):
            return self._within(other)
        best = self._into(other)
        return best is not None and best._within(other)

    def into(self, name: str, **given: Number) -> Notion:
        """The strongest guarantee of another kind that follows from this one.

        Args:
            name: of the kind: "pure", "approx", "tv", "gdp", "zcdp", "renyi" or "kl".
            given: what must be chosen: ``delta`` or ``epsilon`` for "approx", ``order`` for "renyi".

        Guarantees: ``self.implies(self.into(...))``: parameters that are not rational are rounded up.

        >>> Gdp(1).into("zcdp"), Gdp(1).into("renyi", order=3)
        (zcdp(0.5), renyi(3, 1.5))
        """
        if name not in NOTIONS:
            raise InvalidInput(f"name={shown(name)} must be one of {', '.join(map(repr, NOTIONS))}.")
        kind = NOTIONS[name]
        asked = kind.asking(**given)
        found = self if type(asked) is type(self) and not given else self._into(asked)
        if found is None:
            raise InvalidInput(f"{self} does not convert into {name}: no such guarantee follows from it.")
        return found

    @classmethod
    def asking(cls, **given: Number) -> Notion:
        """A notion of this kind with what is chosen in it; the rest is what :meth:`into` finds."""
        _refuse_all(cls.name, given)
        return cls(*(Fraction(1) for _ in fields(cls)))

    def _within(self, other: Any) -> bool:
        """Whether each parameter is at most the other's, of the same kind."""
        return all(mine <= theirs for mine, theirs in zip(self.exact, other.exact, strict=True))

    def _into(self, other: Notion) -> Notion | None:
        """The strongest guarantee of the other's kind (and its choices) that follows; None where none does."""
        if isinstance(other, Tv):
            most = _above(self.gain())
            return Tv(most) if most < 1 else None
        if isinstance(other, Approx):
            return self._approx(other.exact)
        return None

    def _approx(self, chosen: tuple[Fraction, ...]) -> Notion | None:
        """approx at the chosen epsilon (or delta, where epsilon is 0 and delta is not): h lies below its lines."""
        epsilon, delta = chosen
        if delta and not epsilon:
            goal = float(delta) * (1 - 3 * _SLACK)
            low, high = 0.0, 1.0
            while self._delta(high) > goal:
                low, high = high, 2 * high
                if high > 1e6:
                    return None
            while high - low > 1e-12 * max(high, 1e-6):
                middle = (low + high) / 2
                if self._delta(middle) > goal:
                    low = middle
                else:
                    high = middle
            return Approx(_above(high), delta)
        found = self._delta(float(epsilon))
        return Approx(epsilon, _above(found)) if found < 1 else None

    def _delta(self, epsilon: float) -> float:
        """The largest h(p) - e^epsilon p: concave in p, found by golden section over the logarithm of the odds."""
        factor = math.exp(min(epsilon, 700.0))

        def excess(y: float) -> float:
            p, rest = from_logit(y)
            return self.step(p, rest)[0] - factor * p

        return max(golden_maximum(excess, -745.0, 20.0), self.step(0.0, 1.0)[0], 0.0)


@dataclass(frozen=True, repr=False)
class Pure(Notion):
    """Epsilon-differential privacy: a neighbour's data change no probability by a factor of more than e^epsilon.

    Infinite: not private.

    >>> Pure(0.5)
    pure(0.5)
    """

    name: ClassVar[str] = "pure"

    loss: Any

    def __post_init__(self) -> None:
        if self.loss != math.inf:
            object.__setattr__(self, "loss", positive(epsilon=self.loss))

    @property
    def epsilon(self) -> float:
        """The privacy loss."""
        return float(self.loss)

    @property
    def equivalent(self) -> Fraction:
        return Fraction(self.loss)

    @property
    def price(self) -> Fraction | None:
        return None if self.loss == math.inf else Fraction(self.loss)

    @property
    def text(self) -> str:
        return f"pure({_written(self.loss) if self.loss != math.inf else 'inf'})"

    def step(self, p: float, rest: float) -> Odds:
        return _by_lines(p, rest, self.epsilon, 0.0)

    def rise(self, p: float, rest: float, records: int) -> Odds:
        """In one go: up the first line as far as it goes, then down the second."""
        left = _whole(records)
        epsilon = self.epsilon
        corner = 1 / (1 + math.exp(min(epsilon, 700.0)))
        if left and 0 < p < corner:
            steps = min(left, max(math.floor((math.log(corner) - math.log(p)) / epsilon), 0))
            p = p * math.exp(steps * epsilon)
            rest, left = 1 - p, left - steps
        while left and p < 0.5 and rest > 0:  # the one step around the corner, and rounding
            (p, rest), left = self.step(p, rest), left - 1
        if left and p > 0:
            rest = rest * math.exp(-left * epsilon)
            p = 1 - rest
        return p, rest

    @property
    def balanced(self) -> Odds:
        return from_logit(-self.epsilon)

    def _into(self, other: Notion) -> Notion | None:
        loss, e = self.loss, self.epsilon
        if loss == math.inf:
            return None
        if isinstance(other, Zcdp):
            return Zcdp(loss**2 / 2)
        if isinstance(other, Renyi):  # D_a is at most that of randomised response; at most epsilon, and a epsilon^2/2
            order = float(other.order)
            found = renyi_divergence(*from_logit(e), *from_logit(-e), order)
            return Renyi(other.order, min(_above(found), loss, other.order * loss**2 / 2))
        if isinstance(other, Kl):
            return Kl(min(_above(e * math.tanh(e / 2)), loss))
        if isinstance(other, Gdp):  # both are concave and symmetric, and pure has one corner: there they must meet
            return Gdp(_above(-2 * quantile(*from_logit(-e))))
        if isinstance(other, Approx) and other.loss >= loss and (other.loss or not other.delta):
            return Approx(other.loss, Fraction(0))
        return super()._into(other)


@dataclass(frozen=True, repr=False)
class Approx(Notion):
    """(epsilon, delta)-differential privacy: a factor of at most e^epsilon, but for probability delta.

    >>> Approx(1, 1e-6).epsilon, Approx(1, 1e-6)
    (1.0, approx(1, 1e-06))
    """

    name: ClassVar[str] = "approx"

    loss: Any
    delta: Any

    def __post_init__(self) -> None:
        loss, delta = rational(self.loss, "epsilon"), rational(self.delta, "delta")
        if loss < 0:
            raise InvalidInput(f"epsilon={shown(self.loss)} must not be negative.")
        if not 0 <= delta < 1:
            raise InvalidInput(f"delta={shown(self.delta)} must lie in [0, 1): it is a probability, usually below 1/n.")
        if not loss and not delta:
            raise InvalidInput("epsilon=0 and delta=0 allow nothing at all: no answer depends on the data then.")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "delta", delta)

    @property
    def epsilon(self) -> float:
        """The privacy loss but for delta."""
        return float(self.loss)

    def step(self, p: float, rest: float) -> Odds:
        return _by_lines(p, rest, self.epsilon, float(self.delta))

    @property
    def balanced(self) -> Odds:
        down, up = from_logit(-self.epsilon)
        delta = float(self.delta)
        return (1 - delta) * down, up + delta * down

    def grouped(self, records: int) -> Approx | None:
        """What it means for all of so many records if each of them has it; None where that says nothing.

        >>> Approx(1, 1e-6).grouped(1), Approx(0, 0.25).grouped(3)
        (approx(1, 1e-06), approx(0, 0.75))
        """
        if records == 1:
            return self
        more = sum((Fraction(math.exp(i * self.epsilon) * (1 + _SLACK)) for i in range(1, records)), Fraction(1))
        delta = self.delta * (more if self.loss else records)
        return Approx(records * self.loss, delta) if delta < 1 else None

    def _part(self, part: Fraction) -> Notion:  # both add up
        return Approx(part * self.loss, part * self.delta)

    @classmethod
    def asking(cls, epsilon: Number = 0, delta: Number | None = None, **given: Number) -> Notion:
        _refuse_all(cls.name, given)
        if (delta is None) == (epsilon == 0):
            raise InvalidInput('into("approx") needs one of epsilon= and delta=, and finds the other.')
        return cls(epsilon, delta or 0)

    def _within(self, other: Any) -> bool:
        if self.loss <= other.loss:
            return bool(self.delta <= other.delta)
        return self._delta(float(other.loss)) * (1 + 1e-12) <= float(other.delta)

    def _delta(self, epsilon: float) -> float:
        """The largest excess of lines over a line lies at their corner, or at 0."""
        p, q = self.balanced
        return max(q - math.exp(min(epsilon, 700.0)) * p, float(self.delta) if epsilon >= self.epsilon else 0.0, 0.0)


@dataclass(frozen=True, repr=False)
class Tv(Notion):
    """Stability in total variation: no probability changes by more than eta.

    >>> Tv(0.1).gain(20)
    1.0
    """

    name: ClassVar[str] = "tv"

    eta: Any

    def __post_init__(self) -> None:
        value = positive(eta=self.eta)
        if value >= 1:
            raise InvalidInput(f"eta={shown(self.eta)} must lie in (0, 1): it bounds a difference of probabilities.")
        object.__setattr__(self, "eta", value)

    @classmethod
    def asking(cls, **given: Number) -> Notion:
        _refuse_all(cls.name, given)
        return cls(Fraction(1, 2))

    def step(self, p: float, rest: float) -> Odds:
        eta = float(self.eta)
        return (1.0, 0.0) if rest <= eta else (p + eta, rest - eta)

    def rise(self, p: float, rest: float, records: int) -> Odds:
        move = float(_whole(records) * self.eta)
        return (1.0, 0.0) if rest <= move else (p + move, rest - move)

    @property
    def balanced(self) -> Odds:
        return float((1 - self.eta) / 2), float((1 + self.eta) / 2)

    def gain(self, records: int = 1) -> float:
        return float(min(_whole(records) * self.eta, Fraction(1)))

    def _approx(self, chosen: tuple[Fraction, ...]) -> Notion | None:
        epsilon, delta = chosen
        if delta and not epsilon:
            return None if delta < self.eta else Approx(Fraction(0), delta)
        return Approx(epsilon, self.eta)

    def _delta(self, epsilon: float) -> float:  # noqa: ARG002 - the same at every epsilon
        return float(self.eta)


@dataclass(frozen=True, repr=False)
class Gdp(Notion):
    """Gaussian differential privacy: neighbours are no easier to tell apart than N(0, 1) and N(mu, 1).

    >>> round(float(Gdp(1).h(0.5)), 6)
    0.841345
    """

    name: ClassVar[str] = "gdp"

    mu: Any

    def step(self, p: float, rest: float) -> Odds:
        return self.rise(p, rest, 1)

    def rise(self, p: float, rest: float, records: int) -> Odds:
        if not p > 0 or not rest > 0 or not _whole(records):
            return p, rest
        return normal(quantile(p, rest) + float(records * self.mu))

    @property
    def balanced(self) -> Odds:
        return normal(-float(self.mu) / 2)

    def _part(self, part: Fraction) -> Notion:  # the squares add up
        return Gdp(square_root(part * self.mu**2, up=False))

    def gain(self, records: int = 1) -> float:
        return math.erf(_whole(records) * float(self.mu) / math.sqrt(8))

    def _into(self, other: Notion) -> Notion | None:
        half = self.mu**2 / 2
        if isinstance(other, Zcdp):
            return Zcdp(half)
        if isinstance(other, Renyi):
            return Renyi(other.order, other.order * half)
        if isinstance(other, Kl):
            return Kl(half)
        return super()._into(other)

    def _delta(self, epsilon: float) -> float:
        mu = float(self.mu)
        up, down = normal(mu / 2 - epsilon / mu)[0], log_normal(-mu / 2 - epsilon / mu)
        return max(up - math.exp(min(epsilon + down, 0.0)), 0.0)


@dataclass(frozen=True, repr=False)
class _ByDivergence(Notion):
    """A notion that bounds divergences: h is what that allows of two probabilities."""

    tradeoff: ClassVar[bool] = False

    @abstractmethod
    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        """By how much the divergence of (q, v) from (p, u), or the other way round, exceeds what is allowed."""

    def step(self, p: float, rest: float) -> Odds:
        if not p > 0 or not rest > 0:
            return p, rest
        start = math.log(p) - math.log(rest)

        def excess(y: float) -> float:
            return self._excess(p, rest, *from_logit(y))

        return from_logit(root(excess, start))

    @property
    def balanced(self) -> Odds:
        def excess(y: float) -> float:
            up, down = from_logit(y)
            return self._excess(down, up, up, down)

        up, down = from_logit(root(excess, 0.0))
        return down, up


@dataclass(frozen=True, repr=False)
class Renyi(_ByDivergence):
    """Renyi differential privacy at one order: both divergences of that order are at most the bound.

    >>> Renyi(2, 0.5)
    renyi(2, 0.5)
    """

    name: ClassVar[str] = "renyi"

    order: Any
    bound: Any

    def __post_init__(self) -> None:
        order = rational(self.order, "order")
        if order <= 1:
            raise InvalidInput(f"order={shown(self.order)} must be greater than 1. At 1 it is kl(bound).")
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "bound", positive(bound=self.bound))

    @classmethod
    def asking(cls, order: Number | None = None, **given: Number) -> Notion:
        _refuse_all(cls.name, given)
        if order is None:
            raise InvalidInput('into("renyi") needs order=, and finds the bound.')
        return cls(order, 1)

    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        order = float(self.order)
        return max(renyi_divergence(p, u, q, v, order), renyi_divergence(q, v, p, u, order)) - float(self.bound)

    def _within(self, other: Any) -> bool:  # divergences increase with the order
        return bool(self.order >= other.order and self.bound <= other.bound)

    def _into(self, other: Notion) -> Notion | None:
        if isinstance(other, Kl):
            return Kl(self.bound)
        if isinstance(other, Renyi):
            return Renyi(other.order, self.bound) if other.order <= self.order else None
        return super()._into(other)


@dataclass(frozen=True, repr=False)
class Kl(_ByDivergence):
    """Both divergences of Kullback and Leibler are at most eta.

    >>> Kl(0.5)
    kl(0.5)
    """

    name: ClassVar[str] = "kl"

    eta: Any

    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        return max(kullback(p, u, q, v), kullback(q, v, p, u)) - float(self.eta)


@dataclass(frozen=True, repr=False)
class Zcdp(_ByDivergence):
    """Zero-concentrated differential privacy: both Renyi divergences of every order a > 1 are at most rho a.

    Reference: Bun and Steinke 2016.

    >>> Zcdp(0.5)
    zcdp(0.5)
    """

    name: ClassVar[str] = "zcdp"

    rho: Any

    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        return max(concentration(p, u, q, v), concentration(q, v, p, u)) - float(self.rho)

    def step(self, p: float, rest: float) -> Odds:
        """The least of what the orders allow, one by one; the order 1 stands for Kullback and Leibler."""
        if not p > 0 or not rest > 0:
            return p, rest
        return from_logit(concentrated(p, rest, float(self.rho))[0])

    def _delta(self, epsilon: float) -> float:
        r"""What all orders together say of delta (Canonne, Kamath and Steinke 2020, proposition 12).

        .. math:: \delta = \inf_{a > 1} \frac{e^{(a - 1)(a\rho - \epsilon)}}{a - 1} \Big(1 - \frac1a\Big)^a
        """
        rho = float(self.rho)

        def log_delta(s: float) -> float:
            above = math.exp(s)
            order = 1 + above
            return above * (order * rho - epsilon) - s + order * (s - math.log1p(above))

        # The best order is near (epsilon - rho)/(2 rho), or about 1 where epsilon is small beside rho.
        far = max(math.log(max((epsilon - rho) / (2 * rho), 1.0)), 0.0) + 8
        return min(math.exp(min(-golden_maximum(lambda s: -log_delta(s), -12.0, far), 0.0)), self.gain())

    def _into(self, other: Notion) -> Notion | None:
        if isinstance(other, Renyi):
            return Renyi(other.order, other.order * self.rho)
        if isinstance(other, Kl):
            return Kl(self.rho)
        return super()._into(other)


NOTIONS: dict[str, type[Notion]] = {notion.name: notion for notion in (Pure, Approx, Tv, Gdp, Zcdp, Renyi, Kl)}


def _refuse_all(name: str, given: dict[str, Number]) -> None:
    for word, value in given.items():
        raise InvalidInput(f"{word}={shown(value)} is not chosen in {name}. Leave it out.")


def _written(value: Fraction) -> str:
    """A decimal where that is exact, short, and read as this value again; else p/q."""
    short = repr(float(value))
    if Fraction(short) == value == rational(float(value)):
        return short.removesuffix(".0")
    return f"{value.numerator}/{value.denominator}"


def _whole(records: int) -> int:
    if isinstance(records, bool) or int(records) != records or records < 0:
        raise InvalidInput(f"records={shown(records)} must be a whole number, 0 or more.")
    return int(records)


# A computed parameter is off by less than this, relatively; what is rounded up by it covers the true one.
_SLACK = 1e-9


def _above(value: float) -> Fraction:
    """A short rational that is safely at least the computed value."""
    return Fraction(f"{max(value, 1e-300) * (1 + _SLACK):.12g}")


def _by_lines(p: float, rest: float, epsilon: float, delta: float) -> Odds:
    """The lower of the lines of (epsilon, delta), cut off at 1."""
    if rest <= delta:
        return 1.0, 0.0
    grown = math.exp(min(epsilon, 700.0)) * p + delta
    left = math.exp(-epsilon) * (rest - delta)
    return (grown, 1 - grown) if grown + left <= 1 else (1 - left, left)


def weight(notion: Notion) -> Fraction:
    """The number of a notion that adds up: its last parameter, or the square of mu.

    >>> from privatest.privacy.notions import Zcdp
    >>> weight(Zcdp(0.5)), weight(Gdp(0.5))
    (Fraction(1, 2), Fraction(1, 4))
    """
    if isinstance(notion, Approx):
        raise InvalidInput(f"{notion} has no one number that adds up.")
    last: Fraction = notion.exact[-1]
    return last**2 if isinstance(notion, Gdp) else last


def of_weight(kind: Notion, amount: Fraction, *, up: bool = True) -> Notion:
    """The notion of a kind (and order) whose weight that is; the root of gdp is rounded up, or down."""
    if isinstance(kind, Gdp):
        return Gdp(square_root(amount, up=up))
    if isinstance(kind, Tv) and amount >= 1:
        raise InvalidInput(f"Stability in total variation adds up to {float(amount):g}, and 1 says nothing at all.")
    made: type[Any] = type(kind)  # each takes its own parameters
    found: Notion = made(*kind.exact[:-1], amount)
    return found


def converted(notion: Notion, kind: Notion) -> Notion | None:
    """The strongest guarantee of that kind (and order) that follows from a notion; None where none does.

    >>> converted(Pure(1), Gdp(1)), converted(Gdp(1), Pure(1)), converted(Pure(1), Approx(1, 1e-6))
    (gdp(1.23204), None, approx(1, 0))
    """
    if type(notion) is type(kind) and not isinstance(notion, Renyi):
        return notion
    if isinstance(kind, Approx) and isinstance(notion, Pure):
        return Approx(notion.loss, 0)
    choices = {"approx": {"delta": kind.exact[-1]}, "renyi": {"order": kind.exact[0]}}
    try:
        return notion.into(kind.name, **choices.get(kind.name, {}))
    except InvalidInput:
        return None


def together(price: Fraction | Notion, epsilon: Fraction | int) -> Fraction | Notion:
    """What an answer at a price and one more at a pure epsilon cost together, in the notion of the first.

    >>> from privatest.privacy.notions import Zcdp
    >>> together(Fraction(1, 2), Fraction(1, 4)), together(Zcdp(0.5), Fraction(1)), together(Approx(1, 1e-6), 1)
    (Fraction(3, 4), zcdp(1), approx(2, 1e-06))
    """
    if not isinstance(price, Notion):
        return price + epsilon
    if not epsilon:
        return price
    if isinstance(price, Approx):
        return Approx(price.loss + epsilon, price.delta)
    more = converted(Pure(epsilon), price)
    assert more is not None  # pure converts into everything
    return of_weight(price, weight(price) + weight(more))


def replaced(notion: Notion) -> Notion | None:
    """What replacing a record meets where adding or removing one meets this; None where that is not of its kind.

    >>> replaced(Gdp(0.5)), replaced(Tv(0.6))
    (gdp(1), None)
    """
    if isinstance(notion, Pure):
        return Pure(2 * notion.loss)
    if isinstance(notion, Gdp):
        return Gdp(2 * notion.mu)
    if isinstance(notion, Zcdp):
        return Zcdp(4 * notion.rho)
    if isinstance(notion, Approx):
        return notion.grouped(2)
    return Tv(2 * notion.eta) if isinstance(notion, Tv) and 2 * notion.eta < 1 else None


def adds_up_within(parts: Iterable[Notion | None], whole: Notion) -> bool:
    """Whether answers that meet these notions, one after the other, meet the whole together: never by rounding.

    None is what meets nothing. Each is converted into the kind of the whole; what does not convert is not within it.

    >>> from privatest.privacy.notions import Zcdp
    >>> adds_up_within([Gdp(0.6), Gdp(0.8)], Gdp(1)), adds_up_within([Gdp(0.6), Gdp(0.8)], Zcdp(0.499))
    (True, False)
    """
    found = [None if part is None else _adding(part, whole) for part in parts]
    amounts = [(weight(one),) if not isinstance(one, Approx) else one.exact for one in found if one is not None]
    most = whole.exact if isinstance(whole, Approx) else (weight(whole),)
    return len(amounts) == len(found) and all(sum(one) <= most[i] for i, one in enumerate(zip(*amounts, strict=True)))


def _adding(part: Notion, whole: Notion) -> Notion | None:
    """A part in the kind of the whole, so that it adds up there: of tv and approx(0, eta) not more than eta."""
    return Approx(0, part.eta) if isinstance(part, Tv) and isinstance(whole, Approx) else converted(part, whole)


def per_row(notion: Notion, rows: int) -> Notion:
    r"""What one row may cost where a person has up to so many of them, in one block of a stream or in several.

    Rows in one block move one noisy total further, rows in several move several: the first is never the cheaper one.

    ========================  ==============================================================================
    ``pure``, ``tv``          the k-th part: what neighbours of neighbours may differ by adds up
    ``gdp``                   mu/k: the shift of a Gaussian is k times as long
    ``zcdp, renyi, kl``       the k^2-th part: theirs is Gaussian noise, of which :math:`\mu^2` counts
    ``approx``                epsilon/k, and delta over :math:`1 + e^{\epsilon/k} + \dots` (k terms), rounded down
    ========================  ==============================================================================

    Argument: proof.md.

    >>> from privatest.privacy.notions import Zcdp
    >>> per_row(Pure(1), 4), per_row(Gdp(1), 4), per_row(Zcdp(0.5), 4), per_row(Approx(0, 0.1), 4)
    (pure(0.25), gdp(0.25), zcdp(0.03125), approx(0, 0.025))
    """
    if rows == 1:
        return notion
    if isinstance(notion, Approx):
        each = float(notion.loss) / rows
        terms = math.fsum(math.exp(min(i * each, 700.0)) for i in range(rows))
        delta = notion.delta / rows if not notion.loss else Fraction(f"{float(notion.delta) / terms * (1 - 1e-9):.12g}")
        return Approx(notion.loss / rows, delta)
    part = rows**2 if isinstance(notion, Zcdp | Renyi | Kl) else rows
    made: type[Any] = type(notion)  # each takes its own parameters
    found: Notion = made(*notion.exact[:-1], notion.exact[-1] / part)
    return found


SMALLEST = 1e-18
"""What is left of 1 - F below this counts as nothing."""
LONGEST = 1_000_000


@dataclass(frozen=True, eq=False)
class Ladder:
    """F at the rungs.

    Attributes:
        notion: whose.
        starts: F at rungs 0, ..., ``fine``, with the complements: from p to 1 - p, where h(p) = 1 - p.
        rests: 1 - F at rungs 0, 1, 2, ..., each accurate relative to itself; 0 beyond.
    """

    notion: Notion
    starts: tuple[Odds, ...]
    rests: Floats

    @property
    def fine(self) -> int:
        """Rungs to a record."""
        return len(self.starts) - 1

    @property
    def records(self) -> int:
        """How many records lead from the middle to the end."""
        return -(-len(self.rests) // self.fine)

    def above(self, rungs: Integers) -> Floats:
        """1 - F at each rung, whatever its sign: the lower half mirrors the upper one."""
        up = clipped(rungs, 0, len(self.rests))
        down = clipped(self.fine - rungs, 0, len(self.rests))
        ended = np.append(self.rests, 0.0)
        return np.where(rungs >= 0, ended[up], 1.0 - ended[down])

    def below(self, rungs: Integers) -> Floats:
        """F at each rung."""
        return self.above(self.fine - rungs)

    def between(self, rung: int, share: float) -> Odds:
        """The start that lies so far from one of the rungs 0, ..., ``fine`` - 1 to the next."""
        (p, rest), (q, other) = self.starts[rung], self.starts[rung + 1]
        return p + share * (q - p), rest + share * (other - rest)


def is_straight(notion: Notion) -> bool:
    """Whether h is made of straight lines."""
    return isinstance(notion, Pure | Approx | Tv)


@lru_cache(maxsize=32)
def make_ladder(notion: Notion, fine: int) -> Ladder:
    """The ladder with so many rungs to a record, fewer where one record gains little.

    Where h is made of lines, its kinks and no more.

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
    """1 - g for g = p, h(p), h(h(p)), ... until nothing is left of it."""
    found = [rest]
    while rest > SMALLEST and len(found) < LONGEST:
        before = rest
        p, rest = notion.step(p, rest)
        if not rest < before:  # a chain that stands still
            break
        found.append(rest)
    return found


def _kinks(notion: Notion) -> list[float]:
    """Starts whose chain meets 1 - h(0), beyond which h is 1, or whose mirror's does; in increasing order."""
    low, high = notion.balanced
    left, taken = notion.step(0.0, 1.0)[::-1]  # 1 - h(0) and h(0)
    found = set()
    if taken > 0:
        p, rest = left, taken
        # Invariant: the chain from p meets 1 - h(0); its rest grows by one record at a time.
        while p > high:
            rest, p = notion.step(rest, p)
        found = {s for s in (p, rest) if low * (1 + 1e-12) < s < high * (1 - 1e-12)}
        if math.isclose(p, rest, rel_tol=1e-12):
            found = {0.5}
    return sorted(found)


@dataclass(frozen=True)
class Line:
    """q <= slope p + height, in rationals."""

    slope: Fraction
    height: Fraction

    def least(self, q: int, units: int) -> int:
        """The smallest numerator that a neighbour of q/units may have, by the line and by its mirror image.

        >>> Line(Fraction(2), Fraction(0)).least(10, 100), Line(Fraction(2), Fraction(0)).least(90, 100)
        (5, 80)
        """
        top, bottom = self.slope.numerator, self.slope.denominator
        more, over = self.height.numerator * units, self.height.denominator
        by_line = -((more - q * over) * bottom // (over * top))  # rounded up
        by_mirror = units - ((units - q) * top * over + more * bottom) // (bottom * over)
        return max(by_line, by_mirror, 0)

    def most(self, p: int, units: int) -> int:
        """The largest numerator that a neighbour of p/units may have."""
        return units - self.least(units - p, units)


def exact_line(notion: Notion) -> Line | None:
    """The line that is all of a notion made of straight lines, its slope rounded down; None where h is curved.

    Guarantees: a test whose probabilities meet the line and its mirror image, exactly, meets the notion.
    """
    if isinstance(notion, Pure):
        return Line(exp_below(notion.loss), Fraction(0))
    if isinstance(notion, Approx):
        return Line(exp_below(notion.loss) if notion.loss else Fraction(1), notion.delta)
    if isinstance(notion, Tv):
        return Line(Fraction(1), notion.eta)
    return None


def tangent(notion: Notion, p: float, rest: float) -> tuple[float, float]:
    """A value and a slope at p of a line that a curved h does not exceed anywhere, and touches at p."""
    if isinstance(notion, Gdp):
        mu = float(notion.mu)
        return notion.step(p, rest)[0], math.exp(min(-mu * quantile(p, rest) - mu * mu / 2, 700.0))
    order, (q, v) = 1.0, notion.step(p, rest)
    if isinstance(notion, Renyi):
        order = float(notion.order)
    elif isinstance(notion, Zcdp):
        order = concentrated(p, rest, float(notion.rho))[1]
    else:
        assert isinstance(notion, Kl), notion
    return q, _slope((p, rest), (q, v), order)


def _slope(before: Odds, after: Odds, order: float) -> float:
    """How fast q grows with p where the larger one of the two divergences of this order stays the same."""
    if order == 1.0:
        forward = kullback(*before, *after) >= kullback(*after, *before)
        first, second = kullback_slope(*before, *after) if forward else kullback_slope(*after, *before)
    else:
        forward = renyi_divergence(*before, *after, order) >= renyi_divergence(*after, *before, order)
        first, second = renyi_slope(*before, *after, order) if forward else renyi_slope(*after, *before, order)
    in_p, in_q = (first, second) if forward else (second, first)
    return -in_p / in_q
