"""Numbers of records at which a test surely meets its goal, found without its margin at each of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from privatest.laws.lookahead import sure_advantages
from privatest.privacy import Noise, Pure

if TYPE_CHECKING:
    from privatest.power.tuning import Family

__all__ = ["unsure"]

KINDS = ("tight", "ncllr", "scllr")


def unsure(family: Family, counts: range, calibrated_noise: Callable[..., Noise]) -> list[int]:
    """Those of the numbers of records at which a quick look does not settle that the goal is met.

    The family's clamp must be the same for all; ``calibrated_noise`` is that of ``decision.build``.
    """
    plain = family.kind in KINDS and family.around.kind == "replace" and isinstance(family.notion, Pure)
    if len(counts) <= 3 or not plain or family.question is not None or family.goal.alpha is not None:
        return list(counts)
    score, goal = family.score_for(counts[0]), family.goal
    if len(score.null_laws) + len(score.alternative_laws) > 2 or score.upper_laws:
        return list(counts)
    noise = calibrated_noise(family.kind, score, family.notion, family.clamp_for(counts[0]), family.around.rows)
    level = family.threshold if family.kind == "tight" else family.threshold or Fraction(0)
    cutoffs = None if level is None else partial(score.lattice_threshold, level)
    sure = sure_advantages(score.support, (score.null_law, score.alternative_law), noise, counts, cutoffs)
    return [n for n, gain in zip(counts, sure, strict=True) if gain < (goal.advantage or 0.0)]
