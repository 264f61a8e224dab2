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
from privatest.changepoint.blocks import BitDesign, SuffixAlarm
from privatest.changepoint.detectors import law_of
from privatest.changepoint.direct import DirectDesign, DirectDetector
from privatest.engines import open_source
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.fit import design_fit
from privatest.hypotheses import make_pair
from privatest.laws.block_laws import ScoreLaw
from privatest.privacy import Tulap, seeded_source
from privatest.scores import Score, clamped_score
from privatest.scores.score import LARGEST_TOTAL
from privatest.streams import state as state_file
from privatest.streams import stream as open_block
from privatest.streams.monitor import Targets, pair_watch
from privatest.streams.state import StateFile
from privatest.streams.stream import OpenBits, OpenSum, Stream, SumBlocks, _after_fork
from privatest.streams.watch import (
    BitBlocks,
    Cusum,
    CusumProgress,
    Intervals,
    Watch,
    blocks_from_dict,
    rule_from_dict,
)

SCORE = clamped_score(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), (-1, 1), 5)
NUMBERS = clamped_score(make_pair("normal(0, 1)", "normal(1, 1)"), (-1, 1))


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


@pytest.mark.parametrize("score", [SCORE, NUMBERS], ids=["integers", "numbers"])
@pytest.mark.parametrize(
    "records", [[0.0, 1.0], [0, 1, 1], [0.5, float("nan"), -1e300], ["x", None, 1.0], []], ids=repr
)
def test_single_records_score_as_a_column_of_them(score: Score, records: list[Any]) -> None:
    made = SumBlocks(score, Tulap(Fraction(1), score.width), 4, 0, 1, np.array([1, -1]))
    one_by_one = [int(made.values_of([record])[0]) for record in records]
    assert made.values_of(records).tolist() == one_by_one
    numbers = [record if isinstance(record, int | float) else float("nan") for record in records]
    assert one_by_one == score.of_numbers(numbers).tolist()


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


def test_an_open_block_sums_whatever_the_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_block, "draw_blocks", lambda _, count, __: np.zeros(count, dtype=np.int64))
    monkeypatch.setattr(open_block, "noise_adder", lambda _, __: lambda totals: totals)
    source = seeded_source(np.random.default_rng(1))
    scores = np.array([1, 3, 5, 2, 4, 0, 1, 1, 5], dtype=np.int64)
    one = OpenSum(blocks(), source)
    one.extend(scores[:1])
    one.extend(scores[1:3])
    assert (one.start, one.count, one.end) == (0, 3, 3)
    assert one.close_one(scores[3:4]) == 2 * 11
    closed = one.close(scores[3:])
    assert closed.released.tolist() == [2 * 11, 2 * 6]
    assert (closed.rest.tolist(), closed.end(1), closed.end(2)) == ([5], 4, 8)
    one.go_to(8)
    assert (one.start, one.count, one.end) == (8, 0, 8)
    assert one.close_one(scores[:4]) == 2 * 11


def test_an_open_block_of_symbols_counts_them() -> None:
    test = design_fit([0.5, 0.5], distance=0.4, epsilon=1, n=4)
    one = OpenBits(BitBlocks(voter_of(test), -1, 2), seeded_source(np.random.default_rng(1)))
    one.go_to(8)
    one.extend(np.array([0, 1]))
    one.extend(np.array([1]))
    assert (one.start, one.count, one.end) == (8, 3, 11)
    closed = one.close(np.array([0, 0, 1, 1, 0, 1]))
    assert (len(closed.released), closed.rest.tolist(), closed.end(2)) == (2, [1], 16)


@pytest.mark.parametrize("level", [SCORE.high - 8, SCORE.low + 8])
def test_suffix_sums_whose_reach_divides_the_limit(level: int) -> None:
    """Steps of at most 8, a power of two: the last n that fits is one less than the quotient."""
    detector = DirectDetector(SCORE, DirectDesign(law_of(SCORE), Fraction(1), Fraction(level), 0.1, 1))
    detector.utilities(open_source(np.zeros(3)), 2**59 - 1)
    with pytest.raises(InvalidInput, match="scores up to 8: a sum could leave 64 bits"):
        detector.utilities(open_source(np.zeros(3)), 2**59)


