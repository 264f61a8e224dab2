"""Data in a wrong place: no message, nor anything it is chained to, quotes a record or a sum of records."""

from __future__ import annotations

import inspect
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privatest as pt

PLACES = (271828.25, 314159.75)
NAMES = ("SECRETNAME", "HIDDENNAME")
COLUMN = [*PLACES, 1.5, -2.5] * 8
TEXTS = [*NAMES, "x"] * 8
SHOWN = ("271828", "314159", "SECRET", "HIDDEN", "502", "1004", f"{sum(COLUMN):.6g}"[:6])
BITS = np.array([1] * 502 + [0] * 500)
AS_DATA: dict[str, Callable[[], Any]] = {
    "numbers": lambda: list(COLUMN),
    "texts": lambda: list(TEXTS),
    "bits": lambda: BITS,
    "truths": lambda: BITS == 1,
    "array": lambda: np.array(COLUMN),
    "objects": lambda: np.array([*COLUMN, *TEXTS], dtype=object),
    "series": lambda: pd.Series(COLUMN),
    "frame": lambda: pd.DataFrame({"x": COLUMN, "y": COLUMN}),
    "polars": lambda: pl.Series(COLUMN),
    "set": lambda: set(COLUMN),
    "counts": lambda: Counter(TEXTS),
    "columns": lambda: {"x": COLUMN, "y": TEXTS},
    "bytes": lambda: ",".join(TEXTS).encode(),
    "page": lambda: "\n".join(TEXTS * 9),
    "iterator": lambda: iter(COLUMN),
    "one": lambda: np.array(COLUMN[:1]),
}
LAWS: dict[str, Any] = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.7)"}
PAIR: dict[str, Any] = {**LAWS, "epsilon": 1}
TEST = pt.design(**PAIR, n=20)
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "compare": (pt.compare, PAIR),
    "decompose": (pt.decompose, PAIR),
    "density": (pt.density, {"logpdf": lambda x: 0 * x, "support": (0, 1)}),
    "design": (pt.design, {**PAIR, "n": 20}),
    "detect_change": (pt.detect_change, {"data": [0, 1] * 60, **PAIR}),
    "design_fit": (pt.design_fit, {"null": [0.5, 0.5], "distance": 0.4, "epsilon": 1, "n": 40}),
    "size of a fit": (pt.design_fit, {"null": [0.5, 0.5], "distance": 0.4, "epsilon": 1}),
    "goodness_of_fit": (pt.goodness_of_fit, {"data": [0, 1] * 20, "null": [0.5, 0.5], "distance": 0.4, "epsilon": 1}),
    "lower_bound": (pt.lower_bound, PAIR),
    "min_epsilon": (pt.min_epsilon, {**LAWS, "n": 60}),
    "mixture": (pt.mixture, {"weights": [0.5, 0.5], "parts": ["normal(0, 1)", "normal(3, 1)"]}),
    "optimum": (pt.optimum, {**PAIR, "n": 3}),
    "size of the optimum": (pt.sample_size, {**PAIR, "epsilon": 2, "test": "optimum"}),
    "plan": (pt.plan, PAIR),
    "design_change": (pt.design_change, PAIR),
    "power_curve": (pt.power_curve, {**PAIR, "n": [10, 20]}),
    "sample_complexity": (pt.sample_complexity, PAIR),
    "sample_size": (pt.sample_size, PAIR),
    "count_records": (pt.data.count_records, {"source": [0, 1]}),
    "column_names": (pt.data.column_names, {"source": "/nowhere/data.csv"}),
    "read_lines": (pt.data.read_lines, {"lines": ["0"]}),
    "run": (TEST.run, {"data": [0, 1] * 10}),
    "from_json": (pt.results.PrivateTest.from_json, {"text": TEST.to_json()}),
    "from_dict": (pt.results.PrivateTest.from_dict, {"document": TEST.to_dict()}),
    "release_from_dict": (pt.results.Release.from_dict, {"document": TEST.run([0, 1] * 10).to_dict()}),
    "Monitor": (pt.Monitor, PAIR),
    "load": (pt.Monitor.load, {"path": "/nowhere/state"}),
    "update": (lambda **words: pt.Monitor(**PAIR).update_many(**words), {"batch": [0]}),
    "Ledger": (pt.Ledger, {"target": "/nowhere/ledger.db"}),
}
UNTOUCHED = {"_", "rng"}


def misplaced(name: str) -> Iterator[tuple[str, str]]:
    """Every argument of a function, with every form of data in its place."""
    call, given = CALLS[name]
    parameters = [*given, *inspect.signature(call).parameters]
    for argument in dict.fromkeys(parameters):
        if argument not in UNTOUCHED and argument not in ("words", "where"):
            yield from ((argument, form) for form in AS_DATA)


def quoted(call: Callable[..., Any], words: dict[str, Any]) -> str:
    """Everything that an error says, all that it came from included; nothing where there is none."""
    try:
        call(**words)
    except Exception as error:
        told = "".join(traceback.format_exception_only(error))
        while error.__context__ is not None or error.__cause__ is not None:
            hidden = error.__cause__ is None and error.__suppress_context__
            following = error.__cause__ if error.__cause__ is not None else error.__context__
            if hidden or following is None:
                break
            error = following  # type: ignore[assignment]
            told += "".join(traceback.format_exception_only(error))
        return told
    return ""


@pytest.mark.parametrize("name", CALLS)
def test_no_message_quotes_data(name: str) -> None:
    call, given = CALLS[name]
    for argument, form in misplaced(name):
        told = quoted(call, {**given, argument: AS_DATA[form]()})
        assert not any(word in told for word in SHOWN), (argument, form, told[:300])
        assert len(told) < 2000, (argument, form)


@pytest.mark.parametrize("argument", ["null", "alternative"])
@pytest.mark.parametrize("values", [[0, 1, 0], [0, 1, 1, 0], [1.0, 0.0, 0.0], [502, 498]], ids=str)
@pytest.mark.parametrize("name", ["compare", "Monitor", "design_change", "design"])
def test_values_taken_for_data_are_told_by_the_argument_and_by_what_is_true_of_them(
    name: str, values: list[float], argument: str
) -> None:
    call, given = CALLS[name]
    with pytest.raises(pt.errors.InvalidDistribution) as told:
        call(**{**given, argument: values})
    message = str(told.value)
    assert message.startswith(f"{argument} is taken for data: its values do not sum to 1")
    assert "or are all 0 or 1" in message
    assert "give the data to run(data)" in message
    assert "502" not in message
    assert "498" not in message
