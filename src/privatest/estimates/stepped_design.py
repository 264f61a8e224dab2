r"""Estimates in two steps from disjoint parts of the records: means, medians, quantiles, and two unknown parameters.

The records are divided at random, without looking at them. A noisy table of the first, smaller part says about where
and how widely the records lie. The cells of the second table, of all other records, are placed accordingly, and the
answer is computed from that table alone.

Privacy: a record is in one of the two parts, so each table may cost the whole budget: the price of a run is that of one
table. (The parts are drawn from coins that do not depend on the records. Given the coins, replacing a record changes
one part only.) A person of several rows may be in both parts; the losses of the rows then add up to the same.

Coverage: given the first table, the second is a table of independent records with cells that do not depend on them. So
its intervals keep their confidence, whatever the first step found, for every law of the records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from privatest import numbers
from privatest.charge_before_release import Draw
from privatest.decision.run import Budgeted, check_costs, cost_fact, hidden_fact
from privatest.errors import InvalidInput, shown
from privatest.estimates.table import Table, TableAnswer, TableEstimate, bounded_mean
from privatest.estimates.table_design import range_ends
from privatest.facts import Fact
from privatest.hypotheses import as_distribution
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Gaussian, Noise, Notion, Pure, RandomSource, canonical_noise, make_notion
from privatest.privacy.bulk_draws import draw_many, draw_rows, draw_some
from privatest.privacy.canonical_noise import counts_guarantee, counts_noise
from privatest.privacy.notion import Neighbourhood, make_neighbourhood, notion_words
from privatest.scores import BoundedCells, Cells, DyadicCells, EdgeCells
from privatest.scores.score_law import cell_law

if TYPE_CHECKING:
    from privatest.engines import Records
    from privatest.estimates.table_family import TableFamily

FIRST = 0.15
"""The share of the records that the first step reads."""
MOST_FIRST = 20_000
"""The first step reads no more records than this: it needs no more."""
FINE_BITS = 18
"""The range is divided into about 2 to the power of this many cells; every edge of a table is one of theirs."""
COARSE = 24
"""Cells of the first table."""
WINDOW = 16
"""Cells of the second table where a quantile is expected."""
AWAY = 1.6
"""How far that window reaches on either side, in standard errors of the first step."""
OUTSIDE = tuple(3.0**k for k in range(1, 5))
"""Lengths of further cells on either side of the window, in lengths of its cells."""
SPREADS = (0.2, 0.45, 0.75, 1.1, 1.6, 2.3, 3.4, 5.2, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""Distances of edges from the middle, in spreads of the records, for a mean; no two neighbours are as far apart."""
LEVELS = (0.06, 0.2, 0.4, 0.6, 0.8, 0.94)
"""Quantiles of the fitted member of a family at which the second table has its edges."""
UNITS = 1 << 12
"""A record counts as one of this many steps of its range in the total for a mean."""
SUMMING = Fraction(1, 2)
"""The part of the budget of a mean's second step that its total costs; the table for the variance costs the rest."""
CLEARLY = 3.0
"""A cell surely has records if its noisy count is above this many standard deviations of the noise."""
LEAST_RECORDS = 20
CERTIFIED, APPROXIMATE = "certified", "approximate"
_QUANTILE = re.compile(r"quantile\(\s*([0-9.eE+-]+)\s*\)")


def is_stepped(question: Any) -> bool:
    """Whether this is a question for a table in steps: a mean, a median, a quantile, or a family with two unknowns."""
    if not isinstance(question, str):
        return False
    return quantile_share(question) is not None or question.strip() == "mean" or question.count("?") == 2


def quantile_share(question: str) -> float | None:
    """The share of "median" or of "quantile(0.9)"; None for another question."""
    text = question.strip()
    match = _QUANTILE.fullmatch(text)
    if text == "median":
        return 0.5
    return None if match is None else numbers.probability(share=float(match[1]))


