"""Scores: record to integer."""

from privatest.scores.clamped import clamped_score, realised_clamp, score_with_laws, whole_score
from privatest.scores.score import (
    BoundedCells,
    Cells,
    DyadicCells,
    EdgeCells,
    GroupedCells,
    IntegerCells,
    LabelCells,
    Score,
)

__all__ = [
    "BoundedCells",
    "Cells",
    "DyadicCells",
    "EdgeCells",
    "GroupedCells",
    "IntegerCells",
    "LabelCells",
    "Score",
    "clamped_score",
    "realised_clamp",
    "score_with_laws",
    "whole_score",
]
