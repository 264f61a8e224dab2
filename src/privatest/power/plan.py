"""Everything a planner asks about one pair at one epsilon, in one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privatest.bounds.lower_bound import advantage_bound, records_bound
from privatest.decision import PrivateTest
from privatest.decision.calibration import Goal, make_goal
from privatest.decision.design import design, sample_size, smallest_n
from privatest.decision.tuning import Tuner, make_tuner
from privatest.errors import Infeasible, InvalidInput
from privatest.facts import Described, Fact
from privatest.hypotheses import Pair
from privatest.hypotheses.parse import make_hypotheses
from privatest.numbers import Number
from privatest.privacy import Notion, make_notion
from privatest.privacy.notions import replaced
from privatest.progress_events import part
from privatest.theory import Decomposition, SampleComplexity, decompose_pair, sample_complexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


REGIMES = {
    "tails": "what privacy caps decides the size",
    "core": "what privacy leaves alone decides the size",
    "free": "privacy caps nothing at this epsilon",
}


@dataclass(frozen=True)
class Plan(Described):
    """A designed test, how close it is to the best possible one, and what privacy costs.

    Guarantees: error rates are exact; no epsilon-DP test meets the goal with fewer than ``lower_bound`` records, and
    none on n records has an advantage above ``best_advantage``. Of sets of distributions these and all other bounds are
    those of the two members found that are the hardest to tell apart.

    Attributes:
        design: the test, ready to run; its ``n`` is the smallest that meets the goal, or the one that was asked for.
        goal: what n was chosen to meet; None when n was given.
        nonprivate: records that the likelihood-ratio test needs for the goal without privacy, never more than n; None
            when n was given.
        nonprivate_advantage: advantage of the likelihood-ratio test on n records; None unless n was given, and where
            n records of a ratio without bounds could add up to more than 64 bits.
        complexity: what the paper's theorem says, with the regime.
        split: the paper's decomposition at this epsilon; of other notions, at that of the pure one that allows one
            record as much, and so for ``complexity``.
        n_other: the records that the goal needs with the other ``release``: of the decision alone where the design
            releases its statistic, of the statistic where it does not; None where there is no such test.
        lower_bound: no private test meets the goal with fewer records; None when n was given.
        best_advantage: no private test on n records has a larger one; None unless n was given.
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
        """How many times as many records as every private test needs; 1 is the best possible."""
        return None if not self.lower_bound else self.n / self.lower_bound

    @property
    def cost_of_privacy(self) -> float | None:
        """How many times as many records as without privacy."""
        return None if not self.nonprivate else self.n / self.nonprivate

    def plot(self, ax: Axes | None = None) -> Axes:
        """The law of the noisy statistic under P and under Q, with the threshold: that of :attr:`design`."""
        return self.design.plot(ax)

    @property
    def title(self) -> str:
        """Names the question."""
        return f"Plan for {self.design.null} against {self.design.alternative}"

    def facts(self) -> list[Fact]:
        """The test's, and beside them what is possible at all, what privacy costs and what limits the size."""
        why = "as asked" if self.goal is None else f"the fewest for {self.goal}"
        test = [
            Fact("n", self.n, f"{fact.meaning}; {why}") if fact.name == "n" else fact for fact in self.design.facts()
        ]
        ratio, cost = self.ratio_to_bound, self.cost_of_privacy
        other = ("decision", "statistic")[self.design.released != "statistic"]
        return [
            *test,
            Fact(f"n_{other}", self.n_other, f"records with release='{other}'"),
            Fact("lower_bound", self.lower_bound, "no private test needs fewer"),
            Fact("ratio_to_bound", ratio, "times that; 1 is the best possible"),
            Fact("nonprivate", self.nonprivate, "records without privacy"),
            Fact("cost_of_privacy", cost, "times that"),
            Fact("best_advantage", self.best_advantage, "no private test has a larger one"),
            Fact("nonprivate_advantage", self.nonprivate_advantage, "of the likelihood ratio, not private"),
            Fact("regime", self.complexity.regime, REGIMES[self.complexity.regime]),
            Fact("free_epsilon", self.complexity.free_epsilon, "from which on nothing is capped"),
            Fact("tau", self.split.tau, "mass that privacy caps"),
            Fact("epsilon_prime", self.split.epsilon_prime, "the paper's clamp's other end"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (infinity as the text "inf"): every fact by its name, and the theorem's."""
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
    """What to expect of a test of P against Q at privacy epsilon, before any data are seen.

    Args:
        null, alternative, epsilon, privacy: as for :func:`privatest.design`.
        n: number of records; None: the smallest that meets the goal.
        advantage, alpha, beta: as for :func:`privatest.sample_size`.
        test, clamp, threshold, neighbours, max_rows_per_unit, release: as for :func:`privatest.design`.

    >>> found = plan("bernoulli(0.6)", "bernoulli(0.4)", epsilon=1)
    >>> found.n, found.lower_bound, found.nonprivate, found.complexity.regime
    (29, 29, 23, 'free')
    """
    notion = make_notion(epsilon, privacy)
    asked = make_hypotheses(null, alternative)
    pair = asked.pair
    goal = None if n is not None else make_goal(advantage, alpha, beta)
    with part("planning", 4) as tell:
        tell(0)
        made = design(
            asked.null,
            asked.alternative,
            privacy=notion,
            n=n,
            test=test,
            clamp=clamp,
            threshold=threshold,
            alpha=alpha,
            beta=beta,
            advantage=advantage,
            neighbours=neighbours,
            max_rows_per_unit=max_rows_per_unit,
            release=release,
        )
        tell(1)

        def other_family(goal: Goal, rival: str) -> Tuner:
            arguments = asked.null, asked.alternative, epsilon, test, clamp, threshold, goal, neighbours
            return make_tuner(*arguments, max_rows_per_unit, privacy, rival)

        return _beside(made, pair, notion, n, alpha, goal, test, other_family, tell)


def _beside(
    made: PrivateTest,
    pair: Pair,
    notion: Notion,
    n: int | None,
    alpha: float | None,
    goal: Goal | None,
    test: str,
    other_family: Callable[[Goal, str], Tuner],
    tell: Callable[[int], None],
) -> Plan:
    """The plan of a test: what is possible at all, and without privacy."""
    P, Q = pair.null, pair.alternative
    # One record replaced is one removed and one added, so an add-remove test is 2 epsilon-DP under replacement.
    pure = notion.equivalent
    level = notion if made.neighbours == "replace" else replaced(notion)
    complexity, split = sample_complexity(P, Q, epsilon=pure), decompose_pair(pair, float(pure))
    tell(2)
    if n is not None or goal is None:
        without = _without_privacy(P, Q, pure, made.n, alpha)
        best = None if level is None else advantage_bound(pair, level, made.n)
        return Plan(made, None, None, None, best, without, complexity, split)
    bound = None if level is None else records_bound(pair, level, goal)
    tell(3)
    nonprivate = _nonprivate(P, Q, pure, goal)
    # Nobody needs more without privacy: the private test would do, whose noise is the coin that the ratio lacks.
    if nonprivate is not None:
        nonprivate = min(nonprivate, made.n)
    other = None
    if test == "tight" and made.neighbours == "replace" and not made.two_sided:
        rival = "decision" if made.released == "statistic" else "statistic"
        # The decision alone never needs more records, and nothing fewer than the bound.
        between = (bound, made.n) if rival == "decision" and bound is not None else None
        other = made.n if rival == "decision" and made.n == bound else smallest_n(other_family(goal, rival), between)
    return Plan(made, goal, bound, nonprivate, None, None, complexity, split, other)


def _without_privacy(P: Any, Q: Any, epsilon: Number, n: int, alpha: float | None) -> float | None:
    try:
        return design(P, Q, epsilon=epsilon, n=n, test="llr", alpha=alpha).advantage
    except InvalidInput:  # the private test is designed already: it is the ratio without a clamp that is too large
        return None


def _nonprivate(P: Any, Q: Any, epsilon: Number, goal: Goal) -> int | None:
    try:
        return sample_size(
            P, Q, epsilon=epsilon, test="llr", advantage=goal.advantage, alpha=goal.alpha, beta=goal.beta
        )
    except Infeasible:
        return None
