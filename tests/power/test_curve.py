"""Power curves are exact error rates at each n."""

from __future__ import annotations

import pytest

import privatest as pt
from privatest.errors import InvalidInput


def test_a_curve_holds_the_rates_of_the_designs() -> None:
    curve = pt.power_curve([0.6, 0.4], [0.4, 0.6], epsilon=1, n=[5, 29, 80])
    for n, alpha, beta, advantage in zip(curve.n, curve.alpha, curve.beta, curve.advantage, strict=True):
        test = pt.design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=n)
        assert (alpha, beta) == (test.alpha, test.beta)
        assert advantage == pytest.approx(test.advantage)
    assert curve.to_dict()["n"] == (5, 29, 80)


def test_without_n_the_curve_surrounds_the_sample_size() -> None:
    curve = pt.power_curve("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1)
    assert curve.n[0] < 29 < curve.n[-1]
    assert curve.advantage[0] < 2 / 3 < curve.advantage[-1]


def test_no_sizes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        pt.power_curve([0.6, 0.4], [0.4, 0.6], epsilon=1, n=[])
