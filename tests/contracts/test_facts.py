"""What is told of a design, a release or a result comes from its facts, wherever it is shown; and nothing raw is told.

A fact that is planted in ``facts()`` must show up in print, in notebooks, in JSON, on the command line, in the report
and in the studio. A presenter that makes a list of its own is shown to be found.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import privatest as pt
from privatest import cli, report
from privatest.cli import output
from privatest.decision.run import Designed, Outcome
from privatest.facts import Described, Fact, Tabled
from tests.report import pages

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8
PLANTED = Fact("planted_word", 246813.5, "what was planted")
LABEL, TEXT = "planted word", "246814"

DESIGNS: dict[str, Callable[[], Any]] = {
    "test": lambda: pt.design(*COINS, epsilon=1, n=40),
    "hidden n": lambda: pt.design(*COINS, epsilon=1, n=40, neighbours="add-remove"),
    "not private": lambda: pt.design(*COINS, epsilon=1, n=40, test="llr"),
    "optimum": lambda: pt.optimum(*COINS, epsilon=1, n=40).test,
    "fit": lambda: pt.design_fit([0.8, 0.2], distance=0.3, epsilon=1, n=40),
    "blocks": lambda: pt.design_change(*COINS, epsilon=2, false_alarm=0.1),
    "direct": lambda: pt.design_change(*COINS, epsilon=2, method="direct", assume_change=True),
    "distance": lambda: pt.design_change([0.8, 0.2], distance=0.5, epsilon=4),
    "changes": lambda: pt.design_change(*COINS, epsilon=8, n=40, beta=0.3, false_alarm=0.3, changes="several"),
    "estimate": lambda: pt.design_estimate("bernoulli(?)", epsilon=2, n=40),
    "two steps": lambda: pt.design_estimate("normal(mean=?, sd=1)", between=(-1000, 1000), epsilon=20, n=40),
    "several steps": lambda: pt.design_estimate("median", between=(-1, 2), epsilon=20, n=40),
    "groups": lambda: pt.design_groups(n=(40, 40), epsilon=2),
    "table": lambda: pt.design_table(n=40, labels=[0, 1], epsilon=2),
    "test by a table": lambda: made("table").power(*COINS),
}


def run(design: Any) -> Any:
    """Once, on the data, and where two groups are asked for on a copy of them, too."""
    return design.run(DATA, list(DATA)) if isinstance(design, pt.results.GroupsDesign) else design.run(DATA)


RESULTS: dict[str, Callable[[], Any]] = {
    **{f"release, {kind}": lambda kind=kind: run(made(kind)) for kind in DESIGNS},
    "share": lambda: made("release, table").share(label=1),
    "family": lambda: made("release, table").estimate("bernoulli(?)", between=(0.01, 0.99)),
    "fit of a table": lambda: made("release, table").fit("bernoulli(0.2)"),
    "release that was read": lambda: pt.results.Release.from_dict(made("test").run(DATA).to_dict()),
    "release with odd records": lambda: made("test").run(DATA, odd_epsilon=0.1),
    "look": lambda: pt.check(DATA, *COINS),
    "monitor": lambda: pt.Monitor(*COINS, epsilon=1),
    "alarm": lambda: pt.results.Alarm(10, 3, 20, epsilon=1),
    "sequential": lambda: pt.Sequential(*COINS, epsilon=1, schedule=(8, 5)),
    "sequential plan": lambda: made("sequential").plan,
    "monitor plan": lambda: made("monitor").plan,
    "verdict": lambda: pt.results.Verdict("null", 20, 0.1, epsilon=1),
    "plan": lambda: pt.plan(*COINS, epsilon=1),
    "best possible": lambda: pt.optimum(*COINS, epsilon=1, n=20),
    "split": lambda: pt.decompose(*COINS, epsilon=0.2),
    "complexity": lambda: pt.sample_complexity(*COINS, epsilon=0.2),
    "verification": lambda: pt.verify_privacy(lambda _: {"yes": 1.0}, domain=(0, 1), n=1, privacy=1),
    "level": lambda: pt.adaptive_level(0.05, n=1000, epsilon=0.01),
}
TOLD = {**DESIGNS, **RESULTS}
TABLES: dict[str, Callable[[], Any]] = {
    "curve": lambda: pt.power_curve(*COINS, epsilon=1, n=[5, 10]),
    "comparison": lambda: pt.compare(*COINS, epsilon=1),
    "notions": lambda: pt.notions.compare(*COINS, privacy="gdp(1)"),
}
REPORTED = {"release, test": "test", "release, optimum": "test", "release, fit": "fit", "release, blocks": "detect"}
REPORTED |= {"release, changes": "detect", "release, estimate": "estimate", "release, groups": "groups"}


@cache
def made(kind: str) -> Any:
    return {**TOLD, **TABLES}[kind]()


def planted(one: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same with one more fact."""
    own = type(one).facts
    monkeypatch.setattr(type(one), "facts", lambda self: [*own(self), PLANTED])
    return one


def in_notebook(one: Any) -> str:
    return pages.read(f"<body>{one._repr_html_()}</body>").text


def deaf(one: Described) -> list[str]:
    """The presenters in which the planted fact is not to be seen."""
    texts = {"str": str(one), "_repr_html_": in_notebook(one)}
    found = [name for name, text in texts.items() if not all(part in text for part in (LABEL, TEXT, PLANTED.meaning))]
    plain = {"values": one.values()}
    if not isinstance(one, Designed):  # whose documents are what it is read from, and no more
        plain["to_dict"] = one.to_dict()  # type: ignore[attr-defined]
    return found + [name for name, values in plain.items() if values.get(PLANTED.name) != PLANTED.value]


