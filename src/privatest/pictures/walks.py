"""Sequential tests: the walk of the log e-value between its boundaries, and how long walks take; never the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.pictures.canvas import (
    BLACK,
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    drawing,
    law,
    legend,
    number,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.sequential import Sequential, SequentialPlan

__all__ = ["sequential", "stopping"]


def sequential(run: Sequential, ax: Axes | None = None) -> Axes:
    """The logarithm of the e-value after each block, the two boundaries, and the verdict."""
    plan, walk, verdict = run.plan, np.asarray(run.walk, dtype=np.float64), run.verdict
    low, high = run.boundaries
    first, later = run.schedule
    seen = verdict.seen if verdict is not None else first + later * max(len(walk) - 1, 0) if len(walk) else 0
    with drawing(ax, (8.6, 3.8)) as axes:
        places = seen - later * np.arange(len(walk) - 1, -1, -1) if len(walk) else np.zeros(0)
        if len(walk) and places[0] < first:
            places[0] = first
        whole = len(walk) == 0 or places[0] <= first
        xs, ys = (np.concatenate([[0.0], values]) for values in (places, walk)) if whole else (places, walk)
        axes.plot(xs, ys, color=BLUE, marker="o", markersize=4, label="log e-value after each block")
        for value, colour, style, text in (
            (high, VERMILLION, "-", f"alternative from {number(high)} on"),
            (low, GREEN, "--", f"null from {number(low)} down"),
        ):
            axes.axhline(value, color=colour, linestyle=style, linewidth=1.4, label=text)
        axes.axhline(0, color=GREY, linewidth=0.8)
        if verdict is not None:
            text = f"verdict after {verdict.seen}"
            axes.axvline(verdict.seen, color=BLACK, linewidth=1.4, linestyle=":", label=text)
        axes.set_xlim(float(xs[0]) if len(xs) else 0.0, max(float(seen) * 1.03, max(run.expected_n)))
        axes.set_xlabel("record, in order of time")
        axes.set_ylabel("log e-value against P, in nats")
        state = (
            f"{verdict.decision} after {verdict.seen} records" if verdict is not None else f"open after {seen} records"
        )
        kept = f"{EPSILON} = {number(run.epsilon)}" if run.private else "SIMULATED, not private"
        axes.set_title(f"{law('P', plan.null)} or {law('Q', plan.alternative)}: {state}, {kept}")
        legend(axes)
        return axes


def stopping(plan: SequentialPlan, ax: Axes | None = None) -> Axes:
    """How probably there is no verdict yet after so many records, under P and under Q; and the fixed test's number."""
    with drawing(ax, (8.6, 3.8)) as axes:
        last = 1
        looks: tuple[tuple[Any, str, str, str, float], ...] = tuple(
            (walk, colour, style, name, mean)
            for walk, colour, style, name, mean in zip(
                plan.walks, (BLUE, ORANGE), ("-", "--"), ("P", "Q"), plan.expected_n, strict=True
            )
        )
        for walk, colour, style, name, mean in looks:
            left = 1 - np.cumsum(walk.stops)
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
            f"{law('P', plan.null)} or {law('Q', plan.alternative)}: how long till the verdict, "
            f"{EPSILON} = {number(float(plan.epsilon))}"
        )
        legend(axes)
        return axes
