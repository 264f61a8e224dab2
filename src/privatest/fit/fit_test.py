"""The private goodness-of-fit test: its design (``pt.design_fit``), its release, and ``pt.goodness_of_fit``.

A finite P is taken as it is, a continuous or infinite one is cut into bins (:func:`read_domain`). Every engine counts
the records of each symbol (:func:`histogram`). The sample size is found by the normal approximation first, then by
exact error rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import engines, numbers
from privatest.charge_before_release import Draw
from privatest.decision import Release
from privatest.decision.run import Budgeted, advantage_fact, check_better_than_a_coin, cost_fact, hidden_fact
from privatest.engines.records import check_count, counting_score
from privatest.errors import Infeasible, InvalidDistribution, InvalidInput, shown
from privatest.facts import Fact, Probability
from privatest.fit.candidate_statistics import (
    METHODS,
    Alternative,
    FitStatistic,
    Recipe,
    Target,
    largest_distance,
    ranked,
    recipes,
)
from privatest.fit.excess_law import ACCURACY, Excess
from privatest.hypotheses import Distribution, Labels, Reals, WholeNumbers, as_distribution
from privatest.laws import IntegerLaw
from privatest.numbers import Floats, Integers, Number, first_true, first_true_near
from privatest.privacy import (
    Noise,
    Notion,
    Pure,
    RandomSource,
    canonical_noise,
    make_notion,
)
from privatest.privacy.bulk_draws import draw_rows
from privatest.privacy.notion import notion_words
from privatest.progress_events import searching
from privatest.scores import Cells, EdgeCells, IntegerCells, LabelCells
from privatest.unanswered_questions import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_SYMBOLS = 1 << 20
# A finite set of integers up to this size is taken as it is.
MOST_INTEGERS = 1 << 12
MOST_BINS = 1 << 16


@dataclass(frozen=True, eq=False)
class Domain:
    """Symbols with their probabilities under P.

    Attributes:
        cells: which symbol a record is; what makes no sense is counted as the most likely symbol.
        probabilities: P, one number for each symbol.
        null: short description of P.
        bins: how P was cut, or None for a domain that is finite as given.
    """

    cells: Cells
    probabilities: Floats
    null: str
    bins: str | None = None

    def __post_init__(self) -> None:
        p = self.probabilities
        if p.ndim != 1 or not np.all(p >= 0) or not abs(math.fsum(p.tolist()) - 1) < 1e-9:
            raise InvalidInput("The probabilities of the null do not sum to 1.")
        if self.cells.count != len(p):
            raise InvalidInput(f"The null has {len(p)} probabilities for {self.cells.count} cells.")


def read_domain(null: Any, distance: float, bins: int | None = None) -> Domain:
    """P over a finite set of symbols.

    Continuous and infinite P are cut into about ``bins`` bins of equal probability, by default 4/distance: where a
    density crosses that of P inside a bin, at most the bin's mass, a quarter of the distance, is lost.
    """
    law = as_distribution(null, "null")
    if bins is not None:
        bins = numbers.positive_integer(bins=bins)
        if not 2 <= bins <= MOST_BINS:
            raise InvalidInput(f"bins={bins} must lie between 2 and {MOST_BINS}.")
    domain = _of(law, distance, bins)
    k = len(domain.probabilities)
    if k > MOST_SYMBOLS:
        raise InvalidDistribution(f"null {domain.null} has {k} outcomes, more than {MOST_SYMBOLS}. Pool some.")
    if k < 2:
        raise InvalidDistribution(f"null {domain.null} has a single outcome: there is nothing to test.")
    return domain


def _of(law: Distribution, distance: float, bins: int | None) -> Domain:
    wanted = bins if bins is not None else min(math.ceil(4 / distance), MOST_BINS)
    if isinstance(law, Reals):
        return _equal_bins(law, wanted)
    if isinstance(law, WholeNumbers):
        lo, hi = law.support
        if bins is None and hi - lo < MOST_INTEGERS:
            whole = np.arange(int(lo), int(hi) + 1, dtype=np.int64)
            p = _normalised(law.pmf(whole.astype(np.float64)))
            return Domain(IntegerCells(whole, int(hi)), p, law.describe())
        return _integer_bins(law, wanted)
    assert isinstance(law, Labels)
    if bins is not None:
        raise InvalidInput(
            f"bins={bins} does not apply to null {law.describe()}: its domain is finite. Leave bins out."
        )
    return Domain(LabelCells(law.labels), _normalised(law.probabilities), law.describe())


def _equal_bins(law: Reals, bins: int) -> Domain:
    edges = np.unique(law.ppf(np.arange(1, bins) / bins))
    low, high = law.support
    edges = edges[np.isfinite(edges) & (edges > low) & (edges < high)]
    masses = law.mass(np.append(low, edges), np.append(edges, high))
    text = f"{len(masses)} bins of equal probability"
    if len(masses) < 2:
        raise InvalidDistribution(f"null {law.describe()} cannot be cut into {bins} bins: its quantiles coincide.")
    return Domain(EdgeCells(tuple(edges.tolist()), low, high), _normalised(masses), law.describe(), text)


def _integer_bins(law: WholeNumbers, bins: int) -> Domain:
    lo, hi = law.support
    limits = np.iinfo(np.int64)
    ends = np.unique(law.ppf(np.arange(1, bins) / bins)).astype(np.int64)
    ends = ends[ends < hi]
    first = np.append(limits.min if math.isinf(lo) else int(lo), ends + 1).astype(np.int64)
    last = limits.max if math.isinf(hi) else int(hi)
    below = np.append(law.cdf(ends.astype(np.float64)), 1.0)
    p = _normalised(np.diff(below, prepend=0.0))
    return Domain(IntegerCells(first, int(last)), p, law.describe(), f"{len(p)} runs of integers, the tails pooled")


def _normalised(masses: Floats) -> Floats:
    """Probabilities that sum to 1; equal floats where they differ by rounding from a common value."""
    p = np.asarray(masses, dtype=np.float64) / math.fsum(masses.tolist())
    if np.all(np.abs(p * len(p) - 1) < 1e-9):
        return np.full(len(p), 1 / len(p))
    return p


def histogram(records: engines.Records, cells: Cells, odd: int, source: RandomSource) -> Integers:
    """Counts of the symbols; records that make no sense count as symbol ``odd``.

    Of persons who have more rows than count, rows are drawn from ``source``. The counts are raw: they must not leave
    the process except through a test's noise.
    """
    records.check(counting_score(cells))
    return symbols(np.array(records.histogram(cells, partial(draw_rows, source)), dtype=np.int64), odd)


def symbols(counts: Integers, odd: int) -> Integers:
    """Counts of the cells, the odd cell last, as counts of the symbols."""
    counts_of_symbols = counts[:-1].copy()
    counts_of_symbols[odd] += counts[-1]
    return counts_of_symbols


@dataclass(frozen=True)
class FitRelease(Release):
    """The outcome of running a goodness-of-fit test on data.

    Guarantees: decision, statistic and pvalue are computed from the noisy statistic alone. So together they meet the
    test's notion of privacy.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they come from some law away from P).
        statistic: the mean of T under P minus the noisy T, per record and width. 0 is expected under P; small values,
            down to about minus the distance, speak against it.
        pvalue: probability under P of a statistic at most this large.
        epsilon: privacy loss of this release.
        n: number of records, which is public.
        test: the method, "binomial", "direct" or "uniformity".
        neighbours: which pairs of data sets the guarantee compares.
        simulated: whether the caller's generator drew the noise. Such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the test that was run; None in a release that was read from a document.
    """

    statistic: float
    pvalue: float

    KIND: ClassVar[str] = "Goodness of fit"
    SMALLEST_PVALUE: ClassVar[float] = 1e-6
    AWAY: ClassVar[str] = "some law away from P"

    @property
    def sentence(self) -> str:
        """The decision, and how records that make no sense may have caused it."""
        counts = "privatest.check counts them, odd_epsilon= tells their share"
        if self.odd_share is not None:
            counts = f"they are {self.odd_share:.3g} of all, give or take {self.odd_margin:.2g}"
        return (
            f"{super().sentence} Records that are missing, unreadable or of no cell count as the likeliest one: "
            f"{counts}."
        )


MANY_SYMBOLS = 100
"""With more symbols the normal approximation is more accurate, and exact error rates take longer."""
EXACT_ALTERNATIVES = {False: 5, True: 2}
"""Number of alternatives, the hardest by the normal approximation, whose error is computed exactly; True: if many."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FitTest(Budgeted[FitRelease]):
    r"""Decide "alternative" when :math:`T(N) + \text{noise} > \kappa`, else "null", for the histogram N of the data.

    Guarantees: a run meets the notion (replace one record, n public): the noise hides any change of T that one
    person can make, which is checked when the object is made, however it is made. The type I error is at most ``alpha``
    and the type II error at most ``beta``, as stated there.

    Attributes:
        method: "binomial", "direct" or "uniformity".
        excess: the statistic T.
        domain: the symbols and P.
        notion: the notion of privacy that every run meets.
        noise: what is added to T.
        cutoff: kappa.
        distance: the total variation distance from P (after binning) that the test is to detect.
        n: number of records.
        max_rows_per_unit: the largest number of rows of one person that the noise hides, if a run names the ``unit``.
    """

    FORMAT: ClassVar[str] = "privatest/fit/1"
    KIND: ClassVar[str] = "fit test"
    REQUEST_KEY: ClassVar[str] = "fit"

    method: str
    excess: Excess = field(metadata={"key": "statistic"})
    domain: Domain
    notion: Notion = field(metadata={"key": "privacy"})
    noise: Noise
    cutoff: Fraction
    distance: float
    n: int
    max_rows_per_unit: int = 1

    def __post_init__(self) -> None:
        numbers.choice(("binomial", *METHODS[1:]), method=self.method)
        numbers.probability(distance=self.distance)
        numbers.positive_integer(n=self.n)
        numbers.positive_integer(max_rows_per_unit=self.max_rows_per_unit)
        excess, symbols = self.excess, len(self.domain.probabilities)
        if excess.symbols != symbols:
            raise InvalidInput(f"The statistic has {excess.symbols} symbols and the data have {symbols}.")
        excess.check_total(self.n)
        reach = self.max_rows_per_unit * excess.width
        if not self.noise.total_leaves or not self.noise.meets(self.notion, reach):
            met = self.noise.guarantee(reach)
            raise InvalidInput(
                f"The noise meets {met or 'nothing'} for {self.max_rows_per_unit} rows of a person: it does not hide a "
                f"statistic of width {excess.width} at {notion_words(self.notion)}. Use more noise."
            )

    @cached_property
    def candidate(self) -> FitStatistic:
        """The statistic."""
        return FitStatistic(self.method, self.excess)

    @property
    def odd_symbol(self) -> int:
        """The symbol that a record which makes no sense counts as: the most likely one."""
        return int(np.argmax(self.domain.probabilities))

    @cached_property
    def null_law(self) -> IntegerLaw:
        """Law of T under P."""
        return self.candidate.law(self.domain.probabilities, self.n)

    @cached_property
    def alpha(self) -> float:
        """Type I error: probability of "alternative" under P, from the exact law of T (error below 1e-8)."""
        return self.null_law.sf(self.cutoff, self.noise)

    @cached_property
    def _hardest(self) -> tuple[float, Alternative]:
        """The largest type II error, and the alternative that attains it."""
        p = self.domain.probabilities
        target = Target(p, self.n, self.distance, self.notion, min(max(self.alpha, 1e-9), 1 - 1e-9))
        ranking = self.candidate.hardest(target, self.noise)
        # One is enough if the approximation says that errors are far below what is computed.
        looks = EXACT_ALTERNATIVES[len(p) > MANY_SYMBOLS] if ranking[0][0] > ACCURACY**2 else 1
        errors = [
            (self.candidate.law(alternative.q, self.n).cdf(self.cutoff, self.noise), alternative)
            for _, alternative in ranking[:looks]
        ]
        return max(errors, key=lambda pair: pair[0])

    @property
    def beta(self) -> float:
        """Type II error: the largest probability of "null" over the hardest alternatives at the distance.

        These have the smallest mean of T, for many choices of the symbols that gain and of those that lose. The
        probability is computed from the exact law of T (error below 1e-8).
        """
        return self._hardest[0]

    @property
    def hardest_alternative(self) -> str:
        """The kind of the alternative that attains ``beta``, in words."""
        return self._hardest[1].kind

    @property
    def hardest_law(self) -> Floats:
        """The alternative that attains ``beta``, one probability for each symbol."""
        return self._hardest[1].q

    @property
    def record_cells(self) -> Cells:
        """The cells of the symbols."""
        return self.domain.cells

    @property
    def outcome(self) -> type[FitRelease]:
        """The class of its releases."""
        return FitRelease

    def check(self, records: engines.Records) -> None:
        """Refuse records of a wrong type or number, and a test whose law cannot be computed."""
        records.check(counting_score(self.domain.cells))
        check_count(records.count(), self.n)
        _ = self.null_law

    def draw(self, records: engines.Records, source: RandomSource) -> Draw:
        """Draw the noisy statistic."""
        return str(self.draw_noisy(histogram(records, self.domain.cells, self.odd_symbol, source), source))

    def draw_noisy(self, counts: Integers, source: RandomSource) -> Fraction:
        """Draw the noisy T of a histogram, which is all that may leave the data.

        Args:
            counts: the number of records of each symbol.
            source: where randomness comes from.
        """
        return self.excess.of(counts) + self.noise.draw(source)

    def release(self, draw: str | Fraction, *, simulated: bool = False) -> FitRelease:
        """Compute decision, statistic and p-value from a noisy T: post-processing, which costs no privacy.

        Args:
            draw: the noisy statistic, in its lattice's units.
            simulated: whether the caller's generator drew it.
        """
        noisy = Fraction(draw)
        return FitRelease(
            decision="alternative" if noisy > self.cutoff else "null",
            statistic=(self.null_law.mean - float(noisy)) / (self.excess.width * self.n),
            # A value of T + N as large as this one or larger: just above the lattice value below it.
            pvalue=self.null_law.sf(noisy - Fraction(1, 2), self.noise),
            epsilon=self.epsilon,
            n=self.n,
            test=self.method,
            simulated=simulated,
            privacy=self._privacy_text,
        )

    def plot(self, ax: Axes | None = None, *, release: FitRelease | None = None) -> Axes:
        """Return the laws of the noisy statistic under P and the hardest alternative, the threshold, and a release."""
        from privatest import pictures

        return pictures.fit_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """A heading."""
        return f"Fit test {self.method!r} of {self.domain.null}, at distance {self.distance:g}"

    def facts(self) -> list[Fact]:
        """Return the question and the error rates."""
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        where = " between binned laws" if self.domain.bins else ""
        exact = f"exact to {ACCURACY:g}"
        return [
            Fact("null", self.domain.null + bins, "the null hypothesis P"),
            Fact("distance", self.distance, f"total variation from P{where} that is to be detected"),
            Fact("method", self.method, "the statistic"),
            cost_fact(self.notion, "of one run"),
            Fact("n", self.n, "records, public"),
            Fact("alpha", Probability(self.alpha), f"type I error: alternative under P; {exact}"),
            Fact("beta", Probability(self.beta), f"type II error: null at the distance, at most; {exact}"),
            advantage_fact(self.alpha, self.beta),
            Fact("hardest_alternative", self.hardest_alternative, "attains beta"),
            Fact("max_rows_per_unit", self._rows, "rows of one person that count, where unit= names the person"),
            hidden_fact("replace", persons=self.max_rows_per_unit > 1),
        ]

    def __hash__(self) -> int:
        return hash((self.method, self.cutoff, self.noise, self.distance, self.n))

    def __repr__(self) -> str:
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        return (
            f"FitTest({self.method!r}, null={self.domain.null}{bins}, symbols={len(self.domain.probabilities)}, "
            f"distance={self.distance:g}, {notion_words(self.notion)}, n={self.n}, "
            f"width={self.excess.width}, cutoff={float(self.cutoff):g}, neighbours='replace')"
        )


