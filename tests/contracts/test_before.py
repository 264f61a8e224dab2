"""What the version before wrote (tag pre-house): designs are read by this one, states of another format are refused.

``before/`` was written by that version's own code: designs of each kind, and the state of a monitor.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest.bounds import HistogramTest
from privatest.errors import InvalidDocument
from privatest.streams.state import FORMAT

BEFORE = Path(__file__).parent / "before"
DESIGNS = json.loads((BEFORE / "designs.json").read_text())
KINDS: dict[str, Any] = {"test": pt.PrivateTest, "histogram_test": HistogramTest, "fit": pt.FitTest}
COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_design_is_read_and_written_as_it_was(kind: str) -> None:
    design = KINDS[kind].from_dict(DESIGNS[kind])
    assert design.to_dict() == DESIGNS[kind]
    assert design.run(DATA[: design.n]).private


def test_a_design_made_now_is_the_one_made_then() -> None:
    assert pt.design_fit([0.8, 0.2], distance=0.3, epsilon=1, n=40, alpha=1 / 6).to_dict() == DESIGNS["fit"]
    assert pt.optimum(*COINS, epsilon=1, n=10).test.to_dict().keys() == DESIGNS["histogram_test"].keys()


def test_a_state_of_another_version_is_refused_by_its_format(tmp_path: Path) -> None:
    state = tmp_path / "monitor.json"
    text = (BEFORE / "monitor.json").read_text()
    assert FORMAT in text
    state.write_text(text.replace(FORMAT, "privatest/monitor/99"))
    with pytest.raises(InvalidDocument, match=r"'privatest/monitor/99', this version reads 'privatest/monitor/2'"):
        pt.Monitor.load(state)
