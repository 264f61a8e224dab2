"""Twenty-six ordinary problems, each tried as an analyst would try it first, on public data that ship with packages.

``python -m benchmarks.ordinary`` prints the answer without privacy, what privatest answers, and a verdict that is
computed, never written down:

    well     the stated share of the seeded runs agrees with the answer without privacy
    awkward  the first call is answered under a condition; where that is wrong the answer says that its model does not
             fit, or names the question that tells, and that question, asked in every run, says so
    refused  the first call raises an InvalidInput whose words name the reason and a way out, nothing is charged, and
             the way out, where it is one call, agrees with the answer without privacy
    wrong    everything else

``python -m benchmarks.ordinary columns`` asks every question that reads a column of nine columns, most of them wrong
for it, through every kind of source (``--face csv`` for one of them):

    right    the answer agrees with the answer without privacy about what the column holds
    refused  a PrivatestError, and nothing is charged
    said     the answer says that something is wrong: that no hypothesis fits, how many records do not count, or what
             was counted instead; or it names the goodness-of-fit question that, if asked, says that it does not fit
    silent   everything else

The exit code is the number of wrong, or silent, ones. ``--runs`` sets the number of seeded runs (default 20).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import privatest as pt

SHARE = 0.95
"""Share of the runs that must agree, as the intervals promise."""


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        name: as the table prints it.
        truth: the answer without privacy, in words.
        first: the call tried first; takes keyword arguments (a generator, or a ledger).
        agrees: whether an answer agrees with the truth.
        words: what the refusal must say; empty where an answer is expected.
        way_out: the call that the refusal leads to.
        way_agrees: whether its answer agrees with the truth.
        share: how many of the runs must agree.
        unit: the column of the persons whom the budget protects, where rows are not persons.
        check: the question that the answer names for its condition; given the answer.
        price: what is charged before the first call: a monitor's budget, paid when it begins.
    """

    name: str
    truth: str
    first: Callable[..., Any]
    agrees: Callable[[Any], bool] = lambda _: False
    words: tuple[str, ...] = ()
    way_out: Callable[..., Any] | None = None
    way_agrees: Callable[[Any], bool] = lambda _: False
    share: float = SHARE
    unit: str | None = None
    check: Callable[..., Any] | None = None
    price: int = 0


def holds(value: float) -> Callable[[Any], bool]:
    """Whether a release's interval holds a value."""
    return lambda release: release.interval[0] <= value <= release.interval[1]


def decides(decision: str) -> Callable[[Any], bool]:
    """Whether a release decides so."""
    return lambda release: release.decision == decision


def doubts(release: Any) -> bool:
    """Whether a release says that its model does not fit the records."""
    return getattr(release, "fits", None) in (False, "no", "neither")


def agreement(
    ask: Callable[..., Any], agrees: Callable[[Any], bool], runs: int, check: Callable[..., Any] | None = None
) -> tuple[int, int]:
    """How many seeded runs agree, and how many of the others say, or lead to the question that says, "no fit"."""
    right = doubted = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        release = ask(rng=rng)
        if agrees(release):
            right += 1
        elif doubts(release):
            doubted += 1
        elif check is not None and "goodness_of_fit" in release.sentence and "if the records come" in release.sentence:
            doubted += check(release, rng=rng).decision == "alternative"
    return right, doubted


def refusal(problem: Problem) -> tuple[str | None, bool]:
    """The words that the first call was refused with, None if it was not; and whether anything was charged."""
    with tempfile.TemporaryDirectory() as folder, pt.Ledger(Path(folder) / "ledger.db") as ledger:
        ledger.grant("people", epsilon=100, unit=problem.unit)
        try:
            problem.first(ledger=ledger, dataset="people", request="first")
        except pt.errors.InvalidInput as error:
            return str(error), ledger.left("people") != 100 - problem.price
        return None, False


def verdict(problem: Problem, runs: int) -> tuple[str, str]:
    """The verdict on a problem, and what it rests on."""
    try:
        said, charged = refusal(problem)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    if said is not None:
        lacking = [word for word in problem.words if word not in said]
        if charged or lacking or not problem.words:
            return "wrong", f"refused{' after a charge' if charged else ''}, without {lacking}: {said}"
        if problem.way_out is None:
            return "refused", said
        right, _ = agreement(problem.way_out, problem.way_agrees, runs)
        fine = right >= problem.share * runs
        return ("refused" if fine else "wrong"), f"way out right {right}/{runs}; {said}"
    right, doubted = agreement(problem.first, problem.agrees, runs, problem.check)
    found = "well" if right >= problem.share * runs else "wrong"
    if found == "wrong" and right + doubted >= problem.share * runs:
        found = "awkward"
    return found, f"right {right}/{runs}" + (f", says that the model does not fit {doubted}/{runs}" if doubted else "")


