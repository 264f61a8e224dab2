"""Progress is told to whoever asked, in order, and to nobody else."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

import privatest as pt
from privatest import headway
from privatest.headway import Headway, each, part


def test_a_plan_tells_how_far_it_is() -> None:
    told: list[Headway] = []
    with pt.progress(told.append):
        pt.plan("poisson(2.0625)", "poisson(3.0625)", epsilon=1)  # asked nowhere else, so not remembered
    assert {step.what for step in told} == {"planning"}
    assert [step.done for step in told] == sorted(step.done for step in told)
    assert all(0 <= step.done <= step.total for step in told)
    assert any(step.detail for step in told)


def test_a_curve_and_a_comparison_tell_their_parts() -> None:
    told: list[str] = []
    with pt.progress(lambda step: told.append(f"{step.what} {step.done}/{step.total}")):
        pt.power_curve([0.6, 0.4], [0.4, 0.6], epsilon=1, n=[5, 10])
    assert told == ["error rates 0/2", "error rates 1/2", "error rates 2/2"]


def test_nothing_is_told_outside() -> None:
    told: list[Headway] = []
    with pt.progress(told.append):
        pass
    list(each("later", [1, 2, 3]))
    assert told == []


def test_a_listener_can_end_the_computation_and_leaves_no_trace() -> None:
    def enough(_step: Headway) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pt.progress(enough):
        pt.sample_size("normal(0, 1)", "normal(1.0625, 1)", epsilon=1)
    told: list[Headway] = []
    with pt.progress(told.append), part("fresh", 2) as tell:
        tell(1)
    assert told == [Headway("fresh", 1, 2)]


def test_no_bar_where_nobody_looks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headway, "PATIENCE", 0.0)
    with pt.progress():
        list(each("squares", [1, 2]))
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    page = Terminal()
    monkeypatch.setattr(headway, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", page)
    with pt.progress():
        list(each("squares", [1, 2]))
    assert "squares" in page.getvalue()


def test_json_has_nothing_beside_it() -> None:
    words = ["curve", "--null", "bernoulli(0.6)", "--alternative", "bernoulli(0.4)", "--epsilon", "1", "--n", "5,9"]
    done = subprocess.run([sys.executable, "-m", "privatest", *words, "--json"], capture_output=True, text=True)
    assert done.stderr == ""
    assert json.loads(done.stdout)["n"] == [5, 9]
