"""The law of a score under any distribution or set of distributions, also those that it was not made for.

A score is a function of cells, so its law follows from the masses of the cells: differences of the cdf at their edges,
or of its complement if that is smaller. Records in no cell are odd: numbers outside of the support that the score was
made for, unknown labels, fractions among counts.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.errors import InvalidInput
from privatest.hypotheses import Distribution, Labels, WholeNumbers
from privatest.hypotheses.distribution import Leaf, Numbers, Side
from privatest.hypotheses.sets import Box
from privatest.numbers import Floats
from privatest.numbers import Integers as Wholes
from privatest.scores.score import BoundedCells, Cells, DyadicCells, EdgeCells, IntegerCells, LabelCells, Score

if TYPE_CHECKING:
    from privatest.hypotheses.one_parameter import OneParameter


SLACK = 1e-4
"""Largest difference between the stated error and that of some member of the set."""
MOST_BOXES = 600
"""Largest number of parts into which the box of a set's parameters is divided."""
LAST_INTEGER = float(np.iinfo(np.int64).max)
"""Where the last cell of whole numbers ends that go on without an end."""
ATTAINED = 1e-12
"""A bound of the cdf this close to a member's is the member's."""


def score_law(score: Score, law: Distribution) -> tuple[Wholes, Floats]:
    """Scores in increasing order and their probabilities for a record from ``law``; only those that are positive.

    Guarantees: probabilities sum to 1 within 1e-12.
    """
    support, place = np.unique(score.table, return_inverse=True)
    masses = np.bincount(place, weights=cell_law(score.cells, law), minlength=len(support)).astype(np.float64)
    seen = masses > 0
    return support[seen].astype(np.int64), masses[seen] / math.fsum(masses)


def cell_law(cells: Cells, law: Distribution) -> Floats:
    """The probability of each cell, then that of the odd cell, for a record from ``law``."""
    if isinstance(law, Labels):
        masses = np.zeros(cells.count + 1)
        for label, probability in zip(law.labels, law.probabilities.tolist(), strict=True):
            masses[_cell_of(cells, label)] += probability
        return masses
    assert isinstance(law, Numbers)
    if isinstance(cells, LabelCells | IntegerCells) and not isinstance(law, WholeNumbers):
        return np.append(np.zeros(cells.count), 1.0)  # a continuous law hits no label and no integer
    if isinstance(cells, LabelCells):
        assert isinstance(law, WholeNumbers)
        labels, places = cells._numeric
        masses = np.zeros(cells.count + 1)
        masses[places] = law.pmf(labels)
        masses[cells.rest] = max(1.0 - math.fsum(masses), 0.0)
        return masses
    if isinstance(cells, IntegerCells):
        return _between(law, np.append(cells.first, cells.last).astype(np.float64))
    if isinstance(cells, DyadicCells | BoundedCells | EdgeCells):
        return _between(law, np.concatenate([[cells.low], cells.edges, [cells.high]]))
    raise InvalidInput(
        f"The law of a score on cells of the kind {cells.kind!r} is not known. Design a test of P and Q."
    )


def _cell_of(cells: Cells, label: Any) -> int:
    """The cell of a record with this value."""
    if isinstance(cells, LabelCells):
        return cells.index_of(label)
    if isinstance(label, str | bytes):
        return cells.count
    try:
        return int(cells.index(np.array([float(label)])).item())
    except (TypeError, ValueError, OverflowError):
        return cells.count


def _between(law: Numbers, edges: Floats) -> Floats:
    """Masses of [e_0, e_1), ..., and of the last interval with its end; then the mass outside of all of them."""
    starts = edges[:-1]
    x = np.ceil(starts) - 1 if isinstance(law, WholeNumbers) else starts
    open_start, x = np.isneginf(x), np.where(np.isneginf(x), 0.0, x)
    below = np.where(open_start, 0.0, law.cdf(x))  # Pr[X < start]
    above = np.where(open_start, 1.0, law.sf(x))  # Pr[X >= start]
    end = edges[-1:]
    below = np.concatenate([below, law.cdf(end) if math.isfinite(end[0]) else [1.0]])
    above = np.concatenate([above, law.sf(end) if math.isfinite(end[0]) else [0.0]])
    masses = np.maximum(np.where(below[1:] <= 0.5, np.diff(below), -np.diff(above)), 0.0)
    return np.append(masses, min(float(below[0] + above[-1]), 1.0))


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


def every_score(score: Score) -> Wholes:
    """All scores that any record can have, in increasing order."""
    return np.unique(score.table).astype(np.int64)


Known = dict[tuple[Any, ...], Floats]
"""A cache of laws of one score for one side, by parameters."""


