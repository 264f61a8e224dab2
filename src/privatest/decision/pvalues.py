"""How probable a noisy total is under each hypothesis; and the public coin between two cutoffs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privatest.documents import fraction_from_json
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.privacy import Source
from privatest.privacy import randomness as coins

if TYPE_CHECKING:
    from privatest.decision.design import Fits
    from privatest.decision.private_test import PrivateTest
    from privatest.laws import NoisyTotal

__all__ = ["Coin", "Cutoffs", "above", "below", "members_from_json", "pvalues"]

EXTREME = 0.001
"""A noisy total whose two-sided p-value is below this does not fit."""
FITTING: dict[tuple[bool, bool], Fits] = {
    (True, True): "both",
    (True, False): "null",
    (False, True): "alternative",
    (False, False): "neither",
}


@dataclass(frozen=True)
class Coin:
    """A public coin: with probability ``share``, exactly, the cutoff is this one. It looks at no data: it is free."""

    cutoff: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"The share {self.share} of a coin must lie strictly between 0 and 1.")

    def toss(self, source: Source) -> bool:
        """Whether the cutoff is this one."""
        return coins.bernoulli(self.share.numerator, self.share.denominator, source)

    def to_dict(self) -> dict[str, str]:
        """Both numbers, exactly."""
        return {"cutoff": str(self.cutoff), "share": str(self.share)}

    @classmethod
    def from_dict(cls, document: Any) -> Coin:
        """What :meth:`to_dict` wrote, and nothing else."""
        if not isinstance(document, dict) or set(document) != {"cutoff", "share"}:
            raise InvalidInput("A coin must be written as its cutoff and its share.")
        return cls(fraction_from_json(document["cutoff"]), fraction_from_json(document["share"]))


Cutoffs = list[tuple[Fraction, float]]
"""Cutoffs with their probabilities: one, or the two of a coin."""


def below(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """The largest probability of a noisy total up to the cutoff."""
    return max(math.fsum(share * total.cdf(cutoff) for cutoff, share in cutoffs) for total in totals)


def above(totals: Sequence[NoisyTotal], cutoffs: Cutoffs) -> float:
    """The largest probability of a noisy total beyond the cutoff."""
    return max(math.fsum(share * total.sf(cutoff) for cutoff, share in cutoffs) for total in totals)


def pvalues(test: PrivateTest, most: Fraction, least: Fraction) -> tuple[float, float, Fits]:
    """P-values under P and under Q, and what fits, where all that is known of a noisy total is least < it <= most.

    Tails that decide nothing are spared.
    """
    at_most: Cutoffs = [(most, 1.0)]
    at_least: Cutoffs = [(least, 1.0)]
    low, other = below(test._lowest, at_most), above(test._alternatives, at_least)
    if test.upper is not None:
        pvalue = min(2 * min(low, above(test._highest, at_least)), 1.0)
        other = max(other, below(test._uppers, at_most))
        return pvalue, other, FITTING[pvalue >= EXTREME, 2 * other >= EXTREME]
    # Of one law the other tail is at least what the first leaves of 1.
    fits_null = 2 * low >= EXTREME and (
        (test._highest is test._lowest and 2 * (1 - low) >= EXTREME) or 2 * above(test._highest, at_least) >= EXTREME
    )
    fits_alternative = 2 * other >= EXTREME and (
        (test._outer_alternatives is test._alternatives and 2 * (1 - other) >= EXTREME)
        or 2 * below(test._outer_alternatives, at_most) >= EXTREME
    )
    return low, other, FITTING[fits_null, fits_alternative]


def members_from_json(value: Any) -> tuple[str, str] | None:
    """The worst members of both sets, of a document that names them."""
    if value is None:
        return None
    first, second = value
    if not isinstance(first, str) or not isinstance(second, str):
        raise InvalidDocument(f"worstmembers={shown(value)} must be two texts.")
    return first, second
