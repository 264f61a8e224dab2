"""Change points: the promise and the released sums are drawn, at the right places."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import pictures
from privatest.streams import Sequential
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
    found = pt.results.ChangePoint((130,), ("null", "alternative"), 25, 0.1, None, epsilon=0.5, method="direct", n=235)
    axes = found.plot()
    axes.figure.canvas.draw()
    assert band(axes, "\u00b125") == (105, 155)
    assert axes.lines[0].get_xdata()[0] == 130
    assert axes.get_xlim() == (0, 235)
    near_the_end = pt.results.ChangePoint(
        (230,), ("null", "alternative"), 25, 0.1, None, epsilon=0.5, method="direct", n=235
    ).plot()
    assert band(near_the_end, "\u00b125") == (205, 235)


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
