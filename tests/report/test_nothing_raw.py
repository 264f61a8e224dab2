"""A run on data with an unusual value: neither it nor a raw total is in any output, picture, report or log."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines, report
from privatest.estimates import EstimateDesign
from tests.pictures import artists

PLANTED = 123456.789012
N = 60
NULL, ALTERNATIVE = "normal(0, 1)", "normal(1, 1)"


def records() -> np.ndarray:
    rng = np.random.default_rng(11)
    data = np.concatenate([rng.normal(0, 1, N // 2), rng.normal(1, 1, N // 2)])
    data[7] = PLANTED
    return data


def holds(numbers: np.ndarray, secrets: list[float]) -> bool:
    """Whether some number is one of the secrets, up to the digits that are ever shown."""
    return any(bool(np.any(np.abs(numbers - secret) <= 1e-7 * abs(secret))) for secret in secrets)


def spelled(text: str, secrets: list[float]) -> bool:
    """Whether some secret is in the text as a number of its own, with six digits or all it has."""
    text = re.sub(r"base64,[A-Za-z0-9+/=]*", "", text)
    forms = {form for secret in secrets for form in (repr(abs(secret)), f"{abs(secret):.6f}", f"{abs(secret):.6g}")}
    return any(form in text and re.search(rf"(?<![\d.]){re.escape(form)}(?!\d)", text) for form in forms)


def outcomes() -> list[tuple[str, Any, Any, list[float]]]:
    """kind, design, result, and what must not be seen: the planted value and raw totals, in units and in nats."""
    data = records()
    found: list[tuple[str, Any, Any, list[float]]] = []
    test = pt.design(NULL, ALTERNATIVE, epsilon=1, n=N)
    total = engines.total(test.score, data)
    raw = [float(total), float(test.score.value(total, N))]
    found.append(("test", test, test.run(data, rng=np.random.default_rng(3)), raw))
    two = pt.design(pt.near(NULL, 0.01), pt.any_of("normal(mean<=-1, sd=1)", "normal(mean>=1, sd=1)"), epsilon=1, n=N)
    total = engines.total(two.score, data)
    raw = [float(total), float(two.score.value(total, N))]
    found.append(("test", two, two.run(data, rng=np.random.default_rng(3)), raw))
    plan = pt.design_change(NULL, ALTERNATIVE, epsilon=1, false_alarm=0.05)
    stream = np.tile(data, 4)
    score: Any = plan.detector.score
    totals = engines.block_totals(score, stream, plan.block, start=len(stream) % plan.block // 2)
    sums = [float(score.value(total, plan.block)) for total in totals]
    found.append(("detect", plan, plan.run(stream, rng=np.random.default_rng(3)), sums))
    fit = pt.design_fit(NULL, distance=0.3, epsilon=1, n=N)
    found.append(("fit", fit, fit.run(data, rng=np.random.default_rng(3)), []))
    mean = pt.design_estimate("normal(mean=?, sd=1)", between=(-2, 2), epsilon=1, n=N)
    assert mean.score is not None
    total = engines.total(mean.score, data)
    raw = [float(total), float(total * mean.score.step)]
    found.append(("estimate", mean, mean.run(data, rng=np.random.default_rng(3)), raw))
    arms = pt.design_groups(n=(N // 2, N // 2), epsilon=1, above=0.25)
    halves = data[: N // 2], data[N // 2 :]
    # Shares are short numbers, which noise may hit and other numbers may spell: the planted value alone is looked for.
    found.append(("groups", arms, arms.run(*halves, rng=np.random.default_rng(3)), []))
    return found


@pytest.fixture(scope="module", autouse=True)
def bounded_once() -> Iterator[None]:
    """Pictures of one estimate ask for the same bound, seconds each: it is computed once for each design and value."""
    plain, known = EstimateDesign.width_bound, dict[tuple[int, float], tuple[float, EstimateDesign]]()

    def width_bound(design: EstimateDesign, at: float) -> float:
        if (id(design), at) not in known:
            known[id(design), at] = plain(design, at), design  # kept, so that no other object has its id
        return known[id(design), at][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EstimateDesign, "width_bound", width_bound)
        yield


@pytest.fixture(scope="module")
def seen() -> tuple[list[tuple[str, Any, Any, list[float]]], list[str]]:
    """The outcomes, and everything logged at any level meanwhile."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    root, keep = logging.getLogger(), Keep(level=1)
    level = root.level
    root.addHandler(keep)
    root.setLevel(1)
    try:
        found = outcomes()
        for kind, design, result, _ in found:
            lines.append(report.render(question={"null": NULL, "epsilon": 1}, design=design, result=result, kind=kind))
    finally:
        root.removeHandler(keep)
        root.setLevel(level)
    return found, lines


def test_no_text_holds_it(seen: tuple[list[tuple[str, Any, Any, list[float]]], list[str]]) -> None:
    found, logged = seen
    for _, design, result, raw in found:
        secrets = [PLANTED, *raw]
        texts = [json.dumps(one.to_dict()) for one in (result, design)]
        texts += [repr(result), str(result), result._repr_html_(), repr(design), design._repr_html_(), *logged]
        assert not any(spelled(text, secrets) for text in texts)


@pytest.mark.exhaustive
def test_no_picture_holds_it(seen: tuple[list[tuple[str, Any, Any, list[float]]], list[str]]) -> None:
    for kind, design, result, raw in seen[0]:
        drawn = [design.plot() if kind == "detect" else design.plot(release=result)]
        drawn += [result.plot()] if kind == "detect" else []
        for axes in drawn:
            axes.figure.canvas.draw()
            assert not holds(artists.numbers(axes), [PLANTED, *raw])
            assert not any(spelled(text, [PLANTED, *raw]) for text in artists.texts(axes))
