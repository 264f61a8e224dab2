"""The clamped log-likelihood ratio as a score on a lattice.

Cells of real-valued records are uniform in x if that is fine enough, else uniform in a bounded transform of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privatest.errors import InvalidInput, shown
from privatest.hypotheses import ContinuousPair, DiscretePair, Distribution, Pair, Reals
from privatest.numbers import Floats, Number, first_true, positive_integer, rational
from privatest.scores.score import (
    LARGEST_TOTAL,
    BoundedCells,
    Cells,
    DyadicCells,
    IntegerCells,
    LabelCells,
    Score,
    lattice,
)

MOST_CELLS = 1 << 16
# A table of this many entries stays in the processor's nearest caches.
COMFORTABLE_CELLS = 1 << 13


def partition(
    pair: ContinuousPair, low: float, high: float, step: float, spread: float
) -> tuple[DyadicCells | BoundedCells, Floats]:
    """Cells within which the ratio clamped to [low, high] varies little, and their inner edges.

    The root mean square of the variation, over both hypotheses, is at most a quarter of ``step``. If
    that needs more than a comfortable number of cells (because a density jumps inside one), more are used only
    until it is at most 1/64 of the ratio's standard deviation ``spread``.
    """
    if (cut := pair.null.cut) is not None:
        sides = BoundedCells(cut, 1.0, 0)
        return sides, sides.edges
    x = pair.landmarks
    with np.errstate(invalid="ignore"):
        ratios = np.clip(pair.ratio(x), low, high)
    defined = ~np.isnan(ratios)
    x, ratios = x[defined], ratios[defined]
    mass = sum(np.maximum(np.diff(d.cdf(x)), 0.0) for d in (pair.null, pair.alternative)) / 2
    jumps = np.abs(np.diff(ratios))
    left, right = _active(x, ratios, step / 2)
    shortest = _shortest(left, right)

    def error(coordinates: Floats, length: float) -> float:
        """Root mean square variation of the ratio within cells of this length."""
        gaps = np.maximum(np.diff(coordinates), 1e-300)
        within = np.minimum(jumps * np.minimum(length / gaps, 1.0), high - low)
        spill = np.maximum(length / gaps, 1.0)  # a jump inside a short gap affects the whole cell
        share = np.minimum(mass * spill, 1.0)
        return math.sqrt(float(share @ within**2) / 12)

    centre, scale = _middle(pair)
    away = x - centre
    t = away / (scale + np.abs(away))
    choices: list[tuple[float, int, DyadicCells | BoundedCells]]
    enough = max(step / 4, spread / 64)
    for most, goal in ((COMFORTABLE_CELLS, step / 4), (MOST_CELLS, enough)):
        exponent = min(_finest(lambda e: error(x, math.ldexp(1.0, -e)), right - left, goal, most), shortest)
        uniform = _dyadic(pair, exponent, left, right)
        left_over = error(x, math.ldexp(1.0, -exponent))
        choices = [(left_over, uniform.count, uniform)]
        if left_over > goal or uniform.count > COMFORTABLE_CELLS // 2:
            bits = _finest(lambda e: error(t, math.ldexp(1.0, -e)), 2.0, goal, most)
            bounded = BoundedCells(centre, scale, bits, *pair.support)
            left_over = error(t, math.ldexp(1.0, -bits))
            choices.append((left_over, bounded.count, bounded))
        # Of those that meet the goal the one with the fewest cells; else the one that comes nearest to it.
        left_over, _, best = min(choices, key=lambda entry: (max(entry[0], goal), entry[1]))
        if left_over <= enough:
            break
    return best, best.edges


def _active(x: Floats, ratios: Floats, tolerance: float) -> tuple[float, float]:
    """Return the interval outside which the clamped ratio stays within ``tolerance`` of its value at the end."""
    from_left = np.flatnonzero(np.abs(ratios - ratios[0]) > tolerance)
    from_right = np.flatnonzero(np.abs(ratios - ratios[-1]) > tolerance)
    # Neither contains its own end, which does not differ from itself.
    left = x[from_left[0] - 1] if len(from_left) else x[0]
    right = x[from_right[-1] + 1] if len(from_right) else x[-1]
    return float(left), float(right)


def _shortest(left: float, right: float) -> int:
    """Return the largest exponent at which all edges between left and right are exact in floating point."""
    return min(50 - math.frexp(max(abs(left), abs(right)))[1], 1000)


def _finest(error: Callable[[int], float], length: float, goal: float, most: int) -> int:
    """Return the smallest exponent e for which cells of length 2^-e meet the goal, or the largest affordable one."""
    last = -math.floor(math.log2(length / most)) - 1
    return first_true(lambda e: e >= last or error(e) <= goal, -math.floor(math.log2(length / 64)))


def _dyadic(pair: ContinuousPair, exponent: int, left: float, right: float) -> DyadicCells:
    first = math.floor(math.ldexp(left, exponent)) - 1  # one cell for everything to the left of `left`
    last = math.floor(math.ldexp(right, exponent)) + 1
    return DyadicCells(exponent, first, last - first + 1, *pair.support)


def _middle(pair: ContinuousPair) -> tuple[float, float]:
    """Return a centre and a scale, rounded to short binary numbers, which documents hold exactly."""
    quartiles = np.concatenate([d.ppf(np.array([0.25, 0.5, 0.75])) for d in (pair.null, pair.alternative)])
    spread = float(quartiles.max() - quartiles.min()) or 1.0
    scale = math.ldexp(1.0, round(math.log2(spread)))
    return round(float(np.median(quartiles)) / scale * 16) * scale / 16, scale


def cell_masses(distribution: Distribution, edges: Floats) -> Floats:
    """Masses of (-inf, e_1), [e_1, e_2), ..., [e_m, inf): differences of the cdf or, on the right, of the sf."""
    assert isinstance(distribution, Reals)
    cdf = np.concatenate([[0.0], distribution.cdf(edges), [1.0]])
    sf = np.concatenate([[1.0], distribution.sf(edges), [0.0]])
    return np.maximum(np.where(cdf[1:] <= 0.5, np.diff(cdf), -np.diff(sf)), 0.0)


# Rounding the ratio to a lattice of step delta adds an error of variance at most delta^2/12 to a record's ratio
# of standard deviation sigma. With delta <= sigma/32 that is 1 part in 12,288 of the variance and under 1e-4 of
# the advantage; tests/scores shows it by halving the step.
STEPS_PER_DEVIATION = 32
# On atoms the errors do not average out, as the same few recur. So the lattice is four times finer.
STEPS_PER_DEVIATION_OF_ATOMS = 128
FEWEST_UNITS = 512
MOST_UNITS = 1 << 16
# In tests without a clamp, a larger ratio counts as infinite if ratios are unbounded; e^-64 is 1.6e-28.
DECISIVE = 64.0
# Scores of infinite ratios are at least this; scores of finite ratios are far smaller.
LEAST_INFINITE = 1 << 24


def clamped_score(pair: Pair, clamp: tuple[Number, Number], units: int | None = None) -> Score:
    r"""Return the score :math:`[\log P(x)/Q(x)]_a^b`, rounded to a lattice whose ends are the realised clamp.

    Guarantees: the odd score is 0 clamped to [a, b]; the lowest and highest lattice values are exactly
    the realised ends, so ``step * width <= b - a``.
    """
    a, b = _checked_clamp(clamp)
    low, high = realised_clamp(pair, a, b)
    grid = _grid(pair, low, high, units)
    # If the clamp cuts the ratio off, its ends are exactly those of the argument, which floats may round outwards.
    first, last = (
        rational(exact if end == cut else end, "clamp") for end, cut, exact in ((low, a, clamp[0]), (high, b, clamp[1]))
    )
    return score_with_laws(grid.cells, grid.table(low, high), *lattice(first, last, grid.units), grid.p, grid.q)


def whole_score(pair: Pair, n: int) -> Score:
    """Return the score of the ratio without a clamp, for the tests that do not clamp.

    An infinite ratio decides the likelihood-ratio test whatever the other records are. So its score outweighs n
    others, and any noise of the size that sLLR adds. An unbounded ratio beyond ``DECISIVE`` is treated the
    same way: under the hypothesis it speaks against, a record has it with probability at most e^-DECISIVE.
    """
    grid, low, high, decisive = _whole_grid(pair)
    if not decisive.any():
        return _whole_score(pair, 0)
    origin, step = lattice(low, high, grid.units)
    overwhelming = n * (grid.units + 1) + math.ceil(abs(n * origin / step)) + math.ceil(1000 / step)
    overwhelming = max(overwhelming, LEAST_INFINITE)
    return _whole_score(pair, min(overwhelming, LARGEST_TOTAL))  # Score.check_total refuses even two of these


@lru_cache(maxsize=8)
def _whole_score(pair: Pair, overwhelming: int) -> Score:
    """:func:`whole_score` for all n for which the score of an infinite ratio is ``overwhelming``."""
    grid, low, high, decisive = _whole_grid(pair)
    table = grid.table(low, high)
    table[:-1][decisive] = np.where(grid.ratios[decisive] > 0, overwhelming, -overwhelming)
    return score_with_laws(grid.cells, table, *lattice(low, high, grid.units), grid.p, grid.q)


@lru_cache(maxsize=8)
def _whole_grid(pair: Pair) -> tuple[_Grid, float, float, npt.NDArray[np.bool_]]:
    """Return the grid of the ratio, the least and largest ratio that is not decisive, and which cells are decisive."""
    ratios = pair.ratios if isinstance(pair, DiscretePair) else pair.ratio(pair.landmarks)  # type: ignore[attr-defined]
    limit = math.inf if all(map(math.isfinite, pair.ratio_range)) else DECISIVE
    finite = ratios[np.abs(ratios) <= min(limit, 1e300)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (-1.0, 1.0)
    if not low < high:  # the lattice of a single finite ratio needs an extent
        low, high = low - 0.5, high + 0.5
    grid = _grid(pair, low, high, None)
    return grid, low, high, (np.abs(grid.ratios) > limit) | np.isinf(grid.ratios)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Cells, the ratio on each (not clamped; NaN if neither hypothesis has mass there) and their masses."""

    cells: Cells
    ratios: Floats
    p: Floats
    q: Floats
    units: int
    slope: float = 0.0

    def table(self, low: float, high: float) -> npt.NDArray[np.int64]:
        """Return the clamped ratio of each cell in lattice units, then that of the odd cell."""
        odd = min(max(0.0, low), high)
        # Records in a cell without mass under either hypothesis lie outside both supports: they are odd.
        values = np.append(np.where(np.isnan(self.ratios), odd, np.clip(self.ratios, low, high)), odd)
        scaled = np.rint((values - low) * (self.units / (high - low)))
        if self.slope:
            # One unit a cell, anchored where the line crosses the middle of the lattice: within a unit of the ratio.
            middle = int(np.argmin(np.abs(scaled[:-1] - self.units / 2)))
            scaled[:-1] = scaled[middle] + self.slope * (np.arange(len(scaled) - 1) - middle)
        return np.clip(scaled, 0, self.units).astype(np.int64)


