"""A distribution from a log density that the user wrote."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution, shown
from privatest.hypotheses.distribution import Reals, find_breaks
from privatest.hypotheses.quadrature import GAUSS, Panels, build_panels
from privatest.numbers import Floats, row_dots

__all__ = ["Density", "density"]

MASS_TOLERANCE = 1e-6


def density(
    logpdf: Callable[[Any], Any],
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    points: Sequence[float] | None = None,
    name: str = "density",
) -> Density:
    """The distribution with log density ``logpdf`` on ``support``.

    ``logpdf`` is called with an array where it can take one, else number by number. ``points`` are for densities whose
    peaks are too narrow to be found by search.

    Guarantees: integrates to 1 (a total within 1e-6 of 1 is normalised, any other is an error that says
    it); cdf and complement accurate in their own tails; ``.error`` bounds the quadrature error of the total.

    Args:
        logpdf: the logarithm of the density: a function of a number, or of an array.
        support: the two ends outside which the density is 0; infinite ones are allowed.
        name: what the distribution is called in print.
        points: places where the mass lies or the density bends; may be left out.

    >>> import numpy as np
    >>> density(lambda x: np.log(2 * x), support=(0, 1)).cdf(0.5).item()
    0.25
    """
    return Density(logpdf, support, points, name)


class Density(Reals):
    """See :func:`density`."""

    def __init__(
        self,
        logpdf: Callable[[Any], Any],
        support: tuple[float, float],
        points: Sequence[float] | None = None,
        name: str = "density",
    ) -> None:
        if not callable(logpdf):
            raise InvalidDistribution(f"{name}: logpdf must be a function of x, not {type(logpdf).__name__}.")
        self._function = logpdf
        self._name = name
        self._support = _check_support(support, name)
        self._points = _check_points(points, self._support, name)
        self._one_by_one = not _takes_arrays(logpdf, self._support)
        self._log_total = 0.0
        found = self._integrate()
        self._log_total = math.log(found.total)
        self._panels = Panels(found.edges, found.masses / found.total, found.error)

    @property
    def support(self) -> tuple[float, float]:
        return self._support

    @property
    def error(self) -> float:
        """Bound on the error of the total mass, as found by halving panels."""
        return self._panels.error

    def describe(self) -> str:
        return f"{self._name}({self._support[0]:g} to {self._support[1]:g})"

    def logpdf(self, x: ArrayLike) -> Floats:
        values = np.asarray(x, dtype=float)
        lo, hi = self._support
        inside = (values >= lo) & (values <= hi) & np.isfinite(values)
        log = np.full(values.shape, -np.inf)
        if inside.any():
            log[inside] = self._call(values[inside]) - self._log_total
        return log

    def _call(self, x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            if self._one_by_one:
                log = np.array([self._at(float(value)) for value in x])
            else:
                try:
                    log = np.asarray(self._function(x))
                except Exception as fault:
                    raise self._raised(f"an array of x from {x.min():g} to {x.max():g}", fault) from fault
                if log.dtype.kind not in "iuf":
                    raise InvalidDistribution(
                        f"{self._name}: logpdf returned {log.dtype.name} values; it must return real numbers."
                    )
                log = np.broadcast_to(log.astype(float), x.shape)
        return np.where((x == self._support[0]) | (x == self._support[1]), np.where(np.isnan(log), -np.inf, log), log)

    def _at(self, x: float) -> float:
        try:
            return float(self._function(x))
        except Exception as fault:
            given_up = isinstance(fault, ValueError | ZeroDivisionError | OverflowError)
            if given_up and (x in self._support or abs(x) > 1e15):
                return -math.inf  # an end, or so far out that the formula gives up
            raise self._raised(f"x={shown(x)}", fault) from fault

    def _raised(self, at: str, fault: Exception) -> InvalidDistribution:
        """What to say where the user's function raises: at a point of a grid, never at a record."""
        return InvalidDistribution(
            f"{self._name}: logpdf raised {type(fault).__name__} ({fault}) at {at}; it must return a number or -inf on "
            f"its whole support {self._support}. Correct it, or give the support on which it is defined."
        )

    def _integrate(self) -> Panels:
        breaks = find_breaks(self.logpdf, self._support, self._points)
        inner = (breaks[:-1] + breaks[1:]) / 2
        log = self.logpdf(inner)
        near = np.abs(inner) < 1e15
        if np.isnan(log[near]).any():
            x = float(inner[near][np.argmax(np.isnan(log[near]))])
            raise InvalidDistribution(
                f"{self._name}: logpdf is NaN at x={shown(x)}; it must be a number or -inf on its whole support."
            )
        if (log == np.inf).any():
            x = float(inner[np.argmax(log == np.inf)])
            raise InvalidDistribution(f"{self._name}: logpdf is +inf at x={shown(x)}, inside the support.")
        panels = build_panels(self._safe_logpdf, breaks)
        total = panels.total
        if not abs(total - 1) <= MASS_TOLERANCE:
            raise InvalidDistribution(
                f"{self._name} integrates to {total!r} over its support {self._support}: "
                "it must integrate to 1. If its mass is in a narrow place, name it with points=[...]."
            )
        return panels

    def _safe_logpdf(self, x: Floats) -> Floats:
        log = self.logpdf(x)
        return np.where(np.isnan(log), -np.inf, log)

    @cached_property
    def breaks(self) -> Floats:
        edges = self._panels.edges
        if edges.size <= 1500:
            return edges
        # refinement at kinks makes many edges; a landmark for every one would be too many, the kinks
        # themselves stay
        keep = np.unique(np.round(np.linspace(0, edges.size - 1, 1500)).astype(int))
        narrow = np.argsort(np.diff(edges), kind="stable")[:200]
        return np.unique(edges[np.concatenate([keep, narrow])])

    @cached_property
    def _before(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self._panels.masses)])

    @cached_property
    def _after(self) -> Floats:
        return np.concatenate([np.cumsum(self._panels.masses[::-1])[::-1], [0.0]])

    def cdf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=False)

    def sf(self, x: ArrayLike) -> Floats:
        return self._cumulative(x, upper=True)

    def _cumulative(self, x: ArrayLike, *, upper: bool) -> Floats:
        values = np.asarray(x, dtype=float)
        flat = values.ravel()
        edges = self._panels.edges
        inside = np.clip(np.where(np.isnan(flat), edges[0], flat), edges[0], edges[-1])
        index = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, edges.size - 2)
        start, end = (inside, edges[index + 1]) if upper else (edges[index], inside)
        nodes = start[:, None] + (end - start)[:, None] * GAUSS[0]
        with np.errstate(all="ignore"):
            part = row_dots(np.exp(self._safe_logpdf(nodes)), GAUSS[1]) * (end - start)
        part = np.where(end > start, part, 0.0)
        mass = part + (self._after[index + 1] if upper else self._before[index])
        mass = np.where(np.isnan(flat), np.nan, np.clip(mass, 0.0, 1.0))
        return np.asarray(mass.reshape(values.shape))


