"""What is asked: a null and an alternative, distributions or sets, and the members that are hardest to tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from privatest.errors import NothingToTest
from privatest.hypotheses.convert import as_hypothesis, make_pair, matched
from privatest.hypotheses.distribution import Distribution, Pair
from privatest.hypotheses.families import number_text
from privatest.hypotheses.sets import Box, Hypothesis, Leaf, Single, far_members, nearest_members

VANISHING = 1e-4
"""Members nearer than this, in total variation, leave nothing to test."""

__all__ = ["Nearest", "Question", "hardest_pair", "make_question", "nearest", "pair_or_question"]


@dataclass(frozen=True, eq=False)
class Question:
    """P or Q.

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
        if isinstance(self.null, Single) and isinstance(self.alternative, Single):
            return True
        leaves = [side.leaves() for side in (self.null, self.alternative)]
        return all(len(side) == 1 and isinstance(side[0].of, Distribution) and not side[0].spoils for side in leaves)


def pair_or_question(null: Any, alternative: Any) -> Pair | Question:
    """A pair where both are single distributions, else the question about sets."""
    found = make_question(null, alternative)
    return found.pair if found.simple else found


def hardest_pair(null: Any, alternative: Any) -> Pair:
    """P and Q as a pair; of sets, the two members that are the hardest to tell apart."""
    return make_question(null, alternative).pair


def make_question(null: Any, alternative: Any) -> Question:
    """The question a user asks, with sets that do not overlap.

    The last few are kept: what is known of a pair is computed once, however often it is asked about.
    """
    given = _Given(null), _Given(alternative)
    return _question(*given) if all(one.lasting for one in given) else _asked(null, alternative)


class _Given:
    """A hypothesis as it was given: the same as another where both are the same text, the same numbers or one object.

    ``lasting`` is whether it stays what it is: not so an array, or an object of another library.
    """

    __slots__ = ("key", "lasting", "law")

    def __init__(self, law: Any) -> None:
        plain = _plain(law)
        self.law, self.lasting = law, plain or isinstance(law, Distribution | Hypothesis)
        self.key: Any = (type(law), repr(law)) if plain else id(law)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _plain(law: Any) -> bool:
    """Whether its repr says all of it: a text, or a list or table of labels and numbers."""
    if type(law) is dict:
        return all(type(value) in _PLAIN for entry in law.items() for value in entry)
    return type(law) is str or (type(law) in (list, tuple) and all(type(value) in _PLAIN for value in law))


_PLAIN = {str, int, float, bool}


@lru_cache(maxsize=64)
def _question(null: _Given, alternative: _Given) -> Question:
    return _asked(null.law, alternative.law)


def _asked(null: Any, alternative: Any) -> Question:
    first, second = as_hypothesis(null, "null"), as_hypothesis(alternative, "alternative")
    if isinstance(first, Single) and isinstance(second, Single):
        pair = make_pair(first.distribution, second.distribution)
        return Question(first, second, pair, (Leaf(first.distribution), Leaf(second.distribution)))
    found = nearest(first.leaves(), second.leaves())
    shares = sum(part.share for part in found.parts)
    if found.apart <= shares:
        raise NothingToTest(
            f"null {first.describe()} and alternative {second.describe()} overlap: {found.pair.null.describe()} and "
            f"{found.pair.alternative.describe()} are {found.apart:.4g} apart in total variation, so from "
            f"{number_text(float(f'{found.apart / 2:.3g}'))} on either side nothing can be told apart. "
            "Use smaller distances."
        )
    return Question(first, second, found.pair, found.parts)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The two members that are the hardest to tell apart, how far apart they are, and the parts they come from."""

    apart: float
    pair: Pair
    parts: tuple[Leaf, Leaf]


def nearest(nulls: Sequence[Leaf], alternatives: Sequence[Leaf]) -> Nearest:
    """The nearest members of two sets, in total variation; what spoils them is not looked at."""
    leaves = [(one, other) for one in nulls for other in alternatives]
    if len(leaves) == 1 and all(isinstance(leaf.of, Distribution) for leaf in leaves[0]):
        pair = make_pair(leaves[0][0].of, leaves[0][1].of)
        return Nearest(pair.total_variation, pair, leaves[0])
    return min(
        (_nearest(*parts) for parts in leaves), key=lambda entry: entry.apart - sum(p.share for p in entry.parts)
    )


def _nearest(one: Leaf, other: Leaf) -> Nearest:
    """The nearest members of two parts."""
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
    """What belongs to both boxes of one family, as text."""
    if not isinstance(one, Box) or not isinstance(other, Box) or one.family != other.family:
        return None
    low = tuple(map(max, one.low, other.low))
    high = tuple(map(min, one.high, other.high))
    if any(a > b for a, b in zip(low, high, strict=True)):
        return None
    return Box(one.family, low, high).describe()
