"""How large is it: estimates with exact intervals, and two groups compared."""

from privatest.estimate.estimate_design import EstimateDesign, EstimateRelease, design_estimate, estimate

__all__ = ["EstimateDesign", "EstimateRelease", "design_estimate", "estimate"]
