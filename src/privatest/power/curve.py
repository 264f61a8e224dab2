"""Power curves: exact error rates at several numbers of records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import ADVANTAGE, Goal, Method, Problem
from privatest.errors import Infeasible, InvalidInput
from privatest.facts import Probability, Tabled, plain_value
from privatest.numbers import Number
from privatest.privacy import Pure
from privatest.progress_events import each

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PowerCurve(Tabled):
    """Exact error rates of one family of tests at several n.

    Attributes:
        test: name of the test.
        n: numbers of records.
        alpha, beta: the error rates at each of them.
        beta_goal: with a fixed alpha, the type II error of ``enough``; None for the advantage 2/3.
        epsilon: privacy loss of one run.
        null, alternative: short descriptions of P and Q.
    """

    test: str
    epsilon: float
    n: tuple[int, ...]
    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    null: str = "P"
    alternative: str = "Q"
    beta_goal: float | None = None
    _tuner: Tuner | None = field(default=None, repr=False, compare=False)

    @cached_property
    def enough(self) -> int | None:
        """The sample size for the advantage 2/3, or for the type II error ``beta_goal``; None if there is none."""
        if self._tuner is None:
            return None
        try:
            return self._tuner.sample_size()
        except Infeasible:
            return None

    @property
    def advantage(self) -> tuple[float, ...]:
        """1 - alpha - beta at each n."""
        return tuple(1 - a - b for a, b in zip(self.alpha, self.beta, strict=True))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the advantage and both error rates against n."""
        from privatest import pictures

        return pictures.power_curve(self, ax)

    HEADINGS: ClassVar[tuple[str, ...]] = ("n", "alpha", "beta", "advantage", "")

    @property
    def title(self) -> str:
        """The test, its budget and the pair."""
        return f"Exact error rates of {self.test!r} at {self._budget}: {self.null} against {self.alternative}"

    @property
    def ending(self) -> str:
        """The number of records that is enough."""
        if self.enough is None:
            return ""
        goal = "Advantage 2/3" if self.beta_goal is None else f"Type II error {self.beta_goal:g}"
        return f"{goal} from n = {self.enough:,} on"

    def entries(self) -> list[tuple[object, ...]]:
        """Return a row for each n, with a bar whose length is the advantage."""
        rows = zip(self.n, self.alpha, self.beta, self.advantage, strict=True)
        return [
            (n, Probability(a), Probability(b), gain, "\u2588" * round(24 * max(gain, 0))) for n, a, b, gain in rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        names = ("test", "epsilon", "n", "alpha", "beta", "null", "alternative", "beta_goal", "advantage")
        values = {name: getattr(self, name) for name in names}
        if self._tuner is not None and not isinstance(self._tuner.problem.privacy, Pure):
            values |= {"epsilon": plain_value(self.epsilon), "privacy": self._tuner.problem.privacy.text}
        return values

    @property
    def _budget(self) -> str:
        if self._tuner is None or isinstance(self._tuner.problem.privacy, Pure):
            return f"epsilon {self.epsilon:g}"
        return str(self._tuner.problem.privacy)


def power_curve(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: Sequence[int] | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> PowerCurve:
    """Compute the exact error rates of tests on several numbers of records.

    Args:
        n: numbers of records, such as ``[50, 100, 200]``; None: about 25 numbers around the sample size.
        null, alternative, epsilon, privacy, test, clamp, threshold, alpha, neighbours, max_rows_per_unit, release: as
            for :func:`privatest.design`.
    """
    goal = Goal(advantage=ADVANTAGE) if alpha is None else Goal(alpha=numbers.probability(alpha=alpha), beta=BETA)
    problem = Problem.of(
        null, alternative, epsilon=epsilon, privacy=privacy, neighbours=neighbours, max_rows_per_unit=max_rows_per_unit
    )
    tuner = Tuner.of(problem, Method.of(test=test, clamp=clamp, threshold=threshold, release=release), goal)
    if n is None:
        middle = tuner.sample_size()
        grid = [*np.geomspace(max(middle / 16, 1), middle, 15), *np.geomspace(middle, middle * 8, 11)]
        sizes = [int(size) for size in np.unique(np.rint(grid))]
    else:
        sizes = _sizes(n)
    tests = [tuner.test(size) for size in each("error rates", sizes)]
    return PowerCurve(
        test=tuner.method.kind,
        epsilon=problem.privacy.epsilon,
        n=tuple(sizes),
        alpha=tuple(one.alpha for one in tests),
        beta=tuple(one.beta for one in tests),
        null=tests[0].null,
        alternative=tests[0].alternative,
        beta_goal=goal.beta,
        _tuner=tuner,
    )


BETA = 0.2
"""The type II error of ``enough`` with a fixed alpha."""


def _sizes(n: Sequence[int]) -> list[int]:
    try:
        sizes = [numbers.positive_integer(n=size) for size in n]
    except (InvalidInput, TypeError):
        sizes = []
    if not sizes:  # not quoted, because a list may be data
        raise InvalidInput("n=... must be a list of whole numbers of at least 1, such as n=[50, 100, 200].")
    return sizes
