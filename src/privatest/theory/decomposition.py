r"""The decomposition of P and Q into a core, on which privacy is free, and tails, which privacy makes expensive.

With D_y(P||Q) the hockey-stick divergence at level y,

.. math::
    \tau = \max\{D_\varepsilon(P\|Q), D_\varepsilon(Q\|P)\}, \qquad
    P = (1-\tau) P' + \tau P'', \quad Q = (1-\tau) Q' + \tau Q'',

where P', Q' (the core) have log ratio in [-eps', eps] and P'', Q'' (the tails) have disjoint supports
(CKMSU19, section 2.2). If D_eps(Q||P) is the larger the roles are swapped and the core's ratio lies in
[-eps, eps'].
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from privatest import numbers
from privatest.facts import Described, Fact
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.hypotheses.distribution import Splice, SplicePiece
from privatest.hypotheses.pair import ClampedPair
from privatest.hypotheses.parse import hardest_pair
from privatest.numbers import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Set: TypeAlias = tuple[Hashable, ...]

SAME = 1e-13
"""Divergences that agree to this relative accuracy are equal: what separates them is rounding."""
MOST_STEPS = 200


@dataclass(frozen=True)
class Sets:
    """Where the ratio is above, below and inside the clamp.

    Labels are listed; integers are (first, last) ranges, both included; reals are (low, high) intervals.

    Attributes:
        S: where the ratio is above the clamp.
        T: where it is below.
        A: the rest of the support.
    """

    S: Set
    T: Set
    A: Set

    def __repr__(self) -> str:
        return f"Sets(S={_set_text(self.S)}, T={_set_text(self.T)}, A={_set_text(self.A)})"


@dataclass(frozen=True)
class Decomposition(Described):
    """The paper's tau, eps' and clamp for a pair, with the core and the tails that they define.

    Guarantees: 0 <= tau <= 1; 0 <= epsilon_prime <= epsilon; P = (1 - tau) P' + tau P'' and likewise Q; the
    core's log ratio lies in the clamp; the tails' supports are disjoint.

    Attributes:
        pair: P and Q on their common domain.
        epsilon: privacy loss.
        tau: mass of the tails, which privacy must hide.
        epsilon_prime: the other end of the clamp, at most epsilon.
        swapped: whether Q has the larger tail; the clamp then is [-epsilon, epsilon_prime], not [-epsilon_prime,
            epsilon].
        core_mass: 1 - tau, computed without cancellation.
    """

    pair: Pair
    epsilon: float
    tau: float
    epsilon_prime: float
    swapped: bool
    core_mass: float = field(repr=False)

    @property
    def clamp(self) -> tuple[float, float]:
        """(a, b): the interval L is projected on."""
        return (-self.epsilon, self.epsilon_prime) if self.swapped else (-self.epsilon_prime, self.epsilon)

    @cached_property
    def sets(self) -> Sets:
        """S = {L > b}, T = {L < a} and A, the rest of the support."""
        a, b = self.clamp
        pair = self.pair
        if isinstance(pair, DiscretePair):
            above, below = pair.where_above(b), pair.where_below(a)
            rest = ~above & ~below & ~np.isnan(pair.ratios)
            return Sets(_atoms(pair, above), _atoms(pair, below), _atoms(pair, rest))
        assert isinstance(pair, ContinuousPair)
        above_, below_ = pair.regions_above(b), pair.regions_below(a)
        rest_ = _complement(above_ + below_, pair.support)
        seen = [piece for piece in rest_ if pair.null.mass(*piece) + pair.alternative.mass(*piece) > 0]
        return Sets(tuple(above_), tuple(below_), tuple(seen))

    @cached_property
    def core(self) -> Pair | None:
        """(P', Q'), or None where tau is 1."""
        if self.core_mass <= 0 or self.tau >= 1:
            return None
        if self.tau == 0:
            return self.pair
        a, b = self.clamp
        pair = self.pair
        if isinstance(pair, DiscretePair):
            above, below = pair.where_above(b), pair.where_below(a)
            log_p, log_q = pair.logs
            p, q = np.where(above, b + log_q, log_p), np.where(below, log_p - a, log_q)
            return pair.on_same_atoms(p, q, f"core of {pair!r}")
        assert isinstance(pair, ContinuousPair)
        share = 1 / self.core_mass
        sets, text = self.sets, f"core of {pair!r}"
        p_pieces = [SplicePiece(lo, hi, share, 0.0) for lo, hi in _intervals(sets.A + sets.T)]
        p_pieces += [SplicePiece(lo, hi, 0.0, math.exp(b) * share) for lo, hi in _intervals(sets.S)]
        q_pieces = [SplicePiece(lo, hi, 0.0, share) for lo, hi in _intervals(sets.A + sets.S)]
        q_pieces += [SplicePiece(lo, hi, math.exp(-a) * share, 0.0) for lo, hi in _intervals(sets.T)]
        return ClampedPair(pair, self.clamp, *self._spliced(p_pieces, q_pieces, text))

    @cached_property
    def tails(self) -> Pair | None:
        """(P'', Q''), or None where tau is 0."""
        if self.tau == 0:
            return None
        a, b = self.clamp
        pair = self.pair
        if isinstance(pair, DiscretePair):
            log_p, log_q = pair.logs
            with np.errstate(all="ignore"):
                p = np.where(pair.where_above(b), log_p + np.log(-np.expm1(b - pair.ratios)), -np.inf)
                q = np.where(pair.where_below(a), log_q + np.log(-np.expm1(pair.ratios - a)), -np.inf)
            return pair.on_same_atoms(p, q, f"tails of {pair!r}")
        assert isinstance(pair, ContinuousPair)
        share = 1 / self.tau
        p_pieces = [SplicePiece(lo, hi, share, -math.exp(b) * share) for lo, hi in _intervals(self.sets.S)]
        q_pieces = [SplicePiece(lo, hi, -math.exp(-a) * share, share) for lo, hi in _intervals(self.sets.T)]
        return ContinuousPair(*self._spliced(p_pieces, q_pieces, f"tails of {pair!r}"))

    def _spliced(self, p_pieces: list[SplicePiece], q_pieces: list[SplicePiece], text: str) -> tuple[Splice, Splice]:
        pair = self.pair
        assert isinstance(pair, ContinuousPair)
        laws = [
            Splice(pair.null, pair.alternative, sorted(pieces, key=lambda piece: piece.lower), f"{word} of {text}")
            for pieces, word in ((p_pieces, "null"), (q_pieces, "alternative"))
        ]
        return laws[0], laws[1]

    @property
    def core_term(self) -> float:
        r"""(1 - tau) H^2(P', Q'), or 0 where there is no core."""
        return self.pair.clamped_hellinger(*self.clamp) if self.core_mass > 0 else 0.0

    @property
    def core_hellinger_squared(self) -> float:
        r"""H^2(P', Q'), or 0 where there is no core."""
        return 0.0 if self.core is None else min(self.core_term / self.core_mass, 1.0)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both laws, e^epsilon times each, and the areas of the tails: the paper's Figure 1 for this pair."""
        from privatest import pictures

        return pictures.decomposition(self, ax)

    @property
    def title(self) -> str:
        """Names the pair."""
        return f"Decomposition of {self.pair.null.describe()} and {self.pair.alternative.describe()}"

    def facts(self) -> list[Fact]:
        """Return the pair, tau and the clamp."""
        return [
            Fact("null", self.pair.null.describe(), "P"),
            Fact("alternative", self.pair.alternative.describe(), "Q"),
            Fact("epsilon", self.epsilon, "privacy loss"),
            Fact("tau", self.tau, "mass of either law that privacy caps: the tails"),
            Fact("epsilon_prime", self.epsilon_prime, "the other end of the clamp"),
            Fact("clamp", self.clamp, "interval that the log ratio is projected on"),
            Fact("swapped", self.swapped, "whether P and Q change roles"),
        ]

    def __repr__(self) -> str:
        a, b = self.clamp
        swapped = ", roles swapped" if self.swapped else ""
        return (
            f"Decomposition({self.pair.null.describe()} vs {self.pair.alternative.describe()}, epsilon={self.epsilon:g}"
            f": tau={self.tau:.6g}, epsilon_prime={self.epsilon_prime:.6g}{swapped}, clamp=[{a:.6g}, {b:.6g}])"
        )


