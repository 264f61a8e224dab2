"""What a goodness-of-fit test gives back. Nothing else leaves the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from privatest import markup
from privatest.charge import Receipt

__all__ = ["Decision", "FitRelease"]

Decision = Literal["null", "alternative"]


@dataclass(frozen=True)
class FitRelease:
    """The outcome of running a goodness-of-fit test on data.

    Guarantees: decision, statistic and pvalue together are epsilon-differentially private, being computed
    from the noisy statistic alone.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they come from some law away from P).
        statistic: the noisy excess over its mean under P, for each record; 0 is expected under P, and large
            values, of the size of the distance at most, speak against P.
        pvalue: probability, were P true, of a statistic as large as this one.
        epsilon: privacy loss of this release.
        n: number of records, which is public.
        test: the method, "binomial", "direct", "uniformity" or "grains".
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
    """

    decision: Decision
    statistic: float
    pvalue: float
    epsilon: float
    n: int
    test: str
    neighbours: str = "replace"
    simulated: bool = False
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    @property
    def replayed(self) -> Receipt | None:
        """The receipt, where this is an answer recorded earlier: nothing was charged, the data given were not read."""
        return self.receipt if self.receipt is not None and self.receipt.replayed else None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "private": self.private, **markup.receipt_document(self.receipt)}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> FitRelease:
        """The release that :meth:`to_dict` wrote."""
        kept = {one.name: document[one.name] for one in fields(cls) if one.name != "receipt"}
        return cls(**kept, receipt=Receipt.from_dict(document.get("receipt")))

    def _repr_html_(self) -> str:
        return markup.release_table("Goodness of fit", self)

    def __str__(self) -> str:
        kept = "SIMULATED, not private"
        if self.private:
            kept = f"{self.epsilon:g}-differentially private ({self.neighbours})"
        text = f"decision: {self.decision}; statistic {self.statistic:.6g}, p-value {self.pvalue:.4g}; {kept}"
        return f"{text}; {self.replayed.note}" if self.replayed else text
