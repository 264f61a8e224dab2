"""Computations are shared, bounded in time, and dropped when nobody waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from privatest import errors
from privatest.studio import worker
from privatest.studio.lanes import Lane

ASK: dict[str, Any] = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1.0}
LONG: dict[str, Any] = {"null": "cauchy(0, 1)", "alternative": "cauchy(0.5, 1)", "epsilon": 0.1}


@pytest.fixture
def lane() -> Iterator[Lane]:
    made = Lane(seconds=60, stoppable=True)
    yield made
    made.close()


def test_equal_questions_are_computed_once_and_remembered(lane: Lane) -> None:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(lane.answer("size", ASK) for _ in range(5)))

    found = asyncio.run(ask())
    assert all(each is found[0] for each in found)
    assert asyncio.run(lane.answer("size", dict(reversed(ASK.items())))) is found[0]
    assert found[0]["n"] == 29


def test_a_refusal_comes_back_as_the_error_it_was(lane: Lane) -> None:
    with pytest.raises(errors.NothingToTest, match="same distribution"):
        asyncio.run(lane.answer("look", {**ASK, "alternative": "bernoulli(0.4)"}))


def test_a_computation_does_not_outlive_its_limit() -> None:
    lane = Lane(seconds=0.05)
    with pytest.raises(errors.Infeasible, match=r"more than 0\.05 seconds"):
        asyncio.run(lane.answer("compare", LONG))
    lane._seconds = 60
    assert asyncio.run(lane.answer("size", ASK))["n"] == 29  # a new worker
    lane.close()


def test_what_nobody_waits_for_is_stopped_and_what_waits_is_dropped(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privatest.studio.lanes.GRACE", 0.1)
    asyncio.run(lane.answer("look", ASK))  # the worker is there

    async def leave(job: str, arguments: dict[str, Any], after: float) -> None:
        start = time.monotonic()

        async def gone() -> bool:
            return time.monotonic() - start > after

        with pytest.raises(errors.Infeasible, match="Nobody waits"):
            await lane.answer(job, arguments, gone)

    async def crowd() -> Any:
        first = asyncio.create_task(leave("compare", LONG, 0.2))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(leave("compare", {**LONG, "epsilon": 0.2}, 0.2))
        await asyncio.sleep(0.05)
        answer = await lane.answer("size", ASK)
        await asyncio.gather(first, second)
        return answer

    first = lane._worker._process
    assert asyncio.run(crowd())["n"] == 29  # and not after the minutes that the others would have taken
    assert lane._worker._process is not first
    assert not lane._asked


def test_a_worker_that_died_is_replaced(lane: Lane) -> None:
    asyncio.run(lane.answer("look", ASK))
    lane._worker.kill()
    assert asyncio.run(lane.answer("size", ASK))["n"] == 29


def test_whatever_a_job_raises_becomes_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: Any) -> dict[str, Any]:
        raise MemoryError

    monkeypatch.setitem(worker.JOBS, "look", broken)
    assert worker.answer('{"job": "look", "arguments": {}}')["kind"] == "Infeasible"
    assert "MemoryError" in worker.answer('{"job": "look", "arguments": {}}')["error"]
    assert "error" in worker.answer("not json")
