"""Every test side by side: how many records each needs, and how far that is from the best possible.

Beside our own tests stand other ways to test privately. Each such rival is a function n -> advantage at its best
threshold, computed with the same exact laws.

The same is told of one question under every notion of privacy, at budgets that convert into one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from privatest import numbers
from privatest.bounds.lower_bound import lower_bound, records_bound
from privatest.bounds.optimum import optimum_sample_size
from privatest.decision.problem import ADVANTAGE, Goal, Method, Problem
from privatest.decision.tuning import Profile, Tuner, profile_of
from privatest.decision.worst_case import sides_of
from privatest.errors import Infeasible, InvalidInput, MissingExtra
from privatest.facts import Tabled
from privatest.hypotheses import ContinuousPair, DiscretePair, Pair
from privatest.hypotheses.parse import hardest_pair, make_hypotheses
from privatest.laws.curves import Curves
from privatest.numbers import Floats, Number, first_true, root
from privatest.privacy import (
    Approx,
    Gdp,
    Kl,
    Laplace,
    Logistic,
    NoNoise,
    Notion,
    Pure,
    Renyi,
    Tulap,
    Tv,
    Zcdp,
    make_notion,
)
from privatest.privacy.notions import is_straight, notion_words
from privatest.progress_events import each, report_partial
from privatest.scores import whole_score
from privatest.scores.clamped import cell_masses
from privatest.theory.wasserstein import Histograms, merge

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MEAN_UNITS = 256


@dataclass(frozen=True, eq=False)
class Rival:
    """A named rival: its advantage on n records, and the n beyond which to stop looking."""

    name: str
    advantage: Callable[[int], float]
    few_values: bool = True
    short_cut: Callable[[int, float], bool] | None = None
    """Whether the advantage on n records is at least so much, where that can be said without computing all of it."""

    def reaches(self, n: int, target: float) -> bool:
        """Whether the advantage on n records is at least the target."""
        return self.advantage(n) >= target if self.short_cut is None else self.short_cut(n, target)


def rivals(pair: Pair, epsilon: Fraction) -> Iterator[Rival]:
    """All rivals that apply to the pair."""
    profile = profile_of(pair)
    yield Rival("sample and aggregate", *_sample_and_aggregate(pair, epsilon))
    values = _numbers(pair)
    if values is not None:
        yield Rival("clipped mean, Laplace", _clipped_mean(*values, epsilon), few_values=False)
    for name, chosen in _counted_sets(profile):
        yield Rival(name, _count(profile, chosen, epsilon))
    yield Rival("randomised response", _randomised_response(profile, epsilon))
    if len(profile.ratios) == 2:
        yield Rival("Awan-Slavkovic", _awan_slavkovic(profile, epsilon))


def _best(support: list[int], null: list[float], alternative: list[float], n: int, noise: object) -> float:
    """Advantage at the best cutoff; a mean that grows under Q is mirrored."""
    scores, laws = np.array(support, dtype=np.int64), (np.array(null), np.array(alternative))
    if float(laws[0] @ scores) < float(laws[1] @ scores):
        scores, laws = -scores[::-1], (laws[0][::-1], laws[1][::-1])
    return Curves(scores, *laws, n, noise).best_offset()[1]  # type: ignore[arg-type]


def _sample_and_aggregate(
    pair: Pair, epsilon: Fraction
) -> tuple[Callable[[int], float], bool, Callable[[int, float], bool]]:
    """Disjoint blocks, the likelihood-ratio test on each, a noisy count of the verdicts (Nissim et al. 2007)."""
    rates: dict[int, tuple[float, float]] = {}

    def block(size: int) -> tuple[float, float]:
        if size not in rates:
            score = whole_score(pair, size)
            curves = Curves(score.support, score.null_law, score.alternative_law, size, NoNoise())
            null, alternative = curves.cdfs(np.array([float(curves.best_offset()[0])]))
            rates[size] = float(null[0]), float(alternative[0])
        return rates[size]

    def sizes(n: int) -> list[int]:
        return sorted({max(round(n / blocks), 1) for blocks in (1, 2, 3, 5, 7, 9, 13, 19, 27, 41, 61, 101, 201, 501)})

    def with_blocks(n: int, size: int) -> float:
        alpha, power = block(size)
        return _best([0, 64], [1 - alpha, alpha], [1 - power, power], n // size, Tulap(epsilon, 64))

    def hopeless(n: int, size: int, target: float) -> bool:
        """A block's verdicts are at most sqrt(1 - (1 - H^2)^2m) apart, and k verdicts move a test by tanh(eps k/2)."""
        apart = math.sqrt(-math.expm1(2 * size * math.log1p(-min(pair.hellinger_squared, 1 - 1e-15))))
        return math.tanh(float(epsilon) * (n // size) * apart / 2) < target - 1e-9

    last = [1.0]  # how many blocks did best where it was last reached

    def reaches(n: int, target: float) -> bool:
        for size in sorted(sizes(n), key=lambda m: abs(math.log(n / m / last[0]))):
            if not hopeless(n, size, target) and with_blocks(n, size) >= target:
                last[0] = n / size
                return True
        return False

    return lambda n: max(with_blocks(n, size) for size in sizes(n)), True, reaches


def _numbers(pair: Pair) -> tuple[Floats, Floats, Floats] | None:
    """Records as numbers with their probabilities, where records are numbers."""
    if isinstance(pair, ContinuousPair):
        edges = pair.landmarks
        middles = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        return middles, cell_masses(pair.null, edges), cell_masses(pair.alternative, edges)
    assert isinstance(pair, DiscretePair)
    if pair.kind == "integers":
        return pair.first.astype(np.float64), pair.p, pair.q
    if all(isinstance(label, (int, float)) for label in pair.labels):
        return np.array(pair.labels, dtype=np.float64), pair.p, pair.q
    return None


def _clipped_mean(x: Floats, p: Floats, q: Floats, epsilon: Fraction) -> Callable[[int], float]:
    """The sum of records clipped to the best of a few symmetric intervals, with Laplace noise."""
    order = np.argsort(x)
    x, p, q = x[order], p[order], q[order]
    below = np.cumsum((p + q) / 2)
    middle = float(x[np.searchsorted(below, 0.5)])
    quarter = np.searchsorted(below, [0.16, 0.84])
    spread = float(x[min(quarter[1], len(x) - 1)] - x[quarter[0]]) / 2 or 1.0

    def law(reach: float) -> tuple[list[int], list[float], list[float]]:
        low, high = max(middle - reach, float(x[0])), min(middle + reach, float(x[-1]))
        steps = np.rint((np.clip(x, low, high) - low) / (high - low) * _MEAN_UNITS).astype(np.int64)
        support, place = np.unique(steps, return_inverse=True)
        return support.tolist(), *(np.bincount(place, weights=m).tolist() for m in (p, q))

    laws = [law(spread * r) for r in (0.5, 0.8, 1.2, 1.6, 2.2, 3.0, 4.5)]
    noise = Laplace(Fraction(_MEAN_UNITS) / epsilon)
    return lambda n: max(_best(*each, n, noise) for each in laws)


def _counted_sets(profile: Profile) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    """The paper's S_{0} and S_{0,1}: the records that speak most for Q, then all that speak for Q."""
    lowest = profile.ratios <= profile.ratios[0]
    against = profile.ratios < 0
    if len(profile.ratios) <= 16 and not np.array_equal(lowest, against):
        yield "count of the strongest records", lowest
    yield "count of records for Q", against


def _count(profile: Profile, chosen: npt.NDArray[np.bool_], epsilon: Fraction) -> Callable[[int], float]:
    """A soft count: exponential mechanism on the number of records in the set, that is, logistic noise."""
    null, alternative = float(profile.p[chosen].sum()), float(profile.q[chosen].sum())
    noise = Logistic(64 / epsilon)
    return lambda n: _best([0, 64], [1 - null, null], [1 - alternative, alternative], n, noise)


def _randomised_response(profile: Profile, epsilon: Fraction) -> Callable[[int], float]:
    """Local model: each record tells whether it speaks for P, and lies with probability 1/(1 + e^epsilon)."""
    lie = 1 / (1 + math.exp(min(float(epsilon), 700.0)))  # beyond, doubles end
    true = [float(mass[profile.ratios > 0].sum()) for mass in (profile.p, profile.q)]
    null, alternative = (lie + (1 - 2 * lie) * share for share in true)
    return lambda n: _best([0, 1], [1 - null, null], [1 - alternative, alternative], n, NoNoise())


def _awan_slavkovic(profile: Profile, epsilon: Fraction) -> Callable[[int], float]:
    """The binomial test with continuous Tulap noise (Awan and Slavkovic 2018), by its own formula."""
    from scipy import stats

    b = math.exp(-float(epsilon))

    def tulap_cdf(x: Floats) -> Floats:
        whole = np.rint(x)
        inner = x - whole + 0.5
        with np.errstate(under="ignore"):
            lower = b ** np.maximum(-whole, 0.0) / (1 + b) * (b + inner * (1 - b))
            upper = 1 - b ** np.maximum(whole, 0.0) / (1 + b) * (b + (1 - inner) * (1 - b))
        return np.where(x <= 0, lower, upper)

    def advantage(n: int) -> float:
        counts = np.arange(n + 1)
        null, alternative = (stats.binom(n, mass[1]).pmf(counts) for mass in (profile.p, profile.q))
        cutoffs = np.arange(0, 2 * n + 1) / 2
        gaps = [float(np.sum((alternative - null) * tulap_cdf(c - counts))) for c in cutoffs]
        return max(gaps)

    return advantage


# Beyond this many times the tight test's n a rival is not followed.
_PATIENCE = 1000


@dataclass(frozen=True)
class ComparisonRow:
    """One test: the records it needs (None: never, or out of sight) and the ratios to bound and optimum."""

    test: str
    n: int | None
    ratio_to_bound: float | None
    ratio_to_optimum: float | None
    private: bool
    note: str = ""


@dataclass(frozen=True)
class Comparison(Tabled):
    """Rows sorted by n; prints as a table, exports to a DataFrame.

    Attributes:
        rows: one for each test: its name, the records that it needs, and their ratio to the bound.
        epsilon: privacy loss at which they are compared.
        advantage: what every test must reach.
        lower_bound: records that no private test can do without.
        optimum: records that the best private test needs; None where the domain is too large to enumerate.
        null, alternative: short descriptions of P and Q.
    """

    rows: tuple[ComparisonRow, ...]
    epsilon: float
    advantage: float
    lower_bound: int
    optimum: int | None
    null: str = "P"
    alternative: str = "Q"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Records that each test needs, beside the bound and the optimum."""
        from privatest import pictures

        return pictures.comparison(self, ax)

    HEADINGS: ClassVar[tuple[str, ...]] = ("test", "records", "/ bound", "/ best", "private", "note")

    @property
    def title(self) -> str:
        """What the numbers are for."""
        return f"Records for advantage {self.advantage:.4g} at epsilon {self.epsilon:g}"

    @property
    def ending(self) -> str:
        """What no test can beat."""
        best = "not enumerable" if self.optimum is None else f"{self.optimum:,}"
        return f"No private test needs fewer than {self.lower_bound:,}; the best possible: {best}."

    def entries(self) -> list[tuple[object, ...]]:
        """The rows."""
        return [(r.test, r.n, r.ratio_to_bound, r.ratio_to_optimum, r.private, r.note) for r in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise MissingExtra("to_dataframe() needs pandas: pip install pandas.") from None
        return pd.DataFrame([asdict(row) for row in self.rows])

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)


def compare(null: Any, alternative: Any, *, epsilon: Number, advantage: float = ADVANTAGE) -> Comparison:
    """How many records every test needs, with the ratio to the lower bound and, where enumerable, to the optimum.

    Of sets of distributions: for the worst members of each, beside the bounds of the two that are the hardest to tell
    apart. Tests that have no worst case over sets are left out.

    Args:
        null, alternative, epsilon: as for :func:`privatest.design`.
        advantage: what every test must reach, 1 - alpha - beta.
    """
    problem = Problem.of(null, alternative, epsilon=epsilon)
    budget, pair, simple = problem.privacy.equivalent, problem.pair, problem.hypotheses.simple
    plain = replace(problem, hypotheses=make_hypotheses(pair.null, pair.alternative))
    target = numbers.probability(advantage=advantage)
    bound = lower_bound(pair.null, pair.alternative, epsilon=budget, advantage=target)
    best = _optimum(pair, budget, target)
    rows: list[tuple[str, int | None, bool, str]] = []

    def add(name: str, n: int | None, private: bool, note: str) -> None:
        rows.append((name, n, private, note))
        report_partial(_rows(rows, bound, best))

    hardest = "" if simple else ", of the hardest pair alone"
    ours = [
        ("tight", Method.of(), "the default"),
        ("tight, paper's clamp", Method.of(clamp="paper"), ""),
        ("stair", Method.of(release="decision"), "only the decision leaves"),
        ("ncLLR", Method.of(test="ncllr"), "as the paper defines it"),
        ("scLLR", Method.of(test="scllr"), "as the paper defines it"),
        ("LLR", Method.of(test="llr"), f"not private{hardest}"),
        ("sLLR", Method.of(test="sllr"), f"not private at this epsilon{hardest}"),
    ]
    if sides_of(problem.hypotheses).above:  # a two-sided test is tight
        ours = [row for row in ours if row[0] not in ("stair", "ncLLR", "scLLR")]
    for name, method, note in each("the paper's tests", ours):
        tuner = Tuner.of(problem if method.private else plain, method, Goal(advantage=target))
        try:
            add(name, tuner.sample_size(), method.private, note)
        except Infeasible:
            add(name, None, method.private, "never reaches it with its threshold 0")
    patience = _PATIENCE * (rows[0][1] or 1)
    for rival in each("other ways to test", list(rivals(pair, budget)) if simple else []):
        n = _rival_size(rival, target, patience)
        add(rival.name, n, True, "" if n is not None else f"more than {_PATIENCE} times the default's")
    if best is not None:
        rows.append(("optimum", best, True, "linear program over all tests"))
    names = problem.null.describe(), problem.alternative.describe()
    return Comparison(_rows(rows, bound, best), float(budget), target, bound, best, *names)


def _rows(found: list[tuple[str, int | None, bool, str]], bound: int, best: int | None) -> tuple[ComparisonRow, ...]:
    """The rows of what is known of some tests, those that need the fewest records first."""
    ordered = sorted(found, key=lambda row: math.inf if row[1] is None else row[1])
    return tuple(
        ComparisonRow(
            name, n, None if n is None else n / bound, None if n is None or not best else n / best, private, note
        )
        for name, n, private, note in ordered
    )


def _optimum(pair: Any, epsilon: Number, target: float) -> int | None:
    if not isinstance(pair, DiscretePair):
        return None
    try:
        return optimum_sample_size(pair.null, pair.alternative, epsilon=epsilon, advantage=target)
    except InvalidInput:  # too large to enumerate, or an infinite domain
        return None


def _rival_size(rival: Rival, target: float, most: int) -> int | None:
    """The smallest n at which the rival reaches the target and, looking a little ahead, keeps it."""
    known: dict[int, bool] = {}

    def reaches(n: int) -> bool:
        if n not in known:
            known[n] = rival.reaches(n, target)
        return known[n]

    n = first_true(reaches, 1, most=2 * most)
    if n > 2 * most:
        return None
    if rival.few_values and n < 2000:
        dips = [m for m in range(n + 1, n + 25) if not reaches(m)]
        n = dips[-1] + 1 if dips else n
    return n


ASKED, WEAKER, STRONGER = "as asked", "follows from it", "is enough for it"
MOST_STRAIGHT, MOST_CURVED = 2000, 250
"""Histograms up to which the best test is looked for: a linear program, and one that is solved a dozen times."""


@dataclass(frozen=True)
class NotionRow:
    """One notion at one budget.

    Attributes:
        privacy: its text.
        relation: to what was asked: "as asked", "follows from it" (it promises less) or "is enough for it" (more).
        optimum: records that the best test needs; None where that is too large to compute.
        lower_bound: records that every test needs, whatever the domain.
    """

    privacy: str
    relation: str
    optimum: int | None
    lower_bound: int


@dataclass(frozen=True)
class NotionComparison(Tabled):
    """Rows from the strongest promise to the weakest, as far as they are ordered; prints as a table.

    Attributes:
        rows: one for each notion and budget.
        privacy: the notion that was asked about.
        goal: what the records are enough for.
        null, alternative: short descriptions of P and Q.
    """

    rows: tuple[NotionRow, ...]
    privacy: str
    goal: str
    null: str
    alternative: str

    HEADINGS: ClassVar[tuple[str, ...]] = ("privacy", "", "best", "at least", "/ asked")

    @property
    def title(self) -> str:
        """What the numbers are for."""
        return f"Records for {self.goal} under the notions that {self.privacy} converts into or follows from"

    @property
    def ending(self) -> str:
        """How to read it."""
        return "No test needs fewer than 'at least'; a dash: too many records for the best test to be computed."

    @property
    def asked(self) -> NotionRow:
        """The row of what was asked."""
        return next(row for row in self.rows if row.relation == ASKED)

    def entries(self) -> list[tuple[object, ...]]:
        """The rows, and their bounds beside that of what was asked."""
        own = self.asked.lower_bound
        return [(r.privacy, r.relation, r.optimum, r.lower_bound, r.lower_bound / own) for r in self.rows]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Records that each notion needs."""
        from privatest import pictures

        return pictures.notion_comparison(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __iter__(self) -> Iterator[NotionRow]:
        return iter(self.rows)


LARGEST_COMPARED = 500
"""Larger losses than this do not convert into one another in floating-point numbers."""


def compare_notions(
    null: Any,
    alternative: Any,
    *,
    privacy: Any = None,
    epsilon: Number | None = None,
    advantage: float | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    delta: Number = Fraction(1, 10**6),
    order: Number = 2,
) -> NotionComparison:
    """How many records a goal needs under every notion that the given one converts into, or that converts into it.

    Args:
        null, alternative: P and Q; of sets, the two members found that are the hardest to tell apart.
        privacy, epsilon: the notion asked about.
        delta: of the "approx" that is looked for; the one given, where that is approx.
        order: of the "renyi" that is looked for; the one given, where that is renyi.
        advantage, alpha, beta: as for :func:`privatest.lower_bound`.

    Guarantees: a notion that "follows" is what every test that keeps to the one asked keeps to as well, rounded to the
    safe side; so its best test needs no more records. One that "is enough" is the other way round.

    >>> found = compare_notions("bernoulli(0.4)", "bernoulli(0.6)", privacy="gdp(1)")
    >>> [(row.privacy, row.optimum) for row in found if row.privacy.startswith(("gdp", "pure"))]
    [('pure(0.8069)', 31), ('gdp(1)', 27)]
    """
    notion, goal = make_notion(epsilon, privacy), Goal.of(advantage=advantage, alpha=alpha, beta=beta)
    if notion.equivalent > LARGEST_COMPARED:
        raise InvalidInput(
            f"{notion_words(notion)} is more than {LARGEST_COMPARED}, beyond which notions do not convert. Use less."
        )
    of_approx = notion.delta if isinstance(notion, Approx) else Approx(1, delta).delta  # read and checked there
    of_renyi = notion.order if isinstance(notion, Renyi) else Renyi(order, 1).order
    pair = hardest_pair(null, alternative)
    kinds = _kinds(of_approx, of_renyi)
    stronger = {name: _enough(make, notion) for name, make in kinds.items() if name != notion.name}
    weaker = {name: _following(notion, name, of_approx, of_renyi) for name in kinds if name != notion.name}
    rows = [_row(each, STRONGER, pair, goal) for each in stronger.values() if each is not None]
    rows += [_row(notion, ASKED, pair, goal)]
    rows += [
        _row(each, WEAKER, pair, goal)
        for name, each in weaker.items()
        if each is not None and stronger.get(name) != each
    ]
    return NotionComparison(tuple(rows), notion.text, str(goal), pair.null.describe(), pair.alternative.describe())


def _kinds(delta: Fraction, order: Fraction) -> dict[str, Callable[[Fraction], Notion]]:
    """Each kind by its one budget."""
    return {
        "pure": Pure,
        "gdp": Gdp,
        "zcdp": Zcdp,
        "approx": lambda loss: Approx(loss, delta),
        "renyi": lambda bound: Renyi(order, bound),
        "kl": Kl,
        "tv": lambda eta: Tv(min(eta, Fraction(9999, 10_000))),
    }


def _following(notion: Notion, name: str, delta: Number, order: Number) -> Notion | None:
    """What follows of that kind, rounded up to four digits; None where nothing does."""
    given: dict[str, Number] = {"approx": {"delta": delta}, "renyi": {"order": order}}.get(name, {})
    try:
        found = notion.into(name, **given)
    except InvalidInput:
        return None
    if isinstance(found, Approx) and not found.loss:
        return None  # no more than tv says
    rounded = _rebuilt(found, up=True)
    return rounded if notion.implies(rounded) else found


def _enough(make: Callable[[Fraction], Notion], notion: Notion) -> Notion | None:
    """The largest budget of that kind from which the notion follows, rounded down to four digits; None if none does."""

    def follows(log_budget: float) -> bool:
        return make(_digits(math.exp(log_budget), up=False)).implies(notion)

    low, high = math.log(1e-4), math.log(50.0)
    if not follows(low) or follows(high):
        return None
    low, _ = root(lambda log_budget: not follows(log_budget), low, high, absolute=1e-5)
    return make(_digits(math.exp(low), up=False))


def _rebuilt(notion: Notion, *, up: bool) -> Notion:
    """With its budget, the first or the only one that is found, rounded."""
    values = list(notion.exact)
    place = 1 if isinstance(notion, Renyi) else 0
    values[place] = _digits(float(values[place]), up=up)
    return type(notion)(*values)


def _digits(value: float, *, up: bool) -> Fraction:
    """Four significant digits, rounded up or down; what is a hair off four digits is taken for them."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 3)
    steps = Fraction(repr(value)) / unit
    near = round(steps)
    if abs(steps - near) < Fraction(1, 10**4):
        return near * unit
    return (math.ceil(steps) if up else math.floor(steps)) * unit


def _row(notion: Notion, relation: str, pair: Pair, goal: Goal) -> NotionRow:
    bound = records_bound(pair, notion, goal)
    return NotionRow(notion.text, relation, _best_n(notion, pair, goal, bound), bound)


def _best_n(notion: Notion, pair: Pair, goal: Goal, bound: int) -> int | None:
    """Records of the best test, where that takes a moment."""
    if not isinstance(pair, DiscretePair):
        return None
    try:
        classes = merge(pair).count
    except InvalidInput:  # an infinite domain
        return None
    most = MOST_STRAIGHT if is_straight(notion) else MOST_CURVED
    if classes > 2 and Histograms(classes, math.ceil(1.2 * bound)).count > most:
        return None
    return optimum_sample_size(
        pair.null,
        pair.alternative,
        privacy=notion,
        advantage=goal.advantage,
        alpha=goal.alpha,
        beta=goal.beta,
    )
