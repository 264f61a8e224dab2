"""What every design and every release have in common.

What leaves the data: a frozen handful of plain values that say how private they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.decision.run import Design
from privatest.errors import InvalidDocument, InvalidInput

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
DATA = [0, 0, 1, 0, 0] * 8
MADE: dict[str, Callable[[], Any]] = {
    "test": lambda: pt.design(*COINS, epsilon=1, n=40),
    "optimum": lambda: pt.optimum(*COINS, epsilon=1, n=40).test,
    "fit": lambda: pt.design_fit([0.8, 0.2], distance=0.3, epsilon=1, n=40),
    "blocks": lambda: pt.design_change(*COINS, epsilon=2, false_alarm=0.1),
    "direct": lambda: pt.design_change(*COINS, epsilon=2, method="direct", assume_change=True),
    "paper": lambda: pt.design_change(*COINS, epsilon=2, method="paper", false_alarm=0.1),
    "distance": lambda: pt.design_change([0.8, 0.2], distance=0.5, epsilon=4),
}


@cache
def made(kind: str) -> Any:
    return MADE[kind]()


def rng(seed: int = 5) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", MADE)
def test_a_design_that_was_saved_asks_the_same(kind: str) -> None:
    design = made(kind)
    assert isinstance(design, Design)
    again = type(design).from_json(design.to_json())
    assert again == design
    assert hash(again) == hash(design)
    assert again.question() == design.question()
    assert again.price == design.price
    for seed in range(5):
        assert again.run(DATA, rng=rng(seed)) == design.run(DATA, rng=rng(seed))


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("word", ["unit", "order"])
def test_what_means_nothing_is_refused_by_name(kind: str, word: str) -> None:
    refused = word == "order" and not isinstance(made(kind), pt.results.ChangePlan)
    frame = {"x": np.array(DATA), "id": np.arange(len(DATA))}
    pandas = pytest.importorskip("pandas")
    if not refused:
        assert made(kind).run(pandas.DataFrame(frame), column="x", **{word: "id"}).private
        return
    with pytest.raises(InvalidInput, match=f"{word}='id' cannot be given"):
        made(kind).run(pandas.DataFrame(frame), column="x", **{word: "id"})


@pytest.mark.parametrize("kind", MADE)
def test_a_document_of_another_kind_or_version_is_refused_by_its_format(kind: str) -> None:
    document = made(kind).to_dict()
    for other in ("privatest/other/1", document["format"][:-1] + "99", None):
        with pytest.raises(InvalidDocument, match=r"this version can read: format .*expected 'privatest/"):
            type(made(kind)).from_dict({**document, "format": other})
    with pytest.raises(InvalidDocument, match="version of privatest that wrote it"):
        type(made(kind)).from_dict({**document, "format": document["format"][:-1] + "99"})
    for name in document:
        if name not in ("budget", "format"):
            with pytest.raises(InvalidDocument):
                type(made(kind)).from_dict({key: value for key, value in document.items() if key != name})


def test_a_decision_and_its_pvalue_are_never_told_apart_without_a_word() -> None:
    """A small p-value beside "null", or a decision against what alone fits: level and reason stand beside it."""
    test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=60)
    rows = {fact.name: fact for fact in replace(test.release(str(test.cutoff + 1)), design=test).facts()}
    assert rows["decision"].value == "null"
    assert rows["pvalue"].value < 0.05
    assert f"at level {test.alpha:.4g}" in rows["pvalue"].meaning
    agreed = {fact.name: fact for fact in replace(test.release(str(test.cutoff + 10**5)), design=test).facts()}
    assert "level" not in agreed["pvalue"].meaning
    lax = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=60, alpha=0.05)
    found = replace(lax.release(str(lax.cutoff - 1)), design=lax)
    assert (found.decision, found.fits) == ("alternative", "null")
    words = next(fact.meaning for fact in found.facts() if fact.name == "decision")
    assert "at level 0.05; but the data are consistent with the null alone" in words
    assert "not the decision as evidence for Q" in found.sentence


def test_a_decision_alone_says_that_nothing_tells_whether_anything_fits() -> None:
    test = pt.optimum("bernoulli(0.3)", "bernoulli(0.6)", epsilon=1, n=60).test
    assert test is not None
    found = test.run([0.5] * 60)
    assert found.fits is None
    assert found.sentence.endswith("Nothing that was released tells whether the data fit P or Q at all.")


@pytest.mark.parametrize("advantage", [0.04, 0.06])
def test_a_test_no_better_than_a_coin_is_refused_before_it_is_paid_for(advantage: float, tmp_path: Path) -> None:
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1)
    shift = {0.04: 0.01, 0.06: 0.02}[advantage]
    made = pt.design("normal(0, 1)", f"normal({shift}, 1)", epsilon=0.5, n=100)
    paying: dict[str, Any] = {"ledger": ledger, "dataset": "d", "request": "r"}
    weak = made.advantage < 0.05
    assert weak == (advantage < 0.05)
    assert "hardly better than a coin" in str(made)
    if weak:
        with pytest.raises(pt.errors.Infeasible, match="coin that ignores the data"):
            pt.decide([0.0] * 100, "normal(0, 1)", f"normal({shift}, 1)", epsilon=0.5, **paying)
        assert ledger.spent("d") == 0
    else:
        found = pt.decide([0.0] * 100, "normal(0, 1)", f"normal({shift}, 1)", epsilon=0.5, **paying)
        assert "hardly better than a coin" in str(found)