class Command:
    """The command line's answer as an object; a refusal is raised as the InvalidInput that it printed."""

    def __init__(self, *words: object) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "privatest", *map(str, words), "--json"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise pt.errors.InvalidInput(done.stderr)
        self.__dict__.update(json.loads(done.stdout))


def problems(folder: Path) -> Iterator[Problem]:
    """All twenty-six, on data of statsmodels (fair, randhie, ...) and of scikit-learn (diabetes, digits)."""
    import duckdb
    import statsmodels.api as sm
    from sklearn.datasets import load_diabetes, load_digits

    def table(name: str) -> pd.DataFrame:
        return getattr(sm.datasets, name).load_pandas().data

    fair = table("fair")
    fair["had"] = (fair["affairs"] > 0).astype(int)
    fair["devout"] = np.where(fair["religious"] > 2, "yes", "no")
    fair["job"] = np.select([fair["occupation"] <= 2, fair["occupation"] == 3, fair["occupation"] == 4], [*"abc"], "d")
    fair.to_csv(folder / "fair.csv", index=False)
    fair.to_parquet(folder / "fair.parquet", row_group_size=1000)
    fair.sample(frac=1, random_state=1).to_parquet(folder / "stream.parquet", row_group_size=1000)  # it is sorted
    rand, travel, heart, sea, vote = map(table, ("randhie", "modechoice", "heart", "elnino", "anes96"))
    body = load_diabetes(as_frame=True, scaled=False).frame
    body["sex"] = body["sex"].astype(int)
    digits = load_digits().target
    one: dict[str, Any] = {"epsilon": 1}

    had = fair["had"].mean()
    yield Problem(
        "proportion",
        f"{had:.3f}",
        lambda **k: pt.estimate(fair, "bernoulli(?)", column="had", **one, **k),
        holds(had),
    )
    mean = body["bmi"].mean()
    yield Problem(
        "mean, unknown variance",
        f"{mean:.2f}, t interval {np.round(stats.t.interval(0.95, 441, mean, stats.sem(body['bmi'])), 2)}",
        lambda **k: pt.estimate(body, "normal(mean=?, sd=?)", column="bmi", between=(10, 60), **one, **k),
        words=("sd_between is missing",),
        way_out=lambda **k: pt.estimate(
            body, "normal(mean=?, sd=?)", column="bmi", between=(10, 60), sd_between=(1, 10), **one, **k
        ),
        way_agrees=lambda r: r.interval["mean"][0] <= mean <= r.interval["mean"][1],
    )
    visits = rand["mdvis"].mean()
    yield Problem(
        "overdispersed counts",
        f"mean {visits:.2f}, variance {rand['mdvis'].var():.1f}",
        lambda **k: pt.estimate(rand, "poisson(?)", column="mdvis", between=(0.5, 10), **one, **k),
        holds(visits),
        check=lambda release, rng: pt.goodness_of_fit(
            rand, f"poisson({release.estimate:.4g})", column="mdvis", distance=0.2, rng=rng, **one
        ),
    )
    rates = fair.groupby("devout")["had"].mean()
    yield Problem(
        "A/B of rates (command line)",
        f"{rates['yes'] - rates['no']:.3f}, p {stats.chi2_contingency(pd.crosstab(fair.devout, fair.had)).pvalue:.0e}",
        lambda **_: Command("groups", folder / "fair.csv", "--group", "devout", "--column", "had", "--epsilon", 1),
        lambda r: r.decision == "alternative" and holds(rates["yes"] - rates["no"])(r),
    )
    women, men = (body.loc[body["sex"] == code, "target"] for code in (1, 2))
    above = (men > 140).mean() - (women > 140).mean()
    yield Problem(
        "A/B of numbers",
        f"means {women.mean():.0f} and {men.mean():.0f}, p {stats.ttest_ind(women, men).pvalue:.2f}",
        lambda **k: pt.compare_groups(body, group="sex", column="target", **one, **k),
        words=("above=",),
        way_out=lambda **k: pt.compare_groups(body, group="sex", column="target", above=140, **one, **k),
        way_agrees=lambda r: r.decision == "null" and holds(above)(r),
    )
    yield Problem(
        "medians of two groups",
        f"medians {women.median():.0f} and {men.median():.0f}, p {stats.median_test(women, men).pvalue:.2f}",
        lambda **k: pt.compare_groups(body, group="sex", column="target", what="median", **one, **k),
        words=("noisy table", "above="),
        way_out=lambda **k: pt.compare_groups(body, group="sex", column="target", above=140, **one, **k),
        way_agrees=lambda r: r.decision == "null" and holds(above)(r),
    )
    jobs = fair.groupby("job")["had"].mean()
    yield Problem(
        "four arms",
        f"rates {np.round(jobs.to_numpy(), 2)}, p {stats.chi2_contingency(pd.crosstab(fair.job, fair.had)).pvalue:.0e}",
        lambda **k: pt.compare_groups(fair, group="job", column="had", **one, **k),
        words=("two groups at a time", "divide alpha"),
        way_out=lambda **k: pt.compare_groups(
            fair[fair["job"].isin(["b", "d"])], group="job", column="had", alpha=0.05 / 6, **one, **k
        ),
        way_agrees=lambda r: r.decision == "alternative" and holds(jobs["d"] - jobs["b"])(r),
    )
    shares = (vote["educ"] > 4).groupby(vote["vote"]).mean()
    yield Problem(
        "independence",
        f"vote and education: p {stats.chi2_contingency(pd.crosstab(vote.vote, vote.educ)).pvalue:.0e}",
        lambda **k: pt.goodness_of_fit(vote, "independent", column=["vote", "educ"], distance=0.2, **one, **k),
        words=("two columns", "one column"),
        way_out=lambda **k: pt.compare_groups(vote, group="vote", column="educ", above=4.5, **one, **k),
        way_agrees=holds(shares[1.0] - shares[0.0]),
    )
    few = digits[digits < 8]
    yield Problem(
        "fit of 8 categories",
        f"uniform, p {stats.chisquare(np.bincount(few)).pvalue:.2f}",
        lambda **k: pt.goodness_of_fit(few, [1 / 8] * 8, distance=0.2, alpha=0.05, **one, **k),
        decides("null"),
    )
    tenths = np.histogram(stats.norm(95, 14).cdf(body["bp"]), np.linspace(0, 1, 11))[0]
    unlike = stats.chisquare(tenths).pvalue
    yield Problem(
        "fit of a normal",
        f"blood pressure and normal(95, 14), ten bins: p {unlike:.0e}",
        lambda **k: pt.goodness_of_fit(body, "normal(?, ?)", column="bp", distance=0.3, **one, **k),
        words=("question mark is for estimates", "Write a number"),
        way_out=lambda **k: pt.goodness_of_fit(
            body, "normal(95, 14)", column="bp", distance=0.4, alpha=0.05, **one, **k
        ),
        way_agrees=decides("alternative" if unlike <= 0.05 else "null"),
    )
    nile = table("nile")
    years = nile.assign(year=nile["year"].astype(int))
    yield Problem(
        "Nile",
        "1898",
        lambda **k: pt.detect_change(
            years,
            "normal(1100, 130)",
            "normal(850, 130)",
            column="volume",
            order="year",
            public_order=True,
            **one,
            **k,
        ),
        lambda r: r.changed and abs(r.order_value - 1898) <= r.accuracy,
        share=0.9,
    )
    prices = table("macrodata")["infl"].to_numpy()
    best = least_squares_changes(prices)
    yield Problem(
        "several changes",
        f"quarters {best} (least squares)",
        lambda **k: pt.detect_change(prices, "normal(2.5, 2.5)", "normal(8, 2.5)", epsilon=4, **k, changes="several"),
        lambda r: len(r.indices) == 2 and all(abs(i - j) <= r.accuracy for i, j in zip(r.indices, best, strict=True)),
        share=0.9,
    )
    yield Problem(
        "Parquet stream",
        f"share {had:.2f} throughout: no alarm",
        lambda **k: pt.Monitor(
            "bernoulli(0.32)", "bernoulli(0.5)", epsilon=1, mean_time_between_false_alarms=10**6, **k
        ).update(str(folder / "stream.parquet")),
        words=("file", "update_many"),
        way_out=lambda **k: [
            pt.Monitor(
                "bernoulli(0.32)", "bernoulli(0.5)", epsilon=1, mean_time_between_false_alarms=10**6, **k
            ).update_many(str(folder / "stream.parquet"), column="had")
        ],
        way_agrees=lambda alarms: alarms == [None],
        price=1,
    )
    yield Problem(
        "early stopping",
        f"{had:.3f}: above 0.3",
        lambda **k: pt.Sequential("bernoulli(p<=0.2)", "bernoulli(p>=0.3)", epsilon=1, **k).update(fair["had"]),
        decides("alternative"),
    )
    pressure = body["bp"].mean()
    yield Problem(
        "interval of a mean (command line)",
        f"{pressure:.1f}",
        lambda **_: Command("estimate", folder / "body.csv", "--column", "bp", "--family", "mean", "--epsilon", 1),
        words=("between", "bounds the mean"),
        way_out=lambda **k: pt.estimate(body, "mean", column="bp", between=(50, 150), **one, **k),
        way_agrees=holds(pressure),
    )
    middle = body["target"].median()
    yield Problem(
        "interval of a median",
        f"{middle}",
        lambda **k: pt.estimate(body, "median", column="target", between=(0, 400), **one, **k),
        holds(middle),
    )
    yield Problem(
        "interval of a variance",
        f"sd {body['bp'].std():.1f}",
        lambda **k: pt.estimate(body, "variance", column="bp", between=(1, 1000), **one, **k),
        words=("sd=?", "sd_between"),
        way_out=lambda **k: pt.estimate(
            body, "normal(mean=?, sd=?)", column="bp", between=(50, 150), sd_between=(5, 50), **one, **k
        ),
        way_agrees=lambda r: r.interval["sd"][0] <= body["bp"].std() <= r.interval["sd"][1],
    )
    both = {name: stats.pearsonr(body["bmi"], body[name]).statistic for name in ("bp", "target")}
    heavy = body.assign(heavy=(body["bmi"] > 26).astype(int))
    lift = (body["target"] >= 140).groupby(heavy["heavy"]).mean()
    parted: dict[str, Any] = {
        "way_out": lambda **k: pt.compare_groups(heavy, group="heavy", column="target", above=140, **one, **k),
        "way_agrees": lambda r: r.decision == "alternative" and holds(lift[1] - lift[0])(r),
    }
    yield Problem(
        "correlation",
        f"{both['target']:.2f}",
        lambda **k: pt.estimate(body, "correlation", column=["bmi", "target"], **one, **k),
        words=("two columns", "compare_groups"),
        **parted,
    )
    yield Problem(
        "slope",
        f"{stats.linregress(body['bmi'], body['target']).slope:.1f}",
        lambda **k: pt.estimate(body, "target ~ bmi", between=(-50, 50), **one, **k),
        words=("two columns", "compare_groups"),
        **parted,
    )
    yield Problem(
        "joint",
        f"correlation of bmi and blood pressure {both['bp']:.2f}",
        lambda **k: pt.decide(body, "normal(26, 4)", "normal(28, 4)", column=["bmi", "bp"], **one, **k),
        words=("several columns", "one label"),
    )
    air = travel[travel["mode"] == 1]
    chosen = travel["choice"].mean()
    yield Problem(
        "rows a person",
        f"{chosen:.2f} of four rows each; {air['choice'].mean():.2f} by air",
        lambda **k: pt.estimate(
            travel.astype({"choice": int}), "bernoulli(?)", column="choice", unit="individual", **one, **k
        ),
        holds(chosen),
        unit="individual",
    )
    yield Problem("weekly zCDP", "52 shares of zcdp(0.5), not 53", lambda **_: weeks(fair["had"]), bool)
    with duckdb.connect(str(folder / "fair.db")) as connection:
        connection.execute(f"create table fair as select * from '{folder / 'fair.parquet'}'")
    yield Problem(
        "DuckDB",
        f"{had:.3f}, and the same total as in memory",
        lambda **k: pt.estimate(
            f"duckdb:///{folder / 'fair.db'}::fair", "bernoulli(?)", column="had", missing="none", **one, **k
        ),
        lambda r: (
            holds(had)(r)
            and r.statistic
            in {
                pt.estimate(
                    fair, "bernoulli(?)", column="had", missing="none", **one, rng=np.random.default_rng(seed)
                ).statistic
                for seed in range(20)
            }
        ),
    )
    pious = fair[fair["religious"] == 4]
    yield Problem(
        "by group",
        f"rates {np.round(fair.groupby('religious')['had'].mean().to_numpy(), 2)}",
        lambda **k: pt.estimate(fair, "bernoulli(?)", column="had", by="religious", **one, **k),
        words=("each group", "noisy table"),
        way_out=lambda **k: pt.estimate(pious, "bernoulli(?)", column="had", **one, **k),
        way_agrees=holds(pious["had"].mean()),
    )
    gain = sea["FEB"] - sea["JAN"]
    yield Problem(
        "paired",
        f"warmer in February in {(gain > 0).mean():.2f} of years, p {stats.wilcoxon(gain).pvalue:.0e}",
        lambda **k: pt.compare_groups(sea["JAN"], sea["FEB"], paired=True, **one, **k),
        words=("two columns", "difference first"),
        way_out=lambda **k: pt.estimate(gain, "share_above(0, ?)", **one, **k),
        way_agrees=lambda r: r.interval[0] > 0.5 and holds((gain >= 0).mean())(r),
    )
    alive = (heart["survival"] >= 30).mean()
    yield Problem(
        "censored",
        f"{1 - heart['censors'].mean():.2f} of the times are censored; {alive:.2f} last 30 days",
        lambda **k: pt.estimate(
            heart, "exponential(?)", column="survival", event="censors", between=(10, 5000), **one, **k
        ),
        words=("censored times", "share_above"),
        way_out=lambda **k: pt.estimate(heart, "share_above(30, ?)", column="survival", **one, **k),
        way_agrees=holds(alive),
    )


