"""Monitors: has a stream changed yet? The whole stream costs one epsilon.

The plan of a monitor is designed from P and Q, from P and a distance, or from a test of blocks. Its block, votes and
threshold have the smallest computed delay.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import numbers
from privatest.changepoint.block_sums import LARGEST_VOTE, VOTE_UNIT, SumsModel, block_votes, law_of
from privatest.changepoint.block_tests import Voter, check_errors, names_of, voter_of, whole_of
from privatest.changepoint.cusum import MOST_BLOCKS, Chart, Mixed
from privatest.changepoint.detector_search import BlockTuner, Clamp, fit_of_blocks, paper_of, paper_test
from privatest.charge_before_release import fingerprint
from privatest.decision import PrivateTest
from privatest.errors import Infeasible, InvalidInput
from privatest.facts import Fact
from privatest.hypotheses import Pair
from privatest.hypotheses.parse import Hypotheses, as_hypothesis, pair_or_hypotheses
from privatest.laws.block_laws import BlockLaws
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import Notion, as_notion, canonical_noise, make_notion
from privatest.privacy.notion import budget_word, notion_words, per_row
from privatest.streams.blocks import SumBlocks
from privatest.streams.monitor_plan import Alarm, BitBlocks, Cusum, Intervals, MonitorPlan
from privatest.streams.paper_intervals import LONGEST_INTERVAL, Majority, recommended_interval
from privatest.streams.stream import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes


METHODS = ("cusum", "paper")
# By default false alarms are this many times as far apart as the number of records that distinguishes P from Q.
DEFAULT_RARITY = 1_000
# Lengths of blocks to try, in units of the block whose noisy totals are three deviations apart.
_FACTORS = (0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
_FIRST_FACTOR = 0.35
# Votes have a finer unit if the evidence of one block is small.
_FINEST_UNIT, _UNITS_PER_DEVIATION = 1 / 128, 8
# Error rates of the goodness-of-fit tests to try.
_ERRORS = (1 / 3, 1 / 6, 0.05)
_OFFSETS = 17


@dataclass(frozen=True)
class MonitorTargets:
    """The targets of a monitor.

    Attributes:
        beta: probability with which an alarm's index may be off by more than its accuracy.
        records: mean number of records between false alarms; None: by :data:`DEFAULT_RARITY`.
        interval: number of blocks in an interval of the paper's method; None: as computed.
        block: number of records in a block of the paper's method; None: as computed.
    """

    beta: float
    records: float | None
    interval: int | None
    block: int | None = None

    def between(self, enough: float) -> float:
        """Return the number of records between false alarms, if ``enough`` records distinguish P from Q."""
        if self.records is not None:
            return self.records
        return float(f"{DEFAULT_RARITY * max(enough, 1.0):.1e}")


def pair_plan(
    hypotheses: Pair | Hypotheses, privacy: Notion | Number, method: str, targets: MonitorTargets
) -> MonitorPlan:
    """Return the plan of a monitor for a known alternative, or for sets of distributions.

    Guarantees for sets: the scores' laws are the worst of the sets and votes never rise with a block's sum, so that for
    all members the time between false alarms is at least the stated one, and the delay at most.
    """
    notion = as_notion(privacy)
    tuner = BlockTuner.of(hypotheses, notion)
    names = hypotheses.null.describe(), hypotheses.alternative.describe()
    records = targets.between(tuner.natural_block(tuner.clamps[0]))
    if method == "paper":
        test = paper_test(tuner, targets.block)
        return _by_majority(_bit_blocks(test), test.alpha, test.beta, targets, records, names, notion)
    clamp, block = _best(tuner, records)
    score = tuner.score(clamp)
    model = SumsModel(law_of(score), canonical_noise(notion, score.width), block)
    laws = model.laws
    votes = _votes(laws, monotone=tuner.question is not None)
    chart = _calibrated(votes, laws.laws[-1], laws.laws[0], records, block, notion)
    mixed = [Mixed(old, law) for old, law in zip(laws.olds[:-1], laws.laws[:-1], strict=True)]
    blocks = SumBlocks(score, model.noise, block, laws.first, laws.bin_width, votes)
    return _by_chart(blocks, chart, mixed, targets, names, notion)


def unknown_plan(
    null: Any, distance: float, privacy: Notion | Number, method: str, targets: MonitorTargets
) -> MonitorPlan:
    """Return the plan of a monitor for an unknown alternative, at least ``distance`` away in total variation.

    Guarantees: the errors in new blocks are at most the test's, whatever the new law is. Delay and accuracy are
    computed for the largest errors, for which they are the worst.
    """
    notion, errors = as_notion(privacy), _ERRORS if method == "cusum" else _ERRORS[:1]
    voters = [voter_of(fit_of_blocks(null, distance, notion, error)) for error in errors]
    return voted_plan(voters, notion, method, targets, voters[0].names)


def voted_plan(
    voters: Sequence[Voter], notion: Notion, method: str, targets: MonitorTargets, names: tuple[str, str]
) -> MonitorPlan:
    """Return the plan of a monitor that uses the bits of tests on blocks, for the test with the smallest delay.

    Guarantees: false alarms, delay and accuracy are computed for the tests' stated errors. If these are bounds, the
    results are bounds, too.
    """
    records = targets.between(voters[0].test.n)
    if method == "paper":
        voter, test = voters[0], voters[0].test
        return _by_majority(BitBlocks(voter, -1, 1), test.alpha, test.beta, targets, records, names, notion)
    charts = []
    for voter in voters:
        alpha, beta = voter.test.alpha, voter.test.beta
        old, new = np.array([alpha, 1 - alpha]), np.array([1 - beta, beta])
        charts.append(_calibrated(_bit_votes(alpha, beta), old, new, records, voter.test.n, notion))
    voter, chart = min(zip(voters, charts, strict=True), key=lambda one: _delay(one[1], one[0].test.n))
    n = voter.test.n
    offsets = np.unique(np.linspace(0, n - 1, min(n, _OFFSETS)).astype(np.int64)).tolist()
    mixed = [Mixed(old, law) for old in offsets for law in np.eye(2)]
    return _by_chart(BitBlocks(voter, int(chart.votes[1]), int(chart.votes[0])), chart, mixed, targets, names, notion)


def _by_chart(
    blocks: SumBlocks | BitBlocks,
    chart: Chart,
    mixed: Iterable[Mixed],
    targets: MonitorTargets,
    names: tuple[str, str],
    notion: Notion,
) -> MonitorPlan:
    block, beta = blocks.block, targets.beta
    accuracy = chart.accuracy(beta, block, list(mixed))
    if accuracy is None:
        raise Infeasible(
            f"No distance is exceeded with probability at most beta={beta:g} at {notion_words(notion)} by the "
            f"index of the alarm. Use a larger {budget_word(notion)} or beta."
        )
    between = block * chart.blocks_between_false_alarms
    late = block - 1 + block * chart.blocks_within(beta)
    return MonitorPlan(
        blocks=blocks,
        rule=Cusum(chart.threshold),
        beta=beta,
        accuracy=accuracy,
        mean_time_between_false_alarms=between,
        expected_delay=_delay(chart, block),
        delay_bound=late,
        null=names[0],
        alternative=names[1],
        notion=notion,
    )


def _delay(chart: Chart, block: int) -> float:
    """Return the mean number of records after k*: the rest of its block, then whole blocks from W = 0."""
    return block - 1 + block * chart.blocks_to_alarm


def _by_majority(
    blocks: SumBlocks | BitBlocks,
    alpha: float,
    beta: float,
    targets: MonitorTargets,
    records: float,
    names: tuple[str, str],
    notion: Notion,
) -> MonitorPlan:
    block = blocks.block
    recommended = recommended_interval(block, alpha, beta, targets.beta, records)
    interval = targets.interval or recommended
    if interval is None:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} needs intervals of more than {LONGEST_INTERVAL} blocks. Use a "
            "smaller number, method='cusum', or an interval, whose time between false alarms is computed."
        )
    rule = Majority(interval, block, alpha, beta)
    between = min(rule.time_between_false_alarms, 1e300)
    return MonitorPlan(
        blocks=blocks,
        rule=Intervals(interval),
        beta=targets.beta,
        accuracy=rule.accuracy_within(targets.beta),
        mean_time_between_false_alarms=between,
        expected_delay=rule.expected_delay,
        delay_bound=rule.delay_within(targets.beta),
        recommended_interval=recommended,
        null=names[0],
        alternative=names[1],
        notion=notion,
    )


def _best(tuner: BlockTuner, records: float) -> tuple[Clamp, int]:
    """Return the clamp and the block length with the smallest expected delay."""
    tried: dict[tuple[Clamp, int], float] = {}

    def delay(clamp: Clamp, factor: float) -> float:
        block = max(round(factor * tuner.natural_block(clamp)), 1)
        if (clamp, block) not in tried:
            law = tuner.rough_law(clamp)
            laws = BlockLaws.of(law, canonical_noise(tuner.notion, law.width), block, (0, block))
            chart = _chart(_votes(laws), laws.laws[-1], laws.laws[0], records / block)
            tried[clamp, block] = math.inf if chart is None else _delay(chart, block)
        return tried[clamp, block]

    clamps = list(dict.fromkeys((*tuner.clamps[:4], tuner.paper)))
    clamp = min(clamps, key=lambda one: delay(one, _FIRST_FACTOR))
    _descend(lambda i: delay(clamp, _FACTORS[i]), _FACTORS.index(_FIRST_FACTOR))
    best: tuple[Clamp, int] = min(tried, key=lambda key: tried[key])
    return best


def _descend(value: Callable[[int], float], start: int) -> None:
    """Compute values from ``start`` on in both directions, for as long as they fall."""
    for step in (-1, 1):
        place = start
        while 0 <= place + step < len(_FACTORS) and value(place + step) < value(place):
            place += step


def _chart(votes: Integers, old: Floats, new: Floats, blocks: float) -> Chart | None:
    """Return the chart with the smallest threshold; None if old blocks do not vote down or no threshold suffices."""
    if float(votes @ old) >= 0 or float(votes @ new) <= 0:
        return None
    return Chart.calibrated(votes, old, new, blocks)


def _calibrated(votes: Integers, old: Floats, new: Floats, records: float, block: int, notion: Notion) -> Chart:
    chart = _chart(votes, old, new, records / block)
    if chart is not None:
        return chart
    if records / block > MOST_BLOCKS:
        raise Infeasible(
            f"mean_time_between_false_alarms={records:g} is more than {MOST_BLOCKS:g} blocks of {block} records, "
            f"which cannot be computed. Use at most {float(MOST_BLOCKS) * block:g}."
        )
    raise Infeasible(
        f"mean_time_between_false_alarms={records:g} is not reachable at {notion_words(notion)}: the evidence of the "
        f"blocks is too small. Use a larger {budget_word(notion)}, or a smaller number."
    )


def _votes(laws: BlockLaws, *, monotone: bool = False) -> Integers:
    """Return the votes of a block's outcomes, in a unit that suits them."""
    nats = np.clip(laws.log_laws[0] - laws.log_laws[-1], -LARGEST_VOTE, LARGEST_VOTE)
    mean = float(laws.laws[-1] @ nats)
    deviation = math.sqrt(max(float(laws.laws[-1] @ (nats - mean) ** 2), 1e-12))
    return block_votes(laws, min(VOTE_UNIT, max(deviation / _UNITS_PER_DEVIATION, _FINEST_UNIT)), monotone=monotone)


