"""Intervals: how wide one is along its parameter, which lift a comparison finds, and what was released of either.

Widths, bounds and powers are exact at the marks, and as many are computed as patience allows; the lines between the
marks are drawn by hand, so to say: smoothly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri

from privatest.errors import PrivatestError
from privatest.pictures.canvas import (
    ALPHA,
    BLACK,
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    chance,
    drawing,
    legend,
    number,
    plain,
)
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.estimate import EstimateDesign, EstimateRelease, GroupsDesign, GroupsRelease

__all__ = ["estimate", "groups"]

# No further mark is begun after so many seconds: one takes up to a few.
PATIENCE = 7.0
# Parts of the range, in the order in which they are computed: the first ones always are.
PLACES = (0.5, 0.0, 1.0, 0.25, 0.75, 0.125, 0.875, 0.375, 0.625)
AT_LEAST = 3
RATES = (0.5, 0.1)
"""Rates of the control group, where none was released."""
LIFTS = (2.8, 0.0, 5.0, 1.4, 3.8, 0.7, 2.1)
"""In standard errors of a difference; likewise."""
SMOOTH = 161
# A power this near to 0 or 1 has the height of the axis.
LEAST = 1e-9
OPEN = 1.0
"""No difference is larger: an interval that reaches it has no end on that side."""


def estimate(
    design: EstimateDesign,
    ax: Axes | None = None,
    *,
    release: EstimateRelease | None = None,
    patience: float = PATIENCE,
) -> Axes:
    """The expected width of the interval along the parameter, beside the width that no private interval goes below.

    With a release: its estimate and interval on the parameter's axis, above the width to be expected there, and above
    that bound.
    """
    return _along(design, ax, patience) if release is None else _released(design, release, ax)


def _along(design: EstimateDesign, ax: Axes | None, patience: float) -> Axes:
    asked = design.asked
    grid = asked.spaced(1 + 1000)
    places = [float(grid[round(1000 * part)]) for part in PLACES]
    start = time.monotonic()
    widths = _marks(design.expected_width, places, start + patience / 2, AT_LEAST)
    bounds = _marks(design.width_bound, places[: len(widths)], start + patience, 1)
    with drawing(ax, (8.6, 4.2)) as axes:
        mean = f"this interval, in the mean:\n{_span(widths)}"
        no_less = f"no private interval of this\nconfidence: {_span(bounds)}"
        for marks, colour, style, marker, text in (
            (widths, BLUE, "-", "o", mean),
            (bounds, VERMILLION, "--", "_", no_less),
        ):
            _curve(axes, marks, colour, style, marker, text, logarithmic=asked.logarithmic)
        if asked.logarithmic:
            axes.set_xscale("log")
        if design.tuned_for is not None and design.location is None:
            expected = number(design.tuned_for[0])
            axes.axvline(design.tuned_for[0], color=BLACK, linewidth=0.9, linestyle=":", label=f"made for {expected}")
        axes.set_xlim(*design.between)
        axes.set_ylim(0, 1.12 * max([*widths.values(), *bounds.values()]))
        axes.set_xlabel(f"true {plain(design.parameter)}")
        axes.set_ylabel("expected width of the interval")
        axes.set_title(_title(design))
        legend(axes)
        return axes


def _title(design: EstimateDesign) -> str:
    kept = f"{number(design.confidence)} interval from n = {design.n} records, {EPSILON} = {number(design.epsilon)}"
    return f"{plain(design.family)}: {kept}"


def _span(marks: dict[float, float]) -> str:
    """From the least to the largest value."""
    if not marks:
        return "not known"
    ends = [number(end, 3) for end in (min(marks.values()), max(marks.values()))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _released(design: EstimateDesign, release: EstimateRelease, ax: Axes | None) -> Axes:
    low, high = release.interval
    least, most = design.between
    at = min(max(release.estimate, least), most)
    expected = _marks(design.expected_width, [at], math.inf, 1)
    bound = _marks(design.width_bound, [at], math.inf, 1)
    said = "SIMULATED" if not release.private else "released"
    rows: list[tuple[float, float, str, Any, str]] = [
        (low, high, GREEN, "-", f"{said}: {number(release.estimate)},\n{number(low)} to {number(high)}")
    ]
    for found, colour, style, text in (
        (expected, BLUE, (0, (6, 1.5)), "to be expected there:\nwidth"),
        (bound, VERMILLION, (0, (1, 1)), "no private interval is\nshorter in the mean:"),
    ):
        rows += [(at - w / 2, at + w / 2, colour, style, f"{text} {number(w)}") for w in found.values()]
    with drawing(ax, (8.6, 2.6)) as axes:
        _no_height(axes, len(rows))
        for place, (left, right, colour, style, text) in enumerate(rows):
            axes.plot(
                [left, right],
                [-place, -place],
                color=colour,
                linestyle=style,
                linewidth=2.4,
                label=text,
                **_ends(colour),
            )
        axes.plot([release.estimate], [0], "o", color=GREEN, markeredgecolor=BLACK, markersize=7, zorder=4)
        from_, to = min(left for left, *_ in rows), max(right for _, right, *_ in rows)
        margin = 0.15 * (to - from_)
        axes.set_xlim(from_ - margin, to + margin)
        for end in {least, most}:
            if from_ - margin <= end <= to + margin:
                axes.axvline(end, color=GREY, linewidth=1.0, linestyle=":", label="_")
        axes.set_xlabel(plain(design.parameter))
        beyond = f"; the data lie {release.beyond.upper()} the range" if release.beyond else ""
        axes.set_title(f"{_title(design)}{beyond}")
        legend(axes)
        return axes


def _ends(colour: str) -> dict[str, Any]:
    """An interval's ends are upright strokes, whatever the style of its line."""
    return {"marker": "|", "markersize": 13, "markeredgewidth": 2.0, "markeredgecolor": colour}


