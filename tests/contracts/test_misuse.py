"""Every parameter of every quick public function, given what it cannot be: an answer, or an error of this package's.

Nothing of numpy's, scipy's or Python's own comes out, and no warning (the suite makes errors of them).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import cli
from privatest.studio import planning_requests

PAIR = {"null": "bernoulli(0.3)", "alternative": "bernoulli(0.7)"}
FAIR = [0.25] * 4
DATA = [0, 1] * 10


def tossed(_: Any) -> list[float]:
    return [0.5, 0.5]


TESTED = {"test": "tight", "clamp": "paper", "threshold": None, "neighbours": "replace", "max_rows_per_unit": 1}
PRICED = {"epsilon": 1, "privacy": None}
AIMED = {"advantage": 0.3, "alpha": None, "beta": None}
PLACED = {"column": None, "unit": None, "ledger": None, "dataset": None, "request": None}
CALLS: dict[str, dict[str, Any]] = {
    "adaptive_level": {"alpha": 0.05, "n": 100, **PRICED},
    "approx": {"epsilon": 1, "delta": 1e-6},
    "notions.parse": {"value": "gdp(1)"},
    "check": {"data": DATA, **PAIR, "column": None, "epsilon": 1, "n": 20},
    "results.combine_evalues": {"values": [1, 2.0], "dependent": False},
    "results.compare_noised": {"control": (10, 30, "laplace(1)"), "treatment": (15, 30, "laplace(1)"), "alpha": 0.05},
    "notions.compare": {**PAIR, **PRICED, **AIMED, "delta": 1e-6, "order": 2},
    "contaminated": {"centre": "normal(0, 1)", "share": 0.02},
    "data.count_records": {"source": DATA, "column": None},
    "decide": {"data": DATA, **PAIR, **PRICED, "n": 20, **TESTED, **PLACED, "release": "statistic", "rng": None},
    "decompose": {**PAIR, "epsilon": 0.5},
    "design": {**PAIR, **PRICED, "n": 20, **TESTED, "alpha": None, "release": "statistic"},
    "design_fit": {"null": FAIR, "distance": 0.3, **PRICED, "n": 30, "alpha": 0.1, "beta": None, "bins": None},
    "design_groups": {"n": (20, 20), **PRICED, "alpha": 0.05, "confidence": 0.9, "above": None, "success": None},
    "results.evalue_discoveries": {"values": [1.0, 50.0], "alpha": 0.1},
    "gdp": {"mu": 1},
    "kl": {"eta": 0.1},
    "lower_bound": {**PAIR, **PRICED, **AIMED},
    "mixture": {"weights": [0.5, 0.5], "parts": ["normal(0, 1)", "normal(1, 1)"]},
    "near": {"centre": "normal(0, 1)", "distance": 0.02},
    "optimum": {**PAIR, **PRICED, "n": 4, "alpha": None},
    "pure": {"epsilon": 1},
    "data.read_as": {"data": ["1", "2"], "decimal": ".", "missing": (), "fold_case": False, "delimiter": None},
    "data.read_lines": {"lines": ["1", "2"]},
    "renyi": {"order": 2, "bound": 1},
    "sample_complexity": {**PAIR, "epsilon": 0.5},
    "sample_size": {**PAIR, **PRICED, **AIMED, **TESTED},
    "tv": {"eta": 0.1},
    "verify_privacy": {"mechanism": tossed, "domain": [0, 1], "n": 2, **PRICED, "ordered": False},
    "zcdp": {"rho": 0.5},
}  # fmt: skip
ODD = {
    "none": None, "text": "abc", "null": "\0", "bytes": b"1", "list": [1, 2, 3], "mapping": {"a": 1}, "nan": math.nan,
    "inf": math.inf, "negative": -1, "vast": 10**400, "tiny": 5e-324, "huge": 1e308, "truth": True, "complex": 1j,
    "flat": np.array(0.5), "array": np.array([0.5, 1.0]), "no array": np.array([]), "integer": np.int64(3),
    "decimal": Decimal("0.5"), "no decimal": Decimal("NaN"), "fraction": Fraction(1, 2), "object": object(),
    "function": print,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_wrong_parameters_are_refused_by_an_error_of_ours(name: str) -> None:
    strange = []
    for word in CALLS[name]:
        for kind, value in ODD.items():
            try:
                attrgetter(name)(pt)(**{**CALLS[name], word: value})
            except pt.errors.PrivatestError:
                continue
            except Exception as error:  # whatever it is, it should not be
                strange.append(f"{word}={kind}: {type(error).__name__}: {error}")
    assert not strange


PARTIAL_MARKS = (
    "bernoulli(-?)", "bernoulli(+?)", "bernoulli(0.?)", "bernoulli(0?)", "bernoulli(?0)", "bernoulli(?1)",
    "bernoulli(?e1)", "bernoulli(1/?)", "bernoulli(?/2)", "bernoulli(2*?)", "bernoulli(1 ?)", "bernoulli(? 1)",
    "bernoulli(p<=?)", "bernoulli(p>=?)", "bernoulli(p in [0, ?])", "bernoulli(p in [?, 1])", "bernoulli(?, ?)",
    "bernoulli(?=0.3)", "b?(0.3)", "bernoulli(??)", "bernoulli('?')", "?", "categorical(yes=-?)", "categorical(yes=1?)",
    "categorical('?'=0.5)", "share_above(5, 0.?)", "share_above(5, share>=?)", "near(bernoulli(-?), 0.1)",
    "mixture(0.5, bernoulli(?1), 0.5, bernoulli(0))",
)  # fmt: skip
"""Texts in which no question mark is the whole value of one parameter."""


@pytest.mark.parametrize("text", PARTIAL_MARKS)
def test_a_question_mark_that_is_not_a_whole_value_is_refused_wherever_it_is_written(text: str, tmp_path: Path) -> None:
    test = pt.design(**PAIR, epsilon=1, n=20)
    made = pt.design_estimate("bernoulli(?)", epsilon=1, n=20).to_json()
    problem = tmp_path / "problem.toml"
    problem.write_text(f"family = {json.dumps(text)}\nepsilon = 1\nn = 20\n")
    asked = {**PAIR, "epsilon": 1.0, "n": 20, "family": text, "between": [0.1, 0.9]}
    entrances: dict[str, Callable[[], Any]] = {
        "design_estimate": lambda: pt.design_estimate(text, epsilon=1, n=20, between=(0.1, 0.9)),
        "estimate": lambda: pt.estimate(DATA, text, epsilon=1, between=(0.1, 0.9)),
        "design_groups": lambda: pt.design_groups(n=(20, 20), epsilon=1, outcome=text),
        "power_along": lambda: test.power_along(text, [0.2, 0.4]),
        "document": lambda: pt.results.EstimateDesign.from_json(made.replace("bernoulli(?)", text.replace('"', "'"))),
        "studio": lambda: planning_requests.along(**asked),
    }
    for name, call in entrances.items():
        with pytest.raises(pt.errors.InvalidInput, match=r"question mark|must be 'bernoulli|Two unknown parameters"):
            print(name, call())
    with pytest.raises(pt.errors.InvalidInput):
        pt.design("bernoulli(0.3)", text, epsilon=1, n=20)
    for words in (["--family", text, "--epsilon", "1", "--n", "20"], ["--problem", str(problem)]):
        assert cli.main(["estimate", *words]) == 2
