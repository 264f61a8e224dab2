r"""A noisy table: how many records each cell has, with noise; released once, it answers many questions.

The cells are public. Each count gets noise for which all counts together meet the notion of privacy, whatever their
number: replacing a record moves two counts by one each. Everything that is computed from the released counts costs no
more privacy.

Each answer is a weighted sum of the noisy counts, whose law is known exactly for every law of the records
(:mod:`privatest.laws.weighted_counts`). If n is public, the same number may be subtracted from all weights: this
changes the noise only, and makes it smallest if the weights then sum to about 0.

Missing and unreadable records have a cell of their own, so how many records are present is known up to noise only.
Given that number M the records that are present are independent, so every p-value and every interval is the worst over
the M in an interval, whose error probability is paid for (Berger and Boos 1994).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from privatest import numbers
from privatest.decision.interval_inversion import normal_gap
from privatest.decision.run import Outcome, Release
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.estimates.present_records import AnsweredRecords, PresentCount
from privatest.facts import Fact, Probability, short
from privatest.hypotheses import as_distribution
from privatest.hypotheses.distribution import number_text
from privatest.json_documents import document_from_json, reading
from privatest.laws.weighted_counts import BoundedSum, Statistic, weighted
from privatest.numbers import Floats, number_or_nan
from privatest.privacy import Noise, Notion, Pure, as_notion, noise_from_dict
from privatest.privacy.notion import Neighbourhood, make_neighbourhood
from privatest.scores import Cells, EdgeCells, GroupedCells, LabelCells
from privatest.scores.score import cells_from_dict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.estimates.table_test import TableTest

FINE = 256
"""The largest weight of a statistic, in units of the smallest that is told apart."""
MISCOUNTED = 0.05
"""The share of an interval's error probability that is spent on a wrong number of present records."""
NUMBERS = 3
"""At how many numbers of present records, from the smallest to the largest possible, a tail is computed."""
ENDS = 1e-7
"""The accuracy of an interval's ends, as a share of the range. Ends are moved outwards by as much."""
PROOF = 1e-3
"""The first step outwards if the exact tail at a rough end exceeds the level, as a share of the scale."""
SURELY = 1e-3
"""The probability with which noise alone in a count looks like records beyond the table."""
EXTREME = 0.001
"""A family whose residual has a smaller p-value does not fit."""
ANCHORS = 8
"""The number of places about which the spread of records is bounded; the nearest to their mean counts."""


@dataclass(frozen=True)
class TableAnswer(Outcome):
    """An answer that was computed from a table: an estimate with an interval.

    Guarantees: the interval holds the true value with a probability of at least ``confidence``, for every law of the
    records (which are independent); it costs nothing beyond the table.

    Attributes:
        question: what was estimated.
        estimate: the estimate.
        interval: the interval.
        confidence: the confidence of the interval.
        among: the records that the answer is about.
        note: what was clipped or assumed; empty if nothing was.
        guarantee: "certified", or "approximate" if the interval follows from a normal law that may not fit.
        doubt: why the answer is hardly one about the records: most of them may be missing, or lie beyond the table.
    """

    KIND: ClassVar[str] = "Answer from a table"

    question: str
    estimate: float
    interval: tuple[float, float]
    confidence: float
    among: str = ""
    note: str = ""
    guarantee: str = "certified"
    doubt: str = ""

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TableAnswer:
        """What :meth:`to_dict` wrote; an open end of the interval is written as a text."""
        with reading("the answer"):
            low, high = map(float, document["interval"])
        return super().from_dict({**document, "interval": [low, high]})

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        low, high = self.interval
        text = f"The {self.question} is about {self.estimate:.4g}, between {low:.4g} and {high:.4g}{self.among}."
        return " ".join(filter(None, (self.doubt, text, self.note)))

    def facts(self) -> list[Fact]:
        """The answer, and what the table cost."""
        holds = f"holds the {self.question} with probability {self.confidence:g} at least, for every law of the records"
        if self.guarantee != "certified":
            holds = (
                f"holds the {self.question} with probability about {self.confidence:g}: APPROXIMATE, by a normal law"
            )
        return [
            *([Fact("doubtful", True, self.doubt)] if self.doubt else []),
            Fact("question", self.question, f"what is estimated{self.among}"),
            Fact("estimate", self.estimate),
            Fact("interval", self.interval, holds),
            Fact("confidence", self.confidence),
            Fact("guarantee", self.guarantee),
            Fact("note", self.note.rstrip(".") or None),
            *self._ending(),
        ]


