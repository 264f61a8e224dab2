"""Numbers: exact rationals as users write them, checks that name the argument, bounds of exponentials, and vectors.

A float is read as its shortest decimal, so 0.1 is exactly 1/10, or as the fraction it came from, so 0.5/52 is exactly
1/104; everything between a record's score and the decision is computed with these.
``numbers.positive(epsilon=epsilon)`` raises an error that names the argument. The bounds of e^(-x), in
integers and to any number of bits, are what a comparison with a uniform number of lazily extended precision needs when
doubles cannot decide. Products of vectors go without BLAS, whose threads take longer to wake than ours take.
"""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidInput, shown

Number = int | float | Fraction | Decimal
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LARGEST = sys.float_info.max
MOST = 2**63 - 1
"""Of records, rows or blocks: totals are sums of 64 bits."""
LOSSES = (1e-9, 1e6)
"""The least and the largest epsilon that is designed for: with less no data are enough, with more nothing is hidden."""
RAREST = 1e-300
"""The least probability that can be asked for."""
MOST_SHARES = 10**6
"""The largest denominator that a float is recognised to be divided by. Two such fractions differ by more than 1e-12."""
Scalar = TypeVar("Scalar", np.float64, np.int64)


def rational(value: Number, name: str = "value") -> Fraction:
    """The exact rational a user means by ``value``.

    A float with at most six decimal places is read as its shortest decimal. Any other float is read as the fraction
    with a denominator of at most a million that rounds to it, if there is one (a budget divided into equal shares adds
    up to the budget again), else as its shortest decimal.

    Guarantees: strictly increasing on floats (what a float is read as rounds to that float); exact on integers,
    fractions and decimals; no larger than a float can be.

    >>> rational(0.1), rational(2), rational(Fraction(1, 3)), rational(0.5 / 52)
    (Fraction(1, 10), Fraction(2, 1), Fraction(1, 3), Fraction(1, 104))
    """
    if isinstance(value, bool):
        raise InvalidInput(f"{name}={shown(value)} must be a number, not a truth value.")
    if not isinstance(value, Real | Decimal):
        raise InvalidInput(f"{name}={shown(value)} must be a number.")
    number = number_or_nan(value)
    if not math.isfinite(number):
        told = f"a finite number, at most {LARGEST:g} in size" if isinstance(value, Rational) else "finite"
        raise InvalidInput(f"{name}={shown(value)} must be {told}.")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))  # of numpy's integers, too, which overflow
    if isinstance(value, Decimal):
        return Fraction(value)
    decimal = Fraction(repr(number))
    if decimal.denominator <= MOST_SHARES:
        return decimal
    share = Fraction(number).limit_denominator(MOST_SHARES)
    return share if float(share) == number else decimal


def first_true(holds: Callable[[int], bool], low: int, high: int | None = None, *, most: int | None = None) -> int:
    """The smallest integer from ``low`` on at which ``holds`` is true.

    ``holds`` must be monotone: false up to some integer and true from there on. The invariant is that it is false below
    what is returned and true there; where it is not monotone, the result is one of the integers at which it turns true.

    Args:
        holds: the condition; it is evaluated at ``low``, and at ``high`` only if that is not given.
        low: where the search begins.
        high: an integer at which ``holds`` is known to be true. None: it is looked for by doubling the step.
        most: without ``high``: how far is looked. One more than it is returned where ``holds`` is false up to it.

    >>> first_true(lambda n: n * n >= 200, 0), first_true(lambda n: n >= 7, 0, 10)
    (15, 7)
    >>> first_true(lambda n: False, 1, most=9)
    10
    """
    if holds(low):
        return low
    step = 1
    while high is None:
        trial = low + step if most is None else min(low + step, most)
        if trial == low:
            return low + 1
        if holds(trial):
            high = trial
        else:
            low, step = trial, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def root(
    positive: Callable[[float], bool], low: float, high: float, *, relative: float = 0.0, absolute: float = 0.0
) -> tuple[float, float]:
    """Two numbers, as near as asked for, between which ``positive`` turns from false to true.

    The invariant is that ``positive`` is false at the first number and true at the second, as it must be at ``low`` and
    ``high``, which may lie in either order: take the number on the side that is safe. With neither tolerance the two
    are neighbouring doubles.

    Args:
        positive: the condition, monotone between the two ends.
        low: a number at which it is false.
        high: a number at which it is true.
        relative: the search ends when the two differ by at most this share of the larger one.
        absolute: the search ends when the two differ by at most this.

    >>> low, high = root(lambda x: x * x > 2, 0.0, 2.0)
    >>> low * low <= 2 < high * high, high - low < 1e-15
    (True, True)
    """
    while abs(high - low) > max(absolute, relative * max(abs(low), abs(high))):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        if positive(middle):
            high = middle
        else:
            low = middle
    return low, high