def least_squares_changes(values: np.ndarray) -> tuple[int, int]:
    """The two places that part a series into three levels with the least sum of squares."""
    size = len(values)
    sums, squares = (np.concatenate([[0.0], np.cumsum(one)]) for one in (values, values**2))

    def cost(i: int, j: int) -> float:
        return float(squares[j] - squares[i] - (sums[j] - sums[i]) ** 2 / (j - i))

    pairs = ((i, j) for i in range(8, size - 16) for j in range(i + 8, size - 8))
    return min(pairs, key=lambda p: cost(0, p[0]) + cost(p[0], p[1]) + cost(p[1], size))


def weeks(records: Any) -> bool:
    """Whether fifty-two equal parts of a budget are paid out, and a fifty-third is not."""
    with tempfile.TemporaryDirectory() as folder, pt.Ledger(Path(folder) / "ledger.db") as ledger:
        ledger.grant("people", privacy="zcdp(0.5)")
        for week in range(53):
            try:
                pt.estimate(
                    records,
                    "bernoulli(?)",
                    privacy=pt.zcdp(0.5 / 52),
                    ledger=ledger,
                    dataset="people",
                    request=f"week {week}",
                )
            except pt.errors.BudgetExceeded:
                return week == 52
    return False


NUMBERS, RATES = ("normal(0, 1)", "normal(1, 1)"), ("bernoulli(0.3)", "bernoulli(0.6)")
LABELS = ("categorical(Yes=0.5, No=0.5)", "categorical(Yes=0.8, No=0.2)")
ROWS = 442
BEGUN = ("monitor", "sequential")
"""Questions that are paid for when they begin, before any record arrives."""


