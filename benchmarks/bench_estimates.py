"""Private estimates and two groups: coverage, width over the bound, errors beside others', time.

    python -m benchmarks.bench_estimates [coverage opendp reference bound error wide size power times units]

Everything is computed, but for the mean absolute errors and the persons of ``units``, which are simulated from a fixed
seed. ``opendp`` needs the extra of that name, ``units`` the databases of the tests.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

import privatest as pt
from privatest import engines
from privatest.engines.sources import Arms
from privatest.privacy import seeded_source

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


def opendp() -> None:
    """The same of OpenDP's interval for a rate, by numerical integration: the totals at which it holds the rate."""
    from opendp.extras.numpy import canonical

    for n, epsilon in ((30, 1.0), (100, 1.0), (30, 0.1)):
        privacy = epsilon, 0.0
        reach = 14 / epsilon
        totals = np.linspace(-reach, n + reach, round((n + 2 * reach) * (8 if epsilon == 1 else 2)) + 1)
        ends = np.array([_their_interval(canonical, z, n, privacy) for z in totals.tolist()])
        rates = np.linspace(0, 1, VALUES + 2)[1:-1]
        found = np.array([_held(canonical, rate, n, privacy, totals, ends) for rate in [*rates.tolist(), 0.1]])
        print(
            f"OpenDP's interval n={n:5} epsilon={epsilon:4}: smallest {found[:-1].min():.4f}, median "
            f"{np.median(found[:-1]):.4f}, largest {found[:-1].max():.4f}; at rate 0.1 {found[-1]:.4f}",
            flush=True,
        )


def _their_interval(canonical: Any, total: float, n: int, privacy: tuple[float, float]) -> tuple[float, float]:
    """OpenDP's interval; where it finds no end and raises, all on that side of the estimate counts as held."""
    from opendp.mod import binary_search

    try:
        low, high = canonical.two_sided_confidence_interval(total, 1.0, privacy, n, 0.05)
        return low, high
    except ValueError:
        rate, ends = min(max(total / n, 0.0), 1.0), [0.0, 1.0]
    for side, bounds in enumerate(((0.0, rate), (rate, 1.0))):
        with contextlib.suppress(ValueError):
            ends[side] = binary_search(
                lambda b: canonical.two_sided_pvalue(b * n, 1.0, privacy, n, rate) > 0.05, bounds=bounds
            )
    return ends[0], ends[1]


def _held(canonical: Any, rate: float, n: int, privacy: tuple[float, float], totals: Any, ends: Any) -> float:
    """How likely the noisy total is one whose interval holds the rate."""
    edges = np.concatenate([[-np.inf], (totals[1:] + totals[:-1]) / 2, [np.inf]])
    inside = (ends[:, 0] <= rate) & (rate <= ends[:, 1])
    counts, held = stats.binom.pmf(np.arange(n + 1), n, rate), 0.0
    starts, stops = (np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])) == side) for side in (1, -1))
    for first, last in zip(starts, stops, strict=True):
        for edge, sign in ((edges[last], 1), (edges[first], -1)):
            if np.isfinite(edge):
                held += sign * float(counts @ canonical._cnd_cdf(edge - np.arange(n + 1), 0.0, 1.0, privacy))
            else:
                held += float(edge > 0)
    return held


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


