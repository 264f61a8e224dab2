"""Small domains in full: every histogram, every neighbour, exact probabilities, and simulated statistics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
from scipy import stats

from privatest.fit.excess_law import Excess

__all__ = [
    "distance_from_uniform",
    "exact_law",
    "histograms",
    "neighbours",
    "simulated_noise",
    "simulated_values",
    "tulap_pmf",
    "uniformity_mean",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def histograms(k: int, m: int) -> Iterator[tuple[int, ...]]:
    """All counts of m records over k symbols."""
    for bars in itertools.combinations(range(m + k - 1), k - 1):
        ends = (-1, *bars, m + k - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def neighbours(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All histograms after one record is replaced."""
    for a, b in itertools.permutations(range(len(counts)), 2):
        if counts[a]:
            moved = list(counts)
            moved[a] -= 1
            moved[b] += 1
            yield tuple(moved)


def distance_from_uniform(counts: Sequence[int]) -> Fraction:
    """S = 1/2 sum_x |N_x/m - 1/k|, from its definition."""
    m, k = sum(counts), len(counts)
    return sum((abs(Fraction(c, m) - Fraction(1, k)) for c in counts), Fraction(0)) / 2


def multinomial(counts: Sequence[int], q: Sequence[Fraction]) -> Fraction:
    """Probability of a histogram."""
    ways = Fraction(math.factorial(sum(counts)))
    for count, share in zip(counts, q, strict=True):
        ways *= share**count / Fraction(math.factorial(count))
    return ways


def exact_law(excess: Excess, n: int, q: Sequence[Fraction]) -> dict[int, Fraction]:
    """Law of the statistic by enumeration, in rationals."""
    law: dict[int, Fraction] = {}
    for counts in histograms(len(q), n):
        value = excess.of(np.array(counts))
        law[value] = law.get(value, Fraction(0)) + multinomial(counts, q)
    return law


def tulap_pmf(epsilon: Fraction, width: int, x: Fraction) -> mpmath.mpf:
    """Pr[N = x] from the definition of the noise, at 40 digits."""
    with mpmath.workdps(40):
        b = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        block = (x + Fraction(width - 1, 2)) // width
        return (1 - b) / (1 + b) * b ** abs(int(block)) / width


def simulated_values(excess: Excess, n: int, q: Floats, runs: int, rng: np.random.Generator) -> Integers:
    """The statistic on simulated histograms, from its definition by table lookup."""
    out = []
    knots = excess.rows(np.arange(excess.symbols))
    for size in [2000] * (runs // 2000) + [runs % 2000] * (runs % 2000 > 0):
        counts = rng.multinomial(n, q / q.sum(), size=size)
        j = np.arange(counts.max() + 1)
        table = np.zeros((excess.symbols, len(j)), dtype=np.int64)
        for weight, column in zip(excess.weights.tolist(), knots.T, strict=True):
            table += weight * np.maximum(j - column[:, None], 0)
        out.append(table[np.arange(excess.symbols), counts].sum(axis=1))
    return np.concatenate(out)


def simulated_noise(epsilon: float, width: int, runs: int, rng: np.random.Generator) -> Floats:
    """Tulap noise with floats: the difference of two geometric variables in blocks of the width."""
    p = -math.expm1(-epsilon)
    blocks = rng.geometric(p, runs) - rng.geometric(p, runs)
    return np.asarray(width * blocks + rng.integers(0, width, runs) - (width - 1) / 2, dtype=np.float64)


def uniformity_mean(symbols: int, n: int) -> float:
    """E S for n uniform records: (k/m) v Bin(v; m, 1/k) (1 - 1/k) with v = floor(m/k) + 1."""
    v = n // symbols + 1
    return symbols / n * v * float(stats.binom.pmf(v, n, 1 / symbols)) * (1 - 1 / symbols)
