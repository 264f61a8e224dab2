"""What is said to be sure is never more than the advantage, and hardly less."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from privatest.laws import lookahead
from privatest.laws.lookahead import sure_advantages
from privatest.power.ahead import unsure
from privatest.power.tuning import calibrated_noise, make_family, make_goal
from privatest.privacy import Laplace

CASES = [
    ("poisson(100)", "poisson(101)", 0.1, "tight", 916),
    ("poisson(100)", "poisson(101)", 0.1, "scllr", 1222),
    ("binomial(20, 0.4)", "binomial(20, 0.5)", 0.2, "tight", 90),
    ("poisson(3)", "poisson(4)", 1, "ncllr", 25),
]


@pytest.mark.parametrize(("null", "alternative", "epsilon", "kind", "n"), CASES)
def test_sure_advantages_are_reached(null: str, alternative: str, epsilon: float, kind: str, n: int) -> None:
    family = make_family(null, alternative, epsilon, kind, "paper", None, make_goal(None, None, None))
    score = family.score_for(n)
    noise = calibrated_noise(kind, score, family.notion, family.clamp_for(n), 1)
    cutoffs = None if kind == "tight" else partial(score.lattice_threshold, Fraction(0))
    counts = range(n, n + 6)
    sure = sure_advantages(score.support, (score.null_law, score.alternative_law), noise, counts, cutoffs)
    exact = np.array([family.margin(m) + 2 / 3 for m in counts])
    assert np.all(sure <= exact)
    settled = sure > -1
    assert np.all(exact[settled] - sure[settled] < 1e-3)
    if n > 100:
        assert settled.all()
    assert unsure(family, counts, calibrated_noise) == [m for m, gain in zip(counts, sure, strict=True) if gain < 2 / 3]


def test_without_the_other_peaks_it_would_claim_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores on every other integer but one: the peak at pi counts."""
    support = np.array([0, 2, 4, 5])
    null, alternative = np.array([0.3, 0.3, 0.39, 0.01]), np.array([0.4, 0.3, 0.29, 0.01])
    noise = Laplace(Fraction(1, 2))
    sure = sure_advantages(support, (null, alternative), noise, range(60, 64))
    monkeypatch.setattr(lookahead, "_beyond", lambda *_: 0.0)
    claimed = sure_advantages(support, (null, alternative), noise, range(60, 64))
    assert np.all(claimed > sure + 1e-6)
