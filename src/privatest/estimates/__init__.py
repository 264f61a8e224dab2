"""How large is it: estimates with exact intervals, and two groups compared."""

from privatest.estimates.estimate import EstimateDesign, EstimateRelease, design_estimate, estimate
from privatest.estimates.groups import GroupsDesign, GroupsRelease, compare_groups, compare_noised, design_groups
from privatest.estimates.table import Table, TableAnswer, TableEstimate, TableFit
from privatest.estimates.table_design import TableDesign, design_table, tabulate

__all__ = [
    "EstimateDesign",
    "EstimateRelease",
    "GroupsDesign",
    "GroupsRelease",
    "Table",
    "TableAnswer",
    "TableDesign",
    "TableEstimate",
    "TableFit",
    "compare_groups",
    "compare_noised",
    "design_estimate",
    "design_groups",
    "design_table",
    "estimate",
    "tabulate",
]
