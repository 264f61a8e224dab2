"""Privacy verified, not argued: every data set of a small domain, every neighbour, exact output probabilities."""

from __future__ import annotations

import numpy as np

from privatest.fit import design_fit


def test_a_record_that_makes_no_sense_counts_as_the_most_likely_symbol() -> None:
    test = design_fit({"a": 0.2, "b": 0.5, "c": 0.3}, distance=0.3, epsilon=1, n=6)
    assert test.odd_symbol == 1
    rng = np.random.default_rng
    plain = test.run(["a", "b", "b", "c", "b", "b"], rng=rng(7))
    odd = test.run(["a", "b", None, "c", float("nan"), ["unhashable"]], rng=rng(7))
    assert plain == odd
