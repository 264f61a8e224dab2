"""When did it change? How well a change can be located, before any data are seen, and the whole of it in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.changepoint.block_tests import Voter, check_errors, names_of, voter_of, whole_of
from privatest.changepoint.blocks import BlockDetector
from privatest.changepoint.change_point import FALSE_ALARM, MOST_SUMS, ChangePoint, PlanInTime, PublicOrder
from privatest.changepoint.detectors import (
    BlockTests,
    Detection,
    auto_designs,
    bit_design,
    design,
    paper_of,
    unknown_design,
)
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
from privatest.errors import Infeasible, InvalidData, InvalidInput, shown
from privatest.facts import Fact
from privatest.hypotheses.parse import pair_or_question
from privatest.numbers import Number, rational
from privatest.privacy import Notion, Pure, RandomSource, make_notion
from privatest.privacy.notions import budget_word, notion_from_settings, notion_settings, notion_words, per_row
from privatest.progress_events import searching
from privatest.unanswered import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.scores import Cells


_LARGEST_EPSILON = 64.0


def check_length(design: Detection, n: int) -> None:
    """A series must hold one block, and must be longer than the index may be off."""
    if n < design.block:
        raise InvalidData(
            f"The series has {n} records, fewer than one block of {design.block}. Pass at least {design.block} records"
            + (f", better {2 * design.accuracy} or more" if design.accuracy else "")
            + ", or use a larger budget of privacy."
        )
    if design.accuracy is not None and design.accuracy >= n:
        raise Infeasible(
            f"The index could only be told to within {design.accuracy} records, and the series has {n}: the answer "
            f"would carry no information. Pass more than {2 * design.accuracy} records, or a larger budget or beta."
        )


def check_accuracy(
    design: Detection,
    n: int | None,
    beta: float,
    false_alarm: float | None,
    again: Callable[[Notion], Detection] | None,
    assuming: Callable[[], Detection],
    whole: Notion,
) -> None:
    """Refuse a false-alarm target that would make changes anywhere in the series pass unseen too often.

    ``again`` gives the same detector at another budget (None: the blocks' test was given), ``assuming`` the one at this
    budget that takes a change for granted: both are looked at for the remedies only, and only those that help are
    named. ``whole`` is the budget of a person, all of whose rows it is for.
    """
    paid, budget = notion_words(whole), budget_word(whole)
    if design.accuracy is not None and (false_alarm is None or n is None or 2 * design.accuracy <= n):
        return
    if false_alarm is None:
        remedy = f"a larger {budget}" if again is not None else "a test that errs less"
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at {paid}. Use {remedy}, or a larger beta."
        )
    remedy = "use a larger budget" if again is not None else "use a test that errs less"
    if isinstance(whole, Pure) and again is not None:
        epsilon = _smallest_epsilon(whole.epsilon, n, again)
        remedy = f"the smallest epsilon that does is about {epsilon:g}" if epsilon else "no epsilon does"
    length = "any length" if n is None else f"n={n} records"
    needed = "" if design.accuracy is None else f" At this {budget} at least {2 * design.accuracy} records are needed."
    said = " (the default)" if false_alarm == FALSE_ALARM else ""
    raise Infeasible(
        f"false_alarm={false_alarm:g}{said} cannot be had with {length} at {paid}: a change "
        f"in the middle would be missed or misplaced with probability above beta={beta:g}; {remedy}.{needed}"
        f"{_if_assumed(assuming(), n, beta)}"
    )


def _if_assumed(design: Detection, n: int | None, beta: float) -> str:
    """What assume_change=True would give, where it tells more than that the change lies somewhere in the series."""
    if design.accuracy is None or n is None or n < design.block or 2 * design.accuracy >= n:
        return ""
    return (
        f" Where it is certain that there was a change, assume_change=True places it within {design.accuracy} records "
        f"with probability {1 - beta:g}."
    )


def _smallest_epsilon(least: float, n: int | None, again: Callable[[Notion], Detection]) -> float | None:
    """About the smallest epsilon (within a tenth, two digits) at which half a series of n records is long enough."""

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


METHODS = ("auto", "direct", "blocks", "paper")
FORMAT = "privatest/change/1"


@dataclass(frozen=True, eq=False)
class ChangePlan(PlanInTime[ChangePoint]):
    """A detector, designed: ``run(data)`` asks it where data in order of time changed.

    Guarantees: as stated for :class:`ChangePoint`, for data of any length (or of ``n`` records where given).

    Attributes:
        method: "direct", "blocks" or "paper" ("fit" for an unknown alternative).
        accuracy: abs(index - k*) <= accuracy with probability at least 1 - beta, for k* at least ``accuracy`` from
            both ends.
        epsilon, beta: as asked; epsilon is infinite where another notion of privacy bounds no privacy loss.
        n: number of records, or None for any.
        block: records in a block (a block's sum or bit is released), or between two candidates of "direct".
        clamp: the least and the most that one record's log-likelihood ratio counts.
        false_alarm: bound on the probability of "changed" when nothing changed, or None if "no change" is no answer
            (``assume_change``).
        threshold: what the largest suffix sum of the blocks' votes must exceed for "changed", in their units.
        power: bound from below on the probability of "changed" for changes at least ``accuracy`` from the end.
        runs: simulations (of the laws of scores, seeded) behind the accuracy; 0: computed exactly.
        compared: the accuracies of all methods that were looked at.
        null, alternative: short descriptions.
        max_rows_per_unit: the most rows of one person that count, where a run names the ``unit``. The detector is that
            of epsilon/k for each row, so that k rows cost epsilon wherever they stand.
        notion: what a run meets, where that is another notion than epsilon.
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "plan of a change point"

    method: str
    accuracy: int
    epsilon: float
    beta: float
    n: int | None
    block: int
    clamp: tuple[float, float] | None
    false_alarm: float | None
    threshold: int | None
    power: float | None
    runs: int
    compared: dict[str, int]
    null: str
    alternative: str
    _design: Detection = field(repr=False, compare=False)
    max_rows_per_unit: int = 1
    notion: Notion | None = None

    @property
    def assume_change(self) -> bool:
        """Whether a change is taken for granted, so that an index is always named."""
        return self.false_alarm is None

    @property
    def informative(self) -> bool | None:
        """Whether the accuracy says more than that the change lies somewhere in the series; None without n."""
        return None if self.n is None else 2 * self.accuracy < self.n

    def power_after(self, records: int) -> float:
        """Bound from below on the probability of "changed" when this many records follow the change.

        Args:
            records: how many follow the change.
        """
        missed = self._design.missed(np.array([records], dtype=np.int64))
        if missed is None:
            raise InvalidInput(
                "This plan always names an index. Plan without assume_change=True, to allow 'no change'."
            )
        return 1.0 - float(missed[0])

    @property
    def privacy(self) -> Notion:
        """The notion of stability that every run meets."""
        return self.notion or Pure(self._design.notion.exact[0] * self.max_rows_per_unit)

    @property
    def outcome(self) -> type[ChangePoint]:
        """A change point."""
        return ChangePoint

    def question(self) -> dict[str, Any]:
        """The plan's settings, and the scores or the test where the descriptions of P and Q leave them open."""
        return {"change": self._settings(), **self._design.question()}

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        unit = {} if where.get("unit") is None else {"unit": where["unit"]}
        return {"column": where["column"], "order": where["order"], **unit}

    @property
    def record_cells(self) -> Cells:
        """Those of the detector's scores."""
        return self._design.record_cells

    def check(self, records: Records) -> None:
        """Number and type; the sums refuse ties."""
        n = records.count()
        if self.n is not None and n != self.n:
            raise InvalidData(f"The data have {n} records, the plan is for n={self.n}. Plan with n={n}, or without n.")
        check_length(self._design, n)
        self._design.check(records)

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """The number of records, which is public, and what the detector draws."""
        n = records.count()
        return [n, self._design.detector.draw(records, n, source)]

    def release(self, draw: Sequence[Any], *, simulated: bool = False) -> ChangePoint:
        """The index, and the noisy sums it was found from where there are any.

        Args:
            draw: the number of records, and what the detector drew.
            simulated: whether a generator of the caller's drew it.
        """
        (n, drawn), detector, sums, misfits = draw, self._design.detector, None, None
        index = detector.locate(drawn, n)
        if isinstance(detector, BlockDetector):
            released = np.array(drawn, dtype=np.int64)
            sums = detector.nats(released) if len(drawn) <= MOST_SUMS else None
            turns = [] if index is None else [index]
            found = detector.misfits(released, n, turns, ("null", "alternative")[: len(turns) + 1], 2 * self.accuracy)
            misfits = None if found is None else tuple({"null": "before", "alternative": "after"}[one] for one in found)
        return ChangePoint(
            index=index,
            accuracy=self.accuracy,
            beta=self.beta,
            changed=None if self.false_alarm is None else index is not None,
            epsilon=self.epsilon,
            method=self.method,
            n=n,
            false_alarm=self.false_alarm,
            power=self.power,
            simulated=simulated,
            block=None if self.method == "direct" else self.block,
            sums=sums,
            misfits=misfits,
            privacy=None if self.notion is None else self.notion.text,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """How probably the index is off by more than a distance, at most."""
        from privatest import pictures

        return pictures.change_plan(self, self._design.curve, ax)

    @property
    def title(self) -> str:
        """What this is."""
        return f"Change from {self.null} to {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question, the settings and the promises."""
        length = "a series of any length" if self.n is None else f"{self.n:,} records"
        found = f"changes at least {self.accuracy:,} records from the end are found with this probability, at least"
        return [
            Fact("null", self.null, "the old regime"),
            Fact("alternative", self.alternative, "the new regime"),
            cost_fact(self.privacy, "of the whole answer"),
            Fact("n", self.n, "records, public"),
            Fact("accuracy", self.accuracy, f"within so many records with probability {1 - self.beta:g}, for {length}"),
            Fact("beta", self.beta, "probability with which the index may be further off"),
            Fact("method", self.method),
            Fact("block", self.block, "records in a block, or between two candidates"),
            Fact("clamp", self.clamp, "least and most of one record, in nats"),
            Fact("false_alarm", self.false_alarm, "false alarms with this probability, at most, where nothing changed"),
            Fact("power", self.power, found),
            Fact("max_rows_per_unit", self._rows, "rows of one person that count, where unit= names the person"),
            hidden_fact("replace", persons=self.max_rows_per_unit > 1),
        ]

    def _settings(self) -> dict[str, Any]:
        values = {one.name: getattr(self, one.name) for one in fields(self) if not one.name.startswith("_")}
        if self._rows is None:  # as it was written before there was such a setting
            del values["max_rows_per_unit"]
        values |= notion_settings(self.epsilon, values.pop("notion"))
        return {**values, "clamp": None if self.clamp is None else list(self.clamp), "compared": dict(self.compared)}

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the plan exactly."""
        return {"format": FORMAT, **self._settings(), "detection": self._design.to_dict()}

    @classmethod
    def _read(cls, document: dict[str, Any]) -> ChangePlan:
        rates = {name: document[name] for name in ("beta", "false_alarm", "power")}
        clamp, n, threshold = (document[name] for name in ("clamp", "n", "threshold"))
        plan: dict[str, Any] = {
            **texts_from_json(document, "method", "null", "alternative"),
            **wholes_from_json(document, "accuracy", "runs", least=0),
            **wholes_from_json(document, "block", least=1),
            **{name: None if value is None else number_from_json(value) for name, value in rates.items()},
            "n": None if n is None else integer_from_json(n, 1),
            "threshold": None if threshold is None else integer_from_json(threshold),
            "clamp": None if clamp is None else tuple(numbers_from_json(clamp).tolist()),
            "compared": {str(name): integer_from_json(value) for name, value in document["compared"].items()},
            "max_rows_per_unit": integer_from_json(document.get("max_rows_per_unit", 1), 1),
            **notion_from_settings(document),
        }
        numbers.choice((*METHODS[1:], "fit"), method=plan["method"])
        plan["beta"] = numbers.probability(beta=plan["beta"])
        return cls(**plan, _design=Detection.from_dict(document["detection"], plan))

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
    beta: float = 0.1,
    method: str = "auto",
    block: int | None = None,
    test: Any = None,
    false_alarm: float | None = None,
    assume_change: bool = False,
    max_rows_per_unit: int = 1,
) -> ChangePlan:
    """The detector that :func:`detect_change` would run, and how well it does. No data are needed.

    Args:
        null, alternative: the old and the new regime, in any of the forms that :func:`privatest.design` takes.
        distance: in place of an alternative: the total variation by which it differs from the null at least.
        epsilon: privacy loss of the whole answer; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        n: number of records. None: the accuracy holds for any number; refusals wait for the data.
        beta: probability with which the index may be further off than ``accuracy``.
        method: "direct" (exponential mechanism over suffix sums of the clamped score), "blocks" (noisy block sums, and
            the median of the posterior given them), "paper" (the paper's reduction: a test on each block, and the
            argmin of suffix sums of bits), or "auto": of the first two, whichever has the smaller computed accuracy.
        block: records in a block of "paper" (which is then the default); None: as many as advantage 2/3 needs,
            :func:`privatest.sample_size`, as the paper cuts them.
        test: the private test that votes on each block of "paper", in place of the one that would be designed: a
            :class:`PrivateTest`, a :class:`FitTest`, or any function, see :func:`block_test`. It says what the regimes,
            the block's length and the budget are (for a function ``null`` and ``alternative`` may name the regimes):
            each record lies in one block, so that the whole answer costs what one run of the test does.
        false_alarm: say "changed" of unchanged data with at most this probability, 0.05 if nothing is said; else the
            answer is "no change". Blocks decide that from the sums they release anyway; "direct" has to spend half
            of the budget on it, so "auto" is then "blocks".
        assume_change: take it for granted that there was a change, as the paper does: an index is always named, also
            of data that never changed, and is more accurate where there was one. Excludes ``false_alarm``.
        max_rows_per_unit: the most rows of one person that count, where the run names a ``unit``; each costs
            epsilon/max_rows_per_unit (of other notions: docs/notions.md). What is promised holds where no person has
            more.

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
    if block is not None:
        block = numbers.positive_integer(block=block)
        method = paper_of(method, distance, block=block)
    false_alarm = _false_alarm(false_alarm, assume_change)
    if n is not None:
        n = numbers.positive_integer(n=n)
    if test is None:
        whole = make_notion(epsilon, privacy)
        make = _maker(null, alternative, distance, beta, method, block)
    else:
        paper_of(method, None, test="...")
        voter = voter_of(test)
        names = names_of(voter, null, alternative, distance=distance, block=block)
        check_errors(voter)
        whole = whole_of(voter, epsilon, privacy, rows)
        make = _given_maker(voter, beta, names)
    found = make(per_row(whole, rows), false_alarm)
    best = min(found, key=_size)

    def assuming() -> Detection:
        return min(make(per_row(whole, rows), None), key=_size)

    def again(other: Notion) -> Detection:
        return min(make(per_row(other, rows), false_alarm), key=_size)

    check_accuracy(best, n, beta, false_alarm, None if test is not None else again, assuming, whole)
    if n is not None:
        check_length(best, n)
    assert best.accuracy is not None
    power = best.missed(np.array([best.accuracy], dtype=np.int64))
    return ChangePlan(
        method=best.method,
        accuracy=best.accuracy,
        epsilon=whole.epsilon,
        beta=beta,
        n=n,
        block=best.block,
        clamp=best.clamp,
        false_alarm=None if best.alarm is None else best.alarm.false_alarm,
        threshold=None if best.alarm is None else best.alarm.threshold,
        power=None if power is None else 1.0 - float(power[0]),
        runs=best.curve.runs,
        compared={d.method: d.accuracy for d in found if d.accuracy is not None},
        null=best.null,
        alternative=best.alternative,
        _design=best,
        max_rows_per_unit=rows,
        notion=None if isinstance(whole, Pure) else whole,
    )


def _false_alarm(false_alarm: float | None, assume_change: bool) -> float | None:
    """The target that is meant: None where a change is taken for granted."""
    if not isinstance(assume_change, bool | np.bool_):
        raise InvalidInput(f"assume_change={shown(assume_change)} must be True or False.")
    if not assume_change:
        return FALSE_ALARM if false_alarm is None else numbers.probability(false_alarm=false_alarm)
    if false_alarm is not None:
        raise InvalidInput(
            f"false_alarm={shown(false_alarm)} and assume_change=True exclude each other: where a change is taken for "
            "granted, no alarm is false. Leave one of them out."
        )
    return None


Make = Callable[[Notion, float | None], list[Detection]]
"""The designs to compare, from what a row may cost and the false alarms' probability."""


def _maker(null: Any, alternative: Any, distance: float | None, beta: float, method: str, block: int | None) -> Make:
    """The designs of methods for P and Q, or for P and a distance."""
    if (alternative is None) == (distance is None):
        raise InvalidInput(
            "Give either the alternative Q or, when it is unknown, distance=, the total variation by which it differs "
            "from P at least."
        )
    if distance is None:
        asked = pair_or_question(null, alternative)
        if method == "auto":
            return lambda notion, target: auto_designs(asked, notion, beta, target)
        return lambda notion, target: [design(asked, notion, beta, method, target, block=block)]
    gap, blocks = numbers.probability(distance=distance), BlockTests()
    if method not in ("auto", "paper"):
        raise InvalidInput(f"method={shown(method)} needs the alternative Q. With distance= leave method out.")
    return lambda notion, target: [unknown_design(null, gap, notion, beta, target, blocks)]


def _given_maker(voter: Voter, beta: float, names: tuple[str, str]) -> Make:
    """The one design of a test that was given."""
    return lambda notion, target: [bit_design("paper", voter, notion, beta, target, names)]


def _size(one: Detection) -> float:
    return math.inf if one.accuracy is None else one.accuracy


@known_arguments
def detect_change(
    data: Any,
    null: Any = None,
    alternative: Any = None,
    *,
    distance: float | None = None,
    epsilon: Number | None = None,
    privacy: Any = None,
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
    """Where data in order of time changed from P (``null``) to Q (``alternative``), with privacy.

    The index is that of the first record of the new regime, counted from 0; None where the answer is "no change", as it
    may be unless ``assume_change=True`` takes a change for granted. What is guaranteed: :class:`ChangePoint`.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``; in order of time, or in that of the column ``order``.
        null, alternative, distance, epsilon, privacy, beta, method, block, test, false_alarm, assume_change: as for
            :func:`design_change`.
        max_rows_per_unit: the most rows of one person that count, 1 if only ``unit`` is given: as
            :func:`design_change` and :meth:`ChangePlan.run` explain.
        column: which column holds the records.
        unit: which column says whose row it is; None: each row is a person of its own.
        order: which column gives the order of time; None where the records lie in that order.
        public_order: declare the values of that column public: the answer then names the one at the change too
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
    """
    told = PublicOrder.of(order, public_order)
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
    return plan.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon, besides=told)
