"""Votes are logarithms of e-values: their mean under P, enumerated another way."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.changepoint.sum_blocks import SumBlocks
from privatest.hypotheses.convert import as_distribution
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Tulap
from privatest.scores import Score
from privatest.scores.score_law import every_score, member_law
from privatest.sequential.evidence import PARTS, block_votes, mean_bound, vote_laws
from tests.sequential.plans import small_blocks

COIN = ScoreLaw(np.array([0, 2]), np.array([0.3, 0.7]), np.array([0.7, 0.3]), 2)  # P scores high


def mean_under(rate: float, n: int, noise: Tulap, first: int, bin_width: int, votes: np.ndarray) -> float:
    """E e^vote for n records that score 2 with this probability, by a sum over all totals and noises."""
    reach = 60 * noise.width
    noises = np.arange(-reach, reach + 1) + float(noise.offset)
    masses = noise.pmf(noises)
    total = 0.0
    for k in range(n + 1):
        floors = np.floor(2 * k + noises).astype(int)
        bins = np.clip((floors - first) // bin_width + 1, 0, len(votes) - 1)
        total += float(stats.binom.pmf(k, n, rate)) * float(masses @ np.exp(votes[bins] / PARTS))
    return total


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("epsilon", "n"), [("1", 12), ("1/2", 20), ("4", 3), ("1/4", 1)])
def test_the_mean_of_an_evalue_under_p_is_at_most_one(epsilon: str, n: int, monotone: bool) -> None:
    noise = Tulap(Fraction(epsilon), 2)
    table = block_votes(COIN, noise, n, monotone=monotone)
    mean = mean_under(0.7, n, noise, table.first, table.bin_width, table.votes)
    assert 0.9 < mean <= 1
    assert mean <= mean_bound(table.null, table.votes, PARTS) <= 1
    # rounded up they are none
    assert mean_under(0.7, n, noise, table.first, table.bin_width, table.votes + 4) > 1


def test_monotone_votes_are_evalues_for_every_higher_law() -> None:
    noise = Tulap(Fraction(1), 2)
    table = block_votes(COIN, noise, 8, monotone=True)
    assert np.all(np.diff(table.votes) <= 0)
    means = [
        mean_under(rate, 8, noise, table.first, table.bin_width, table.votes) for rate in (0.7, 0.75, 0.9, 1.0, 0.6)
    ]
    assert all(mean <= 1 for mean in means[:-1])
    assert means[-1] > 1


def mean_of(blocks: SumBlocks, law: np.ndarray) -> float:
    """E e^vote of a block whose records' scores have this law, by convolution over the lattice and all noises."""
    scores, noise = every_score(blocks.score), blocks.noise
    one = np.zeros(int(scores[-1]) - int(scores[0]) + 1)
    one[scores - scores[0]] = law
    total = np.ones(1)
    for _ in range(blocks.block):
        total = np.convolve(total, one)
    reach = 45 * noise.width
    both = np.convolve(total, noise.pmf(np.arange(-reach, reach + 1) + float(noise.offset)))
    floors = np.floor(int(scores[0]) * blocks.block - reach + np.arange(len(both)) + float(noise.offset)).astype(int)
    bins = np.clip((floors - blocks.first) // blocks.bin_width + 1, 0, len(blocks.table) - 1)
    assert both.sum() == pytest.approx(1, abs=1e-9)
    return float(both @ np.exp(blocks.table[bins] / PARTS))


def moved(law: np.ndarray, share: float, *, rid: bool) -> np.ndarray:
    """A share of the mass at the lowest score: taken from the highest ones, or (contamination) from all alike."""
    found = law * (1 - share) if rid else law.copy()
    place = len(law) - 1
    rest = 0.0 if rid else share
    while rest > 0:
        taken = min(rest, found[place])
        found[place], rest, place = found[place] - taken, rest - taken, place - 1
    found[0] += share
    return found


NULL = {"a": 0.5, "b": 0.3, "c": 0.2}
OTHERS = ({"a": 0.3, "b": 0.6, "c": 0.1}, {"a": 0.4, "b": 0.2, "c": 0.4})
ALTERNATIVE = {"a": 0.05, "b": 0.15, "c": 0.8}


def extremes(kind: str, score: Score) -> list[np.ndarray]:
    centre = member_law(score, as_distribution(NULL))
    if kind == "any_of":
        return [centre, *(member_law(score, as_distribution(law)) for law in OTHERS)]
    worst = moved(centre, 0.06, rid=kind == "contaminated")
    mixed = [(1 - t) * centre + t * worst for t in (0.25, 0.5, 0.75)]
    return [centre, worst, *mixed]


@pytest.mark.parametrize("kind", ["near", "contaminated", "any_of"])
def test_it_is_an_evalue_for_every_extreme_member_of_a_set(kind: str) -> None:
    """Exactly, block by block; independent blocks multiply, so the martingale is one for every member."""
    null = {
        "near": pt.near(NULL, 0.06),
        "contaminated": pt.contaminated(NULL, 0.06),
        "any_of": pt.any_of(NULL, *OTHERS),
    }
    plan = pt.Sequential(null[kind], ALTERNATIVE, epsilon=2).plan
    for blocks in (plan.first, plan.later):
        means = [mean_of(blocks, law) for law in extremes(kind, blocks.score)]
        assert max(means) <= 1
        assert max(means) > 0.5  # not by being worth nothing
    # The votes of the centre alone are none for the worst member.
    alone = pt.Sequential(NULL, ALTERNATIVE, epsilon=2).plan.first
    assert max(mean_of(alone, law) for law in extremes(kind, alone.score)) > 1.05


def test_laws_of_votes_come_from_the_table_itself() -> None:
    blocks = small_blocks(Fraction(1), 4)
    found = vote_laws(blocks.score, blocks)
    b = math.exp(-1)
    expected: dict[int, float] = {}
    for k in range(5):
        for t in range(-80, 85):
            p = stats.binom.pmf(k, 4, 0.8) * (1 - b) / (1 + b) * b ** abs(t - k)
            vote = blocks.vote(2 * t)
            expected[vote] = expected.get(vote, 0.0) + p
    # high scores speak for P = bernoulli(0.2): a zero scores 1
    law = {found.null.least + i: p for i, p in enumerate(found.null.masses) if p > 0}
    assert law.keys() == expected.keys()
    assert all(law[vote] == pytest.approx(p, abs=1e-9) for vote, p in expected.items())
    assert 0.9 < found.mean <= 1


def test_a_table_of_larger_votes_has_a_larger_mean() -> None:
    blocks = small_blocks(Fraction(1), 4)
    bold = SumBlocks(blocks.score, blocks.noise, 4, blocks.first, blocks.bin_width, blocks.table + PARTS)
    assert vote_laws(bold.score, bold).mean > 2
