"""The SQL of a score: an expression that a database evaluates, to the same integer as NumPy for every double.

It is an expression of Ibis, of comparisons, CASE, floor and arithmetic on doubles; :class:`IbisLanguage` has the
operations that differ between databases. No part of it can fail for a record: comparisons come first, and the numbers
that they let through neither overflow nor underflow (PostgreSQL raises an error for both), nor are they too large for a
cast. NaN is above all numbers in some databases and incomparable in others, so comparisons with NaN are avoided:
``x <= largest double`` is false for it in all of them. NULL makes every comparison unknown. All such records get the
odd cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from privatest.engines.records import unsupported_type
from privatest.errors import InvalidInput
from privatest.numbers import Integers
from privatest.scores import (
    BoundedCells,
    Cells,
    DyadicCells,
    EdgeCells,
    GroupedCells,
    IntegerCells,
    LabelCells,
    Score,
)

LARGEST = float(np.finfo(np.float64).max)
ALL_WHOLE = 2.0**53
"""From here on every double is an integer, and a cast to 64 bits may fail."""
FEW = 12
"""Up to this many steps a list of comparisons is quicker than arithmetic and a lookup."""
ARRAYS = {"duckdb": "[{}]", "postgres": "{{{}}}"}
"""How arrays are written in the databases that can index them in constant time."""
WITH_NUL = ("duckdb", "pyspark")
"""Dialects of databases whose texts may hold the character NUL, and in which texts are compared as bytes."""


@dataclass(frozen=True)
class IbisLanguage:
    """Expressions of Ibis for one database; ``dialect`` is Ibis's name of the database."""

    ibis: Any
    dialect: str

    def number(self, value: float) -> Any:
        # Written as a text, because as a literal 0.1 is a decimal, whose cast some databases do not round to nearest.
        return self.ibis.literal(repr(float(value))).cast("float64")

    def whole(self, value: int) -> Any:
        return self.ibis.literal(value)

    def case(self, arms: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        return self.ibis.cases(*arms, else_=otherwise)

    def pick(self, table: Sequence[int], index: Any) -> Any:
        if self.dialect in ARRAYS:
            written = ARRAYS[self.dialect].format(",".join(map(str, table)))
            return self.ibis.literal(written).cast("array<int64>")[index]
        if self.dialect == "pyspark":

            @self.ibis.udf.scalar.builtin(signature=(("array<int64>", "int64"), "int64"))
            def get(array, index):  # type: ignore[no-untyped-def]
                ...

            return get(self.ibis.literal(",".join(map(str, table))).split(",").cast("array<int64>"), index)
        # In other databases the table is one text, in which each entry has the same number of digits.
        least = min(table)
        width = len(str(max(table) - least))
        written = "".join(f"{entry - least:0{width}d}" for entry in table)
        return self.ibis.literal(written).substr(index * width, width).cast("int64") + least

    def any_of(self, text: Any, labels: Sequence[str]) -> Any:
        storable = [label for label in labels if self.dialect in WITH_NUL or "\0" not in label]
        if self.dialect in (*WITH_NUL, "postgres"):
            written = self._constants([label.encode() for label in storable])
        else:
            written = [self.ibis.literal(label) for label in storable]
        return self.exact(text).isin(written) if written else self.ibis.literal(False)

    def _constants(self, texts: Sequence[bytes]) -> list[Any]:
        """Return what ``exact`` makes of texts with these bytes, in digits, so that no parser sees a character."""
        builtin = self.ibis.udf.scalar.builtin
        if self.dialect in WITH_NUL:

            @builtin(signature=(("string",), "binary"))
            def unhex(digits):  # type: ignore[no-untyped-def]
                ...

            return [unhex(data.hex()) for data in texts]

        @builtin(signature=(("string", "string"), "binary"))
        def decode(digits, form):  # type: ignore[no-untyped-def]
            ...

        @builtin(signature=(("binary", "string"), "string"))
        def convert_from(data, encoding):  # type: ignore[no-untyped-def]
            ...

        return [convert_from(decode(data.hex(), "hex"), "UTF8") for data in texts]

    def finite(self, x: Any) -> Any:
        """Return whether a number in DuckDB is neither NaN nor infinite."""

        @self.ibis.udf.scalar.builtin(signature=(("float64",), "boolean"))
        def isfinite(x):  # type: ignore[no-untyped-def]
            ...

        return isfinite(x)

    def unless_odd(self, x: Any, odd: int, value: Any) -> Any:
        """Return ``value``, or ``odd`` where x is NaN or infinite, for a database that must test for that first."""
        if self.dialect != "duckdb":
            return value
        # DuckDB drops comparisons that a Parquet file's minimum and maximum decide, but NaN is in neither of them.
        return self.case([(~self.finite(x), self.whole(odd))], value)

    def double(self, x: Any) -> Any:
        """Return a column of numbers as doubles, by a cast that cannot fail for any record."""
        kind = x.type()
        if kind.is_boolean():
            return x.cast("int32").cast("float64")
        if self.dialect == "postgres" and kind.is_decimal() and not _short(kind):
            return self._guarded(x)
        if self.dialect == "duckdb" and kind.is_decimal() and not kind.scale:
            # Ibis calls HUGEINT a decimal too. DuckDB does not round it to the nearest double, but it does its text.
            near = x.cast("float64")
            small = near.abs() <= self.number(2.0**53)
            return self.case([(small, near)], x.cast("string").cast("float64"))
        return x if kind.is_float64() else x.cast("float64")

    def _guarded(self, x: Any) -> Any:
        """Return a PostgreSQL numeric as a double; it is unbounded, and its cast raises beyond the range of doubles."""
        # Numbers from half-way between the largest double and 2^1024 on are infinite, up to half the smallest are 0.
        over, under = Decimal(2**1024 - 2**970), _written(Fraction(1, 2**1075))
        far = self.ibis.literal(str(over)).cast("decimal")
        tiny = self.ibis.literal(f"{under:f}").cast("decimal")
        nothing = self.ibis.null().cast("float64")
        arms = [(x >= far, nothing), (x <= -far, nothing), ((x <= tiny) & (x >= -tiny), self.number(0.0))]
        return self.case(arms, x.cast("float64"))

    def key(self, x: Any) -> Any:
        """Return a unit in a form in which equal units are equal: 0.0 and -0.0 are one unit, NaN is none."""
        kind = x.type()
        if kind.is_floating():
            x = x.cast("float64") + self.number(0.0)
            return self.case([(x.isnan(), self.ibis.null().cast("float64"))], x)
        if kind.is_nested() or kind.is_json() or kind.is_interval():
            raise unsupported_type(f"units of type {kind}", "Units are numbers, texts or dates")
        return self.exact(x) if kind.is_string() else x

    def place(self, x: Any) -> Any:
        """Return an order in a form that sorts alike in all databases: text by code points, NaN as NULL."""
        kind = x.type()
        if kind.is_string():
            return self.exact(x)
        if kind.is_boolean():
            return x.cast("int32")
        if not (kind.is_numeric() or kind.is_date() or kind.is_time() or kind.is_timestamp()):
            raise unsupported_type(f"an order of type {kind}", "Order by numbers, dates, times or texts")
        return self.key(x)

    def exact(self, text: Any) -> Any:
        """Return a text in a form that compares by code points, because a column's collation may ignore case.

        :class:`PostgresColumns` has removed the collations of PostgreSQL already.
        """
        if self.dialect == "duckdb":

            @self.ibis.udf.scalar.builtin(signature=(("string",), "binary"))
            def encode(text):  # type: ignore[no-untyped-def]
                ...

            return encode(text)
        return text.cast("binary") if self.dialect == "pyspark" else text


def _short(kind: Any) -> bool:
    """Return whether every number of a decimal type lies within the range of doubles."""
    return kind.precision is not None and kind.precision <= 300 and (kind.scale or 0) <= 300


def _written(number: Fraction) -> Decimal:
    return Context(prec=math.ceil(number.denominator.bit_length()) + 10).divide(number.numerator, number.denominator)


def score_of_number(score: Score, x: Any, language: IbisLanguage) -> Any:
    """Return the score of a double x."""
    return _of_number(score.cells, score.table, score.line, x, language)


def score_of_text(score: Score, x: Any, language: IbisLanguage) -> Any:
    """Return the score of a text x among labels."""
    assert isinstance(score.cells, LabelCells)
    return _of_text(score.cells, score.table, x, language)


def grouped_score(score: Score, cell: Any, group: Any, texts: Sequence[Sequence[str]], language: IbisLanguage) -> Any:
    """Return the score of a record from its inner cell and the text of its group.

    Args:
        score: a score of :class:`GroupedCells`.
        cell: the record's cell without regard to its group.
        group: the text of the group.
        texts: for each group of the cells, the texts that mean it.
        language: of the database.
    """
    cells = score.cells
    assert isinstance(cells, GroupedCells)
    size = cells.inner.count
    starts = [
        (language.any_of(group, storable), language.whole(place * size))
        for place, some in enumerate(texts)
        if (storable := [text for text in some if _storable(text)])
    ]
    odd = language.whole(cells.count)
    start = language.case(starts, odd) if starts else odd
    inside = (start < language.whole(cells.count)) & (cell < language.whole(size))
    index = language.case([(inside, start + cell)], odd)
    table = score.table.tolist()
    return index if table == list(range(cells.count + 1)) else language.pick(table, index)


class ClippedLine(NamedTuple):
    """A score that is ``sign * cell + offset`` from cell ``left`` to cell ``right``, and constant below and above."""

    sign: int
    offset: int
    left: int
    right: int


def clipped_line(cells: DyadicCells, table: Integers, line: tuple[int, int]) -> ClippedLine:
    """Return the clipped line of a score whose ``line`` is (sign, offset).

    >>> cells = DyadicCells(exponent=0, first=-3, size=7)
    >>> clipped_line(cells, np.array([-1, -1, -1, 0, 1, 2, 2, 0]), (1, -3))
    ClippedLine(sign=1, offset=-3, left=2, right=5)
    """
    sign, offset = line
    ends = sorted(sign * (int(bound) - offset) for bound in (table[0], table[-2]))
    left, right = (min(max(end, 0), cells.size - 1) for end in ends)
    return ClippedLine(sign, offset, left, right)


def few_steps(score: Score) -> bool:
    """Whether the expression of a score is short, without a lookup table."""
    if isinstance(score.cells, DyadicCells):
        return score.line is not None or _runs(score.table[:-1]) <= FEW
    return score.cells.count <= FEW


def _of_text(cells: LabelCells, table: Integers, x: Any, language: IbisLanguage) -> Any:
    together: defaultdict[int, list[str]] = defaultdict(list)
    for label, value in zip(cells.labels, table.tolist(), strict=False):
        if isinstance(label, str) and _storable(label):
            together[value].append(label)
    arms = [(language.any_of(x, labels), language.whole(value)) for value, labels in together.items()]
    if cells.others:
        arms.append((x.notnull() & ~language.any_of(x, [""]), language.whole(int(table[cells.rest]))))
    return language.case(arms, language.whole(int(table[-1])))


def _floor(x: Any) -> Any:
    """Return the floor of a double of size at most 2^53, as an integer."""
    return x.floor().cast("int64")


def _storable(label: str) -> bool:
    """Whether a text in a database can be this label. Texts there have no lone surrogates."""
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in label)


