"""A monitor's design: what the blocks release, the rule that raises the alarm, and what is known of both beforehand."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from privatest.changepoint.released import FitBlocks, SumBlocks, blocks_from_dict
from privatest.changepoint.rules import Rule, rule_from_dict
from privatest.errors import InvalidDocument

__all__ = ["Watch"]

_NUMBERS = ("beta", "mean_time_between_false_alarms", "expected_delay")
_WHOLE = ("accuracy", "delay_bound")
_TEXTS = ("method", "null", "alternative")


@dataclass(frozen=True, eq=False)
class Watch:
    """Everything a monitor needs besides its progress; restores from plain JSON values.

    Attributes:
        blocks: what the blocks release and vote.
        rule: when to raise the alarm.
        method: "cusum" or "paper".
        beta, accuracy: as stated in :class:`Alarm`.
        mean_time_between_false_alarms: bound from below on the mean number of records till a false alarm.
        expected_delay: bound from above on the mean number of records after k* till the alarm.
        delay_bound: records after k* by which the alarm was raised with probability at least 1 - beta.
        recommended_interval: blocks in an interval of the paper's method that meet its targets; None with "cusum".
        null, alternative: short descriptions.
    """

    blocks: SumBlocks | FitBlocks
    rule: Rule
    method: str
    beta: float
    accuracy: int
    mean_time_between_false_alarms: float
    expected_delay: float
    delay_bound: int
    recommended_interval: int | None
    null: str
    alternative: str

    @property
    def epsilon(self) -> Fraction:
        """Privacy loss of the whole stream."""
        return self.blocks.epsilon

    @property
    def block(self) -> int:
        """Records in a block."""
        return self.blocks.block

    def releases(self) -> dict[str, Any]:
        """What the releases depend on besides the data: plain JSON values."""
        return {"blocks": self.blocks.to_dict(), "rule": self.rule.to_dict()}

    @cached_property
    def text(self) -> str:
        """JSON text of :meth:`to_dict`, always the same."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        known = {name: getattr(self, name) for name in (*_NUMBERS, *_WHOLE, *_TEXTS, "recommended_interval")}
        return {**self.releases(), **known}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Watch:
        """What :meth:`to_dict` wrote; refuses a monitor that is not private at its declared epsilon."""
        numbers = {name: float(document[name]) for name in _NUMBERS}
        whole = {name: document[name] for name in _WHOLE}
        texts = {name: document[name] for name in _TEXTS}
        interval = document["recommended_interval"]
        sound = all(math.isfinite(number) and number > 0 for number in numbers.values())
        sound &= all(type(number) is int and number >= 0 for number in whole.values())
        sound &= all(isinstance(text, str) for text in texts.values())
        if not sound or not (interval is None or type(interval) is int):
            raise InvalidDocument("The design of the monitor does not fit together.")
        blocks, rule = blocks_from_dict(document["blocks"]), rule_from_dict(document["rule"])
        return cls(blocks, rule, recommended_interval=interval, **{**numbers, **whole, **texts})
