"""Uniform noise: the canonical noise of stability in total variation.

Gaussian noise rounded to the lattice: canonical for Gaussian differential privacy, and what zCDP needs.

The draw is an exact normal number whose digits are drawn as far as the rounding needs them, so that what is released is
post-processing of an exact Gaussian: exactly mu-GDP. (A discrete Gaussian is not.) Reference: Karney 2016, "Sampling
exactly from the normal distribution", algorithm N. Argument: proof.md.

Notions of stability as users write them, and from a notion to the noise that meets it.

``pt.zcdp(0.5)``, "zcdp(0.5)" or a number for epsilon is read by :func:`as_notion`; :func:`canonical_noise` is what the
tight test adds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.documents import fraction_from_json, number_from_json
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.numbers import Floats, Number, rational, square_root
from privatest.privacy import randomness as coins
from privatest.privacy.noise import Neighbourhood, Noise, positive_within_double
from privatest.privacy.notions import (
    Approx,
    Gdp,
    Kl,
    Notion,
    Pure,
    Renyi,
    Tv,
    Zcdp,
    from_logit,
    golden_maximum,
    normal,
    per_row,
)
from privatest.privacy.randomness import RandomSource
from privatest.privacy.tulap import TruncatedTulap, Tulap


@dataclass(frozen=True)
class Uniform(Noise):
    """N uniform on ``points`` consecutive lattice values centred at 0.

    Guarantees: totals d apart have noisy totals at a total variation of exactly d/points. Half integers when the number
    of points is even.

    >>> Uniform(10).guarantee(1)
    tv(0.1)
    """

    points: int
    kind: ClassVar[str] = "uniform"
    grain: ClassVar[int] = 8  # points are a whole number, at most 1/8 of a width more than the notion asks for

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

    def reach(self, nats: float) -> float:  # noqa: ARG002 - the same for all
        return self.points / 2

    def exponent(self, x: float) -> float:  # noqa: ARG002 - nothing is exponentiated
        return 0.0

    def drift(self, theta: float) -> float:
        """Mean of the law tilted by e^(theta N)."""
        m = float(self.points)
        if theta * m < 1e-3:
            return theta * self.variance
        return 0.5 * (m / math.tanh(m * theta / 2) - 1 / math.tanh(theta / 2))

    def guarantee(self, shift: int) -> Notion | None:
        return Tv(Fraction(abs(shift), self.points)) if 0 < abs(shift) < self.points else None

    def scattered(self, rows: int) -> Notion | None:
        """Total variations add up, whatever counts they are of."""
        return self.guarantee(rows)

    def _draw_doubled(self, source: RandomSource) -> int:
        return 2 * source.below(self.points) - (self.points - 1)

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(np.abs(v) <= (self.points - 1) / 2, -math.log(self.points), -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.log(np.maximum(v + (self.points + 1) / 2, 0.0) / self.points)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        m = float(self.points)
        half = np.where(t == 0, 1, t / 2)
        return np.where(t == 0, 1, np.sin(m * half) / (m * np.sin(half)))

    def _exact_loss(self, shift: int) -> Fraction | None:
        return None if shift else Fraction(0)


_WORD = 32
# From this deviation on a lattice value's mass is integrated: the difference of two tails would lose digits.
_WIDE = 8.0


@dataclass(frozen=True)
class Gaussian(Noise):
    r"""The nearest integer to a normal number of standard deviation width/mu.

    .. math:: \Pr[N = k] = \Phi\Big(\frac{k + 1/2}{\sigma}\Big) - \Phi\Big(\frac{k - 1/2}{\sigma}\Big), \qquad
              \sigma = \frac{width}{\mu}

    Guarantees: totals d apart are hidden with (mu d/width)-GDP, exactly: as if the normal number itself were added.

    >>> Gaussian(Fraction(1, 2), 100).guarantee(200)
    gdp(1)
    """

    mu: Fraction
    width: int
    kind: ClassVar[str] = "gaussian"
    grain: ClassVar[int] = 8  # rounding then adds 1/768 of a width's square to the variance

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive_within_double(mu=self.mu))
        object.__setattr__(self, "width", numbers.positive_integer(width=self.width))

    @property
    def sd(self) -> float:
        """Standard deviation before rounding."""
        return float(self.width / self.mu)

    @property
    def offset(self) -> Fraction:
        return Fraction(0)

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        if self.sd >= 2:  # the rounding's share is 1/12 but for e^(-2 pi^2 sd^2)
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
        """Mean of the law tilted by e^(theta N)."""
        return self.sd**2 * theta

    def log_excess(self, theta: float) -> float:
        return (self.sd * theta) ** 2 / 2 + theta / 2

    def guarantee(self, shift: int) -> Notion | None:
        return Gdp(self.mu * abs(shift) / self.width) if shift else None

    def scattered(self, rows: int) -> Notion | None:
        """Shifts of several counts add up by their squares: the most, where all rows move one count."""
        return self.guarantee(rows)

    def hides(self, shift: int) -> bool:
        return abs(shift) <= self.width

    def _draw_doubled(self, source: RandomSource) -> int:
        return self.rounded(*_half_normal(source), source)

    def rounded(self, whole: int, digits: Digits, source: RandomSource) -> int:
        """Twice the whole number nearest to whole + digits deviations, with a fair sign, by all digits it needs."""
        top, bottom = self.width * self.mu.denominator, self.mu.numerator  # the deviation
        # Invariant: the number lies in [low, high)/(2 bottom 2^bits), whole and digits being all that is known of it.
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

    def _exact_loss(self, shift: int) -> Fraction | None:
        return None if shift else Fraction(0)


class Digits:
    """A uniform number in [0, 1), of which as many binary digits are drawn as are asked for: value/2^bits and up.

    The first may have been drawn already.
    """

    def __init__(self, source: RandomSource, value: int | None = None, bits: int = _WORD) -> None:
        self._source = source
        self.bits = bits
        self.value = source.bits(bits) if value is None else value

    def extend(self) -> None:
        """Draw another word of digits."""
        self.value = self.value << _WORD | self._source.bits(_WORD)
        self.bits += _WORD


def _half_normal(source: RandomSource) -> tuple[int, Digits]:
    """k and x such that k + x has the law of the absolute value of a standard normal number.

    k is kept in proportion to e^(-k/2) e^(-k(k-1)/2) = e^(-k^2/2), x in proportion to e^(-x(2k+x)/2).
    """
    # Invariant: a rejected pair leaves no trace.
    while True:
        k = 0
        while coins.bernoulli_exp(1, 2, source):
            k += 1
        if not coins.bernoulli_exp(k * (k - 1), 2, source):
            continue
        x = Digits(source)
        if all(_kept(x, k, source) for _ in range(k + 1)):
            return k, x


def _kept(x: Digits, k: int, source: RandomSource) -> bool:
    """True with probability e^(-y), y = x (2k + x)/(2k + 2) < 1: as ``_bernoulli_exp_within_one`` with a lazy y."""
    j = 1
    # Invariant: the coins y/1, ..., y/(j-1) all came up true.
    while _below_mass(x, k, j, source):
        j += 1
    return j & 1 == 1


def _below_mass(x: Digits, k: int, j: int, source: RandomSource) -> bool:
    """True with probability y/j: a fresh uniform number, times j (2k + 2), is below x (2k + x)."""
    fresh, factor = Digits(source), j * (2 * k + 2)
    # Invariant: nothing is decided yet: the two sides, as far as they are known, overlap.
    while True:
        known, size = x.value, x.bits
        least = known * ((2 * k << size) + known) << fresh.bits
        most = (known + 1) * ((2 * k << size) + known + 1) << fresh.bits
        if (fresh.value + 1) * factor << 2 * size <= least:
            return True
        if fresh.value * factor << 2 * size >= most:
            return False
        fresh.extend()
        x.extend()


CANONICAL = (Tulap, TruncatedTulap, Uniform, Gaussian)
"""What :func:`canonical_noise` gives."""


def pure(epsilon: Number) -> Pure:
    """Epsilon-differential privacy; ``epsilon=1`` means ``privacy=pure(1)``.

    Args:
        epsilon: the largest log-ratio of an outcome's probabilities on two neighbouring data sets.
    """
    return Pure(numbers.positive(epsilon=epsilon))


def approx(epsilon: Number, delta: Number) -> Approx:
    """(epsilon, delta)-differential privacy.

    Args:
        epsilon: as for :func:`privatest.pure`.
        delta: the probability by which that may be exceeded.
    """
    return Approx(epsilon, delta)


def tv(eta: Number) -> Tv:
    """Stability in total variation: no probability changes by more than eta.

    Args:
        eta: the largest change of any outcome's probability, in (0, 1).
    """
    return Tv(eta)


def gdp(mu: Number) -> Gdp:
    """Gaussian differential privacy.

    Args:
        mu: telling two neighbours apart is as hard as telling N(0, 1) from N(mu, 1).
    """
    return Gdp(mu)


def zcdp(rho: Number) -> Zcdp:
    """Zero-concentrated differential privacy.

    Args:
        rho: the Renyi divergence of every order a > 1 is at most rho a.
    """
    return Zcdp(rho)


def renyi(order: Number, bound: Number) -> Renyi:
    """Renyi differential privacy at one order.

    Args:
        order: of the divergence, above 1.
        bound: the largest divergence of that order, in nats.
    """
    return Renyi(order, bound)


def kl(eta: Number) -> Kl:
    """Stability in the divergence of Kullback and Leibler, both ways.

    Args:
        eta: the largest divergence, in nats.
    """
    return Kl(eta)


_MADE: dict[str, tuple[Callable[..., Notion], tuple[str, ...]]] = {
    "pure": (pure, ("epsilon",)),
    "approx": (approx, ("epsilon", "delta")),
    "tv": (tv, ("eta",)),
    "gdp": (gdp, ("mu",)),
    "zcdp": (zcdp, ("rho",)),
    "renyi": (renyi, ("order", "bound")),
    "kl": (kl, ("eta",)),
}
_FORM = ", ".join(f"{name}({', '.join(words)})" for name, (_, words) in _MADE.items())
_CALL = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")
_NUMBER = re.compile(
    r"(?=\.?[0-9])[0-9]{0,60}(?:\.[0-9]{0,60})?(?:e[+-]?[0-9]{1,3})?|[0-9]{1,400}/[0-9]{1,400}",
    re.IGNORECASE,
)


def as_notion(value: Any, name: str = "privacy") -> Notion:
    """A notion as it is, a number as ``pure``, a text such as "zcdp(0.5)" or "approx(1, delta=1e-6)" as what it says.

    Args:
        value: a notion, a number or a text, see above.
        name: what messages call it.

    >>> as_notion("approx(1, delta=1e-6)") == approx(1, 1e-6), as_notion(0.5)
    (True, pure(0.5))
    """
    if isinstance(value, Notion):
        return value
    if not isinstance(value, str):
        return pure(rational(value, name))
    match = _CALL.fullmatch(value.lower())
    if match is None:
        if _NUMBER.fullmatch(value.strip()):
            return pure(_number(value.strip(), name))
        raise InvalidInput(f"{name}={shown(value)} must be one of {_FORM}, with numbers.")
    kind = match[1]
    if kind not in _MADE:
        close = numbers.suggestion(kind, _MADE)
        raise InvalidInput(f"{name}={shown(value)}: {kind!r} is no notion of privacy. Known: {_FORM}.{close}")
    make, words = _MADE[kind]
    given: dict[str, Fraction] = {}
    for place, part in enumerate(match[2].split(",")):
        word, equals, number = part.rpartition("=")
        word = word.strip() if equals else (words[place] if place < len(words) else "")
        if word not in words or word in given:
            raise InvalidInput(f"{name}={shown(value)} must be written {kind}({', '.join(words)}), with numbers.")
        given[word] = _number(number.strip(), name)
    if len(given) != len(words):
        raise InvalidInput(f"{name}={shown(value)} must be written {kind}({', '.join(words)}), with numbers.")
    return make(**given)


def make_notion(epsilon: Number | None, privacy: Any) -> Notion:
    """The notion a user asks for by ``epsilon=`` or by ``privacy=``, of which one must be given."""
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
    """Exact: the number of a pure one, as documents have it from the time when there was no other; else its text.

    >>> notion_to_json(pure(Fraction(1, 3))), notion_to_json(zcdp(0.5))
    ('1/3', 'zcdp(0.5)')
    """
    return str(notion.loss) if isinstance(notion, Pure) else notion.text


def notion_from_json(text: Any) -> Notion:
    """What :func:`notion_to_json` wrote."""
    if isinstance(text, str) and "(" in text:
        return as_notion(text)
    return Pure(fraction_from_json(text))


def notion_settings(epsilon: float, notion: Notion | None) -> dict[str, Any]:
    """A design's epsilon and, where it meets another notion, that: as documents have them."""
    notion_words = epsilon if math.isfinite(epsilon) else "inf"
    return {"epsilon": notion_words, **({} if notion is None else {"privacy": notion.text})}


