"""Exact power: designs, sample sizes, tuned clamps, and how far they are from the best possible."""

from privatest.decision.design import design, min_epsilon, sample_size
from privatest.power.comparison import Comparison, ComparisonRow, NotionComparison, NotionRow, compare, compare_notions
from privatest.power.curve import PowerCurve, power_curve
from privatest.power.plan import Plan, plan

__all__ = [
    "Comparison",
    "ComparisonRow",
    "NotionComparison",
    "NotionRow",
    "Plan",
    "PowerCurve",
    "compare",
    "compare_notions",
    "design",
    "min_epsilon",
    "plan",
    "power_curve",
    "sample_size",
]
