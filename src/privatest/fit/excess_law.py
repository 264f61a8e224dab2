r"""The statistic of a fit test, an integer that one record moves by at most its width, and the exact law of it.

**The statistic.** :class:`Excess` says how far counts exceed given levels. :func:`uniformity` is the statistic of
Diakonikolas, Gouleakis, Peebles and Price as Acharya, Sun and Zhang (2018) use it,
:math:`S = \tfrac12 \sum_x |N_x/m - 1/k|`. With m = q k + r, 0 <= r < k, and sum of N equal to m,

.. math:: m k S = \sum_x (k N_x - m)^+ = (k - r) \sum_x (N_x - q)^+ + r \sum_x (N_x - q - 1)^+ ,

an :class:`Excess` with two knots. For m >= k its width is k. For m < k the first sum is the constant m and the width is
m. So S moves by at most min(m, k)/(m k) = 1/max(m, k).

**Its law** (:func:`excess_law`), without simulation. Counts of n records are independent Poisson(n q_x) counts given
that they sum to n, so the characteristic function is

.. math:: E\,e^{itT} \;\propto\; \int_{-\pi}^{\pi} e^{-isn} \prod_x \Bigl(\sum_j
          \mathrm{Poi}(j; n q_x)\, e^{isj + itf_x(j)}\Bigr) ds .

The integral over s is a sum over nodes, all at once by FFT. Symbols of equal probability and equal knots are one group
(:class:`Groups`), with the window of counts that holds nearly all their mass. Over t there are three ways:

- *dense*: every node;
- *marching*, if there are many nodes: outward from t = 0, and from those multiples of 2 pi/width at which anything is
  found, until nothing is left. Elsewhere the second differences of the f_x, which sum to the width for each symbol,
  cannot all be near multiples of 2 pi/t, and the product over the symbols is negligible;
- *local*, if many symbols share the variance and T varies by several widths: the product is Gaussian-like, and not
  negligible only within a few 1/sigma of those places and a few 1/sqrt(n) of a known centre in s.

**Its normal approximation** (:func:`moments`, :func:`rough_error`), from which planning starts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from privatest.errors import InvalidInput
from privatest.json_documents import reading
from privatest.laws import IntegerLaw
from privatest.numbers import Floats, Integers
from privatest.privacy import Noise

LARGEST_TOTAL = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Excess:
    r"""An integer statistic of a histogram N over ``symbols`` symbols.

    .. math:: T(N) = \sum_l w_l \sum_x (N_x - \kappa_{x,l})^+

    With one knot per symbol near its expected count this is the empirical total variation distance; knots spread
    over several counts give a chi-squared statistic whose tails grow linearly. The statistic of Acharya, Sun
    and Zhang (:mod:`privatest.fit.excess_law`) is the case of two knots.

    Guarantees: replacing one record moves T by at most ``width``, the sum of the weights (proof.md).

    Attributes:
        knots: one row for each symbol, or a single row that serves all; rows are in increasing order.
        weights: one positive integer for each column.
        symbols: size of the domain.

    >>> Excess(np.array([[1]]), np.array([1]), symbols=3).of(np.array([4, 1, 0]))
    3
    """

    knots: Integers
    weights: Integers
    symbols: int

    def __post_init__(self) -> None:
        rows = self.knots.shape[0] if self.knots.ndim == 2 else -1
        if rows not in (1, self.symbols) or self.weights.shape != self.knots.shape[1:] or not self.weights.size:
            raise InvalidInput(
                "The statistic needs one row of knots, or one for each symbol, and a weight for each knot."
            )
        if np.any(self.weights < 1) or np.any(self.knots < 0):
            raise InvalidInput("The weights of the statistic must be at least 1 and its knots at least 0.")
        for array in (self.knots, self.weights):
            array.setflags(write=False)

    @cached_property
    def width(self) -> int:
        """The most by which replacing one record changes T."""
        return sum(self.weights.tolist())

    def of(self, counts: Integers) -> int:
        """Return the exact value of T for these counts."""
        columns = zip(self.weights.tolist(), self.knots.T, strict=True)
        return sum(w * int(np.maximum(counts - knots, 0).sum()) for w, knots in columns)

    def check_total(self, n: int) -> None:
        """Refuse an n at which T could leave 64 bits."""
        if self.width * n > LARGEST_TOTAL:
            raise InvalidInput(
                f"n={n} is too large for a statistic of width {self.width}: it could leave 64 bits. "
                f"Use n of at most {LARGEST_TOTAL // self.width}."
            )

    def rows(self, symbols: npt.NDArray[np.intp]) -> Integers:
        """Return the knots of these symbols, one row each."""
        return self.knots[np.zeros_like(symbols) if len(self.knots) == 1 else symbols]

    @cached_property
    def row_numbers(self) -> Integers:
        """Symbols with equal knots have equal numbers."""
        if len(self.knots) == 1:
            return np.zeros(self.symbols, dtype=np.int64)
        rows = np.ascontiguousarray(self.knots).view(f"V{8 * self.knots.shape[1]}").ravel()
        return np.unique(rows, return_inverse=True)[1].ravel().astype(np.int64)

    def simplified(self, n: int) -> Excess | None:
        """Return the same test on n records with the smallest width; None if T would be the same for all data.

        A column of zeros adds the constant n, one of knots at n or above adds nothing; equal columns
        merge; a common factor of the weights divides T, its width and so its noise alike.
        """
        knots = np.minimum(np.sort(self.knots, axis=1), n)
        columns, group = np.unique(knots, axis=1, return_inverse=True)
        weights = np.bincount(group.ravel(), weights=self.weights.astype(np.float64)).astype(np.int64)
        telling = np.any(columns > 0, axis=0) & np.any(columns < n, axis=0)
        if not telling.any():
            return None
        columns, weights = columns[:, telling], weights[telling]
        if len(columns) > 1 and np.all(columns == columns[0]):
            columns = columns[:1]
        return Excess(np.ascontiguousarray(columns), weights // math.gcd(*weights.tolist()), self.symbols)

    def refined(self, width: int) -> Excess:
        """Return the same T in smaller units, so that its width, and the noise's, is at least ``width``.

        Nothing is gained or lost but the fineness of the threshold.
        """
        return Excess(self.knots, self.weights * -(-width // self.width), self.symbols)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document from which :meth:`from_dict` restores the statistic exactly."""
        return {"knots": self.knots.tolist(), "weights": self.weights.tolist(), "symbols": self.symbols}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> Excess:
        """Return the statistic that :meth:`to_dict` wrote."""
        with reading("the statistic"):
            return cls(_whole(document["knots"], 2), _whole(document["weights"], 1), int(document["symbols"]))


