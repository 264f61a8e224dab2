"""What a library says while it reads records for us reaches nobody: what it raises, what it warns of and what it logs.

A database that fails quotes the text it failed at, Arrow the number that does not fit, PySpark logs both. So all code
of others that looks at records runs in here: every question that records are asked (:class:`Asked` wraps them, whatever
the engine), and all that happens when they are opened or read part by part (:func:`asked`, :func:`each_asked`). Errors
of this package, which quote no record, pass; any other becomes a sentence about the source.

Warnings' filters are the process's: while anybody reads, no thread's warnings are heard. Logs of the thread that reads
are dropped, those of others are not. Not held back: what code writes to a terminal itself, and logs on other machines.
"""

from __future__ import annotations

import functools
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import numpy as np

from privatest.errors import InvalidData, PrivatestError

__all__ = ["QUESTIONS", "Asked", "asked", "each_asked", "unheard"]

Answer = TypeVar("Answer")
Complaint = str | Callable[[Exception], str]

# Below the level of every handler, so that none of them gets to see the record of a log.
NO_LEVEL = -1


class _Inside(threading.local):
    """Whether this thread is reading."""

    now = False


_inside = _Inside()


class _Filters:
    """The warnings' filters, put aside by the first thread that reads and put back by the last."""

    def __init__(self) -> None:
        self._lock, self._readers = threading.Lock(), 0
        self._before: Any = None

    def enter(self) -> None:
        with self._lock:
            self._readers += 1
            if self._readers == 1:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.simplefilter("ignore")
                warnings.showwarning = _unshown

    def leave(self) -> None:
        with self._lock:
            self._readers -= 1
            if self._readers == 0:
                self._before.__exit__(None, None, None)


_filters = _Filters()


def _unshown(*_: Any, **__: Any) -> None:
    """Takes a warning that somebody's own filter lets through, and shows it to nobody."""


def _drop_logs() -> None:
    """See to it that logs of a thread that reads are made so that no handler takes them."""
    made = logging.getLogRecordFactory()
    if getattr(made, "drops", None) is _inside:
        return

    def factory(*args: Any, **words: Any) -> logging.LogRecord:
        record = made(*args, **words)
        if _inside.now:
            record.levelno, record.msg, record.args = NO_LEVEL, "", ()
            record.exc_info = record.exc_text = record.stack_info = None
        return record

    factory.drops = _inside  # type: ignore[attr-defined]
    logging.setLogRecordFactory(factory)


@contextmanager
def unheard() -> Iterator[None]:
    """Within it nobody hears what this thread's code warns of or logs. What it raises is :func:`asked`'s business."""
    if _inside.now:
        yield
        return
    _drop_logs()
    _filters.enter()
    _inside.now = True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _inside.now = False
        _filters.leave()


def asked(complaint: Complaint, ask: Callable[[], Answer]) -> Answer:
    """What ``ask`` returns, unheard. Whatever it raises becomes this complaint, or what that makes of the error."""
    try:
        with unheard():
            return ask()
    except PrivatestError as error:
        error.__cause__ = error.__context__ = None  # what a library raised, and may quote a record
        raise
    except Exception as error:
        problem = f"{complaint} ({type(error).__name__})" if isinstance(complaint, str) else complaint(error)
    # Raised out here, so that it does not carry the library's error as its context.
    raise InvalidData(problem)


def each_asked(complaint: Complaint, ask: Callable[[], Iterable[Answer]]) -> Iterator[Answer]:
    """The answers that ``ask`` gives one after the other, each of them as by :func:`asked`."""
    answers = asked(complaint, lambda: iter(ask()))
    nothing: Any = object()
    while (answer := asked(complaint, lambda: next(answers, nothing))) is not nothing:
        yield answer


QUESTIONS = (
    "count",
    "check",
    "total",
    "block_totals",
    "series",
    "check_ends",
    "histogram",
    "index",
    "order_values",
    "groups",
    "is_shared",
    "only",
)
"""What records are asked (:class:`privatest.engines.Records`): all of it is asked unheard."""


class Asked:
    """Records: every question that a class of them answers is asked by :func:`asked`."""

    complaint: ClassVar[str] = "The data could not be read: a library that was to do it failed."

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name in QUESTIONS:
            if name in cls.__dict__:
                setattr(cls, name, _asked_of(cls.__dict__[name]))


def _asked_of(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def question(self: Asked, *args: Any, **words: Any) -> Any:
        if _inside.now:
            return method(self, *args, **words)
        return asked(self.complaint, lambda: method(self, *args, **words))

    question.unheard = True  # type: ignore[attr-defined]
    return question