@dataclass(frozen=True)
class TableEstimate(Outcome):
    """Parameters of a family, from a table.

    Guarantees: if the records come from a member of the family, each interval holds the true value of its parameter
    with a probability of at least ``confidence``.

    Attributes:
        family: the family, with its question marks.
        parameters: the names of the unknown parameters.
        estimates, intervals: an estimate and an interval for each.
        confidence: the confidence of each interval.
        pvalue: the p-value of the table's residual: small if no member of the family fits the table.
        doubt: why the answer is hardly one about the records: most of them may be missing, or a parameter lies beyond
            the range that was given for it.
    """

    KIND: ClassVar[str] = "Estimate from a table"

    family: str
    parameters: tuple[str, ...]
    estimates: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    confidence: float
    pvalue: float
    doubt: str = ""

    @property
    def estimate(self) -> Any:
        """The estimate; of several parameters, the estimates by name."""
        return self._named(self.estimates)

    @property
    def interval(self) -> Any:
        """The interval; of several parameters, the intervals by name."""
        return self._named(self.intervals)

    def _named(self, values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else dict(zip(self.parameters, values, strict=True))

    @property
    def fits(self) -> bool:
        """Whether the family fits the table, at level 0.001."""
        return self.pvalue > EXTREME

    @property
    def sentence(self) -> str:
        """The estimates, after what does not fit."""
        answers = "; ".join(
            f"{name} is about {value:.4g}, between {low:.4g} and {high:.4g}"
            for name, value, (low, high) in zip(self.parameters, self.estimates, self.intervals, strict=True)
        )
        if self.fits:
            return f"{self.doubt} If the records come from {self.family}: {answers}.".lstrip()
        return (
            f"The family {self.family} does NOT fit the table (p-value {self.pvalue:.2g}): do not report its "
            "parameters. Use table.mean(), table.quantile(...) or another family."
        )

    def facts(self) -> list[Fact]:
        """The parameters, and whether the family fits."""
        holds = f"holds the true value with probability {self.confidence:g} at least, if the family fits"
        doubt = self.doubt if self.fits else "the family does NOT fit the table: do not report its parameters"
        ends = zip(self.parameters, self.intervals, strict=True)
        return [
            *([Fact("doubtful", True, doubt)] if doubt else []),
            Fact("family", self.family, "the records' distribution; ? is estimated"),
            *(Fact(name, value) for name, value in zip(self.parameters, self.estimates, strict=True)),
            *(Fact(f"{name}_interval", interval, holds) for name, interval in ends),
            Fact("fits", self.fits, "at level 0.001, by the table's residual"),
            Fact("pvalue", Probability(self.pvalue), "of the residual, were the family true"),
            *self._ending(),
        ]


@dataclass(frozen=True)
class TableFit(Outcome):
    """Whether the records come from one distribution, from a table.

    Attributes:
        decision: "null" or "alternative".
        pvalue: the p-value, exact up to rounding to the safe side.
        alpha: the level of the decision.
        null: the distribution P.
    """

    KIND: ClassVar[str] = "Fit of a table"

    decision: str
    pvalue: float
    alpha: float
    null: str

    @property
    def sentence(self) -> str:
        """The decision and its p-value."""
        says = "is consistent with" if self.decision == "null" else "does not come from"
        return f"The table {says} {self.null} at level {self.alpha:g} (p-value {self.pvalue:.3g})."

    def facts(self) -> list[Fact]:
        """The decision and its p-value."""
        return [
            Fact("decision", self.decision, f"at level {self.alpha:g}"),
            Fact("pvalue", Probability(self.pvalue), "of so large a difference from P in some direction, were P true"),
            Fact("null", self.null, "the null hypothesis P"),
            *self._ending(),
        ]


@dataclass(frozen=True)
class Table(Outcome):
    """Noisy counts of cells, as released.

    Guarantees: the counts are all that left the data. Every answer is computed from them, so all answers together cost
    what the table cost.

    Attributes:
        cells: the cells: intervals between edges, or labels.
        doubled: twice the noisy count of each cell, and last that of the missing and unreadable records.
        noise: the noise on each count.
        n: the number of records, if it is public; else None.
        complete: whether the type of the column says that no record is missing.
        rows: the largest number of rows of one person that are hidden.
    """

    KIND: ClassVar[str] = "Noisy table"

    cells: Cells
    doubled: tuple[int, ...]
    noise: Noise
    n: int | None = None
    complete: bool = False
    rows: int = 1

    @property
    def counts(self) -> Floats:
        """The noisy count of each cell, which may be negative."""
        return np.array(self.doubled[:-1]) / 2

    @property
    def missing(self) -> float:
        """The noisy number of missing and unreadable records."""
        return self.doubled[-1] / 2

    @cached_property
    def present(self) -> float:
        """About how many records have a cell."""
        if self.n is None:
            return max(float(self.counts.sum()), 1.0)
        return float(self.n) if self.complete else min(max(self.n - self.missing, 1.0), float(self.n))

    @property
    def names(self) -> list[str]:
        """A name for each cell."""
        return cell_names(self.cells)

    @cached_property
    def groups(self) -> dict[str, Table]:
        """The table of each group, of a table that was made with ``by=``.

        How many records a group has is known up to noise only, so the answers of its table allow for that.
        """
        if not isinstance(self.cells, GroupedCells):
            raise InvalidInput("This table has no groups. Make one with by= and groups=.")
        size = self.cells.inner.count
        parts = {name: self.doubled[place * size : (place + 1) * size] for place, name in enumerate(self.cells.groups)}
        return {
            name: replace(self, cells=self.cells.inner, doubled=(*part, 0), n=None, complete=False, design=None)
            for name, part in parts.items()
        }

    # The law of weighted sums -----------------------------------------------------------------------------------------

    def numbers(self, miss: float) -> list[int]:
        """Numbers of present records, spread from the smallest to the largest that the noisy counts leave possible.

        Args:
            miss: the largest probability that the true number is not between the first and the last.
        """
        if self.complete and self.n is not None:
            return [self.n]
        if self.n is None:
            noise: Noise = weighted(self.noise, [1] * self.cells.count)
            away, most = noise.beyond(miss / 2), math.inf
        else:
            away, most = self.noise.beyond(miss / 2), self.n
        total = sum(self.doubled[:-1]) / 2 if self.n is None else self.n - self.missing
        low, high = (min(max(round(total + sign * away), 1), most) for sign in (-1, 1))
        return sorted({round(number) for number in np.linspace(low, high, NUMBERS)})

    def statistic(self, weights: Floats, fine: int = FINE) -> Statistic:
        """The weighted sum of the noisy counts.

        Args:
            weights: a weight for each cell.
            fine: the largest weight after rounding to integers.
        """
        scale = fine / max(float(np.abs(weights - weights.mean()).max()), 1e-300)
        whole = np.rint(np.append(weights, 0.0) * scale).astype(np.int64)
        if self.n is not None:  # the same number less for all: the sum over all records changes by a known number
            every = whole[:-1] if self.complete else whole
            whole = whole - round(float(every.mean()))
        if self.complete or self.n is None:
            whole[-1] = 0
        return Statistic(whole, self.noise, self.n, sum(int(w) * t for w, t in zip(whole, self.doubled, strict=True)))

    def _with_error(self, confidence: float) -> tuple[float, list[int]]:
        """The error probability that is left for an answer, and the numbers of present records to consider."""
        if isinstance(self.cells, GroupedCells):
            first = shown(self.cells.groups[0])
            raise InvalidInput(f"This table has groups. Ask that of one of them: table.groups[{first}], and so on.")
        confidence = numbers.probability(confidence=confidence)
        if self.complete and self.n is not None:
            return 1 - confidence, self.numbers(1.0)
        miss = MISCOUNTED * (1 - confidence)
        return 1 - confidence - miss, self.numbers(miss)

    # Answers without a model ------------------------------------------------------------------------------------------

    def share(
        self,
        *,
        above: float | None = None,
        below: float | None = None,
        between: tuple[float, float] | None = None,
        label: Any = None,
        confidence: float = 0.95,
    ) -> TableAnswer:
        """The share of the present records that lie in some of the cells, with an interval.

        Args:
            above: count the records from this edge on.
            below: count the records below this edge.
            between: count the records from the first edge on and below the second.
            label: count the records with this label.
            confidence: the confidence of the interval.
        """
        error, possible = self._with_error(confidence)
        chosen, words = self._chosen(above, below, between, label)

        def at(share: float) -> tuple[Statistic, Floats]:
            law = np.where(chosen, share / max(chosen.sum(), 1), (1 - share) / max((~chosen).sum(), 1))
            return self._share_statistic(chosen, share), law

        def end(side: int, level: float) -> float:
            def tails(share: float) -> tuple[Callable[[], float], Callable[[], float]]:
                statistic, law = at(share)
                return (
                    lambda: statistic.rough_tail(law, possible, side),
                    lambda: statistic.tail(law, possible, side),
                )

            return accepted_from(tails, (0.0, 1.0) if side else (1.0, 0.0), level)

        low, high = end(1, error / 2), end(0, error / 2)
        middle = float(self.counts[chosen].sum()) / self.present
        return self._answer(f"share {words}", min(max(middle, low), high), (low, high), confidence)

    def _chosen(self, above: Any, below: Any, between: Any, label: Any) -> tuple[np.ndarray[Any, Any], str]:
        """Which cells are meant, and in words."""
        rules = {"above": above, "below": below, "between": between, "label": label}
        named = [name for name, value in rules.items() if value is not None]
        if len(named) != 1:
            raise InvalidInput(
                f"share needs one of above=, below=, between= and label=, and {len(named)} were given. Name one."
            )
        places = np.arange(self.cells.count)
        if named == ["label"]:
            if not isinstance(self.cells, LabelCells) or label not in self.cells.position:
                raise InvalidInput(f"label={shown(label)} must be a label of the table: {', '.join(self.names)}.")
            place = self.cells.position[label]
            return places == place, f"of {self.names[place]}"
        if above is not None:
            return places >= self._edge("above", above), f"above {number_text(above)}"
        if below is not None:
            return places < self._edge("below", below), f"below {number_text(below)}"
        low, high = (self._edge("between", end) for end in between)
        return (places >= low) & (places < high), f"between {number_text(between[0])} and {number_text(between[1])}"

    def _edge(self, name: str, value: Any) -> int:
        """The cell that begins at an edge."""
        edges = self._edges
        place = int(np.searchsorted(edges, number_or_nan(value)))
        near = [int(i) for i in (place, place - 1) if 0 <= i < len(edges) and math.isclose(edges[i], value)]
        if not near:
            listed = ", ".join(number_text(edge) for edge in edges[max(place - 2, 0) : place + 2])
            raise InvalidInput(
                f"{name}={shown(value)} must be an edge of the table's cells, which count records and do not know "
                f"where in a cell they lie. Edges near it: {listed}. Or make a table with edges=[..., {shown(value)}]."
            )
        return near[0] + 1

    @property
    def _edges(self) -> Floats:
        if not isinstance(self.cells, EdgeCells):
            raise InvalidInput("This table has cells of labels, which have no order. Use share(label=...).")
        return np.array(self.cells.edges)

    def _share_statistic(self, chosen: np.ndarray[Any, Any], share: float) -> Statistic:
        """The noisy count of the chosen cells; its mean must not depend on the number of present records if unknown."""
        exact = self.complete and self.n is not None
        return self.statistic(chosen.astype(np.float64) if exact else chosen - share)

    def _answer(
        self,
        question: str,
        estimate: float,
        interval: tuple[float, float],
        confidence: float,
        note: str = "",
        doubt: str = "",
    ) -> TableAnswer:
        among = "" if self.complete else f" among the about {self.present:,.0f} records that are present"
        doubt = doubt or self._few_present
        interval = min(interval), max(interval)  # counts that no law of the records explains reject all values
        return TableAnswer(question, estimate, interval, confidence, among, note, doubt=doubt, **self._paid)

    @property
    def _few_present(self) -> str:
        """What an answer begins with if most records may be missing or unreadable; else empty."""
        if self.complete or self.n is None:
            return ""
        present = PresentCount.of(self.noise, Fraction(2 * self.n - self.doubled[-1], 2), 0.95, self.n)
        kind = "finite numbers" if isinstance(self.cells, EdgeCells) else "present"
        return AnsweredRecords(kind, (present.about,), (present.interval,), (self.n,)).warning

    @property
    def doubt_about_a_mean(self) -> str:
        """What a mean begins with: that most records may be missing, or that some lie beyond the table; else empty."""
        return " ".join(filter(None, (self._few_present, self._clipped)))

    @property
    def _clipped(self) -> str:
        """What a mean begins with if records surely lie beyond the outermost edges; else empty."""
        open_ends = zip((0, -1), (self.cells.low, self.cells.high), strict=True)  # type: ignore[attr-defined]
        ends = [place for place, end in open_ends if math.isinf(end)]
        beyond = float(self.counts[ends].sum()) if ends else 0.0
        if not ends or beyond <= weighted(self.noise, [1] * len(ends)).beyond(SURELY):
            return ""
        return (
            f"About {beyond:,.0f} RECORDS LIE BEYOND the outermost edges, and count as these: this is not the mean of "
            "the records as they are. Make a table with a wider between=, or ask for the median."
        )

    def quantile(self, share: float, *, confidence: float = 0.95) -> TableAnswer:
        """The quantile below which this share of the present records lies, with an interval between edges.

        The interval is valid for every law of the records, ties and gaps included: its ends are found from the outside
        in, up to the first edge that is not rejected.

        Args:
            share: the share, such as 0.5 for the median.
            confidence: the confidence of the interval.
        """
        share = numbers.probability(share=share)
        error, possible = self._with_error(confidence)
        edges, places = self._edges, np.arange(self.cells.count)

        def rejected(edge: int, side: int) -> bool:
            statistic = self._share_statistic(places <= edge, share)
            law = np.where(places <= edge, share / (edge + 1), (1 - share) / (len(edges) - edge))
            if not error / 16 < statistic.rough_tail(law, possible, side) < 8 * error:
                return statistic.surely_beyond(law, possible, side, error / 2)
            return statistic.tail(law, possible, side) <= error / 2

        # Too few records below an edge: the quantile is not below it. Too many: it is not at or above it.
        first = numbers.first_true(lambda edge: edge >= len(edges) or not rejected(edge, 0), 0)
        last = (
            len(edges)
            - 1
            - numbers.first_true(lambda passed: passed >= len(edges) or not rejected(len(edges) - 1 - passed, 1), 0)
        )
        low = self.cells.low if first == 0 else float(edges[first - 1])  # type: ignore[attr-defined]
        high = self.cells.high if last == len(edges) - 1 else float(edges[last + 1])  # type: ignore[attr-defined]
        estimate = self._crossing(share, low, high)
        return self._answer(f"{number_text(share)} quantile", estimate, (low, high), confidence)

    def _crossing(self, share: float, low: float, high: float) -> float:
        """Where the noisy counts, made monotone, cross a share; linear within a cell, and within the interval."""
        edges, below = self._edges, np.cumsum(self.counts)[:-1]
        rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
        crossing = float(np.interp(share * float(self.counts.sum()), rising, edges))
        return min(max(crossing, low), high)

    def median(self, *, confidence: float = 0.95) -> TableAnswer:
        """The median of the present records, with an interval between edges.

        Args:
            confidence: the confidence of the interval.
        """
        return replace(self.quantile(0.5, confidence=confidence), question="median")

    def mean(self, *, confidence: float = 0.95) -> TableAnswer:
        """The mean of the present records, those beyond the outermost edges moved to these, with an interval.

        The interval is valid for every law of the records. As a table does not know where in a cell its records lie, it
        is longer than that of ``estimate(data, "mean", ...)``.

        Args:
            confidence: the confidence of the interval.
        """
        error, possible = self._with_error(confidence)
        edges = self._edges
        if len(edges) < 2:
            raise InvalidInput("A mean needs at least two edges. Make a table with between= or more edges.")
        lows, highs = np.append(edges[0], edges), np.append(edges, edges[-1])
        low = self._mean_end(lows, error / 2, possible)
        high = -self._mean_end(-highs, error / 2, possible)
        middle = float(((lows + highs) / 2) @ self.counts) / self.present
        note = (
            f"Records beyond {_short(edges[0])} and {_short(edges[-1])} count as these. A cell counts as its "
            "lower edge for the one end and as its upper edge for the other."
        )
        question = f"mean of the records, clipped to [{_short(edges[0])}, {_short(edges[-1])}]"
        return self._answer(
            question, min(max(middle, low), high), (low, high), confidence, note, self.doubt_about_a_mean
        )

    def _mean_end(self, values: Floats, error: float, possible: Sequence[int]) -> float:
        """A lower confidence bound on the mean of the values that cells stand for.

        Half of the error probability is for the bound on the variance.
        """
        low, high = float(values.min()), float(values.max())
        unit = (values - low) / (high - low)
        anchors = np.arange(ANCHORS + 1) / ANCHORS
        variance = self._variance((unit, unit), anchors, error / 4, possible)
        statistic = self.statistic(unit, max(FINE, 4 * len(values)))
        best = lower_end(lambda mean: statistic.bound(unit, mean, variance, possible), (0.0, 1.0), 3 * error / 4)
        return low + best * (high - low)

    def _variance(self, ends: tuple[Floats, Floats], anchors: Floats, error: float, possible: Sequence[int]) -> float:
        """An upper confidence bound on the variance of values in [0, 1].

        The variance is at most the mean square about any place. The nearest of some places to the mean is taken, and
        all of them share the error probability.

        Args:
            ends: the smallest and the largest value that each cell stands for.
            anchors: the places, chosen before the table was made.
            error: the largest probability of a variance above the bound.
            possible: the numbers of present records to consider.
        """
        about = float(np.clip((ends[0] + ends[1]) / 2 @ self.counts / self.present, 0.0, 1.0))
        place = float(anchors[np.argmin(np.abs(anchors - about))])
        squares = np.maximum(np.square(ends[0] - place), np.square(ends[1] - place))
        most = float(squares.max())
        if np.ptp(squares) <= 1e-9 * most:  # no count tells more: two values that are equally far from the place
            return most
        statistic = self.statistic(squares / most, 16 * FINE)

        def tail(less: float) -> float:
            mean = -less
            return statistic.bound(squares / most, mean, mean * (1 - mean), possible, upper=False)

        return -lower_end(tail, (-1.0, 0.0), error / len(anchors)) * most

    # Answers with a model ---------------------------------------------------------------------------------------------

    def estimate(
        self, family: str, *, between: tuple[float, float] | None = None, confidence: float = 0.95, **ranges: Any
    ) -> TableEstimate:
        """The unknown parameters of a family, an interval for each, and whether the family fits the table.

        Args:
            family: a family with one or two question marks, such as "normal(mean=?, sd=?)".
            between: between which numbers the first unknown parameter lies. Default: what the table covers.
            confidence: the confidence of each interval.
            **ranges: the range of another parameter, such as ``sd_between=(0.5, 8)``.
        """
        from privatest.estimates.table_family import TableFamily, read_family  # start-up: for models alone

        named: dict[str, Any] = {} if between is None else {"": between}
        for name, value in ranges.items():
            if not name.endswith("_between"):
                raise InvalidInput(f"{name}= is not known. Ranges are named after their parameter: sd_between=(1, 5).")
            if value is not None:
                named[name.removesuffix("_between")] = value
        error, possible = self._with_error(confidence)
        box = read_family(family, named, self._edges if isinstance(self.cells, EdgeCells) else np.zeros(0))
        unknown = TableFamily(box, self, tuple(possible))
        return TableEstimate(
            family=family,
            parameters=tuple(unknown.names),
            estimates=tuple(unknown.best),
            intervals=tuple(unknown.interval(which, error) for which in range(len(unknown.free))),
            confidence=confidence,
            pvalue=unknown.fit_pvalue(EXTREME),
            doubt=" ".join(filter(None, (self._few_present, unknown.beyond))),
            **self._paid,
        )

    def test(
        self,
        null: Any,
        alternative: Any,
        *,
        alpha: float | None = None,
        between: tuple[float, float] | None = None,
        **ranges: Any,
    ) -> Release | TableFit:
        """Decide between two hypotheses: decision, p-value and which of the two fits, at no cost.

        A missing record counts as one between the two. For error rates see ``release.design``. If another parameter is
        unknown, "normal(mean<=26, sd=?)" against "normal(mean>=28, sd=?)", the p-value is that of P, the largest over
        the values of that parameter which the table leaves possible.

        Args:
            null, alternative: P and Q, distributions or sets, as for :func:`privatest.design`.
            alpha: the largest type I error; None: the largest advantage, or 0.05 beside a question mark.
            between: beside a question mark, the range of the parameter that has the bound. Default: what the table
                covers.
            **ranges: the range of the parameter with the question mark, such as ``sd_between=(0.5, 8)``.
        """
        if isinstance(null, str) and "?" in null:
            return self._test_beside(null, alternative, 0.05 if alpha is None else alpha, between, ranges)
        test = self.power(null, alternative, alpha=alpha)
        released = test.release(str(test.total(np.array(self.doubled, dtype=object))), simulated=self.simulated)
        return replace(released, design=test, persons=self.persons)

    def _test_beside(
        self, null: str, alternative: Any, alpha: float, between: Any, ranges: Mapping[str, Any]
    ) -> TableFit:
        """The test of a bound on one parameter beside another that is unknown."""
        from privatest.estimates.table_family import LOST, TableFamily, one_sided, read_family  # start-up: for models

        alpha = numbers.probability(alpha=alpha)
        error, possible = self._with_error(1 - min(alpha, EXTREME))
        text, name, cut, below = one_sided(null, "null")
        other_text, other, _, other_below = one_sided(alternative, "alternative")
        if (other_text, other) != (text, name) or other_below == below:
            raise InvalidInput(
                f"alternative={shown(alternative)} must bound the same parameter of the same family as "
                f"null={shown(null)}, from the other side."
            )
        named = {key.removesuffix("_between"): value for key, value in ranges.items()}
        named |= {} if between is None else {name: between}
        box = read_family(text, named, self._edges if isinstance(self.cells, EdgeCells) else np.zeros(0))
        unknown = TableFamily(box, self, tuple(possible))
        lost = max(min(alpha, EXTREME) - error, 0.0)
        beside = unknown.one_sided_pvalue(unknown.names.index(name), cut, below=below, lost=LOST * alpha)
        pvalue = min(beside + lost, 1.0)
        return TableFit("alternative" if pvalue <= alpha else "null", pvalue, alpha, null, **self._paid)

    def power(self, null: Any, alternative: Any, *, alpha: float | None = None) -> TableTest:
        """The test of two hypotheses by this table, with its exact error rates ``alpha`` and ``beta``.

        Args:
            null, alternative: P and Q, distributions or sets, as for :func:`privatest.design`.
            alpha: the largest type I error; None: the largest advantage.
        """
        from privatest.estimates.table_test import table_test  # start-up: for tests alone

        if self.n is None or isinstance(self.cells, GroupedCells):
            raise InvalidInput("A test by a table needs the number of records, which this table does not tell.")
        return table_test(
            self.cells, self.noise, self.n, self._notion, null, alternative, alpha=alpha, around=self._around
        )

    def fit(self, null: Any, *, alpha: float = 0.05) -> TableFit:
        """Whether the records come from one distribution, at no cost.

        Args:
            null: the distribution P.
            alpha: the level of the decision.
        """
        from privatest.estimates.table_family import fit_pvalue  # start-up: for models alone

        alpha = numbers.probability(alpha=alpha)
        law = as_distribution(null, "null")
        error, possible = self._with_error(1 - min(alpha, EXTREME))
        lost = max(min(alpha, EXTREME) - error, 0.0)
        pvalue = min(fit_pvalue(self, law, possible) + lost, 1.0)
        return TableFit("alternative" if pvalue <= alpha else "null", pvalue, alpha, law.describe(), **self._paid)

    @property
    def _around(self) -> Neighbourhood:
        return make_neighbourhood(self.neighbours, self.rows)

    @property
    def _notion(self) -> Notion:
        return Pure(self.epsilon) if self.privacy is None else as_notion(self.privacy)

    @property
    def _paid(self) -> dict[str, Any]:
        """What an answer says of the table's price."""
        return {name: getattr(self, name) for name in ("epsilon", "neighbours", "simulated", "privacy", "persons")}

    def describe(self, *, confidence: float = 0.95) -> tuple[TableAnswer, ...]:
        """The mean, the median and both quartiles of the present records or, of labels, the share of each.

        Args:
            confidence: the confidence of each interval.
        """
        if isinstance(self.cells, LabelCells):
            return tuple(self.share(label=label, confidence=confidence) for label in self.cells.labels)
        quartiles = (self.quantile(share, confidence=confidence) for share in (0.25, 0.75))
        return self.mean(confidence=confidence), self.median(confidence=confidence), *quartiles

    # What is shown ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the cells and the noise, so that the table can be analysed elsewhere."""
        document = super().to_dict()
        parts = {"cells": self.cells.to_dict(), "noise": self.noise.to_dict(), "names": self.names}
        return {**document, **parts, "counts": self.counts.tolist()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Table:
        """What :meth:`to_dict` wrote."""
        with reading("the table"):
            parts = {"cells": cells_from_dict(document["cells"]), "noise": noise_from_dict(document["noise"])}
            table = super().from_dict({**document, **parts})
            if len(table.doubled) != table.cells.count + 1 or not all(type(one) is int for one in table.doubled):
                raise InvalidDocument(f"The table has {table.cells.count} cells and {len(table.doubled)} counts.")
            return table

    def to_csv(self) -> str:
        """The table as CSV text: a line for each cell, and one for missing records.

        Columns: the cell, its noisy count, and the length from it that the true count exceeds with probability 5%. The
        first line of the last column holds all else that an analysis needs, as JSON; :meth:`from_csv` reads it.
        """
        about = {name: value for name, value in self.to_dict().items() if name not in ("doubled", "counts", "names")}
        text, away = io.StringIO(), self.noise.beyond(0.025)
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["cell", "count", "noise", "about"])
        for place, (name, twice) in enumerate(zip([*self.names, "missing"], self.doubled, strict=True)):
            lines.writerow([name, f"{twice / 2:g}", away, "" if place else json.dumps(about, allow_nan=False)])
        return text.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> Table:
        """Return the table that :meth:`to_csv` wrote.

        Args:
            text: CSV as :meth:`to_csv` returns it.
        """
        with reading("the table"):
            rows = list(csv.DictReader(io.StringIO(text)))
            return cls.from_dict(
                {**json.loads(rows[0]["about"]), "doubled": [round(2 * float(row["count"])) for row in rows]}
            )

    def save(self, path: str | Path) -> None:
        """Write the table to a file: as CSV if its name ends with .csv, else as JSON.

        Args:
            path: the file.
        """
        csv_file = str(path).lower().endswith(".csv")
        Path(path).write_text(self.to_csv() if csv_file else json.dumps(self.to_dict(), allow_nan=False), "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Table:
        """The table in a file that :meth:`save` wrote.

        Args:
            path: the file.
        """
        text = Path(path).read_text("utf-8")
        if str(path).lower().endswith(".csv"):
            return cls.from_csv(text)
        return cls.from_dict(document_from_json(text))

    def plot(self, ax: Axes | None = None) -> Axes:
        """The noisy counts, each with the interval that holds the true count with probability 95%."""
        from privatest import pictures

        return pictures.table(self, ax)

    @property
    def sentence(self) -> str:
        """What was released."""
        return (
            f"{self.cells.count} noisy counts were released; each is within {self.noise.beyond(0.025)} of the true "
            "count with probability 95%. Whatever is computed from them costs no more privacy."
        )

    def lines(self) -> list[tuple[str, str, str]]:
        """The counts, each under the name of its cell, then the facts."""
        counts = zip(self.names, self.counts.tolist(), strict=True)
        return [*((name, short(count), "records, with noise") for name, count in counts), *super().lines()]

    def facts(self) -> list[Fact]:
        """What the counts leave out, their noise, and what they cost."""
        spread = self.noise.beyond(0.025)
        return [
            Fact("missing", None if self.complete else self.missing, "missing or unreadable records, with noise"),
            Fact("noise", spread, f"the noise in each count, at most, with probability 95% ({self.noise.describe()})"),
            Fact("n", self.n, "records, public"),
            *self._ending(),
        ]


def bounded_mean(
    table: Table,
    noisy: Fraction,
    noise: Noise,
    units: int,
    window: tuple[float, float],
    middle: float,
    confidence: float,
    *,
    certified: bool,
) -> tuple[float, tuple[float, float]]:
    """The mean of the present records of a table, those beyond a window moved to its ends, and its interval.

    Args:
        table: a noisy table of the records, for their variance.
        noisy: the noisy total of their steps along the window, from -units/2 to units/2. A record's step is at most one
            below, and at most half of one above, its place.
        noise, units: the noise in the total, and the number of steps.
        window: the window.
        middle: a place near the mean that was chosen before the table was made.
        confidence: the confidence of the interval.
        certified: whether the interval holds for every law (Bentkus 2004); else it follows from a normal law.
    """
    error, possible = table._with_error(confidence)
    length = window[1] - window[0]
    edges = np.concatenate([[window[0]], np.clip(table._edges, *window), [window[1]]])
    unit = (edges - window[0]) / length
    total = float(noisy) / units

    def mean_of(number: float) -> float:
        return min(max(0.5 + total / number, 0.0), 1.0)

    if certified:
        place = np.array([(min(max(middle, window[0]), window[1]) - window[0]) / length])
        ends = np.maximum(unit[:-1] - 1.5 / units, 0.0), np.minimum(unit[1:] + 1.5 / units, 1.0)
        variance = table._variance(ends, place, error / 8, possible)
        law = [BoundedSum(number, weighted(noise, [1]), float(units)) for number in possible]

        def upper(mean: float) -> float:
            return max(one.at_least(total + one.n / 2, mean, variance) for one in law)

        def lower(less: float) -> float:
            return max(one.at_most(total + one.n / 2, -less, variance) for one in law)

        level = 7 * error / 16
        low, high = lower_end(upper, (0.0, 1.0), level), -lower_end(lower, (-1.0, 0.0), level)
    else:
        about, number = mean_of(table.present), table.present
        before, after = unit[:-1] - about, unit[1:] - about
        squares = (before**2 + before * after + after**2) / 3  # were records even within a cell
        doubt = math.sqrt(table.noise.variance * float(np.square(squares).sum()))  # a few records far away are unseen
        spread = max((float(squares @ np.maximum(table.counts, 0.0)) + doubt) / number, 1 / units**2)
        miscounted = 0.0 if table.complete else table.noise.variance * (about - 0.5) ** 2
        deviation = math.sqrt(number * spread + noise.variance / units**2 + miscounted) / number
        away = float(ndtri((1 + confidence) / 2)) * deviation
        low, high = about - away, about + away
    low, high = max(low - 0.5 / units, 0.0), min(high + 1.5 / units, 1.0)
    estimate = min(max(mean_of(table.present) + 0.5 / units, low), high)
    return window[0] + length * estimate, (window[0] + length * low, window[0] + length * high)


def lower_end(tail: Callable[[float], float], ends: tuple[float, float], level: float) -> float:
    """The smallest value of a parameter whose tail exceeds the level, to the safe side; the tail rises with it."""
    low, high = ends
    if low >= high or tail(low) > level:
        return low
    if tail(high) <= level:
        return high
    away = ENDS * (high - low)
    return max(float(brentq(lambda value: normal_gap(tail(value), level), low, high, xtol=away)) - 2 * away, low)


Tails = Callable[[float], tuple[Callable[[], float], Callable[[], float]]]
"""About the tail for a value of a parameter, and the exact one."""


def accepted_from(tails: Tails, way: tuple[float, float], level: float, scale: float | None = None) -> float:
    """The end of the values that are not rejected: found by the rough tails, then proven by exact ones.

    Guarantees: the exact tail at the end is at most the level, unless the end is that of the range.

    Args:
        tails: about the tail for a value, and the exact one; both rise along the way.
        way: from the end of the range, beyond which there is nothing, to a value that is surely not rejected.
        level: values whose tail is at most this are rejected.
        scale: about a standard error of the parameter.
    """
    outside, inside = way

    def gap(value: float) -> float:
        return normal_gap(tails(value)[0](), level)

    if gap(outside) > 0 and tails(outside)[1]() > level:
        return outside
    end = inside
    if gap(inside) > 0:
        end = float(brentq(gap, outside, inside, xtol=ENDS * abs(inside - outside))) if gap(outside) <= 0 else outside
    step = (scale or abs(end - outside)) * PROOF
    while step > 0 and tails(end)[1]() > level:
        end = max(end - step, outside) if outside < inside else min(end + step, outside)
        step *= 2
        if end == outside:
            break
    return end


def cell_names(cells: Cells) -> list[str]:
    """A name for each cell."""
    if isinstance(cells, GroupedCells):
        return [f"{group}: {name}" for group in cells.groups for name in cell_names(cells.inner)]
    if isinstance(cells, LabelCells):
        return [number_text(each) if isinstance(each, float) else str(each) for each in cells.labels] + (
            ["other"] if cells.others else []
        )
    if not isinstance(cells, EdgeCells):
        return [f"cell {place}" for place in range(cells.count)]
    edges = [_short(edge) for edge in cells.edges]
    inner = [f"{low} to {high}" for low, high in pairwise(edges)]
    first = f"below {edges[0]}" if cells.low == -math.inf else f"{_short(cells.low)} to {edges[0]}"
    last = f"from {edges[-1]} on" if cells.high == math.inf else f"{edges[-1]} to {_short(cells.high)}"
    return [first, *inner, last]


def _short(edge: float) -> str:
    """An edge as it is printed: the upper end of ``between`` is the next double, which belongs to it."""
    return number_text(float(f"{edge:.6g}"))
