"""Runs on data. All are charged to a ledger before anything is released, once per request name.

Requests name files inside one folder, or uploads: a path is resolved with its symbolic links and must lie inside the
resolved folder. ``Folder``, ``Uploads``, ``Budgets`` and ``address_of`` are used by the server; the jobs run in worker
processes, one for each run.
"""

from __future__ import annotations

import base64
import os
import pickle
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path, PureWindowsPath
from typing import Any, BinaryIO

import numpy as np

import privatest as pt
from privatest import errors, options
from privatest.studio.planning_requests import arguments, law_of

Json = dict[str, Any]
STAYS = (
    "If it was charged before it was stopped, repeating the request under the same name completes it free of charge."
)

MOST_LISTED = 500
MOST_UPLOADS = 8
MOST_CELLS = 256
"""Cells of a table; with more, its answers take minutes."""
DEMO = "demo"
"""The data set of the demonstration; the names of its files begin with it."""
KINDS = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow")


class Folder:
    """The folder that was given at start, if any."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self._root: Path | None = None
        if where is not None:
            root = Path(where).expanduser()
            if not root.is_dir():
                raise errors.InvalidInput(
                    f"folder={str(where)!r} is not a folder. Name an existing one, or leave it out."
                )
            self._root = root.resolve()
        self.demo_files: dict[str, Path] = {}
        """Files of the demonstration, by the names that requests use."""

    @property
    def root(self) -> str | None:
        """The resolved folder, or None if there is none."""
        return None if self._root is None else str(self._root)

    def find(self, name: str) -> Path:
        """Return the file of this name inside the folder. The refusal of another name does not reveal what exists."""
        if name in self.demo_files:
            return self.demo_files[name]
        if self._root is None:
            raise errors.InvalidInput(
                "The studio was started without a folder. Upload the file, or start the studio with a folder."
            )
        plain = not ("\0" in name or "\\" in name or Path(name).is_absolute() or PureWindowsPath(name).drive)
        path = self._inside(self._root / name) if plain else None
        if path is None:
            raise errors.InvalidInput("path must name a file inside the studio's folder, relative to that folder.")
        return path

    def _inside(self, path: Path) -> Path | None:
        """Return the file that a path leads to after links; None if it lies outside the folder or is not a file."""
        assert self._root is not None
        try:
            resolved = path.resolve(strict=True)
            return resolved if resolved.is_relative_to(self._root) and resolved.is_file() else None
        except (OSError, ValueError, RuntimeError):  # no such file, no such name, links in a circle
            return None

    def listed(self) -> list[str]:
        """Return at most 500 data files in the folder and its subfolders, without hidden ones and links to outside."""
        if self._root is None:
            return []
        names: list[str] = []
        for base, folders, files in os.walk(self._root):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for each in sorted(files):
                path = Path(base, each)
                name = path.relative_to(self._root).as_posix()
                if (
                    not each.startswith(".")
                    and path.suffix.lower() in KINDS
                    and self._inside(path)
                    and name.isprintable()
                ):
                    names.append(name)
                if len(names) >= MOST_LISTED:
                    return names
        return names


class Uploads:
    """The last eight uploaded files, in a private folder that is removed when the studio ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._paths: OrderedDict[str, Path] = OrderedDict()
        self._count = 0

    def new(self, name: str) -> tuple[str, BinaryIO]:
        """Return the name of a new upload and a file to write it to. Only the ending of ``name`` is used."""
        kind = Path(name).suffix.lower() if "\0" not in name else ""
        if kind not in KINDS:
            raise errors.InvalidInput(f"name must end in one of {', '.join(KINDS)}, which says how to read the file.")
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="privatest-studio-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._count += 1
            word = f"upload-{self._count}"
            return word, open(self._folder / (word + kind), "xb")  # closed by whoever writes

    def keep(self, word: str, path: str) -> None:
        """Keep a complete upload; remove the oldest if there are too many."""
        with self._lock:
            self._paths[word] = Path(path)
            while len(self._paths) > MOST_UPLOADS:
                self._paths.popitem(last=False)[1].unlink(missing_ok=True)

    def find(self, word: str) -> Path:
        """Return the file of a complete upload."""
        with self._lock:
            path = self._paths.get(word)
        if path is None:
            raise errors.InvalidInput("upload must name one of the last eight uploads. Upload the file again.")
        return path

    def close(self) -> None:
        """Remove all uploads."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._paths.clear()


class Budgets:
    """The ledger that was given at start, if any."""

    def __init__(self, ledger: Any) -> None:
        self._demo: Callable[[], Any] | None = None
        is_path = isinstance(ledger, str | os.PathLike)
        try:
            self._ledger = pt.Ledger(ledger, create=False) if is_path else ledger
        except errors.LedgerUnavailable as error:
            raise type(error)(
                f"{error} The studio does not create a ledger. Grant a budget first with privatest ledger grant, or "
                "name an existing ledger."
            ) from None
        try:
            self._packed = None if ledger is None else base64.b64encode(pickle.dumps(self._ledger)).decode()
        except (TypeError, AttributeError, pickle.PicklingError):
            raise errors.InvalidInput(
                f"ledger must be a privatest.Ledger or its path, not a {type(ledger).__name__}."
            ) from None

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger, so that runs on data are possible."""
        return self._packed is not None

    def demonstrate(self, folder: Folder) -> None:
        """Make up data and a ledger for them, which are removed when the studio ends.

        Guarantees: the budget covers only the made-up files, so that no real file, upload or record can be charged to
        it. If a ledger was given at start, nothing is made up.
        """
        if self.has_ledger and not folder.demo_files:
            raise errors.InvalidInput(
                "The studio was started with a ledger. Use it for your data; made-up data are for studios without one."
            )
        if folder.demo_files:
            return
        place = Path(tempfile.mkdtemp(prefix="privatest-demo-"))
        self._demo = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        files = _write_demo_files(place / "data")
        ledger = pt.Ledger(place / "ledger.db")
        ledger.grant(DEMO, epsilon=10, covers=list(files.values()))
        self._packed = base64.b64encode(pickle.dumps(ledger)).decode()
        folder.demo_files.update(files)

    def close(self) -> None:
        """Remove the made-up data and their ledger."""
        if self._demo is not None:
            self._demo()

    def packed(self) -> str:
        """Return the ledger as text for a worker (:func:`ledger_of`); raise InvalidInput if there is none."""
        if self._packed is None:
            raise errors.InvalidInput(
                "Nothing can be run on data, because the studio was started without a ledger. Start it with "
                "privatest studio --ledger FILE, or try the demonstration with made-up data."
            )
        return self._packed


