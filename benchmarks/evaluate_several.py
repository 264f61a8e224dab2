"""Several changes: mean error and miscount, ours at two epsilons beside ruptures without privacy, on the same series.

Beside them the private online method of Zhang et al. (2021), run again after each change, with what is assumed of it in
``rivals_online.py``; its window is the one of four that miscounts least on other series with as many changes (which is
more than it could know), its threshold the one at which 5% of the series that do not change raise an alarm, as ours.

The settings of that paper's experiments are in no text that we have. Those of Cummings et al. (2018), whose method it
carries on, are the last rows: one change at record 100 of 200, also between laws that are hard to tell apart.

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
from privatest.errors import PrivatestError
from privatest.hypotheses import make_pair

CHANGES = (0, 1, 2, 5)
EPSILONS = (0.5, 1.0)
WINDOWS = (50, 100, 200, 400)
DELTA, FALSE_ALARM = 0.1, 0.05
Series = npt.NDArray[np.float64]
Finder = Callable[[Series, np.random.Generator], tuple[int, ...]]


@dataclass(frozen=True)
class Setting:
    """Coins of two rates, or normal numbers of two means and variance 1; changes moved by up to ``shift`` records."""

    coins: bool
    old: float
    new: float
    n: int = 1_200
    shift: int = 20

    @property
    def pair(self) -> tuple[str, str]:
        """P and Q."""
        old, new = (f"bernoulli({x:g})" if self.coins else f"normal({x:g}, 1)" for x in (self.old, self.new))
        return old, new

    def places(self, changes: int, rng: np.random.Generator) -> tuple[int, ...]:
        """Equal stretches, each end moved."""
        ends = (self.n * (i + 1) // (changes + 1) for i in range(changes))
        return tuple(end + int(rng.integers(-self.shift, self.shift + 1)) for end in ends)

    def series(self, truth: tuple[int, ...], rng: np.random.Generator) -> Series:
        """Records of P, then Q, then P, and so on."""
        level = np.full(self.n, self.old)
        for before, place in enumerate(truth):
            level[place:] = self.old if before % 2 else self.new
        return (rng.random(self.n) < level).astype(np.float64) if self.coins else rng.normal(level, 1)

    def ratios(self, data: Series) -> Series:
        """log P/Q of each record."""
        p, q = self.old, self.new
        if self.coins:
            found: Series = np.where(data > 0, np.log(p / q), np.log((1 - p) / (1 - q)))
            return found
        return (data - (p + q) / 2) * (p - q)

    def __str__(self) -> str:
        return f"{self.pair[0]}/{self.pair[1]}, n = {self.n:,}"


LONG = (Setting(True, 0.2, 0.8), Setting(False, 0.0, 1.0))
PRINTED = tuple(
    Setting(coins, old, new, 200, 0)
    for coins, old, new in ((True, 0.2, 0.8), (True, 0.2, 0.4), (False, 0.0, 1.0), (False, 0.0, 0.5))
)
CASES = [*((at, changes) for at in LONG for changes in CHANGES), *((at, 1) for at in PRINTED)]


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


def again_and_again(at: Setting, epsilon: float, changes: int) -> tuple[int, Finder]:
    """The window and the finder of Zhang et al."""
    pair, rng = make_pair(*at.pair), np.random.default_rng(5)
    sensitivity = range_of_ratio(pair) if at.coins else truncated_range(pair, DELTA)
    still = np.stack([at.ratios(at.series((), rng)) for _ in range(400)])
    between = -at.n / np.log1p(-FALSE_ALARM)
    finders: dict[int, Finder] = {}
    for window in (window for window in WINDOWS if window < at.n):
        threshold = threshold_for(still, sensitivity, epsilon, between, window, rng)
        settings = (sensitivity, epsilon, threshold, window)
        finders[window] = lambda data, rng, settings=settings: several_pcpd(at.ratios(data), *settings, rng)

    def miscounts(window: int) -> int:
        trial, wrong = np.random.default_rng(6), 0
        for _ in range(60):
            truth = at.places(changes, trial)
            wrong += len(finders[window](at.series(truth, trial), trial)) != changes
        return wrong

    best = min(finders, key=miscounts)
    return best, finders[best]


def methods(at: Setting, changes: int) -> Iterator[tuple[str, Finder, int | None]]:
    """(name, finder, stated accuracy); the plans are made once."""
    for epsilon in EPSILONS:
        try:
            plan = pt.design_change(*at.pair, epsilon=epsilon, n=at.n, changes="several")
        except PrivatestError as error:
            print(f"    ours, epsilon {epsilon:g}: refused. {error}")
        else:
            label = f"ours, epsilon {epsilon:g} (accuracy {plan.accuracy}, false alarm {plan.false_alarm:.3f})"
            yield label, lambda data, rng, plan=plan: plan.run(data, rng=rng).indices, plan.accuracy
        window, finder = again_and_again(at, epsilon, max(changes, 1))
        weaker = "" if at.coins else f", delta {DELTA:g}"
        yield f"Zhang et al. (assumed), epsilon {epsilon:g}{weaker}, window {window}", finder, None
    if importlib.util.find_spec("ruptures") is None:
        print("    ruptures is not installed; pip install ruptures to compare")
        return
    import ruptures

    # The larger variance of the two regimes, which ruptures is told.
    spread = max(rate * (1 - rate) for rate in (at.old, at.new)) if at.coins else 1.0

    def penalised(data: Series, _: np.random.Generator) -> tuple[int, ...]:
        search = ruptures.KernelCPD(kernel="linear", min_size=2).fit(data)
        return tuple(search.predict(pen=2 * spread * np.log(at.n))[:-1])

    yield "ruptures KernelCPD, linear, penalty 2 v log n", penalised, None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000, help="series a row")
    runs = parser.parse_args().runs
    print(f"several changes: equal stretches, in 1,200 records moved by up to 20; {runs} series a row")
    for at, changes in CASES:
        print(f"  {at}, {changes} changes")
        found = list(methods(at, changes))
        tallies = [Tally() for _ in found]
        rng = np.random.default_rng(1_000 + changes)
        for _ in range(runs):
            truth = at.places(changes, rng)
            data = at.series(truth, rng)
            for tally, (_, find, accuracy) in zip(tallies, found, strict=True):
                tally.add(find(data, rng), truth, accuracy)
        for tally, (label, _, _) in zip(tallies, found, strict=True):
            print(f"    {label:58s} {tally}", flush=True)


if __name__ == "__main__":
    main()
