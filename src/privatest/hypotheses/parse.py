"""Distributions, hypotheses and pairs from text such as "normal(0, 1)", from scipy's objects, arrays and mappings.

Text is read by a recursive-descent parser; nothing is ever evaluated.

::

    distribution := name "(" [argument ("," argument)*] ")"
    argument     := [label "="] (number | distribution) | label range
    range        := ("<=" | ">=") number | "in" "[" number "," number "]"
    label        := word | quoted text | integer
    number       := ["-" | "+"] decimal ["/" decimal]

``mixture(0.3, normal(0, 1), 0.7, normal(2, 1))`` alternates weights and distributions. A parameter in a range makes a
set of distributions, as do ``near(normal(0, 1), 0.02)``, ``contaminated(normal(0, 1), 0.02)`` and ``any_of(..., ...)``.

:func:`make_hypotheses` reads a null and an alternative and finds the members of the two that are the hardest to tell
apart.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution, NothingToTest, shown
from privatest.hypotheses.distribution import (
    Distribution,
    Hypothesis,
    IntegerBlocks,
    Labels,
    Leaf,
    Reals,
    WholeNumbers,
    check_probabilities,
    mixed,
    number_text,
)
from privatest.hypotheses.families import (
    ALIASES,
    FAMILIES,
    ClassicNames,
    Family,
    ScipyIntegers,
    ScipyReals,
)
from privatest.hypotheses.pair import ContinuousPair, DiscretePair, Pair
from privatest.hypotheses.sets import Box, corrupted, far_members, make_box, nearest_members, union
from privatest.numbers import suggestion
from privatest.unanswered_questions import unanswered

DEEPEST = 20
LONGEST = 1_000_000
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<sign><=|>=|[][(),=/+-])
    )""",
    re.VERBOSE,
)


_OTHERS = ("categorical", "mixture", "near", "contaminated", "any_of", "median", "median_above", "median_below")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    place: int


@dataclass(frozen=True)
class _Argument:
    label: Hashable | None
    value: float | Hypothesis | _Range
    place: int


@dataclass(frozen=True)
class _Range:
    """A parameter between two ends, which may be infinite."""

    low: float
    high: float


def parse(text: str, name: str = "distribution", *, defaults: bool = True) -> Hypothesis:
    """Return the distribution, or the set of distributions, that ``text`` describes.

    Args:
        text: such as "normal(0, 1)".
        name: what messages call it.
        defaults: whether a parameter that has a default may be left out; where not, it is refused.

    >>> parse("normal(0, 1)")
    normal(0, 1)
    >>> parse("categorical(a=1/4, b=3/4)")
    categorical(a=0.25, b=0.75)
    >>> parse("near(normal(mean<=0, sd in [0.8, 1.2]), 0.02)")
    near(normal(mean<=0, sd in [0.8, 1.2]), 0.02)
    """
    if not isinstance(text, str):
        raise InvalidDistribution(f"{name} must be text to be parsed, not {type(text).__name__}.")
    if not text.strip():
        raise InvalidDistribution(f"{name} is empty text: write for example 'normal(0, 1)' or 'bernoulli(0.3)'.")
    if len(text) > LONGEST:
        raise InvalidDistribution(f"{name} is {len(text)} characters long; at most {LONGEST} are read.")
    reader = _Parser(text, name, defaults)
    try:
        law = reader.distribution(0)
        reader.expect_end()
    except InvalidDistribution:
        if "\n" not in text.strip():
            raise
        law = None
    if law is None:  # a page of text may be data: nothing of it is quoted
        raise InvalidDistribution(f"{name} is several lines of text that are no distribution. Write 'normal(0, 1)'.")
    return law


