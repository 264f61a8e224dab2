"""Many charges of one budget in (epsilon, delta), against what answers that just meet their notions lose together.

Each price has an answer that meets it and nothing stronger: randomised response, which with probability delta tells
all, or one Gaussian. What a number of them lose together is computed here from their own laws. A ledger lets nobody ask
more of them than its budget covers, and as many as plain sums of epsilons and deltas allow at least.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import norm

import privatest as pt
from privatest.errors import BudgetExceeded

Losses = dict[float, float]
"""The law of the privacy loss of one answer: losses with their probabilities."""
EPSILON, DELTA = 1.0, 0.01


def read(price: str) -> tuple[float, float]:
    """The epsilon and the delta of a price."""
    name, _, words = price.rstrip(")").partition("(")
    numbers = [float(word) for word in words.split(",")]
    return {"pure": (numbers[0], 0.0), "tv": (0.0, numbers[0])}.get(name) or (numbers[0], numbers[-1])


def losses(price: str) -> Losses:
    """Of randomised response that tells all with probability delta."""
    epsilon, delta = read(price)
    yes = (1 - delta) / (1 + math.exp(-epsilon))
    found = Counter({epsilon: yes})
    found[-epsilon] += 1 - delta - yes
    found[math.inf] += delta
    return dict(found)


def delta_of(prices: list[str], epsilon: float) -> float:
    """The least delta of all the answers together at this epsilon, exactly."""
    if all(price.startswith(("gdp", "zcdp")) for price in prices):  # of zcdp(rho) the Gaussian with mu^2 = 2 rho
        numbers = [(price.startswith("g"), float(price.partition("(")[2].rstrip(")"))) for price in prices]
        mu = math.sqrt(sum(number**2 if gaussian else 2 * number for gaussian, number in numbers))
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))
    total: Losses = {0.0: 1.0}
    for price in prices:
        both: Counter[float] = Counter()
        for (a, p), (b, q) in itertools.product(total.items(), losses(price).items()):
            both[round(a + b, 12)] += p * q
        total = both
    return sum(p * -math.expm1(min(epsilon - loss, 0.0)) for loss, p in total.items())


@pytest.mark.parametrize(
    "prices",
    [
        ["pure(0.4)"],
        ["tv(0.003)"],
        ["approx(0.3,0.002)"],
        ["approx(0.05,0.003)"],
        ["gdp(0.25)"],
        ["tv(0.002)", "pure(0.4)"],
        ["gdp(0.2)", "zcdp(0.02)"],
    ],
    ids="+".join,
)
def test_no_more_charges_than_their_answers_lose_together(prices: list[str], tmp_path: Path) -> None:
    charged: list[str] = []
    with pt.Ledger(tmp_path / "l.db") as ledger:
        ledger.grant("claims", privacy=f"approx({EPSILON}, {DELTA})")
        for number, price in enumerate(itertools.cycle(prices)):
            try:
                ledger.perform(dataset="claims", request=str(number), privacy=price, design="d", draw=lambda: {"a": 1})
            except BudgetExceeded:
                break
            charged.append(price)
            assert delta_of(charged, EPSILON) <= DELTA
        said, added = ledger.spent("claims"), ledger.added_up("claims")
    assert delta_of(charged, float(said.epsilon)) <= DELTA  # type: ignore[union-attr]
    if not prices[0].startswith("gdp") and not prices[0].startswith("zcdp"):
        sums = [math.fsum(part) for part in zip(*map(read, charged), strict=True)]
        assert [float(part) for part in added.exact] == pytest.approx(sums)
        epsilons, deltas = (math.fsum(part) for part in zip(*map(read, [*charged, price]), strict=True))
        assert epsilons > EPSILON or deltas > DELTA  # nothing that plain sums allow is refused
