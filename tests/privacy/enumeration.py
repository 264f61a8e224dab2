"""Every run of a sampler, with its exact probability: a source that forks instead of drawing.

``law(sampler)`` replays the sampler along each sequence of answers its source could give and adds up the
probabilities. A uniform integer that is only compared (``below(n) < p``) forks two ways, whatever n is, so
coins with 20-digit parameters are enumerated as easily as small ones. Runs less likely than ``prune`` are
cut; what was cut is returned, so the result brackets the truth: lower <= Pr[outcome] <= lower + cut.

Rejection loops: with ``rounds="below"`` (or ``"geometric"``) a run ends as rejected at the second such call.
The loops carry nothing from round to round, so the law is that of the first round, given that it is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath

from tests.privacy.reference import mp

Probability = Any  # Fraction, or mpmath.mpf where an oracle's probability is irrational


class _Fork(Exception):
    def __init__(self, options: list[tuple[Any, Probability]]) -> None:
        super().__init__()
        self.options = options


class _Rejected(Exception):
    pass


class ForkingSource:
    """Answers from a script; forks where the script ends."""

    simulated = True

    def __init__(self, script: tuple[Any, ...] = (), rounds: str | None = None) -> None:
        self._answers = iter(script)
        self._rounds = rounds
        self._begun = False

    def begin(self, call: str) -> None:
        if call == self._rounds:
            if self._begun:
                raise _Rejected
            self._begun = True

    def choose(self, options: list[tuple[Any, Probability]]) -> Any:
        for answer in self._answers:
            return answer
        raise _Fork([(answer, weight) for answer, weight in options if weight > 0])

    def below(self, n: int) -> Any:
        assert type(n) is int
        assert n >= 1
        self.begin("below")
        return _Uniform(n, self)

    def bits(self, k: int) -> int:
        return int(self.choose([(value, Fraction(1, 2**k)) for value in range(2**k)]))


class _Uniform:
    """A uniform integer not looked at yet."""

    def __init__(self, n: int, source: ForkingSource) -> None:
        self._n = n
        self._source = source
        self._value: int | None = None
        self._compared = False

    def __index__(self) -> int:
        assert not self._compared, "a compared uniform is no longer uniform"
        if self._value is None:
            assert self._n <= 100, "too many values to enumerate"
            weight = Fraction(1, self._n)
            self._value = int(self._source.choose([(value, weight) for value in range(self._n)]))
        return self._value

    __int__ = __index__

    def __lt__(self, bound: int) -> bool:
        assert self._value is None
        assert not self._compared
        self._compared = True
        below = Fraction(min(max(bound, 0), self._n), self._n)
        return bool(self._source.choose([(True, below), (False, 1 - below)]))

    def __add__(self, other: int) -> int:
        return int(self) + other

    __radd__ = __add__


@dataclass
class Law:
    lower: dict[Hashable, Probability]
    cut: Probability
    rejected: Probability

    def brackets(self, outcome: Hashable, probability: Probability) -> bool:
        """Whether the bracket around Pr[outcome] holds this number (to 40 digits)."""
        low = exact(self.lower.get(outcome, 0))
        slack = mpmath.mpf(10) ** -40
        return bool(low - slack <= probability <= low + exact(self.cut) + slack)

    def kept(self, outcome: Hashable) -> Any:
        """Pr[outcome], given that the first round was kept; off by the cut, at most."""
        return exact(self.lower.get(outcome, 0)) / (1 - exact(self.rejected))


def exact(value: Probability) -> Any:
    return mp(value) if isinstance(value, Fraction | int) else value


def law(sampler: Callable[[Any], Hashable], prune: float, rounds: str | None = None) -> Law:
    """The law of ``sampler(source)``; see the module's docstring."""
    floor = Fraction(prune)
    lower: dict[Hashable, Probability] = defaultdict(Fraction)
    cut: Probability = Fraction(0)
    rejected: Probability = Fraction(0)
    pending: list[tuple[tuple[Any, ...], Probability]] = [((), Fraction(1))]
    while pending:
        script, weight = pending.pop()
        if weight < floor:
            cut = cut + weight
            continue
        try:
            outcome = sampler(ForkingSource(script, rounds))
        except _Fork as fork:
            pending += [((*script, answer), weight * chance) for answer, chance in fork.options]
        except _Rejected:
            rejected = rejected + weight
        else:
            lower[outcome] = lower[outcome] + weight
    return Law(dict(lower), cut, rejected)


# Oracles: the coins of privatest.privacy.randomness in one fork each, with the probabilities they should have.


@lru_cache(maxsize=1000)
def ratio(p: int, q: int) -> Any:
    """exp(-p/q)."""
    return mpmath.exp(-mp(Fraction(p, q)))


def bernoulli_exp(p: int, q: int, source: ForkingSource) -> bool:
    chance = ratio(int(p), q)
    return bool(source.choose([(True, chance), (False, 1 - chance)]))


def sigmoid(p: int, q: int, source: ForkingSource) -> bool:
    chance = 1 / (1 + ratio(p, q))
    return bool(source.choose([(True, chance), (False, 1 - chance)]))


def geometric(p: int, q: int, source: ForkingSource) -> int:
    source.begin("geometric")
    return int(source.choose(_geometric_options(p, q)))


def two_sided_geometric(p: int, q: int, source: ForkingSource) -> int:
    return int(source.choose(_two_sided_options(p, q)))


@lru_cache(maxsize=100)
def _geometric_options(p: int, q: int) -> list[tuple[int, Any]]:
    """All values down to probabilities of 1e-40."""
    r = ratio(p, q)
    return [(m, (1 - r) * r**m) for m in range(92 * q // p + 1)]


@lru_cache(maxsize=100)
def _two_sided_options(p: int, q: int) -> list[tuple[int, Any]]:
    r, far = ratio(p, q), 92 * q // p + 1
    return [(g, (1 - r) / (1 + r) * r ** abs(g)) for g in range(-far, far + 1)]
