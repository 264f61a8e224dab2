"""Error rates against the number of records, for plotting and planning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import _validate, markup
from privatest.errors import InvalidInput
from privatest.power.family import make_family
from privatest.power.goal import ADVANTAGE, Goal
from privatest.power.sample_sizes import smallest_n
from privatest.rational import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PowerCurve", "power_curve"]


@dataclass(frozen=True)
class PowerCurve:
    """Exact error rates of one family of tests at several n."""

    test: str
    epsilon: float
    n: tuple[int, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    null: str = "P"
    alternative: str = "Q"

    @property
    def advantage(self) -> tuple[float, ...]:
        """1 - alpha - beta at each n."""
        return tuple(1 - a - b for a, b in zip(self.alpha, self.beta, strict=True))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Advantage and both error rates against n."""
        from privatest import pictures

        return pictures.power_curve(self, ax)

    def _repr_html_(self) -> str:
        title = f"Exact error rates of {self.test!r}, epsilon {self.epsilon:g}: {self.null} against {self.alternative}"
        rows = zip(self.n, self.alpha, self.beta, self.advantage, strict=True)
        return markup.table(title, ("n", "alpha", "beta", "advantage"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "advantage": self.advantage}


def power_curve(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    n: Sequence[int] | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> PowerCurve:
    """alpha and beta of the test at each n; without n, at 25 sizes around the one of advantage 2/3."""
    goal = Goal(advantage=ADVANTAGE) if alpha is None else Goal(alpha=_validate.probability(alpha=alpha), beta=0.2)
    family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
    if n is None:
        middle = smallest_n(family)
        sizes = [int(size) for size in np.unique(np.rint(np.geomspace(max(middle / 16, 1), middle * 8, 25)))]
    else:
        sizes = [_validate.positive_integer(n=size) for size in n]
        if not sizes:
            raise InvalidInput("n=[] must hold at least one number of records.")
    tests = [family.test(size) for size in sizes]
    errors = tuple(found.alpha for found in tests), tuple(found.beta for found in tests)
    return PowerCurve(test, float(family.epsilon), tuple(sizes), *errors, tests[0].null, tests[0].alternative)
