"""From a notion of stability to the noise that meets it: what the tight test adds."""

from __future__ import annotations

import math
from fractions import Fraction

from privatest.errors import InvalidInput
from privatest.privacy.gaussian import Gaussian
from privatest.privacy.noise import Noise
from privatest.privacy.notions import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp
from privatest.privacy.tulap import TruncatedTulap, Tulap
from privatest.privacy.uniform import Uniform
from privatest.rational import square_root

__all__ = ["canonical_noise"]


def canonical_noise(notion: Notion, width: int | Fraction) -> Noise:
    r"""The noise under which totals ``width`` lattice steps apart meet the notion, and statistics may be released.

    For pure, approx, tv and gdp it is the canonical one, :math:`F(x + width) = h(F(x))` (Awan and Vadhan 2023): no
    noise is tighter. For zcdp, renyi and kl it is Gaussian noise that meets the divergence.

    >>> canonical_noise(Tv(Fraction(1, 10)), 3), canonical_noise(Zcdp(Fraction(1, 2)), 3).guarantee(3)
    (Uniform(points=30), gdp(1))
    """
    width = math.ceil(width)
    if isinstance(notion, Pure) and notion.loss != math.inf:
        return Tulap(notion.loss, width)
    if isinstance(notion, Approx):
        if not notion.delta:
            return Tulap(notion.loss, width)
        return (
            TruncatedTulap(notion.loss, notion.delta, width) if notion.loss else Uniform.for_notion(notion.delta, width)
        )
    if isinstance(notion, Tv):
        return Uniform.for_notion(notion.eta, width)
    if isinstance(notion, Gdp):
        return Gaussian(notion.mu, width)
    if isinstance(notion, Zcdp | Renyi | Kl):
        budget = {"zcdp": 0, "renyi": 1, "kl": 0}[notion.name]
        half = notion.exact[budget] / (notion.order if isinstance(notion, Renyi) else 1)
        return Gaussian(square_root(2 * half, up=False), width)
    raise InvalidInput(f"{notion} has no noise: it is not private.")
