"""The paper's objects: decomposition, exact advantages, sample complexity, coupling, Wasserstein distance."""

from __future__ import annotations

from privatest.theory.complexity import (
    SampleComplexity,
    sample_complexity,
    soft_advantage,
    soft_clamped_advantage,
)
from privatest.theory.coupling import Coupling, Wasserstein, coupling, largest_gain, wasserstein
from privatest.theory.decomposition import Decomposition, Sets, decompose, decompose_pair

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
