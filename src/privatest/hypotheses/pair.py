r"""P against Q on a common domain, and the law of their log-likelihood ratio.

.. math:: L(x) = \log P(x) - \log Q(x) \in [-\infty, \infty]

Everything downstream (decomposition, scores, error rates) sees P and Q through a :class:`Pair`.

- :class:`DiscretePair`, on labels or integers: every quantity is a sum over atoms. Atoms are single integers wherever
  that is affordable, and far out in very heavy tails blocks of integers inside which L hardly varies.
- :class:`ContinuousPair`, of densities: the sets {L > y} and {L < y} are unions of intervals. Their ends are found by
  looking at L on landmarks (quantiles of both distributions, ends of supports, extrema of L) and then cutting every
  bracketed change at once until neighbouring floats are left; their masses are differences of cdfs. Where those cancel,
  and for divergences that are not made of masses, the densities are integrated on panels between the landmarks.
- :class:`ClampedPair`, whose L is that of another pair, clamped.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.hypotheses.density import Nodes, adaptive, half_nodes, maxima, panel_nodes, split_panels
from privatest.hypotheses.distribution import Distribution, IntegerBlocks, Labels, Reals, WholeNumbers
from privatest.numbers import Floats, Integers, distinct


def common_atoms(laws: Sequence[WholeNumbers]) -> tuple[Integers, Integers, list[Floats], list[Floats]]:
    """Atoms fine enough for all laws: first and last integers, and each law's masses and log masses.

    Guarantees: every law's masses sum to 1 within 1e-12, mass beyond the outermost atoms being pooled into
    them.
    """
    edges = distinct(np.concatenate([law.edges for law in laws]))
    first, last = edges[:-1].copy(), edges[1:] - 1
    logs = [_block_log_masses(law, first, last) for law in laws]
    first, last, logs = _with_beyond(laws, first, last, logs)
    with np.errstate(under="ignore"):
        masses = [np.exp(log) for log in logs]
    for law, mass, log in zip(laws, masses, logs, strict=True):
        rest = 1.0 - float(mass.sum())
        index = -1 if law.support[1] >= float(last[-1]) else 0
        if rest > 1e-12:  # a tail so heavy that it leaves the integers floats can count
            mass[index] += rest
            log[index] = math.log(mass[index])
        else:
            total = float(mass.sum())
            mass /= total
            log -= math.log(total)
    keep = np.any([log > -np.inf for log in logs], axis=0)  # a mass may underflow and yet have a ratio
    # where even the logs beyond the atoms are lost, the outermost atom stands for them
    extended = np.flatnonzero(keep)[[0, -1]]
    first[extended[0]], last[extended[1]] = first[0], last[-1]
    return first[keep], last[keep], [mass[keep] for mass in masses], [log[keep] for log in logs]


def _with_beyond(
    laws: Sequence[WholeNumbers], first: Integers, last: Integers, logs: list[Floats]
) -> tuple[Integers, Integers, list[Floats]]:
    """Return the atoms, and one more on each side where a support goes on, as heavy as its nearest integer."""
    lowest, highest = min(law.support[0] for law in laws), max(law.support[1] for law in laws)
    extremes = np.iinfo(np.int64)
    if highest > float(last[-1]):
        start = int(last[-1]) + 1
        first = np.append(first, start)
        last = np.append(last, int(highest) if math.isfinite(highest) else extremes.max)
        logs = [np.append(log, law.logpmf(float(start))) for law, log in zip(laws, logs, strict=True)]
    if lowest < float(first[0]):
        start = int(first[0]) - 1
        last = np.insert(last, 0, start)
        first = np.insert(first, 0, int(lowest) if math.isfinite(lowest) else extremes.min)
        logs = [np.insert(log, 0, law.logpmf(float(start))) for law, log in zip(laws, logs, strict=True)]
    return first, last, logs


def _block_log_masses(law: WholeNumbers, first: Integers, last: Integers) -> Floats:
    """Log mass of each block: exact for one or two integers, by the parabola through three for more."""
    log = np.array(law.logpmf(first.astype(float)), dtype=float)
    wide = np.flatnonzero(last > first)
    if wide.size == 0:
        return log
    a, b = first[wide], last[wide]
    odd_end = np.where((b - a) % 2 == 0, b, b - 1)  # an odd number of integers a..odd_end, and perhaps b besides
    half = (odd_end - a) // 2
    lows = log[wide]
    mids, highs = law.logpmf((a + half).astype(float)), law.logpmf(odd_end.astype(float))
    ends = np.full(wide.size, -np.inf)
    ends[b > odd_end] = law.logpmf(b[b > odd_end].astype(float))
    top = np.max([lows, mids, highs, ends], axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(under="ignore"):
        f_low, f_mid, f_high, f_end = (np.exp(part - safe) for part in (lows, mids, highs, ends))
    h = half.astype(float)
    n = 2 * h + 1
    # sum over j = -h..h of f0 + b j + c j^2, with c from the second difference
    curve = np.where(h > 0, (f_low + f_high - 2 * f_mid) / np.maximum(2 * h * h, 1.0), 0.0)
    total = n * f_mid + curve * n * h * (h + 1) / 3 + np.where(b > odd_end, f_end, 0.0)
    with np.errstate(divide="ignore"):
        log[wide] = np.where(np.isfinite(top), safe + np.log(np.maximum(total, 0.0)), -np.inf)
    return log


SAME_LEVEL = 4e-16
"""A ratio this close (relatively) to a level is taken to be at it: they differ by rounding only."""


Term: TypeAlias = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
"""(log p, log q, L) -> the integrand, and by how much it moves when L is off by one."""


class Pair(ABC):
    """P (``null``) against Q (``alternative``), on a common domain."""

    null: Distribution
    alternative: Distribution

    @property
    @abstractmethod
    def kind(self) -> str:
        """``"labels"``, ``"integers"`` or ``"reals"``."""

    @abstractmethod
    def ratio(self, x: Any) -> Floats:
        """L(x) for each record; NaN where both densities are zero."""

    @property
    @abstractmethod
    def ratio_range(self) -> tuple[float, float]:
        """Essential infimum and supremum of L."""

    @abstractmethod
    def above(self, level: float) -> tuple[float, float]:
        """(P(L > level), Q(L > level))."""

    @abstractmethod
    def below(self, level: float) -> tuple[float, float]:
        """(P(L < level), Q(L < level))."""

    @abstractmethod
    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        """Integral of ``term`` over the domain; ``levels`` are the values of L at which it has a kink."""

    @abstractmethod
    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        r"""Mass by which P exceeds e^level Q.

        .. math:: D_y(P\|Q) = \int \max\{P - e^y Q, 0\}

        With ``reverse`` the roles of P and Q are exchanged. Guarantees: in [0, 1]; non-increasing in the
        level; total variation at level 0; relative error at most 1e-10.
        """

    @cached_property
    def total_variation(self) -> float:
        """TV(P, Q), the hockey-stick divergence at level 0."""
        return self.hockey_stick(0.0)

    @cached_property
    def hellinger_squared(self) -> float:
        r"""H^2(P, Q) = 1 - \int \sqrt{PQ}, without cancellation for close pairs."""
        return min(self.integral(hellinger_term), 1.0)

    @cached_property
    def kl(self) -> float:
        r"""KL(P||Q), which may be infinite."""
        return self._kullback_leibler(reverse=False)

    @cached_property
    def kl_reverse(self) -> float:
        r"""KL(Q||P), which may be infinite."""
        return self._kullback_leibler(reverse=True)

    @abstractmethod
    def _kullback_leibler(self, *, reverse: bool) -> float: ...

    def clamped_hellinger(self, lower: float, upper: float) -> float:
        r"""Half the squared distance of the roots of min{P, e^upper Q} and min{Q, e^-lower P}.

        .. math:: \tfrac12 \int (\sqrt{\tilde P} - \sqrt{\tilde Q})^2 = (1 - \tau) H^2(P', Q')

        (the equality for the paper's clamp). Needs lower <= 0 <= upper.
        """

        def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
            clipped = np.clip(ratio, lower, upper)
            # where L is clamped the larger of the two is the smaller one times e^|clamp|
            larger = np.where(ratio >= 0, np.minimum(log_p, log_q + upper), np.minimum(log_q, log_p - lower))
            return _hellinger_density(larger, clipped)

        return self.integral(term, (lower, upper))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.null.describe()}, {self.alternative.describe()})"


def _hellinger_density(log_larger: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """(sqrt p - sqrt q)^2 / 2 = max(p, q) (1 - e^(-|L|/2))^2 / 2."""
    larger = np.exp(log_larger)
    gap = -np.expm1(-np.abs(ratio) / 2)
    return larger * gap * gap / 2, larger * gap


def hellinger_term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Integrand of the squared Hellinger distance."""
    return _hellinger_density(np.maximum(log_p, log_q), ratio)


def hockey_stick_term(level: float, *, reverse: bool) -> Term:
    """max(p - e^level q, 0) = p (1 - e^(level - L)) where L > level."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, excess = (log_q, -ratio - level) if reverse else (log_p, ratio - level)
        there = excess > 0
        top = np.where(there, np.exp(log_top), 0.0)
        return top * -np.expm1(-np.where(there, excess, 0.0)), top

    return term


def kullback_leibler_term(*, reverse: bool) -> Term:
    """p log(p/q) + q - p, which is never negative and integrates to KL(P||Q)."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, log_bottom, gain = (log_q, log_p, -ratio) if reverse else (log_p, log_q, ratio)
        top, bottom = np.exp(log_top), np.exp(log_bottom)
        # a density that underflowed; a true zero under P never comes here
        gain = np.where(log_bottom == -np.inf, log_top + 745.2, gain)
        near = np.abs(gain) < 1e-2
        t = np.where(near, gain, 0.0)
        # e^-t - 1 + t by its series where it cancels
        series = t * t * (1 / 2 + t * (-1 / 6 + t * (1 / 24 + t * (-1 / 120 + t * (1 / 720 - t / 5040)))))
        plain = np.where(top > 0, np.where(near | (top == 0), 0.0, gain), 0.0)
        far = np.where(top > 0, top * plain, 0.0) + (bottom - top)
        value = np.where(near, top * series, far)
        with np.errstate(invalid="ignore"):
            moved = np.where(near, top * np.abs(t), top + bottom)
        return value, moved

    return term


class DiscretePair(Pair):
    """Atoms with masses ``p`` under P and ``q`` under Q, and their ratios L.

    ``labels`` names the atoms (kind "labels"), or ``first`` and ``last`` give the integers each holds (kind
    "integers"); the outermost atoms may reach the ends of int64, meaning "and beyond".
    """

    def __init__(
        self,
        null: Distribution,
        alternative: Distribution,
        p: Floats,
        q: Floats,
        *,
        logs: tuple[Floats, Floats] | None = None,
        labels: tuple[Hashable, ...] = (),
        blocks: tuple[Integers, Integers] | None = None,
    ) -> None:
        self.null, self.alternative = null, alternative
        self.p, self.q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
        self.labels = labels
        self._blocks = blocks
        self._log_p: Floats
        self._log_q: Floats
        with np.errstate(divide="ignore", invalid="ignore"):
            self._log_p, self._log_q = logs if logs is not None else (np.log(self.p), np.log(self.q))
            ratios = np.asarray(self._log_p - self._log_q)
        self.ratios: Floats = ratios if logs is not None else _sharpened(ratios, self.p, self.q)
        self._noise: Floats = np.zeros(ratios.size)
        if logs is not None:  # each log carries a rounding error of its own size
            self._noise = np.nan_to_num(2.3e-16 * (np.abs(self._log_p) + np.abs(self._log_q)), posinf=0.0)
        for array in (self.p, self.q, self.ratios):
            array.flags.writeable = False

    @classmethod
    def from_labels(cls, null: Labels, alternative: Labels) -> DiscretePair:
        """Return the pair on the labels of both laws, in the null's order."""
        place = {label: index for index, label in enumerate(alternative.labels)}
        order = [place[label] for label in null.labels]
        return cls(null, alternative, null.probabilities, alternative.probabilities[order], labels=null.labels)

    @classmethod
    def from_integers(cls, null: WholeNumbers, alternative: WholeNumbers) -> DiscretePair:
        first, last, (p, q), (log_p, log_q) = common_atoms((null, alternative))
        return cls(null, alternative, p, q, logs=(log_p, log_q), blocks=(first, last))

    @property
    def logs(self) -> tuple[Floats, Floats]:
        """Log masses of the atoms under P and Q; finite where a mass merely underflows."""
        return self._log_p, self._log_q

    def on_same_atoms(self, log_p: Floats, log_q: Floats, text: str) -> DiscretePair:
        """Return another pair on these atoms, from the logarithms of its masses up to a factor for each law."""
        with np.errstate(under="ignore"):
            log_p = log_p - math.log(_total(np.exp(log_p)))
            log_q = log_q - math.log(_total(np.exp(log_q)))
            p, q = np.exp(log_p), np.exp(log_q)
        if self._blocks is None:
            names = self.labels
            return DiscretePair(Labels(names, p), Labels(names, q), p, q, logs=(log_p, log_q), labels=names)
        first, last = self._blocks
        laws = [
            IntegerBlocks(first, last, mass, f"{word} of {text}") for mass, word in ((p, "null"), (q, "alternative"))
        ]
        return DiscretePair(laws[0], laws[1], p, q, logs=(log_p, log_q), blocks=self._blocks)

    @property
    def kind(self) -> str:
        return "labels" if self._blocks is None else "integers"

    @property
    def first(self) -> Integers:
        """Smallest integer of each atom (kind "integers")."""
        return self._integers()[0]

    @property
    def last(self) -> Integers:
        """Largest integer of each atom (kind "integers")."""
        return self._integers()[1]

    def _integers(self) -> tuple[Integers, Integers]:
        if self._blocks is None:
            raise AttributeError("a pair on labels has labels, not integer ranges")
        return self._blocks

    def ratio(self, x: Any) -> Floats:
        if self._blocks is None:
            return self._label_ratio(x)
        values = np.asarray(x)
        if values.dtype.kind not in "biuf":
            return np.full(values.shape, np.nan)
        first, last = self._blocks
        k = values.astype(float) if values.dtype.kind in "fu" else values.astype(np.int64)
        index = np.clip(np.searchsorted(first, k, side="right") - 1, 0, None)
        inside = (k >= first[index]) & (k <= last[index]) & (k == np.floor(k))
        return np.asarray(np.where(inside, self.ratios[index], np.nan))

    def _label_ratio(self, x: Any) -> Floats:
        if isinstance(x, (str, bytes)) or not isinstance(x, Iterable):
            return np.asarray(self._ratio_of(x))
        if isinstance(x, tuple) and x in self._place:  # a label may itself be a tuple
            return np.asarray(self._ratio_of(x))
        values = x.ravel().tolist() if isinstance(x, np.ndarray) else list(x)
        flat = np.array([self._ratio_of(value) for value in values], dtype=float)
        return flat.reshape(x.shape) if isinstance(x, np.ndarray) else flat

    def _ratio_of(self, label: Any) -> float:
        try:
            index = self._place.get(label)
        except TypeError:  # unhashable: no label of ours
            return math.nan
        return math.nan if index is None else float(self.ratios[index])

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {label: index for index, label in enumerate(self.labels)}

    @cached_property
    def ratio_range(self) -> tuple[float, float]:
        seen = self.ratios[~np.isnan(self.ratios)]
        ends = self._endless()
        return min([float(seen.min()), *ends]), max([float(seen.max()), *ends])

    def _endless(self) -> list[float]:
        """Return the values of L beyond the atoms: at a far end of the support, or the infinity that L approaches."""
        laws = (self.null, self.alternative)
        if self._blocks is None or self.ratios.size < 4:
            return []
        ratios_outside: list[float] = []
        for side in (0, 1):
            ratios = self.ratios[::-1] if side else self.ratios
            outer, inner = ratios[1], ratios[ratios.size // 4]  # the outermost atom itself may be pooled
            ends = [law.support[side] for law in laws if isinstance(law, WholeNumbers)]
            end = (max if side else min)(ends)
            if math.isfinite(end):
                with np.errstate(invalid="ignore"):
                    at_end = float(np.subtract(*(law.logpmf(end) for law in laws if isinstance(law, WholeNumbers))))
                ratios_outside += [] if math.isnan(at_end) else [at_end]
            elif np.isfinite(outer) and np.isfinite(inner) and abs(outer - inner) > 1e-9 * (1 + abs(outer)):
                ratios_outside.append(math.copysign(math.inf, outer - inner))
        return ratios_outside

    def where_above(self, level: float) -> Any:
        """Mask of the atoms with L > level."""
        with np.errstate(invalid="ignore"):
            return self.ratios > level + self._slack(level)

    def where_below(self, level: float) -> Any:
        """Mask of the atoms with L < level."""
        with np.errstate(invalid="ignore"):
            return self.ratios < level - self._slack(level)

    def _slack(self, level: float) -> Any:
        return SAME_LEVEL * abs(level) + self._noise if level != 0 else 0.0

    def above(self, level: float) -> tuple[float, float]:
        there = self.where_above(level)
        return _total(self.p[there]), _total(self.q[there])

    def below(self, level: float) -> tuple[float, float]:
        there = self.where_below(level)
        return _total(self.p[there]), _total(self.q[there])

    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        del levels  # a sum does not mind kinks
        return self._sum(term, (self.p > 0) | (self.q > 0))

    def _sum(self, term: Term, there: Any) -> float:
        with np.errstate(all="ignore"):
            values, _ = term(self._log_p[there], self._log_q[there], self.ratios[there])
        return _total(values)

    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        there = self.where_below(-level) if reverse else self.where_above(level)
        return min(self._sum(hockey_stick_term(level, reverse=reverse), there), 1.0)

    def _kullback_leibler(self, *, reverse: bool) -> float:
        lost = (self.p == 0) & (self.q > 0) if reverse else (self.q == 0) & (self.p > 0)
        # an atom whose mass merely underflowed has a finite log
        if bool(np.any(lost & ~np.isfinite(self._log_p if reverse else self._log_q))):
            return math.inf
        return self.integral(kullback_leibler_term(reverse=reverse))


def _sharpened(ratios: Floats, p: Floats, q: Floats) -> Floats:
    """log(p/q) as log1p((p - q)/q) where p and q are within a factor of two, so that p - q is exact."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.abs(ratios) < 0.69, np.log1p((p - q) / q), ratios))


def _total(values: Floats) -> float:
    """Sum, exactly rounded where that is quick; numpy's pairwise sum for the largest arrays."""
    return math.fsum(values.tolist()) if values.size <= 4096 else float(values.sum())


SHORTEST_RUN = 6
"""Consecutive landmarks at one level that make a flat stretch."""


@dataclass(frozen=True)
class Plateaus:
    """Intervals on which L is constant up to rounding (Laplace pairs outside their centres, cores of
    clamped pairs).

    Guarantees: inside them :meth:`apply` gives exactly the level, so that {L > level} does not flicker.
    """

    start: Floats
    end: Floats
    level: Floats

    def __bool__(self) -> bool:
        return self.start.size > 0

    def apply(self, x: Floats, ratio: Floats) -> Floats:
        """Return ``ratio`` with a constant value on each flat stretch."""
        if not self:
            return ratio
        index = np.clip(np.searchsorted(self.start, x, side="right") - 1, 0, None)
        inside = (x >= self.start[index]) & (x <= self.end[index])
        return np.asarray(np.where(inside, self.level[index], ratio))


def find_plateaus(grid: Floats, ratio: Floats, noise: Floats, support: tuple[float, float]) -> Plateaus:
    """Maximal runs of landmarks that differ by rounding only; outermost runs reach the support's ends."""
    with np.errstate(invalid="ignore"):
        same = np.abs(np.diff(ratio)) <= 2 * (noise[1:] + noise[:-1])
    same &= np.isfinite(ratio[1:]) & np.isfinite(ratio[:-1])
    starts, ends, levels = [], [], []
    edge = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(int)))
    for first, last in zip(edge[::2], edge[1::2], strict=True):  # points first..last share a level
        run = ratio[first : last + 1]
        if last - first + 1 < SHORTEST_RUN:
            continue
        level = float(run[np.argmin(noise[first : last + 1])])
        if np.any(np.abs(run - level) > 4 * (noise[first : last + 1] + 2.3e-16)):
            continue  # a slow drift, not a constant
        starts.append(-np.inf if first == 0 and support[0] == -np.inf else float(grid[first]))
        ends.append(np.inf if last == grid.size - 1 and support[1] == np.inf else float(grid[last]))
        levels.append(level)
    return Plateaus(np.array(starts), np.array(ends), np.array(levels))


