"""The law of a score under any distribution or set of distributions, also those that it was not made for.

A score is a function of cells, so its law follows from the masses of the cells: differences of the cdf at their edges,
or of its complement if that is smaller. Records in no cell are odd: numbers outside of the support that the score was
made for, unknown labels, fractions among counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.errors import InvalidInput
from privatest.hypotheses import Distribution, Labels, WholeNumbers
from privatest.hypotheses.distribution import Numbers, Side
from privatest.hypotheses.sets import Box
from privatest.numbers import Floats
from privatest.numbers import Integers as Wholes
from privatest.scores.score import BoundedCells, Cells, DyadicCells, EdgeCells, IntegerCells, LabelCells, Score

if TYPE_CHECKING:
    from privatest.hypotheses.one_parameter import OneParameter


LAST_INTEGER = float(np.iinfo(np.int64).max)
"""The end of the last cell of whole numbers, where they go on without end."""


def score_law(score: Score, law: Distribution) -> tuple[Wholes, Floats]:
    """Return the scores that a record from ``law`` can have, in increasing order, and their probabilities.

    Guarantees: probabilities sum to 1 within 1e-12.
    """
    support, place = np.unique(score.table, return_inverse=True)
    masses = np.bincount(place, weights=cell_law(score.cells, law), minlength=len(support)).astype(np.float64)
    seen = masses > 0
    return support[seen].astype(np.int64), masses[seen] / math.fsum(masses)


def cell_law(cells: Cells, law: Distribution) -> Floats:
    """Return the probability of each cell, then that of the odd cell, for a record from ``law``."""
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
    """Return the cell of a record with this value."""
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


def every_score(score: Score) -> Wholes:
    """All scores that any record can have, in increasing order."""
    return np.unique(score.table).astype(np.int64)


def member_law(score: Score, member: Distribution) -> Floats:
    """Return the probability of each of :func:`every_score` for a record from ``member``."""
    scores, (support, masses) = every_score(score), score_law(score, member)
    law = np.zeros(len(scores))
    law[np.searchsorted(scores, support)] = masses
    return law


def range_law(score: Score, family: OneParameter, low: float, high: float, side: Side) -> Floats:
    """Return the lowest (highest) law of the score over a range of a family's parameter, on :func:`every_score`.

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
    return envelope(cdf_points(score, box), every_score(score), box, side)


def cdf_points(score: Score, box: Box) -> tuple[Floats, Wholes]:
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


def envelope(pieces: tuple[Floats, Wholes], scores: Wholes, box: Box, side: Side) -> Floats:
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
