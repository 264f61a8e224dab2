"""The worst members of sets, ``near`` and ``contaminated`` among them, and the worst laws of a score over a set.

Error rates computed with the worst laws hold for every member. :func:`worst_laws` computes those of one part of a set,
:func:`worst_member` the member that is the worst for every test, if there is one. :func:`sides_of` finds on which side
of the null each part of the alternative lies. :func:`worst_score` finds the worst laws for one test,
:func:`settled_case` those that are the worst for every test, and :func:`envelope_score` laws that bound every member
for every mechanism.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privatest.errors import NothingToTest
from privatest.hypotheses import Distribution, Pair
from privatest.hypotheses.distribution import Leaf, Side
from privatest.hypotheses.parse import Hypotheses, matched, nearest
from privatest.hypotheses.sets import Box
from privatest.laws import Curves, NoisyTotal
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise
from privatest.progress_events import each
from privatest.scores import Score, clamped_score
from privatest.scores.score import BoundedCells, DyadicCells
from privatest.scores.score_law import cdf_points, envelope, every_score, member_law, score_law

# The worst laws change the cutoff, and another cutoff may have other worst members. Most searches end in two rounds.
ROUNDS = 3
# Ratios are clipped to this many nats to find out on which side of the null an alternative lies.
CLIP = 1.0

SLACK = 1e-4
"""Largest difference between the stated error and that of some member of the set."""
MOST_BOXES = 600
"""Largest number of parts into which the box of a set's parameters is divided."""
ATTAINED = 1e-12
"""A bound of the cdf this close to a member's is the member's."""


@dataclass(frozen=True, eq=False)
class Worst:
    """A law of the score that is at least as bad for a test as every member of a part of a set.

    Attributes:
        law: probabilities of :func:`every_score`, in that order.
        error: the error of a test under that law.
        member: description of the worst known member of the set.
        attained: error under that member, at most ``error``.
    """

    law: Floats
    error: float
    member: str
    attained: float


Known = dict[tuple[Any, ...], Floats]
"""A cache of laws of one score for one side, by parameters."""


def worst_laws(
    score: Score, leaf: Leaf, side: Side, error: Callable[[Floats], float], bounds: Known | None = None
) -> list[Worst]:
    """Return laws such that the score of every member is stochastically at least (at most) one of them, worst first.

    Args:
        score: the score.
        leaf: the set, a distribution or a family with a box of parameters.
        side: "low" for the null, whose error is a low total; "high" for the alternative.
        error: error of a test under a law of the score; it must increase as the law gets lower (higher).
        known: a cache of laws of this leaf for this score and side.

    Guarantees: for every member of the leaf and every threshold test, one of these laws has at least the member's
    error; for the test of ``error``, the largest error is at most SLACK above that of a member,
    unless MOST_BOXES parts of the box are not enough.
    """
    laws: Known = {} if bounds is None else bounds
    scores = every_score(score)

    def of_member(member: Distribution) -> Floats:
        return leaf.worst(member_law(score, member), side)

    if isinstance(leaf.of, Distribution):
        law = laws.setdefault((), of_member(leaf.of)) if () not in laws else laws[()]
        value = error(law)
        return [Worst(law, value, leaf.of.describe(), value)]
    whole, pieces, counter = leaf.of, cdf_points(score, leaf.of), itertools.count()
    rules = [parameter.rule[1] for parameter in whole.family.parameters]
    looked_at: dict[tuple[float, ...], float] = {}

    def bounded(box: Box) -> tuple[float, int, Box, Floats]:
        key = box.low, box.high
        if key not in laws:
            laws[key] = leaf.worst(envelope(pieces, scores, box, side), side)
        return -error(laws[key]), next(counter), box, laws[key]

    def look_at(tried: list[tuple[float, ...]]) -> None:
        for values in tried:
            if values in looked_at or not all(rule(v) for rule, v in zip(rules, values, strict=True)):
                continue
            if values not in laws:
                laws[values] = of_member(whole.member(values))
            looked_at[values] = error(laws[values])

    heap = [bounded(whole)]
    look_at([whole.middle, *whole.corners()])
    while len(heap) < MOST_BOXES and -heap[0][0] > max(looked_at.values()) + SLACK:
        _, _, box, _ = heapq.heappop(heap)
        splits = [[bounded(half) for half in box.halves(which)] for which in box.free]
        chosen = min(splits, key=lambda halves: max(-value for value, *_ in halves))
        for entry in chosen:
            heapq.heappush(heap, entry)
            look_at(entry[2].corners())
    worst = max(looked_at, key=lambda values: looked_at[values])
    undominated: list[Worst] = []
    for value, _, _, law in sorted(heap):
        if not any(_dominates(other.law, law, side) for other in undominated):
            undominated.append(Worst(law, -value, whole.family.text(worst), looked_at[worst]))
    return undominated