def subdivide(points: Floats, parts: int) -> Floats:
    """Return the points and ``parts - 1`` more between each two."""
    if points.size < 2:
        return points
    fractions = np.arange(parts) / parts
    inner = points[:-1, None] + np.diff(points)[:, None] * fractions
    return np.unique(np.append(inner.ravel(), points[-1]))


def refine_extrema(grid: Floats, ratio: Floats, noise: Floats, function: Callable[[Floats], Floats]) -> Floats:
    """Local extrema of L, all refined at once, so that a thin bump over a level is not missed."""
    finite = np.where(np.isfinite(ratio), ratio, np.nan)
    with np.errstate(invalid="ignore"):
        step = np.diff(finite)
        step[np.abs(step) <= 4 * (noise[1:] + noise[:-1])] = 0.0
        turn = np.sign(step[:-1]) * np.sign(step[1:])
        turns = np.flatnonzero((turn < 0) | ((turn == 0) & (step[:-1] != step[1:]))) + 1
    if turns.size == 0 or turns.size > 500:
        return grid[turns]
    sign = np.where((step[turns - 1] > 0) | (step[turns] < 0), 1.0, -1.0)[:, None]
    return maxima(lambda x: sign * function(x), grid[turns - 1], grid[turns + 1])


def limits(function: Callable[[Floats], tuple[Floats, Floats]], support: tuple[float, float], breaks: Floats) -> Floats:
    """Limits of L at both ends of the support, infinite where it still moves at the last point seen."""
    outer: list[float] = []
    centre = float(np.median(breaks))
    for side, end in ((-1, support[0]), (1, support[1])):
        if math.isinf(end):
            scale = max(abs(centre), float(np.ptp(breaks[(breaks > -1e100) & (breaks < 1e100)])) * 1e-3, 1e-300)
            x = centre + side * scale * 2.0 ** np.arange(0, 470)
        else:
            width = max(abs(end - centre), 1e-300)
            x = end - side * width * 2.0 ** -np.arange(1, 900.0)
            x = np.unique(x[(x - end) * side < 0])[::side]
        values, noise = function(x[np.isfinite(x)])
        noise = noise[~np.isnan(values)]
        values = values[~np.isnan(values)]
        if values.size < 3:
            continue
        last, before = values[-1], values[-2]
        if math.isinf(last) or abs(last - before) <= 1e-6 + 2 * noise[-1]:
            sharp = np.flatnonzero(noise <= max(1e-11, float(noise.min())))  # it has settled: read it where it is sharp
            outer.append(float(values[sharp[-1]]))
        else:
            outer.append(math.copysign(math.inf, last - before))
    return np.array(outer)


