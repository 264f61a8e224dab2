"""Runs on data: charged once, refused cleanly, and nothing of a record in any answer."""

from __future__ import annotations

import json
import logging
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import errors
from privatest.studio import create_app

from .conftest import ASK

RUN: dict[str, Any] = {**ASK, "source": {"path": "tosses.csv"}, "column": "toss", "dataset": "claims", "request": "r1"}
CHANGE: dict[str, Any] = {
    **RUN,
    "null": "bernoulli(0.2)",
    "alternative": "bernoulli(0.8)",
    "source": {"path": "changed.csv"},
}


def test_a_test_on_a_file_releases_what_the_package_releases(fresh: Any) -> None:
    answer = fresh.post("/api/run/test", **RUN)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    release = found["release"]
    assert release["decision"] == "null"  # 400 records at epsilon 1: wrong with probability 1e-10
    assert (release["n"], release["epsilon"], release["private"], release["simulated"]) == (400, 1.0, True, False)
    assert found["budget"] == {"dataset": "claims", "granted": 3.0, "spent": 1.0, "left": 2.0}
    charge, recorded = fresh.ledger.history("claims")[-2:]
    assert (charge.kind, recorded.kind, charge.request) == ("charge", "release", "r1")
    assert set(release) == set(pt.design("bernoulli(0.4)", "bernoulli(0.6)", epsilon=1, n=400).run([1] * 400).to_dict())


def test_a_change_is_located(fresh: Any) -> None:
    release = fresh.post("/api/run/change", **CHANGE).json()["release"]
    assert abs(release["index"] - 300) <= 60
    assert release["n"] == 600
    assert fresh.ledger.spent("claims") == 1
    asked = {**CHANGE, "request": "r2", "false_alarm": 0.05, "beta": 0.2}
    assert fresh.post("/api/run/change", **asked).json()["release"]["changed"] is True


def test_an_upload_can_be_run_on(fresh: Any) -> None:
    content = (fresh.folder / "tosses.csv").read_bytes()
    word = fresh.client.post("/api/upload", params={"name": "mine.csv"}, content=content).json()["upload"]
    answer = fresh.post("/api/run/test", **{**RUN, "source": {"upload": word}})
    assert answer.json()["release"]["n"] == 400


def test_the_same_request_again_is_free_and_gives_the_same_answer(fresh: Any) -> None:
    found = [fresh.post("/api/run/test", **RUN).json() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert fresh.ledger.spent("claims") == 1


def test_pressed_many_times_at_once_it_is_charged_once(fresh: Any) -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(fresh.post("/api/run/test", **RUN).json())) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(each["release"], sort_keys=True) for each in found}) == 1
    assert fresh.ledger.spent("claims") == 1


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"dataset": "poor"}, 409, "left"),
        ({"dataset": "clams"}, 422, "claims"),
        ({"column": "tos"}, 422, "toss"),
        ({"column": None}, 422, "column"),
        ({"n": 399}, 422, "400"),
        ({"source": {"upload": "upload-99"}}, 422, "upload"),
        ({"source": {"path": "tosses.csv", "upload": "upload-1"}}, 422, "either"),
        ({"source": {}}, 422, "either"),
        ({"request": " padded "}, 422, "request"),
        ({"request": "new\nline"}, 422, "request"),
        ({"dataset": ""}, 422, "dataset"),
        ({"epsilon": 50}, 409, "left"),
        ({"alternative": "bernoulli(0.4)"}, 422, "same"),
        ({"alternative": "normal(0, 1)"}, 422, "discrete"),
    ],
)
def test_a_refused_run_charges_nothing(fresh: Any, change: dict[str, Any], status: int, said: str) -> None:
    before = fresh.ledger_bytes
    answer = fresh.post("/api/run/test", **{**RUN, **change})
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]
    assert str(fresh.folder) not in answer.text
    assert fresh.ledger_bytes == before


def test_a_name_that_stands_for_something_else_is_a_conflict(fresh: Any) -> None:
    fresh.post("/api/run/test", **RUN)
    answer = fresh.post("/api/run/test", **{**RUN, "epsilon": 0.5})
    assert answer.status_code == 409
    assert "charged before" in answer.json()["error"]
    assert fresh.ledger.spent("claims") == 1


def test_without_a_ledger_nothing_is_run(fresh: Any) -> None:
    from fastapi.testclient import TestClient

    app = create_app(folder=fresh.folder)
    client = TestClient(app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {app.state.token}"})
    answer = client.post("/api/run/test", json=RUN)
    assert answer.status_code == 422
    assert "ledger" in answer.json()["error"]


def test_the_ledger_may_be_given_as_a_path_and_must_be_one(fresh: Any, tmp_path: Any) -> None:
    app = create_app(ledger=str(fresh.folder.parent / "ledger.db"))
    assert app.state.token
    (tmp_path / "none.db").write_bytes(b"this is no ledger at all" * 100)
    with pytest.raises(errors.LedgerError):
        create_app(ledger=tmp_path / "none.db")


def test_no_record_and_no_raw_total_is_in_any_answer_or_log(fresh: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A planted value (and all that is computed from it exactly) shows up nowhere."""
    planted = "7.654321987"
    rng = np.random.default_rng(8)
    values = [*(f"{value:.9f}" for value in rng.normal(0, 1, 299)), planted]
    (fresh.folder / "planted.csv").write_text("x\n" + "\n".join(values) + "\n")
    (fresh.folder / "planted.txt").write_text("\n".join([*values, "name-of-a-person"]) + "\n")
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=300)
    raw = int(test.score.of_numbers([float(value) for value in values]).sum())
    statistic = float(test.score.value(Fraction(raw), 300))
    asked = {"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": 0.5, "dataset": "claims"}
    source = {"source": {"path": "planted.csv"}, "column": "x"}
    heard: list[str] = []

    def note(answer: Any) -> Any:
        heard.append(answer.text + json.dumps(dict(answer.headers)))
        return answer

    with caplog.at_level(logging.DEBUG):
        assert note(fresh.post("/api/run/test", **asked, **source, request="a")).status_code == 200
        assert note(fresh.post("/api/run/change", **asked, **source, request="b")).status_code == 200
        note(fresh.post("/api/run/test", **asked, **{**source, "column": "y"}, request="c"))
        note(fresh.post("/api/run/test", **asked, **source, n=7, request="d"))
        note(fresh.post("/api/run/test", **{**asked, "epsilon": 90}, **source, request="e"))
        content = (fresh.folder / "planted.csv").read_bytes()
        upload = note(fresh.client.post("/api/upload", params={"name": "p.csv"}, content=content)).json()["upload"]
        note(fresh.post("/api/run/test", **asked, source={"upload": upload}, column="x", request="f"))
        name = note(fresh.post("/api/monitors", **asked, request="g")).json()["monitor"]
        lines = (fresh.folder / "planted.txt").read_text().splitlines()
        note(fresh.post(f"/api/monitors/{name}/records", lines=lines))
        for path in (f"/api/monitors/{name}", "/api/monitors", "/api/about", "/api/openapi.json"):
            note(fresh.client.get(path))
        note(fresh.post(f"/api/monitors/{name}/stop"))
    text = "\n".join(heard) + caplog.text + fresh.ledger_bytes.decode("latin-1")
    assert len(heard) >= 13
    for secret in (planted, planted[:8], "name-of-a-person", str(raw), repr(statistic), f"{statistic:.6g}"):
        assert secret not in text, secret
    for value in values:
        assert value[:9] not in text
