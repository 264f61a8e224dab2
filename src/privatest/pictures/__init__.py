"""Pictures of plans and releases (extra ``[plot]``): what the ``plot`` methods of the results draw.

Every picture is made of public numbers (P, Q, epsilon, n and what follows from them) and of what was released; none
is ever given data.
"""

from privatest.pictures.canvas import png
from privatest.pictures.densities import decomposition
from privatest.pictures.intervals import difference, estimate, groups
from privatest.pictures.series import (
    alarm,
    change_plan,
    change_point,
    change_points,
    changes_plan,
    monitor,
    stopping,
    walk,
)
from privatest.pictures.sizes import comparison, complexity, notion_comparison, power_curve
from privatest.pictures.totals import fit_test, histogram_test, power_along, private_test

__all__ = [
    "alarm",
    "change_plan",
    "change_point",
    "change_points",
    "changes_plan",
    "comparison",
    "complexity",
    "decomposition",
    "difference",
    "estimate",
    "fit_test",
    "groups",
    "histogram_test",
    "monitor",
    "notion_comparison",
    "png",
    "power_along",
    "power_curve",
    "private_test",
    "stopping",
    "walk",
]
