"""Persons in streams: the exact laws of all answers on all binary streams, whoever the rows belong to.

A person's rows are replaced by others at the same places. Which rows count is asked of the package's own records; a row
that does not count has the odd score, which here is that of one of the two labels, so that what is left is a binary
stream, for which ``tests/contracts/test_running_privacy.py`` walks every mechanism. Each check is shown failing without
the share of epsilon, without the cut, and with a cut that goes by what the rows hold.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest import engines
from privatest.engines.rows_per_person import Turns
from privatest.engines.sources import placed
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.fit.fit_test import symbols
from privatest.hypotheses import make_pair
from privatest.scores import clamped_score
from privatest.streams.monitor import Monitor
from privatest.streams.monitor_plan import Cusum, MonitorPlan
from privatest.streams.stream import Stream
from tests.changepoint import kills
from tests.contracts.exhaustive import log_pmf, owners
from tests.ledger.server import quick_folder
from tests.sequential.plans import small_blocks, watching

SLACK = 1 + 1e-12
Row = tuple[int, ...]
P, Q = "bernoulli(0.2)", "bernoulli(0.8)"
SCORE = clamped_score(make_pair(P, Q), (-1, 1), 1)  # one step: label 0 scores 1, label 1 scores 0
NEED = {k: engines.Need(k, ordered=True) for k in (1, 2, 3, 4)}


@cache
def reached(records: Row, who: Row, k: int) -> Row:
    """The binary stream that a mechanism sees: the package's own cut."""
    found = placed(Turns(k), records, column=None, unit=who, order=None)
    return tuple(1 - int(score) for score in found.series(SCORE))


def reached_in_order(records: Row, who: Row, k: int) -> Row:
    """The same of a table whose rows lie the other way round."""
    frame = pd.DataFrame({"x": records, "who": who, "when": range(len(who))}).iloc[::-1]
    found = engines.open_for(NEED[k], frame, column="x", unit="who", order="when")
    return tuple(1 - int(score) for score in found.series(SCORE))


@pytest.mark.parametrize(("cut", "n"), [(reached, 5), (reached_in_order, 3)])
@pytest.mark.parametrize("k", [1, 2])
def test_a_person_reaches_k_rows_and_moves_nobody(k: int, cut: Callable[..., Row], n: int) -> None:
    odd = int(1 - SCORE.table[-1])
    for who in owners(n):
        counts = [who[: i + 1].count(who[i]) <= k for i in range(n)]
        for records in itertools.product((0, 1), repeat=n):
            assert cut(records, who, k) == tuple(x if c else odd for x, c in zip(records, counts, strict=True))