Mask: TypeAlias = NDArray[np.bool_]
SPREAD = np.linspace(0.0, 1.0, 33)
LADDER = np.concatenate([-(2.0 ** -np.arange(3.0, 45.0)), [0.0], 2.0 ** -np.arange(3.0, 45.0)])
"""Points of a bracket that one round of the search looks at: everywhere, and around the expected crossing."""
MOST_ROUNDS = 40


def find_edges(
    function: Callable[[Floats], Floats],
    holds: Callable[[Floats], Mask],
    level: float,
    grid: Floats,
    values: Floats,
    flips: NDArray[np.intp],
    at_left: Mask,
) -> Floats:
    """For each bracket grid[i], grid[i + 1], i in ``flips``, the float next to those at which the condition
    holds.

    ``at_left`` says at which end of its bracket it holds. All brackets are searched at once. Each round
    looks at points spread over the bracket and at a ladder of points that close in on where the chord
    crosses the level, so that smooth functions take three rounds and jumps a few more; the condition alone
    decides.

    Invariant: it holds at ``inner`` and fails at ``outer``.
    """
    inside, outside = np.where(at_left, flips, flips + 1), np.where(at_left, flips + 1, flips)
    inner, outer = grid[inside], grid[outside]
    at_inner, at_outer = values[inside], values[outside]
    if flips.size == 0:
        return outer
    smallest = 1e-17 * np.abs(outer - inner)  # next to 0 floats go on for ever
    spread = np.broadcast_to(SPREAD, (flips.size, SPREAD.size))
    rows = np.arange(flips.size)
    for _ in range(MOST_ROUNDS):
        neighbours = np.spacing(np.maximum(np.abs(inner), np.abs(outer)))
        if np.all(np.abs(outer - inner) <= np.maximum(neighbours, smallest)):
            break
        with np.errstate(all="ignore"):
            crossing = (level - at_inner) / (at_outer - at_inner)
        crossing = np.where((crossing > 0) & (crossing < 1), crossing, 0.5)
        share = np.sort(np.clip(np.concatenate([crossing[:, None] + LADDER, spread], axis=1), 0.0, 1.0), axis=1)
        x = inner[:, None] + (outer - inner)[:, None] * share
        x[:, 0], x[:, -1] = inner, outer
        seen = function(x)
        good = holds(seen)
        seen[:, 0], seen[:, -1] = at_inner, at_outer
        good[:, 0], good[:, -1] = True, False
        bad = np.argmin(good, axis=1)
        inner, outer = x[rows, bad - 1], x[rows, bad]
        at_inner, at_outer = seen[rows, bad - 1], seen[rows, bad]
    return outer


