"""Numbers: exact rationals as users write them, checks of arguments, searches, bounds of exponentials, and vectors.

A float is read as its shortest decimal, so 0.1 is exactly 1/10, or as the fraction that it was computed from, so 0.5/52
is exactly 1/104. Everything between a record's score and the decision is computed with these rationals.
``numbers.positive(epsilon=epsilon)`` raises an error that names the argument. The integer bounds of e^(-x), of any
number of bits, decide a comparison with a uniform number whose bits are drawn as they are needed. Products of vectors
do not use BLAS, because its threads take longer to wake than these products take.
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
"""The largest number of records, rows or blocks: totals have 64 bits."""
LOSSES = (1e-9, 1e6)
"""The smallest and the largest epsilon: with less, no data are enough; with more, nothing is hidden."""
RAREST = 1e-300
"""The smallest probability that an argument may have."""
MOST_SHARES = 10**6
"""The largest denominator of a fraction that a float is read as. Two such fractions differ by more than 1e-12."""
Scalar = TypeVar("Scalar", np.float64, np.int64)


def rational(value: Number, name: str = "value") -> Fraction:
    """Return the exact rational that a user means by ``value``.

    A float with at most six decimal places is read as its shortest decimal. Any other float is read as the fraction
    with a denominator of at most a million that rounds to it, so that equal shares of a budget add up to the budget; if
    there is no such fraction, as its shortest decimal.

    Guarantees: strictly increasing on floats, because the result rounds to the float; exact on integers, fractions and
    decimals; no larger than the largest float.

    >>> rational(0.1), rational(2), rational(Fraction(1, 3)), rational(0.5 / 52)
    (Fraction(1, 10), Fraction(2, 1), Fraction(1, 3), Fraction(1, 104))
    """
    if isinstance(value, bool):
        raise InvalidInput(f"{name}={shown(value)} must be a number, not a truth value.")
    if not isinstance(value, Real | Decimal):
        raise InvalidInput(f"{name}={shown(value)} must be a number.")
    number = number_or_nan(value)
    if not math.isfinite(number):
        rule = f"a finite number, at most {LARGEST:g} in size" if isinstance(value, Rational) else "finite"
        raise InvalidInput(f"{name}={shown(value)} must be {rule}.")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))  # NumPy's integers would overflow
    if isinstance(value, Decimal):
        return Fraction(value)
    decimal = Fraction(repr(number))
    if decimal.denominator <= MOST_SHARES:
        return decimal
    share = Fraction(number).limit_denominator(MOST_SHARES)
    return share if float(share) == number else decimal


def first_true(holds: Callable[[int], bool], low: int, high: int | None = None, *, most: int | None = None) -> int:
    """Return the smallest integer from ``low`` on at which ``holds`` is true.

    ``holds`` must be monotone: false up to some integer and true from there on. Invariant: it is false just below the
    result and true there; if it is not monotone, the result is one of the integers at which it becomes true.

    Args:
        holds: the condition. It is evaluated at ``low``, and at ``high`` only if that is not given.
        low: where the search begins.
        high: an integer at which ``holds`` is known to be true. None: it is found by doubling the step.
        most: without ``high``: the last integer that is tried. If ``holds`` is false there, the result is one more.

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