def wrong_columns() -> dict[str, pd.Series]:
    """Blood pressure in units of its spread, which is right for questions about numbers, and six wrong columns."""
    from sklearn.datasets import load_diabetes

    body = load_diabetes(as_frame=True, scaled=False).frame
    pressure = (body["bp"] - body["bp"].mean()) / body["bp"].std()
    kept = np.random.default_rng(5).random(len(body)) < 0.2
    return {
        "text": pd.Series(np.where(body["sex"] == 2, "Yes", "No"), dtype=object),
        "category": pd.Series(pd.Categorical(np.where(body["sex"] == 2, "high", "low"))),
        "mostly missing": pressure.where(kept),
        "constant": pd.Series(np.full(len(body), 0.5)),
        "dates": pd.Series(pd.date_range("2020-01-01", periods=len(body))),
        "coded 1, 2": body["sex"].astype(int),
        "sentinels": pressure.where(np.arange(len(body)) % 5 > 0, 9999.0),
        "numbers as text": pressure.map("{:.4f}".format).astype(object),
        "numbers": pressure,
    }


def faces(folder: Path) -> dict[str, Callable[[pd.DataFrame], Any]]:
    """How a table is handed over, by the kind of source."""
    import duckdb
    import polars as pl

    def csv(data: pd.DataFrame) -> str:
        data.to_csv(folder / "data.csv", index=False)
        return str(folder / "data.csv")

    def parquet(data: pd.DataFrame) -> str:
        data.to_parquet(folder / "data.parquet")
        return str(folder / "data.parquet")

    def relation(data: pd.DataFrame) -> Any:
        (folder / "data.db").unlink(missing_ok=True)
        with duckdb.connect(str(folder / "data.db")) as connection:
            connection.execute(f"create table data as select * from '{parquet(data)}'")
        return f"duckdb:///{folder / 'data.db'}::data"

    return {
        "pandas": lambda data: data,
        "csv": csv,
        "parquet": parquet,
        "polars": pl.from_pandas,
        "duckdb": relation,
        "arrow": lambda data: pl.from_pandas(data).to_arrow(),
    }


