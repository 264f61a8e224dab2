"""Whether a column fits a score is decided by its declared type alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.engines.records import UNDECLARED, Declared, check_declared
from privatest.errors import InvalidData
from privatest.hypotheses import make_pair
from privatest.scores import Score, clamped_score
from tests.engines.catalogue import SCORES

NUMBERS, STRINGS = Declared("numbers", "float64"), Declared("text", "string", "amount")


def over(*labels: Any) -> Score:
    shares = np.arange(1, len(labels) + 1) / sum(range(1, len(labels) + 1))
    return clamped_score(
        make_pair(dict(zip(labels, shares, strict=True)), dict(zip(labels, shares[::-1], strict=True))), (-1, 1)
    )


@pytest.mark.parametrize("name", SCORES)
def test_what_declares_nothing_always_fits(name: str) -> None:
    check_declared(UNDECLARED, SCORES[name].score)


@pytest.mark.parametrize(
    ("content", "fitting", "other"),
    [
        ("bytes", over(b"a", b"b"), over("a", "b")),
        ("text", over("a", "b"), over(b"a", b"b")),
        ("truths", over(1, 2), over(2, 3)),
        ("truths", over(True, False), over("a", "b")),
        ("numbers", over(2, "a"), over("a", "b")),
        (
            "truths",
            clamped_score(make_pair("uniform(0.5, 1.5)", "uniform(0.2, 1)"), (-1, 1)),
            clamped_score(make_pair("uniform(2, 3)", "uniform(2.5, 4)"), (-1, 1)),
        ),
    ],
)
def test_a_type_none_of_whose_values_is_in_a_support_is_refused(content: Any, fitting: Score, other: Score) -> None:
    check_declared(Declared(content, "its type"), fitting)
    with pytest.raises(InvalidData, match=r"\(its type\), but .*: no record of it could count\. .*column\.$"):
        check_declared(Declared(content, "its type"), other)
