"""Other private tests of two simple hypotheses need as many records as the tight test, or more."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.rivals_simple import sizes


def test_no_rival_needs_fewer_records_and_on_two_points_that_of_awan_and_slavkovic_needs_as_many() -> None:
    found = sizes([0.6, 0.4], [0.4, 0.6], Fraction(1))
    assert found["tight"] == found["Awan-Slavkovic"] == 29
    assert found["randomised response"] == 109
    assert all(n is None or n >= 29 for n in found.values())
