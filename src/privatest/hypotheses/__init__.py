"""Any two distributions of one record, their log-likelihood ratio and its law."""

from __future__ import annotations

from privatest.hypotheses.density import density
from privatest.hypotheses.distribution import Distribution, Labels, Pair, Reals
from privatest.hypotheses.pair import ContinuousPair, DiscretePair, WholeNumbers
from privatest.hypotheses.parse import (
    any_of,
    as_distribution,
    contaminated,
    make_pair,
    mixture,
    near,
    parse,
)

__all__ = [
    "ContinuousPair",
    "DiscretePair",
    "Distribution",
    "Labels",
    "Pair",
    "Reals",
    "WholeNumbers",
    "any_of",
    "as_distribution",
    "contaminated",
    "density",
    "make_pair",
    "mixture",
    "near",
    "parse",
]
