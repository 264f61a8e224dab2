"""Any private test of a block: what it is given, what is made of what it says, what the whole costs and promises."""

from __future__ import annotations

import itertools
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.changepoint import block_tests
from privatest.changepoint.block_tests import BitsModel, voter_of
from privatest.engines.sources import open_source
from privatest.errors import Infeasible, InvalidData, InvalidInput
from privatest.privacy import system_source
from tests.engines.openers import FRAMES, SINGLE

COINS, NORMALS = ("bernoulli(0.2)", "bernoulli(0.8)"), ("normal(0, 1)", "normal(1, 1)")


class Recorder:
    """Says what the mean of a block says, and remembers what it was given."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []

    def __call__(self, block: Any) -> str:
        self.blocks.append(block)
        return "alternative" if np.nanmean(np.asarray(block, dtype=float)) > 0.5 else "null"


def stated(function: Any, **settings: Any) -> Any:
    asked: dict[str, Any] = {"n": 10, "alpha": 0.1, "beta": 0.1, "epsilon": 1, **settings}
    return pt.block_test(function, **asked)


def mean_test(block: Any) -> str:
    """Not private: for tests of what happens around it."""
    return "alternative" if np.mean(block) > 0.5 else "null"


def test_every_record_goes_into_one_call_and_the_rest_into_none() -> None:
    seen = Recorder()
    data = np.arange(47) / 47
    found = pt.detect_change(data, test=stated(seen, n=10), assume_change=True, beta=0.3)
    assert [len(block) for block in seen.blocks] == [10] * 4
    np.testing.assert_array_equal(np.concatenate(seen.blocks), data[:40])
    assert (found.index, found.block, found.method, found.epsilon) == (20, 10, "paper", 1)
    streamed = Recorder()
    monitor = pt.Monitor(test=stated(streamed, n=10, alpha=0.01, beta=0.01), interval=40)
    for first, last in itertools.pairwise((0, 3, 4, 25, 47)):
        monitor.update_many(data[first:last])
    for one in data[:4]:
        monitor.update(float(one))
    np.testing.assert_array_equal(np.concatenate(streamed.blocks), [*data, *data[:3]])
    assert monitor.trace == (1.0, 1.0, -1.0, -1.0, -1.0)


@pytest.mark.parametrize("opener", [*SINGLE, *FRAMES])
def test_numbers_reach_the_function_as_they_are_from_wherever_they_lie(opener: str, tmp_path: Path) -> None:
    given: list[Any] = [0.1, -0.0, 1e300, -5e-324, None, 7.0, -0.30000000000000004, 2.0**53, 12.5, 1 / 3]
    there = {**SINGLE, **FRAMES}[opener]({"x": given} if opener in SINGLE else {"x": given, "k": given}, tmp_path)
    voter = voter_of(stated(mean_test))
    where = {} if opener in SINGLE else {"column": "x"}
    found = block_tests.numbers_of(voter.values(open_source(there, **where)))
    expected = np.array([np.nan if one is None else one for one in given])
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[1])


def test_odd_records_are_no_numbers() -> None:
    class Odd:
        def __float__(self) -> float:
            raise ValueError("1234567")

    records = [None, "1.5", np.inf, -np.inf, np.nan, Odd(), [1], True, Decimal("0.5"), Fraction(1, 4)]
    found = block_tests.numbers_of(voter_of(stated(mean_test)).values(open_source(records)))
    np.testing.assert_array_equal(found, [*[np.nan] * 7, 1.0, 0.5, 0.25])
    labels = voter_of(stated(mean_test, labels=["a", 1, ("b", 2)]))
    places = labels.values(open_source(["a", 1, ("b", 2), "c", None, [3]])).tolist()
    assert places == [0, 1, 2, 3, 3, 3]


def test_labels_reach_the_function_from_a_database_too_and_numbers_do_not(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = pd.DataFrame({"x": list("abab" * 10), "y": np.arange(40.0), "t": np.arange(40)})
    relation = duckdb.from_df(frame)
    blocks: list[Any] = []

    def count(block: Any) -> str:
        blocks.append(block)
        return "null"

    ledger = pt.Ledger(tmp_path / "ledger.db")
    ledger.grant("d", epsilon=5)
    paying: dict[str, Any] = {"ledger": ledger, "dataset": "d"}
    named = pt.design_change(test=stated(count, labels=["b", "a"]), assume_change=True, beta=0.3)
    named.run(relation, column="x", order="t", request="one", **paying)
    assert blocks == [list("abab" * 3)[:10], list("ab" * 5), list("ab" * 5), list("ab" * 5)]
    assert ledger.spent("d") == 1
    plain = pt.design_change(test=stated(count), assume_change=True, beta=0.3)
    with pytest.raises(InvalidData, match=r"lie in a database or on a cluster.* labels="):
        plain.run(relation, column="y", order="t", request="two", **paying)
    with pytest.raises(InvalidData, match="Column 'x' is text"):
        plain.run(frame, column="x", request="three", **paying)
    assert ledger.spent("d") == 1


def _raises(block: Any) -> str:
    warnings.warn(f"record {block[0]}", stacklevel=1)
    raise ValueError(f"record {block[0]}")


FAILING: dict[str, Any] = {
    "raises": _raises,
    "nothing": lambda _: None,
    "a truth": lambda _: True,
    "another word": lambda _: "Alternative",
    "an array": lambda _: np.array(["alternative"] * 10),
    "divides": lambda block: "alternative" if 1 / np.float64(0) > 0 and 1 // int(block[0] * 0) else "null",
    "writes over": lambda block: block.__setitem__(slice(None), 9.0),
}


@pytest.mark.parametrize("case", FAILING)
@pytest.mark.parametrize("data", [np.zeros(40), np.ones(40)], ids=["old", "new"])
def test_a_block_on_which_the_function_fails_counts_as_old(
    case: str, data: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it fails with, and whatever its records are: no error, no warning, no word."""
    before = data.copy()
    plan = pt.design_change(test=stated(FAILING[case]), false_alarm=0.2, beta=0.3)
    assert plan.run(data).changed is False
    monitor = pt.Monitor(test=stated(FAILING[case]))
    assert monitor.update_many(data) is None
    assert monitor.trace == (1.0,) * 4
    assert capsys.readouterr() == ("", "")
    np.testing.assert_array_equal(data, before)


