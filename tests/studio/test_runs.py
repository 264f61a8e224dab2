"""Runs on data: charged once, refused cleanly, and nothing of a record in any answer; paths stay in the folder."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import errors
from privatest.studio import create_app
from privatest.studio.runs import MOST_UPLOADS, Folder, Uploads

from .conftest import ASK, TOKEN, TestClient, begun, cold, fill, open_studio

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
    assert found["budget"] == {"dataset": "claims", "granted": 3.0, "spent": 1.0, "left": 2.0, "covers": None}
    charge, recorded = fresh.ledger.history("claims")[-2:]
    assert (charge.kind, recorded.kind, charge.request) == ("charge", "release", "r1")
    assert set(release) == set(pt.design("bernoulli(0.4)", "bernoulli(0.6)", epsilon=1, n=400).run([1] * 400).to_dict())


def test_no_change_is_said_and_a_public_order_names_the_year(fresh: Any) -> None:
    rows = [f"{1600 + i},{int(i >= 200)},0\n" for i in range(400)]
    (fresh.folder / "years.csv").write_text("year,x,y\n" + "".join(rows))
    asked = {**CHANGE, "source": {"path": "years.csv"}, "order": "year", "public_order": True}
    quiet = fresh.post("/api/run/change", **{**asked, "column": "y", "epsilon": 2, "false_alarm": 0.001}).json()
    assert quiet["release"]["changed"] is False
    assert "No change was found in 400 records." in quiet["sentence"]
    assert ["index", "no change", "no record begins a new regime"] in quiet["facts"]
    found = fresh.post("/api/run/change", **{**asked, "column": "x", "request": "r2"}).json()["release"]
    assert found["order_value"] == 1600 + found["index"]
    missing = fresh.post("/api/run/change", **{**asked, "column": "x", "order": None, "request": "r3"})
    assert (missing.status_code, "without order=" in missing.text) == (422, True)
    assert fresh.ledger.spent("claims") == 3


def without_receipt(found: dict[str, Any]) -> dict[str, Any]:
    """The answer without what the ledger noted beside it."""
    kept = {name: value for name, value in found["release"].items() if name not in {"receipt", "replayed"}}
    facts = [fact for fact in found["facts"] if not fact[0].startswith("receipt ")]
    return {**found, "release": kept, "facts": facts}


def test_a_data_set_whose_grant_names_its_files_takes_no_others(fresh: Any) -> None:
    """Another data set's budget does not pay for them either."""
    (fresh.folder / "other.csv").write_text((fresh.folder / "tosses.csv").read_text())
    fresh.ledger.grant("claims", epsilon=3, covers=[fresh.folder / "tosses.csv", fresh.folder / "changed.csv"])
    fresh.ledger.grant("free", epsilon=3)
    content = (fresh.folder / "tosses.csv").read_bytes()
    upload = fresh.client.post("/api/upload", params={"name": "mine.csv"}, content=content).json()["upload"]
    before = fresh.ledger_bytes
    for change, said in (
        ({"source": {"path": "other.csv"}}, "none of them"),
        ({"source": {"upload": upload}}, "none of them"),
        ({"dataset": "free"}, "belongs to data set 'claims'"),
    ):
        for where, asked in (("/api/run/test", RUN), ("/api/run/change", CHANGE)):
            answer = fresh.post(where, **{**asked, "source": RUN["source"], **change})
            assert answer.status_code == 409, answer.text
            assert said in answer.json()["error"]
            assert str(fresh.folder) not in answer.text
    assert fresh.ledger_bytes == before
    assert fresh.post("/api/run/test", **RUN).status_code == 200
    budgets = {each["dataset"]: each["covers"] for each in fresh.client.get("/api/about").json()["budgets"]}
    assert budgets == {"claims": ["changed.csv", "tosses.csv"], "poor": None, "free": None}


def test_pressed_many_times_at_once_it_is_charged_once(fresh: Any) -> None:
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(fresh.post("/api/run/test", **RUN).json())) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(without_receipt(each), sort_keys=True) for each in found}) == 1
    assert sorted(each["release"]["replayed"] for each in found) == [False] + [True] * 5
    assert fresh.ledger.spent("claims") == 1


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"dataset": "poor"}, 409, "left"),
        ({"dataset": "clams"}, 422, "claims"),
        ({"column": "tos"}, 422, "first line of 'tosses.csv'"),
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
def test_a_refused_run_charges_nothing(studio: Any, change: dict[str, Any], status: int, said: str) -> None:
    before = studio.ledger_bytes
    answer = studio.post("/api/run/test", **{**RUN, **change})
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]
    assert str(studio.folder) not in answer.text
    assert studio.ledger_bytes == before


