"""The plan of a sequential test, with its boundaries and exact error rates, and its verdict.

The walk of log e-values is decided at one of two boundaries, or at a hard stop. The law of the stopped walk is computed
exactly, block by block: the probabilities of the integers between the boundaries are a vector, and each block convolves
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
from privatest.streams.saved_state import SEQUENTIAL, StateKind
from privatest.streams.stream import Rule, StreamPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Verdicts = Literal["null", "alternative"]


MOST_BLOCKS = 20_000
"""The largest number of blocks for which a walk is computed."""
NEGLIGIBLE = 1e-13
"""A walk is computed until this probability is left between the boundaries, which counts as an error of both kinds."""
# Up to this number of products a convolution is faster without transforms.
_SHORT = 1 << 20


class WalkProgress(NamedTuple):
    """The number of blocks so far, the sum of their votes, and the largest such sum after any block, at least 0."""

    blocks: int = 0
    level: int = 0
    peak: int = 0


@dataclass(frozen=True)
class Boundaries(Rule):
    """The rule that decides for P once the walk is at ``lower`` or below, and for Q once it is at ``upper`` or above.

    After block number ``last`` it decides in any case, for Q if the walk is above ``cut``.
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
        """Raise InvalidDocument for a progress that is impossible."""
        blocks, level, peak = progress
        if min(blocks, peak) < 0 or level > peak or (not blocks and (level or peak)):
            raise InvalidDocument("The progress of the walk does not fit together.")

    def for_alternative(self, progress: WalkProgress) -> bool:
        """Return whether a walk that has stopped is decided for Q."""
        return progress.level >= self.upper or (progress.level > self.lower and progress.level > self.cut)


class Stopped(NamedTuple):
    """The law of a stopped walk.

    Attributes:
        alternative, null: the probabilities of the verdicts, each including the probability that was not computed.
        stops: the probabilities of stopping after block 1, 2, ...
    """

    alternative: float
    null: float
    stops: Floats

    def blocks(self) -> float:
        """Return the mean number of blocks."""
        return float(self.stops @ np.arange(1, len(self.stops) + 1)) / float(self.stops.sum())

    def within(self, share: float) -> int:
        """Return the smallest number of blocks within which the walk stops with at least this probability."""
        reached = np.cumsum(self.stops) >= share * float(self.stops.sum()) * (1 - 1e-12)
        return int(np.argmax(reached)) + 1


