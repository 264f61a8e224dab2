"""A designed goodness-of-fit test: statistic, noise and threshold, ready to run; and what it gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privatest import engines
from privatest.decision import Release
from privatest.decision.design import Design, Fact
from privatest.documents import check_format, fraction_from_json, wholes_from_json
from privatest.engines.protocol import check_count, counter
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.fit.alternatives import Alternative
from privatest.fit.candidates import Candidate, Target
from privatest.fit.domain import Domain, domain_cells_from_dict, histogram
from privatest.fit.excess_law import ACCURACY, ExcessLaw
from privatest.fit.grains import Grains
from privatest.fit.statistic import Excess
from privatest.privacy import Source, Tulap, noise_from_dict
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FORMAT", "FitRelease", "FitTest"]

RELEASE_FORMAT = "privatest/fit-release/2"


@dataclass(frozen=True)
class FitRelease(Release):
    """The outcome of running a goodness-of-fit test on data.

    Guarantees: decision, statistic and pvalue together are epsilon-differentially private, being computed
    from the noisy statistic alone.

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
    neighbours: str = "replace"

    @property
    def title(self) -> str:
        """What this is."""
        return "Goodness of fit"

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
# with many symbols, where a look costs more.
MANY_SYMBOLS = 100
LOOKED_AT = {False: 5, True: 2}


