"""Whether a column fits: its type the score, its length the test. No record is looked at."""

from __future__ import annotations

from privatest.errors import InvalidData
from privatest.scores import LabelCells, Score
from privatest.scores.cells import is_number

__all__ = ["check_count", "check_numbers", "check_text", "unfit"]


def check_count(count: int, n: int) -> None:
    """Refuse data of another length than the test's, where that is public."""
    if count != n:
        raise InvalidData(
            f"The data have {count} records, the test was designed for n={n}. "
            f"Design it with n={count}, or pass exactly {n} records."
        )


def check_numbers(score: Score, dtype: str) -> None:
    """A column of numbers fits unless every label is something else."""
    if isinstance(score.cells, LabelCells) and not any(is_number(label) for label in score.cells.labels):
        raise InvalidData(
            f"The data are numbers ({dtype}), but no label of the distributions is a number. "
            "Pass the labels themselves, or give the distributions numeric labels."
        )


def check_text(score: Score, dtype: str) -> None:
    """A column of text fits only where some label is text."""
    if not isinstance(score.cells, LabelCells):
        raise InvalidData(
            f"The data are text ({dtype}), but the distributions are over numbers. Convert them to numbers."
        )
    if not any(isinstance(label, (str, bytes)) for label in score.cells.labels):
        raise InvalidData(
            f"The data are text ({dtype}), but no label of the distributions is text. "
            "Convert them to numbers, or give the distributions text labels."
        )


def unfit(what: str, remedy: str = "Pass numbers, or the labels of the distributions") -> InvalidData:
    """The error for a type that no rule reads."""
    return InvalidData(f"The data have {what}. {remedy}.")
