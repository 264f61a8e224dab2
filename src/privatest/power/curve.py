"""Error rates against the number of records, for plotting and planning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.decision.calibration import ADVANTAGE, Goal
from privatest.decision.design import smallest_n
from privatest.decision.tuning import Clamp, Tuner, make_tuner, tuning_size
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
    _family: Tuner | None = field(default=None, repr=False, compare=False)

    @cached_property
    def enough(self) -> int | None:
        """The least n from which on the advantage is 2/3 (type II error beta_goal), as ``sample_size`` has it.

        One of the n shown or between two of them; None where no n will do.
        """
        if self._family is None:
            return None
        try:
            return smallest_n(self._family)
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
        found = {name: getattr(self, name) for name in names}
        if self._family is not None and not isinstance(self._family.notion, Pure):
            found |= {"epsilon": plain_value(self.epsilon), "privacy": self._family.notion.text}
        return found

    @property
    def _budget(self) -> str:
        if self._family is None or isinstance(self._family.notion, Pure):
            return f"epsilon {self.epsilon:g}"
        return str(self._family.notion)


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
    goal = Goal(advantage=ADVANTAGE) if alpha is None else Goal(alpha=numbers.probability(alpha=alpha), beta=0.2)
    family = make_tuner(
        null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit, privacy, release
    )
    if n is None:
        middle = smallest_n(family)
        grid = [*np.geomspace(max(middle / 16, 1), middle, 15), *np.geomspace(middle, middle * 8, 11)]
        sizes = [int(size) for size in np.unique(np.rint(grid))]
    else:
        sizes = _sizes(n)
    tuned, tests, rates = _tuned_at(family, sizes), [], []
    for size in each("error rates", sizes):
        tests.append(tuned.test(size))
        rates.append((tests[-1].alpha, tests[-1].beta))
    errors = tuple(alpha for alpha, _ in rates), tuple(beta for _, beta in rates)
    names = tests[0].null, tests[0].alternative
    return PowerCurve(family.kind, family.notion.epsilon, tuple(sizes), *errors, *names, goal.beta, family)


MOST_TUNED = 32
"""Of a longer list of numbers of records not every clamp is tuned from scratch."""
APART = 1.5
"""The ratio of neighbouring numbers of records that are, then."""


def _tuned_at(family: Tuner, counts: Sequence[int]) -> Tuner:
    """The family with the clamps of many numbers of records: tuned at some, between those the best of three.

    The three are the clamps of the tuned sizes on either side and the one halfway between them. What the family itself
    has tuned, or will, stays as it is.
    """
    sizes = sorted({tuning_size(n) for n in counts})
    plain = family.kind == "tight" and isinstance(family.notion, Pure)
    if not plain or family.clamp != "tuned" or len(sizes) <= MOST_TUNED:
        return family
    tuned = [sizes[0]]
    for here, following in pairwise(sizes):
        if following > APART * tuned[-1]:
            tuned.append(here if here > tuned[-1] else following)
    known: dict[int, Clamp] = {}
    for left, right in each("tuning for sizes", list(pairwise(sorted({*tuned, sizes[-1]})))):
        ends = [(float(a), float(b)) for a, b in (family.clamp_for(size) for size in (left, right))]
        known |= dict(zip((left, right), ends, strict=True))
        trial = [*ends, (_halfway(ends[0][0], ends[1][0]), _halfway(ends[0][1], ends[1][1]))]
        for size in sizes:
            if left < size < right:
                best, most = ends[0], -math.inf
                for clamp in trial:
                    margin = family.goal.margin(family.profile.curves(clamp, family.notion, size, family.around))
                    if margin > most + 1e-12:
                        best, most = clamp, margin
                known[size] = best
    other = replace(family)
    other.__dict__.update(profile=family.profile, _tuned={size: (clamp,) for size, clamp in known.items()})
    return other


def _halfway(x: float, y: float) -> float:
    """The geometric mean of two ends of a clamp, or the middle where they have not the same sign."""
    return math.copysign(math.sqrt(x * y), x) if x * y > 0 else (x + y) / 2


def _sizes(n: Sequence[int]) -> list[int]:
    try:
        sizes = [numbers.positive_integer(n=size) for size in n]
    except (InvalidInput, TypeError):
        sizes = []
    if not sizes:  # not quoted: a list may be data
        raise InvalidInput("n=... must be a list of whole numbers of at least 1, such as n=[50, 100, 200].")
    return sizes
