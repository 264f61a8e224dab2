r"""Sets of distributions: boxes of parameters, ``near``, ``contaminated`` and ``any_of``.

========================================== ====================================================================
set                                        its members
========================================== ====================================================================
``normal(mean<=0, sd=1)``, ``p in [a, b]`` a family whose parameters lie in a box (:class:`Box`)
``near(P, g)``                             every distribution within total variation g of P
``contaminated(P, g)``                     (1-g) P + g anything
``any_of(P1, P2, ...)``                    one of these
========================================== ====================================================================

A test decides by a total of scores, and every record's score speaks for P the more the higher it is. So of two members
the one whose scores are stochastically lower is worse for the null. What a set must know is how low (or how high) the
law of a score can get: for a box, bounds of the cdf at any point. At each point the cdf of every family here is
monotone in each of its parameters while the others stay fixed, so its extremes over a box are among the corners.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatest.errors import InvalidDistribution, shown
from privatest.hypotheses.distribution import Distribution, Hypothesis, Leaf, Numbers, Side, number_text
from privatest.hypotheses.families import FAMILIES, Family, ScipyIntegers, ScipyReals
from privatest.numbers import Floats, number_or_nan

FAR = 1e6
"""Number of steps towards a limit at which members are compared to see whether any difference is left."""


@dataclass(frozen=True)
class Corruption:
    """A share of the records comes from anywhere, as in ``near(P, 0.02)`` and ``contaminated(P, 0.02)``.

    Attributes:
        kind: "near", where any part of P's mass may move, or "contaminated", where P keeps its shape.
        share: the share of the records, between 0 and 1.
    """

    kind: str
    share: float

    def worst(self, law: Floats, side: Side) -> Floats:
        """The stochastically lowest or highest law of a score, given its law under P; scores increase along the array.

        The first (or last) entry must belong to the lowest (or highest) score that any record can have.

        >>> Corruption("near", 0.25).worst(np.array([0.0, 0.5, 0.5]), "low").tolist()
        [0.25, 0.5, 0.25]
        >>> Corruption("contaminated", 0.25).worst(np.array([0.0, 0.5, 0.5]), "low").tolist()
        [0.25, 0.375, 0.375]
        """
        if side == "high":
            return self.worst(law[::-1], "low")[::-1]
        if self.kind == "contaminated":
            corrupted = (1 - self.share) * law
            corrupted[0] += self.share
            return corrupted
        # The mass is taken from the highest scores.
        below = np.minimum(np.cumsum(law) + self.share, 1.0)
        return np.diff(below, prepend=0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Corrupted(Hypothesis):
    """``near`` or ``contaminated``: a set of distributions with a share of other records."""

    centre: Hypothesis
    corruption: Corruption

    @property
    def kind(self) -> str:
        return self.centre.kind

    @property
    def spec(self) -> str | None:
        inner = self.centre.spec
        return None if inner is None else f"{self.corruption.kind}({inner}, {number_text(self.corruption.share)})"

    def describe(self) -> str:
        return f"{self.corruption.kind}({self.centre.describe()}, {number_text(self.corruption.share)})"

    def leaves(self) -> list[Leaf]:
        return [Leaf(leaf.of, (*leaf.corruptions, self.corruption)) for leaf in self.centre.leaves()]


@dataclass(frozen=True, eq=False, repr=False)
class AnyOf(Hypothesis):
    """``any_of``: the union of several sets."""

    parts: tuple[Hypothesis, ...]

    @property
    def kind(self) -> str:
        return self.parts[0].kind

    @property
    def spec(self) -> str | None:
        texts = [part.spec for part in self.parts]
        return None if None in texts else f"any_of({', '.join(text for text in texts if text is not None)})"

    def describe(self) -> str:
        return f"any_of({', '.join(part.describe() for part in self.parts)})"

    def leaves(self) -> list[Leaf]:
        return [leaf for part in self.parts for leaf in part.leaves()]


@dataclass(frozen=True, eq=False, repr=False)
class Box(Hypothesis):
    """Members of a family whose parameters lie between ends, which may be infinite; equal ends fix a parameter."""

    family: Family
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def kind(self) -> str:
        return "integers" if self.family.discrete else "reals"

    @property
    def spec(self) -> str:
        return self.describe()

    def describe(self) -> str:
        words = []
        for parameter, a, b in zip(self.family.parameters, self.low, self.high, strict=True):
            if a == b:
                words.append(f"{parameter.name}={number_text(a)}")
            elif a == _limits(parameter.rule[1])[0]:
                words.append(f"{parameter.name}<={number_text(b)}")
            elif b == _limits(parameter.rule[1])[1]:
                words.append(f"{parameter.name}>={number_text(a)}")
            else:
                words.append(f"{parameter.name} in [{number_text(a)}, {number_text(b)}]")
        return f"{self.family.name}({', '.join(words)})"

    def leaves(self) -> list[Leaf]:
        return [Leaf(self)]

    @property
    def free(self) -> list[int]:
        """Positions of the parameters that are not fixed."""
        return [i for i, (a, b) in enumerate(zip(self.low, self.high, strict=True)) if a < b]

    @property
    def supports(self) -> list[tuple[float, float]]:
        """The supports of the members at the corners, and of some on the way to a limit that no member attains."""
        rules = [parameter.rule[1] for parameter in self.family.parameters]
        supports = []
        for values in self.corners():
            inside = [
                value if rules[i](value) else _towards(value, self._other_end(i, value), 1.0)
                for i, value in enumerate(values)
            ]
            member = self._computable(inside)
            supports += [] if member is None else [member.support]
        return supports

    def shifts(self, which: int) -> bool:
        """Whether the members are one law that a parameter shifts along the line, the others staying fixed."""
        return self.family.parameters[which].name == "loc"

    def member(self, values: Sequence[float]) -> Numbers:
        """Return the member with these parameters."""
        return member_of(self.family, tuple(values))

    def corners(self) -> list[tuple[float, ...]]:
        """All combinations of the ends of the parameters. An end that no member has stands for the limit."""
        ends = [(a,) if a == b else (a, b) for a, b in zip(self.low, self.high, strict=True)]
        return list(itertools.product(*ends))

    @property
    def middle(self) -> tuple[float, ...]:
        """The parameters of a member inside the box."""
        return tuple(self._inside(which) for which in range(len(self.low)))

    def _inside(self, which: int) -> float:
        """Return a value inside the range of a parameter; a whole number, if the parameter must be one."""
        middle = _between(self.low[which], self.high[which])
        return math.floor(middle) if self.family.parameters[which].rule[0].startswith("a whole number") else middle

    def halves(self, which: int) -> tuple[Box, Box]:
        """Return the two halves of the box along a parameter."""
        cut = self._inside(which)
        ends = [list(self.high), list(self.low)]
        ends[0][which] = ends[1][which] = cut
        return replace(self, high=tuple(ends[0])), replace(self, low=tuple(ends[1]))

    def below(self, x: Floats) -> tuple[Floats, Floats]:
        """Bounds of Pr[X < x] (reals) or Pr[X <= x] (integers) over the whole box, attained or approached."""
        bounds = [self._at(values, x) for values in self.corners()]
        lows, highs = zip(*bounds, strict=True)
        return np.minimum.reduce(lows), np.maximum.reduce(highs)

    def _at(self, values: tuple[float, ...], x: Floats) -> tuple[Floats, Floats]:
        """The cdf at a corner; where the corner is a limit that no member attains, what it may be at the limit."""
        rules = [parameter.rule[1] for parameter in self.family.parameters]
        missing = [i for i, value in enumerate(values) if not rules[i](value)]
        if not missing:
            member = self._computable(values)
            return (np.zeros(len(x)), np.ones(len(x))) if member is None else (member.cdf(x), member.cdf(x))
        # The cdf moves one way as a parameter goes to its limit, the others staying where they are: beyond the last
        # member it goes on in that way, as far as 0 or 1.
        near = list(values)
        for i in missing:
            near[i] = _towards(values[i], self._other_end(i, values[i]), 1.0)
        start = self._computable(near)
        if start is None:
            return np.zeros(len(x)), np.ones(len(x))
        lower = upper = middle = start.cdf(x)
        for i in missing:
            ways = (_towards(values[i], self._other_end(i, values[i]), steps) for steps in (16.0, 4.0, 2.0))
            found_there = (self._computable([*near[:i], value, *near[i + 1 :]]) for value in ways)
            closer = next((member for member in found_there if member is not None), None)
            if closer is None:
                return np.zeros(len(x)), np.ones(len(x))
            rising = _direction(closer.cdf(x) - middle)
            # An end of the support that the parameter does not move: no member lies beyond.
            if start.support[0] == closer.support[0]:
                outside = x < start.support[0] if self.family.discrete else x <= start.support[0]
                rising = np.where(outside, 0.0, rising)
            if start.support[1] == closer.support[1]:
                rising = np.where(x >= start.support[1], 0.0, rising)
            lower, upper = np.where(rising < 0, 0.0, lower), np.where(rising > 0, 1.0, upper)
        return lower, upper

    def _computable(self, values: Sequence[float]) -> Numbers | None:
        """Return the member, or None if its mass is too near a limit to be distinguished from it in floating point."""
        try:
            return self.member(values)
        except InvalidDistribution:
            return None

    def _other_end(self, which: int, end: float) -> float:
        return self.high[which] if end == self.low[which] else self.low[which]


def member_of(family: Family, values: tuple[float, ...]) -> Numbers:
    """Return the distribution of a family with these parameters."""
    family.check(values)
    kind: type[ScipyIntegers] | type[ScipyReals] = ScipyIntegers if family.discrete else ScipyReals
    return kind(family.freeze(values), family.text(values))


def _between(a: float, b: float) -> float:
    """Return a number between two ends, at most one of which is infinite."""
    if a == b:
        return a
    if math.isinf(a) and math.isinf(b):
        return 0.0
    if math.isinf(b):
        return a + max(abs(a), 1.0)
    if math.isinf(a):
        return b - max(abs(b), 1.0)
    if a >= 0 and b > 4 * a:
        return math.sqrt(a * b) if a > 0 else b / 4
    return (a + b) / 2


def _towards(limit: float, start: float, steps: float) -> float:
    """Return a number on the way from ``start`` to the limit, nearer to the limit the more steps."""
    if math.isinf(limit):
        return start + math.copysign(steps * max(abs(start), 1.0), limit)
    return limit + (start - limit) / (1 + steps)


def _direction(change: Floats) -> Floats:
    """The sign of the change of the cdf at each point; if it hardly changes, that at the next point where it does."""
    moved = np.flatnonzero(np.abs(change) > 1e-12)
    if len(moved) == 0:
        return np.zeros(len(change))
    place = np.clip(np.searchsorted(moved, np.arange(len(change))), 0, len(moved) - 1)
    return np.asarray(np.sign(change[moved[place]]), dtype=float)


def corrupted(kind: str, centre: Hypothesis, share: Any, name: str) -> Corrupted:
    """The set ``near(centre, share)`` or ``contaminated(centre, share)``; messages name the argument ``name``."""
    number = number_or_nan(share)
    if not 0 < number < 1:
        raise InvalidDistribution(
            f"{kind}: {name}={shown(share)} must be a number between 0 and 1, such as 0.02 for 2% of the records."
        )
    return Corrupted(centre, Corruption(kind, number))


def union(parts: Sequence[Hypothesis], name: str) -> AnyOf:
    """Return the union of sets of one kind."""
    if len(parts) < 2:
        raise InvalidDistribution(f"{name}: any_of takes two distributions or more, not {len(parts)}.")
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        raise InvalidDistribution(
            f"{name}: the parts of any_of must be of one kind, not {' and '.join(sorted(kinds))}."
        )
    return AnyOf(tuple(parts))


def make_box(family: Family, ranges: Sequence[tuple[float, float]]) -> Box:
    """The members of a family with parameters in these ranges; an infinite end means as far as the family goes."""
    lows, highs = [], []
    for parameter, (low, high) in zip(family.parameters, ranges, strict=True):
        rule, holds = parameter.rule
        least, most = _limits(holds)
        for end in (low, high):
            if math.isfinite(end) and not holds(end):
                raise InvalidDistribution(
                    f"{family.name}: {parameter.name}={number_text(end)} must be {rule}, in {family.signature()}."
                )
        lows.append(least if math.isinf(low) else low)
        highs.append(most if math.isinf(high) else high)
    box = Box(family, tuple(lows), tuple(highs))
    if family.name == "uniform" and not box.high[0] < box.low[1]:
        lowest, highest = number_text(box.low[1]), number_text(box.high[0])
        raise InvalidDistribution(
            f"uniform: low must stay below high, but low goes up to {highest} and high down to {lowest}. Give ranges "
            "that end before that, such as uniform(0, high in [1, 2])."
        )
    return box


def _limits(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return the ends of the interval on which a parameter's rule holds. The rule may fail at the ends themselves."""
    lowest = ((-math.inf, -1e300), (0.0, 1e-100), (1e-12, 1e-12), (1.0, 1.0 + 1e-9), (1.0, 1.0))
    least = next(end for end, inside in lowest if holds(inside))
    return least, next((end for end, inside in ((math.inf, 1e300), (2.0**52, 2.0**52)) if holds(inside)), 1.0)


