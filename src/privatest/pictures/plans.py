"""Pictures of plans: the decomposition, records against epsilon, power curves and comparisons of tests and notions.

The picture of a decomposition is the paper's Figure 1 for any pair: both laws, their multiples by e^epsilon, and the
excess that privacy caps.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.bounds.lower_bound import lower_bound
from privatest.errors import PrivatestError
from privatest.numbers import Floats
from privatest.pictures.canvas import (
    ALPHA,
    BETA,
    BLACK,
    BLUE,
    EPSILON,
    GREEN,
    GREY,
    MINUS,
    ORANGE,
    PRIME,
    SKY,
    SQUARED,
    TAU,
    VERMILLION,
    drawing,
    finished,
    law,
    number,
    plain,
)
from privatest.power import sample_size
from privatest.theory.complexity import SampleComplexity, sample_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.hypotheses import Pair
    from privatest.power import Comparison, NotionComparison, PowerCurve
    from privatest.theory import Decomposition


# More atoms than this are drawn as outlines, and without their names.
MOST_BARS = 40
MOST_STEPS = 2000
MOST_EDGES = 24
POINTS = 700
# Tail mass that may lie outside of the picture, and the share of the peak below which a density looks like zero.
OUTSIDE, INVISIBLE = 0.001, 0.004
P_HATCH, Q_HATCH, MORE_HATCH = "////", "....", "xx"


def decomposition(split: Decomposition, ax: Axes | None = None) -> Axes:
    """Draw both laws, e^epsilon times each, and the areas that count as tails.

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
            labels = "value of a record", "probability density"
        else:
            x, p, q, names = _atoms(split)
            peak = max(float(p.max()), float(q.max()))
            if len(x) <= MOST_BARS:
                _bars(axes, split, p, q, names)
            else:
                _outlines(axes, split, x, p, q, step="mid")
            many = "label, by its ratio P/Q" if len(x) > MOST_BARS else "label"
            labels = "value of a record" if pair.kind == "integers" else many, "probability"
        scaled = math.exp(min(split.epsilon, 50.0)) * peak
        axes.set_ylim(0, 1.05 * min(scaled, 1.7 * peak))
        tau, prime = f"{TAU} = {number(split.tau)}", f"{EPSILON}{PRIME} = {number(split.epsilon_prime)}"
        clamp = ", ".join(map(number, split.clamp))
        swapped = ", roles swapped" if split.swapped else ""
        title = f"What privacy {_epsilon(split.epsilon)} caps: {tau}, {prime}, clamp [{clamp}]{swapped}"
        order = ("P =", r"$e^{\epsilon}$P", "Q =", r"$e^{\epsilon}$Q", "P above", "Q above")
        return finished(axes, *labels, title, order)


def _densities(split: Decomposition) -> tuple[Floats, Floats, Floats, float]:
    """Return points, both densities there, and the height of the picture; spikes below 5% of the mass are cut."""
    pair: Any = split.pair
    laws = pair.null, pair.alternative
    levels = np.concatenate([[OUTSIDE], np.linspace(0.01, 0.99, 197), [1 - OUTSIDE]])
    quantiles = [one.ppf(levels) for one in laws]
    body = np.concatenate(quantiles)
    body = body[np.isfinite(body)]
    heights = np.maximum(laws[0].pdf(body), laws[1].pdf(body))
    # An unbounded density is cut where 5% of its mass is left.
    inner = [one.pdf(one.ppf(np.linspace(0.05, 0.95, 91))) for one in laws]
    peak = float(max(heights_inside[np.isfinite(heights_inside)].max() for heights_inside in inner))
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
    """Return the places, both probabilities and the names of atoms."""
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
    """Return for P and for Q: letter, its height, the other's height, colour, hatch, level of the clamp, D_epsilon."""
    a, b = split.clamp
    epsilon, pair = split.epsilon, split.pair
    return [
        ("P", p, q, BLUE, P_HATCH, b, pair.hockey_stick(epsilon)),
        ("Q", q, p, VERMILLION, Q_HATCH, -a, pair.hockey_stick(epsilon, reverse=True)),
    ]


def _cap(other: Floats, level: float) -> Floats:
    """Return e^level times the other law."""
    return other * math.exp(min(level, 700.0))


