"""Pictures of plans and releases (extra ``[plot]``), which the ``plot`` methods of results draw.

Every picture is made of public numbers (P, Q, epsilon, n and what follows from them) and of what was released; none
is ever given data.
"""

from privatest.pictures.canvas import png
from privatest.pictures.plans import comparison, complexity, decomposition, notion_comparison, power_curve
from privatest.pictures.releases import (
    alarm,
    change_plan,
    change_point,
    difference,
    estimate,
    fit_test,
    groups,
    histogram_test,
    monitor,
    power_along,
    private_test,
    stopping,
    table,
    walk,
)

__all__ = [
    "alarm",
    "change_plan",
    "change_point",
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
    "table",
    "walk",
]
