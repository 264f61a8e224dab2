"""Intervals: how wide one is along its parameter, which lift a comparison finds, and what was released of either.

Widths, bounds and powers are exact at the marks, and as many are computed as patience allows; the lines between the
marks are drawn by hand, so to say: smoothly.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri

from privatest.errors import PrivatestError
from privatest.numbers import Floats
from privatest.pictures.canvas import (
    ALPHA,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    OWN,
    VERMILLION,
    chance,
    cost,
    drawing,
    legend,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.estimates import EstimateDesign, EstimateRelease, GroupsDesign, GroupsRelease

__all__ = ["estimate", "groups"]

# No further mark is begun after so many seconds: one takes up to a few.
PATIENCE = 7.0
# Parts of the range, in rounds: a round is computed whole, so that the line through its marks does not lean to a side.
PLACES = ((0.5,), (0.05, 0.95), (0.25, 0.75), (0.15, 0.85), (0.35, 0.65))
RATES = (0.5, 0.1)
"""Rates of the control group, where none was released."""
LIFTS = ((0.0,), (2.8,), (4.6,), (1.4,), (3.7,), (2.1,), (0.7,))
"""In standard errors of a difference; likewise in rounds."""
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
    asked, fine = design.asked, 1000
    grid = asked.spaced(1 + fine)
    places = [[float(grid[round(fine * part)]) for part in parts] for parts in PLACES]
    start = time.monotonic()
    widths = _marks(design.expected_width, places, start + patience / 2, 2)
    bounds = _marks(design.width_bound, places, start + patience, 1)
    with drawing(ax, (8.6, 4.2)) as axes:
        mean = f"this interval, in the mean:\n{_span(widths)}"
        no_less = f"no private interval of this\nconfidence: {_span(bounds)}"
        _curve(axes, widths, BLUE, "-", "o", mean, logarithmic=asked.logarithmic)
        _curve(axes, bounds, VERMILLION, "--", "_", no_less, logarithmic=asked.logarithmic)
        if asked.logarithmic:
            axes.set_xscale("log")
        if design.tuned_for is not None:
            expected = number(design.tuned_for[0])
            axes.axvline(design.tuned_for[0], color=BLACK, linewidth=0.9, linestyle=":", label=f"made for {expected}")
        axes.set_xlim(*design.between)
        axes.set_ylim(0, 1.12 * max([*widths.values(), *bounds.values()]))
        axes.set_xlabel(f"true {plain(design.parameter)}")
        axes.set_ylabel("expected width of the interval")
        _titled(axes, *_title(design))
        legend(axes)
        return axes


def _title(design: EstimateDesign) -> tuple[str, str]:
    kept = f"n = {design.n} records, {cost(design)}"
    return f"{number(design.confidence)} interval for {plain(design.family)}", kept


def _titled(axes: Axes, first: str, second: str) -> None:
    """A title: on one line of a figure of our own, on two where the caller's may be narrow."""
    axes.set_title(f"{first}, {second}" if axes.figure.get_label() == OWN else f"{first},\n{second}")


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
    expected = _marks(design.expected_width, [[at]], math.inf, 1)
    bound = _marks(design.width_bound, [[at]], math.inf, 1)
    told = f"{_said(release)}: {number(release.estimate)}, {number(low)} to {number(high)}"
    rows: list[tuple[float, float, str, Any, str]] = [(low, high, GREEN, "-", told)]
    for found, colour, style, text in (
        (expected, BLUE, (0, (6, 1.5)), "to be expected there: width"),
        (bound, VERMILLION, (0, (1, 1)), "no private interval is shorter in the mean: width"),
    ):
        rows += [(at - w / 2, at + w / 2, colour, style, f"{text} {number(w)}") for w in found.values()]
    with drawing(ax, (8.6, 3.0)) as axes:
        for place, (left, right, colour, style, text) in enumerate(rows):
            _bar(axes, left, right, -float(place), colour, style, text)
        axes.plot([release.estimate], [0], "o", color=GREEN, markeredgecolor=BLACK, markersize=7, zorder=4)
        from_, to = min(left for left, *_ in rows), max(right for _, right, *_ in rows)
        margin = 0.1 * (to - from_) or 0.5
        axes.set_xlim(from_ - margin, to + margin)
        axes.set_yticks([])
        axes.set_ylim(0.6 - len(rows), 0.7)
        axes.spines["left"].set_visible(False)
        for end in design.between:
            if from_ - margin <= end <= to + margin:
                axes.axvline(end, color=GREY, linewidth=1.0, linestyle=":", label="end of the range")
        axes.set_xlabel(plain(design.parameter))
        first, second = _title(design)
        beyond = f"; the data lie {release.beyond.upper()} the range" if release.beyond else ""
        _titled(axes, first, f"{second}{beyond}")
        return axes


def _said(release: EstimateRelease | GroupsRelease) -> str:
    return "SIMULATED" if release.simulated else "released"


