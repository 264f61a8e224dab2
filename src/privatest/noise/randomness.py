"""The one module through which randomness enters the package.

A :class:`Source` hands out uniform integers and nothing else; every draw of noise is an exact function of
such integers. ``system_source`` asks the operating system's cryptographic generator, once per integer: it
keeps no state, so a forked or restored process cannot repeat noise that was already released.
``seeded_source(rng)`` is for simulations and tests: whoever knows the seed knows the noise, so
nothing drawn from it is private, and its ``simulated`` flag is what results carry to say so.
"""

from __future__ import annotations

import secrets
from typing import Protocol

import numpy as np

from privatest.errors import InvalidInput, shown

__all__ = ["SeededSource", "Source", "SystemSource", "seeded_source", "system_source"]

_WORD = 64
_WORDS_PER_REFILL = 512


class Source(Protocol):
    """Uniform integers, independent from call to call."""

    @property
    def simulated(self) -> bool:
        """Whether the integers can be reproduced, so that nothing drawn from them is private."""

    def below(self, n: int) -> int:
        """Uniform on 0, ..., n-1, exactly, for n >= 1 of any size."""

    def bits(self, k: int) -> int:
        """Uniform on 0, ..., 2^k - 1, exactly, for k >= 0."""


class SystemSource:
    """Integers from :mod:`secrets`."""

    simulated = False

    # Bound once: secrets rejects n < 1 and k < 0 itself.
    below = staticmethod(secrets.randbelow)
    bits = staticmethod(secrets.randbits)

    def __repr__(self) -> str:
        return "system_source"


class SeededSource:
    """Integers from the 64-bit words of a NumPy generator, reproducible from its seed.

    Words are fetched in blocks, so the generator runs ahead of what was used: do not count on its state.
    """

    simulated = True

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            block = self._rng.integers(0, 2**_WORD, size=_WORDS_PER_REFILL, dtype=np.uint64)
            self._words = block.tolist()
        return self._words.pop()

    def bits(self, k: int) -> int:
        """Uniform on 0, ..., 2^k - 1."""
        if k < 0:
            raise InvalidInput(f"k={k} must be at least 0.")
        value = 0
        # Invariant: value is uniform on as many bits as were taken off k.
        while k > _WORD:
            value = value << _WORD | self._word()
            k -= _WORD
        return value << k | self._word() >> (_WORD - k)

    def below(self, n: int) -> int:
        """Uniform on 0, ..., n-1, by rejection from the next power of two."""
        if n < 1:
            raise InvalidInput(f"n={n} must be at least 1.")
        k = (n - 1).bit_length()
        # Invariant: nothing is known of the next candidate; 2^k < 2n, so each is kept with probability > 1/2.
        if k <= _WORD:
            shift, words = _WORD - k, self._words
            while words:
                candidate = words.pop() >> shift
                if candidate < n:
                    return candidate
        while True:
            candidate = self.bits(k)
            if candidate < n:
                return candidate

    def __repr__(self) -> str:
        return f"seeded_source({self._rng!r})"


system_source: Source = SystemSource()


def seeded_source(rng: np.random.Generator) -> SeededSource:
    """A reproducible source for simulations. Nothing drawn from it is private.

    >>> source = seeded_source(np.random.default_rng(1))
    >>> source.simulated, 0 <= source.below(10**40) < 10**40
    (True, True)
    """
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng={shown(rng)} must be a numpy.random.Generator: pass numpy.random.default_rng(seed).")
    return SeededSource(rng)
