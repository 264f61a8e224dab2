"""Pictures of tests, estimates, comparisons of groups, change points and streams, with their releases.

- *Tests*: the law of the noisy statistic under both hypotheses, the threshold, and the released statistic.
- *Intervals*: expected widths along a parameter, the power of a comparison along the difference, and the released
  interval. Numbers are exact at the marks, of which as many are computed as patience allows; the lines between the
  marks are smooth interpolations.
- *Series*: change points with the accuracy that is promised, noisy block sums, the walk of a sequential test's log
  e-value between its boundaries, and how long such walks take.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri

from privatest.errors import InvalidInput, PrivatestError, shown
from privatest.numbers import Floats
from privatest.pictures.canvas import (
    ALPHA,
    BETA,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MINUS,
    ORANGE,
    OWN,
    PLUS_MINUS,
    SKY,
    VERMILLION,
    chance,
    cost,
    drawing,
    finished,
    law,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.bounds import HistogramTest
    from privatest.changepoint import ChangePlan, ChangePoint
    from privatest.changepoint.detector import FailureCurve
    from privatest.decision import PrivateTest, Release
    from privatest.estimates import EstimateDesign, EstimateRelease, GroupsDesign, GroupsRelease, Table
    from privatest.fit import FitRelease, FitTest
    from privatest.streams import Alarm, SequentialPlan, Verdict


BINS = 90
# Names of cells below a table's bars, at most.
MOST_NAMES = 14
# Mass of either law that may lie outside of the picture on each side.
OUTSIDE = 0.002
DEVIATIONS = 3.2
# Scores from here on stand for infinite ratios, which are off every picture.
INFINITE = 1 << 20


def private_test(test: PrivateTest, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
    """Draw the exact laws of the noisy statistic under P and Q in bins, the threshold, and the released statistic.

    The hatched areas are alpha (P's law, where the decision is "alternative") and beta (Q's, where it is "null").
    """
    cutoffs = _cutoffs(test)
    null, alternative, *upper = test.masses(cutoffs)
    unit = test.score.step / test.scale
    edges = np.array([test.threshold + float(unit * (cutoff - test.cutoff)) for cutoff in cutoffs])
    thresholds, axis = test.thresholds, "noisy sum of clamped log ratios, in nats"
    if test.noise.spacing > 1:  # a bar for every level; the first level beyond the threshold is 1
        edges = np.array([float((cutoff - test.cutoff) / test.noise.spacing) + 0.5 for cutoff in cutoffs])
        thresholds, axis = (0.5,), "level: widths above the threshold, with noise"
    left = np.array([cutoff < test.cutoff for cutoff in cutoffs[:-1]])
    right = np.array([test.upper is not None and cutoff >= test.upper for cutoff in cutoffs[:-1]])
    with drawing(ax, (8.6, 4.2)) as axes:
        _law(axes, edges, null, law("P", test.null, lines=True), BLUE, "-")
        _error(axes, edges, null, left | right, f"{ALPHA} = {chance(test.alpha)}", BLUE, "////")
        for masses, wrong in zip((alternative, *upper), (~left, ~right), strict=False):
            first = masses is alternative
            _law(axes, edges, masses, law("Q", test.alternative, lines=True) if first else None, VERMILLION, "--")
            error = f"{BETA} = {chance(test.beta)}" if first else None
            _error(axes, edges, masses, wrong, error, VERMILLION, "....")
        where = 'left: "alternative"' if test.upper is None else 'between: "null"'
        price = cost(test) if test.private else "NOT PRIVATE"
        title = f"What the test '{plain(test.name)}' releases from n = {test.n} records, {price}"
        return _with_threshold(axes, edges, thresholds, where, release, axis, title)


def fit_test(test: FitTest, ax: Axes | None = None, *, release: FitRelease | None = None) -> Axes:
    """Draw the laws of the noisy statistic per record under P and under the hardest alternative, with the threshold."""
    laws = test.null_law, test.candidate.law(test.hardest_law, test.n)
    noise, cutoff = test.noise, float(test.cutoff)
    spread = [math.hypot(one.deviation, math.sqrt(noise.variance)) for one in laws]
    low = min(one.mean - 4.5 * s for one, s in zip(laws, spread, strict=True))
    high = max(one.mean + 5 * s for one, s in zip(laws, spread, strict=True))
    step = (high - low) / BINS
    places = np.arange(math.floor((low - cutoff) / step), math.ceil((high - cutoff) / step) + 1)
    edges: Floats = np.asarray(cutoff + step * places, dtype=np.float64)
    cdfs = [one.noisy_cdfs(edges - one.values[0], noise) for one in laws]
    centre, scale = laws[0].mean, test.candidate.excess.width * test.n
    # The statistic is minus the excess, so that large values speak for P and the axis is reversed.
    shown, threshold = (centre - edges[::-1]) / scale, (centre - cutoff) / scale
    # Not above the cutoff: "null".
    below = (np.arange(len(edges) - 1) < round((cutoff - edges[0]) / step))[::-1]
    hardest = f"hardest law at distance {number(test.distance)}"
    with drawing(ax, (8.6, 4.2)) as axes:
        null, hard = (np.diff(cdf)[::-1] for cdf in cdfs)
        _law(axes, shown, null, law("P", test.domain.null, lines=True), BLUE, "-")
        _error(axes, shown, null, ~below, f"{ALPHA} = {chance(test.alpha)}", BLUE, "////")
        _law(axes, shown, hard, hardest, VERMILLION, "--")
        _error(axes, shown, hard, below, f"{BETA} = {chance(test.beta)}", VERMILLION, "....")
        axis = "minus the noisy excess over its mean under P, for each record"
        title = f"What the fit test '{plain(test.method)}' releases from n = {test.n} records, {cost(test)}"
        return _with_threshold(axes, shown, (threshold,), 'left: "alternative"', release, axis, title)


def _cutoffs(test: PrivateTest) -> list[Fraction]:
    """Return edges of bins, including the test's cutoff, that cover nearly all of both laws."""
    score, noise = test.score, test.noise
    ordinary = np.abs(score.support) < INFINITE
    support = test.null_total.support
    low, spacing = int(support[0]), int(np.gcd.reduce(support - support[0])) or 1
    # With noise all multiples of the step are possible; bins of whole spacings look as smooth as the law.
    unit = spacing if ordinary.all() else 1
    hidden = math.log(1 / (2 * OUTSIDE)) / noise.decay_rate + getattr(noise, "width", 0) / 2
    unit = noise.spacing if noise.spacing > 1 else unit  # only the level is released
    places: set[int] = {0}
    if test.upper is not None:
        places.add(math.floor(test.upper - test.cutoff))
    for law_ in (score.null_law, score.alternative_law, *score.upper_laws[:1]):
        mass = math.fsum(law_[ordinary])
        if mass == 0:
            continue
        scores = (support[ordinary] - low).astype(np.float64)
        mean = float(law_[ordinary] @ scores) / mass
        deviation = math.sqrt(test.n * float(law_[ordinary] @ (scores - mean) ** 2) / mass)
        centre = float(test.n * (Fraction(low) + Fraction(mean)) - test.cutoff)
        reach = max(math.hypot(DEVIATIONS * deviation, hidden), 3.0 * unit)
        step = max(math.ceil(2 * reach / BINS / unit), 1) * unit
        first, last = math.floor((centre - reach) / step), math.ceil((centre + reach) / step)
        places |= {step * i for i in range(first, last + 1)}
    return [test.cutoff + place for place in sorted(places)]


