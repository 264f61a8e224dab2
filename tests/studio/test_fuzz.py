"""Malformed requests: no server error, no traceback, and the ledger as it was."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Unsatisfiable

from .conftest import ASK, TOKEN

SETTINGS = {"derandomize": True, "deadline": None, "database": None, "phases": [Phase.generate]}
WANTED = 700


def checked(answer: Any) -> int:
    assert answer.status_code < 500, answer.text[:300]
    assert "Traceback" not in answer.text
    if answer.status_code >= 400 and answer.text and answer.headers["content-type"] == "application/json":
        assert set(answer.json()) == {"error"}
    return 1


@pytest.mark.parametrize("examples", [4, pytest.param(15, marks=pytest.mark.exhaustive)])
def test_requests_made_from_the_description_are_answered_or_refused(studio: Any, show: Any, examples: int) -> None:
    document = studio.client.get("/api/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    before, sent = studio.ledger_bytes, 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @hypothesis.given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))
        @hypothesis.settings(max_examples=examples, suppress_health_check=list(HealthCheck), **SETTINGS)
        def wrong(case: Any) -> None:
            nonlocal sent
            sent += ask(studio, case)

        with contextlib.suppress(Unsatisfiable):  # nothing about it can be wrong
            wrong()
    assert studio.ledger_bytes == before
    show(f"{sent} requests against the description, none a server error")
    assert sent >= 12 * examples


def ask(studio: Any, case: Any) -> int:
    """Send a case through the studio's own client."""
    kwargs = case.as_transport_kwargs(base_url="http://127.0.0.1")
    kwargs = {
        key: value for key, value in kwargs.items() if key in {"method", "url", "headers", "json", "params", "data"}
    }
    headers = {k: v for k, v in dict(kwargs.pop("headers", {})).items() if k.lower() in {"content-type"}}
    if (data := kwargs.pop("data", None)) is not None:
        kwargs["content"] = data if isinstance(data, str | bytes) else json.dumps(data, default=str)
    try:
        request = studio.client.build_request(headers={**headers, "authorization": f"Bearer {TOKEN}"}, **kwargs)
    except Exception:  # httpx refuses to write it: such a request cannot be sent
        return 0
    return checked(studio.client.send(request))


ODD: list[Any] = [
    None, True, 0, -1, 1, 1e308, -0.0, 1e-300, 10**30, "", "x", "a" * 3000, "\x00", "\ud800", "NaN", "\u0661", "../..",
    [], [[]], [1, 2], {}, {"a": 1}, {"": 0.5}, {"a": 0.5, "b": 0.5}, {"path": "../x"}, {"upload": "\x00"},
    "normal(0,1)", "normal(", "bernoulli(0.5)", "binomial(9007199254740991, 0.5)", "normal(1e308, 1e-308)",
    "categorical()", "mixture(1, mixture(1, normal(0, 1)))",
]  # fmt: skip
BODIES: dict[str, dict[str, Any]] = {
    "/api/look": ASK,
    "/api/design": {**ASK, "n": 20},
    "/api/size": ASK,
    "/api/plan": {**ASK, "release": "decision"},
    "/api/notions": {"null": ASK["null"], "alternative": ASK["alternative"], "privacy": "tv(0.1)"},
    "/api/columns": {"source": {"path": "tosses.csv"}},
    "/api/theory": {"null": ASK["null"], "alternative": ASK["alternative"], "epsilons": [1.0]},
    "/api/power": {**ASK, "n": [10]},
    "/api/along": {**ASK, "n": 10, "family": "bernoulli(p=?)", "between": [0.1, 0.9]},
    "/api/run/test": {**ASK, "source": {"path": "tosses.csv"}, "column": "toss", "dataset": "poor", "request": "f"},
    "/api/run/change": {**ASK, "source": {"path": "tosses.csv"}, "column": "toss", "dataset": "poor", "request": "f"},
    "/api/estimate": {"family": "bernoulli(?)", "epsilon": 1.0, "n": 20, "at": 0.3, "between": [0.0, 1.0]},
    "/api/estimate/size": {"family": "bernoulli(?)", "epsilon": 1.0, "at": 0.3, "width": 0.5, "near": 0.3},
    "/api/groups": {"epsilon": 1.0, "n": [20, 30], "rate": 0.3, "lift": 0.1, "alternative": "greater"},
    "/api/groups/size": {"epsilon": 1.0, "rate": 0.1, "lift": 0.8, "beta": 0.5, "above": 2.0},
    "/api/run/estimate": {
        "family": "bernoulli(?)",
        "epsilon": 1.0,
        "source": {"path": "tosses.csv"},
        "column": "toss",
        "dataset": "poor",
        "request": "f",
    },
    "/api/run/groups": {
        "epsilon": 1.0,
        "source": {"path": "tosses.csv"},
        "treatment": {"path": "changed.csv"},
        "column": "toss",
        "dataset": "poor",
        "request": "f",
    },
    "/api/run/table": {
        "epsilon": 1.0,
        "between": [0.0, 1.0],
        "cells": 4,
        "source": {"path": "tosses.csv"},
        "column": "toss",
        "dataset": "poor",
        "request": "f",
    },
    "/api/monitors": {**ASK, "dataset": "poor", "request": "f"},
    "/api/monitors/monitor-1/records": {"lines": ["1"]},
    "/api/sequentials": {**ASK, "dataset": "poor", "request": "f"},
}
TEXTS = [
    b"",
    b"{",
    b"nul",
    b"\xff\xfe",
    b'{"a":1}{',
    b"[" * 9999,
    b'"\\ud800"',
    b'{"null": NaN}',
    b"1" * 6000,
    b'{"a":1,"a":2}',
]


def test_good_requests_made_wrong_in_one_place_are_answered_or_refused(
    studio: Any, show: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One part of a request that works replaced by something odd, dropped or doubled; and bodies that are no JSON."""
    # One process for all runs, which elsewhere are told apart: what they answer is the same.
    monkeypatch.setattr(studio.app.state.lanes["runs"], "_reuses", True)
    rng = random.Random(7)
    before, sent = studio.ledger_bytes, 0
    for path, good in BODIES.items():
        for name in good:
            # What runs or watches starts a process each time.
            for odd in rng.sample(ODD, 3 if path.startswith(("/api/run", "/api/monitors", "/api/seq")) else 7):
                sent += post(studio, path, {**good, name: odd})
            sent += post(studio, path, {key: value for key, value in good.items() if key != name})
            sent += post(studio, path, {**good, name + "_": 1})
        for text in TEXTS:
            sent += checked(studio.client.post(path, content=text, headers={"content-type": "application/json"}))
    names = ["x.csv", "", "a" * 300, "\x00.csv", "../x.csv", "x.parquet"]
    for _ in range(600):
        path = "".join(rng.choice("/.%abstmonitpu_0é\\?#&=;:") for _ in range(rng.randint(1, 25)))
        method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
        prefix = rng.choice(
            ["/", "/api/", "/static/", "/api/monitors/", "/api/upload?name=" + rng.choice(names[3:])[1:]]
        )
        sent += checked(
            studio.client.request(method, "http://127.0.0.1" + prefix + path, content=rng.randbytes(rng.randint(0, 40)))
        )
    assert studio.ledger_bytes == before
    show(f"{sent} requests made wrong by hand, none a server error")
    assert sent >= WANTED


def post(studio: Any, path: str, body: Any) -> int:
    text = json.dumps(body)  # lone surrogates and all, as ASCII
    return checked(studio.client.post(path, content=text, headers={"content-type": "application/json"}))