def _grid(pair: Pair, low: float, high: float, units: int | None) -> _Grid:
    if isinstance(pair, DiscretePair):
        # A label without mass under either hypothesis has no ratio.
        spread = _deviation(np.clip(np.nan_to_num(pair.ratios, nan=low), low, high), pair.p, pair.q)
        steps = _units(high - low, spread, units, STEPS_PER_DEVIATION_OF_ATOMS)
        if pair.kind == "labels":
            return _Grid(LabelCells(pair.labels), pair.ratios, pair.p, pair.q, steps)
        return _integer_grid(pair, steps)
    assert isinstance(pair, ContinuousPair)
    coarse = np.clip(pair.ratio(pair.landmarks), low, high)
    weights = [np.maximum(np.diff(d.cdf(pair.landmarks)), 0.0) for d in (pair.null, pair.alternative)]
    spread = _deviation(np.nan_to_num((coarse[1:] + coarse[:-1]) / 2), *weights)
    steps = _units(high - low, spread, units)
    cells, edges = partition(pair, low, high, (high - low) / steps, spread)
    p, q = cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
    grid = _Grid(cells, cell_ratios(pair, edges, p, q), p, q, steps)
    return grid if units is not None else _straightened(pair, grid, low, high)


def _integer_grid(pair: DiscretePair, units: int) -> _Grid:
    """Return the pair's runs of integers, and those between them where neither hypothesis has mass."""
    gaps = np.flatnonzero(pair.last[:-1] + 1 < pair.first[1:])
    first = np.insert(pair.first, gaps + 1, pair.last[gaps] + 1)
    p, q = (np.insert(mass, gaps + 1, 0.0) for mass in (pair.p, pair.q))
    cells = IntegerCells(first, int(pair.last[-1]))
    return _Grid(cells, np.insert(pair.ratios, gaps + 1, math.nan), p, q, units)


