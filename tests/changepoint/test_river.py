"""The drift detector in river's protocol: its base class, its checks, its meta-models; and what it refuses."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput

river = pytest.importorskip("river")

from river import base, drift, naive_bayes  # noqa: E402 - only where it is installed
from river.checks import common  # noqa: E402

from privatest.streams.river import PrivateDrift  # noqa: E402

PARAMS = list(PrivateDrift._unit_test_params())


@cache
def coins() -> dict[str, Any]:
    return {
        "null": "bernoulli(0.05)",
        "alternative": "bernoulli(0.8)",
        "epsilon": 2.0,
        "mean_time_between_false_alarms": 1e9,  # noise is drawn from the system: no test may fail by chance
    }


def detected(detector: Any, stream: list[Any]) -> list[int]:
    found = []
    for i, x in enumerate(stream):
        detector.update(x)
        if detector.drift_detected:
            found.append(i)
    return found


@pytest.mark.parametrize("params", PARAMS)
def test_it_follows_the_protocol(params: dict[str, Any]) -> None:
    detector = PrivateDrift(**params)
    assert isinstance(detector, base.DriftDetector)
    assert detector.drift_detected is False
    assert detector.update(0) is None
    signature = inspect.signature(PrivateDrift.__init__)
    assert set(detector._get_params()) == set(signature.parameters) - {"self"}
    assert {name: getattr(detector, name) for name in params} == params


CHECKS = [
    name
    for name in ("check_repr", "check_str", "check_clone_same_class", "check_clone_is_idempotent")
    if hasattr(common, name)
]


@pytest.mark.parametrize("name", CHECKS)
def test_rivers_own_checks(name: str) -> None:
    getattr(common, name)(PrivateDrift(**coins()))


def test_drift_is_told_once_and_then_it_starts_anew() -> None:
    rng = np.random.default_rng(1)
    quiet, loud = (rng.random(300) < 0.05).astype(int).tolist(), (rng.random(120) < 0.8).astype(int).tolist()
    detector = PrivateDrift(**coins())
    found = detected(detector, quiet + loud)
    assert found
    first = found[0]
    assert 300 <= first < 400
    assert detector.monitor.seen >= first + 1 - detector.monitor.block
    detector.update(0)
    assert detector.drift_detected is False or detector.alarm is not None


def test_the_alarm_comes_at_the_end_of_a_block_and_no_later_record_moves_it() -> None:
    detector = PrivateDrift(**coins())
    (last,) = detected(detector, [1] * detector.monitor.block * 20)[:1]
    assert (last + 1) % detector.monitor.block == 0


def test_a_clone_is_fresh() -> None:
    detector = PrivateDrift(**coins())
    detected(detector, [1] * 50)
    fresh = detector.clone()
    assert type(fresh) is PrivateDrift
    assert fresh._get_params() == detector._get_params()
    assert fresh.monitor.seen == 0
    assert fresh.monitor is not detector.monitor
    assert fresh.drift_detected is False


def test_a_model_retrains_with_it() -> None:
    model = drift.DriftRetrainingClassifier(
        model=naive_bayes.GaussianNB(),
        drift_detector=PrivateDrift("bernoulli(0.05)", "bernoulli(0.7)", epsilon=3, mean_time_between_false_alarms=1e9),
        train_in_background=False,
    )
    rng = np.random.default_rng(2)
    for i in range(1200):
        x = float(rng.normal())
        y = bool(x > 0) if i < 600 else bool(x <= 0)
        model.learn_one({"x": x}, y)
    right = 0
    for _ in range(200):
        x = float(rng.normal())
        right += model.predict_one({"x": x}) == (x <= 0)
    assert right >= 150  # it forgot what was right before the drift


def test_bad_settings_are_refused_as_by_the_monitor() -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        PrivateDrift("bernoulli(0.1)", "bernoulli(0.6)", epsilon=0)
    with pytest.raises(InvalidInput, match="alternative"):
        PrivateDrift("bernoulli(0.1)")
    with pytest.raises(InvalidInput, match="privacy"):
        PrivateDrift("bernoulli(0.1)", "bernoulli(0.6)", epsilon=1, privacy="zcdp(0.5)")


def test_it_meets_the_notion_that_was_asked_for_and_epsilon_1_where_none_was() -> None:
    names = "bernoulli(0.1)", "bernoulli(0.6)"
    assert PrivateDrift(*names).monitor.privacy == pt.pure(1)
    assert PrivateDrift(*names, epsilon=2).monitor.privacy == pt.pure(2)
    detector = PrivateDrift(*names, privacy="zcdp(0.5)")
    assert detector.monitor.privacy == pt.zcdp(0.5)
    assert detector.clone().monitor.privacy == pt.zcdp(0.5)
    assert detected(detector, [0] * 200 + [1] * 200)
