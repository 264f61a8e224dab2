"""P or Q? The whole of it in one call: count the records, design the test for them, run it."""

from __future__ import annotations

from typing import Any

import numpy as np

from privatest.decision import Release
from privatest.errors import InvalidInput
from privatest.power.sample_sizes import design
from privatest.rational import Number

__all__ = ["decide"]


def decide(
    data: Any,
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    n: int | None = None,
    alpha: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    column: str | None = None,
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> Release:
    """Whether the data come from P (``null``) or from Q (``alternative``), with epsilon-privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null, alternative, epsilon, alpha, test, clamp, threshold, neighbours, max_rows_per_unit: as for
            :func:`privatest.design`.
        n: number of records; by default that of the data, which is public. With neighbours "add-remove" it is not:
            say how many you expect.
        column, unit, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> decide([0, 0, 1, 0, 0] * 20, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=1).decision
    'null'
    """
    from privatest import engines  # planning needs none of them

    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and a test made "
                "for it would tell it. Say how many you expect: n=..."
            )
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    made = design(
        null,
        alternative,
        epsilon=epsilon,
        n=n,
        alpha=alpha,
        test=test,
        clamp=clamp,
        threshold=threshold,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
    )
    where = {"column": column, "unit": unit}
    return made.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng)
