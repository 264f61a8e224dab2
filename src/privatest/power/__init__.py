"""Exact power: sample sizes, power curves, plans, and comparisons with the best possible tests."""

from privatest.power.comparison import Comparison, ComparisonRow, NotionComparison, NotionRow, compare, compare_notions
from privatest.power.curve import PowerCurve, power_curve
from privatest.power.plan import Plan, plan
from privatest.power.sample_sizes import min_epsilon, sample_size

__all__ = [
    "Comparison",
    "ComparisonRow",
    "NotionComparison",
    "NotionRow",
    "Plan",
    "PowerCurve",
    "compare",
    "compare_notions",
    "min_epsilon",
    "plan",
    "power_curve",
    "sample_size",
]
