"""The law of the unclamped ratio, finely binned: what tuning needs to know of a pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from privatest.hypothesis import Curves
from privatest.hypothesis.build import FEW_VALUES
from privatest.hypothesis.neighbours import REPLACE, Neighbourhood
from privatest.noise import Tulap
from privatest.pairs import ContinuousPair, DiscretePair, Pair
from privatest.scores.clamped import cell_ratios
from privatest.scores.partition import cell_masses

__all__ = ["Profile", "profile_of"]

Floats = npt.NDArray[np.float64]

# Steps of the lattice used while tuning; the final test has a finer one. Few values need few.
COARSE_UNITS = 192
FEW_UNITS = 24


@dataclass(frozen=True, eq=False)
class Profile:
    """Ratios in increasing order (perhaps infinite) and their probabilities under P and Q."""

    ratios: Floats
    p: Floats
    q: Floats

    def curves(self, clamp: tuple[float, float], epsilon: Fraction, n: int, around: Neighbourhood = REPLACE) -> Curves:
        """Error rates of the tight test with this clamp, on a coarse lattice."""
        a, b = clamp
        low, high = max(a, float(self.ratios[0])), min(b, float(self.ratios[-1]))
        units = FEW_UNITS if 2 < len(self.ratios) <= FEW_VALUES else COARSE_UNITS
        steps = np.rint((np.clip(self.ratios, low, high) - low) * (units / (high - low))).astype(np.int64)
        if len(steps) > units:
            support = np.arange(units + 1)
            place = steps
        else:
            support, place = np.unique(steps, return_inverse=True)
        null, alternative = (np.bincount(place, weights=mass, minlength=len(support)) for mass in (self.p, self.q))
        centre = (self.centre(clamp) - low) * (units / (high - low))
        noise = Tulap(epsilon, math.ceil(around.extent(0, units, centre) - 1e-9))
        return Curves(support, null.astype(np.float64), alternative.astype(np.float64), n, noise)

    def centre(self, clamp: tuple[float, float]) -> float:
        """The middle between the means of the clamped ratio: about the threshold for one record."""
        values = np.clip(self.ratios, *clamp)
        return float(np.sum((self.p + self.q) * values)) / 2

    def moments(self, clamp: tuple[float, float]) -> tuple[float, float, float]:
        """Difference of means and the two variances of the clamped ratio."""
        values = np.clip(self.ratios, *clamp)
        means = [float(np.sum(mass * values)) for mass in (self.p, self.q)]
        spreads = [float(np.sum(m * (values - mean) ** 2)) for m, mean in zip((self.p, self.q), means, strict=True)]
        return means[0] - means[1], spreads[0], spreads[1]


def profile_of(pair: Pair) -> Profile:
    """The profile of a pair: its atoms, or the cells between the landmarks of a continuous pair."""
    if isinstance(pair, DiscretePair):
        ratios, p, q = pair.ratios, pair.p, pair.q
    else:
        assert isinstance(pair, ContinuousPair)
        edges = pair.landmarks
        p, q = cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
        ratios = cell_ratios(pair, edges, p, q)
    seen = (p + q > 0) & ~np.isnan(ratios)
    order = np.argsort(ratios[seen], kind="stable")
    ratios, p, q = ratios[seen][order], p[seen][order], q[seen][order]
    return Profile(ratios, p / math.fsum(p), q / math.fsum(q))
