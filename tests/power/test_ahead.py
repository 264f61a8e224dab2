"""What is said to be sure is never more than the advantage, and hardly less."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from privatest.decision import design as ahead
from privatest.decision.calibration import make_goal
from privatest.decision.design import sure_advantages, unsure
from privatest.decision.tuning import calibrated_noise, literal_cutoff, make_tuner
from privatest.privacy import Laplace, NoNoise

CASES = [
    ("poisson(100)", "poisson(101)", 0.1, "tight", 916),
    ("poisson(100)", "poisson(101)", 0.1, "scllr", 1222),
    ("binomial(20, 0.4)", "binomial(20, 0.5)", 0.2, "tight", 90),
    ("poisson(3)", "poisson(4)", 1, "ncllr", 25),
    ("poisson(3)", "poisson(4)", 1, "tight", 23),
    ("poisson(100)", "poisson(101)", 1, "tight", 409),
]


@pytest.mark.parametrize(("null", "alternative", "epsilon", "kind", "n"), CASES)
def test_sure_advantages_are_reached(null: str, alternative: str, epsilon: float, kind: str, n: int) -> None:
    family = make_tuner(null, alternative, epsilon, kind, "paper", None, make_goal(None, None, None))
    score = family.score_for(n)
    noise = calibrated_noise(kind, score, family.notion, family.clamp_for(n), 1)
    cutoffs = None if kind == "tight" else partial(score.lattice_threshold, Fraction(0))
    counts = range(n, n + 6)
    sure = sure_advantages(score.support, (score.null_law, score.alternative_law), noise, counts, cutoffs)
    exact = np.array([family.margin(m) + 2 / 3 for m in counts])
    assert np.all(sure <= exact)
    settled = sure > -1
    assert np.all(exact[settled] - sure[settled] < 1e-3)
    assert settled.all()
    assert unsure(family, counts, calibrated_noise, literal_cutoff) == [
        m for m, gain in zip(counts, sure, strict=True) if gain < 2 / 3
    ]


def test_without_the_other_peaks_it_would_claim_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores on every other integer but one: the peak at pi counts."""
    support = np.array([0, 2, 4, 5])
    null, alternative = np.array([0.3, 0.3, 0.39, 0.01]), np.array([0.4, 0.3, 0.29, 0.01])
    noise = Laplace(Fraction(1, 2))
    sure = sure_advantages(support, (null, alternative), noise, range(60, 64))
    monkeypatch.setattr(ahead, "_SHORT", 0)
    assert np.all(sure_advantages(support, (null, alternative), noise, range(60, 64)) <= sure)
    sure = sure_advantages(support, (null, alternative), noise, range(60, 64))
    monkeypatch.setattr(ahead, "_beyond", lambda *_: 0.0)
    claimed = sure_advantages(support, (null, alternative), noise, range(60, 64))
    assert np.all(claimed > sure + 1e-6)


@pytest.mark.parametrize(
    ("null", "alternative", "test", "release", "first"),
    [
        ("poisson(3)", "poisson(4)", "tight", "decision", 22),
        ("poisson(3)", "poisson(4)", "llr", "statistic", 14),
        ("binomial(10, 0.4)", "binomial(10, 0.5)", "llr", "statistic", 10),
        ("uniform(0, 1)", "uniform(0.1, 1.2)", "llr", "statistic", 9),  # ratios that are infinite
    ],
)
def test_what_is_settled_is_so(null: str, alternative: str, test: str, release: str, first: int) -> None:
    """Decisions, and the test without privacy: no number of records is passed over at which the goal is missed."""
    goal = make_goal(None, None, None)
    family = make_tuner(null, alternative, 1, test, None, None, goal, release=release).with_clamp_for(first)
    counts = range(max(first - 6, 1), first + 12)
    doubtful = unsure(family, counts, calibrated_noise, literal_cutoff)
    assert {n for n in counts if family.margin(n) < 0} <= set(doubtful)
    assert len(doubtful) < len(counts) - 4


def test_with_less_noise_it_would_claim_too_much() -> None:
    family = make_tuner("poisson(3)", "poisson(4)", 1, "tight", "paper", None, make_goal(None, None, None))
    score, counts = family.score_for(20), range(20, 24)
    laws = score.null_law, score.alternative_law
    exact = np.array([family.margin(n) + 2 / 3 for n in counts])
    assert np.all(sure_advantages(score.support, laws, NoNoise(), counts) > exact + 1e-2)


@pytest.mark.parametrize("n", [52, 56, 60])
def test_of_sets_what_is_sure_is_reached_at_every_n(n: int) -> None:
    family = make_tuner("poisson(mean<=2.5)", "poisson(mean>=3)", 1, "tight", None, None, make_goal(None, None, None))
    fixed, counts = family.with_clamp_for(n), range(n, n + 8)
    doubtful = unsure(fixed, counts, calibrated_noise, literal_cutoff)
    assert all(fixed.margin(m) >= 0 for m in counts if m not in doubtful)
    assert n < 56 or len(doubtful) < len(counts)  # else nothing is looked at quickly
