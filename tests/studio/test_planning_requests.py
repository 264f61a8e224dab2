"""The numbers on the page are the Python API's; bodies are the table's; bars are the exact probabilities of a test."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.studio.planning_requests import law_of, plain_number, statistic_law

PAIRS: list[tuple[Any, Any]] = [
    ("bernoulli(0.4)", "bernoulli(0.6)"),
    ("normal(0, 1)", "normal(1, 1)"),
    ({"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}),
    ({"0": 0.2, "1": 0.8}, {"0": 0.5, "1": 0.5}),
    ("poisson(3)", "poisson(5)"),
]


@pytest.mark.parametrize(("P", "Q"), PAIRS)
def test_look_is_the_decomposition(studio: Any, P: Any, Q: Any) -> None:
    found = studio.post("/api/look", null=P, alternative=Q, epsilon=0.5).json()
    P, Q = law_of(P), law_of(Q)
    split = pt.decompose(P, Q, epsilon=0.5)
    assert found["decomposition"]["tau"] == split.tau
    assert found["decomposition"]["epsilon_prime"] == split.epsilon_prime
    assert found["decomposition"]["clamp"] == list(split.clamp)
    assert max(found["excess"].values()) == pytest.approx(split.tau, rel=1e-9)


@pytest.mark.parametrize(("P", "Q"), PAIRS[:4])
def test_design_is_the_tuned_test(studio: Any, P: Any, Q: Any) -> None:
    for alpha in (None, 0.05):
        found = studio.post("/api/design", null=P, alternative=Q, epsilon=0.5, n=40, alpha=alpha).json()
        test = pt.design(law_of(P), law_of(Q), epsilon=0.5, n=40, alpha=alpha)
        shown = found["design"]
        errors = (test.alpha, test.beta, test.threshold)  # a worker may add in another order
        assert (shown["alpha"], shown["beta"], shown["threshold"]) == pytest.approx(errors, rel=1e-12)
        assert shown["clamp"] == list(test.clamp)
    assert "document" not in found


def test_size_power_and_compare_are_the_functions_of_these_names(studio: Any) -> None:
    asked: dict[str, Any] = {"null": "bernoulli(0.4)", "alternative": "bernoulli(0.6)", "epsilon": 1.0}
    P, Q, epsilon = asked["null"], asked["alternative"], asked["epsilon"]
    assert studio.post("/api/size", **asked, bound=True).json() == {
        "epsilon": 1.0,
        "n": pt.sample_size(P, Q, epsilon=epsilon),
        "lower_bound": pt.lower_bound(P, Q, epsilon=epsilon),
    }
    errors = {"alpha": 0.05, "beta": 0.1}
    assert studio.post("/api/size", **asked, **errors).json()["n"] == pt.sample_size(P, Q, epsilon=epsilon, **errors)
    curve = studio.post("/api/power", **asked, n=[5, 50]).json()
    assert curve == plain_number(pt.power_curve(P, Q, epsilon=epsilon, n=[5, 50]).to_dict())
    table = studio.post("/api/compare", **asked).json()
    assert table == plain_number(pt.compare(P, Q, epsilon=epsilon).to_dict())
    theory = studio.post("/api/theory", null=P, alternative=Q, epsilons=[0.1, 1.0]).json()["complexity"]
    assert theory[0] == pt.sample_complexity(P, Q, epsilon=0.1).to_dict()


def test_every_family_of_the_page_is_one_the_parser_knows(studio: Any) -> None:
    import re

    script = studio.client.get("/static/settings.js").text
    rows = re.findall(r"^  (\w+): \{ title: .*null: \[(.*?)\], alternative: \[(.*?)\] \},$", script, re.MULTILINE)
    assert len(rows) == 15
    for name, null, alternative in rows:
        asked = {"null": f"{name}({null})", "alternative": f"{name}({alternative})", "epsilon": 1.0}
        answer = studio.client.post("/api/look", json=asked)
        assert answer.status_code == 200, (name, answer.text)
        values = answer.json()["densities"]["null"]
        assert max(value for value in values if value is not None) > 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"null": "normal(0, 1)"}, "alternative"),
        ({"null": "normal(0, 1", "alternative": "normal(1, 1)", "epsilon": 1}, "null"),
        ({"null": "normal(0, 1)", "alternative": "normal(0, 1)", "epsilon": 1}, "same distribution"),
        ({"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": 0}, "epsilon"),
        ({"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": True}, "epsilon"),
        ({"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": "1"}, "epsilon"),
        ({"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": 101}, "epsilon"),
        ({"null": "normal(0, 1)", "alternative": "normal(1, 1)", "epsilon": 1, "more": 1}, "more"),
        ({"null": {"a": 0.5, "b": 0.4}, "alternative": {"a": 0.5, "b": 0.5}, "epsilon": 1}, "sum"),
        ({"null": {str(i): 0.001 for i in range(1001)}, "alternative": "poisson(3)", "epsilon": 1}, "1000"),
    ],
)
def test_bad_input_is_one_sentence_that_names_it(studio: Any, body: Any, said: str) -> None:
    answer = studio.client.post("/api/look", json=body)
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}
    assert said in answer.json()["error"]


CASES: list[tuple[str, str, float, int]] = [
    ("bernoulli(0.4)", "bernoulli(0.6)", 1.0, 12),
    ("normal(0, 1)", "normal(1, 1)", 0.5, 400),
    ("normal(0, 1)", "normal(0.01, 1)", 0.5, 100_000),  # wide sums
    ("bernoulli(0.3)", "bernoulli(0.7)", 0.5, 10**8),  # far apart: exact probabilities
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("P", "Q", "epsilon", "n"), CASES)
def test_the_bars_are_the_exact_law(P: str, Q: str, epsilon: float, n: int, neighbours: str) -> None:
    test = pt.design(P, Q, epsilon=epsilon, n=n, neighbours=neighbours)
    found = statistic_law(test)
    width = found["edges"][1] - found["edges"][0]
    assert found["above"] is found["upper"] is None
    for side, total in (("null", test.null_total), ("alternative", test.alternative_total)):
        bars = np.array(found[side]) * width
        below = bars[: found["decided"]].sum()
        assert below == pytest.approx(total.cdf(test.cutoff), abs=6e-4)  # the picture ends somewhere
        assert bars.sum() == pytest.approx(1, abs=2e-3)
        threshold = found["statistic"][found["decided"]] - width / 2
        assert threshold == pytest.approx(test.threshold, abs=1.01 * width)
        for index in np.argsort(bars)[-3:]:
            low, high = (edge(test, found, int(index) + more) for more in (0, 1))
            exact = total.cdf(high) - total.cdf(low)
            assert bars[index] == pytest.approx(exact, rel=2e-3, abs=1e-6)


def edge(test: Any, found: dict[str, Any], index: int) -> Fraction:
    """Between the last value below the bar and its first one."""
    end = Fraction(found["edges"][index])
    if test.neighbours == "add-remove":
        return end * test.scale / test.score.step
    return test.score.lattice_threshold(end, test.n)


SETS: list[tuple[str, str, tuple[str, str]]] = [
    ("normal(mean<=0, sd=1)", "normal(mean>=1, sd=1)", ("normal(0, 1)", "normal(1, 1)")),
    ("bernoulli(0.4)", "any_of(bernoulli(p<=0.1), bernoulli(p>=0.8))", ("bernoulli(0.4)", "bernoulli(0.1)")),
]


@pytest.mark.parametrize(("P", "Q", "members"), SETS)
def test_every_planning_question_takes_sets(studio: Any, P: str, Q: str, members: tuple[str, str]) -> None:
    asked: dict[str, Any] = {"null": P, "alternative": Q, "epsilon": 1.0}
    test = pt.design(P, Q, epsilon=1, n=30)
    design = studio.post("/api/design", **asked, n=30).json()["design"]
    assert (design["alpha"], design["beta"]) == pytest.approx((test.alpha, test.beta), rel=1e-9)
    assert (design["worst_null"], design["worst_alternative"]) == (test.worst_null, test.worst_alternative)
    assert studio.post("/api/size", **asked, bound=True).json() == {
        "epsilon": 1.0,
        "n": pt.sample_size(P, Q, epsilon=1),
        "lower_bound": pt.lower_bound(P, Q, epsilon=1),
    }
    looked = studio.post("/api/look", **asked).json()
    assert looked["members"] == {"null": members[0], "alternative": members[1]}
    assert looked["decomposition"]["tau"] == pytest.approx(pt.decompose(*members, epsilon=1).tau, rel=1e-12)
    theory = studio.post("/api/theory", null=P, alternative=Q, epsilons=[1.0]).json()["complexity"]
    assert theory[0]["value"] == pytest.approx(pt.sample_complexity(*members, epsilon=1).value, rel=1e-12)
    assert studio.post("/api/power", **asked, n=[10, 20]).json()["n"] == [10, 20]
    assert "tight" in [row["test"] for row in studio.post("/api/compare", **asked).json()["rows"]]
