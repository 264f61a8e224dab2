"""Sixteen processes and one budget; kill -9 at random instants. The work is done by race.py and kills.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privatest.ledger import Ledger
from tests.ledger.kills import MATTER

ROOT = Path(__file__).resolve().parents[2]
INSTANTS = [8, pytest.param(int(os.environ.get("PRIVATEST_KILLS", "40")), marks=pytest.mark.exhaustive)]


def run(module: str, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", f"tests.ledger.{module}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise AssertionError(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("requests", [10, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_a_race_for_a_budget(requests: int, target: str, show: Callable[[str], None]) -> None:
    """As many requests as the ledger that does not lock needs to be caught, below, and twice as many."""
    answer = run("race", target, "--requests", str(requests))
    seconds, fit = answer.pop("seconds"), 5 * requests
    assert answer == {"returned": fit, "refused": 16 * requests - fit, "releases": fit, "spent": "1"}
    show(f"{kind(target)}: 16 processes x {requests} requests, budget for {fit}: {answer} in {seconds} s")


def test_a_race_for_the_same_requests(target: str) -> None:
    answer = run("race", target, "--same", "--requests", "10")
    del answer["seconds"]
    assert answer == {"returned": 160, "refused": 0, "releases": 10, "spent": "1/5"}


@pytest.mark.parametrize("instants", INSTANTS)
def test_kill_minus_nine_at_random_instants(instants: int, target: str, show: Callable[[str], None]) -> None:
    answer = run("kills", target, "--instants", str(instants))
    assert answer["charged"] > 0
    assert set(answer["killed while"]) >= MATTER, "the instants were spread over the requests"
    show(f"{kind(target)}: {answer}")


def test_the_race_is_lost_by_a_ledger_that_does_not_lock(target: str) -> None:
    answer = run("race", target, "--requests", "10", "--broken")
    assert answer["releases"] > 50, "the race must be able to find an overspent budget"


def test_the_kills_find_a_ledger_that_gives_out_what_is_not_on_record(target: str) -> None:
    with pytest.raises(AssertionError, match=r"not what (is on record|was drawn)"):
        run("kills", target, "--instants", "10", "--broken")


MAKE = """
import sys, time
from privatest.ledger import Ledger
time.sleep(max(float(sys.argv[2]) - 0.05 - time.time(), 0))
while time.time() < float(sys.argv[2]): pass
with Ledger(sys.argv[1], timeout=60) as ledger:
    ledger.grant("claims", epsilon=1)
"""


def test_many_processes_may_make_the_ledger_at_once(target: str) -> None:
    command = [sys.executable, "-c", MAKE, target, str(time.time() + 1)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    makers = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    complaints = [maker.communicate(timeout=600)[1] for maker in makers]
    assert [maker.returncode for maker in makers] == [0] * 4, complaints
    with Ledger(target) as ledger:
        assert ledger.verify() == 1


def kind(target: str) -> str:
    return "PostgreSQL" if target.startswith("postgresql") else "SQLite"
