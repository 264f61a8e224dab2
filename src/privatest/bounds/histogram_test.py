r"""A test that knows the histogram of the records: any private decision rule on a finite domain.

The probability of "null" is a fraction for each histogram, the coin is exact, and privacy is verified in
integers: with E a rational below e^epsilon, every two neighbouring histograms have

.. math:: g(h) \le E\, g(h') + \delta, \qquad 1 - g(h') \le E\, (1 - g(h)) + \delta,

delta = 0 for epsilon-DP, E = 1 for stability in total variation. A notion whose h is curved has no such line, and no
test of this kind: a table of rationals cannot meet it provably.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.charge import Draw
from privatest.decision import Release
from privatest.decision.design import Decision, Design, hidden_fact
from privatest.documents import fraction_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidDocument, InvalidInput
from privatest.hypotheses import DiscretePair, Pair
from privatest.markup import Fact, Probability
from privatest.numbers import Floats, Integers
from privatest.privacy import Notion, Pure, Source, as_notion
from privatest.privacy.asked import told
from privatest.privacy.draws import draw_rows
from privatest.privacy.ladder import exact_line
from privatest.privacy.randomness import bernoulli
from privatest.scores import IntegerCells, LabelCells
from privatest.scores.score import cells_from_dict
from privatest.theory.histograms import Classes, Histograms
from privatest.theory.wasserstein import UNITS, Wasserstein

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records

__all__ = ["CURVED", "DENOMINATOR", "FORMAT", "HistogramTest", "dual_test"]


FORMAT = "privatest/histogram-test/1"
# Numerators stay below 2^53: every JSON reader keeps them whole.
DENOMINATOR = 1 << 50
MOST_HISTOGRAMS = 5_000_000
CURVED = "Its advantage is known; for a test to run use design(), or pure, approx or tv."


@dataclass(frozen=True, eq=False)
class HistogramTest(Design[Release]):
    r"""Decide P ("null") with probability ``numerators[h] / DENOMINATOR`` for the histogram h of the records.

    Guarantees: private in the sense of its notion (replace one record, n public), verified exactly over all
    neighbouring histograms whenever such an object is made; ``alpha`` and ``beta`` are exact to 1e-12.

    Attributes:
        cells: the labels or integers of the domain.
        members: the class of each cell, then the class that counts for a record that makes no sense: fixed at
            design time, the class whose ratio is nearest to 0.
        null_law, alternative_law: mass of each class under P and under Q.
        numerators: probability of "null" for each histogram of classes, in lexicographic order, in units of
            1/DENOMINATOR.
        notion: pure, approx or tv, with its budget.
        n: number of records.
        name: what a release says it came from.
        null, alternative: short descriptions of P and Q.
        neighbours: which pairs of data sets the guarantee compares: "replace".
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "histogram test"

    cells: LabelCells | IntegerCells
    members: Integers
    null_law: Floats
    alternative_law: Floats
    numerators: Integers
    notion: Notion
    n: int
    name: str = "optimum"
    null: str = "P"
    alternative: str = "Q"
    neighbours: str = "replace"

    def __post_init__(self) -> None:
        for array in (self.members, self.null_law, self.alternative_law, self.numerators):
            array.setflags(write=False)
        if self.neighbours != "replace":
            raise InvalidInput(f"neighbours={self.neighbours!r} must be 'replace'.")
        if len(self.numerators) != self.histograms.count:
            raise InvalidInput(
                f"{self.histograms.count} histograms of n={self.n} records need as many probabilities, "
                f"not {len(self.numerators)}."
            )
        if self.numerators.min() < 0 or self.numerators.max() > DENOMINATOR:
            raise InvalidInput(f"Probabilities must lie between 0 and {DENOMINATOR} / {DENOMINATOR}.")
        if exact_line(self.notion) is None:
            raise InvalidInput(f"{self.notion} has a curved h, which no table of fractions provably meets. {CURVED}")
        if not self.is_private():
            raise InvalidInput(
                f"The probabilities allow a privacy loss of {self.largest_log_ratio():.9g}, more than "
                f"{told(self.notion)}. Move them towards 1/2."
            )

    @classmethod
    def of_pair(
        cls, pair: Pair, classes: Classes, numerators: Integers, notion: Notion, n: int, name: str
    ) -> HistogramTest:
        """The test on the domain of a pair whose classes are ``classes``.

        Args:
            pair: P and Q on their common domain, which is finite.
            classes: cells of the domain that are told apart, see ``members``.
            numerators, notion, n, name: as for :class:`HistogramTest`.
        """
        assert isinstance(pair, DiscretePair)
        labelled = pair.kind == "labels"
        cells = LabelCells(pair.labels) if labelled else IntegerCells(pair.first, int(pair.last[-1]))
        members = np.append(classes.members, classes.odd)
        return cls(
            cells,
            members,
            classes.p.copy(),
            classes.q.copy(),
            numerators,
            notion,
            n,
            name,
            pair.null.describe(),
            pair.alternative.describe(),
        )

    @property
    def epsilon(self) -> float:
        """Privacy loss of one run, where the notion bounds it."""
        return float(self.notion.epsilon)

    @property
    def privacy(self) -> Any:
        """The notion of stability that every run meets."""
        return self.notion

    @property
    def private(self) -> bool:
        """Always: a test that is not cannot be made."""
        return True

    @cached_property
    def histograms(self) -> Histograms:
        """The histograms the probabilities belong to."""
        return Histograms(len(self.null_law), self.n)

    @cached_property
    def _extremes(self) -> tuple[Integers, Integers]:
        """Least and largest numerator among each set of mutual neighbours, where they differ."""
        among = self.numerators[self.histograms.rows]
        low, high = among.min(axis=1), among.max(axis=1)
        return low[low < high], high[low < high]

    def is_private(self) -> bool:
        """Whether both inequalities hold for all neighbours, in exact arithmetic, with a rational below e^epsilon."""
        line = exact_line(self.notion)
        assert line is not None, "made for a curved h"
        low, high = (ends.astype(object) for ends in self._extremes)
        # All times the denominators of the line: whole numbers.
        common = math.lcm(line.slope.denominator, line.height.denominator)
        top, more = int(line.slope * common), int(line.height * common) * DENOMINATOR
        null_kept = np.all(high * common <= low * top + more)
        return bool(null_kept and np.all((DENOMINATOR - low) * common <= (DENOMINATOR - high) * top + more))

    def largest_log_ratio(self) -> float:
        """The largest log-ratio of the probabilities of either decision over all neighbours."""
        low, high = (ends.astype(np.float64) for ends in self._extremes)
        if len(low) == 0:
            return 0.0
        with np.errstate(divide="ignore"):
            null = np.log(high) - np.log(low)
            alternative = np.log(DENOMINATOR - low) - np.log(DENOMINATOR - high)
        return float(max(null.max(), alternative.max()))

    def probability(self, histogram: Iterable[int]) -> Fraction:
        """Probability of "null" for the numbers of records in each class.

        Args:
            histogram: numbers of records in each class, n in all.
        """
        counts = np.array([list(histogram)], dtype=np.int64)
        fits = counts.shape[1] == self.histograms.classes and counts.min() >= 0 and counts.sum() == self.n
        if not fits:
            raise InvalidInput(
                f"histogram={counts[0].tolist()} must be {self.histograms.classes} counts that sum to n={self.n}."
            )
        return Fraction(int(self.numerators[self.histograms.rank(counts)[0]]), DENOMINATOR)

    @cached_property
    def alpha(self) -> float:
        """Type I error: probability of "alternative" under P."""
        law = self.histograms.law(self.null_law)
        return math.fsum((law * ((DENOMINATOR - self.numerators) / DENOMINATOR)).tolist())

    @cached_property
    def beta(self) -> float:
        """Type II error: probability of "null" under Q."""
        law = self.histograms.law(self.alternative_law)
        return math.fsum((law * (self.numerators / DENOMINATOR)).tolist())

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    @property
    def price(self) -> Fraction | Notion | None:
        """Epsilon, exactly, or the notion."""
        return self.notion.price

    @property
    def need(self) -> Need:
        """One row of each person."""
        from privatest.engines import Need  # planning needs no engine

        return Need()

    @property
    def outcome(self) -> type[Release]:
        """A release that carries the decision only."""
        return Release

    def question(self) -> dict[str, Any]:
        """The whole test."""
        return {"test": self.to_dict()}

    def check(self, records: Records) -> None:
        """Type and number; no law is needed."""
        from privatest.engines.protocol import check_count, counter  # planning needs no engine

        records.check(counter(self.cells))
        check_count(records.count(), self.n)

    def draw(self, records: Records, source: Source) -> Draw:
        """The decision, by an exact coin of the histogram's probability."""
        counts = np.zeros(self.histograms.classes, dtype=np.int64)
        np.add.at(counts, self.members, records.histogram(self.cells, partial(draw_rows, source)))
        numerator = int(self.numerators[self.histograms.rank(counts[None, :])[0]])
        return "null" if bernoulli(numerator, DENOMINATOR, source) else "alternative"

    def release(self, draw: Decision, *, simulated: bool = False) -> Release:
        """A release that carries the decision only."""
        said = None if isinstance(self.notion, Pure) else self.notion.text
        words: dict[str, Any] = {"simulated": simulated, "privacy": said}
        return Release(draw, None, None, self.epsilon, self.n, self.name, self.neighbours, **words)

    @property
    def chances(self) -> Floats:
        """Probability of "null" for each histogram."""
        return self.numerators / DENOMINATOR

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """Laws of the histogram's log ratio under P and Q, and how probably the test says "null" there."""
        from privatest import pictures

        return pictures.histogram_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the test."""
        return f"Histogram test {self.name!r} of {self.null} against {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question and the exact error rates."""
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            Fact("test", self.name, "where its probabilities come from"),
            *(
                [Fact("epsilon", self.epsilon, "privacy loss of one run")]
                if isinstance(self.notion, Pure)
                else [Fact("privacy", self.notion.text, "what one run keeps to")]
            ),
            Fact("n", self.n, "records, public"),
            Fact("alpha", Probability(self.alpha), "type I error: alternative under P; exact"),
            Fact("beta", Probability(self.beta), "type II error: null under Q; exact"),
            Fact("advantage", self.advantage, "1 - alpha - beta"),
            Fact("classes", self.histograms.classes, "of records of equal ratio"),
            Fact("histograms", self.histograms.count, "each with its own probability of saying null"),
            hidden_fact(self.neighbours, persons=False),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the test exactly."""
        return {
            "format": FORMAT,
            "name": self.name,
            "null": self.null,
            "alternative": self.alternative,
            **({"epsilon": str(self.notion.loss)} if isinstance(self.notion, Pure) else {"privacy": self.notion.text}),
            "n": self.n,
            "neighbours": self.neighbours,
            "cells": self.cells.to_dict(),
            "members": self.members.tolist(),
            "null_law": self.null_law.tolist(),
            "alternative_law": self.alternative_law.tolist(),
            "denominator": DENOMINATOR,
            "numerators": self.numerators.tolist(),
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> HistogramTest:
        cells = cells_from_dict(document["cells"])
        members, numerators = (_integers(document[key]) for key in ("members", "numerators"))
        laws = [np.array(document[key], dtype=np.float64) for key in ("null_law", "alternative_law")]
        notion = (
            as_notion(texts_from_json(document, "privacy")["privacy"])
            if "privacy" in document
            else Pure(numbers.positive(epsilon=fraction_from_json(document["epsilon"])))
        )
        n = wholes_from_json(document, "n", least=1)["n"]
        fits = (
            isinstance(cells, LabelCells | IntegerCells)
            and document["denominator"] == DENOMINATOR
            and len(members) == cells.count + 1
            and all(law.shape == laws[0].shape and law.ndim == 1 for law in laws)
            and 0 <= members.min() <= members.max() < len(laws[0])
            and all(np.all(law >= 0) and abs(math.fsum(law) - 1) < 1e-9 for law in laws)
            and len(numerators) == Histograms(len(laws[0]), n).count <= MOST_HISTOGRAMS
        )
        if not fits:
            raise InvalidDocument("The parts of the test do not fit together.")
        assert isinstance(cells, LabelCells | IntegerCells)
        texts = texts_from_json(document, "name", "null", "alternative", "neighbours")
        return cls(cells, members, laws[0], laws[1], numerators, notion, n, **texts)

    def __hash__(self) -> int:
        return hash((self.name, self.notion, self.n, self.numerators.tobytes()))

    def __repr__(self) -> str:
        return (
            f"HistogramTest({self.name!r}, null={self.null}, alternative={self.alternative}, "
            f"{told(self.notion)}, n={self.n}, {self.histograms.classes} classes of records, "
            f"{self.histograms.count} histograms, neighbours={self.neighbours!r})"
        )


def dual_test(distance: Wasserstein) -> HistogramTest:
    """The mechanism that says P with probability (1 + f)/4, f the distance's dual function.

    Guarantees: epsilon-DP, verified like any other; its advantage is exactly W/4.
    """
    numerators = (UNITS + distance.dual) * (DENOMINATOR // (4 * UNITS))
    return HistogramTest.of_pair(
        distance.pair, distance.classes, numerators, Pure(distance.epsilon), distance.n, "wasserstein"
    )


def _integers(values: Any) -> Integers:
    """A list of whole numbers, and nothing that merely rounds to them."""
    if not isinstance(values, list) or not values or any(type(value) is not int for value in values):
        raise InvalidDocument("A list of whole numbers is missing from the test or holds something else.")
    return np.array(values, dtype=np.int64)