def _whole(values: list[Any], dimensions: int) -> Integers:
    array = np.array(values)
    if array.ndim != dimensions or array.dtype.kind != "i":
        raise ValueError("knots and weights must be tables of whole numbers")
    return array.astype(np.int64)


def uniformity(symbols: int, n: int) -> Excess:
    """m k S, less a constant and divided by a common factor: the smallest integers that carry S.

    Guarantees: width min(m, k)/gcd(m, k), or 1 when m < k; the sensitivity of S is exactly 1/max(m, k).
    """
    q, r = divmod(n, symbols)
    pairs = [(q, symbols - r), (q + 1, r)] if r else [(q, symbols)]
    knots = np.array([[knot for knot, _ in pairs]], dtype=np.int64)
    weights = np.array([weight for _, weight in pairs], dtype=np.int64)
    excess = Excess(knots, weights, symbols).simplified(n)
    # Only m = 1 leaves nothing: one record has the same histogram up to the names of the symbols.
    return excess if excess is not None else Excess(np.array([[1]], dtype=np.int64), np.array([1]), symbols)


# Deviations a window reaches to either side; with the counts added below, what lies beyond has probability under 1e-13.
REACH = 7.5
MOST_ENTRIES = 1 << 20
TABULATED = 1 << 17


@dataclass(frozen=True, eq=False)
class Block:
    """Groups whose windows have one common length: one row for each group, one column for each count.

    Attributes:
        which: positions of the groups.
        sizes: how many symbols are in each.
        q: their probability.
        counts: the counts in the window.
        steps: T's increase when the count rises by one more.
        values: T's part due to one symbol of this count.
    """

    which: npt.NDArray[np.intp]
    sizes: Integers
    q: Floats
    counts: Integers
    steps: Integers
    values: Integers


