"""100 tests within approx(1, 1e-6), the noise of one of them: python -m benchmarks.bench_accounting

The noise is a standard deviation in widths, the most by which one record moves a test's total.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from dp_accounting.pld import common, privacy_loss_distribution
from scipy.stats import binom

import privatest as pt
from privatest.privacy import Gdp, Notion, Pure
from privatest.privacy.composition import composed_epsilon

TESTS, EPSILON, DELTA = 100, 1.0, Fraction(1, 10**6)


def largest(kind: Callable[[Fraction], Notion]) -> Notion:
    """The largest price of which that many fit, to five digits."""
    low, high = 1, 100_000  # invariant: low fits, high does not; in units of 1e-6
    while high - low > 1:
        middle = (low + high) // 2
        fits = composed_epsilon({kind(Fraction(middle, 10**6)): TESTS}, DELTA) <= EPSILON
        low, high = (middle, high) if fits else (low, middle)
    return kind(Fraction(low, 10**6))


def main() -> None:
    gaussian, pure = largest(Gdp), largest(Pure)
    print(f"Gaussian noise, composed: {gaussian} each, {float(1 / gaussian.exact[0]):.1f} widths")
    print(f"Tulap noise, composed: {pure} each, {math.sqrt(2) / float(pure.exact[0]):.1f} widths")
    print(f"Tulap noise, added up: pure({EPSILON / TESTS:g}) each, {math.sqrt(2) * TESTS / EPSILON:.1f} widths")
    with tempfile.TemporaryDirectory() as folder:
        ledger = pt.Ledger(Path(folder) / "ledger.db")
        for name, price in (("gaussian", gaussian), ("pure", pure)):
            ledger.grant(name, privacy="approx(1, 1e-6)")
            began = time.monotonic()
            for number in range(TESTS):
                ledger.perform(dataset=name, request=f"q{number}", privacy=price, design="d", draw=lambda: {"a": 1})
            seconds = time.monotonic() - began
            try:
                ledger.perform(dataset=name, request="one more", privacy=price, design="d", draw=lambda: {"a": 1})
                more = "taken"
            except pt.errors.BudgetExceeded:
                more = "refused"
            spent, added = ledger.spent(name), ledger.added_up(name)
            each = f"{seconds / TESTS * 1e3:.0f} ms each"
            print(f"ledger, {name}: spent {spent}, added up {added}, one more is {more}; {each}")
    value = float(gaussian.exact[0])
    by_hand = privacy_loss_distribution.from_gaussian_mechanism(1 / value).self_compose(TESTS)
    print(f"dp_accounting by hand, gaussian: {by_hand.get_epsilon_for_delta(1e-6):.6f}")
    response = common.DifferentialPrivacyParameters(float(pure.exact[0]), 0.0)
    by_hand = privacy_loss_distribution.from_privacy_parameters(response, 1e-6).self_compose(TESTS)
    print(f"dp_accounting by hand, pure: {by_hand.get_epsilon_for_delta(1e-6):.6f} (losses rounded up to 1e-6)")
    print(f"delta of that many randomised responses at {EPSILON:g}, by the binomial law: {exact_delta(pure):.6e}")


def exact_delta(price: Notion) -> float:
    """The loss of so many randomised responses is (2 K - TESTS) epsilon, K binomial."""
    loss = float(price.exact[0])
    losses = (2 * np.arange(TESTS + 1) - TESTS) * loss
    chances = binom.pmf(np.arange(TESTS + 1), TESTS, 1 / (1 + math.exp(-loss)))
    return float(np.sum(chances * np.maximum(-np.expm1(EPSILON - losses), 0)))


if __name__ == "__main__":
    main()
