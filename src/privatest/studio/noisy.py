"""The law of a test's statistic under P and Q, noise included, as bars to draw.

The tests' error rates are exact to many digits and cost a transform each. A picture needs hundreds of
probabilities at once: one transform of the scores' law, taken to the power n, times the noise's characteristic
function. tests/studio/test_noisy.py compares the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import privatest as pt
from privatest import vectors

__all__ = ["noisy_law", "rounded"]


BARS = 160
LONGEST = 1 << 18
"""Lattice points up to which every one is computed; beyond, the bars are far wider than the lattice."""
WAVES = 512
FADED = 1e-4
"""Size of the last wave below which a series of so many is as good as all of them."""
DEVIATIONS = 5.0
NEGLIGIBLE = 7.0
"""The noise beyond this many times 1/decay_rate is out of the picture (one part in a thousand)."""


def noisy_law(test: pt.PrivateTest) -> dict[str, Any]:
    """Centres of the bars in nats, and the probability density of the statistic there under P and under Q.

    ``width`` is that of a bar, and the first ``decided`` bars are the ones at which the test decides "alternative".
    """
    score, n = test.score, test.n
    support = (test.scale * score.support - test.shift).astype(np.float64)
    laws = [score.null_law / score.null_law.sum(), score.alternative_law / score.alternative_law.sum()]
    means = [n * float(law @ support) for law in laws]
    spreads = [
        math.sqrt(max(n * float(law @ (support - mean / n) ** 2), 0.0)) for law, mean in zip(laws, means, strict=True)
    ]
    noise = NEGLIGIBLE / test.noise.decay_rate + test.sensitivity / 2
    low = min(mean - DEVIATIONS * spread for mean, spread in zip(means, spreads, strict=True)) - noise
    high = max(mean + DEVIATIONS * spread for mean, spread in zip(means, spreads, strict=True)) + noise
    low, high = min(low, float(test.cutoff)), max(high, float(test.cutoff))
    step = max(1, math.ceil((high - low) / (BARS - 1)))
    half = test.noise.offset
    # T is a whole number plus half. One edge is the threshold, so that the bars left of it add up to alpha.
    decided = math.floor(test.cutoff - half) + 1
    first = decided - step * math.ceil((decided - low) / step)
    edges = [first + step * k for k in range(BARS + 1)]
    unit = float(score.step / test.scale)
    start = 0.0 if test.neighbours == "add-remove" else float(score.value(Fraction(n * test.shift, test.scale), n))
    centres = [(edge + (step - 1) / 2 + float(half)) * unit + start for edge in edges[:-1]]
    totals = (test.null_total, test.alternative_total)
    drawn = [_bars(test, total, support, law, edges) / (step * unit) for total, law in zip(totals, laws, strict=True)]
    return {
        "statistic": rounded(centres, 9),
        "null": rounded(drawn[0].tolist()),
        "alternative": rounded(drawn[1].tolist()),
        "width": step * unit,
        "decided": (decided - first) // step,
    }


def rounded(values: list[float], digits: int = 6) -> list[float]:
    """Enough digits for a picture, in a third of the bytes."""
    return [float(f"{value:.{digits}g}") for value in values]


def _bars(
    test: pt.PrivateTest, total: Any, support: vectors.Floats, law: vectors.Floats, edges: list[int]
) -> vectors.Floats:
    """Pr[edge <= T - half < next edge] for each bar: T is periodic here, with a period that holds nearly all of it."""
    n, half, step = test.n, test.noise.offset, edges[1] - edges[0]
    period = 1 << math.ceil(math.log2(2 * (edges[-1] - edges[0]) + 2))
    if period <= LONGEST:
        around = np.zeros(period)
        np.add.at(around, np.mod(support.astype(np.int64), period), law)
        waves = np.fft.rfft(around)
        t = 2 * math.pi * np.arange(len(waves)) / period
        turned = waves**n * test.noise.characteristic(t) * np.exp(1j * t * float(half))
        probabilities = np.fft.irfft(turned, period)
        places = np.mod(np.arange(edges[0], edges[-1]), period)
        return np.asarray(np.maximum(probabilities[places].reshape(BARS, -1).sum(axis=1), 0.0))
    # Bars wider than any structure of the lattice: a Fourier series of the integral over a bar.
    t = 2 * math.pi * np.arange(1, WAVES + 1) / period
    centre = float(law @ support)
    with np.errstate(all="ignore"):
        phi = np.exp(1j * np.outer(t, support - centre)) @ law
        waves = np.exp(n * np.log(phi)) * test.noise.characteristic(t)
        if np.abs(waves[-1]) < FADED:
            middle = np.array(edges[:-1], dtype=float) + (step - 1) / 2 + float(half) - n * centre
            window = np.sinc(t * step / (2 * math.pi))
            series = np.exp(-1j * np.outer(middle, t)) @ (waves * window)
            return np.asarray(np.maximum((1 + 2 * series.real) * step / period, 0.0))
    # The two laws are far apart and each is narrower than a bar: n is large, and exact probabilities are quick.
    return np.maximum(np.diff([total.cdf(edge - 1 + half) for edge in edges]), 0.0)
