"""What is measured: each comparison runs the package and its peers in turn, on the same data, in one process.

A time on one machine says little; a ratio of times measured side by side says more. So every comparison
repeats its contestants in rotation, takes medians, and reports each one's time as a multiple of the first's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

import privatest as pt

EPSILON = 0.5


@dataclass(frozen=True)
class Comparison:
    """Seconds (medians) of each contestant, the yardstick first, and remarks."""

    title: str
    rows: int
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as long as the yardstick each contestant takes."""
        yardstick = next(iter(self.seconds.values()))
        return {name: seconds / yardstick for name, seconds in self.seconds.items()}


def side_by_side(contestants: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, in rotation, so that a slow minute of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(repeats + 1):
        for name, work in contestants.items():
            start = time.perf_counter()
            work()
            if turn:  # the first round warms caches
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def normal_in_memory(rows: int, repeats: int) -> Comparison:
    """N(0,1) against N(1,1) on float64 in memory: `run` beside numpy.sum and OpenDP's integer route."""
    x = np.random.default_rng(1).normal(size=rows)
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=EPSILON, n=rows)
    contestants: dict[str, Callable[[], object]] = {
        "numpy.sum": lambda: np.sum(x),
        "privatest run": lambda: test.run(x),
    }
    notes = [f"run uses all cores and draws exact noise; the score has width {test.score.width}"]
    peers = opendp_route(x, test)
    if not peers:
        notes.append("OpenDP is not installed: pip install 'privatest[opendp]' adds it as a peer")
    else:
        contestants |= peers
        notes.append("OpenDP's safe route: int64, clamp, sum of known size, Laplace; the lattice is made before")
    return Comparison("N(0,1)/N(1,1), float64 in memory", rows, side_by_side(contestants, repeats), notes)


def opendp_route(x: np.ndarray, test: pt.results.PrivateTest) -> dict[str, Callable[[], object]]:
    """The same lattice by hand, summed and noised by OpenDP with 64-bit integers and a known size."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    width = test.score.width
    low, high = test.clamp
    records = dp.vector_domain(dp.atom_domain(T="i64"), size=len(x)), dp.symmetric_distance()
    release = (
        records
        >> dp.t.then_clamp((0, width))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(scale=width / float(test.epsilon))
    )
    assert release.map(2) <= test.epsilon * (1 + 1e-9)  # replacing one record is symmetric distance 2

    def lattice() -> np.ndarray:
        ratio = np.clip(0.5 - x, low, high)  # log N(x; 0, 1)/N(x; 1, 1)
        return np.rint((ratio - low) * (width / (high - low))).astype(np.int64)

    integers = lattice()
    return {
        "lattice in plain NumPy": lattice,
        "OpenDP on the lattice": lambda: release(integers),
    }


def heavy_tails(rows: int, repeats: int) -> Comparison:
    """Student t(3) against a normal: `run` beside scipy's log densities, clipped and summed."""
    null, alternative = stats.t(3), stats.norm(0, 1)
    x = np.random.default_rng(2).standard_t(3, size=rows)
    test = pt.design(null, alternative, epsilon=EPSILON, n=rows)
    low, high = test.clamp
    contestants: dict[str, Callable[[], object]] = {
        "privatest run": lambda: test.run(x),
        "scipy log densities": lambda: np.clip(null.logpdf(x) - alternative.logpdf(x), low, high).sum(),
    }
    notes = ["scipy's sum is neither exact nor private"]
    return Comparison("Student t(3)/N(0,1), float64 in memory", rows, side_by_side(contestants, repeats), notes)


def importing(repeats: int) -> Comparison:
    """Wall time of fresh interpreters: empty, with the package, with its first use."""

    def python(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    first_use = "import privatest as pt; pt.design('normal(0, 1)', 'normal(1, 1)', epsilon=0.5, n=100)"
    contestants = {
        "python": python("pass"),
        "import numpy, scipy.stats": python("import numpy, scipy.stats"),
        "import privatest": python("import privatest"),
        "first design": python(first_use),
    }
    return Comparison("Starting up", 0, side_by_side(contestants, repeats))
