"""Answers to the studio's planning requests: the body of each request, and its answer by one call of the package.

Request bodies are made from the table of options, with strict types and a bound on every size. Answers are computed in
worker processes, from JSON to JSON. No data are used here: all answers follow from P, Q, epsilon and n, which are
public.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

import privatest as pt
from privatest import numbers, options

NOTIONS = ("pure", "approx", "gdp", "zcdp", "tv", "renyi", "kl")
"""Notions of privacy, in the order in which the page offers them."""
Json = dict[str, Any]
Law = str | dict[str, float]

MOST_LABELS = 1000
POINTS = 241
LIFTS = 6
"""Points of a picture of power on each side of no lift."""
ALONG = 31
"""Points of a picture along a parameter."""
MOST_BARS = 200
OUTSIDE = 0.002
"""Largest probability beyond either end of the picture."""
BARS = 160
DEVIATIONS = 5.0
NEGLIGIBLE = 7.0
"""The picture leaves out noise beyond this many times 1/decay_rate (one part in a thousand)."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Loss = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10**9)]
LawText = Annotated[str, Field(min_length=1, max_length=2000, examples=["normal(0, 1)"])]
LawTable = Annotated[
    dict[Annotated[str, Field(max_length=200)], Annotated[Finite, Field(ge=0, le=1)]],
    Field(min_length=1, max_length=MOST_LABELS),
]
PathText = Annotated[str, Field(min_length=1, max_length=1000)]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Source(_Body):
    """The place of the records: a path inside the studio's folder, or the name of an upload."""

    path: PathText | None = None
    upload: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @model_validator(mode="after")
    def _one(self) -> _Source:
        if (self.path is None) == (self.upload is None):
            raise ValueError("give either path or upload")
        return self


class RecordsBody(_Body):
    """Records for a monitor, each a text as on a line of a file."""

    lines: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(min_length=1, max_length=20_000)]


TYPES: dict[options.Kind, Any] = {
    options.LAW: LawText | LawTable,
    options.LOSS: Loss,
    options.LOSSES: Annotated[list[Loss], Field(min_length=1, max_length=40)],
    options.SHARE: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)],
    options.NUMBER: Finite,
    options.SPAN: Annotated[float, Field(ge=1, le=1e12, allow_inf_nan=False)],
    options.COUNT: Count,
    options.COUNTS: Annotated[list[Count], Field(min_length=1, max_length=8)],
    options.RANGE: Annotated[list[Finite], Field(min_length=2, max_length=2)],
    options.TEXT: LawText,
    options.NAME: Annotated[str, Field(min_length=1, max_length=200)],
    options.FILE: PathText,
    options.PLACE: _Source,
    options.SWITCH: bool,
}


def body(request: str) -> type[BaseModel]:
    """Return the model of a request's body, made from the table of options."""
    question = options.QUESTIONS[request]
    fields: dict[str, Any] = {}
    needs = set(question.needs.split())
    if options.named(request, options.RULE, options.MANNER).count("privacy"):
        needs.discard("epsilon")  # the function refuses neither and both
    for option in options.of(request):
        kind = Literal[option.choices] if option.choices else TYPES[option.kind]
        default = False if option.kind is options.SWITCH else option.default
        if option.name in needs:
            default = ...
        elif default is None:
            kind = kind | None
        fields[option.name] = kind, Field(default, description=option.help)
    name = "".join(part.capitalize() for part in request.split("/"))
    return create_model(name, __base__=_Body, __doc__=description(request), **fields)


def description(request: str) -> str:
    """Return the first paragraph of the docstring of a request's job, or of the public function that it calls."""
    called = _function(request)
    if request.startswith("/run/"):
        return f"Run {called.__name__} once on a file, charged to the ledger. The same request again is free."
    job = JOBS.get(request.removeprefix("/").replace("/", "_"))
    return (inspect.getdoc(job) or inspect.getdoc(called) or "").partition("\n\n")[0].replace("\n", " ")