UNDERFLOWING = -300.0
"""A log density below this may be followed by one that has underflowed."""
SLOWEST = 1e-3
"""Powers below this are taken to be 0: the logarithm of the last decades cannot tell."""


def tail_remainder(u: Floats, gain: Floats) -> float:
    r"""Integral of gain du from 0 to the smallest u, by the power law of the last decades.

    With u the tail probability of P and L(u) the log ratio there, the tail adds

    .. math:: \int_0^{u_0} L(u)\,du

    to KL(P||Q), infinite unless u L(u) tends to 0 like a power of u. Probabilities u increase along the
    array.
    """
    tail = (u > 1e-305) & (u < 1e-8) & (gain > 0) & np.isfinite(gain)
    u, gain = u[tail], gain[tail]
    if u.size < 4:
        return 0.0
    size = np.log(u) + np.log(gain)
    middle = u.size // 2
    if not u[middle] > u[0]:  # a complement that is stuck at its rounding tells nothing
        return 0.0
    power = (size[middle] - size[0]) / (math.log(u[middle]) - math.log(u[0]))
    return math.inf if power <= SLOWEST else float(math.exp(size[0]) / power)


def has_true_zero(gain: Floats, log_other: Floats) -> bool:
    """Whether Q has no density somewhere under P, and not only one too small for floats.

    Some scipy families know their density but not its logarithm, which is lost where the density
    underflows: in a tail, next to points at which it is tiny already. Arguments are L and log q along
    landmarks under P.
    """
    lost = gain == np.inf
    if not lost.any():
        return False
    seen = np.flatnonzero(~lost)
    if seen.size == 0 or lost[seen[0] : seen[-1]].any():
        return True
    first, last = log_other[seen[0]], log_other[seen[-1]]
    return bool((lost[0] and first > UNDERFLOWING) or (lost[-1] and last > UNDERFLOWING))


