r"""Parameters of a family from a noisy table: an interval for each, and whether the family fits the table at all.

With one or two unknown parameters :math:`\theta = (\psi, \lambda)` the cells have probabilities :math:`p(\theta)`, and
with v the variance of the noise the counts have about the covariance
:math:`\Sigma = n (\operatorname{diag} p - p p^\top) + v I`.
The *efficient score* of :math:`\psi` is the weighted sum of counts with weights
:math:`\Sigma^{-1}(\partial_\psi p - c\, \partial_\lambda p)`, where c makes it uncorrelated with that of
:math:`\lambda`. Its exact law at :math:`\theta` gives two tails.

A value :math:`\psi` is rejected if for every :math:`\lambda` of a confidence set, which has an error probability g, a
tail is at most the level. The set holds the :math:`\lambda` that the score of :math:`\lambda` does not reject at this
:math:`\psi`. So the true value is outside of the interval with probability at most the two levels plus g (Berger and
Boos 1994). The tails are computed at a few places of the set: between these they hardly differ, because the two scores
are uncorrelated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq, minimize

from privatest.decision.interval_inversion import normal_gap
from privatest.errors import InvalidInput, shown
from privatest.hypotheses import Distribution
from privatest.hypotheses.distribution import Numbers, number_text
from privatest.hypotheses.families import FAMILIES, POSITIVE, Family, Parameter
from privatest.hypotheses.parse import parse
from privatest.hypotheses.sets import Box, member_of
from privatest.numbers import Floats, number_or_nan
from privatest.scores import LabelCells
from privatest.scores.score_law import cell_law

if TYPE_CHECKING:
    from privatest.estimates.table import Table
    from privatest.laws.weighted_counts import Statistic

_CALL = re.compile(r"([A-Za-z_]\w*)\s*\((.*)\)")
_BOUND = re.compile(r"(\w+)\s*(<=|>=)\s*(-?[0-9.]+(?:e[-+]?[0-9]+)?)")
_NUMBER = r"([0-9.]+(?:e[-+]?[0-9]+)?)"
EXAMPLE = "'normal(mean=?, sd=?)' or 'poisson(mean=?)'"

LOST = 0.04
"""The share of an interval's error probability that is spent on the other parameter."""
PLACES = 5
"""At how many values of the other parameter a tail is computed."""
GRID = (40, 12)
"""At how many values of the first and the second parameter the table's likelihood is computed to begin with."""
STEP = 1e-4
"""Step of a numerical derivative, as a share of the parameter's range or, if it is positive, of its value."""
FINEST = 1e-4
"""The accuracy of an interval's ends, as a share of a standard error."""
PROOF = 1e-3
"""The first step outwards if the exact tail at a rough end exceeds its level, as a share of a standard error."""
UNEXPLAINED = 1e-3
"""A direction of which less than this share is left beside the parameters is not looked at."""
AT_END = 1e-6
"""A parameter so near an end of its range, as a share of the range, is at that end."""
COMPONENTS = 4
"""The number of directions in which the table may differ from the family that are looked at."""


