r"""A distribution of one record; two of them, and the law of their log-likelihood ratio.

.. math:: L(x) = \log P(x) - \log Q(x) \in [-\infty, \infty]

Everything downstream (decomposition, scores, error rates) sees P and Q through a :class:`Pair`. What a density on the
real line can do, and the finite kind, labels with probabilities, stand here too.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.errors import InvalidDistribution

if TYPE_CHECKING:
    from privatest.numbers import Floats


LEVELS: Final[Floats] = np.unique(
    np.concatenate(
        [
            np.arange(0.02, 0.5, 0.02),  # the body
            10.0 ** -np.arange(2.0, 16.01, 0.5),  # tails that matter to a probability
            10.0 ** -np.arange(20.0, 301.0, 10.0),  # tails that matter to a ratio
            [0.5],
        ]
    )
)
"""Tail probabilities at whose quantiles panels and landmarks are placed."""

SUM_TOLERANCE = 1e-9
MOST_TYPED = 20
"""Of a longer list that is no distribution nobody would look for the wrong entry: it is data in the wrong place."""
TAKEN_FOR_DATA = (
    "is taken for data: its values do not sum to 1 as probabilities do, or are all 0 or 1. Say what P and Q are, as in "
    "design('bernoulli(0.3)', 'bernoulli(0.4)', epsilon=1, n=100), and give the data to run(data). "
    "A law with all its mass in one place is a mapping: {0: 0, 1: 1}."
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


class Distribution(ABC):
    """P or Q. Public by definition: a distribution holds nothing about anybody's data."""

    kind: ClassVar[str]
    """``"labels"``, ``"integers"`` or ``"reals"``."""

    @property
    def spec(self) -> str | None:
        """Text that :func:`parse` reads back to this distribution, or None where there is none."""
        return None

    @property
    def named(self) -> bool:
        """Whether :meth:`describe` says all of it, so that no other distribution has the same text."""
        return self.spec is not None

    @abstractmethod
    def describe(self) -> str:
        """A short text for people, such as ``normal(0, 1)``."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """``size`` simulated records. For simulations only: never part of a private release."""

    def __repr__(self) -> str:
        return self.describe()


class Numbers(Distribution):
    """A distribution of numbers, on the integers or on the line; accurate in both of its tails."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest interval that holds all mass; ends may be infinite."""

    @abstractmethod
    def cdf(self, x: ArrayLike) -> Floats:
        """Pr[X <= x], accurate relatively in the left tail."""

    @abstractmethod
    def sf(self, x: ArrayLike) -> Floats:
        """Pr[X > x], accurate relatively in the right tail."""

    @abstractmethod
    def ppf(self, u: ArrayLike) -> Floats:
        """Smallest x with cdf(x) >= u."""

    @abstractmethod
    def isf(self, u: ArrayLike) -> Floats:
        """Smallest x with sf(x) <= u."""


