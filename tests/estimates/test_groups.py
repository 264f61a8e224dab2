"""Two groups, end to end: sources, outcomes, messages, documents, ledger."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import privatest as pt
from privatest.errors import InvalidData, InvalidInput
from privatest.privacy import Uniform, canonical_noise
from privatest.privacy.decision_chain import decision_noise


def table(n: tuple[int, int] = (50, 80), rates: tuple[float, float] = (0.2, 0.7)) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    arm = np.repeat(["a", "b"], n)
    y = (rng.random(sum(n)) < np.repeat(rates, n)).astype(int)
    return pd.DataFrame({"arm": arm, "y": y, "who": np.arange(sum(n)), "label": np.where(y == 1, "yes", "no")})


def seeded() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("missing", ["none", "count"])
def test_all_ways_to_give_two_groups_say_the_same(tmp_path: Path, missing: str) -> None:
    data = table()
    one, other = data.y[:50], data.y[50:]
    expected = pt.compare_groups(one, other, epsilon=1, missing=missing, rng=seeded())
    assert expected.decision == "alternative"
    assert expected.interval[0] < 0.5 < expected.interval[1]
    assert (expected.n, expected.simulated) == ((50, 80), True)
    data.to_csv(tmp_path / "d.csv", index=False)
    data.to_parquet(tmp_path / "d.parquet")
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    sources = {
        "pandas": data,
        "polars": polars.from_pandas(data),
        "arrow": arrow.Table.from_pandas(data),
        "csv": str(tmp_path / "d.csv"),
        "parquet": str(tmp_path / "d.parquet"),
        "shuffled": data.sample(frac=1, random_state=1),
    }
    for name, source in sources.items():
        found = pt.compare_groups(source, group="arm", column="y", epsilon=1, missing=missing, rng=seeded())
        assert (found.pvalue, found.difference, found.names) == (expected.pvalue, expected.difference, ("a", "b")), name
    turned = pt.compare_groups(data, group="arm", control_name="b", column="y", epsilon=1, rng=seeded())
    assert turned.difference < 0
    assert turned.names == ("b", "a")


def test_nobody_counts_in_both_groups() -> None:
    """Found in every kind of table; people with several rows in one group are cut to what the noise hides."""
    data = table((20, 30))
    data["who"] = np.arange(50) // 2  # two rows each, always in one group
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    ibis = pytest.importorskip("ibis")
    kinds: list[Any] = [
        lambda d: d,
        polars.from_pandas,
        arrow.Table.from_pandas,
        lambda d: ibis.memtable(arrow.Table.from_pandas(d)),
    ]
    for kind in kinds:
        words = {"group": "arm", "unit": "who", "column": "y", "epsilon": 1}
        assert pt.compare_groups(kind(data), **words, rng=seeded()).n == (10, 15)
        with pytest.raises(InvalidData, match="both groups"):
            pt.compare_groups(kind(data.assign(who=data.who.replace(20, 3))), **words)


def test_what_counts_as_a_success() -> None:
    data = table()
    words = {"group": "arm", "epsilon": 1, "missing": "none"}
    plain = pt.compare_groups(data, column="y", **words, rng=seeded())
    label = pt.compare_groups(data, column="label", success="yes", **words, rng=seeded())
    above = pt.compare_groups(data.assign(y=data.y * 4.0), column="y", above=2.5, **words, rng=seeded())
    assert plain.rates == label.rates == above.rates
    floats = data.assign(y=data.y.astype(float).replace(1.0, np.nan))
    odd = pt.compare_groups(floats, column="y", success=1, **words, rng=seeded())
    assert max(map(abs, odd.rates)) < 0.1  # what is missing is no success


def test_a_column_of_floats_is_refused_by_its_type_where_nothing_says_what_counts(tmp_path: Path) -> None:
    data = table()
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1)
    paying = {"ledger": ledger, "dataset": "d", "request": "r"}
    for y in (data.y.astype(float), data.y.astype("Float64"), data.y * 9.5):
        with pytest.raises(pt.errors.InvalidData, match=r"^Column 'y' is numbers .*Say which do: above=5.*success=1"):
            pt.compare_groups(data.assign(y=y), group="arm", column="y", epsilon=1, **paying)
    assert ledger.spent("d") == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: pt.compare_groups(d, group="label", column="y", epsilon=1, control_name="x"), "control_name='x'"),
        (lambda d: pt.compare_groups(d.assign(arm="a"), group="arm", column="y", epsilon=1), "it has one"),
        (lambda d: pt.compare_groups(d.assign(arm=d.who % 3), group="arm", column="y", epsilon=1), "more than two"),
        (
            lambda d: pt.compare_groups(d, group="nope", column="y", epsilon=1),
            "No column 'nope' in the data",
        ),
        (lambda d: pt.compare_groups(d.y, epsilon=1), "give a control and a treatment"),
        (lambda d: pt.compare_groups(d, d, group="arm", column="y", epsilon=1), "together with two sources"),
        (lambda d: pt.compare_groups(d, d, unit="who", column="y", epsilon=1), "needs one table and group="),
        (lambda d: pt.compare_groups(d.assign(who=1), group="arm", unit="who", column="y", epsilon=1), "both groups"),
        (
            lambda d: pt.compare_groups(d, group="arm", unit="nobody", column="y", epsilon=1),
            "No column 'nobody'",
        ),
        (lambda _: pt.compare_groups([], [1], epsilon=1), "has no records"),
        (lambda _: pt.compare_groups([1], [1], epsilon=1, above=1, success="a"), "both given"),
        (lambda _: pt.compare_groups([1], [1], epsilon=1, outcome="normal(?, 1)"), "compared by shares"),
        (lambda _: pt.compare_groups([1], [1], epsilon=1, outcome="nosuch(?)"), "no distribution is called 'nosuch'"),
        (
            lambda _: pt.compare_groups([1], [1], epsilon=1e-7, missing="none"),
            "epsilon=1e-07 needs noise of about 1.41e.07 records",
        ),
        (lambda _: pt.design_groups(n=(5, 5), epsilon=1).power((0.3,)), "rates=<tuple> must be two numbers"),  # type: ignore[arg-type]
        (lambda _: pt.design_groups(n=(5, 5), epsilon=1).power(0.3), "rates=0.3 must be two numbers"),  # type: ignore[arg-type]
        (
            lambda _: pt.results.compare_noised((1, 2, "laplace(1e7)"), (1, 2, "laplace(1)")),
            "more than counts are compared",
        ),
        (
            lambda _: pt.results.compare_noised((1e300, 2, "laplace(1)"), (1, 2, "laplace(1)")),
            "the total 1e.300 must be at most",
        ),
        (lambda _: pt.results.compare_noised((1, 2, "laplace(1)"), (1, 2, "laplace(1)"), alpha=1e-5), "too extreme"),
        (lambda _: pt.design_groups(n=(5, 0), epsilon=1), "n=0"),
        (lambda _: pt.design_groups(n=(5, 5, 5), epsilon=1), "two numbers"),  # type: ignore[arg-type]
        (lambda _: pt.design_groups(n=(5, 5), epsilon=1, alpha=0.0001), "too extreme"),
        (lambda _: pt.design_groups(n=(5, 5), epsilon=1).sample_size(rate=0.3, lift=0.9), r"rate \+ lift"),
        (lambda _: pt.design_groups(n=(5, 5), epsilon=1).sample_size(rate=0.3, lift=0), "lift=0"),
        (lambda _: pt.results.compare_noised((1, 2, "laplace(0)"), (1, 2, "laplace(1)")), "scale greater than 0"),
        (lambda _: pt.results.compare_noised((1, 2, "cauchy(1)"), (1, 2, "laplace(1)")), "must be one of laplace"),
        (lambda _: pt.results.compare_noised((1.5, 2, "discrete_laplace(1)"), (1, 2, "laplace(1)")), "must be whole"),
        (lambda _: pt.results.compare_noised((1, 2), (1, 2, "laplace(1)")), "control="),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_said(call: Any, words: str) -> None:
    with pytest.raises((InvalidInput, InvalidData, pt.errors.InvalidDistribution), match=words):
        call(table((9, 9)))


def test_a_sample_size_has_the_power() -> None:
    design = pt.design_groups(n=(100, 100), epsilon=1)
    n = design.sample_size(rate=0.2, lift=0.5, beta=0.2)
    assert pt.design_groups(n=(n, n), epsilon=1).power((0.2, 0.7)) >= 0.8
    assert pt.design_groups(n=(n - 2, n - 2), epsilon=1).power((0.2, 0.7)) < 0.8
    deviations = float(stats.norm.isf(0.025) + stats.norm.isf(0.2))
    plain = (0.2 * 0.8 + 0.7 * 0.3) * (deviations / 0.5) ** 2
    assert plain < n < 2 * plain


def test_counts_noised_elsewhere() -> None:
    """The three noises at one variance say nearly the same; a large scale says less, a tiny one what no noise says."""
    sizes = {"laplace": 2 / 2**0.5, "gaussian": 2.0, "discrete_laplace": 1.357}
    found = [
        pt.results.compare_noised((60, 200, f"{kind}({size})"), (90, 200, f"{kind}({size})")).pvalue
        for kind, size in sizes.items()
    ]
    assert max(found) / min(found) < 1.15
    tiny = pt.results.compare_noised((60, 200, "discrete_laplace(0.01)"), (90, 200, "discrete_laplace(0.01)"))
    plain = stats.barnard_exact([[60, 90], [140, 110]]).pvalue
    assert tiny.pvalue == pytest.approx(plain + 1e-4, rel=0.25)
    assert pt.results.compare_noised((60, 200, "laplace(30)"), (90, 200, "laplace(30)")).decision == "null"
    assert tiny.epsilon == 0
    assert not tiny.simulated


@pytest.mark.parametrize("text", ["approx(0.5, 0.05)", "tv(0.2)", "gdp(1)", "zcdp(0.5)", "renyi(2, 0.5)", "kl(0.3)"])
def test_every_notion(text: str) -> None:
    """A p-value by enumeration of both counts and both noises, the size, and what leaves."""
    design = pt.design_groups(n=(14, 10), privacy=text)
    assert pt.results.GroupsDesign.from_json(design.to_json()) == design
    assert max(design.power((rate, rate)) for rate in (0.05, 0.3, 0.5, 0.9)) <= design.alpha
    fine, counts = design.fine, design.counts
    noisy = 3 * fine, 9 * fine + 1
    seen, reach = abs(counts.statistic(noisy)), int(design.noise.reach(30)) + 1
    noise = np.arange(-reach, reach + 1)
    masses = design.noise.pmf(noise)
    for rate in (0.3, 0.5):
        laws = []
        for n in design.n:
            law = np.zeros(n * fine + len(noise))
            for count, mass in enumerate(stats.binom.pmf(np.arange(n + 1), n, rate).tolist()):
                law[count * fine : count * fine + len(noise)] += mass * masses
            laws.append(law)
        values = [np.arange(len(law)) - reach for law in laws]
        found = np.abs(counts.statistics(*(side.ravel() for side in np.meshgrid(*values, indexing="ij"))))
        tail = float(np.multiply.outer(*laws).ravel()[found >= seen * (1 - 1e-12)].sum())
        assert tail <= design.release(noisy).pvalue
    release = design.run([0, 1] * 7, [1] * 10)
    assert release.private
    assert release.privacy == pt.notions.parse(text).text
    assert design.price == pt.notions.parse(text)
    half = canonical_noise(design.privacy, max(fine // 2, 1), whole=True)
    with pytest.raises(InvalidInput, match="Use more noise"):
        replace(design, noise=half)
    with pytest.raises(InvalidInput, match="whole counts"):
        replace(
            design, noise=Uniform(2 * fine * 1000) if text == "tv(0.2)" else decision_noise(design.privacy, 2 * fine)
        )


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_rows_whose_group_is_no_number_belong_to_neither(kind: str) -> None:
    columns = {"v": [0, 1, 1, 1] * 25, "arm": [0.0, 1.0, float("nan"), None] * 25}
    source: Any = pd.DataFrame(columns)
    if kind == "polars":
        source = pytest.importorskip("polars").DataFrame(columns)
    if kind == "arrow":
        source = pytest.importorskip("pyarrow").table(columns)
    found = pt.compare_groups(source, group="arm", epsilon=5)  # the one other column holds the records
    assert (found.n, found.names) == ((25, 25), ("0", "1"))
    if kind == "polars":
        with pytest.raises(InvalidData, match="LazyFrame, which holds no records yet"):
            pt.compare_groups(source.lazy(), group="arm", column="v", epsilon=1)


def test_totals_noised_elsewhere_are_as_private_as_they_were() -> None:
    told = str(pt.results.compare_noised((100, 300, "laplace(1)"), (150, 300, "laplace(1)")))
    assert "as private as the noised totals are" in told
    assert "0-differentially private" not in told
    for odd in (np.array(0.5), np.array("x"), None, "ab", {1}):
        with pytest.raises(InvalidInput, match=r"n=.* two numbers"):
            pt.design_groups(n=odd, epsilon=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("draw", [(160, 240, "400", "390"), (0, 500, "430.5", "500"), (150, 150, "300", "300")])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_an_answer_about_those_present_pays_for_a_miscounted_number_of_them(draw: Any, alternative: str) -> None:
    """It is the answer for as many records as were summed, with the errors that a wrong number of them leaves."""
    design = pt.design_groups(n=(450, 500), epsilon=1, missing="count", alternative=alternative)
    draw = [one * design.fine if isinstance(one, int) else one for one in draw]
    assert design.count_noise is not None
    summed = []
    for noisy in draw[2:]:  # more are summed than present with probability 1e-4 for each group, so 2e-4 for both
        away = next(k for k in range(1000) if float(design.count_noise.sf(design.count_noise.offset + k)) <= 1e-4)
        summed.append(math.floor(Fraction(noisy) - away))
    both, words = 2e-4, {"count_noise": None, "missing": "none"}
    plain = replace(design, n=tuple(summed), confidence=design.confidence + both, **words).release(draw[:2])
    found = design.release(draw)
    assert found.interval == pytest.approx(plain.interval, abs=1e-9)
    assert design.interval(draw, 0.9) == pytest.approx(
        replace(design, n=tuple(summed), **words).interval(draw[:2], 0.9 + both)
    )
    assert found.pvalue == pytest.approx(min(plain.pvalue + both, 1))
    for alpha in (found.pvalue - both / 2, min(found.pvalue + both / 2, 0.999)):
        if alpha > 4e-4:
            assert replace(design, alpha=alpha).release(draw).decision == (
                "alternative" if alpha > found.pvalue else "null"
            )
