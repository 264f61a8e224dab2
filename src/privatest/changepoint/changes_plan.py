r"""When did it change, and back? Several changes between P and Q: planned, and the whole of it in one call.

The blocks of each regime are found by penalised dynamic programming on what the blocks released. Each block votes
with an integer g_j, positive where it speaks for Q. Of all ways to label the blocks P or Q, the first stretch being P,
the one with the largest

.. math:: \sum_{j:\, \text{labelled } Q} g_j - \lambda \cdot \text{(number of changes)}

is taken (Viterbi's recursion, in whole numbers; of equal ones the one with fewer changes). With Lindley's walk
:math:`W_j = \max(W_{j-1} + g_j, 0)` some change is reported exactly when :math:`W_j > 2 \lambda` for some j, or
:math:`W_m > \lambda` at the end: a Markov chain, so that the false-alarm probability is computed. Arguments: proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.changepoint.blocks import LAW_ERROR, BlockDesign, BlockDetector, Chart, decay_rate
from privatest.changepoint.change_point import FALSE_ALARM, MOST_SUMS, ChangePoints, PlanInTime, PublicOrder
from privatest.changepoint.detectors import BlockTuner, Clamp, law_of, row_from_json
from privatest.charge import Draw
from privatest.decision.run import cost_fact, hidden_fact
from privatest.documents import (
    integer_from_json,
    number_from_json,
    numbers_from_json,
    texts_from_json,
    wholes_from_json,
)
from privatest.engines.records import Need, Records
from privatest.engines.sources import open_for
from privatest.errors import Infeasible, InvalidData
from privatest.facts import Fact
from privatest.hypotheses.parse import pair_or_question
from privatest.laws.block_laws import BlockLaws
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Notion, Pure, RandomSource, canonical_noise, make_notion
from privatest.privacy.notions import (
    budget_word,
    notion_from_settings,
    notion_settings,
    notion_to_json,
    notion_words,
    per_row,
)
from privatest.scores import Cells, Score
from privatest.unanswered import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Thresholds beyond this make chains of more states than is worth while.
_LARGEST_PENALTY = 1_500
# A law that moves by less is that of all later blocks.
_SETTLED = 1e-14
# Blocks on either side of a change that are looked at for its accuracy.
_MOST_REACH = 2_000


@dataclass(frozen=True, eq=False)
class Switches:
    """Blocks that vote, and the penalty of a change.

    Attributes:
        steps: the integer vote of each outcome of a block, positive for the new regime.
        old, new: probabilities of the outcomes when all records of a block are old, or all are new.
        penalty: what a change costs, in votes.
    """

    steps: Integers
    old: Floats
    new: Floats
    penalty: int

    @classmethod
    def calibrated(cls, steps: Integers, old: Floats, new: Floats, target: float, blocks: int) -> Switches | None:
        """The smallest penalty with a false-alarm probability of at most ``target`` over ``blocks`` blocks.

        None where none has, or the votes of the two regimes do not differ.
        """
        if float(steps @ old) >= 0 or float(steps @ new) <= 0:
            return None
        high = min(max(int(math.log(max(blocks, 2) / target) / decay_rate(steps, old) / 2), 1), _LARGEST_PENALTY)
        low = -1
        # Invariant: the penalty low is too small (or none), and high suffices once the loop ends.
        while cls(steps, old, new, high).false_alarm(blocks) > target:
            if high >= _LARGEST_PENALTY:
                return None
            low, high = high, min(high + high // 2 + 1, _LARGEST_PENALTY)
        while high - low > 1:
            middle = (low + high) // 2
            enough = cls(steps, old, new, middle).false_alarm(blocks) <= target
            low, high = (low, middle) if enough else (middle, high)
        return cls(steps, old, new, high)

    def false_alarm(self, blocks: int) -> float:
        """Bound on Pr[some change is reported] when all of so many blocks are old."""
        chain = self._rising._chain(self.old)
        state, survived = self._rising._from_zero(), 1.0  # the law of W among the walks that have not passed yet
        for left in range(blocks, 0, -1):
            after = state @ chain
            share = float(after.sum())
            after /= share
            settled = float(np.abs(after - state).max()) < _SETTLED
            state = after
            if settled:  # from here on each block takes the same share
                survived *= share**left
                break
            survived *= share
        quiet = survived * float(state[: self.penalty + 1].sum())
        return min(max(1.0 - quiet, 0.0) + LAW_ERROR * blocks, 1.0)

    def missed(self, blocks: int) -> float:
        """Bound on Pr[no change of its direction is reported within so many blocks on either side of a true one].

        If some run of old blocks beside it votes for P by more than two penalties, the best labels are not Q on all of
        the run; likewise on the other side: in between they change, in the right direction.
        """
        known = self._known
        while len(known) <= blocks and (len(known) < 2 or known[-1] > 1e-9):
            for row, (state, chain) in enumerate(self._walks):
                self._walks[row] = state @ chain, chain
            known.append(min(sum(float(state.sum()) for state, _ in self._walks) + 2 * LAW_ERROR * len(known), 1.0))
        return known[min(blocks, len(known) - 1)]

    def reach(self, beta: float) -> int | None:
        """The fewest blocks on either side with :meth:`missed` at most beta; None where there are too many."""
        return next((blocks for blocks in range(1, _MOST_REACH) if self.missed(blocks) <= beta), None)

    def labels(self, outcomes: Integers) -> Integers:
        """The best labels of the blocks, 0 for P and 1 for Q."""
        votes, penalty = self.steps[outcomes].tolist(), self.penalty
        old, new = 0, -penalty  # the best of each last label
        came = np.zeros((len(votes), 2), dtype=np.int8)
        for j, vote in enumerate(votes):
            if j:
                stay, enter, leave, hold = old, old - penalty, new - penalty, new
                old, new = (stay, hold) if stay >= leave else (leave, hold)
                came[j] = (0 if stay >= leave else 1, 1 if hold >= enter else 0)
                new = max(hold, enter)
            new += vote
        found = np.zeros(len(votes), dtype=np.int64)
        label = 1 if new > old else 0
        for j in range(len(votes) - 1, -1, -1):
            found[j] = label
            label = int(came[j, label])
        return found

    @property
    def _rising(self) -> Chart:
        return Chart(self.steps, self.old, self.new, 2 * self.penalty)

    @cached_property
    def _known(self) -> list[float]:
        return [1.0]

    @cached_property
    def _walks(self) -> list[tuple[Floats, Floats]]:
        """The walk up on new blocks and the walk down on old ones, each until it passes two penalties."""
        falling = Chart(-self.steps, self.new, self.old, 2 * self.penalty)
        return [(chart._from_zero(), chart._chain(chart.new)) for chart in (self._rising, falling)]


FORMAT = "privatest/changes/1"
# Blocks to try, in units of the block that tells P from Q by three deviations.
_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4)
# Votes are log-likelihood ratios in sixteenths of a nat.
_UNIT, _LARGEST_VOTE = 1 / 16, 40.0


class _PublicOrders(PublicOrder):
    """The values of the column ``order`` at all indices that were released."""

    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:  # noqa: ARG002 - no draw
        """The change points, with the values."""
        found: ChangePoints = outcome
        values = records().order_values([min(index, found.n - 1) for index in found.indices])
        return replace(found, order_values=tuple(values))


@dataclass(frozen=True, eq=False)
class ChangesPlan(PlanInTime[ChangePoints]):
    """Blocks, votes and a penalty: ``run(data)`` asks where data in order of time changed, as often as they did.

    Guarantees: as stated for :class:`ChangePoints`.

    Attributes:
        accuracy: a true change has a reported one of its direction within so many records, with probability at least 1
            - beta, if it is at least ``spacing`` records from all others and from both ends.
        epsilon, beta: as asked; epsilon is infinite where another notion of privacy bounds no privacy loss.
        n: number of records.
        block: records in a block.
        clamp: the least and the most that one record's log-likelihood ratio counts.
        false_alarm: bound on the probability that any change is reported when there is none, all records being of P.
        penalty: what the votes of blocks must outweigh for each change, in nats.
        null, alternative: short descriptions.
        max_rows_per_unit: the most rows of one person that count, where a run names the ``unit``.
        spacing: records between changes, and to both ends, from which on the accuracy holds.
        notion: what a run meets, where that is another notion than epsilon.
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "plan of several changes"
    _PUBLIC: ClassVar[type[PublicOrder]] = _PublicOrders

    accuracy: int
    spacing: int
    epsilon: float
    beta: float
    n: int
    block: int
    clamp: tuple[float, float]
    false_alarm: float
    penalty: float
    null: str
    alternative: str
    max_rows_per_unit: int
    _score: Score = field(repr=False, compare=False)
    _each: Notion = field(repr=False, compare=False)
    _named_laws: bool = field(repr=False, compare=False)
    _worst: bool = field(repr=False, compare=False)
    notion: Notion | None = None

    @property
    def privacy(self) -> Notion:
        """The notion of stability that every run meets."""
        return self.notion or Pure(self._each.exact[0] * self.max_rows_per_unit)

    @property
    def outcome(self) -> type[ChangePoints]:
        """Change points."""
        return ChangePoints

    @cached_property
    def _blocks(self) -> BlockDetector:
        design = BlockDesign(law_of(self._score), canonical_noise(self._each, self._score.width), self.block)
        return BlockDetector(self._score, design)

    @cached_property
    def _switches(self) -> Switches:
        laws = self._blocks.design.laws
        return Switches(votes_of(laws, monotone=self._worst), laws.laws[-1], laws.laws[0], round(self.penalty / _UNIT))

    def question(self) -> dict[str, Any]:
        """The plan's settings, and the score where the descriptions of P and Q leave it open."""
        return {"changes": self._settings(), **({} if self._named_laws else {"score": self._score.to_dict()})}

    @property
    def record_cells(self) -> Cells:
        """Those of the score."""
        return self._score.cells

    def check(self, records: Records) -> None:
        """Number and type; the sums refuse ties."""
        if records.count() != self.n:
            raise InvalidData(
                f"The data have {records.count()} records, the plan is for n={self.n}. Plan with n={records.count()}."
            )
        records.check(self._score)
        _ = self._switches

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Twice the noisy sums of the blocks."""
        return self._blocks.draw(records, self.n, source)

    def release(self, draw: Sequence[int], *, simulated: bool = False) -> ChangePoints:
        """The changes, and the noisy sums they were found from.

        Args:
            draw: twice the noisy sums of the blocks.
            simulated: whether a generator of the caller's drew them.
        """
        released = np.array(draw, dtype=np.int64)
        outcomes = self._blocks.design.laws.bins(np.zeros(len(released), dtype=np.int64), released)
        indices, first = self.locate(outcomes)
        states = tuple(("null", "alternative")[(first + i) % 2] for i in range(len(indices) + 1))
        return ChangePoints(
            indices=indices,
            states=states,
            accuracy=self.accuracy,
            spacing=self.spacing,
            beta=self.beta,
            epsilon=self.epsilon,
            n=self.n,
            false_alarm=self.false_alarm,
            block=self.block,
            simulated=simulated,
            sums=self._blocks.nats(released) if len(released) <= MOST_SUMS else None,
            privacy=None if self.notion is None else self.notion.text,
            misfits=self._blocks.misfits(released, self.n, indices, states, 2 * self.accuracy),
        )

    def locate(self, outcomes: Integers) -> tuple[tuple[int, ...], int]:
        """Where the records change, from the blocks' outcomes, and the first label (0: P).

        Each change is placed by the median of the posterior given the blocks between the middles of the stretches
        beside it, at most half a block from where the labels change. It stays between its neighbours.

        Args:
            outcomes: what the blocks released, in their order.
        """
        labels = self._switches.labels(outcomes)
        turns = (np.flatnonzero(np.diff(labels)) + 1).tolist()
        start, block, design = self._blocks.start(self.n), self.block, self._blocks.design
        found: list[int] = []
        for place, turn in enumerate(turns):
            before = turns[place - 1] if place else 0
            after = turns[place + 1] if place + 1 < len(turns) else len(labels)
            low, high = (before + turn) // 2, (turn + after + 1) // 2
            near = outcomes[low:high]
            inside = design.locate(near) if labels[turn] else len(near) * block - design.locate(near[::-1])
            index = low * block + min(max(inside, (turn - low) * block - block // 2), (turn - low) * block + block // 2)
            found.append(start + max(index, found[-1] - start + 1 if found else 0))
        return tuple(found), int(labels[0])

    def plot(self, ax: Axes | None = None) -> Axes:
        """How probably a change is missed or misplaced by more than a distance, at most."""
        from privatest import pictures

        reach = max(2 * self.accuracy // self.block, 4)
        return pictures.changes_plan(self, [self._switches.missed(blocks) for blocks in range(reach)], ax)

    @property
    def title(self) -> str:
        """What this is."""
        return f"Changes between {self.null} and {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question, the settings and the promises."""
        rows = self.max_rows_per_unit if self.max_rows_per_unit > 1 else None
        near = f"within so many records with probability {1 - self.beta:g}, for each change"
        return [
            Fact("null", self.null, "the regime at the start, and after every second change"),
            Fact("alternative", self.alternative, "the other regime"),
            cost_fact(self.privacy, "of the whole answer"),
            Fact("n", self.n, "records, public"),
            Fact("accuracy", self.accuracy, near),
            Fact("spacing", self.spacing, "records from any other change and from both ends, for that"),
            Fact("beta", self.beta, "probability with which a change may be missed or further off"),
            Fact("false_alarm", self.false_alarm, "probability of any change where there is none, at most"),
            Fact("block", self.block, "records in a block"),
            Fact("clamp", self.clamp, "least and most of one record, in nats"),
            Fact("penalty", self.penalty, "what blocks must outweigh for each change, in nats"),
            Fact("max_rows_per_unit", rows, "rows of one person that count, where unit= names the person"),
            hidden_fact("replace", persons=self.max_rows_per_unit > 1),
        ]

    def _settings(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
        values |= notion_settings(self.epsilon, values.pop("notion"))
        return {**values, "clamp": list(self.clamp)}

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the plan exactly."""
        hidden = {"score": self._score.to_dict(), "budget": notion_to_json(self._each)}
        return {"format": FORMAT, **self._settings(), **hidden, "named": self._named_laws, "worst": self._worst}

    @classmethod
    def _read(cls, document: dict[str, Any]) -> ChangesPlan:
        numbers = {name: number_from_json(document[name]) for name in ("beta", "false_alarm", "penalty")}
        rows = integer_from_json(document["max_rows_per_unit"], 1)
        whole = {**notion_from_settings(document), "max_rows_per_unit": rows}
        low, high = numbers_from_json(document["clamp"]).tolist()
        settings: dict[str, Any] = {
            **texts_from_json(document, "null", "alternative"),
            **wholes_from_json(document, "accuracy", "spacing", "block", "n", least=1),
            **numbers,
            **whole,
        }
        return cls(
            **settings,
            clamp=(low, high),
            _score=Score.from_dict(document["score"]),
            _each=row_from_json(document["budget"], whole),
            _named_laws=document["named"] is True,
            _worst=document["worst"] is True,
        )

    def __hash__(self) -> int:
        return hash((self.accuracy, self.epsilon, self.block, self.n, self.null, self.alternative))


def votes_of(laws: BlockLaws, *, monotone: bool) -> Integers:
    """Log-likelihood ratios of new against old as integers; of sets such that no larger sum votes more for Q."""
    nats: Floats = np.clip(laws.log_laws[0] - laws.log_laws[-1], -_LARGEST_VOTE, _LARGEST_VOTE)
    votes: Integers = np.rint(nats / _UNIT).astype(np.int64)
    return np.minimum.accumulate(votes) if monotone else votes


def design_changes(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int,
    beta: float = 0.1,
    false_alarm: float = FALSE_ALARM,
    max_rows_per_unit: int = 1,
) -> ChangesPlan:
    """The plan that :func:`detect_changes` would run, and how well it does. No data are needed.

    Args:
        null, alternative: the two regimes, in any of the forms that :func:`privatest.design` takes; the series starts
            with the null.
        epsilon: privacy loss of the whole answer, however many changes there are.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        n: number of records.
        beta: probability with which a change may be missed, or be further off than ``accuracy``.
        false_alarm: report any change at all in a series of the null alone with at most this probability.
        max_rows_per_unit: the most rows of one person that count, where the run names a ``unit``.

    >>> plan = design_changes("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, n=1000)
    >>> plan.accuracy <= 60, plan.false_alarm <= 0.05, plan.spacing > plan.accuracy
    (True, True, True)
    """
    budget = make_notion(epsilon, privacy)
    rows = numbers.positive_integer(max_rows_per_unit=max_rows_per_unit)
    n, beta = numbers.positive_integer(n=n), numbers.probability(beta=beta)
    target = numbers.probability(false_alarm=false_alarm)
    asked = pair_or_question(null, alternative)
    each = per_row(budget, rows)
    problem = BlockTuner.of(asked, each)
    worst = problem.question is not None
    best: tuple[int, Clamp, int] | None = None
    for clamp, block in _candidates(problem, n):
        law = problem.rough_law(clamp)
        laws = BlockLaws.of(law, canonical_noise(each, law.width), block, (0, block))
        switches = _calibrated(laws, target, n, worst)
        reach = None if switches is None else switches.reach(beta)
        if reach is not None and (best is None or reach * block + block // 2 < best[0]):
            best = reach * block + block // 2, clamp, block
    if best is None or 2 * best[0] > n:
        name = budget_word(budget)
        needed = "" if best is None else f" At this {name} about {2 * best[0]} records are needed."
        raise Infeasible(
            f"false_alarm={target:g} and beta={beta:g} cannot be had with n={n} records at {notion_words(budget)}: "
            f"a change in the middle would be missed or misplaced too often.{needed} Use more records, or a larger "
            f"{name}, beta or false_alarm."
        )
    _, clamp, block = best
    score = problem.score(clamp)
    laws = BlockDesign(law_of(score), canonical_noise(each, score.width), block).laws
    switches = _calibrated(laws, target, n, worst)
    reach = None if switches is None else switches.reach(beta)
    assert switches is not None, "the rough law of the score was calibrated"
    assert reach is not None, "the rough law of the score had a reach"
    return ChangesPlan(
        accuracy=reach * block + block // 2,
        spacing=(reach + 2) * block,
        epsilon=budget.epsilon,
        beta=beta,
        n=n,
        block=block,
        clamp=score.bounds(),
        false_alarm=switches.false_alarm(max(n // block, 1)),
        penalty=switches.penalty * _UNIT,
        null=asked.null.describe(),
        alternative=asked.alternative.describe(),
        max_rows_per_unit=rows,
        _score=score,
        _each=each,
        _named_laws=asked.null.named and asked.alternative.named,
        _worst=worst,
        notion=None if isinstance(budget, Pure) else budget,
    )


def _candidates(problem: BlockTuner, n: int) -> Iterator[tuple[Clamp, int]]:
    """Clamps and block lengths to try."""
    for clamp in dict.fromkeys((*problem.clamps[:2], problem.paper)):
        for factor in _FACTORS:
            size = factor * problem.natural_block(clamp)
            if size <= n / 4:
                yield clamp, max(round(size), 1)


def _calibrated(laws: BlockLaws, target: float, n: int, worst: bool) -> Switches | None:
    votes = votes_of(laws, monotone=worst)
    return Switches.calibrated(votes, laws.laws[-1], laws.laws[0], target, max(n // laws.block, 1))


@known_arguments
def detect_changes(
    data: Any,
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    beta: float = 0.1,
    false_alarm: float = FALSE_ALARM,
    max_rows_per_unit: int | None = None,
    column: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    public_order: bool = False,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
) -> ChangePoints:
    """Where data in order of time changed from P (``null``) to Q (``alternative``), back to P, and so on.

    As many changes are reported as there seem to be; none is an answer, too. The whole costs its price once. What is
    guaranteed: :class:`ChangePoints`.

    Args:
        data, column, unit, order, public_order, odd_epsilon: as for :func:`detect_change`.
        ledger, dataset, request, rng: as for :func:`detect_change`.
        null, alternative, epsilon, privacy, beta, false_alarm: as for :func:`design_changes`.
        max_rows_per_unit: the most rows of one person that count, 1 if only ``unit`` is given.

    >>> data = [0, 0, 1, 0, 0] * 60 + [1, 1, 1, 0, 1] * 60 + [0, 0, 1, 0, 0] * 60
    >>> found = detect_changes(data, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(2))
    >>> [abs(index - k) <= found.accuracy for index, k in zip(found.indices, (300, 600))], found.states
    ([True, True], ('null', 'alternative', 'null'))
    """
    told = _PublicOrders.of(order, public_order)
    rows = numbers.rows_of_a_unit(unit, max_rows_per_unit)
    records = open_for(Need(rows, ordered=True), data, column=column, unit=unit, order=order)
    n = records.count()
    if n == 0:
        raise InvalidData("The data have no records. Pass at least one block of them.")
    plan = design_changes(
        null,
        alternative,
        epsilon=epsilon,
        privacy=privacy,
        n=n,
        beta=beta,
        false_alarm=false_alarm,
        max_rows_per_unit=rows,
    )
    where = {"column": column, "unit": unit, "order": order}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return plan.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon, besides=told)
