r"""The uniformity statistic of Diakonikolas, Gouleakis, Peebles and Price, as used by Acharya, Sun and Zhang 2018.

.. math:: S = \tfrac12 \sum_x |N_x/m - 1/k|

On integers: with m = q k + r, 0 <= r < k, and sum of N equal to m,

.. math:: m k S = \sum_x (k N_x - m)^+ = (k - r) \sum_x (N_x - q)^+ + r \sum_x (N_x - q - 1)^+ ,

an :class:`Excess` with two knots. For m >= k its width is k, for m < k the first sum is the constant m and
the width is m; so S moves by at most min(m, k)/(m k) = 1/max(m, k).
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from privatest.fit.excess import Excess

__all__ = ["uniformity", "uniformity_mean"]


def uniformity(symbols: int, n: int) -> Excess:
    """m k S, less a constant and divided by a common factor: the smallest integers that carry S.

    Guarantees: width min(m, k)/gcd(m, k), or 1 when m < k; the sensitivity of S is exactly 1/max(m, k).
    """
    q, r = divmod(n, symbols)
    pairs = [(q, symbols - r), (q + 1, r)] if r else [(q, symbols)]
    knots = np.array([[knot for knot, _ in pairs]], dtype=np.int64)
    weights = np.array([weight for _, weight in pairs], dtype=np.int64)
    found = Excess(knots, weights, symbols).simplified(n)
    # Only m = 1 leaves nothing: one record has the same histogram up to the names of the symbols.
    return found if found is not None else Excess(np.array([[1]], dtype=np.int64), np.array([1]), symbols)


def uniformity_mean(symbols: int, n: int) -> float:
    """E S for n uniform records: (k/m) v Bin(v; m, 1/k) (1 - 1/k) with v = floor(m/k) + 1."""
    v = n // symbols + 1
    return symbols / n * v * float(stats.binom.pmf(v, n, 1 / symbols)) * (1 - 1 / symbols)
