"""From a pair, a clamp and an epsilon to a test of each kind."""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.hypothesis.curves import Curves
from privatest.hypothesis.neighbours import REPLACE, Neighbourhood
from privatest.hypothesis.private_test import PrivateTest
from privatest.hypothesis.shifted import centred, unmoved
from privatest.noise import Laplace, Logistic, Noise, NoNoise, Tulap
from privatest.pairs import DiscretePair, Pair
from privatest.rational import Number, rational
from privatest.scores import Score, clamped_score, whole_score
from privatest.theory import decompose_pair

__all__ = [
    "KINDS",
    "PRIVATE_KINDS",
    "calibrated_cutoff",
    "calibrated_noise",
    "from_score",
    "kind_score",
    "paper_clamp",
    "unclamped",
]

PRIVATE_KINDS = ("tight", "scllr", "ncllr")
KINDS = (*PRIVATE_KINDS, "llr", "sllr")
FEW_VALUES = 16
COARSE_UNITS = 64


def from_score(
    pair: Pair,
    score: Score,
    epsilon: Fraction,
    n: int,
    kind: str,
    clamp: tuple[Number, Number],
    *,
    threshold: Fraction | None = None,
    alpha: float | None = None,
    around: Neighbourhood = REPLACE,
) -> PrivateTest:
    """A private test with this clamp, whose score is :func:`kind_score`.

    The threshold is the given one; else the largest that keeps the type I error at ``alpha``; else, for "tight", the
    one of the largest advantage and, for the paper's tests, 0.
    """
    calibrated = threshold is None and (alpha is not None or kind == "tight")
    if around.kind == "add-remove":
        if calibrated:
            found = centred(score, kind, epsilon, n, alpha, around)
        else:
            found = unmoved(score, kind, epsilon, n, threshold or Fraction(0), around)
        noise, cutoff, scale, shift = found.noise, found.cutoff, found.scale, found.shift
    else:
        noise, scale, shift = calibrated_noise(kind, score, epsilon, clamp, around.rows), 1, 0
        if calibrated:
            cutoff = calibrated_cutoff(score, noise, n, alpha)
        else:
            cutoff = score.lattice_threshold(threshold or Fraction(0), n)
    null, alternative = pair.null.describe(), pair.alternative.describe()
    rounded = float(epsilon)
    budget = None if rational(rounded) == epsilon else epsilon
    return PrivateTest(
        kind, score, noise, cutoff, rounded, n, around.kind, null, alternative, around.rows, scale, shift, budget
    )


def kind_score(pair: Pair, kind: str, clamp: tuple[Number, Number]) -> Score:
    """The clamped score on the kind's lattice.

    Few values need few steps: a coarse lattice makes the exact law of their sum much cheaper. The paper's tests
    keep the fine one, which is closest to the letter.
    """
    few = isinstance(pair, DiscretePair) and 2 < len(pair.ratios) <= FEW_VALUES
    return clamped_score(pair, clamp, COARSE_UNITS if kind == "tight" and few else None)


def calibrated_noise(kind: str, score: Score, epsilon: Fraction, clamp: tuple[Number, Number], rows: int = 1) -> Noise:
    """The kind's noise, scaled to what it must hide of a person with ``rows`` rows, in units of the score's lattice."""
    if kind == "tight":
        return Tulap(epsilon, rows * score.width)
    # the paper's b - a, not the realised one
    width = rows * (rational(clamp[1], "clamp") - rational(clamp[0], "clamp"))
    if kind == "ncllr":
        return Laplace(width / epsilon / score.step)
    # The exponent 1/2 of the paper is scale 2, enough while b - a <= 2 epsilon; a wider clamp needs more.
    return Logistic(max(Fraction(2), width / epsilon) / score.step)


def calibrated_cutoff(score: Score, noise: Noise, n: int, alpha: float | None) -> Fraction:
    """The cutoff of the largest advantage, or the largest one whose type I error is at most alpha."""
    score.check_total(n)
    curves = Curves(score.support, score.null_law, score.alternative_law, n, noise)
    return curves.best_cutoff() if alpha is None else curves.cutoff_for_alpha(alpha)


def paper_clamp(pair: Pair, epsilon: Fraction) -> tuple[Number, Number]:
    """[-eps', eps], or [-eps, eps'] when the roles are swapped, with eps exactly as the user wrote it."""
    split = decompose_pair(pair, float(epsilon))
    inner = min(rational(split.epsilon_prime), epsilon)
    return (-epsilon, inner) if split.swapped else (-inner, epsilon)


def unclamped(
    pair: Pair, n: int, kind: str, *, threshold: Fraction | None = None, alpha: float | None = None
) -> PrivateTest:
    """llr and sllr: the ratio as it is."""
    score = whole_score(pair, n)
    noise = NoNoise() if kind == "llr" else Logistic(2 / score.step)
    if alpha is not None and threshold is None:
        cutoff = calibrated_cutoff(score, noise, n, alpha)
    else:
        cutoff = score.lattice_threshold(threshold or Fraction(0), n)
        if kind == "llr":
            # The likelihood-ratio test says P on ties (the paper's K_S), so the cutoff lies just below.
            cutoff = math.ceil(cutoff) - Fraction(1, 2)
    bounded = kind == "sllr" and all(math.isfinite(end) for end in pair.ratio_range)
    epsilon = float(score.step * score.width / 2) if bounded else math.inf
    null, alternative = pair.null.describe(), pair.alternative.describe()
    return PrivateTest(kind, score, noise, cutoff, epsilon, n, null=null, alternative=alternative)