def _of_number(cells: Cells, table: Integers, line: tuple[int, int] | None, x: Any, language: IbisLanguage) -> Any:
    if isinstance(cells, DyadicCells):
        return _dyadic(cells, table, line, x, language)
    if isinstance(cells, BoundedCells):
        return _bounded(cells, table, x, language)
    if isinstance(cells, IntegerCells):
        return _integers(cells.first, cells.last, table, x, language)
    if isinstance(cells, LabelCells):
        return _labels(cells, table, x, language)
    if isinstance(cells, EdgeCells):
        return _steps([cells.low, *cells.edges], cells.high, table, x, language)
    raise InvalidInput(
        f"Databases cannot sum scores on cells of the kind {cells.kind!r}. Read the records into memory."
    )


def _segments(
    pieces: Sequence[tuple[float, Any]], top: float, odd: Any, x: Any, language: IbisLanguage, *, before: Any = ()
) -> Any:
    """Return the value of the piece that x lies in.

    Args:
        pieces: pairs of a start and a value. A piece ends where the next one starts, the last one at ``top``, which
            belongs to it.
        top: end of the last piece.
        odd: the value of everything else.
        x: the number.
        language: the language of the expression.
        before: conditions that come first, with their values.

    With three pieces the middle one is compared first, because most records are there.
    """
    bottom, top = max(pieces[0][0], -LARGEST), min(top, LARGEST)
    arms = []
    ends = [*(start for start, _ in pieces[1:]), math.inf]
    for (start, value), stop in zip(pieces, ends, strict=True):
        start = max(start, bottom)
        if start >= stop or start > top:
            continue
        end = x < language.number(stop) if stop <= top else x <= language.number(top)
        arms.append(((x >= language.number(start)) & end, value))
    if len(arms) == 3:
        arms = [arms[1], arms[2], arms[0]]
    return language.case([*before, *arms], odd) if before or arms else odd