def table_of(column: pd.Series) -> pd.DataFrame:
    """The column ``x`` beside two arms and an outcome ``y`` that has nothing to do with it."""
    place = np.arange(len(column))
    return pd.DataFrame({"x": column, "arm": place % 2, "y": (7 * place % 10 < 3).astype(int)})


def column_questions() -> dict[str, tuple[Callable[..., Any], Callable[[pd.Series, Any], bool]]]:
    """Every public call that reads a column ``x``, and whether its answer is right about what the column holds."""
    one: dict[str, Any] = {"column": "x", "epsilon": 1}

    def stream(kind: Callable[..., Any], data: Any, **k: Any) -> Any:
        begun = kind(*NUMBERS, epsilon=1, **k)
        begun.update_many(data, column="x")
        return begun

    def null(_: pd.Series, release: Any) -> bool:
        return release.decision == "null" and getattr(release, "fits", None) in (None, "null", "both")

    def never(*_: Any) -> bool:
        return False

    def numeric(column: pd.Series) -> bool:
        return column.dtype.kind in "if"

    def mean(column: pd.Series, release: Any) -> bool:
        return numeric(column) and holds(column.mean())(release) and np.diff(release.interval)[0] < 3

    def share(column: pd.Series, release: Any) -> bool:
        return numeric(column) and holds((column.dropna() >= 0).mean())(release) and release.width < 0.8

    def label(column: pd.Series, release: Any) -> bool:
        return holds((column == "Yes").mean())(release)

    def apart(count: Callable[[pd.Series], pd.Series]) -> Callable[[pd.Series, Any], bool]:
        def agrees(column: pd.Series, release: Any) -> bool:
            rates = count(column).groupby(np.arange(len(column)) % 2).mean()
            return release.decision == "null" and holds(rates[1] - rates[0])(release)

        return agrees

    def still(column: pd.Series, release: Any) -> bool:
        return column.nunique() > 9 and release.changed is False and release.fits is not False

    def quiet(column: pd.Series, begun: Any) -> bool:
        return column.nunique() > 9 and begun.result is None

    def odd(column: pd.Series, found: Any) -> bool:
        texts = column.map(lambda one: isinstance(one, str))  # in memory a text is no number, whatever it spells
        numbers = column.where(~texts)
        return found.odd == pd.to_numeric(numbers, errors="coerce").isna().sum()

    return {
        "decide, normal": (lambda d, **k: pt.decide(d, *NUMBERS, **one, **k), null),
        "decide, rates": (lambda d, **k: pt.decide(d, *RATES, **one, **k), never),
        "decide, labels": (lambda d, **k: pt.decide(d, *LABELS, **one, **k), null),
        "decide, share above": (
            lambda d, **k: pt.decide(d, "share_above(0, 0.5)", "share_above(0, 0.8)", **one, **k),
            null,
        ),
        "decide, sets": (
            lambda d, **k: pt.decide(d, "normal(mean<=0, sd=1)", "normal(mean>=1, sd=1)", **one, **k),
            lambda c, r: null(c, r) or (r.decision == "alternative" and numeric(c) and c.mean() >= 1),
        ),
        "decide, odd_epsilon": (lambda d, **k: pt.decide(d, *NUMBERS, odd_epsilon=0.5, **one, **k), null),
        "estimate, odd_epsilon": (
            lambda d, **k: pt.estimate(d, "normal(mean=?, sd=1)", between=(-3, 3), odd_epsilon=0.5, **one, **k),
            mean,
        ),
        "decision alone": (lambda d, **k: pt.decide(d, *NUMBERS, release="decision", **one, **k), null),
        "design().run": (
            lambda d, **k: pt.design(*NUMBERS, epsilon=1, n=ROWS).run(d, column="x", **k),
            null,
        ),
        "optimum().test.run": (
            lambda d, **k: pt.optimum(*RATES, epsilon=1, n=ROWS).test.run(d, column="x", **k),
            never,
        ),
        "goodness_of_fit, normal": (
            lambda d, **k: pt.goodness_of_fit(d, "normal(0, 1)", distance=0.3, **one, **k),
            lambda c, r: r.decision == ("null" if c.nunique() > 9 else "alternative"),
        ),
        "goodness_of_fit, labels": (
            lambda d, **k: pt.goodness_of_fit(d, LABELS[0], distance=0.3, **one, **k),
            lambda c, r: r.decision == ("null" if set(c) == {"Yes", "No"} else "alternative"),
        ),
        "estimate, normal": (
            lambda d, **k: pt.estimate(d, "normal(mean=?, sd=1)", between=(-3, 3), **one, **k),
            mean,
        ),
        "estimate, bernoulli": (lambda d, **k: pt.estimate(d, "bernoulli(?)", **one, **k), never),
        "estimate, success=": (
            lambda d, **k: pt.estimate(d, "bernoulli(?)", success="Yes", **one, **k),
            label,
        ),
        "estimate, label": (lambda d, **k: pt.estimate(d, "categorical(Yes=?)", **one, **k), label),
        "estimate, share above": (lambda d, **k: pt.estimate(d, "share_above(0, ?)", **one, **k), share),
        "estimate, poisson": (
            lambda d, **k: pt.estimate(d, "poisson(?)", between=(0.1, 9), **one, **k),
            never,
        ),
        "tabulate, mean": (lambda d, **k: pt.tabulate(d, between=(-3, 3), cells=24, **one, **k).mean(), mean),
        "tabulate, median": (
            lambda d, **k: pt.tabulate(d, between=(-3, 3), cells=24, **one, **k).median(),
            lambda c, r: numeric(c) and holds(c.median())(r) and r.interval[1] - r.interval[0] < 2,
        ),
        "tabulate, normal": (
            lambda d, **k: pt.tabulate(d, between=(-3, 3), cells=8, **one, **k).estimate(
                "normal(mean=?, sd=?)", sd_between=(0.3, 3)
            ),
            lambda c, r: bool(
                numeric(c)
                and c.nunique() > 9
                and r.fits
                and all(low <= x <= high for x, (low, high) in zip((c.mean(), c.std()), r.intervals, strict=True))
            ),
        ),
        "tabulate, test": (lambda d, **k: pt.tabulate(d, between=(-3, 3), cells=24, **one, **k).test(*NUMBERS), null),
        "tabulate, labels": (
            lambda d, **k: pt.tabulate(d, labels=["Yes", "No"], **one, **k).share(label="Yes"),
            label,
        ),
        "compare_groups": (
            lambda d, **k: pt.compare_groups(d, group="arm", **one, **k),
            never,
        ),
        "compare_groups, above=": (
            lambda d, **k: pt.compare_groups(d, group="arm", above=0, **one, **k),
            apart(lambda c: pd.to_numeric(c, errors="coerce") >= 0),
        ),
        "compare_groups, success=": (
            lambda d, **k: pt.compare_groups(d, group="arm", success="Yes", **one, **k),
            apart(lambda c: c == "Yes"),
        ),
        "compare_groups, group=x": (
            lambda d, **k: pt.compare_groups(d, group="x", column="y", epsilon=1, **k),
            lambda c, r: set(r.names) == set(c) and r.decision == "null",
        ),
        "detect_change": (lambda d, **k: pt.detect_change(d, *NUMBERS, **one, **k), still),
        "detect_change, distance=": (
            lambda d, **k: pt.detect_change(d, "normal(0, 1)", distance=0.5, **one, **k),
            lambda c, r: not r.changed if c.nunique() > 9 else r.changed and r.index == 0,
        ),
        "detect_change, order=x": (
            lambda d, **k: pt.detect_change(d, *RATES, column="y", order="x", epsilon=1, **k),
            lambda c, r: c.is_unique and not r.changed,
        ),
        "changes=several": (
            lambda d, **k: pt.detect_change(d, *NUMBERS, column="x", epsilon=4, **k, changes="several"),
            still,
        ),
        "unit=x": (
            lambda d, **k: pt.estimate(d, "bernoulli(?)", column="y", unit="x", epsilon=1, **k),
            lambda _, r: holds(0.3)(r) and r.width < 0.8,
        ),
        "monitor": (
            lambda d, **k: stream(pt.Monitor, d, mean_time_between_false_alarms=10**5, **k),
            quiet,
        ),
        "sequential": (
            lambda d, **k: stream(pt.Sequential, d, **k),
            lambda c, begun: c.nunique() > 9 and begun.result is not None and begun.result.decision == "null",
        ),
        "check": (lambda d, **_: pt.check(d, *NUMBERS, column="x"), odd),
        "count_records": (lambda d, **_: pt.data.count_records(d, column="x"), lambda c, n: n == len(c)),
    }


