"""`make check` runs something of every folder, and nothing that is known to be slow."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import check_names, left_tidy, long_ones_first, quick_choice, slow_tests

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "privatest"
METHOD = re.compile(r"::Test\w+::|^src/")


def item(nodeid: str, *marks: str) -> Any:
    return SimpleNamespace(
        nodeid=nodeid, get_closest_marker=lambda mark: SimpleNamespace(args=["spark"]) if mark in marks else None
    )


def test_first_and_last_case_of_what_is_not_slow() -> None:
    asked = [
        *(item(f"a.py::test_b[{case}]") for case in "123"),
        *(item("a.py::test_c"), item("a.py::test_d", "statistical"), item("a.py::test_e", "xdist_group")),
        *(item("a.py::test_f[x]"), item("a.py::test_f[y]"), item("b.py::test_g[1]")),
    ]
    found = [each.nodeid for each in quick_choice(asked, {"a.py::test_f", "b.py"})]
    assert found == ["a.py::test_b[1]", "a.py::test_b[3]", "a.py::test_c"]


def test_what_takes_longest_comes_first_and_files_stay_together() -> None:
    asked = [
        *(item("a.py::test_b"), item("b.py::test_c[1]"), item("b.py::test_c[2]"), item("b.py::test_e")),
        *(item("c.py::test_d[Spark]", "xdist_group"), item("c.py::test_f"), item("d.py::test_spark", "xdist_group")),
    ]
    slow = {"b.py::test_c": 2.0, "c.py::test_d": 5.0, "d.py::test_spark": 4.0, "c.py::test_f": 4.0}
    found = [each.nodeid for each in long_ones_first(asked, slow)]
    together = ["c.py::test_d[Spark]", "d.py::test_spark"]
    assert found == [*together, "b.py::test_c[1]", "b.py::test_c[2]", "b.py::test_e", "c.py::test_f", "a.py::test_b"]


def test_a_test_that_hides_that_it_needs_the_jvm_is_refused() -> None:
    """Tests are handed out by their names: unnamed, each process would start a JVM of its own."""
    check_names([item("c.py::test_d[Spark]", "xdist_group"), item("c.py::test_f")])
    with pytest.raises(pytest.UsageError, match=r"c\.py::test_h uses Spark"):
        check_names([item("c.py::test_h", "xdist_group")])


def test_every_slow_test_exists() -> None:
    """A test that was renamed would otherwise be quick again."""
    known = names(TESTS) | {name.partition("::")[0] for name in names(TESTS)}
    assert {name for name in slow_tests() if not METHOD.search(name) and name not in known} == set()


def names(folder: Path) -> set[str]:
    """Tests of a folder, by file and function."""
    found = set()
    for path in folder.rglob("test_*.py"):
        text, where = path.read_text(encoding="utf-8"), path.relative_to(TESTS.parent).as_posix()
        found |= {f"{where}::{name}" for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    return found


def test_every_folder_keeps_a_third_of_its_tests() -> None:
    slow = slow_tests()
    for folder in sorted(path for path in SOURCE.iterdir() if (path / "__init__.py").is_file()):
        every = names(TESTS / folder.name)
        kept = {name for name in every if not {name, name.partition("::")[0]} & set(slow)}
        assert len(kept) * 3 >= len(every) > 0, folder.name


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
