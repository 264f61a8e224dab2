"""The paper's Figure 1 for any pair: both laws, their multiples by e^epsilon, and the excess that privacy caps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.numbers import Floats
from privatest.pictures.canvas import BLUE, EPSILON, GREY, PRIME, TAU, VERMILLION, drawing, law, legend, number, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.theory import Decomposition

__all__ = ["decomposition"]


# More atoms than this are drawn as outlines, and without their names.
MOST_BARS = 40
MOST_STEPS = 2000
MOST_EDGES = 24
POINTS = 700
# Tail mass that may lie outside of the picture, and the share of the peak below which a density looks like zero.
OUTSIDE, INVISIBLE = 0.001, 0.004
P_HATCH, Q_HATCH, MORE_HATCH = "////", "....", "xx"


def decomposition(split: Decomposition, ax: Axes | None = None) -> Axes:
    """Both laws, e^epsilon times each, and the areas that count as tails.

    The area of each law's hatched parts is tau: what exceeds e^epsilon times the other law and, for the law that
    exceeds it less, what exceeds e^epsilon' times the other. For reals thin vertical lines stand where the ratio
    meets the clamp.
    """
    pair = split.pair
    with drawing(ax, (8.6, 4.2)) as axes:
        if pair.kind == "reals":
            x, p, q, peak = _densities(split)
            _outlines(axes, split, x, p, q, step=None)
            _edges(axes, split, float(x[0]), float(x[-1]))
            axes.set_xlim(float(x[0]), float(x[-1]))
            axes.set_xlabel("value of a record")
            axes.set_ylabel("probability density")
        else:
            x, p, q, names = _atoms(split)
            peak = max(float(p.max()), float(q.max()))
            if len(x) <= MOST_BARS:
                _bars(axes, split, p, q, names)
            else:
                _outlines(axes, split, x, p, q, step="mid")
            integers = pair.kind == "integers"
            many = "label, by its ratio P/Q" if len(x) > MOST_BARS else "label"
            axes.set_xlabel("value of a record" if integers else many)
            axes.set_ylabel("probability")
        scaled = math.exp(min(split.epsilon, 50.0)) * peak
        axes.set_ylim(0, 1.05 * min(scaled, 1.7 * peak))
        axes.set_title(_title(split))
        legend(axes, ("P =", r"$e^{\epsilon}$P", "Q =", r"$e^{\epsilon}$Q", "P above", "Q above"))
        return axes


def _title(split: Decomposition) -> str:
    a, b = split.clamp
    swapped = ", roles swapped" if split.swapped else ""
    facts = (
        f"{TAU} = {number(split.tau)}, {EPSILON}{PRIME} = "
        f"{number(split.epsilon_prime)}, clamp [{number(a)}, {number(b)}]{swapped}"
    )
    return f"What privacy {EPSILON} = {number(split.epsilon)} caps: {facts}"


def _densities(split: Decomposition) -> tuple[Floats, Floats, Floats, float]:
    """Points, both densities there, and the height of the picture: a spike of less than 5% of the mass is cut."""
    pair: Any = split.pair
    laws = pair.null, pair.alternative
    levels = np.concatenate([[OUTSIDE], np.linspace(0.01, 0.99, 197), [1 - OUTSIDE]])
    quantiles = [one.ppf(levels) for one in laws]
    body = np.concatenate(quantiles)
    body = body[np.isfinite(body)]
    heights = np.maximum(laws[0].pdf(body), laws[1].pdf(body))
    # An unbounded density is cut where 5% of its mass is left.
    inner = [one.pdf(one.ppf(np.linspace(0.05, 0.95, 91))) for one in laws]
    peak = float(max(found[np.isfinite(found)].max() for found in inner))
    seen = body[heights >= INVISIBLE * peak]
    tenths = np.concatenate([one.ppf(np.array([0.1, 0.9])) for one in laws])
    low, high = float(min(seen.min(), tenths.min())), float(max(seen.max(), tenths.max()))
    margin = 0.03 * (high - low) or 0.5
    low, high = low - margin, high + margin
    ends = [end for one in laws for end in one.support if low <= end <= high]
    ends += [end for end in (*_ends_of_pieces(split.sets.S), *_ends_of_pieces(split.sets.T)) if low < end < high]
    sharp = [np.nextafter(end, side) for end in ends for side in (-math.inf, math.inf)]
    x = np.unique(np.concatenate([np.linspace(low, high, POINTS), body[(body > low) & (body < high)], ends, sharp]))
    p, q = (np.minimum(np.nan_to_num(one.pdf(x), posinf=1e3 * peak), 1e3 * peak) for one in laws)
    return x, p, q, peak


def _ends_of_pieces(pieces: Any) -> list[float]:
    return [float(end) for piece in pieces for end in piece]


def _atoms(split: Decomposition) -> tuple[Floats, Floats, Floats, list[str]]:
    """Places, both probabilities, names."""
    pair: Any = split.pair
    if pair.kind == "labels":
        names = [plain(label, 16) for label in pair.labels]
        order = np.arange(len(names))
        if len(names) > MOST_BARS:
            order = np.argsort(-np.nan_to_num(pair.ratios), kind="stable")
        return np.arange(len(names), dtype=np.float64), pair.p[order], pair.q[order], names
    laws = pair.null, pair.alternative
    low = min(float(one.ppf(np.array([OUTSIDE]))[0]) for one in laws)
    high = max(float(one.isf(np.array([OUTSIDE]))[0]) for one in laws)
    x = np.unique(np.rint(np.linspace(low, high, min(int(high - low) + 1, MOST_STEPS))))
    return x, laws[0].pmf(x), laws[1].pmf(x), [f"{value:.0f}" for value in x]


def _sides(split: Decomposition, p: Floats, q: Floats) -> list[tuple[str, Floats, Floats, str, str, float, float]]:
    """For P and for Q: letter, its own height, the other's, colour, hatch, level of the clamp, D_epsilon."""
    a, b = split.clamp
    epsilon, pair = split.epsilon, split.pair
    return [
        ("P", p, q, BLUE, P_HATCH, b, pair.hockey_stick(epsilon)),
        ("Q", q, p, VERMILLION, Q_HATCH, -a, pair.hockey_stick(epsilon, reverse=True)),
    ]


