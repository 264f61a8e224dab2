r"""A private test votes on each block: the paper's reduction, for a test of P against Q, of fit, or any function.

The paper's reduction takes the test as a black box. It needs a bit of each block and, of the test, the number of
records in a block, the error rates and the price. A record lies in one block and is used by one test, and the ends of
blocks are public, so that all bits together cost what one test costs (parallel composition). The change is placed where
the suffix sums of the bits z_j = +-1 are smallest:

.. math:: \hat k = (\arg\min_{1 \le t \le m} \sum_{j=t}^{m} z_j - 1) \cdot B

The law of that answer is computed exactly, for any test with known error rates: z is a random walk that falls after the
change and rises before it, and the argmin is t exactly when the walk stays above on one side and at or above on the
other (Lemma "Solving Bernoulli Change-Point Detection", with constants).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.changepoint.cusum import SuffixAlarm
from privatest.changepoint.detector import BlocksDetector, FailureCurve, Located
from privatest.decision import PrivateTest
from privatest.engines.arrays import StreamRecords
from privatest.engines.records import (
    NO_ENDS,
    NUMBERS,
    Column,
    Records,
    block_ends,
    counting_score,
    index_score,
    numbers_of,
    scores_of_each,
    silenced,
    totals_of_blocks,
)
from privatest.errors import Infeasible, InvalidData, InvalidDocument, InvalidInput, shown
from privatest.fit import FitTest
from privatest.hypotheses.parse import as_hypothesis
from privatest.laws.block_laws import first_argmin_law
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Notion, Pure, RandomSource, as_notion, make_notion
from privatest.privacy.bulk_draws import draw_many
from privatest.privacy.notion import notion_words, per_row
from privatest.scores import Cells, DyadicCells, LabelCells, Score

MOST_ERROR = 0.5
"""The bit of a block must be wrong with a smaller probability than this."""


@dataclass(frozen=True, eq=False)
class BlockTest:
    """A function that decides about a block, with the properties that its author states; see :func:`block_test`."""

    function: Callable[[Any], Any]
    n: int
    alpha: float
    beta: float
    privacy: Notion
    labels: tuple[Hashable, ...] | None = None

    @property
    def name(self) -> str:
        """The qualified name of the function in Python."""
        named = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return f"{named.__module__}.{named.__qualname__}"

    def settings(self) -> dict[str, Any]:
        """Return the settings by which a ledger distinguishes tests: the function's name and the stated properties."""
        labels = {} if self.labels is None else {"labels": [repr(label) for label in self.labels]}
        stated = {"n": self.n, "alpha": self.alpha, "beta": self.beta, "privacy": self.privacy.text}
        return {"function": self.name, **stated, **labels}


def block_test(
    function: Callable[[Any], Any],
    *,
    n: int,
    alpha: float,
    beta: float,
    epsilon: Number | None = None,
    privacy: Any = None,
    labels: Iterable[Hashable] | None = None,
) -> BlockTest:
    """Return any private test of a block, for ``test=`` of :func:`design_change`, :func:`detect_change` and
    :class:`Monitor`.

    You state its error rates and its privacy, which nobody checks. The privacy must hold for everything that the
    function does with a block if one record is replaced, including its noise, its running time and whatever it writes.
    If it raises an exception, or returns anything but "null" and "alternative", the block counts as "null"; the
    exception, warnings and logs are dropped, because they could reveal a record.

    Args:
        function: maps a block to "null" (old) or "alternative" (new). The block is an array of n numbers, with NaN for
            a record that is no number; with ``labels`` a list of n labels, with None for a record that is no label.
        n: records in a block.
        alpha: bound on the probability of "alternative" if all records of a block are old; below 1/2.
        beta: bound on the probability of "null" if all records of a block are new; below 1/2.
        epsilon: privacy loss of one call.
        privacy: in place of epsilon: another notion, such as "zcdp(0.5)".
        labels: the values that records may have, if they are no numbers. The data may then also lie in a database.

    >>> import privatest as pt
    >>> rng = np.random.default_rng(1)  # on real data: noise that nobody can predict
    >>> def noisy_majority(block):
    ...     return "alternative" if np.sum(block > 0) + rng.laplace(scale=1) > 10 else "null"
    >>> test = pt.block_test(noisy_majority, n=20, alpha=0.05, beta=0.05, epsilon=1)
    >>> plan = pt.design_change(test=test, assume_change=True)
    >>> plan.epsilon, plan.block, plan.accuracy
    (1.0, 20, 40)
    """
    if not callable(function):
        raise InvalidInput(f"function={shown(function)} must be a function of a block.")
    rates = {"alpha": alpha, "beta": beta}
    for name, value in rates.items():
        rates[name] = numbers.number_or_nan(value)
        if not 0 <= rates[name] < MOST_ERROR:
            raise InvalidInput(f"{name}={shown(value)} must be at least 0 and below 1/2. Use a longer block.")
    domain = None if labels is None else tuple(labels)
    if domain is not None:
        LabelCells(domain)  # refuses what cannot be a label
        if len(set(domain)) < max(len(domain), 2):
            raise InvalidInput(f"labels={shown(domain)} must be two different labels or more.")
    return BlockTest(
        function, numbers.positive_integer(n=n), **rates, privacy=make_notion(epsilon, privacy), labels=domain
    )


