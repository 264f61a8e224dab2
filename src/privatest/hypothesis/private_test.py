"""A designed test: score, noise and threshold, frozen, printable, serialisable, ready to run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest import _validate, engines, markup
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.hypothesis.release import Decision, Release
from privatest.hypothesis.total import NoisyTotal
from privatest.noise import Noise, NoNoise, noise_from_dict, seeded_source, system_source
from privatest.scores import Score
from privatest.scores.documents import fraction_from_json, number_from_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FORMAT", "NEIGHBOURS", "PrivateTest"]

FORMAT = "privatest/test/1"
NEIGHBOURS = ("replace",)


@dataclass(frozen=True, eq=False)
class PrivateTest:
    r"""Decide P ("null") when :math:`\sum_i s(x_i) + N > \kappa`, else Q ("alternative").

    Guarantees: running it on data is epsilon-differentially private (replace one record, n public): the noise
    hides any change of the total up to the score's width at a cost of at most epsilon, which is checked
    when the object is made, however it is made.

    Attributes:
        name: "tight", "scllr", "ncllr", "llr" or "sllr".
        score: record to integer, with its law under P and Q.
        noise: what is added to the total.
        cutoff: kappa, in units of the score's lattice.
        epsilon: privacy loss of one run (``inf``: not private).
        n: number of records.
        neighbours: "replace": one record replaced by another.
        null, alternative: short descriptions of P and Q.
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

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise InvalidInput(f"neighbours={self.neighbours!r} must be one of {', '.join(map(repr, NEIGHBOURS))}.")
        object.__setattr__(self, "n", _validate.positive_integer(n=self.n))
        self.score.check_total(self.n)
        loss = self.noise.privacy_loss(self.score.width)
        if not loss <= self.epsilon * (1 + 1e-12):
            raise InvalidInput(
                f"The noise allows a privacy loss of {loss:.6g} for scores of width {self.score.width}, more than "
                f"epsilon={self.epsilon:g}. Use more noise or a narrower clamp."
            )

    @property
    def private(self) -> bool:
        """Whether epsilon is finite."""
        return math.isfinite(self.epsilon)

    @property
    def threshold(self) -> float:
        """kappa in nats: the statistic above which the decision is "null"."""
        return float(self.score.value(self.cutoff, self.n))

    @property
    def clamp(self) -> tuple[float, float]:
        """The realised clamp: the least and the most that one record adds to the statistic."""
        return self.score.bounds()

    @cached_property
    def null_total(self) -> NoisyTotal:
        """Law of the noisy total when the records come from P."""
        return NoisyTotal(self.score.support, self.score.null_law, self.n, self.noise)

    @cached_property
    def alternative_total(self) -> NoisyTotal:
        """Law of the noisy total when the records come from Q."""
        return NoisyTotal(self.score.support, self.score.alternative_law, self.n, self.noise)

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

    def run(self, data: Any, *, column: str | None = None, rng: np.random.Generator | None = None) -> Release:
        """Run the test once on data of exactly n records.

        Args:
            data: array, list, pandas/polars/pyarrow column, or a data frame together with ``column``.
            column: which column of a data frame holds the records.
            rng: only for simulations: a seeded generator in place of the operating system's randomness. The
                release then says that it is simulated, and is not private.
        """
        records = engines.open_source(data, column=column)
        count = records.count()
        if count != self.n:
            raise InvalidData(
                f"The data have {count} records, the test was designed for n={self.n}. "
                f"Design it with n={count}, or pass exactly {self.n} records."
            )
        records.check(self.score)
        if self.private:
            _ = self.alpha  # a law that cannot be computed is refused now, not when the noise is drawn
        noisy = records.total(self.score) + self.noise.draw(system_source if rng is None else seeded_source(rng))
        return self.release(noisy, simulated=rng is not None)

    def release(self, noisy: Fraction, *, simulated: bool = False) -> Release:
        """Decision, statistic and p-value from a noisy total: post-processing, which costs no privacy."""
        decision: Decision = "null" if noisy > self.cutoff else "alternative"
        statistic = pvalue = None
        if self.private:
            statistic = float(self.score.value(noisy, self.n))
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
            "n": self.n,
            "neighbours": self.neighbours,
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
                raise InvalidDocument(f"epsilon={epsilon!r} and n={n!r} must both be positive.")
            texts = {key: document[key] for key in ("name", "neighbours", "null", "alternative")}
            if not all(isinstance(text, str) for text in texts.values()):
                raise InvalidDocument(f"{', '.join(texts)} must be texts.")
            return cls(
                score=Score.from_dict(document["score"]),
                noise=noise_from_dict(document["noise"]),
                cutoff=fraction_from_json(document["cutoff"]),
                epsilon=epsilon,
                n=n,
                **texts,
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
        try:
            document = json.loads(text, parse_constant=_refuse)
        except InvalidDocument:
            raise
        except (TypeError, ValueError, RecursionError):
            raise InvalidDocument("The text is not JSON; is it cut short?") from None
        return cls.from_dict(document)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivateTest):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.cutoff, self.epsilon, self.n, self.score.width))

    def __repr__(self) -> str:
        low, high = self.clamp
        noise = "none" if isinstance(self.noise, NoNoise) else type(self.noise).__name__
        privacy = f"epsilon={self.epsilon:g}" if self.private else "NOT PRIVATE (epsilon=inf)"
        return (
            f"PrivateTest({self.name!r}, null={self.null}, alternative={self.alternative}, {privacy}, n={self.n}, "
            f"clamp=({low:.6g}, {high:.6g}), width={self.score.width}, noise={noise}, "
            f"threshold={self.threshold:.6g}, neighbours={self.neighbours!r})"
        )


def _refuse(constant: str) -> None:
    raise InvalidDocument(f"The document holds {constant}, which is no number of a test.")
