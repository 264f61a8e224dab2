r"""The characteristic function behind Tulap and Laplace: the two-sided geometric law."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["two_sided_characteristic"]


def two_sided_characteristic(rate: float, theta: NDArray[Any]) -> NDArray[Any]:
    r"""E exp(i theta G) where Pr[G = g] is proportional to exp(-rate abs(g)).

    .. math:: \frac{(1-b)^2}{(1-b)^2 + 4b\sin^2(\theta/2)}
              = \frac{(1-b)^2}{(1-be^{i\theta})(1-be^{-i\theta})}, \qquad b = e^{-rate}

    Guarantees: no cancellation, for real theta and for complex theta with abs(Im theta) < rate (the second
    form: both exponents have negative real part, where expm1 is accurate, right up to the two poles).
    """
    one_minus_b = -np.expm1(-rate)
    if np.iscomplexobj(theta):
        forward, backward = np.expm1(-rate + 1j * theta), np.expm1(-rate - 1j * theta)
        product: NDArray[Any] = (one_minus_b / forward) * (one_minus_b / backward)
        return product
    ratio: NDArray[Any] = 1 / (1 + np.exp(-rate) * (2 * np.sin(theta / 2) / one_minus_b) ** 2)
    return ratio
