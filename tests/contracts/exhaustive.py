"""Every data set of n records over a small domain and every neighbour, enumerated by privatest/privacy/verification.py.

No sampling: log-probabilities come in closed form from the definitions of the noises, in extended precision and
independently of the package's own floats, so that log-ratios are good to better than 1e-14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.privacy import Laplace, Logistic, Noise, Pure, Tulap
from privatest.privacy.verification import data_sets, measure, neighbouring

__all__ = [
    "decision_log_ratio",
    "log_pmf",
    "log_sf",
    "neighbouring_totals",
    "owners",
]

Long = npt.NDArray[np.longdouble]
Integers = npt.NDArray[np.int64]


def _long(x: Fraction) -> np.longdouble:
    return np.longdouble(x.numerator) / np.longdouble(x.denominator)


def log_pmf(noise: Noise, doubled: Integers) -> Long:
    """log Pr[2N = doubled] from the definition of the noise; all of ``doubled`` must be values of 2N."""
    if isinstance(noise, Tulap):
        # N = width g + u, u in {-(width-1)/2, ..., (width-1)/2}
        g = (doubled + noise.width - 1) // (2 * noise.width)
        eps = _long(noise.epsilon)
        return np.log(np.tanh(eps / 2) / noise.width) - eps * np.abs(g)
    m = (np.abs(doubled) - 1) // 2  # N = +-(m + 1/2)
    rate = 1 / _long(noise.scale)  # type: ignore[attr-defined]
    common = np.log(-np.expm1(-rate)) - rate * m
    if isinstance(noise, Laplace):
        return common - np.log(np.longdouble(2))
    assert isinstance(noise, Logistic)
    return common - np.log1p(np.exp(-rate * m)) - np.log1p(np.exp(-rate * (m + 1)))


def log_sf(noise: Noise, doubled: Integers) -> Long:
    """log Pr[2N > doubled] in closed form; all of ``doubled`` must lie halfway between values of 2N."""
    if isinstance(noise, Tulap):
        first = doubled + 1 + noise.width - 1  # 2N of the first value beyond, shifted to block edges
        g, u = np.divmod(first // 2, noise.width)
        eps = _long(noise.epsilon)
        b = np.exp(-eps)
        share = np.longdouble(1) * (noise.width - u) / noise.width
        upper = -eps * np.abs(g) + np.log(b + (1 - b) * share) - np.log1p(b)  # for g >= 0
        lower = np.log1p(-np.exp(-eps * np.abs(g)) * (b + (1 - b) * (1 - share)) / (1 + b))
        return np.where(g >= 0, upper, lower)
    at = doubled / np.longdouble(2) / _long(noise.scale)  # type: ignore[attr-defined]
    if isinstance(noise, Laplace):
        tail = np.log(np.longdouble(0.5)) - np.abs(at)
        return np.where(at >= 0, tail, np.log1p(-np.exp(tail)))
    return -np.logaddexp(np.longdouble(0), at)


def neighbouring_totals(scores: Iterable[int], n: int) -> set[tuple[int, int]]:
    """(total, neighbour's total) over all data sets of n records and all ways to replace one of them.

    Enumerated as :func:`privatest.verify_privacy` enumerates them; a total does not look at the order.
    """
    values = sorted(set(scores))
    found = set()
    for data in data_sets(len(values), n, ordered=False):
        here = sum(values[place] for place in data)
        for other in neighbouring(data, len(values), ordered=False):
            there = sum(values[place] for place in other)
            found |= {(here, there), (there, here)}
        found.add((here, here))
    return found


def decision_log_ratio(noise: Noise, cutoff: Fraction, totals: Iterable[tuple[int, int]]) -> float:
    """sup over neighbours of the log-ratio of the probabilities of either decision."""
    # "null" when T > cutoff, that is when T exceeds the midpoint between the values of T around the cutoff
    doubled = 2 * int((cutoff - noise.offset).__floor__()) + int(2 * noise.offset) + 1
    raw = np.array(sorted({t for pair in totals for t in pair}))
    null, alternative = (
        np.exp(log_sf(noise, doubled - 2 * raw)),
        np.exp(log_sf(noise, 2 * raw - doubled)),
    )  # by symmetry
    laws = {total: {"null": null[place], "alternative": alternative[place]} for place, total in enumerate(raw.tolist())}
    return max(float(np.log(measure(Pure(1), laws[a], laws[b])[0])) for a, b in totals)


def owners(n: int) -> Iterator[tuple[int, ...]]:
    """Every way in which n rows can belong to persons 0, 1, ..., named in the order in which they appear."""

    def more(found: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(found) == n:
            yield found
            return
        for person in range(max(found, default=-1) + 2):
            yield from more((*found, person))

    return more(())
