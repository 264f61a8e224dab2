"""e-values combine: products of independent ones, averages of any, and discoveries among many questions.

And how fast evidence against P can grow under Q, whatever private mechanism collects it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import Pair
from privatest.numbers import Floats
from privatest.power.tuning import profile_of

__all__ = ["combine_evalues", "evalue_discoveries", "growth_bound"]


def combine_evalues(values: Iterable[float] | Mapping[Any, float], *, dependent: bool = False) -> float:
    """One e-value from several of the same null hypothesis.

    Guarantees: the mean under the null is at most 1 where that of each is: of the product where the values come from
    independent records (or each from records that came after those of the others, as a :class:`Sequential` does); of
    the average (``dependent=True``) always.

    Args:
        values: e-values: ``run.evalue``, ``release.evalue``; in a list, or by name in a mapping.
        dependent: whether they may depend on one another, as when two questions were asked of the same records.

    >>> combine_evalues([4, 0.5, 3]), combine_evalues([4, 0.5, 3], dependent=True)
    (6.0, 2.5)
    """
    if not isinstance(dependent, bool | np.bool_):
        raise InvalidInput(f"dependent={shown(dependent)} must be True or False.")
    known = [_evalue(value) for value in _listed(values.values() if isinstance(values, Mapping) else values)]
    if not known:
        raise InvalidInput("values is empty: there is nothing to combine.")
    if dependent:
        return math.fsum(value / len(known) for value in known)
    if 0.0 in known or math.inf in known:
        return 0.0 if 0.0 in known else math.inf
    # Invariant: the product so far is share * 2^power, 1/2 <= share < 1: no partial product is too large or too small.
    share, power = 0.5, 1
    for value in known:
        mantissa, exponent = math.frexp(value)
        share, more = math.frexp(share * mantissa)
        power += exponent + more
    return sys.float_info.max if power > sys.float_info.max_exp else math.ldexp(share, power)  # rounded down


def evalue_discoveries(values: Any, *, alpha: float) -> tuple[Any, ...]:
    """Which of many null hypotheses to reject so that, on average, at most a share alpha of these is true.

    The e-Benjamini-Hochberg procedure (Wang and Ramdas 2022): with K values, of which the k-th largest is at least
    K/(alpha k), reject those k; k as large as possible.

    Guarantees: the expected share of true nulls among those rejected (0 where none is) is at most alpha, however the
    e-values depend on one another.

    Args:
        values: e-values, in a list or by name in a mapping.
        alpha: the bound on the false discovery rate.

    Returns the positions in the list, in order, or the names, in the mapping's order.

    >>> evalue_discoveries([90, 0.3, 50, 2], alpha=0.05)
    (0, 2)
    >>> evalue_discoveries({"north": 90, "south": 3}, alpha=0.05)
    ('north',)
    """
    alpha = float(numbers.probability(alpha=alpha))
    named = dict(values) if isinstance(values, Mapping) else dict(enumerate(_listed(values)))
    known = {name: _evalue(value) for name, value in named.items()}
    ranked = sorted(known.values(), reverse=True)
    count = max((k for k, value in enumerate(ranked, 1) if value * alpha * k >= len(ranked)), default=0)
    return tuple(name for name, value in known.items() if count and value >= ranked[count - 1])


def _listed(values: Any) -> list[Any]:
    flat = isinstance(values, Iterable) and not (isinstance(values, np.ndarray) and values.ndim != 1)
    if isinstance(values, (str, bytes)) or not flat:
        raise InvalidInput(f"values={shown(values)} must be a list of e-values.")
    if isinstance(values, (set, frozenset)):
        raise InvalidInput("values must be a list of e-values: a set drops those that are equal.")
    return list(values)


def _evalue(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not found >= 0 or isinstance(value, (str, bytes)):
        raise InvalidInput(
            f"values: {shown(value)} is no e-value: it must be a number of at least 0. (The release of a test that is "
            "not private has none.)"
        )
    return found


def growth_bound(pair: Pair, epsilon: float) -> float:
    r"""The most that a record adds to the mean log e-value under Q, whatever epsilon-DP mechanism makes it, in nats.

    .. math:: \max\{E_Q g - \log E_P e^g : \text{range of } g \le \epsilon\}

    attained by :math:`g = [\log q/p]_c^{c+\epsilon}` with the c at which :math:`E_P e^g = 1`. Proof: proof.md.
    """
    profile = profile_of(pair)
    ratios = -profile.ratios  # log q/p

    def clipped(c: float) -> Floats:
        return np.clip(ratios, c, c + epsilon)

    # Invariant: E_P e^g <= 1 at low, and >= 1 at high: it grows with c, from e^-epsilon at most to e^epsilon at least.
    low, high = -2 * epsilon, epsilon
    for _ in range(200):
        middle = (low + high) / 2
        if float(profile.p @ np.exp(clipped(middle))) <= 1:
            low = middle
        else:
            high = middle
    g = clipped((low + high) / 2)
    return float(profile.q @ g) - math.log(float(profile.p @ np.exp(g)))
