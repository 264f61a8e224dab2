"""The paper's objects: decomposition, exact advantages, sample complexity, coupling, Wasserstein distance."""

from privatest.theory.complexity import SampleComplexity as SampleComplexity
from privatest.theory.complexity import sample_complexity as sample_complexity
from privatest.theory.complexity import soft_advantage as soft_advantage
from privatest.theory.complexity import soft_clamped_advantage as soft_clamped_advantage
from privatest.theory.coupling import Coupling as Coupling
from privatest.theory.coupling import Wasserstein as Wasserstein
from privatest.theory.coupling import coupling as coupling
from privatest.theory.coupling import largest_gain as largest_gain
from privatest.theory.coupling import wasserstein as wasserstein
from privatest.theory.decomposition import Decomposition as Decomposition
from privatest.theory.decomposition import Sets as Sets
from privatest.theory.decomposition import decompose as decompose
from privatest.theory.decomposition import decompose_pair as decompose_pair
