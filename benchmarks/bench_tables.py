"""What noisy tables can tell, and at what price: records for a test, widths and coverage of intervals, seconds.

    python -m benchmarks.bench_tables cells         records from tables over those of one total, cells equal and placed
    python -m benchmarks.bench_tables normal        normal(mean=?, sd=?): width, and coverage over many (mean, sd)
    python -m benchmarks.bench_tables median        medians of five shapes beside the order statistics' interval
    python -m benchmarks.bench_tables mean          means of four columns beside Student's t interval
    python -m benchmarks.bench_tables fits          share of Poisson fits that are refused
    python -m benchmarks.bench_tables seconds       processor seconds of each call

``--runs`` sets how often each is repeated. All draws come from seeded generators.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import privatest as pt
from privatest.estimates.table_test import smallest_number

PAIRS = [
    ("normal(0, 1)", "normal(0.2, 1)"),
    ("normal(0, 1)", "normal(0.5, 1)"),
    ("normal(0, 1)", "normal(1, 1)"),
    ("normal(0, 1)", "normal(0, 1.5)"),
    ("student_t(3, 0, 1)", "normal(0, 1)"),
    ("gamma(2, 1)", "gamma(2.5, 1)"),
    ("exponential(1)", "exponential(1.5)"),
    ("laplace(0, 1)", "laplace(0.5, 1)"),
    ("uniform(0, 1)", "beta(2, 2)"),
    ("lognormal(0, 1)", "lognormal(0.4, 1)"),
]
SHAPES: dict[str, tuple[Callable[[Any, int], Any], float, tuple[float, float]]] = {
    "normal": (lambda rng, n: rng.normal(0, 1, n), 0.0, (-10.3, 9.7)),
    "exponential": (lambda rng, n: rng.exponential(1, n), float(np.log(2)), (-2, 18)),
    "cauchy": (lambda rng, n: rng.standard_cauchy(n), 0.0, (-10.3, 9.7)),
    "ties": (lambda rng, n: np.round(rng.normal(0, 2, n)), 0.0, (-20, 20)),
    "gap": (lambda rng, n: rng.normal(0, 0.3, n) + np.where(rng.random(n) < 0.5, -2.0, 2.0), 0.0, (-10.3, 9.7)),
}


def cells(runs: int) -> None:
    """Compare the records for advantage 2/3 of tables with those of one total."""
    for epsilon in (0.5, 1, 2)[: max(runs, 1)]:
        rows = []
        for null, alternative in PAIRS:
            one = pt.sample_size(null, alternative, epsilon=epsilon)
            middles = [frozen(text) for text in (null, alternative)]
            ratios = []
            for count in (4, 8, 16, 32):
                levels = np.arange(1, count) / count
                edges = np.unique(np.mean([law.ppf(levels) for law in middles], axis=0)).tolist()
                ratios.append(records_of_table(null, alternative, epsilon, one, edges) / one)
            ratios.append(records_of_table(null, alternative, epsilon, one) / one)
            rows.append(ratios)
            print(f"eps {epsilon:g} {null:20} {alternative:20} {one:5}", *(f"{ratio:5.2f}" for ratio in ratios))
        print(
            f"eps {epsilon:g} median of 4, 8, 16, 32 cells, and of 8 at most placed for the pair:",
            *(f"{each:.2f}" for each in np.median(rows, axis=0)),
        )


def records_of_table(null: str, alternative: str, epsilon: float, start: int, edges: list[float] | None = None) -> int:
    """The number of records with which the test by a table has advantage 2/3; without edges, of 8 placed cells."""
    cells: dict[str, Any] = {"edges": edges} if edges else {"cells": 8, "null": null, "alternative": alternative}

    def test_of(n: int) -> Any:
        return pt.design_table(n=n, epsilon=epsilon, **cells).power(null, alternative)

    return smallest_number(test_of, lambda test: test.advantage >= 2 / 3, start)


def frozen(text: str) -> Any:
    """The law of a text, with its quantiles."""
    from privatest.hypotheses import as_distribution

    return as_distribution(text)


def normal(runs: int) -> None:
    """Widths at N(3, 2), and how often the intervals of both parameters hold the truth, over many (mean, sd)."""
    ranges: dict[str, Any] = {"between": (-50, 50), "sd_between": (0.5, 8), "epsilon": 1}
    rng = np.random.default_rng(1)
    for n in (200, 500, 5_000):
        widths = []
        for _ in range(max(runs // 8, 3)):
            found = pt.estimate(rng.normal(3, 2, n), "normal(mean=?, sd=?)", rng=rng, **ranges)
            widths.append([high - low for low, high in found.intervals])
        mean, sd = np.mean(widths, axis=0)
        public = 2 * stats.t.ppf(0.975, n - 1) * 2 / np.sqrt(n)
        print(f"n {n}: mean width {mean:.3f} (t interval {public:.3f}), width of sd {sd:.3f}, {len(widths)} runs")
    held = np.zeros(2)
    for _ in range(runs):
        truth = rng.uniform(-45, 45), float(np.exp(rng.uniform(np.log(0.6), np.log(7))))
        found = pt.estimate(rng.normal(*truth, 500), "normal(mean=?, sd=?)", rng=rng, **ranges)
        held += [low <= value <= high for (low, high), value in zip(found.intervals, truth, strict=True)]
    print(f"coverage over {runs} (mean, sd): mean {held[0] / runs:.3f}, sd {held[1] / runs:.3f}")


def median(runs: int) -> None:
    """Coverage and mean width over the interval of order statistics."""
    for name, (draw, truth, between) in SHAPES.items():
        rng, held, ours, theirs = np.random.default_rng(2), 0, [], []
        for _ in range(runs):
            data = draw(rng, 500)
            low, high = pt.estimate(data, "median", between=between, epsilon=1, rng=rng).interval
            held += low <= truth <= high
            ours.append(min(high, between[1]) - max(low, between[0]))
            rank = int(stats.binom.ppf(0.025, 500, 0.5))
            theirs.append(float(np.diff(np.sort(data)[[rank - 1, 500 - rank]])[0]))
        ratio = np.mean(ours) / np.mean(theirs) if np.mean(theirs) else np.inf  # of ties, whose interval is one value
        print(f"{name:12} coverage {held / runs:.3f}, width {np.mean(ours):.3f}, over order statistics {ratio:.2f}")


def columns() -> dict[str, tuple[Any, tuple[float, float]]]:
    """Real columns that scikit-learn and statsmodels bring, where these are there; n, range public."""
    from sklearn import datasets

    found: dict[str, tuple[Any, tuple[float, float]]] = {}
    diabetes = datasets.load_diabetes(scaled=False)
    found["BMI"] = diabetes.data[:, diabetes.feature_names.index("bmi")], (10, 70)
    found["glucose"] = diabetes.data[:, diabetes.feature_names.index("s6")], (40, 300)
    cancer = datasets.load_breast_cancer()
    found["radius"] = cancer.data[:, 0], (0, 50)
    found["area error"] = cancer.data[:, list(cancer.feature_names).index("area error")], (0, 1000)
    try:
        import statsmodels.api as sm

        found["visits"] = sm.datasets.randhie.load_pandas().data["mdvis"].to_numpy(dtype=float), (0, 100)
        found["expenses"] = sm.datasets.fair.load_pandas().data["affairs"].to_numpy(dtype=float), (0, 60)
    except ImportError:
        pass
    return found


def mean(runs: int) -> None:
    """Widths over the t interval's, and coverage when the column is resampled."""
    for name, (column, between) in columns().items():
        rng, held, widths = np.random.default_rng(3), np.zeros(2), np.zeros(2)
        public = 2 * stats.sem(column) * stats.t.ppf(0.975, len(column) - 1)
        for _ in range(runs):
            data = rng.choice(column, len(column))
            for place, guarantee in enumerate(("certified", "approximate")):
                found = pt.estimate(data, "mean", between=between, epsilon=1, guarantee=guarantee, rng=rng)
                widths[place] += found.interval[1] - found.interval[0]
                held[place] += found.interval[0] <= column.mean() <= found.interval[1]
        ratios, shares = widths / runs / public, held / runs
        print(
            f"{name:12} n {len(column):6} {between} certified {ratios[0]:.2f} (coverage {shares[0]:.3f}), approximate "
            f"{ratios[1]:.2f} ({shares[1]:.3f}) times the t interval"
        )