def decompose(null: Any, alternative: Any, *, epsilon: Number) -> Decomposition:
    """The decomposition of P and Q at privacy ``epsilon``; for sets of distributions, that of their hardest members.

    Args:
        null, alternative, epsilon: as for :func:`privatest.design`.

    >>> split = decompose("bernoulli(0.05)", "bernoulli(0.1)", epsilon=0.5)
    >>> round(split.tau, 6), round(split.epsilon_prime, 6), split.swapped
    (0.017564, 0.035406, True)
    """
    level = float(numbers.positive("It is the privacy loss that is allowed.", epsilon=epsilon))
    return decompose_pair(hardest_pair(null, alternative), level)


def decompose_pair(pair: Pair, epsilon: float) -> Decomposition:
    """Return the decomposition of a pair.

    Args:
        pair: P and Q on their common domain.
        epsilon: privacy loss, positive and finite.
    """
    forward, backward = pair.hockey_stick(epsilon), pair.hockey_stick(epsilon, reverse=True)
    swapped = backward > forward * (1 + SAME)
    tau = max(forward, backward)
    if tau == 0:  # eps is at least max |L|
        return Decomposition(pair, epsilon, 0.0, epsilon, False, 1.0)
    prime = _epsilon_prime(pair, epsilon, tau, other=min(forward, backward), swapped=swapped)
    # The integral of min{P, e^eps Q} (of min{Q, e^eps P} if swapped): e^eps Q on S and P elsewhere.
    if swapped:
        rest = math.exp(epsilon) * pair.below(-epsilon)[0] + _mass_outside(pair, -epsilon, below=True)[1]
    else:
        rest = math.exp(epsilon) * pair.above(epsilon)[1] + _mass_outside(pair, epsilon, below=False)[0]
    if rest <= 1e-15:  # the supports are disjoint, as far as rounding can tell
        return Decomposition(pair, epsilon, 1.0, epsilon if tau >= 1 - 1e-12 else prime, swapped, 0.0)
    return Decomposition(pair, epsilon, min(tau, 1.0), prime, swapped, rest)


