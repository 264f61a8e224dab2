"""From what users give to pairs: domains are matched or refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest
from privatest.errors import InvalidDistribution, NothingToTest
from privatest.hypotheses import ContinuousPair, DiscretePair, as_distribution, make_pair, mixture


def test_forms_that_agree() -> None:
    forms: list[Any] = [
        "bernoulli(0.3)",
        stats.bernoulli(0.3),
        {0: 0.7, 1: 0.3},
        {1: 0.3, 0: 0.7},
        {False: 0.7, True: 0.3},
        [0.7, 0.3],
        np.array([0.7, 0.3]),
        "categorical(0.7, 0.3)",
        mixture([0.5, 0.5], [[0.9, 0.1], [0.5, 0.5]]),
        stats.rv_discrete(values=([0, 1], [0.7, 0.3])),
        stats.rv_discrete(values=([0, 1], [0.7, 0.3]))(),
    ]
    for form in forms:
        assert make_pair(form, "bernoulli(0.5)").total_variation == pytest.approx(0.2, rel=1e-12)
        assert make_pair([0.5, 0.5], form).total_variation == pytest.approx(0.2, rel=1e-12)


def test_kinds() -> None:
    assert make_pair([0.5, 0.5], {1: 0.1, 0: 0.9}).kind == "labels"
    assert make_pair([0.5, 0.5], "poisson(3)").kind == "integers"
    assert isinstance(make_pair([0.5, 0.5], "poisson(3)"), DiscretePair)
    assert isinstance(make_pair(stats.norm(), "cauchy(0, 1)"), ContinuousPair)


def test_labels_are_matched_by_name_not_by_place() -> None:
    pair = make_pair({"a": 0.2, "b": 0.8}, {"b": 0.2, "a": 0.8})
    assert isinstance(pair, DiscretePair)
    assert pair.labels == ("a", "b")
    assert pair.p.tolist() == [0.2, 0.8]
    assert pair.q.tolist() == [0.8, 0.2]


@pytest.mark.parametrize(
    ("null", "alternative", "says"),
    [
        ({"a": 1.0}, {"b": 1.0}, "different domains: alternative lacks 'a'; null lacks 'b'"),
        ([0.5, 0.5], [0.2, 0.3, 0.5], "null lacks 2. Give a missing label probability 0"),
        ({"a": 0.5, "b": 0.5}, "poisson(3)", "different domains: null"),
        ("poisson(3)", {0.5: 1.0}, "different domains: alternative"),
        (
            "normal(0, 1)",
            "poisson(3)",
            "null (normal(0, 1)) is continuous but alternative (poisson(3)) is discrete",
        ),
        ([0.5, 0.5], stats.norm(0, 1), "alternative (norm(0, 1)) is continuous but null"),
        (stats.norm, "normal(0, 1)", "null is the scipy family 'norm' without parameters: freeze it"),
        ("poisson(2)", stats.poisson, "stats.poisson(3)"),
        (stats.norm(0, -1), "normal(0, 1)", "null=norm(0, -1) has invalid parameters"),
        (stats.norm(np.nan, 1), "normal(0, 1)", "invalid parameters"),
        (stats.norm([0, 1], 1), "normal(0, 1)", "array of parameters"),
        (stats.poisson(-2), "poisson(1)", "invalid parameters"),
        (stats.poisson(2, loc=0.5), "poisson(1)", "off the integers"),
        (stats.rv_discrete(values=([0.5, 1.5], [0.5, 0.5])), "poisson(1)", "off the integers"),
        (stats.multivariate_normal([0, 0]), "normal(0, 1)", "no univariate frozen scipy distribution"),
        (stats.dirichlet([1, 2]), "normal(0, 1)", "no univariate frozen scipy distribution"),
        (stats.vonmises(1), "normal(0, 1)", "vonmises_line"),
    ],
)
def test_pairs_that_make_no_sense(null: Any, alternative: Any, says: str) -> None:
    with pytest.raises(InvalidDistribution) as caught:
        make_pair(null, alternative)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ("normal(0, 1)", stats.norm(0, 1)),
        ([0.5, 0.5], {1: 0.5, 0: 0.5}),
        ("poisson(3)", stats.poisson(3)),
        ("cauchy(1, 2)", "cauchy(1, 2)"),
        ("normal(0, 1)", "normal(1e-16, 1)"),
        ("student_t(1)", "cauchy(0, 1)"),
        ([1.0], [1.0]),
        ("mixture(0.5, normal(0, 1), 0.5, normal(0, 1))", "normal(0, 1)"),
        ("binomial(1, 0.3)", "bernoulli(0.3)"),
        ("gamma(1, 2)", "exponential(2)"),
    ],
)
def test_equal_distributions_leave_nothing_to_test(null: Any, alternative: Any) -> None:
    with pytest.raises(NothingToTest, match="same distribution"):
        make_pair(null, alternative)


def test_a_histogram_is_a_density() -> None:
    histogram = stats.rv_histogram((np.array([1, 3, 0, 4]), np.array([0.0, 1, 2, 3, 4])), density=False)
    pair = make_pair(histogram, "uniform(0, 4)")
    assert pair.total_variation == pytest.approx((0.125 + 0.25), rel=1e-12)
    assert pair.kl_reverse == np.inf
    truth = 1 - sum(np.sqrt(p / 4) for p in (0.125, 0.375, 0.5))
    assert pair.hellinger_squared == pytest.approx(truth, rel=1e-9)


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="needs scipy's newer distribution objects")
def test_newer_scipy_objects() -> None:
    pair = make_pair(stats.Normal(mu=0.0, sigma=1.0), "normal(1, 1)")
    assert pair.total_variation == pytest.approx(0.38292492254802624, rel=1e-10)
    assert "Normal" in repr(pair)


@pytest.mark.parametrize(
    "frozen",
    [
        stats.exponnorm(1.5),
        stats.foldnorm(1.0),
        stats.recipinvgauss(0.6),
        stats.skewnorm(3),
        stats.gengamma(2, 1.5),
        stats.triang(0.3),
        stats.johnsonsu(1, 2),
    ],
)
def test_scipy_families_of_all_sorts(frozen: Any) -> None:
    """Against a shifted copy: the shift keeps TV and H^2 symmetric."""
    shifted = type(frozen)(frozen.dist, *frozen.args, **{**frozen.kwds, "loc": 0.25})
    pair, back = make_pair(frozen, shifted), make_pair(shifted, frozen)
    assert pair.total_variation == pytest.approx(back.total_variation, rel=1e-9)
    assert pair.hellinger_squared == pytest.approx(back.hellinger_squared, rel=1e-9)
    assert pair.hockey_stick(0.0, reverse=True) == pytest.approx(pair.total_variation, rel=1e-8)


def test_distributions_pass_through() -> None:
    law = as_distribution("normal(0, 1)")
    assert as_distribution(law) is law


def test_importing_pairs_does_not_import_scipy_stats() -> None:
    code = "import sys, privatest.hypotheses; print('scipy.stats' in sys.modules)"
    source = str(Path(privatest.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.stdout.strip() == "False"