@pytest.mark.parametrize(("low", "high", "level"), [(-7, 0, "5/3"), (0, 7, "-5/3"), (-7, 2, "1/9"), (-2, 7, "-1/9")])
def test_the_reach_of_a_step_is_that_of_the_farther_end(low: int, high: int, level: str) -> None:
    score = replace(SCORE, table=np.array([low, high, low]), support=np.array([low, high]))
    kappa = Fraction(level)
    detector = DirectDetector(score, DirectDesign(law_of(SCORE), Fraction(1), kappa, 0.1, 1))
    reach = int(max(abs(end - kappa) for end in (low, high)) * kappa.denominator)
    with pytest.raises(InvalidInput, match=f"scores up to {reach}: "):
        detector.utilities(open_source(np.zeros(3)), 2**62)


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


@pytest.mark.parametrize("successor", ["{}", '{"id":"a"}', '{"generation":8}', '{"id":"a","generation":"8"}'])
def test_a_successor_without_name_or_number_follows_nothing(successor: str, tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    file.write("a", 7, '{"id":"a","generation":7}')
    (tmp_path / "state.next").write_text(state_file.state_text(successor))
    assert file.read() == {"id": "a", "generation": 7}
    file.write("b", 0, "{}")
    assert file.read() == {}
    file.close()


def test_a_lock_is_closed_whatever_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StateFile(tmp_path / "state")
    taken, closed = file._lock, list[int]()
    assert taken is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        for number in (0, 5, -1):
            file._lock = number
            file.close()
            assert file._lock is None
    assert closed == [0, 5]
    os.close(taken)


def test_a_place_without_a_state_has_none(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "state")
    assert not file.exists()
    (tmp_path / "state.next").write_text("{")
    assert not file.exists()
    (tmp_path / "state.next").write_text(state_file.state_text('{"id":"a"}'))
    assert file.exists()
    file.close()


def test_a_state_whose_lock_is_held_elsewhere_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "state.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="is in use by another process"):
            StateFile(tmp_path / "state")
    StateFile(tmp_path / "state").close()


@pytest.mark.parametrize("seed", range(3))
def test_the_alarm_is_the_same_record_by_record_and_all_at_once(seed: int) -> None:
    watch = pair_watch(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), Fraction(1), "cusum", Targets(0.1, 1e4, None))
    records = np.array([0.0] * (7 * watch.block) + [1.0] * (60 * watch.block))
    one, all_at_once = (Stream(watch, {}, seeded_source(np.random.default_rng(seed))) for _ in range(2))
    for record in records.tolist():
        if one.take(record) is not None:
            break
    all_at_once.take_many(open_source(records))
    assert one.alarm is not None
    assert one.alarm == all_at_once.alarm
    assert one.alarm.index % watch.block == 0
    assert abs(one.alarm.index - 7 * watch.block) <= one.alarm.accuracy


def test_bits_are_wrong_as_often_as_they_are_said_to_be() -> None:
    design = BitDesign(4, 0.125, 0.25)
    found = design.alarm(0.1, 50)
    votes = np.array([1, -1], dtype=np.int64)
    expected = SuffixAlarm.calibrated(votes, np.array([0.125, 0.875]), np.array([0.75, 0.25]), 0.1, 50)
    for count in range(1, 12):
        old, new = np.ones(20, dtype=np.int64), np.append(np.ones(20, dtype=np.int64), np.zeros(count, dtype=np.int64))
        for bits in (old, new):
            assert found.fires(bits) == expected.fires(bits)
    np.testing.assert_array_equal(found.missed(np.arange(9)), expected.missed(np.arange(9)))


def test_the_window_of_an_index_holds_as_many_blocks_before_the_change_as_behind_it() -> None:
    """Blocks of one record: off by a or less, k* - a to k* + a - 1."""
    design = BitDesign(1, 0.125, 0.25)
    reach, laws = design._argmin
    curve = design.failures()
    for a in (1, 2, 5):
        inside = min(math.fsum(law[reach - a : reach + a].tolist()) for law in laws)
        assert curve.failures[curve.distances.tolist().index(a)] == pytest.approx(1 - inside, abs=1e-12)


