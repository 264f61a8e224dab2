"""What several private answers cost together.

Where the cost is one number it adds up, as exact rationals:

==============  ==============  ================================================================
a budget in     adds up         because
==============  ==============  ================================================================
``pure``        epsilon         losses add up
``zcdp``        rho             Renyi divergences of every order add up (Bun and Steinke 2016)
``gdp``         mu squared      shifts of independent Gaussians add up (Dong, Roth and Su 2022)
``renyi``       the bound       divergences of that order add up (Mironov 2017)
``tv``, ``kl``  eta             total variation is subadditive; the chain rule of divergences
==============  ==============  ================================================================

These sums also hold where the next question and its price are chosen after looking at the answers before (Feldman and
Zrnic 2021 for Renyi divergences, hence zcdp; Smith and Thakurta 2022 for gdp).

A budget in (epsilon, delta) is composed as a whole, by privacy-loss distributions: they add up as independent numbers
do, which is the tightest that can be said of many answers. A notion that is a trade-off function has a pair of
distributions that no two neighbours exceed (its dominating pair): randomised response for ``pure`` and ``approx``, two
Gaussians for ``gdp``. A noise has the exact pair of its shifted laws. Everything is rounded to the safe side: the
losses lie on a grid, and the hockey-stick curve at the grid's points is exact ("connect the dots", Doroshenko et al.
2022). The distributions are those of the library ``dp_accounting``, which no other module knows.

Guarantees: :func:`composed_epsilon` is never less than what the answers cost together, provided that their notions were
chosen without looking at the answers. Where the next price depends on the answers before, use a budget in ``pure``,
``zcdp``, ``gdp`` or ``renyi``: for (epsilon, delta) no theorem is as tight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from privatest.errors import InvalidInput, MissingExtra
from privatest.numbers import Floats, rounded_up, square_root
from privatest.privacy.decision_chain import ONE, Chain, Stair
from privatest.privacy.noise import Noise
from privatest.privacy.notion import Approx, Gdp, Notion, Pure, Tv, Zcdp, converted, with_last
from privatest.privacy.tulap import Tulap


def weight(notion: Notion) -> Fraction:
    """Return the number of a notion that adds up: its last parameter, or the square of mu.

    >>> weight(Zcdp(0.5)), weight(Gdp(0.5))
    (Fraction(1, 2), Fraction(1, 4))
    """
    if isinstance(notion, Approx):
        raise InvalidInput(f"{notion} has no one number that adds up.")
    last: Fraction = notion.exact[-1]
    return last**2 if isinstance(notion, Gdp) else last


def of_weight(kind: Notion, amount: Fraction, *, up: bool = True) -> Notion:
    """The notion of the given kind (and order) whose weight is ``amount``; the mu of gdp is rounded up, or down."""
    if isinstance(kind, Gdp):
        return Gdp(square_root(amount, up=up))
    if isinstance(kind, Tv) and amount >= 1:
        raise InvalidInput(f"Stability in total variation adds up to {float(amount):g}, and 1 says nothing at all.")
    return with_last(kind, amount)


def together(price: Fraction | Notion, epsilon: Fraction | int) -> Fraction | Notion:
    """The price of an answer at ``price`` together with another one at a pure epsilon, in the notion of ``price``.

    >>> together(Fraction(1, 2), Fraction(1, 4)), together(Zcdp(0.5), Fraction(1)), together(Approx(1, 1e-6), 1)
    (Fraction(3, 4), zcdp(1), approx(2, 1e-06))
    """
    if not isinstance(price, Notion):
        return price + epsilon
    if not epsilon:
        return price
    if isinstance(price, Approx):
        return Approx(price.loss + epsilon, price.delta)
    second = converted(Pure(epsilon), price)
    assert second is not None  # pure converts into everything
    return of_weight(price, weight(price) + weight(second))


def adds_up_within(parts: Iterable[Notion | None], whole: Notion) -> bool:
    """Whether answers that meet ``parts``, one after the other, meet ``whole`` together. Never true by rounding.

    Each part is converted into the kind of the whole. A part that does not convert is not within it, and neither is
    None, the guarantee of an answer that meets no notion.

    >>> adds_up_within([Gdp(0.6), Gdp(0.8)], Gdp(1)), adds_up_within([Gdp(0.6), Gdp(0.8)], Zcdp(0.499))
    (True, False)
    """
    sums = tuple(Fraction(0) for _ in _amounts(whole))
    for part in parts:
        if isinstance(part, Tv) and isinstance(whole, Approx):
            part = Approx(0, part.eta)  # exactly; a conversion rounds up
        same_kind = None if part is None else converted(part, whole)
        if same_kind is None:
            return False
        sums = tuple(a + b for a, b in zip(sums, _amounts(same_kind), strict=True))
    return all(total <= most for total, most in zip(sums, _amounts(whole), strict=True))


def _amounts(notion: Notion) -> tuple[Fraction, ...]:
    """Return the numbers of a notion that add up: epsilon and delta of ``approx``, the weight of any other."""
    return notion.exact if isinstance(notion, Approx) else (weight(notion),)


LEAST_DELTA = 1e-10
"""Below this, the rounding errors of a Fourier transform are not small beside delta."""
ROUNDING = 1e-12
"""An upper bound on the error of such a transform, in delta."""
Counts = Mapping[Notion, int]
"""How many answers there are under each notion."""


@lru_cache(maxsize=256)
def _repeated(notion: Notion, times: int) -> Any:
    """Return the privacy-loss distribution of ``times`` answers that meet the notion."""
    return loss_distribution(notion).self_compose(times)


def composed_epsilon(counts: Counts, delta: Fraction) -> float:
    """Return an epsilon such that all the answers together are (epsilon, delta)-private; infinite if there is none.

    Args:
        counts: how many answers there are under each notion.
        delta: the probability by which epsilon may be exceeded.

    Guarantees: at most what adding up epsilons and deltas gives.

    >>> composed_epsilon({}, Fraction(1, 10**6))
    0.0
    """
    if not counts:
        return 0.0
    return min(_basic_composition(counts, delta), _concentrated(counts, delta), _convolved(counts, delta))


def _basic_composition(counts: Counts, delta: Fraction) -> float:
    """Return the sum of the epsilons if the sum of the deltas is at most ``delta``; exact."""
    epsilons = deltas = Fraction(0)
    for notion, times in counts.items():
        if isinstance(notion, Pure):
            epsilons += times * notion.loss
        elif isinstance(notion, Approx):
            epsilons, deltas = epsilons + times * notion.loss, deltas + times * notion.delta
        elif isinstance(notion, Tv):
            deltas += times * notion.eta
        else:  # a delta would have to be chosen
            return math.inf
    return rounded_up(epsilons) if deltas <= delta else math.inf


def _concentrated(counts: Counts, delta: Fraction) -> float:
    """Return an epsilon from all answers as ``zcdp``, whose rho adds up, converted to (epsilon, delta)."""
    if not delta or (delta >= LEAST_DELTA and all(notion.tradeoff for notion in counts)):  # the losses say more
        return math.inf
    rho = Fraction(0)
    for notion, times in counts.items():
        part = converted(notion, Zcdp(1))
        if part is None:
            return math.inf
        rho += times * weight(part)
    return _epsilon_of(Zcdp(rho), delta)


def _epsilon_of(notion: Notion, delta: Fraction) -> float:
    """Return the epsilon that follows from a notion at ``delta``; infinite if none does."""
    whole = converted(notion, Approx(1, delta))
    return math.inf if whole is None else rounded_up(whole.exact[0])


def _convolved(counts: Counts, delta: Fraction) -> float:
    """Return an epsilon from the sum of the losses of the dominating pairs, as independent random numbers."""
    if delta < LEAST_DELTA:
        return math.inf
    # Notions that bound divergences are added up first, by kind and order, and then converted.
    sums: dict[Notion, Fraction] = {}
    parts: dict[Notion, int] = {}
    for notion, times in counts.items():
        if notion.tradeoff:
            parts[notion] = times
        else:
            kind = of_weight(notion, Fraction(1))
            sums[kind] = sums.get(kind, Fraction(0)) + times * weight(notion)
    goal = float(delta) * (1 - 1e-6) - ROUNDING
    if not parts and len(sums) == 1:
        ((kind, total),) = sums.items()
        return _epsilon_of(of_weight(kind, total), delta)
    for kind, total in sums.items():
        share = converted(of_weight(kind, total), Approx(1, Fraction(goal) / (2 * len(sums))))
        if share is None:
            return math.inf
        parts[share] = parts.get(share, 0) + 1
    first, *others = (_repeated(notion, parts[notion]) for notion in sorted(parts, key=lambda each: each.text))
    for other in others:
        first = first.compose(other)
    return float(first.get_epsilon_for_delta(goal)) * (1 + 1e-9)


GRID = 1e-4
"""Privacy losses are rounded to multiples of this."""
TRACE = 1e-13
"""An upper bound on the error of a loss that is the difference of two logarithms."""
MOST_ATOMS = 400_000
"""The largest number of values for which the exact law of a noisy total is used."""
CORNERS = 2_000
"""The number of positive epsilons at which the largest delta of several laws is exact; between them it is larger."""


def _library() -> tuple[Any, Any]:
    """Two modules of dp_accounting: its privacy-loss distributions, and their probability mass functions."""
    try:
        # An extra, and slow to import: only where a budget or a question needs it.
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dp_accounting":
            raise
        raise MissingExtra.of("Composing privacy losses needs dp-accounting.", "accounting") from None
    return privacy_loss_distribution, pld_pmf


def _connect_dots(grid: float, corners: Any, deltas: Any) -> Any:
    """Return the distribution with these deltas at the epsilons ``grid * corners``, pessimistic between them."""
    library, masses = _library()
    return library.PrivacyLossDistribution(masses.create_pmf_pessimistic_connect_dots(grid, corners, deltas))


def loss_distribution(notion: Notion, grid: float = GRID) -> Any:
    """Return the privacy-loss distribution of the notion's dominating pair, rounded to the safe side.

    Returns:
        ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``.
    """
    if isinstance(notion, Gdp):
        deviation = -rounded_up(-1 / notion.mu)
        return _library()[0].from_gaussian_mechanism(deviation, value_discretization_interval=grid)
    if isinstance(notion, Tv):
        notion = Approx(0, notion.eta)
    if not isinstance(notion, Pure | Approx):
        raise InvalidInput(
            f"{notion} has no one privacy-loss distribution: it bounds divergences. Convert it: "
            "into('approx', delta=...)."
        )
    loss = float(notion.loss) * (1 + 1e-15)
    delta = float(notion.exact[1]) if isinstance(notion, Approx) else 0.0
    corners = sorted({side(end / grid) for end in (-loss, loss) for side in (math.floor, math.ceil)})
    deltas = [delta + (1 - delta) * _response_delta(loss, corner * grid) for corner in corners]
    deltas[-1] = delta  # no finite loss lies beyond the last corner
    return _connect_dots(grid, corners, deltas)


def _response_delta(loss: float, epsilon: float) -> float:
    """Return the hockey-stick divergence at ``epsilon`` of randomised response with privacy loss ``loss``."""
    if epsilon <= -loss:
        return -math.expm1(epsilon)
    return max(-math.expm1(epsilon - loss), 0.0) / (1 + math.exp(-loss))


def noise_distribution(noise: Noise, move: int, grid: float = GRID) -> Any:
    """Return the privacy-loss distribution of what is released, by the exact law of the noise.

    What is released is the noisy total, its level, or the decision alone, as the noise allows. If the law of a noisy
    total has more than ``MOST_ATOMS`` values, the distribution is that of the pair that dominates what the noise
    guarantees.

    Args:
        noise: the noise on the total.
        move: the largest number of lattice steps by which one record moves the total.
        grid: losses are rounded to multiples of this.

    Guarantees: at every epsilon the delta is at least that of any two neighbours, in both directions, and it stays so
    for the composition of any number of them, whichever way a record moves each total. The noise of a total is
    symmetric and its ratios are monotone, so the largest move is the worst one, and both directions lose alike. A chain
    is not symmetric: its distribution has the larger delta of the two at every epsilon.
    """
    if isinstance(noise, Chain):
        return _largest_losses(_levels_apart(noise), grid)
    if isinstance(noise, Tulap | Stair):  # whole widths are the worst moves, and over them the uniform part cancels
        noise, move = Tulap(noise.epsilon, 1), -(-move // noise.width)
    reach = move
    while float(noise.logsf(noise.offset + reach)) > -80:
        reach *= 2
    if 2 * reach + move > MOST_ATOMS:
        met = noise.guarantee(move)
        if met is None:
            raise InvalidInput(f"{noise.describe()} does not hide totals {move} apart. Use wider noise.")
        return loss_distribution(met, grid)
    values = np.arange(-reach, reach + move + 1)
    lower, upper = (noise.logpmf(values - shift + float(noise.offset)) for shift in (0, move))
    apart = np.isneginf(lower)
    losses = upper[~apart] - lower[~apart] + TRACE
    losses, masses = losses[np.isfinite(losses)], np.exp(upper[~apart][np.isfinite(losses)])
    # A loss between two points of the grid is split between them, so that both laws keep their mass.
    below = np.floor(losses / grid)
    shares = np.expm1(grid * (below + 1) - losses) / math.expm1(grid)
    points, place = np.unique(np.concatenate([below, below + 1]).astype(np.int64), return_inverse=True)
    split = np.bincount(place, np.concatenate([masses * shares, masses * (1 - shares)]))
    infinite = float(np.exp(upper[apart]).sum()) + math.exp(-79)  # both tails count as infinite losses
    library, masses_of = _library()
    pmf = masses_of.create_pmf(dict(zip(points.tolist(), split.tolist(), strict=True)), grid, infinite, True)
    return library.PrivacyLossDistribution(pmf)


def _levels_apart(noise: Chain) -> tuple[Floats, Floats]:
    """Return the laws of what is released at neighbouring levels, as two arrays with a row for each pair of levels.

    If the noisy level leaves, one pair stands for all, for their laws are shifts of each other.
    """
    heights = noise.heights
    if not noise.decision_only:  # no mass of G lies beyond the heights
        masses = [(high - low) / ONE for low, high in pairwise(heights)]
        return np.array([[0.0, *masses]]), np.array([[*masses, 0.0]])
    odds = np.array([(height / ONE, (ONE - height) / ONE) for height in heights])
    return odds[:-1], odds[1:]


def _largest_losses(laws: tuple[Floats, Floats], grid: float) -> Any:
    """The distribution whose delta is the largest over all rows and both directions, at every epsilon on the grid."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(laws[0]) - np.log(laws[1])
    finite = np.append(losses[np.isfinite(losses)], 0.0) / grid
    most = math.ceil(np.abs(finite).max())
    # The delta of one law is straight between its losses; with several laws, another one can become the largest there.
    between = np.arange(-most, most, max(most // CORNERS, 1)) if len(losses) > 1 else np.array([0])
    corners = np.unique(
        np.concatenate([between, *(side(sign * finite) for side in (np.floor, np.ceil) for sign in (-1, 1))])
    )
    corners = np.append(corners, corners[-1] + 1).astype(np.int64)
    scales = np.exp(grid * corners) * (1 - TRACE)
    deltas = np.zeros(len(corners))
    for p, q in (laws, laws[::-1]):
        for i, scale in enumerate(scales[:-1]):
            deltas[i] = max(deltas[i], np.maximum(p - scale * q, 0.0).sum(axis=1).max())
        deltas[-1] = max(deltas[-1], np.where(q > 0, 0.0, p).sum(axis=1).max())  # no finite loss lies beyond
    return _connect_dots(grid, corners, np.minimum(deltas, 1.0))


def event_of(notion: Notion) -> Any:
    """The notion as an event of ``dp_accounting``, for that library's own accountants with their default settings.

    The event already accounts for what one record moves, whatever the neighbours are: it is two-sided geometric noise
    that hides a move of one for ``pure``, Gaussian noise for ``gdp``, and rho for ``zcdp``.
    """
    _library()
    from dp_accounting import dp_event  # an extra

    if isinstance(notion, Pure):
        return dp_event.DiscreteLaplaceDpEvent(rounded_up(notion.loss), 1)
    if isinstance(notion, Gdp):
        return dp_event.GaussianDpEvent(-rounded_up(-1 / notion.mu))
    if isinstance(notion, Zcdp):
        return dp_event.ZCDpEvent(rounded_up(notion.rho))
    raise InvalidInput(
        f"dp_accounting has no event for {notion}: it knows pure, gdp and zcdp. Take its privacy_loss_distribution()."
    )