def notion_from_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`notion_settings` wrote; refuses an epsilon that is not the notion's own."""
    notion = as_notion(document["privacy"]) if "privacy" in document else None
    epsilon = math.inf if document["epsilon"] == "inf" else number_from_json(document["epsilon"])
    if notion is None and not math.isfinite(epsilon):
        raise InvalidDocument("epsilon='inf' without privacy: this would not be private.")
    if notion is not None and (isinstance(notion, Pure) or notion.epsilon != epsilon):
        raise InvalidDocument(f"privacy={notion} must be another notion than pure, and epsilon={epsilon:g} its own.")
    return {"epsilon": epsilon, "notion": notion}


def notion_words(notion: Notion) -> str:
    """The budget as messages name it.

    >>> told(pure(0.5)), told(gdp(1))
    ('epsilon=0.5', 'privacy=gdp(1)')
    """
    return f"epsilon={notion.epsilon:g}" if isinstance(notion, Pure) else f"privacy={notion}"


def budget_word(notion: Notion) -> str:
    """What a larger one of is asked for."""
    return "epsilon" if isinstance(notion, Pure) else "budget"


def price_words(notion: Notion) -> dict[str, str]:
    """How settings name it, exactly: as an ``epsilon`` or as ``privacy``."""
    return {"epsilon" if isinstance(notion, Pure) else "privacy": notion_to_json(notion)}


