r"""The score of an estimate: a clamped log-likelihood ratio between two members, tuned for a short interval.

Of an exponential family every such ratio is one statistic, so only the clamp matters; of others the two members do,
too. About how long an interval gets is known without any law of totals: n scores of variance V and noise of variance W
move the estimate by :math:`\sqrt{nV + W} / (n |\mu'|)`, where :math:`\mu'` is how fast the mean score moves with the
parameter. Clamping lowers W and V, and :math:`\mu'` with them: the best clamp is a minimum that a grid finds. Over a
range, lengths are told beside the shortest that any clamp has at the same value, and their mean is made small: so a
small value, where intervals can be short, counts as much as a large one, and no end of the range is given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import optimize

from privatest.errors import InvalidDistribution, InvalidInput, NothingToTest
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.hypotheses.distribution import Numbers, number_text
from privatest.hypotheses.one_parameter import OneParameter
from privatest.hypotheses.parse import matched
from privatest.numbers import Floats
from privatest.privacy import Notion, canonical_noise
from privatest.privacy.notion import Neighbourhood
from privatest.scores import BoundedCells, Cells, IntegerCells, LabelCells, Score, clamped_score
from privatest.scores.clamped import score_with_laws
from privatest.scores.score import lattice
from privatest.scores.score_law import cell_law

WORKING = (
    "bernoulli, binomial, poisson, geometric, negative_binomial, exponential, gamma, normal (mean or sd), lognormal, "
    "laplace, logistic, weibull (scale), pareto, rayleigh, half_normal, chi2, share_above or categorical(label=?)"
)
UNITS = 512
INNER = (0.0, 0.02, 0.25, 0.45)
"""How far inside the range, in parts of it, the two members lie whose ratio is the score."""
PARAMETERS = 11
"""At how many values of the parameter an interval's length is looked at."""
GRID = 24
BENT_AT = 24
"""At about how many values of the parameter the steps of a bent score are tuned."""
SEEN = 1e-3
"""Whole numbers rarer than this at all these values share the last one's score."""
MOST_STEPS = 80
LEVELS = 64
"""Of a bent score: so few that laws of its sums are quick."""
WORTH_BENDING = 0.97
"""A bent score must make intervals shorter than this beside those of a straight one."""


def success_score(family: OneParameter, units: int = UNITS) -> Score:
    """The score of a rate or a share: ``units`` for a success and 0 for every other record.

    Args:
        family: bernoulli, share_above or the share of a label.
        units: number of lattice steps of a success; more steps make the noise finer.
    """
    cells: Cells
    if family.label is not None:
        cells, table = LabelCells((family.label,), others=True), [units, 0, 0]
    elif (box := family.box(*family.inner)).family.name == "share_above":
        cells, table = BoundedCells(box.low[0], 1.0, 0), [0, units, 0]
    else:
        cells, table = IntegerCells(np.array([0, 1], dtype=np.int64), 1), [0, units, 0]
    law = np.array([0.5, 0.5])
    return Score(
        cells=cells,
        table=np.array(table, dtype=np.int64),
        origin=Fraction(0),
        step=Fraction(1, units),
        support=np.array([0, units], dtype=np.int64),
        null_law=law,
        alternative_law=law.copy(),
    )


def tuned_score(
    family: OneParameter, notion: Notion, n: int, around: Neighbourhood, values: tuple[float, float] | None
) -> Score:
    """The score with which an interval is about as short as can be: over the whole range, or for a part of it."""
    if family.is_share:
        return success_score(family)
    tuned = tuned_ratio(family, notion, n, around, values)
    bent = _bent(family, tuned, notion, n, around) if values is None and tuned.laws.atoms else None
    return clamped_score(tuned.pair, tuned.clamp, tuned.units) if bent is None else bent


