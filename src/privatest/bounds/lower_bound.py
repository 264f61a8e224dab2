r"""How many records every private test needs: a lower bound with constants, for any pair and any notion.

The pair is replaced by pairs that dominate it and have three parts (``bounds/dominating_pair.py``). A record is one of

- *tails*, with probability tau: p under P and q under Q;
- *movers*: "+" or "-", at rates x under P and y under Q;
- *the rest*, with some ratio.

Reveal to the tester which records belong to which part, and what the rest is. Of all eps-DP tests g on what remains
hidden, k tails and K movers, the least weighted error with weights u on P and v on Q is at least

.. math:: \Phi_{k,K}(u, v) \ge \max_j \Phi_K(u e^{-\varepsilon j}, v e^{-\varepsilon (k - j)}),

because turning j of the tails from p into q costs 1 - g at most a factor e^(eps j), and turning the other k - j from
q into p costs g at most e^(eps (k - j)); Phi_K is known in closed form (``bounds/two_point.py``). With S the rest's
log-likelihood ratio, every eps-DP test on n records has

.. math:: \text{advantage} \le 1 - \sum_{k, K} \int \Phi_{k,K}(dP, dQ)
        = 1 - \sum_{k,K} \Pr[k, K]\, A^{n}\, E\, e^{-\varepsilon k / 2} \varphi_{k,K}(S),

where A is the Hellinger affinity and the mean is under the law proportional to sqrt(PQ). This contains the paper's
coupling (no movers, the smaller weight in place of Phi) and the bound without privacy (movers not hidden), and
is exact on two-point domains. For other notions of stability Phi_{0,K} is that of a two-point domain
(``Chains`` in ``bounds/two_point.py``), Phi_{k,0} that of a two-point domain in which P has k records more, and
Phi_{k,K} is bounded by Phi_{k+K,0}, as if movers revealed as much as tails. Every approximation errs on the safe side:
what is dropped has Phi >= 0, counts are rounded up (more records never hurt the tester), ratios are split.

Every choice of the three parts gives a valid bound (:class:`Certificate`); :class:`_Search` looks for a good one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from privatest.bounds.dominating_pair import NOTHING, Atoms, RootLaw, Shape, Split, atoms_of, shares, split_atoms
from privatest.bounds.two_point import Chains, TwoPoint, corners
from privatest.decision.problem import Goal
from privatest.errors import Infeasible
from privatest.hypotheses import Pair
from privatest.hypotheses.parse import hardest_pair
from privatest.laws.block_laws import binomial
from privatest.numbers import Floats, Number, rational, root
from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, make_notion
from privatest.progress_events import each

_NEAR = (-1, 0, 1)
_PEAK_GRID = np.linspace(-4.0, 4.0, 81)


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """Both error rates at every threshold that matters, and the ratios at which the best threshold changes.

    Attributes:
        alphas, betas: type I and type II errors at each threshold.
        turns: log ratios from which on the next threshold is better; they never decrease.
        gap: a lower bound on the weighted error at thresholds that are not listed, for u = v = 1; infinite if all are.
        target, peak: the maximiser and the maximum of Phi(e^(l/2), e^(-l/2)) as a function of l.
    """

    alphas: Floats
    betas: Floats
    turns: Floats
    gap: float
    target: float = 0.0
    peak: float = 1.0


def balanced(tables: Sequence[ErrorTable], lengths: Sequence[int], ratio: Floats) -> Floats:
    r"""Phi(e^(l/2), e^(-l/2)) at each l = log u/v; the first ``lengths[0]`` values are for the first table, and so on.

    Guarantees: at most the true value, up to rounding; at most e^(-|l|/2).
    """
    sizes = np.array([len(table.alphas) for table in tables])
    starts = np.cumsum(sizes) - sizes
    ends = np.cumsum(lengths)
    place = np.concatenate(
        [
            np.searchsorted(table.turns, -ratio[end - length : end])
            for table, length, end in zip(tables, lengths, ends.tolist(), strict=True)
        ]
    )
    alphas, betas = (np.concatenate([getattr(table, name) for table in tables]) for name in ("alphas", "betas"))
    up = np.exp(np.minimum(np.maximum(ratio, -600.0), 600.0) / 2)  # beyond, the smaller weight is negligible
    down = 1 / up
    first, last = np.repeat(starts, lengths), np.repeat(starts + sizes - 1, lengths)
    place += first
    reached = np.full(len(ratio), math.inf)
    for near in _NEAR:  # also the neighbours of the place, as the turns are rounded
        at = np.minimum(np.maximum(place + near, first), last)
        there = alphas[at]
        there *= up
        there += betas[at] * down
        np.minimum(reached, there, out=reached)
    most = np.minimum(up, down)
    gaps = np.array([table.gap for table in tables])
    if np.isfinite(gaps).any():
        most = np.minimum(most, np.repeat(gaps, lengths))
    return np.asarray(np.minimum(most, reached))


def error_tables(problems: Sequence[TwoPoint]) -> list[ErrorTable]:
    """Return the tables of two-point problems under epsilon-DP."""
    tables = [ErrorTable(*problem.rates, turns=problem.turns, gap=problem.gap) for problem in problems]
    values = balanced(tables, [len(_PEAK_GRID)] * len(tables), np.tile(_PEAK_GRID, len(tables)))
    tops = values.reshape(len(tables), -1).argmax(axis=1)
    peaks = values.reshape(len(tables), -1).max(axis=1)
    return [
        replace(table, target=float(_PEAK_GRID[top]), peak=float(peak))
        for table, top, peak in zip(tables, tops, peaks, strict=True)
    ]


# Beyond this many records sums are over blocks of records: one block more or less does not matter.
MOST_BLOCKS = 1024
TAILS_KIND, MOVERS_KIND = 0, 1
# Number of points at which errors are computed together.
LARGEST_BATCH = 1 << 15
# Laws with fewer points are not made coarser.
FEW_POINTS = 128


@dataclass(frozen=True)
class Effort:
    """How finely to compute. Every setting gives a valid bound.

    Attributes:
        steps: lattice steps to a standard deviation of the rest's ratio in one record, or in one block of records.
        groups: largest number of groups of counts, of tails and of movers.
        coarse: relative size of a group of counts that is small enough.
        dropped: share of the error that may be left out.
        points: lattice points to a standard deviation of the rest's ratio in all records together.
        rungs: number of rungs per record on the ladder of a notion whose h is curved.
    """

    steps: int
    groups: tuple[int, int]
    coarse: float
    dropped: float
    points: int = 48
    rungs: int = 8


@dataclass(frozen=True, eq=False)
class Certificate:
    """The bound that one dominating pair proves; laws that do not depend on n are cached.

    Attributes:
        split: the dominating pair.
        notion: the notion of privacy that the tests meet.
        effort: how finely to compute.
        error: the order of the weighted error. Parts that are small compared with it are dropped.
        tilt: log of the weight of type I errors over that of type II errors.
    """

    split: Split
    notion: Notion
    effort: Effort
    error: float
    tilt: float = 0.0
    _bounds: dict[int, float] = field(default_factory=dict)
    _powers: dict[tuple[int, int], RootLaw] = field(default_factory=dict)
    _tables: dict[int, ErrorTable] = field(default_factory=dict)
    _chains: dict[int, Chains] = field(default_factory=dict)
    _hidden: dict[tuple[int, int], ErrorTable] = field(default_factory=dict)

    def tilted(self, tilt: float) -> Certificate:
        """The certificate with other weights of the two errors, which shares all laws, as none depends on them."""
        return replace(self, tilt=tilt, _bounds={})

    def bound(self, n: int) -> float:
        """An upper bound for all private tests on n records: 1 - the least weighted error over that without records."""
        if n not in self._bounds:
            self._bounds[n] = self._bound(n)
        return self._bounds[n]

    @cached_property
    def epsilon(self) -> float:
        """The privacy loss, or that of the pure notion with the same gain from one record, at most 300."""
        return min(loss_of(self.notion), 300.0)

    def _bound(self, n: int) -> float:
        split = self.split
        rest = split.roots
        r_p, r_q = (float((rest * np.exp(sign * split.levels / 2)).sum()) for sign in (1, -1))
        movers, others = math.sqrt(split.p_movers * split.q_movers), math.sqrt(r_p * r_q)
        core = movers + others
        if core == 0:
            return self._only_tails(n)
        # Log ratios of being a mover and of being of the rest, and the affinity of the rest's two laws.
        flag = math.log(split.p_movers / split.q_movers) if movers > 0 else 0.0
        other = math.log(r_p / r_q) if others > 0 else 0.0
        affinity = float(rest.sum()) / others if others > 0 else 1.0
        block, size, exact = self._block(n)
        pieces: list[_Piece] = []
        apart = abs(flag - other)
        for k_low, k_high, tails in self._groups(n, split.tau, TAILS_KIND, self.epsilon):
            m = n - k_low
            outer = float(tails.sum()) * math.exp(m * math.log(core / (1 - split.tau)))
            groups = list(self._groups(m, movers / core, MOVERS_KIND, apart))
            for (low, high, _), ends in zip(groups, _split_groups(groups, m, flag, other), strict=True):
                blocks = -(-(m - low) // size) if others > 0 else 0
                count = blocks * size
                factor = outer * math.exp(count * math.log(affinity))
                for end, weight in ends:
                    if weight > 0:
                        pieces.append(_Piece(k_high, high, blocks, self.tilt + end - count * other, factor * weight))
        self._prepare(pieces, block, size, exact)
        total = self._total(pieces, size)
        # Each binomial, cut off at six deviations, is scaled up by at most 2e-9.
        return min(1.0 - total * (1 - 1e-8) * math.exp(abs(self.tilt) / 2), 1.0)

    def _prepare(self, pieces: list[_Piece], block: RootLaw, size: int, exact: bool) -> None:
        """Compute all laws and tables that the pieces need."""
        missing = sorted({piece.blocks for piece in pieces if (size, piece.blocks) not in self._powers})
        deviation = block.deviation
        for blocks, law in zip(missing, block.powers(missing), strict=True):
            trimmed = self._trimmed(law)
            fine = min(
                deviation * math.sqrt(blocks) / (self.effort.points * block.step), len(trimmed.roots) / FEW_POINTS
            )
            # A lattice on which all levels lie exactly is kept.
            self._powers[size, blocks] = trimmed if exact else trimmed.coarser(math.floor(fine) * block.step)
        if isinstance(self.notion, Pure):
            self._tabulate({piece.movers for piece in pieces})

    def _tabulate(self, movers: set[int]) -> None:
        """Compute the tables of the two-point problems of these numbers of movers."""
        counts = sorted(movers - self._tables.keys())
        if counts:
            problems = [TwoPoint(count, self.split.x, self.split.y, self.epsilon, 6.0) for count in counts]
            self._tables.update(zip(counts, error_tables(problems), strict=True))

    def _total(self, pieces: list[_Piece], size: int) -> float:
        """Return the weighted error of all pieces, in batches of moderate size."""
        ordered = sorted(pieces, key=lambda piece: piece.movers)
        total, batch, points = 0.0, [], 0
        for index, piece in enumerate(ordered):
            batch.append(piece)
            points += len(self._powers[size, piece.blocks].roots)
            if points >= LARGEST_BATCH or index == len(ordered) - 1:
                laws = [self._powers[size, each.blocks] for each in batch]
                lengths = [len(law.roots) for law in laws]
                ratio = np.concatenate([law.levels + each.shift for law, each in zip(laws, batch, strict=True)])
                errors = self._hidden_errors([(each.tails, each.movers) for each in batch], lengths, ratio)
                errors *= np.concatenate([law.roots for law in laws])
                sums = np.add.reduceat(errors, np.cumsum([0, *lengths[:-1]]))
                total += float(sums @ np.array([each.weight for each in batch]))
                batch, points = [], 0
        return total

    def _trimmed(self, law: RootLaw) -> RootLaw:
        """Return the law without the roots far out, which are too small to matter."""
        relevant = np.flatnonzero(law.roots > 0.01 * self.effort.dropped * self.error * law.roots.max())
        if len(relevant) == 0:  # the roots of so many records underflow; dropping them is safe
            return RootLaw(law.step, 0, np.zeros(1))
        return RootLaw(law.step, law.first + int(relevant[0]), law.roots[relevant[0] : relevant[-1] + 1])

    def _only_tails(self, n: int) -> float:
        if self.split.tau < 1:
            return 1.0
        error = float(self._hidden_errors([(n, 0)], [1], np.full(1, self.tilt))[0])
        return 1.0 - error * math.exp(abs(self.tilt) / 2)

    def _groups(self, n: int, rate: float, kind: int, weight: float) -> Iterator[tuple[int, int, Floats]]:
        """Groups of counts (first, last, probabilities) of a binomial, without improbable counts.

        A group costs little if it is small relative to the counts. One tail more or less is worth ``weight``
        nats, so groups of tails may be larger if that is little. The prior ratios of movers in one group are ``weight``
        nats apart, so groups of movers must be smaller if that is much.
        """
        first, law = binomial(n, min(max(rate, 0.0), 1.0), 6.0)
        relevant = np.flatnonzero(law > self.effort.dropped * self.error / 20 * law.max())
        first, law = first + int(relevant[0]), law[relevant[0] : relevant[-1] + 1]
        fine = max(1.0, self.effort.coarse * first)
        if kind == TAILS_KIND:
            fine = max(fine, self.effort.coarse / weight)
        elif weight > 0:
            fine = min(fine, max(1.0, 10 * self.effort.coarse / weight))
        number = min(math.ceil(len(law) / fine), self.effort.groups[kind])
        edges = np.unique(np.rint(np.linspace(0, len(law), number + 1)).astype(np.int64)).tolist()
        for low, after in itertools.pairwise(edges):
            yield first + low, first + after - 1, law[low:after]

    def _block(self, n: int) -> tuple[RootLaw, int, bool]:
        """Normalised roots of the rest for a block of records, the size of the block, whether all levels are exact."""
        levels, roots = self.split.levels, self.split.roots
        if len(levels) == 0:
            return RootLaw(1.0, 0, np.ones(1)), 1, True
        roots = roots / roots.sum()
        spread = math.sqrt(max(float(roots @ (levels - roots @ levels) ** 2), 0.0))
        largest = float(np.abs(levels).max())
        if spread <= 1e-12 * largest or largest == 0:  # one level, whose multiples are a lattice
            return RootLaw.from_levels(levels, roots, largest or 1.0), 1, True
        step = max(spread / self.effort.steps, largest / 4000)
        step = largest / max(round(largest / step), 1)
        law = RootLaw.from_levels(levels, roots, step)
        size = max(n // MOST_BLOCKS, 1)
        if size == 1:
            return law, 1, bool(np.all(np.abs(levels / step - np.rint(levels / step)) < 1e-9))
        together = law.power(size)
        return together.coarser(max(together.deviation / self.effort.steps, together.step)), size, False

    def _hidden_errors(self, hidden: list[tuple[int, int]], lengths: list[int], ratio: Floats) -> Floats:
        r"""e^(-eps k/2) phi_{k,K}, the least error over tests on k tails and K movers, for prior ratios e^l.

        The first ``lengths[0]`` ratios are for the first (k, K), and so on. If i of the k tails become p, prior
        ratios are multiplied by e^(eps (2i - k)). Splitting between i and i + 1, a share f of Q and e^g f of P to i,
        brings both prior ratios to one target, where phi_K is largest.
        """
        if not isinstance(self.notion, Pure):
            return balanced([self._hidden_table(*each) for each in hidden], lengths, ratio)
        self._tabulate({movers for _, movers in hidden})
        tables = [self._tables[movers] for _, movers in hidden]
        tails = np.array([float(k) for k, _ in hidden])
        if not tails.any():
            return balanced(tables, lengths, ratio)
        epsilon = self.epsilon
        k = np.repeat(tails, lengths)
        target = np.repeat([table.target for table in tables], lengths)
        i = np.minimum(np.maximum(np.floor((target - ratio + epsilon * k) / (2 * epsilon)), 0.0), k)
        at = ratio - epsilon * (k - 2 * i)
        errors = balanced(tables, lengths, at)
        between = np.flatnonzero((i < k) & (at <= target))
        if len(between):
            near = at[between]
            among = np.searchsorted(between, np.cumsum([0, *lengths]))  # where each (k, K) begins among these
            peak = np.repeat([table.peak for table in tables], np.diff(among))
            g = np.minimum(target[between] - near, 2 * epsilon)
            f = np.exp(-g) * np.expm1(g - 2 * epsilon) / math.expm1(-2 * epsilon)
            spread = (np.exp(g / 2) * f + np.exp(g / 2 - epsilon) * (1 - f)) * peak
            further = balanced(tables, np.diff(among).tolist(), near + 2 * epsilon)
            errors[between] = np.maximum.reduce([errors[between], further, spread])
        return errors * np.exp(-epsilon * k / 2)

    def _hidden_table(self, tails: int, movers: int) -> ErrorTable:
        """Return the errors of k tails and K movers under any notion.

        If there are both, a chain need not be the best test (if movers reveal little, the same answer for all of them
        is better). The bound is that of movers that reveal as much as tails, which can only help the tester.
        """
        if tails and movers:
            return self._hidden_table(tails + movers, 0)
        if (tails, movers) not in self._hidden:
            if movers not in self._chains:
                x, y = self.split.x, self.split.y
                self._chains[movers] = Chains(movers, x, y, self.notion, self.effort.rungs, 6.0)
            alphas, betas = corners(self._chains[movers], tails)
            with np.errstate(divide="ignore", invalid="ignore"):
                turns = np.log(np.diff(alphas)) - np.log(-np.diff(betas))
            turns = np.maximum.accumulate(np.where(np.isnan(turns), -np.inf, turns)) if len(turns) else turns
            self._hidden[tails, movers] = ErrorTable(alphas, betas, turns, math.inf)
        return self._hidden[tails, movers]


def loss_of(notion: Notion) -> float:
    """Return the epsilon of the pure notion with the same gain from one record."""
    return notion.epsilon if isinstance(notion, Pure) else 2 * math.atanh(min(notion.gain(), 1 - 1e-15))


@dataclass(frozen=True)
class _Piece:
    """A term of the sum: the numbers of hidden tails and movers, and the shift and the weight of the rest's law."""

    tails: int
    movers: int
    blocks: int
    shift: float
    weight: float


