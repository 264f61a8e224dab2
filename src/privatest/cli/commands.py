"""The commands, each a function of what the command line gave, and the way from a command line to an exit code.

Commands that plan (``plan``, ``compare``, ``curve``, and ``estimate`` and ``groups`` without data) read no data.
Commands that run on data (``test``, ``detect``, ``fit``, ``estimate``, ``groups``) charge a ledger if one
is named. Commands that follow a stream (``monitor``, ``sequential``) print one line of JSON for each alarm or verdict.

===== ==============================================================================================
0     success (also with ``--exit-code``: null, or no change)
1     only with ``--exit-code``: alternative, or changed
2     bad input; one or two lines on standard error say what is wrong; nothing was charged
3     over budget; nothing was charged
4     failure after the charge (or, without a ledger, after the answer was drawn); a sentence says how to get the
      answer, and the same request is not charged again
130   interrupted (Ctrl-C); if something was charged, standard error says so
141   the reader of standard output closed it
===== ==============================================================================================
"""

from __future__ import annotations

import codecs
import glob
import itertools
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privatest as pt
from privatest import errors, numbers, options
from privatest import facts as markup
from privatest.cli.output import (
    ReaderGone,
    complain,
    emit,
    emit_json,
    facts,
    flush,
    read_text,
    say,
    show_table,
    working,
    write_report,
    write_text,
)
from privatest.cli.problem_file import (
    Flags,
    check_target,
    check_written,
    need,
    one_of,
    one_rule,
    read_settings,
    signature,
    write_problem,
)

if TYPE_CHECKING:
    from privatest import followed_file


def plan(flags: Flags) -> None:
    """Plan a test: the number of records it needs, how good that is, and what privacy costs.

    Without --n: the smallest number of records that meets --advantage (2/3), or --alpha and --beta. With --n: the
    error rates on that number of records.

    \b
    Example:
      privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" \\
          --epsilon 0.5
    """
    settings = read_settings("plan", flags)
    check_written(flags, save=flags["save"], save_design=flags["save_design"], report=flags["report"])
    with working("planning"):
        result = pt.plan(**settings)
    _save(flags, settings)
    if flags["save_design"] is not None:
        write_text(flags["save_design"], result.design.to_json() + "\n", "--save-design")
    _show(flags, result.to_dict(), result.title, result.lines())
    _report(flags, "plan", settings, design=result.design)


def compare(flags: Flags) -> None:
    """Compare the numbers of records that the paper's tests need with the smallest possible number.

    \b
    Example:
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --epsilon 1
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --privacy "zcdp(0.5)"
    """
    notion = flags["privacy"]
    settings = read_settings("compare", flags, needs=None if notion is None else "null alternative")
    check_written(flags, save=flags["save"])
    comparison: pt.results.Comparison | pt.results.NotionComparison
    if notion is None:
        with working("comparing tests"):
            comparison = pt.compare(**settings)
    else:
        if flags["epsilon"] is None:
            settings.pop("epsilon", None)  # the problem file's
        with working("comparing notions of privacy"):
            comparison = pt.notions.compare(**settings, privacy=notion)
    _save(flags, settings)
    _tabled(flags, comparison)


def curve(flags: Flags) -> None:
    """Print exact error rates for several numbers of records.

    \b
    Example:
      privatest curve --null "poisson(3)" --alternative "poisson(4)" \\
          --epsilon 0.5 --n 10,20,40,80
    """
    settings = read_settings("curve", flags)
    if "n" in settings:
        settings["n"] = sizes_of(settings["n"])
    with working("computing error rates"):
        power_curve = pt.power_curve(**settings)
    _tabled(flags, power_curve)


def _tabled(flags: Flags, rows: pt.results.Comparison | pt.results.NotionComparison | pt.results.PowerCurve) -> None:
    """Print a table, or its JSON."""
    if flags["json"]:
        emit_json(rows.to_dict())
        return
    show_table(rows.title, rows.HEADINGS, rows.cells(), left=("test", "private", "note", ""))
    say(rows.ending)


def sizes_of(text: str, name: str = "n") -> list[int]:
    """Return the whole numbers that an option lists, such as "50,100,200"."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.InvalidInput(
            f"{name}={text!r} must be whole numbers separated by commas, such as 50,100,200."
        ) from None


def plan_estimate(flags: Flags, settings: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Print how wide the interval will be on --n records, or how many records an interval of --width needs.

    ``rules`` are the arguments that describe the estimate.
    """
    width, words = flags["width"], dict(rules)
    if width is None and "n" not in words:
        raise errors.InvalidInput("Missing: DATA, or for a plan --n or --width.")
    if width is not None and "n" in words:
        raise errors.InvalidInput("--n and --width were both given: one follows from the other. Give one of them.")
    check_written(flags, save=flags["save"], report=flags["report"])
    with working("planning"):
        # The number of records for a width does not depend on the number in the design.
        design = pt.design_estimate(**{"n": 100, **words})
        if not isinstance(design, pt.results.EstimateDesign):
            raise errors.InvalidInput(
                f"A plan for {words['family']!r} needs a distribution to plan for: in Python "
                "design_estimate(...).expected_width('normal(3, 2)'). Give DATA to run it."
            )
        at = sum(design.between) / 2 if flags["at"] is None else flags["at"]
        if width is not None:
            design = design.at_n(design.sample_size(width=width, at=at))
        expected, bound = design.expected_width(at), design.width_bound(at)
        expectations = [
            markup.Fact("at", at, f"the true {design.parameter} that the rest assumes"),
            markup.Fact("coverage", design.coverage(at), "probability that the interval holds it"),
            markup.Fact("expected_width", expected, "mean width of the interval"),
            markup.Fact("width_bound", bound, "no private interval has a smaller mean width"),
            markup.Fact("ratio", expected / bound if bound > 0 else None, "expected width over this bound"),
        ]
    _planned(flags, settings, "estimate", design, expectations)


