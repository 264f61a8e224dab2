"""The design of a noisy table: its cells, the noise on their counts, and what it will be able to tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.charge_before_release import Draw
from privatest.decision.run import Budgeted, cost_fact, hidden_fact
from privatest.errors import InvalidInput, shown
from privatest.estimates.table import Table, cell_names
from privatest.facts import Fact
from privatest.numbers import Number, number_or_nan
from privatest.privacy import Noise, Notion, RandomSource, make_notion
from privatest.privacy.bulk_draws import draw_many, draw_rows
from privatest.privacy.canonical_noise import counts_guarantee, counts_noise
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notion import Neighbourhood, make_neighbourhood, notion_words
from privatest.scores import Cells, EdgeCells, GroupedCells, LabelCells
from privatest.unanswered_questions import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.decision import PrivateTest
    from privatest.engines import Records

MOST_CELLS = 1 << 14
"""The most cells of a table."""
RARE = 100.0
"""In nats: how rarely the noise may be larger than 64 bits hold, at most."""


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
    REQUEST_KEY: ClassVar[str] = "table"

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
        if self.noise.reach(RARE) > 1 << 61:
            raise InvalidInput(
                f"{notion_words(self.notion)} needs noise of about {math.sqrt(self.noise.variance):.3g} records in a "
                "count, more than 64 bits hold. Use a larger budget."
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

    def opened(self, source: Any, *, by: str | None = None, **where: Any) -> Any:
        """Open the records of a source, with their groups if the table has any.

        Args:
            source: the data, as for :meth:`run`.
            by: the column that says in which group a row is.
            **where: ``column`` and ``unit``, as for :meth:`run`.
        """
        if not isinstance(self.cells, GroupedCells):
            if by is not None:
                raise InvalidInput(f"by={shown(by)} needs a table with groups. Design it with groups=[...].")
            return super().opened(source, **where)
        if by is None and not _is_open(source):
            raise InvalidInput("by is missing: which column says in which group a row is?")
        return super().opened(source, group=by, **where).grouped(self.cells.groups)

    def run(self, data: Any, *, by: str | None = None, **words: Any) -> Table:
        """Run it once on data.

        Args:
            data: as for :meth:`PrivateTest.run`.
            by: the column that says in which group a row is, for a table with groups.
            **words: ``column``, ``unit``, ``odd_epsilon``, ``ledger``, ``dataset``, ``request`` and ``rng``, as for
                :meth:`PrivateTest.run`.
        """
        payer = {name: words.pop(name, None) for name in ("ledger", "dataset", "request", "rng", "odd_epsilon")}
        where = {"column": words.pop("column", None), "unit": words.pop("unit", None), "by": by}
        if words:
            raise InvalidInput(f"A table's run has no argument {next(iter(words))!r}.")
        return self.run_opened(None, data, where, **payer)

    def check(self, records: Records) -> None:
        """Refuse records of a wrong type, or of a wrong number if that is public."""
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
        complete = complete and not isinstance(self.cells, GroupedCells)  # a record may be in no group
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
            self.max_rows_per_unit,
            epsilon=self.epsilon,
            neighbours=self.neighbours,
            simulated=simulated,
            privacy=self._privacy_text,
        )

    def power(self, null: Any, alternative: Any, *, alpha: float | None = None) -> PrivateTest:
        """The test of two hypotheses by a table of this design: its error rates are those of ``table.test``.

        Args:
            null, alternative: P and Q, as for :func:`privatest.design`.
            alpha: the largest type I error; None: the largest advantage.
        """
        from privatest.estimates.table_test import table_test  # start-up: for tests alone

        return table_test(
            self.cells, self.noise, self.n, self.notion, null, alternative, alpha=alpha, around=self.around
        )

    @property
    def title(self) -> str:
        """Names the table."""
        return f"Table of {self.cells.count} cells"

    def facts(self) -> list[Fact]:
        """The cells, the noise and the cost."""
        return [
            Fact("cells", self.cells.count, f"from {cell_names(self.cells)[0]!r} to {cell_names(self.cells)[-1]!r}"),
            *self._drowned(),
            Fact("noise", self.noise.beyond(0.025), "the noise in each count, at most, with probability 95%"),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public" if self.neighbours == "replace" else "records, as expected"),
            hidden_fact(self.neighbours, persons=self.max_rows_per_unit > 1),
            Fact("max_rows_per_unit", self._rows, "rows of one person that count, where unit= names the person"),
        ]

    def _drowned(self) -> list[Fact]:
        """A warning where the noise exceeds the counts of most cells, with a number of cells that would do."""
        away = self.noise.beyond(0.025)
        if self.n >= away * self.cells.count:
            return []
        enough = max(self.n // max(away, 1), 2)
        return [Fact("doubt", f"the noise exceeds the counts of most cells; at most {enough} cells would do")]

    def plot(self, ax: Axes | None = None, *, release: Table | None = None) -> Axes:
        """The noisy counts of a release, each with the interval that holds the true count."""
        from privatest import pictures

        if release is None:
            raise InvalidInput("A table's design has no picture of its own. Run it, and plot its release.")
        return pictures.table(release, ax)

    def __hash__(self) -> int:
        return hash((self.cells.count, self.notion, self.n))


def _is_open(source: Any) -> bool:
    """Whether these are records that were opened before."""
    return hasattr(type(source), "promise")


def table_cells(
    between: Any = None,
    cells: Any = None,
    edges: Sequence[float] | None = None,
    labels: Sequence[Any] | None = None,
    groups: Sequence[Any] | None = None,
) -> Cells:
    """The cells that a user asks for: equal cells between two numbers, between edges, or labels.

    Outside of ``between`` there are two more cells, so that the share beyond it is measured. With ``groups`` each group
    has all of these cells.
    """
    inner = _ungrouped_cells(between, cells, _listed(edges), _listed(labels))
    groups = _listed(groups)
    if groups is None:
        return inner
    from privatest.engines.key_columns import group_name  # start-up: most tables have no groups

    names = [group_name(one) for one in groups] if isinstance(groups, Iterable) else []
    named = tuple(name for name in names if name)
    if not named or len(set(named)) != len(names):
        raise InvalidInput(
            f"groups={shown(groups)} must be a list of names, each once: the groups that a row may be in. They are "
            "public, so list them whether or not the data have such rows."
        )
    return GroupedCells(named, inner)


def _listed(entries: Any) -> Any:
    """A list; of a text, such as "18,30,45", its parts: numbers where all of them are, else labels."""
    if not isinstance(entries, str):
        return entries
    parts = [part.strip() for part in entries.split(",") if part.strip()]
    try:
        return [float(part) for part in parts]
    except ValueError:
        return parts


def _ungrouped_cells(between: Any, cells: Any, edges: Sequence[float] | None, labels: Sequence[Any] | None) -> Cells:
    """The cells of a table without groups."""
    given = {"between": between, "edges": edges, "labels": labels}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInput(
            f"A table needs one of between=(low, high), edges=[...] and labels=[...], and {len(named)} were given."
        )
    if labels is not None:
        return LabelCells(tuple(labels), others=True)
    if edges is None:
        low, high = range_ends(between)
        count = numbers.positive_integer(cells=16 if cells is None else cells)
        if count > MOST_CELLS - 2:
            raise InvalidInput(f"cells={count} must be at most {MOST_CELLS - 2}.")
        # A record at the upper end lies within.
        edges = [*np.linspace(low, high, count + 1)[:-1].tolist(), math.nextafter(high, math.inf)]
    elif cells is not None:
        raise InvalidInput(f"cells={shown(cells)} goes with between=, and edges= was given. Leave one out.")
    found = [number_or_nan(edge) for edge in edges]
    for before, after in pairwise(found):
        if not before < after:
            raise InvalidInput(f"edges: {before:g} is followed by {after:g}. Give them in increasing order, each once.")
    if not found or not all(map(math.isfinite, found)):
        raise InvalidInput(f"edges={shown(list(edges))} must be at least one finite number.")
    return EdgeCells(tuple(found))


def range_ends(between: Any, name: str = "between") -> tuple[float, float]:
    """Two finite numbers, the lower one first."""
    try:
        low, high = map(number_or_nan, between)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"{name}={shown(between)} must be two finite numbers, the lower one first.")
    return low, high


@known_arguments
def design_table(
    *,
    n: int,
    between: tuple[float, float] | None = None,
    cells: int | None = None,
    edges: Sequence[float] | None = None,
    labels: Sequence[Any] | None = None,
    null: Any = None,
    alternative: Any = None,
    groups: Sequence[Any] | None = None,
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
        edges: the edges between the cells, instead of ``between``; a list, or a text such as "18,30,45", as for labels
            and groups.
        labels: the labels that have a cell each, instead of ``between``; all other labels share one more.
        null, alternative: two distributions of numbers, instead of ``between``: the cells, at most ``cells``, are those
            by which this many records tell P from Q best. They are few where P and Q do not differ.
        groups: the groups that a row may be in, a public list: each group gets all of the cells, at no further cost.
        epsilon: the privacy loss of a run.
        privacy: a notion of privacy instead of ``epsilon``.
        neighbours: "replace" or "add-remove".
        max_rows_per_unit: the largest number of records that one person counts as.

    >>> design_table(between=(0, 120), cells=12, epsilon=1, n=500).cells.count
    14
    """
    notion = make_notion(epsilon, privacy)
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    noise, n = counts_noise(notion, around), numbers.positive_integer(n=n)
    if null is not None or alternative is not None:
        if null is None or alternative is None or not (between is edges is labels is None):
            raise InvalidInput("null= and alternative= place the cells: give both, and no between=, edges= or labels=.")
        from privatest.estimates.table_test import telling_edges  # start-up: most tables are for no pair

        most = numbers.positive_integer(cells=16 if cells is None else cells)
        edges, cells = telling_edges(null, alternative, noise, n, most), None
    return TableDesign(
        table_cells(between, cells, edges, labels, groups),
        noise,
        notion,
        n,
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
    by: str | None = None,
    groups: Sequence[Any] | None = None,
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
        by: the column that says in which group a row is; ``table.groups`` then has a table for each group, in the order
            of ``groups``, and all together cost what one costs. Two columns are crossed in this way.
        groups: the groups that a row may be in, as for :func:`design_table`. A row in none of them counts as missing.
            May be left out if ``by`` is an enumeration of PostgreSQL, whose schema lists them.
        epsilon, privacy: what the table costs.
        n: the number of records expected, with ``neighbours="add-remove"``; else it is counted.
        neighbours, max_rows_per_unit: as for :func:`design_table`.
    """
    from privatest import engines  # planning needs none of them

    if by is None and groups is not None:
        raise InvalidInput("by is missing: by= names the column of the groups, and groups= lists those of a row.")
    table_cells(between, cells, edges, labels, groups)  # what cannot be answered is refused before data are opened
    if n is None and neighbours != "replace":
        raise InvalidInput(
            f"n is missing: with neighbours={neighbours!r} the number of records is not public. Say how many you "
            "expect: n=..."
        )
    records = None
    if n is None or (by is not None and groups is None):
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit, group=by)
        n = records.count() if n is None else n
        if by is not None and groups is None and not (groups := records.declared_groups()):
            raise InvalidInput(
                f"groups is missing: by={shown(by)} names the column of the groups, whose type does not list them (an "
                "enumeration of PostgreSQL does). List those that a row may be in: groups=[...]. The list is public: "
                "taken from the data it would say who is in them."
            )
    made = design_table(
        n=n,
        between=between,
        cells=cells,
        edges=edges,
        labels=labels,
        groups=groups,
        epsilon=epsilon,
        privacy=privacy,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
    )
    where: Mapping[str, str | None] = {"column": column, "unit": unit, "by": by}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return made.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)
