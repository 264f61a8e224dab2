"""Decided yet? Sequential tests whose blocks release e-values; e-values combine. Arguments: proof.md."""

from privatest.sequential.evalues import combine_evalues, evalue_discoveries
from privatest.sequential.sequential_plan import SequentialPlan, Verdict
from privatest.sequential.sequential_run import Sequential

__all__ = ["Sequential", "SequentialPlan", "Verdict", "combine_evalues", "evalue_discoveries"]
