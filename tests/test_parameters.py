"""Every parameter of every public callable is explained where help() looks, in words and not by a reference."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable, Iterator
from typing import Any

import privatest as pt
from privatest.parameter_help import _ELSEWHERE, explain, explained, public_names


def callables() -> Iterator[tuple[str, Any]]:
    """Functions, classes and their public methods, as they are reached from the package; no errors."""
    for name in pt.__all__:
        value = getattr(pt, name)
        within = (
            {f"{name}.{each}": getattr(value, each) for each in public_names(value)} if inspect.ismodule(value) else {}
        )
        for path, found in (within or {name: value}).items():
            if inspect.isclass(found) and issubclass(found, Exception):
                continue
            if callable(found):
                yield path, found
            if inspect.isclass(found):
                for method, member in inspect.getmembers(found, callable):
                    if not method.startswith("_") and (inspect.isfunction(member) or inspect.ismethod(member)):
                        yield f"{path}.{method}", member


def unexplained(value: Any) -> list[str]:
    """The parameters that its docstring does not explain, or only by naming another place."""
    words = explained(inspect.getdoc(value))
    named = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    bare = re.compile(r"|as there.*|see (above|there).*")
    return [
        name
        for name in named
        if not name.startswith("_")
        and (name not in words or _ELSEWHERE.fullmatch(words[name]) or bare.fullmatch(words[name]))
    ]


def test_every_parameter_is_explained(show: Callable[[str], None]) -> None:
    found = dict(callables())
    bare = {path: names for path, value in found.items() if (names := unexplained(value))}
    assert bare == {}
    parameters = sum(len(explained(inspect.getdoc(value))) for value in found.values())
    show(f"public callables {len(found)}, parameters and fields explained {parameters}")
    assert len(found) > 200


def test_help_shows_all_of_a_borrowed_one() -> None:
    text = pydoc.render_doc(pt.min_epsilon, renderer=pydoc.plaintext)
    for name in inspect.signature(pt.min_epsilon).parameters:
        assert re.search(rf"^ +(\w+, )*{name}(, \w+)*: \S", text, re.MULTILINE), name
    assert "as for" not in text.partition("Args:")[2]


def test_a_method_tells_what_its_base_tells() -> None:
    class Base:
        def run(self, data: list[int]) -> None:
            """Run.

            Args:
                data: the records.
            """

    class Special(Base):
        def run(self, data: list[int], column: str = "") -> None:
            """Run once.

            Args:
                column: where.
            """

    Base.__module__ = Special.__module__ = "privatest.somewhere"
    explain(Special)
    assert explained(Special.run.__doc__) == {"data": "the records.", "column": "where."}