def in_database(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("duckdb").from_df(frame)


@pytest.mark.parametrize(("n", "source"), [(3, lambda frame: frame), (2, in_database)])
@pytest.mark.parametrize("k", [1, 2])
def test_among_ties_a_person_changes_k_scores_of_their_places(n: int, source: Callable[..., Any], k: int) -> None:
    """All owners, all orders of two values, all records: at each place as many scores as rows, k of them others'."""
    for who, when in itertools.product(owners(n), itertools.product((0, 1), repeat=n)):
        place = sorted(when)
        found = {}
        for records in itertools.product((0, 1), repeat=n):
            frame = source(pd.DataFrame({"x": records, "who": who, "when": when}))
            series = engines.open_for(NEED[k], frame, column="x", unit="who", order="when").series(SCORE)
            found[records] = Counter(zip(place, series.tolist(), strict=True))
        for (one, seen), (other, also) in itertools.combinations(found.items(), 2):
            changed = {who[i] for i in range(n) if one[i] != other[i]}
            if len(changed) == 1:
                assert (seen - also).total() <= k


Drawn = list[int]


def drawings(test: Any, others: Row, mine: Row, choices: Callable[[int, int], Any]) -> Drawn:
    """The statistic for each choice of a person's rows, all others having one row each."""
    frame = pd.DataFrame({"x": others + mine, "who": [f"o{i}" for i in range(len(others))] + ["me"] * len(mine)})
    records = engines.open_for(test.need, frame, column="x", unit="who")
    found = []
    for choice in choices(len(mine), min(len(mine), test.max_rows_per_unit)):
        counts = np.array(records.histogram(test.domain.cells, lambda table, _, of=choice: table[:, list(of)]))
        found.append(int(test.candidate.excess.of(symbols(counts, test.odd_symbol))))
    return found


def fit_log_ratio(test: Any, noise: Any, choices: Callable[[int, int], Any]) -> float:
    """The largest one, of the noisy statistic's exact law, over all rows that a person may have beside all others."""
    k, worst = test.max_rows_per_unit, 0.0
    doubled = 2 * np.arange(-400, 401) * noise.width // 8 + int(2 * noise.offset)

    @cache
    def law(totals: Row) -> Any:
        return np.logaddexp.reduce([log_pmf(noise, doubled - 2 * total) for total in totals]) - np.log(len(totals))

    for others in itertools.combinations_with_replacement(range(3), test.n - k):
        rows = (itertools.combinations_with_replacement(range(3), size) for size in (k, k + 2))
        laws = {tuple(sorted(drawings(test, others, mine, choices))) for some in rows for mine in some}
        for one, other in itertools.combinations(laws, 2):
            worst = max(worst, float(np.abs(law(one) - law(other)).max()))
    return worst


def every_choice(rows: int, most: int) -> Any:
    return itertools.combinations(range(rows), most)


def all_rows(rows: int, _most: int) -> Any:
    return [range(rows)]


@pytest.mark.parametrize("k", [1, 2])
def test_the_fit_is_private_for_persons(k: int) -> None:
    """Every choice of k rows is equally likely, however many a person has: the law is the mean over all of them."""
    test = pt.design_fit([0.5, 0.3, 0.2], distance=0.4, epsilon=1, n=4, alpha=0.3, max_rows_per_unit=k)
    assert test.price == 1
    assert 0.9 < fit_log_ratio(test, test.noise, every_choice) <= SLACK
    narrow = pt.design_fit([0.5, 0.3, 0.2], distance=0.4, epsilon=1, n=4, alpha=0.3).noise
    assert k == 1 or fit_log_ratio(test, narrow, every_choice) > 1.2  # the noise of single rows does not do
    assert fit_log_ratio(test, test.noise, all_rows) > 1.2  # nor does that of k rows where all of them count


def test_a_stream_of_persons_consumes_turns_up_to_the_alarm_only() -> None:
    rng = np.random.default_rng(3)
    made = pt.Monitor(P, Q, epsilon=4, max_rows_per_unit=1, rng=rng)
    alarm = made.update([1] * 500, unit=list(range(500)))
    assert alarm is not None
    taken = made._turns
    assert taken is not None
    assert sorted(taken._taken) == list(range(alarm.seen))


class TestRefusals:
    frame = pd.DataFrame({"x": [0, 1] * 50, "who": [1, 2] * 50, "when": [0] * 50 + [1] * 50})

    def test_a_number_of_rows_without_a_unit(self) -> None:
        with pytest.raises(InvalidInput, match="needs a unit"):
            pt.detect_change(self.frame["x"], P, Q, epsilon=1, max_rows_per_unit=2)
        with pytest.raises(InvalidInput, match="needs a unit"):
            pt.goodness_of_fit(self.frame["x"], P, distance=0.2, epsilon=1, max_rows_per_unit=2)
        with pytest.raises(InvalidData, match="unit is missing"):
            pt.design_change(P, Q, epsilon=2, max_rows_per_unit=2).run(self.frame["x"])

    def test_records_that_were_cut_before(self) -> None:
        cut = engines.open_source(self.frame, column="x", unit="who", max_rows_per_unit=1)
        with pytest.raises(InvalidData, match="Name the unit in the call itself"):
            pt.design_change(P, Q, epsilon=2).run(cut)

    def test_ties_across_blocks(self) -> None:
        plan = pt.design_change(P, Q, epsilon=2, method="blocks")
        with pytest.raises(InvalidData, match="does not order"):
            plan.run(self.frame, column="x", unit="who", order="when")

    def test_a_stream_from_a_database_says_why(self) -> None:
        duckdb = pytest.importorskip("duckdb")
        made = pt.Monitor(P, Q, epsilon=2, max_rows_per_unit=2)
        with pytest.raises(InvalidData, match="a database does not say whose they are"):
            made.update_many(duckdb.from_df(self.frame), column="x", unit="who", order="when")
        assert made.seen == 0

    def test_a_database_without_an_order(self) -> None:
        duckdb = pytest.importorskip("duckdb")
        with pytest.raises(InvalidData, match="order"):
            pt.detect_change(duckdb.from_df(self.frame), P, Q, epsilon=1, column="x", unit="who")

    def test_a_monitor_of_persons_says_what_it_needs(self) -> None:
        made = pt.Monitor(P, Q, epsilon=2, max_rows_per_unit=2)
        for call in (lambda: made.update(1), lambda: made.update([1, 0]), lambda: made.update_many([1, 0])):
            with pytest.raises(InvalidInput, match="unit is missing"):
                call()
        with pytest.raises(InvalidInput, match="one for each record"):
            made.update([1, 0], unit=["a"])
        with pytest.raises(InvalidInput, match="must name a column, or list"):
            made.update([1, 0], unit=3)
        assert made.seen == 0
        with pytest.raises(InvalidInput, match="takes each record for a different person's"):
            pt.Monitor(P, Q, epsilon=2).update(1, unit="anna")

    def test_a_unit_that_is_missing_raises_nothing(self) -> None:
        made = pt.Monitor(P, Q, epsilon=2, max_rows_per_unit=1)
        made.update(1, unit=None)
        made.update([1, 0], unit=[None, float("nan")])
        assert made.seen == 3


@cache
def loud(block: int, k: int) -> MonitorPlan:
    """Persons in blocks whose noise is 0 but once in 10^26 draws: a release is twice its block's total."""
    quiet = small_blocks(Fraction(60), block)
    return watching(quiet, Cusum(10**9), rows=k)


def fed(state: Path, records: Row, who: Row, lives: Iterable[int], k: int, block: int, batches: bool) -> list[int]:
    """The totals that a monitor releases that is restored when it has been fed up to each of these places."""
    monitor = Monitor.of(loud(block, k))
    monitor.save(state)
    for end in (*lives, len(records)):
        rest = range(monitor.seen, end)
        if batches:
            monitor.update([records[i] for i in rest], unit=[who[i] for i in rest])
        else:
            for i in rest:
                monitor.update(records[i], unit=who[i])
        monitor = Monitor.load(state)
    return [value // 2 for value in monitor._released]


def restarts(n: int) -> Iterator[Row]:
    """All places at which a stream of n records can be cut, any number of times."""
    return itertools.chain.from_iterable(itertools.combinations(range(1, n), cuts) for cuts in range(n))


@pytest.fixture
def quick() -> Iterator[Path]:
    """A folder in memory, where the system has one: states are flushed to the disk at every block."""
    with tempfile.TemporaryDirectory(dir=quick_folder()) as folder:
        yield Path(folder)


def misreported(quick: Path, n: int, k: int, block: int) -> int:
    """Over all owners, all restarts and both ways of feeding: how often a release is not that of the rows that count.

    The record of a row that counts is label 0, of score 1; any other row's score is 0.
    """
    wrong, odd = 0, int(SCORE.table[-1])
    assert odd == 0
    for number, (who, lives, batches) in enumerate(itertools.product(owners(n), restarts(n), (True, False))):
        counts = [who[: i + 1].count(who[i]) <= k for i in range(n)]
        totals = [sum(counts[at : at + block]) for at in range(0, n - block + 1, block)]
        wrong += fed(quick / f"{number}", (0,) * n, who, lives, k, block, batches) != totals
    return wrong


@pytest.mark.parametrize(("n", "k", "block"), [(3, 1, 1), (4, 1, 2), (4, 2, 2), (4, 2, 3)])
def test_restarts_give_no_person_another_turn_and_take_none(quick: Path, n: int, k: int, block: int) -> None:
    """Exhaustive: what is released is what a stream without restarts releases, so all laws above hold with them."""
    assert misreported(quick, n, k, block) == 0


def test_a_state_that_forgets_a_person_is_noticed(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(stream: Stream, _roll: Any, said: dict[str, Any]) -> None:
        stream.turns = Turns(1, bytes.fromhex(said["key"]))

    monkeypatch.setattr(Stream, "_recall", forgets)
    assert misreported(quick, 3, 1, 1) > 0


def test_a_state_that_counts_unfinished_blocks_is_noticed(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Stream._write

    def early(stream: Stream, progress: Any, alarm: Any, released: Any, start: int, place: Any) -> None:
        held, stream._open.start = stream._open.start, start - len(stream._owners)
        write(stream, progress, alarm, released, start, place)
        stream._open.start = held

    monkeypatch.setattr(Stream, "_write", early)
    assert misreported(quick, 4, 1, 2) > 0


class TestStates:
    """What is kept of persons, and what becomes of it."""

    def fresh(self, path: Path, **more: Any) -> pt.Monitor:
        return pt.Monitor(P, Q, epsilon=2, max_rows_per_unit=1, state=path, **more)

    def test_names_are_in_no_file_and_in_nothing_that_is_shown(self, quick: Path) -> None:
        made = self.fresh(quick / "state")
        names = [f"anna-{i}" for i in range(made.block * 3 + 1)]
        made.update([0] * len(names), unit=names)
        made.save(quick / "state")
        kept = b"".join(path.read_bytes() for path in quick.iterdir())
        assert b"anna" not in kept
        assert (quick / "state.units").stat().st_size == 16 * 3 * made.block  # whole blocks only
        digests = [(quick / "state.units").read_bytes()[i : i + 16].hex() for i in range(0, 48, 16)]
        shown = repr(made) + str(made) + json.dumps(made.to_dict())
        assert not any(word in shown for word in ("anna", "turns", *digests))
        assert all((quick / name).stat().st_mode & 0o077 == 0 for name in ("state", "state.units"))

    def test_a_saved_one_knows_those_of_before_and_moves(self, quick: Path) -> None:
        made = Monitor.of(loud(2, 1))
        made.update([0, 0, 0], unit=["a", "b", "c"])  # c's block is not full
        made.save(quick / "one")
        made.save(quick / "two")
        assert not (quick / "one.units").exists()
        made.update(0, unit="d")
        with pytest.raises(InvalidDocument, match="was later saved to another file"):
            Monitor.load(quick / "one")
        again = Monitor.load(quick / "two")
        turns = again._turns
        assert turns is not None
        assert [turns.admit(who) is None for who in "abcde"] == [True, True, True, True, False]

    @pytest.mark.parametrize("how", ["missing", "cut", "edited"])
    def test_a_roll_that_is_not_the_states_is_refused(self, quick: Path, how: str) -> None:
        made = self.fresh(quick / "state")
        made.update([0] * made.block, unit=list(range(made.block)))
        roll, kept = quick / "state.units", (quick / "state.units").read_bytes()
        del made
        if how == "missing":
            roll.unlink()
        else:
            roll.write_bytes(kept[:-1] if how == "cut" else bytes([kept[0] ^ 1]) + kept[1:])
        for load in (lambda: Monitor.load(quick / "state"), lambda: self.fresh(quick / "state")):
            with pytest.raises(InvalidDocument, match=r"'state\.units' is missing, cut short or edited"):
                load()
        roll.write_bytes(kept + b"of a block that was never shown")
        assert Monitor.load(quick / "state").seen > 0

    @pytest.mark.parametrize("how", ["missing", "cut"])
    def test_a_roll_that_was_cut_short_meanwhile_is_not_extended(self, quick: Path, how: str) -> None:
        made = self.fresh(quick / "state")
        made.update([0] * made.block, unit=list(range(made.block)))
        roll, kept = quick / "state.units", (quick / "state.units").read_bytes()
        if how == "missing":
            roll.unlink()
        else:
            roll.write_bytes(kept[:-1])
        with pytest.raises(InvalidDocument, match=r"'state\.units' is missing, cut short or edited"):
            made.update([0] * made.block, unit=[f"other {number}" for number in range(made.block)])

    def test_a_ledger_and_a_sequential_test_keep_persons_too(self, quick: Path) -> None:
        with pt.Ledger(quick / "book.db") as ledger:
            ledger.grant("visits", epsilon=2, unit="visitor")
            words: Any = {"ledger": ledger, "dataset": "visits", "request": "one", "max_rows_per_unit": 2}
            made = pt.Sequential(P, Q, epsilon=2, state=quick / "state", **words)
            first = made.schedule[0]
            made.update([None] * first, unit=list(range(first)))
            del made
            again = pt.Sequential(P, Q, epsilon=2, state=quick / "state", **words)
            assert again.seen == first
            assert again._turns is not None
            taken = again._turns.taken()
            assert sorted(taken.values()) == [1] * first
            with pytest.raises(InvalidInput, match="other settings"):
                pt.Sequential(P, Q, epsilon=2, state=quick / "state", **{**words, "max_rows_per_unit": 1})

    def test_kills_give_no_person_another_turn(self) -> None:
        found = kills.run(12, seed=4, persons=True)
        assert found.problems == []
        assert found.kills >= 12

    def test_kills_notice_a_person_who_counts_again(self) -> None:
        assert kills.run(kills.NEVER, seed=5, persons=True, broken=True).problems != []


@pytest.mark.parametrize(
    "unit", [None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.float32("nan"), np.datetime64("NaT")], ids=repr
)
def test_a_missing_unit_is_nobody(unit: Any) -> None:
    """Or all rows of nobody would be one person's, and those of several NaN several persons'."""
    assert Turns(1).admit(unit) is None