def parameters_of(law: Distribution) -> tuple[Family, tuple[float, ...]] | None:
    """Return the family and the parameters of a distribution; None if it is of no named family."""
    name, _, words = (law.spec or "").rstrip(")").partition("(")
    if name not in FAMILIES:
        return None
    return FAMILIES[name], tuple(float(word) for word in words.split(",")) if words else ()


def nearest_members(
    null: Distribution | Box, alternative: Distribution | Box
) -> list[tuple[Distribution, Distribution]]:
    """Return pairs of members that are hard to distinguish, with the hardest pair if the sets are of one family."""
    boxes = [_as_box(each) for each in (null, alternative)]
    if boxes[0] is not None and boxes[1] is not None and boxes[0].family == boxes[1].family:
        choices = [
            _closest(ends) for ends in zip(boxes[0].low, boxes[0].high, boxes[1].low, boxes[1].high, strict=True)
        ]
        return _members(boxes[0], boxes[1], choices)
    return list(itertools.product(_some_members(null), _some_members(alternative)))


def _members(
    one: Box, other: Box, choices: Sequence[Sequence[tuple[float, float]]]
) -> list[tuple[Distribution, Distribution]]:
    """Members of two boxes of a family with every combination of these values of each parameter, limits left out."""
    rules = [parameter.rule[1] for parameter in one.family.parameters]
    members: list[tuple[Distribution, Distribution]] = []
    for values in itertools.product(*choices):
        if all(rule(a) and rule(b) for rule, (a, b) in zip(rules, values, strict=True)):
            members.append((one.member([a for a, _ in values]), other.member([b for _, b in values])))
    return members


