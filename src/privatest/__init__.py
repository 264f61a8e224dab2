"""privatest: did this data come from P or from Q, under differential privacy, with as few records as possible.

>>> import privatest as pt
>>> test = pt.design("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1, n=100)
>>> test.epsilon, test.n
(1.0, 100)

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privatest import data as data
    from privatest import errors as errors
    from privatest import notions as notions
    from privatest import theory as theory
    from privatest.bounds import HistogramTest as HistogramTest
    from privatest.bounds import Optimum as Optimum
    from privatest.bounds import optimum_sample_size as optimum_sample_size
    from privatest.bounds.lower_bound import lower_bound as lower_bound
    from privatest.bounds.optimum import optimum as optimum
    from privatest.changepoint import ChangePlan as ChangePlan
    from privatest.changepoint import ChangePoint as ChangePoint
    from privatest.changepoint import block_test as block_test
    from privatest.changepoint import design_change as design_change
    from privatest.changepoint import detect_change as detect_change
    from privatest.decision import PrivateTest as PrivateTest
    from privatest.decision import Release as Release
    from privatest.decision.design import decide as decide
    from privatest.decision.design import design as design
    from privatest.engines import column_names as column_names
    from privatest.engines import count_records as count_records
    from privatest.engines import open_once as open_once
    from privatest.engines import read_as as read_as
    from privatest.engines import read_lines as read_lines
    from privatest.estimates import EstimateDesign as EstimateDesign
    from privatest.estimates import EstimateRelease as EstimateRelease
    from privatest.estimates import GroupsDesign as GroupsDesign
    from privatest.estimates import GroupsRelease as GroupsRelease
    from privatest.estimates import compare_groups as compare_groups
    from privatest.estimates import compare_noised as compare_noised
    from privatest.estimates import design_estimate as design_estimate
    from privatest.estimates import design_groups as design_groups
    from privatest.estimates.estimate import estimate as estimate
    from privatest.fit import FitRelease as FitRelease
    from privatest.fit import FitTest as FitTest
    from privatest.fit import design_fit as design_fit
    from privatest.fit import fit_sample_size as fit_sample_size
    from privatest.fit import goodness_of_fit as goodness_of_fit
    from privatest.hypotheses import any_of as any_of
    from privatest.hypotheses import contaminated as contaminated
    from privatest.hypotheses import density as density
    from privatest.hypotheses import median as median
    from privatest.hypotheses import median_above as median_above
    from privatest.hypotheses import median_below as median_below
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
    from privatest.power import Comparison as Comparison
    from privatest.power import NotionComparison as NotionComparison
    from privatest.power import Plan as Plan
    from privatest.power import PowerCurve as PowerCurve
    from privatest.power import compare as compare
    from privatest.power import compare_notions as compare_notions
    from privatest.power import min_epsilon as min_epsilon
    from privatest.power import power_curve as power_curve
    from privatest.power import sample_size as sample_size
    from privatest.power.check import check as check
    from privatest.power.plan import plan as plan
    from privatest.privacy.adaptive import AdaptiveLevel as AdaptiveLevel
    from privatest.privacy.adaptive import adaptive_level as adaptive_level
    from privatest.privacy.notions import as_notion as as_notion
    from privatest.privacy.verification import Verification as Verification
    from privatest.privacy.verification import verify_privacy as verify_privacy
    from privatest.progress_events import progress as progress
    from privatest.streams import Alarm as Alarm
    from privatest.streams import Monitor as Monitor
    from privatest.streams import Sequential as Sequential
    from privatest.streams import SequentialPlan as SequentialPlan
    from privatest.streams import Verdict as Verdict
    from privatest.streams import combine_evalues as combine_evalues
    from privatest.streams import evalue_discoveries as evalue_discoveries
    from privatest.theory import Decomposition as Decomposition
    from privatest.theory import SampleComplexity as SampleComplexity
    from privatest.theory import decompose as decompose
    from privatest.theory import sample_complexity as sample_complexity

__version__ = "0.1.0"

_HOMES = {
    "Alarm": "streams",
    "ChangePlan": "changepoint",
    "ChangePoint": "changepoint",
    "Comparison": "power",
    "NotionComparison": "power",
    "Decomposition": "theory",
    "EstimateDesign": "estimates",
    "EstimateRelease": "estimates",
    "GroupsDesign": "estimates",
    "GroupsRelease": "estimates",
    "compare_groups": "estimates",
    "compare_noised": "estimates",
    "design_estimate": "estimates",
    "design_groups": "estimates",
    "estimate": "estimates.estimate",
    "FitRelease": "fit",
    "FitTest": "fit",
    "HistogramTest": "bounds",
    "Ledger": "ledger",
    "Monitor": "streams",
    "Optimum": "bounds",
    "Plan": "power",
    "PowerCurve": "power",
    "PrivateTest": "decision",
    "Release": "decision",
    "SampleComplexity": "theory",
    "Sequential": "streams",
    "SequentialPlan": "streams",
    "Verdict": "streams",
    "combine_evalues": "streams",
    "evalue_discoveries": "streams",
    "check": "power.check",
    "any_of": "hypotheses",
    "contaminated": "hypotheses",
    "median": "hypotheses",
    "median_above": "hypotheses",
    "median_below": "hypotheses",
    "near": "hypotheses",
    "compare": "power",
    "compare_notions": "power",
    "column_names": "engines",
    "count_records": "engines",
    "decide": "decision.design",
    "decompose": "theory",
    "density": "hypotheses",
    "design": "decision.design",
    "detect_change": "changepoint",
    "design_fit": "fit",
    "fit_sample_size": "fit",
    "goodness_of_fit": "fit",
    "lower_bound": "bounds",
    "min_epsilon": "power",
    "mixture": "hypotheses",
    "open_once": "engines",
    "optimum": "bounds",
    "optimum_sample_size": "bounds",
    "plan": "power.plan",
    "block_test": "changepoint",
    "design_change": "changepoint",
    "power_curve": "power",
    "progress": "progress_events",
    "read_as": "engines",
    "read_lines": "engines",
    "sample_complexity": "theory",
    "sample_size": "power",
    "Verification": "privacy.verification",
    "verify_privacy": "privacy.verification",
    "AdaptiveLevel": "privacy",
    "adaptive_level": "privacy",
    "approx": "notions",
    "as_notion": "privacy",
    "gdp": "notions",
    "kl": "notions",
    "pure": "notions",
    "renyi": "notions",
    "tv": "notions",
    "zcdp": "notions",
}

# Reached as a whole: pt.data.read_as, pt.errors.BudgetExceeded, pt.theory.coupling.
_ROOMS = ("data", "errors", "notions", "theory")

__all__ = ["__version__", *sorted([*_HOMES, *_ROOMS])]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        reason = "" if name.startswith("_") else import_module("privatest.questions").unanswered(name)
        raise AttributeError(f"module 'privatest' has no attribute {name!r}" + (f". {reason}" if reason else ""))
    home = import_module(f"privatest.{name if name in _ROOMS else _HOMES[name]}")
    value = home if name in _ROOMS else getattr(home, name)
    globals()[name] = value
    import_module("privatest.parameters").explain(value)  # so that help() tells of every parameter
    return value


def __dir__() -> list[str]:
    return list(__all__)
