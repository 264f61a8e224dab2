"""From whatever a user gives to distributions and pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatest.errors import InvalidDistribution, NothingToTest, shown
from privatest.hypotheses.continuous_pair import ContinuousPair
from privatest.hypotheses.discrete_pair import DiscretePair
from privatest.hypotheses.distribution import Distribution, Labels, check_probabilities
from privatest.hypotheses.integers import IntegerBlocks, Integers, ScipyIntegers
from privatest.hypotheses.mixture import mixed
from privatest.hypotheses.pair import Pair
from privatest.hypotheses.reals import NewScipyReals, Reals, ScipyReals
from privatest.hypotheses.text import parse

__all__ = ["as_distribution", "make_pair", "mixture"]

SAME = 1e-14
"""Total variation below which two distributions are taken to be one: no better than rounding."""
ACCEPTED = (
    "Give a frozen scipy distribution such as stats.norm(0, 1), a mapping from label to probability, "
    "an array of probabilities, density(logpdf, support=...), mixture(weights, parts) "
    "or text such as 'normal(0, 1)'."
)


def make_pair(null: Any, alternative: Any) -> Pair:
    """P and Q as a pair on their common domain.

    >>> round(make_pair("bernoulli(0.3)", {0: 0.5, 1: 0.5}).total_variation, 12)
    0.2
    """
    p, q = as_distribution(null, "null"), as_distribution(alternative, "alternative")
    pair = _match(p, q)
    if pair.total_variation < SAME:
        raise NothingToTest(
            f"null {p.describe()} and alternative {q.describe()} are the same distribution: there is nothing to test."
        )
    return pair


def _match(p: Distribution, q: Distribution) -> Pair:
    if isinstance(p, Reals) and isinstance(q, Reals):
        return ContinuousPair(p, q)
    if isinstance(p, Reals) or isinstance(q, Reals):
        smooth, other = ("null", "alternative") if isinstance(p, Reals) else ("alternative", "null")
        raise InvalidDistribution(
            f"{smooth} ({(p if smooth == 'null' else q).describe()}) is continuous but {other} "
            f"({(q if smooth == 'null' else p).describe()}) is discrete: both must be of one kind."
        )
    if isinstance(p, Labels) and isinstance(q, Labels):
        _check_same_labels(p, q)
        return DiscretePair.from_labels(p, q)
    return DiscretePair.from_integers(_as_integers(p, "null", q), _as_integers(q, "alternative", p))


def _as_integers(law: Distribution, name: str, other: Distribution) -> Integers:
    found = IntegerBlocks.from_labels(law) if isinstance(law, Labels) else law
    if not isinstance(found, Integers):
        raise InvalidDistribution(
            f"different domains: {name} ({law.describe()}) has labels that are no integers, "
            f"{other.describe()} lives on the integers."
        )
    return found


def _check_same_labels(p: Labels, q: Labels) -> None:
    of_p, of_q = set(p.labels), set(q.labels)
    if of_p == of_q:
        return
    sides = []
    for name, missing in (("alternative", of_p - of_q), ("null", of_q - of_p)):
        if missing:
            shown = sorted(map(repr, missing))
            listed = ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
            sides.append(f"{name} lacks {listed}")
    raise InvalidDistribution(
        f"null and alternative have different domains: {'; '.join(sides)}. Give a missing label probability 0."
    )


def as_distribution(given: Any, name: str = "distribution") -> Distribution:
    """``given`` as a distribution, or an error that says which forms are accepted.

    >>> as_distribution([0.5, 0.5]).kind, as_distribution("poisson(3)").kind
    ('labels', 'integers')
    """
    if isinstance(given, Distribution):
        return given
    if isinstance(given, str):
        return parse(given, name)
    if isinstance(given, Mapping):
        return Labels.from_mapping(given, name)
    if isinstance(given, (bool, int, float, complex, bytes, set, frozenset)) or given is None:
        raise InvalidDistribution(f"{name}={shown(given)} is not a distribution. {ACCEPTED}")
    if callable(given) and not hasattr(given, "rvs") and not hasattr(given, "logpdf"):
        raise InvalidDistribution(
            f"{name} is a function: wrap it as density(logpdf, support=(low, high)) if it is a log density."
        )
    found = _from_scipy(given, name)
    if found is not None:
        return found
    if isinstance(given, (list, tuple, np.ndarray)) or hasattr(given, "__array__"):
        return Labels.from_array(given, name)
    if isinstance(given, Iterable):
        return Labels.from_array(list(given), name)
    raise InvalidDistribution(f"{name} of type {type(given).__name__} is not a distribution. {ACCEPTED}")


def mixture(weights: ArrayLike, parts: Sequence[Any], name: str = "mixture") -> Distribution:
    """The distribution that draws part i with probability ``weights[i]``.

    Guarantees: its density is the weighted sum of theirs, its cdf and complement stay accurate in their
    tails.

    >>> mixture([0.3, 0.7], ["normal(0, 1)", "normal(2, 1)"])
    mixture(0.3, normal(0, 1), 0.7, normal(2, 1))
    """
    count = check_probabilities(weights, f"{name} weights").size
    given = [parts] if isinstance(parts, (str, bytes)) else list(parts)
    if len(given) != count:
        raise InvalidDistribution(f"{name} has {count} weights for {len(given)} parts: give one part for each weight.")
    laws = [as_distribution(part, f"{name} part {index + 1}") for index, part in enumerate(given)]
    return mixed(weights, laws, name)


def _from_scipy(given: Any, name: str) -> Distribution | None:
    """A scipy distribution as ours; None if ``given`` is none of scipy's."""
    if not type(given).__module__.startswith("scipy.") and not hasattr(given, "dist") and not hasattr(given, "rvs"):
        return None
    found = _from_scipy_stats(given, name)
    if found is not None:
        return found
    if all(hasattr(given, word) for word in ("logpdf", "icdf", "iccdf", "ccdf", "support")):
        return _new_style(given, name)
    if type(given).__module__.startswith("scipy.") or hasattr(given, "rvs"):
        raise InvalidDistribution(
            f"{name} is a {type(given).__name__}, which is no univariate frozen scipy distribution. {ACCEPTED}"
        )
    return None


