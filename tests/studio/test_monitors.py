"""Monitors: charged once, fed or following, alarms and noisy sums only."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from typing import Any

import pytest

from privatest.studio.job_queues import Lane

ASK: dict[str, Any] = {"null": "bernoulli(0.2)", "alternative": "bernoulli(0.8)", "epsilon": 1.0, "dataset": "claims"}


def lines(studio: Any) -> list[str]:
    return (studio.folder / "stream.txt").read_text().splitlines()


def test_records_sent_to_a_monitor_raise_the_alarm(fresh: Any) -> None:
    asked = {**ASK, "request": "m", "mean_time_between_false_alarms": 1e9}  # for no false alarm
    started = fresh.post("/api/monitors", **asked).json()
    assert (started["seen"], started["alarms"], started["trace"], started["following"]) == (0, [], [], False)
    name, sent = started["monitor"], lines(fresh)
    quiet = fresh.post(f"/api/monitors/{name}/records", lines=sent[:200]).json()
    assert quiet["trace"]
    assert not quiet["drift_detected"]
    loud = fresh.post(f"/api/monitors/{name}/records", lines=sent[200:]).json()
    (alarm,) = loud["alarms"]
    assert loud["drift_detected"]
    assert abs(alarm["index"] - 300) <= 100
    again = fresh.post(f"/api/monitors/{name}/records", lines=sent).json()
    assert (again["alarms"], again["seen"]) == (loud["alarms"], loud["seen"])
    assert fresh.ledger.spent("claims") == 1


def test_records_sent_to_a_sequential_test_bring_the_verdict(fresh: Any) -> None:
    """The walk of the log e-value, the promises, one verdict; then nothing more, and one charge."""
    asked = {**ASK, "epsilon": 0.9, "request": "s", "alpha": 1e-7, "beta": 1e-7}  # for no wrong verdict
    started = fresh.post("/api/sequentials", **asked).json()
    assert (started["seen"], started["alarms"], started["walk"]) == (0, [], [])
    assert started["settings"]["fixed_n"] > started["settings"]["expected_n"][0]
    name = started["monitor"]
    assert name == "sequential-1"
    decided = fresh.post(f"/api/sequentials/{name}/records", lines=["1"] * 300).json()
    (verdict,) = decided["alarms"]
    assert (verdict["decision"], decided["drift_detected"]) == ("alternative", True)
    assert decided["seen"] == verdict["seen"] < 300
    assert decided["walk"][-1] >= decided["settings"]["boundaries"][1]
    again = fresh.post(f"/api/sequentials/{name}/records", lines=["1"]).json()
    assert again["seen"] == decided["seen"]
    assert fresh.client.get("/api/sequentials").json()["sequentials"] == [again]
    assert fresh.client.get("/api/monitors").json()["monitors"] == []
    assert fresh.ledger.spent("claims") == Fraction(9, 10)
    refused = fresh.post("/api/sequentials", **{**asked, "request": "t", "most": 1})
    assert refused.status_code in (400, 422)
    assert fresh.ledger.spent("claims") == Fraction(9, 10)


def test_a_followed_file_is_read_as_it_grows(fresh: Any) -> None:
    sent = lines(fresh)
    grows = fresh.folder / "grows.txt"
    grows.write_text("\n".join(sent[:250]) + "\n1")  # the last line is not complete
    asked = {**ASK, "path": "grows.txt", "request": "m", "mean_time_between_false_alarms": 1e9}  # for no false alarm
    name = fresh.post("/api/monitors", **asked).json()["monitor"]
    quiet = wait(fresh, name, lambda state: state["seen"] >= 200)
    assert quiet["following"]
    assert not quiet["drift_detected"]
    assert quiet["seen"] <= 250
    with open(grows, "a") as file:
        file.write("\n" + "\n".join(sent[251:]) + "\n")
    loud = wait(fresh, name, lambda state: state["drift_detected"])
    assert abs(loud["alarms"][0]["index"] - 300) <= 100
    assert fresh.post(f"/api/monitors/{name}/records", lines=["1"]).status_code == 422
    assert fresh.post(f"/api/monitors/{name}/stop").json()["stopped"]


@pytest.mark.parametrize("way", ["replaced", "cut short"])
def test_a_file_that_is_no_longer_the_same_is_not_followed_blindly(fresh: Any, way: str) -> None:
    sent = lines(fresh)
    grows = fresh.folder / "grows.txt"
    grows.write_text("\n".join(sent[:250]) + "\n")
    asked = {**ASK, "path": "grows.txt", "request": "m", "mean_time_between_false_alarms": 1e9}
    name = fresh.post("/api/monitors", **asked).json()["monitor"]
    wait(fresh, name, lambda state: state["seen"] == 250)
    if way == "replaced":
        grows.rename(fresh.folder / "grows.txt.1")
    else:
        grows.write_text("")
    grows.write_text("1\n" * 200)  # still shorter than it was, however late it is looked at
    still = wait(fresh, name, lambda state: state["stopped"])
    assert (still["seen"], still["following"], still["alarms"]) == (250, False, [])
    assert still["problem"].startswith("The file 'grows.txt' was replaced or cut short, after 250 records.")
    assert str(fresh.folder) not in still["problem"]


def wait(studio: Any, name: str, done: Any) -> Any:
    end = time.monotonic() + 300  # only where something hangs
    while time.monotonic() < end:
        state = studio.client.get(f"/api/monitors/{name}").json()
        if done(state):
            return state
        time.sleep(0.05)
    raise AssertionError(state)


def test_started_twice_it_is_one_monitor_and_one_charge(fresh: Any) -> None:
    one, other = (fresh.post("/api/monitors", **ASK, request="m").json() for _ in range(2))
    assert one == other
    assert fresh.ledger.spent("claims") == 1
    conflict = fresh.post("/api/monitors", **{**ASK, "epsilon": 0.5}, request="m")
    assert conflict.status_code == 409
    assert len(fresh.client.get("/api/monitors").json()["monitors"]) == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"dataset": "poor"}, 409),
        ({"dataset": "nobody"}, 422),
        ({"path": "nothing.txt"}, 422),
        ({"alternative": "bernoulli(0.2)"}, 422),
        ({"mean_time_between_false_alarms": 0.5}, 422),
        ({"beta": 1}, 422),
    ],
)
def test_a_refused_monitor_charges_nothing(fresh: Any, change: dict[str, Any], status: int) -> None:
    before = fresh.ledger_bytes
    assert fresh.post("/api/monitors", **{**ASK, "request": "m", **change}).status_code == status
    assert fresh.ledger_bytes == before
    assert fresh.client.get("/api/monitors").json() == {"monitors": []}


def test_monitors_that_never_begin_are_stopped_and_others_go_on(
    fresh: Any, hostile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fresh.post("/api/monitors", **ASK, request="m").json()["monitor"]
    with monkeypatch.context() as patched:
        patched.setattr("privatest.studio.monitors.Lane", lambda **more: hostile(Lane(**{**more, "seconds": 1})))
        answers: list[Any] = []

        def start(request: str) -> None:
            answers.append(fresh.post("/api/monitors", **ASK, request=request))

        threads = [threading.Thread(target=start, args=[f"endless-{i}"]) for i in range(2)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert fresh.client.get("/").status_code == 200
            assert len(fresh.client.get("/api/monitors").json()["monitors"]) == 1
    assert [answer.status_code for answer in answers] == [422] * 2
    assert fresh.ledger.spent("claims") == 1
    assert fresh.post(f"/api/monitors/{first}/records", lines=lines(fresh)).json()["drift_detected"]


def test_a_monitor_that_is_over_holds_no_process_and_one_that_died_says_so(fresh: Any) -> None:
    names = [fresh.post("/api/monitors", **{**ASK, "request": f"m{i}"}).json()["monitor"] for i in range(3)]

    def processes() -> list[Any]:
        return [each.lane._workers[0].process for each in fresh.app.state.monitors._all.values()]

    assert None not in processes()
    assert fresh.post(f"/api/monitors/{names[0]}/stop").json()["stopped"]
    assert fresh.post(f"/api/monitors/{names[1]}/records", lines=lines(fresh)).json()["drift_detected"]
    *over, last = processes()
    assert over == [None, None]
    last.kill()
    last.wait()
    lost = fresh.client.get(f"/api/monitors/{names[2]}").json()
    assert lost["stopped"]
    assert "ended" in lost["problem"]
    assert fresh.post(f"/api/monitors/{names[2]}/records", lines=["1"]).status_code == 422
    assert [each["stopped"] for each in fresh.client.get("/api/monitors").json()["monitors"]] == [True, False, True]


@pytest.mark.parametrize("route", ["/api/monitors", "/api/sequentials"])
def test_a_table_is_refused_as_a_file_of_lines_before_the_charge(fresh: Any, route: str) -> None:
    asked = {"null": "bernoulli(0.2)", "alternative": "bernoulli(0.8)", "epsilon": 1, "path": "tosses.csv"}
    answer = fresh.post(route, **asked, dataset="claims", request="lines")
    assert answer.status_code == 422, answer.text
    assert "'tosses.csv' is a CSV file by its name" in answer.json()["error"]
    assert fresh.ledger.spent("claims") == 0