def _texts(split: Decomposition, letter: str, mass: float) -> tuple[str, str, str]:
    """Return the legends of the multiple, of the excess over e^epsilon, and of that over e^epsilon'."""
    other = "Q" if letter == "P" else "P"
    share = r"$e^{\epsilon}$"
    prime = r"$e^{\epsilon'}$"
    is_tau = r" = $\tau$" if split.tau > 0 and mass >= split.tau * (1 - 1e-9) else ""
    excess = f"{letter} above {share}{other}: {number(mass)}{is_tau}"
    return (
        f"{share}{letter}",
        excess,
        f"{letter} above {prime}{other}:\n{number(split.tau - mass)} more, to $\\tau$",
    )


def _outlines(axes: Axes, split: Decomposition, x: Floats, p: Floats, q: Floats, step: str | None) -> None:
    options: dict[str, Any] = {} if step is None else {"drawstyle": f"steps-{step}"}
    fills: dict[str, Any] = {} if step is None else {"step": step}
    pair = split.pair
    texts = {"P": pair.null.describe(), "Q": pair.alternative.describe()}
    for letter, own, _, colour, _, _, mass in _sides(split, p, q):
        first, second = ("-", (0, (1, 1.5))) if letter == "P" else ((0, (6, 1.5)), (0, (4, 1.5, 1, 1.5)))
        axes.plot(x, own, color=colour, linestyle=first, label=law(letter, texts[letter], lines=True), **options)
        scaled = _cap(own, split.epsilon)
        text = _texts(split, letter, mass)[0]
        axes.plot(x, scaled, color=colour, linestyle=second, linewidth=1.0, label=text, **options)
    for letter, own, other, colour, hatch, level, mass in _sides(split, p, q):
        _, excess, more = _texts(split, letter, mass)
        cap = np.minimum(own, _cap(other, split.epsilon))
        look: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "linewidth": 0.0, **fills}
        if mass > 0:
            axes.fill_between(x, cap, own, alpha=0.35, hatch=hatch, label=excess, **look)
        if level < split.epsilon and split.tau > mass:
            lower = np.minimum(own, _cap(other, level))
            axes.fill_between(x, lower, cap, alpha=0.18, hatch=MORE_HATCH, label=more, **look)


def _edges(axes: Axes, split: Decomposition, low: float, high: float) -> None:
    """Draw thin lines where the ratio meets the clamp or jumps over it, but not at the ends of the support."""
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
    for letter, own, other, colour, hatch, level, mass in _sides(split, p, q):
        at = places + (-half if letter == "P" else half)
        scaled, excess, more = _texts(split, letter, mass)
        cap = np.minimum(own, _cap(other, split.epsilon))
        lower = np.minimum(own, _cap(other, level)) if level < split.epsilon and split.tau > mass else cap
        edge: dict[str, Any] = {"edgecolor": colour, "linewidth": 0.9, "width": 2 * half}
        style = "-" if letter == "P" else "--"
        label = law(letter, texts[letter], lines=True)
        axes.bar(at, own, facecolor="none", linestyle=style, label=label, zorder=2, **edge)
        axes.bar(at, lower, facecolor=colour, alpha=0.22, **{**edge, "linewidth": 0.0})
        hatched = {**edge, "linewidth": 0.0, "facecolor": colour}
        if mass > 0:
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


CURVE_POINTS = 45
EXACT_POINTS = 6
# No exact sample size is begun after so many seconds: one takes up to a few.
PATIENCE = 7.0
SHADES = {"tails": "#EFEFEF", "core": "#DADADA", "free": "#FFFFFF"}


