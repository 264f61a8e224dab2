"""Blocks, their sums, votes and files at their edges: by hand, one step on each side."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import math
import os
import stat
import sys
from dataclasses import replace
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
from privatest.streams import state as state_file
from privatest.streams.monitor import Targets, pair_watch
from privatest.streams.state import StateFile
from privatest.streams.stream import SumBlocks
from privatest.streams.watch import (
    BitBlocks,
    Cusum,
    Intervals,
    Watch,
    blocks_from_dict,
    rule_from_dict,
)

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


@pytest.mark.parametrize(
    ("floor", "vote"),
    [(-100, 9), (-4, 9), (-3, 5), (0, 5), (1, 2), (4, 2), (5, -7), (8, -7), (9, -7), (100, -7)],
)
def test_the_vote_of_a_noisy_total(floor: int, vote: int) -> None:
    """Below -3, then four values a bin; T and T + 1/2 have one floor."""
    for doubled in (2 * floor, 2 * floor + 1):
        assert blocks().vote(doubled) == vote
        assert blocks().votes(np.array([doubled, 2 * floor])).tolist() == [vote, vote]


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


@pytest.mark.parametrize(
    ("key", "value"), [("block", 0), ("bin_width", 0), ("block", 1.0), ("first", True), ("block", -1)]
)
def test_documents_of_blocks_at_their_edges(key: str, value: Any) -> None:
    document = json.loads(json.dumps(blocks(block=1, bin_width=1).to_dict()))
    found = blocks_from_dict(document)
    assert isinstance(found, SumBlocks)
    assert (found.block, found.bin_width) == (1, 1)
    with pytest.raises(InvalidDocument, match="whole number"):
        blocks_from_dict(document | {key: value})


def test_files_of_a_monitor_are_the_users_own(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = StateFile(tmp_path / "state")
        file.write("name", 0, "{}")
    finally:
        os.umask(before)
    for name in ("state", "state.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    file.close()


def watch_document() -> dict[str, Any]:
    pair = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
    return json.loads(pair_watch(pair, Fraction(1), "cusum", Targets(0.1, 1e4, None)).text)  # type: ignore[no-any-return]


def test_blocks_and_rules_of_an_unknown_kind_are_named() -> None:
    document = watch_document()
    with pytest.raises(InvalidDocument, match=r"^Unknown kind of blocks 'odd'"):
        blocks_from_dict({**document["blocks"], "kind": "odd"})
    with pytest.raises(InvalidDocument, match=r"^The noise of a monitor must be of kind 'tulap'"):
        blocks_from_dict({**document["blocks"], "noise": {"kind": "laplace", "scale": "100/1"}})
    with pytest.raises(InvalidDocument, match=r"^Unknown rule 'guess'"):
        rule_from_dict({"kind": "guess"})
    assert rule_from_dict({"kind": "cusum", "threshold": 0}).to_dict() == {"kind": "cusum", "threshold": 0}
    with pytest.raises(InvalidDocument):
        rule_from_dict({"kind": "cusum", "threshold": -1})


@pytest.mark.parametrize(
    ("name", "value", "passes"),
    [
        *[("beta", 1e-9, True), ("beta", 0, False), ("beta", -0.1, False), ("beta", math.inf, False)],
        *[("expected_delay", 0.5, True), ("expected_delay", 0.0, False), ("expected_delay", math.nan, False)],
        *[("accuracy", 0, True), ("accuracy", -1, False), ("accuracy", 1.0, False), ("accuracy", True, False)],
        *[("null", "P", True), ("null", 5, False), ("recommended_interval", None, True)],
        *[
            ("recommended_interval", 5, True),
            ("recommended_interval", 5.0, False),
            ("recommended_interval", "5", False),
        ],
    ],
)
def test_documents_of_monitors_at_their_edges(name: str, value: Any, passes: bool) -> None:
    document = watch_document()
    assert name in document
    if passes:
        assert getattr(Watch.from_dict(document | {name: value}), name) == value
    else:
        with pytest.raises(InvalidDocument, match=r"^The design of the monitor does not fit together"):
            Watch.from_dict(document | {name: value})


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({}, True),
        ({"zero": 0}, True),
        ({"zero": 5}, True),
        ({"zero": 6}, False),
        ({"level": 0}, True),
        ({"blocks": 2}, False),
    ],
)
def test_progress_of_a_cusum_at_its_edges(changes: dict[str, int], passes: bool) -> None:
    rule, document = Cusum(7), {"blocks": 5, "level": 3, "zero": 3} | changes
    if passes:
        assert rule.progress_to_dict(rule.progress_from_dict(document)) == document
    else:
        with pytest.raises(InvalidDocument, match=r"^The progress of the monitor does not fit together"):
            rule.progress_from_dict(document)


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        *[({}, True), ({"last": []}, True), ({"last": [1, -1]}, False), ({"last": [1, -1, 1, 1]}, False)],
        *[({"last": [1, 0, 1]}, False), ({"present": [2]}, False), ({"present": []}, True)],
    ],
)
def test_progress_of_intervals_at_its_edges(changes: dict[str, Any], passes: bool) -> None:
    rule, document = Intervals(3), {"blocks": 5, "last": [1, -1, 1], "present": [-1, 1]} | changes
    if passes:
        assert rule.progress_to_dict(rule.progress_from_dict(document)) == document
    else:
        with pytest.raises(InvalidDocument, match=r"^The progress of the monitor does not fit together"):
            rule.progress_from_dict(document)


def test_a_state_is_kept_in_a_file_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(InvalidInput, match="cannot be kept there"):
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


def test_the_text_of_a_monitors_design_is_one_text() -> None:
    watch = Watch.from_dict(watch_document())
    assert watch.text == json.dumps(json.loads(watch.text), sort_keys=True, separators=(",", ":"))
    assert list(json.loads(watch.text)) == sorted(watch.to_dict())
    with pytest.raises(ValueError, match="JSON"):
        _ = replace(watch, beta=math.nan).text


@pytest.mark.parametrize("doubled", [-7, 0, 1, 12])
def test_the_trace_is_the_noisy_sum_in_nats(doubled: int) -> None:
    """Releases are twice the noisy total."""
    assert blocks().trace(doubled) == pytest.approx(float(4 * SCORE.origin + SCORE.step * Fraction(doubled, 2)))


def test_blocks_of_symbols_refuse_a_column_of_another_kind() -> None:
    """Each of its records would be taken for the most likely symbol, and the stream never change."""
    watched = BitBlocks(voter_of(design_fit([0.5, 0.5], distance=0.4, epsilon=1, n=4)), -1, 2)
    assert watched.values(open_source(np.array([0, 1, 1]))).tolist() == [0, 1, 1]
    with pytest.raises(InvalidData):
        watched.values(open_source(np.array(["a", "b", "b"])))


def test_where_there_are_no_file_locks_states_are_kept_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = importlib.util.spec_from_file_location("elsewhere", state_file.__file__)
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
    assert state_file.fcntl is fcntl
