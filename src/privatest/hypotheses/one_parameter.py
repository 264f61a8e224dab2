"""A family with one unknown parameter, written with a question mark: the parameter that an estimate is about."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privatest.errors import InvalidDistribution, InvalidInput, shown
from privatest.hypotheses.distribution import Distribution, Labels, Numbers, number_text
from privatest.hypotheses.parse import as_hypothesis, parse
from privatest.hypotheses.sets import Box, make_box, parameters_of
from privatest.numbers import Floats, number_or_nan
from privatest.unanswered_questions import TWO_UNKNOWN, sentence, unanswered

_MARK = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\?""")
"""A question mark, or quoted text, inside which a question mark is a letter."""
EXAMPLE = "'normal(mean=?, sd=1)', 'bernoulli(?)' or 'categorical(yes=?)'"
NUDGE = 1e-6
"""Distance from an end that no member has to the first member, as a share of the range."""
FAR = 100.0
"""Default range beyond the parameters of a test's pair, as a multiple of their distance."""
FARTHEST = 1e50
"""Ends of a range lie within this of 0, and the larger of two positive ones is at most so many times the other: ratios
of densities are of the order of its square, and their squares must be finite numbers."""
NARROWEST = 1e-12
"""Least distance of two ends, relative to the larger: doubles must tell numbers between them apart."""
MANY_TIMES = 4.0
"""Ratio of the ends of a range of positive numbers from which on it is spaced logarithmically."""


