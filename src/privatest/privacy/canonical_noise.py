r"""Which noise meets a notion of privacy exactly: the canonical noise, and the noise that hides many counts.

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
the privacy loss that a notion allows the exponential mechanism.
"""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.errors import InvalidInput
from privatest.numbers import root, square_root
from privatest.privacy.divergences import from_logit, golden_maximum, normal
from privatest.privacy.gaussian_noise import Gaussian
from privatest.privacy.noise import (
    Noise,
)
from privatest.privacy.notion import Approx, Gdp, Kl, Neighbourhood, Notion, Pure, Renyi, Tv, Zcdp, per_row
from privatest.privacy.tulap import TruncatedTulap, Tulap, Uniform

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
