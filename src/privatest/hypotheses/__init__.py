"""Any two distributions of one record, their log-likelihood ratio and its law."""

from __future__ import annotations

from privatest.hypotheses.continuous_pair import ContinuousPair
from privatest.hypotheses.convert import (
    any_of,
    as_distribution,
    contaminated,
    make_pair,
    median,
    median_above,
    median_below,
    mixture,
    near,
    parse,
)
from privatest.hypotheses.density import density
from privatest.hypotheses.discrete_pair import DiscretePair, Integers
from privatest.hypotheses.distribution import Distribution, Labels, Pair, Reals

__all__ = [
    "ContinuousPair",
    "DiscretePair",
    "Distribution",
    "Integers",
    "Labels",
    "Pair",
    "Reals",
    "any_of",
    "as_distribution",
    "contaminated",
    "density",
    "make_pair",
    "median",
    "median_above",
    "median_below",
    "mixture",
    "near",
    "parse",
]
