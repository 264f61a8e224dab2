"""The paper's objects: decomposition, exact advantages, sample complexity, coupling, Wasserstein distance."""

from __future__ import annotations

from privatest.theory.complexity import (
    SampleComplexity,
    sample_complexity,
    soft_advantage,
    soft_clamped_advantage,
)
from privatest.theory.coupling import Coupling, coupling, largest_gain
from privatest.theory.decomposition import Decomposition, Sets, decompose, decompose_pair
from privatest.theory.wasserstein import Wasserstein, wasserstein

__all__ = [
    "Coupling",
    "Decomposition",
    "SampleComplexity",
    "Sets",
    "Wasserstein",
    "coupling",
    "decompose",
    "decompose_pair",
    "largest_gain",
    "sample_complexity",
    "soft_advantage",
    "soft_clamped_advantage",
    "wasserstein",
]
