"""Looking before asking: exact counts of what a test would make of the data, for the holder, and written nowhere."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privatest as pt
from privatest import report
from privatest.errors import InvalidInput
from privatest.power.data_check import Look

NORMAL = "normal(0, 1)", "normal(1, 1)"
ANSWERS = {"yes": 0.3, "no": 0.7}, {"yes": 0.7, "no": 0.3}
ODD = ["records", "missing", "unreadable", "unknown_labels", "outside"]


def counts(look: Look) -> dict[str, int]:
    return {name: getattr(look, name) for name in ODD if getattr(look, name)}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ([0.5, None, math.nan, math.inf, "x", "", " ", "1,5", [1], pd.NaT, pd.NA], (6, 3, 1)),
        (np.array([0.5, math.nan, math.inf, -math.inf, math.nan]), (2, 0, 2)),
        (pt.data.read_lines(["0.5", "", "NaN", "1,5", "x", "1e999"]), (1, 3, 1)),
        (pd.Series([0.5, None], dtype="Float64"), (1, 0, 0)),
    ],
)
def test_numbers(data: Any, found: tuple[int, int, int]) -> None:
    look = pt.check(data, *NORMAL)
    assert (look.missing, look.unreadable, look.outside) == found
    assert look.unknown_labels == 0


def test_a_decimal_comma_is_told_and_read() -> None:
    lines = ["0,5", "1,5", "x", "0.5"]
    look = pt.check(pt.data.read_lines(lines), *NORMAL)
    assert (look.unreadable, look.decimal_comma) == (3, 2)
    assert '--decimal ","' in str(look)
    read = pt.check(pt.data.read_as(pt.data.read_lines(lines), decimal=","), *NORMAL)
    assert (read.unreadable, read.decimal_comma) == (2, 0)


def test_the_ends_of_the_clamp() -> None:
    values = np.linspace(-4, 5, 1000)
    plain = pt.check(values, *NORMAL)
    assert plain.clamp_of == "the paper's test at epsilon=1"
    assert plain.clamp == (-1.0, 1.0)
    ratios = 0.5 - values
    assert abs(plain.low_end - int((ratios <= -1).sum())) <= 2
    assert abs(plain.high_end - int((ratios >= 1).sum())) <= 2
    tuned = pt.check(values, *NORMAL, epsilon=0.5, n=70)
    assert tuned.clamp_of == "the tuned test at epsilon=0.5, n=70"
    assert tuned.clamp == pt.design(*NORMAL, epsilon=0.5, n=70).clamp
    assert pt.check(values, *NORMAL, epsilon=0.5).clamp_of.endswith("n=1,000")
    with pytest.raises(InvalidInput, match="n=70 was given without epsilon"):
        pt.check(values, *NORMAL, n=70)
    for odd in (0, -1, "70", [70], math.nan):
        with pytest.raises(InvalidInput, match=r"^n=.* must be a whole number"):
            pt.check(values, *NORMAL, epsilon=0.5, n=odd)  # type: ignore[arg-type]


def test_it_says_first_that_it_is_not_private(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        look = pt.check(["secret 4711"], *ANSWERS)
    assert str(look).startswith("NOT PRIVATE, for the eyes of the data's holder only")
    document = look.to_dict()
    assert next(iter(document)) == "warning"
    assert document["warning"].startswith("NOT PRIVATE")
    assert document["private"] is False
    assert json.loads(json.dumps(document)) == document
    assert "4711" in str(look)
    assert "4711" not in repr(look) + caplog.text  # what logs keep of it
    assert "NOT PRIVATE" in repr(look)
    assert not hasattr(look, "plot")


def test_it_costs_nothing_and_is_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x\n0.5\nsecret 4711\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert pt.check("a.csv", *NORMAL, column="x").unreadable == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    with pytest.raises(InvalidInput):
        report.render(question={}, result=pt.check("a.csv", *NORMAL), kind="test")  # type: ignore[arg-type]
    for word in ("ledger", "dataset", "request", "report"):
        with pytest.raises(TypeError, match=word):
            pt.check("a.csv", *NORMAL, column="x", **{word: "w"})