def worst_laws(
    score: Score, leaf: Leaf, side: Side, error: Callable[[Floats], float], known: Known | None = None
) -> list[Worst]:
    """Laws such that the score of every member is stochastically at least (at most) one of them, the worst first.

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
    laws: Known = {} if known is None else known
    scores = every_score(score)

    def of_member(member: Distribution) -> Floats:
        return leaf.worst(member_law(score, member), side)

    if isinstance(leaf.of, Distribution):
        law = laws.setdefault((), of_member(leaf.of)) if () not in laws else laws[()]
        value = error(law)
        return [Worst(law, value, leaf.of.describe(), value)]
    whole, pieces, counter = leaf.of, _pieces(score, leaf.of), itertools.count()
    rules = [parameter.rule[1] for parameter in whole.family.parameters]
    looked_at: dict[tuple[float, ...], float] = {}

    def bounded(box: Box) -> tuple[float, int, Box, Floats]:
        key = box.low, box.high
        if key not in laws:
            laws[key] = leaf.worst(_envelope(pieces, scores, box, side), side)
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
    kept: list[Worst] = []
    for value, _, _, law in sorted(heap):
        if not any(_dominates(other.law, law, side) for other in kept):
            kept.append(Worst(law, -value, whole.family.text(worst), looked_at[worst]))
    return kept


def bounding_law(score: Score, leaf: Leaf, side: Side) -> Floats:
    """One law on :func:`every_score` that no member of a leaf is lower (higher) than."""
    if isinstance(leaf.of, Distribution):
        return leaf.worst(member_law(score, leaf.of), side)
    return leaf.worst(_envelope(_pieces(score, leaf.of), every_score(score), leaf.of, side), side)


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
                found = leaf.worst(member_law(score, leaf.of.member(values)), side)
                if np.max(np.abs(np.cumsum(found) - np.cumsum(law))) <= ATTAINED:
                    return law, leaf.of.family.text(values)
    return None


def member_law(score: Score, member: Distribution) -> Floats:
    """The probability of each of :func:`every_score` for a record from ``member``."""
    scores, (support, masses) = every_score(score), score_law(score, member)
    law = np.zeros(len(scores))
    law[np.searchsorted(scores, support)] = masses
    return law


def range_law(score: Score, family: OneParameter, low: float, high: float, side: Side) -> Floats:
    """The lowest (highest) law of the score over a range of a family's parameter, on :func:`every_score`.

    Guarantees: no member with the parameter in [low, high] has a law that is stochastically lower (higher). If low
    equals high and all other parameters are known, it is that member's law.
    """
    if family.is_share:
        label, other = int(score.table[0]), score.odd_score
        share = low if (side == "low") == (label > other) else high
        return np.array([1 - share, share] if label > other else [share, 1 - share])
    if low == high and family.exact:
        return member_law(score, family.member(low))
    box = family.box(low, high)
    return _envelope(_pieces(score, box), every_score(score), box, side)


def _dominates(worse: Floats, law: Floats, side: Side) -> bool:
    """Whether ``worse`` is at least as bad as ``law`` for every threshold test."""
    gap = np.cumsum(worse) - np.cumsum(law)
    return bool(np.all(gap >= -1e-15) if side == "low" else np.all(gap <= 1e-15))


def _pieces(score: Score, box: Box) -> tuple[Floats, Wholes]:
    """Points at which the cdfs of a box are needed, and the scores before, between and after these points."""
    cells, odd = score.cells, score.odd_score
    scores = np.concatenate([[odd], score.table[:-1], [odd]]).astype(np.int64)
    if isinstance(cells, IntegerCells):
        edges = np.append(cells.first, cells.last).astype(np.float64) - np.append(np.ones(cells.count), 0.0)
        return np.where(edges >= LAST_INTEGER, np.inf, edges), scores  # nothing lies beyond
    if isinstance(cells, DyadicCells | BoundedCells | EdgeCells):
        edges = np.concatenate([[cells.low], cells.edges, [cells.high]])
        return np.ceil(edges) - 1 if box.family.discrete else edges, scores
    raise InvalidInput(f"A set of distributions of numbers has no law on cells of the kind {cells.kind!r}.")


def _envelope(pieces: tuple[Floats, Wholes], scores: Wholes, box: Box, side: Side) -> Floats:
    """The lowest (highest) law of the score over the box: an upper bound of Pr[score <= s] (>= s) for every s."""
    edges, along = pieces
    lower, upper = np.zeros(len(edges)), np.ones(len(edges))
    finite = np.isfinite(edges)
    lower[finite], upper[finite] = box.below(edges[finite])
    upper[np.isneginf(edges)] = 0.0
    lower[np.isposinf(edges)] = 1.0
    place = np.searchsorted(scores, along)
    if side == "high":
        place = len(scores) - 1 - place
    before, after = place[:-1], place[1:]
    steps = np.zeros(len(scores) + 1)
    # A stretch of scores up to s ends at an edge where the score rises above s, and starts where it falls to s.
    for here, there, bound in ((before, after, upper), (after, before, -lower)):
        rises = here < there
        np.add.at(steps, here[rises], bound[rises])
        np.add.at(steps, there[rises], -bound[rises])
    steps[place[-1]] += 1.0
    cdf = np.clip(np.maximum.accumulate(np.cumsum(steps[:-1])), 0.0, 1.0)
    cdf[-1] = 1.0
    law = np.diff(cdf, prepend=0.0)
    return law if side == "low" else law[::-1]
