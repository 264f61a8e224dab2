"""Densities from the user's own log density."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privatest.errors import InvalidDistribution
from privatest.hypotheses import density, make_pair


@pytest.mark.parametrize(
    ("law", "support"),
    [
        (stats.norm(0, 1), (-math.inf, math.inf)),
        (stats.norm(1e6, 1e-3), (-math.inf, math.inf)),
        (stats.norm(-3e-4, 1e-7), (-math.inf, math.inf)),
        (stats.cauchy(5, 2), (-math.inf, math.inf)),
        (stats.expon(), (0, math.inf)),
        (stats.expon(scale=1e-9), (0, math.inf)),
        (stats.expon(loc=-7), (-7, math.inf)),
        (stats.gamma(0.5), (0, math.inf)),
        (stats.gamma(500), (0, math.inf)),
        (stats.beta(2, 5), (0, 1)),
        (stats.laplace(0.3, 1), (-math.inf, math.inf)),
        (stats.uniform(2, 3), (2, 5)),
        (stats.triang(0.37), (0, 1)),
        (stats.gumbel_l(), (-math.inf, math.inf)),
    ],
)
def test_cdf_and_complement_match_scipy(law: Any, support: tuple[float, float]) -> None:
    if law.dist.name == "cauchy" and law.cdf(-1e20) == 0:
        pytest.skip("scipy's cauchy has no tails before 1.15")
    mine = density(law.logpdf, support=support)
    u = np.array([1e-12, 1e-6, 0.01, 0.2, 0.5, 0.8, 0.99])
    x, y = law.ppf(u), law.isf(u)
    # a narrow peak far from 0 is only as sharp as the floats around it, and so are scipy's own complements
    relative = {1e6: 1e-6}.get(law.median().round(3), 1e-9 if law.dist.name != "triang" else 1e-3)
    np.testing.assert_allclose(mine.cdf(x), law.cdf(x), rtol=relative)
    np.testing.assert_allclose(mine.sf(y), law.sf(y), rtol=relative)
    np.testing.assert_allclose(mine.ppf(mine.cdf(x)), x, rtol=1e-9, atol=1e-15 * law.std() if law.std() < 9 else 0)
    assert mine.error < relative
    assert mine.cdf(support[0]) == 0
    assert mine.sf(support[1]) == 0
    assert np.isnan(mine.cdf(np.nan))


def test_a_density_equals_scipy_in_a_pair() -> None:
    mine = make_pair(density(stats.norm(0, 1).logpdf), density(stats.norm(1, 1).logpdf))
    assert mine.total_variation == pytest.approx(0.38292492254802624, rel=1e-12)
    assert mine.hellinger_squared == pytest.approx(0.11750309741540454, rel=1e-12)
    assert mine.hockey_stick(0.5) == pytest.approx(0.23842170813487656, rel=1e-12)


def test_two_modes_are_found() -> None:
    both = stats.norm(-50, 1), stats.norm(80, 2)

    def log(x: Any) -> Any:
        return np.logaddexp(math.log(0.25) + both[0].logpdf(x), math.log(0.75) + both[1].logpdf(x))

    assert density(log).cdf(0.0) == pytest.approx(0.25, rel=1e-9)


def test_points_name_a_peak_that_no_search_would_find() -> None:
    peak = stats.uniform(0.123456, 1e-7)

    def log(x: Any) -> Any:
        return np.log(0.5 + 0.5 * peak.pdf(x))

    with pytest.raises(InvalidDistribution, match="points="):
        density(log, support=(0, 1))
    law = density(log, support=(0, 1), points=[0.123456, 0.123456 + 1e-7])
    assert law.cdf(0.2) == pytest.approx(0.5 + 0.1, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"logpdf": lambda x: np.log(x), "support": (0, 1)}, "integrates to 0.5"),
        ({"logpdf": lambda x: np.where(x > 0.3, np.nan, 0.0), "support": (0, 1)}, "NaN at x="),
        ({"logpdf": lambda x: np.where((x > 0.3) & (x < 0.9), np.inf, 0.0), "support": (0, 1)}, "+inf at x="),
        ({"logpdf": lambda x: 0.0 * x, "support": (1, 0)}, "low < high"),
        ({"logpdf": lambda x: 0.0 * x, "support": 3}, "two numbers"),
        ({"logpdf": lambda x: 0.0 * x, "support": (0, 1), "points": ["a"]}, "points="),
        ({"logpdf": lambda x: 0.0 * x, "support": (0, 1), "points": [math.inf]}, "finite"),
        ({"logpdf": 3.0}, "function of x, not float"),
        ({"logpdf": lambda x: np.array(["a"] * len(x)), "support": (0, 1)}, "real numbers"),
        ({"logpdf": lambda x: math.log(x - 5), "support": (0, 1)}, "logpdf raised ValueError"),
        ({"logpdf": lambda x: 0.0 * x if len(x) == 2 else 1 / 0, "support": (0, 1)}, "logpdf raised ZeroDivisionError"),
    ],
)
def test_bad_densities_say_why(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDistribution) as caught:
        density(**arguments)
    assert says in str(caught.value)
