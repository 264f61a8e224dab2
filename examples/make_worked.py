"""Write the data of the four worked problems: `python examples/make_worked.py FOLDER`.

Each problem has two files, a row for each person. `NAME.csv` is a whole record in order of time, in which something
changed at row `CHANGE` (counted from 0); `NAME_latest.csv` is the latest part of it, the question of a test. All
numbers come from uniform draws of a fixed seed through inverse cdfs: the files are the same on every machine.
"""

from __future__ import annotations

import csv
import itertools
import math
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import NormalDist

ROWS, CHANGE, LATEST = 3000, 2000, 800
SEED = 20260511

Draw = Callable[[float], object]


def bernoulli(p: float) -> Draw:
    return lambda u: int(u < p)


def normal(mean: float, sd: float) -> Draw:
    return lambda u: f"{NormalDist(mean, sd).inv_cdf(u):.2f}"


def poisson(mean: float) -> Draw:
    def count(u: float) -> int:
        k, probability, total = 0, math.exp(-mean), 0.0
        while (total := total + probability) < u:
            k, probability = k + 1, probability * mean / (k + 1)
        return k

    return count


def categorical(**law: float) -> Draw:
    steps = list(itertools.accumulate(law.values()))
    return lambda u: next((label for label, step in zip(law, steps, strict=True) if u < step), list(law)[-1])


# name: (heading, law before, law after); the laws are those of the problem files.
PROBLEMS: dict[str, tuple[str, Draw, Draw]] = {
    "conversion": ("bought", bernoulli(0.12), bernoulli(0.2)),
    "lab_value": ("glucose", normal(5.4, 0.6), normal(5.7, 0.6)),
    "daily_counts": ("calls", poisson(3), poisson(4)),
    "survey": (
        "answer",
        categorical(never=0.5, sometimes=0.3, often=0.2),
        categorical(never=0.3, sometimes=0.3, often=0.4),
    ),
}


def write_rows(path: Path, heading: str, values: Iterable[tuple[int, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["row", heading])
        table.writerows(values)


def write(folder: Path) -> list[Path]:
    """Write all files into the folder and return them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, (name, (heading, before, after)) in enumerate(PROBLEMS.items()):
        uniform = random.Random(SEED + number).random
        rows = [(i, (after if i >= CHANGE else before)(uniform())) for i in range(ROWS)]
        for path, part in ((folder / f"{name}.csv", rows), (folder / f"{name}_latest.csv", rows[-LATEST:])):
            write_rows(path, heading, part)
            written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1] if len(sys.argv) > 1 else "output/worked")):
        print(path)
