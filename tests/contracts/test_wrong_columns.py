"""Every public call that reads a column, times a right and five wrong ones: right, refused or said, never silent.

The table is that of ``python -m benchmarks.ordinary columns``, whose verdicts are computed.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import privatest as pt
from benchmarks import ordinary

FOUND = ordinary.wrong_columns()


@pytest.mark.parametrize("name", ordinary.column_questions())
def test_no_answer_is_silently_wrong(name: str) -> None:
    verdicts = {kind: ordinary.column_verdict(name, column, 1) for kind, column in FOUND.items()}
    assert "silent" not in verdicts.values(), verdicts
    if name not in ("count_records", "compare_groups, group=x", "detect_change, order=x", "unit=x"):
        assert verdicts["dates"] == "refused"
    if name.startswith("estimate, "):
        numbers = name in ("estimate, normal", "estimate, share above")
        assert (verdicts["numbers"] == "right") == numbers, verdicts


def test_every_question_is_asked() -> None:
    """What reads a column is in the table by its name, or by that of the design it belongs to."""
    asked = " ".join(ordinary.column_questions())
    for name in ("decide", "design", "optimum", "goodness_of_fit", "estimate", "compare_groups", "detect_change"):
        assert name in asked
    for name in ("detect_changes", "monitor", "sequential", "check", "count_records"):
        assert name in asked


def test_a_silent_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that answers 0.5 for whatever it is given."""

    class Answer:
        sentence, fits, interval, width = "The share is about 0.5.", True, (0.4, 0.6), 0.2

    def ask(_: Any, ledger: Any = None, **paying: Any) -> Answer:
        if ledger is not None:
            pt.estimate([0, 1] * 99, "bernoulli(?)", epsilon=1, ledger=ledger, **paying)
        return Answer()

    def share(column: pd.Series, answer: Answer) -> bool:
        return answer.interval[0] <= (column == "Yes").mean() <= answer.interval[1]

    monkeypatch.setattr(ordinary, "column_questions", lambda: {"half": (ask, share)})
    assert ordinary.column_verdict("half", FOUND["dates"], 1) == "silent"

    def late(_: Any, ledger: Any = None, **paying: Any) -> None:
        ask(_, ledger=ledger, **paying)
        raise pt.errors.InvalidData("too late")

    monkeypatch.setattr(ordinary, "column_questions", lambda: {"late": (late, share)})
    assert ordinary.column_verdict("late", FOUND["dates"], 1) == "silent", "a refusal after the charge"
