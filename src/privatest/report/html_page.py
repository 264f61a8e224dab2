"""The report: one HTML page with the question, the result, the guarantee, the budget, the design and its pictures.

It is made from designs, releases and the settings of the question alone; these settings hold neither data nor
passwords. The guarantee is written for a data-protection officer, with what it does not cover. A file is written whole
or not at all.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from privatest import __version__, options
from privatest import facts as markup
from privatest.bounds import HistogramTest, Optimum
from privatest.changepoint import ChangePlan, ChangePoint
from privatest.data_addresses import without_secrets
from privatest.decision import PrivateTest, Release
from privatest.errors import InvalidInput, MissingExtra, PrivatestError, shown
from privatest.estimates import (
    EstimateDesign,
    EstimateRelease,
    GroupsDesign,
    GroupsRelease,
    Table,
    TableAnswer,
    TableDesign,
    TableEstimate,
)
from privatest.estimates.stepped_design import SteppedDesign
from privatest.fit import FitRelease, FitTest
from privatest.hypotheses.families import FAMILIES
from privatest.hypotheses.one_parameter import condition
from privatest.hypotheses.parse import as_hypothesis
from privatest.pictures import png
from privatest.power import Comparison, Plan, PowerCurve
from privatest.privacy import Notion, Pure, as_notion
from privatest.streams import SequentialPlan, Verdict
from privatest.theory import Decomposition, SampleComplexity, decompose

LAWS = ("null", "alternative")
# The only settings that may be lists, with their lengths. Any other list could be a column of data.
LISTS = {"between": 2, "sd_between": 2, "clamp": 2, "n": 200, "schedule": 2}
LONGEST = 4000
UNKNOWN = "data.csv"


def plain_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a question as texts, numbers and short lists, with laws as text.

    Values that could hold data are refused. Addresses are returned without user names, passwords and options.
    """
    if not isinstance(question, Mapping):
        raise InvalidInput(f"question must be a mapping of settings, not {type(question).__name__}.")
    settings: dict[str, Any] = {}
    for key, value in question.items():
        name = str(key)
        if value is None:
            continue
        settings[name] = _law(name, value) if name in LAWS else _setting(name, value)
    return settings


def _law(name: str, value: Any) -> str:
    """Return a hypothesis as text."""
    if isinstance(value, str):
        return value[:LONGEST]
    try:
        law = as_hypothesis(value, name)
    except PrivatestError:  # its message may quote a number, which might be a record's
        raise InvalidInput(
            f"question[{name!r}] of type {type(value).__name__} is neither a distribution nor a set of distributions."
        ) from None
    spec = law.spec
    return str(spec if spec is not None and len(spec) <= LONGEST else law.describe())


