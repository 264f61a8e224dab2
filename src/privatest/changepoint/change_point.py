"""The outcome of a change-point detector: the indices, their accuracy, and the noisy sums behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest.decision.run import Besides, Outcome
from privatest.errors import InvalidData, InvalidInput, shown
from privatest.facts import Fact, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FALSE_ALARM = 0.05
"""The default bound on the probability of "changed" if nothing changed."""
PROMISE = "the promise does not hold for these records. Choose a Q with the smallest shift you care about."
MOST_SUMS = 10_000
"""The largest number of blocks whose noisy sums are part of the outcome."""


@dataclass(frozen=True)
class ChangePoint(Outcome):
    """The places at which the data changed from P to Q, or several times between the two, if they did.

    An index is that of the first record of a new regime, counted from 0: ``data[:index]`` are old and ``data[index:]``
    are new. 0 means that all records are new, n that none is. The series is assumed to start with P.

    Guarantees: all values together are epsilon-differentially private, or meet the notion ``privacy`` (replace one
    record, n public), however many changes are reported. If the data changed once, at k*, at least ``accuracy`` records
    from both ends, then abs(index - k*) <= accuracy with probability at least 1 - beta; if "no change" is a
    possible answer, a missed change counts as a failure, too. Of several changes each one that is at least ``spacing``
    records from all others and from both ends has, with probability at least 1 - beta, a reported change of the same
    direction within ``accuracy`` records.

    Attributes:
        indices: first record of each new regime, in ascending order; empty if no change is reported.
        states: "null" or "alternative" for each stretch between the indices, and before and after them. If the first
            one is "alternative", the series looks like Q from the start.
        accuracy: an index is off by more records than this with probability at most ``beta``, see above. It is computed
            from P, Q and epsilon, never from the data.
        beta: the probability of a larger error.
        changed: False for "no change"; None with ``assume_change=True``.
        method: "direct", "blocks", "paper", "fit" for an unknown alternative, or "several" for several changes.
        n: number of records, which is public.
        spacing: the distance in records from other changes and from both ends at which the accuracy holds; None for one
            change.
        false_alarm: bound on the probability of changed=True if nothing changed; None with ``assume_change``.
        power: lower bound on the probability of changed=True if the data changed at least ``accuracy`` records from the
            end; None with ``assume_change`` and for several changes.
        block: number of records in a block, for methods that release something of each block; None for "direct".
        sums: the noisy block sums of clamped log P/Q in nats, from which the changes were computed; None for methods
            without them and for more than 10,000 blocks. Block j begins at record n % block // 2 + j * block. The sums
            are part of the one release.
        order_values: the values of the column ``order`` at the indices (years, dates), as numbers or as text; None
            unless that column was declared public (``public_order=True``), and None for a record without a value.
        order_range: for one change, the values at index - accuracy and at index + accuracy, or at the series' ends.
        misfits: the hypotheses, "null" or "alternative", whose noisy sums are too extreme for that law (two-sided
            probability of about 0.001); None if there are too few sums, or none.
        epsilon: privacy loss of this answer, all of it.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such an answer is not private.
        privacy: the notion that this answer meets, such as "zcdp(0.5)", if it is not epsilon alone; epsilon is then the
            bound on the privacy loss that follows from that notion, or infinite.
        receipt: the ledger's note, with a fingerprint to keep; None without a ledger.
        design: the plan that was run; not part of documents.
        persons: whether all rows of one person are hidden together, because a unit was named.
    """

    indices: tuple[int, ...]
    states: tuple[str, ...]
    accuracy: int
    beta: float
    changed: bool | None
    method: str
    n: int
    spacing: int | None = None
    false_alarm: float | None = None
    power: float | None = None
    block: int | None = None
    sums: tuple[float, ...] | None = field(default=None, repr=False)
    order_values: tuple[int | float | str | None, ...] | None = None
    order_range: tuple[int | float | str | None, ...] | None = None
    misfits: tuple[str, ...] | None = None

    KIND: ClassVar[str] = "Change point"

    @property
    def index(self) -> int | None:
        """The first record of the new regime (of the first, if several), counted from 0; None for "no change"."""
        return self.indices[0] if self.indices else None

    @property
    def order_value(self) -> int | float | str | None:
        """The value of the column ``order`` at the index; None unless it was declared public."""
        return self.order_values[0] if self.order_values else None

    @property
    def several(self) -> bool:
        """Whether the plan was for several changes."""
        return self.spacing is not None

    @property
    def fits(self) -> bool | None:
        """Whether the released sums fit P and Q where they should; None if that cannot be checked."""
        return None if self.misfits is None else not self.misfits

    @property
    def informative(self) -> bool:
        """Whether the accuracy is better than naming the middle of the series."""
        return 2 * self.accuracy < self.n

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the indices with their accuracy and, if blocks were released, their noisy sums; never the data."""
        from privatest import pictures

        return pictures.change_point(self, ax)

    @property
    def sentence(self) -> str:
        """The answer, its probability of being right, and a warning if the records do not look like P or Q."""
        return f"{self._doubt}{self._several if self.several else self._one}{self._unchecked}"

    @property
    def _doubt(self) -> str:
        """A warning that the released sums do not look like P, or like Q, where they should; empty if they do."""
        if not self.misfits:
            return ""
        laws = {"null": "P", "alternative": "Q"}
        if self.several:
            taken = " and ".join(laws[one] for one in self.misfits)
            return f"Records that are taken to come from {taken} do not look like it: {PROMISE} "
        places = {"null": "before", "alternative": "after"}
        sides = " and ".join(f"those {places[one]} the index do not look like {laws[one]}" for one in self.misfits)
        unlike = "The records do not look like P" if self.index is None else f"Among the records {sides}"
        return f"{unlike}: {PROMISE} "

    @property
    def _unchecked(self) -> str:
        """Return a note on what else may look like a change, if the release does not show whether the laws fit."""
        if self.several or self.misfits is not None or self.changed is False:
            return ""
        return (
            " What was released does not tell whether they do; records that are missing or unreadable may look like a "
            "change: privatest.check counts them."
        )

    @property
    def _one(self) -> str:
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
    def _several(self) -> str:
        sure = f"with probability {1 - self.beta:g} or more for each that is {self.spacing} records from the others"
        if not self.changed:
            return f"No change was found in {self.n} records. A lasting one would have been found {sure}."
        if not self.indices:
            return f"All {self.n} records look like Q, from the start."
        if len(self.indices) == 1:
            sure = sure.replace("for each that is", "if it is").replace("the others", "the ends")
        return (
            f"The records changed at {self._listed} of {self.n}, give or take {self.accuracy} records: this is right "
            f"{sure}, if every record comes from P or from Q."
        )

    @property
    def _if(self) -> str:
        """The condition under which the accuracy holds."""
        old = "P" if self.design is None else self.design.null
        new = "Q" if self.design is None else self.design.alternative
        return f"and if the records before it come from {old} and those after it from {new}"

    @property
    def _range(self) -> list[str]:
        """The ends of ``order_range`` as texts."""
        return ["no value" if end is None else str(end) for end in self.order_range or ()]

    @property
    def _listed(self) -> str:
        """The indices, with the values of the order if these are public."""
        values = self.order_values or (None,) * len(self.indices)
        pairs = zip(self.indices, values, strict=True)
        return ", ".join(str(index) if value is None else f"{index} ({value})" for index, value in pairs)

    def facts(self) -> list[Fact]:
        """Return the released values, their guarantees and their price."""
        promise = f"records or better, with probability {1 - self.beta:g}"
        unsure = "cannot be checked", "too few noisy sums were released"
        where = "like P, and like Q, where they should" if self.several else "like P before the index and Q after it"
        if self.several:
            own = [
                Fact("indices", self._listed or "no change", "the first record of each new regime, counted from 0"),
                Fact("states", ", ".join(self.states), "the regimes, in order"),
                Fact("changed", self.changed, "whether there was a change at all"),
                Fact("accuracy", self.accuracy, f"{promise} for each, if every record comes from P or Q"),
                Fact("spacing", self.spacing, "records from any other change and from both ends, for that"),
            ]
        else:
            quiet = self.changed is False
            index = (
                ("no change", "no record begins a new regime")
                if quiet
                else (self.index, "the first record of the new regime, counted from 0")
            )
            when = None if self.order_value is None else str(self.order_value)  # a year is no number of thousands
            better = "better than naming the middle" if self.informative else "no better than naming the middle"
            own = [
                Fact("index", *index),
                Fact("order_value", when, "the order's value there, declared public"),
                Fact(
                    "order_range",
                    " to ".join(self._range) or None,
                    "the order's values at index - accuracy and index + accuracy",
                ),
                Fact("changed", self.changed, "whether there was a change at all"),
                Fact("accuracy", self.accuracy, f"{promise}, if records come from P before and Q after"),
                Fact("informative", self.informative, better),
            ]
        return [
            *own,
            Fact("fits", *(unsure if self.fits is None else (self.fits, f"whether the noisy sums look {where}"))),
            Fact("n", self.n, "records, public"),
            Fact("false_alarm", self.false_alarm, "probability of any change where there is none, at most"),
            Fact("power", self.power, f"alarms if {self.accuracy:,} records follow the change, at least"),
            Fact("method", self.method, "" if self.block is None else f"blocks of {self.block:,} records"),
            *self._ending(),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON: every field, and every other fact by its name."""
        return {**super().to_dict(), "index": self.index, "order_value": self.order_value}


class PublicOrder(Besides):
    """The values of the column ``order`` at the released indices and at the ends of their accuracy.

    Guarantees: they are looked up after the draw was recorded, at the released indices, in a column that was declared
    public and does not depend on the records, so they cost nothing. Nothing else is read for them.
    """

    @classmethod
    def of(cls, order: str | None, public_order: bool) -> PublicOrder | None:
        """Return the addition to a run; None without ``public_order``. Raises InvalidInput without a column."""
        if not isinstance(public_order, bool | np.bool_):
            raise InvalidInput(f"public_order={shown(public_order)} must be True or False.")
        if public_order and order is None:
            raise InvalidInput(
                "public_order=True was given without order=: it declares the values of that column public. Name the "
                "column that gives the order of time, order=..., or leave public_order out."
            )
        return cls() if public_order else None

    def question(self) -> dict[str, Any]:
        """Return the setting that distinguishes a request with it from one without."""
        return {"public_order": True}

    def prepared(self, design: Any, records: Any) -> Any:  # noqa: ARG002 - the same for every design
        """Return the records; raises InvalidData if their source does not hand over the values of the order."""
        if not records.has_order_values:
            raise InvalidData(
                "public_order=True cannot be kept here: this source sorts by the column order, but does not hand its "
                "values over as they are. Leave public_order out."
            )
        return records

    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:  # noqa: ARG002 - no draw
        """Return the change point with the values."""
        released: ChangePoint = outcome
        if not released.indices:
            return released
        last, places = released.n - 1, list(released.indices)
        if not released.several:
            places += [released.indices[0] - released.accuracy, released.indices[0] + released.accuracy]
        values = records().order_values([min(max(place, 0), last) for place in places])
        pairs = zip(released.indices, values, strict=False)
        shown = tuple(value if index <= last else None for index, value in pairs)
        ends = None if released.several else tuple(values[1:])
        return replace(released, order_values=shown, order_range=ends)
