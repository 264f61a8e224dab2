"""Base classes of the plan of a stream and of the rule by which a result follows from the blocks' votes.

Plans of monitors and of sequential tests are frozen and have documents, as every design has. A rule is frozen, too. Its
progress is a small value that is replaced, never changed: a step that was not written to the disk leaves no trace.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

from privatest.decision.run import Designed, Outcome
from privatest.errors import InvalidDocument
from privatest.json_documents import fields_to_json
from privatest.privacy import Notion, Pure
from privatest.privacy.notion import per_row
from privatest.streams.blocks import Blocks
from privatest.streams.saved_state import StateKind


class Rule(ABC):
    """The rule by which a result follows from the votes of blocks."""

    begin: ClassVar[Any]
    """The progress before the first block. Its ``blocks`` is the number of blocks so far."""
    progress: ClassVar[type]
    """The class of the progress, a named tuple."""

    @abstractmethod
    def feed(self, progress: Any, votes: Sequence[int]) -> tuple[Any, int | None]:
        """Return the progress after these votes, and the place of the vote with which a result follows, or None.

        Votes after that place are not used.
        """

    @abstractmethod
    def check(self, progress: Any) -> None:
        """Raise InvalidDocument for a progress that is impossible."""


class StreamPlan(Designed):
    """Everything that a stream needs besides its records. Its subclasses are frozen dataclasses.

    Guarantees: the releases of the blocks meet ``notion`` for all rows of a person together. This is checked whenever
    an object is made, also from a document.
    """

    STATE: ClassVar[StateKind]

    blocks: Blocks
    """The releases and votes of blocks; of the later ones, if the first one differs."""
    rule: Any
    """The ``Rule`` by which a result follows, a frozen dataclass."""
    notion: Notion
    """The notion that the whole stream meets."""
    max_rows_per_unit: int | None
    """The largest number of rows of one person that count; None: each record is a person of its own."""

    def __post_init__(self) -> None:
        rows = self.max_rows_per_unit
        if rows is not None and rows < 1:
            raise InvalidDocument(f"max_rows_per_unit={rows} must be at least 1.")
        if not self.blocks.meets(per_row(self.notion, rows or 1)):
            raise InvalidDocument(
                f"What the blocks release does not meet {self.notion} for up to {rows or 1} rows of a person."
            )

    @property
    def block(self) -> int:
        """The number of records in a block, after the first one."""
        return self.blocks.block

    @property
    def first_block(self) -> int:
        """The number of records in the first block."""
        return self.blocks.block

    @property
    def privacy(self) -> Notion:
        """The notion that the whole stream meets, for all rows of a person together."""
        return self.notion

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite if the notion bounds none."""
        return float(self.notion.epsilon)

    def records(self, blocks: int) -> int:
        """Return the number of records in the first blocks.

        Args:
            blocks: number of blocks.
        """
        return self.first_block + (blocks - 1) * self.block if blocks else 0

    def votes(self, released: Sequence[int], before: int) -> list[int]:  # noqa: ARG002 - most blocks vote alike
        """Return the votes of blocks.

        Args:
            released: the release of each block, as an integer.
            before: number of blocks before the first of them.
        """
        return self.blocks.votes(released)

    def quiet(self, progress: Any) -> int:  # noqa: ARG002 - any block may bring a verdict
        """Return the number of further blocks that cannot bring a result, whatever they release.

        Args:
            progress: the progress of the rule.
        """
        return 0

    @abstractmethod
    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:
        """Return the fields of the alarm or the verdict that follows at the record ``end``.

        Args:
            progress: the progress of the rule.
            origin: the record at which the rule began.
            end: the record after the last one of the block.
        """

    @property
    @abstractmethod
    def result_class(self) -> type[Outcome]:
        """The class of the alarm or the verdict."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """Return everything besides the data on which the releases depend, ready for JSON."""

    @cached_property
    def text(self) -> str:
        """The JSON text of the plan, which is always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def __hash__(self) -> int:
        return hash((self.block, self.notion, self.max_rows_per_unit))

    def _question(self, **parts: Any) -> dict[str, Any]:
        """Return these parts as JSON, with the rows of a person and a notion other than epsilon, if there are any."""
        rows = {} if self.max_rows_per_unit is None else {"max_rows_per_unit": self.max_rows_per_unit}
        notion = {} if isinstance(self.notion, Pure) else {"privacy": self.notion.text}
        return {**parts, "rule": fields_to_json(self.rule), **rows, **notion}
