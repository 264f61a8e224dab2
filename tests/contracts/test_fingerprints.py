"""A fingerprint is the whole mathematical question: one name for one request of a ledger, one state of a monitor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from privatest.charge_before_release import fingerprint
from privatest.hypotheses import as_distribution

MANY = "abcdefgh"
RISING = dict(zip(MANY, np.arange(1, 9) / 36, strict=True))
FALLING = dict(zip(MANY, np.arange(8, 0, -1) / 36, strict=True))
BENT = dict(zip(MANY, np.array([1, 2, 3, 5, 4, 6, 7, 8]) / 36, strict=True))
FLAT = dict.fromkeys(MANY, 0.125)


def bump(centre: float) -> Any:
    """Densities that have one description."""
    return pt.density(lambda x: -((x - centre) ** 2) / 2 - np.log(2 * np.pi) / 2, support=(-9, 9))


class Heard(Exception):
    """Carries the design that a ledger was asked about."""


class Listening:
    """A ledger that says what it is asked, and charges nothing."""

    def released(self, *, design: str, **_: Any) -> None:
        raise Heard(design)

    def perform(self, *, design: str, **_: Any) -> dict[str, Any]:
        raise Heard(design)


def heard(ask: Callable[..., Any], **settings: Any) -> str:
    with pytest.raises(Heard) as caught:
        ask(**settings, ledger=Listening(), dataset="d", request="r")
    return str(caught.value)


def run_of(*laws: Any, epsilon: float = 1, n: int = 40, **settings: Any) -> str:
    return heard(pt.design(*laws, epsilon=epsilon, n=n).run, data=[], **settings)


def optimum_of(*laws: Any, n: int = 2, **settings: Any) -> str:
    return heard(pt.optimum(*laws, epsilon=1, n=n).test.run, data=[], **settings)


def fit_of(null: Any, distance: float = 0.3, n: int = 200, **settings: Any) -> str:
    return heard(pt.design_fit(null, distance=distance, epsilon=1, n=n).run, data=[], **settings)


def change_of(*laws: Any, **settings: Any) -> str:
    asked = {name: settings.pop(name) for name in ("column", "order") if name in settings}
    return heard(pt.design_change(*laws, epsilon=2, **settings).run, data=[], **asked)


def given(test: Any) -> str:
    """A change by the votes of a given test."""
    return heard(pt.design_change(test=test).run, data=[])


def watched(test: Any) -> str:
    return heard(pt.Monitor, test=test)


def said(_block: Any) -> str:
    return "null"


def unsaid(_block: Any) -> str:
    return "null"


GIVEN: tuple[Callable[[], Any], ...] = (
    lambda: pt.design(RISING, FALLING, epsilon=2, n=20),
    lambda: pt.design(BENT, FALLING, epsilon=2, n=20),
    lambda: pt.design(RISING, FALLING, epsilon=2, n=21),
    lambda: pt.design(RISING, FALLING, epsilon=2, n=20, alpha=0.1),
    lambda: pt.design_fit(RISING, distance=0.5, epsilon=2, n=40, alpha=0.1),
    lambda: pt.block_test(said, n=20, alpha=0.1, beta=0.1, epsilon=2),
    lambda: pt.block_test(unsaid, n=20, alpha=0.1, beta=0.1, epsilon=2),
    lambda: pt.block_test(said, n=20, alpha=0.1, beta=0.2, epsilon=2),
    lambda: pt.block_test(said, n=20, alpha=0.1, beta=0.1, privacy="gdp(2)"),
    lambda: pt.block_test(said, n=20, alpha=0.1, beta=0.1, epsilon=2, labels=MANY),
)


def monitor_of(*laws: Any, **settings: Any) -> str:
    return heard(pt.Monitor, null=laws[0], alternative=laws[1] if len(laws) > 1 else None, epsilon=2, **settings)


CLAIMS: dict[str, tuple[Callable[[], str], ...]] = {
    "test": (
        lambda: run_of(RISING, FALLING),
        lambda: run_of(FALLING, RISING),
        lambda: run_of(BENT, FALLING),
        lambda: run_of(RISING, FLAT),
        lambda: run_of(RISING, FALLING, n=41),
        lambda: run_of(RISING, FALLING, epsilon=1.5),
        lambda: run_of(RISING, FALLING, column="x"),
        lambda: run_of(RISING, FALLING, unit="x"),
        lambda: run_of(bump(0), bump(1)),
        lambda: run_of(bump(1), bump(0)),
    ),
    "optimum": (
        lambda: optimum_of(RISING, FALLING),
        lambda: optimum_of(FALLING, RISING),
        lambda: optimum_of(BENT, FALLING),
        lambda: optimum_of(RISING, FALLING, n=1),
        lambda: optimum_of(RISING, FALLING, column="x"),
        lambda: optimum_of(RISING, FALLING, unit="x"),
    ),
    "fit": (
        lambda: fit_of(RISING),
        lambda: fit_of(BENT),
        lambda: fit_of(RISING, distance=0.31),
        lambda: fit_of(RISING, n=201),
        lambda: fit_of(RISING, column="x"),
        lambda: fit_of(RISING, unit="x"),
    ),
    "change": (
        lambda: change_of(RISING, FALLING),
        lambda: change_of(FALLING, RISING),
        lambda: change_of(BENT, FALLING),
        lambda: change_of(RISING, FALLING, method="direct", assume_change=True),
        lambda: change_of(FALLING, RISING, method="direct", assume_change=True),
        lambda: change_of(RISING, FALLING, method="paper"),
        lambda: change_of(FALLING, RISING, method="paper"),
        lambda: change_of(RISING, FALLING, block=17),
        *(lambda make=make: given(make()) for make in GIVEN),  # type: ignore[misc]
        lambda: change_of(RISING, FALLING, beta=0.2),
        lambda: change_of(RISING, FALLING, false_alarm=0.1),
        lambda: change_of(FALLING, RISING, false_alarm=0.1),
        lambda: change_of(RISING, FALLING, n=400),
        lambda: change_of(RISING, FALLING, column="x"),
        lambda: change_of(RISING, FALLING, order="x"),
        lambda: change_of({True: 0.3, False: 0.7}, distance=0.6),
        lambda: change_of({True: 0.35, False: 0.65}, distance=0.6),
        lambda: change_of({True: 0.3, False: 0.7}, distance=0.6000001),
        lambda: change_of(bump(0), bump(1)),
        lambda: change_of(bump(1), bump(0)),
        lambda: change_of(stats.rv_histogram(([1, 3], [0, 1, 2])), "uniform(0, 2)"),
        lambda: change_of(stats.rv_histogram(([3, 1], [0, 1, 2])), "uniform(0, 2)"),
    ),
    "monitor": (
        lambda: monitor_of(RISING, FALLING),
        lambda: monitor_of(FALLING, RISING),
        lambda: monitor_of(BENT, FALLING),
        lambda: monitor_of(RISING, FALLING, method="paper"),
        lambda: monitor_of(FALLING, RISING, method="paper"),
        lambda: monitor_of(RISING, FALLING, block=17),
        lambda: monitor_of(RISING, FALLING, interval=17),
        *(lambda make=make: watched(make()) for make in GIVEN),  # type: ignore[misc]
        lambda: monitor_of({True: 0.3, False: 0.7}, distance=0.6),
        lambda: monitor_of({True: 0.35, False: 0.65}, distance=0.6),
        lambda: monitor_of(bump(0), bump(1)),
        lambda: monitor_of(bump(1), bump(0)),
    ),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_other_questions_have_other_fingerprints(kind: str) -> None:
    """P and Q exchanged, one of them bent beyond what its description shows, another setting, another column."""
    found = [one() for one in CLAIMS[kind]]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", CLAIMS)
def test_the_same_question_has_the_same_fingerprint(kind: str) -> None:
    first = CLAIMS[kind][0]
    assert first() == first()


@pytest.mark.parametrize(
    ("laws", "others"),
    [
        ((RISING, FALLING), (FALLING, RISING)),
        ((RISING, FALLING), (BENT, FALLING)),
        ((bump(0), bump(1)), (bump(1), bump(0))),
        (("bernoulli(0.2)", "bernoulli(0.8)"), ("bernoulli(0.8)", "bernoulli(0.2)")),
    ],
)
def test_a_state_goes_on_with_its_own_question_only(
    laws: tuple[Any, Any], others: tuple[Any, Any], tmp_path: Path
) -> None:
    path = tmp_path / "state"
    name = pt.Monitor(*laws, epsilon=2, state=path)._name
    with pytest.raises(pt.errors.InvalidInput, match="other settings"):
        pt.Monitor(*others, epsilon=2, state=path)
    assert pt.Monitor(*laws, epsilon=2, state=path)._name == name  # nothing was lost


STREAMS: dict[str, Callable[[], Any]] = {
    "bits": lambda: pt.Monitor(test=GIVEN[5]()),
    "sums": lambda: pt.Monitor(RISING, FALLING, epsilon=2, block=17, interval=17),
    "walk": lambda: pt.Sequential("bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, most=400),
}


@pytest.mark.parametrize("kind", STREAMS)
def test_every_whole_number_of_a_plan_is_in_its_question(kind: str) -> None:
    """A vote, a length or a bound that is one more, in any part of the plan: another question."""
    plan = STREAMS[kind]()._plan
    found = [fingerprint(plan.question())]
    for name in [one.name for one in fields(plan) if one.name in ("blocks", "first", "later", "rule")]:
        part = getattr(plan, name)
        for one in fields(part):
            value = getattr(part, one.name)
            if isinstance(value, int | np.ndarray):
                changed, other = copy.copy(part), copy.copy(plan)
                object.__setattr__(changed, one.name, value + 1)  # such a plan need not be a sensible one
                object.__setattr__(other, name, changed)
                found.append(fingerprint(other.question()))
    assert len(set(found)) == len(found) > 3


class Own(stats.rv_continuous):
    """Somebody's own family, which has a name of scipy's."""

    def _pdf(self, x: Any) -> Any:
        return 0.5 * np.exp(-np.abs(x))


@pytest.mark.parametrize(
    ("law", "named"),
    [
        ("normal(0, 1)", True),
        (stats.norm(0, 1), True),
        ({"a": 0.5, "b": 0.5}, True),
        ({True: 0.5, False: 0.5}, False),
        (RISING, False),
        (stats.rv_histogram(([1, 3], [0, 1, 2])), False),
        (bump(0), False),
        (pt.mixture([0.5, 0.5], ["normal(0, 1)", bump(0)]), False),
        (pt.mixture([0.5, 0.5], ["normal(0, 1)", "normal(3, 1)"]), True),
        (Own(name="norm")(), False),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else type(value).__name__ if not isinstance(value, bool) else str(value)
    ),
)
def test_named(law: Any, named: bool) -> None:
    """Whether a description says all."""
    assert as_distribution(law).named is named


NEAR: dict[str, Callable[[float], str]] = {
    "null": lambda by: run_of(f"normal({by}, 1)", "normal(1, 1)"),
    "a table": lambda by: fit_of([0.3 + by, 0.7 - by]),
    "distance": lambda by: fit_of(FLAT, distance=0.3 + by),
    "clamp": lambda by: run_of_test(clamp=(-1, 1 + by)),
    "threshold": lambda by: run_of_test(threshold=by),
    "range": lambda by: heard(
        pt.design_estimate("normal(mean=?, sd=1)", between=(-3, 3 + by), epsilon=1, n=99).run, data=[]
    ),
    "confidence": lambda by: heard(
        pt.design_estimate("bernoulli(?)", confidence=0.9 + by, epsilon=1, n=99).run, data=[]
    ),
    "beta": lambda by: change_of("bernoulli(0.2)", "bernoulli(0.8)", beta=0.1 + by),
}


def run_of_test(**settings: Any) -> str:
    return heard(pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=40, **settings).run, data=[])


@pytest.mark.parametrize("name", NEAR)
def test_questions_that_hardly_differ_have_other_fingerprints(name: str) -> None:
    """The release for one would answer the other: numbers count to nine digits, beyond which machines differ."""
    assert len({NEAR[name](by) for by in (0.0, 1e-7, 1e-5)}) == 3
