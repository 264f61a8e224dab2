"""A designed estimate: score and noise, frozen, printable, serialisable, ready to run; and what a run gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from privatest import numbers
from privatest.bounds.interval_bound import Rivals
from privatest.charge import Draw
from privatest.decision.inversion import MISCOUNTED, Inversion
from privatest.decision.run import Budgeted, Outcome, cost_fact, hidden_fact
from privatest.documents import number_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidInput, shown
from privatest.estimates.location import MOST_BINS, STARTS, Location
from privatest.estimates.present import (
    COUNTED,
    SPELLED,
    UNMEASURED,
    Among,
    PresentCount,
    check_missing,
    part_for_counting,
    public_number,
)
from privatest.estimates.tuned_score import UNITS, WORKING, tuned_ratio, tuned_score
from privatest.facts import Fact
from privatest.hypotheses.one_parameter import OneParameter, condition, has_shape, share_of, with_value
from privatest.numbers import Floats, Number
from privatest.privacy import Noise, Notion, Pure, RandomSource, canonical_noise, make_notion, noise_from_dict
from privatest.privacy.bulk_draws import draw_rows, draw_some
from privatest.privacy.canonical import counts_guarantee
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notions import (
    Neighbourhood,
    make_neighbourhood,
    notion_from_json,
    notion_to_json,
    notion_words,
    replaced,
)
from privatest.progress_events import searching
from privatest.questions import known_arguments
from privatest.scores import Cells, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records


COUNTING = Fraction(1, 10)
"""Which part of the budget the number of records costs, where it is not public."""
SHARES = tuple(Fraction(part, 100) for part in (2, 5, 10, 20, 40, 60, 80))
"""Which part of the budget a first step may cost."""
LENGTHS = (2.0, 4.0)
"""How long its bins are, in spreads of the records; longer ones where there would be too many of them."""
FEW_SPREADS = 6.0
"""A range of fewer spreads needs no first step."""
EXTREME = 0.001
"""A noisy total that is as unlikely as this at an end of the range, to two sides, lies beyond it."""
LEAST_PRESENT = 8
"""The first of two steps is made for one record present in so many."""
BEYOND = {
    "": "",
    "below": "the data lie BELOW the whole range: no value in it fits them",
    "above": "the data lie ABOVE the whole range: no value in it fits them",
}


@dataclass(frozen=True)
class EstimateRelease(Outcome):
    """The outcome of an estimate.

    Guarantees: all of it is computed from the noisy total alone, so it is as private as that: epsilon-differentially,
    or what ``privacy`` says.

    Attributes:
        estimate: the value under which the noisy total is as often exceeded as not: right in the median.
        interval: holds the true value with a probability of ``confidence`` at least, whatever it is, if the records
            come from a member of ``family``.
        confidence: of the interval.
        parameter: what is estimated.
        statistic: the noisy total, in the score's units; other confidences can be had from it.
        beyond: "below" or "above" where the data fit no value of the range given; else "".
        epsilon: privacy loss of this release.
        n: number of records, which is public; with neighbours "add-remove", the number expected.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        privacy: the notion that it meets, where that is not epsilon alone.
        persons: whether all rows of one person are hidden together, because a unit was named.
        family: the whole family, all parameters by name, such as "normal(mean=?, sd=1)"; empty in an older document.
        meaning: what the parameter is, in words.
        missing: "count" where the answer is about the records that are present, whose number was measured; "none" where
            it was declared that no record is missing, or their type says so.
        present: about how many records the answer is about, with noise; None where that was not measured.
        present_interval: holds that number with a probability of ``confidence`` at least.
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
        """False where no value of the range makes so extreme a noisy total plausible (probability 0.001, both sides).

        One noisy total says nothing of the family's shape: True does not mean that the records come from it.
        """
        return not self.beyond

    @property
    def _of(self) -> str:
        """The parameter, of which family, and what it is where its name does not say so."""
        plain = self.meaning in ("", self.parameter, f"the {self.parameter}")
        notion_words = self.parameter if plain else f"{self.parameter} ({self.meaning})"
        return (
            f"{notion_words} of {self.family}"
            if self.family and self.family.split("(")[0] != "categorical"
            else notion_words
        )

    @property
    def _check(self) -> str:
        """Which question tells whether the family fits, where its other parameters are numbers and it has a shape."""
        if not has_shape(self.family) or " in [" in self.family:
            return ""
        fitted = with_value(self.family, float(f"{self.estimate:.4g}"))
        return f" Whether they do is not checked here: goodness_of_fit of {fitted!r} tells."

    @property
    def _spelled(self) -> str:
        """How a label is looked for, where its share may be 0 because it is written in another way."""
        return SPELLED if self.interval[0] <= 0 and self.family.startswith("categorical(") else ""

    @property
    def _among(self) -> Among:
        if self.present is None or self.present_interval is None:
            return Among()
        hidden = self.neighbours != "replace"
        return Among(self.among, (self.present,), (self.present_interval,), (self.n,), hidden)

    @property
    def few_present(self) -> bool:
        """Whether less than half of the records may be present."""
        return self._among.few

    @property
    def width(self) -> float:
        """The interval's length."""
        return self.interval[1] - self.interval[0]

    @property
    def sentence(self) -> str:
        low, high = self.interval
        ends = f"{self.confidence:.4g} interval {low:.6g} to {high:.6g}"
        among = self._among
        if self.beyond:
            return among.told(
                f"No value of {self._of} in the range fits: the data lie {self.beyond} all of it, whose nearest end is "
                f"{self.estimate:.6g}. Do not report this as an estimate: widen the range, or doubt the family."
            )
        return among.told(
            f"The {self._of}{among.words} is about {self.estimate:.6g}, {ends}, {condition(self.family)}."
            f"{self._check}{self._spelled}"
        )

    def facts(self) -> list[Fact]:
        """The answer, and what every outcome ends with."""
        doubts = [Fact("beyond", self.beyond, BEYOND[self.beyond])] if self.beyond else []
        present, few = self._among.facts(self.missing, self.present, self.present_interval, self.confidence)
        return [
            *few,
            *doubts,
            Fact(
                "estimate",
                self.estimate,
                "no estimate: there may be no record to tell it of"
                if self._among.none
                else f"of {self._of}, median-unbiased",
            ),
            Fact(
                "interval",
                self.interval,
                "no interval: the nearest end of the range"
                if self.beyond
                else f"holds the true value with probability {self.confidence:g} at least, {condition(self.family)}",
            ),
            Fact("fits", self.fits, "whether any value of the range fits the noisy total; the shape is not checked"),
            Fact("statistic", self.statistic, "the noisy total this was computed from"),
            Fact("n", self.n, "records"),
            *present,
            *self._ending(),
        ]


