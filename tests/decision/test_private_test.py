"""A designed test keeps nothing of the data that it was run on."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.decision import PrivateTest
from privatest.errors import InvalidData
from privatest.privacy import Pure, Tulap
from privatest.scores import LabelCells, Score
from tests.laws.designs import designed


class TestNothingRawIsKept:
    """A total that would be recognised wherever it turned up: 12 records of score 987654321."""

    mark = 987_654_321
    raw = 12 * mark

    @pytest.fixture
    def test(self) -> PrivateTest:
        table = np.array([0, self.mark, self.mark // 3])
        law = np.array([0.5, 0.5])
        score = Score(LabelCells(("no", "yes")), table, Fraction(0), Fraction(1), table[:2], law, law)
        return PrivateTest("tight", score, Tulap(Fraction(1), self.mark), Fraction(self.raw, 2), Pure(1), 12)

    def test_a_test_remembers_nothing_of_its_runs(self, test: PrivateTest) -> None:
        """What it computes for itself, when that is first needed, is of the design alone and stays as it is."""
        test.run(["yes"] * 12)
        before = {name: repr(value) for name, value in vars(test).items()}
        test.run(["no"] * 12)
        after = {name: repr(value) for name, value in vars(test).items()}
        assert before.items() <= after.items()
        known = set(after.values())
        for thing in (test.score, test.null_total, test.null_total._mirror, test.noise):
            known |= {repr(value) for value in vars(thing).values()}
        assert not any(str(self.raw) in text for text in known)

    def test_the_data_are_let_go(self, test: PrivateTest) -> None:
        class Records(list[str]):
            pass

        class Array(np.ndarray[Any, Any]):
            pass

        records = Records(["yes"] * 12)
        numbers = np.zeros(15).view(Array)
        alive = [weakref.ref(records), weakref.ref(numbers)]
        releases = [test.run(records), designed("tight, normal").run(numbers)]
        with pytest.raises(InvalidData):
            test.run(Records(records[:-1]))
        del records, numbers
        gc.collect()
        assert [ref() for ref in alive] == [None, None]
        assert len(releases) == 2
