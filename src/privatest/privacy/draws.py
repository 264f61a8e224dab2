r"""Many draws of a noise at once, each exact. Of Gaussian noise one by one.

A block detector over 10^7 records needs a million draws. Each is an inversion: a uniform number of 64 bits is looked up
in a table of the cdf of the two-sided geometric part; should it hit the very cell of a threshold (one time in 10^16),
more bits of the number and of the threshold are compared until they differ. Argument: proof.md.

A half normal number k + x is kept in proportion to :math:`e^{-(k+x)^2/2}`: k with probability :math:`2^{-k-1}`, x
uniform, and of these a share :math:`2^{k+2} e^{-(k+x)^2/2}/5 < 1`. Ten digits of x and a table of the share's bounds
settle nearly all of them; of the rest more digits are drawn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from privatest.numbers import Integers, exp_bounds
from privatest.privacy.gaussian import Digits, Gaussian
from privatest.privacy.noise import Noise, Uniform
from privatest.privacy.randomness import RandomSource
from privatest.privacy.tulap import TruncatedTulap, Tulap

Words = npt.NDArray[np.uint64]

_WORD = 64
# Fewer draws than this are made one by one: the table costs more.
_FEW = 256
_WORDS_A_CALL = 256
# The largest table that is made for the sake of a monitor's single blocks: 0.05 s, once, at epsilon 0.09.
_LARGEST_REACH = 512
# Gaussian draws: from so many on by a table of k below _ROWS and cells of x, one for each value of its first digits.
_MANY, _ROWS, _CELL = 4096, 8, 10


def draw_many(noise: Noise, count: int, source: RandomSource) -> Integers:
    """Twice ``count`` independent draws of the noise, as 64-bit integers (the noise may be a half integer).

    Guarantees: each has exactly the law of ``noise.draw``; independent.
    """
    if isinstance(noise, Uniform):
        return 2 * _below(noise.points, count, source) - (noise.points - 1)
    if isinstance(noise, TruncatedTulap):
        found, open_ = np.zeros(count, dtype=np.int64), np.arange(count)
        # Invariant: all but those that are open are draws of this noise; a rejected one leaves no trace.
        while len(open_):
            found[open_] = draw_many(noise.untruncated, len(open_), source)
            far = open_[np.abs(found[open_]) > noise.whole]
            open_ = np.array([i for i in far if not noise.keeps(int(found[i]), source)], dtype=np.int64)
        return found
    if isinstance(noise, Gaussian) and count >= _MANY:
        return _gaussians(noise, count, source)
    if not isinstance(noise, Tulap):
        return _one_by_one(noise, count, source)
    w = noise.width
    if count < max(_FEW, 4 * _reach(noise.epsilon)):
        return _one_by_one(noise, count, source)
    return 2 * (w * _two_sided(noise.epsilon, count, source) + _below(w, count, source)) - (w - 1)


def _gaussians(noise: Gaussian, count: int, source: RandomSource) -> Integers:
    """Twice the draws: :meth:`Gaussian.rounded` where 64 digits do not settle it, the same in plain integers else."""
    twice, half = 2 * noise.width * noise.mu.denominator, noise.mu.numerator << _WORD
    unit, found = 2 * half, np.empty(count, dtype=np.int64)
    for place, (whole, digits, minus) in enumerate(_half_normals(count, source)):
        if digits.__class__ is int:
            low = twice * ((whole << _WORD) + digits) + half
            rounded = low // unit
            if low + twice <= (rounded + 1) * unit:
                found[place] = -2 * rounded if minus else 2 * rounded
                continue
            digits = Digits(source, digits, _WORD)
        found[place] = noise.rounded(whole, digits, source)
    return found


def _half_normals(count: int, source: RandomSource) -> list[tuple[int, Any, int]]:
    """k, the digits of x (64 of them as an integer, or more as :class:`Digits`), and a fair bit for the sign."""
    shares, found = _shares(), list[tuple[int, Any, int]]()
    # Invariant: what is found so far was kept; pairs that are not leave no trace.
    while len(found) < count:
        size = 2 * (count - len(found)) + _WORD
        ones, x, uniform = _words(3 * size, source).reshape(3, size)
        lowest_zero = ~ones & (ones + np.uint64(1))
        k = np.where(lowest_zero == 0, _WORD, np.frexp(lowest_zero.astype(np.float64))[1] - 1)
        row, cell = np.minimum(k, _ROWS - 1), (x >> np.uint64(_WORD - _CELL)).astype(np.int64)
        tabled = k < _ROWS  # else the first digit may be one of those that were counted
        kept = tabled & (uniform < shares[row, cell + 1])
        late: dict[int, tuple[int, Any, int]] = {}
        for i in np.flatnonzero(~kept & (~tabled | (uniform <= shares[row, cell]))).tolist():
            whole = int(k[i])
            if whole == _WORD:  # all ones: they are counted on
                while (more := _ones(source.bits(_WORD))) == _WORD:
                    whole += _WORD
                whole += more
            digits = _kept(whole, int(x[i]), int(uniform[i]), source)
            if digits is not None:
                kept[i], late[i] = True, (whole, digits, 0)
        # In the order in which they were drawn: which are left out at the end must not depend on what they are.
        places, minus = np.flatnonzero(kept), (ones[kept] >> np.uint64(_WORD - 1)).tolist()
        pairs = list(zip(k[kept].tolist(), x[kept].tolist(), minus, strict=True))
        for i, pair in late.items():
            pairs[int(np.searchsorted(places, i))] = pair
        found += pairs
    return found[:count]


def _ones(word: int) -> int:
    """Ones at the low end of a word."""
    return (~word & (word + 1)).bit_length() - 1


def _kept(whole: int, x: int, word: int, source: RandomSource) -> Digits | None:
    """The digits of x where the pair is kept, None where it is not: by as many digits of both numbers as it takes."""
    digits, uniform = Digits(source, x, _WORD), Digits(source, word, _WORD)
    # Invariant: nothing is decided yet: the uniform number and the share, as far as they are known, overlap.
    while True:
        if uniform.value + 1 <= _share(whole, digits.value + 1, digits.bits, uniform.bits)[0]:
            return digits
        if uniform.value >= _share(whole, digits.value, digits.bits, uniform.bits)[1]:
            return None
        digits.extend()
        uniform.extend()


def _share(whole: int, x: int, size: int, bits: int) -> tuple[int, int]:
    """Bounds of 2^bits times the share that is kept at whole + x/2^size; it falls with x."""
    root = (whole << size) + x
    low, high = exp_bounds(root * root, 2 << 2 * size, bits + whole + 8)
    return (low << 2) // (5 << 8), -(-(high << 2) // (5 << 8))


@lru_cache(maxsize=1)
def _shares() -> Words:
    """Their lower bounds, for every k and every cell of x; the last column is x = 1."""
    cells = range((1 << _CELL) + 1)
    return np.array([[_share(k, x, _CELL, _WORD)[0] for x in cells] for k in range(_ROWS)], dtype=np.uint64)


def draw_rows(source: RandomSource, table: Integers, most: int) -> Integers:
    """Of each line of a table ``most`` entries, drawn without replacement: which of a person's rows count.

    Guarantees: every choice of so many places is equally likely, and independent of the others and of what stands
    there. So each line alone decides what is taken from it, whatever the others hold (proof.md).
    """
    found, lines = table.copy(), np.arange(len(table))
    # Invariant: the first places hold a uniform choice in uniform order, the others what is left.
    for place in range(most):
        left = table.shape[1] - place
        other = place + (
            _below(left, len(table), source)
            if len(table) >= _FEW
            else np.array([source.below(left) for _ in lines], dtype=np.int64)
        )
        found[lines, place], found[lines, other] = found[lines, other], found[lines, place]
    return found[:, :most]


def _one_by_one(noise: Noise, count: int, source: RandomSource) -> Integers:
    return np.array([noise.draw_doubled(source) for _ in range(count)], dtype=np.int64)


def draw_blocks(noise: Noise, count: int, source: RandomSource) -> Integers:
    """As :func:`draw_many`, for those who draw again and again, few or many at a time, and never ahead.

    Guarantees: each has exactly the law of ``noise.draw``; independent. From a seeded source the same draws come in the
    same order however many are asked for at a time (but where a word must be drawn again: once in 10^16).
    """
    if count == 1 or not isinstance(noise, Tulap) or _cells(noise.epsilon) is None:
        return np.array(noise_adder(noise, source)([0] * count), dtype=np.int64)
    w, epsilon = noise.width, noise.epsilon
    words = _words(2 * count, source)
    return 2 * (w * _inverted(epsilon, words[::2], source) + _residues(w, words[1::2].copy(), source)) - (w - 1)


def noise_adder(noise: Noise, source: RandomSource) -> Callable[[list[int]], list[int]]:
    """A function that adds draws of :func:`draw_blocks` to a few integers, one to each: quick, and never ahead."""
    if isinstance(noise, TruncatedTulap):
        untruncated, whole = noise_adder(noise.untruncated, source), noise.whole

        def kept() -> int:
            while abs(doubled := untruncated([0])[0]) > whole and not noise.keeps(doubled, source):
                pass
            return doubled

        return lambda totals: [total + kept() for total in totals]
    cells = _cells(noise.epsilon) if isinstance(noise, Tulap) else None
    if not isinstance(noise, Tulap) or cells is None:
        return lambda totals: [total + noise.draw_doubled(source) for total in totals]
    w, epsilon, last, words = noise.width, noise.epsilon, len(cells), _word_source(source)
    limit = (1 << _WORD) // w * w
    # By the place of a word in the table: twice the smallest value of its block of w. That of g = 0 is tried first.
    starts = [2 * w * (place - last // 2) - (w - 1) for place in range(last)]
    low, high, middle = cells[last // 2 - 1], cells[last // 2], starts[last // 2]

    def added(totals: list[int]) -> list[int]:
        found, drawn = [], iter(words(2 * len(totals)))
        for total, word, other in zip(totals, drawn, drawn):  # noqa: B905 - two words for each
            if low < word < high:
                start = middle
            elif (place := bisect_left(cells, word)) < last and cells[place] != word:
                start = starts[place]
            else:
                start = 2 * w * _resolve(epsilon, word, source) - (w - 1)
            found.append(total + start + 2 * (other % w if other < limit else source.below(w)))
        return found

    return added


def _word_source(source: RandomSource) -> Callable[[int], Sequence[int]]:
    """Words of 64 bits: the source's own, where it has a quick way, else those of ``source.bits``, in its order."""
    found: Callable[[int], Sequence[int]] | None = getattr(source, "words", None)
    return found if found is not None else lambda count: _words(count, source).tolist()


