"""Check data before a test, without privacy: count the records that the test would not understand.

A test reads a column of text, a decimal comma or "YES" for "yes" as records that make no sense, and cannot report them,
because an error would reveal one person's record. :func:`check` counts them for the holder of the data. It also counts
the records at the ends of a tuned test's clamp.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from privatest import engines
from privatest.data_addresses import reading_facts
from privatest.decision.design import design
from privatest.decision.run import Design
from privatest.engines.arrays import ArrayRecords
from privatest.engines.csv_fields import field_number
from privatest.engines.records import Column, counting_score, fold, folded_labels, guarded
from privatest.errors import InvalidInput, shown
from privatest.facts import Described, Fact, plain_value
from privatest.numbers import Number, positive_integer
from privatest.scores import LabelCells, Score
from privatest.scores.score import is_number

WARNING = "NOT PRIVATE, for the eyes of the data's holder only"
SHOWN = 20
LONGEST = 60
MOST_DISTINCT = 100_000
"""The largest number of different unknown texts that are counted one by one; others are counted together."""


@dataclass(frozen=True)
class Unknown:
    """A text that is no label or number, its number of records, and the label that it equals but for case, if any."""

    text: str
    count: int
    like: str | None = None


@dataclass(frozen=True, repr=False)
class Look(Described):
    """The counts of :func:`check`. NOT PRIVATE: its numbers are exact, and its texts are records.

    Attributes:
        records: number of records.
        missing: number of NULL, NaN, empty texts, and texts that were declared missing.
        unreadable: number of texts that should be numbers and are not.
        unknown_labels: number of values that should be labels and are not.
        outside: number of numbers outside both supports, including infinite ones.
        low_end, high_end: number of records whose ratio lies at the end of the clamp that speaks for Q, for P.
        clamp: the ends in nats; None if the question has none.
        clamp_of: the test that has this clamp.
        decimal_comma: number of unreadable texts that are numbers with decimal=",".
        other_case: number of unknown labels that are labels but for case and blanks, which fold_case reads.
        unknown: the most frequent unreadable texts or unknown labels, at most 20.
    """

    records: int
    missing: int
    unreadable: int
    unknown_labels: int
    outside: int
    low_end: int
    high_end: int
    clamp: tuple[float, float] | None
    clamp_of: str
    decimal_comma: int
    other_case: int
    unknown: tuple[Unknown, ...]

    private: ClassVar[bool] = False

    @property
    def odd(self) -> int:
        """The number of records that make no sense to the test."""
        return self.missing + self.unreadable + self.unknown_labels + self.outside

    @property
    def title(self) -> str:
        """A title that begins with the warning that this is not private."""
        return f"{WARNING}: counts of records"

    def facts(self) -> list[Fact]:
        """Return all counts, then the texts that were not understood."""
        comma = 'of the unreadable are numbers with decimal="," (--decimal ",")'
        case = "of the unknown labels are labels with fold_case (--fold-case)"
        ends = []
        if self.clamp is not None:
            low, high = (f"of the clamp that speaks for {which}" for which in "QP")
            ends = [
                Fact("low_end", self.low_end, f"at the end {low}: {self._share(self.low_end)}"),
                Fact("high_end", self.high_end, f"at the end {high}: {self._share(self.high_end)}"),
                Fact("clamp", self.clamp, f"in nats; of {self.clamp_of}"),
            ]
        whom = "the test" if self.clamp is not None else f"this: {self.clamp_of}"
        return [
            Fact("records", self.records, "in all"),
            Fact("odd", self.odd, f"make no sense to {whom}: {self._share(self.odd)}"),
            Fact("missing", self.missing, "NULL, NaN or empty"),
            Fact("unreadable", self.unreadable or None, "no numbers"),
            Fact("unknown_labels", self.unknown_labels or None, "no labels of the distributions"),
            Fact("outside", self.outside, "numbers outside both supports"),
            *ends,
            Fact("decimal_comma", self.decimal_comma or None, comma),
            Fact("other_case", self.other_case or None, case),
            *(
                Fact(f"unknown.{place}", repr(one.text), self._describe(one))
                for place, one in enumerate(self.unknown, start=1)
            ),
        ]

    def _share(self, count: int) -> str:
        return f"{count / self.records:.1%}" if self.records else "of none"

    def _describe(self, one: Unknown) -> str:
        same = "" if one.like is None else f"; {one.like!r} but for case or blanks"
        return f"{one.count:,} record{'' if one.count == 1 else 's'}{same}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON, the first being the warning."""
        counts = {name: getattr(self, name) for name in COUNTS}
        unknown = [{"text": one.text, "count": one.count, "like": one.like} for one in self.unknown]
        clamp = {"clamp": plain_value(self.clamp), "clamp_of": self.clamp_of}
        return {"warning": WARNING, "private": False, **self.values(), **counts, **clamp, "unknown": unknown}

    def __repr__(self) -> str:
        return f"<Look: {WARNING}; print it to see it>"  # so that logs and debuggers keep no record


COUNTS = (
    "records odd missing unreadable unknown_labels outside low_end high_end decimal_comma other_case".split()  # noqa: SIM905
)


