"""Noise: the base class of all noises, and the noises of the paper's tests.

A noise is a symmetric law on the integers or on the half integers. ``Laplace`` decides as the continuous Laplace noise
of ncLLR does, ``Logistic`` as the sigmoid coin of scLLR does, and ``NoNoise`` is always 0. Draws are exact rationals.
Everything else (probabilities, characteristic function, variance) is in double precision: it describes the noise and
has no influence on a draw.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.json_documents import fields_to_json
from privatest.numbers import Floats, Number
from privatest.privacy import randomness as coins
from privatest.privacy.notion import Notion, Pure
from privatest.privacy.randomness import RandomSource, system_source


@dataclass(frozen=True)
class Noise(ABC):
    """A law on the integers plus ``offset``, symmetric about 0.

    Guarantees: ``draw`` has exactly the law of the definition; ``pmf``, ``cdf``, ``sf`` and their logarithms
    have small relative error in both tails (the rounding of exp(-y) at y, that is, y times 1e-16 or so)
    and accept any real numbers, scalars or arrays.

    Attributes:
        kind: what documents call it.
        test: the name of the private test that adds it; "" if none does.
        grain: the smallest number of lattice steps to a width at which the lattice costs next to nothing.
        plateau: the number of consecutive values over which the law is flat; 0 if it is not flat.
    """

    kind: ClassVar[str]
    test: ClassVar[str] = ""
    grain: ClassVar[int] = 1

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:
        """Return the noise that hides totals ``width`` lattice steps apart at the price of epsilon.

        Args:
            epsilon: the privacy loss.
            width: the largest difference between the totals of neighbours, in lattice steps.
            step: the length of a lattice step, in nats of the log-likelihood ratio.
        """
        raise InvalidInput(
            f"{cls.kind} noise hides nothing at the price of an epsilon (here {epsilon}, {width}, {step})."
        )

    @property
    def plateau(self) -> int:
        return 0

    @property
    def spacing(self) -> int:
        """The distance between values. If it is more than 1, only the :meth:`level` may leave.

        A noisy total would tell the total modulo this number.
        """
        return 1

    @property
    def decision_only(self) -> bool:
        """Whether only the decision may leave, which says whether a total exceeds a cutoff."""
        return False

    @property
    def total_leaves(self) -> bool:
        """Whether the noisy total itself may be released, not only a decision or a level of it."""
        return self.spacing == 1 and not self.decision_only

    def level(self, noisy: Fraction, cutoff: Fraction) -> int:
        """Return the number of spacings between a public cutoff and the noisy total, rounded up.

        It is at least 1 if and only if the noisy total exceeds the cutoff.
        """
        return math.ceil((noisy - cutoff) / self.spacing)

    @property
    def mirrored(self) -> Noise:
        """The noise with the law of -N, which is this one if the law is symmetric."""
        return self

    def coarser(self, spacing: int) -> Self | None:  # noqa: ARG002 - what Tulap needs
        """N' such that N has the law of spacing N' + V, V uniform on ``spacing`` points about 0; None if there is none.

        If the values of N are spaced themselves, N has the law of spacing N' without a V.
        """
        return None

    def guarantee(self, shift: int) -> Notion | None:
        """Return the strongest notion that noisy totals ``shift`` apart meet, exactly; None if they meet none."""
        loss = self.exact_loss(shift)
        return Pure(loss) if loss else None

    def scattered(self, rows: int) -> Notion | None:
        """The notion that counts meet together if each has this noise and ``rows`` rows move one count each by one.

        The rows may move the same count or different ones.
        """
        loss = self.exact_loss(1)
        return Pure(rows * loss) if loss else None

    def meets(self, notion: Notion, shift: int) -> bool:
        """Whether noisy totals at most ``shift`` apart meet the notion. This is the one place where that is decided."""
        met = self.guarantee(shift) if shift else None
        return shift == 0 or (met is not None and met.implies(notion))

    def hides(self, shift: int) -> bool:
        """Whether this noise hides totals ``shift`` apart at the price that it was made for."""
        return shift == 0 or self.guarantee(shift) is not None

    def reach(self, nats: float) -> float:
        """Return a distance from 0 beyond which either side has a probability of about e^-nats or less."""
        return nats / self.decay_rate if math.isfinite(self.decay_rate) else 0.0

    def transform_reach(self, nats: float) -> float:  # noqa: ARG002 - only the Gaussian's falls so fast
        """The frequency from which on, up to half a turn, the characteristic function is below e^-nats, or infinity."""
        return math.inf

    @property
    def rough(self) -> tuple[float, float]:
        """The deviation of a normal and the scale of a Laplace number whose sum has about this law."""
        return math.sqrt(self.variance), 0.0

    def beyond(self, probability: float) -> int:
        """Return the smallest whole number, at least 0, that the noise exceeds with at most this probability."""
        return numbers.first_true(lambda value: float(self.sf(value)) <= probability, 0)

    def window(self, nats: float) -> int:
        """Return a whole number beyond which the values on either side have a probability of about e^-nats or less."""
        return math.ceil(self.reach(nats) + 1)

    def exponent(self, x: float) -> float:
        """The rough size of the exponent in the probability at x, to which its rounding error is proportional."""
        return min(self.decay_rate, 1e9) * abs(x)

    def drift(self, theta: float) -> float:  # noqa: ARG002 - nothing, where the tails themselves bound theta
        """The mean of the law tilted by e^(theta N), for saddle points; 0 if ``decay_rate`` bounds those anyway."""
        return 0.0

    def log_excess(self, theta: float) -> float:
        """Return a number c such that Pr[N > x] <= e^(c - theta x) for all x."""
        return theta * self.plateau / 2

    def describe(self) -> str:
        """Return the name that designs print."""
        return type(self).__name__

    @property
    def offset(self) -> Fraction:
        """0 or 1/2: the values are the integers plus this."""
        return Fraction(0)

    @property
    @abstractmethod
    def decay_rate(self) -> float:
        """The tails decay like exp(-decay_rate abs(x)); the characteristic function is analytic on a strip as wide."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance; the mean is 0."""

    @abstractmethod
    def draw_doubled(self, source: RandomSource) -> int:
        """Twice a value with this law, exact: an integer, so that drawing needs integer arithmetic alone."""

    @abstractmethod
    def _log_pmf(self, v: Floats) -> Floats:
        """log Pr[N = v] at lattice values v."""

    @abstractmethod
    def _log_lower(self, v: Floats) -> Floats:
        """log Pr[N <= v] at lattice values v < 0."""

    @abstractmethod
    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        """E exp(i t N) for abs(Re t) <= pi inside the strip; real for real t."""

    def _exact_loss(self, shift: int) -> Fraction | None:
        """Return the privacy loss at a shift >= 0; None if it has no bound."""
        return None if shift else Fraction(0)

    def draw(self, source: RandomSource = system_source) -> Fraction:
        """Return a value with this law, exact. It is private if the source is the system's."""
        return Fraction(self.draw_doubled(source), 2)

    # From here on, numbers are in double precision and no longer exact.

    def logpmf(self, x: ArrayLike | Fraction) -> Floats:
        """log Pr[N = x]; -inf between lattice values."""
        value = np.asarray(x, dtype=np.float64)
        v = self._floor(value)
        with np.errstate(all="ignore"):
            on_lattice = (v == value) & np.isfinite(v)
            log_pmf = np.where(on_lattice, self._log_pmf(v), -np.inf)
        return _scalar(np.where(np.isnan(value), np.nan, log_pmf))

    def pmf(self, x: ArrayLike | Fraction) -> Floats:
        """Pr[N = x]; 0 between lattice values."""
        return _scalar(np.exp(self.logpmf(x)))

    def cdf(self, x: ArrayLike | Fraction) -> Floats:
        """Pr[N <= x] for any real x."""
        return self._probability(x, np.exp, lambda lower: -np.expm1(lower))

    def sf(self, x: ArrayLike | Fraction) -> Floats:
        """Pr[N > x] for any real x."""
        return self._probability(x, lambda lower: -np.expm1(lower), np.exp)

    def logcdf(self, x: ArrayLike | Fraction) -> Floats:
        """log Pr[N <= x]."""
        return self._probability(x, np.positive, lambda lower: np.log1p(-np.exp(lower)))

    def logsf(self, x: ArrayLike | Fraction) -> Floats:
        """log Pr[N > x]."""
        return self._probability(x, lambda lower: np.log1p(-np.exp(lower)), np.positive)

    def characteristic(self, t: ArrayLike) -> NDArray[Any]:
        """E exp(i t N), real for real t; complex t must satisfy abs(Im t) < decay_rate.

        Guarantees: error of order 1e-15 for real t; for complex t the same times E exp(abs(Im t) abs(N)).
        """
        argument: NDArray[Any] = np.asarray(t, dtype=np.complex128 if np.iscomplexobj(t) else np.float64)
        if np.any(np.abs(argument.imag) >= self.decay_rate):
            raise InvalidInput(
                f"t has an imaginary part of size {float(np.max(np.abs(argument.imag)))!r}: E exp(i t N) "
                f"exists only where abs(Im t) < decay_rate={self.decay_rate!r}."
            )
        with np.errstate(all="ignore"):
            reduced, turns = _within_one_turn(argument)
            value = self._characteristic(reduced)
        if self.offset:
            # Half integers: a full turn of t is a factor exp(2 pi i / 2).
            value = np.where(turns % 2 == 0, value, -value)
        return _scalar(value)

    def privacy_loss(self, shift: int) -> float:
        """:meth:`exact_loss` as a double; infinity if there is no bound."""
        loss = self.exact_loss(shift)
        return math.inf if loss is None else float(loss)

    def exact_loss(self, shift: int) -> Fraction | None:
        """The supremum over x of log Pr[N = x] - log Pr[N = x + shift]: the cost of moving the total by ``shift``.

        It is an exact rational, so that prices are not rounded; None if there is no bound.
        """
        try:
            steps = abs(operator.index(shift))
        except TypeError:
            raise InvalidInput(f"shift={shift!r} must be an integer: totals move by whole steps.") from None
        return self._exact_loss(steps)

    def to_dict(self) -> dict[str, Any]:
        """Kind and parameters as plain values, ready for JSON. ``noise_from_dict`` reads them back exactly."""
        return fields_to_json(self)

    def _floor(self, x: Floats) -> Floats:
        """Return the largest lattice value <= x. Every step is exact or rounds without crossing a lattice value."""
        with np.errstate(invalid="ignore"):
            whole = np.floor(x)
            if not self.offset:
                return whole
            return np.where(x - whole >= 0.5, whole + 0.5, whole - 0.5)

    def _probability(
        self, x: ArrayLike | Fraction, below: Callable[[Floats], Floats], above: Callable[[Floats], Floats]
    ) -> Floats:
        """Return ``below`` of the logarithm of the lower tail where x is negative, else ``above`` of the mirrored tail.

        Both tails are reached through a probability of at most 1/2 in this way: Pr[N > v] = Pr[N <= -v - 1].
        """
        v = self._floor(np.asarray(x, dtype=np.float64))
        negative = v < 0
        mirrored = np.where(negative, v, -v - 1)
        with np.errstate(all="ignore"):
            log_lower = np.where(np.isinf(mirrored), -np.inf, self._log_lower(mirrored))
            return _scalar(np.where(negative, below(log_lower), above(log_lower)) + 0.0)


