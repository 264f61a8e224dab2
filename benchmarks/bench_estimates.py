"""Private estimates and two groups: coverage, width over the bound, errors beside others', time.

    python -m benchmarks.bench_estimates [coverage reference bound error wide groups times]

Everything is computed, but for the mean absolute errors, which are simulated from a fixed seed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

import privatest as pt

RATES = {"bernoulli(?)": None, "poisson(?)": (0.0, 10.0), "normal(mean=?, sd=1)": (-3.0, 3.0)}
SIZES, EPSILONS, VALUES = (30, 100, 1000), (0.1, 1.0), 200


def coverage() -> None:
    """Of 95% intervals over 200 values of the parameter, for each n and epsilon."""
    for family, between in RATES.items():
        for n in SIZES:
            for epsilon in EPSILONS:
                design = pt.design_estimate(family, between=between, epsilon=epsilon, n=n)
                low, high = design.between
                values = np.linspace(low, high, VALUES + 2)[1:-1]
                found = np.array([design.coverage(value) for value in values])
                print(
                    f"{family:22} n={n:5} epsilon={epsilon:4}: smallest {found.min():.6f}, median "
                    f"{np.median(found):.6f}, largest {found.max():.6f}",
                    flush=True,
                )
    print("OpenDP's BinomialCND interval, published figure: 0.920 at n = 30, epsilon 1, rate 0.1")


def reference() -> None:
    """Awan and Slavkovic's interval for 18 of 30, b = e^-1, q = 0.05, beside ours at pure epsilon 1."""
    design = pt.design_estimate("bernoulli(?)", epsilon=1, n=30)
    score = design.score
    assert score is not None
    zero, one = (int(s) for s in score.of_numbers(np.array([0.0, 1.0])))
    release = design.release(18 * one + 12 * zero + design.noise.offset)  # type: ignore[union-attr]
    low, high = release.interval
    theirs = "Awan and Slavkovic, (eps, delta) of q = .05: (.411, .767)"
    print(f"18 of 30 at epsilon 1: ours ({low:.3f}, {high:.3f}); {theirs}")


def bound() -> None:
    """Expected width over what no private interval can beat."""
    ratios = []
    for family, values in {
        "bernoulli(?)": (0.1, 0.5),
        "poisson(?)": (1.0, 5.0),
        "normal(mean=?, sd=1)": (0.0, 2.0),
    }.items():
        for n in SIZES:
            for epsilon in EPSILONS:
                for value in values:
                    design = pt.design_estimate(family, between=RATES[family], epsilon=epsilon, n=n)
                    width, least = design.expected_width(value), design.width_bound(value)
                    ratios.append(width / least)
                    print(
                        f"{family:22} n={n:5} epsilon={epsilon:4} at {value:4}: width {width:.4f}, bound {least:.4f}, "
                        f"ratio {ratios[-1]:.2f}",
                        flush=True,
                    )
    print(f"width over bound: median {np.median(ratios):.2f}, largest {max(ratios):.2f}")


def error(runs: int = 200) -> None:
    """Mean absolute error of the mean of N(mu, 1), n = 1000, epsilon 1, between -10 and 10."""
    rng, n = np.random.default_rng(1), 1000
    design = pt.design_estimate("normal(mean=?, sd=1)", between=(-10, 10), epsilon=1, n=n)
    ours, clipped, plain = [], [], []
    for _ in range(runs):
        mean = rng.uniform(-5, 5)
        x = rng.normal(mean, 1, n)
        ours.append(abs(design.run(x, rng=rng).estimate - mean))
        clipped.append(abs(np.clip(x, -10, 10).mean() + rng.laplace(0, 20 / n) - mean))
        plain.append(abs(x.mean() - mean))
    print(
        f"mean absolute error, {runs} runs: ours {np.mean(ours):.4f}, Laplace-noised clipped mean "
        f"{np.mean(clipped):.4f}, without privacy {np.mean(plain):.4f}"
    )