SAYS = (
    "TOO FEW RECORDS",
    "and do not count: pt.check tells what they are",
    "privatest.check counts them",
    "Nothing that was released tells",
    "Counted were",
    "MORE THAN HALF",
    "ALL of the records may be",
    "RECORDS LIE BEYOND",
    "AT AN END OF ITS RANGE",
    "TOO FEW RECORDS for this budget",
)


def says(release: Any) -> bool:
    """Whether an answer says that something may be wrong, or what was counted instead."""
    told = f"{getattr(release, 'sentence', '')} {release}"
    return doubts(release) or any(words in told for words in SAYS)


def names_the_check(release: Any, data: Any) -> bool:
    """Whether an answer names a goodness-of-fit question that, when asked, says that the model does not fit."""
    named = re.search(r"goodness_of_fit of '([^']+)' tells", str(getattr(release, "sentence", "")))
    if named is None:
        return False
    rng = np.random.default_rng(0)
    return pt.goodness_of_fit(data, named[1], column="x", distance=0.2, epsilon=1, rng=rng).decision == "alternative"


def column_verdict(
    name: str, column: pd.Series, runs: int, hand_over: Callable[[pd.DataFrame], Any] = lambda data: data
) -> str:
    """What becomes of one question about one column."""
    ask, agrees = column_questions()[name]
    data = hand_over(table_of(column))
    if isinstance(data, str) and data.endswith(".csv"):
        column = pd.read_csv(data)["x"]  # numbers that were texts are numbers in such a file
    unit = "x" if name == "unit=x" else None
    with tempfile.TemporaryDirectory() as folder, pt.Ledger(Path(folder) / "ledger.db") as ledger:
        ledger.grant("people", epsilon=100, unit=unit)
        try:
            ask(data, ledger=ledger, dataset="people", request="first")
        except pt.errors.PrivatestError:
            return "refused" if ledger.spent("people") == (name in BEGUN) else "silent"
    answers = [ask(data, rng=np.random.default_rng(seed)) for seed in range(runs)]
    right = [agrees(column, answer) for answer in answers]
    if sum(right) >= SHARE * runs:
        return "right"
    said = (one or says(answer) or names_the_check(answer, data) for one, answer in zip(right, answers, strict=True))
    return "said" if all(said) else "silent"


