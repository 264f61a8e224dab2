"""privatest beside its peers, one table to a question, all ways on the same data in one run.

    python -m benchmarks.peers                       # all tables; about five minutes of one processor
    python -m benchmarks.peers rate interval         # some of them
    python -m benchmarks.peers --write               # all, and into docs/peers.md
    python -m benchmarks.peers --runs 20             # quickly and roughly

Needs the extras ``opendp`` and ``bench`` (ruptures, river). "computed": from exact laws. "measured": over simulated
data from a fixed seed, the same for all ways. "published": the authors' figure, for what has no code to run here. Times
are seconds of the processor for one answer, designs made beforehand. Each table ends with the peers that are better.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

import privatest as pt
from benchmarks import rivals_sequential
from benchmarks.bench_estimates import _held, _their_interval
from benchmarks.bench_sequential import on_streams
from benchmarks.evaluate import evaluate_change, simulate_series
from benchmarks.evaluate_online import evaluate_monitor
from privatest.hypotheses import make_pair

PAGE = Path(__file__).resolve().parents[1] / "docs" / "peers.md"
BEGIN, END = "<!-- printed by python -m benchmarks.peers --write -->", "<!-- end of what is printed -->"
EPSILON = 1.0
NONE = "none"


@dataclass(frozen=True)
class Row:
    """One way to answer a question: its name, what it guarantees, its figures in the table's columns, and the one that
    ranks it (less is better; None where errors are not what was asked for)."""

    name: str
    private: str
    figures: tuple[str, ...]
    rank: float | None = None


@dataclass(frozen=True)
class Table:
    """All ways to answer one question; ours is the first row."""

    title: str
    setting: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def better(self) -> list[str]:
        """Names of the peers that rank before ours, those without privacy apart."""
        ours = self.rows[0].rank
        assert ours is not None
        before = [row for row in self.rows[1:] if row.rank is not None and row.rank < ours]
        return [row.name + (" (not private)" if row.private == NONE else "") for row in before]

    def __str__(self) -> str:
        head = ("way", "privacy", *self.columns)
        lines = [head, *((row.name, row.private, *row.figures) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        shown = [
            "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |" for line in lines
        ]
        shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        ahead = ", ".join(self.better()) or "nobody"
        notes = [*self.notes, f"Better than ours here: {ahead}."]
        return "\n".join([f"## {self.title}", "", self.setting, "", *shown, "", *(f"- {note}" for note in notes), ""])


def seconds(answer: Callable[[], object], times: int = 5) -> str:
    """Seconds of the processor for one answer, after a first one."""
    answer()
    start = time.process_time()
    for _ in range(times):
        answer()
    return f"{(time.process_time() - start) / times:.2g} s"


def smallest(meets: Callable[[int], bool], start: int, ahead: int = 40) -> int:
    """The smallest n from which on, as far as ``ahead`` tells, the goal is met."""
    n = start
    while not meets(n):
        n += 1
    while missed := [m for m in range(n + 1, n + ahead + 1) if not meets(m)]:
        n = missed[-1] + 1
    return n


def tulap_cdf(x: np.ndarray, epsilon: float) -> np.ndarray:
    """The cdf of Awan and Slavkovic's noise for a count, from their definition: a two-sided geometric and a uniform."""
    b, place = math.exp(-epsilon), np.floor(x + 0.5)
    below = np.where(place <= 0, b ** -np.minimum(place, 0.0) * b / (1 + b), 1 - b ** np.maximum(place, 0.0) / (1 + b))
    return below + (1 - b) / (1 + b) * b ** np.abs(place) * (x + 0.5 - place)


def laplace_sf(x: np.ndarray, scale: float) -> np.ndarray:
    """Pr[Laplace > x]."""
    return np.where(x < 0, 1 - np.exp(np.minimum(x, 0.0) / scale) / 2, np.exp(-np.maximum(x, 0.0) / scale) / 2)