@dataclass(frozen=True, eq=False)
class FitPlan:
    """The task of a test, for any number of records."""

    domain: Domain
    distance: float
    notion: Notion
    alpha: float
    method: str
    rows: int = 1

    @property
    def recipes(self) -> list[Recipe]:
        return recipes(self.domain.probabilities, self.method)

    def target(self, n: int) -> Target:
        """Return the task for n records. Under ``pure``, each row of a person has its share of epsilon."""
        each = isinstance(self.notion, Pure)
        notion, rows = (self.notion.share(self.rows), 1) if each else (self.notion, self.rows)
        return Target(self.domain.probabilities, n, self.distance, notion, self.alpha, rows)

    def noises(self, width: int) -> list[Noise]:
        """The noises to choose from: each hides a person's k rows, by k widths at once or by k shares of epsilon."""
        together = canonical_noise(self.notion, self.rows * width)
        apart = isinstance(self.notion, Pure) and self.rows > 1
        return [canonical_noise(self.notion.share(self.rows), width), together] if apart else [together]


MOST_RECORDS_OF_A_FIT = 10**9
RESOLUTION = 0.01
"""How much larger a sample size may be than one that does not meet the targets, relative to it."""
ROUGHLY = 0.05
"""The same for the normal approximation."""


def designed(plan: FitPlan, n: int, choice: list[Recipe] | None = None) -> FitTest:
    """Return the test on n records with the best recipe, of all that the method allows or of a short list."""
    target = plan.target(n)
    candidate = ranked(target, choice or plan.recipes)[0].candidate(target)
    if candidate is None:
        raise Infeasible(f"n={n}: no statistic of so few records depends on the data. Use more records.")
    law = candidate.law(target.p, n)
    # The error of the law's probabilities is taken off the level, so that alpha holds.
    level = max(target.alpha - ACCURACY, target.alpha / 2)
    tests = [
        FitTest(
            method=candidate.method,
            excess=candidate.excess,
            domain=plan.domain,
            notion=plan.notion,
            noise=noise,
            cutoff=law.cutoff(level, noise),
            distance=target.distance,
            n=n,
            max_rows_per_unit=plan.rows,
        )
        for noise in plan.noises(candidate.excess.width)
    ]
    return tests[0] if len(tests) == 1 else min(tests, key=lambda test: test.beta)


