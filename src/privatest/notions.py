"""Notions of privacy, as users write them: ``pt.notions.zcdp(0.5)``, or the text "zcdp(0.5)" wherever one is asked for.

>>> parse("zcdp(0.5)") == zcdp(0.5)
True
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from privatest import numbers
from privatest.numbers import Number
from privatest.parameter_help import explain
from privatest.privacy.notion import Approx, Gdp, Kl, Pure, Renyi, Tv, Zcdp
from privatest.privacy.notion import as_notion as parse

if TYPE_CHECKING:
    from privatest.power.comparison import compare_notions as compare

__all__ = ["approx", "compare", "gdp", "kl", "parse", "pure", "renyi", "tv", "zcdp"]


def pure(epsilon: Number) -> Pure:
    """Epsilon-differential privacy: every probability changes by a factor of at most e^epsilon.

    ``epsilon=1`` means ``privacy=pure(1)``.

    Args:
        epsilon: the largest log-ratio of an outcome's probabilities on two neighbouring data sets.
    """
    return Pure(numbers.positive(epsilon=epsilon))


def approx(epsilon: Number, delta: Number) -> Approx:
    """(epsilon, delta)-differential privacy: a probability may exceed what epsilon allows by at most delta.

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
    """Gaussian differential privacy: telling two neighbours apart is as hard as telling N(0, 1) from N(mu, 1).

    Args:
        mu: the distance of the means of two normal laws with standard deviation 1.
    """
    return Gdp(mu)


def zcdp(rho: Number) -> Zcdp:
    """Zero-concentrated differential privacy: the Renyi divergence of every order a > 1 is at most rho a.

    Args:
        rho: the bound on the divergence, for each unit of its order.
    """
    return Zcdp(rho)


def renyi(order: Number, bound: Number) -> Renyi:
    """Renyi differential privacy: the Renyi divergence of one order is at most the bound.

    Args:
        order: the order of the divergence, above 1.
        bound: the largest divergence of that order, in nats.
    """
    return Renyi(order, bound)


def kl(eta: Number) -> Kl:
    """Stability in Kullback-Leibler divergence: the divergence of two neighbours is at most eta, both ways.

    Args:
        eta: the largest divergence, in nats.
    """
    return Kl(eta)


def __getattr__(name: str) -> Any:
    if name != "compare":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from privatest.power.comparison import compare_notions  # start-up: a notion alone loads in a quarter of the time

    explain(compare_notions)
    globals()["compare"] = compare_notions
    return compare_notions


explain(sys.modules[__name__])
