"""The plan of a sequential test: what its blocks release, the boundaries, and all that is known before any data.

The walk of log e-values is decided at one of two boundaries, or at a hard stop. The law of the stopped walk is followed
block by block, exactly: what has not stopped is a vector on the integers between the boundaries, and a block convolves
it with the law of its vote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from privatest.decision.run import Decision, Outcome, cost_fact
from privatest.errors import InvalidDocument, InvalidInput
from privatest.facts import Fact, Probability
from privatest.laws.fourier import convolution
from privatest.numbers import Floats
from privatest.privacy import Notion
from privatest.privacy.notion import notion_words
from privatest.streams.blocks import SumBlocks
from privatest.streams.evalues import PARTS, VoteLaw, VoteLaws, vote_laws
from privatest.streams.state_file import SEQUENTIAL, StateKind
from privatest.streams.stream_plan import Rule, StreamPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Verdicts = Literal["null", "alternative"]


MOST_BLOCKS = 20_000
"""A walk that long is not followed: its blocks say next to nothing."""
NEGLIGIBLE = 1e-13
"""Where so little is left between the boundaries it is counted as an error of both kinds."""
# Up to this number of products a convolution is quicker without transforms.
_SHORT = 1 << 20


class WalkProgress(NamedTuple):
    """Blocks so far, the sum of their votes, and the largest that it was after any block, or 0."""

    blocks: int = 0
    level: int = 0
    peak: int = 0


@dataclass(frozen=True)
class Boundaries(Rule):
    """Decide as soon as the walk is at ``lower`` or below (for P), or at ``upper`` or above (for Q).

    After block number ``last`` it is decided in any case: for Q where the walk is above ``cut``.
    """

    lower: int
    upper: int
    last: int | None = None
    cut: int = 0
    begin: ClassVar[WalkProgress] = WalkProgress()
    progress: ClassVar[type[WalkProgress]] = WalkProgress

    def __post_init__(self) -> None:
        ordered = self.lower < self.upper and self.lower <= self.cut <= self.upper
        if not ordered or (self.last is not None and self.last < 1):
            raise InvalidDocument("The boundaries of the walk do not fit together.")

    def feed(self, progress: WalkProgress, votes: Sequence[int]) -> tuple[WalkProgress, int | None]:
        blocks, level, peak = progress
        for place, vote in enumerate(votes):
            blocks += 1
            level += vote
            peak = max(peak, level)
            if level >= self.upper or level <= self.lower or (self.last is not None and blocks >= self.last):
                return WalkProgress(blocks, level, peak), place
        return WalkProgress(blocks, level, peak), None

    def check(self, progress: WalkProgress) -> None:
        """Refuse a progress that cannot be."""
        blocks, level, peak = progress
        if min(blocks, peak) < 0 or level > peak or (not blocks and (level or peak)):
            raise InvalidDocument("The progress of the walk does not fit together.")

    def for_alternative(self, progress: WalkProgress) -> bool:
        """Whether a walk that has stopped speaks for Q."""
        return progress.level >= self.upper or (progress.level > self.lower and progress.level > self.cut)


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


@dataclass(frozen=True)
class Verdict(Outcome):
    """A sequential test is decided.

    Guarantees: a function of the blocks' noisy sums, so it costs no privacy beyond theirs.

    Attributes:
        decision: "null" (the records look like P) or "alternative" (they look like Q).
        seen: records consumed; always the end of a block.
        evalue: evidence against P at that moment: whatever the rule to stop, at least 1/a with probability a at most.
        walk: the log e-values after each of the newest blocks.
        epsilon: privacy loss of the whole stream.
        simulated: True when randomness came from a generator of the caller's: such a verdict is not private.
        design: the plan, for :meth:`plot` and reports; no part of its documents.
    """

    decision: Decision
    seen: int
    evalue: float
    walk: tuple[float, ...] = field(default=(), compare=False, repr=False)

    KIND: ClassVar[str] = "Verdict"

    def __post_init__(self) -> None:
        if self.decision not in ("null", "alternative"):
            raise InvalidDocument("The verdict of the sequential test does not fit together.")

    @property
    def title(self) -> str:
        """The name, and whether it is simulated."""
        return "Verdict" if self.private else "Verdict, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """The decision, when it was reached, and the e-value."""
        says = "the null hypothesis P" if self.decision == "null" else "the alternative Q"
        return f"decided for {says} after {self.seen} records (e-value {self.evalue:.4g})"

    def facts(self) -> list[Fact]:
        """The decision, when it was reached, and the e-value."""
        return [
            Fact("decision", self.decision, "the records look like " + ("P" if self.decision == "null" else "Q")),
            Fact("seen", self.seen, "records, when it was decided"),
            Fact("evalue", Probability(self.evalue), "evidence against P, valid whenever one stops"),
            *self._ending(),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The walk of the log e-value between its boundaries, to the verdict; never the records."""
        if self.design is None:
            raise InvalidInput("This verdict was read from a document, which does not hold its plan. Draw run.plot().")
        from privatest import pictures

        return pictures.walk(self.design, self.walk, self.seen, self, ax, private=self.private)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SequentialPlan(StreamPlan):
    """Everything a sequential test needs besides its records: frozen, and restored from JSON.

    Guarantees: votes are logarithms of e-values, which is checked when the object is made, however it is made; all
    that is promised (``alpha``, ``beta``, the laws of the number of records) is computed from its own tables.

    Attributes:
        first, later: what the first block and the later ones release and vote; the same score and noise.
        rule: when it is decided.
        goal_alpha, goal_beta: the errors that were allowed.
        fixed_n: records that the test of a fixed number needs for the same errors.
        null, alternative: short descriptions.
        aim: whose expected number of records was made small.
        notion: what the whole stream meets.
        max_rows_per_unit: the most rows of one person that count; None: each record is a person of its own.
    """

    FORMAT: ClassVar[str] = "privatest/sequential-plan/1"
    KIND: ClassVar[str] = "plan of a sequential test"
    STATE: ClassVar[StateKind] = SEQUENTIAL

    first: SumBlocks
    later: SumBlocks
    rule: Boundaries
    goal_alpha: float
    goal_beta: float
    fixed_n: int
    null: str
    alternative: str
    aim: str = "larger"
    notion: Notion = field(metadata={"key": "budget"})
    max_rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        same = self.first.noise == self.later.noise and self.first.score.to_dict() == self.later.score.to_dict()
        if not same:
            raise InvalidDocument("The blocks of a sequential test must share one score and one noise.")
        super().__post_init__()
        means = [laws.mean for laws in self.laws]
        if not max(means) <= 1:
            raise InvalidDocument(
                f"The votes of this sequential test are no e-values: their mean under P may be {max(means):.6g}, more "
                "than 1."
            )

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"Sequential test of {self.null} against {self.alternative}"

    def __repr__(self) -> str:
        low, high = self.expected_n
        return (
            f"SequentialPlan({self.null} or {self.alternative}, {notion_words(self.privacy)}, alpha={self.alpha:.4g}, "
            f"beta={self.beta:.4g}, expected_n=({low:.4g}, {high:.4g}), fixed_n={self.fixed_n}, "
            f"schedule=({self.first.block}, {self.later.block}))"
        )

    def facts(self) -> list[Fact]:
        """The question and the promises."""
        sizes, ends = (self.first.block, self.later.block), (self.nats(self.rule.lower), self.nats(self.rule.upper))
        rows = self.max_rows_per_unit
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            cost_fact(self.privacy, "of the whole stream"),
            Fact("alpha", Probability(self.alpha), "type I error: alternative under P; computed on the stopped walk"),
            Fact("beta", Probability(self.beta), "type II error: null under Q; computed on the stopped walk"),
            Fact("expected_n", self.expected_n, "records till the verdict on average, under P and under Q"),
            Fact("quantile_n", self.quantile_n(0.9), "records that suffice with probability 0.9, under P and under Q"),
            Fact("fixed_n", self.fixed_n, "records that a test of a fixed number needs"),
            Fact("most", self.most, "records after which it is decided in any case"),
            Fact("schedule", sizes, "records in the first block and in each later one"),
            Fact("boundaries", ends, "of the logarithm of the e-value: null below, alternative above"),
            Fact("max_rows_per_unit", rows, "rows of one person that count in the whole stream"),
        ]

    @property
    def blocks(self) -> SumBlocks:  # type: ignore[override]
        """What the later blocks release."""
        return self.later

    @property
    def first_block(self) -> int:
        """Records in the first block."""
        return self.first.block

    @cached_property
    def laws(self) -> tuple[VoteLaws, VoteLaws]:
        """The laws of the votes of the first block and of a later one."""
        first = vote_laws(self.first.score, self.first)
        return first, first if self.later is self.first else vote_laws(self.later.score, self.later)

    @cached_property
    def walks(self) -> tuple[Stopped, Stopped]:
        """What becomes of the walk under P and under Q; of sets, under the worst laws of their scores."""
        first, later = self.laws
        null = stopped(first.null, later.null, self.rule)
        alternative = stopped(first.alternative, later.alternative, self.rule)
        if null is None or alternative is None:
            raise InvalidDocument("The walk of this sequential test takes too many blocks to be followed.")
        return null, alternative

    @property
    def alpha(self) -> float:
        """Probability of "alternative" under P."""
        return self.walks[0].alternative

    @property
    def beta(self) -> float:
        """Probability of "null" under Q."""
        return self.walks[1].null

    @property
    def expected_n(self) -> tuple[float, float]:
        """The mean number of records till the verdict, under P and under Q."""
        low, high = (self.first.block + self.later.block * (walk.blocks() - 1) for walk in self.walks)
        return low, high

    def quantile_n(self, share: float) -> tuple[int, int]:
        """Records within which it is decided with this probability, under P and under Q."""
        low, high = (self.records(walk.within(share)) for walk in self.walks)
        return low, high

    @property
    def growth(self) -> float:
        """What a record of the first block adds to the log e-value under Q on average (its e-power), in nats."""
        law = self.laws[0].alternative
        return self.nats(1) * float(law.masses @ (law.least + np.arange(len(law.masses)))) / self.first.block

    @property
    def most(self) -> int | None:
        """Records after which it is decided in any case; None where there is no such number."""
        if self.rule.upper == self.rule.lower + 1:
            return self.first.block
        return None if self.rule.last is None else self.records(self.rule.last)

    def nats(self, level: int) -> float:
        """A level of the walk, as the logarithm of the e-value.

        Args:
            level: of the walk, in its lattice's units.
        """
        return level / PARTS

    def votes(self, released: Sequence[int], before: int) -> list[int]:
        """The votes of blocks.

        Args:
            released: the release of each block, as an integer.
            before: number of blocks before the first of them.
        """
        if before or not released:
            return self.later.votes(released) if released else []
        rest = released[1:]
        return [*self.first.votes(released[:1]), *(self.later.votes(rest) if rest else [])]

    @property
    def result_class(self) -> type[Verdict]:
        """The class of the verdict."""
        return Verdict

    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:  # noqa: ARG002 - it begins but once
        """The fields of the verdict at the record ``end``.

        Args:
            progress: where the walk stands.
            origin: the record at which the walk began.
            end: the record after the last one of the block.
        """
        decision: Decision = "alternative" if self.rule.for_alternative(progress) else "null"
        return {"decision": decision, "seen": end, "evalue": math.exp(self.nats(progress.level))}

    def question(self) -> dict[str, Any]:
        """What the releases depend on besides the data, ready for JSON."""
        first = {name: part for name, part in self.first.question().items() if name not in ("kind", "score", "noise")}
        return self._question(first=first, later=self.later.question())

    def plot(self, ax: Axes | None = None) -> Axes:
        """How many records it takes till the verdict, under P and under Q."""
        from privatest import pictures

        return pictures.stopping(self, ax)