def _law(axes: Axes, edges: Floats, masses: Floats, text: str | None, colour: str, style: str) -> None:
    heights = np.maximum(masses, 0.0) / np.diff(edges)
    axes.stairs(heights, edges, color=colour, linestyle=style, linewidth=1.5, label=text)


def _error(axes: Axes, edges: Floats, masses: Floats, wrong: Any, text: str | None, colour: str, hatch: str) -> None:
    heights = np.where(wrong, np.maximum(masses, 0.0) / np.diff(edges), 0.0)
    look: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "hatch": hatch, "alpha": 0.3, "linewidth": 0.0}
    axes.stairs(heights, edges, fill=True, label=text, **look)


def _with_threshold(
    axes: Axes, edges: Floats, thresholds: tuple[float, ...], text: str, release: Any, x: str, title: str
) -> Axes:
    """Add the thresholds and the released statistic, if there is one, and finish the picture."""
    label = f"threshold{'s' if len(thresholds) > 1 else ''} {', '.join(map(number, thresholds))}\n({text})"
    for threshold in thresholds:
        axes.axvline(threshold, color=BLACK, linewidth=1.1, label=label)
        label = "_"  # one entry of the legend for both
    low, high = float(edges[0]), float(edges[-1])
    if release is not None and release.statistic is not None:
        statistic = float(release.statistic)
        shown = f"{'SIMULATED' if release.simulated else 'released'}: {number(statistic)}"
        says = "fits NEITHER" if release.fits == "neither" else f"'{release.decision}'"
        label = f"{shown}\n(p = {chance(release.pvalue, 2)}, {says})"
        axes.axvline(statistic, color=GREEN, linewidth=1.8, linestyle=(0, (3, 1.2)), label=label)
        low, high = min(low, statistic), max(high, statistic)
    margin = 0.02 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(bottom=0)
    return finished(axes, x, "probability density", title)


