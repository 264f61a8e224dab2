"""What no private interval can beat: below every interval of ours, above the two-point bound, right without privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.bounds.domination import atoms_of
from privatest.bounds.interval_bound import _lower_sum, length_bound
from privatest.bounds.lower_bound import STEADY, _Search, advantage_bound, missed_bound
from privatest.hypotheses import as_distribution, make_pair
from privatest.privacy import Pure


@pytest.mark.parametrize(("epsilon", "n", "at"), [(1, 60, 0.3), (0.2, 60, 0.5), (5, 30, 0.1)])
def test_below_our_width_and_above_the_bound_from_two_points(epsilon: float, n: int, at: float, show: Any) -> None:
    design = pt.design_estimate("bernoulli(?)", epsilon=epsilon, n=n)
    width, bound = design.expected_width(at), design.width_bound(at)
    show(f"epsilon {epsilon}, n = {n}, rate {at}: width {width:.4f}, bound {bound:.4f}, ratio {width / bound:.3f}")
    assert bound <= width * (1 + 1e-3)
    for h in (0.02, 0.05, 0.1):
        if at - h > 0:
            pair = make_pair(f"bernoulli({at - h})", f"bernoulli({at + h})")
            assert 2 * h * (1 - 0.1 - advantage_bound(pair, Pure(epsilon), n)) <= bound * (1 + 1e-9)


def test_without_privacy_it_is_that_of_neyman_and_pearson() -> None:
    """A mean of n normal records: two one-sided tests, in standard errors 2 (z Phi(z) + phi(z)) with z = 1.645."""
    n, z = 400, stats.norm.isf(0.05)
    expected = 2 * (z * stats.norm.cdf(z) + stats.norm.pdf(z)) / np.sqrt(n)
    ends = (-5 / np.sqrt(n), 5 / np.sqrt(n))
    found = length_bound(lambda mean: as_distribution(f"normal({float(mean)!r}, 1)"), 0.0, ends, Pure(50), n, 0.95)
    assert found <= expected * (1 + 1e-6)
    assert found >= 0.85 * expected  # a lower sum


def test_a_lower_sum_of_falling_steps() -> None:
    one = (np.array([1.0, 2.0]), np.array([0.5, 0.25]))
    other = (np.array([0.5, 4.0]), np.array([0.8, 0.1]))
    assert _lower_sum([one]) == pytest.approx(0.75)
    assert _lower_sum([one, other]) == pytest.approx(0.5 * 0.8 + 0.5 * 0.5 + 0.25 + 2 * 0.1)


def test_a_private_bound_at_a_level_is_no_less_than_the_advantage_allows() -> None:
    """And no more than our own test misses: so a shape that were not valid would show."""
    guide = None
    for mean in (2.6, 2.4, 2.2):
        pair = make_pair(f"poisson({mean})", "poisson(2)")
        alone, _ = missed_bound(pair, Pure(1), 40, 0.05)
        found, guide = missed_bound(pair, Pure(1), 40, 0.05, guide)
        ours = pt.design(f"poisson({mean})", "poisson(2)", epsilon=1, n=40, alpha=0.05)
        assert 0.95 - advantage_bound(pair, Pure(1), 40) - 0.02 <= max(found, alone)
        assert found <= ours.beta + 1e-9
        assert alone <= ours.beta + 1e-9


def test_of_two_points_it_is_the_error_of_the_best_private_test() -> None:
    """Uniformly most powerful: a count with Tulap noise, a threshold between whole numbers included."""
    pair = make_pair("bernoulli(0.4)", "bernoulli(0.2)")
    ours = pt.design("bernoulli(0.4)", "bernoulli(0.2)", epsilon=1, n=50, alpha=0.05)
    found, guide = missed_bound(pair, Pure(1), 50, 0.05)
    assert guide is None
    assert ours.beta - 2e-3 <= found <= ours.beta + 1e-9


def test_the_share_of_a_label_has_the_bound_of_a_rate() -> None:
    share, rate = (pt.design_estimate(f, epsilon=1, n=50) for f in ("categorical(yes=?)", "bernoulli(?)"))
    assert share.width_bound(0.3) == pytest.approx(rate.width_bound(0.3), rel=2e-2)


def test_a_bound_does_not_depend_on_the_score_that_was_tuned() -> None:
    """Where the values end that it counts is all that a design tells it: a short score must not cut it short."""
    whole, near = (
        pt.design_estimate("poisson(?)", between=(0, 10), epsilon=0.3, n=30, near=value).width_bound(0.2)
        for value in (None, 0.2)
    )
    assert near == pytest.approx(whole, rel=0.1)


def test_weights_share_the_laws_that_do_not_depend_on_them() -> None:
    search = _Search(atoms_of(make_pair("poisson(2.6)", "poisson(2)")), Pure(1), 1e-3, 40)
    shape = search.best_shapes(40)[0][0]
    shared = search.certificate(shape, STEADY)
    for tilt in (0.0, 0.8, -1.2):
        fresh = _Search(search.atoms, search.notion, 1e-3, 40, tilt).at(shape, STEADY)(40)
        assert shared.tilted(tilt).bound(40) == fresh
    assert shared.tilted(0.8).bound(40) != shared.tilted(0.0).bound(40)
