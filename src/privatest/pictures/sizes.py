"""How many records a private test needs, against epsilon: the theorem's terms, the exact numbers, the bounds.

Error rates against the number of records, and how many records every test needs.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.bounds.lower_bound import lower_bound
from privatest.errors import PrivatestError
from privatest.pictures.canvas import (
    ALPHA,
    BETA,
    BLACK,
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    MINUS,
    ORANGE,
    SKY,
    SQUARED,
    TAU,
    VERMILLION,
    drawing,
    law,
    legend,
    number,
    plain,
)
from privatest.power import sample_size
from privatest.theory.complexity import SampleComplexity, sample_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.hypotheses import Pair
    from privatest.power import Comparison, NotionComparison, PowerCurve

__all__ = ["comparison", "complexity", "notion_comparison", "power_curve"]

CURVE_POINTS = 45
EXACT_POINTS = 6
# No exact sample size is begun after so many seconds: one takes up to a few.
PATIENCE = 7.0
SHADES = {"tails": "#EFEFEF", "core": "#DADADA", "free": "#FFFFFF"}


def complexity(found: SampleComplexity, pair: Pair, ax: Axes | None = None, *, patience: float = PATIENCE) -> Axes:
    """Records against epsilon around the given one, both on logarithmic scales.

    The curves leave out constants, as the theorem does; the markers are exact: the records that the default test needs
    for advantage 2/3, and what no private test can do without. They are computed at as many epsilons as ``patience``
    (in seconds) allows, the given one first.
    """
    low, high = _range(found)
    grid = np.unique(np.append(np.geomspace(low, high, CURVE_POINTS), found.epsilon))
    curve = [sample_complexity(pair.null, pair.alternative, epsilon=float(e)) for e in grid]
    exact = _exact(pair, found.epsilon, low, high, patience)
    with drawing(ax, (8.6, 4.4)) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _regimes(axes, grid, curve)
        # The paper's sandwich is for epsilon < 1.
        axes.fill_between(
            grid, found.nonprivate, found.nonprivate / np.minimum(grid, 1.0),
            facecolor="none", edgecolor=GREY, hatch="\\\\\\", alpha=0.35, linewidth=0.0,
            label=f"between 1/H{SQUARED} and 1/({EPSILON}H{SQUARED})",
        )  # fmt: skip
        value = [one.value for one in curve]
        axes.plot(grid, value, color=BLUE, label="theorem: 1/(tails + core)")
        for name, colour, style in (("tail", VERMILLION, "--"), ("core", GREEN, ":")):
            term = np.array([getattr(one, f"{name}_term") for one in curve])
            shown = term > 0
            if shown.any():
                text = {"tail": f"tails alone: 1/({EPSILON}{TAU})"}.get(
                    name, f"core alone: 1/((1 {MINUS} {TAU}) H{SQUARED})"
                )
                axes.plot(grid[shown], 1 / term[shown], color=colour, linestyle=style, label=text)
        floor = f"without privacy: 1/H{SQUARED}"
        axes.axhline(found.nonprivate, color=BLACK, linestyle=(0, (5, 2, 1, 2)), linewidth=1.0, label=floor)
        heights = [*value, found.nonprivate]
        marks = (("o", ORANGE, "exact n, advantage 2/3"), ("_", BLACK, "no private test with fewer"))
        for place, (marker, colour, text) in enumerate(marks):
            points = [(e, numbers[place]) for e, numbers in exact if numbers[place] is not None]
            if points:
                at, n = zip(*points, strict=True)
                look: Any = {
                    "color": colour,
                    "markeredgecolor": BLACK,
                    "markeredgewidth": (0.6, 2.0)[place],
                    "markersize": (6, 13)[place],
                }
                axes.plot(at, n, marker, linestyle="none", zorder=4, label=text, **look)
                heights += n
        axes.axvline(found.epsilon, color=BLACK, linewidth=0.7, linestyle=":")
        axes.set_xlim(low, high)
        axes.set_ylim(min(heights) / 2, max(heights) * 2.5)
        axes.set_xlabel(f"privacy loss {EPSILON}")
        axes.set_ylabel("records n (curves: up to a constant)")
        pairs = f"{law('P', pair.null.describe())}, {law('Q', pair.alternative.describe())}"
        axes.set_title(f"Records a private test needs; {pairs}")
        legend(axes)
        return axes


def _range(found: SampleComplexity) -> tuple[float, float]:
    """Epsilons to show: a decade or so on both sides, and where privacy becomes free if that is near."""
    low, high = min(found.epsilon / 8, 0.05), max(found.epsilon * 8, 2.0)
    if found.epsilon < found.free_epsilon <= 20:
        high = max(high, 2 * found.free_epsilon)
    return low, high


def _exact(
    pair: Pair, epsilon: float, low: float, high: float, patience: float
) -> list[tuple[float, tuple[int | None, int | None]]]:
    """(epsilon, (sample size, lower bound)), the given epsilon first, then from large (quick) to small (slow)."""
    others = np.geomspace(high / 1.3, low * 1.3, EXACT_POINTS)
    start = time.monotonic()
    found: list[tuple[float, tuple[int | None, int | None]]] = []
    for one in (epsilon, *(float(e) for e in others)):
        if time.monotonic() - start > patience:
            break
        n = _attempt(sample_size, pair, one)
        bound = _attempt(lower_bound, pair, one) if time.monotonic() - start < patience else None
        found.append((one, (n, bound)))
    return found


def _attempt(question: Callable[..., int], pair: Pair, epsilon: float) -> int | None:
    """A number that cannot be computed (an epsilon too small for 64-bit totals) is left out of the picture."""
    try:
        return int(question(pair.null, pair.alternative, epsilon=epsilon))
    except PrivatestError:
        return None


def _regimes(axes: Axes, grid: np.ndarray, curve: list[SampleComplexity]) -> None:
    """Shades and names for the ranges in which the tails, the core or nothing limits."""
    edges = [0, *(i for i in range(1, len(curve)) if curve[i].regime != curve[i - 1].regime), len(curve) - 1]
    for first, last in itertools.pairwise(edges):
        if first == last:
            continue
        regime = curve[first].regime
        left = grid[first] if first == 0 else math.sqrt(grid[first - 1] * grid[first])
        right = grid[last] if last == len(curve) - 1 else math.sqrt(grid[last - 1] * grid[last])
        axes.axvspan(left, right, facecolor=SHADES[regime], edgecolor=GREY, linewidth=0.4, zorder=0)
        if math.log(right / left) > 0.08 * math.log(grid[-1] / grid[0]):
            place = math.sqrt(left * right)
            axes.text(place, 0.975, regime, transform=axes.get_xaxis_transform(), ha="center", va="top", color=BLACK)


BAR = 2 / 3
WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}


def power_curve(curve: PowerCurve, ax: Axes | None = None) -> Axes:
    """Advantage and both error rates against n, exact at every marker."""
    order = np.argsort(curve.n)
    n = np.array(curve.n)[order]
    series = (
        (f"advantage 1 {MINUS} {ALPHA} {MINUS} {BETA}",
         curve.advantage, BLUE, "-", "o"),
        (f"type I error {ALPHA} (says Q under P)", curve.alpha, VERMILLION, "--", "s"),
        (f"type II error {BETA} (says P under Q)", curve.beta, ORANGE, ":", "^"),
    )  # fmt: skip
    with drawing(ax, (8.6, 4.2)) as axes:
        for text, values, colour, style, marker in series:
            y = np.array(values)[order]
            axes.plot(n, y, color=colour, linestyle=style, marker=marker, markersize=4, label=text)
        bar, goal = (
            (BAR, "2/3") if curve.beta_goal is None else (curve.beta_goal, f"{BETA} at most {curve.beta_goal:g}")
        )
        met = "advantage 2/3" if curve.beta_goal is None else f"{BETA} = {curve.beta_goal:g}"
        axes.axhline(bar, color=GREY, linewidth=0.8, linestyle=(0, (5, 2, 1, 2)), label=met)
        reached = np.array(curve.advantage) >= BAR if curve.beta_goal is None else np.array(curve.beta) <= bar
        if reached.any() and curve.enough is not None:
            if n[0] <= curve.enough <= n[-1]:
                axes.axvline(curve.enough, color=GREY, linewidth=0.8, label=f"{goal} from n = {curve.enough} on")
            elif curve.enough < n[0]:
                axes.plot(
                    [], [], color=GREY, linewidth=0.8, label=f"{goal} from n = {curve.enough} on, before all shown"
                )
        if n[-1] > 8 * n[0]:
            axes.set_xscale("log")
        if len(n) == 1:
            axes.set_xlim(n[0] * 0.5, n[0] * 1.5)
        axes.set_ylim(min(-0.02, float(min(curve.advantage)) * 1.05), 1.02)
        axes.set_xlabel("records n")
        axes.set_ylabel("probability")
        axes.set_title(_title(f"Exact error rates of '{plain(curve.test)}' at {_epsilon(curve.epsilon)}", curve))
        legend(axes)
        return axes


def comparison(table: Comparison, ax: Axes | None = None) -> Axes:
    """Records that each test needs, on a logarithmic scale, beside what no private test can do without."""
    rows = list(table.rows)
    with drawing(ax, (8.6, 0.32 * len(rows) + 1.8)) as axes:
        known = [row.n for row in rows if row.n is not None]
        least, most = min([*known, table.lower_bound]), max([*known, table.lower_bound])
        left = max(least / 3, 0.3)
        looks: dict[bool, dict[str, Any]] = {
            True: {"facecolor": SKY, "edgecolor": BLACK, "linewidth": 0.6, "label": "private"},
            False: {"facecolor": "white", "edgecolor": BLACK, "linewidth": 0.6, "hatch": "///", "label": "not private"},
        }
        axes.set_xscale("log")
        for private, look in looks.items():
            chosen = [(place, row.n) for place, row in enumerate(rows) if row.n is not None and row.private == private]
            if chosen:
                places, sizes = zip(*chosen, strict=True)
                axes.barh(places, np.array(sizes) - left, left=left, height=0.62, **look)
        for place, row in enumerate(rows):
            text = f"{row.n}" if row.n is not None else plain(row.note or "never", 60)
            at = left * 1.05 if row.n is None else row.n * 1.03
            axes.text(at, place, text, va="center", ha="left", fontsize=8.5, zorder=5, bbox=WHITE)
        bound = f"no private test with\nfewer than {table.lower_bound}"
        axes.axvline(table.lower_bound, color=VERMILLION, linestyle="--", linewidth=1.2, label=bound)
        if table.optimum is not None:
            axes.axvline(
                table.optimum, color=BLUE, linestyle=":", linewidth=1.6, label=f"best possible: {table.optimum}"
            )
        axes.set_yticks(range(len(rows)), [plain(row.test, 34) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(left, most * 2.2)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("records n")
        axes.set_title(_title(f"Records for advantage {number(table.advantage)} at {_epsilon(table.epsilon)}", table))
        legend(axes)
        return axes


def notion_comparison(table: NotionComparison, ax: Axes | None = None) -> Axes:
    """Records that every test needs under each notion, and the best test's where it is known."""
    rows = list(table.rows)
    with drawing(ax, (8.6, 0.34 * len(rows) + 1.8)) as axes:
        looks = {"as asked": BLUE, "is enough for it": ORANGE, "follows from it": SKY}
        for relation, colour in looks.items():
            places = [place for place, row in enumerate(rows) if row.relation == relation]
            sizes = [rows[place].lower_bound for place in places]
            if places:
                axes.barh(places, sizes, height=0.62, facecolor=colour, edgecolor=BLACK, linewidth=0.6, label=relation)
        known = [(place, row.optimum) for place, row in enumerate(rows) if row.optimum is not None]
        if known:
            axes.plot([n for _, n in known], [place for place, _ in known], "D", color=BLACK, label="best test")
        for place, row in enumerate(rows):
            axes.text(
                max(row.lower_bound, row.optimum or 0) * 1.03, place, f"{row.lower_bound}", va="center", fontsize=8.5
            )
        axes.set_yticks(range(len(rows)), [plain(row.privacy, 34) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.25 * max(max(row.lower_bound, row.optimum or 0) for row in rows))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("records n that every test needs")
        axes.set_title(_title(f"Records for {plain(table.goal)} beside {plain(table.privacy)}", table))
        legend(axes)
        return axes


def _epsilon(epsilon: float) -> str:
    return f"{EPSILON} = {number(epsilon)}"


def _title(start: str, described: Any) -> str:
    """With the pair, where the result knows it."""
    null, alternative = getattr(described, "null", ""), getattr(described, "alternative", "")
    if not null or not alternative:
        return start
    pair = f"P = {plain(null, 40)}, Q = {plain(alternative, 40)}"
    return f"{start};\n{pair}" if len(start) + len(pair) > 85 else f"{start}; {pair}"