def _straightened(pair: ContinuousPair, grid: _Grid, low: float, high: float) -> _Grid:
    """Return the grid with the ratio's change from cell to cell as the lattice's step, if the ratio is linear in x.

    Then the score is the clipped index of the cell, and engines need no lookup.
    """
    inner = (grid.ratios > low) & (grid.ratios < high)
    changes = np.diff(grid.ratios[inner])
    if not isinstance(grid.cells, DyadicCells) or len(changes) < 8 or not np.all(np.diff(np.flatnonzero(inner)) == 1):
        return grid
    change = float(np.mean(changes))
    if change == 0 or float(np.max(np.abs(changes - change))) > 1e-6 * abs(change):
        return grid
    halvings = max(math.ceil(math.log2(abs(change) * grid.units / (high - low))), 0)
    if grid.cells.size << halvings > MOST_CELLS:
        return grid
    cells = replace(
        grid.cells,
        exponent=grid.cells.exponent + halvings,
        first=grid.cells.first << halvings,
        size=grid.cells.size << halvings,
    )
    p, q = cell_masses(pair.null, cells.edges), cell_masses(pair.alternative, cells.edges)
    units = round((high - low) / abs(change)) << halvings
    return _Grid(cells, cell_ratios(pair, cells.edges, p, q), p, q, units, math.copysign(1.0, change))


