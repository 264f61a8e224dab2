"""Privacy verified, not argued: every data set of a small domain, every neighbour, exact output probabilities."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privatest.errors import InvalidDocument, InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.privacy import Tulap

SLACK = 1 + 1e-12


def test_an_object_with_too_little_noise_cannot_be_made() -> None:
    test = design_fit([0.25] * 4, distance=0.3, epsilon=1, n=40)
    with pytest.raises(InvalidInput, match="does not hide"):
        replace(test, noise=Tulap(Fraction(1), test.noise.width // 2))
    document = test.to_dict()
    document["noise"]["width"] = test.noise.width // 2
    with pytest.raises(InvalidDocument, match="does not hide"):
        FitTest.from_dict(document)
    document = test.to_dict()
    document["statistic"]["weights"] = [2 * w for w in document["statistic"]["weights"]]
    with pytest.raises(InvalidDocument, match="does not hide"):
        FitTest.from_dict(document)


def test_a_record_that_makes_no_sense_counts_as_the_most_likely_symbol() -> None:
    test = design_fit({"a": 0.2, "b": 0.5, "c": 0.3}, distance=0.3, epsilon=1, n=6)
    assert test.odd_symbol == 1
    rng = np.random.default_rng
    plain = test.run(["a", "b", "b", "c", "b", "b"], rng=rng(7))
    odd = test.run(["a", "b", None, "c", float("nan"), ["unhashable"]], rng=rng(7))
    assert plain == odd


def test_release_is_a_function_of_the_noisy_statistic_alone() -> None:
    test = design_fit([0.3, 0.3, 0.4], distance=0.3, epsilon=1, n=12)
    noisy = Fraction(test.candidate.excess.of(np.array([2, 3, 7]))) + test.noise.offset
    release = test.release(noisy)
    text = str(release.to_dict())
    assert set(release.to_dict()) == {
        *("decision", "statistic", "pvalue", "epsilon", "n", "test", "neighbours", "simulated", "private"),
        *("receipt", "replayed", "pvalue_alternative", "fits"),
    }
    assert "[" not in text
    assert test.release(noisy) == release