def _number(text: str, name: str) -> Fraction:
    """The number that a text stands for: a fraction as it is, a decimal that is a float's as that float is read."""
    if _NUMBER.fullmatch(text) is None or text.endswith("/0"):
        raise InvalidInput(f"{name}: {shown(text)} must be a number, such as 0.5, 1e-6 or 1/3.")
    found = Fraction(text)
    number = numbers.number_or_nan(found)
    of_float = "/" not in text and math.isfinite(number) and Fraction(repr(number)) == found
    return rational(number, name) if of_float else found


def canonical_noise(notion: Notion, width: int | Fraction, *, whole: bool = False) -> Noise:
    r"""The noise under which totals ``width`` lattice steps apart meet the notion, and statistics may be released.

    For pure, approx, tv and gdp it is the canonical one, :math:`F(x + width) = h(F(x))` (Awan and Vadhan 2023): no
    noise is tighter. For zcdp, renyi and kl it is Gaussian noise that meets the divergence. ``whole``: on the integers,
    with a value more where there would be half integers.

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
        budget = {"zcdp": 0, "renyi": 1, "kl": 0}[notion.name]
        half = notion.exact[budget] / (notion.order if isinstance(notion, Renyi) else 1)
        return Gaussian(square_root(2 * half, up=False), width)
    raise InvalidInput(f"{notion} has no noise: it is not private.")


def counts_noise(notion: Notion, around: Neighbourhood) -> Noise:
    """The noise on each of many counts under which all of them together meet the notion.

    A person who is replaced takes up to ``rows`` records out of some counts and puts as many into others; these may all
    be different ones. What hides that adds up as :func:`counts_guarantee` says.

    >>> counts_noise(Pure(1), Neighbourhood()), counts_noise(Zcdp(1), Neighbourhood("add-remove"))
    (Tulap(epsilon=Fraction(1, 2), width=1), Gaussian(mu=Fraction(282842712474619, 200000000000000), width=1))
    """
    return canonical_noise(per_row(notion.share(_sides(around)), around.rows), 1)


def counts_guarantee(noise: Noise, around: Neighbourhood) -> list[Notion | None]:
    """What adds up to the guarantee of many counts, each with this noise: the rows taken out, and those put in."""
    return [noise.scattered(around.rows)] * _sides(around)


def _sides(around: Neighbourhood) -> int:
    return 2 if around.kind == "replace" else 1


def loss_range(notion: Notion) -> Fraction:
    r"""The largest e such that what keeps its privacy loss within *some* interval of length e meets the notion.

    The exponential mechanism of rate e keeps it so where a record moves all utilities one way, by 1 at most. Then no
    event's log odds change by more than e, :math:`h(p) = \sigma(\sigma^{-1}(p) + e)`, and every Renyi divergence of
    order a is at most :math:`a e^2/8`. Argument: proof.md. Rounded down where it is not rational; for pure it is
    epsilon.

    >>> loss_range(Pure(1)), loss_range(Zcdp(0.5)), round(float(loss_range(Tv(0.1))), 6)
    (Fraction(1, 1), Fraction(2, 1), 0.401341)
    """
    if isinstance(notion, Pure):
        return Fraction(notion.loss)
    if isinstance(notion, Tv):  # sigma(e/4) - sigma(-e/4) is the most that h gains
        return _below(4 * math.atanh(float(notion.eta)))
    if isinstance(notion, Gdp):  # both are balanced there; between, normal quantiles grow slower than log odds
        up, down = normal(float(notion.mu) / 2)
        return _below(2 * (math.log(up) - math.log(down)))
    if isinstance(notion, Approx):
        return max(_within(notion), Fraction(notion.loss))
    bound = notion.exact[-1]
    order = notion.order if isinstance(notion, Renyi) else 1
    loss = 0 if isinstance(notion, Zcdp) else bound  # no divergence of one order is larger than the loss
    return max(square_root(8 * bound / order, up=False), Fraction(loss))


def _below(value: float) -> Fraction:
    """A short rational that is safely at most the computed value."""
    return Fraction(f"{value * (1 - 1e-9):.12g}")


def _within(notion: Approx) -> Fraction:
    """The e at which sigma(sigma^-1(p) + e) - e^epsilon p is delta at most, whatever p is."""

    def excess(e: float) -> float:
        factor = math.exp(min(notion.epsilon, 700.0))

        def at(y: float) -> float:
            return from_logit(y + e)[0] - factor * from_logit(y)[0]

        return golden_maximum(at, -745.0, 20.0)

    low, high = notion.epsilon, notion.epsilon + 1
    while excess(high) < notion.delta:
        low, high = high, 2 * high
    # Invariant: at low the excess is delta at most, at high it is not.
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if excess(middle) <= float(notion.delta) * (1 - 1e-9) else (low, middle)
    return _below(low)
