"""``plan``, ``compare``, ``curve``, and without data ``estimate`` and ``groups``: what to expect. No data are read.

The commands that run on data (``test``, ``detect``, ``fit`` and so on), and who pays.

``ledger grant``, ``show`` and ``verify`` look after the budgets.

The commands that follow a stream, ``monitor`` and ``sequential``: lines in, one line of JSON for what they raise.

The commands, put together, and from a command line to an exit code.

===== ==============================================================================================
0     done (also with ``--exit-code``: null, or no change)
1     only with ``--exit-code``: alternative, or changed
2     bad input, said in one or two lines on standard error; nothing was charged
3     over budget; nothing was charged
4     failed after the charge (or, without a ledger, after the answer was drawn), with a sentence that says how to get
      the answer; the same request again is not charged again
130   interrupted (Ctrl-C); if something was charged, standard error says so
141   the reader of standard output went away
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
from pathlib import Path
from typing import Annotated, Any

import typer

import privatest as pt
from privatest import errors, followed, numbers, options
from privatest import facts as markup
from privatest.cli.arguments import (
    Given,
    asked_of,
    check_target,
    check_written,
    need,
    one_of,
    one_rule,
    signature,
    write_problem,
)
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


def plan(given: Given) -> None:
    """How many records a test needs, how good that is, and what privacy costs.

    Without --n: the smallest number of records that meets --advantage (2/3), or --alpha and --beta. With --n: the
    error rates on so many records.

    \b
    Example:
      privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" \\
          --epsilon 0.5
    """
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
    """How many records each of the paper's tests needs, beside the best possible.

    \b
    Example:
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --epsilon 1
      privatest compare --null "bernoulli(0.6)" \\
          --alternative "bernoulli(0.4)" --privacy "zcdp(0.5)"
    """
    notion = given["privacy"]
    asked = asked_of("compare", given, needs=None if notion is None else "null alternative")
    check_written(given, save=given["save"])
    found: pt.results.Comparison | pt.results.NotionComparison
    if notion is None:
        with working("comparing tests"):
            found = pt.compare(**asked)
    else:
        if given["epsilon"] is None:
            asked.pop("epsilon", None)  # that of the problem file
        with working("comparing notions of privacy"):
            found = pt.notions.compare(**asked, privacy=notion)
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
    asked = asked_of("curve", given)
    if "n" in asked:
        asked["n"] = sizes_of(asked["n"])
    with working("computing error rates"):
        found = pt.power_curve(**asked)
    _tabled(given, found)


def _tabled(given: Given, found: pt.results.Comparison | pt.results.NotionComparison | pt.results.PowerCurve) -> None:
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


ASKED = (options.RULE, options.WHERE, options.RUN)
"""The roles of what a function takes that designs and runs in one call."""
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
    need(given, "ledger", "dataset", *(() if given["privacy"] is not None else ("epsilon",)))
    dataset, epsilon, privacy = given["dataset"], given["epsilon"], given["privacy"]
    # Before an empty ledger is made for nothing.
    if epsilon is not None and (not epsilon > 0 or epsilon == float("inf")):
        raise errors.InvalidInput(f"epsilon={epsilon!r} must be greater than 0 and finite.")
    if privacy is not None and epsilon is not None:
        raise errors.InvalidInput(f"--epsilon {epsilon:g} and --privacy {privacy} were both given. Give one of them.")
    if privacy is not None:
        pt.notions.parse(privacy)
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
    if value is None or isinstance(value, float):
        return "" if value is None else f"{value:g}"
    return str(pt.notions.parse(value)) if "(" in value else str(value)


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
    """What a question would make of the data: NOT PRIVATE, for the eyes of their holder.

    Counts records that are missing, unreadable or outside both supports, and says which labels are unknown. Describe
    the question as for "test" or "detect"; by --family for "estimate" and "groups"; by --null and --distance for "fit".
    It costs nothing, is charged to nobody and written nowhere: do not hand it on.

    \b
    Example:
      privatest check claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)"
      privatest check claims.csv --column smoker --family "bernoulli(?)" --success Yes
    """
    kind = "estimate" if given["family"] is not None else "fit" if given["distance"] is not None else "check"
    if (kind == "estimate" and given["null"] is not None) or (kind != "check" and given["alternative"] is not None):
        raise errors.InvalidInput(
            "--family describes an estimate, --null and --distance a fit, --null and --alternative a test: give one of "
            "them."
        )
    needs = {"estimate": "data family", "fit": "data null distance", "check": "data null alternative"}[kind]
    asked = asked_of(kind, defaultdict(lambda: None, given), needs)
    words = _of_role(kind, asked, options.WHERE)
    if kind == "check":
        words |= _of_role(kind, asked, options.RULE)
    elif kind == "fit":
        words["null"] = pt.design_fit(asked["null"], distance=asked["distance"], epsilon=1, n=1000, beta=None)
    else:
        about = {name: asked[name] for name in ("between", "success") if name in asked}
        words["null"] = pt.design_estimate(asked["family"], **about, epsilon=1, n=1000, missing="none")
    found = pt.check(_read_as(asked), **words)
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
    saved = given["design"]
    asked = asked_of("test", given, needs=None if saved is None else "data")
    source = _checked(given, asked, saved)
    if saved is not None:
        test = _saved(saved, given)
    else:
        rules = _of_role("test", asked, options.RULE)
        if "n" not in rules and rules.get("neighbours") != "add-remove":  # else the number is not public
            counted = (*options.named("test", options.WHERE), "max_rows_per_unit")
            rules["n"] = pt.data.count_records(source, **{name: asked[name] for name in counted if name in asked})
            if rules["n"] == 0:
                raise errors.InvalidData("The data have no records. Pass at least one.")
        with working("designing the test"):
            test = pt.design(**rules)
            test.check_tells()
    _save(given, asked)
    found = test.run(source, **_of_role("test", asked, options.WHERE, options.RUN), **paid(asked))
    _answer("test", given, asked, found)


def _saved(path: str, given: Given) -> pt.results.PrivateTest:
    """A test from a file; nothing else may say what the test is."""
    also = [options.flag(name) for name in options.named("test", options.RULE) if given[name] is not None]
    if also:
        raise errors.InvalidInput(f"--design says what the test is; leave out {', '.join(also)}.")
    return pt.results.PrivateTest.from_json(read_text(path, "--design"))


def detect(given: Given) -> None:
    """When data in order of time changed from the null to the alternative, with privacy.

    The index counts records from 0 and is that of the first record of the new regime. The answer may be "no change":
    unchanged data are said to have changed with probability 0.05 at most, or --false-alarm. With --assume-change an
    index is always named. With --changes several all changes are looked for: to the alternative, back, and so on.

    \b
    Example:
      privatest detect claims.csv --column value --null "normal(0,1)" \\
          --alternative "normal(0.5,1)" --epsilon 0.5
    """
    asked = one_rule(one_of(asked_of("detect", given), given), given)
    source = _checked(given, asked)
    _save(given, asked)
    found = pt.detect_change(source, **_of_role("detect", asked, *ASKED), **paid(asked))
    _answer("detect", given, asked, found)


def fit(given: Given) -> None:
    """Whether data come from the null or from anything at a distance from it, with privacy.

    \b
    Example:
      privatest fit survey.csv --column answer \\
          --null "categorical(yes=0.5, no=0.5)" --distance 0.1 --epsilon 1
    """
    asked = asked_of("fit", given)
    if given["any_power"] and given["beta"] is not None:
        raise errors.InvalidInput("--any-power and --beta were both given. Give one of them.")
    source = _checked(given, asked)
    _save(given, asked)
    rules = _of_role("fit", asked, *ASKED) | ({"beta": None} if given["any_power"] else {})
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
    asked = asked_of("estimate", given)
    if _is_plan("estimate", given, asked, "at", "width"):
        plan_estimate(given, asked, _of_role("estimate", asked, options.RULE))
        return
    if asked.get("neighbours") == "add-remove" and "n" not in asked:
        raise errors.InvalidInput(
            "n is missing: with --neighbours add-remove the number of records is not public, and an estimate made for "
            "it would tell it. Say how many you expect: --n"
        )
    source = _checked(given, asked)
    _save(given, asked)
    with working("estimating"):
        found = pt.estimate(source, **_of_role("estimate", asked, *ASKED), **paid(asked))
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
    asked = asked_of("groups", given)
    if _is_plan("groups", given, asked, "n", "rate", "lift", "beta"):
        plan_groups(given, asked, _of_role("groups", asked, options.RULE))
        return
    if "treatment" not in asked and "group" not in asked:
        raise errors.InvalidInput(
            "The data of one group only were given. Give those of the other, too, or --group, the column of groups."
        )
    if "treatment" in asked and asked["treatment"] == asked["data"] == STANDARD_INPUT:
        raise errors.InvalidInput("Standard input holds one group only. Name a file for the other.")
    source = _checked(given, asked, asked.get("treatment"))
    other = pt.data.open_once(_read_as(asked, "treatment")) if "treatment" in asked else None
    _save(given, asked)
    with working("comparing the groups"):
        rules = _of_role("groups", asked, *ASKED)
        found = pt.compare_groups(source, other, **rules, **paid(asked))
    _answer("groups", given, asked, found)


def _is_plan(command: str, given: Given, asked: Mapping[str, Any], *planned: str) -> bool:
    """Whether there are no data, so that a plan is asked for; what goes with one of the two only is refused."""
    roles = (options.SOURCE, options.WHERE, options.READING, options.RUN, options.PAYER)
    on_data = options.named(command, *roles)
    if "data" not in asked:
        if also := [options.flag(name) for name in on_data if name in asked]:
            raise errors.InvalidInput(f"The data are missing: give DATA, or for a plan leave out {', '.join(also)}.")
        return True
    if also := [options.flag(name) for name in planned if given[name] is not None]:
        raise errors.InvalidInput(f"{', '.join(also)}: this is for a plan. Leave it out, or leave out the data.")
    return False


def _checked(given: Given, asked: Mapping[str, Any], *reads: str | None) -> Any:
    """The data to read, once all that can be known to fail has been looked at."""
    reads = (asked["data"], asked.get("ledger"), given["problem"], *reads)
    check_target(reads, given["force"], save=given["save"], report=given["report"])
    check_payment(asked)
    return pt.data.open_once(_read_as(asked))  # counted and summed on one reading


def _read_as(asked: Mapping[str, Any], name: str = "data") -> Any:
    """The data that are asked about, to be read as asked."""
    words = _of_role("detect", asked, options.READING)  # which has all of them
    if "missing" in words:
        words["missing"] = options.separate(words["missing"])
    table = any(asked.get(key) is not None for key in ("column", "unit", "order", "group"))
    return pt.data.read_as(address_of(asked[name], table=table), **words)


def address_of(data: str, *, table: bool = False) -> Any:
    """What the package reads: the path or address itself, or standard input for ``-``.

    That is one record a line; where a column is named it is comma-separated, and its first line names the columns.
    """
    if not data.strip():
        raise errors.InvalidInput("The data's name is empty. Give a file, a table's address, or - for standard input.")
    if data != STANDARD_INPUT:
        missing = "://" not in data and not os.path.exists(data) and not glob.glob(data)
        return Path(data) if missing else data  # a path, whatever its name ends with: messages say what is missing
    lines = (line for batch in arriving(data) for line in batch)
    return pt.data.read_lines(lines, table=table)


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
        other = found.changed is not False if command == "detect" else found.decision == "alternative"
        if other:
            raise typer.Exit(1)


def _of_role(command: str, asked: Mapping[str, Any], *roles: str) -> dict[str, Any]:
    """What was asked of some roles: the arguments of a function."""
    return {name: asked[name] for name in options.named(command, *roles) if name in asked}


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
    return (lines for lines, _ in followed.LineFile(name).batches())


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
    rest, first = b"", True
    for piece in pieces:
        whole, rest = followed.whole_lines(rest, piece)
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]


NOUNS = {"monitor": "monitor", "sequential": "sequential test"}
_REMEDY = (
    "If the old file has another name now, read its rest first, by that name. Then, if the lines here are new, add "
    "--new-file; if they are the same and more, pipe them in, with --from-start."
)


def monitor(given: Given) -> None:
    """Watch records as they come, one a line, and say when they changed, with privacy.

    An alarm is one line of JSON; watching ends with it, unless --go-on is given. A line that makes no sense is a
    record like any other, with a fixed score. With --state a monitor that was stopped goes on, in a file behind the
    lines it has seen. --json adds a last line with the monitor's promises and what it released.

    Reading stops with an error where the file was replaced or cut short, while it is read or since the state was
    kept: no line is released twice, and none is left out without a word. With --new-file such a file is read from its
    first line. A log that is rotated is best piped in, as in the example: tail -F goes on with the next file.

    \b
    Example:
      tail -n +1 -F values.txt | privatest monitor --null "normal(0,1)" \\
          --alternative "normal(1,1)" --epsilon 0.5
    """
    alarms = _watch("monitor", given, one_of(asked_of("monitor", given, needs=""), given))
    if given["exit_code"] and alarms:
        raise typer.Exit(1)


def sequential(given: Given) -> None:
    """Test P against Q on records as they come, one a line, and stop as soon as they allow it, with privacy.

    The verdict is one line of JSON: the decision, after how many records, and the e-value, which is evidence against
    the null that is valid whenever one looks. Reading ends with it. --state, --follow, --new-file and a ledger are as
    for monitor. --json adds a last line with the promises (expected numbers of records, exact errors), the walk of the
    log e-value and what was released. With --report a page is written once there is a verdict.

    \b
    Example:
      privatest sequential answers.txt --null "bernoulli(0.3)" \\
          --alternative "bernoulli(0.7)" --epsilon 1
    """
    asked = asked_of("sequential", given, needs="")
    reads = (given["file"] or STANDARD_INPUT, asked.get("ledger"), given["problem"])
    check_target(reads, given["force"], report=given["report"])
    if "schedule" in asked:
        asked["schedule"] = sizes_of(asked["schedule"], "schedule")
    verdicts = _watch("sequential", given, asked)
    if given["exit_code"] and any(verdict.decision == "alternative" for verdict in verdicts):
        raise typer.Exit(1)


def _watch(command: str, given: Given, asked: dict[str, Any]) -> list[Any]:
    """Feed lines to a monitor or a sequential test, and print what it raises; all of that comes back."""
    name = STANDARD_INPUT if given["file"] is None else given["file"]
    follow, state, new_file = given["follow"], given["state"], given["new_file"]
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput("--follow needs the name of a file. Standard input is followed anyway.")
    check_target((name, asked.get("ledger"), given["problem"]), state=state)
    if new_file and name == STANDARD_INPUT:
        raise errors.InvalidInput("--new-file needs the name of a file. Standard input is read as new lines anyway.")
    batches = arriving(name) if name == STANDARD_INPUT else None
    growing = followed.LineFile(name) if batches is None else None
    watcher = _opened(command, state, asked, None if batches is not None else name)
    if growing is not None:
        arrived = growing.batches(watcher.seen, watcher.place, follow=follow, new_file=new_file, remedy=_REMEDY)
    else:
        assert batches is not None
        left = _after(batches, watcher.seen if given["from_start"] else 0)
        arrived = (followed.ReadLines(lines, None) for lines in left)
    found: list[Any] = []
    with answered(asked, _how_to_go_on(command, asked, state)) if "request" in asked else nullcontext():
        try:
            for alarm in _alarms(watcher, arrived, bool(given.get("go_on"))):
                found.append(alarm)
                emit_json(alarm.to_dict(), line=True)
        finally:
            if given["json"]:
                emit_json(watcher.to_dict(), line=True)
        if command == "sequential" and not found:
            complain(f"No verdict yet, after {watcher.seen:,} records.")
        if given.get("report") is not None and found:
            told, names = watcher.values(), ("null", "alternative", "epsilon", "privacy")
            known = {name: told[name] for name in names if name in told}  # asked for, or kept
            read = {} if name == STANDARD_INPUT else {"data": name}
            write_report(given["report"], question={**read, **known, **asked}, result=found[-1], kind=command)
    return found


def _how_to_go_on(command: str, asked: Mapping[str, Any], state: str | None) -> str:
    charged, noun = f"Request {asked.get('request')!r} of data set {asked.get('dataset')!r} is charged", NOUNS[command]
    if state is None:
        return f"{charged}. Without --state its {noun} cannot go on: another request is charged again."
    return f"{charged}, its {noun} kept: the same command goes on from {state!r}, without a new charge."


def _opened(command: str, state: str | None, asked: dict[str, Any], source: str | None) -> Any:
    """The monitor or sequential test in the state file, if there is one, else a new one."""
    read = source if "ledger" in asked else None
    made: Any = getattr(pt, options.QUESTIONS[command].call)
    if state is not None and os.path.exists(state) and "null" not in asked:
        if rest := [name for name in asked if name not in ("ledger", "ledger_timeout")]:
            listed = ", ".join(map(options.flag, rest))
            raise errors.InvalidInput(f"The state {state!r} says what is watched; {listed} would need --null as well.")
        ledger = opened(asked) if "ledger" in asked else None
        return made.load(state, ledger=ledger, source=read)
    check_payment(asked)
    need(asked, *options.QUESTIONS[command].needs.split())
    settings = {name: asked[name] for name in options.named(command, options.RULE) if name in asked} | paid(asked)
    with working(f"designing the {NOUNS[command]}"):
        return made(**settings, state=state, source=read)


def _after(batches: Iterator[list[bytes]], skipped: int) -> Iterator[list[bytes]]:
    """The lines beyond the first ``skipped``, which must be there."""
    left = skipped
    for batch in batches:
        if left < len(batch):
            yield batch[left:]
        left = max(left - len(batch), 0)
    if left:
        raise errors.InvalidInput(
            f"The state has seen {skipped} records, {left} more than standard input has lines. Leave --from-start out "
            "where only new lines come."
        )


def _alarms(watcher: Any, batches: Iterator[followed.ReadLines], go_on: bool) -> Iterator[Any]:
    """Each alarm or verdict, first the one that the state file holds; without ``go_on`` the first one only."""
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

ABOUT = """Private tests: did this data come from P or from Q, when did it change, how large is it, did B beat A?