def bounding_law(score: Score, leaf: Leaf, side: Side) -> Floats:
    """Return one law on :func:`every_score` that is at most (at least) that of every member of a leaf."""
    if isinstance(leaf.of, Distribution):
        return leaf.worst(member_law(score, leaf.of), side)
    return leaf.worst(envelope(cdf_points(score, leaf.of), every_score(score), leaf.of, side), side)


def worst_member(score: Score, leaves: Sequence[Leaf], side: Side) -> tuple[Floats, str] | None:
    """The law and the name of the member that is the worst of all leaves for every test of the score, if there is one.

    There is one in sets that are bounded on one side, where the score is monotone in the record and the records'
    likelihood ratio is monotone: the member at the end.
    """
    laws = [bounding_law(score, leaf, side) for leaf in leaves]
    for leaf, law in zip(leaves, laws, strict=True):
        if not all(_dominates(law, other, side) for other in laws):
            continue
        if isinstance(leaf.of, Distribution):
            return law, leaf.of.describe()
        rules = [parameter.rule[1] for parameter in leaf.of.family.parameters]
        for values in leaf.of.corners():
            if all(rule(v) for rule, v in zip(rules, values, strict=True)):
                member = leaf.worst(member_law(score, leaf.of.member(values)), side)
                if np.max(np.abs(np.cumsum(member) - np.cumsum(law))) <= ATTAINED:
                    return law, leaf.of.family.text(values)
    return None


def _dominates(worse: Floats, law: Floats, side: Side) -> bool:
    """Whether ``worse`` is at least as bad as ``law`` for every threshold test."""
    gap = np.cumsum(worse) - np.cumsum(law)
    return bool(np.all(gap >= -1e-15) if side == "low" else np.all(gap <= 1e-15))


@dataclass(frozen=True, eq=False)
class Sides:
    """The parts of an alternative, by the side of the null on which they lie.

    Attributes:
        pair: the two distributions whose ratio is the score: null and alternative or, if the question is two-sided,
            the nearest alternatives on either side.
        below: parts that score lower than the null; all parts, if the question is one-sided.
        above: parts that score higher than the null.
        null: the member of the null that is nearest to an alternative.
    """

    pair: Pair
    below: tuple[Leaf, ...]
    above: tuple[Leaf, ...]
    null: Distribution


def sides_of(question: Hypotheses) -> Sides:
    """Sort the parts of the alternative by their side of the null, by the ratio of the two nearest members."""
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
    parts = [(leaf, nearest(nulls, [leaf]).pair.alternative) for leaf in alternatives] if len(alternatives) > 1 else []
    above = [(leaf, member) for leaf, member in parts if mean(member) >= middle]
    if not above:
        return Sides(question.pair, tuple(alternatives), (), question.pair.null)
    below = [(leaf, member) for leaf, member in parts if mean(member) < middle]
    ends = [nearest(nulls, [leaf for leaf, _ in side]).pair.alternative for side in (above, below)]
    pair = matched(*ends)
    score = clamped_score(pair, (-CLIP, CLIP))
    means = [mean(member) for member in (*[m for _, m in below], question.pair.null, *[m for _, m in above])]
    if not max(means[: len(below)]) < means[len(below)] < min(means[len(below) + 1 :]):
        raise NothingToTest(
            f"alternative {question.alternative.describe()} has parts that do not lie on two sides of the null "
            f"{question.null.describe()} along one score. Test each part on its own."
        )
    return Sides(pair, tuple(leaf for leaf, _ in below), tuple(leaf for leaf, _ in above), question.pair.null)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """A score with the laws under which a test errs the most.

    Attributes:
        score: the score with the worst laws that were found.
        members: the worst member of the null and of the alternative, described.
        cutoffs: the test's cutoffs for these laws; None if the search for both did not converge.
    """

    score: Score
    members: tuple[str, str]
    cutoffs: tuple[Fraction, ...] | None


