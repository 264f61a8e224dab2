"""A designed test: score, noise and threshold, frozen, printable, serialisable, ready to run."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import _validate, markup
from privatest.charge import charged, make_charge, replayed
from privatest.decision.release import Decision, Release
from privatest.documents import document_from_json, fraction_from_json, number_from_json
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.laws import Curves, NoisyTotal
from privatest.privacy import Noise, NoNoise, noise_from_dict, seeded_source, system_source
from privatest.privacy.neighbours import NEIGHBOURS, Neighbourhood
from privatest.rational import rational
from privatest.scores import Score
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FORMAT", "NEIGHBOURS", "PrivateTest"]

FORMAT = "privatest/test/2"


@dataclass(frozen=True, eq=False)
class PrivateTest:
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

    def run(
        self,
        data: Any,
        *,
        column: str | None = None,
        unit: str | None = None,
        order: str | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Release:
        """Run the test once on data: of exactly n records where n is public, of any number where it is not.

        Args:
            data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: which column holds the records.
            unit: which column says whose record it is. At most ``max_rows_per_unit`` records of each are used; records
                that say nobody's are not used.
            order: which column gives the order of time (no test looks at it).
            ledger, dataset, request: charge epsilon to the data set's budget before anything is computed. The same
                request again returns the same release, free of charge.
            rng: only for simulations: a seeded generator in place of the operating system's randomness. The
                release then says that it is simulated, and is not private.
        """
        from privatest import engines  # planning needs none of them
        from privatest.engines.protocol import check_count

        charge = make_charge(
            ledger,
            dataset,
            request,
            epsilon=self.price,
            # The exact epsilon stands in the charge itself.
            design=lambda: {"test": _without_budget(self.to_dict()), "column": column, "unit": unit},
            simulated=rng is not None,
            data=data,
        )
        if (earlier := replayed(charge, Release.from_dict)) is not None:
            return earlier
        need = engines.Need(rows=self.max_rows_per_unit)
        records = engines.open_for(need, data, column=column, unit=unit, order=order)
        records.check(self.score)
        if self.neighbours == "replace":
            check_count(records.count(), self.n)
        if self.private:
            _ = self.alpha  # a law that cannot be computed is refused now, not when the noise is drawn
        source = system_source if rng is None else seeded_source(rng)

        def released() -> Release:
            total = self.scale * records.total(self.score)
            if self.shift:
                total -= self.shift * records.count()
            return self.release(total + self.noise.draw(source), simulated=rng is not None)

        return charged(charge, released, Release.from_dict)

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

    def _repr_html_(self) -> str:
        facts = (
            ("P", self.null),
            ("Q", self.alternative),
            ("epsilon", self.epsilon if self.private else "infinite: NOT PRIVATE"),
            ("records n", self.n),
            ("type I error alpha", self.alpha),
            ("type II error beta", self.beta),
            ("advantage", self.advantage),
            ("clamp", self.clamp),
            ("noise", "none" if isinstance(self.noise, NoNoise) else type(self.noise).__name__),
            ("threshold", self.threshold),
            ("neighbours", self.neighbours),
            ("rows used of one person, at most", self.max_rows_per_unit),
        )
        return markup.fact_table(f"Private test {self.name!r}", facts)

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
    def from_dict(cls, document: dict[str, Any]) -> PrivateTest:
        """The test that :meth:`to_dict` wrote; refuses one that is not private at its declared epsilon."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else type(document).__name__
            raise InvalidDocument(f"Not a test this version can read: format {found!r}, expected {FORMAT!r}.")
        try:
            written, n = document["epsilon"], document["n"]
            epsilon = math.inf if written == "inf" else number_from_json(written)
            if not epsilon > 0 or type(n) is not int or n < 1:
                raise InvalidDocument(f"epsilon={shown(epsilon)} and n={shown(n)} must both be positive.")
            texts = {key: document[key] for key in ("name", "neighbours", "null", "alternative")}
            if not all(isinstance(text, str) for text in texts.values()):
                raise InvalidDocument(f"{', '.join(texts)} must be texts.")
            whole = {key: document[key] for key in ("max_rows_per_unit", "scale", "shift")}
            if not all(type(number) is int for number in whole.values()):
                raise InvalidDocument(f"{', '.join(whole)} must be whole numbers.")
            return cls(
                score=Score.from_dict(document["score"]),
                noise=noise_from_dict(document["noise"]),
                cutoff=fraction_from_json(document["cutoff"]),
                epsilon=epsilon,
                n=n,
                budget=fraction_from_json(document["budget"]) if "budget" in document else None,
                **texts,
                **whole,
            )
        except InvalidDocument:
            raise
        except InvalidInput as error:
            raise InvalidDocument(f"The document describes a test that cannot be: {error}") from None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidDocument(f"The test cannot be read: {error!r}.") from None

    def to_json(self) -> str:
        """JSON text from which :meth:`from_json` restores the test exactly."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> PrivateTest:
        """The test that :meth:`to_json` wrote."""
        return cls.from_dict(document_from_json(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivateTest):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.cutoff, self.epsilon, self.n, self.score.width))

    def __repr__(self) -> str:
        low, high = self.clamp
        noise = "none" if isinstance(self.noise, NoNoise) else type(self.noise).__name__
        rows = f", max_rows_per_unit={self.max_rows_per_unit}" if self.max_rows_per_unit > 1 else ""
        privacy = f"epsilon={self.epsilon:g}" if self.private else "NOT PRIVATE (epsilon=inf)"
        return (
            f"PrivateTest({self.name!r}, null={self.null}, alternative={self.alternative}, {privacy}, n={self.n}, "
            f"clamp=({low:.6g}, {high:.6g}), width={self.score.width}, noise={noise}, "
            f"threshold={self.threshold:.6g}, neighbours={self.neighbours!r}{rows})"
        )


def _without_budget(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "budget"}
