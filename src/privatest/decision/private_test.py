"""A designed test of P against Q: a score, a noise and a threshold, with its exact error rates.

A :class:`PrivateTest` is frozen, printable and serialisable. :meth:`PrivateTest.run` answers it from data. The p-values
and the e-value of a release are computed in ``pvalue.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.charge_before_release import Draw
from privatest.decision.pvalue import (
    Cutoffs,
    HypothesisLaws,
    binned_ratio,
    chance_beyond,
    chance_up_to,
    likelihood_ratio,
)
from privatest.decision.run import (
    Budgeted,
    Decision,
    Release,
    advantage_fact,
    check_better_than_a_coin,
    cost_fact,
    hidden_fact,
)
from privatest.errors import InvalidInput, MissingExtra, shown
from privatest.facts import Fact, Probability
from privatest.hypotheses import as_distribution
from privatest.laws import Curves, NoisyTotal
from privatest.numbers import Floats, rounded_up
from privatest.privacy import Approx, Noise, Notion, Pure, RandomSource, Zcdp
from privatest.privacy import randomness as coins
from privatest.privacy.notion import NEIGHBOURS, Neighbourhood, converted, notion_words
from privatest.scores import LabelCells, Score
from privatest.scores.score import LARGEST_TOTAL
from privatest.scores.score_law import score_law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records


@dataclass(frozen=True)
class Coin:
    """A public coin: with probability ``share``, exactly, ``cutoff`` replaces the test's own. It looks at no data."""

    cutoff: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"The share {self.share} of a coin must lie strictly between 0 and 1.")

    def toss(self, source: RandomSource) -> bool:
        """Whether the coin's cutoff is used."""
        return coins.bernoulli(self.share.numerator, self.share.denominator, source)


