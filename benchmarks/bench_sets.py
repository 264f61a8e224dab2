"""Sets of distributions: worst-case errors against members, two sides, what data fit, and what a box costs.

    python -m benchmarks.bench_sets           everything
    python -m benchmarks.bench_sets balls boxes one_sided two_sided fits cost ten

Every figure is exact but those of ``fits``, which counts 10,000 simulated runs of each kind. ``ten`` prints CPU seconds
of the process; with PYTHONPATH set to another tree's ``src`` it prints those of that version.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import privatest as pt

BALLS = [
    ("normal(0, 1)", "normal(1, 1)", 0.02, 1),
    ("normal(0, 1)", "normal(1, 1)", 0.05, 0.5),
    ("normal(0, 1)", "normal(0.5, 1)", 0.02, 1),
]
BOXES = [
    ("normal", (0, 0), (0.8, 1.2), (1, 1), (0.8, 1.2), 20),
    ("normal", (0, 0), (0.5, 2), (1, 1), (0.5, 2), 60),
    ("gamma", (1, 1.5), (1, 1.2), (2.5, 3), (1.3, 1.5), 20),
    ("negative_binomial", (3, 4), (0.5, 0.6), (6, 7), (0.35, 0.4), 20),
    ("student_t", (3, 8), (-0.2, 0.2), (3, 8), (1.3, 1.7), 30),
]
NAMES = {
    "normal": ("mean", "sd"),
    "gamma": ("shape", "scale"),
    "negative_binomial": ("n", "p"),
    "student_t": ("df", "loc"),
}
ONE_SIDED = [
    ("binomial(10, p{})", "binomial(10, {})", (0.01, 0.3), (0.4, 0.99)),
    ("poisson(mean{})", "poisson({})", (0.01, 3.0), (4.0, 30.0)),
    ("exponential(scale{})", "exponential({})", (0.01, 1.0), (2.0, 50.0)),
    ("normal(mean{}, sd=1)", "normal({}, 1)", (-9.0, 0.0), (0.5, 9.0)),
    ("normal(0, sd{})", "normal(0, {})", (0.01, 1.0), (1.5, 50.0)),
    ("laplace(loc{}, scale=1)", "laplace({}, 1)", (-9.0, 0.0), (0.7, 9.0)),
]
MEMBERS = 200
RUNS = 10_000


def largest(test: pt.results.PrivateTest, members: list[str], side: int) -> float:
    """The largest error of the test under these members of the null (side 0) or the alternative (side 1)."""
    powers = [test.power(member) for member in members]
    return max(powers) if side == 0 else 1 - min(powers)


def balls() -> None:
    """Members of ``near``: point masses, other laws mixed in, shifts."""
    rng = np.random.default_rng(1)
    for null, alternative, distance, epsilon in BALLS:
        sets = pt.near(null, distance), pt.near(alternative, distance)
        n = pt.sample_size(*sets, epsilon=epsilon)
        test = pt.design(*sets, epsilon=epsilon, n=n)
        found = []
        for side, centre in enumerate((null, alternative)):
            members = []
            mean = float(centre.removeprefix("normal(").split(",")[0])
            for _ in range(MEMBERS // 2):
                others = (
                    f"normal({float(rng.uniform(-9, 9))!r}, 0.001)",
                    f"uniform({(low := float(rng.uniform(-6, 5)))!r}, {low + float(rng.uniform(0.1, 3))!r})",
                )
                members += [f"mixture({1 - distance!r}, {centre}, {distance!r}, {other})" for other in others]
            members += [f"normal({mean + shift * 2.5 * distance!r}, 1)" for shift in (-1, 1)]
            found.append(largest(test, members, side))
        print(
            f"near({null}, {distance}) against near({alternative}, {distance}), epsilon {epsilon}: n = {n}; stated "
            f"alpha {test.alpha:.9f}, beta {test.beta:.9f}; largest of {MEMBERS} members {found[0]:.9f}, {found[1]:.9f}"
        )


def boxes() -> None:
    """Stated errors and the largest on a grid over the box."""
    for family, *ranges, n in BOXES:
        names = NAMES[family]
        texts, sides = [], []
        for first, second in (ranges[:2], ranges[2:]):
            words = [
                f"{name}={a}" if a == b else f"{name} in [{a}, {b}]"
                for name, (a, b) in zip(names, (first, second), strict=True)
            ]
            texts.append(f"{family}({', '.join(words)})")
            points = 1000 if first[0] == first[1] else 32
            grid = itertools.product(
                np.linspace(*first, 1 if first[0] == first[1] else points), np.linspace(*second, points)
            )
            sides.append([f"{family}({names[0]}={float(a)!r}, {names[1]}={float(b)!r})" for a, b in grid])
        start = time.process_time()
        test = pt.design(*texts, epsilon=1, n=n)
        took = time.process_time() - start
        found = [largest(test, members, side) for side, members in enumerate(sides)]
        print(
            f"{texts[0]} against {texts[1]}, n = {n}: stated {test.alpha:.6f}, {test.beta:.6f}; largest of "
            f"{len(sides[0])} members {found[0]:.6f}, {found[1]:.6f}; over by {test.alpha - found[0]:.1e}, "
            f"{test.beta - found[1]:.1e}; {took:.1f} s"
        )


def one_sided() -> None:
    """The boundary is the worst member of a one-sided set."""
    for family, member, low, high in ONE_SIDED:
        test = pt.design(family.format(f"<={low[1]}"), family.format(f">={high[0]}"), epsilon=1)
        found = []
        for side, ends, edge in ((0, low, low[1]), (1, high, high[0])):
            members = [member.format(repr(float(value))) for value in np.linspace(*ends, MEMBERS)]
            found.append((largest(test, members, side), largest(test, [member.format(edge)], side)))
        print(
            f"{test.null} against {test.alternative}: n = {test.n}; stated {test.alpha:.9f}, {test.beta:.9f}; largest "
            f"of {MEMBERS} {found[0][0]:.9f}, {found[1][0]:.9f}; at the boundary {found[0][1]:.9f}, {found[1][1]:.9f}"
        )


def two_sided() -> None:
    """A shift of 0.4 standard deviations to either side, and the sign test."""
    shift = pt.any_of("normal(mean<=-0.4, sd=1)", "normal(mean>=0.4, sd=1)")
    n = pt.sample_size("normal(0, 1)", shift, epsilon=1, alpha=0.05, beta=0.2)
    print(f"two-sided shift of 0.4 sd, epsilon 1, level 5%, power 80%: n = {n}")
    n = pt.sample_size("median(5)", "median_above(5, share=0.6)", epsilon=1, alpha=0.05, beta=0.2)
    coins = pt.sample_size("bernoulli(0.5)", "bernoulli(0.6)", epsilon=1, alpha=0.05, beta=0.2)
    print(f"sign test of a median, 60% above, the same: n = {n}; of coins {coins}")


def fits() -> None:
    """How often "neither" is said of data from P, from Q and from the middle, at two and at four times the records.

    At twice the records of advantage 0.99 not even the likelihood ratio without privacy, at a level of 0.2%, tells the
    middle from P with probability 99%: 96.1% of the time for these.
    """
    enough = pt.sample_size("normal(0, 1)", "normal(1, 1)", epsilon=1, advantage=0.99)
    rng = np.random.default_rng(7)
    for times in (2, 4):
        test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=times * enough)
        for name, mean in (("P", 0.0), ("Q", 1.0), ("the middle", 0.5)):
            said = Counter(test.run(rng.normal(mean, 1, test.n), rng=rng).fits for _ in range(RUNS))
            print(f"{RUNS:,} data sets of n = {test.n} from {name}: neither {said['neither'] / RUNS:.2%}; {dict(said)}")


def cost() -> None:
    """A design with a box of two parameters beside that of the simple pair, alternately, medians of five."""
    questions = {
        "simple": ("normal(0, 1)", "normal(1, 1)"),
        "box": ("normal(mean in [-0.1, 0], sd in [0.9, 1.1])", "normal(mean in [1, 1.1], sd in [0.9, 1.1])"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(5):
        for name, (null, alternative) in questions.items():
            start = time.process_time()
            test = pt.design(null, alternative, epsilon=1, n=50)
            _ = test.alpha, test.beta
            seconds[name].append(time.process_time() - start)
    medians = {name: sorted(found)[2] for name, found in seconds.items()}
    print(
        f"design on 50 records: simple {medians['simple']:.3f} s, box of two parameters {medians['box']:.3f} s, "
        f"{medians['box'] / medians['simple']:.1f} times"
    )


TEN = [
    ("poisson(mean<=2.5)", "poisson(mean>=3)", ("poisson(2.5)", "poisson(3)")),
    ("bernoulli(p<=0.2)", "bernoulli(p>=0.3)", ("bernoulli(0.2)", "bernoulli(0.3)")),
    ("normal(mean<=0, sd=1)", "normal(mean>=0.5, sd=1)", ("normal(0, 1)", "normal(0.5, 1)")),
    ("exponential(mean<=1)", "exponential(mean>=1.5)", ("exponential(1)", "exponential(1.5)")),
    (
        "negative_binomial(3, p>=0.6)",
        "negative_binomial(3, p<=0.5)",
        ("negative_binomial(3, 0.6)", "negative_binomial(3, 0.5)"),
    ),
    ("normal(0, sd in [0.8, 1.2])", "normal(1, sd in [0.8, 1.2])", None),
    ("normal(mean<=0, sd in [1, 2])", "normal(mean>=1, sd in [1, 2])", None),
    ("normal(mean in [-0.5, 0.2], sd in [0.5, 2])", "normal(mean in [1, 3], sd in [0.3, 1])", None),
    ("gamma(shape in [2, 3], scale in [1, 1.2])", "gamma(shape in [2, 3], scale in [2, 2.4])", None),
    ("student_t(5, loc<=0)", "student_t(5, loc>=0.7)", ("student_t(5, 0)", "student_t(5, 0.7)")),
]


def ten() -> None:
    """CPU seconds of the sample sizes of ten pairs of sets; of one-sided ones beside those of their ends."""
    pt.sample_size("normal(0, 1)", "normal(0.9, 1)", epsilon=1)  # what is imported and compiled once

    def timed(null: str, alternative: str) -> tuple[int | str, float]:
        start = time.process_time()
        try:
            n: int | str = pt.sample_size(null, alternative, epsilon=1)
        except pt.errors.PrivatestError as error:
            n = f"refused ({str(error)[:60]})"
        return n, time.process_time() - start

    for null, alternative, ends in TEN:
        # Ends first, and alternately: what is kept of one question must not serve the other.
        simple = None if ends is None else timed(*ends)
        n, seconds = timed(null, alternative)
        beside = "" if simple is None else f"; its ends {simple[1]:.2f} s, {seconds / simple[1]:.1f} times"
        print(f"{null} against {alternative}: n = {n}, {seconds:.2f} s{beside}", flush=True)


PARTS: dict[str, Callable[[], Any]] = {
    part.__name__: part for part in (balls, boxes, one_sided, two_sided, fits, cost, ten)
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