class Voter(ABC):
    """A private test that reads records and votes on blocks of them: +1 for "old", -1 for "new".

    Guarantees: a vote is as private as the test; no error depends on a record.
    """

    test: Any
    """The test, which has ``n``, ``alpha`` and ``beta``."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, str]:
        """Short descriptions of the old and the new regime."""

    @property
    @abstractmethod
    def price(self) -> Fraction | Notion:
        """The exact price of one vote."""

    @property
    def notion(self) -> Notion:
        """The notion that one vote meets."""
        return as_notion(self.price)

    @property
    @abstractmethod
    def probe(self) -> Score:
        """A score that the type of the records must fit."""

    @property
    def cells(self) -> Cells:
        """The cells that records are sorted into."""
        return self.probe.cells

    @property
    def clamp(self) -> tuple[float, float] | None:
        """The smallest and the largest score of one record in nats; None if records have no scores."""
        return None

    def check(self, records: Records) -> None:
        """Refuse records whose type does not fit."""
        records.check(self.probe)

    @abstractmethod
    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """Return the integer that the test uses of each record. Raw. Ties are refused as by ``Records.check_ends``."""

    @abstractmethod
    def vote(self, values: Integers, source: RandomSource) -> int:
        """Draw the vote on one block, given the values of its records."""

    def bits(self, records: Records, n: int, source: RandomSource) -> Integers:
        """Draw the votes on all whole blocks of n records."""
        block = self.test.n
        values = self.values(records, block_ends(n, block))
        votes = [self.vote(values[first : first + block], source) for first in range(0, n - block + 1, block)]
        return np.array(votes, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of the test."""
        document: dict[str, Any] = self.test.to_dict()
        return document

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Voter:
        """Read what :meth:`to_dict` wrote; refuses a test as :func:`voter_of` does."""
        formats: dict[Any, Any] = {kind.FORMAT: kind for kind in (PrivateTest, FitTest)}
        if document.get("format") not in formats:
            raise InvalidDocument(f"The test of the blocks must be a document of the format {' or '.join(formats)}.")
        return voter_of(formats[document["format"]].from_dict(document))

    def question(self) -> dict[str, Any]:
        """Return everything besides the data on which votes depend, ready for JSON."""
        return self.to_dict()


