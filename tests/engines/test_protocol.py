"""Whether a column fits a score is decided by its type alone."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.engines.protocol import check_numbers, check_text
from privatest.errors import InvalidData
from privatest.hypotheses import make_pair
from privatest.scores import Score, clamped_score
from tests.engines.catalogue import NUMERIC, SCORES, TEXT


def with_label(label: Any) -> Score:
    return clamped_score(make_pair({"a": 0.4, label: 0.6}, {"a": 0.6, label: 0.4}), (-1, 1))


@pytest.mark.parametrize("name", NUMERIC)
def test_numbers_fit_numbers(name: str) -> None:
    check_numbers(SCORES[name].score, "float64")
    with pytest.raises(InvalidData, match="text"):
        check_text(SCORES[name].score, "string")


@pytest.mark.parametrize("name", TEXT)
def test_text_fits_text(name: str) -> None:
    check_text(SCORES[name].score, "string")
    with pytest.raises(InvalidData, match="no label of the distributions is a number"):
        check_numbers(SCORES[name].score, "float64")


@pytest.mark.parametrize("label", [1, 0.5, True, np.int64(3), np.True_, Fraction(1, 3), Decimal("0.5")], ids=repr)
def test_one_number_among_the_labels_is_enough(label: Any) -> None:
    check_numbers(with_label(label), "float64")
    check_text(with_label(label), "string")
