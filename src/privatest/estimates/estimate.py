"""Estimate one parameter of a family, with an exact interval: the design, its release, and ``pt.estimate``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from privatest import numbers
from privatest.bounds.interval_bound import PrivateIntervals
from privatest.charge_before_release import Draw
from privatest.decision.interval_inversion import MISCOUNTED, Inversion
from privatest.decision.run import Budgeted, Outcome, WithInterval, check_costs, cost_fact, hidden_fact
from privatest.errors import InvalidInput, shown
from privatest.estimates.location import MOST_BINS, STARTS, Location
from privatest.estimates.present_records import (
    SPELLED,
    AnsweredRecords,
    Presence,
    PresentCount,
    check_missing,
    missing_fact,
    part_for_counting,
)
from privatest.estimates.stepped_design import design_steps, is_stepped
from privatest.estimates.table_design import range_ends
from privatest.estimates.tuned_score import UNITS, WORKING, tuned_ratio, tuned_score
from privatest.facts import Fact
from privatest.hypotheses.one_parameter import OneParameter, condition, has_shape, share_of, with_value
from privatest.numbers import Number, first_true_near
from privatest.privacy import Noise, Notion, Pure, RandomSource, canonical_noise, make_notion
from privatest.privacy.bulk_draws import draw_rows
from privatest.privacy.canonical_noise import counts_guarantee
from privatest.privacy.notion import Neighbourhood, make_neighbourhood, notion_words, replaced
from privatest.progress_events import searching
from privatest.scores import Cells, Score
from privatest.unanswered_questions import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records

COUNTING = Fraction(1, 10)
"""The part of the budget that the number of records costs if it is not public."""
SHARES = tuple(Fraction(part, 100) for part in (2, 5, 10, 20, 40, 60, 80))
"""Parts of the budget that a first step may cost."""
LENGTHS = (2.0, 4.0)
"""Lengths of the first step's bins, in spreads of the records; bins are longer if there would be too many of them."""
FEW_SPREADS = 6.0
"""A range of fewer spreads needs no first step."""
EXTREME = 0.001
"""A noisy total with a smaller two-sided p-value at an end of the range lies beyond it."""
LEAST_PRESENT = 8
"""The first of two steps is designed for one present record in this many."""
MOST_RECORDS = 10**12
BEYOND = {
    "": "",
    "below": "the data lie BELOW the whole range: no value in it fits them",
    "above": "the data lie ABOVE the whole range: no value in it fits them",
}


