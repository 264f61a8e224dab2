"""Runs on data, all of them through a ledger: charged before anything is released, once per request name.

Requests name files inside one folder, or uploaded ones, never any other: a path is resolved first, symbolic links and
all, and must then lie inside the resolved folder. ``Folder``, ``Uploads``, ``Budgets`` and ``address_of`` stand in the
server; the jobs run in worker processes, one for each run.
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
from pathlib import Path, PureWindowsPath
from typing import Any, BinaryIO

import numpy as np

import privatest as pt
from privatest import errors, options
from privatest.studio.answering import arguments, law_of

Json = dict[str, Any]
STAYS = "If it was charged before it was stopped, the same request under the same name is completed at no new charge."


MOST_LISTED = 500
MOST_UPLOADS = 8
DEMO = "demo"
"""The demonstration's data set, and how its files' names begin."""
KINDS = (".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow")


class Folder:
    """The folder given at start, or none."""

    def __init__(self, where: str | os.PathLike[str] | None) -> None:
        self._root: Path | None = None
        if where is not None:
            root = Path(where).expanduser()
            if not root.is_dir():
                raise errors.InvalidInput(
                    f"folder={str(where)!r} is no folder. Name one that is there, or leave it out."
                )
            self._root = root.resolve()
        self.made_up: dict[str, Path] = {}
        """Files of the demonstration, by the names under which they are asked for."""

    @property
    def root(self) -> str | None:
        """The folder, resolved; None: no path can be named."""
        return None if self._root is None else str(self._root)

    def find(self, name: str) -> Path:
        """The file of that name inside the folder; anything else is refused, without saying what is there."""
        if name in self.made_up:
            return self.made_up[name]
        if self._root is None:
            raise errors.InvalidInput(
                "No folder was given at start. Upload the file, or start the studio with a folder."
            )
        plain = not ("\0" in name or "\\" in name or Path(name).is_absolute() or PureWindowsPath(name).drive)
        found = self._inside(self._root / name) if plain else None
        if found is None:
            raise errors.InvalidInput("path must name a file inside the studio's folder, relative to it.")
        return found

    def _inside(self, path: Path) -> Path | None:
        """The file that a path leads to, links followed; None if that lies outside or is no file."""
        assert self._root is not None
        try:
            found = path.resolve(strict=True)
            return found if found.is_relative_to(self._root) and found.is_file() else None
        except (OSError, ValueError, RuntimeError):  # no such file, no such name, links in a circle
            return None

    def listed(self) -> list[str]:
        """Data files in the folder and below, at most 500, hidden ones and links out of it left aside."""
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
    """Uploaded files, the last eight, in a private folder that goes when the studio ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._count = 0

    def new(self, name: str) -> tuple[str, BinaryIO]:
        """A file to write an upload to, and the word it will be known by. Only the ending of ``name`` is used."""
        kind = Path(name).suffix.lower() if "\0" not in name else ""
        if kind not in KINDS:
            raise errors.InvalidInput(f"name must end in one of {', '.join(KINDS)}: it says how the file is read.")
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="privatest-studio-"))
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._count += 1
            word = f"upload-{self._count}"
            return word, open(self._folder / (word + kind), "xb")  # closed by whoever writes

    def keep(self, word: str, path: str) -> None:
        """The upload is complete; the oldest goes if there are too many."""
        with self._lock:
            self._kept[word] = Path(path)
            while len(self._kept) > MOST_UPLOADS:
                self._kept.popitem(last=False)[1].unlink(missing_ok=True)

    def find(self, word: str) -> Path:
        """The file of a complete upload."""
        with self._lock:
            found = self._kept.get(word)
        if found is None:
            raise errors.InvalidInput("upload must be what an upload returned, one of the last eight. Upload it again.")
        return found

    def close(self) -> None:
        """Remove everything."""
        with self._lock:
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._kept.clear()


