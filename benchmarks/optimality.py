"""How far the tight test is from the best possible one, on a grid of binary and ternary pairs.

Prints the largest ratio of `sample_size` to the linear program's n, where it occurs, and the smallest ratio of
`lower_bound` to it. Takes several minutes: python benchmarks/optimality.py
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
            pt.optimum_sample_size(*pair, epsilon=epsilon),
            pt.lower_bound(*pair, epsilon=epsilon),
        )
        for pair, epsilon in itertools.product(pairs, epsilons)
    ]


def main() -> None:
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