def sample_size(plan: FitPlan, beta: float) -> int:
    """Return a number of records at which the design meets alpha and beta by its exact law."""
    guess, choice = rough_sample_size(plan, beta)
    with searching("records of a test of fit", 8) as looked:

        def enough(n: int, choice: list[Recipe] | None = choice) -> bool:
            looked()
            return designed(plan, n, choice).beta <= beta

        n = first_true_near(enough, guess, most=MOST_RECORDS_OF_A_FIT, step=0.02, within=RESOLUTION)
        # The short list was made for another n; the design for this n chooses from all recipes.
        while n <= MOST_RECORDS_OF_A_FIT and not enough(n, None):
            n += max(1, round(RESOLUTION * n))
    _check_reach(plan, n)
    return n


def rough_sample_size(plan: FitPlan, beta: float) -> tuple[int, list[Recipe]]:
    """The number of records at which the normal approximation meets the targets, and the best two recipes there."""

    def size(recipe: Recipe, guess: int) -> int:
        n = first_true_near(
            lambda n: recipe.error(plan.target(n)) <= beta, guess, most=MOST_RECORDS_OF_A_FIT, step=0.4, within=ROUGHLY
        )
        _check_reach(plan, n)
        return n

    n = size(plan.recipes[0], _order_of_magnitude(plan))
    choice = ranked(plan.target(n), plan.recipes)[:2]
    return n if choice[0] is plan.recipes[0] else size(choice[0], n), choice


