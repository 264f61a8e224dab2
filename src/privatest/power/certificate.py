r"""What no private test of a dominating pair can exceed.

In a pair split by ``power/domination.py`` a record is one of

- *tails*, with probability tau: p under P and q under Q;
- *movers*: "+" or "-", at rates x under P and y under Q;
- *the rest*, with some ratio.

Tell the tester, for nothing, which records are which and what the rest is. Of all eps-DP tests g on what remains
hidden, k tails and K movers, the least weighted error with weights u on P and v on Q is at least

.. math:: \Phi_{k,K}(u, v) \ge \max_j \Phi_K(u e^{-\varepsilon j}, v e^{-\varepsilon (k - j)}),

because turning j of the tails from p into q costs 1 - g at most a factor e^(eps j), and turning the other k - j from
q into p costs g at most e^(eps (k - j)); Phi_K is known in closed form (``power/two_point.py``). With S the rest's
log-likelihood ratio, every eps-DP test on n records has

.. math:: \text{advantage} \le 1 - \sum_{k, K} \int \Phi_{k,K}(dP, dQ)
        = 1 - \sum_{k,K} \Pr[k, K]\, A^{n}\, E\, e^{-\varepsilon k / 2} \varphi_{k,K}(S),

where A is the Hellinger affinity and the mean is under the law proportional to sqrt(PQ). This contains the paper's
coupling (no movers, the weights' smaller one in place of Phi) and the bound without privacy (movers not hidden), and
is exact on two-point domains. Every approximation errs on the safe side: what is dropped has Phi >= 0,
counts are rounded up (more records never hurt the tester), ratios are split (domination).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from privatest.power.domination import RootLaw, Split, shares
from privatest.power.two_point import TwoPoint, binomial

__all__ = ["Certificate", "Effort"]

Floats = npt.NDArray[np.float64]

# Sums beyond this many records are taken over blocks of records: of counts of blocks, one more or less is nothing.
MOST_BLOCKS = 1024
TAILS_KIND, MOVERS_KIND = 0, 1


@dataclass(frozen=True)
class Effort:
    """How finely to compute; every setting is safe.

    Attributes:
        steps: lattice steps to a standard deviation of the rest.
        groups: most groups of counts of tails and of movers.
        coarse: relative size of a group of counts that does no harm.
        dropped: share of the error that may be left out.
    """

    steps: int
    groups: tuple[int, int]
    coarse: float
    dropped: float


@dataclass(frozen=True, eq=False)
class Certificate:
    """The bound for one dominating pair; laws that do not depend on n are kept.

    Attributes:
        split: the dominating pair.
        epsilon: privacy loss.
        effort: how finely to compute.
        error: size of the weighted error that matters: what is dropped is small beside it.
    """

    split: Split
    epsilon: float
    effort: Effort
    error: float
    _powers: dict[tuple[int, int], RootLaw] = field(default_factory=dict)
    _hidden: dict[int, tuple[TwoPoint, float, float]] = field(default_factory=dict)

    def bound(self, n: int) -> float:
        """What no private test on n records exceeds."""
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
        block, size = self._block(n)
        total = 0.0
        apart = abs(flag - other)
        for k_low, k_high, tails in self._groups(n, split.tau, TAILS_KIND, self.epsilon):
            m = n - k_low
            inner = 0.0
            for low, high, roots in self._groups(m, movers / core, MOVERS_KIND, apart):
                blocks = -(-(m - low) // size) if others > 0 else 0
                count = blocks * size
                if (size, blocks) not in self._powers:
                    self._powers[size, blocks] = self._trimmed(block.power(blocks))
                law = self._powers[size, blocks]
                S = law.levels - count * other
                # The counts low, ..., high come with different prior ratios: split between the outermost two.
                offsets = np.arange(low, high + 1) * flag + (m - np.arange(low, high + 1)) * other
                ends = float(offsets.min()), float(offsets.max())
                for end, share in zip(ends, shares(offsets, *ends), strict=True):
                    weight = float(roots @ share)
                    if weight > 0:
                        value = self._hidden_error(k_high, high, S + end)
                        inner += weight * math.exp(count * math.log(affinity)) * float(law.roots @ value)
            total += float(tails.sum()) * math.exp(m * math.log(core / (1 - split.tau))) * inner
        # Binomials cut off at six deviations were scaled up by up to 2e-9 each.
        return min(1.0 - total * (1 - 1e-8), 1.0)

    def _trimmed(self, law: RootLaw) -> RootLaw:
        """Without the roots far out, of which there are too few to matter."""
        kept = np.flatnonzero(law.roots > 0.01 * self.effort.dropped * self.error * law.roots.max())
        return RootLaw(law.step, law.first + int(kept[0]), law.roots[kept[0] : kept[-1] + 1])

    def _only_tails(self, n: int) -> float:
        return 1.0 - float(self._hidden_error(n, 0, np.zeros(1))[0]) if self.split.tau >= 1 else 1.0

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

    def _block(self, n: int) -> tuple[RootLaw, int]:
        """The rest's roots, normalised, of a block of records, and how many records that is."""
        levels, roots = self.split.levels, self.split.roots
        if len(levels) == 0:
            return RootLaw(1.0, 0, np.ones(1)), 1
        roots = roots / roots.sum()
        spread = math.sqrt(max(float(roots @ (levels - roots @ levels) ** 2), 0.0))
        largest = float(np.abs(levels).max())
        if spread <= 1e-12 * largest or largest == 0:  # one level: the lattice of its multiples is exact
            return RootLaw.from_levels(levels, roots, largest or 1.0), 1
        step = max(spread / self.effort.steps, largest / 4000)
        law = RootLaw.from_levels(levels, roots, largest / max(round(largest / step), 1))
        size = max(n // MOST_BLOCKS, 1)
        if size == 1:
            return law, 1
        together = law.power(size)
        return together.coarser(max(together.deviation / self.effort.steps, together.step)), size

    def _hidden_error(self, k: int, K: int, ratio: Floats) -> Floats:
        r"""e^(-eps k/2) phi_{k,K}: the least error over tests on k tails and K movers, for prior ratios e^l.

        With i of the k tails at p, prior ratios are moved by eps (2i - k). Spreading over i and i + 1, a share f
        of Q and e^g f of P to i, brings both prior ratios to one target, where phi_K is largest.
        """
        two_point, target, peak = self._movers(K)
        if k == 0:
            return two_point.balanced(ratio)
        epsilon = min(self.epsilon, 300.0)
        i = np.clip(np.floor((target - ratio + epsilon * k) / (2 * epsilon)), 0, k)
        at = ratio - epsilon * (k - 2 * i)
        between = (i < k) & (at <= target)
        found = two_point.balanced(at)
        if between.any():
            near = at[between]
            g = np.minimum(target - near, 2 * epsilon)
            f = np.exp(-g) * np.expm1(g - 2 * epsilon) / math.expm1(-2 * epsilon)
            spread = (np.exp(g / 2) * f + np.exp(g / 2 - epsilon) * (1 - f)) * peak
            found[between] = np.maximum.reduce([found[between], two_point.balanced(near + 2 * epsilon), spread])
        return found * math.exp(-epsilon * k / 2)

    def _movers(self, K: int) -> tuple[TwoPoint, float, float]:
        """The movers' two-point problem, and where and how large phi_K is at its peak."""
        if K not in self._hidden:
            problem = TwoPoint(K, self.split.x, self.split.y, self.epsilon, reach=6.0)
            grid = np.linspace(-4.0, 4.0, 81)
            values = problem.balanced(grid)
            top = int(np.argmax(values))
            self._hidden[K] = problem, float(grid[top]), float(values[top])
        return self._hidden[K]