def plan_groups(flags: Flags, settings: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
    """Print how likely --n records find a lift, or how many records find it; ``rules`` describe the comparison."""
    if flags["rate"] is None or flags["lift"] is None:
        raise errors.InvalidInput("Missing: DATA, or for a plan --rate and --lift.")
    rate, lift, words = flags["rate"], flags["lift"], dict(rules)
    if flags["n"] is not None and flags["beta"] is not None:
        raise errors.InvalidInput("--n and --beta were both given: one follows from the other. Give one of them.")
    check_written(flags, save=flags["save"], report=flags["report"])
    with working("planning"):
        if flags["n"] is None:
            aim = {} if flags["beta"] is None else {"beta": flags["beta"]}
            n = pt.design_groups(n=(100, 100), **words).sample_size(rate=rate, lift=lift, **aim)
            sizes = [n, n]
        else:
            sizes = sizes_of(flags["n"])
            if len(sizes) != 2:
                raise errors.InvalidInput(f"n={flags['n']!r} must be the records of both groups, such as 200,300.")
        design = pt.design_groups(n=(sizes[0], sizes[1]), **words)
        expectations = [
            markup.Fact("rate", rate, "rate of the control group that the rest assumes"),
            markup.Fact("lift", lift, "rate of the treatment group minus it"),
            markup.Fact("power", markup.Probability(design.power((rate, rate + lift))), "probability that it is found"),
        ]
    _planned(flags, settings, "groups", design, expectations)


def _planned(
    flags: Flags, settings: Mapping[str, Any], command: str, design: Any, expectations: list[markup.Fact]
) -> None:
    """Print the plan of an estimate or a comparison, and write the files that were asked for."""
    _save(flags, settings)
    document = {**design.values(), **{name: markup.plain_value(value) for name, value, _ in expectations}}
    expected = [
        (name.replace("_", " "), markup.short(value), meaning)
        for name, value, meaning in expectations
        if value is not None
    ]
    _show(flags, document, design.title, [*design.lines(), *expected])
    _report(flags, command, {**settings, "n": design.n}, design=design)


def _save(flags: Flags, settings: Mapping[str, Any]) -> None:
    """Write the problem file, if --save names one."""
    if flags["save"] is not None:
        write_problem(flags["save"], settings)


def _show(flags: Flags, document: Mapping[str, Any], title: str, lines: list[tuple[str, str, str]]) -> None:
    """Print the document with --json, the facts without it."""
    if flags["json"]:
        emit_json(document)
    else:
        facts(title, lines)


def _report(flags: Flags, command: str, question: Mapping[str, Any], **content: Any) -> None:
    """Write the report, if --report names a file."""
    if flags["report"] is not None:
        about = {name: flags.get(name) for name in ("purpose", "author")}
        write_report(flags["report"], question=question, kind=command, **content, **about)


ARGUMENTS = (options.RULE, options.WHERE, options.RUN)
"""The roles of the arguments of a function that designs and runs in one call."""
PAID = ("ledger", "dataset", "request")
TIMEOUT = "ledger_timeout"
UNSEEN = (
    "Every row matches its hash, its neighbours and the sums. This check alone does not detect that somebody removed "
    "rows or restored an old copy and then recomputed the hashes. To detect that, use --since with a fingerprint that "
    "was kept elsewhere; every result and report of this ledger prints one."
)
SEEN = "Every row matches its hash, its neighbours and the sums, and the rows up to the fingerprint are unchanged."


def grant(flags: Flags) -> None:
    """Set the total budget of a data set, and create the ledger if there is none.

    With --covers the budget is for these files or tables only: requests that read other data are refused, and so are
    requests of other data sets that read these. "data in memory" stands for standard input and data frames.

    The budget hides the replacement of one record, unless --neighbours is add-remove; with --unit it hides all rows of
    a person. Requests for add-remove count twice in a budget for replace; any other mismatch is refused.

    \b
    Example:
      privatest ledger grant --ledger ledger.db --dataset claims --epsilon 1 \\
          --covers claims.csv
      privatest ledger grant --ledger ledger.db --dataset claims \\
          --privacy "approx(1, 1e-6)"
    """
    need(flags, "ledger", "dataset", *(() if flags["privacy"] is not None else ("epsilon",)))
    dataset, epsilon, privacy = flags["dataset"], flags["epsilon"], flags["privacy"]
    # Before an empty ledger is made for nothing.
    if epsilon is not None and (not epsilon > 0 or epsilon == float("inf")):
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    if privacy is not None and epsilon is not None:
        raise errors.InvalidInput(f"--epsilon {epsilon:g} and --privacy {privacy} were both given. Give one of them.")
    if privacy is not None:
        pt.notions.parse(privacy)
    if flags["neighbours"] is not None:
        numbers.choice(("replace", "add-remove"), neighbours=flags["neighbours"])
    with opened(flags, create=True) as book:
        whom = {name: flags[name] for name in ("neighbours", "unit")}
        book.grant(dataset, epsilon=epsilon, privacy=privacy, covers=flags["covers"] or None, **whom)
        line, named = _line(book, dataset), book.covers(dataset)
    if flags["json"]:
        emit_json({**line, "covers": named})
        return
    texts = ("dataset", "neighbours", "unit")
    lines = [(name, (value or "") if name in texts else _amount(value), "") for name, value in line.items()]
    facts("Budget", [*lines, *(("covers", one, "") for one in named or ["any source"])])


def show(flags: Flags) -> None:
    """Show what is granted, spent and left, every request so far, and how far each stream was released.

    \b
    Example:
      privatest ledger show --ledger ledger.db
    """
    need(flags, "ledger")
    with opened(flags) as book:
        dataset = flags["dataset"]
        names = book.datasets() if dataset is None else [dataset]
        lines = [_line(book, name) for name in names]
        history, fingerprint = book.history(dataset), book.fingerprint()
    if flags["json"]:
        emit_json({"datasets": lines, "history": [entry.to_dict() for entry in history], "fingerprint": fingerprint})
        return
    composed = any("added up" in line for line in lines)
    amounts = ("granted", "spent", "left", *(("added up", "saved") if composed else ()))
    texts = ("neighbours", "unit") if any(line["unit"] for line in lines) else ("neighbours",)
    rows = [
        [line["dataset"], *(_amount(line.get(name)) for name in amounts), *(line[name] or "" for name in texts)]
        for line in lines
    ]
    headings = ("dataset", *amounts, *texts)
    show_table("Budgets" if composed else "Budgets of epsilon", headings, rows, left=("dataset", *texts))
    if composed:
        say("Added up: the total of the same requests if their losses were only added up, not composed.")
    newest = {(entry.dataset, entry.request): entry.sequence for entry in history if entry.kind == "advance"}
    entries = [
        (
            str(entry.sequence),
            f"{entry.time:%Y-%m-%d %H:%M}",
            entry.kind if entry.release is None or entry.kind != "advance" else f"to {entry.release['position']}",
            entry.dataset,
            entry.request or "",
            _amount(_plain(entry.epsilon)),
        )
        for entry in history
        if entry.kind != "advance" or newest[entry.dataset, entry.request] == entry.sequence
    ]
    emit("")
    show_table(
        "History (times in UTC)",
        ("row", "time", "what", "dataset", "request", "price" if composed else "epsilon"),
        entries,
        left=("time", "what", "dataset", "request"),
    )
    emit("")
    emit(f"Note the fingerprint elsewhere to pin the ledger as it is now:\n{fingerprint}")


def verify(flags: Flags) -> None:
    """Check every row, hash and sum of a ledger; exit with 2 if anything was edited.

    Without --since this detects edits after which the hashes were not recomputed. With --since and a fingerprint that
    was kept elsewhere it also detects that rows up to the fingerprint were removed, rewritten or restored from a copy.

    \b
    Example:
      privatest ledger verify --ledger ledger.db
    """
    need(flags, "ledger")
    with opened(flags) as book:
        rows = book.verify(flags["since"])
        fingerprint = book.fingerprint()
    if flags["json"]:
        emit_json({"rows": rows, "intact": True, "fingerprint": fingerprint})
        return
    facts("The ledger is intact", [("rows", f"{rows:,}", "")])
    say(UNSEEN if flags["since"] is None else SEEN)
    emit(f"Fingerprint of the ledger, to keep elsewhere:\n{fingerprint}")


def _line(book: Any, dataset: str) -> dict[str, Any]:
    """Return what is granted, spent and left of a data set's budget, and what it protects."""
    granted, spent, left = book.granted(dataset), book.spent(dataset), book.left(dataset)
    whom = book.protects(dataset)
    line = {"dataset": dataset, "granted": _plain(granted), "spent": _plain(spent), "left": _plain(left)}
    line |= {"neighbours": whom.neighbours, "unit": whom.unit}
    if isinstance(granted, Fraction):
        return line
    added = book.added_up(dataset)
    return {**line, "added up": _plain(added), "saved": _spared(spent, added)}


def _spared(spent: Any, added: Any) -> str | None:
    """Return the share of the budget that composition saves over adding up; None if the two do not compare."""
    if isinstance(spent, Fraction) or added is None or isinstance(added, Fraction):
        return None
    place = 0 if spent.name == "approx" else -1
    return f"{max(0.0, 1 - float(spent.exact[place] / added.exact[place])):.0%}"


def _plain(amount: Any) -> float | str | None:
    """Return an amount of a ledger for JSON: an epsilon as a number, any other notion as its text."""
    return None if amount is None else float(amount) if isinstance(amount, Fraction) else str(amount.text)


def _amount(value: Any) -> str:
    """Return an amount that :func:`_plain` returned for a table, with few digits."""
    if value is None or isinstance(value, float):
        return "" if value is None else f"{value:g}"
    return str(pt.notions.parse(value)) if "(" in value else str(value)


def check_payment(settings: Mapping[str, Any]) -> None:
    """Refuse a ledger, a data set or a request without the other two."""
    named = [name for name in PAID if name in settings]
    if TIMEOUT in settings and "ledger" not in settings:
        raise errors.InvalidInput("--ledger-timeout needs --ledger. Name the ledger, or leave it out.")
    if named and len(named) < len(PAID):
        missing = ", ".join(f"--{name}" for name in PAID if name not in named)
        raise errors.InvalidInput(f"--{', --'.join(named)} was given without {missing}. Give all three, or none.")


def paid(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the opened ledger, the data set and the request as arguments of a run; nothing without a ledger."""
    if "ledger" not in settings:
        return {}
    return {"ledger": opened(settings), "dataset": settings["dataset"], "request": settings["request"]}


def opened(settings: Mapping[str, Any], *, create: bool = False) -> Any:
    """Open the ledger that --ledger names."""
    words = {"timeout": settings[TIMEOUT]} if settings.get(TIMEOUT) is not None else {}
    return pt.Ledger(settings["ledger"], create=create, **words)


@contextmanager
def answered(settings: Mapping[str, Any], again: str | None = None) -> Iterator[None]:
    """Add to an error within the context, which comes after the charge, a note that says how to get the answer.

    The note is ``again``, or one that follows from the ledger and the request.
    """
    try:
        yield
    except ReaderGone:
        raise
    except BaseException as error:
        if not hasattr(error, "exit_code"):  # typer's own way out
            note = again or "The answer was drawn, and no ledger keeps it. Another run spends epsilon again."
            if again is None and "ledger" in settings:
                request, dataset = settings["request"], settings["dataset"]
                note = (
                    f"Request {request!r} of data set {dataset!r} is charged and its answer recorded. "
                    "The same command returns it without a new charge."
                )
            errors.note_charge(error, note)
        raise


def budget(settings: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return a line for a run's table that says what is left of the budget."""
    if "ledger" not in settings:
        spent = "epsilon" if settings.get("privacy") is None else "budget"
        return [("budget", "no ledger", f"keep a note that this {spent} is spent")]
    with opened(settings) as ledger:
        left, granted = ledger.left(settings["dataset"]), ledger.granted(settings["dataset"])
    of = f"of {_amount(_plain(granted))} for data set {settings['dataset']}"
    return [("budget", f"{_amount(_plain(left))} left", of)]


def check(flags: Flags) -> None:
    """Check how the data would be read. The output is NOT PRIVATE: it is for the holder of the data only.

    It counts records that are missing, unreadable or outside both supports, and lists unknown labels. Describe the
    question as for "test" or "detect", with --family for "estimate" and "groups", or with --null and --distance for
    "fit". Nothing is charged and nothing is written. Do not pass the output on.

    \b
    Example:
      privatest check claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)"
      privatest check claims.csv --column smoker --family "bernoulli(?)" --success Yes
    """
    kind = "estimate" if flags["family"] is not None else "fit" if flags["distance"] is not None else "check"
    if (kind == "estimate" and flags["null"] is not None) or (kind != "check" and flags["alternative"] is not None):
        raise errors.InvalidInput(
            "--family describes an estimate, --null and --distance a fit, --null and --alternative a test: give one of "
            "them."
        )
    needs = {"estimate": "data family", "fit": "data null distance", "check": "data null alternative"}[kind]
    settings = read_settings(kind, defaultdict(lambda: None, flags), needs)
    words = _of_role(kind, settings, options.WHERE)
    if kind == "check":
        words |= _of_role(kind, settings, options.RULE)
    elif kind == "fit":
        words["null"] = pt.design_fit(settings["null"], distance=settings["distance"], epsilon=1, n=1000, beta=None)
    else:
        about = {name: settings[name] for name in ("between", "success") if name in settings}
        words["null"] = pt.design_estimate(settings["family"], **about, epsilon=1, n=1000, missing="none")
    reading = pt.check(_read_as(settings), **words)
    _show(flags, reading.to_dict(), reading.title, reading.lines())


def decide(flags: Flags) -> None:
    """Decide with privacy whether the data come from the null or from the alternative.

    Every run spends epsilon. With --ledger, --dataset and --request it is charged first, and repeating the request
    returns the same answer free of charge.

    \b
    Example:
      privatest test claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    saved = flags["design"]
    settings = read_settings("test", flags, needs=None if saved is None else "data")
    source = _checked(flags, settings, saved)
    if saved is not None:
        test = _saved(saved, flags)
    else:
        rules = _of_role("test", settings, options.RULE)
        if "n" not in rules and rules.get("neighbours") != "add-remove":  # else the number is not public
            counted = (*options.named("test", options.WHERE), "max_rows_per_unit")
            rules["n"] = pt.data.count_records(source, **{name: settings[name] for name in counted if name in settings})
            if rules["n"] == 0:
                raise errors.InvalidData("The data have no records. Pass at least one.")
        with working("designing the test"):
            test = pt.design(**rules)
            test.check_tells()
    _save(flags, settings)
    release = test.run(source, **_of_role("test", settings, options.WHERE, options.RUN), **paid(settings))
    _answer("test", flags, settings, release)


def _saved(path: str, flags: Flags) -> pt.results.PrivateTest:
    """Return the test that --design names; options that describe a test are refused beside it."""
    also = [options.flag(name) for name in options.named("test", options.RULE) if flags[name] is not None]
    if also:
        raise errors.InvalidInput(f"--design already describes the test. Leave out {', '.join(also)}.")
    return pt.results.PrivateTest.from_json(read_text(path, "--design"))


def detect(flags: Flags) -> None:
    """Find with privacy when data in order of time changed from the null to the alternative.

    The index counts records from 0 and is that of the first record of the new regime. The answer may be "no change": a
    change is found in unchanged data with probability at most 0.05, or --false-alarm. With --assume-change an index is
    always named. With --changes several all changes are found: to the alternative, back, and so on.

    \b
    Example:
      privatest detect claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    _ask("detect", flags, one_rule(one_of(read_settings("detect", flags), flags), flags))


def fit(flags: Flags) -> None:
    """Decide with privacy whether the data come from the null or from any law at a distance from it.

    \b
    Example:
      privatest fit survey.csv --column answer \\
          --null "categorical(yes=0.5, no=0.5)" --distance 0.1 --epsilon 1
    """
    if flags["any_power"] and flags["beta"] is not None:
        raise errors.InvalidInput("--any-power and --beta were both given. Give one of them.")
    _ask("fit", flags, read_settings("fit", flags), **({"beta": None} if flags["any_power"] else {}))


def estimate(flags: Flags) -> None:
    """Estimate a rate, a mean or another parameter with privacy, with an exact interval.

    The "?" in --family marks the parameter. Without DATA the command plans: it reads nothing, spends nothing, and
    prints the expected width on --n records, or the number of records for an interval of --width, if the true value
    is --at.

    \b
    Example:
      privatest estimate claims.csv --column value --family "normal(mean=?, sd=1)" \\
          --between -3 3 --epsilon 1
      privatest estimate --family "bernoulli(?)" --epsilon 1 --n 1000 --at 0.3
    """
    settings = read_settings("estimate", flags)
    if _is_plan("estimate", flags, settings, "at", "width"):
        plan_estimate(flags, settings, _of_role("estimate", settings, options.RULE))
        return
    if settings.get("neighbours") == "add-remove" and "n" not in settings:
        raise errors.InvalidInput(
            "n is missing: with --neighbours add-remove the number of records is private, and an estimate designed for "
            "it would reveal it. Give the number that you expect: --n"
        )
    _ask("estimate", flags, settings)


def groups(flags: Flags) -> None:
    """Compare the rates of two groups with privacy (an A/B test): decision, p-value, difference and interval.

    Give the data of both groups, or one table and --group, the column that names the group of a row. A record is a
    success if it is 1, or as --above or --success says. Without DATA the command plans: it reads nothing, spends
    nothing, and prints the probability that --n records find a --lift over --rate, or the number of records that do.

    \b
    Example:
      privatest groups visits.csv --group arm --column bought --epsilon 1
      privatest groups --rate 0.1 --lift 0.1 --epsilon 1 --n 200,200
    """
    settings = read_settings("groups", flags)
    if _is_plan("groups", flags, settings, "n", "rate", "lift", "beta"):
        plan_groups(flags, settings, _of_role("groups", settings, options.RULE))
        return
    if "treatment" not in settings and "group" not in settings:
        raise errors.InvalidInput(
            "Only one group's data were given. Give the data of the other group, or --group, the column of groups."
        )
    if "treatment" in settings and settings["treatment"] == settings["data"] == STANDARD_INPUT:
        raise errors.InvalidInput("Standard input can hold only one of the groups. Name a file for the other.")
    _ask("groups", flags, settings)


def table(flags: Flags) -> None:
    """Release how many records each cell has, with noise, for all questions that follow.

    The cells are --cells equal ones in --between, or lie between --edges, or are --labels; with --by and --groups each
    group has all of them, at the price of one. --json prints the table with its noise, which pt.results.Table reads.

    \b
    Example:
      privatest table claims.csv --column value --between -3 3 --cells 12 --epsilon 1
      privatest table visits.csv --column bought --labels 0,1 --by arm --groups old,new --epsilon 1
    """
    _ask("table", flags, read_settings("table", flags))


def _ask(command: str, flags: Flags, settings: dict[str, Any], **more: Any) -> None:
    """Run a question on the data by the function that the table of options names, and print the answer."""
    source = _checked(flags, settings, settings.get("treatment"))
    others = [pt.data.open_once(_read_as(settings, "treatment"))] if "treatment" in settings else []
    _save(flags, settings)
    function = attrgetter(options.QUESTIONS[command].call)(pt)
    with working("computing"):
        release = function(source, *others, **_of_role(command, settings, *ARGUMENTS), **more, **paid(settings))
    _answer(command, flags, settings, release)


def _is_plan(command: str, flags: Flags, settings: Mapping[str, Any], *planned: str) -> bool:
    """Return whether the command plans, because no data are given. Options of the other mode are refused."""
    roles = (options.SOURCE, options.WHERE, options.READING, options.RUN, options.PAYER)
    on_data = options.named(command, *roles)
    if "data" not in settings:
        if also := [options.flag(name) for name in on_data if name in settings]:
            raise errors.InvalidInput(f"The data are missing. Give DATA, or for a plan leave out {', '.join(also)}.")
        return True
    if also := [options.flag(name) for name in planned if flags[name] is not None]:
        raise errors.InvalidInput(
            f"{', '.join(also)} is for plans, which read no data. Leave it out, or leave out the data."
        )
    return False


def _checked(flags: Flags, settings: Mapping[str, Any], *reads: str | None) -> Any:
    """Check the output files and the payment, then open the data."""
    reads = (settings["data"], settings.get("ledger"), flags["problem"], *reads)
    check_target(reads, flags["force"], save=flags["save"], report=flags["report"])
    check_payment(settings)
    return pt.data.open_once(_read_as(settings))  # counted and summed on one reading


def _read_as(settings: Mapping[str, Any], name: str = "data") -> Any:
    """Return the data with the rules for reading their texts."""
    words = _of_role("detect", settings, options.READING)  # which has all of them
    if "missing" in words:
        words["missing"] = options.separate(words["missing"])
    table = any(settings.get(key) is not None for key in ("column", "unit", "order", "group", "by"))
    return pt.data.read_as(address_of(settings[name], table=table), **words)


def address_of(data: str, *, table: bool = False) -> Any:
    """Return the path or address itself, or the lines of standard input for ``-``.

    Each line of standard input is a record. If a column is named, the lines are comma-separated fields, and the first
    line names the columns.
    """
    if not data.strip():
        raise errors.InvalidInput(
            "The name of the data is empty. Give a file, a table's address, or - for standard input."
        )
    if data != STANDARD_INPUT:
        missing = "://" not in data and not os.path.exists(data) and not glob.glob(data)
        return Path(data) if missing else data  # a path, whatever its name ends with: messages say what is missing
    if not table and sys.stderr is not None and sys.stderr.isatty():
        typer.echo(LINES_ARE_RECORDS, err=True)
    lines = (line for batch in arriving() for line in batch)
    return pt.data.read_lines(lines, table=table)


LINES_ARE_RECORDS = (
    "Each line of standard input is read as a record, the first one too. If the first line names columns, name yours: "
    "--column."
)
"""What is printed in a terminal where standard input is not a table: no record says whether a line is a heading."""


def _answer(command: str, flags: Flags, settings: Mapping[str, Any], release: Any) -> None:
    """Print a release, write its report, and exit as --exit-code says; a failure says how to get the answer again."""
    with answered(settings):
        _show(flags, release.to_dict(), release.title, [*release.lines(), *([] if flags["json"] else budget(settings))])
        if flags["report"] is not None:
            with opened(settings) if "ledger" in settings else nullcontext() as book:
                _report(flags, command, settings, design=release.design, result=release, ledger=book)
    if flags.get("exit_code"):
        other = release.changed is not False if command == "detect" else release.decision == "alternative"
        if other:
            raise typer.Exit(1)


def _of_role(command: str, settings: Mapping[str, Any], *roles: str) -> dict[str, Any]:
    """Return the given options that have one of these roles, as arguments of a function."""
    return {name: settings[name] for name in options.named(command, *roles) if name in settings}


STANDARD_INPUT = "-"
AT_ONCE = 1 << 16


def arriving() -> Iterator[list[bytes]]:
    """Return the complete lines of standard input in batches, each as soon as it has arrived.

    The last line may lack its end. A byte order mark is dropped.
    """
    if sys.stdin is None or sys.stdin.closed:
        raise errors.InvalidInput("Standard input is closed. Give the name of a file.")
    stdin: Any = sys.stdin.buffer
    return _lines(iter(lambda: stdin.read1(AT_ONCE), b""))


def _lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the complete lines in pieces of a text."""
    from privatest import followed_file  # start-up: for lines of standard input alone

    rest, first = b"", True
    for piece in pieces:
        whole, rest = followed_file.whole_lines(rest, piece)
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]


NOUNS = {"monitor": "monitor", "sequential": "sequential test"}
_REMEDY = (
    "If the old file was renamed, read the rest of it first, by its new name. Then, if the lines here are new, add "
    "--new-file; if they are the old lines and more, pipe them in with --from-start."
)


def monitor(flags: Flags) -> None:
    """Watch records as they arrive, one per line, and raise an alarm with privacy when they have changed.

    An alarm is one line of JSON; watching ends with it, unless --go-on is given. An unusable line is a record like any
    other, with a fixed score. With --state a monitor that was stopped continues; in a file it continues after the lines
    that it has read. --json adds a last line with the monitor's guarantees and what it released.

    Reading stops with an error if the file was replaced or cut short while it was read or since the state was written,
    so that no line is released twice and none is skipped. With --new-file such a file is read from its first line. To
    read a log that is rotated, pipe it in as in the example: tail -F continues with the next file.

    \b
    Example:
      tail -n +1 -F values.txt | privatest monitor --null "normal(0,1)" \\
          --alternative "normal(1,1)" --epsilon 0.5
    """
    alarms = _watch("monitor", flags, one_of(read_settings("monitor", flags, needs=""), flags))
    if flags["exit_code"] and alarms:
        raise typer.Exit(1)


def sequential(flags: Flags) -> None:
    """Test P against Q with privacy on records as they arrive, one per line, and stop as soon as they suffice.

    The verdict is one line of JSON: the decision, the number of records, and the e-value, which is evidence against the
    null and valid at any time. Reading ends with it. --state, --follow, --new-file and a ledger are as for monitor.
    --json adds a last line with the guarantees (expected numbers of records, exact errors), the walk of the log e-value
    and what was released. With --report a page is written once there is a verdict.

    \b
    Example:
      privatest sequential answers.txt --null "bernoulli(0.3)" \\
          --alternative "bernoulli(0.7)" --epsilon 1
    """
    settings = read_settings("sequential", flags, needs="")
    reads = (flags["file"] or STANDARD_INPUT, settings.get("ledger"), flags["problem"])
    check_target(reads, flags["force"], report=flags["report"])
    if "schedule" in settings:
        settings["schedule"] = sizes_of(settings["schedule"], "schedule")
    verdicts = _watch("sequential", flags, settings)
    if flags["exit_code"] and any(verdict.decision == "alternative" for verdict in verdicts):
        raise typer.Exit(1)


def _watch(command: str, flags: Flags, settings: dict[str, Any]) -> list[Any]:
    """Feed lines to a monitor or a sequential test; print and return its alarms or verdicts."""
    from privatest import followed_file  # start-up: for streams alone

    name = STANDARD_INPUT if flags["file"] is None else flags["file"]
    follow, state, new_file = flags["follow"], flags["state"], flags["new_file"]
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput(
            "--follow needs the name of a file. Standard input is always followed. Leave --follow out."
        )
    check_target((name, settings.get("ledger"), flags["problem"]), state=state)
    if new_file and name == STANDARD_INPUT:
        raise errors.InvalidInput(
            "--new-file needs the name of a file. Lines of standard input are always new. Leave --new-file out."
        )
    batches = arriving() if name == STANDARD_INPUT else None
    growing = followed_file.LineFile(name) if batches is None else None
    watcher = _opened(command, state, settings, None if batches is not None else name)
    if growing is not None:
        arrived = growing.batches(watcher.seen, watcher.place, follow=follow, new_file=new_file, remedy=_REMEDY)
    else:
        assert batches is not None
        left = _after(batches, watcher.seen if flags["from_start"] else 0)
        arrived = (followed_file.ReadLines(lines, None) for lines in left)
    results: list[Any] = []
    with answered(settings, _how_to_go_on(command, settings, state)) if "request" in settings else nullcontext():
        try:
            for alarm in _alarms(watcher, arrived, bool(flags.get("go_on"))):
                results.append(alarm)
                emit_json(alarm.to_dict(), line=True)
        finally:
            if flags["json"]:
                emit_json(watcher.to_dict(), line=True)
        if command == "sequential" and not results:
            complain(f"No verdict yet, after {watcher.seen:,} records.")
        if flags.get("report") is not None and results:
            values, names = watcher.values(), ("null", "alternative", "epsilon", "privacy")
            question = {name: values[name] for name in names if name in values}  # those given, or those of the state
            read = {} if name == STANDARD_INPUT else {"data": name}
            write_report(flags["report"], question={**read, **question, **settings}, result=results[-1], kind=command)
    return results


def _how_to_go_on(command: str, settings: Mapping[str, Any], state: str | None) -> str:
    """Return a note that says how a stream that failed after its charge continues."""
    charged, noun = (
        f"Request {settings.get('request')!r} of data set {settings.get('dataset')!r} is charged",
        NOUNS[command],
    )
    if state is None:
        return f"{charged}. Without --state its {noun} cannot continue; another request is charged again."
    return f"{charged}, and its {noun} is kept: the same command continues from {state!r} without a new charge."


def _opened(command: str, state: str | None, settings: dict[str, Any], source: str | None) -> Any:
    """Return the monitor or sequential test of the state file, if there is one, else a new one."""
    read = source if "ledger" in settings else None
    watcher_class: Any = attrgetter(options.QUESTIONS[command].call)(pt)
    if state is not None and os.path.exists(state) and "null" not in settings:
        if rest := [name for name in settings if name not in ("ledger", "ledger_timeout")]:
            listed = ", ".join(map(options.flag, rest))
            raise errors.InvalidInput(
                f"The state {state!r} describes the question. Leave {listed} out, or give --null and all the rest."
            )
        ledger = opened(settings) if "ledger" in settings else None
        return watcher_class.load(state, ledger=ledger, source=read)
    check_payment(settings)
    need(settings, *options.QUESTIONS[command].needs.split())
    rules = {name: settings[name] for name in options.named(command, options.RULE) if name in settings} | paid(settings)
    with working(f"designing the {NOUNS[command]}"):
        return watcher_class(**rules, state=state, source=read)


def _after(batches: Iterator[list[bytes]], skipped: int) -> Iterator[list[bytes]]:
    """Yield the lines after the first ``skipped``, which must exist."""
    left = skipped
    for batch in batches:
        if left < len(batch):
            yield batch[left:]
        left = max(left - len(batch), 0)
    if left:
        raise errors.InvalidInput(
            f"The state has seen {skipped} records, {left} more than standard input has lines. Leave --from-start out "
            "if all lines are new."
        )


def _alarms(watcher: Any, batches: Iterator[followed_file.ReadLines], go_on: bool) -> Iterator[Any]:
    """Yield each alarm or verdict, first the one in the state file; without ``go_on`` only one."""
    alarm = watcher.result
    while True:
        if alarm is not None:
            yield alarm  # printed before it is reset: an alarm may be printed twice, never lost
            if not go_on:
                return
            watcher.reset()
        for batch in batches:
            before = watcher.seen
            alarm = watcher.update_many(pt.data.read_lines(batch.lines), place=batch.place)
            if alarm is not None:
                rest = batch.lines[watcher.seen - before :]
                batches = itertools.chain([batch._replace(lines=rest)] if rest else [], batches)
                break
        else:
            return


BAD_INPUT, OVER_BUDGET, AFTER_CHARGE, INTERRUPTED, READER_GONE = 2, 3, 4, 130, 141
# The marks by which typer asks for a shell completion.
PROGRAM, COMPLETION = "privatest", "_PRIVATEST_COMPLETE"

ABOUT = """Private answers: did this data come from P or from Q, when did it change, how large is it, did B beat A?

State the hypotheses before you look at the data: --null is P, --alternative is Q, --epsilon is the privacy loss.

\b
Example:
  privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" --epsilon 0.5
"""


def studio(flags: Flags) -> None:
    """Open the studio: a page on this machine to plan, run and watch in a browser.

    \b
    Example:
      privatest studio --folder data --ledger ledger.db
    """
    from privatest import studio as page  # for the start-up time of all other commands

    page.serve(
        **{name: value for name, value in flags.items() if name != "no_browser"}, open_browser=not flags["no_browser"]
    )


def version(flags: Flags) -> None:
    """Print the version of the package.

    \b
    Example:
      privatest version
    """
    versions = {"privatest": pt.__version__, "python": platform.python_version()}
    if flags["json"]:
        emit_json(versions)
    else:
        facts("privatest", [(name, text, "") for name, text in versions.items()])


COMMANDS: tuple[tuple[str | None, str, Callable[[Flags], None]], ...] = (
    (None, "plan", plan),
    (None, "compare", compare),
    (None, "curve", curve),
    (None, "check", check),
    (None, "test", decide),
    (None, "detect", detect),
    (None, "monitor", monitor),
    (None, "sequential", sequential),
    (None, "fit", fit),
    (None, "estimate", estimate),
    (None, "groups", groups),
    (None, "table", table),
    ("ledger", "grant", grant),
    ("ledger", "show", show),
    ("ledger", "verify", verify),
    (None, "studio", studio),
    (None, "version", version),
)


def _parsed(name: str, function: Callable[[Flags], None]) -> Callable[..., None]:
    """Return a command as a function for typer, with the options of the table.

    If it is interrupted after a charge, it says so, because typer drops the note.
    """

    def parsed(**flags: Any) -> None:
        try:
            function(flags)
        except KeyboardInterrupt as error:
            if (note := errors.charge_note(error)) is not None:
                complain(f"Interrupted. {note}")
            raise

    parsed.__doc__ = function.__doc__
    parsed.__signature__ = signature(name)  # type: ignore[attr-defined]
    return parsed


def _print_version(wanted: bool) -> None:
    """Print the version and stop, for --version."""
    if wanted:
        emit(f"{PROGRAM} {pt.__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@cache
def command() -> Any:
    """Return the program: an object that runs a list of words."""
    # No rich markup: plain help starts quicker, and what users write is never read as markup.
    plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "no_args_is_help": True}
    app = typer.Typer(
        name="privatest", help=ABOUT, context_settings={"terminal_width": 80, "max_content_width": 80}, **plain
    )
    ledger = typer.Typer(help="Budgets: how much epsilon may be spent on which data set.", **plain)
    app.callback()(_program)
    for place, name, function in COMMANDS:
        (app if place is None else ledger).command(name)(_parsed(name, function))
    app.add_typer(ledger, name="ledger")
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; never raises, never prints a traceback."""
    words = _pairs_apart(sys.argv[1:] if arguments is None else arguments)
    before, sys.unraisablehook = sys.unraisablehook, _ignore_unraisable
    try:
        code = _dispatch(words)
        flush()
        return code
    except ReaderGone:
        return READER_GONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except errors.BudgetExceeded as error:
        complain(error)
        return OVER_BUDGET
    except errors.PrivatestError as error:
        return _complained(error, error)
    except SystemExit as error:  # typer's own
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # typer's mark that nobody reads its help
            return READER_GONE
        return error.code if isinstance(error.code, int) else 0
    except Exception as error:
        return _complained(_unexpected(error), error)
    finally:
        sys.unraisablehook = before


def _pairs_apart(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with "--between -3,3" written as "--between -3 3", as typer reads it.

    >>> _pairs_apart(["estimate", "--between", "-3,3"]), _pairs_apart(["--between=-3,3"])
    (['estimate', '--between', '-3', '3'], ['--between', '-3', '3'])
    """
    flags = {options.flag(option.name) for option in options.OPTIONS if option.kind is options.RANGE}
    separate: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if equals and flag in flags and value.count(",") == 1:
            separate += [flag, *value.split(",")]
        elif separate and separate[-1] in flags and word.count(",") == 1:
            separate += [part.strip() for part in word.strip("() ").split(",")]
        else:
            separate.append(word)
    return separate


def _complained(problem: object, error: Exception) -> int:
    """Print a problem, with the note that something was charged, if the error has one; return the exit code."""
    note = errors.charge_note(error)
    complain(problem if note is None else f"{problem} {note}")
    return BAD_INPUT if note is None else AFTER_CHARGE


def _ignore_unraisable(_error: object) -> None:
    """Drop errors in a library's callbacks, which Python would print with a traceback that may quote a record."""


def _dispatch(words: list[str]) -> int:
    """Run the command that the words name; return its exit code."""
    try:
        code = command().main(args=words, prog_name=PROGRAM, complete_var=COMPLETION, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises about options and arguments
            raise
        shown = str(error.format_message()).strip()
        if type(error).__name__ == "NoArgsIsHelpError":  # no command at all
            emit(shown)
            return 0
        complain(f"{shown}{'' if shown.endswith(('.', '?', ')')) else '.'} See: {_help_of(error)}")
        return BAD_INPUT
    return code if isinstance(code, int) else 0


def _help_of(error: Exception) -> str:
    """Return the command line that prints the help of the command in which the error arose."""
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else PROGRAM} --help"


def _unexpected(error: Exception) -> str:
    """Return a sentence about an unexpected error, without the error's own text, which could quote a record."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        return f"{error.strerror}{where}."
    if isinstance(error, UnicodeError):
        return "A name holds characters that no file or database can have. Write it in plain letters."
    if isinstance(error, MemoryError):
        return "Not enough memory for this. Use fewer records or smaller numbers."
    return f"The computation failed ({type(error).__name__}). Please report the command line as a bug."
