"""From P, a distance and epsilon to a goodness-of-fit test; how many records it needs; the test on data."""

from __future__ import annotations

from typing import Any

import numpy as np

from privatest import _validate, engines
from privatest.errors import Infeasible, InvalidInput
from privatest.fit.candidates import METHODS
from privatest.fit.designed import FitTest
from privatest.fit.domain import read_domain
from privatest.fit.law import ACCURACY
from privatest.fit.plan import MOST_RECORDS, Plan, designed, rough_sample_size, sample_size
from privatest.fit.release import FitRelease
from privatest.fit.unfavourable import largest_distance
from privatest.rational import Number

__all__ = ["fit_design", "fit_sample_size", "goodness_of_fit"]

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
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> FitRelease:
    """Whether the data come from P (``null``) or from some law at least ``distance`` away, with epsilon-privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null: P, as for :func:`fit_design`.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss.
        alpha: type I error allowed.
        beta: type II error allowed; more than the data can give is refused. None runs the test whatever it is.
        bins: number of bins for a continuous or infinite P.
        method: as for :func:`fit_design`.
        column: which column holds the records.
        ledger, dataset, request, rng: see :meth:`FitTest.run`.
    """
    records = engines.open_for(engines.Need(), data, column=column)
    n = records.count()
    test = fit_design(null, distance=distance, epsilon=epsilon, n=n, alpha=alpha, beta=beta, bins=bins, method=method)
    charge = test.charge(ledger, dataset, request, column, simulated=rng is not None, data=data)
    return test.run_on(records, charge, rng=rng)


def fit_design(
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

    >>> test = fit_design([0.25] * 4, distance=0.3, epsilon=1, n=60)
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
    """A number of records at which :func:`fit_design` has errors at most alpha and beta.

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
