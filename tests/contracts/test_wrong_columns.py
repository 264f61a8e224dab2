"""Every public call that reads a column, times a right and eight wrong ones: right, refused or said, never silent.

The table is that of ``python -m benchmarks.ordinary columns``, whose verdicts are computed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from benchmarks import ordinary

FOUND = ordinary.wrong_columns()


@pytest.mark.parametrize("name", ordinary.column_questions())
def test_no_answer_about_a_file_without_types_is_silently_wrong(name: str, tmp_path: Path) -> None:
    hand_over = ordinary.faces(tmp_path)["csv"]
    verdicts = {kind: ordinary.column_verdict(name, column, 1, hand_over) for kind, column in FOUND.items()}
    assert "silent" not in verdicts.values(), verdicts


@pytest.mark.parametrize("name", ordinary.column_questions())
def test_no_answer_is_silently_wrong(name: str) -> None:
    verdicts = {kind: ordinary.column_verdict(name, column, 1) for kind, column in FOUND.items()}
    assert "silent" not in verdicts.values(), verdicts
    if name not in ("count_records", "compare_groups, group=x", "detect_change, order=x", "unit=x"):
        assert verdicts["dates"] == "refused"
    if name.startswith("estimate, "):
        numbers = name in ("estimate, normal", "estimate, share above", "estimate, odd_epsilon")
        assert (verdicts["numbers"] == "right") == numbers, verdicts


def test_every_question_is_asked() -> None:
    """What reads a column is in the table by its name, or by that of the design it belongs to."""
    asked = " ".join(ordinary.column_questions())
    for name in ("decide", "design", "optimum", "goodness_of_fit", "estimate", "compare_groups", "detect_change"):
        assert name in asked
    for name in ("tabulate", "monitor", "sequential", "check", "count_records"):
        assert name in asked


RNG = np.random.default_rng(8)
ONES = (RNG.random(1000) < 0.3).astype(int)
REALS = RNG.normal(0.4, 1, 1000)
RATE: dict[str, Any] = {"family": "bernoulli(?)"}
MEAN: dict[str, Any] = {"family": "normal(mean=?, sd=1)", "between": (-3, 3)}
LABEL: dict[str, Any] = {"family": "bernoulli(?)", "success": 1}
MORE: dict[str, tuple[Any, dict[str, Any], str]] = {
    "numbers stored as text": (pd.Series([f"{x:.3f}" for x in REALS], dtype=object), MEAN, "^ALL .* stored as text"),
    "0 and 1 as text": (pd.Series([str(x) for x in ONES], dtype=object), RATE, "^ALL .* success='Yes'"),
    "0 and 1 as text, a label": (pd.Series([str(x) for x in ONES], dtype=object), LABEL, "1 is not '1'"),
    "true and false": (pd.Series(np.where(ONES, "true", "false"), dtype=object), RATE, "^ALL .* success='Yes'"),
    "percentages": ([f"{100 * abs(x):.0f}%" for x in REALS], MEAN, "^ALL .* stored as text"),
    "currency": ([f"${abs(x):.2f}" for x in REALS], MEAN, "^ALL .* stored as text"),
    "decimal comma": ([f"{x:.2f}".replace(".", ",") for x in REALS], MEAN, r"^ALL .*pt\.data\.read_as"),
    "dates as numbers": (RNG.integers(20200101, 20201231, 1000), MEAN, "^No value .* fits: the data lie above"),
    "beyond 2^53": (2**53 + RNG.integers(0, 9, 1000), MEAN, "^No value .* fits: the data lie above"),
    "a sentinel among ones": (np.where(RNG.random(1000) < 0.2, -999, ONES), RATE, "^About .* and do not count"),
    "a sentinel among reals": (np.where(RNG.random(1000) < 0.1, -999, REALS), MEAN, "goodness_of_fit of .* tells"),
    "infinite values": (np.where(RNG.random(1000) < 0.2, np.inf, REALS), MEAN, "^About .* and do not count"),
    "coded 1 and 2": (
        ONES + 1,
        RATE,
        "^About .* records are missing, or not 0 or 1, and do not count: .* records that are 0 or 1 ",
    ),
    "coded -1 and 1": (2 * ONES - 1, RATE, "^MORE THAN HALF"),
    "constant": (np.full(1000, 7), RATE, "^ALL"),
    "negative zero": (np.where(ONES, 1.0, -0.0), RATE, "^The p"),
}


@pytest.mark.parametrize("name", MORE)
def test_other_wrong_columns_are_said_to_be_wrong(name: str) -> None:
    data, words, said = MORE[name]
    found = pt.estimate(data, **words, epsilon=1, confidence=0.999, rng=np.random.default_rng(2))
    assert re.search(said, found.sentence)
    if "do not count" in said or name == "negative zero":
        kept = np.asarray(data)[np.isin(data, (0, 1)) if words is RATE else np.isfinite(data)]
        assert found.interval[0] <= kept.mean() <= found.interval[1]
    if said.startswith("^ALL"):
        assert found.interval == (words.get("between") or (0, 1))
        assert found.sentence.endswith("report no number.")


def test_an_empty_column_and_one_that_is_there_twice_are_refused() -> None:
    with pytest.raises(pt.errors.PrivatestError, match="have no records"):
        pt.estimate(pd.Series([], dtype=float), **RATE, epsilon=1)
    twice = pd.DataFrame(np.ones((9, 2)), columns=["x", "x"])
    with pytest.raises(pt.errors.PrivatestError, match="'x'"):
        pt.estimate(twice, **RATE, column="x", epsilon=1)


def table_mean(data: Any, *, between: tuple[float, float] = (-3, 3)) -> Any:
    return pt.tabulate(data, between=between, cells=24, epsilon=1, rng=np.random.default_rng(3)).mean()


def test_the_mean_of_a_table_says_when_records_lie_beyond_it() -> None:
    fine, narrow = table_mean(REALS, between=(-6, 6)), table_mean(REALS, between=(-6, 0.25))
    assert fine.doubt == ""
    assert fine.question == "mean of the records, clipped to [-6, 6]"
    assert narrow.interval[1] < REALS.mean()
    beyond = re.match(r"About (\d+) RECORDS LIE BEYOND the outermost edges", narrow.sentence)
    assert beyond is not None
    assert abs(int(beyond[1]) - (REALS >= 0.25).sum()) < 20
    assert "RECORDS LIE BEYOND" in str(narrow)
    assert type(narrow).from_dict(narrow.to_dict()) == narrow


@pytest.mark.parametrize(("absent", "said"), [(0.2, "The mean"), (0.7, "MORE THAN HALF"), (1.0, "ALL of the records")])
def test_answers_of_a_table_say_that_most_records_may_be_missing(absent: float, said: str) -> None:
    found = table_mean(np.where(np.arange(1000) < 1000 * absent, np.nan, REALS))
    assert found.sentence.startswith(said)


def test_few_records_are_not_taken_for_missing_ones() -> None:
    """Twenty rows a person and eleven persons: the noise hides how many rows are present, though all of them are."""
    rows = pd.DataFrame({"x": np.tile([0, 1], 110), "who": np.repeat(np.arange(11), 20)})
    found = pt.estimate(
        rows.astype({"x": float}), "bernoulli(?)", column="x", unit="who", max_rows_per_unit=20, epsilon=1,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert found.few_present
    assert found.sentence.startswith("TOO FEW RECORDS for this budget: the noise hides whether")


@pytest.mark.parametrize("texts", [["Yes", "No"] * 50, ["-999"] * 100])
def test_a_quantile_of_which_nothing_is_known_is_released_and_recorded(texts: list[str], tmp_path: Path) -> None:
    """Its interval is the whole line. An answer that could not be written down would be lost after its charge."""
    (tmp_path / "data.csv").write_text("\n".join(["x", *texts]))
    asked: dict[str, Any] = {"column": "x", "between": (0, 5), "epsilon": 0.1, "dataset": "people", "request": "q"}
    with pt.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.grant("people", epsilon=1)
        found = pt.estimate(str(tmp_path / "data.csv"), "median", ledger=ledger, **asked)
        assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
        again = pt.estimate(str(tmp_path / "data.csv"), "median", ledger=ledger, **asked)
        assert (again.interval, float(ledger.spent("people"))) == (found.interval, 0.1)
    assert found.interval[0] == -np.inf
    assert type(found).from_dict(found.to_dict()).interval == found.interval
