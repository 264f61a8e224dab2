"""Scipy's newer distribution objects, which name their methods differently."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution
from privatest.pairs.distribution import Floats
from privatest.pairs.reals import LEVELS, Reals, check_scale, quiet

__all__ = ["NewScipyReals"]


class NewScipyReals(Reals):
    """A continuous distribution object such as ``stats.Normal(mu=0, sigma=1)``."""

    def __init__(self, given: Any, name: str = "distribution") -> None:
        self._given = given
        with quiet():
            ends = given.support()
            middle = np.asarray(given.median())
        if middle.ndim > 0:
            raise InvalidDistribution(
                f"{name} holds an array of parameters: give one distribution with scalar parameters."
            )
        self._support = (float(ends[0]), float(ends[1]))
        if math.isnan(self._support[0]) or math.isnan(self._support[1]) or math.isnan(float(middle)):
            raise InvalidDistribution(f"{name}={self.describe()} has invalid parameters.")
        check_scale(given.icdf, f"{name}={self.describe()}")

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    def describe(self) -> str:
        return str(self._given)

    def _call(self, method: str, x: ArrayLike) -> Floats:
        with quiet():
            return np.asarray(getattr(self._given, method)(np.asarray(x, dtype=float)), dtype=float)

    def logpdf(self, x: ArrayLike) -> Floats:
        return self._call("logpdf", x)

    def cdf(self, x: ArrayLike) -> Floats:
        return self._call("cdf", x)

    def sf(self, x: ArrayLike) -> Floats:
        return self._call("ccdf", x)

    def ppf(self, u: ArrayLike) -> Floats:
        return self._call("icdf", u)

    def isf(self, u: ArrayLike) -> Floats:
        return self._call("iccdf", u)

    @cached_property
    def breaks(self) -> Floats:
        points = np.concatenate([self.ppf(LEVELS), self.isf(LEVELS), self._support])
        return np.unique(points[np.isfinite(points)])
