r"""A noisy table: how many records each cell has, with noise; released once, it answers many questions.

The cells are public. Each count gets noise for which all counts together meet the notion of privacy, whatever their
number: replacing a record moves two counts by one each. Everything that is computed from the released counts costs no
more privacy.

Each answer is a weighted sum of the noisy counts, whose law is known exactly for every law of the records
(:mod:`privatest.laws.linear`). If n is public, the same number may be subtracted from all weights: this changes the
noise only, and makes it smallest if the weights then sum to about 0.

Missing and unreadable records have a cell of their own, so how many records are present is known up to noise only.
Given that number M the records that are present are independent, so every p-value and every interval is the worst over
the M in an interval, whose error probability is paid for (Berger and Boos 1994).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from privatest import numbers
from privatest.charge import Draw
from privatest.decision.inversion import normal_gap
from privatest.decision.run import Budgeted, Outcome, cost_fact, hidden_fact
from privatest.errors import InvalidInput, shown
from privatest.facts import Fact
from privatest.hypotheses.families import number_text
from privatest.laws import NoisyTotal
from privatest.laws.linear import BoundedSum, WeightedNoise, weighted
from privatest.numbers import Floats, Integers, Number, number_or_nan
from privatest.privacy import Noise, Notion, RandomSource, make_notion
from privatest.privacy.bulk_draws import draw_many, draw_rows
from privatest.privacy.canonical import counts_guarantee, counts_noise
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notions import Neighbourhood, make_neighbourhood, notion_words
from privatest.scores import Cells, EdgeCells, LabelCells
from privatest.unanswered import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records

FINE = 256
"""The largest weight of a statistic, in units of the smallest that is told apart."""
MISCOUNTED = 0.05
"""The share of an interval's error probability that is spent on a wrong number of present records."""
MOST_CELLS = 1 << 14
NUMBERS = 3
"""At how many numbers of present records, from the smallest to the largest possible, a tail is computed."""
ENDS = 1e-7
"""The accuracy of an interval's ends, as a share of the range. Ends are moved outwards by as much."""
PROOF = 1e-3
"""The first step outwards if the exact tail at a rough end exceeds the level, as a share of the scale."""
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
    """

    KIND: ClassVar[str] = "Answer from a table"

    question: str
    estimate: float
    interval: tuple[float, float]
    confidence: float
    among: str = ""
    note: str = ""

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        low, high = self.interval
        text = f"The {self.question} is about {self.estimate:.4g}, between {low:.4g} and {high:.4g}{self.among}."
        return f"{text} {self.note}".rstrip()

    def facts(self) -> list[Fact]:
        """The answer, and what the table cost."""
        holds = f"holds the {self.question} with probability {self.confidence:g} at least, for every law of the records"
        return [
            Fact("question", self.question, f"what is estimated{self.among}"),
            Fact("estimate", self.estimate),
            Fact("interval", self.interval, holds),
            Fact("confidence", self.confidence),
            Fact("note", self.note or None),
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
        column: what the cells are cells of, for titles.
    """

    KIND: ClassVar[str] = "Noisy table"

    cells: Cells
    doubled: tuple[int, ...]
    noise: Noise
    n: int | None = None
    complete: bool = False
    column: str = ""

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

    def statistic(self, weights: Floats, fine: int | None = FINE) -> Statistic:
        """The weighted sum of the noisy counts.

        Args:
            weights: a weight for each cell.
            fine: the largest weight after rounding to integers; None if the weights are integers already.
        """
        scale = 1.0 if fine is None else fine / max(float(np.abs(weights - weights.mean()).max()), 1e-300)
        whole = np.rint(np.append(weights, 0.0) * scale).astype(np.int64)
        if self.n is not None:  # the same number less for all: the sum over all records changes by a known number
            every = whole[:-1] if self.complete else whole
            whole = whole - round(float(every.mean()))
        if self.complete or self.n is None:
            whole[-1] = 0
        return Statistic(whole, self.noise, self.n, sum(int(w) * count for w, count in zip(whole, self.doubled)))

    def _with_error(self, confidence: float) -> tuple[float, list[int]]:
        """The error probability that is left for an answer, and the numbers of present records to consider."""
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
        chosen, words = self._chosen(above, below, between, label)
        error, possible = self._with_error(confidence)

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
        return self._told(f"share {words}", min(max(middle, low), high), (low, high), confidence)

    def _chosen(self, above: Any, below: Any, between: Any, label: Any) -> tuple[np.ndarray[Any, Any], str]:
        """Which cells are meant, and in words."""
        given = {"above": above, "below": below, "between": between, "label": label}
        named = [name for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise InvalidInput(
                f"share needs one of above=, below=, between= and label=, and {len(named)} were given. Name one."
            )
        places = np.arange(self.cells.count)
        if named == ["label"]:
            if not isinstance(self.cells, LabelCells) or label not in self.cells.position:
                raise InvalidInput(f"label={shown(label)} must be a label of the table: {', '.join(self.names)}.")
            return places == self.cells.position[label], f"of {label}"
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
        if self.complete and self.n is not None:
            return self.statistic(chosen.astype(np.float64), None)
        return self.statistic(chosen - share)

    def _told(
        self, question: str, estimate: float, interval: tuple[float, float], confidence: float, note: str = ""
    ) -> TableAnswer:
        among = "" if self.complete else f" among the about {self.present:,.0f} records that are present"
        paid = {name: getattr(self, name) for name in ("epsilon", "neighbours", "simulated", "privacy", "persons")}
        return TableAnswer(question, estimate, interval, confidence, among, note, **paid)

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
        first = numbers.first_true(lambda edge: edge == len(edges) or not rejected(edge, 0), 0)
        last = (
            len(edges)
            - 1
            - numbers.first_true(lambda passed: passed == len(edges) or not rejected(len(edges) - 1 - passed, 1), 0)
        )
        low = self.cells.low if first == 0 else float(edges[first - 1])  # type: ignore[attr-defined]
        high = self.cells.high if last == len(edges) - 1 else float(edges[last + 1])  # type: ignore[attr-defined]
        estimate = self._crossing(share, low, high)
        return self._told(f"{number_text(share)} quantile", estimate, (low, high), confidence)

    def _crossing(self, share: float, low: float, high: float) -> float:
        """Where the noisy counts, made monotone, cross a share; linear within a cell, and within the interval."""
        edges, below = self._edges, np.cumsum(self.counts)[:-1]
        rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
        found = float(np.interp(share * float(self.counts.sum()), rising, edges))
        return min(max(found, low), high)

    def median(self, *, confidence: float = 0.95) -> TableAnswer:
        """The median of the present records, see :meth:`quantile`."""
        return replace(self.quantile(0.5, confidence=confidence), question="median")

    def mean(self, *, confidence: float = 0.95) -> TableAnswer:
        """The mean of the present records, those beyond the outermost edges moved to these, with an interval.

        The interval is valid for every law of the records. As a table does not know where in a cell its records lie, it
        is longer than that of ``estimate(data, "mean", ...)``.

        Args:
            confidence: the confidence of the interval.
        """
        edges = self._edges
        if len(edges) < 2:
            raise InvalidInput("A mean needs at least two edges. Make a table with between= or more edges.")
        error, possible = self._with_error(confidence)
        lows, highs = np.append(edges[0], edges), np.append(edges, edges[-1])
        low = self._mean_end(lows, error / 2, possible)
        high = -self._mean_end(-highs, error / 2, possible)
        middle = float(((lows + highs) / 2) @ self.counts) / self.present
        note = (
            f"Records beyond {number_text(edges[0])} and {number_text(edges[-1])} count as these. A cell counts as its "
            "lower edge for the one end and as its upper edge for the other."
        )
        return self._told("mean", min(max(middle, low), high), (low, high), confidence, note)

    def _mean_end(self, values: Floats, error: float, possible: Sequence[int]) -> float:
        """A lower confidence bound on the mean of the values that cells stand for.

        Half of the error probability is for the bound on the variance.
        """
        low, high = float(values.min()), float(values.max())
        unit = (values - low) / (high - low)
        variance = self._variance(unit, error / 4, possible)
        statistic = self.statistic(unit, max(FINE, 4 * len(values)))
        best = lower_end(lambda mean: statistic.bound(unit, mean, variance, possible), (0.0, 1.0), 3 * error / 4)
        return low + best * (high - low)

    def _variance(self, unit: Floats, error: float, possible: Sequence[int]) -> float:
        """An upper confidence bound on the variance of values in [0, 1].

        The variance is at most the mean square about any place. The nearest of some places to the mean is taken, and
        all of them share the error probability.
        """
        about = float(np.clip(unit @ self.counts / self.present, 0.0, 1.0))
        place = round(about * ANCHORS) / ANCHORS
        squares = (unit - place) ** 2
        most = float(squares.max())
        statistic = self.statistic(squares / most, 4 * FINE)

        def tail(less: float) -> float:
            mean = -less
            return statistic.bound(squares / most, mean, mean * (1 - mean), possible, upper=False)

        return -lower_end(tail, (-1.0, 0.0), error / (ANCHORS + 1)) * most

    # What is shown ----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """What the table counts."""
        return f"{self.KIND} of {self.column}" if self.column else self.KIND

    @property
    def sentence(self) -> str:
        """What was released."""
        return (
            f"{self.cells.count} noisy counts were released; each is within {self.noise.beyond(0.025)} of the true "
            "count with probability 95%. Whatever is computed from them costs no more privacy."
        )

    def facts(self) -> list[Fact]:
        """The counts, and what they cost."""
        spread = self.noise.beyond(0.025)
        return [
            *(Fact(name, count, "records, with noise") for name, count in zip(self.names, self.counts, strict=True)),
            Fact("missing", None if self.complete else self.missing, "missing or unreadable records, with noise"),
            Fact("noise", spread, f"the noise in each count, at most, with probability 95% ({self.noise.describe()})"),
            Fact("n", self.n, "records, public"),
            *self._ending(),
        ]


@dataclass(frozen=True, eq=False)
class Statistic:
    """A weighted sum of noisy counts, and its law for every law of the records.

    Attributes:
        weights: an integer for each cell, and last that of the missing records.
        noise: the noise on each count.
        n: the number of all records, if it is public.
        doubled: twice the observed sum.
    """

    weights: Integers
    noise: Noise
    n: int | None
    doubled: int

    @cached_property
    def combined(self) -> WeightedNoise:
        """The noise of the sum."""
        return weighted(self.noise, self.weights.tolist())

    def tail(self, law: Floats, possible: Sequence[int], side: int) -> float:
        """The largest probability of at most (side 0) or at least (side 1) this sum over the possible numbers.

        Args:
            law: the probability of each cell for a record that is present.
            possible: the numbers of present records to consider.
            side: which tail.
        """
        support, place = np.unique(self.weights[:-1], return_inverse=True)
        masses = np.bincount(place, weights=law, minlength=len(support))
        found = 0.0
        for number in possible:
            seen, total = self._seen(number), NoisyTotal(support, masses, number, self.combined)
            found = max(found, total.sf(seen - Fraction(1, 2)) if side else total.cdf(seen))
        return found

    def _seen(self, number: int) -> Fraction:
        """The observed sum over the records that are present, if these are so many."""
        return Fraction(self.doubled, 2) - (0 if self.n is None else (self.n - number) * int(self.weights[-1]))

    def rough_tail(self, law: Floats, possible: Sequence[int], side: int) -> float:
        """About :meth:`tail`, by Edgeworth's series to the fourth cumulant: to look for an end before it is proven."""
        weights = self.weights[:-1].astype(np.float64)
        mean = float(law @ weights)
        second, third, fourth = (float(law @ (weights - mean) ** k) for k in (2, 3, 4))
        squares = float(np.square(self.weights.astype(np.float64)).sum())
        fourths = float((self.weights.astype(np.float64) ** 4).sum())
        found = 0.0
        for number in possible:
            variance = number * second + self.noise.variance * squares
            if variance <= 0:
                return 1.0
            skewness = number * third / variance**1.5
            excess = (number * (fourth - 3 * second**2) + self._fourth * fourths) / variance**2
            sign = -1.0 if side else 1.0
            away = sign * (float(self._seen(number)) - number * mean) / math.sqrt(variance)
            polynomial = (
                sign * skewness / 6 * (away**2 - 1)
                + excess / 24 * (away**3 - 3 * away)
                + skewness**2 / 72 * (away**5 - 10 * away**3 + 15 * away)
            )
            density = math.exp(-min(away * away, 1400.0) / 2) / math.sqrt(2 * math.pi)
            tail = 0.5 * math.erfc(-away / math.sqrt(2)) - density * polynomial
            found = max(found, min(max(tail, 0.5 * math.erfc(-away / math.sqrt(2)) / 8), 1.0))
        return found

    @cached_property
    def _fourth(self) -> float:
        """The fourth cumulant of the noise on a count."""
        t = 0.2 / math.sqrt(max(self.noise.variance, 1.0))
        log = math.log(float(np.real(self.noise.characteristic(np.array([t]))[0])))
        return 24 * (log + self.noise.variance * t * t / 2) / t**4

    def surely_beyond(self, law: Floats, possible: Sequence[int], side: int, level: float) -> bool:
        """Whether a tail is proven to be at most the level: by Cantelli's inequality or, if it is near, exactly."""
        weights = self.weights[:-1].astype(np.float64)
        mean = float(law @ weights)
        spread = float(law @ (weights - mean) ** 2)
        for number in possible:
            away = (float(self._seen(number)) - number * mean) * (1 if side else -1)
            if away <= 0:
                return False
            variance = number * spread + self.combined.variance
            if variance / (variance + away * away) > level:
                return self.tail(law, possible, side) <= level
        return True

    def bound(
        self, values: Floats, mean: float, variance: float, possible: Sequence[int], *, upper: bool = True
    ) -> float:
        """A bound on the probability of at least (at most) this sum for every law with this mean and this variance.

        Args:
            values: the values in [0, 1] of which the weights are multiples, up to rounding and a number added to all.
            mean: the mean of the values.
            variance: an upper bound on their variance.
            possible: the numbers of present records to consider.
            upper: whether the upper tail is meant.
        """
        unit = float(np.ptp(self.weights[:-1]) / np.ptp(values))
        offsets = self.weights[:-1] - unit * values
        shift, rounded = float(offsets.mean()), float(np.ptp(offsets))
        found = 0.0
        for number in possible:
            fixed = 0 if self.n is None else (self.n - number) * int(self.weights[-1])
            away = (self.doubled / 2 - fixed - number * shift) / unit
            law = BoundedSum(number, self.combined, unit)
            slack = number * rounded / unit
            tail = law.at_least(away - slack, mean, variance) if upper else law.at_most(away + slack, mean, variance)
            found = max(found, tail)
        return found


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
    found = inside
    if gap(inside) > 0:
        found = float(brentq(gap, outside, inside, xtol=ENDS * abs(inside - outside))) if gap(outside) <= 0 else outside
    step = (scale or abs(found - outside)) * PROOF
    while step > 0 and tails(found)[1]() > level:
        found = max(found - step, outside) if outside < inside else min(found + step, outside)
        step *= 2
        if found == outside:
            break
    return found


def cell_names(cells: Cells) -> list[str]:
    """A name for each cell."""
    if isinstance(cells, LabelCells):
        return [str(label) for label in cells.labels] + (["other"] if cells.others else [])
    if not isinstance(cells, EdgeCells):
        return [f"cell {place}" for place in range(cells.count)]
    edges = [number_text(float(f"{edge:.6g}")) for edge in cells.edges]
    inner = [f"{low} to {high}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
    return [f"below {edges[0]}", *inner, f"from {edges[-1]} on"]


@dataclass(frozen=True, eq=False)
class TableDesign(Budgeted[Table]):
    """A designed table: its cells and the noise on their counts.

    Guarantees: a run meets ``notion``: all counts together hide the rows of one person, which is checked when the
    object is made, however it is made.

    Attributes:
        cells: the cells, which are public.
        noise: the noise on each count.
        notion: the notion of privacy that a run meets.
        n: the number of records, public; with neighbours "add-remove" the number expected.
        neighbours: which data sets are neighbours.
        max_rows_per_unit: the largest number of records that one person counts as.
    """

    FORMAT: ClassVar[str] = "privatest/table/1"
    KIND: ClassVar[str] = "table"
    ASKED: ClassVar[str] = "table"

    cells: Cells
    noise: Noise
    notion: Notion = field(metadata={"key": "privacy"})
    n: int
    neighbours: str = "replace"
    max_rows_per_unit: int = 1

    def __post_init__(self) -> None:
        if not self.noise.total_leaves or not adds_up_within(counts_guarantee(self.noise, self.around), self.notion):
            raise InvalidInput(
                f"The noise on each count does not hide {self.max_rows_per_unit} rows of one person under "
                f"{notion_words(self.notion)}. Use more noise."
            )
        if not 2 <= self.cells.count <= MOST_CELLS:
            raise InvalidInput(f"A table of {self.cells.count} cells must have between 2 and {MOST_CELLS} of them.")

    @property
    def around(self) -> Neighbourhood:
        """Which data sets are neighbours."""
        return make_neighbourhood(self.neighbours, self.max_rows_per_unit)

    @property
    def record_cells(self) -> Cells:
        """The cells."""
        return self.cells

    @property
    def outcome(self) -> type[Table]:
        """A table."""
        return Table

    def check(self, records: Records) -> None:
        """Type, and number where it is public."""
        from privatest.engines.records import check_count, counting_score  # planning needs no engine

        records.check(counting_score(self.cells))
        if self.neighbours == "replace":
            check_count(records.count(), self.n)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Whether the type admits no missing record, and twice each noisy count."""
        counts = np.array(records.histogram(self.cells, partial(draw_rows, source)), dtype=np.int64)
        noisy = 2 * counts + draw_many(self.noise, len(counts), source)
        declared = records.declared
        complete = declared.content in ("numbers", "truths") and not declared.may_leave((-math.inf, math.inf))
        return [complete, [int(count) for count in noisy]]

    def release(self, draw: Any, *, simulated: bool = False) -> Table:
        """The table of a draw."""
        complete, doubled = draw
        return Table(
            self.cells,
            tuple(doubled),
            self.noise,
            self.n if self.neighbours == "replace" else None,
            complete,
            epsilon=self.epsilon,
            neighbours=self.neighbours,
            simulated=simulated,
            privacy=self._met,
        )

    @property
    def title(self) -> str:
        """Names the table."""
        return f"Table of {self.cells.count} cells"

    def facts(self) -> list[Fact]:
        """The cells, the noise and the cost."""
        return [
            Fact("cells", self.cells.count, f"from {cell_names(self.cells)[0]!r} to {cell_names(self.cells)[-1]!r}"),
            Fact("noise", self.noise.beyond(0.025), "the noise in each count, at most, with probability 95%"),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public" if self.neighbours == "replace" else "records, as expected"),
            hidden_fact(self.neighbours, persons=self.max_rows_per_unit > 1),
            Fact("max_rows_per_unit", self._rows, "rows of one person that count, where unit= names the person"),
        ]

    def plot(self, ax: Axes | None = None, *, release: Table | None = None) -> Axes:
        """The noisy counts with the noise's interval."""
        from privatest import pictures

        return pictures.table(self, ax, release=release)

    def __hash__(self) -> int:
        return hash((self.cells.count, self.notion, self.n))


def table_cells(
    between: Any = None, cells: Any = None, edges: Sequence[float] | None = None, labels: Sequence[Any] | None = None
) -> Cells:
    """The cells that a user asks for: equal cells between two numbers, between edges, or labels.

    Outside of ``between`` there are two more cells, so that the share beyond it is measured.
    """
    given = {"between": between, "edges": edges, "labels": labels}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInput(
            f"A table needs one of between=(low, high), edges=[...] and labels=[...], and {len(named)} were given."
        )
    if labels is not None:
        return LabelCells(tuple(labels), others=True)
    if edges is None:
        low, high = _range(between)
        count = numbers.positive_integer(cells=16 if cells is None else cells)
        if count > MOST_CELLS - 2:
            raise InvalidInput(f"cells={count} must be at most {MOST_CELLS - 2}.")
        edges = np.linspace(low, high, count + 1).tolist()
        edges[-1] = math.nextafter(high, math.inf)  # a record at the upper end lies within
    elif cells is not None:
        raise InvalidInput(f"cells={shown(cells)} goes with between=, and edges= was given. Leave one out.")
    found = [number_or_nan(edge) for edge in edges]
    for before, after in zip(found[:-1], found[1:], strict=True):
        if not before < after:
            raise InvalidInput(f"edges: {shown(before)} is followed by {shown(after)}. Give them in increasing order.")
    if not found or not all(map(math.isfinite, found)):
        raise InvalidInput(f"edges={shown(list(edges))} must be at least one finite number.")
    return EdgeCells(tuple(found))


def _range(between: Any) -> tuple[float, float]:
    """Two finite numbers, the lower one first."""
    try:
        low, high = map(number_or_nan, between)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"between={shown(between)} must be two finite numbers, the lower one first.")
    return low, high


@known_arguments
def design_table(
    *,
    n: int,
    between: tuple[float, float] | None = None,
    cells: int | None = None,
    edges: Sequence[float] | None = None,
    labels: Sequence[Any] | None = None,
    epsilon: Number | None = None,
    privacy: Any = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> TableDesign:
    """Design a noisy table.

    Args:
        n: the number of records, which is public; with ``neighbours="add-remove"`` the number expected.
        between: the range that is cut into ``cells`` cells of equal length; there is a further cell on either side.
        cells: the number of cells in ``between`` (16 if not given).
        edges: the edges between the cells, instead of ``between``.
        labels: the labels that have a cell each, instead of ``between``; all other labels share one more.
        epsilon: the privacy loss of a run.
        privacy: a notion of privacy instead of ``epsilon``.
        neighbours: "replace" or "add-remove".
        max_rows_per_unit: the largest number of records that one person counts as.

    >>> design_table(between=(0, 120), cells=12, epsilon=1, n=500).cells.count
    14
    """
    notion = make_notion(epsilon, privacy)
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    return TableDesign(
        table_cells(between, cells, edges, labels),
        counts_noise(notion, around),
        notion,
        numbers.positive_integer(n=n),
        around.kind,
        around.rows,
    )


@known_arguments
def tabulate(
    data: Any,
    *,
    column: str | None = None,
    between: tuple[float, float] | None = None,
    cells: int | None = None,
    edges: Sequence[float] | None = None,
    labels: Sequence[Any] | None = None,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> Table:
    """Release how many records each cell has, with noise.

    Args:
        data, column, unit, odd_epsilon, ledger, dataset, request, rng: as for every run on data.
        between, cells, edges, labels: the cells, as for :func:`design_table`.
        epsilon, privacy: what the table costs.
        n: the number of records expected, with ``neighbours="add-remove"``; else it is counted.
        neighbours, max_rows_per_unit: as for :func:`design_table`.
    """
    from privatest import engines  # planning needs none of them

    table_cells(between, cells, edges, labels)  # what cannot be asked is refused before the data are opened
    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public. Say how many you "
                "expect: n=..."
            )
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
    made = design_table(
        n=n,
        between=between,
        cells=cells,
        edges=edges,
        labels=labels,
        epsilon=epsilon,
        privacy=privacy,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return made.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)
