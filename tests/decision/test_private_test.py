"""Designed tests: what they decide and release, that they refuse before they draw, and that documents are strict."""

from __future__ import annotations

import gc
import math
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.decision import PrivateTest
from privatest.errors import InvalidData
from privatest.privacy import Pure, Tulap
from privatest.scores import LabelCells, Score
from tests.laws.designs import DESIGNS, designed, sample

PRIVATE = [name for name in DESIGNS if DESIGNS[name].kind in ("tight", "scllr", "ncllr")]


def data(name: str, seed: int = 0) -> Any:
    return sample(name, "null", np.random.default_rng(seed), DESIGNS[name].n)


class TestRelease:
    def test_a_seeded_run_is_simulated_and_can_be_repeated(self) -> None:
        test = designed("tight, normal")
        records = data("tight, normal")
        runs = [test.run(records, rng=np.random.default_rng(7)) for _ in range(2)]
        assert runs[0] == runs[1]
        assert runs[0].simulated
        assert not runs[0].private
        assert "SIMULATED, not private" in str(runs[0])
        assert runs[0] != test.run(records, rng=np.random.default_rng(8))
        real = test.run(records)
        assert not real.simulated
        assert real.private
        assert len({test.run(records).statistic for _ in range(5)}) > 1

    def test_the_release_is_the_noise_on_the_total(self) -> None:
        """The same seed, the noise drawn by hand."""
        from privatest.privacy import seeded_source

        for name in PRIVATE:
            test, records = designed(name), data(name)
            noise = test.noise.draw(seeded_source(np.random.default_rng(3)))
            if isinstance(test.score.cells, LabelCells):
                total = sum(int(test.score.table[test.score.cells.index_of(r)]) for r in list(records))
            else:
                total = int(test.score.of_numbers(records).sum())
            release = test.run(records, rng=np.random.default_rng(3))
            assert release == test.release(total + noise, simulated=True)


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


def test_odd_records_change_the_release_only_through_their_fixed_score() -> None:
    """Whatever odd thing a record is, the release is the same: no odd record can be told from another."""
    test = designed("tight, normal")
    records: list[Any] = np.random.default_rng(2).normal(size=15).tolist()
    releases = set()
    for odd in (None, math.nan, math.inf, "x", [1], object(), 10**400, b"", {}):
        releases.add(test.run([*records[:-1], odd], rng=np.random.default_rng(4)))
    assert len(releases) == 1


def test_what_the_data_fit() -> None:
    """Data from P, from Q, from halfway between them and from beyond; at five times the records for advantage 0.99."""
    enough = pt.sample_size("normal(0, 1)", "normal(1, 1)", epsilon=1, advantage=0.99)
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=5 * enough)
    rng = np.random.default_rng(8)
    shares = {}
    for name, mean in (("P", 0.0), ("Q", 1.0), ("middle", 0.5), ("beyond", 3.0)):
        said = [test.run(rng.normal(mean, 1, test.n), rng=rng).fits for _ in range(25)]
        shares[name] = said.count("neither") / len(said)
    assert shares["P"] <= 0.05  # 0.0005, computed
    assert shares["Q"] <= 0.05
    assert shares["middle"] >= 0.95  # 0.9992, computed
    assert shares["beyond"] == 1
    nothing = test.run([float("nan")] * test.n)
    assert nothing.fits == "neither"
    assert "fit neither P nor Q" in nothing.sentence
    assert "fit NEITHER" in str(nothing)
