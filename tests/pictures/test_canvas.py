"""Where pictures are drawn, what they need, and texts that are safe to draw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import privatest as pt
from privatest.errors import MissingExtra
from privatest.pictures.canvas import plain

PROGRAM = """
import sys, warnings
warnings.simplefilter("error")
from importlib.metadata import version
if version("matplotlib").startswith("3.8."):  # which uses new versions of others in old ways
    warnings.simplefilter("ignore", DeprecationWarning)
import privatest as pt
from privatest import pictures
split = pt.decompose("bernoulli(0.3)", "bernoulli(0.4)", epsilon=1)
before = dict(sys.modules)
assert "matplotlib" not in before
axes = split.plot()
assert "matplotlib.pyplot" not in sys.modules
import matplotlib as mpl
settings = dict(mpl.rcParams)
axes.figure.savefig(sys.argv[1])
from matplotlib import pyplot as plt
for _ in range(2):
    pictures.png(split.plot)
assert plt.get_fignums() == [], "a file leaves no figure behind"
axes = split.plot()
assert plt.get_fignums() == [axes.figure.number], "plt.show() would show it"
plt.close(axes.figure)
assert {k: v for k, v in mpl.rcParams.items() if settings.get(k) != v} in ({}, {"backend": "agg"})
"""


def test_figures_are_pyplot_s_only_where_pyplot_is_in_use(root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "MPLBACKEND": "Agg"}
    target = tmp_path / "picture.png"
    subprocess.run([sys.executable, "-c", PROGRAM, str(target)], check=True, env=environment)
    assert target.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    split = pt.decompose("bernoulli(0.3)", "bernoulli(0.4)", epsilon=1)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "matplotlib>=[\d.]+"$'):
        split.plot()


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("normal(0, 1)", "normal(0, 1)"),
        ("$x^2$", r"\$x^2\$"),
        ("two\nlines\x00", "two lines"),
        ("\u65e5", "\u25a1"),
        ("x" * 60, "x" * 47 + "\u2026"),
    ],
)
def test_texts_are_made_harmless(text: str, drawn: str) -> None:
    assert plain(text) == drawn