@dataclass(frozen=True, eq=False)
class TableFamily:
    """A family with one or two unknown parameters, and the noisy table that it may fit.

    Attributes:
        box: the family; the parameters with a range are unknown.
        table: the noisy counts.
        possible: the numbers of present records to consider.
    """

    box: Box
    table: Table
    possible: tuple[int, ...]

    @cached_property
    def free(self) -> list[int]:
        """The unknown parameters."""
        return self.box.free

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [self.box.family.parameters[which].name for which in self.free]

    @property
    def ends(self) -> list[tuple[float, float]]:
        """Their ranges."""
        return [(self.box.low[which], self.box.high[which]) for which in self.free]

    def law(self, values: Sequence[float]) -> Floats:
        """The probability of each cell, for values of the unknown parameters."""
        every = list(self.box.low)
        for which, value in zip(self.free, values, strict=True):
            every[which] = float(value)
        masses = cell_law(self.table.cells, self.box.member(every))[:-1]
        total = math.fsum(masses)
        return np.asarray(masses / total if total > 0 else np.full(len(masses), 1 / len(masses)))

    def slopes(self, values: Sequence[float]) -> Floats:
        """The derivatives of the cells' probabilities along each unknown parameter, in columns."""
        derivatives = []
        for i, (low, high) in enumerate(self.ends):
            step = STEP * (min(values[i], high - low) if low > 0 else high - low)
            before, after = max(values[i] - step, low), min(values[i] + step, high)
            laws = [self.law([*values[:i], at, *values[i + 1 :]]) for at in (before, after)]
            derivatives.append((laws[1] - laws[0]) / (after - before))
        return np.stack(derivatives, axis=1)

    def solved(self, law: Floats, columns: Floats) -> Floats:
        """The inverse of about the covariance of the counts, times columns."""
        return _inverse_times(self.table, self.possible, law, columns)

    def weights(self, values: Sequence[float], which: int, *, efficient: bool) -> tuple[Floats, Floats]:
        """The cells' probabilities, and the weights of the score of one parameter.

        Args:
            values: the unknown parameters.
            which: the parameter.
            efficient: whether the score is made uncorrelated with that of the other parameter.
        """
        law, slopes = self.law(values), self.slopes(values)
        solved = self.solved(law, slopes)
        weights = solved[:, which]
        if efficient and len(values) > 1:
            information = slopes.T @ solved
            other = 1 - which
            weights = weights - information[which, other] / max(information[other, other], 1e-300) * solved[:, other]
        return law, weights

    def tail(self, values: Sequence[float], which: int, side: int, *, efficient: bool, exact: bool) -> float:
        """The probability of at most (side 0) or at least (side 1) the observed score of a parameter."""
        law, weights = self.weights(values, which, efficient=efficient)
        if not np.any(weights):
            return 1.0
        statistic = self.table.statistic(weights)
        return (statistic.tail if exact else statistic.rough_tail)(law, self.possible, side)

    def one_sided_pvalue(self, which: int, cut: float, *, below: bool, lost: float) -> float:
        """The p-value of the values of a parameter below (above) a cut, whatever the other parameter is.

        It is the largest over the cut and values up to two standard errors beyond it, where it has fallen, and over the
        values of the other parameter in a confidence set, whose error probability ``lost`` is added.
        """
        spread = self.errors(self.best)[which] * (-1 if below else 1)
        low, high = self.ends[which]
        values = {min(max(cut + spread * away, low), high) for away in (0.0, 0.25, 0.5, 1.0, 2.0)}
        side = 1 if below else 0
        lost = lost if len(self.free) > 1 else 0.0
        return min(max(self._largest(which, value, side, lost, exact=True) for value in values) + lost, 1.0)

    # Where to begin ---------------------------------------------------------------------------------------------------

    def _misfit(self, values: Sequence[float]) -> float:
        """Minus twice about the logarithm of the table's likelihood."""
        law, n = self.law(values), float(np.mean(self.possible))
        away = self.table.counts - n * law
        variances = n * law + self.table.noise.variance
        return float(away @ self.solved(law, away[:, None])[:, 0] + np.log(variances).sum())

    @cached_property
    def best(self) -> list[float]:
        """The values of the parameters with about the largest likelihood."""
        axes = [_spaced(low, high, count) for (low, high), count in zip(self.ends, GRID, strict=False)]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        start = min(places.tolist(), key=self._misfit)
        steps = [float(np.diff(axis).max()) for axis in axes]

        def misfit(scaled: Floats) -> float:
            return self._misfit(self._within(start + scaled * steps))

        minimum = minimize(
            misfit,
            np.zeros(len(start)),
            method="Nelder-Mead",
            options={"xatol": 1e-4, "fatol": 1e-6, "maxfev": 400},
        )
        return [float(value) for value in self._within(start + minimum.x * steps)]

    @cached_property
    def at_ends(self) -> dict[int, float]:
        """The parameters whose best value is an end of their range, so that one beyond it may fit better."""
        ends = {}
        for i, (value, (low, high)) in enumerate(zip(self.best, self.ends, strict=True)):
            end = low if value - low < high - value else high
            if abs(value - end) <= AT_END * (high - low):
                ends[i] = end
        return ends

    @property
    def beyond(self) -> str:
        """What an answer begins with if a parameter is at an end of its range; else empty."""
        if not self.at_ends:
            return ""
        values = ", ".join(f"{self.names[i]}={number_text(end)}" for i, end in self.at_ends.items())
        ranges = " and ".join(f"{self.names[i]}_between=" for i in self.at_ends)
        return f"AT AN END OF ITS RANGE ({values}): a value beyond may fit better. Give a wider {ranges}."

    def _within(self, values: Floats) -> list[float]:
        return [min(max(float(value), low), high) for value, (low, high) in zip(values, self.ends, strict=True)]

    def errors(self, values: Sequence[float]) -> list[float]:
        """About the standard errors of the parameters."""
        slopes = self.slopes(values)
        information = slopes.T @ self.solved(self.law(values), slopes)
        covariance = np.linalg.pinv(information * float(np.mean(self.possible)) ** 2)
        return [
            min(math.sqrt(max(float(variance), 0.0)) or math.inf, high - low)
            for variance, (low, high) in zip(np.diag(covariance), self.ends, strict=True)
        ]

    # Intervals --------------------------------------------------------------------------------------------------------

    def interval(self, which: int, error: float) -> tuple[float, float]:
        """The interval of a parameter, which misses its true value with at most this probability."""
        lost = LOST * error if len(self.free) > 1 else 0.0
        level = (error - lost) / 2
        low, high = self.ends[which]
        spread = max(self.errors(self.best)[which], 1e-9 * (high - low))
        bounds = []
        for side, end, step in ((1, low, -spread), (0, high, spread)):

            def gap(value: float, side: int = side) -> float:
                return normal_gap(self._largest(which, value, side, lost, exact=False), level)

            rough = _first_accepted(gap, self.best[which], end, step)
            away = PROOF * step
            while rough != end and self._largest(which, rough, side, lost, exact=True) > level:
                rough = max(rough + away, end) if step < 0 else min(rough + away, end)
                away *= 2
            bounds.append(rough)
        return bounds[0], bounds[1]

    def _largest(self, which: int, value: float, side: int, lost: float, *, exact: bool) -> float:
        """The largest tail over the values of the other parameter that are not rejected beside this value."""
        if len(self.free) == 1:
            return self.tail([value], which, side, efficient=False, exact=exact)
        low, high = self._others(which, value, lost, exact=exact)
        return max(
            self.tail(_pair(which, value, other), which, side, efficient=True, exact=exact)
            for other in _spaced(low, high, PLACES).tolist()
        )

    def _others(self, which: int, value: float, lost: float, *, exact: bool) -> tuple[float, float]:
        """The values of the other parameter that its score does not reject beside this value of the first."""
        other, values = 1 - which, []
        start, spread = self._best_beside(which, value)

        def tail(at: float, side: int, *, exact: bool) -> float:
            return self.tail(_pair(which, value, at), other, side, efficient=False, exact=exact)

        for side, end, step in zip((1, 0), self.ends[other], (-spread, spread), strict=True):

            def gap(at: float, side: int = side) -> float:
                return normal_gap(tail(at, side, exact=False), lost / 2)

            rough = _first_accepted(gap, start, end, step)
            away = PROOF * step
            while exact and rough != end and tail(rough, side, exact=True) > lost / 2:
                rough = max(rough + away, end) if step < 0 else min(rough + away, end)
                away *= 2
            values.append(rough)
        return values[0], values[1]

    def _best_beside(self, which: int, value: float) -> tuple[float, float]:
        """About the value of the other parameter that fits best beside this value, and its standard error."""
        other = 1 - which
        low, high = self.ends[other]
        slopes = self.slopes(self.best)
        information = slopes.T @ self.solved(self.law(self.best), slopes)
        along = information[other, which] / max(information[other, other], 1e-300)
        start = self.best[other] - along * (value - self.best[which])
        return min(max(start, low), high), self.errors(self.best)[other]

    # Does the family fit? ---------------------------------------------------------------------------------------------

    def fit_pvalue(self, error: float) -> float:
        """The p-value of the table's residual: of the directions in which it may differ from the family, the worst.

        The directions are polynomials in the order of the cells, made uncorrelated with the scores of the parameters.
        Each has its exact law; their p-values are combined by Bonferroni. The parameters are those within an interval
        each, at their ends and in the middle, whose error probability is added. A parameter at an end of its range
        explains nothing: the table asks for a value beyond.
        """
        spreads = self.errors(self.best)
        away = 2.0 + math.sqrt(-2 * math.log(max(error, 1e-12)))
        places = [list(self.best)]
        for i, spread in enumerate(spreads):
            if i in self.at_ends:  # values further inside fit even less
                continue
            for sign in (-1.0, 1.0):
                moved = list(self.best)
                moved[i] += sign * min(spread, 1e300) * away / 2
                places.append(self._within(np.array(moved)))
        return min(max(self._residual(values) for values in places), 1.0)

    def _residual(self, values: Sequence[float]) -> float:
        """The p-value of the residual for given parameters."""
        free = [i for i in range(len(self.free)) if i not in self.at_ends]
        law, slopes = self.law(values), self.slopes(values)[:, free]
        return _worst_direction(self.table, self.possible, law, slopes, self.solved(law, slopes), self.solved)