def worst_score(
    question: Hypotheses,
    sides: Sides,
    score: Score,
    noise: Noise,
    n: int,
    cutoffs_of: Callable[[Score], tuple[Fraction, ...]],
    bounds: dict[tuple[int, int], Known],
) -> WorstCase:
    """Find the worst laws of both sets for a test on n records.

    Args:
        question: null and alternative.
        sides: the result of :func:`sides_of`.
        score: a score for the pair of the sides.
        noise, n: the test's noise and number of records.
        cutoffs_of: returns the test's cutoffs for a score with given laws.
        known: a cache of laws of this score by side and part, which serves several n.
    """
    support = every_score(score)
    nulls = question.null.leaves()
    two = bool(sides.above)
    trial = _with_nearest_laws(score, question, sides)
    cutoffs: tuple[Fraction, ...] | None = None
    worst: list[list[Worst]] = []
    for _ in each("the worst members of the sets", range(ROUNDS)):
        moved = cutoffs_of(trial)
        if moved == cutoffs:
            break
        cutoffs = moved
        low, high = (_error(support, n, noise, cutoffs[-1 if upper else 0], upper=upper) for upper in (False, True))
        searches: list[tuple[Sequence[Leaf], Side, Callable[[Floats], float]]] = [
            (nulls, "low", low),
            (sides.below, "high", lambda law, low=low: 1 - low(law)),  # type: ignore[misc]
            (nulls, "high", high if two else _no_error),
            (sides.above if two else sides.below, "low", (lambda law, high=high: 1 - high(law)) if two else _no_error),  # type: ignore[misc]
        ]
        worst = [
            _worst_of_leaves(score, leaves, side, error, [bounds.setdefault((part, i), {}) for i in range(len(leaves))])
            for part, (leaves, side, error) in enumerate(searches)
        ]
        trial = _with_laws(score, [[entry.law for entry in entries] for entries in worst], two)
    else:
        cutoffs = None
    null_parts, alternative_parts = ([0, 2], [1, 3]) if two else ([0], [1])
    null, alternative = (
        max((entry for part in parts for entry in worst[part]), key=lambda entry: entry.attained).member
        for parts in (null_parts, alternative_parts)
    )
    return WorstCase(trial, (null, alternative), cutoffs)


def score_for_sets(question: Hypotheses, sides: Sides, score: Score) -> Score:
    """Return the score of the two nearest members, changed where it would not distinguish other members.

    * Numbers that other members give, but not these two, have the score of the nearest number that these give, and not
      that of a record that makes no sense.
    * In a family of shifts whose ratio returns to 0 far out (student_t, cauchy), a record far out says little about
      which of two members it is from, so that members far inside a one-sided set would look like neither hypothesis.
      A one-sided set has a score that stays at its extremes instead, and then the members at its ends are the worst.
    """
    boxes = [leaf.of for leaf in (*question.null.leaves(), *question.alternative.leaves()) if isinstance(leaf.of, Box)]
    changed = _with_all_supports(score, boxes)
    if not sides.above and any(
        math.isinf(end) for box in boxes for i in box.free if box.shifts(i) for end in (box.low[i], box.high[i])
    ):
        changed = _with_flat_tails(changed)
    if changed is score:
        return score
    support = every_score(changed)
    laws = [member_law(changed, member) for member in (sides.pair.null, sides.pair.alternative)]
    visited = laws[0] + laws[1] > 0
    null, alternative = (law[visited] / math.fsum(law) for law in laws)
    return replace(changed, support=support[visited], null_law=null, alternative_law=alternative)


def _with_all_supports(score: Score, boxes: Sequence[Box]) -> Score:
    cells = score.cells
    if not isinstance(cells, DyadicCells | BoundedCells) or (cells.low, cells.high) == (-math.inf, math.inf):
        return score
    supports = [support for box in boxes for support in box.supports]
    low = -math.inf if any(support[0] < cells.low for support in supports) else cells.low
    high = math.inf if any(support[1] > cells.high for support in supports) else cells.high
    return score if (low, high) == (cells.low, cells.high) else replace(score, cells=replace(cells, low=low, high=high))


