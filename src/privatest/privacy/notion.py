r"""Notions of privacy: which data sets are neighbours, and how hard it must be to tell them apart.

A notion is one concave function h. A test that says "yes" with probability p on a data set may say so with probability
at most h(p) on a neighbour. Always h(p) >= p, and q <= h(p) if and only if 1 - p <= h(1 - q). 1 - h is the trade-off
function of Dong, Roth and Su (2022). The largest gain of any test over d records, the best test on two points and the
canonical noise all follow from h.

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

The first four are trade-off functions: noise that meets h makes the noisy total itself private. Of the last three, h is
what they allow a *decision*; a noisy total needs noise that meets the divergence itself.

:func:`as_notion` parses a notion as users write it; ``Notion.into`` converts one into another; what several answers
cost together is in ``composition.py``, and the noise that meets a notion in ``canonical_noise.py``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.numbers import Floats, Number, exp_below, positive, rational, square_root
from privatest.privacy.divergences import (
    Odds,
    concentrated,
    concentration,
    from_logit,
    golden_maximum,
    kullback,
    kullback_slope,
    last_allowed,
    log_normal,
    normal,
    quantile,
    renyi_divergence,
    renyi_slope,
)

if TYPE_CHECKING:
    from privatest.scores import Score


NEIGHBOURS = ("replace", "add-remove")


@dataclass(frozen=True)
class Neighbourhood:
    """Which data sets are neighbours: those that differ in the rows of one person.

    Attributes:
        kind: "replace" if the person's rows are replaced by as many others and the number of records is public;
            "add-remove" if they are added or removed.
        rows: the largest number of rows that one person has in the data, or of the rows that are used.
    """

    kind: str = "replace"
    rows: int = 1

    def reach(self, score: Score, scale: int = 1, shift: int = 0) -> int:
        """The largest difference between neighbours of the sum of ``scale * s - shift`` over the records' scores s."""
        low, high = scale * score.low - shift, scale * score.high - shift
        return self.rows * (high - low if self.kind == "replace" else max(abs(low), abs(high)))

    def extent(self, low: float, high: float, centre: float) -> float:
        """Return the largest difference between neighbours of a sum of numbers in [low, high].

        With "add-remove" the sum is that of the numbers minus ``centre``.
        """
        return self.rows * (high - low if self.kind == "replace" else max(high - centre, centre - low))

    def units(self, score: Score, centre: Fraction) -> int:
        """The largest change of the sum of scores minus ``centre`` by adding or removing a person, rounded up."""
        return self.rows * math.ceil(max(score.high - centre, centre - score.low))


REPLACE = Neighbourhood()


def make_neighbourhood(neighbours: str, max_rows_per_unit: int) -> Neighbourhood:
    """Parse and check what a user wrote as ``neighbours`` and ``max_rows_per_unit``."""
    numbers.choice(NEIGHBOURS, neighbours=neighbours)
    return Neighbourhood(neighbours, numbers.positive_integer(max_rows_per_unit=max_rows_per_unit))


