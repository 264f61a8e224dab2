"""Private change points beside their rivals: errors, coverage of the stated accuracy, false alarms, speed.

python -m benchmarks.bench_changepoint                 # all tables, some minutes
python -m benchmarks.bench_changepoint errors speed    # some of them
python -m benchmarks.bench_changepoint --runs 500      # fewer simulations
python -m benchmarks.bench_changepoint paper           # the paper's blocks before and after, beside the default
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.evaluate import RIVALS, evaluate_change
from benchmarks.evaluate_online import evaluate_monitor
from privatest import design, sample_size
from privatest.changepoint import design_change
from privatest.hypotheses import make_pair
from privatest.numbers import rational
from privatest.streams import Monitor
from privatest.streams.monitor import MonitorTargets, pair_plan

COINS = ("bernoulli(0.2)", "bernoulli(0.8)")
NORMALS = ("normal(0, 1)", "normal(1, 1)")
BARS = {(COINS, 0.5): 7.6, (COINS, 1.0): 4.4, (NORMALS, 0.5): 13.0, (NORMALS, 1.0): 8.0}
COVERED: dict[str, tuple[Any, Any]] = {
    "Ber .2 -> .8": COINS,
    "Ber .2 -> .4": ("bernoulli(0.2)", "bernoulli(0.4)"),
    "N(0,1) -> N(1,1)": NORMALS,
    "N(0,1) -> N(0,3)": (stats.norm(0, 1), stats.norm(0, 3)),
    "(.2,.3,.5) -> (.5,.3,.2)": ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    "Ber 0 -> .1": ("bernoulli(0)", "bernoulli(0.1)"),
}
EPSILONS = (0.3, 1.0, 3.0)


def errors(runs: int) -> None:
    """Mean distance from the true change point, all detectors on the same series."""
    print(f"errors: n = 200, k* uniform on the middle three fifths, {runs} runs")
    for (pair, epsilon), bar in BARS.items():
        rows = evaluate_change(
            *pair, epsilon=epsilon, n=200, runs=runs, rng=np.random.default_rng(1),
            methods=("auto", "direct", "blocks", "paper", *RIVALS),
        )  # fmt: skip
        verdict = "ok" if rows[0].mean <= bar else "MISSED"
        print(f"  {pair[0]} -> {pair[1]}, epsilon {epsilon:g}: at most {bar:g} asked of auto: {verdict}")
        for row in rows:
            print(f"    {row}")


def coverage(runs: int) -> None:
    """Pr[abs(index - k*) > accuracy] at three positions, and accuracy over the measured 90% quantile."""
    print(f"coverage: beta = 0.1, {runs} runs a cell; share outside at k* = accuracy, n/2, n - accuracy")
    worst_share, worst_ratio = 0.0, 0.0
    for name, pair in COVERED.items():
        for epsilon in EPSILONS:
            accuracy = design_change(*pair, epsilon=epsilon, assume_change=True).accuracy
            n = max(200, 6 * accuracy)
            plan = design_change(*pair, epsilon=epsilon, n=n, assume_change=True)
            rng = np.random.default_rng(2)
            rows = [
                evaluate_change(*pair, epsilon=epsilon, n=n, runs=runs, rng=rng, change=change, methods=["auto"])[0]
                for change in (plan.accuracy, n // 2, n - plan.accuracy)
            ]
            shares = [row.outside or 0.0 for row in rows]
            ratio = max(plan.accuracy / max(row.q90, 1.0) for row in rows)
            worst_share, worst_ratio = max(worst_share, *shares), max(worst_ratio, ratio)
            listed = " ".join(f"{share:.4f}" for share in shares)
            quantiles = " ".join(f"{row.q90:.0f}" for row in rows)
            print(
                f"  {name:26s} epsilon {epsilon:<4g} {plan.method:7s} n {n:5d}  accuracy {plan.accuracy:4d}"
                f"  outside {listed}  q90 {quantiles}  ratio {ratio:.2f}"
            )
    error = math.sqrt(0.1 * 0.9 / runs)
    print(f"  largest share outside {worst_share:.4f} (0.1 allowed, standard error {error:.4f})")
    print(f"  largest accuracy over measured 90% quantile {worst_ratio:.2f} (3 allowed)")


def alarms(runs: int) -> None:
    """False alarms on data that do not change, and power on data that change as late as promised."""
    print(f"false alarms: n = 400, {runs} runs, fresh series in every row")
    rng = np.random.default_rng(3)
    for pair in (COINS, NORMALS):
        for epsilon in (0.5, 1.0):
            for target in (0.1, 0.01):
                for method in ("auto", "direct", "paper"):
                    settings: dict[str, Any] = {"epsilon": epsilon, "n": 400, "false_alarm": target}
                    plan = design_change(*pair, method=method, **settings)
                    quiet, late = (
                        evaluate_change(*pair, runs=runs, rng=rng, change=change, methods=[method], **settings)[0]
                        for change in (400, 400 - plan.accuracy)
                    )
                    print(
                        f"  {pair[0]:15s} epsilon {epsilon:<4g} {plan.method:7s} asked {target:<5g} "
                        f"stated {plan.false_alarm:.4f}  measured {quiet.alarms:.4f}   "
                        f"power stated {plan.power:.3f} measured {late.alarms:.3f}"
                        f"   accuracy {plan.accuracy} outside {late.outside:.3f}"
                    )


def best_of(function: Callable[[], object], times: int = 5) -> float:
    """The shortest of some calls."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def speed(_: int) -> None:
    """Detection on long series over numpy.cumsum of the same array, and ruptures where it is installed."""
    print("speed: N(0,1) -> N(1,1), epsilon 1, the plan made beforehand (its time is shown once)")
    start = time.perf_counter()
    design_change(stats.norm(0, 1.0001), stats.norm(1, 1), epsilon=1, assume_change=True)
    print(f"  design_change {time.perf_counter() - start:.2f} s")
    rng = np.random.default_rng(4)
    for n in (10**6, 10**7):
        data = rng.standard_normal(n)
        data[n // 3 :] += 1
        base = best_of(lambda data=data: np.cumsum(data))
        print(f"  n = {n:.0e}: numpy.cumsum {base:.4f} s")
        for method in ("direct", "blocks", "paper"):
            plan = design_change(*NORMALS, epsilon=1, method=method, assume_change=True)
            taken = best_of(lambda plan=plan, data=data: plan.run(data), 3)
            rate = n / taken / 1e6
            print(
                f"    {method:7s} {taken:.3f} s, {taken / base:5.1f} times cumsum; {rate:.0f} million records a second"
            )
    n = 10**5
    data = rng.standard_normal(n)
    data[n // 3 :] += 1
    plan = design_change(*NORMALS, epsilon=1, assume_change=True)
    ours = best_of(lambda: plan.run(data))
    print(f"  n = 1e5: ours ({plan.method}) {ours:.4f} s")
    if importlib.util.find_spec("ruptures") is None:
        print("    ruptures is not installed; pip install ruptures to compare")
        return
    import ruptures

    theirs = best_of(lambda: ruptures.Binseg(model="l2", jump=5).fit(data).predict(n_bkps=1), 1)
    print(f"    ruptures Binseg (one break, jump 5, not private) {theirs:.2f} s: {theirs / ours:.0f} times as long")


def online(runs: int) -> None:
    """Delay, false alarms and index errors of monitors beside OnlinePCPD and a dummy, all on the same streams."""
    print(f"online: streams of 1000 records, a change at 500, a false alarm every 10^4 records asked, {runs} runs")
    for pair in (COINS, NORMALS):
        for epsilon in (0.5, 1.0):
            print(f"  {pair[0]} -> {pair[1]}, epsilon {epsilon:g}")
            settings: dict[str, Any] = {"epsilon": epsilon, "n": 1000, "runs": runs, "change": 500}
            rows = evaluate_monitor(*pair, **settings, mean_time_between_false_alarms=1e4, rng=np.random.default_rng(5))
            for row in rows:
                print(f"    {row}")


def promises(runs: int) -> None:
    """Stated against measured: time between false alarms, delay, and the accuracy of the index."""
    print(f"monitors: a false alarm every 3000 records asked, beta = 0.1, about {runs} alarms of each kind")
    rng = np.random.default_rng(6)
    for name, (null, alternative) in COVERED.items():
        pair = make_pair(null, alternative)
        for epsilon in (0.5, 2.0):
            for method in ("cusum", "paper"):
                watch = pair_plan(pair, rational(epsilon), method, MonitorTargets(0.1, 3000.0, None))
                monitor, alarms, records = Monitor.of(watch, rng=rng), 0, 0
                while alarms < runs and records < 4_000 * runs:
                    batch = pair.null.sample(rng, 3000)
                    while len(batch) and monitor.update_many(batch) is not None:
                        batch = batch[len(batch) - (records + len(batch) - monitor.seen) :]
                        alarms, records = alarms + 1, monitor.seen
                        monitor.reset()
                    records = monitor.seen
                delays, outside = [], 0
                change = int(rng.integers(2 * watch.block, 20 * watch.block))
                for _ in range(runs):
                    after = pair.alternative.sample(rng, 30 * math.ceil(watch.expected_delay))
                    stream = np.concatenate([pair.null.sample(rng, change), after])
                    alarm = Monitor.of(watch, rng=rng).update_many(stream)
                    if alarm is not None and alarm.seen > change:
                        delays.append(alarm.seen - change)
                        outside += abs(alarm.index - change) > alarm.accuracy
                print(
                    f"  {name:26s} epsilon {epsilon:<4g} {method:6s} between: stated "
                    f"{watch.mean_time_between_false_alarms:7.0f} measured {records / max(alarms, 1):7.0f} "
                    f"(+-{200 / math.sqrt(max(alarms, 1)):.0f}%)  delay: stated {watch.expected_delay:6.1f} measured "
                    f"{np.mean(delays):6.1f}  accuracy {watch.accuracy:4d} outside {outside / len(delays):.4f}"
                )


def monitors(_: int) -> None:
    """Records a second of monitors, batched and one by one, beside river's drift detectors."""
    print("monitors: N(0,1) -> N(1,1), epsilon 1, no change; river's detectors are not private")
    rng = np.random.default_rng(7)
    watch = pair_plan(make_pair(*NORMALS), rational(1), "cusum", MonitorTargets(0.1, 1e9, None))
    data = rng.standard_normal(3 * 10**6)
    few = data[:200_000].tolist()

    def rate(name: str, count: int, function: Callable[[], object]) -> None:
        print(f"    {name:34s} {count / best_of(function, 3) / 1e6:8.3f} million records a second")

    def batched(size: int) -> None:
        monitor = Monitor.of(watch)
        for first in range(0, len(data), size):
            monitor.update_many(data[first : first + size])

    def single(detector: Any) -> None:
        for record in few:
            detector.update(record)

    rate("Monitor, one batch", len(data), lambda: batched(len(data)))
    rate("Monitor, batches of 10^4", len(data), lambda: batched(10**4))
    rate("Monitor, single records", len(few), lambda: single(Monitor.of(watch)))
    with tempfile.TemporaryDirectory() as folder:

        def kept() -> None:
            monitor = Monitor.of(watch)
            monitor.save(f"{folder}/state.json")
            for first in range(0, 10**6, 10**4):
                monitor.update_many(data[first : first + 10**4])

        rate("Monitor, batches of 10^4, on disk", 10**6, kept)
    if importlib.util.find_spec("river") is None:
        print("    river is not installed; pip install river to compare")
        return
    from river import drift

    singly: dict[str, Callable[[], Any]] = {}
    for epsilon in (8, 4, 2, 1, 0.5, 0.1, 0.01):  # large ones have blocks of a few records
        targets = MonitorTargets(0.1, 1e8, None)
        small = pair_plan(make_pair(*NORMALS), rational(epsilon), "cusum", targets)
        singly[f"Monitor, epsilon {epsilon:g}, blocks of {small.block}"] = lambda small=small: Monitor.of(small)
    singly |= {"river PageHinkley": drift.PageHinkley, "river ADWIN": drift.ADWIN}
    best = dict.fromkeys(singly, math.inf)
    for _ in range(9):  # in turns, so that a busy machine is busy for all of them
        for name, make in singly.items():
            update = make().update
            start = time.process_time()
            for record in few[:50_000]:
                update(record)
            best[name] = min(best[name], (time.process_time() - start) / 50_000)
    print("  single records, in turns, best of 9; speed over that of PageHinkley")
    for name, taken in best.items():
        print(f"    {name:34s} {taken * 1e6:8.3f} us a record  {best['river PageHinkley'] / taken:6.2f}")


def paper(_: int) -> None:
    """The paper's method with blocks of SC records and with the short ones, beside the default: computed.

    Short blocks are those at which each error is at most 1/3 with the paper's clamp, as this package cut them before.
    The default's accuracy offline is the one figure that comes from simulations, of the laws of its blocks.
    """
    print("paper: beta = 0.1, a false alarm every 50,000 records asked; records, all of them bounds from above")
    heads = "block", "errors of a bit", "accuracy", "or no change", "interval", "mean delay", "90% delay", "accuracy"
    print(f"  {'':42s}" + "".join(f"{head:>16s}" for head in heads))
    print(f"  {'':42s}{'offline':>64s}{'online':>64s}")
    for pair in (COINS, NORMALS):
        for epsilon in (1.0, 0.3):
            short = sample_size(*pair, epsilon=epsilon, alpha=1 / 3, beta=1 / 3, clamp="paper")
            ways: dict[str, dict[str, Any]] = {
                "paper, each error 1/3": {
                    "test": design(*pair, epsilon=epsilon, n=short, clamp="paper"),
                    "method": "paper",
                },
                "paper, SC records": {"method": "paper"},
                "default": {},
            }
            for name, way in ways.items():
                plans = [design_change(*pair, epsilon=epsilon, **way, assume_change=sure) for sure in (True, False)]
                monitor = Monitor(*pair, epsilon=epsilon, **way, mean_time_between_false_alarms=50_000)
                bits = plans[0].to_dict()["detector"]
                cells = [
                    f"{plans[0].block}" if way else f"{plans[0].block}, {monitor.block}",
                    f"{bits['alpha']:.3f}, {bits['beta']:.3f}" if bits["kind"] == "bits" else "",
                    *(f"{plan.accuracy}" for plan in plans),
                    "" if monitor.interval is None else f"{monitor.interval}",
                    f"{monitor.expected_delay:.0f}",
                    f"{monitor.delay_bound}",
                    f"{monitor.accuracy}",
                ]
                print(f"  {pair[1]:15s} eps {epsilon:<4g} {name:22s}" + "".join(f"{cell:>16s}" for cell in cells))


def small(_: int) -> None:
    """Sample sizes and monitors at epsilon 0.01: processor time of the first call, over a tenfold epsilon's."""
    print("small: processor seconds of the first call at epsilon 0.01, and at 0.1")
    jobs: dict[str, Callable[[Any, float], object]] = {
        "sample_size": lambda pair, epsilon: sample_size(*pair, epsilon=epsilon),
        "Monitor, paper": lambda pair, epsilon: Monitor(*pair, epsilon=epsilon, method="paper"),
        "Monitor, cusum": lambda pair, epsilon: Monitor(*pair, epsilon=epsilon),
    }
    for pair in (NORMALS, COINS, ("poisson(3)", "poisson(4)")):
        for name, job in jobs.items():
            taken = []
            for epsilon in (0.01, 0.1):
                start = time.process_time()
                job(pair, epsilon)
                taken.append(time.process_time() - start)
            print(f"    {pair[0]} -> {pair[1]}, {name:16s} {taken[0]:6.2f} {taken[1]:6.2f}")


def main() -> None:
    """Print the tables that were asked for."""
    tables = {"errors": (errors, 4000), "coverage": (coverage, 1000), "alarms": (alarms, 2000), "speed": (speed, 0)}
    tables |= {"online": (online, 500), "promises": (promises, 300), "monitors": (monitors, 0), "small": (small, 0)}
    tables["paper"] = paper, 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*tables, []], help="which tables; all by default")
    parser.add_argument("--runs", type=int, help="simulations a cell, in place of each table's own number")
    chosen = parser.parse_args()
    for name in chosen.tables or tables:
        table, runs = tables[name]
        table(chosen.runs or runs)


if __name__ == "__main__":
    main()
