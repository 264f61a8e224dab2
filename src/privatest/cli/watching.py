"""``monitor``: records as they come, one a line, and an alarm as one line of JSON."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest import errors
from privatest.cli import options as o
from privatest.cli.lines import records_of
from privatest.cli.output import emit_json, working
from privatest.cli.planning import need
from privatest.cli.problems import merge
from privatest.cli.streams import STANDARD_INPUT, arriving
from privatest.cli.writing import check_target

if TYPE_CHECKING:
    from privatest import Monitor

__all__ = ["monitor"]

Follow = Annotated[bool, o.option("--follow", "Wait for more lines at the end of the file, like tail -F.")]
State = Annotated[str | None, o.option("--state", "Keep the monitor in this file, and go on from it.", "FILE")]
FromStart = Annotated[
    bool, o.option("--from-start", "Standard input starts anew: skip the lines that the state has seen.")
]


def monitor(
    file: o.Lines = None,
    null: o.Null = None,
    alternative: o.Alternative = None,
    epsilon: o.Epsilon = None,
    beta: o.Miss = None,
    interval: o.Interval = None,
    mean_time_between_false_alarms: o.BetweenAlarms = None,
    follow: Follow = False,
    state: State = None,
    from_start: FromStart = False,
    problem: o.Problem = None,
    exit_code: o.ExitCode = False,
    as_json: o.Json = False,
) -> None:
    """Watch records as they come, one a line, and say when they changed, with privacy.

    Every alarm is one line of JSON. A line that makes no sense is a record like any other, with a fixed score. With
    --state a monitor that was stopped goes on: of a file it skips the lines it has seen. --json adds a last line.

    \b
    Example:
      tail -n +1 -F values.txt | privatest monitor --null "normal(0,1)" \\
          --alternative "normal(1,1)" --epsilon 0.5
    """
    given = {
        "null": null,
        "alternative": alternative,
        "epsilon": epsilon,
        "beta": beta,
        "interval": interval,
        "mean_time_between_false_alarms": mean_time_between_false_alarms,
    }
    settings = merge(problem, given)
    name = STANDARD_INPUT if file is None else file
    if follow and name == STANDARD_INPUT:
        raise errors.InvalidInput("--follow needs the name of a file. Standard input is followed anyway.")
    check_target(state=state)
    batches = arriving(name, follow=follow)
    watcher = _opened(state, settings, given)
    skipped = watcher.seen if name != STANDARD_INPUT or from_start else 0
    try:
        for batch in _after(batches, skipped):
            _watch(watcher, batch, state)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        if as_json:
            emit_json({"seen": watcher.seen, "drift_detected": watcher.drift_detected}, line=True)
    if exit_code and watcher.drift_detected:
        raise typer.Exit(1)


def _opened(state: str | None, settings: dict[str, Any], given: Mapping[str, Any]) -> Monitor:
    """The monitor in the state file, if there is one, else a new one."""
    import privatest as pt

    if state is not None and os.path.exists(state):
        also = [name for name, value in given.items() if value is not None]
        if also:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in also)
            raise errors.InvalidInput(
                f"The state {state!r} says what is watched; leave out {options}, or name another state file."
            )
        return pt.Monitor.load(state)
    need(settings, "null", "alternative", "epsilon")
    null, alternative = settings.pop("null"), settings.pop("alternative")
    with working("designing the monitor"):
        return pt.Monitor(null, alternative, **settings)


def _after(batches: Iterator[list[bytes]], skipped: int) -> Iterator[list[bytes]]:
    """The lines beyond the first ``skipped``, which must be there."""
    left = skipped
    for batch in batches:
        if left < len(batch):
            yield batch[left:]
        left = max(left - len(batch), 0)
    if left:
        raise errors.InvalidInput(
            f"The state has seen {skipped} records, {left} more than the input has lines. Was the file replaced?"
        )


def _watch(watcher: Monitor, lines: list[bytes], state: str | None) -> None:
    """Kept before printed: an alarm that was seen is never forgotten, nor drawn again with other noise."""
    alarm = watcher.update_many(records_of(lines))
    if state is not None:
        watcher.save(state)
    if alarm is not None:
        emit_json(alarm.to_dict(), line=True)
