"""Error rates that hold for every member of a set, one-sided and two-sided, and the members that attain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.decision.worst_case import sides_of
from privatest.hypotheses.parse import as_distribution, as_hypothesis, make_hypotheses
from privatest.hypotheses.sets import Box
from privatest.laws import NoisyTotal
from privatest.scores.score_law import score_law

SHIFTS = pt.any_of("normal(mean<=-0.4, sd=1)", "normal(mean>=0.4, sd=1)")


def errors(test: pt.results.PrivateTest, law: Any) -> tuple[float, float]:
    """Exact probabilities of the two decisions, by another way than :meth:`power`: the tails of one noisy total."""
    support, masses = score_law(test.score, as_distribution(law))
    total = NoisyTotal(test.scale * support - test.shift, masses, test.n, test.noise)
    low, high = total.cdf(test.cutoff), 0.0 if test.upper is None else total.sf(test.upper)
    return low + high, 1 - low - high


@pytest.mark.parametrize(
    ("null", "alternative", "epsilon", "most"),
    [
        ("normal(0, 1)", "normal(1, 1)", (1, 0.02), 12),
        ("normal(0, 1)", "normal(1, 1)", (0.5, 0.05), 23),
        ("normal(0, 1)", "normal(0.5, 1)", (1, 0.02), 38),
    ],
)
def test_balls(null: str, alternative: str, epsilon: tuple[float, float], most: int) -> None:
    budget, distance = epsilon
    sets = pt.near(null, distance), pt.near(alternative, distance)
    n = pt.sample_size(*sets, epsilon=budget)
    assert n <= most
    test = pt.design(*sets, epsilon=budget, n=n)
    assert test.advantage >= 2 / 3
    rng = np.random.default_rng(5)
    worst = [0.0, 0.0]
    for _ in range(40):
        for side, centre in enumerate((null, alternative)):
            member = drawn_inside(centre, distance, rng)
            worst[side] = max(worst[side], errors(test, member)[side])
    assert worst[0] <= test.alpha + 1e-12
    assert worst[1] <= test.beta + 1e-12
    # The extreme members: mass taken from the best end of the score, put at the worst one.
    for side, law, stated in ((0, test.score.null_law, test.alpha), (1, test.score.alternative_law, test.beta)):
        total = NoisyTotal(test.score.support, extreme(test, (null, alternative)[side], distance, side), n, test.noise)
        attained = (total.cdf if side == 0 else total.sf)(test.cutoff)
        assert attained == pytest.approx(stated, abs=1e-9)
        assert law.sum() == pytest.approx(1)


def drawn_inside(centre: str, distance: float, rng: np.random.Generator) -> Any:
    """A distribution within total variation ``distance``: a point mass's worth, a shift or another law mixed in."""
    kind = rng.integers(3)
    if kind == 0:
        other = f"normal({float(rng.uniform(-9, 9))!r}, 0.001)"
    elif kind == 1:
        other = f"uniform({(low := float(rng.uniform(-6, 5)))!r}, {low + float(rng.uniform(0.1, 3))!r})"
    else:
        mean, sd = (float(word) for word in centre.removeprefix("normal(").rstrip(")").split(","))
        # Shifting a normal law by s moves s/(sd sqrt(2 pi)) of its mass, at most.
        return f"normal({mean + float(rng.choice([-1, 1])) * distance * sd * 2.5!r}, {sd!r})"
    return f"mixture({1 - distance!r}, {centre}, {distance!r}, {other})"


def extreme(test: pt.results.PrivateTest, centre: str, distance: float, side: int) -> np.ndarray:
    """The law of the score with mass moved from one end to the other, written without :class:`Corruption`."""
    support, masses = score_law(test.score, as_distribution(centre))
    law = np.zeros(len(test.score.support))
    law[np.searchsorted(test.score.support, support)] = masses
    order = range(len(law) - 1, -1, -1) if side == 0 else range(len(law))
    left = distance
    for place in order:
        taken = min(left, law[place])
        law[place] -= taken
        left -= taken
    law[0 if side == 0 else -1] += distance
    return law


BOXES = [
    ("normal(0, sd in [0.8, 1.2])", "normal(1, sd in [0.8, 1.2])", 20),
    ("normal(0, sd in [0.5, 2])", "normal(1, sd in [0.5, 2])", 60),
    ("gamma(shape in [1, 1.5], scale in [1, 1.2])", "gamma(shape in [2.5, 3], scale in [1.3, 1.5])", 20),
    ("negative_binomial(n in [3, 4], p in [0.5, 0.6])", "negative_binomial(n in [6, 7], p in [0.35, 0.4])", 20),
    (
        "student_t(df in [3, 8], loc=0, scale in [0.8, 1.2])",
        "student_t(df in [3, 8], loc=1.5, scale in [0.8, 1.2])",
        30,
    ),
]


