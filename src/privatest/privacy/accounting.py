r"""Privacy-loss distributions, by ``dp_accounting``: the one module that knows it.

A notion that is a trade-off function has a pair of distributions that no two neighbours exceed (its dominating pair):
randomised response for ``pure`` and ``approx``, two Gaussians for ``gdp``. Their privacy losses add up as independent
numbers do, which is the tightest that can be said of many answers. Everything is rounded to the safe side: the losses
lie on a grid, and the hockey-stick curve at the grid's points is exact ("connect the dots", Doroshenko et al. 2022).

Guarantees: :func:`composed_epsilon` is never less than what the answers cost together, provided that their notions were
chosen without looking at the answers. Where the next price depends on the answers before, budgets in ``pure``,
``zcdp``, ``gdp`` and ``renyi`` hold (see ``composition.py``); for (epsilon, delta) no theorem is as tight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from privatest.errors import InvalidInput, MissingExtra
from privatest.numbers import rounded_up
from privatest.privacy.composition import converted, of_weight, weight
from privatest.privacy.noise import Noise
from privatest.privacy.notions import Approx, Gdp, Notion, Pure, Tv, Zcdp
from privatest.privacy.tulap import Tulap

__all__ = ["composed_epsilon", "event_of", "loss_distribution", "noise_distribution"]

GRID = 1e-4
"""Losses are rounded to multiples of it."""
LEAST_DELTA = 1e-10
"""Below it the rounding errors of a Fourier transform are no longer small beside delta."""
ROUNDING = 1e-12
"""What such a transform may be off by, in delta, and more."""
MOST_ATOMS = 400_000
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
        return library.from_gaussian_mechanism(float(1 / notion.mu), value_discretization_interval=grid)
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
    """The privacy-loss distribution of a noisy total that one record moves by ``move`` steps, by the noise's exact law.

    The noise of this package is symmetric and its ratios are monotone, so the largest move is the worst one, and both
    directions lose alike.
    """
    library = _library().privacy_loss_distribution
    if isinstance(noise, Tulap):  # over whole widths, which are the worst, the uniform part cancels
        noise, move = Tulap(noise.epsilon, 1), -(-move // noise.width)
    reach = move
    while float(noise.logsf(noise.offset + reach)) > -80:
        reach *= 2
    if 2 * reach + move > MOST_ATOMS:
        raise InvalidInput(
            f"The noise has more than {MOST_ATOMS:,} values that matter: its exact privacy-loss distribution is too "
            "large. Take that of its notion: privatest.privacy.accounting.loss_distribution(test.privacy)."
        )
    values = np.arange(-reach, reach + move + 1)
    offset = float(noise.offset)
    lower, upper = (noise.logpmf(values - shift + offset) for shift in (0, move))
    laws: list[dict[Any, float]] = [dict(zip(values.tolist(), law.tolist(), strict=True)) for law in (lower, upper)]
    laws[1]["beyond"] = -79.0  # both tails, counted as lost
    return library.from_two_probability_mass_functions(
        *laws, value_discretization_interval=grid, log_mass_truncation_bound=-70.0
    )


def event_of(notion: Notion) -> Any:
    """The notion as an event of ``dp_accounting``, for its own accountants, as they are made by default.

    What a record moves is in the event already, whatever the neighbours are: a two-sided geometric noise that hides a
    move of one for ``pure``, a Gaussian one for ``gdp``, and rho for ``zcdp``.
    """
    _library()
    # An extra.
    from dp_accounting import dp_event

    if isinstance(notion, Pure):
        return dp_event.DiscreteLaplaceDpEvent(notion.epsilon, 1)
    if isinstance(notion, Gdp):
        return dp_event.GaussianDpEvent(float(1 / notion.mu))
    if isinstance(notion, Zcdp):
        return dp_event.ZCDpEvent(float(notion.rho))
    raise InvalidInput(
        f"dp_accounting has no event for {notion}: it knows pure, gdp and zcdp. Take its privacy_loss_distribution()."
    )
