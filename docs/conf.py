"""The site: `make docs` builds it, strictly. A broken link, an unknown name or a page that nobody links to fails.

Pages are the Markdown files beside this one. The reference is made from the docstrings when the site is built:
`GROUPS` says under which heading a public name stands, and a name that stands under none is an error.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ConfigError
from sphinx.ext.napoleon import Config, GoogleDocstring

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

import privatest as pt  # noqa: E402  the one of this folder
from privatest.parameter_help import _parts, explained, public_names  # noqa: E402

project = "privatest"
author = "The privatest authors"
project_copyright = author
version = release = pt.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "pictures/README.md"]  # a page of pictures for those who browse the folder
html_theme = "furo"
html_title = f"privatest {release}"
html_show_sourcelink = html_copy_source = False
smartquotes_action = "D"  # dashes only: what is quoted may be copied
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5e8c", "color-brand-content": "#1b5e8c"},
    "dark_css_variables": {"color-brand-primary": "#7fb8e0", "color-brand-content": "#7fb8e0"},
}
pygments_style, pygments_dark_style = "default", "monokai"

nitpicky = True  # a name in a docstring that leads nowhere is an error
default_role = None
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # corrections of paper.md stand one level below the items of the paper
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "none"  # the words say what is taken; the types stand in the source
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
STYLE = Config(napoleon_use_ivar=True, napoleon_attr_annotations=False)

GROUPS = {
    "tests": (
        "P or Q",
        "decide design sample_size min_epsilon plan power_curve check",
    ),
    "best": (
        "How good is it",
        "compare lower_bound optimum",
    ),
    "hypotheses": ("What P and Q may be", "density mixture near contaminated any_of"),
    "estimates": (
        "How large is it",
        "estimate design_estimate compare_groups design_groups tabulate design_table table",
    ),
    "fit": ("Is it still P", "goodness_of_fit design_fit"),
    "changes": (
        "When did it change",
        "detect_change design_change block_test Monitor",
    ),
    "sequential": (
        "Decided yet",
        "Sequential",
    ),
    "privacy": (
        "Privacy and budgets",
        "notions verify_privacy adaptive_level Ledger",
    ),
    "data": ("Data and waiting", "data progress"),
    "theory": ("The paper's objects", "decompose sample_complexity theory"),
    "results": ("What questions return", "results"),
    "errors": ("Errors", "errors"),
}
"""Page, heading, and the public names on it."""


def reference(_app: Sphinx) -> None:
    """Write the pages of the reference: every public name once."""
    placed = [name for _, names in GROUPS.values() for name in names.split()]
    public = [name for name in pt.__all__ if not name.startswith("_")]
    if sorted(placed) != sorted(public):
        raise ConfigError(f"docs/conf.py: GROUPS and the public names differ in {sorted({*placed} ^ {*public})}")
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    index = ["# Reference", "", "Every public name with all its parameters, as `help()` tells them.", ""]
    for page, (heading, names) in GROUPS.items():
        first = ", ".join(
            f"{{py:obj}}`{name} <privatest.{name}>`"
            for name in names.split()
            if not inspect.ismodule(getattr(pt, name))
        )
        index.append(f"- [{heading}]({page}.md){': ' if first else ''}{first}")
        write(folder / f"{page}.md", [f"# {heading}", "", *(line for name in names.split() for line in entry(name))])
    index += ["", "```{toctree}", ":hidden:", "", *GROUPS, "```"]
    write(folder / "index.md", index)


def entry(name: str) -> list[str]:
    """The directives of a name; of a room, those of all its names."""
    value = getattr(pt, name)
    if inspect.ismodule(value):
        elsewhere = () if value is pt.results else pt.results.__all__
        found = [(f"{value.__name__}.{each}", getattr(value, each)) for each in public_names(value)]
        found = [(path, each) for path, each in found if path.rpartition(".")[2] not in {*pt.__all__, *elsewhere}]
    else:
        found = [(f"privatest.{name}", value)]
    lines = []
    for path, each in found:
        kind = "exception" if inspect.isclass(each) and issubclass(each, BaseException) else "class"
        lines += ["```{eval-rst}", f".. auto{kind if inspect.isclass(each) else 'function'}:: {path}"]
        if inspect.isclass(each) and kind == "class":
            lines += ["   :members:", "   :inherited-members:", "   :exclude-members: UNFIT, FORMAT, KIND, DESIGN"]
        lines += ["```", ""]
    return lines


def write(path: Path, lines: list[str]) -> None:
    """Only where something changed, so that a second build is quick."""
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def docstring(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Blocks of parameters as lists. Of a property the words before a colon are no type, as napoleon would have it."""
    before, head, _, after = _parts("\n".join(lines))
    if head:  # each parameter on its own
        lines[:] = [
            *before,
            head,
            *(f"    {each}: {text}" for each, text in explained("\n".join(lines)).items()),
            *after,
        ]
    what = "method" if what in ("attribute", "data", "property") else what
    lines[:] = GoogleDocstring(lines, STYLE, app, what, name, value, options).lines()


def in_short(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Docstrings write `PrivateTest.run` and `design` in short: only the first is among the results."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target:
        return None
    room = "privatest.results" if target.split(".")[0] in pt.results.__all__ else "privatest"
    document, kind = node["refdoc"], node["reftype"]
    return env.get_domain("py").resolve_xref(env, document, app.builder, kind, f"{room}.{target}", node, content)


def setup(app: Sphinx) -> None:
    app.connect("missing-reference", in_short)
    app.connect("builder-inited", reference)
    app.connect("autodoc-process-docstring", docstring)
