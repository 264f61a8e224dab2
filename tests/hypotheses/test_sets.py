"""Sets of distributions: their text, their overlaps, and bounds of the cdf over boxes that no member leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privatest.errors import InvalidDistribution, NothingToTest
from privatest.hypotheses.families import FAMILIES
from privatest.hypotheses.parse import (
    as_hypothesis,
    make_hypotheses,
    parse,
)
from privatest.hypotheses.sets import Box, Corruption, member_of

# A box of each family, far from where a member would be degenerate.
BOXES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "uniform": ((0.0, 2.0), (1.0, 3.0)),
    "exponential": ((0.5,), (2.0,)),
    "half_normal": ((0.5,), (2.0,)),
    "rayleigh": ((0.5,), (2.0,)),
    "chi2": ((1.0,), (6.0,)),
    "lognormal": ((-0.5, 0.5), (0.5, 1.5)),
    "beta": ((0.5, 0.5), (3.0, 3.0)),
    "student_t": ((1.0, -0.5, 0.5), (9.0, 0.5, 2.0)),
    "bernoulli": ((0.2,), (0.7,)),
    "binomial": ((5.0, 0.2), (9.0, 0.7)),
    "poisson": ((1.0,), (6.0,)),
    "geometric": ((0.2,), (0.7,)),
    "negative_binomial": ((1.0, 0.2), (6.0, 0.7)),
    "zipf": ((1.5,), (4.0,)),
    "share_above": ((2.0, 0.3), (2.0, 0.8)),
}
LOCATIONS = ((-0.5, 0.5), (0.5, 2.0))
SHAPES = ((0.5, 0.5), (4.0, 2.0))


def ends(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if name in BOXES:
        return BOXES[name]
    shapes = FAMILIES[name].parameters[0].name == "shape"
    return SHAPES if shapes else LOCATIONS


@pytest.mark.parametrize("name", FAMILIES)
def test_no_members_cdf_leaves_the_bounds_of_its_box(name: str) -> None:
    """What every certificate rests on: at each point the cdf is monotone in each parameter, the others fixed."""
    family, (low, high) = FAMILIES[name], ends(name)
    box, rng = Box(family, low, high), np.random.default_rng(7)
    x = np.unique(np.concatenate([[-1.0, 0.0, 0.5, 1.0, 2.0], np.linspace(-8, 12, 41)]))
    x = np.unique(np.floor(x)) if family.discrete else x
    lower, upper = box.below(x)
    assert np.all(lower <= upper)
    whole = [parameter.rule[0].startswith("a whole") for parameter in family.parameters]
    for _ in range(200 if len(low) > 1 else 60):  # along one axis 60 lie closer than 200 in a plane
        values = [
            float(rng.integers(int(a), int(b) + 1)) if w else float(rng.uniform(a, b))
            for a, b, w in zip(low, high, whole, strict=True)
        ]
        cdf = member_of(family, tuple(values)).cdf(x)
        assert np.all(cdf >= lower - 1e-12)
        assert np.all(cdf <= upper + 1e-12)
    corners = np.array([member_of(family, corner).cdf(x) for corner in box.corners()])
    np.testing.assert_allclose(corners.min(axis=0), lower, atol=1e-15)
    np.testing.assert_allclose(corners.max(axis=0), upper, atol=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "normal(mean<=0, sd=1)",
        "normal(mean>=0, sd=1)",
        "normal(mean=0, sd>=1)",
        "normal(mean<=0, sd>=1)",
        "exponential(rate<=2)",
        "exponential(rate>=2)",
        "gamma(shape>=1, scale<=3)",
        "poisson(mean>=2)",
        "zipf(a<=3)",
        "geometric(p<=0.4)",
    ],
)
def test_boxes_without_an_end_bound_members_far_out(text: str) -> None:
    box, rng = as_hypothesis(text), np.random.default_rng(3)
    assert isinstance(box, Box)
    x = np.arange(-6.0, 20.0) if box.family.discrete else np.linspace(-30, 30, 121)
    lower, upper = box.below(x)
    for _ in range(200):
        values = []
        for a, b in zip(box.low, box.high, strict=True):
            spread = 10 ** rng.uniform(-3, 2)
            if a == b:
                values.append(a)
            elif math.isinf(b):
                values.append(a + spread if math.isfinite(a) else rng.normal(0, spread))
            elif math.isinf(a):
                values.append(b - spread)
            else:
                values.append(
                    a + (b - a) * rng.uniform(0.05 if box.family.name == "zipf" else 0.001, 1)
                )  # heavier: refused
        cdf = box.member(values).cdf(x)
        assert np.all(cdf >= lower - 1e-12), values
        assert np.all(cdf <= upper + 1e-12), values


@pytest.mark.parametrize("kind", ["near", "contaminated"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_no_spoiled_law_is_lower_than_the_worst(kind: str, share: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        law = rng.dirichlet(np.ones(6))
        other = rng.dirichlet(np.full(6, 0.3))
        if kind == "near":  # towards the other law, as far as the distance allows
            distance = np.abs(law - other).sum() / 2
            spoiled = law + (other - law) * min(1.0, share / distance)
        else:
            spoiled = (1 - share) * law + share * other
        low, high = (Corruption(kind, share).worst(law, side) for side in ("low", "high"))
        assert np.all(np.cumsum(low) >= np.cumsum(spoiled) - 1e-12)
        assert np.all(np.cumsum(high) <= np.cumsum(spoiled) + 1e-12)
        for worst in (low, high):
            assert worst.min() >= -1e-15
            assert worst.sum() == pytest.approx(1)
            assert np.abs(worst - law).sum() / 2 <= share + 1e-12  # it belongs to the set itself


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("normal(mean<=0, sd=1)", "normal(mean<=0, sd=1)"),
        ("normal(0, sd in [0.8, 1.2])", "normal(mean=0, sd in [0.8, 1.2])"),
        ("bernoulli(p in [.28, 3/10])", "bernoulli(p in [0.28, 0.3])"),
        ("bernoulli(p<=0.28)", "bernoulli(p<=0.28)"),
        ("exponential(rate>=2)", "exponential(scale<=0.5)"),
        ("exponential(rate in [1, 2])", "exponential(scale in [0.5, 1])"),
        ("near(normal(0, 1), distance=0.02)", "near(normal(0, 1), 0.02)"),
        ("contaminated(near(poisson(3), .1), share=0.1)", "contaminated(near(poisson(3), 0.1), 0.1)"),
        (
            "any_of(bernoulli(p<=0.28), bernoulli(p>=0.32))",
            "any_of(bernoulli(p<=0.28), bernoulli(p>=0.32))",
        ),
        ("zipf(a<=2)", "zipf(a<=2)"),
        ("binomial(n in [3, 9], p=.5)", "binomial(n in [3, 9], p=0.5)"),
    ],
)
def test_sets_are_written_and_read(text: str, words: str) -> None:
    found = as_hypothesis(text)
    assert (repr(found), found.spec) == (words, words)
    assert as_hypothesis(words).spec == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("normal(mean in [1, 0], sd=1)", "must start below its end: write mean in [0, 1]"),
        ("normal(mean in [1, 1], sd=1)", "or mean=1"),
        ("normal(mean<=0, mean>=1)", "given 'mean' twice: write mean in [low, high]"),
        ("normal(mean in (0, 1), sd=1)", "expected '['"),
        ("normal(mean in [0 1], sd=1)", "expected ','"),
        ("normal(mean in [0, 1, sd=1)", "expected ']'"),
        ("near(normal(0, 1), 2)", "distance=2.0 must be a number between 0 and 1"),
        ("near(normal(0, 1), 0)", "distance=0.0 must be a number between 0 and 1"),
        ("near(1, 2)", "near takes a distribution and a number"),
        ("near(normal(0, 1))", "near takes a distribution and a number"),
        ("bernoulli(p<=1.3)", "p=1.3 must be between 0 and 1"),
        ("normal(0, sd>=-1)", "sd=-1 must be greater than 0"),
        ("any_of(normal(0, 1))", "two distributions or more"),
        ("any_of(normal(0, 1), poisson(1))", "must be of one kind, not integers and reals"),
        ("exponential(rate<=0)", "rate=0 must be greater than 0"),
        ("uniform(low in [0, 2], high=1)", "low must stay below high, but low goes up to 2"),
        ("categorical(a<=0.5, b=0.5)", "takes numbers"),
        ("mixture(0.5, normal(mean<=0, sd=1), 0.5, normal(1, 1))", "mixture alternates"),
    ],
)
def test_texts_that_are_no_sets(text: str, words: str) -> None:
    with pytest.raises(InvalidDistribution) as caught:
        parse(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("null", "alternative", "members"),
    [
        ("normal(mean<=0, sd=1)", "normal(mean>=0.5, sd=1)", ("normal(0, 1)", "normal(0.5, 1)")),
        ("normal(0, sd in [0.8, 1.2])", "normal(1, sd in [0.8, 1.2])", ("normal(0, 1.2)", "normal(1, 1.2)")),
        ("bernoulli(0.3)", "bernoulli(p in [0.4, 0.6])", ("bernoulli(0.3)", "bernoulli(0.4)")),
        ("any_of(normal(-2, 1), normal(0, 1))", "normal(1, 1)", ("normal(0, 1)", "normal(1, 1)")),
    ],
)
def test_the_hardest_members_are_found(null: str, alternative: str, members: tuple[str, str]) -> None:
    asked = make_hypotheses(null, alternative)
    assert not asked.simple
    assert (asked.pair.null.describe(), asked.pair.alternative.describe()) == members


@pytest.mark.parametrize(
    ("null", "alternative", "words"),
    [
        ("normal(mean<=0.5, sd=1)", "normal(mean>=0, sd=1)", "normal(mean in [0, 0.5], sd=1) belongs to both"),
        ("normal(mean<=0, sd=1)", "normal(mean>=0, sd=1)", "normal(mean=0, sd=1) belongs to both"),
        ("normal(0, 1)", "normal(mean in [-1, 1], sd=1)", "normal(0, 1) belongs to both"),
        ("near(normal(0, 1), 0.2)", "near(normal(1, 1), 0.2)", "from 0.191 on"),
        ("near(normal(0, 1), 0.5)", "normal(1, 1)", "nothing can be told apart"),
    ],
)
def test_sets_that_overlap_are_refused(null: str, alternative: str, words: str) -> None:
    with pytest.raises(NothingToTest) as caught:
        make_hypotheses(null, alternative)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("null", "alternative", "says"),
    [
        ("normal(0, sd>=0.8)", "normal(1, sd>=0.8)", r"for every sd: .* Give it an end: sd in \[low, high\]"),
        ("laplace(loc<=0, scale>=1)", "laplace(loc>=1, scale>=1)", "for every scale"),
    ],
)
def test_sets_that_meet_at_infinity_are_refused(null: str, alternative: str, says: str) -> None:
    with pytest.raises(NothingToTest, match=says):
        make_hypotheses(null, alternative)