def _steps(starts: Sequence[float], top: float, table: Integers, x: Any, language: IbisLanguage) -> Any:
    """Return the entry of the cell of x, by a search tree; cell i reaches from starts[i] to the next start."""
    values = table[:-1]
    odd = language.whole(int(table[-1]))
    changes = [i for i in range(len(starts)) if i == 0 or values[i] != values[i - 1]]
    pieces = [(float(starts[i]), language.whole(int(values[i]))) for i in changes]
    if len(pieces) <= 3:
        return _segments(pieces, top, odd, x, language)
    inside = (x >= language.number(max(pieces[0][0], -LARGEST))) & (x <= language.number(min(top, LARGEST)))
    return language.case([(inside, _tree(pieces, x, language))], odd)


def _tree(pieces: Sequence[tuple[float, Any]], x: Any, language: IbisLanguage) -> Any:
    if len(pieces) == 1:
        return pieces[0][1]
    if len(pieces) <= 3:
        arms = [(x < language.number(stop), value) for (_, value), (stop, _) in pairwise(pieces)]
        return language.case(arms, pieces[-1][1])
    half = len(pieces) // 2
    left, right = (_tree(part, x, language) for part in (pieces[:half], pieces[half:]))
    return language.case([(x < language.number(pieces[half][0]), left)], right)