@dataclass(frozen=True)
class Notion(ABC):
    """A notion of privacy at one budget. Parameters are exact: a float is read as its shortest decimal.

    Guarantees: equal notions have equal exact parameters; :func:`as_notion` reads ``text`` as the same notion.

    Attributes:
        name: the name in texts and documents.
        tradeoff: whether noise that meets h makes the noisy total itself private, not only a decision.
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
        """The notion as texts, documents and ledgers write it: short and exact.

        >>> Zcdp(0.5).text, Pure(Fraction(1, 3)).text
        ('zcdp(0.5)', 'pure(1/3)')
        """
        return f"{self.name}({', '.join(map(_written, self.exact))})"

    @classmethod
    def from_text(cls, text: str) -> Notion:
        """Read :attr:`text`, exactly; that of a test without privacy, too."""
        return Pure(math.inf) if text == Pure(math.inf).text else as_notion(text)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{float(value):g}' for value in self.exact)})"

    @abstractmethod
    def step(self, p: float, rest: float) -> Odds:
        """h(p) and 1 - h(p), each with a small relative error. ``rest`` is 1 - p."""

    @property
    @abstractmethod
    def balanced(self) -> Odds:
        """The p at which h(p) = 1 - p, and 1 - p. At this p, h gains the most."""

    def h(self, p: ArrayLike, records: int = 1) -> Floats:
        """Return the largest probability that an event of probability p can have where ``records`` records differ.

        Guarantees: relative error of order 1e-12 for small values; see :meth:`rise` for values near 1.

        >>> float(Tv(0.25).h(0.5)), float(Pure(1).h(0.0))
        (0.75, 0.0)
        """
        values = np.asarray(p, dtype=np.float64)
        if np.any(~((values >= 0) & (values <= 1))):
            raise InvalidInput("p must be a probability, from 0 to 1.")
        raised = [self.rise(value, 1 - value, records)[0] for value in values.ravel().tolist()]
        result: Floats = np.array(raised).reshape(values.shape)[()]
        return result

    def rise(self, p: float, rest: float, records: int) -> Odds:
        """Apply :meth:`step` once for each record."""
        for _ in range(_whole(records)):
            if not rest > 0:
                break
            p, rest = self.step(p, rest)
        return p, rest

    def gain(self, records: int = 1) -> float:
        r"""The largest amount by which d = ``records`` records can move a probability, :math:`\max_p h^d(p) - p`.

        The graph of h^d is symmetric, so the largest gain is where it meets 1 - p. For an even d this is d/2 steps up
        from 1/2; for an odd d it is (d - 1)/2 steps up from where h itself is balanced.

        >>> round(Pure(1).gain(), 9) == round(math.tanh(1 / 2), 9), round(Tv(0.1).gain(3), 9)
        (True, 0.3)
        """
        half, odd = divmod(_whole(records), 2)
        up, rest = self.rise(*(self.balanced[::-1] if odd else (0.5, 0.5)), half)
        return up - rest

    @property
    def epsilon(self) -> Any:
        """The privacy loss if this notion bounds it, else infinity."""
        return math.inf

    @property
    def equivalent(self) -> Fraction:
        """The epsilon of the pure notion with the same largest gain of one record."""
        return Fraction(f"{2 * math.atanh(min(self.gain(), 1 - 1e-12)):.12g}")

    @property
    def price(self) -> Fraction | Notion | None:
        """The price in a ledger: epsilon if this is pure, else the notion itself; None if this is not private."""
        return self

    def split(self, part: Number) -> Notion:
        """A part of this budget. Answers whose parts add up to 1 meet the budget together, even if chosen adaptively.

        Guarantees: never more than the part. The mu of gdp, whose square adds up, is rounded down.

        >>> Zcdp(0.5).split(0.25), Gdp(1).split(0.25), Approx(1, 1e-6).split(0.25)
        (zcdp(0.125), gdp(0.5), approx(0.25, 2.5e-07))
        """
        share = rational(part, "part")
        if not 0 < share <= 1:
            raise InvalidInput(f"part={shown(part)} must lie in (0, 1]: it is a part of {self}.")
        return self._part(share)

    def share(self, answers: int) -> Notion:
        """Return the budget of each of ``answers`` answers that meet this budget together.

        >>> Pure(1).share(4), Renyi(3, 0.5).share(5)
        (pure(0.25), renyi(3, 0.1))
        """
        if _whole(answers) < 1:
            raise InvalidInput(f"answers={shown(answers)} must be at least 1.")
        return self._part(Fraction(1, answers))

    def _part(self, part: Fraction) -> Notion:
        """Return the notion with a part of the last parameter, which is the number that adds up (proof.md)."""
        return with_last(self, part * self.exact[-1])

    def implies(self, other: Notion) -> bool:
        """Whether every mechanism that meets this notion meets the other one, too. Never true by rounding.

        >>> Gdp(1).implies(Zcdp(0.5)), Zcdp(0.5).implies(Gdp(1)), Pure(1).implies(Approx(1, 1e-6))
        (True, False, True)
        """
        best = self if type(other) is type(self) else self._into(other)
        return best is not None and best._within(other)

    def into(self, name: str, **chosen: Number) -> Notion:
        """Return the strongest guarantee of another kind that follows from this one.

        Args:
            name: of the kind: "pure", "approx", "tv", "gdp", "zcdp", "renyi" or "kl".
            chosen: the parameter to choose, if the kind has two: ``delta`` or ``epsilon`` for "approx", ``order`` for
                "renyi".

        Guarantees: ``self.implies(self.into(...))``: parameters that are not rational are rounded up.

        >>> Gdp(1).into("zcdp"), Gdp(1).into("renyi", order=3)
        (zcdp(0.5), renyi(3, 1.5))
        """
        if name not in NOTIONS:
            raise InvalidInput(f"name={shown(name)} must be one of {', '.join(map(repr, NOTIONS))}.")
        target = NOTIONS[name].target(**chosen)
        result = self if type(target) is type(self) and not chosen else self._into(target)
        if result is None:
            raise InvalidInput(f"{self} does not convert into {name}: no such guarantee follows from it.")
        return result

    @classmethod
    def target(cls, **chosen: Number) -> Notion:
        """Return a notion of this kind with the chosen parameter. :meth:`into` finds the other one."""
        _refuse_choices(cls.name, chosen)
        return cls(*(Fraction(1) for _ in fields(cls)))

    def _within(self, other: Any) -> bool:
        """Whether this notion implies another one of its kind: each parameter is at most the other's."""
        return all(mine <= theirs for mine, theirs in zip(self.exact, other.exact, strict=True))

    def _into(self, other: Notion) -> Notion | None:
        """Return the strongest guarantee of the other's kind and chosen parameter that follows; None if none does."""
        if isinstance(other, Tv):
            most = _above(self.gain())
            return Tv(most) if most < 1 else None
        if isinstance(other, Approx):
            return self._approx(other.exact)
        return None

    def _approx(self, chosen: tuple[Fraction, ...]) -> Notion | None:
        """``approx`` with the chosen epsilon or, if that is 0 and delta is positive, with the chosen delta."""
        epsilon, delta = chosen
        if not delta or epsilon:
            least = self._delta(float(epsilon))
            return Approx(epsilon, _above(least)) if least < 1 else None
        goal, high = float(delta) * (1 - 3 * _SLACK), 1.0
        while self._delta(high) > goal:
            high *= 2
            if high > _LARGEST_EPSILON:
                return None
        low = high / 2 if high > 1 else 0.0
        _, enough = numbers.root(lambda e: self._delta(e) <= goal, low, high, relative=1e-12, absolute=1e-18)
        return Approx(_above(enough), delta)

    def _delta(self, epsilon: float) -> float:
        """Return the largest h(p) - e^epsilon p. It is concave in p: found over the logarithm of the odds."""
        factor = math.exp(min(epsilon, 700.0))

        def excess(y: float) -> float:
            p, rest = from_logit(y)
            return self.step(p, rest)[0] - factor * p

        return max(golden_maximum(excess, -745.0, 20.0), self.step(0.0, 1.0)[0], 0.0)