def _write_demo_files(place: Path) -> dict[str, Path]:
    """Write made-up files: measurements, two groups of visitors, and a stream that changes half-way."""
    rng = np.random.default_rng(2019)
    place.mkdir()
    values = [f"p{i % 300},{value:.4f}" for i, value in enumerate(rng.normal(0.5, 1, 400))]
    visits = [f"{'new' if i % 2 else 'old'},{int(rng.random() < (0.16 if i % 2 else 0.1))}" for i in range(2000)]
    stream = [f"{value:.4f}" for value in (*rng.normal(0, 1, 700), *rng.normal(0.5, 1, 700))]
    texts = {
        "measurements.csv": ["person,value", *values],
        "visits.csv": ["arm,bought", *visits],
        "stream.csv": ["value", *stream],
        "stream.txt": stream,
    }
    for name, lines in texts.items():
        (place / name).write_text("\n".join(lines) + "\n")
    return {f"{DEMO}/{name}": (place / name).resolve() for name in texts}


def ledger_of(packed: str) -> pt.Ledger:
    """Return the ledger from the text of :meth:`Budgets.packed`."""
    ledger: pt.Ledger = pickle.loads(base64.b64decode(packed))
    return ledger


def _budget(book: pt.Ledger, name: str) -> Json:
    """Return what is granted, spent and left of a data set's budget, and what it covers."""
    granted, spent, left, covers = book.granted(name), book.spent(name), book.left(name), book.covers(name)
    files = None if covers is None else [_shown(one, {}) for one in covers]
    return {
        "dataset": name,
        "granted": _plain(granted),
        "spent": _plain(spent),
        "left": _plain(left),
        "covers": files,
    }


def _plain(amount: Any) -> float | str:
    """Return an epsilon as a number, and any other notion as its text."""
    text: str | None = getattr(amount, "text", None)
    return float(amount) if text is None else text


def address_of(source: Json, folder: Folder, uploads: Uploads) -> Path:
    """Return the file that a request names."""
    return folder.find(source["path"]) if source.get("path") is not None else uploads.find(source["upload"])


def _test(settings: Json, path: Path, ledger: pt.Ledger) -> Any:
    """Design the test and run it once: for the file's number of records, or for a stated one where that is hidden."""
    rules, where = (arguments("/run/test", settings, role) for role in (options.RULE, options.WHERE))
    if "n" not in rules:
        if settings["neighbours"] == "add-remove":
            raise errors.InvalidInput(
                "n is missing. With neighbours='add-remove' the number of records is private, so the test is designed "
                "for the number that you expect. Give n."
            )
        rows = {"max_rows_per_unit": rules["max_rows_per_unit"]} if "max_rows_per_unit" in rules else {}
        rules["n"] = pt.data.count_records(path, **where, **rows)
    test = pt.design(**rules)
    test.check_tells()
    return test.run(path, **where, ledger=ledger, **arguments("/run/test", settings, options.RUN, options.PAYER))