def wide() -> None:
    """Mean of N(12345, 1) between -10^6 and 10^6, beside between 12340 and 12350."""
    widths = []
    for between in ((-1e6, 1e6), (12340.0, 12350.0)):
        design = pt.design_estimate("normal(mean=?, sd=1)", between=between, epsilon=1, n=1000)
        widths.append(design.expected_width(12345.0))
        print(f"between {between}: expected width {widths[-1]:.4f}, coverage at least {design.coverage(12345.0):.4f}")
    print(f"ratio {widths[0] / widths[1]:.3f}")


def groups() -> None:
    """Size over a grid of common rates, and power beside Boschloo's exact test and a Laplace difference test."""
    for n in ((50, 50), (200, 200), (100, 400)):
        for epsilon in (0.5, 1.0):
            design = pt.design_groups(n=n, epsilon=epsilon)
            sizes = [design.power((rate, rate)) for rate in np.linspace(0.0005, 0.9995, 1000).tolist()]
            worst = int(np.argmax(sizes))
            print(
                f"n={n} epsilon={epsilon}: largest size {sizes[worst]:.5f} at rate {(worst + 0.5) / 1000:.3f}",
                flush=True,
            )
    design = pt.design_groups(n=(200, 200), epsilon=1)
    print(f"power at .3/.4, n = 200 each: ours at epsilon 1 {design.power((0.3, 0.4)):.4f}")
    print(f"  Boschloo's exact test, without privacy: {_boschloo(200, (0.3, 0.4)):.4f}")
    print(f"  Laplace difference test (normal approximation, its own error): {_laplace(200, (0.3, 0.4)):.4f}")


def _boschloo(n: int, rates: tuple[float, float], runs: int = 400) -> float:
    """Simulated from a seed: the exact test has no closed form for its power."""
    rng = np.random.default_rng(2)
    x, y = rng.binomial(n, rates[0], runs), rng.binomial(n, rates[1], runs)
    known: dict[tuple[int, int], float] = {}
    hits = 0
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if (a, b) not in known:
            known[a, b] = stats.boschloo_exact([[a, b], [n - a, n - b]], n=16).pvalue
        hits += known[a, b] <= 0.05
    return hits / runs


def _laplace(n: int, rates: tuple[float, float]) -> float:
    """The difference of two Laplace-noised rates over its standard error, as people write it."""
    rng, runs = np.random.default_rng(3), 200_000
    a, b = (rng.binomial(n, rate, runs) + rng.laplace(0, 1, runs) for rate in rates)
    common = np.clip((a + b) / (2 * n), 0.001, 0.999)
    z = (b - a) / n / np.sqrt(2 * common * (1 - common) / n + 4 / n**2)
    return float(np.mean(np.abs(z) > stats.norm.isf(0.025)))


def times() -> None:
    """Seconds of one interval and of one two-group p-value."""
    rng = np.random.default_rng(4)
    for family, between, data in (
        ("bernoulli(?)", None, rng.binomial(1, 0.3, 10**6)),
        ("normal(mean=?, sd=1)", (-3, 3), rng.normal(0.2, 1, 10**6)),
        ("poisson(?)", (0, 20), rng.poisson(4, 10**6)),
    ):
        for n in (1000, 10**6):
            design = pt.design_estimate(family, between=between, epsilon=1, n=n)
            start = time.perf_counter()
            design.run(data[:n])
            print(f"{family} n={n}: a run takes {time.perf_counter() - start:.2f} s", flush=True)
    one, other = rng.binomial(1, 0.3, 10**6), rng.binomial(1, 0.301, 10**6)
    design = pt.design_groups(n=(10**6, 10**6), epsilon=1)
    start = time.perf_counter()
    release = design.run(one, other)
    print(f"two groups of 10^6, p-value and interval: {time.perf_counter() - start:.2f} s; p {release.pvalue:.4f}")
    start = time.perf_counter()
    design.counts.pvalue((300_000, 301_500))
    print(f"  the p-value alone: {time.perf_counter() - start:.2f} s")


PARTS: dict[str, Callable[[], None]] = {
    "coverage": coverage,
    "reference": reference,
    "bound": bound,
    "error": error,
    "wide": wide,
    "groups": groups,
    "times": times,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        print(f"== {name}")
        PARTS[name]()
