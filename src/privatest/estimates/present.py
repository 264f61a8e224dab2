"""How many records are present: measured with noise, within the budget, so that an answer is about these alone.

A record that is missing, unreadable or outside the family's support has no score that would be right in an estimate.
So the number M of the others is noised first. It leaves a number m that is public, and seldom above M; the total that
the answer is made of is that of m of the records that are present, chosen at random. All that follows knows its number
of records, as if there had been m from the start: no interval, p-value or power needs a theory of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privatest import numbers
from privatest.facts import Fact
from privatest.privacy import Noise, Notion, canonical_noise
from privatest.privacy.notions import Neighbourhood

MISSING = ("count", "none")
"""What is said about missing records: how many are present is measured, or there are none."""
COUNTED = "the answer is about the records that are present; how many are is measured"
SPELLED = (
    " A label is met as it is written: 'yes' is not 'Yes' (but pt.data.read_as(data, fold_case=True) reads both), and "
    "1 is not '1'."
)
UNMEASURED = "declared: no record is missing or unreadable; one that is counts by its fixed score"
MOSTLY = 0.95
"""Where at most this part of the records can be what the answer is about, it says what becomes of the others."""
PARTS = tuple(Fraction(part, 100) for part in (3, 5, 7, 10, 15, 20, 30, 40, 50))
"""Which part of the budget the number of present records may cost, where the number of all is public."""
SPREAD = 0.15
"""About the variance of one record's score, in squares of its width: what a part is tuned for."""
FINE = 512
"""Lattice steps of a width, where a part is tuned."""


def public_number(noise: Noise, noisy: Fraction, miss: float, most: int) -> int:
    """How many records are summed where so many are present, with noise: more than there are with probability miss."""
    return min(max(math.floor(noisy - noise.beyond(miss)), 1), most)


def part_for_counting(notion: Notion, n: int, around: Neighbourhood, miss: float) -> Fraction:
    """Which part of a budget makes the error of a mean smallest: a larger part wastes noise, a smaller one records."""
    found = []
    for part in PARTS:
        left = n - canonical_noise(notion.split(part), around.rows).beyond(miss)
        noise = canonical_noise(notion.split(1 - part), around.rows * FINE).variance / FINE**2
        found.append((left * SPREAD + noise) / left**2 if left > 0 else math.inf)
    return PARTS[found.index(min(found))] if min(found) < math.inf else PARTS[-1]


@dataclass(frozen=True)
class PresentCount:
    """About how many records are present, of how many.

    Attributes:
        about: the noisy number, moved to where it can be.
        interval: holds the number with a probability of ``confidence`` at least.
    """

    about: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, noise: Noise, noisy: Fraction, confidence: float, most: float) -> PresentCount:
        """From a noisy number; there are ``most`` records at most."""
        away = noise.beyond((1 - confidence) / 2)

        def within(value: float) -> float:
            return min(max(value, 0.0), most)

        count = float(noisy)
        return cls(within(count), (within(count - away), within(count + away)))


@dataclass(frozen=True)
class Among:
    """Which records an answer is about, and about how many of how many these are, as it is said to people.

    Attributes:
        records: what a record must be, in words: "present", "0 or 1"; empty where the number was not measured.
        present, intervals: about how many there are, and where that number lies; one of each for each group.
        n: of how many, each.
        hidden: whether these are the numbers expected, the true ones not being public.
    """

    records: str = ""
    present: tuple[float, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    n: tuple[int, ...] = ()
    hidden: bool = False

    @property
    def few(self) -> bool:
        """Whether less than half of the records (of some group) may be of that kind."""
        return any(2 * low < n for (low, _), n in zip(self.intervals, self.n, strict=True))

    @property
    def none(self) -> bool:
        """Whether there may be no such record (in some group) at all: then there is no answer about them."""
        return any(low <= 0 for low, _ in self.intervals)

    @property
    def words(self) -> str:
        """For the middle of a sentence: " among the records that are 0 or 1 (about 1,990 of 2,000)"."""
        if not self.records:
            return ""
        of = " of the expected " if self.hidden else " of "
        told = (f"{one:,.0f}{of}{n:,}" for one, n in zip(self.present, self.n, strict=True))
        return f" among the records that are {self.records} (about {' and '.join(told)})"

    @property
    def doubt(self) -> str:
        """What an answer begins with where most records may be of another kind; empty where they are not."""
        if not self.few:
            return ""
        if any(low <= 0 and high >= n for (low, high), n in zip(self.intervals, self.n, strict=True)):
            return f"TOO FEW RECORDS for this budget: the noise hides whether any of them is {self.records}."
        most, way = "ALL" if self.none else "MORE THAN HALF", ""
        if self.records == "0 or 1":
            way = " Labels: name the one that counts, success='Yes'. Numbers: name a cut, 'share_above(5, ?)'."
        elif self.records != "present":
            way = " Numbers stored as text are no numbers: convert them, or say how they are written (pt.data.read_as)."
        kind = "missing" if self.records == "present" else f"missing, or not {self.records}"
        return f"{most} of the records may be {kind}: look at the column (pt.check).{way}"

    def told(self, answer: str) -> str:
        """The sentence of a release: first what does not count; no number where there may be no record at all."""
        if self.none:
            return f"{self.doubt} Nothing is known of the records that are {self.records}: report no number."
        left = sum(n - one for one, n in zip(self.present, self.n, strict=True))
        if self.few or all(high > MOSTLY * n for (_, high), n in zip(self.intervals, self.n, strict=True)):
            return f"{self.doubt} {answer}".lstrip()
        kind = "missing" if self.records == "present" else f"missing, or not {self.records}"
        return f"About {left:,.0f} records are {kind}, and do not count: pt.check tells what they are. {answer}"

    def facts(self, missing: str, present: Any, interval: Any, confidence: float) -> tuple[list[Fact], list[Fact]]:
        """What a release says of missing records; and what it begins with where they may be most."""
        if not self.records:
            return [Fact("missing", missing, UNMEASURED)], []
        said = [
            Fact("present", present, f"records are {self.records}, with noise"),
            Fact("present_interval", interval, f"holds that number with probability {confidence:g} at least"),
        ]
        return said, [Fact("few_present", True, self.doubt)] if self.few else []


def check_missing(missing: object) -> None:
    """Refuse anything else than the two."""
    numbers.choice(MISSING, missing=missing)