def _with_flat_tails(score: Score) -> Score:
    """Return the score with its largest and smallest value held beyond them, if it is monotone between the two."""
    values = score.table[:-1]
    highest, lowest = np.flatnonzero(values == values.max()), np.flatnonzero(values == values.min())
    falls = highest[-1] < lowest[0]
    first, last = (highest[-1], lowest[0]) if falls else (lowest[-1], highest[0])
    between = np.diff(values[first : last + 1])
    if first >= last or np.any(between > 0 if falls else between < 0):
        return score
    table = score.table.copy()
    table[:first], table[last:-1] = values[first], values[last]
    return score if np.array_equal(table, score.table) else replace(score, table=table)


def settled_case(question: Hypotheses, sides: Sides, score: Score) -> WorstCase | None:
    """Return the worst case if one member of each set is the worst for every n, noise and cutoff; else None.

    A question about such sets is as quick as the question about these two members.
    """
    if sides.above:
        return None
    nulls, others = question.null.leaves(), sides.below
    null, alternative = worst_member(score, nulls, "low"), worst_member(score, others, "high")
    if null is None or alternative is None:
        return None
    outer = [bounding_law(score, leaf, "high") for leaf in nulls], [bounding_law(score, leaf, "low") for leaf in others]
    laws = [[null[0]], [alternative[0]], *outer]
    return WorstCase(_with_laws(score, laws, two=False), (null[1], alternative[1]), None)


def envelope_score(question: Hypotheses, score: Score) -> Score:
    """The score with one law for each set: no member of the null scores lower, and none of the alternative higher.

    Its outer laws bound the members on the other side. Mechanisms whose guarantees are monotone in every record's score
    need these laws, because they have no single cutoff for which one member could be the worst.
    """
    score = score_for_sets(question, sides_of(question), score)
    support = every_score(score)
    heights = (support - support[0]) / max(int(support[-1] - support[0]), 1)
    nulls, alternatives = question.null.leaves(), question.alternative.leaves()
    sides: list[tuple[Sequence[Leaf], Side, Floats]] = [
        (nulls, "low", 1 - heights),
        (alternatives, "high", heights),
        (nulls, "high", heights),
        (alternatives, "low", 1 - heights),
    ]
    laws = []
    for leaves, side, badness in sides:
        entries = _worst_of_leaves(
            score,
            leaves,
            side,
            lambda law, weights=badness: float(law @ weights),  # type: ignore[misc]
            [{} for _ in leaves],
        )
        below = [np.cumsum(entry.law) for entry in entries]
        envelope = np.maximum.reduce(below) if side == "low" else np.minimum.reduce(below)
        envelope[-1] = 1.0
        laws.append([np.maximum(np.diff(envelope, prepend=0.0), 0.0)])
    bounded = _with_laws(score, laws, two=False)
    if not bounded.mean(bounded.null_law) > bounded.mean(bounded.alternative_law):
        raise NothingToTest(
            f"Some members of null {question.null.describe()} score as members of alternative "
            f"{question.alternative.describe()} do, so that a change between the two may go unnoticed. Use narrower "
            "sets."
        )
    return bounded


def _no_error(_: Floats) -> float:
    """Return an error of 0, for laws whose bound need not be tight: the set is then bounded as a whole."""
    return 0.0


def _with_nearest_laws(score: Score, question: Hypotheses, sides: Sides) -> Score:
    """Return the score with the laws of the nearest members."""
    support = every_score(score)

    def law(member: Distribution) -> list[Floats]:
        visited, masses = score_law(score, member)
        whole = np.zeros(len(support))
        whole[np.searchsorted(support, visited)] = masses
        return [whole]

    null = law(sides.null)
    if sides.above:
        return _with_laws(score, [null, law(sides.pair.alternative), null, law(sides.pair.null)], two=True)
    alternative = law(question.pair.alternative)
    return _with_laws(score, [null, alternative, null, alternative], two=False)


def _worst_of_leaves(
    score: Score, leaves: Sequence[Leaf], side: Side, error: Callable[[Floats], float], bounds: Sequence[Known]
) -> list[Worst]:
    """Return the worst laws of all parts of a set, by decreasing error."""
    entries = (worst_laws(score, leaf, side, error, laws) for leaf, laws in zip(leaves, bounds, strict=True))
    return sorted(itertools.chain.from_iterable(entries), key=lambda entry: -entry.error)


def _error(support: Integers, n: int, noise: Noise, cutoff: Fraction, *, upper: bool) -> Callable[[Floats], float]:
    """Return a function from a law to the probability of a noisy total up to the cutoff; with ``upper``, beyond it."""

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
    """Return the score with other laws, on the scores to which at least one of these laws gives mass.

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