def _words(count: int, source: RandomSource) -> Words:
    """Uniform 64-bit words, in the order in which a source hands them out."""
    raw = b"".join(
        source.bits(_WORD * size).to_bytes(8 * size, "big")
        for size in (min(_WORDS_A_CALL, count - start) for start in range(0, count, _WORDS_A_CALL))
    )
    return np.frombuffer(raw, dtype=">u8").astype(np.uint64)


def _below(n: int, count: int, source: RandomSource) -> Integers:
    """Uniform on 0, ..., n-1."""
    return _residues(n, _words(count, source), source)


def _residues(n: int, values: Words, source: RandomSource) -> Integers:
    """Uniform on 0, ..., n-1, by rejection of the incomplete last stretch of words."""
    if n & (n - 1) == 0:
        return (values & np.uint64(n - 1)).astype(np.int64)
    limit = np.uint64((1 << _WORD) // n * n)
    # Invariant: entries under the limit are uniform there and final.
    while len(rejected := np.flatnonzero(values >= limit)):
        values[rejected] = _words(len(rejected), source)
    return (values % np.uint64(n)).astype(np.int64)


def _two_sided(epsilon: Fraction, count: int, source: RandomSource) -> Integers:
    """g with probability proportional to exp(-epsilon abs(g))."""
    return _inverted(epsilon, _words(count, source), source)


def _inverted(epsilon: Fraction, words: Words, source: RandomSource) -> Integers:
    """Inversion of the cdf at lazily extended uniforms that start with these words."""
    reach, table = _reach(epsilon), _table(epsilon)
    place = np.searchsorted(table, words, side="left")
    found = place.astype(np.int64) - reach
    inside = np.minimum(place, len(table) - 1)
    for i in np.flatnonzero((place == len(table)) | (table[inside] == words)):
        found[i] = _resolve(epsilon, int(words[i]), source)
    return found


def _reach(epsilon: Fraction) -> int:
    """Beyond this either tail has mass under 2^-64: its cells are all one, and ambiguous."""
    return int(Fraction(45) / epsilon) + 2


@lru_cache(maxsize=8)
def _table(epsilon: Fraction) -> Words:
    """The cdf at -reach, ..., reach, times 2^64 and rounded down."""
    reach = _reach(epsilon)
    return np.array([_floor_cdf(epsilon, g, _WORD) for g in range(-reach, reach + 1)], dtype=np.uint64)


@lru_cache(maxsize=8)
def _cells(epsilon: Fraction) -> list[int] | None:
    """The table as plain integers, for single words; None where it would be too large."""
    return None if _reach(epsilon) > _LARGEST_REACH else list(_table(epsilon).tolist())


def _floor_cdf(epsilon: Fraction, g: int, bits: int) -> int:
    """The integer part of 2^bits Pr[G <= g]; Pr[G <= -m] = b^m/(1+b) for m >= 0, and Pr[G <= m] = 1 - Pr[G <= -m-1]."""
    m = -g if g <= 0 else g + 1
    p, q = epsilon.numerator, epsilon.denominator
    extra = 16
    # Invariant: the floor is not known yet; it is once both ends of the interval agree on it.
    while True:
        size = bits + extra
        one = 1 << size
        low_power, high_power = exp_bounds(m * p, q, size)
        low_b, high_b = exp_bounds(p, q, size)
        low, high = low_power * one // (one + high_b), -(-high_power * one // (one + low_b))
        if g > 0:
            low, high = one - high, one - low
        if low >> extra == high >> extra:
            return low >> extra
        extra *= 2


def _resolve(epsilon: Fraction, word: int, source: RandomSource) -> int:
    """The g whose cell holds the uniform number that starts with this word, by more of its bits."""
    bits, uniform = _WORD, word
    # Invariant: U lies in [uniform, uniform + 1) / 2^bits.
    while True:
        bits += _WORD
        uniform = uniform << _WORD | source.bits(_WORD)
        # The smallest g with floor(2^bits F(g)) >= uniform; settled unless the floor is uniform itself.
        low, high = -1, 1
        while _floor_cdf(epsilon, high, bits) < uniform and high < 1 << 40:
            high *= 2
        while _floor_cdf(epsilon, low, bits) >= uniform and low > -(1 << 40):
            low *= 2
        # Invariant: floor of low < uniform <= floor of high.
        while high - low > 1:
            middle = (low + high) // 2
            if _floor_cdf(epsilon, middle, bits) >= uniform:
                high = middle
            else:
                low = middle
        if _floor_cdf(epsilon, high, bits) > uniform:
            return high
