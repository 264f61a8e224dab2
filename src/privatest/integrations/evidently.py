"""A statistical test for Evidently that is differentially private. Needs Evidently 0.7 or later."""

from __future__ import annotations

from typing import Any

import privatest as pt
from privatest import errors

__all__ = ["private_stattest"]


def private_stattest(
    null: Any,
    alternative: Any,
    *,
    epsilon: float,
    n: int,
    name: str = "privatest",
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
) -> Any:
    """Register a test of Evidently's that says whether the current column still comes from P, or from Q.

    Give what it returns, or its name, wherever Evidently takes a method of drift: ``ValueDrift(column="x",
    method=...)``. The drift score is the p-value of P; drift is detected where it is at most Evidently's threshold.

    Guarantees: what the test hands to Evidently, score and verdict, is epsilon-differentially private for adding or
    removing one record of the current column. (Evidently leaves missing and infinite values out before a test sees the
    column, so the number of records is not fixed.) Every call is a release of its own: a report that asks twice spends
    epsilon twice, unless a ledger replays the request.

    **The report is not private.** Evidently draws the raw columns beside the score: histograms, means, scatter plots,
    counts. Publish score and verdict (``result.dict()``'s value), never the page. The reference column is not looked
    at: P stands in its place.

    Args:
        null, alternative: P and Q, as for :func:`privatest.design`.
        epsilon: privacy loss of each call.
        n: about how many records a current column has, known without looking at it; error rates are exact at n.
        name: what Evidently is to know the test by.
        ledger, dataset, request: charge each call to a ledger, as ``PrivateTest.run`` does; one request, one release.
    """
    try:  # an extra
        from evidently.legacy.calculations.stattests import StatTest, register_stattest
        from evidently.legacy.core import ColumnType
    except ImportError:
        raise errors.MissingExtra.of("private_stattest needs evidently.", "evidently") from None
    test = pt.design(null, alternative, epsilon=epsilon, n=n, neighbours="add-remove")

    def compared(_reference: Any, current: Any, _kind: Any, threshold: float) -> tuple[float, bool]:
        paying: Any = {} if ledger is None else {"ledger": ledger, "dataset": dataset, "request": request}
        pvalue = test.run(current, **paying).pvalue
        assert pvalue is not None  # of a test that releases its statistic
        return pvalue, pvalue <= threshold

    made = StatTest(
        name=name,
        display_name=f"privatest, epsilon={float(test.epsilon):g} (p-value; the pictures beside it are raw data)",
        allowed_feature_types=[ColumnType.Numerical, ColumnType.Categorical],
        default_threshold=0.05,
    )
    register_stattest(made, default_impl=compared)
    return made