P0, P1, LEVEL, POWER = 0.5, 0.6, 0.05, 0.8
Errors = Callable[[int], tuple[float, float]]
"""Of a test on n records: how often it says "the rate is higher" at P0 and at P1, computed."""


def over(cut: Callable[[int], float], tail: Callable[[np.ndarray], np.ndarray]) -> Errors:
    """Errors of "count + noise > cut(n)", ``tail`` the noise's upper tail."""

    def found(n: int) -> tuple[float, float]:
        counts = np.arange(n + 1)
        beyond = tail(cut(n) - counts)
        return tuple(float(stats.binom.pmf(counts, n, rate) @ beyond) for rate in (P0, P1))  # type: ignore[return-value]

    return found


def awan_slavkovic(n: int) -> float:
    """Their cutoff: the noisy count exceeds it with probability 5% at P0."""
    counts = np.arange(n + 1)
    chances = stats.binom.pmf(counts, n, P0)
    return float(
        optimize.brentq(lambda c: chances @ (1 - tulap_cdf(c - counts, EPSILON)) - LEVEL, -20.0, n + 20.0, xtol=1e-10)
    )


def opendp_cut(n: int) -> float:
    """The noisy count at which OpenDP's p-value is 5%: it falls as the count rises."""
    from opendp.extras.numpy import canonical

    return float(
        optimize.brentq(
            lambda z: canonical.one_sided_pvalue(z, 1.0, (EPSILON, 0.0), n, P0, "right") - LEVEL, 0, n + 20, xtol=1e-9
        )
    )


def rate(runs: int) -> Table:
    """Is the rate 1/2, or more? Records for a power of 80% at 0.6, level 5%."""
    rng = np.random.default_rng(1)

    def tulap(z: np.ndarray) -> np.ndarray:
        return 1 - tulap_cdf(z, EPSILON)

    def lap(z: np.ndarray) -> np.ndarray:
        return laplace_sf(z, 1 / EPSILON)

    def naive(n: int) -> float:
        return n * P0 + 1.6449 * math.sqrt(n * P0 * (1 - P0))

    def careful(n: int) -> float:
        return n * P0 + 1.6449 * math.sqrt(n * P0 * (1 - P0) + 2 / EPSILON**2)

    def binomial(n: int) -> float:
        return float(stats.binom.ppf(1 - LEVEL, n, P0)) + 0.5

    peers: list[tuple[str, str, Callable[[int], float], Callable[[np.ndarray], np.ndarray]]] = [
        ("Awan and Slavkovic, from their formula", "epsilon 1", awan_slavkovic, tulap),
        ("OpenDP, BinomialCND.p_value", "epsilon 1", opendp_cut, tulap),
        ("noised mean, z-test that knows the noise", "epsilon 1", careful, lap),
        ("noised mean, z-test that ignores it", "epsilon 1", naive, lap),
        ("scipy.stats.binomtest", NONE, binomial, lambda z: (z < 0).astype(float)),
    ]
    goal: dict[str, Any] = {"epsilon": EPSILON, "alpha": LEVEL, "beta": 1 - POWER}
    size = pt.sample_size(f"bernoulli({P0})", f"bernoulli({P1})", **goal)
    test = pt.design(f"bernoulli({P0})", f"bernoulli({P1})", epsilon=EPSILON, alpha=LEVEL, n=size)
    # The same data for all: as many data sets as runs, at either rate, of our n.
    data = {p: (rng.random((runs, size)) < p).astype(np.int8) for p in (P0, P1)}
    said = {p: np.mean([test.run(x, rng=rng).decision == "alternative" for x in data[p]]) for p in data}
    ours = (
        f"{test.alpha:.4f}",
        f"{said[P0]:.3f}",
        f"{said[P1]:.3f}",
        seconds(lambda: test.run(data[P0][0], rng=rng), 20),
    )
    rows = [Row("privatest", "epsilon 1", (str(size), *ours), size)]
    alone = pt.sample_size(f"bernoulli({P0})", f"bernoulli({P1})", release="decision", **goal)
    rows.append(Row("privatest, the decision alone", "epsilon 1", (str(alone), "0.0500", "", "", ""), None))
    for name, private, cut, tail in peers:
        errors = over(cut, tail)
        need = smallest(lambda n, errors=errors: errors(n)[1] >= POWER, 120, 12)  # type: ignore[misc]
        level = cut(size)
        noise = {"OpenDP": _opendp_noise, "scipy": lambda _, count: np.zeros(count)}.get(
            name.split(",")[0].split(".")[0], _tulap_noise if tail is tulap else _laplace_noise
        )
        hits = [np.mean(data[p].sum(axis=1) + noise(rng, runs) > level) for p in data]
        took = seconds(lambda name=name: _once(name, size))  # type: ignore[misc]
        first = errors(need)[0]
        rank = need if first <= LEVEL + 1e-9 else None
        rows.append(Row(name, private, (str(need), f"{first:.4f}", f"{hits[0]:.3f}", f"{hits[1]:.3f}", took), rank))
    return Table(
        "Is the rate 1/2, or higher?",
        f"Records for a power of 80% at a rate of {P1}, level 5%, computed; then errors measured at n = {size} on the "
        f"same {runs} data sets of either rate.",
        ("records", "type I computed", "type I measured", "power measured", "time"),
        tuple(rows),
        (
            "On two points our test is that of Awan and Slavkovic, and OpenDP's p-value is theirs: the three need the "
            "same records. OpenDP's noise needs delta > 0 (1e-9 here; it fails at 0).",
            "The two z-tests do not keep their level, so their n do not count: by a hair where the noise is known, by "
            "a tenth where it is ignored (on 20 records that one errs in 8.1% of cases, computed).",
            "Without noise a count takes whole numbers only, and the exact binomial test cannot use all of its 5%.",
        ),
    )