def arguments(request: str, settings: Json, *roles: str) -> Json:
    """Return the given options that have one of these roles, as arguments of the package's function."""
    names = options.named(request, *roles)
    values = {name: settings[name] for name in names if settings.get(name) is not None}
    return {name: law_of(value) if name in ("null", "alternative") else value for name, value in values.items()}


STARTS = {"epsilon": 1.0, "delta": 1e-6, "mu": 1.0, "rho": 0.5, "eta": 0.1, "order": 2.0, "bound": 1.0}
"""Values at which the page starts the parameters of notions of privacy."""


def controls() -> Json:
    """Return the options that each request takes, and the notions of privacy with their parameters."""
    takes = {request: [option.name for option in options.of(request)] for request in options.QUESTIONS}
    return {
        "takes": {request: names for request, names in takes.items() if request.startswith("/")},
        "notions": {name: _notion(getattr(pt.notions, name)) for name in NOTIONS},
    }


def _notion(function: Callable[..., Any]) -> Json:
    """Return a notion's description, the first line of its docstring, and its parameters with values to start from."""
    words = (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
    return {"words": words, "parameters": [[name, STARTS[name]] for name in inspect.signature(function).parameters]}


FIRST = {
    "look": {"null": "normal(0, 1)", "alternative": "normal(0.5, 1)", "epsilon": 0.5},
    "size": {"null": "normal(0, 1)", "alternative": "normal(0.5, 1)", "epsilon": 0.5, "advantage": 2 / 3},
    "design": {"null": "normal(0, 1)", "alternative": "normal(0.5, 1)", "epsilon": 0.5, "n": 100},
}
"""The first requests of a page, computed while it opens."""


def law_of(law: Law) -> Any:
    """Return P or Q for the package. If all labels of a table are whole numbers, they become integers."""
    if isinstance(law, dict) and all(_whole(label) for label in law):
        return {int(label): value for label, value in law.items()}
    return law


def _whole(label: str) -> bool:
    """Return whether a label is the decimal text of a whole number."""
    digits = label.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 16 and str(int(label)) == label


def look(privacy: str | None = None, **settings: Any) -> Json:
    """Return the decomposition and the curves of the paper's first figure, and nothing else, because sliders wait.

    For sets of distributions they are those of the two members that are hardest to tell apart, which are named. For a
    notion of privacy other than epsilon they are those of the epsilon at which one record gains as much.
    """
    if privacy is not None:
        if settings.get("epsilon") is not None:
            raise pt.errors.InvalidInput("epsilon and privacy were both given. Give one of them.")
        settings["epsilon"] = float(pt.notions.parse(privacy).equivalent)
    if settings.get("epsilon") is None:
        raise pt.errors.InvalidInput("epsilon is missing. Give epsilon, or privacy in place of it.")
    split = pt.decompose(**arguments("/look", settings, options.RULE))
    return {
        "members": {"null": split.pair.null.describe(), "alternative": split.pair.alternative.describe()},
        "decomposition": split.to_dict(),
        "excess": {
            "null": split.pair.hockey_stick(split.epsilon),
            "alternative": split.pair.hockey_stick(split.epsilon, reverse=True),
        },
        "densities": _densities(split),
    }


def design(document: bool = False, **settings: Any) -> Json:
    """Return the tuned test on n records and the law of its statistic under P and under Q."""
    test = pt.design(**arguments("/design", settings, options.RULE))
    answer = {"design": test.values(), "law": statistic_law(test)}
    return answer | ({"document": test.to_dict()} if document else {})


def size(bound: bool = False, **settings: Any) -> Json:
    """Return the number of records for the goal and, with ``bound``, the number that every private test needs."""
    if not bound:
        return {"epsilon": settings["epsilon"], "n": _needed(json.dumps(settings)), "lower_bound": None}
    goal, epsilon = arguments("/size", settings, options.RULE), settings["epsilon"]
    target = goal.get("advantage", 2 / 3)
    if "alpha" in goal and "beta" in goal:
        target = 1 - goal["alpha"] - goal["beta"]  # a test with these errors has at least this advantage
    if epsilon is None:
        raise pt.errors.InvalidInput("bound=true needs epsilon. Give epsilon, or request a plan.")
    # Replacing a record is removing one and adding one, so it costs at most twice the epsilon of add-remove.
    level = epsilon if goal.get("neighbours", "replace") == "replace" else 2 * epsilon
    lower = pt.lower_bound(goal["null"], goal["alternative"], epsilon=level, advantage=target)
    return {"epsilon": epsilon, "n": _needed(json.dumps(settings)), "lower_bound": lower}


def plan(**settings: Any) -> Json:
    """Return the plan of a test."""
    return pt.plan(**arguments("/plan", settings, options.RULE)).values()


@lru_cache(maxsize=256)
def _needed(document: str) -> int:
    """Return the sample size, cached, because a request without the bound often precedes the same one with it."""
    return pt.sample_size(**arguments("/size", json.loads(document), options.RULE))


def theory(epsilons: list[float], **settings: Any) -> Json:
    """Return the theorem's orders at several epsilons."""
    pair = arguments("/theory", settings, options.RULE)
    return {"complexity": [pt.sample_complexity(**pair, epsilon=epsilon).to_dict() for epsilon in epsilons]}


def along(family: str, between: list[float], **settings: Any) -> Json:
    """Return the probability that the test says "alternative" along a parameter of the records' family."""
    low, high = between
    if not low < high:
        raise pt.errors.InvalidInput(f"between={between} must be two numbers, the first below the second.")
    test = pt.design(**arguments("/along", settings, options.RULE))
    values = np.linspace(low, high, ALONG).tolist()
    power = test.power_along(family, values).tolist()
    return {"family": family, "values": values, "power": power, "alpha": test.alpha, "beta": test.beta, "n": test.n}


def _called(request: str) -> Callable[..., Json]:
    """Return a job that calls the function of a request and returns the result as JSON."""
    return lambda **settings: _function(request)(**arguments(request, settings, options.RULE)).to_dict()


def _function(request: str) -> Any:
    """Return the public function that a request calls."""
    return attrgetter(options.QUESTIONS[request].call)(pt)


def estimate(at: float, bound: bool = False, **settings: Any) -> Json:
    """Return the expected width, coverage and width bound of an estimate's interval if the true value is ``at``."""
    design = _estimate(json.dumps(arguments("/estimate", settings, options.RULE)))
    return {
        "design": design.values(),
        "parameter": design.parameter,
        "at": at,
        "expected_width": design.expected_width(at),
        "coverage": design.coverage(at),
        "width_bound": design.width_bound(at) if bound else None,
    }


def estimate_size(at: float, width: float, **settings: Any) -> Json:
    """Return the number of records for an interval of this width."""
    design = _estimate(json.dumps({**arguments("/estimate/size", settings, options.RULE), "n": 100}))
    return {"n": design.sample_size(width=width, at=at), "width": width, "at": at}


@lru_cache(maxsize=32)
def _estimate(document: str) -> pt.results.EstimateDesign:
    """Return a designed estimate, cached, because the page requests one value after the other."""
    design = pt.design_estimate(**json.loads(document))
    if not isinstance(design, pt.results.EstimateDesign):
        raise pt.errors.InvalidInput(
            "What is answered by a table in two steps is not planned here. Plan it in Python: "
            "design_estimate(...).expected_width('normal(3, 2)'); or run it."
        )
    return design


def groups(rate: float, lift: float, **settings: Any) -> Json:
    """Return the probability that a lift is found, and the same for lifts from none to twice as large."""
    design = pt.design_groups(**_arms("/groups", settings))
    if not 0 <= rate + lift <= 1:
        raise pt.errors.InvalidInput(f"rate + lift={rate + lift:g} must lie between 0 and 1.")
    farthest = [min(2 * abs(lift), 1 - rate), -min(2 * abs(lift), rate)]
    sides = (
        [farthest[0]]
        if design.alternative == "greater"
        else [farthest[1]]
        if design.alternative == "less"
        else farthest
    )
    spread = (round(end * part / LIFTS, 12) for end in sides for part in range(1, LIFTS + 1))
    lifts = sorted({0.0, round(lift, 12), *spread})
    power = [design.power((rate, min(max(rate + each, 0.0), 1.0))) for each in lifts]
    return {
        "design": design.values(),
        "rate": rate,
        "lift": lift,
        "lifts": lifts,
        "power": power,
        "found": power[lifts.index(round(lift, 12))],
    }


def groups_size(rate: float, lift: float, beta: float | None = None, **settings: Any) -> Json:
    """Return the numbers of records in both groups with which a lift is found; ``n`` gives their proportion."""
    rules = _arms("/groups/size", settings)
    first, second = rules.setdefault("n", (100, 100))
    aim = {} if beta is None else {"beta": beta}
    n = pt.design_groups(**rules).sample_size(rate=rate, lift=lift, **aim)
    return {"n": [n, max(round(n * second / first), 1)], "rate": rate, "lift": lift, "beta": beta}


def _arms(request: str, settings: Json) -> Json:
    """Return the arguments of a comparison of groups, with the records of both groups as a pair."""
    rules = arguments(request, settings, options.RULE)
    if "n" in rules:
        if len(rules["n"]) > 2:
            raise pt.errors.InvalidInput(f"n={rules['n']} must be two numbers: records of control and treatment.")
        rules["n"] = tuple(rules["n"] * 2)[:2]
    return rules


def plain_number(value: Any) -> Any:
    """Replace infinities by the text "inf" and NaN by null, which JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: plain_number(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_number(each) for each in value]
    return value


def _densities(split: pt.results.Decomposition) -> dict[str, Any]:
    """Return x, P(x), Q(x) and the log ratio L(x) at points that show both laws; null for infinite values."""
    pair: Any = split.pair
    if pair.kind == "labels":
        order = np.argsort(-np.maximum(pair.p, pair.q), kind="stable")[:MOST_BARS]
        shown = np.sort(order)
        x: list[Any] = [str(pair.labels[i]) for i in shown]
        p, q, ratio = pair.p[shown], pair.q[shown], pair.ratios[shown]
    else:
        at = _reals(pair) if pair.kind == "reals" else _integers(pair)
        density = "pdf" if pair.kind == "reals" else "pmf"
        with np.errstate(all="ignore"):
            p, q = (np.asarray(getattr(law, density)(at), dtype=float) for law in (pair.null, pair.alternative))
            ratio = np.asarray(pair.ratio(at), dtype=float)
        x = at.tolist()
    low, high = split.clamp
    return {
        "kind": pair.kind,
        "x": x,
        "null": _finite(p),
        "alternative": _finite(q),
        "clamped": _finite(np.clip(ratio, low, high)),
        "ratio": _finite(ratio),
    }


def _shown_range(pair: Any) -> tuple[float, float]:
    """Return an interval with nearly all of both laws; of heavy tails the part around the middle."""
    lows, highs = [], []
    for law in (pair.null, pair.alternative):
        first, lower, upper, last = (
            float(value) for value in (*law.ppf(np.array([OUTSIDE, 0.25])), *law.isf(np.array([0.25, OUTSIDE])))
        )
        reach = 6 * (upper - lower)
        if reach > 0:
            first, last = max(first, lower - reach), min(last, upper + reach)
        lows.append(first)
        highs.append(last)
    low, high = min(lows), max(highs)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        middle = low if math.isfinite(low) else 0.0
        return middle - 1, middle + 1
    return low, high


def _reals(pair: Any) -> numbers.Floats:
    low, high = _shown_range(pair)
    margin = 0.03 * (high - low)
    inside_low, inside_high = pair.support
    # A density may be infinite at an end of its support: step inside by a little.
    tiny = 1e-6 * (high - low)
    start, stop = max(low - margin, inside_low + tiny), min(high + margin, inside_high - tiny)
    if not start < stop:
        start, stop = low, high
    return np.linspace(start, stop, POINTS)


def _integers(pair: Any) -> numbers.Floats:
    low, high = _shown_range(pair)
    first, last = math.floor(low), math.ceil(high)
    # Laws with few values: show every one, with a place to spare where there is one.
    step = max(1, -(-(last - first + 1) // MOST_BARS))
    edges = [law.support for law in (pair.null, pair.alternative)]
    first = max(first - 1, int(max(min(edge[0] for edge in edges), first - 1)))
    last = min(last + 1, int(min(max(edge[1] for edge in edges), last + 1)))
    return np.arange(first, last + 1, step, dtype=np.float64)


def _finite(values: numbers.Floats) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]


def statistic_law(test: pt.results.PrivateTest) -> dict[str, Any]:
    """Return bars for the law of the statistic: edges and centres in nats, and densities under P and under Q.

    The test decides "alternative" at the first ``decided`` bars. A two-sided one also does so from the bar ``upper`` on
    (None, if there is no such test), and ``above`` is the law under the part of Q that lies there.
    """
    score, n = test.score, test.n
    support = (test.scale * score.support - test.shift).astype(np.float64)
    laws = [law / law.sum() for law in (score.null_law, score.alternative_law, *score.upper_laws[:1])]
    means = [n * float(law @ support) for law in laws]
    spreads = [
        math.sqrt(max(n * float(law @ (support - mean / n) ** 2), 0.0)) for law, mean in zip(laws, means, strict=True)
    ]
    noise = NEGLIGIBLE / test.noise.decay_rate + test.sensitivity / 2
    cutoffs = [test.cutoff] if test.upper is None else [test.cutoff, test.upper]
    low = min(mean - DEVIATIONS * spread for mean, spread in zip(means, spreads, strict=True)) - noise
    high = max(mean + DEVIATIONS * spread for mean, spread in zip(means, spreads, strict=True)) + noise
    low, high = min(low, float(cutoffs[0])), max(high, float(cutoffs[-1]))
    spacing = test.noise.spacing  # where that is more than 1, all that leaves is the level
    step = max(1, math.ceil((high - low) / spacing / (BARS - 1))) * spacing
    half = test.noise.offset
    # T is a whole number plus half. Thresholds are edges, so that the bars beyond them add up to alpha.
    inner = [math.floor(cutoff - half) + 1 for cutoff in cutoffs]
    first = inner[0] - step * math.ceil((inner[0] - low) / step)
    last = first + step * BARS if test.upper is None else inner[-1] + step * math.ceil((high - inner[-1]) / step) + step
    edges = sorted({*range(first, inner[-1], step), *range(inner[-1], last + 1, step)})
    unit = float(score.step / test.scale)
    start = 0.0 if test.neighbours == "add-remove" else float(score.value(Fraction(n * test.shift, test.scale), n))
    # Edges between two values of T.
    ends = [(edge - 0.5 + float(half)) * unit + start for edge in edges]
    if spacing > 1:
        ends = [(edge - inner[0]) / spacing + 0.5 for edge in edges]
    drawn = [bars / np.diff(ends) for bars in test.masses([edge + half - Fraction(1, 2) for edge in edges])]
    return {
        "edges": [float(f"{end:.9g}") for end in ends],
        "statistic": [float(f"{(a + b) / 2:.9g}") for a, b in itertools.pairwise(ends)],
        "null": _finite(drawn[0]),
        "alternative": _finite(drawn[1]),
        "above": _finite(drawn[2]) if test.upper is not None else None,
        "decided": edges.index(inner[0]),
        "thresholds": list(test.thresholds) if spacing == 1 else [0.5],
        "released": test.released,
        "upper": edges.index(inner[-1]) if test.upper is not None else None,
    }


JOBS: dict[str, Callable[..., Json]] = {
    **{
        job.__name__: job
        for job in (look, design, size, plan, theory, along, estimate, estimate_size, groups, groups_size)
    },
    **{request.strip("/"): _called(request) for request in ("/power", "/compare", "/notions")},
}
"""The jobs of a worker, by name."""