@dataclass(frozen=True, eq=False)
class Groups:
    """The distinct (probability, knots) pairs of a law q over the symbols of a statistic."""

    q: Floats
    sizes: Integers
    knots: Integers
    weights: Integers
    member: npt.NDArray[np.intp]

    @classmethod
    def of(cls, excess: Excess, q: Floats) -> Groups:
        """Group the symbols; ``member[x]`` is the group of symbol x."""
        # A probability and the number of a row of knots as one complex number, which NumPy can sort.
        keys = q if len(excess.knots) == 1 else q + 1j * excess.row_numbers
        _, first, member, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        return cls(q[first], sizes.astype(np.int64), excess.rows(first), excess.weights, member.ravel())

    def blocks(self, n: int) -> Iterator[Block]:
        """Windows around n q, groups of similar spread together."""
        for which, counts in windows(self.q, n):
            rows, length = counts.shape
            knots = self.knots[which]
            # How much T's slope rises at each count of the window; knots below it all at its start.
            at = np.clip(knots - counts[:, :1], 0, length) + (length + 1) * np.arange(rows)[:, None]
            weights = np.broadcast_to(self.weights, knots.shape).ravel().astype(np.float64)
            bends = np.bincount(at.ravel(), weights=weights, minlength=rows * (length + 1))
            steps = np.cumsum(bends.reshape(rows, length + 1)[:, :-1], axis=1).astype(np.int64)
            begin = np.maximum(counts[:, :1] - knots, 0) @ self.weights
            values = begin[:, None] + np.cumsum(steps, axis=1) - steps
            yield Block(which, self.sizes[which], self.q[which], counts, steps, values)


def windows(q: Floats, n: int) -> Iterator[tuple[npt.NDArray[np.intp], Integers]]:
    """Positions in q and the counts around n q, one row each, positions of similar spread together."""
    mean = n * q
    spread = REACH * np.sqrt(mean)
    low = np.floor(np.maximum(mean - spread - 2, 0)).astype(np.int64)
    length = np.ceil(mean + spread + 11).astype(np.int64) - low + 1
    length = np.where(q == 0, 1, length)  # a symbol that cannot occur has the count 0 only
    order = np.argsort(length, kind="stable")
    start = 0
    while start < len(order):
        limit = 1.3 * int(length[order[start]]) + 4
        similar = int(np.searchsorted(length[order], limit, side="right"))
        which = order[start : min(similar, start + max(1, int(MOST_ENTRIES / limit)))]
        start += len(which)
        yield which, low[which, None] + np.arange(length[which[-1]])


def poisson_masses(counts: Integers, n: int, q: Floats) -> Floats:
    """Poisson(n q) on each row's window, scaled to sum to 1."""
    return _normalised(np.asarray(special.xlogy(counts, n * q[:, None])) - _log_factorial(counts))


def binomial_masses(counts: Integers, n: int, q: Floats) -> Floats:
    """Binomial(n, q) on each row's window, scaled to sum to 1."""
    rest = np.maximum(n - counts, 0)
    logs = special.xlogy(counts, q[:, None]) + special.xlog1py(rest, -q[:, None])
    return _normalised(np.where(counts <= n, logs - _log_factorial(counts) - _log_factorial(rest), -np.inf))


@lru_cache(maxsize=1)
def _table() -> Floats:
    return np.asarray(special.gammaln(np.arange(1.0, TABULATED + 1)))


def _log_factorial(counts: Integers) -> Floats:
    """log(j!), looked up where j is small enough: five times faster."""
    return np.asarray(_table()[counts] if counts.max() < TABULATED else special.gammaln(counts + 1.0))


def _normalised(logs: Floats) -> Floats:
    """Masses from logarithms; scaling takes away the rounding of the large terms that a row has in common."""
    with np.errstate(under="ignore"):
        masses = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(masses / masses.sum(axis=1, keepdims=True))


Complexes = npt.NDArray[np.complex128]


