"""Every kind of source against every mechanism: what promises too little is refused, all else runs and is private.

The table of what must happen is written from the definitions alone (:func:`allowed`). Beside it stands the loss: what
neighbours can do to the raw numbers that a mechanism adds noise to. And each comparison is taken away in turn, to see
that the table notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines
from privatest.changepoint import change_plan
from privatest.engines import records as protocol
from privatest.errors import InvalidData, InvalidInput
from privatest.fit import fit_test
from privatest.scores import Cells
from tests.engines.catalogue import first_rows
from tests.engines.openers import FRAMES, SINGLE
from tests.engines.warehouses import SPARK, WAREHOUSES

N, PERSONS, ROWS = 120, 24, 5
# Three labels: of two, a tie's order tells how many there are and no more.
P, Q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
IN_DATABASES = {name: WAREHOUSES[name] for name in ("DuckDB", "PostgreSQL", "Spark")}
FILES = [name for name in FRAMES if name != "Arrow stream"]  # which can be read once only
OPENERS = {**SINGLE, **{name: FRAMES[name] for name in FILES}, **IN_DATABASES}


def columns(x: Any = None) -> dict[str, list[Any]]:
    """Records of 0, 1 and 2, five rows of each of 24 people; a time without ties, with one tie, of ties only."""
    return {**_columns(), **({} if x is None else {"x": x.tolist()})}


@cache
def _columns() -> dict[str, list[Any]]:
    rng = np.random.default_rng(8)
    drawn, when = rng.integers(3, size=N).astype(float), rng.permutation(N)
    once = np.where(when == N - 1, N - 2, when)  # the last two records are of one time
    people = rng.permutation(np.repeat(np.arange(PERSONS), ROWS))
    kept = {"who": people, "when": when, "once": once, "always": np.zeros(N, dtype=np.int64)}
    return {"x": drawn.tolist(), **{name: values.tolist() for name, values in kept.items()}}


def kept(design: Callable[..., Any]) -> Callable[..., Any]:
    """Makes each design once: it does not depend on records."""
    known: dict[str, Any] = {}

    def made(*arguments: Any, **words: Any) -> Any:
        key = repr((arguments, sorted(words.items())))
        if key not in known:
            known[key] = design(*arguments, **words)
        return known[key]

    return made


@pytest.fixture(autouse=True, scope="module")
def designs_are_kept() -> Iterator[None]:
    """Also those that calls with data make anew each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_test, "design_fit", kept(fit_test.design_fit))
        patch.setattr(change_plan, "design_change", kept(change_plan.design_change))
        yield


@dataclass(frozen=True)
class Shape:
    """How a source is opened, and what is true of it: rows of a person (None: a row is a person), and positions."""

    words: tuple[tuple[str, Any], ...]
    rows: int | None
    positions: str

    @property
    def count(self) -> int:
        return N if self.rows is None else PERSONS * min(self.rows, ROWS)


SHAPES = {
    "as it lies": Shape((), None, "lie"),
    "order": Shape((("order", "when"),), None, "fixed"),
    "order, a tie in a block": Shape((("order", "once"),), None, "fixed"),
    "order, ties across blocks": Shape((("order", "always"),), None, "tied"),
    **{f"unit, {k} rows": Shape((("unit", "who"), ("max_rows_per_unit", k)), k, "joined") for k in (1, 2, 5)},
    **{
        f"unit, {k} rows, order": Shape((("unit", "who"), ("max_rows_per_unit", k), ("order", "when")), k, "joined")
        for k in (1, 2)
    },
}


@dataclass(frozen=True)
class Mechanism:
    """A way to an answer: the rows of a person it was designed for, whether it goes by time, and whether in blocks."""

    run: Callable[..., Any]  # (data, shape, **where and paying)
    rows: int = 1
    ordered: bool = False
    blocks: bool = False
    takes: tuple[str, ...] = ("column",)  # names of the source's columns that may be given in the call itself
    pays: bool = True


@cache
def decider(rows: int, n: int, neighbours: str) -> pt.results.PrivateTest:
    return pt.design(P, Q, epsilon=1, n=n, max_rows_per_unit=rows, neighbours=neighbours, clamp="paper")


