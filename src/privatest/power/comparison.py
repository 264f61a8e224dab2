"""Tables of sample sizes: of all tests at one epsilon, and of one goal under all notions of privacy.

:func:`compare` lists the paper's tests beside the lower bound and the optimum. :func:`compare_notions` lists the sample
sizes under each notion, for budgets that convert into one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from privatest import numbers
from privatest.bounds.lower_bound import lower_bound, records_bound
from privatest.bounds.optimum import optimum_sample_size
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import ADVANTAGE, Goal, Method, Problem
from privatest.decision.worst_case import sides_of
from privatest.errors import Infeasible, InvalidInput, MissingExtra
from privatest.facts import Tabled
from privatest.hypotheses import DiscretePair, Pair
from privatest.hypotheses.parse import hardest_pair, make_hypotheses
from privatest.numbers import Number, root
from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, make_notion
from privatest.privacy.notion import is_straight, notion_words
from privatest.progress_events import each, report_partial
from privatest.theory.coupling import Histograms, merge

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class ComparisonRow:
    """One test: its sample size (None if no number is enough) and the ratios to the bound and the optimum."""

    test: str
    n: int | None
    ratio_to_bound: float | None
    ratio_to_optimum: float | None
    private: bool
    note: str = ""


@dataclass(frozen=True)
class Comparison(Tabled):
    """The sample sizes of several tests at one epsilon, as a table sorted by sample size.

    Attributes:
        rows: one row for each test.
        epsilon: privacy loss at which tests are compared.
        advantage: the advantage that every test must reach.
        lower_bound: the number of records that every private test needs.
        optimum: the sample size of the best private test; None if the domain is too large to enumerate.
        null, alternative: short descriptions of P and Q.
    """

    rows: tuple[ComparisonRow, ...]
    epsilon: float
    advantage: float
    lower_bound: int
    optimum: int | None
    null: str = "P"
    alternative: str = "Q"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the sample sizes of the tests, the bound and the optimum."""
        from privatest import pictures

        return pictures.comparison(self, ax)

    HEADINGS: ClassVar[tuple[str, ...]] = ("test", "records", "/ bound", "/ best", "private", "note")

    @property
    def title(self) -> str:
        """What the table shows."""
        return f"Records for advantage {self.advantage:.4g} at epsilon {self.epsilon:g}"

    @property
    def ending(self) -> str:
        """The lower bound and the optimum."""
        best = "not enumerable" if self.optimum is None else f"{self.optimum:,}"
        return f"No private test needs fewer than {self.lower_bound:,}; the best possible: {best}."

    def entries(self) -> list[tuple[object, ...]]:
        """Return the rows."""
        return [(r.test, r.n, r.ratio_to_bound, r.ratio_to_optimum, r.private, r.note) for r in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def to_dataframe(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise MissingExtra("to_dataframe() needs pandas: pip install pandas.") from None
        return pd.DataFrame([asdict(row) for row in self.rows])

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)


def compare(null: Any, alternative: Any, *, epsilon: Number, advantage: float = ADVANTAGE) -> Comparison:
    """Compare the sample sizes of the paper's tests with the lower bound and, on small domains, the optimum.

    For sets of distributions sample sizes are those for the worst members, and the bounds are those of the two members
    that are the hardest to tell apart. Tests without a worst case over sets are left out.

    Args:
        null, alternative, epsilon: as for :func:`privatest.design`.
        advantage: the smallest 1 - alpha - beta of every test.
    """
    problem = Problem.of(null, alternative, epsilon=epsilon)
    budget, pair, simple = problem.privacy.equivalent, problem.pair, problem.hypotheses.simple
    plain = replace(problem, hypotheses=make_hypotheses(pair.null, pair.alternative))
    target = numbers.probability(advantage=advantage)
    bound = lower_bound(pair.null, pair.alternative, epsilon=budget, advantage=target)
    best = _optimum(pair, budget, target)
    rows: list[ComparisonRow] = []

    def add(name: str, n: int | None, private: bool, note: str) -> None:
        ratios = n and n / bound, n and best and n / best
        rows.append(ComparisonRow(name, n, *ratios, private, note))
        rows.sort(key=lambda row: row.n or math.inf)
        report_partial(tuple(rows))

    hardest = "" if simple else ", of the hardest pair alone"
    ours = [
        ("tight", Method.of(), "the default"),
        ("tight, paper's clamp", Method.of(clamp="paper"), ""),
        ("stair", Method.of(release="decision"), "only the decision leaves"),
        ("ncLLR", Method.of(test="ncllr"), "as the paper defines it"),
        ("scLLR", Method.of(test="scllr"), "as the paper defines it"),
        ("LLR", Method.of(test="llr"), f"not private{hardest}"),
        ("sLLR", Method.of(test="sllr"), f"not private at this epsilon{hardest}"),
    ]
    if sides_of(problem.hypotheses).above:  # a two-sided test is tight
        ours = [row for row in ours if row[0] not in ("stair", "ncLLR", "scLLR")]
    for name, method, note in each("the paper's tests", ours):
        tuner = Tuner.of(problem if method.private else plain, method, Goal(advantage=target))
        try:
            add(name, tuner.sample_size(), method.private, note)
        except Infeasible:
            add(name, None, method.private, "never reaches it with its threshold 0")
    if best is not None:
        add("optimum", best, True, "linear program over all tests")
    return Comparison(
        rows=tuple(rows),
        epsilon=float(budget),
        advantage=target,
        lower_bound=bound,
        optimum=best,
        null=problem.null.describe(),
        alternative=problem.alternative.describe(),
    )


def _optimum(pair: Any, epsilon: Number, target: float) -> int | None:
    if not isinstance(pair, DiscretePair):
        return None
    try:
        return optimum_sample_size(pair.null, pair.alternative, epsilon=epsilon, advantage=target)
    except InvalidInput:  # too large to enumerate, or an infinite domain
        return None


ASKED, WEAKER, STRONGER = "as asked", "follows from it", "is enough for it"
MOST_STRAIGHT, MOST_CURVED = 2000, 250
"""Largest number of histograms for which the best test is computed: by one linear program, or by about a dozen."""


@dataclass(frozen=True)
class NotionRow:
    """The sample sizes under one notion of privacy.

    Attributes:
        privacy: the text of the notion.
        relation: to the given notion: "as asked", "follows from it" (it promises less) or "is enough for it" (more).
        optimum: sample size of the best test; None if it is too large to compute.
        lower_bound: number of records that every test needs.
    """

    privacy: str
    relation: str
    optimum: int | None
    lower_bound: int


@dataclass(frozen=True)
class NotionComparison(Tabled):
    """The sample sizes of one goal under several notions, from the strongest to the weakest, as a table.

    Attributes:
        rows: one row for each notion.
        privacy: the given notion.
        goal: the goal of the sample sizes.
        null, alternative: short descriptions of P and Q.
    """

    rows: tuple[NotionRow, ...]
    privacy: str
    goal: str
    null: str
    alternative: str

    HEADINGS: ClassVar[tuple[str, ...]] = ("privacy", "", "best", "at least", "/ asked")

    @property
    def title(self) -> str:
        """What the table shows."""
        return f"Records for {self.goal} under the notions that {self.privacy} converts into or follows from"

    @property
    def ending(self) -> str:
        """How to read the table."""
        return "No test needs fewer than 'at least'; a dash: too many records for the best test to be computed."

    @property
    def requested(self) -> NotionRow:
        """The row of the given notion."""
        return next(row for row in self.rows if row.relation == ASKED)

    def entries(self) -> list[tuple[object, ...]]:
        """Return the rows, with their bounds as multiples of the given notion's."""
        own = self.requested.lower_bound
        return [(r.privacy, r.relation, r.optimum, r.lower_bound, r.lower_bound / own) for r in self.rows]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the sample sizes under each notion."""
        from privatest import pictures

        return pictures.notion_comparison(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def __iter__(self) -> Iterator[NotionRow]:
        return iter(self.rows)


LARGEST_COMPARED = 500
"""The largest epsilon of a notion that doubles can convert."""


def compare_notions(
    null: Any,
    alternative: Any,
    *,
    privacy: Any = None,
    epsilon: Number | None = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    delta: Number = Fraction(1, 10**6),
    order: Number = 2,
) -> NotionComparison:
    """Compare the sample sizes of a goal under the notions that the given one converts into, or that imply it.

    Args:
        null, alternative: P and Q. For sets the two members that are the hardest to tell apart are taken.
        privacy, epsilon: the given notion.
        delta: the delta of the row "approx"; if the given notion is approx, its own.
        order: the order of the row "renyi"; if the given notion is renyi, its own.
        advantage, alpha, beta: as for :func:`privatest.lower_bound`.

    Guarantees: every test that meets the given notion also meets each notion that "follows from it", whose budget is
    rounded up, so that its best test needs no more records. Every test that meets a notion that "is enough for it" also
    meets the given one.

    >>> found = compare_notions("bernoulli(0.4)", "bernoulli(0.6)", privacy="gdp(1)")
    >>> [(row.privacy, row.optimum) for row in found if row.privacy.startswith(("gdp", "pure"))]
    [('pure(0.8069)', 31), ('gdp(1)', 27)]
    """
    notion, goal = make_notion(epsilon, privacy), Goal.of(advantage=advantage, alpha=alpha, beta=beta)
    if notion.equivalent > LARGEST_COMPARED:
        raise InvalidInput(
            f"{notion_words(notion)} is more than {LARGEST_COMPARED}, beyond which notions do not convert. Use less."
        )
    of_approx = notion.delta if isinstance(notion, Approx) else Approx(1, delta).delta  # read and checked there
    of_renyi = notion.order if isinstance(notion, Renyi) else Renyi(order, 1).order
    pair = hardest_pair(null, alternative)
    kinds = _kinds(of_approx, of_renyi)
    stronger = {name: _enough(make, notion) for name, make in kinds.items() if name != notion.name}
    weaker = {name: _following(notion, name, of_approx, of_renyi) for name in kinds if name != notion.name}
    rows = [_row(each, STRONGER, pair, goal) for each in stronger.values() if each is not None]
    rows += [_row(notion, ASKED, pair, goal)]
    rows += [
        _row(each, WEAKER, pair, goal)
        for name, each in weaker.items()
        if each is not None and stronger.get(name) != each
    ]
    return NotionComparison(tuple(rows), notion.text, str(goal), pair.null.describe(), pair.alternative.describe())


def _kinds(delta: Fraction, order: Fraction) -> dict[str, Callable[[Fraction], Notion]]:
    """Return for each kind the function from a budget to the notion."""
    return {
        "pure": Pure,
        "gdp": Gdp,
        "zcdp": Zcdp,
        "approx": lambda loss: Approx(loss, delta),
        "renyi": lambda bound: Renyi(order, bound),
        "kl": Kl,
        "tv": lambda eta: Tv(min(eta, Fraction(9999, 10_000))),
    }


def _following(notion: Notion, name: str, delta: Number, order: Number) -> Notion | None:
    """Return the notion of a kind that follows from the given one, rounded up to four digits; None if none does."""
    parameter: dict[str, Number] = {"approx": {"delta": delta}, "renyi": {"order": order}}.get(name, {})
    try:
        converted = notion.into(name, **parameter)
    except InvalidInput:
        return None
    if isinstance(converted, Approx) and not converted.loss:
        return None  # this is no more than tv
    rounded = _rebuilt(converted, up=True)
    return rounded if notion.implies(rounded) else converted


def _enough(make: Callable[[Fraction], Notion], notion: Notion) -> Notion | None:
    """Return the notion of a kind with the largest budget that implies the given one; None if none does."""

    def follows(log_budget: float) -> bool:
        return make(_digits(math.exp(log_budget), up=False)).implies(notion)

    low, high = math.log(1e-4), math.log(50.0)
    if not follows(low) or follows(high):
        return None
    low, _ = root(lambda log_budget: not follows(log_budget), low, high, absolute=1e-5)
    return make(_digits(math.exp(low), up=False))


def _rebuilt(notion: Notion, *, up: bool) -> Notion:
    """Return the notion with its budget rounded to four digits."""
    values = list(notion.exact)
    place = 1 if isinstance(notion, Renyi) else 0
    values[place] = _digits(float(values[place]), up=up)
    return type(notion)(*values)


def _digits(value: float, *, up: bool) -> Fraction:
    """Return a number rounded to four significant digits, up or down, unless it is within 1e-4 units of them."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    steps = Fraction(repr(value)) / unit
    near = round(steps)
    if abs(steps - near) < Fraction(1, 10**4):
        return near * unit
    return (math.ceil(steps) if up else math.floor(steps)) * unit


def _row(notion: Notion, relation: str, pair: Pair, goal: Goal) -> NotionRow:
    bound = records_bound(pair, notion, goal)
    return NotionRow(notion.text, relation, _best_n(notion, pair, goal, bound), bound)


def _best_n(notion: Notion, pair: Pair, goal: Goal, bound: int) -> int | None:
    """Return the sample size of the best test; None if the domain is infinite or its programs are large."""
    if not isinstance(pair, DiscretePair):
        return None
    try:
        classes = merge(pair).count
    except InvalidInput:  # an infinite domain
        return None
    most = MOST_STRAIGHT if is_straight(notion) else MOST_CURVED
    if classes > 2 and Histograms(classes, math.ceil(1.2 * bound)).count > most:
        return None
    return optimum_sample_size(
        pair.null, pair.alternative, privacy=notion, advantage=goal.advantage, alpha=goal.alpha, beta=goal.beta
    )
