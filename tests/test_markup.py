"""Tables for notebooks: escaped, with headings, on every result."""

from __future__ import annotations

import json
from typing import Any

import privatest as pt
from privatest.facts import Probability
from tests.report import pages

HOSTILE = "<img src=x onerror=alert(1)>"
NULL, ALTERNATIVE = {HOSTILE: 0.5, "b": 0.5}, {HOSTILE: 0.2, "b": 0.8}


def results() -> dict[str, Any]:
    test = pt.design(NULL, ALTERNATIVE, epsilon=1, n=20)
    fit = pt.design_fit(NULL, distance=0.3, epsilon=1, n=40)
    plan = pt.design_change(NULL, ALTERNATIVE, epsilon=1)
    return {
        "test": test,
        "release": test.run(["b"] * 20),
        "fit": fit,
        "fit release": fit.run(["b"] * 40),
        "plan": plan,
        "change": plan.run([HOSTILE] * 100 + ["b"] * 100),
        "monitor": pt.Monitor(NULL, ALTERNATIVE, epsilon=1),
        "alarm": pt.results.Alarm(10, 3, 20, epsilon=1),
        "plan of a test": pt.plan(NULL, ALTERNATIVE, epsilon=1),
        "no change": pt.results.ChangePoint(
            (), ("null",), 3, 0.1, False, epsilon=1.0, method="blocks", n=50, false_alarm=0.05
        ),
        "split": pt.decompose(NULL, ALTERNATIVE, epsilon=0.2),
        "complexity": pt.sample_complexity(NULL, ALTERNATIVE, epsilon=0.2),
        "curve": pt.power_curve(NULL, ALTERNATIVE, epsilon=1, n=[5, 10]),
        "comparison": pt.compare(NULL, ALTERNATIVE, epsilon=1),
    }


def test_every_result_has_a_table() -> None:
    for name, result in results().items():
        html = result._repr_html_()
        page = pages.read(html)
        assert [element.tag for element in page.elements][:2] == ["table", "caption"], name
        assert len(page.of("tr")) > 2
        assert all(header.attributes["scope"] for header in page.of("th"))
        assert not page.of("img"), name
    assert "0.5" in results()["split"]._repr_html_()


def test_no_probability_is_told_as_0() -> None:
    told = str(pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=200_000))
    assert "alpha              < 1e-300" in told
    assert "beta               < 1e-300" in told
    curve = pt.power_curve("normal(0, 1)", "normal(1, 1)", epsilon=1, n=[200_000])
    assert curve.cells()[0][1:3] == ("< 1e-300", "< 1e-300")
    assert json.dumps(Probability(0.0)) == "0.0"