def stopped(first: VoteLaw, later: VoteLaw, rule: Boundaries, negligible: float = NEGLIGIBLE) -> Stopped | None:
    """Return the law of the stopped walk of independent votes, of which the first may have a law of its own.

    The result is None if the walk takes more than ``MOST_BLOCKS`` blocks.
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
    """Return whether the walk ends with this verdict with probability at most ``limit``.

    The walk is computed as far as that takes. The result is False if it takes more than ``MOST_BLOCKS`` blocks.
    """
    probability = 0.0
    for above, below, alive in _outcomes(first, later, rule):
        probability += above if verdict == "alternative" else below
        if probability > limit:
            return False
        if probability + alive <= limit:
            return True
    return False


def _outcomes(first: VoteLaw, later: VoteLaw, rule: Boundaries) -> Iterator[tuple[float, float, float]]:
    """Yield for each block the probabilities of the two verdicts after it, and of going on."""
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
    """Return the law with longer jumps cut to the reach: from every place inside they lead out all the same."""
    return VoteLaw.of(np.clip(law.least + np.arange(len(law.masses)), -reach, reach), law.masses)


def _above(law: VoteLaw, value: int) -> float:
    return float(law.masses[max(value - law.least, 0) :].sum())


def _below(law: VoteLaw, value: int) -> float:
    return float(law.masses[: max(value - law.least + 1, 0)].sum())


def _between(law: VoteLaw, start: int, count: int) -> Floats:
    """Return the masses of ``count`` integers from ``start`` on."""
    masses = np.zeros(count)
    low, high = max(start, law.least), min(start + count, law.least + len(law.masses))
    if low < high:
        masses[low - start : high - start] = law.masses[low - law.least : high - law.least]
    return masses


@dataclass(frozen=True)
class Verdict(Outcome):
    """The verdict of a sequential test.

    Guarantees: it is a function of the blocks' noisy sums, so it costs no privacy beyond theirs.

    Attributes:
        decision: "null" (the records look like P) or "alternative" (they look like Q).
        seen: number of records consumed, the end of a block.
        evalue: evidence against P at that moment: under P it is at least 1/a with probability at most a, for any
            stopping rule.
        walk: the log e-values after each of the newest blocks.
        epsilon: privacy loss of the whole stream.
        simulated: whether the caller's generator drew the noise. Such a verdict is not private.
        design: the plan, for :meth:`plot` and reports; not part of documents.
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
        """The decision, the number of records, and the e-value."""
        says = "the null hypothesis P" if self.decision == "null" else "the alternative Q"
        return f"decided for {says} after {self.seen} records (e-value {self.evalue:.4g})"

    def facts(self) -> list[Fact]:
        """Return the decision, the number of records, and the e-value."""
        like = "P rather than Q" if self.decision == "null" else "Q rather than P"
        return [
            Fact("decision", self.decision, f"the records look like {like}; that they come from P or Q is not checked"),
            Fact("seen", self.seen, "records, when it was decided"),
            Fact("evalue", Probability(self.evalue), "evidence against P, valid whenever one stops"),
            *self._ending(),
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the walk of the log e-value between its boundaries, to the verdict; never the records."""
        if self.design is None:
            raise InvalidInput("This verdict was read from a document, which does not hold its plan. Use run.plot().")
        from privatest import pictures

        return pictures.walk(self.design, self.walk, self.seen, self, ax, private=self.private)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SequentialPlan(StreamPlan):
    """Everything that a sequential test needs besides its records.

    Guarantees: votes are logarithms of e-values, which is checked whenever an object is made, also from a document.
    ``alpha``, ``beta`` and the laws of the number of records are computed from the plan's own tables.

    Attributes:
        first, later: the releases and votes of the first block and of the later ones, with the same score and noise.
        rule: the rule by which the verdict follows.
        goal_alpha, goal_beta: the largest errors that were allowed.
        fixed_n: number of records of a test of a fixed number with the same errors.
        null, alternative: short descriptions.
        aim: the hypothesis under which the expected number of records was made small, or "larger".
        notion: the notion that the whole stream meets.
        max_rows_per_unit: the largest number of rows of one person that count; None: each record is a person of its
            own.
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
                f"The votes of this sequential test are not e-values: their mean under P may be {max(means):.6g}, more "
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
        """Return the question and the guarantees."""
        sizes, ends = (self.first.block, self.later.block), (self.nats(self.rule.lower), self.nats(self.rule.upper))
        rows = self.max_rows_per_unit
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            cost_fact(self.privacy, "of the whole stream"),
            Fact("alpha", Probability(self.alpha), "type I error: alternative under P; exact"),
            Fact("beta", Probability(self.beta), "type II error: null under Q; exact"),
            Fact("expected_n", self.expected_n, "records until the verdict on average, under P and under Q"),
            Fact("quantile_n", self.quantile_n(0.9), "records that suffice with probability 0.9, under P and under Q"),
            Fact("fixed_n", self.fixed_n, "records that a test of a fixed number needs"),
            Fact("most", self.most, "records after which it is decided in any case"),
            Fact("schedule", sizes, "records in the first block and in each later one"),
            Fact("boundaries", ends, "of the logarithm of the e-value: null below, alternative above"),
            Fact("max_rows_per_unit", rows, "rows of one person that count in the whole stream"),
        ]

    @property
    def blocks(self) -> SumBlocks:  # type: ignore[override]
        """The releases and votes of the later blocks."""
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
        """The laws of the stopped walk under P and under Q; for sets, under the worst laws of their scores."""
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
        """The mean number of records until the verdict, under P and under Q."""
        low, high = (self.first.block + self.later.block * (walk.blocks() - 1) for walk in self.walks)
        return low, high

    def quantile_n(self, share: float) -> tuple[int, int]:
        """Return the numbers of records within which the verdict falls with this probability, under P and under Q."""
        low, high = (self.records(walk.within(share)) for walk in self.walks)
        return low, high

    @property
    def growth(self) -> float:
        """The mean growth of the log e-value per record of the first block under Q (its e-power), in nats."""
        law = self.laws[0].alternative
        return self.nats(1) * float(law.masses @ (law.least + np.arange(len(law.masses)))) / self.first.block

    @property
    def most(self) -> int | None:
        """The number of records after which the test decides in any case; None if there is none."""
        if self.rule.upper == self.rule.lower + 1:
            return self.first.block
        return None if self.rule.last is None else self.records(self.rule.last)

    def nats(self, level: int) -> float:
        """Return the logarithm of the e-value at a level of the walk.

        Args:
            level: the level in units of the walk's lattice.
        """
        return level / PARTS

    def votes(self, released: Sequence[int], before: int) -> list[int]:
        """Return the votes of blocks.

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

    def result(self, progress: Any, origin: int, end: int) -> dict[str, Any]:  # noqa: ARG002 - it begins only once
        """Return the fields of the verdict at the record ``end``.

        Args:
            progress: the progress of the rule.
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
        """Draw the number of records until the verdict, under P and under Q."""
        from privatest import pictures

        return pictures.stopping(self, ax)
