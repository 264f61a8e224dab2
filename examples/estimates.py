"""A rate, a mean, a count and an A/B test on public data, each beside the answer without privacy.

    python examples/estimates.py

The data are 244 bills that one waiter wrote down (Bryant and Smith, Practical Data Analysis, 1995). They come with
plotly, under the MIT licence, which the studio needs anyway, and are read where that is installed. One row is one
party. The noise is drawn anew in every run.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import math
from pathlib import Path

import privatest as pt

EPSILON = 1
CUT = 15
"""Dollars; public, as every cut."""


def table(package: str, path: str) -> list[dict[str, str]]:
    """The rows of a file that lies in an installed package; the package itself is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"This example reads data that come with {package}. Install it: pip install {package}")
    with gzip.open(Path(found.origin).parent / path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def told(question: str, release: pt.results.EstimateRelease, without: float) -> None:
    low, high = release.interval
    print(f"{question:34} {release.estimate:8.4f} ({low:.4f} to {high:.4f})   without privacy {without:.4f}")


def main() -> None:
    parties = table("plotly", "package_data/datasets/tips.csv.gz")
    smoking = [row["smoker"] for row in parties]
    rate = pt.estimate(smoking, "categorical(Yes=?)", epsilon=EPSILON)
    told("share of parties that smoke", rate, smoking.count("Yes") / len(smoking))

    bills = [float(row["total_bill"]) for row in parties]
    # The spread of the logarithms is known roughly only: bills differ by a factor of about e^0.45.
    mean = pt.estimate(bills, "lognormal(mean=?, sd in [0.35, 0.55])", between=(1, 5), epsilon=EPSILON)
    told("mean logarithm of a bill", mean, sum(map(math.log, bills)) / len(bills))

    guests = [int(row["size"]) - 1 for row in parties]
    more = pt.estimate(guests, "poisson(?)", between=(0.2, 10), epsilon=EPSILON)
    told("guests of a party beside the first", more, sum(guests) / len(guests))

    lunch, dinner = (
        [bill for bill, row in zip(bills, parties, strict=True) if row["time"] == time] for time in ("Lunch", "Dinner")
    )
    found = pt.compare_groups(lunch, dinner, epsilon=EPSILON, above=CUT)
    (low, high), (at_noon, at_night) = found.interval, (sum(bill > CUT for bill in each) for each in (lunch, dinner))
    without = at_night / len(dinner) - at_noon / len(lunch)
    print(
        f"{'bills above 15, dinner minus lunch':34} {found.difference:8.4f} ({low:.4f} to {high:.4f})   "
        f"without privacy {without:.4f}; p-value {found.pvalue:.4f}"
    )


if __name__ == "__main__":
    main()
