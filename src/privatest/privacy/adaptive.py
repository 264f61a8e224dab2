r"""One data set, used again: the level of a test that was chosen after looking at earlier private answers.

A test that was chosen by looking at the records it runs on is no test: its type I error may be 1. If all that was seen
of them are private answers, little of them can have gone into the choice, and a smaller level makes up for it. Two
bounds say how much smaller; both are about n independent records, of which one is replaced.

- **Max-information** (Dwork et al. 2015; Rogers et al. 2016): what is pure(epsilon) together makes no event
  more likely than

  .. math:: e^{k} p + b, \qquad k = \frac{\epsilon^2 n}{2} + \epsilon \sqrt{\frac{n \ln(2/b)}{2}},

  p its probability on fresh records, for every b in (0, 1). So a test at level (alpha - b) e^-k has type I error alpha.

- **Mutual information** (Bun and Steinke 2016): where the answers' laws on neighbours have a divergence of Kullback and
  Leibler of at most eta, records and answers share at most eta n nats (the chain rule, record by record), and an event
  of probability p on fresh records has at most a probability q with kl(q, p) <= eta n (data processing). It needs no
  more than ``kl(eta)``, which follows from pure, gdp, zcdp and renyi, and says less where both hold.

For (epsilon, delta) and for total variation no bound with stated constants is known here: they are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.facts import Described, Fact, Probability
from privatest.numbers import Number
from privatest.privacy.divergences import kullback
from privatest.privacy.notions import Kl, Notion, Pure, converted, make_notion

VACUOUS = 1000
"""A level that is so many times smaller than alpha is of no use."""


@dataclass(frozen=True)
class AdaptiveLevel(Described):
    """The level for a test that was chosen after looking at private answers.

    Attributes:
        alpha: the type I error that its choice and the test have together, at most.
        privacy: what all earlier answers are together.
        n: the number of records.
        level: at which the test must run: its type I error on records that had no part in its choice.
        split: the part b of alpha that is given up for rare answers; None where the bound has none.
        information: by how much, in nats, the answers may speak of the records, but for probability ``split``.
        bound: "max-information" or "mutual information".
    """

    alpha: float
    privacy: Notion
    n: int
    level: float
    split: float | None
    information: float
    bound: str

    @property
    def title(self) -> str:
        """What this is."""
        return "Level of a test that was chosen after private answers"

    def facts(self) -> list[Fact]:
        """What it is for, the level, and what it rests on."""
        return [
            Fact("alpha", self.alpha, "type I error of choice and test together, at most"),
            Fact("privacy", str(self.privacy), "of all earlier answers together"),
            Fact("n", self.n, "records, independent"),
            Fact("level", Probability(self.level), "at which the test must run"),
            Fact("split", self.split, "part of alpha given up for rare answers"),
            Fact("information", self.information, "nats that the answers may tell of the records"),
            Fact("bound", self.bound, "what this rests on"),
            Fact("vacuous", self.vacuous, "less than a thousandth of alpha: of no use"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain values, ready for JSON."""
        return self.values()

    @property
    def vacuous(self) -> bool:
        """Whether the level is less than a thousandth of alpha."""
        return self.level * VACUOUS < self.alpha

    @property
    def note(self) -> str:
        """One sentence for whoever plans with it."""
        split = "" if self.split is None else f", with b={self.split:.3g} of it given up for rare answers"
        text = f"level {self.level:.3g} for alpha={self.alpha:g}{split}"
        if self.vacuous:
            wanted = 1 / math.sqrt(self.n)
            text += (
                ". That is of no use: earlier answers must be private at an epsilon (or mu) of the order of 1/sqrt(n) "
                f"= {wanted:.2g} together. Keep some records aside for this test instead"
            )
        return f"{text}."

    def __float__(self) -> float:
        return self.level


def adaptive_level(
    alpha: float, *, n: int, epsilon: Number | None = None, privacy: Notion | str | None = None
) -> AdaptiveLevel:
    """The level at which a test chosen after looking at private answers must run, for a type I error of alpha.

    Args:
        alpha: the type I error that the choice and the test may have together.
        n: number of records, which are independent under the null.
        epsilon: of all earlier answers together, where replacing one record is hidden.
        privacy: the same in another notion: ``pt.gdp(0.01)``, "zcdp(1e-4)", ...

    Guarantees: whatever the choice, among tests whose type I error is at most ``level`` on fresh records, it is at most
    alpha on these. The split is the best one.

    >>> found = adaptive_level(0.05, epsilon=0.01, n=10_000)
    >>> round(found.level, 5), round(found.split, 4), found.vacuous
    (0.00486, 0.0064, False)
    """
    share = numbers.probability(alpha=alpha)
    size = numbers.positive_integer(n=n)
    notion = make_notion(epsilon, privacy)
    if isinstance(notion, Pure) and notion.price is not None:
        return _by_max_information(share, notion, size)
    found = converted(notion, Kl(1)) if notion.price is not None else None
    if found is None:
        raise InvalidInput(
            f"privacy={notion} has no bound with stated constants on what it says of {size:,} records. "
            "Use answers in pure, gdp, zcdp, renyi or kl."
        )
    return _by_mutual_information(share, notion, size, float(found.exact[0]) * size)


def _by_max_information(alpha: float, notion: Pure, n: int) -> AdaptiveLevel:
    epsilon = notion.epsilon

    def information(b: float) -> float:
        return epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(2 / b) / 2)

    def logarithm(b: float) -> float:
        return math.log(alpha - b) - information(b)

    # Both terms are concave in b where b <= alpha < 1: a ternary search over its logarithm; any b would be valid.
    low, high = math.log(alpha) - 60.0, math.log(alpha) + math.log1p(-1e-9)
    for _ in range(200):
        third = (high - low) / 3
        if logarithm(math.exp(low + third)) < logarithm(math.exp(high - third)):
            low += third
        else:
            high -= third
    b = math.exp((low + high) / 2)
    level = math.exp(logarithm(b)) * (1 - 1e-12)
    return AdaptiveLevel(alpha, notion, n, level, b, information(b), "max-information")


def _by_mutual_information(alpha: float, notion: Notion, n: int, nats: float) -> AdaptiveLevel:
    """The p below alpha with kl(alpha, p) = nats, from below: the divergence falls as p rises to alpha."""
    low, high = -740.0, math.log(alpha)

    def allowed(logarithm: float) -> bool:
        p = math.exp(logarithm)
        return kullback(alpha, 1 - alpha, p, 1 - p) >= nats

    if not allowed(low):
        return AdaptiveLevel(alpha, notion, n, 0.0, None, nats, "mutual information")
    for _ in range(200):  # invariant: low is allowed
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return AdaptiveLevel(alpha, notion, n, math.exp(low) * (1 - 1e-12), None, nats, "mutual information")
