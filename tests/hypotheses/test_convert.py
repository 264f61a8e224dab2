"""From what users give to pairs: domains are matched or refused.

The parser: what it reads, and what it says to what it cannot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privatest.errors import InvalidDistribution, NothingToTest
from privatest.hypotheses import (
    DiscretePair,
    as_distribution,
    make_pair,
    mixture,
    parse,
)
from privatest.hypotheses.families import ALIASES, FAMILIES


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
        (stats.norm, "normal(0, 1)", "null is the scipy family 'norm' without parameters: freeze it"),
        (stats.norm(0, -1), "normal(0, 1)", "null=norm(0, -1) has invalid parameters"),
        (stats.norm([0, 1], 1), "normal(0, 1)", "array of parameters"),
        (stats.poisson(2, loc=0.5), "poisson(1)", "off the integers"),
        (stats.rv_discrete(values=([0.5, 1.5], [0.5, 0.5])), "poisson(1)", "off the integers"),
        (stats.multivariate_normal([0, 0]), "normal(0, 1)", "no univariate frozen scipy distribution"),
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


CONTINUOUS = {
    "normal(1, 2)": stats.norm(1, 2),
    "gaussian(mean=1, sd=2)": stats.norm(1, 2),
    "Normal( 1 ,2 )": stats.norm(1, 2),
    "normal(-1, sd=.5)": stats.norm(-1, 0.5),
    "normal()": stats.norm(0, 1),
    "normal(+1, 1e0)": stats.norm(1, 1),
    "laplace(0, 2)": stats.laplace(0, 2),
    "uniform(-1, 3)": stats.uniform(-1, 4),
    "exponential(2)": stats.expon(scale=2),
    "exponential(rate=4)": stats.expon(scale=0.25),
    "exponential(mean=2)": stats.expon(scale=2),
    "gamma(2, 3)": stats.gamma(2, scale=3),
    "inverse_gamma(2, 3)": stats.invgamma(2, scale=3),
    "beta(2, 1/2)": stats.beta(2, 0.5),
    "cauchy(0, 1)": stats.cauchy(0, 1),
    "student_t(3)": stats.t(3),
    "t(3, 1, 2)": stats.t(3, 1, 2),
    "logistic(1, 2)": stats.logistic(1, 2),
    "gumbel(1, 2)": stats.gumbel_r(1, 2),
    "lognormal(0.5, 0.3)": stats.lognorm(0.3, scale=np.exp(0.5)),
    "weibull(1.5, 2)": stats.weibull_min(1.5, scale=2),
    "pareto(3, 2)": stats.pareto(3, scale=2),
    "chi2(4)": stats.chi2(4),
    "half_normal(2)": stats.halfnorm(scale=2),
    "rayleigh(2)": stats.rayleigh(scale=2),
}
DISCRETE = {
    "bernoulli(0.3)": stats.bernoulli(0.3),
    "bernoulli(p=1/3)": stats.bernoulli(1 / 3),
    "binomial(10, 0.3)": stats.binom(10, 0.3),
    "poisson(3)": stats.poisson(3),
    "geometric(0.25)": stats.geom(0.25),
    "negative_binomial(2.5, 0.4)": stats.nbinom(2.5, 0.4),
    "zipf(3)": stats.zipf(3),
}


@pytest.mark.parametrize("text", [*CONTINUOUS, *DISCRETE])
def test_spec_of_text_and_of_scipy_reads_back(text: str) -> None:
    law = parse(text)
    assert law.spec is not None
    assert parse(law.spec).spec == law.spec == repr(law)
    other = as_distribution({**CONTINUOUS, **DISCRETE}[text])
    if other.spec is not None:
        assert parse(other.spec).spec == other.spec
    if "lognormal" not in text:
        assert other.spec == law.spec


def test_every_family_is_covered() -> None:
    named = {ALIASES.get(text.split("(")[0].lower(), text.split("(")[0].lower()) for text in [*CONTINUOUS, *DISCRETE]}
    assert named | {"share_above"} == set(FAMILIES), "all but the one that scipy does not know"


def test_scipy_outside_our_parametrisation_has_no_spec() -> None:
    assert as_distribution(stats.gamma(2, loc=1)).spec is None
    assert as_distribution(stats.poisson(3, loc=2)).spec is None
    assert as_distribution(stats.genextreme(0.1)).spec is None
    assert as_distribution(stats.norm(0, scale=2)).describe() == "norm(0, scale=2)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty text"),
        ("normal", "expected '(' after 'normal' but found the end of the text"),
        ("normal(", "expected a number but found the end of the text"),
        ("normal(0, 1", "expected ',' or ')' but found the end of the text"),
        ("normal(0, 1))", "nothing after the distribution but found ')'"),
        ("normal(0,, 1)", "expected a number but found ','"),
        ("normal(0, 1/0)", "division by 0"),
        ("normal(0, 1e999)", "too large"),
        ("normal(nan, 1)", "'nan' is not a number"),
        ("normal(0, 0)", "sd=0 must be greater than 0"),
        ("normal(0, 1, 2)", "takes 2 parameters but 3 were given"),
        ("normal(0, sdd=1)", "no parameter 'sdd'. Did you mean 'sd'?"),
        ("normal(mean=0, 1)", "without a name follows one with a name"),
        ("normal(0, mean=1)", "'mean' twice"),
        ("normal(normal(0, 1), 1)", "takes numbers, not a distribution"),
        ("norml(0, 1)", "Did you mean 'normal'?"),
        ("xyzzy(3)", "Known: normal"),
        ("bernoulli(1.5)", "p=1.5 must be between 0 and 1"),
        ("binomial(2.5, 0.5)", "n=2.5 must be a whole number"),
        ("uniform(1, 1)", "low=1 must be less than high=1"),
        ("exponential(rate=0)", "rate=0 must be greater than 0"),
        ("categorical()", "at least one label"),
        ("categorical(a=0.5, 0.5)", "every label"),
        ("categorical(a=0.5, b=0.6)", "sum to more than 1"),
        ("categorical(a=0.5, a=0.5)", "label twice: 'a'"),
        ("categorical('a'0.5)", "expected '='"),
        ("categorical('a=0.5)", "never closed"),
        ("categorical(1.5=1)", "whole number, a word or quoted"),
        ("mixture()", "alternates"),
        ("mixture(0.5, normal(0, 1), 0.6, normal(1, 1))", "sum to more than 1"),
        ("mixture(0.5, normal(0, 1), 0.5, poisson(1))", "continuous with discrete"),
        ("5", "name of a distribution but found '5'"),
        ("normal(0; 1)", "the character ';'"),
        ("nörmal(0, 1)", "'ö'"),
        ("normal(0, 1)\x00", "'\\x00'"),
        ("__import__('os').system('true')", "the character '.'"),
        ("__import__('os')", "no distribution is called '__import__'"),
        ("mixture(1, " * 30 + "normal(0, 1)" + ")" * 30, "nested more than 20 deep"),
    ],
)
def test_malformed_text_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(InvalidDistribution) as caught:
        parse(text, "null")
    assert says in str(caught.value)


def test_only_text_is_parsed() -> None:
    with pytest.raises(InvalidDistribution, match="not int"):
        parse(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidDistribution, match="characters long"):
        parse("normal(0, 1)" + " " * 2_000_000)


@given(st.text(alphabet="normalbeip()=,./-+ 019'\"\\é", max_size=40))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        parse(text)
    except InvalidDistribution as error:
        message = str(error)
    else:
        return
    assert len(message) > 20


EXTREME = [
    *("poisson(1e18)", "poisson(1e300)", "geometric(1e-300)", "geometric(1e-17)", "negative_binomial(5, 1e-17)"),
    *("normal(1e308, 1e308)", "normal(0, 1e308)", "normal(0, 1e-308)", "normal(0, 1e-320)", "normal(1e300, 1)"),
    *("uniform(-1e308, 1e308)", "uniform(0, 1e-310)", "cauchy(0, 1e308)", "laplace(0, 1e308)", "logistic(0, 1e308)"),
    *("gumbel(0, 1e308)", "rayleigh(1e308)", "halfnormal(1e308)", "exponential(1e308)", "exponential(1e-308)"),
    *("t(1e-3)", "t(1e-300)", "gamma(1e300)", "gamma(1e-3)", "gamma(1e-300)", "chi2(1e300)", "chi2(1e-10)"),
    *("inverse_gamma(1e-5)", "weibull(1e-300)", "weibull(1e300)", "pareto(1e-300)", "pareto(1e300)"),
    *("lognormal(0, 1e300)", "lognormal(700, 1)", "lognormal(1e308, 1)", "beta(1e300, 1)", "beta(1e-300, 1e-300)"),
]


@pytest.mark.parametrize("text", EXTREME)
def test_extreme_parameters_are_refused_with_a_sentence(text: str) -> None:
    """At once, without a warning (which fails a test here), by the name and with a remedy."""
    with pytest.raises(InvalidDistribution, match=r"floating-point numbers|invalid parameters|must be"):
        parse(text)
    other = text.replace("e30", "e29") if "e30" in text else "normal(0, 1)"
    with pytest.raises(InvalidDistribution):
        make_pair(text, other)


@pytest.mark.parametrize(
    "text",
    [
        *("poisson(1e15)", "poisson(1e-300)", "binomial(9e15, 0.1)", "geometric(1e-12)", "normal(1e90, 1e89)"),
        *(
            "normal(0, 1e-90)",
            "cauchy(0, 1e90)",
            "t(0.1)",
            "gamma(0.05)",
            "gamma(1e15)",
            "pareto(0.1)",
            "lognormal(0, 40)",
        ),
        *("beta(0.01, 0.01)", "weibull(0.05)", "normal(1e10, 1)"),
    ],
)
def test_large_parameters_are_not(text: str) -> None:
    assert parse(text).spec is not None
