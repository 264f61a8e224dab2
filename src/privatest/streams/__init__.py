"""Decided yet? Sequential tests whose blocks release e-values; e-values combine. Arguments: proof.md."""

from privatest.streams.evalues import combine_evalues, evalue_discoveries
from privatest.streams.sequential import Sequential
from privatest.streams.sequential_plan import SequentialPlan, Verdict

__all__ = ["Sequential", "SequentialPlan", "Verdict", "combine_evalues", "evalue_discoveries"]
