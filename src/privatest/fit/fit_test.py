"""A designed goodness-of-fit test: statistic, noise and threshold, ready to run; and what it gives back.

How many records it needs is found from the normal approximation first, then by exact error rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from privatest import engines, numbers
from privatest.charge import Draw
from privatest.decision import Release
from privatest.decision.run import Budgeted, advantage_fact, check_better_than_a_coin, cost_fact, hidden_fact
from privatest.documents import check_format, fraction_from_json, wholes_from_json
from privatest.engines.records import check_count, counting_score
from privatest.errors import Infeasible, InvalidDocument, InvalidInput, shown
from privatest.facts import Fact, Probability
from privatest.fit.candidates import (
    METHODS,
    Alternative,
    FitPlan,
    FitStatistic,
    Recipe,
    Target,
    largest_distance,
    ranked,
)
from privatest.fit.domain import Domain, Grains, histogram, read_domain
from privatest.fit.excess_law import ACCURACY, Excess
from privatest.laws import IntegerLaw
from privatest.numbers import Floats, Integers, Number
from privatest.privacy import (
    Noise,
    Notion,
    RandomSource,
    Tulap,
    as_notion,
    make_notion,
    noise_from_dict,
)
from privatest.privacy.notions import notion_words
from privatest.progress_events import searching
from privatest.scores.score import cells_from_dict
from privatest.unanswered import known_arguments

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.scores import Cells


RELEASE_FORMAT = "privatest/fit-release/2"


@dataclass(frozen=True)
class FitRelease(Release):
    """The outcome of running a goodness-of-fit test on data.

    Guarantees: decision, statistic and pvalue together are epsilon-differentially private, or what ``privacy`` says,
    being computed from the noisy statistic alone.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they come from some law away from P).
        statistic: minus the noisy excess over its mean under P, for each record; 0 is expected under P, large values
            speak for P, and small ones, down to minus the distance or so, against it.
        pvalue: probability, were P true, of a statistic as small as this one.
        epsilon: privacy loss of this release.
        n: number of records, which is public.
        test: the method, "binomial", "direct", "uniformity" or "grains".
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
        design: the test that was run, for :meth:`plot`; no part of its documents, None in one that was read.
    """

    statistic: float
    pvalue: float

    KIND: ClassVar[str] = "Goodness of fit"
    SMALLEST_PVALUE: ClassVar[float] = 1e-6
    AWAY: ClassVar[str] = "some law away from P"

    @property
    def sentence(self) -> str:
        """The decision, and what else than the records' law may be the reason of it."""
        counts = "privatest.check counts them, odd_epsilon= tells their share"
        if self.odd_share is not None:
            counts = f"they are {self.odd_share:.3g} of all, give or take {self.odd_margin:.2g}"
        return (
            f"{super().sentence} Records that are missing, unreadable or of no cell count as the likeliest one: "
            f"{counts}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**super().to_dict(), "format": RELEASE_FORMAT}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FitRelease:
        """What :meth:`to_dict` wrote; the first version, which named no format, had the statistic's sign reversed."""
        if "format" not in document:
            document = {**document, "statistic": -document["statistic"]}
        elif document["format"] != RELEASE_FORMAT:
            check_format(dict(document), RELEASE_FORMAT, "release of a fit test")
        return super().from_dict(document)


FORMAT = "privatest/fit/1"


# How many of the alternatives that the normal approximation calls hardest are looked at exactly: it is a good guide
# with many symbols, where a look costs more. One will do where it says that errors are far below what is computed.
MANY_SYMBOLS = 100
LOOKED_AT = {False: 5, True: 2}


@dataclass(frozen=True, eq=False)
class FitTest(Budgeted[FitRelease]):
    r"""Decide "alternative" when :math:`T(N) + \text{noise} > \kappa`, else "null", for the histogram N of the data.

    Guarantees: running it on data meets its notion (replace one record, n public): the noise hides any change of T that
    one person can make, which is checked when the object is made, however it is made. Type I error at most ``alpha``
    and type II error at most ``beta`` as stated there.

    Attributes:
        candidate: the statistic, and Goldreich's map where it is used.
        domain: symbols and P.
        noise: what is added to T.
        cutoff: kappa.
        distance: the total variation distance from P (after binning) that the test is to detect.
        n: number of records.
        max_rows_per_unit: the most rows of one person that the noise hides, where a run names the ``unit``.
        declared: the notion that a run is to meet, where that is not what the noise costs in epsilon.
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "fit test"
    ASKED: ClassVar[str] = "fit"

    candidate: FitStatistic
    domain: Domain
    noise: Noise
    cutoff: Fraction
    distance: float
    n: int
    max_rows_per_unit: int = 1
    declared: Notion | None = None

    def __post_init__(self) -> None:
        excess, grains = self.candidate.excess, self.candidate.grains
        symbols = len(self.domain.probabilities) if grains is None else grains.count
        if excess.symbols != symbols or self.domain.cells.count != len(self.domain.probabilities):
            raise InvalidInput(
                f"The statistic has {excess.symbols} symbols, the data {symbols}, in {self.domain.cells.count} cells."
            )
        excess.check_total(self.n)
        met = self.noise.guarantee(self._reach)
        tight = isinstance(self.noise, Tulap) and self.noise.hides(excess.width)  # at the epsilon of the noise itself
        narrow = self.declared is None and not tight
        if not self.noise.total_leaves or met is None or not met.implies(self.notion) or narrow:
            raise InvalidInput(
                f"The noise meets {met or 'nothing'} for {self.max_rows_per_unit} rows of a person: it does not hide a "
                f"statistic of width {excess.width} at {self.declared or 'its epsilon'}. Use more noise."
            )

    @property
    def _reach(self) -> int:
        """The most by which one person's rows move T."""
        return self.max_rows_per_unit * self.candidate.excess.width

    @property
    def notion(self) -> Notion:
        """What one run meets: the notion declared, or what it costs that a person's rows move T by a width each."""
        found = self.declared or self.noise.guarantee(self._reach)
        assert found is not None
        return found

    @property
    def method(self) -> str:
        """ "binomial", "direct", "uniformity" or "grains"."""
        return self.candidate.method

    @property
    def odd_symbol(self) -> int:
        """The symbol, the most likely one, that a record counts as if it makes no sense."""
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
        p = self.domain.probabilities
        target = Target(p, self.n, self.distance, self.notion, min(max(self.alpha, 1e-9), 1 - 1e-9))
        found, ranking = [], self.candidate.hardest(target, self.noise)
        looks = LOOKED_AT[len(p) > MANY_SYMBOLS] if ranking[0][0] > ACCURACY**2 else 1
        for _, alternative in ranking[:looks]:
            law = self.candidate.law(alternative.q, self.n)
            found.append((law.cdf(self.cutoff, self.noise), alternative))
        return max(found, key=lambda pair: pair[0])

    @property
    def beta(self) -> float:
        """Type II error: the largest probability of "null" over the hardest alternatives at the distance.

        The alternatives are those at which the mean of T is least for many ways to choose who gains and who
        loses; the probability is from the exact law of T (error below 1e-8).
        """
        return self._hardest[0]

    @property
    def hardest_alternative(self) -> str:
        """How the alternative that attains ``beta`` was found."""
        return self._hardest[1].kind

    @property
    def hardest_law(self) -> Floats:
        """The alternative that attains ``beta``, one probability for each symbol."""
        return self._hardest[1].q

    @property
    def record_cells(self) -> Cells:
        """The symbols."""
        return self.domain.cells

    @property
    def outcome(self) -> type[FitRelease]:
        """A release."""
        return FitRelease

    def check(self, records: engines.Records) -> None:
        """Type and number; a law that cannot be computed is refused now, not after the draw."""
        records.check(counting_score(self.domain.cells))
        check_count(records.count(), self.n)
        _ = self.null_law

    def draw(self, records: engines.Records, source: RandomSource) -> Draw:
        """The noisy statistic."""
        return str(self.draw_noisy(histogram(records, self.domain.cells, self.odd_symbol, source), source))

    def draw_noisy(self, counts: Integers, source: RandomSource) -> Fraction:
        """The noisy T of a histogram, all that may leave of it.

        Args:
            counts: how many records each symbol has.
            source: where randomness comes from.
        """
        if self.candidate.grains is not None:
            counts = self.candidate.grains.draw(counts, source)
        return self.candidate.excess.of(counts) + self.noise.draw(source)

    def release(self, draw: str | Fraction, *, simulated: bool = False) -> FitRelease:
        """Decision, statistic and p-value from a noisy T: post-processing, which costs no privacy.

        Args:
            draw: the noisy statistic, in its lattice's units.
            simulated: whether a generator of the caller's drew it.
        """
        noisy = Fraction(draw)
        return FitRelease(
            decision="alternative" if noisy > self.cutoff else "null",
            statistic=(self.null_law.mean - float(noisy)) / (self.candidate.excess.width * self.n),
            # A value of T + N as large as this one or larger: just above the lattice value below it.
            pvalue=self.null_law.sf(noisy - Fraction(1, 2), self.noise),
            epsilon=self.epsilon,
            n=self.n,
            test=self.method,
            simulated=simulated,
            privacy=self._met,
        )

    def plot(self, ax: Axes | None = None, *, release: FitRelease | None = None) -> Axes:
        """The laws of the noisy statistic under P and the hardest alternative, the threshold, and a release."""
        from privatest import pictures

        return pictures.fit_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the method."""
        return f"Fit test {self.method!r} of {self.domain.null}, at distance {self.distance:g}"

    def facts(self) -> list[Fact]:
        """The question and the error rates."""
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the test exactly."""
        return {
            **({} if self._rows is None else {"max_rows_per_unit": self._rows}),
            **({} if self.declared is None else {"privacy": self.declared.text}),
            "format": FORMAT,
            "method": self.method,
            "null": self.domain.null,
            "bins": self.domain.bins,
            "cells": self.domain.cells.to_dict(),
            "probabilities": self.domain.probabilities.tolist(),
            "distance": self.distance,
            "n": self.n,
            "noise": self.noise.to_dict(),
            "cutoff": str(self.cutoff),
            "statistic": self.candidate.excess.to_dict(),
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> FitTest:
        method, bins = str(document["method"]), document["bins"]
        n, distance = wholes_from_json(document, "n", least=1)["n"], float(document["distance"])
        p = np.array(document["probabilities"], dtype=np.float64)
        if p.ndim != 1 or not np.all(p >= 0) or not abs(math.fsum(p.tolist()) - 1) < 1e-9:
            raise InvalidDocument("The probabilities of the null do not sum to 1.")
        if not 0 < distance < 1:
            raise InvalidDocument(f"distance={shown(distance)} must lie in (0, 1).")
        if method not in ("binomial", "direct", "uniformity", "grains"):
            raise InvalidDocument(f"Unknown method {method!r}.")
        noise = noise_from_dict(document["noise"])
        declared = as_notion(str(document["privacy"])) if "privacy" in document else None
        excess = Excess.from_dict(document["statistic"])
        candidate = FitStatistic(method, excess, Grains.of(p) if method == "grains" else None)
        cells = cells_from_dict(document["cells"])
        domain = Domain(cells, p, str(document["null"]), None if bins is None else str(bins))
        rows = wholes_from_json({"rows": document.get("max_rows_per_unit", 1)}, "rows", least=1)["rows"]
        return cls(candidate, domain, noise, fraction_from_json(document["cutoff"]), distance, n, rows, declared)

    def __hash__(self) -> int:
        return hash((self.method, self.cutoff, self.noise, self.distance, self.n))

    def __repr__(self) -> str:
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        return (
            f"FitTest({self.method!r}, null={self.domain.null}{bins}, symbols={len(self.domain.probabilities)}, "
            f"distance={self.distance:g}, {notion_words(self.notion)}, n={self.n}, "
            f"width={self.candidate.excess.width}, cutoff={float(self.cutoff):g}, neighbours='replace')"
        )


MOST_RECORDS_OF_A_FIT = 10**9
# The planned n is within this of one that does not meet the targets, unless so many looks do not find one.
RESOLUTION = 0.01
MOST_LOOKS = 8


def designed(plan: FitPlan, n: int, choice: list[Recipe] | None = None) -> FitTest:
    """The test for n records: the best recipe, of all that the method allows or of a short list."""
    target = plan.target(n)
    candidate = ranked(target, choice or plan.recipes)[0].candidate(target)
    if candidate is None:
        raise Infeasible(f"n={n}: no statistic of so few records depends on the data. Use more records.")
    law = candidate.law(target.p, n)
    tests = []
    for noise in plan.noises(candidate.excess.width):
        # The error of the law's probabilities is taken off the level, so that alpha holds.
        cutoff = law.cutoff(max(target.alpha - ACCURACY, target.alpha / 2), noise)
        tests.append(FitTest(candidate, plan.domain, noise, cutoff, target.distance, n, plan.rows, plan.declared))
    return tests[0] if len(tests) == 1 else min(tests, key=lambda test: test.beta)


def sample_size(plan: FitPlan, beta: float) -> int:
    """A number of records at which the design meets alpha and beta by its exact law."""
    n, choice = rough_sample_size(plan, beta)
    n = _exact_size(plan, beta, choice, n)
    # The short list was made elsewhere: what counts is the design for this n.
    while designed(plan, n).beta > beta:
        n += max(1, round(RESOLUTION * n))
        _check_reach(plan, n)
    return n


def rough_sample_size(plan: FitPlan, beta: float) -> tuple[int, list[Recipe]]:
    """Where the normal approximation meets the targets, and the best two recipes there."""
    n = _rough_size(plan, beta, plan.recipes[0], _order_of_magnitude(plan))
    choice = ranked(plan.target(n), plan.recipes)[:2]
    if choice[0] is not plan.recipes[0]:
        n = _rough_size(plan, beta, choice[0], n)
    return n, choice


def _exact_size(plan: FitPlan, beta: float, choice: list[Recipe], n: int) -> int:
    """Where the exact type II error meets beta, by secant steps on the scale of normal quantiles from a guess n."""
    wider = n + max(1, n // 10)
    rise = _quantile(choice[0].error(plan.target(wider))) - _quantile(choice[0].error(plan.target(n)))
    slope = min(rise / math.log(wider / n), -0.5)
    # Invariant: ``few`` records do not suffice (or are none), ``many`` do (or are not known yet).
    few, many, looks = 0, 0, 0
    with searching("records of a test of fit", MOST_LOOKS) as looked:
        while many == 0 or (looks < MOST_LOOKS and many > 1 and many - few > max(1, RESOLUTION * many)):
            _check_reach(plan, n)
            looks += 1
            error = designed(plan, n, choice).beta
            looked()
            few, many = (few, n) if error <= beta else (n, many)
            n = round(n * math.exp((_quantile(beta) - _quantile(error)) / slope))
            # A little beyond the estimate, to the side that closes the bracket.
            nudge = max(1, round(0.4 * RESOLUTION * n))
            n = n - nudge if error <= beta else n + nudge
            if many:  # else n has gone up: the error was too large
                n = (few + many) // 2 if few and not few < n < many else min(max(n, 1), many - 1)
    return many


def _quantile(error: float) -> float:
    return float(special.ndtri(min(max(error, 1e-12), 1 - 1e-12)))


def _rough_size(plan: FitPlan, beta: float, recipe: Recipe, start: int) -> int:
    """Where the normal approximation meets the targets, to 5 percent, searched from ``start`` on."""

    def enough(n: int) -> bool:
        _check_reach(plan, n)
        return recipe.error(plan.target(n)) <= beta

    low = high = start
    if enough(start):
        while low > 1 and enough(low):
            low, high = max(round(low / 1.7), 1), low
    else:
        while not enough(high):
            low, high = high, math.ceil(1.7 * high)
    # Invariant: the approximation meets the targets at ``high`` and (above 1) not at ``low``.
    while high - low > max(1, 0.05 * high):
        middle = max(low + 1, min(round(math.sqrt(low * high)), high - 1))
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _order_of_magnitude(plan: FitPlan) -> int:
    """Half the sum of the theorem's four terms: within a factor of 3 of what was needed wherever we looked.

    For sqrt(k) the instance's own measure (sum of p^(2/3))^(3/2), which is sqrt(k) for uniform p (Valiant, Valiant).
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


# alpha = beta = 1/6: the advantage 2/3 that the paper asks of every test.
DEFAULT_ERROR = 1 / 6
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
    """Whether the data come from P (``null``) or from some law at least ``distance`` away, with privacy.

    Args:
        data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together with
            ``column``.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss.
        alpha: type I error allowed; if nothing is said 1/6, and less where there are more records than that takes.
        beta: type II error allowed; more than the data can give is refused. None runs the test whatever it is.
        bins: number of bins for a continuous or infinite P.
        method: as for :func:`design_fit`.
        max_rows_per_unit: the most rows of one person that count, 1 if only ``unit`` is given.
        column, unit, odd_epsilon, ledger, dataset, request, rng: see :meth:`FitTest.run`.
        privacy: another notion in place of epsilon, as for :func:`privatest.design`.
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
    """A test of P (``null``) against all laws at least ``distance`` away, on ``n`` records.

    Guarantees: without ``n`` the test meets alpha and beta by its exact law; one designed for a number of records about
    1 percent smaller was found not to.

    Args:
        null: mapping, array of probabilities, scipy distribution, density or text. A continuous or infinite P is cut
            into bins of equal probability, and the distance is that between the binned laws.
        distance: total variation distance to detect, in (0, 1).
        epsilon: privacy loss of one run; a float is read as its shortest decimal.
        n: number of records, which is public. None: the smallest number found at which the errors are at most alpha
            and beta; it is the design's ``n``.
        alpha: type I error allowed; the threshold is the smallest that keeps it. The default is 1/6, and with
            more records than that takes the threshold is raised until the two errors are alike (not below 1e-6).
        beta: type II error allowed: refuse if n records cannot give it. None: take what n gives; without n it is 1/6.
        bins: number of bins for a continuous or infinite P; by default 4/distance.
        method: "auto" takes whichever needs the fewest records of "direct" (a statistic made for P), "uniformity" (the
            statistic of Acharya, Sun and Zhang; uniform P only) and "grains" (Goldreich's map, then uniformity).
        max_rows_per_unit: the most rows of one person that count, where the run names a ``unit``. The noise is then
            that of epsilon/k for each row or that of k rows at once, whichever leaves the smaller type II error.
        privacy: another notion in place of epsilon, as for :func:`privatest.design`.

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
    """The test with its threshold raised while that lowers the larger error, and the law supports it."""
    law, other, noise = test.null_law, test.candidate.law(test.hardest_law, test.n), test.noise

    def to_spare(cutoff: Fraction) -> bool:
        return other.cdf(cutoff, noise) <= law.sf(cutoff, noise)

    # Invariant: at ``low`` there is error to spare (or it is the start), at ``high`` none (or it is the end).
    low, high = test.cutoff, max(test.cutoff, law.cutoff(LEAST_ERROR, noise))
    if to_spare(high):
        low = high
    while high - low > 1:
        middle = low + (high - low) // 2
        low, high = (middle, high) if to_spare(middle) else (low, middle)
    raised = replace(test, cutoff=low)
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
    return FitPlan(domain, distance, notion, alpha, method, rows)


def _error(**arguments: float) -> float:
    """The one named error rate, as a number that the laws of the statistic are exact enough for."""
    ((name, value),) = arguments.items()
    rate = numbers.probability("", **arguments)
    if rate < LEAST_ERROR:
        raise InvalidInput(
            f"{name}={shown(value)} must be at least {LEAST_ERROR:g}: error rates are computed to {ACCURACY:g}."
        )
    return rate


def _too_few(plan: FitPlan, test: FitTest, beta: float) -> str:
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