def first_true_near(
    holds: Callable[[int], bool], guess: int, *, most: int, step: float = 0.005, within: float = 0.0
) -> int:
    """Return an integer near ``guess``, at least 1, at which ``holds`` is true and just below which it is false.

    The search goes up or down from the guess, in steps that become longer, and then between the last two integers that
    were tried. If ``holds`` is false up to ``most``, the result is one more than that.

    Args:
        holds: the condition, which is true from some integer on, at least roughly.
        guess: where the search begins.
        most: the last integer that is tried.
        step: the first step, relative to the guess.
        within: how much larger the result may be than the smallest such integer, relative to it.

    >>> first_true_near(lambda n: n * n >= 200, 12, most=100), first_true_near(lambda n: False, 12, most=100)
    (15, 101)
    """
    unit = max(math.floor(step * guess), 1)
    if holds(guess):
        steps = first_true(lambda k: k * unit >= guess or not holds(guess - k * unit), 1)
        low, high = max(guess - steps * unit, 0), guess - (steps - 1) * unit
    else:
        steps = first_true(lambda k: guess + k * unit >= most or holds(guess + k * unit), 1)
        low, high = guess + (steps - 1) * unit, min(guess + steps * unit, most)
        if high == most and not holds(high):
            return most + 1
    unit = max(math.floor(within * high), 1)
    if high - low <= unit:
        return high
    steps = first_true(lambda k: holds(low + k * unit), 1, -(-(high - low) // unit))
    return min(low + steps * unit, high)


def root(
    positive: Callable[[float], bool], low: float, high: float, *, relative: float = 0.0, absolute: float = 0.0
) -> tuple[float, float]:
    """Return two numbers, within a tolerance, between which ``positive`` changes from false to true.

    Invariant: ``positive`` is false at the first number and true at the second, as it must be at ``low`` and ``high``,
    which may be in either order. Use the number on the safe side. Without a tolerance the two are neighbouring doubles.

    Args:
        positive: the condition, monotone between the two ends.
        low: a number at which it is false.
        high: a number at which it is true.
        relative: largest difference of the two numbers, relative to the larger one.
        absolute: largest difference of the two numbers.

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
    """Return a number as a float, infinite if it is too large; NaN for anything else, such as a text or a boolean.

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
    """Return the one named argument as an exact positive rational; ``remedy`` ends the error about it."""
    ((name, value),) = arguments.items()
    number = rational(value, name)
    if number <= 0:
        raise InvalidInput(f"{name}={shown(value)} must be greater than 0. {remedy}".rstrip())
    return number


def privacy_loss(**arguments: Number) -> Fraction:
    """Return the one named epsilon as an exact rational between ``LOSSES``."""
    ((name, value),) = arguments.items()
    number = positive("Typical values lie between 0.1 and 2.", **arguments)
    if not LOSSES[0] <= number <= LOSSES[1]:
        raise InvalidInput(
            f"{name}={shown(value)} must lie between {LOSSES[0]:g} and {LOSSES[1]:g}. Typical values lie between 0.1 "
            "and 2."
        )
    return number


def positive_integer(**arguments: int) -> int:
    """Return the one named argument as an integer between 1 and ``MOST``."""
    ((name, value),) = arguments.items()
    whole = isinstance(value, Integral) or (isinstance(value, float) and float(value).is_integer())
    if isinstance(value, bool) or not whole or value < 1:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at least 1.")
    if value > MOST:
        raise InvalidInput(f"{name}={shown(value)} must be a whole number of at most {MOST}.")
    return int(value)


def rows_of_a_unit(unit: object, max_rows_per_unit: int | None) -> int:
    """Return how many rows of one person count, by default 1. A number without a unit raises InvalidInput."""
    if unit is None and max_rows_per_unit is not None:
        raise InvalidInput(f"max_rows_per_unit={shown(max_rows_per_unit)} needs a unit. Name the column: unit=...")
    return 1 if max_rows_per_unit is None else positive_integer(max_rows_per_unit=max_rows_per_unit)


def probability(remedy: str = "", **arguments: float) -> float:
    """Return the one named argument as a float strictly between 0 and 1."""
    ((name, value),) = arguments.items()
    number = float(rational(value, name))
    if not 0 < number < 1:
        raise InvalidInput(f"{name}={shown(value)} must lie in (0, 1). {remedy}".rstrip())
    if number < RAREST:
        raise InvalidInput(f"{name}={shown(value)} must be at least {RAREST:g}: smaller ones are not computed.")
    return number


def choice(options: Iterable[str], **arguments: object) -> str:
    """Return the one named argument, which must be one of ``options``."""
    ((name, value),) = arguments.items()
    names = list(options)
    if not isinstance(value, str) or value not in names:
        listed = ", ".join(repr(option) for option in names)
        raise InvalidInput(f"{name}={shown(value)} must be one of {listed}.{suggestion(str(value), names)}")
    return value


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return ``" Did you mean 'normal'?"`` if a known word is close, otherwise an empty text."""
    close = difflib.get_close_matches(word.lower(), list(words), n=1, cutoff=0.6)
    return f" Did you mean {close[0]!r}?" if close else ""


def square_root(amount: Fraction, *, up: bool) -> Fraction:
    """Return a rational of 15 digits above the root, or below it; the root itself if that is rational.

    >>> square_root(Fraction(1, 4), up=True), square_root(Fraction(2), up=False) ** 2 < 2
    (Fraction(1, 2), True)
    """
    exact = Fraction(math.isqrt(amount.numerator), math.isqrt(amount.denominator))
    if exact**2 == amount:
        return exact
    unit = 10 ** (15 + len(str(int(1 / amount))) // 2)
    result = math.isqrt(int(amount * unit**2))  # the root of amount unit^2, rounded down
    return Fraction(result + up, unit)


_GUARD = 32
"""More bits than are returned. Rounding widens the interval by a few units at each step, far less than these."""


def exp_bounds(p: int, q: int, bits: int) -> tuple[int, int]:
    r"""Return integers lo, hi with :math:`lo \le 2^{bits} e^{-p/q} \le hi` and hi - lo at most 2, for p >= 0, q >= 1.

    For y = p/(q 2^s) <= 1/2 it sums the series of e^y, whose terms are all positive, rounded down, and rounded up with
    the remainder added. Then it takes the reciprocal, and squares it s times, rounding outwards.

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
    upper += 2 * high_term  # the remainder: at most a geometric series of ratio 1/2
    low, high = one * one // upper, -(-one * one // lower)
    for _ in range(s):
        low, high = low * low >> precision, -(-high * high >> precision)
    shift = precision - bits
    return low >> shift, -(-high >> shift)


def exp_below(x: Fraction, bits: int = 96) -> Fraction:
    """Return a rational below e^x, for x > 0, with a relative error of at most 2^(2 - bits).

    >>> 0 < math.e - float(exp_below(Fraction(1), bits=30)) < 1e-6
    True
    """
    size = bits + 2 * math.ceil(x)  # e^-x is more than 4^-x, so its bound keeps that many bits
    return Fraction(1 << size, exp_bounds(x.numerator, x.denominator, size)[1])


def rounded_up(value: Fraction) -> float:
    """Return the nearest double that is not less.

    >>> rounded_up(Fraction(1, 2)), rounded_up(Fraction(1, 10)) >= Fraction(1, 10)
    (0.5, True)
    """
    result = float(value)
    return result if Fraction(result) >= value else math.nextafter(result, math.inf)


def dot(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Return the sum of the products of two vectors.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", first, second))


def row_dots(matrix: npt.NDArray[Any], vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the product of each row with a vector.

    >>> row_dots(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 4.0])).tolist()
    [11.0, 4.0]
    """
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def distinct(values: npt.NDArray[np.int64]) -> Integers:
    """Return what numpy.unique returns for integers, fifty times faster if they come in sorted runs.

    >>> distinct(np.array([3, 5, 1, 3])).tolist()
    [1, 3, 5]
    """
    result = np.sort(values, kind="stable")  # a stable sort merges runs
    return result if len(result) == 0 else result[np.append(True, result[1:] != result[:-1])]


def clipped(values: npt.NDArray[Scalar], low: float, high: float) -> npt.NDArray[Scalar]:
    """Return what numpy.clip returns, five times faster for short arrays.

    >>> clipped(np.array([-3, 1, 7]), 0, 5).tolist()
    [0, 1, 5]
    """
    return np.minimum(np.maximum(values, low), high)


def discounted(law: Floats, b: float) -> Floats:
    """Return running sums y[j] = law[j] + b y[j - 1] along the last axis, by doubling.

    The result is that of ``scipy.signal.lfilter([1], [1, -b], law)``, but to import scipy.signal takes longer than a
    whole plan.

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
    """Ignore, within the context, the warnings of NumPy and of SciPy's compiled code."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
