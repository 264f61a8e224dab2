"""Power curves: exact error rates at several numbers of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.decision.problem import ADVANTAGE, Goal, Method, Problem
from privatest.decision.tuning import Clamp, Tuner, tuning_size
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
        n, alpha, beta: numbers of records, and both errors at each of them.
        beta_goal: None for tests tuned for their advantage; with alpha fixed, the type II error that ``enough`` means.
        test: name of the test.
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
        """The least n from which on the advantage is 2/3 (type II error beta_goal), as ``sample_size`` has it.

        One of the n shown or between two of them; None where no n will do.
        """
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
        """Advantage and both error rates against n."""
        from privatest import pictures

        return pictures.power_curve(self, ax)

    HEADINGS: ClassVar[tuple[str, ...]] = ("n", "alpha", "beta", "advantage", "")

    @property
    def title(self) -> str:
        """Names the test and the pair."""
        return f"Exact error rates of {self.test!r} at {self._budget}: {self.null} against {self.alternative}"

    @property
    def ending(self) -> str:
        """How many records are enough."""
        if self.enough is None:
            return ""
        goal = "Advantage 2/3" if self.beta_goal is None else f"Type II error {self.beta_goal:g}"
        return f"{goal} from n = {self.enough:,} on"

    def entries(self) -> list[tuple[object, ...]]:
        """A row for each n, with a bar as long as the advantage."""
        rows = zip(self.n, self.alpha, self.beta, self.advantage, strict=True)
        return [
            (n, Probability(a), Probability(b), gain, "\u2588" * round(24 * max(gain, 0))) for n, a, b, gain in rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
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
    """alpha and beta of the test at each n; without n, at 25 sizes around the one that is enough, itself among them.

    Of more than 32 sizes some clamps are taken from neighbouring sizes: those of :func:`privatest.design`, tuned for
    each n, have an advantage that is larger by 1e-4 at most.

    Args:
        n: numbers of records, such as ``[50, 100, 200]``; None: sizes around the one that is enough.
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
    tuned = _tuned_at(tuner, sizes)
    tests = [tuned.test(size) for size in each("error rates", sizes)]
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
"""The type II error that ``enough`` means where alpha is fixed."""
MOST_TUNED = 32
"""Longest list of numbers of records at each of which the clamp is tuned from scratch."""
APART = 1.5
"""The ratio of neighbouring numbers of records that are tuned from scratch in a longer list."""


def _tuned_at(tuner: Tuner, counts: Sequence[int]) -> Tuner:
    """A tuner with clamps for many numbers of records: some are tuned, each other one is the best of three clamps.

    The three are the clamps of the tuned sizes on either side, and the one halfway between them. The given tuner
    remembers only what was tuned.
    """
    problem = tuner.problem
    sizes = sorted({tuning_size(n) for n in counts})
    plain = tuner.method.kind == "tight" and isinstance(problem.privacy, Pure)
    if not plain or tuner.method.clamp != "tuned" or len(sizes) <= MOST_TUNED:
        return tuner
    tuned = [sizes[0]]
    for here, following in pairwise(sizes):
        if following > APART * tuned[-1]:
            tuned.append(here if here > tuned[-1] else following)
    clamps: dict[int, Clamp] = {}
    for left, right in each("tuning for sizes", list(pairwise(sorted({*tuned, sizes[-1]})))):
        ends = [(float(a), float(b)) for a, b in (tuner.clamp_for(size) for size in (left, right))]
        clamps |= dict(zip((left, right), ends, strict=True))
        trial = [*ends, (_halfway(ends[0][0], ends[1][0]), _halfway(ends[0][1], ends[1][1]))]
        for size in sizes:
            if left < size < right:
                curves = [tuner.profile.curves(clamp, problem.privacy, size, problem.around) for clamp in trial]
                margins = [round(tuner.goal.margin(one), 12) for one in curves]
                clamps[size] = trial[int(np.argmax(margins))]
    return tuner.with_clamps(clamps)


def _halfway(x: float, y: float) -> float:
    """The geometric mean of two ends of a clamp; their mean if they differ in sign."""
    return math.copysign(math.sqrt(x * y), x) if x * y > 0 else (x + y) / 2


def _sizes(n: Sequence[int]) -> list[int]:
    try:
        sizes = [numbers.positive_integer(n=size) for size in n]
    except (InvalidInput, TypeError):
        sizes = []
    if not sizes:  # not quoted: a list may be data
        raise InvalidInput("n=... must be a list of whole numbers of at least 1, such as n=[50, 100, 200].")
    return sizes
