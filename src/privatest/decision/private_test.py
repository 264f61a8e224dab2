"""A designed test: score, noise and threshold, frozen, printable, serialisable, ready to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import numbers
from privatest.charge import Draw
from privatest.decision.pvalues import Coin, Cutoffs, above, below, pvalues
from privatest.decision.run import (
    Decision,
    Design,
    Fits,
    Release,
    advantage_fact,
    check_better_than_a_coin,
    hidden_fact,
)
from privatest.errors import InvalidInput, shown
from privatest.facts import Fact, Probability
from privatest.hypotheses import as_distribution
from privatest.laws import Curves, NoisyTotal
from privatest.numbers import Floats, rational
from privatest.privacy import Noise, Notion, Pure, RandomSource
from privatest.privacy.notions import NEIGHBOURS, Neighbourhood
from privatest.scores import Score
from privatest.scores.score_law import score_law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Records


@dataclass(frozen=True, eq=False)
class PrivateTest(Design[Release]):
    r"""Decide P ("null") when :math:`\sum_i (M s(x_i) - C) + N > \kappa`, else Q ("alternative").

    A two-sided test decides P while that is also at most ``upper``.

    Guarantees: running it on data is epsilon-differentially private: the noise hides whatever difference of the total
    one person can make (``sensitivity``) at a cost of at most epsilon, which is checked when the object is made,
    however it is made. With neighbours "replace" one person's rows are replaced by as many others, and n is public;
    with "add-remove" a person comes or goes, and n is neither checked nor revealed.

    Attributes:
        name: "tight", "scllr", "ncllr", "llr" or "sllr".
        score: record to integer, with its law under P and Q.
        noise: what is added to the total.
        cutoff: kappa, in units of the score's lattice.
        epsilon: privacy loss of one run (``inf``: not private).
        n: number of records the test was designed for.
        neighbours: "replace" or "add-remove", see above.
        null, alternative: short descriptions of P and Q.
        max_rows_per_unit: the most records that one person counts as, however many rows there are.
        scale, shift: M and C; 1 and 0 where n is public, else what makes the threshold the same whatever n is.
        budget: epsilon exactly, where it is no short decimal (1/3, say); ``epsilon`` is then its double.
        worst_members: of sets, the members of null and alternative under which the errors are the largest found.
        upper: the second cutoff of a two-sided test.
        coin: the public coin that takes another cutoff now and then, where alpha is exact.
        notion: what the noise meets, where that is another notion than epsilon; ``epsilon`` is then what it bounds of
            the privacy loss, infinite where it bounds none.
    """

    FORMAT: ClassVar[str] = "privatest/test/2"
    KIND: ClassVar[str] = "test"

    name: str
    score: Score
    noise: Noise
    cutoff: Fraction
    epsilon: float
    n: int
    neighbours: str = "replace"
    null: str = "P"
    alternative: str = "Q"
    max_rows_per_unit: int = 1
    scale: int = 1
    shift: int = 0
    budget: Fraction | None = None
    worst_members: tuple[str, str] | None = None
    upper: Fraction | None = None
    coin: Coin | None = None
    notion: Notion | None = field(default=None, metadata={"key": "privacy"})

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise InvalidInput(f"neighbours={self.neighbours!r} must be one of {', '.join(map(repr, NEIGHBOURS))}.")
        object.__setattr__(self, "n", numbers.positive_integer(n=self.n))
        numbers.positive_integer(max_rows_per_unit=self.max_rows_per_unit)
        numbers.positive_integer(scale=self.scale)
        self.score.check_total(self.n)
        if self.upper is not None and not self.cutoff < self.upper:
            raise InvalidInput(f"upper={self.upper} must be greater than cutoff={self.cutoff}.")
        if self.upper is not None and (self.noise.spacing > 1 or self.coin is not None):
            raise InvalidInput(f"upper={self.upper} does not go with a noise of spaced values, nor with a coin.")
        if (self.upper is None) != (not self.score.upper_laws):
            raise InvalidInput("upper and the score's upper_laws go together: a two-sided test has both.")
        if self.budget is not None and float(self.budget) != self.epsilon:
            raise InvalidInput(f"budget={self.budget} must be epsilon={self.epsilon!r} before it was rounded.")
        if self.notion is not None:
            self._check_notion(self.notion)
            return
        loss = self.noise.exact_loss(self.sensitivity)
        # A loss that is only the double's rounding above epsilon is what was meant, and what is paid.
        if self.epsilon != math.inf and (
            loss is None
            or not self.epsilon > 0
            or (loss > self._declared and (self.budget is not None or float(loss) > self.epsilon))
        ):
            raise InvalidInput(
                f"The noise allows a privacy loss of {self.noise.privacy_loss(self.sensitivity):.6g} for totals "
                f"{self.sensitivity} apart, more than "
                f"epsilon={self.epsilon:g}. Use more noise or a narrower clamp."
            )

    def _check_notion(self, notion: Notion) -> None:
        """Refuse noise that does not meet the notion for totals one person can set apart."""
        if isinstance(notion, Pure) or self.budget is not None or notion.epsilon != self.epsilon:
            raise InvalidInput(
                f"notion={notion} must be another notion than pure, and epsilon={self.epsilon:g} its own."
            )
        if not self.noise.meets(notion, self.sensitivity):
            raise InvalidInput(
                f"The noise meets {self.noise.guarantee(self.sensitivity) or 'nothing'} for totals {self.sensitivity} "
                f"apart, which is not {notion}. Use more noise or a narrower clamp."
            )

    @property
    def privacy(self) -> Notion:
        """The notion of stability that every run meets."""
        return self.notion or Pure(self._declared if self.private else math.inf)

    @property
    def worst_null(self) -> str:
        """The member of the null under which the type I error is the largest that was found; P if it is no set."""
        return self.worst_members[0] if self.worst_members else self.null

    @property
    def worst_alternative(self) -> str:
        """The member of the alternative under which the type II error is the largest that was found."""
        return self.worst_members[1] if self.worst_members else self.alternative

    @property
    def private(self) -> bool:
        """Whether a notion is met: epsilon is finite, or another one is."""
        return self.notion is not None or math.isfinite(self.epsilon)

    @property
    def sensitivity(self) -> int:
        """The most by which one person changes the total, in units of the noise's lattice."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit).reach(self.score, self.scale, self.shift)

    @property
    def threshold(self) -> float:
        """kappa in nats: the statistic above which the decision is "null"."""
        return float(self._nats(self.cutoff))

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold, and of a two-sided test the second one, in nats: between them the decision is "null"."""
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
        """Standard deviation of the noise, in nats."""
        return math.sqrt(self.noise.variance) * float(self.score.step / self.scale)

    @property
    def clamp(self) -> tuple[float, float]:
        """The realised clamp: the least and the most that one record adds to the statistic."""
        if self.neighbours == "replace":
            return self.score.bounds()
        low, high = (
            self.score.step * (s - Fraction(self.shift, self.scale)) for s in (self.score.low, self.score.high)
        )
        return float(low), float(high)

    def _nats(self, total: Fraction | int) -> Fraction:
        """The total in nats: the sum of clamped ratios, or of shifted ones where n is not public."""
        if self.neighbours == "replace":
            return self.score.value((total + self.n * self.shift) / Fraction(self.scale), self.n)
        return self.score.step * total / self.scale

    @cached_property
    def null_total(self) -> NoisyTotal:
        """Law of the noisy total when the records come from P."""
        return NoisyTotal(self.scale * self.score.support - self.shift, self.score.null_law, self.n, self.noise)

    @cached_property
    def alternative_total(self) -> NoisyTotal:
        """Law of the noisy total when the records come from Q."""
        return NoisyTotal(self.scale * self.score.support - self.shift, self.score.alternative_law, self.n, self.noise)

    def masses(self, edges: Sequence[Fraction | int]) -> tuple[Floats, ...]:
        """Probability, under P and under Q, that the noisy total lies between neighbours among increasing edges.

        Of sets, under their worst laws; of a two-sided test also under the alternative that lies above. For pictures:
        many at the price of one, with errors of 1e-4 at most.

        Args:
            edges: totals in units of the score's lattice.
        """
        upper = tuple(total.masses(edges) for total in self._uppers[:1])
        if self.scale == 1 and self.shift == 0:
            curves = Curves(self.score.support, self.score.null_law, self.score.alternative_law, self.n, self.noise)
            if curves.everywhere:
                offsets = np.array([float((edge - curves.base) / curves.unit) for edge in edges])
                first, second = curves.cdfs(np.clip(offsets, -curves.reach, curves.reach))
                return np.maximum(np.diff(first), 0.0), np.maximum(np.diff(second), 0.0), *upper
        return self.null_total.masses(edges), self.alternative_total.masses(edges), *upper

    def _totals(self, laws: Sequence[Floats]) -> list[NoisyTotal]:
        return [NoisyTotal(self.scale * self.score.support - self.shift, law, self.n, self.noise) for law in laws]

    @cached_property
    def _lowest(self) -> list[NoisyTotal]:
        """The lowest laws of the total under the null: no member's total is lower."""
        return [self.null_total, *self._totals(self.score.other_null_laws)]

    @cached_property
    def _highest(self) -> list[NoisyTotal]:
        """The highest laws of the total under the null: no member's total is higher."""
        return self._totals(self.score.outer_null_laws) or self._lowest

    @cached_property
    def _alternatives(self) -> list[NoisyTotal]:
        """The highest laws under the alternative that lies below the null: no member's total is higher."""
        return [self.alternative_total, *self._totals(self.score.other_alternative_laws)]

    @cached_property
    def _outer_alternatives(self) -> list[NoisyTotal]:
        """The lowest laws under the alternative: no member's total is lower."""
        return self._totals(self.score.outer_alternative_laws) or self._alternatives

    @cached_property
    def _uppers(self) -> list[NoisyTotal]:
        """The lowest laws under the alternatives above the null, in a two-sided test."""
        return self._totals(self.score.upper_laws)

    @cached_property
    def alpha(self) -> float:
        """Type I error, exact: probability of "alternative" under P, or the largest over a set of distributions.

        Of a two-sided test the sum of the largest tails to both sides.
        """
        error = below(self._lowest, self._cutoffs_and_chances)
        return error if self.upper is None else error + above(self._highest, [(self.upper, 1.0)])

    @cached_property
    def beta(self) -> float:
        """Type II error, exact: probability of "null" under Q, or the largest over a set of distributions.

        Of a two-sided test the probability of not coming out on the side where Q lies.
        """
        error = above(self._alternatives, self._cutoffs_and_chances)
        return error if self.upper is None else max(error, below(self._uppers, [(self.upper, 1.0)]))

    @property
    def _cutoffs_and_chances(self) -> Cutoffs:
        """The cutoffs with their probabilities."""
        if self.coin is None:
            return [(self.cutoff, 1.0)]
        return [(self.cutoff, float(1 - self.coin.share)), (self.coin.cutoff, float(self.coin.share))]

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    def power(self, law: Any) -> float:
        """Probability of "alternative" if all records came from ``law``, exact; any distribution will do.

        Under P that is alpha, under Q it is 1 - beta. Records that make no sense under P and Q are odd ones.

        Args:
            law: a distribution, in any form that :func:`privatest.design` takes.

        >>> import privatest as pt
        >>> test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=30)
        >>> [round(test.power(f"normal({mean}, 1)"), 3) for mean in (0, 0.5, 1)]
        [0.018, 0.5, 0.982]
        """
        support, probabilities = score_law(self.score, as_distribution(law, "law"))
        total = NoisyTotal(self.scale * support - self.shift, probabilities, self.n, self.noise)
        return below([total], self._cutoffs_and_chances) + (0.0 if self.upper is None else total.sf(self.upper))

    @property
    def outcome(self) -> type[Release]:
        """A release."""
        return Release

    def question(self) -> dict[str, Any]:
        """The whole test but for its budget: the exact epsilon stands in the charge itself."""
        return {"test": {name: value for name, value in self.to_dict().items() if name != "budget"}}

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        return {"column": where["column"], "unit": where["unit"]}

    def check_tells(self) -> None:
        """Refuse a private test that tells next to nothing: whose alpha + beta is above 0.95."""
        if self.private:
            check_better_than_a_coin(self.alpha, self.beta, self.n)

    def check(self, records: Records) -> None:
        """Type, and number where it is public; a law that cannot be computed is refused now, not after the draw."""
        from privatest.engines.records import check_count  # planning needs no engine

        records.check(self.score)
        if self.neighbours == "replace":
            check_count(records.count(), self.n)
        if self.private:
            _ = self.alpha

    def draw(self, records: Records, source: RandomSource) -> Draw:
        """The noisy total, or the part of it that may leave the data."""
        total = self.scale * records.total(self.score)
        if self.shift:
            total -= self.shift * records.count()
        tossed = self.coin is not None and self.coin.toss(source)
        return self.draw_of(total + self.noise.draw(source), tossed=tossed)

    def draw_of(self, noisy: Fraction, *, tossed: bool = False) -> Draw:
        """What may leave of a noisy total: itself, or its level, or the decision alone (see :attr:`released`).

        Where the noise's values are further apart than the totals', the noisy total would tell the total modulo their
        spacing, whatever epsilon. Only the level leaves then. Where a coin chose the cutoff, what it said leaves too.

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

    @property
    def price(self) -> Fraction | Notion | None:
        """What a run costs, exactly: epsilon as it was written, and never less than the noise allows; None: no price.

        Where only the double of epsilon is known, and it is that of the noise's loss, the loss is what was written.
        """
        if self.notion is not None:
            return self.notion
        loss = self.noise.exact_loss(self.sensitivity)
        if not self.private or loss is None:
            return None
        if self.budget is None and float(loss) == self.epsilon:
            return loss
        return max(loss, self._declared)

    @property
    def _declared(self) -> Fraction:
        return self.budget if self.budget is not None else rational(self.epsilon)

    def release(self, draw: Any, *, simulated: bool = False) -> Release:
        """Decision, statistic and p-value from a draw: post-processing, which costs no privacy.

        Args:
            draw: the noisy total, its level or the decision, as :meth:`draw_of` gives it.
            simulated: whether a generator of the caller's drew it.
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
            pvalue, other, fits = self._pvalues(most, least)
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
            privacy=None if self.notion is None else self.notion.text,
        )

    def _pvalues(self, most: Fraction, least: Fraction) -> tuple[float, float, Fits]:
        return pvalues(self, most, least)

    @property
    def released(self) -> str:
        """What leaves: "statistic", the noisy sum in nats; "level", how many widths above; or the "decision" alone."""
        if self.noise.decision_only:
            return "decision"
        return "statistic" if self.noise.spacing == 1 else "level"

    def interval(
        self, release: Release, *, between: tuple[float, float] | None = None, confidence: float = 0.95
    ) -> tuple[float, float]:
        """The parameter in which P and Q differ, from a release of this test, for nothing: an exact interval.

        Guarantees: it holds the true value with a probability of ``confidence`` at least, if the records come from a
        member of that family with the parameter ``between`` the ends, by default far beyond P and Q. It is shortest
        near these; :func:`privatest.estimate` makes one for a whole range.

        Args:
            release: what a run of this test gave back.
            between: two values between which the parameter lies for sure; None: far beyond P and Q.
            confidence: with what probability the interval holds the true value, at least.
        """
        if self.released != "statistic":
            raise InvalidInput("Only a test that releases its statistic has an interval: design(release='statistic').")
        if self.neighbours != "replace" or not self.private or self.worst_members is not None:
            raise InvalidInput(
                "Only a private test of two distributions whose number of records is public has an interval."
            )
        if not isinstance(release, Release) or release.statistic is None or release.n != self.n:
            raise InvalidInput(f"release={shown(release)} must be a release of this test, with its statistic.")
        from privatest.decision.inversion import Inversion  # start-up: scipy
        from privatest.hypotheses.one_parameter import between_members  # start-up: for intervals alone

        family = between_members(as_distribution(self.null), as_distribution(self.alternative), between)
        inversion = Inversion(family, self.score, self.noise, self.n)
        noisy = self.score.lattice_threshold(Fraction(release.statistic), self.n) - self.noise.offset
        return inversion.interval(round(noisy) + self.noise.offset, float(numbers.probability(confidence=confidence)))

    def power_along(self, family: str, values: Sequence[float]) -> Floats:
        """:meth:`power` of the members of a family along one of its parameters.

        Args:
            family: text with a question mark for the parameter, such as "normal(mean=?, sd=1)".
            values: of that parameter.
        """
        from privatest.hypotheses.one_parameter import with_value  # start-up: for powers along a parameter alone

        return np.array([self.power(with_value(family, value)) for value in values])

    def plot_power(
        self, family: str, *, between: tuple[float, float], ax: Axes | None = None, points: int = 81
    ) -> Axes:
        """The probability of "alternative" along a parameter, for ``"normal(mean=?, sd=1)", between=(-1, 2)`` its mean.

        Args:
            family: as for :meth:`power_along`.
            between: the least and the largest value of the parameter.
            points: how many values are computed.
        """
        from privatest import pictures

        return pictures.power_along(self, family, between, ax, points=points)

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """The exact law of the noisy statistic under P and under Q, the threshold, and a release of this test."""
        from privatest import pictures

        return pictures.private_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the test."""
        return f"Test {self.name!r} of {self.null} against {self.alternative}"

    def facts(self) -> list[Fact]:
        """The question, the exact error rates, and what the test does to a record."""
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
            Fact("epsilon", self.epsilon, "privacy loss of one run" if self.private else "this test is NOT PRIVATE")
            if self.notion is None
            else Fact("privacy", str(self.notion), "what one run meets"),
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
        """The facts about the kind of release, where it is not the statistic, and about the public coin."""
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
        return hash((self.name, self.cutoff, self.epsilon, self.n, self.score.width))

    def __repr__(self) -> str:
        low, high = self.clamp
        rows = f", max_rows_per_unit={self.max_rows_per_unit}" if self.max_rows_per_unit > 1 else ""
        privacy = f"epsilon={self.epsilon:g}" if self.private else "NOT PRIVATE (epsilon=inf)"
        privacy = privacy if self.notion is None else f"privacy={self.notion}"
        return (
            f"PrivateTest({self.name!r}, null={self.null}, alternative={self.alternative}, {privacy}, n={self.n}, "
            f"clamp=({low:.6g}, {high:.6g}), width={self.score.width}, noise={self.noise.describe()}, "
            f"threshold={self.threshold:.6g}, neighbours={self.neighbours!r}{rows})"
        )