def _bit_votes(alpha: float, beta: float) -> Integers:
    """Return the votes of "new" and of "as before"."""
    odds = [math.log((1 - beta) / max(alpha, 1e-17)), -math.log((1 - alpha) / max(beta, 1e-17))]
    votes = np.rint(np.clip(odds, -LARGEST_VOTE, LARGEST_VOTE) / VOTE_UNIT).astype(np.int64)
    factor = max(math.gcd(*(int(vote) for vote in votes)), 1)
    reduced: Integers = votes // factor
    return reduced


def _bit_blocks(test: PrivateTest) -> SumBlocks:
    """Return the blocks of a test of P against Q, with two bins: below and above its cutoff."""
    noise = test.noise
    first = (test.cutoff - noise.offset).__floor__() + 1  # T > cutoff exactly when floor(T) >= first
    return SumBlocks(test.score, noise, test.n, first, 1, np.array([1, -1], dtype=np.int64))


class Monitor(Stream[MonitorPlan, Alarm]):
    r"""Watch a stream for a change from P (``null``) to Q (``alternative``), with privacy for the whole stream.

    Records are collected in blocks, and each block releases its noisy sum or, for an unknown alternative, the bit of a
    private test. Everything else is computed from these. "cusum" raises the alarm when

    .. math:: W_j = \max(W_{j-1} + \text{vote}_j, 0) > h,

    where the votes are log-likelihood ratios of the sums. "paper" raises it when an interval of blocks has more bits
    for the new regime than for the old one, and places the change in the last two intervals.

    Guarantees: every record lies in one block, so everything that a monitor ever releases is together
    epsilon-differentially private, or meets the notion ``privacy`` (replace one record; the number of records is
    public), for a stream of any length.
    On a stream that does not change, the mean number of records until an alarm is at least
    ``mean_time_between_false_alarms``. On one that changes at k* before any alarm, the mean number of records from k*
    to the alarm is at most ``expected_delay``, it is at most ``delay_bound`` with probability 1 - beta, and the index
    has the accuracy that :class:`Alarm` states. All of these are computed, none is simulated. The law of the alarm and
    of ``seen`` does not depend on how the stream is cut into batches. Memory does not grow with the stream. The noise
    of a block is drawn when the block is released. A monitor cannot be copied, pickled or used in a forked process.
    Threads may share one.

    After an alarm nothing more is consumed: every further call returns the same alarm, until :meth:`reset`. Continue
    then with record number ``seen``.

    A monitor with a state file (``state=``, or after the first :meth:`save`) writes each noisy sum to it before
    anything that depends on the sum is shown. After a restore, feed the stream from record number ``seen`` on. Then no
    block is released twice and no alarm is lost, whenever the process was killed. Only the newest state can be
    continued: an older copy in its place is refused and, with a ledger, a copy anywhere.

    Args:
        null, alternative: the old and the new regime, in any of the forms that :func:`privatest.design` takes.
        distance: in place of an alternative: the smallest total variation between it and the null.
        epsilon: privacy loss of the whole stream; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        beta: probability with which the alarm's index may be off by more than its accuracy.
        method: "cusum" (the default, with a much smaller computed delay) or "paper".
        block: number of records in a block of "paper", which is then the default method. None: the number that
            advantage 2/3 needs (:func:`privatest.sample_size`), as in the paper.
        test: the private test that votes on each block, instead of a designed one, as for :func:`design_change`.
            "cusum" then adds up the log-likelihood ratios of its bits. A state file cannot hold a function.
        interval: number of blocks in an interval of "paper", which is then the default method. None: the smallest that
            meets the targets. For a given number ``mean_time_between_false_alarms``, ``false_alarm``,
            ``expected_delay`` and ``accuracy`` are computed, whatever the targets are.
        mean_time_between_false_alarms: in records. None: a thousand times the number of records that distinguishes P
            from Q. Not a target if the interval is given.
        max_rows_per_unit: the largest number of rows of one person that count in the whole stream. Every update must
            then name the persons of its records (``unit``), and the monitor is private for all rows of a person
            together: each row costs epsilon/max_rows_per_unit (for other notions see docs/notions.md). A row beyond
            these, or without a person, stays in its place and counts as a record that makes no sense. The accuracy
            holds if no person has more rows. The monitor remembers whose rows have counted; beside a state file as
            digests with a secret of the state (``path + ".units"``), which are raw and must be guarded like the data.
        state: path of a state file. If it exists and has the same settings, the monitor continues from it.
        ledger, dataset, request: charge epsilon to a ledger once, when the monitor begins. A request begins one monitor
            only, which can be continued from its state file alone.
        source: the origin of the stream (a file, a table), noted in the ledger and compared with what the data set's
            grant covers; None: records handed over in Python.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The monitor is then
            called simulated, and is not private.

    >>> monitor = Monitor("bernoulli(0.2)", "bernoulli(0.8)", epsilon=2, rng=np.random.default_rng(3))
    >>> monitor.update([0, 0, 1, 0, 0] * 60)
    >>> alarm = monitor.update([1, 1, 0, 1, 1] * 60)
    >>> abs(alarm.index - 300) <= alarm.accuracy, monitor.drift_detected, alarm.seen < 600
    (True, True, True)
    """

    PLAN = MonitorPlan

    def __init__(
        self,
        null: Any = None,
        alternative: Any = None,
        *,
        distance: float | None = None,
        epsilon: Number | None = None,
        privacy: Any = None,
        beta: float = 0.1,
        method: str | None = None,
        block: int | None = None,
        test: Any = None,
        interval: int | None = None,
        mean_time_between_false_alarms: float | None = None,
        max_rows_per_unit: int | None = None,
        state: str | os.PathLike[str] | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        source: str | os.PathLike[str] | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        beta = numbers.probability(beta=beta)
        if method is not None:
            numbers.choice(METHODS, method=method)
        if block is not None:
            block = numbers.positive_integer(block=block)
            method = paper_of(method, distance, block=block)
        if interval is not None:
            interval = numbers.positive_integer(interval=interval)
            method = paper_of(method, distance, interval=interval)
        method = method or "cusum"
        target = mean_time_between_false_alarms
        if target is not None:
            target = float(numbers.positive(mean_time_between_false_alarms=target))
        rows = max_rows_per_unit
        if rows is not None:
            rows = numbers.positive_integer(max_rows_per_unit=rows)
        voter = None if test is None else voter_of(test)
        if voter is not None:
            names = names_of(voter, null, alternative, distance=distance, block=block)
            check_errors(voter)
            whole = whole_of(voter, epsilon, privacy, rows or 1)
            if state is not None:
                voter.to_dict()  # raises an error for a function, which no state file can hold
        else:
            whole = make_notion(epsilon, privacy)
            if (alternative is None) == (distance is None):
                raise InvalidInput(
                    "Give either the alternative Q or, if it is unknown, distance=, the smallest total variation "
                    "between it and P."
                )
            if distance is not None:
                distance = numbers.probability(distance=distance)
        hypotheses = {"null": null, "alternative": alternative}
        laws = [as_hypothesis(law, name) for name, law in hypotheses.items() if law is not None]
        settings: dict[str, Any] = {
            **({} if distance is None else {"alternative": f"distance {distance!r}"}),
            **({} if voter is None else {"test": fingerprint(voter.question())}),
            "beta": beta,
            "method": method,
            "block": block,
            "interval": interval,
            "mean_time_between_false_alarms": target,
        }
        targets = MonitorTargets(beta, target, interval, block)

        def make_plan() -> MonitorPlan:
            each = per_row(whole, rows or 1)
            if voter is not None:
                plan = voted_plan([voter], each, method, targets, names)
            elif distance is None:
                plan = pair_plan(pair_or_hypotheses(null, alternative), each, method, targets)
            else:
                plan = unknown_plan(null, distance, each, method, targets)
            return replace(plan, max_rows_per_unit=rows, notion=whole)

        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "source": source}
        self._begin(laws, settings, make_plan, notion=whole, rows=rows, state=state, rng=rng, **paying)

    @property
    def beta(self) -> float:
        """Probability with which the alarm's index may be off by more than its accuracy."""
        return self._plan.beta

    @property
    def method(self) -> str:
        """ "cusum" or "paper"."""
        return self._plan.method

    @property
    def block(self) -> int:
        """The number of records in a block."""
        return self._plan.block

    @property
    def interval(self) -> int | None:
        """The number of blocks in an interval of the paper's method; None with "cusum"."""
        return self._plan.interval

    @property
    def false_alarm(self) -> float | None:
        """The probability that an interval of old records raises the alarm; None with "cusum"."""
        return self._plan.false_alarm

    @property
    def recommended_interval(self) -> int | None:
        """The smallest number of blocks in an interval that meets the targets of the paper's method; None with "cusum".

        It is the paper's condition n = Omega(SC log(k*/(n beta))) with its constants: a false alarm before k* has
        probability at most k* / mean_time_between_false_alarms, and an interval of new records is missed with
        probability at most beta/4. Otherwise fewer than two intervals are read after k*.
        """
        return self._plan.recommended_interval

    @property
    def accuracy(self) -> int:
        """The accuracy of the index of an alarm, in records."""
        return self._plan.accuracy

    @property
    def mean_time_between_false_alarms(self) -> float:
        """A lower bound on the mean number of records until an alarm if nothing changes."""
        return self._plan.mean_time_between_false_alarms

    @property
    def expected_delay(self) -> float:
        """An upper bound on the mean number of records from k* to the alarm."""
        return self._plan.expected_delay

    @property
    def delay_bound(self) -> int:
        """The number of records after k* within which the alarm comes with probability at least 1 - beta."""
        return self._plan.delay_bound

    @property
    def drift_detected(self) -> bool:
        """Whether the alarm was raised since the last :meth:`reset`."""
        return self._result is not None

    @property
    def alarm(self) -> Alarm | None:
        """The alarm; None before it is raised."""
        return self._result

    @property
    def threshold(self) -> int | None:
        """h, the level in votes that W must exceed for an alarm; None with the paper's method."""
        return self._plan.threshold

    @property
    def levels(self) -> tuple[int, ...]:
        """W after each of the newest blocks, oldest first, for the blocks of :attr:`trace`.

        It is empty with the paper's method. The newest level is above :attr:`threshold` if the alarm was raised.
        """
        self._settle()
        rule, progress = self._plan.rule, self._progress
        if not isinstance(rule, Cusum):
            return ()
        votes = self._plan.votes(list(self._released), 0)
        if progress.blocks <= len(votes):  # all since the start
            walk = np.cumsum(votes[len(votes) - progress.blocks :])
            return tuple((walk - np.minimum(np.minimum.accumulate(walk), 0)).tolist()) if len(walk) else ()
        since = np.array(votes[max(len(votes) - (progress.blocks - progress.zero), 0) :])  # W was above 0 ever since
        return tuple((progress.level - np.cumsum(since[::-1])[::-1] + since).tolist()) if progress.level else (0,)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the newest releases, block by block, and the alarm with its accuracy; never the records."""
        from privatest import pictures

        return pictures.monitor(self, ax)

    @property
    def title(self) -> str:
        """The name."""
        return "Monitor"

    def facts(self) -> list[Fact]:
        """Return the question, the guarantees and the releases so far."""
        return [
            *self._plan.facts(),
            Fact("seen", self.seen, "records so far; the number of the next one"),
            Fact("odd_records", "counted as 0", "records without sense to P and Q; privatest.check counts them"),
            Fact("drift_detected", self.drift_detected, "no alarm" if self.alarm is None else self.alarm.sentence),
            Fact("private", self.private, "SIMULATED, not private" if self.simulated else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return settings, guarantees and releases so far as plain values, ready for JSON."""
        alarm = None if self.alarm is None else self.alarm.to_dict()
        return {**self.values(), "alarm": alarm, "trace": list(self.trace)}

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"Monitor({plan.null} to {plan.alternative}, {self._cost}, method={self.method!r}, "
            f"block={self.block}, mean_time_between_false_alarms={self.mean_time_between_false_alarms:.4g}, "
            f"expected_delay={self.expected_delay:.4g}, accuracy={self.accuracy}, seen={self.seen}, "
            f"alarm={self.alarm!r})"
        )