@dataclass(frozen=True)
class EstimateRelease(Outcome, WithInterval):
    """The outcome of an estimate.

    Guarantees: all of it is computed from what was drawn, the noisy total and, if it is measured, the noisy number of
    records. So it meets the design's notion of privacy.

    Attributes:
        estimate: the median-unbiased estimate: the value under which the noisy total is as often exceeded as not.
        interval: holds the true value with a probability of at least ``confidence``, whatever it is, if the records
            come from a member of ``family``.
        confidence: the smallest probability with which the interval holds the true value.
        parameter: the name of the parameter.
        statistic: the noisy total, in the score's units.
        beyond: "below" or "above" if no value of the given range fits the data and they lie on that side; else "".
        epsilon: privacy loss of this release.
        n: number of records, which is public; with neighbours "add-remove", the expected number.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: whether the caller's generator drew the noise. Such a release is not private.
        privacy: the notion that this release meets, if it is not epsilon alone.
        persons: whether all rows of one person are hidden together, because a unit was named.
        family: the whole family, all parameters by name, such as "normal(mean=?, sd=1)".
        meaning: what the parameter is, in words.
        missing: "count" if the answer is about the records that are present, whose number was measured; "none" if no
            record is missing, because that was declared or because their type says so.
        present: about how many records the answer is about, with noise; None if that was not measured.
        present_interval: holds that number with a probability of at least ``confidence``.
        among: which records these are, in words: "present", "0 or 1", "whole numbers from 0 on".
    """

    KIND: ClassVar[str] = "Release of an estimate"

    estimate: float
    interval: tuple[float, float]
    confidence: float
    parameter: str
    statistic: float
    n: int
    beyond: str = ""
    family: str = ""
    meaning: str = ""
    missing: str = "none"
    present: float | None = None
    present_interval: tuple[float, float] | None = None
    among: str = "present"

    @property
    def fits(self) -> bool:
        """Whether some value of the range fits the noisy total: one with a two-sided p-value of at least 0.001.

        One noisy total says nothing about the family's shape: True does not mean that the records come from it.
        """
        return not self.beyond

    @property
    def _parameter_words(self) -> str:
        """The parameter and its family, and the parameter's meaning if its name does not say it."""
        plain = self.meaning in ("", self.parameter, f"the {self.parameter}")
        words = self.parameter if plain else f"{self.parameter} ({self.meaning})"
        return words if self.family.partition("(")[0] in ("", "categorical") else f"{words} of {self.family}"

    @property
    def _shape_hint(self) -> str:
        """The question that tests the family's shape; empty if the family has none, or other unknown parameters."""
        if not has_shape(self.family) or " in [" in self.family:
            return ""
        fitted = with_value(self.family, float(f"{self.estimate:.4g}"))
        return f" Whether they do is not checked here: goodness_of_fit of {fitted!r} tells."

    @property
    def _answered(self) -> AnsweredRecords:
        if self.present is None or self.present_interval is None:
            return AnsweredRecords()
        hidden = self.neighbours != "replace"
        return AnsweredRecords(self.among, (self.present,), (self.present_interval,), (self.n,), hidden)

    @property
    def few_present(self) -> bool:
        """Whether less than half of the records may be present."""
        return self._answered.few

    @property
    def width(self) -> float:
        """The interval's length."""
        return self.interval[1] - self.interval[0]

    @property
    def sentence(self) -> str:
        low, high = self.interval
        if self.beyond:
            return self._answered.qualified(
                f"No value of {self._parameter_words} in the range fits: the data lie {self.beyond} all of it, whose "
                f"nearest end is {self.estimate:.6g}. Do not report this as an estimate: widen the range, or doubt the "
                "family."
            )
        spelled = SPELLED if low <= 0 and self.family.startswith("categorical(") else ""
        return self._answered.qualified(
            f"The {self._parameter_words}{self._answered.words} is about {self.estimate:.6g}, {self.confidence:.4g} "
            f"interval {low:.6g} to {high:.6g}, {condition(self.family)}.{self._shape_hint}{spelled}"
        )

    def facts(self) -> list[Fact]:
        """The answer, and the facts that every outcome ends with."""
        beyond = [Fact("beyond", self.beyond, BEYOND[self.beyond])] if self.beyond else []
        present, few = self._answered.facts(self.missing, self.present, self.present_interval, self.confidence)
        holds = f"holds the true value with probability {self.confidence:g} at least, {condition(self.family)}"
        meaning = f"of {self._parameter_words}, median-unbiased"
        if self._answered.none:
            meaning = "no estimate: there may be no record to answer for"
        return [
            *few,
            *beyond,
            Fact("estimate", self.estimate, meaning),
            Fact("interval", self.interval, "no interval: the nearest end of the range" if self.beyond else holds),
            Fact("fits", self.fits, "whether any value of the range fits the noisy total; the shape is not checked"),
            Fact("statistic", self.statistic, "the noisy total this was computed from"),
            Fact("n", self.n, "records"),
            *present,
            *self._ending(),
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class EstimateDesign(Budgeted[EstimateRelease]):
    """Estimate one parameter from a noisy total of scores, with an interval that inverts the total's exact law.

    Over a wide range there are two steps: noisy counts of bins say about where the records lie (``location``), and the
    score is made for that place.

    Guarantees: a run meets the notion, with both steps together, which is checked when the object is made; the interval
    of a run holds the true value with a probability of at least ``confidence``, for every value between the ends.

    Attributes:
        family: the family, with a question mark for the parameter, such as "normal(mean=?, sd=1)".
        between: the range of the parameter.
        confidence: the smallest probability with which the interval holds the true value.
        notion: the notion of privacy that every run meets.
        n: number of records; with neighbours "add-remove", the expected number.
        score, noise: what is summed, and what is added to the sum; None if a first step comes before.
        neighbours: which data sets are neighbours: "replace" or "add-remove".
        max_rows_per_unit: the largest number of records that one person counts as, whatever the number of rows.
        tuned_for: the values that the score was tuned for; None: the whole range.
        count_noise: what is added to the number of present records, if that is measured.
        location: the first of two steps.
        second: the notion that the second of two steps meets.
        level: the confidence of the second of two steps.
        missing: "count": the answer is about the records that are present, and how many are is measured, within the
            budget. "none": it is declared that no record is missing; one that is counts by the score's fixed value.
            With neighbours "add-remove" the number of present records is measured anyway.
    """

    FORMAT: ClassVar[str] = "privatest/estimate/1"
    KIND: ClassVar[str] = "estimate"
    REQUEST_KEY: ClassVar[str] = "estimate"

    family: str
    between: tuple[float, float]
    confidence: float
    notion: Notion = field(metadata={"key": "privacy"})
    n: int
    score: Score | None = None
    noise: Noise | None = None
    neighbours: str = "replace"
    max_rows_per_unit: int = 1
    tuned_for: tuple[float, float] | None = None
    count_noise: Noise | None = None
    location: Location | None = None
    second: Notion | None = None
    level: float | None = None
    missing: str = "none"

    def __post_init__(self) -> None:
        numbers.positive_integer(n=self.n)
        numbers.probability(confidence=self.confidence)
        check_missing(self.missing)
        make_neighbourhood(self.neighbours, self.max_rows_per_unit)
        _ = self.unknown
        if self.level is not None and not self.confidence <= self.level < 1:
            raise InvalidInput(f"level={shown(self.level)} must lie in [{self.confidence:g}, 1), the confidence and 1.")
        two_steps = (self.location is not None, self.second is not None, self.level is not None)
        if len({self.score is None, self.noise is None, *two_steps}) != 1:
            raise InvalidInput(
                "An estimate has a score and noise, or a first step that says where to look: one of them."
            )
        if (self.counts_present and self.score is not None) != (self.count_noise is not None):
            raise InvalidInput(
                "count_noise goes with neighbours='add-remove' or missing='count': the number of records that are "
                "summed is not public then."
            )
        check_costs(self._costs(), self.notion)
        if any(noise is not None and not noise.total_leaves for noise in (self.noise, self.count_noise)):
            raise InvalidInput(
                "The noise of an estimate must allow the noisy total to be released, not a decision alone."
            )
        if self.score is not None:
            self.score.check_total(self.n)

    def _costs(self) -> list[Notion | None]:
        """The notions that the draws of one run meet, one after the other; None for a draw that hides nothing."""
        if self.location is not None:
            return [*counts_guarantee(self.location.noise, self.around), self.second]
        score, noise = self._total
        counting = [] if self.count_noise is None else [self.count_noise.guarantee(self.max_rows_per_unit)]
        return [noise.guarantee(self.around.reach(score, *self._scale_and_shift)), *counting]

    @property
    def around(self) -> Neighbourhood:
        """Which data sets are neighbours."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit)

    @property
    def counts_present(self) -> bool:
        """Whether the number of records that are present is measured."""
        return self.neighbours == "add-remove" or self.missing == "count"

    @property
    def _total(self) -> tuple[Score, Noise]:
        """The score and the noise of an estimate without a first step."""
        assert self.score is not None and self.noise is not None  # noqa: PT018 - checked when the design was made
        return self.score, self.noise

    @property
    def _first(self) -> tuple[Location, Notion, float]:
        """The first of two steps, and the notion and the confidence of the second one."""
        assert self.location is not None and self.second is not None and self.level is not None  # noqa: PT018 - likewise
        return self.location, self.second, self.level

    @property
    def _scale_and_shift(self) -> tuple[int, int]:
        """Each record adds ``scale * s - shift`` to the total; if records come and go, that is about 0 on average."""
        if self.neighbours == "replace" or self.score is None:
            return 1, 0
        return 2, self.score.low + self.score.high

    @property
    def _presence(self) -> Presence:
        """How the present records are summed if the number of all records is public."""
        if self.neighbours != "replace" or self.missing == "none":
            return Presence()
        return Presence(self.count_noise, MISCOUNTED * (1 - self.confidence))

    @property
    def _inverted_confidence(self) -> float:
        """The confidence of the inverted total, which leaves room for a miscount of the present records."""
        return self.confidence + self._presence.miss

    @cached_property
    def unknown(self) -> OneParameter:
        """The family, its unknown parameter and the range of that."""
        return OneParameter.of(self.family, self.between)

    @property
    def record_cells(self) -> Cells:
        """The cells of the score; for two steps, those of the first one."""
        return self._total[0].cells if self.location is None else self.location.cells

    @property
    def parameter(self) -> str:
        """The name of the parameter."""
        return self.unknown.name

    @cached_property
    def inversion(self) -> Inversion:
        """The law of the noisy total as a function of the parameter, for an estimate without a first step.

        If the number of present records is measured, it is the law for the number that is summed if all are present.
        """
        return self._inversion(self._presence.summed(Fraction(self.n), self.n))

    def _inversion(self, n: int) -> Inversion:
        score, noise = self._total
        hidden = self.count_noise if self.neighbours == "add-remove" else None
        return Inversion(self.unknown, score, noise, n, *self._scale_and_shift, hidden)

    def second_step(self, start: int, place: int) -> EstimateDesign:
        """The second of two steps after a given outcome of the first one.

        Args:
            start: where the bins of the first step start.
            place: the number of the bin that was chosen.
        """
        location, notion, level = self._first
        low = float(location.begins(start, np.array([place]))[0])
        least, most = self.unknown.inner
        ends = min(max(low, least), most), min(max(low + location.length, least), most)
        return _one_step(self.unknown, notion, self.n, level, self.around, ends, self.missing)

    def _likely_second_steps(self, value: float) -> list[EstimateDesign]:
        """Second steps in the bin that holds the true value, for some of the places where bins may start."""
        location, at = self._first[0], np.array([value])
        starts = range(0, STARTS, STARTS // 2)
        return [self.second_step(start, int(location.place_of(start, at)[0])) for start in starts]

    def coverage(self, at: float) -> float:
        """The probability that the interval of a run holds the true value ``at``.

        It is exact; a lower bound for two steps, for other parameters with ranges, and if n is not public.
        """
        value = self.unknown.check_value(at, "at")
        if self.location is None:
            return self.inversion.coverage(value, self._inverted_confidence) - self._presence.miss
        location, _, level = self._first
        if self.missing == "none":
            return 1 - location.misses(self.unknown, value, self.n, 1 - level)
        missed = location.misses(self.unknown, value, _least_present(self.n), 1 - level)
        return 1 - missed - MISCOUNTED * (1 - self.confidence)

    def expected_width(self, at: float) -> float:
        """The mean length of the interval if the true value is ``at``; for two steps, if the first one is right."""
        value = self.unknown.check_value(at, "at")
        steps = [self] if self.location is None else self._likely_second_steps(value)
        widths = [one.inversion.expected_length(value, one._inverted_confidence) for one in steps]
        return math.fsum(widths) / len(widths)

    def width_bound(self, at: float) -> float:
        """A lower bound on the mean length of every private interval of this confidence if the true value is ``at``."""
        family, value = self.unknown, self.unknown.check_value(at, "at")
        # Replacing a record is removing one and adding one. If that meets no notion of the kind, nearly nothing is
        # hidden.
        notion = self.privacy if self.neighbours == "replace" else replaced(self.privacy) or Pure(50)
        # A share is a rate: the other labels do not say anything about it.
        member = OneParameter.of("bernoulli(?)", None).member if family.is_share else family.member
        located = _spread(family) is not None
        intervals = PrivateIntervals(lru_cache(maxsize=256)(member), notion, self.n, self.confidence, located)
        return float(intervals.lengths([value], [self._far_values(value)])[0])

    def _far_values(self, value: float) -> tuple[float, float]:
        """Two values of the parameter beyond which even our interval seldom reaches."""
        low, high = self.unknown.inner
        step = self if self.location is None else self._likely_second_steps(value)[0]
        away = 8 * float(ndtri((1 + self.confidence) / 2)) * step.inversion.spread(value)
        return max(value - away, low), min(value + away, high)

    def sample_size(self, *, width: float, at: float) -> int:
        """The smallest n whose intervals have a mean length of at most ``width`` if the true value is ``at``.

        Args:
            width: the largest mean length of the interval.
            at: the true value to plan for.
        """
        value = self.unknown.check_value(at, "at")
        wanted = float(numbers.positive(width=width))
        with searching("records of an interval", 10) as looked:

            @cache
            def mean_width(n: int) -> float:
                looked()
                return self.at_n(n).expected_width(value)

            n = max(self.n, 1)
            for _ in range(3):  # widths shrink about as 1/sqrt(n)
                n = min(max(round(n * (mean_width(n) / wanted) ** 2), 1), MOST_RECORDS)
            n = first_true_near(lambda n: mean_width(n) <= wanted, n, most=MOST_RECORDS)
        if n > MOST_RECORDS:
            raise InvalidInput(f"width={shown(width)} is shorter than 10^12 records allow. Use a larger width.")
        return n

    def at_n(self, n: int) -> EstimateDesign:
        """The design of the same question for another number of records.

        Args:
            n: number of records.
        """
        design: EstimateDesign = design_estimate(
            self.family,
            between=self.between,
            **self._budget_argument,
            n=n,
            confidence=self.confidence,
            near=None if self.tuned_for is None else self.tuned_for[0],
            neighbours=self.neighbours,
            max_rows_per_unit=self.max_rows_per_unit,
            missing=self.missing,
        )
        return design

    @property
    def outcome(self) -> type[EstimateRelease]:
        """The class of its releases."""
        return EstimateRelease

    def check(self, records: Records) -> None:
        """Refuse records of a wrong type, or of a wrong number if that is public."""
        from privatest.engines.records import Tallied, check_count, counting_score  # planning needs no engine

        if self.score is not None and self.counts_present:
            Tallied(records).check(self.score)
        else:
            records.check(counting_score(self.record_cells) if self.score is None else self.score)
        if self.neighbours == "replace":
            check_count(records.count(), self.n)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Draw the noisy total and, if it is measured, the noisy number of records.

        For two steps it is the draw of the first one: where the bins start, and which one was chosen.
        """
        if self.location is not None:
            counts = records.histogram(self.location.cells, partial(draw_rows, source))
            return list(self.location.chosen(counts, source))
        score, noise = self._total
        if self.neighbours == "replace":
            drawn = [str(one) for one in self._presence.draw(records, score, noise, self.n, source)]
            return drawn[0] if len(drawn) == 1 else list(drawn)
        from privatest.engines.records import Tallied  # planning needs no engine

        assert self.count_noise is not None
        total, count = Tallied(records).centred(score, *self._scale_and_shift)
        return [str(total + noise.draw(source)), str(count + self.count_noise.draw(source))]

    @property
    def steps(self) -> int:  # type: ignore[override]  # read-only here
        """2 if a first step says where to look, else 1."""
        return 1 if self.location is None else 2

    def further(self, draw: Any, records: Callable[[], Any], source: RandomSource) -> Draw:
        """The draws of both steps; without a first step the draw itself."""
        if self.location is None:
            return super().further(draw, records, source)
        return [*draw, self.second_step(*draw).draw(records(), source)]

    def release(self, draw: Any, *, simulated: bool = False) -> EstimateRelease:
        """Compute the estimate and its interval from a draw: post-processing, which costs no privacy.

        Args:
            draw: the noisy total, in the score's units, or a list of that and the noisy number of records; for two
                steps where the bins start, which one was chosen, and the draw of the second step.
            simulated: whether the caller's generator drew it.
        """
        if self.location is not None:
            return self._release_of_two(draw, simulated)
        inversion, noisy, count = self._parsed(draw)
        present = None
        if self.count_noise is not None:
            most = float(self.n) if self.neighbours == "replace" else math.inf
            present = PresentCount.of(self.count_noise, Fraction(draw[1]), self.confidence, most)
        value = inversion.counted(count).estimate(noisy)
        return EstimateRelease(
            estimate=value,
            interval=self.interval(draw, self.confidence),
            confidence=self.confidence,
            parameter=self.parameter,
            statistic=float(noisy * self._total[0].step / self._scale_and_shift[0]),
            n=self.n,
            beyond=inversion.beyond(noisy, EXTREME, count) if value in self.between else "",
            epsilon=self.epsilon,
            neighbours=self.neighbours,
            simulated=simulated,
            privacy=self._privacy_text,
            family=self.unknown.model,
            meaning=self.unknown.meaning,
            missing="count" if self.counts_present else "none",
            present=None if present is None else present.about,
            present_interval=None if present is None else present.interval,
            among=self.unknown.records,
        )

    def _parsed(self, draw: Any) -> tuple[Inversion, Fraction, Fraction | None]:
        """The law of the total that was drawn, the noisy total, and the noisy number of records if n is not public."""
        if self.count_noise is None:
            return self.inversion, Fraction(draw), None
        noisy, number = map(Fraction, draw)
        if self.neighbours != "replace":
            return self.inversion, noisy, number
        return self._inversion(self._presence.summed(number, self.n)), noisy, None

    def interval(self, draw: Any, confidence: float) -> tuple[float, float]:
        """The interval that follows from a draw: post-processing, which costs no privacy.

        Args:
            draw: as for :meth:`release`.
            confidence: the smallest probability with which the interval holds the true value.
        """
        covered = confidence + self._presence.miss
        if self.location is not None or not covered < 1:
            raise InvalidInput(
                f"confidence_level={confidence:g} cannot be reached by an estimate that was designed for confidence "
                f"{self.confidence:g}: design it for this one."
            )
        inversion, noisy, count = self._parsed(draw)
        return inversion.interval(noisy, covered, count)

    def _release_of_two(self, draw: Any, simulated: bool) -> EstimateRelease:
        start, place, second_draw = draw
        second = self.second_step(start, place)
        released = replace(
            second.release(second_draw, simulated=simulated),
            epsilon=self.epsilon,
            privacy=self._privacy_text,
            confidence=self.confidence,
        )
        # The first step may be wrong with fewer records than it was designed for. Then nothing is ruled out.
        if self.missing != "none" and second._may_have_less_than(_least_present(self.n), Fraction(second_draw[1])):
            return replace(released, interval=self.between)
        return released

    def _may_have_less_than(self, least: int, noisy: Fraction) -> bool:
        """Whether fewer than ``least`` records may be present, by the noisy number of them."""
        if self.neighbours == "replace":
            return self._presence.summed(noisy, self.n) < least
        return noisy - self.inversion.off_by(MISCOUNTED * (1 - self.confidence)) < least

    def plot(self, ax: Axes | None = None, *, release: EstimateRelease | None = None) -> Axes:
        """The expected width along the parameter, beside what no private interval can beat, and a release."""
        from privatest import pictures

        return pictures.estimate(self, ax, release=release)

    @property
    def title(self) -> str:
        """A heading."""
        return f"Estimate of {self.unknown.describe()}"

    def facts(self) -> list[Fact]:
        """The question, and what a run costs."""
        model = self.unknown.model
        covered = f"of the interval, for every value of the range, {condition(model)}"
        return [
            Fact("family", model, f"the records' distribution; ? is asked for: {self.unknown.meaning}"),
            Fact("between", self.between, f"the range of {self.parameter}"),
            Fact("confidence", self.confidence, covered),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public" if self.neighbours == "replace" else "records, as expected"),
            missing_fact(self.missing, measured=self.counts_present),
            *self._mechanism(),
            hidden_fact(self.neighbours, persons=self.max_rows_per_unit > 1),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "records that one person counts as, at most"),
        ]

    def _mechanism(self) -> list[Fact]:
        if self.location is None:
            score, noise = self._total
            return [
                Fact("clamp", score.bounds(), "least and most of one record, in nats"),
                Fact("noise", noise.kind, "added to the total"),
            ]
        bins = Fact("bins", self.location.bins, f"of length {self.location.length:g}, counted first, with noise")
        if self._privacy_text is not None:
            return [bins, Fact("second_privacy", str(self.second), "of what is met, for the step after these")]
        costs = [cost for cost in counts_guarantee(self.location.noise, self.around) if cost is not None]
        return [bins, Fact("first_epsilon", float(sum(cost.exact[0] for cost in costs)), "of epsilon, for these")]

    def __hash__(self) -> int:
        return hash((self.family, self.between, self.notion, self.n))

    def __repr__(self) -> str:
        return f"EstimateDesign({self.family!r}, between={self.between}, {notion_words(self.notion)}, n={self.n})"


