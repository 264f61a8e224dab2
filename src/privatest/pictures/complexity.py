"""How many records a private test needs, against epsilon: the theorem's terms, the exact numbers, the bounds."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.errors import PrivatestError
from privatest.pictures.canvas import (
    BLACK,
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    MINUS,
    ORANGE,
    SQUARED,
    TAU,
    VERMILLION,
    drawing,
    law,
    legend,
)
from privatest.power import sample_size
from privatest.power.lower_bound import lower_bound
from privatest.theory.complexity import SampleComplexity, sample_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.pairs import Pair

__all__ = ["complexity"]

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
