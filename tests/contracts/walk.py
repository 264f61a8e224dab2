"""Privacy of the code that runs: every draw of a run is followed down all of its branches, with their probabilities.

``walk(run, reach)`` calls ``run(source)`` once for every branch and returns the exact law of what it answers. Nothing
of a mechanism is restated: rates, levels, widths, cutoffs and roundings are those of the code under test. What is
replaced are the coins of ``privatest.privacy.randomness``, each by one fork with the probabilities that
``tests/privacy`` proves of them by walking their own draws, bit by bit.

- A small uniform integer forks into its values; one that is only compared (``below(n) < p``) forks in two.
- A uniform integer too large for that (the exponential mechanism's) is cut where the rest of the run changes, found by
  bisection: such code compares the integer with thresholds, so that the answer is a step function of it.
- A geometric integer forks into all values up to ``reach``; the last one on each side stands for the whole tail
  beyond it. Answers reached that way are kept apart (``Law.tail``): for an answer that no longer changes
  out there they add up with the others, for any other they only bound what is not known.
- A rejection loop carries nothing over, so its law is that of the first round, given that it is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from privatest.decision.pvalue import HypothesisLaws
from privatest.privacy import bulk_draws
from privatest.privacy import randomness as coins

__all__ = ["Law", "largest_loss", "walk", "walking"]

# Uniform integers of more values than this are cut by bisection.
SMALL = 128
PROBES = 2
# Stretches are cut to this share of the whole.
FINENESS = 64
MOST_CUTS = 8_000
DIGITS = 40

Option = tuple[Any, Any, bool]  # answer, probability, whether it stands for a tail


class _Wide(Exception):
    def __init__(self, n: int, starts: bool) -> None:
        super().__init__()
        self.n, self.starts = n, starts


class _Rejected(Exception):
    pass


class _Walker:
    """A source that answers from a script; where that ends, by the first way of each fork, which it notes.

    At an integer too large to fork it raises there, and with ``probe`` answers 0.
    """

    simulated = True

    def __init__(self, script: tuple[Any, ...], probe: bool = False) -> None:
        self._answers, self._probe = iter(script), probe
        self._rounds: set[str] = set()
        self.forks: list[tuple[list[Option], bool]] = []

    def choose(self, options: list[Option], starts: str | None = None) -> Any:
        first = starts is not None and self._first_round(starts)
        for answer in self._answers:
            return answer
        if self._probe:
            return options[0][0]
        ways = [option for option in options if option[1] > 0]
        self.forks.append((ways, first))
        return ways[0][0]

    def _first_round(self, name: str) -> bool:
        """A second round of the same loop means that the first was rejected."""
        if name in self._rounds:
            raise _Rejected
        self._rounds.add(name)
        return True

    def below(self, n: int) -> Any:
        assert type(n) is int
        assert n >= 1
        return _Uniform(n, self)

    def bits(self, k: int) -> int:
        assert type(k) is int
        return self.wide(1 << k, False) if k > 6 else int(self.choose(_values(1 << k)))

    def wide(self, n: int, starts: bool) -> int:
        first = starts and self._first_round("below")
        for answer in self._answers:
            return int(answer)
        if self._probe:
            return 0
        raise _Wide(n, first)


class _Uniform:
    """A uniform integer not looked at yet."""

    def __init__(self, n: int, source: _Walker) -> None:
        self._n, self._source = n, source
        self._value: int | None = None
        self._compared = False

    def __index__(self) -> int:
        assert not self._compared, "a compared uniform is no longer uniform"
        if self._value is None:
            small = self._n <= SMALL
            self._value = int(self._source.choose(_values(self._n))) if small else self._source.wide(self._n, True)
        return self._value

    __int__ = __index__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(int(self), dtype=dtype)

    def _under(self, bound: int) -> bool:
        assert self._value is None
        assert not self._compared
        self._compared = True
        share = mpmath.mpf(min(max(bound, 0), self._n)) / self._n
        return bool(self._source.choose([(True, share, False), (False, 1 - share, False)]))

    def __lt__(self, bound: int) -> bool:
        return self._under(bound) if self._value is None else self._value < bound

    def __ge__(self, bound: int) -> bool:
        return not self < bound

    def __add__(self, other: int) -> int:
        return int(self) + other

    def __sub__(self, other: int) -> int:
        return int(self) - other

    __radd__ = __add__


@lru_cache(maxsize=256)
def _values(n: int) -> list[Option]:
    return [(value, mpmath.mpf(1) / n, False) for value in range(n)]


@lru_cache(maxsize=256)
def _power(p: int, q: int) -> Any:
    return mpmath.exp(-mpmath.mpf(p) / q)


@lru_cache(maxsize=256)
def _geometric(p: int, q: int, last: int) -> list[Option]:
    r = _power(p, q)
    return [*((m, (1 - r) * r**m, False) for m in range(last)), (last, r**last, True)]


@lru_cache(maxsize=256)
def _two_sided(p: int, q: int, last: int) -> list[Option]:
    r = _power(p, q)
    tail = r**last / (1 + r)
    inner = [(g, (1 - r) / (1 + r) * r ** abs(g), False) for g in range(1 - last, last)]
    return [(-last, tail, True), *inner, (last, tail, True)]


def _coins(reach: int) -> dict[str, Callable[..., Any]]:
    """The coins in one fork each; a geometric one up to ``reach`` times q/p, a multiple of its scale."""

    def coin(chance: Any, source: _Walker) -> bool:
        return bool(source.choose([(True, chance, False), (False, 1 - chance, False)]))

    def bernoulli_exp(p: int, q: int, source: _Walker) -> bool:
        return coin(_power(p, q), source)

    def sigmoid(p: int, q: int, source: _Walker) -> bool:
        return coin(1 / (1 + _power(p, q)), source)

    def geometric(p: int, q: int, source: _Walker) -> int:
        return int(source.choose(_geometric(p, q, reach * q // p + 1), starts="geometric"))

    def two_sided(p: int, q: int, source: _Walker) -> int:
        return int(source.choose(_two_sided(p, q, reach * q // p + 1)))

    return {
        "bernoulli_exp": bernoulli_exp,
        "sigmoid": sigmoid,
        "geometric": geometric,
        "two_sided_geometric": two_sided,
    }


def _remembered(plain: Callable[..., Any]) -> Callable[..., Any]:
    """The p-values of a statistic, which draw nothing: many branches lead to the same ones."""
    known: dict[Hashable, tuple[Any, ...]] = {}

    def pvalues(laws: Any, *between: Any) -> Any:
        key = id(laws), between
        if key not in known:
            known[key] = plain(laws, *between), laws  # kept, so that no other object has its id
        return known[key][0]

    return pvalues


@contextmanager
def walking(reach: int) -> Any:
    """Within it ``rng=`` of everything public takes a walker in place of a generator."""
    with pytest.MonkeyPatch.context() as patch:
        for name, coin in _coins(reach).items():
            patch.setattr(coins, name, coin)
        # Noise one by one, whatever tables other tests have left in the cache; inversion from words: test_bulk_draws.
        patch.setattr(bulk_draws, "_LARGEST_REACH", 0)
        patch.setattr(HypothesisLaws, "pvalues", _remembered(HypothesisLaws.pvalues))
        for name, module in list(sys.modules.items()):
            if (
                name.startswith("privatest")
                and name != "privatest.privacy.randomness"
                and "seeded_source" in vars(module)
            ):
                patch.setattr(module, "seeded_source", lambda source: source)
        with mpmath.workdps(DIGITS):
            yield


@dataclass
class Law:
    """Probability of each answer: in full, and (``tail``) by way of draws that stand for a tail."""

    mass: dict[Hashable, Any] = field(default_factory=dict)
    tail: dict[Hashable, Any] = field(default_factory=dict)
    rejected: Any = 0

    def add(self, other: Law, share: Any, beyond: bool) -> None:
        for mine, theirs in ((self.tail if beyond else self.mass, other.mass), (self.tail, other.tail)):
            for answer, p in theirs.items():
                mine[answer] = mine.get(answer, 0) + share * p
        self.rejected += share * other.rejected

    def kept(self) -> Law:
        left = 1 - self.rejected
        return Law({a: p / left for a, p in self.mass.items()}, {a: p / left for a, p in self.tail.items()})

    def of(self, view: Callable[[Any], Hashable]) -> dict[Hashable, Any]:
        """The law of a function of the answer that draws beyond the reach no longer change."""
        found: dict[Hashable, Any] = {}
        for part in (self.mass, self.tail):
            for answer, p in part.items():
                found[view(answer)] = found.get(view(answer), 0) + p
        return found


def walk(run: Callable[[Any], Hashable], script: tuple[Any, ...] = ()) -> Law:
    """The law of ``run(source)``, within :func:`walking`: one call for each way through all forks."""
    walker = _Walker(script)
    try:
        found = Law({run(walker): mpmath.mpf(1)})
    except _Rejected:
        found = Law(rejected=mpmath.mpf(1))
    except _Wide as wide:
        here = (*script, *(ways[0][0] for ways, _ in walker.forks))
        found = _joined(run, here, _pieces(run, here, wide.n), wide.starts)
    # Invariant: this is the law given the script and the first ways of all forks so far.
    while walker.forks:
        ways, starts = walker.forks.pop()
        here = (*script, *(ways[0][0] for ways, _ in walker.forks))
        found = _joined(run, here, ways, starts, found)
    return found


def _joined(
    run: Callable[[Any], Hashable], script: tuple[Any, ...], ways: list[Option], starts: bool, first: Law | None = None
) -> Law:
    """The law of a fork after a script; that of its first way may be known."""
    found = Law()
    for answer, share, beyond in ways:
        law, first = first or walk(run, (*script, answer)), None
        found.add(law, share, beyond)
    return found.kept() if starts else found


def _pieces(run: Callable[[Any], Hashable], script: tuple[Any, ...], n: int) -> list[Option]:
    """Stretches of 0, ..., n-1 on which the rest of the run, with all later draws 0, is the same."""

    def rest(value: int) -> Hashable:
        try:
            return "answer", run(_Walker((*script, value), probe=True))
        except _Rejected:
            return ("rejected",)

    cuts: list[int] = []

    def split(low: int, first: Hashable, high: int, last: Hashable) -> Iterable[tuple[int, Hashable]]:
        """(start, rest) of the stretches after the one that holds ``low``, up to the one that holds ``high``."""
        if high - low <= max(n >> FINENESS, 1):
            if first != last:
                yield high, last
            return
        if first == last and all(rest(low + (high - low) * i // PROBES) == first for i in range(1, PROBES)):
            return
        middle = (low + high) // 2
        here = rest(middle)
        cuts.append(middle)
        assert len(cuts) < MOST_CUTS, "the answer changes too often: look at less of it"
        yield from split(low, first, middle, here)
        yield from split(middle, here, high, last)

    first, last = rest(0), rest(n - 1)
    starts = [0, *(start for start, _ in split(0, first, n - 1, last)), n]
    return [(a, mpmath.mpf(b - a) / n, False) for a, b in pairwise(starts)]


def largest_loss(laws: dict[Any, Law], neighbours: Iterable[tuple[Any, Any]], view: Any = None) -> float:
    """sup over ordered neighbours and answers of log Pr[answer | one] / Pr[answer | other].

    With ``view``, a function of the answer that does not change beyond the reach, tails are added to the rest. Without,
    answers that a tail reaches are bounded: the other may give it with all of its tail's probability.
    """
    worst = 0.0
    seen = {data: law.of(view) if view else {a: p for a, p in law.mass.items() if a not in law.tail}
            for data, law in laws.items()}  # fmt: skip
    unknown = {data: mpmath.mpf(0) if view else sum(law.tail.values()) for data, law in laws.items()}
    for data, law in laws.items():
        assert abs(sum(law.mass.values()) + sum(law.tail.values()) - 1) < 1e-25, data
    compared = 0
    for one, other in neighbours:
        for answer, p in seen[one].items():
            q = seen[other].get(answer)
            if q is None:
                q = unknown[other]
                if p <= q:
                    continue  # nothing is known of an answer less likely than the tail
            compared += 1
            worst = max(worst, float(mpmath.log(p / q)) if q else float("inf"))
    assert compared, "nothing was compared"
    return worst
