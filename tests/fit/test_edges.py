"""Documents, statistics and parts of goodness-of-fit tests, one step on each side."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privatest import engines
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.fit import fit_test as designed
from privatest.fit.alternatives import Alternative
from privatest.fit.domain import histogram
from privatest.ledger import Ledger
from privatest.scores import LabelCells

TEST = design_fit({"a": 0.5, "b": 0.3, "c": 0.2}, distance=0.3, epsilon=1, n=20)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"n": 0}, "^n=0 must be a whole number of at least 1"),
        ({"n": True}, "^n=True must be a whole number of at least 1"),
        ({"distance": 0}, "lie in"),
        ({"distance": -0.5}, "lie in"),
        ({"distance": 1}, "lie in"),
        ({"distance": 1.5}, "lie in"),
        ({"probabilities": [0.5, 0.3, 0.2 + 2e-9]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [0.5, -0.3, 0.8]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [0.6, 0.6, 0.6]}, "^The probabilities of the null do not sum to 1"),
        ({"probabilities": [[0.5, 0.3, 0.2]]}, "^The probabilities of the null do not sum to 1"),
        ({"method": "magic"}, "^Unknown method 'magic'"),
        (
            {"noise": {"kind": "laplace", "scale": "5/2"}},
            "^The noise of a goodness-of-fit test must be of kind 'tulap'",
        ),
    ],
)
def test_documents_at_their_edges(changes: dict[str, Any], complaint: str) -> None:
    document = json.loads(TEST.to_json())
    assert FitTest.from_dict(document) == TEST
    for fine in ({"n": 1}, {"distance": 1e-9}, {"distance": 1 - 1e-9}, {"probabilities": [0.5, 0.5, 0.0]}):
        assert FitTest.from_dict(document | fine)
    with pytest.raises(InvalidDocument, match=complaint):
        FitTest.from_dict(document | changes)


def test_what_is_no_document_is_named() -> None:
    for wrong, name in (([], "'list'"), ({"format": "x"}, "'x'"), ({}, "None")):
        with pytest.raises(InvalidDocument, match=f"format {name}, expected"):
            FitTest.from_dict(wrong)  # type: ignore[arg-type]


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
    counts = histogram(engines.open_for(engines.Need(), data), TEST.domain.cells, TEST.odd_symbol)
    assert TEST.run(data) == TEST.release(TEST.candidate.excess.of(counts) + TEST.noise.offset + 3)


def test_documents_that_json_cannot_hold_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        replace(TEST, distance=math.nan).to_json()


def test_a_table_of_facts_names_the_null() -> None:
    assert TEST.domain.null in TEST._repr_html_()
    binned = replace(TEST, domain=replace(TEST.domain, bins="in 3 bins"))
    assert "in 3 bins" in binned._repr_html_()


def test_a_simulation_is_not_charged(tmp_path: Any) -> None:
    data = list("aaaaaaaaaabbbbbbcccc")
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        paid: dict[str, Any] = {"ledger": book, "dataset": "d", "request": "r"}
        with pytest.raises(InvalidInput, match="a simulation releases nothing"):
            TEST.run(data, rng=np.random.default_rng(1), **paid)
        assert book.spent("d") == 0
        TEST.run(data, **paid)
        assert book.spent("d") == 1


def test_records_of_which_one_person_may_have_many_are_refused_when_open_already() -> None:
    table = pa.table({"x": list("aaaaaaaaaabbbbbbcccc"), "who": [row % 4 for row in range(20)]})
    records = engines.open_source(table, column="x", unit="who", max_rows_per_unit=5)
    with pytest.raises(InvalidInput, match=r"max_rows_per_unit|row"):
        TEST.run(records)


def test_records_of_another_kind_are_refused_before_anything_is_charged(tmp_path: Any) -> None:
    with Ledger(tmp_path / "ledger.db") as book:
        book.grant("d", epsilon=1)
        with pytest.raises(InvalidData):
            TEST.run(engines.open_source(np.arange(20.0)), ledger=book, dataset="d", request="r")
        assert book.spent("d") == 0


@pytest.mark.parametrize(("many", "looked_at"), [(2, 2), (3, 5), (4, 5)])
@pytest.mark.parametrize(("alpha", "taken"), [(0.0, 1e-9), (0.2, 0.2), (1.0, 1 - 1e-9)])
def test_so_many_alternatives_are_looked_at(
    many: int, looked_at: int, alpha: float, taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three symbols: many are more than that."""
    test, asked, laws = replace(TEST), list[float](), list[Any]()
    vars(test)["alpha"] = alpha

    def hardest(_: Any, target: Any) -> list[tuple[float, Alternative]]:
        asked.append(target.alpha)
        return [(0.0, Alternative(f"number {i}", TEST.domain.probabilities)) for i in range(9)]

    law = type(TEST.candidate).law
    monkeypatch.setattr(designed, "MANY_SYMBOLS", many)
    monkeypatch.setattr(type(TEST.candidate), "hardest", hardest)
    monkeypatch.setattr(type(TEST.candidate), "law", lambda *call: laws.append(call) or law(*call))
    assert test.hardest_alternative == "number 0"
    assert (asked, len(laws)) == ([taken], looked_at)


def test_a_release_is_simulated_only_where_that_is_said() -> None:
    assert not TEST.release(TEST.cutoff).simulated
    assert TEST.release(TEST.cutoff, simulated=True).simulated


def test_releases_without_a_format_have_the_statistic_the_other_way_round() -> None:
    release = TEST.release(TEST.cutoff)
    document = release.to_dict()
    assert type(release).from_dict(document).statistic == release.statistic
    old = {name: value for name, value in document.items() if name != "format"}
    assert type(release).from_dict(old).statistic == -release.statistic
    with pytest.raises(InvalidDocument, match="privatest/fit"):
        type(release).from_dict(document | {"format": "privatest/fit-release/99"})
