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

A budget in (epsilon, delta) is composed as a whole, by privacy-loss distributions (``losses.py``): they add up as
independent numbers do, which is the tightest that can be said of many answers.

Guarantees: :func:`composed_epsilon` is never less than what the answers cost together, provided that their notions were
chosen without looking at the answers. Where the next price depends on the answers before, use a budget in ``pure``,
``zcdp``, ``gdp`` or ``renyi``: for (epsilon, delta) no theorem is as tight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from privatest.errors import InvalidInput
from privatest.numbers import rounded_up, square_root
from privatest.privacy.notions import Approx, Gdp, Notion, Pure, Tv, Zcdp, converted, with_last


def weight(notion: Notion) -> Fraction:
    """The number of a notion that adds up: its last parameter, or the square of mu.

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
    """What an answer at ``price`` and another one at a pure epsilon cost together, in the notion of ``price``.

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
    """The numbers of a notion that add up: epsilon and delta of ``approx``, the weight of any other."""
    return notion.exact if isinstance(notion, Approx) else (weight(notion),)


LEAST_DELTA = 1e-10
"""Below this, the rounding errors of a Fourier transform are not small beside delta."""
ROUNDING = 1e-12
"""An upper bound on the error of such a transform, in delta."""
Counts = Mapping[Notion, int]
"""How many answers there are under each notion."""


@lru_cache(maxsize=256)
def _repeated(notion: Notion, times: int) -> Any:
    """The privacy-loss distribution of ``times`` answers that meet the notion."""
    from privatest.privacy.losses import loss_distribution  # start-up: few budgets need it

    return loss_distribution(notion).self_compose(times)


def composed_epsilon(counts: Counts, delta: Fraction) -> float:
    """An epsilon such that all the answers together are (epsilon, delta)-private; infinite if there is none.

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
    """The sum of the epsilons if the sum of the deltas is at most ``delta``; exact."""
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
    """Everything as ``zcdp``, whose rho adds up, converted to (epsilon, delta)."""
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
    """The epsilon that follows from a notion at ``delta``; infinite if none does."""
    whole = converted(notion, Approx(1, delta))
    return math.inf if whole is None else rounded_up(whole.exact[0])


def _convolved(counts: Counts, delta: Fraction) -> float:
    """The losses of the dominating pairs, added up as independent numbers."""
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
