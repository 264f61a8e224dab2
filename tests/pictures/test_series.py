"""Change points: the promise and the released sums are drawn, at the right places."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import pictures
from privatest.errors import InvalidInput
from privatest.streams import Sequential, Verdict
from privatest.streams.sequential_plan import Boundaries
from tests.pictures import artists
from tests.sequential.plans import small_plan

SUMS = (12.0, 9.5, 11.0, -8.0, -10.5, -3.25)


def band(axes: Any, start: str) -> tuple[float, float]:
    (found,) = artists.labelled(axes, start)
    # A Rectangle, or before Matplotlib 3.9 a Polygon.
    ends = found.get_path().get_extents(found.get_patch_transform())
    return ends.x0, ends.x1


def test_the_index_and_its_accuracy() -> None:
    found = pt.results.ChangePoint(130, 25, 0.1, None, epsilon=0.5, method="direct", n=235)
    axes = found.plot()
    axes.figure.canvas.draw()
    assert band(axes, "\u00b125") == (105, 155)
    assert axes.lines[0].get_xdata()[0] == 130
    assert axes.get_xlim() == (0, 235)
    near_the_end = pt.results.ChangePoint(230, 25, 0.1, None, epsilon=0.5, method="direct", n=235).plot()
    assert band(near_the_end, "\u00b125") == (205, 235)


def test_no_change_has_no_line() -> None:
    axes = pt.results.ChangePoint(None, 25, 0.1, False, epsilon=0.5, method="blocks", n=235, false_alarm=0.05).plot()
    axes.figure.canvas.draw()
    assert not axes.lines
    assert "No change" in axes.get_title(loc="left")
    simulated = pt.results.ChangePoint(3, 25, 0.1, None, epsilon=0.5, method="blocks", n=235, simulated=True).plot()
    assert "SIMULATED" in simulated.get_title(loc="left")


def test_noisy_sums_are_bars_of_their_blocks() -> None:
    found = pt.results.ChangePoint(130, 25, 0.1, None, epsilon=0.5, method="blocks", n=249, block=40, sums=SUMS)
    axes = found.plot()
    axes.figure.canvas.draw()
    bars = sorted((bar.get_x(), bar.get_width(), bar.get_height()) for part in axes.containers for bar in part)
    assert [height for _, _, height in bars] == list(SUMS)
    assert [left for left, _, _ in bars] == [4 + 40 * j for j in range(6)]
    assert {width for _, width, _ in bars} == {40}


def test_a_real_detection_draws_its_sums() -> None:
    plan = pt.design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, method="blocks")
    found = plan.run([0] * 100 + [1] * 100)
    axes = found.plot()
    assert found.sums is not None
    heights = {bar.get_x(): bar.get_height() for part in axes.containers for bar in part}
    assert [heights[left] for left in sorted(heights)] == [value for value in found.sums if value != 0]


@pytest.mark.parametrize("false_alarm", [None, 0.05])
def test_a_plan_s_curve_crosses_beta_at_the_accuracy(false_alarm: float | None) -> None:
    asked: dict[str, Any] = {"false_alarm": false_alarm, "assume_change": false_alarm is None}
    plan = pt.design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, **asked)
    axes = plan.plot()
    axes.figure.canvas.draw()
    (line,) = artists.labelled(axes, "index further off" if false_alarm is None else "either")
    distances, bound = line.get_data()
    assert min(a for a, b in zip(distances, bound, strict=True) if b <= plan.beta) == plan.accuracy
    (accuracy,) = artists.labelled(axes, "accuracy")
    assert accuracy.get_xdata()[0] == plan.accuracy
    if false_alarm is not None:
        (missed,) = artists.labelled(axes, "change missed")
        a, shown = (values[-1] for values in missed.get_data())
        assert shown == pytest.approx(max(1 - plan.power_after(int(a)), 1e-4))


def test_monitors() -> None:
    alarm = SimpleNamespace(index=4130, accuracy=50, seen=4240)
    watch = SimpleNamespace(trace=SUMS, block=40, seen=4243, alarm=alarm, epsilon=0.5, private=True)
    axes = pictures.monitor(watch)
    axes.figure.canvas.draw()
    lefts = sorted(bar.get_x() for part in axes.containers for bar in part)
    assert lefts == [4000, 4040, 4080, 4120, 4160, 4200]
    assert band(axes, "\u00b150") == (4080, 4180)
    lines = {line.get_label(): line.get_xdata()[0] for line in axes.lines}
    assert lines["change at 4130"] == 4130
    assert lines["alarm after 4240"] == 4240
    quiet = pictures.monitor(SimpleNamespace(trace=SUMS[:2], block=40, seen=97, alarm=None, epsilon=0.5, private=True))
    assert "no alarm in 97" in quiet.get_title(loc="left")
    empty = pictures.monitor(SimpleNamespace(trace=[], block=40, seen=0, alarm=None, epsilon=0.5, private=True))
    empty.figure.canvas.draw()


def test_a_real_monitor_draws_what_it_released() -> None:
    rng = np.random.default_rng(5)
    watch = pt.Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=rng)
    watch.update([0, 0, 1, 0, 0] * 60)
    alarm = watch.update([1, 1, 0, 1, 1] * 60)
    assert alarm is not None
    axes = watch.plot()
    axes.figure.canvas.draw()
    heights = {bar.get_x(): bar.get_height() for part in axes.containers for bar in part}
    assert [heights[left] for left in sorted(heights)] == [value for value in watch.trace if value != 0]
    assert max(heights) == alarm.seen - watch.block
    assert "SIMULATED" in axes.get_title(loc="left")
    bits = pt.Monitor({"a": 0.5, "b": 0.5}, distance=0.4, epsilon=2, rng=rng)
    bits.update(["a", "b"] * bits.block)
    assert bits.plot().get_ylabel() == f"bit of {bits.block} records"


@pytest.mark.parametrize("simulated", [False, True])
def test_an_alarm_by_itself(simulated: bool) -> None:
    axes = pt.results.Alarm(510, 30, 560, simulated=simulated).plot()
    axes.figure.canvas.draw()
    assert band(axes, "\u00b130") == (480, 540)
    assert [line.get_xdata()[0] for line in axes.lines] == [510, 560]
    assert ("SIMULATED" in axes.get_title(loc="left")) == simulated


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): line for line in axes.get_lines()}


def test_the_walk_starts_at_nothing_and_ends_at_the_verdict() -> None:
    plan = small_plan(Fraction(2), (5, 3), Boundaries(-700, 700))
    run = Sequential.of(plan, rng=np.random.default_rng(1))
    empty = run.plot()
    assert "open after 0 records" in empty.get_title(loc="left")
    verdict = run.update([1] * 200)
    assert verdict is not None
    for axes in (run.plot(), verdict.plot()):
        found = lines(axes)
        walk = found["log e-value after each block"]
        assert walk.get_ydata().tolist() == pytest.approx([0.0, *run.walk])
        assert walk.get_xdata()[:3].tolist() == [0, 5, 8]
        assert walk.get_xdata()[-1] == verdict.seen
        assert f"verdict after {verdict.seen}" in found
        assert "SIMULATED" in axes.get_title(loc="left")


def test_how_long_it_takes() -> None:
    plan = small_plan(Fraction(2), (5, 3), Boundaries(-300, 300))
    axes = plan.plot()
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert any("under P" in text for text in texts)
    assert any("under Q" in text for text in texts)
    assert any("fixed number: 9" in text for text in texts)


def test_a_verdict_from_a_document_has_no_walk() -> None:
    with pytest.raises(InvalidInput, match=r"run\.plot\(\)"):
        Verdict("null", 3, 0.1).plot()
