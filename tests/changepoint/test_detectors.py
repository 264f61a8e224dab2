"""An unknown alternative: blocks with the goodness-of-fit test."""

from __future__ import annotations

import numpy as np
import pytest

from privatest.changepoint import design_change, detect_change
from privatest.errors import Infeasible, InvalidInput

NULL = [0.25] * 4


@pytest.mark.statistical
def test_any_far_enough_alternative_is_located() -> None:
    plan = design_change(NULL, distance=0.3, epsilon=1, assume_change=True)
    assert plan.method == "fit"
    n, runs = 8 * plan.accuracy, 150
    rng = np.random.default_rng(1)
    for new in ([0.5, 0.5, 0, 0], [0.4, 0.4, 0.1, 0.1], [0.55, 0.15, 0.15, 0.15]):
        outside = 0
        for _ in range(runs):
            change = int(rng.integers(plan.accuracy, n - plan.accuracy))
            data = np.concatenate([rng.choice(4, size=change), rng.choice(4, p=new, size=n - change)])
            found = plan.run(data, rng=rng)
            assert found.index is not None
            outside += abs(found.index - change) > plan.accuracy
        assert outside / runs <= plan.beta + 6 * np.sqrt(plan.beta * (1 - plan.beta) / runs)


def test_no_change_is_an_answer_here_too() -> None:
    rng = np.random.default_rng(2)
    plan = design_change(NULL, distance=0.3, epsilon=1, false_alarm=0.02)
    n = 4 * plan.accuracy
    alarms = [plan.run(rng.choice(4, size=n), rng=rng).changed for _ in range(60)]
    assert sum(alarms) <= 8  # binomial(60, 0.02) exceeds 8 with probability under 1e-5
    changed = plan.run(np.concatenate([rng.choice(4, size=n // 2), np.zeros(n // 2, dtype=int)]), rng=rng)
    assert changed.changed is True


def test_one_call_and_its_refusals() -> None:
    rng = np.random.default_rng(3)
    data = [*rng.choice(4, size=400).tolist(), *[0, 1] * 200]
    point = detect_change(data, NULL, distance=0.4, epsilon=1, rng=rng)
    assert point.index is not None
    assert abs(point.index - 400) <= point.accuracy
    with pytest.raises(InvalidInput, match=r"distance=1\.5"):
        detect_change(data, NULL, distance=1.5, epsilon=1)
    with pytest.raises((Infeasible, InvalidInput)):
        detect_change(data[:20], NULL, distance=0.3, epsilon=1)