def grid(text: Any, points: int) -> list[Any]:
    """Members on a grid over a box, its corners among them."""
    box = text if isinstance(text, Box) else as_hypothesis(text)
    assert isinstance(box, Box)
    ends = []
    for low, high, parameter in zip(box.low, box.high, box.family.parameters, strict=True):
        # An end that no member has is a limit, which the grid comes near to.
        first = low if parameter.rule[1](low) else max(low, high - 20) + 1e-3
        last = high if parameter.rule[1](high) else min(high, low + 20) - 1e-3
        ends.append(np.linspace(first, last, points if low < high else 1))
    return [
        box.member(tuple(float(v) for v in values)) for values in np.array(np.meshgrid(*ends)).reshape(len(ends), -1).T
    ]


@pytest.mark.parametrize(("null", "alternative", "n"), BOXES)
def test_boxes(null: str, alternative: str, n: int) -> None:
    test = pt.design(null, alternative, epsilon=1, n=n)
    for side, text, stated in ((0, null, test.alpha), (1, alternative, test.beta)):
        points = 40 if "scale in" not in text and "p in" not in text else 8
        largest = max(errors(test, member)[side] for member in grid(text, points))
        assert largest <= stated + 1e-12
        assert stated <= largest + 1e-3
        named = test.worst_null if side == 0 else test.worst_alternative
        assert errors(test, named)[side] >= stated - 2e-4


ONE_SIDED = [
    ("binomial(10, p<=0.3)", "binomial(10, p>=0.4)", "binomial(10, {})", (0.01, 0.3), (0.4, 0.99)),
    ("poisson(mean<=3)", "poisson(mean>=6)", "poisson({})", (0.01, 3), (6, 30)),
    ("exponential(scale<=1)", "exponential(scale>=2)", "exponential({})", (0.01, 1), (2, 50)),
    ("normal(mean<=0, sd=1)", "normal(mean>=0.5, sd=1)", "normal({}, 1)", (-9, 0), (0.5, 9)),
    ("normal(0, sd<=1)", "normal(0, sd>=1.5)", "normal(0, {})", (0.01, 1), (1.5, 50)),
    ("laplace(loc<=0, scale=1)", "laplace(loc>=0.7, scale=1)", "laplace({}, 1)", (-9, 0), (0.7, 9)),
    ("student_t(5, loc<=0)", "student_t(5, loc>=0.7)", "student_t(5, {})", (-1e6, 0), (0.7, 1e6)),
    ("student_t(5, loc>=0.7)", "student_t(5, loc<=0)", "student_t(5, {})", (1e3, 0.7), (0, -1e3)),
    ("pareto(1, scale<=1)", "pareto(1, scale>=1.5)", "pareto(1, {})", (1e-3, 1), (1.5, 99)),
]


@pytest.mark.parametrize(("null", "alternative", "member", "low", "high"), ONE_SIDED)
def test_one_sided_families_are_worst_at_their_boundary(
    null: str, alternative: str, member: str, low: tuple[float, float], high: tuple[float, float]
) -> None:
    test = pt.design(null, alternative, epsilon=1)
    simple = pt.design(member.format(low[1]), member.format(high[0]), epsilon=1)
    assert test.n == simple.n
    for side, (a, b), edge, stated in ((0, low, low[1], test.alpha), (1, high, high[0], test.beta)):
        found = [errors(test, member.format(repr(float(value))))[side] for value in np.linspace(a, b, 40)]
        assert max(found) <= stated + 1e-12
        assert errors(test, member.format(edge))[side] == pytest.approx(stated, abs=1e-9)


