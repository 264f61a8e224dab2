"""Streams: monitors that raise an alarm at a change, and sequential tests. The proofs are in proof.md."""

from privatest.streams.evalues import combine_evalues, evalue_discoveries
from privatest.streams.monitor import Monitor
from privatest.streams.monitor_plan import Alarm, MonitorPlan
from privatest.streams.sequential import Sequential
from privatest.streams.sequential_plan import SequentialPlan, Verdict

__all__ = [
    "Alarm",
    "Monitor",
    "MonitorPlan",
    "Sequential",
    "SequentialPlan",
    "Verdict",
    "combine_evalues",
    "evalue_discoveries",
]
