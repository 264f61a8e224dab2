"""What several private answers, or several rows of one person, cost together.

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

A budget in (epsilon, delta) is composed as a whole, by the privacy-loss distributions of ``dp_accounting``, which no
other module knows. A notion that is a trade-off function has a pair of distributions that no two neighbours exceed (its
dominating pair): randomised response for ``pure`` and ``approx``, two Gaussians for ``gdp``. Their privacy losses add
up as independent numbers do, which is the tightest that can be said of many answers. Everything is rounded to the safe
side: the losses lie on a grid, and the hockey-stick curve at the grid's points is exact ("connect the dots", Doroshenko
et al. 2022).

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
from privatest.privacy.chain import ONE, Chain
from privatest.privacy.noise import Noise
from privatest.privacy.notions import Approx, Gdp, Notion, Pure, Tv, Zcdp, converted
from privatest.privacy.tulap import Stair, Tulap


def weight(notion: Notion) -> Fraction:
    """The number of a notion that adds up: its last parameter, or the square of mu.

    >>> from privatest.privacy.notions import Zcdp
    >>> weight(Zcdp(0.5)), weight(Gdp(0.5))
    (Fraction(1, 2), Fraction(1, 4))
    """
    if isinstance(notion, Approx):
        raise InvalidInput(f"{notion} has no one number that adds up.")
    last: Fraction = notion.exact[-1]
    return last**2 if isinstance(notion, Gdp) else last


def of_weight(kind: Notion, amount: Fraction, *, up: bool = True) -> Notion:
    """The notion of a kind (and order) whose weight that is; the root of gdp is rounded up, or down."""
    if isinstance(kind, Gdp):
        return Gdp(square_root(amount, up=up))
    if isinstance(kind, Tv) and amount >= 1:
        raise InvalidInput(f"Stability in total variation adds up to {float(amount):g}, and 1 says nothing at all.")
    made: type[Any] = type(kind)  # each takes its own parameters
    found: Notion = made(*kind.exact[:-1], amount)
    return found


def together(price: Fraction | Notion, epsilon: Fraction | int) -> Fraction | Notion:
    """What an answer at a price and one more at a pure epsilon cost together, in the notion of the first.

    >>> from privatest.privacy.notions import Zcdp
    >>> together(Fraction(1, 2), Fraction(1, 4)), together(Zcdp(0.5), Fraction(1)), together(Approx(1, 1e-6), 1)
    (Fraction(3, 4), zcdp(1), approx(2, 1e-06))
    """
    if not isinstance(price, Notion):
        return price + epsilon
    if not epsilon:
        return price
    if isinstance(price, Approx):
        return Approx(price.loss + epsilon, price.delta)
    more = converted(Pure(epsilon), price)
    assert more is not None  # pure converts into everything
    return of_weight(price, weight(price) + weight(more))


def adds_up_within(parts: Iterable[Notion | None], whole: Notion) -> bool:
    """Whether answers that meet these notions, one after the other, meet the whole together: never by rounding.

    None is what meets nothing. Each is converted into the kind of the whole; what does not convert is not within it.

    >>> from privatest.privacy.notions import Zcdp
    >>> adds_up_within([Gdp(0.6), Gdp(0.8)], Gdp(1)), adds_up_within([Gdp(0.6), Gdp(0.8)], Zcdp(0.499))
    (True, False)
    """
    found = [None if part is None else _adding(part, whole) for part in parts]
    amounts = [(weight(one),) if not isinstance(one, Approx) else one.exact for one in found if one is not None]
    most = whole.exact if isinstance(whole, Approx) else (weight(whole),)
    return len(amounts) == len(found) and all(sum(one) <= most[i] for i, one in enumerate(zip(*amounts, strict=True)))


def _adding(part: Notion, whole: Notion) -> Notion | None:
    """A part in the kind of the whole, so that it adds up there: of tv and approx(0, eta) not more than eta."""
    return Approx(0, part.eta) if isinstance(part, Tv) and isinstance(whole, Approx) else converted(part, whole)


GRID = 1e-4
"""Losses are rounded to multiples of it."""
LEAST_DELTA = 1e-10
"""Below it the rounding errors of a Fourier transform are no longer small beside delta."""
ROUNDING = 1e-12
"""What such a transform may be off by, in delta, and more."""
TRACE = 1e-13
"""What a loss is off by where it is the difference of two logarithms, and more."""
MOST_ATOMS = 400_000
CORNERS = 2_000
"""Positive epsilons at which the largest delta of several laws is exact; in between it is a little more."""
SIDES = (np.floor, np.ceil)
Counts = Mapping[Notion, int]


def _library() -> Any:
    try:
        # An extra, and slow to import: only where a budget or a question needs it.
        from dp_accounting import pld
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "dp_accounting":
            raise
        raise MissingExtra.of("Composing privacy losses needs dp-accounting.", "accounting") from None
    return pld


def loss_distribution(notion: Notion, grid: float = GRID) -> Any:
    """The privacy-loss distribution of the notion's dominating pair, rounded to the safe side.

    Returns:
        ``dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution``.
    """
    library = _library().privacy_loss_distribution
    if isinstance(notion, Gdp):
        return library.from_gaussian_mechanism(-rounded_up(-1 / notion.mu), value_discretization_interval=grid)
    if isinstance(notion, Tv):
        notion = Approx(0, notion.eta)
    if not isinstance(notion, Pure | Approx):
        raise InvalidInput(
            f"{notion} has no one privacy-loss distribution: it bounds divergences. Convert it: "
            "into('approx', delta=...)."
        )
    # An extra.
    from dp_accounting.pld import pld_pmf

    loss = float(notion.loss) * (1 + 1e-15)
    delta = float(notion.exact[1]) if isinstance(notion, Approx) else 0.0
    corners = sorted({side(end / grid) for end in (-loss, loss) for side in (math.floor, math.ceil)})
    excess = [delta + (1 - delta) * _excess(loss, corner * grid) for corner in corners]
    excess[-1] = delta  # no finite loss lies beyond the last corner
    return library.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(grid, corners, excess))


def _excess(loss: float, epsilon: float) -> float:
    """The hockey-stick divergence of randomised response at that epsilon."""
    if epsilon <= -loss:
        return -math.expm1(epsilon)
    return max(-math.expm1(epsilon - loss), 0.0) / (1 + math.exp(-loss))


@lru_cache(maxsize=256)
def _repeated(notion: Notion, times: int) -> Any:
    return loss_distribution(notion).self_compose(times)


def composed_epsilon(counts: Counts, delta: Fraction) -> float:
    """An epsilon such that all the answers together are (epsilon, delta)-private; infinite where there is none.

    Args:
        counts: how many answers there are of each notion.

    Guarantees: at most what adding up epsilons and deltas gives.

    >>> composed_epsilon({}, Fraction(1, 10**6))
    0.0
    """
    if not counts:
        return 0.0
    return min(_addedrounded_up(counts, delta), _concentrated(counts, delta), _convolved(counts, delta))


def _addedrounded_up(counts: Counts, delta: Fraction) -> float:
    """Basic composition, exactly, where no delta must be chosen."""
    if not all(isinstance(notion, Pure | Approx | Tv) for notion in counts):
        return math.inf
    each = {notion: Approx(0, notion.eta) if isinstance(notion, Tv) else notion for notion in counts}
    lost = sum(
        (times * each[notion].exact[1] for notion, times in counts.items() if isinstance(each[notion], Approx)),
        Fraction(0),
    )
    total = sum((times * each[notion].exact[0] for notion, times in counts.items()), Fraction(0))
    return rounded_up(total) if lost <= delta else math.inf


def _concentrated(counts: Counts, delta: Fraction) -> float:
    """Everything as ``zcdp``, whose rho adds up, and that as (epsilon, delta); not where the losses say more."""
    if delta >= LEAST_DELTA and all(notion.tradeoff for notion in counts):
        return math.inf
    each = {notion: converted(notion, Zcdp(1)) for notion in counts}
    rho = Fraction(0)
    for notion, times in counts.items():
        found = each[notion]
        if found is None:
            return math.inf
        rho += times * weight(found)
    whole = converted(Zcdp(rho), Approx(1, delta)) if delta else None
    return math.inf if whole is None else rounded_up(whole.exact[0])


def _convolved(counts: Counts, delta: Fraction) -> float:
    """The losses of the dominating pairs, added as independent numbers."""
    if delta < LEAST_DELTA:
        return math.inf
    sums: dict[Notion, Fraction] = {}  # of what bounds divergences, by kind and order: first added up, then converted
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
        found = converted(of_weight(kind, total), Approx(1, delta))
        return math.inf if found is None else rounded_up(found.exact[0])
    for kind, total in sums.items():
        share = converted(of_weight(kind, total), Approx(1, Fraction(goal) / (2 * len(sums))))
        if share is None:
            return math.inf
        parts[share] = parts.get(share, 0) + 1
    whole = None
    for notion in sorted(parts, key=lambda one: one.text):
        one = _repeated(notion, parts[notion])
        whole = one if whole is None else whole.compose(one)
    assert whole is not None
    return float(whole.get_epsilon_for_delta(goal)) * (1 + 1e-9)


def noise_distribution(noise: Noise, move: int, grid: float = GRID) -> Any:
    """The privacy-loss distribution of what leaves where one record moves a total by ``move`` steps, by exact laws.

    What leaves is the noisy total, its level, or the decision alone, as the noise allows. Where the law of a noisy
    total has more than ``MOST_ATOMS`` values it is that of the pair that dominates what the noise guarantees.

    Guarantees: at every epsilon the delta is at least that of any two neighbours, in both directions, and it stays so
    however many are composed, whichever way a record moves each of them. The noise of a total is symmetric and its
    ratios are monotone, so the largest move is the worst one, and both directions lose alike. A chain is not symmetric:
    its distribution has the larger delta of the two at every epsilon.
    """
    if isinstance(noise, Chain):
        return _largest_losses(_levels_apart(noise), grid)
    if isinstance(noise, Tulap | Stair):  # over whole widths, which are the worst, the uniform part cancels
        noise, move = Tulap(noise.epsilon, 1), -(-move // noise.width)
    reach = move
    while float(noise.logsf(noise.offset + reach)) > -80:
        reach *= 2
    if 2 * reach + move > MOST_ATOMS:
        found = noise.guarantee(move)
        if found is None:
            raise InvalidInput(f"{noise.describe()} does not hide totals {move} apart. Use wider noise.")
        return loss_distribution(found, grid)
    values = np.arange(-reach, reach + move + 1)
    lower, upper = (noise.logpmf(values - shift + float(noise.offset)) for shift in (0, move))
    apart = np.isneginf(lower)
    losses = upper[~apart] - lower[~apart] + TRACE
    losses, masses = losses[np.isfinite(losses)], np.exp(upper[~apart][np.isfinite(losses)])
    # A loss between two points of the grid becomes both, so that neither law's mass is lost: "connect the dots".
    below = np.floor(losses / grid)
    shares = np.expm1(grid * (below + 1) - losses) / math.expm1(grid)
    points, place = np.unique(np.concatenate([below, below + 1]).astype(np.int64), return_inverse=True)
    split = np.bincount(place, np.concatenate([masses * shares, masses * (1 - shares)]))
    lost = float(np.exp(upper[apart]).sum()) + math.exp(-79)  # both tails, counted as lost
    # An extra.
    from dp_accounting.pld import pld_pmf

    pmf = pld_pmf.create_pmf(dict(zip(points.tolist(), split.tolist(), strict=True)), grid, lost, True)
    return _library().privacy_loss_distribution.PrivacyLossDistribution(pmf)


def _levels_apart(noise: Chain) -> tuple[Floats, Floats]:
    """The laws of what leaves at two neighbouring levels, in rows; where only the decision does, a row for each two."""
    heights = noise.heights
    if not noise.decision_only:  # the level plus G, of which nothing lies beyond the heights
        masses = [(high - low) / ONE for low, high in pairwise(heights)]
        return np.array([[0.0, *masses]]), np.array([[*masses, 0.0]])
    odds = np.array([(height / ONE, (ONE - height) / ONE) for height in heights])
    return odds[:-1], odds[1:]


def _largest_losses(laws: tuple[Floats, Floats], grid: float) -> Any:
    """The distribution whose delta is the largest of all rows' and both directions', at every epsilon on the grid."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(laws[0]) - np.log(laws[1])
    finite = np.append(losses[np.isfinite(losses)], 0.0) / grid
    most = math.ceil(np.abs(finite).max())
    # Of one law delta is straight between the losses; of several, another one's becomes the largest anywhere.
    between = np.arange(-most, most, max(most // CORNERS, 1)) if len(losses) > 1 else np.array([0])
    corners = np.unique(np.concatenate([between, *(side(sign * finite) for side in SIDES for sign in (-1, 1))]))
    corners = np.append(corners, corners[-1] + 1).astype(np.int64)
    scales = np.exp(grid * corners) * (1 - TRACE)
    excess = np.zeros(len(corners))
    for p, q in (laws, laws[::-1]):
        for i, scale in enumerate(scales[:-1]):
            excess[i] = max(excess[i], np.maximum(p - scale * q, 0.0).sum(axis=1).max())
        excess[-1] = max(excess[-1], np.where(q > 0, 0.0, p).sum(axis=1).max())  # no finite loss lies beyond
    # An extra.
    from dp_accounting.pld import pld_pmf

    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(grid, corners, np.minimum(excess, 1.0))
    return _library().privacy_loss_distribution.PrivacyLossDistribution(pmf)


def event_of(notion: Notion) -> Any:
    """The notion as an event of ``dp_accounting``, for its own accountants, as they are made by default.

    What a record moves is in the event already, whatever the neighbours are: a two-sided geometric noise that hides a
    move of one for ``pure``, a Gaussian one for ``gdp``, and rho for ``zcdp``.
    """
    _library()
    # An extra.
    from dp_accounting import dp_event

    if isinstance(notion, Pure):
        return dp_event.DiscreteLaplaceDpEvent(rounded_up(notion.loss), 1)
    if isinstance(notion, Gdp):
        return dp_event.GaussianDpEvent(-rounded_up(-1 / notion.mu))
    if isinstance(notion, Zcdp):
        return dp_event.ZCDpEvent(rounded_up(notion.rho))
    raise InvalidInput(
        f"dp_accounting has no event for {notion}: it knows pure, gdp and zcdp. Take its privacy_loss_distribution()."
    )