def _setting(name: str, value: Any) -> Any:
    """Return a setting as a text, a number or a short list."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, str):
        return without_secrets(value)[:LONGEST]
    most = LISTS.get(name, 0)
    if isinstance(value, list | tuple) and len(value) <= most and all(isinstance(one, int | float) for one in value):
        return list(value)
    raise InvalidInput(
        f"question[{name!r}] is of type {type(value).__name__}. A report accepts only texts and numbers, so that it "
        "cannot hold data."
    )


def python(kind: str, question: dict[str, Any]) -> str:
    """Return the call of the public function as Python code that the reader can run."""
    laws = [repr(question[name]) for name in _laws(kind) if question.get(name)]
    source = _read(kind, question, _source(question))
    if question.get("treatment"):
        source = f"{source}, {_read(kind, question, question['treatment'])}"
    rules = [name for name in options.named(kind, options.RULE) if name not in _laws(kind)]
    settings = [f"{name}={_value(question[name])}" for name in rules if name in question]
    run = [*options.named(kind, options.WHERE, options.RUN), "dataset", "request"]
    running = [f"{name}={question[name]!r}" for name in run if name in question]
    lines = ["import privatest as pt", ""]
    if "ledger" in question:
        lines.append(f"ledger = pt.Ledger({question['ledger']!r})")
        running.append("ledger=ledger")
    call = f"pt.{options.QUESTIONS[kind].call}"
    if kind == "plan":
        lines.append(f"{call}({', '.join([*laws, *settings])}).design")
    elif kind == "sequential":
        lines.append(f"run = {call}({', '.join([*laws, *settings, *running])})")
        lines.append(f"run.update(pt.data.read_lines(open({source}, 'rb').read().splitlines()))")
    elif kind == "test":
        lines.append(f"test = {call}({', '.join([*laws, *settings])})")
        lines.append(f"test.run({', '.join([source, *running])})")
    else:
        lines.append(f"{call}({', '.join([source, *laws, *settings, *running])})")
    return "\n".join(lines)


def command(kind: str, question: dict[str, Any]) -> str:
    """Return the call as a command line."""
    words = ["privatest", kind]
    if kind != "plan":
        words += [str(_source(question)), *([str(question["treatment"])] if question.get("treatment") else [])]
    roles = (options.RULE, options.WHERE, options.READING, options.RUN, options.PAYER)
    for name in options.named(kind, *roles):
        value = question.get(name)
        if value is None or value is False:
            continue
        words.append(options.flag(name))
        if options.find(kind, name).kind is options.RANGE:
            words += map(str, value)
        elif value is not True:
            words.append(",".join(map(_value, value)) if isinstance(value, list) else str(value))
    return shlex.join(words)


def _read(kind: str, question: dict[str, Any], source: Any) -> str:
    """Return the data as Python code, with the rules for reading their texts."""
    reading = {name: question[name] for name in options.named(kind, options.READING) if question.get(name)}
    if "missing" in reading:
        reading["missing"] = options.separate(reading["missing"])
    words = "".join(f", {name}={value!r}" for name, value in reading.items())
    return f"pt.data.read_as({source!r}{words})" if reading else repr(source)


def _source(question: dict[str, Any]) -> Any:
    """Return the address of the data, or a made-up name if it is not known."""
    return next((question[name] for name in ("source", "data") if name in question), UNKNOWN)


def _laws(kind: str) -> list[str]:
    """Return the options of a question that are hypotheses, which the function takes by position."""
    return [option.name for option in options.of(kind) if option.kind is options.LAW]


def document(design: Any) -> str | None:
    """Return the design as JSON, or None if it has no document."""
    if design is None or not callable(getattr(design, "to_dict", None)):
        return None
    return json.dumps(design.to_dict(), indent=1, default=str)


def _value(value: Any) -> str:
    """Return a setting as Python code."""
    return f"({', '.join(map(repr, value))})" if isinstance(value, list) else repr(value)


KINDS = {
    "plan": "Plan of a private test",
    "test": "Result of a private test",
    "detect": "Search for a change point, privately",
    "fit": "Private test of goodness of fit",
    "estimate": "Private estimate with an interval",
    "groups": "Private comparison of two groups",
    "table": "Noisy table",
    "sequential": "Private sequential test",
}
DESIGNS = (
    PrivateTest,
    FitTest,
    ChangePlan,
    HistogramTest,
    EstimateDesign,
    GroupsDesign,
    SequentialPlan,
    TableDesign,
    SteppedDesign,
)
EXTRAS = (Decomposition, SampleComplexity, PowerCurve, Comparison)
RESULTS: dict[str, Any] = {
    "test": Release,
    "detect": ChangePoint,
    "fit": FitRelease,
    "estimate": (EstimateRelease, TableAnswer, TableEstimate),
    "groups": GroupsRelease,
    "table": Table,
    "sequential": Verdict,
    "plan": (),
}
PICTURED = (Release, EstimateRelease, GroupsRelease, Table, TableAnswer, TableEstimate)
"""Releases that are drawn in the picture of their design."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
:root{color-scheme:light dark;--ink:#111;--page:#fff;--soft:#444;--line:#bbb;--head:#f3f3f3;--box:#f6f6f6;
--answer:#f2f8fc;--warn:#fdf3ec;--null:#0072b2;--alternative:#d55e00}
@media (prefers-color-scheme:dark){:root{--ink:#e8edf3;--page:#11161c;--soft:#a7b2be;--line:#45505c;--head:#1f2730;
--box:#1a2129;--answer:#16242f;--warn:#2f2016;--null:#56b4e9;--alternative:#e69f00}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:52rem;margin:2rem auto;
padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.7rem;line-height:1.2;margin-bottom:.2rem}
h2{font-size:1.25rem;margin-top:2rem;border-bottom:1px solid var(--line)}
h3{font-size:1.05rem}
table{border-collapse:collapse;margin:.6rem 0;max-width:100%}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{border:1px solid var(--line);padding:.2rem .6rem;text-align:left;vertical-align:top}
th{background:var(--head);font-weight:600;overflow-wrap:break-word}
pre{background:var(--box);border:1px solid var(--line);padding:.6rem;white-space:pre-wrap;font-size:.85rem}
pre.line{font-size:.7rem}
td:nth-child(3){width:45%}
img{max-width:100%;height:auto;background:#fff}
@media screen and (prefers-color-scheme:dark){img{filter:invert(.92) hue-rotate(180deg)}}
figure{margin:1rem 0;break-inside:avoid}
figcaption{font-size:.9rem;color:var(--soft)}
details{margin:.6rem 0}
summary{cursor:pointer;font-weight:600;padding:.2rem 0}
.answer{font-size:1.15rem;border-left:.35rem solid var(--null);padding:.4rem .8rem;background:var(--answer)}
.warning{border-left:.35rem solid var(--alternative);padding:.4rem .8rem;background:var(--warn);font-weight:600}
.note{border-left:.35rem solid var(--line);padding:.4rem .8rem;background:var(--box)}
.made{color:var(--soft)}
.sign{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr));gap:2.6rem 1.5rem;padding:0;
margin:3rem 0 1rem;list-style:none;break-inside:avoid}
.sign li{border-top:1px solid var(--ink);padding-top:.2rem;font-size:.85rem;color:var(--soft)}
@media (max-width:36rem){body{margin:1rem auto}table{table-layout:fixed;width:100%}
th,td{padding:.15rem .35rem;font-size:.85rem}th{width:5.9rem}td:nth-child(2):not(:last-child){width:34%}
td:nth-child(3){width:auto}}
.wide{overflow-x:auto}
@media screen and (max-width:36rem){.wide img{max-width:none;width:40rem}}
@media print{:root{--ink:#000;--page:#fff;--soft:#333;--line:#999;--head:#f3f3f3;--box:#fff;--answer:#fff;--warn:#fff}
body{margin:0;max-width:none;font-size:10.5pt}section{break-inside:auto}h2{break-after:avoid;margin-top:1.2rem}
details:not([open]){display:none}tr,figure{break-inside:avoid}@page{margin:18mm}}
"""


def render(
    *,
    question: Mapping[str, Any],
    design: Any = None,
    result: Any = None,
    kind: str = "plan",
    date: datetime | None = None,
    purpose: str | None = None,
    author: str | None = None,
    ledger: Any = None,
) -> str:
    """Return the report as one HTML page without scripts, links and requests. All texts in it are escaped.

    Args:
        question: the settings of the question by their names in the API: ``null``, ``alternative``, ``epsilon``, ``n``,
            ``column``, ``unit``, ``dataset``, ``request`` and so on; texts and numbers only.
        design: a test or plan of this package, or several results of planning in a list (a decomposition, a sample
            complexity, a power curve, a comparison), the test or plan first.
        result: the release: a Release, ChangePoint, FitRelease, EstimateRelease, GroupsRelease or
            Verdict.
        kind: "plan", "test", "detect", "fit", "estimate", "groups", "table" or "sequential".
        date: the date on the report; now by default.
        purpose: what the answer is for, in a sentence.
        author: who asks.
        ledger: the ledger that paid; the report then shows what is granted, spent and left of the data set's budget.

    Guarantees: the page is made from the arguments alone, and these hold no data: anything but designs and releases of
    this package is refused.
    """
    if kind not in KINDS:
        raise InvalidInput(f"kind={shown(kind)} must be one of {', '.join(map(repr, KINDS))}.")
    settings = plain_question(question)
    parts = list(design) if isinstance(design, list | tuple) else [] if design is None else [design]
    # A plan and an optimum contain their test.
    tests: dict[type, str] = {Plan: "design", Optimum: "test"}
    parts = [
        one for part in parts for one in ([getattr(part, tests[type(part)])] if type(part) in tests else []) + [part]
    ]
    for part in parts:
        _check_class(part, (*DESIGNS, *EXTRAS, Plan, Optimum), "design")
    if result is not None:
        fitting = next((name for name, of in RESULTS.items() if isinstance(result, of)), None)
        if fitting is not None and not isinstance(result, RESULTS[kind]):
            raise InvalidInput(f"kind={kind!r} does not fit a {type(result).__name__}. Use kind={fitting!r}.")
        _check_class(result, RESULTS[kind] or tuple(of for of in RESULTS.values() if of), "result")
    main = next((part for part in parts if isinstance(part, DESIGNS)), None)
    if main is None and (main := getattr(result, "design", None)) is not None:
        parts.insert(0, main)
    facts = _facts(settings, main, result)
    about = _about(purpose=purpose, author=author)
    sections = [
        ("Question", _question(kind, settings, about, result)),
        ("Result", _result(result)),
        ("Guarantee", _guarantee(kind, facts)),
        ("Budget", _budget(kind, facts, ledger)),
        ("Signatures", _signatures(about)),
        ("Design", _fold("The test in all its details", _design(parts))),
        ("Pictures", _pictures(settings, parts, main, result)),
        ("How to ask again", _again(kind, _complete(settings, kind, main), main, result)),
    ]
    when = (date or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    title = KINDS[kind]
    body = [f"<header><h1>{markup.escape(title)}</h1>"]
    body.append(f'<p class="made">Made by privatest {markup.escape(__version__)} on {when}.</p></header>')
    for number, (heading, lines) in enumerate(sections, 1):
        body.append(f'<section aria-labelledby="part{number}"><h2 id="part{number}">{heading}</h2>')
        body += [*lines, "</section>"]
    head = (
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{markup.escape(title)}</title>\n<style>{STYLE}</style>"
    )
    text = "\n".join(body)
    page = f'<html lang="en">\n<head>\n{head}\n</head>\n<body>\n<main>\n{text}\n</main>\n</body>\n</html>'
    return f"<!DOCTYPE html>\n{page}\n"


def write(
    path: str | os.PathLike[str],
    *,
    question: Mapping[str, Any],
    design: Any = None,
    result: Any = None,
    kind: str = "plan",
    **more: Any,
) -> None:
    """Write a report to ``path``, and replace an existing file in one step.

    The other arguments are those of :func:`render`. A reader of the file sees the old or the new report, never a part.
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInput(f"path={os.fspath(path)!r} is a folder. Name a file in it, such as report.html.")
    if target.exists() and not target.is_file():
        raise InvalidInput(
            f"path={os.fspath(path)!r} is a pipe or a device, which a report must not replace. Name a file."
        )
    if not target.parent.is_dir():
        raise InvalidInput(
            f"path={os.fspath(path)!r} is in a folder that does not exist. Create {os.fspath(target.parent)!r} first."
        )
    page = render(question=question, design=design, result=result, kind=kind, **more).encode("utf-8")
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.{time.monotonic_ns()}.part")
    try:
        with beside.open("xb") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"path={os.fspath(path)!r} cannot be written: {reason}. Choose another place.") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _check_class(value: Any, kinds: Any, argument: str) -> None:
    """Refuse an argument that is not of one of these classes."""
    if not isinstance(value, kinds):
        allowed = ", ".join(one.__name__ for one in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise InvalidInput(
            f"{argument} is of type {type(value).__name__}. This report accepts {allowed}, which hold nothing that is "
            "not private."
        )


def _facts(settings: dict[str, Any], main: Any, result: Any) -> dict[str, Any]:
    """Return the facts that the guarantee states, from the result, else from the design, else from the question."""

    def first(name: str, default: Any) -> Any:
        for holder in (result, main):
            if getattr(holder, name, None) is not None:
                return getattr(holder, name)
        return settings.get(name, default)

    try:
        epsilon = float(first("epsilon", math.nan))
    except (TypeError, ValueError):
        raise InvalidInput(
            f"question['epsilon']={settings.get('epsilon')!r} must be a number greater than 0."
        ) from None
    notion = getattr(result, "privacy", None) or getattr(main, "privacy", None)
    notion = as_notion(notion) if isinstance(notion, str) else notion
    return {
        "epsilon": epsilon,
        "notion": notion if isinstance(notion, Notion) and not isinstance(notion, Pure) else None,
        "price": "epsilon" if not isinstance(notion, Notion) or isinstance(notion, Pure) else "price",
        "neighbours": str(first("neighbours", "replace")),
        "rows": int(first("max_rows_per_unit", 1) or 1),
        "unit": settings.get("unit"),
        "simulated": bool(getattr(result, "simulated", False)),
        "public_order": any(getattr(result, one, None) is not None for one in ("order_range", "order_values")),
        "dataset": settings.get("dataset"),
        "request": settings.get("request"),
        "receipt": getattr(result, "receipt", None),
    }


def _about(**texts: str | None) -> dict[str, str]:
    """Return purpose and author as texts of one line each."""
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name} must be a text, not {type(value).__name__}.")
    return {name: " ".join(value.split())[:LONGEST] for name, value in texts.items() if value and value.strip()}


def _question(kind: str, settings: dict[str, Any], about: dict[str, str], result: Any) -> Iterator[str]:
    """Yield the question in words, its most important settings, and all settings behind a fold."""
    if kind == "detect" and settings.get("changes") == "several":
        yield "<p>Did the records change from the law P to the law Q, back to P, and so on, and when?</p>"
    elif kind == "detect":
        yield "<p>Did the records change from the old law P to a new one, and when?</p>"
    elif kind == "estimate":
        family = markup.escape(str(settings.get("family", "a family of distributions")))
        if "?" not in family:
            yield f"<p>What is the {family} of the records?</p>"
        else:
            yield f"<p>If the records come from {family}, what is the value of the parameter marked with ?</p>"
    elif kind == "table":
        yield "<p>How many records does each cell have?</p>"
    elif kind == "groups":
        yield "<p>Do two groups have the same rate of successes, and if not, by how much do they differ?</p>"
    elif "null" in settings and settings.get("alternative"):
        yield "<p>Do the records come from the null hypothesis P or from the alternative Q?</p>"
    elif "null" in settings:
        yield "<p>Do the records come from the law P, or from one at a distance from it?</p>"
    names = {} if kind == "groups" else {"null": "null hypothesis P", "alternative": "alternative Q"}
    short = [(name, text, "") for name, text in about.items()]
    if kind == "estimate" and "?" in str(settings.get("family")):
        model = getattr(result, "family", "") or settings["family"]
        short.append(("family", model, condition(model)))
    for name, words in names.items():
        if isinstance(settings.get(name), str):
            short.append((words, plain_law(settings[name]), ""))
    for name in ("data", "treatment", "column", "unit", "dataset", "request"):
        if name in settings:
            short.append((name.replace("dataset", "data set"), settings[name], ""))
    if short:
        yield markup.fact_table("In short", short)
    every = [(names.get(name, name.replace("_", " ")), value, "") for name, value in settings.items()]
    yield from _fold("Every setting", iter([markup.fact_table("Settings of the question", every)]))


def _fold(title: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield lines behind a fold, for details that few readers want. They are printed on paper only if opened."""
    yield f"<details><summary>{markup.escape(title)}</summary>"
    yield from lines
    yield "</details>"


def plain_law(text: str) -> str:
    """Return the text of a law in plain words if it is a named family or a table of labels, else unchanged.

    >>> plain_law("normal(0, 1)"), plain_law("bernoulli(p<=0.3)"), plain_law("categorical(yes=0.25, no=0.75)")
    ('normal with mean 0, sd 1', 'bernoulli with p at most 0.3', 'yes 25%, no 75%')
    """
    match = re.fullmatch(r"(\w+)\(([^()]*)\)", text.strip())
    if match is None:
        return text
    name, parts = match[1], [part.strip() for part in match[2].split(",")]
    if name == "categorical":
        labels = [re.fullmatch(r"(.+)=([0-9.]+(?:e-?[0-9]+)?)", part) for part in parts]
        return ", ".join(f"{one[1]} {100 * float(one[2]):.6g}%" for one in labels if one) if all(labels) else text
    if name not in FAMILIES:
        return text
    words = []
    for parameter, part in zip(FAMILIES[name].parameters, parts, strict=False):
        named = re.fullmatch(r"(\w+)\s*(<=|>=|=)\s*([-+0-9.e/]+)", part)
        number = re.fullmatch(r"[-+0-9.e/]+", part)
        if named is not None:
            sides = {"=": " ", "<=": " at most ", ">=": " at least "}
            words.append(f"{named[1]}{sides[named[2]]}{named[3]}")
        elif number is not None:
            words.append(f"{parameter.name} {part}")
        else:
            return text
    return f"{name.replace('_', ' ')} with {', '.join(words)}" if len(words) == len(parts) else text


def _result(result: Any) -> Iterator[str]:
    """Yield the answer and its facts."""
    if result is None:
        yield "<p>This is a plan. No data have been read.</p>"
        return
    if not result.private:
        yield '<p class="warning">This result is NOT PRIVATE. Do not give it to anybody who may not see the data.</p>'
    if result.replayed is not None:
        yield f'<p class="note">This answer is not new: {markup.escape(result.replayed.note)}.</p>'
    yield f'<p class="answer">{markup.escape(result.sentence)}</p>'
    yield result._repr_html_()


def _guarantee(kind: str, facts: dict[str, Any]) -> Iterator[str]:
    """Yield the guarantee in words, and the list of what it does not cover."""
    epsilon = facts["epsilon"]
    if math.isnan(epsilon):
        yield "<p>No epsilon was given, so no guarantee can be stated.</p>"
        return
    if facts["simulated"]:
        yield (
            '<p class="warning">This is a simulation: the random numbers came from the caller, so the guarantee below '
            "does not hold for this result.</p>"
        )
    for text in promise(epsilon, facts["neighbours"], facts["rows"], facts["unit"], facts["notion"]):
        yield f"<p>{markup.escape(text)}</p>"
    if math.isfinite(epsilon) or facts["notion"] is not None:
        yield "<h3>What is public, and what is not protected</h3><ul>"
        for text in unprotected(facts["neighbours"], facts["unit"], kind, facts["public_order"], facts["price"]):
            yield f"<li>{markup.escape(text)}</li>"
        yield "</ul>"


def _budget(kind: str, facts: dict[str, Any], ledger: Any) -> Iterator[str]:
    """Yield what was charged, and what is granted, spent and left in the notion of the budget."""
    if facts["dataset"] is None:
        yield (
            "<p>No ledger was used, so nothing adds up the cost of all results from these data. Keep a note of this "
            "one where others will find it.</p>"
        )
        return
    price = ("epsilon", facts["epsilon"], "") if facts["notion"] is None else ("privacy", facts["notion"].text, "")
    charged = [("data set", facts["dataset"], ""), ("request", facts["request"], ""), price]
    if facts["receipt"] is not None:
        charged.append(("recorded", f"{facts['receipt'].recorded:%Y-%m-%d %H:%M:%S} UTC", ""))
    yield markup.fact_table("Charged to the ledger" if kind != "plan" else "To be charged to the ledger", charged)
    if ledger is not None:
        amounts = [(name, getattr(ledger, name)(facts["dataset"])) for name in ("granted", "spent", "left")]
        meanings = (
            "for all results from these data",
            "by all results so far, this one included",
            "for further results",
        )
        rows = [
            (name, getattr(amount, "text", None) or f"epsilon {float(amount):g}", meaning)
            for (name, amount), meaning in zip(amounts, meanings, strict=True)
        ]
        yield markup.fact_table(f"Budget of {facts['dataset']}", rows)
    if facts["receipt"] is not None:
        yield (
            "<p>Fingerprint of the ledger including this result. Keep it where the owner of the ledger cannot change "
            "it. With it, <code>privatest ledger verify --since</code> detects whether an earlier row was changed or "
            f'removed.</p><pre class="line">{markup.escape(facts["receipt"].fingerprint)}</pre>'
        )


def _signatures(about: dict[str, str]) -> Iterator[str]:
    """Yield lines for signatures."""
    author = f"Asked by {about['author']}" if "author" in about else "Asked by"
    yield "<p>Only what this page shows under Result is released from the data.</p>"
    lines = [f"{author}: signature", "Place and date", "Data protection: name and signature", "Place and date"]
    yield '<ul class="sign">' + "".join(f"<li>{markup.escape(line)}</li>" for line in lines) + "</ul>"


def _design(parts: list[Any]) -> Iterator[str]:
    """Yield the facts of each design."""
    if not parts:
        yield "<p>No design was given.</p>"
    for part in parts:
        yield part._repr_html_()


def _pictures(settings: dict[str, Any], parts: list[Any], main: Any, result: Any) -> Iterator[str]:
    wanted: list[tuple[Any, Callable[[], Any]]] = []
    if main is not None:
        own = {"release": result} if isinstance(result, PICTURED) else {}
        wanted.append((main, lambda: main.plot(**own)))
    if isinstance(result, ChangePoint | Verdict):
        wanted.append((result, result.plot))
    if (
        not any(isinstance(part, Decomposition) for part in parts)
        and settings.get("null")
        and settings.get("alternative")
    ):
        try:
            split = decompose(
                settings["null"], settings["alternative"], epsilon=_facts(settings, main, result)["epsilon"]
            )
        except PrivatestError:  # laws without a text, or no privacy: the picture is left out
            pass
        else:
            wanted.append((split, split.plot))
    wanted += [(part, part.plot) for part in parts if isinstance(part, EXTRAS)]
    if not wanted:
        yield "<p>This report has no pictures.</p>"
    for drawn, draw in wanted:
        try:
            encoded = base64.b64encode(png(draw)).decode("ascii")
        except MissingExtra as error:
            yield f"<p>The pictures are missing. {markup.escape(error)}</p>"
            return
        about = (type(drawn).plot.__doc__ or "").partition("\n")[0]  # what the picture shows
        if isinstance(drawn, Decomposition) and getattr(main, "worst_members", None) is not None:
            about += " It shows the members of the sets that are hardest to tell apart."
        shown = markup.escape(f"{drawn.title}. {about}")
        # Wider than a phone, so that its letters can be read: it scrolls sideways there, also by keys.
        yield f'<figure><div class="wide" tabindex="0"><img src="data:image/png;base64,{encoded}" alt="{shown}"></div>'
        yield f"<figcaption>{shown}</figcaption></figure>"


def _complete(settings: dict[str, Any], kind: str, main: Any) -> dict[str, Any]:
    """Return the settings of the question and those that the design chose."""
    if kind != "test" or not isinstance(main, PrivateTest):
        return settings
    price = {"epsilon": main.epsilon} if isinstance(main.notion, Pure) else {"privacy": main.notion.text}
    chosen = {"null": main.null, "alternative": main.alternative, **price, "n": main.n}
    if main.neighbours != "replace" or main.max_rows_per_unit != 1:
        chosen |= {"neighbours": main.neighbours, "max_rows_per_unit": main.max_rows_per_unit}
    if main.released != "statistic":
        chosen["release"] = "decision"
    return {**chosen, **settings}


def _again(kind: str, settings: dict[str, Any], main: Any, result: Any) -> Iterator[str]:
    """Yield the calls that ask the question again, and the document of the design."""
    calls = [
        f"<h3>In Python</h3><pre>{markup.escape(python(kind, settings))}</pre>",
        f"<h3>On the command line</h3><pre>{markup.escape(command(kind, settings))}</pre>",
    ]
    yield from _fold("The calls", iter(calls))
    if kind != "plan" and ("ledger" in settings or getattr(result, "receipt", None) is not None):
        yield (
            "<p>The same question under the same request name returns the recorded result: nothing is charged, and the "
            "data are not read. Under another name the result is drawn with new noise and charged again.</p>"
        )
    elif kind != "plan":
        yield "<p>If the question is asked again, the result is drawn with new noise and costs the same again.</p>"
    text = document(main)
    if text is not None:
        print_ = hashlib.sha256(text.encode()).hexdigest()
        yield f"<h3>The design as a document</h3><p>SHA-256 of the text below: <code>{print_}</code></p>"
        yield f"<details><summary>JSON, {len(text)} characters</summary><pre>{markup.escape(text)}</pre></details>"


def promise(epsilon: float, neighbours: str, rows: int, unit: str | None, notion: Notion | None = None) -> list[str]:
    """Return the paragraphs that state the guarantee: epsilon-differential privacy, or another notion.

    An infinite epsilon means that there is none.
    """
    if notion is None and not math.isfinite(epsilon):
        return ["This test is NOT PRIVATE: no noise hides single records, so there is no guarantee."]
    whose = "one record" if unit is None else f"all records of one person (those with the same {unit!r})"
    if neighbours == "add-remove":
        change = f"adding or removing {whose}"
        other = "whether a person's data were used at all"
    else:
        change = f"replacing {whose} by anything else"
        other = "what a person's data say"
    records = "one record" if rows == 1 else f"{rows} records"
    limit = "" if unit is None else f" However many rows a person has, they count as {records} at most."
    how = (
        "It holds because what is computed from the data (one number, or one for each block, bin or group of records) "
        "is made random before anything is released. The noise is drawn exactly, from the operating system's "
        "randomness; everything after that (the answer, the p-value, the pictures, this page) is computed from the "
        "noisy numbers alone."
    )
    if notion is not None:
        rare, even = float(notion.h(0.01)), float(notion.h(0.5))
        return [
            f"The result meets {notion.text}. Whatever the data are, {change} raises no probability by more than "
            f"{100 * notion.gain():.3g} percentage points: a result of probability 1% to at most {100 * rare:.3g}%, "
            f"one of 50% to at most {100 * even:.3g}%.{limit}",
            f"Somebody who sees the result, and even knows all other records, and whose guess about {other} was even "
            f"(50%) beforehand, is right with at most {50 * (1 + notion.gain()):.3g}% on average afterwards. This "
            "holds whatever else they know, whatever computers they have.",
            how,
        ]
    factor = math.exp(min(epsilon, 700.0))
    posterior = 100 * factor / (1 + factor)
    return [
        f"The result is {epsilon:g}-differentially private (epsilon = {epsilon:g}). Whatever the data are, {change} "
        f"changes the probability of every possible result by a factor of at most e^{epsilon:g} = {factor:.4g}.{limit}",
        f"In terms of odds: somebody who sees the result, and even knows all other records, can become surer about "
        f"{other} by a factor of at most {factor:.4g} in the odds. A guess that was even (50%) beforehand is right "
        f"with at most {posterior:.3g}% afterwards. This holds whatever else they know, whatever computers they have.",
        how,
    ]


def unprotected(
    neighbours: str, unit: str | None, kind: str, public_order: bool = False, price: str = "epsilon"
) -> list[str]:
    """Return sentences on what is public or not protected. ``price`` is the word for the cost of a result."""
    lines = []
    if neighbours != "add-remove":
        lines.append("The number of records n is assumed to be public.")
    lines.append(
        f"The question is public: the hypotheses, the {price}, all settings on this page, and the fact that it was "
        "asked. They must have been chosen without looking at these data."
    )
    if unit is None:
        lines.append(
            "One record is assumed to be one person's contribution. A person with several records is protected less"
            + (": k records multiply epsilon by k" if price == "epsilon" else "")
            + ". Name the column that identifies people (unit=) to protect all rows of a person."
        )
    lines.append(
        "Facts about people in general are not hidden; finding them is the purpose. A fact about everybody is also a "
        "fact about each person, whether that person took part or not."
    )
    lines.append(
        f"Every further result from the same data adds its own {price}. A ledger adds them up; without one, you must."
    )
    if kind == "sequential":
        lines.append("The time of the decision is public; it follows from the noisy sums alone.")
    if kind == "groups":
        lines.append("It is assumed to be public which of the two groups a record belongs to; nobody may be in both.")
    if kind == "detect":
        lines.append(
            "The order of the records in time is used; the place of each record in it is assumed to be public."
        )
        if public_order:
            lines.append("The values of the column that gives the order were declared public; some of them are shown.")
    lines.append(
        "The guarantee does not cover the duration of the computation, nor access to the machine and the raw data."
    )
    return lines
