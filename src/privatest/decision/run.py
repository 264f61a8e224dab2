"""Designs and releases: one body of ``run``, one codec for documents, and the facts that all releases end with.

:class:`Design` is the base of everything that can be run, :class:`Outcome` of everything that a run returns. A
:class:`Release` is the outcome of a test: the decision, the noisy statistic and its p-value.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np

from privatest import numbers
from privatest.charge_before_release import ANYBODY, Draw, Receipt, make_charge, run_charged
from privatest.decision.pvalue import Fits, evalue_of_pvalue
from privatest.errors import Infeasible, InvalidInput, shown
from privatest.facts import Described, Fact, Probability, plain_value, short
from privatest.json_documents import (
    check_fields,
    check_format,
    document_from_json,
    fields_from_json,
    fields_to_json,
    reading,
)
from privatest.numbers import Number
from privatest.privacy import (
    Notion,
    Pure,
    RandomSource,
    Tulap,
    seeded_source,
    system_source,
)
from privatest.privacy.composition import adds_up_within, together
from privatest.privacy.notion import notion_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records
    from privatest.scores import Cells


def hidden_fact(neighbours: str, *, persons: bool) -> Fact:
    """Return the fact about the change of the data that is hidden.

    Args:
        neighbours: which data sets are neighbours.
        persons: whether all rows of one person are hidden together; else single records are.
    """
    whose = "all rows of one person" if persons else "one record"
    change = {"replace": "replacing", "add-remove": "adding or removing"}.get(neighbours, neighbours)
    return Fact("neighbours", neighbours, f"hides {change} {whose}")


HARDLY, COIN = 0.1, 0.05
"""A test whose advantage (1 - alpha - beta) is below the first number is described as hardly better than a coin. One
call that designs and runs a test refuses an advantage below the second number before anything is charged."""


def advantage_fact(alpha: float, beta: float) -> Fact:
    """Return the fact of a test's advantage, which is 0 for a coin that ignores the data."""
    advantage = 1 - alpha - beta
    hardly = "; hardly better than a coin that ignores the data" if advantage < HARDLY else ""
    return Fact("advantage", advantage, f"1 - alpha - beta{hardly}")


def check_better_than_a_coin(alpha: float, beta: float, n: int) -> None:
    """Raise Infeasible, before a charge, for a test that is little better than a coin."""
    if 1 - alpha - beta < COIN:
        raise Infeasible(
            f"On {n} records the test has a type I error of {alpha:.3g} and a type II error of {beta:.3g}. A coin that "
            "ignores the data has 1 in all, so the answer would tell next to nothing. Nothing was charged. Use more "
            "records, a larger budget of privacy, or hypotheses that are further apart."
        )


def cost_fact(notion: Notion, what: str) -> Fact:
    """Return the fact about the price of ``what``, such as "of one run": an epsilon, or a notion that is not pure."""
    if isinstance(notion, Pure):
        return Fact("epsilon", notion.epsilon, f"privacy loss {what}")
    return Fact("privacy", str(notion), f"the price {what}")


def check_costs(costs: Sequence[Notion | None], notion: Notion) -> None:
    """Raise InvalidInput unless draws that meet ``costs``, one after the other, meet the notion together."""
    if not adds_up_within(costs, notion):
        listed = " and ".join("nothing" if cost is None else str(cost) for cost in costs)
        raise InvalidInput(f"The noise meets {listed}, which together is not {notion_words(notion)}. Use more noise.")