def _order_of_magnitude(plan: FitPlan) -> int:
    """Half the sum of the theorem's four terms, which was within a factor of 3 of the sample size wherever we looked.

    sqrt(k) is replaced by the instance's own measure (sum of p^(2/3))^(3/2), which is sqrt(k) for uniform p (Valiant
    and Valiant).
    """
    root = float(np.sum(plan.domain.probabilities ** (2 / 3))) ** 1.5
    g, e = plan.distance, float(plan.notion.equivalent)
    terms = (root / g**2, root / (g * e**0.5), root ** (2 / 3) / (g ** (4 / 3) * e ** (2 / 3)), 1 / (g * e))
    order = max(round(0.5 * sum(terms)), 2)
    _check_reach(plan, order // 10)
    return min(order, MOST_RECORDS_OF_A_FIT)


def _check_reach(plan: FitPlan, n: int) -> None:
    if n > MOST_RECORDS_OF_A_FIT:
        raise Infeasible(
            f"distance={plan.distance:g} from a null with {len(plan.domain.probabilities)} outcomes at "
            f"{notion_words(plan.notion)} needs more than {MOST_RECORDS_OF_A_FIT} records. "
            "Use a larger distance or budget, or pool outcomes."
        )


DEFAULT_ERROR = 1 / 6
"""The default alpha and beta: together they are the paper's advantage of 2/3."""
LEAST_ERROR = 100 * ACCURACY


@known_arguments
def goodness_of_fit(
    data: Any,
    null: Any,
    *,
    distance: float,
    epsilon: Number | None = None,
    alpha: float | None = None,
    beta: float | None = DEFAULT_ERROR,
    bins: int | None = None,
    method: str = "auto",
    max_rows_per_unit: int | None = None,
    column: str | None = None,
    unit: str | None = None,
    odd_epsilon: Number | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    request: str | None = None,
    rng: np.random.Generator | None = None,
    privacy: Notion | str | None = None,
) -> FitRelease:
    """Test with privacy whether the data come from P (``null``) or from some law at least ``distance`` away.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss.
        alpha: the largest type I error; by default 1/6, and less if there are more records than that takes.
        beta: the largest type II error; a smaller one than the data can give is refused. None: any type II error.
        bins: number of bins for a continuous or infinite P.
        method: as for :func:`design_fit`.
        max_rows_per_unit: the largest number of rows of one person that count; 1 if only ``unit`` is given.
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`FitTest.run`.
        privacy: another notion instead of epsilon, as for :func:`privatest.design`.
        null: as for :func:`privatest.design_fit`.
    """
    rows = numbers.rows_of_a_unit(unit, max_rows_per_unit)
    records = engines.open_for(engines.Need(rows), data, column=column, unit=unit)
    n = records.count()
    if n == 0:
        raise InvalidInput("The data have no records. Pass at least one.")
    test = design_fit(
        null,
        distance=distance,
        epsilon=epsilon,
        n=n,
        alpha=alpha,
        beta=beta,
        bins=bins,
        method=method,
        max_rows_per_unit=rows,
        privacy=privacy,
    )
    check_better_than_a_coin(test.alpha, test.beta, n)
    where = {"column": column, "unit": unit}
    payer = {"ledger": ledger, "dataset": dataset, "request": request}
    return test.run_opened(records, data, where, **payer, rng=rng, odd_epsilon=odd_epsilon)


@known_arguments
def design_fit(
    null: Any,
    *,
    distance: float,
    epsilon: Number | None = None,
    n: int | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    bins: int | None = None,
    method: str = "auto",
    max_rows_per_unit: int = 1,
    privacy: Notion | str | None = None,
) -> FitTest:
    """Design a test of P (``null``) against all laws at least ``distance`` away.

    Guarantees: without ``n`` the test meets alpha and beta by its exact law; one designed for a number of records about
    1 percent smaller was found not to.

    Args:
        null: mapping, array of probabilities, scipy distribution, density or text. A continuous or infinite P is cut
            into bins of equal probability, and the distance is that between the binned laws.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        n: number of records, which is public. None: the smallest number found at which the errors are at most alpha
            and beta; it is the design's ``n``.
        alpha: the largest type I error; the threshold is the smallest that keeps it. The default is 1/6, and with more
            records than that takes the threshold is raised until the two errors are alike (not below 1e-6).
        beta: the largest type II error; one that n records cannot give is refused. None: any; without n it is 1/6.
        bins: number of bins for a continuous or infinite P; by default 4/distance.
        method: "direct" (a statistic made for P), "uniformity" (the statistic of Acharya, Sun and Zhang; uniform P
            only), or "auto": the one that needs the fewest records.
        max_rows_per_unit: the largest number of rows of one person that count, if the run names a ``unit``. The noise
            hides k rows at once, or each row at epsilon/k, whichever leaves the smaller type II error.
        privacy: another notion instead of epsilon, as for :func:`privatest.design`.

    >>> test = design_fit([0.25] * 4, distance=0.3, epsilon=1, n=60)
    >>> test.alpha <= 1/6 and test.beta <= 1/6
    True
    >>> design_fit({"heads": 0.5, "tails": 0.5}, distance=0.3, epsilon=1).n
    19
    """
    n = None if n is None else numbers.positive_integer(n=n)
    targeted = DEFAULT_ERROR if n is None and beta is None else beta
    plan = _checked(null, distance, epsilon, alpha, targeted, bins, method, max_rows_per_unit, privacy)
    if n is None:
        n = sample_size(plan, DEFAULT_ERROR if beta is None else _error(beta=beta))
    test = designed(plan, n)
    if beta is not None and test.beta > beta:
        raise Infeasible(_too_few(plan, test, beta))
    return _evened(test) if alpha is None else test


def _evened(test: FitTest) -> FitTest:
    """Return the test with its threshold raised until the two errors are alike, as far as the computed law is exact."""
    law, other, noise = test.null_law, test.candidate.law(test.hardest_law, test.n), test.noise

    def to_spare(cutoff: Fraction) -> bool:
        return other.cdf(cutoff, noise) <= law.sf(cutoff, noise)

    start, end = test.cutoff, max(test.cutoff, law.cutoff(LEAST_ERROR, noise))
    steps = math.floor(end - start)
    spared = steps if to_spare(end) else first_true(lambda k: not to_spare(start + k), 1, max(steps, 1)) - 1
    raised = replace(test, cutoff=start + spared)
    # At another threshold another alternative may be the hardest.
    return raised if raised.beta <= max(test.alpha, test.beta) else test


def _checked(
    null: Any,
    distance: float,
    epsilon: Number | None,
    alpha: float | None,
    beta: float | None,
    bins: int | None,
    method: str,
    max_rows_per_unit: int = 1,
    privacy: Notion | str | None = None,
) -> FitPlan:
    """Parse and check the arguments of :func:`design_fit`."""
    notion = make_notion(epsilon, privacy)
    distance = numbers.probability("It is a total variation distance.", distance=distance)
    alpha = DEFAULT_ERROR if alpha is None else _error(alpha=alpha)
    if beta is not None:
        beta = _error(beta=beta)
        if alpha + beta >= 1:
            raise InvalidInput(
                f"alpha={alpha!r} and beta={beta!r} must sum to less than 1: a coin that ignores the data reaches 1."
            )
    numbers.choice(METHODS, method=method)
    domain = read_domain(null, distance, bins)
    p = domain.probabilities
    largest = largest_distance(p)
    if distance > largest:
        raise InvalidInput(
            f"distance={distance!r} is larger than {largest:.6g}, the largest total variation distance of any law from "
            f"null {domain.null}. Use a smaller distance."
        )
    if method == "uniformity" and not np.all(p == p[0]):
        raise InvalidInput(f"method='uniformity' needs a uniform null, not {domain.null}. Use method='auto'.")
    rows = numbers.positive_integer(max_rows_per_unit=max_rows_per_unit)
    return FitPlan(domain=domain, distance=distance, notion=notion, alpha=alpha, method=method, rows=rows)


def _error(**arguments: float) -> float:
    """Check the one named error rate. It must not be too small for the accuracy of the statistic's law."""
    ((name, value),) = arguments.items()
    rate = numbers.probability("", **arguments)
    if rate < LEAST_ERROR:
        raise InvalidInput(
            f"{name}={shown(value)} must be at least {LEAST_ERROR:g}: error rates are computed to {ACCURACY:g}."
        )
    return rate


def _too_few(plan: FitPlan, test: FitTest, beta: float) -> str:
    """Return the message for a number of records that cannot give the type II error."""
    reached = f"n={test.n} records give a type II error of {test.beta:.3g}, more than beta={beta:.4g}"
    setting = f"distance={plan.distance:g}, {notion_words(plan.notion)}, alpha={plan.alpha:.4g}"
    try:
        needed = f"about {rough_sample_size(plan, beta)[0]} records are needed"
    except Infeasible:
        needed = f"more than {MOST_RECORDS_OF_A_FIT} records would be needed"
    return (
        f"{reached}, at {setting} on a domain of {len(plan.domain.probabilities)} outcomes: {needed}. Use more "
        "records, a larger distance, epsilon or alpha, fewer outcomes, or beta=None to run the test all the same."
    )
