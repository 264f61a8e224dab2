"""One machinery for the sum of n integer scores plus noise: its cdf, tails, masses and transforms, exact at any n."""

from privatest.laws.curves import Curves, TwoSidedCurves
from privatest.laws.total import Bounded, IntegerLaw, NoisyTotal

__all__ = ["Bounded", "Curves", "IntegerLaw", "NoisyTotal", "TwoSidedCurves"]
