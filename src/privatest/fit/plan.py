"""How many records a goodness-of-fit test needs: from the normal approximation to exact error rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import special

from privatest.errors import Infeasible
from privatest.fit.candidates import Recipe, Target, ranked, recipes
from privatest.fit.designed import FitTest
from privatest.fit.domain import Domain
from privatest.fit.law import ACCURACY
from privatest.noise import Tulap

__all__ = ["MOST_RECORDS", "Plan", "designed", "rough_sample_size", "sample_size"]

MOST_RECORDS = 10**9
# The planned n is within this of one that does not meet the targets, unless so many looks do not find one.
RESOLUTION = 0.01
MOST_LOOKS = 8


@dataclass(frozen=True, eq=False)
class Plan:
    """What a test is to do, for any number of records."""

    domain: Domain
    distance: float
    epsilon: Fraction
    alpha: float
    method: str

    @property
    def recipes(self) -> list[Recipe]:
        return recipes(self.domain.probabilities, self.method)

    def target(self, n: int) -> Target:
        return Target(self.domain.probabilities, n, self.distance, self.epsilon, self.alpha)


def designed(plan: Plan, n: int, choice: list[Recipe] | None = None) -> FitTest:
    """The test for n records: the best recipe, of all that the method allows or of a short list."""
    target = plan.target(n)
    candidate = ranked(target, choice or plan.recipes)[0].candidate(target)
    if candidate is None:
        raise Infeasible(f"n={n}: no statistic of so few records depends on the data. Use more records.")
    noise = Tulap(target.epsilon, candidate.excess.width)
    law = candidate.law(target.p, n)
    # The error of the law's probabilities is taken off the level, so that alpha holds.
    cutoff = law.cutoff(max(target.alpha - ACCURACY, target.alpha / 2), noise)
    test = FitTest(candidate, plan.domain, noise, cutoff, target.distance, n)
    test.__dict__["null_law"] = law  # what the cached property would compute again
    return test


def sample_size(plan: Plan, beta: float) -> int:
    """A number of records at which the design meets alpha and beta by its exact law."""
    n, choice = rough_sample_size(plan, beta)
    n = _exact_size(plan, beta, choice, n)
    # The short list was made elsewhere: what counts is the design for this n.
    while designed(plan, n).beta > beta:
        n += max(1, round(RESOLUTION * n))
        _check_reach(plan, n)
    return n


def rough_sample_size(plan: Plan, beta: float) -> tuple[int, list[Recipe]]:
    """Where the normal approximation meets the targets, and the best two recipes there."""
    n = _rough_size(plan, beta, plan.recipes[0], _order_of_magnitude(plan))
    choice = ranked(plan.target(n), plan.recipes)[:2]
    if choice[0] is not plan.recipes[0]:
        n = _rough_size(plan, beta, choice[0], n)
    return n, choice


def _exact_size(plan: Plan, beta: float, choice: list[Recipe], n: int) -> int:
    """Where the exact type II error meets beta, by secant steps on the scale of normal quantiles from a guess n."""
    wider = n + max(1, n // 10)
    rise = _quantile(choice[0].error(plan.target(wider))) - _quantile(choice[0].error(plan.target(n)))
    slope = min(rise / math.log(wider / n), -0.5)
    # Invariant: ``few`` records do not suffice (or are none), ``many`` do (or are not known yet).
    few, many, looks = 0, 0, 0
    while many == 0 or (looks < MOST_LOOKS and many > 1 and many - few > max(1, RESOLUTION * many)):
        _check_reach(plan, n)
        looks += 1
        error = designed(plan, n, choice).beta
        few, many = (few, n) if error <= beta else (n, many)
        n = round(n * math.exp((_quantile(beta) - _quantile(error)) / slope))
        # A little beyond the estimate, to the side that closes the bracket.
        nudge = max(1, round(0.4 * RESOLUTION * n))
        n = n - nudge if error <= beta else n + nudge
        if many == 0:
            n = max(n, few + nudge)
        elif few and not few < n < many:
            n = (few + many) // 2
        else:
            n = min(max(n, 1), many - 1)
    return many


def _quantile(error: float) -> float:
    return float(special.ndtri(min(max(error, 1e-12), 1 - 1e-12)))


def _rough_size(plan: Plan, beta: float, recipe: Recipe, start: int) -> int:
    """Where the normal approximation meets the targets, to 5 percent, searched from ``start`` on."""

    def enough(n: int) -> bool:
        _check_reach(plan, n)
        return recipe.error(plan.target(n)) <= beta

    low = high = start
    if enough(start):
        while low > 1 and enough(low):
            low, high = max(round(low / 1.7), 1), low
    else:
        while not enough(high):
            low, high = high, math.ceil(1.7 * high)
    # Invariant: the approximation meets the targets at ``high`` and (above 1) not at ``low``.
    while high - low > max(1, 0.05 * high):
        middle = max(low + 1, min(round(math.sqrt(low * high)), high - 1))
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _order_of_magnitude(plan: Plan) -> int:
    """Half the sum of the theorem's four terms: within a factor of 3 of what was needed wherever we looked.

    For sqrt(k) the instance's own measure (sum of p^(2/3))^(3/2), which is sqrt(k) for uniform p (Valiant, Valiant).
    """
    root = float(np.sum(plan.domain.probabilities ** (2 / 3))) ** 1.5
    g, e = plan.distance, float(plan.epsilon)
    terms = (root / g**2, root / (g * e**0.5), root ** (2 / 3) / (g ** (4 / 3) * e ** (2 / 3)), 1 / (g * e))
    order = max(round(0.5 * sum(terms)), 2)
    _check_reach(plan, order // 10)
    return min(order, MOST_RECORDS)


def _check_reach(plan: Plan, n: int) -> None:
    if n > MOST_RECORDS:
        raise Infeasible(
            f"distance={plan.distance:g} from a null with {len(plan.domain.probabilities)} outcomes at "
            f"epsilon={float(plan.epsilon):g} needs more than {MOST_RECORDS} records. "
            "Use a larger distance or epsilon, or pool outcomes."
        )
