"""When did it change? Private change points: where data turned from P to Q, if they did. Arguments: proof.md."""

from privatest.changepoint.block_tests import block_test
from privatest.changepoint.change_plan import ChangePlan, design_change, detect_change
from privatest.changepoint.change_point import Alarm, ChangePoint, ChangePoints
from privatest.changepoint.changes_plan import ChangesPlan, design_changes, detect_changes

__all__ = [
    "Alarm",
    "ChangePlan",
    "ChangePoint",
    "ChangePoints",
    "ChangesPlan",
    "block_test",
    "design_change",
    "design_changes",
    "detect_change",
    "detect_changes",
]
