"""Why a change point cannot be had: messages that name the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from privatest.changepoint.designs import Design
from privatest.errors import Infeasible, InvalidData
from privatest.rational import rational

__all__ = ["check_accuracy", "check_length"]

_LARGEST_EPSILON = 64.0


def check_length(design: Design, n: int) -> None:
    """A series must hold one block, and must be longer than the index may be off."""
    if n < design.block:
        raise InvalidData(
            f"The series has {n} records, fewer than one block of {design.block}. Pass at least {design.block} records"
            + (f", better {2 * design.accuracy} or more" if design.accuracy else "")
            + ", or use a larger epsilon."
        )
    if design.accuracy is not None and design.accuracy >= n:
        raise Infeasible(
            f"The index could only be told to within {design.accuracy} records, and the series has {n}: the answer "
            f"would carry no information. Pass more than {2 * design.accuracy} records, or a larger epsilon or beta."
        )


def check_accuracy(
    design: Design, n: int | None, beta: float, false_alarm: float | None, again: Callable[[Fraction], Design]
) -> None:
    """Refuse a false-alarm target that would make changes anywhere in the series pass unseen too often."""
    if design.accuracy is not None and (false_alarm is None or n is None or 2 * design.accuracy <= n):
        return
    if false_alarm is None:
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at epsilon={float(design.epsilon):g}. "
            "Use a larger epsilon or beta."
        )
    epsilon = _smallest_epsilon(design, n, again)
    length = "any length" if n is None else f"n={n} records"
    remedy = f"the smallest epsilon that does is about {epsilon:g}" if epsilon else "no epsilon does"
    needed = "" if design.accuracy is None else f" At this epsilon at least {2 * design.accuracy} records are needed."
    raise Infeasible(
        f"false_alarm={false_alarm:g} cannot be had with {length} at epsilon={float(design.epsilon):g}: a change in "
        f"the middle would be missed or misplaced with probability above beta={beta:g}; {remedy}.{needed}"
    )


def _smallest_epsilon(design: Design, n: int | None, again: Callable[[Fraction], Design]) -> float | None:
    """About the smallest epsilon (within a tenth, two digits) at which half a series of n records is long enough."""

    def enough(epsilon: float) -> bool:
        accuracy = again(rational(epsilon)).accuracy
        return accuracy is not None and (n is None or 2 * accuracy <= n)

    low = float(design.epsilon)
    high = 2 * low
    while not enough(high):
        if high >= _LARGEST_EPSILON:
            return None
        low, high = high, min(4 * high, _LARGEST_EPSILON)
    # Invariant: not enough(low), enough(high).
    while high > 1.1 * low:
        middle = float(f"{math.sqrt(low * high):.2g}")
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
