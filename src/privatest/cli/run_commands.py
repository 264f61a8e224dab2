"""The commands that run on data (``test``, ``detect``, ``changes``, ``fit`` and so on), and who pays.

``ledger grant``, ``show`` and ``verify`` look after the budgets.
"""

from __future__ import annotations

import codecs
import glob
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privatest import errors, numbers, questions
from privatest.cli.options import Given, asked_of, check_target, need, one_of, one_rule, write_problem
from privatest.cli.output import (
    ReaderGone,
    emit,
    emit_json,
    facts,
    read_text,
    say,
    show_table,
    working,
    write_report,
)
from privatest.cli.plan_commands import plan_estimate, plan_groups

if TYPE_CHECKING:
    from privatest import PrivateTest

__all__ = [
    "STANDARD_INPUT",
    "answered",
    "arriving",
    "budget",
    "changes",
    "check",
    "check_payment",
    "decide",
    "detect",
    "estimate",
    "fit",
    "grant",
    "groups",
    "opened",
    "paid",
    "show",
    "verify",
]

PAID = ("ledger", "dataset", "request")
TIMEOUT = "ledger_timeout"
UNSEEN = (
    "Every row matches its hash, its neighbours and the sums. Alone this cannot see that rows were removed, or an "
    "old copy put back, and the rest made to fit: check that with --since and a fingerprint kept elsewhere, as every "
    "result and report of this ledger prints one."
)
SEEN = "Every row matches its hash, its neighbours and the sums, and those up to the fingerprint are the same as then."


def grant(given: Given) -> None:
    """Set the total budget of a data set; starts the ledger if there is none.

    With --covers the budget is for these files or tables only: requests that read others are refused, and so are
    requests of other data sets that read these. "data in memory" stands for standard input and data frames.

    Losses add up only if they are about the same neighbours. The budget hides one record that is replaced by another,
    unless --neighbours says add-remove; with --unit it hides all rows of a person. Requests for add-remove count twice
    in a budget for replace; others of another kind are refused.

    \b
    Example:
      privatest ledger grant --ledger ledger.db --dataset claims --epsilon 1 \\
          --covers claims.csv
      privatest ledger grant --ledger ledger.db --dataset claims \\
          --privacy "approx(1, 1e-6)"
    """
    import privatest as pt  # here, for a quick start

    need(given, "ledger", "dataset", *(() if given["privacy"] is not None else ("epsilon",)))
    dataset, epsilon, privacy = given["dataset"], given["epsilon"], given["privacy"]
    # Before an empty ledger is made for nothing.
    if epsilon is not None and (not epsilon > 0 or epsilon == float("inf")):
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    if privacy is not None and epsilon is not None:
        raise errors.InvalidInput(f"--epsilon {epsilon:g} and --privacy {privacy} were both given. Give one of them.")
    if privacy is not None:
        pt.as_notion(privacy)
    if given["neighbours"] is not None:
        numbers.choice(("replace", "add-remove"), neighbours=given["neighbours"])
    with opened(given, create=True) as book:
        whom = {name: given[name] for name in ("neighbours", "unit")}
        book.grant(dataset, epsilon=epsilon, privacy=privacy, covers=given["covers"] or None, **whom)
        line, named = _line(book, dataset), book.covers(dataset)
    if given["json"]:
        emit_json({**line, "covers": named})
        return
    texts = ("dataset", "neighbours", "unit")
    lines = [(name, (value or "") if name in texts else _amount(value), "") for name, value in line.items()]
    facts("Budget", [*lines, *(("covers", one, "") for one in named or ["any source"])])


def show(given: Given) -> None:
    """What is granted, spent and left, and every request so far; of a stream, how far it was released.

    \b
    Example:
      privatest ledger show --ledger ledger.db
    """
    need(given, "ledger")
    with opened(given) as book:
        dataset = given["dataset"]
        names = book.datasets() if dataset is None else [dataset]
        lines = [_line(book, name) for name in names]
        history, fingerprint = book.history(dataset), book.fingerprint()
    if given["json"]:
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
        say("Added up: what the same requests would come to if their losses were only added up, not composed.")
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


