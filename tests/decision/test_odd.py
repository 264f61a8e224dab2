"""The share of odd records: exact count, noise of its own, one charge for both; the same from every source."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest.decision.run import OddShare
from privatest.errors import RequestConflict
from privatest.privacy import Tulap

NORMAL = "normal(0, 1)", "normal(1, 1)"
N = 400


@pytest.fixture
def ledger(tmp_path: Path) -> pt.Ledger:
    book = pt.Ledger(tmp_path / "ledger.db", create=True)
    book.grant("d", epsilon=2)
    book.grant("e", epsilon=1)
    return book


@pytest.fixture
def test() -> pt.results.PrivateTest:
    return pt.design(*NORMAL, epsilon=1, n=N)


def test_all_missing_is_seen_and_none_missing_too(test: pt.results.PrivateTest) -> None:
    # At odd_epsilon 1 and 400 records the noise moves the share by more than 0.1 with probability e^-40.
    assert test.run(np.full(N, math.nan), odd_epsilon=1).odd_share > 0.9  # type: ignore[operator]
    assert test.run(np.zeros(N), odd_epsilon=1).odd_share < 0.1  # type: ignore[operator]
    assert pt.decide(["x"] * N, *NORMAL, epsilon=1, odd_epsilon=1).odd_share > 0.9  # type: ignore[operator]


@pytest.mark.parametrize(("epsilon", "rows"), [("1/20", 1), ("1", 1), ("3", 4), ("1/7", 3), ("20", 1)])
def test_the_margin_is_the_smallest_that_is_kept_with_95_percent(epsilon: str, rows: int) -> None:
    noise = Tulap(Fraction(epsilon), rows)
    steps = round(OddShare(noise).margin(10_000) * 10_000)

    def outside(most: float) -> float:
        return 1.0 if most < 0 else 2 * float(noise.sf(most))

    assert outside(steps) <= 0.05 < outside(steps - 1)
    assert OddShare(noise).margin(1) <= 1


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    values = np.where(rng.random(120) < 0.3, math.nan, rng.normal(0, 1, 120))
    return pd.DataFrame({"x": values, "who": rng.integers(0, 30, 120)})


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privatest.engines import files as csv_files

    frame().to_csv(tmp_path / "a.csv", index=False)
    readings: list[int] = []
    plain = csv_files.csv_columns
    monkeypatch.setattr(csv_files, "csv_columns", lambda *words: [readings.append(1), plain(*words)][1])
    test = pt.design(*NORMAL, epsilon=1, n=120)
    test.run(tmp_path / "a.csv", column="x", odd_epsilon=0.5)
    assert len(readings) == 1


BITS, SERIES = "bernoulli(0.2)", [0] * 60 + [1] * 60
Asked = Callable[..., Any]
QUESTIONS: dict[str, Asked] = {
    "test": lambda x, **k: pt.decide(x, BITS, "bernoulli(0.8)", **k),
    "optimum": lambda x, **k: pt.optimum(BITS, "bernoulli(0.8)", epsilon=1, n=len(x)).test.run(x, **k),
    "estimate": lambda x, **k: pt.estimate(x, "bernoulli(?)", **k),
    "estimate of a label": lambda x, **k: pt.estimate(x, "bernoulli(?)", success=1, **k),
    "estimate in two steps": lambda x, **k: pt.estimate(x, "normal(mean=?, sd=1)", between=(-1e4, 1e4), **k),
    "groups": lambda x, **k: pt.compare_groups(x[::2], x[1::2], success=1, **k),
    "fit": lambda x, **k: pt.goodness_of_fit(x, {0: 0.5, 1: 0.5}, distance=0.4, **k),
    "change": lambda x, **k: pt.detect_change(x, BITS, "bernoulli(0.8)", **k),
    "votes": lambda x, **k: pt.detect_change(x, test=pt.design(BITS, "bernoulli(0.8)", epsilon=1, n=5), **k),
    "changes": lambda x, **k: pt.detect_change(x, BITS, "bernoulli(0.8)", **k, changes="several"),
}


def asked(name: str, data: Any, **words: Any) -> Any:
    epsilon = {} if name in ("optimum", "votes") else {"epsilon": 1}
    return QUESTIONS[name](data, **epsilon, **words)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_tells_it(name: str, tmp_path: Path) -> None:
    n = 6 if name == "optimum" else 400
    for share in (0.0, 1.0, 0.5):
        data = np.array([0.0, 1.0] * (n // 2))
        data[: round(share * n)] = math.nan
        found = asked(name, data, odd_epsilon=20, rng=np.random.default_rng(1))
        assert abs(found.odd_share - share) <= 0.01
    assert (found.odd_epsilon, found.epsilon) == (20, 21)
    assert found.odd_margin <= 1 / n
    assert "of the records made no sense to this question" in str(found)
    assert type(found).from_dict(found.to_dict()) == found
    plain = asked(name, data, rng=np.random.default_rng(1))
    assert plain.odd_share is None
    assert "odd" not in str(plain).replace("odds", "")
    with pt.Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.grant("d", epsilon=5)
        paying: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r"}
        first = asked(name, data, odd_epsilon=0.25, **paying)
        assert ledger.spent("d") == 1 + Fraction(1, 4)
        assert asked(name, data, odd_epsilon=0.25, **paying).odd_share == first.odd_share
        with pytest.raises(RequestConflict):
            asked(name, data, **paying)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", ["estimate", "fit", "change", "changes"])
@pytest.mark.parametrize("form", ["frame", "csv", "duckdb"])
def test_one_person_moves_the_number_by_the_rows_that_count(
    form: str, name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise is made for as many rows as count of a person: here that person's three rows become odd, or none."""
    n, numbers = 120, []
    monkeypatch.setattr(Tulap, "draw", lambda *_: Fraction(0))
    for mine in ([0.0, 1.0, 1.0], [math.nan] * 3, [0.0, math.nan, 0.0], [0.0]):
        others = np.where(np.arange(n - len(mine)) % 7 == 0, math.nan, np.arange(n - len(mine)) % 2)
        data = pd.DataFrame({"x": [*mine, *others], "who": [0] * len(mine) + [*range(1, n - len(mine) + 1)]})
        data["t"] = np.arange(n)
        source: Any = data
        if form == "csv":
            source = tmp_path / f"{len(numbers)}.csv"
            data.to_csv(source, index=False)
        elif form == "duckdb":
            source = pytest.importorskip("duckdb").connect().from_df(data)
        words: dict[str, Any] = {"column": "x", "unit": "who", "max_rows_per_unit": rows, "odd_epsilon": 1}
        if name in ("change", "changes"):
            words["order"] = "t"
        found = asked(name, source, **words)
        numbers.append(found.odd_share * found.n - sum(np.isnan(others)))
        if name in ("change", "changes"):  # rows of hers that do not count are odd as well, whatever they hold
            numbers[-1] -= max(len(mine) - rows, 0)
        assert round(numbers[-1], 6) in range(rows + 1)
    assert numbers[0] == pytest.approx(0)
    assert numbers[1] == pytest.approx(rows)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_noise_on_the_share_hides_all_rows_of_a_person(rows: int) -> None:
    coins = "bernoulli(0.2)", "bernoulli(0.8)"
    for design in (
        pt.design(*coins, epsilon=1, n=40, max_rows_per_unit=rows),
        pt.design_estimate("bernoulli(?)", epsilon=1, n=40, max_rows_per_unit=rows),
        pt.design_table(labels=[0, 1], epsilon=1, n=40, max_rows_per_unit=rows),
        pt.design_fit([0.5, 0.5], distance=0.3, epsilon=1, n=40, max_rows_per_unit=rows),
        pt.design_groups(n=(20, 20), epsilon=1, max_rows_per_unit=rows),
        pt.design_change(*coins, epsilon=4, n=400, max_rows_per_unit=rows),
    ):
        share = OddShare.of(design, Fraction(1, 2))
        assert share is not None
        assert share.noise.exact_loss(rows) == share.epsilon == Fraction(1, 2)  # type: ignore[attr-defined]
        assert share.noise.exact_loss(rows + 1) > share.epsilon  # type: ignore[attr-defined, operator]
