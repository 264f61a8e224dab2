"""What a test gives back: the decision, the noisy statistic and its p-value. Nothing else leaves the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from privatest.charge import Receipt
from privatest.decision.design import Fact, Outcome

__all__ = ["Decision", "Release"]

Decision = Literal["null", "alternative"]


@dataclass(frozen=True)
class Release(Outcome):
    """The outcome of running a test on data.

    Guarantees: the triple (decision, statistic, pvalue) is epsilon-differentially private, being computed from
    the noisy total alone; a release with infinite epsilon carries the decision only.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they look like Q).
        statistic: the noisy sum of clamped log-likelihood ratios, in nats; large values speak for P.
        pvalue: probability, were P true, of a statistic as small as this one of n records; exact.
        epsilon: privacy loss of this release; ``inf`` means it is not private.
        n: number of records, which is public; with neighbours "add-remove", the number the test was designed for,
            whatever the data's.
        test: name of the test.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the test that was run, for :meth:`plot`; no part of its documents, None in one that was read.
    """

    decision: Decision
    statistic: float | None
    pvalue: float | None
    epsilon: float
    n: int
    test: str
    neighbours: str
    simulated: bool = False
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    design: Any = field(default=None, compare=False, repr=False)

    @property
    def title(self) -> str:
        """What this is."""
        return "Release"

    def facts(self) -> list[Fact]:
        """What left the data, and what it cost."""
        return [
            ("decision", self.decision, "the data look like P" if self.decision == "null" else "they do not"),
            ("statistic", self.statistic, "with noise; large values speak for P"),
            ("p-value", self.pvalue, "were P true"),
            ("epsilon", self.epsilon, "privacy loss of this release"),
            ("records n", self.n, ""),
            ("test", self.test, ""),
            *self._ending(),
        ]

    def _said(self) -> list[str]:
        said = [f"decision: {self.decision}"]
        if self.statistic is not None and self.pvalue is not None:
            said.append(f"statistic {self.statistic:.6g}, p-value {self.pvalue:.4g}")
        return said