Say what you expect before you look: --null is P, --alternative is Q, --epsilon is the privacy loss.

\b
Example:
  privatest plan --null "normal(0,1)" --alternative "normal(0.2,1)" --epsilon 0.5
"""


def studio(given: Given) -> None:
    """Open the studio, a page on this machine to plan by looking.

    \b
    Example:
      privatest studio --folder data --ledger ledger.db
    """
    from privatest import studio as page  # for the start-up time of all other commands

    page.serve(
        **{name: value for name, value in given.items() if name != "no_browser"}, open_browser=not given["no_browser"]
    )


def version(given: Given) -> None:
    """The version of the package.

    \b
    Example:
      privatest version
    """
    found = {"privatest": pt.__version__, "python": platform.python_version()}
    if given["json"]:
        emit_json(found)
    else:
        facts("privatest", [(name, text, "") for name, text in found.items()])


COMMANDS: tuple[tuple[str | None, str, Callable[[Given], None]], ...] = (
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
    ("ledger", "grant", grant),
    ("ledger", "show", show),
    ("ledger", "verify", verify),
    (None, "studio", studio),
    (None, "version", version),
)


def _parsed(name: str, function: Callable[[Given], None]) -> Callable[..., None]:
    """The command as typer takes one, its options those of the table.

    When interrupted after a charge it says so, for typer keeps nothing but that it was interrupted.
    """

    def parsed(**given: Any) -> None:
        try:
            function(given)
        except KeyboardInterrupt as error:
            if (note := errors.charge_note(error)) is not None:
                complain(f"Interrupted. {note}")
            raise

    parsed.__doc__ = function.__doc__
    parsed.__signature__ = signature(name)  # type: ignore[attr-defined]
    return parsed


def _told_version(asked: bool) -> None:
    if asked:
        emit(f"{PROGRAM} {pt.__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_told_version, help="Say the version and stop.")
    ] = False,
) -> None:
    pass


@cache
def command() -> Any:
    """The program, as an object that runs a list of words."""
    # No rich markup: plain help starts quicker, and what users write is never read as markup.
    plain: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "no_args_is_help": True}
    app = typer.Typer(
        name="privatest", help=ABOUT, context_settings={"terminal_width": 80, "max_content_width": 80}, **plain
    )
    ledger = typer.Typer(help="Budgets: who may spend how much epsilon on which data set.", **plain)
    app.callback()(_program)
    for place, name, function in COMMANDS:
        (app if place is None else ledger).command(name)(_parsed(name, function))
    app.add_typer(ledger, name="ledger")
    return typer.main.get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; never raises, never prints a traceback."""
    words = _pairs_apart(sys.argv[1:] if arguments is None else arguments)
    told, sys.unraisablehook = sys.unraisablehook, _untold
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
        sys.unraisablehook = told


