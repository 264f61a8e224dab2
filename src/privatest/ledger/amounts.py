"""Amounts of epsilon: exact rationals, stored as the text ``p/q`` in lowest terms."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from privatest.errors import InvalidInput

__all__ = ["canonical", "shown", "stored", "unstored"]

# 3,300 bits are at most 994 digits: far under the 4,300 at which Python refuses to convert an integer to
# text, and enough for every float (the smallest, 5e-324, has 324 digits).
MOST_BITS = 3300
LONGEST_DECIMAL = 17
LONGEST_FRACTION = 24


def stored(amount: Fraction) -> str:
    """The text of ``amount``, one text per number.

    Guarantees: ``unstored(stored(x)) == x``.

    >>> stored(Fraction(1, 10)), stored(Fraction(3))
    ('1/10', '3/1')
    """
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > MOST_BITS:
        raise InvalidInput(
            "The exact sum of the epsilons needs more than 990 digits. "
            "Use epsilons of few decimal digits, such as 0.05."
        )
    return f"{amount.numerator}/{amount.denominator}"


def unstored(text: str) -> Fraction:
    """The amount that :func:`stored` wrote."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator))


@lru_cache(maxsize=4096)
def canonical(text: object) -> Fraction | None:
    """The amount, if the text is the one that :func:`stored` writes for it; else None. Rows repeat most amounts."""
    try:
        amount = unstored(text)  # type: ignore[arg-type]  # whatever a forger put there
        return amount if type(text) is str and stored(amount) == text else None
    except (InvalidInput, AttributeError, TypeError, ValueError, ZeroDivisionError):
        return None


def shown(amount: Fraction) -> str:
    """``amount`` for people: a decimal where it is short, else a fraction, else rounded, saying so.

    >>> shown(Fraction(1)), shown(Fraction(3, 10)), shown(Fraction(1, 3)), shown(Fraction(2, 3**60))
    ('1.0', '0.3', '1/3', 'about 4.71796e-29')
    """
    rest, twos, fives = amount.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives, 1)
    if rest == 1 and places <= LONGEST_DECIMAL:
        digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
        sign = "-" if amount < 0 else ""
        if len(digits) <= 2 * LONGEST_DECIMAL:
            return f"{sign}{digits[:-places]}.{digits[-places:]}"
    if amount.denominator > 1 and len(text := str(amount)) <= LONGEST_FRACTION:
        return text
    return f"about {Decimal(amount.numerator) / Decimal(amount.denominator):.6g}"