@dataclass(frozen=True, eq=False)
class _ScoreVoter(Voter):
    """A test of P against Q."""

    test: PrivateTest

    def __post_init__(self) -> None:
        self.test.score.check_total(4 * self.test.n)

    @property
    def names(self) -> tuple[str, str]:
        return self.test.null, self.test.alternative

    @property
    def price(self) -> Fraction | Notion:
        assert self.test.price is not None
        return self.test.price

    @property
    def probe(self) -> Score:
        return self.test.score

    @property
    def clamp(self) -> tuple[float, float]:
        return self.test.clamp

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        return scores_of_each(records, self.test.score, ends)

    def vote(self, values: Integers, source: RandomSource) -> int:
        return int(self._votes(values.sum(keepdims=True), source)[0])

    def bits(self, records: Records, n: int, source: RandomSource) -> Integers:  # noqa: ARG002 - the length is the records' own
        totals = np.array(totals_of_blocks(records, self.test.score, self.test.n), dtype=np.int64)
        return self._votes(totals, source)

    def _votes(self, totals: Integers, source: RandomSource) -> Integers:
        """Draw the votes of blocks with these totals. T > cutoff if and only if the integer 2 T > floor(2 cutoff)."""
        test, coin = self.test, self.test.coin
        doubled = 2 * totals + draw_many(test.noise, len(totals), source)
        cutoffs = np.full(len(totals), (2 * test.cutoff).__floor__(), dtype=np.int64)
        if coin is not None:
            tossed = np.array([coin.toss(source) for _ in totals], dtype=np.bool_)
            cutoffs[tossed] = (2 * coin.cutoff).__floor__()
        old = doubled > cutoffs
        if test.upper is not None:
            old &= doubled <= (2 * test.upper).__floor__()
        return np.where(old, 1, -1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _FitVoter(Voter):
    """A test of goodness of fit."""

    test: FitTest

    @property
    def names(self) -> tuple[str, str]:
        return self.test.domain.null, f"any law at distance {self.test.distance!r} or more"

    @property
    def price(self) -> Fraction | Notion:
        assert self.test.price is not None
        return self.test.price

    @cached_property
    def probe(self) -> Score:
        return counting_score(self.test.domain.cells)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """Return the symbol of each record."""
        cells = self.test.domain.cells
        self.check(records)
        symbols = records.series(index_score(cells), ends)
        odd: Integers = np.where(symbols >= cells.count, self.test.odd_symbol, symbols)
        return odd

    def vote(self, values: Integers, source: RandomSource) -> int:
        counts = np.bincount(values, minlength=len(self.test.domain.probabilities)).astype(np.int64)
        return -1 if self.test.draw_noisy(counts, source) > self.test.cutoff else 1


@dataclass(frozen=True, eq=False)
class _FunctionVoter(Voter):
    """A function of a block."""

    test: BlockTest

    @property
    def names(self) -> tuple[str, str]:
        return f"what {self.test.name} calls null", f"what {self.test.name} calls alternative"

    @property
    def price(self) -> Fraction | Notion:
        price = self.test.privacy.price
        assert price is not None
        return price

    @cached_property
    def probe(self) -> Score:
        labels = self.test.labels
        return counting_score(DyadicCells(exponent=0, first=0, size=1) if labels is None else LabelCells(labels))

    def check(self, records: Records) -> None:
        if self.test.labels is None and not isinstance(records, Column | StreamRecords):
            raise InvalidData(
                "The function of a block takes the records themselves, and these lie in a database or on a cluster. "
                "Name what they may be, privatest.block_test(..., labels=[...]), or read them into memory or a file."
            )
        super().check(records)

    def values(self, records: Records, ends: range = NO_ENDS) -> Integers:
        """Return the place of each record's label, or the bits of its number."""
        self.check(records)
        return records.series(NUMBERS if self.test.labels is None else index_score(self.probe.cells), ends)

    def vote(self, values: Integers, source: RandomSource) -> int:  # noqa: ARG002 - the function's noise is its own
        block: Any
        if self.test.labels is None:
            block = numbers_of(values)
        else:
            labels = [*self.test.labels, None]
            block = [labels[place] for place in values.tolist()]
        try:
            with silenced():
                verdict = self.test.function(block)
                return -1 if isinstance(verdict, str) and verdict == "alternative" else 1
        except Exception:  # of any kind: its message may quote a record
            return 1

    def to_dict(self) -> dict[str, Any]:
        raise InvalidInput(
            f"The blocks' test {self.test.name} is a Python function, which no document and no state file can hold. "
            "Keep the program that makes it, or use a test that privatest designs."
        )

    def question(self) -> dict[str, Any]:
        return self.test.settings()


def voter_of(test: Any) -> Voter:
    """Return the voter of a test. Raises InvalidInput for anything else, and for a test that is not private here."""
    voter: Voter
    if isinstance(test, BlockTest):
        voter = _FunctionVoter(test)
    elif isinstance(test, PrivateTest | FitTest):
        rows = test.max_rows_per_unit
        if rows > 1:
            raise InvalidInput(
                f"test is designed for max_rows_per_unit={rows}, and a person's rows may lie in several blocks. Design "
                "it for one row, and give max_rows_per_unit here."
            )
        if isinstance(test, PrivateTest) and test.neighbours != "replace":
            raise InvalidInput(
                f"test hides a record that comes or goes (neighbours={test.neighbours!r}), which would move all later "
                "blocks. Design it with neighbours='replace'."
            )
        if test.price is None:
            raise InvalidInput("test is not private. Design one that is: test='tight', with an epsilon.")
        voter = _FitVoter(test) if isinstance(test, FitTest) else _ScoreVoter(test)
    else:
        function = " Of a function say: privatest.block_test(function, n=..., alpha=..., beta=..., epsilon=...)."
        raise InvalidInput(
            f"test={shown(test)} must be a test that privatest.design or privatest.design_fit made."
            f"{function if callable(test) else ''}"
        )
    return voter


def check_errors(voter: Voter) -> None:
    """Raise Infeasible for a test whose bits are wrong with probability 1/2 or more."""
    test = voter.test
    error = max(test.alpha, test.beta)
    if not error < MOST_ERROR:
        raise Infeasible(
            f"test says the wrong thing about a block of {test.n} records with probability {error:.3g}, and must do so "
            "with probability below 1/2. Use a test on more records."
        )


def names_of(voter: Voter, null: Any, alternative: Any, **others: object) -> tuple[str, str]:
    """Return the names of the two regimes: those of the test or, for a function, those given.

    Raises InvalidInput for an argument that the test determines.
    """
    for name, value in others.items():
        if value is not None:
            raise InvalidInput(f"{name}={shown(value)} was given besides test=, which says it. Leave {name} out.")
    stated = [
        None if law is None else as_hypothesis(law, name).describe()
        for name, law in (("null", null), ("alternative", alternative))
    ]
    for name, law_name, own in zip(("null", "alternative"), stated, voter.names, strict=True):
        if law_name is not None and law_name != own and not isinstance(voter, _FunctionVoter):
            raise InvalidInput(f"{name}={law_name} is not what test was designed for, {own}. Leave {name} out.")
    old, new = (law_name or own for law_name, own in zip(stated, voter.names, strict=True))
    return old, new


def whole_of(voter: Voter, epsilon: Number | None, privacy: Any, rows: int) -> Notion:
    """Return the price of all votes together for a person with up to ``rows`` rows: the test's, once for each row.

    A given epsilon must equal that price; another given notion must be met.
    """
    row = voter.notion
    own = Pure(row.loss * rows) if isinstance(row, Pure) else row if rows == 1 else None
    if epsilon is None and privacy is None:
        if own is not None:
            return own
        raise InvalidInput(
            f"max_rows_per_unit={rows} rows of a test that meets {row}: say what all of them are to meet, privacy=..."
        )
    whole = make_notion(epsilon, privacy)
    met = whole == own if isinstance(whole, Pure) else row.implies(per_row(whole, rows))
    if not met:
        raise InvalidInput(
            f"{notion_words(whole)} is not what test costs: {notion_words(row)} for each of {rows} rows of a person. "
            "Leave it out, or give a test that is designed for it."
        )
    return whole


# The largest number of blocks on either side whose probabilities are computed, and the probability that may be missing.
_MOST_BLOCKS = 1_500
_MISSING = 1e-12


@dataclass(frozen=True)
class BitsModel:
    """The laws of bits that are wrong with probability at most ``alpha`` in old blocks and ``beta`` in new ones."""

    block: int
    alpha: float
    beta: float

    @cached_property
    def _argmin(self) -> tuple[int, list[Floats]]:
        """T and, for each value of the mixed block's bit, the probabilities of argmin - (mixed block) = -T, ..., T.

        With g = -z, t is the first argmin if and only if every sum of g from t rightwards is at least 0 and every sum
        leftwards from t - 1 is below 0. After all old blocks the walk goes up with probability 1 - beta.
        """
        a, b = self.alpha, self.beta
        reach = 8
        while True:
            laws = [_argmin_law(a, b, mixed, reach) for mixed in (1, -1)]
            if min(float(law.sum()) for law in laws) > 1 - _MISSING or reach >= _MOST_BLOCKS:
                return reach, laws
            reach *= 2

    def failures(self) -> FailureCurve:
        """Return exact bounds on the error of the index, for the worst place of k* in its block and its worst bit.

        The window is [k* - a, k* + a - B]: its blocks lie within the series whenever k* is at least a from both ends.
        """
        reach, laws = self._argmin
        distances = np.arange(0, reach * self.block, max(self.block // 8, 1), dtype=np.int64)
        offsets = np.unique(np.linspace(0, self.block - 1, min(self.block, 33)).astype(np.int64))
        worst = np.zeros(len(distances))
        for law in laws:
            upto = np.concatenate([[0.0], np.cumsum(law)])  # upto[i] = Pr[t < i - reach]
            for r in offsets:
                first = -((distances - r) // self.block)  # ceil((r - a)/B)
                last = (distances - self.block + r) // self.block
                low, high = (np.clip(t + reach, 0, len(law)) for t in (first, last + 1))
                inside = np.maximum(upto[high] - upto[low], 0.0)
                worst = np.maximum(worst, 1.0 - inside)
        return FailureCurve(distances, np.minimum(worst, 1.0))

    @property
    def votes(self) -> tuple[Integers, Floats, Floats]:
        """The votes of a block that says "new" or "old", and their probabilities in old and in new blocks."""
        old, new = np.array([self.alpha, 1 - self.alpha]), np.array([1 - self.beta, self.beta])
        return np.array([1, -1], dtype=np.int64), old, new

    def missed(self, alarm: SuffixAlarm, distances: Integers) -> Floats:
        """Bound on Pr["no change"] for changes at least this far from the end of the series."""
        return alarm.missed(np.maximum(distances // self.block - 1, 0))  # almost a block may lie behind the last one

    def locate(self, bits: Integers) -> int:
        """(argmin - 1) * block, the first argmin."""
        suffix_sums = np.cumsum(bits[::-1])[::-1]
        return int(np.argmin(suffix_sums)) * self.block


@dataclass(frozen=True, eq=False)
class BitsDetector(BlocksDetector):
    """Locates a change by the paper's reduction: the argmin of the suffix sums of a private test's bits.

    Guarantees: a record lies in one block, so all bits together meet the test's notion, and so does the answer.

    Attributes:
        voter: the test.
        alpha, beta: bounds on the test's errors in old and in new blocks.
        threshold, false_alarm: as for :class:`SuffixAlarm`; None if the answer always names a change.
    """

    voter: Voter
    alpha: float
    beta: float
    threshold: int | None = None
    false_alarm: float | None = None
    kind: ClassVar[str] = "bits"

    def __post_init__(self) -> None:
        if not (0 <= self.alpha <= MOST_ERROR and 0 <= self.beta <= MOST_ERROR):
            raise InvalidDocument("The test of the blocks does not fit the plan.")

    @classmethod
    def of(cls, voter: Voter, false_alarm: float | None) -> BitsDetector:
        """Return the detector whose threshold keeps the probability of a false alarm at most ``false_alarm``."""
        model = BitsModel(voter.test.n, voter.test.alpha, voter.test.beta)
        if false_alarm is None:
            return cls(voter, model.alpha, model.beta)
        alarm = SuffixAlarm.calibrated(*model.votes, false_alarm, None)
        return cls(voter, model.alpha, model.beta, alarm.threshold, alarm.false_alarm)

    @cached_property
    def model(self) -> BitsModel:
        """The laws of the bits."""
        return BitsModel(self.block, self.alpha, self.beta)

    @property
    def block(self) -> int:  # type: ignore[override]
        return int(self.voter.test.n)

    @property
    def clamp(self) -> tuple[float, float] | None:
        return self.voter.clamp

    @property
    def record_cells(self) -> Cells:
        return self.voter.cells

    def meets(self, notion: Notion) -> bool:
        return self.voter.notion.implies(notion)

    def question(self) -> list[Any]:
        return [self.voter.question()]

    def check(self, records: Records) -> None:
        self.voter.check(records)

    def draw(self, records: Records, n: int, source: RandomSource) -> list[int]:
        """Draw the bits of the blocks."""
        drawn: list[int] = self.voter.bits(records, n, source).tolist()
        return drawn

    def locate(self, drawn: Sequence[int], n: int) -> Located:  # noqa: ARG002 - the same for every n
        bits = np.array(drawn, dtype=np.int64)
        if self.alarm is not None and not self.alarm.fires(np.where(bits < 0, 0, 1)):
            return Located(())
        return Located((self.model.locate(bits),))


def _argmin_law(a: float, b: float, mixed: int, reach: int) -> Floats:
    """Return Pr[argmin = t] for t = -reach, ..., reach; block 0 is the mixed one, with step g = ``mixed``."""
    ups = np.concatenate([np.full(reach, a), np.full(1, float(mixed == 1)), np.full(reach - 1, 1 - b)])
    return first_argmin_law(ups, before=_ruin(a), after=_ruin(b))


def _ruin(error: float) -> float:
    """Return the probability that a walk ever falls below its start, if steps go down with this probability."""
    return min(error / (1 - error), 1.0)
