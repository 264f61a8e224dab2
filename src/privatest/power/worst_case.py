"""A score with the laws that are worst for it over sets of distributions: error rates then hold for every member."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privatest.errors import NothingToTest
from privatest.hypotheses.convert import matched
from privatest.hypotheses.distribution import Distribution, Pair
from privatest.hypotheses.question import Question, nearest
from privatest.hypotheses.sets import Leaf, Side
from privatest.laws import Curves, NoisyTotal
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise
from privatest.scores import Score, clamped_score
from privatest.scores.score_law import Known, Worst, every_score, score_law, worst_laws

__all__ = ["Sides", "envelope_score", "sides_of", "worst_score"]

# The worst laws move the cutoff, and another cutoff may have other worst members; it settles at once or not at all.
ROUNDS = 3
# Ratios are clipped to this many nats to see on which side of the null an alternative lies.
CLIP = 1.0


@dataclass(frozen=True, eq=False)
class Sides:
    """The parts of a question's alternative by the side of the null on which they lie.

    Attributes:
        pair: whose ratio the score is: null and alternative or, of a two-sided question, the nearest alternatives to
            either side.
        below: parts that score lower than the null: all of them, where the question is one-sided.
        above: parts that score higher.
        null: the member of the null that is nearest to an alternative.
    """

    pair: Pair
    below: tuple[Leaf, ...]
    above: tuple[Leaf, ...]
    null: Distribution


def sides_of(question: Question) -> Sides:
    """On which side of the null each part of the alternative lies, by the ratio of the two nearest members."""
    score = clamped_score(question.pair, (-CLIP, CLIP))

    def mean(member: Distribution) -> float:
        support, law = score_law(score, member)
        return math.fsum(support * law)

    nulls, alternatives = question.null.leaves(), question.alternative.leaves()
    middle, other = mean(question.pair.null), mean(question.pair.alternative)
    for leaf in nulls if len(nulls) > 1 else ():
        if mean(nearest([leaf], alternatives).pair.null) <= other:
            raise NothingToTest(
                f"null {question.null.describe()} has members on both sides of the alternative "
                f"{question.alternative.describe()}. Exchange them: an alternative may lie on both sides of the null."
            )
    found = [(leaf, nearest(nulls, [leaf]).pair.alternative) for leaf in alternatives] if len(alternatives) > 1 else []
    above = [(leaf, member) for leaf, member in found if mean(member) >= middle]
    if not above:
        return Sides(question.pair, tuple(alternatives), (), question.pair.null)
    below = [(leaf, member) for leaf, member in found if mean(member) < middle]
    ends = [nearest(nulls, [leaf for leaf, _ in side]).pair.alternative for side in (above, below)]
    pair = matched(*ends)
    score = clamped_score(pair, (-CLIP, CLIP))
    means = [mean(member) for member in (*[m for _, m in below], question.pair.null, *[m for _, m in above])]
    if not max(means[: len(below)]) < means[len(below)] < min(means[len(below) + 1 :]):
        raise NothingToTest(
            f"alternative {question.alternative.describe()} has parts that do not lie on two sides of the null "
            f"{question.null.describe()} along one score. Ask of each part with a test of its own."
        )
    return Sides(pair, tuple(leaf for leaf, _ in below), tuple(leaf for leaf, _ in above), question.pair.null)


def worst_score(
    question: Question,
    sides: Sides,
    score: Score,
    noise: Noise,
    n: int,
    cutoffs_of: Callable[[Score], Sequence[Fraction]],
    known: dict[tuple[Any, ...], Known],
) -> tuple[Score, str, str]:
    """The score with the worst laws of both sets, and the worst member found of each.

    Args:
        score: made for the sides' pair.
        noise, n: of the test; ``cutoffs_of`` gives its cutoffs for a score with certain laws.
        known: laws of this score by side and part, kept from one n to the next.
    """
    support = every_score(score)
    nulls = question.null.leaves()
    two = bool(sides.above)
    made = _first_guess(score, question, sides)
    cutoffs: Sequence[Fraction] | None = None
    worst: list[list[Worst]] = []
    for _ in range(ROUNDS):
        new = tuple(cutoffs_of(made))
        if new == cutoffs:
            break
        cutoffs = new
        low, high = (_error(support, n, noise, cutoffs[-1 if upper else 0], upper=upper) for upper in (False, True))
        asked: list[tuple[Sequence[Leaf], Side, Callable[[Floats], float]]] = [
            (nulls, "low", low),
            (sides.below, "high", lambda law, low=low: 1 - low(law)),  # type: ignore[misc]
            (nulls, "high", high if two else _no_error),
            (sides.above if two else sides.below, "low", (lambda law, high=high: 1 - high(law)) if two else _no_error),  # type: ignore[misc]
        ]
        worst = [
            _of_leaves(score, leaves, side, error, [known.setdefault((part, i), {}) for i in range(len(leaves))])
            for part, (leaves, side, error) in enumerate(asked)
        ]
        made = _with_laws(score, [[entry.law for entry in found] for found in worst], two)
    null_parts, alternative_parts = ([0, 2], [1, 3]) if two else ([0], [1])
    null, alternative = (
        max((entry for part in parts for entry in worst[part]), key=lambda entry: entry.attained).member
        for parts in (null_parts, alternative_parts)
    )
    return made, null, alternative


def envelope_score(question: Question, score: Score) -> Score:
    """The score with one law for each set: no member of the null has lower scores, none of the alternative higher ones.

    For mechanisms whose guarantees are monotone in every record's score; they have no single cutoff to be worst at.
    """
    support = every_score(score)
    heights = (support - support[0]) / max(int(support[-1] - support[0]), 1)
    sides: list[tuple[Sequence[Leaf], Side, Floats]] = [
        (question.null.leaves(), "low", 1 - heights),
        (question.alternative.leaves(), "high", heights),
    ]
    laws = []
    for leaves, side, badness in sides:
        found = _of_leaves(score, leaves, side, lambda law, of=badness: float(law @ of), [{} for _ in leaves])  # type: ignore[misc]
        below = [np.cumsum(entry.law) for entry in found]
        envelope = np.maximum.reduce(below) if side == "low" else np.minimum.reduce(below)
        envelope[-1] = 1.0
        laws.append([np.maximum(np.diff(envelope, prepend=0.0), 0.0)])
    made = _with_laws(score, [*laws, *laws], two=False)
    if not made.mean(made.null_law) > made.mean(made.alternative_law):
        raise NothingToTest(
            f"null {question.null.describe()} and alternative {question.alternative.describe()}: some members of one "
            "score as members of the other do, so no change between the two can be promised to be seen. Use narrower "
            "sets."
        )
    return replace(made, outer_null_laws=(), outer_alternative_laws=())


def _no_error(_: Floats) -> float:
    """For bounds that need not be tight: the box as a whole."""
    return 0.0


def _first_guess(score: Score, question: Question, sides: Sides) -> Score:
    """The score with the laws of the nearest members."""
    support = every_score(score)

    def law(member: Distribution) -> list[Floats]:
        found, masses = score_law(score, member)
        whole = np.zeros(len(support))
        whole[np.searchsorted(support, found)] = masses
        return [whole]

    null = law(sides.null)
    if sides.above:
        return _with_laws(score, [null, law(sides.pair.alternative), null, law(sides.pair.null)], two=True)
    alternative = law(question.pair.alternative)
    return _with_laws(score, [null, alternative, null, alternative], two=False)


def _of_leaves(
    score: Score, leaves: Sequence[Leaf], side: Side, error: Callable[[Floats], float], known: Sequence[Known]
) -> list[Worst]:
    each = (worst_laws(score, leaf, side, error, laws) for leaf, laws in zip(leaves, known, strict=True))
    found = [entry for entries in each for entry in entries]
    return sorted(found, key=lambda entry: -entry.error)


def _error(support: Integers, n: int, noise: Noise, cutoff: Fraction, *, upper: bool) -> Callable[[Floats], float]:
    """The probability of a noisy total up to the cutoff, or beyond it where that is the upper one."""

    def error(law: Floats) -> float:
        curves = Curves(support, law, law, n, noise)
        offset = float((cutoff - curves.base) / curves.unit)
        if curves.everywhere and abs(offset) <= curves.reach:
            below = float(curves.cdfs(np.array([offset]))[0][0])
            return 1 - below if upper else below
        total = NoisyTotal(support, law, n, noise)
        return total.sf(cutoff) if upper else total.cdf(cutoff)

    return error


def _with_laws(score: Score, laws: list[list[Floats]], two: bool) -> Score:
    """The same score with other laws, over all of its scores that one of them visits.

    Args:
        laws: lowest of the null; highest of the alternative (below the null); highest of the null; lowest of the
            alternative (above the null, in a two-sided question).
    """
    support = every_score(score)
    visited = np.any([law > 0 for side in laws for law in side], axis=0)
    null, alternative, outer, last = (tuple(law[visited] / math.fsum(law) for law in side) for side in laws)
    return replace(
        score,
        support=support[visited],
        null_law=null[0],
        alternative_law=alternative[0],
        other_null_laws=null[1:],
        other_alternative_laws=alternative[1:],
        outer_null_laws=outer,
        outer_alternative_laws=() if two else last,
        upper_laws=last if two else (),
    )