def fit_pvalue(table: Table, law: Distribution, possible: Sequence[int]) -> float:
    """The p-value of the difference of a table from one distribution, in the worst of several directions."""
    masses = cell_law(table.cells, law)[:-1]
    total = math.fsum(masses)
    if total <= 0:
        raise InvalidInput(f"No record of {law.describe()} has a cell in the table. Use a table with other cells.")
    masses, none = np.asarray(masses / total), np.zeros((len(masses), 0))

    def solved(probabilities: Floats, columns: Floats) -> Floats:
        return _inverse_times(table, possible, probabilities, columns)

    return _worst_direction(table, possible, masses, none, none, solved)


def _worst_direction(
    table: Table,
    possible: Sequence[int],
    law: Floats,
    slopes: Floats,
    solved_slopes: Floats,
    solved: Callable[[Floats, Floats], Floats],
) -> float:
    """The smallest p-value over directions in which the cells' probabilities may differ, by Bonferroni.

    The direction with about the smallest tail is chosen; its exact tail is at least the smallest one.
    """
    projection = np.linalg.pinv(slopes.T @ solved_slopes) if slopes.shape[1] else np.zeros((0, 0))
    tails: list[tuple[float, Statistic, int]] = []
    for direction in _directions(table, law, slopes.shape[1]):
        plain = solved(law, direction[:, None])[:, 0]
        weights = plain - solved_slopes @ (projection @ (slopes.T @ plain))
        # A direction in which the parameters themselves move the table says nothing of the fit.
        if float(direction @ weights) > UNEXPLAINED * float(direction @ plain) > 0:
            statistic = table.statistic(weights)
            tails += [(statistic.rough_tail(law, possible, side), statistic, side) for side in (0, 1)]
    if not tails:
        return 1.0
    _, statistic, side = min(tails, key=lambda each: each[0])
    return min(len(tails) * statistic.tail(law, possible, side), 1.0)


