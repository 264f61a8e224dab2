"""From P, Q and epsilon to a tuned test; how many records it needs, and how little privacy loss n records need.

:func:`decide` is the whole of it in one call: count the records, design the test for them, run it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from privatest import numbers
from privatest.decision import PrivateTest, Release
from privatest.decision.build import KINDS, PRIVATE_KINDS
from privatest.decision.odd import OddShare
from privatest.errors import Infeasible, InvalidInput, shown
from privatest.headway import each
from privatest.numbers import Number
from privatest.power.tuning import Goal, make_family, make_goal, smallest_n

__all__ = ["decide", "design", "min_epsilon", "sample_size"]

_LARGEST_EPSILON = 64.0


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
    """The smallest n such that the test on n records, and on any larger number, meets the goal.

    The goal is an advantage (2/3 unless said otherwise), or type I and II errors alpha and beta. On discrete data power
    is a sawtooth in n; "and on any larger number" is what the paper means by sample complexity.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.design`.
        advantage: the goal: the least 1 - alpha - beta; 2/3 if no goal is named.
        alpha, beta: the goal, instead of an advantage: the largest type I error (saying "alternative" under P) and the
            largest type II error (saying "null" under Q).
        test, clamp, threshold, neighbours, max_rows_per_unit, release: as for :func:`privatest.design`.

    >>> sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    """
    goal = make_goal(advantage, alpha, beta)
    family = make_family(
        null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
    )
    return smallest_n(family)


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
    """The strongest privacy at which n records suffice: the smallest epsilon, rounded up to four digits.

    Args:
        n: number of records there are, which is public.
        advantage, alpha, beta: as for :func:`privatest.sample_size`.
        null, alternative, test, clamp, threshold, neighbours, max_rows_per_unit, release: as for
            :func:`privatest.design`.
    """
    n = numbers.positive_integer(n=n)
    goal = make_goal(advantage, alpha, beta)
    numbers.choice([kind for kind in KINDS if kind in PRIVATE_KINDS], test=test)
    arguments = test, clamp, threshold, goal, neighbours, max_rows_per_unit
    base = make_family(null, alternative, 1, *arguments, release=release)

    def margin(epsilon: float, ends: tuple[Number, Number] | None = None) -> float:
        return base.at_epsilon(epsilon, ends).margin(n)

    if margin(_LARGEST_EPSILON) < 0:
        raise Infeasible(
            f"n={n} records do not reach {goal} at any epsilon: without privacy they would not suffice either. "
            f"Use sample_size(...) to see how many are needed."
        )
    high = _LARGEST_EPSILON
    # The clamp for a guess, the epsilon for that clamp, and so on.
    for guess in each("the smallest epsilon", (1.0, None, None)):
        ends = base.at_epsilon(guess or high).clamp_for(n) if base.clamp == "tuned" else None
        high = _smallest(lambda epsilon: margin(epsilon, ends), high)  # noqa: B023  called before the next round
        if ends is None:
            break
    digits = Decimal(repr(high))
    quantum = Decimal(1).scaleb(digits.adjusted() - 3)
    rounded = digits.quantize(quantum, rounding=ROUND_CEILING)
    while margin(float(rounded)) < 0:
        rounded += quantum
    return float(rounded)


def _smallest(margin: Callable[[float], float], start: float) -> float:
    """The smallest epsilon of non-negative margin, to one part in 10^5.

    Invariant: margin(low) < 0 <= margin(high), where low = 0 stands for perfect privacy.
    """
    low, high = 0.0, start
    if margin(high) < 0:
        high = _LARGEST_EPSILON
    while high - low > 1e-5 * high and high > 1e-9:
        trial = math.sqrt(low * high) if low > 0 else high / 4
        if margin(trial) >= 0:
            high = trial
        else:
            low = trial
    return high


def design(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    advantage: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> PrivateTest:
    """A test of P (``null``) against Q (``alternative``).

    Args:
        null, alternative: P and Q: frozen scipy distributions, mappings from labels to probabilities, arrays of
            probabilities, :func:`privatest.density`, text such as "normal(0, 1)", or sets of these.
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        privacy: another notion in place of epsilon: ``pt.approx(1, 1e-6)``, ``pt.gdp(1)``, ``pt.zcdp(0.5)``, ``pt.tv``,
            ``pt.renyi``, ``pt.kl``, or such a text: "zcdp(0.5)".
        n: number of records, which is public. None: the smallest that meets ``advantage``, or ``alpha`` and ``beta``.
        test: "tight" (the default), or one of the paper's: "scllr", "ncllr", and "llr" and "sllr", which do not clamp
            and are not private.
        clamp: "tuned" (the default for "tight"): the ends with the best exact error rates for this n; "paper" (the
            default for the paper's tests): the decomposition's; or (a, b).
        threshold: decide "null" above it, in nats. None: for "tight" the one with the best exact error rates, for the
            paper's tests 0.
        alpha: keep the type I error at most this, and make the type II error small.
        neighbours: what the test must not tell apart. "replace": two data sets of n records, of which one differs.
            "add-remove": two data sets of which one has a record more; n is then the number you expect, for which the
            test is tuned, and is neither checked nor revealed.
        max_rows_per_unit: the most records of one person that a run uses (see ``unit`` of :meth:`PrivateTest.run`); all
            of them together are protected.
        release: "statistic" (the default): the noisy statistic, its p-value and an interval, whatever level is asked
            for afterwards. "decision": the best decision there is, on fewer records; beside it only its level leaves,
            a whole number with p-values of its own. ``alpha`` is met exactly, by a public coin between two thresholds.
        beta: without n: the type II error that the smallest n must not exceed, together with ``alpha``.
        advantage: without n: the least 1 - alpha - beta that n must give; 2/3 if no goal is named.

    >>> test = design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    >>> round(test.advantage, 4)
    0.6774
    """
    if threshold is not None and alpha is not None:
        raise InvalidInput(f"threshold={shown(threshold)} and alpha={shown(alpha)} were both given. Give one of them.")
    if n is None:
        goal = make_goal(advantage, alpha, beta)
        family = make_family(
            null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
        )
        return family.test(smallest_n(family))
    n = numbers.positive_integer(n=n)
    if beta is not None or advantage is not None:
        name, value = ("beta", beta) if beta is not None else ("advantage", advantage)
        raise InvalidInput(
            f"{name}={shown(value)} and n={n} were both given, but n records have the power they have. Leave one out."
        )
    goal = Goal(advantage=0.0) if alpha is None else Goal(alpha=numbers.probability(alpha=alpha), beta=0.0)
    family = make_family(
        null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
    )
    return family.test(n)


def decide(
    data: Any,
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    alpha: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> Release:
    """Whether the data come from P (``null``) or from Q (``alternative``), with epsilon-privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null, alternative, epsilon, privacy, alpha, test, clamp, threshold, neighbours, max_rows_per_unit, release: as
            for :func:`privatest.design`.
        n: number of records; by default that of the data, which is public. With neighbours "add-remove" it is not:
            say how many you expect.
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> decide([0, 0, 1, 0, 0] * 20, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=1).decision
    'null'
    """
    from privatest import engines  # planning needs none of them

    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and a test made "
                "for it would tell it. Say how many you expect: n=..."
            )
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    made = design(
        null,
        alternative,
        epsilon=epsilon,
        privacy=privacy,
        n=n,
        alpha=alpha,
        test=test,
        clamp=clamp,
        threshold=threshold,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
        release=release,
    )
    where, odd = {"column": column, "unit": unit}, OddShare.of(made, odd_epsilon)
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng, besides=odd)