def _tulap_noise(rng: np.random.Generator, count: int) -> np.ndarray:
    b = math.exp(-EPSILON)
    blocks = rng.geometric(1 - b, count) - rng.geometric(1 - b, count)
    return np.asarray(blocks + rng.uniform(-0.5, 0.5, count))


def _laplace_noise(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.laplace(scale=1 / EPSILON, size=count)


def _opendp_noise(_: np.random.Generator, count: int) -> np.ndarray:
    measure = _opendp_measurement()
    return np.array([measure(0.0) for _ in range(count)])


def _opendp_measurement() -> Callable[[float], float]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    made: Callable[[float], float] = dp.m.make_canonical_noise(*space, d_in=1.0, d_out=(EPSILON, 1e-9))
    return made


def _once(name: str, n: int) -> object:
    """One answer of a peer on a count of 0.55 n."""
    count = round(0.55 * n)
    if name.startswith("OpenDP"):
        from opendp.extras.numpy.canonical import BinomialCND

        return BinomialCND(_opendp_measurement()(float(count)), 1.0, (EPSILON, 0.0), n).p_value(P0, "right")
    if name.startswith("Awan"):
        return awan_slavkovic(n)
    if name.startswith("scipy"):
        return stats.binomtest(count, n, P0, alternative="greater").pvalue
    return (count / n + np.random.default_rng().laplace(scale=1 / (n * EPSILON)) - P0) / math.sqrt(P0 * (1 - P0) / n)


def mean(runs: int) -> Table:
    """Is the mean 0? Two-sided, level 5%, power 80% at a shift of 0.4 deviations."""
    shift, rng = 0.4, np.random.default_rng(2)
    goal: dict[str, Any] = {"epsilon": EPSILON, "alpha": LEVEL, "beta": 1 - POWER}
    share = float(stats.norm.cdf(shift))
    signs = pt.any_of(f"median_above(0, share={share})", f"median_below(0, share={share})")
    both = pt.any_of(f"normal(mean<=-{shift}, sd=1)", f"normal(mean>={shift}, sd=1)")
    sizes = {
        "signs": pt.sample_size("median(0)", signs, **goal),
        "normal": pt.sample_size("normal(0, 1)", both, **goal),
    }
    n = sizes["signs"]
    data = {m: rng.normal(m, 1, (runs, n)) for m in (0.0, shift)}
    rows = []
    for label, key, sides in (
        ("privatest, the signs alone", "signs", ("median(0)", signs)),
        ("privatest, if the deviation is known", "normal", ("normal(0, 1)", both)),
    ):
        test = pt.design(*sides, epsilon=EPSILON, alpha=LEVEL, n=n)
        hits = [np.mean([test.run(x, rng=rng).decision == "alternative" for x in data[m]]) for m in data]
        took = seconds(lambda test=test: test.run(data[0.0][0], rng=rng), 20)  # type: ignore[misc]
        figures = str(sizes[key]), f"{test.alpha:.4f} computed", f"{hits[0]:.3f}", f"{hits[1]:.3f}", took
        rows.append(Row(label, "epsilon 1", figures, sizes[key] if key == "signs" else None))

    def clipped(rows: np.ndarray, count: int) -> np.ndarray:
        """|noised clipped mean| over its deviation, the noise's included, records clipped to [-3, 3]."""
        noise = rng.laplace(scale=6 / (count * EPSILON), size=len(rows))
        means = np.clip(rows, -3, 3).mean(axis=1) + noise
        return np.asarray(np.abs(means) / math.sqrt(1 / count + 2 * (6 / (count * EPSILON)) ** 2) > 1.96)

    def power_of_t(count: int) -> float:
        cut, away = stats.t.ppf(0.975, count - 1), shift * math.sqrt(count)
        return float(stats.nct.sf(cut, count - 1, away) + stats.nct.cdf(-cut, count - 1, away))

    trials = rng.normal(shift, 1, (max(20 * runs, 2000), 200))
    need = next(m for m in range(60, 201) if clipped(trials[:, :m], m).mean() >= POWER)
    hits = [clipped(data[m], n).mean() for m in data]
    took = seconds(lambda: clipped(data[0.0][:1], n), 20)
    figures = str(need), "measured", f"{hits[0]:.3f}", f"{hits[1]:.3f}", took
    rows.append(Row("noised clipped mean, deviation known", "epsilon 1", figures, None))
    for name, size in (("test of tests (Kazan et al. 2023)", 193), ("Pena and Barrientos", 280)):
        rows.append(Row(name, "epsilon 1", (str(size), "published", "", "", ""), size))
    need = smallest(lambda m: power_of_t(m) >= POWER, 5, 5)
    hits = [np.mean(stats.ttest_1samp(data[m], 0, axis=1).pvalue <= LEVEL) for m in data]
    took = seconds(lambda: stats.ttest_1samp(data[0.0][0], 0).pvalue)
    figures = str(need), "0.0500 computed", f"{hits[0]:.3f}", f"{hits[1]:.3f}", took
    rows.append(Row("scipy.stats.ttest_1samp", NONE, figures, need))
    return Table(
        "Is the mean 0?",
        f"Two-sided, level 5%, power 80% at a shift of {shift} standard deviations; errors measured at n = {n} on the "
        f"same {runs} data sets of either mean.",
        ("records", "type I", "type I measured", "power measured", "time"),
        tuple(rows),
        (
            "Like the t-test and the two published tests, the sign test asks for no standard deviation; it does ask "
            "that mean and median are the same. Where the deviation is known, our other test needs fewer records.",
            "The noised clipped mean, told the deviation and the bounds, is a fair test: it is not ranked, for it "
            "knows more than the others. If its n is below our second row's, it is better.",
        ),
    )


def interval(runs: int) -> Table:
    """How large is the rate? 95% intervals from 100 records."""
    from opendp.extras.numpy import canonical

    n, truth, rng = 100, 0.05, np.random.default_rng(3)
    counts = (rng.random((runs, n)) < truth).sum(axis=1)
    design = pt.design_estimate("bernoulli(?)", epsilon=EPSILON, n=n)
    zeros = np.zeros(n, dtype=np.int8)
    found = []
    for count in counts.tolist():
        zeros[:] = 0
        zeros[:count] = 1
        found.append(design.run(zeros, rng=rng).interval)
    rows = [_interval_row("privatest", "epsilon 1", np.array(found), truth, design.coverage(truth))]
    took = seconds(lambda: design.run(zeros, rng=rng).interval, 20)
    privacy, reach = (EPSILON, 0.0), 14.0
    finely = 4 if runs >= 100 else 1
    totals = np.linspace(-reach, n + reach, round((n + 2 * reach) * finely) + 1)
    ends = np.array([_their_interval(canonical, z, n, privacy) for z in totals.tolist()])
    held = _held(canonical, truth, n, privacy, totals, ends)
    noisy = counts + _opendp_noise(rng, runs)
    theirs = ends[np.clip(np.searchsorted(totals, noisy), 0, len(totals) - 1)]
    rows.append(_interval_row("OpenDP, BinomialCND.confidence_interval", "epsilon 1", theirs, truth, held))
    times = [took, seconds(lambda: _their_interval(canonical, 6.3, n, privacy), 2)]
    noise = _laplace_noise(rng, runs)
    for name, spare in (("noised mean +- 1.96 standard errors", 0.0), ("the same, the noise's variance included", 2.0)):
        ends = _around((counts + noise) / n, spare / EPSILON**2, n)
        held = _held_around(spare / EPSILON**2, n, truth)
        rows.append(_interval_row(name, "epsilon 1", ends, truth, held))
    exact = np.array([stats.binomtest(int(count), n).proportion_ci(method="exact") for count in range(n + 1)])
    chances = stats.binom.pmf(np.arange(n + 1), n, truth)
    sure = float(chances @ ((exact[:, 0] <= truth) & (truth <= exact[:, 1])))
    rows.append(_interval_row("scipy, Clopper and Pearson", NONE, exact[counts], truth, sure))
    times += ["", "", seconds(lambda: stats.binomtest(5, n).proportion_ci(method="exact"))]
    one, zero = (int(s) for s in design.score.of_numbers(np.array([1.0, 0.0])))  # type: ignore[union-attr]
    small = pt.design_estimate("bernoulli(?)", epsilon=EPSILON, n=30)
    low, high = small.release(18 * one + 12 * zero + small.noise.offset).interval  # type: ignore[union-attr]
    return Table(
        "How large is the rate?",
        f"95% intervals from {n} records at a rate of {truth}; widths and coverage measured on the same {runs} "
        "data sets.",
        ("covers, computed", "covers, measured", "mean width", "time"),
        tuple(
            Row(row.name, row.private, (*row.figures, took), row.rank) for row, took in zip(rows, times, strict=True)
        ),
        (
            "Only intervals that cover the rate at least 95% of the time are ranked. OpenDP's is narrower than ours, "
            "and covers less often than it says: it does not invert the test.",
            f"Awan and Slavkovic's reference: 18 of 30, q = 0.05, (0.411, 0.767), an (epsilon, delta) interval; ours "
            f"at pure epsilon 1 ({low:.3f}, {high:.3f}).",
        ),
    )


def _around(rates: np.ndarray, spare: float, n: int) -> np.ndarray:
    """Rate +- 1.96 standard errors, ``spare`` the variance of a noisy count that is added."""
    inside = np.clip(rates, 0, 1)
    half = 1.96 * np.sqrt(inside * (1 - inside) / n + spare / n**2)
    return np.clip(np.stack([inside - half, inside + half], axis=-1), 0, 1)


def _held_around(spare: float, n: int, truth: float) -> float:
    """How likely that interval holds the truth, over all counts and 20,000 quantiles of the noise."""
    noise = stats.laplace.ppf((np.arange(20_000) + 0.5) / 20_000, scale=1 / EPSILON)
    held = 0.0
    for count, chance in enumerate(stats.binom.pmf(np.arange(n + 1), n, truth).tolist()):
        if chance > 1e-12:
            ends = _around((count + noise) / n, spare, n)
            held += chance * float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
    return held


def _interval_row(name: str, private: str, ends: np.ndarray, truth: float, covers: float) -> Row:
    width = float((ends[:, 1] - ends[:, 0]).mean())
    held = float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())
    figures = f"{covers:.4f}", f"{held:.3f}", f"{width:.4f}"
    return Row(name, private, figures, width if covers >= 0.95 - 1e-6 else None)