def test_without_a_ledger_nothing_is_run(fresh: Any) -> None:
    from fastapi.testclient import TestClient

    app = create_app(folder=fresh.folder)
    client = TestClient(app, base_url="http://127.0.0.1", headers={"authorization": f"Bearer {app.state.token}"})
    answer = client.post("/api/run/test", json=RUN)
    assert answer.status_code == 422
    assert "ledger" in answer.json()["error"]


PLANTED = "7.654321987"


def planted_values() -> list[str]:
    rng = np.random.default_rng(8)
    return [*(f"{value:.9f}" for value in rng.normal(0, 1, 299)), PLANTED]


def all_that_is_heard(studio: Any, values: list[str], caplog: pytest.LogCaptureFixture) -> str:
    """Answers, headers, logs and the ledger's bytes, of whatever can be asked about these values."""
    (studio.folder / "planted.csv").write_text("x\n" + "\n".join(values) + "\n")
    (studio.folder / "planted.txt").write_text("\n".join([*values, "name-of-a-person"]) + "\n")
    asked = {"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": 0.5, "dataset": "claims"}
    source = {"source": {"path": "planted.csv"}, "column": "x"}
    heard: list[str] = []

    def note(answer: Any) -> Any:
        heard.append(answer.text + json.dumps(dict(answer.headers)))
        return answer

    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        assert note(studio.post("/api/run/test", **asked, **source, request="a")).status_code == 200
        assert note(studio.post("/api/run/change", **asked, **source, request="b")).status_code == 200
        note(studio.post("/api/run/test", **asked, **{**source, "column": "y"}, request="c"))
        note(studio.post("/api/run/test", **asked, **source, n=7, request="d"))
        note(studio.post("/api/run/test", **{**asked, "epsilon": 90}, **source, request="e"))
        content = (studio.folder / "planted.csv").read_bytes()
        upload = note(studio.client.post("/api/upload", params={"name": "p.csv"}, content=content)).json()["upload"]
        note(studio.post("/api/run/test", **asked, source={"upload": upload}, column="x", request="f"))
        name = note(studio.post("/api/monitors", **asked, request="g")).json()["monitor"]
        lines = (studio.folder / "planted.txt").read_text().splitlines()
        note(studio.post(f"/api/monitors/{name}/records", lines=lines))
        for path in (f"/api/monitors/{name}", "/api/monitors", "/api/about", "/api/openapi.json"):
            note(studio.client.get(path))
        note(studio.post(f"/api/monitors/{name}/stop"))
    assert len(heard) >= 13
    return "\n".join(heard) + caplog.text + studio.ledger_bytes.decode("latin-1")


def seen_every_time(secrets: set[str], texts: Iterator[str]) -> set[str]:
    """The secrets that are in each of the texts. No text is made once none is left."""
    # Digits of noise and of digests spell one of three hundred short numbers once in a thousand texts: never thrice.
    while secrets and (text := next(texts, None)) is not None:
        secrets = {secret for secret in secrets if secret in text}
    return secrets