class _Parser:
    """A recursive-descent parser that looks one token ahead."""

    def __init__(self, text: str, name: str, defaults: bool = True) -> None:
        self._text, self._name, self._defaults = text, name, defaults
        self._tokens = self._split()
        self._at = 0

    def _split(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = 0
        while True:
            match = _TOKEN.match(self._text, place)
            if match is None:
                rest = self._text[place:].lstrip()
                if not rest:
                    return [*tokens, _Token("end", "", len(self._text))]
                at = len(self._text) - len(rest)
                if rest[0] == "?":
                    raise InvalidDistribution(
                        f"{self._name}={shown(self._text)} has an unknown parameter, and a question mark is for "
                        "estimates alone. Write a number or, for a test, a range such as 'normal(0, sd in [1, 3])'."
                    )
                what = "a quotation that is never closed" if rest[0] in "\"'" else f"the character {rest[0]!r}"
                if rest[0] in "<>":
                    what += " here (inequalities of a set are written <= and >=, as in p>=0.3)"
                raise self.error(f"cannot read {what}", at)
            kind = match.lastgroup or ""
            tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            place = match.end()

    def error(self, message: str, place: int | None = None) -> InvalidDistribution:
        at = self._tokens[self._at].place if place is None else place
        shown = self._text if len(self._text) <= 80 else self._text[max(0, at - 40) : at + 40]
        return InvalidDistribution(f"{self._name}: {message}, at position {at + 1} of {shown!r}.")

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._peek().kind == "sign" and self._peek().text == sign:
            self._at += 1
            return True
        return False

    def _shown(self) -> str:
        token = self._peek()
        return "the end of the text" if token.kind == "end" else repr(token.text)

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise self.error(f"expected nothing after the distribution but found {self._shown()}")

    def distribution(self, depth: int) -> Hypothesis:
        if depth > DEEPEST:
            raise self.error(f"nested more than {DEEPEST} deep")
        token = self._peek()
        if token.kind != "word":
            raise self.error(f"expected the name of a distribution but found {self._shown()}")
        word = ALIASES.get(token.text.lower(), token.text.lower())
        if word not in FAMILIES and word not in _OTHERS:
            names = [*FAMILIES, *ALIASES, *_OTHERS]
            if reason := unanswered(token.text):
                raise InvalidDistribution(f"{self._name}={shown(self._text)} is not a distribution. {reason}")
            hint = suggestion(token.text, names) or f" Known: {', '.join([*FAMILIES, *_OTHERS])}."
            raise InvalidDistribution(f"{self._name}: no distribution is called {token.text!r}.{hint}")
        self._take()
        if not self._accept("("):
            raise self.error(f"expected '(' after {token.text!r} but found {self._shown()}")
        arguments = self._arguments(depth)
        if word == "categorical":
            return self._categorical(arguments)
        if word == "mixture":
            return self._mixture(arguments)
        if word in ("near", "contaminated", "any_of"):
            return self._set(word, arguments)
        if word.startswith("median"):
            return self._median(word, arguments)
        return self._family(FAMILIES[word], arguments)

    def _arguments(self, depth: int) -> list[_Argument]:
        arguments: list[_Argument] = []
        if self._accept(")"):
            return arguments
        while True:
            arguments.append(self._argument(depth))
            if self._accept(")"):
                return arguments
            if not self._accept(","):
                raise self.error(f"expected ',' or ')' but found {self._shown()}")

    def _argument(self, depth: int) -> _Argument:
        token, following = self._peek(), self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        place = token.place
        label: Hashable | None = None
        negative = token.text == "-" and following.kind == "number"
        after = self._tokens[min(self._at + 2, len(self._tokens) - 1)] if negative else following
        if token.kind in ("word", "quoted", "number") or negative:
            if after.kind == "sign" and after.text == "=":
                if negative:
                    self._take()
                label = self._label(self._take(), negative)
                self._take()
            elif token.kind == "word" and (after.text in ("<=", ">=") or after.text.lower() == "in"):
                self._take()
                return _Argument(token.text, self._range(token.text), place)
            elif token.kind == "quoted":
                raise self.error(f"expected '=' after the label {token.text}")
        if self._peek().kind == "word":
            if self._peek().text.lower() in ("inf", "infinity", "nan"):
                raise self.error(f"{self._peek().text!r} is not a number that can be used here")
            return _Argument(label, self.distribution(depth + 1), place)
        return _Argument(label, self._number(), place)

    def _range(self, label: str) -> _Range:
        """Read the range that follows the name of a parameter."""
        sign = self._take().text
        if sign == "<=":
            return _Range(-math.inf, self._number())
        if sign == ">=":
            return _Range(self._number(), math.inf)
        if not self._accept("["):
            raise self.error(f"expected '[' after '{label} in' but found {self._shown()}")
        place = self._peek().place
        low = self._number()
        if not self._accept(","):
            raise self.error(f"expected ',' between the ends of {label!r} but found {self._shown()}")
        high = self._number()
        if not self._accept("]"):
            raise self.error(f"expected ']' but found {self._shown()}")
        if not low < high:
            raise self.error(
                f"the range of {label!r} must start below its end: write {label} in "
                f"[{number_text(min(low, high))}, {number_text(max(low, high))}], or {label}={number_text(low)}",
                place,
            )
        return _Range(low, high)

    def _label(self, token: _Token, negative: bool) -> Hashable:
        if token.kind == "number":
            if not token.text.isdigit():
                raise self.error(f"the label {token.text} must be a whole number, a word or quoted text", token.place)
            return -int(token.text) if negative else int(token.text)
        if token.kind == "quoted":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        return token.text

    def _number(self) -> float:
        sign = 1.0
        while self._peek().kind == "sign" and self._peek().text in "+-":
            if self._take().text == "-":
                sign = -sign
            if self._peek().kind != "number":
                raise self.error(f"expected a number but found {self._shown()}")
        if self._peek().kind != "number":
            raise self.error(f"expected a number but found {self._shown()}")
        token = self._take()
        value = float(token.text)
        if self._accept("/"):
            if self._peek().kind != "number":
                raise self.error(f"expected a number after '/' but found {self._shown()}")
            bottom = float(self._take().text)
            if bottom == 0:
                raise self.error("division by 0", token.place)
            value /= bottom
        if not math.isfinite(value):
            raise self.error(f"{token.text} is too large to be a number", token.place)
        return sign * value

    def _family(self, family: Family, arguments: list[_Argument]) -> Distribution | Box:
        names = [parameter.name for parameter in family.parameters]
        stated: dict[str, _Range] = {}
        for index, argument in enumerate(arguments):
            if isinstance(argument.value, Hypothesis):
                raise self.error(f"{family.name} takes numbers, not a distribution", argument.place)
            value = argument.value
            if not isinstance(value, _Range):
                value = _Range(value, value)
            if argument.label is None:
                if any(before.label is not None for before in arguments[:index]):
                    raise self.error("a parameter without a name follows one with a name", argument.place)
                if index >= len(names):
                    raise InvalidDistribution(
                        f"{self._name}: {family.name} takes {_count(len(names))} "
                        f"but {len(arguments)} were given: write {family.signature()}."
                    )
                key = names[index]
            else:
                key = str(argument.label)
                if family.name == "exponential" and key in ("rate", "mean"):
                    if key == "rate":
                        if value.high <= 0 or (value.low <= 0 and math.isfinite(value.low)):
                            wrong = value.high if value.high <= 0 else value.low
                            raise InvalidDistribution(f"exponential: rate={number_text(wrong)} must be greater than 0.")
                        ends = (
                            -math.inf if math.isinf(value.high) else 1 / value.high,
                            1 / value.low if value.low > 0 else math.inf,
                        )
                        value = _Range(*ends)
                    key = "scale"
                if key not in names:
                    raise InvalidDistribution(
                        f"{self._name}: {family.name} has no parameter {key!r}.{suggestion(key, names)} "
                        f"Write {family.signature()}."
                    )
            if key in stated:
                both = isinstance(argument.value, _Range) or stated[key].low < stated[key].high
                hint = f": write {key} in [low, high] for a range with two ends" if both else ""
                raise self.error(f"{family.name} is given {key!r} twice{hint}", argument.place)
            stated[key] = value
        missing = [p.name for p in family.parameters if p.default is None and p.name not in stated]
        if missing:
            raise InvalidDistribution(
                f"{self._name}: {family.name} needs {' and '.join(repr(word) for word in missing)}: "
                f"write {family.signature()}."
            )
        silent = [] if self._defaults else [p.name for p in family.parameters if p.name not in stated]
        if silent:
            one = silent[0]
            raise InvalidDistribution(
                f"{self._name}: {family.name}(...) needs its {' and '.join(silent)}: the answer depends on it. "
                f"Give it ({one}=2, say) where it is known, or a range that holds it for sure ({one} in [1, 4]), in "
                f"{family.name}({', '.join(names)})."
            )
        ranges = [stated.get(p.name) or _Range(*[p.default or 0.0] * 2) for p in family.parameters]
        values = tuple(one.low for one in ranges)
        if all(one.low == one.high for one in ranges):
            family.check(values)
            kind = ScipyIntegers if family.discrete else ScipyReals
            return kind(family.freeze(values), family.text(values), self._name)
        return make_box(family, [(one.low, one.high) for one in ranges])

    def _categorical(self, arguments: list[_Argument]) -> Labels:
        if not arguments:
            raise InvalidDistribution(
                f"{self._name}: categorical needs at least one label: write categorical(a=0.2, b=0.8)."
            )
        named = [argument.label is not None for argument in arguments]
        if any(named) and not all(named):
            raise self.error(
                "either every label of categorical is named or none is", arguments[named.index(False)].place
            )
        labels: list[Hashable] = []
        values: list[float] = []
        for index, argument in enumerate(arguments):
            if not isinstance(argument.value, float):
                raise self.error("categorical takes numbers, not a distribution or a range", argument.place)
            labels.append(argument.label if all(named) else index)
            values.append(argument.value)
        return Labels(labels, values, self._name)

    def _set(self, word: str, arguments: list[_Argument]) -> Hypothesis:
        values = [argument.value for argument in arguments]
        if word == "any_of":
            parts = [each for each in values if isinstance(each, Hypothesis)]
            if len(parts) != len(values) or len(parts) < 2:
                raise InvalidDistribution(
                    f"{self._name}: any_of takes two distributions or more: write any_of(normal(0, 1), normal(1, 1))."
                )
            return union(parts, self._name)
        label = "distance" if word == "near" else "share"
        if (
            len(values) != 2
            or not isinstance(values[0], Hypothesis)
            or not isinstance(values[1], float)
            or arguments[0].label is not None
            or arguments[1].label not in (None, label)
        ):
            raise InvalidDistribution(
                f"{self._name}: {word} takes a distribution and a number between 0 and 1: write "
                f"{word}(normal(0, 1), {label}=0.02)."
            )
        return corrupted(word, values[0], values[1], label)

    def _median(self, word: str, arguments: list[_Argument]) -> Hypothesis:
        names = ("cut",) if word == "median" else ("cut", "share")
        values = {str(argument.label or name): argument.value for argument, name in zip(arguments, names, strict=False)}
        wrong = len(arguments) != len(names) or set(values) != set(names)
        if wrong or not all(isinstance(value, float) for value in values.values()):
            example = "median(5)" if word == "median" else f"{word}(5, share=0.6)"
            raise InvalidDistribution(f"{self._name}: {word} takes {_count(len(names))}: write {example}.")
        cut, share = values["cut"], values.get("share", 0.5)
        assert isinstance(cut, float)
        assert isinstance(share, float)
        return _beside(word, cut, share)

    def _mixture(self, arguments: list[_Argument]) -> Distribution:
        weights = [argument.value for argument in arguments[::2]]
        parts = [argument.value for argument in arguments[1::2] if isinstance(argument.value, Distribution)]
        fine = (
            len(weights) == len(parts) > 0
            and 2 * len(parts) == len(arguments)
            and all(isinstance(weight, float) for weight in weights)
            and all(argument.label is None for argument in arguments)
        )
        if not fine:
            raise InvalidDistribution(
                f"{self._name}: mixture alternates weights and distributions: "
                "write mixture(0.3, normal(0, 1), 0.7, normal(2, 1))."
            )
        return mixed([w for w in weights if isinstance(w, float)], parts, self._name)


def _count(number: int) -> str:
    return f"{number} parameter" + ("" if number == 1 else "s")


SAME = 1e-14
"""Total variation below which two distributions count as the same: it is no more than rounding."""
ACCEPTED = (
    "Give a frozen scipy distribution such as stats.norm(0, 1), a mapping from label to probability, "
    "an array of probabilities, density(logpdf, support=...), mixture(weights, parts) "
    "or text such as 'normal(0, 1)'."
)


def make_pair(null: Any, alternative: Any) -> Pair:
    """P and Q as a pair on their common domain.

    >>> round(make_pair("bernoulli(0.3)", {0: 0.5, 1: 0.5}).total_variation, 12)
    0.2
    """
    p, q = as_distribution(null, "null"), as_distribution(alternative, "alternative")
    pair = matched(p, q)
    if pair.total_variation < SAME:
        raise NothingToTest(
            f"null {p.describe()} and alternative {q.describe()} are the same distribution: there is nothing to test."
        )
    return pair


def matched(p: Distribution, q: Distribution) -> Pair:
    """Return the pair of P and Q on their common domain; the two may be the same."""
    if isinstance(p, Reals) and isinstance(q, Reals):
        if p.cut != q.cut:
            raise InvalidDistribution(
                f"null {p.describe()} and alternative {q.describe()}: the share above a number says nothing else of a "
                "distribution, so both must be shares above the same number."
            )
        return ContinuousPair(p, q)
    if isinstance(p, Reals) or isinstance(q, Reals):
        smooth, other = ("null", "alternative") if isinstance(p, Reals) else ("alternative", "null")
        raise InvalidDistribution(
            f"{smooth} ({(p if smooth == 'null' else q).describe()}) is continuous but {other} "
            f"({(q if smooth == 'null' else p).describe()}) is discrete: both must be of one kind."
        )
    if isinstance(p, Labels) and isinstance(q, Labels):
        _check_same_labels(p, q)
        return DiscretePair.from_labels(p, q)
    return DiscretePair.from_integers(_as_integers(p, "null", q), _as_integers(q, "alternative", p))


def _as_integers(law: Distribution, name: str, other: Distribution) -> WholeNumbers:
    whole = IntegerBlocks.from_labels(law) if isinstance(law, Labels) else law
    if not isinstance(whole, WholeNumbers):
        raise InvalidDistribution(
            f"different domains: {name} ({law.describe()}) has labels that are no integers, "
            f"{other.describe()} lives on the integers."
        )
    return whole


def _check_same_labels(p: Labels, q: Labels) -> None:
    of_p, of_q = set(p.labels), set(q.labels)
    if of_p == of_q:
        return
    sides = []
    for name, missing in (("alternative", of_p - of_q), ("null", of_q - of_p)):
        if missing:
            shown = sorted(map(repr, missing))
            listed = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
            sides.append(f"{name} lacks {listed}")
    raise InvalidDistribution(
        f"null and alternative have different domains: {'; '.join(sides)}. Give a missing label probability 0."
    )


def as_distribution(law: Any, name: str = "distribution") -> Distribution:
    """Return ``law`` as a distribution; raise InvalidDistribution, which lists the accepted forms, for anything else.

    >>> as_distribution([0.5, 0.5]).kind, as_distribution("poisson(3)").kind
    ('labels', 'integers')
    """
    parsed = parse(law, name) if isinstance(law, str) else law
    if isinstance(parsed, Distribution):
        return parsed
    if isinstance(parsed, Hypothesis):
        raise InvalidDistribution(
            f"{name}={parsed.describe()} is a set of distributions: one distribution is needed here. "
            "Fix its parameters, as in 'normal(0, 1)'."
        )
    if isinstance(law, Mapping):
        return Labels.from_mapping(law, name)
    if isinstance(law, (bool, int, float, complex, bytes, set, frozenset)) or law is None:
        raise InvalidDistribution(f"{name}={shown(law)} is not a distribution. {ACCEPTED}")
    if callable(law) and not hasattr(law, "rvs") and not hasattr(law, "logpdf"):
        raise InvalidDistribution(
            f"{name} is a function: wrap it as density(logpdf, support=(low, high)) if it is a log density."
        )
    parsed = _from_scipy(law, name)
    if parsed is not None:
        return parsed
    if isinstance(law, (list, tuple, np.ndarray)) or hasattr(law, "__array__"):
        return Labels.from_array(law, name)
    if isinstance(law, Iterable):
        return Labels.from_array(list(law), name)
    raise InvalidDistribution(f"{name} of type {type(law).__name__} is not a distribution. {ACCEPTED}")


def as_hypothesis(law: Any, name: str = "hypothesis") -> Hypothesis:
    """Return ``law`` as a set of distributions; a single distribution is the smallest set.

    >>> as_hypothesis("normal(mean<=0, sd=1)"), as_hypothesis([0.5, 0.5])
    (normal(mean<=0, sd=1), categorical(0.5, 0.5))
    """
    if isinstance(law, Hypothesis):
        return law
    return parse(law, name) if isinstance(law, str) else as_distribution(law, name)


def near(centre: Any, distance: float) -> Hypothesis:
    """Every distribution within total variation ``distance`` of ``centre``.

    Args:
        centre: a distribution, or a set of them, in any form that :func:`privatest.design` takes.
        distance: the largest total variation from it, in (0, 1): so large a share of the records may be anything.

    >>> near("normal(0, 1)", 0.02)
    near(normal(0, 1), 0.02)
    """
    return corrupted("near", as_hypothesis(centre, "centre"), distance, "distance")


def contaminated(centre: Any, share: float) -> Hypothesis:
    """All but a ``share`` of the records come from ``centre``, the others from anywhere.

    Args:
        centre: as for :func:`privatest.near`.
        share: of the records that may come from anywhere, in (0, 1).

    >>> contaminated("poisson(3)", 0.05)
    contaminated(poisson(3), 0.05)
    """
    return corrupted("contaminated", as_hypothesis(centre, "centre"), share, "share")


def any_of(*parts: Any) -> Hypothesis:
    """Return the union of distributions and sets of distributions.

    Args:
        *parts: the distributions or sets, at least one.

    >>> any_of("bernoulli(p<=0.28)", "bernoulli(p>=0.32)")
    any_of(bernoulli(p<=0.28), bernoulli(p>=0.32))
    """
    return union([as_hypothesis(part, f"part {index + 1}") for index, part in enumerate(parts)], "any_of")


def _beside(word: str, cut: float, share: float) -> Hypothesis:
    """Return the distribution or set that ``median``, ``median_above`` or ``median_below`` stands for."""
    family = FAMILIES["share_above"]
    if word == "median":
        return ScipyReals(family.freeze((cut, share)), family.text((cut, share)))
    if not 0.5 < share < 1:
        raise InvalidDistribution(f"{word}: share={number_text(share)} must be greater than 0.5 and less than 1.")
    ends = (share, math.inf) if word == "median_above" else (-math.inf, float(f"{1 - share:.15g}"))
    return make_box(family, [(cut, cut), ends])


def mixture(weights: ArrayLike, parts: Sequence[Any], name: str = "mixture") -> Distribution:
    """Return the distribution that draws part i with probability ``weights[i]``.

    Guarantees: its density is the weighted sum of theirs, its cdf and complement stay accurate in their
    tails.

    Args:
        weights: a probability for each part; they add up to 1.
        parts: distributions of one kind: all of real numbers, of whole numbers or of labels.
        name: what messages call it.

    >>> mixture([0.3, 0.7], ["normal(0, 1)", "normal(2, 1)"])
    mixture(0.3, normal(0, 1), 0.7, normal(2, 1))
    """
    count = check_probabilities(weights, f"{name} weights").size
    parts = [parts] if isinstance(parts, str | bytes) else parts
    if not isinstance(parts, list | tuple):
        raise InvalidDistribution(f"{name} parts={shown(parts)} must be a list of distributions.")
    if len(parts) != count:
        raise InvalidDistribution(f"{name} has {count} weights for {len(parts)} parts: give one part for each weight.")
    laws = [as_distribution(part, f"{name} part {index + 1}") for index, part in enumerate(parts)]
    return mixed(weights, laws, name)


def _from_scipy(frozen: Any, name: str) -> Distribution | None:
    """Return the distribution of a scipy object, or None if ``frozen`` is not a scipy object."""
    if not type(frozen).__module__.startswith("scipy.") and not hasattr(frozen, "dist") and not hasattr(frozen, "rvs"):
        return None
    law = _from_scipy_stats(frozen, name)
    if law is not None:
        return law
    if all(hasattr(frozen, word) for word in ("logpdf", "icdf", "iccdf", "ccdf", "support")):
        return _new_style(frozen, name)
    if type(frozen).__module__.startswith("scipy.") or hasattr(frozen, "rvs"):
        raise InvalidDistribution(
            f"{name} is a {type(frozen).__name__}, which is no univariate frozen scipy distribution. {ACCEPTED}"
        )
    return None


def _from_scipy_stats(frozen: Any, name: str) -> Distribution | None:
    """Return the distribution of a frozen ``scipy.stats`` object, or None for any other object."""
    stats: Any = sys.modules.get("scipy.stats")
    if stats is None:  # then nobody can have made one
        return None
    if isinstance(frozen, stats.rv_histogram):  # has no parameters left to freeze
        frozen = frozen()
    if isinstance(frozen, (stats.rv_continuous, stats.rv_discrete)):
        if isinstance(frozen, stats.rv_discrete) and hasattr(frozen, "xk"):
            frozen = frozen()
        else:
            example = "stats.norm(0, 1)" if isinstance(frozen, stats.rv_continuous) else "stats.poisson(3)"
            raise InvalidDistribution(
                f"{name} is the scipy family {frozen.name!r} without parameters: freeze it, for example {example}."
            )
    family = getattr(frozen, "dist", None)
    if isinstance(family, stats.rv_continuous):
        _check_scalar(frozen, name)
        if family.name == "vonmises":
            raise InvalidDistribution(f"{name}: scipy's vonmises goes round for ever: use stats.vonmises_line instead.")
        return ScipyReals(frozen, name=name)
    if isinstance(family, stats.rv_discrete):
        _check_scalar(frozen, name)
        return ScipyIntegers(frozen, name=name)
    return None


def _check_scalar(frozen: Any, name: str) -> None:
    values = [*frozen.args, *frozen.kwds.values()]
    if any(np.ndim(value) > 0 and np.size(value) > 1 for value in values) and frozen.dist.name != "poisson_binom":
        raise InvalidDistribution(f"{name} holds an array of parameters: give one distribution with scalar parameters.")


def _new_style(frozen: Any, name: str) -> Distribution:
    """Return the distribution of one of scipy's newer objects, such as stats.Normal(mu=0, sigma=1)."""
    if "Discrete" in "".join(base.__name__ for base in type(frozen).__mro__):
        raise InvalidDistribution(
            f"{name} is a new-style discrete scipy distribution: use the classic one, such as stats.binom(10, 0.5)."
        )
    if np.ndim(frozen.median()) > 0:
        raise InvalidDistribution(f"{name} holds an array of parameters: give one distribution with scalar parameters.")
    return ScipyReals(ClassicNames(frozen), name=name)


VANISHING = 1e-4
"""Total variation below which far members of two unbounded sets leave nothing to test."""


@dataclass(frozen=True, eq=False)
class Hypotheses:
    """A null and an alternative hypothesis, with the two members that are the hardest to distinguish.

    Attributes:
        null, alternative: sets of distributions; one distribution is the smallest set.
        pair: a member of each, the hardest to tell apart that were found; the score is their ratio.
        parts: the parts of null and alternative that these are members of.
    """

    null: Hypothesis
    alternative: Hypothesis
    pair: Pair
    parts: tuple[Leaf, Leaf]

    @property
    def simple(self) -> bool:
        """Whether both are single distributions."""
        leaves = [side.leaves() for side in (self.null, self.alternative)]
        return all(len(one) == 1 and isinstance(one[0].of, Distribution) and not one[0].corruptions for one in leaves)


def pair_or_hypotheses(null: Any, alternative: Any) -> Pair | Hypotheses:
    """Return the pair of two single distributions; :class:`Hypotheses` if either is a set."""
    hypotheses = make_hypotheses(null, alternative)
    return hypotheses.pair if hypotheses.simple else hypotheses


def hardest_pair(null: Any, alternative: Any) -> Pair:
    """Return the pair of P and Q or, for sets, the pair of the two members that are the hardest to distinguish."""
    return make_hypotheses(null, alternative).pair


def make_hypotheses(null: Any, alternative: Any) -> Hypotheses:
    """Read a null and an alternative; raise NothingToTest if they overlap.

    The last 64 are cached, so that what is known of a pair is computed once.
    """
    keys = _HypothesisKey(null), _HypothesisKey(alternative)
    return _cached_hypotheses(*keys) if all(one.lasting for one in keys) else _parsed_hypotheses(null, alternative)


class _HypothesisKey:
    """Key of a hypothesis in the cache. Two keys are equal if both are one text, the same numbers or one object.

    ``lasting`` is whether the hypothesis cannot change: an array, or an object of another library, can.
    """

    __slots__ = ("key", "lasting", "law")

    def __init__(self, law: Any) -> None:
        plain = _plain(law)
        self.law, self.lasting = law, plain or isinstance(law, Hypothesis)
        self.key: Any = (type(law), repr(law)) if plain else id(law)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HypothesisKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _plain(law: Any) -> bool:
    """Whether the repr of an object identifies it, as for texts, and for lists or mappings of texts and numbers."""
    if type(law) is dict:
        return all(type(value) in _PLAIN for entry in law.items() for value in entry)
    return type(law) is str or (type(law) in (list, tuple) and all(type(value) in _PLAIN for value in law))


_PLAIN = {str, int, float, bool}


@lru_cache(maxsize=64)
def _cached_hypotheses(null: _HypothesisKey, alternative: _HypothesisKey) -> Hypotheses:
    return _parsed_hypotheses(null.law, alternative.law)


def _parsed_hypotheses(null: Any, alternative: Any) -> Hypotheses:
    first, second = as_hypothesis(null, "null"), as_hypothesis(alternative, "alternative")
    if isinstance(first, Distribution) and isinstance(second, Distribution):
        return Hypotheses(first, second, make_pair(first, second), (Leaf(first), Leaf(second)))
    closest = nearest(first.leaves(), second.leaves())
    shares = sum(part.share for part in closest.parts)
    if closest.apart <= shares:
        raise NothingToTest(
            f"null {first.describe()} and alternative {second.describe()} overlap: {closest.pair.null.describe()} and "
            f"{closest.pair.alternative.describe()} are {closest.apart:.4g} apart in total variation, so from "
            f"{number_text(float(f'{closest.apart / 2:.3g}'))} on either side nothing can be told apart. "
            "Use smaller distances."
        )
    return Hypotheses(first, second, closest.pair, closest.parts)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The two members with the least total variation, that total variation, and the parts that they are members of."""

    apart: float
    pair: Pair
    parts: tuple[Leaf, Leaf]


def nearest(nulls: Sequence[Leaf], alternatives: Sequence[Leaf]) -> Nearest:
    """Return the members of two sets with the least total variation, without the corruptions of the sets."""
    leaves = [(one, other) for one in nulls for other in alternatives]
    if len(leaves) == 1 and all(isinstance(leaf.of, Distribution) for leaf in leaves[0]):
        pair = make_pair(leaves[0][0].of, leaves[0][1].of)
        return Nearest(pair.total_variation, pair, leaves[0])
    return min(
        (_nearest(*parts) for parts in leaves), key=lambda entry: entry.apart - sum(p.share for p in entry.parts)
    )


def _nearest(one: Leaf, other: Leaf) -> Nearest:
    """Return the members of two parts with the least total variation."""
    overlap = _overlap(one.of, other.of)
    if overlap is not None:
        raise NothingToTest(f"null and alternative overlap: {overlap} belongs to both. Leave a gap between them.")
    for name, *far in far_members(one.of, other.of):
        if (left := matched(*far)).total_variation < VANISHING:
            raise NothingToTest(
                f"null and alternative cannot be told apart for every {name}: the farther it goes, the less of a "
                f"difference is left ({left.total_variation:.1e} in total variation between {left.null.describe()} and "
                f"{left.alternative.describe()}). Give it an end: {name} in [low, high]."
            )
    pairs = [matched(*members) for members in nearest_members(one.of, other.of)]
    best = min(pairs, key=lambda pair: pair.total_variation)
    if best.total_variation < 1e-14:
        raise NothingToTest(
            f"null and alternative overlap: {best.null.describe()} belongs to both. Leave a gap between them."
        )
    return Nearest(best.total_variation, best, (one, other))


def _overlap(one: Distribution | Box, other: Distribution | Box) -> str | None:
    """Return a description of the members that two boxes of one family share; None if they share none."""
    if not isinstance(one, Box) or not isinstance(other, Box) or one.family != other.family:
        return None
    low = tuple(map(max, one.low, other.low))
    high = tuple(map(min, one.high, other.high))
    if any(a > b for a, b in zip(low, high, strict=True)):
        return None
    return Box(one.family, low, high).describe()
