"""The design behind a result, made again from what was asked: it depends on public settings alone."""

from __future__ import annotations

from typing import Any

from privatest.changepoint import ChangePlan, ChangePoint, design_change
from privatest.errors import PrivatestError
from privatest.fit import FitRelease, FitTest, design_fit

__all__ = ["redesign"]

DETECTORS = ("distance", "epsilon", "beta", "method", "false_alarm")
FITS = ("distance", "epsilon", "alpha", "bins", "method")


def redesign(asked: dict[str, Any], result: Any) -> ChangePlan | FitTest | None:
    """The plan or test that gave the result; None where the question does not lead to one of the same promises."""
    try:
        if isinstance(result, ChangePoint):
            rules = {name: asked[name] for name in DETECTORS if name in asked}
            plan = design_change(asked["null"], asked.get("alternative"), **rules)
            promised = plan.method, plan.accuracy, plan.beta, plan.false_alarm, plan.epsilon
            kept = result.method, result.accuracy, result.beta, result.false_alarm, result.epsilon
            return plan if promised == kept else None
        if isinstance(result, FitRelease):
            rules = {name: asked[name] for name in FITS if name in asked}
            test = design_fit(asked["null"], n=result.n, **rules)
            return test if (test.method, test.epsilon) == (result.test, result.epsilon) else None
    except (PrivatestError, KeyError, TypeError):  # a law without a text of its own, or half a question
        return None
    return None
