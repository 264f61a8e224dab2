"""Finite mixtures of distributions of one kind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution
from privatest.pairs.distribution import Distribution, Floats, Labels, check_probabilities
from privatest.pairs.families import number_text
from privatest.pairs.integers import IntegerBlocks, Integers, Ints
from privatest.pairs.reals import Reals

__all__ = ["MixedIntegers", "MixedReals", "mixture"]


def mixture(weights: ArrayLike, parts: Sequence[Any], name: str = "mixture") -> Distribution:
    """The distribution that draws part i with probability ``weights[i]``.

    Guarantees: its density is the weighted sum of theirs, its cdf and complement stay accurate in their
    tails.

    >>> mixture([0.3, 0.7], ["normal(0, 1)", "normal(2, 1)"])
    mixture(0.3, normal(0, 1), 0.7, normal(2, 1))
    """
    from privatest.pairs.convert import as_distribution

    w = check_probabilities(weights, f"{name} weights")
    given = [parts] if isinstance(parts, (str, bytes)) else list(parts)
    if len(given) != w.size:
        raise InvalidDistribution(f"{name} has {w.size} weights for {len(given)} parts: give one part for each weight.")
    laws = [as_distribution(part, f"{name} part {index + 1}") for index, part in enumerate(given)]
    kept = [(float(weight), law) for weight, law in zip(w, laws, strict=True) if weight > 0]
    w = np.array([weight for weight, _ in kept])
    w /= w.sum()
    laws = [law for _, law in kept]
    reals = [law for law in laws if isinstance(law, Reals)]
    if len(reals) == len(laws):
        return MixedReals(w, reals)
    labels = [law for law in laws if isinstance(law, Labels)]
    if len(labels) == len(laws):
        return _mixed_labels(w, labels, name)
    if reals:
        raise InvalidDistribution(f"{name} mixes continuous with discrete parts: all must be of one kind.")
    integers: list[Integers] = []
    for law in laws:
        found = IntegerBlocks.from_labels(law) if isinstance(law, Labels) else law
        if not isinstance(found, Integers):
            raise InvalidDistribution(f"{name} mixes {law.describe()} with integer parts: its labels must be integers.")
        integers.append(found)
    return MixedIntegers(w, integers)


def _mixed_labels(weights: Floats, parts: Sequence[Labels], name: str) -> Labels:
    total: dict[Hashable, float] = {}
    for weight, part in zip(weights, parts, strict=True):
        for label, probability in zip(part.labels, part.probabilities, strict=True):
            total[label] = total.get(label, 0.0) + float(weight) * float(probability)
    return Labels(tuple(total), list(total.values()), name)


def _log_mix(weights: Floats, logs: list[Floats]) -> Floats:
    """log sum of w_i e^(l_i), scaled by the largest."""
    stack = np.stack([np.log(w) + log for w, log in zip(weights, logs, strict=True)])
    top = stack.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.isfinite(top), safe + np.log(np.exp(stack - safe).sum(axis=0)), top))


def _text(weights: Floats, words: list[str]) -> str:
    pieces = (f"{number_text(w)}, {word}" for w, word in zip(weights, words, strict=True))
    return f"mixture({', '.join(pieces)})"


def _spec(weights: Floats, parts: Sequence[Distribution]) -> str | None:
    words = [part.spec for part in parts]
    return None if any(word is None for word in words) else _text(weights, [word or "" for word in words])


class MixedReals(Reals):
    """A mixture of densities."""

    def __init__(self, weights: Floats, parts: Sequence[Reals]) -> None:
        self.weights, self.parts = weights, tuple(parts)

    @property
    def spec(self) -> str | None:
        return _spec(self.weights, self.parts)

    @property
    def named(self) -> bool:
        return all(part.named for part in self.parts)

    def describe(self) -> str:
        return _text(self.weights, [part.describe() for part in self.parts])

    @property
    def support(self) -> tuple[float, float]:
        return min(part.support[0] for part in self.parts), max(part.support[1] for part in self.parts)

    def logpdf(self, x: ArrayLike) -> Floats:
        return _log_mix(self.weights, [part.logpdf(x) for part in self.parts])

    def cdf(self, x: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.cdf(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def sf(self, x: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.sf(x) for w, part in zip(self.weights, self.parts, strict=True)))

    @cached_property
    def breaks(self) -> Floats:
        ends = [end for part in self.parts for end in part.support if np.isfinite(end)]
        return np.unique(np.concatenate([*(part.breaks for part in self.parts), ends]))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(_sample(self.weights, self.parts, rng, size), dtype=float)


class MixedIntegers(Integers):
    """A mixture of distributions on the integers."""

    def __init__(self, weights: Floats, parts: Sequence[Integers]) -> None:
        self.weights, self.parts = weights, tuple(parts)

    @property
    def spec(self) -> str | None:
        return _spec(self.weights, self.parts)

    @property
    def named(self) -> bool:
        return all(part.named for part in self.parts)

    def describe(self) -> str:
        return _text(self.weights, [part.describe() for part in self.parts])

    @property
    def support(self) -> tuple[float, float]:
        return min(part.support[0] for part in self.parts), max(part.support[1] for part in self.parts)

    def logpmf(self, k: ArrayLike) -> Floats:
        return _log_mix(self.weights, [part.logpmf(k) for part in self.parts])

    def cdf(self, k: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.cdf(k) for w, part in zip(self.weights, self.parts, strict=True)))

    def sf(self, k: ArrayLike) -> Floats:
        return np.asarray(sum(w * part.sf(k) for w, part in zip(self.weights, self.parts, strict=True)))

    @cached_property
    def edges(self) -> Ints:
        return np.unique(np.concatenate([part.edges for part in self.parts]))

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        return _sample(self.weights, self.parts, rng, size).astype(np.int64)


def _sample(weights: Floats, parts: Sequence[Distribution], rng: np.random.Generator, size: int) -> NDArray[Any]:
    counts = rng.multinomial(size, weights)
    drawn = np.concatenate([part.sample(rng, int(count)) for part, count in zip(parts, counts, strict=True)])
    return rng.permutation(drawn)
