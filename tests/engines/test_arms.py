"""Two groups in one table: what is said of its columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import privatest as pt
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