def tuned_ratio(
    family: OneParameter, notion: Notion, n: int, around: Neighbourhood, values: tuple[float, float] | None
) -> TunedRatio:
    """The two members and the clamp of :func:`tuned_score`; not for shares, which have one score only."""
    if values is None:  # the middles of equal parts of the range: a mean over these is one over the range
        looked_at = family.spaced(2 * PARAMETERS + 1)[1::2]
    else:
        looked_at = np.unique(family.spaced(PARAMETERS, *values))
    # Noise of a lattice so fine that its steps do not matter, in units of the width.
    noise = canonical_noise(notion, UNITS).variance / UNITS**2
    tables = [(pair, laws, *laws.ends()) for pair, laws in _tables(family, values, looked_at)]
    tables_of_lengths = [laws.lengths(lows, highs, noise, n, around) for _, laws, lows, highs in tables]
    if not tables_of_lengths:
        raise InvalidInput(_no_score(family))
    least = np.min([lengths.min(axis=(0, 1)) for lengths in tables_of_lengths], axis=0)
    which = _first_least(np.array([np.mean(lengths / least, axis=2).min() for lengths in tables_of_lengths]))
    pair, laws, lows, highs = tables[which]
    i, j = divmod(_first_least(np.mean(tables_of_lengths[which] / least, axis=2)), len(highs))
    lows, highs = laws.finer(lows, i), laws.finer(highs, j)
    lengths = laws.lengths(lows, highs, noise, n, around)
    i, j = divmod(_first_least(np.mean(lengths / least, axis=2)), len(highs))
    clamp = float(lows[i]), float(highs[j])
    return TunedRatio(float(np.mean(lengths[i, j])), pair, clamp, laws.units(*clamp), laws)


@dataclass(frozen=True, eq=False)
class TunedRatio:
    """A pair of members, and the clamp of their ratio.

    Attributes:
        length: about how long an interval is, in standard deviations of the estimate and the parameter's unit.
        units: steps of the score's lattice; None: as many as it takes.
        laws: of the ratio, at the values it was tuned for.
    """

    length: float
    pair: Pair
    clamp: tuple[float, float]
    units: int | None
    laws: _RatioLaws


