"""Privacy of estimates and of two groups, of the code that runs: every data set, neighbour and branch of every draw.

As in ``test_running_privacy``: laws are those of the public runs, and for each mechanism one test breaks it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privatest.engines import open_source
from privatest.errors import InvalidInput
from privatest.estimates.estimate import EstimateDesign, design_estimate
from privatest.estimates.groups import GroupsDesign, design_groups
from privatest.estimates.location import STARTS, Location
from privatest.estimates.tuned_score import success_score
from privatest.hypotheses.one_parameter import OneParameter
from privatest.privacy import Pure, Tulap, canonical_noise
from privatest.privacy.canonical_noise import counts_guarantee, counts_noise
from privatest.privacy.composition import adds_up_within
from privatest.privacy.notion import Neighbourhood
from privatest.scores.score import DyadicCells
from tests.contracts.test_running_privacy import SLACK, laws_of, loss
from tests.contracts.walk import largest_loss, walking

Records = tuple[Any, ...]
CELLS = DyadicCells(0, 0, 8)
RATE = OneParameter.of("bernoulli(?)", None)


def small_rate(epsilon: Fraction, n: int, rows: int = 1, **words: Any) -> EstimateDesign:
    """A rate, on a lattice of two steps a record."""
    score = success_score(RATE, 2)
    noise = words.pop("noise", Tulap(epsilon, 2 * rows))
    return EstimateDesign(
        family="bernoulli(?)",
        between=(0.0, 1.0),
        confidence=0.9,
        notion=Pure(epsilon),
        n=n,
        score=score,
        noise=noise,
        max_rows_per_unit=rows,
        **words,
    )


def remember(monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    """Compute what follows from a draw once; it is the same for every data set."""
    release, known = kind.release, {}

    def kept(self: Any, draw: Any, *, simulated: bool = False) -> Any:
        key = id(self), tuple(draw) if isinstance(draw, list) else draw
        if key not in known:
            known[key] = release(self, draw, simulated=simulated)
        return known[key]

    monkeypatch.setattr(kind, "release", kept)


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    remember(monkeypatch, EstimateDesign)


def told(release: Any) -> Hashable:
    return release.estimate, release.interval, release.statistic, release.beyond


def run_estimate(design: EstimateDesign) -> Callable[[Records, Any], Hashable]:
    return lambda data, source: told(design.run(np.array(data, dtype=object), rng=source))


@pytest.mark.parametrize(("epsilon", "n"), [("2", 2), ("1/3", 2), ("1", 3)])
def test_an_estimate(epsilon: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    design = small_rate(Fraction(epsilon), n)
    quick(monkeypatch)
    with walking(4):
        found = loss(run_estimate(design), (0, 1, None), n)
    assert 0.999 * float(Fraction(epsilon)) < found <= Fraction(epsilon) * SLACK


def forged(design: Any, **fields: Any) -> Any:
    """The same object with other fields, past its own check; the check itself refuses it."""
    with pytest.raises(InvalidInput, match="Use more noise"):
        replace(design, **fields)
    made = object.__new__(type(design))
    made.__dict__.update({name: value for name, value in design.__dict__.items() if name in design.__annotations__})
    made.__dict__.update(fields)
    return made


def test_an_estimate_with_half_the_noise_is_refused_and_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = forged(small_rate(Fraction(1), 2), noise=Tulap(Fraction(2), 2))
    quick(monkeypatch)
    with walking(4):
        assert loss(run_estimate(bad), (0, 1), 2) > 1.9


def test_a_person_of_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    design = small_rate(Fraction(1), 3, rows=2)
    quick(monkeypatch)

    def run(mine: Records, source: Any) -> Hashable:
        rows = [("me", x) for x in mine] + [("you", 1)]
        frame = pd.DataFrame({"who": [who for who, _ in rows], "x": [x for _, x in rows]})
        return told(design.run(frame, column="x", unit="who", rng=source))

    pairs = list(itertools.permutations(itertools.product((0, 1), repeat=2), 2))
    with walking(3):
        assert 0.9 < largest_loss(laws_of(run, pairs), pairs, None) <= SLACK


# two steps ------------------------------------------------------------------------------------------------------------
# Which bin is the fullest follows from all noisy counts at once, none of which may be cut off: so all their values are
# gone through, as far as they have a probability of 1e-20, and the code that runs says what is chosen.


def two_steps(first: Fraction, second: Fraction, rows: int = 1) -> EstimateDesign:
    """Eight cells: one bin holds all of them, or two bins some, as the bins start. All rows are one person's."""
    location = Location(CELLS, counts_noise(Pure(first), Neighbourhood(rows=rows)))
    fields: dict[str, Any] = {"location": location, "second": Pure(second), "level": 0.95, "max_rows_per_unit": rows}
    return EstimateDesign(
        family="normal(mean=?, sd=1)", between=(0.0, 8.0), confidence=0.9, notion=Pure(first + second), n=rows, **fields
    )


