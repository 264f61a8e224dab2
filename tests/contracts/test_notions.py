"""Tests under every notion: all data sets of few records, all events; what does not meet its notion is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines
from privatest.privacy import Noise, Notion, canonical_noise
from privatest.privacy.composition import noise_distribution
from privatest.privacy.decision_chain import ONE, Chain, decision_noise
from privatest.privacy.verification import data_sets, neighbouring
from privatest.scores import Score
from tests.privacy.test_canonical import worst

NOTIONS = [
    "pure(1)",
    "approx(1, 0.001)",
    "approx(0.5, 0.05)",
    "tv(0.2)",
    "gdp(1)",
    "zcdp(0.5)",
    "renyi(2, 0.5)",
    "kl(0.5)",
]
P, Q = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}
MOST = 5
"""Records."""
each_notion = pytest.mark.parametrize("text", NOTIONS)


def moves(values: dict[str, int], most: int) -> set[int]:
    """By how much a sum differs between neighbours, over all data sets of up to so many records.

    A sum looks at the histogram of the records alone, and two data sets that differ in one record have histograms that
    differ by one record moved from one symbol to another: so neighbouring histograms are all there is to look at.
    """
    labels, found = sorted(values), set()
    for n in range(1, most + 1):
        for data in data_sets(len(labels), n, ordered=False):
            here = sum(values[labels[place]] for place in data)
            for other in neighbouring(data, len(labels), ordered=False):
                found.add(sum(values[labels[place]] for place in other) - here)
    return found | {-move for move in found}


def violation(notion: Notion, noise: Noise, shifts: set[int]) -> float:
    """By how much a noisy total violates a notion, over totals so far apart: their laws are shifted, and no more."""
    reach = int(noise.reach(40)) + max(shifts) + 2
    x = np.arange(-reach, reach + 1) + float(noise.offset)
    return max(worst(notion, noise.pmf(x), noise.pmf(x - shift)) for shift in shifts)


def scores_of(score: Score, null: dict[str, float]) -> dict[str, int]:
    return {label: engines.open_for(engines.Need(rows=1), [label]).total(score) for label in null}


@cache
def designed(text: str, symbols: int) -> dict[str, tuple[Noise, set[int]]]:
    """Every mechanism that releases a noisy total: its noise, and what neighbours differ by."""
    null, alternative = (dict(list(law.items())[:symbols]) for law in (P, Q))
    null, alternative = ({x: p / sum(law.values()) for x, p in law.items()} for law in (null, alternative))
    test = pt.design(null, alternative, privacy=text, n=MOST)
    rate = pt.design_estimate("categorical(a=?)", privacy=text, n=MOST)
    groups = pt.design_groups(n=(MOST, MOST), privacy=text, success="a")
    fit = pt.design_fit(null, distance=0.3, privacy=text, n=MOST)
    assert rate.score is not None
    assert rate.noise is not None
    histograms = [np.bincount(data, minlength=symbols) for data in data_sets(symbols, MOST, ordered=False)]
    excess = {tuple(h): int(fit.candidate.excess.of(h)) for h in histograms}
    apart = {
        excess[one] - excess[other] for one in excess for other in excess if np.abs(np.subtract(one, other)).sum() == 2
    }
    return {
        "test": (test.noise, moves(scores_of(test.score, null), MOST)),
        "estimate": (rate.noise, moves(scores_of(rate.score, null), MOST)),
        "groups": (groups.noise, moves(scores_of(groups.score, null), MOST)),
        "fit": (fit.noise, apart),
    }


@each_notion
@pytest.mark.parametrize("symbols", [pytest.param(2, marks=pytest.mark.exhaustive), 3])
def test_all_neighbours_meet_the_notion(text: str, symbols: int, show: Any) -> None:
    """All data sets of up to five records of two or three symbols, all events, all that releases a noisy total."""
    notion = pt.notions.parse(text)
    found = {name: violation(notion, *one) for name, one in designed(text, symbols).items()}
    half = {name: violation(notion, *halved(notion, *one)) for name, one in designed(text, symbols).items()}
    show(f"{text}, {symbols} symbols: violation {max(found.values()):.1e}, of half the noise {min(half.values()):.1e}")
    assert max(found.values()) <= 1e-12
    assert min(half.values()) > 1e-4


def halved(notion: Notion, noise: Noise, shifts: set[int]) -> tuple[Noise, set[int]]:
    half = canonical_noise(notion, max(shifts) // 2)
    assert half.variance < 0.3 * noise.variance
    return half, shifts


@each_notion
@pytest.mark.parametrize("symbols", [2, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_decisions_on_all_data_sets(text: str, symbols: int, show: Any) -> None:
    """The decision alone: within h of its neighbours', and on two points as near to it as can be."""
    notion = pt.notions.parse(text)
    null, alternative = (dict(list(law.items())[:symbols]) for law in (P, Q))
    null, alternative = ({x: p / sum(law.values()) for x, p in law.items()} for law in (null, alternative))
    test = pt.design(null, alternative, privacy=text, n=MOST, release="decision")
    values = scores_of(test.score, null)

    def rises(noise: Noise) -> list[tuple[float, float]]:
        """Pr["null"] on a data set and on a neighbour, as far as the second is the larger one."""
        found = set()
        for data in itertools.chain.from_iterable(data_sets(symbols, n, ordered=False) for n in range(1, MOST + 1)):
            for other in neighbouring(data, symbols, ordered=False):
                sums = (sum(values[sorted(values)[place]] for place in one) for one in (data, other))
                p, q = sorted(float(noise.sf(float(test.cutoff) - total)) for total in sums)
                found |= {(p, q)} if q > p else set()
        return sorted(found)

    excess = [q - float(notion.h(p)) for p, q in rises(test.noise)]
    half = [q - float(notion.h(p)) for p, q in rises(decision_noise(notion, test.score.width // 2))]
    show(f"{text}, {symbols} symbols: violation {max(excess):.1e}, slack {-min(excess):.1e}, of half {max(half):.1e}")
    assert max(excess) <= 1e-12
    assert max(half) > 1e-4
    if symbols == 2:
        assert min(excess) > -1e-9


@pytest.mark.parametrize("text", ["approx(1, 0.001)", "approx(0.5, 0.05)", "approx(0, 0.2)", "tv(0.2)", "tv(0.1)"])
@pytest.mark.parametrize("symbols", [2, 3])
def test_levels_on_all_data_sets(text: str, symbols: int, show: Any) -> None:
    """Under approx and tv the noisy level may leave with the decision: all data sets, all events, exactly."""
    null, alternative = (dict(list(law.items())[:symbols]) for law in (P, Q))
    null, alternative = ({x: p / sum(law.values()) for x, p in law.items()} for law in (null, alternative))
    test = pt.design(null, alternative, privacy=text, n=MOST, release="decision")
    assert test.released == "level"
    values, noise = scores_of(test.score, null), test.noise
    assert isinstance(noise, Chain)

    def masses(of: Chain) -> dict[int, Fraction]:
        first, heights = of._heights
        return {-first - place: Fraction(b - a, ONE) for place, (a, b) in enumerate(itertools.pairwise(heights))}

    def levels(of: Chain) -> Any:
        law = masses(of)

        def mechanism(data: tuple[str, ...]) -> dict[int, Fraction]:
            total = sum(values[x] for x in data)
            return {of.level(total + of.width * g, test.cutoff): mass for g, mass in law.items() if mass}

        return mechanism

    words: dict[str, Any] = {"domain": list(null), "privacy": text, "ordered": False}
    found = [pt.verify_privacy(levels(noise), n=n, **words) for n in range(1, MOST + 1)]
    half = Chain(noise.notion, test.score.width // 2, noise.start)
    tight = max(one.measured for one in found) / found[0].allowed
    show(f"{text}, {symbols} symbols: levels private, {tight:.12g} of what is allowed")
    assert all(one.private and one.exact for one in found)
    assert tight > 1 - 1e-9
    assert not pt.verify_privacy(levels(half), n=1, **words)
    told = masses(noise)  # what the noisy total itself would tell: the total modulo the width
    whole = pt.verify_privacy(
        lambda data: {sum(values[x] for x in data) + noise.width * g: mass for g, mass in told.items() if mass},
        n=2,
        **words,
    )
    assert bool(whole) == (symbols == 2)  # of two symbols all totals are the same modulo the width
    release = test.run(["a"] * MOST, rng=np.random.default_rng(2))
    assert release.statistic is not None
    assert (release.decision == "null") == (release.statistic >= 1)


def law_at(test: Any, total: int) -> dict[Any, float]:
    """What leaves on records with this total, and how probably: from the definition of each noise."""
    noise, cutoff = test.noise, test.cutoff
    if test.released == "statistic":
        reach = int(noise.reach(300)) + 2
        x = np.arange(-reach, reach + 1)
        return dict(zip((x + total).tolist(), noise.pmf(x + float(noise.offset)).tolist(), strict=True))
    if isinstance(noise, Chain):
        first, heights = noise._heights  # 2^192 Pr[G > -k] from k = first on; noisy totals are total + width G
        if test.released == "decision":
            level = math.ceil((total - cutoff) / noise.width)  # G > -level
            above = Fraction(heights[min(max(level - first, 0), len(heights) - 1)], ONE)
            return {"null": float(above), "alternative": float(1 - above)}
        steps = {
            1 - first - place: (high - low) / ONE for place, (low, high) in enumerate(itertools.pairwise(heights), 1)
        }
    else:
        steps = {g: float(noise.pmf(float(noise.width * g))) for g in range(-40, 41)}
    return {noise.level(total + noise.width * g, cutoff): mass for g, mass in steps.items() if mass}


def exact_delta(one: dict[Any, float], other: dict[Any, float], epsilon: float) -> float:
    """The hockey-stick divergence of the first from the second."""
    scale = math.exp(epsilon)
    return math.fsum(max(mass - scale * other.get(outcome, 0.0), 0.0) for outcome, mass in one.items())


LOSING = [*NOTIONS, "tv(0.3)", "approx(1, 1e-6)"]
SHORT = {"statistic": ["approx(0.5, 0.05)", "gdp(1)"], "decision": ["pure(1)", "approx(0.5, 0.05)", "renyi(2, 0.5)"]}
"""Each way in which losses are computed, once; the others are in the exhaustive tests."""
PAIRS: dict[str, tuple[Any, Any]] = {"labels": (P, Q), "normal": ("normal(0, 1)", "normal(1, 1)")}


@pytest.mark.parametrize(
    ("text", "kind", "pair"),
    [
        pytest.param(text, kind, pair, marks=[] if text in SHORT[kind] else pytest.mark.exhaustive)
        for kind, pair in (("statistic", "labels"), ("decision", "normal"))
        for text in LOSING
    ],
)
def test_privacy_losses_are_those_of_the_worst_neighbours(text: str, kind: str, pair: str, show: Any) -> None:
    """Of every release under every notion: delta is never less than exact, in either direction, nor much more."""
    pytest.importorskip("dp_accounting")
    test = pt.design(*PAIRS[pair], privacy=text, n=10, release=kind)
    losses, mirrored = test.privacy_loss_distribution(), noise_distribution(test.noise.mirrored, test.sensitivity)
    move, centre = test.sensitivity, math.floor(test.cutoff)
    apart = {1, move // 2, move} if kind == "statistic" else {move}
    starts = [0] if kind == "statistic" else [centre + move * level - 1 for level in range(-12, 13)]
    neighbours = [(law_at(test, start), law_at(test, start + shift)) for start in starts for shift in apart]
    below, more = 0.0, 0.0
    for epsilon in (0.0, 0.05, 0.3, 0.75, 1.0, 1.7, 3.0, 30.0, 40.0):
        exact = max(exact_delta(*two, epsilon) for one in neighbours for two in (one, one[::-1]))
        for told in (float(one.get_delta_for_epsilon(epsilon)) for one in (losses, mirrored)):
            below, more = max(below, exact - told), max(more, told - exact)
    show(f"{text}, {kind} of {pair}: told at most {below:.1e} below the exact delta, {more:.1e} above")
    assert below <= 1e-15
    assert more <= 3e-5