@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedDesign(Budgeted[Any]):
    """An estimate from two noisy tables of disjoint parts of the records.

    Guarantees: a run meets the notion, which is checked when the object is made; the interval holds the true value with
    a probability of at least ``confidence`` (for a mean with guarantee "approximate": about).

    Attributes:
        question_text: "mean", "median", "quantile(0.9)", or a family with two question marks.
        between: the range of the records or, for a family, of its first unknown parameter.
        ranges: the ranges of other parameters, by name.
        confidence: the confidence of the interval.
        notion: the notion of privacy that a run meets.
        n: the number of records, which is public.
        first: the number of records that the first step reads.
        cells: fine cells; every edge of a table is one of theirs.
        noise: the noise on each count of the first table.
        last_noise: the noise on each count of the second table.
        total_noise: the noise on the total, for a mean.
        guarantee: "certified" or "approximate".
        max_rows_per_unit: the largest number of records that one person counts as.
    """

    FORMAT: ClassVar[str] = "privatest/steps/1"
    KIND: ClassVar[str] = "estimate in steps"
    REQUEST_KEY: ClassVar[str] = "steps"

    question_text: str
    between: tuple[float, float] | None
    ranges: tuple[tuple[str, tuple[float, float]], ...] = ()
    confidence: float
    notion: Notion
    n: int
    first: int
    cells: Cells
    noise: Noise
    last_noise: Noise
    total_noise: Noise | None = None
    guarantee: str = CERTIFIED
    max_rows_per_unit: int = 1

    def __post_init__(self) -> None:
        numbers.probability(confidence=self.confidence)
        numbers.choice((CERTIFIED, APPROXIMATE), guarantee=self.guarantee)
        rows, around = self.max_rows_per_unit, self.around
        if not is_stepped(self.question_text) or not isinstance(self.cells, DyadicCells | BoundedCells):
            raise InvalidInput(f"question={shown(self.question_text)} is not answered in steps.")
        if not 1 <= self.first < self.n:
            raise InvalidInput(f"first={self.first} must lie between 1 and n={self.n}: each part needs records.")
        if (self.total_noise is None) == (self.question_text == "mean"):
            raise InvalidInput("total_noise goes with the question 'mean', which needs it.")
        noises = [self.noise, self.last_noise, *([] if self.total_noise is None else [self.total_noise])]
        if not all(noise.total_leaves for noise in noises):
            raise InvalidInput("The noise must allow noisy counts to be released, not a decision alone.")
        if rows > 1 and not (isinstance(self.notion, Pure) or all(isinstance(noise, Gaussian) for noise in noises)):
            raise InvalidInput(
                f"max_rows_per_unit={rows}: under {notion_words(self.notion)} an estimate in steps hides one row of "
                "each person. Use max_rows_per_unit=1, a pure or Gaussian notion, or pt.tabulate."
            )
        check_costs(counts_guarantee(self.noise, around), self.notion)
        total = [] if self.total_noise is None else [self.total_noise.guarantee(UNITS * rows)]
        check_costs([*counts_guarantee(self.last_noise, around), *total], self.notion)

    @property
    def around(self) -> Neighbourhood:
        """Which data sets are neighbours."""
        return make_neighbourhood("replace", self.max_rows_per_unit)

    @property
    def record_cells(self) -> Cells:
        """The fine cells."""
        return self.cells

    @property
    def outcome(self) -> type[Any]:
        """The class of its releases."""
        return TableEstimate if "?" in self.question_text else TableAnswer

    def check(self, records: Records) -> None:
        """Refuse records of a wrong type or number."""
        from privatest.engines.records import check_count, counting_score  # planning needs no engine

        records.check(counting_score(self.cells))
        check_count(records.count(), self.n)

    # The draw: two noisy tables ---------------------------------------------------------------------------------------

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Whether no record can be missing, the noisy counts of both tables, where the second has its edges, a total.

        Both tables are drawn here, so that the parts of the records are never drawn twice. What is computed between
        the two depends on the first table's noisy counts alone.
        """
        counts = np.array(records.histogram(self.cells, partial(draw_rows, source)), dtype=np.int64)
        declared = records.declared
        complete = declared.content in ("numbers", "truths") and not declared.may_leave((-math.inf, math.inf))
        part, rest = self.parts(counts, source)
        first = self._noisy(part, self.first_edges, self.noise, source)
        table = self._table(self.first_edges, first, self.noise, self.first, complete=complete)
        edges = self.second_edges(table)
        drawn: list[Any] = [complete, first, [int(edge) for edge in edges]]
        drawn.append(self._noisy(rest, edges, self.last_noise, source))
        if self.total_noise is not None:
            steps = self._steps(self.window(table))
            total = sum(int(one) * int(count) for one, count in zip(steps, rest, strict=False) if count)
            drawn.append(str(total + self.total_noise.draw(source)))
        return drawn

    def parts(self, counts: Integers, source: RandomSource) -> tuple[Integers, Integers]:
        """How many records of each fine cell are in the first part and in the second, whatever the records hold.

        Args:
            counts: the number of records in each fine cell, that of odd records last.
            source: where randomness comes from.
        """
        first = np.array(draw_some(source, counts.tolist(), self.first), dtype=np.int64)
        return first, counts - first

    def _noisy(self, counts: Integers, edges: Integers, noise: Noise, source: RandomSource) -> list[int]:
        """Twice the noisy counts of the cells between some of the fine edges, and last that of odd records."""
        merged = np.add.reduceat(counts[:-1], np.concatenate([[0], edges + 1]))
        doubled = 2 * np.append(merged, counts[-1]) + draw_many(noise, len(merged) + 1, source)
        return [int(one) for one in doubled]

    def _table(
        self, edges: Integers, doubled: Sequence[int], noise: Noise, n: int, *, complete: bool, simulated: bool = False
    ) -> Table:
        """The table of one step."""
        return Table(
            EdgeCells(tuple(self._edge_values[edges].tolist())),
            tuple(doubled),
            noise,
            n,
            complete,
            self.max_rows_per_unit,
            epsilon=self.epsilon,
            simulated=simulated,
            privacy=self._privacy_text,
        )

    @cached_property
    def _edge_values(self) -> Floats:
        edges: Floats = np.asarray(self.cells.edges, dtype=np.float64)  # type: ignore[attr-defined]
        return edges

    def _nearest_edges(self, values: Floats) -> Integers:
        """The fine edges nearest to some numbers, each once, in increasing order; at least two of them."""
        last = len(self._edge_values) - 1
        places = np.clip(np.searchsorted(self._edge_values, values), 1, last)
        nearer = values - self._edge_values[places - 1] < self._edge_values[places] - values
        nearest = np.unique(np.where(nearer, places - 1, places))
        return nearest if len(nearest) > 1 else np.array([max(nearest[0] - 1, 0), min(nearest[0] + 1, last)])

    @cached_property
    def first_edges(self) -> Integers:
        """The edges of the first table, by their places among the fine edges; public."""
        if "?" not in self.question_text:
            return np.unique(np.linspace(0, len(self._edge_values) - 1, COARSE + 1).round().astype(np.int64))
        return self._nearest_edges(_spread_edges(self.box, 2 * COARSE))

    def second_edges(self, first: Table) -> Integers:
        """The edges of the second table, by their places among the fine edges: post-processing, which never fails.

        Args:
            first: the first table.
        """
        low, high = float(self._edge_values[0]), float(self._edge_values[-1])
        if "?" in self.question_text:
            try:
                with np.errstate(all="ignore"):
                    family = self._family(first, [first.n or 1])
                    values = np.asarray(family.box.member(_filled(family, family.best)).ppf(np.array(LEVELS)))
            except Exception:  # of noisy counts alone: an error here would be released, and the draw had again
                return self.first_edges
            if self.box.family.discrete:
                values = np.round(values) - 0.5
            return self._nearest_edges(np.clip(values[np.isfinite(values)], low, high))
        if self.question_text == "mean":
            middle, spread = _middle_and_spread(first)
            start, end = _seen(first)
            spread = max(spread, (end - start) / 16)  # of most records alike, such as zeros
            away = spread * np.array(SPREADS)
            inner = np.concatenate([middle - away, [middle], middle + away])
            values = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
            return self._nearest_edges(values)
        share = quantile_share(self.question_text) or 0.5
        start, end = _window(first, share)
        inner = np.linspace(start, end, WINDOW + 1)
        away = np.cumsum((end - start) / WINDOW * np.array(OUTSIDE))
        return self._nearest_edges(np.clip(np.concatenate([start - away, inner, end + away]), low, high))

    def window(self, first: Table) -> tuple[int, int]:
        """The fine edges between which records are summed for a mean; those beyond count as the nearer one.

        Args:
            first: the first table.
        """
        last = len(self._edge_values) - 1
        if self.guarantee == CERTIFIED:
            return 0, last
        start, end = _seen(first)
        cell = float(np.diff(first._edges).max())
        away = 1.5 * (end - start) + cell  # tails reach further than the cells in which records are seen
        low, high = (int(place) for place in np.searchsorted(self._edge_values, [start - away, end + away]))
        return min(max(low - 1, 0), last - 1), min(max(high, 1), last)

    def _steps(self, window: tuple[int, int]) -> Integers:
        """What a record of each fine cell adds to the total: about -UNITS/2 to UNITS/2 along the window."""
        low, high = window
        places = np.clip(np.arange(self.cells.count) - 0.5, low, high)
        steps: Integers = np.floor((places - low) / (high - low) * UNITS).astype(np.int64) - UNITS // 2
        return steps

    # The release ------------------------------------------------------------------------------------------------------

    def tables(self, draw: Sequence[Any], *, simulated: bool = False) -> tuple[Table, Table]:
        """Both noisy tables of a draw; whatever else is computed from them costs nothing more.

        Args:
            draw: the result of :meth:`draw`, as in ``release.drawn``.
            simulated: whether the caller's generator drew it.
        """
        complete, first, edges, second = draw[:4]
        places, common = np.array(edges), {"complete": complete, "simulated": simulated}
        return (
            self._table(self.first_edges, first, self.noise, self.first, **common),
            self._table(places, second, self.last_noise, self.n - self.first, **common),
        )

    def release(self, draw: Sequence[Any], *, simulated: bool = False) -> Any:
        """The answer of a draw.

        Args:
            draw: the result of :meth:`draw`.
            simulated: whether the caller's generator drew it.
        """
        first, table = self.tables(draw, simulated=simulated)
        if "?" in self.question_text:
            return table.estimate(
                self.question_text,
                between=self.between,
                confidence=self.confidence,
                **{f"{name}_between": ends for name, ends in self.ranges},
            )
        share = quantile_share(self.question_text)
        if share is not None:
            return self._beyond(
                replace(table.quantile(share, confidence=self.confidence), question=self.question_text), table
            )
        return self._mean(first, table, draw)

    def _beyond(self, answer: TableAnswer, table: Table) -> TableAnswer:
        """The answer, with what lies beyond the range: measured, and bounded."""
        outside = np.array([0, table.cells.count - 1])
        count = float(table.counts[outside].sum())
        most = (max(count, 0.0) + math.sqrt(2) * table.noise.beyond(0.025)) / table.present
        low, high = self.between or (0.0, 0.0)
        share = max(count, 0.0) / table.present
        note = (
            f"About {share:.1%} of the records lie beyond {low:g} and {high:g}, hardly more than {min(most, 1.0):.1%}."
        )
        among = "" if table.complete else " among the records that are present"
        return replace(answer, note=f"{answer.note} {note}".strip(), among=among)

    def _mean(self, first: Table, table: Table, draw: Sequence[Any]) -> TableAnswer:
        """The mean of the records, those beyond the window moved to its ends."""
        assert self.total_noise is not None
        places = np.array(draw[2])
        low, high = self.window(first)
        start, end = float(self._edge_values[low]), float(self._edge_values[high])
        estimate, interval = bounded_mean(
            table,
            Fraction(draw[4]),
            self.total_noise,
            UNITS,
            (start, end),
            float(self._edge_values[_densest(places)]),
            self.confidence,
            certified=self.guarantee == CERTIFIED,
        )
        note = f"Records beyond {start:.5g} and {end:.5g} count as these."
        if self.guarantee != CERTIFIED:
            edges = np.append(table._edges, math.inf)
            outside = (edges <= start) | (np.append(-math.inf, table._edges) >= end)
            lost = max(float(table.counts[outside].sum()), 0.0) / table.present
            note = f"APPROXIMATE, by a normal law: not for every distribution. {note} These are about {lost:.1%}."
        question = f"mean of the records, clipped to [{start:.5g}, {end:.5g}]"
        answer = TableAnswer(question, estimate, interval, self.confidence, "", note, self.guarantee, **table._paid)
        return self._beyond(replace(answer, doubt=table.doubt_about_a_mean), table)

    def expected_width(self, at: Any) -> Any:
        """About the length of the interval if the records come from this distribution; of two parameters, of each.

        It is the length for tables whose counts are what is expected on average.

        Args:
            at: the distribution, such as "normal(3, 2)".
        """
        masses = cell_law(self.cells, as_distribution(at, "at"))
        edges, drawn, place = self.first_edges, list[Any]([True]), 0
        for number in (self.first, self.n - self.first):
            counts = np.add.reduceat(masses[:-1], np.concatenate([[0], edges + 1])) * number
            drawn.append([*(int(2 * one) for one in np.rint(counts)), 0])
            if place == 0:
                table = self._table(edges, drawn[1], self.noise, number, complete=True)
                edges, place = self.second_edges(table), 1
                drawn.append([int(edge) for edge in edges])
        if self.total_noise is not None:
            mean = float(self._steps(self.window(table)).astype(np.float64) @ masses[:-1])
            drawn.append(str(round(mean * (self.n - self.first))))
        release = self.release(drawn, simulated=True)
        ends = release.intervals if isinstance(release, TableEstimate) else (release.interval,)
        widths = [high - low for low, high in ends]
        return dict(zip(release.parameters, widths, strict=True)) if isinstance(release, TableEstimate) else widths[0]

    # Families ---------------------------------------------------------------------------------------------------------

    @cached_property
    def box(self) -> Any:
        """The family and the ranges of its unknown parameters."""
        from privatest.estimates.table_family import read_family  # start-up: for families alone

        named: dict[str, Any] = {} if self.between is None else {"": self.between}
        return read_family(self.question_text, named | dict(self.ranges), np.zeros(0))

    def _family(self, table: Table, possible: Sequence[int]) -> TableFamily:
        from privatest.estimates.table_family import TableFamily  # start-up: for families alone

        return TableFamily(self.box, table, tuple(possible))

    # What is shown ----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """A heading."""
        return f"Estimate of {self.question_text}"

    def facts(self) -> list[Fact]:
        """The question, the steps and the cost."""
        words = "of the interval" if self.guarantee == CERTIFIED else "of the interval, about: by a normal law"
        return [
            Fact("question", self.question_text, "what is estimated"),
            Fact("between", self.between),
            Fact("confidence", self.confidence, words),
            Fact("guarantee", self.guarantee),
            cost_fact(self.notion, "of one run: each record is in one of the two steps"),
            Fact("n", self.n, "records, public"),
            Fact("first", self.first, "records, drawn at random, whose noisy table says where to look"),
            hidden_fact("replace", persons=self.max_rows_per_unit > 1),
        ]

    def plot(self, ax: Any = None, *, release: Any = None) -> Any:
        """The second noisy table of a release."""
        if release is None or release.drawn is None:
            raise InvalidInput("An estimate in steps has no picture before its run. Run it, and plot its release.")
        return self.tables(release.drawn, simulated=release.simulated)[1].plot(ax)

    def __hash__(self) -> int:
        return hash((self.question_text, self.between, self.notion, self.n))


def _seen(table: Table) -> tuple[float, float]:
    """Two edges between which all cells lie whose noisy counts are clearly above 0."""
    edges, clear = table._edges, np.flatnonzero(table.counts > CLEARLY * math.sqrt(table.noise.variance))
    if not len(clear):
        return float(edges[0]), float(edges[-1])
    return float(edges[max(clear[0] - 1, 0)]), float(edges[min(clear[-1], len(edges) - 1)])


def _densest(edges: Integers) -> int:
    """The edge with the nearest neighbours, which is the middle of the cells for a mean."""
    apart = edges[2:] - edges[:-2]
    return int(edges[1 + int(np.argmin(apart))]) if len(apart) else int(edges[0])


def _window(table: Table, share: float) -> tuple[float, float]:
    """About where the quantile of this share lies: interpolated, as far as the first step may err."""
    edges, counts = table._edges, table.counts
    below = np.cumsum(counts)[:-1]
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
    rising = np.maximum.accumulate(rising) + 1e-9 * np.arange(len(rising))
    total, spread = max(float(counts.sum()), 1.0), share * (1 - share)
    away = AWAY * math.sqrt(spread * ((table.n or 1) + len(counts) * table.noise.variance))
    low, high = (float(np.interp(share * total + sign * away, rising, edges)) for sign in (-1, 1))
    return (low, high) if low < high else (float(edges[0]), float(edges[-1]))


def _middle_and_spread(table: Table) -> tuple[float, float]:
    """About the median and the standard deviation, were the records normal."""
    edges, below = table._edges, np.cumsum(table.counts)[:-1]
    rising = (np.maximum.accumulate(below) + np.minimum.accumulate(below[::-1])[::-1]) / 2
    rising = np.maximum.accumulate(rising) + 1e-9 * np.arange(len(rising))
    total = max(float(table.counts.sum()), 1.0)
    low, middle, high = (float(np.interp(share * total, rising, edges)) for share in (0.2, 0.5, 0.8))
    return middle, (high - low) / (2 * float(ndtri(0.8)))


def _filled(family: TableFamily, values: Sequence[float]) -> list[float]:
    """All parameters of a member, from the unknown ones."""
    every = list(family.box.low)
    for which, value in zip(family.free, values, strict=True):
        every[which] = float(value)
    return every


def _members(box: Any) -> list[Any]:
    """Members of a family all over the ranges of its unknown parameters."""
    axes = []
    for which in box.free:
        low, high = box.low[which], box.high[which]
        axes.append(np.geomspace(low, high, 5) if low > 0 and high > 4 * low else np.linspace(low, high, 9))
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    members = []
    for values in places:
        every = list(box.low)
        for which, value in zip(box.free, values.tolist(), strict=True):
            every[which] = value
        members.append(box.member(every))
    return members


def _spread_edges(box: Any, count: int) -> Floats:
    """Edges between which the members of a family, mixed, have equal probabilities."""
    levels = np.linspace(0.01, 0.99, 25)
    every = np.sort(np.concatenate([np.asarray(member.ppf(levels), dtype=np.float64) for member in _members(box)]))
    every = every[np.isfinite(every)]
    quantiles: Floats = np.quantile(every, np.linspace(0.0, 1.0, count + 1))
    return np.unique(np.round(quantiles) - 0.5) if box.family.discrete else quantiles


def _family_cells(box: Any) -> Cells:
    """Fine cells for the records of every member of a family."""
    ends = np.concatenate([np.asarray(member.ppf(np.array([1e-4, 0.5, 1 - 1e-4]))) for member in _members(box)])
    ends = ends[np.isfinite(ends)]
    low, high = float(ends.min()), float(ends.max())
    if box.family.discrete:
        return _dyadic_cells(math.floor(low) - 1.5, min(math.ceil(high) + 1.5, low + (1 << FINE_BITS) / 4), whole=True)
    if low >= 0 and high > 100 * max(float(np.median(ends)), 1e-300):
        positive = ends[ends > 0]
        return BoundedCells(0.0, float(np.exp(np.mean(np.log(positive)))), FINE_BITS - 2)
    return _dyadic_cells(low, high)


def _dyadic_cells(low: float, high: float, *, whole: bool = False) -> DyadicCells:
    """About 2^18 equal cells from low to high, or cells of length 1/2, and an open one on either side."""
    exponent = 1 if whole else math.floor(FINE_BITS - math.log2(high - low))
    if not -1000 <= exponent <= 1000 or max(abs(low), abs(high)) * 2.0**exponent > 2**52:
        raise InvalidInput(f"between=({low:g}, {high:g}) is too short, too long or too far from 0. Choose other units.")
    first, last = math.floor(math.ldexp(low, exponent)) - 1, math.floor(math.ldexp(high, exponent)) + 1
    return DyadicCells(exponent, first, last - first + 1)


def design_steps(
    question: str,
    *,
    between: tuple[float, float] | None,
    ranges: Mapping[str, Any],
    epsilon: Number | None,
    privacy: Any,
    n: int,
    confidence: float,
    guarantee: str = CERTIFIED,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> SteppedDesign:
    """Design an estimate in two steps; arguments as for :func:`privatest.design_estimate`."""
    if neighbours != "replace":
        raise InvalidInput(
            f"neighbours={shown(neighbours)}: an estimate in steps divides a public number of records. Use "
            "pt.tabulate(..., neighbours='add-remove'), whose table answers the same questions."
        )
    text = question.strip()
    if numbers.positive_integer(n=n) < LEAST_RECORDS:
        raise InvalidInput(f"n={n}: an estimate in two steps needs {LEAST_RECORDS} records at least.")
    numbers.choice((CERTIFIED, APPROXIMATE), guarantee=guarantee)
    if guarantee != CERTIFIED and text != "mean":
        raise InvalidInput(f"guarantee={guarantee!r} goes with 'mean': other intervals are exact. Leave it out.")
    notion = make_notion(epsilon, privacy)
    around = make_neighbourhood("replace", max_rows_per_unit)
    mean, named = text == "mean", tuple((name, (float(ends[0]), float(ends[1]))) for name, ends in ranges.items())
    if "?" in text:
        from privatest.estimates.table_family import read_family  # start-up: for families alone

        named_ends: dict[str, Any] = {} if between is None else {"": between}
        cells: Cells = _family_cells(read_family(text, named_ends | dict(ranges), np.zeros(0)))
        ends = None if between is None else range_ends(between)
    else:
        if between is None:
            raise InvalidInput(
                f"between is missing: between which two numbers do the records lie? It bounds the {text}."
            )
        if ranges:
            raise InvalidInput(f"{next(iter(ranges))}_between goes with a family, and {text!r} has none. Leave it out.")
        ends = range_ends(between)
        cells = _dyadic_cells(*ends)
    return SteppedDesign(
        question_text=text,
        between=ends,
        ranges=named,
        confidence=float(numbers.probability(confidence=confidence)),
        notion=notion,
        n=n,
        first=min(max(round(FIRST * n), 1), MOST_FIRST),
        cells=cells,
        noise=counts_noise(notion, around),
        last_noise=counts_noise(notion.split(1 - SUMMING) if mean else notion, around),
        total_noise=canonical_noise(notion.split(SUMMING), UNITS * around.rows) if mean else None,
        guarantee=guarantee,
        max_rows_per_unit=around.rows,
    )
