"""The certificate: never above the best test, by programs and by tests that exist; each ingredient another way."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from privatest.bounds import advantage_bound, lower_bound
from privatest.bounds.dominating_pair import Atoms, Shape, _cells, atoms_of, split_atoms
from privatest.bounds.lower_bound import CAREFUL, QUICK, Certificate, Effort
from privatest.bounds.optimum import Program, optimum_sample_size
from privatest.bounds.two_point import TwoPoint
from privatest.hypotheses import Pair, make_pair
from privatest.hypotheses.pair import ContinuousPair
from privatest.privacy import Pure, as_notion
from privatest.theory.coupling import merge

Show = Callable[[str], None]
Floats = npt.NDArray[np.float64]

ROUGH = Effort(3, (2, 2), 0.5, 1e-2)
CONTINUOUS = [
    ("normal(0, 1)", "normal(0.2, 1)"),
    ("normal(0, 1)", "normal(3, 1)"),
    ("laplace(0, 1)", "laplace(0.5, 1)"),
    ("exponential(1)", "exponential(1.5)"),
    ("cauchy(0, 1)", "cauchy(1, 1)"),
    ("uniform(0, 1)", "uniform(0.2, 1.2)"),
    ("normal(0, 1)", "normal(0, 2)"),
    ("poisson(3)", "poisson(4)"),
]


def masses(atoms: Atoms) -> tuple[float, float]:
    return float(atoms.p.sum()) + atoms.p_only, float(atoms.q.sum()) + atoms.q_only


def hockey_stick(atoms: Atoms, level: float) -> float:
    return atoms.beyond(level)


@pytest.mark.parametrize(("null", "alternative"), CONTINUOUS)
def test_the_atoms_dominate_and_barely(null: str, alternative: str) -> None:
    """Domination is: no smaller hockey-stick divergence at any level, in either direction (Blackwell)."""
    pair = make_pair(null, alternative)
    atoms = atoms_of(pair)
    assert masses(atoms) == pytest.approx((1, 1), abs=1e-12)
    for level in (0.0, 0.01, 0.1, 0.5, 1.0, 2.0):
        for found, exact in (
            (hockey_stick(atoms, level), pair.hockey_stick(level)),
            (hockey_stick(atoms.mirrored, level), pair.hockey_stick(level, reverse=True)),
        ):
            assert found >= exact * (1 - 1e-9) - 1e-15
            assert found <= exact * 1.01 + 1e-4
    assert 1 - float(atoms.roots.sum()) == pytest.approx(pair.hellinger_squared, rel=1e-3)


@pytest.mark.parametrize(("null", "alternative"), CONTINUOUS)
def test_no_ratio_of_a_cell_lies_beyond_its_ends(null: str, alternative: str) -> None:
    """Right up to both landmarks of a cell, where the ratio is not looked at."""
    pair = make_pair(null, alternative)
    if not isinstance(pair, ContinuousPair):
        pytest.skip("cells are those of densities")
    _, _, low, high = _cells(pair)
    x = pair.landmarks
    for share in (1e-9, 1e-7, 0.1, 0.5, 0.9, 1 - 1e-7, 1 - 1e-9):
        inside = x[:-1] + share * np.diff(x)
        ratio = pair.ratio(inside)
        known = (inside > x[:-1]) & (inside < x[1:]) & np.isfinite(ratio)
        assert known.any()
        assert np.all(ratio[known] >= low[1:-1][known] - 1e-12)
        assert np.all(ratio[known] <= high[1:-1][known] + 1e-12)


def random_shape(atoms: Atoms, rng: np.random.Generator) -> Shape:
    largest = max(min(float(np.abs(atoms.levels).max(initial=0.1)), 5.0), 0.01)
    top = None if rng.random() < 0.4 else float(rng.uniform(0.01, 1.2) * largest)
    cuts = tuple(float(rng.choice([0.0, 0.05, 0.3, 0.6, 1.0])) for _ in range(2))
    return Shape(top, (cuts[0], cuts[1]), int(rng.integers(-1, 2)))


def random_pair(rng: np.random.Generator) -> Pair:
    k = int(rng.integers(3, 5))
    p, q = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 3.0])), size=2)
    for law in (p, q):
        if rng.random() < 0.3:
            law[int(rng.integers(k))] = 0.0
            law /= law.sum()
    return make_pair(p, q)


@pytest.mark.parametrize("pairs", [4, pytest.param(14, marks=pytest.mark.exhaustive)])
def test_every_shape_is_above_the_linear_program(pairs: int, show: Show) -> None:
    """Whatever the shape, and however rough the computation, no bound is below the best test."""
    rng = np.random.default_rng(3)
    closest, count, best_gap = math.inf, 0, []
    for _ in range(pairs):
        pair = random_pair(rng)
        epsilon, classes = float(rng.choice([0.05, 0.3, 1.0, 3.0])), merge(pair)
        n = int(rng.integers(1, 16 if classes.count == 3 else 7))
        best = optimum_of_two(classes.p, classes.q, epsilon, n)
        if classes.count > 2:
            best = Program(classes, Pure(epsilon), n).solved()[1]
        atoms = atoms_of(pair)
        for _ in range(5):
            split = split_atoms(atoms, random_shape(atoms, rng))
            for movers, sign in ((split.p_movers, 1), (split.q_movers, -1)):
                rest = float((split.roots * np.exp(sign * split.levels / 2)).sum())
                assert movers >= 0
                assert split.tau + movers + rest == pytest.approx(1, abs=1e-9)
            for effort in (QUICK, CAREFUL, ROUGH):
                bound = Certificate(split, Pure(epsilon), effort, 0.3).bound(n)
                assert bound >= best - 1e-9
                closest, count = min(closest, bound - best), count + 1
        best_gap.append(advantage_bound(pair, Pure(epsilon), n) - best)
        assert best_gap[-1] >= -1e-9
    show(
        f"{count} bounds, the closest {closest:.1e} above the program; best shape: median "
        f"{np.median(best_gap):.1e}, worst {max(best_gap):.3f}"
    )
    assert np.median(best_gap) < 0.002


def optimum_of_two(p: Floats, q: Floats, epsilon: float, n: int) -> float:
    return TwoPoint(n, float(p[1]), float(q[1]), epsilon).best()[0]


GRID = [
    ([0.6, 0.4], [0.4, 0.6]),
    ([0.9, 0.1], [0.7, 0.3]),
    ([1.0, 0.0], [0.9, 0.1]),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
    ([0.1, 0.3, 0.6], [0.2, 0.5, 0.3]),
    ([0.0, 0.5, 0.5], [0.2, 0.5, 0.3]),
    ([0.05, 0.15, 0.8], [0.2, 0.2, 0.6]),
    ([0.5, 0.3, 0.2], [0.3, 0.2, 0.5]),
]


@pytest.mark.parametrize("epsilon", [1, *(pytest.param(other, marks=pytest.mark.exhaustive) for other in (0.3, 3))])
def test_never_above_the_best_sample_size(epsilon: float, show: Show) -> None:
    """At most the n of the linear program, and at least nine tenths of it."""
    ratios = {}
    for null, alternative in GRID:
        bound = lower_bound(null, alternative, epsilon=epsilon)
        if len(null) == 2:
            best = optimum_sample_size(null, alternative, epsilon=epsilon)
        else:  # one program tells: the bound's n reaches, or the first after it that does
            best = next(
                n
                for n in itertools.count(max(bound - 1, 1))
                if Program(merge(make_pair(null, alternative)), Pure(epsilon), n).reaches(2 / 3)
            )
        assert bound <= best
        ratios[f"{null}/{alternative} at {epsilon}"] = bound / best
    where = min(ratios, key=lambda key: ratios[key])
    show(f"lower_bound over the optimum's n: at least {ratios[where]:.4f} of {len(ratios)} cases, at {where}")
    assert ratios[where] > 0.9


@pytest.mark.parametrize(
    ("null", "alternative"),
    [
        ("t(3)", "normal(0, 1)"),
        pytest.param("normal(0, 1)", "normal(0.5, 1)", marks=pytest.mark.exhaustive),
        pytest.param("poisson(3)", "poisson(4)", marks=pytest.mark.exhaustive),
    ],
)
def test_a_bound_never_rises_with_epsilon(null: str, alternative: str, show: Show) -> None:
    """A bound that holds at one epsilon holds at every smaller one."""
    bounds = [lower_bound(null, alternative, epsilon=epsilon) for epsilon in (0.45, 0.5, 0.55, 1)]
    show(f"{null} against {alternative}: {bounds}")
    assert bounds == sorted(bounds, reverse=True)


NOTIONS = ["approx(0.5, 0.05)", "tv(0.15)", "gdp(0.7)", "kl(0.2)", "renyi(2, 0.4)"]


@pytest.mark.parametrize("privacy", NOTIONS)
def test_every_shape_of_every_notion_is_above_the_program(privacy: str) -> None:
    """As for epsilon; also with unequal weights on the two errors."""
    rng = np.random.default_rng(8)
    notion = as_notion(privacy)
    for _ in range(3):
        pair = random_pair(rng)
        classes = merge(pair)
        n = int(rng.integers(2, 6))
        best = Program(classes, notion, n).solved()[1]
        power = Program(classes, notion, n, 0.2).solved()[1]
        atoms = atoms_of(pair)
        for _ in range(3):
            split = split_atoms(atoms, random_shape(atoms, rng))
            for effort in (QUICK, ROUGH):
                assert Certificate(split, notion, effort, 0.3).bound(n) >= best - 3e-9
                for tilt in (-1.0, 0.7):
                    bound = Certificate(split, notion, effort, 0.3, tilt).bound(n)
                    weighed = 0.2 * math.exp(tilt / 2) + (1 - power) * math.exp(-tilt / 2)
                    assert (1 - bound) * math.exp(-abs(tilt) / 2) <= weighed + 3e-9


@pytest.mark.parametrize("privacy", ["approx(0.5, 0.05)", "gdp(0.7)"])
def test_between_the_bound_and_the_best_size(privacy: str) -> None:
    pair = ([0.1, 0.3, 0.6], [0.6, 0.3, 0.1])
    size = optimum_sample_size(*pair, privacy=privacy)
    assert 0.85 * size <= lower_bound(*pair, privacy=privacy) <= size


def test_records_in_blocks_that_do_not_divide_them_are_above_the_linear_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of several records, as those of thousands are, at sizes that the program reaches: none is left out."""
    pair = make_pair(np.array([0.3, 0.4, 0.2, 0.1]), np.array([0.1, 0.2, 0.4, 0.3]))
    atoms, classes, privacy = atoms_of(pair), merge(pair), Pure(8.0)
    for n in (3, 4, 5):
        best = Program(classes, privacy, n).solved()[1]
        for shape in (Shape(None, (1.0, 1.0), 0), Shape(0.8, (1.0, 1.0), 0), Shape(None, (0.6, 0.6), 0)):
            split = split_atoms(atoms, shape)
            assert len(split.levels) > 1  # else there is nothing to put into blocks
            for most, effort in itertools.product((1, 2), (QUICK, CAREFUL, ROUGH)):
                monkeypatch.setattr(sys.modules["privatest.bounds.lower_bound"], "MOST_BLOCKS", most)
                assert Certificate(split, privacy, effort, 0.3).bound(n) >= best - 1e-9
