"""What questions return: designs, releases, plans and comparisons; and the functions that combine results.

>>> import privatest as pt
>>> test = pt.design("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1, n=100)
>>> isinstance(test, pt.results.PrivateTest)
True
>>> pt.results.PrivateTest.from_json(test.to_json()) == test
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.lazy_names import homes, loader

if TYPE_CHECKING:
    from privatest.bounds import HistogramTest as HistogramTest
    from privatest.bounds import Optimum as Optimum
    from privatest.changepoint import ChangePlan as ChangePlan
    from privatest.changepoint import ChangePoint as ChangePoint
    from privatest.decision import PrivateTest as PrivateTest
    from privatest.decision import Release as Release
    from privatest.estimates import EstimateDesign as EstimateDesign
    from privatest.estimates import EstimateRelease as EstimateRelease
    from privatest.estimates import GroupsDesign as GroupsDesign
    from privatest.estimates import GroupsRelease as GroupsRelease
    from privatest.estimates import Table as Table
    from privatest.estimates import TableAnswer as TableAnswer
    from privatest.estimates import TableDesign as TableDesign
    from privatest.estimates import TableEstimate as TableEstimate
    from privatest.estimates import TableFit as TableFit
    from privatest.estimates import compare_noised as compare_noised
    from privatest.estimates.stepped_design import SteppedDesign as SteppedDesign
    from privatest.estimates.table_test import TableTest as TableTest
    from privatest.fit import FitRelease as FitRelease
    from privatest.fit import FitTest as FitTest
    from privatest.power import Comparison as Comparison
    from privatest.power import NotionComparison as NotionComparison
    from privatest.power import Plan as Plan
    from privatest.power import PowerCurve as PowerCurve
    from privatest.privacy.adaptive_reuse import AdaptiveLevel as AdaptiveLevel
    from privatest.privacy.verification import Verification as Verification
    from privatest.streams import Alarm as Alarm
    from privatest.streams import MonitorPlan as MonitorPlan
    from privatest.streams import SequentialPlan as SequentialPlan
    from privatest.streams import Verdict as Verdict
    from privatest.streams import combine_evalues as combine_evalues
    from privatest.streams import evalue_discoveries as evalue_discoveries
    from privatest.theory import Decomposition as Decomposition
    from privatest.theory import SampleComplexity as SampleComplexity

_HOMES = homes(
    {
        "bounds": "HistogramTest Optimum",
        "changepoint": "ChangePlan ChangePoint",
        "decision": "PrivateTest Release",
        "estimates": (
            "EstimateDesign EstimateRelease GroupsDesign GroupsRelease Table TableAnswer TableDesign TableEstimate "
            "TableFit compare_noised"
        ),
        "estimates.stepped_design": "SteppedDesign",
        "estimates.table_test": "TableTest",
        "fit": "FitRelease FitTest",
        "power": "Comparison NotionComparison Plan PowerCurve",
        "privacy": "AdaptiveLevel",
        "privacy.verification": "Verification",
        "streams": "Alarm MonitorPlan SequentialPlan Verdict combine_evalues evalue_discoveries",
        "theory": "Decomposition SampleComplexity",
    }
)

__all__ = sorted(_HOMES)

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return list(__all__)
