"""Base classes of change-point detectors, and the curve that bounds how far off an index may be.

Simulations here are of public quantities (the laws of scores under P and Q), seeded, and never see data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privatest.changepoint.cusum import SuffixAlarm
from privatest.charge_before_release import Draw
from privatest.engines import Records
from privatest.errors import InvalidDocument
from privatest.numbers import Floats, Integers
from privatest.privacy import Notion, RandomSource
from privatest.scores import Cells, Score

CONFIDENCE = 0.999
"""The probability that a bound from simulations holds."""


class Located(NamedTuple):
    """The answer of a detector.

    Attributes:
        indices: the first record of each new regime, in ascending order; empty for "no change".
        first: the regime at the start: 0 for P, 1 for Q.
    """

    indices: tuple[int, ...]
    first: int = 0


class Detector(ABC):
    """A mechanism that locates changes in records in order of time. Each method is a frozen dataclass below it.

    Guarantees: what is drawn meets every notion for which :meth:`meets` is true, for one record that is replaced. The
    answer is computed from the draw alone.
    """

    kind: ClassVar[str]

    block: int
    """The number of records in a block, or between two candidates."""

    @property
    def clamp(self) -> tuple[float, float] | None:
        """The smallest and the largest score of one record in nats; None if records have no scores."""
        return None

    @property
    def threshold(self) -> int | None:
        """The level that the blocks' votes must exceed for "changed"; None if the answer always names a change."""
        return None

    @property
    def false_alarm(self) -> float | None:
        """A bound on the probability of "changed" if nothing changed; None if the answer always names a change."""
        return None

    @property
    @abstractmethod
    def record_cells(self) -> Cells:
        """The cells that records are sorted into."""

    @abstractmethod
    def meets(self, notion: Notion) -> bool:
        """Whether what is drawn meets a notion, for one record that is replaced."""

    @abstractmethod
    def check(self, records: Records) -> None:
        """Refuse records whose type does not fit, before anything is charged."""

    @abstractmethod
    def draw(self, records: Records, n: int, source: RandomSource) -> Draw:
        """Draw the private numbers for n records. Refuses ties of an order across the end of a block."""

    @abstractmethod
    def locate(self, drawn: Any, n: int) -> Located:
        """Compute the answer from what was drawn."""

    @abstractmethod
    def question(self) -> list[Any]:
        """Return the scores or the test as JSON, which the descriptions of P and Q may not determine."""

    def missed(self, distances: Integers) -> Floats | None:  # noqa: ARG002 - the default of those without an alarm
        """Bounds on Pr["no change"] for changes at these distances from the end; None if a change is always named."""
        return None


class ScoredDetector(Detector):
    """Base of detectors that use nothing of a record but its score."""

    score: Score

    @property
    def clamp(self) -> tuple[float, float]:
        return self.score.bounds()

    @property
    def record_cells(self) -> Cells:
        return self.score.cells

    def question(self) -> list[Any]:
        return [self.score.to_dict()]

    def check(self, records: Records) -> None:
        records.check(self.score)


class BlocksDetector(Detector):
    """Base of detectors that also decide whether there was a change: an alarm adds up the votes of their blocks."""

    @property
    @abstractmethod
    def model(self) -> Any:
        """The laws of the blocks' releases and the ``votes`` that follow from them."""

    @cached_property
    def alarm(self) -> SuffixAlarm | None:
        """The decision whether there was a change; None if the answer always names a change."""
        if self.threshold is None or self.false_alarm is None:
            return None
        votes: tuple[Integers, Floats, Floats] = self.model.votes
        return SuffixAlarm(*votes, self.threshold, self.false_alarm)

    def missed(self, distances: Integers) -> Floats | None:
        return None if self.alarm is None else self.model.missed(self.alarm, distances)


@dataclass(frozen=True, eq=False)
class FailureCurve:
    """Bounds on Pr[abs(index - k*) > a] for increasing distances a. The last bound also holds beyond the last distance.

    Guarantees: each bound is exact if ``runs`` is 0, and else holds with confidence 0.999, from ``runs`` simulations.
    Since both the truth and the estimates fall with a, the confidence also holds for the a that a target chooses.
    """

    distances: Integers
    failures: Floats
    runs: int = 0

    def __post_init__(self) -> None:
        if not 0 < len(self.distances) == len(self.failures) or np.any(np.diff(self.distances) <= 0) or self.runs < 0:
            raise InvalidDocument("The curve of the failures does not fit together.")

    def accuracy(self, beta: float, missed: Floats | None = None) -> int | None:
        """The smallest a whose failure probability, plus ``missed`` at a, is at most beta; None if there is none."""
        total = self.failures if missed is None else self.failures + missed
        enough = np.flatnonzero(total <= beta)
        return int(self.distances[enough[0]]) if len(enough) else None

    def quantile(self, beta: float, missed: Floats | None = None) -> float:
        """The accuracy, interpolated between the distances to compare models; infinite if beta is not reached."""
        total = self.failures if missed is None else self.failures + missed
        below = np.flatnonzero(total <= beta)
        if len(below) == 0:
            return math.inf
        at = int(below[0])
        if at == 0:
            return float(self.distances[0])
        high, low = total[at - 1], total[at]
        share = (high - beta) / (high - low) if high > low else 1.0
        return float(self.distances[at - 1] + share * (self.distances[at] - self.distances[at - 1]))


def upper_bounds(means: Floats, runs: int, confidence: float = CONFIDENCE) -> Floats:
    r"""Return upper confidence bounds for the means of variables in [0, 1], given averages over ``runs`` of them.

    The bound is the p above the average m with :math:`runs \cdot kl(m \| p) = \log 1/(1 - confidence)` (Chernoff,
    Hoeffding).
    """
    goal = -math.log1p(-confidence) / runs
    m = np.clip(means, 0.0, 1.0)
    low, high = m.copy(), np.ones_like(m)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Invariant: kl(m || low) <= goal < kl(m || high).
        for _ in range(60):
            p = (low + high) / 2
            kl = np.where(m > 0, m * np.log(m / p), 0.0) + np.where(m < 1, (1 - m) * np.log((1 - m) / (1 - p)), 0.0)
            inside = kl <= goal
            low, high = np.where(inside, p, low), np.where(inside, high, p)
    return high


def worst_of(curves: list[FailureCurve]) -> FailureCurve:
    """Return the pointwise largest of several curves over the same distances."""
    failures = np.max([curve.failures for curve in curves], axis=0)
    return FailureCurve(curves[0].distances, failures, min(curve.runs for curve in curves))