@dataclass(frozen=True, repr=False)
class Pure(Notion):
    """Epsilon-differential privacy: between neighbours, no probability changes by a factor of more than e^epsilon.

    An infinite epsilon means: not private.

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

    @property
    def balanced(self) -> Odds:
        return from_logit(-self.epsilon)

    def _into(self, other: Notion) -> Notion | None:
        loss, e = self.loss, self.epsilon
        if loss == math.inf:
            return None
        if isinstance(other, Zcdp):
            return Zcdp(loss**2 / 2)
        if isinstance(other, Renyi):  # D_a is at most that of randomised response, epsilon, and a epsilon^2/2
            response = renyi_divergence(*from_logit(e), *from_logit(-e), float(other.order))
            return Renyi(other.order, min(_above(response), loss, other.order * loss**2 / 2))
        if isinstance(other, Kl):
            return Kl(min(_above(e * math.tanh(e / 2)), loss))
        if isinstance(other, Gdp):  # both are concave and symmetric, and pure has one corner: there they must meet
            return Gdp(_above(-2 * quantile(*from_logit(-e))))
        if isinstance(other, Approx) and other.loss >= loss and (other.loss or not other.delta):
            return Approx(other.loss, Fraction(0))
        return super()._into(other)


@dataclass(frozen=True, repr=False)
class Approx(Notion):
    """(epsilon, delta)-differential privacy: a factor of at most e^epsilon, except for a probability of delta.

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
            raise InvalidInput("epsilon=0 and delta=0 allow no answer that depends on the data. Use a larger epsilon.")
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "delta", delta)

    @property
    def epsilon(self) -> float:
        """The privacy loss, which may be exceeded with probability delta."""
        return float(self.loss)

    def step(self, p: float, rest: float) -> Odds:
        return _by_lines(p, rest, self.epsilon, float(self.delta))

    @property
    def balanced(self) -> Odds:
        down, up = from_logit(-self.epsilon)
        delta = float(self.delta)
        return (1 - delta) * down, up + delta * down

    def grouped(self, records: int) -> Approx | None:
        """Return the notion that holds for a group of records if this one holds for each; None if its delta reached 1.

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
    def target(cls, epsilon: Number = 0, delta: Number | None = None, **chosen: Number) -> Notion:
        _refuse_choices(cls.name, chosen)
        if (delta is None) == (epsilon == 0):
            raise InvalidInput('into("approx") needs one of epsilon= and delta=, and finds the other.')
        return cls(epsilon, delta or 0)

    def _within(self, other: Any) -> bool:
        if self.loss <= other.loss:
            return bool(self.delta <= other.delta)
        return self._delta(float(other.loss)) * (1 + 1e-12) <= float(other.delta)

    def _delta(self, epsilon: float) -> float:
        """Return the largest excess of h over the line of ``epsilon``, at the corner of its two lines or at 0."""
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
    def target(cls, **chosen: Number) -> Notion:
        _refuse_choices(cls.name, chosen)
        return cls(Fraction(1, 2))

    def step(self, p: float, rest: float) -> Odds:
        eta = float(self.eta)
        return (1.0, 0.0) if rest <= eta else (p + eta, rest - eta)

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
    """Gaussian differential privacy: neighbours are no easier to distinguish than N(0, 1) and N(mu, 1).

    >>> round(float(Gdp(1).h(0.5)), 6)
    0.841345
    """

    name: ClassVar[str] = "gdp"

    mu: Any

    def step(self, p: float, rest: float) -> Odds:
        return normal(quantile(p, rest) + float(self.mu)) if p > 0 and rest > 0 else (p, rest)

    @property
    def balanced(self) -> Odds:
        return normal(-float(self.mu) / 2)

    def _part(self, part: Fraction) -> Notion:  # the squares add up
        return Gdp(square_root(part * self.mu**2, up=False))

    def _into(self, other: Notion) -> Notion | None:
        rho = Zcdp(self.mu**2 / 2)  # exactly what all divergences together say
        if isinstance(other, Zcdp):
            return rho
        return rho._into(other) if isinstance(other, Renyi | Kl) else super()._into(other)

    def _delta(self, epsilon: float) -> float:
        mu = float(self.mu)
        up, down = normal(mu / 2 - epsilon / mu)[0], log_normal(-mu / 2 - epsilon / mu)
        return max(up - math.exp(min(epsilon + down, 0.0)), 0.0)


@dataclass(frozen=True, repr=False)
class _DivergenceBound(Notion):
    """A notion that bounds divergences. h(p) is the largest q for which the coins p and q keep to the bound."""

    tradeoff: ClassVar[bool] = False

    @abstractmethod
    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        """Return the larger divergence between (p, u) and (q, v), of both directions, less the bound."""

    def step(self, p: float, rest: float) -> Odds:
        if not p > 0 or not rest > 0:
            return p, rest
        start = math.log(p) - math.log(rest)

        def excess(y: float) -> float:
            return self._excess(p, rest, *from_logit(y))

        return from_logit(last_allowed(excess, start))

    @property
    def balanced(self) -> Odds:
        def excess(y: float) -> float:
            up, down = from_logit(y)
            return self._excess(down, up, up, down)

        up, down = from_logit(last_allowed(excess, 0.0))
        return down, up


@dataclass(frozen=True, repr=False)
class Renyi(_DivergenceBound):
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
    def target(cls, order: Number | None = None, **chosen: Number) -> Notion:
        _refuse_choices(cls.name, chosen)
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
class Kl(_DivergenceBound):
    """The divergences of Kullback and Leibler in both directions are at most eta.

    >>> Kl(0.5)
    kl(0.5)
    """

    name: ClassVar[str] = "kl"

    eta: Any

    def _excess(self, p: float, u: float, q: float, v: float) -> float:
        return max(kullback(p, u, q, v), kullback(q, v, p, u)) - float(self.eta)


@dataclass(frozen=True, repr=False)
class Zcdp(_DivergenceBound):
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
        """Return the least q over all orders; the order 1 stands for Kullback and Leibler."""
        if not p > 0 or not rest > 0:
            return p, rest
        return from_logit(concentrated(p, rest, float(self.rho))[0])

    def _delta(self, epsilon: float) -> float:
        r"""Return the delta that follows from all orders together (Canonne, Kamath and Steinke 2020, proposition 12).

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


