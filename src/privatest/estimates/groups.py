"""Compare the rates of two groups (an A/B test): the design, its release, ``pt.compare_groups``, and noised totals.

The p-value, the interval of the difference and the power are computed in ``groups_pvalue.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, SupportsFloat

import numpy as np
from scipy.special import ndtri

from privatest import numbers
from privatest.charge_before_release import Draw
from privatest.decision.run import Budgeted, Outcome, WithInterval, check_costs, cost_fact
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.estimates.groups_pvalue import ALTERNATIVES, TwoCounts
from privatest.estimates.present_records import (
    SPELLED,
    AnsweredRecords,
    Presence,
    PresentCount,
    check_missing,
    missing_fact,
    part_for_counting,
)
from privatest.estimates.tuned_score import success_score
from privatest.facts import Fact, Probability, short
from privatest.hypotheses.distribution import number_text
from privatest.hypotheses.families import LARGEST_VALUE
from privatest.hypotheses.one_parameter import OneParameter, share_of
from privatest.laws.block_laws import REACHES, NoiseMasses, NoisyCount, masses_of, variance_of
from privatest.numbers import Number, first_true_near, number_or_nan
from privatest.privacy import Noise, Notion, RandomSource, canonical_noise, make_notion
from privatest.privacy.notion import Neighbourhood, notion_words
from privatest.progress_events import searching
from privatest.scores import Score
from privatest.unanswered_questions import known_arguments, unanswered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines.records import Declared

IGNORED = 1e-4
"""The probability with which the true common rate may lie outside the rates over which the largest p-value is taken."""
MISCOUNTED = 2 * IGNORED
"""The probability with which more records of either group may be summed than are present, if that is measured."""
FINEST = 9
STEPS_PER_DEVIATION = 24
LONGEST = 2**20
"""The largest reach of noise, in fine units: longer laws take minutes."""
OUTCOMES = "'bernoulli(?)', 'share_above(cut, ?)' or 'categorical(label=?)'"
RARE = 0.01
"""If both rates are below this, the label that is counted may be written in another way in the data."""
LABEL = "records that are "
FRACTIONAL = ("float", "double", "decimal", "numeric")
"""Words that name types of numbers that need not be whole, in every library."""
LARGEST = 2**31
"""The largest number of records of a group: products of two such numbers, in fine units, stay within 64 bits."""
CLOSE_ENOUGH = 1 / 500
"""How much larger a sample size may be than the smallest one, relative to it."""


@dataclass(frozen=True)
class GroupsRelease(Outcome, WithInterval):
    """The outcome of comparing two groups.

    Guarantees: all of it is computed from what was drawn, one noisy count of each group, so it meets the design's
    notion of privacy: nobody is in both groups.

    Attributes:
        decision: "alternative" (the rates differ, in the direction of the alternative) or "null".
        pvalue: a bound on the probability of a difference at least as extreme if both rates are the same, whatever
            they are.
        statistic: the difference over about its standard error.
        difference: the treatment's noisy rate minus the control's.
        interval: holds the true difference with a probability of at least ``confidence``.
        rates: the noisy rates of control and treatment; they may lie a little below 0 or above 1.
        n: numbers of records of control and treatment, which are public.
        names: the names of control and treatment.
        alternative: "two-sided", "greater" or "less".
        epsilon: privacy loss of this release; 0 if the counts had been noised before.
        privacy: the notion that this release meets, if it is not epsilon alone.
        confidence: the smallest probability with which the interval holds the true difference.
        alpha: the largest type I error of the decision.
        persons: whether all rows of one person are hidden together, because a unit was named.
        missing: "count" if the answer is about the records that are present, whose numbers were measured; "none" if no
            record is missing, because that was declared or because their type says so.
        present: about how many records of each group are present, with noise; None if that was not measured.
        present_intervals: each holds that number with a probability of at least ``confidence``.
        among: which records these are, in words: "present", "0 or 1", "finite numbers".
        counted: which records are successes, in words; a rate is their share.
    """

    KIND: ClassVar[str] = "Release of two groups"

    decision: str
    pvalue: float
    statistic: float
    difference: float
    interval: tuple[float, float]
    rates: tuple[float, float]
    confidence: float
    alpha: float
    alternative: str
    n: tuple[int, int]
    names: tuple[str, str] = ("control", "treatment")
    counted: str = "successes"
    missing: str = "none"
    present: tuple[float, float] | None = None
    present_intervals: tuple[tuple[float, float], tuple[float, float]] | None = None
    among: str = "present"

    @property
    def _answered(self) -> AnsweredRecords:
        if self.present is None or self.present_intervals is None:
            return AnsweredRecords()
        return AnsweredRecords(self.among, self.present, self.present_intervals, self.n)

    @property
    def few_present(self) -> bool:
        """Whether less than half of the records of a group may be present."""
        return self._answered.few

    @property
    def sentence(self) -> str:
        low, high = self.interval
        finding = "differ" if self.alternative == "two-sided" else f"differ ({self.names[1]} is {self.alternative})"
        decided = f"The rates {finding}" if self.decision == "alternative" else "No difference of the rates was found"
        return self._answered.qualified(
            f"{decided}{self._answered.words} at level {self.alpha:g}, p-value {short(Probability(self.pvalue), 4)}: "
            f"the rate of {self.names[1]} minus that of {self.names[0]} is about {self.difference:.4g}, "
            f"{self.confidence:.4g} interval {low:.4g} to {high:.4g}. Counted were {self.counted}."
            f"{SPELLED if max(self.rates) < RARE and self.counted.startswith(LABEL) else ''}"
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """The design's picture with this outcome in it; without a design, the difference and its interval."""
        if self.design is not None:
            return super().plot(ax)
        from privatest import pictures

        return pictures.difference(self, ax)

    def facts(self) -> list[Fact]:
        """The answer, and the facts that every outcome ends with."""
        present, few = self._answered.facts(self.missing, self.present, self.present_intervals, self.confidence)
        decides = f"null: the rates are the same; {self.alternative} alternative"
        subtracts = f"rate of {self.names[1]} minus rate of {self.names[0]}, with noise"
        rates = f"of {self.names[0]} and {self.names[1]}, with noise"
        if self._answered.none:
            decides, subtracts, rates = (
                f"no {word}: there may be no record to answer for" for word in ("decision", "difference", "rates")
            )
        return [
            *few,
            Fact("decision", self.decision, decides),
            Fact("pvalue", Probability(self.pvalue), "exact, whatever the common rate is"),
            Fact("difference", self.difference, subtracts),
            Fact("interval", self.interval, f"holds the true one with probability {self.confidence:g} at least"),
            Fact("rates", self.rates, rates),
            Fact("counted", self.counted, "a rate is their share"),
            Fact("alpha", self.alpha, "type I error of the decision, at most"),
            Fact("n", self.n, "records of each, public"),
            *present,
            *self._ending(),
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupsDesign(Budgeted[GroupsRelease]):
    """Compare the rates of two groups by a noisy count of each.

    Guarantees: a run meets the notion for everybody in either group, which is checked when the object is made: one
    person is in one group only, and each group's count has noise of its own. The type I error is at most alpha, and the
    interval's coverage at least ``confidence``, for all rates. Which group a person is in, and how many are in each, is
    public.

    Attributes:
        outcome_text: what counts as a success: "bernoulli(?)", "share_above(5, ?)" or "categorical(yes=?)".
        n: numbers of records of control and treatment.
        notion: the notion of privacy that every run meets.
        alpha: the largest type I error of the decision.
        confidence: the smallest probability with which the interval holds the true difference.
        alternative: "two-sided", "greater" or "less".
        score: ``fine`` units for a success, 0 for every other record.
        noise: what is added to each count.
        max_rows_per_unit: the largest number of records that one person counts as, whatever the number of rows.
        count_noise: what is added to the number of each group's present records, if that is measured.
        missing: "count": the answer is about the records that are present, and how many are in each group is measured,
            within the budget. "none": it is declared that no record is missing; one that is counts as no success.
    """

    FORMAT: ClassVar[str] = "privatest/groups/1"
    KIND: ClassVar[str] = "comparison of two groups"
    REQUEST_KEY: ClassVar[str] = "groups"

    outcome_text: str = field(metadata={"key": "outcome"})
    n: tuple[int, int]
    notion: Notion = field(metadata={"key": "privacy"})
    alpha: float
    confidence: float
    alternative: str
    score: Score
    noise: Noise
    max_rows_per_unit: int = 1
    count_noise: Noise | None = None
    missing: str = "none"

    def __post_init__(self) -> None:
        check_missing(self.missing)
        if (self.missing == "count") != (self.count_noise is not None):
            raise InvalidInput("count_noise goes with missing='count': the numbers of present records are not public.")
        for number in self.n:
            numbers.positive_integer(n=number)
            self.score.check_total(number)
        numbers.probability(alpha=self.alpha)
        numbers.probability(confidence=self.confidence)
        numbers.choice(ALTERNATIVES, alternative=self.alternative)
        _ = self._success
        if self.score.low != 0:
            raise InvalidInput("A comparison of two groups counts successes: the smallest score must be 0.")
        if self.count_noise is not None and not self.count_noise.total_leaves:
            raise InvalidInput(f"The noise {self.count_noise.kind!r} does not give counts that may be released.")
        if self.noise.offset or not self.noise.total_leaves:
            raise InvalidInput(f"The noise {self.noise.kind!r} does not give whole counts that may be released.")
        rows = numbers.positive_integer(max_rows_per_unit=self.max_rows_per_unit)
        reach = Neighbourhood(rows=rows).reach(self.score)
        costs = [self.noise.guarantee(reach) if reach else None]
        costs += [] if self.count_noise is None else [self.count_noise.guarantee(rows)]
        check_costs(costs, self.notion)

    @property
    def fine(self) -> int:
        """Number of lattice steps that one record counts."""
        return self.score.high

    @cached_property
    def _success(self) -> OneParameter:
        """What counts as a success."""
        return _outcome(self.outcome_text, None, None)

    @cached_property
    def counts(self) -> TwoCounts:
        """The laws of both noisy counts, for the numbers of records that are summed if all are present."""
        return self._counts([self._presence.summed(Fraction(n), n) for n in self.n])

    @property
    def _presence(self) -> Presence:
        """How the present records of each group are summed."""
        return Presence() if self.count_noise is None else Presence(self.count_noise, MISCOUNTED / 2)

    @property
    def _miss(self) -> float:
        """The probability with which more records of either group are summed than are present."""
        return 2 * self._presence.miss

    def _counts(self, n: Sequence[int]) -> TwoCounts:
        masses, variance = noise_masses(self.noise, self.fine), self.noise.variance / self.fine**2
        first, second = (NoisyCount(number, masses) for number in n)
        return TwoCounts(first, second, self.alternative, (variance, variance), IGNORED)

    def power(self, rates: tuple[float, float]) -> float:
        """The probability of the decision "alternative" if control and treatment have these rates.

        Args:
            rates: of control and treatment, each in [0, 1].
        """
        both = tuple(rates) if isinstance(rates, Iterable) and not isinstance(rates, str) else ()
        if len(both) != 2:
            raise InvalidInput(f"rates={shown(rates)} must be two numbers: the rates of control and treatment.")
        return self.counts.power((_rate(both[0], "rates"), _rate(both[1], "rates")), self.alpha - self._miss)

    def sample_size(self, *, rate: float, lift: float, alpha: float | None = None, beta: float = 0.2) -> int:
        """The number of records in the control group with which a lift is found with probability 1 - beta.

        The treatment's number is in the same proportion to it as in this design.

        Args:
            rate: the control group's rate.
            lift: the treatment's rate minus the control's.
            alpha: type I error; by default this design's.
            beta: type II error.
        """
        level = self.alpha if alpha is None else float(numbers.probability(alpha=alpha))
        missed = float(numbers.probability(beta=beta))
        if isinstance(lift, bool | str) or not isinstance(lift, SupportsFloat):
            raise InvalidInput(f"lift={shown(lift)} must be a number: by how much the treatment's rate is larger.")
        lift = float(lift)
        first = _rate(rate, "rate")
        if not 0 <= first + lift <= 1:
            raise InvalidInput(
                f"rate={shown(rate)} and lift={shown(lift)}: rate + lift is {first + lift:.6g}, and must lie between 0 "
                "and 1."
            )
        rates = first, first + lift
        if lift == 0:
            raise InvalidInput("lift=0 is no difference: nothing finds it. Use a lift above or below 0.")
        if {"greater": lift < 0, "less": lift > 0}.get(self.alternative, False):
            raise InvalidInput(
                f"lift={shown(lift)} points away from alternative={self.alternative!r}. Turn one of them."
            )
        ratio = self.n[1] / self.n[0]
        # About the size by a normal approximation: variance/n + noise/n^2 = (lift/deviations)^2.
        sides = 2 if self.alternative == "two-sided" else 1
        squared = (lift / float(ndtri(1 - level / sides) + ndtri(1 - missed))) ** 2
        variance = rates[0] * (1 - rates[0]) + rates[1] * (1 - rates[1]) / ratio
        noise = self.noise.variance / self.fine**2 * (1 + 1 / ratio**2)
        guess = (variance + math.sqrt(variance**2 + 4 * squared * noise)) / (2 * squared)
        with searching("records of the control group", 12) as looked:

            def enough(n: int) -> bool:
                looked()
                design = design_groups(
                    n=(n, max(round(ratio * n), 1)),
                    **self._budget_argument,
                    alpha=level,
                    alternative=self.alternative,
                    outcome=self.outcome_text,
                    max_rows_per_unit=self.max_rows_per_unit,
                    missing=self.missing,
                )
                return design.counts.power(rates, level - design._miss) >= 1 - missed

            most = int(LARGEST / max(ratio, 1))
            n = first_true_near(enough, min(max(round(guess), 1), most), most=most, within=CLOSE_ENOUGH)
        if n > most:
            raise InvalidInput(f"lift={shown(lift)} needs more than {LARGEST} records. Use a larger lift.")
        return n

    def opened(self, source: Any, **where: Any) -> Any:
        """The records of both groups."""
        from privatest.engines.sources import open_arms  # planning needs no engine

        return open_arms(self.need, source, **where)

    @property
    def outcome(self) -> type[GroupsRelease]:
        """The class of its releases."""
        return GroupsRelease

    def run(  # type: ignore[override]  # of two groups
        self,
        control: Any,
        treatment: Any = None,
        *,
        group: str | None = None,
        control_name: Any = None,
        column: str | None = None,
        unit: str | None = None,
        odd_epsilon: Number | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> GroupsRelease:
        """Run the comparison once on data.

        Args:
            control, treatment: the records of the two groups; or one table, and ``group``.
            group: the column that says which group a row belongs to; public, with two values.
            control_name: the value of the control group; by default the first one in the order of their names.
            unit: the column that says whose record it is, as for :meth:`PrivateTest.run`. Nobody may be in both groups.
            odd_epsilon: as for :meth:`PrivateTest.run`; the share is one of the records of both groups.
        """
        data = _sources(control, treatment, group)
        where = {"group": group, "control": control_name, "column": column, "unit": unit}
        payer = {"ledger": ledger, "dataset": dataset, "request": request}
        return self.run_opened(None, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)

    def check(self, records: Any) -> None:
        """Refuse groups whose records have a wrong type or number."""
        for one, number in zip(records.both, self.n, strict=True):
            self._presence.check(one, self.score, number)

    def draw(self, records: Any, source: RandomSource) -> Draw:
        """Draw the noisy counts of both groups and the noisy numbers of present records; the names are public."""
        groups = zip(records.both, self.n, strict=True)
        drawn = [self._presence.draw(one, self.score, self.noise, n, source) for one, n in groups]
        numbers_present = [str(number) for _, *more in drawn for number in more]
        return [*(int(total) for total, *_ in drawn), *numbers_present, *records.names]

    def _parsed(self, draw: Sequence[Any]) -> tuple[tuple[int, int], list[Fraction], tuple[str, ...]]:
        """The noisy counts, the noisy numbers of present records, and the names of the groups."""
        measured = 0 if self.count_noise is None else 2
        return (draw[0], draw[1]), [Fraction(number) for number in draw[2 : 2 + measured]], tuple(draw[2 + measured :])

    def _counts_of(self, present: Sequence[Fraction]) -> TwoCounts:
        """The laws of both noisy counts for the numbers of records that were summed."""
        if not present:
            return self.counts
        return self._counts([self._presence.summed(number, n) for number, n in zip(present, self.n, strict=True)])

    def interval(self, draw: Sequence[Any], confidence: float) -> tuple[float, float]:
        """The interval of the difference that follows from a draw: post-processing, which costs no privacy.

        Args:
            draw: as for :meth:`release`.
            confidence: the smallest probability with which the interval holds the true difference.
        """
        _check_errors("confidence_level", confidence, 1 - confidence, self._miss)
        noisy, present, _ = self._parsed(draw)
        counts = self._counts_of(present)
        return _interval(counts, noisy, confidence, counts.pvalue(noisy), self._miss)

    def release(self, draw: Sequence[Any], *, simulated: bool = False) -> GroupsRelease:
        """Compute everything from two noisy counts: post-processing, which costs no privacy.

        Args:
            draw: the noisy counts of successes in control and treatment; then the noisy numbers of present records, if
                these are measured; then the names of the groups, if these are not "control" and "treatment".
            simulated: whether the caller's generator drew it.
        """
        noisy, present, names = self._parsed(draw)
        outcome = _release(
            self._counts_of(present),
            noisy,
            self.alpha,
            self.confidence,
            epsilon=self.epsilon,
            names=names or ("control", "treatment"),
            simulated=simulated,
            miss=self._miss,
        )
        about = []
        if self.count_noise is not None:
            pairs = zip(present, self.n, strict=True)
            about = [PresentCount.of(self.count_noise, number, self.confidence, float(n)) for number, n in pairs]
        return replace(
            outcome,
            privacy=self._privacy_text,
            n=self.n,
            among=self._success.records,
            counted=_counted(self._success),
            missing=self.missing,
            present=(about[0].about, about[1].about) if about else None,
            present_intervals=(about[0].interval, about[1].interval) if about else None,
        )

    def plot(self, ax: Axes | None = None, *, release: GroupsRelease | None = None) -> Axes:
        """Power against lift, and a release."""
        from privatest import pictures

        return pictures.groups(self, ax, release=release)

    @property
    def title(self) -> str:
        """A heading."""
        return f"Comparison of two groups, {self.outcome_text}"

    def facts(self) -> list[Fact]:
        """The question, and what a run costs."""
        return [
            Fact("outcome", self.outcome_text, "whose share is compared"),
            Fact("alternative", self.alternative, "of the treatment's rate to the control's"),
            Fact("n", self.n, "records of control and treatment, public"),
            missing_fact(self.missing, measured=self.count_noise is not None),
            cost_fact(self.notion, "of one run, for everybody in either group"),
            Fact("alpha", self.alpha, "type I error, for every common rate"),
            Fact("confidence", self.confidence, "of the difference's interval, for all rates"),
            Fact("noise", self.noise.kind, "added to the count of each group"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "records that one person counts as, at most"),
        ]

    def __hash__(self) -> int:
        return hash((self.outcome_text, self.n, self.notion, self.alpha))

    def __repr__(self) -> str:
        return f"GroupsDesign({self.outcome_text!r}, n={self.n}, {notion_words(self.notion)}, alpha={self.alpha:g})"


def _sources(control: Any, treatment: Any, group: str | None) -> Any:
    """One table, or two sources, each opened once, so that a ledger knows both by their names."""
    from privatest.engines import open_once  # planning needs no engine

    if group is not None and treatment is None:
        return control
    return tuple(one if one is None else open_once(one) for one in (control, treatment))


def _rate(value: float, name: str) -> float:
    number = number_or_nan(value)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name}={shown(value)} must lie between 0 and 1.")
    return number


def noise_masses(noise: Noise, fine: int) -> NoiseMasses:
    """The noise's probabilities on the integers, without those that are negligible."""
    reach = _reach(noise)
    masses = np.asarray(noise.pmf(np.arange(-reach, reach + 1)))
    none = int(np.argmax(masses > 0))
    return NoiseMasses(none - reach, masses[none : len(masses) - none], fine)


def _reach(noise: Noise) -> int:
    """The value beyond which the noise's probabilities are negligible."""
    return math.ceil(noise.reach(42)) + noise.plateau + 1


def _release(
    counts: TwoCounts,
    noisy: tuple[int, int],
    alpha: float,
    confidence: float,
    *,
    epsilon: float,
    names: tuple[str, ...] = ("control", "treatment"),
    simulated: bool = False,
    totals: tuple[float, float] | None = None,
    miss: float = 0.0,
) -> GroupsRelease:
    """The release that follows from two noisy counts.

    Args:
        counts, noisy: the laws of both counts, and their values, in fine units.
        alpha, confidence, epsilon, names, simulated: as in the release.
        totals: the exact totals, if they are no whole numbers of fine units.
        miss: the probability with which they count fewer records than ``counts`` says.
    """
    n, fine = (counts.control.n, counts.treatment.n), counts.control.noise.fine
    first, second = totals or (noisy[0] / fine, noisy[1] / fine)
    pvalue, rates = counts.pvalue(noisy), (first / n[0], second / n[1])
    return GroupsRelease(
        decision="alternative" if min(pvalue + miss, 1.0) <= alpha else "null",
        pvalue=min(pvalue + miss, 1.0),
        statistic=counts.statistic(noisy),
        difference=rates[1] - rates[0],
        interval=_interval(counts, noisy, confidence, pvalue, miss),
        rates=rates,
        confidence=confidence,
        alpha=alpha,
        alternative=counts.alternative,
        n=n,
        names=(names[0], names[1]),
        epsilon=epsilon,
        simulated=simulated,
    )


def _interval(
    counts: TwoCounts, noisy: tuple[int, int], confidence: float, pvalue: float, miss: float
) -> tuple[float, float]:
    """The interval of the difference. It holds 0 if the p-value does not exclude that."""
    low, high = counts.interval(noisy, confidence + miss)
    return (min(low, 0.0), max(high, 0.0)) if pvalue + miss > 1 - confidence else (low, high)


def _outcome(outcome: Any, above: Any, success: Any) -> OneParameter:
    """The rate or share of what counts as a success."""
    rules = {"outcome": outcome, "above": above, "success": success}
    named = [name for name, value in rules.items() if value is not None]
    if len(named) > 1:
        raise InvalidInput(
            f"{' and '.join(named)} were both given: each says what counts as a success. Give one of them."
        )
    if above is not None:
        cut = numbers.rational(above, "above")
        if abs(cut) >= LARGEST_VALUE:
            raise InvalidInput(f"above={shown(above)} must lie within {LARGEST_VALUE:g} of 0: the public cut.")
        outcome = f"share_above({number_text(float(cut))}, ?)"
    if success is not None:
        outcome = share_of(success)
    elif outcome is not None and (not isinstance(outcome, str) or "?" not in outcome):
        reason = f" {unanswered('what')}" if isinstance(outcome, str) and unanswered(outcome) else ""
        raise InvalidInput(f"outcome={shown(outcome)} must be {OUTCOMES}.{reason}")
    rate = OneParameter.of("bernoulli(?)" if outcome is None else outcome, (0.0, 1.0))
    if not rate.is_share and rate.box(*rate.inner).family.name not in ("bernoulli", "share_above"):
        raise InvalidInput(f"outcome={shown(outcome)} must be {OUTCOMES}. {unanswered('what')}")
    return rate


def _counted(rate: OneParameter) -> str:
    """Which records count as successes, in words."""
    if rate.is_share:
        return f"{LABEL}{rate.label!r}"
    box = rate.box(*rate.inner)
    if box.family.name == "share_above":
        return f"numbers of at least {number_text(box.low[0])}"
    return "records equal to 1 or True, and no others"


def _error_rates(alpha: float, confidence: float, miss: float = 0.0) -> tuple[float, float]:
    """Check alpha and confidence, whose errors must leave room for the rates that are ignored."""
    level, covered = float(numbers.probability(alpha=alpha)), float(numbers.probability(confidence=confidence))
    _check_errors("alpha", alpha, level, miss)
    _check_errors("confidence", confidence, 1 - covered, miss)
    return level, covered


def _check_errors(name: str, value: float, error: float, miss: float) -> None:
    if error <= 2 * IGNORED + miss:
        raise InvalidInput(f"{name}={shown(value)} is too extreme: its errors must be above {2 * IGNORED + miss:g}.")


@known_arguments
def design_groups(
    *,
    n: tuple[int, int],
    epsilon: Number | None = None,
    alpha: float = 0.05,
    confidence: float = 0.95,
    alternative: str = "two-sided",
    outcome: str | None = None,
    above: Number | None = None,
    success: Any = None,
    max_rows_per_unit: int = 1,
    privacy: Notion | str | None = None,
    missing: str = "none",
) -> GroupsDesign:
    """Design a comparison of two groups (an A/B test).

    Args:
        n: the numbers of records of control group and treated group, or one number for both.
        epsilon: privacy loss of one run, for everybody in either group: they are different people.
        alpha: the type I error: the largest probability of finding a difference if the rates are the same.
        confidence: the smallest probability with which the interval holds the true difference.
        alternative: "two-sided", "greater" (the treatment's rate is larger) or "less".
        outcome: what counts: "bernoulli(?)" (1, True; the default, unless the column's type is one of fractional
            numbers), "share_above(5, ?)" or "categorical(yes=?)".
        above: numbers of at least this public cut count; short for "share_above(cut, ?)".
        success: this label counts; short for "categorical(label=?)".
        max_rows_per_unit, privacy: as for :func:`privatest.design`.
        missing: as for :func:`privatest.design_estimate`; of each group.

    >>> plan = design_groups(n=(200, 200), epsilon=1)
    >>> round(plan.power((0.3, 0.45)), 2)
    0.86
    """
    pair = (n, n) if isinstance(n, int | np.integer) else tuple(n) if isinstance(n, Iterable) and np.ndim(n) else ()
    if len(pair) != 2 or isinstance(n, str):
        raise InvalidInput(f"n={shown(n)} must be two numbers: records of the control group and of the treated one.")
    sizes = numbers.positive_integer(n=pair[0]), numbers.positive_integer(n=pair[1])
    if max(sizes) > LARGEST:
        raise InvalidInput(f"n={shown(n)} must be at most {LARGEST} in each group.")
    rate = _outcome(outcome, above, success)
    notion = make_notion(epsilon, privacy)
    check_missing(missing)
    miss = MISCOUNTED if missing == "count" else 0.0
    level, covered = _error_rates(alpha, confidence, miss)
    rows = numbers.positive_integer(max_rows_per_unit=max_rows_per_unit)
    deviation = math.sqrt(min(sizes) / 8 + 2 * (rows / max(float(notion.equivalent), 1e-100)) ** 2)
    fine = min(max(2 * round(STEPS_PER_DEVIATION / deviation / 2) + 1, 1), FINEST)
    score, around = success_score(rate, fine), Neighbourhood(rows=rows)
    part = part_for_counting(notion, min(sizes), around, miss / 2) if miss else Fraction(0)
    summing = notion.split(1 - part) if miss else notion
    noise = canonical_noise(summing, around.reach(score), whole=True)  # the counts stay whole
    if _reach(noise) > LONGEST:
        raise InvalidInput(
            f"{notion_words(notion)} needs noise of about {math.sqrt(noise.variance) / fine:.3g} records, more than "
            "counts are compared with. Use a larger budget."
        )
    counting = canonical_noise(notion.split(part), rows) if miss else None
    return GroupsDesign(
        outcome_text=rate.text,
        n=sizes,
        notion=notion,
        alpha=level,
        confidence=covered,
        alternative=alternative,
        score=score,
        noise=noise,
        max_rows_per_unit=rows,
        count_noise=counting,
        missing=missing,
    )


def _check_counted(declared: Declared) -> None:
    """Refuse a column of fractional numbers, by its type, if nothing says which of them count."""
    if declared.content == "numbers" and any(word in declared.type.lower() for word in FRACTIONAL):
        raise InvalidData(
            f"{declared.subject} numbers ({declared.type}), and groups are compared by a share of the records. Say "
            "which do: above=5 counts numbers of at least 5, success=1 (or outcome='bernoulli(?)') those equal to 1."
        )


@known_arguments
def compare_groups(
    control: Any,
    treatment: Any = None,
    *,
    epsilon: Number | None = None,
    alpha: float = 0.05,
    confidence: float = 0.95,
    alternative: str = "two-sided",
    outcome: str | None = None,
    above: Number | None = None,
    success: Any = None,
    max_rows_per_unit: int = 1,
    group: str | None = None,
    control_name: Any = None,
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
    privacy: Notion | str | None = None,
    missing: str | None = None,
) -> GroupsRelease:
    """Compare the rates of two groups with privacy: decision, p-value, difference and its interval.

    Args:
        group, control_name, column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`GroupsDesign.run`.
        control, treatment: the records of the two groups, in any form that :func:`privatest.decide` takes; or one table
            and ``group``.
        epsilon, alpha, confidence, alternative, outcome, above, success: as for :func:`privatest.design_groups`.
        max_rows_per_unit, privacy: as for :func:`privatest.design_groups`.
        missing: as for :func:`privatest.estimate`.

    >>> release = compare_groups([0, 1] * 500, [0, 1, 1] * 400, epsilon=1)
    >>> release.decision
    'alternative'
    """
    rate = _outcome(outcome, above, success)  # a question that cannot be answered is refused before data are opened
    from privatest.engines import Need  # planning needs no engine
    from privatest.engines.sources import open_arms  # likewise

    data = _sources(control, treatment, group)
    where: Mapping[str, Any] = {"group": group, "control": control_name, "column": column, "unit": unit}
    rows = numbers.positive_integer(max_rows_per_unit=max_rows_per_unit)
    records = open_arms(Need(rows=rows), data, **where)
    counts = records.counts()
    for name, count in zip(records.names, counts, strict=True):
        if count == 0:
            raise InvalidInput(f"The group {name!r} has no records. Pass at least one.")
    if outcome is None and above is None and success is None:
        for one in records.both:
            _check_counted(one.declared)
    if missing is None:
        missing = "count" if any(one.declared.may_leave(rate.support) for one in records.both) else "none"
    design = design_groups(
        n=counts,
        epsilon=epsilon,
        alpha=alpha,
        confidence=confidence,
        alternative=alternative,
        outcome=outcome,
        above=above,
        success=success,
        max_rows_per_unit=rows,
        privacy=privacy,
        missing=missing,
    )
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return design.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)  # type: ignore[arg-type]


