r"""The exponential mechanism of a change point: an index drawn by suffix sums of clamped scores (method "direct").

.. math:: q_k = -\sum_{i \ge k} (s(x_i) - \kappa), \qquad \Pr[k] \propto \exp(\epsilon q_k / \Delta)

Replacing record i moves every q_k with k <= i by the same amount, at most Delta, and no other q_k. So the exponent is
epsilon/Delta, not epsilon/(2 Delta) (proof.md). The public fraction kappa makes the sums fall on both sides of the
change. Candidates are the multiples of a public stride that is much smaller than the accuracy.

Candidate k is drawn with probability proportional to :math:`e^{-x_k}`, :math:`x_k = \lambda (\max q - q_k)`, lambda
rational, even among 10^7 candidates. Doubles only *propose*: the proposal has integer weights above
:math:`C e^{-x_k}`, and a proposed k is kept with probability :math:`C e^{-x_k} / \text{weight}_k`, an exact coin.
Argument: proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from privatest.changepoint.detector import CONFIDENCE, FailureCurve, Located, ScoredDetector, upper_bounds, worst_of
from privatest.engines import Records
from privatest.engines.records import scores_of_each
from privatest.errors import InvalidDocument, InvalidInput
from privatest.laws.block_laws import BlockLaws, ScoreLaw
from privatest.numbers import Floats, Integers, exp_bounds
from privatest.privacy import Notion, RandomSource
from privatest.privacy.canonical_noise import loss_range
from privatest.scores import Score

CHUNK = 1 << 14

# The weights are raised by this factor, far beyond the error of a double's exp (a few times 2^-52) of an
# argument that is off by 2^-51 of itself and is at most 64.
_MARGIN = 1 + 2.0**-40
_COMPARED_BITS = 96


def draw_exponential(utilities: Integers, rate: Fraction, source: RandomSource) -> int:
    r"""Draw k with probability exactly proportional to :math:`e^{\text{rate} \cdot q_k}`, where q are the utilities.

    Guarantees: exact for every rational rate > 0 and all utilities whose differences fit 64 bits; one pass over
    the utilities, and about one round.
    """
    best = int(utilities.max())
    scale_bits = min(62 - len(utilities).bit_length(), 50)
    firsts, sums = _chunk_weights(utilities, best, rate, scale_bits)
    ends = np.cumsum(sums)  # at most 2^63: len * (2^scale_bits (1 + tiny) + 1)
    # Invariant: every round has the same odds, because a rejected round leaves no trace.
    while True:
        point = source.below(int(ends[-1]))
        chunk = int(np.searchsorted(ends, point, side="right"))
        inside = point - (int(ends[chunk - 1]) if chunk else 0)
        start, stop = int(firsts[chunk]), min(int(firsts[chunk]) + CHUNK, len(utilities))
        weights = np.cumsum(_weights(utilities[start:stop], best, rate, scale_bits))
        place = int(np.searchsorted(weights, inside, side="right"))
        weight = int(weights[place]) - (int(weights[place - 1]) if place else 0)
        loss = rate * (best - int(utilities[start + place]))
        if _keep(loss, scale_bits, weight, source):
            return start + place


def _chunk_weights(utilities: Integers, best: int, rate: Fraction, scale_bits: int) -> tuple[Integers, Integers]:
    """Return the first index and the total weight of each chunk; weights far below the best are 1."""
    firsts = np.arange(0, len(utilities), CHUNK)
    tops = np.maximum.reduceat(utilities, firsts)
    sums = np.minimum(CHUNK, len(utilities) - firsts)
    far = Fraction(scale_bits) / rate  # e^-scale_bits 2^scale_bits < 1
    for c in np.flatnonzero(best - tops <= min(float(far) + 1, 2.0**62)):
        part = utilities[firsts[c] : firsts[c] + CHUNK]
        sums[c] = int(_weights(part, best, rate, scale_bits).sum())
    return firsts, sums


def _weights(utilities: Integers, best: int, rate: Fraction, scale_bits: int) -> Integers:
    """Return integers above 2^scale_bits e^(-rate (best - q)), by less than 1 + 2^-39 of it."""
    loss = np.minimum((best - utilities).astype(np.float64) * float(rate), 64.0)
    return np.floor(np.exp(-loss) * (float(1 << scale_bits) * _MARGIN)).astype(np.int64) + 1


def _keep(loss: Fraction, scale_bits: int, weight: int, source: RandomSource) -> bool:
    r"""Return True with probability :math:`2^{scale\_bits} e^{-loss} / weight`, which is at most 1.

    A uniform U is drawn with as many bits as are needed to tell whether U * weight < 2^scale_bits e^-loss.
    """
    bits, uniform = 0, 0
    # Invariant: U lies in [uniform, uniform + 1) / 2^bits and nothing more is known of it.
    while True:
        bits += _COMPARED_BITS
        uniform = uniform << _COMPARED_BITS | source.bits(_COMPARED_BITS)
        low, high = exp_bounds(loss.numerator, loss.denominator, bits)
        if (uniform + 1) * weight <= low << scale_bits:
            return True
        if uniform * weight >= high << scale_bits:
            return False


# The number of candidates within the accuracy on either side of k*.
_FINENESS = 24
_ROWS = 1_000
# The number of levels kappa that are tried between the two means.
_LEVELS = 32
# If fewer failures than this are expected in a simulation, bounds are computed instead.
_FEWEST_EXPECTED = 15
_SEED = 20_181_128


def best_level(law: ScoreLaw, rate: float) -> tuple[Fraction, float]:
    r"""Return kappa and the decay: an index is d records off with probability of about e^(-decay d).

    E min(1, e^(rate (q_k - q_k*))) <= E e^(theta (q_k - q_k*)) for theta in [0, rate], so each side decays with
    max over theta of -log E e^(theta (s - kappa)) under Q, or of -log E e^(-theta (s - kappa)) under P. kappa
    maximises the smaller decay.
    """
    theta = rate * np.geomspace(1e-6, 1.0, 120)
    base = int(law.support[0])
    exponents = theta[:, None] * (law.support - base)
    top = float(exponents.max())
    with np.errstate(under="ignore"):
        new = np.log(np.exp(exponents - top) @ law.q) + top
        old = np.log(np.exp(-exponents) @ law.p)
    # A denominator with that number of levels between the two means.
    between = max(law.means[0] - law.means[1], 1e-9 * law.width)
    denominator = 1 << max(math.ceil(math.log2(_LEVELS / between)), 0)
    low, high = (math.floor((mean - base) * denominator) for mean in (law.means[1], law.means[0]))
    numerators = np.unique(np.linspace(low, high + 1, _LEVELS + 1).astype(np.int64))
    levels = numerators / denominator
    right = np.max(theta[:, None] * levels - new[:, None], axis=0)
    left = np.max(-theta[:, None] * levels - old[:, None], axis=0)
    slower = np.minimum(left, right)
    best = int(np.argmax(slower))
    return Fraction(int(numerators[best]), denominator) + base, float(slower[best])


@dataclass(frozen=True, eq=False)
class ExponentialModel:
    """The law of a score, epsilon, kappa and the stride, on which the accuracy depends.

    Epsilon is the length of an interval that contains all privacy losses: a notion allows ``loss_range(notion)``.
    """

    law: ScoreLaw
    epsilon: Fraction
    level: Fraction
    decay: float
    stride: int

    @classmethod
    def of(cls, law: ScoreLaw, epsilon: Fraction, beta: float) -> ExponentialModel:
        """Return the model with the best level, and a stride of about a twentieth of the accuracy."""
        level, decay = best_level(law, float(epsilon) / law.width)
        stride = int(math.log(2 / beta) / decay / _FINENESS) if decay > 0 else 1
        return cls(law, epsilon, level, decay, max(stride, 1))

    @property
    def rate(self) -> Fraction:
        """epsilon / Delta, the weight of one lattice step."""
        return self.epsilon / self.law.width

    @cached_property
    def _phases(self) -> tuple[int, ...]:
        return tuple(sorted({0, self.stride // 4, self.stride // 2, 3 * self.stride // 4}))

    @cached_property
    def _laws(self) -> BlockLaws:
        """The laws of totals between two candidates: all records old, all new, then r old ones for each phase."""
        return BlockLaws.of(self.law, None, self.stride, (self.stride, 0, *self._phases))

    def failures(self, beta: float, runs: int, seed: int = _SEED) -> FailureCurve:
        """Return bounds on the error of the index, for the worst place of k* between two candidates.

        The law of the index given the scores is known exactly and averaged over simulated scores; if too few failures
        are expected, Chernoff's bound is taken. The bounds hold for series of any length with k* at least a from both
        ends, because fewer candidates outside the window make an error less likely.
        """
        if not self.decay > 0:
            return FailureCurve(np.array([0]), np.array([1.0]), runs)
        cell = self.decay * self.stride
        cells = max(math.ceil(math.log(1e5 / (beta * -math.expm1(-cell))) / cell), 4)
        distances = np.arange(cells, dtype=np.int64) * self.stride
        # Pr[k] <= E min(1, e^(rate (q_k - q_k0))), k0 the candidate next to k*, summed over both sides.
        certain = np.minimum(2 * np.exp(-self.decay * (distances - self.stride)) / -math.expm1(-cell), 1.0)
        if runs * beta < _FEWEST_EXPECTED:
            return FailureCurve(distances, certain)
        rng = np.random.default_rng(seed)
        confidence = 1 - (1 - CONFIDENCE) / len(self._phases)
        beyond = 2 * math.exp(-cell * (cells - 1)) / -math.expm1(-cell)
        curves = []
        for phase in self._phases:
            bounds = upper_bounds(self._simulate(phase, cells, distances, runs, rng), runs, confidence) + beyond
            curves.append(FailureCurve(distances, np.minimum(bounds, certain), runs))
        return worst_of(curves)

    def rough(self, beta: float, runs: int = 1_000, seed: int = _SEED) -> FailureCurve:
        """Return an approximation of :meth:`failures` to compare designs."""
        cells = max(math.ceil(math.log(1e3 / beta) / (self.decay * self.stride)), 4)
        distances = np.arange(cells, dtype=np.int64) * self.stride
        means = self._simulate(self.stride // 2, cells, distances, runs, np.random.default_rng(seed))
        return FailureCurve(distances, means, runs)

    def _simulate(self, phase: int, cells: int, distances: Integers, runs: int, rng: np.random.Generator) -> Floats:
        """Return the mean probability, over simulated scores, of an index at more than each distance from k*."""
        laws = self._laws
        steps = (laws.values - self.stride * float(self.level)) * float(self.rate)
        row = 2 + self._phases.index(phase)
        place = np.arange(-cells, cells + 1) * self.stride - phase
        lefts = np.searchsorted(place, -distances, side="left")
        rights = np.searchsorted(place, distances, side="right")
        failed, done = np.zeros(len(distances)), 0
        while done < runs:
            count = min(_ROWS, runs - done)
            logs = np.zeros((count, 2 * cells + 1))
            # q_k - q_k' is the sum of s - kappa over k' <= i < k: added to the right, taken off to the left.
            left = steps[laws.sample(0, (count, cells), rng)]
            right = steps[laws.sample(1, (count, cells), rng)]
            right[:, 0] = steps[laws.sample(row, (count,), rng)]
            logs[:, cells + 1 :] = np.cumsum(right, axis=1)
            logs[:, :cells] = -np.cumsum(left, axis=1)[:, ::-1]
            logs -= logs.max(axis=1, keepdims=True)
            mass = np.zeros((count, 2 * cells + 2))
            np.cumsum(np.exp(logs), axis=1, out=mass[:, 1:])
            inside = (mass[:, rights] - mass[:, lefts]) / mass[:, -1:]
            failed += np.clip(1 - inside, 0.0, 1.0).sum(axis=0)
            done += count
        return failed / runs


@dataclass(frozen=True, eq=False)
class ExponentialDetector(ScoredDetector):
    """Draws the index by the exponential mechanism (method "direct").

    Guarantees: the privacy losses of the index lie in an interval of length epsilon, so it is epsilon-DP; it is drawn
    exactly.

    Attributes:
        score: of a record.
        epsilon: the length of that interval.
        level: kappa.
        block: the stride, in records between two candidates.
    """

    score: Score
    epsilon: Fraction
    level: Fraction
    block: int
    kind: ClassVar[str] = "direct"

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.block < 1:
            raise InvalidDocument("The exponential mechanism needs a positive epsilon, and a stride of 1 or more.")

    def meets(self, notion: Notion) -> bool:
        return self.epsilon <= loss_range(notion)

    def draw(self, records: Records, n: int, source: RandomSource) -> int:
        """Return the index, a multiple of the stride.

        Equal values of an order are sorted by score and not refused: a sum of the k smallest of some scores changes by
        no more, and in the same direction, as a score that is replaced.
        """
        rate = self.epsilon / self.score.width / self.level.denominator
        return draw_exponential(self.utilities(records, n), rate, source) * self.block

    def locate(self, drawn: int, n: int) -> Located:  # noqa: ARG002 - the same for every n
        return Located((drawn,))

    def utilities(self, records: Records, n: int) -> Integers:
        """Return q_k - q_0 at the candidates k, times the denominator of kappa. Raw, for the mechanism alone."""
        level, scale = self.level.numerator, self.level.denominator
        reach = max(abs(self.score.low * scale - level), abs(self.score.high * scale - level), 1)
        if n > (2**62 - 1) // reach:
            raise InvalidInput(f"n={n} is too large for scores up to {reach}: a sum could leave 64 bits.")
        steps = scores_of_each(records, self.score)
        steps *= scale
        steps -= level
        if self.block > 1:
            steps = steps[: n // self.block * self.block].reshape(-1, self.block).sum(axis=1)
        utilities = np.zeros(len(steps) + 1, dtype=np.int64)
        np.cumsum(steps, out=utilities[1:])
        return utilities
