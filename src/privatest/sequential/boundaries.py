r"""When a walk of log e-values is decided: at one of two boundaries, or at a hard stop; and what is known of it before.

The law of the stopped walk is followed block by block, exactly: what has not stopped is a vector on the integers
between the boundaries, and a block convolves it with the law of its vote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from privatest.documents import wholes_from_json
from privatest.errors import InvalidDocument
from privatest.laws.fourier import convolution
from privatest.numbers import Floats, Integers
from privatest.sequential.evidence import VoteLaw

__all__ = ["Boundaries", "Stopped", "WalkProgress", "rarely", "stopped"]

Verdicts = Literal["null", "alternative"]

MOST_BLOCKS = 20_000
"""A walk that long is not followed: its blocks say next to nothing."""
NEGLIGIBLE = 1e-13
"""Where so little is left between the boundaries it is counted as an error of both kinds."""
# Up to so many products a convolution is quicker without transforms.
_SHORT = 1 << 20


@dataclass(frozen=True)
class WalkProgress:
    """Blocks so far, the sum of their votes, and the largest that it was after any block, or 0."""

    blocks: int = 0
    level: int = 0
    peak: int = 0


@dataclass(frozen=True)
class Boundaries:
    """Decided as soon as the walk is at ``lower`` or below (for P), or at ``upper`` or above (for Q).

    After block number ``last`` it is decided in any case: for Q where the walk is above ``cut``.
    """

    lower: int
    upper: int
    last: int | None = None
    cut: int = 0
    begin: ClassVar[WalkProgress] = WalkProgress()

    def __post_init__(self) -> None:
        if not self.lower < self.upper or not self.lower <= self.cut <= self.upper:
            raise InvalidDocument("The boundaries of the walk do not fit together.")

    def feed(self, progress: WalkProgress, votes: Integers) -> tuple[WalkProgress, int | None]:
        """Progress after these votes, or after those up to the verdict; and which vote brought it."""
        walk = progress.level + np.cumsum(votes)
        out = (walk >= self.upper) | (walk <= self.lower)
        if self.last is not None:
            out |= progress.blocks + 1 + np.arange(len(walk)) >= self.last
        hit = int(np.argmax(out)) if out.any() else None
        used = walk if hit is None else walk[: hit + 1]
        peak = max(progress.peak, int(used.max()))
        return WalkProgress(progress.blocks + len(used), int(used[-1]), peak), hit

    def feed_few(self, progress: WalkProgress, votes: Iterable[int]) -> tuple[WalkProgress, int | None]:
        """:meth:`feed` of a few votes, without the price of arrays."""
        for place, vote in enumerate(votes):
            blocks, level = progress.blocks + 1, progress.level + vote
            progress = WalkProgress(blocks, level, max(progress.peak, level))
            if level >= self.upper or level <= self.lower or (self.last is not None and blocks >= self.last):
                return progress, place
        return progress, None

    def for_alternative(self, progress: WalkProgress) -> bool:
        """Which way a walk that is decided went."""
        return progress.level >= self.upper or (progress.level > self.lower and progress.level > self.cut)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"lower": self.lower, "upper": self.upper, "last": self.last, "cut": self.cut}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Boundaries:
        """What :meth:`to_dict` wrote."""
        last = None if document["last"] is None else wholes_from_json(document, "last", least=1)["last"]
        return cls(**wholes_from_json(document, "lower", "upper", "cut"), last=last)

    def progress_to_dict(self, progress: WalkProgress) -> dict[str, Any]:
        """Plain values."""
        return {"blocks": progress.blocks, "level": progress.level, "peak": progress.peak}

    def progress_from_dict(self, document: dict[str, Any]) -> WalkProgress:
        """What :meth:`progress_to_dict` wrote."""
        whole = wholes_from_json(document, "blocks", "peak", least=0) | wholes_from_json(document, "level")
        found = WalkProgress(**whole)
        if found.level > found.peak or (not found.blocks and (found.level or found.peak)):
            raise InvalidDocument("The progress of the walk does not fit together.")
        return found


class Stopped(NamedTuple):
    """What becomes of a walk under one law.

    Attributes:
        alternative, null: probabilities of the verdicts, each with all that was not followed to its end.
        stops: probability of stopping after block 1, 2, ...
    """

    alternative: float
    null: float
    stops: Floats

    def blocks(self) -> float:
        """The mean number of blocks."""
        return float(self.stops @ np.arange(1, len(self.stops) + 1)) / float(self.stops.sum())

    def within(self, share: float) -> int:
        """The number of blocks within which it stops with this probability at least."""
        reached = np.cumsum(self.stops) >= share * float(self.stops.sum()) * (1 - 1e-12)
        return int(np.argmax(reached)) + 1


def stopped(first: VoteLaw, later: VoteLaw, rule: Boundaries, negligible: float = NEGLIGIBLE) -> Stopped | None:
    """The stopped walk of independent votes, the first of another law than the later ones.

    None where it takes more than ``MOST_BLOCKS`` blocks.
    """
    alternative = null = 0.0
    stops: list[float] = []
    for above, below, alive in _outcomes(first, later, rule):
        alternative, null = alternative + above, null + below
        stops.append(above + below)
        if alive <= negligible:
            return Stopped(alternative + alive, null + alive, np.array(stops))
    return None


def rarely(first: VoteLaw, later: VoteLaw, rule: Boundaries, verdict: Verdicts, limit: float) -> bool:
    """Whether the walk ends so with probability ``limit`` at most, all that is not followed included.

    Followed as far as it takes to tell; False where that is more than ``MOST_BLOCKS`` blocks.
    """
    said = 0.0
    for above, below, alive in _outcomes(first, later, rule):
        said += above if verdict == "alternative" else below
        if said > limit:
            return False
        if said + alive <= limit:
            return True
    return False


def _outcomes(first: VoteLaw, later: VoteLaw, rule: Boundaries) -> Iterator[tuple[float, float, float]]:
    """Block by block: the probabilities of the verdicts after it, and of going on."""
    inner = rule.upper - rule.lower - 1  # integers strictly between the boundaries
    after = first
    jumps = _folded(later, inner + 1)
    for block in range(1, MOST_BLOCKS + 1):
        above, below = _above(after, rule.upper), _below(after, rule.lower)
        state = _between(after, rule.lower + 1, inner)
        alive = float(state.sum())
        if block == rule.last:
            over = float(state[max(rule.cut - rule.lower, 0) :].sum())
            yield above + over, below + alive - over, 0.0
            return
        yield above, below, alive
        short = len(state) * len(jumps.masses) <= _SHORT
        masses = np.convolve(state, jumps.masses) if short else np.maximum(convolution(state, jumps.masses), 0.0)
        after = VoteLaw(rule.lower + 1 + jumps.least, masses)


def _folded(law: VoteLaw, reach: int) -> VoteLaw:
    """The same with jumps beyond the reach made just so long: from anywhere inside they lead out all the same."""
    return VoteLaw.of(np.clip(law.least + np.arange(len(law.masses)), -reach, reach), law.masses)


def _above(law: VoteLaw, value: int) -> float:
    return float(law.masses[max(value - law.least, 0) :].sum())


def _below(law: VoteLaw, value: int) -> float:
    return float(law.masses[: max(value - law.least + 1, 0)].sum())


def _between(law: VoteLaw, start: int, count: int) -> Floats:
    """The masses of ``count`` integers from ``start`` on."""
    found = np.zeros(count)
    low, high = max(start, law.least), min(start + count, law.least + len(law.masses))
    if low < high:
        found[low - start : high - start] = law.masses[low - law.least : high - law.least]
    return found