NOISES = {"laplace": "scale", "gaussian": "sd", "discrete_laplace": "scale"}
_NOISE = re.compile(r"\s*([a-z_]+)\s*\(\s*(?:(scale|sd)\s*=\s*)?([0-9.eE+-]+)\s*\)\s*")


def _noised(triple: Any, name: str) -> tuple[float, int, str, float]:
    """Parse a noised total: return it, its number of records, and the kind and the size of its noise."""
    try:
        total, n, noise = triple
        total = float(numbers.rational(total))
    except (InvalidInput, TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name}={shown(triple)} must be a total, a number of records and the noise: (312.4, 1000, 'laplace(2)')."
        ) from None
    match = _NOISE.fullmatch(noise) if isinstance(noise, str) else None
    try:
        size = float(match[3]) if match else math.nan
    except ValueError:
        size = math.nan
    if (
        match is None
        or match[1] not in NOISES
        or match[2] not in (None, NOISES.get(match[1]))
        or not math.isfinite(size)
    ):
        kinds = ", ".join(f"{kind}({word})" for kind, word in NOISES.items())
        raise InvalidInput(f"{name}: noise={shown(noise)} must be one of {kinds}, such as 'laplace(2)'.")
    if not size > 0:
        raise InvalidInput(f"{name}: noise={shown(noise)} must have a {NOISES[match[1]]} greater than 0.")
    if match[1] == "discrete_laplace" and total != round(total):
        raise InvalidInput(f"{name}: the total {shown(triple[0])} must be whole: discrete_laplace noise is.")
    number = numbers.positive_integer(n=n)
    if number > LARGEST or abs(total) > 2 * LARGEST:
        raise InvalidInput(f"{name}: n={shown(n)} and the total {shown(triple[0])} must be at most {LARGEST}.")
    return total, number, match[1], size