@dataclass(frozen=True)
class OneParameter:
    """Text with a question mark for one parameter, and the range that parameter lies in.

    Other parameters may be known roughly ("sd in [0.8, 1.2]"). ``categorical(yes=?)`` is the share of the records that
    are this label, whatever the others are.

    Attributes:
        text: such as "normal(mean=?, sd=1)".
        low, high: the range.
    """

    text: str
    low: float
    high: float

    @classmethod
    def of(cls, family: Any, between: Any) -> OneParameter:
        """Read a family and a range as a user wrote them. Raises InvalidInput without exactly one question mark."""
        _refuse_unanswered(family)
        _mark(family)
        if family.partition("(")[0].strip().lower() == "zipf":
            raise InvalidInput(
                f"family={shown(family)} has tails too heavy for a sum of scores. Use 'poisson(?)' or 'geometric(?)'."
            )
        ends = _checked_range(between, family)
        unknown = cls(family.strip(), *ends)
        if unknown.name == "cut":  # a family that cannot be read, and one without such a parameter, are refused here
            raise InvalidInput(f"family={shown(family)} asks for the cut, which must be public. {unanswered('median')}")
        return unknown

    @cached_property
    def label(self) -> Hashable | None:
        """The label whose share is the parameter; None for any other parameter."""
        word, _, rest = self.text.partition("(")
        if word.strip().lower() not in ("categorical", "discrete"):
            return None
        law: Any = None
        with contextlib.suppress(InvalidDistribution):
            law = as_hypothesis(with_value(self.text, 1), "family").leaves()[0].of
        if not isinstance(law, Labels) or len(law.labels) != 1 or "=" not in rest:
            raise InvalidDistribution(
                f"family={shown(self.text)} must name one label, such as 'categorical(yes=?)': the share of the "
                "records that are that label."
            )
        return law.labels[0]

    @property
    def is_share(self) -> bool:
        """Whether the parameter is the share of a label."""
        return self.label is not None

    @cached_property
    def _varied(self) -> tuple[int, str]:
        """Position and name of the parameter with the question mark."""
        one, other = (self._parsed(value) for value in self.inner)
        moved = [i for i, (a, b) in enumerate(zip(one.low, other.low, strict=True)) if a != b]
        if len(moved) != 1 or moved[0] in one.free:
            raise InvalidDistribution(
                f"family={shown(self.text)} must have the question mark in place of one parameter, such as {EXAMPLE}."
            )
        return moved[0], one.family.parameters[moved[0]].name

    @property
    def name(self) -> str:
        """The parameter's name."""
        if self.is_share:
            if not 0 <= self.low < self.high <= 1:
                raise InvalidInput(f"between={(self.low, self.high)} must lie between 0 and 1: it is a share.")
            return f"share of {self.label}"
        before = self.text[: _mark(self.text)].rstrip()
        words = before[:-1].replace("(", " ").replace(",", " ").split() if before.endswith("=") else []
        return words[-1] if words and words[-1] == "rate" else self._varied[1]

    @cached_property
    def inner(self) -> tuple[float, float]:
        """The range; an end that no member has is moved inside."""
        if self.is_share:
            return self.low, self.high
        ends, away = [], NUDGE * (self.high - self.low)
        self._check_text()
        for end, nudged in ((self.low, self.low + away), (self.high, self.high - away)):
            try:
                self._parsed(end)
            except InvalidDistribution as error:
                end = self._inside(nudged, error)
            ends.append(end)
        return ends[0], ends[1]

    def _check_text(self) -> None:
        """Raise InvalidDistribution if the family has no member at any value, so that its text is wrong."""
        wrong: list[str] = []
        for value in (self.low, (self.low + self.high) / 2, self.high, 0.5, 1.0, 2.0):
            try:
                self._parsed(value)
            except InvalidDistribution as error:
                wrong.append(str(error))
            else:
                return
        raise InvalidDistribution(wrong[1])

    def _inside(self, nudged: float, error: InvalidDistribution) -> float:
        """The value just inside an end that no member has. Raises InvalidDistribution if the end is far outside."""
        try:
            self._parsed(nudged)
        except InvalidDistribution:
            ends = f"({number_text(self.low)}, {number_text(self.high)})"
            raise InvalidDistribution(f"between={ends} goes beyond the family's range. {error}") from None
        return nudged

    def _box_at(self, value: float) -> Box:
        """Return the members with this value of the parameter, as the parser would read the text with it."""
        which, box, inverse = self._read_once
        ends = [[*each[:which], 1 / value if inverse else value, *each[which + 1 :]] for each in (box.low, box.high)]
        return Box(box.family, tuple(ends[0]), tuple(ends[1]))

    @cached_property
    def _read_once(self) -> tuple[int, Box, bool]:
        """Position of the parameter, the members at one end, and whether the text means its reciprocal (a rate)."""
        which, called = self._varied
        return which, self._parsed(self.inner[1]), self.name != called

    def _parsed(self, value: float) -> Box:
        law = parse(with_value(self.text, value), "family", defaults=False)
        if isinstance(law, Box):
            return law
        parameters = parameters_of(law) if isinstance(law, Distribution) else None
        if parameters is None:
            raise InvalidDistribution(
                f"family={shown(self.text)} must be one of the named families, such as {EXAMPLE}."
            )
        return Box(parameters[0], parameters[1], parameters[1])

    def box(self, low: float, high: float) -> Box:
        """Return the members with the parameter between low and high and any value of the others."""
        one, other = self._box_at(low), self._box_at(high)
        return Box(one.family, tuple(map(min, one.low, other.low)), tuple(map(max, one.high, other.high)))

    def member(self, value: float) -> Distribution:
        """Return the member with this value of the parameter and the others in the middle of their ranges."""
        box = self._box_at(value)
        return box.member(box.middle)

    @cached_property
    def exact(self) -> bool:
        """Whether all other parameters are known."""
        return self.is_share or not self._box_at(self.inner[0]).free

    @cached_property
    def support(self) -> tuple[float, float]:
        """The interval in which the records of all members lie; the whole line if the parameter is a share."""
        members = [] if self.is_share else [self.member(value) for value in self.inner]
        ends = [law.support for law in members if isinstance(law, Numbers)]
        return min((low for low, _ in ends), default=-math.inf), max((high for _, high in ends), default=math.inf)

    @cached_property
    def records(self) -> str:
        """A description of valid records, such as "0 or 1" or "finite numbers"."""
        if self.is_share:
            return "present"
        (low, high), whole = self.support, self.box(*self.inner).family.discrete
        if (low, high) == (0, 1) and whole:
            return "0 or 1"
        kind, first, last = "whole numbers" if whole else "numbers", number_text(low), number_text(high)
        if math.isinf(low):
            return f"finite {kind}"
        return f"{kind} from {first} on" if math.isinf(high) else f"{kind} from {first} to {last}"

    @cached_property
    def logarithmic(self) -> bool:
        """Whether values are spaced on a logarithmic scale."""
        return not self.is_share and self.low > 0 and MANY_TIMES * self.low < self.high

    def spaced(self, number: int, low: float | None = None, high: float | None = None) -> Floats:
        """Values of the parameter, evenly spread over the range or a part of it."""
        ends = self.inner[0] if low is None else low, self.inner[1] if high is None else high
        if not self.logarithmic:
            return np.linspace(*ends, number)
        values = np.exp(np.linspace(math.log(ends[0]), math.log(ends[1]), number))
        values[0], values[-1] = ends
        return values

    @cached_property
    def model(self) -> str:
        """The family with the names of all its parameters, such as "normal(mean=?, sd=1)"."""
        if self.is_share:
            return self.text
        which, box, inverse = self._read_once
        words = []
        for i, (parameter, low, high) in enumerate(zip(box.family.parameters, box.low, box.high, strict=True)):
            if i == which:
                words.append(f"{self.name if inverse else parameter.name}=?")
            elif low == high:
                words.append(f"{parameter.name}={number_text(low)}")
            else:
                words.append(f"{parameter.name} in [{number_text(low)}, {number_text(high)}]")
        return f"{box.family.name}({', '.join(words)})"

    @cached_property
    def meaning(self) -> str:
        """A description of the parameter, such as "the mean of log(x), not of x" for lognormal."""
        if self.is_share:
            return self.name
        which, box, inverse = self._read_once
        return "1 over the mean" if inverse else box.family.parameters[which].meaning

    def describe(self) -> str:
        """Return the text, and the range."""
        return f"{self.text}, {self.name} between {number_text(self.low)} and {number_text(self.high)}"

    def check_value(self, value: Any, argument: str) -> float:
        """Return a value of the parameter, within the range."""
        number = number_or_nan(value)
        if not self.low <= number <= self.high:
            raise InvalidInput(
                f"{argument}={shown(value)} must be a value of {self.name} between {number_text(self.low)} and "
                f"{number_text(self.high)}."
            )
        return min(max(number, self.inner[0]), self.inner[1])


