"""Tables that others have noised and published: what their noise is, and all answers that a table of ours gives."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.estimates.table import Table
from privatest.estimates.table_design import MOST_CELLS
from privatest.numbers import Floats, number_or_nan
from privatest.privacy import Gaussian, Laplace, Noise, RandomSource, Stair
from privatest.privacy import randomness as coins
from privatest.scores import Cells, EdgeCells, LabelCells
from privatest.unanswered_questions import known_arguments

LARGEST = 2**31
"""The largest count, in absolute value, and the largest size of noise."""


@dataclass(frozen=True)
class DiscreteGaussian(Noise):
    r"""Pr[N = k] proportional to exp(-k^2/(2 sd^2)), for whole k, as other libraries add it.

    Reference: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy".

    >>> round(float(DiscreteGaussian(Fraction(5)).cdf(0)), 4)
    0.5399
    """

    kind: ClassVar[str] = "discrete_gaussian"

    sd: Fraction

    @property
    def decay_rate(self) -> float:
        return math.inf

    @cached_property
    def _masses(self) -> tuple[Floats, Floats]:
        """The values within 12 deviations and their probabilities."""
        reach = math.ceil(12 * float(self.sd)) + 2
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        masses = np.exp(-((values / float(self.sd)) ** 2) / 2)
        return values, masses / math.fsum(masses)

    @property
    def variance(self) -> float:
        values, masses = self._masses
        return float(values**2 @ masses)

    def reach(self, nats: float) -> float:
        return float(self.sd) * math.sqrt(2 * nats) + 1

    def exponent(self, x: float) -> float:
        return (x / float(self.sd)) ** 2 / 2

    def drift(self, theta: float) -> float:
        return self.variance * theta

    def log_excess(self, theta: float) -> float:
        return float(self.sd * self.sd) * theta * theta / 2  # it is subgaussian with its parameter

    def draw_doubled(self, source: RandomSource) -> int:
        # A discrete Laplace value y of scale t is kept with probability exp(-(|y| - sd^2/t)^2 / (2 sd^2)).
        t, square = math.floor(self.sd) + 1, self.sd * self.sd
        while True:
            y = coins.two_sided_geometric(1, t, source)
            away = (abs(y) - square / t) ** 2 / (2 * square)
            if coins.bernoulli_exp(away.numerator, away.denominator, source):
                return 2 * y

    def _log_pmf(self, v: Floats) -> Floats:
        values, masses = self._masses
        return math.log(float(masses[len(values) // 2])) - (v / float(self.sd)) ** 2 / 2

    def _log_lower(self, v: Floats) -> Floats:
        values, masses = self._masses
        sums = np.cumsum(masses)
        place = np.clip(v - values[0], 0, len(values) - 1).astype(np.int64)
        return np.where(v >= values[0], np.log(sums[place]), -((v / float(self.sd)) ** 2) / 2)

    def _characteristic(self, t: NDArray[Any]) -> NDArray[Any]:
        values, masses = self._masses
        positive = values[values > 0]
        waves = np.cos(np.multiply.outer(t, positive))
        transform: NDArray[Any] = masses[len(values) // 2] + 2 * waves @ masses[values > 0]
        return transform


NOISES: dict[str, tuple[str, Callable[[Fraction], Noise]]] = {
    "laplace": ("scale", Laplace),
    "discrete_laplace": ("scale", lambda scale: Stair(1 / scale, 1)),
    "gaussian": ("sd", lambda sd: Gaussian(1 / sd, 1)),
    "discrete_gaussian": ("sd", DiscreteGaussian),
}
"""The kinds of noise that a published table may have: the name of its size, and the noise."""
_TEXT = re.compile(r"\s*([a-z_]+)\s*\(\s*(?:(scale|sd)\s*=\s*)?([0-9.eE+/-]+)\s*\)\s*")


def stated_noise(noise: Any) -> tuple[str, Noise]:
    """The kind and the noise that a text such as "laplace(2)" names."""
    match = _TEXT.fullmatch(noise) if isinstance(noise, str) else None
    if match is None or match[1] not in NOISES or match[2] not in (None, NOISES[match[1]][0]):
        kinds = ", ".join(f"{kind}({word})" for kind, (word, _) in NOISES.items())
        raise InvalidInput(
            f"noise={shown(noise)} must be one of {kinds}, such as 'laplace(2)'. Counts that were changed after noise "
            "was added (rounded to 0, made to add up) have no known law: use those from before."
        )
    word, make = NOISES[match[1]]
    try:
        size = Fraction(match[3])
    except (ValueError, ZeroDivisionError):
        size = Fraction(0)
    if not Fraction(1, 1000) <= size <= LARGEST:
        raise InvalidInput(f"noise={shown(noise)} must have a {word} between 0.001 and {LARGEST}.")
    return match[1], make(size)


def _published_cells(cells: Any, count: int) -> Cells:
    """The cells that edges or labels name, for so many counts."""
    values = list(cells) if isinstance(cells, Sequence | np.ndarray) and not isinstance(cells, str) else []
    if values and all(isinstance(one, str) for one in values):
        if len(values) != count or len(set(values)) != len(values):
            raise InvalidInput(f"cells has {len(values)} labels for {count} counts. Give each count its own label.")
        return LabelCells(tuple(values))
    edges = [number_or_nan(one) for one in values]
    if not edges or not all(math.isfinite(edge) for edge in edges) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidInput(f"cells={shown(cells)} must be labels, or edges between cells in increasing order.")
    if len(edges) == count - 1:
        return EdgeCells(tuple(edges))
    if len(edges) == count + 1 and count >= 2:
        return EdgeCells(tuple(edges[1:-1]), edges[0], edges[-1])
    raise InvalidInput(
        f"cells has {len(edges)} edges for {count} counts. Give one edge fewer (the outermost cells are open) or one "
        "more (they end at the first and the last edge)."
    )


@known_arguments
def table(
    counts: Sequence[float],
    *,
    cells: Sequence[Any],
    noise: str,
    n: int | None = None,
    missing: float | None = None,
) -> Table:
    """A table that somebody else has noised and published. All that is computed from it costs no privacy.

    Args:
        counts: the noisy counts, one for each cell; some may be negative.
        cells: labels, one for each count; or the edges between cells: one fewer than counts if the outermost cells are
            open, one more if they end somewhere.
        noise: what was added to each count, independently: "laplace(scale)", "discrete_laplace(scale)", "gaussian(sd)"
            or "discrete_gaussian(sd)".
        n: the number of all records, if it was published exactly.
        missing: the noisy count of missing records, if there is one. Without it, and with n, no record is missing.

    >>> found = table([812.0, 604.0, 391.0, 193.0], cells=[18, 30, 45], noise="discrete_gaussian(5)", n=2000)
    >>> found.share(above=45).interval[0] < 0.1 < found.share(above=45).interval[1]
    True
    """
    kind, law = stated_noise(noise)
    values = [number_or_nan(count) for count in counts]
    if not 2 <= len(values) <= MOST_CELLS:
        raise InvalidInput(f"counts has {len(values)} entries; a table has between 2 and {MOST_CELLS} cells.")
    last = 0.0 if missing is None else number_or_nan(missing)
    for value in (*values, last):
        if not abs(value) <= LARGEST:
            raise InvalidInput(f"counts must be finite numbers within {LARGEST} of 0, and one is {shown(value)}.")
        if kind.startswith("discrete") and value != round(value):
            raise InvalidInput(f"A count of {shown(value)} is not whole, and {kind} noise is: which noise was added?")
    total = None if n is None else numbers.positive_integer(n=n)
    # Records are whole, so a count rounded to the lattice has the noise rounded to it: Laplace's is that of halves.
    twice = [2 * math.ceil(value) - 1 if kind == "laplace" else 2 * round(value) for value in (*values, last)]
    complete = missing is None and total is not None
    return Table(
        _published_cells(cells, len(values)),
        (*twice[:-1], 0 if missing is None else twice[-1]),
        law,
        total,
        complete,
        epsilon=0.0,
    )
