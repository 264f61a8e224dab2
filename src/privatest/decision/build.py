"""From a pair, a clamp and a notion of privacy to a test of each kind: score, noise, threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from privatest.decision.cutoffs import calibrated_cutoffs, mixed
from privatest.decision.private_test import PrivateTest
from privatest.decision.shifted import centred, kind_noise, unmoved
from privatest.hypotheses import DiscretePair, Pair
from privatest.privacy import NOISES, Logistic, Noise, NoNoise, Notion, Pure
from privatest.privacy.decision_chain import decision_noise
from privatest.privacy.noise import REPLACE, Neighbourhood
from privatest.rational import Number, rational
from privatest.scores import Score, clamped_score, whole_score
from privatest.scores.score import FEW_VALUES
from privatest.theory import decompose_pair

__all__ = [
    "CALIBRATED",
    "KINDS",
    "PRIVATE_KINDS",
    "calibrated_cutoffs",
    "calibrated_noise",
    "from_score",
    "kind_score",
    "paper_clamp",
    "unclamped",
]

PRIVATE_KINDS = tuple(noise.test for noise in NOISES.values() if noise.test)
CALIBRATED = ("tight", "stair")
"""Kinds whose threshold is chosen for their error rates; the paper's have 0."""
KINDS = (*(kind for kind in PRIVATE_KINDS if kind != "stair"), "llr", "sllr")
"""What may be asked for by ``test=``; the stair is asked for by ``release="decision"``."""
COARSE_UNITS = 64


def from_score(
    pair: Pair,
    score: Score,
    notion: Notion,
    n: int,
    kind: str,
    clamp: tuple[Number, Number],
    *,
    threshold: Fraction | None = None,
    alpha: float | None = None,
    around: Neighbourhood = REPLACE,
    cutoffs: Sequence[Fraction] | None = None,
    start: Fraction | None = None,
) -> PrivateTest:
    """A private test with this clamp, whose score is :func:`kind_score`.

    The threshold is the given one; else the largest that keeps the type I error at ``alpha``; else, for "tight", the
    one of the largest advantage and, for the paper's tests, 0. ``cutoffs``: where :func:`calibrated_cutoffs` has been
    asked before, what it said. ``start``: of the chain of a decision, see :func:`decision_noise`.
    """
    calibrated = threshold is None and (alpha is not None or kind in CALIBRATED)
    uppers: list[Fraction] = []
    coin = None
    if around.kind == "add-remove":
        if calibrated:
            found = centred(score, kind, notion, n, alpha, around)
        else:
            found = unmoved(score, kind, notion, n, threshold or Fraction(0), around)
        noise, cutoff, scale, shift = found.noise, found.cutoff, found.scale, found.shift
    else:
        noise, scale, shift = calibrated_noise(kind, score, notion, clamp, around.rows, start), 1, 0
        if calibrated and kind == "stair" and alpha is not None:
            cutoff, coin = mixed(score, noise, n, alpha)
        elif calibrated:
            cutoff, *uppers = cutoffs or calibrated_cutoffs(score, noise, n, alpha)
        else:
            cutoff = score.lattice_threshold(threshold or Fraction(0), n)
    null, alternative = pair.null.describe(), pair.alternative.describe()
    budget = notion.loss if isinstance(notion, Pure) and rational(notion.epsilon) != notion.loss else None
    return PrivateTest(
        kind,
        score,
        noise,
        cutoff,
        notion.epsilon,
        n,
        around.kind,
        null,
        alternative,
        around.rows,
        scale,
        shift,
        budget,
        upper=uppers[0] if uppers else None,
        coin=coin,
        notion=None if isinstance(notion, Pure) else notion,
    )


def kind_score(pair: Pair, kind: str, clamp: tuple[Number, Number]) -> Score:
    """The clamped score on the kind's lattice.

    Few values need few steps: a coarse lattice makes the exact law of their sum much cheaper. The paper's tests
    keep the fine one, which is closest to the letter.
    """
    few = isinstance(pair, DiscretePair) and 2 < len(pair.ratios) <= FEW_VALUES
    return clamped_score(pair, clamp, COARSE_UNITS if kind in CALIBRATED and few else None)


def calibrated_noise(
    kind: str,
    score: Score,
    notion: Notion,
    clamp: tuple[Number, Number],
    rows: int,
    start: Fraction | None = None,
) -> Noise:
    """The kind's noise, scaled to what it must hide of a person with ``rows`` rows, in units of the score's lattice."""
    width = Fraction(score.width)
    if kind == "stair":
        return decision_noise(notion, rows * width, start)
    if kind != "tight":  # the paper's b - a, not the realised one
        width = (rational(clamp[1], "clamp") - rational(clamp[0], "clamp")) / score.step
    return kind_noise(kind, notion, rows * width, score.step)


def paper_clamp(pair: Pair, notion: Notion) -> tuple[Number, Number]:
    """[-eps', eps], or [-eps, eps'] when the roles are swapped, with eps exactly as the user wrote it.

    Of other notions eps is that of the pure one that allows as much with one record.
    """
    epsilon = notion.equivalent
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
        (cutoff,) = calibrated_cutoffs(score, noise, n, alpha)
    else:
        cutoff = score.lattice_threshold(threshold or Fraction(0), n)
        if kind == "llr":
            # The likelihood-ratio test says P on ties (the paper's K_S), so the cutoff lies just below.
            cutoff = math.ceil(cutoff) - Fraction(1, 2)
    bounded = kind == "sllr" and all(math.isfinite(end) for end in pair.ratio_range)
    epsilon = float(score.step * score.width / 2) if bounded else math.inf
    null, alternative = pair.null.describe(), pair.alternative.describe()
    return PrivateTest(kind, score, noise, cutoff, epsilon, n, null=null, alternative=alternative)
