"""Budgets are exact, requests are charged once and before anything is released, releases never change."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privatest.errors import BudgetExceeded, InvalidInput, RequestConflict
from privatest.ledger import Ledger

Ask = Callable[..., dict[str, Any]]


def never() -> dict[str, Any]:
    raise AssertionError("compute was called")


def test_a_tenth_ten_times_fits_in_one_exactly(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    for k in range(10):
        assert ledger.left("claims") == 1 - Fraction(k, 10)
        ask(f"q{k}", epsilon=0.1)
    assert (ledger.spent("claims"), ledger.left("claims")) == (1, 0)
    with pytest.raises(BudgetExceeded) as caught:
        ask("q10", epsilon=Fraction(1, 10**30), draw=never)
    assert caught.value.left == 0
    assert ledger.verify() == 21


def test_the_message_of_an_exceeded_budget(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    ask("q1", epsilon=0.8)
    with pytest.raises(BudgetExceeded) as caught:
        ask("q2", epsilon=0.3, draw=never)
    error = caught.value
    assert str(error).startswith("epsilon=0.3 asked, 0.2 left of 1.0 for data set 'claims'.")
    numbers = (error.requested, error.spent, error.left)
    assert numbers == (Fraction(3, 10), Fraction(8, 10), Fraction(2, 10))
    again = pickle.loads(pickle.dumps(error))  # it must survive the way out of a worker process
    assert str(again) == str(error)
    assert (again.dataset, again.requested, again.spent, again.left) == ("claims", *numbers)
    assert [entry.request for entry in ledger.history()] == [None, "q1", "q1"], "nothing was charged"


def test_the_same_request_again_returns_the_same_release(ledger: Ledger, ask: Ask, target: str) -> None:
    ledger.grant("claims", epsilon=1)
    release = {
        "statistic": 0.1 + 0.2,
        "decision": "null",
        "n": 10**30,
        "text": "é\0\ud800",
        "nested": [1, None, {}],
    }
    assert ask("q", draw=lambda: release) == release
    assert ask("q", draw=never) == release
    with Ledger(target) as later:
        assert later.perform(dataset="claims", request="q", epsilon=0.1, design="sha256:aa", draw=never) == release
    assert ledger.spent("claims") == Fraction(1, 10)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": 0.2}, "with epsilon=0.1, now asked with epsilon=0.2"),
        ({"design": "sha256:bb"}, "for the design 'sha256:aa', now asked for 'sha256:bb'"),
    ],
)
@pytest.mark.parametrize("completed", [True, False])
def test_the_same_name_for_another_request_is_refused(
    ledger: Ledger, ask: Ask, change: dict[str, Any], said: str, completed: bool
) -> None:
    ledger.grant("claims", epsilon=1)
    if completed:
        ask("q")
    else:
        with pytest.raises(ZeroDivisionError):
            ask("q", release=lambda _: {"x": 1 / 0})
    with pytest.raises(RequestConflict, match=said):
        ask("q", draw=never, **change)
    assert ledger.spent("claims") == Fraction(1, 10)


def test_a_failing_computation_stays_charged_and_a_retry_completes_it(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=Fraction(1, 10))

    drawn = iter(range(100))

    def fail(draw: int) -> dict[str, Any]:
        assert ledger.spent("claims") == Fraction(1, 10), "charged before anything is made of the draw"
        assert ledger.history()[-1].about["draw"] == draw == 0
        raise KeyError("no such law")

    for _ in range(2):
        with pytest.raises(KeyError, match="no such law"):
            ask("q", draw=lambda: next(drawn), release=fail)
    assert ledger.left("claims") == 0
    assert [entry.kind for entry in ledger.history()] == ["grant", "charge"]
    assert ask("q", draw=never, release=lambda draw: {"drawn": draw}) == {"drawn": 0}
    assert ledger.spent("claims") == Fraction(1, 10)
    assert ledger.verify() == 3


def test_a_draw_that_fails_is_not_charged(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=Fraction(1, 10))

    def fail() -> dict[str, Any]:
        assert ledger.spent("claims") == 0, "nothing is charged before there is a draw"
        raise KeyError("no such column")

    for _ in range(2):
        with pytest.raises(KeyError, match="no such column"):
            ask("q", draw=fail)
    assert [entry.kind for entry in ledger.history()] == ["grant"]
    assert ask("q") == {"decision": "null", "request": "q"}


def test_a_budget_may_be_raised_and_lowered_to_what_is_spent(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=0.5)
    ask("q", epsilon=0.5)
    ledger.grant("claims", epsilon=0.5)  # as scripts do that are run again
    ledger.grant("claims", epsilon=2)
    assert (ledger.granted("claims"), ledger.left("claims")) == (2, Fraction(3, 2))
    with pytest.raises(InvalidInput, match=r"epsilon=0\.4 is less than the 0\.5 already spent on data set 'claims'"):
        ledger.grant("claims", epsilon=0.4)
    ledger.grant("claims", epsilon=0.5)
    assert ledger.left("claims") == 0
    assert [entry.epsilon for entry in ledger.history() if entry.kind == "grant"] == [
        Fraction(1, 2),
        2,
        Fraction(1, 2),
    ]
    assert ledger.verify() == 5


def test_history(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    ask("q")
    grant, charge, release = ledger.history()
    assert [entry.sequence for entry in (grant, charge, release)] == [1, 2, 3]
    assert (grant.kind, grant.request, grant.epsilon, grant.left) == ("grant", None, 1, 1)
    assert (charge.kind, charge.request, charge.design, charge.epsilon) == (
        "charge",
        "q",
        "sha256:aa",
        Fraction(1, 10),
    )
    assert (charge.release, charge.left) == (None, Fraction(9, 10))
    assert (release.kind, release.release) == ("release", {"decision": "null", "request": "q"})
    assert abs(datetime.now(UTC) - release.time) < timedelta(minutes=5)
    assert ledger.history("claims") == ledger.history()


def test_nothing_but_draw_and_release_is_stored_of_what_was_computed(ledger: Ledger, ask: Ask, tamper: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    with pytest.raises(ValueError, match="secret 4711"):
        ask("failed", draw=lambda: int("secret 4711"))
    with pytest.raises(ValueError, match="secret 4712"):
        ask("later", draw=lambda: 3, release=lambda _: int("secret 4712"))
    ask("done", draw=lambda: 4, release=lambda _: {"decision": "null"})
    rows = tamper("SELECT * FROM privatest_ledger_rows ORDER BY sequence")
    assert "secret" not in repr(rows)
    assert [row[9] for row in rows] == [None, '{"draw": 3}', '{"draw": 4}', '{"decision": "null"}']


def test_threads_share_a_ledger(ledger: Ledger, ask: Ask) -> None:
    ledger.grant("claims", epsilon=1)
    refused = threading.Semaphore(0)

    def one(k: int) -> None:
        try:
            ask(f"q{k}", epsilon=0.04)
        except BudgetExceeded:
            refused.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(40)))
    assert ledger.spent("claims") == 1
    assert refused._value == 15
    assert ledger.verify() == 51


FORK = """
import os, sys, threading
from privatest.ledger import Ledger
ledger = Ledger(sys.argv[1])
ledger.grant("claims", epsilon=1000)
def ask(name):
    ledger.perform(dataset="claims", request=name, epsilon=0.1, design="d", draw=dict)
stop = threading.Event()
def busy(me):
    k = 0
    while not stop.is_set():
        ask(f"{me}-{k}")
        k += 1
threads = [threading.Thread(target=busy, args=(k,)) for k in range(3)]
for thread in threads: thread.start()
codes = []
for k in range(12):
    child = os.fork()
    if child == 0:
        try:
            ask(f"child-{k}")
            ask(f"child-{k}-again")
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    codes.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads: thread.join()
ask("parent")
done = {entry.request for entry in ledger.history() if entry.kind == "release"}
assert {f"child-{k}-again" for k in range(12)} | {"parent"} <= done
assert codes == [0] * 12, codes
assert ledger.verify() == 2 * len(done) + 1
print("forked 12 times beside 3 busy threads")
"""


@pytest.mark.exhaustive
def test_a_fork_beside_busy_threads_harms_neither_side(target: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, target]
    done = subprocess.run(command, env=with_source(), capture_output=True, text=True, timeout=600)
    assert "forked 12 times" in done.stdout, done.stderr


def with_source() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
