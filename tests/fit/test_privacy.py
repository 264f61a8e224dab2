"""Privacy verified, not argued: every data set of a small domain, every neighbour, exact output probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from privatest.errors import InvalidDocument, InvalidInput
from privatest.fit import FitTest, design_fit
from privatest.fit.candidates import FitStatistic
from privatest.fit.domain import Grains
from privatest.fit.excess_law import Excess
from privatest.privacy import Tulap
from tests.fit.brute_force import histograms, neighbours, tulap_pmf

SLACK = 1 + 1e-12
NULLS = [[0.5, 0.5], [0.9, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.6, 0.3, 0.1], [0.5, 0.5, 0.0]]


def law_of_value(test: FitTest, counts: tuple[int, ...]) -> dict[int, Fraction]:
    """Law of T for these data: a point unless each record is mapped to a random grain."""
    excess, grains = test.candidate.excess, test.candidate.grains
    if grains is None:
        return {excess.of(np.array(counts)): Fraction(1)}
    laws = [record_law(grains, symbol) for symbol, count in enumerate(counts) for _ in range(count)]
    found: dict[int, Fraction] = {}
    for drawn in itertools.product(range(grains.count), repeat=len(laws)):
        chance = Fraction(1)
        for law, grain in zip(laws, drawn, strict=True):
            chance *= law[grain]
        value = excess.of(np.bincount(drawn, minlength=grains.count))
        found[value] = found.get(value, Fraction(0)) + chance
    return found


def record_law(grains: Grains, symbol: int) -> list[Fraction]:
    """Law of the grain of one record, from the description of the map."""
    k = len(grains.keep)
    mixed = [Fraction(1, 2 * k) + Fraction(x == symbol) / 2 for x in range(k)]
    kept = [m * r for m, r in zip(mixed, grains.keep, strict=True)]
    owners = [*kept, 1 - sum(kept)]
    return [mass / own for mass, own in zip(owners, grains.owned, strict=True) for _ in range(own)]


def largest_log_ratio(test: FitTest, noise: Tulap) -> float:
    """Largest |log Pr[T + N = y | data] / Pr[T + N = y | neighbour]| over all data sets, neighbours and y."""
    width, offset = noise.width, noise.offset
    laws = {counts: law_of_value(test, counts) for counts in histograms(len(test.domain.probabilities), test.n)}
    values = [value for law in laws.values() for value in law]
    low, high = min(values) - 4 * width, max(values) + 4 * width
    pmf = {d: tulap_pmf(noise.epsilon, width, d + offset) for d in range(low - high - 1, high - low + 1)}
    ys = range(low, high + 1)
    # A number of y on either side of every breakpoint; ratios repeat with the noise's blocks beyond.
    chances = {
        counts: [mpmath.fsum(mpmath.mpf(c.numerator) / c.denominator * pmf[y - v] for v, c in law.items()) for y in ys]
        for counts, law in laws.items()
    }
    with mpmath.workdps(40):
        return max(
            float(abs(mpmath.log(a / b)))
            for counts in laws
            for other in neighbours(counts)
            for a, b in zip(chances[counts], chances[other], strict=True)
        )


@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(2)])
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("null", NULLS)
def test_every_data_set_and_neighbour(null: list[float], n: int, epsilon: Fraction) -> None:
    test = design_fit(null, distance=0.2, epsilon=epsilon, n=n)
    assert largest_log_ratio(small(test), small(test).noise) <= float(epsilon) * SLACK


def small(test: FitTest) -> FitTest:
    """The same test in its largest units, so that there are fewer outputs to enumerate."""
    excess = test.candidate.excess
    simple = excess.simplified(test.n) or Excess(excess.knots, np.ones_like(excess.weights), excess.symbols)
    candidate = FitStatistic(test.method, simple, test.candidate.grains)
    return FitTest(candidate, test.domain, Tulap(test.noise.epsilon, simple.width), test.cutoff, test.distance, test.n)


@pytest.mark.parametrize("null", [[0.5, 0.5], [0.7, 0.3], [0.2, 0.3, 0.5]])
def test_random_grains_keep_privacy(null: list[float]) -> None:
    test = small(design_fit(null, distance=0.2, epsilon=1, n=2, method="grains"))
    assert largest_log_ratio(test, test.noise) <= 1.0 * SLACK


def test_the_bound_is_attained_and_half_the_width_breaks_it(show: Callable[[str], None]) -> None:
    test = small(design_fit([0.25, 0.75], distance=0.2, epsilon=1, n=4))
    ratio = largest_log_ratio(test, test.noise)
    assert ratio == pytest.approx(1.0, abs=1e-12)
    wide = FitTest(
        FitStatistic("direct", test.candidate.excess.refined(2 * test.candidate.excess.width)),
        test.domain,
        Tulap(Fraction(1), 2 * test.candidate.excess.width),
        test.cutoff,
        test.distance,
        test.n,
    )
    broken = largest_log_ratio(wide, Tulap(Fraction(1), test.candidate.excess.width))
    show(f"largest log-ratio {ratio:.12f} epsilon; with half the width {broken:.3f} epsilon")
    assert broken == pytest.approx(2.0, abs=1e-12)


def test_an_object_with_too_little_noise_cannot_be_made() -> None:
    test = design_fit([0.25] * 4, distance=0.3, epsilon=1, n=40)
    with pytest.raises(InvalidInput, match="does not hide"):
        FitTest(
            test.candidate, test.domain, Tulap(Fraction(1), test.noise.width // 2), test.cutoff, test.distance, test.n
        )
    document = test.to_dict()
    document["noise"]["width"] = test.noise.width // 2
    with pytest.raises(InvalidDocument, match="does not hide"):
        FitTest.from_dict(document)
    document = test.to_dict()
    document["statistic"]["weights"] = [2 * w for w in document["statistic"]["weights"]]
    with pytest.raises(InvalidDocument, match="does not hide"):
        FitTest.from_dict(document)


def test_a_record_that_makes_no_sense_counts_as_the_most_likely_symbol() -> None:
    test = design_fit({"a": 0.2, "b": 0.5, "c": 0.3}, distance=0.3, epsilon=1, n=6)
    assert test.odd_symbol == 1
    rng = np.random.default_rng
    plain = test.run(["a", "b", "b", "c", "b", "b"], rng=rng(7))
    odd = test.run(["a", "b", None, "c", float("nan"), ["unhashable"]], rng=rng(7))
    assert plain == odd


def test_release_is_a_function_of_the_noisy_statistic_alone() -> None:
    test = design_fit([0.3, 0.3, 0.4], distance=0.3, epsilon=1, n=12)
    noisy = Fraction(test.candidate.excess.of(np.array([2, 3, 7]))) + test.noise.offset
    release = test.release(noisy)
    text = str(release.to_dict())
    assert set(release.to_dict()) == {
        *("decision", "statistic", "pvalue", "epsilon", "n", "test", "neighbours", "simulated", "private"),
        *("receipt", "replayed", "format", "pvalue_alternative", "fits"),
    }
    assert "[" not in text
    assert test.release(noisy) == release
