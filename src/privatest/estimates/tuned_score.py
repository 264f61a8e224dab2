r"""The score of an estimate: a clamped log-likelihood ratio between two members, tuned for a short interval.

Of an exponential family every such ratio is one statistic, so only the clamp matters; of others the two members do,
too. About how long an interval gets is known without any law of totals: n scores of variance V and noise of variance W
move the estimate by :math:`\sqrt{nV + W} / (n |\mu'|)`, where :math:`\mu'` is how fast the mean score moves with the
parameter. Clamping lowers W and V, and :math:`\mu'` with them: the best clamp is a minimum that a grid finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privatest.errors import InvalidDistribution, InvalidInput, NothingToTest
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.hypotheses.convert import matched
from privatest.hypotheses.distribution import Numbers
from privatest.hypotheses.one_parameter import OneParameter
from privatest.privacy import Notion, canonical_noise
from privatest.privacy.noise import Neighbourhood
from privatest.scores import Score, clamped_score
from privatest.scores.score import LabelCells
from privatest.vectors import Floats

__all__ = ["WORKING", "TunedRatio", "share_score", "tuned_ratio", "tuned_score"]

WORKING = (
    "bernoulli, binomial, poisson, geometric, negative_binomial, exponential, gamma, normal (mean or sd), lognormal, "
    "laplace, logistic, weibull (scale), pareto, rayleigh, half_normal, chi2, share_above or categorical(label=?)"
)
UNITS = 512
INNER = (0.0, 0.02, 0.25, 0.45)
"""How far inside the range, in parts of it, the two members lie whose ratio is the score."""
PARAMETERS = 9
"""At how many values of the parameter an interval's length is looked at."""
GRID = 24


def share_score(family: OneParameter, units: int = UNITS) -> Score:
    """1 for the label and 0 for whatever else, in so many units: a lattice that is fine enough for the noise."""
    assert family.label is not None
    law = np.array([0.5, 0.5])
    table = np.array([units, 0], dtype=np.int64)
    support = np.array([0, units], dtype=np.int64)
    return Score(LabelCells((family.label,)), table, Fraction(0), Fraction(1, units), support, law, law.copy())


def tuned_score(
    family: OneParameter, notion: Notion, n: int, around: Neighbourhood, values: tuple[float, float] | None
) -> Score:
    """The score with which an interval is about as short as can be: over the whole range, or for a part of it."""
    if family.is_share:
        return share_score(family)
    found = tuned_ratio(family, notion, n, around, values)
    return clamped_score(found.pair, found.clamp)


def tuned_ratio(
    family: OneParameter, notion: Notion, n: int, around: Neighbourhood, values: tuple[float, float] | None
) -> TunedRatio:
    """The two members and the clamp of :func:`tuned_score`; not for shares, which have one score only."""
    looked_at = family.spaced(PARAMETERS + 2)[1:-1] if values is None else np.unique(family.spaced(PARAMETERS, *values))
    # Noise of a lattice so fine that its steps do not matter, in units of the width.
    noise = canonical_noise(notion, UNITS).variance / UNITS**2
    found = min(_candidates(family, noise, n, around, values, looked_at), key=lambda one: one.length, default=None)
    if found is None:
        raise InvalidInput(f"family={family.text!r} has no score with a finite range. Use {WORKING}.")
    return found


@dataclass(frozen=True, eq=False)
class TunedRatio:
    """A pair of members, and the clamp of their ratio.

    Attributes:
        length: about how long an interval is, in standard deviations of the estimate and the parameter's unit.
    """

    length: float
    pair: Pair
    clamp: tuple[float, float]


def _candidates(
    family: OneParameter,
    noise: float,
    n: int,
    around: Neighbourhood,
    part_of: tuple[float, float] | None,
    values: Floats,
) -> Iterator[TunedRatio]:
    for ends in _members(family, part_of):
        low, high = ends
        try:
            pair = matched(family.member(low), family.member(high))
            if pair.total_variation < 1e-12 or _jumps(pair):
                continue
            laws = _RatioLaws.of(family, pair, values)
        except (InvalidDistribution, NothingToTest):
            continue
        found = laws.best_clamp(noise, n, around)
        if found is not None:
            yield TunedRatio(found[0], pair, found[1])


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
            low, high = max(low, family.inner[0]), min(high, family.inner[1])
        yield low, high


@dataclass(frozen=True, eq=False)
class _RatioLaws:
    """The ratio of two members on fine cells, how likely each cell is for values of the parameter, and how that moves.

    Attributes:
        ratios: of the cells, in increasing order.
        masses: one row for each value.
        slopes: by how much they change as the parameter grows by one ``per`` of its value.
        per: lengths are told in this unit: 1, or the value itself on a logarithmic scale.
    """

    ratios: Floats
    masses: Floats
    slopes: Floats
    per: Floats
    longest: Floats

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
        )

    def best_clamp(self, noise: float, n: int, around: Neighbourhood) -> tuple[float, tuple[float, float]] | None:
        """About the shortest interval, and the clamp that has it; ``noise`` is its variance, in squared widths."""
        even = self.masses.mean(axis=0)
        below = np.cumsum(even) / even.sum()
        levels = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, GRID - 1)])
        lows = np.unique(self.ratios[np.minimum(np.searchsorted(below, levels), len(self.ratios) - 1)])
        highs = np.unique(self.ratios[np.minimum(np.searchsorted(below, 1 - levels), len(self.ratios) - 1)])
        best: tuple[float, tuple[float, float]] | None = None
        for _ in range(2):
            for a in lows.tolist():
                for b in highs.tolist():
                    if b - a > 1e-12 * max(1.0, abs(a), abs(b)):
                        length = self._length(a, b, noise, n, around)
                        if best is None or length < best[0] * (1 - 1e-9):
                            best = length, (a, b)
            if best is None:
                return None
            lows, highs = (_finer(ends, end) for ends, end in zip((lows, highs), best[1], strict=True))
        return best

    def _length(self, a: float, b: float, noise: float, n: int, around: Neighbourhood) -> float:
        clipped = np.clip(self.ratios, a, b)
        mean = self.masses @ clipped
        variance = np.maximum(self.masses @ clipped**2 - mean**2, 0.0)
        moves = np.abs(self.slopes @ clipped)
        width = around.extent(a, b, (a + b) / 2)
        with np.errstate(divide="ignore", over="ignore"):
            lengths = np.sqrt(n * variance + width**2 * noise) / (n * moves * self.per)
        return float(np.mean(np.minimum(lengths, self.longest)))


def _finer(ends: Floats, end: float) -> Floats:
    """Values about one of the ends, between its neighbours."""
    place = int(np.searchsorted(ends, end))
    low, high = ends[max(place - 1, 0)], ends[min(place + 1, len(ends) - 1)]
    return np.unique(np.append(np.linspace(low, high, 9), end))