def _directions(table: Table, law: Floats, unknown: int) -> list[Floats]:
    """Differences from the law: of each label or, if the cells have an order, polynomials in it."""
    if isinstance(table.cells, LabelCells):
        return [np.where(np.arange(len(law)) == place, 1.0, 0.0) - law for place in range(len(law))]
    middles = np.cumsum(law) - law / 2
    directions = []
    for degree in range(1, COMPONENTS + unknown + 1):
        shape = np.polynomial.legendre.Legendre.basis(degree, domain=[0, 1])(middles)
        directions.append(law * (shape - float(law @ shape)))
    return directions


def _inverse_times(table: Table, possible: Sequence[int], law: Floats, columns: Floats) -> Floats:
    """The inverse of about the covariance of the counts, times columns."""
    n, noise = float(np.mean(possible)), table.noise.variance
    inverse = 1.0 / (n * law + noise)
    u = inverse * law
    # How much the number of present records is unknown: then the counts' sum tells nothing.
    spread = (possible[-1] - possible[0]) ** 2 / 12.0 - n
    scaled = inverse[:, None] * columns
    factor = spread / (1 + spread * float(law @ u))
    return np.asarray(scaled - factor * np.outer(u, law @ scaled))


def _pair(which: int, value: float, other: float) -> list[float]:
    return [value, other] if which == 0 else [other, value]


