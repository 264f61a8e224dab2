"""e-values combine. Votes are logarithms of e-values: their mean under P, enumerated another way."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

import privatest as pt
from benchmarks.bench_sequential import growth_bound
from privatest.errors import InvalidInput
from privatest.hypotheses import make_pair
from privatest.hypotheses.parse import as_distribution
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Tulap
from privatest.scores import Score
from privatest.scores.score_law import every_score, member_law
from privatest.streams.blocks import SumBlocks
from privatest.streams.evalues import PARTS, block_votes, mean_bound, vote_laws
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
            (vote,) = blocks.votes([2 * t])
            expected[vote] = expected.get(vote, 0.0) + p
    # high scores speak for P = bernoulli(0.2): a zero scores 1
    law = {found.null.least + i: p for i, p in enumerate(found.null.masses) if p > 0}
    assert law.keys() == expected.keys()
    assert all(law[vote] == pytest.approx(p, abs=1e-9) for vote, p in expected.items())
    assert 0.9 < found.mean <= 1


def test_means_under_the_null() -> None:
    rng = np.random.default_rng(2)
    ones = rng.choice([0.5, 2.0], p=[2 / 3, 1 / 3], size=(200_000, 2))  # mean 1
    products = np.array([pt.results.combine_evalues(pair) for pair in ones[:20_000]])
    assert abs(products.mean() - 1) < 4 * products.std() / math.sqrt(len(products))
    same = ones[:20_000, 0]
    assert np.mean(same * same) > 1.2  # of dependent values the product is no e-value
    averages = [pt.results.combine_evalues([value, value], dependent=True) for value in same[:2000]]
    assert averages == pytest.approx(same[:2000])


def test_discoveries() -> None:
    assert pt.results.evalue_discoveries([90, 0.3, 50, 2], alpha=0.05) == (0, 2)
    assert pt.results.evalue_discoveries([19], alpha=0.05) == ()
    assert pt.results.evalue_discoveries([20], alpha=0.05) == (0,)
    assert pt.results.evalue_discoveries([], alpha=0.05) == ()
    assert pt.results.evalue_discoveries({"a": 39, "b": 41, "c": 0}, alpha=0.05) == ("a", "b")
    assert pt.results.evalue_discoveries({"a": 29, "b": 60, "c": 0}, alpha=0.05) == ("b",)
    assert pt.results.evalue_discoveries({"a": 29, "b": 59, "c": 0}, alpha=0.05) == ()


def test_discoveries_are_as_many_as_there_can_be() -> None:
    """Against the definition, on all small tables: of all sets that are consistent the largest."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        values, alpha = rng.choice([0.0, 1, 5, 12, 20, 30, 60], size=4), 0.2
        found = pt.results.evalue_discoveries(values.tolist(), alpha=alpha)
        sizes = [k for k in range(1, 5) if np.sort(values)[-k] >= 4 / (alpha * k)]
        assert len(found) >= max(sizes, default=0)
        assert all(values[i] >= 4 / (alpha * len(found)) for i in found)


def test_false_discoveries_are_rare() -> None:
    rng, shares = np.random.default_rng(1), []
    for _ in range(4000):
        true = rng.choice([0.0, 40.0], p=[39 / 40, 1 / 40], size=6)
        shared = np.where(rng.random() < 0.025, 40.0, 0.0)
        values = np.where(np.arange(6) < 3, true, shared)  # dependent ones, too
        found = pt.results.evalue_discoveries([*values, 100.0, 200.0], alpha=0.2)
        shares.append(sum(i < 6 for i in found) / max(len(found), 1))
    assert np.mean(shares) <= 0.2


@pytest.mark.parametrize(
    "bad", [[-1], [math.nan], ["3"], [None], 7, "123", {0.5, 4.0}, frozenset([2.0]), np.array(3.0)]
)
def test_what_is_no_evalue_is_refused(bad: object) -> None:
    for call in (lambda: pt.results.combine_evalues(bad), lambda: pt.results.evalue_discoveries(bad, alpha=0.05)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="values"):
            call()


