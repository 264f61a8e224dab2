"""``test``, ``detect`` and ``fit``: the commands that run on data, once each, and charge a ledger if one is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from privatest import errors
from privatest.cli import options as o
from privatest.cli.output import Fact, emit_json, facts, working
from privatest.cli.planning import need
from privatest.cli.problems import merge, write_problem
from privatest.cli.streams import STANDARD_INPUT, arriving
from privatest.cli.together import PAID, TIMEOUT, answered, budget, check_payment, one_of, paid, tell_receipt
from privatest.cli.writing import check_target, read_text, write_report

if TYPE_CHECKING:
    from privatest import ChangePoint, FitRelease, PrivateTest, Release

__all__ = ["decide", "detect", "fit"]

WHERE = ("column", "unit", "order")
SAID_BY_DESIGN = (
    *("null", "alternative", "epsilon", "n", "alpha"),
    *("test", "clamp", "threshold", "neighbours", "max_rows_per_unit"),
)
PRIVACY = {"replace": "replacing one record", "add-remove": "adding or removing one record"}


def decide(
    data: o.Data = None,
    null: o.Null = None,
    alternative: o.Alternative = None,
    epsilon: o.Epsilon = None,
    n: o.N = None,
    alpha: o.Alpha = None,
    kind: o.Kind = None,
    clamp: o.Clamp = None,
    threshold: o.Threshold = None,
    neighbours: o.Neighbours = None,
    max_rows_per_unit: o.MaxRows = None,
    design: o.Design = None,
    column: o.Column = None,
    unit: o.Unit = None,
    order: o.Order = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    request: o.Request = None,
    ledger_timeout: o.LedgerTimeout = None,
    problem: o.Problem = None,
    save: o.Save = None,
    report: o.Report = None,
    force: o.Force = False,
    exit_code: o.ExitCode = False,
    as_json: o.Json = False,
) -> None:
    """Whether data come from the null or from the alternative, with privacy.

    Every run spends epsilon. With --ledger, --dataset and --request it is charged first, and the same request again
    returns the same answer for nothing.

    \b
    Example:
      privatest test claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt

    given = {
        "data": data,
        "null": null,
        "alternative": alternative,
        "epsilon": epsilon,
        "n": n,
        "alpha": alpha,
        "test": kind,
        "clamp": clamp,
        "threshold": threshold,
        "neighbours": neighbours,
        "max_rows_per_unit": max_rows_per_unit,
        "column": column,
        "unit": unit,
        "order": order,
        "ledger": ledger,
        "dataset": dataset,
        "request": request,
        TIMEOUT: ledger_timeout,
    }
    asked = need(merge(problem, given), "data")
    check_target((*_read(asked, problem), design), force, save=save, report=report)
    check_payment(asked)
    if design is not None:
        made = _saved(design, given)
    else:
        need(asked, "null", "alternative", "epsilon")
        rules = _without(asked, "data", *WHERE, *PAID, TIMEOUT)
    source = pt.open_once(source_of(asked["data"]))  # counted and summed on one reading
    if design is None:
        if "n" not in rules and rules.get("neighbours") != "add-remove":  # else the number is not public
            counting = {name: asked[name] for name in (*WHERE, "max_rows_per_unit") if name in asked}
            rules["n"] = pt.count_records(source, **counting)
        with working("designing the test"):
            made = pt.design(**rules)
    if save is not None:
        write_problem(save, asked)
    found = made.run(source, **_running(asked))
    with answered(asked):
        _show(found, made, asked, as_json)
        if report is not None:
            write_report(report, question=asked, design=made, result=found, kind="test")
    if exit_code and found.decision == "alternative":
        raise typer.Exit(1)


def _saved(path: str, given: Mapping[str, Any]) -> PrivateTest:
    """A test from a file; nothing else may say what the test is."""
    import privatest as pt

    also = [f"--{name.replace('_', '-')}" for name in SAID_BY_DESIGN if given[name] is not None]
    if also:
        raise errors.InvalidInput(f"--design says what the test is; leave out {', '.join(also)}.")
    return pt.PrivateTest.from_json(read_text(path, "--design"))


