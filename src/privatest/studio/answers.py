"""The studio's computations: JSON in, JSON out, each one call of the public package. They run in worker processes.

Nothing here sees data: everything is computed from P, Q, epsilon and n, which are public.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import privatest as pt
from privatest.studio.densities import densities
from privatest.studio.noisy import noisy_law

__all__ = ["JOBS", "law_of", "plain_number"]

Json = dict[str, Any]
Law = str | dict[str, float]


def law_of(given: Law) -> Any:
    """P or Q as the package takes it; a table whose labels are all whole numbers is one over those integers."""
    if isinstance(given, dict) and all(_whole(label) for label in given):
        return {int(label): value for label, value in given.items()}
    return given


def _whole(label: str) -> bool:
    digits = label.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) < 16 and str(int(label)) == label


def look(null: Law, alternative: Law, epsilon: float) -> Json:
    """The decomposition and the curves of the paper's first figure. Nothing else: sliders wait for it."""
    split = pt.decompose(law_of(null), law_of(alternative), epsilon=epsilon)
    low, high = split.clamp
    return {
        "decomposition": {
            "epsilon": split.epsilon,
            "tau": split.tau,
            "epsilon_prime": split.epsilon_prime,
            "swapped": split.swapped,
            "clamp": [low, high],
            "null": split.pair.null.describe(),
            "alternative": split.pair.alternative.describe(),
        },
        "excess": {
            "null": split.pair.hockey_stick(epsilon),
            "alternative": split.pair.hockey_stick(epsilon, reverse=True),
        },
        "densities": densities(split),
    }


def design(
    null: Law,
    alternative: Law,
    epsilon: float,
    n: int,
    alpha: float | None = None,
    document: bool = False,
    neighbours: str = "replace",
) -> Json:
    """The tuned test at n: exact error rates, threshold, clamp, and the law of its statistic under P and Q."""
    test = pt.design(law_of(null), law_of(alternative), epsilon=epsilon, n=n, alpha=alpha, neighbours=neighbours)
    found = {
        "test": test.name,
        "epsilon": test.epsilon,
        "n": test.n,
        "alpha": test.alpha,
        "beta": test.beta,
        "advantage": test.advantage,
        "threshold": test.threshold,
        "clamp": list(test.clamp),
        "noise": test.noise.kind,
        "noise_sd": math.sqrt(test.noise.variance) * float(test.score.step / test.scale),
        "neighbours": test.neighbours,
    }
    return {"design": found, "law": noisy_law(test)} | ({"document": test.to_dict()} if document else {})


def size(
    null: Law,
    alternative: Law,
    epsilon: float,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    bound: bool = False,
    neighbours: str = "replace",
) -> Json:
    """The records that the goal needs, and on request how many no private test can do without."""
    P, Q = law_of(null), law_of(alternative)
    n = _needed(json.dumps([null, alternative, epsilon, advantage, alpha, beta, neighbours]))
    target = 2 / 3 if advantage is None else advantage
    if alpha is not None and beta is not None:
        target = 1 - alpha - beta  # a test with these errors has this advantage at least
    # Replacing a record is removing one and adding one: what hides either at epsilon hides that at twice as much.
    level = epsilon if neighbours == "replace" else 2 * epsilon
    lower = pt.lower_bound(P, Q, epsilon=level, advantage=target) if bound else None
    return {"epsilon": epsilon, "n": n, "lower_bound": lower}


@lru_cache(maxsize=256)
def _needed(asked: str) -> int:
    """The sample size, remembered: a question without the bound often comes before the same one with it."""
    null, alternative, epsilon, advantage, alpha, beta, neighbours = json.loads(asked)
    P, Q = law_of(null), law_of(alternative)
    return pt.sample_size(P, Q, epsilon=epsilon, advantage=advantage, alpha=alpha, beta=beta, neighbours=neighbours)


def theory(null: Law, alternative: Law, epsilons: list[float]) -> Json:
    """The theorem's orders at several epsilons."""
    P, Q = law_of(null), law_of(alternative)
    return {"complexity": [pt.sample_complexity(P, Q, epsilon=epsilon).to_dict() for epsilon in epsilons]}


def power(
    null: Law,
    alternative: Law,
    epsilon: float,
    n: list[int],
    alpha: float | None = None,
    neighbours: str = "replace",
) -> Json:
    """Exact error rates at several n."""
    P, Q = law_of(null), law_of(alternative)
    return pt.power_curve(P, Q, epsilon=epsilon, n=n, alpha=alpha, neighbours=neighbours).to_dict()


def compare(null: Law, alternative: Law, epsilon: float, advantage: float | None = None) -> Json:
    """Every test side by side."""
    more = {} if advantage is None else {"advantage": advantage}
    return pt.compare(law_of(null), law_of(alternative), epsilon=epsilon, **more).to_dict()


def plain_number(value: Any) -> Any:
    """JSON has no infinity and no NaN: the text "inf" and null stand for them, in whatever is given."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: plain_number(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_number(each) for each in value]
    return value


JOBS: dict[str, Callable[..., Json]] = {job.__name__: job for job in (look, design, size, theory, power, compare)}