Interval = tuple[float, float]
CANCELLED = 1e-3
"""Below this fraction of the mass it is a difference of, a hockey-stick divergence is integrated instead."""
SAME_RATIO = 1e-15
THINNEST = 1e-13
"""Panels relatively thinner than this cannot hold their nodes; they count by their masses."""


class ContinuousPair(Pair):
    """P and Q with densities on the line."""

    null: Reals
    alternative: Reals

    def __init__(self, null: Reals, alternative: Reals) -> None:
        self.null, self.alternative = null, alternative
        self._regions: dict[tuple[float, bool], list[Interval]] = {}
        self._sticks: dict[tuple[float, bool], float] = {}

    @property
    def kind(self) -> str:
        return "reals"

    @cached_property
    def support(self) -> Interval:
        """Hull of both supports."""
        ends = (self.null.support, self.alternative.support)
        return min(lo for lo, _ in ends), max(hi for _, hi in ends)

    def ratio(self, x: ArrayLike) -> Floats:
        values = np.asarray(x)
        if values.dtype.kind not in "biuf":
            return np.full(values.shape, np.nan)
        return self._continued_ratio(values.astype(float))

    def _continued_ratio(self, x: Floats) -> Floats:
        """L(x): exactly constant on plateaus, and continued where both densities underflow."""
        raw, _ = self._trusted(x)
        (low, at_low), (high, at_high) = self._outermost
        lo, hi = self.support
        lost = np.isnan(raw) & np.isfinite(x)
        if lost.any():
            raw = np.where(lost & (x < low) & (x >= lo), at_low, raw)
            raw = np.where(lost & (x > high) & (x <= hi), at_high, raw)
        return np.asarray(raw)

    def _trusted(self, x: Floats) -> tuple[Floats, Floats]:
        """Return L(x), with NaN where its rounding error is too large, and the rounding error."""
        raw, noise = self._raw(x)
        with np.errstate(invalid="ignore"):
            raw = np.where(noise > 1e-4 * (1 + np.abs(raw)), np.nan, raw)
        return self._plateaus.apply(x, raw), noise

    def _raw(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log p - log q and a bound on its rounding error."""
        with np.errstate(all="ignore"):
            log_p, log_q = self.null.logpdf(x), self.alternative.logpdf(x)
            ratio = self._difference(x, log_p, log_q)
            noise = 2.3e-16 * (2 + np.abs(log_p) + np.abs(log_q))
        infinite = np.isinf(ratio)
        if infinite.any():  # far out in both supports that is an overflow of scipy's, not a zero
            (lo, hi), (low, high) = self._common_support, self._body
            ratio = np.where(infinite & (x > lo) & (x < hi) & ((x < low) | (x > high)), np.nan, ratio)
        return ratio, noise

    @cached_property
    def _common_support(self) -> Interval:
        (a, b), (c, d) = self.null.support, self.alternative.support
        return max(a, c), min(b, d)

    @cached_property
    def _body(self) -> Interval:
        """The interval between the 1e-16 quantiles of P or of Q."""
        x = self._breaks
        cdf = np.maximum(self.null.cdf(x), self.alternative.cdf(x))
        sf = np.maximum(self.null.sf(x), self.alternative.sf(x))
        inside = x[(cdf >= 1e-16) & (sf >= 1e-16)]
        if not len(inside):
            raise InvalidDistribution(
                f"null={self.null.describe()} and alternative={self.alternative.describe()} are so far from 0 that "
                "floating-point numbers do not tell their values apart. Measure from another place, or in other units."
            )
        return float(inside[0]), float(inside[-1])

    def _difference(self, x: Floats, log_p: Floats, log_q: Floats) -> Floats:
        """L(x) from the log densities. A subclass that knows it more exactly overrides this."""
        del x
        return np.asarray(log_p - log_q)

    @cached_property
    def _breaks(self) -> Floats:
        """Ends of the first panels."""
        points = np.concatenate([self.null.breaks, self.alternative.breaks])
        points = np.unique(points[np.isfinite(points)])
        ends = [x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)]
        # breaks that rounding put next to one another make panels too thin to be of use
        gap = np.diff(points, prepend=-np.inf)
        points = points[gap > 4e-16 * np.abs(points)]
        return np.unique(np.concatenate([points, ends]))

    @cached_property
    def _first_grid(self) -> tuple[Floats, Floats, Floats]:
        """Points, L and its rounding error there, before extrema are refined."""
        ends = np.array([x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)])
        beside = np.concatenate([np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
        lo, hi = self.support
        beside = beside[(beside > lo) & (beside < hi)]
        grid = np.unique(np.concatenate([subdivide(self._breaks, 4), beside]))
        # at the very end of a support a density may be anything; what counts is its value on either side
        grid = grid[~np.isin(grid, ends)]
        return (grid, *self._raw(grid))

    @cached_property
    def _plateaus(self) -> Plateaus:
        grid, ratio, noise = self._first_grid
        return find_plateaus(grid, ratio, noise, self.support)

    @cached_property
    def _outermost(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The first and the last point of the grid at which L is known, with L there."""
        grid, ratio, _ = self._first_grid
        defined = np.flatnonzero(~np.isnan(ratio))
        if defined.size == 0:
            return (math.inf, math.nan), (-math.inf, math.nan)
        first, last = defined[0], defined[-1]
        return (float(grid[first]), float(ratio[first])), (float(grid[last]), float(ratio[last]))

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """Every landmark, to the 1e-300 quantiles, with L there."""
        grid, ratio, noise = self._first_grid
        ratio = self._plateaus.apply(grid, ratio)
        extrema = refine_extrema(grid, ratio, noise, self._continued_ratio)
        full = np.unique(np.concatenate([grid, extrema]))
        return full, self._continued_ratio(full)

    @cached_property
    def landmarks(self) -> Floats:
        """Sorted points that resolve P, Q and L: quantiles to about 1e-16, ends, extrema and jumps."""
        grid, _ = self._grid
        low, high = self._body
        ends = [x for x in (*self.null.support, *self.alternative.support) if math.isfinite(x)]
        return np.unique(np.concatenate([grid[(grid >= low) & (grid <= high)], ends]))

    @cached_property
    def ratio_range(self) -> Interval:
        _, ratio = self._grid
        seen = ratio[~np.isnan(ratio)]
        ends = limits(self._trusted, self.support, self._breaks)
        everything = np.concatenate([seen, ends])
        return float(everything.min()), float(everything.max())

    def regions_above(self, level: float) -> list[Interval]:
        """{L > level} as disjoint open intervals from left to right."""
        return list(self._region(level, above=True))

    def regions_below(self, level: float) -> list[Interval]:
        """{L < level} as disjoint open intervals from left to right."""
        return list(self._region(level, above=False))

    def _region(self, level: float, *, above: bool) -> list[Interval]:
        key = (float(level), above)
        if key not in self._regions:
            if len(self._regions) > 256:
                self._regions.clear()
            self._regions[key] = self._find_region(*key)
        return self._regions[key]

    def _find_region(self, level: float, above: bool) -> list[Interval]:
        slack = SAME_RATIO * abs(level) if self._plateaus else 0.0

        def holds(ratio: Floats) -> Mask:
            with np.errstate(invalid="ignore"):
                return np.asarray(ratio > level + slack if above else ratio < level - slack)

        grid, ratio = self._grid
        there = holds(ratio)
        flips = np.flatnonzero(there[1:] != there[:-1])
        edges = find_edges(self._continued_ratio, holds, level, grid, ratio, flips, there[flips])
        starts = [float(x) for x, i in zip(edges, flips, strict=True) if not there[i]]
        ends = [float(x) for x, i in zip(edges, flips, strict=True) if there[i]]
        lo, hi = self.support
        if there[0]:
            starts.insert(0, lo)
        if there[-1]:
            ends.append(hi)
        return list(zip(starts, ends, strict=True))

    def _masses(self, regions: list[Interval]) -> tuple[float, float]:
        if not regions:
            return 0.0, 0.0
        lower, upper = np.array(regions).T
        p, q = self.null.mass(lower, upper), self.alternative.mass(lower, upper)
        return min(math.fsum(p.tolist()), 1.0), min(math.fsum(q.tolist()), 1.0)

    def above(self, level: float) -> tuple[float, float]:
        return self._masses(self._region(level, above=True))

    def below(self, level: float) -> tuple[float, float]:
        return self._masses(self._region(level, above=False))

    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        key = (float(level), reverse)
        if key not in self._sticks:
            if len(self._sticks) > 1024:
                self._sticks.clear()
            self._sticks[key] = self._hockey_stick(*key)
        return self._sticks[key]

    def _hockey_stick(self, level: float, reverse: bool) -> float:
        p, q = self.below(-level) if reverse else self.above(level)
        top, bottom = (q, p) if reverse else (p, q)
        if top == 0.0:
            return 0.0
        difference = top - math.exp(level) * bottom if bottom > 0 else top
        if difference > CANCELLED * top:
            return min(difference, 1.0)
        value = self.integral(hockey_stick_term(level, reverse=reverse), (-level if reverse else level,))
        return min(max(value, 0.0), 1.0)

    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        sides = [(level, above) for level in levels if math.isfinite(level) for above in (True, False)]
        cuts = {end for level, above in sides for piece in self._region(level, above=above) for end in piece}
        return self._integrate(term, np.array(sorted(x for x in cuts if math.isfinite(x))))

    def _integrate(self, term: Term, cuts: Floats) -> float:
        """Return the integral of a term; panels that a cut falls into are split there."""
        lower, upper, whole, halves, thin = self._panels

        def integrand(nodes: Nodes) -> tuple[Floats, Floats]:
            with np.errstate(all="ignore"):
                value, moved = term(nodes[0], nodes[1], nodes[2])
                return value, moved * nodes[3]

        lower, upper, whole, halves = split_panels(self._nodes, cuts, lower, upper, whole, halves)
        panels = adaptive(integrand, self._nodes, lower, upper, whole, halves)
        with np.errstate(all="ignore"):
            rest, _ = term(*thin)
        return panels.total + float(rest[np.isfinite(rest)].sum())

    def _nodes(self, x: Floats) -> Nodes:
        """log p, log q, L and its rounding error at the abscissae."""
        with np.errstate(all="ignore"):
            log_p, log_q = self.null.logpdf(x), self.alternative.logpdf(x)
            # a node that rounding puts on a singular end counts for nothing
            log_p, log_q = (np.where(log == np.inf, -np.inf, log) for log in (log_p, log_q))
            noise = 2.3e-16 * (2 + np.abs(log_p) + np.abs(log_q))
            ratio = self._difference(x, log_p, log_q)
        lost = np.isnan(ratio)
        if lost.any():  # both densities are zero there
            ratio = np.where(lost, 0.0, ratio)
        noise = np.where(np.isfinite(noise), noise, 2.3e-16)
        return log_p, log_q, self._plateaus.apply(x, ratio), noise

    @cached_property
    def _panels(self) -> tuple[Floats, Floats, Nodes, Nodes, tuple[Floats, Floats, Floats]]:
        """Panels with their nodes, and what is too thin for nodes as masses."""
        points = self._breaks
        lo, hi = self.support
        lower, upper = points[:-1], points[1:]
        thin = upper - lower <= THINNEST * np.maximum(np.abs(lower), np.abs(upper))
        outer_lower, outer_upper = [], []
        if points[0] > lo:
            outer_lower.append(lo)
            outer_upper.append(float(points[0]))
        if points[-1] < hi:
            outer_lower.append(float(points[-1]))
            outer_upper.append(hi)
        by_mass = (np.concatenate([lower[thin], outer_lower]), np.concatenate([upper[thin], outer_upper]))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p = np.log(self.null.mass(*by_mass))
            log_q = np.log(self.alternative.mass(*by_mass))
            ratio = log_p - log_q
        seen = ~np.isnan(ratio)
        lower, upper = lower[~thin], upper[~thin]
        whole = self._nodes(panel_nodes(lower, upper))
        halves = half_nodes(self._nodes, lower, upper)
        return lower, upper, whole, halves, (log_p[seen], log_q[seen], ratio[seen])

    def _kullback_leibler(self, *, reverse: bool) -> float:
        rest = self._heavy_remainder(reverse=reverse)
        if math.isinf(rest):
            return math.inf
        value = self._integrate(kullback_leibler_term(reverse=reverse), np.array([]))
        return max(value, 0.0) + rest if math.isfinite(value) else math.inf

    def _heavy_remainder(self, *, reverse: bool) -> float:
        """Return the part of KL that lies beyond the last landmark: 0, a small number, or infinity."""
        law, other = (self.alternative, self.null) if reverse else (self.null, self.alternative)
        if float(law.cdf(other.support[0]) + law.sf(other.support[1])) > 0:  # mass where the other has none
            return math.inf
        lo, hi = law.support
        x = self._breaks[(self._breaks >= lo) & (self._breaks <= hi)]
        ratio, _ = self._raw(x)
        gain = -ratio if reverse else ratio
        cdf, sf = law.cdf(x), law.sf(x)
        there = (cdf > 0) & (sf > 0) & ~np.isnan(gain)
        if has_true_zero(gain[there], other.logpdf(x[there])):
            return math.inf
        return tail_remainder(cdf, gain) + tail_remainder(sf[::-1], gain[::-1])


class ClampedPair(ContinuousPair):
    """Densities proportional to min{P, e^b Q} and min{Q, e^-a P}, whose ratio is [L]_a^b.

    Guarantees: the ratio lies in [a, b] exactly; taken from the densities it would be off by their rounding.
    """

    def __init__(self, base: ContinuousPair, clamp: tuple[float, float], null: Reals, alternative: Reals) -> None:
        super().__init__(null, alternative)
        self._base, self._clamp = base, clamp

    def _difference(self, x: Floats, log_p: Floats, log_q: Floats) -> Floats:
        del log_p, log_q  # they would say the same but for rounding
        ratio = self._base.ratio(x)
        # where one of P and Q has no density neither core has
        return np.where(np.isfinite(ratio), np.clip(ratio, *self._clamp), np.nan)

    @cached_property
    def ratio_range(self) -> Interval:
        (low, high), (a, b) = super().ratio_range, self._clamp
        return max(low, a), min(high, b)
