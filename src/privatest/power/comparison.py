"""Every test side by side: how many records each needs, and how far that is from the best possible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from privatest import _validate, markup
from privatest.errors import Infeasible, InvalidInput, MissingExtra
from privatest.pairs import DiscretePair, make_pair
from privatest.power.family import make_family
from privatest.power.goal import ADVANTAGE, Goal
from privatest.power.lower_bound import lower_bound
from privatest.power.optimum import optimum_sample_size
from privatest.power.rivals import Rival, rivals
from privatest.power.sample_sizes import smallest_n
from privatest.rational import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Row", "compare"]

# Beyond this many times the tight test's n a rival is not followed.
_PATIENCE = 1000


@dataclass(frozen=True)
class Row:
    """One test: the records it needs (None: never, or out of sight) and the ratios to bound and optimum."""

    test: str
    n: int | None
    ratio_to_bound: float | None
    ratio_to_optimum: float | None
    private: bool
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Rows sorted by n; prints as a table, exports to a DataFrame."""

    rows: tuple[Row, ...]
    epsilon: float
    advantage: float
    lower_bound: int
    optimum: int | None
    null: str = "P"
    alternative: str = "Q"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Records that each test needs, beside the bound and the optimum."""
        from privatest import pictures

        return pictures.comparison(self, ax)

    def _repr_html_(self) -> str:
        title = f"Records for advantage {self.advantage:.4g} at epsilon {self.epsilon:g}; at least {self.lower_bound}"
        headings = ("test", "n", "n / bound", "n / best", "private", "note")
        rows = ((r.test, r.n, r.ratio_to_bound, r.ratio_to_optimum, r.private, r.note) for r in self.rows)
        return markup.table(title, headings, rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise MissingExtra("to_dataframe() needs pandas: pip install pandas.") from None
        return pd.DataFrame([asdict(row) for row in self.rows])

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __str__(self) -> str:
        def cell(value: float | None, pattern: str) -> str:
            return "-" if value is None else format(value, pattern)

        lines = [
            f"records needed for advantage {self.advantage:.4g} at epsilon {self.epsilon:g}",
            f"{'test':<32} {'n':>12} {'n/bound':>8} {'n/best':>7}  note",
        ]
        for row in self.rows:
            n = "never" if row.n is None and "never" in row.note else cell(row.n, "d")
            ratios = f"{cell(row.ratio_to_bound, '.2f'):>8} {cell(row.ratio_to_optimum, '.2f'):>7}"
            lines.append(f"{row.test:<32} {n:>12} {ratios}  {row.note}".rstrip())
        best = "not enumerable" if self.optimum is None else str(self.optimum)
        lines.append(f"no epsilon-DP test needs fewer than {self.lower_bound}; best possible: {best}")
        return "\n".join(lines)


def compare(null: Any, alternative: Any, *, epsilon: Number, advantage: float = ADVANTAGE) -> Comparison:
    """How many records every test needs, with the ratio to the lower bound and, where enumerable, to the optimum."""
    budget = _validate.positive(epsilon=epsilon, remedy="Typical values lie between 0.1 and 2.")
    target = _validate.probability(advantage=advantage)
    pair = make_pair(null, alternative)
    bound = lower_bound(pair.null, pair.alternative, epsilon=budget, advantage=target)
    best = _optimum(pair, budget, target)
    found: list[tuple[str, int | None, bool, str]] = []

    def ours(name: str, kind: str, clamp: str | None, note: str = "") -> int | None:
        family = make_family(pair.null, pair.alternative, budget, kind, clamp, None, Goal(advantage=target))
        try:
            n: int | None = smallest_n(family)
        except Infeasible:
            n, note = None, "never reaches it with its threshold 0"
        found.append((name, n, kind not in ("llr", "sllr"), note))
        return n

    tight = ours("tight", "tight", None, "the default")
    ours("tight, paper's clamp", "tight", "paper")
    ours("ncLLR", "ncllr", None, "as the paper defines it")
    ours("scLLR", "scllr", None, "as the paper defines it")
    ours("LLR", "llr", None, "not private")
    ours("sLLR", "sllr", None, "not private at this epsilon")
    for rival in rivals(pair, budget):
        n = _rival_size(rival, target, _PATIENCE * (tight or 1))
        found.append((rival.name, n, True, "" if n is not None else f"more than {_PATIENCE} times the default's"))
    if best is not None:
        found.append(("optimum", best, True, "linear program over all tests"))
    found.sort(key=lambda row: math.inf if row[1] is None else row[1])
    rows = tuple(
        Row(
            name,
            n,
            None if n is None else n / bound,
            None if n is None or not best else n / best,
            private,
            note,
        )
        for name, n, private, note in found
    )
    names = pair.null.describe(), pair.alternative.describe()
    return Comparison(rows, float(budget), target, bound, best, *names)


def _optimum(pair: Any, epsilon: Number, target: float) -> int | None:
    if not isinstance(pair, DiscretePair):
        return None
    try:
        return optimum_sample_size(pair.null, pair.alternative, epsilon=epsilon, advantage=target)
    except InvalidInput:  # too large to enumerate, or an infinite domain
        return None


def _rival_size(rival: Rival, target: float, most: int) -> int | None:
    """The smallest n at which the rival reaches the target and, looking a little ahead, keeps it."""
    known: dict[int, float] = {}

    def reaches(n: int) -> bool:
        if n not in known:
            known[n] = rival.advantage(n)
        return known[n] >= target

    high = 1
    while not reaches(high):
        if high > most:
            return None
        high *= 2
    n = _bisect(reaches, high // 2, high)
    if rival.few_values and n < 2000:
        dips = [m for m in range(n + 1, n + 25) if not reaches(m)]
        n = dips[-1] + 1 if dips else n
    return n


def _bisect(reaches: Callable[[int], bool], low: int, high: int) -> int:
    """Invariant: not reached at low (0: no records), reached at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
