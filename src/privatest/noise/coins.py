r"""Exact coins from uniform integers: each function builds on the one above, none knows a float.

Probabilities are given by integers p, q with p/q the rational meant, q >= 1. Arguments are trusted
(the noises check theirs once). Expected cost is a few uniform integers whatever the size of p and q.

Reference: Canonne, Kamath, Steinke 2020, "The Discrete Gaussian for Differential Privacy", section 5.
Arguments: proof.md.
"""

from __future__ import annotations

from privatest.noise.randomness import Source

__all__ = ["bernoulli", "bernoulli_exp", "geometric", "sigmoid", "two_sided_geometric"]


def bernoulli(p: int, q: int, source: Source) -> bool:
    """True with probability p/q, for 0 <= p <= q."""
    return source.below(q) < p


def _bernoulli_exp_within_one(p: int, q: int, source: Source) -> bool:
    r"""True with probability exp(-p/q), for 0 <= p <= q.

    .. math:: \Pr[K > k] = (p/q)^k / k!, \qquad \Pr[K \text{ odd}] = \sum_k (-p/q)^k / k!
    """
    # Invariant: the coins (p/q)/1, ..., (p/q)/(k-1) all came up true. The first is certain when p = q.
    k = 2 if p == q else 1
    while source.below(q * k) < p:
        k += 1
    return k & 1 == 1


def bernoulli_exp(p: int, q: int, source: Source) -> bool:
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


def sigmoid(p: int, q: int, source: Source) -> bool:
    r"""True with probability 1/(1 + exp(-p/q)), for p >= 0: a Bernoulli race between 1 and exp(-p/q).

    Guarantees: exact; at most 2 rounds expected.
    """
    # Invariant: rounds that end nowhere leave the odds of the next round unchanged, 1 to exp(-p/q).
    while True:
        if source.bits(1):
            return True
        if bernoulli_exp(p, q, source):
            return False


def geometric(p: int, q: int, source: Source) -> int:
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


def two_sided_geometric(p: int, q: int, source: Source) -> int:
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
