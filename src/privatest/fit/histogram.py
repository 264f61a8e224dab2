"""How many records each symbol has, from any engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privatest.engines import Records
from privatest.engines.protocol import counter
from privatest.scores import Cells

__all__ = ["histogram", "symbols"]

Integers = npt.NDArray[np.int64]


def histogram(records: Records, cells: Cells, odd: int) -> Integers:
    """Counts of the symbols; records that make no sense count as symbol ``odd``.

    The counts are raw: they must not leave the process except through a test's noise.
    """
    records.check(counter(cells))
    return symbols(np.array(records.histogram(cells), dtype=np.int64), odd)


def symbols(counts: Integers, odd: int) -> Integers:
    """Counts of the cells, the odd cell last, as counts of the symbols."""
    found = counts[:-1].copy()
    found[odd] += counts[-1]
    return found
