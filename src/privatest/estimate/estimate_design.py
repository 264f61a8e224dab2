"""A designed estimate: score and noise, frozen, printable, serialisable, ready to run; and what a run gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import _validate
from privatest.bounds.interval_bound import length_bound
from privatest.decision.design import HIDDEN, Design, Outcome
from privatest.decision.inversion import Inversion
from privatest.documents import fraction_from_json, number_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidInput, shown
from privatest.estimate.tuned_score import WORKING, tuned_score
from privatest.hypotheses.one_parameter import OneParameter
from privatest.markup import Fact
from privatest.privacy import Noise, Source, Tulap, noise_from_dict
from privatest.privacy.noise import Neighbourhood, make_neighbourhood
from privatest.rational import Number
from privatest.scores import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records

__all__ = ["EstimateDesign", "EstimateRelease", "design_estimate", "estimate"]

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

    Guarantees: all of it is computed from the noisy total alone, so it is epsilon-differentially private.

    Attributes:
        estimate: the value under which the noisy total is as often exceeded as not: right in the median.
        interval: holds the true value with a probability of ``confidence`` at least, whatever it is.
        confidence: of the interval.
        parameter: what is estimated.
        statistic: the noisy total, in the score's units; other confidences can be had from it.
        beyond: "below" or "above" where the data fit no value of the range given, which then holds no interval; else "".
        epsilon: privacy loss of this release.
        n: number of records, which is public; with neighbours "add-remove", the number expected.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
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

    @property
    def width(self) -> float:
        """The interval's length."""
        return self.interval[1] - self.interval[0]

    @property
    def sentence(self) -> str:
        low, high = self.interval
        told = f"The {self.parameter} is about {self.estimate:.6g}: {self.confidence:.4g} interval {low:.6g} to {high:.6g}."
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
class EstimateDesign(Design[EstimateRelease]):
    """Estimate one parameter from a noisy total of scores, with an interval that inverts the total's exact law.

    Guarantees: running it is epsilon-differentially private, which is checked when the object is made; the interval of a
    run holds the true value with a probability of at least ``confidence``, for every value between the ends.

    Attributes:
        family: such as "normal(mean=?, sd=1)".
        between: the range of the parameter.
        confidence: of the interval.
        budget: the privacy loss of one run, exactly.
        n: number of records.
        score, noise: what is summed, and what is added to the sum.
        neighbours: "replace" or "add-remove".
        max_rows_per_unit: the most records that are used of one person.
        near: the value that the score was tuned for; None: for the whole range.
    """

    FORMAT: ClassVar[str] = "privatest/estimate/1"
    KIND: ClassVar[str] = "estimate"

    family: str
    between: tuple[float, float]
    confidence: float
    budget: Fraction
    n: int
    score: Score
    noise: Noise
    neighbours: str = "replace"
    max_rows_per_unit: int = 1
    near: float | None = None

    def __post_init__(self) -> None:
        _validate.positive_integer(n=self.n)
        self.score.check_total(self.n)
        _ = self.asked
        loss = self.noise.exact_loss(self.sensitivity)
        if loss is None or not 0 < loss <= self.budget:
            raise InvalidInput(
                f"The noise allows a privacy loss of {self.noise.privacy_loss(self.sensitivity):.6g} for totals "
                f"{self.sensitivity} apart, more than epsilon={float(self.budget):g}. Use more noise."
            )

    @property
    def epsilon(self) -> float:  # type: ignore[override]  # read-only here
        """Privacy loss of one run."""
        return float(self.budget)

    @property
    def price(self) -> Fraction:
        """What a run costs, exactly."""
        return self.budget

    @property
    def sensitivity(self) -> int:
        """The most by which one person changes the total."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit).reach(self.score)

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
        """From a noisy total to the parameter."""
        return Inversion(self.asked, self.score, self.noise, self.n)

    def coverage(self, at: float) -> float:
        """How likely the interval of a run holds the true value, where that is ``at``: exact.

        Where other parameters are known roughly: at least so likely.
        """
        return self.inversion.coverage(self.asked.check_value(at, "at"), self.confidence)

    def expected_width(self, at: float) -> float:
        """The mean length of a run's interval where the true value is ``at``."""
        return self.inversion.expected_length(self.asked.check_value(at, "at"), self.confidence)

    def width_bound(self, at: float) -> float:
        """No private interval of this confidence, from n records, is shorter in the mean where the true value is ``at``."""
        value, family = self.asked.check_value(at, "at"), self.asked
        # Adding and removing a record is two steps of the one and one of the other.
        epsilon = self.epsilon * (2 if self.neighbours == "add-remove" else 1)
        return length_bound(family.member, value, family.inner, epsilon, self.n, self.confidence)

    def sample_size(self, *, width: float, at: float) -> int:
        """The smallest n whose intervals are at most ``width`` long in the mean, where the true value is ``at``."""
        value = self.asked.check_value(at, "at")
        wanted = float(_validate.positive(width=width))

        def fine(n: int) -> bool:
            return self.at_n(n).expected_width(value) <= wanted

        least, most = 0, 1
        while not fine(most):
            least, most = most, 2 * most
            if most > 10**12:
                raise InvalidInput(f"width={shown(width)} is shorter than 10^12 records allow. Use a larger width.")
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if fine(middle) else (middle, most)
        return most

    def at_n(self, n: int) -> EstimateDesign:
        """The same question for another number of records."""
        return design_estimate(
            self.family,
            between=self.between,
            epsilon=self.budget,
            n=n,
            confidence=self.confidence,
            near=self.near,
            neighbours=self.neighbours,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    @property
    def need(self) -> Need:
        """At most ``max_rows_per_unit`` rows of one person."""
        from privatest.engines import Need  # planning needs no engine

        return Need(rows=self.max_rows_per_unit)

    @property
    def outcome(self) -> type[EstimateRelease]:
        """A release of an estimate."""
        return EstimateRelease

    def question(self) -> dict[str, Any]:
        """The whole design but for its budget, which stands in the charge itself."""
        return {"estimate": {name: value for name, value in self.to_dict().items() if name != "budget"}}

    def check(self, records: Records, *, charging: bool) -> None:  # noqa: ARG002 - the same without a charge
        """Type and number."""
        from privatest.engines.protocol import check_count

        records.check(self.score)
        check_count(records.count(), self.n)

    def answer(self, records: Records, source: Source, *, simulated: bool) -> EstimateRelease:
        """The noisy total's release."""
        return self.release(records.total(self.score) + self.noise.draw(source), simulated=simulated)

    def release(self, noisy: Fraction, *, simulated: bool = False) -> EstimateRelease:
        """Estimate and interval from a noisy total: post-processing, which costs no privacy."""
        found = self.inversion
        return EstimateRelease(
            found.estimate(noisy),
            found.interval(noisy, self.confidence),
            self.confidence,
            self.parameter,
            float(self.score.value(noisy, self.n)),
            self.epsilon,
            self.n,
            found.beyond(noisy, EXTREME),
            self.neighbours,
            simulated,
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
            Fact("epsilon", self.epsilon, "privacy loss of one run"),
            Fact("n", self.n, "records, public"),
            Fact("clamp", self.score.bounds(), "least and most of one record, in nats"),
            Fact("noise", self.noise.kind, "added to the total"),
            Fact("neighbours", self.neighbours, f"hides {HIDDEN[self.neighbours]}"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "rows used of one person, all protected"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the design exactly."""
        return {
            "format": self.FORMAT,
            "family": self.family,
            "between": list(self.between),
            "confidence": self.confidence,
            "budget": str(self.budget),
            "n": self.n,
            "neighbours": self.neighbours,
            "max_rows_per_unit": self.max_rows_per_unit,
            "near": self.near,
            "noise": self.noise.to_dict(),
            "score": self.score.to_dict(),
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> EstimateDesign:
        low, high = map(number_from_json, document["between"])
        fields: dict[str, Any] = {
            **texts_from_json(document, "family", "neighbours"),
            **wholes_from_json(document, "n", "max_rows_per_unit", least=1),
        }
        return cls(
            between=(low, high),
            confidence=number_from_json(document["confidence"]),
            budget=fraction_from_json(document["budget"]),
            score=Score.from_dict(document["score"]),
            noise=noise_from_dict(document["noise"]),
            near=None if document.get("near") is None else number_from_json(document["near"]),
            **fields,
        )

    def __hash__(self) -> int:
        return hash((self.family, self.between, self.budget, self.n, self.score.width))

    def __repr__(self) -> str:
        return f"EstimateDesign({self.family!r}, between={self.between}, epsilon={self.epsilon:g}, n={self.n})"


def design_estimate(
    family: str,
    *,
    between: tuple[float, float] | None = None,
    epsilon: Number,
    n: int,
    confidence: float = 0.95,
    near: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
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
        neighbours, max_rows_per_unit: as for :func:`privatest.design`.

    >>> plan = design_estimate("bernoulli(?)", epsilon=1, n=200)
    >>> round(plan.coverage(0.3), 3)
    0.95
    """
    asked = OneParameter.of(family, between)
    budget = _validate.positive(epsilon=epsilon)
    n = _validate.positive_integer(n=n)
    level = float(_validate.probability(confidence=confidence))
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    value = None if near is None else asked.check_value(near, "near")
    score = tuned_score(asked, budget, n, around, value)
    noise = Tulap(budget, around.reach(score))
    made = EstimateDesign(
        asked.text, (asked.low, asked.high), level, budget, n, score, noise, neighbours, around.rows, value
    )
    made.inversion.check_monotone(WORKING)
    return made


def estimate(
    data: Any,
    family: str,
    *,
    between: tuple[float, float] | None = None,
    epsilon: Number,
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
) -> EstimateRelease:
    """How large a parameter is, with epsilon-privacy: an estimate and an interval.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        family, between, epsilon, confidence, near, neighbours, max_rows_per_unit: as for
            :func:`privatest.design_estimate`.
        n: number of records; by default that of the data, which is public.
        column, unit, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> found = estimate([0, 1, 0, 0, 1] * 200, "bernoulli(?)", epsilon=1)
    >>> found.interval[0] < 0.4 < found.interval[1]
    True
    """
    from privatest import engines  # planning needs none of them

    records = None
    if n is None:
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
    made = design_estimate(
        family,
        between=between,
        epsilon=epsilon,
        n=n,
        confidence=confidence,
        near=near,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit}
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng)


_ = replace, math