def _bar(axes: Axes, low: float, high: float, height: float, colour: str, style: Any, text: str) -> None:
    """An interval: its ends are upright strokes, whatever the style of its line, and its text stands above it."""
    look: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 2.0, "markeredgecolor": colour}
    axes.plot([low, high], [height, height], color=colour, linestyle=style, linewidth=2.4, label=f"_{text}", **look)
    place: Any = axes.get_yaxis_transform()  # across the picture in parts of it
    white: Any = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    at: dict[str, Any] = {"xycoords": place, "textcoords": "offset points", "ha": "center", "bbox": white}
    axes.annotate(text, (0.5, height), (0, 9), fontsize=8.5, **at)


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
        margin = 0.03 * (max(lifts) - min(lifts))
        ends = min(lifts) - margin, max(lifts) + margin
        if release is not None:
            ends = _difference(axes, release, ends)
        axes.set_xlim(*ends)
        axes.set_ylim(0, 1.03 if release is None else 1.28)
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
        axes.set_xlabel(f"rate of {names[1]} minus rate of {names[0]}")
        axes.set_ylabel("probability")
        _titled(axes, *_of_groups(design, release))
        legend(axes)
        return axes


def difference(release: GroupsRelease, ax: Axes | None = None) -> Axes:
    """A released difference of two groups and its interval; of counts that were noised elsewhere there is no design."""
    names = plain(release.names[0], 24), plain(release.names[1], 24)
    with drawing(ax, (8.6, 2.6)) as axes:
        closed = [end for end in release.interval if abs(end) < OPEN]
        away = 1.3 * max(map(abs, [release.difference, *closed, 0.01]))
        axes.set_xlim(*_difference(axes, release, (-away, away)))
        axes.set_ylim(1.0, 1.28)
        axes.set_yticks([])
        axes.set_xlabel(f"rate of {names[1]} minus rate of {names[0]}")
        _titled(axes, _found(release), f"n = {release.n[0]} and {release.n[1]} records")
        legend(axes)
        return axes


def _found(release: GroupsRelease) -> str:
    says = "The rates differ" if release.decision == "alternative" else "No difference was found"
    return f"{says}, p = {chance(release.pvalue, 2)}"


def _of_groups(design: GroupsDesign, release: GroupsRelease | None) -> tuple[str, str]:
    about = f"n = {design.n[0]} and {design.n[1]} records, {cost(design)}"
    if release is None:
        side = "" if design.alternative == "two-sided" else f" ({design.alternative})"
        return f"Which difference is found{side}", about
    return _found(release), about


def _powers(design: GroupsDesign, rate: float, both: bool, until: float) -> dict[float, float]:
    """Power at lifts to both sides, or to the one that is asked about, as far as there are rates."""
    noise = design.noise.variance / design.fine**2
    spread = max(rate * (1 - rate), 0.02)
    error = math.sqrt(sum(spread / n + noise / n**2 for n in design.n))
    sides = {"greater": (1,), "less": (-1,)}.get(design.alternative, (1, -1) if both else (1,))
    rounds = [[min(max(side * lift * error, -rate), 1 - rate) for lift in lifts for side in sides] for lifts in LIFTS]
    return _marks(lambda lift: design.power((rate, min(max(rate + lift, 0.0), 1.0))), rounds, until, 3)


def _difference(axes: Axes, release: GroupsRelease, ends: tuple[float, float]) -> tuple[float, float]:
    """The released difference above the curve; gives back the ends of the picture."""
    low, high = release.interval
    closed = [end for end in (low, high) if abs(end) < OPEN]
    least, most = min([*ends, release.difference, *closed]), max([*ends, release.difference, *closed])
    margin = 0.03 * (most - least)
    told = f"{_said(release)}: {number(release.difference, 3)}, {_between(release)}"
    _bar(axes, max(low, least - 2 * margin), min(high, most + 2 * margin), 1.12, GREEN, "-", told)
    axes.plot([release.difference], [1.12], "D", color=GREEN, markeredgecolor=BLACK, markersize=7, zorder=4)
    axes.axvline(0, color=BLACK, linewidth=0.9, linestyle=(0, (5, 2, 1, 2)), label="no difference")
    return least - margin, most + margin


def _between(release: GroupsRelease) -> str:
    """The interval; of a one-sided question the end that it has."""
    low, high = (number(end, 3) for end in release.interval)
    return {"greater": f"at least {low}", "less": f"at most {high}"}.get(release.alternative, f"{low} to {high}")


def _marks(
    value: Callable[[float], float], rounds: Iterable[Iterable[float]], until: float, least: int
) -> dict[float, float]:
    """Exact values at some places: of as many rounds of places, ``least`` or more, as there is time for."""
    found: dict[float, float] = {}
    for count, places in enumerate(rounds):
        if count >= least and time.monotonic() > until:
            break
        for place in places:
            with contextlib.suppress(PrivatestError):  # a number that cannot be computed is left out
                if place + 0.0 not in found:
                    found[place + 0.0] = value(place)
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
