"""When did it change? The whole of offline detection in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from privatest.changepoint.plan import plan_change
from privatest.changepoint.point import ChangePoint
from privatest.engines.protocol import ORDERED
from privatest.engines.series import open_for
from privatest.errors import InvalidData
from privatest.rational import Number

__all__ = ["detect_change"]


def detect_change(
    data: Any,
    null: Any,
    alternative: Any = None,
    *,
    distance: float | None = None,
    epsilon: Number,
    beta: float = 0.1,
    method: str = "auto",
    false_alarm: float | None = None,
    column: str | None = None,
    order: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> ChangePoint:
    """Where data in order of time changed from P (``null``) to Q (``alternative``), with epsilon-privacy.

    The index is that of the first record of the new regime, counted from 0. What is guaranteed: :class:`ChangePoint`.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``; in order of time, or in that of the column ``order``.
        null, alternative, distance, epsilon, beta, method, false_alarm: as for :func:`plan_change`.
        column: which column holds the records.
        order: which column gives the order of time; None where the records lie in that order.
        ledger, dataset, request: charge epsilon to the data set's budget before anything is computed. The same
            request again returns the same answer, free of charge.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The answer
            then says that it is simulated, and is not private.

    >>> data = [0, 0, 1, 0, 0] * 30 + [1, 1, 1, 0, 1] * 30
    >>> found = detect_change(data, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(2))
    >>> abs(found.index - 150) <= found.accuracy, found.changed, found.simulated
    (True, None, True)
    """
    records = open_for(ORDERED, data, column=column, order=order)
    n = records.count()
    if n == 0:
        raise InvalidData("The data have no records. Pass at least one block of them.")
    plan = plan_change(
        null,
        alternative,
        distance=distance,
        epsilon=epsilon,
        n=n,
        beta=beta,
        method=method,
        false_alarm=false_alarm,
    )
    where, paying = {"column": column, "order": order}, {"ledger": ledger, "dataset": dataset, "request": request}
    return plan.detect_in(lambda: records, where, data=data, rng=rng, **paying)
