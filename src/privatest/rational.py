"""Numbers as users write them: a float is read as its shortest decimal, so 0.1 is exactly 1/10.

Everything between a record's score and the decision is computed with these rationals.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real

from privatest.errors import InvalidInput, shown

__all__ = ["Number", "rational"]

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
