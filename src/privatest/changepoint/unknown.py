"""An unknown alternative: blocks with the private goodness-of-fit test (the paper's last reduction)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.changepoint.bits import BitDesign, Bits
from privatest.changepoint.designs import Design, bit_design
from privatest.engines.protocol import counter, indexer
from privatest.fit import FitTest, fit_design, fit_sample_size
from privatest.fit.histogram import symbols
from privatest.noise import Source

__all__ = ["unknown_design"]

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
        size = fit_sample_size(null, distance=distance, epsilon=epsilon, alpha=error, beta=error)
        test = fit_design(null, distance=distance, epsilon=epsilon, n=size, alpha=error)
        made = BitDesign(test.n, test.alpha, test.beta)
        names = test.domain.null, f"any law at distance {distance:g} or more"
        found.append(bit_design("fit", made, epsilon, fit_bits(test), beta, false_alarm, None, names))
    return min(found, key=lambda one: float("inf") if one.accuracy is None else one.accuracy)


def fit_bits(test: FitTest) -> Bits:
    """The bits of a goodness-of-fit test on blocks of test.n records."""

    def bits(records: Any, n: int, source: Source) -> Integers:
        votes = []
        cells = test.domain.cells
        records.check(counter(cells))
        records.block_totals(counter(cells), test.n)  # refuses records whose order leaves open which block they are in
        found = records.series(indexer(cells))
        for first in range(0, n - test.n + 1, test.n):
            counts = np.bincount(found[first : first + test.n], minlength=cells.count + 1)
            counts = symbols(counts, test.odd_symbol)
            if test.candidate.grains is not None:
                counts = test.candidate.grains.draw(counts, source)
            noisy = test.candidate.excess.of(counts) + test.noise.draw(source)
            votes.append(-1 if noisy > test.cutoff else 1)
        return np.array(votes, dtype=np.int64)

    return bits
