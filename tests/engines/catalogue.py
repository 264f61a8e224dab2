"""One score of each kind of cells, records for each (odd ones among them), and every container they come in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from privatest.hypotheses import Distribution, make_pair
from privatest.scores import BoundedCells, Score, clamped_score, score_with_laws, whole_score
from privatest.scores.clamped import cell_masses

__all__ = ["HOSTILE", "NUMERIC", "SCORES", "TEXT", "Case", "by_hand", "containers", "first_rows"]


@dataclass(frozen=True)
class Case:
    """A score, whole numbers and fractions that fit it, and whether its labels are text."""

    score: Score
    numbers: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


def _score(null: Any, alternative: Any, clamp: tuple[float, float] = (-0.9, 1.1)) -> Score:
    return clamped_score(make_pair(null, alternative), clamp)


def _bounded(centre: float, scale: float, exponent: int) -> Score:
    """A score on bounded cells with any table at all, different at both ends and for odd records."""
    cells = BoundedCells(centre, scale, exponent)
    table = np.random.default_rng(exponent).integers(-300, 700, cells.count + 1)
    table[[0, -2, -1]] = -1000, 1000, 7
    null, alternative = (cell_masses(law, cells.edges) for law in _cauchy())
    return score_with_laws(cells, table, Fraction(0), Fraction(1, 100), null, alternative)


def _cauchy() -> tuple[Distribution, Distribution]:
    pair = make_pair(stats.cauchy(0, 1), stats.cauchy(1, 1))
    return pair.null, pair.alternative


SCORES: dict[str, Case] = {
    "text labels": Case(_score({"a": 0.2, "b": 0.3, "": 0.5}, {"a": 0.5, "b": 0.3, "": 0.2}), texts=("a", "b", "")),
    "number labels": Case(_score([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]), numbers=(0, 1, 2)),
    "fraction labels": Case(
        _score(
            {0.5: 0.2, Fraction(1, 4): 0.3, Decimal("-1.5"): 0.5}, {0.5: 0.5, Fraction(1, 4): 0.3, Decimal("-1.5"): 0.2}
        ),
        numbers=(0.5, 0.25, -1.5),
    ),
    "integers": Case(_score(stats.poisson(3), stats.poisson(4)), numbers=(0, 1, 3, 4, 9, 60)),
    "line": Case(_score(stats.norm(0, 1), stats.norm(1, 1)), numbers=(0, 1, -2, 0.5, 0.1, 2.75)),
    "dyadic": Case(_score(stats.norm(0, 1), stats.norm(0, 2)), numbers=(0, 1, -2, 0.5, 0.1, 2.75)),
    "dyadic, supported": Case(_score(stats.expon(), stats.gamma(2)), numbers=(0, 1, 3, 0.5, 0.1, 40)),
    "bounded": Case(_bounded(0.5, 4.0, 9), numbers=(0, 1, -2, 0.5, 0.1, 300)),
    "infinite ratios": Case(whole_score(make_pair([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]), 10**6), numbers=(0, 1, 2)),
}
NUMERIC = [name for name, case in SCORES.items() if case.numbers]
TEXT = [name for name, case in SCORES.items() if case.texts]

# Numbers that are odd or far out; all of them doubles, so that every container of numbers can hold them.
STRANGE = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e17, -1e17, -7.5, 2.0**53, 2.0**63, 5e-324)


class NoHash:
    def __hash__(self) -> int:
        raise RuntimeError("secret 4711")


class NoComparison:
    def __init__(self, like: Any) -> None:
        self.like = like

    def __hash__(self) -> int:
        return hash(self.like)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret 4711")


class NoFloat(Fraction):
    def __float__(self) -> float:
        raise RuntimeError("secret 4711")

    def __hash__(self) -> int:
        raise RuntimeError("secret 4711")


class NoTruth:
    def __hash__(self) -> int:
        return hash("a")

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise RuntimeError("secret 4711")


class NoClass:
    @property
    def __class__(self) -> Any:
        raise RuntimeError("secret 4711")


class Shouting(float):
    """A number whose conversion warns, and gives a subclass of float, which Python warns of too."""

    def __float__(self) -> float:
        import warnings

        warnings.warn("secret 4711", UserWarning, stacklevel=1)
        return Shouting(2.0)


# Records that are odd for every score above.
HOSTILE: tuple[Any, ...] = (
    None,
    math.nan,
    math.inf,
    "foreign",
    "1",
    "0.5",
    "nan",
    b"a",
    "A",
    [],
    [1],
    {},
    {1},
    (0,),
    10**400,
    -(10**400),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1e500"),
    Fraction(10**400, 3),
    complex(0.3, 1),
    object(),
    np.datetime64("2024-01-01"),
    np.float64("nan"),
    np.longdouble("1e4000"),
    NoHash(),
    NoComparison("a"),
    NoComparison(1),
    NoComparison(0.5),
    NoFloat(1, 3),
    NoTruth(),
    NoClass(),
    NotImplemented,
    Ellipsis,
    np.array([1.0, 2.0]),
)


def by_hand(score: Score, records: list[Any]) -> int:
    """The total, record by record: what every engine must find."""
    cells = score.cells
    if hasattr(cells, "position"):
        return sum(int(score.table[cells.position.get(record, cells.count)]) for record in records)
    return sum(int(score.of_numbers([math.nan if record is None else float(record)])[0]) for record in records)


def containers(records: list[Any], *, text: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, how to make it) for every container of these records; None is a missing one."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    whole = not text and all(r is not None and float(r).is_integer() and abs(r) < 2**53 for r in records)
    missing = any(record is None for record in records)
    floats = None if text else np.array([math.nan if r is None else float(r) for r in records])
    yield "list", lambda: list(records)
    yield "tuple", lambda: tuple(records)
    yield "generator", lambda: (record for record in records)
    yield "object array", lambda: np.array([*records, None], dtype=object)[:-1]
    yield "pandas object", lambda: pd.Series(records, dtype=object)
    yield "pandas category", lambda: pd.Series(records, dtype="category")
    yield "frame with the column", lambda: pd.DataFrame({"x": pd.Series(records, dtype=object)})
    yield (
        "masked objects",
        lambda: np.ma.masked_array(np.array([*records, "x"], dtype=object), [r is None for r in records] + [True])[:-1],
    )
    yield (
        "pandas with a speaking index",
        lambda: pd.Series(records, dtype=object, index=(["columns", "column_names"] * len(records))[: len(records)]),
    )
    if text:
        arrow = pa.array(records, type=pa.string())
        yield "pandas string", lambda: pd.Series(records, dtype="string")
        if pd.__version__ >= "3":  # before, this turned None into text
            yield "pandas str", lambda: pd.Series(records, dtype="str")
        yield "polars String", lambda: pl.Series("x", records, dtype=pl.String)
        yield "polars Categorical", lambda: pl.Series("x", records, dtype=pl.Categorical)
        yield "arrow string", lambda: arrow
        yield "arrow large string", lambda: arrow.cast(pa.large_string())
        yield "arrow string view", lambda: arrow.cast(pa.string_view())
        yield "arrow chunked", lambda: pa.chunked_array([arrow[:3], arrow[3:]])
        yield "arrow dictionary", lambda: arrow.dictionary_encode()
        yield "arrow table", lambda: pa.table({"x": arrow})
        yield "pandas arrow string", lambda: pd.Series(arrow, dtype=pd.ArrowDtype(pa.string()))
        if not missing:
            yield "array of text", lambda: np.array(records)
            if hasattr(np.dtypes, "StringDType"):  # numpy 2
                yield "array of variable-width text", lambda: np.array(records, dtype=np.dtypes.StringDType())
        return
    assert floats is not None
    yield "float64", lambda: floats
    yield "big-endian", lambda: floats.astype(">f8")
    yield "every other", lambda: np.repeat(floats, 2)[::2]
    yield "backwards", lambda: floats[::-1][::-1]
    yield "a row of a matrix", lambda: np.stack([floats, floats + 1], axis=1)[:, 0]
    yield "read-only", lambda: _frozen(floats)
    yield "long doubles", lambda: floats.astype(np.longdouble)
    yield "masked floats", lambda: np.ma.masked_array(np.where(np.isnan(floats), 1.0, floats), np.isnan(floats))
    yield "pandas float64", lambda: pd.Series(floats)
    yield "pandas Float64", lambda: pd.Series([None if np.isnan(x) else x for x in floats], dtype="Float64")
    yield "pandas frame", lambda: pd.DataFrame({"x": floats})
    yield "pandas index", lambda: pd.Index(floats)
    yield "pandas sparse", lambda: pd.Series(pd.arrays.SparseArray(floats))
    yield "pandas arrow", lambda: pd.Series(floats, dtype=pd.ArrowDtype(pa.float64()))
    yield "polars Float64", lambda: pl.Series("x", records, dtype=pl.Float64)
    yield "polars frame", lambda: pl.DataFrame({"x": floats})
    yield "arrow double", lambda: pa.array(records, type=pa.float64())
    yield "arrow chunked", lambda: pa.chunked_array([pa.array(floats[:3]), pa.array(floats[3:])])
    yield "arrow dictionary", lambda: pa.array(records, type=pa.float64()).dictionary_encode()
    yield "arrow table", lambda: pa.table({"x": floats})
    yield "arrow batch", lambda: pa.record_batch({"x": floats})
    yield (
        "python numbers of all kinds",
        lambda: [kind(x) for kind, x in zip([float, np.float64, np.longdouble] * len(floats), floats, strict=False)],
    )
    with np.errstate(over="ignore"):
        short = bool(np.all(np.isnan(floats) | (floats.astype(np.float32) == floats)))
    if short:
        yield "float32", lambda: floats.astype(np.float32)
        yield "polars Float32", lambda: pl.Series("x", records, dtype=pl.Float32)
        yield "arrow float", lambda: pa.array(floats.astype(np.float32))
    if whole:
        yield "int64", lambda: floats.astype(np.int64)
        yield "python integers", lambda: [int(x) for x in floats]
        yield "numpy integers in a list", lambda: list(floats.astype(np.int64))
        yield "decimals", lambda: [Decimal(int(x)) for x in floats]
        yield "fractions", lambda: [Fraction(int(x)) for x in floats]
        yield "arrow int64", lambda: pa.array(floats.astype(np.int64))
        yield "polars Int64", lambda: pl.Series("x", floats.astype(np.int64))
        yield "arrow decimal", lambda: pa.array([Decimal(int(x)) for x in floats], type=pa.decimal128(30, 0))
        yield "polars Decimal", lambda: pl.Series("x", [Decimal(int(x)) for x in floats])
    if not text and all(r is None or float(r).is_integer() for r in records if r == r):
        integers = [None if r is None or r != r else int(r) for r in records]
        if all(i is None or abs(i) < 2**62 for i in integers):
            yield "pandas Int64", lambda: pd.Series(integers, dtype="Int64")
            yield "arrow int64 with nulls", lambda: pa.array(integers, type=pa.int64())
            yield "polars Int64 with nulls", lambda: pl.Series("x", integers, dtype=pl.Int64)
    if set(records) <= {0, 1, None}:
        truths = [None if r is None else bool(r) for r in records]
        yield "pandas boolean", lambda: pd.Series(truths, dtype="boolean")
        yield "arrow bool", lambda: pa.array(truths, type=pa.bool_())
        yield "polars Boolean", lambda: pl.Series("x", truths, dtype=pl.Boolean)
        yield "python truths", lambda: truths
        yield "numpy truths in a list", lambda: [None if t is None else np.bool_(t) for t in truths]
        if not missing:
            yield "bool", lambda: np.array(truths)


def _frozen(values: Any) -> Any:
    copy = values.copy()
    copy.setflags(write=False)
    return copy


def first_rows(table: Any, most: int) -> Any:
    """Of persons with too many rows the lowest cells: a draw that every engine and every list can repeat."""
    return table[:, :most]