def check(
    data: Any,
    null: Any,
    alternative: Any = None,
    *,
    column: str | None = None,
    epsilon: Number | None = None,
    n: int | None = None,
) -> Look:
    """Count the records that a test of P against Q would not understand. The result is NOT PRIVATE.

    It is for the holder of the data only, is written nowhere, and costs no epsilon. It refuses what a run would refuse,
    such as a column whose declared type fits no record.

    Args:
        data: as for ``run``, and read in the same way (see :func:`privatest.data.read_as`).
        null, alternative: as for :func:`privatest.design`. For any other question ``null`` is its design: of an
            estimate, a comparison of groups, a fit or a change point.
        column: the column that holds the records.
        epsilon, n: take the clamp of the tuned test for these. Without n it is the number of records. Without epsilon
            the clamp is the paper's at epsilon = 1.

    >>> print(check([0.2, 1.7, None, "1,5"], "normal(0, 1)", "normal(1, 1)").unknown)
    (Unknown(text='1,5', count=1, like=None),)
    """
    if epsilon is None and n is not None:
        raise InvalidInput(
            f"n={shown(n)} was given without epsilon: a clamp is tuned for both. Give both, or leave n out."
        )
    records = engines.open_source(data, column=column)
    count = records.count() if n is None else positive_integer(n=n)
    if isinstance(null, Design) and alternative is None:
        if epsilon is not None:
            raise InvalidInput(f"epsilon={shown(epsilon)} cannot be given beside a design. Leave it out.")
        return _looked(data, records, counting_score(null.record_cells), None, null.title)
    if alternative is None:
        raise InvalidInput(
            "alternative is missing. Give two distributions, or the design of another question: "
            "check(data, design_estimate(...))."
        )
    if epsilon is None:
        test = design(null, alternative, epsilon=1, n=max(count, 1), clamp="paper")
        basis = "the paper's test at epsilon=1"
    else:
        test = design(null, alternative, epsilon=epsilon, n=max(count, 1))
        basis = f"the tuned test at epsilon={test.epsilon:g}, n={test.n:,}"
    return _looked(data, records, test.score, test.clamp, basis)


def _looked(data: Any, records: Any, score: Score, clamp: tuple[float, float] | None, basis: str) -> Look:
    records.check(score)
    tally = _OddCounts(score, reading_facts(data).get("reading", {}).get("decimal", "."))
    for portion in records.portions():
        guarded(portion.complaint, partial(tally.add, portion))
    return tally.look(clamp, basis)


class _OddCounts:
    """The counts so far."""

    def __init__(self, score: Score, decimal: str) -> None:
        self._score, self._cells, self._decimal = score, score.cells, decimal
        labels = score.cells.labels if isinstance(score.cells, LabelCells) else None
        self._labels, self._numeric = labels, labels is None or any(is_number(label) for label in labels)
        self._counts = np.zeros(score.cells.count + 1, dtype=np.int64)
        self._odd: Counter[str] = Counter()
        self._texts: Counter[str] = Counter()

    def add(self, records: Column) -> None:
        """Count one more portion of records."""
        cells = records.index(self._cells)
        self._counts += np.bincount(cells, minlength=len(self._counts))
        odd = cells == self._cells.count
        if isinstance(records, ArrayRecords):
            numbers = records.values[odd].astype(np.float64)
            missing = np.isnan(numbers)
            self._odd["missing"] += int(missing.sum())
            if self._labels is None:
                self._odd["outside"] += int((~missing).sum())
                return
            for number, count in zip(*np.unique(numbers[~missing], return_counts=True), strict=True):
                self._one(float(number), int(count), (), False)
            return
        coded = records.coded()
        codes = coded.codes[odd]
        self._odd["missing"] += int((codes < 0).sum())
        for place, count in zip(*np.unique(codes[codes >= 0], return_counts=True), strict=True):
            self._one(coded.distinct[place], int(count), coded.reading.missing, coded.may_be_numbers)

    def _one(self, value: Any, count: int, missing_words: tuple[str, ...], loose: bool) -> None:
        if _is_missing(value, missing_words):
            self._odd["missing"] += count
            return
        text = _text(value)
        number = is_number(value) or (loose and type(value) is str and not np.isnan(field_number(value, self._decimal)))
        if self._labels is None and number:
            self._odd["outside"] += count
            return
        self._odd["unreadable" if self._labels is None else "unknown_labels"] += count
        if self._numeric and self._decimal == "." and type(value) is str and "," in value:
            self._odd["decimal_comma"] += count * (not np.isnan(field_number(value, ",")))
        if text in self._texts or len(self._texts) < MOST_DISTINCT:
            self._texts[text] += count

    def look(self, clamp: tuple[float, float] | None, basis: str) -> Look:
        """Return the counts."""
        table, counts = self._score.table[:-1], self._counts[:-1]
        try:
            folded = folded_labels(self._cells)
        except InvalidInput:  # two labels differ in case only, so a third cannot be matched
            folded = {}
        like = {text: (self._labels or ())[folded[fold(text)]] for text in self._texts if fold(text) in folded}
        unknown = tuple(
            Unknown(_short(text), count, None if text not in like else str(like[text]))
            for text, count in self._texts.most_common(SHOWN)
        )
        names = ("missing", "unreadable", "unknown_labels", "outside", "decimal_comma")
        return Look(
            records=int(self._counts.sum()),
            low_end=0 if clamp is None else int(counts[table == self._score.low].sum()),
            high_end=0 if clamp is None else int(counts[table == self._score.high].sum()),
            clamp=clamp,
            clamp_of=basis,
            other_case=sum(self._texts[text] for text in like),
            unknown=unknown,
            **{name: self._odd[name] for name in names},
        )


def _is_missing(value: Any, missing_words: tuple[str, ...]) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip() or value.strip() in missing_words
    try:
        return bool(value != value)  # NaN, NaT
    except Exception:  # NA cannot be compared
        return type(value).__name__ == "NAType"


def _text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
