"""The SQL of a score: an expression that a database evaluates, to the same integer as NumPy for every double.

It is written once, for any language with comparisons, CASE, floor and arithmetic on doubles. No part of it can fail for
a record: comparisons come first, and the numbers that they let through neither overflow nor underflow (PostgreSQL
raises an error for both), nor are they too large for a cast. NaN is above all numbers in some databases and
incomparable in others, so comparisons with NaN are avoided: ``x <= largest double`` is false for it in all of them.
NULL makes every comparison unknown. All such records get the odd cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

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


class Language(Protocol):
    """The operations that differ between Ibis and Spark. Expressions of both understand Python's operators."""

    def number(self, value: float) -> Any:
        """Return a constant double, exactly."""

    def whole(self, value: int) -> Any:
        """Return a constant integer."""

    def case(self, arms: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """Return the value of the first arm whose condition is true."""

    def floor(self, x: Any) -> Any:
        """Return the floor of a double of size at most 2^53, as an integer."""

    def absolute(self, x: Any) -> Any:
        """Return the absolute value of a double."""

    def pick(self, table: Sequence[int], index: Any) -> Any:
        """Return the entry of a constant table at an index, from 0 on."""

    def any_of(self, text: Any, labels: Sequence[str]) -> Any:
        """Return whether a text equals one of these, compared by code points."""

    def is_not_null(self, x: Any) -> Any:
        """Return whether x is not NULL."""


def score_of_number(score: Score, x: Any, language: Language) -> Any:
    """Return the score of a double x."""
    return _of_number(score.cells, score.table, score.line, x, language)


def score_of_text(score: Score, x: Any, language: Language) -> Any:
    """Return the score of a text x among labels."""
    assert isinstance(score.cells, LabelCells)
    return _of_text(score.cells, score.table, x, language)


def grouped_score(score: Score, cell: Any, group: Any, texts: Sequence[Sequence[str]], language: Language) -> Any:
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


def _of_text(cells: LabelCells, table: Integers, x: Any, language: Language) -> Any:
    together: defaultdict[int, list[str]] = defaultdict(list)
    for label, value in zip(cells.labels, table.tolist(), strict=False):
        if isinstance(label, str) and _storable(label):
            together[value].append(label)
    arms = [(language.any_of(x, labels), language.whole(value)) for value, labels in together.items()]
    if cells.others:
        arms.append((language.is_not_null(x) & ~language.any_of(x, [""]), language.whole(int(table[cells.rest]))))
    return language.case(arms, language.whole(int(table[-1])))


def _storable(label: str) -> bool:
    """Whether a text in a database can be this label. Texts there have no lone surrogates."""
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in label)


def _of_number(cells: Cells, table: Integers, line: tuple[int, int] | None, x: Any, language: Language) -> Any:
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
    pieces: Sequence[tuple[float, Any]], top: float, odd: Any, x: Any, language: Language, *, before: Any = ()
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


def _steps(starts: Sequence[float], top: float, table: Integers, x: Any, language: Language) -> Any:
    """Return the entry of the cell of x, by a search tree; cell i reaches from starts[i] to the next start."""
    values = table[:-1]
    odd = language.whole(int(table[-1]))
    kept = [i for i in range(len(starts)) if i == 0 or values[i] != values[i - 1]]
    pieces = [(float(starts[i]), language.whole(int(values[i]))) for i in kept]
    if len(pieces) <= 3:
        return _segments(pieces, top, odd, x, language)
    inside = (x >= language.number(max(pieces[0][0], -LARGEST))) & (x <= language.number(min(top, LARGEST)))
    return language.case([(inside, _tree(pieces, x, language))], odd)


def _tree(pieces: Sequence[tuple[float, Any]], x: Any, language: Language) -> Any:
    if len(pieces) == 1:
        return pieces[0][1]
    if len(pieces) <= 3:
        arms = [(x < language.number(stop), value) for (_, value), (stop, _) in pairwise(pieces)]
        return language.case(arms, pieces[-1][1])
    half = len(pieces) // 2
    left, right = (_tree(part, x, language) for part in (pieces[:half], pieces[half:]))
    return language.case([(x < language.number(pieces[half][0]), left)], right)


def _dyadic(cells: DyadicCells, table: Integers, line: tuple[int, int] | None, x: Any, language: Language) -> Any:
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
        middle = language.floor(x * language.number(cells.factor))
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


def _bounded(cells: BoundedCells, table: Integers, x: Any, language: Language) -> Any:
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
    size = language.number(cells.scale) + language.absolute(away)
    middle = language.floor(away / size * language.number(cells.factor)) + language.whole(half)
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


def _integers(first: Integers, last: int, table: Integers, x: Any, language: Language) -> Any:
    """Return the entry of a cell of integers. Doubles from 2^53 on are integers, and too large for a cast."""
    starts = [float(k) for k in first]
    top, odd = float(last), language.whole(int(table[-1]))
    if len(starts) > FEW and np.all(np.diff(first[1:]) == 1) and abs(starts[1]) < 2**52 and abs(starts[-1]) < 2**52:
        index = language.floor(x) - language.whole(int(first[1]) - 1)
        pieces = [
            (starts[0], language.whole(int(table[0]))),
            (starts[1], _lookup(table, index, language)),
            (starts[-1], language.whole(int(table[-2]))),
        ]
        found = _segments(pieces, top, odd, x, language)
    else:
        found = _steps(starts, top, table, x, language)
    small = (x > language.number(-ALL_WHOLE)) & (x < language.number(ALL_WHOLE))
    whole = language.case([(language.floor(x) == x, found)], odd)
    return language.case([(small, whole)], found)


def _lookup(table: Integers, index: Any, language: Language) -> Any:
    """Return the table's entry; the index itself if each entry is its index."""
    if np.array_equal(table, np.arange(len(table))):
        return index
    return language.pick(table.tolist(), index)


def _labels(cells: LabelCells, table: Integers, x: Any, language: Language) -> Any:
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
    found = [(float(key), int(table[place])) for key, place in zip(keys, places, strict=True)]
    return _equal(found, odd, x, language)


def _equal(found: Sequence[tuple[float, int]], odd: Any, x: Any, language: Language) -> Any:
    if len(found) <= FEW:
        return language.case([(x == language.number(key), language.whole(value)) for key, value in found], odd)
    half = len(found) // 2
    left, right = (_equal(part, odd, x, language) for part in (found[:half], found[half:]))
    return language.case([(x < language.number(found[half][0]), left)], right)


def _runs(values: Integers) -> int:
    """Return the number of runs of equal entries."""
    return 1 + int(np.count_nonzero(np.diff(values)))
