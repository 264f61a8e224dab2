"""Two groups in one table: what is said of its columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import privatest as pt
from privatest import engines
from privatest.engines.sources import open_arms
from privatest.errors import InvalidData

HEADLESS = "Smith,17.5,1\nJones,2.5,0\nMiller,3.5,1\n"


@pytest.mark.parametrize("words", [{"group": "arm"}, {"group": "Smith"}, {"group": "Smith", "column": "bought"}])
def test_no_message_quotes_the_first_line_of_a_text_file_which_may_be_a_record(
    tmp_path: Path, words: dict[str, str]
) -> None:
    where = tmp_path / "visits.csv"
    where.write_text(HEADLESS)
    with pytest.raises(InvalidData) as refused:
        pt.compare_groups(where, epsilon=1, **words)  # type: ignore[arg-type]
    assert "17.5" not in str(refused.value)
    assert "Smith" not in str(refused.value).replace(repr(words["group"]), "")


def test_groups_that_were_opened_for_more_rows_than_the_noise_hides_are_refused() -> None:
    frame = pd.DataFrame({"who": [0, 0, 0, 1, 2, 2], "arm": ["a"] * 3 + ["b"] * 3, "x": [1.0] * 6})
    opened = open_arms(engines.Need(rows=3), frame, group="arm", column="x", unit="who")
    design = pt.design_groups(n=opened.counts(), epsilon=1)
    with pytest.raises(InvalidData, match="max_rows_per_unit=3"):
        design.run(opened, group="arm")
    assert pt.design_groups(n=opened.counts(), epsilon=1, max_rows_per_unit=3).run(opened, group="arm").private
