"""``monitor``: records as they come, one a line, and an alarm as one line of JSON."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest import errors, line_files
from privatest.cli import options as o
from privatest.cli.output import complain, emit_json, working
from privatest.cli.planning import need
from privatest.cli.problems import merge
from privatest.cli.streams import STANDARD_INPUT, arriving
from privatest.cli.together import PAID, TIMEOUT, answered, check_payment, one_of, opened, paid
from privatest.cli.writing import check_target

if TYPE_CHECKING:
    from privatest import Monitor

__all__ = ["monitor"]

_REMEDY = (
    "Say what it holds: --replaced new (other records, as after a rotation; it is read from its start) or --replaced "
    "same (the same lines, and more behind them; it is read on behind those that were seen)."
)

Rule = Annotated[str | None, o.option("--method", "cusum (the default) or paper.", "NAME")]
Follow = Annotated[bool, o.option("--follow", "Wait for more lines at the end of the file, like tail -F.")]
State = Annotated[str | None, o.option("--state", "Keep the monitor in this file, and go on from it.", "FILE")]
FromStart = Annotated[bool, o.option("--from-start", "Standard input starts anew: skip the lines that were seen.")]
Replaced = Annotated[
    str | None,
    o.option("--replaced", "A replaced or shortened file holds new records, or the same lines again.", "new|same"),
]
GoOn = Annotated[bool, o.option("--go-on", "Watch on after an alarm, for the next one.")]


def monitor(
    file: o.Lines = None,
    null: o.Null = None,
    alternative: o.Alternative = None,
    epsilon: o.Epsilon = None,
    distance: o.Distance = None,
    beta: o.Miss = None,
    method: Rule = None,
    interval: o.Interval = None,
    mean_time_between_false_alarms: o.BetweenAlarms = None,
    follow: Follow = False,
    state: State = None,
    from_start: FromStart = False,
    replaced: Replaced = None,
    go_on: GoOn = False,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    request: o.Request = None,
    ledger_timeout: o.LedgerTimeout = None,
    problem: o.Problem = None,
    exit_code: o.ExitCode = False,
    as_json: o.Json = False,
) -> None:
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
    given = {
        "null": null,
        "alternative": alternative,
        "epsilon": epsilon,
        "distance": distance,
        "beta": beta,
        "method": method,
        "interval": interval,
        "mean_time_between_false_alarms": mean_time_between_false_alarms,
        "ledger": ledger,
        "dataset": dataset,
        "request": request,
        TIMEOUT: ledger_timeout,
    }
    asked = one_of(merge(problem, given), given)
    name = STANDARD_INPUT if file is None else file
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput("--follow needs the name of a file. Standard input is followed anyway.")
    check_target((name, asked.get("ledger"), problem), state=state)
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
        left = _after(batches, watcher.seen if from_start else 0)
        arrived = (line_files.Lines(lines, None) for lines in left)
    alarms = 0
    with answered(asked, _how_to_go_on(asked, state)) if "request" in asked else nullcontext():
        try:
            for alarm in _alarms(watcher, arrived, go_on):
                alarms += 1
                emit_json(alarm, line=True)
        finally:
            if as_json:
                emit_json(watcher.to_dict(), line=True)
    if exit_code and alarms:
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
        if rest := [name for name in asked if name not in ("ledger", TIMEOUT)]:
            listed = ", ".join(f"--{name.replace('_', '-')}" for name in rest)
            raise errors.InvalidInput(f"The state {state!r} says what is watched; {listed} would need --null as well.")
        ledger = opened(asked) if "ledger" in asked else None
        return pt.Monitor.load(state, ledger=ledger, source=read)
    check_payment(asked)
    need(asked, "null", "epsilon")
    settings = {key: value for key, value in asked.items() if key not in (*PAID, TIMEOUT)} | paid(asked)
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