def _family_of_label(family: Any, success: Any) -> Any:
    """The family; if ``success`` names a label, the family of that label's share."""
    if success is None:
        return family
    if str(family).replace(" ", "") not in ("bernoulli(?)", "bernoulli(p=?)"):
        raise InvalidInput(
            f"success={shown(success)} goes with family='bernoulli(?)', and family={shown(family)}. Leave it out."
        )
    return share_of(success)


def _parameter_ranges(ranges: Mapping[str, Any]) -> dict[str, Any]:
    """The ranges of parameters by the parameters' names, from arguments such as ``sd_between``."""
    return {name.removesuffix("_between"): range_ends(ends, name) for name, ends in ranges.items() if ends is not None}


def _check_stepped(question: str, success: Any, near: Any) -> None:
    """Refuse arguments that say nothing to a question for a table."""
    for name, value in (("success", success), ("near", near)):
        if value is not None:
            raise InvalidInput(f"{name}={shown(value)} goes with one unknown parameter, not with {question!r}.")


def _check_one_parameter(family: Any, ranges: Mapping[str, Any], guarantee: str) -> None:
    """Refuse arguments that say nothing to an estimate of one parameter."""
    if ranges:
        name = next(iter(ranges))
        raise InvalidInput(
            f"{name} goes with a second question mark, and family={shown(family)} has one. Use between=, or write the "
            f"range into the family: '{name.removesuffix('_between')} in [1, 5]'."
        )
    if guarantee != "certified":
        raise InvalidInput(f"guarantee={shown(guarantee)} goes with 'mean': intervals of a parameter are exact.")