def far_members(
    null: Distribution | Box, alternative: Distribution | Box
) -> list[tuple[str, Distribution, Distribution]]:
    """Return, for each parameter with the same limit in both boxes, its name and members near the limit."""
    if not isinstance(null, Box) or not isinstance(alternative, Box) or null.family != alternative.family:
        return []
    ends = list(zip(null.low, null.high, alternative.low, alternative.high, strict=True))
    nearest = [_closest(each) for each in ends]
    members = []
    for i, (low, high, other_low, other_high) in enumerate(ends):
        for limit, shared, start in ((high, high == other_high, max(low, other_low)), (low, low == other_low, high)):
            if math.isinf(limit) and shared and math.isfinite(start):
                far = _towards(limit, start, FAR)
                pairs = _members(null, alternative, [*nearest[:i], [(far, far)], *nearest[i + 1 :]])
                members += [(null.family.parameters[i].name, *pair) for pair in pairs[:1]]
    return members


def _as_box(law: Distribution | Box) -> Box | None:
    if isinstance(law, Box):
        return law
    parameters = parameters_of(law)
    return None if parameters is None else Box(parameters[0], parameters[1], parameters[1])


def _some_members(law: Distribution | Box) -> list[Distribution]:
    if isinstance(law, Distribution):
        return [law]
    rules = [parameter.rule[1] for parameter in law.family.parameters]
    fine = [values for values in law.corners() if all(rule(v) for rule, v in zip(rules, values, strict=True))]
    return [law.member(values) for values in [*fine, law.middle]]


def _closest(ends: tuple[float, float, float, float]) -> list[tuple[float, float]]:
    """Return the nearest values of one parameter under the null and under the alternative."""
    low, high = max(ends[0], ends[2]), min(ends[1], ends[3])
    if low > high:  # the ranges do not meet
        return [(ends[1], ends[2]) if ends[1] < ends[2] else (ends[0], ends[3])]
    inner = [_between(low, high), *(end for end in (low, high) if math.isfinite(end))]
    return [(value, value) for value in dict.fromkeys(inner)]