def _pairs_apart(words: Sequence[str]) -> list[str]:
    """The words of a command line, with "--between -3,3" written as "--between -3 3", which is what typer reads.

    >>> _pairs_apart(["estimate", "--between", "-3,3"]), _pairs_apart(["--between=-3,3"])
    (['estimate', '--between', '-3', '3'], ['--between', '-3', '3'])
    """
    flags = {options.flag(option.name) for option in options.OPTIONS if option.kind is options.RANGE}
    found: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if equals and flag in flags and value.count(",") == 1:
            found += [flag, *value.split(",")]
        elif found and found[-1] in flags and word.count(",") == 1:
            found += [part.strip() for part in word.strip("() ").split(",")]
        else:
            found.append(word)
    return found


def _complained(problem: object, error: Exception) -> int:
    note = errors.charge_note(error)
    complain(problem if note is None else f"{problem} {note}")
    return BAD_INPUT if note is None else AFTER_CHARGE


def _untold(_error: object) -> None:
    """Errors inside a library's callbacks, which Python would print with a traceback that may quote a record."""


def _dispatch(words: list[str]) -> int:
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
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else PROGRAM} --help"


def _unexpected(error: Exception) -> str:
    """A line without the error's own text where that could quote a record."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        return f"{error.strerror}{where}."
    if isinstance(error, UnicodeError):
        return "A name holds characters that no file or database can have. Write it in plain letters."
    if isinstance(error, MemoryError):
        return "Not enough memory for this. Use fewer records or smaller numbers."
    return f"This could not be computed ({type(error).__name__}). Please report the command line as a bug."