@pytest.mark.parametrize(
    ("stride", "phases"),
    [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2, 3)), (9, (0, 2, 4, 6)), (100, (0, 25, 50, 75))],
)
def test_the_change_is_looked_for_at_every_quarter_of_a_stride(stride: int, phases: tuple[int, ...]) -> None:
    assert DirectDesign(law_of(SCORE), Fraction(1), Fraction(1, 2), 0.1, stride)._phases == phases


@pytest.mark.parametrize("beta", [0.3, 0.1, 0.01])
@pytest.mark.parametrize("stride", [1, 5, 1000])
def test_rough_curves_end_where_a_thousandth_of_the_failures_is_left(beta: float, stride: int) -> None:
    decay = 0.1
    found = DirectDesign(law_of(SCORE), Fraction(1), Fraction(1, 2), decay, stride).rough(beta, runs=10)
    cells = len(found.distances)
    assert found.distances.tolist() == [stride * k for k in range(cells)]
    assert math.exp(-decay * stride * cells) <= beta / 1000
    assert cells == 4 or math.exp(-decay * stride * (cells - 1)) > beta / 1000
    assert cells >= 4


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


def test_a_stream_is_one_processs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a child of a fork the next record meets the check, and no lock of the parent is waited for."""
    watch = pair_watch(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), Fraction(1), "cusum", Targets(0.1, 1e4, None))
    stream = Stream(watch, {}, seeded_source(np.random.default_rng(1)))
    stream.take(0.0)
    assert stream._room > 0
    stream._turn.acquire()
    _after_fork()
    assert stream._room == 0
    assert stream._turn.acquire(blocking=False)
    stream._turn.release()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for take in (lambda: stream.take(0.0), lambda: stream.take_many(open_source(np.zeros(3))), stream.check):
        with pytest.raises(InvalidInput, match=r"(?i)process"):
            take()


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


def test_scores_that_never_tell_have_no_accuracy() -> None:
    design = replace(DirectDesign(law_of(SCORE), Fraction(1), Fraction(1, 2), 0.1, 1), decay=0.0)
    found = design.failures(0.1, 1000)
    assert (found.distances.tolist(), found.failures.tolist(), found.runs) == ([0], [1.0], 1000)
    assert found.accuracy(0.99) is None


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


@pytest.mark.parametrize(("interval", "passes"), [(0, False), (1, True), (-1, False)])
def test_intervals_have_a_block_at_least(interval: int, passes: bool) -> None:
    document = {"kind": Intervals.kind, "interval": interval}
    if passes:
        assert rule_from_dict(document) == Intervals(interval)
    else:
        with pytest.raises(InvalidDocument, match="interval"):
            rule_from_dict(document)


def test_blocks_of_symbols_refuse_a_column_of_another_kind() -> None:
    """Each of its records would be taken for the most likely symbol, and the stream never change."""
    watched = BitBlocks(voter_of(design_fit([0.5, 0.5], distance=0.4, epsilon=1, n=4)), -1, 2)
    assert watched.values(open_source(np.array([0, 1, 1]))).tolist() == [0, 1, 1]
    with pytest.raises(InvalidData):
        watched.values(open_source(np.array(["a", "b", "b"])))


@pytest.mark.parametrize("stride", [1, 3, 5])
def test_the_index_is_counted_in_records(stride: int) -> None:
    """Of a change that leaves no doubt, at record 30."""
    detector = DirectDetector(SCORE, DirectDesign(law_of(SCORE), Fraction(1000), Fraction(1, 2), 0.1, stride))
    records = open_source(np.repeat([0, 1], [30, 30]))
    middle = Fraction(SCORE.low + SCORE.high, 2)
    detector = replace(detector, design=replace(detector.design, level=middle))
    assert detector.draw(records, 60, seeded_source(np.random.default_rng(1))) == 30


def test_scores_that_never_tell_are_looked_at_record_by_record() -> None:
    less, more = 0.5 - 1e-9, 0.5 + 1e-9
    law = ScoreLaw(np.array([0, 1]), np.array([less, more]), np.array([more, less]), 1)
    design = DirectDesign.of(law, Fraction(1), 0.1)
    assert design.decay <= 0
    assert design.stride == 1


@pytest.mark.parametrize("votes", [[2, 1], [0, 3], [1, -1, 2], [-5, 2, -1, 0, 4], [-3], [3, -9, 1]])
@pytest.mark.parametrize("level", [0, 1, 4])
def test_votes_add_up_alike_one_by_one_and_all_at_once(votes: list[int], level: int) -> None:
    rule, start = Cusum(6), CusumProgress(9, level, 9 if level == 0 else 5)
    one, alarm = start, None
    for place, vote in enumerate(votes):
        one, raised = rule.feed_few(one, [vote])
        if raised is not None:
            alarm = place
            break
    assert rule.feed(start, np.array(votes)) == (one, alarm) == rule.feed_few(start, votes)


def test_a_state_that_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    stream = Stream(Watch.from_dict(watch_document()), {"beta": math.nan}, seeded_source(np.random.default_rng(1)))
    with pytest.raises(ValueError, match="JSON"):
        stream.save(tmp_path / "state")
    assert not (tmp_path / "state").exists()
    assert stream.file is None  # as before


def test_a_change_at_the_very_beginning_is_placed_there() -> None:
    rule = Cusum(4)
    assert rule.progress_to_dict(rule.begin) == {"blocks": 0, "level": 0, "zero": 0}
    progress, hit = rule.feed(rule.begin, np.array([3, 2, 9]))
    assert (progress, progress.start, hit) == (CusumProgress(2, 5, 0), 0, 1)
    one = rule.begin
    for vote in (3, 2):
        one, alarm = rule.feed_few(one, [vote])
    assert (one, alarm) == (progress, 0)
    progress, hit = rule.feed(rule.begin, np.array([3, -5, 4, 0, 1]))
    assert (progress, progress.start, hit) == (CusumProgress(5, 5, 2), 2, 4)


def test_intervals_begin_with_nothing_and_keep_the_last_whole_one() -> None:
    rule = Intervals(2)
    assert rule.progress_to_dict(rule.begin) == {"blocks": 0, "last": [], "present": []}
    progress, hit = rule.feed(rule.begin, np.array([-1, 1, -1]))
    assert (progress.blocks, progress.last, progress.present, hit) == (3, (1, -1), (1,), None)
    progress, hit = rule.feed(progress, np.array([1]))
    assert (progress.blocks, progress.last, progress.present, hit) == (4, (1, -1), (), None)
    progress, hit = rule.feed(progress, np.array([1, 1, 1]))
    assert (progress.blocks, progress.last, progress.present, hit) == (6, (1, -1), (-1, -1), 1)
    assert progress.start == 3  # blocks 3, 4 and 5 said "new"


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


def test_bits_of_a_fit_refuse_a_column_of_another_kind() -> None:
    test = design_fit({"a": 0.5, "b": 0.5}, distance=0.4, epsilon=1, n=4)
    source = seeded_source(np.random.default_rng(1))
    assert len(voter_of(test).bits(open_source(["a", "b", "b", "a"] * 2), 8, source)) == 2
    with pytest.raises(InvalidData):
        voter_of(test).bits(open_source(np.arange(8.0)), 8, source)


def test_the_vote_of_a_fit_is_one_or_minus_one_and_votes_have_probabilities() -> None:
    test = design_fit({"a": 0.5, "b": 0.5}, distance=0.4, epsilon=1, n=4)
    found = voter_of(test).bits(open_source(["a", "b", "b", "a"] * 100), 400, seeded_source(np.random.default_rng(1)))
    assert set(found.tolist()) == {1, -1}
    values, old, new = BitDesign(4, 0.125, 0.25).votes
    assert (values.tolist(), old.tolist(), new.tolist()) == ([1, -1], [0.125, 0.875], [0.75, 0.25])
