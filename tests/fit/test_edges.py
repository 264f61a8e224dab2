"""Documents, statistics and parts of goodness-of-fit tests, one step on each side."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from privatest import engines
from privatest.errors import Infeasible, InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.fit.domain import histogram
from privatest.privacy import system_source
from privatest.scores import LabelCells

TEST = design_fit({"a": 0.5, "b": 0.3, "c": 0.2}, distance=0.3, epsilon=1, n=20)


def test_parts_that_do_not_fit_are_refused_one_by_one() -> None:
    cells = replace(TEST.domain, cells=LabelCells(("a", "b")))
    law = replace(TEST.domain, probabilities=np.array([0.5, 0.5]))
    both = replace(law, cells=LabelCells(("a", "b")))
    for domain in (cells, law, both):
        with pytest.raises(InvalidInput, match="The statistic has 3 symbols"):
            replace(TEST, domain=domain)


def test_the_statistic_is_the_distance_from_its_mean_for_each_record() -> None:
    width, mean = TEST.candidate.excess.width, TEST.null_law.mean
    for noisy in (Fraction(-7), Fraction(0), Fraction(11)):
        assert TEST.release(noisy + TEST.noise.offset).statistic == pytest.approx(
            (mean - float(noisy + TEST.noise.offset)) / (width * 20), rel=1e-12
        )


def test_a_total_that_is_the_cutoff_is_the_null() -> None:
    found = [TEST.release(TEST.cutoff + step).decision for step in (-1, 0, 1)]
    assert found == ["null", "null", "alternative"]


def test_the_noise_is_added_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = list("aaaaaaaaaabbbbbbcccc")
    monkeypatch.setattr(type(TEST.noise), "draw", lambda *_: TEST.noise.offset + 3)
    counts = histogram(engines.open_for(engines.Need(), data), TEST.domain.cells, TEST.odd_symbol, system_source)
    assert TEST.run(data) == TEST.release(TEST.candidate.excess.of(counts) + TEST.noise.offset + 3)


def test_records_of_which_one_person_may_have_many_are_refused_when_open_already() -> None:
    table = pa.table({"x": list("aaaaaaaaaabbbbbbcccc"), "who": [row % 4 for row in range(20)]})
    records = engines.open_source(table, column="x", unit="who", max_rows_per_unit=5)
    with pytest.raises(InvalidInput, match=r"max_rows_per_unit|row"):
        TEST.run(records)


def test_beta_of_a_design_may_be_what_was_asked_for() -> None:
    def made(beta: float | None) -> FitTest:
        return design_fit({"heads": 0.5, "tails": 0.5}, distance=0.3, epsilon=1, n=12, alpha=0.1, beta=beta)

    reached = made(None).beta
    assert made(reached).beta == reached
    with pytest.raises(Infeasible, match=r"^n=12 records give a type II error of .*: about [0-9]+ records are needed"):
        made(math.nextafter(reached, 0))