def _refuse_choices(name: str, chosen: dict[str, Number]) -> None:
    for word, value in chosen.items():
        raise InvalidInput(f"{word}={shown(value)} is not chosen in {name}. Leave it out.")


def _written(value: Fraction) -> str:
    """Return a decimal if a short one is read back as exactly this value, else p/q."""
    short = repr(float(value))
    if Fraction(short) == value == rational(float(value)):
        return short.removesuffix(".0")
    return f"{value.numerator}/{value.denominator}"


def _whole(records: int) -> int:
    """Check a number of records."""
    if isinstance(records, bool) or int(records) != records or records < 0:
        raise InvalidInput(f"records={shown(records)} must be a whole number, 0 or more.")
    return int(records)


# The relative error of a computed parameter is less than this, so that rounding up by it covers the true one.
_SLACK = 1e-9
_LARGEST_EPSILON = 1e6


def _above(value: float) -> Fraction:
    """Return a short rational that is safely at least the computed value."""
    return Fraction(f"{max(value, 1e-300) * (1 + _SLACK):.12g}")


def _by_lines(p: float, rest: float, epsilon: float, delta: float) -> Odds:
    """h of (epsilon, delta): the lower of its two lines, at most 1. Returned with 1 - h."""
    if rest <= delta:
        return 1.0, 0.0
    grown = math.exp(min(epsilon, 700.0)) * p + delta
    left = math.exp(-epsilon) * (rest - delta)
    return (grown, 1 - grown) if grown + left <= 1 else (1 - left, left)


