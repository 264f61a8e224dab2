"""pt.design and pt.decide: from hypotheses and a notion of privacy to a tuned test, and to its answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from privatest import numbers
from privatest.decision import PrivateTest, Release
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import Goal, Method, Problem
from privatest.errors import InvalidInput, shown
from privatest.numbers import Number
from privatest.unanswered_questions import known_arguments


def design(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    advantage: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> PrivateTest:
    """Design a test of P (``null``) against Q (``alternative``).

    Args:
        null, alternative: P and Q: frozen scipy distributions, mappings from labels to probabilities, arrays of
            probabilities, :func:`privatest.density`, text such as "normal(0, 1)", or sets of these.
        epsilon: privacy loss of one run. A float is read as its shortest decimal.
        privacy: another notion of privacy instead of epsilon: ``pt.approx(1, 1e-6)``, ``pt.gdp(1)``, ``pt.zcdp(0.5)``,
            ``pt.tv``, ``pt.renyi`` or ``pt.kl``, or a text such as "zcdp(0.5)".
        n: number of records, which is public. None: the smallest number that meets ``advantage``, or ``alpha`` and
            ``beta``.
        test: "tight" (the default) or one of the paper's tests: "scllr", "ncllr", "llr" or "sllr". The last two do not
            clamp and are not private.
        clamp: "tuned" (the default for "tight"): the clamp with the best exact error rates for this n; "paper" (the
            default for the paper's tests): the clamp of the decomposition; or (a, b).
        threshold: the statistic, in nats, above which the decision is "null". None: for "tight" the threshold with the
            best exact error rates, for the paper's tests 0.
        alpha: the largest type I error. The type II error is made small.
        neighbours: which data sets the test must not tell apart. "replace": two data sets of n records that differ in
            one record. "add-remove": two data sets of which one has one record more; n is then the number that you
            expect. The test is tuned for it, but n is neither checked nor revealed.
        max_rows_per_unit: the largest number of records that one person counts as, if a run names the ``unit`` (see
            :meth:`PrivateTest.run`): all rows of a person are hidden together. Above 1, error rates are those of rows
            that do not resemble each other (docs/sharp_edges.md).
        release: "statistic" (the default) releases the noisy statistic, with its p-value and an interval, for every
            level that is chosen afterwards. "decision" makes the best decision and needs fewer records; it releases
            only its level, a whole number with p-values of its own. A public coin between two thresholds then makes the
            type I error exactly ``alpha``.
        beta: without n, the type II error that the smallest n must not exceed, together with ``alpha``.
        advantage: without n, the smallest 1 - alpha - beta; 2/3 if no goal is given.

    >>> test = design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    >>> round(test.advantage, 4)
    0.6774
    """
    problem = Problem.of(
        null,
        alternative,
        epsilon=epsilon,
        privacy=privacy,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
    )
    method = Method.of(test=test, clamp=clamp, threshold=threshold, release=release)
    return design_for(problem, method, n=n, advantage=advantage, alpha=alpha, beta=beta)


def design_for(
    problem: Problem,
    method: Method,
    *,
    n: int | None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> PrivateTest:
    """Do what :func:`design` does, for a problem and a method that are parsed already."""
    if method.threshold is not None and alpha is not None:
        raise InvalidInput(
            f"threshold={float(method.threshold):g} and alpha={shown(alpha)} were both given. Give one of them."
        )
    if n is None:
        tuner = Tuner.of(problem, method, Goal.of(advantage=advantage, alpha=alpha, beta=beta))
        return tuner.test(tuner.sample_size())
    n = numbers.positive_integer(n=n)
    if beta is not None or advantage is not None:
        name, value = ("beta", beta) if beta is not None else ("advantage", advantage)
        raise InvalidInput(
            f"{name}={shown(value)} and n={n} were both given, but n alone fixes the power. Leave one of them out."
        )
    return Tuner.of(problem, method, Goal.best(alpha)).test(n)


@known_arguments
def decide(
    data: Any,
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    alpha: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> Release:
    """Decide whether data come from P (``null``) or from Q (``alternative``), with differential privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        null, alternative, epsilon, privacy, alpha, test, clamp, threshold, neighbours, max_rows_per_unit, release: as
            for :func:`privatest.design`.
        n: number of records; by default the number of the data, which is public. With neighbours "add-remove" it is
            not public: give the number that you expect.
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`PrivateTest.run`.

    >>> decide([0, 0, 1, 0, 0] * 20, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=1).decision
    'null'
    """
    from privatest import engines  # planning needs none of them

    records = None
    if n is None:
        if neighbours != "replace":
            raise InvalidInput(
                f"n is missing: with neighbours={neighbours!r} the number of records is not public, and a test that is "
                "designed for it would reveal it. Give the number that you expect: n=..."
            )
        records = engines.open_for(engines.Need(rows=max_rows_per_unit), data, column=column, unit=unit)
        n = records.count()
        if n == 0:
            raise InvalidInput("The data have no records. Pass at least one.")
    designed = design(
        null,
        alternative,
        epsilon=epsilon,
        privacy=privacy,
        n=n,
        alpha=alpha,
        test=test,
        clamp=clamp,
        threshold=threshold,
        neighbours=neighbours,
        max_rows_per_unit=max_rows_per_unit,
        release=release,
    )
    where = {"column": column, "unit": unit}
    designed.check_tells()
    return designed.run_opened(
        records, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng, odd_epsilon=odd_epsilon
    )