def _show(found: Release, made: PrivateTest, asked: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(found.to_dict())
        return
    hidden = found.neighbours == "add-remove"
    said = {"null": made.null, "alternative": made.alternative}[found.decision]
    lines: list[Fact] = [("decision", found.decision, f"the data look like {said}")]
    if found.statistic is not None and found.pvalue is not None:
        lines += [
            ("statistic", f"{found.statistic:.4g}", f"with noise; null above {made.threshold:.4g}"),
            ("p-value", "below 1e-9" if found.pvalue < 1e-9 else f"{found.pvalue:.3g}", "exact, were the null true"),
        ]
    lines += [
        ("records", "not revealed" if hidden else f"{found.n:,}", f"test {found.test}"),
        ("error rates", f"{made.alpha:.2g} and {made.beta:.2g}", f"type I and type II, on {made.n:,} records"),
        ("privacy", f"epsilon {found.epsilon:g}" if found.private else "NOT PRIVATE", _hidden(found.neighbours)),
    ]
    facts(f"Test of {made.null} against {made.alternative}", [*lines, *budget(asked)])
    tell_receipt(found)


def detect(
    data: o.Data = None,
    null: o.Null = None,
    alternative: o.Alternative = None,
    epsilon: o.Epsilon = None,
    distance: o.Distance = None,
    beta: o.Miss = None,
    method: o.Method = None,
    false_alarm: o.FalseAlarm = None,
    column: o.Column = None,
    order: o.Order = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    request: o.Request = None,
    ledger_timeout: o.LedgerTimeout = None,
    problem: o.Problem = None,
    save: o.Save = None,
    report: o.Report = None,
    force: o.Force = False,
    exit_code: o.ExitCode = False,
    as_json: o.Json = False,
) -> None:
    """When data in order of time changed from the null to the alternative, with privacy.

    The index counts records from 0 and is that of the first record of the new regime. --false-alarm allows the answer
    that nothing changed.

    \b
    Example:
      privatest detect claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt

    given = {
        "data": data,
        "null": null,
        "alternative": alternative,
        "epsilon": epsilon,
        "distance": distance,
        "beta": beta,
        "method": method,
        "false_alarm": false_alarm,
        "column": column,
        "order": order,
        "ledger": ledger,
        "dataset": dataset,
        "request": request,
        TIMEOUT: ledger_timeout,
    }
    asked = need(one_of(merge(problem, given), given), "data", "null", "epsilon")
    check_target(_read(asked, problem), force, save=save, report=report)
    check_payment(asked)
    source = source_of(asked["data"])
    if save is not None:
        write_problem(save, asked)
    found = pt.detect_change(source, **_without(asked, "data", *PAID, TIMEOUT), **paid(asked))
    with answered(asked):
        if as_json:
            emit_json(found.to_dict())
        else:
            facts(_change_title(asked), [*_change_facts(found), *budget(asked)])
            tell_receipt(found)
        if report is not None:
            write_report(report, question=asked, result=found, kind="detect")
    if exit_code and found.changed is not False:
        raise typer.Exit(1)


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


def fit(
    data: o.Data = None,
    null: o.Null = None,
    distance: o.Distance = None,
    epsilon: o.Epsilon = None,
    alpha: o.Alpha = None,
    beta: o.Beta = None,
    any_power: o.AnyPower = False,
    bins: o.Bins = None,
    method: o.FitMethod = None,
    column: o.Column = None,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    request: o.Request = None,
    ledger_timeout: o.LedgerTimeout = None,
    problem: o.Problem = None,
    save: o.Save = None,
    report: o.Report = None,
    force: o.Force = False,
    exit_code: o.ExitCode = False,
    as_json: o.Json = False,
) -> None:
    """Whether data come from the null or from anything at a distance from it, with privacy.

    \b
    Example:
      privatest fit survey.csv --column answer \\
          --null "categorical(yes=0.5, no=0.5)" --distance 0.1 --epsilon 1
    """
    import privatest as pt

    given = {
        "data": data,
        "null": null,
        "distance": distance,
        "epsilon": epsilon,
        "alpha": alpha,
        "beta": beta,
        "bins": bins,
        "method": method,
        "column": column,
        "ledger": ledger,
        "dataset": dataset,
        "request": request,
        TIMEOUT: ledger_timeout,
    }
    asked = need(merge(problem, given), "data", "null", "distance", "epsilon")
    if any_power and beta is not None:
        raise errors.InvalidInput("--any-power and --beta were both given. Give one of them.")
    check_target(_read(asked, problem), force, save=save, report=report)
    check_payment(asked)
    source = source_of(asked["data"])
    if save is not None:
        write_problem(save, asked)
    rules = {**_without(asked, "data", *PAID, TIMEOUT), **({"beta": None} if any_power else {})}
    found = pt.goodness_of_fit(source, **rules, **paid(asked))
    with answered(asked):
        if as_json:
            emit_json(found.to_dict())
        else:
            facts(f"Goodness of fit, at distance {asked['distance']:g}", [*_fit_facts(found), *budget(asked)])
            tell_receipt(found)
        if report is not None:
            write_report(report, question=asked, result=found, kind="fit")
    if exit_code and found.decision == "alternative":
        raise typer.Exit(1)


def _fit_facts(found: FitRelease) -> list[Fact]:
    said = {"null": "the data look like the null", "alternative": "the data come from something else"}
    return [
        ("decision", found.decision, said[found.decision]),
        ("statistic", f"{found.statistic:.4g}", "with noise; 0 is expected under the null"),
        ("p-value", "below 1e-6" if found.pvalue < 1e-6 else f"{found.pvalue:.3g}", "were the null true"),
        ("records", f"{found.n:,}", f"method {found.test}"),
        ("privacy", f"epsilon {found.epsilon:g}" if found.private else "NOT PRIVATE", _hidden(found.neighbours)),
    ]


def source_of(data: str) -> Any:
    """What the package reads: the path or address itself, or the lines of standard input for ``-``."""
    if not data.strip():
        raise errors.InvalidInput("The data's name is empty. Give a file, a table's address, or - for standard input.")
    if data != STANDARD_INPUT:
        return data
    import privatest as pt

    return pt.read_lines(line for batch in arriving(data) for line in batch)


def _read(asked: Mapping[str, Any], problem: str | None) -> tuple[str | None, ...]:
    """Every file that the command reads, or keeps."""
    return asked.get("data"), asked.get("ledger"), problem


def _running(asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: asked[name] for name in WHERE if name in asked}, **paid(asked)}


def _hidden(neighbours: str) -> str:
    return f"hides {PRIVACY.get(neighbours, neighbours)}"


def _without(asked: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in names}
