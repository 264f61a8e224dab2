"""Plans: a designed test with its bounds, the cost of privacy, and the theorem's sample complexity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privatest.bounds.lower_bound import advantage_bound, records_bound
from privatest.decision import PrivateTest
from privatest.decision.clamp_tuning import Tuner
from privatest.decision.design import design_for
from privatest.decision.problem import Goal, Method, Problem
from privatest.errors import Infeasible, InvalidInput
from privatest.facts import Described, Fact
from privatest.hypotheses.parse import make_hypotheses
from privatest.numbers import Number
from privatest.privacy import Pure
from privatest.privacy.notion import replaced
from privatest.progress_events import part
from privatest.theory import Decomposition, SampleComplexity, decompose_pair, sample_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


REGIMES = {
    "tails": "the part that privacy caps determines the sample size",
    "core": "the part that privacy does not cap determines the sample size",
    "free": "privacy caps nothing at this epsilon",
}


@dataclass(frozen=True)
class Plan(Described):
    """A designed test, how close it is to the best possible one, and what privacy costs.

    Guarantees: error rates are exact; no epsilon-DP test meets the goal with fewer than ``lower_bound`` records, and
    none on n records has an advantage above ``best_advantage``. For sets of distributions these and all other bounds
    are those of the two members that are the hardest to tell apart.

    Attributes:
        design: the test. Its ``n`` is the smallest number that meets the goal, or the given one.
        goal: the goal that determined n; None if n was given.
        lower_bound: number of records that every private test needs for the goal; None if n was given.
        nonprivate: sample size of the likelihood-ratio test without privacy, at most n; None if n was given.
        best_advantage: upper bound on the advantage of every private test on n records; None unless n was given.
        nonprivate_advantage: advantage of the likelihood-ratio test on n records; None unless n was given, and if the
            sum of n unbounded ratios could exceed 64 bits.
        complexity: the paper's theorem, with the regime.
        split: the paper's decomposition at this epsilon. For other notions this and ``complexity`` are at the epsilon
            at which one record gains as much.
        n_other: sample size with the other ``release``, "decision" or "statistic"; None if there is no such test.
    """

    design: PrivateTest
    goal: Goal | None
    lower_bound: int | None
    nonprivate: int | None
    best_advantage: float | None
    nonprivate_advantage: float | None
    complexity: SampleComplexity
    split: Decomposition
    n_other: int | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return self.design.n

    @property
    def ratio_to_bound(self) -> float | None:
        """The sample size over the number that every private test needs; 1 is the best possible."""
        return None if not self.lower_bound else self.n / self.lower_bound

    @property
    def cost_of_privacy(self) -> float | None:
        """The sample size over that without privacy."""
        return None if not self.nonprivate else self.n / self.nonprivate

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the law of the noisy statistic under P and under Q, with the threshold."""
        return self.design.plot(ax)

    @property
    def title(self) -> str:
        """The question in a few words."""
        return f"Plan for {self.design.null} against {self.design.alternative}"

    def facts(self) -> list[Fact]:
        """Return the facts of the test, the best possible sample size, the cost of privacy, and the regime."""
        why = "as given" if self.goal is None else f"the fewest for {self.goal}"
        test = [
            Fact("n", self.n, f"{fact.meaning}; {why}") if fact.name == "n" else fact for fact in self.design.facts()
        ]
        ratio, cost = self.ratio_to_bound, self.cost_of_privacy
        other = ("decision", "statistic")[self.design.released != "statistic"]
        return [
            *test,
            Fact(f"n_{other}", self.n_other, f"records with release='{other}'"),
            Fact("lower_bound", self.lower_bound, "no private test needs fewer"),
            Fact("ratio_to_bound", ratio, "n over that; 1 is the best possible"),
            Fact("nonprivate", self.nonprivate, "records without privacy"),
            Fact("cost_of_privacy", cost, "n over that"),
            Fact("best_advantage", self.best_advantage, "no private test has a larger one"),
            Fact("nonprivate_advantage", self.nonprivate_advantage, "of the likelihood ratio, not private"),
            Fact("regime", self.complexity.regime, REGIMES[self.complexity.regime]),
            Fact("free_epsilon", self.complexity.free_epsilon, "from which on nothing is capped"),
            Fact("tau", self.split.tau, "probability mass that privacy caps"),
            Fact("epsilon_prime", self.split.epsilon_prime, "the other end of the paper's clamp"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON (infinity as the text "inf"): facts by name, and the theorem's values."""
        goal = None
        if self.goal is not None:
            goal = {name: value for name, value in vars(self.goal).items() if value is not None}
        return {**self.values(), "goal": goal, "complexity": self.complexity.to_dict()}


def plan(
    null: Any,
    alternative: Any,
    *,
    epsilon: Number | None = None,
    privacy: Any = None,
    n: int | None = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    test: str = "tight",
    clamp: str | tuple[Number, Number] | None = None,
    threshold: Number | None = None,
    neighbours: str = "replace",
    max_rows_per_unit: int = 1,
    release: str = "statistic",
) -> Plan:
    """Plan a test of P against Q: its sample size, its error rates and the cost of privacy, before any data are seen.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.design`.
        n: number of records; None: the smallest number that meets the goal.
        advantage, alpha, beta: as for :func:`privatest.sample_size`.
        test, clamp, threshold, neighbours, max_rows_per_unit, release: as for :func:`privatest.design`.

    >>> found = plan("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1)
    >>> found.n, found.lower_bound, found.nonprivate, found.complexity.regime
    (29, 29, 23, 'free')
    """
    problem = Problem.of(
        null, alternative, epsilon=epsilon, privacy=privacy, neighbours=neighbours, max_rows_per_unit=max_rows_per_unit
    )
    method = Method.of(test=test, clamp=clamp, threshold=threshold, release=release)
    with part("planning", 4) as tell:
        tell(0)
        designed = design_for(problem, method, n=n, advantage=advantage, alpha=alpha, beta=beta)
        tell(1)
        pair, privacy = problem.pair, problem.privacy
        # The likelihood-ratio test has no notion of privacy, so any can be named.
        plain = Problem(hypotheses=make_hypotheses(pair.null, pair.alternative), privacy=Pure(1))
        # One record replaced is one removed and one added, so an add-remove test is 2 epsilon-DP under replacement.
        level = privacy if designed.neighbours == "replace" else replaced(privacy)
        complexity = sample_complexity(pair.null, pair.alternative, epsilon=privacy.equivalent)
        split = decompose_pair(pair, float(privacy.equivalent))
        tell(2)
        if n is not None:
            return Plan(
                design=designed,
                goal=None,
                lower_bound=None,
                nonprivate=None,
                best_advantage=None if level is None else advantage_bound(pair, level, designed.n),
                nonprivate_advantage=_advantage_without_privacy(plain, designed.n, alpha),
                complexity=complexity,
                split=split,
            )
        goal = Goal.of(advantage=advantage, alpha=alpha, beta=beta)
        bound = None if level is None else records_bound(pair, level, goal)
        tell(3)
        return Plan(
            design=designed,
            goal=goal,
            lower_bound=bound,
            nonprivate=_size_without_privacy(plain, goal, designed.n),
            best_advantage=None,
            nonprivate_advantage=None,
            complexity=complexity,
            split=split,
            n_other=_other_size(problem, method, goal, designed, bound),
        )


def _advantage_without_privacy(problem: Problem, n: int, alpha: float | None) -> float | None:
    """Return the advantage of the likelihood-ratio test; None if its total on n records needs more than 64 bits."""
    try:
        return Tuner.of(problem, Method.of(test="llr"), Goal.best(alpha)).test(n).advantage
    except InvalidInput:
        return None


def _size_without_privacy(problem: Problem, goal: Goal, most: int) -> int | None:
    """Return the sample size without privacy, that of the likelihood-ratio test or of the private one; None if none.

    The private test can be the smaller one, because its noise is a coin that the likelihood ratio lacks.
    """
    try:
        return min(Tuner.of(problem, Method.of(test="llr"), goal).sample_size(), most)
    except Infeasible:
        return None


def _other_size(problem: Problem, method: Method, goal: Goal, designed: PrivateTest, bound: int | None) -> int | None:
    """Return the sample size with the other ``release``; None if there is no such test."""
    if method.test != "tight" or designed.neighbours != "replace" or designed.two_sided:
        return None
    if method.release == "decision":
        return Tuner.of(problem, replace(method, release="statistic"), goal).sample_size()
    # A test that releases its decision alone never needs more records, and never fewer than the bound.
    if designed.n == bound:
        return bound
    between = None if bound is None else (bound, designed.n)
    return Tuner.of(problem, replace(method, release="decision"), goal).sample_size(between)
