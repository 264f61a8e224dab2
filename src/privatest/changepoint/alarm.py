"""What a monitor raises. Nothing else of the data leaves it but the noisy sums of whole blocks."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from privatest import markup

__all__ = ["Alarm"]


@dataclass(frozen=True)
class Alarm:
    """A monitor says that the stream has changed.

    Guarantees: a function of the blocks' noisy sums or bits, so it costs no privacy beyond theirs. If the stream
    changed at k* (the first record of the new regime) and no alarm was raised before k* (``seen`` was at least k*
    + 1), then abs(index - k*) <= accuracy with probability at least 1 - beta.

    Attributes:
        index: estimate of k*: the first record of the new regime, counted from 0 over the whole stream.
        accuracy: see above, in records; computed from P, Q and epsilon, never from the data.
        seen: records consumed when the alarm was raised; always the end of a block.
    """

    index: int
    accuracy: int
    seen: int

    def to_dict(self) -> dict[str, int]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        facts = (("index", self.index), ("accuracy, in records", self.accuracy), ("records seen", self.seen))
        return markup.fact_table("Alarm", facts)

    def __str__(self) -> str:
        return f"change at record {self.index}, give or take {self.accuracy}; raised after {self.seen} records"
