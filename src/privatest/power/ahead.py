r"""Numbers of records at which a test surely meets its goal, found without its margin at each of them.

They come from a sure lower bound on the advantage at many numbers of records, for the price of one. The transforms of
one record's law are computed once; the n-th power is all that changes with n. The Fourier integral is taken about 0
alone, at cutoffs that move with the mean of the total. What the other peaks of the transform could add is bounded by
the integral of its modulus there, which only shrinks as n grows:

.. math:: |F(c) - \hat F(c)| \le \frac1\pi \int_{r}^{\pi} \frac{|\phi(t)|^n |\phi_N(t)|}{2 \sin(t/2)} dt .

So a bound above the goal settles that n; where it lies below, nothing is said. The sum of few records has a short law,
which is computed for all numbers of them from one transform.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privatest.laws.curves import Curves
from privatest.laws.fourier import doubling_panels, quick_log_transforms, side_lobes, sum_laws
from privatest.laws.total import chernoff_windows
from privatest.numbers import Floats, Integers, dot, row_dots
from privatest.privacy import Noise, NoNoise, Pure
from privatest.scores.score_law import SLACK

if TYPE_CHECKING:
    from privatest.power.tuning import Family

__all__ = ["sure_advantages", "unsure"]


_MOST_PANELS = 200
_NEGLIGIBLE = 46.0
_MOST_LOBES = 4096
# Rounding, and what lies below e^-46 of the transform's peak.
_SLACK = 1e-11
# Cutoffs that are tried, in standard deviations of the noisy total from the one that was best for the fewest records.
_TRIED = np.linspace(-0.3, 0.3, 13)
_BLOCK = 1 << 20
# Sums of scores on at most so many integers are short; so many in all, for every number of records, are quickly made.
_SHORT, _MOST_INTEGERS = 1 << 17, 1 << 22


def sure_advantages(
    support: Integers,
    laws: tuple[Floats, Floats],
    noise: Noise,
    counts: Sequence[int],
    cutoffs: Callable[[int], Fraction] | None = None,
    enough: float = 1.0,
) -> Floats:
    """At each number of records (consecutive, increasing) an advantage that the test surely has; -1 where in doubt.

    Args:
        support, laws: scores, and their probabilities under P and under Q.
        cutoffs: the test's own cutoff at n records; without it, the best of those tried.
        enough: where a cutoff has this advantage, no other is tried.

    Guarantees: at most the advantage at the best cutoff (at the given one), at each n.
    """
    unknown = np.full(len(counts), -1.0)
    first, last = (Curves(support, *laws, n, noise) for n in (counts[0], counts[-1]))
    if (short := _short_sums(first, counts, cutoffs, enough)) is not None:
        return short
    if noise.variance == 0 or first._without_infinite is not None:
        return unknown
    if np.any(np.abs(support) >= 1 << 20) or min(first._variances) <= 0 or first.n < 32:
        return unknown
    low, spacing, steps, coarse = first._lattice
    reach = 9.5 / math.sqrt(first.n * min(first._variances))
    farthest = last._near
    if reach > math.pi / 4 or reach * coarse.plateau > 5:
        return unknown
    scale = min(1.0 / math.sqrt(last.n * max(last._variances) + coarse.variance), coarse.decay_rate, 1.0 / farthest)
    nodes = doubling_panels(scale, reach, farthest, _MOST_PANELS)
    missed = None if nodes is None else _beyond(steps, laws, first.n, coarse, reach)
    if nodes is None or missed is None:
        return unknown
    t, weights = nodes
    shared = coarse.characteristic(t) * (weights / (2 * math.pi * np.sin(t / 2)))
    transforms = quick_log_transforms(steps, laws, t)
    if cutoffs is None:
        offset = float(first.best_offset()[0])
        sizes = np.sqrt(np.array(counts) * max(first._variances) + coarse.variance)
        tried = np.rint(offset + np.multiply.outer(sizes, _TRIED))
        centres = [Curves(support, *laws, n, noise)._centre for n in counts]
    else:
        tried = np.zeros((len(counts), 1))
        half = coarse.offset + Fraction(1, 2)
        centres = [math.floor(cutoffs(n) - n * low - coarse.offset) + half for n in counts]
        moved = max(abs(c - Curves(support, *laws, n, noise)._centre) for n, c in zip(counts, centres, strict=True))
        if spacing > 1 or moved > farthest:
            return unknown
    found = np.empty(len(counts))
    rows = max(_BLOCK // (len(t) * tried.shape[1]), 1)
    numbers = np.array(counts, dtype=np.float64)
    for start in range(0, len(counts), rows):
        part = slice(start, start + rows)
        angles = np.multiply.outer(tried[part], t)
        cosines, sines = np.cos(angles), np.sin(angles)
        gains = np.zeros(angles.shape[:2])
        for sign, (mean, logs) in zip((-1.0, 1.0), transforms, strict=True):
            turns = [float(n * Fraction(mean) - c) for n, c in zip(counts[part], centres[part], strict=True)]
            waves = np.exp(np.multiply.outer(numbers[part], logs) + 1j * np.multiply.outer(turns, t)) * shared
            gains += sign * (np.einsum("ijk,ik->ij", sines, waves.real) - np.einsum("ijk,ik->ij", cosines, waves.imag))
        found[part] = gains.max(axis=1)
    return found - missed - _SLACK


def _short_sums(
    curves: Curves, counts: Sequence[int], cutoffs: Callable[[int], Fraction] | None, enough: float
) -> Floats | None:
    """The same from the law of each sum, where all are short; else None.

    A score that stands for an infinite ratio settles the test: the sums are those without one.
    """
    inner = curves if curves._without_infinite is None else curves._without_infinite[0]
    low, spacing, steps, noise = inner._lattice
    if min(inner._variances) <= 0 or noise.spacing > 1 or (spacing > 1 and cutoffs is not None):
        return None
    windows = [chernoff_windows(steps[law > 0], law[law > 0], counts) for law in inner._laws]
    sizes = [last - first + 1 for first, last in itertools.chain(*windows)]
    if max(sizes) > _SHORT or sum(sizes) > _MOST_INTEGERS:
        return None
    terms = [[n, 0] for n in counts] + [[0, n] for n in counts]
    laws = [law[::-1] for law in sum_laws(steps.astype(np.int64), inner._laws, terms, [*windows[0], *windows[1]])]
    # Cutoffs as the whole part of what they are above the noise's offset; a half more lies between two totals.
    if cutoffs is None:
        places = [math.floor(replace(inner, n=n)._centre - noise.offset) for n in counts]
        tried = _offsets(inner)
    else:
        places, tried = [math.floor(cutoffs(n) - n * low - noise.offset) for n in counts], [0]
    ends = [place - end for place, *both in zip(places, *windows, strict=True) for end in itertools.chain(*both)]
    start = min(ends) + min(tried)
    levels = noise.cdf(float(noise.offset) + 0.5 + np.arange(start, max(ends) + max(tried) + 1, dtype=np.float64))

    def cdf(place: int, last: int, law: Floats) -> float:
        """Pr[S + N <= place], the law of S running down from its last value."""
        return dot(levels[place - last - start : place - last - start + len(law)], law)

    found = np.empty(len(counts))
    for i, n in enumerate(counts):
        settled = replace(curves, n=n)._without_infinite
        (never_p, sure_p), (never_q, sure_q) = ((1.0, 0.0), (1.0, 0.0)) if settled is None else settled[1:]
        best = -1.0
        for offset in list(tried):
            at = places[i] + offset
            null = never_p * cdf(at, windows[0][i][1], laws[i]) + sure_p
            gain = never_q * cdf(at, windows[1][i][1], laws[len(counts) + i]) + sure_q - null
            if gain > best:
                best = gain
                tried.remove(offset)
                tried.insert(0, offset)  # what was good for n records is tried first for more
            if best >= enough + _SLACK:
                break
        found[i] = best
    return found - _SLACK


def _offsets(curves: Curves) -> list[int]:
    """Offsets to try, from the one that is best for the fewest records on."""
    best = curves.best_offset()[0]
    size = math.sqrt(curves.n * max(curves._variances) + curves._lattice[3].variance)
    return sorted({best, *(best + np.rint(_TRIED * size).astype(int)).tolist()}, key=lambda offset: abs(offset - best))


def _beyond(steps: Floats, laws: tuple[Floats, Floats], n: int, noise: Noise, reach: float) -> float | None:
    """What both integrals could be beyond the reach, at most; None where there are too many peaks."""
    missed = 0.0
    for law in laws:
        lobes = side_lobes(steps, law, n, reach, _NEGLIGIBLE, _MOST_LOBES)
        if lobes is None:
            return None
        if len(lobes) == 0:
            continue
        # Each peak is at most as wide as the one at 0: half as wide panels resolve it, and its two sides.
        panels = doubling_panels(reach / 16, reach, 48 / reach, _MOST_PANELS)
        if panels is None:
            return None
        away, weights = panels
        t = np.concatenate([lobes[:, None] - away, lobes[:, None] + away], axis=1)
        inside = (t > reach) & (t <= math.pi)
        modulus = np.empty(t.shape)
        for row, angles in enumerate(t):
            waves = np.multiply.outer(angles, steps)
            modulus[row] = np.hypot(row_dots(np.cos(waves), law), row_dots(np.sin(waves), law))
        with np.errstate(under="ignore", divide="ignore"):
            sizes = np.exp(n * np.log(np.minimum(modulus, 1.0))) * np.abs(noise.characteristic(t))
        parts = np.where(inside, sizes / (2 * math.pi * np.sin(np.minimum(t, math.pi) / 2)), 0.0)
        missed += 2 * math.fsum((parts * np.tile(weights, 2)).ravel())  # twice: peaks that share an interval
    return missed


KINDS = ("tight", "stair", "ncllr", "scllr", "llr")


def unsure(
    family: Family, counts: range, calibrated_noise: Callable[..., Noise], literal_cutoff: Callable[..., Fraction]
) -> list[int]:
    """Those of the numbers of records at which a quick look does not settle that the goal is met.

    The family's clamp must be the same for all; the two functions are those of
    ``decision.build``.
    """
    plain = family.kind in KINDS and family.around.kind == "replace" and isinstance(family.notion, Pure)
    few = len(counts) <= 3 and family.kind != "llr"  # sooner computed than looked at
    if few or not plain or family.goal.alpha is not None or (family.question is not None and family.kind == "stair"):
        return list(counts)
    score, goal = family.score_for(counts[0]), family.goal
    if len(score.null_laws) + len(score.alternative_laws) > 2 or score.upper_laws:
        return list(counts)
    if family.kind == "llr":
        if family.score_for(counts[-1]) is not score:
            return list(counts)
        noise: Noise = NoNoise()
    else:
        # Tulap noise is the average of stairs of all offsets, so that the best stair has at least its advantage.
        kind = "tight" if family.kind == "stair" else family.kind
        noise = calibrated_noise(kind, score, family.notion, family.clamp_for(counts[0]), family.around.rows)
    calibrated = family.threshold is None and family.kind in ("tight", "stair")
    cutoffs = None if calibrated else partial(literal_cutoff, score, family.kind, family.threshold)
    laws = score.null_law, score.alternative_law
    # Laws of sets that are the worst for one n are so for every n; those of another n lie above by the slack at most.
    enough = (goal.advantage or 0.0) + (0.0 if family.question is None else 2 * SLACK)
    sure = sure_advantages(score.support, laws, noise, counts, cutoffs, enough)
    return [n for n, gain in zip(counts, sure, strict=True) if gain < enough]
