"""One request, one draw: whatever fails or is killed after it, for every design and notion.

The draw is on record before anything is made of it. So a request whose release fails is answered from that draw when it
is asked again, without reading the data; and whether a release failed tells nothing that was not paid for. The laws of
"failed or not" are enumerated for a small mechanism, and for the order that draws again, which the same check refuses.

``python -m tests.contracts.test_one_draw 200`` interrupts 200 runs at random instants and prints what came of them;
``python -m tests.contracts.test_one_draw 200 kill`` kills the process of each with SIGKILL.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.bounds import HistogramTest
from privatest.decision.run import Design
from privatest.engines.records import Column
from privatest.errors import RequestConflict, charge_note
from privatest.estimates.location import Location
from privatest.privacy import system_source

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
BITS = [0, 1, 0, 0] * 10
SERIES = [0] * 60 + [1] * 60
TABLE = pd.DataFrame({"x": SERIES, "day": range(2000, 2120)})
MEANS = np.random.default_rng(5).normal(12, 1, 400)
Run = Callable[..., Any]


def decides(privacy: str, **words: Any) -> Run:
    return lambda **paid: pt.design(*COINS, privacy=privacy, n=40, **words).run(BITS, **paid)


def change(**words: Any) -> Run:
    return lambda **paid: pt.detect_change(SERIES, *COINS, **{"epsilon": 2, **words}, **paid)


@cache
def wide(**words: Any) -> pt.results.EstimateDesign:
    return pt.design_estimate("normal(mean=?, sd=1)", between=(-200, 200), n=400, **words or {"epsilon": 1})


RUNS: dict[str, Run] = {
    **{f"test, {privacy}": decides(privacy) for privacy in ("pure(1)", "approx(1, 1e-6)", "tv(0.2)", "gdp(1)")},
    **{
        f"decision, {privacy}": decides(privacy, release="decision")
        for privacy in ("pure(1)", "approx(1, 1e-6)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.5)")
    },
    "decision, mixed": decides("pure(1)", release="decision", alpha=0.05),
    "test, add-remove": decides("pure(1)", neighbours="add-remove"),
    "test, ncllr": decides("pure(1)", test="ncllr"),
    "test, odd share": lambda **paid: pt.design(*COINS, epsilon=1, n=40).run(BITS, odd_epsilon=1, **paid),
    "estimate, odd share": lambda **paid: pt.estimate(BITS, "bernoulli(?)", epsilon=1, odd_epsilon=1, **paid),
    "estimate, two steps, odd share": lambda **paid: wide().run(MEANS, odd_epsilon=1, **paid),
    "change, public order, odd share": lambda **paid: pt.detect_change(
        TABLE, *COINS, epsilon=2, column="x", order="day", public_order=True, odd_epsilon=1, **paid
    ),
    "optimum": lambda **paid: pt.optimum(*COINS, epsilon=1, n=6).test.run(BITS[:6], **paid),
    "fit": lambda **paid: pt.design_fit([0.5, 0.5], distance=0.3, epsilon=1, n=40).run(BITS, **paid),
    "fit, zcdp": lambda **paid: pt.design_fit([0.5, 0.5], distance=0.3, privacy="zcdp(1)", n=40).run(BITS, **paid),
    "estimate": lambda **paid: pt.estimate(BITS, "bernoulli(?)", epsilon=1, **paid),
    "estimate, gdp": lambda **paid: pt.estimate(BITS, "bernoulli(?)", privacy="gdp(1)", **paid),
    "estimate, add-remove": lambda **paid: pt.design_estimate(
        "bernoulli(?)", epsilon=1, n=40, neighbours="add-remove"
    ).run(BITS, **paid),
    "estimate, two steps": lambda **paid: wide().run(MEANS, **paid),
    "table": lambda **paid: pt.tabulate(BITS, edges=[0, 1], epsilon=1, **paid),
    "median in steps": lambda **paid: pt.estimate(BITS, "median", between=(0, 1), epsilon=1, **paid),
    "table, gdp": lambda **paid: pt.tabulate(BITS, labels=[1], privacy="gdp(1)", **paid),
    "test by a table": lambda **paid: pt.design_table(n=40, labels=[0, 1], epsilon=1).power(*COINS).run(BITS, **paid),
    "groups": lambda **paid: pt.compare_groups(BITS, BITS[::-1], epsilon=1, **paid),
    "groups, named": lambda **paid: pt.compare_groups(
        pd.DataFrame({"x": BITS * 2, "arm": ["old"] * 40 + ["new"] * 40}), column="x", group="arm", epsilon=1, **paid
    ),
    "change, blocks": change(method="blocks"),
    "change, direct": change(method="direct", assume_change=True),
    "change, paper": change(method="paper"),
    "change, gdp": change(epsilon=None, privacy="gdp(2)"),
    "change, public order": lambda **paid: pt.detect_change(
        TABLE, *COINS, epsilon=2, column="x", order="day", public_order=True, **paid
    ),
    "change, fit": lambda **paid: pt.detect_change(SERIES * 4, [0.9, 0.1], distance=0.7, epsilon=2, **paid),
    "changes": lambda **paid: pt.detect_change(SERIES, *COINS, epsilon=2, **paid, changes="several"),
}
BUDGETS = {
    "zcdp": "zcdp(100)",
    "renyi": "renyi(2, 100)",
    "kl": "kl(100)",
    "gdp": "gdp(100)",
    "approx": "approx(9, 0.5)",
}


def has_additions(name: str) -> bool:
    """Whether something is released besides the design's own answer."""
    return "odd share" in name or "public order" in name


