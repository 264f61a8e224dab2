"""Error rates against the number of records, and how many records every test needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.pictures.canvas import (
    ALPHA,
    BETA,
    BLACK,
    BLUE,
    EPSILON,
    GREY,
    MINUS,
    ORANGE,
    SKY,
    VERMILLION,
    drawing,
    legend,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.power import Comparison, PowerCurve

__all__ = ["comparison", "power_curve"]

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


def _epsilon(epsilon: float) -> str:
    return f"{EPSILON} = {number(epsilon)}"


def _title(start: str, described: Any) -> str:
    """With the pair, where the result knows it."""
    null, alternative = getattr(described, "null", ""), getattr(described, "alternative", "")
    if not null or not alternative:
        return start
    pair = f"P = {plain(null, 40)}, Q = {plain(alternative, 40)}"
    return f"{start};\n{pair}" if len(start) + len(pair) > 85 else f"{start}; {pair}"
