"""Has it changed yet? A stream watched as it comes, at the price of one epsilon for all of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import numbers
from privatest.changepoint.block_tests import check_errors, names_of, voter_of, whole_of
from privatest.changepoint.detector_search import paper_of
from privatest.charge import fingerprint
from privatest.errors import InvalidInput
from privatest.facts import Fact
from privatest.hypotheses.parse import as_hypothesis, pair_or_question
from privatest.numbers import Number
from privatest.privacy import make_notion
from privatest.privacy.notions import per_row
from privatest.streams.monitor_plan import (
    METHODS,
    Alarm,
    Cusum,
    MonitorPlan,
    MonitorTargets,
    pair_plan,
    unknown_plan,
    voted_plan,
)
from privatest.streams.stream import Stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Monitor(Stream[MonitorPlan, Alarm]):
    r"""Watch a stream for a change from P (``null``) to Q (``alternative``), with privacy for all of it.

    Records are gathered in blocks, each of which releases its noisy sum (or, for an unknown alternative, the bit of a
    private test); everything else is computed from these. "cusum" raises the alarm when

    .. math:: W_j = \max(W_{j-1} + \text{vote}_j, 0) > h,

    the votes being the sums' log-likelihood ratios; "paper" when an interval of blocks has more bits for the new
    regime than for the old one, and then places the change in the last two intervals.

    Guarantees: every record lies in one block, so all that a monitor ever puts out is together
    epsilon-differentially private, or meets the notion ``privacy`` (replace one record; the number of records is
    public), however long the stream.
    On a stream that does not change, the mean number of records till an alarm is at least
    ``mean_time_between_false_alarms``. On one that changes at k* before any alarm, the mean number of records from k*
    to the alarm is at most ``expected_delay``, it is at most ``delay_bound`` with probability 1 - beta, and the index
    is as accurate as :class:`Alarm` says. All of these are computed, none is simulated. The law of alarm and ``seen``
    does not depend on how the stream is cut into batches. Memory does not grow with the stream. A block's noise is
    drawn when the block is released; a monitor cannot be copied, pickled or used in a forked process. Threads may share
    one: they take turns.

    After an alarm nothing more is consumed: every further call gives the same alarm again, until :meth:`reset`. Go on
    then with record number ``seen``.

    A monitor with a state file (``state=``, or after the first :meth:`save`) writes each noisy sum to it before
    anything that depends on the sum is put out. After a restore, feed the stream from record number ``seen`` on: no
    block is then released twice and no alarm is lost, whenever the process was killed. Only the newest state may go on:
    the place where it was kept knows it, and with a ledger the ledger knows it of every copy anywhere.

    Args:
        null, alternative: the old and the new regime, in any of the forms that :func:`privatest.design` takes.
        distance: in place of an alternative: the total variation by which it differs from the null at least.
        epsilon: privacy loss of the whole stream; a float is read as its shortest decimal.
        privacy: in place of epsilon: another notion, such as ``pt.zcdp(0.5)`` or "approx(1, 1e-6)".
        beta: probability with which the alarm's index may be further off than its accuracy.
        method: "cusum" (the default: its computed delay is the smaller by far) or "paper".
        block: records in a block of "paper" (which is then the default); None: as many as advantage 2/3 needs,
            :func:`privatest.sample_size`, as the paper cuts them.
        test: the private test that votes on each block, in place of the one that would be designed: as for
            :func:`design_change`. With it "cusum" adds up the log-likelihood ratios of its bits. A function goes into
            no state file.
        interval: blocks in an interval, for "paper" (which is then the default), any number; None: the smallest
            that meets the targets. What a given one promises is computed and printed, whatever was asked for:
            ``mean_time_between_false_alarms``, ``false_alarm``, ``expected_delay``, ``accuracy``.
        mean_time_between_false_alarms: in records. None: a thousand times as many records as tell P from Q. Not a
            target where the interval is given.
        max_rows_per_unit: the most rows of one person that count in the whole stream; every update then says whose the
            records are (``unit``). The monitor is private for all rows of a person together: each row costs
            epsilon/max_rows_per_unit (of other notions: docs/notions.md). A row beyond these, or of nobody, stays in
            its place and counts as a record that makes no sense. What is promised holds where no person has more. Whose
            rows have counted is remembered; beside a state file as digests with a secret of the state's
            (``path + ".units"``, part of the state): raw, to be guarded like the data.
        state: path of a state file; where there is one of the same settings, the monitor goes on from it.
        ledger, dataset, request: charge that to a ledger, once, when the monitor begins. A request begins one
            monitor only: afterwards it is continued from its state file or not at all.
        source: what the stream comes from (a file, a table), noted in the ledger and compared with what
            the data set's grant covers; None: records handed over in Python.
        rng: only for simulations: a seeded generator in place of the operating system's randomness. The monitor then
            says that it is simulated, and is not private.

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
                voter.to_dict()  # refuses what no state file can hold
        else:
            whole = make_notion(epsilon, privacy)
            if (alternative is None) == (distance is None):
                raise InvalidInput(
                    "Give either the alternative Q or, when it is unknown, distance=, the total variation by which it "
                    "differs from P at least."
                )
            if distance is not None:
                distance = numbers.probability(distance=distance)
        given = {"null": null, "alternative": alternative}
        laws = [as_hypothesis(law, name) for name, law in given.items() if law is not None]
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
                found = voted_plan([voter], each, method, targets, names)
            elif distance is None:
                found = pair_plan(pair_or_question(null, alternative), each, method, targets)
            else:
                found = unknown_plan(null, distance, each, method, targets)
            return replace(found, max_rows_per_unit=rows, notion=whole)

        paying: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "request": request, "source": source}
        self._begin(laws, settings, make_plan, notion=whole, rows=rows, state=state, rng=rng, **paying)

    @property
    def beta(self) -> float:
        """Probability with which the alarm's index may be further off than its accuracy."""
        return self._plan.beta

    @property
    def method(self) -> str:
        """ "cusum" or "paper"."""
        return self._plan.method

    @property
    def block(self) -> int:
        """Records in a block."""
        return self._plan.block

    @property
    def interval(self) -> int | None:
        """Blocks in an interval of the paper's method."""
        return self._plan.interval

    @property
    def false_alarm(self) -> float | None:
        """Probability that one interval of old records raises the alarm, with the paper's method; None with "cusum"."""
        return self._plan.false_alarm

    @property
    def recommended_interval(self) -> int | None:
        """The smallest interval, in blocks, that meets the targets of the paper's method; None with "cusum".

        The paper's condition n = Omega(SC log(k*/(n beta))) with its constants: false alarms are as rare as asked (one
        before k* has probability at most k* / mean_time_between_false_alarms) and an interval of new records is missed
        with probability at most beta/4. Then fewer than two intervals are seen after k*, with that probability.
        """
        return self._plan.recommended_interval

    @property
    def accuracy(self) -> int:
        """The accuracy that an alarm will carry, in records."""
        return self._plan.accuracy

    @property
    def mean_time_between_false_alarms(self) -> float:
        """Bound from below on the mean number of records till an alarm when nothing changes."""
        return self._plan.mean_time_between_false_alarms

    @property
    def expected_delay(self) -> float:
        """Bound from above on the mean number of records from k* till the alarm."""
        return self._plan.expected_delay

    @property
    def delay_bound(self) -> int:
        """Records after k* by which the alarm was raised with probability at least 1 - beta."""
        return self._plan.delay_bound

    @property
    def drift_detected(self) -> bool:
        """Whether the alarm has been raised and :meth:`reset` was not called since."""
        return self._result is not None

    @property
    def alarm(self) -> Alarm | None:
        """The alarm, if it has been raised."""
        return self._result

    @property
    def threshold(self) -> int | None:
        """h, which W must exceed for an alarm, in votes; None with the paper's method."""
        return self._plan.threshold

    @property
    def levels(self) -> tuple[int, ...]:
        """W after each of the newest blocks, oldest first, as far back as :attr:`trace` goes; computed from it.

        Empty with the paper's method. The newest is above :attr:`threshold` where the alarm was raised.
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
        """The newest releases, block by block, and the alarm with its accuracy; never the records."""
        from privatest import pictures

        return pictures.monitor(self, ax)

    @property
    def title(self) -> str:
        """The name."""
        return "Monitor"

    def facts(self) -> list[Fact]:
        """The question, the promises, and what was released so far."""
        return [
            *self._plan.facts(),
            Fact("seen", self.seen, "records so far; the stream goes on with this one"),
            Fact("odd_records", "counted as 0", "records without sense to P and Q; privatest.check counts them"),
            Fact("drift_detected", self.drift_detected, "no alarm" if self.alarm is None else self.alarm.sentence),
            Fact("private", self.private, "SIMULATED, not private" if self.simulated else ""),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Settings, promises and what was released so far: plain values, ready for JSON."""
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
