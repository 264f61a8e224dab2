"""privatest: did this data come from P or from Q, under differential privacy, with as few records as possible.

>>> import privatest as pt
>>> test = pt.design("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1, n=100)
>>> test.epsilon, test.n
(1.0, 100)

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.lazy_names import homes, loader

if TYPE_CHECKING:
    from privatest import data as data
    from privatest import errors as errors
    from privatest import notions as notions
    from privatest import results as results
    from privatest import theory as theory
    from privatest.bounds.lower_bound import lower_bound as lower_bound
    from privatest.bounds.optimum import optimum as optimum
    from privatest.changepoint import block_test as block_test
    from privatest.changepoint import design_change as design_change
    from privatest.changepoint import detect_change as detect_change
    from privatest.decision.design import decide as decide
    from privatest.decision.design import design as design
    from privatest.estimates import compare_groups as compare_groups
    from privatest.estimates import design_estimate as design_estimate
    from privatest.estimates import design_groups as design_groups
    from privatest.estimates import design_table as design_table
    from privatest.estimates import tabulate as tabulate
    from privatest.estimates.estimate import estimate as estimate
    from privatest.estimates.published_table import table as table
    from privatest.fit import design_fit as design_fit
    from privatest.fit import goodness_of_fit as goodness_of_fit
    from privatest.hypotheses import any_of as any_of
    from privatest.hypotheses import contaminated as contaminated
    from privatest.hypotheses import density as density
    from privatest.hypotheses import mixture as mixture
    from privatest.hypotheses import near as near
    from privatest.ledger import Ledger as Ledger
    from privatest.notions import approx as approx
    from privatest.notions import gdp as gdp
    from privatest.notions import kl as kl
    from privatest.notions import pure as pure
    from privatest.notions import renyi as renyi
    from privatest.notions import tv as tv
    from privatest.notions import zcdp as zcdp
    from privatest.power import compare as compare
    from privatest.power import min_epsilon as min_epsilon
    from privatest.power import power_curve as power_curve
    from privatest.power import sample_size as sample_size
    from privatest.power.data_check import check as check
    from privatest.power.plan import plan as plan
    from privatest.privacy.adaptive_reuse import adaptive_level as adaptive_level
    from privatest.privacy.verification import verify_privacy as verify_privacy
    from privatest.progress_events import progress as progress
    from privatest.streams import Monitor as Monitor
    from privatest.streams import Sequential as Sequential
    from privatest.theory import decompose as decompose
    from privatest.theory import sample_complexity as sample_complexity

__version__ = "0.1.0"

_HOMES = homes(
    {
        "": "data errors notions results theory",  # modules: pt.data.read_as, pt.errors.BudgetExceeded
        "bounds": "lower_bound optimum",
        "changepoint": "block_test design_change detect_change",
        "decision.design": "decide design",
        "estimates": "compare_groups design_estimate design_groups design_table tabulate",
        "estimates.estimate": "estimate",
        "estimates.published_table": "table",
        "fit": "design_fit goodness_of_fit",
        "hypotheses": "any_of contaminated density mixture near",
        "ledger": "Ledger",
        "power": "compare min_epsilon power_curve sample_size",
        "power.data_check": "check",
        "power.plan": "plan",
        "privacy": "adaptive_level",
        "privacy.verification": "verify_privacy",
        "progress_events": "progress",
        "streams": "Monitor Sequential",
        "theory": "decompose sample_complexity",
    }
)
_NOTIONS = homes({"notions": "approx gdp kl pure renyi tv zcdp"})
"""``pt.zcdp(0.5)`` is short for ``pt.notions.zcdp(0.5)``; a listing of the package shows ``notions`` alone."""

__all__ = ["__version__", *sorted(_HOMES)]

__getattr__ = loader(__name__, _HOMES | _NOTIONS)


def __dir__() -> list[str]:
    return list(__all__)
