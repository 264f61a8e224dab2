"""Two distributions of one record, and the law of their log-likelihood ratio.

.. math:: L(x) = \\log P(x) - \\log Q(x) \\in [-\\infty, \\infty]

Everything downstream (decomposition, scores, error rates) sees P and Q through this one object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from privatest.hypotheses.distribution import Distribution
from privatest.vectors import Floats

__all__ = ["Pair", "Term"]

Term = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
"""(log p, log q, L) -> the integrand, and by how much it moves when L is off by one."""


class Pair(ABC):
    """P (``null``) against Q (``alternative``), on a common domain."""

    null: Distribution
    alternative: Distribution

    @property
    @abstractmethod
    def kind(self) -> str:
        """``"labels"``, ``"integers"`` or ``"reals"``."""

    @abstractmethod
    def ratio(self, x: Any) -> Floats:
        """L(x) for each record; NaN where both densities are zero."""

    @property
    @abstractmethod
    def ratio_range(self) -> tuple[float, float]:
        """Essential infimum and supremum of L."""

    @abstractmethod
    def above(self, level: float) -> tuple[float, float]:
        """(P(L > level), Q(L > level))."""

    @abstractmethod
    def below(self, level: float) -> tuple[float, float]:
        """(P(L < level), Q(L < level))."""

    @abstractmethod
    def integral(self, term: Term, levels: tuple[float, ...] = ()) -> float:
        """Integral of ``term`` over the domain; ``levels`` are the values of L at which it has a kink."""

    @abstractmethod
    def hockey_stick(self, level: float, reverse: bool = False) -> float:
        r"""Mass by which P exceeds e^level Q.

        .. math:: D_y(P\|Q) = \int \max\{P - e^y Q, 0\}

        With ``reverse`` the roles of P and Q are exchanged. Guarantees: in [0, 1]; non-increasing in the
        level; total variation at level 0; relative error at most 1e-10.
        """

    @cached_property
    def total_variation(self) -> float:
        """TV(P, Q), the hockey-stick divergence at level 0."""
        return self.hockey_stick(0.0)

    @cached_property
    def hellinger_squared(self) -> float:
        r"""H^2(P, Q) = 1 - \int \sqrt{PQ}, without cancellation for close pairs."""
        return min(self.integral(hellinger_term), 1.0)

    @cached_property
    def kl(self) -> float:
        r"""KL(P||Q), which may be infinite."""
        return self._kullback_leibler(reverse=False)

    @cached_property
    def kl_reverse(self) -> float:
        r"""KL(Q||P), which may be infinite."""
        return self._kullback_leibler(reverse=True)

    @abstractmethod
    def _kullback_leibler(self, *, reverse: bool) -> float: ...

    def clamped_hellinger(self, lower: float, upper: float) -> float:
        r"""Half the squared distance of the roots of min{P, e^upper Q} and min{Q, e^-lower P}.

        .. math:: \tfrac12 \int (\sqrt{\tilde P} - \sqrt{\tilde Q})^2 = (1 - \tau) H^2(P', Q')

        (the equality for the paper's clamp). Needs lower <= 0 <= upper.
        """

        def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
            clipped = np.clip(ratio, lower, upper)
            # where L is clamped the larger of the two is the smaller one times e^|clamp|
            larger = np.where(ratio >= 0, np.minimum(log_p, log_q + upper), np.minimum(log_q, log_p - lower))
            return _hellinger_density(larger, clipped)

        return self.integral(term, (lower, upper))

    def clamped_gap(self, lower: float, upper: float) -> float:
        r"""One-record advantage of the soft clamped test by direct integration.

        .. math:: \int (P - Q)\,\sigma([L]_a^b / 2) = \tfrac12 \int (P - Q) \tanh([L]_a^b / 4)
        """

        def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
            larger = np.exp(np.maximum(log_p, log_q))
            gap = np.where(ratio >= 0, 1.0, -1.0) * -np.expm1(-np.abs(ratio))
            soft = np.tanh(np.clip(ratio, lower, upper) / 4) / 2
            return larger * gap * soft, larger * (np.abs(soft) + np.abs(gap))

        return self.integral(term, (lower, 0.0, upper))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.null.describe()}, {self.alternative.describe()})"


def _hellinger_density(log_larger: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """(sqrt p - sqrt q)^2 / 2 = max(p, q) (1 - e^(-|L|/2))^2 / 2."""
    larger = np.exp(log_larger)
    gap = -np.expm1(-np.abs(ratio) / 2)
    return larger * gap * gap / 2, larger * gap


def hellinger_term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
    """Integrand of the squared Hellinger distance."""
    return _hellinger_density(np.maximum(log_p, log_q), ratio)


def hockey_stick_term(level: float, *, reverse: bool) -> Term:
    """max(p - e^level q, 0) = p (1 - e^(level - L)) where L > level."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, excess = (log_q, -ratio - level) if reverse else (log_p, ratio - level)
        there = excess > 0
        top = np.where(there, np.exp(log_top), 0.0)
        return top * -np.expm1(-np.where(there, excess, 0.0)), top

    return term


def kullback_leibler_term(*, reverse: bool) -> Term:
    """p log(p/q) + q - p, which is never negative and integrates to KL(P||Q)."""

    def term(log_p: Floats, log_q: Floats, ratio: Floats) -> tuple[Floats, Floats]:
        log_top, log_bottom, gain = (log_q, log_p, -ratio) if reverse else (log_p, log_q, ratio)
        top, bottom = np.exp(log_top), np.exp(log_bottom)
        # a density that underflowed; a true zero under P never comes here
        gain = np.where(log_bottom == -np.inf, log_top + 745.2, gain)
        near = np.abs(gain) < 1e-2
        t = np.where(near, gain, 0.0)
        # e^-t - 1 + t by its series where it cancels
        series = t * t * (1 / 2 + t * (-1 / 6 + t * (1 / 24 + t * (-1 / 120 + t * (1 / 720 - t / 5040)))))
        plain = np.where(top > 0, np.where(near | (top == 0), 0.0, gain), 0.0)
        far = np.where(top > 0, top * plain, 0.0) + (bottom - top)
        value = np.where(near, top * series, far)
        with np.errstate(invalid="ignore"):
            moved = np.where(near, top * np.abs(t), top + bottom)
        return value, moved

    return term
