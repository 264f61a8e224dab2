"""Pictures of plans and releases (extra ``[plot]``): what the ``plot`` methods of the results draw.

Every picture is made of public numbers (P, Q, epsilon, n and what follows from them) and of what was released; none
is ever given data.
"""

from privatest.pictures.change import change_plan, change_point, monitor
from privatest.pictures.complexity import complexity
from privatest.pictures.decomposition import decomposition
from privatest.pictures.files import png
from privatest.pictures.laws import fit_test, private_test
from privatest.pictures.power import comparison, power_curve

__all__ = [
    "change_plan",
    "change_point",
    "comparison",
    "complexity",
    "decomposition",
    "fit_test",
    "monitor",
    "png",
    "power_curve",
    "private_test",
]
