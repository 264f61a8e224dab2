"""The main job, end to end, on a made-up clinic: plan a private test, look at its errors, run it.

Each column of `data/clinic.csv` has a law that was in force at first (P) and one that came later (Q). For
each column we ask of the first 400 patients, and of the last 400: P or Q? Run it with `make run`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Mapping
from pathlib import Path

import numpy as np
import pictures
from rich.console import Console
from rich.table import Table

import privatest as pt

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "clinic.csv"
OUTPUT = HERE.parent / "output"

EPSILON = 0.5
RECORDS = 400

Law = str | Mapping[Hashable, float]
PAIRS: dict[str, tuple[Law, Law]] = {
    "value": ("normal(0, 1)", "normal(0.5, 1)"),
    "visit": ("bernoulli(0.6)", "bernoulli(0.4)"),
    "answer": (
        {"never": 0.5, "sometimes": 0.3, "often": 0.2},
        {"never": 0.2, "sometimes": 0.3, "often": 0.5},
    ),
}


def read_columns() -> dict[str, np.ndarray]:
    """The three columns the tests are about, as arrays of floats, integers and text."""
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = {"value": float, "visit": int, "answer": str}
    return {name: np.array([kind(row[name]) for row in rows]) for name, kind in kinds.items()}


def plan() -> Table:
    """What the theory says of each pair, before any data are touched."""
    table = Table(title=f"Plan: epsilon = {EPSILON}, one record replaced, n public", title_justify="left")
    for heading in ("column", "tau", "epsilon'", "paper's clamp", "n needed", "at least"):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    for name, (null, alternative) in PAIRS.items():
        split = pt.decompose(null, alternative, epsilon=EPSILON)
        a, b = split.clamp
        needed = pt.sample_size(null, alternative, epsilon=EPSILON)
        least = pt.lower_bound(null, alternative, epsilon=EPSILON)
        clamp = f"[{a:.3f}, {b:.3f}]"
        table.add_row(name, f"{split.tau:.4f}", f"{split.epsilon_prime:.4f}", clamp, str(needed), str(least))
    return table


def errors() -> Table:
    """Exact advantages at several sample sizes: the tight test beside the paper's and one without privacy."""
    null, alternative = PAIRS["value"]
    table = Table(title="Exact advantage 1 - alpha - beta on 'value'", title_justify="left")
    names = {"tight": "tight", "ncllr": "ncLLR", "scllr": "scLLR", "llr": "LLR (not private)"}
    table.add_column("n", justify="right")
    for heading in names.values():
        table.add_column(heading, justify="right")
    for n in (25, 50, 100, 200, 400):
        tests = [pt.design(null, alternative, epsilon=EPSILON, n=n, test=test) for test in names]
        table.add_row(str(n), *(f"{test.advantage:.4f}" for test in tests))
    return table


def run_tests() -> tuple[Table, list[dict[str, object]]]:
    """Run each column's test on the first and on the last records."""
    columns = read_columns()
    table = Table(title="Releases (random: run again and they differ)", title_justify="left")
    for heading in ("column", "records", "decision", "statistic", "p-value", "alpha", "beta"):
        table.add_column(heading, justify="left" if heading in ("column", "records", "decision") else "right")
    results: list[dict[str, object]] = []
    for name, (null, alternative) in PAIRS.items():
        test = pt.design(null, alternative, epsilon=EPSILON, n=RECORDS)
        for where, part in (("first", columns[name][:RECORDS]), ("last", columns[name][-RECORDS:])):
            release = test.run(part)
            # A p-value far below the noise's own tail says "P is out of the question", not more.
            pvalue = "< 1e-9" if release.pvalue < 1e-9 else f"{release.pvalue:.2g}"
            records = f"{where} {RECORDS}"
            shown = f"{release.statistic:.1f}", pvalue, f"{test.alpha:.0e}", f"{test.beta:.0e}"
            table.add_row(name, records, release.decision, *shown)
            results.append({"column": name, "records": records, **release.to_dict()})
    return table, results


def change() -> tuple[pt.results.ChangePoint, dict[str, object]]:
    """When did the lab values change, if they did? One more private answer, with the accuracy it promises."""
    null, alternative = PAIRS["value"]
    values = read_columns()["value"]
    found = pt.detect_change(values, null, alternative, epsilon=EPSILON)
    return found, {"column": "value", **found.to_dict()}


def main() -> None:
    console = Console(width=80)
    table, results = run_tests()
    changed, when = change()
    results.append(when)
    for part in (plan(), errors(), table, f"Change point of 'value': {changed}"):
        console.print(part)
        console.print()
    OUTPUT.mkdir(exist_ok=True)
    null, alternative = PAIRS["value"]
    drawn = pictures.plan(null, alternative, EPSILON, OUTPUT)
    test = pt.design(null, alternative, epsilon=EPSILON, n=RECORDS)
    drawn += [pictures.save(test, OUTPUT / "test.png"), pictures.save(changed, OUTPUT / "change.png")]
    target = OUTPUT / "releases.json"
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    console.print(
        f"Patients in three tests and the change point, each of epsilon {EPSILON}, have a "
        f"privacy loss of {(len(PAIRS) + 1) * EPSILON:g} in all. Saved: {target.relative_to(HERE.parent)}, "
        f"pictures {', '.join(path.name for path in drawn)} beside it"
    )


if __name__ == "__main__":
    main()
