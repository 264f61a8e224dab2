"""The plan of a stream: what its blocks release, when a result follows from them, and what all of it costs.

Plans of monitors and of sequential tests are frozen, and are written as every design is. A rule is frozen, too; its
progress is a small value that is replaced, never changed, so that what was not written to the disk has not happened.
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
from privatest.streams.state_file import StateKind


class Rule(ABC):
    """When a result follows from the votes of blocks."""

    begin: ClassVar[Any]
    """The progress before the first block. It has ``blocks``, the number of blocks so far."""
    progress: ClassVar[type]
    """The class of the progress, a named tuple."""

    @abstractmethod
    def feed(self, progress: Any, votes: Sequence[int]) -> tuple[Any, int | None]:
        """The progress after these votes, or after those up to the one with which a result follows, and that one."""

    @abstractmethod
    def check(self, progress: Any) -> None:
        """Refuse a progress that cannot be, read from a document."""


class StreamPlan(Designed):
    """Everything that a stream needs besides its records. Its subclasses are frozen dataclasses, restored from JSON.

    Guarantees: what the blocks release meets ``notion`` for all rows of a person together, which is checked when the
    object is made, however it is made.
    """

    STATE: ClassVar[StateKind]

    blocks: Blocks
    """What the blocks release and vote; of unequal ones the later."""
    rule: Any
    """When a result follows: a frozen dataclass that is a ``Rule``."""
    notion: Notion
    """What the whole stream meets."""
    max_rows_per_unit: int | None
    """The most rows of one person that count; None: each record is a person of its own."""

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
        """Records in a block; of unequal ones in the later."""
        return self.blocks.block

    @property
    def first_block(self) -> int:
        """Records in the first block."""
        return self.blocks.block

    @property
    def privacy(self) -> Notion:
        """The notion that the whole stream meets, for all rows of a person together."""
        return self.notion

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite where another notion bounds none."""
        return float(self.notion.epsilon)

    def records(self, blocks: int) -> int:
        """Number of records in the first blocks.

        Args:
            blocks: number of blocks.
        """
        return self.first_block + (blocks - 1) * self.block if blocks else 0

    def votes(self, released: Sequence[int], before: int) -> list[int]:  # noqa: ARG002 - most blocks vote alike
        """The votes of blocks.

        Args:
            released: the release of each block, as an integer.
            before: number of blocks before the first of them.
        """
        return self.blocks.votes(released)

    def quiet(self, progress: Any) -> int:  # noqa: ARG002 - any block may bring a verdict
        """Number of further blocks that cannot bring a result, whatever they release.

        Args:
            progress: where the rule stands.
        """
        return 0

    @abstractmethod
    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:
        """The fields of the alarm or the verdict that follows at the record ``end``.

        Args:
            progress: where the rule stands.
            origin: the record at which the rule began.
            end: the record after the last one of the block.
        """

    @property
    @abstractmethod
    def result_class(self) -> type[Outcome]:
        """The class of the alarm or the verdict."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """What the releases depend on besides the data, ready for JSON."""

    @cached_property
    def text(self) -> str:
        """JSON text of the plan, always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def __hash__(self) -> int:
        return hash((self.block, self.notion, self.max_rows_per_unit))

    def _question(self, **parts: Any) -> dict[str, Any]:
        """These parts as JSON, with the rows of a person and another notion than epsilon where there are any."""
        rows = {} if self.max_rows_per_unit is None else {"max_rows_per_unit": self.max_rows_per_unit}
        notion = {} if isinstance(self.notion, Pure) else {"privacy": self.notion.text}
        return {**parts, "rule": fields_to_json(self.rule), **rows, **notion}
