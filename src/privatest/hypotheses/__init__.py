"""Hypotheses about one record: distributions, sets of them, and pairs with their log-likelihood ratio."""

from __future__ import annotations

from privatest.hypotheses.density import density
from privatest.hypotheses.distribution import Distribution, Hypothesis, Labels, Reals, WholeNumbers
from privatest.hypotheses.pair import ContinuousPair, DiscretePair, Pair
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
    "Hypothesis",
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
