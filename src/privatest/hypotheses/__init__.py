"""Hypotheses about one record: distributions, sets of them, and pairs with their log-likelihood ratio."""

from privatest.hypotheses.density import density as density
from privatest.hypotheses.distribution import Distribution as Distribution
from privatest.hypotheses.distribution import Hypothesis as Hypothesis
from privatest.hypotheses.distribution import Labels as Labels
from privatest.hypotheses.distribution import Reals as Reals
from privatest.hypotheses.distribution import WholeNumbers as WholeNumbers
from privatest.hypotheses.pair import ContinuousPair as ContinuousPair
from privatest.hypotheses.pair import DiscretePair as DiscretePair
from privatest.hypotheses.pair import Pair as Pair
from privatest.hypotheses.parse import any_of as any_of
from privatest.hypotheses.parse import as_distribution as as_distribution
from privatest.hypotheses.parse import contaminated as contaminated
from privatest.hypotheses.parse import make_pair as make_pair
from privatest.hypotheses.parse import mixture as mixture
from privatest.hypotheses.parse import near as near
from privatest.hypotheses.parse import parse as parse
