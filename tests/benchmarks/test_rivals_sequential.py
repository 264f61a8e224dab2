"""The sequential rivals as published."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rivals_sequential import NEVER, dp_cusum, dp_sprt, priv_sprt, thresholds_for


def test_the_published_test_stops_where_it_was_measured_to() -> None:
    """322 records on average at epsilon 1, and no errors to speak of."""
    rng = np.random.default_rng(1)
    for rate in (0.3, 0.7):
        seen, said = dp_sprt((rng.random((200, 1200)) < rate).astype(np.int8), (0.3, 0.7), (0.05, 0.05), 1.0, rng)
        assert np.all(seen != NEVER)
        assert seen.mean() == pytest.approx(322, rel=0.08)
        assert abs(said.mean() - (rate == 0.7)) < 0.02


def test_without_noise_it_stops_at_once() -> None:
    rng = np.random.default_rng(2)
    seen, said = dp_sprt(np.ones((1, 400), dtype=np.int8), (0.3, 0.7), (0.05, 0.05), 1e6, rng)
    assert said.tolist() == [True]
    assert seen[0] < 10


def test_truncated_ratios_with_gaussian_noise() -> None:
    rng = np.random.default_rng(3)
    rows = [(2.0 * (rng.random((120, 500)) < rate) - 1) * 0.8473 for rate in (0.3, 0.7)]
    ends = thresholds_for(rows[0], rows[1], (0.1, 0.1), 0.8473, 4.0, 1e-5, rng)
    assert ends[0] == -ends[1] < 0
    seen, said = priv_sprt(rows[1], ends, 0.8473, 4.0, 1e-5, rng)
    assert said.mean() > 0.8
    assert np.mean(seen != NEVER) > 0.9


def test_the_noisy_cusum() -> None:
    rng = np.random.default_rng(4)
    rows = np.concatenate([np.full((5, 40), -1.0), np.full((5, 40), 1.0)], axis=1)
    assert dp_cusum(rows, 1e-9, 1.0, 9.5, rng).tolist() == [50] * 5
    assert dp_cusum(rows, 1e-9, 1.0, 99.0, rng).tolist() == [NEVER] * 5
