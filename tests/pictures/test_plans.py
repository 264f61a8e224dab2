"""Sample complexity, power curves and comparisons: what is drawn is what the API says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import pictures
from tests.pictures import artists

PAIRS: dict[str, tuple[Any, Any, float]] = {
    "zero": ("bernoulli(0)", "bernoulli(0.1)", 0.5),
    "free": ("bernoulli(0.5)", "bernoulli(0.3)", 2),
    "labels": ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], 0.3),
    "reals": ("normal(0, 1)", "normal(1, 1)", 0.5),
    "disjoint": ({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}, 1),
    "tiny epsilon": ("bernoulli(0.4)", "bernoulli(0.6)", 1e-6),
}


def only(axes: Any, start: str) -> Any:
    (found,) = artists.labelled(axes, start)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_complexity_draws_the_theorem_s_numbers(name: str) -> None:
    null, alternative, epsilon = PAIRS[name]
    found = pt.sample_complexity(null, alternative, epsilon=epsilon)
    assert found.pair is not None
    axes = pictures.complexity(found, found.pair, patience=0.0)
    axes.figure.canvas.draw()
    x, y = only(axes, "theorem").get_data()
    assert y[np.flatnonzero(x == epsilon)[0]] == found.value
    for place in (0, len(x) // 2, -1):
        other = pt.sample_complexity(null, alternative, epsilon=float(x[place]))
        assert y[place] == pytest.approx(other.value, rel=1e-12)
    assert set(only(axes, "without privacy").get_ydata()) == {found.nonprivate}
    x, y = only(axes, "tails alone").get_data()
    assert y[np.flatnonzero(x == epsilon)] == pytest.approx(1 / found.tail_term if found.tail_term else [])
    regimes = {text for text in artists.texts(axes) if text in ("tails", "core", "free")}
    assert regimes
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_power_curve_draws_exact_error_rates_in_order_of_n() -> None:
    curve = pt.power_curve("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1, n=[64, 4, 16, 32, 128])
    axes = curve.plot()
    axes.figure.canvas.draw()
    order = np.argsort(curve.n)
    for start, values in (("advantage 1", curve.advantage), ("type I ", curve.alpha), ("type II ", curve.beta)):
        x, y = only(axes, start).get_data()
        assert list(x) == [4, 16, 32, 64, 128]
        assert list(y) == [values[i] for i in order]
    assert "2/3 from n = 29 on" in artists.legend(axes)  # between two of those shown, as sample_size has it
    assert "bernoulli(0.6)" in axes.get_title(loc="left")


@pytest.mark.parametrize("name", ["zero", pytest.param("labels", marks=pytest.mark.exhaustive)])
def test_comparison_draws_every_row(name: str) -> None:
    null, alternative, epsilon = PAIRS[name]
    table = pt.compare(null, alternative, epsilon=epsilon)
    axes = table.plot()
    axes.figure.canvas.draw()
    ends = sorted(bar.get_x() + bar.get_width() for part in axes.containers for bar in part)
    assert ends == pytest.approx(sorted(row.n for row in table.rows if row.n is not None))
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [row.test for row in table.rows]
    assert only(axes, "no private test").get_xdata()[0] == table.lower_bound
    for row in table.rows:
        assert (str(row.n) if row.n is not None else row.note) in artists.texts(axes)
