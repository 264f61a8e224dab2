"""What exact power costs: one error rate at any n, a tuned sample size, and Monte Carlo for comparison."""

from __future__ import annotations

import math
import time

import numpy as np
from bench_core import Comparison, side_by_side

import privatest as pt
from privatest.decision import PrivateTest
from privatest.hypotheses import parse as question
from privatest.laws.noisy_total import NoisyTotal

EPSILON = 0.5
SIMULATED = 200


def error_rates(repeats: int) -> Comparison:
    """One error rate of N(0,1)/N(3/sqrt(n),1) at n = 10^3, 10^6 and 10^9: the cost should not grow with n."""
    tests = {
        n: pt.design("normal(0, 1)", f"normal({3 / math.sqrt(n)}, 1)", epsilon=EPSILON, n=n)
        for n in (10**3, 10**6, 10**9)
    }

    def rate(test: PrivateTest) -> float:
        # a fresh object each time, so that nothing is remembered from the last call
        return NoisyTotal(test.score.support, test.score.null_law, test.n, test.noise).cdf(test.cutoff)

    seconds = side_by_side({f"n = {n:.0e}": lambda test=test: rate(test) for n, test in tests.items()}, repeats)
    test = tests[10**3]
    rng = np.random.default_rng(3)
    start = time.perf_counter()
    low = sum(test.run(rng.normal(size=1000), rng=rng).decision == "alternative" for _ in range(SIMULATED))
    spent = time.perf_counter() - start
    share = low / SIMULATED
    error = math.sqrt(max(share * (1 - share), 1 / SIMULATED) / SIMULATED)
    seconds[f"Monte Carlo, n = 1e+03, error {error:.0e}"] = spent
    bound = test.null_total.bounded_cdf(test.cutoff)
    notes = [
        f"exact at n = 10^3: {bound.value:.12f} with error at most {bound.error:.0e}; simulated: {share:.4f}",
        f"Monte Carlo to 1e-10 would take {(error / 1e-10) ** 2 * spent / 3.15e7:.0e} years at this speed",
    ]
    return Comparison("One exact error rate, a normal shift of 3/sqrt(n)", 0, seconds, notes)


def sample_sizes(repeats: int) -> Comparison:
    """Everything tuned: the clamp, the threshold, then the smallest n."""
    found: dict[str, int] = {}

    def size(shift: float, epsilon: float) -> int:
        question._cached_hypotheses.cache_clear()  # else the second time it is known
        n = pt.sample_size("normal(0, 1)", f"normal({shift}, 1)", epsilon=epsilon)
        found[f"{shift} at epsilon {epsilon}"] = n
        return n

    contestants = {
        "sample_size, shift 0.2, epsilon 1": lambda: size(0.2, 1),
        "sample_size, shift 0.001, epsilon 0.01": lambda: size(0.001, 0.01),
    }
    seconds = side_by_side(contestants, repeats)
    return Comparison(
        "Tuned sample sizes of a normal shift", 0, seconds, [f"shift {k}: n = {n}" for k, n in found.items()]
    )
