"""Progress of long computations, reported to the listener of :func:`progress` if there is one.

A long computation calls :func:`each` on what it iterates over, or :func:`searching` or :func:`part`. The outermost call
reports how far it is; calls within it are reported as its detail. Without a listener a computation of more than five
seconds says once what it does, in a terminal or a notebook. Progress does not depend on data, because designs are
computed before any record is read.
"""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

PATIENCE = 2.0
"""Seconds before a progress bar appears."""
SILENCE = 5.0
"""Seconds after which a computation that nobody listens to says what it does, once."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Headway:
    """How far a computation is.

    Attributes:
        what: what is computed.
        done: number of parts that are done.
        total: number of all parts.
        detail: what is done within the present part.
        partial: the first part of the answer, if the answer can be shown in parts; else None.
    """

    what: str
    done: int
    total: int
    detail: str = ""
    partial: Any = None

    def __str__(self) -> str:
        inner = f" ({self.detail})" if self.detail else ""
        return f"{self.what}: {self.done} of {self.total}{inner}"


Listener = Callable[[Headway], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_outermost: ContextVar[Headway | None] = ContextVar("outermost", default=None)


def each(what: str, items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items one by one, and report before each how many are done."""
    with part(what, len(items)) as report:
        for done, item in enumerate(items):
            report(done)
            yield item
        report(len(items))


@contextmanager
def part(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Begin a computation of ``total`` parts. It yields a function that reports how many are done."""
    listener = _listener.get()
    if listener is None:
        if not _somebody_watches():
            yield _nobody
            return
        with progress(_reminder()), part(what, total) as heard:
            yield heard
        return
    outer = _outermost.get()

    def report(done: int) -> None:
        if outer is None:
            here = Headway(what, done, total)
            _outermost.set(here)
            listener(here)
        else:
            listener(replace(outer, detail=f"{what}: {done} of {total}"))

    token = _outermost.set(outer or Headway(what, 0, total))
    try:
        yield report
    finally:
        _outermost.reset(token)


@contextmanager
def searching(what: str, about: int) -> Iterator[Callable[[], None]]:
    """Begin a search of ``about`` steps. It yields a function that reports that one step is done.

    >>> seen = []
    >>> with progress(seen.append), searching("the smallest", 2) as looked:
    ...     for _ in range(3):
    ...         looked()
    >>> [headway.done for headway in seen]
    [0, 1, 2, 2]
    """
    with part(what, about) as report:
        done = 0

        def step_done() -> None:
            nonlocal done
            done = min(done + 1, about)
            report(done)

        report(0)
        yield step_done


def report_partial(result: Any) -> None:
    """Report the first part of an answer, together with how far the computation is."""
    if (listener := _listener.get()) is not None:
        listener(replace(_outermost.get() or Headway("computing", 0, 0), partial=result))


def _nobody(_done: int) -> None:
    pass


def _somebody_watches() -> bool:
    """Whether this is a notebook, or standard error is a terminal."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _reminder() -> Listener:
    """Return a listener that writes one line, to standard error, if a report comes after more than SILENCE."""
    started, written = time.monotonic(), False

    def remind(headway: Headway) -> None:
        nonlocal written
        if not written and time.monotonic() - started >= SILENCE:
            written = True
            print(f"privatest computes {headway}. `with pt.progress():` shows how far it is.", file=sys.stderr)

    return remind


@contextmanager
def progress(listener: Listener | None = None) -> Iterator[None]:
    """Report how far the computations within the context are.

    Args:
        listener: called with a ``Headway`` (``what``, ``done``, ``total``, ``detail``, ``partial``) for every report.
            An exception that it raises ends the computation. None: a progress bar appears after two seconds, in a
            notebook or, if it is a terminal, on standard error, and disappears at the end; otherwise nothing is shown.

    >>> seen = []
    >>> with progress(seen.append):
    ...     for n in each("squares", [1, 2]):
    ...         pass
    >>> [str(headway) for headway in seen]
    ['squares: 0 of 2', 'squares: 1 of 2', 'squares: 2 of 2']
    """
    if listener is None:
        with _bar() as shown, progress(shown):
            yield
        return
    token, outer = _listener.set(listener), _outermost.set(None)
    try:
        yield
    finally:
        _outermost.reset(outer)
        _listener.reset(token)


@contextmanager
def _bar() -> Iterator[Listener]:
    """Show a progress bar, by rich in a terminal and by IPython in a notebook; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        with _notebook_line() as shown:
            yield shown
        return
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _headway: None
        return
    columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    bar = Progress(*columns, console=console, transient=True)
    # Before the first report the bar moves without an end, so that a computation without reports shows something too.
    task = bar.add_task("computing", total=None)
    begin = threading.Timer(PATIENCE, bar.start)
    begin.daemon = True

    def show(headway: Headway) -> None:
        name = headway.what if not headway.detail else f"{headway.what} ({headway.detail})"
        bar.update(task, description=name, completed=headway.done, total=headway.total)

    begin.start()
    try:
        yield show
    finally:
        begin.cancel()
        begin.join()  # it may be starting the bar at this moment
        bar.stop()


@contextmanager
def _notebook_line() -> Iterator[Listener]:
    """Show a line of HTML below the cell, without widgets, which rich's bar needs; remove it at the end."""
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]  # there in a notebook

    handle: list[Any] = []
    started = time.monotonic()

    def show(headway: Headway) -> None:
        if handle:
            handle[0].update(_in_notebook(headway), raw=True)
        elif time.monotonic() - started >= PATIENCE:
            handle.append(display(_in_notebook(headway), raw=True, display_id=True))

    try:
        yield show
    finally:
        if handle:
            handle[0].update({"text/plain": "", "text/html": ""}, raw=True)


def _in_notebook(headway: Headway) -> dict[str, str]:
    """Return a report as text and as HTML with a bar, which has no end if the total is not known."""
    if headway.total <= 0:
        return {"text/plain": headway.what, "text/html": f"<progress></progress> {html.escape(headway.what)}"}
    bar = f'<progress value="{headway.done}" max="{headway.total}"></progress>'
    return {"text/plain": str(headway), "text/html": f"{bar} {html.escape(str(headway))}"}