def power_along(
    test: PrivateTest, family: str, between: tuple[float, float], ax: Axes | None = None, *, points: int = 81
) -> Axes:
    """Draw the exact probability of "alternative" along a parameter of a family, and the error rates of the test."""
    low, high = _range_ends(between)
    values = np.linspace(low, high, points)
    power = test.power_along(family, values.tolist())
    with drawing(ax, (8.6, 4.2)) as axes:
        axes.plot(values, power, color=BLUE, label=f"records from\n{plain(family)}")
        for level, name, style in ((test.alpha, ALPHA, ":"), (1 - test.beta, f"1 {MINUS} {BETA}", "--")):
            axes.axhline(level, color=BLACK, linewidth=0.9, linestyle=style, label=f"{name} = {chance(level)}")
        axes.set_xlim(low, high)
        axes.set_ylim(0, 1.02)
        named = re.search(r"(\w+)\s*=\s*\?", family)
        title = f"Power of the test '{plain(test.name)}' on n = {test.n} records, {cost(test)}"
        return finished(axes, named[1] if named else "?", 'probability of "alternative"', title)


def _range_ends(between: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in between)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"between={shown(between)} must be two numbers, the first below the second.")
    return low, high


def histogram_test(test: HistogramTest, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
    """Draw the laws of the histogram's log ratio under P and under Q, and the probability of "null" there."""
    with np.errstate(divide="ignore"):
        ratios = np.log(test.null_law) - np.log(test.alternative_law)
    ordinary = np.abs(ratios[np.isfinite(ratios)])
    most = 2 * float(ordinary.max(initial=0.0)) + 1  # stands for infinite ratios
    ratio = test.histograms.table @ np.clip(ratios, -most, most)
    laws = [test.histograms.law(one) for one in (test.null_law, test.alternative_law)]
    shown = np.sort(ratio[(laws[0] > OUTSIDE * laws[0].max()) | (laws[1] > OUTSIDE * laws[1].max())])
    bins = min(BINS, len(np.unique(shown.round(9))))
    edges = np.linspace(shown[0] - 0.5, shown[-1] + 0.5, bins + 1)
    weights = laws[0] + laws[1]
    reached, rejected = (np.histogram(ratio, edges, weights=one)[0] for one in (weights, weights * test.chances))
    with drawing(ax, (8.6, 4.2)) as axes:
        for masses, letter, text, colour, style in (
            (laws[0], "P", test.null, BLUE, "-"),
            (laws[1], "Q", test.alternative, VERMILLION, "--"),
        ):
            heights = np.histogram(ratio, edges, weights=masses)[0]
            axes.stairs(heights, edges, color=colour, linestyle=style, label=law(letter, text, lines=True))
        centres = (edges[:-1] + edges[1:]) / 2
        seen = reached > 0
        axes.plot(centres[seen], rejected[seen] / reached[seen], color=GREEN, marker=".", label='says "null"')
        axes.set_ylim(0, 1.05)
        answer = "" if release is None else f'; it said "{release.decision}"'
        title = f"Histogram test '{plain(test.name)}' on n = {test.n} records, {cost(test)}{answer}"
        return finished(axes, "log ratio of the histogram, in nats", "probability", title)


# No further mark is begun after this many seconds; one takes up to a few.
PATIENCE = 7.0
# Parts of the range, in rounds that are computed as a whole, so that the marks cover the range evenly.
PLACES = ((0.5,), (0.05, 0.95), (0.25, 0.75), (0.15, 0.85), (0.35, 0.65))
RATES = (0.5, 0.1)
"""Rates of the control group that are drawn if none was released."""
LIFTS = ((0.0,), (2.8,), (4.6,), (1.4,), (3.7,), (2.1,), (0.7,))
"""Lifts in standard errors of a difference, in rounds."""
SMOOTH = 161
# Powers are drawn at least this far from 0 and 1.
LEAST = 1e-9
OPEN = 1.0
"""The largest difference: an interval that reaches it has no end on that side."""


def estimate(
    design: EstimateDesign,
    ax: Axes | None = None,
    *,
    release: EstimateRelease | None = None,
    patience: float = PATIENCE,
) -> Axes:
    """Draw the expected width of the interval along the parameter, and a lower bound for all private intervals.

    With a release: its estimate and interval on the parameter's axis, with the expected width there and the bound.
    """
    return _along(design, ax, patience) if release is None else _released(design, release, ax)


def _along(design: EstimateDesign, ax: Axes | None, patience: float) -> Axes:
    parameter, fine = design.unknown, 1000
    grid = parameter.spaced(1 + fine)
    places = [[float(grid[round(fine * part)]) for part in parts] for parts in PLACES]
    start = time.monotonic()
    widths = _marks(design.expected_width, places, start + patience / 2, 2)
    bounds = _marks(design.width_bound, places, start + patience, 1)
    with drawing(ax, (8.6, 4.2)) as axes:
        mean = f"this interval, in the mean:\n{_span(widths)}"
        no_less = f"no private interval of this\nconfidence: {_span(bounds)}"
        _curve(axes, widths, BLUE, "-", "o", mean, logarithmic=parameter.logarithmic)
        _curve(axes, bounds, VERMILLION, "--", "_", no_less, logarithmic=parameter.logarithmic)
        if parameter.logarithmic:
            axes.set_xscale("log")
        if design.tuned_for is not None:
            expected = number(design.tuned_for[0])
            axes.axvline(design.tuned_for[0], color=BLACK, linewidth=0.9, linestyle=":", label=f"made for {expected}")
        axes.set_xlim(*design.between)
        axes.set_ylim(0, 1.12 * max([*widths.values(), *bounds.values()]))
        title = _joined(axes, *_title(design))
        return finished(axes, f"true {plain(design.parameter)}", "expected width of the interval", title)


def _title(design: EstimateDesign) -> tuple[str, str]:
    price = f"n = {design.n} records, {cost(design)}"
    return f"{number(design.confidence)} interval for {plain(design.family)}", price


def _joined(axes: Axes, first: str, second: str) -> str:
    """Return a title, on one line of a figure of our own, on two lines of the caller's figure, which may be narrow."""
    return f"{first}, {second}" if axes.figure.get_label() == OWN else f"{first},\n{second}"


def _span(marks: dict[float, float]) -> str:
    """Return the range of the values, as text."""
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
    text = f"{_status(release)}: {number(release.estimate)}, {number(low)} to {number(high)}"
    rows: list[tuple[float, float, str, Any, str]] = [(low, high, GREEN, "-", text)]
    for widths, colour, style, text in (
        (expected, BLUE, (0, (6, 1.5)), "to be expected there: width"),
        (bound, VERMILLION, (0, (1, 1)), "no private interval is shorter in the mean: width"),
    ):
        rows += [(at - w / 2, at + w / 2, colour, style, f"{text} {number(w)}") for w in widths.values()]
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
        axes.set_title(_joined(axes, first, f"{second}{beyond}"))
        return axes


def _status(release: EstimateRelease | GroupsRelease) -> str:
    return "SIMULATED" if release.simulated else "released"


def _bar(axes: Axes, low: float, high: float, height: float, colour: str, style: Any, text: str) -> None:
    """Draw an interval with upright strokes as ends and its text above it."""
    look: dict[str, Any] = {"marker": "|", "markersize": 13, "markeredgewidth": 2.0, "markeredgecolor": colour}
    axes.plot([low, high], [height, height], color=colour, linestyle=style, linewidth=2.4, label=f"_{text}", **look)
    place: Any = axes.get_yaxis_transform()  # x in parts of the picture's width
    white: Any = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    at: dict[str, Any] = {"xycoords": place, "textcoords": "offset points", "ha": "center", "bbox": white}
    axes.annotate(text, (0.5, height), (0, 9), fontsize=8.5, **at)


def groups(
    design: GroupsDesign, ax: Axes | None = None, *, release: GroupsRelease | None = None, patience: float = PATIENCE
) -> Axes:
    """Draw the probability of finding a lift against the lift, at one or two rates of the control group.

    With a release: at the control group's noisy rate, with the released difference and its interval.
    """
    rates = RATES if release is None else (min(max(release.rates[0], 0.0), 1.0),)
    names = ("control", "treatment") if release is None else (plain(release.names[0], 24), plain(release.names[1], 24))
    start = time.monotonic()
    powers = {}
    for place, rate in enumerate(rates):
        until = start + patience * (place + 1) / len(rates)
        powers[rate] = _powers(design, rate, release is not None, until)
    with drawing(ax, (8.6, 4.2)) as axes:
        looks = ((BLUE, "-", "o"), (ORANGE, (0, (6, 1.5)), "s"))
        for (rate, marks), (colour, style, marker) in zip(powers.items(), looks, strict=False):
            text = f"a difference is found, if\n{names[0]} has rate {number(rate, 3)}"
            _curve(axes, marks, colour, style, marker, text, chances=True)
        axes.axhline(design.alpha, color=BLACK, linewidth=0.9, linestyle=":", label=f"{ALPHA} = {chance(design.alpha)}")
        lifts = [lift for marks in powers.values() for lift in marks]
        margin = 0.03 * (max(lifts) - min(lifts))
        ends = min(lifts) - margin, max(lifts) + margin
        if release is not None:
            ends = _difference(axes, release, ends)
        axes.set_xlim(*ends)
        axes.set_ylim(0, 1.03 if release is None else 1.28)
        axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
        title = _joined(axes, *_groups_title(design, release))
        return finished(axes, f"rate of {names[1]} minus rate of {names[0]}", "probability", title)


def table(release: Table, ax: Axes | None = None) -> Axes:
    """Draw the noisy counts of a table, each with the interval that holds the true count with probability 95%."""
    names, counts = [plain(name, 16) for name in release.names], release.counts
    away = release.noise.beyond(0.025)
    with drawing(ax, (8.6, 4.2)) as axes:
        places = np.arange(len(names))
        axes.bar(places, counts, color=BLUE, alpha=0.55, width=0.9, label="noisy count")
        text = f"holds the true count\nwith probability 95%: {PLUS_MINUS} {away}"
        axes.errorbar(places, counts, yerr=away, fmt="none", ecolor=BLACK, elinewidth=0.9, capsize=2, label=text)
        axes.axhline(0, color=BLACK, linewidth=0.8)
        shown = places[:: -(-len(names) // MOST_NAMES)]
        axes.set_xticks(shown, [names[place] for place in shown], rotation=40, ha="right")
        title = f"{release.cells.count} cells, {number(release.present)} records present, {_price(release)}"
        return finished(axes, "cell", "records", title)


def difference(release: GroupsRelease, ax: Axes | None = None) -> Axes:
    """Draw a released difference of two groups and its interval, for counts that were noised elsewhere."""
    names = plain(release.names[0], 24), plain(release.names[1], 24)
    with drawing(ax, (8.6, 2.6)) as axes:
        closed = [end for end in release.interval if abs(end) < OPEN]
        away = 1.3 * max(map(abs, [release.difference, *closed, 0.01]))
        axes.set_xlim(*_difference(axes, release, (-away, away)))
        axes.set_ylim(1.0, 1.28)
        axes.set_yticks([])
        title = _joined(axes, _answer(release), f"n = {release.n[0]} and {release.n[1]} records")
        return finished(axes, f"rate of {names[1]} minus rate of {names[0]}", None, title)


def _answer(release: GroupsRelease) -> str:
    says = "The rates differ" if release.decision == "alternative" else "No difference was found"
    return f"{says}, p = {chance(release.pvalue, 2)}"


def _groups_title(design: GroupsDesign, release: GroupsRelease | None) -> tuple[str, str]:
    about = f"n = {design.n[0]} and {design.n[1]} records, {cost(design)}"
    if release is None:
        side = "" if design.alternative == "two-sided" else f" ({design.alternative})"
        return f"Which difference is found{side}", about
    return _answer(release), about


def _powers(design: GroupsDesign, rate: float, both: bool, until: float) -> dict[float, float]:
    """Return the power by lift, on both sides or on that of the alternative, for rates between 0 and 1."""
    noise = design.noise.variance / design.fine**2
    spread = max(rate * (1 - rate), 0.02)
    error = math.sqrt(sum(spread / n + noise / n**2 for n in design.n))
    sides = {"greater": (1,), "less": (-1,)}.get(design.alternative, (1, -1) if both else (1,))
    rounds = [[min(max(side * lift * error, -rate), 1 - rate) for lift in lifts for side in sides] for lifts in LIFTS]
    return _marks(lambda lift: design.power((rate, min(max(rate + lift, 0.0), 1.0))), rounds, until, 3)


def _difference(axes: Axes, release: GroupsRelease, ends: tuple[float, float]) -> tuple[float, float]:
    """Draw the released difference above the curve; return the ends of the picture."""
    low, high = release.interval
    closed = [end for end in (low, high) if abs(end) < OPEN]
    least, most = min([*ends, release.difference, *closed]), max([*ends, release.difference, *closed])
    margin = 0.03 * (most - least)
    text = f"{_status(release)}: {number(release.difference, 3)}, {_between(release)}"
    _bar(axes, max(low, least - 2 * margin), min(high, most + 2 * margin), 1.12, GREEN, "-", text)
    axes.plot([release.difference], [1.12], "D", color=GREEN, markeredgecolor=BLACK, markersize=7, zorder=4)
    axes.axvline(0, color=BLACK, linewidth=0.9, linestyle=(0, (5, 2, 1, 2)), label="no difference")
    return least - margin, most + margin


def _between(release: GroupsRelease) -> str:
    """Return the interval as text; for a one-sided question only its end."""
    low, high = (number(end, 3) for end in release.interval)
    return {"greater": f"at least {low}", "less": f"at most {high}"}.get(release.alternative, f"{low} to {high}")


def _marks(
    value: Callable[[float], float], rounds: Iterable[Iterable[float]], until: float, least: int
) -> dict[float, float]:
    """Return exact values by place, for as many rounds of places as time allows, but at least ``least``."""
    power: dict[float, float] = {}
    for count, places in enumerate(rounds):
        if count >= least and time.monotonic() > until:
            break
        for place in places:
            with contextlib.suppress(PrivatestError):  # a number that cannot be computed is left out
                if place + 0.0 not in power:
                    power[place + 0.0] = value(place)
    return dict(sorted(power.items()))


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
    """Draw the marks and a smooth line through them."""
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
    if chances:  # power is nearly a straight line on the scale of normal quantiles
        smooth = ndtr(PchipInterpolator(along, ndtri(np.clip(y, LEAST, 1 - LEAST)))(there))
    else:
        smooth = PchipInterpolator(along, y)(there)
    marked = np.searchsorted(fine, x).tolist()
    axes.plot(fine, smooth, markevery=marked, **look, **at)


MOST_BARS = 300
"""More blocks than this are drawn as one outline."""
LEAST_SERIES = 1e-4
"""Failure probabilities below this are off the picture."""
RECORDS, SIMULATED = "record, in order of time", "SIMULATED, not private"


def change_point(change: ChangePoint, ax: Axes | None = None) -> Axes:
    """Draw the indices with their accuracy on the line of records and, if blocks were released, their noisy sums."""
    count, block = len(change.indices), change.block
    if change.several:
        answer = f"{count} change{'' if count == 1 else 's'}" if change.changed else "No change found"
        title = f"{answer} in {change.n} records ({_price(change)})"
    else:
        when = "" if change.order_value is None else f" ({plain(str(change.order_value))})"
        answer = "No change found" if change.index is None else f"Change at record {change.index}{when}"
        title = f"{answer} of {change.n} (method '{plain(change.method)}', {_price(change)})"
    band = f"{PLUS_MINUS}{change.accuracy}, {'each ' if change.several else ''}right with\n"
    with drawing(ax, (8.6, 3.8 if change.sums and block else 2.2)) as axes:
        if change.sums and block:
            _sums(axes, np.asarray(change.sums, dtype=np.float64), block, change.n % block // 2)
        else:
            _hide_height(axes)
        for place, index in enumerate(change.indices):
            low, high = max(index - change.accuracy, 0), min(index + change.accuracy, change.n)
            line = "changes" if change.several else f"change at {index}"
            _band(axes, low, high, "" if place else f"{band}probability {number(1 - change.beta)}")
            axes.axvline(index, color=VERMILLION, linewidth=2.0, label="" if place else line)
        axes.set_xlim(0, change.n)
        return finished(axes, RECORDS, None, title)


def _hide_height(axes: Axes) -> None:
    """Leave only the line of records."""
    axes.set_yticks([])
    axes.set_ylim(0, 1)
    axes.spines["left"].set_visible(False)


def _price(release: Any) -> str:
    return cost(release) if release.private else SIMULATED


def change_plan(plan: ChangePlan, curve: FailureCurve, ax: Axes | None = None) -> Axes:
    """Draw an upper bound on the probability that an index is off by more than a distance, and the accuracy."""
    distances, failures = np.asarray(curve.distances), np.asarray(curve.failures)
    last = max(int(np.searchsorted(distances, 2.5 * plan.accuracy)), 2)
    distances, failures = distances[:last], failures[:last]
    several = plan.spacing is not None
    curves = [
        (failures, BLUE, "-", "a change missed or\nfurther off, at most" if several else "index further off, at most")
    ]
    if plan.power is not None:
        missed = np.array([1 - plan.power_after(int(a)) if a > 0 else 1.0 for a in distances])
        curves += [
            (missed, ORANGE, "--", "change missed, if so near\nthe end, at most"),
            (failures + missed, GREY, ":", "either"),
        ]
    laws = f"{law('P', plan.null)}, {'' if several else 'then '}{law('Q', plan.alternative)}, {cost(plan)}"
    title = f"How far off {'each change' if several else 'the index'} can be; {laws}, method '{plain(plan.method)}'"
    with drawing(ax, (8.6, 4.0)) as axes:
        for values, colour, style, text in curves:
            shown = np.clip(values, LEAST_SERIES, 1)
            axes.step(distances, shown, where="post", color=colour, linestyle=style, label=text)
        look: dict[str, Any] = {"color": BLACK, "linewidth": 0.8, "linestyle": (0, (5, 2, 1, 2))}
        axes.axhline(plan.beta, label=f"{BETA} = {number(plan.beta)}", **look)
        axes.axvline(plan.accuracy, color=VERMILLION, linewidth=1.4, label=f"accuracy: {plan.accuracy} records")
        axes.set_yscale("log")
        axes.set_ylim(LEAST_SERIES, 1.1)
        axes.set_xlim(0, max(float(distances[-1]), plan.accuracy * 1.2, 1.0))
        return finished(axes, "distance from the true change point, in records", "probability", title)


def monitor(watch: Any, ax: Axes | None = None) -> Axes:
    """Draw the last noisy block sums of a monitor and the alarm with its accuracy, if there is one.

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
        state = f"alarm after {raised.seen} records" if raised is not None else f"no alarm in {watch.seen} records"
        return finished(axes, RECORDS, None, f"Monitor: {state}, {_price(watch)}")


def alarm(raised: Alarm, ax: Axes | None = None) -> Axes:
    """Draw an alarm: the index with its accuracy on the line of records, and when it was raised."""
    with drawing(ax, (8.6, 2.2)) as axes:
        _hide_height(axes)
        _alarm(axes, raised)
        axes.set_xlim(max(min(raised.index - 2 * raised.accuracy, raised.index - 1), 0), raised.seen * 1.01)
        ending = "" if raised.private else f", {SIMULATED}"
        return finished(axes, RECORDS, None, f"Alarm after {raised.seen} records{ending}")


def _alarm(axes: Axes, raised: Any) -> None:
    index, accuracy = raised.index, raised.accuracy
    _band(axes, index - accuracy, index + accuracy, f"{PLUS_MINUS}{accuracy} records")
    axes.axvline(index, color=VERMILLION, linewidth=2.0, label=f"change at {index}")
    axes.axvline(raised.seen, color=BLACK, linewidth=1.4, linestyle="--", label=f"alarm after {raised.seen}")


def _sums(axes: Axes, sums: Any, block: int, start: int) -> None:
    """Draw a bar for each block's noisy sum: sums above 0 speak for P, sums below 0 for Q."""
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
    """Draw the logarithm of the e-value after each of the newest blocks, the two boundaries, and the verdict."""
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
        state = f"{verdict.decision} after {seen} records" if verdict is not None else f"open after {seen} records"
        price = cost(plan) if private else SIMULATED
        title = f"{law('P', plan.null)} or {law('Q', plan.alternative)}: {state}, {price}"
        return finished(axes, RECORDS, "log e-value against P, in nats", title)


def stopping(plan: SequentialPlan, ax: Axes | None = None) -> Axes:
    """Draw the probability of no verdict yet against the number of records, under P and under Q, and the fixed n."""
    with drawing(ax, (8.6, 3.8)) as axes:
        last = 1
        looks = ((BLUE, "-", "P"), (ORANGE, "--", "Q"))
        for one, mean, (colour, style, name) in zip(plan.walks, plan.expected_n, looks, strict=True):
            left = 1 - np.cumsum(one.stops)
            count = max(int(np.argmax(left < 0.005)) + 1 if np.any(left < 0.005) else len(left), 1)
            last = max(last, plan.records(count))
            edges = [0.0, *(float(plan.records(k)) for k in range(1, count + 1))]
            text = f"under {name}: {number(mean)} records on average"
            axes.stairs([1.0, *left[: count - 1]], edges, color=colour, linestyle=style, linewidth=1.8, label=text)
        axes.axvline(plan.fixed_n, color=BLACK, linewidth=1.2, linestyle=":", label=f"fixed number: {plan.fixed_n}")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, max(last, plan.fixed_n * 1.05))
        title = f"{law('P', plan.null)} or {law('Q', plan.alternative)}: how long till the verdict, {cost(plan)}"
        return finished(axes, "records", "probability of no verdict yet", title)