def _check_support(support: Any, name: str) -> tuple[float, float]:
    try:
        lo, hi = (float(end) for end in support)
    except (TypeError, ValueError):
        raise InvalidDistribution(f"{name}: support={shown(support)} must be two numbers (low, high).") from None
    if math.isnan(lo) or math.isnan(hi) or not lo < hi:
        raise InvalidDistribution(f"{name}: support=({lo!r}, {hi!r}) must have low < high.")
    return lo, hi


def _check_points(points: Sequence[float] | None, support: tuple[float, float], name: str) -> Floats | None:
    if points is None:
        return None
    try:
        found = np.asarray(points, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidDistribution(f"{name}: points={shown(points)} must be numbers.") from None
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise InvalidDistribution(f"{name}: points={shown(points)} must be a flat list of finite numbers.")
    return np.unique(found[(found >= support[0]) & (found <= support[1])])


def _takes_arrays(function: Callable[[Any], Any], support: tuple[float, float]) -> bool:
    """Whether the function maps an array to an array of the same shape."""
    lo, hi = support
    middle = (
        (lo + hi) / 2
        if math.isfinite(lo + hi)
        else lo + 1
        if math.isfinite(lo)
        else hi - 1
        if math.isfinite(hi)
        else 0.5
    )
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(function(np.array([middle, middle])))
    except Exception:  # whatever it raises for an array, number by number it may do
        return False
    return result.shape in ((2,), ())
