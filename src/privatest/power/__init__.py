"""Exact power: designs, sample sizes, tuned clamps, and how far they are from the best possible."""

from privatest.power.comparison import Comparison, NotionComparison, NotionRow, Row, compare, compare_notions
from privatest.power.curve import PowerCurve, power_curve
from privatest.power.overview import Plan, plan
from privatest.power.sample_sizes import design, min_epsilon, sample_size

__all__ = [
    "Comparison",
    "NotionComparison",
    "NotionRow",
    "Plan",
    "PowerCurve",
    "Row",
    "compare",
    "compare_notions",
    "design",
    "min_epsilon",
    "plan",
    "power_curve",
    "sample_size",
]
