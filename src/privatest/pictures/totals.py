"""The law of a noisy statistic under both hypotheses, the threshold between them, and a release if there is one."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.errors import InvalidInput, shown
from privatest.laws.total import noisy_cdf
from privatest.numbers import Floats
from privatest.pictures.canvas import (
    ALPHA,
    BETA,
    BLACK,
    BLUE,
    GREEN,
    MINUS,
    VERMILLION,
    chance,
    cost,
    drawing,
    law,
    legend,
    number,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.bounds import HistogramTest
    from privatest.decision import PrivateTest, Release
    from privatest.fit import FitRelease, FitTest

__all__ = ["fit_test", "histogram_test", "private_test"]


BINS = 90
# Mass of either law that may lie outside of the picture on each side.
OUTSIDE = 0.002
DEVIATIONS = 3.2
# Scores from here on stand for infinite ratios: one such record is off every picture.
INFINITE = 1 << 20


def private_test(test: PrivateTest, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
    """Exact laws of the noisy statistic under P and under Q in bins, the threshold, and the released statistic.

    The hatched areas are alpha (P's law, where the decision is "alternative") and beta (Q's, where it is "null").
    """
    cutoffs = _cutoffs(test)
    null, alternative, *upper = test.masses(cutoffs)
    unit = test.score.step / test.scale
    edges = np.array([test.threshold + float(unit * (cutoff - test.cutoff)) for cutoff in cutoffs])
    thresholds, axis = test.thresholds, "noisy sum of clamped log ratios, in nats"
    if test.noise.spacing > 1:  # a bar around every level; the first beyond the threshold is 1
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
        _finish(axes, edges, thresholds, where, release)
        axes.set_xlabel(axis)
        kept = cost(test) if test.private else "NOT PRIVATE"
        axes.set_title(f"What the test '{plain(test.name)}' releases from n = {test.n} records, {kept}")
        return axes


def fit_test(test: FitTest, ax: Axes | None = None, *, release: FitRelease | None = None) -> Axes:
    """Laws of the noisy statistic, for each record, under P and under the hardest alternative, with the threshold."""
    laws = test.null_law, test.candidate.law(test.hardest_law, test.n)
    noise, cutoff = test.noise, float(test.cutoff)
    spread = [math.hypot(one.deviation, math.sqrt(noise.variance)) for one in laws]
    low = min(one.mean - 4.5 * s for one, s in zip(laws, spread, strict=True))
    high = max(one.mean + 5 * s for one, s in zip(laws, spread, strict=True))
    step = (high - low) / BINS
    places = np.arange(math.floor((low - cutoff) / step), math.ceil((high - cutoff) / step) + 1)
    edges: Floats = np.asarray(cutoff + step * places, dtype=np.float64)
    cdfs = [noisy_cdf(one.values, one.masses, noise, edges) for one in laws]
    centre, scale = laws[0].mean, test.candidate.excess.width * test.n
    # The statistic is minus the excess: large values speak for P, so that the picture is read from right to left.
    shown, threshold = (centre - edges[::-1]) / scale, (centre - cutoff) / scale
    # Not above the cutoff: "null".
    below = (np.arange(len(edges) - 1) < round((cutoff - edges[0]) / step))[::-1]
    hardest = f"hardest law at distance {number(test.distance)}"
    with drawing(ax, (8.6, 4.2)) as axes:
        for cdf, text, colour, style, hatch, wrong, name, error in (
            (
                cdfs[0],
                law("P", test.domain.null, lines=True),
                BLUE,
                "-",
                "////",
                ~below,
                ALPHA,
                test.alpha,
            ),
            (cdfs[1], hardest, VERMILLION, "--", "....", below, BETA, test.beta),
        ):
            _law(axes, shown, np.diff(cdf)[::-1], text, colour, style)
            _error(axes, shown, np.diff(cdf)[::-1], wrong, f"{name} = {chance(error)}", colour, hatch)
        _finish(axes, shown, (threshold,), 'left: "alternative"', release)
        axes.set_xlabel("minus the noisy excess over its mean under P, for each record")
        title = f"What the fit test '{plain(test.method)}' releases from n = {test.n} records"
        axes.set_title(f"{title}, {cost(test)}")
        return axes


def _cutoffs(test: PrivateTest) -> list[Fraction]:
    """Ends of bins, the test's cutoff among them, where nearly all of both laws lies: finer around the laws."""
    score, noise = test.score, test.noise
    ordinary = np.abs(score.support) < INFINITE
    support = test.null_total.support
    low, spacing = int(support[0]), int(np.gcd.reduce(support - support[0])) or 1
    # With noise all multiples of the step are possible; bins of whole spacings look as smooth as the law is.
    unit = spacing if ordinary.all() else 1
    hidden = math.log(1 / (2 * OUTSIDE)) / noise.decay_rate + getattr(noise, "width", 0) / 2
    unit = noise.spacing if noise.spacing > 1 else unit  # all that leaves is the level
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


def _finish(axes: Axes, edges: Floats, thresholds: tuple[float, ...], text: str, release: Any) -> None:
    label = f"threshold{'s' if len(thresholds) > 1 else ''} {', '.join(map(number, thresholds))}\n({text})"
    for threshold in thresholds:
        axes.axvline(threshold, color=BLACK, linewidth=1.1, label=label)
        label = "_"  # one line of the legend for both
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
    axes.set_ylabel("probability density")
    legend(axes)


def power_along(
    test: PrivateTest, family: str, between: tuple[float, float], ax: Axes | None = None, *, points: int = 81
) -> Axes:
    """The exact probability of "alternative" along a parameter of a family, with the promised error rates."""
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
        axes.set_xlabel(named[1] if named else "?")
        axes.set_ylabel('probability of "alternative"')
        axes.set_title(f"Power of the test '{plain(test.name)}' on n = {test.n} records, {cost(test)}")
        legend(axes)
        return axes


def _range_ends(between: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in between)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"between={shown(between)} must be two numbers, the first below the second.")
    return low, high


def histogram_test(test: HistogramTest, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
    """Laws of the histogram's log ratio under P and under Q, and how probably the test says "null" there."""
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
    reached, said = (np.histogram(ratio, edges, weights=one)[0] for one in (weights, weights * test.chances))
    with drawing(ax, (8.6, 4.2)) as axes:
        for masses, letter, text, colour, style in (
            (laws[0], "P", test.null, BLUE, "-"),
            (laws[1], "Q", test.alternative, VERMILLION, "--"),
        ):
            heights = np.histogram(ratio, edges, weights=masses)[0]
            axes.stairs(heights, edges, color=colour, linestyle=style, label=law(letter, text, lines=True))
        centres = (edges[:-1] + edges[1:]) / 2
        seen = reached > 0
        axes.plot(centres[seen], said[seen] / reached[seen], color=GREEN, marker=".", label='says "null"')
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("probability")
        axes.set_xlabel("log ratio of the histogram, in nats")
        found = "" if release is None else f'; it said "{release.decision}"'
        axes.set_title(f"Histogram test '{plain(test.name)}' on n = {test.n} records, {cost(test)}{found}")
        legend(axes)
        return axes
