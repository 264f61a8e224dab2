"""A million draws of each noise of other notions against its law, the same of a law that is 1% off; draws a second.

python -m benchmarks.bench_draws            # a million of each at once, a tenth one by one and in threes
python -m benchmarks.bench_draws 100000     # so many of each, from 100,000 on; 1% is then not always seen

``tests/statistical`` has the noises of epsilon; here are those that monitors add, three blocks at a time.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from fractions import Fraction

import numpy as np

from privatest.privacy import Gaussian, Noise, TruncatedTulap, Tulap, Uniform, as_notion, system_source
from privatest.privacy.bulk_draws import draw_many, noise_adder
from privatest.privacy.decision_chain import decision_noise
from tests.statistical.goodness_of_fit import BAR, draw_counts, goodness_of_fit, law_counts, scaled

NOISES: list[tuple[str, Noise]] = [
    ("truncated tulap(1, 0.01), width 3", TruncatedTulap(Fraction(1), Fraction(1, 100), 3)),
    ("truncated tulap(0.5, 0.05), width 4", TruncatedTulap(Fraction(1, 2), Fraction(1, 20), 4)),
    ("uniform on 1,000 points", Uniform(1000)),
    ("gaussian(1), width 8", Gaussian(Fraction(1), 8)),
    ("gaussian(0.3), width 1", Gaussian(Fraction(3, 10), 1)),
    *(
        (f"chain of {text}", decision_noise(as_notion(text), 1))
        for text in ("approx(0.5, 0.05)", "gdp(1)", "zcdp(0.5)", "kl(0.5)")
    ),
    ("tulap(2), width 32", Tulap(Fraction(2), 32)),
    ("tulap(1), width 32", Tulap(Fraction(1), 32)),
    ("tulap(0.1), width 8", Tulap(Fraction(1, 10), 8)),
]


def many_counts(noise: Noise, count: int) -> Counter[Fraction]:
    """Draws made at once, tallied."""
    values, times = np.unique(draw_many(noise, count, system_source), return_counts=True)
    return Counter({Fraction(int(value), 2): int(often) for value, often in zip(values, times, strict=True)})


def few_counts(noise: Noise, count: int) -> Counter[Fraction]:
    """Draws made as streams make them, a few at a time, tallied."""
    noisy = noise_adder(noise, system_source)
    return Counter(Fraction(value, 2) for _ in range(count // 3) for value in noisy([0, 0, 0]))


def main(count: int) -> None:
    """Print, for each noise, the p-values of the ways to draw and of a law 1% off, and draws a second of work."""
    rng = np.random.default_rng(11148)
    print(f"{count:,} draws of each at once, {count // 10:,} one by one, and in threes, from the system's source")
    for name, noise in NOISES:
        draw_many(noise, 5000, system_source)  # tables are made
        began = time.process_time()
        many = many_counts(noise, count)
        middle = time.process_time()
        single = draw_counts(noise, count // 10, system_source)
        ended = time.process_time()
        few = few_counts(noise, count // 10)
        fits = [goodness_of_fit(counts, noise).pvalue for counts in (many, single, few)]
        wrong = goodness_of_fit(law_counts(scaled(noise, Fraction(101, 100)), count, rng), noise).pvalue
        verdict = "rejected" if wrong < BAR else "NOT REJECTED"
        fine = "" if min(fits) > BAR else "  DOES NOT FIT"
        speeds = f"{count / (middle - began):>10,.0f} and {count / 10 / (ended - middle):>7,.0f} a second"
        print(
            f"{name:36} p {fits[0]:.3f}, {fits[1]:.3f}, {fits[2]:.3f}; 1% off p {wrong:.1e} {verdict}; {speeds}{fine}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6)
