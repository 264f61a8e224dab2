"""What is refused for its structure, its type, its number or its ties costs nothing, whatever entrance it came by.

Every question that is asked of data with a ledger, times everything that is wrong with data before anything is drawn:
a refusal, and nothing spent. Sources are of those that declare their types (Arrow, Parquet, DuckDB).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import privatest as pt
from privatest.changepoint.change_plan import ChangePlan
from privatest.errors import InvalidData
from tests.engines.warehouses import WAREHOUSES

COINS = "bernoulli(0.2)", "bernoulli(0.8)"
N = 300
RECORDS = [0.0, 1.0, 0.0] * (N // 3)
WIDE: dict[str, Any] = {"between": (-1000, 1000), "n": N}

DESIGNS: dict[str, Callable[[], Any]] = {
    "test": lambda: pt.design(*COINS, epsilon=1, n=N),
    "add-remove": lambda: pt.design(*COINS, epsilon=1, n=N, neighbours="add-remove"),
    "decision": lambda: pt.design(*COINS, epsilon=1, n=N, release="decision"),
    "optimum": lambda: pt.optimum(*COINS, epsilon=1, n=N).test,
    "fit": lambda: pt.design_fit([0.8, 0.2], distance=0.3, epsilon=1, n=N),
    "estimate": lambda: pt.design_estimate("bernoulli(?)", epsilon=1, n=N),
    "two steps": lambda: pt.design_estimate("normal(mean=?, sd=1)", epsilon=20, **WIDE),
    "median": lambda: pt.design_estimate("median", between=(0, 1), epsilon=1, n=N),
    "table": lambda: pt.design_table(between=(0, 1), epsilon=1, n=N),
    "groups": lambda: pt.design_groups(n=(N // 2, N // 2), epsilon=1),
    "blocks": lambda: pt.design_change(*COINS, epsilon=4, n=N, method="blocks"),
    "direct": lambda: pt.design_change(*COINS, epsilon=4, n=N, method="direct", assume_change=True),
    "paper": lambda: pt.design_change(*COINS, epsilon=4, n=N, method="paper"),
    "given": lambda: pt.design_change(test=pt.design(*COINS, epsilon=4, n=9), n=N),
    "function": lambda: pt.design_change(
        test=pt.block_test(lambda _: "null", n=9, alpha=0.1, beta=0.1, epsilon=4, labels=[0, 1]), n=N
    ),
    "unknown": lambda: pt.design_change([0.8, 0.2], distance=0.5, epsilon=4, n=N),
    "changes": lambda: pt.design_change(*COINS, epsilon=4, n=N, beta=0.3, false_alarm=0.3, changes="several"),
}
CALLS: dict[str, Callable[..., Any]] = {
    "decide()": lambda data, **w: pt.decide(data, *COINS, epsilon=1, n=N, **w),
    "goodness_of_fit()": lambda data, **w: pt.goodness_of_fit(data, [0.8, 0.2], distance=0.3, epsilon=1, **w),
    "estimate()": lambda data, **w: pt.estimate(data, "bernoulli(?)", epsilon=1, **w),
    "detect_change()": lambda data, **w: pt.detect_change(data, *COINS, epsilon=1, **w),
    "detect_change(test=)": lambda data, **w: pt.detect_change(
        data, test=pt.block_test(lambda _: "null", n=9, alpha=0.1, beta=0.1, epsilon=1), **w
    ),
    "detect_change() of several": lambda data, **w: pt.detect_change(
        data, *COINS, epsilon=4, beta=0.3, false_alarm=0.3, **w, changes="several"
    ),
    "compare_groups()": lambda data, **w: pt.compare_groups(data, group="arm", outcome="bernoulli(?)", epsilon=1, **w),
}


@cache
def made(name: str) -> Any:
    return DESIGNS[name]()


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a table of columns x, day, arm and who; and which questions do not mind."""

    columns: dict[str, list[Any]]
    words: dict[str, Any]
    minds: Callable[[str], bool] = lambda _: True


