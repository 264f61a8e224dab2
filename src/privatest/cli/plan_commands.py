"""``plan``, ``compare``, ``curve``, and without data ``estimate`` and ``groups``: what to expect. No data are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from privatest import errors, markup
from privatest.cli.options import Given, asked_of, check_written, write_problem
from privatest.cli.output import emit_json, facts, say, show_table, working, write_report, write_text

if TYPE_CHECKING:
    from privatest import Comparison, NotionComparison, PowerCurve

__all__ = ["compare", "curve", "plan", "plan_estimate", "plan_groups", "sizes_of"]


def plan(given: Given) -> None:
    """How many records a test needs, how good that is, and what privacy costs.

    Without --n: the smallest number of records that meets --advantage (2/3), or --alpha and --beta. With --n: the
    error rates on so many records.

    \b
    Example:
      privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" \\
          --epsilon 0.5
    """
    import privatest as pt  # here, for a quick start

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
        about = {name: given[name] for name in ("purpose", "author")}
        write_report(given["report"], question=asked, design=found.design, kind="plan", **about)


def compare(given: Given) -> None:
    """How many records every known test needs, beside the best possible.

    \b
    Example:
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --epsilon 1
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --privacy "zcdp(0.5)"
    """
    import privatest as pt  # here, for a quick start

    notion = given["privacy"]
    asked = asked_of("compare", given, needs=None if notion is None else "null alternative")
    check_written(given, save=given["save"])
    found: Comparison | NotionComparison
    if notion is None:
        with working("comparing tests"):
            found = pt.compare(**asked)
    else:
        if given["epsilon"] is None:
            asked.pop("epsilon", None)  # that of the problem file
        with working("comparing notions of privacy"):
            found = pt.compare_notions(**asked, privacy=notion)
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
    import privatest as pt  # here, for a quick start

    asked = asked_of("curve", given)
    if "n" in asked:
        asked["n"] = sizes_of(asked["n"])
    with working("computing error rates"):
        found = pt.power_curve(**asked)
    _tabled(given, found)


def _tabled(given: Given, found: Comparison | NotionComparison | PowerCurve) -> None:
    if given["json"]:
        emit_json(found.to_dict())
        return
    show_table(found.title, found.HEADINGS, found.cells(), left=("test", "private", "note", ""))
    say(found.ending)


def sizes_of(text: str, name: str = "n") -> list[int]:
    """Whole numbers that an option lists."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.InvalidInput(
            f"{name}={text!r} must be whole numbers separated by commas, such as 50,100,200."
        ) from None


def plan_estimate(given: Given, asked: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """How long the interval of an estimate will be, beside what no private interval can beat; or for how many records.

    ``rules`` is what says which estimate it is.
    """
    import privatest as pt  # here, for a quick start

    width, words = given["width"], dict(rules)
    if width is None and "n" not in words:
        raise errors.InvalidInput("Missing: DATA, or for a plan --n or --width.")
    if width is not None and "n" in words:
        raise errors.InvalidInput("--n and --width were both given: one follows from the other. Give one of them.")
    check_written(given, save=given["save"], report=given["report"])
    with working("planning"):
        # The number of records that a width needs does not depend on the one that is asked.
        design = pt.design_estimate(**{"n": 100, **words})
        at = sum(design.between) / 2 if given["at"] is None else given["at"]
        if width is not None:
            design = design.at_n(design.sample_size(width=width, at=at))
        expected, bound = design.expected_width(at), design.width_bound(at)
        found = [
            markup.Fact("at", at, f"the true {design.parameter}, for what follows"),
            markup.Fact("coverage", design.coverage(at), "how often the interval holds it"),
            markup.Fact("expected_width", expected, "of the interval, in the mean"),
            markup.Fact("width_bound", bound, "no private interval is shorter in the mean"),
            markup.Fact("ratio", expected / bound if bound > 0 else None, "of the two"),
        ]
    _planned(given, asked, "estimate", design, found)


def plan_groups(given: Given, asked: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """How likely a lift is found with so many records, or how many records find it; ``rules`` says how they compare."""
    import privatest as pt  # here, for a quick start

    if given["rate"] is None or given["lift"] is None:
        raise errors.InvalidInput("Missing: DATA, or for a plan --rate and --lift.")
    rate, lift, words = given["rate"], given["lift"], dict(rules)
    if given["n"] is not None and given["beta"] is not None:
        raise errors.InvalidInput("--n and --beta were both given: one follows from the other. Give one of them.")
    check_written(given, save=given["save"], report=given["report"])
    with working("planning"):
        if given["n"] is None:
            aim = {} if given["beta"] is None else {"beta": given["beta"]}
            n = pt.design_groups(n=(100, 100), **words).sample_size(rate=rate, lift=lift, **aim)
            sizes = [n, n]
        else:
            sizes = sizes_of(given["n"])
            if len(sizes) != 2:
                raise errors.InvalidInput(f"n={given['n']!r} must be the records of both groups, such as 200,300.")
        design = pt.design_groups(n=(sizes[0], sizes[1]), **words)
        found = [
            markup.Fact("rate", rate, "of the control group, for what follows"),
            markup.Fact("lift", lift, "by how much the treatment's is larger"),
            markup.Fact(
                "power", markup.Probability(design.power((rate, rate + lift))), "how likely the difference is found"
            ),
        ]
    _planned(given, asked, "groups", design, found)


def _planned(given: Given, asked: Mapping[str, Any], command: str, design: Any, found: list[markup.Fact]) -> None:
    """Print a plan, and write what is asked for."""
    if given["save"] is not None:
        write_problem(given["save"], asked)
    if given["json"]:
        emit_json({**design.values(), **{name: markup.plain_value(value) for name, value, _ in found}})
    else:
        told = [
            (name.replace("_", " "), markup.short(value), meaning)
            for name, value, meaning in found
            if value is not None
        ]
        facts(design.title, [*design.lines(), *told])
    if given["report"] is not None:
        about = {name: given[name] for name in ("purpose", "author")}
        write_report(given["report"], question={**asked, "n": design.n}, design=design, kind=command, **about)