@dataclass(frozen=True, eq=False)
class EstimateDesign(Budgeted[EstimateRelease]):
    """Estimate one parameter from a noisy total of scores, with an interval that inverts the total's exact law.

    Over a wide range there are two steps: noisy counts of bins say about where the records lie (``location``), and the
    score is made for that place.

    Guarantees: running it meets the notion, all steps together, which is checked when the object is made; the interval
    of a run holds the true value with a probability of at least ``confidence``, for every value between the ends.

    Attributes:
        family: such as "normal(mean=?, sd=1)".
        between: the range of the parameter.
        confidence: of the interval.
        notion: what one run meets.
        n: number of records; with neighbours "add-remove", the number expected.
        score, noise: what is summed, and what is added to the sum; None where a first step comes before.
        neighbours: "replace" or "add-remove".
        max_rows_per_unit: the most records that one person counts as, however many rows there are.
        tuned_for: the values that the score was tuned for; None: for the whole range.
        count_noise: what is added to the number of present records, where that is measured.
        location: the first of two steps.
        second: of two steps, what the second one costs.
        level: the confidence of the second of two steps.
        missing: "count": the answer is about the records that are present, and how many are is measured, within the
            budget. "none": declared, no record is missing; one that is counts by the score's fixed value. With
            neighbours "add-remove" the number of present records is measured anyway.
    """

    FORMAT: ClassVar[str] = "privatest/estimate/1"
    KIND: ClassVar[str] = "estimate"
    ASKED: ClassVar[str] = "estimate"

    family: str
    between: tuple[float, float]
    confidence: float
    notion: Notion
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
        check_missing(self.missing)
        make_neighbourhood(self.neighbours, self.max_rows_per_unit)
        _ = self.asked
        if self.level is not None and not self.confidence <= self.level < 1:
            raise InvalidInput(f"level={shown(self.level)} must lie in [{self.confidence:g}, 1), the confidence and 1.")
        steps = (self.noise is None, *(one is not None for one in (self.location, self.second, self.level)))
        if any((self.score is None) != each for each in steps):
            raise InvalidInput(
                "An estimate has a score and noise, or a first step that says where to look: one of them."
            )
        if (self.counts_present and self.score is not None) != (self.count_noise is not None):
            raise InvalidInput(
                "count_noise goes with neighbours='add-remove' or missing='count': the number of records that are "
                "summed is not public then."
            )
        costs = self._costs()
        if not adds_up_within(costs, self.notion):
            listed = " and ".join("nothing" if cost is None else str(cost) for cost in costs)
            raise InvalidInput(
                f"The noise meets {listed}, which together is not {notion_words(self.notion)}. Use more noise."
            )
        if any(noise is not None and not noise.total_leaves for noise in (self.noise, self.count_noise)):
            raise InvalidInput(
                "The noise of an estimate must allow the noisy total to be released, not a decision alone."
            )
        if self.score is not None:
            self.score.check_total(self.n)

    def _costs(self) -> list[Notion | None]:
        """What one run costs by the noise it draws, one after the other; None where nothing is hidden."""
        if self.location is not None:
            return [*counts_guarantee(self.location.noise, self.around), self.second]
        assert self.score is not None
        assert self.noise is not None
        counting = [] if self.count_noise is None else [self.count_noise.guarantee(self.max_rows_per_unit)]
        return [self.noise.guarantee(self.around.reach(self.score, *self._shifted)), *counting]

    @property
    def around(self) -> Neighbourhood:
        """Which data sets must not be told apart."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit)

    @property
    def counts_present(self) -> bool:
        """Whether the number of records that are present is measured."""
        return self.neighbours == "add-remove" or self.missing == "count"

    @property
    def _chooses(self) -> bool:
        """Whether as many of the records that are present are chosen as the noisy number of them leaves."""
        return self.neighbours == "replace" and self.missing == "count"

    @property
    def _shifted(self) -> tuple[int, int]:
        """Scale and shift of the scores: about 0 where records come and go."""
        if self.neighbours == "replace" or self.score is None:
            return 1, 0
        return 2, self.score.low + self.score.high

    @property
    def _miss(self) -> float:
        """How likely more records are summed than are present; the interval's rest is of ``_sure``."""
        return MISCOUNTED * (1 - self.confidence) if self._chooses else 0.0

    @property
    def _sure(self) -> float:
        return self.confidence + self._miss

    @cached_property
    def asked(self) -> OneParameter:
        """The family, its parameter and the range."""
        return OneParameter.of(self.family, self.between)

    @property
    def record_cells(self) -> Cells:
        """Those of the score; of two steps the bins of the first."""
        if self.location is not None:
            return self.location.cells
        assert self.score is not None
        return self.score.cells

    @property
    def parameter(self) -> str:
        """What is estimated."""
        return self.asked.name

    @cached_property
    def inversion(self) -> Inversion:
        """From a noisy total to the parameter; of an estimate without a first step.

        Where the number of present records is measured: for as many as are likely to be summed if all are present.
        """
        return self._inversion(self._summed(Fraction(self.n)))

    def _inversion(self, n: int) -> Inversion:
        assert self.score is not None
        assert self.noise is not None
        hidden = self.count_noise if self.neighbours == "add-remove" else None
        return Inversion(self.asked, self.score, self.noise, n, *self._shifted, hidden)

    def _summed(self, noisy: Fraction) -> int:
        """How many records are summed where so many are present, with noise; all of them where none can be missing."""
        if not self._chooses:
            return self.n
        assert self.count_noise is not None
        return public_number(self.count_noise, noisy, self._miss, self.n)

    def there(self, start: int, place: int) -> EstimateDesign:
        """The second of two steps, where the bins start at ``start`` and the bin ``place`` was chosen.

        Args:
            start: where the bins of the first step start.
            place: the number of the bin that was chosen.
        """
        assert self.location is not None
        assert self.second is not None
        assert self.level is not None
        low = float(self.location.begins(start, np.array([place]))[0])
        least, most = self.asked.inner
        ends = min(max(low, least), most), min(max(low + self.location.length, least), most)
        return _one_step(self.asked, self.second, self.n, self.level, self.around, ends, self.missing)

    def _about(self, value: float) -> list[EstimateDesign]:
        """Second steps where the true value is this, for some of the places where bins may start."""
        assert self.location is not None
        at = np.array([value])
        return [self.there(s, int(self.location.place_of(s, at)[0])) for s in range(0, STARTS, STARTS // 2)]

    def coverage(self, at: float) -> float:
        """How likely the interval of a run holds the true value, where that is ``at``: exact.

        Where other parameters or the number of records are known roughly, and of two steps: at least so likely.
        """
        value = self.asked.check_value(at, "at")
        if self.location is not None:
            assert self.level is not None
            if self.missing == "none":
                return 1 - self.location.misses(self.asked, value, self.n, 1 - self.level)
            missed = self.location.misses(self.asked, value, _least_present(self.n), 1 - self.level)
            return 1 - missed - MISCOUNTED * (1 - self.confidence)
        return self.inversion.coverage(value, self._sure) - self._miss

    def expected_width(self, at: float) -> float:
        """The mean length of a run's interval where the true value is ``at``; of two steps, if the first is right."""
        value = self.asked.check_value(at, "at")
        if self.location is not None:
            found = [one.inversion.expected_length(value, one._sure) for one in self._about(value)]
            return math.fsum(found) / len(found)
        return self.inversion.expected_length(value, self._sure)

    def expected_widths(self, at: Sequence[float]) -> Floats:
        """:meth:`expected_width` for many true values, at the price of a few."""
        values = [self.asked.check_value(one, "at") for one in at]
        if self.location is None:
            return self.inversion.expected_lengths(values, self._sure)
        found, starts = np.zeros(len(values)), range(0, STARTS, STARTS // 2)
        shared: dict[tuple[int, int], list[int]] = {}
        for start in starts:
            for i, place in enumerate(self.location.place_of(start, np.array(values)).tolist()):
                shared.setdefault((start, place), []).append(i)
        for (start, place), which in shared.items():
            one = self.there(start, place)
            found[which] += one.inversion.expected_lengths([values[i] for i in which], one._sure) / len(starts)
        return found

    def width_bound(self, at: float) -> float:
        """No private interval of this confidence is shorter in the mean where the true value is ``at``."""
        return float(self.width_bounds([at])[0])

    def width_bounds(self, at: Sequence[float]) -> Floats:
        """:meth:`width_bound` for many true values; best in order, since what is found for one helps with the next."""
        family, values = self.asked, [self.asked.check_value(one, "at") for one in at]
        # Replacing a record is removing one and adding one; where that is no notion of the kind, so much as nothing.
        notion = self.privacy if self.neighbours == "replace" else replaced(self.privacy) or Pure(50)
        # A share is a rate: what the other labels are tells nothing of it.
        member = OneParameter.of("bernoulli(?)", None).member if family.is_share else family.member
        rivals = Rivals(lru_cache(maxsize=256)(member), notion, self.n, self.confidence, _spread(family) is not None)
        return rivals.lengths(values, [self._rivals_ends(value) for value in values])

    def _rivals_ends(self, value: float) -> tuple[float, float]:
        """Values that even our interval seldom holds lie beyond these, and add next to nothing."""
        low, high = self.asked.inner
        one = self._about(value)[0] if self.location is not None else self
        away = 8 * float(ndtri((1 + self.confidence) / 2)) * one.inversion.spread(value)
        return max(value - away, low), min(value + away, high)

    def sample_size(self, *, width: float, at: float) -> int:
        """The smallest n whose intervals are at most ``width`` long in the mean, where the true value is ``at``.

        Args:
            width: how long an interval may be, in the mean.
            at: the true value to plan for.
        """
        value = self.asked.check_value(at, "at")
        wanted = float(numbers.positive(width=width))

        least, most = 0, 0  # too few, and enough records; 0: not found yet
        widths: dict[int, float] = {}
        n = max(self.n or 1, 1)
        with searching("records of an interval", 10) as looked:
            while True:
                if n > 10**12:
                    raise InvalidInput(f"width={shown(width)} is shorter than 10^12 records allow. Use a larger width.")
                widths[n] = self.at_n(n).expected_width(value)
                looked()
                least, most = (least, n) if widths[n] <= wanted else (n, most)
                if most and most - least <= 1:
                    return most
                if least and most:  # the logarithm of the width is nearly a line in that of n
                    short, enough = (math.log(widths[one] / wanted) for one in (least, most))
                    part = min(max(short / (short - enough), 0.05), 0.95)
                    n = round(least * (most / least) ** part)
                else:  # widths shrink as 1/sqrt(n)
                    n = math.ceil(n * min(max((widths[n] / wanted) ** 2, 1 / 64), 64.0))
                n = min(max(n, least + 1), most - 1) if most else max(n, 2 * least)

    def at_n(self, n: int) -> EstimateDesign:
        """The same question for another number of records.

        Args:
            n: number of records.
        """
        return design_estimate(
            self.family,
            between=self.between,
            **self._asked_for,
            n=n,
            confidence=self.confidence,
            near=None if self.tuned_for is None else self.tuned_for[0],
            neighbours=self.neighbours,
            max_rows_per_unit=self.max_rows_per_unit,
            missing=self.missing,
        )

    @property
    def outcome(self) -> type[EstimateRelease]:
        """A release of an estimate."""
        return EstimateRelease

    def check(self, records: Records) -> None:
        """Type, and number where it is public."""
        from privatest.engines.records import Tallied, check_count, counting_score  # planning needs no engine

        if self.score is not None and self.counts_present:
            Tallied(records).check(self.score)
        else:
            records.check(counting_score(self.location.cells) if self.score is None else self.score)  # type: ignore[union-attr]
        if self.neighbours == "replace":
            check_count(records.count(), self.n)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """The noisy total, with the noisy number of records where n is not public; of two steps the first one's draw.

        That is where the bins start, and which one was chosen.
        """
        if self.location is not None:
            counts = records.histogram(self.location.cells, partial(draw_rows, source))
            return list(self.location.chosen(counts, source))
        assert self.score is not None
        assert self.noise is not None
        if self.count_noise is None:
            return str(records.total(self.score) + self.noise.draw(source))
        from privatest.engines.records import Tallied  # planning needs no engine

        counted = Tallied(records)
        if not self._chooses:
            total, count = counted.centred(self.score, *self._shifted)
            return [str(total + self.noise.draw(source)), str(count + self.count_noise.draw(source))]
        present = counted.present(self.score)
        noisy = present.count + self.count_noise.draw(source)
        total = present.sum_of(self._summed(noisy), partial(draw_some, source))
        return [str(total + self.noise.draw(source)), str(noisy)]

    @property
    def steps(self) -> int:  # type: ignore[override]  # read-only here
        """Two where the first one finds out about where to look."""
        return 1 if self.location is None else 2

    def further(self, draw: Any, records: Callable[[], Any], source: RandomSource) -> Draw:
        """Of two steps, the first one's draw and the second one's; else the draw itself."""
        if self.location is None:
            return super().further(draw, records, source)
        return [*draw, self.there(*draw).draw(records(), source)]

    def release(self, draw: Any, *, simulated: bool = False) -> EstimateRelease:
        """Estimate and interval from a noisy total (and number): post-processing, which costs no privacy.

        Args:
            draw: the noisy total, in the score's units; where n is not public, that and the noisy number of records; of
                two steps where the bins start, which was chosen, and the draw of the second step.
            simulated: whether a generator of the caller's drew it.
        """
        if self.location is not None:
            start, place, second = draw
            there = self.there(start, place)
            found = replace(
                there.release(second, simulated=simulated),
                epsilon=self.epsilon,
                privacy=self._met,
                confidence=self.confidence,
            )
            if self.missing == "none":
                return found
            # With fewer records than it was made for the first step may be wrong: nothing is left out then.
            few = there._few(Fraction(second[1]), _least_present(self.n))
            return replace(found, interval=self.between) if few else found
        assert self.score is not None
        noisy, count = (Fraction(draw), None) if self.count_noise is None else map(Fraction, draw)
        present, inverted = None, self.inversion
        if count is not None:
            assert self.count_noise is not None
            most = float(self.n) if self.neighbours == "replace" else math.inf
            present = PresentCount.of(self.count_noise, count, self.confidence, most)
            if self._chooses:
                inverted, count = self._inversion(self._summed(count)), None
        value = inverted.counted(count).estimate(noisy)
        return EstimateRelease(
            value,
            inverted.interval(noisy, self._sure, count),
            self.confidence,
            self.parameter,
            float(noisy * self.score.step / self._shifted[0]),
            self.n,
            inverted.beyond(noisy, EXTREME, count) if value in self.between else "",
            epsilon=self.epsilon,
            neighbours=self.neighbours,
            simulated=simulated,
            privacy=self._met,
            family=self.asked.model,
            meaning=self.asked.meaning,
            missing="count" if self.counts_present else "none",
            present=None if present is None else present.about,
            present_interval=None if present is None else present.interval,
            among=self.asked.records,
        )

    def _few(self, noisy: Fraction, least: int) -> bool:
        """Whether fewer records than these may be present, by the noisy number of them."""
        if self._chooses:
            return self._summed(noisy) < least
        return noisy - self.inversion.off_by(MISCOUNTED * (1 - self.confidence)) < least

    def plot(self, ax: Axes | None = None, *, release: EstimateRelease | None = None) -> Axes:
        """The expected width along the parameter, beside what no private interval can beat, and a release."""
        from privatest import pictures

        return pictures.estimate(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the estimate."""
        return f"Estimate of {self.asked.describe()}"

    def facts(self) -> list[Fact]:
        """The question, and what a run costs."""
        return [
            Fact("family", self.asked.model, f"the records' distribution; ? is asked for: {self.asked.meaning}"),
            Fact("between", self.between, f"the range of {self.parameter}"),
            Fact(
                "confidence",
                self.confidence,
                f"of the interval, for every value of the range, {condition(self.asked.model)}",
            ),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public" if self.neighbours == "replace" else "records, as expected"),
            Fact("missing", self.missing, COUNTED if self.counts_present else UNMEASURED),
            *self._mechanism(),
            hidden_fact(self.neighbours, persons=self.max_rows_per_unit > 1),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "records that one person counts as, at most"),
        ]

    def _mechanism(self) -> list[Fact]:
        if self.location is not None:
            bins = Fact("bins", self.location.bins, f"of length {self.location.length:g}, counted first, with noise")
            costs = [cost for cost in counts_guarantee(self.location.noise, self.around) if cost is not None]
            if self._met is not None:
                return [bins, Fact("second_privacy", str(self.second), "of what is met, for the step after these")]
            return [bins, Fact("first_epsilon", float(sum(cost.loss for cost in costs)), "of epsilon, for these")]  # type: ignore[attr-defined]
        assert self.score is not None
        assert self.noise is not None
        return [
            Fact("clamp", self.score.bounds(), "least and most of one record, in nats"),
            Fact("noise", self.noise.kind, "added to the total"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the design exactly."""
        return {
            "format": self.FORMAT,
            "family": self.family,
            "between": list(self.between),
            "confidence": self.confidence,
            "budget": notion_to_json(self.notion),
            "n": self.n,
            "neighbours": self.neighbours,
            "max_rows_per_unit": self.max_rows_per_unit,
            "tuned_for": None if self.tuned_for is None else list(self.tuned_for),
            "noise": None if self.noise is None else self.noise.to_dict(),
            "count_noise": None if self.count_noise is None else self.count_noise.to_dict(),
            "score": None if self.score is None else self.score.to_dict(),
            "location": None if self.location is None else self.location.to_dict(),
            "second": None if self.second is None else notion_to_json(self.second),
            "level": self.level,
            "missing": self.missing,
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> EstimateDesign:
        def given(name: str, read: Callable[[Any], Any]) -> Any:
            return None if document[name] is None else read(document[name])

        fields: dict[str, Any] = {
            **texts_from_json(document, "family", "neighbours", "missing"),
            **wholes_from_json(document, "n", "max_rows_per_unit", least=1),
        }
        return cls(
            between=_ends_from_json(document["between"]),
            confidence=numbers.probability(confidence=number_from_json(document["confidence"])),
            notion=notion_from_json(document["budget"]),
            score=given("score", Score.from_dict),
            noise=given("noise", noise_from_dict),
            count_noise=given("count_noise", noise_from_dict),
            tuned_for=given("tuned_for", _ends_from_json),
            location=given("location", Location.from_dict),
            second=given("second", notion_from_json),
            level=given("level", number_from_json),
            **fields,
        )

    def __hash__(self) -> int:
        return hash((self.family, self.between, self.notion, self.n))

    def __repr__(self) -> str:
        return f"EstimateDesign({self.family!r}, between={self.between}, {notion_words(self.notion)}, n={self.n})"


def _of_label(family: Any, success: Any) -> Any:
    """The family, or the share of the label that ``success`` names."""
    if success is None:
        return family
    if str(family).replace(" ", "") not in ("bernoulli(?)", "bernoulli(p=?)"):
        raise InvalidInput(
            f"success={shown(success)} goes with family='bernoulli(?)', and family={shown(family)}. Leave it out."
        )
    return share_of(success)


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
) -> EstimateDesign:
    """An estimate of one parameter of a family, with an interval, made ready to run.

    Args:
        family: text with a question mark for the parameter: "normal(mean=?, sd=1)", "poisson(?)",
            "normal(mean=?, sd in [0.8, 1.2])", "categorical(yes=?)".
        between: the range of the parameter; may be left out for a rate or a share.
        epsilon: privacy loss of one run.
        n: number of records.
        confidence: how often the interval holds the true value, at least.
        near: a value you expect; the interval is shortest there. It holds the true value as often wherever that is.
        neighbours, max_rows_per_unit, privacy: as for :func:`privatest.design`.
        success: the label that counts, such as "Yes", where records are labels and the family is "bernoulli(?)".
        missing: "count": the answer is about the records that are present (readable, and in the family's support), and
            how many are is measured, within the budget. "none": you declare that all are; one that is not counts by a
            fixed score, which pulls the answer.

    >>> plan = design_estimate("bernoulli(?)", epsilon=1, n=200)
    >>> round(plan.coverage(0.3), 3)
    0.95
    """
    family = _of_label(family, success)
    asked = OneParameter.of(family, between)
    notion = make_notion(epsilon, privacy)
    n = numbers.positive_integer(n=n)
    level = float(numbers.probability(confidence=confidence))
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    value = None if near is None else asked.check_value(near, "near")
    check_missing(missing)
    made = _one_step(asked, notion, n, level, around, None if value is None else (value, value), missing)
    wide = _two_steps(asked, notion, n, level, around, missing) if value is None else None
    if wide is not None:
        return wide
    made.inversion.check_monotone(WORKING)
    return made


def _one_step(
    asked: OneParameter,
    notion: Notion,
    n: int,
    level: float,
    around: Neighbourhood,
    tuned_for: tuple[float, float] | None,
    missing: str,
) -> EstimateDesign:
    """A score for the whole range or a part of it, and noise for what one person can change of its sum."""
    counting = _counting(notion, n, level, around, missing)
    hidden = counting > 0
    summing = notion.split(1 - counting) if hidden else notion
    score = tuned_score(asked, summing, n, around, tuned_for)
    scale, shift = (2, score.low + score.high) if around.kind == "add-remove" else (1, 0)
    return EstimateDesign(
        asked.text,
        (asked.low, asked.high),
        level,
        notion,
        n,
        score,
        canonical_noise(summing, around.reach(score, scale, shift)),
        around.kind,
        around.rows,
        tuned_for,
        canonical_noise(notion.split(counting), around.rows) if hidden else None,
        missing=missing,
    )


def _counting(notion: Notion, n: int, level: float, around: Neighbourhood, missing: str) -> Fraction:
    """Which part of a budget the number of records costs that are summed; 0 where it is public."""
    if around.kind == "add-remove":
        return COUNTING
    return part_for_counting(notion, n, around, MISCOUNTED * (1 - level)) if missing == "count" else Fraction(0)


def _least_present(n: int) -> int:
    """How many records must be present for the first of two steps to be as right as it is said to be."""
    return max(n // LEAST_PRESENT, 1)


def _two_steps(
    asked: OneParameter, notion: Notion, n: int, level: float, around: Neighbourhood, missing: str
) -> EstimateDesign | None:
    """Two steps, where these make shorter intervals than one; only where the parameter is a location."""
    spread = _spread(asked)
    if spread is None or asked.high - asked.low < FEW_SPREADS * spread:
        return None
    best = tuned_ratio(asked, notion, n, around, None).length * float(ndtri((1 + level) / 2))
    # Where records may be missing: enough of them are, or the interval is the whole range; which is wrong as seldom.
    sure, least = level, n
    if missing == "count":
        sure, least = 1 - (1 - level) * (1 - MISCOUNTED), _least_present(n)
    found = None
    for length in _lengths(asked.high - asked.low, spread):
        for share in SHARES:
            location = Location.over(*asked.inner, length, notion.split(share), around)
            second, inner = location.second_level(asked, least, sure), asked.inner
            if second is None:
                continue
            middle = (inner[0] + inner[1]) / 2
            there = middle - location.length / 2, middle + location.length / 2
            rest = notion.split(1 - share)
            counting = _counting(rest, n, level, around, missing)
            left = rest.split(1 - counting) if counting else rest
            width = tuned_ratio(asked, left, n, around, there).length * float(ndtri((1 + second) / 2))
            # Values whose scores are a quarter of the way apart must be told from each other, beyond all noise.
            noise = canonical_noise(left, around.rows * UNITS)
            if width < best and float(noise.sf(n * UNITS / 4)) <= (1 - second) / 2:
                best, found = width, (location, rest, second)
    if found is None:
        return None
    location, rest, second = found
    ends = asked.low, asked.high
    return EstimateDesign(
        asked.text,
        ends,
        level,
        notion,
        n,
        neighbours=around.kind,
        max_rows_per_unit=around.rows,
        location=location,
        second=rest,
        level=second,
        missing=missing,
    )


def _lengths(reach: float, spread: float) -> list[float]:
    """How long bins may be: those of ``LENGTHS`` that are not too many, or else as short as that allows."""
    wanted = [2.0 ** round(math.log2(each * spread)) for each in LENGTHS]
    return [each for each in wanted if reach / each < MOST_BINS - 4] or [
        2.0 ** math.ceil(math.log2(reach / (MOST_BINS - 8)))
    ]


def _spread(asked: OneParameter) -> float | None:
    """Half of the distance between the deciles, where the parameter only moves the distribution; else None."""
    if asked.is_share or asked.box(*asked.inner).family.discrete:
        return None
    low, middle, high = (
        np.asarray(asked.member(value).ppf(np.array([0.1, 0.5, 0.9])))  # type: ignore[attr-defined]
        for value in (asked.inner[0], sum(asked.inner) / 2, asked.inner[1])
    )
    half = (asked.inner[1] - asked.inner[0]) / 2
    tolerance = 1e-9 * (half + float(np.max(np.abs(high))))
    moved = max(float(np.max(np.abs(middle - low - half))), float(np.max(np.abs(high - middle - half))))
    return float(middle[2] - middle[0]) / 2 if moved < tolerance else None


def _ends_from_json(value: Any) -> tuple[float, float]:
    low, high = map(number_from_json, value)
    return low, high


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
) -> EstimateRelease:
    """How large a parameter is, with privacy: an estimate and an interval.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        family, between, epsilon, confidence, near, neighbours, max_rows_per_unit, privacy, success: as for
            :func:`privatest.design_estimate`.
        n: number of records; by default that of the data, which is public.
        missing: as for :func:`privatest.design_estimate`; left out, "none" where the declared type of the column admits
            no missing value (whole numbers and truth values of NumPy, columns declared without nulls) and no number
            outside the family's support, else "count".
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> found = estimate([0, 1, 0, 0, 1] * 200, "bernoulli(?)", epsilon=1)
    >>> found.interval[0] < 0.4 < found.interval[1]
    True
    """
    from privatest import engines  # planning needs none of them

    make_neighbourhood(neighbours, max_rows_per_unit)
    # What cannot be asked is refused before the data are opened.
    asked = OneParameter.of(_of_label(family, success), between)
    records = None
    if missing is None and neighbours == "replace":
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        missing = "count" if records.declared.may_leave(asked.support) else "none"
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and an estimate "
                "made for it would tell it. Say how many you expect: n=..."
            )
        if records is None:
            records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    made = design_estimate(
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
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return made.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)