def number_or_nan(value: object) -> float:
    """The float of a number, infinite where it is too large; NaN of anything else, a text or a truth value, say.

    >>> number_or_nan(Fraction(1, 4)), number_or_nan("0.25"), number_or_nan(-(10**400))
    (0.25, nan, -inf)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value == abs(value) else -math.inf
    except (TypeError, ValueError):  # a signalling NaN
        return math.nan


def positive(remedy: str = "", **arguments: Number) -> Fraction:
    """The one named argument, as an exact positive finite rational."""
    ((name, value),) = arguments.items()
    number = rational(value, name)
    if number <= 0:
        raise InvalidInput(f"{name}={shown(value)} must be greater than 0. {remedy}".rstrip())
    return number


def privacy_loss(**arguments: Number) -> Fraction:
    """The one named epsilon, within what is designed for."""
    ((name, value),) = arguments.items()
    number = positive("Typical values lie between 0.1 and 2.", **arguments)
    if not LOSSES[0] <= number <= LOSSES[1]:
        raise InvalidInput(
            f"{name}={shown(value)} must lie between {LOSSES[0]:g} and {LOSSES[1]:g}. Typical values lie between 0.1 "
            "and 2."
        )
    return number


def positive_integer(**arguments: int) -> int:
    """The one named argument, as an integer that is at least 1, and no more than can be counted."""
    ((name, value),) = arguments.items()
    whole = isinstance(value, Integral) or (isinstance(value, float) and float(value).is_integer())
    if isinstance(value, bool) or not whole or value < 1:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at least 1.")
    if value > MOST:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at most {MOST}.")
    return int(value)


def rows_of_a_unit(unit: object, max_rows_per_unit: int | None) -> int:
    """The most rows of one person that count: 1 if nothing is said; refuses a number where nobody names the person."""
    if unit is None and max_rows_per_unit is not None:
        raise InvalidInput(f"max_rows_per_unit={shown(max_rows_per_unit)} needs a unit. Name the column: unit=...")
    return 1 if max_rows_per_unit is None else positive_integer(max_rows_per_unit=max_rows_per_unit)


def probability(remedy: str = "", **arguments: float) -> float:
    """The one named argument, as a number strictly between 0 and 1, that a float tells from both."""
    ((name, value),) = arguments.items()
    number = float(rational(value, name))
    if not 0 < number < 1:
        raise InvalidInput(f"{name}={shown(value)} must lie in (0, 1). {remedy}".rstrip())
    if number < RAREST:
        raise InvalidInput(f"{name}={shown(value)} must be at least {RAREST:g}: smaller ones are not computed.")
    return number


def choice(options: Iterable[str], **arguments: object) -> str:
    """The one named argument, as one of ``options``."""
    ((name, value),) = arguments.items()
    known = list(options)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(repr(option) for option in known)
        raise InvalidInput(f"{name}={shown(value)} must be one of {listed}.{suggestion(str(value), known)}")
    return value


def suggestion(word: str, known: Iterable[str]) -> str:
    """`` Did you mean 'normal'?`` where some known word is close, else nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


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


def rounded_up(value: Fraction) -> float:
    """The nearest double that is not less.

    >>> rounded_up(Fraction(1, 2)), rounded_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.5, True)
    """
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def dot(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """The sum of the products of two vectors.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", first, second))


def row_dots(matrix: npt.NDArray[Any], vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The product of each row with a vector.

    >>> row_dots(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 4.0])).tolist()
    [11.0, 4.0]
    """
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def distinct(values: npt.NDArray[np.int64]) -> Integers:
    """What numpy.unique gives for integers, in a fiftieth of the time where they come in sorted runs.

    >>> distinct(np.array([3, 5, 1, 3])).tolist()
    [1, 3, 5]
    """
    found = np.sort(values, kind="stable")  # which merges runs
    return found if len(found) == 0 else found[np.append(True, found[1:] != found[:-1])]


def clipped(values: npt.NDArray[Scalar], low: float, high: float) -> npt.NDArray[Scalar]:
    """What numpy.clip gives, in a fifth of the time for short arrays.

    >>> clipped(np.array([-3, 1, 7]), 0, 5).tolist()
    [0, 1, 5]
    """
    return np.minimum(np.maximum(values, low), high)


def discounted(law: Floats, b: float) -> Floats:
    """Running sums y[j] = law[j] + b y[j - 1] along the last axis, by doubling.

    As ``scipy.signal.lfilter([1], [1, -b], law)``; but importing scipy.signal takes longer than a whole plan.

    Invariant: sums[j] is the sum over the last ``reach`` entries up to j.

    >>> discounted(np.array([1.0, 0.0, 2.0]), 0.5).tolist()
    [1.0, 0.5, 2.25]
    """
    sums = np.array(law, dtype=np.float64)
    reach, factor = 1, b
    with np.errstate(under="ignore"):
        while reach < sums.shape[-1] and factor > 0:
            sums[..., reach:] += factor * sums[..., :-reach]
            reach, factor = 2 * reach, factor * factor
    return sums


@contextmanager
def quiet() -> Iterator[None]:
    """Neither numpy's warnings nor those that scipy's compiled code raises by itself."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
