"""Panels resolve what they say they resolve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.hypothesis.panels import doubling_panels


@pytest.mark.parametrize("frequency", [0.3, 5.0, 200.0])
@pytest.mark.parametrize("first", [1e-3, 10.0])
def test_waves_up_to_the_frequency_are_integrated_to_rounding(first: float, frequency: float) -> None:
    panels = doubling_panels(first, 3.0, frequency, 100)
    assert panels is not None
    nodes, weights = panels
    for share in (0.1, 0.9, 1.0):
        f = share * frequency
        assert math.fsum(weights * np.cos(f * nodes)) == pytest.approx(math.sin(3 * f) / f, abs=1e-13)


def test_the_first_panel_and_the_number_of_panels_are_bounded() -> None:
    panels = doubling_panels(1e-3, 3.0, 200.0, 25)
    assert panels is not None
    assert np.count_nonzero(panels[0] < 1e-3) == 24
    assert doubling_panels(1e-3, 3.0, 200.0, 24) is None
