"""Computations are shared, bounded in time, and dropped when nobody waits."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import privatest as pt
from privatest import errors
from privatest import progress_events as headway
from privatest.studio import lanes, worker
from privatest.studio.lanes import Busy, Lane, _Worker

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


def test_a_refusal_comes_back_as_the_error_it_was(lane: Lane) -> None:
    with pytest.raises(errors.NothingToTest, match="same distribution"):
        asyncio.run(lane.answer("look", {**ASK, "alternative": "bernoulli(0.4)"}))


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

    first = process_of(lane)
    assert asyncio.run(crowd())["n"] == 29  # and not after the minutes that the others would have taken
    assert process_of(lane) is not first
    assert first.poll() is not None
    assert not lane._asked


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


def test_questions_that_are_no_equals_are_each_answered(hostile: Any) -> None:
    """Two equal portions of records are two portions."""
    lane = hostile(remembers=False)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(lane.answer("echo", {"lines": ["1"]}) for _ in range(5)))

    found = asyncio.run(ask())
    assert found == [{"lines": ["1"]}] * 5
    assert len({id(each) for each in found}) == 5
    assert not lane._known


def test_of_what_is_not_kept_no_process_is_left(hostile: Any) -> None:
    lane = hostile(kept=False, remembers=False, workers=2)
    assert asyncio.run(lane.answer("echo", {"a": 1})) == {"a": 1}
    assert all(worker.process is None for worker in lane._workers)
    assert all(not worker._held for worker in lane._workers)


def test_several_workers_compute_at_the_same_time(hostile: Any) -> None:
    lane = hostile(workers=2, remembers=False, stoppable=True)

    async def ask() -> Any:
        endless = asyncio.create_task(lane.answer("spin", {}))
        found = await lane.answer("echo", {"a": 1})
        endless.cancel()
        return found

    assert asyncio.run(ask()) == {"a": 1}


def test_no_more_questions_wait_than_are_answered_in_a_while(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privatest.studio.lanes.MOST_WAITING", 3)
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


def test_answers_are_remembered_within_bounds(hostile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privatest.studio.lanes.MOST_REMEMBERED", 1000)
    lane = hostile()
    for i in range(6):
        asyncio.run(lane.answer("echo", {"n": i, "long": "x" * 400}))
    assert len(lane._known) == 2


def test_the_server_and_the_worker_each_keep_the_limit_of_time(hostile: Any) -> None:
    """The server ends a worker that does not end itself, and a worker ends itself when no server does."""

    async def ask() -> None:
        with pytest.raises(errors.Infeasible, match="more than 1 seconds"):
            await asyncio.wait_for(lane.answer("deaf", {}), 300)

    lane = hostile(seconds=1)
    asyncio.run(ask())
    (alone,) = hostile()._workers
    process = alone._started()
    assert process.stdin is not None
    process.stdin.write('{"job": "spin", "arguments": {}, "seconds": 0.1}\n')
    process.stdin.flush()
    assert process.wait(300) == 1


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


def test_a_worker_tells_rows_as_they_come(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that were found since it last told are told next time, however soon they came after one another."""
    now = [0.0]
    monkeypatch.setattr(worker.time, "monotonic", lambda: now[0])
    tell = worker._Teller({"epsilon": 1})
    with pt.progress(tell):
        pt.compare([0.9, 0.1], [0.2, 0.8], epsilon=2)
        assert capsys.readouterr().out == ""
        now[0] = 1.0
        with headway.part("other ways to test", 2) as told:
            told(1)
    told = json.loads(capsys.readouterr().out)
    assert told["asked"] == {"epsilon": 1}
    assert {"tight", "LLR", "sLLR"} <= {row["test"] for row in told["found"]}


def test_a_worker_that_began_early_is_taken_over_and_others_end() -> None:
    with lanes.begun_early(lanes.LOOK, lanes.NEEDED):
        early = dict(lanes._early)
        lane = Lane(seconds=600, nice=lanes.NEEDED)
        try:
            asyncio.run(
                lane.answer("theory", {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilons": [1]})
            )
            assert lane._workers[0].process is early[tuple(lane._workers[0]._command)]
        finally:
            lane.close()
    assert lanes._early == {}
    assert all(process.poll() is not None for process in early.values())


class Ended(_Worker):
    """A worker that is ended just when it has told how far it has come."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "told" and value:
            self.kill()


def test_a_worker_that_is_ended_between_two_lines_has_given_no_answer(hostile: Any) -> None:
    lane = hostile()
    lane._workers[0].__class__ = Ended
    with pytest.raises(errors.Infeasible, match="stopped"):
        asyncio.run(lane.answer("tells", {}))
