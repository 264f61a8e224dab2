"""A score with the laws that are worst for it over sets of distributions: error rates then hold for every member."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privatest.hypotheses.question import Question
from privatest.hypotheses.sets import Hypothesis, Side
from privatest.laws.curves import Curves
from privatest.privacy import Noise
from privatest.scores import Score
from privatest.scores.score_law import Worst, every_score, worst_laws
from privatest.vectors import Floats, Integers

__all__ = ["worst_score"]

# The worst laws move the cutoff, and another cutoff may have other worst members; it settles at once or not at all.
ROUNDS = 3


def worst_score(
    question: Question, score: Score, noise: Noise, n: int, cutoff_of: Callable[[Score], Fraction]
) -> tuple[Score, str, str]:
    """The score with the worst laws of both sets, and the worst member found of each.

    Args:
        score: made for the question's pair.
        noise, n: of the test; ``cutoff_of`` gives its cutoff for a score with certain laws.
    """
    support = every_score(score)
    made = _with_laws(score, [_of_pair(score, law, support) for law in (score.null_law, score.alternative_law)])
    cutoff = None
    sides: tuple[tuple[Hypothesis, Side], ...] = ((question.null, "low"), (question.alternative, "high"))
    worst: list[list[Worst]] = []
    for _ in range(ROUNDS):
        new = cutoff_of(made)
        if new == cutoff:
            break
        cutoff = new
        worst = [_of_set(score, set_, side, _error(support, n, noise, cutoff, side)) for set_, side in sides]
        made = _with_laws(score, [[entry.law for entry in found] for found in worst])
    null, alternative = (max(found, key=lambda entry: entry.attained).member for found in worst)
    return made, null, alternative


def _of_pair(score: Score, law: Floats, support: Integers) -> list[Floats]:
    whole = np.zeros(len(support))
    whole[np.searchsorted(support, score.support)] = law
    return [whole]


def _of_set(score: Score, hypothesis: Hypothesis, side: Side, error: Callable[[Floats], float]) -> list[Worst]:
    found = [entry for leaf in hypothesis.leaves() for entry in worst_laws(score, leaf, side, error)]
    return sorted(found, key=lambda entry: -entry.error)


def _error(support: Integers, n: int, noise: Noise, cutoff: Fraction, side: Side) -> Callable[[Floats], float]:
    def error(law: Floats) -> float:
        curves = Curves(support, law, law, n, noise)
        below = float(curves.cdfs(np.array([float((cutoff - curves.base) / curves.unit)]))[0][0])
        return below if side == "low" else 1 - below

    return error


def _with_laws(score: Score, laws: list[list[Floats]]) -> Score:
    """The same score with other laws, over all of its scores that one of them visits."""
    support = every_score(score)
    visited = np.any([law > 0 for side in laws for law in side], axis=0)
    null, alternative = ([law[visited] / math.fsum(law) for law in side] for side in laws)
    return replace(
        score,
        support=support[visited],
        null_law=null[0],
        alternative_law=alternative[0],
        other_null_laws=tuple(null[1:]),
        other_alternative_laws=tuple(alternative[1:]),
    )
