"""The score of each number of a chunk, one by one: what ordered data need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privatest.engines.columns import CHUNK
from privatest.scores import DyadicCells, Score

__all__ = ["single_scores"]

Integers = npt.NDArray[np.int64]


def single_scores(score: Score) -> Callable[[npt.NDArray[np.float64], Integers], None]:
    """Writes the scores of a chunk of numbers; the fast path has the cells of ``cells.index``, computed in place."""
    cells, table = score.cells, score.table
    short = isinstance(cells, DyadicCells) and max(abs(cells.first), abs(cells.first + cells.size)) < 1 << 30
    if not isinstance(cells, DyadicCells) or not short or np.isfinite([cells.low, cells.high]).any():

        def plain(chunk: npt.NDArray[np.float64], out: Integers) -> None:
            np.take(table, cells.index(chunk), out=out)

        return plain
    first, last = float(cells.first), float(cells.first + cells.size - 1)
    buffer, narrow, place = np.empty(CHUNK), np.empty(CHUNK, dtype=np.int32), np.empty(CHUNK, dtype=np.intp)

    def dyadic(chunk: npt.NDArray[np.float64], out: Integers) -> None:
        work, size = buffer[: len(chunk)], len(chunk)
        with np.errstate(all="ignore"):
            np.multiply(chunk, cells.factor, out=work)
            if not np.isfinite(np.add.reduce(work)):  # NaN, infinities, or an overflow: the general path
                np.take(table, cells.index(chunk), out=out)
                return
            np.floor(work, out=work)
            np.clip(work, first, last, out=work)
            np.subtract(work, first, out=work)
        # By way of 32 bits: processors convert doubles to those in bulk, to 64 bits one by one.
        np.copyto(narrow[:size], work, casting="unsafe")
        np.copyto(place[:size], narrow[:size])
        np.take(table, place[:size], out=out, mode="clip")

    return dyadic
