"""Any two distributions of one record, their log-likelihood ratio and its law."""

from __future__ import annotations

from privatest.pairs.continuous_pair import ContinuousPair
from privatest.pairs.convert import as_distribution, make_pair
from privatest.pairs.density import density
from privatest.pairs.discrete_pair import DiscretePair
from privatest.pairs.distribution import Distribution, Labels
from privatest.pairs.integers import Integers
from privatest.pairs.mixture import mixture
from privatest.pairs.pair import Pair
from privatest.pairs.reals import Reals
from privatest.pairs.text import parse

__all__ = [
    "ContinuousPair",
    "DiscretePair",
    "Distribution",
    "Integers",
    "Labels",
    "Pair",
    "Reals",
    "as_distribution",
    "density",
    "make_pair",
    "mixture",
    "parse",
]