@known_arguments
def design_estimate(
    family: str,
    *,
    between: tuple[float, float] | None = None,
    epsilon: Number | None = None,
    n: int,
    confidence: float = 0.95,
    near: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    privacy: Notion | str | None = None,
    success: Any = None,
    missing: str = "none",
    guarantee: str = "certified",
    **ranges: Any,
) -> Any:
    """Design an estimate with an interval: of one parameter of a family, or what is answered by a table in two steps.

    Returns a :class:`privatest.results.EstimateDesign` for one parameter, else a ``SteppedDesign``.

    Args:
        family: text with a question mark for the parameter: "normal(mean=?, sd=1)", "poisson(?)",
            "normal(mean=?, sd in [0.8, 1.2])", "categorical(yes=?)"; with two, "normal(mean=?, sd=?)"; or "mean",
            "median" or "quantile(0.9)", for every law of the records.
        between: the range of the parameter, of the first one, or of the records; may be left out for a rate or a share.
        epsilon: privacy loss of one run.
        n: number of records.
        confidence: the smallest probability with which the interval holds the true value.
        near: a value that you expect. The interval is the shortest there; it holds the true value as often everywhere.
        neighbours, max_rows_per_unit, privacy: as for :func:`privatest.design`.
        success: the label that counts, such as "Yes", if records are labels and the family is "bernoulli(?)".
        missing: "count": the answer is about the records that are present (readable, and in the family's support), and
            how many are is measured, within the budget. "none": you declare that all are; one that is not counts by a
            fixed score, which pulls the answer.
        guarantee: for a mean "certified" (the interval holds for every law) or "approximate" (by a normal law).
        **ranges: the range of another unknown parameter by its name, such as ``sd_between=(0.5, 8)``.

    >>> plan = design_estimate("bernoulli(?)", epsilon=1, n=200)
    >>> round(plan.coverage(0.3), 3)
    0.95
    """
    if is_stepped(family):
        _check_stepped(family, success, near)
        return design_steps(
            family,
            between=between,
            ranges=_parameter_ranges(ranges),
            epsilon=epsilon,
            privacy=privacy,
            n=n,
            confidence=confidence,
            guarantee=guarantee,
            neighbours=neighbours,
            max_rows_per_unit=max_rows_per_unit,
        )
    _check_one_parameter(family, ranges, guarantee)
    unknown = OneParameter.of(_family_of_label(family, success), between)
    notion = make_notion(epsilon, privacy)
    n = numbers.positive_integer(n=n)
    level = float(numbers.probability(confidence=confidence))
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    value = None if near is None else unknown.check_value(near, "near")
    check_missing(missing)
    design = _one_step(unknown, notion, n, level, around, None if value is None else (value, value), missing)
    two_steps = _two_steps(unknown, notion, n, level, around, missing) if value is None else None
    if two_steps is not None:
        return two_steps
    design.inversion.check_monotone(WORKING)
    return design


