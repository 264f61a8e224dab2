"""The same question under every notion of privacy: the records each needs, at budgets that convert into one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from privatest.bounds.lower_bound import records_bound
from privatest.bounds.optimum import optimum_sample_size
from privatest.decision.build import Goal, make_goal
from privatest.errors import InvalidInput
from privatest.hypotheses import DiscretePair, Pair
from privatest.hypotheses.question import hardest_pair
from privatest.markup import Tabled
from privatest.numbers import Number
from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, make_notion
from privatest.privacy.ladder import is_straight
from privatest.theory.histograms import Histograms, merge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NotionComparison", "NotionRow", "compare_notions"]

ASKED, WEAKER, STRONGER = "as asked", "follows from it", "is enough for it"
MOST_STRAIGHT, MOST_CURVED = 2000, 250
"""Histograms up to which the best test is looked for: a linear program, and one that is solved a dozen times."""


@dataclass(frozen=True)
class NotionRow:
    """One notion at one budget.

    Attributes:
        privacy: its text.
        relation: to what was asked: "as asked", "follows from it" (it promises less) or "is enough for it" (more).
        optimum: records that the best test needs; None where that is too large to compute.
        lower_bound: records that every test needs, whatever the domain.
    """

    privacy: str
    relation: str
    optimum: int | None
    lower_bound: int


@dataclass(frozen=True)
class NotionComparison(Tabled):
    """Rows from the strongest promise to the weakest, as far as they are ordered; prints as a table.

    Attributes:
        rows: one for each notion and budget.
        privacy: the notion that was asked about.
        goal: what the records are enough for.
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
        """What the numbers are for."""
        return f"Records for {self.goal} under the notions that {self.privacy} converts into or follows from"

    @property
    def ending(self) -> str:
        """How to read it."""
        return "No test needs fewer than 'at least'; a dash: too many records for the best test to be computed."

    @property
    def asked(self) -> NotionRow:
        """The row of what was asked."""
        return next(row for row in self.rows if row.relation == ASKED)

    def entries(self) -> list[tuple[object, ...]]:
        """The rows, and their bounds beside that of what was asked."""
        own = self.asked.lower_bound
        return [(r.privacy, r.relation, r.optimum, r.lower_bound, r.lower_bound / own) for r in self.rows]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Records that each notion needs."""
        from privatest import pictures

        return pictures.notion_comparison(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __iter__(self) -> Iterator[NotionRow]:
        return iter(self.rows)


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
    """How many records a goal needs under every notion that the given one converts into, or that converts into it.

    Args:
        null, alternative: P and Q; of sets, the two members found that are the hardest to tell apart.
        privacy, epsilon: the notion asked about.
        delta: of the "approx" that is looked for; the one given, where that is approx.
        order: of the "renyi" that is looked for; the one given, where that is renyi.
        advantage, alpha, beta: as for :func:`privatest.lower_bound`.

    Guarantees: a notion that "follows" is what every test that keeps to the one asked keeps to as well, rounded to the
    safe side; so its best test needs no more records. One that "is enough" is the other way round.

    >>> found = compare_notions("bernoulli(0.4)", "bernoulli(0.6)", privacy="gdp(1)")
    >>> [(row.privacy, row.optimum) for row in found if row.privacy.startswith(("gdp", "pure"))]
    [('pure(0.8069)', 31), ('gdp(1)', 27)]
    """
    notion, goal = make_notion(epsilon, privacy), make_goal(advantage, alpha, beta)
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
    """Each kind by its one budget."""
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
    """What follows of that kind, rounded up to four digits; None where nothing does."""
    given: dict[str, Number] = {"approx": {"delta": delta}, "renyi": {"order": order}}.get(name, {})
    try:
        found = notion.into(name, **given)
    except InvalidInput:
        return None
    if isinstance(found, Approx) and not found.loss:
        return None  # no more than tv says
    rounded = _rebuilt(found, up=True)
    return rounded if notion.implies(rounded) else found


def _enough(make: Callable[[Fraction], Notion], notion: Notion) -> Notion | None:
    """The largest budget of that kind from which the notion follows, rounded down to four digits; None: there is none.

    Invariant: it follows at e^low and not at e^high.
    """

    def follows(log_budget: float) -> bool:
        return make(_digits(math.exp(log_budget), up=False)).implies(notion)

    low, high = math.log(1e-4), math.log(50.0)
    if not follows(low) or follows(high):
        return None
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (middle, high) if follows(middle) else (low, middle)
    return make(_digits(math.exp(low), up=False))


def _rebuilt(notion: Notion, *, up: bool) -> Notion:
    """With its budget, the first or the only one that is found, rounded."""
    values = list(notion.exact)
    place = 1 if isinstance(notion, Renyi) else 0
    values[place] = _digits(float(values[place]), up=up)
    return type(notion)(*values)


def _digits(value: float, *, up: bool) -> Fraction:
    """Four significant digits, rounded up or down; what is a hair off four digits is taken for them."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    steps = Fraction(repr(value)) / unit
    near = round(steps)
    if abs(steps - near) < Fraction(1, 10**4):
        return near * unit
    return (math.ceil(steps) if up else math.floor(steps)) * unit


def _row(notion: Notion, relation: str, pair: Pair, goal: Goal) -> NotionRow:
    bound = records_bound(pair, notion, goal)
    return NotionRow(notion.text, relation, _best(notion, pair, goal, bound), bound)


def _best(notion: Notion, pair: Pair, goal: Goal, bound: int) -> int | None:
    """Records of the best test, where that takes a moment."""
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
        pair.null,
        pair.alternative,
        privacy=notion,
        advantage=goal.advantage,
        alpha=goal.alpha,
        beta=goal.beta,
    )
