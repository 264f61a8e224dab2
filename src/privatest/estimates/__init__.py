"""How large is it: estimates with exact intervals, and two groups compared."""

from privatest.estimates.estimate import EstimateDesign, EstimateRelease, design_estimate, estimate
from privatest.estimates.groups import GroupsDesign, GroupsRelease, compare_groups, compare_noised, design_groups

__all__ = [
    "EstimateDesign",
    "EstimateRelease",
    "GroupsDesign",
    "GroupsRelease",
    "compare_groups",
    "compare_noised",
    "design_estimate",
    "design_groups",
    "estimate",
]