def fits(runs: int) -> None:
    """Share of fits that are refused on Poisson counts, and on counts of twice and five times the variance."""
    rng = np.random.default_rng(4)
    for factor in (1, 2, 5):
        refused = 0
        for _ in range(runs):
            data = rng.poisson(4, 2_000) if factor == 1 else rng.negative_binomial(4 / (factor - 1), 1 / factor, 2_000)
            table = pt.tabulate(data, labels=range(16), epsilon=1, rng=rng)
            refused += not table.estimate("poisson(?)", between=(0.5, 12)).fits
        print(f"variance {factor} times the mean: refused {refused / runs:.3f} of {runs}")


def seconds(runs: int) -> None:
    """Processor seconds of each call, the median of some runs."""
    rng = np.random.default_rng(5)
    data, counts = rng.normal(3, 2, 500), rng.poisson(4, 2_000)
    table = pt.tabulate(data, between=(-20, 20), cells=40, epsilon=1, rng=rng)
    calls: dict[str, Callable[[], Any]] = {
        "tabulate": lambda: pt.tabulate(data, between=(-20, 20), cells=40, epsilon=1, rng=rng),
        "table.share": lambda: table.share(above=3),
        "table.median": lambda: table.median(),
        "table.mean": lambda: table.mean(),
        "table.estimate": lambda: table.estimate("normal(mean=?, sd=?)", sd_between=(0.5, 8)),
        "table.test": lambda: table.test("normal(3, 2)", "normal(4, 2)"),
        "table.fit": lambda: table.fit("normal(3, 2)"),
        "estimate median": lambda: pt.estimate(data, "median", between=(-20, 20), epsilon=1, rng=rng),
        "estimate mean": lambda: pt.estimate(data, "mean", between=(-20, 20), epsilon=1, rng=rng),
        "estimate normal": lambda: pt.estimate(
            data, "normal(mean=?, sd=?)", between=(-50, 50), sd_between=(0.5, 8), epsilon=1, rng=rng
        ),
        "poisson fits": lambda: pt.tabulate(counts, labels=range(16), epsilon=1, rng=rng).estimate(
            "poisson(?)", between=(0.5, 12)
        ),
    }
    for name, call in calls.items():
        took = []
        for _ in range(max(min(runs, 5), 1)):
            start = time.process_time()
            call()
            took.append(time.process_time() - start)
        print(f"{name:16} {np.median(took):6.2f} s")


WAYS = {"cells": cells, "normal": normal, "median": median, "mean": mean, "fits": fits, "seconds": seconds}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WAYS)
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    WAYS[given.what](given.runs)
