r"""The total where neighbours differ by one person's coming or going, and n is therefore not public.

The threshold must not depend on n then: every record's score is shifted by a constant c, the threshold for one record,
and the shifted total compared with 0. What hides one record is then

.. math:: \max(|\text{low} - c|, |\text{high} - c|)

instead of high - low: less noise where c lies near the middle of the scores. The shift is a fraction C/M of the
score's lattice, fine enough for n records; the total is the integer :math:`M \sum s_i - C \cdot \text{count}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privatest.errors import InvalidInput
from privatest.laws import Curves, NoisyTotal
from privatest.privacy import NOISES, Noise, Notion, Pure, canonical_noise
from privatest.privacy.noise import Neighbourhood
from privatest.scores import Score
from privatest.scores.score import FEW_VALUES

__all__ = ["Shifted", "centred", "kind_noise", "unmoved"]

_ROUNDS = 6


@dataclass(frozen=True)
class Shifted:
    """Noise and cutoff for the total M S - C count."""

    noise: Noise
    cutoff: Fraction
    scale: int
    shift: int


def centred(score: Score, kind: str, notion: Notion, n: int, alpha: float | None, around: Neighbourhood) -> Shifted:
    """The shift at which 0 is the cutoff of the largest advantage at n records, or the largest that keeps alpha.

    The noise depends on the shift, the best shift a little on the noise: a few rounds settle both.
    """
    scale = _fineness(n)
    middle = Fraction(score.mean(score.null_law) + score.mean(score.alternative_law)) / 2
    centre = middle
    for _ in range(_ROUNDS):
        rough = _noise(kind, notion, score, around.units(score, centre), 1)
        curves = Curves(score.support, score.null_law, score.alternative_law, n, rough)
        cutoff = curves.best_cutoff() if alpha is None else curves.cutoff_for_alpha(alpha)
        # A cutoff beyond all totals (a tiny alpha) leaves the shift within the scores.
        before, centre = centre, min(max(cutoff / n, Fraction(score.low)), Fraction(score.high))
        if around.units(score, centre) == around.units(score, before):
            break

    def at(shift: int) -> Shifted:
        return _with_noise(score, kind, notion, scale, shift, around, Fraction(0))

    if alpha is not None:
        return _kept(score, n, at(math.floor(scale * centre)), alpha)
    # Less noise may be worth a threshold that is a little off: the middle of the scores needs the least.
    rivals = (centre, middle, -score.origin / score.step, Fraction(score.low + score.high, 2))
    return max((at(round(scale * rival)) for rival in rivals), key=lambda found: round(_advantage(score, n, found), 12))


def _advantage(score: Score, n: int, found: Shifted) -> float:
    """About the advantage, for choosing among shifts."""
    noise, threshold = found.noise, Fraction(n * found.shift, found.scale)
    coarse = noise.coarser(found.scale)
    if coarse is not None and len(score.support) > FEW_VALUES:
        # On the score's own lattice, where the curves are quick; between its points they are interpolated.
        curves = Curves(score.support, score.null_law, score.alternative_law, n, coarse)
        null, alternative = curves.cdfs(np.array([float((threshold - curves.base) / curves.unit)]))
        return float(alternative[0] - null[0])
    scores = found.scale * score.support - found.shift
    laws = score.null_law, score.alternative_law
    low, high = (NoisyTotal(scores, law, n, noise).cdf(found.cutoff) for law in laws)
    return high - low


def unmoved(score: Score, kind: str, notion: Notion, n: int, threshold: Fraction, around: Neighbourhood) -> Shifted:
    """The ratio as it is: shifted by what stands for the ratio 0, so that the threshold is a number of nats."""
    scale = _fineness(n)
    shift = round(-scale * score.origin / score.step)
    return _with_noise(score, kind, notion, scale, shift, around, threshold * scale / score.step)


def _fineness(n: int) -> int:
    """M, such that n roundings of the shift together stay far below the deviation of n scores."""
    return 1 << (256 * math.isqrt(n)).bit_length()


def _with_noise(
    score: Score, kind: str, notion: Notion, scale: int, shift: int, around: Neighbourhood, cutoff: Fraction
) -> Shifted:
    units = around.units(score, Fraction(shift, scale))
    return Shifted(_noise(kind, notion, score, units, scale), cutoff, scale, shift)


def _noise(kind: str, notion: Notion, score: Score, units: int, scale: int) -> Noise:
    """The kind's noise that hides ``units`` lattice steps of the score, on a lattice ``scale`` times as fine."""
    return kind_noise(kind, notion, Fraction(units * scale), score.step / scale)


def kind_noise(kind: str, notion: Notion, width: Fraction, step: Fraction) -> Noise:
    """The noise that this kind of test adds to hide totals ``width`` lattice steps apart, of ``step`` nats each."""
    if isinstance(notion, Pure):
        return next(noise for noise in NOISES.values() if noise.test == kind).for_width(notion.loss, width, step)
    if kind != "tight":
        raise InvalidInput(f"test={kind!r} is for epsilon=, not for privacy={notion.text!r}. Use test='tight'.")
    return canonical_noise(notion, width)


def _kept(score: Score, n: int, found: Shifted, alpha: float) -> Shifted:
    """The same with a cutoff at which the type I error is at most alpha, exactly.

    Invariant: the error is at most alpha at `low` and above it at `high`.
    """
    scores = found.scale * score.support - found.shift
    totals = [NoisyTotal(scores, law, n, found.noise) for law in score.null_laws]

    def error(cutoff: Fraction | int) -> float:
        return max(total.cdf(cutoff) for total in totals)

    if error(found.cutoff) <= alpha:
        return found
    high = math.floor(found.cutoff)
    step = found.scale
    low = high - step
    while error(low) > alpha:
        high, step = low, 2 * step
        low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) <= alpha:
            low = middle
        else:
            high = middle
    return Shifted(found.noise, Fraction(low), found.scale, found.shift)