def columns(**other: Any) -> dict[str, list[Any]]:
    return {"x": RECORDS, "day": list(range(N)), "arm": ["a", "b"] * (N // 2), **other}


def in_time(name: str) -> bool:
    """Whether a question looks at the order of records."""
    if name in DESIGNS:
        return isinstance(made(name), ChangePlan)
    return name.startswith("detect")


def in_blocks(name: str) -> bool:
    """Whether it cuts them into blocks; "direct" sorts equal days by their scores, and minds no ties."""
    return in_time(name) and name != "direct"


def counted(name: str) -> bool:
    """Whether the number of records is told beforehand, and public."""
    return (name in DESIGNS and name != "add-remove") or name == "decide()"


def takes_arms(name: str) -> bool:
    return name in ("groups", "compare_groups()")


WRONG: dict[str, Wrong] = {
    "text for numbers": Wrong(columns(x=[str(one) for one in RECORDS]), {}),
    "dates for numbers": Wrong(columns(x=[pa.scalar(1, pa.date32()).as_py()] * N), {}),
    "no such column": Wrong(columns(), {"column": "y"}),
    "no such unit": Wrong(columns(), {"unit": "whom"}),
    "no such order": Wrong(columns(), {"order": "night"}),
    "one record too many": Wrong(
        {name: [*values, values[0]] for name, values in columns(day=list(range(1, N + 1))).items()}, {}, counted
    ),
    "no record": Wrong({name: [] for name in columns()}, {}, lambda name: name != "add-remove"),
    "ties": Wrong(columns(day=[1] * N), {"order": "day"}, in_blocks),
    "missing days": Wrong(columns(day=[None] * N), {"order": "day"}, in_blocks),
    "an order where it means nothing": Wrong(columns(), {"order": "day"}, lambda name: not in_time(name)),
}
KINDS = {"x": {str: pa.string(), float: pa.float64()}, "day": {int: pa.int64()}, "arm": {str: pa.string()}}


def table(wrong: Wrong) -> pa.Table:
    found = {}
    for name, values in wrong.columns.items():
        first = type(values[0]) if values and values[0] is not None else {"x": float, "day": int, "arm": str}[name]
        kind = KINDS[name].get(first, pa.date32())
        found[name] = pa.array(values, kind)
    return pa.table(found)


def parquet(content: pa.Table, folder: Path) -> Path:
    pa.parquet.write_table(content, folder / "a.parquet")
    return folder / "a.parquet"


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "Arrow": lambda content, _: content,
    "Parquet": parquet,
    "DuckDB": WAREHOUSES["DuckDB"],
}
# Files and databases are asked by one question of each kind.
FEW = ["test", "fit", "optimum", "estimate", "blocks", "changes", "groups"]
ASKED = [("Arrow", name) for name in [*DESIGNS, *CALLS]] + [
    (one, name) for one in ("Parquet", "DuckDB") for name in FEW
]


def ask(name: str, source: Any, words: dict[str, Any]) -> Any:
    if name in CALLS:
        return CALLS[name](source, **words)
    if name == "groups":
        return made(name).run(source, group="arm", **words)
    return made(name).run(source, **words)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> pt.Ledger:
    found = pt.Ledger(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True)
    found.grant("d", epsilon=1000)
    return found


def unfit(name: str, wrong: str) -> bool:
    """Whether the words themselves are no words of this entrance."""
    words = WRONG[wrong].words
    return (takes_arms(name) and "order" in words) or (
        name in ("decide()", "goodness_of_fit()", "estimate()") and "order" in words
    )


@pytest.mark.parametrize(("source", "name"), ASKED)
def test_a_refusal_costs_nothing(name: str, source: str, ledger: pt.Ledger, tmp_path: Path) -> None:
    for number, (what, wrong) in enumerate(WRONG.items()):
        if not wrong.minds(name) or unfit(name, what):
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        given = {"column": "x", **wrong.words, "ledger": ledger, "dataset": "d", "request": f"{name} {source} {what}"}
        with pytest.raises(pt.errors.PrivatestError):
            ask(name, SOURCES[source](table(wrong), folder), given)
        assert ledger.spent("d") == 0, what
    assert [entry.kind for entry in ledger.history("d")] == ["grant"]


def test_every_design_for_a_public_number_of_records_refuses_another_number() -> None:
    for name, number in product(filter(counted, DESIGNS), (N - 1, N + 1)):
        content = pa.table({column: [*values, values[0]][:number] for column, values in columns().items()})
        with pytest.raises(InvalidData, match="records"):
            ask(name, content, {"column": "x"})


@pytest.mark.parametrize("name", [*DESIGNS, *CALLS])
def test_the_same_without_the_mistake_is_answered(name: str, tmp_path: Path) -> None:
    """So nothing else was refused."""
    ledger = pt.Ledger(tmp_path / "ledger.db", create=True)
    ledger.grant("d", epsilon=1000)
    words: dict[str, Any] = {"order": "day"} if in_time(name) else {}
    ask(name, pa.table(columns()), {"column": "x", **words, "ledger": ledger, "dataset": "d", "request": "r"})
    assert ledger.spent("d") > 0
