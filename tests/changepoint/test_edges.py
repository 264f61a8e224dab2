"""Blocks, their sums, votes and files at their edges: by hand, one step on each side."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privatest.changepoint.block_tests import voter_of
from privatest.engines import open_source
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.fit import design_fit
from privatest.hypotheses import make_pair
from privatest.privacy import Tulap
from privatest.scores import clamped_score
from privatest.scores.score import LARGEST_TOTAL
from privatest.streams import saved_state
from privatest.streams.blocks import SumBlocks
from privatest.streams.monitor_plan import BitBlocks
from privatest.streams.saved_state import StateFile

SCORE = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 5)


def blocks(**changes: Any) -> SumBlocks:
    settings = {
        "noise": Tulap(Fraction(1), 5),
        "block": 4,
        "first": -3,
        "bin_width": 4,
        "table": np.array([9, 5, 2, -7]),
    }
    return SumBlocks(SCORE, **settings | changes)  # type: ignore[arg-type]


def test_totals_of_a_block_have_room_for_its_noise() -> None:
    most = LARGEST_TOTAL // 4 // max(abs(SCORE.low), abs(SCORE.high))
    blocks(block=most)
    with pytest.raises(InvalidInput, match="the total could leave 64 bits"):
        blocks(block=most + 1)


def test_labels_that_are_numbers_are_scored_as_labels() -> None:
    score = clamped_score(make_pair({0.5: 0.2, "x": 0.8}, {0.5: 0.8, "x": 0.2}), (-1, 1), 5)
    made = SumBlocks(score, Tulap(Fraction(1), score.width), 4, 0, 1, np.array([1, -1]))
    expected = [int(score.table[score.cells.index_of(record)]) for record in (0.5, "x", 0.25)]  # type: ignore[attr-defined]
    assert made.values_of([0.5, "x", 0.25]).tolist() == expected
    assert made.values_of([0.5, 0.25]).tolist() == [expected[0], expected[2]]


def test_a_state_is_kept_in_a_file_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(InvalidInput, match="must be a file"):
            StateFile(tmp_path / name)
    file = StateFile(tmp_path / "state")
    file.write("a", 7, '{"id":"a","generation":7}')

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(InvalidDocument, match=r"^The state 'state' cannot be read: Permission denied"):
            file.read()
    file.close()
    assert file._remembered() == (None, 0)


def test_blocks_of_symbols_refuse_a_column_of_another_kind() -> None:
    """Each of its records would be taken for the most likely symbol, and the stream never change."""
    watched = BitBlocks(voter_of(design_fit([0.5, 0.5], distance=0.4, epsilon=1, n=4)), -1, 2)
    assert watched.values(open_source(np.array([0, 1, 1]))).tolist() == [0, 1, 1]
    with pytest.raises(InvalidData):
        watched.values(open_source(np.array(["a", "b", "b"])))


def test_where_there_are_no_file_locks_states_are_kept_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = importlib.util.spec_from_file_location("elsewhere", saved_state.__file__)
    assert spec is not None
    assert spec.loader is not None
    elsewhere = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    spec.loader.exec_module(elsewhere)
    assert elsewhere.fcntl is None
    file = elsewhere.StateFile(tmp_path / "state")
    file.write("a", 7, '{"id":"a","generation":7}')
    assert file.read() == {"id": "a", "generation": 7}
    file.close()
    assert saved_state.fcntl is fcntl