def _bent(family: OneParameter, tuned: TunedRatio, notion: Notion, n: int, around: Neighbourhood) -> Score | None:
    r"""A score whose steps from one whole number to the next are of unequal size; None where that gains too little.

    Where means are small 0 and 1 must be far apart, where they are large all numbers up to many: equal steps serve one
    of the two. Any score that rises with the ratio is as good for the coverage. The steps are those of the least mean
    length, beside the shortest that any clamp has at the same value.
    """
    laws = _RatioLaws.of(family, tuned.pair, family.spaced(10 * BENT_AT + 1)[[1, *range(10, 10 * BENT_AT, 10), -2]])
    seen = np.flatnonzero(np.max(laws.masses, axis=0) > SEEN)
    if seen.size == 0 or not 1 < (last := int(seen[-1])) - (first := int(seen[0])) <= MOST_STEPS:
        return None
    noise, ends = canonical_noise(notion, UNITS).variance / UNITS**2, laws.ratios[first : last + 1]
    shortest = laws.lengths(ends, ends, noise, n, around).min(axis=(0, 1))
    masses, slopes = (_gathered(each, first, last) for each in (laws.masses, laws.slopes))
    reached = np.tril(np.ones((len(ends), len(ends) - 1)), -1)  # which steps lie below each
    extra = (around.extent(-0.5, 0.5, 0.0)) ** 2 * noise / n

    def lengths(steps: Floats) -> tuple[Floats, Floats]:
        """Lengths beside the shortest, and the derivatives of their logarithms by the steps, which sum to 1."""
        score = reached @ steps
        mean, slope = masses @ score, slopes @ score * laws.per
        variance = np.maximum(masses @ score**2 - mean**2, 0.0) + extra
        # No interval is longer than the range, also where the score tells nothing: its slope may be 0.
        whole = (laws.longest / 4) ** 2
        information = n * slope**2 / variance
        per_slope = whole * n * slope / variance / (1 + whole * information)
        changes = ((masses * score) @ reached - mean[:, None] * (masses @ reached) + extra) / variance[:, None]
        changes = (slope * per_slope)[:, None] * changes - (per_slope * laws.per)[:, None] * (slopes @ reached)
        return np.sqrt((1 / shortest**2 + 1 / whole) / (information + 1 / whole)), changes

    def loss(logs: Floats) -> tuple[float, Floats]:
        sizes = np.exp(logs - logs.max())
        steps = sizes / sizes.sum()
        ratios, changes = lengths(steps)
        gradient = ratios @ changes / len(ratios)
        return float(ratios.mean()), steps * (gradient - float(steps @ gradient))

    inside = (laws.ratios[first:last] >= tuned.clamp[0]) & (laws.ratios[first + 1 : last + 1] <= tuned.clamp[1])
    start = np.where(inside, 0.0, -4.0)
    straight = loss(np.where(inside, 0.0, -60.0))[0]
    best = optimize.minimize(loss, start, jac=True, method="L-BFGS-B")
    if best.fun > WORTH_BENDING * straight:
        return None
    sizes = np.exp(best.x - best.x.max())
    heights = np.concatenate([[0.0], np.cumsum(sizes) / sizes.sum()])
    low, high = float(laws.ratios[first]), float(laws.ratios[last])
    plain = clamped_score(tuned.pair, (low, high), UNITS)
    values = float(plain.origin) + float(plain.step) * plain.table
    bent = np.interp(values, laws.ratios[first : last + 1], heights)
    table = (UNITS // LEVELS * np.rint(LEVELS * bent)).astype(np.int64)
    p, q = (cell_law(plain.cells, member)[:-1] for member in (tuned.pair.null, tuned.pair.alternative))
    return score_with_laws(plain.cells, table, *lattice(low, high, UNITS), p, q)


def _tables(
    family: OneParameter, part_of: tuple[float, float] | None, values: Floats
) -> Iterator[tuple[Pair, _RatioLaws]]:
    """Pairs of members, and the laws of their ratios."""
    for low, high in _members(family, part_of):
        try:
            pair = matched(family.member(low), family.member(high))
            if pair.total_variation < 1e-12 or _jumps(pair):
                continue
            laws = _RatioLaws.of(family, pair, values)
        except (InvalidDistribution, NothingToTest):
            continue
        if len(laws.ratios) > 1:
            yield pair, laws


def _no_score(family: OneParameter) -> str:
    """Why no two members have a ratio that can be summed."""
    try:
        pair = matched(*map(family.member, family.inner))
        apart = 1.0 if _jumps(pair) else pair.total_variation
    except (InvalidDistribution, NothingToTest):
        apart = 0.0
    if apart < 1e-12:
        ends = f"({number_text(family.low)}, {number_text(family.high)})"
        return (
            f"between={ends} has ends that nobody tells apart: the range is too narrow, or too far from 0. Use a wider "
            "range, or measure from another place."
        )
    return f"family={family.text!r} has no score with a finite range. Use {WORKING}."


def _jumps(pair: Pair) -> bool:
    """Whether one of the two goes where the other never does."""
    ratios = pair.ratios if isinstance(pair, DiscretePair) else pair.ratio(pair.landmarks)  # type: ignore[attr-defined]
    return bool(np.any(np.isinf(ratios)))


def _members(family: OneParameter, part_of: tuple[float, float] | None) -> Iterator[tuple[float, float]]:
    """Parameters of two members: at the ends of what the score is for, or inside them, or about one value."""
    if part_of is not None and part_of[0] < part_of[1]:
        yield part_of
        return
    for part in INNER:
        ends = family.spaced(201)
        low, high = (float(ends[round(200 * place)]) for place in (part, 1 - part))
        if part_of is not None:  # about the guess, as far apart as those about the middle
            if family.logarithmic:
                factor = math.sqrt(high / low)
                low, high = part_of[0] / factor, part_of[0] * factor
            else:
                low, high = part_of[0] - (high - low) / 2, part_of[0] + (high - low) / 2
            # At an end of the range there may be no ratio: then a little inside it.
            least, most = (float(ends[round(200 * place)]) for place in (min(part, 0.02), 1 - min(part, 0.02)))
            low, high = max(low, least), min(high, most)
        yield low, high


@dataclass(frozen=True, eq=False)
class _RatioLaws:
    """The ratio of two members on fine cells, how likely each cell is for values of the parameter, and how that moves.

    Attributes:
        ratios: of the cells, in increasing order.
        masses: one row for each value.
        slopes: by how much they change as the parameter grows by one ``per`` of its value.
        per: lengths are told in this unit: 1, or the value itself on a logarithmic scale.
        longest: of the intervals within the range, in that unit.
        atoms: whether records are whole numbers, each with a ratio of its own: then these are the ends of clamps.
    """

    ratios: Floats
    masses: Floats
    slopes: Floats
    per: Floats
    longest: Floats
    atoms: bool

    @classmethod
    def of(cls, family: OneParameter, pair: Pair, values: Floats) -> _RatioLaws:
        low, high = family.inner
        if isinstance(pair, ContinuousPair):
            edges = pair.landmarks
            with np.errstate(invalid="ignore"):
                ratios = (pair.ratio(edges[1:]) + pair.ratio(edges[:-1])) / 2
        else:
            assert isinstance(pair, DiscretePair)
            edges = np.append(pair.first - 1.0, pair.last[-1])
            ratios = pair.ratios
        fine = np.isfinite(ratios)

        def masses(value: float) -> Floats:
            member = family.member(value)
            assert isinstance(member, Numbers)
            return np.maximum(np.diff(member.cdf(edges)), 0.0)[fine]

        rows, slopes, per = [], [], []
        for value in values.tolist():
            step = 1e-3 * (value if family.logarithmic else high - low)
            rows.append(masses(value))
            while True:  # until it is small beside the distribution
                before, after = max(value - step, low), min(value + step, high)
                above, below = masses(after), masses(before)
                moved = max(float(np.abs(side - rows[-1]).sum()) for side in (above, below))
                if moved < 0.05 or step < 1e-12 * (high - low):
                    break
                step /= 8
            slopes.append((above - below) / (after - before))
            per.append(value if family.logarithmic else 1.0)
        order = np.argsort(ratios[fine], kind="stable")
        scale = np.array(per)
        return cls(
            ratios[fine][order],
            np.array(rows)[:, order],
            np.array(slopes)[:, order],
            scale,
            np.full(len(values), high - low) / scale,
            isinstance(pair, DiscretePair),
        )

    def ends(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of clamps worth a look."""
        even = self.masses.mean(axis=0)
        below = np.cumsum(even) / max(float(even.sum()), 1e-300)  # none, where values lie far between both members
        levels = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, GRID - 1)])
        places = (np.minimum(np.searchsorted(below, each), len(below) - 1) for each in (levels, 1 - levels))
        lows, highs = (np.unique(self.ratios[place]) for place in places)
        if lows[0] >= highs[-1]:  # all records are alike, as those of a rate of 0
            return self.ratios[:1], self.ratios[-1:]
        return lows, highs

    def finer(self, ends: Floats, place: int) -> Floats:
        """Values about one of the ends, between its neighbours."""
        low, high = ends[max(place - 1, 0)], ends[min(place + 1, len(ends) - 1)]
        if self.atoms:
            return np.unique(self.ratios[(self.ratios >= low) & (self.ratios <= high)])
        return np.unique(np.append(np.linspace(low, high, 9), ends[place]))

    def units(self, low: float, high: float) -> int | None:
        """Steps of a lattice on which atoms that are evenly spaced lie exactly, and evenly: laws of sums are quick."""
        levels = np.unique(self.ratios[(self.ratios >= low) & (self.ratios <= high)])
        gaps = np.diff(levels)
        if not self.atoms or len(gaps) > UNITS or np.ptp(gaps) > 1e-9 * (high - low):
            return None
        return len(gaps) * -(-UNITS // len(gaps))

    def lengths(self, lows: Floats, highs: Floats, noise: float, n: int, around: Neighbourhood) -> Floats:
        """About how long an interval is, for each lower end of a clamp, each upper end, and each value.

        ``noise`` is its variance, in squared widths. Infinite where the ends are no clamp.
        """
        middle = float(np.median(self.ratios))
        ratios, a, b = self.ratios - middle, (lows - middle)[:, None, None], (highs - middle)[None, :, None]
        i, j = np.searchsorted(self.ratios, lows)[:, None], np.searchsorted(self.ratios, highs, side="right")[None, :]

        def mean_of(masses: Floats, power: int) -> Floats:
            """Of the clamped ratio's power: sums up to either end, and what is moved there."""
            sums = [np.cumsum(masses * ratios**k, axis=1).T for k in (0, power)]
            count, inner = (np.concatenate([np.zeros((1, len(masses))), each]) for each in sums)
            mean: Floats = a**power * count[i] + (inner[j] - inner[i]) + b**power * (count[-1] - count[j])
            return mean

        mean = mean_of(self.masses, 1)
        variance = np.maximum(mean_of(self.masses, 2) - mean**2, 0.0)
        moves = np.abs(mean_of(self.slopes, 1))
        width = around.extent(-0.5, 0.5, 0.0) * (b - a)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            lengths = np.minimum(np.sqrt(n * variance + width**2 * noise) / (n * moves * self.per), self.longest)
        rounding = 1e-12 * (1.0 + np.abs(a + middle) + np.abs(b + middle))
        return np.where(b - a > rounding, lengths, np.inf)


def _gathered(columns: Floats, first: int, last: int) -> Floats:
    """The columns from the first to the last, each of the two with all that lie beyond it."""
    gathered = columns[:, first : last + 1].copy()
    gathered[:, 0] += columns[:, :first].sum(axis=1)
    gathered[:, -1] += columns[:, last + 1 :].sum(axis=1)
    return gathered


def _first_least(values: Floats) -> int:
    """The place of the least one; of several that differ by rounding, of the first."""
    return int(np.argmax(values <= values.min() * (1 + 1e-9)))
