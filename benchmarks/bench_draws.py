"""A million draws of each noise of other notions against its law, the same of a law that is 1% off; draws a second.

python -m benchmarks.bench_draws            # a million of each, some minutes; tests/statistical has those of epsilon
python -m benchmarks.bench_draws 100000     # so many of each, from 100,000 on; 1% is then not always seen
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction

import numpy as np

from privatest.privacy import (
    Gaussian,
    Noise,
    TruncatedTulap,
    Uniform,
    as_notion,
    seeded_source,
    system_source,
)
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
]


def main(count: int) -> None:
    """Print, for each noise, both p-values and how many draws from the system's source a second of work makes."""
    seeded, rng = seeded_source(np.random.default_rng(1811)), np.random.default_rng(11148)
    for name, noise in NOISES:
        began = time.process_time()
        few = draw_counts(noise, max(count // 20, 1), system_source)
        speed = sum(few.values()) / (time.process_time() - began)
        right = goodness_of_fit(draw_counts(noise, count, seeded), noise)
        wrong = goodness_of_fit(law_counts(scaled(noise, Fraction(101, 100)), count, rng), noise)
        verdict = "rejected" if wrong.pvalue < BAR else "NOT REJECTED"
        fine = "" if right.pvalue > BAR else "  DOES NOT FIT"
        found = f"p = {right.pvalue:<8.3g} 1% off: p = {wrong.pvalue:<8.2g} {verdict}"
        print(f"{name:36} {found}, {speed:>9,.0f} draws a second{fine}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10**6)