def concrete(base: type) -> set[type]:
    found = {one for child in base.__subclasses__() for one in (child, *concrete(child))}
    return {one for one in found if not getattr(one, "__abstractmethods__", None) and one.__module__[:9] == "privatest"}


def test_every_kind_is_looked_at() -> None:
    assert {type(made(kind)) for kind in TOLD} == concrete(Described)  # made first: some are loaded when first used
    assert concrete(Tabled) == {type(made(kind)) for kind in TABLES}


@pytest.mark.parametrize("kind", TOLD)
def test_a_fact_is_told_everywhere(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert deaf(made(kind))  # nothing of it before
    assert deaf(planted(made(kind), monkeypatch)) == []


@pytest.mark.parametrize("kind", REPORTED)
def test_the_report_tells_the_facts_of_result_and_design(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = made(kind)

    def seen() -> int:
        page = report.render(question={"epsilon": 1}, result=result, kind=REPORTED[kind])
        return sum(TEXT in table.text for table in pages.read(page).of("table"))

    monkeypatch.setattr(report.html_page, "_pictures", lambda *_: iter(()))
    assert seen() == 0
    planted(result, monkeypatch)
    assert seen() == 1
    planted(result.design, monkeypatch)
    assert seen() == 2


ASKED = {"fit": ["--null", COINS[0], "--distance", "0.5"], "estimate": ["--family", "bernoulli(?)"]}
ASKED |= {"groups": ["--group", "arm"]}
TOLD_BY = {
    "test": pt.results.Release,
    "detect": pt.results.ChangePoint,
    "fit": pt.results.FitRelease,
    "plan": pt.results.Plan,
}
TOLD_BY |= {"estimate": pt.results.EstimateRelease, "groups": pt.results.GroupsRelease}


@pytest.mark.parametrize("command", TOLD_BY)
def test_the_command_line_tells_the_facts(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x,arm\n" + "0,a\n0,b\n" * 50)
    told: Any = TOLD_BY[command]
    words = [command, *([] if command == "plan" else [str(tmp_path / "a.csv"), "--column", "x"])]
    words += [*ASKED.get(command, ["--null", COINS[0], "--alternative", COINS[1]]), "--epsilon", "1"]
    assert cli.main(words) == 0
    before = capsys.readouterr().out
    assert TEXT not in before
    own = told.facts
    monkeypatch.setattr(told, "facts", lambda self: [*own(self), PLANTED])
    assert cli.main(words) == 0
    after = capsys.readouterr().out
    assert all(part in after for part in (LABEL, TEXT, PLANTED.meaning))
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[PLANTED.name] == PLANTED.value


def test_the_studio_tells_the_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    from privatest.studio import planning_requests, runs

    (tmp_path / "a.csv").write_text("x\n" + "0\n" * 40)
    book = pt.Ledger(tmp_path / "ledger.db", create=True)
    book.grant("d", epsilon=9)
    asked = {"null": COINS[0], "alternative": COINS[1], "epsilon": 1, "neighbours": "replace", "column": "x"}
    paid = {"dataset": "d", "request": "r", "source": {"path": "a.csv"}}
    planted(made("release, test"), monkeypatch)
    planted(made("test"), monkeypatch)
    found = runs.JOBS["run_test"](asked | paid, {"source": str(tmp_path / "a.csv")}, runs.Budgets(book).packed())
    assert list(found["facts"][-1]) == [LABEL, TEXT, PLANTED.meaning]
    assert found["release"][PLANTED.name] == found["design"][PLANTED.name] == PLANTED.value
    drawn = planning_requests.design(null=COINS[0], alternative=COINS[1], epsilon=1, n=40, neighbours="replace")
    assert drawn["design"][PLANTED.name] == PLANTED.value
    assert str(tmp_path) not in json.dumps(found)


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_told_everywhere(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    one = made(kind)
    output.show_table(one.title, one.HEADINGS, one.cells(), left=one.HEADINGS)
    assert one.title in str(one)
    for text in (str(one), in_notebook(one), " ".join(capsys.readouterr().out.split())):
        assert all(word in text for row in one.cells() for cell in row for word in cell.split())
    assert one.ending in str(one)
    assert one.to_dict()


@pytest.mark.parametrize("kind", DESIGNS)
def test_a_design_has_its_shape(kind: str) -> None:
    design = made(kind)
    assert design.privacy.epsilon == design.epsilon
    assert str(design.privacy) == f"pure({design.epsilon:g})"
    assert run(design).title.lower().endswith(f": {design.title.lower()}")
    assert callable(design.plot)
    assert len({name for name, _, _ in design.facts()}) == len(design.facts())


@pytest.mark.parametrize("kind", [*(f"release, {kind}" for kind in DESIGNS), "alarm"])
def test_a_release_has_its_shape(kind: str) -> None:
    pytest.importorskip("matplotlib")
    release = made(kind)
    assert release.private is (kind != "release, not private")
    assert release.replayed is None
    assert json.loads(json.dumps(release.to_dict(), allow_nan=False))
    assert release.sentence
    assert release.plot() is not None


@pytest.mark.parametrize("kind", DESIGNS)
def test_facts_come_from_the_fields_and_the_design_alone(kind: str) -> None:
    """Nothing of the data sticks in the design, and nothing but its fields is in a release."""
    design = DESIGNS[kind]()
    before = design.facts()
    release = run(design)
    assert design.facts() == before
    assert isinstance(release, Outcome)
    assert set(vars(release)) == {one.name for one in dataclasses.fields(release)}  # type: ignore[arg-type]
    read = type(release).from_dict(json.loads(json.dumps(release.to_dict())))
    assert dataclasses.replace(read, design=design).facts() == release.facts()  # type: ignore[type-var]