def _refuse_unanswered(family: Any) -> None:
    """Raise InvalidInput for questions that this version does not answer, such as two unknown parameters."""
    if callable(family):  # numpy.median, scipy.stats.norm
        reason = unanswered(str(getattr(family, "__name__", "")))
    elif isinstance(family, str):
        words = re.findall(r"\w+", family)
        reason = unanswered("slope" if "~" in family else words[0] if words else "")
        if not reason and sum(mark[1] is None for mark in _MARK.finditer(family)) > 1:
            reason = sentence(TWO_UNKNOWN)
    else:
        reason = ""
    if reason:
        raise InvalidInput(f"family={shown(family)} is not estimated. {reason}")


def share_of(label: Any) -> str:
    """Return the family whose parameter is the share of a label: a word or a whole number, which truth values are.

    >>> share_of("Yes"), share_of(True)
    ('categorical("Yes"=?)', 'categorical(1=?)')
    """
    if isinstance(label, str):
        quoted = label.replace("\\", "\\\\").replace('"', '\\"')
        return f'categorical("{quoted}"=?)'
    if isinstance(label, bool | np.bool_) or number_or_nan(label).is_integer():
        return f"categorical({int(label)}=?)"
    raise InvalidInput(
        f"success={shown(label)} must be a text or a whole number: the label that counts. Use above=... for a cut."
    )


def has_shape(model: str) -> bool:
    """Whether the family could be wrong about the shape of the records, which zeros, ones and shares do not have."""
    return bool(model) and model.partition("(")[0] not in ("bernoulli", "categorical", "discrete", "share_above")


