r"""What no private test of a dominating pair can exceed.

In a pair split by ``bounds/domination.py`` a record is one of

- *tails*, with probability tau: p under P and q under Q;
- *movers*: "+" or "-", at rates x under P and y under Q;
- *the rest*, with some ratio.

Tell the tester, for nothing, which records are which and what the rest is. Of all eps-DP tests g on what remains
hidden, k tails and K movers, the least weighted error with weights u on P and v on Q is at least

.. math:: \Phi_{k,K}(u, v) \ge \max_j \Phi_K(u e^{-\varepsilon j}, v e^{-\varepsilon (k - j)}),

because turning j of the tails from p into q costs 1 - g at most a factor e^(eps j), and turning the other k - j from
q into p costs g at most e^(eps (k - j)); Phi_K is known in closed form (``bounds/two_point.py``), here for
all counts K at once, one row of an array for each. With S the rest's
log-likelihood ratio, every eps-DP test on n records has

.. math:: \text{advantage} \le 1 - \sum_{k, K} \int \Phi_{k,K}(dP, dQ)
        = 1 - \sum_{k,K} \Pr[k, K]\, A^{n}\, E\, e^{-\varepsilon k / 2} \varphi_{k,K}(S),

where A is the Hellinger affinity and the mean is under the law proportional to sqrt(PQ). This contains the paper's
coupling (no movers, the weights' smaller one in place of Phi) and the bound without privacy (movers not hidden), and
is exact on two-point domains. For a notion of stability other than eps-DP, Phi_{0,K} is that of a two-point domain
(``Chains`` in ``bounds/two_point.py``), Phi_{k,0} that of one in which P has k records more, and Phi_{k,K} is bounded
by Phi_{k+K,0}: as if movers told as much as tails. Every approximation errs on the safe side: what is dropped has
Phi >= 0, counts are rounded up (more records never hurt the tester), ratios are split (domination).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privatest.bounds.domination import RootLaw, Split, shares
from privatest.bounds.two_point import Chains, TwoPoint, corners
from privatest.laws.noisy_counts import binomial, window_of
from privatest.numbers import Floats, Integers, discounted
from privatest.privacy.notions import Notion, Pure

__all__ = ["Certificate", "Effort", "Table", "balanced", "loss_of", "make_tables", "single_table"]

_LARGEST_BATCH = 1 << 16
# Rows on which discounts by e^-eps a step stay clear of underflow.
_DEEPEST = 500.0
_NEAR = (-1, 0, 1)
_PEAK_GRID = np.linspace(-4.0, 4.0, 81)


@dataclass(frozen=True, eq=False)
class Table:
    """Both error rates at every threshold that matters, and at which ratio each threshold takes over.

    Attributes:
        alphas, betas: type I and type II errors, threshold by threshold.
        turns: log ratios at which it begins to pay to go to the next threshold; they never decrease.
        gap: what the rates between the thresholds listed cannot fall below, for u = v = 1; infinite where all are.
        target, peak: where Phi(e^(l/2), e^(-l/2)) is largest as a function of l, and how large.
    """

    alphas: Floats
    betas: Floats
    turns: Floats
    gap: float
    target: float = 0.0
    peak: float = 1.0


def make_tables(counts: Sequence[int], x: float, y: float, epsilon: float, reach: float) -> list[Table]:
    """The table of each number of movers, which are "+" at rates x under P and y <= x under Q.

    Counts more than ``reach`` deviations off are left out.
    """
    plain: dict[int, Table] = {}
    for batch, starts, width in _batches(sorted(set(counts)), x, y, reach):
        if (width - 1) * epsilon > _DEEPEST:
            plain |= {count: single_table(TwoPoint(count, x, y, epsilon, reach)) for count in batch}
        else:
            plain |= zip(batch, _tables_at_once(batch, starts, width, (x, y), epsilon, reach), strict=True)
    rough = [plain[count] for count in counts]
    values = balanced(rough, [len(_PEAK_GRID)] * len(rough), np.tile(_PEAK_GRID, len(rough)))
    found = []
    for table, row in zip(rough, values.reshape(len(rough), -1), strict=True):
        top = int(np.argmax(row))
        target, peak = float(_PEAK_GRID[top]), float(row[top])
        found.append(Table(table.alphas, table.betas, table.turns, table.gap, target, peak))
    return found


def balanced(tables: Sequence[Table], lengths: Sequence[int], ratio: Floats) -> Floats:
    r"""Phi(e^(l/2), e^(-l/2)) at each l = log u/v, the first ``lengths[0]`` of them for the first table, and so on.

    Guarantees: at most the true value, up to rounding; at most e^(-|l|/2).
    """
    tables, lengths = _merged(tables, lengths)
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
    up = np.exp(np.minimum(np.maximum(ratio, -600.0), 600.0) / 2)  # beyond, the smaller weight is nothing anyway
    down = 1 / up
    first, last = np.repeat(starts, lengths), np.repeat(starts + sizes - 1, lengths)
    place += first
    reached = np.full(len(ratio), math.inf)
    for near in _NEAR:  # the neighbours of the place too: rounding may have blurred the turns
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


def _merged(tables: Sequence[Table], lengths: Sequence[int]) -> tuple[list[Table], list[int]]:
    """Neighbours of the same table as one."""
    kept: list[Table] = []
    sizes: list[int] = []
    for table, length in zip(tables, lengths, strict=True):
        if kept and kept[-1] is table:
            sizes[-1] += length
        else:
            kept.append(table)
            sizes.append(length)
    return kept, sizes


def _batches(counts: list[int], x: float, y: float, reach: float) -> Iterator[tuple[list[int], Integers, int]]:
    """Counts whose rows make an array of moderate size, where each row starts, and how long the rows are."""
    batch: list[int] = []
    starts: list[int] = []
    width = 0
    for count in counts:
        windows = [window_of(count, rate, reach) for rate in (x, y)]
        start, end = min(first for first, _ in windows) - 1, max(last for _, last in windows) + 1
        size = end - start + 1
        if batch and max(width, size) * (len(batch) + 1) > _LARGEST_BATCH:
            yield batch, np.array(starts), width
            batch, starts, width = [], [], 0
        batch.append(count)
        starts.append(start)
        width = max(width, size)
    if batch:
        yield batch, np.array(starts), width


def single_table(problem: TwoPoint) -> Table:
    """The table of one problem; its peak is not looked for."""
    alphas, betas = problem.rates
    return Table(alphas, betas, problem.turns, problem.gap)


def _tables_at_once(
    counts: list[int], starts: Integers, width: int, rates: tuple[float, float], epsilon: float, reach: float
) -> list[Table]:
    """A table for each of the counts, at every whole threshold from ``starts`` on; the two windows must have no gap."""
    b = math.exp(-epsilon)
    under_p, under_q = (_laws(counts, starts, width, rate, reach) for rate in rates)
    sums = [(discounted(law, b), discounted(law[:, ::-1], b)[:, ::-1]) for law in (under_p, under_q)]
    (below_p, above_p), (below_q, above_q) = sums
    nothing = np.zeros((len(counts), 1))
    # One step further up: counts of at least j + 1.
    next_p, next_q = (np.hstack([above[:, 1:], nothing]) for above in (above_p, above_q))
    rest = np.hstack([np.cumsum(under_q[:, ::-1], axis=1)[:, ::-1][:, 1:], nothing])
    alphas = np.cumsum(under_p, axis=1) - below_p * (b / (1 + b)) + next_p * (b / (1 + b))
    betas = rest - next_q * (b / (1 + b)) + below_q * (b / (1 + b))
    masses = [
        np.maximum(below + above - law, 1e-300) for (below, above), law in zip(sums, (under_p, under_q), strict=True)
    ]
    turns = np.maximum.accumulate(np.log(masses[0][:, 1:]) - np.log(masses[1][:, 1:]), axis=1)
    return [Table(*rows, gap=math.inf) for rows in zip(alphas, betas, turns, strict=True)]


def _laws(counts: list[int], starts: Integers, width: int, rate: float, reach: float) -> Floats:
    """Binomials, one a row, from ``starts`` on: as :func:`privatest.bounds.two_point.binomial`."""
    k = starts[:, None] + np.arange(width)
    windows = np.array([window_of(count, rate, reach) for count in counts])
    first, last = windows[:, :1], windows[:, 1:]
    if not 0.0 < rate < 1.0:
        return np.asarray(k == first, dtype=np.float64)
    n = np.array(counts)[:, None]
    inside = (k >= first) & (k < last)
    step = np.log(np.where(inside, n - k, 1) / np.where(inside, k + 1, 1)) + (math.log(rate) - math.log1p(-rate))
    logs = np.cumsum(np.where(inside, step, 0.0), axis=1)
    logs = np.hstack([np.zeros((len(counts), 1)), logs[:, :-1]])
    there = (k >= first) & (k <= last)
    logs = np.where(there, logs, -np.inf)
    with np.errstate(under="ignore"):
        law = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(law / law.sum(axis=1, keepdims=True))


# Sums beyond this many records are taken over blocks of records: of counts of blocks, one more or less is nothing.
MOST_BLOCKS = 1024
TAILS_KIND, MOVERS_KIND = 0, 1
# Points at which errors are computed together.
LARGEST_BATCH = 1 << 15
# Laws of so few points are not made coarser.
FEW_POINTS = 128


@dataclass(frozen=True)
class Effort:
    """How finely to compute; every setting is safe.

    Attributes:
        steps: lattice steps to a standard deviation of the rest's ratio in one record, or in one block of records.
        groups: most groups of counts of tails and of movers.
        coarse: relative size of a group of counts that does no harm.
        dropped: share of the error that may be left out.
        points: lattice points to a standard deviation of the rest's ratio in all records together.
        rungs: to a record, on the ladder of a notion whose h is curved.
    """

    steps: int
    groups: tuple[int, int]
    coarse: float
    dropped: float
    points: int = 48
    rungs: int = 8


@dataclass(frozen=True, eq=False)
class Certificate:
    """The bound for one dominating pair; laws that do not depend on n are kept.

    Attributes:
        split: the dominating pair.
        notion: of stability.
        effort: how finely to compute.
        error: size of the weighted error that matters: what is dropped is small beside it.
        tilt: log of the weight of type I errors over that of type II errors.
    """

    split: Split
    notion: Notion
    effort: Effort
    error: float
    tilt: float = 0.0
    _bounds: dict[int, float] = field(default_factory=dict)
    _powers: dict[tuple[int, int], RootLaw] = field(default_factory=dict)
    _tables: dict[int, Table] = field(default_factory=dict)
    _chains: dict[int, Chains] = field(default_factory=dict)
    _hidden: dict[tuple[int, int], Table] = field(default_factory=dict)

    def tilted(self, tilt: float) -> Certificate:
        """The same with other weights of the two errors: no law depends on these, so that all are shared."""
        return replace(self, tilt=tilt, _bounds={})

    def bound(self, n: int) -> float:
        """What no private test on n records exceeds: 1 - the least weighted error over that of no records at all."""
        if n not in self._bounds:
            self._bounds[n] = self._bound(n)
        return self._bounds[n]

    @cached_property
    def epsilon(self) -> float:
        """The privacy loss, or that of the pure notion with the same gain from one record."""
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
        # Binomials cut off at six deviations were scaled up by up to 2e-9 each.
        return min(1.0 - total * (1 - 1e-8) * math.exp(abs(self.tilt) / 2), 1.0)

    def _prepare(self, pieces: list[_Piece], block: RootLaw, size: int, exact: bool) -> None:
        """The laws and the tables that the pieces need, all at once."""
        missing = sorted({piece.blocks for piece in pieces if (size, piece.blocks) not in self._powers})
        deviation = block.deviation
        for blocks, law in zip(missing, block.powers(missing), strict=True):
            kept = self._trimmed(law)
            fine = min(deviation * math.sqrt(blocks) / (self.effort.points * block.step), len(kept.roots) / FEW_POINTS)
            # A lattice on which all levels lie is kept: it costs nothing.
            self._powers[size, blocks] = kept.thinned(1 if exact else math.floor(fine))
        if isinstance(self.notion, Pure):
            self._tabulate({piece.movers for piece in pieces})

    def _tabulate(self, movers: set[int]) -> None:
        """The movers' two-point problems, for so many movers, are known from here on."""
        counts = sorted(movers - self._tables.keys())
        if counts:
            tables = make_tables(counts, self.split.x, self.split.y, self.epsilon, 6.0)
            self._tables.update(zip(counts, tables, strict=True))

    def _total(self, pieces: list[_Piece], size: int) -> float:
        """The weighted error of all pieces, in batches of moderate size."""
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
        """Without the roots far out, of which there are too few to matter."""
        kept = np.flatnonzero(law.roots > 0.01 * self.effort.dropped * self.error * law.roots.max())
        if len(kept) == 0:  # so many records that nothing is left of the roots: what is dropped is on the safe side
            return RootLaw(law.step, 0, np.zeros(1))
        return RootLaw(law.step, law.first + int(kept[0]), law.roots[kept[0] : kept[-1] + 1])

    def _only_tails(self, n: int) -> float:
        if self.split.tau < 1:
            return 1.0
        error = float(self._hidden_errors([(n, 0)], [1], np.full(1, self.tilt))[0])
        return 1.0 - error * math.exp(abs(self.tilt) / 2)

    def _groups(self, n: int, rate: float, kind: int, weight: float) -> Iterator[tuple[int, int, Floats]]:
        """Groups of counts (first, last, probabilities) of a binomial, but for improbable ones.

        A group does little harm where it is small relative to the counts. One tail more or less is worth ``weight``
        nats: so are groups worth nothing. Movers in one group have prior ratios ``weight`` nats apart: not too many.
        """
        first, law = binomial(n, min(max(rate, 0.0), 1.0), 6.0)
        kept = np.flatnonzero(law > self.effort.dropped * self.error / 20 * law.max())
        first, law = first + int(kept[0]), law[kept[0] : kept[-1] + 1]
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
        """The rest's roots, normalised, of a block of records; how many records that is; whether no level was moved."""
        levels, roots = self.split.levels, self.split.roots
        if len(levels) == 0:
            return RootLaw(1.0, 0, np.ones(1)), 1, True
        roots = roots / roots.sum()
        spread = math.sqrt(max(float(roots @ (levels - roots @ levels) ** 2), 0.0))
        largest = float(np.abs(levels).max())
        if spread <= 1e-12 * largest or largest == 0:  # one level: the lattice of its multiples is exact
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
        r"""e^(-eps k/2) phi_{k,K}: the least error over tests on k tails and K movers, for prior ratios e^l.

        The first ``lengths[0]`` ratios are for the first (k, K), and so on. With i of the k tails at p, prior ratios
        are moved by eps (2i - k). Spreading over i and i + 1, a share f of Q and e^g f of P to i, brings both prior
        ratios to one target, where phi_K is largest.
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
        found = balanced(tables, lengths, at)
        between = np.flatnonzero((i < k) & (at <= target))
        if len(between):
            near = at[between]
            among = np.searchsorted(between, np.cumsum([0, *lengths]))  # where each (k, K) begins among these
            peak = np.repeat([table.peak for table in tables], np.diff(among))
            g = np.minimum(target[between] - near, 2 * epsilon)
            f = np.exp(-g) * np.expm1(g - 2 * epsilon) / math.expm1(-2 * epsilon)
            spread = (np.exp(g / 2) * f + np.exp(g / 2 - epsilon) * (1 - f)) * peak
            further = balanced(tables, np.diff(among).tolist(), near + 2 * epsilon)
            found[between] = np.maximum.reduce([found[between], further, spread])
        return found * np.exp(-epsilon * k / 2)

    def _hidden_table(self, tails: int, movers: int) -> Table:
        """The errors of k tails and K movers under any notion.

        With both, a chain need not be the best test (where movers tell little, the same answer for all of them is
        better). Movers that tell all, as tails do, can only help the tester: that bounds it.
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
            self._hidden[tails, movers] = Table(alphas, betas, turns, math.inf)
        return self._hidden[tails, movers]


def loss_of(notion: Notion) -> float:
    """The epsilon of the pure notion with the same gain from one record."""
    return notion.epsilon if isinstance(notion, Pure) else 2 * math.atanh(min(notion.gain(), 1 - 1e-15))


@dataclass(frozen=True)
class _Piece:
    """A part of the sum: so many tails and movers are hidden, and the rest's law is shifted and weighted."""

    tails: int
    movers: int
    blocks: int
    shift: float
    weight: float


def _split_groups(
    groups: list[tuple[int, int, Floats]], m: int, flag: float, other: float
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """For each group of counts of movers among m records: (prior ratio, roots) at both ends.

    The counts of a group come with different prior ratios, which are split between the outermost two.
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
