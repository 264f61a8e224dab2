"""The tests and files that every proof.md names exist: an argument must not outlive its evidence."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROOFS = sorted(ROOT.glob("src/privatest/*/proof.md"))


@cache
def text_of_the_tests() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.parent.name)
def test_every_test_and_file_that_is_named_exists(proof: Path) -> None:
    text = proof.read_text(encoding="utf-8")
    tests, files = set(re.findall(r"`(test_\w+)`", text)), set(re.findall(r"`(?:[\w/]+/)?(\w+\.py)\b", text))
    assert tests | files
    assert {name for name in tests if f"def {name}(" not in text_of_the_tests()} == set()
    there = {path.name for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    assert files - there == set()


def test_there_are_proofs() -> None:
    assert len(PROOFS) >= 6


def test_the_tests_that_see_the_named_mistakes_exist() -> None:
    mutants = tomllib.loads((ROOT / "tests/mutants_named.toml").read_text(encoding="utf-8"))["mutant"]
    for by in (one for mutant in mutants for one in mutant["by"]):
        file, *_, test = by.partition("[")[0].split("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), by