def compare_noised(
    control: tuple[float, int, str],
    treatment: tuple[float, int, str],
    *,
    alpha: float = 0.05,
    confidence: float = 0.95,
    alternative: str = "two-sided",
) -> GroupsRelease:
    """Compare two groups by counts of successes that another system has already noised. It costs no privacy.

    Args:
        control, treatment: each a noised count, the number of records, which is public, and the noise that is in the
            count: "laplace(scale)", "gaussian(sd)" or "discrete_laplace(scale)".
        alpha, confidence, alternative: as for :func:`privatest.design_groups`.

    >>> compare_noised((301.7, 1000, "laplace(1)"), (370.2, 1000, "laplace(1)")).decision
    'alternative'
    """
    arms = _noised(control, "control"), _noised(treatment, "treatment")
    numbers.choice(ALTERNATIVES, alternative=alternative)
    level, covered = _error_rates(alpha, confidence)
    deviation = math.sqrt(min(n for _, n, _, _ in arms) / 8 + min(size for *_, size in arms) ** 2)
    exact = all(kind == "discrete_laplace" for _, _, kind, _ in arms)
    fine = 1 if exact else min(max(2 * round(STEPS_PER_DEVIATION / deviation / 2) + 1, 1), 8 * FINEST + 1)
    for (_, _, kind, size), name in zip(arms, ("control", "treatment"), strict=True):
        if REACHES[kind] * size * fine > LONGEST:
            raise InvalidInput(
                f"{name}: noise='{kind}({size:g})' is more than counts are compared with: at most "
                f"'{kind}({LONGEST // (REACHES[kind] * fine)})'."
            )
    first, second = (NoisyCount(n, masses_of(kind, size, fine)) for _, n, kind, size in arms)
    variances = tuple(variance_of(kind, size) for _, _, kind, size in arms)
    counts = TwoCounts(first, second, alternative, (variances[0], variances[1]), IGNORED)
    noisy = round(arms[0][0] * fine), round(arms[1][0] * fine)
    return _release(counts, noisy, level, covered, epsilon=0.0, totals=(arms[0][0], arms[1][0]))
