"""Plans: what stands beside the number of records."""

from __future__ import annotations

import pytest

import privatest as pt


@pytest.mark.parametrize("rates", [(0.3, 0.4), (0.2, 0.6)])
def test_nobody_needs_more_records_without_privacy(rates: tuple[float, float]) -> None:
    """The ratio of coins without a coin of its own misses its level by a step, and needs more than the noisy one."""
    P, Q = (f"bernoulli({rate})" for rate in rates)
    found = pt.plan(P, Q, epsilon=1, alpha=0.05, beta=0.1)
    assert found.nonprivate is not None
    assert found.nonprivate <= found.n
    alone = pt.sample_size(P, Q, epsilon=1, test="llr", alpha=0.05, beta=0.1)
    assert found.nonprivate == min(alone, found.n)
    if rates == (0.3, 0.4):
        assert alone > found.n