def _split_groups(
    groups: list[tuple[int, int, Floats]], m: int, flag: float, other: float
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """For each group of counts of movers among m records, (prior ratio, roots) at both ends.

    The counts of a group have different prior ratios, which are split between the outermost two.
    """
    sizes = [high - low + 1 for low, high, _ in groups]
    starts = np.cumsum([0, *sizes[:-1]])
    counts = np.arange(groups[0][0], groups[-1][1] + 1)
    offsets = counts * flag + (m - counts) * other
    outermost = offsets[starts], offsets[starts + np.array(sizes) - 1]
    least, most = np.minimum(*outermost), np.maximum(*outermost)
    lower, upper = shares(offsets, np.repeat(least, sizes), np.repeat(most, sizes))
    roots = np.concatenate([law for _, _, law in groups])
    at_least, at_most = (np.add.reduceat(roots * share, starts) for share in (lower, upper))
    first, second = (
        zip(end.tolist(), root.tolist(), strict=True) for end, root in ((least, at_least), (most, at_most))
    )
    return zip(first, second, strict=True)


FARTHEST_BOUND = 10**12
MOST_COUNTED = 10**9
"""Chains of a notion are followed up to this many records (not needed for pure notions and an advantage)."""
CUTS = (0.0, 0.02, 0.06, 0.12, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0)
TAILS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Numbers of tails among n records that define the levels of the clamp to try."""
FEW_LEVELS = 12
NEARLY_THE_SAME = 1e-2
"""If two quick bounds differ by less, either start may be the better one."""
PLENTY = 20
"""With this many times the records that are about enough for certainty, nothing below 1 is provable."""
LARGER = 1.2
"""The best shape of a budget that is larger by this factor is tried as well."""
QUICK, CAREFUL = Effort(6, (4, 12), 0.02, 1e-3, 16, 3), Effort(24, (12, 72), 0.002, 1e-5)
STEADY = Effort(8, (5, 20), 0.01, 1e-3, 16)
WEIGHTS = (-3.0, -2.0, -1.2, -0.6, 0.0, 0.4, 0.8, 1.2, 1.6)
"""Tilts that are tried for the least type II error at a level of type I errors."""


def lower_bound(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> int:
    """Return a number of records such that no private test with fewer meets the goal, by default an advantage of 2/3.

    For sets of distributions it is the bound for their hardest members.

    Args:
        null, alternative: P and Q.
        epsilon, privacy: the notion of stability: ``epsilon=1`` is ``privacy="pure(1)"``.
        advantage: the goal, 1 - type I error - type II error; or
        alpha, beta: the goal, two error rates, as Neyman and Pearson ask.

    Guarantees: never more than the best test's sample size; equal to it on two-point domains.

    >>> lower_bound([0.6, 0.4], [0.4, 0.6], epsilon=1), lower_bound("normal(0, 1)", "normal(1, 1)", epsilon=1)
    (29, 9)
    >>> lower_bound([0.6, 0.4], [0.4, 0.6], privacy="gdp(1)"), lower_bound([0.6, 0.4], [0.4, 0.6], privacy="tv(0.1)")
    (27, 43)
    """
    notion = make_notion(epsilon, privacy)
    return records_bound(hardest_pair(null, alternative), notion, Goal.of(advantage=advantage, alpha=alpha, beta=beta))


@lru_cache(maxsize=64)
def records_bound(pair: Pair, notion: Notion, goal: Goal) -> int:
    """Return :func:`lower_bound` for a pair of distributions."""
    atoms = atoms_of(pair)
    rates = _two_rates(atoms)
    aim = _Aim.of(goal)
    if rates is not None:
        # The target counts as reached within rounding.
        value, target = _two_point_value(rates, notion, goal)
        return _last(lambda n: value(n) + 1e-12, target, _guess(atoms, notion, aim.target)) + 1
    n = _guess(atoms, notion, aim.target)
    search = _Search(atoms, notion, aim.error, n, aim.tilt)
    shapes: list[Shape] = []
    rivals: list[Shape] = []
    for _ in each("the bound", range(5)):
        before = n
        shapes, others = search.best_shapes(n, shapes[0] if shapes else None)
        rivals += others
        n = max(_last(search.at(shapes[0], QUICK), aim.target, n, slack=0.01), 1)
        if abs(n - before) <= 0.04 * n:
            break
    rivals += _from_above(search, n)
    # The quick bounds rank only roughly.
    shape = min(dict.fromkeys([*shapes, *rivals]), key=lambda shape: search.at(shape, CAREFUL)(n))
    if goal.alpha is not None:
        search, aim = _best_tilt(search, shape, goal, n)
    return _last(search.at(shape, CAREFUL), aim.target, n, slack=5e-4) + 1


def advantage_bound(pair: Pair, notion: Notion, n: int) -> float:
    """Return an upper bound on the advantage of every private test on n records.

    Guarantees: at least the best test's advantage, up to 1e-9; at most 1; equal to it on two-point domains.
    """
    atoms = atoms_of(pair)
    rates = _two_rates(atoms)
    if rates is not None:
        return _two_point_best(n, rates, notion)
    if n > PLENTY * _guess(atoms, notion, 1 - 1e-12):
        return 1.0
    search = _Search(atoms, notion, 1e-3, n)
    shapes, rivals = search.best_shapes(n)
    rivals += _from_above(search, n)
    return min(search.at(shape, CAREFUL)(n) for shape in dict.fromkeys([*shapes, *rivals]))


@dataclass(frozen=True)
class Guide:
    """A shape in terms that fit a similar pair as well.

    Attributes:
        tails: expected number of tails among n records; None if there is no clamp.
        cuts, open_side: as for :class:`Shape`.
        weight: index of the tilt that proved most.
    """

    tails: float | None
    cuts: tuple[float, float]
    open_side: int
    weight: int = 5


def missed_bound(
    pair: Pair, notion: Notion, n: int, alpha: float, guide: Guide | None = None, *, walk: bool = True
) -> tuple[float, Guide | None]:
    """Return a lower bound on the type II error of private tests on n records whose type I error is at most alpha.

    Args:
        guide: result for a similar pair, whose shape is used; None: the best shape is searched.
        walk: whether to search for better weights of the two errors than those of the guide.

    Guarantees: at most the best test's, up to 1e-9; equal to it on two-point domains. Never below 1 - alpha - the
    advantage that the same shape proves.
    """
    atoms = atoms_of(pair)
    rates = _two_rates(atoms)
    if rates is not None:
        return max(Chains(_countable(n), *rates, notion).beta_bounds(alpha)[0], 0.0), None
    if n > PLENTY * _guess(atoms, notion, 1 - 1e-12):
        return 0.0, guide
    search = _Search(atoms, notion, 1e-3, n)
    if guide is None:
        guide = search.guide(search.best_shapes(n)[0][0])
    certificate = search.certificate(search.guided(guide), STEADY)

    def proven(place: int) -> float:
        tilt = WEIGHTS[place]
        least = 1.0 - certificate.tilted(tilt).bound(n)
        # e^(t/2) times the type I error and e^(-t/2) times the type II error are at least this, times e^(-|t|/2).
        return math.exp((tilt - abs(tilt)) / 2) * least - math.exp(tilt) * alpha

    # Every tilt gives a valid bound; from the last best one, step to better ones.
    best, most = guide.weight, proven(guide.weight)
    for step in (1, -1) if walk else ():
        while 0 <= best + step < len(WEIGHTS) and (bound := proven(best + step)) > most:
            best, most = best + step, bound
    return max(most, 0.0), replace(guide, weight=best)


def about_enough(pair: Pair, notion: Notion, target: float) -> int:
    """Approximate number of records that an advantage requires."""
    return _guess(atoms_of(pair), notion, target)


@dataclass(frozen=True)
class _Aim:
    """A goal in terms of a certificate: errors alpha and beta are out of reach if, for some weights, their weighted sum
    is smaller than that of every private test.

    Attributes:
        tilt: log of the weight of type I errors over that of type II errors.
        error: the goal's weighted error, relative to that without records.
    """

    tilt: float
    error: float

    @property
    def target(self) -> float:
        """The value below which a certificate proves that the goal is out of reach."""
        return 1.0 - self.error

    @classmethod
    def of(cls, goal: Goal, more: float = 0.0) -> _Aim:
        """The weights for which normal laws with these errors have the least weighted error, tilted by ``more``."""
        if goal.alpha is None:
            assert goal.advantage is not None
            return cls(0.0, 1 - goal.advantage)
        alpha, beta = goal.alpha, goal.beta or 0.0
        first, second = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(1 - beta)
        # Only weights for which a constant answer has a larger weighted error than the goal prove anything.
        most, least = math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))
        tilt = min(max((first**2 - second**2) / 2 + more, least + 0.02 * (most - least)), most - 0.02 * (most - least))
        weight = alpha * math.exp(tilt / 2) + beta * math.exp(-tilt / 2)
        return cls(tilt, weight * math.exp(abs(tilt) / 2))


TILTS = (0.0, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0)
"""Differences from the normal laws' weights that are tried."""


def _best_tilt(search: _Search, shape: Shape, goal: Goal, n: int) -> tuple[_Search, _Aim]:
    """Return the weights that prove most at n."""
    aims = [_Aim.of(goal, more) for more in TILTS]
    searches = [_Search(search.atoms, search.notion, aim.error, n, aim.tilt) for aim in aims]
    return min(zip(searches, aims, strict=True), key=lambda each: each[0].at(shape, CAREFUL)(n) - each[1].target)


def _from_above(search: _Search, n: int) -> list[Shape]:
    """The best shape at a larger budget, whose bound holds at this one too: so the result never rises with a budget."""
    larger = _larger(search.notion, LARGER)
    return _Search(search.atoms, larger, search.error, n, search.tilt).best_shapes(n)[0][:1]


def _larger(notion: Notion, times: float) -> Notion:
    """Return the notion with a budget larger by a factor: of the loss, or its square if the budget is a divergence."""
    factor = rational(times)
    if isinstance(notion, Tv):
        return Tv(min(notion.eta * factor, (1 + notion.eta) / 2))
    if isinstance(notion, Approx):
        return Approx(notion.loss * factor, min(notion.delta * factor, (1 + notion.delta) / 2))
    if isinstance(notion, Renyi):
        return Renyi(notion.order, notion.bound * factor**2)
    (budget,) = notion.exact
    if isinstance(notion, Pure | Gdp):
        return type(notion)(budget * factor)
    assert isinstance(notion, Zcdp | Kl)
    return type(notion)(budget * factor**2)


def _two_rates(atoms: Atoms) -> tuple[float, float] | None:
    """Return the probabilities under P and under Q of the larger ratio, if there are only two ratios; else None."""
    order = np.argsort(atoms.levels)
    levels = atoms.levels[order]
    # Levels that agree up to rounding are one.
    starts = np.flatnonzero(np.diff(levels, prepend=-np.inf) > 1e-13 * np.maximum(1.0, np.abs(levels)))
    if len(starts) > 2:
        return None
    p, q = (np.add.reduceat(mass[order], starts).tolist() if len(starts) else [] for mass in (atoms.p, atoms.q))
    if atoms.p_only > 0:
        p, q = [*p, atoms.p_only], [*q, 0.0]
    if atoms.q_only > 0:
        p, q = [0.0, *p], [atoms.q_only, *q]
    if len(p) != 2:
        return None
    return min(p[1], 1.0), min(q[1], 1.0)


def _two_point_best(n: int, rates: tuple[float, float], notion: Notion) -> float:
    if isinstance(notion, Pure):
        return TwoPoint(n, *rates, notion.epsilon).best()[0]
    return Chains(n, *rates, notion).best()[0]


def _two_point_value(rates: tuple[float, float], notion: Notion, goal: Goal) -> tuple[Callable[[int], float], float]:
    """Return the best test's value as a function of n, exact where it is near the goal, and the goal."""
    if goal.alpha is not None:
        level, target = goal.alpha, 1 - (goal.beta or 0.0)

        def power(n: int) -> float:
            problem = Chains(_countable(n), *rates, notion)
            least, most = problem.beta_bounds(level)
            return 1 - (most if 1 - most >= target else least if 1 - least < target else problem.beta_at(level)[0])

        return power, target
    assert goal.advantage is not None
    target = goal.advantage

    def advantage(n: int) -> float:
        if isinstance(notion, Pure):
            return _two_point_best(n, rates, notion)
        low, high = Chains(_countable(n), *rates, notion).bounds()
        return low if low >= target else high if high < target else _two_point_best(n, rates, notion)

    return advantage, target


def _countable(n: int) -> int:
    if n > MOST_COUNTED:
        raise Infeasible(f"More than {MOST_COUNTED:.0e} records would be needed, more than is computed here.")
    return n


def _guess(atoms: Atoms, notion: Notion, target: float) -> int:
    """Approximate answer: a normal approximation without privacy, plus what noise on a count adds."""
    epsilon = loss_of(notion)
    affinity = min(float(atoms.roots.sum()), 1 - 1e-15)
    deviations = NormalDist().inv_cdf(min((1 + target) / 2, 1 - 1e-15))
    without = -(deviations**2) / (2 * math.log(affinity)) if affinity > 0 else 1.0
    noise = -2 * math.log1p(-target) / math.log(3) / (math.sinh(min(epsilon, 9.0)) * atoms.beyond(0.0))
    return min(max(math.ceil(without + noise), 1), FARTHEST_BOUND)


def _last(value: Callable[[int], float], target: float, guess: int, slack: float = 0.0) -> int:
    """The last n at which a non-decreasing value in [0, 1] is below the target, or one smaller by a share of ``slack``.

    Invariant: the value is below the target at low (0: no records, no advantage) and not below at high, once set.
    log(1 - value) is nearly linear in n, so that interpolation takes a handful of evaluations, where a bisection
    (``first_true``) takes twenty.
    """
    goal = math.log1p(-target)
    low, at_low, high, at_high = 0, 0.0, 0, -math.inf
    at, rounds = max(guess, 1), 0
    while True:
        error = value(at)
        log_error = math.log1p(-min(error, 1 - 1e-15))
        if error < target:
            low, at_low = at, log_error
        else:
            high, at_high = at, log_error
        if high and high - low <= max(slack * low, 1):
            return low
        if low >= FARTHEST_BOUND:
            return low
        rounds += 1
        if not high:
            ratio = goal / at_low if at_low < 0 else 4.0
            at = max(math.ceil(low * min(max(ratio, 1.01), 4.0)), low + 1)
        else:
            share = (at_low - goal) / (at_low - at_high) if rounds < 12 else 0.5
            at = low + math.floor(share * (high - low))
            at = min(max(at, low + max(math.floor(slack * low), 1)), high - 1)


_Ranked = tuple[float, Shape]


def _near_the_best(ranked: list[_Ranked]) -> list[Shape]:
    return [shape for value, shape in ranked if value < ranked[0][0] + 0.005]


def _moved(place: tuple[int, int, int], move: tuple[int, int, int]) -> tuple[int, int, int]:
    return place[0] + move[0], place[1] + move[1], place[2] + move[2]


@dataclass(frozen=True, eq=False)
class _Search:
    """Search for the shape of the dominating pair with the smallest bound.

    Attributes:
        error: the weighted error that matters; what is dropped must be small compared with it.
        n: approximate number of records.
        tilt: log of the weight of type I errors over that of type II errors.
    """

    atoms: Atoms
    notion: Notion
    error: float
    n: int
    tilt: float = 0.0
    _certificates: dict[tuple[Shape, Effort], Certificate] = field(default_factory=dict)

    def certificate(self, shape: Shape, effort: Effort) -> Certificate:
        """Return the certificate of a shape."""
        if (shape, effort) not in self._certificates:
            split = split_atoms(self.atoms, shape)
            self._certificates[shape, effort] = Certificate(split, self.notion, effort, self.error, self.tilt)
        return self._certificates[shape, effort]

    def at(self, shape: Shape, effort: Effort) -> Callable[[int], float]:
        """Return the bound of a shape as a function of n."""
        return self.certificate(shape, effort).bound

    def guide(self, shape: Shape) -> Guide:
        """Return the shape in terms that fit another pair."""
        tails = None if shape.top is None else self.n * max(e.beyond(shape.top) for e in self._closed(shape.open_side))
        return Guide(tails, shape.cuts, shape.open_side)

    def guided(self, guide: Guide) -> Shape:
        """Return the shape of this pair that a guide describes."""
        closed = self._closed(guide.open_side)
        top = None if guide.tails is None else self._level_of(guide.tails, closed)
        if top is None and guide.open_side != 0:
            top = max(float(each.levels.max(initial=0.0)) for each in closed)
        return Shape(top, guide.cuts, guide.open_side)

    def _closed(self, side: int) -> list[Atoms]:
        """Return the sides that a clamp closes."""
        up, down = self.atoms, self.atoms.mirrored
        return [up, down] if side == 0 else [down] if side == 1 else [up]

    def best_shapes(self, n: int, start: Shape | None = None) -> tuple[list[Shape], list[Shape]]:
        """Up to three shapes with the smallest bounds at n, on all ladders or on the ladder of ``start``.

        Returned as a second list are up to three more from starts that were nearly as good, since quick bounds do not
        show which valley is deeper.
        """
        sides = [0]
        if start is not None:
            sides = [start.open_side]
        else:
            sides += [1] if self.atoms.p_only > NOTHING else []
            sides += [-1] if self.atoms.q_only > NOTHING else []
        ranked_shapes: tuple[list[_Ranked], list[_Ranked]] = [], []
        for side in sides:
            if self._tops(side):
                for ranked, walked in zip(ranked_shapes, self._descend(n, side, start), strict=False):
                    ranked += walked
        first, second = (sorted(ranked, key=lambda entry: entry[0])[:3] for ranked in ranked_shapes)
        return _near_the_best(first), _near_the_best(second)

    def _descend(self, n: int, side: int, start: Shape | None) -> list[list[_Ranked]]:
        """Return the best three shapes seen while stepping to better neighbours on the ladders of tops and cuts.

        One list for the best start, and one for the second best if that is nearly as good.
        """
        tops = self._tops(side)
        seen: dict[tuple[int, int, int], float] = {}

        def shape(place: tuple[int, int, int]) -> Shape:
            return Shape(tops[place[0]], (CUTS[place[1]], CUTS[place[2]]), side)

        def value(place: tuple[int, int, int]) -> float:
            if place not in seen:
                inside = all(0 <= i < size for i, size in zip(place, (len(tops), len(CUTS), len(CUTS)), strict=True))
                seen[place] = self.at(shape(place), QUICK)(n) if inside else math.inf
            return seen[place]

        last = len(tops) - 1
        starts = [(0, 9, 9), (min(3, last), 6, 6), (min(5, last), 3, 3), (min(5, last), 0, 0)]
        if len(self.atoms.levels) <= FEW_LEVELS:  # there are many valleys, and evaluations are quick
            starts = [(top, cut, cut) for top in range(len(tops)) for cut in (4, 7, 9)]
        if start is not None:
            starts = [(tops.index(start.top), CUTS.index(start.cuts[0]), CUTS.index(start.cuts[1]))]
        moves = [(0, 1, 1), (0, -1, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
        starts.sort(key=value)
        walks: list[list[_Ranked]] = []
        for best in [place for place in starts[:2] if value(place) <= value(starts[0]) + NEARLY_THE_SAME]:
            walked = set(starts)
            # Invariant: best is the best place visited.
            improved = True
            while improved:
                improved = False
                for move in moves:
                    place = _moved(best, move)
                    while value(place) < value(best) - 1e-4:
                        walked.add(place)
                        best, improved = place, True
                        place = _moved(best, move)
                    walked.add(place)
            ranked = sorted(walked, key=value)[:3]
            walks.append([(value(place), shape(place)) for place in ranked if math.isfinite(value(place))])
        return walks

    @cached_property
    def _ladders(self) -> dict[int, list[float | None]]:
        return {}

    def _tops(self, side: int) -> list[float | None]:
        """Levels for the clamp, from the highest down."""
        if side not in self._ladders:
            closed = self._closed(side)
            levels = np.unique(np.concatenate([each.levels[each.levels > 0] for each in closed]))
            counts = set(TAILS)
            tops: set[float | None] = set()
            if len(levels) <= FEW_LEVELS:  # clamps with a level as either end
                tops |= set(levels.tolist())
                counts |= {self.n * each.beyond(level) for each in closed for level in each.levels if level > 0}
            tops |= {self._level_of(count, closed) for count in counts}
            finite = sorted((top for top in tops if top is not None), reverse=True)
            self._ladders[side] = [None, *finite] if side == 0 else list(finite)
        return self._ladders[side]

    def _level_of(self, count: float, closed: list[Atoms]) -> float | None:
        """Return the level beyond which ``count`` tails are expected among n records; None if there is none."""

        def excess(level: float) -> float:
            return self.n * max(each.beyond(level) for each in closed)

        right = max(float(each.levels.max(initial=0.0)) for each in closed)
        if excess(right) > count or excess(0.0) <= count:
            return None
        _, right = root(lambda level: excess(level) <= count, 0.0, right, absolute=math.ldexp(right, -30))
        return right
