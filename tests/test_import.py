"""Importing the package is quick and brings in nothing that only some users need."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = [
    "pandas",
    "sqlalchemy",
    "psycopg",
    "polars",
    "pyarrow",
    "matplotlib",
    "duckdb",
    "ibis",
    "pyspark",
    "fastapi",
    "plotly",
    "dp_accounting",
    "opendp",
]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    source = str(Path(__file__).resolve().parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


def test_import_brings_in_nothing_heavy() -> None:
    code = f"import sys, privatest; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_public_names_exist_and_are_documented() -> None:
    code = (
        "import privatest as pt\n"
        "names = [name for name in pt.__all__ if not name.startswith('_')]\n"
        "assert len(names) == len(set(names)) and names, names\n"
        "print([name for name in names if not (getattr(pt, name).__doc__ or '').strip()])\n"
    )
    assert python("-c", code).stdout.strip() == "[]"


def test_errors_and_the_papers_objects_are_reached_from_the_package() -> None:
    code = (
        "import privatest as pt\n"
        "assert {'errors', 'theory', 'decide', 'design_fit', 'design_change'} <= {*dir(pt)} & {*pt.__all__}\n"
        "coins = 'bernoulli(0.3)', 'bernoulli(0.7)'\n"
        "print(issubclass(pt.errors.BudgetExceeded, pt.errors.PrivatestError))\n"
        "print(type(pt.theory.coupling(*coins, epsilon=1, n=3)).__name__)\n"
        "print(type(pt.theory.wasserstein(*coins, epsilon=1, n=3)).__name__)\n"
    )
    assert python("-c", code).stdout.split() == ["True", "Coupling", "Wasserstein"]


PLANS = {
    "normal(0, 1)": "normal(0.2, 1)",
    "exponential(3)": "exponential(5)",
    "categorical(a=0.2, b=0.8)": "categorical(a=0.5, b=0.5)",
}
NOT_FOR_A_PLAN = ["scipy", "privatest.engines", "privatest.ledger", "privatest.changepoint", "privatest.fit", *HEAVY]


def loaded_by_a_plan(null: str, alternative: str) -> list[str]:
    words = ["plan", "--null", null, "--alternative", alternative, "--epsilon", "1", "--json"]
    code = (
        "import sys\nfrom privatest.cli import main\n"
        f"assert main({words!r}) == 0\n"
        f"print([name for name in {[*NOT_FOR_A_PLAN, 'scipy.stats', 'scipy.special']} if name in sys.modules])"
    )
    listed = python("-c", code).stdout.splitlines()[-1]
    return re.findall(r"'([^']+)'", listed)


@pytest.mark.parametrize("null", PLANS)
def test_a_cold_plan_does_without_scipy_and_engines(null: str) -> None:
    """Importing scipy.stats takes longer than all the rest of such a plan."""
    assert loaded_by_a_plan(null, PLANS[null]) == []


def test_a_plan_of_counts_does_without_scipy_stats() -> None:
    for family in ("binomial(9, 0.3)", "binomial(9, 0.5)"), ("poisson(3)", "poisson(5)"):
        assert loaded_by_a_plan(*family) == ["scipy", "scipy.special"]


def test_recognising_what_users_give_does_not_import_scipy() -> None:
    code = (
        "import sys, privatest as pt\n"
        "class Odd:\n    def rvs(self): ...\n"
        "try:\n    pt.design(Odd(), 'normal(0, 1)', epsilon=1, n=10)\n"
        "except pt.errors.InvalidDistribution as error:\n    print('scipy' in sys.modules, error)\n"
    )
    assert python("-c", code).stdout.startswith("False null is a Odd, which is no univariate frozen scipy")
