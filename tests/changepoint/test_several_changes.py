"""Several changes: privacy by enumeration, promises simulated, documents, refusals.

Penalised labels of blocks: the best ones, by brute force; and their probabilities, several ways.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.changepoint.block_sums import SumsDetector
from privatest.changepoint.several_changes import SeveralDetector, Switches
from privatest.engines import open_source
from privatest.engines.records import totals_of_blocks
from privatest.errors import Infeasible, InvalidData, InvalidInput
from privatest.privacy import Pure, canonical_noise

# Three outcomes: speaks for Q, says nothing, speaks for P.
STEPS = np.array([3, 0, -2], dtype=np.int64)
OLD, NEW = np.array([0.1, 0.3, 0.6]), np.array([0.7, 0.2, 0.1])


def score(labels: tuple[int, ...], votes: list[int], penalty: int) -> tuple[int, int]:
    changes = sum(a != b for a, b in itertools.pairwise((0, *labels)))
    return sum(v for v, label in zip(votes, labels, strict=True) if label) - penalty * changes, -changes


@pytest.mark.parametrize("penalty", [0, 1, 2, 3, 5])
def test_the_labels_are_the_best_ones_with_the_fewest_changes(penalty: int) -> None:
    made = Switches(STEPS, OLD, NEW, penalty)
    for outcomes in itertools.product(range(3), repeat=6):
        votes = STEPS[list(outcomes)].tolist()
        best = max(score(labels, votes, penalty) for labels in itertools.product((0, 1), repeat=6))
        found = tuple(made.labels(np.array(outcomes)).tolist())
        assert score(found, votes, penalty)[0] == best[0]
        if penalty:
            assert any(found) == (best[1] < 0)  # no change where one gains nothing


@pytest.mark.parametrize("penalty", [1, 2, 4])
def test_the_false_alarm_is_the_sum_over_all_outcomes(penalty: int) -> None:
    made = Switches(STEPS, OLD, NEW, penalty)
    for blocks in (1, 2, 6):
        total = sum(
            float(np.prod(OLD[list(outcomes)]))
            for outcomes in itertools.product(range(3), repeat=blocks)
            if made.labels(np.array(outcomes)).any()
        )
        assert made.false_alarm(blocks) == pytest.approx(total, abs=1e-8)


def chance_of_any_change(made: Switches, blocks: int) -> float:
    """How likely some labels with a Q among them are better than P alone, over the laws of so many old blocks."""
    law = {(-np.inf, -np.inf): 1.0}  # of the best labels that end in P after a Q, and of those that end in Q
    votes = {vote: float(made.old[made.steps == vote].sum()) for vote in set(made.steps.tolist())}
    for _ in range(blocks):
        after: dict[tuple[float, float], float] = {}
        for ((in_p, in_q), chance), (vote, share) in itertools.product(law.items(), votes.items()):
            best = max(in_p, in_q - made.penalty), max(in_q, in_p - made.penalty, -made.penalty) + vote
            after[best] = after.get(best, 0.0) + chance * share
        law = after
    return sum(chance for best, chance in law.items() if max(best) > 0)


@pytest.mark.parametrize("n", [26, 30, 40])
def test_a_plan_says_how_likely_a_false_alarm_of_all_its_blocks_is(n: int) -> None:
    made = pt.design_change("bernoulli(0.1)", "bernoulli(0.9)", epsilon=2, n=n, changes="several")
    switches, blocks = several(made).switches, n // made.block
    assert made.false_alarm == pytest.approx(chance_of_any_change(switches, blocks), abs=1e-7)
    assert made.false_alarm <= 0.05 < chance_of_any_change(replace(switches, penalty=switches.penalty - 1), blocks)


def test_a_change_is_missed_no_more_often_than_said() -> None:
    """Exhaustively: so many old blocks, then as many new ones, whatever lies beyond."""
    made, blocks = Switches(STEPS, OLD, NEW, 1), 3
    for before, after in itertools.product(((), (0, 0), (2, 2)), repeat=2):
        missed = 0.0
        for outcomes in itertools.product(range(3), repeat=2 * blocks):
            labels = made.labels(np.array([*before, *outcomes, *after]))[len(before) : len(before) + 2 * blocks]
            if not any(a == 0 and b == 1 for a, b in itertools.pairwise(labels.tolist())):
                law = [*OLD[list(outcomes[:blocks])], *NEW[list(outcomes[blocks:])]]
                missed += float(np.prod(law))
        assert missed <= made.missed(blocks)
    assert made.missed(blocks) < 0.9  # the bound says something


P, Q = "bernoulli(0.2)", "bernoulli(0.8)"
N = 600


@cache
def plan(epsilon: float = 1.0, n: int = N, rows: int = 1) -> Any:
    return pt.design_change(P, Q, epsilon=epsilon, n=n, max_rows_per_unit=rows, changes="several")


def series(changes: tuple[int, ...], rng: np.random.Generator, n: int = N) -> np.ndarray:
    regime = np.zeros(n, dtype=np.int64)
    for k in changes:
        regime[k:] ^= 1
    return (rng.random(n) < np.where(regime, 0.8, 0.2)).astype(np.int64)


def RNG(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def several(made: pt.results.ChangePlan) -> SeveralDetector:
    assert isinstance(made.detector, SeveralDetector)
    return made.detector


def loss(blocks: SumsDetector, block: int) -> Fraction:
    """The exact loss of all noisy sums together, over all binary series of six records and their neighbours."""
    small = replace(blocks, block=block)
    noise = small.noise
    totals = {
        data: totals_of_blocks(open_source(np.array(data)), small.score, block, small.start(6))
        for data in itertools.product((0, 1), repeat=6)
    }
    worst = Fraction(0)
    for data, sums in totals.items():
        for i in range(6):
            other = totals[(*data[:i], 1 - data[i], *data[i + 1 :])]
            shifts = [a - b for a, b in zip(sums, other, strict=True)]
            worst = max(worst, sum((noise.exact_loss(shift) for shift in shifts), Fraction(0)))
    return worst


@pytest.mark.parametrize("block", [1, 2, 4])
@pytest.mark.parametrize(("epsilon", "rows"), [(1.0, 1), (2.0, 2)])
def test_all_noisy_sums_together_are_private(epsilon: float, rows: int, block: int) -> None:
    made = plan(epsilon, N, rows)
    assert made.price == Fraction(epsilon)
    sums = several(made)
    assert loss(sums, block) * rows == made.price  # a person has so many rows
    half_the_noise = replace(sums, noise=canonical_noise(Pure(2 * Fraction(epsilon) / rows), sums.score.width))
    assert loss(half_the_noise, block) * rows > made.price


@pytest.mark.parametrize("changes", [(), (300,), (200, 400), (150, 300, 450)])
def test_promises_are_kept(changes: tuple[int, ...]) -> None:
    made, rng = plan(), np.random.default_rng(20)
    runs, near, quiet = 150, 0, 0
    for _ in range(runs):
        found = made.run(series(changes, rng), rng=rng)
        quiet += not found.changed
        assert list(found.indices) == sorted(set(found.indices))
        assert len(found.states) == len(found.indices) + 1
        assert all(a != b for a, b in itertools.pairwise(found.states))
        for place, k in enumerate(changes):
            state = ("alternative", "null")[place % 2]
            near += any(
                abs(index - k) <= made.accuracy
                for index, then in zip(found.indices, found.states[1:], strict=True)
                if then == state
            )
    if changes:
        share, goal = near / (runs * len(changes)), 1 - made.beta
        assert share >= goal - 4 * np.sqrt(goal * (1 - goal) / runs)
    else:
        assert quiet / runs >= 1 - made.false_alarm - 4 * np.sqrt(made.false_alarm / runs)


@pytest.mark.parametrize("n", [600, 1200])
def test_the_spacing_leaves_whole_blocks_enough_on_either_side(n: int) -> None:
    """Between two changes, wherever blocks begin, the whole blocks of one regime are enough for the accuracy.

    A stretch of so many records has at most a block less one at each end that is not whole, and at the ends of the
    series up to half a block lies in none.
    """
    made = plan(1.0, n)
    reach = several(made).switches.reach(made.beta)
    assert reach is not None
    for offset in range(made.block):
        whole = (made.spacing + offset) // made.block - -(-offset // made.block)
        assert whole >= reach + 1
    assert made.accuracy == reach * made.block + made.block // 2
    assert made.spacing == (reach + 2) * made.block


def test_a_series_of_the_alternative_alone_has_no_index_and_says_so() -> None:
    found = plan().run(1 - series((), RNG(3)), rng=RNG(4))
    assert found.changed
    assert found.indices == ()
    assert found.states == ("alternative",)
    assert "from the start" in found.sentence


def test_order_and_units_and_their_values() -> None:
    rng = RNG(6)
    frame = pd.DataFrame({"x": series((200, 400), rng), "when": np.arange(1000, 1000 + N), "who": np.arange(N) // 2})
    shuffled = frame.sample(frac=1, random_state=1)
    asked: dict[str, Any] = {"column": "x", "order": "when", "public_order": True}
    found = plan().run(shuffled, **asked, rng=RNG(8))
    again = plan().run(frame["x"].to_numpy(), rng=RNG(8))
    assert found.indices == again.indices
    assert found.order_values == tuple(1000 + index for index in found.indices)
    both = pt.detect_change(
        frame, P, Q, epsilon=2, column="x", unit="who", max_rows_per_unit=2, order="when", rng=RNG(9), changes="several"
    )
    assert both.epsilon == 2


def test_bad_input_is_refused() -> None:
    with pytest.raises(Infeasible, match="Use more records"):
        pt.design_change(P, Q, epsilon=1, n=20, changes="several")
    with pytest.raises(InvalidData, match="no records"):
        pt.detect_change([], P, Q, epsilon=1, changes="several")
    with pytest.raises(InvalidData, match="Plan with n=10"):
        plan().run([0] * 10)
    with pytest.raises(InvalidInput, match="false_alarm"):
        pt.design_change(P, Q, epsilon=1, n=N, false_alarm=0, changes="several")
    with pytest.raises(InvalidInput, match="needs a unit"):
        pt.detect_change([0] * N, P, Q, epsilon=1, max_rows_per_unit=2, changes="several")
    tied = pd.DataFrame({"x": [0] * N, "when": [0] * N})
    with pytest.raises(InvalidData, match="does not order"):
        plan().run(tied, column="x", order="when")


def test_records_that_come_from_neither_are_said_to() -> None:
    """A Q too far, a column of one value: the answer says that its promise does not hold."""
    laws = "normal(0, 1)", "normal(2, 1)"
    plan = pt.design_change(*laws, epsilon=1, n=2100, changes="several")
    rng = np.random.default_rng(3)

    def series(shift: float) -> Any:
        return np.concatenate([rng.normal(mean, 1, 700) for mean in (0, shift, 0)])

    runs = 40
    right = [plan.run(series(2), rng=rng) for _ in range(runs)]
    assert sum(found.fits is True for found in right) >= runs - 2  # each side is doubted with probability 0.001
    assert not any("does not hold" in found.sentence for found in right if found.fits)
    wrong = [plan.run(series(1.5), rng=rng) for _ in range(runs)]
    assert sum(found.fits is False for found in wrong) >= runs - 4
    assert all(("promise does not hold for these records" in one.sentence) == (one.fits is False) for one in wrong)
    constant = plan.run(np.full(2100, 0.5), rng=rng)
    assert (constant.changed, constant.fits, constant.misfits) == (False, False, ("null",))
    assert type(constant).from_dict(constant.to_dict()).misfits == ("null",)
    # Of sets, members on either side are members; what lies beyond the set is not.
    boxes = pt.design_change(
        "normal(mean in [-0.3, 0], sd=1)", "normal(mean in [2, 2.3], sd=1)", epsilon=1, n=2100, changes="several"
    )
    for low, high, fits in ((0, 2, True), (-0.3, 2.3, True), (-0.8, 2.8, False), (0.5, 1.5, False)):
        values = np.concatenate([rng.normal(mean, 1, 700) for mean in (low, high, low)])
        assert boxes.run(values, rng=rng).fits is fits, (low, high)
