"""An unknown alternative: blocks with the private goodness-of-fit test (the paper's last reduction)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.changepoint.bits import BitDesign, Bits
from privatest.changepoint.designs import Design, bit_design
from privatest.engines.protocol import block_ends, counter, indexer
from privatest.fit import FitTest, fit_design, fit_sample_size
from privatest.fit.histogram import symbols
from privatest.noise import Source
from privatest.pairs import as_distribution

__all__ = ["block_test", "fit_bits", "fit_vote", "unknown_design"]

Integers = npt.NDArray[np.int64]

# Error rates of the blocks' tests to try: blocks grow slowly as the errors fall, and fewer of them are then needed.
ERRORS = (1 / 6, 0.05)


def unknown_design(null: Any, distance: float, epsilon: Fraction, beta: float, false_alarm: float | None) -> Design:
    """The detector for a change from P to any law at least ``distance`` away.

    Guarantees: a block of the new regime is taken for an old one with at most the test's type II error, whatever the
    new law is; the index is the further off the larger that error is, so the accuracy holds for all of them.
    """
    found = []
    for error in ERRORS:
        test = block_test(null, distance, epsilon, error)
        made = BitDesign(test.n, test.alpha, test.beta)
        probe = counter(test.domain.cells)
        names = test.domain.null, f"any law at distance {distance!r} or more"
        one = bit_design("fit", made, epsilon, fit_bits(test), beta, false_alarm, None, names, probe)
        found.append(replace(one, parts=(test,), named=as_distribution(null).named))
    return min(found, key=lambda one: float("inf") if one.accuracy is None else one.accuracy)


def block_test(null: Any, distance: float, epsilon: Fraction, error: float) -> FitTest:
    """The goodness-of-fit test on the smallest block at which both of its errors are at most ``error``."""
    size = fit_sample_size(null, distance=distance, epsilon=epsilon, alpha=error, beta=error)
    return fit_design(null, distance=distance, epsilon=epsilon, n=size, alpha=error)


def fit_vote(test: FitTest, counts: Integers, source: Source) -> int:
    """The bit of one block, from its histogram: -1 where the test says that the block is new."""
    if test.candidate.grains is not None:
        counts = test.candidate.grains.draw(counts, source)
    noisy = test.candidate.excess.of(counts) + test.noise.draw(source)
    return -1 if noisy > test.cutoff else 1


def fit_bits(test: FitTest) -> Bits:
    """The bits of a goodness-of-fit test on blocks of test.n records."""

    def bits(records: Any, n: int, source: Source) -> Integers:
        votes = []
        cells = test.domain.cells
        records.check(counter(cells))
        found = records.series(indexer(cells), block_ends(n, test.n))
        for first in range(0, n - test.n + 1, test.n):
            counts = np.bincount(found[first : first + test.n], minlength=cells.count + 1)
            votes.append(fit_vote(test, symbols(counts, test.odd_symbol), source))
        return np.array(votes, dtype=np.int64)

    return bits
