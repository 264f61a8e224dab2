"""``plan``, ``compare`` and ``curve``: what to expect, before any data are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest import errors
from privatest.cli.options import Given, asked_of, check_written, write_problem
from privatest.cli.output import emit_json, facts, say, show_table, working, write_report, write_text

if TYPE_CHECKING:
    from privatest import Comparison, PowerCurve

__all__ = ["compare", "curve", "plan"]


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
        facts(found.title, found.lines())
    if given["report"] is not None:
        write_report(given["report"], question=asked, design=found.design, kind="plan")


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
    _tabled(given, found)


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
    _tabled(given, found)


def _tabled(given: Given, found: Comparison | PowerCurve) -> None:
    if given["json"]:
        emit_json(found.to_dict())
        return
    show_table(found.title, found.HEADINGS, found.cells(), left=("test", "private", "note", ""))
    say(found.ending)


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.InvalidInput(
            f"n={text!r} must be whole numbers separated by commas, such as 50,100,200."
        ) from None
