"""What `make test` leaves to `make exhaustive`, and how several processes share the tests."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import (
    EXHAUSTIVE,
    MEASURED_AS,
    check_names,
    is_there,
    left_tidy,
    long_cases,
    long_ones_first,
    measured_as,
)


def item(nodeid: str, *marks: str) -> Any:
    found = SimpleNamespace(
        nodeid=nodeid, get_closest_marker=lambda mark: SimpleNamespace(args=["spark"]) if mark in marks else None
    )
    found.stash = {MEASURED_AS: measured_as(found)}
    return found


def test_of_a_long_test_as_many_cases_are_kept_as_a_second_has_room_for() -> None:
    every = [item(f"a.py::test_b[{case}]") for case in range(9)]
    several = [*every, *(item(f"a.py::{name}[{case}]") for name in ("test_c", "test_e") for case in range(4))]
    several.append(item("a.py::test_d"))
    left_out = [
        each.nodeid
        for each in long_cases(
            several, {"a.py::test_b": 0.3, "a.py::test_c": 1.5, "a.py::test_e": 7, "a.py::test_d": 9}
        )
    ]
    assert left_out == [
        *(f"a.py::test_b[{case}]" for case in (1, 2, 3, 5, 6, 7)),
        *(f"a.py::test_c[{case}]" for case in (1, 2)),
        *(f"a.py::test_e[{case}]" for case in (1, 2, 3)),
    ]
    assert long_cases(every, {"a.py::test_b": 0.1}) == []
    marked = [*every[:2], *(item(each.nodeid, EXHAUSTIVE) for each in every[2:])]
    assert long_cases(marked, {"a.py::test_b": 0.5, "a.py::test_b[long]": 7}) == []


def test_times_are_known_of_the_tests_that_there_are() -> None:
    own = "tests/test_tiers.py::test_times_are_known_of_the_tests_that_there_are"
    assert measured_as(item(f"{own}[1-x]")) == own
    assert measured_as(item(f"{own}[1-x]", EXHAUSTIVE)) == f"{own}[long]"
    assert is_there(own)
    assert is_there(f"{own}[long]")
    assert is_there("src/privatest/bounds/lower_bound.py::privatest.bounds.lower_bound.lower_bound")
    assert not is_there("tests/gone.py::test_times_are_known_of_the_tests_that_there_are")
    assert not is_there("tests/test_errors.py::test_times_are_known_of_the_tests_that_there_are")


def test_what_takes_longest_comes_first_and_files_stay_together() -> None:
    several = [
        *(item("a.py::test_b"), item("b.py::test_c[1]"), item("b.py::test_c[2]"), item("b.py::test_e")),
        *(item("c.py::test_d[Spark]", "xdist_group"), item("c.py::test_f"), item("d.py::test_spark", "xdist_group")),
    ]
    seconds = {"b.py::test_c": 2.0, "c.py::test_d": 5.0, "d.py::test_spark": 4.0, "c.py::test_f": 4.0}
    found = [each.nodeid for each in long_ones_first(several, seconds)]
    together = ["c.py::test_d[Spark]", "d.py::test_spark"]
    assert found == [*together, "b.py::test_c[1]", "b.py::test_c[2]", "b.py::test_e", "c.py::test_f", "a.py::test_b"]


def test_a_test_that_hides_that_it_needs_the_jvm_is_refused() -> None:
    """Tests are handed out by their names: unnamed, each process would start a JVM of its own."""
    check_names([item("c.py::test_d[Spark]", "xdist_group"), item("c.py::test_f")])
    with pytest.raises(pytest.UsageError, match=r"c\.py::test_h uses Spark"):
        check_names([item("c.py::test_h", "xdist_group")])


@pytest.mark.parametrize("where", ["state.json", "docs/state.json", "tests/new"])
def test_what_is_left_beside_the_sources_is_told(tmp_path: Path, where: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    with left_tidy(tmp_path, "quiet.py"):
        (tmp_path / ".pytest_cache").mkdir()
        (tmp_path / "output").mkdir()
    with (
        pytest.raises(AssertionError, match=rf"untidy.py left {re.escape(where)}: tests write"),
        left_tidy(tmp_path, "untidy.py"),
    ):
        (tmp_path / where).touch()