def _within_one_turn(t: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """t less whole turns of 2 pi, so that abs(Re t) <= pi, and the number of turns.

    It goes through sin and cos, whose argument reduction is exact; t - 2 pi k would lose digits near 2 pi k.
    """
    angle = t.real
    reduced = np.where(np.abs(angle) <= np.pi, angle, np.arctan2(np.sin(angle), np.cos(angle)))
    turns = np.round((angle - reduced) / (2 * np.pi))
    return (reduced + 1j * t.imag if np.iscomplexobj(t) else reduced), turns


def _scalar(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is, but a NumPy scalar instead of a zero-dimensional array."""
    result: NDArray[Any] = np.asarray(array)[()]
    return result


def positive_within_double(**arguments: Number) -> Fraction:
    """Return the one named argument, as an exact positive rational that a double can hold."""
    value = numbers.positive("", **arguments)
    if not Fraction(1, 10**100) <= value <= 10**100:
        ((name, number),) = arguments.items()
        raise InvalidInput(f"{name}={number!r} must lie between 1e-100 and 1e100: its probabilities are not doubles.")
    return value


@dataclass(frozen=True)
class HalfIntegerNoise(Noise):
    """Noise on the half integers whose tails fall by a factor of exp(-1/scale) at each step, which costs 1/scale."""

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive_within_double(scale=self.scale))

    @property
    def offset(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def decay_rate(self) -> float:
        return float(1 / self.scale)

    def _exact_loss(self, shift: int) -> Fraction:
        return shift / self.scale


@dataclass(frozen=True)
class WholeWidths(Noise):
    """Base of ``Tulap`` and ``Stair``, both of which add a two-sided geometric number of whole widths."""

    epsilon: Fraction
    width: int

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - independent of the step
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
        """Return one epsilon for each width, or part of a width, by which the total moves."""
        return self.epsilon * -(-shift // self.width)


@dataclass(frozen=True)
class NoNoise(Noise):
    """N = 0, which hides nothing: the privacy loss of any shift of the total is infinite.

    >>> NoNoise().privacy_loss(1)
    inf
    """

    kind: ClassVar[str] = "none"

    def describe(self) -> str:
        return "none"

    @property
    def decay_rate(self) -> float:
        return math.inf

    @property
    def variance(self) -> float:
        return 0.0

    def draw_doubled(self, source: RandomSource) -> int:  # noqa: ARG002 - the signature every noise has
        return 0

    def _log_pmf(self, v: Floats) -> Floats:
        return np.where(v == 0, 0.0, -np.inf)

    def _log_lower(self, v: Floats) -> Floats:
        return np.full_like(v, -np.inf)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return np.ones_like(t)


def whole_quotient(v: Floats, width: float) -> Floats:
    """Return the largest whole numbers g with ``width * g <= v``."""
    g = np.floor(v / width)
    return np.where(v < width * g, g - 1, g)  # a quotient just below a whole number may have been rounded up to it


def uniform_characteristic(points: float, t: NDArray[Any]) -> NDArray[Any]:
    """E exp(i t U) for U uniform on ``points`` consecutive values centred at 0 (the Dirichlet kernel), |Re t| <= pi."""
    half = np.where(t == 0, 1, t / 2)  # the only zero of sin(t/2) there
    return np.where(t == 0, 1, np.sin(points * half) / (points * np.sin(half)))


def two_sided_characteristic(rate: float, theta: NDArray[Any]) -> NDArray[Any]:
    r"""E exp(i theta G) where Pr[G = g] is proportional to exp(-rate abs(g)).

    .. math:: \frac{(1-b)^2}{(1-b)^2 + 4b\sin^2(\theta/2)}
              = \frac{(1-b)^2}{(1-be^{i\theta})(1-be^{-i\theta})}, \qquad b = e^{-rate}

    Guarantees: no cancellation, for real theta and for complex theta with abs(Im theta) < rate (the second
    form: both exponents have negative real part, where expm1 is accurate, right up to the two poles).
    """
    one_minus_b = -np.expm1(-rate)
    if np.iscomplexobj(theta):
        forward, backward = np.expm1(-rate + 1j * theta), np.expm1(-rate - 1j * theta)
        product: NDArray[Any] = (one_minus_b / forward) * (one_minus_b / backward)
        return product
    ratio: NDArray[Any] = 1 / (1 + np.exp(-rate) * (2 * np.sin(theta / 2) / one_minus_b) ** 2)
    return ratio


@dataclass(frozen=True)
class Laplace(HalfIntegerNoise):
    r"""N = ceil(X) - 1/2 for X continuous Laplace, that is, plus or minus m + 1/2 with m geometric.

    .. math:: \Pr[N = \pm(m + \tfrac12)] = \tfrac12 (1 - r) r^m, \qquad r = e^{-1/scale}

    Guarantees: for every integer s, Pr[s + N > 0] = Pr[s + X > 0] exactly; one step of the total costs
    1/scale of privacy.

    >>> round(float(Laplace(Fraction(2)).sf(-2)), 12) == round(1 - math.exp(-1) / 2, 12)
    True
    """

    kind: ClassVar[str] = "laplace"
    test: ClassVar[str] = "ncllr"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:  # noqa: ARG003 - whatever a step is
        return cls(width / epsilon)

    @property
    def variance(self) -> float:
        rate = self.decay_rate
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2 + 0.25

    def draw_doubled(self, source: RandomSource) -> int:
        # The ratio is exp(-1/scale), so numerator and denominator change places.
        m = coins.geometric(self.scale.denominator, self.scale.numerator, source)
        return 2 * m + 1 if source.bits(1) else -2 * m - 1

    def _log_pmf(self, v: Floats) -> Floats:
        rate = self.decay_rate
        return math.log(-math.expm1(-rate) / 2) - rate * (np.abs(v) - 0.5)

    def _log_lower(self, v: Floats) -> Floats:
        return -math.log(2) - self.decay_rate * (-v - 0.5)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        return two_sided_characteristic(self.decay_rate, t) * np.cos(t / 2)


# The two series below gain exp(-2 pi^2 scale) and exp(-1/scale) per term; at 1/2 either needs few terms.
_SERIES_SWITCH = 0.5
# Terms below exp(-40) = 4e-18 of the leading one are dropped.
_NEGLIGIBLE = 40.0


@dataclass(frozen=True)
class Logistic(HalfIntegerNoise):
    r"""N = ceil(X) - 1/2 for X continuous logistic.

    .. math:: \Pr[N = \pm(m + \tfrac12)] = \sigma_{m+1} - \sigma_m = (1 - r) r^m \sigma_m \sigma_{m+1},
              \qquad \sigma_m = \frac{1}{1 + r^m}, \quad r = e^{-1/scale}

    Guarantees: for every integer s, Pr[s + N > 0] = sigmoid(s/scale) exactly; one step of the total costs
    at most 1/scale, approached in the tails and never reached.

    >>> round(float(Logistic(Fraction(2)).sf(-3)), 12) == round(1 / (1 + math.exp(-3 / 2)), 12)
    True
    """

    kind: ClassVar[str] = "logistic"
    test: ClassVar[str] = "scllr"

    @classmethod
    def for_width(cls, epsilon: Fraction, width: Fraction, step: Fraction) -> Self:
        # The exponent 1/2 of the paper is a scale of 2 nats, enough while the width is at most 2 epsilon of them.
        return cls(max(2 / step, width / epsilon))

    @property
    def variance(self) -> float:
        r"""Minus the second derivative at 0 of whichever series ``characteristic`` uses."""
        s = float(self.scale)
        if s < _SERIES_SWITCH:
            value = np.arange(_NEGLIGIBLE * s + 4) + 0.5
            return float(2 * np.sum(value**2 * self.pmf(value)))
        q = np.exp(-2 * np.pi**2 * s * np.arange(1, _images(s) + 1))
        # cosh(z)/sinh(z)^2 = 2q (1 + q^2)/(1 - q^2)^2 with q = exp(-z).
        images = np.sum(2 * q * (1 + q**2) / (1 - q**2) ** 2)
        return float((np.pi * s) ** 2 * (1 / 3 + 4 * images) + 1 / 12)

    def draw_doubled(self, source: RandomSource) -> int:
        rate_p, rate_q = self.scale.denominator, self.scale.numerator
        # Invariant: rejected values leave no trace; m is kept with probability sigma_m sigma_(m+1).
        while True:
            m = coins.geometric(rate_p, rate_q, source)
            if coins.sigmoid(m * rate_p, rate_q, source) and coins.sigmoid((m + 1) * rate_p, rate_q, source):
                return 2 * m + 1 if source.bits(1) else -2 * m - 1

    def _log_pmf(self, v: Floats) -> Floats:
        rate = self.decay_rate
        y = rate * (np.abs(v) - 0.5)
        return math.log(-math.expm1(-rate)) - y - np.log1p(np.exp(-y)) - np.log1p(np.exp(-y - rate))

    def _log_lower(self, v: Floats) -> Floats:
        y = self.decay_rate * (-v - 0.5)
        return -y - np.log1p(np.exp(-y))

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        series = self._by_geometrics if float(self.scale) < _SERIES_SWITCH else self._by_images
        return series(t)

    def _by_images(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""Poisson summation of h, the continuous law's characteristic function times that of the rounding.

        .. math:: h(t) = \frac{\pi s t}{\sinh \pi s t} \cdot \frac{\sin(t/2)}{t/2}, \qquad
                  \sum_k (-1)^k h(t + 2\pi k) = \sum_k \frac{2\pi s \sin(t/2)}{\sinh(\pi s (t + 2\pi k))}
        """
        s = float(self.scale)
        safe = np.where(t == 0, 1, t)
        total = np.where(t == 0, 1, 2 * np.sin(safe / 2) * np.pi * s * _csch(np.pi * s * safe))
        for k in range(1, _images(s) + 1):
            turn = 2 * np.pi * k
            pair = _csch(np.pi * s * (t + turn)) + _csch(np.pi * s * (t - turn))
            total = total + 2 * np.sin(t / 2) * np.pi * s * pair
        return total

    def _by_geometrics(self, t: NDArray[Any]) -> NDArray[Any]:
        r"""Return the pmf beyond m = 0 as an alternating sum of geometrics, each summed in closed form.

        .. math:: \Pr[N = m + \tfrac12] = \sum_{j \ge 1} (-1)^{j+1} (1 - r^j) r^{jm}, \qquad m \ge 1
        """
        rate = self.decay_rate
        total = 2 * self.pmf(0.5) * np.cos(t / 2)
        for j in range(1, int(_NEGLIGIBLE / rate) + 3):
            y = j * rate
            # Both directions of t; their sum is real for real t.
            ahead = np.exp(-y + 1.5j * t) / -np.expm1(-y + 1j * t)
            back = np.exp(-y - 1.5j * t) / -np.expm1(-y - 1j * t)
            both = ahead + back if np.iscomplexobj(t) else 2 * ahead.real
            total = total - (-1) ** j * -np.expm1(-y) * both
        return np.asarray(total)


def _images(s: float) -> int:
    """The number of images that matter on each side: at abs(t) = pi the k-th is exp(-2 pi^2 s (k - 1)) of the first."""
    return int(_NEGLIGIBLE / (2 * np.pi**2 * s)) + 2


def _csch(z: NDArray[Any]) -> NDArray[Any]:
    """1/sinh(z), z not 0, without overflow."""
    side = np.where(z.real < 0, -1.0, 1.0)
    mirrored = side * z
    return np.asarray(side * 2 * np.exp(-mirrored) / -np.expm1(-2 * mirrored))
