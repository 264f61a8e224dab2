"""``plan``, ``compare`` and ``curve``: what to expect, before any data are touched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privatest import errors
from privatest.cli.options import Given, asked_of, check_written, write_problem
from privatest.cli.output import Fact, emit_json, facts, show_table, working, write_report, write_text

if TYPE_CHECKING:
    from privatest import Plan

__all__ = ["compare", "curve", "plan"]

REGIMES = {
    "tails": "what privacy caps decides the size",
    "core": "what privacy leaves alone decides it",
    "free": "privacy caps nothing at this epsilon",
}


def plan(given: Given) -> None:
    """How many records a test needs, how good that is, and what privacy costs.

    Without --n: the smallest number of records that meets --advantage (2/3), or --alpha and --beta. With --n: the
    error rates on so many records.

    \b
    Example:
      privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" \\
          --epsilon 0.5
    """
    import privatest as pt

    asked = asked_of("plan", given)
    check_written(given, save=given["save"], save_design=given["save_design"], report=given["report"])
    with working("planning"):
        found = pt.plan(**asked)
    if given["save"] is not None:
        write_problem(given["save"], asked)
    if given["save_design"] is not None:
        write_text(given["save_design"], found.design.to_json() + "\n", "--save-design")
    if given["json"]:
        emit_json(found.to_dict())
    else:
        facts(f"Plan for {found.design.null} against {found.design.alternative}", _plan_facts(found))
    if given["report"] is not None:
        write_report(given["report"], question=asked, design=found.design, kind="plan")


def _plan_facts(found: Plan) -> list[Fact]:
    test, theory = found.design, found.complexity
    low, high = test.clamp
    privacy = f"{test.epsilon:g}" if test.private else "none"
    lines: list[Fact] = [
        ("epsilon", privacy, f"{test.neighbours} one record" if test.private else "this test is NOT PRIVATE"),
        ("records", f"{test.n:,}", "as asked" if found.goal is None else f"the fewest for {_goal(found.goal)}"),
        ("type I error", f"{test.alpha:.4g}", "says alternative though the null is true"),
        ("type II error", f"{test.beta:.4g}", "says null though the alternative is true"),
        ("advantage", f"{test.advantage:.4f}", "1 - both errors"),
    ]
    if found.lower_bound is not None:
        lines.append(
            (
                "best possible",
                f"{found.lower_bound:,}",
                f"no private test needs fewer; ratio {found.ratio_to_bound or 0:.2f}",
            )
        )
    if found.nonprivate is not None:
        lines.append(
            (
                "without privacy",
                f"{found.nonprivate:,}",
                f"so privacy costs {found.cost_of_privacy or 0:.2f} times as many",
            )
        )
    if found.best_advantage is not None:
        lines.append(("best possible", f"{found.best_advantage:.4f}", "no private test has a larger advantage"))
    if found.nonprivate_advantage is not None:
        lines.append(("without privacy", f"{found.nonprivate_advantage:.4f}", "advantage of the likelihood ratio"))
    free = "never" if math.isinf(theory.free_epsilon) else f"from {theory.free_epsilon:.4g}"
    return [
        *lines,
        ("regime", theory.regime, REGIMES[theory.regime]),
        ("privacy is free", free, "epsilon from which on nothing is capped"),
        ("clamp", f"[{low:.4g}, {high:.4g}]", "what one record can add, in nats"),
        ("threshold", f"{test.threshold:.4g}", "says null above it"),
    ]


def _goal(goal: Any) -> str:
    if goal.alpha is None:
        return f"advantage {goal.advantage:.4g}"
    return f"errors of {goal.alpha:.4g} and {goal.beta:.4g}"


def compare(given: Given) -> None:
    """How many records every known test needs, beside the best possible.

    \b
    Example:
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --epsilon 1
    """
    import privatest as pt

    asked = asked_of("compare", given)
    check_written(given, save=given["save"])
    with working("comparing tests"):
        found = pt.compare(**asked)
    if given["save"] is not None:
        write_problem(given["save"], asked)
    if given["json"]:
        emit_json(found.to_dict())
        return
    rows = [
        (
            row.test,
            "-" if row.n is None else f"{row.n:,}",
            "-" if row.ratio_to_bound is None else f"{row.ratio_to_bound:.2f}",
            row.note,
        )
        for row in found
    ]
    best = "not enumerable" if found.optimum is None else f"{found.optimum:,}"
    show_table(
        f"Records for advantage {found.advantage:.4g} at epsilon {found.epsilon:g}. "
        f"No private test needs fewer than {found.lower_bound:,}; the best possible: {best}.",
        ("test", "records", "/ bound", "note"),
        rows,
        left=("test", "note"),
    )


def curve(given: Given) -> None:
    """Exact error rates against the number of records.

    \b
    Example:
      privatest curve --null "poisson(3)" --alternative "poisson(4)" \\
          --epsilon 0.5 --n 10,20,40,80
    """
    import privatest as pt

    asked = asked_of("curve", given)
    if "n" in asked:
        asked["n"] = _sizes(asked["n"])
    with working("computing error rates"):
        found = pt.power_curve(**asked)
    if given["json"]:
        emit_json(found.to_dict())
        return
    rows = [
        (f"{size:,}", f"{a:.4g}", f"{b:.4g}", f"{gain:.4f}", "\u2588" * round(24 * max(gain, 0)))
        for size, a, b, gain in zip(found.n, found.alpha, found.beta, found.advantage, strict=True)
    ]
    show_table(
        f"Error rates of the {found.test} test at epsilon {found.epsilon:g}",
        ("records", "type I", "type II", "advantage", ""),
        rows,
        left=("",),
    )
    if found.enough is not None:
        goal = "Advantage 2/3" if found.beta_goal is None else f"Type II error {found.beta_goal:g}"
        facts(f"{goal} from n = {found.enough:,} on", [])


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.InvalidInput(
            f"n={text!r} must be whole numbers separated by commas, such as 50,100,200."
        ) from None
