"""Numbers of records at which a test surely meets its goal, found without its margin at each of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from privatest.laws.lookahead import sure_advantages
from privatest.privacy import Noise, NoNoise, Pure

if TYPE_CHECKING:
    from privatest.power.tuning import Family

__all__ = ["unsure"]

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
    if few or not plain or family.question is not None or family.goal.alpha is not None:
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
    sure = sure_advantages(score.support, laws, noise, counts, cutoffs, goal.advantage or 0.0)
    return [n for n, gain in zip(counts, sure, strict=True) if gain < (goal.advantage or 0.0)]