def converted(notion: Notion, kind: Notion) -> Notion | None:
    """Return the strongest guarantee of a kind (and order, or delta) that follows from a notion; None if none does.

    >>> converted(Pure(1), Gdp(1)), converted(Gdp(1), Pure(1)), converted(Pure(1), Approx(1, 1e-6))
    (gdp(1.23204), None, approx(1, 0))
    """
    if type(notion) is type(kind) and not isinstance(notion, Renyi):
        return notion
    if not isinstance(kind, Approx):
        return notion._into(kind)
    if isinstance(notion, Pure):
        return Approx(notion.loss, 0)
    return notion._into(Approx(0, kind.delta)) if kind.delta else None


def replaced(notion: Notion) -> Notion | None:
    """Return the notion that replacing a record meets if adding or removing one meets this one; None if there is none.

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


def per_row(notion: Notion, rows: int) -> Notion:
    r"""Return the budget of one row if a person has up to ``rows`` rows, in one block of a stream or in several.

    Rows in one block move one noisy total further; rows in several blocks move several totals, which costs no more.

    ========================  ==============================================================================
    ``pure``, ``tv``          the k-th part: the differences along a chain of k neighbours add up
    ``gdp``                   mu/k: the shift of a Gaussian is k times as long
    ``zcdp, renyi, kl``       the k^2-th part: their noise is Gaussian, whose :math:`\mu^2` counts
    ``approx``                epsilon/k, and delta over :math:`1 + e^{\epsilon/k} + \dots` (k terms), rounded down
    ========================  ==============================================================================

    Argument: proof.md.

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
    return with_last(notion, notion.exact[-1] / part)