def complexity(orders: SampleComplexity, pair: Pair, ax: Axes | None = None, *, patience: float = PATIENCE) -> Axes:
    """Draw the number of records against epsilon, around the given one, both on logarithmic scales.

    The curves leave out constants, as the theorem does. The markers are exact: the sample size of the default test for
    advantage 2/3, and the number that every private test needs. They are computed at as many epsilons as ``patience``
    (in seconds) allows, the given one first.
    """
    low, high = _range(orders)
    grid = np.unique(np.append(np.geomspace(low, high, CURVE_POINTS), orders.epsilon))
    curve = [sample_complexity(pair.null, pair.alternative, epsilon=float(e)) for e in grid]
    exact = _exact(pair, orders.epsilon, low, high, patience)
    with drawing(ax, (8.6, 4.4)) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _regimes(axes, grid, curve)
        # The paper's sandwich is for epsilon < 1.
        hatched: dict[str, Any] = {"facecolor": "none", "edgecolor": GREY, "hatch": "\\\\\\", "linewidth": 0.0}
        sandwich = f"between 1/H{SQUARED} and 1/({EPSILON}H{SQUARED})"
        above = orders.nonprivate / np.minimum(grid, 1.0)
        axes.fill_between(grid, orders.nonprivate, above, alpha=0.35, label=sandwich, **hatched)
        value = [one.value for one in curve]
        axes.plot(grid, value, color=BLUE, label="theorem: 1/(tails + core)")
        tails, core = f"tails alone: 1/({EPSILON}{TAU})", f"core alone: 1/((1 {MINUS} {TAU}) H{SQUARED})"
        for terms, colour, style, text in (
            ([one.tail_term for one in curve], VERMILLION, "--", tails),
            ([one.core_term for one in curve], GREEN, ":", core),
        ):
            term = np.array(terms)
            if np.any(shown := term > 0):
                axes.plot(grid[shown], 1 / term[shown], color=colour, linestyle=style, label=text)
        floor = f"without privacy: 1/H{SQUARED}"
        axes.axhline(orders.nonprivate, color=BLACK, linestyle=(0, (5, 2, 1, 2)), linewidth=1.0, label=floor)
        heights = [*value, orders.nonprivate]
        circle: Any = {"color": ORANGE, "marker": "o", "markersize": 6, "markeredgewidth": 0.6}
        dash: Any = {"color": BLACK, "marker": "_", "markersize": 13, "markeredgewidth": 2.0}
        marks = ((0, "exact n, advantage 2/3", circle), (1, "no private test with fewer", dash))
        for place, text, look in marks:
            points = [(e, numbers[place]) for e, numbers in exact if numbers[place] is not None]
            if points:
                at, n = zip(*points, strict=True)
                axes.plot(at, n, markeredgecolor=BLACK, linestyle="none", zorder=4, label=text, **look)
                heights += n
        axes.axvline(orders.epsilon, color=BLACK, linewidth=0.7, linestyle=":")
        axes.set_xlim(low, high)
        axes.set_ylim(min(heights) / 2, max(heights) * 2.5)
        laws = f"{law('P', pair.null.describe())}, {law('Q', pair.alternative.describe())}"
        title = f"Records a private test needs; {laws}"
        return finished(axes, f"privacy loss {EPSILON}", "records n (curves: up to a constant)", title)


def _range(orders: SampleComplexity) -> tuple[float, float]:
    """The range of epsilon: about a decade on both sides, and up to where privacy becomes free if that is near."""
    low, high = min(orders.epsilon / 8, 0.05), max(orders.epsilon * 8, 2.0)
    if orders.epsilon < orders.free_epsilon <= 20:
        high = max(high, 2 * orders.free_epsilon)
    return low, high


def _exact(
    pair: Pair, epsilon: float, low: float, high: float, patience: float
) -> list[tuple[float, tuple[int | None, int | None]]]:
    """Return (epsilon, (sample size, lower bound)), computed for the given epsilon first, then from large to small."""
    others = np.geomspace(high / 1.3, low * 1.3, EXACT_POINTS)
    start = time.monotonic()
    sizes: list[tuple[float, tuple[int | None, int | None]]] = []
    for one in (epsilon, *(float(e) for e in others)):
        if time.monotonic() - start > patience:
            break
        n = _attempt(sample_size, pair, one)
        bound = _attempt(lower_bound, pair, one) if time.monotonic() - start < patience else None
        sizes.append((one, (n, bound)))
    return sizes


def _attempt(question: Callable[..., int], pair: Pair, epsilon: float) -> int | None:
    """Return the answer; None if it cannot be computed, as for an epsilon too small for 64-bit totals."""
    try:
        return int(question(pair.null, pair.alternative, epsilon=epsilon))
    except PrivatestError:
        return None


def _regimes(axes: Axes, grid: np.ndarray, curve: list[SampleComplexity]) -> None:
    """Shade and name the ranges of each regime: tails, core or free."""
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


BAR = 2 / 3
WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}


