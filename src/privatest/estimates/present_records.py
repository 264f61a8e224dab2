"""Which records an answer is about: those that are present, and how their number is measured with noise.

A record that is missing, unreadable or outside the family's support has no score that would be right in an estimate.
So the number of the other records is released first, with noise, within the budget. It yields a public number m, which
seldom exceeds the number of present records. The total is then that of m of the present records, chosen at random. All
that follows knows its number of records, as if there had been m from the start: no interval, p-value or power needs a
theory of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from privatest import numbers
from privatest.facts import Fact
from privatest.privacy import Noise, Notion, RandomSource, canonical_noise
from privatest.privacy.bulk_draws import draw_some
from privatest.privacy.notion import Neighbourhood

if TYPE_CHECKING:
    from privatest.engines import Records
    from privatest.scores import Score

MISSING = ("count", "none")
"""Values of ``missing=``: the number of present records is measured, or no record is missing."""
SPELLED = (
    " Labels are compared as they are written: 'yes' is not 'Yes' (but pt.data.read_as(data, fold_case=True) "
    "reads both), and 1 is not '1'."
)
"""A sentence for an answer about a label that may be written in another way in the data."""
MOSTLY = 0.95
"""If at most this share of the records can be present, a release says what becomes of the others."""
PARTS = tuple(Fraction(part, 100) for part in (3, 5, 7, 10, 15, 20, 30, 40, 50))
"""Parts of the budget that the number of present records may cost."""
SPREAD = 0.15
"""About the variance of one record's score, in squares of its width, for which the part is tuned."""
FINE = 512
"""Number of lattice steps to a width for which the part is tuned."""


def check_missing(missing: object) -> None:
    """Raise InvalidInput for a value that is not one of ``MISSING``."""
    numbers.choice(MISSING, missing=missing)


def missing_fact(missing: str, *, measured: bool) -> Fact:
    """The fact of a design or a release about missing records."""
    counted = "the answer is about the records that are present; how many are is measured"
    declared = "declared: no record is missing or unreadable; one that is counts by its fixed score"
    return Fact("missing", missing, counted if measured else declared)


def part_for_counting(notion: Notion, n: int, around: Neighbourhood, miss: float) -> Fraction:
    """The part of a budget for the number of present records with which the error of a mean is the smallest.

    With a larger part the total gets more noise; with a smaller one fewer records are summed.

    Args:
        notion, n, around: the budget, the number of records, and which data sets are neighbours.
        miss: the probability with which more records may be summed than are present.
    """

    def squared_error(part: Fraction) -> float:
        summed = n - canonical_noise(notion.split(part), around.rows).beyond(miss)
        noise = canonical_noise(notion.split(1 - part), around.rows * FINE).variance / FINE**2
        return (summed * SPREAD + noise) / summed**2 if summed > 0 else math.inf

    errors = [squared_error(part) for part in PARTS]
    return PARTS[errors.index(min(errors))] if min(errors) < math.inf else PARTS[-1]


@dataclass(frozen=True)
class Presence:
    """How the records of a data set of public size enter a total: all of them, or as many as are surely present.

    Attributes:
        noise: what is added to the number of present records; None if it is declared that no record is missing.
        miss: the probability with which more records are summed than are present; 0 without noise.
    """

    noise: Noise | None = None
    miss: float = 0.0

    def summed(self, noisy: Fraction, n: int) -> int:
        """The number of records that are summed, given the noisy number of present ones of n."""
        return n if self.noise is None else min(max(math.floor(noisy - self.noise.beyond(self.miss)), 1), n)

    def check(self, records: Records, score: Score, n: int) -> None:
        """Raise InvalidData for records of another type than the score's, or of another number than n."""
        from privatest.engines.records import Tallied, check_count  # planning needs no engine

        (records if self.noise is None else Tallied(records)).check(score)
        check_count(records.count(), n)

    def draw(self, records: Records, score: Score, noise: Noise, n: int, source: RandomSource) -> list[Fraction]:
        """Draw the noisy total of the scores and, if it is measured, the noisy number of present records."""
        if self.noise is None:
            return [records.total(score) + noise.draw(source)]
        from privatest.engines.records import Tallied  # planning needs no engine

        present = Tallied(records).present(score)
        number = present.count + self.noise.draw(source)
        total = present.sum_of(self.summed(number, n), partial(draw_some, source))
        return [total + noise.draw(source), number]