def _from_scipy_stats(given: Any, name: str) -> Distribution | None:
    """One of the classic distributions of ``scipy.stats``."""
    stats: Any = sys.modules.get("scipy.stats")
    if stats is None:  # then nobody can have made one
        return None
    if isinstance(given, stats.rv_histogram):  # has no parameters left to freeze
        given = given()
    if isinstance(given, (stats.rv_continuous, stats.rv_discrete)):
        if isinstance(given, stats.rv_discrete) and hasattr(given, "xk"):
            given = given()
        else:
            example = "stats.norm(0, 1)" if isinstance(given, stats.rv_continuous) else "stats.poisson(3)"
            raise InvalidDistribution(
                f"{name} is the scipy family {given.name!r} without parameters: freeze it, for example {example}."
            )
    family = getattr(given, "dist", None)
    if isinstance(family, stats.rv_continuous):
        _check_scalar(given, name)
        if family.name == "vonmises":
            raise InvalidDistribution(f"{name}: scipy's vonmises goes round for ever: use stats.vonmises_line instead.")
        return ScipyReals(given, name=name)
    if isinstance(family, stats.rv_discrete):
        _check_scalar(given, name)
        return ScipyIntegers(given, name=name)
    return None


def _check_scalar(frozen: Any, name: str) -> None:
    values = [*frozen.args, *frozen.kwds.values()]
    if any(np.ndim(value) > 0 and np.size(value) > 1 for value in values) and frozen.dist.name != "poisson_binom":
        raise InvalidDistribution(f"{name} holds an array of parameters: give one distribution with scalar parameters.")


def _new_style(given: Any, name: str) -> Distribution:
    """One of scipy's newer distribution objects, such as stats.Normal(mu=0, sigma=1)."""
    if "Discrete" in "".join(base.__name__ for base in type(given).__mro__):
        raise InvalidDistribution(
            f"{name} is a new-style discrete scipy distribution: use the classic one, such as stats.binom(10, 0.5)."
        )
    return NewScipyReals(given, name)
