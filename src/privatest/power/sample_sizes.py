"""From P, Q and epsilon to a tuned test; how many records it needs, and how little privacy loss n records need.

:func:`decide` is the whole of it in one call: count the records, design the test for them, run it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from statistics import NormalDist
from typing import Any

import numpy as np

from privatest import numbers
from privatest.decision import PrivateTest, Release
from privatest.decision.build import CALIBRATED, KINDS, PRIVATE_KINDS, calibrated_noise, literal_cutoff
from privatest.decision.design import check_better_than_a_coin
from privatest.decision.odd import OddShare
from privatest.errors import Infeasible, InvalidInput, shown
from privatest.headway import each, part
from privatest.numbers import Number
from privatest.power.ahead import unsure
from privatest.power.tuning import Family, Goal, make_family, make_goal, rough_clamp, tuning_size
from privatest.questions import known_arguments

__all__ = ["decide", "design", "min_epsilon", "sample_size", "smallest_n"]

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
    rounded, quantum = _four_digits(high)
    while margin(float(rounded)) < 0:
        rounded += quantum
    # Where no rival does with four digits less, none has a smaller epsilon: most are looked at only once.
    for rival in base.at_epsilon(float(rounded)).rivals(n):
        less = float(rounded - quantum)
        if less > 0 and rival.at_epsilon(less).own_margin(n) >= 0:
            best = _smallest(lambda epsilon: rival.at_epsilon(epsilon).own_margin(n), less)  # noqa: B023  called here
            rounded, quantum = _four_digits(best)
    return float(rounded)


def _four_digits(epsilon: float) -> tuple[Decimal, Decimal]:
    """Epsilon rounded up to four digits, and one of the last digit."""
    digits = Decimal(repr(epsilon))
    quantum = Decimal(1).scaleb(digits.adjusted() - 3)
    return digits.quantize(quantum, rounding=ROUND_CEILING), quantum


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
        max_rows_per_unit: the most records that one person counts as, where a run names the ``unit`` (see
            :meth:`PrivateTest.run`): all rows of a person are hidden together. Above 1, error rates are those of rows
            that do not resemble each other (docs/sharp_edges.md).
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


@known_arguments
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
    if made.private:
        check_better_than_a_coin(made.alpha, made.beta, made.n)
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng, besides=odd)


# No sample size beyond this is looked for.
MOST_RECORDS = 10**13
# Among fewer numbers of records than this none is guessed at first.
FEW_NUMBERS = 4


def smallest_n(family: Family, between: tuple[int, int] | None = None) -> int:
    """The smallest n from which on the tests of a family meet its goal; the family remembers it.

    Args:
        between: fewer records than the first are known not to meet the goal, and the second to meet it.
    """
    known: dict[str, int] = family.__dict__
    if "_smallest" not in known:
        known["_smallest"] = _smallest_n(family, between)
    return known["_smallest"]


def _smallest_n(family: Family, between: tuple[int, int] | None) -> int:
    _refuse_hopeless(family)
    with part("the number of records", 2) as tell:
        if between is not None and (between[1] - between[0] < FEW_NUMBERS or len({*map(tuning_size, between)}) == 1):
            crossing = _from_above(family.own_margin, *between)
        else:
            crossing = _crossing(family.own_margin, _guess(family), lambda n: _never(family, n))
        tell(1)
        n = _beyond_dips(family, crossing)
        # Where no rival meets the goal with one record fewer, none has a smaller n: most are looked at only once.
        return n if n == 1 or family.margin(n - 1) < 0 else _beyond_dips(family, _from_above(family.margin, 1, n - 1))


def _beyond_dips(family: Family, crossing: int) -> int:
    """The smallest n from which on the goal is met: power can dip below it again beyond the crossing. Scores with many
    values smooth that away; with few, look as far ahead as a dip can lie, a couple of steps past the cutoff."""
    while True:
        ahead = max(32, crossing // 8) if family.few_values(crossing) else 3
        ahead = min(ahead, 400)
        # A clamp tuned for each n does at least as well as the one tuned for the crossing.
        fixed = family.with_clamp_for(crossing)
        doubtful = unsure(fixed, range(crossing + 1, crossing + ahead + 1), calibrated_noise, literal_cutoff)
        dips = [n for n in doubtful if fixed.margin(n) < 0 and family.margin(n) < 0]
        if not dips:
            return crossing
        crossing = dips[-1] + 1


def _guess(family: Family) -> int:
    """A first idea of n: without privacy from a normal approximation, else from tuning on the coarse profile."""
    if family.kind == "llr":
        return _guess_without_privacy(family)
    if family.kind not in CALIBRATED or family.clamp != "tuned" or len(family.profile.ratios) <= 2:
        return 64
    noise = 2 / (math.sinh(min(float(family.notion.equivalent), 9.0)) * family.pair.total_variation)
    n = min(_guess_without_privacy(family) + math.ceil(min(noise, MOST_RECORDS)), MOST_RECORDS // 4)
    clamp = rough_clamp(family.profile, family.notion, n, family.around)

    def margin(m: int) -> float:
        return family.goal.margin(family.profile.curves(clamp, family.notion, m, family.around))

    found = _crossing(margin, n, lambda _: MOST_RECORDS, rough=True)
    if family.kind != "stair":
        return found
    # A stair can need far fewer records, and each number of them that is tried is tuned: one tuned clamp says where.
    a, b = family.clamp_for(found)

    def tuned_margin(m: int) -> float:
        made = (family.profile.curves((float(a), float(b)), family.notion, m, family.around, s) for s in family.starts)
        return max(family.goal.margin(curves) for curves in made)

    return _crossing(tuned_margin, found, lambda _: found)


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
        return _from_above(margin, 1, high, step, rough=rough)
    high = low + max(low // step, 1)
    while margin(high) < 0:
        if high >= MOST_RECORDS:
            return never(high)
        low, high = high, min(high + (high - low) * 3, MOST_RECORDS)
    return _halved(margin, low, high, rough)


def _from_above(margin: Callable[[int], float], least: int, high: int, step: int = 200, *, rough: bool = False) -> int:
    """:func:`_crossing` where ``high`` records meet the goal and fewer than ``least`` do not: it is near the first."""
    low = high - max(high // step, 1)
    while low >= least and margin(low) >= 0:
        high, low = low, low - max((high - low) * 3, 1)
    return _halved(margin, max(low, least - 1), high, rough)


def _halved(margin: Callable[[int], float], low: int, high: int, rough: bool) -> int:
    """:func:`_crossing` between two numbers, by its invariant."""
    while high - low > (max(1, high // 200) if rough else 1):
        middle = (low + high) // 2
        if margin(middle) >= 0:
            high = middle
        else:
            low = middle
    return high


def _refuse_hopeless(family: Family) -> None:
    """With a fixed threshold the total must drift up under P and down under Q, or one error tends to 1/2 or 1."""
    if family.threshold is None and (family.kind in CALIBRATED or family.goal.alpha is not None):
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
    """The largest n that is looked at, where a rival meets the goal there; else an error."""
    if family.margin(n) >= 0:
        return n
    found = family.test(n)
    raise Infeasible(
        f"test={family.kind!r} does not reach {family.goal} with up to {n:.0e} records: there alpha is "
        f"{found.alpha:.4g} and beta {found.beta:.4g}. Use a larger epsilon, a lower target or a more distant pair."
    )
