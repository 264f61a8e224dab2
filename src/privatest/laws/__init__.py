"""One machinery for the sum of n integer scores plus noise: its cdf, tails, masses and transforms, exact at any n."""

from privatest.laws.cutoffs import Curves as Curves
from privatest.laws.cutoffs import TwoSidedCurves as TwoSidedCurves
from privatest.laws.noisy_total import Bounded as Bounded
from privatest.laws.noisy_total import IntegerLaw as IntegerLaw
from privatest.laws.noisy_total import NoisyTotal as NoisyTotal
