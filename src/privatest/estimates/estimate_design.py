"""A designed estimate: score and noise, frozen, printable, serialisable, ready to run; and what a run gives back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from privatest import numbers
from privatest.bounds.interval_bound import Rivals
from privatest.decision.design import HIDDEN, Budgeted, Outcome, cost_fact
from privatest.decision.inversion import Inversion
from privatest.documents import number_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidInput, shown
from privatest.estimates.location import MOST_BINS, STARTS, Location
from privatest.estimates.tuned_score import UNITS, WORKING, tuned_ratio, tuned_score
from privatest.headway import looking
from privatest.hypotheses.one_parameter import OneParameter
from privatest.markup import Fact
from privatest.numbers import Floats, Number
from privatest.privacy import Noise, Notion, Pure, Source, canonical_noise, make_notion, noise_from_dict
from privatest.privacy.asked import counts_guarantee, notion_from_json, notion_to_json, told
from privatest.privacy.composition import adds_up_within, replaced
from privatest.privacy.noise import Neighbourhood, make_neighbourhood
from privatest.scores import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records

__all__ = ["EstimateDesign", "EstimateRelease", "design_estimate", "estimate"]

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
        interval: holds the true value with a probability of ``confidence`` at least, whatever it is.
        confidence: of the interval.
        parameter: what is estimated.
        statistic: the noisy total, in the score's units; other confidences can be had from it.
        beyond: "below" or "above" where the data fit no value of the range given; else "".
        epsilon: privacy loss of this release.
        n: number of records, which is public; with neighbours "add-remove", the number expected.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        privacy: the notion that it meets, where that is not epsilon alone.
    """

    KIND: ClassVar[str] = "Release of an estimate"

    estimate: float
    interval: tuple[float, float]
    confidence: float
    parameter: str
    statistic: float
    epsilon: float
    n: int
    beyond: str = ""
    neighbours: str = "replace"
    simulated: bool = False
    receipt: Any = None
    design: Any = None
    privacy: str | None = None

    @property
    def width(self) -> float:
        """The interval's length."""
        return self.interval[1] - self.interval[0]

    @property
    def sentence(self) -> str:
        low, high = self.interval
        ends = f"{self.confidence:.4g} interval {low:.6g} to {high:.6g}"
        told = f"The {self.parameter} is about {self.estimate:.6g}, {ends}."
        return f"{told} But {BEYOND[self.beyond]}." if self.beyond else told

    def facts(self) -> list[Fact]:
        """The answer, and what every outcome ends with."""
        doubts = [Fact("beyond", self.beyond, BEYOND[self.beyond])] if self.beyond else []
        return [
            *doubts,
            Fact("estimate", self.estimate, f"of {self.parameter}, right in the median"),
            Fact("interval", self.interval, f"holds the true value with probability {self.confidence:g} at least"),
            Fact("statistic", self.statistic, "the noisy total this was computed from"),
            Fact("n", self.n, "records"),
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
        max_rows_per_unit: the most records that are used of one person.
        tuned_for: the values that the score was tuned for; None: for the whole range.
        count_noise: with neighbours "add-remove", what is added to the number of records.
        location: the first of two steps.
        second: of two steps, what the second one costs.
        level: the confidence of the second of two steps.
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

    def __post_init__(self) -> None:
        numbers.positive_integer(n=self.n)
        make_neighbourhood(self.neighbours, self.max_rows_per_unit)
        _ = self.asked
        if self.level is not None and not self.confidence <= self.level < 1:
            raise InvalidInput(f"level={shown(self.level)} must lie in [{self.confidence:g}, 1), the confidence and 1.")
        steps = (self.noise is None, *(one is not None for one in (self.location, self.second, self.level)))
        if any((self.score is None) != each for each in steps):
            raise InvalidInput(
                "An estimate has a score and noise, or a first step that says where to look: one of them."
            )
        if (self.neighbours == "add-remove" and self.score is not None) != (self.count_noise is not None):
            raise InvalidInput(
                "count_noise goes with neighbours='add-remove': the number of records is not public then."
            )
        costs = self._costs()
        if not adds_up_within(costs, self.notion):
            listed = " and ".join("nothing" if cost is None else str(cost) for cost in costs)
            raise InvalidInput(f"The noise meets {listed}, which together is not {told(self.notion)}. Use more noise.")
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
    def _shifted(self) -> tuple[int, int]:
        """Scale and shift of the scores: about 0 where records come and go."""
        if self.neighbours == "replace" or self.score is None:
            return 1, 0
        return 2, self.score.low + self.score.high

    @cached_property
    def asked(self) -> OneParameter:
        """The family, its parameter and the range."""
        return OneParameter.of(self.family, self.between)

    @property
    def parameter(self) -> str:
        """What is estimated."""
        return self.asked.name

    @cached_property
    def inversion(self) -> Inversion:
        """From a noisy total to the parameter; of an estimate without a first step."""
        assert self.score is not None
        assert self.noise is not None
        return Inversion(self.asked, self.score, self.noise, self.n, *self._shifted, self.count_noise)

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
        return _one_step(self.asked, self.second, self.n, self.level, self.around, ends)

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
            return 1 - self.location.misses(self.asked, value, self.n, 1 - self.level)
        return self.inversion.coverage(value, self.confidence)

    def expected_width(self, at: float) -> float:
        """The mean length of a run's interval where the true value is ``at``; of two steps, if the first is right."""
        value = self.asked.check_value(at, "at")
        if self.location is not None:
            found = [one.inversion.expected_length(value, one.confidence) for one in self._about(value)]
            return math.fsum(found) / len(found)
        return self.inversion.expected_length(value, self.confidence)

    def expected_widths(self, at: Sequence[float]) -> Floats:
        """:meth:`expected_width` for many true values, at the price of a few."""
        values = [self.asked.check_value(one, "at") for one in at]
        if self.location is None:
            return self.inversion.expected_lengths(values, self.confidence)
        found, starts = np.zeros(len(values)), range(0, STARTS, STARTS // 2)
        shared: dict[tuple[int, int], list[int]] = {}
        for start in starts:
            for i, place in enumerate(self.location.place_of(start, np.array(values)).tolist()):
                shared.setdefault((start, place), []).append(i)
        for (start, place), which in shared.items():
            one = self.there(start, place)
            found[which] += one.inversion.expected_lengths([values[i] for i in which], one.confidence) / len(starts)
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
        with looking("records of an interval", 10) as looked:
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
        )

    @property
    def outcome(self) -> type[EstimateRelease]:
        """A release of an estimate."""
        return EstimateRelease

    def check(self, records: Records, *, charging: bool) -> None:  # noqa: ARG002 - the same without a charge
        """Type, and number where it is public."""
        from privatest.engines.protocol import check_count, counter  # planning needs no engine

        records.check(counter(self.location.cells) if self.score is None else self.score)  # type: ignore[union-attr]
        if self.neighbours == "replace":
            check_count(records.count(), self.n)

    def answer(self, records: Records, source: Source, *, simulated: bool) -> EstimateRelease:
        """The noisy totals' release."""
        if self.location is not None:
            there = self.there(*self.location.chosen(records.histogram(self.location.cells), source))
            found = there.answer(records, source, simulated=simulated)
            return replace(found, epsilon=self.epsilon, privacy=self._met, confidence=self.confidence)
        assert self.score is not None
        assert self.noise is not None
        scale, shift = self._shifted
        total, count = scale * records.total(self.score), None
        if self.count_noise is not None:
            total -= shift * records.count()
            count = records.count() + self.count_noise.draw(source)
        return self.release(total + self.noise.draw(source), count, simulated=simulated)

    def release(self, noisy: Fraction, count: Fraction | None = None, *, simulated: bool = False) -> EstimateRelease:
        """Estimate and interval from a noisy total (and number): post-processing, which costs no privacy.

        Args:
            noisy: the noisy total, in the score's units.
            count: the noisy number of records; None where n is public.
        """
        assert self.score is not None
        found = self.inversion
        value = found.counted(count).estimate(noisy)
        return EstimateRelease(
            value,
            found.interval(noisy, self.confidence, count),
            self.confidence,
            self.parameter,
            float(noisy * self.score.step / self._shifted[0]),
            self.epsilon,
            self.n,
            found.beyond(noisy, EXTREME, count) if value in self.between else "",
            self.neighbours,
            simulated,
            privacy=self._met,
        )

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
            Fact("family", self.family, "the records' distribution; ? is asked for"),
            Fact("between", self.between, f"the range of {self.parameter}"),
            Fact("confidence", self.confidence, "of the interval, exact, for every value of the range"),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public" if self.neighbours == "replace" else "records, as expected"),
            *self._mechanism(),
            Fact("neighbours", self.neighbours, f"hides {HIDDEN[self.neighbours]}"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "rows used of one person, all protected"),
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
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> EstimateDesign:
        def given(name: str, read: Callable[[Any], Any]) -> Any:
            return None if document[name] is None else read(document[name])

        fields: dict[str, Any] = {
            **texts_from_json(document, "family", "neighbours"),
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
        return f"EstimateDesign({self.family!r}, between={self.between}, {told(self.notion)}, n={self.n})"


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

    >>> plan = design_estimate("bernoulli(?)", epsilon=1, n=200)
    >>> round(plan.coverage(0.3), 3)
    0.95
    """
    asked = OneParameter.of(family, between)
    notion = make_notion(epsilon, privacy)
    n = numbers.positive_integer(n=n)
    level = float(numbers.probability(confidence=confidence))
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    value = None if near is None else asked.check_value(near, "near")
    made = _one_step(asked, notion, n, level, around, None if value is None else (value, value))
    wide = _two_steps(asked, notion, n, level, around) if value is None else None
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
) -> EstimateDesign:
    """A score for the whole range or a part of it, and noise for what one person can change of its sum."""
    hidden = around.kind == "add-remove"
    summing = notion.split(1 - COUNTING) if hidden else notion
    score = tuned_score(asked, summing, n, around, tuned_for)
    scale, shift = (2, score.low + score.high) if hidden else (1, 0)
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
        canonical_noise(notion.split(COUNTING), around.rows) if hidden else None,
    )


def _two_steps(
    asked: OneParameter, notion: Notion, n: int, level: float, around: Neighbourhood
) -> EstimateDesign | None:
    """Two steps, where these make shorter intervals than one; only where the parameter is a location."""
    spread = _spread(asked)
    if spread is None or asked.high - asked.low < FEW_SPREADS * spread:
        return None
    best = tuned_ratio(asked, notion, n, around, None).length * float(ndtri((1 + level) / 2))
    found = None
    for length in _lengths(asked.high - asked.low, spread):
        for share in SHARES:
            location = Location.over(*asked.inner, length, notion.split(share), around)
            second, inner = location.second_level(asked, n, level), asked.inner
            if second is None:
                continue
            middle = (inner[0] + inner[1]) / 2
            there = middle - location.length / 2, middle + location.length / 2
            rest = notion.split(1 - share)
            left = rest.split(1 - COUNTING) if around.kind == "add-remove" else rest
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
        asked.text, ends, level, notion, n, None, None, around.kind, around.rows, None, None, location, rest, second
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
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
    privacy: Notion | str | None = None,
) -> EstimateRelease:
    """How large a parameter is, with privacy: an estimate and an interval.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        family, between, epsilon, confidence, near, neighbours, max_rows_per_unit, privacy: as for
            :func:`privatest.design_estimate`.
        n: number of records; by default that of the data, which is public.
        column, unit, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> found = estimate([0, 1, 0, 0, 1] * 200, "bernoulli(?)", epsilon=1)
    >>> found.interval[0] < 0.4 < found.interval[1]
    True
    """
    from privatest import engines  # planning needs none of them

    make_neighbourhood(neighbours, max_rows_per_unit)
    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and an estimate "
                "made for it would tell it. Say how many you expect: n=..."
            )
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
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit}
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng)