def condition(model: str) -> str:
    """Return the condition under which an interval for the parameter of this family holds, in words.

    Zeros and ones, the share of a label and the share above a number have no shape that could be wrong.

    >>> condition("normal(mean=?, sd=1)"), condition("bernoulli(p=?)")
    ('if the records come from this family', 'if the records are independent')
    """
    return "if the records come from this family" if has_shape(model) or not model else "if the records are independent"


def with_value(family: Any, value: float) -> str:
    """Return the text of a family with this value in place of its question mark."""
    place = _mark(family)
    return f"{family[:place]}{number_text(value)}{family[place + 1 :]}"


def _mark(family: Any) -> int:
    """Return the place of the question mark in a text; refuse a text in which it is not a whole value.

    Guarantees: the text between the comma or bracket on either side is the question mark alone, so a
    number in its place is read as that number.
    """
    text = family if isinstance(family, str) else ""
    marks = [mark.start() for mark in _MARK.finditer(text) if mark[1] is None]
    if len(marks) != 1:
        raise InvalidInput(f"family={shown(family)} must be text with one question mark, such as {EXAMPLE}.")
    before, after = text[: marks[0]].rstrip(), text[marks[0] + 1 :].lstrip()
    whole = before.endswith(("(", ",", "=")) and not before.endswith(("<=", ">="))
    if not whole or after[:1] not in (",", ")"):
        raise InvalidInput(
            f"family={shown(family)}: the question mark stands for the whole value of a parameter. Write ? alone, "
            f"such as {EXAMPLE}, without a sign, digits or a bound beside it."
        )
    return marks[0]


def between_members(null: Distribution, alternative: Distribution, between: Any = None) -> OneParameter:
    """Return the family in which two distributions differ by one parameter, and a range for it.

    Args:
        between: the range; by default far beyond both, as far as the family goes.
    """
    one, other = parameters_of(null), parameters_of(alternative)
    moved = []
    if one is not None and other is not None and one[0] == other[0]:
        moved = [i for i, (a, b) in enumerate(zip(one[1], other[1], strict=True)) if a != b]
    if one is None or other is None or len(moved) != 1:
        raise InvalidInput(
            f"null={null.describe()} and alternative={alternative.describe()} do not differ by one parameter of a "
            "named family, so there is nothing to estimate. Use privatest.estimate with a family."
        )
    family, which = one[0], moved[0]
    words = [f"{p.name}={'?' if i == which else number_text(one[1][i])}" for i, p in enumerate(family.parameters)]
    if between is None:
        low, high = sorted((one[1][which], other[1][which]))
        whole = make_box(family, [(-math.inf, math.inf) if i == which else (v, v) for i, v in enumerate(one[1])])
        between = max(whole.low[which], low - FAR * (high - low)), min(whole.high[which], high + FAR * (high - low))
    return OneParameter.of(f"{family.name}({', '.join(words)})", between)


def _checked_range(between: Any, family: str) -> tuple[float, float]:
    if between is None:
        # A rate has a range of its own.
        word = family.partition("(")[0].strip().lower()
        if word in ("bernoulli", "categorical", "binomial", "binom", "share_above"):
            return 0.0, 1.0
        raise InvalidInput(
            "between is missing: say between which two numbers the parameter lies for sure, between=(low, high)."
        )
    try:
        low, high = map(number_or_nan, between)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high)):
        text = f"({', '.join(map(shown, between))})" if isinstance(between, tuple | list) else shown(between)
        raise InvalidInput(f"between={text} must be two finite numbers, such as between=(-3, 3).")
    if not low < high:
        ends = f"({number_text(low)}, {number_text(high)})"
        raise InvalidInput(f"between={ends} must have its lower end first, and the two must differ.")
    largest = max(abs(low), abs(high))
    if largest > FARTHEST or high > FARTHEST * low > 0 or high - low < NARROWEST * largest:
        raise InvalidInput(
            f"between=({number_text(low)}, {number_text(high)}) has ends that floating-point numbers cannot work with: "
            f"they must lie within {FARTHEST:g} of 0, differ by {NARROWEST:g} of the larger at least, and, where both "
            f"are positive, by a factor of {FARTHEST:g} at most. Measure in other units, or from another place."
        )
    return low, high