def budget_of(name: str) -> str:
    return next((budget for word, budget in BUDGETS.items() if word in name), "tv(0.9)" if "tv" in name else "100")


def ledger_for(name: str, folder: Path) -> pt.Ledger:
    found = pt.Ledger(folder / "ledger.db")
    neighbours = {"neighbours": "add-remove"} if "add-remove" in name else {}
    found.grant("d", privacy=budget_of(name), **neighbours)
    return found


def on_record(ledger: pt.Ledger, request: str = "r") -> Any:
    """All that is on record as drawn for a request: what was drawn with the charge, and after it."""
    drawn = [one for one in ledger.history("d") if one.request == request and one.kind in ("charge", "draw")]
    return drawn[-1].about["draw"] if drawn else None


DESIGNS: tuple[type[Any], ...] = (
    pt.results.PrivateTest,
    HistogramTest,
    pt.results.FitTest,
    pt.results.EstimateDesign,
    pt.results.GroupsDesign,
    pt.results.ChangePlan,
    pt.results.TableDesign,
    pt.results.TableTest,
    pt.results.SteppedDesign,
)


def kinds(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*map(kinds, kind.__subclasses__()))


def test_every_design_is_here() -> None:
    """Each class of the package that can be run on data is run below."""
    concrete = {one for one in kinds(Design) if not one.__abstractmethods__ and one.__module__.startswith("privatest")}
    assert concrete == set(DESIGNS)


class Failed(Exception):
    pass


def broken(patch: pytest.MonkeyPatch) -> None:
    """Every release of every design fails."""
    for one in DESIGNS:
        patch.setattr(one, "release", lambda *_, **__: (_ for _ in ()).throw(Failed))


