"""Pure differential privacy: how far one person can move the probability of any answer, as one number."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pure"]


@dataclass(frozen=True)
class Pure:
    """Epsilon-differential privacy: a neighbour's data change no probability by a factor of more than e^epsilon.

    What every design says of itself (``design.privacy``). Infinite: not private.

    >>> Pure(0.5)
    pure(0.5)
    """

    epsilon: float

    def __repr__(self) -> str:
        return f"pure({self.epsilon:g})"
