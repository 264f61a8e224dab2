"""Progress is told to whoever asked, in order, and to nobody else."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import pytest

import privatest as pt
from privatest import progress_events as headway
from privatest.progress_events import Headway, each, part


def test_a_plan_tells_how_far_it_is() -> None:
    told: list[Headway] = []
    with pt.progress(told.append):
        pt.plan("poisson(2.0625)", "poisson(3.0625)", epsilon=1)  # asked nowhere else, so not remembered
    assert {step.what for step in told} == {"planning"}
    assert [step.done for step in told] == sorted(step.done for step in told)
    assert all(0 <= step.done <= step.total for step in told)
    assert any(step.detail for step in told)


@pytest.mark.parametrize(
    ("what", "asked"),
    [
        ("records of the control group", lambda: GROUPS.sample_size(rate=0.2, lift=0.6)),
        ("records of an interval", lambda: ESTIMATE.sample_size(width=0.5, at=0.3)),
        ("records of a test of fit", lambda: pt.design_fit([0.5, 0.5], distance=0.4, epsilon=1).n),
        ("the bound", lambda: pt.lower_bound([0.2, 0.3, 0.5], [0.4, 0.3125, 0.2875], epsilon=2)),
        (
            "the number of records",
            lambda: pt.sample_size("normal(mean<=0, sd in [1, 2])", "normal(mean>=3, sd in [1, 2])", epsilon=1),
        ),
        (
            "tuning",
            lambda: pt.design("normal(0, sd in [0.5, 2])", "normal(mean in [2, 3], sd in [0.3, 1])", epsilon=1, n=9),
        ),
        ("the smallest epsilon", lambda: pt.min_epsilon([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], n=30)),
        ("block sizes", lambda: pt.Sequential([0.6, 0.4], [0.4, 0.6], epsilon=1, alpha=0.1, beta=0.1)),
        ("tests of blocks", lambda: pt.design_change([0.5, 0.5], distance=0.4, epsilon=2)),
    ],
)
def test_what_can_take_long_tells_how_far_it_is(what: str, asked: Callable[[], object]) -> None:
    told: list[Headway] = []
    with pt.progress(told.append):
        asked()
    steps = [step for step in told if step.what == what]
    assert len(steps) >= 2
    assert all(0 <= step.done <= step.total for step in steps)


GROUPS = pt.design_groups(n=(40, 40), epsilon=2)
ESTIMATE = pt.design_estimate("bernoulli(p=?)", between=(0, 1), epsilon=2, n=40)


def test_nothing_is_told_outside() -> None:
    told: list[Headway] = []
    with pt.progress(told.append):
        pass
    list(each("later", [1, 2, 3]))
    assert told == []


def test_a_long_computation_that_nobody_listens_to_says_once_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Terminal()
    monkeypatch.setattr(sys, "stderr", page)

    def compute() -> None:
        for _ in each("squares", [1, 2]):
            list(each("within", [3, 4]))

    compute()
    assert page.getvalue() == ""  # it took less than five seconds
    monkeypatch.setattr(headway, "SILENCE", 0.0)
    compute()
    assert page.getvalue() == "privatest computes squares: 0 of 2. `with pt.progress():` shows how far it is.\n"
    with pt.progress(lambda _headway: None):
        compute()
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # no terminal
    compute()
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
    assert page.getvalue().count("\n") == 1


def test_a_listener_can_end_the_computation_and_leaves_no_trace() -> None:
    def enough(_step: Headway) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pt.progress(enough):
        pt.sample_size("normal(0, 1)", "normal(1.0625, 1)", epsilon=1)
    told: list[Headway] = []
    with pt.progress(told.append), part("fresh", 2) as tell:
        tell(1)
    assert told == [Headway("fresh", 1, 2)]


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Terminal()
    monkeypatch.setattr(headway, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", page)
    with pt.progress():
        list(each("squares", [1, 2]))
    assert "squares" in page.getvalue()


def until(true: Callable[[], bool]) -> None:
    """Wait until another thread has done it, however busy the machine is."""
    end = time.monotonic() + 300
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_tells_nothing_has_a_bar_too_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Terminal()
    monkeypatch.setattr(headway, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "stderr", page)
    with pt.progress():
        until(lambda: "computing" in page.getvalue())
    drawn = page.getvalue()
    assert "computing" in drawn
    assert drawn.endswith(("\x1b[2K", "\x1b[?25h"))  # the line is erased, the cursor is back
    quick = Terminal()
    monkeypatch.setattr(headway, "PATIENCE", 30.0)
    monkeypatch.setattr(sys, "stderr", quick)
    with pt.progress():
        list(each("squares", [1, 2]))
    assert "squares" not in quick.getvalue()
