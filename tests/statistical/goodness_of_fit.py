"""Is this sample from that law? Two tests in one p-value, strong enough to see a scale that is 1% off.

1. Pearson's chi-square over bins of at least 50 expected draws (single lattice values in the body, pooled
   tails): sees any wrong shape. It has so many degrees of freedom that 1% in the scale can hide among them.
2. Rao's score test in the direction of the scale: the sample mean of d log pmf / d log epsilon, which has
   mean 0 and a known variance I (the Fisher information) under the law. An epsilon off by a fraction f moves
   it by f sqrt(n I) standard errors. With n = 10^6 and f = 0.01 that is 10 to 12 for the three noises (I is
   between 0.99 and 1.43), where a p-value of 5e-10 needs 6.2: a miss has probability under 1e-4.

The p-value reported is the smaller of the two, doubled.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from privatest.privacy import Chain, Gaussian, Laplace, Logistic, Noise, RandomSource, TruncatedTulap, Tulap, Uniform

SMALLEST_EXPECTED = 50.0
BAR = 1e-9


@dataclass(frozen=True)
class Fit:
    bins: int
    shape: float
    scale: float
    z: float
    mean_z: float
    variance_z: float

    @property
    def pvalue(self) -> float:
        return min(1.0, 2 * min(self.shape, self.scale))

    def __str__(self) -> str:
        return (
            f"p = {self.pvalue:.3g} (chi-square over {self.bins} bins {self.shape:.3g}, "
            f"scale z = {self.z:+.2f}); standard errors off: mean {self.mean_z:+.2f}, "
            f"variance {self.variance_z:+.2f}"
        )


def scaled(noise: Noise, factor: Fraction) -> Noise:
    """The same noise with epsilon (or mu, 1/scale, 1/points) times ``factor``; of a chain, its notion's."""
    if isinstance(noise, Tulap):
        return Tulap(noise.epsilon * factor, noise.width)
    if isinstance(noise, TruncatedTulap):
        return TruncatedTulap(noise.epsilon * factor, noise.delta, noise.width)
    if isinstance(noise, Uniform):
        return Uniform(round(noise.points / factor))
    if isinstance(noise, Gaussian):
        return Gaussian(noise.mu * factor, noise.width)
    if isinstance(noise, Chain):
        kind: Any = type(noise.notion)
        by = factor if noise.notion.tradeoff else factor**2  # of a divergence
        return Chain(kind(*noise.notion.exact[:-1], noise.notion.exact[-1] * by), noise.width, noise.start)
    assert isinstance(noise, Laplace | Logistic)
    return type(noise)(noise.scale / factor)


def draw_counts(noise: Noise, count: int, source: RandomSource) -> Counter[Fraction]:
    """``count`` draws, tallied as the integers whose half ``draw`` returns: a million fractions take as long again."""
    doubled = Counter(map(noise.draw_doubled, itertools.repeat(source, count)))
    return Counter({Fraction(twice, 2): times for twice, times in doubled.items()})


def law_counts(noise: Noise, count: int, rng: np.random.Generator) -> Counter[Fraction]:
    """A tally of ``count`` draws of a faultless sampler of the law, made from its probabilities."""
    x = support(noise)
    chances = noise.pmf(x)
    drawn = zip(x, rng.multinomial(count, chances / chances.sum()), strict=True)
    return Counter({Fraction(value): int(times) for value, times in drawn if times})


def support(noise: Noise) -> np.ndarray:
    """Lattice values that hold all mass but 1e-15 or so."""
    far = int(noise.reach(36)) + 10
    return np.arange(-far, far + 1) + float(noise.offset)


def score(noise: Noise, x: np.ndarray) -> np.ndarray:
    """d log pmf / d log epsilon at x, by a central difference; 0 where a law ends, and of whole numbers of points."""
    h = Fraction(1, 10**5)
    up, down = scaled(noise, 1 + h), scaled(noise, 1 - h)
    with np.errstate(invalid="ignore"):
        found = (up.logpmf(x) - down.logpmf(x)) / (2 * float(h))
    return np.where(np.isfinite(found), found, 0.0)


def information(noise: Noise) -> float:
    """Fisher information about log epsilon in one draw: the variance of the score."""
    x = support(noise)
    masses, found = noise.pmf(x), score(noise, x)
    return float(masses @ found**2 - (masses @ found) ** 2)


def goodness_of_fit(counts: Counter[Fraction], noise: Noise) -> Fit:
    """The tests of the module's docstring, on tallied draws."""
    n = sum(counts.values())
    values = np.array([float(value) for value in counts])
    weights = np.array(list(counts.values()), dtype=np.float64)

    x = support(noise)
    body = x[n * noise.pmf(x) >= SMALLEST_EXPECTED]
    lo, hi = body[0], body[-1]
    observed = np.zeros(body.size + 2)
    np.add.at(observed, np.clip(np.round(values - lo).astype(int), -1, body.size) + 1, weights)
    expected = n * np.concatenate([[noise.cdf(lo - 1)], noise.pmf(body), [noise.sf(hi)]])
    while expected[0] < SMALLEST_EXPECTED:
        expected, observed = _pool_ends(expected), _pool_ends(observed)
    shape = stats.chisquare(observed, expected * (n / expected.sum())).pvalue

    masses, told = noise.pmf(x), information(noise)
    z = 0.0
    if told > 1e-12:
        z = float(weights @ (score(noise, values) - masses @ score(noise, x))) / np.sqrt(n * told)
    mean, second, fourth = (float(masses @ x**power) for power in (1, 2, 4))
    mean_z = float(weights @ (values - mean)) / np.sqrt(n * (second - mean**2))
    variance_z = float(weights @ (values**2 - second)) / np.sqrt(n * (fourth - second**2))
    return Fit(expected.size, float(shape), float(2 * stats.norm.sf(abs(z))), float(z), mean_z, variance_z)


def _pool_ends(bins: np.ndarray) -> np.ndarray:
    """The two outermost bins on each side made one."""
    return np.concatenate([[bins[0] + bins[1]], bins[2:-2], [bins[-2] + bins[-1]]])
