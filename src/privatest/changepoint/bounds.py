r"""Rigorous bounds of e^(-x) for rational x, in integers, to any number of bits.

This is what a comparison with a uniform number of lazily extended precision needs when doubles cannot decide.
"""

from __future__ import annotations

__all__ = ["exp_bounds"]

# Rounding widens the interval by a few units at each of the steps below; this many more bits hide that.
_GUARD = 32


def exp_bounds(p: int, q: int, bits: int) -> tuple[int, int]:
    r"""Integers lo, hi with :math:`lo \le 2^{bits} e^{-p/q} \le hi` and hi - lo at most 2, for p >= 0, q >= 1.

    e^y for y = p/(q 2^s) <= 1/2 from its series, whose terms are all positive: rounded down, and rounded up with
    the remainder added. Then the reciprocal, then s squarings, each rounded outwards.

    >>> exp_bounds(1, 1, 20)
    (385749, 385750)
    """
    s = max((p // q).bit_length() + 1, 0)
    precision = bits + s + _GUARD
    one = 1 << precision
    divisor = q << s
    lower = upper = low_term = high_term = one
    k = 1
    # Invariant: low_term <= 2^precision y^(k-1)/(k-1)! <= high_term, and likewise the partial sums.
    while high_term > 1:
        low_term = low_term * p // (divisor * k)
        high_term = -(-high_term * p // (divisor * k))
        lower, upper = lower + low_term, upper + high_term
        k += 1
        if p == 0:
            break
    upper += 2 * high_term  # the terms left out: a geometric series of ratio at most 1/2
    low, high = one * one // upper, -(-one * one // lower)
    for _ in range(s):
        low, high = low * low >> precision, -(-high * high >> precision)
    shift = precision - bits
    return low >> shift, -(-high >> shift)
