"""What a change-point detector gives back, and what a monitor raises: nothing else leaves the data but noisy sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest.decision.run import Besides, Design, Outcome, R
from privatest.engines import Need
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.facts import Described, Fact, short
from privatest.numbers import Number
from privatest.privacy import Notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FALSE_ALARM = 0.05
"""How probably unchanged data are said to have changed, at most, where nothing else is asked."""
PROMISE = "the promise does not hold for these records. Choose a Q with the smallest shift you care about."
MOST_SUMS = 10_000
"""Of more blocks than these the noisy sums are not given: nobody would look at them one by one."""


def fits_fact(fits: bool | None, words: str) -> tuple[bool | str, str]:
    """Value and words of the fact "fits", of one change and of several."""
    if fits is None:
        return "cannot be checked", "too few noisy sums were released"
    return fits, words


@dataclass(frozen=True)
class ChangePoint(Outcome):
    """Where the data changed from P to Q, or that they did not.

    The index is that of the first record of the new regime, counted from 0: ``data[:index]`` are old and
    ``data[index:]`` are new. 0 means that all records are new, n that none is.

    Guarantees: ``index``, ``changed`` and ``sums`` together are epsilon-differentially private, or meet the notion
    ``privacy`` (replace one record, n public). If the data changed at k*, at least ``accuracy`` records from both ends,
    then abs(index - k*) <= accuracy with probability at least 1 - beta; where "no change" may be answered, a missed
    change counts as a failure too.

    Attributes:
        changed: False for "no change"; None where that was not asked (``assume_change=True``).
        epsilon: privacy loss of this answer, all of it.
        method: "direct", "blocks", "paper", or "fit" for an unknown alternative.
        n: number of records, which is public.
        false_alarm: bound on the probability of changed=True when nothing changed; None where not asked.
        power: bound from below on the probability of changed=True when the data changed at least ``accuracy`` records
            from the end; None where not asked.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such an answer is not private.
        block: records in a block, for the methods that release something of each block; None for "direct".
        sums: the noisy block sums of clamped log P/Q in nats, as the index was found from them; None for methods
            other than "blocks", and for more than 10,000 blocks. Block j holds records from n % block // 2 + j * block
            on. They are part of the one release.
        order_value: the value of the column ``order`` at the index (the year, the date), as a number or as text; None
            unless that column was declared public (``public_order=True``), and where the record has none.
        order_range: likewise at index - accuracy and at index + accuracy, or at the ends of the series.
        privacy: the notion that this answer meets, such as "zcdp(0.5)", where it is not epsilon alone; epsilon is then
            what that notion bounds of the privacy loss, infinite where it bounds none.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the plan that was run; no part of its documents, None in one that was read.
        index: first record of the new regime, counted from 0; None when the answer is "no change".
        accuracy: the index is off by more records than this with probability at most ``beta``, see above; computed from
            P, Q and epsilon, never from the data.
        beta: probability with which the accuracy may be missed.
        persons: whether all rows of one person are hidden together, because a unit was named.
        misfits: the sides of the index, "before" and "after", whose noisy sums are too extreme (about 0.001, both
            sides) for P, or for Q; None where the method releases no sums, or these are too few to tell.
    """

    index: int | None
    accuracy: int
    beta: float
    changed: bool | None
    method: str
    n: int
    false_alarm: float | None = None
    power: float | None = None
    block: int | None = None
    sums: tuple[float, ...] | None = field(default=None, repr=False)
    order_value: int | float | str | None = None
    order_range: tuple[int | float | str | None, ...] | None = None
    misfits: tuple[str, ...] | None = None

    @property
    def fits(self) -> bool | None:
        """Whether the released sums are plausible for P before the index and for Q after it; None: not known."""
        return None if self.misfits is None else not self.misfits

    @property
    def informative(self) -> bool:
        """Whether the accuracy says more than that the change lies somewhere in the series."""
        return 2 * self.accuracy < self.n

    def plot(self, ax: Axes | None = None) -> Axes:
        """The index with its accuracy and, where blocks were released, their noisy sums; never the data."""
        from privatest import pictures

        return pictures.change_point(self, ax)

    KIND: ClassVar[str] = "Change point"

    @property
    def sentence(self) -> str:
        """Whether the records look like P and Q at all; where, or that nothing changed, and how surely."""
        return f"{self._doubt}{self._answer}{self._unchecked}"

    @property
    def _doubt(self) -> str:
        """That the released sums do not look like P before the index, or Q after it; empty where they do."""
        if not self.misfits:
            return ""
        laws = {"before": "P", "after": "Q"}
        sides = " and ".join(f"those {side} the index do not look like {laws[side]}" for side in self.misfits)
        told = "The records do not look like P" if self.index is None else f"Of the records {sides}"
        return f"{told}: {PROMISE} "

    @property
    def _unchecked(self) -> str:
        """What else may look like a change, where the released numbers do not tell whether the laws fit."""
        if self.misfits is not None or self.changed is False:
            return ""
        return (
            " What was released does not tell whether they do; records that are missing or unreadable may look like a "
            "change: privatest.check counts them."
        )

    @property
    def _answer(self) -> str:
        if self.changed is False:
            quiet = f"No change was found in {self.n} records."
            if self.power is None:
                return quiet
            return (
                f"{quiet} One that {self.accuracy} records or more follow would have been found with probability "
                f"{short(self.power, 3)} or more."
            )
        when = "" if self.order_value is None else f" ({self.order_value})"
        span = "" if self.order_range is None else " ({} to {})".format(*self._range)
        place = f"index {self.index}{when} of {self.n}, give or take {self.accuracy} records{span}"
        return (
            f"The records changed at {place}: this is right with probability {1 - self.beta:g} or more, if there was "
            f"one change, at least so far from both ends, {self._if}."
        )

    @property
    def _if(self) -> str:
        """The condition under which the accuracy holds: which records come from which law."""
        old = "P" if self.design is None else self.design.null
        new = "Q" if self.design is None else self.design.alternative
        return f"and if the records before it come from {old} and those after it from {new}"

    @property
    def _range(self) -> list[str]:
        """The ends of ``order_range``, for people."""
        return ["no value" if end is None else str(end) for end in self.order_range or ()]

    def facts(self) -> list[Fact]:
        """What left the data, what is promised of it, and what it cost."""
        better = "better than naming the middle" if self.informative else "no better than naming the middle"
        when = None if self.order_value is None else str(self.order_value)  # a year is no number of thousands
        span = " to ".join(self._range) or None
        where, first = self.index, "the first record of the new regime, counted from 0"
        return [
            Fact(
                "index", *(("no change", "no record begins a new regime") if self.changed is False else (where, first))
            ),
            Fact("order_value", when, "the order's value there, declared public"),
            Fact("order_range", span, "the order's values at index - accuracy and index + accuracy"),
            Fact("changed", self.changed, "whether there was a change at all"),
            Fact(
                "accuracy",
                self.accuracy,
                f"records or better, with probability {1 - self.beta:g}, if records come from P before and Q after",
            ),
            Fact("informative", self.informative, better),
            Fact("fits", *fits_fact(self.fits, "whether the noisy sums look like P before the index and Q after it")),
            Fact("n", self.n, "records, public"),
            Fact("false_alarm", self.false_alarm, "alarms without a change, at most"),
            Fact("power", self.power, f"alarms if {self.accuracy:,} records follow the change, at least"),
            Fact("method", self.method, "" if self.block is None else f"blocks of {self.block:,} records"),
            *self._ending(),
        ]


class PublicOrder(Besides):
    """The values of the column ``order``, at an index that was released and at the ends of its accuracy.

    Guarantees: they are looked up after the draw was recorded, at what was released, in a column that was declared
    public and is the same whatever the records hold, so they cost nothing. Nothing else is read for them.
    """

    @classmethod
    def of(cls, order: str | None, public_order: bool) -> PublicOrder | None:
        """What a run is asked for; refuses a declaration about no column."""
        if not isinstance(public_order, bool | np.bool_):
            raise InvalidInput(f"public_order={shown(public_order)} must be True or False.")
        if public_order and order is None:
            raise InvalidInput(
                "public_order=True was given without order=: it declares the values of that column public. Name the "
                "column that gives the order of time, order=..., or leave public_order out."
            )
        return cls() if public_order else None

    def question(self) -> dict[str, Any]:
        """Nothing but that it is asked for."""
        return {"public_order": True}

    def prepared(self, design: Any, records: Any) -> Any:  # noqa: ARG002 - of the records alone
        """The records themselves; refuses those that cannot tell the values of their order."""
        if not records.has_order_values:
            raise InvalidData(
                "public_order=True cannot be kept here: this source sorts by the column order, but does not hand its "
                "values over as they are. Leave public_order out."
            )
        return records

    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:  # noqa: ARG002 - no draw
        """The change point, with the values."""
        found: ChangePoint = outcome
        if found.index is None:
            return found
        last = found.n - 1
        places = [found.index, found.index - found.accuracy, found.index + found.accuracy]
        value, *ends = records().order_values([min(max(place, 0), last) for place in places])
        return replace(found, order_value=value if found.index <= last else None, order_range=tuple(ends))


class PlanInTime(Design[R]):
    """What asks records in order of time; of each person no more of them than the noise hides."""

    UNFIT: ClassVar[Mapping[str, str]] = {}
    _PUBLIC: ClassVar[type[PublicOrder]] = PublicOrder
    """What is told of a public order."""

    max_rows_per_unit: int

    @property
    def price(self) -> Fraction | Notion | None:
        """Epsilon, exactly, or the notion."""
        return self.privacy.price

    @property
    def need(self) -> Need:
        """Records in order of time, of each person no more than the noise hides."""
        return Need(self.max_rows_per_unit, ordered=True)

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
    ) -> R:
        """Run it once on data in order of time, or in that of the column ``order``.

        Args:
            unit: which column says whose row it is. Of each person the first ``max_rows_per_unit`` rows count; every
                other row, and one that is nobody's, stays in its place and counts as a record that makes no sense. The
                answer is then private for all rows of a person together. How many rows there are, whose they are and
                when they were is taken as public.
            order: which column gives the order of time; None where the records lie in that order.
            public_order: declare the values of that column public, such as the days on which records arrive one by
                one. The answer then also names them: at the index and at the ends of its accuracy (``order_value`` and
                ``order_range``), or at all indices (``order_values``). They are looked up at what was released, in a
                column that is the same whatever the records hold, so they cost no privacy if the declaration is true.
                Without it nothing of the order's values leaves the data.
            odd_epsilon: as for :meth:`PrivateTest.run`; rows that do not count, because of ``unit``, are odd as well.
        """
        where, told = {"column": column, "unit": unit, "order": order}, self._PUBLIC.of(order, public_order)
        payer = {"ledger": ledger, "dataset": dataset, "request": request}
        return self.run_opened(None, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon, besides=told)


@dataclass(frozen=True)
class ChangePoints(Outcome):
    """Where the data changed from P to Q, back to P, and so on; or that they did not change at all.

    Each index is that of the first record of a regime, counted from 0. The series is taken to start with P.

    Guarantees: indices, states and sums together are epsilon-differentially private, or meet the notion ``privacy``
    (replace one record, n public), however many changes are reported. Of a series of P alone any change is reported
    with probability at most ``false_alarm``. Each true change that is at least ``spacing`` records from all others and
    from both ends has, with probability at least 1 - beta, a reported change of the same direction within ``accuracy``
    records.

    Attributes:
        states: "null" or "alternative" for each stretch between them: one more than there are indices. Where the first
            one is "alternative", the series seems to have been of Q from the start.
        epsilon: privacy loss of this answer, all of it.
        n: number of records, which is public.
        block: records in a block.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such an answer is not private.
        sums: the noisy block sums of clamped log P/Q in nats, as the changes were found from them; None for more than
            10,000 blocks. Block j holds records from n % block // 2 + j * block on.
        order_values: the values of the column ``order`` at the indices; None unless that column was declared public.
        privacy: the notion that this answer meets, where it is not epsilon alone, as for :class:`ChangePoint`.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the plan that was run; no part of its documents, None in one that was read.
        indices: first record of each new regime, in ascending order; empty where no change is reported.
        accuracy: a reported change is off by more records than this with probability at most ``beta``; computed from P,
            Q and epsilon, never from the data.
        spacing: records between changes, and to both ends, from which on that holds.
        beta: probability with which the accuracy may be missed.
        false_alarm: bound on the probability of any change when nothing changed.
        persons: whether all rows of one person are hidden together, because a unit was named.
        misfits: "null" or "alternative", whose noisy sums are too extreme (about 0.001, both sides) for that law; None
            where too few were released to tell.
    """

    indices: tuple[int, ...]
    states: tuple[str, ...]
    accuracy: int
    spacing: int
    beta: float
    n: int
    false_alarm: float
    block: int
    sums: tuple[float, ...] | None = field(default=None, repr=False)
    order_values: tuple[int | float | str | None, ...] | None = None
    misfits: tuple[str, ...] | None = None

    KIND: ClassVar[str] = "Change points"

    @property
    def fits(self) -> bool | None:
        """Whether the noisy sums of the stretches are plausible for P and for Q; None: not known."""
        return None if self.misfits is None else not self.misfits

    @property
    def changed(self) -> bool:
        """Whether any change is reported."""
        return len(self.states) > 1 or self.states[0] != "null"

    def plot(self, ax: Axes | None = None) -> Axes:
        """The changes with their accuracy and the blocks' noisy sums; never the data."""
        from privatest import pictures

        return pictures.change_points(self, ax)

    @property
    def sentence(self) -> str:
        """Whether the records look like P and Q at all; where, or that nothing changed, and how surely."""
        if not self.misfits:
            return self._answer
        laws = " and ".join({"null": "P", "alternative": "Q"}[one] for one in self.misfits)
        return f"Records that are taken to come from {laws} do not look like it: {PROMISE} {self._answer}"

    @property
    def _answer(self) -> str:
        sure = f"with probability {1 - self.beta:g} or more for each that is {self.spacing} records from the others"
        if not self.changed:
            return f"No change was found in {self.n} records. A lasting one would have been found {sure}."
        if not self.indices:
            return f"All {self.n} records look like Q, from the start."
        several = len(self.indices) > 1
        return (
            f"The records changed at {self._told()} of {self.n}, give or take {self.accuracy} records: this is right "
            f"{sure if several else sure.replace('for each that is', 'if it is').replace('the others', 'the ends')}, "
            "if every record comes from P or from Q."
        )

    def _told(self) -> str:
        values = self.order_values or (None,) * len(self.indices)
        pairs = zip(self.indices, values, strict=True)
        return ", ".join(str(index) if value is None else f"{index} ({value})" for index, value in pairs)

    def facts(self) -> list[Fact]:
        """What left the data, what is promised of it, and what it cost."""
        sure = f"records or better, with probability {1 - self.beta:g} for each, if every record comes from P or Q"
        return [
            Fact("indices", self._told() or "no change", "the first record of each new regime, counted from 0"),
            Fact("states", ", ".join(self.states), "the regimes, in order"),
            Fact("changed", self.changed, "whether there was a change at all"),
            Fact("accuracy", self.accuracy, sure),
            Fact("spacing", self.spacing, "records from any other change and from both ends, for that"),
            Fact("fits", *fits_fact(self.fits, "whether the noisy sums look like P, and like Q, where they should")),
            Fact("n", self.n, "records, public"),
            Fact("false_alarm", self.false_alarm, "probability of any change where there is none, at most"),
            Fact("block", self.block, "records in a block"),
            *self._ending(),
        ]