def bound(near_at: int = 4) -> None:
    """Expected width over what no private interval can beat, at all values of ``coverage``.

    A score is made for all of ``between``, a bound for one place: beside it stands the ratio of a score made for that
    place (``near=``), at a few. The usual interval for a mean of normal records, without privacy, has a ratio of 1.18.
    """
    ratios, nearby = [], []
    for family, between in RATES.items():
        for n in SIZES:
            for epsilon in EPSILONS:
                start = time.process_time()
                design = pt.design_estimate(family, between=between, epsilon=epsilon, n=n)
                values = np.linspace(*design.between, VALUES + 2)[1:-1]
                bounds = [design.width_bound(at) for at in values.tolist()]
                found = np.array([design.expected_width(at) for at in values.tolist()]) / bounds
                guessed = []
                for i in range(VALUES // near_at // 2, VALUES, VALUES // near_at):
                    at = float(values[i])
                    near = pt.design_estimate(family, between=between, epsilon=epsilon, n=n, near=at)
                    guessed.append(near.expected_width(at) / bounds[i])
                worst = int(np.argmax(found))
                ratios += [
                    (ratio, f"{family} n={n} epsilon={epsilon} at {at:.3g}")
                    for ratio, at in zip(found, values, strict=True)
                ]
                nearby += guessed
                print(
                    f"{family:22} n={n:5} epsilon={epsilon:4}: smallest ratio {found.min():.2f}, median "
                    f"{np.median(found):.2f}, largest {found.max():.2f} at {values[worst]:.3g}; near= at {near_at} "
                    f"of them {min(guessed):.2f}, {np.median(guessed):.2f}, {max(guessed):.2f}"
                    f"{'; two steps' if design.location is not None else ''} ({time.process_time() - start:.0f} s)",
                    flush=True,
                )
        row = [ratio for ratio, what in ratios if what.startswith(family)]
        print(f"{family}, {len(row)} cases: median {np.median(row):.2f}, largest {max(row):.2f}", flush=True)
    print(
        f"width over bound, {len(ratios)} cases: median {np.median([ratio for ratio, _ in ratios]):.2f}, largest "
        f"{max(ratios)[0]:.2f} ({max(ratios)[1]}); with near=, {len(nearby)} cases: median {np.median(nearby):.2f}, "
        f"largest {max(nearby):.2f}"
    )


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


def size(rates: int = 1000) -> None:
    """Type I error over a grid of common rates: at most alpha = 0.05."""
    for n in ((50, 50), (200, 200), (100, 400)):
        for epsilon in (0.5, 1.0):
            design = pt.design_groups(n=n, epsilon=epsilon)
            grid = (np.arange(rates) + 0.5) / rates
            # Rates r and 1 - r have the same error where the groups are of one size: both are computed all the same.
            sizes = [design.power((rate, rate)) for rate in grid.tolist()]
            worst = int(np.argmax(sizes))
            print(
                f"n={n} epsilon={epsilon}: {rates} rates, largest type I error {sizes[worst]:.6f} at "
                f"{grid[worst]:.4f}, median {np.median(sizes):.4f}",
                flush=True,
            )


def power() -> None:
    """Power at .3/.4, n = 200 each, epsilon 1, beside others; to two sides and to one."""
    n, rates, epsilon = 200, (0.3, 0.4), 1.0
    for alternative, level in (("two-sided", 0.025), ("greater", 0.05)):
        design = pt.design_groups(n=(n, n), epsilon=epsilon, alternative=alternative)
        bounds = [_semi_private(n, rates, loss, level) for loss in (epsilon, 2 * epsilon, 40.0)]
        print(
            f"power at .3/.4, n = 200 each, {alternative}: ours {design.power(rates):.4f}; semi-private at epsilon "
            f"{bounds[0]:.4f}, at 2 epsilon {bounds[1]:.4f}, without privacy {bounds[2]:.4f}; Boschloo, not private, "
            f"{_boschloo(n, rates, level):.4f}",
            flush=True,
        )
        for ignored in (1e-5, 1e-3):
            other = replace(design.counts, ignored=ignored)
            print(f"  with {ignored:g} in place of 1e-4 for common rates left out: {other.power(rates, 0.05):.4f}")
    found, largest = _laplace(n, rates, epsilon), max(_laplace(n, (r, r), epsilon) for r in (0.01, 0.02, 0.05, 0.3))
    print(f"a Laplace difference test, normal approximation: {found:.4f}; its type I error is up to {largest:.4f}")


def _semi_private(n: int, rates: tuple[float, float], epsilon: float, level: float) -> float:
    """Awan and Vadhan's semi-private test: most powerful where the total of both groups is known, and only the rest is
    private. With one record more in the treated group and the same total, two records differ: of every epsilon-private
    test the most powerful unbiased one at 2 epsilon is a bound, that at epsilon is none.

    Given that total, the count of the treated group is hypergeometric under the null, and the best private test of it
    adds Tulap noise and compares with a threshold of that level. To two sides, of groups of one size, with half of the
    level to either: given the total the law is symmetric, so that this is the unbiased one.
    """
    counts = np.arange(n + 1)
    laws = [stats.binom.pmf(counts, n, rate) for rate in rates]
    sides = (1, -1) if level < 0.05 else (1,)
    found = 0.0
    for total in range(2 * n + 1):
        treated = np.arange(max(total - n, 0), min(total, n) + 1)
        weights = laws[1][treated] * laws[0][total - treated]
        if weights.sum() < 1e-12:
            continue
        null = stats.hypergeom.pmf(treated, 2 * n, total, n)
        for side in sides:
            cut = optimize.brentq(
                lambda c, t=treated, h=null, s=side: float(h @ _tulap_cdf(s * t - c, epsilon)) - level,
                -2.0 * n - 60 / epsilon,
                2.0 * n + 60 / epsilon,
                xtol=1e-9,
            )
            found += float(weights @ _tulap_cdf(side * treated - cut, epsilon))
    return found


def _tulap_cdf(x: Any, epsilon: float) -> Any:
    """Of G + U, G two-sided geometric and U uniform on (-1/2, 1/2)."""
    b, x = np.exp(-epsilon), np.asarray(x, dtype=float)
    away = np.abs(x)
    whole = np.rint(away)
    upper = b**whole / (1 + b) * (b + (whole - away + 0.5) * (1 - b))
    return np.where(x > 0, 1 - upper, upper)


def _boschloo(n: int, rates: tuple[float, float], level: float) -> float:
    """Reject where Fisher's one-sided p-value is so small that, whatever the common rate, it seldom is; to two sides
    with half of the level to either, as scipy's ``boschloo_exact`` doubles the smaller one. Two tables at the edge are
    asked of scipy."""
    counts = np.arange(n + 1)
    control, treated = np.meshgrid(counts, counts, indexing="ij")
    fisher = stats.hypergeom.sf(treated - 1, 2 * n, control + treated, n)
    common = [stats.binom.pmf(counts, n, rate) for rate in np.linspace(0.001, 0.999, 999)]
    values = np.unique(fisher[(fisher > level / 4) & (fisher < 4 * level)])
    low, high = 0, len(values) - 1  # invariant: rejecting up to values[low] keeps to the level, up to values[high] not
    while high - low > 1:
        middle = (low + high) // 2
        region = (fisher <= values[middle]).astype(float)
        fits = max(float(law @ region @ law) for law in common) <= level
        low, high = (middle, high) if fits else (low, middle)
    region = fisher <= values[low]
    row = round(n * rates[0])
    edge = int(np.argmax(region[row]))
    alternative = "two-sided" if level < 0.05 else "greater"
    asked = [
        stats.boschloo_exact([[b, row], [n - b, n - row]], alternative=alternative, n=32).pvalue
        for b in (edge - 1, edge)
    ]
    assert asked[1] <= 0.05 < asked[0] + 1e-3, asked
    one, other = (stats.binom.pmf(counts, n, rate) for rate in rates)
    other_side = float(one @ region.T @ other) if level < 0.05 else 0.0
    return float(one @ region @ other) + other_side


def _laplace(n: int, rates: tuple[float, float], epsilon: float) -> float:
    """The difference of two Laplace-noised rates over its standard error, as people write it."""
    rng, runs = np.random.default_rng(3), 200_000
    a, b = (rng.binomial(n, rate, runs) + rng.laplace(0, 1 / epsilon, runs) for rate in rates)
    common = np.clip((a + b) / (2 * n), 1 / (2 * n), 1 - 1 / (2 * n))
    z = (b - a) / n / np.sqrt(2 * common * (1 - common) / n + 4 / (epsilon * n) ** 2)
    return float(np.mean(np.abs(z) > stats.norm.isf(0.025)))


def times() -> None:
    """Seconds of one interval and of one two-group p-value, and processor seconds, as others may share the machine."""
    rng = np.random.default_rng(4)
    for family, between, data in (
        ("bernoulli(?)", None, rng.binomial(1, 0.3, 10**6)),
        ("normal(mean=?, sd=1)", (-3, 3), rng.normal(0.2, 1, 10**6)),
        ("poisson(?)", (0, 20), rng.poisson(4, 10**6)),
    ):
        for n in (1000, 10**6):
            design = pt.design_estimate(family, between=between, epsilon=1, n=n)
            _timed(f"{family} n={n}: a run with its interval", lambda d=design, x=data[:n]: d.run(x))
    one, other = rng.binomial(1, 0.3, 10**6), rng.binomial(1, 0.301, 10**6)
    design = pt.design_groups(n=(10**6, 10**6), epsilon=1)
    _timed("two groups of 10^6: p-value and interval", lambda: design.run(one, other))
    _timed("  the p-value alone", lambda: design.counts.pvalue((300_000, 301_500)))
    mean = pt.design_estimate("poisson(?)", between=(0, 10), epsilon=1, n=1000)
    _timed("width_bound of a Poisson mean, n=1000", lambda: mean.width_bound(5.0))


PERSONS, ROWS, RUNS = 400, 5, 1000


def units() -> None:
    """Persons of five rows, k of which count: the same integer on every engine, coverage and errors of 1,000 runs."""
    frame = _persons(np.random.default_rng(0), 2000, alike=False)
    for k in (1, 2, 3, 5):
        design = pt.design_estimate("bernoulli(?)", epsilon=1, n=2000 * k, max_rows_per_unit=k)
        assert design.score is not None
        totals = {name: _total(data, design.score, k) for name, data in _everywhere(frame[["x", "who"]])}
        found = design.run(frame, column="x", unit="who", rng=np.random.default_rng(1))
        assert len(set(totals.values())) == 1, totals
        print(
            f"k={k}: total {set(totals.values()).pop()} on {', '.join(totals)}; rate {found.estimate:.3f} "
            f"[{found.interval[0]:.3f}, {found.interval[1]:.3f}], 0.3 is true",
            flush=True,
        )
    print(f"{PERSONS} persons of {ROWS} rows, {RUNS} runs: shares of 95% intervals that hold; errors, stated and found")
    for alike in (False, True):
        for k in (1, 2, 3, 5):
            print(
                f"{'identical' if alike else 'independent'} rows, k={k}: " + "; ".join(_shares(k, alike=alike)),
                flush=True,
            )


def _persons(rng: np.random.Generator, persons: int, *, alike: bool) -> Any:
    """Rows of persons: a rate of 0.3 (x), a standard normal number (y), one of four categories (z)."""
    import pandas as pd  # for this table alone

    def rows(drawn: Any) -> Any:
        return np.repeat(drawn[::ROWS], ROWS) if alike else drawn

    n, drawn = persons * ROWS, {}
    drawn["x"] = rows((rng.random(n) < 0.3).astype(float))
    drawn["y"] = rows(rng.normal(0, 1, n))
    drawn["z"] = rows(rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]).astype(float))
    return pd.DataFrame({**drawn, "who": np.repeat(np.arange(persons), ROWS)})


