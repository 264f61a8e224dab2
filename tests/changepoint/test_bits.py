"""The paper's reduction: the argmin's exact law against enumeration and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.bits import BitDesign, _argmin_law, _ruin


def finite_law(a: float, b: float, mixed: int, left: int, right: int) -> dict[int, float]:
    """Pr[first argmin = t], block 0 mixed, by running the detector on all bits of left old and right new blocks."""
    design, found = BitDesign(1, a, b), dict.fromkeys(range(-left, right + 1), 0.0)
    for votes in itertools.product((1, -1), repeat=left + right):
        old, new = votes[:left], votes[left:]
        p = np.prod([1 - a if z > 0 else a for z in old]) * np.prod([1 - b if z < 0 else b for z in new])
        found[design.locate(np.array([*old, -mixed, *new])) - left] += float(p)
    return found


@pytest.mark.parametrize("mixed", [1, -1])
def test_the_infinite_law_is_the_limit_of_enumerated_ones(mixed: int) -> None:
    """Errors of 5% die out within six blocks a side, to a few parts in a thousand."""
    a, b = 0.05, 0.04
    law = _argmin_law(a, b, mixed, 60)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    enumerated = finite_law(a, b, mixed, 6, 6)
    for t in range(-3, 4):
        assert law[60 + t] == pytest.approx(enumerated[t], abs=2e-3)


@pytest.mark.parametrize(("a", "b"), [(1 / 3, 1 / 3), (0.1, 0.3), (0.3, 0.1)])
def test_simulated_bits_agree_with_the_exact_curve(a: float, b: float) -> None:
    rng = np.random.default_rng(8)
    runs, side = 20_000, 150
    steps = np.ones((runs, 2 * side + 1), dtype=np.int64)
    steps[:, :side] = np.where(rng.random((runs, side)) < a, 1, -1)
    steps[:, side + 1 :] = np.where(rng.random((runs, side)) < b, -1, 1)
    for mixed in (1, -1):
        steps[:, side] = mixed
        found = np.argmax(np.cumsum(steps[:, ::-1], axis=1)[:, ::-1], axis=1) - side
        law = _argmin_law(a, b, mixed, 400)
        for t in range(-5, 6):
            p = law[400 + t]
            assert abs(np.mean(found == t) - p) < 6 * np.sqrt(p * (1 - p) / runs) + 1e-9


@pytest.mark.parametrize("block", [1, 4, 50])
def test_curves_fall_and_their_accuracy_covers_every_place_in_a_block(block: int) -> None:
    design = BitDesign(block, 0.2, 0.25)
    curve = design.failures()
    assert np.all(np.diff(curve.failures) <= 1e-12)
    accuracy = curve.accuracy(0.1)
    assert accuracy is not None
    assert curve.runs == 0
    law = _argmin_law(0.2, 0.25, 1, 300)
    t = np.arange(-300, 301)
    for r in range(block):
        assert law[np.abs(t * block - r) > accuracy].sum() <= 0.1


def test_locate_takes_the_first_argmin() -> None:
    design = BitDesign(10, 0.3, 0.3)
    assert design.locate(np.array([1, 1, -1, -1])) == 20
    assert design.locate(np.array([-1, -1])) == 0
    assert design.locate(np.array([1, 1, 1])) == 20  # t runs from 1 to m: the last block
    assert design.locate(np.array([-1, 1, -1])) == 0  # ties: sums -1, 0, -1


@pytest.mark.parametrize(
    ("design", "reach", "places", "step", "failures", "accuracies"),
    [
        ((1, 0.125, 0.25), 256, 256, 1, [0.9375, 0.005915338, 9.813e-06, 3.8e-08], [3, 5, 14]),
        ((8, 0.2, 0.1), 128, 1024, 1, [1.0, 0.027612429, 0.000184074, 2.285e-06], [16, 39, 88]),
        ((40, 0.2, 0.25), 256, 2048, 5, [1.0, 0.007072848, 9.841e-06, 3.8e-08], [120, 240, 600]),
        ((100, 0.45, 0.45), 2048, 17067, 12, [1.0, 0.181945061, 0.018125503, 0.002779474], [8004, 19260, 49308]),
        ((7, 0.3, 0.05), 512, 3584, 1, [1.0, 0.005447092, 3.229e-06, 4e-09], [28, 76, 188]),
        ((300, 0.1, 0.49), 2048, 16606, 37, [1.0, 0.675961, 0.491395262, 0.394360205], [329707, None, None]),
    ],
)
def test_curves_stay_what_they_were(
    design: tuple[int, float, float],
    reach: int,
    places: int,
    step: int,
    failures: list[float],
    accuracies: list[int | None],
) -> None:
    made = BitDesign(*design)
    curve = made.failures()
    assert made._argmin[0] == reach
    assert curve.distances.tolist() == list(range(0, places * step, step))
    found = curve.failures[[1, places // 16, places // 5, places // 3]]
    np.testing.assert_allclose(found, failures, rtol=1e-6, atol=1e-9)
    assert [curve.accuracy(beta) for beta in (0.3, 0.1, 0.01)] == accuracies
    assert curve.failures.max() <= 1


def test_a_tail_may_hold_almost_a_block() -> None:
    made = BitDesign(10, 0.2, 0.25)
    alarm = made.alarm(0.05, 100)
    distances = np.array([0, 9, 10, 19, 20, 29, 30, 305], dtype=np.int64)
    np.testing.assert_array_equal(made.missed(alarm, distances), alarm.missed(np.array([0, 0, 0, 0, 1, 1, 2, 29])))


@pytest.mark.parametrize(("error", "ruin"), [(0.0, 0.0), (0.2, 0.25), (0.5, 1.0), (0.6, 1.0)])
def test_a_walk_that_rises_falls_below_its_start_with_the_odds_of_a_step_down(error: float, ruin: float) -> None:
    assert _ruin(error) == pytest.approx(ruin, abs=1e-15)