def _dyadic(cells: DyadicCells, table: Integers, line: tuple[int, int] | None, x: Any, language: IbisLanguage) -> Any:
    values, odd = table[:-1], language.whole(int(table[-1]))
    last = cells.size - 1

    def value(cell: int) -> Any:
        return language.whole(int(values[cell]))

    # Scaled down, a tiny number underflows to zero, and a negative one then lies in the cell of 0.
    tiny = math.ldexp(1.0, -1075 - cells.exponent) if cells.exponent < 0 else 0.0
    before = []
    if tiny and cells.low <= tiny and -tiny <= cells.high:
        near = (x >= language.number(max(-tiny, cells.low))) & (x <= language.number(min(tiny, cells.high)))
        before = [(near, value(min(max(-cells.first, 0), last)))]
    if line is not None:
        sign, offset, left, right = clipped_line(cells, table, line)
        middle = _floor(x * language.number(cells.factor))
        middle = middle - language.whole(cells.first) if sign == 1 else language.whole(cells.first) - middle
        middle = middle + language.whole(offset)
        pieces = [(cells.low, value(left))]
        if right > left:
            pieces += [(_edge(cells, left + 1), middle), (_edge(cells, right), value(right))]
        return _segments(pieces, cells.high, odd, x, language, before=before)
    if _runs(values) <= FEW:
        starts = [cells.low, *(_edge(cells, i) for i in range(1, cells.size))]
        steps = _steps(starts, cells.high, table, x, language)
        return language.case(before, steps) if before else steps
    index = _dyadic(cells, np.arange(cells.size + 1), (1, 0), x, language)
    return _lookup(table, index, language)


def _edge(cells: DyadicCells, cell: int) -> float:
    """Return where a cell starts; infinite if no double is as large."""
    try:
        return math.ldexp(float(cells.first + cell), -cells.exponent)
    except OverflowError:
        return math.copysign(math.inf, cells.first + cell)


