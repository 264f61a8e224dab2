"""A designed test: score, noise and threshold, frozen, printable, serialisable, ready to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import _validate
from privatest.decision.design import Design, Fact
from privatest.decision.release import Decision, Release
from privatest.documents import fraction_from_json, number_from_json, texts_from_json, wholes_from_json
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.laws import Curves, NoisyTotal
from privatest.privacy import Noise, Source, noise_from_dict
from privatest.privacy.neighbours import NEIGHBOURS, Neighbourhood
from privatest.rational import rational
from privatest.scores import Score
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privatest.engines import Need, Records

__all__ = ["FORMAT", "NEIGHBOURS", "PrivateTest"]

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

    @cached_property
    def alpha(self) -> float:
        """Type I error, exact: probability of "alternative" under P."""
        return self.null_total.cdf(self.cutoff)

    @cached_property
    def beta(self) -> float:
        """Type II error, exact: probability of "null" under Q."""
        return self.alternative_total.sf(self.cutoff)

    @property
    def advantage(self) -> float:
        """1 - alpha - beta."""
        return 1.0 - self.alpha - self.beta

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
            pvalue = self.null_total.cdf(noisy)
        return Release(decision, statistic, pvalue, self.epsilon, self.n, self.name, self.neighbours, simulated)

    def plot(self, ax: Axes | None = None, *, release: Release | None = None) -> Axes:
        """The exact law of the noisy statistic under P and under Q, the threshold, and a release of this test."""
        from privatest import pictures

        return pictures.private_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the test."""
        return f"Private test {self.name!r}"

    def facts(self) -> list[Fact]:
        """The question, the exact error rates, and what the test does to a record."""
        return [
            ("P", self.null, "the null hypothesis"),
            ("Q", self.alternative, "the alternative"),
            ("epsilon", self.epsilon if self.private else "infinite: NOT PRIVATE", "privacy loss of one run"),
            ("records n", self.n, "public" if self.neighbours == "replace" else "expected; not revealed"),
            ("type I error alpha", self.alpha, 'says "alternative" under P; exact'),
            ("type II error beta", self.beta, 'says "null" under Q; exact'),
            ("advantage", self.advantage, "1 - alpha - beta"),
            ("clamp", self.clamp, "the least and the most that one record adds, in nats"),
            ("noise", self.noise.describe(), "added to the total"),
            ("threshold", self.threshold, '"null" above it, in nats'),
            ("neighbours", self.neighbours, "which data sets the guarantee compares"),
            ("rows used of one person, at most", self.max_rows_per_unit, "all of them together are protected"),
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