def unread(patch: pytest.MonkeyPatch) -> None:
    """Nothing of the data may be read, nor drawn: but for a public order, no source is opened at all."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the data were read, or drawn from, a second time")

    for name in ("total", "series", "histogram", "block_totals"):
        patch.setattr(Column, name, refuse)
    for one in DESIGNS:
        patch.setattr(one, "draw", refuse)
    for name in ("below", "bits"):
        patch.setattr(type(system_source), name, refuse)


@pytest.mark.parametrize("name", RUNS)
def test_a_release_that_fails_is_made_of_the_same_draw_later(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flint" if any(word in name for word in ("zcdp", "renyi", "kl", "gdp", "approx")) else "json")
    ledger = ledger_for(name, tmp_path)
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r"}
    for attempt in range(3):
        with monkeypatch.context() as patch:
            broken(patch)
            if attempt:
                unread(patch)
            with pytest.raises(Failed):
                RUNS[name](**paid)
    draw, spent = on_record(ledger), ledger.spent("d")
    with monkeypatch.context() as patch:
        unread(patch)
        found = RUNS[name](**paid)
        again = RUNS[name](**paid)
    assert found == again
    assert found.receipt.replayed
    assert not found.receipt.read
    # The answer is that of the draw on record, and the draw is all it is made of.
    told = found.design.release(draw[0] if has_additions(name) else draw)
    same = [
        one
        for one in vars(found)
        if one not in ("receipt", "design", "drawn")
        and not (has_additions(name) and one.startswith(("odd_", "order_")))
    ]
    assert {one: getattr(found, one) for one in same if one not in ("epsilon", "privacy")} == {
        one: getattr(told, one) for one in same if one not in ("epsilon", "privacy")
    }
    if "public order" in name and found.index is not None:
        assert found.order_value in range(2000, 2120)
    assert ledger.spent("d") == spent
    assert ledger.verify() == 2 + found.design.steps
    assert ("two steps" in name) == (found.design.steps == 2)


@pytest.mark.parametrize("name", RUNS)
def test_a_draw_is_plain_and_a_release_of_it_needs_nothing_else(name: str, tmp_path: Path) -> None:
    """A draw survives JSON as it is, and a design read from its document makes the same release of it."""
    pytest.importorskip("flint" if any(word in name for word in ("zcdp", "renyi", "kl", "gdp", "approx")) else "json")
    ledger = ledger_for(name, tmp_path)
    found = RUNS[name](ledger=ledger, dataset="d", request="r")
    draw = on_record(ledger)
    assert json.loads(json.dumps(draw, allow_nan=False)) == draw
    own = draw[0] if has_additions(name) else draw
    document = json.loads(found.design.to_json())
    assert type(found.design).from_dict(document).release(own) == found.design.release(own)
    if name.startswith("decision") and any(word in name for word in ("gdp", "zcdp", "renyi", "kl")):
        assert draw in ("null", "alternative"), "of these notions nothing but the decision may leave"


@pytest.mark.parametrize("error", [Failed, KeyboardInterrupt, MemoryError, SystemExit])
def test_the_first_of_two_draws_is_on_record_before_anything_is_made_of_it(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed between the draws takes its time by the first one, and may fail: it is not drawn again."""
    ledger = ledger_for("estimate", tmp_path)
    paid: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r"}
    first = None
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(pt.results.EstimateDesign, "second_step", lambda *_: (_ for _ in ()).throw(error))
            if first is not None:
                patch.setattr(Location, "chosen", lambda *_: pytest.fail("drawn a second time"))
            with pytest.raises(error) as raised:
                RUNS["estimate, two steps"](**paid)
        assert "stays charged" in (charge_note(raised.value) or "")
        assert first in (None, on_record(ledger))
        first = on_record(ledger)
    assert len(first) == 2
    assert ledger.spent("d") == 1
    with monkeypatch.context() as patch:
        patch.setattr(Location, "chosen", lambda *_: pytest.fail("drawn a second time"))
        found = RUNS["estimate, two steps"](**paid)
        unread(patch)
        assert RUNS["estimate, two steps"](**paid) == found
    assert (found.receipt.replayed, found.receipt.read) == (True, True)
    assert "were not read" not in found.receipt.note
    assert on_record(ledger)[:2] == first
    assert len(on_record(ledger)) == 3
    assert (ledger.spent("d"), ledger.verify()) == (1, 4)


def test_a_second_step_reads_what_was_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another file, which belongs to nobody's budget or to another's."""
    ledger = ledger_for("estimate", tmp_path)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_text("\n".join(["x", *map(str, MEANS)]))
    paid: dict[str, Any] = {"column": "x", "ledger": ledger, "dataset": "d", "request": "r"}
    with monkeypatch.context() as patch:
        patch.setattr(pt.results.EstimateDesign, "second_step", lambda *_: (_ for _ in ()).throw(Failed))
        with pytest.raises(Failed):
            wide().run(files[0], **paid)
    first = on_record(ledger)
    with pytest.raises(RequestConflict, match=r"charged for '.*a\.csv', and the second step .*b\.csv' cannot be read"):
        wide().run(files[1], **paid)
    assert on_record(ledger) == first
    assert wide().run(files[0], **paid) == wide().run(files[1], **paid)  # the second time the answer is on record


# What "fails or not" tells --------------------------------------------------------------------------------------------


Law = dict[Any, Fraction]


def randomized(bit: int) -> Law:
    """Randomised response at epsilon = log 3, the mechanism: the answer is the bit with probability 3/4."""
    return {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}


def asked(law: Law, fails: Callable[[int, int], bool], times: int, *, draws_again: bool) -> Law:
    """Joint law of all that is seen of one request, asked so many times: which attempts failed, and the answer.

    Args:
        law: of one draw.
        fails: whether making a release of this draw fails at this attempt.
        times: attempts; none is made after an answer.
        draws_again: whether each attempt draws anew, as before; else the first draw stays.
    """
    seen: Law = {}

    def attempt(number: int, probability: Fraction, draw: int | None, report_partial: tuple[Any, ...]) -> None:
        if number == times:
            seen[report_partial] = seen.get(report_partial, Fraction(0)) + probability
            return
        for value, chance in ({draw: Fraction(1)} if draw is not None and not draws_again else law).items():
            if fails(value, number):
                attempt(number + 1, probability * chance, value, (*report_partial, "failed"))
            else:
                told = (*report_partial, value)
                seen[told] = seen.get(told, Fraction(0)) + probability * chance

    attempt(0, Fraction(1), None, ())
    return seen


def test_the_ledger_has_the_law_of_the_recorded_draw(tmp_path: Path) -> None:
    """The code itself: every branch of two attempts whose release fails for a draw of 1."""
    for bit in (0, 1):
        seen: Law = {}
        for number, (first, second) in enumerate(itertools.product((0, 1), repeat=2)):
            coins = iter((first, second))
            ledger = pt.Ledger(tmp_path / f"{bit} {number}.db")
            ledger.grant("d", epsilon=2)
            said: list[Any] = []

            def release(draw: int, said: list[Any] = said) -> dict[str, int]:
                if draw and not said:
                    raise Failed
                return {"answer": draw}

            ask: dict[str, Any] = {"dataset": "d", "request": "r", "epsilon": math.log(3), "design": "d"}
            for _ in range(2):
                try:
                    said.append(ledger.perform(**ask, draw=partial(next, coins), release=release)["answer"])
                    break
                except Failed:
                    said.append("failed")
            law = randomized(bit)
            seen[tuple(said)] = seen.get(tuple(said), Fraction(0)) + law[first] * law[second]
        assert seen == asked(randomized(bit), lambda v, k: bool(v) and k == 0, 2, draws_again=False)


# Interrupted at random instants ---------------------------------------------------------------------------------------


def interrupted(ask: Callable[[], Any], after: float) -> Any:
    """What ``ask`` returns; KeyboardInterrupt where it takes longer than this."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        return ask()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def killed(ask: Callable[[], Any], after: float) -> Any:
    """The same in a process of its own, killed with SIGKILL; where it came to its end, ask again here."""
    process = os.fork()
    if not process:
        try:
            ask()
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(process, signal.SIGKILL)
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        raise KeyboardInterrupt
    return ask()