class Start:
    """A source that says where the bins start."""

    simulated = True

    def __init__(self, start: int) -> None:
        self.start = start

    def below(self, n: int) -> int:
        assert n == STARTS
        return self.start


def chosen(location: Location, data: Records, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, int], float]:
    """The law of what the first step says, by all values of the noise on both counts."""
    assert location.bins == 2
    counts = open_source(np.array(data, dtype=float)).histogram(location.cells)
    reach = int(location.noise.reach(46))
    values = np.arange(-reach, reach + 1)
    masses = np.asarray(location.noise.pmf(values))
    found: dict[tuple[int, int], float] = {}
    for start in range(STARTS):
        won = np.zeros(2)
        for first, mass in zip(values.tolist(), masses.tolist(), strict=True):
            # The second bin wins from some value of its noise on: found by asking, not assumed.
            low, high = -reach - 1, reach + 1
            while high - low > 1:
                middle = (low + high) // 2
                noise = np.array([2 * first, 2 * middle])
                monkeypatch.setattr(
                    sys.modules["privatest.estimates.location"], "draw_many", lambda *_, noise=noise: noise
                )
                place = location.chosen(counts, Start(start))[1]  # type: ignore[arg-type]
                low, high = (low, middle) if place == 1 else (middle, high)
            won += mass * np.array([location.noise.cdf(high - 1), location.noise.sf(high - 1)])
        found |= {(start, place): float(won[place]) / STARTS for place in (0, 1)}
    return found


def steps_loss(design: EstimateDesign, monkeypatch: pytest.MonkeyPatch, *, only_first: bool = False) -> float:
    """The largest loss of (start, bin, noisy total), where the second total is that of its own small score."""
    assert design.location is not None
    assert design.second is not None
    noise, values = canonical_noise(design.second, 2), np.arange(-40, 41) + 0.5
    laws = {}
    for data in itertools.combinations_with_replacement((0.5, 6.5, 3.5), design.max_rows_per_unit):
        first = chosen(design.location, data, monkeypatch)
        moved = values - (2 if data[0] > 4 else 0)
        laws[data] = {
            (*place, *([] if only_first else [v])): p * (1.0 if only_first else float(q))
            for place, p in first.items()
            for v, q in zip(values, noise.pmf(moved), strict=True)
            if p > 0 and q > 1e-12
        }
    pairs = itertools.permutations(laws, 2)
    return max(abs(np.log(laws[a][x] / laws[b][x])) for a, b in pairs for x in laws[a].keys() & laws[b].keys())


def test_two_steps_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first step says, and all that both say; the first one with half its noise is refused and seen."""
    first, second = Fraction(2), Fraction(1)
    good = two_steps(first, second)
    step, both = (steps_loss(good, monkeypatch, only_first=only) for only in (True, False))
    assert 0.5 * first < step <= first * (1 + 1e-9)
    assert 1.3 < both <= (first + second) * (1 + 1e-9)
    assert good.location is not None
    bad = forged(good, location=Location(CELLS, Tulap(Fraction(2), 1)))
    assert steps_loss(bad, monkeypatch, only_first=True) > first * 1.1


def test_the_second_step_has_noise_for_all_rows_of_a_person() -> None:
    rows, words = 2, {"between": (-40, 40), "epsilon": 4, "n": 600}
    made = design_estimate("normal(mean=?, sd=1)", max_rows_per_unit=rows, **words)  # type: ignore[arg-type]
    assert made.location is not None
    there = made.second_step(0, 5)
    assert there.max_rows_per_unit == rows
    assert there.noise is not None
    assert there.score is not None
    assert there.noise.guarantee(rows * there.score.width) == made.second
    assert adds_up_within([*counts_guarantee(made.location.noise, made.around), made.second], made.notion)


# two groups -----------------------------------------------------------------------------------------------------------


def small_groups(epsilon: Fraction, n: tuple[int, int], **words: Any) -> GroupsDesign:
    made = design_groups(n=n, epsilon=epsilon)
    return replace(made, score=success_score(RATE, 1), noise=words.pop("noise", Tulap(epsilon, 1)), **words)


def run_groups(design: GroupsDesign) -> Callable[[Records, Any], Hashable]:
    split = design.n[0]

    def run(data: Records, source: Any) -> Hashable:
        one, other = (np.array(part, dtype=object) for part in (data[:split], data[split:]))
        release = design.run(one, other, rng=source)
        return release.pvalue, release.difference, release.rates, release.interval, release.decision

    return run


def quick_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    remember(monkeypatch, GroupsDesign)


def test_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_groups(monkeypatch)
    design = small_groups(Fraction(3, 2), (1, 2))
    with walking(3):
        assert 0.999 * 1.5 < loss(run_groups(design), (0, 1, None), 3) <= 1.5 * SLACK


def test_two_groups_with_half_the_noise_are_refused_and_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_groups(monkeypatch)
    bad = forged(small_groups(Fraction(1), (1, 1)), noise=Tulap(Fraction(2), 1))
    with walking(3):
        assert loss(run_groups(bad), (0, 1), 2) > 1.9
