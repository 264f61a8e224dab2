"""Scores: functions from records to integers, whose laws are known exactly."""

from privatest.scores.clamped import clamped_score as clamped_score
from privatest.scores.clamped import realised_clamp as realised_clamp
from privatest.scores.clamped import score_with_laws as score_with_laws
from privatest.scores.clamped import whole_score as whole_score
from privatest.scores.score import BoundedCells as BoundedCells
from privatest.scores.score import Cells as Cells
from privatest.scores.score import DyadicCells as DyadicCells
from privatest.scores.score import EdgeCells as EdgeCells
from privatest.scores.score import GroupedCells as GroupedCells
from privatest.scores.score import IntegerCells as IntegerCells
from privatest.scores.score import LabelCells as LabelCells
from privatest.scores.score import Score as Score