def _everywhere(frame: Any) -> Iterator[tuple[str, Any]]:
    """The same table in memory, in a file and in databases."""
    from tests.engines.warehouses import WAREHOUSES

    columns = {name: frame[name].tolist() for name in frame.columns}
    with tempfile.TemporaryDirectory() as folder:
        frame.to_csv(f"{folder}/rows.csv", index=False)
        yield "NumPy", frame
        yield "CSV", f"{folder}/rows.csv"
        for name in ("DuckDB", "PostgreSQL", "Spark"):
            yield name, WAREHOUSES[name](columns, Path(folder))


def _total(data: Any, score: Any, k: int) -> int:
    return engines.total(score, data, column="x", unit="who", max_rows_per_unit=k)


def _shares(k: int, *, alike: bool) -> Iterator[str]:
    """Of two estimates how often the interval holds the truth, of two tests and a fit how often they are wrong."""
    n = PERSONS * k
    words: dict[str, Any] = {"epsilon": 1, "n": n, "max_rows_per_unit": k}
    rate = pt.design_estimate("bernoulli(?)", **words)
    mean = pt.design_estimate("normal(mean=?, sd=1)", between=(-3, 3), **words)
    test = pt.design("bernoulli(0.3)", "bernoulli(0.4)", alpha=0.05, **words)
    back = pt.design("bernoulli(0.25)", "bernoulli(0.3)", **words)
    fit = pt.design_fit([0.4, 0.3, 0.2, 0.1], distance=0.15, alpha=0.05, beta=None, **words)
    ranges = {"x": (rate, rate.inversion.accepted(0.3, 0.95)), "y": (mean, mean.inversion.accepted(0.0, 0.95))}
    held, wrong = {"x": 0, "y": 0}, [0, 0, 0]
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, k, alike])
        frame, source = _persons(rng, PERSONS, alike=alike), seeded_source(rng)
        for column, (design, (least, most)) in ranges.items():
            records = engines.open_source(frame, column=column, unit="who", max_rows_per_unit=k)
            assert design.noise is not None and design.score is not None  # noqa: PT018 - for types
            held[column] += least < records.total(design.score) + design.noise.draw(source) <= most
        wrong[0] += test.run(frame, column="x", unit="who", rng=rng).decision == "alternative"
        wrong[1] += back.run(frame, column="x", unit="who", rng=rng).decision == "null"
        wrong[2] += fit.run(frame, column="z", unit="who", rng=rng).decision == "alternative"
    yield f"rate {held['x'] / RUNS:.3f}"
    yield f"mean {held['y'] / RUNS:.3f}"
    yield f"type I {test.alpha:.3f} {wrong[0] / RUNS:.3f}"
    yield f"type II {back.beta:.3f} {wrong[1] / RUNS:.3f}"
    yield f"fit, type I {fit.alpha:.3f} {wrong[2] / RUNS:.3f}"


