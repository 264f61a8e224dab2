"""Exact rationals: numbers as users write them, and rigorous bounds of their exponentials.

A float is read as its shortest decimal, so 0.1 is exactly 1/10; everything between a record's score and the decision
is computed with these. The bounds of e^(-x), in integers and to any number of bits, are what a comparison with a
uniform number of lazily extended precision needs when doubles cannot decide.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from privatest.errors import InvalidInput, shown

__all__ = ["Number", "exp_below", "exp_bounds", "positive", "rational", "square_root"]

Number = int | float | Fraction | Decimal


def rational(value: Number, name: str = "value") -> Fraction:
    """The exact rational a user means by ``value``.

    Guarantees: strictly increasing on floats (the shortest decimals of two floats are ordered as
    the floats are); exact on integers, fractions and decimals.

    >>> rational(0.1), rational(2), rational(Fraction(1, 3))
    (Fraction(1, 10), Fraction(2, 1), Fraction(1, 3))
    """
    if isinstance(value, bool):
        raise InvalidInput(f"{name}={shown(value)} must be a number, not a truth value.")
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InvalidInput(f"{name}={value} must be finite.")
        return Fraction(value)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            raise InvalidInput(f"{name}={shown(number)} must be finite.")
        return Fraction(repr(number))
    raise InvalidInput(f"{name}={shown(value)} must be a number.")


def positive(remedy: str = "", **arguments: Number) -> Fraction:
    """The one named argument, as an exact positive finite rational."""
    ((name, value),) = arguments.items()
    number = rational(value, name)
    if number <= 0:
        raise InvalidInput(f"{name}={shown(value)} must be greater than 0. {remedy}".rstrip())
    return number


def square_root(amount: Fraction, *, up: bool) -> Fraction:
    """A rational of 15 digits that is at least the root, or at most; the root itself where that is short.

    >>> square_root(Fraction(1, 4), up=True), square_root(Fraction(2), up=False) ** 2 < 2
    (Fraction(1, 2), True)
    """
    exact = Fraction(math.isqrt(amount.numerator), math.isqrt(amount.denominator))
    if exact**2 == amount:
        return exact
    unit = 10 ** (15 + len(str(int(1 / amount))) // 2)
    found = math.isqrt(int(amount * unit**2))  # the root of amount unit^2, rounded down
    return Fraction(found + up, unit)


# Rounding widens the interval by a few units at each of the steps below; this many more bits hide that.
_GUARD = 32


def exp_bounds(p: int, q: int, bits: int) -> tuple[int, int]:
    r"""Integers lo, hi with :math:`lo \le 2^{bits} e^{-p/q} \le hi` and hi - lo at most 2, for p >= 0, q >= 1.

    e^y for y = p/(q 2^s) <= 1/2 from its series, whose terms are all positive: rounded down, and rounded up with
    the remainder added. Then the reciprocal, then s squarings, each rounded outwards.

    >>> exp_bounds(1, 1, 20)
    (385749, 385750)
    """
    s = (p // q).bit_length() + 1
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
    upper += 2 * high_term  # the terms left out: a geometric series of ratio at most 1/2
    low, high = one * one // upper, -(-one * one // lower)
    for _ in range(s):
        low, high = low * low >> precision, -(-high * high >> precision)
    shift = precision - bits
    return low >> shift, -(-high >> shift)


def exp_below(x: Fraction, bits: int = 96) -> Fraction:
    """A rational below e^x, for x > 0, with relative error of at most 2^(2 - bits).

    >>> 0 < math.e - float(exp_below(Fraction(1), bits=30)) < 1e-6
    True
    """
    size = bits + 2 * math.ceil(x)  # e^-x is more than 4^-x, so that its bound keeps this many bits
    return Fraction(1 << size, exp_bounds(x.numerator, x.denominator, size)[1])
