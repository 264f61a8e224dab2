"""The whole grid: planned n, stated and measured error rates, a rival, and how n grows beside the theorem.

Run it with ``PYTHONPATH=src python -m tests.fit.grid [runs]``. It takes some minutes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from privatest.fit import FitTest, design_fit, fit_sample_size
from tests.fit.brute_force import simulated_noise, simulated_values
from tests.fit.rivals import plain_binomial, private_chi_squared

Floats = npt.NDArray[np.float64]
Row = tuple[str, int, float, float, str]
ALPHA = BETA = 1 / 6


def null(kind: str, k: int) -> Floats:
    """Uniform, or probabilities proportional to 1/rank."""
    p = np.ones(k) if kind == "uniform" else 1 / np.arange(1.0, k + 1)
    return np.asarray(p / p.sum())


def terms(k: int, g: float, e: float) -> list[float]:
    """The four terms of Acharya, Sun and Zhang."""
    return [k**0.5 / g**2, k**0.5 / (g * e**0.5), k ** (1 / 3) / (g ** (4 / 3) * e ** (2 / 3)), 1 / (g * e)]


def rejected(test: FitTest, q: Floats, runs: int, rng: np.random.Generator) -> float:
    """Share of simulated data sets from q for which the decision is "alternative"."""
    excess = test.candidate.excess
    noise = simulated_noise(test.epsilon, excess.width, runs, rng)
    return float(np.mean(simulated_values(excess, test.n, q, runs, rng) + noise > float(test.cutoff)))


def error_rates(runs: int) -> None:
    """Must show 6, first half."""
    rng = np.random.default_rng(6)
    print(f"alpha = beta = 1/6; {runs} simulated data sets a cell; standard error {math.sqrt(5 / 36 / runs):.4f}")
    print(
        "k     P        dist  eps   n      method      I stated  I meas.  II stated II meas. rival II  seconds  hardest"
    )
    for k in (2, 10, 100, 1000):
        for kind in ("uniform", "1/rank"):
            for g in (0.1, 0.3):
                for e in (0.3, 1.0):
                    p = null(kind, k)
                    start = time.process_time()
                    n = fit_sample_size(p, distance=g, epsilon=e, alpha=ALPHA, beta=BETA)
                    seconds = time.process_time() - start
                    test = design_fit(p, distance=g, epsilon=e, n=n, alpha=ALPHA)
                    q = test.hardest_law
                    first, second = rejected(test, p, runs, rng), 1 - rejected(test, q, runs, rng)
                    rival = private_chi_squared(p, q, n, e, ALPHA, min(runs, 2000), rng)
                    bare = f"  (not private: {plain_binomial(p[1], g, n, ALPHA):.4f})" if k == 2 else ""
                    print(
                        f"{k:<5} {kind:<8} {g:<5} {e:<5} {n:<6} {test.method:<11} {test.alpha:<9.4f} {first:<8.4f} "
                        f"{test.beta:<9.4f} {second:<8.4f} {rival:<9.4f} {seconds:<8.1f} "
                        f"{test.hardest_alternative}{bare}",
                        flush=True,
                    )


def slopes() -> None:
    """Must show 6, second half: how the planned n grows, beside the theorem."""
    epsilons = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    for kind, k, g in (("uniform", 10, 0.1), ("uniform", 100, 0.3), ("uniform", 1000, 0.1), ("1/rank", 100, 0.3)):
        print(f"\nn against epsilon: {kind} P, k={k}, distance {g}")
        _growth([(f"eps={e}", k, g, e, kind) for e in epsilons], lambda row: row[3])
    sizes = (10, 30, 100, 300, 1000, 3000)
    for g, e in ((0.1, 1.0), (0.3, 0.1)):
        print(f"\nn against k: uniform P, distance {g}, epsilon {e}")
        _growth([(f"k={k}", k, g, e, "uniform") for k in sizes], lambda row: row[1])


def _growth(rows: list[Row], axis: Callable[[Row], float]) -> None:
    print(f"  {'':<9} {'n':<8} {'slope':<7} {'four terms':<44} {'sum':<9} {'slope':<7} n/sum")
    before: tuple[float, int, float] | None = None
    for row in rows:
        label, k, g, e, kind = row
        n = fit_sample_size(null(kind, k), distance=g, epsilon=e, alpha=ALPHA, beta=BETA)
        x = axis(row)
        four = terms(k, g, e)
        slope = ["", ""]
        if before is not None:
            run = math.log(x / before[0])
            slope = [f"{math.log(n / before[1]) / run:.2f}", f"{math.log(sum(four) / before[2]) / run:.2f}"]
        before = (x, n, sum(four))
        listed = "  ".join(f"{term:<9.4g}" for term in four)
        print(
            f"  {label:<9} {n:<8} {slope[0]:<7} {listed:<44} {sum(four):<9.4g} {slope[1]:<7} {n / sum(four):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    error_rates(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
    slopes()
