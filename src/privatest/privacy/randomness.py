"""The one module through which randomness enters the package: uniform integers, and exact coins made of them.

A :class:`RandomSource` hands out uniform integers and nothing else; every draw of noise is an exact function of
such integers. ``system_source`` asks the operating system's cryptographic generator, once per integer: it
keeps no state, so a forked or restored process cannot repeat noise that was already released.
``seeded_source(rng)`` is for simulations and tests: whoever knows the seed knows the noise, so
nothing drawn from it is private, and its ``simulated`` flag lets results say so.

Each coin builds on the one above it, and none uses a float. A probability is given by integers p, q with q >= 1, which
mean the rational p/q. Arguments are not checked here; the noises check theirs once. The expected cost is a few uniform
integers whatever the size of p and q.

Reference: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", section 5.
Arguments: proof.md.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Protocol

import numpy as np

from privatest.errors import InvalidInput, shown

_WORD = 64
_WORDS_PER_REFILL = 512


@lru_cache(maxsize=64)
def _layout(count: int) -> Struct:
    return Struct(f">{count}Q")


class RandomSource(Protocol):
    """Uniform integers, independent from call to call."""

    @property
    def simulated(self) -> bool:
        """Whether the integers can be reproduced, so that nothing drawn from them is private."""

    def below(self, n: int) -> int:
        """Uniform on 0, ..., n-1, exactly, for n >= 1 of any size."""

    def bits(self, k: int) -> int:
        """Uniform on 0, ..., 2^k - 1, exactly, for k >= 0."""


class SystemSource:
    """Integers from :mod:`secrets`, which asks :func:`os.urandom`."""

    simulated = False

    # Bound once: secrets rejects n < 1 and k < 0 itself.
    below = staticmethod(secrets.randbelow)
    bits = staticmethod(secrets.randbits)

    @staticmethod
    def words(count: int) -> Sequence[int]:
        """``count`` words of 64 bits, from one call of the system."""
        return _layout(count).unpack(os.urandom(8 * count))

    def __repr__(self) -> str:
        return "system_source"


class SeededSource:
    """Integers from the 64-bit words of a NumPy generator, reproducible from its seed.

    Words are fetched in blocks, so the generator runs ahead of the words used: do not rely on its state.
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

    def words(self, count: int) -> Sequence[int]:
        """``count`` words of 64 bits, in the order in which ``bits(64)`` returns them."""
        taken: list[int] = []
        # Invariant: `taken` holds the first words, in order.
        while len(taken) < count:
            taken.append(self._word())
            first = max(len(self._words) - (count - len(taken)), 0)
            taken += self._words[first:][::-1]
            del self._words[first:]
        return taken

    def bits(self, k: int) -> int:
        """Uniform on 0, ..., 2^k - 1."""
        if k < 0:
            raise InvalidInput(f"k={k} must be at least 0.")
        value = 0
        if k > 2 * _WORD:  # whole words first, the last of them perhaps not whole
            count = (k - 1) // _WORD
            value = int.from_bytes(_layout(count).pack(*self.words(count)), "big")
            k -= _WORD * count
        elif k > _WORD:  # as above with one word, which is quicker without a list
            value, k = self._word(), k - _WORD
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


system_source: RandomSource = SystemSource()


def seeded_source(rng: np.random.Generator) -> SeededSource:
    """Return a reproducible source for simulations. Nothing drawn from it is private.

    >>> source = seeded_source(np.random.default_rng(1))
    >>> source.simulated, 0 <= source.below(10**40) < 10**40
    (True, True)
    """
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng={shown(rng)} must be a numpy.random.Generator: pass numpy.random.default_rng(seed).")
    return SeededSource(rng)


def bernoulli(p: int, q: int, source: RandomSource) -> bool:
    """True with probability p/q, for 0 <= p <= q."""
    return source.below(q) < p


def _bernoulli_exp_within_one(p: int, q: int, source: RandomSource) -> bool:
    r"""True with probability exp(-p/q), for 0 <= p <= q.

    .. math:: \Pr[K > k] = (p/q)^k / k!, \qquad \Pr[K \text{ odd}] = \sum_k (-p/q)^k / k!
    """
    # Invariant: the coins (p/q)/1, ..., (p/q)/(k-1) all came up true. The first is certain when p = q.
    k = 2 if p == q else 1
    while source.below(q * k) < p:
        k += 1
    return k & 1 == 1


def bernoulli_exp(p: int, q: int, source: RandomSource) -> bool:
    """True with probability exp(-p/q), for p >= 0.

    Guarantees: exact; at most 1/(1 - 1/e) = 1.6 unit coins expected, however large p/q is.
    """
    if p > q:
        whole, p = divmod(p, q)
        # Invariant: the coins so far, one per unit of p/q, all came up true.
        for _ in range(whole):
            if not _bernoulli_exp_within_one(1, 1, source):
                return False
    return _bernoulli_exp_within_one(p, q, source)


def sigmoid(p: int, q: int, source: RandomSource) -> bool:
    r"""True with probability 1/(1 + exp(-p/q)), for p >= 0: a Bernoulli race between 1 and exp(-p/q).

    Guarantees: exact; at most 2 rounds expected.
    """
    # Invariant: rounds that end nowhere leave the odds of the next round unchanged, 1 to exp(-p/q).
    while True:
        if source.bits(1):
            return True
        if bernoulli_exp(p, q, source):
            return False


def geometric(p: int, q: int, source: RandomSource) -> int:
    r"""m = 0, 1, ... with probability proportional to exp(-m p/q), for p > 0.

    X = u + q v, with u below q weighted by exp(-u/q) and v geometric of ratio 1/e, is geometric of ratio
    exp(-1/q); the floor of X/p is then geometric of ratio exp(-p/q).

    Guarantees: exact; the expected number of coins is bounded for all p and q, tiny p/q included.
    """
    # Invariant: a rejected u leaves no trace; u is kept with probability exp(-u/q) > 1/e.
    u = source.below(q)
    while not _bernoulli_exp_within_one(u, q, source):
        u = source.below(q)
    v = 0
    # Invariant: v unit coins came up true, none false.
    while _bernoulli_exp_within_one(1, 1, source):
        v += 1
    return (u + q * v) // p


def two_sided_geometric(p: int, q: int, source: RandomSource) -> int:
    """g in Z with probability proportional to exp(-abs(g) p/q), for p > 0.

    Guarantees: exact; at most 2 rounds expected.
    """
    # Invariant: of the two ways to reach 0 (plus and minus) only plus is kept, so each g has one.
    while True:
        m = geometric(p, q, source)
        if source.bits(1):
            return m
        if m:
            return -m


class UniformDigits:
    """A uniform number in [0, 1) whose binary digits are drawn as they are needed.

    It lies in [value, value + 1)/2^bits. ``value`` and ``bits`` may hold digits that were drawn before.
    """

    def __init__(self, source: RandomSource, value: int | None = None, bits: int = 32) -> None:
        self._source = source
        self.bits = bits
        self.value = source.bits(bits) if value is None else value

    def extend(self, more: int = 32) -> None:
        """Draw further digits."""
        self.value = self.value << more | self._source.bits(more)
        self.bits += more

    def is_below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether the number is below another one, of which ``bounds(k)`` returns integer bounds on its 2^k-fold."""
        # Invariant: the digits drawn so far allow either order of the two numbers.
        while True:
            low, high = bounds(self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.extend()