def power_curve(curve: PowerCurve, ax: Axes | None = None) -> Axes:
    """Draw the advantage and both error rates against n, exact at every marker."""
    order = np.argsort(curve.n)
    n = np.array(curve.n)[order]
    series = (
        (f"advantage 1 {MINUS} {ALPHA} {MINUS} {BETA}", curve.advantage, BLUE, "-", "o"),
        (f"type I error {ALPHA} (says Q under P)", curve.alpha, VERMILLION, "--", "s"),
        (f"type II error {BETA} (says P under Q)", curve.beta, ORANGE, ":", "^"),
    )
    with drawing(ax, (8.6, 4.2)) as axes:
        for text, values, colour, style, marker in series:
            y = np.array(values)[order]
            axes.plot(n, y, color=colour, linestyle=style, marker=marker, markersize=4, label=text)
        if curve.beta_goal is None:
            bar, goal, met, reached = BAR, "2/3", "advantage 2/3", np.array(curve.advantage) >= BAR
        else:
            bar, goal = curve.beta_goal, f"{BETA} at most {curve.beta_goal:g}"
            met, reached = f"{BETA} = {curve.beta_goal:g}", np.array(curve.beta) <= bar
        axes.axhline(bar, color=GREY, linewidth=0.8, linestyle=(0, (5, 2, 1, 2)), label=met)
        if reached.any() and curve.enough is not None:
            enough = f"{goal} from n = {curve.enough} on"
            if n[0] <= curve.enough <= n[-1]:
                axes.axvline(curve.enough, color=GREY, linewidth=0.8, label=enough)
            elif curve.enough < n[0]:
                axes.plot([], [], color=GREY, linewidth=0.8, label=f"{enough}, before all shown")
        if n[-1] > 8 * n[0]:
            axes.set_xscale("log")
        if len(n) == 1:
            axes.set_xlim(n[0] * 0.5, n[0] * 1.5)
        axes.set_ylim(min(-0.02, float(min(curve.advantage)) * 1.05), 1.02)
        title = _title(f"Exact error rates of '{plain(curve.test)}' at {_epsilon(curve.epsilon)}", curve)
        return finished(axes, "records n", "probability", title)


def comparison(table: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the sample size of each test on a logarithmic scale, and the number that every private test needs."""
    rows = list(table.rows)
    with drawing(ax, (8.6, 0.32 * len(rows) + 1.8)) as axes:
        counts = [row.n for row in rows if row.n is not None]
        least, most = min([*counts, table.lower_bound]), max([*counts, table.lower_bound])
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
            best = f"best possible: {table.optimum}"
            axes.axvline(table.optimum, color=BLUE, linestyle=":", linewidth=1.6, label=best)
        axes.set_xlim(left, most * 2.2)
        _name_rows(axes, [row.test for row in rows])
        title = _title(f"Records for advantage {number(table.advantage)} at {_epsilon(table.epsilon)}", table)
        return finished(axes, "records n", None, title)


def notion_comparison(table: NotionComparison, ax: Axes | None = None) -> Axes:
    """Draw the number of records that every test needs under each notion, and the best test's if it is known."""
    rows = list(table.rows)
    with drawing(ax, (8.6, 0.34 * len(rows) + 1.8)) as axes:
        looks = {"as asked": BLUE, "is enough for it": ORANGE, "follows from it": SKY}
        for relation, colour in looks.items():
            places = [place for place, row in enumerate(rows) if row.relation == relation]
            sizes = [rows[place].lower_bound for place in places]
            if places:
                axes.barh(places, sizes, height=0.62, facecolor=colour, edgecolor=BLACK, linewidth=0.6, label=relation)
        optima = [(place, row.optimum) for place, row in enumerate(rows) if row.optimum is not None]
        if optima:
            axes.plot([n for _, n in optima], [place for place, _ in optima], "D", color=BLACK, label="best test")
        for place, row in enumerate(rows):
            end = max(row.lower_bound, row.optimum or 0)
            axes.text(end * 1.03, place, f"{row.lower_bound}", va="center", fontsize=8.5)
        axes.set_xlim(0, 1.25 * max(max(row.lower_bound, row.optimum or 0) for row in rows))
        _name_rows(axes, [row.privacy for row in rows])
        title = _title(f"Records for {plain(table.goal)} beside {plain(table.privacy)}", table)
        return finished(axes, "records n that every test needs", None, title)


def _name_rows(axes: Axes, names: list[str]) -> None:
    """Name the rows of a table, the first at the top."""
    axes.set_yticks(range(len(names)), [plain(name, 34) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _epsilon(epsilon: float) -> str:
    return f"{EPSILON} = {number(epsilon)}"


def _title(start: str, described: Any) -> str:
    """Return the title with the pair, if the result knows it."""
    null, alternative = getattr(described, "null", ""), getattr(described, "alternative", "")
    if not null or not alternative:
        return start
    pair = f"P = {plain(null, 40)}, Q = {plain(alternative, 40)}"
    return f"{start};\n{pair}" if len(start) + len(pair) > 85 else f"{start}; {pair}"
