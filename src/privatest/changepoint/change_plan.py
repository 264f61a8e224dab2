"""Plans of change points (``design_change``), and a plan and its run in one call (``detect_change``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.changepoint.block_sums import VOTE_UNIT, SumsDetector
from privatest.changepoint.block_tests import check_errors, names_of, voter_of, whole_of
from privatest.changepoint.change_point import FALSE_ALARM, MOST_SUMS, ChangePoint, PublicOrder
from privatest.changepoint.detector import Detector, FailureCurve
from privatest.changepoint.detector_search import (
    DetectorChoice,
    auto_choices,
    best_choice,
    paper_of,
    several_choice,
    unknown_choice,
    voted_choice,
)
from privatest.changepoint.several_changes import SeveralDetector
from privatest.charge_before_release import Draw
from privatest.decision.run import Budgeted, cost_fact, hidden_fact
from privatest.engines.records import Need, Records
from privatest.engines.sources import open_for
from privatest.errors import Infeasible, InvalidData, InvalidDocument, InvalidInput, shown
from privatest.facts import Fact
from privatest.fit import FitTest
from privatest.hypotheses.parse import pair_or_hypotheses
from privatest.numbers import Number, rational
from privatest.privacy import Notion, Pure, RandomSource, make_notion
from privatest.privacy.notion import budget_word, notion_words, per_row
from privatest.progress_events import searching
from privatest.unanswered_questions import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.scores import Cells


_LARGEST_EPSILON = 64.0
METHODS = ("auto", "direct", "blocks", "paper")
CHANGES = ("one", "several")


def check_length(block: int, accuracy: int | None, n: int) -> None:
    """Raise an error for a series that is shorter than one block, or no longer than the accuracy."""
    if n < block:
        raise InvalidData(
            f"The series has {n} records, fewer than one block of {block}. Pass at least {block} records"
            + (f", better {2 * accuracy} or more" if accuracy else "")
            + ", or use a larger budget of privacy."
        )
    if accuracy is not None and accuracy >= n:
        raise Infeasible(
            f"The index would be accurate to {accuracy} records only, and the series has {n}: the answer "
            f"would carry no information. Pass more than {2 * accuracy} records, or a larger budget or beta."
        )


def check_accuracy(
    choice: DetectorChoice,
    n: int | None,
    beta: float,
    false_alarm: float | None,
    again: Callable[[Notion], DetectorChoice] | None,
    assuming: Callable[[], DetectorChoice],
    whole: Notion,
) -> None:
    """Raise Infeasible if changes in the middle of the series would be missed or misplaced too often.

    Args:
        choice: the best detector.
        n: the number of records; None for any.
        beta, false_alarm: the targets.
        again: returns the best detector at another budget; None if the test of the blocks was given.
        assuming: returns the best detector that always names a change. Both are called for the remedies alone.
        whole: the budget for all rows of a person.
    """
    paid, budget = notion_words(whole), budget_word(whole)
    if choice.accuracy is not None and (false_alarm is None or n is None or 2 * choice.accuracy <= n):
        return
    if false_alarm is None:
        remedy = f"a larger {budget}" if again is not None else "a test that errs less"
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at {paid}. Use {remedy}, or a larger beta."
        )
    remedy = "use a larger budget" if again is not None else "use a test that errs less"
    if isinstance(whole, Pure) and again is not None:
        epsilon = _smallest_epsilon(whole.epsilon, n, again)
        remedy = f"the smallest epsilon that does is about {epsilon:g}" if epsilon else "no epsilon reaches it"
    length = "any length" if n is None else f"n={n} records"
    needed = "" if choice.accuracy is None else f" At this {budget} at least {2 * choice.accuracy} records are needed."
    remark = " (the default)" if false_alarm == FALSE_ALARM else ""
    raise Infeasible(
        f"false_alarm={false_alarm:g}{remark} is not reachable with {length} at {paid}: a change "
        f"in the middle would be missed or misplaced with probability above beta={beta:g}; {remedy}.{needed}"
        f"{_if_assumed(assuming(), n, beta)}"
    )


def _if_assumed(choice: DetectorChoice, n: int | None, beta: float) -> str:
    """Return a sentence on the accuracy with assume_change=True, or an empty text if that accuracy is of no use."""
    if choice.accuracy is None or n is None or n < choice.detector.block or 2 * choice.accuracy >= n:
        return ""
    return (
        f" Where it is certain that there was a change, assume_change=True places it within {choice.accuracy} records "
        f"with probability {1 - beta:g}."
    )


def _smallest_epsilon(least: float, n: int | None, again: Callable[[Notion], DetectorChoice]) -> float | None:
    """Return the smallest epsilon, within a tenth, for which half of n records is enough; None if there is none."""

    def enough(epsilon: float) -> bool:
        accuracy = again(Pure(rational(epsilon))).accuracy
        return accuracy is not None and (n is None or 2 * accuracy <= n)

    if least >= _LARGEST_EPSILON or not enough(_LARGEST_EPSILON):
        return None
    low, high = least, min(2 * least, _LARGEST_EPSILON)
    with searching("the smallest epsilon", 10) as looked:
        while high < _LARGEST_EPSILON and not enough(high):
            low, high = high, min(4 * high, _LARGEST_EPSILON)
            looked()
        # Invariant: not enough(low), enough(high).
        while high > 1.1 * low:
            middle = float(f"{math.sqrt(low * high):.2g}")
            if not low < middle < high:
                break
            low, high = (low, middle) if enough(middle) else (middle, high)
            looked()
    return high


@dataclass(frozen=True, eq=False, kw_only=True)
class ChangePlan(Budgeted[ChangePoint]):
    """A designed detector of changes: :meth:`run` finds where data in order of time changed.

    Guarantees: those of :class:`ChangePoint`, for data of any length or, if it is given, of ``n`` records.

    Attributes:
        method: "direct", "blocks" or "paper" ("fit" for an unknown alternative, "several" for several changes).
        accuracy: abs(index - k*) <= accuracy with probability at least 1 - beta, for k* at least ``accuracy`` from
            both ends (``spacing`` from other changes and from both ends, for several changes).
        beta: probability with which an index may be further off.
        n: number of records, or None for any.
        compared: the accuracies of the compared methods.
        null, alternative: short descriptions.
        max_rows_per_unit: the largest number of rows of one person that count, if a run names the ``unit``. Each row
            costs epsilon/k, so that k rows cost epsilon wherever they stand.
        notion: the notion of privacy that a run meets.
        detector: the mechanism that draws the index.
        curve: bounds on the probability of each error of the index.
        named: whether P and Q were given, and not only a test of blocks.
    """

    FORMAT: ClassVar[str] = "privatest/change/2"
    KIND: ClassVar[str] = "plan of a change point"
    REQUEST_KEY: ClassVar[str] = "change"
    UNFIT: ClassVar[Mapping[str, str]] = {}

    method: str
    accuracy: int
    beta: float
    n: int | None = None
    null: str
    alternative: str
    compared: dict[str, int]
    max_rows_per_unit: int = 1
    notion: Notion = field(metadata={"key": "budget"})
    detector: Detector = field(repr=False)
    curve: FailureCurve = field(repr=False)
    named: bool = field(repr=False)

    def __post_init__(self) -> None:
        numbers.choice((*METHODS[1:], "fit", "several"), method=self.method)
        numbers.probability(beta=self.beta)
        if self.accuracy < 0 or self.max_rows_per_unit < 1 or (self.n is not None and self.n < 1):
            raise InvalidDocument("The settings of the plan do not fit together.")
        if not self.detector.meets(per_row(self.notion, self.max_rows_per_unit)):
            raise InvalidDocument(
                f"What the detector draws does not meet {notion_words(self.notion)} for up to {self.max_rows_per_unit} "
                "rows of a person."
            )

    @property
    def block(self) -> int:
        """The number of records in a block, whose sum or bit is drawn, or between two candidates of "direct"."""
        return self.detector.block

    @property
    def clamp(self) -> tuple[float, float] | None:
        """The smallest and the largest log-likelihood ratio that one record counts; None if records have no scores."""
        return self.detector.clamp

    @property
    def false_alarm(self) -> float | None:
        """A bound on the probability of "changed" if nothing changed; None with ``assume_change``."""
        return self.detector.false_alarm

    @property
    def threshold(self) -> int | None:
        """The level that the largest suffix sum of the blocks' votes must exceed for "changed".

        For several changes it is the penalty of each change, in votes.
        """
        return self.detector.threshold

    @property
    def penalty(self) -> float | None:
        """The penalty of each of several changes in nats, which votes must outweigh; None for one change."""
        return self.detector.threshold * VOTE_UNIT if self.spacing is not None and self.detector.threshold else None

    @property
    def spacing(self) -> int | None:
        """The distance from other changes and from both ends at which the accuracy holds; None for one change."""
        several = isinstance(self.detector, SeveralDetector)
        return self.accuracy - self.block // 2 + 2 * self.block if several else None

    @property
    def runs(self) -> int:
        """The number of seeded simulations of the scores' laws behind the accuracy; 0 if it is computed exactly."""
        return self.curve.runs

    @cached_property
    def power(self) -> float | None:
        """A lower bound on the probability of "changed" for a change at least ``accuracy`` from the end."""
        missed = self.detector.missed(np.array([self.accuracy], dtype=np.int64))
        return None if missed is None else 1.0 - float(missed[0])

    @property
    def assume_change(self) -> bool:
        """Whether the plan assumes that there was a change, so that it always names an index."""
        return self.false_alarm is None

    @property
    def informative(self) -> bool | None:
        """Whether the accuracy is better than naming the middle of the series; None without n."""
        return None if self.n is None else 2 * self.accuracy < self.n

    def power_after(self, records: int) -> float:
        """Return a lower bound on the probability of "changed" for a change that this number of records follow.

        Args:
            records: number of records after the change.
        """
        missed = self.detector.missed(np.array([records], dtype=np.int64))
        if missed is None:
            raise InvalidInput(
                "This plan states no such bound. Plan for one change, without assume_change=True, so that 'no change' "
                "may be answered."
            )
        return 1.0 - float(missed[0])

    @property
    def outcome(self) -> type[ChangePoint]:
        """The class of the outcome of a run."""
        return ChangePoint

    def question(self) -> dict[str, Any]:
        """Return the settings of the plan and, if P and Q have no names, the scores or the test."""
        hidden = ("detector", "curve", "named", "notion")
        settings = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in hidden}
        settings |= {name: getattr(self, name) for name in ("block", "clamp", "false_alarm", "threshold")}
        if self._privacy_text is not None:
            settings["privacy"] = self._privacy_text
        return {"change": settings, **({} if self.named else {"parts": self.detector.question()})}

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: where[name] for name in ("column", "order", "unit") if name != "unit" or where.get("unit")}

    @property
    def record_cells(self) -> Cells:
        """The cells that records are sorted into."""
        return self.detector.record_cells

    @property
    def need(self) -> Need:
        """Records in order of time, with at most ``max_rows_per_unit`` rows of each person."""
        return Need(self.max_rows_per_unit, ordered=True)

    def check(self, records: Records) -> None:
        """Refuse records of a wrong number or type. Ties of the order are refused when sums are computed."""
        n = records.count()
        if self.n is not None and n != self.n:
            raise InvalidData(f"The data have {n} records, the plan is for n={self.n}. Plan with n={n}, or without n.")
        check_length(self.block, self.accuracy, n)
        self.detector.check(records)

    def run(
        self,
        data: Any,
        *,
        column: str | None = None,
        unit: str | None = None,
        order: str | None = None,
        public_order: bool = False,
        odd_epsilon: Number | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> ChangePoint:
        """Find the change in data that lie in order of time, or in the order of the column ``order``.

        Args:
            unit: the column that names the person whose row it is. The first ``max_rows_per_unit`` rows of each person
                count; every other row, and a row without a person, stays in its place and counts as a record that makes
                no sense. The answer is then private for all rows of a person together. The number of rows, their
                persons and their times are assumed to be public.
            order: the column that gives the order of time; None if the records lie in that order.
            public_order: declare the values of that column public, such as the days on which records arrive one by
                one. The answer then also has those at the indices (``order_values``) and, for one change, at the ends
                of its accuracy (``order_range``). They are looked up at the released indices, in a column that does not
                depend on the records, so they cost no privacy if the declaration is true. Without it no value of the
                order leaves the data.
            odd_epsilon: as for :meth:`PrivateTest.run`; rows that do not count because of ``unit`` are odd, too.
        """
        where, public = {"column": column, "unit": unit, "order": order}, PublicOrder.of(order, public_order)
        payer = {"ledger": ledger, "dataset": dataset, "request": request}
        return self.run_opened(None, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon, besides=public)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Return the public number of records and the draw of the detector."""
        n = records.count()
        return [n, self.detector.draw(records, n, source)]

    def release(self, draw: Sequence[Any], *, simulated: bool = False) -> ChangePoint:
        """Compute the indices from a draw, with the noisy sums behind them if there are any.

        Args:
            draw: the number of records and the draw of the detector.
            simulated: whether the caller's generator drew it.
        """
        (n, drawn), detector, sums, misfits = draw, self.detector, None, None
        indices, first = detector.locate(drawn, n)
        states = tuple(("null", "alternative")[(first + i) % 2] for i in range(len(indices) + 1))
        if isinstance(detector, SumsDetector):
            doubled = np.array(drawn, dtype=np.int64)
            sums = detector.nats(doubled) if len(drawn) <= MOST_SUMS else None
            misfits = detector.misfits(doubled, n, indices, states, 2 * self.accuracy)
        return ChangePoint(
            indices=indices,
            states=states,
            accuracy=self.accuracy,
            beta=self.beta,
            changed=None if self.assume_change else bool(indices) or first == 1,
            epsilon=self.epsilon,
            method=self.method,
            n=n,
            spacing=self.spacing,
            false_alarm=self.false_alarm,
            power=self.power,
            simulated=simulated,
            block=None if self.method == "direct" else self.block,
            sums=sums,
            misfits=misfits,
            privacy=self._privacy_text,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw upper bounds on the probability that an index is off by more than a distance."""
        from privatest import pictures

        return pictures.change_plan(self, self.curve, ax)

    @property
    def title(self) -> str:
        """The question in a few words."""
        if self.spacing is not None:
            return f"Changes between {self.null} and {self.alternative}"
        return f"Change from {self.null} to {self.alternative}"

    def facts(self) -> list[Fact]:
        """Return the question, the settings and the guarantees."""
        length = "a series of any length" if self.n is None else f"{self.n:,} records"
        power = f"changes at least {self.accuracy:,} records from the end are found with this probability, at least"
        within = f"records, with probability {1 - self.beta:g}, for {length}"
        return [
            Fact("null", self.null, "the old regime"),
            Fact("alternative", self.alternative, "the new regime"),
            cost_fact(self.privacy, "of the whole answer"),
            Fact("n", self.n, "records, public"),
            Fact("accuracy", self.accuracy, within),
            Fact("spacing", self.spacing, "records from any other change and from both ends, for that"),
            Fact("beta", self.beta, "probability with which an index may be further off"),
            Fact("method", self.method),
            Fact("block", self.block, "records in a block, or between two candidates"),
            Fact("clamp", self.clamp, "least and most of one record, in nats"),
            Fact("false_alarm", self.false_alarm, "false alarms with this probability, at most, where nothing changed"),
            Fact("power", self.power, power),
            Fact("penalty", self.penalty, "what blocks must outweigh for each change, in nats"),
            Fact("max_rows_per_unit", self._rows, "rows of one person that count, where unit= names the person"),
            hidden_fact("replace", persons=self.max_rows_per_unit > 1),
        ]

    def __hash__(self) -> int:
        return hash((self.method, self.accuracy, self.epsilon, self.block, self.null, self.alternative))


def design_change(
    null: Any = None,
    alternative: Any = None,
    *,
    distance: float | None = None,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    changes: str = "one",
    beta: float = 0.1,
    method: str = "auto",
    block: int | None = None,
    test: Any = None,
    false_alarm: float | None = None,
    assume_change: bool = False,
    max_rows_per_unit: int = 1,
) -> ChangePlan:
    """Design the detector of :func:`detect_change` and compute its accuracy, before any data are seen.

    Args:
        null, alternative: the old and the new regime, in any of the forms that :func:`privatest.design` takes.
        distance: in place of an alternative: the smallest total variation between it and the null.
        epsilon: privacy loss of the whole answer; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        n: number of records. None: the accuracy holds for any number, and series that are too short are refused later.
        changes: "one" (the default), or "several": from P to Q, back to P, and so on, an unknown number of times. All
            of them together cost epsilon once. "several" needs ``n`` and an alternative, and has a method of its own:
            noisy block sums, labelled by penalised dynamic programming.
        beta: probability with which an index may be off by more than ``accuracy``.
        method: "direct" (the exponential mechanism over suffix sums of the clamped score), "blocks" (noisy block sums,
            and the median of the posterior given them), "paper" (the paper's reduction: a test on each block, and the
            argmin of suffix sums of its bits), or "auto": the one of the first two with the smaller computed accuracy.
        block: number of records in a block of "paper", which is then the default method. None: the number that
            advantage 2/3 needs (:func:`privatest.sample_size`), as in the paper.
        test: the private test that votes on each block of "paper", instead of a designed one: a :class:`PrivateTest`, a
            :class:`FitTest`, or any function, see :func:`block_test`. It determines the regimes, the length of a block
            and the budget. (For a function ``null`` and ``alternative`` may name the regimes.) Each record lies in one
            block, so the whole answer costs what one run of the test costs.
        false_alarm: the largest probability of "changed" if nothing changed; 0.05 by default. Otherwise the answer is
            "no change". Blocks tell that from the sums that they release anyway; "direct" cannot, and needs
            ``assume_change``.
        assume_change: assume that there was a change, as the paper does. The answer then always names an index, even if
            the data did not change, and is more accurate if they did. Excludes ``false_alarm``.
        max_rows_per_unit: the largest number of rows of one person that count, if the run names a ``unit``; each costs
            epsilon/max_rows_per_unit (for other notions see docs/notions.md). The accuracy holds if no person has more.

    >>> several = design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, n=1000, changes="several")
    >>> several.accuracy <= 60, several.false_alarm <= 0.05, several.spacing > several.accuracy
    (True, True, True)
    >>> plan = design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1)
    >>> plan.method, plan.accuracy <= 20, plan.false_alarm <= 0.05, plan.power >= 0.9
    ('blocks', True, True, True)
    >>> certain = design_change("bernoulli(0.2)", "bernoulli(0.8)", epsilon=1, assume_change=True)
    >>> certain.accuracy < plan.accuracy, certain.false_alarm
    (True, None)
    """
    rows = numbers.positive_integer(max_rows_per_unit=max_rows_per_unit)
    beta = numbers.probability(beta=beta)
    numbers.choice(METHODS, method=method)
    numbers.choice(CHANGES, changes=changes)
    if n is not None:
        n = numbers.positive_integer(n=n)
    if changes == "several":
        _check_several(n, distance=distance, method=method, block=block, test=test, assume_change=assume_change)
    if block is not None:
        block = numbers.positive_integer(block=block)
        method = paper_of(method, distance, block=block)
    target = _false_alarm(false_alarm, assume_change)
    if test is None:
        whole = make_notion(epsilon, privacy)
    else:
        paper_of(method, None, test="...")
        voter = voter_of(test)
        names = names_of(voter, null, alternative, distance=distance, block=block)
        check_errors(voter)
        whole = whole_of(voter, epsilon, privacy, rows)
    choices: Choices
    if test is not None:
        choices = lambda _, target: [voted_choice("paper", voter, beta, target, names)]  # noqa: E731
    elif changes == "several":
        hypotheses = pair_or_hypotheses(null, alternative)
        choices = lambda notion, target: [several_choice(hypotheses, notion, n, beta, target, whole)]  # noqa: E731
    else:
        choices = _choices_of(null, alternative, distance, beta, method, block)
    candidates = choices(per_row(whole, rows), target)
    best = min(candidates, key=lambda one: one.size)

    def assuming() -> DetectorChoice:
        return min(choices(per_row(whole, rows), None), key=lambda one: one.size)

    def again(other: Notion) -> DetectorChoice:
        return min(choices(per_row(other, rows), target), key=lambda one: one.size)

    check_accuracy(best, n, beta, target, None if test is not None else again, assuming, whole)
    if n is not None:
        check_length(best.detector.block, best.accuracy, n)
    assert best.accuracy is not None
    return ChangePlan(
        method=best.method,
        accuracy=best.accuracy,
        beta=beta,
        n=n,
        null=best.names[0],
        alternative=best.names[1],
        compared={one.method: one.accuracy for one in candidates if one.accuracy is not None},
        max_rows_per_unit=rows,
        notion=whole,
        detector=best.detector,
        curve=best.curve,
        named=best.named,
    )


def _check_several(n: int | None, **excluded: Any) -> None:
    """Raise InvalidInput for settings that do not go with changes="several", and if n is missing."""
    for name, value in excluded.items():
        if value not in (None, False, "auto"):
            raise InvalidInput(f"{name}={shown(value)} belongs to changes='one'. Leave one of the two out.")
    if n is None:
        raise InvalidInput("changes='several' needs n=, the number of records, which is public.")


def _false_alarm(false_alarm: float | None, assume_change: bool) -> float | None:
    """Return the target for false alarms; None with ``assume_change``."""
    if not isinstance(assume_change, bool | np.bool_):
        raise InvalidInput(f"assume_change={shown(assume_change)} must be True or False.")
    if not assume_change:
        return FALSE_ALARM if false_alarm is None else numbers.probability(false_alarm=false_alarm)
    if false_alarm is not None:
        raise InvalidInput(
            f"false_alarm={shown(false_alarm)} and assume_change=True exclude each other: if there certainly was a "
            "change, no alarm is false. Leave one of them out."
        )
    return None


Choices = Callable[[Notion, float | None], list[DetectorChoice]]
"""A function from the notion of a row and the target for false alarms to the detectors to compare."""


def _choices_of(
    null: Any, alternative: Any, distance: float | None, beta: float, method: str, block: int | None
) -> Choices:
    """Return the function that designs the detectors to compare, for P and Q or for P and a distance."""
    if (alternative is None) == (distance is None):
        raise InvalidInput(
            "Give either the alternative Q or, if it is unknown, distance=, the smallest total variation between it "
            "and P."
        )
    if distance is None:
        hypotheses = pair_or_hypotheses(null, alternative)
        if method == "auto":
            return lambda notion, target: auto_choices(hypotheses, notion, beta, target)
        return lambda notion, target: [best_choice(hypotheses, notion, beta, method, target, block=block)]
    if method not in ("auto", "paper"):
        raise InvalidInput(f"method={shown(method)} needs the alternative Q. With distance= leave method out.")
    gap = numbers.probability(distance=distance)
    tests: dict[Any, FitTest] = {}
    return lambda notion, target: [unknown_choice(null, gap, notion, beta, target, tests)]


@known_arguments
def detect_change(
    data: Any,
    null: Any = None,
    alternative: Any = None,
    *,
    distance: float | None = None,
    epsilon: Number | None = None,
    privacy: Any = None,
    changes: str = "one",
    beta: float = 0.1,
    method: str = "auto",
    block: int | None = None,
    test: Any = None,
    false_alarm: float | None = None,
    assume_change: bool = False,
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
) -> ChangePoint:
    """Find with privacy where data in order of time changed from P (``null``) to Q (``alternative``).

    The index is that of the first record of the new regime, counted from 0. It is None if the answer is "no change",
    which is possible unless ``assume_change=True``. With ``changes="several"`` all changes between P and Q are located,
    and ``indices`` has one entry for each. :class:`ChangePoint` states the guarantees.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``; in order of time, or in that of the column ``order``.
        null, alternative, distance, epsilon, privacy, changes: as for :func:`design_change`.
        beta, method, block, test, false_alarm, assume_change: as for :func:`design_change`.
        max_rows_per_unit: as for :func:`design_change`; 1 if only ``unit`` is given.
        column: the column that holds the records.
        unit: the column that names the person whose row it is; None: each row is a person of its own.
        order: the column that gives the order of time; None if the records lie in that order.
        public_order: declare the values of that column public. The answer then also has the value at the change
            (``order_value``), as :meth:`ChangePlan.run` explains.
        odd_epsilon: as for :meth:`ChangePlan.run`.
        ledger, dataset, request: charge that to the data set's budget before anything is computed. The same
            request again returns the same answer, free of charge.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The answer
            then says that it is simulated, and is not private.

    >>> data = [0, 0, 1, 0, 0] * 30 + [1, 1, 1, 0, 1] * 30
    >>> found = detect_change(data, "bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(2))
    >>> abs(found.index - 150) <= found.accuracy, found.changed, found.simulated
    (True, True, True)
    >>> quiet = detect_change(data[:150], "bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(2))
    >>> quiet.index, quiet.changed
    (None, False)
    >>> again, laws = data + [0, 0, 1, 0, 0] * 30, ("bernoulli(0.2)", "bernoulli(0.8)")
    >>> found = detect_change(again, *laws, epsilon=4, changes="several", rng=np.random.default_rng(2))
    >>> [abs(index - k) <= found.accuracy for index, k in zip(found.indices, (150, 300))], found.states
    ([True, True], ('null', 'alternative', 'null'))
    """
    public = PublicOrder.of(order, public_order)
    rows = numbers.rows_of_a_unit(unit, max_rows_per_unit)
    records = open_for(Need(rows, ordered=True), data, column=column, unit=unit, order=order)
    n = records.count()
    if n == 0:
        raise InvalidData("The data have no records. Pass at least one block of them.")
    plan = design_change(
        null,
        alternative,
        distance=distance,
        epsilon=epsilon,
        privacy=privacy,
        n=n,
        changes=changes,
        beta=beta,
        method=method,
        block=block,
        test=test,
        false_alarm=false_alarm,
        assume_change=assume_change,
        max_rows_per_unit=rows,
    )
    where = {"column": column, "unit": unit, "order": order}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return plan.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon, besides=public)