def with_last(notion: Notion, value: Fraction) -> Notion:
    """Return the notion of the same kind whose last parameter is ``value``."""
    kind: Callable[..., Notion] = type(notion)
    return kind(*notion.exact[:-1], value)


def is_straight(notion: Notion) -> bool:
    """Whether h consists of straight lines."""
    return isinstance(notion, Pure | Approx | Tv)


@dataclass(frozen=True)
class Line:
    """A line q = slope p + height, in rationals, that h does not exceed: it proves that a test is private.

    Each line holds together with its mirror image, 1 - p <= slope (1 - q) + height, which is the same condition on the
    other decision.
    """

    slope: Fraction
    height: Fraction

    def least(self, q: int, units: int) -> int:
        """Return the smallest numerator that a neighbour of q/units may have under the line and its mirror image.

        >>> Line(Fraction(2), Fraction(0)).least(10, 100), Line(Fraction(2), Fraction(0)).least(90, 100)
        (5, 80)
        """
        top, bottom = self.slope.numerator, self.slope.denominator
        more, over = self.height.numerator * units, self.height.denominator
        by_line = -((more - q * over) * bottom // (over * top))  # rounded up
        by_mirror = units - ((units - q) * top * over + more * bottom) // (bottom * over)
        return max(by_line, by_mirror, 0)

    def most(self, p: int, units: int) -> int:
        """Return the largest numerator that a neighbour of p/units may have."""
        return units - self.least(units - p, units)


def exact_line(notion: Notion) -> Line | None:
    """Return the line that, with its mirror image, is h; its slope is rounded down. None if h is curved.

    Guarantees: a test whose probabilities meet the line and its mirror image exactly meets the notion.
    """
    if isinstance(notion, Pure):
        return Line(exp_below(notion.loss), Fraction(0))
    if isinstance(notion, Approx):
        return Line(exp_below(notion.loss) if notion.loss else Fraction(1), notion.delta)
    if isinstance(notion, Tv):
        return Line(Fraction(1), notion.eta)
    return None


def tangent(notion: Notion, p: float, rest: float) -> tuple[float, float]:
    """Return the value and the slope at p of the tangent to a curved h, which h nowhere exceeds."""
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
    """dq/dp along which the larger of the two divergences of this order is constant."""
    if order == 1.0:
        forward = kullback(*before, *after) >= kullback(*after, *before)
        first, second = kullback_slope(*before, *after) if forward else kullback_slope(*after, *before)
    else:
        forward = renyi_divergence(*before, *after, order) >= renyi_divergence(*after, *before, order)
        first, second = renyi_slope(*before, *after, order) if forward else renyi_slope(*after, *before, order)
    in_p, in_q = (first, second) if forward else (second, first)
    return -in_p / in_q


_PARAMETERS = {
    "pure": ("epsilon",),
    "approx": ("epsilon", "delta"),
    "tv": ("eta",),
    "gdp": ("mu",),
    "zcdp": ("rho",),
    "renyi": ("order", "bound"),
    "kl": ("eta",),
}
_FORM = ", ".join(f"{name}({', '.join(words)})" for name, words in _PARAMETERS.items())
_CALL = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")
_NUMBER = re.compile(
    r"(?=\.?[0-9])[0-9]{0,60}(?:\.[0-9]{0,60})?(?:e[+-]?[0-9]{1,3})?|[0-9]{1,400}/[0-9]{1,400}",
    re.IGNORECASE,
)


def as_notion(value: Any, name: str = "privacy") -> Notion:
    """Parse a notion of privacy.

    Args:
        value: a notion, which is returned unchanged; a number, which stands for ``pure``; or a text such as
            "zcdp(0.5)" or "approx(1, delta=1e-6)".
        name: the name of the argument in messages.

    >>> as_notion("approx(1, delta=1e-6)"), as_notion(0.5)
    (approx(1, 1e-06), pure(0.5))
    """
    if isinstance(value, Notion):
        return value
    if not isinstance(value, str):
        return Pure(rational(value, name))
    match = _CALL.fullmatch(value.lower())
    if match is None:
        if _NUMBER.fullmatch(value.strip()):
            return Pure(_parse_number(value.strip(), name))
        raise InvalidInput(f"{name}={shown(value)} must be one of {_FORM}, with numbers.")
    kind = match[1]
    if kind not in _PARAMETERS:
        close = numbers.suggestion(kind, _PARAMETERS)
        raise InvalidInput(f"{name}={shown(value)}: {kind!r} is no notion of privacy. Known: {_FORM}.{close}")
    words = _PARAMETERS[kind]
    values: dict[str, Fraction] = {}
    for place, part in enumerate(match[2].split(",")):
        word, equals, number = part.rpartition("=")
        word = word.strip() if equals else (words[place] if place < len(words) else "")
        if word not in words or word in values:
            break
        values[word] = _parse_number(number.strip(), name)
    else:
        if len(values) == len(words):
            return NOTIONS[kind](*(values[word] for word in words))
    raise InvalidInput(f"{name}={shown(value)} must be written {kind}({', '.join(words)}), with numbers.")


def make_notion(epsilon: Number | None, privacy: Any) -> Notion:
    """Return the notion that a function's arguments ``epsilon`` and ``privacy`` define. Exactly one must be given."""
    if (epsilon is None) == (privacy is None):
        if epsilon is None:
            raise InvalidInput("epsilon is missing: give epsilon=1, say, or privacy='zcdp(0.5)'.")
        raise InvalidInput(f"epsilon={shown(epsilon)} and privacy={shown(privacy)} were both given. Give one of them.")
    if privacy is None:
        assert epsilon is not None
        return Pure(numbers.privacy_loss(epsilon=epsilon))
    notion = as_notion(privacy)
    if isinstance(notion, Pure | Approx) and 0 < notion.loss < math.inf:
        numbers.privacy_loss(epsilon=notion.loss)
    return notion


def notion_to_json(notion: Notion) -> str:
    """Return the notion as documents write it, exactly: the epsilon of a pure one as a fraction, any other as its text.

    >>> notion_to_json(Pure(Fraction(1, 3))), notion_to_json(Zcdp(0.5))
    ('1/3', 'zcdp(0.5)')
    """
    return str(notion.loss) if isinstance(notion, Pure) else notion.text


def notion_words(notion: Notion) -> str:
    """Return the budget as it is written in messages.

    >>> notion_words(Pure(0.5)), notion_words(Gdp(1))
    ('epsilon=0.5', 'privacy=gdp(1)')
    """
    return f"epsilon={notion.epsilon:g}" if isinstance(notion, Pure) else f"privacy={notion}"


def budget_word(notion: Notion) -> str:
    """Return the word for the budget in messages: "epsilon", or "budget" for another notion than pure."""
    return "epsilon" if isinstance(notion, Pure) else "budget"


def price_words(notion: Notion) -> dict[str, str]:
    """Return the argument that stands for the notion, with its exact value: ``epsilon`` or ``privacy``."""
    return {"epsilon" if isinstance(notion, Pure) else "privacy": notion_to_json(notion)}


def _parse_number(text: str, name: str) -> Fraction:
    """The exact number in a text. A decimal that is the shortest text of a float is read as :func:`rational` does."""
    if _NUMBER.fullmatch(text) is None or text.endswith("/0"):
        raise InvalidInput(f"{name}: {shown(text)} must be a number, such as 0.5, 1e-6 or 1/3.")
    value = Fraction(text)
    number = numbers.number_or_nan(value)
    of_float = "/" not in text and math.isfinite(number) and Fraction(repr(number)) == value
    return rational(number, name) if of_float else value