class Reals(Numbers):
    """A density on an interval, with a cdf and its complement that are accurate in their own tails."""

    kind = "reals"

    @abstractmethod
    def logpdf(self, x: ArrayLike) -> Floats:
        """Log density; -inf off the support."""

    @property
    @abstractmethod
    def breaks(self) -> Floats:
        """Finite points between which the density is tame: quantiles far into both tails, ends, kinks."""

    @property
    def cut(self) -> float | None:
        """Where the shape is unknown and only the side of a number counts: the number that divides them."""
        return None

    def pdf(self, x: ArrayLike) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.exp(self.logpdf(x)))

    def ppf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=False)

    def isf(self, u: ArrayLike) -> Floats:
        return inverse_cdf(self, np.asarray(u, dtype=float), upper=True)

    def mass(self, lower: ArrayLike, upper: ArrayLike) -> Floats:
        """Pr[lower < X <= upper] from whichever tail does not cancel."""
        a, b = np.broadcast_arrays(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
        both = np.concatenate([a.ravel(), b.ravel()])
        cdf = self.cdf(both).reshape(2, -1)
        sf = self.sf(both).reshape(2, -1)
        centre = 1.0 - (cdf[0] + sf[1])
        mass = np.where(
            cdf[1] <= 0.5,
            cdf[1] - cdf[0],
            np.where(sf[0] <= 0.5, sf[0] - sf[1], centre),
        )
        return np.asarray(np.maximum(mass, 0.0).reshape(a.shape))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return self.ppf(rng.random(size))


def inverse_cdf(law: Reals, u: Floats, *, upper: bool) -> Floats:
    """Quantiles by bisection of all targets at once, from brackets on the law's own breaks.

    Invariant: the quantile lies in (low, high].
    """
    lo, hi = law.support
    grid = np.unique(np.concatenate([law.breaks, [x for x in (lo, hi) if math.isfinite(x)]]))
    flat = np.atleast_1d(u).ravel()

    def reached(x: Floats, target: Floats) -> Any:
        return law.sf(x) <= target if upper else law.cdf(x) >= target

    on_grid = law.sf(grid) if upper else law.cdf(grid)
    order = -on_grid if upper else on_grid
    index = np.searchsorted(np.maximum.accumulate(order), -flat if upper else flat, side="left")
    low = np.where(index > 0, grid[np.minimum(np.maximum(index - 1, 0), grid.size - 1)], grid[0])
    high = grid[np.minimum(index, grid.size - 1)]
    for _ in range(80):
        middle = low + (high - low) / 2
        open_ = (middle > low) & (middle < high)
        if not open_.any():
            break
        there = reached(middle, flat)
        high = np.where(there & open_, middle, high)
        low = np.where(~there & open_, middle, low)
    x = high.astype(float)
    outside = np.isnan(flat) | (flat < 0) | (flat > 1)
    at_lo, at_hi = (flat == 1, flat == 0) if upper else (flat == 0, flat == 1)
    x = np.where(at_lo, lo, np.where(at_hi, hi, np.where(outside, np.nan, x)))
    return np.asarray(x.reshape(np.shape(u)))


FARTHEST = 1e60
"""How far out on an infinite support to look, in units of one and of each mode's width."""


def find_breaks(
    logpdf: Callable[[Floats], Floats], support: tuple[float, float], points: Floats | None = None
) -> Floats:
    """Break points around every mode of the density, out to the far tails and into both ends."""
    lo, hi = support
    coarse = _coarse_grid(lo, hi, points)
    modes = _modes(logpdf, coarse)
    steps = np.concatenate([np.arange(0, 10, 0.5), 10 * 1.5 ** np.arange(0, math.log(FARTHEST) / math.log(1.5))])
    pieces = [np.array([x for x in (lo, hi) if math.isfinite(x)])]
    if points is not None:
        pieces.append(points)
    for mode in modes:
        width = _width(logpdf, float(mode), lo, hi)
        pieces += [mode + width * steps, mode - width * steps]
    for end, other, side in ((lo, hi, 1.0), (hi, lo, -1.0)):
        if math.isfinite(end):
            reach = abs(other - end) if math.isfinite(other) else float(np.max(np.abs(modes - end), initial=1.0))
            # towards 0 floats go on for ever; towards any other number they end after 52 halvings
            halvings = np.concatenate([np.arange(1, 60), np.arange(60, 900, 3)]) if end == 0 else np.arange(1, 50)
            pieces.append(end + side * reach * 2.0 ** -halvings.astype(float))
    everything = np.unique(np.concatenate(pieces))
    return np.asarray(everything[(everything >= lo) & (everything <= hi) & np.isfinite(everything)])


def _coarse_grid(lo: float, hi: float, points: Floats | None) -> Floats:
    octaves = 2.0 ** np.arange(-60, 200, 0.25)
    if math.isfinite(lo) and math.isfinite(hi):
        width = hi - lo
        near = width * 2.0 ** -np.arange(9, 50.0)
        grid = np.concatenate([lo + width * np.arange(1, 512) / 512, lo + near, hi - near])
    elif math.isfinite(lo):
        grid = lo + octaves
    elif math.isfinite(hi):
        grid = hi - octaves
    else:
        grid = np.concatenate([-octaves, [0.0], octaves])
    if points is not None:
        grid = np.concatenate([grid, points])
    grid = np.unique(grid)
    return grid[(grid > lo) & (grid < hi)]


def _modes(logpdf: Callable[[Floats], Floats], grid: Floats) -> Floats:
    """Local maxima seen on the grid and refined; ends count."""
    values = logpdf(grid)
    values = np.where(np.isnan(values), -np.inf, values)
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = (padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]) & np.isfinite(values)
    best = float(np.max(values[np.isfinite(values)], initial=-np.inf))
    index = np.flatnonzero(peaks & (values > best - 800))
    index = index[np.argsort(-values[index], kind="stable")][:40]
    if index.size == 0:
        return grid[[grid.size // 2]]
    low, high = grid[np.maximum(index - 1, 0)], grid[np.minimum(index + 1, grid.size - 1)]
    rows, fractions = np.arange(index.size), np.linspace(0, 1, 33)
    mode = grid[index]
    for _ in range(12):
        x = low[:, None] + (high - low)[:, None] * fractions
        seen = logpdf(x.ravel()).reshape(x.shape)
        top = np.argmax(np.where(np.isnan(seen), -np.inf, seen), axis=1)
        mode = x[rows, top]
        low, high = x[rows, np.maximum(top - 1, 0)], x[rows, np.minimum(top + 1, 32)]
    return np.unique(np.concatenate([mode, grid[index]]))


def _width(logpdf: Callable[[Floats], Floats], mode: float, lo: float, hi: float) -> float:
    """Distance at which the log density has dropped by a half on some side."""
    reach = 2.0 ** np.arange(-200, 200)
    reach = reach[(mode + reach != mode) | (mode - reach != mode)]
    top = float(logpdf(np.array([mode]))[0])
    x = np.stack([mode - reach, mode + reach])
    inside = (x > lo) & (x < hi)
    values = np.where(inside, logpdf(np.where(inside, x, mode).ravel()).reshape(x.shape), np.inf)
    dropped = np.any(values < top - 0.5, axis=0)
    if dropped.any():
        return float(reach[np.argmax(dropped)])
    return hi - lo if math.isfinite(hi - lo) else 1.0


class Labels(Distribution):
    """A finite domain of hashable labels with their probabilities.

    Guarantees: probabilities are finite, non-negative and sum to 1 within 1e-9; labels are distinct.

    >>> Labels.from_mapping({"a": 0.25, "b": 0.75})
    categorical(a=0.25, b=0.75)
    """

    kind = "labels"

    def __init__(self, labels: Sequence[Hashable], probabilities: ArrayLike, name: str = "distribution") -> None:
        self.labels: tuple[Hashable, ...] = tuple(labels)
        self.probabilities: Floats = check_probabilities(probabilities, name)
        if len(self.labels) != self.probabilities.size:
            raise InvalidDistribution(
                f"{name} has {len(self.labels)} labels but {self.probabilities.size} probabilities: give one for each."
            )
        if len(set(self.labels)) != len(self.labels):
            raise InvalidDistribution(f"{name} names a label twice: {_first_repeated(self.labels)!r}.")

    @classmethod
    def from_mapping(cls, mapping: Mapping[Hashable, Any], name: str = "distribution") -> Labels:
        if not mapping:
            raise InvalidDistribution(f"{name} is an empty mapping: it needs at least one label with its probability.")
        return cls(tuple(mapping), list(mapping.values()), name)

    @classmethod
    def from_array(cls, probabilities: ArrayLike, name: str = "distribution") -> Labels:
        """Labels 0, 1, ..., k - 1. What nobody would type as probabilities is taken for data, and refused as such."""
        data = False
        try:
            checked = check_probabilities(probabilities, name)
        except InvalidDistribution:
            data = not _could_be_typed(probabilities)
            if not data:
                raise
        if data or (checked.size > 2 and bool(np.all((checked == 0) | (checked == 1)))):
            raise InvalidDistribution(f"{name} {TAKEN_FOR_DATA}")
        return cls(range(checked.size), checked, name)

    @property
    def spec(self) -> str | None:
        values = [repr(float(value)) for value in self.probabilities]
        if self.labels == tuple(range(len(self.labels))) and not any(isinstance(x, bool) for x in self.labels):
            return f"categorical({', '.join(values)})"
        words = [_label_text(label) for label in self.labels]
        if any(word is None for word in words):
            return None
        return f"categorical({', '.join(f'{word}={value}' for word, value in zip(words, values, strict=True))})"

    @property
    def named(self) -> bool:
        return self.describe() == self.spec

    def describe(self) -> str:
        text = self.spec
        short = text is not None and len(self.labels) <= 6 and len(text) <= 120
        return text if short and text is not None else f"categorical({len(self.labels)} labels)"

    def sample(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        total = self.probabilities / self.probabilities.sum()
        picks = rng.choice(len(self.labels), size=size, p=total)
        return label_array(self.labels)[picks]


def label_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """The labels as one array: integers or text where all are, objects otherwise."""
    if all(type(label) is int and abs(label) < 2**62 for label in labels):
        return np.array(labels, dtype=np.int64)
    if all(type(label) is str for label in labels):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    for index, label in enumerate(labels):
        array[index] = label
    return array


def check_probabilities(values: ArrayLike, name: str) -> Floats:
    """``values`` as a probability vector, or an error that says what is wrong with them."""
    try:
        raw = np.asarray(values)
    except Exception:  # what the values are is not for messages
        raise InvalidDistribution(f"{name} must be a flat list of probabilities.") from None
    if raw.ndim != 1:
        raise InvalidDistribution(
            f"{name} has {raw.ndim} dimensions: probabilities must be one-dimensional, one number for each outcome."
        )
    if raw.size == 0:
        raise InvalidDistribution(f"{name} is empty: it needs at least one probability.")
    if raw.dtype == object:
        raw = _numbers(raw, name)
    if raw.dtype.kind not in "iuf":
        raise InvalidDistribution(f"{name} holds {raw.dtype.name} values: probabilities must be real numbers.")
    p = raw.astype(np.float64)
    if np.isnan(p).any():
        raise InvalidDistribution(f"{name} has a probability that is NaN.")
    if (p < 0).any():
        raise InvalidDistribution(f"{name} has a negative probability: all must be at least 0.")
    total = math.fsum(p.tolist()) if np.isfinite(p).all() else math.inf
    if not abs(total - 1) <= SUM_TOLERANCE:
        # Not the sum: these may be data, or counts of data.
        more = "more" if total > 1 else "less"
        raise InvalidDistribution(f"{name} has probabilities that sum to {more} than 1: they must sum to 1.")
    return p


def _numbers(raw: NDArray[Any], name: str) -> NDArray[Any]:
    """Fractions, decimals and integers as floats; anything else is refused by name."""
    try:
        if any(isinstance(value, (bool, str, bytes, complex)) for value in raw):
            raise TypeError
        return np.array([float(value) for value in raw])
    except Exception:  # a number type of the user's may raise anything, and quote what it is
        kinds = ", ".join(sorted({type(value).__name__ for value in raw}))
        raise InvalidDistribution(f"{name} holds {kinds} values: probabilities must be real numbers.") from None


def _could_be_typed(values: ArrayLike) -> bool:
    """Whether these are few numbers from 0 to 1, not all of them 0 or 1; or nothing, or a table."""
    try:
        raw = np.asarray(values)
        if raw.ndim != 1 or raw.size == 0:
            return True
        few = raw.size <= MOST_TYPED and raw.dtype.kind in "iufO"
        return few and all(0 <= each <= 1 for each in raw.tolist()) and not all(each in (0, 1) for each in raw.tolist())
    except Exception:  # whatever these are
        return False


def _first_repeated(labels: Iterable[Hashable]) -> Hashable:
    seen: set[Hashable] = set()
    for label in labels:
        if label in seen:
            return label
        seen.add(label)
    return None


def _label_text(label: Hashable) -> str | None:
    """The label as the text parser reads it back, where it can."""
    if type(label) is int:
        return str(label)
    if type(label) is not str or not label.isprintable():
        return None
    if _WORD.match(label):
        return label
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'


Term: TypeAlias = "Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]"
"""(log p, log q, L) -> the integrand, and by how much it moves when L is off by one."""


class Pair(ABC):
    """P (``null``) against Q (``alternative``), on a common domain."""

    null: Distribution
    alternative: Distribution

    @property
    @abstractmethod
    def kind(self) -> str:
        """``"labels"``, ``"integers"`` or ``"reals"``."""

    @abstractmethod
    def ratio(self, x: Any) -> Floats:
        """L(x) for each record; NaN where both densities are zero."""

    @property
    @abstractmethod
    def ratio_range(self) -> tuple[float, float]:
        """Essential infimum and supremum of L."""

    @abstractmethod
    def above(self, level: float) -> tuple[float, float]:
        """(P(L > level), Q(L > level))."""

    @abstractmethod
    def below(self, level: float) -> tuple[float, float]:
        """(P(L < level), Q(L < level))."""

    @abstractmethod
    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        """Integral of ``term`` over the domain; ``levels`` are the values of L at which it has a kink."""

    @abstractmethod
    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        r"""Mass by which P exceeds e^level Q.

        .. math:: D_y(P\|Q) = \int \max\{P - e^y Q, 0\}

        With ``reverse`` the roles of P and Q are exchanged. Guarantees: in [0, 1]; non-increasing in the
        level; total variation at level 0; relative error at most 1e-10.
        """

    @cached_property
    def total_variation(self) -> float:
        """TV(P, Q), the hockey-stick divergence at level 0."""
        return self.hockey_stick(0.0)

    @cached_property
    def hellinger_squared(self) -> float:
        r"""H^2(P, Q) = 1 - \int \sqrt{PQ}, without cancellation for close pairs."""
        return min(self.integral(hellinger_term), 1.0)

    @cached_property
    def kl(self) -> float:
        r"""KL(P||Q), which may be infinite."""
        return self._kullback_leibler(reverse=False)

    @cached_property
    def kl_reverse(self) -> float:
        r"""KL(Q||P), which may be infinite."""
        return self._kullback_leibler(reverse=True)

    @abstractmethod
    def _kullback_leibler(self, *, reverse: bool) -> float: ...

    def clamped_hellinger(self, lower: float, upper: float) -> float:
        r"""Half the squared distance of the roots of min{P, e^upper Q} and min{Q, e^-lower P}.

        .. math:: \tfrac12 \int (\sqrt{\tilde P} - \sqrt{\tilde Q})^2 = (1 - \tau) H^2(P', Q')

        (the equality for the paper's clamp). Needs lower <= 0 <= upper.
        """

        def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
            clipped = np.clip(ratio, lower, upper)
            # where L is clamped the larger of the two is the smaller one times e^|clamp|
            larger = np.where(ratio >= 0, np.minimum(log_p, log_q + upper), np.minimum(log_q, log_p - lower))
            return _hellinger_density(larger, clipped)

        return self.integral(term, (lower, upper))

    def clamped_gap(self, lower: float, upper: float) -> float:
        r"""One-record advantage of the soft clamped test by direct integration.

        .. math:: \int (P - Q)\,\sigma([L]_a^b / 2) = \tfrac12 \int (P - Q) \tanh([L]_a^b / 4)
        """

        def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
            larger = np.exp(np.maximum(log_p, log_q))
            gap = np.where(ratio >= 0, 1.0, -1.0) * -np.expm1(-np.abs(ratio))
            soft = np.tanh(np.clip(ratio, lower, upper) / 4) / 2
            return larger * gap * soft, larger * (np.abs(soft) + np.abs(gap))

        return self.integral(term, (lower, 0.0, upper))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.null.describe()}, {self.alternative.describe()})"


def _hellinger_density(log_larger: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """(sqrt p - sqrt q)^2 / 2 = max(p, q) (1 - e^(-|L|/2))^2 / 2."""
    larger = np.exp(log_larger)
    gap = -np.expm1(-np.abs(ratio) / 2)
    return larger * gap * gap / 2, larger * gap


def hellinger_term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Integrand of the squared Hellinger distance."""
    return _hellinger_density(np.maximum(log_p, log_q), ratio)


def hockey_stick_term(level: float, *, reverse: bool) -> Term:
    """max(p - e^level q, 0) = p (1 - e^(level - L)) where L > level."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, excess = (log_q, -ratio - level) if reverse else (log_p, ratio - level)
        there = excess > 0
        top = np.where(there, np.exp(log_top), 0.0)
        return top * -np.expm1(-np.where(there, excess, 0.0)), top

    return term


def kullback_leibler_term(*, reverse: bool) -> Term:
    """p log(p/q) + q - p, which is never negative and integrates to KL(P||Q)."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, log_bottom, gain = (log_q, log_p, -ratio) if reverse else (log_p, log_q, ratio)
        top, bottom = np.exp(log_top), np.exp(log_bottom)
        # a density that underflowed; a true zero under P never comes here
        gain = np.where(log_bottom == -np.inf, log_top + 745.2, gain)
        near = np.abs(gain) < 1e-2
        t = np.where(near, gain, 0.0)
        # e^-t - 1 + t by its series where it cancels
        series = t * t * (1 / 2 + t * (-1 / 6 + t * (1 / 24 + t * (-1 / 120 + t * (1 / 720 - t / 5040)))))
        plain = np.where(top > 0, np.where(near | (top == 0), 0.0, gain), 0.0)
        far = np.where(top > 0, top * plain, 0.0) + (bottom - top)
        value = np.where(near, top * series, far)
        with np.errstate(invalid="ignore"):
            moved = np.where(near, top * np.abs(t), top + bottom)
        return value, moved

    return term
