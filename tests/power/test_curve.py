"""Power curves are exact error rates at each n."""

from __future__ import annotations

from typing import Any

import pytest

import privatest as pt


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


@pytest.mark.parametrize(
    ("laws", "epsilon", "settings"),
    [
        (("bernoulli(0.6)", "bernoulli(0.4)"), 1, {}),
        (("normal(0, 1)", "normal(2.5, 1)"), 1, {}),
        (("normal(0, 1)", "normal(2.5, 1)"), 1, {"alpha": 0.05}),
        (("binomial(4, 0.4)", "binomial(4, 0.6)"), 1, {"alpha": 0.05}),
        (("bernoulli(0.5)", "bernoulli(0.52)"), 0.5, {}),
        (("bernoulli(0.6)", "bernoulli(0.4)"), 1, {"test": "scllr"}),
        (("bernoulli(0.6)", "bernoulli(0.4)"), 1, {"neighbours": "add-remove"}),
    ],
)
def test_a_curve_and_sample_size_say_the_same(laws: Any, epsilon: float, settings: dict[str, Any]) -> None:
    """enough is what sample_size computes, whatever n are shown; without n it is one of them."""
    asked = {**settings, **({"beta": 0.2} if "alpha" in settings else {})}
    n = pt.sample_size(*laws, epsilon=epsilon, **asked)
    curve = pt.power_curve(*laws, epsilon=epsilon, **settings)
    assert curve.enough == n in curve.n
    assert pt.power_curve(*laws, epsilon=epsilon, n=[n // 2, 2 * n], **settings).enough == n
    if "alpha" not in settings:
        assert pt.plan(*laws, epsilon=epsilon, **settings).n == n
        place = curve.n.index(n)
        assert curve.advantage[place - 1] < curve.advantage[place]
        assert curve.advantage[place] >= 2 / 3


def test_a_long_list_has_the_rates_of_the_designs_nearly() -> None:
    sizes = list(range(20, 700, 20))
    curve = pt.power_curve("normal(0, 1)", "normal(0.3, 1)", epsilon=0.5, n=sizes)
    assert list(curve.n) == sizes
    for place in (0, 7, 20, 33):
        made = pt.design("normal(0, 1)", "normal(0.3, 1)", epsilon=0.5, n=sizes[place])
        assert curve.advantage[place] == pytest.approx(made.advantage, abs=1e-4)