class Budgets:
    """The ledger given at start, or none."""

    def __init__(self, ledger: Any) -> None:
        self._demo: Callable[[], Any] | None = None
        given = isinstance(ledger, str | os.PathLike)
        try:
            self._ledger = pt.Ledger(ledger, create=False) if given else ledger
        except errors.LedgerUnavailable as error:
            raise type(error)(
                f"{error} The studio starts none: grant a budget first, with privatest ledger grant, or give the "
                "ledger that is there."
            ) from None
        try:
            self._packed = None if ledger is None else base64.b64encode(pickle.dumps(self._ledger)).decode()
        except (TypeError, AttributeError, pickle.PicklingError):
            raise errors.InvalidInput(
                f"ledger must be a privatest.Ledger or its path, not a {type(ledger).__name__}."
            ) from None

    @property
    def given(self) -> bool:
        """Whether anything can be run on data."""
        return self._packed is not None

    def demonstrate(self, folder: Folder) -> None:
        """Made-up data and a ledger for them, where none was given; both go when the studio ends.

        Guarantees: the budget covers the made-up files and nothing else, so that no real file, no upload and no record
        that somebody sends can be charged to it; where there is a ledger, nothing is made.
        """
        if self.given and not folder.made_up:
            raise errors.InvalidInput("A ledger was given at start: run on your data with it. Nothing was made up.")
        if folder.made_up:
            return
        place = Path(tempfile.mkdtemp(prefix="privatest-demo-"))
        self._demo = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
        files = _made_up(place / "data")
        ledger = pt.Ledger(place / "ledger.db")
        ledger.grant(DEMO, epsilon=10, covers=list(files.values()))
        self._packed = base64.b64encode(pickle.dumps(ledger)).decode()
        folder.made_up.update(files)

    def close(self) -> None:
        """Remove what was made up."""
        if self._demo is not None:
            self._demo()

    def packed(self) -> str:
        """The ledger as a worker opens it (``ledger_of``), or a refusal."""
        if self._packed is None:
            raise errors.InvalidInput(
                "No ledger was given at start, so nothing is run on data. Start the studio with a ledger: "
                "privatest studio --ledger FILE. Made-up data can be tried without: the demonstration."
            )
        return self._packed


def _made_up(place: Path) -> dict[str, Path]:
    """Files of nobody's records: measurements, two groups of visitors, and a stream that changes half-way."""
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
    """The ledger that :meth:`Budgets.packed` wrote, in this process."""
    ledger: pt.Ledger = pickle.loads(base64.b64decode(packed))
    return ledger


def _budget(book: pt.Ledger, name: str) -> Json:
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
    """An epsilon as a number, every other notion as its text."""
    text: str | None = getattr(amount, "text", None)
    return float(amount) if text is None else text


def address_of(source: Json, folder: Folder, uploads: Uploads) -> Path:
    """The file that a request names."""
    return folder.find(source["path"]) if source.get("path") is not None else uploads.find(source["upload"])


def _test(asked: Json, path: Path, ledger: pt.Ledger) -> Any:
    """Design the test and run it once: for the file's number of records, or for a stated one where that is hidden."""
    rules, where = (arguments("/run/test", asked, role) for role in (options.RULE, options.WHERE))
    if "n" not in rules:
        if asked["neighbours"] == "add-remove":
            raise errors.InvalidInput(
                "n is missing: with neighbours='add-remove' the number of records is not public, so the test is "
                "designed for the number that you expect. Give n."
            )
        rows = {"max_rows_per_unit": rules["max_rows_per_unit"]} if "max_rows_per_unit" in rules else {}
        rules["n"] = pt.data.count_records(path, **where, **rows)
    test = pt.design(**rules)
    test.check_tells()
    return test.run(path, **where, ledger=ledger, **arguments("/run/test", asked, options.RUN, options.PAYER))


