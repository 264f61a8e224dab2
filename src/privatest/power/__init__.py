"""Exact power: designs, sample sizes, tuned clamps, and how far they are from the best possible."""

from privatest.power.comparison import Comparison, Row, compare
from privatest.power.curve import PowerCurve, power_curve
from privatest.power.designs import design
from privatest.power.histogram_test import HistogramTest
from privatest.power.lower_bound import advantage_bound, lower_bound
from privatest.power.optimum import Optimum, optimum, optimum_sample_size
from privatest.power.overview import Plan, plan
from privatest.power.sample_sizes import min_epsilon, sample_size

__all__ = [
    "Comparison",
    "HistogramTest",
    "Optimum",
    "Plan",
    "PowerCurve",
    "Row",
    "advantage_bound",
    "compare",
    "design",
    "lower_bound",
    "min_epsilon",
    "optimum",
    "optimum_sample_size",
    "plan",
    "power_curve",
    "sample_size",
]
