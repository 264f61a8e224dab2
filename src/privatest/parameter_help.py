"""Explanations of parameters: each is written once, and ``help()`` shows it at every function that has the parameter.

A docstring explains parameters in an ``Args:`` block, and the fields of a class in ``Attributes:``. A parameter that is
explained elsewhere is not explained again; the docstring names the place::

    Args:
        null, alternative, epsilon: as for :func:`privatest.design`.

When a public name is first used, :func:`explain` replaces this by the words of that place, parameter by parameter. A
parameter that a method does not explain has the words of the base class's method of that name, and one that is
explained nowhere has those of :data:`COMMON`. A test checks that every public callable is explained completely.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

COMMON = {
    "ax": "matplotlib axes to draw on; None: a figure of its own.",
    "cut": "public number at which records are divided; a record equal to it counts as above.",
    "document": "a mapping as :meth:`to_dict` returns it.",
    "text": "JSON as :meth:`to_json` returns it.",
    "dataset": "name of the data set in the ledger.",
    "request": "name of the request: the same one again gives the same answer, free of charge.",
    "released.epsilon": "privacy loss; a float is read as its shortest decimal.",
    "released.design": "fingerprint of the design; another design under the same name is a conflict.",
    "released.privacy": "notion of privacy in which the request was paid, if that is not epsilon.",
    "released.source": "address of the data, which is compared with the recorded one.",
    "released.settings": "settings of the design, which are compared with the recorded ones.",
    "released.neighbours": "neighbours that the price hides, which are compared with the recorded ones.",
    "released.unit": "column that names the person, which is compared with the recorded one.",
    "plot.release": "release of a run of this design, to be drawn into the picture; None: the design alone.",
    "release.simulated": "whether the caller provided the randomness; such a release says that it is not private.",
    "coverage.at": "the true value.",
    "expected_width.at": "the true value.",
    "width_bound.at": "the true value.",
    "quantile_n.share": "share of the runs, in (0, 1): with 0.9, nine of ten runs need at most the returned number.",
}
"""Words for parameters that mean the same everywhere, or in every method of one name."""

_HEAD = re.compile(r"(Args|Attributes):")
_ENTRY = re.compile(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)")
_ELSEWHERE = re.compile(r"(?:as for|see) :(?:func|meth|class):`~?(?:privatest\.)?([\w.]+)`\.?")
_WIDTH = 100
_done: set[Any] = set()


def explained(doc: str | None) -> dict[str, str]:
    """Return the words for each parameter that a docstring explains.

    >>> explained('''Draw.
    ...
    ... Args:
    ...     low, high: the ends,
    ...         both of them.
    ... ''')
    {'low': 'the ends, both of them.', 'high': 'the ends, both of them.'}
    """
    result: dict[str, str] = {}
    for names, words in _entries(_parts(doc or "")[2]):
        result |= {name.lstrip("*"): words for name in names.split(", ")}
    return result


def public_names(module: Any) -> list[str]:
    """Return the names in a module's ``__all__``; without one, those of all that it holds but modules."""
    held = [name for name, one in vars(module).items() if not (name.startswith("_") or inspect.ismodule(one))]
    return list(getattr(module, "__all__", held))


def explain(value: Any) -> None:
    """Complete the docstring of a public function, of a class and its public methods, or of what a module holds."""
    if inspect.ismodule(value):
        for name in public_names(value):
            explain(vars(value).get(name))  # a name that is loaded when it is first used is explained then
    elif inspect.isclass(value):
        for owner in reversed(value.__mro__):
            if owner.__module__.startswith("privatest") and owner not in _done:
                _done.add(owner)
                _explain_class(owner)
    elif inspect.isfunction(value) and value not in _done:
        _done.add(value)
        _complete(value, _parameters(value), "Args", lambda _: None)


