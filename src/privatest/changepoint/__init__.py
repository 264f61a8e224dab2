"""When did it change? Private change points: where data turned from P to Q, if they did. Arguments: proof.md."""

from privatest.changepoint.change_plan import ChangePlan, design_change, detect_change
from privatest.changepoint.change_point import Alarm, ChangePoint
from privatest.changepoint.monitor import Monitor

__all__ = [
    "Alarm",
    "ChangePlan",
    "ChangePoint",
    "Monitor",
    "design_change",
    "detect_change",
]