def interruptions(runs: int, seed: int, folder: Path, stopped: Callable[..., Any] = interrupted) -> Counter[str]:
    """Ask until there is an answer, interrupted at random instants of a run; the answer is that of the first draw."""
    rng, found = random.Random(seed), Counter[str]()
    ledger = pt.Ledger(folder / "interrupted.db")
    ledger.grant("d", privacy="zcdp(1000000)")  # everything converts into it
    asked: list[tuple[Any, tuple[Any, ...]]] = [
        (pt.design(*COINS, epsilon=1, n=40), (BITS,)),
        (pt.design(*COINS, privacy="zcdp(0.5)", n=40, release="decision"), (BITS,)),
        (pt.design_change(*COINS, epsilon=2, n=120), (SERIES,)),
        (pt.design_change(*COINS, epsilon=2, n=120, changes="several"), (SERIES,)),
        (pt.design_fit([0.5, 0.5], distance=0.3, epsilon=1, n=40), (BITS,)),
        (pt.design_estimate("bernoulli(?)", privacy="gdp(1)", n=40), (BITS,)),
        (wide(), (MEANS,)),
        (pt.design_groups(n=(40, 40), epsilon=1), (BITS, BITS[::-1])),
    ]
    steps = 0
    for number in range(runs):
        made, data = asked[number % len(asked)]
        paid: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": f"r{number}"}
        recorded, longest = None, 0.06
        while True:
            try:
                answer = stopped(partial(made.run, *data, **paid), rng.random() * longest)
                break
            except (KeyboardInterrupt, AssertionError) as error:
                if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__context__, KeyboardInterrupt):
                    raise  # else SQLAlchemy asserted something in what the interrupt cut short
                found["interrupted"] += 1
                longest *= 1.2
            now = on_record(ledger, f"r{number}")
            found["interrupted after the draw was recorded"] += now is not None
            assert recorded is None or _goes_on(recorded, now, made), f"{made.KIND}: another draw"
            recorded = now
        drawn = on_record(ledger, f"r{number}")
        found["answered"] += 1
        kept = recorded is None or _goes_on(recorded, drawn, made)
        found["answer is that of the recorded draw"] += kept and answer == made.release(drawn)
        steps += made.steps
    assert ledger.verify() == 1 + runs + steps
    return found


def _goes_on(before: Any, now: Any, design: Any) -> bool:
    """Whether a draw is the one of before; of two steps, perhaps with the second one."""
    return bool(now == before or (design.steps == 2 and now[:-1] == before))


# Where the interrupt meets a callback of the garbage collector, Python drops it and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_that_is_interrupted_anywhere_has_one_draw(tmp_path: Path, show: Callable[[str], None]) -> None:
    found = interruptions(16, 7, tmp_path)
    show(str(dict(found)))
    assert found["answer is that of the recorded draw"] == found["answered"] == 16


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        how = killed if "kill" in sys.argv else interrupted
        print(dict(interruptions(int(sys.argv[1]), random.SystemRandom().randrange(10**6), Path(folder), how)))
