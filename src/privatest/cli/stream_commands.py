"""The commands that follow a stream, ``monitor`` and ``sequential``: lines in, one line of JSON for what they raise."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import typer

from privatest import errors, questions
from privatest.cli.options import Given, asked_of, check_target, need, one_of
from privatest.cli.output import complain, emit_json, working, write_report
from privatest.cli.plan_commands import sizes_of
from privatest.cli.run_commands import STANDARD_INPUT, answered, arriving, check_payment, opened, paid

if TYPE_CHECKING:
    from privatest import line_files

__all__ = ["monitor", "sequential"]

NOUNS = {"monitor": "monitor", "sequential": "sequential test"}
_REMEDY = (
    "Say what it holds: --replaced new (other records, as after a rotation; it is read from its start) or --replaced "
    "same (the same lines, and more behind them; it is read on behind those that were seen)."
)


def monitor(given: Given) -> None:
    """Watch records as they come, one a line, and say when they changed, with privacy.

    An alarm is one line of JSON; watching ends with it, unless --go-on is given. A line that makes no sense is a
    record like any other, with a fixed score. With --state a monitor that was stopped goes on, in a file behind the
    lines it has seen. --json adds a last line with the monitor's promises and what it released.

    A file that was replaced or cut short, watched or not, is refused unless you say what it holds: with --replaced new
    it is read from its start, as after a rotation (of the file before, the rest first); with --replaced same it is read
    on behind the lines that were seen. No line is released twice, and none is passed over unsaid.

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
    the null that is valid whenever one looks. Reading ends with it. --state, --follow, --replaced and a ledger are as
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
    from privatest import line_files  # for the start-up time of the other commands

    name = STANDARD_INPUT if given["file"] is None else given["file"]
    follow, state, replaced = given["follow"], given["state"], given["replaced"]
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput("--follow needs the name of a file. Standard input is followed anyway.")
    check_target((name, asked.get("ledger"), given["problem"]), state=state)
    if replaced is not None and (name == STANDARD_INPUT or replaced not in line_files.REPLACED):
        raise errors.InvalidInput(f"--replaced {replaced} is not of use: write new or same, and the name of a file.")
    batches = arriving(name) if name == STANDARD_INPUT else None
    growing = line_files.LineFile(name) if batches is None else None
    watcher = _opened(command, state, asked, None if batches is not None else name)
    if growing is not None:
        arrived = growing.batches(
            watcher.seen, watcher.place, follow=follow, replaced=replaced, remedy=_REMEDY, say=complain
        )
    else:
        assert batches is not None
        left = _after(batches, watcher.seen if given["from_start"] else 0)
        arrived = (line_files.Lines(lines, None) for lines in left)
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
    import privatest as pt  # here, for a quick start

    read = source if "ledger" in asked else None
    made: Any = getattr(pt, questions.QUESTIONS[command].call)
    if state is not None and os.path.exists(state) and "null" not in asked:
        if rest := [name for name in asked if name not in ("ledger", "ledger_timeout")]:
            listed = ", ".join(map(questions.flag, rest))
            raise errors.InvalidInput(f"The state {state!r} says what is watched; {listed} would need --null as well.")
        ledger = opened(asked) if "ledger" in asked else None
        return made.load(state, ledger=ledger, source=read)
    check_payment(asked)
    need(asked, *questions.QUESTIONS[command].needs.split())
    settings = {name: asked[name] for name in questions.named(command, questions.RULE) if name in asked} | paid(asked)
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


def _alarms(watcher: Any, batches: Iterator[line_files.Lines], go_on: bool) -> Iterator[Any]:
    """Each alarm or verdict, first the one that the state file holds; without ``go_on`` the first one only."""
    import privatest as pt  # here, for a quick start

    alarm = watcher.raised
    while True:
        if alarm is not None:
            yield alarm  # printed before it is reset: an alarm may be printed twice, never lost
            if not go_on:
                return
            watcher.reset()
        for batch in batches:
            before = watcher.seen
            alarm = watcher.update_many(pt.read_lines(batch.lines), place=batch.place)
            if alarm is not None:
                rest = batch.lines[watcher.seen - before :]
                batches = itertools.chain([batch._replace(lines=rest)] if rest else [], batches)
                break
        else:
            return