def test_no_record_and_no_raw_total_is_in_any_answer_or_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A planted value (and all that is computed from it exactly) shows up nowhere."""
    values = planted_values()
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=300)
    raw = int(test.score.of_numbers([float(value) for value in values]).sum())
    statistic = float(test.score.value(Fraction(raw), 300))
    secrets = {PLANTED, PLANTED[:8], "name-of-a-person", str(raw), repr(statistic), f"{statistic:.6g}"}

    def texts() -> Iterator[str]:
        for turn in range(3):
            with begun(open_studio(tmp_path / str(turn))) as studio:
                yield all_that_is_heard(studio, values, caplog)

    assert seen_every_time(secrets | {value[:9] for value in values}, texts()) == set()


def test_a_run_ends_at_its_limits_and_the_page_answers_meanwhile(tmp_path: Any, hostile: Any) -> None:
    """Whatever is computed: here runs that never end."""
    studio = open_studio(tmp_path / "s", max_seconds=1.5)
    with studio.client:
        hostile(studio.app.state.lanes["runs"])
        answers: list[Any] = []
        threads = [
            threading.Thread(target=lambda i=i: answers.append(studio.post("/api/run/test", **RUN, n=400 + i)))
            for i in range(2)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert studio.client.get("/").status_code == 200
    assert [answer.status_code for answer in answers] == [422] * 2
    assert all(set(answer.json()) == {"error"} for answer in answers)
    assert all("1.5 seconds" in answer.json()["error"] for answer in answers)
    assert all("free of charge" in answer.json()["error"] for answer in answers)
    assert studio.ledger.spent("claims") == 0


def test_a_run_is_stopped_when_its_asker_leaves(served: Any, hostile: Any) -> None:
    import httpx

    lane = hostile(served.studio.app.state.lanes["runs"])
    try:
        headers = {"authorization": f"Bearer {TOKEN}"}
        with (
            httpx.Client(base_url=served.address, trust_env=False, headers=headers) as client,
            pytest.raises(httpx.ReadTimeout),
        ):
            client.post("/api/run/test", json=RUN, timeout=httpx.Timeout(300, read=1.5))
        end = time.monotonic() + 300
        while lane._pending or any(worker.process for worker in lane._workers):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        for each in lane._workers:
            each._command[1:2] = ["-m", "privatest.studio.worker"]


OUTSIDE = [
    "../ledger.db",
    "../data/../ledger.db",
    "sub/../../ledger.db",
    "..",
    ".",
    "",
    "nothing.csv",
    "sub",
    "link.csv",
    "linked/secret.csv",
    "loop.csv",
    "tosses.csv\0",
    "..\\ledger.db",
    "C:\\windows\\win.ini",
    "c:tosses.csv",
    "//server/share/x.csv",
    "~/x.csv",
    "file:///etc/passwd",
    "/etc/passwd",
    "a" * 999,
    "a/" * 400,
]


@pytest.fixture(scope="module", autouse=True)
def links(studio: Any) -> None:
    """Ways out of the folder: a link to a file, a link to a folder, a link to itself."""
    folder: Path = studio.folder
    secret = folder.parent / "secret.csv"
    secret.write_text("toss\n1\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "inner.csv").write_text("toss\n1\n")
    (folder / "link.csv").symlink_to(secret)
    (folder / "linked").symlink_to(folder.parent)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "alias.csv").symlink_to(folder / "tosses.csv")


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_outside_the_folder_is_refused(studio: Any, path: str) -> None:
    before = studio.ledger_bytes
    body = {**ASK, "source": {"path": path}, "column": "toss", "dataset": "claims", "request": "outside"}
    for run in ("/api/run/test", "/api/run/change"):
        assert studio.client.post(run, json=body).status_code == 422
    start = {**ASK, "path": path, "dataset": "claims", "request": "outside"}
    assert studio.client.post("/api/monitors", json=start).status_code == 422
    assert studio.ledger_bytes == before


def test_files_inside_are_found_and_listed(studio: Any) -> None:
    folder = Folder(studio.folder)
    assert folder.find("sub/inner.csv").name == "inner.csv"
    assert folder.find("alias.csv").name == "tosses.csv"  # a link that stays inside
    listed = studio.client.get("/api/about").json()["files"]
    assert {"tosses.csv", "sub/inner.csv", "alias.csv"} <= set(listed)
    assert not {"link.csv", "linked/secret.csv", "loop.csv"} & set(listed)


def test_without_a_folder_no_path_is_taken(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidInput, match="started without a folder"):
        Folder(None).find("x.csv")
    with pytest.raises(errors.InvalidInput, match="is not a folder"):
        Folder(tmp_path / "missing")


def test_uploads_are_named_by_us_kept_in_a_private_folder_and_few() -> None:
    uploads = Uploads()
    words = []
    for _ in range(MOST_UPLOADS + 1):
        word, file = uploads.new("../../evil name.csv")
        with file:
            file.write(b"1\n")
        uploads.keep(word, file.name)
        words.append(word)
    kept = uploads.find(words[-1])
    assert kept.name == f"{words[-1]}.csv"
    assert kept.parent.stat().st_mode & 0o077 == 0
    with pytest.raises(errors.InvalidInput):
        uploads.find(words[0])
    assert len(os.listdir(kept.parent)) == MOST_UPLOADS
    uploads.close()
    assert not kept.parent.exists()


def arms(folder: Any, names: str = "ab") -> None:
    rows = (f"{names[i % len(names)]},{int(i % 3 == 0)},{i}\n" for i in range(120))
    (folder / "arms.csv").write_text("arm,bought,visit\n" + "".join(rows))


RATE: dict[str, Any] = {
    "family": "bernoulli(?)",
    "epsilon": 1.0,
    "source": {"path": "tosses.csv"},
    "column": "toss",
    "dataset": "claims",
    "request": "rate",
}
ARMS: dict[str, Any] = {
    "epsilon": 1.0,
    "source": {"path": "arms.csv"},
    "group": "arm",
    "column": "bought",
    "dataset": "claims",
    "request": "arms",
}


def test_an_estimate_is_charged_once_and_replayed(fresh: Any) -> None:
    first = fresh.post("/api/run/estimate", **RATE).json()
    low, high = first["release"]["interval"]
    assert low < first["release"]["estimate"] < high
    assert first["release"]["private"]
    assert first["budget"]["spent"] == 1
    again = fresh.post("/api/run/estimate", **RATE).json()
    assert again["release"]["replayed"]
    assert again["release"]["interval"] == [low, high]
    assert fresh.ledger.spent("claims") == 1
    hidden = {**RATE, "request": "hidden", "neighbours": "add-remove"}
    assert "n is missing" in fresh.post("/api/run/estimate", **hidden).json()["error"]
    found = fresh.post("/api/run/estimate", **hidden, n=390).json()
    assert found["release"]["neighbours"] == "add-remove"
    assert found["release"]["n"] == 390


def test_two_groups_from_one_file_or_from_two(fresh: Any) -> None:
    arms(fresh.folder)
    one = fresh.post("/api/run/groups", **ARMS, control_name="b").json()
    assert one["release"]["names"] == ["b", "a"]
    assert one["release"]["n"] == [60, 60]
    apart = {**ARMS, "group": None, "source": {"path": "tosses.csv"}, "column": "toss", "request": "two"}
    two = fresh.post("/api/run/groups", **apart, treatment={"path": "changed.csv"}).json()
    assert two["release"]["n"] == [400, 600]
    assert two["release"]["receipt"]["source"] == "tosses.csv and changed.csv"
    assert str(fresh.folder) not in json.dumps([one, two])
    assert fresh.ledger.spent("claims") == 2  # one epsilon for both groups of a comparison


def test_a_column_is_described_at_the_price_of_its_table(fresh: Any) -> None:
    asked = {"epsilon": 1.0, "source": {"path": "tosses.csv"}, "column": "toss", "dataset": "claims", "request": "t"}
    numbers = {**asked, "between": [0.0, 1.0], "cells": 4}
    before = fresh.ledger_bytes
    for change, said in (
        ({"cells": 257}, "at most 256"),
        ({"between": [1.0, 0.0]}, "between"),
        ({"between": None, "cells": None}, "labels"),
        ({"neighbours": "add-remove"}, "n is missing"),
    ):
        refused = fresh.post("/api/run/table", **{**numbers, **change})
        assert (refused.status_code, said in refused.json()["error"]) == (422, True), refused.text
    assert fresh.ledger_bytes == before
    first = fresh.post("/api/run/table", **numbers).json()
    questions = [answer["question"] for answer in first["answers"]]
    assert questions == ["mean of the records, clipped to [0, 1]", "median", "0.25 quantile", "0.75 quantile"]
    for answer in first["answers"]:
        assert answer["interval"][0] <= answer["estimate"] <= answer["interval"][1]
    again = fresh.post("/api/run/table", **numbers, report=True).json()
    assert again["release"]["replayed"]
    assert again["answers"] == first["answers"]  # computed from the counts, which are the same
    assert "How many records does each cell have?" in again["report"]
    labels = fresh.post("/api/run/table", **{**asked, "labels": "0,1", "request": "l"}).json()
    assert [answer["question"] for answer in labels["answers"]] == ["share of 0", "share of 1"]
    share = np.mean(np.loadtxt(fresh.folder / "tosses.csv", delimiter=",", skiprows=1, usecols=0))
    assert labels["answers"][1]["interval"][0] < share < labels["answers"][1]["interval"][1]
    assert fresh.ledger.spent("claims") == 2


def test_the_columns_of_a_file_are_listed_by_name_and_nothing_else_is(studio: Any) -> None:
    found = studio.post("/api/columns", source={"path": "tosses.csv"})
    assert found.json() == {"columns": ["toss", "other"]}
    uploaded = studio.client.post("/api/upload?name=a.csv", content=b"one,two\n7,8\n").json()["upload"]
    assert studio.post("/api/columns", source={"upload": uploaded}).json() == {"columns": ["one", "two"]}


@pytest.mark.parametrize("first", ["secretname,yes", "2024-05-01,8.5", "x,x"])
def test_a_first_line_that_is_a_record_is_not_shown(studio: Any, first: str) -> None:
    rows = "\n".join([first, "other,yes", "41,7", "2024-05-02,8.5", ",x", "x,x", "secretname,no"])
    (studio.folder / "headless.csv").write_text(rows + "\n")
    found = studio.post("/api/columns", source={"path": "headless.csv"})
    assert found.status_code == 422
    assert "looks like" not in found.text
    assert not any(part in found.text for part in first.split(",") if part)
    assert str(studio.folder) not in found.text


def test_the_demonstration_pays_for_made_up_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, temporary = tmp_path / "data", tmp_path / "temporary"
    fill(folder)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))  # where nobody else demonstrates anything
    headers = {"authorization": f"Bearer {TOKEN}"}
    app = create_app(folder=folder, token=TOKEN)
    with cold(), TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        about = client.get("/api/about").json()
        assert (about["ledger"], about["demo"]) == (False, None)
        asked = {**ASK, "epsilon": 0.5, "dataset": "demo", "request": "r"}
        real = {**asked, "source": {"path": "tosses.csv"}, "column": "toss"}
        assert "started without a ledger" in client.post("/api/run/test", json=real).json()["error"]
        assert client.post("/api/demo").json()["dataset"] == "demo"
        assert client.post("/api/demo").status_code == 200  # and again: nothing new
        about = client.get("/api/about").json()
        assert (about["ledger"], about["demo"]) == (True, "demo")
        assert "demo/measurements.csv" in about["files"]
        assert [each["granted"] for each in about["budgets"]] == [10]
        # A real file, an upload and records that somebody sends are all refused: they are none of the made-up ones.
        upload = client.post("/api/upload?name=a.csv", content=b"toss\n1\n0\n").json()["upload"]
        for body in (real, {**asked, "source": {"upload": upload}, "column": "toss"}):
            refused = client.post("/api/run/test", json=body)
            assert refused.status_code == 409
            assert "is granted for" in refused.json()["error"]
        stream = {**asked, "request": "s"}
        refused = client.post("/api/monitors", json=stream)
        assert refused.status_code == 409
        assert "is granted for" in refused.json()["error"]
        made_up = {**asked, "null": "normal(0, 1)", "alternative": "normal(0.5, 1)", "column": "value"}
        found = client.post("/api/run/test", json={**made_up, "source": {"path": "demo/measurements.csv"}})
        assert found.json()["release"]["decision"] == "alternative"
        assert list(temporary.glob("privatest-demo-*"))
    assert not list(temporary.glob("privatest-demo-*"))
    assert {path.name for path in folder.iterdir()} == {"tosses.csv", "changed.csv", "stream.txt"}


def test_a_report_is_of_what_was_recorded_and_costs_nothing(fresh: Any) -> None:
    asked = {**ASK, "source": {"path": "tosses.csv"}, "column": "toss", "dataset": "claims", "request": "r"}
    first = fresh.post("/api/run/test", **asked).json()
    assert "report" not in first
    again = fresh.post("/api/run/test", **asked, report=True, purpose="is it <fair>?", author="A & B").json()
    page = again.pop("report")
    assert without_receipt(again) == without_receipt(first)
    assert fresh.ledger.spent("claims") == 1
    for words in ("is it &lt;fair&gt;?", "A &amp; B", "Budget of claims", "epsilon 3", "epsilon 1", "epsilon 2"):
        assert words in page
    assert str(fresh.folder) not in page
    assert "tosses.csv" in page
    assert first["sentence"].replace("'", "&#x27;") in page


def test_a_run_takes_a_notion_what_may_leave_and_whose_rows_they_are(fresh: Any) -> None:
    fresh.ledger.grant("notions", privacy="zcdp(1)", unit="other")
    asked = {"null": ASK["null"], "alternative": ASK["alternative"], "source": {"path": "tosses.csv"}, "column": "toss"}
    found = fresh.post(
        "/api/run/test", **asked, privacy="zcdp(0.5)", release="decision", dataset="notions", request="z", unit="other"
    ).json()
    assert found["design"]["privacy"] == "zcdp(0.5)"
    assert found["design"]["released"] == "decision"
    assert found["release"]["n"] == 1  # all rows are of one person, who counts once
    assert found["budget"] == {**found["budget"], "granted": "zcdp(1)", "spent": "zcdp(0.5)", "left": "zcdp(0.5)"}
    for more in ({}, {"epsilon": 1.0, "privacy": "gdp(1)"}, {"privacy": "gdp(-1)"}, {"privacy": "bogus(1)"}):
        refused = fresh.post("/api/run/test", **asked, **more, dataset="notions", request="bad")
        assert refused.status_code == 422
        assert "error" in refused.json()
    assert fresh.ledger.spent("notions").text == "zcdp(0.5)"