def test_nothing_to_combine_and_levels_that_are_none() -> None:
    with pytest.raises(InvalidInput, match="nothing to combine"):
        pt.results.combine_evalues([])
    with pytest.raises(InvalidInput, match="dependent='no' must be True or False"):
        pt.results.combine_evalues([2, 3], dependent="no")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="dependent=<ndarray> must be True or False"):
        pt.results.combine_evalues([2, 3], dependent=np.array([0.5, 1.0]))  # type: ignore[arg-type]
    assert pt.results.combine_evalues(value for value in (2, 3)) == 6
    for alpha in (0, 1, -0.1, math.nan):
        with pytest.raises(InvalidInput, match="alpha"):
            pt.results.evalue_discoveries([3], alpha=alpha)


def steps(points: list[tuple[int, ...]]) -> list[dict[tuple[int, ...], int]]:
    """All integer functions with least value 0 that differ by 1 at most between neighbours: the extreme channels."""
    found: list[dict[tuple[int, ...], int]] = [{}]
    deepest = len(points[0])
    for point in points:
        near = [known for known in points if sum(a != b for a, b in zip(known, point, strict=True)) == 1]
        found = [
            {**one, point: value}
            for one in found
            for value in range(deepest + 1)
            if all(abs(value - one[known]) <= 1 for known in near if known in one)
        ]
    return [one for one in found if min(one.values()) == 0]


def best_power(p: np.ndarray, q: np.ndarray, n: int, epsilon: float) -> float:
    """The largest mean log e-value of any epsilon-DP mechanism on n records, by a linear program over all outputs.

    The divergence is a sum over outputs y of a convex, homogeneous function of the column Pr[y | data], so the best
    mechanism has extreme columns: e^(epsilon f) for the functions f above.
    """
    points = list(itertools.product(range(len(p)), repeat=n))
    masses = [np.array([math.prod(law[list(point)]) for point in points]) for law in (p, q)]
    columns = [np.exp(epsilon * np.array([one[point] for point in points])) for one in steps(points)]
    gains = [float(masses[1] @ c) * math.log(float(masses[1] @ c) / float(masses[0] @ c)) for c in columns]
    found = optimize.linprog(-np.array(gains), A_eq=np.array(columns).T, b_eq=np.ones(len(points)))
    assert found.status == 0
    return float(-found.fun)


def relaxed_power(p: np.ndarray, q: np.ndarray, n: int, epsilon: float) -> float:
    """The convex program: max E_Q log h with E_P h <= 1 and h within e^epsilon of its neighbours."""
    points = list(itertools.product(range(len(p)), repeat=n))
    masses = [np.array([math.prod(law[list(point)]) for point in points]) for law in (p, q)]
    near = [
        (i, j)
        for i, a in enumerate(points)
        for j, b in enumerate(points)
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]

    def value(f: np.ndarray) -> float:
        top = float(f.max())
        return -(float(masses[1] @ f) - top - math.log(float(masses[0] @ np.exp(f - top))))

    limits = [{"type": "ineq", "fun": lambda f: np.array([epsilon - f[i] + f[j] for i, j in near])}]
    found = optimize.minimize(value, np.zeros(len(points)), constraints=limits, method="SLSQP", options={"ftol": 1e-12})
    return float(-found.fun)


TINY = [
    ([0.3, 0.7], [0.7, 0.3], 1),
    ([0.3, 0.7], [0.7, 0.3], 2),
    ([0.5, 0.5], [0.9, 0.1], 3),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 1),
    ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1], 2),
]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize(("p", "q", "n"), TINY)
def test_no_private_evalue_grows_faster(p: list[float], q: list[float], n: int, epsilon: float) -> None:
    bound = n * growth_bound(make_pair(p, q), epsilon)
    best = best_power(np.array(p), np.array(q), n, epsilon)
    assert 0 < best <= bound * (1 + 1e-9)
    relaxed = relaxed_power(np.array(p), np.array(q), n, epsilon)
    assert best <= relaxed + 1e-7
    assert relaxed == pytest.approx(bound, rel=1e-4)  # the bound is the convex program's value, record by record


def test_without_privacy_it_is_the_divergence() -> None:
    assert growth_bound(make_pair([0.3, 0.7], [0.7, 0.3]), 20.0) == pytest.approx(0.4 * math.log(7 / 3))


def test_a_bound_for_a_smaller_epsilon_is_exceeded() -> None:
    p, q = np.array([0.3, 0.7]), np.array([0.7, 0.3])
    assert best_power(p, q, 1, 3.0) > growth_bound(make_pair(p, q), 0.3)
