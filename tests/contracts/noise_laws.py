"""The laws of all noises and what every notion measures of two laws, written apart from the package: NumPy alone.

A noise is given as its document, so that nothing of the class under test takes part.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri

from privatest.numbers import Floats

__all__ = ["excess", "losses", "shifted_laws", "spent"]

TAIL = 45.0
"""Windows end where a tail is below about e^-45."""
FINE = 60
"""Steps of a width that tell all there is to tell."""


def shifted_laws(noise: dict[str, Any], shift: int) -> tuple[Floats, Floats]:
    """Log-probabilities of a noisy total and of one ``shift`` further on, on all values that matter to either."""
    found = globals()[f"_{noise['kind']}"]
    noise, moved = _smaller(noise, shift)
    reach = found(noise, None)
    values = np.arange(-reach, reach + math.ceil(moved) + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return found(noise, values), found(noise, values - moved)


def _smaller(noise: dict[str, Any], shift: int) -> tuple[dict[str, Any], float]:
    """The same on a coarser lattice, where it is finer than it need be: no shift gets smaller by it.

    Blocks of Tulap noise count in whole ones, and a shift beyond a width stays one; the others look at ratios alone.
    """
    if noise["kind"] in ("tulap", "truncated_tulap") and noise["width"] > FINE:
        return {**noise, "width": FINE}, -(-shift * FINE // noise["width"])
    if noise["kind"] == "gaussian":
        deviation = Fraction(noise["width"]) / Fraction(noise["mu"])
        return {**noise, "width": FINE, "mu": "1/1"}, float(shift * FINE / deviation)
    if noise["kind"] in ("laplace", "logistic") and _number(noise["scale"]) > FINE:
        return {**noise, "scale": str(FINE)}, float(shift * FINE / Fraction(noise["scale"]))
    return noise, shift


def _number(text: str) -> float:
    return float(Fraction(text))


def _tulap(noise: dict[str, Any], x: Any) -> Any:
    """A two-sided geometric number of widths, spread evenly over one width. Values are numbered from the lowest."""
    epsilon, width = _number(noise["epsilon"]), noise["width"]
    if x is None:
        return math.ceil((TAIL / epsilon + 2) * width)
    return math.log(math.tanh(epsilon / 2) / width) - epsilon * np.abs(np.floor(x / width))


def _stair(noise: dict[str, Any], x: Any) -> Any:
    """What leaves is the level: one value for each width."""
    return _tulap({**noise, "width": 1}, x)


def _truncated_tulap(noise: dict[str, Any], x: Any) -> Any:
    """Blocks as those of Tulap, of which the first has more mass, until all of it is used up; on both sides alike."""
    epsilon, delta, width = _number(noise["epsilon"]), _number(noise["delta"]), noise["width"]
    b = math.exp(-epsilon)
    first = (1 - b + 2 * delta * b) / (1 + b)
    if x is None:
        return math.ceil((math.log(1 + 1 / delta) / epsilon + 4) * width)
    # Values on one side of the middle of block 0, outwards: what lies beyond each of them, as long as there is any.
    steps = np.arange(0, int(np.abs(x).max()) + 2 * width)
    masses = first / width * np.exp(-epsilon * np.floor(steps / width))
    side = (1 - first) / 2  # beyond block 0
    beyond = np.concatenate([np.full(width, side), side - np.concatenate([[0.0], np.cumsum(masses[width:])])])
    masses[width:] = np.clip(masses[width:], 0.0, np.maximum(beyond[width:-1], 0.0))
    outwards = np.where(x >= 0, x, width - 1 - x).astype(np.int64)
    found = masses[outwards]
    return np.log(np.where(found > 1e-13 * first, found, 0.0))


def _uniform(noise: dict[str, Any], x: Any) -> Any:
    points = noise["points"]
    if x is None:
        return points + 1
    return np.where((x >= 0) & (x < points), -math.log(points), -np.inf)


def _laplace(noise: dict[str, Any], x: Any) -> Any:
    """Half integers: x + 1/2."""
    rate = 1 / _number(noise["scale"])
    if x is None:
        return math.ceil(TAIL / rate) + 2
    return math.log(-math.expm1(-rate) / 2) - rate * (np.abs(x + 0.5) - 0.5)


def _logistic(noise: dict[str, Any], x: Any) -> Any:
    """The logistic law between x and x + 1, by its density's symmetric form."""
    rate = 1 / _number(noise["scale"])
    if x is None:
        return math.ceil(2 * TAIL / rate) + 2
    away = np.abs(x + 0.5) - 0.5
    low, high = np.exp(-rate * away), np.exp(-rate * (away + 1))
    return -rate * away + math.log(-math.expm1(-rate)) - np.log1p(low) - np.log1p(high)