def _one_step(
    unknown: OneParameter,
    notion: Notion,
    n: int,
    level: float,
    around: Neighbourhood,
    tuned_for: tuple[float, float] | None,
    missing: str,
) -> EstimateDesign:
    """A design with one step: a score for the whole range or a part of it, and noise that hides one person."""
    counting = _part_for_counting(notion, n, level, around, missing)
    summing = notion.split(1 - counting) if counting else notion
    score = tuned_score(unknown, summing, n, around, tuned_for)
    scale, shift = (2, score.low + score.high) if around.kind == "add-remove" else (1, 0)
    return EstimateDesign(
        family=unknown.text,
        between=(unknown.low, unknown.high),
        confidence=level,
        notion=notion,
        n=n,
        score=score,
        noise=canonical_noise(summing, around.reach(score, scale, shift)),
        neighbours=around.kind,
        max_rows_per_unit=around.rows,
        tuned_for=tuned_for,
        count_noise=canonical_noise(notion.split(counting), around.rows) if counting else None,
        missing=missing,
    )


def _part_for_counting(notion: Notion, n: int, level: float, around: Neighbourhood, missing: str) -> Fraction:
    """The part of a budget that the number of summed records costs; 0 if it is public."""
    if around.kind == "add-remove":
        return COUNTING
    return part_for_counting(notion, n, around, MISCOUNTED * (1 - level)) if missing == "count" else Fraction(0)