def _no_height(axes: Axes, rows: int) -> None:
    axes.set_yticks([])
    axes.set_ylim(0.6 - rows, 0.6)
    axes.spines["left"].set_visible(False)


def groups(
    design: GroupsDesign, ax: Axes | None = None, *, release: GroupsRelease | None = None, patience: float = PATIENCE
) -> Axes:
    """How likely a lift is found, against the lift, at one rate of the control group or two.

    With a release: at the control group's noisy rate, together with the released difference and its interval.
    """
    rates = RATES if release is None else (min(max(release.rates[0], 0.0), 1.0),)
    names = ("control", "treatment") if release is None else (plain(release.names[0], 24), plain(release.names[1], 24))
    start = time.monotonic()
    found = {}
    for place, rate in enumerate(rates):
        until = start + patience * (place + 1) / len(rates)
        found[rate] = _powers(design, rate, release is not None, until)
    with drawing(ax, (8.6, 4.2)) as axes:
        looks = ((BLUE, "-", "o"), (ORANGE, (0, (6, 1.5)), "s"))
        for (rate, marks), (colour, style, marker) in zip(found.items(), looks, strict=False):
            text = f"a difference is found, if\n{names[0]} has rate {number(rate, 3)}"
            _curve(axes, marks, colour, style, marker, text, chances=True)
        axes.axhline(design.alpha, color=BLACK, linewidth=0.9, linestyle=":", label=f"{ALPHA} = {chance(design.alpha)}")
        lifts = [lift for marks in found.values() for lift in marks]
        ends = min(lifts), max(lifts)
        if release is not None:
            ends = _difference(axes, release, ends)
        axes.set_xlim(*ends)
        axes.set_ylim(0, 1.03)
        axes.set_xlabel(f"rate of {names[1]} minus rate of {names[0]}")
        axes.set_ylabel("probability")
        axes.set_title(_of_groups(design, release))
        legend(axes)
        return axes


def _of_groups(design: GroupsDesign, release: GroupsRelease | None) -> str:
    about = f"n = {design.n[0]} and {design.n[1]} records, {EPSILON} = {number(design.epsilon)}"
    if release is None:
        side = "" if design.alternative == "two-sided" else f" ({design.alternative})"
        return f"Which difference of two groups is found{side}: {about}"
    says = "the rates differ" if release.decision == "alternative" else "no difference was found"
    return f"Two groups, {about}: {says}, p = {chance(release.pvalue, 2)}"