@dataclass(frozen=True, kw_only=True)
class Outcome(Described):
    """The result of a run on data: a frozen dataclass of all values that left the data, and their price.

    Documents leave out the fields ``design`` and ``drawn``, so these are None in an outcome that was read from one.

    Attributes:
        epsilon: privacy loss of this answer, all of it.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: whether the caller's generator drew the noise. Such an answer is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the design that was run.
        drawn: what was drawn from the data, of which this answer is made; it may be published as the answer may.
        privacy: the notion that this answer meets, if it is not epsilon alone.
        persons: whether all rows of one person are hidden together, because a unit was named; else single records are.
        odd_share: about the share of records that made no sense to the question (missing, unreadable, outside of what
            it is about), with noise; None without ``odd_epsilon``.
        odd_margin: the largest distance of that share from the exact one, with probability 95%.
        odd_epsilon: the part of epsilon that it cost.
    """

    KIND: ClassVar[str]

    epsilon: float
    neighbours: str = "replace"
    simulated: bool = False
    receipt: Receipt | None = field(default=None, compare=False, repr=False)
    design: Any = field(default=None, compare=False, repr=False)
    drawn: Any = field(default=None, compare=False, repr=False)
    privacy: str | None = None
    persons: bool = False
    odd_share: float | None = None
    odd_margin: float | None = None
    odd_epsilon: float | None = None

    @property
    def replayed(self) -> Receipt | None:
        """The receipt, where this is an answer recorded earlier: nothing was charged, the data given were not read."""
        return self.receipt if self.receipt is not None and self.receipt.replayed else None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: a notion is met, with randomness from the operating system."""
        return (self.privacy is not None or math.isfinite(self.epsilon)) and not self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON (infinity as the text "inf"): every field, and other facts by name."""
        odd = () if self.odd_share is not None else ("odd_share", "odd_margin", "odd_epsilon")
        left_out = {"design", "drawn", *odd, *(name for name in ("privacy", "persons") if not getattr(self, name))}
        written = {one.name: plain_value(getattr(self, one.name)) for one in fields(self) if one.name not in left_out}
        receipt = None if self.receipt is None else self.receipt.to_dict()
        paid = {"private": self.private, "receipt": receipt, "replayed": self.replayed is not None}
        return {**self.values(), **written, **paid}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the outcome that :meth:`to_dict` wrote, without its design and its draw."""
        with reading(f"the {cls.__name__}"):
            names = [one.name for one in fields(cls) if one.name not in ("receipt", "design", "drawn")]
            values = {name: document[name] for name in names if name in document}
            values = {name: _as_tuples(value) for name, value in values.items()}
            values["epsilon"] = math.inf if values["epsilon"] == "inf" else float(values["epsilon"])
            values["receipt"] = Receipt.from_dict(document.get("receipt"))
            return cls(**values)

    @property
    def title(self) -> str:
        """The kind of outcome and, if it is known, the question."""
        return (
            self.KIND if self.design is None else f"{self.KIND}: {self.design.title[:1].lower()}{self.design.title[1:]}"
        )

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The answer in a sentence or two, without what it costs."""

    def _ending(self) -> list[Fact]:
        """The facts that every outcome ends with: what it cost, whom that protects, and what the ledger noted."""
        private = f"{self.epsilon:g}-differentially private" if self.privacy is None else f"meets {self.privacy}"
        loss = "privacy loss of this answer, all of it"
        if self.epsilon == 0 and self.privacy is None:
            private, loss = "as private as the noised totals are", "nothing beyond what the noise in the totals cost"
        if not self.private:
            private = "SIMULATED, not private" if self.simulated else "NOT PRIVATE: no noise hides single records"
        noted = []
        if self.receipt is not None:
            note = f"this answer is not new: {self.receipt.note}" if self.replayed else self.receipt.note
            noted = [
                Fact("receipt.note", note, "what the ledger noted"),
                Fact("receipt.fingerprint", self.receipt.fingerprint, "of the ledger, to keep elsewhere"),
            ]
        odd = [
            Fact("odd_share", self.odd_share, "of the records made no sense to this question; with noise"),
            Fact("odd_margin", self.odd_margin, "the noise in that share, at most, with probability 95%"),
            Fact("odd_epsilon", self.odd_epsilon, "the part of epsilon that it cost"),
        ]
        return [
            *(odd if self.odd_share is not None else []),
            Fact("epsilon", self.epsilon, loss)
            if self.privacy is None
            else Fact("privacy", self.privacy, "what this answer costs, all of it"),
            hidden_fact(self.neighbours, persons=self.persons),
            Fact("private", self.private, private),
            *noted,
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Return the design's picture with this outcome in it; never the data."""
        if self.design is None:
            raise InvalidInput(
                "This release was read from a document, which does not hold its design. Draw it with the design it "
                "came from: design.plot(release=release)."
            )
        picture: Axes = self.design.plot(ax, release=self)
        return picture


class Interval(NamedTuple):
    """The two ends of an interval."""

    low: float
    high: float


class WithInterval:
    """Base of outcomes that have an ``interval`` at one ``confidence``, and others at no further cost."""

    interval: tuple[float, float]
    confidence: float
    design: Any
    drawn: Any

    def confidence_interval(self, confidence_level: float | None = None) -> Interval:
        """Return the interval at another confidence level, with its ends ``.low`` and ``.high``; it costs nothing.

        Args:
            confidence_level: the smallest probability with which the interval holds the true value; None: that of
                ``interval``.
        """
        if confidence_level is None or confidence_level == self.confidence:
            return Interval(*self.interval)
        level = float(numbers.probability(confidence_level=confidence_level))
        if self.drawn is None:
            raise InvalidInput(
                f"This release was read from a document: it has an interval at confidence {self.confidence:g} alone."
            )
        return Interval(*self.design.interval(self.drawn, level))


def _as_tuples(value: Any) -> Any:
    """Return the value with tuples in place of lists at every depth, because JSON writes tuples as lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


R = TypeVar("R", bound=Outcome)


class Besides(ABC):
    """An addition to a run's own answer, which is free or has its own price."""

    epsilon: Fraction | int = 0
    """The exact price of the addition."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """Return the settings that distinguish one request of a ledger from another, ready for JSON."""

    def prepared(self, design: Any, records: Any) -> Any:  # noqa: ARG002 - most need no other form
        """Return the records in the form that the draw needs; refuses records without it. Nothing is charged yet."""
        return records

    def draw(self, design: Any, records: Any, source: RandomSource) -> Draw:  # noqa: ARG002 - not all draw
        """Draw the noise of the addition, if it has any."""
        return None

    @abstractmethod
    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:
        """Return the outcome with the addition.

        Args:
            design: the design that was run.
            outcome: its own.
            draw: the result of :meth:`draw`.
            records: opens the data. Only what is public may be looked up there: the draw is on record by then.
        """


ODD_CONFIDENCE = 0.95
"""The probability with which the noisy share of odd records lies within its margin."""


@dataclass(frozen=True)
class OddShare(Besides):
    """A noisy share of odd records, released beside a design's own release: how many made no sense to the question.

    A record that is missing, unreadable or outside of what a question is about has a fixed score, so a release alone
    cannot show that a whole column was of that kind.

    Guarantees: the noisy number is epsilon-differentially private. One person moves the exact number by at most
    ``noise.width``, the rows that count for one person, whether they are replaced or come and go. Together with the
    design's release it costs the sum of both prices, which is charged once.

    Attributes:
        noise: the noise that is added to the number of odd records.
    """

    noise: Tulap

    @classmethod
    def of(cls, design: Any, odd_epsilon: Number | None) -> OddShare | None:
        """Return the share that a run of the design releases besides; None without ``odd_epsilon``."""
        if odd_epsilon is None:
            return None
        epsilon = numbers.positive(odd_epsilon=odd_epsilon)
        if design.price is None:
            raise InvalidInput(
                f"odd_epsilon={shown(odd_epsilon)} cannot be given to a test that is not private: no noise hides "
                "single records in its release anyway. Count the odd ones with privatest.check."
            )
        return cls(Tulap(epsilon, design.need.rows))

    @property
    def epsilon(self) -> Fraction:  # type: ignore[override]  # read-only here
        """The exact price."""
        return self.noise.epsilon

    def margin(self, n: int) -> float:
        """Return the largest distance of the share of n records from the exact one, with probability 95%."""
        return min(self.noise.beyond((1 - ODD_CONFIDENCE) / 2) / n, 1.0)

    def question(self) -> dict[str, Any]:
        """Return the setting that distinguishes one request of a ledger from another."""
        return {"odd_epsilon": str(self.epsilon)}

    def prepared(self, design: Any, records: Any) -> Any:
        """The records with a count of the odd ones, of one reading with their total; a series is read once more."""
        from privatest.engines import Tallied  # planning needs no engine

        return records if design.need.ordered or hasattr(records, "both") else Tallied(records)

    def draw(self, design: Any, records: Any, source: RandomSource) -> Draw:
        """Return the noisy number of odd records, of both groups where there are two: a person is in one of them."""
        from privatest.engines import Tallied  # planning needs no engine
        from privatest.engines.records import counting_score  # likewise

        cells = counting_score(design.record_cells)
        odd = sum(Tallied(one).odd(cells) for one in getattr(records, "both", (records,)))
        return str(odd + self.noise.draw(source))

    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:  # noqa: ARG002 - drawn
        """Return the outcome with the share."""
        # A hidden number: about the share of the expected one.
        n = int(np.sum(design.n if getattr(outcome, "n", None) is None else outcome.n))
        cost = together(design.price, self.epsilon)
        return replace(
            outcome,
            epsilon=cost.epsilon if isinstance(cost, Notion) else float(cost),
            privacy=cost.text if isinstance(cost, Notion) else None,
            odd_share=float(min(max(Fraction(draw) / n, Fraction(0)), Fraction(1))),
            odd_margin=self.margin(n),
            odd_epsilon=float(self.epsilon),
        )


class Designed(Described):
    """Base of all designs and plans: frozen dataclasses that are written as their fields and a format."""

    FORMAT: ClassVar[str]
    KIND: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the design exactly: its format and all its fields."""
        return {"format": self.FORMAT, **fields_to_json(self)}

    @classmethod
    def _read(cls, document: dict[str, Any]) -> Self:
        """Read a document of the right format."""
        return cls(**fields_from_json(cls, document))

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Self:
        """The design that :meth:`to_dict` wrote. Raises InvalidDocument if its noise does not meet its notion."""
        check_format(document, cls.FORMAT, cls.KIND)
        with reading(f"the {cls.KIND}"):
            design = cls._read(document)
            check_fields(document, design.to_dict(), f"the {cls.KIND}")
            return design

    def to_json(self) -> str:
        """Return JSON text from which :meth:`from_json` restores the design exactly."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the design that :meth:`to_json` wrote."""
        return cls.from_dict(document_from_json(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    @abstractmethod
    def __hash__(self) -> int: ...


class Design(Designed, Generic[R]):
    """A designed question: frozen, printable and serialisable; :meth:`run` answers it from data.

    Guarantees of every run: a refusal leaves nothing charged; the draw is on record, with the charge, before anything
    is made of it, a second draw included; a run that fails or is killed later goes on from that record; only the
    outcome leaves.
    """

    UNFIT: ClassVar[Mapping[str, str]] = {"order": "it does not look at the order of the records. Leave order out"}
    """The arguments among ``unit`` and ``order`` that this design refuses, with the reason."""

    epsilon: Any  # a field or a property: the privacy loss of one run, infinite if it is not private
    max_rows_per_unit: int  # a field: the largest number of rows of one person that count and are protected together
    neighbours: str = "replace"  # which pairs of data sets the guarantee compares
    two_sided: bool = False  # whether the null lies between two thresholds
    steps: int = 1  # number of draws, each of which depends on those before

    @property
    def when_null(self) -> str:
        """The statistics that lead to the decision "null", in words; empty if that takes more than one threshold."""
        return ""

    @property
    def privacy(self) -> Notion:
        """The notion of stability that every run meets."""
        return Pure(self.epsilon)

    @property
    def record_cells(self) -> Cells:
        """The cells that distinguish records. A record in none of them is odd."""
        cells: Cells = self.score.cells  # type: ignore[attr-defined]
        return cells

    @property
    @abstractmethod
    def price(self) -> Fraction | Notion | None:
        """The exact cost of a run: epsilon, or a notion that is not pure; None if it is not private."""

    @property
    def need(self) -> Need:
        """The promise that records must make: at most ``max_rows_per_unit`` rows of one person."""
        from privatest.engines import Need  # planning needs no engine

        return Need(rows=self.max_rows_per_unit)

    @property
    def _rows(self) -> int | None:
        """The largest number of rows of one person, if that is more than one; else None."""
        return self.max_rows_per_unit if self.max_rows_per_unit > 1 else None

    @property
    @abstractmethod
    def outcome(self) -> type[R]:
        """The class of its releases."""

    @abstractmethod
    def question(self) -> dict[str, Any]:
        """Return everything besides the data and their place on which an outcome depends, ready for JSON."""

    def opened(self, source: Any, **where: Any) -> Any:
        """Open the records of a source. Raises InvalidInput if they do not promise what this design needs.

        Args:
            source: the data, as for :meth:`run`.
            **where: ``column``, ``unit`` and ``order``, as for :meth:`run`.
        """
        from privatest import engines  # planning needs none of them

        return engines.open_for(self.need, source, **where)

    @abstractmethod
    def check(self, records: Records) -> None:
        """Refuse records of a wrong type or number, and laws that cannot be computed, before anything is drawn.

        Args:
            records: open records, see :meth:`opened`.
        """

    @abstractmethod
    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Sum the records and draw the noise: everything that leaves the data, and nothing that may not leave.

        Args:
            records: open records that :meth:`check` let pass.
            source: where randomness comes from.
        """

    def further(self, draw: Any, records: Callable[[], Any], source: RandomSource) -> Draw:  # noqa: ARG002 - of two steps
        """Return the draw, with what a second step draws after looking at it.

        The draw is on record by then. What is computed from it here may fail, be killed or take its time.

        Args:
            draw: the result of :meth:`draw`.
            records: opens the records, as for :meth:`draw`.
            source: where randomness comes from.
        """
        first: Draw = draw
        return first

    @abstractmethod
    def release(self, draw: Any, *, simulated: bool = False) -> R:
        """Compute the outcome of a draw: post-processing, which costs no privacy and needs no data.

        Args:
            draw: the result of :meth:`draw` or, with a second step, of :meth:`further`.
            simulated: whether the caller's generator drew it. The outcome then says that it is not private.
        """

    def run(
        self,
        data: Any,
        *,
        column: str | None = None,
        unit: str | None = None,
        order: str | None = None,
        odd_epsilon: Number | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> R:
        """Run the design once on data, which have exactly n records if the design has a public n.

        Args:
            data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: the column that holds the records.
            unit: the column that names the person of each row. A person with m rows counts as min(m, k) records, where
                k is ``max_rows_per_unit`` (1 if the design has no such setting), and all rows are hidden together. Sums
                add all rows of a person, scaled to k rows if there are more. If cells are counted (tables and tests by
                them, fits, the best possible tests, the first of two steps), k rows of each person are drawn without
                looking at them. If order matters, the first k rows count. Rows without a person are not used.
            order: the column that gives the order of time; refused by designs that do not use the order.
            odd_epsilon: also release, for this much more epsilon, a noisy share of the records that made no sense to
                the question (``release.odd_share``): missing, unreadable, or outside of what it is about.
            ledger, dataset, request: charge epsilon to the data set's budget before anything is released. The ledger is
                a :class:`privatest.Ledger`, or the path or URL of an existing one. The same request again returns the
                same release, free of charge.
            rng: only for simulations: a seeded generator in place of the operating system's randomness. The release is
                then called simulated, and is not private.
        """
        where = {"column": column, "unit": unit, "order": order}
        payer = {"ledger": ledger, "dataset": dataset, "request": request}
        return self.run_opened(None, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)

    def run_opened(
        self,
        records: Records | None,
        data: Any,
        where: Mapping[str, str | None],
        *,
        ledger: Any,
        dataset: str | None,
        request: str | None,
        rng: np.random.Generator | None,
        odd_epsilon: Number | None = None,
        besides: Besides | None = None,
    ) -> R:
        """Do what :meth:`run` does, on records that may be open already.

        Args:
            records: open records; None: they are opened from ``data``.
            data: where they came from, for the ledger.
            where: ``column``, ``unit`` and ``order``, as for :meth:`run`.
            ledger, dataset, request, rng, odd_epsilon: as for :meth:`run`.
            besides: an addition to the design's own answer; None: there is none.
        """
        additions = [one for one in (besides, OddShare.of(self, odd_epsilon)) if one is not None]
        for name, reason in self.UNFIT.items():
            if where.get(name) is not None:
                raise InvalidInput(f"{name}={shown(where[name])} cannot be given to a {self.KIND}: {reason}.")
        charge = make_charge(
            ledger,
            dataset,
            request,
            price=None if self.price is None else reduce(together, (one.epsilon for one in additions), self.price),
            design=lambda: reduce(or_, (one.question() for one in additions), self.question() | self._named(where)),
            simulated=rng is not None,
            data=data,
            neighbours=self.neighbours,
            unit=where["unit"] if where.get("unit") is not None else _unit_of(data if records is None else records),
        )
        source = system_source if rng is None else seeded_source(rng)
        ready: list[Any] = []  # the records, once they are open

        def opened() -> Any:
            if not ready:
                origin: dict[str, Any] = {"source": data, **where} if records is None else {"source": records}
                arrived = reduce(lambda records, one: one.prepared(self, records), additions, self.opened(**origin))
                self.check(arrived)
                ready.append(arrived)
            return ready[0]

        # With additions a list is drawn: the design's own draw, and that of each addition.
        def draw() -> Draw:
            own = self.draw(opened(), source)
            return [own, *(one.draw(self, opened(), source) for one in additions)] if additions else own

        def release(drawn: Any) -> R:
            own, *more = drawn if additions else [drawn]
            outcome = replace(self.release(own, simulated=rng is not None), drawn=own)
            for one, its in zip(additions, more, strict=True):
                outcome = one.added(self, outcome, its, opened)
            return outcome

        def further(drawn: Any) -> Draw:
            own, *more = drawn if additions else [drawn]
            own = self.further(own, opened, source)
            return [own, *more] if additions else own

        run_outcome = run_charged(charge, draw, release, self.outcome.from_dict, further if self.steps > 1 else None)
        return replace(run_outcome, design=self, persons=_of_persons(data, where))

    def to_dp_event(self) -> Any:
        """Return one run as an event of ``dp_accounting`` (extra ``accounting``), for its default accountants."""
        from privatest.privacy.composition import event_of  # an extra

        self._check_private("has no event")
        return event_of(self.privacy)

    def privacy_loss_distribution(self) -> Any:
        """Return the privacy-loss distribution of one run, by ``dp_accounting`` (extra ``accounting``)."""
        from privatest.privacy.composition import loss_distribution  # an extra

        self._check_private("has no privacy-loss distribution")
        return loss_distribution(self.privacy)

    def _check_private(self, lack: str) -> None:
        """Refuse a design that is not private."""
        if self.privacy.price is None:
            raise InvalidInput(f"A {self.KIND} that is not private (epsilon=inf) {lack}.")

    def evalue(self, statistic: float | None, pvalue: float | None) -> float | None:  # noqa: ARG002 - of single tests
        """Return the e-value of a release with this statistic and p-value; None if it has neither.

        Args:
            statistic: the noisy statistic that was released, or None.
            pvalue: the p-value of that statistic, or None.
        """
        return None if pvalue is None else evalue_of_pvalue(pvalue)

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the names of columns that distinguish one request of a ledger from another."""
        return {name: value for name, value in where.items() if name == "column" or value is not None}


def _of_persons(data: Any, where: Mapping[str, str | None]) -> bool:
    """Whether a unit was named, in the call or when the records were opened."""
    from privatest.engines import Promise  # planning needs no engine

    promise = getattr(data, "promise", None)
    return where.get("unit") is not None or (isinstance(promise, Promise) and promise.rows is not None)


def _unit_of(data: Any) -> str | None:
    """Return ``ANYBODY`` for opened records of persons, whose column is not known; else None."""
    promise = getattr(data, "promise", None)
    return None if getattr(promise, "rows", None) is None else ANYBODY


class Budgeted(Design[R]):
    """A design with a notion of privacy and a maximum number of rows per person, and the properties they imply."""

    REQUEST_KEY: ClassVar[str]
    """The name of the question in a ledger's request."""

    notion: Any  # a field or a property: the notion that every run meets

    @property
    def privacy(self) -> Notion:
        """The notion of stability that every run meets."""
        notion: Notion = self.notion
        return notion

    @property
    def epsilon(self) -> float:
        """Privacy loss of one run; infinite if the notion bounds none."""
        return float(self.notion.epsilon)

    @property
    def price(self) -> Fraction | Notion | None:
        """The exact cost of a run."""
        return self.privacy.price

    def question(self) -> dict[str, Any]:
        """Return the whole design."""
        return {self.REQUEST_KEY: self.to_dict()}

    @property
    def _budget_argument(self) -> dict[str, Any]:
        """The notion as arguments of a function that designs: ``epsilon`` or ``privacy``."""
        return {"epsilon": self.notion.loss} if isinstance(self.notion, Pure) else {"privacy": self.notion}

    @property
    def _privacy_text(self) -> str | None:
        """The text of the notion in a release; None if epsilon alone describes it."""
        return None if isinstance(self.notion, Pure) else self.notion.text


Decision = Literal["null", "alternative"]
FITS = {"neither": "the data fit NEITHER of the two; the nearer one is", "both": "the data fit both; the nearer one is"}
"""How the decision is told where the data fit not just one of the two."""
CUSTOMARY = 0.05
"""A p-value below this is read as "P is rejected" by custom; a decision that says otherwise is explained."""


@dataclass(frozen=True)
class Release(Outcome):
    """The outcome of running a test on data.

    Guarantees: the triple (decision, statistic, pvalue) is epsilon-differentially private, being computed from
    the noisy total alone; a release with infinite epsilon carries the decision only.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they look like Q).
        statistic: the noisy sum of clamped log-likelihood ratios, in nats; large values speak for P. Of a test that was
            made with release="decision" its level: a whole number, from 1 on where the decision is "null".
        pvalue: probability, were P true, of a statistic as small as this one of n records; exact. Where P is a set, the
            largest over it; of a two-sided test, twice the smaller tail.
        pvalue_alternative: probability, were Q true, of a statistic as large as this one (on Q's own side, where that
            is two-sided); the largest over Q where that is a set.
        fits: the hypotheses that the data are consistent with, at level 0.001: "null", "alternative", "both" or
            "neither". "neither" means that the data came from something else, whatever the decision between the two.
        epsilon: privacy loss of this release; ``inf`` means it is not private.
        n: number of records, which is public; with neighbours "add-remove", the number the test was designed for,
            whatever the data's.
        test: name of the test.
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the test that was run, for :meth:`plot`; no part of its documents, None in one that was read.
        odd_share, odd_margin, odd_epsilon: about the share of records that made no sense to the test, if it was asked
            for: as for every outcome.
        released: "statistic"; "level" where the statistic is the level of a decision, and p-values are those of levels;
            "decision" where nothing else leaves: statistic and p-values are then None.
        privacy: the notion that this release meets, such as "zcdp(0.5)", where it is not epsilon alone; epsilon is then
            what that notion bounds of the privacy loss, infinite where it bounds none.
        persons: whether all rows of one person are hidden together, because a unit was named.
    """

    decision: Decision
    statistic: float | None
    pvalue: float | None
    n: int
    test: str
    pvalue_alternative: float | None = None
    fits: Fits | None = None
    released: str = "statistic"

    KIND: ClassVar[str] = "Release"
    SMALLEST_PVALUE: ClassVar[float] = 1e-300
    """Smaller p-values are told as such: a double has no digits of them."""
    AWAY: ClassVar[str] = "the alternative Q"

    @property
    def evalue(self) -> float | None:
        """The evidence against P in this release, whose mean under P is at most 1, so that it combines with others.

        See :func:`privatest.results.combine_evalues`. It is None in a release that was read from a document,
        which does not hold its test, and in a release with neither a statistic nor a p-value.
        """
        evalue: float | None = None if self.design is None else self.design.evalue(self.statistic, self.pvalue)
        return evalue

    def confidence_interval(
        self, confidence_level: float = 0.95, *, between: tuple[float, float] | None = None
    ) -> Interval:
        """Return the interval of :meth:`PrivateTest.interval`, with its ends ``.low`` and ``.high``; it costs nothing.

        Args:
            confidence_level: the smallest probability with which the interval holds the true value.
            between: two values between which the parameter lies; None: far beyond P and Q.
        """
        if self.design is None:
            raise InvalidInput("This release was read from a document: use test.interval(release) with its test.")
        return Interval(*self.design.interval(self, between=between, confidence=confidence_level))

    @property
    def sentence(self) -> str:
        """The decision, and how it would look were P true."""
        says = "the null hypothesis P" if self.decision == "null" else self.AWAY
        level = None if self.design is None else self.design.alpha
        if level is not None:
            says += f" at level {short(Probability(level), 4)}, its type I error"
        if self.pvalue is None:
            return f"The test decides for {says}. Nothing that was released tells whether the data fit P or Q at all."
        pvalue = short(self._printed_pvalue(self.pvalue), 4)
        if self.fits == "neither":
            return (
                "The data fit neither P nor Q: under each of them so extreme a noisy statistic has a probability below "
                f"0.001. Between the two the test decides for {says} (p-value {pvalue})."
            )
        return (
            f"The test decides for {says}. Were P true, so extreme a noisy statistic would have probability {pvalue} "
            f"(the p-value).{self._against_custom(level)}{self._either()}"
        )

    def _against_custom(self, level: float | None) -> str:
        """Explain a small p-value beside "null", or a large one beside "alternative"; empty if there is neither."""
        if level is None or self.pvalue is None or (self.pvalue < CUSTOMARY) == (self.decision == "alternative"):
            return ""
        if 0.9 * CUSTOMARY <= level <= CUSTOMARY:  # alpha=0.05 of a discrete statistic
            return ""
        side = "above" if self.decision == "null" else "within"
        return (
            f" The p-value is {side} the test's level. The level is the alpha given to the design; where none was "
            "given, the threshold weighs the type I against the type II error. For level 0.05 design with "
            "alpha=0.05."
        )

    def _looks(self, looks: str, level: float | None) -> str:
        """Return the decision in words, which say so where the data are consistent with the other hypothesis alone."""
        if level is None or self.fits in (self.decision, None) or self.fits in FITS:
            return f"{FITS.get(self.fits or '', 'the data look like')} {looks}"
        return (
            f"for {looks}, at level {short(Probability(level), 4)}; but the data are consistent with the {self.fits} "
            "alone: report that"
        )

    def _either(self) -> str:
        """Say what to report if the data fit both hypotheses, or only the one that was not decided for."""
        if self.fits in (None, "neither", self.decision):
            return ""
        if self.fits == "both":
            return (
                " The data are consistent with both P and Q, at level 0.001: report the p-value, and the decision as "
                "the likelier of the two, not as proof against the other."
            )
        fitting, other = ("P", "Q") if self.fits == "null" else ("Q", "P")
        return (
            f" But at level 0.001 the data are consistent with {fitting} and not with {other}: report that, and not "
            f"the decision as evidence for {other}. The test's type I and type II errors are far from equal."
        )

    def _printed_pvalue(self, pvalue: float | None) -> Probability | None:
        """Return a p-value as it is printed."""
        return None if pvalue is None else Probability(pvalue, self.SMALLEST_PVALUE)

    def facts(self) -> list[Fact]:
        """Return the released values, their price and, if the test is at hand, its error rates."""
        test = self.design
        looks, level = "P" if self.decision == "null" else self.AWAY, None if test is None else test.alpha
        above, errors, two, against = "large values speak for P", "", False, ""
        if test is not None:
            looks, two = getattr(test, self.decision, looks), test.two_sided
            above = "; ".join(([] if two else [above]) + ([test.when_null] if test.when_null else []))
            first, second = (short(Probability(error), 4) for error in (test.alpha, test.beta))
            errors = f"type I error {first}, type II error {second} on {test.n:,} records"
            if 1 - test.alpha - test.beta < HARDLY:
                errors += "; hardly better than a coin that ignores the data"
            if self._against_custom(level):
                against = f"; the decision is at level {first}, which alpha= sets"
        hidden = self.neighbours == "add-remove"
        what = "with noise" if self.released == "statistic" else "the level, a whole number, with noise"
        evidence = None if self.evalue is None else Probability(self.evalue)
        return [
            Fact("decision", self.decision, self._looks(looks, level)),
            Fact("fits", self.fits, "hypotheses that the data are consistent with, at level 0.001"),
            *([] if self.released != "decision" else [Fact("released", self.released, "the decision, and no more")]),
            Fact("statistic", self.statistic, f"{what}; {above}"),
            Fact(
                "pvalue",
                self._printed_pvalue(self.pvalue),
                f"of so {'extreme' if two else 'small'} a statistic, were P true{against}",
            ),
            Fact(
                "pvalue_alternative",
                self._printed_pvalue(self.pvalue_alternative),
                f"of a statistic so {'near to P' if two else 'large'}, were Q true",
            ),
            Fact("evalue", evidence, "evidence against P, to be combined with others'"),
            Fact("n", self.n, "records, as expected; their number is not revealed" if hidden else "records, public"),
            Fact("test", self.test, errors),
            *self._ending(),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the document of the outcome. It names the kind of release only if that is not the statistic."""
        document = super().to_dict()
        if self.evalue is None:
            del document["evalue"]
        if self.released == "statistic":
            del document["released"]
        return document
