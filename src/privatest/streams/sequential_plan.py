"""The design of a sequential test: what its blocks release, the boundaries, and all that is known before any data.

The walk of log e-values is decided at one of two boundaries, or at a hard stop. The law of the stopped walk is followed
block by block, exactly: what has not stopped is a vector on the integers between the boundaries, and a block convolves
it with the law of its vote.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from privatest.decision.run import Decision, cost_fact
from privatest.documents import check_known, integers_from_json, wholes_from_json
from privatest.errors import InvalidDocument, InvalidInput
from privatest.facts import Described, Fact, Probability
from privatest.laws.fourier import convolution
from privatest.numbers import Floats, Integers
from privatest.privacy import Notion, RandomSource, as_notion
from privatest.privacy.notions import notion_words
from privatest.streams.evalues import PARTS, VoteLaw, VoteLaws, vote_laws
from privatest.streams.state import Keeper
from privatest.streams.stream import OpenSum, SumBlocks, check_met, stream_privacy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


_NUMBERS = ("asked_alpha", "asked_beta")
_TEXTS = ("null", "alternative", "aim")


@dataclass(frozen=True)
class Verdict(Described):
    """A sequential test is decided.

    Guarantees: a function of the blocks' noisy sums, so it costs no privacy beyond theirs.

    Attributes:
        decision: "null" (the records look like P) or "alternative" (they look like Q).
        seen: records consumed; always the end of a block.
        evalue: evidence against P at that moment: whatever the rule to stop, at least 1/a with probability a at most.
        simulated: True when randomness came from a generator of the caller's; no part of its documents.
        walk, design: the log e-values after each of the newest blocks, and the plan, for :meth:`plot` and reports; no
            part of its documents.
    """

    decision: Decision
    seen: int
    evalue: float
    simulated: bool = field(default=False, compare=False, repr=False)
    walk: tuple[float, ...] = field(default=(), compare=False, repr=False)
    design: SequentialPlan | None = field(default=None, compare=False, repr=False)

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self.simulated

    @property
    def replayed(self) -> None:
        """Never: a block is released once, and what a state holds is the verdict itself."""
        return

    @property
    def title(self) -> str:
        """What this is."""
        return "Verdict" if self.private else "Verdict, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """Which, when, and how strongly."""
        says = "the null hypothesis P" if self.decision == "null" else "the alternative Q"
        return f"decided for {says} after {self.seen} records (e-value {self.evalue:.4g})"

    def facts(self) -> list[Fact]:
        """Which, when, and how strongly."""
        return [
            Fact("decision", self.decision, "the records look like " + ("P" if self.decision == "null" else "Q")),
            Fact("seen", self.seen, "records, when it was decided"),
            Fact("evalue", Probability(self.evalue), "evidence against P, valid whenever one stops"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self.values()

    def plot(self, ax: Axes | None = None) -> Axes:
        """The walk of the log e-value between its boundaries, to the verdict; never the records."""
        if self.design is None:
            raise InvalidInput("This verdict was read from a document, which does not hold its walk. Draw run.plot().")
        from privatest import pictures

        return pictures.walk(self.design, self.walk, self.seen, self, ax, private=self.private)


@dataclass(frozen=True, eq=False, repr=False)
class SequentialPlan(Described):
    """Everything a sequential test needs besides its progress; restores from plain JSON values.

    Guarantees: votes are logarithms of e-values, which is checked when the object is made, however it is made; all
    that is promised (``alpha``, ``beta``, the laws of the number of records) is computed from its own tables.

    Attributes:
        first, later: what the first block and the later ones release and vote; the same score and noise.
        rule: when it is decided.
        asked_alpha, asked_beta: what was asked for.
        aim: whose expected number of records was made small.
        fixed_n: records that the test of a fixed number needs for the same errors.
        null, alternative: short descriptions.
        max_rows_per_unit: the most rows of one person that count; None: each record is a person of its own.
        notion: what the whole stream meets, where that is another notion than epsilon.
    """

    first: SumBlocks
    later: SumBlocks
    rule: Boundaries
    asked_alpha: float
    asked_beta: float
    fixed_n: int
    null: str
    alternative: str
    aim: str = "larger"
    max_rows_per_unit: int | None = None
    notion: Notion | None = None
    keeper: ClassVar[Keeper] = Keeper("sequential test", "Sequential", "privatest/sequential/1")

    def __post_init__(self) -> None:
        same = self.first.noise == self.later.noise and self.first.score.to_dict() == self.later.score.to_dict()
        if not same:
            raise InvalidDocument("The blocks of a sequential test must share one score and one noise.")
        check_met(self.later, self.notion, self.max_rows_per_unit or 1)
        means = [laws.mean for laws in self.laws]
        if not max(means) <= 1:
            raise InvalidDocument(
                f"The votes of this sequential test are no e-values: their mean under P may be {max(means):.6g}, more "
                "than 1."
            )

    @property
    def title(self) -> str:
        """Names the question."""
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
    def blocks(self) -> SumBlocks:
        """What the later blocks release."""
        return self.later

    @property
    def block(self) -> int:
        """Records in a later block."""
        return self.later.block

    @property
    def privacy(self) -> Notion:
        """What the whole stream meets: what a row costs, as often as a person may have one."""
        return stream_privacy(self.later, self.notion, self.max_rows_per_unit or 1)

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole stream; infinite where another notion bounds none."""
        return float(self.privacy.epsilon)

    @cached_property
    def laws(self) -> tuple[VoteLaws, VoteLaws]:
        """Of the votes of the first block and of a later one."""
        first = vote_laws(self.first.score, self.first)
        return first, first if self.later is self.first else vote_laws(self.later.score, self.later)

    @cached_property
    def walks(self) -> tuple[Stopped, Stopped]:
        """What becomes of the walk under P and under Q; of sets, under the worst laws of their scores."""
        first, later = self.laws
        found = [
            stopped(*laws, self.rule)
            for laws in ((first.null, later.null), (first.alternative, later.alternative))
        ]  # fmt: skip
        if found[0] is None or found[1] is None:
            raise InvalidDocument("The walk of this sequential test takes too many blocks to be followed.")
        return found[0], found[1]

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

    def opened(self, source: RandomSource) -> OpenSum:
        """An empty first block.

        Args:
            source: where randomness comes from.
        """
        return OpenSum(self.later, source, self.first.block)

    def records(self, blocks: int) -> int:
        """Records in the first so many blocks.

        Args:
            blocks: how many.
        """
        return self.first.block + (blocks - 1) * self.later.block if blocks else 0

    def votes(self, released: Integers, before: int) -> Integers:
        """The votes of blocks that so many blocks came before.

        Args:
            released: noisy sums, one for each block.
            before: how many blocks came before the first of them.
        """
        votes = self.later.votes(released)
        if not before and len(votes):
            votes[:1] = self.first.votes(released[:1])
        return votes

    def few_votes(self, released: list[int], before: int) -> list[int]:
        """The votes of a few, without the price of arrays.

        Args:
            released: noisy sums, one for each block.
            before: how many blocks came before the first of them.
        """
        first = 0 if before else 1
        return [*map(self.first.vote, released[:first]), *map(self.later.vote, released[first:])]

    @property
    def quiet(self) -> Callable[[WalkProgress], int]:
        """So many further blocks bring no verdict whatever they release: none, any may."""
        return lambda _: 0

    def raised(self, progress: WalkProgress, origin: int, end: int, simulated: bool) -> Verdict:  # noqa: ARG002
        """The verdict at the record ``end``.

        Args:
            progress: where the walk stands.
            origin: the record at which the stream began.
            end: the record at which the verdict fell.
            simulated: whether the randomness was a caller's.
        """
        decision: Decision = "alternative" if self.rule.for_alternative(progress) else "null"
        return Verdict(decision, end, math.exp(self.nats(progress.level)), simulated)

    def raised_from_dict(self, document: dict[str, Any], simulated: bool) -> Verdict:
        """The verdict that its ``to_dict`` wrote.

        Args:
            simulated: whether the randomness was a caller's.
        """
        if document["decision"] not in ("null", "alternative"):
            raise InvalidDocument("The verdict of the sequential test does not fit together.")
        return Verdict(**document, simulated=simulated)

    def releases(self) -> dict[str, Any]:
        """What the releases depend on besides the data: plain JSON values."""
        first = {name: value for name, value in self.first.to_dict().items() if name not in ("kind", "score", "noise")}
        rows = {} if self.max_rows_per_unit is None else {"max_rows_per_unit": self.max_rows_per_unit}
        notion = {} if self.notion is None else {"privacy": self.notion.text}
        return {"first": first, "later": self.later.to_dict(), "rule": self.rule.to_dict(), **rows, **notion}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**self.releases(), **{name: getattr(self, name) for name in (*_NUMBERS, *_TEXTS, "fixed_n")}}

    @cached_property
    def text(self) -> str:
        """JSON text of :meth:`to_dict`, always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> SequentialPlan:
        """What :meth:`to_dict` wrote; refuses a plan that is not private, or whose votes are no e-values."""
        if document["later"]["kind"] != SumBlocks.kind:
            raise InvalidDocument("The blocks of a sequential test must be sums.")
        later = SumBlocks.from_dict(document["later"])
        written = document["first"]
        sizes = wholes_from_json(written, "block", "bin_width", least=1) | wholes_from_json(written, "first")
        first = SumBlocks(later.score, later.noise, table=integers_from_json(written["votes"]), **sizes)
        numbers = {name: float(document[name]) for name in _NUMBERS}
        texts = {name: document[name] for name in _TEXTS}
        if not all(isinstance(text, str) for text in texts.values()):
            raise InvalidDocument("The design of the sequential test does not fit together.")
        rows = wholes_from_json(document, "max_rows_per_unit", least=1) if "max_rows_per_unit" in document else {}
        fixed = wholes_from_json(document, "fixed_n", least=1)
        rule = Boundaries.from_dict(document["rule"])
        notion = as_notion(document["privacy"]) if "privacy" in document else None
        settings: dict[str, Any] = {**numbers, **texts, **rows, **fixed}
        found = cls(first, later, rule, **settings, notion=notion)
        check_known(document, found.to_dict(), "the design of the sequential test")
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """How many records it takes till the verdict, under P and under Q."""
        from privatest import pictures

        return pictures.stopping(self, ax)