# How far the local method follows the product: in s it dies like exp(-8^2/2) = 1e-14; in t, if T is like chi-squared
# of 50 degrees of freedom, like (1 + 4 t^2)^(-50/4), which is 4e-11 at 12 standard deviations.
REACH_TRANSFORM = 8.0
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
class PoissonBlock:
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
    def of(cls, block: Block, n: int) -> PoissonBlock:
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

    def phase_covariance(self, t: float) -> float:
        """Covariance of the phase t f(N), taken to the nearest turn, with the count N."""
        top = np.argmax(self.masses, axis=1)[:, None]
        phase = t * (self.values - np.take_along_axis(self.values, top, axis=1))
        phase = (phase + math.pi) % (2 * math.pi) - math.pi
        away = self.counts - (self.masses * self.counts).sum(axis=1, keepdims=True)
        return float((self.masses * phase * away).sum(axis=1) @ self.sizes)

    def product(self, t: Floats, centres: Floats, s: Floats, every: int = 1) -> Complexes:
        """Return the product over every ``every``-th symbol of the block at nodes (t, centre(t) + s)."""
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

    parts: list[PoissonBlock]
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
        """Return the transform at t = 2 pi l / size for l = 0, ..., size // 2."""
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
        """Return the transform at any t, by a sum over all nodes s."""
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
        s = circle[np.abs(circle) <= REACH_TRANSFORM / math.sqrt(self.n)]
        lobes = self._lobes
        centres = np.array([-sum(part.phase_covariance(t0) for part in self.parts) / self.n for t0 in lobes])
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
        """Return a bound on the transform at each t from about ``sampled`` factors of each part."""
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
    """The product over the first axis of the factors, each to its power: by squaring, quicker than by logarithms."""
    with np.errstate(under="ignore"):
        product = factors[sizes == 1].prod(axis=0)
        for power in np.unique(sizes[sizes > 1]).tolist():
            base = factors[sizes == power].prod(axis=0)
            while power:
                if power & 1:
                    product *= base
                power >>= 1
                if power:
                    np.multiply(base, base, out=base)
        return np.asarray(product)


