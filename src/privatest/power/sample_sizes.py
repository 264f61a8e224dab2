"""From P, Q and epsilon to a tuned test; how many records it needs, and how little privacy loss n records need."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from statistics import NormalDist
from typing import Any

from privatest import _validate
from privatest.decision import PrivateTest
from privatest.decision.build import PRIVATE_KINDS
from privatest.errors import Infeasible, InvalidInput, shown
from privatest.power.family import Family, make_family
from privatest.power.tuning import Goal, make_goal, rough_clamp
from privatest.rational import Number

__all__ = ["MOST_RECORDS", "design", "min_epsilon", "sample_size", "smallest_n"]

MOST_RECORDS = 10**13
_LARGEST_EPSILON = 64.0


def sample_size(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> int:
    """The smallest n such that the test on n records, and on any larger number, meets the goal.

    The goal is an advantage (2/3 unless said otherwise), or type I and II errors alpha and beta. On discrete data power
    is a sawtooth in n; "and on any larger number" is what the paper means by sample complexity.

    >>> sample_size([0.6, 0.4], [0.4, 0.6], epsilon=1)
    29
    """
    goal = make_goal(advantage, alpha, beta)
    family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
    return smallest_n(family)


def smallest_n(family: Family) -> int:
    """:func:`sample_size` of a family."""
    _refuse_hopeless(family)
    crossing = _crossing(family.margin, _guess(family), lambda n: _never(family, n))
    # Power can dip below the goal again beyond the crossing. Scores with many values smooth that away; with few, look
    # as far ahead as a dip can lie: within a couple of steps of the total past the cutoff.
    while True:
        ahead = max(32, crossing // 8) if family.few_values(crossing) else 3
        ahead = min(ahead, 400)
        # A clamp tuned for each n does at least as well as the one tuned for the crossing.
        fixed = family.with_clamp_for(crossing)
        dips = [n for n in range(crossing + 1, crossing + ahead + 1) if fixed.margin(n) < 0 and family.margin(n) < 0]
        if not dips:
            return crossing
        crossing = dips[-1] + 1


def _guess(family: Family) -> int:
    """A first idea of n: without privacy from a normal approximation, else from tuning on the coarse profile."""
    if family.kind == "llr":
        return _guess_without_privacy(family)
    if family.kind != "tight" or family.clamp != "tuned" or len(family.profile.ratios) <= 2:
        return 64
    noise = 2 / (math.sinh(min(float(family.epsilon), 9.0)) * family.pair.total_variation)
    n = min(_guess_without_privacy(family) + math.ceil(min(noise, MOST_RECORDS)), MOST_RECORDS // 4)
    clamp = rough_clamp(family.profile, family.epsilon, n, family.around)

    def margin(m: int) -> float:
        return family.goal.margin(family.profile.curves(clamp, family.epsilon, m, family.around))

    return _crossing(margin, n, lambda _: MOST_RECORDS, rough=True)


def _guess_without_privacy(family: Family) -> int:
    """n records have log ratios about twice -4 n log(1 - H^2) apart, measured in their deviation, squared."""
    goal = family.goal
    alpha, beta = goal.alpha, goal.beta
    if alpha is None or beta is None:
        alpha = beta = (1 - (goal.advantage or 0.0)) / 2
    deviations = _deviations(1 - alpha) + _deviations(1 - beta)
    rate = -8 * math.log1p(-min(family.pair.hellinger_squared, 1 - 1e-15))
    return min(max(round(deviations**2 / rate), 1), MOST_RECORDS)


def _deviations(share: float) -> float:
    """The standard normal quantile, never infinite."""
    return NormalDist().inv_cdf(min(max(share, 1e-15), 1 - 1e-15))


def _crossing(margin: Callable[[int], float], guess: int, never: Callable[[int], int], *, rough: bool = False) -> int:
    """An n with margin(n) >= 0 > margin(n - 1), near the guess; rough: to within half a per cent.

    Invariant: margin(low) < 0 <= margin(high), where low = 0 stands for no records at all.
    """
    step = 50 if rough else 200  # a guess that was found roughly is nearer than a guess at that
    low = high = max(guess, 1)
    if margin(high) >= 0:
        low = high - max(high // step, 1)
        while low > 0 and margin(low) >= 0:
            high, low = low, low - max((high - low) * 3, 1)
        low = max(low, 0)
    else:
        high = low + max(low // step, 1)
        while margin(high) < 0:
            if high >= MOST_RECORDS:
                return never(high)
            low, high = high, min(high + (high - low) * 3, MOST_RECORDS)
    while high - low > (max(1, high // 200) if rough else 1):
        middle = (low + high) // 2
        if margin(middle) >= 0:
            high = middle
        else:
            low = middle
    return high


def _refuse_hopeless(family: Family) -> None:
    """With a fixed threshold the total must drift up under P and down under Q, or one error tends to 1/2 or 1."""
    if family.threshold is None and (family.kind == "tight" or family.goal.alpha is not None):
        return
    null, alternative = family.drifts(1)
    size = abs(null) + abs(alternative)
    if null > 1e-12 * size and alternative < -1e-12 * size:
        return
    side, mean = ("null", null) if null <= 1e-12 * size else ("alternative", alternative)
    raise Infeasible(
        f"test={family.kind!r} with threshold {float(family.threshold or 0):g} never reaches {family.goal} for good: "
        f"one record adds {mean:.3g} on average under the {side}, so however large n is, that side's error stays at "
        "1/2 or more. Use test='tight', whose threshold is calibrated, or give another threshold."
    )


def _never(family: Family, n: int) -> int:
    found = family.test(n)
    raise Infeasible(
        f"test={family.kind!r} does not reach {family.goal} with up to {n:.0e} records: there alpha is "
        f"{found.alpha:.4g} and beta {found.beta:.4g}. Use test='tight', a larger epsilon or a lower target."
    )


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
) -> float:
    """The strongest privacy at which n records suffice: the smallest epsilon, rounded up to four digits."""
    n = _validate.positive_integer(n=n)
    goal = make_goal(advantage, alpha, beta)
    _validate.choice(PRIVATE_KINDS, test=test)
    base = make_family(null, alternative, 1, test, clamp, threshold, goal, neighbours, max_rows_per_unit)

    def margin(epsilon: float, ends: tuple[Number, Number] | None = None) -> float:
        return base.at_epsilon(epsilon, ends).margin(n)

    if margin(_LARGEST_EPSILON) < 0:
        raise Infeasible(
            f"n={n} records do not reach {goal} at any epsilon: without privacy they would not suffice either. "
            f"Use sample_size(...) to see how many are needed."
        )
    high = _LARGEST_EPSILON
    for guess in (1.0, None, None):  # the clamp for a guess, the epsilon for that clamp, and so on
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
    epsilon: Number,
    n: int | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    advantage: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> PrivateTest:
    """A test of P (``null``) against Q (``alternative``).

    Args:
        null, alternative: frozen scipy distributions, mappings, arrays of probabilities, densities, text.
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
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

    >>> test = design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    >>> round(test.advantage, 4)
    0.6774
    """
    if threshold is not None and alpha is not None:
        raise InvalidInput(f"threshold={shown(threshold)} and alpha={shown(alpha)} were both given. Give one of them.")
    if n is None:
        goal = make_goal(advantage, alpha, beta)
        family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
        return family.test(smallest_n(family))
    n = _validate.positive_integer(n=n)
    if beta is not None or advantage is not None:
        name, value = ("beta", beta) if beta is not None else ("advantage", advantage)
        raise InvalidInput(
            f"{name}={shown(value)} and n={n} were both given, but n records have the power they have. Leave one out."
        )
    goal = Goal(advantage=0.0) if alpha is None else Goal(alpha=_validate.probability(alpha=alpha), beta=0.0)
    family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
    return family.test(n)