def sequential(runs: int) -> Table:
    """Rate .3 or .7, 5% errors on either side, records as they come."""
    most, ratio, rng = 1500, math.log(0.7 / 0.3), np.random.default_rng(4)
    streams = [(rng.random((runs, most)) < p).astype(np.int8) for p in (0.3, 0.7)]
    plan = pt.Sequential("bernoulli(0.3)", "bernoulli(0.7)", epsilon=EPSILON, alpha=0.05, beta=0.05).plan
    long = [(2.0 * (rng.random((max(runs // 2, 20), 3 * most)) < p) - 1) * ratio for p in (0.3, 0.7)]
    ends = rivals_sequential.thresholds_for(long[0], long[1], (0.05, 0.05), ratio, EPSILON, 1e-5, rng)
    bar = math.log(19.0)
    ways: list[tuple[str, str, Callable[[np.ndarray], Any]]] = [
        ("privatest, Sequential", "epsilon 1", lambda rows: on_streams(plan, rows, rng)),
        (
            "DP-SPRT, as printed",
            "epsilon 1",
            lambda rows: rivals_sequential.dp_sprt(rows, (0.3, 0.7), (0.05, 0.05), EPSILON, rng),
        ),
        (
            "PrivSPRT, thresholds by simulation",
            "(1, 1e-5)",
            lambda rows: rivals_sequential.priv_sprt((2.0 * rows - 1) * ratio, ends, ratio, EPSILON, 1e-5, rng),
        ),
        (
            "Wald's SPRT",
            NONE,
            lambda rows: rivals_sequential._first(
                (walk := np.cumsum((2.0 * rows - 1) * ratio, axis=1)) <= -bar, walk >= bar
            ),
        ),
    ]
    rows = []
    for name, private, way in ways:
        start = time.process_time()
        (seen0, said0), (seen1, said1) = (way(records) for records in streams)
        took = f"{(time.process_time() - start) / (2 * runs):.2g} s"
        means = [np.where(seen == rivals_sequential.NEVER, most, seen).mean() for seen in (seen0, seen1)]
        wrong = said0.mean(), 1 - said1.mean()
        figures = f"{means[0]:.1f}", f"{means[1]:.1f}", f"{wrong[0]:.3f}", f"{wrong[1]:.3f}", took
        rows.append(Row(name, private, figures, float(max(means))))
    return Table(
        "Decided yet?",
        f"Rate 0.3 or 0.7, errors of 5% on either side, mean records until the decision; the same {runs} streams of "
        f"either rate. A test on a fixed number of records needs {plan.fixed_n}.",
        ("records at 0.3", "records at 0.7", "type I measured", "type II measured", "time of a stream"),
        tuple(rows),
        (
            f"Ours states errors of {plan.alpha:.4f} and {plan.beta:.4f}, computed.",
            "DP-SPRT and PrivSPRT may stop after every record, ours at the ends of blocks; theirs are reimplemented in "
            "`benchmarks/rivals_sequential.py`, in doubles.",
        ),
    )


def change(runs: int) -> Table:
    """When did it change? .2 to .8, 200 records."""
    import ruptures

    n, rng = 200, np.random.default_rng(5)
    names = {"auto": "privatest, detect_change", "paper": "the same, the paper's method"}
    names |= {"OfflinePCPD": "OfflinePCPD", "PNCPD": "PNCPD (rates unknown)"}
    names |= {"maximum likelihood": "maximum likelihood", "middle": "the middle, whatever the data"}
    rows, times = [], []
    for method, name in names.items():
        start = time.process_time()
        asked: dict[str, Any] = {"epsilon": EPSILON, "n": n, "runs": runs, "methods": (method,)}
        (found,) = evaluate_change("bernoulli(0.2)", "bernoulli(0.8)", rng=np.random.default_rng(6), **asked)
        times.append((time.process_time() - start) / runs)
        private = NONE if method == "maximum likelihood" else "needs none" if method == "middle" else "epsilon 1"
        figures = f"{found.mean:.2f}", f"{found.q90:.0f}", f"{times[-1]:.2g} s"
        rows.append(Row(name, private, figures, found.mean))
    rng = np.random.default_rng(6)
    truth = rng.integers(n // 5, n - n // 5, size=runs)
    series = simulate_series(make_pair("bernoulli(0.2)", "bernoulli(0.8)"), n, truth, rng)
    start = time.process_time()
    places = [ruptures.Binseg(model="l2", jump=1).fit(x.astype(float)).predict(n_bkps=1)[0] for x in series]
    took = (time.process_time() - start) / runs
    off = np.abs(np.array(places) - truth)
    figures = f"{off.mean():.2f}", f"{np.quantile(off, 0.9):.0f}", f"{took:.2g} s"
    rows.append(Row("ruptures, Binseg (rates unknown)", NONE, figures, float(off.mean())))
    return Table(
        "When did it change?",
        f"Rate 0.2 before, 0.8 after, {n} records, the change anywhere in the middle three fifths; distance of the "
        f"index named from the true one over {runs} series.",
        ("mean distance", "90% of them below", "time of a series"),
        tuple(rows),
        ("PNCPD and ruptures are not told the two rates.",),
    )


def watch(runs: int) -> Table:
    """Has it changed yet? .2 to .8 after 2,000 records, false alarms 10,000 records apart."""
    from river import drift

    before, after, between = 2000, 600, 10_000.0
    n, rng, ratio = before + after, np.random.default_rng(7), math.log(4.0)
    asked: dict[str, Any] = {"epsilon": EPSILON, "n": n, "runs": runs, "change": before}
    rows = []
    ours = {"cusum": "privatest, Monitor", "paper": "the same, the paper's method"}
    for method, name in {**ours, "OnlinePCPD": "OnlinePCPD", "fixed times": "fixed times"}.items():
        start = time.process_time()
        (found,) = evaluate_monitor(
            *("bernoulli(0.2)", "bernoulli(0.8)"),
            rng=np.random.default_rng(8),
            mean_time_between_false_alarms=between,
            methods=(method,),
            **asked,
        )
        took = (time.process_time() - start) / (runs * n)
        private = "needs none" if method == "fixed times" else "epsilon 1"
        rows.append(_watch_row(name, private, found.false_alarms, found.missed, found.delay, took))
    quiet = (2.0 * (rng.random((max(4 * runs, 100), n)) < 0.2) - 1) * ratio
    goal, (low, high) = -math.expm1(-n / between), (0.0, 1000.0)
    for _ in range(14):
        middle = (low + high) / 2
        share = np.mean(rivals_sequential.dp_cusum(quiet, 2 * ratio, EPSILON, middle, rng) != rivals_sequential.NEVER)
        low, high = (middle, high) if share > goal else (low, middle)
    # The streams that evaluate_monitor makes of this seed.
    pair = make_pair("bernoulli(0.2)", "bernoulli(0.8)")
    coins = simulate_series(pair, n, np.full(runs, before), np.random.default_rng(8))
    start = time.process_time()
    seen = rivals_sequential.dp_cusum((2.0 * coins - 1) * ratio, 2 * ratio, EPSILON, high, rng)
    took = (time.process_time() - start) / (runs * n)
    rows.append(_watch_row("DP-CUSUM (its scales are our guess)", "epsilon 1", *_alarms(seen, before), took))
    for name, make in (("river, PageHinkley", drift.PageHinkley), ("river, ADWIN", drift.ADWIN)):
        start = time.process_time()
        seen = np.array([_first_drift(make(), stream) for stream in coins.tolist()])
        took = (time.process_time() - start) / (runs * n)
        rows.append(_watch_row(f"{name}, as it comes", NONE, *_alarms(seen, before), took))
    return Table(
        "Has it changed yet?",
        f"Rate 0.2, then 0.8 after {before:,} records; asked: {between:,.0f} records between false alarms, so that "
        f"{-math.expm1(-before / between):.3f} of the streams have one before the change. {runs} streams.",
        ("false alarms", "missed", "mean delay", "time of a record"),
        tuple(rows),
        (
            "The thresholds of OnlinePCPD and DP-CUSUM are set by simulation to the same time between false alarms; "
            "ours is computed. river's detectors are not told the rates, and have no such setting: that they "
            "raise fewer false alarms than were allowed speaks for them; a monitor asked for as few waits longer.",
            "Ways with twice the false alarms asked for, or that miss changes, are not ranked.",
        ),
    )


def _first_drift(detector: Any, stream: list[int]) -> int:
    for seen, record in enumerate(stream, start=1):
        detector.update(record)
        if detector.drift_detected:
            return seen
    return rivals_sequential.NEVER


def _alarms(seen: np.ndarray, before: int) -> tuple[float, float, float]:
    """Shares of streams with a false alarm and, of the others, with none; mean delay of the true ones."""
    early = (seen != rivals_sequential.NEVER) & (seen <= before)
    true = seen > before
    delay = float((seen[true] - before).mean()) if true.any() else math.nan
    return float(early.mean()), float((seen == rivals_sequential.NEVER).sum() / max((~early).sum(), 1)), delay


def _watch_row(name: str, private: str, early: float, missed: float, delay: float, took: float) -> Row:
    figures = f"{early:.3f}", f"{missed:.3f}", f"{delay:.1f}", f"{took:.2g} s"
    fair = early <= 2 * 0.1813 and missed < 0.05 and math.isfinite(delay)
    return Row(name, private, figures, delay if fair or name.startswith("privatest") else None)


TABLES: dict[str, tuple[Callable[[int], Table], int]] = {
    "rate": (rate, 1000),
    "mean": (mean, 400),
    "interval": (interval, 1000),
    "sequential": (sequential, 2000),
    "change": (change, 500),
    "watch": (watch, 300),
}
"""Questions, and how many data sets each is measured on."""


def written(page: str, tables: list[Table]) -> str:
    """The page with these tables in the place of those it has."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return head + BEGIN + "\n\n" + "\n".join(str(table) for table in tables) + "\n" + END + tail


def main(arguments: list[str] | None = None) -> None:
    """Print the tables that are named, or all; write them into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--runs", type=int, help="data sets to measure on, instead of each table's own number")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/peers.md")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.tables if name not in TABLES]:
        parser.error(f"{unknown[0]}: not one of {', '.join(TABLES)}")
    if given.write and given.tables:
        parser.error("--write writes all tables: name none")
    made = []
    start = time.process_time()
    for name in given.tables or TABLES:
        make, runs = TABLES[name]
        made.append(make(given.runs or runs))
        print(made[-1], flush=True)
    print(f"{time.process_time() - start:.0f} seconds of the processor.")
    if given.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