@cache
def optimum(n: int) -> Any:
    return pt.optimum("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, n=n).test


@cache
def fit(n: int) -> Any:
    return pt.design_fit(P, distance=0.29, epsilon=2, n=n, alpha=0.2, beta=None)


def most_are_low(block: Any) -> str:
    """Any test of a block: nobody looks at what it says here."""
    return "null" if sum(one == 0 for one in block) > 2 else "alternative"


STATED = pt.block_test(most_are_low, n=5, alpha=0.2, beta=0.2, epsilon=1, labels=[0, 1, 2])


@cache
def change(method: str, false_alarm: float | None) -> Any:
    if method == "function":
        return pt.design_change(test=STATED, beta=0.2)
    if method == "fit":
        return pt.design_change(P, distance=0.6, epsilon=1, beta=0.2)
    asked: dict[str, Any] = {"false_alarm": false_alarm, "assume_change": false_alarm is None}
    return pt.design_change(P, Q, epsilon=1, beta=0.2, method=method, **asked)


WATCHES = {
    "cusum": lambda: pt.Monitor(P, Q, epsilon=1),
    "paper": lambda: pt.Monitor(P, Q, epsilon=1, method="paper"),
    "distance": lambda: pt.Monitor(P, distance=0.6, epsilon=1),
    "function": lambda: pt.Monitor(test=STATED),
}


@cache
def watch(kind: str) -> Any:
    return WATCHES[kind]()._plan


def decided(rows: int, neighbours: str) -> Callable[..., Any]:
    return lambda data, n, **words: decider(rows, n, neighbours).run(data, **words)


def detected(method: str, false_alarm: float | None = None) -> Callable[..., Any]:
    return lambda data, _n, **words: change(method, false_alarm).run(data, **words)


def watched(kind: str, call: str) -> Callable[..., Any]:
    def run(data: Any, _n: int, **words: Any) -> Any:
        made = pt.Monitor.of(watch(kind))
        getattr(made, call)(data, **words)
        assert made.seen  # taken for a batch of records, not for one odd record
        return made

    return run


OF_UNITS = ("column", "unit")
IN_TIME = {"ordered": True, "takes": ("column", "order")}
STREAM = {**IN_TIME, "blocks": True, "pays": False}
MECHANISMS = {
    **{
        f"test, {rows} rows, {kind}": Mechanism(decided(rows, kind), rows, takes=OF_UNITS)
        for rows in (1, 2, 5)
        for kind in ("replace", "add-remove")
    },
    "optimum": Mechanism(lambda data, n, **words: optimum(n).run(data, **words), takes=OF_UNITS),
    "fit": Mechanism(lambda data, n, **words: fit(n).run(data, **words), takes=OF_UNITS),
    "goodness_of_fit": Mechanism(
        lambda data, _n, **words: pt.goodness_of_fit(data, P, distance=0.29, epsilon=2, beta=None, **words),
        takes=OF_UNITS,
    ),
    "detect, direct": Mechanism(detected("direct"), **IN_TIME),
    "detect, blocks": Mechanism(detected("blocks"), **IN_TIME, blocks=True),
    "detect, paper": Mechanism(detected("paper"), **IN_TIME, blocks=True),
    "detect, distance": Mechanism(detected("fit"), **IN_TIME, blocks=True),
    "detect, function": Mechanism(detected("function"), **IN_TIME, blocks=True),
    "detect_change": Mechanism(
        lambda data, _n, **words: pt.detect_change(data, P, Q, epsilon=1, beta=0.2, method="blocks", **words),
        **IN_TIME,
        blocks=True,
    ),
    "monitor": Mechanism(watched("cusum", "update_many"), **STREAM),
    "monitor, paper": Mechanism(watched("paper", "update_many"), **STREAM),
    "monitor, distance": Mechanism(watched("distance", "update_many"), **STREAM),
    "monitor, function": Mechanism(watched("function", "update_many"), **STREAM),
    "monitor, update": Mechanism(watched("cusum", "update"), **{**STREAM, "takes": ()}),
}


def allowed(shape: Shape, mechanism: Mechanism, opener: str) -> bool:
    """From the definitions: who may reach how far, and whom a person may move."""
    if shape.rows is None:
        if mechanism.rows > 1:
            return False  # nobody knows whose a row is
    elif shape.rows > mechanism.rows:
        return False
    if not mechanism.ordered:
        return True
    if shape.positions == "lie":
        return opener not in IN_DATABASES
    if shape.positions == "tied":
        return not mechanism.blocks
    return shape.positions == "fixed"


class Purse:
    """A ledger that only remembers whether it was charged."""

    def __init__(self) -> None:
        self.charged = False

    def released(self, **_words: Any) -> None:
        return None

    def perform(self, *, draw: Callable[[], Any], release: Callable[[Any], Any], **_words: Any) -> Any:
        drawn = draw()
        self.charged = True
        return release(drawn)


def combinations(opener: str, folder: Path) -> Iterator[tuple[str, bool, Callable[[], Any], Purse]]:
    """(name, whether it must run, run, the ledger that pays): the source opened before, and by the call's own words."""
    for shape_name, shape in SHAPES.items():
        if opener in SINGLE and shape.words:
            continue
        place = folder / shape_name.replace(",", "")
        place.mkdir(exist_ok=True)
        source, words = OPENERS[opener](columns(), place), dict(shape.words)
        column = {} if opener in SINGLE else {"column": "x"}
        opened = engines.open_source(source, **column, **words)  # what it promises does not wear out
        for name, mechanism in MECHANISMS.items():
            ways: list[tuple[str, Any, dict[str, Any], Shape]] = [("open", opened, {}, shape)]
            named = {word: value for word, value in words.items() if word != "max_rows_per_unit"}
            if {*column, *named} <= {*mechanism.takes}:
                cut = shape if shape.rows is None else Shape(shape.words, mechanism.rows, shape.positions)
                ways.append(("words", source, {**column, **named}, cut))
            for way, data, where, seen in ways:
                purse = Purse()
                paying = {"ledger": purse, "dataset": "d", "request": "r"} if mechanism.pays else {}
                run = lambda m=mechanism, d=data, s=seen, w=where, p=paying: m.run(d, s.count, **w, **p)  # noqa: E731
                yield f"{shape_name} / {name} / {way}", allowed(seen, mechanism, opener), run, purse


# The comparison is the same for all engines: these are asked for every combination, others for some.
WHOLE = ("list", "pandas", "DuckDB")
SOME = 7
# A question takes Spark a second or two.
SPARK_TAKES_EVERY = 11


def outcomes(opener: str, folder: Path, takes_every: int = 1) -> Iterator[tuple[bool, str]]:
    """Of each combination: whether it must run, and what does not go as it must, if anything."""
    for index, (name, must_run, run, purse) in enumerate(combinations(opener, folder)):
        if index % takes_every:
            continue
        try:
            run()
            wrong = "" if must_run else f"{name} ran"
        except InvalidData as error:
            wrong = f"{name}: {error} (charged: {purse.charged})" if must_run or purse.charged else ""
        except InvalidInput as error:  # for another reason than what the records promise
            wrong = f"{name}: {error}"
        yield must_run, wrong


def steps() -> Iterator[Any]:
    for name in OPENERS:
        if name == "Spark":
            yield pytest.param(name, SPARK_TAKES_EVERY, id=name, marks=SPARK)
        else:
            yield pytest.param(name, 1 if name in WHOLE else SOME, id=name)


@pytest.mark.parametrize(("opener", "takes_every"), list(steps()))
def test_every_source_meets_every_mechanism(
    opener: str, takes_every: int, tmp_path: Path, show: Callable[[str], None]
) -> None:
    found = list(outcomes(opener, tmp_path, takes_every))
    wrong, tried, refused = [one for _, one in found if one], len(found), sum(not must_run for must_run, _ in found)
    show(f"{opener}: {tried} combinations of source and mechanism, {refused} refused, nothing charged for these")
    assert not wrong, "\n".join(wrong)
    assert tried >= len(MECHANISMS) / takes_every


def neighbour(rng: np.random.Generator, shape: Shape, *, gone: bool) -> Any:
    """The records with other ones of one person, or without them: of one row, or of all rows of one unit."""
    made = columns()
    x, people = np.array(made["x"]), np.array(made["who"])
    own = np.arange(N) == rng.integers(N) if shape.rows is None else people == rng.integers(PERSONS)
    if gone:
        return {
            name: [value for value, out in zip(values, own, strict=True) if not out] for name, values in made.items()
        }
    x[own] = rng.integers(3, size=own.sum())
    return columns(x)


def loss(mechanism: str, shape: Shape, one: Any, other: Any) -> float:
    """What an answer may lose between two neighbours, over its epsilon, from the raw numbers that get the noise."""
    n = shape.count
    if mechanism.startswith("test"):
        test = decider(MECHANISMS[mechanism].rows, n, mechanism.rpartition(", ")[2])
        moved = [test.scale * r.total(test.score) - test.shift * r.count() for r in (one, other)]
        return test.noise.privacy_loss(moved[0] - moved[1]) / test.epsilon
    if mechanism in ("optimum", "fit", "goodness_of_fit"):
        cells: Cells = (optimum(n) if mechanism == "optimum" else fit(n).domain).cells
        drawn = (records.histogram(cells, first_rows) for records in (one, other))
        return float(np.abs(np.subtract(*drawn)).sum()) / 2
    if mechanism == "detect, direct":
        detector: Any = change("direct", None).detector
        gap = detector.utilities(one, n) - detector.utilities(other, n)
        return float((gap.max() - gap.min()) / detector.score.width / detector.level.denominator)
    if mechanism.endswith(("distance", "function")):
        voter = watch(mechanism.rpartition(" ")[2]).blocks.voter
        size, score = voter.test.n, protocol.index_score(voter.cells)
        blocks = [np.asarray(r.series(score))[: n // size * size] for r in (one, other)]
        pairs = zip(*(np.sort(block.reshape(-1, size), axis=1) for block in blocks), strict=True)
        return float(sum(np.abs(np.bincount(a, minlength=4) - np.bincount(b, minlength=4)).sum() / 2 for a, b in pairs))
    kind = watch("cusum").blocks
    totals = [
        r.series(kind.score)[: n // kind.block * kind.block].reshape(-1, kind.block).sum(axis=1) for r in (one, other)
    ]
    return sum(kind.noise.privacy_loss(int(gap)) for gap in totals[0] - totals[1]) / kind.noise.privacy_loss(
        kind.score.width
    )


def largest_loss(mechanism: str, shape: Shape) -> float:
    here, *others = neighbours(shape, gone=mechanism.endswith("add-remove"))
    return max(loss(mechanism, shape, here, other) for other in others)


@cache
def neighbours(shape: Shape, *, gone: bool, runs: int = 40) -> list[Any]:
    """The records, opened, and random neighbours of them."""
    rng = np.random.default_rng(5)
    others = [_opened(neighbour(rng, shape, gone=gone), shape) for _ in range(runs)]
    return [_opened(columns(), shape), *others]


def _opened(made: Any, shape: Shape) -> Any:
    return engines.open_source(FRAMES["pyarrow"](made, Path()), column="x", **dict(shape.words))


def test_what_runs_is_private_and_what_is_refused_would_not_be(show: Callable[[str], None]) -> None:
    kept, lost = 0.0, {}
    for name, mechanism in MECHANISMS.items():
        for shape_name, shape in SHAPES.items():
            if shape.rows is None and mechanism.rows > 1:
                continue  # whose a row is, is not known: no neighbours to try
            if shape.positions == "joined" and mechanism.ordered:
                continue  # sums of persons have no places: there is nothing to run on
            found = largest_loss(name, shape)
            if allowed(shape, mechanism, "pyarrow"):
                kept = max(kept, found)
                assert found <= 1 + 1e-12, (name, shape_name, found)
            else:
                lost[f"{shape_name} / {name}"] = found
    worst = max(lost, key=lambda key: lost[key])
    show(f"accepted: loss at most {kept:.3f} epsilon; refused: {len(lost)}, up to {lost[worst]:.1f} epsilon ({worst})")
    assert kept > 0.99
    for needed in ("order, ties across blocks / monitor", "unit, 5 rows / test, 1 rows, replace"):
        assert lost[needed] > 1