def _least_present(n: int) -> int:
    """The number of present records from which on the first of two steps keeps its promise."""
    return max(n // LEAST_PRESENT, 1)


def _two_steps(
    unknown: OneParameter, notion: Notion, n: int, level: float, around: Neighbourhood, missing: str
) -> EstimateDesign | None:
    """The best design with two steps, if the parameter is a location and two steps make shorter intervals than one."""
    spread = _spread(unknown)
    if spread is None or unknown.high - unknown.low < FEW_SPREADS * spread:
        return None
    best = tuned_ratio(unknown, notion, n, around, None).length * float(ndtri((1 + level) / 2))
    # If records may be missing, either enough are present or the interval is the whole range. That is wrong as seldom.
    sure, least = level, n
    if missing == "count":
        sure, least = 1 - (1 - level) * (1 - MISCOUNTED), _least_present(n)
    chosen = None
    low, high = unknown.inner
    for length in _bin_lengths(unknown.high - unknown.low, spread):
        for share in SHARES:
            location = Location.over(low, high, length, notion.split(share), around)
            second = location.second_level(unknown, least, sure)
            if second is None:
                continue
            middle = (low + high) / 2
            bin_ends = middle - location.length / 2, middle + location.length / 2
            rest = notion.split(1 - share)
            counting = _part_for_counting(rest, n, level, around, missing)
            summing = rest.split(1 - counting) if counting else rest
            width = tuned_ratio(unknown, summing, n, around, bin_ends).length * float(ndtri((1 + second) / 2))
            # Values whose scores are a quarter of the way apart must be told from each other, beyond all noise.
            noise = canonical_noise(summing, around.rows * UNITS)
            if width < best and float(noise.sf(n * UNITS / 4)) <= (1 - second) / 2:
                best, chosen = width, (location, rest, second)
    if chosen is None:
        return None
    location, rest, second = chosen
    return EstimateDesign(
        family=unknown.text,
        between=(unknown.low, unknown.high),
        confidence=level,
        notion=notion,
        n=n,
        neighbours=around.kind,
        max_rows_per_unit=around.rows,
        location=location,
        second=rest,
        level=second,
        missing=missing,
    )


def _bin_lengths(reach: float, spread: float) -> list[float]:
    """Lengths of bins to choose from: those of ``LENGTHS`` that do not make too many bins, or the shortest possible."""
    wanted = [2.0 ** round(math.log2(each * spread)) for each in LENGTHS]
    shortest = 2.0 ** math.ceil(math.log2(reach / (MOST_BINS - 8)))
    return [each for each in wanted if reach / each < MOST_BINS - 4] or [shortest]


def _spread(unknown: OneParameter) -> float | None:
    """Half the distance between the deciles if the parameter only shifts the distribution; else None."""
    if unknown.is_share or unknown.box(*unknown.inner).family.discrete:
        return None
    low, high = unknown.inner
    half = (high - low) / 2
    deciles = [
        np.asarray(unknown.member(value).ppf(np.array([0.1, 0.5, 0.9])))  # type: ignore[attr-defined]
        for value in (low, low + half, high)
    ]
    tolerance = 1e-9 * (half + float(np.max(np.abs(deciles[2]))))
    if not max(float(np.max(np.abs(step - half))) for step in np.diff(deciles, axis=0)) < tolerance:
        return None
    return float(deciles[1][2] - deciles[1][0]) / 2


@known_arguments
def estimate(
    data: Any,
    family: str,
    *,
    between: tuple[float, float] | None = None,
    epsilon: Number | None = None,
    confidence: float = 0.95,
    near: float | None = None,
    n: int | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
    privacy: Notion | str | None = None,
    success: Any = None,
    missing: str | None = None,
    guarantee: str = "certified",
    **ranges: Any,
) -> Any:
    """Estimate with privacy: a parameter of a family or two, a mean, a median or a quantile, each with its interval.

    A mean, a quantile and a family with two unknown parameters are answered by a noisy table, in two steps from
    disjoint parts of the records. What is returned is then a :class:`privatest.results.TableAnswer` or
    ``TableEstimate``.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        family, between, epsilon, confidence, near, neighbours, max_rows_per_unit, privacy, success, guarantee: as for
            :func:`privatest.design_estimate`.
        **ranges: likewise.
        n: number of records; by default that of the data, which is public.
        missing: as for :func:`privatest.design_estimate`. By default it is "none" if the declared type of the column
            admits no missing value (whole numbers and truth values of NumPy, columns declared without nulls) and no
            number outside the family's support, else "count".
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> release = estimate([0, 1, 0, 0, 1] * 200, "bernoulli(?)", epsilon=1)
    >>> release.interval[0] < 0.4 < release.interval[1]
    True
    """
    from privatest import engines  # planning needs none of them

    make_neighbourhood(neighbours, max_rows_per_unit)
    # A question that cannot be answered is refused before the data are opened.
    public, stepped = neighbours == "replace", is_stepped(family)
    if stepped:
        missing = "count" if missing is None else missing  # a table has a cell for them
        design_estimate(
            family,
            between=between,
            epsilon=epsilon,
            n=100 if n is None else n,
            confidence=confidence,
            near=near,
            neighbours=neighbours,
            max_rows_per_unit=max_rows_per_unit,
            privacy=privacy,
            success=success,
            guarantee=guarantee,
            **ranges,
        )
    else:
        _check_one_parameter(family, ranges, guarantee)
        unknown = OneParameter.of(_family_of_label(family, success), between)
    records = None
    if (missing is None and public) or (n is None and public):
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
    if missing is None and records is not None:
        missing = "count" if records.declared.may_leave(unknown.support) else "none"
    if n is None:
        if records is None:
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and an estimate "
                "made for it would tell it. Say how many you expect: n=..."
            )
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    design = design_estimate(
        family,
        between=between,
        epsilon=epsilon,
        n=n,
        confidence=confidence,
        near=near,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
        privacy=privacy,
        success=success,
        missing=missing or "none",
        guarantee=guarantee,
        **ranges,
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return design.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)
