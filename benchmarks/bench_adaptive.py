"""False discoveries of analysts who test what they found in the same records: python -m benchmarks.bench_adaptive

n people have 50 answers (yes or no) and a label, all fair coins: there is nothing to find. An analyst asks, of each
question, whether its answers go with the label, and then tests the score made of what was found. "raw" looks at the
counts themselves; the others at counts with the package's noise, within one epsilon for all 50.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from statistics import NormalDist

import numpy as np

import privatest as pt
from privatest.privacy import Tulap, seeded_source

ALPHA, QUESTIONS = 0.05, 50


def discoveries(epsilon: Fraction | None, level: float, n: int, simulations: int, seed: int = 1) -> float:
    """The share of simulations in which something is found at that level."""
    rng = np.random.default_rng(seed)
    source = seeded_source(rng)
    noise = None if epsilon is None else Tulap(epsilon / QUESTIONS, 2)  # one person moves each count by two
    bar = NormalDist().inv_cdf(1 - level)
    found = 0
    for _ in range(simulations):
        agree = rng.choice([-1, 1], (n, QUESTIONS))  # answer times label: what all of this depends on
        counts = agree.sum(axis=0)
        shown = counts if noise is None else [count + float(noise.draw(source)) for count in counts.tolist()]
        found += float(np.sign(shown) @ counts) > bar * np.sqrt(n * QUESTIONS)
    return found / simulations


def table(n: int, simulations: int) -> list[tuple[str, float, float]]:
    """Who, at which level, and how often something was found."""
    small = Fraction(1, round(n**0.5))
    corrected = pt.adaptive_level(ALPHA, epsilon=small, n=n).level
    cases: list[tuple[str, Fraction | None, float]] = [
        ("raw counts, level alpha", None, ALPHA),
        ("pure(20), level alpha", Fraction(20), ALPHA),
        (f"pure({small}), level alpha", small, ALPHA),
        (f"pure({small}), corrected level", small, corrected),
    ]
    return [(who, level, discoveries(epsilon, level, n, simulations)) for who, epsilon, level in cases]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=900)
    parser.add_argument("--simulations", type=int, default=1000)
    options = parser.parse_args()
    print(f"n={options.n}, {options.simulations} simulations, alpha={ALPHA}")
    for who, level, share in table(options.n, options.simulations):
        print(f"{who:32} level {level:.5f}  false discoveries {share:.1%}")


if __name__ == "__main__":
    main()
