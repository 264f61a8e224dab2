r"""Many draws of a noise at once, each exact; and random choices of a person's rows.

Change points in 10^7 records need a million draws. A draw of Tulap noise inverts the cdf of the two-sided geometric
part: a uniform number of 64 bits is looked up in a table. If its bits are those of a threshold (one time in 10^16),
more bits of the number and of the threshold are compared until they differ. Argument: proof.md.

Many draws of Gaussian noise are made of the same pairs k + x as one is (``canonical_noise.py``). Ten digits of x and a
table of bounds on the share that is kept decide nearly all pairs; for the others more digits are drawn. Other noises
are drawn one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from privatest.numbers import Integers, exp_bounds, first_true
from privatest.privacy.canonical_noise import Gaussian, acceptance, keeps
from privatest.privacy.noise import Noise
from privatest.privacy.randomness import RandomSource, UniformDigits
from privatest.privacy.tulap import TruncatedTulap, Tulap, Uniform

Words = npt.NDArray[np.uint64]

_WORD = 64
_WORDS_A_CALL = 256
# Fewer uniform integers than this are drawn one by one.
_FEW = 256
# The largest reach of a table: beyond it, at an epsilon of 0.0007, draws are made one by one.
_LARGEST_REACH = 1 << 16
# From _MANY on, Gaussian draws use a table of k < _ROWS and cells of x, one for each value of its first _CELL digits.
_MANY, _ROWS, _CELL = 4096, 8, 10


def draw_many(noise: Noise, count: int, source: RandomSource) -> Integers:
    """Twice ``count`` independent draws of the noise, as 64-bit integers; the noise may be a half integer.

    Guarantees: each has exactly the law of ``noise.draw``; independent.
    """
    if isinstance(noise, Uniform):
        return 2 * _below(noise.points, count, source) - (noise.points - 1)
    if isinstance(noise, TruncatedTulap):
        draws, rejected = np.zeros(count, dtype=np.int64), np.arange(count)
        # Invariant: all draws but the rejected ones are draws of this noise; a rejected one leaves no trace.
        while len(rejected):
            draws[rejected] = draw_many(noise.untruncated, len(rejected), source)
            far = rejected[np.abs(draws[rejected]) > noise.whole]
            rejected = np.array([i for i in far if not noise.keeps(int(draws[i]), source)], dtype=np.int64)
        return draws
    if isinstance(noise, Gaussian) and count >= _MANY:
        return _gaussians(noise, count, source)
    if not isinstance(noise, Tulap) or _reach(noise.epsilon) > _LARGEST_REACH:
        return np.array([noise.draw_doubled(source) for _ in range(count)], dtype=np.int64)
    w, words = noise.width, _words(2 * count, source)  # two for each draw, side by side: see `draw_blocks`
    blocks = _inverted(noise.epsilon, words[::2], source)
    return 2 * (w * blocks + _residues(w, words[1::2].copy(), source)) - (w - 1)


def _gaussians(noise: Gaussian, count: int, source: RandomSource) -> Integers:
    """Twice the draws. Where 64 digits do not settle the rounding, :meth:`Gaussian.rounded` draws more of them."""
    twice, half = 2 * noise.width * noise.mu.denominator, noise.mu.numerator << _WORD
    unit, draws = 2 * half, np.empty(count, dtype=np.int64)
    for place, (whole, digits, minus) in enumerate(_half_normals(count, source)):
        if isinstance(digits, int):
            low = twice * ((whole << _WORD) + digits) + half
            rounded = low // unit
            if low + twice <= (rounded + 1) * unit:
                draws[place] = -2 * rounded if minus else 2 * rounded
                continue
            digits = UniformDigits(source, digits, _WORD)
        draws[place] = noise.rounded(whole, digits, source)
    return draws


def _half_normals(count: int, source: RandomSource) -> list[tuple[int, int | UniformDigits, int]]:
    """k, the digits of x (64 of them as an integer, or more as :class:`UniformDigits`), and a fair bit for the sign.

    The pairs stay in the order in which they were drawn: which of them are not needed must not depend on their values.
    """
    shares, pairs = _shares(), list[tuple[int, int | UniformDigits, int]]()
    # Invariant: the pairs so far were kept; rejected ones leave no trace.
    while len(pairs) < count:
        size = 2 * (count - len(pairs)) + _WORD
        ones, x, uniform = _words(3 * size, source).reshape(3, size)
        lowest_zero = ~ones & (ones + np.uint64(1))
        k = np.where(lowest_zero == 0, _WORD, np.frexp(lowest_zero.astype(np.float64))[1] - 1)
        row, cell = np.minimum(k, _ROWS - 1), (x >> np.uint64(_WORD - _CELL)).astype(np.int64)
        tabled = k < _ROWS  # else the bit for the sign may be one of the ones that were counted
        accepted = tabled & (uniform < shares[row, cell + 1])
        unsettled = ~accepted & (~tabled | (uniform <= shares[row, cell]))
        places = np.flatnonzero(accepted | unsettled)
        columns = (values[places].tolist() for values in (k, x, uniform, ones >> np.uint64(_WORD - 1), unsettled))
        for whole, digits, word, minus, undecided in zip(*columns, strict=True):
            if not undecided:
                pairs.append((whole, digits, minus))
                continue
            if whole == _WORD:  # all ones: count on in further words
                while (more := _ones(source.bits(_WORD))) == _WORD:
                    whole += _WORD
                whole += more
            x_digits = UniformDigits(source, digits, _WORD)
            if keeps(whole, x_digits, UniformDigits(source, word, _WORD)):
                pairs.append((whole, x_digits, 0))  # the sign is drawn with the rounding
    return pairs[:count]


def _ones(word: int) -> int:
    """Return the number of ones at the low end of a word."""
    return (~word & (word + 1)).bit_length() - 1


@lru_cache(maxsize=1)
def _shares() -> Words:
    """Lower bounds on the shares, for every k and at the start of every cell of x; the last column is x = 1."""
    cells = range((1 << _CELL) + 1)
    return np.array([[acceptance(k, x, _CELL, _WORD)[0] for x in cells] for k in range(_ROWS)], dtype=np.uint64)


def draw_rows(source: RandomSource, table: Integers, most: int) -> Integers:
    """``most`` entries of each line of a table, drawn without replacement: which of a person's rows count.

    Guarantees: every choice of ``most`` places is equally likely, and independent of the other lines and of the
    entries. So each line alone decides what is taken from it, whatever the others hold (proof.md).
    """
    shuffled, lines = table.copy(), np.arange(len(table))
    # Invariant: the places so far hold a uniform choice in uniform order, the others the remaining entries.
    for place in range(most):
        left = table.shape[1] - place
        few = len(table) < _FEW
        drawn = [source.below(left) for _ in lines] if few else _below(left, len(table), source)
        other = place + np.asarray(drawn, dtype=np.int64)
        shuffled[lines, place], shuffled[lines, other] = shuffled[lines, other], shuffled[lines, place]
    return shuffled[:, :most]


def draw_some(source: RandomSource, counts: Sequence[int], size: int) -> list[int]:
    """Draw ``size`` things without replacement from ``counts`` of each kind; return the drawn number of each kind.

    Guarantees: every choice of so many things is equally likely. Draws as many integers as are chosen, or as are left,
    whichever are fewer (Floyd's algorithm: Bentley and Floyd 1987).
    """
    whole = sum(counts)
    few, chosen = min(size, whole - size), set[int]()
    # Invariant: `chosen` is a uniform choice of its size among the first `place` things.
    for place in range(whole - few, whole):
        drawn = int(source.below(place + 1))
        chosen.add(place if drawn in chosen else drawn)
    ends = np.cumsum(np.asarray(counts, dtype=np.int64))
    kinds = np.searchsorted(ends, np.array(sorted(chosen), dtype=np.int64), side="right")
    tally = np.bincount(kinds, minlength=len(counts))
    return (tally if few == size else np.asarray(counts) - tally).tolist()  # type: ignore[no-any-return]


def draw_blocks(noise: Noise, count: int, source: RandomSource) -> Integers:
    """Twice ``count`` independent draws, for streams, which draw few or many at a time and never ahead.

    Guarantees: each has exactly the law of ``noise.draw``; independent. A seeded source gives the same draws in the
    same order whatever the counts of the calls (unless a word must be drawn again, once in 10^16).
    """
    if isinstance(noise, Tulap):
        return draw_many(noise, count, source)
    return np.array(noise_adder(noise, source)([0] * count), dtype=np.int64)


def noise_adder(noise: Noise, source: RandomSource) -> Callable[[list[int]], list[int]]:
    """A function that adds a draw as of :func:`draw_blocks` to each of a few integers, quickly and never ahead."""
    if isinstance(noise, TruncatedTulap):
        untruncated = noise_adder(noise.untruncated, source)
        draws = iter(lambda: untruncated([0])[0], None)
        return lambda totals: [total + next(draw for draw in draws if noise.keeps(draw, source)) for total in totals]
    if not isinstance(noise, Tulap) or _reach(noise.epsilon) > _LARGEST_REACH:
        return lambda totals: [total + noise.draw_doubled(source) for total in totals]
    w, epsilon, words = noise.width, noise.epsilon, _word_source(source)
    cells: list[int] = _table(epsilon).tolist()
    last, limit = len(cells), (1 << _WORD) // w * w
    # Twice the smallest value of the block of w values at each place of the table. Block 0 is tried first.
    starts = [2 * w * (place - last // 2) - (w - 1) for place in range(last)]
    low, high, middle = cells[last // 2 - 1], cells[last // 2], starts[last // 2]

    def add(totals: list[int]) -> list[int]:
        noisy, drawn = [], iter(words(2 * len(totals)))
        for total, word, other in zip(totals, drawn, drawn):  # noqa: B905 - two words for each
            if low < word < high:
                start = middle
            elif (place := bisect_left(cells, word)) < last and cells[place] != word:
                start = starts[place]
            else:
                start = 2 * w * _resolve(epsilon, word, source) - (w - 1)
            noisy.append(total + start + 2 * (other % w if other < limit else source.below(w)))
        return noisy

    return add


def _word_source(source: RandomSource) -> Callable[[int], Sequence[int]]:
    """A function that returns words of 64 bits: the source's own quick one, or else ``source.bits`` in its order."""
    words: Callable[[int], Sequence[int]] | None = getattr(source, "words", None)
    return words if words is not None else lambda count: _words(count, source).tolist()


def _words(count: int, source: RandomSource) -> Words:
    """Uniform 64-bit words, in the order in which a source hands them out."""
    raw = b"".join(
        source.bits(_WORD * size).to_bytes(8 * size, "big")
        for size in (min(_WORDS_A_CALL, count - start) for start in range(0, count, _WORDS_A_CALL))
    )
    return np.frombuffer(raw, dtype=">u8").astype(np.uint64)


def _below(n: int, count: int, source: RandomSource) -> Integers:
    """``count`` numbers that are uniform on 0, ..., n-1."""
    return _residues(n, _words(count, source), source)


def _residues(n: int, values: Words, source: RandomSource) -> Integers:
    """Words modulo n, uniform on 0, ..., n-1: words of the incomplete last stretch are rejected and drawn again."""
    if n & (n - 1) == 0:
        return (values & np.uint64(n - 1)).astype(np.int64)
    limit = np.uint64((1 << _WORD) // n * n)
    # Invariant: entries under the limit are uniform there, and final.
    while len(rejected := np.flatnonzero(values >= limit)):
        values[rejected] = _words(len(rejected), source)
    return (values % np.uint64(n)).astype(np.int64)


def _inverted(epsilon: Fraction, words: Words, source: RandomSource) -> Integers:
    """Draws of g with Pr[g] proportional to exp(-epsilon abs(g)), inverted at uniforms that start with ``words``."""
    reach, table = _reach(epsilon), _table(epsilon)
    place = np.searchsorted(table, words, side="left")
    draws = place.astype(np.int64) - reach
    inside = np.minimum(place, len(table) - 1)
    for i in np.flatnonzero((place == len(table)) | (table[inside] == words)):
        draws[i] = _resolve(epsilon, int(words[i]), source)
    return draws


def _reach(epsilon: Fraction, bits: int = _WORD) -> int:
    """Return a number beyond which either tail has mass under 2^-bits, so that its cells coincide."""
    return int(Fraction(45 * bits, 64) / epsilon) + 2


@lru_cache(maxsize=8)
def _table(epsilon: Fraction) -> Words:
    """Return the cdf at -reach, ..., reach, times 2^64 and rounded down."""
    reach, guard = _reach(epsilon), 2 * _WORD
    bits = _WORD + guard
    b_low, b_high = exp_bounds(epsilon.numerator, epsilon.denominator, bits)
    low, high = (1 << 2 * bits) // ((1 << bits) + b_high), -(-(1 << 2 * bits) // ((1 << bits) + b_low))
    below, above = list[int](), list[int]()
    # Invariant: low and high are 2^bits times bounds on Pr[G <= -m] = b^m/(1+b) = Pr[G > m - 1].
    for m in range(reach + 2):
        for floors, g, ends in ((below, -m, (low, high)), (above, m - 1, ((1 << bits) - high, (1 << bits) - low))):
            floor = ends[0] >> guard
            floors.append(floor if floor == ends[1] >> guard else _floor_cdf(epsilon, g, _WORD))
        low, high = low * b_low >> bits, -(-high * b_high >> bits)
    return np.array([*below[reach::-1], *above[2:]], dtype=np.uint64)


def _floor_cdf(epsilon: Fraction, g: int, bits: int) -> int:
    """The integer part of 2^bits Pr[G <= g]; Pr[G <= -m] = b^m/(1+b) for m >= 0, and Pr[G <= m] = 1 - Pr[G <= -m-1]."""
    m = -g if g <= 0 else g + 1
    p, q = epsilon.numerator, epsilon.denominator
    extra = 16
    # Invariant: the floor is not known yet. It is once both ends of the interval agree on it.
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
    """Return the g whose cell holds the uniform number that starts with this word, found with more of its bits."""
    uniform = UniformDigits(source, word, _WORD)
    # Invariant: the digits drawn so far are those of a threshold, or lie beyond the table.
    while True:
        uniform.extend(_WORD)
        value, bits = uniform.value, uniform.bits
        far = _reach(epsilon, bits)
        g = first_true(lambda g: _floor_cdf(epsilon, g, bits) >= value, -far, far)  # noqa: B023 - used at once
        if _floor_cdf(epsilon, g, bits) > value:
            return g
