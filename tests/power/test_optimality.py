"""The tight test beside the best possible one; benchmarks/optimality.py runs the whole grid."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def optimality() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "optimality.py"
    spec = importlib.util.spec_from_file_location("optimality", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["optimality"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_binary_pairs_need_at_most_one_record_more(optimality, show) -> None:  # type: ignore[no-untyped-def]
    found = optimality.cases(optimality.BINARY[::4], (0.3, 1, 3))
    show(f"binary: most records above the optimum {max(case.tight - case.best for case in found)}")
    assert all(case.tight <= case.best + 1 for case in found)
    assert all(case.bound <= case.best for case in found)


@pytest.mark.exhaustive
def test_ternary_pairs_need_at_most_a_tenth_or_two_records_more(optimality, show) -> None:  # type: ignore[no-untyped-def]
    found = optimality.cases([optimality.TERNARY[i] for i in (0, 6)], (0.5, 3))
    worst = max(found, key=lambda case: case.ratio)
    loosest = min(case.bound / case.best for case in found)
    show(f"ternary: largest n over the optimum {worst.ratio:.3f} at {worst}; bound over optimum at least {loosest:.3f}")
    assert all(case.tight <= max(1.1 * case.best, case.best + 2) for case in found)
    assert all(case.bound <= case.best for case in found)
