"""The site: its table of families is the parser's, its pages are complete, and what is broken in it fails the build."""

from __future__ import annotations

import ast
import html
import importlib.util
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import privatest as pt
from docs import make_families
from privatest.hypotheses.families import FAMILIES
from tests.needs import missing

BUILD = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]


def need_sphinx() -> None:
    if importlib.util.find_spec("sphinx") is None:
        missing('The site needs Sphinx. Get it: pip install -e ".[docs]"')


def test_every_public_name_has_its_place_in_the_reference(root: Path) -> None:
    """Read without Sphinx, so that whoever adds a name is told at once."""
    tree = ast.parse((root / "docs" / "conf.py").read_text(encoding="utf-8"))
    (groups,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GROUPS"
    )
    placed = sorted(name for _, names in groups.values() for name in names.split())
    assert placed == sorted(name for name in pt.__all__ if not name.startswith("_"))


def test_every_page_is_reached_from_the_first_one(root: Path) -> None:
    trees = re.findall(
        r"^```\{toctree\}\n(.*?)^```$", (root / "docs/index.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    named = [
        re.sub(r".*<(.*)>", r"\1", line) for tree in trees for line in tree.splitlines() if line and line[0] != ":"
    ]
    pages = {path.stem for path in (root / "docs").glob("*.md")} - {"index"}
    assert sorted(named) == sorted({*pages, "decisions/index", "reference/index"})


def test_the_page_of_families_is_the_parsers_table() -> None:
    assert make_families.PAGE.read_text(encoding="utf-8") == make_families.page()


def frozen(name: str, *values: float) -> stats.rv_continuous:
    """The law of a text as scipy has it."""
    family = FAMILIES[name]
    shapes, loc, scale = family.arguments(values)
    law = getattr(stats, family.scipy)
    return law(*shapes, loc=loc) if family.discrete else law(*shapes, loc=loc, scale=scale)


# What the table says a parameter is, computed by scipy from the law: (law, quantity, the parameter's value).
MEANINGS = {
    "normal mean": (frozen("normal", 3, 2).mean(), 3),
    "normal sd": (frozen("normal", 3, 2).std(), 2),
    "laplace loc": (frozen("laplace", 3, 2).median(), 3),
    "laplace scale": (frozen("laplace", 3, 2).expect(lambda x: np.abs(x - 3)), 2),
    "cauchy loc": (frozen("cauchy", 3, 2).median(), 3),
    "cauchy scale": (np.diff(frozen("cauchy", 3, 2).ppf([0.25, 0.75]))[0] / 2, 2),
    "logistic loc": (frozen("logistic", 3, 2).mean(), 3),
    "logistic scale": (frozen("logistic", 3, 2).std() * math.sqrt(3) / math.pi, 2),
    "gumbel scale": (frozen("gumbel", 3, 2).std() * math.sqrt(6) / math.pi, 2),
    "uniform low": (frozen("uniform", 3, 5).support()[0], 3),
    "uniform high": (frozen("uniform", 3, 5).support()[1], 5),
    "exponential scale": (frozen("exponential", 3).mean(), 3),
    "half_normal scale": (frozen("half_normal", 3).cdf(3), stats.norm.cdf(1) - stats.norm.cdf(-1)),
    "gamma shape": (frozen("gamma", 3, 2).mean() / 2, 3),
    "gamma scale": (frozen("gamma", 3, 2).var() / frozen("gamma", 3, 2).mean(), 2),
    "inverse_gamma": (frozen("inverse_gamma", 3, 2).cdf(0.7), frozen("gamma", 3, 1 / 2).sf(1 / 0.7)),
    "weibull scale": (frozen("weibull", 3, 2).cdf(2), 1 - math.exp(-1)),
    "pareto": (frozen("pareto", 3, 2).sf(5), (2 / 5) ** 3),
    "lognormal mean": (frozen("lognormal", 3, 2).expect(np.log), 3),
    "lognormal sd": (math.sqrt(frozen("lognormal", 0, 2).expect(lambda x: np.log(x) ** 2)), 2),
    "beta": (frozen("beta", 3, 2).mean(), 3 / 5),
    "student_t scale": (frozen("student_t", 5, 3, 2).std() * math.sqrt(3 / 5), 2),
    "chi2 df": (frozen("chi2", 3).mean(), 3),
    "bernoulli p": (frozen("bernoulli", 0.3).pmf(1), 0.3),
    "binomial": (frozen("binomial", 7, 0.3).mean(), 7 * 0.3),
    "poisson mean": (frozen("poisson", 3).mean(), 3),
    "geometric p": (frozen("geometric", 0.3).pmf(1), 0.3),
    "negative_binomial": (frozen("negative_binomial", 3, 0.4).pmf(0), 0.4**3),
    "zipf a": (frozen("zipf", 3).pmf(2) / frozen("zipf", 3).pmf(1), 2**-3),
}


@pytest.mark.parametrize("what", MEANINGS)
def test_a_parameter_means_what_the_table_says(what: str) -> None:
    found, value = MEANINGS[what]
    assert found == pytest.approx(value, rel=1e-6)


BROKEN = {
    "link": ("[there](nowhere.md)", "nowhere"),
    "anchor": ("[there](#nowhere)", "nowhere"),
    "name": ("{py:func}`privatest.nowhere`", "nowhere"),
}


def test_what_is_broken_fails_the_build(root: Path, tmp_path: Path) -> None:
    """The site's own settings, on a page with one mistake of each kind and one that nobody links to."""
    need_sphinx()
    conf = f"import sys\nsys.path.insert(0, {str(root)!r})\nfrom docs.conf import *\n\ndef setup(app): ...\n"
    (tmp_path / "conf.py").write_text(conf)
    (tmp_path / "index.md").write_text("# One\n\n" + "\n\n".join(text for text, _ in BROKEN.values()))
    (tmp_path / "lonely.md").write_text("# Two\n")
    found = subprocess.run([*BUILD, "-b", "dummy", tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert found.returncode != 0
    warnings = found.stderr.splitlines()
    for kind, (_, sign) in BROKEN.items():
        assert any(sign in line for line in warnings), kind
    assert sum("nowhere" in line for line in warnings) == len(BROKEN)
    assert any("lonely.md" in line and "toctree" in line for line in warnings)


@pytest.mark.exhaustive
def test_the_site_builds(root: Path, tmp_path: Path, show: Callable[[str], None]) -> None:
    need_sphinx()
    found = subprocess.run([*BUILD, "-b", "html", root / "docs", tmp_path], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    pages = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html"))
    assert {"index.html", "questions.html", "families.html", "reference/tests.html"} <= set(pages)
    text = re.sub("<[^>]*>", "", (tmp_path / "reference/tests.html").read_text("utf-8"))
    assert str(pt.min_epsilon.__doc__).partition("\n")[0].partition(":")[0] in html.unescape(text)
    show(f"pages of the site {len(pages)}")
