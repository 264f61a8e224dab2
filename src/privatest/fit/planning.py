"""How many records a goodness-of-fit test needs: from the normal approximation to exact error rates.

From P, a distance and epsilon to a goodness-of-fit test; how many records it needs; the test on data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from privatest import _validate, engines
from privatest.errors import Infeasible, InvalidInput
from privatest.fit.alternatives import largest_distance
from privatest.fit.candidates import METHODS, Recipe, Target, ranked, recipes
from privatest.fit.domain import Domain, read_domain
from privatest.fit.excess_law import ACCURACY
from privatest.fit.fit_test import FitRelease, FitTest
from privatest.privacy import Tulap
from privatest.rational import Number

__all__ = [
    "MOST_RECORDS",
    "Plan",
    "design_fit",
    "designed",
    "fit_sample_size",
    "goodness_of_fit",
    "rough_sample_size",
    "sample_size",
]

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


# alpha = beta = 1/6: the advantage 2/3 that the paper asks of every test.
DEFAULT_ERROR = 1 / 6
LEAST_ERROR = 100 * ACCURACY


def goodness_of_fit(
    data: Any,
    null: Any,
    *,
    distance: float,
    epsilon: Number,
    alpha: float = DEFAULT_ERROR,
    beta: float | None = DEFAULT_ERROR,
    bins: int | None = None,
    method: str = "auto",
    column: str | None = None,
    unit: str | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> FitRelease:
    """Whether the data come from P (``null``) or from some law at least ``distance`` away, with epsilon-privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null: P, as for :func:`design_fit`.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss.
        alpha: type I error allowed.
        beta: type II error allowed; more than the data can give is refused. None runs the test whatever it is.
        bins: number of bins for a continuous or infinite P.
        method: as for :func:`design_fit`.
        column, unit, ledger, dataset, request, rng: see :meth:`FitTest.run`.
    """
    records = engines.open_for(engines.Need(), data, column=column, unit=unit)
    n = records.count()
    test = design_fit(null, distance=distance, epsilon=epsilon, n=n, alpha=alpha, beta=beta, bins=bins, method=method)
    where = {"column": column, "unit": unit}
    return test.run_opened(records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng)


def design_fit(
    null: Any,
    *,
    distance: float,
    epsilon: Number,
    n: int,
    alpha: float = DEFAULT_ERROR,
    beta: float | None = None,
    bins: int | None = None,
    method: str = "auto",
) -> FitTest:
    """A test of P (``null``) against all laws at least ``distance`` away, on ``n`` records.

    Args:
        null: mapping, array of probabilities, scipy distribution, density or text. A continuous or infinite P is cut
            into bins of equal probability, and the distance is that between the binned laws.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        n: number of records, which is public.
        alpha: type I error allowed; the threshold is the smallest that keeps it.
        beta: type II error allowed: refuse if n records cannot give it. None: take what n gives.
        bins: number of bins for a continuous or infinite P; by default 4/distance.
        method: "auto" takes whichever needs the fewest records of "direct" (a statistic made for P), "uniformity" (the
            statistic of Acharya, Sun and Zhang; uniform P only) and "grains" (Goldreich's map, then uniformity).

    >>> test = design_fit([0.25] * 4, distance=0.3, epsilon=1, n=60)
    >>> test.alpha <= 1/6 and test.beta <= 1/6
    True
    """
    n = _validate.positive_integer(n=n)
    plan = _checked(null, distance, epsilon, alpha, beta, bins, method)
    test = designed(plan, n)
    if beta is not None and test.beta > beta:
        raise Infeasible(_too_few(plan, test, beta))
    return test


def fit_sample_size(
    null: Any,
    *,
    distance: float,
    epsilon: Number,
    alpha: float = DEFAULT_ERROR,
    beta: float = DEFAULT_ERROR,
    bins: int | None = None,
    method: str = "auto",
) -> int:
    """A number of records at which :func:`design_fit` has errors at most alpha and beta.

    Guarantees: the test designed for the n returned meets both targets by its exact law; one designed for a
    number of records about 1 percent smaller was found not to.

    >>> fit_sample_size({"heads": 0.5, "tails": 0.5}, distance=0.3, epsilon=1)
    19
    """
    return sample_size(_checked(null, distance, epsilon, alpha, beta, bins, method), beta)


def _checked(
    null: Any, distance: float, epsilon: Number, alpha: float, beta: float | None, bins: int | None, method: str
) -> Plan:
    budget = _validate.positive("Differential privacy needs a positive epsilon.", epsilon=epsilon)
    distance = _validate.probability("It is a total variation distance.", distance=distance)
    _check_error(alpha=alpha)
    if beta is not None:
        _check_error(beta=beta)
        if alpha + beta >= 1:
            raise InvalidInput(
                f"alpha={alpha!r} and beta={beta!r} must sum to less than 1: a coin that ignores the data reaches 1."
            )
    _validate.choice(METHODS, method=method)
    domain = read_domain(null, distance, bins)
    p = domain.probabilities
    largest = largest_distance(p)
    if distance > largest:
        raise InvalidInput(
            f"distance={distance!r} is larger than {largest:.6g}, the largest total variation distance of any law from "
            f"null {domain.null}. Use a smaller distance."
        )
    if method == "uniformity" and not np.all(p == p[0]):
        raise InvalidInput(f"method='uniformity' needs a uniform null, not {domain.null}. Use method='auto'.")
    return Plan(domain, distance, budget, alpha, method)


def _check_error(**arguments: float) -> None:
    """An error rate in (0, 1), and no smaller than the law's accuracy supports."""
    ((name, value),) = arguments.items()
    if _validate.probability("", **arguments) < LEAST_ERROR:
        raise InvalidInput(
            f"{name}={value!r} must be at least {LEAST_ERROR:g}: error rates are computed to {ACCURACY:g}."
        )


def _too_few(plan: Plan, test: FitTest, beta: float) -> str:
    reached = f"n={test.n} records give a type II error of {test.beta:.3g}, more than beta={beta:.4g}"
    setting = f"distance={plan.distance:g}, epsilon={float(plan.epsilon):g}, alpha={plan.alpha:.4g}"
    try:
        needed = f"about {rough_sample_size(plan, beta)[0]} records are needed"
    except Infeasible:
        needed = f"more than {MOST_RECORDS} records would be needed"
    return (
        f"{reached}, at {setting} on a domain of {len(plan.domain.probabilities)} outcomes: {needed}. Use more "
        "records, a larger distance, epsilon or alpha, fewer outcomes, or beta=None to run the test all the same."
    )
