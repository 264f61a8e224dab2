r"""Decide between P and Q from a noisy table: the best weighted sum of its counts, with exact error rates.

About a law r between P and Q the counts have the covariance
:math:`\Sigma = n (\operatorname{diag} r - r r^\top) + v I`, v the variance of the noise on a count. The weights
:math:`\Sigma^{-1} n (p - q)` tell P from Q best, and their sum is nearly the log-likelihood ratio of the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest.charge_before_release import Draw
from privatest.decision import PrivateTest
from privatest.decision.construction import calibrated_cutoffs
from privatest.decision.worst_case import sides_of, worst_score
from privatest.errors import InvalidInput
from privatest.hypotheses import Distribution
from privatest.hypotheses.distribution import Numbers
from privatest.hypotheses.parse import make_hypotheses
from privatest.laws.weighted_counts import WeightedNoise, weighted
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise, Notion, RandomSource
from privatest.privacy.bulk_draws import draw_rows
from privatest.privacy.canonical_noise import counts_guarantee
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notion import REPLACE, Neighbourhood
from privatest.scores import Cells, EdgeCells, Score, score_with_laws
from privatest.scores.score_law import cell_law

if TYPE_CHECKING:
    from privatest.engines import Records

FINE = 1 << 9
"""The number of lattice steps between the smallest and the largest weight."""
PLACES = 160
"""The number of parts of equal probability, of P and of Q, between which edges are placed."""
ENOUGH = 0.999
"""Fewer cells are preferred if they tell this share of what the most cells tell."""


@dataclass(frozen=True, eq=False)
class TableTest(PrivateTest):
    """A test by a weighted sum of noisy counts.

    Guarantees: a run meets ``notion`` because the noise is that of noisy counts which meet it together, summed with the
    weights of the score. So it may be run on a released table, at no cost, or on data, whose cells are counted.
    """

    KIND: ClassVar[str] = "test by a table"

    @property
    def hidden(self) -> bool:
        """Whether the noise is that of counts that meet the notion, with the weights of the score."""
        noise = self.noise
        plain = self.neighbours == "replace" and self.scale == 1 and not self.shift and self.coin is None
        if not isinstance(noise, WeightedNoise) or not plain:
            return False
        same = len(noise.weights) == len(self.score.table) and np.ptp(self.score.table - np.array(noise.weights)) == 0
        around = Neighbourhood(self.neighbours, self.max_rows_per_unit)
        return bool(same) and adds_up_within(counts_guarantee(noise.noise, around), self.notion)

    def check(self, records: Records) -> None:
        """Refuse records of a wrong type or number, and a test whose error rates cannot be computed."""
        from privatest.engines.records import check_count, counting_score  # planning needs no engine

        records.check(counting_score(self.score.cells))
        check_count(records.count(), self.n)
        _ = self.alpha

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Count the cells and draw the noisy total of these counts.

        Of a person who has more rows than count, rows are drawn, as for a table. The noise hides whole records only: it
        takes the values that the weights can reach, which tell fractions of a person's rows apart.
        """
        counts = records.histogram(self.score.cells, partial(draw_rows, source))
        total = sum(one * count for one, count in zip(self.score.table.tolist(), counts, strict=True))
        return self.draw_of(total + self.noise.draw(source))

    def total(self, doubled: Integers) -> Fraction:
        """The noisy total of a table.

        Args:
            doubled: twice the noisy counts of the cells, and last that of the missing records.
        """
        assert isinstance(self.noise, WeightedNoise)
        weights = np.array(self.noise.weights)
        moved = int(self.score.table[0] - weights[0])
        return Fraction(sum(int(w) * int(t) for w, t in zip(weights, doubled, strict=True)), 2) + moved * self.n


def table_test(
    cells: Cells,
    noise: Noise,
    n: int,
    notion: Notion,
    null: Any,
    alternative: Any,
    *,
    alpha: float | None = None,
    around: Neighbourhood = REPLACE,
) -> TableTest:
    """The test of two hypotheses by a table of n records.

    Args:
        cells, noise, n: the table's cells, the noise on each count, and the number of records.
        notion: the notion of privacy that the table meets.
        null, alternative: the hypotheses, distributions or sets.
        alpha: the largest type I error; None: the largest advantage.
        around: which data sets are neighbours.
    """
    question = make_hypotheses(null, alternative)
    sides = sides_of(question) if not question.simple else None
    pair = question.pair if sides is None else sides.pair
    p, q = (_masses(cells, law) for law in (pair.null, pair.alternative))
    if np.abs(p - q).sum() < 1e-12:
        raise InvalidInput(
            f"The cells of the table do not tell null={question.null.describe()} from "
            f"alternative={question.alternative.describe()}: both give every cell the same probability. Use more cells."
        )
    if sides is None:
        tests = [_simple(cells, noise, n, notion, p, q, r, question, alpha, around) for r in ((p + q) / 2, p, q)]
        return max(tests, key=lambda test: -test.beta if alpha is not None else test.advantage)
    score = _weighted_score(cells, noise, n, p, q, (p + q) / 2)
    combined = _centred(noise, score)

    def cutoffs_of(trial: Score) -> tuple[Fraction, ...]:
        return calibrated_cutoffs(trial, combined, n, alpha)

    case = worst_score(question, sides, score, combined, n, cutoffs_of, {})
    cutoffs = case.cutoffs or cutoffs_of(case.score)
    return TableTest(
        name="table",
        score=case.score,
        noise=combined,
        cutoff=cutoffs[0],
        upper=cutoffs[1] if len(cutoffs) > 1 else None,
        notion=notion,
        n=n,
        null=question.null.describe(),
        alternative=question.alternative.describe(),
        neighbours=around.kind,
        max_rows_per_unit=around.rows,
        worst_members=case.members,
    )