@pytest.mark.parametrize(
    ("sets", "ends"),
    [
        (("poisson(mean<=2.5)", "poisson(mean>=3)"), ("poisson(2.5)", "poisson(3)")),
        (("zipf(a<=2)", "zipf(a>=3)"), ("zipf(2)", "zipf(3)")),
        (("beta(2, b<=2)", "beta(2, b>=3)"), ("beta(2, 2)", "beta(2, 3)")),
        (("pareto(1, scale<=1)", "pareto(1, scale>=1.5)"), ("pareto(1, 1)", "pareto(1, 1.5)")),
        (
            ("negative_binomial(n<=3, p=0.5)", "negative_binomial(n>=5, p=0.5)"),
            ("negative_binomial(3, 0.5)", "negative_binomial(5, 0.5)"),
        ),
        (
            ("negative_binomial(3, p>=0.6)", "negative_binomial(3, p<=0.5)"),
            ("negative_binomial(3, 0.6)", "negative_binomial(3, 0.5)"),
        ),
    ],
)
def test_a_one_sided_set_is_decided_by_its_ends(
    sets: tuple[str, str], ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worst members are found once for a clamp, and not anew for every n: it costs what its simple pair does."""
    calls = []
    monkeypatch.setattr("privatest.decision.clamp_tuning.worst_score", lambda *given: calls.append(given))
    n = pt.sample_size(*sets, epsilon=1.1)
    test = pt.design(*sets, epsilon=1.1, n=n)
    assert not calls
    assert n == pt.sample_size(*ends, epsilon=1.1)
    simple = pt.design(*ends, epsilon=1.1, n=n)
    assert test.worst_members == tuple(ends)
    assert (test.alpha, test.beta) == pytest.approx((simple.alpha, simple.beta), abs=1e-9)


def test_a_two_sided_shift_needs_fewer_records_than_any_published_test() -> None:
    n = pt.sample_size("normal(0, 1)", SHIFTS, epsilon=1, alpha=0.05, beta=0.2)
    assert n <= 86
    test = pt.design("normal(0, 1)", SHIFTS, epsilon=1, n=n, alpha=0.05)
    assert test.alpha <= 0.05
    assert test.beta <= 0.2
    assert test.power("normal(0, 1)") == pytest.approx(test.alpha, abs=1e-12)
    for mean in (-3, -0.7, -0.4, 0.4, 0.7, 3):
        assert test.power(f"normal({mean}, 1)") >= 1 - test.beta - 1e-12
    low, high = test.thresholds
    assert low == pytest.approx(-high, rel=0.02)
    assert pt.results.PrivateTest.from_json(test.to_json()) == test


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ("bernoulli(0.3)", "any_of(bernoulli(p<=0.1), bernoulli(p>=0.5))"),
        ("poisson(4)", "any_of(poisson(mean<=2), poisson(mean>=7))"),
        ("median(5.3)", "any_of(median_above(5.3, share=0.7), median_below(5.3, share=0.7))"),
        ("near(normal(0, 1), 0.01)", "any_of(normal(-1, 1), normal(1, 1))"),
        ("normal(0, sd in [0.9, 1.1])", "any_of(normal(-1, sd in [0.9, 1.1]), normal(1, sd in [0.9, 1.1]))"),
        ({"a": 0.2, "b": 0.6, "c": 0.2}, ({"a": 0.6, "b": 0.3, "c": 0.1}, {"a": 0.1, "b": 0.3, "c": 0.6})),
    ],
)
def test_two_sided_errors_hold_on_both_sides(null: Any, alternative: Any) -> None:
    if isinstance(alternative, tuple):
        alternative = pt.any_of(*alternative)
    test = pt.design(null, alternative, epsilon=1, n=40, alpha=0.1)
    assert test.alpha <= 0.1
    assert errors(test, test.worst_null)[0] <= test.alpha + 1e-12
    question = make_hypotheses(null, alternative)
    for side in (sides_of(question).below, sides_of(question).above):
        assert side
        for leaf in side:
            members = [leaf.of] if not isinstance(leaf.of, Box) else grid(leaf.of, 5)
            assert all(errors(test, member)[1] <= test.beta + 1e-12 for member in members)
    # Both p-values agree with the decision: null exactly where p > alpha, but for the lattice's step.
    for noisy in (test.cutoff - 2, test.cutoff + 2, test.upper - 2, test.upper + 2):
        release = test.release(round(noisy) + test.noise.offset)
        assert release.pvalue is not None
        assert (release.decision == "null") == (test.cutoff < round(noisy) + test.noise.offset <= test.upper)


def test_sets_in_the_other_questions() -> None:
    sets = "normal(mean<=0, sd=1)", "normal(mean>=1, sd=1)"
    assert pt.lower_bound(*sets, epsilon=1) == pt.lower_bound("normal(0, 1)", "normal(1, 1)", epsilon=1)
    plan = pt.plan(*sets, epsilon=1)
    assert plan.n == pt.sample_size(*sets, epsilon=1) == pt.sample_size("normal(0, 1)", "normal(1, 1)", epsilon=1)
    assert plan.design.worst_null == "normal(0, 1)"
    assert "mean<=0" in str(plan)
    clamped = {"n": 30, "clamp": (-1, 1)}
    least = pt.min_epsilon("normal(0, 1)", "normal(1, 1)", **clamped)
    assert pt.min_epsilon(*sets, **clamped) == pytest.approx(least, rel=1e-6)
    curve = pt.power_curve(*sets, epsilon=1, n=[10, 20])
    simple = pt.power_curve("normal(0, 1)", "normal(1, 1)", epsilon=1, n=[10, 20])
    np.testing.assert_allclose(curve.alpha, simple.alpha, atol=1e-6)
    names = [row.test for row in pt.compare(*sets, epsilon=1)]
    assert "tight" in names
