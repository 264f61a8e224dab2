r"""The noise that meets a notion of privacy exactly: the canonical noise, and the noise that hides many counts.

Canonical noise has :math:`F(x + width) = h(F(x))` for the h of its notion (Awan and Vadhan 2023): no noise is tighter.

==========================  ============================
notion                      noise
==========================  ============================
``pure``                    :class:`Tulap`
``approx``                  :class:`TruncatedTulap`
``tv``                      :class:`Uniform`
``gdp``                     :class:`Gaussian`
``zcdp, renyi, kl``         :class:`Gaussian`
==========================  ============================

:func:`canonical_noise` is what the tight test adds, :func:`counts_noise` what many counts need, and :func:`loss_range`
the privacy loss that a notion allows the exponential mechanism. A draw of :class:`Gaussian` is an exact normal number
rounded to the lattice, with as many of its digits as rounding needs: what is released is post-processing of an exact
Gaussian, hence exactly mu-GDP; a discrete Gaussian is not.

Reference: Karney 2016, "Sampling exactly from the normal distribution", for the digits. Arguments: proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.numbers import Floats, exp_bounds, root, square_root
from privatest.privacy import randomness as coins
from privatest.privacy.divergences import from_logit, golden_maximum, normal
from privatest.privacy.noise import Noise, positive_within_double
from privatest.privacy.notion import Approx, Gdp, Kl, Neighbourhood, Notion, Pure, Renyi, Tv, Zcdp, per_row
from privatest.privacy.randomness import RandomSource
from privatest.privacy.tulap import TruncatedTulap, Tulap, Uniform

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
        """Return the mean of the law tilted by e^(theta N)."""
        return self.sd**2 * theta

    def log_excess(self, theta: float) -> float:
        return (self.sd * theta) ** 2 / 2 + theta / 2

    def guarantee(self, shift: int) -> Notion | None:
        return Gdp(self.mu * abs(shift) / self.width) if shift else None

    def scattered(self, rows: int) -> Notion | None:
        """Return the guarantee for all rows in one count; in several counts the squares of the shifts sum to less."""
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
            numerator = (whole << digits.bits) + digits.value
            half = bottom << digits.bits
            low, high = 2 * top * numerator + half, 2 * top * (numerator + 1) + half
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
    """k and x such that k + x has the law of the absolute value of a standard normal number.

    k has probability 2^(-k-1), x is uniform; the pair is kept in proportion to 2^k e^(-(k+x)^2/2).
    """
    # Invariant: a rejected pair leaves no trace.
    while True:
        k = 0
        while source.bits(1):
            k += 1
        x = coins.UniformDigits(source)
        if keeps(k, x, coins.UniformDigits(source)):
            return k, x


def keeps(whole: int, digits: coins.UniformDigits, uniform: coins.UniformDigits) -> bool:
    """Return whether to accept a pair: whether a uniform number is below its share. Draws as many digits as needed."""

    def share(bits: int) -> tuple[int, int]:
        while digits.bits < bits:
            digits.extend()
        least, _ = acceptance(whole, digits.value + 1, digits.bits, bits)
        return least, acceptance(whole, digits.value, digits.bits, bits)[1]

    return uniform.is_below(share)


def acceptance(whole: int, x: int, size: int, bits: int) -> tuple[int, int]:
    r"""Bounds on 2^bits times the share :math:`2^{k+2} e^{-(k+x)^2/2}/5 < 1`.

    It is the probability of accepting a pair at ``whole + x/2^size``, and it falls with x.
    """
    number = (whole << size) + x
    low, high = exp_bounds(number * number, 2 << 2 * size, bits + whole + 8)
    return (low << 2) // (5 << 8), -(-(high << 2) // (5 << 8))


CANONICAL = (Tulap, TruncatedTulap, Uniform, Gaussian)
"""The kinds of noise that :func:`canonical_noise` returns."""


def canonical_noise(notion: Notion, width: int | Fraction, *, whole: bool = False) -> Noise:
    r"""Return the noise with which noisy totals meet the notion, so that statistics may be released.

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
    """Return the noise to add to each of many counts so that all of them together meet the notion.

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
    """Return how many times neighbours differ by up to ``rows`` records that move counts in the same direction."""
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
    """Return a short rational that is safely at most the computed value."""
    return Fraction(f"{value * (1 - 1e-9):.12g}")


def _approx_range(notion: Approx) -> Fraction:
    """Return the largest e with sigma(sigma^-1(p) + e) - e^epsilon p <= delta for every p, rounded down."""
    factor = math.exp(min(notion.epsilon, 700.0))

    def too_long(e: float, delta: float = float(notion.delta) * (1 - 1e-9)) -> bool:
        return golden_maximum(lambda y: from_logit(y + e)[0] - factor * from_logit(y)[0], -745.0, 20.0) > delta

    low, high = notion.epsilon, notion.epsilon + 1
    while not too_long(high):
        low, high = high, 2 * high
    return _below(root(too_long, low, high, relative=1e-13)[0])
