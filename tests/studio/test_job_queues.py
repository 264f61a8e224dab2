"""Computations are shared, bounded in time, and dropped when nobody waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from privatest import errors
from privatest.studio import worker
from privatest.studio.job_queues import Busy, Lane

ASK: dict[str, Any] = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1.0}
LONG: dict[str, Any] = {"null": "cauchy(0, 1)", "alternative": "cauchy(0.5, 1)", "epsilon": 0.1}


@pytest.fixture
def lane() -> Iterator[Lane]:
    made = Lane(seconds=600, stoppable=True)
    yield made
    made.close()


def test_equal_questions_are_computed_once_and_remembered(lane: Lane) -> None:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(lane.answer("size", ASK) for _ in range(5)))

    found = asyncio.run(ask())
    assert all(each is found[0] for each in found)
    assert asyncio.run(lane.answer("size", dict(reversed(ASK.items())))) is found[0]
    assert found[0]["n"] == 29


def test_a_computation_does_not_outlive_its_limit() -> None:
    lane = Lane(seconds=0.05)
    with pytest.raises(errors.Infeasible, match=r"more than 0\.05 seconds"):
        asyncio.run(lane.answer("compare", LONG))
    lane._seconds = 600
    assert asyncio.run(lane.answer("size", ASK))["n"] == 29  # a new worker
    lane.close()


def test_what_nobody_waits_for_is_stopped_and_what_waits_is_dropped(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privatest.studio.job_queues.GRACE", 0.1)
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

    first = process_of(lane)
    assert asyncio.run(crowd())["n"] == 29  # and not after the minutes that the others would have taken
    assert process_of(lane) is not first
    assert first.poll() is not None
    assert not lane._pending


def process_of(lane: Lane) -> Any:
    """The process of the only worker."""
    (worker,) = lane._workers
    return worker.process


def test_a_worker_that_died_is_replaced(lane: Lane) -> None:
    asyncio.run(lane.answer("look", ASK))
    process_of(lane).kill()
    process_of(lane) and process_of(lane).wait()
    assert asyncio.run(lane.answer("size", ASK))["n"] == 29


def test_whatever_a_job_raises_becomes_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: Any) -> dict[str, Any]:
        raise MemoryError

    monkeypatch.setitem(worker.JOBS, "look", broken)
    assert worker.answer('{"job": "look", "arguments": {}}')["kind"] == "Infeasible"
    assert "MemoryError" in worker.answer('{"job": "look", "arguments": {}}')["error"]
    assert "error" in worker.answer("not json")


def test_whatever_is_computed_ends_at_the_limits_of_time_and_memory(hostile: Any) -> None:
    lane = hostile(seconds=1, remedy="Ask for less.")
    with pytest.raises(errors.Infeasible, match=r"more than 1 seconds or too much memory\. Ask for less\."):
        asyncio.run(lane.answer("spin", {}))
    with pytest.raises(errors.Infeasible, match="MemoryError"):
        asyncio.run(hostile().answer("eat", {}))
    assert asyncio.run(hostile(memory=2**31).answer("eat", {})) == {"bytes": 600 * 2**20}


def test_of_what_is_not_kept_no_process_is_left(hostile: Any) -> None:
    lane = hostile(reuses=False, remembers=False, workers=2)
    assert asyncio.run(lane.answer("echo", {"a": 1})) == {"a": 1}
    assert all(worker.process is None for worker in lane._workers)
    assert all(not worker._held for worker in lane._workers)


def test_no_more_questions_wait_than_are_answered_in_a_while(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privatest.studio.job_queues.MOST_WAITING", 3)
    lane = hostile(stoppable=True)

    async def ask() -> None:
        waiting = [asyncio.create_task(lane.answer("spin", {"n": i})) for i in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(Busy, match="3 questions"):
            await lane.answer("echo", {})
        lane.close()
        for each in waiting:
            with pytest.raises(errors.Infeasible):
                await each
        with pytest.raises(errors.Infeasible, match="closing"):
            await lane.answer("echo", {})

    asyncio.run(ask())
    assert all(worker.process is None for worker in lane._workers)


def test_a_worker_ends_with_the_one_who_asked(hostile: Any) -> None:
    """Killed without a word, the server leaves no process that computes on."""
    lane = hostile()
    (worker,) = lane._workers
    process = worker._started()
    assert process.stdin is not None
    process.stdin.write('{"job": "spin", "arguments": {}, "seconds": 600}\n')
    process.stdin.close()  # as the system does when its owner dies
    assert process.wait(300) == 0


def test_how_far_it_has_come_is_told_and_is_never_the_answer(hostile: Any) -> None:
    lane = hostile()
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(lambda: asyncio.run(lane.answer("tells", {})))
        end = time.monotonic() + 300
        while not any(each["headway"] for each in lane.working()):
            assert time.monotonic() < end
            time.sleep(0.02)
        [told] = lane.working()
        assert (told["job"], told["headway"]) == ("tells", "parts: 1 of 2")
        assert (told["found"], told["asked"]) == ([{"test": "first", "n": 2}], {"of": "what"})
        lane._workers[0].kill()
        with pytest.raises(errors.Infeasible, match="stopped"):
            asked.result(300)
    assert lane.working() == []
    assert asyncio.run(lane.answer("echo", {"said": 1})) == {"said": 1}