def _bounded(cells: BoundedCells, table: Integers, x: Any, language: IbisLanguage) -> Any:
    """Return the entry of a bounded cell: ``BoundedCells.index`` where that cannot overflow, else an outermost cell."""
    half = 1 << cells.exponent
    # Beyond ``reach`` t differs from 1 by less than 2^-40, less than a cell; within it the double t is below 1.
    reach = cells.scale * 2.0**40
    if not (max(reach, abs(cells.centre)) < LARGEST / 8 and reach > 8 * math.ulp(cells.centre)):
        raise InvalidInput(
            f"Cells with centre {cells.centre!r} and scale {cells.scale!r} cannot be computed by a database without "
            "overflow. Read the records into memory."
        )
    away = x - language.number(cells.centre) if cells.centre else x
    size = language.number(cells.scale) + away.abs()
    middle = _floor(away / size * language.number(cells.factor)) + language.whole(half)
    before = []
    if tiny := _underflow(cells.scale):
        near = (away >= language.number(-tiny)) & (away <= language.number(tiny))
        if math.isfinite(cells.low) or math.isfinite(cells.high):
            near = near & (x >= language.number(max(cells.low, -LARGEST)))
            near = near & (x <= language.number(min(cells.high, LARGEST)))
        before = [(near, language.whole(half))]
    low, high = cells.centre - reach, cells.centre + reach
    pieces = [(cells.low, language.whole(0)), (low, middle), (high, language.whole(2 * half - 1))]
    if cells.low > low:  # nothing lies to the left
        pieces = [(cells.low, middle), (high, language.whole(2 * half - 1))]
    if cells.low > high:
        pieces = [(cells.low, language.whole(2 * half - 1))]
    index = _segments(pieces, cells.high, language.whole(cells.count), x, language, before=before)
    return _lookup(table, index, language)


def _underflow(scale: float) -> float:
    """Return the largest double that gives zero when it is divided by ``scale``; it is at most scale 2^-1075."""
    exact = Fraction(scale) / 2**1075
    near = float(exact)
    return near if near <= exact else math.nextafter(near, 0.0)


def _integers(first: Integers, last: int, table: Integers, x: Any, language: IbisLanguage) -> Any:
    """Return the entry of a cell of integers. Doubles from 2^53 on are integers, and too large for a cast."""
    starts = [float(k) for k in first]
    top, odd = float(last), language.whole(int(table[-1]))
    if len(starts) > FEW and np.all(np.diff(first[1:]) == 1) and abs(starts[1]) < 2**52 and abs(starts[-1]) < 2**52:
        index = _floor(x) - language.whole(int(first[1]) - 1)
        pieces = [
            (starts[0], language.whole(int(table[0]))),
            (starts[1], _lookup(table, index, language)),
            (starts[-1], language.whole(int(table[-2]))),
        ]
        result = _segments(pieces, top, odd, x, language)
    else:
        result = _steps(starts, top, table, x, language)
    small = (x > language.number(-ALL_WHOLE)) & (x < language.number(ALL_WHOLE))
    whole = language.case([(_floor(x) == x, result)], odd)
    return language.case([(small, whole)], result)


def _lookup(table: Integers, index: Any, language: IbisLanguage) -> Any:
    """Return the table's entry; the index itself if each entry is its index."""
    if np.array_equal(table, np.arange(len(table))):
        return index
    return language.pick(table.tolist(), index)


def _labels(cells: LabelCells, table: Integers, x: Any, language: IbisLanguage) -> Any:
    keys, places = cells._numeric
    odd = language.whole(int(table[-1]))
    if cells.others:
        finite = (x >= language.number(-LARGEST)) & (x <= language.number(LARGEST))
        odd = language.case([(finite, language.whole(int(table[cells.rest])))], odd)
    if len(keys) == 0:
        return odd
    if not cells.others and len(keys) > FEW and np.all(np.diff(keys) == 1) and np.all(keys == np.floor(keys)):
        runs = np.append(table[places], table[-1])
        return _integers(keys.astype(np.int64), int(keys[-1]), runs, x, language)
    result = [(float(key), int(table[place])) for key, place in zip(keys, places, strict=True)]
    return _equal(result, odd, x, language)


def _equal(result: Sequence[tuple[float, int]], odd: Any, x: Any, language: IbisLanguage) -> Any:
    if len(result) <= FEW:
        return language.case([(x == language.number(key), language.whole(value)) for key, value in result], odd)
    half = len(result) // 2
    left, right = (_equal(part, odd, x, language) for part in (result[:half], result[half:]))
    return language.case([(x < language.number(result[half][0]), left)], right)


def _runs(values: Integers) -> int:
    """Return the number of runs of equal entries."""
    return 1 + int(np.count_nonzero(np.diff(values)))
