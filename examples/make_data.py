"""Write `data/clinic.csv`, the made-up clinic that the examples run on.

A clinic measures one new patient after another. Counting rows from 0, its laboratory is in order before row
`CHANGE`; from that row on the analyser reads half a unit high, fewer patients come back, and they answer
differently. One row is one patient, so one record is one person.

The numbers come from uniform draws of a fixed seed through inverse cdfs, printed with three decimals: the
file is the same, byte for byte, on every machine.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

ROWS = 4000
CHANGE = 2600
PATIENTS_A_DAY = 20
SEED = 20190623

# The law of each column before and after the change; the examples test exactly these pairs.
VALUE = (NormalDist(0.0, 1.0), NormalDist(0.5, 1.0))
VISIT = (0.6, 0.4)
ANSWER = ({"never": 0.5, "sometimes": 0.3, "often": 0.2}, {"never": 0.2, "sometimes": 0.3, "often": 0.5})

DATA = Path(__file__).parent / "data" / "clinic.csv"


def draw_label(law: dict[str, float], u: float) -> str:
    """The label at which the running sum of probabilities passes the uniform number u."""
    total = 0.0
    for label, probability in law.items():
        total += probability
        if u < total:
            return label
    return label


def draw_rows() -> Iterator[tuple[str, int, str, int, str]]:
    """One tuple (patient, day, value, visit, answer) for each row."""
    uniform = random.Random(SEED).random
    for i in range(ROWS):
        after = int(i >= CHANGE)
        value = VALUE[after].inv_cdf(uniform())  # needs u > 0: an exact 0 never comes up with this seed
        visit = int(uniform() < VISIT[after])
        answer = draw_label(ANSWER[after], uniform())
        yield f"p{i:04d}", 1 + i // PATIENTS_A_DAY, f"{value:.3f}", visit, answer


def write(path: Path = DATA) -> Path:
    """Write the table to path and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["patient", "day", "value", "visit", "answer"])
        table.writerows(draw_rows())
    return path


if __name__ == "__main__":
    print(f"{ROWS} rows in {write()}")
