"""Two noisy counts: size at every common rate, p-values by brute force, intervals that hold the difference."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.estimates.groups import _masses
from privatest.estimates.two_counts import TwoCounts
from privatest.laws.noisy_counts import NoisyCount
from privatest.privacy import Tulap


def counts(n: tuple[int, int], epsilon: str = "1", fine: int = 1, **words: Any) -> TwoCounts:
    noise = Tulap(Fraction(epsilon), fine)
    masses, variance = _masses(noise, fine), noise.variance / fine**2
    return TwoCounts(NoisyCount(n[0], masses), NoisyCount(n[1], masses), noise_variances=(variance, variance), **words)


def every(two: TwoCounts, rates: tuple[float, float]) -> tuple[Any, Any]:
    """All pairs of noisy counts, their statistics, and how likely each is."""
    one, other = two.control.law(rates[0]), two.treatment.law(rates[1])
    first, second = np.meshgrid(one.values, other.values, indexing="ij")
    statistics = two.statistics(first, second)
    return statistics, np.multiply.outer(one.masses, other.masses)


@pytest.mark.parametrize(("n", "seen"), [((12, 12), (2, 9)), ((9, 20), (7, 4)), ((15, 6), (0, 6)), ((5, 40), (-2, 30))])
def test_a_tail_by_brute_force(n: tuple[int, int], seen: tuple[int, int]) -> None:
    """The statistic grows with the treatment's count, so that a threshold of it is enough: nothing else is assumed."""
    two = counts(n)
    for common in (0.05, 0.4, 0.9):
        statistics, joint = every(two, (common, common))
        assert np.all(np.diff(statistics, axis=1) >= -1e-12)
        assert np.all(np.diff(statistics, axis=0) <= 1e-12)
        least = two.statistic(seen) - 1e-9
        assert two._from(common, least) == pytest.approx(float(joint[statistics >= least].sum()), abs=1e-12)


def test_a_pvalue_is_the_largest_over_the_rates_that_are_left() -> None:
    two = counts((25, 30))
    seen = (5, 17)
    low, high = two.left(sum(seen), 0.0)
    tails = []
    for common in np.linspace(low, high, 101):
        statistics, joint = every(two, (common, common))
        tails.append(float(joint[statistics >= two.statistic(seen) - 1e-9].sum()))
    assert two.pvalue(seen) == pytest.approx(2 * max(tails) + two.ignored, rel=1e-3)
    assert two.pvalue(seen) >= 2 * max(tails) + two.ignored - 1e-12
    assert two.swapped.pvalue(seen[::-1]) == pytest.approx(two.pvalue(seen), rel=1e-9)
    one_sided = counts((25, 30), alternative="greater")
    assert one_sided.pvalue(seen) == pytest.approx(max(tails) + two.ignored, rel=1e-3)
    assert counts((25, 30), alternative="less").pvalue(seen) > 0.99


def test_common_rates_that_are_left_out_are_as_unlikely_as_said() -> None:
    two = counts((25, 30))
    low, high = two.left(20, 0.0)
    for end, side in ((low, 1), (high, -1)):
        one, other = (part.law(end) for part in (two.control, two.treatment))
        sums = np.add.outer(one.values, other.values)
        joint = np.multiply.outer(one.masses, other.masses)
        beyond = float(joint[sums >= 20].sum() if side == 1 else joint[sums <= 20].sum())
        assert beyond == pytest.approx(two.ignored / 2, rel=0.02)


@pytest.mark.parametrize(("n", "alternative"), [((12, 12), "two-sided"), ((6, 15), "two-sided"), ((10, 10), "less")])
def test_the_size_is_at_most_alpha_at_every_rate(n: tuple[int, int], alternative: str, show: Any) -> None:
    """Of the p-values that a release computes, for every pair of noisy counts: nothing is tabled."""
    two = counts(n, alternative=alternative)
    known: dict[tuple[int, int], bool] = {}
    sizes = {}
    for common in (0.02, 0.3, 0.85):
        one, other = (part.law(common) for part in (two.control, two.treatment))
        size = 0.0
        for i, first in enumerate(one.values.tolist()):
            for j, second in enumerate(other.values.tolist()):
                mass = float(one.masses[i] * other.masses[j])
                if mass > 1e-5:
                    if (first, second) not in known:
                        rough = abs(two.statistic((first, second)))
                        known[first, second] = rough > 1.4 and two.pvalue((first, second)) <= 0.05
                    size += mass * known[first, second]
        sizes[common] = size
        assert size == pytest.approx(two.power((common, common), 0.05), abs=0.003)
    show(f"n={n} {alternative}: size {', '.join(f'{size:.4f}' for size in sizes.values())}")
    assert max(sizes.values()) <= 0.05
    assert max(sizes.values()) > 0.02


def test_intervals_hold_the_difference(show: Any) -> None:
    two, rng = counts((15, 20), "2"), np.random.default_rng(3)
    missed, runs = 0, 20
    for _ in range(runs):
        rates = rng.random(2)
        one, other = two.control.law(rates[0]), two.treatment.law(rates[1])
        seen = int(rng.choice(one.values, p=one.masses)), int(rng.choice(other.values, p=other.masses))
        low, high = two.interval(seen, 0.9)
        assert -1 <= low <= high <= 1
        missed += not low <= rates[1] - rates[0] <= high
    show(f"90% intervals of a difference: {missed} of {runs} missed")
    assert missed <= 5  # 2 expected at most; 6 or more has a probability of 1%


def test_one_sided_intervals_have_one_end() -> None:
    low, high = counts((30, 40), alternative="greater").interval((9, 24), 0.95)
    assert high == 1
    both = counts((30, 40)).interval((9, 24), 0.9)
    assert low == pytest.approx(both[0], abs=2e-3)
    assert counts((30, 40), alternative="less").interval((9, 24), 0.95)[0] == -1


def test_without_the_noise_in_the_law_the_size_is_wrong() -> None:
    """What the noise costs is in the law: one that forgets it finds differences far too often."""
    good = counts((40, 40), "1/4")
    still = counts((40, 40), "40")
    one, other = good.control.law(0.3), good.treatment.law(0.3)
    wrong = 0.0
    for i, first in enumerate(one.values.tolist()):
        masses = other.masses * one.masses[i]
        if masses.max() > 1e-5:
            statistics = np.array([abs(still.statistic((first, int(v)))) for v in other.values])
            wrong += float(masses[statistics > 2.1].sum())
    assert wrong > 0.15
    assert good.power((0.3, 0.3), 0.05) <= 0.05