def _spaced(low: float, high: float, count: int) -> Floats:
    """Numbers from low to high: evenly spread, or in equal ratios if the range is wide and positive."""
    if low > 0 and high > 4 * low:
        return np.geomspace(low, high, count)
    return np.linspace(low, high, count)


def _first_accepted(gap: Callable[[float], float], start: float, end: float, step: float) -> float:
    """The number, on the way from a start to an end, beyond which values are rejected; to the safe side.

    Invariant: the gap is above 0 at ``inside`` and at most 0 at ``outside``.

    Args:
        gap: above 0 for values that are not rejected.
        start: a value near the middle of those that are not rejected.
        end: the end of the range on this side.
        step: about a standard error, with the sign of the direction.
    """
    sign = 1.0 if step > 0 else -1.0
    inside, outside, size = start, start, 2.0 * step
    while True:
        if sign * (outside + size) >= sign * end:
            outside = end
            if gap(end) > 0:
                return end
            break
        outside += size
        if gap(outside) <= 0:
            break
        inside, size = outside, size * 2
    if inside == start and gap(start) <= 0:  # the start itself is rejected: look for the nearest value that is not
        return start
    away = FINEST * abs(step)
    if inside == outside:
        return inside
    crossing = float(brentq(gap, inside, outside, xtol=max(away, 1e-12 * abs(outside))))
    return min(max(crossing + sign * 2 * away, min(start, end)), max(start, end))


def one_sided(text: Any, name: str) -> tuple[str, str, float, bool]:
    """The family of a text such as "normal(mean<=26, sd=?)", the parameter, its bound, and whether it is an upper one.

    Args:
        text: the hypothesis.
        name: what it is called in messages.
    """
    matches = _BOUND.findall(text) if isinstance(text, str) else []
    if len(matches) != 1:
        raise InvalidInput(
            f"{name}={shown(text)} must have one bound beside a question mark, such as 'normal(mean<=26, sd=?)'."
        )
    parameter, sign, bound = matches[0]
    return _BOUND.sub(r"\1=?", text), parameter, float(bound), sign == "<="


OVERDISPERSED = Family(
    "negative_binomial",
    "nbinom",
    "whole numbers from 0 on",
    (
        Parameter("mean", POSITIVE, "the mean"),
        Parameter("dispersion", POSITIVE, "the variance is mean + dispersion mean^2"),
    ),
    discrete=True,
)
"""The negative binomial family by its mean and dispersion, as regressions of counts have it."""


@dataclass(frozen=True)
class OverdispersedBox(Box):
    """Members of the negative binomial family whose mean and dispersion lie between ends."""

    def member(self, values: Sequence[float]) -> Numbers:
        mean, dispersion = values
        return member_of(FAMILIES["negative_binomial"], (1 / dispersion, 1 / (1 + mean * dispersion)))


