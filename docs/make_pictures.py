"""Draws every kind of picture into docs/pictures: ``python docs/make_pictures.py``. All data in them are simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privatest as pt
from privatest import pictures

FOLDER = Path(__file__).resolve().parent / "pictures"
LARGEST = 100_000
ANSWERS = {"never": 0.5, "sometimes": 0.3, "often": 0.2}
LATER = {"never": 0.2, "sometimes": 0.3, "often": 0.5}


def figure_1() -> pt.results.Decomposition:
    """The pair of the paper's Figure 1: P(x) = 2x, Q(x) proportional to 1/(1 + sqrt x) on [0, 1]."""
    null = pt.density(lambda x: np.log(2 * x), support=(0, 1))
    alternative = pt.density(lambda x: -np.log1p(np.sqrt(x)) - np.log(2 - 2 * np.log(2)), support=(0, 1))
    return pt.decompose(null, alternative, epsilon=0.2)


def monitored(rng: np.random.Generator) -> Any:
    """A monitor that sees 1,000 records of P, then records of Q until it fires."""
    watch = pt.Monitor("normal(0, 1)", "normal(1, 1)", epsilon=0.5, rng=rng)
    watch.update_many(rng.normal(0, 1, 1000))
    watch.update_many(rng.normal(1, 1, 1000))
    return watch


def drawings() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of files, and what draws them."""
    rng = np.random.default_rng(20)
    yield "decomposition_figure_1", figure_1().plot
    pairs: dict[str, tuple[Any, Any, float]] = {
        "normal": ("normal(0, 1)", "normal(1, 1)", 0.5),
        "scale": ("normal(0, 1)", "normal(0, 2)", 0.3),
        "poisson": ("poisson(3)", "poisson(5)", 0.4),
        "labels": (ANSWERS, LATER, 0.4),
        "zero": ("bernoulli(0)", "bernoulli(0.1)", 0.5),
    }
    for name, (null, alternative, epsilon) in pairs.items():
        yield f"decomposition_{name}", pt.decompose(null, alternative, epsilon=epsilon).plot
    found = pt.sample_complexity("normal(0, 1)", "normal(0.5, 1)", epsilon=0.5)
    assert found.pair is not None
    pair = found.pair
    yield "complexity", lambda: pictures.complexity(found, pair, patience=60.0)
    yield "power", pt.power_curve("normal(0, 1)", "normal(0.5, 1)", epsilon=0.5).plot
    yield "compare", pt.compare("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1).plot
    test = pt.design("normal(0, 1)", "normal(0.5, 1)", epsilon=0.5, n=100)
    release = test.run(rng.normal(0, 1, 100), rng=rng)
    yield "test", lambda: test.plot(release=release)
    best = pt.optimum(ANSWERS, LATER, epsilon=1, n=12)
    yield "optimum", best.plot
    fit = pt.design_fit(ANSWERS, distance=0.2, epsilon=1, n=200)
    yield "fit", lambda: fit.plot(release=fit.run(rng.choice(list(ANSWERS), 200, p=list(LATER.values())), rng=rng))
    plan = pt.design_change("normal(0, 1)", "normal(1, 1)", epsilon=0.5, n=1000)
    yield "change_plan", plan.plot
    changed = np.concatenate([rng.normal(0, 1, 400), rng.normal(1, 1, 600)])
    yield "change_point", plan.run(changed, rng=rng).plot
    watch = monitored(rng)
    yield "monitor", watch.plot
    assert watch.alarm is not None
    yield "alarm", watch.alarm.plot
    run = pt.Sequential("bernoulli(0.4)", "bernoulli(0.6)", epsilon=0.5, rng=np.random.default_rng(11))
    run.update(np.random.default_rng(12).random(2000) < 0.53)
    yield "sequential_walk", run.plot
    yield "sequential_stopping", run.plan.plot
    share = pt.design_estimate("bernoulli(?)", epsilon=1, n=200)
    yield "estimate", lambda: pictures.estimate(share, patience=60.0)
    yield "estimate_released", share.run(rng.random(200) < 0.3, rng=rng).plot
    arms = pt.design_groups(n=(200, 300), epsilon=1)
    yield "groups", lambda: pictures.groups(arms, patience=60.0)
    compared = arms.run(rng.random(200) < 0.3, rng.random(300) < 0.42, rng=rng)
    yield "groups_released", lambda: pictures.groups(arms, release=compared, patience=60.0)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    lines = ["# Pictures", "", "Made by `python docs/make_pictures.py`; all data in them are simulated.", ""]
    for name, draw in drawings():
        content = pictures.png(draw, dpi=85)
        assert len(content) < LARGEST, (name, len(content))
        (FOLDER / f"{name}.png").write_bytes(content)
        lines += [f"![{name.replace('_', ' ')}]({name}.png)", ""]
        print(f"{name}: {len(content) // 1000} kB")
    (FOLDER / "README.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
