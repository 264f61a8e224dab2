"""Exact power: sample sizes, power curves, plans, and comparisons with the best possible tests."""

from privatest.power.comparison import Comparison as Comparison
from privatest.power.comparison import ComparisonRow as ComparisonRow
from privatest.power.comparison import NotionComparison as NotionComparison
from privatest.power.comparison import NotionRow as NotionRow
from privatest.power.comparison import compare as compare
from privatest.power.comparison import compare_notions as compare_notions
from privatest.power.curve import PowerCurve as PowerCurve
from privatest.power.curve import power_curve as power_curve
from privatest.power.plan import Plan as Plan
from privatest.power.plan import plan as plan
from privatest.power.sample_sizes import min_epsilon as min_epsilon
from privatest.power.sample_sizes import sample_size as sample_size