def read_family(text: Any, ranges: Mapping[str, Any], edges: Floats) -> Box:
    """The family that a text with question marks names, each unknown parameter with its range.

    Args:
        text: such as "normal(mean=?, sd=?)".
        ranges: ranges by the name of the parameter; "" is that of the first unknown one.
        edges: the edges of the table, from which a range follows that is not given.
    """
    match = _CALL.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or "?" not in match[2]:
        raise InvalidInput(f"family={shown(text)} must be a family with question marks, such as {EXAMPLE}.")
    family = FAMILIES.get(match[1].lower())
    words = [word.strip() for word in match[2].split(",")]
    if family is None:
        families = ", ".join(FAMILIES)
        raise InvalidInput(f"family={shown(text)} must be one of the named families: {families}.")
    if len(words) > len(family.parameters):
        form = ", ".join(parameter.name for parameter in family.parameters)
        raise InvalidInput(
            f"family={shown(text)} must be '{family.name}({form})', a value or a question mark for each."
        )
    names = [word.rpartition("=")[0].strip() for word in words]
    overdispersed = family.name == OVERDISPERSED.name and {"mean", "dispersion"} & set(names) != set()
    family = OVERDISPERSED if overdispersed else family
    stated, unknown = dict(ranges), []
    for place, (name, word) in enumerate(zip(names, words, strict=True)):
        if word.rpartition("=")[2].strip() != "?":
            continue
        parameter = next(
            (one for one in family.parameters if one.name == (name or family.parameters[place].name)), None
        )
        if parameter is None:
            listed = ", ".join(one.name for one in family.parameters)
            raise InvalidInput(f"family={shown(text)}: {family.name} has no parameter {name!r}. It has {listed}.")
        unknown.append(parameter.name)
        chosen = stated.pop(parameter.name, stated.pop("", None) if len(unknown) == 1 else None)
        low, high = _default_range(parameter, edges, text) if chosen is None else _two_numbers(parameter.name, chosen)
        words[place] = f"{parameter.name} in [{number_text(low)}, {number_text(high)}]"
    stated.pop("", None)
    if stated:
        other = next(iter(stated))
        raise InvalidInput(
            f"{other}_between goes with {other}=? in the family, and family={shown(text)}. Leave it out."
        )
    if overdispersed:
        return _overdispersed(words, text)
    box = parse(f"{match[1]}({', '.join(words)})", "family", defaults=False)
    if not isinstance(box, Box) or not 1 <= len(box.free) <= 2:
        raise InvalidInput(f"family={shown(text)} must have one or two unknown parameters, such as {EXAMPLE}.")
    return box


def _overdispersed(words: Sequence[str], text: str) -> OverdispersedBox:
    """The box of words such as "mean in [1, 9]" and "dispersion=0.5"."""
    ends: dict[str, tuple[float, float]] = {}
    for word in words:
        match = re.fullmatch(rf"(\w+)\s*(?:=\s*{_NUMBER}|in \[{_NUMBER}, {_NUMBER}\])", word)
        values = [] if match is None else [float(one) for one in match.groups()[1:] if one is not None]
        if match is not None and min(values) > 0:
            ends[match[1]] = (values[0], values[-1])
    if set(ends) != {"mean", "dispersion"}:
        raise InvalidInput(
            f"family={shown(text)} must give mean and dispersion, each a number above 0 or a question mark with a "
            "range above 0: between= and dispersion_between=."
        )
    low, high = zip(ends["mean"], ends["dispersion"], strict=True)
    return OverdispersedBox(OVERDISPERSED, tuple(low), tuple(high))


def _two_numbers(name: str, ends: Any) -> tuple[float, float]:
    try:
        low, high = map(number_or_nan, ends)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"{name}_between={shown(ends)} must be two finite numbers, the lower one first.")
    return low, high


def _default_range(parameter: Parameter, edges: Floats, text: str) -> tuple[float, float]:
    """A range that follows from the table: its own range, or from a quarter of a cell to its whole length."""
    rule, holds = parameter.rule
    if len(edges) < 2:
        raise InvalidInput(
            f"{parameter.name}_between is missing: between which two numbers does {parameter.name} lie in {text!r}?"
        )
    length, finest = float(edges[-1] - edges[0]), float(np.diff(edges).min()) / 4
    if holds(-1.0):
        return float(edges[0]), float(edges[-1])
    if holds(2.5):
        return finest, max(length, abs(float(edges[-1])))
    raise InvalidInput(
        f"{parameter.name}_between is missing: {parameter.name} must be {rule}. Between which two numbers does it lie?"
    )