def verify(given: Given) -> None:
    """Check every row, hash and sum of a ledger; exits with 2 if anything was edited.

    Alone it sees edits by those who do not recompute the hashes. With --since it sees, too, that rows were removed or
    the whole ledger written anew or put back, up to the fingerprint, if that was kept where they cannot change it.

    \b
    Example:
      privatest ledger verify --ledger ledger.db
    """
    need(given, "ledger")
    with opened(given) as book:
        rows = book.verify(given["since"])
        fingerprint = book.fingerprint()
    if given["json"]:
        emit_json({"rows": rows, "intact": True, "fingerprint": fingerprint})
        return
    facts("The ledger is intact", [("rows", f"{rows:,}", "")])
    say(UNSEEN if given["since"] is None else SEEN)
    emit(f"Fingerprint of the ledger, to keep elsewhere:\n{fingerprint}")


def _line(book: Any, dataset: str) -> dict[str, Any]:
    granted, spent, left = book.granted(dataset), book.spent(dataset), book.left(dataset)
    whom = book.protects(dataset)
    line = {"dataset": dataset, "granted": _plain(granted), "spent": _plain(spent), "left": _plain(left)}
    line |= {"neighbours": whom.neighbours, "unit": whom.unit}
    if isinstance(granted, Fraction):
        return line
    added = book.added_up(dataset)
    return {**line, "added up": _plain(added), "saved": _spared(spent, added)}


def _spared(spent: Any, added: Any) -> str | None:
    """How much less of the first number composition costs than adding up; None where nothing can be said."""
    if isinstance(spent, Fraction) or added is None or isinstance(added, Fraction):
        return None
    place = 0 if spent.name == "approx" else -1
    return f"{max(0.0, 1 - float(spent.exact[place] / added.exact[place])):.0%}"


def _plain(amount: Any) -> float | str | None:
    """An amount of a ledger in JSON: an epsilon as a number, every other notion as its text."""
    return None if amount is None else float(amount) if isinstance(amount, Fraction) else str(amount.text)


def _amount(value: Any) -> str:
    """The same in a table: with few digits."""
    import privatest as pt  # here, for a quick start

    if value is None or isinstance(value, float):
        return "" if value is None else f"{value:g}"
    return str(pt.as_notion(value)) if "(" in value else str(value)


def check_payment(asked: Mapping[str, Any]) -> None:
    """All three or none."""
    named = [name for name in PAID if name in asked]
    if TIMEOUT in asked and "ledger" not in asked:
        raise errors.InvalidInput("--ledger-timeout without --ledger: there is nothing to wait for.")
    if named and len(named) < len(PAID):
        missing = ", ".join(f"--{name}" for name in PAID if name not in named)
        raise errors.InvalidInput(f"--{', --'.join(named)} without {missing}: the three go together.")


