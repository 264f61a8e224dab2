"""From P, Q and epsilon to a test whose error rates are exact and whose clamp and threshold are tuned."""

from __future__ import annotations

from typing import Any

from privatest import _validate
from privatest.errors import InvalidInput, shown
from privatest.hypothesis import PrivateTest
from privatest.power.family import make_family
from privatest.power.goal import Goal, make_goal
from privatest.power.sample_sizes import smallest_n
from privatest.rational import Number

__all__ = ["design"]


def design(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number,
    n: int | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    advantage: float | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
) -> PrivateTest:
    """A test of P (``null``) against Q (``alternative``).

    Args:
        null, alternative: frozen scipy distributions, mappings, arrays of probabilities, densities, text.
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        n: number of records, which is public. None: the smallest that meets ``advantage``, or ``alpha`` and ``beta``.
        test: "tight" (the default), or one of the paper's: "scllr", "ncllr", and "llr" and "sllr", which do not clamp
            and are not private.
        clamp: "tuned" (the default for "tight"): the ends with the best exact error rates for this n; "paper" (the
            default for the paper's tests): the decomposition's; or (a, b).
        threshold: decide "null" above it, in nats. None: for "tight" the one with the best exact error rates, for the
            paper's tests 0.
        alpha: keep the type I error at most this, and make the type II error small.
        neighbours: what the test must not tell apart. "replace": two data sets of n records, of which one differs.
            "add-remove": two data sets of which one has a record more; n is then the number you expect, for which the
            test is tuned, and is neither checked nor revealed.
        max_rows_per_unit: the most records of one person that a run uses (see ``unit`` of :meth:`PrivateTest.run`); all
            of them together are protected.

    >>> test = design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=29)
    >>> round(test.advantage, 4)
    0.6774
    """
    if threshold is not None and alpha is not None:
        raise InvalidInput(f"threshold={shown(threshold)} and alpha={shown(alpha)} were both given. Give one of them.")
    if n is None:
        goal = make_goal(advantage, alpha, beta)
        family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
        return family.test(smallest_n(family))
    n = _validate.positive_integer(n=n)
    if beta is not None or advantage is not None:
        name, value = ("beta", beta) if beta is not None else ("advantage", advantage)
        raise InvalidInput(
            f"{name}={shown(value)} and n={n} were both given, but n records have the power they have. Leave one out."
        )
    goal = Goal(advantage=0.0) if alpha is None else Goal(alpha=_validate.probability(alpha=alpha), beta=0.0)
    family = make_family(null, alternative, epsilon, test, clamp, threshold, goal, neighbours, max_rows_per_unit)
    return family.test(n)
