"""Notions of privacy, as users write them: ``pt.notions.zcdp(0.5)``, or the text "zcdp(0.5)" wherever one is asked for.

>>> parse("zcdp(0.5)") == zcdp(0.5)
True
"""

from __future__ import annotations

import sys

from privatest import numbers
from privatest.numbers import Number
from privatest.parameters import explain
from privatest.power.comparison import compare_notions as compare
from privatest.privacy.notions import Approx, Gdp, Kl, Pure, Renyi, Tv, Zcdp
from privatest.privacy.notions import as_notion as parse

__all__ = ["approx", "compare", "gdp", "kl", "parse", "pure", "renyi", "tv", "zcdp"]


def pure(epsilon: Number) -> Pure:
    """Epsilon-differential privacy; ``epsilon=1`` means ``privacy=pure(1)``.

    Args:
        epsilon: the largest log-ratio of an outcome's probabilities on two neighbouring data sets.
    """
    return Pure(numbers.positive(epsilon=epsilon))


def approx(epsilon: Number, delta: Number) -> Approx:
    """(epsilon, delta)-differential privacy.

    Args:
        epsilon: as for :func:`privatest.notions.pure`.
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


explain(sys.modules[__name__])