@dataclass(frozen=True, eq=False)
class FitTest(Design[FitRelease]):
    r"""Decide "alternative" when :math:`T(N) + \text{noise} > \kappa`, else "null", for the histogram N of the data.

    Guarantees: running it on data is epsilon-differentially private (replace one record, n public): the noise
    hides any change of T up to its width at a cost of at most epsilon, which is checked when the object is made,
    however it is made. Type I error at most ``alpha`` and type II error at most ``beta`` as stated there.

    Attributes:
        candidate: the statistic, and Goldreich's map where it is used.
        domain: symbols and P.
        noise: what is added to T.
        cutoff: kappa.
        distance: the total variation distance from P (after binning) that the test is to detect.
        n: number of records.
    """

    FORMAT: ClassVar[str] = FORMAT
    KIND: ClassVar[str] = "fit test"

    candidate: Candidate
    domain: Domain
    noise: Tulap
    cutoff: Fraction
    distance: float
    n: int

    def __post_init__(self) -> None:
        excess, grains = self.candidate.excess, self.candidate.grains
        symbols = len(self.domain.probabilities) if grains is None else grains.count
        if excess.symbols != symbols or self.domain.cells.count != len(self.domain.probabilities):
            raise InvalidInput(
                f"The statistic has {excess.symbols} symbols, the data {symbols}, in {self.domain.cells.count} cells."
            )
        excess.check_total(self.n)
        if not self.noise.hides(excess.width):
            raise InvalidInput(
                f"The noise of width {self.noise.width} does not hide a statistic of width {excess.width} "
                f"at epsilon={self.epsilon:g}."
            )

    @property
    def epsilon(self) -> float:
        """Privacy loss of one run."""
        return float(self.noise.epsilon)

    @property
    def method(self) -> str:
        """ "binomial", "direct", "uniformity" or "grains"."""
        return self.candidate.method

    @property
    def odd_symbol(self) -> int:
        """The symbol, the most likely one, that a record counts as if it makes no sense."""
        return int(np.argmax(self.domain.probabilities))

    @cached_property
    def null_law(self) -> ExcessLaw:
        """Law of T under P."""
        return self.candidate.law(self.domain.probabilities, self.n)

    @cached_property
    def alpha(self) -> float:
        """Type I error: probability of "alternative" under P, from the exact law of T (error below 1e-8)."""
        return self.null_law.above(self.cutoff, self.noise)

    @cached_property
    def _hardest(self) -> tuple[float, Alternative]:
        p = self.domain.probabilities
        target = Target(p, self.n, self.distance, self.noise.epsilon, min(max(self.alpha, 1e-9), 1 - 1e-9))
        found = []
        for _, alternative in self.candidate.hardest(target)[: LOOKED_AT[len(p) > MANY_SYMBOLS]]:
            law = self.candidate.law(alternative.q, self.n)
            found.append((law.below(self.cutoff, self.noise), alternative))
        return max(found, key=lambda pair: pair[0])

    @property
    def beta(self) -> float:
        """Type II error: the largest probability of "null" over the hardest alternatives at the distance.

        The alternatives are those at which the mean of T is least for many ways to choose who gains and who
        loses (:mod:`privatest.fit.alternatives`); the probability is from the exact law of T (error below 1e-8).
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
    def guarantee(self) -> str:
        """What is promised, and how it was obtained."""
        where = f" between binned laws ({self.domain.bins})" if self.domain.bins else ""
        return (
            f"type I error {self.alpha:.4g}; type II error {self.beta:.4g} at total variation distance "
            f"{self.distance:g}{where}, hardest alternative: {self.hardest_alternative}; "
            f"both from the exact law of the statistic, error below {ACCURACY:g}"
        )

    @property
    def price(self) -> Fraction:
        """Epsilon, exactly."""
        return self.noise.epsilon

    @property
    def need(self) -> engines.Need:
        """One row of each person."""
        return engines.Need()

    @property
    def outcome(self) -> type[FitRelease]:
        """A release."""
        return FitRelease

    def question(self) -> dict[str, Any]:
        """The whole test."""
        return {"fit": self.to_dict()}

    def check(self, records: engines.Records, *, charging: bool) -> None:  # noqa: ARG002 - the same without a charge
        """Type and number; a law that cannot be computed is refused now, not after the draw."""
        records.check(counter(self.domain.cells))
        check_count(records.count(), self.n)
        _ = self.null_law

    def answer(self, records: engines.Records, source: Source, *, simulated: bool) -> FitRelease:
        """The noisy statistic's release."""
        counts = histogram(records, self.domain.cells, self.odd_symbol)
        if self.candidate.grains is not None:
            counts = self.candidate.grains.draw(counts, source)
        return self.release(self.candidate.excess.of(counts) + self.noise.draw(source), simulated=simulated)

    def release(self, noisy: Fraction, *, simulated: bool = False) -> FitRelease:
        """Decision, statistic and p-value from a noisy T: post-processing, which costs no privacy."""
        return FitRelease(
            decision="alternative" if noisy > self.cutoff else "null",
            statistic=(self.null_law.mean - float(noisy)) / (self.candidate.excess.width * self.n),
            # A value of T + N as large as this one or larger: just above the lattice value below it.
            pvalue=self.null_law.above(noisy - Fraction(1, 2), self.noise),
            epsilon=self.epsilon,
            n=self.n,
            test=self.method,
            simulated=simulated,
        )

    def plot(self, ax: Axes | None = None, *, release: FitRelease | None = None) -> Axes:
        """The laws of the noisy statistic under P and the hardest alternative, the threshold, and a release."""
        from privatest import pictures

        return pictures.fit_test(self, ax, release=release)

    @property
    def title(self) -> str:
        """Names the method."""
        return f"Goodness-of-fit test {self.method!r}"

    def facts(self) -> list[Fact]:
        """The question and the error rates."""
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        return [
            ("P", self.domain.null + bins, "the null hypothesis"),
            ("distance", self.distance, "total variation from P that is to be detected"),
            ("epsilon", self.epsilon, "privacy loss of one run"),
            ("records n", self.n, "public"),
            ("type I error alpha", self.alpha, 'says "alternative" under P'),
            ("type II error beta", self.beta, 'says "null" at the distance, at most'),
            ("hardest alternative", self.hardest_alternative, "attains beta"),
            ("neighbours", "replace", "which data sets the guarantee compares"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document from which :meth:`from_dict` restores the test exactly."""
        return {
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
        if not isinstance(noise, Tulap):
            raise InvalidDocument("The noise of a goodness-of-fit test must be of kind 'tulap'.")
        excess = Excess.from_dict(document["statistic"])
        candidate = Candidate(method, excess, Grains.of(p) if method == "grains" else None)
        cells = domain_cells_from_dict(document["cells"])
        domain = Domain(cells, p, str(document["null"]), None if bins is None else str(bins))
        return cls(candidate, domain, noise, fraction_from_json(document["cutoff"]), distance, n)

    def __hash__(self) -> int:
        return hash((self.method, self.cutoff, self.noise, self.distance, self.n))

    def __repr__(self) -> str:
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        return (
            f"FitTest({self.method!r}, null={self.domain.null}{bins}, symbols={len(self.domain.probabilities)}, "
            f"distance={self.distance:g}, epsilon={self.epsilon:g}, n={self.n}, width={self.candidate.excess.width}, "
            f"cutoff={float(self.cutoff):g}, neighbours='replace')"
        )