def _simple(
    cells: Cells,
    noise: Noise,
    n: int,
    notion: Notion,
    p: Floats,
    q: Floats,
    middle: Floats,
    question: Any,
    alpha: float | None,
    around: Neighbourhood,
) -> TableTest:
    """The test of two distributions with the weights that are the best about a law between them."""
    score = _weighted_score(cells, noise, n, p, q, middle)
    combined = _centred(noise, score)
    (cutoff,) = calibrated_cutoffs(score, combined, n, alpha)
    return TableTest(
        name="table",
        score=score,
        noise=combined,
        cutoff=cutoff,
        notion=notion,
        n=n,
        null=question.null.describe(),
        alternative=question.alternative.describe(),
        neighbours=around.kind,
        max_rows_per_unit=around.rows,
    )


def telling_edges(null: Any, alternative: Any, noise: Noise, n: int, most: int) -> list[float]:
    r"""The edges of the cells, at most ``most``, whose noisy counts tell P from Q best.

    About a law r half-way between, a cell adds :math:`(p_c - q_c)^2 / (n r_c + v)` to what the counts tell, v the
    variance of the noise. So two cells whose records say the same are better one: they pay for the noise once. Among
    all cells between quantiles of P and Q the best are found by dynamic programming, with fewer cells if these tell
    the same up to a thousandth.

    Args:
        null, alternative: P and Q, distributions of numbers.
        noise: the noise on each count.
        n: the number of records.
        most: the largest number of cells.
    """
    question = make_hypotheses(null, alternative)
    both = (question.pair.null, question.pair.alternative) if question.simple else ()
    laws = [law for law in both if isinstance(law, Numbers)]
    if len(laws) < 2:
        raise InvalidInput(
            f"null={question.null.describe()} and alternative={question.alternative.describe()} must be two "
            "distributions of numbers, for which cells are placed. Give edges=[...] or labels=[...] for others."
        )
    levels = np.arange(1, PLACES) / PLACES
    points = np.unique(np.concatenate([law.ppf(levels) for law in laws]))
    points = points[np.isfinite(points)]
    below_p, below_q = (
        np.concatenate([[0.0], np.cumsum(_masses(EdgeCells(tuple(points.tolist())), law))]) for law in laws
    )
    apart, middle = (
        np.subtract.outer(sums, sums).T for sums in (below_p - below_q, (below_p + below_q) / 2)
    )  # of the cell from one point to another
    ends = np.arange(len(below_p))
    told = np.where(ends[None, :] > ends[:, None], apart**2 / (n * np.maximum(middle, 0) + noise.variance), -np.inf)
    best, before = [told[0]], [np.zeros(len(ends), dtype=np.int64)]
    for _ in range(1, min(most, len(points) + 1)):
        sums = best[-1][:, None] + told
        before.append(sums.argmax(axis=0))
        best.append(sums.max(axis=0))
    totals = np.array([each[-1] for each in best])
    place, edges = len(ends) - 1, []
    for step in range(int(np.argmax(totals >= ENOUGH * totals.max())), 0, -1):
        place = int(before[step][place])
        edges.append(float(points[place - 1]))
    if not edges:
        raise InvalidInput(
            f"No {most} cells tell null={question.null.describe()} from "
            f"alternative={question.alternative.describe()}. Give edges=[...]."
        )
    return edges[::-1]


def _masses(cells: Cells, law: Distribution) -> Floats:
    """The probabilities of the cells for a record that has one."""
    masses = cell_law(cells, law)[:-1]
    total = math.fsum(masses)
    if total <= 0:
        raise InvalidInput(f"No record of {law.describe()} has a cell in the table. Use a table with other cells.")
    return np.asarray(masses / total)


def _weighted_score(cells: Cells, noise: Noise, n: int, p: Floats, q: Floats, middle: Floats) -> Score:
    """The score whose sums tell P from Q best; a missing record has the mean score about the middle."""
    inverse = 1.0 / (n * middle + noise.variance)
    u = inverse * middle
    scaled = inverse * n * (p - q)
    weights = scaled + n * u * float(middle @ scaled) / (1 - n * float(middle @ u))
    step = Fraction(f"{float(np.ptp(weights)) / FINE:.9g}")
    table = np.rint(np.append(weights, float(middle @ weights)) / float(step)).astype(np.int64)
    return score_with_laws(cells, table, Fraction(0), step, p, q)


def _centred(noise: Noise, score: Score) -> WeightedNoise:
    """The noise of the sum: as n is public, the weights may be centred."""
    return weighted(noise, (score.table - round(float(score.table.mean()))).tolist())


Goal = Callable[[TableTest], bool]


def smallest_number(test_of: Callable[[int], TableTest], reaches: Goal, start: int = 16) -> int:
    """The smallest n for which a table's test reaches a goal, which more records then reach, too."""
    low, high = 0, start
    while not reaches(test_of(high)):
        low, high = high, 2 * high
        if high > 1 << 40:
            raise InvalidInput("No number of records up to 10^12 reaches this goal with these cells.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(test_of(middle)) else (middle, high)
    return high