def _gaussian(noise: dict[str, Any], x: Any) -> Any:
    """The normal law between x - 1/2 and x + 1/2."""
    deviation = noise["width"] / _number(noise["mu"])
    if x is None:
        return math.ceil(12 * deviation) + 2
    away = np.abs(x)
    near, far = log_ndtr(-(away - 0.5) / deviation), log_ndtr(-(away + 0.5) / deviation)
    return near + np.log(-np.expm1(far - near))


def losses(name: str, parameters: tuple[float, ...], one: Floats, other: Floats) -> float:
    """What the notion of this name bounds by its last parameter, of the first law from the second (log-probabilities).

    Reference: the definitions. gdp: Dong, Roth and Su 2022; events are those of the likelihood ratio.
    """
    seen = one > -np.inf
    with np.errstate(invalid="ignore"):
        p, q, ratio = np.exp(one), np.exp(other), np.where(seen, one - other, -np.inf)
    if name == "pure":
        return float(ratio.max())
    if name in ("approx", "tv"):
        epsilon = parameters[0] if name == "approx" else 0.0
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    if name == "gdp":
        order = np.argsort(-ratio, kind="stable")
        power, size = np.cumsum(p[order]), np.cumsum(q[order])
        told = (size > 1e-7) & (power < 1 - 1e-7)  # where sums of doubles have digits
        return float((ndtri(power[told]) - ndtri(size[told])).max(initial=0.0))
    if not np.all(other[seen] > -np.inf):
        return math.inf
    orders = {"renyi": parameters[:1], "kl": (1.0,), "zcdp": tuple(np.geomspace(1 + 1e-9, 64, 15))}[name]
    found = [_divergence(order, one[seen], ratio[seen]) / (order if name == "zcdp" else 1) for order in orders]
    return float(max(found))


def _divergence(order: float, one: Floats, ratio: Floats) -> float:
    if order - 1 < 1e-6:
        return float((np.exp(one) * ratio).sum())
    exponents = one + (order - 1) * ratio
    # A divergence of an order above 1 is an integral far out: cut off where the window ends, it is never too large.
    top = float(exponents.max())
    return (top + math.log(float(np.exp(exponents - top).sum()))) / (order - 1)


def spent(notion: Any, noise: dict[str, Any] | None, shift: int) -> tuple[float, ...]:
    """What noise that hides totals so far apart costs, in numbers that add up for this notion; both ways, the larger.

    Of approx (epsilon, delta): the noise's own epsilon for each width begun, and the delta that is left.
    """
    return _spent(notion, json.dumps(noise), shift)


@lru_cache(maxsize=4096)
def _spent(notion: Any, written: str, shift: int) -> tuple[float, ...]:
    noise = json.loads(written)
    if noise is None or noise["kind"] == "none":
        return (math.inf, math.inf) if notion.name == "approx" else (math.inf,)
    if not shift:
        return (0.0, 0.0) if notion.name == "approx" else (0.0,)
    if noise["kind"] in ("stair", "chain"):
        shift = -(-shift // noise["width"])
    one, other = shifted_laws(noise, shift)
    parameters = tuple(float(part) for part in notion.exact)
    if notion.name == "approx" and "epsilon" in noise:
        parameters = (min(_number(noise["epsilon"]) * -(-shift // noise.get("width", 1)), parameters[0]), 0.0)
    found = max(losses(notion.name, parameters, *both) for both in ((one, other), (other, one)))
    if notion.name == "approx":
        return (parameters[0], found)
    return (found**2,) if notion.name == "gdp" else (found,)


def excess(notion: Any, parts: list[tuple[float, ...]]) -> float:
    """By what factor, less 1, all parts together cost more than the notion allows; at most 0 where they do not."""
    allowed = [float(part) for part in notion.exact[-len(parts[0]) :]]
    if notion.name == "gdp":
        allowed = [allowed[0] ** 2]
    used = [sum(each) for each in zip(*parts, strict=True)]
    shares = [
        have / may if may else (math.inf if have > 1e-12 else 0.0) for have, may in zip(used, allowed, strict=True)
    ]
    return max(shares) - 1
