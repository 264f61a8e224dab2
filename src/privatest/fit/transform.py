r"""The characteristic function of the statistic when n records are drawn from q.

Counts of n records are independent Poisson(n q_x) counts given that they sum to n, so

.. math:: E\,e^{itT} \;\propto\; \int_{-\pi}^{\pi} e^{-isn} \prod_x \Bigl(\sum_j
          \mathrm{Poi}(j; n q_x)\, e^{isj + itf_x(j)}\Bigr) ds .

The integral over s is a sum over nodes, all at once by FFT. Over t there are three ways:

- *dense*: every node;
- *marching*, when that is long: outward from t = 0, and from those multiples of 2 pi/width at which anything is found,
  until nothing is left. Elsewhere the second differences of the f_x, which sum to the width for each symbol, cannot
  all be near multiples of 2 pi/t, and the product over the symbols is negligible;
- *local*, when many symbols share the variance and T varies by several widths: the product is Gaussian-like, alive only
  within a few 1/sigma of those places and a few 1/sqrt(n) of a known centre in s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft

from privatest.fit.groups import Block, poisson_masses

__all__ = ["Part", "Transform"]

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Integers = npt.NDArray[np.int64]

# How far the local method follows the product: in s it dies like exp(-8^2/2) = 1e-14; in t, if T is like chi-squared
# of 50 degrees of freedom, like (1 + 4 t^2)^(-50/4), which is 4e-11 at 12 standard deviations.
REACH = 8.0
REACH_IN_T = 12.0
# What the local method needs: records, symbols that share the variance, and (marching too) deviations in widths.
ENOUGH_RECORDS = 100
ENOUGH_SYMBOLS = 50
ENOUGH_WIDTHS = 2.4
NODES_AT_ONCE = 1 << 21
# So few factors are sooner computed than avoided.
FEW_FACTORS = 1 << 15
# Marching stops after so many nodes in a row with nothing.
STRIDE = 32
SAMPLED_FACTORS = 32
NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Part:
    """A block with its Poisson masses; counts and values are taken from whole numbers near their means."""

    sizes: Integers
    means: Floats
    masses: Floats
    counts: Integers
    values: Floats
    near_counts: int
    near_values: int
    mean: float
    moments: tuple[Floats, Floats]

    @classmethod
    def of(cls, block: Block, n: int) -> Part:
        masses = poisson_masses(block.counts, n, block.q)
        means = n * block.q
        near = np.rint(means).astype(np.int64)
        mean_values = (masses * block.values).sum(axis=1)
        centre = np.rint(mean_values).astype(np.int64)
        counts = block.counts - near[:, None]
        values = (block.values - centre[:, None]).astype(np.float64)
        away = values - (mean_values - centre)[:, None]
        moments = (masses * away**2).sum(axis=1), (masses * away * (block.counts - means[:, None])).sum(axis=1)
        return cls(
            sizes=block.sizes,
            means=means,
            masses=masses,
            counts=counts,
            values=values,
            near_counts=int(block.sizes @ near),
            near_values=int(block.sizes @ centre),
            mean=float(block.sizes @ mean_values),
            moments=moments,
        )

    def turn(self, t: float) -> float:
        """Covariance of the phase t f(N), taken to the nearest turn, with the count N."""
        top = np.argmax(self.masses, axis=1)[:, None]
        phase = t * (self.values - np.take_along_axis(self.values, top, axis=1))
        phase = (phase + math.pi) % (2 * math.pi) - math.pi
        away = self.counts - (self.masses * self.counts).sum(axis=1, keepdims=True)
        return float((self.masses * phase * away).sum(axis=1) @ self.sizes)

    def product(self, t: Floats, centres: Floats, s: Floats, every: int = 1) -> Complexes:
        """The product over the block's symbols (``every`` so manyth of them) at nodes (t, centre(t) + s)."""
        total = np.ones((len(t), len(s)), dtype=np.complex128)
        chunk = every * max(1, NODES_AT_ONCE // (self.masses.shape[1] * max(len(t), len(s))))
        for start in range(0, len(self.sizes), chunk):
            rows = slice(start, start + chunk, every)
            counts = self.counts[rows].astype(np.float64)
            left = _wave(t[:, None] * self.values[rows, None, :] + centres[:, None] * counts[:, None, :])
            left *= self.masses[rows, None, :]
            total *= _power(left @ _wave(counts[:, :, None] * s), self.sizes[rows])
        return total

    def product_on_circle(self, t: Floats, nodes: int) -> Complexes:
        """The product over the block's symbols at all s = -2 pi l / nodes, counts taken from ``first_counts``."""
        total = np.ones((len(t), nodes), dtype=np.complex128)
        length = self.masses.shape[1]
        chunk = max(1, NODES_AT_ONCE // (max(length, nodes) * len(t)))
        for start in range(0, len(self.sizes), chunk):
            rows = slice(start, start + chunk)
            terms = _wave(t[:, None] * self.values[rows, None, :])
            terms *= self.masses[rows, None, :]
            if length > nodes:
                terms = _folded(terms, nodes)
            total *= _power(fft.fft(terms, nodes, axis=2), self.sizes[rows])
        return total

    @property
    def first_counts(self) -> int:
        """Sum over the symbols of the first count in the window."""
        return int(self.sizes @ self.counts[:, 0])


@dataclass(frozen=True, eq=False)
class Transform:
    """E exp(i t (T - offset)) for a statistic of this width."""

    parts: list[Part]
    n: int
    width: int

    @property
    def offset(self) -> int:
        """A whole number near the mean of T."""
        return sum(part.near_values for part in self.parts)

    @property
    def mean(self) -> float:
        """Mean of T for Poisson counts; that for n records is near."""
        return sum(part.mean for part in self.parts)

    def spread(self) -> tuple[float, float, float]:
        """Standard deviation of T given n, slope of T on the number of records, and how many symbols share it."""
        covariance = sum(float(part.sizes @ part.moments[1]) for part in self.parts)
        slope = covariance / self.n
        shares = [part.moments[0] - 2 * slope * part.moments[1] + slope**2 * part.means for part in self.parts]
        variance = sum(float(part.sizes @ share) for part, share in zip(self.parts, shares, strict=True))
        squares = sum(float(part.sizes @ share**2) for part, share in zip(self.parts, shares, strict=True))
        symbols = variance**2 / squares if squares > 0 else 1.0
        return math.sqrt(max(variance, 0.25)), slope, symbols

    def at(self, size: int) -> Complexes:
        """At t = 2 pi l / size for l = 0, ..., size // 2."""
        deviation, slope, symbols = self.spread()
        t = 2 * math.pi * np.arange(size // 2 + 1) / size
        groups = sum(len(part.sizes) for part in self.parts)
        many = symbols >= ENOUGH_SYMBOLS and self.n >= ENOUGH_RECORDS
        if many and deviation >= ENOUGH_WIDTHS * self.width:
            answer = self._local(t, deviation, slope)
        elif len(t) * groups < FEW_FACTORS:
            answer = self._on_circle(t)
        else:
            answer = self._marching(t)
        return np.asarray(answer / answer[0].real)

    @property
    def _nodes(self) -> int:
        """Nodes on the circle of s: sums that miss n by a multiple of this have negligible probability."""
        return fft.next_fast_len(math.ceil(9 * math.sqrt(self.n)) + 40)

    @property
    def _missing(self) -> int:
        return self.n - sum(part.near_counts for part in self.parts)

    @property
    def _lobes(self) -> Floats:
        return 2 * math.pi * np.arange(1, self.width // 2 + 1) / self.width

    def _on_circle(self, t: Floats) -> Complexes:
        """All nodes s, for any t."""
        nodes = self._nodes
        answer = np.empty(len(t), dtype=np.complex128)
        longest = max([nodes, *(part.masses.shape[1] for part in self.parts)])
        chunk = max(1, NODES_AT_ONCE // longest)
        whole = self._missing - sum(part.first_counts for part in self.parts)
        turn = np.exp(2j * math.pi * np.arange(nodes) * (whole % nodes) / nodes)
        for start in range(0, len(t), chunk):
            some = t[start : start + chunk]
            product = np.ones((len(some), nodes), dtype=np.complex128)
            for part in self.parts:
                product *= part.product_on_circle(some, nodes)
            answer[start : start + chunk] = product @ turn
        return answer

    def _marching(self, t: Floats) -> Complexes:
        answer = np.zeros(len(t), dtype=np.complex128)
        answer[0] = self._on_circle(t[:1])[0]
        nothing = NEGLIGIBLE * abs(answer[0])
        done = np.zeros(len(t), dtype=bool)
        places = np.rint(np.append(0.0, self._lobes) / t[1]).astype(np.intp)
        probes = self._on_circle(t[np.minimum(places[:, None] + np.array([-2, 0, 2]), len(t) - 1).ravel().clip(0)])
        alive = np.abs(probes).reshape(-1, 3).max(axis=1) > nothing
        for place in places[alive]:
            for direction in (1, -1):
                edge = int(place)
                while 0 <= edge < len(t) and not done[edge]:
                    block = np.arange(edge, edge + direction * STRIDE, direction)
                    block = block[(block >= 0) & (block < len(t))]
                    answer[block] = self._on_circle(t[block])
                    done[block] = True
                    if np.abs(answer[block]).max() <= nothing:
                        break
                    edge += direction * STRIDE
                done[min(int(place), len(t) - 1)] = False  # so that the other direction can start
        return answer

    def _local(self, t: Floats, deviation: float, slope: float) -> Complexes:
        nodes = self._nodes
        circle = 2 * math.pi * np.arange(-(nodes // 2), nodes - nodes // 2) / nodes
        s = circle[np.abs(circle) <= REACH / math.sqrt(self.n)]
        lobes = self._lobes
        centres = np.array([-sum(part.turn(t0) for part in self.parts) / self.n for t0 in lobes])
        main = t <= REACH_IN_T / deviation
        answer = np.zeros(len(t), dtype=np.complex128)
        answer[main] = self._nearby(t[main], -slope * t[main], s)
        # All factors are at most 1 in size: part of them may do to see that a place is dead.
        alive = self._largest(lobes, centres, s, SAMPLED_FACTORS) > NEGLIGIBLE * abs(answer[0])
        if alive.any():
            alive[alive] = self._largest(lobes[alive], centres[alive], s) > NEGLIGIBLE * abs(answer[0])
        for t0, s0 in zip(lobes[alive], centres[alive], strict=True):
            inside = np.abs(t - t0) <= REACH_IN_T / deviation
            answer[inside] = self._nearby(t[inside], s0 - slope * (t[inside] - t0), s)
        return answer

    def _largest(self, t: Floats, centres: Floats, s: Floats, sampled: int | None = None) -> Floats:
        """A bound on the transform at each t, from about so many factors of each part."""
        product = np.ones((len(t), len(s)))
        for part in self.parts:
            every = 1 if sampled is None else max(1, len(part.sizes) // sampled)
            product *= np.abs(part.product(t, centres, s, every))
        return np.asarray(product.sum(axis=1))

    def _nearby(self, t: Floats, centres: Floats, s: Floats) -> Complexes:
        product = np.exp(-1j * self._missing * (centres[:, None] + s))
        for part in self.parts:
            product *= part.product(t, centres, s)
        return np.asarray(product.sum(axis=1))


def _wave(angles: Floats) -> Complexes:
    """exp(i angle), faster than the complex exponential."""
    wave = np.empty(angles.shape, dtype=np.complex128)
    np.cos(angles, out=wave.real)
    np.sin(angles, out=wave.imag)
    return wave


def _power(factors: Complexes, sizes: Integers) -> Complexes:
    """The product over the first axis of the factors, each to its power."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        if np.any(sizes > 1):
            powers = np.exp(sizes[:, None, None] * np.log(factors))
            factors = np.where(factors == 0, 0, powers)
        return np.asarray(factors.prod(axis=0))


def _folded(terms: Complexes, nodes: int) -> Complexes:
    """Counts a whole turn apart fall together."""
    rows, times, length = terms.shape
    padded = np.zeros((rows, times, -(-length // nodes) * nodes), dtype=np.complex128)
    padded[..., :length] = terms
    return np.asarray(padded.reshape(rows, times, -1, nodes).sum(axis=2))