def columns(runs: int, only: str, face: str) -> int:
    """Print a table of wrong columns for each kind of source; the number of answers that are silently wrong."""
    found = wrong_columns()
    silent = 0
    with tempfile.TemporaryDirectory() as folder:
        for source, hand_over in faces(Path(folder)).items():
            if face not in source:
                continue
            print(f"{source:26}" + "".join(f"{name:16}" for name in found))
            for name in column_questions():
                if only not in name:
                    continue
                row = [column_verdict(name, column, runs, hand_over) for column in found.values()]
                silent += row.count("silent")
                print(f"{name:26}" + "".join(f"{one:16}" for one in row), flush=True)
    print(f"silent {silent}")
    return silent


def main() -> int:
    """Print the table; the number of wrong verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?", choices=("problems", "columns"), default="problems")
    parser.add_argument("--runs", type=int, default=20, help="seeded runs of each problem")
    parser.add_argument("--only", default="", help="problems, or questions, whose names contain this")
    parser.add_argument("--face", default="", help="kinds of source whose names contain this")
    given = parser.parse_args()
    if given.table == "columns":
        return columns(min(given.runs, 5), given.only, given.face)
    counted: dict[str, int] = {"well": 0, "awkward": 0, "refused": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "body.csv").write_text("bp\n" + "95\n" * 3)  # only its name is needed: the question is refused
        for number, problem in enumerate(problems(folder), 1):
            if given.only not in problem.name:
                continue
            found, why = verdict(problem, 2 if "command" in problem.name and not problem.way_out else given.runs)
            counted[found] += 1
            print(f"{number:2} {problem.name:34} {found:8} without privacy: {problem.truth}\n   {why}", flush=True)
    print(", ".join(f"{found} {count}" for found, count in counted.items()))
    return counted["wrong"]


if __name__ == "__main__":
    sys.exit(main())
