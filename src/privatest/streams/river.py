"""A drift detector for river that is differentially private. Needs the extra: privatest[river]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privatest import errors
from privatest.streams.monitor import Monitor
from privatest.streams.monitor_plan import Alarm

try:
    from river import base
except ImportError:
    raise errors.MissingExtra.of("privatest.streams.river needs river.", "river") from None


class PrivateDrift(base.DriftDetector):
    """A :class:`privatest.Monitor` with river's protocol: ``update(x)``, then ``drift_detected``.

    Guarantees: as for the monitor. All alarms of a detector and their absence are together epsilon-differentially
    private, or meet the notion ``privacy`` (replace one record), also over resets. False alarms are at least
    ``mean_time_between_false_alarms`` records apart on average.

    As river's own detectors do, it starts anew with the first update after a drift. It can detect a drift only at the
    end of a block of ``monitor.block`` records; in between ``drift_detected`` is False.

    A clone is a detector of its own: it begins with no records and costs its own epsilon. A model that clones its
    detector for each of several trees and feeds all of them the same records spends epsilon once for each tree. A
    detector cannot be pickled or copied, because it holds raw records of an open block.

    Only the alarms are private. The model around the detector learns from the raw records and is not private, and
    neither are river's metrics and plots of the records.

    Args:
        null, alternative: the old and the new regime, as for :func:`privatest.design`; for the errors of a
            model, for example, "bernoulli(0.1)" and "bernoulli(0.3)".
        distance: in place of an alternative: the smallest total variation between it and the null.
        epsilon: privacy loss of the whole stream; 1 if ``privacy`` is not given either.
        privacy: in place of epsilon: another notion, such as "zcdp(0.5)" or "approx(1, 1e-6)".
        beta, method, mean_time_between_false_alarms: as for :class:`privatest.Monitor`.

    >>> detector = PrivateDrift("bernoulli(0.1)", "bernoulli(0.6)", epsilon=2)
    >>> for x in [0] * 200:
    ...     detector.update(x)
    >>> for i, x in enumerate([1] * 200):
    ...     detector.update(x)
    ...     if detector.drift_detected:
    ...         break
    >>> detector.drift_detected, i < 100, abs(detector.alarm.index - 200) <= detector.alarm.accuracy
    (True, True, True)
    """

    def __init__(
        self,
        null: Any,
        alternative: Any = None,
        distance: float | None = None,
        epsilon: float | None = None,
        beta: float = 0.1,
        method: str | None = None,
        mean_time_between_false_alarms: float | None = None,
        privacy: Any = None,
    ) -> None:
        super().__init__()
        self.null = null
        self.alternative = alternative
        self.distance = distance
        self.epsilon = epsilon
        self.beta = beta
        self.method = method
        self.mean_time_between_false_alarms = mean_time_between_false_alarms
        self.privacy = privacy
        self._monitor = Monitor(
            null,
            alternative,
            distance=distance,
            epsilon=1.0 if epsilon is None and privacy is None else epsilon,
            privacy=privacy,
            beta=beta,
            method=method,
            mean_time_between_false_alarms=mean_time_between_false_alarms,
        )

    @property
    def monitor(self) -> Monitor:
        """The monitor, with ``expected_delay``, ``accuracy`` and ``block``; its ``save`` keeps the state."""
        return self._monitor

    @property
    def alarm(self) -> Alarm | None:
        """The alarm behind ``drift_detected``, with its index and accuracy; None if there is none."""
        return self._monitor.alarm

    def update(self, x: Any) -> None:
        """Take one record: a number, or a label of P and Q. Anything else is a record that makes no sense.

        Only a path (``os.PathLike``) is refused.
        """
        if self._drift_detected:
            self._reset()
        if self._monitor.update_one(x) is not None:
            self._drift_detected = True

    def _reset(self) -> None:
        super()._reset()
        self._monitor.reset()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"null": "bernoulli(0.1)", "alternative": "bernoulli(0.6)", "epsilon": 2.0}
        yield {"null": "normal(0, 1)", "distance": 0.5, "epsilon": 5.0}
        yield {"null": "bernoulli(0.1)", "alternative": "bernoulli(0.6)", "privacy": "zcdp(0.5)"}