def _folded(terms: Complexes, nodes: int) -> Complexes:
    """Add up the terms of counts that differ by a multiple of ``nodes``."""
    rows, times, length = terms.shape
    padded = np.zeros((rows, times, -(-length // nodes) * nodes), dtype=np.complex128)
    padded[..., :length] = terms
    return np.asarray(padded.reshape(rows, times, -1, nodes).sum(axis=2))


@dataclass(frozen=True)
class Moments:
    """Mean of T (exact) and its standard deviation (to first order in 1/n)."""

    mean: float
    deviation: float


def moments(excess: Excess, n: int, q: Floats) -> Moments:
    """Return approximate moments of T for n records from q.

    Counts are binomial one by one, which gives the mean. Given their sum, Poisson counts are those of n records:
    the variance is that of T less what a regression on the sum explains.
    """
    mean = variance = covariance = 0.0
    for block in Groups.of(excess, q).blocks(n):
        mean += float(block.sizes @ (binomial_masses(block.counts, n, block.q) * block.values).sum(axis=1))
        masses = poisson_masses(block.counts, n, block.q)
        away = block.values - (masses * block.values).sum(axis=1, keepdims=True)
        variance += float(block.sizes @ (masses * away**2).sum(axis=1))
        covariance += float(block.sizes @ (masses * away * block.counts).sum(axis=1))
    return Moments(mean, math.sqrt(max(variance - covariance**2 / n, 1e-9)))


def marginals(excess: Excess, n: int, q: Floats) -> tuple[Floats, Floats]:
    r"""First and second derivative of E f_x(Bin(n, q_x)) in q_x, for each symbol.

    .. math:: h'(q) = n\,E\,\delta(\mathrm{Bin}(n-1, q)), \qquad h''(q) = n(n-1)\,E\,\Delta\delta(\mathrm{Bin}(n-2, q))

    with delta(j) = f(j+1) - f(j). The second is computed with Bin(n-1, q), which is near.
    """
    groups = Groups.of(excess, q)
    first, second = np.empty(len(groups.q)), np.empty(len(groups.q))
    for block in groups.blocks(n):
        masses = binomial_masses(block.counts, max(n - 1, 1), block.q)
        first[block.which] = n * (masses * block.steps).sum(axis=1)
        bends = np.diff(block.steps, axis=1, append=excess.width)
        second[block.which] = n * max(n - 1, 1) * (masses * bends).sum(axis=1)
    return first[groups.member], second[groups.member]


def normal_laplace_above(x: Floats | float, deviation: float, scale: float) -> Floats:
    """Pr[deviation Z + Laplace(scale) > x]; a scale of 0 is none."""
    if scale == 0:
        return np.asarray(special.ndtr(-np.asarray(x) / deviation))
    # Beyond 1000 the Laplace part cannot be seen, and the exponents below would lose their digits.
    ratio = min(deviation / scale, 1000.0)
    z = np.asarray(x) / deviation
    with np.errstate(over="ignore", under="ignore"):
        right = np.exp(special.log_ndtr(z - ratio) + ratio**2 / 2 - z * ratio)
        left = np.exp(special.log_ndtr(-z - ratio) + ratio**2 / 2 + z * ratio)
    return np.asarray(special.ndtr(-z) + (right - left) / 2)


def rough_error(null: Moments, other: Moments, noise: Noise, alpha: float) -> float:
    """Return the type II error at type I error alpha for a normal T, by which candidates are compared."""
    spread, scale = noise.rough
    blurred = [math.hypot(m.deviation, spread) for m in (null, other)]
    cutoff = _rough_cutoff(blurred[0], scale, alpha)
    return float(normal_laplace_above(other.mean - null.mean - cutoff, blurred[1], scale))


@lru_cache(maxsize=16)
def _rough_cutoff(deviation: float, scale: float, alpha: float) -> float:
    """Return the value that a normal number plus Laplace noise exceeds with probability alpha."""
    from scipy import optimize  # late: it takes a while to import

    far = 40 * (deviation + scale)
    return float(optimize.brentq(lambda x: float(normal_laplace_above(x, deviation, scale)) - alpha, -far, far))


ACCURACY = 1e-8
"""Bound on the error of a probability of T plus noise; measured in tests/fit/test_excess_law.py."""
LARGEST_WINDOW = 1 << 24
# Standard deviations below and above the mean that the window holds; T is skewed to the right.
REACHES = (9.0, 15.0)


def excess_law(excess: Excess, n: int, q: Floats) -> IntegerLaw:
    """Return the law of T for n records from q."""
    if excess.symbols == 2:
        return _two_point(excess, n, q)
    # A common factor of the weights is one of T: the law is found without it.
    factor = math.gcd(*excess.weights.tolist())
    excess = Excess(excess.knots, excess.weights // factor, excess.symbols)
    transform = Transform([PoissonBlock.of(block, n) for block in Groups.of(excess, q).blocks(n)], n, excess.width)
    deviation = transform.spread()[0]
    below, above = (math.ceil(reach * deviation) for reach in REACHES)
    size = fft.next_fast_len(below + above + 30 * excess.width + 16, real=True)
    if size > LARGEST_WINDOW:
        raise InvalidInput(
            f"n={n} and {excess.symbols} symbols give a statistic of {size} values, too many for its exact law. "
            "Use method='direct', or an n with a large common factor with the number of symbols."
        )
    phi = transform.at(size)
    first = round(transform.mean) - below - 10 * excess.width
    t = 2 * math.pi * np.arange(len(phi)) / size
    masses = fft.irfft(np.conj(phi) * np.exp(1j * t * (first - transform.offset)), size)
    keep = masses > 1e-17
    return IntegerLaw(factor * (first + np.flatnonzero(keep)), masses[keep] / masses[keep].sum())


def _two_point(excess: Excess, n: int, q: Floats) -> IntegerLaw:
    """Return the law of T on two symbols, by enumerating the count of the second symbol."""
    ((_, counts),) = windows(q[1:], n)
    masses = binomial_masses(counts, n, q[1:])[0]
    j, masses = counts[0][masses > 0], masses[masses > 0]
    values = np.zeros(len(j), dtype=np.int64)
    for weight, knots in zip(excess.weights.tolist(), excess.rows(np.arange(2)).T, strict=True):
        values += weight * (np.maximum(n - j - knots[0], 0) + np.maximum(j - knots[1], 0))
    order = np.argsort(values, kind="stable")
    return IntegerLaw(values[order], masses[order])
