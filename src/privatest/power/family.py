"""A family of tests, one for each n: what the user fixed, and the rest chosen by exact error rates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from privatest import _validate
from privatest.decision import PrivateTest
from privatest.decision.build import (
    KINDS,
    PRIVATE_KINDS,
    calibrated_noise,
    from_score,
    kind_score,
    paper_clamp,
    unclamped,
)
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import Pair, make_pair
from privatest.laws.curves import Curves
from privatest.power.tuning import Goal, Profile, profile_of, tuned_clamp
from privatest.privacy.neighbours import REPLACE, Neighbourhood, make_neighbourhood
from privatest.rational import Number, rational
from privatest.scores import Score, whole_score

__all__ = ["Family", "make_family", "tuning_size"]

Clamp = tuple[Number, Number]


def tuning_size(n: int) -> int:
    """The n for which the clamp of a test on n records is tuned: n itself, or a nearby number of a sparse grid.

    The best clamp hardly moves with n. With the same clamp for all n within 3% the advantage is as smooth in n as the
    data allow, and the search for a sample size tunes once or twice.

    >>> [tuning_size(n) for n in (1, 64, 115, 1000, 10**6)]
    [1, 64, 114, 995, 989724]
    """
    if n <= 64:
        return n
    return round(2 ** (round(math.log2(n) * 24) / 24))


@dataclass(frozen=True, eq=False)
class Family:
    """Tests of one pair at one epsilon for any n."""

    pair: Pair
    epsilon: Fraction
    kind: str
    clamp: str | Clamp
    threshold: Fraction | None
    goal: Goal
    around: Neighbourhood = REPLACE

    def test(self, n: int) -> PrivateTest:
        """The test on n records."""
        if self.kind not in PRIVATE_KINDS:
            return unclamped(self.pair, n, self.kind, threshold=self.threshold, alpha=self.goal.alpha)
        return from_score(
            self.pair,
            self.score_for(n),
            self.epsilon,
            n,
            self.kind,
            self.clamp_for(n),
            threshold=self.threshold,
            alpha=self.goal.alpha,
            around=self.around,
        )

    @cached_property
    def profile(self) -> Profile:
        """The law of the unclamped ratio."""
        return profile_of(self.pair)

    @cached_property
    def paper(self) -> Clamp:
        """The decomposition's clamp."""
        return paper_clamp(self.pair, self.epsilon)

    def clamp_for(self, n: int) -> Clamp:
        """The clamp of the test on n records."""
        if not isinstance(self.clamp, str):
            return self.clamp
        if self.clamp == "paper":
            return self.paper
        size = tuning_size(n)
        known: dict[int, Clamp] = self.__dict__.setdefault("_tuned", {})
        if size not in known:
            start = float(self.paper[0]), float(self.paper[1])
            known[size] = tuned_clamp(self.profile, self.epsilon, size, self.goal, start, around=self.around)
        return known[size]

    def score_for(self, n: int) -> Score:
        """The score of the test on n records."""
        if self.kind not in PRIVATE_KINDS:
            return whole_score(self.pair, n)
        ends = self.clamp_for(n)
        known: dict[Clamp, Score] = self.__dict__.setdefault("_scores", {})
        if ends not in known:
            known[ends] = kind_score(self.pair, self.kind, ends)
        return known[ends]

    def margin(self, n: int) -> float:
        """By how much the test on n records exceeds the goal, exactly; negative where it falls short."""
        calibrated = self.threshold is None and (self.kind == "tight" or self.goal.alpha is not None)
        if not calibrated or self.kind not in PRIVATE_KINDS or self.around.kind != "replace":
            test = self.test(n)
            return self.goal.surplus(test.alpha, test.beta)
        score = self.score_for(n)
        noise = calibrated_noise(self.kind, score, self.epsilon, self.clamp_for(n), self.around.rows)
        return self.goal.margin(Curves(score.support, score.null_law, score.alternative_law, n, noise))

    def with_clamp_for(self, n: int) -> Family:
        """The same family with the clamp of n records at every n."""
        if self.clamp != "tuned":
            return self
        fixed = replace(self, clamp=self.clamp_for(n))
        fixed.__dict__["_scores"] = self.__dict__.setdefault("_scores", {})
        return fixed

    def at_epsilon(self, epsilon: Number, clamp: Clamp | None = None) -> Family:
        """The same family at another epsilon, perhaps with a fixed clamp."""
        other = replace(self, epsilon=rational(epsilon, "epsilon"), clamp=clamp or self.clamp)
        other.__dict__["profile"] = self.profile
        other.__dict__["_scores"] = self.__dict__.setdefault("_scores", {})
        return other

    def few_values(self, n: int) -> bool:
        """Whether the score takes so few values that power is a sawtooth in n."""
        return len(self.score_for(n).support) < 64

    def drifts(self, n: int) -> tuple[float, float]:
        """Mean of one record's ratio under P and under Q, in nats above the threshold 0."""
        score = self.score_for(n)
        null, alternative = (
            float(score.origin) + float(score.step) * score.mean(law) for law in (score.null_law, score.alternative_law)
        )
        return null, alternative


def make_family(
    null: Any,
    alternative: Any,
    epsilon: Number,
    test: str,
    clamp: str | Clamp | None,
    threshold: Number | None,
    goal: Goal,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> Family:
    """The family a user asks for, all arguments checked."""
    budget = _validate.positive(epsilon=epsilon, remedy="Typical values lie between 0.1 and 2.")
    _validate.choice(KINDS, test=test)
    if clamp is None:
        clamp = "tuned" if test == "tight" else "paper"
    elif test not in PRIVATE_KINDS:
        raise InvalidInput(
            f"clamp={shown(clamp)} does not apply to test={test!r}, which does not clamp. Leave clamp out."
        )
    if isinstance(clamp, str):
        _validate.choice(("tuned", "paper"), clamp=clamp)
    else:
        clamp = _given_clamp(clamp)
    level = None if threshold is None else rational(threshold, "threshold")
    around = make_neighbourhood(neighbours, max_rows_per_unit)
    if around != REPLACE and test not in PRIVATE_KINDS:
        name, value = ("neighbours", neighbours) if around.kind != "replace" else ("max_rows_per_unit", around.rows)
        raise InvalidInput(
            f"{name}={shown(value)} does not apply to test={test!r}, which is not private. Leave it out."
        )
    return Family(make_pair(null, alternative), budget, test, clamp, level, goal, around)


def _given_clamp(clamp: Any) -> Clamp:
    """A clamp that a user wrote as two numbers, exactly."""
    try:
        a, b = clamp
    except (TypeError, ValueError):
        raise InvalidInput(f"clamp={shown(clamp)} must be 'tuned', 'paper' or a pair (a, b) with a < b.") from None
    return rational(a, "clamp"), rational(b, "clamp")
