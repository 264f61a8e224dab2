"""Sequential tests: P or Q, decided as soon as a stream's records allow it, for one epsilon."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import numbers
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.problem import Goal, Method, Problem
from privatest.decision.worst_case import sides_of
from privatest.errors import InvalidInput, NothingToTest, shown
from privatest.facts import Fact, Probability
from privatest.hypotheses.parse import Hypotheses, as_hypothesis, pair_or_hypotheses
from privatest.numbers import Number
from privatest.privacy import make_notion
from privatest.streams.block_schedule import AIMS, LARGEST_BLOCK, SMALLEST_ERROR, SequentialTargets, tuned_plan
from privatest.streams.sequential_plan import SequentialPlan, Verdict
from privatest.streams.stream import NO_UNIT, Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Sequential(Stream[SequentialPlan, Verdict]):
    r"""Test P (``null``) against Q (``alternative``) on a stream, and stop as soon as the records allow it.

    Records are collected in blocks, and each block releases its noisy sum. The likelihood ratio of a noisy sum is an
    e-value: its mean under P is at most 1. The product E of these e-values grows under Q and shrinks under P. The
    verdict is "alternative" as soon as log E reaches the upper boundary, and "null" as soon as it reaches the lower
    one.

    Guarantees: every record lies in one block, so everything that is ever released is together epsilon-differentially
    private, or meets the notion ``privacy`` (replace one record; the number of records is public). ``alpha`` and
    ``beta``, the probabilities of a wrong verdict, are exact for the stopped walk and at most the requested ones, for
    all members of sets. Under P the e-value ever reaches 1/a with probability at most a, so ``evalue`` and ``pvalue``
    are valid at any time and for any stopping rule. Nothing depends on how the stream is cut into batches. The noise of
    a block is drawn when the block is released. A sequential test cannot be copied, pickled or used in a forked
    process. Threads may share one.

    After the verdict nothing more is consumed: further batches are refused.

    State files (``state=``, :meth:`save`, :meth:`load`) and ledgers are as for :class:`Monitor`: no block is released
    twice and no verdict is lost, whenever the process was killed.

    Args:
        null, alternative: P and Q, distributions or sets, in any of the forms that :func:`privatest.design` takes.
        epsilon: privacy loss of the whole stream; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        alpha, beta: the largest probabilities of "alternative" under P and of "null" under Q.
        most: number of records after which the test decides in any case, with the same errors; None: there is none.
        aim: the expected number of records to make small: the "larger" one, that under "null" or "alternative".
        schedule: sizes of the first block and of the later ones; None: those with the smallest expected number.
        max_rows_per_unit: the largest number of rows of one person that count in the whole stream, as for a
            :class:`Monitor`. Every update must then name the persons of its records (``unit``), and each row costs
            epsilon/max_rows_per_unit.
        state: path of a state file. If it exists and has the same settings, the test continues from it.
        ledger, dataset, request, source: charge epsilon to a ledger once, as for a :class:`Monitor`.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The test is then
            called simulated, and is not private.

    >>> run = Sequential("bernoulli(0.3)", "bernoulli(0.7)", epsilon=1, rng=np.random.default_rng(3))
    >>> run.fixed_n, [round(n, 1) for n in run.expected_n]
    (21, [15.9, 15.9])
    >>> verdict = run.update([1, 1, 0, 1, 1] * 20)
    >>> verdict.decision, run.seen < 100, run.pvalue < 0.2
    ('alternative', True, True)
    """

    PLAN = SequentialPlan

    def __init__(
        self,
        null: Any,
        alternative: Any,
        *,
        epsilon: Number | None = None,
        privacy: Any = None,
        alpha: float = 0.05,
        beta: float = 0.05,
        most: int | None = None,
        aim: str = "larger",
        schedule: tuple[int, int] | None = None,
        max_rows_per_unit: int | None = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        whole = make_notion(epsilon, privacy)
        goal = Goal.of(alpha=alpha, beta=beta)
        assert goal.alpha is not None
        assert goal.beta is not None
        for name, error in {"alpha": goal.alpha, "beta": goal.beta}.items():
            if error < SMALLEST_ERROR:
                raise InvalidInput(
                    f"{name}={error:g} is smaller than {SMALLEST_ERROR:g}, the smallest error of a stopped walk that "
                    "can be computed. Use a larger number, or stop at an e-value of your choice."
                )
        aim = numbers.choice(AIMS, aim=aim)
        sizes = _sizes(schedule)
        if most is not None:
            most = numbers.positive_integer(most=most)
            if sizes is not None and most < sizes[0]:
                raise InvalidInput(
                    f"most={most} is smaller than the first block of {sizes[0]} records: nothing would ever be "
                    "decided. Use a larger number, or a smaller first block."
                )
        rows = max_rows_per_unit
        if rows is not None:
            rows = numbers.positive_integer(max_rows_per_unit=rows)
        laws = [as_hypothesis(law, name) for name, law in {"null": null, "alternative": alternative}.items()]
        settings = {
            "alpha": goal.alpha,
            "beta": goal.beta,
            "most": most,
            "aim": aim,
            "schedule": None if sizes is None else list(sizes),
        }
        wanted = SequentialTargets(goal.alpha, goal.beta, most, aim, sizes, rows)

        def make_plan() -> SequentialPlan:
            question = pair_or_hypotheses(null, alternative)
            if isinstance(question, Hypotheses) and sides_of(question).above:
                raise NothingToTest(
                    f"alternative {question.alternative.describe()} lies on both sides of the null "
                    f"{question.null.describe()}. A sequential test looks at one side. Run one for each side, and "
                    "combine their e-values with combine_evalues(..., dependent=True)."
                )
            problem = Problem.of(null, alternative, privacy=whole, max_rows_per_unit=rows or 1)
            return tuned_plan(question, Tuner.of(problem, Method(), goal), wanted)

        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "source": source}
        self._begin(laws, settings, make_plan, notion=whole, rows=rows, state=state, rng=rng, **paying)

    @property
    def alpha(self) -> float:
        """The exact probability of "alternative" under P; for sets the largest."""
        return self._plan.alpha

    @property
    def beta(self) -> float:
        """The exact probability of "null" under Q; for sets the largest."""
        return self._plan.beta

    @property
    def expected_n(self) -> tuple[float, float]:
        """The exact mean number of records until the verdict, under P and under Q.

        For sets the scores have the worst laws of the sets.
        """
        return self._plan.expected_n

    def quantile_n(self, share: float) -> tuple[int, int]:
        """Return the numbers of records within which the verdict falls with probability ``share``, under P and Q."""
        return self._plan.quantile_n(float(numbers.probability(share=share)))

    @property
    def fixed_n(self) -> int:
        """The number of records of a test of a fixed number with the same errors, for comparison."""
        return self._plan.fixed_n

    @property
    def schedule(self) -> tuple[int, int]:
        """The numbers of records in the first block and in each later one."""
        return self._plan.first.block, self._plan.later.block

    @property
    def boundaries(self) -> tuple[float, float]:
        """The logarithms of the e-value at which the test decides for P and for Q."""
        rule = self._plan.rule
        return self._plan.nats(rule.lower), self._plan.nats(rule.upper)

    @property
    def most(self) -> int | None:
        """The number of records after which the test decides in any case; None if there is none."""
        return self._plan.most

    @property
    def result(self) -> Verdict | None:
        """The verdict with its walk; None before there is one."""
        return None if self._result is None else replace(self._result, walk=self.walk)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None before there is one."""
        return self.result

    @property
    def decided(self) -> bool:
        """Whether there is a verdict."""
        return self._result is not None

    @property
    def evalue(self) -> float:
        """The evidence against P so far: the product of the blocks' likelihood ratios, rounded down, from 1 on.

        Under P it ever reaches 1/a with probability at most a, so it is valid at any time and for any stopping rule.
        """
        return math.exp(self._plan.nats(self._progress.level))

    @property
    def pvalue(self) -> float:
        """A p-value that is valid at any time: 1 over the largest e-value so far, at most 1."""
        return math.exp(-self._plan.nats(self._progress.peak))

    @property
    def walk(self) -> tuple[float, ...]:
        """The logarithm of the e-value after each of the newest blocks (at most 256), oldest first."""
        released, level, walk = list(self._released), self._progress.level, []
        before = self._progress.blocks - len(released)
        for vote in reversed(self._plan.votes(released, before)):  # because the last level is known
            walk.append(self._plan.nats(level))
            level -= vote
        return tuple(reversed(walk))

    @property
    def trace(self) -> tuple[float, ...]:
        """The newest releases (at most 256), oldest first: noisy block sums of clamped log P/Q in nats."""
        plan, before = self._plan, self._progress.blocks - len(self._released)
        pairs = enumerate(self._released, before)
        return tuple((plan.later if place else plan.first).trace(value) for place, value in pairs)

    def update(self, x: Any, *, unit: Any = NO_UNIT) -> Verdict | None:
        """Take one record, or a batch if x is a list, an array or a column; return the verdict, if there is one.

        A record that makes no sense raises no error and gets a fixed score. After the verdict all records are refused.

        Args:
            x: the record or the batch.
            unit: the person of the record, if ``max_rows_per_unit`` was given: any value that names a person; for a
                batch one value for each record. None means no person.
        """
        self._check_open()
        super().update(x, unit=unit)
        return self.verdict

    def update_many(
        self,
        batch: Any,
        *,
        column: str | None = None,
        unit: Any = NO_UNIT,
        order: str | None = None,
        place: Any = None,
    ) -> Verdict | None:
        """Take a batch of records in order of time, as :meth:`Monitor.update_many` does; return the verdict, if any."""
        self._check_open()
        super().update_many(batch, column=column, unit=unit, order=order, place=place)
        return self.verdict

    def _check_open(self) -> None:
        if self._result is not None:
            raise InvalidInput(
                f"This sequential test was {self._result.sentence}. It consumes no more records. For more records make "
                "a new one, with a budget of its own."
            )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the walk of the log e-value between its boundaries; never the records."""
        from privatest import pictures

        seen = self._plan.records(self._progress.blocks)
        return pictures.walk(self._plan, self.walk, seen, self.result, ax, private=self.private)

    @property
    def title(self) -> str:
        """The name."""
        return "Sequential test"

    def facts(self) -> list[Fact]:
        """Return the question, the guarantees and the releases so far."""
        verdict = self.result
        return [
            *self._plan.facts(),
            Fact("seen", self.seen, "records so far; the number of the next one"),
            Fact("odd_records", "counted as 0", "records without sense to P and Q; privatest.check counts them"),
            Fact("evalue", Probability(self.evalue), "evidence against P so far, valid whenever one looks"),
            Fact("pvalue", Probability(self.pvalue), "valid whenever one looks"),
            Fact("decided", self.decided, "no verdict yet" if verdict is None else verdict.sentence),
            Fact("private", self.private, "SIMULATED, not private" if self.simulated else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return settings, guarantees and releases so far as plain values, ready for JSON."""
        verdict = None if self.result is None else self.result.to_dict()
        return {**self.values(), "verdict": verdict, "walk": list(self.walk), "trace": list(self.trace)}

    def __repr__(self) -> str:
        plan = self._plan
        low, high = self.expected_n
        return (
            f"Sequential({plan.null} or {plan.alternative}, {self._cost}, alpha={self.alpha:.4g}, "
            f"beta={self.beta:.4g}, expected_n=({low:.4g}, {high:.4g}), fixed_n={self.fixed_n}, "
            f"schedule={self.schedule}, seen={self.seen}, evalue={self.evalue:.4g}, verdict={self.result!r})"
        )


def _sizes(schedule: Any) -> tuple[int, int] | None:
    if schedule is None:
        return None
    if not isinstance(schedule, (tuple, list)) or len(schedule) != 2:
        raise InvalidInput(
            f"schedule={shown(schedule)} must be two numbers: the first block's size and the later ones'."
        )
    first, later = (numbers.positive_integer(schedule=size) for size in schedule)
    if max(first, later) > LARGEST_BLOCK:
        raise InvalidInput(
            f"schedule={shown(schedule)} has blocks of more than {LARGEST_BLOCK} records. Use smaller ones."
        )
    return first, later
