"""How far the tight test is from the best possible one, and whether a smaller class of tests ever beats a larger one.

python benchmarks/optimality.py
    On a grid of binary and ternary pairs, the largest ratio of `sample_size` to the linear program's n, where it
    occurs, and the smallest ratio of `lower_bound` to it. Takes several minutes.
python benchmarks/optimality.py classes --cases 200 --seed 1
    Random pairs, notions and goals. Of two questions whose classes of tests contain one another the larger class must
    not need more records, nor have a smaller advantage on as many: every case where it does is printed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import privatest as pt

EPSILONS = (0.1, 0.3, 0.5, 1, 2, 3)
Pair = tuple[Sequence[float], Sequence[float]]
BINARY: list[Pair] = [
    ([1 - p, p], [1 - q, q]) for p, q in itertools.combinations((0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9), 2)
]
TERNARY: list[Pair] = [
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ([0.1, 0.3, 0.6], [0.6, 0.3, 0.1]),
    ([0.05, 0.45, 0.5], [0.3, 0.3, 0.4]),
    ([0.0, 0.5, 0.5], [0.2, 0.5, 0.3]),
    ([0.6, 0.3, 0.1], [0.3, 0.3, 0.4]),
    ([0.9, 0.08, 0.02], [0.5, 0.3, 0.2]),
    ([0.0, 0.5, 0.5], [0.1, 0.6, 0.3]),
    ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]),
    ([0.7, 0.2, 0.1], [0.1, 0.7, 0.2]),
    ([0.33, 0.33, 0.34], [0.1, 0.2, 0.7]),
]


@dataclass(frozen=True)
class Case:
    """One pair at one epsilon: records the tight test needs, the best possible test, and the certified bound."""

    pair: Pair
    epsilon: float
    tight: int
    best: int
    bound: int

    @property
    def ratio(self) -> float:
        return self.tight / self.best


def cases(pairs: Iterable[Pair], epsilons: Iterable[float] = EPSILONS) -> list[Case]:
    """Every pair at every epsilon."""
    return [
        Case(
            pair,
            epsilon,
            pt.sample_size(*pair, epsilon=epsilon),
            pt.sample_size(*pair, epsilon=epsilon, test="optimum"),
            pt.lower_bound(*pair, epsilon=epsilon),
        )
        for pair, epsilon in itertools.product(pairs, epsilons)
    ]


Words = tuple[tuple[str, Any], ...]
"""Arguments by name, so that an answer is computed once."""
TRACE = 1e-9
"""Differences of advantages below this are rounding."""


def drawn_pair(rng: np.random.Generator) -> tuple[Any, Any]:
    """Two distributions that some dozens of records tell apart."""
    kind = rng.choice(["binary", "cells", "cells", "zero", "normal", "spread", "poisson", "heavy", "rate"])
    x, y = (float(f"{value:.3g}") for value in rng.uniform(size=2))
    match kind:
        case "binary":
            p = float(f"{rng.uniform(0, 0.7):.3g}")
            return f"bernoulli({p})", f"bernoulli({p + 0.1 + 0.15 * x:.4g})"
        case "cells" | "zero":
            k = int(rng.integers(3, 6))
            laws = rng.dirichlet(np.full(k, 2.0), size=2)
            laws[0, 0] = 0.0 if kind == "zero" else laws[0, 0]
            rounded = np.round(laws / laws.sum(axis=1, keepdims=True), 3)
            rounded[:, -1] += 1 - rounded.sum(axis=1)
            return tuple(tuple(float(f"{p:.3g}") for p in law) for law in rounded)
        case "normal":
            return "normal(0, 1)", f"normal({0.3 + x:.3g}, {0.8 + 0.4 * y:.3g})"
        case "spread":
            return "normal(0, 1)", f"normal(0, {1.4 + x:.3g})"
        case "poisson":
            return f"poisson({1 + 4 * x:.3g})", f"poisson({2.2 + 4 * x + y:.3g})"
        case "heavy":
            return f"t({2 + 3 * x:.3g})", f"normal({0.4 + 0.6 * y:.3g}, 1)"
    return "exponential(1)", f"exponential({1.4 + x:.3g})"


def drawn_notions(rng: np.random.Generator) -> tuple[str, list[str]]:
    """A notion, and others that it implies: whatever meets it meets them."""
    size = float(f"{math.exp(rng.uniform(math.log(0.25), math.log(3))):.3g}")
    more = float(f"{size * rng.uniform(1.05, 1.6):.4g}")
    divergence = str(rng.choice(["zcdp", "renyi", "kl"]))  # whose decisions take seconds each
    kind = str(rng.choice(["pure", "pure", "pure", "approx", "approx", "tv", "gdp", divergence]))
    match kind:
        case "pure":
            delta = float(rng.choice([1e-6, 1e-3, 0.05]))
            return f"pure({size})", [f"pure({more})", f"approx({size}, {delta})", pt.pure(size).into("gdp").text]
        case "approx":
            return f"approx({size}, 0.01)", [f"approx({more}, 0.01)", f"approx({size}, 0.03)"]
        case "tv":
            return f"tv({0.05 + size / 12:.3g})", [f"tv({0.05 + more / 12:.4g})"]
        case "renyi":
            return f"renyi(2, {size})", [f"renyi(2, {more})"]
    return f"{kind}({size})", [f"{kind}({more})"]


def drawn_goal(rng: np.random.Generator) -> Words:
    """An advantage, or two error rates."""
    if rng.uniform() < 0.5:
        return (("advantage", float(rng.choice([0.5, 2 / 3, 0.8]))),)
    alpha, beta = (float(rate) for rate in rng.choice([0.02, 0.05, 0.1, 0.2], size=2))
    return ("alpha", alpha), ("beta", beta)


@cache
def needed(pair: tuple[Any, Any], words: Words) -> float:
    """Records of a test; infinite where no number of them is enough."""
    try:
        return pt.sample_size(*map(_law, pair), **dict(words))
    except pt.errors.Infeasible:
        return math.inf


@cache
def gained(pair: tuple[Any, Any], n: int, words: Words) -> float:
    """The advantage on n records; at a given alpha, minus the type II error."""
    named = {name: value for name, value in words if name not in ("advantage", "beta")}
    test = pt.design(*map(_law, pair), n=n, **named)
    return -test.beta if "alpha" in named else test.advantage


def _law(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


def nested(rng: np.random.Generator, goal: Words) -> Iterator[tuple[str, Words, Words]]:
    """What is compared, the arguments of the smaller class of tests, and those of the larger one."""
    stronger, weaker = drawn_notions(rng)

    def asked(privacy: str = stronger, **words: Any) -> Words:
        return (("privacy", privacy), *goal, *words.items())

    low, high = (sorted(float(f"{end:.3g}") for end in rng.uniform(0.2, 4, size=2)) for _ in range(2))
    for release in ("statistic", "decision"):
        yield f"paper's clamp, {release}", asked(clamp="paper", release=release), asked(release=release)
        for clamp in ((-low[0], high[0]), (-low[1], high[1])):
            yield f"given clamp, {release}", asked(clamp=clamp, release=release), asked(release=release)
        for notion in weaker:
            yield f"stronger notion, {release}", asked(release=release), asked(notion, release=release)
    for clamp in ("tuned", "paper", (-low[0], high[0])):
        yield "statistic", asked(clamp=clamp), asked(clamp=clamp, release="decision")
    if stronger.startswith("pure"):
        twice = f"pure({2 * pt.notions.parse(stronger).epsilon:.6g})"
        yield "add-remove", asked(neighbours="add-remove"), asked(twice)
        yield "two rows", asked(max_rows_per_unit=2), asked()
        yield "paper's test", asked(test="ncllr"), asked()


@dataclass(frozen=True)
class Beaten:
    """A larger class of tests that does worse than a smaller one."""

    what: str
    pair: tuple[Any, Any]
    smaller: Words
    larger: Words
    values: tuple[float, float]

    def __str__(self) -> str:
        return (
            f"BEATEN ({self.what}) {self.pair}: {self.values[0]:.9g} {self.smaller}, {self.values[1]:.9g} {self.larger}"
        )


def beaten(count: int, seed: int, *, most: int = 400, every: int = 1) -> Iterator[tuple[Counter[str], list[Beaten]]]:
    """For each random case how many comparisons of each kind were made, and what was beaten in them.

    Args:
        most: more records than these are not looked at.
        every: only one comparison of so many is made.
    """
    for case in range(count):
        rng = np.random.default_rng([seed, case])
        pair, goal = drawn_pair(rng), drawn_goal(rng)
        found, made = list[Beaten](), Counter[str]()
        for index, (what, smaller, larger) in enumerate(nested(rng, goal)):
            if (index + case) % every or needed(pair, larger) > most:
                continue
            few, many = needed(pair, smaller), needed(pair, larger)
            made[what] += 1
            if many > few:
                found.append(Beaten(what, pair, smaller, larger, (few, many)))
            if (index + case) % 3:
                continue
            n = max(round(many * rng.uniform(0.5, 1)), 1)
            less, more = gained(pair, n, smaller), gained(pair, n, larger)
            made[f"{what}, at n"] += 1
            if more < less - TRACE:
                found.append(Beaten(f"{what}, n = {n}", pair, smaller, larger, (less, more)))
        made += _bounds(pair, goal, rng, most, found)
        yield made + _merged(pair, goal, rng, most, found), found


def _bounds(
    pair: tuple[Any, Any], goal: Words, rng: np.random.Generator, most: int, found: list[Beaten]
) -> Counter[str]:
    """What no private test can beat, beside ours: the linear program where it is small, and the lower bound."""
    stronger, _ = drawn_notions(rng)
    words = (("privacy", stronger), *goal)
    made = Counter[str]()
    ours = needed(pair, (*words, ("release", "decision")))
    if ours > most:
        return made
    laws, named = [_law(law) for law in pair], dict(words)
    bound = pt.lower_bound(*laws, **named)
    made["lower bound"] += 1
    if bound > ours:
        found.append(Beaten("lower bound", pair, words, words, (ours, bound)))
    cells = 2 if "bernoulli" in str(pair[0]) else len(pair[0]) if isinstance(pair[0], tuple) else 99
    if "advantage" in named and ours <= {2: 60, 3: 12}.get(cells, 0) and stronger.startswith(("pure", "approx", "tv")):
        for release in ("statistic", "decision"):
            n = int(needed(pair, (*words, ("release", release))))
            best = pt.optimum(*laws, privacy=stronger, n=n).bound
            made["linear program"] += 1
            if gained(pair, n, (*words, ("release", release))) > best + 1e-7:
                found.append(Beaten("linear program", pair, words, words, (n, best)))
    return made


def _merged(
    pair: tuple[Any, Any], goal: Words, rng: np.random.Generator, most: int, found: list[Beaten]
) -> Counter[str]:
    """Labels merged into two, by the ratio: whoever looks at less must not need fewer records."""
    made = Counter[str]()
    if not isinstance(pair[0], tuple):
        return made
    p, q = (np.array(law) for law in pair)
    order = np.argsort(p / np.maximum(q, 1e-12))
    for cut in range(1, len(order)):
        few = tuple((float(f"{law[order[:cut]].sum():.6g}"), float(f"{law[order[cut:]].sum():.6g}")) for law in (p, q))
        stronger, _ = drawn_notions(rng)
        for release in ("statistic", "decision"):
            words = (("privacy", stronger), *goal, ("release", release))
            if few[0] == few[1] or needed(pair, words) > most:
                continue
            made["merged labels"] += 1
            if needed(pair, words) > needed(few, words):
                found.append(
                    Beaten(f"merged labels {few}", pair, words, words, (needed(few, words), needed(pair, words)))
                )
    return made


def classes(count: int, seed: int) -> None:
    """The search, with what it looked at."""
    start, made, seen = time.perf_counter(), Counter[str](), 0
    for compared, found in beaten(count, seed):
        made += compared
        seen += len(found)
        for one in found:
            print(one, flush=True)
    for what, times in sorted(made.items()):
        print(f"{times:>6} {what}")
    spent = time.perf_counter() - start
    print(f"{count} random cases, seed {seed}: {made.total()} comparisons, {seen} larger classes beaten, {spent:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("grid", "classes"), default="grid")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.what == "classes":
        classes(given.cases, given.seed)
    else:
        grid()


def grid() -> None:
    for name, pairs in (("binary", BINARY), ("ternary", TERNARY)):
        found = cases(pairs)
        worst = max(found, key=lambda case: case.ratio)
        loosest = min(found, key=lambda case: case.bound / case.best)
        print(f"{name}, {len(found)} cases: largest sample_size over optimum {worst.ratio:.3f} at {worst}")
        print(f"  most records more: {max(case.tight - case.best for case in found)}")
        print(f"  smallest lower_bound over optimum {loosest.bound / loosest.best:.3f} at {loosest}")
        print(f"  lower_bound above the optimum in {sum(case.bound > case.best for case in found)} cases")


if __name__ == "__main__":
    main()
