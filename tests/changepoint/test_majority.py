"""The paper's intervals: exact laws against enumeration, the rule against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privatest.changepoint.majority import Majority, _argmin, recommended_interval
from privatest.changepoint.rules import Intervals


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_the_argmins_law_by_enumeration(blocks: int) -> None:
    ups = np.random.default_rng(blocks).random(blocks)
    law = np.zeros(blocks)
    for signs in itertools.product((1, -1), repeat=blocks):
        z = np.array(signs)
        law[np.argmin(np.cumsum(z[::-1])[::-1])] += np.prod(np.where(z < 0, ups, 1 - ups))
    assert _argmin(ups) == pytest.approx(law, abs=1e-14)


@pytest.mark.parametrize("interval", [1, 4, 5])
def test_false_stops_and_misses_by_enumeration(interval: int) -> None:
    rule = Majority(interval, 3, 0.3, 0.2)
    stops = missed = 0.0
    for new in itertools.product((0, 1), repeat=interval):
        count = sum(new)
        stops += 0.3**count * 0.7 ** (interval - count) * (2 * count > interval)
        missed += 0.8**count * 0.2 ** (interval - count) * (2 * count <= interval)
    assert rule.false_stop == pytest.approx(stops, rel=1e-12)
    assert rule.missed == pytest.approx(missed, rel=1e-12)
    assert rule.time_between_false_alarms == pytest.approx(3 * interval / stops)


def test_the_recommended_interval_is_the_smallest_that_meets_the_targets() -> None:
    n = recommended_interval(10, 0.3, 0.3, 0.1, 1e5)
    assert n is not None

    def meets(size: int) -> bool:
        rule = Majority(size, 10, 0.3, 0.3)
        enough = rule.time_between_false_alarms >= 1e5 and rule.missed <= 0.025
        return enough and rule.accuracy(0.1) is not None

    assert meets(n)
    assert not any(meets(size) for size in range(1, n))
    larger = recommended_interval(10, 0.3, 0.3, 0.1, 1e8)
    assert larger is not None
    assert larger > n  # the paper's log k*
    assert recommended_interval(10, 0.499, 0.499, 0.1, 1e9) is None


@pytest.mark.statistical
@pytest.mark.parametrize("place", [0, 5, 12])
def test_the_accuracy_holds(place: int) -> None:
    """Changes at several places of an interval, given no stop before: simulated bits through the rule that runs."""
    n, alpha, beta, runs = 13, 0.25, 0.25, 3000
    accuracy = Majority(n, 1, alpha, beta).accuracy(0.2)
    assert accuracy is not None
    rng, rule, off, valid = np.random.default_rng(place), Intervals(n), 0, 0
    change = 2 * n + place
    for _ in range(runs):
        new = np.where(np.arange(20 * n) < change, rng.random(20 * n) < alpha, rng.random(20 * n) >= beta)
        progress, hit = rule.feed(rule.begin, np.where(new, 1, -1))
        assert hit is not None
        if hit >= change:
            valid += 1
            off += abs(progress.start - change) > accuracy
    assert valid > runs / 2
    assert off / valid <= 0.2 + 4 * np.sqrt(0.16 / valid)


def test_the_rule_is_the_papers() -> None:
    """Blocks of bits in any portions: the first interval with more -1, then the argmin over it and the one before."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        z = np.where(rng.random(40) < 0.55, 1, -1)
        n = int(rng.integers(1, 7))
        stop = next((j for j in range(40 // n) if z[j * n : (j + 1) * n].sum() < 0), None)
        rule, progress, hit, done = Intervals(n), Intervals.begin, None, 0
        while done < 40 and hit is None:
            size = int(rng.integers(1, 9))
            progress, hit = rule.feed(progress, -z[done : done + size])
            hit = None if hit is None else done + hit
            done += size
        if stop is None:
            assert hit is None
            continue
        assert hit == (stop + 1) * n - 1
        first = max(stop - 1, 0) * n
        sums = [z[t : (stop + 1) * n].sum() for t in range(first, (stop + 1) * n)]
        assert progress.start == first + int(np.argmin(sums))
