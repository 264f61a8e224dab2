"""pt.Sequential: batches, verdicts, bad input, e-values at any time, state files and ledgers.

Sizes and boundaries: as few records as promised, errors as asked, sets, hard stops.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privatest.errors import InvalidInput, PrivatestError
from privatest.streams import Sequential
from privatest.streams.sequential_plan import Boundaries
from tests.changepoint import kills
from tests.sequential.plans import P, Q, coin, small_plan

ONES, ZEROS = [1] * 200, [0] * 200


def fresh(seed: int = 0, **words: Any) -> Sequential:
    return Sequential.of(coin(**words), rng=np.random.default_rng(seed))


def test_it_decides() -> None:
    for records, decision in ((ONES, "alternative"), (ZEROS, "null")):
        run = fresh()
        verdict = run.update(records)
        assert verdict is not None
        assert verdict == run.verdict
        assert verdict.decision == decision
        assert run.decided
        assert verdict.seen == run.seen < 60
        assert (run.evalue > 1) == (decision == "alternative")
        assert verdict.evalue == run.evalue
        assert run.walk[-1] == pytest.approx(math.log(run.evalue))
        assert len(run.walk) == len(run.trace)


def test_after_the_verdict_nothing_is_consumed() -> None:
    run = fresh()
    run.update(ONES)
    before = run.to_dict()
    for call in (lambda: run.update(1), lambda: run.update(ONES), lambda: run.update_many(ONES)):
        with pytest.raises(InvalidInput, match="was decided for the alternative Q"):
            call()
    assert run.to_dict() == before


@pytest.mark.parametrize("seed", range(6))
def test_how_a_stream_is_cut_makes_no_difference(seed: int) -> None:
    stream = (np.random.default_rng(seed + 50).random(300) < 0.5).astype(int)
    answers = []
    for cut in (1, 2, 7, 12, 20, 300):
        run = fresh(seed)
        if cut == 1:
            for record in stream.tolist():
                if run.update(record) is not None:
                    break
        else:
            for first in range(0, 300, cut):
                if run.update(stream[first : first + cut]) is not None:
                    break
        answers.append((run.verdict, run.walk, run.trace, run.pvalue))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.statistical
def test_the_evalue_seldom_exceeds_one_over_alpha() -> None:
    """3,000 streams from P, looked at after every block for 30 blocks: a rule that waits for 20 errs in 5% at most."""
    plan = small_plan(Fraction(1), (6, 3), Boundaries(-(10**6), 10**6))
    rng, runs, above, largest = np.random.default_rng(4), 3000, 0, []
    for _ in range(runs):
        run = Sequential.of(plan, rng=rng)
        run.update((rng.random(6 + 29 * 3) < 0.2).astype(int))
        above += run.pvalue <= 0.05
        largest.append(run.evalue)
    assert above / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert np.mean(largest) < 1.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"alpha": 0.6, "beta": 0.4}, "must add up to less than 1"),
        ({"alpha": 0}, "alpha=0"),
        ({"alpha": 1e-12}, "alpha=1e-12 is smaller than 1e-07"),
        ({"beta": 9e-8}, "beta=9e-08 is smaller than 1e-07"),
        ({"schedule": (10**9, 1)}, "blocks of more than 10000000 records"),
        ({"most": 5}, "most=5 records do not suffice"),
        ({"beta": 1.5}, "beta=1.5"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"most": 0}, "most=0"),
        ({"most": 5, "schedule": (12, 8)}, "most=5 is smaller than the first block of 12"),
        ({"schedule": (12,)}, "schedule="),
        ({"schedule": (0, 3)}, "schedule=0"),
        ({"aim": "both"}, "aim='both'"),
        ({"dataset": "x"}, "without ledger="),
        ({"null": P, "alternative": P}, "same"),
    ],
)
def test_bad_input_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(PrivatestError, match=message):
        Sequential(**{"null": P, "alternative": Q, "epsilon": 1, **words})


def test_bad_batches_consume_nothing() -> None:
    run = fresh()
    frame = pd.DataFrame({"x": [0, 1] * 20, "day": [1] * 40})
    with pytest.raises(InvalidInput, match="day"):  # who comes first is not said: one person could move others
        run.update_many(frame, column="x", order="day")
    with pytest.raises(PrivatestError, match="y"):
        run.update_many(frame, column="y")
    with pytest.raises(InvalidInput, match="plain JSON"):
        run.update_many([1], place=object())
    assert run.seen == 0
    frame["day"] = range(40)
    run.update_many(frame, column="x", order="day")
    assert run.seen > 0


def test_kills_lose_nothing_of_a_sequential_test() -> None:
    found = kills.run(8, seed=3, sequential=True)
    assert found.problems == []
    assert found.kills >= 8


def test_a_sequential_state_that_is_written_too_late_is_caught() -> None:
    assert kills.run(kills.NEVER, seed=5, broken=True, sequential=True).problems