@dataclass(frozen=True)
class Alarm(Described):
    """A monitor says that the stream has changed.

    Guarantees: a function of the blocks' noisy sums or bits, so it costs no privacy beyond theirs. If the stream
    changed at k* (the first record of the new regime) and no alarm was raised before k* (``seen`` was at least k*
    + 1), then abs(index - k*) <= accuracy with probability at least 1 - beta.

    Attributes:
        index: estimate of k*: the first record of the new regime, counted from 0 over the whole stream.
        seen: records consumed when the alarm was raised; always the end of a block.
        simulated: True when the monitor's randomness came from a generator of the caller's; no part of its documents.
        accuracy: the index is off by more records than this with probability at most ``beta``, see above; computed from
            P, Q and epsilon, never from the data.
    """

    index: int
    accuracy: int
    seen: int
    simulated: bool = field(default=False, compare=False, repr=False)

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self.simulated

    @property
    def replayed(self) -> None:
        """Never: a monitor releases a block once, and what a state holds is the alarm itself."""
        return

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self.values()

    def plot(self, ax: Axes | None = None) -> Axes:
        """The index with its accuracy, and when the alarm was raised; never the data."""
        from privatest import pictures

        return pictures.alarm(self, ax)

    @property
    def title(self) -> str:
        """What this is."""
        return "Alarm" if self.private else "Alarm, SIMULATED, not private"

    @property
    def sentence(self) -> str:
        """Where, how well, and when."""
        return f"change at record {self.index}, give or take {self.accuracy}; raised after {self.seen} records"

    def facts(self) -> list[Fact]:
        """Where, how well, and when."""
        return [
            Fact("index", self.index, "estimate of the first record of the new regime"),
            Fact("accuracy", self.accuracy, "records, give or take"),
            Fact("seen", self.seen, "records, when it was raised"),
        ]
