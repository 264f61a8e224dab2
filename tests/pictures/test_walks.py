"""Pictures of sequential tests: what is in them, and that it is what was released."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.errors import InvalidInput
from privatest.sequential import Sequential, Verdict
from privatest.sequential.boundaries import Boundaries
from tests.sequential.plans import small_plan


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


def test_long_walks_show_the_newest_blocks() -> None:
    plan = small_plan(Fraction(1), (3, 2), Boundaries(-2500, 2500))
    run = Sequential.of(plan, rng=np.random.default_rng(1))
    run.update([0, 1] * 300)
    walk = lines(run.plot())["log e-value after each block"]
    assert len(walk.get_xdata()) == 256
    assert walk.get_xdata()[-1] == plan.records(run._progress.blocks)


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
