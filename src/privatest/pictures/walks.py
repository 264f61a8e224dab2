"""Sequential tests: the walk of the log e-value between its boundaries, and how long walks take; never the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.pictures.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    cost,
    drawing,
    law,
    legend,
    number,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.sequential import SequentialPlan, Verdict

__all__ = ["stopping", "walk"]


def walk(
    plan: SequentialPlan,
    levels: Sequence[float],
    seen: int,
    verdict: Verdict | None,
    ax: Axes | None = None,
    *,
    private: bool,
) -> Axes:
    """The logarithm of the e-value after each of the newest blocks, the two boundaries, and the verdict."""
    low, high = plan.nats(plan.rule.lower), plan.nats(plan.rule.upper)
    with drawing(ax, (8.6, 3.8)) as axes:
        places = [max(seen - plan.block * back, 0) for back in range(len(levels) - 1, -1, -1)]
        if places and places[0] <= plan.first.block:  # the walk from its start
            places = [0, plan.first.block, *places[1:]]
            levels = [0.0, *levels]
        if not places:
            places, levels = [0], [0.0]
        axes.plot(places, levels, color=BLUE, marker="o", markersize=4, label="log e-value after each block")
        for value, colour, style, text in (
            (high, VERMILLION, "-", f"alternative from {number(high)} on"),
            (low, GREEN, "--", f"null from {number(low)} down"),
        ):
            axes.axhline(value, color=colour, linestyle=style, linewidth=1.4, label=text)
        axes.axhline(0, color=GREY, linewidth=0.8)
        if verdict is not None:
            text = f"verdict after {verdict.seen}"
            axes.axvline(verdict.seen, color=BLACK, linewidth=1.4, linestyle=":", label=text)
        axes.set_xlim(float(places[0]), max(float(seen) * 1.03, max(plan.expected_n)))
        axes.set_xlabel("record, in order of time")
        axes.set_ylabel("log e-value against P, in nats")
        state = f"{verdict.decision} after {seen} records" if verdict is not None else f"open after {seen} records"
        kept = cost(plan) if private else "SIMULATED, not private"
        axes.set_title(f"{law('P', plan.null)} or {law('Q', plan.alternative)}: {state}, {kept}")
        legend(axes)
        return axes


def stopping(plan: SequentialPlan, ax: Axes | None = None) -> Axes:
    """How probably there is no verdict yet after so many records, under P and under Q; and the fixed test's number."""
    with drawing(ax, (8.6, 3.8)) as axes:
        last = 1
        looks: tuple[tuple[Any, str, str, str, float], ...] = tuple(
            (each, colour, style, name, mean)
            for each, colour, style, name, mean in zip(
                plan.walks, (BLUE, ORANGE), ("-", "--"), ("P", "Q"), plan.expected_n, strict=True
            )
        )
        for each, colour, style, name, mean in looks:
            left = 1 - np.cumsum(each.stops)
            count = max(int(np.argmax(left < 0.005)) + 1 if np.any(left < 0.005) else len(left), 1)
            last = max(last, plan.records(count))
            edges = [0.0, *(float(plan.records(k)) for k in range(1, count + 1))]
            text = f"under {name}: {number(mean)} records on average"
            axes.stairs([1.0, *left[: count - 1]], edges, color=colour, linestyle=style, linewidth=1.8, label=text)
        axes.axvline(plan.fixed_n, color=BLACK, linewidth=1.2, linestyle=":", label=f"fixed number: {plan.fixed_n}")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, max(last, plan.fixed_n * 1.05))
        axes.set_xlabel("records")
        axes.set_ylabel("probability of no verdict yet")
        axes.set_title(
            f"{law('P', plan.null)} or {law('Q', plan.alternative)}: how long till the verdict, {cost(plan)}"
        )
        legend(axes)
        return axes