def _asks(request: str) -> Callable[..., Any]:
    """Return a run by the function that the table of options names, which opens the data itself."""

    def run(settings: Json, *paths: Path, ledger: pt.Ledger) -> Any:
        words = arguments(request, settings, options.RULE, options.WHERE, options.RUN, options.PAYER)
        return attrgetter(options.QUESTIONS[request].call)(pt)(*paths, ledger=ledger, **words)

    return run


def _table(settings: Json, path: Path, ledger: pt.Ledger) -> Any:
    """Make a table of a column, whose answers are computed at once: so it has a bounded number of cells."""
    if (settings["cells"] or 0) > MOST_CELLS:
        raise errors.InvalidInput(
            f"cells={settings['cells']} must be at most {MOST_CELLS} here. Use pt.tabulate in Python for finer tables."
        )
    return _asks("/run/table")(settings, path, ledger=ledger)


def _once(run: Callable[..., Any], kind: str) -> Callable[..., Json]:
    """Return a run as a job, whose answers and messages show the names that users know instead of paths."""

    def job(settings: Json, paths: dict[str, str], ledger: str) -> Json:
        book, name = ledger_of(ledger), settings["dataset"]
        shown = {path: settings[which]["path"] or "the upload" for which, path in paths.items()}
        try:
            release = run(settings, *map(Path, paths.values()), ledger=book)
        except errors.PrivatestError as error:
            error.args = (_renamed(str(error), shown), *error.args[1:])
            raise
        except Exception as error:
            note = errors.charge_note(error) or "Nothing was charged."
            raise errors.Infeasible(f"The run failed ({type(error).__name__}). {note}") from None
        receipt = release.receipt
        if receipt is not None:
            named = {key: _shown(getattr(receipt, key), shown) for key in ("source", "given")}
            release = replace(release, receipt=replace(receipt, **named))
        answer = {"release": release.to_dict(), "facts": release.lines(), "sentence": release.sentence}
        if isinstance(release, pt.results.Table):
            answer |= _described(release)
        if settings.get("report"):
            answer["report"] = _page(kind, settings, release, book)
        return {
            **answer,
            "design": release.design.values(),
            "budget": _budget(book, name),
            "request": settings["request"],
        }

    return job


def _described(table: pt.results.Table) -> Json:
    """Return the answers that a table gives about its column at no further cost, and the noise of its counts."""
    answers = [{**answer.to_dict(), "sentence": answer.sentence} for answer in table.describe()]
    return {"answers": answers, "noise": table.noise.beyond(0.025)}


def _page(kind: str, settings: Json, release: Any, book: pt.Ledger) -> str:
    """Return the report of a run, with paths as the page knows them."""
    from privatest import report  # for the start-up time of every worker

    question = {name: value for name, value in settings.items() if value is not None and name not in _NO_QUESTION}
    question["data"] = settings["source"]["path"] or "the upload"
    if settings.get("treatment") is not None:
        question["treatment"] = settings["treatment"]["path"] or "the upload"
    for name in ("null", "alternative"):
        if isinstance(question.get(name), dict):
            question[name] = law_of(question[name])
    about = {name: settings[name] for name in ("purpose", "author")}
    return report.render(question=question, design=release.design, result=release, kind=kind, ledger=book, **about)


_NO_QUESTION = {"source", "report", "purpose", "author"}


def _renamed(text: str, shown: dict[str, str]) -> str:
    """Return a text with paths replaced by the names that users know."""
    for path, name in shown.items():
        text = text.replace(path, name)
    return text


def _shown(source: str | None, shown: dict[str, str]) -> str | None:
    """Return the name of a source without this machine's folders."""
    if source is None or source in shown:
        return None if source is None else shown[source]
    text = _renamed(source, shown)
    return os.path.basename(text) if os.path.isabs(text) else text


def _about(folder: str | None, ledger: str | None) -> Json:
    """Return the files that can be named, and the budgets of all data sets."""
    book = None if ledger is None else ledger_of(ledger)
    budgets = [] if book is None else [_budget(book, name) for name in book.datasets()]
    return {"files": Folder(folder).listed(), "budgets": budgets}


def _columns(settings: Json, path: str) -> Json:
    """Return the names of a file's columns, and nothing else from the file."""
    try:
        return {"columns": [name for name in pt.data.column_names(Path(path)) if name.isprintable()]}
    except errors.PrivatestError as error:
        error.args = (_renamed(str(error), {path: settings["source"]["path"] or "the upload"}), *error.args[1:])
        raise


JOBS: dict[str, Callable[..., Json]] = {
    "about": _about,
    "columns": _columns,
    "run_test": _once(_test, "test"),
    "run_change": _once(_asks("/run/change"), "detect"),
    "run_estimate": _once(_asks("/run/estimate"), "estimate"),
    "run_groups": _once(_asks("/run/groups"), "groups"),
    "run_table": _once(_table, "table"),
}
