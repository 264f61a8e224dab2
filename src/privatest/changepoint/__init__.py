"""When did it change? Private change points: where data turned from P to Q, if they did. Arguments: proof.md."""

from privatest.changepoint.block_tests import block_test
from privatest.changepoint.change_plan import ChangePlan, design_change, detect_change
from privatest.changepoint.change_point import ChangePoint

__all__ = ["ChangePlan", "ChangePoint", "block_test", "design_change", "detect_change"]