@dataclass(frozen=True, eq=False)
class PrivateTest(Budgeted[Release]):
    r"""Decide P ("null") when :math:`\sum_i (M s(x_i) - C) + N > \kappa`, else Q ("alternative").

    A two-sided test decides P while that is also at most ``upper``.

    Guarantees: a run meets ``notion``: the noise hides whatever difference of the total one person can make
    (``sensitivity``), which is checked when the object is made, however it is made. With neighbours "replace" one
    person's rows are replaced by as many others, and n is public; with "add-remove" a person comes or goes, and n is
    neither checked nor revealed.

    Attributes:
        name: "tight", "stair", "scllr", "ncllr", "llr" or "sllr".
        score: the map from a record to an integer, with the law of that integer under P and Q.
        noise: the noise that is added to the total.
        cutoff: kappa, in units of the score's lattice.
        notion: the notion of privacy that every run meets; a number stands for ``pure``. An infinite epsilon means: not
            private.
        n: number of records the test was designed for.
        neighbours: which data sets are neighbours: "replace" or "add-remove".
        null, alternative: short descriptions of P and Q.
        max_rows_per_unit: the largest number of records that one person counts as, whatever the number of rows.
        scale, shift: M and C. They are 1 and 0 if n is public; else they make the threshold the same for every n.
        worst_members: for sets, the members of null and alternative with the largest errors that were found.
        upper: the second cutoff of a two-sided test.
        coin: the public coin that sometimes takes another cutoff, so that alpha is met exactly.
    """

    FORMAT: ClassVar[str] = "privatest/test/2"
    KIND: ClassVar[str] = "test"
    REQUEST_KEY: ClassVar[str] = "test"

    name: str
    score: Score
    noise: Noise
    cutoff: Fraction
    notion: Notion = field(metadata={"key": "privacy"})
    n: int
    neighbours: str = "replace"
    null: str = "P"
    alternative: str = "Q"
    max_rows_per_unit: int = 1
    scale: int = 1
    shift: int = 0
    worst_members: tuple[str, str] | None = None
    upper: Fraction | None = None
    coin: Coin | None = None

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise InvalidInput(f"neighbours={self.neighbours!r} must be one of {', '.join(map(repr, NEIGHBOURS))}.")
        object.__setattr__(self, "n", numbers.positive_integer(n=self.n))
        numbers.positive_integer(max_rows_per_unit=self.max_rows_per_unit)
        numbers.positive_integer(scale=self.scale)
        if abs(self.shift) > LARGEST_TOTAL:
            raise InvalidInput(f"shift={shown(self.shift)} must lie within 64 bits.")
        self.score.check_total(self.n)
        if self.upper is not None and not self.cutoff < self.upper:
            raise InvalidInput(f"upper={self.upper} must be greater than cutoff={self.cutoff}.")
        if self.upper is not None and (not self.noise.total_leaves or self.coin is not None):
            raise InvalidInput(
                f"upper={self.upper} needs noise with which the noisy total itself is private, and no coin: a decision "
                "between two cutoffs tells more than one at a cutoff."
            )
        if (self.upper is None) != (not self.score.upper_laws):
            raise InvalidInput("upper and the score's upper_laws go together: a two-sided test has both.")
        if not isinstance(self.notion, Notion):
            object.__setattr__(self, "notion", Pure(self.notion))
        if self.private and not self.hidden:
            apart, met = self.sensitivity, self.noise.guarantee(self.sensitivity)
            allows = f"meets {met}" if met else "meets no notion"
            if isinstance(self.notion, Pure):
                allows = f"allows a privacy loss of {self.noise.privacy_loss(apart):.6g}"
            raise InvalidInput(
                f"The noise {allows} for totals {apart} apart, which is more than {notion_words(self.notion)} allows. "
                "Use more noise or a narrower clamp."
            )

    @property
    def worst_null(self) -> str:
        """The member of the null with the largest type I error that was found; P itself if it is one distribution."""
        return self.worst_members[0] if self.worst_members else self.null

    @property
    def worst_alternative(self) -> str:
        """The member of the alternative with the largest type II error that was found."""
        return self.worst_members[1] if self.worst_members else self.alternative

    @property
    def private(self) -> bool:
        """Whether a run meets a notion of privacy: its epsilon is not infinite."""
        return self.notion.price is not None

    @property
    def hidden(self) -> bool:
        """Whether the noise hides the rows of one person under the notion."""
        return self.noise.meets(self.notion, self.sensitivity)

    @property
    def sensitivity(self) -> int:
        """The largest change of the total by one person, in units of the noise's lattice."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit).reach(self.score, self.scale, self.shift)

    @property
    def threshold(self) -> float:
        """The statistic above which the decision is "null", in nats."""
        return float(self._nats(self.cutoff))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold in nats; for a two-sided test two, between which the decision is "null"."""
        ends = (self.cutoff,) if self.upper is None else (self.cutoff, self.upper)
        return tuple(float(self._nats(end)) for end in ends)

    @property
    def two_sided(self) -> bool:  # type: ignore[override]  # read-only here
        """Whether the null lies between two thresholds."""
        return self.upper is not None

    @property
    def when_null(self) -> str:
        """The statistics that lead to the decision "null", in words."""
        if self.released != "statistic":
            return "null from 1 on" if self.released == "level" else ""
        if self.upper is None:
            return f"null above {self.threshold:.6g}"
        low, high = self.thresholds
        return f"null between {low:.6g} and {high:.6g}"

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise, in nats."""
        return math.sqrt(self.noise.variance) * float(self.score.step / self.scale)

    @property
    def clamp(self) -> tuple[float, float]:
        """The smallest and the largest amount that one record adds to the statistic, in nats."""
        if self.neighbours == "replace":
            return self.score.bounds()
        low, high = (
            self.score.step * (s - Fraction(self.shift, self.scale)) for s in (self.score.low, self.score.high)
        )
        return float(low), float(high)

    def _nats(self, total: Fraction | int) -> Fraction:
        """Return the total in nats: the sum of clamped ratios, or of shifted ones if n is not public."""
        if self.neighbours == "replace":
            return self.score.value((total + self.n * self.shift) / Fraction(self.scale), self.n)
        return self.score.step * total / self.scale

    @cached_property
    def null_total(self) -> NoisyTotal:
        """The law of the noisy total if the records come from P."""
        return NoisyTotal(self.scale * self.score.support - self.shift, self.score.null_law, self.n, self.noise)

    @cached_property
    def alternative_total(self) -> NoisyTotal:
        """The law of the noisy total if the records come from Q."""
        return NoisyTotal(self.scale * self.score.support - self.shift, self.score.alternative_law, self.n, self.noise)

    def masses(self, edges: Sequence[Fraction | int]) -> tuple[Floats, ...]:
        """Return the probabilities, under P and under Q, that the noisy total lies between neighbouring edges.

        For sets they are those under the worst laws; a two-sided test has a third array, for the alternative above.

        Args:
            edges: increasing totals, in units of the score's lattice.

        Guarantees: errors of at most 1e-4; the cost hardly depends on the number of edges.
        """
        upper = tuple(total.masses(edges) for total in self.laws.upper[:1])
        if self.scale == 1 and self.shift == 0:
            curves = Curves.of(self.score, self.n, self.noise)
            if curves.everywhere:
                offsets = np.array([float((edge - curves.base) / curves.unit) for edge in edges])
                first, second = curves.cdfs(np.clip(offsets, -curves.reach, curves.reach))
                return np.maximum(np.diff(first), 0.0), np.maximum(np.diff(second), 0.0), *upper
        return self.null_total.masses(edges), self.alternative_total.masses(edges), *upper

    @cached_property
    def laws(self) -> HypothesisLaws:
        """The worst laws of the noisy total under both hypotheses."""
        scores, score = self.scale * self.score.support - self.shift, self.score

        def totals(laws: Sequence[Floats]) -> list[NoisyTotal]:
            return [NoisyTotal(scores, law, self.n, self.noise) for law in laws]

        lowest = [self.null_total, *totals(score.other_null_laws)]
        highest = [self.alternative_total, *totals(score.other_alternative_laws)]
        return HypothesisLaws(
            lowest_null=lowest,
            highest_null=totals(score.outer_null_laws) or lowest,
            highest_alternative=highest,
            lowest_alternative=totals(score.outer_alternative_laws) or highest,
            upper=totals(score.upper_laws),
        )

    @cached_property
    def alpha(self) -> float:
        """The exact type I error: the probability of "alternative" under P, the largest one if P is a set.

        For a two-sided test it is the sum of the largest tails on both sides.
        """
        error = chance_up_to(self.laws.lowest_null, self._cutoffs_and_chances)
        return error if self.upper is None else error + chance_beyond(self.laws.highest_null, [(self.upper, 1.0)])

    @cached_property
    def beta(self) -> float:
        """The exact type II error: the probability of "null" under Q, the largest one if Q is a set.

        For a two-sided test it is the probability that the statistic is not on the side of Q.
        """
        error = chance_beyond(self.laws.highest_alternative, self._cutoffs_and_chances)
        return error if self.upper is None else max(error, chance_up_to(self.laws.upper, [(self.upper, 1.0)]))

    @property
    def _cutoffs_and_chances(self) -> Cutoffs:
        """The cutoff, or the two between which the coin chooses, with their probabilities."""
        if self.coin is None:
            return [(self.cutoff, 1.0)]
        return [(self.cutoff, float(1 - self.coin.share)), (self.coin.cutoff, float(self.coin.share))]

    @property
    def advantage(self) -> float:
        """The advantage 1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    def power(self, law: Any) -> float:
        """Return the exact probability of "alternative" if all records come from ``law``.

        Under P it is alpha, under Q it is 1 - beta. Records that make no sense under P and Q count as odd records.

        Args:
            law: a distribution, in any form that :func:`privatest.design` takes.

        >>> import privatest as pt
        >>> test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=30)
        >>> [round(test.power(f"normal({mean}, 1)"), 3) for mean in (0, 0.5, 1)]
        [0.018, 0.5, 0.982]
        """
        support, probabilities = score_law(self.score, as_distribution(law, "law"))
        total = NoisyTotal(self.scale * support - self.shift, probabilities, self.n, self.noise)
        return chance_up_to([total], self._cutoffs_and_chances) + (0.0 if self.upper is None else total.sf(self.upper))

    @property
    def outcome(self) -> type[Release]:
        """A release."""
        return Release

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        return {"column": where["column"], "unit": where["unit"]}

    def check_tells(self) -> None:
        """Refuse a private test with alpha + beta above 0.95, whose decision would be little better than a coin's."""
        if self.private:
            check_better_than_a_coin(self.alpha, self.beta, self.n)

    def check(self, records: Records) -> None:
        """Refuse records of a wrong type or number, and a test whose error rates cannot be computed."""
        from privatest.engines.records import check_count  # planning needs no engine

        records.check(self.score)
        if self.neighbours == "replace":
            check_count(records.count(), self.n)
        if self.private:
            _ = self.alpha

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """Sum the records' scores, add noise, and keep the part that may leave the data."""
        total = self.scale * records.total(self.score)
        if self.shift:
            total -= self.shift * records.count()
        tossed = self.coin is not None and self.coin.toss(source)
        return self.draw_of(total + self.noise.draw(source), tossed=tossed)

    def draw_of(self, noisy: Fraction, *, tossed: bool = False) -> Draw:
        """Return the part of a noisy total that may leave: itself, its level or the decision (see :attr:`released`).

        If the noise's values are further apart than the totals, the noisy total would tell the total modulo their
        spacing, whatever epsilon is. Then only the level leaves. If there is a coin, its result leaves too.

        Args:
            noisy: the noisy total, in units of the noise's lattice.
            tossed: whether the coin chose its own cutoff.
        """
        cutoff = self._cutoff(tossed)
        if not self.private or self.released == "decision":
            return self._decided(noisy > cutoff and (self.upper is None or noisy <= self.upper))
        left: str | int = str(noisy) if self.noise.spacing == 1 else self.noise.level(noisy, cutoff)
        return left if self.coin is None else [left, tossed]

    def _cutoff(self, tossed: bool) -> Fraction:
        return self.coin.cutoff if tossed and self.coin is not None else self.cutoff

    @staticmethod
    def _decided(null: bool) -> Decision:
        return "null" if null else "alternative"

    def release(self, draw: Any, *, simulated: bool = False) -> Release:
        """Compute decision, statistic and p-values from a draw: post-processing, which costs no privacy.

        Args:
            draw: the noisy total, its level or the decision, as :meth:`draw_of` returns it.
            simulated: whether the caller's generator drew it.
        """
        statistic = pvalue = other = fits = None
        if not self.private or self.released == "decision":
            decision: Decision = draw
        else:
            left, tossed = (draw, False) if self.coin is None else draw
            cutoff, spacing = self._cutoff(tossed), self.noise.spacing
            if spacing == 1:  # totals have this lattice's unit
                most = Fraction(left)
                statistic, least = float(self._nats(most)), most - Fraction(1, 2)
                decision = self._decided(most > cutoff and (self.upper is None or most <= self.upper))
            else:
                statistic, most, least = float(left), cutoff + spacing * left, cutoff + spacing * (left - 1)
                decision = self._decided(left >= 1)
            pvalue, other, fits = self.laws.pvalues(most, least)
        return Release(
            decision=decision,
            statistic=statistic,
            pvalue=pvalue,
            epsilon=self.epsilon,
            n=self.n,
            test=self.name,
            neighbours=self.neighbours,
            simulated=simulated,
            pvalue_alternative=other,
            fits=fits,
            released=self.released,
            privacy=self._privacy_text,
        )

    def evalue(self, statistic: float | None, pvalue: float | None) -> float | None:
        """Return the e-value of a release of this test with this statistic and p-value; None if it has neither."""
        one_law = self.worst_members is None and self.upper is None and not self.score.other_null_laws
        if statistic is None or not one_law:
            return super().evalue(statistic, pvalue)
        if (
            self.released == "level"
        ):  # a level counts from the cutoff, and a release does not say which one a coin chose
            if self.coin is not None:
                return super().evalue(statistic, pvalue)
            high = self.cutoff + self.noise.spacing * round(statistic)
            return likelihood_ratio(self.null_total, self.alternative_total, high - self.noise.spacing, high)
        replacing = self.neighbours == "replace"
        nats = Fraction(statistic) - (self.n * self.score.origin if replacing else 0)
        noisy = nats / self.score.step * self.scale - (self.shift * self.n if replacing else 0)
        return binned_ratio(self.null_total, self.alternative_total, self.cutoff, noisy)

    def privacy_loss_distribution(self) -> Any:
        """Return the privacy-loss distribution of one run, by ``dp_accounting``, from the exact law of the noise."""
        from privatest.privacy.composition import noise_distribution  # an extra

        self._check_private("has no privacy-loss distribution")
        return noise_distribution(self.noise, self.sensitivity)

    def to_opendp(self) -> Any:
        """Return the test as an ``opendp.mod.Measurement`` (extra ``opendp``), from a list of records to a document.

        OpenDP counts records that come and go (the symmetric distance), so that replacing one record is a distance of
        two. By group privacy the guarantee for one record extends to k of them: epsilon grows k times, rho k squared
        times, and delta is summed over the steps in between.

        Guarantees: its privacy map is the test's guarantee, rounded up. The records are summed and the noise is drawn
        by this package alone, from the operating system's randomness.
        """
        try:
            import opendp.prelude as dp  # an extra
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "opendp":
                raise
            raise MissingExtra.of("A measurement needs OpenDP.", "opendp") from None
        self._check_private("is no measurement")
        if self.max_rows_per_unit != 1:
            raise InvalidInput(
                f"max_rows_per_unit={self.max_rows_per_unit}: OpenDP's lists have no column of persons. Design a test "
                "of one row each."
            )
        dp.enable_features("contrib", "honest-but-curious")
        labels = isinstance(self.score.cells, LabelCells)
        records = dp.atom_domain(T=str) if labels else dp.atom_domain(T=float, nan=True)
        replacing = self.neighbours == "replace"
        measure, guarantee = _opendp_measure(dp, self.notion)
        return dp.m.make_user_measurement(
            dp.vector_domain(records, size=self.n) if replacing else dp.vector_domain(records),
            dp.symmetric_distance(),
            measure,
            lambda data: self.run(list(data)).to_dict(),
            lambda distance: guarantee(-(-distance // 2) if replacing else distance),
        )

    @property
    def released(self) -> str:
        """The released value: "statistic" (the noisy sum in nats), "level" (widths above the cutoff) or "decision"."""
        if self.noise.decision_only:
            return "decision"
        return "statistic" if self.noise.spacing == 1 else "level"

    def interval(
        self, release: Release, *, between: tuple[float, float] | None = None, confidence: float = 0.95
    ) -> tuple[float, float]:
        """An exact interval for the parameter in which P and Q differ, from a release of this test; it costs nothing.

        The interval is shortest near P and Q; :func:`privatest.estimate` makes one for a whole range.

        Args:
            release: the result of a run of this test.
            between: two values between which the parameter lies; None: far beyond P and Q.
            confidence: the smallest probability with which the interval holds the true value.

        Guarantees: the interval holds the true value with a probability of at least ``confidence`` if the records come
        from a member of that family with the parameter ``between`` these ends.
        """
        if self.released != "statistic":
            raise InvalidInput("Only a test that releases its statistic has an interval: design(release='statistic').")
        if self.neighbours != "replace" or not self.private or self.worst_members is not None:
            raise InvalidInput(
                "Only a private test of two distributions whose number of records is public has an interval."
            )
        if not isinstance(release, Release) or release.statistic is None or release.n != self.n:
            raise InvalidInput(f"release={shown(release)} must be a release of this test, with its statistic.")
        from privatest.decision.interval_inversion import Inversion  # start-up: scipy
        from privatest.hypotheses.one_parameter import between_members  # start-up: for intervals alone

        family = between_members(as_distribution(self.null), as_distribution(self.alternative), between)
        inversion = Inversion(family, self.score, self.noise, self.n)
        noisy = self.score.lattice_threshold(Fraction(release.statistic), self.n) - self.noise.offset
        return inversion.interval(round(noisy) + self.noise.offset, float(numbers.probability(confidence=confidence)))

    def power_along(self, family: str, values: Sequence[float]) -> Floats:
        """Return the :meth:`power` for several members of a family that differ in one parameter.

        Args:
            family: text with a question mark for the parameter, such as "normal(mean=?, sd=1)".
            values: of that parameter.
        """
        from privatest.hypotheses.one_parameter import with_value  # start-up: for powers along a parameter alone

        return np.array([self.power(with_value(family, value)) for value in values])

    def plot_power(
        self, family: str, *, between: tuple[float, float], ax: Axes | None = None, points: int = 81
    ) -> Axes:
        """Draw the probability of "alternative" along a parameter, such as the mean of ``"normal(mean=?, sd=1)"``.

        Args:
            family: as for :meth:`power_along`.
            between: the least and the largest value of the parameter.
            points: how many values are computed.
        """
        from privatest import pictures

        return pictures.power_along(self, family, between, ax, points=points)

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """Draw the exact law of the noisy statistic under P and under Q, the threshold, and a release of this test."""
        from privatest import pictures

        return pictures.private_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """The kind of test and the hypotheses."""
        return f"Test {self.name!r} of {self.null} against {self.alternative}"

    def facts(self) -> list[Fact]:
        """Return the question, the exact error rates, and the settings of the test."""
        public = (
            "records, public" if self.neighbours == "replace" else "records, as expected; their number is not revealed"
        )
        exact, worst = "exact", []
        if self.worst_members is not None:
            exact = "the largest of all members"
            worst = [
                Fact("worst_null", self.worst_null, "the hardest member of the null found"),
                Fact("worst_alternative", self.worst_alternative, "the hardest member of the alternative found"),
            ]
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            Fact("test", self.name, "the kind of test"),
            cost_fact(self.notion, "of one run")
            if self.private
            else Fact("epsilon", math.inf, "this test is NOT PRIVATE"),
            Fact("n", self.n, public),
            Fact("alpha", Probability(self.alpha), f"type I error: alternative under P; {exact}"),
            Fact("beta", Probability(self.beta), f"type II error: null under Q; {exact}"),
            *worst,
            advantage_fact(self.alpha, self.beta),
            Fact("clamp", self.clamp, "least and most of one record, in nats"),
            Fact("noise", self.noise.kind, "added to the total"),
            Fact("noise_sd", self.noise_sd, "its standard deviation"),
            Fact("threshold", self.threshold, "says null above it, in nats")
            if self.upper is None
            else Fact("thresholds", self.thresholds, "says null between them, in nats"),
            *self._deciding(),
            hidden_fact(self.neighbours, persons=self.max_rows_per_unit > 1),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "records that one person counts as, at most"),
        ]

    def _deciding(self) -> list[Fact]:
        """Return the facts about a release that is not the statistic, and about the public coin."""
        facts = []
        if self.released != "statistic":
            beside = {"level": "beside the decision: widths above the threshold, with noise", "decision": "and no more"}
            facts.append(Fact("released", self.released, beside[self.released]))
        if self.coin is not None:
            other = float(self._nats(self.coin.cutoff))
            facts += [
                Fact("other_threshold", other, "taken instead where a public coin says so"),
                Fact("coin", float(self.coin.share), "how often it does: alpha is exact"),
            ]
        return facts

    def __hash__(self) -> int:
        return hash((self.name, self.cutoff, self.notion, self.n, self.score.width))

    def __repr__(self) -> str:
        low, high = self.clamp
        rows = f", max_rows_per_unit={self.max_rows_per_unit}" if self.max_rows_per_unit > 1 else ""
        privacy = notion_words(self.notion) if self.private else "NOT PRIVATE (epsilon=inf)"
        return (
            f"PrivateTest({self.name!r}, null={self.null}, alternative={self.alternative}, {privacy}, n={self.n}, "
            f"clamp=({low:.6g}, {high:.6g}), width={self.score.width}, noise={self.noise.describe()}, "
            f"threshold={self.threshold:.6g}, neighbours={self.neighbours!r}{rows})"
        )


def _opendp_measure(dp: Any, notion: Notion) -> tuple[Any, Callable[[int], Any]]:
    """OpenDP's measure of a notion, and a function from a number of records to the guarantee in that measure."""
    if isinstance(notion, Pure):
        return dp.max_divergence(), lambda records: rounded_up(records * notion.loss)
    if isinstance(notion, Approx):

        def grouped(records: int) -> tuple[float, float]:
            together = notion.grouped(records)
            delta = 1.0 if together is None else rounded_up(together.delta)
            return rounded_up(records * notion.loss), min(delta, 1.0)

        return dp.approximate(dp.max_divergence()), grouped
    concentrated = converted(notion, Zcdp(1))
    if concentrated is None:
        raise InvalidInput(f"privacy={notion} has no measure in OpenDP, which knows pure, approx and zcdp.")
    return dp.zero_concentrated_divergence(), lambda records: rounded_up(records**2 * concentrated.exact[0])
