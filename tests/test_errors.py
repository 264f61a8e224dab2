"""Messages quote numbers as users write them, and name lines that install what is missing, wherever we came from."""

from __future__ import annotations

import json
import shlex
import tomllib
from decimal import Decimal
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import privatest as pt
from privatest.errors import MissingExtra, shown
from privatest.facts import Probability
from tests.needs import missing

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in ("dev", "mutants")])
def test_the_line_installs_what_the_extra_asks_for(extra: str) -> None:
    if extra not in (metadata.metadata("privatest").get_all("Provides-Extra") or ()):
        missing(f"The package was installed before it had the extra {extra!r}. Install it again: pip install -e .")
    line = str(MissingExtra.of("It is needed.", extra)).partition("Install it: ")[2]
    pip, install, *asked = shlex.split(line)
    assert (pip, install) == ("pip", "install")
    assert {str(Requirement(one)) for one in asked} == {str(Requirement(one)) for one in EXTRAS[extra]}
    assert not any(Requirement(one).name == "privatest" for one in asked), "it is in no index yet"


def test_numbers_are_quoted_as_users_write_them_whatever_their_type() -> None:
    values = [2, 0.5, np.int64(3), np.float64(0.25), np.float32(0.5), Fraction(1, 3), Decimal("0.1"), np.array(1.0)]
    assert [shown(value) for value in values] == ["2", "0.5", "3", "0.25", "0.5", "1/3", "0.1", "<ndarray>"]
    assert shown(10**5000) == "<int>"


def test_no_probability_is_told_as_0() -> None:
    told = str(pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=200_000))
    assert "alpha              < 1e-300" in told
    assert "beta               < 1e-300" in told
    curve = pt.power_curve("normal(0, 1)", "normal(1, 1)", epsilon=1, n=[200_000])
    assert curve.cells()[0][1:3] == ("< 1e-300", "< 1e-300")
    assert json.dumps(Probability(0.0)) == "0.0"