ABSENT = (0.0, 0.05, 0.37, 0.8)


def missing() -> None:
    """Records missing at random: coverage of 1,000 runs, and what it costs that some might be missing."""
    n, rng = 2000, np.random.default_rng(11)
    for family, between, true, drawn in (
        ("bernoulli(?)", None, 0.3, lambda rng: (rng.random(n) < 0.3).astype(float)),
        ("normal(mean=?, sd=1)", (-2, 4), 0.5, lambda rng: rng.normal(0.5, 1, n)),
        ("share_above(0.5, ?)", None, 0.2, lambda rng: rng.random(n) - 0.3),
        ('categorical("Yes"=?)', None, 0.4, lambda rng: rng.choice(np.array(["Yes", "No"], object), n, p=[0.4, 0.6])),
    ):
        design = pt.design_estimate(family, between=between, epsilon=1, n=n, missing="count")
        ends: dict[int, Any] = {}
        for absent in ABSENT:
            held, seed = 0, seeded_source(rng)
            for _ in range(RUNS):
                data = _without(drawn(rng), absent, rng)
                # The interval of a run holds the truth where its total lies between these ends.
                total, count = map(Fraction, design.draw(engines.open_source(data), seed))
                m = design._presence.summed(count, n)
                if m not in ends:
                    ends[m] = design._inversion(m).accepted(true, design.confidence + design._presence.miss)
                held += ends[m][0] < total <= ends[m][1]
            widths = [design.run(_without(drawn(rng), absent, rng), rng=rng).width for _ in range(5)]
            print(
                f"{family} n={n} epsilon=1, {absent:.0%} missing: {held / RUNS:.3f} of {RUNS} intervals hold the "
                f"truth, {design.confidence} stated; mean width {np.mean(widths):.4f}",
                flush=True,
            )
        sure = pt.design_estimate(family, between=between, epsilon=1, n=n)
        widths = [sure.run(drawn(rng), rng=rng).width for _ in range(5)]
        print(f"  where the type admits no missing value: mean width {np.mean(widths):.4f}", flush=True)
    groups, seed = pt.design_groups(n=(n, n), epsilon=1, missing="count"), seeded_source(rng)
    for absent in ABSENT:
        held, found = 0, 0
        for _ in range(RUNS):
            for lift in (0.1, 0.0):
                arms = [_without((rng.random(n) < 0.3).astype(float), absent, rng), (rng.random(n) < 0.3 + lift) + 0.0]
                records = Arms(*map(engines.open_source, arms))
                one, other, *noisy = groups.draw(records, seed)[:4]
                counts = groups._counts([groups._presence.summed(Fraction(m), n) for m in noisy])
                if lift:
                    held += _holds(counts, (one, other), lift, groups.confidence + groups._miss)
                else:
                    found += counts.pvalue((one, other)) + groups._miss <= groups.alpha
        widths = []
        for _ in range(10):
            control = _without((rng.random(n) < 0.3).astype(float), absent, rng)
            widths.append(np.diff(groups.run(control, (rng.random(n) < 0.4) + 0.0, rng=rng).interval)[0])
        print(
            f"groups n=({n}, {n}) epsilon=1, {absent:.0%} of control missing: {held / RUNS:.3f} of {RUNS} intervals "
            f"hold the difference, {groups.confidence} stated; type I error {found / RUNS:.3f}, {groups.alpha} stated; "
            f"mean width {np.mean(widths):.4f}",
            flush=True,
        )
    sure = pt.design_groups(n=(n, n), epsilon=1)
    answers = [sure.run(rng.random(n) < 0.3, rng.random(n) < 0.4, rng=rng).interval for _ in range(10)]
    print(f"  where the type admits no missing value: mean width {np.mean([b - a for a, b in answers]):.4f}")


def _holds(counts: Any, noisy: tuple[int, int], difference: float, confidence: float) -> bool:
    """Whether the interval from two noisy counts holds a difference: neither tail of it is too small."""
    level = (1 - confidence - counts.ignored) / 2
    for side, seen, apart in ((counts, noisy, difference), (counts.swapped, noisy[::-1], -difference)):
        tail = partial(side._reached, difference=apart, apart=side.apart(seen))
        if side._largest(tail, side.left(sum(seen), apart), apart) <= level:
            return False
    return True


def _without(data: Any, absent: float, rng: np.random.Generator) -> Any:
    data[rng.random(len(data)) < absent] = None if data.dtype == object else np.nan
    return data


def _timed(what: str, work: Callable[[], object]) -> None:
    start, used = time.perf_counter(), time.process_time()
    work()
    print(f"{what}: {time.perf_counter() - start:.2f} s, {time.process_time() - used:.2f} of the processor", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "coverage": coverage,
    "opendp": opendp,
    "reference": reference,
    "bound": bound,
    "error": error,
    "wide": wide,
    "size": size,
    "power": power,
    "times": times,
    "units": units,
    "missing": missing,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        print(f"== {name}")
        PARTS[name]()