def _cap(other: Floats, level: float) -> Floats:
    """e^level times the other law."""
    return other * math.exp(min(level, 700.0))


def _texts(split: Decomposition, letter: str, found: float) -> tuple[str, str, str]:
    """Legends of a multiple, of the excess over e^epsilon, and of what epsilon' adds."""
    other = "Q" if letter == "P" else "P"
    share = r"$e^{\epsilon}$"
    prime = r"$e^{\epsilon'}$"
    is_tau = r" = $\tau$" if split.tau > 0 and found >= split.tau * (1 - 1e-9) else ""
    excess = f"{letter} above {share}{other}: {number(found)}{is_tau}"
    return f"{share}{letter}", excess, f"{letter} above {prime}{other}:\n{number(split.tau - found)} more, to $\\tau$"


def _outlines(axes: Axes, split: Decomposition, x: Floats, p: Floats, q: Floats, step: str | None) -> None:
    options: dict[str, Any] = {} if step is None else {"drawstyle": f"steps-{step}"}
    fills: dict[str, Any] = {} if step is None else {"step": step}
    pair = split.pair
    texts = {"P": pair.null.describe(), "Q": pair.alternative.describe()}
    for letter, own, _, colour, _, _, found in _sides(split, p, q):
        first, second = ("-", (0, (1, 1.5))) if letter == "P" else ((0, (6, 1.5)), (0, (4, 1.5, 1, 1.5)))
        axes.plot(x, own, color=colour, linestyle=first, label=law(letter, texts[letter], lines=True), **options)
        scaled = _cap(own, split.epsilon)
        text = _texts(split, letter, found)[0]
        axes.plot(x, scaled, color=colour, linestyle=second, linewidth=1.0, label=text, **options)
    for letter, own, other, colour, hatch, level, found in _sides(split, p, q):
        _, excess, more = _texts(split, letter, found)
        cap = np.minimum(own, _cap(other, split.epsilon))
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "linewidth": 0.0, **fills}
        if found > 0:
            axes.fill_between(x, cap, own, alpha=0.35, hatch=hatch, label=excess, **look)
        if level < split.epsilon and split.tau > found:
            lower = np.minimum(own, _cap(other, level))
            axes.fill_between(x, lower, cap, alpha=0.18, hatch=MORE_HATCH, label=more, **look)