TESTS: dict[str, Any] = {
    "tight": lambda: pt.design(*NORMALS, epsilon=1, n=9),
    "scllr": lambda: pt.design(*COINS, epsilon=2, n=9, test="scllr"),
    "ncllr": lambda: pt.design(*COINS, epsilon=2, n=9, test="ncllr"),
    "decision": lambda: pt.design(*NORMALS, epsilon=1, n=9, release="decision"),
    "coin": lambda: pt.design(*NORMALS, epsilon=1, n=12, release="decision", alpha=0.1),
    "two-sided": lambda: pt.design(
        "bernoulli(0.5)", pt.any_of("bernoulli(p<=0.2)", "bernoulli(p>=0.8)"), epsilon=1, n=40
    ),
    "zcdp": lambda: pt.design(*COINS, privacy="zcdp(0.5)", n=9),
    "chain": lambda: pt.design(*COINS, privacy="zcdp(0.5)", n=9, release="decision"),
    "fit": lambda: pt.design_fit([0.5, 0.3, 0.2], distance=0.3, epsilon=1, n=60, alpha=0.2),
}


@pytest.mark.parametrize("kind", [kind for kind in TESTS if kind != "fit"])
def test_a_vote_is_the_tests_own_decision_at_every_draw(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise just below, on and just above each cutoff, with either side of the coin."""
    test = TESTS[kind]()
    voter, total = voter_of(test), 3 * test.score.low
    ends = [test.cutoff, *([] if test.upper is None else [test.upper])]
    ends += [] if test.coin is None else [test.coin.cutoff]
    doubled = sorted({(2 * end).__floor__() - 2 * total + step for end in ends for step in range(-3, 4)})
    for tossed in (False, True) if test.coin is not None else (False,):
        monkeypatch.setattr(block_tests, "draw_many", lambda *_: np.array(doubled))
        monkeypatch.setattr("privatest.decision.private_test.Coin.toss", lambda *_, said=tossed: said)
        votes = voter._votes(np.full(len(doubled), total), system_source)
        said = [test.release(test.draw_of(total + Fraction(noise, 2), tossed=tossed)).decision for noise in doubled]
        assert votes.tolist() == [1 if one == "null" else -1 for one in said]
        assert len({*votes.tolist()}) == 2


@pytest.mark.parametrize("kind", TESTS)
def test_a_designed_test_is_taken_as_it_is(kind: str, tmp_path: Path) -> None:
    """Its error rates and its price; the plan's document and the monitor's state hold it."""
    test = TESTS[kind]()
    plan = pt.design_change(test=test, assume_change=True, beta=0.2)
    assert plan.privacy == test.privacy
    assert plan.price == test.price
    assert plan.accuracy == BitsModel(test.n, test.alpha, test.beta).failures().accuracy(0.2)
    again = pt.results.ChangePlan.from_json(plan.to_json())
    assert (again == plan, again.price, again.block) == (True, plan.price, test.n)
    data = np.zeros(20 * test.n)
    assert again.run(data).index is not None
    monitor = pt.Monitor(test=test, interval=7, state=tmp_path / "state.json")
    assert monitor.privacy == test.privacy
    monitor.update_many(data[: 3 * test.n + 1])
    del monitor
    resumed = pt.Monitor(test=test, interval=7, state=tmp_path / "state.json")
    assert (resumed.seen, resumed.block, resumed.interval) == (3 * test.n, test.n, 7)
    other = pt.design(*COINS, epsilon=1, n=8)
    with pytest.raises(InvalidInput, match="other settings"):
        pt.Monitor(test=other, interval=7, state=tmp_path / "state.json")


def test_a_functions_design_goes_into_no_document(tmp_path: Path) -> None:
    plan = pt.design_change(test=stated(mean_test))
    message = r"test_block_tests.mean_test is a Python function, which no document and no state file can hold"
    for call in (
        plan.to_json,
        lambda: pt.Monitor(test=stated(mean_test), state=tmp_path / "state.json"),
        lambda: pt.Monitor(test=stated(mean_test)).save(tmp_path / "state.json"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call()
    assert list(tmp_path.iterdir()) == []
    assert "mean_test calls null" in str(plan)
    named = pt.design_change("normal(0, 1)", "normal(1, 1)", test=stated(mean_test))
    assert (named.null, named.alternative) == ("normal(0, 1)", "normal(1, 1)")


def rows(most: int, **given: Any) -> Any:
    test = given.pop("test", None) or stated(mean_test, epsilon=0.5)
    return pt.design_change(test=test, max_rows_per_unit=most, assume_change=True, beta=0.3, **given)


def test_what_persons_with_several_rows_cost() -> None:
    assert rows(3).privacy == rows(3, epsilon=1.5).privacy == pt.pure(1.5)
    gaussian = stated(mean_test, epsilon=None, privacy="gdp(0.5)")
    assert rows(2, test=gaussian, privacy="gdp(1)").privacy == pt.gdp(1)
    assert rows(1, test=gaussian).privacy == pt.gdp(0.5)
    assert rows(1, privacy="approx(0.5, 1e-6)").privacy == pt.approx(0.5, 1e-6)
    with pytest.raises(InvalidInput, match=r"max_rows_per_unit=2 rows of a test that meets gdp\(0.5\).* privacy="):
        rows(2, test=gaussian)
    with pytest.raises(InvalidInput, match=r"privacy=gdp\(0.5\) is not what test costs: .* for each of 2 rows"):
        rows(2, test=gaussian, privacy="gdp(0.5)")
    for given in ({"epsilon": 1}, {"epsilon": 2}, {"privacy": "zcdp(0.1)"}):
        with pytest.raises(InvalidInput, match=r"is not what test costs: epsilon=0.5 for each of 3 rows"):
            rows(3, **given)


GOOD = pt.block_test(mean_test, n=10, alpha=0.1, beta=0.1, epsilon=1)
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a function": ({"test": mean_test}, InvalidInput, r"Of a function say: privatest.block_test\(function, n="),
    "a number": ({"test": 3}, InvalidInput, "test=3 must be a test"),
    "another design": (
        {"test": pt.design_estimate("bernoulli(?)", epsilon=1, n=9)},
        InvalidInput,
        "must be a test that privatest.design or privatest.design_fit made",
    ),
    "without privacy": ({"test": pt.design(*COINS, epsilon=1, n=9, test="llr")}, InvalidInput, "is not private"),
    "add-remove": (
        {"test": pt.design(*COINS, epsilon=1, n=9, neighbours="add-remove")},
        InvalidInput,
        r"comes or goes \(neighbours='add-remove'\).*neighbours='replace'",
    ),
    "rows": (
        {"test": pt.design(*COINS, epsilon=1, n=9, max_rows_per_unit=2)},
        InvalidInput,
        "max_rows_per_unit=2, and a person's rows may lie in several blocks",
    ),
    "errs": ({"test": pt.design(*COINS, epsilon=1, n=9, alpha=0.6)}, Infeasible, r"with probability 0\.6.*below 1/2"),
    "null": ({"test": TESTS["tight"](), "null": "normal(0, 2)"}, InvalidInput, r"null=normal\(0, 2\) is not what test"),
    "alternative": ({"test": TESTS["fit"](), "alternative": COINS[1]}, InvalidInput, "is not what test was designed"),
    "distance": ({"test": GOOD, "distance": 0.2}, InvalidInput, "distance=0.2 was given besides test="),
    "block": ({"test": GOOD, "block": 9}, InvalidInput, "block=9 was given besides test="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_vote_is_refused(case: str) -> None:
    asked, kind, message = REFUSED[case]
    for make in (pt.design_change, pt.Monitor):
        with pytest.raises(kind, match=message):
            make(**asked)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"function": 3}, "function=3 must be a function"),
        ({"n": 0}, "n=0"),
        ({"alpha": 0.5}, "alpha=0.5 must be at least 0 and below 1/2"),
        ({"beta": -0.1}, "beta=-0.1 must be at least 0"),
        ({"beta": "small"}, "beta='small'"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"privacy": "zcdp(1)"}, "both given"),
        ({"labels": ["a"]}, "two different labels"),
        ({"labels": ["a", "a"]}, "occurs twice"),
        ({"labels": ["a", None]}, "must not be None"),
    ],
)
def test_a_stated_test_must_be_whole(given: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"function": mean_test, "n": 10, "alpha": 0.1, "beta": 0.1, "epsilon": 1, **given}
    with pytest.raises(InvalidInput, match=message):
        pt.block_test(asked.pop("function"), **asked)
