"""What the decision alone saves: records with release="decision" beside release="statistic" and the lower bound.

python -m benchmarks.bench_stair                # 14 pairs at five epsilons, some minutes
python -m benchmarks.bench_stair stated         # the numbers that are promised
python -m benchmarks.bench_stair notions        # every notion on coins and two ternary pairs, beside the optimum
python -m benchmarks.bench_stair pairs 0.5 1    # these epsilons only
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import privatest as pt

PAIRS: list[tuple[str, Any, Any]] = [
    ("Ber .4/.6", "bernoulli(0.4)", "bernoulli(0.6)"),
    ("Ber 0/.1", "bernoulli(0)", "bernoulli(0.1)"),
    ("(.2,.3,.5)/(.5,.3,.2)", [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ("(0,.5,.5)/(.1,.6,.3)", [0.0, 0.5, 0.5], [0.1, 0.6, 0.3]),
    ("(.1,.2,.3,.4)/(.4,.3,.2,.1)", [0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]),
    ("N(0,1)/N(.5,1)", "normal(0, 1)", "normal(0.5, 1)"),
    ("N(0,1)/N(1,1)", "normal(0, 1)", "normal(1, 1)"),
    ("N(0,1)/N(0,1.5)", "normal(0, 1)", "normal(0, 1.5)"),
    ("t(3)/N", "t(3)", "normal(0, 1)"),
    ("gamma(2)/gamma(2.5)", "gamma(2, 1)", "gamma(2.5, 1)"),
    ("Exp 1/2", "exponential(1)", "exponential(2)"),
    ("Laplace 0/1", "laplace(0, 1)", "laplace(1, 1)"),
    ("Poisson 3/4", "poisson(3)", "poisson(4)"),
    ("Poisson 1/2", "poisson(1)", "poisson(2)"),
]
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
STATED: list[tuple[Any, Any, dict[float, int]]] = [
    ("t(3)", "normal(0, 1)", {2: 28, 4: 20}),
    ("normal(0, 1)", "normal(0, 1.5)", {2: 16, 4: 13}),
    ("normal(0, 1)", "normal(1, 1)", {2: 6}),
    ([0.0, 0.5, 0.5], [0.1, 0.6, 0.3], {1: 23, 2: 14, 3: 11}),
    ("gamma(2, 1)", "gamma(2.5, 1)", {2: 32, 4: 28}),
    ("normal(0, 1)", "normal(0.2, 1)", {1: 114, 2: 101, 4: 95}),
]
NOTIONS = ("pure(1)", "approx(1, 1e-6)", "approx(0.5, 0.05)", "tv(0.1)", "tv(0.25)", "gdp(1)", "gdp(0.5)")
MORE = ("zcdp(0.5)", "renyi(2, 0.5)", "kl(0.5)")
FINITE = (
    ("Ber .4/.6", [0.6, 0.4], [0.4, 0.6]),
    ("(.2,.3,.5)/(.5,.3,.2)", [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ("(0,.5,.5)/(.1,.6,.3)", [0.0, 0.5, 0.5], [0.1, 0.6, 0.3]),
)


def stated() -> None:
    """The promised numbers, beside ours."""
    for null, alternative, goals in STATED:
        for epsilon, most in goals.items():
            n = pt.sample_size(null, alternative, epsilon=epsilon, release="decision")
            said = "as stated" if n <= most else "MORE THAN STATED"
            print(f"{null!s:>16} {alternative!s:>16} eps {epsilon:<4g} n {n:>4} (at most {most}) {said}", flush=True)


def pairs(epsilons: tuple[float, ...]) -> None:
    """Records over the lower bound, of both releases: median and worst."""
    ratios: dict[str, list[float]] = {"statistic": [], "decision": []}
    for name, null, alternative in PAIRS:
        for epsilon in epsilons:
            start = time.process_time()
            bound = pt.lower_bound(null, alternative, epsilon=epsilon)
            found = {release: pt.sample_size(null, alternative, epsilon=epsilon, release=release) for release in ratios}
            for release, n in found.items():
                ratios[release].append(n / bound)
            told = ", ".join(f"{release} {n} ({n / bound:.3f})" for release, n in found.items())
            spent = time.process_time() - start
            print(f"{name:>28} eps {epsilon:<4g} bound {bound:>6}: {told}  [{spent:.1f} s]", flush=True)
    for release, values in ratios.items():
        middle, worst = statistics.median(values), max(values)
        print(f"{release}: n over the bound, median {middle:.3f}, worst {worst:.3f}, of {len(values)}")


def notions() -> None:
    """n of the decision and of the optimum, under every notion."""
    for name, null, alternative in FINITE:
        for text in NOTIONS + MORE:
            n = pt.sample_size(null, alternative, privacy=text, release="decision")
            try:
                best: int | str = pt.sample_size(null, alternative, privacy=text, test="optimum")
                over = f"{n / int(best):.3f}"
            except pt.errors.PrivatestError as error:
                best, over = f"not computed ({type(error).__name__})", ""
            print(f"{name:>24} {text:<18} n {n:>4}  optimum {best} {over}", flush=True)


def main(words: list[str]) -> None:
    """What is asked for; without words the pairs."""
    match words:
        case ["stated"]:
            stated()
        case ["notions"]:
            notions()
        case ["pairs", *rest] if rest:
            pairs(tuple(float(word) for word in rest))
        case _:
            pairs(EPSILONS)


if __name__ == "__main__":
    main(sys.argv[1:])
