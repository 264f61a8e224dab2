"""Series: what was released of them, never the records.

Change points: the accuracy that is promised, and noisy block sums. Sequential tests: the walk of the log e-value
between its boundaries, and how long walks take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.pictures.canvas import (
    BETA,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PLUS_MINUS,
    SKY,
    VERMILLION,
    cost,
    drawing,
    law,
    legend,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.changepoint import Alarm, ChangePlan, ChangePoint, ChangePoints, ChangesPlan
    from privatest.changepoint.confidence import FailureCurve
if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.sequential import SequentialPlan, Verdict

__all__ = ["alarm", "change_plan", "change_point", "change_points", "changes_plan", "monitor", "stopping", "walk"]


MOST_BARS = 300
"""More blocks than this are drawn as one outline."""
LEAST = 1e-4
"""Failure probabilities below this are off the picture."""


def change_point(found: ChangePoint, ax: Axes | None = None) -> Axes:
    """The index with its accuracy on the line of records and, where blocks were released, their noisy sums."""
    sums, block = found.sums, found.block
    with drawing(ax, (8.6, 3.8 if sums and block else 2.2)) as axes:
        if sums and block:
            _sums(axes, np.asarray(sums, dtype=np.float64), block, found.n % block // 2)
        else:
            axes.set_yticks([])
            axes.set_ylim(0, 1)
            axes.spines["left"].set_visible(False)
        if found.index is not None:
            low, high = max(found.index - found.accuracy, 0), min(found.index + found.accuracy, found.n)
            _band(
                axes,
                low,
                high,
                f"{PLUS_MINUS}{found.accuracy}, right with\nprobability {number(1 - found.beta)}",
            )
            axes.axvline(found.index, color=VERMILLION, linewidth=2.0, label=f"change at {found.index}")
        axes.set_xlim(0, found.n)
        axes.set_xlabel("record, in order of time")
        kept = cost(found) if found.private else "SIMULATED, not private"
        when = "" if found.order_value is None else f" ({plain(str(found.order_value))})"
        answer = "No change found" if found.index is None else f"Change at record {found.index}{when}"
        axes.set_title(f"{answer} of {found.n} (method '{plain(found.method)}', {kept})")
        legend(axes)
        return axes


def change_points(found: ChangePoints, ax: Axes | None = None) -> Axes:
    """The indices with their accuracy on the line of records, and the blocks' noisy sums."""
    with drawing(ax, (8.6, 3.8 if found.sums else 2.2)) as axes:
        if found.sums:
            _sums(axes, np.asarray(found.sums, dtype=np.float64), found.block, found.n % found.block // 2)
        else:
            axes.set_yticks([])
            axes.set_ylim(0, 1)
            axes.spines["left"].set_visible(False)
        for place, index in enumerate(found.indices):
            low, high = max(index - found.accuracy, 0), min(index + found.accuracy, found.n)
            text = f"{PLUS_MINUS}{found.accuracy}, each right with\nprobability {number(1 - found.beta)}"
            _band(axes, low, high, "" if place else text)
            axes.axvline(index, color=VERMILLION, linewidth=2.0, label="" if place else "changes")
        axes.set_xlim(0, found.n)
        axes.set_xlabel("record, in order of time")
        kept = cost(found) if found.private else "SIMULATED, not private"
        count = len(found.indices)
        answer = "No change found" if not found.changed else f"{count} change{'' if count == 1 else 's'}"
        axes.set_title(f"{answer} in {found.n} records ({kept})")
        legend(axes)
        return axes


def changes_plan(plan: ChangesPlan, missed: list[float], ax: Axes | None = None) -> Axes:
    """How probably one of several changes is missed or further off than a distance, at most, block by block."""
    with drawing(ax, (8.6, 4.0)) as axes:
        distances = plan.block * np.arange(len(missed)) + plan.block // 2
        shown = np.maximum(np.asarray(missed), LEAST)
        axes.step(distances, shown, where="post", color=BLUE, label="a change missed or\nfurther off, at most")
        look: dict[str, Any] = {"color": BLACK, "linewidth": 0.8, "linestyle": (0, (5, 2, 1, 2))}
        axes.axhline(plan.beta, label=f"{BETA} = {number(plan.beta)}", **look)
        axes.axvline(plan.accuracy, color=VERMILLION, linewidth=1.4, label=f"accuracy: {plan.accuracy} records")
        axes.set_yscale("log")
        axes.set_ylim(LEAST, 1.1)
        axes.set_xlim(0, max(float(distances[-1]), plan.accuracy * 1.2))
        axes.set_xlabel("distance from a true change, in records")
        axes.set_ylabel("probability")
        axes.set_title(
            f"How far off each change can be; {law('P', plan.null)}, {law('Q', plan.alternative)}, {cost(plan)}"
        )
        legend(axes)
        return axes


def change_plan(plan: ChangePlan, curve: FailureCurve, ax: Axes | None = None) -> Axes:
    """How probably the index is off by more than a distance, at most; and where the promise is read off."""
    distances, failures = np.asarray(curve.distances), np.asarray(curve.failures)
    last = max(int(np.searchsorted(distances, 2.5 * plan.accuracy)), 2)
    distances, failures = distances[:last], failures[:last]
    with drawing(ax, (8.6, 4.0)) as axes:
        shown = np.maximum(failures, LEAST)
        axes.step(distances, shown, where="post", color=BLUE, label="index further off, at most")
        if plan.false_alarm is not None:
            missed = np.array([1 - plan.power_after(int(a)) if a > 0 else 1.0 for a in distances])
            for bound, colour, style, text in (
                (missed, ORANGE, "--", "change missed, if so near\nthe end, at most"),
                (failures + missed, GREY, ":", "either"),
            ):
                shown = np.clip(bound, LEAST, 1)
                axes.step(distances, shown, where="post", color=colour, linestyle=style, label=text)
        axes.axhline(
            plan.beta,
            color=BLACK,
            linewidth=0.8,
            linestyle=(0, (5, 2, 1, 2)),
            label=f"{BETA} = {number(plan.beta)}",
        )
        axes.axvline(plan.accuracy, color=VERMILLION, linewidth=1.4, label=f"accuracy: {plan.accuracy} records")
        axes.set_yscale("log")
        axes.set_ylim(LEAST, 1.1)
        axes.set_xlim(0, max(float(distances[-1]), plan.accuracy * 1.2, 1.0))
        axes.set_xlabel("distance from the true change point, in records")
        axes.set_ylabel("probability")
        kept = f"{cost(plan)}, method '{plain(plan.method)}'"
        axes.set_title(
            f"How far off the index can be; {law('P', plan.null)}, then {law('Q', plan.alternative)}, {kept}"
        )
        legend(axes)
        return axes


def monitor(watch: Any, ax: Axes | None = None) -> Axes:
    """The last noisy block sums of a monitor and, where it has fired, the alarm with its accuracy.

    ``watch`` has ``trace`` (noisy sums of the last blocks, in nats), ``block`` (records in each), ``seen``,
    ``alarm`` (None, or with ``index``, ``accuracy`` and ``seen``), ``privacy``, ``epsilon`` and ``private``.
    """
    sums, block = np.asarray(list(watch.trace), dtype=np.float64), int(watch.block)
    raised = watch.alarm
    stop = (int(watch.seen) // block) * block
    with drawing(ax, (8.6, 3.8)) as axes:
        start = stop - block * len(sums)
        _sums(axes, sums, block, start)
        low, high = float(start), float(max(stop, start + 1))
        if raised is not None:
            _alarm(axes, raised)
            low, high = min(low, raised.index - raised.accuracy), max(high, raised.seen * 1.01)
        axes.set_xlim(max(low, 0.0), high)
        axes.set_xlabel("record, in order of time")
        state = f"alarm after {raised.seen} records" if raised is not None else f"no alarm in {watch.seen} records"
        kept = cost(watch) if watch.private else "SIMULATED, not private"
        axes.set_title(f"Monitor: {state}, {kept}")
        legend(axes)
        return axes


def alarm(found: Alarm, ax: Axes | None = None) -> Axes:
    """An alarm by itself: the index with its accuracy on the line of records, and when it was raised."""
    with drawing(ax, (8.6, 2.2)) as axes:
        axes.set_yticks([])
        axes.set_ylim(0, 1)
        axes.spines["left"].set_visible(False)
        _alarm(axes, found)
        axes.set_xlim(max(min(found.index - 2 * found.accuracy, found.index - 1), 0), found.seen * 1.01)
        axes.set_xlabel("record, in order of time")
        kept = "" if found.private else ", SIMULATED, not private"
        axes.set_title(f"Alarm after {found.seen} records{kept}")
        legend(axes)
        return axes


def _alarm(axes: Axes, found: Any) -> None:
    text = f"{PLUS_MINUS}{found.accuracy} records"
    _band(axes, found.index - found.accuracy, found.index + found.accuracy, text)
    axes.axvline(found.index, color=VERMILLION, linewidth=2.0, label=f"change at {found.index}")
    axes.axvline(found.seen, color=BLACK, linewidth=1.4, linestyle="--", label=f"alarm after {found.seen}")


def _sums(axes: Axes, sums: Any, block: int, start: int) -> None:
    """One bar for each block's noisy sum: above 0 speaks for P, below for Q."""
    edges = start + block * np.arange(len(sums) + 1)
    for sign, colour, hatch, text in ((1, SKY, "", "block speaks for P"), (-1, GREEN, "////", "block speaks for Q")):
        chosen = sums * sign > 0
        if not np.any(chosen):
            continue
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": BLACK, "linewidth": 0.3, "hatch": hatch}
        if len(sums) <= MOST_BARS:
            axes.bar(edges[:-1][chosen], sums[chosen], width=block, align="edge", label=text, **look)
        else:
            axes.stairs(np.where(chosen, sums, 0.0), edges, fill=True, label=text, **{**look, "linewidth": 0.0})
    axes.axhline(0, color=BLACK, linewidth=0.8)
    bits = len(sums) > 0 and bool(np.all(np.abs(sums) == 1))
    axes.set_ylabel(f"bit of {block} records" if bits else f"noisy sum of {block} log ratios, in nats")


def _band(axes: Axes, low: float, high: float, text: str) -> None:
    look: dict[str, Any] = {"facecolor": VERMILLION, "edgecolor": VERMILLION, "linewidth": 0.0, "hatch": ".."}
    axes.axvspan(low, high, alpha=0.22, label=text, **look)


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
