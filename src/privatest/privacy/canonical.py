"""From a notion of stability to the noise that meets it: what the tight test adds."""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.errors import InvalidInput
from privatest.privacy.divergences import from_logit, golden_maximum, normal
from privatest.privacy.gaussian import Gaussian
from privatest.privacy.noise import Noise
from privatest.privacy.notions import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp
from privatest.privacy.tulap import TruncatedTulap, Tulap
from privatest.privacy.uniform import Uniform

__all__ = ["CANONICAL", "canonical_noise", "loss_range"]

CANONICAL = (Tulap, TruncatedTulap, Uniform, Gaussian)
"""What :func:`canonical_noise` gives."""


def canonical_noise(notion: Notion, width: int | Fraction) -> Noise:
    r"""The noise under which totals ``width`` lattice steps apart meet the notion, and statistics may be released.

    For pure, approx, tv and gdp it is the canonical one, :math:`F(x + width) = h(F(x))` (Awan and Vadhan 2023): no
    noise is tighter. For zcdp, renyi and kl it is Gaussian noise that meets the divergence.

    >>> canonical_noise(Tv(Fraction(1, 10)), 3), canonical_noise(Zcdp(Fraction(1, 2)), 3).guarantee(3)
    (Uniform(points=30), gdp(1))
    """
    width = math.ceil(width)
    if isinstance(notion, Pure) and notion.loss != math.inf:
        return Tulap(notion.loss, width)
    if isinstance(notion, Approx):
        if not notion.delta:
            return Tulap(notion.loss, width)
        return (
            TruncatedTulap(notion.loss, notion.delta, width) if notion.loss else Uniform.for_notion(notion.delta, width)
        )
    if isinstance(notion, Tv):
        return Uniform.for_notion(notion.eta, width)
    if isinstance(notion, Gdp):
        return Gaussian(notion.mu, width)
    if isinstance(notion, Zcdp | Renyi | Kl):
        budget = {"zcdp": 0, "renyi": 1, "kl": 0}[notion.name]
        half = notion.exact[budget] / (notion.order if isinstance(notion, Renyi) else 1)
        return Gaussian(_root_below(2 * half), width)
    raise InvalidInput(f"{notion} has no noise: it is not private.")


def loss_range(notion: Notion) -> Fraction:
    r"""The largest e such that what keeps its privacy loss within *some* interval of length e meets the notion.

    The exponential mechanism keeps it so where a record moves all utilities one way, by 1/e at most. Then no event's
    log odds change by more than e, :math:`h(p) = \sigma(\sigma^{-1}(p) + e)`, and every Renyi divergence of order a is
    at most :math:`a e^2/8`. Argument: proof.md. Rounded down where it is not rational; for pure it is epsilon.

    >>> loss_range(Pure(Fraction(1))), loss_range(Zcdp(Fraction(1, 2))), float(loss_range(Tv(Fraction(1, 10))))
    (Fraction(1, 1), Fraction(2, 1), 0.401341390536)
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
    return max(_root_below(8 * bound / order), Fraction(loss))


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


def _root_below(value: Fraction) -> Fraction:
    """The largest mu, to some 60 bits, with mu^2 at most the value; exact where that is a square.

    >>> _root_below(Fraction(1, 4)), _root_below(Fraction(2)) ** 2 <= 2
    (Fraction(1, 2), True)
    """
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top**2 == value.numerator and bottom**2 == value.denominator:
        return Fraction(top, bottom)
    size = 60 + max(-math.floor(math.log2(value)) // 2, 0)
    return Fraction(math.isqrt(math.floor(value * (1 << 2 * size))), 1 << size)
