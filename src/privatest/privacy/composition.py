r"""What several private answers cost together, where that is one number that adds up.

==============  ==============  ================================================================
a budget in     adds up         because
==============  ==============  ================================================================
``pure``        epsilon         losses add up
``zcdp``        rho             Renyi divergences of every order add up (Bun and Steinke 2016)
``gdp``         mu squared      shifts of independent Gaussians add up (Dong, Roth and Su 2022)
``renyi``       the bound       divergences of that order add up (Mironov 2017)
``tv``, ``kl``  eta             total variation is subadditive; the chain rule of divergences
==============  ==============  ================================================================

Guarantees: the sums are exact rationals; they also hold where what is asked next, and at which price, is chosen after
looking at the answers before (Feldman and Zrnic 2021 for Renyi divergences, hence zcdp; Smith and Thakurta 2022 for
gdp). (epsilon, delta) is not among them: what it takes is composed as a whole, in ``ledger/account.py``; here it only
adds up, which holds too, and is loose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from privatest.errors import InvalidInput
from privatest.numbers import square_root
from privatest.privacy.notions import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp

__all__ = ["adds_up_within", "converted", "of_weight", "per_row", "replaced", "together", "weight"]


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


def converted(notion: Notion, kind: Notion) -> Notion | None:
    """The strongest guarantee of that kind (and order) that follows from a notion; None where none does.

    >>> converted(Pure(1), Gdp(1)), converted(Gdp(1), Pure(1)), converted(Pure(1), Approx(1, 1e-6))
    (gdp(1.23204), None, approx(1, 0))
    """
    if type(notion) is type(kind) and not isinstance(notion, Renyi):
        return notion
    if isinstance(kind, Approx) and isinstance(notion, Pure):
        return Approx(notion.loss, 0)
    choices = {"approx": {"delta": kind.exact[-1]}, "renyi": {"order": kind.exact[0]}}
    try:
        return notion.into(kind.name, **choices.get(kind.name, {}))
    except InvalidInput:
        return None


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


def replaced(notion: Notion) -> Notion | None:
    """What replacing a record meets where adding or removing one meets this; None where that is not of its kind.

    >>> replaced(Gdp(0.5)), replaced(Tv(0.6))
    (gdp(1), None)
    """
    if isinstance(notion, Pure):
        return Pure(2 * notion.loss)
    if isinstance(notion, Gdp):
        return Gdp(2 * notion.mu)
    if isinstance(notion, Zcdp):
        return Zcdp(4 * notion.rho)
    if isinstance(notion, Approx):
        return notion.grouped(2)
    return Tv(2 * notion.eta) if isinstance(notion, Tv) and 2 * notion.eta < 1 else None


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


def per_row(notion: Notion, rows: int) -> Notion:
    r"""What one row may cost where a person has up to so many of them, in one block of a stream or in several.

    Rows in one block move one noisy total further, rows in several move several: the first is never the cheaper one.

    ========================  ==============================================================================
    ``pure``, ``tv``          the k-th part: what neighbours of neighbours may differ by adds up
    ``gdp``                   mu/k: the shift of a Gaussian is k times as long
    ``zcdp, renyi, kl``       the k^2-th part: theirs is Gaussian noise, of which :math:`\mu^2` counts
    ``approx``                epsilon/k, and delta over :math:`1 + e^{\epsilon/k} + \dots` (k terms), rounded down
    ========================  ==============================================================================

    Argument: proof.md.

    >>> from privatest.privacy.notions import Zcdp
    >>> per_row(Pure(1), 4), per_row(Gdp(1), 4), per_row(Zcdp(0.5), 4), per_row(Approx(0, 0.1), 4)
    (pure(0.25), gdp(0.25), zcdp(0.03125), approx(0, 0.025))
    """
    if rows == 1:
        return notion
    if isinstance(notion, Approx):
        each = float(notion.loss) / rows
        terms = math.fsum(math.exp(min(i * each, 700.0)) for i in range(rows))
        delta = notion.delta / rows if not notion.loss else Fraction(f"{float(notion.delta) / terms * (1 - 1e-9):.12g}")
        return Approx(notion.loss / rows, delta)
    part = rows**2 if isinstance(notion, Zcdp | Renyi | Kl) else rows
    made: type[Any] = type(notion)  # each takes its own parameters
    found: Notion = made(*notion.exact[:-1], notion.exact[-1] / part)
    return found
