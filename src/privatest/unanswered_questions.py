"""Questions that analysts ask and this version does not answer: why not, and what to ask instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import CO_VARKEYWORDS
from typing import ParamSpec, TypeVar

from privatest.errors import InvalidInput


@dataclass(frozen=True)
class Unanswered:
    """A question that this version does not answer.

    Attributes:
        words: names by which users ask it: of a family, an argument or a function.
        reason: why it is not answered.
        instead: the call that answers it, or that comes nearest.
    """

    words: str
    reason: str
    instead: str


TABULATE = "pt.tabulate(data, between=(low, high), cells=50, epsilon=1)"
COLUMNS = "needs two columns of each record, and this version reads one"
MEDIAN, MEAN = (f"pt.estimate(data, {what!r}, between=(low, high), epsilon=1)" for what in ("median", "mean"))
TWO_UNKNOWN = Unanswered(
    "",
    "Two unknown parameters are estimated from a noisy table of the records, and more than two are not",
    "Use pt.estimate(data, 'normal(mean=?, sd=?)', between=(low, high), sd_between=(low, high), epsilon=1). Or give a "
    "number or a range for all but one, such as 'normal(mean=?, sd=2)' or 'normal(mean=?, sd in [1, 3])'.",
)
SEVERAL_COLUMNS = Unanswered(
    "", f"A question about several columns {COLUMNS}", "Ask about one column, or make one label of both columns first."
)
MORE_GROUPS = Unanswered(
    "anova kruskal arms groups",
    "This version compares two groups at a time, by their shares",
    "Keep the rows of two groups, and divide alpha by the number of comparisons.",
)
UNANSWERED = (
    Unanswered(
        "median quantile percentile iqr",
        "A median or quantile is no family and has no question mark: it is estimated for every law of the records",
        f"Use {MEDIAN}, or 'quantile(0.9)'. Or estimate the share above a public cut, "
        "'share_above(cut, ?)', or test a public value: 'median(cut)' against 'median_above(cut, 0.6)'.",
    ),
    Unanswered(
        "mean average ttest t_test",
        "A mean is no family and has no question mark: it is estimated for every law of the records",
        f"Use {MEAN}, or name a distribution, such as 'normal(mean=?, sd=?)' or "
        "'normal(mean=?, sd in [1, 3])', or ask for the share above a public cut, 'share_above(cut, ?)'.",
    ),
    Unanswered(
        "variance var sd std stdev",
        "A spread is estimated as a parameter of a distribution",
        "Use pt.estimate(data, 'normal(mean=?, sd=?)', between=(low, high), sd_between=(low, high), epsilon=1). If the "
        "mean is public, write 'normal(mean=0, sd=?)'.",
    ),
    Unanswered(
        "histogram counts value_counts sum total",
        "A histogram is a noisy table of the records",
        f"Use {TABULATE}. Or ask for one share: 'categorical(label=?)' or 'share_above(cut, ?)'.",
    ),
    Unanswered(
        "correlation corr pearson spearman kendall covariance cov slope regression linear ols",
        f"A correlation or slope {COLUMNS}",
        "Compare two groups, parted by one column, in the share of the other above a public cut: "
        "pt.compare_groups(data, group=..., column=..., above=...).",
    ),
    Unanswered(
        "independent independence dependent contingency crosstab chi2_contingency joint multivariate_normal",
        f"A question about a joint distribution {COLUMNS}",
        "Where one column has two public values, use pt.compare_groups(data, group=..., column=..., success=...); "
        "otherwise make one label of both columns and give its probabilities to pt.goodness_of_fit.",
    ),
    MORE_GROUPS,
    Unanswered(
        "what statistic",
        "Groups are compared by shares: a comparison by mean or median needs a noisy table of each group, which this "
        "version does not compare",
        "Count numbers of at least a public cut, above=..., or a label, success=...",
    ),
    Unanswered(
        "by group groupby per",
        "Only a noisy table answers for each group",
        "Use pt.tabulate(data, column=..., by=..., groups=[...], between=(low, high), epsilon=1).groups. Two groups "
        "are compared by pt.compare_groups.",
    ),
    Unanswered(
        "paired pairs before after wilcoxon",
        f"A paired comparison {COLUMNS}",
        "Make one column of each person's difference first, and estimate the share of gains, 'share_above(0, ?)', or "
        "test 'median(0)' against 'median_above(0, 0.6)'.",
    ),
    Unanswered(
        "censored censoring censor event event_observed observed duration survival kaplan_meier hazard logrank cox",
        f"An answer about censored times {COLUMNS}: the time, and whether it was seen to end",
        "Choose a public time up to which everybody was followed, and estimate the share beyond it: "
        "'share_above(time, ?)'.",
    ),
    Unanswered(
        "trend drift seasonal autocorrelation",
        "A trend is not estimated by this version",
        "Compare two periods with pt.compare_groups, or look for a step with pt.detect_change.",
    ),
)


def unanswered(word: str) -> str:
    """Say why a question of this name is not answered, and what to ask instead; empty if it is not in the table.

    >>> unanswered("trend")
    'A trend is not estimated by this version. Compare two periods with pt.compare_groups, or look for a step with \
pt.detect_change.'
    """
    result = (one for one in UNANSWERED if word.lower() in one.words.split())
    return next((sentence(one) for one in result), "")


def sentence(one: Unanswered) -> str:
    """Return the reason and what to do instead, for a message."""
    return f"{one.reason}. {one.instead}"


P = ParamSpec("P")
R = TypeVar("R")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function refuse arguments that it does not have in words, before it reads anything.

    >>> @known_arguments
    ... def estimate(data, *, column=None): ...
    >>> estimate([], colunm="x")
    Traceback (most recent call last):
    privatest.errors.InvalidInput: estimate() has no argument 'colunm'. Did you mean 'column'?
    """
    code = function.__code__
    positional = code.co_argcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]
    ranges = bool(code.co_flags & CO_VARKEYWORDS)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in names and not (ranges and name.endswith("_between")):
                from privatest.numbers import suggestion  # start-up: only what fails needs it

                hint = unanswered(name) or suggestion(name, names).strip() or f"It has {', '.join(names)}."
                raise InvalidInput(f"{function.__name__}() has no argument {name!r}. {hint}")
        if len(args) > positional:
            more = f" {sentence(MORE_GROUPS)}" if "treatment" in names else ""
            raise InvalidInput(
                f"{function.__name__}() takes {' and '.join(names[:positional])} without a name, and {len(args)} were "
                f"given.{more} Write the names of other arguments, such as epsilon=1."
            )
        return function(*args, **kwargs)

    return checked
