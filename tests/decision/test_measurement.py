"""Tests out to the others: what OpenDP and dp_accounting say of them is what they guarantee."""

from __future__ import annotations

import pytest

import privatest as pt
from privatest.errors import InvalidInput

TEST = pt.design("bernoulli(0.4)", "bernoulli(0.6)", epsilon=0.5, n=20)


def test_the_librarys_accountant_agrees_with_the_exact_law_of_the_noise() -> None:
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant()
    accountant.compose(TEST.to_dp_event(), 10)
    own = TEST.privacy_loss_distribution()
    assert own.get_epsilon_for_delta(1e-12) == pytest.approx(0.5, abs=2e-4)
    assert own.self_compose(10).get_epsilon_for_delta(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), abs=2e-3)


def test_opendp_measures_what_the_test_guarantees() -> None:
    dp = pytest.importorskip("opendp.prelude")
    measurement = TEST.to_opendp()
    assert [measurement.map(distance) for distance in (0, 2, 4)] == [0.0, 0.5, 1.0]
    assert measurement.check(2, 0.5)
    assert not measurement.check(2, 0.49)
    release = measurement([0.0, 1.0] * 10)
    assert release["decision"] in ("null", "alternative")
    assert release["epsilon"] == 0.5
    assert dp.c.make_composition([measurement, measurement]).map(2) == pytest.approx(1.0)


def test_what_is_not_private_goes_nowhere() -> None:
    pytest.importorskip("opendp.prelude")
    pytest.importorskip("dp_accounting")
    plain = pt.design("bernoulli(0.4)", "bernoulli(0.6)", epsilon=0.5, n=20, test="llr")
    with pytest.raises(InvalidInput, match="not private"):
        plain.to_opendp()
    with pytest.raises(InvalidInput, match="not private"):
        plain.privacy_loss_distribution()
    assert not hasattr(pt.design_estimate("bernoulli(?)", epsilon=1, n=100), "to_opendp")
