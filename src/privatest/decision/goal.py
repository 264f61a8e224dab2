"""What a test must achieve: an advantage, or two error rates."""

from __future__ import annotations

from dataclasses import dataclass

from privatest import _validate
from privatest.errors import InvalidInput, shown
from privatest.laws import Curves, TwoSidedCurves

__all__ = ["ADVANTAGE", "Goal", "make_goal"]

ADVANTAGE = 2 / 3
"""The paper's bar."""


@dataclass(frozen=True)
class Goal:
    """Either ``advantage`` is given, or ``alpha`` and ``beta`` are."""

    advantage: float | None = None
    alpha: float | None = None
    beta: float | None = None

    def margin(self, curves: Curves | TwoSidedCurves) -> float:
        """By how much the best cutoff exceeds the goal; negative where it falls short. Increases with power."""
        if self.alpha is None:
            return curves.best_advantage() - (self.advantage or 0.0)
        return (self.beta or 0.0) - curves.beta_at(self.alpha)

    def surplus(self, alpha: float, beta: float) -> float:
        """By how much a test with these error rates exceeds the goal; negative where it falls short."""
        if self.alpha is None:
            return 1.0 - alpha - beta - (self.advantage or 0.0)
        return min(self.alpha - alpha, (self.beta or 0.0) - beta)

    def __str__(self) -> str:
        if self.alpha is None:
            return f"advantage {self.advantage:.6g}"
        return f"alpha {self.alpha:g} and beta {self.beta:g}"


def make_goal(advantage: float | None, alpha: float | None, beta: float | None) -> Goal:
    """The goal a user asks for; the paper's advantage of 2/3 where nothing is asked."""
    if alpha is None and beta is None:
        return Goal(advantage=_validate.probability(advantage=ADVANTAGE if advantage is None else advantage))
    if advantage is not None:
        raise InvalidInput(f"advantage={shown(advantage)} and alpha= or beta= were given. Give one or the other.")
    if alpha is None or beta is None:
        name = "alpha" if alpha is None else "beta"
        raise InvalidInput(f"{name} is missing: alpha and beta go together. Give both, or advantage.")
    _validate.probability(alpha=alpha)
    _validate.probability(beta=beta)
    if alpha + beta >= 1:
        raise InvalidInput(
            f"alpha={alpha!r} and beta={beta!r} must add up to less than 1: tossing a coin achieves that without data."
        )
    return Goal(alpha=float(alpha), beta=float(beta))
