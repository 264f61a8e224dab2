"""What a test gives back: the decision, the noisy statistic and its p-value. Nothing else leaves the data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from privatest import markup
from privatest.charge import Receipt

__all__ = ["Decision", "Release"]

Decision = Literal["null", "alternative"]


@dataclass(frozen=True)
class Release:
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

    @property
    def replayed(self) -> Receipt | None:
        """The receipt, where this is an answer recorded earlier: nothing was charged, the data given were not read."""
        return self.receipt if self.receipt is not None and self.receipt.replayed else None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: finite epsilon and randomness from the operating system."""
        return math.isfinite(self.epsilon) and not self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (infinity as the text "inf")."""
        document = asdict(self)
        document |= {"private": self.private, **markup.receipt_document(self.receipt)}
        if math.isinf(self.epsilon):
            document["epsilon"] = "inf"
        return document

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Release:
        """The release that :meth:`to_dict` wrote."""
        kept = {one.name: document[one.name] for one in fields(cls) if one.name != "receipt"}
        kept["receipt"] = Receipt.from_dict(document.get("receipt"))
        kept["epsilon"] = math.inf if kept["epsilon"] == "inf" else float(kept["epsilon"])
        return cls(**kept)

    def _repr_html_(self) -> str:
        return markup.release_table("Release", self)

    def __str__(self) -> str:
        parts = [f"decision: {self.decision}"]
        if self.statistic is not None and self.pvalue is not None:
            parts.append(f"statistic {self.statistic:.6g}, p-value {self.pvalue:.4g}")
        if self.simulated:
            parts.append("SIMULATED, not private")
        elif self.private:
            parts.append(f"{self.epsilon:g}-differentially private ({self.neighbours})")
        else:
            parts.append("NOT PRIVATE (epsilon = inf)")
        return "; ".join([*parts, *([self.replayed.note] if self.replayed else [])])
