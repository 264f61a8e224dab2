"""``test``, ``detect`` and ``fit``: the commands that run on data, once each, and charge a ledger if one is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from privatest import errors, questions
from privatest.cli.budgets import answered, budget, check_payment, paid, tell_receipt
from privatest.cli.monitor_command import STANDARD_INPUT, arriving
from privatest.cli.options import Given, asked_of, check_target, one_of, write_problem
from privatest.cli.output import Fact, emit_json, facts, read_text, working, write_report

if TYPE_CHECKING:
    from privatest import ChangePoint, FitRelease, PrivateTest, Release

__all__ = ["decide", "detect", "fit"]

PRIVACY = {"replace": "replacing one record", "add-remove": "adding or removing one record"}


def decide(given: Given) -> None:
    """Whether data come from the null or from the alternative, with privacy.

    Every run spends epsilon. With --ledger, --dataset and --request it is charged first, and the same request again
    returns the same answer for nothing.

    \b
    Example:
      privatest test claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt

    saved = given["design"]
    asked = asked_of("test", given, needs=None if saved is None else "data")
    source = _checked(given, asked, saved)
    if saved is not None:
        test = _saved(saved, given)
    else:
        rules = _of_role("test", asked, questions.RULE)
        if "n" not in rules and rules.get("neighbours") != "add-remove":  # else the number is not public
            counted = (*questions.named("test", questions.WHERE), "max_rows_per_unit")
            rules["n"] = pt.count_records(source, **{name: asked[name] for name in counted if name in asked})
        with working("designing the test"):
            test = pt.design(**rules)
    _save(given, asked)
    found = test.run(source, **_of_role("test", asked, questions.WHERE), **paid(asked))
    title = f"Test of {test.null} against {test.alternative}"
    _answer("test", given, asked, found, title, _test_facts(found, test), design=test)


def _saved(path: str, given: Given) -> PrivateTest:
    """A test from a file; nothing else may say what the test is."""
    import privatest as pt

    also = [questions.flag(name) for name in questions.named("test", questions.RULE) if given[name] is not None]
    if also:
        raise errors.InvalidInput(f"--design says what the test is; leave out {', '.join(also)}.")
    return pt.PrivateTest.from_json(read_text(path, "--design"))


def _test_facts(found: Release, made: PrivateTest) -> list[Fact]:
    hidden = found.neighbours == "add-remove"
    said = {"null": made.null, "alternative": made.alternative}[found.decision]
    lines: list[Fact] = [("decision", found.decision, f"the data look like {said}")]
    if found.statistic is not None and found.pvalue is not None:
        lines += [
            ("statistic", f"{found.statistic:.4g}", f"with noise; null above {made.threshold:.4g}"),
            ("p-value", "below 1e-9" if found.pvalue < 1e-9 else f"{found.pvalue:.3g}", "exact, were the null true"),
        ]
    return [
        *lines,
        ("records", "not revealed" if hidden else f"{found.n:,}", f"test {found.test}"),
        ("error rates", f"{made.alpha:.2g} and {made.beta:.2g}", f"type I and type II, on {made.n:,} records"),
        ("privacy", f"epsilon {found.epsilon:g}" if found.private else "NOT PRIVATE", _hidden(found.neighbours)),
    ]


