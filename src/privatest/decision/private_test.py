r"""A designed test: score, noise and threshold, frozen, printable, serialisable, ready to run; and how it is built.

:func:`from_score` and its kin go from a pair, a clamp and an epsilon to a test of each kind. Where neighbours differ by
one person's coming or going, n is not public, so the threshold must not depend on it: every record's score is shifted
by a constant c, the threshold for one record, and the shifted total compared with 0. What hides one record is then

.. math:: \max(|\text{low} - c|, |\text{high} - c|)

instead of high - low: less noise where c lies near the middle of the scores. The shift is a fraction C/M of the
score's lattice, fine enough for n records; the total is the integer :math:`M \sum s_i - C \cdot \text{count}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import _validate
from privatest.decision.design import HIDDEN, Decision, Design, Release
from privatest.decision.odd import OddShare
from privatest.documents import fraction_from_json, number_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.hypotheses import DiscretePair, Pair, as_distribution
from privatest.laws import Curves, NoisyTotal
from privatest.markup import Fact
from privatest.privacy import NOISES, Logistic, Noise, NoNoise, Source, noise_from_dict
from privatest.privacy.noise import NEIGHBOURS, REPLACE, Neighbourhood
from privatest.rational import Number, rational
from privatest.scores import Score, clamped_score, whole_score
from privatest.scores.score import FEW_VALUES
from privatest.scores.score_law import score_law
from privatest.theory import decompose_pair
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records

__all__ = [
    "FORMAT",
    "KINDS",
    "NEIGHBOURS",
    "PRIVATE_KINDS",
    "PrivateTest",
    "Shifted",
    "calibrated_cutoff",
    "calibrated_noise",
    "centred",
    "from_score",
    "kind_score",
    "paper_clamp",
    "unclamped",
    "unmoved",
]

FORMAT = "privatest/test/2"


@dataclass(frozen=True, eq=False)
class PrivateTest(Design[Release]):
    r"""Decide P ("null") when :math:`\sum_i (M s(x_i) - C) + N > \kappa`, else Q ("alternative").

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
        max_rows_per_unit: the most records that are used of one person.
        scale, shift: M and C; 1 and 0 where n is public, else what makes the threshold the same whatever n is.
        budget: epsilon exactly, where it is no short decimal (1/3, say); ``epsilon`` is then its double.
    """

    FORMAT: ClassVar[str] = FORMAT
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

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise InvalidInput(f"neighbours={self.neighbours!r} must be one of {', '.join(map(repr, NEIGHBOURS))}.")
        object.__setattr__(self, "n", _validate.positive_integer(n=self.n))
        _validate.positive_integer(max_rows_per_unit=self.max_rows_per_unit)
        _validate.positive_integer(scale=self.scale)
        self.score.check_total(self.n)
        if self.budget is not None and float(self.budget) != self.epsilon:
            raise InvalidInput(f"budget={self.budget} must be epsilon={self.epsilon!r} before it was rounded.")
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
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)

    @property
    def sensitivity(self) -> int:
        """The most by which one person changes the total, in units of the noise's lattice."""
        return Neighbourhood(self.neighbours, self.max_rows_per_unit).reach(self.score, self.scale, self.shift)

    @property
    def threshold(self) -> float:
        """kappa in nats: the statistic above which the decision is "null"."""
        return float(self._nats(self.cutoff))

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
        """What a (noisy) total stands for: the sum of clamped ratios, or of shifted ones where n is not public."""
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

    def masses(self, edges: Sequence[Fraction | int]) -> tuple[Floats, Floats]:
        """Probability, under P and under Q, that the noisy total lies between neighbours among increasing edges.

        For pictures: many at the price of one, with errors of 1e-4 at most.
        """
        if self.scale == 1 and self.shift == 0:
            curves = Curves(self.score.support, self.score.null_law, self.score.alternative_law, self.n, self.noise)
            if curves.everywhere:
                offsets = np.array([float((edge - curves.base) / curves.unit) for edge in edges])
                first, second = curves.cdfs(np.clip(offsets, -curves.reach, curves.reach))
                return np.maximum(np.diff(first), 0.0), np.maximum(np.diff(second), 0.0)
        return self.null_total.masses(edges), self.alternative_total.masses(edges)

    def _totals(self, laws: Sequence[Floats]) -> list[NoisyTotal]:
        return [NoisyTotal(self.scale * self.score.support - self.shift, law, self.n, self.noise) for law in laws]

    @cached_property
    def null_totals(self) -> list[NoisyTotal]:
        """Laws of the noisy total of which one is at least as bad as any member of the null; one if P is no set."""
        return [self.null_total, *self._totals(self.score.other_null_laws)]

    @cached_property
    def alpha(self) -> float:
        """Type I error, exact: probability of "alternative" under P, or the largest over a set of distributions."""
        return max(total.cdf(self.cutoff) for total in self.null_totals)

    @cached_property
    def beta(self) -> float:
        """Type II error, exact: probability of "null" under Q, or the largest over a set of distributions."""
        others = self._totals(self.score.other_alternative_laws)
        return max(total.sf(self.cutoff) for total in [self.alternative_total, *others])

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

    def power(self, law: Any) -> float:
        """Probability of "alternative" if all records came from ``law``, exact; any distribution will do.

        Under P that is alpha, under Q it is 1 - beta. Records that make no sense under P and Q are odd ones.

        >>> import privatest as pt
        >>> test = pt.design("normal(0, 1)", "normal(1, 1)", epsilon=1, n=30)
        >>> [round(test.power(f"normal({mean}, 1)"), 3) for mean in (0, 0.25, 0.5, 0.75, 1)]
        """
        support, probabilities = score_law(self.score, as_distribution(law, "law"))
        return NoisyTotal(self.scale * support - self.shift, probabilities, self.n, self.noise).cdf(self.cutoff)

    def run(
        self,
        data: Any,
        *,
        column: str | None = None,
        unit: str | None = None,
        order: str | None = None,
        odd_epsilon: Number | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Release:
        """Run it once on data, as :meth:`Design.run` says.

        Args:
            data, column, unit, order, ledger, dataset, request, rng: as there.
            odd_epsilon: release also, for so much more epsilon, about which share of the records made no sense to the
                test (``release.odd_share``): those that are missing, unreadable or outside both supports.
        """
        where, odd = {"column": column, "unit": unit, "order": order}, OddShare.of(self, odd_epsilon)
        return self.run_opened(None, data, where, ledger=ledger, dataset=dataset, request=request, rng=rng, odd=odd)

    @property
    def need(self) -> Need:
        """At most ``max_rows_per_unit`` rows of one person."""
        from privatest.engines import Need  # planning needs no engine

        return Need(rows=self.max_rows_per_unit)

    @property
    def outcome(self) -> type[Release]:
        """A release."""
        return Release

    def question(self) -> dict[str, Any]:
        """The whole test but for its budget: the exact epsilon stands in the charge itself."""
        return {"test": {name: value for name, value in self.to_dict().items() if name != "budget"}}

    def _named(self, where: Mapping[str, str | None]) -> dict[str, str | None]:
        return {"column": where["column"], "unit": where["unit"]}

    def check(self, records: Records, *, charging: bool) -> None:  # noqa: ARG002 - the same without a charge
        """Type, and number where it is public; a law that cannot be computed is refused now, not after the draw."""
        from privatest.engines.protocol import check_count

        records.check(self.score)
        if self.neighbours == "replace":
            check_count(records.count(), self.n)
        if self.private:
            _ = self.alpha

    def answer(self, records: Records, source: Source, *, simulated: bool) -> Release:
        """The noisy total's release."""
        total = self.scale * records.total(self.score)
        if self.shift:
            total -= self.shift * records.count()
        return self.release(total + self.noise.draw(source), simulated=simulated)

    @property
    def price(self) -> Fraction | None:
        """What a run costs, exactly: epsilon as it was written, and never less than the noise allows; None: no price.

        Where only the double of epsilon is known, and it is that of the noise's loss, the loss is what was written.
        """
        loss = self.noise.exact_loss(self.sensitivity)
        if not self.private or loss is None:
            return None
        if self.budget is None and float(loss) == self.epsilon:
            return loss
        return max(loss, self._declared)

    @property
    def _declared(self) -> Fraction:
        return self.budget if self.budget is not None else rational(self.epsilon)

    def release(self, noisy: Fraction, *, simulated: bool = False) -> Release:
        """Decision, statistic and p-value from a noisy total: post-processing, which costs no privacy."""
        decision: Decision = "null" if noisy > self.cutoff else "alternative"
        statistic = pvalue = None
        if self.private:
            statistic = float(self._nats(noisy))
            pvalue = max(total.cdf(noisy) for total in self.null_totals)
        return Release(decision, statistic, pvalue, self.epsilon, self.n, self.name, self.neighbours, simulated)

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
        return [
            Fact("null", self.null, "the null hypothesis P"),
            Fact("alternative", self.alternative, "the alternative Q"),
            Fact("test", self.name, "the kind of test"),
            Fact("epsilon", self.epsilon, "privacy loss of one run" if self.private else "this test is NOT PRIVATE"),
            Fact("n", self.n, public),
            Fact("alpha", self.alpha, "type I error: alternative under P; exact"),
            Fact("beta", self.beta, "type II error: null under Q; exact"),
            Fact("advantage", self.advantage, "1 - alpha - beta"),
            Fact("clamp", self.clamp, "least and most of one record, in nats"),
            Fact("noise", self.noise.kind, "added to the total"),
            Fact("noise_sd", self.noise_sd, "its standard deviation"),
            Fact("threshold", self.threshold, "says null above it, in nats"),
            Fact("neighbours", self.neighbours, f"hides {HIDDEN[self.neighbours]}"),
            Fact("max_rows_per_unit", self.max_rows_per_unit, "rows used of one person, all protected"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the test exactly."""
        return {
            "format": FORMAT,
            "name": self.name,
            "null": self.null,
            "alternative": self.alternative,
            "epsilon": self.epsilon if self.private else "inf",
            **({} if self.budget is None else {"budget": str(self.budget)}),
            **({} if self.worst_members is None else {"worst_members": list(self.worst_members)}),
            "n": self.n,
            "neighbours": self.neighbours,
            "max_rows_per_unit": self.max_rows_per_unit,
            "scale": self.scale,
            "shift": self.shift,
            "cutoff": str(self.cutoff),
            "noise": self.noise.to_dict(),
            "score": self.score.to_dict(),
        }

    @classmethod
    def _read(cls, document: dict[str, Any]) -> PrivateTest:
        written = document["epsilon"]
        epsilon = math.inf if written == "inf" else number_from_json(written)
        if not epsilon > 0:
            raise InvalidDocument(f"epsilon={shown(epsilon)} must be positive.")
        fields: dict[str, Any] = {
            **texts_from_json(document, "name", "neighbours", "null", "alternative"),
            **wholes_from_json(document, "n", least=1),
            **wholes_from_json(document, "max_rows_per_unit", "scale", "shift"),
        }
        return cls(
            score=Score.from_dict(document["score"]),
            noise=noise_from_dict(document["noise"]),
            cutoff=fraction_from_json(document["cutoff"]),
            epsilon=epsilon,
            budget=fraction_from_json(document["budget"]) if "budget" in document else None,
            worst_members=_members_from_json(document.get("worst_members")),
            **fields,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.cutoff, self.epsilon, self.n, self.score.width))

    def __repr__(self) -> str:
        low, high = self.clamp
        rows = f", max_rows_per_unit={self.max_rows_per_unit}" if self.max_rows_per_unit > 1 else ""
        privacy = f"epsilon={self.epsilon:g}" if self.private else "NOT PRIVATE (epsilon=inf)"
        return (
            f"PrivateTest({self.name!r}, null={self.null}, alternative={self.alternative}, {privacy}, n={self.n}, "
            f"clamp=({low:.6g}, {high:.6g}), width={self.score.width}, noise={self.noise.describe()}, "
            f"threshold={self.threshold:.6g}, neighbours={self.neighbours!r}{rows})"
        )


def _members_from_json(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    first, second = value
    if not isinstance(first, str) or not isinstance(second, str):
        raise InvalidDocument(f"worst_members={shown(value)} must be two texts.")
    return first, second


_ROUNDS = 6


@dataclass(frozen=True)
class Shifted:
    """Noise and cutoff for the total M S - C count."""

    noise: Noise
    cutoff: Fraction
    scale: int
    shift: int


def centred(score: Score, kind: str, epsilon: Fraction, n: int, alpha: float | None, around: Neighbourhood) -> Shifted:
    """The shift at which 0 is the cutoff of the largest advantage at n records, or the largest that keeps alpha.

    The noise depends on the shift, the best shift a little on the noise: a few rounds settle both.
    """
    scale = _fineness(n)
    middle = Fraction(score.mean(score.null_law) + score.mean(score.alternative_law)) / 2
    centre = middle
    for _ in range(_ROUNDS):
        rough = _noise(kind, epsilon, score, around.units(score, centre), 1)
        curves = Curves(score.support, score.null_law, score.alternative_law, n, rough)
        cutoff = curves.best_cutoff() if alpha is None else curves.cutoff_for_alpha(alpha)
        # A cutoff beyond all totals (a tiny alpha) leaves the shift within the scores.
        before, centre = centre, min(max(cutoff / n, Fraction(score.low)), Fraction(score.high))
        if around.units(score, centre) == around.units(score, before):
            break

    def at(shift: int) -> Shifted:
        return _with_noise(score, kind, epsilon, scale, shift, around, Fraction(0))

    if alpha is not None:
        return _kept(score, n, at(math.floor(scale * centre)), alpha)
    # Less noise may be worth a threshold that is a little off: the middle of the scores needs the least.
    rivals = (centre, middle, -score.origin / score.step, Fraction(score.low + score.high, 2))
    return max((at(round(scale * rival)) for rival in rivals), key=lambda found: round(_advantage(score, n, found), 12))


def _advantage(score: Score, n: int, found: Shifted) -> float:
    """About the advantage, for choosing among shifts."""
    noise, threshold = found.noise, Fraction(n * found.shift, found.scale)
    coarse = noise.coarser(found.scale)
    if coarse is not None and len(score.support) > FEW_VALUES:
        # On the score's own lattice, where the curves are quick; between its points they are interpolated.
        curves = Curves(score.support, score.null_law, score.alternative_law, n, coarse)
        null, alternative = curves.cdfs(np.array([float((threshold - curves.base) / curves.unit)]))
        return float(alternative[0] - null[0])
    scores = found.scale * score.support - found.shift
    laws = score.null_law, score.alternative_law
    low, high = (NoisyTotal(scores, law, n, noise).cdf(found.cutoff) for law in laws)
    return high - low


def unmoved(score: Score, kind: str, epsilon: Fraction, n: int, threshold: Fraction, around: Neighbourhood) -> Shifted:
    """The ratio as it is: shifted by what stands for the ratio 0, so that the threshold is a number of nats."""
    scale = _fineness(n)
    shift = round(-scale * score.origin / score.step)
    return _with_noise(score, kind, epsilon, scale, shift, around, threshold * scale / score.step)


def _fineness(n: int) -> int:
    """M, such that n roundings of the shift together stay far below the deviation of n scores."""
    return 1 << (256 * math.isqrt(n)).bit_length()


def _with_noise(
    score: Score, kind: str, epsilon: Fraction, scale: int, shift: int, around: Neighbourhood, cutoff: Fraction
) -> Shifted:
    units = around.units(score, Fraction(shift, scale))
    return Shifted(_noise(kind, epsilon, score, units, scale), cutoff, scale, shift)


def _noise(kind: str, epsilon: Fraction, score: Score, units: int, scale: int) -> Noise:
    """The kind's noise that hides ``units`` lattice steps of the score, on a lattice ``scale`` times as fine."""
    return _noise_class(kind).for_width(epsilon, Fraction(units * scale), score.step / scale)


def _noise_class(kind: str) -> type[Noise]:
    """The noise that this kind of test adds."""
    return next(noise for noise in NOISES.values() if noise.test == kind)


def _kept(score: Score, n: int, found: Shifted, alpha: float) -> Shifted:
    """The same with a cutoff at which the type I error is at most alpha, exactly.

    Invariant: the error is at most alpha at `low` and above it at `high`.
    """
    scores = found.scale * score.support - found.shift
    totals = [NoisyTotal(scores, law, n, found.noise) for law in score.null_laws]

    def error(cutoff: Fraction | int) -> float:
        return max(total.cdf(cutoff) for total in totals)

    if error(found.cutoff) <= alpha:
        return found
    high = math.floor(found.cutoff)
    step = found.scale
    low = high - step
    while error(low) > alpha:
        high, step = low, 2 * step
        low = high - step
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) <= alpha:
            low = middle
        else:
            high = middle
    return Shifted(found.noise, Fraction(low), found.scale, found.shift)


PRIVATE_KINDS = tuple(noise.test for noise in NOISES.values() if noise.test)
KINDS = (*PRIVATE_KINDS, "llr", "sllr")
COARSE_UNITS = 64


def from_score(
    pair: Pair,
    score: Score,
    epsilon: Fraction,
    n: int,
    kind: str,
    clamp: tuple[Number, Number],
    *,
    threshold: Fraction | None = None,
    alpha: float | None = None,
    around: Neighbourhood = REPLACE,
) -> PrivateTest:
    """A private test with this clamp, whose score is :func:`kind_score`.

    The threshold is the given one; else the largest that keeps the type I error at ``alpha``; else, for "tight", the
    one of the largest advantage and, for the paper's tests, 0.
    """
    calibrated = threshold is None and (alpha is not None or kind == "tight")
    if around.kind == "add-remove":
        if calibrated:
            found = centred(score, kind, epsilon, n, alpha, around)
        else:
            found = unmoved(score, kind, epsilon, n, threshold or Fraction(0), around)
        noise, cutoff, scale, shift = found.noise, found.cutoff, found.scale, found.shift
    else:
        noise, scale, shift = calibrated_noise(kind, score, epsilon, clamp, around.rows), 1, 0
        if calibrated:
            cutoff = calibrated_cutoff(score, noise, n, alpha)
        else:
            cutoff = score.lattice_threshold(threshold or Fraction(0), n)
    null, alternative = pair.null.describe(), pair.alternative.describe()
    rounded = float(epsilon)
    budget = None if rational(rounded) == epsilon else epsilon
    return PrivateTest(
        kind, score, noise, cutoff, rounded, n, around.kind, null, alternative, around.rows, scale, shift, budget
    )


def kind_score(pair: Pair, kind: str, clamp: tuple[Number, Number]) -> Score:
    """The clamped score on the kind's lattice.

    Few values need few steps: a coarse lattice makes the exact law of their sum much cheaper. The paper's tests
    keep the fine one, which is closest to the letter.
    """
    few = isinstance(pair, DiscretePair) and 2 < len(pair.ratios) <= FEW_VALUES
    return clamped_score(pair, clamp, COARSE_UNITS if kind == "tight" and few else None)


def calibrated_noise(kind: str, score: Score, epsilon: Fraction, clamp: tuple[Number, Number], rows: int = 1) -> Noise:
    """The kind's noise, scaled to what it must hide of a person with ``rows`` rows, in units of the score's lattice."""
    width = Fraction(score.width)
    if kind != "tight":  # the paper's b - a, not the realised one
        width = (rational(clamp[1], "clamp") - rational(clamp[0], "clamp")) / score.step
    return _noise_class(kind).for_width(epsilon, rows * width, score.step)


def calibrated_cutoff(score: Score, noise: Noise, n: int, alpha: float | None) -> Fraction:
    """The cutoff of the largest advantage, or the largest one whose type I error is at most alpha."""
    score.check_total(n)
    if alpha is None:
        return Curves(score.support, score.null_law, score.alternative_law, n, noise).best_cutoff()
    laws = score.null_laws
    return min(Curves(score.support, law, score.alternative_law, n, noise).cutoff_for_alpha(alpha) for law in laws)


def paper_clamp(pair: Pair, epsilon: Fraction) -> tuple[Number, Number]:
    """[-eps', eps], or [-eps, eps'] when the roles are swapped, with eps exactly as the user wrote it."""
    split = decompose_pair(pair, float(epsilon))
    inner = min(rational(split.epsilon_prime), epsilon)
    return (-epsilon, inner) if split.swapped else (-inner, epsilon)


def unclamped(
    pair: Pair, n: int, kind: str, *, threshold: Fraction | None = None, alpha: float | None = None
) -> PrivateTest:
    """llr and sllr: the ratio as it is."""
    score = whole_score(pair, n)
    noise = NoNoise() if kind == "llr" else Logistic(2 / score.step)
    if alpha is not None and threshold is None:
        cutoff = calibrated_cutoff(score, noise, n, alpha)
    else:
        cutoff = score.lattice_threshold(threshold or Fraction(0), n)
        if kind == "llr":
            # The likelihood-ratio test says P on ties (the paper's K_S), so the cutoff lies just below.
            cutoff = math.ceil(cutoff) - Fraction(1, 2)
    bounded = kind == "sllr" and all(math.isfinite(end) for end in pair.ratio_range)
    epsilon = float(score.step * score.width / 2) if bounded else math.inf
    null, alternative = pair.null.describe(), pair.alternative.describe()
    return PrivateTest(kind, score, noise, cutoff, epsilon, n, null=null, alternative=alternative)
