"""The paper's decomposition of a pair and the exact advantages that follow from it."""

from __future__ import annotations

from privatest.theory.complexity import (
    SampleComplexity,
    sample_complexity,
    soft_advantage,
    soft_advantage_direct,
    soft_clamped_advantage,
    soft_clamped_advantage_direct,
)
from privatest.theory.decomposition import Decomposition, Sets, decompose, decompose_pair

__all__ = [
    "Decomposition",
    "SampleComplexity",
    "Sets",
    "decompose",
    "decompose_pair",
    "sample_complexity",
    "soft_advantage",
    "soft_advantage_direct",
    "soft_clamped_advantage",
    "soft_clamped_advantage_direct",
]
