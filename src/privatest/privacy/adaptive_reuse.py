r"""The level of a test that was chosen after looking at earlier private answers about the same data.

A test that is chosen by looking at the records it runs on may have a type I error of 1. If only private answers about
the records were seen, their influence on the choice is limited, and a smaller level makes up for it. Two bounds say how
much smaller. Both hold for n independent records of which one is replaced.

- **Max-information** (Dwork et al. 2015; Rogers et al. 2016): answers that are pure(epsilon) together make no event
  more likely than

  .. math:: e^{k} p + b, \qquad k = \frac{\epsilon^2 n}{2} + \epsilon \sqrt{\frac{n \ln(2/b)}{2}},

  where p is its probability on fresh records, for every b in (0, 1). So a test at level (alpha - b) e^-k has type I
  error alpha.

- **Mutual information** (Bun and Steinke 2016): if the laws of the answers on neighbours have a divergence of Kullback
  and Leibler of at most eta, the mutual information of records and answers is at most eta n nats (the chain rule,
  record by record), and an event of probability p on fresh records has a probability of at most q with
  kl(q, p) <= eta n (data processing). This bound holds under ``kl(eta)``, which follows from gdp, zcdp and renyi.

For (epsilon, delta) and for total variation no bound with stated constants is known here, so they are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.facts import Described, Fact, Probability
from privatest.numbers import Number, root
from privatest.privacy.divergences import golden_peak, kullback
from privatest.privacy.notion import Kl, Notion, Pure, converted, make_notion

VACUOUS = 1000
"""A level that is smaller than alpha by more than this factor is useless."""


@dataclass(frozen=True)
class AdaptiveLevel(Described):
    """The level at which a test that was chosen after looking at private answers must run.

    Attributes:
        alpha: the largest type I error of the choice and the test together.
        privacy: the notion that all earlier answers meet together.
        n: the number of records.
        level: the level at which the test must run: its type I error on records that had no part in its choice.
        split: the part b of alpha that is given up for rare answers; None if the bound has none.
        information: the largest information, in nats, of the answers about the records, up to probability ``split``.
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
        """A heading."""
        return "Level of a test that was chosen after private answers"

    def facts(self) -> list[Fact]:
        """Return the question, the level, and the bound it rests on."""
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

    @property
    def vacuous(self) -> bool:
        """Whether the level is less than a thousandth of alpha."""
        return self.level * VACUOUS < self.alpha

    @property
    def note(self) -> str:
        """One sentence for planning."""
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
    """Return the level at which a test chosen after looking at private answers must run, for a type I error of alpha.

    Args:
        alpha: the type I error that the choice and the test may have together.
        n: number of records, which are independent under the null.
        epsilon: privacy loss of all earlier answers together, where neighbours differ by one replaced record.
        privacy: the notion that they meet together, instead of epsilon: ``pt.gdp(0.01)``, "zcdp(1e-4)", ...

    Guarantees: if every test that might have been chosen has a type I error of at most ``level`` on fresh records, the
    chosen one has a type I error of at most alpha on these. The split is the best one.

    >>> answer = adaptive_level(0.05, epsilon=0.01, n=10_000)
    >>> round(answer.level, 5), round(answer.split, 4), answer.vacuous
    (0.00486, 0.0064, False)
    """
    share = numbers.probability(alpha=alpha)
    size = numbers.positive_integer(n=n)
    notion = make_notion(epsilon, privacy)
    if isinstance(notion, Pure) and notion.price is not None:
        return _by_max_information(share, notion, size)
    divergence = converted(notion, Kl(1)) if notion.price is not None else None
    if divergence is None:
        raise InvalidInput(
            f"privacy={notion} has no bound with stated constants on what it says of {size:,} records. "
            "Use answers in pure, gdp, zcdp, renyi or kl."
        )
    return _by_mutual_information(share, notion, size, float(divergence.exact[0]) * size)


def _by_max_information(alpha: float, notion: Pure, n: int) -> AdaptiveLevel:
    epsilon = notion.epsilon

    def information(b: float) -> float:
        return epsilon**2 * n / 2 + epsilon * math.sqrt(n * math.log(2 / b) / 2)

    def log_level(log_b: float) -> float:
        b = math.exp(log_b)
        return math.log(alpha - b) - information(b)

    # Any b would be valid. Both terms are concave in b.
    log_b, log_best = golden_peak(log_level, math.log(alpha) - 60.0, math.log(alpha) + math.log1p(-1e-9))
    b = math.exp(log_b)
    return AdaptiveLevel(
        alpha=alpha,
        privacy=notion,
        n=n,
        level=math.exp(log_best) * (1 - 1e-12),
        split=b,
        information=information(b),
        bound="max-information",
    )


def _by_mutual_information(alpha: float, notion: Notion, n: int, nats: float) -> AdaptiveLevel:
    """Return the largest p below alpha with kl(alpha, p) >= nats; the divergence falls as p rises to alpha."""

    def too_large(log_p: float) -> bool:
        p = math.exp(log_p)
        return kullback(alpha, 1 - alpha, p, 1 - p) < nats

    least = -740.0
    log_level = -math.inf if too_large(least) else root(too_large, least, math.log(alpha))[0]
    return AdaptiveLevel(
        alpha=alpha,
        privacy=notion,
        n=n,
        level=math.exp(log_level) * (1 - 1e-12),
        split=None,
        information=nats,
        bound="mutual information",
    )
