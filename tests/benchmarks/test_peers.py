"""The comparison runs, says who is better, and the page holds what it prints."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.peers import BEGIN, END, PAGE, TABLES, Row, Table

TITLES = {
    "rate": "Is the rate 1/2, or higher?",
    "mean": "Is the mean 0?",
    "interval": "How large is the rate?",
    "sequential": "Decided yet?",
    "change": "When did it change?",
    "watch": "Has it changed yet?",
}
SMALL = Table(
    "T", "S.", ("records",), (Row("ours", "e", ("3",), 3), Row("x", "none", ("2",), 2), Row("y", "e", ("1",)))
)


def test_who_is_better_is_said() -> None:
    assert SMALL.better() == ["x (not private)"]
    assert "Better than ours here: x (not private)." in str(SMALL)
    alone = Table("T", "S.", ("records",), SMALL.rows[:1])
    assert "Better than ours here: nobody." in str(alone)


def test_the_page_holds_every_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    printed = page.split(BEGIN)[1].split(END)[0]
    assert re.findall(r"^## (.*)$", printed, flags=re.MULTILINE) == list(TITLES.values())
    assert list(TITLES) == list(TABLES)
    assert printed.count("Better than ours here: ") == len(TABLES)
    for named in re.findall(r"python -m benchmarks\.peers((?: [a-z]+)*)", page):
        assert set(named.split()) <= set(TABLES)
    for words in (
        "OpenDP",
        "Awan and Slavkovic",
        "test of tests",
        "DP-SPRT",
        "OfflinePCPD",
        "OnlinePCPD",
        "ruptures",
        "river",
    ):
        assert words in printed


@pytest.mark.parametrize(("name", "needs"), [("rate", "opendp"), ("sequential", "numpy"), ("change", "ruptures")])
def test_it_runs(name: str, needs: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(needs)
    peers.main([name, "--runs", "3"])
    told = capsys.readouterr().out
    assert f"## {TITLES[name]}" in told
    page = PAGE.read_text(encoding="utf-8")
    heads = [re.sub(r"\s+", " ", line) for line in told.splitlines() if line.startswith("| way")]
    assert heads
    assert all(head in re.sub(r" +", " ", page) for head in heads)
    for row in re.findall(r"^\| (\S.*?)\s+\|", told, flags=re.MULTILINE):
        assert row in page


def test_the_published_noise_is_ours() -> None:
    """Awan and Slavkovic's cdf from their definition, beside that of our noise on whole counts."""
    from fractions import Fraction

    from privatest.privacy import Tulap

    width = 1001
    ours = Tulap(Fraction(1), width)
    x = np.array([-3.2, -1.0, -0.499, 0.0, 0.25, 2.7])
    found = peers.tulap_cdf(x, 1.0)
    assert found == pytest.approx(ours.cdf(np.round(x * width)), abs=1e-3)
    assert abs(peers.tulap_cdf(x, 2.0) - found).max() > 0.01