def _asks(request: str) -> Callable[..., Any]:
    """A run by the function of the package that the table names, which opens the data itself."""

    def run(asked: Json, *paths: Path, ledger: pt.Ledger) -> Any:
        settings = arguments(request, asked, options.RULE, options.WHERE, options.RUN, options.PAYER)
        return getattr(pt, options.QUESTIONS[request].call)(*paths, ledger=ledger, **settings)

    return run


def _once(run: Callable[..., Any], kind: str) -> Callable[..., Json]:
    """The run as a job: with the names that users know in place of paths on this machine, in all that it says."""

    def job(asked: Json, paths: dict[str, str], ledger: str) -> Json:
        book, name = ledger_of(ledger), asked["dataset"]
        shown = {path: asked[which]["path"] or "the upload" for which, path in paths.items()}
        try:
            release = run(asked, *map(Path, paths.values()), ledger=book)
        except errors.PrivatestError as error:
            error.args = (_renamed(str(error), shown), *error.args[1:])
            raise
        except Exception as error:
            note = errors.charge_note(error) or "Nothing was charged."
            raise errors.Infeasible(f"The run ended with {type(error).__name__}. {note}") from None
        receipt = release.receipt
        if receipt is not None:
            named = {key: _shown(getattr(receipt, key), shown) for key in ("source", "given")}
            release = replace(release, receipt=replace(receipt, **named))
        told = {"release": release.to_dict(), "facts": release.lines(), "sentence": release.sentence}
        if asked.get("report"):
            told["report"] = _page(kind, asked, release, book)
        return {**told, "design": release.design.values(), "budget": _budget(book, name), "request": asked["request"]}

    return job


def _page(kind: str, asked: Json, release: Any, book: pt.Ledger) -> str:
    """The report of a run, in the words of the command line; paths as the page knows them."""
    from privatest import report  # for the start-up time of every worker

    question = {name: value for name, value in asked.items() if value is not None and name not in _NOT_ASKED}
    question["data"] = asked["source"]["path"] or "the upload"
    if asked.get("treatment") is not None:
        question["treatment"] = asked["treatment"]["path"] or "the upload"
    for name in ("null", "alternative"):
        if isinstance(question.get(name), dict):
            question[name] = law_of(question[name])
    about = {name: asked[name] for name in ("purpose", "author")}
    return report.render(question=question, design=release.design, result=release, kind=kind, ledger=book, **about)


_NOT_ASKED = {"source", "report", "purpose", "author"}


def _renamed(text: str, shown: dict[str, str]) -> str:
    for path, name in shown.items():
        text = text.replace(path, name)
    return text


def _shown(source: str | None, shown: dict[str, str]) -> str | None:
    """A source's name without this machine's folders."""
    if source is None or source in shown:
        return None if source is None else shown[source]
    text = _renamed(source, shown)
    return os.path.basename(text) if os.path.isabs(text) else text


def _about(folder: str | None, ledger: str | None) -> Json:
    """The files that can be named, and every data set with its budget."""
    book = None if ledger is None else ledger_of(ledger)
    budgets = [] if book is None else [_budget(book, name) for name in book.datasets()]
    return {"files": Folder(folder).listed(), "budgets": budgets}


def _columns(asked: Json, path: str) -> Json:
    """The names of a file's columns, and nothing else of it."""
    try:
        return {"columns": [name for name in pt.data.column_names(Path(path)) if name.isprintable()]}
    except errors.PrivatestError as error:
        error.args = (_renamed(str(error), {path: asked["source"]["path"] or "the upload"}), *error.args[1:])
        raise


JOBS: dict[str, Callable[..., Json]] = {
    "about": _about,
    "columns": _columns,
    "run_test": _once(_test, "test"),
    "run_change": _once(_asks("/run/change"), "detect"),
    "run_estimate": _once(_asks("/run/estimate"), "estimate"),
    "run_groups": _once(_asks("/run/groups"), "groups"),
}