def _powers(design: GroupsDesign, rate: float, both: bool, until: float) -> dict[float, float]:
    """Power at lifts to both sides, or to the one that is asked about, as far as there are rates."""
    noise = design.noise.variance / design.fine**2
    spread = max(rate * (1 - rate), 0.02)
    error = math.sqrt(sum(spread / n + noise / n**2 for n in design.n))
    sides = {"greater": (1,), "less": (-1,)}.get(design.alternative, (1, -1) if both else (1,))
    lifts = [min(max(side * lift * error, -rate), 1 - rate) for lift in LIFTS for side in sides]
    # 0 comes from both sides, and so may the ends.
    lifts = list(dict.fromkeys(lift + 0.0 for lift in lifts))
    return _marks(
        lambda lift: design.power((rate, min(max(rate + lift, 0.0), 1.0))), lifts, until, AT_LEAST * len(sides)
    )


def _difference(axes: Axes, release: GroupsRelease, ends: tuple[float, float]) -> tuple[float, float]:
    """The released difference on top of the curve; gives back the ends of the picture."""
    low, high = release.interval
    closed = [end for end in (low, high) if abs(end) < OPEN]
    least, most = min([*ends, release.difference, *closed]), max([*ends, release.difference, *closed])
    margin = 0.05 * (most - least)
    said = "SIMULATED" if not release.private else "released"
    told = "\n".join((f"{said}: {number(release.difference, 3)},", f"{number(low, 3)} to {number(high, 3)}"))
    left, right = max(low, least - 2 * margin), min(high, most + 2 * margin)
    axes.plot([left, right], [0.5, 0.5], color=GREEN, linewidth=2.4, label=told, **_ends(GREEN))
    axes.plot([release.difference], [0.5], "D", color=GREEN, markeredgecolor=BLACK, markersize=7, zorder=4)
    axes.axvline(0, color=BLACK, linewidth=0.9, linestyle=(0, (5, 2, 1, 2)), label="no difference")
    return least - margin, most + margin


def _marks(value: Callable[[float], float], places: Iterable[float], until: float, least: int) -> dict[float, float]:
    """Exact values at some places, in the order given: ``least`` of them, and more as long as there is time."""
    found: dict[float, float] = {}
    for count, place in enumerate(places):
        if count >= least and time.monotonic() > until:
            break
        try:
            found[place] = value(place)
        except PrivatestError:  # a number that cannot be computed is left out
            continue
    return dict(sorted(found.items()))


def _curve(
    axes: Axes,
    marks: dict[float, float],
    colour: str,
    style: Any,
    marker: str,
    text: str,
    *,
    logarithmic: bool = False,
    chances: bool = False,
) -> None:
    """The marks, and a smooth line through them."""
    look: dict[str, Any] = {"color": colour, "linestyle": style, "label": text}
    at: dict[str, Any] = {"marker": marker, "markersize": 13 if marker == "_" else 5, "markeredgewidth": 1.6}
    if len(marks) < 2:
        axes.plot(list(marks), list(marks.values()), **{**look, "linestyle": "none"}, **at)
        return
    x, y = np.array(list(marks)), np.array(list(marks.values()))
    fine: Floats = np.linspace(0, 1, SMOOTH)
    fine = x[0] * (x[-1] / x[0]) ** fine if logarithmic else x[0] + (x[-1] - x[0]) * fine
    fine = np.unique(np.concatenate([np.clip(fine, x[0], x[-1]), x]))
    along, there = (np.log(x), np.log(fine)) if logarithmic else (x, fine)
    if chances:  # power is nearly straight on the normal distribution's own scale
        smooth = ndtr(PchipInterpolator(along, ndtri(np.clip(y, LEAST, 1 - LEAST)))(there))
    else:
        smooth = PchipInterpolator(along, y)(there)
    marked = np.searchsorted(fine, x).tolist()
    axes.plot(fine, smooth, markevery=marked, **look, **at)
