"""Sample sizes: the number of records that a test needs, and the smallest epsilon for n records."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Any

from privatest import numbers
from privatest.bounds.optimum import optimum_sample_size
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import KINDS, PRIVATE_KINDS, ChosenClamp, Goal, Method, Problem
from privatest.errors import Infeasible, InvalidInput
from privatest.numbers import Number, root
from privatest.progress_events import each

LARGEST_EPSILON = 64.0
"""The largest epsilon that is tried; with a larger one privacy costs no records."""
SMALLEST_EPSILON = 1e-9
"""The absolute accuracy of an epsilon."""


def sample_size(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> int:
    """Return the smallest n such that the test on n records, and on any larger number of records, meets the goal.

    The goal is an advantage (2/3 by default), or type I and II errors alpha and beta. On discrete data power is a
    sawtooth in n, and sample complexity in the paper refers to all larger numbers, too.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.design`.
        advantage: the smallest 1 - alpha - beta; 2/3 if no goal is given.
        alpha, beta: instead of an advantage, the largest type I error ("alternative" under P) and the largest type II
            error ("null" under Q).
        test: as for :func:`privatest.design`, or "optimum", the best of all private tests (finite domains only), for
            which the arguments below are refused.
        clamp, threshold, neighbours, max_rows_per_unit, release: as for :func:`privatest.design`.

    >>> sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    >>> sample_size([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], epsilon=1, test="optimum")
    12
    """
    if isinstance(test, str) and test == "optimum":
        settings = (clamp, threshold, neighbours, max_rows_per_unit, release)
        if settings != (None, None, "replace", 1, "statistic"):
            raise InvalidInput(
                "test='optimum' is the best of all private tests and takes no clamp, threshold, neighbours, "
                "max_rows_per_unit or release. Leave them out."
            )
        return optimum_sample_size(
            null, alternative, epsilon=epsilon, privacy=privacy, advantage=advantage, alpha=alpha, beta=beta
        )
    problem = Problem.of(
        null, alternative, epsilon=epsilon, privacy=privacy, neighbours=neighbours, max_rows_per_unit=max_rows_per_unit
    )
    method = Method.of(test=test, clamp=clamp, threshold=threshold, release=release)
    return Tuner.of(problem, method, Goal.of(advantage=advantage, alpha=alpha, beta=beta)).sample_size()


def min_epsilon(
    null: Any,
    alternative: Any,
    *,
    n: int,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> float:
    """Return the smallest epsilon at which n records suffice, rounded up to four digits.

    Args:
        n: number of records, which is public.
        advantage, alpha, beta: as for :func:`privatest.sample_size`.
        null, alternative, test, clamp, threshold, neighbours, max_rows_per_unit, release: as for
            :func:`privatest.design`.
    """
    n = numbers.positive_integer(n=n)
    goal = Goal.of(advantage=advantage, alpha=alpha, beta=beta)
    method = Method.of(test=test, clamp=clamp, threshold=threshold, release=release)
    numbers.choice([kind for kind in KINDS if kind in PRIVATE_KINDS], test=test)
    problem = Problem.of(null, alternative, epsilon=1, neighbours=neighbours, max_rows_per_unit=max_rows_per_unit)
    tuner = Tuner.of(problem, method, goal)

    def reaches(epsilon: float, clamp: ChosenClamp | None = None) -> bool:
        return tuner.at_epsilon(epsilon, clamp).margin(n) >= 0

    if not reaches(LARGEST_EPSILON):
        raise Infeasible(
            f"n={n} records do not reach {goal} at any epsilon, nor without privacy. Use sample_size(...) to see how "
            "many are needed."
        )
    epsilon = LARGEST_EPSILON
    # The clamp is tuned for a guess, the epsilon is found for that clamp, and so on.
    for guess in each("the smallest epsilon", (1.0, None, None)):
        fixed = tuner.at_epsilon(guess or epsilon).clamp_for(n) if method.clamp == "tuned" else None
        epsilon = _smallest(partial(reaches, clamp=fixed), epsilon)
        if fixed is None:
            break
    rounded, quantum = _four_digits(epsilon)
    while not reaches(float(rounded)):
        rounded += quantum
    # A rival that misses the goal with one less in the last digit has no smaller epsilon: most are tried only once.
    for rival in tuner.at_epsilon(float(rounded)).rivals(n):

        def reaches_too(epsilon: float, rival: Tuner = rival) -> bool:
            return rival.at_epsilon(epsilon).own_margin(n) >= 0

        less = float(rounded - quantum)
        if less > 0 and reaches_too(less):
            rounded, quantum = _four_digits(_smallest(reaches_too, less))
    return float(rounded)


def _four_digits(epsilon: float) -> tuple[Decimal, Decimal]:
    """Return epsilon rounded up to four digits, and one unit of the last digit."""
    digits = Decimal(repr(epsilon))
    quantum = Decimal(1).scaleb(digits.adjusted() - 3)
    return digits.quantize(quantum, rounding=ROUND_CEILING), quantum


def _smallest(reaches: Callable[[float], bool], start: float) -> float:
    """Return the smallest epsilon that reaches the goal, up to one part in 10^5; ``start`` is a first guess."""
    high = start if reaches(start) else LARGEST_EPSILON
    return root(reaches, 0.0, high, relative=1e-5, absolute=SMALLEST_EPSILON)[1]