def realised_clamp(pair: Pair, a: float, b: float) -> tuple[float, float]:
    """Return the interval that the clamped ratio covers, which may be narrower than [a, b].

    Ratios of events with probability under 1e-16 are clamped to those of the other events.
    """
    least, most = pair.ratio_range
    if not (math.isfinite(max(a, least)) and math.isfinite(min(b, most))):
        raise InvalidInput(
            f"clamp=({a}, {b}) leaves the ratio unbounded: it ranges over ({least:.6g}, {most:.6g}). "
            "Give finite ends, or clamp='paper'."
        )
    least, most = _essential_range(pair)
    low, high = min(max(a, least), b), max(min(b, most), a)
    if not low < high:
        raise InvalidInput(
            f"clamp=({a}, {b}) makes every record's ratio the same: it ranges over ({least:.6g}, {most:.6g}). "
            "Choose a clamp that overlaps this range."
        )
    return low, high


def _essential_range(pair: Pair) -> tuple[float, float]:
    """Least and largest ratio, without the outermost 1e-16 of both hypotheses' mass on either side."""
    if isinstance(pair, ContinuousPair):
        ratios = pair.ratio(pair.landmarks)
    else:
        assert isinstance(pair, DiscretePair)
        ratios = pair.ratios
        if pair.kind == "integers":
            left = np.maximum(np.cumsum(pair.p), np.cumsum(pair.q))
            right = np.maximum(np.cumsum(pair.p[::-1]), np.cumsum(pair.q[::-1]))[::-1]
            ratios = ratios[(left >= 1e-16) & (right >= 1e-16)]
    defined = ratios[~np.isnan(ratios)]
    return float(defined.min()), float(defined.max())


def _checked_clamp(clamp: tuple[Number, Number]) -> tuple[float, float]:
    try:
        a, b = (float(end if end in (-math.inf, math.inf) else rational(end, "clamp")) for end in clamp)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"clamp={shown(clamp)} must be a pair of numbers (a, b) with a < b.") from None
    if not a < b:
        raise InvalidInput(f"clamp=({a}, {b}) must have its first end below its second.")
    return a, b


def _units(width: float, deviation: float, units: int | None, steps: int = STEPS_PER_DEVIATION) -> int:
    if units is not None:
        return positive_integer(units=units)
    wanted = math.ceil(min(steps * width / deviation, MOST_UNITS)) if deviation > 0 else FEWEST_UNITS
    return 1 << (min(max(wanted, FEWEST_UNITS), MOST_UNITS) - 1).bit_length()


def _deviation(ratios: Floats, p: Floats, q: Floats) -> float:
    """Standard deviation under the even mixture of P and Q."""
    mass = (p + q) / 2
    return math.sqrt(max(float(mass @ (ratios - mass @ ratios) ** 2), 0.0))


def cell_ratios(pair: ContinuousPair, edges: Floats, p: Floats, q: Floats) -> Floats:
    """log P(cell)/Q(cell), the best score that is constant on each cell.

    If a mass is so small that differences of cdfs lose its digits, the ratio of the densities in the
    cell's middle is used.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(p) - np.log(q)
    middles = np.empty(len(p))
    middles[1:-1] = (edges[1:] + edges[:-1]) / 2
    reach = max(edges[-1] - edges[0], abs(edges[0]), 1.0) if len(edges) else 1.0
    low, high = pair.support
    middles[0] = edges[0] - 1e-3 * reach if math.isinf(low) else (low + edges[0]) / 2
    middles[-1] = edges[-1] + 1e-3 * reach if math.isinf(high) else (high + edges[-1]) / 2
    poor = np.minimum(p, q) < 1e-12
    if np.any(poor):
        by_density = pair.ratio(middles[poor])
        with np.errstate(invalid="ignore"):
            # In a cell in which the densities cross or jump the middle does not represent the mass.
            contrary = (np.maximum(p, q)[poor] > 1e-12) & (np.sign(by_density) * np.sign(ratios[poor]) < 0)
        ratios[poor] = np.where(np.isnan(by_density) | contrary, ratios[poor], by_density)
    return ratios


def score_with_laws(
    cells: Cells, table: npt.NDArray[np.int64], origin: Fraction, step: Fraction, p: Floats, q: Floats
) -> Score:
    """Return a score from its table and the masses of its cells under P and under Q."""
    visited = p + q > 0
    support, place = np.unique(table[:-1][visited], return_inverse=True)
    laws = [np.bincount(place, weights=mass[visited], minlength=len(support)) for mass in (p, q)]
    null, alternative = (law / math.fsum(law) for law in laws)
    return Score(
        cells=cells,
        table=table,
        origin=origin,
        step=step,
        support=support,
        null_law=null,
        alternative_law=alternative,
    )