def _edges(axes: Axes, split: Decomposition, low: float, high: float) -> None:
    """Thin lines where the ratio meets the clamp, or jumps over it; not at the ends of the support."""
    a, b = split.clamp
    pair: Any = split.pair
    for pieces, level, colour, style in ((split.sets.S, b, BLUE, "-"), (split.sets.T, a, VERMILLION, "--")):
        ends = sorted({end for end in _ends_of_pieces(pieces) if low < end < high and end not in pair.support})
        for i, end in enumerate(ends[:MOST_EDGES]):
            label = f"log P/Q = {number(level)}" if i == 0 else None
            axes.axvline(end, color=colour, linestyle=style, linewidth=0.7, alpha=0.8, label=label)


def _bars(axes: Axes, split: Decomposition, p: Floats, q: Floats, names: list[str]) -> None:
    places = np.arange(len(p))
    pair = split.pair
    texts = {"P": pair.null.describe(), "Q": pair.alternative.describe()}
    half = 0.19
    for letter, own, other, colour, hatch, level, found in _sides(split, p, q):
        at = places + (-half if letter == "P" else half)
        scaled, excess, more = _texts(split, letter, found)
        cap = np.minimum(own, _cap(other, split.epsilon))
        lower = np.minimum(own, _cap(other, level)) if level < split.epsilon and split.tau > found else cap
        edge: dict[str, Any] = {"edgecolor": colour, "linewidth": 0.9, "width": 2 * half}
        style = "-" if letter == "P" else "--"
        label = law(letter, texts[letter], lines=True)
        axes.bar(at, own, facecolor="none", linestyle=style, label=label, zorder=2, **edge)
        axes.bar(at, lower, facecolor=colour, alpha=0.22, **{**edge, "linewidth": 0.0})
        hatched = {**edge, "linewidth": 0.0, "facecolor": colour}
        if found > 0:
            axes.bar(at, own - cap, bottom=cap, alpha=0.45, hatch=hatch, label=excess, **hatched)
        if np.any(cap > lower):
            axes.bar(at, cap - lower, bottom=lower, alpha=0.35, hatch=MORE_HATCH, label=more, **hatched)
        # e^epsilon times this law, over the other's bar, which it caps.
        beside = places + (half if letter == "P" else -half)
        dots = (0, (1, 1)) if letter == "P" else (0, (4, 1, 1, 1))
        heights = _cap(own, split.epsilon)
        axes.hlines(heights, beside - half, beside + half, color=colour, linestyle=dots, linewidth=1.6, label=scaled)
    crowded = len(names) > 12 or max(map(len, names)) * len(names) > 70
    thin = max(len(names) // 25, 1) if names and all(name.lstrip("-").isdigit() for name in names) else 1
    axes.set_xticks(places[::thin])
    turned = crowded and max(map(len, names)) > 3
    axes.set_xticklabels(names[::thin], rotation=45 if turned else 0, ha="right" if turned else "center")
    axes.grid(visible=False, axis="x")
    if split.tau == 0:
        axes.plot([], [], color=GREY, linestyle="none", label="nothing exceeds it: $\\tau$ = 0")
