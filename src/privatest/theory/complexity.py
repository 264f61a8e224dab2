r"""How many records a private test needs, up to constants, and the exact advantages on one record that decide it.

sLLR says P with probability sigmoid(L/2); scLLR clamps L first. On one record

.. math::
    \mathrm{adv}_1(\mathrm{sLLR}) = H^2(P, Q), \qquad
    \mathrm{adv}_1(\mathrm{scLLR}) = \tfrac{\tau}{2}\left(\tanh\tfrac{\varepsilon}{4} +
    \tanh\tfrac{\varepsilon'}{4}\right) + (1 - \tau) H^2(P', Q').

and the theorem is

.. math:: \mathrm{SC}_\varepsilon = \Theta\left(\frac{1}{\varepsilon\tau + (1-\tau) H^2(P', Q')}\right)
        = \Theta\left(\frac{1}{\mathrm{adv}_1(\mathrm{scLLR})}\right)

(CKMSU19, theorem 1.1; the first form for epsilon up to about 1, see docs/paper.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privatest import numbers
from privatest.errors import InvalidInput
from privatest.facts import Described, Fact
from privatest.hypotheses import DiscretePair, Pair
from privatest.hypotheses.parse import hardest_pair
from privatest.numbers import Number
from privatest.theory.decomposition import Decomposition, decompose_pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def soft_advantage(pair: Pair) -> float:
    """adv_1(sLLR) = H^2(P, Q).

    Args:
        pair: P and Q on their common domain.

    >>> from privatest.hypotheses import make_pair
    >>> round(soft_advantage(make_pair("normal(0, 1)", "normal(1, 1)")), 12)
    0.117503097415
    """
    return pair.hellinger_squared


def soft_clamped_advantage(split: Decomposition) -> float:
    """adv_1(scLLR) from tau, eps' and the core's Hellinger distance.

    Args:
        split: result of :func:`privatest.decompose`.
    """
    tails = split.tau / 2 * (math.tanh(split.epsilon / 4) + math.tanh(split.epsilon_prime / 4))
    return tails + split.core_term


Regime = Literal["tails", "core", "free"]


@dataclass(frozen=True)
class SampleComplexity(Described):
    """The order of the number of records that epsilon-DP tests need; constants are left out throughout.

    Guarantees: ``value`` is 1/(``tail_term`` + ``core_term``). To plan with use ``sample_size``, whose numbers are
    exact; for a number that no test can beat use ``lower_bound``.

    Attributes:
        epsilon: privacy loss.
        value: 1/(eps tau + (1 - tau) H^2(P', Q')).
        tail_term: eps tau, the contribution of the tails, which privacy must hide.
        core_term: (1 - tau) H^2(P', Q'), the contribution of the core, on which privacy is free.
        regime: "tails" or "core", the larger of the two terms; "free" when nothing is clamped.
        nonprivate: 1/H^2(P, Q), the order without privacy.
        sandwich: (1/H^2, 1/(eps H^2)), between which the paper places the value for epsilon < 1.
        free_epsilon: privacy is free from this epsilon on, the largest abs(L); infinite if it never is.
        by_advantage: 1/adv_1(scLLR), which has the same order at every epsilon.
        two_point: 1/H^2 + 1/(eps TV) on two-point domains, None on others.
        local: 1/(eps^2 TV^2), the order in the local model, where every record is randomised on its own.
        pair: P and Q, for :meth:`plot`.
    """

    epsilon: float
    value: float
    tail_term: float
    core_term: float
    regime: Regime
    nonprivate: float
    sandwich: tuple[float, float]
    free_epsilon: float
    by_advantage: float
    two_point: float | None
    local: float
    pair: Pair | None = field(default=None, repr=False, compare=False)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw records against epsilon: both terms, regimes, the floor without privacy, exact sizes, lower bounds.

        Takes some seconds: the exact numbers are computed at as many epsilons as time allows.
        """
        if self.pair is None:
            raise InvalidInput("This result does not know P and Q. Make it with sample_complexity(P, Q, epsilon=...).")
        from privatest import pictures

        return pictures.complexity(self, self.pair, ax)

    @property
    def title(self) -> str:
        """Names the theorem's quantity."""
        return "Sample complexity: records, up to a constant"

    def facts(self) -> list[Fact]:
        """Return the theorem's number, its two terms, and the numbers to compare it with."""
        return [
            Fact("epsilon", self.epsilon, "privacy loss"),
            Fact("value", self.value, "records, up to a constant"),
            Fact("regime", self.regime, "which term is the larger; free: nothing is clamped"),
            Fact("tail_term", self.tail_term, "contribution of the tails, which privacy must hide"),
            Fact("core_term", self.core_term, "contribution of the core, where privacy is free"),
            Fact("by_advantage", self.by_advantage, "1 over the advantage of scLLR on one record"),
            Fact("nonprivate", self.nonprivate, "without privacy"),
            Fact("free_epsilon", self.free_epsilon, "privacy is free from this epsilon on; inf: never"),
            Fact("sandwich", self.sandwich, "between which the paper places the value for epsilon < 1"),
            Fact("two_point", self.two_point, "the formula for two-point domains"),
            Fact("local", self.local, "in the local model"),
        ]


def sample_complexity(null: Any, alternative: Any, *, epsilon: Number) -> SampleComplexity:
    """Return the theorem's sample complexity of P against Q; for sets of distributions, that of their hardest members.

    Args:
        null, alternative, epsilon: as for :func:`privatest.design`.

    >>> complexity = sample_complexity("bernoulli(0)", "bernoulli(0.1)", epsilon=0.5)
    >>> round(complexity.value, 9), complexity.regime, round(complexity.by_advantage, 6)
    (20.0, 'tails', 160.832467)
    """
    level = float(numbers.privacy_loss(epsilon=epsilon))
    pair = hardest_pair(null, alternative)
    split = decompose_pair(pair, level)
    tails = level * split.tau
    core = split.core_term
    hellinger, variation = pair.hellinger_squared, pair.total_variation
    regime: Regime = "free" if split.tau == 0 else "tails" if tails >= core else "core"
    return SampleComplexity(
        epsilon=level,
        value=1 / (tails + core),
        tail_term=tails,
        core_term=core,
        regime=regime,
        nonprivate=1 / hellinger,
        sandwich=(1 / hellinger, 1 / (level * hellinger)),
        free_epsilon=max(abs(end) for end in pair.ratio_range),
        by_advantage=1 / soft_clamped_advantage(split),
        two_point=1 / hellinger + 1 / (level * variation) if _two_points(pair) else None,
        local=1 / (level * variation) ** 2,
        pair=pair,
    )


def _two_points(pair: Pair) -> bool:
    return isinstance(pair, DiscretePair) and int(np.sum((pair.p > 0) | (pair.q > 0))) == 2
