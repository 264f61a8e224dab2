"""Several changes: mean error and miscount, ours at two epsilons beside ruptures without privacy, on the same series.

Beside them the private online method of Zhang et al. (2021), run again after each change, with what is assumed of it in
``rivals_online.py``; its window is the one of four that miscounts least on other series with as many changes (which is
more than it could know), its threshold the one at which 5% of the series that do not change raise an alarm, as ours.

python -m benchmarks.evaluate_several               # 1,000 series a row
python -m benchmarks.evaluate_several --runs 100
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

import privatest as pt
from benchmarks.rivals import range_of_ratio, truncated_range
from benchmarks.rivals_online import several_pcpd, threshold_for
from privatest.hypotheses import make_pair

N = 1_200
CHANGES = (0, 1, 2, 5)
EPSILONS = (0.5, 1.0)
PAIRS = {
    "Ber .2/.8": ("bernoulli(0.2)", "bernoulli(0.8)"),
    "N(0,1)/N(1,1)": ("normal(0, 1)", "normal(1, 1)"),
}
WINDOWS = (50, 100, 200, 400)
DELTA, FALSE_ALARM = 0.1, 0.05
Series = npt.NDArray[np.float64]
Finder = Callable[[Series, np.random.Generator], tuple[int, ...]]


@dataclass
class Tally:
    """What one method did on all series of one number of changes."""

    runs: int = 0
    miscounted: int = 0
    errors: list[int] = field(default_factory=list)
    near: int = 0
    asked: int = 0

    def add(self, found: tuple[int, ...], truth: tuple[int, ...], accuracy: int | None) -> None:
        """Errors are of the series whose number of changes was right; ``near`` counts changes of all series."""
        self.runs += 1
        self.miscounted += len(found) != len(truth)
        if len(found) == len(truth):
            self.errors += [abs(a - b) for a, b in zip(found, truth, strict=True)]
        if accuracy is not None:
            self.asked += len(truth)
            self.near += sum(any(abs(a - b) <= accuracy for a in found) for b in truth)

    def __str__(self) -> str:
        mean = f"{np.mean(self.errors):6.2f}" if self.errors else "     -"
        within = f", within the stated accuracy {self.near / self.asked:.4f}" if self.asked else ""
        return f"miscount {self.miscounted / self.runs:.3f}, mean error {mean}{within}"


def places(changes: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Equal stretches, each end moved by up to 20 records."""
    return tuple(N * (i + 1) // (changes + 1) + int(rng.integers(-20, 21)) for i in range(changes))


def series(name: str, truth: tuple[int, ...], rng: np.random.Generator) -> Series:
    """Records of P, then Q, then P, and so on."""
    regime = np.zeros(N, dtype=np.int64)
    for place in truth:
        regime[place:] ^= 1
    if name.startswith("Ber"):
        return (rng.random(N) < np.where(regime == 1, 0.8, 0.2)).astype(np.float64)
    return rng.normal(regime, 1)


def ratios_of(name: str, data: Series) -> Series:
    """log P/Q of each record."""
    found: Series = np.log(4) * (1 - 2 * data) if name.startswith("Ber") else 0.5 - data
    return found


def again_and_again(name: str, epsilon: float, changes: int) -> tuple[int, Finder]:
    """The window and the finder of Zhang et al."""
    pair, rng = make_pair(*PAIRS[name]), np.random.default_rng(5)
    sensitivity = range_of_ratio(pair) if name.startswith("Ber") else truncated_range(pair, DELTA)
    still = np.stack([ratios_of(name, series(name, (), rng)) for _ in range(400)])
    between = -N / np.log1p(-FALSE_ALARM)
    finders: dict[int, Finder] = {}
    for window in WINDOWS:
        threshold = threshold_for(still, sensitivity, epsilon, between, window, rng)
        settings = (sensitivity, epsilon, threshold, window)
        finders[window] = lambda data, rng, settings=settings: several_pcpd(ratios_of(name, data), *settings, rng)

    def miscounts(window: int) -> int:
        trial, wrong = np.random.default_rng(6), 0
        for _ in range(60):
            truth = places(changes, trial)
            wrong += len(finders[window](series(name, truth, trial), trial)) != changes
        return wrong

    best = min(WINDOWS, key=miscounts)
    return best, finders[best]


def methods(name: str, changes: int) -> Iterator[tuple[str, Finder, int | None]]:
    """(name, finder, stated accuracy); the plans are made once."""
    for epsilon in EPSILONS:
        plan = pt.design_changes(*PAIRS[name], epsilon=epsilon, n=N)
        label = f"ours, epsilon {epsilon:g} (accuracy {plan.accuracy}, false alarm {plan.false_alarm:.3f})"
        yield label, lambda data, rng, plan=plan: plan.run(data, rng=rng).indices, plan.accuracy
        window, finder = again_and_again(name, epsilon, max(changes, 1))
        weaker = "" if name.startswith("Ber") else f", delta {DELTA:g}"
        yield f"Zhang et al. (assumed), epsilon {epsilon:g}{weaker}, window {window}", finder, None
    if importlib.util.find_spec("ruptures") is None:
        print("    ruptures is not installed; pip install ruptures to compare")
        return
    import ruptures

    spread = 0.16 if name.startswith("Ber") else 1.0  # the variance of a regime, which ruptures is told

    def penalised(data: Series, _: np.random.Generator) -> tuple[int, ...]:
        search = ruptures.KernelCPD(kernel="linear", min_size=2).fit(data)
        return tuple(search.predict(pen=2 * spread * np.log(N))[:-1])

    yield "ruptures KernelCPD, linear, penalty 2 v log n", penalised, None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000, help="series a row")
    runs = parser.parse_args().runs
    print(f"several changes: n = {N}, equal stretches moved by up to 20 records, {runs} series a row")
    for name in PAIRS:
        for changes in CHANGES:
            found = list(methods(name, changes))
            tallies = [Tally() for _ in found]
            rng = np.random.default_rng(1_000 + changes)
            for _ in range(runs):
                truth = places(changes, rng)
                data = series(name, truth, rng)
                for tally, (_, find, accuracy) in zip(tallies, found, strict=True):
                    tally.add(find(data, rng), truth, accuracy)
            print(f"  {name}, {changes} changes")
            for tally, (label, _, _) in zip(tallies, found, strict=True):
                print(f"    {label:58s} {tally}")


if __name__ == "__main__":
    main()
