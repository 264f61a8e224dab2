"""From a notion of stability to the noise that meets it: what the tight test adds."""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.errors import InvalidInput
from privatest.privacy.gaussian import Gaussian
from privatest.privacy.noise import Neighbourhood, Noise
from privatest.privacy.notions import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp
from privatest.privacy.tulap import TruncatedTulap, Tulap
from privatest.privacy.uniform import Uniform
from privatest.rational import square_root

__all__ = ["canonical_noise", "counts_guarantee", "counts_noise"]


def canonical_noise(notion: Notion, width: int | Fraction, *, whole: bool = False) -> Noise:
    r"""The noise under which totals ``width`` lattice steps apart meet the notion, and statistics may be released.

    For pure, approx, tv and gdp it is the canonical one, :math:`F(x + width) = h(F(x))` (Awan and Vadhan 2023): no
    noise is tighter. For zcdp, renyi and kl it is Gaussian noise that meets the divergence. ``whole``: on the integers,
    with a value more where there would be half integers.

    >>> canonical_noise(Tv(Fraction(1, 10)), 3), canonical_noise(Zcdp(Fraction(1, 2)), 3).guarantee(3)
    (Uniform(points=30), gdp(1))
    """
    width = math.ceil(width)
    blocks = width | 1 if whole else width
    if (isinstance(notion, Pure) and notion.loss != math.inf) or (isinstance(notion, Approx) and not notion.delta):
        return Tulap(notion.loss, blocks)
    if isinstance(notion, Approx) and notion.loss:
        return TruncatedTulap(notion.loss, notion.delta, blocks)
    if isinstance(notion, Approx | Tv):
        points = math.ceil(width / notion.exact[-1])
        return Uniform(points | 1 if whole else points)
    if isinstance(notion, Gdp):
        return Gaussian(notion.mu, width)
    if isinstance(notion, Zcdp | Renyi | Kl):
        budget = {"zcdp": 0, "renyi": 1, "kl": 0}[notion.name]
        half = notion.exact[budget] / (notion.order if isinstance(notion, Renyi) else 1)
        return Gaussian(square_root(2 * half, up=False), width)
    raise InvalidInput(f"{notion} has no noise: it is not private.")


def counts_noise(notion: Notion, around: Neighbourhood) -> Noise:
    """The noise on each of many counts under which all of them together meet the notion.

    A person who is replaced takes up to ``rows`` records out of some counts and puts as many into others; these may all
    be different ones. What hides that adds up as :func:`counts_guarantee` says.

    >>> counts_noise(Pure(1), Neighbourhood()), counts_noise(Zcdp(1), Neighbourhood("add-remove"))
    (Tulap(epsilon=Fraction(1, 2), width=1), Gaussian(mu=Fraction(1414213562373095, 1000000000000000), width=1))
    """
    side, rows = notion.share(_sides(around)), around.rows
    if isinstance(side, Pure):
        return Tulap(side.loss / rows, 1)
    if not isinstance(side, Approx) or not side.loss:
        return canonical_noise(side, rows)
    if not side.delta:
        return Tulap(side.loss / rows, 1)
    # delta grows with the rows of one person; a little less than what just fits does for sure.
    growth = sum(math.exp(i * float(side.loss) / rows) for i in range(rows))
    share = side.delta if rows == 1 else side.delta * Fraction(1 - 3e-9) / Fraction(growth)
    return TruncatedTulap(side.loss / rows, share, 1)


def counts_guarantee(noise: Noise, around: Neighbourhood) -> list[Notion | None]:
    """What adds up to the guarantee of many counts, each with this noise: the rows taken out, and those put in."""
    return [noise.scattered(around.rows)] * _sides(around)


def _sides(around: Neighbourhood) -> int:
    return 2 if around.kind == "replace" else 1