def paid(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger, opened, and who pays for what; nothing where nobody pays."""
    if "ledger" not in asked:
        return {}
    return {"ledger": opened(asked), "dataset": asked["dataset"], "request": asked["request"]}


def opened(asked: Mapping[str, Any], *, create: bool = False) -> Any:
    """The ledger that is asked for, waiting for others as long as asked."""
    import privatest as pt  # here, for a quick start

    words = {"timeout": asked[TIMEOUT]} if asked.get(TIMEOUT) is not None else {}
    return pt.Ledger(asked["ledger"], create=create, **words)


@contextmanager
def answered(asked: Mapping[str, Any], again: str | None = None) -> Iterator[None]:
    """What is done after the charge: if it fails, the complaint says how to go on (``again``, if not by itself)."""
    try:
        yield
    except ReaderGone:
        raise
    except BaseException as error:
        if not hasattr(error, "exit_code"):  # typer's own way out
            note = again or "The answer was drawn and no ledger keeps it: asking again spends epsilon again."
            if again is None and "ledger" in asked:
                kept = f"Request {asked['request']!r} of data set {asked['dataset']!r} is charged, its answer recorded"
                note = f"{kept}: the same command gives it again, without a new charge."
            errors.note_charge(error, note)
        raise


def budget(asked: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What is left after a run, as a line of its table."""
    if "ledger" not in asked:
        spent = "epsilon" if asked.get("privacy") is None else "budget"
        return [("budget", "no ledger", f"note somewhere that this {spent} is spent")]
    with opened(asked) as ledger:
        left, granted = ledger.left(asked["dataset"]), ledger.granted(asked["dataset"])
    of = f"of {_amount(_plain(granted))} for data set {asked['dataset']}"
    return [("budget", f"{_amount(_plain(left))} left", of)]


def check(given: Given) -> None:
    """What a test would make of the data: NOT PRIVATE, for the eyes of their holder.

    Counts records that are missing, unreadable or outside both supports, and says which labels are unknown. It costs
    nothing, is charged to nobody and written nowhere: do not hand it on.

    \b
    Example:
      privatest check claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)"
    """
    import privatest as pt  # here, for a quick start

    asked = asked_of("check", given)
    found = pt.check(_read_as(asked), **_of_role("check", asked, questions.RULE, questions.WHERE))
    if given["json"]:
        emit_json(found.to_dict())
    else:
        facts(found.title, found.lines())


def decide(given: Given) -> None:
    """Whether data come from the null or from the alternative, with privacy.

    Every run spends epsilon. With --ledger, --dataset and --request it is charged first, and the same request again
    returns the same answer for nothing.

    \b
    Example:
      privatest test claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt  # here, for a quick start

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
            if rules["n"] == 0:
                raise errors.InvalidData("The data have no records. Pass at least one.")
        with working("designing the test"):
            test = pt.design(**rules)
    _save(given, asked)
    found = test.run(source, **_of_role("test", asked, questions.WHERE, questions.RUN), **paid(asked))
    _answer("test", given, asked, found)


def _saved(path: str, given: Given) -> PrivateTest:
    """A test from a file; nothing else may say what the test is."""
    import privatest as pt  # here, for a quick start

    also = [questions.flag(name) for name in questions.named("test", questions.RULE) if given[name] is not None]
    if also:
        raise errors.InvalidInput(f"--design says what the test is; leave out {', '.join(also)}.")
    return pt.PrivateTest.from_json(read_text(path, "--design"))


def detect(given: Given) -> None:
    """When data in order of time changed from the null to the alternative, with privacy.

    The index counts records from 0 and is that of the first record of the new regime. The answer may be "no change":
    unchanged data are said to have changed with probability 0.05 at most, or --false-alarm. With --assume-change an
    index is always named.

    \b
    Example:
      privatest detect claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt  # here, for a quick start

    asked = one_rule(one_of(asked_of("detect", given), given), given)
    source = _checked(given, asked)
    _save(given, asked)
    found = pt.detect_change(source, **_of_role("detect", asked, questions.RULE, questions.WHERE), **paid(asked))
    _answer("detect", given, asked, found)


def changes(given: Given) -> None:
    """When data in order of time changed from the null to the alternative, back, and so on, with privacy.

    As many changes are reported as there seem to be, for epsilon in all; none is an answer, too: of data of the null
    alone any change is reported with probability 0.05 at most, or --false-alarm. "detect" looks for one change.

    \b
    Example:
      privatest changes claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    import privatest as pt  # here, for a quick start

    asked = asked_of("changes", given)
    source = _checked(given, asked)
    _save(given, asked)
    found = pt.detect_changes(source, **_of_role("changes", asked, questions.RULE, questions.WHERE), **paid(asked))
    _answer("changes", given, asked, found)


def fit(given: Given) -> None:
    """Whether data come from the null or from anything at a distance from it, with privacy.

    \b
    Example:
      privatest fit survey.csv --column answer \\
          --null "categorical(yes=0.5, no=0.5)" --distance 0.1 --epsilon 1
    """
    import privatest as pt  # here, for a quick start

    asked = asked_of("fit", given)
    if given["any_power"] and given["beta"] is not None:
        raise errors.InvalidInput("--any-power and --beta were both given. Give one of them.")
    source = _checked(given, asked)
    _save(given, asked)
    rules = _of_role("fit", asked, questions.RULE, questions.WHERE) | ({"beta": None} if given["any_power"] else {})
    found = pt.goodness_of_fit(source, **rules, **paid(asked))
    _answer("fit", given, asked, found)


def estimate(given: Given) -> None:
    """How large a rate, a mean or another parameter is, with privacy: an estimate and an exact interval.

    The question mark in --family is what is asked for. Without DATA nothing is read or spent: it is a plan for --n
    records, or for an interval of --width, where the true value is --at.

    \b
    Example:
      privatest estimate claims.csv --column value --family "normal(mean=?, sd=1)" \\
          --between -3 3 --epsilon 1
      privatest estimate --family "bernoulli(?)" --epsilon 1 --n 1000 --at 0.3
    """
    import privatest as pt  # here, for a quick start

    asked = asked_of("estimate", given)
    if _is_plan("estimate", given, asked, "at", "width"):
        plan_estimate(given, asked, _of_role("estimate", asked, questions.RULE))
        return
    if asked.get("neighbours") == "add-remove" and "n" not in asked:
        raise errors.InvalidInput(
            "n is missing: with --neighbours add-remove the number of records is not public, and an estimate made for "
            "it would tell it. Say how many you expect: --n"
        )
    source = _checked(given, asked)
    _save(given, asked)
    with working("estimating"):
        found = pt.estimate(source, **_of_role("estimate", asked, questions.RULE, questions.WHERE), **paid(asked))
    _answer("estimate", given, asked, found)


def groups(given: Given) -> None:
    """Whether two groups have the same rate (an A/B test), with privacy: decision, p-value, difference and interval.

    Give the data of both groups, or one table and --group, the column that names the group of a row. Records that are
    1 count as successes, or those that --above or --success says. Without DATA nothing is read or spent: it is a plan,
    of how likely --n records show a --lift of --rate, or of how many records do.

    \b
    Example:
      privatest groups visits.csv --group arm --column bought --epsilon 1
      privatest groups --rate 0.1 --lift 0.1 --epsilon 1 --n 200,200
    """
    import privatest as pt  # here, for a quick start

    asked = asked_of("groups", given)
    if _is_plan("groups", given, asked, "n", "rate", "lift", "beta"):
        plan_groups(given, asked, _of_role("groups", asked, questions.RULE))
        return
    if "treatment" not in asked and "group" not in asked:
        raise errors.InvalidInput(
            "The data of one group only were given. Give those of the other, too, or --group, the column of groups."
        )
    if "treatment" in asked and asked["treatment"] == asked["data"] == STANDARD_INPUT:
        raise errors.InvalidInput("Standard input holds one group only. Name a file for the other.")
    source = _checked(given, asked, asked.get("treatment"))
    other = pt.open_once(_read_as(asked, "treatment")) if "treatment" in asked else None
    _save(given, asked)
    with working("comparing the groups"):
        rules = _of_role("groups", asked, questions.RULE, questions.WHERE)
        found = pt.compare_groups(source, other, **rules, **paid(asked))
    _answer("groups", given, asked, found)


def _is_plan(command: str, given: Given, asked: Mapping[str, Any], *planned: str) -> bool:
    """Whether there are no data, so that a plan is asked for; what goes with one of the two only is refused."""
    on_data = questions.named(command, questions.SOURCE, questions.WHERE, questions.READING, questions.PAYER)
    if "data" not in asked:
        if also := [questions.flag(name) for name in on_data if name in asked]:
            raise errors.InvalidInput(f"The data are missing: give DATA, or for a plan leave out {', '.join(also)}.")
        return True
    if also := [questions.flag(name) for name in planned if given[name] is not None]:
        raise errors.InvalidInput(f"{', '.join(also)}: this is for a plan. Leave it out, or leave out the data.")
    return False


def _checked(given: Given, asked: Mapping[str, Any], *reads: str | None) -> Any:
    """The data to read, once all that can be known to fail has been looked at."""
    reads = (asked["data"], asked.get("ledger"), given["problem"], *reads)
    check_target(reads, given["force"], save=given["save"], report=given["report"])
    check_payment(asked)
    import privatest as pt  # here, for a quick start

    return pt.open_once(_read_as(asked))  # counted and summed on one reading


def _read_as(asked: Mapping[str, Any], name: str = "data") -> Any:
    """The data that are asked about, to be read as asked."""
    import privatest as pt  # here, for a quick start

    words = _of_role("check", asked, questions.READING)
    if "missing" in words:
        words["missing"] = questions.separate(words["missing"])
    return pt.read_as(source_of(asked[name]), **words)


def source_of(data: str) -> Any:
    """What the package reads: the path or address itself, or the lines of standard input for ``-``."""
    if not data.strip():
        raise errors.InvalidInput("The data's name is empty. Give a file, a table's address, or - for standard input.")
    if data != STANDARD_INPUT:
        missing = "://" not in data and not os.path.exists(data) and not glob.glob(data)
        return Path(data) if missing else data  # a path, whatever its name ends with: messages say what is missing
    import privatest as pt  # here, for a quick start

    return pt.read_lines(line for batch in arriving(data) for line in batch)


def _save(given: Given, asked: Mapping[str, Any]) -> None:
    if given["save"] is not None:
        write_problem(given["save"], asked)


def _answer(command: str, given: Given, asked: Mapping[str, Any], found: Any) -> None:
    """Print what was found, write its report, and exit as asked; a failure says how to get the answer again."""
    with answered(asked):
        if given["json"]:
            emit_json(found.to_dict())
        else:
            facts(found.title, [*found.lines(), *budget(asked)])
        if given["report"] is not None:
            about = {name: given[name] for name in ("purpose", "author")}
            with opened(asked) if "ledger" in asked else nullcontext() as book:
                write_report(
                    given["report"],
                    question=asked,
                    design=found.design,
                    result=found,
                    kind=command,
                    ledger=book,
                    **about,
                )
    if given.get("exit_code"):
        other = found.changed is not False if command in ("detect", "changes") else found.decision == "alternative"
        if other:
            raise typer.Exit(1)


def _of_role(command: str, asked: Mapping[str, Any], *roles: str) -> dict[str, Any]:
    """What was asked of some roles: the arguments of a function."""
    return {name: asked[name] for name in questions.named(command, *roles) if name in asked}


STANDARD_INPUT = "-"
AT_ONCE = 1 << 16


def arriving(name: str) -> Iterator[list[bytes]]:
    """Batches of complete lines, each as soon as it is there. The last line may lack its end.

    The name is checked at once, before the first line is asked for.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise errors.InvalidInput("Standard input is closed. Give the name of a file.")
        return _lines(_typed())
    from privatest import line_files  # for the start-up time of the other commands

    return (lines for lines, _ in line_files.LineFile(name).batches())


def _pieces(file: int) -> Iterator[bytes]:
    while piece := os.read(file, AT_ONCE):
        yield piece


def _typed() -> Iterator[bytes]:
    """Standard input, each piece as soon as it is there; also where it is no file of the system's."""
    try:
        number = sys.stdin.fileno()
    except OSError:
        yield sys.stdin.buffer.read()
    else:
        yield from _pieces(number)


def _lines(pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
    from privatest import line_files  # for the start-up time of the other commands

    rest, first = b"", True
    for piece in pieces:
        whole, rest = line_files.whole_lines(rest, piece)
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]