def paper_clamp(pair: Pair, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """The clamp [-eps', eps], or [-eps, eps'] if the roles are swapped, where eps is exactly what the user wrote."""
    split = decompose_pair(pair, float(epsilon))
    inner = min(numbers.rational(split.epsilon_prime), epsilon)
    return (-epsilon, inner) if split.swapped else (-inner, epsilon)


def _epsilon_prime(pair: Pair, epsilon: float, tau: float, *, other: float, swapped: bool) -> float:
    r"""Largest y in [0, eps] at which the other direction's divergence D_y equals tau.

    In t = e^y that divergence is convex and non-increasing with right derivative -P(L < -y) (Q(L > y) when
    swapped), so Newton's method from t = 1 approaches the root from the left and never passes it; on
    finitely many atoms it is piecewise linear and Newton ends at the root itself.
    """
    if other >= tau * (1 - SAME):  # equal at eps already: the divergence is flat up to there, or the pair symmetric
        return epsilon
    start = pair.hockey_stick(0.0, reverse=not swapped)
    if start <= tau * (1 + SAME) + 2e-16:  # probabilities sum to 1 within this
        return 0.0
    y, value = 0.0, start
    for _ in range(MOST_STEPS):
        slope = pair.above(y)[1] if swapped else pair.below(-y)[0]
        if slope <= 0:  # flat from here on
            return epsilon
        y_next = y + math.log1p((value - tau) / (slope * math.exp(y)))
        if not y_next < epsilon:
            return epsilon
        if y_next - y <= 1e-15 * max(y_next, 1e-300):
            return y_next
        y, value = y_next, pair.hockey_stick(y_next, reverse=not swapped)
        if value <= tau:  # at the root up to rounding
            return y
    return y


def _mass_outside(pair: Pair, level: float, *, below: bool) -> tuple[float, float]:
    """P-mass and Q-mass of {L >= level} (``below``) or of {L <= level}, accurate where they are small."""
    if isinstance(pair, DiscretePair):
        there = ~(pair.where_below(level) if below else pair.where_above(level))
        return math.fsum(pair.p[there].tolist()), math.fsum(pair.q[there].tolist())
    assert isinstance(pair, ContinuousPair)
    regions = pair.regions_below(level) if below else pair.regions_above(level)
    rest = _complement(regions, pair.support)
    if not rest:
        return 0.0, 0.0
    lower, upper = np.array(rest).T
    p, q = (math.fsum(law.mass(lower, upper).tolist()) for law in (pair.null, pair.alternative))
    return p, q


def _complement(regions: list[tuple[float, float]], support: tuple[float, float]) -> list[tuple[float, float]]:
    """Intervals that make up the support without the regions."""
    gaps, at = [], support[0]
    for lower, upper in sorted(regions):
        if lower > np.nextafter(at, math.inf):
            gaps.append((at, lower))
        at = max(at, upper)
    if at < support[1]:
        gaps.append((at, support[1]))
    return gaps


def _intervals(pieces: Set) -> list[tuple[float, float]]:
    return [piece for piece in pieces if isinstance(piece, tuple)]


def _atoms(pair: DiscretePair, mask: Any) -> Set:
    """Return the labels of the masked atoms, or the integers they hold as merged ranges."""
    index = np.flatnonzero(mask)
    if pair.kind == "labels":
        return tuple(pair.labels[i] for i in index)
    ranges: list[tuple[int, int]] = []
    for i in index:
        first, last = int(pair.first[i]), int(pair.last[i])
        if ranges and ranges[-1][1] + 1 == first:
            ranges[-1] = (ranges[-1][0], last)
        else:
            ranges.append((first, last))
    return tuple(ranges)


def _set_text(pieces: Set) -> str:
    listed = ", ".join(_piece_text(piece) for piece in pieces[:6])
    more = f", and {len(pieces) - 6} more" if len(pieces) > 6 else ""
    return "{" + listed + more + "}"


def _piece_text(piece: Hashable) -> str:
    if isinstance(piece, tuple) and len(piece) == 2 and all(isinstance(end, float) for end in piece):
        return f"({piece[0]:.6g}, {piece[1]:.6g})"
    if isinstance(piece, tuple) and len(piece) == 2 and all(isinstance(end, int) for end in piece):
        return str(piece[0]) if piece[0] == piece[1] else f"{piece[0]}..{piece[1]}"
    return repr(piece)