def _explain_class(owner: type) -> None:
    def of_base(parameter: str, method: str | None = None) -> str | None:
        for base in owner.__mro__[1:]:
            documented = base.__dict__.get(method) if method else base
            if documented is not None and parameter in (words := explained(inspect.getdoc(documented))):
                return words[parameter]
        return None

    has_own_init = "__init__" in owner.__dict__ and not hasattr(owner, "__dataclass_fields__")
    if has_own_init:
        _complete(owner, _parameters(owner.__dict__["__init__"]), "Args", of_base, owner)
    elif hasattr(owner, "__dataclass_fields__"):
        fields = [name for name in owner.__dataclass_fields__ if not name.startswith("_")]
        _complete(owner, fields, "Attributes", of_base, owner)
    for name, member in owner.__dict__.items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function):
            _complete(function, _parameters(function), "Args", lambda p, method=name: of_base(p, method), owner)  # type: ignore[misc]


def _parameters(function: Any) -> list[str]:
    """Return the names of a function's parameters in order, with their stars, without ``self`` and ``cls``."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(function).parameters
    return [stars.get(one.kind, "") + name for name, one in parameters.items() if name not in ("self", "cls")]


def _complete(
    documented: Any, parameters: list[str], title: str, of_base: Callable[[str], str | None], owner: type | None = None
) -> None:
    """Write the docstring's block anew: the parameters in order, then whatever else it explains."""
    doc = inspect.cleandoc(documented.__doc__) if documented.__doc__ else None
    if doc is None or not parameters:  # removed by -OO, or inherited
        return
    before, head, _, after = _parts(doc)
    own = explained(doc)
    words: dict[str, str] = {}
    for starred in [*parameters, *(name for name in own if name not in {p.lstrip("*") for p in parameters})]:
        name = starred.lstrip("*")
        own_words = own.get(name)
        if own_words is not None and (there := _ELSEWHERE.fullmatch(own_words)):
            own_words = explained(_doc_of(there[1], owner)).get(name)
        result = own_words or of_base(name) or COMMON.get(f"{documented.__name__}.{name}") or COMMON.get(name)
        if result:
            words[starred] = result
    groups = [(", ".join(names), text) for text, names in groupby(words, lambda name: words[name])]
    if words:
        lines = [
            textwrap.fill(f"{name}: {text}", _WIDTH, initial_indent="    ", subsequent_indent=" " * 8)
            for name, text in groups
        ]
        documented.__doc__ = "\n".join([*before, head or f"{title}:", *lines, *([""] if after else []), *after]) + "\n"


def _doc_of(path: str, owner: type | None) -> str | None:
    """Return the completed docstring of a public name (``design``, ``PrivateTest.run``) or of the owner's method."""
    import privatest  # start-up: the package's __init__ imports this module

    parts = path.split(".")
    result: Any = privatest if owner is None or len(parts) > 1 or path in privatest.__all__ else owner
    if parts[0] in privatest.results.__all__:  # docstrings write PrivateTest.run
        result = privatest.results
    for part in parts:
        result = getattr(result, part, None)
    return inspect.getdoc(result)


def _parts(doc: str) -> tuple[list[str], str, list[str], list[str]]:
    """Return the lines before the block, its heading, its own lines, and the lines after it.

    If there is no block, its place is before the examples.
    """
    lines = doc.splitlines()
    for start, line in enumerate(lines):
        if _HEAD.fullmatch(line):
            end = start + 1
            while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
                end += 1
            return lines[:start], line, [one for one in lines[start + 1 : end] if one], lines[end:]
    end = next((k for k, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    before = lines[:end]
    while before and not before[-1]:
        before.pop()
    return [*before, ""], "", [], lines[end:]


def _entries(block: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and the words of each entry of a block."""
    names, words = "", [""]
    for line in block:
        if match := _ENTRY.fullmatch(line):
            if names:
                yield names, " ".join(words)
            names, words = match[1], [match[2].strip()]
        else:
            words.append(line.strip())
    if names:
        yield names, " ".join(words)
