"""``monitor``: records as they come, one a line, and an alarm as a line of JSON. (Files that grow: ``line_files``.)"""

from __future__ import annotations

import codecs
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import typer

from privatest import errors, line_files, questions
from privatest.cli.budgets import answered, check_payment, opened, paid
from privatest.cli.options import Given, asked_of, check_target, need, one_of
from privatest.cli.output import complain, emit_json, working

if TYPE_CHECKING:
    from privatest import Monitor

__all__ = ["STANDARD_INPUT", "arriving", "monitor"]

STANDARD_INPUT = "-"
AT_ONCE = 1 << 16
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
    asked = one_of(asked_of("monitor", given, needs=""), given)
    name = STANDARD_INPUT if given["file"] is None else given["file"]
    follow, state, replaced = given["follow"], given["state"], given["replaced"]
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput("--follow needs the name of a file. Standard input is followed anyway.")
    check_target((name, asked.get("ledger"), given["problem"]), state=state)
    if replaced is not None and (name == STANDARD_INPUT or replaced not in line_files.REPLACED):
        raise errors.InvalidInput(f"--replaced {replaced} is not of use: write new or same, and the name of a file.")
    batches = arriving(name) if name == STANDARD_INPUT else None
    growing = line_files.LineFile(name) if batches is None else None
    watcher = _opened(state, asked, None if batches is not None else name)
    if growing is not None:
        arrived = growing.batches(
            watcher.seen, watcher.place, follow=follow, replaced=replaced, remedy=_REMEDY, say=complain
        )
    else:
        assert batches is not None
        left = _after(batches, watcher.seen if given["from_start"] else 0)
        arrived = (line_files.Lines(lines, None) for lines in left)
    alarms = 0
    with answered(asked, _how_to_go_on(asked, state)) if "request" in asked else nullcontext():
        try:
            for alarm in _alarms(watcher, arrived, given["go_on"]):
                alarms += 1
                emit_json(alarm, line=True)
        finally:
            if given["json"]:
                emit_json(watcher.to_dict(), line=True)
    if given["exit_code"] and alarms:
        raise typer.Exit(1)


def _how_to_go_on(asked: Mapping[str, Any], state: str | None) -> str:
    charged = f"Request {asked.get('request')!r} of data set {asked.get('dataset')!r} is charged"
    if state is None:
        return f"{charged}. Without --state its monitor cannot go on: another request is charged again."
    return f"{charged}, its monitor kept: the same command goes on from {state!r}, without a new charge."


def _opened(state: str | None, asked: dict[str, Any], source: str | None) -> Monitor:
    """The monitor in the state file, if there is one, else a new one."""
    import privatest as pt

    read = source if "ledger" in asked else None
    if state is not None and os.path.exists(state) and "null" not in asked:
        if rest := [name for name in asked if name not in ("ledger", "ledger_timeout")]:
            listed = ", ".join(map(questions.flag, rest))
            raise errors.InvalidInput(f"The state {state!r} says what is watched; {listed} would need --null as well.")
        ledger = opened(asked) if "ledger" in asked else None
        return pt.Monitor.load(state, ledger=ledger, source=read)
    check_payment(asked)
    need(asked, *questions.QUESTIONS["monitor"].needs.split())
    settings = {name: asked[name] for name in questions.named("monitor", questions.RULE) if name in asked} | paid(asked)
    with working("designing the monitor"):
        return pt.Monitor(**settings, state=state, source=read)


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


def _alarms(watcher: Monitor, batches: Iterator[line_files.Lines], go_on: bool) -> Iterator[Mapping[str, Any]]:
    """Each alarm, first the one that the state file holds; without ``go_on`` the first one only."""
    import privatest as pt

    alarm = watcher.alarm
    while True:
        if alarm is not None:
            yield alarm.to_dict()  # printed before it is reset: an alarm may be printed twice, never lost
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


def arriving(name: str) -> Iterator[list[bytes]]:
    """Batches of complete lines, each as soon as it is there. The last line may lack its end.

    The name is checked at once, before the first line is asked for.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.closed:
            raise errors.InvalidInput("Standard input is closed. Give the name of a file.")
        return _lines(_typed())
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
    rest, first = b"", True
    for piece in pieces:
        whole, rest = line_files.whole_lines(rest, piece)
        if whole:
            whole[0], first = whole[0].removeprefix(codecs.BOM_UTF8) if first else whole[0], False
            yield whole
    if rest:
        yield [rest.removeprefix(codecs.BOM_UTF8) if first else rest]