def detect(given: Given) -> None:
    """When data in order of time changed from the null to the alternative, with privacy.

    The index counts records from 0 and is that of the first record of the new regime. --false-alarm allows the answer
    that nothing changed.

    \b
    Example:
      privatest detect claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt

    asked = one_of(asked_of("detect", given), given)
    source = _checked(given, asked)
    _save(given, asked)
    found = pt.detect_change(source, **_of_role("detect", asked, questions.RULE, questions.WHERE), **paid(asked))
    _answer("detect", given, asked, found, _change_title(asked), _change_facts(found))


def _change_title(asked: Mapping[str, Any]) -> str:
    null = asked["null"] if isinstance(asked["null"], str) else "the null"
    other = asked.get("alternative", f"anything at distance {asked.get('distance')}")
    return f"Change from {null} to {other if isinstance(other, str) else 'the alternative'}"


def _change_facts(found: ChangePoint) -> list[Fact]:
    if found.changed is False:
        answer: Fact = ("change", "none", f"in {found.n:,} records")
    else:
        answer = ("change at", f"index {found.index:,}", f"of {found.n:,} records, counted from 0")
    lines = [
        answer,
        ("accuracy", f"{found.accuracy:,} records", f"or better with probability {1 - found.beta:g}"),
    ]
    if not found.informative:
        lines.append(("", "", "which is no better than naming the middle"))
    if found.false_alarm is not None:
        lines.append(("false alarms", f"at most {found.false_alarm:.3g}", "probability of an alarm without a change"))
    if found.power is not None:
        lines.append(("power", f"at least {found.power:.3g}", f"if {found.accuracy:,} records follow the change"))
    kept = f"epsilon {found.epsilon:g}" if found.private else "NOT PRIVATE"
    return [*lines, ("method", found.method), ("privacy", kept, _hidden(found.neighbours))]


def fit(given: Given) -> None:
    """Whether data come from the null or from anything at a distance from it, with privacy.

    \b
    Example:
      privatest fit survey.csv --column answer \\
          --null "categorical(yes=0.5, no=0.5)" --distance 0.1 --epsilon 1
    """
    import privatest as pt

    asked = asked_of("fit", given)
    if given["any_power"] and given["beta"] is not None:
        raise errors.InvalidInput("--any-power and --beta were both given. Give one of them.")
    source = _checked(given, asked)
    _save(given, asked)
    rules = _of_role("fit", asked, questions.RULE, questions.WHERE) | ({"beta": None} if given["any_power"] else {})
    found = pt.goodness_of_fit(source, **rules, **paid(asked))
    _answer("fit", given, asked, found, f"Goodness of fit, at distance {asked['distance']:g}", _fit_facts(found))


def _fit_facts(found: FitRelease) -> list[Fact]:
    said = {"null": "the data look like the null", "alternative": "the data come from something else"}
    return [
        ("decision", found.decision, said[found.decision]),
        ("statistic", f"{found.statistic:.4g}", "with noise; 0 is expected under the null"),
        ("p-value", "below 1e-6" if found.pvalue < 1e-6 else f"{found.pvalue:.3g}", "were the null true"),
        ("records", f"{found.n:,}", f"method {found.test}"),
        ("privacy", f"epsilon {found.epsilon:g}" if found.private else "NOT PRIVATE", _hidden(found.neighbours)),
    ]


def _checked(given: Given, asked: Mapping[str, Any], *reads: str | None) -> Any:
    """The data to read, once all that can be known to fail has been looked at."""
    reads = (asked["data"], asked.get("ledger"), given["problem"], *reads)
    check_target(reads, given["force"], save=given["save"], report=given["report"])
    check_payment(asked)
    import privatest as pt  # here, for a quick start

    return pt.open_once(source_of(asked["data"]))  # counted and summed on one reading


def source_of(data: str) -> Any:
    """What the package reads: the path or address itself, or the lines of standard input for ``-``."""
    if not data.strip():
        raise errors.InvalidInput("The data's name is empty. Give a file, a table's address, or - for standard input.")
    if data != STANDARD_INPUT:
        return data
    import privatest as pt

    return pt.read_lines(line for batch in arriving(data) for line in batch)


def _save(given: Given, asked: Mapping[str, Any]) -> None:
    if given["save"] is not None:
        write_problem(given["save"], asked)


def _answer(
    command: str,
    given: Given,
    asked: Mapping[str, Any],
    found: Any,
    title: str,
    lines: list[Fact],
    design: PrivateTest | None = None,
) -> None:
    """Print what was found, write its report, and exit as asked; a failure says how to get the answer again."""
    with answered(asked):
        if given["json"]:
            emit_json(found.to_dict())
        else:
            facts(title, [*lines, *budget(asked)])
            tell_receipt(found)
        if given["report"] is not None:
            write_report(given["report"], question=asked, design=design, result=found, kind=command)
    other = found.changed is not False if command == "detect" else found.decision == "alternative"
    if given["exit_code"] and other:
        raise typer.Exit(1)


def _of_role(command: str, asked: Mapping[str, Any], *roles: str) -> dict[str, Any]:
    """What was asked of some roles: the arguments of a function."""
    return {name: asked[name] for name in questions.named(command, *roles) if name in asked}


def _hidden(neighbours: str) -> str:
    return f"hides {PRIVACY.get(neighbours, neighbours)}"
