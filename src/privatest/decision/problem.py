"""The question that a test answers: its hypotheses and privacy, the settings that a user fixes, and its goal.

A :class:`Problem` holds two hypotheses, a notion of privacy and what one person can change. A :class:`Method` holds
the settings that a user fixed, and a :class:`Goal` the error rates to be reached. Each has a constructor ``of`` that
parses and checks what a user wrote. :class:`privatest.decision.clamp_tuning.Tuner` chooses everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import Hypothesis, Pair
from privatest.hypotheses.parse import Hypotheses, make_hypotheses
from privatest.laws import Curves, TwoSidedCurves
from privatest.numbers import Number, rational, suggestion
from privatest.privacy import NOISES, Notion, Pure, make_notion
from privatest.privacy.notion import REPLACE, Neighbourhood, make_neighbourhood

PRIVATE_KINDS = tuple(noise.test for noise in NOISES.values() if noise.test)
CALIBRATED = ("tight", "stair")
"""Kinds whose default threshold has the best error rates. The default of the paper's tests is 0."""
KINDS = (*(kind for kind in PRIVATE_KINDS if kind != "stair"), "llr", "sllr")
"""Values of ``test=``. ``release="decision"`` chooses the stair."""
RELEASES = ("statistic", "decision")
"""Values of ``release=``: what a test is tuned to release, its noisy statistic or its decision."""
ADVANTAGE = 2 / 3
"""The default goal, from the paper."""
LARGEST_THRESHOLD = 10**30
"""Largest threshold in nats. No total is as large."""
ChosenClamp = tuple[Number, Number]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Two hypotheses, a notion of privacy, and what one person can change in the data.

    Attributes:
        hypotheses: the null and the alternative, parsed, with the two members that are the hardest to tell apart.
        privacy: the notion of privacy that a run must meet.
        around: which data sets are neighbours.
    """

    hypotheses: Hypotheses
    privacy: Notion
    around: Neighbourhood = REPLACE

    @classmethod
    def of(
        cls,
        null: Any,
        alternative: Any,
        *,
        epsilon: Number | None = None,
        privacy: Any = None,
        neighbours: str = "replace",
        max_rows_per_unit: int = 1,
    ) -> Problem:
        """Parse and check what a user wrote. The arguments are those of :func:`privatest.design`."""
        return cls(
            privacy=make_notion(epsilon, privacy),
            around=make_neighbourhood(neighbours, max_rows_per_unit),
            hypotheses=make_hypotheses(null, alternative),
        )

    @property
    def null(self) -> Hypothesis:
        """The null hypothesis, a set of one or more distributions."""
        return self.hypotheses.null

    @property
    def alternative(self) -> Hypothesis:
        """The alternative hypothesis, a set of one or more distributions."""
        return self.hypotheses.alternative

    @property
    def pair(self) -> Pair:
        """The member of each hypothesis such that the two are the hardest to distinguish."""
        return self.hypotheses.pair


@dataclass(frozen=True, kw_only=True)
class Method:
    """The settings of a test that a user fixed. Everything else is tuned.

    Attributes:
        test: the kind of test, one of ``KINDS``.
        clamp: "tuned", "paper" or the two ends in nats.
        threshold: the threshold in nats. None: the one with the best error rates, or 0 for the paper's tests.
        release: "statistic" or "decision".
    """

    test: str = "tight"
    clamp: str | ChosenClamp = "tuned"
    threshold: Fraction | None = None
    release: str = "statistic"

    @classmethod
    def of(
        cls,
        *,
        test: str = "tight",
        clamp: str | ChosenClamp | None = None,
        threshold: Number | None = None,
        release: str = "statistic",
    ) -> Method:
        """Parse and check what a user wrote. The arguments are those of :func:`privatest.design`."""
        numbers.choice(KINDS, test=test)
        numbers.choice(RELEASES, release=release)
        if release == "decision" and test != "tight":
            raise InvalidInput(
                f"test={test!r} does not go with release='decision', which is a test of its own. Leave test out."
            )
        if clamp is None:
            clamp = "tuned" if test == "tight" else "paper"
        elif test not in PRIVATE_KINDS:
            raise InvalidInput(
                f"clamp={shown(clamp)} does not apply to test={test!r}, which does not clamp. Leave it out."
            )
        if not isinstance(clamp, str) or clamp not in ("tuned", "paper"):
            clamp = _clamp_ends(clamp)
        level = None if threshold is None else rational(threshold, "threshold")
        if level is not None and abs(level) > LARGEST_THRESHOLD:
            raise InvalidInput(f"threshold={shown(threshold)} must be at most 1e+30 in size: it is in nats.")
        return cls(test=test, clamp=clamp, threshold=level, release=release)

    @property
    def kind(self) -> str:
        """The kind of test that is built: ``test``, or "stair" if only the decision is released."""
        return "stair" if self.release == "decision" else self.test

    @property
    def private(self) -> bool:
        """Whether tests of this kind are private."""
        return self.kind in PRIVATE_KINDS

    def check_fits(self, problem: Problem) -> None:
        """Raise InvalidInput if tests of this kind cannot answer the problem."""
        around = problem.around
        if self.release == "decision" and around.kind != "replace":
            raise InvalidInput(
                f"neighbours={around.kind!r} does not go with release='decision': its threshold is tuned for one "
                "number of records. Use release='statistic'."
            )
        if self.test != "tight" and not isinstance(problem.privacy, Pure):
            raise InvalidInput(
                f"test={self.test!r} is for epsilon=, not for privacy={problem.privacy.text!r}. Use test='tight'."
            )
        if around != REPLACE and not self.private:
            replacing = around.kind == "replace"
            name, value = ("max_rows_per_unit", around.rows) if replacing else ("neighbours", around.kind)
            raise InvalidInput(
                f"{name}={shown(value)} does not apply to test={self.test!r}, which is not private. Leave it out."
            )
        if not self.private and not problem.hypotheses.simple:
            raise InvalidInput(f"test={self.test!r} is for two distributions, not for sets of them. Use test='tight'.")

    def check_two_sided(self, problem: Problem) -> None:
        """Raise InvalidInput for settings that a two-sided test cannot have."""
        settings = {
            "release": (self.release, "statistic"),
            "test": (self.test, "tight"),
            "neighbours": (problem.around.kind, "replace"),
            "threshold": (self.threshold, None),
        }
        for name, (value, needed) in settings.items():
            if value != needed:
                written = float(value) if isinstance(value, Fraction) else value
                raise InvalidInput(
                    f"{name}={shown(written)} does not apply to a two-sided test, which accepts between two thresholds "
                    f"that are chosen for n records. Leave {name} out."
                )


def _clamp_ends(clamp: Any) -> ChosenClamp:
    """Parse the two ends of a clamp, exactly."""
    try:
        a, b = [] if isinstance(clamp, str) else clamp
    except (TypeError, ValueError):
        meant = suggestion(clamp, ("tuned", "paper")) if isinstance(clamp, str) else ""
        rule = f"must be 'tuned', 'paper' or a pair (a, b) with a < b.{meant}"
        raise InvalidInput(f"clamp={shown(clamp)} {rule}") from None
    return rational(a, "clamp"), rational(b, "clamp")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The error rates that a test must reach: either ``advantage``, or both ``alpha`` and ``beta``."""

    advantage: float | None = None
    alpha: float | None = None
    beta: float | None = None

    @classmethod
    def of(cls, *, advantage: float | None = None, alpha: float | None = None, beta: float | None = None) -> Goal:
        """Check what a user wrote. The default is the paper's advantage of 2/3."""
        if alpha is None and beta is None:
            return cls(advantage=numbers.probability(advantage=ADVANTAGE if advantage is None else advantage))
        if advantage is not None:
            raise InvalidInput(f"advantage={shown(advantage)} and alpha= or beta= were given. Give one or the other.")
        if alpha is None or beta is None:
            name = "alpha" if alpha is None else "beta"
            raise InvalidInput(f"{name} is missing: alpha and beta go together. Give both, or advantage.")
        alpha, beta = numbers.probability(alpha=alpha), numbers.probability(beta=beta)
        if alpha + beta >= 1:
            raise InvalidInput(
                f"alpha={alpha!r} and beta={beta!r} must add up to less than 1: tossing a coin achieves that without "
                "data."
            )
        return cls(alpha=alpha, beta=beta)

    @classmethod
    def best(cls, alpha: float | None) -> Goal:
        """Return the goal for a given number of records: the largest advantage, or the smallest beta at this alpha."""
        return cls(advantage=0.0) if alpha is None else cls(alpha=numbers.probability(alpha=alpha), beta=0.0)

    def margin(self, curves: Curves | TwoSidedCurves) -> float:
        """Return the margin by which the best cutoff exceeds the goal; it is negative if the goal is missed."""
        if self.alpha is None:
            return curves.best_advantage() - (self.advantage or 0.0)
        return (self.beta or 0.0) - curves.beta_at(self.alpha)

    def surplus(self, alpha: float, beta: float) -> float:
        """Return the margin by which a test with these error rates exceeds the goal; negative if it is missed."""
        if self.alpha is None:
            return 1.0 - alpha - beta - (self.advantage or 0.0)
        return min(self.alpha - alpha, (self.beta or 0.0) - beta)

    def __str__(self) -> str:
        if self.alpha is None:
            return f"advantage {self.advantage:.6g}"
        return f"alpha {self.alpha:g} and beta {self.beta:g}"