@dataclass(frozen=True)
class PresentCount:
    """About how many records are present.

    Attributes:
        about: the noisy number, moved to the nearest possible one.
        interval: holds the number with a probability of at least the confidence.
    """

    about: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, noise: Noise, noisy: Fraction, confidence: float, most: float) -> PresentCount:
        """The count from a noisy number; there are at most ``most`` records."""
        away, number = noise.beyond((1 - confidence) / 2), float(noisy)
        about, low, high = (min(max(value, 0.0), most) for value in (number, number - away, number + away))
        return cls(about, (low, high))


@dataclass(frozen=True)
class AnsweredRecords:
    """Which records an answer is about, and about how many of all these are, in words for people.

    Attributes:
        records: what a record must be, in words: "present", "0 or 1"; empty if the number was not measured.
        present, intervals: about how many such records there are, and the interval of that number, for each group.
        n: the number of all records, for each group.
        hidden: whether n is the expected number, because the true one is not public.
    """

    records: str = ""
    present: tuple[float, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    n: tuple[int, ...] = ()
    hidden: bool = False

    @property
    def few(self) -> bool:
        """Whether less than half of the records, of some group, may be of that kind."""
        return any(2 * low < n for (low, _), n in zip(self.intervals, self.n, strict=True))

    @property
    def none(self) -> bool:
        """Whether there may be no such record, in some group, so that there is no answer about them."""
        return any(low <= 0 for low, _ in self.intervals)

    @property
    def words(self) -> str:
        """For the middle of a sentence: " among the records that are 0 or 1 (about 1,990 of 2,000)"."""
        if not self.records:
            return ""
        of = " of the expected " if self.hidden else " of "
        numbers = (f"{one:,.0f}{of}{n:,}" for one, n in zip(self.present, self.n, strict=True))
        return f" among the records that are {self.records} (about {' and '.join(numbers)})"

    @property
    def warning(self) -> str:
        """What an answer begins with if most records may be of another kind; else empty."""
        if not self.few:
            return ""
        hidden = [low <= 0 for (low, high), n in zip(self.intervals, self.n, strict=True) if 2 * low < n <= high]
        if hidden:
            some = "any of them is" if any(hidden) else "most of them are"
            return f"TOO FEW RECORDS for this budget: the noise hides whether {some} {self.records}."
        most, way = "ALL" if self.none else "MORE THAN HALF", ""
        if self.records == "0 or 1":
            way = (
                " Labels: name the one that counts, success='Yes' or 'categorical(Yes=?)'. "
                "Numbers: name a cut, 'share_above(5, ?)'."
            )
        elif self.records != "present":
            way = " Numbers stored as text are no numbers: convert them, or say how they are written (pt.data.read_as)."
        kind = "missing" if self.records == "present" else f"missing, or not {self.records}"
        return f"{most} of the records may be {kind}: look at the column (pt.check).{way}"

    def qualified(self, answer: str) -> str:
        """The answer after what does not count; only the warning if there may be no record to answer for."""
        if self.none:
            return f"{self.warning} Nothing is known of the records that are {self.records}: report no number."
        left = sum(n - one for one, n in zip(self.present, self.n, strict=True))
        if self.few or all(high > MOSTLY * n for (_, high), n in zip(self.intervals, self.n, strict=True)):
            return f"{self.warning} {answer}".lstrip()
        kind = "missing" if self.records == "present" else f"missing, or not {self.records}"
        return f"About {left:,.0f} records are {kind}, and do not count: pt.check tells what they are. {answer}"

    def facts(self, missing: str, present: Any, interval: Any, confidence: float) -> tuple[list[Fact], list[Fact]]:
        """The facts of a release about missing records, and the warning that it begins with."""
        if not self.records:
            return [missing_fact(missing, measured=False)], []
        facts = [
            Fact("present", present, f"records are {self.records}, with noise"),
            Fact("present_interval", interval, f"holds that number with probability {confidence:g} at least"),
        ]
        return facts, [Fact("few_present", True, self.warning)] if self.few else []
