"""What a goodness-of-fit test gives back. Nothing else leaves the data.

A designed goodness-of-fit test: statistic, noise and threshold, frozen, printable, serialisable, ready to run.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privatest import engines, markup
from privatest.charge import Charge, Receipt, charged, make_charge, replayed
from privatest.documents import document_from_json
from privatest.engines.protocol import check_count, check_promise, counter
from privatest.errors import InvalidDocument, InvalidInput, shown
from privatest.fit.alternatives import Alternative
from privatest.fit.candidates import Candidate, Target
from privatest.fit.domain import Domain, domain_cells_from_dict, histogram
from privatest.fit.excess_law import ACCURACY, ExcessLaw
from privatest.fit.grains import Grains
from privatest.fit.statistic import Excess
from privatest.privacy import Tulap, noise_from_dict, seeded_source, system_source
from privatest.vectors import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FORMAT", "Decision", "FitRelease", "FitTest"]

Decision = Literal["null", "alternative"]


@dataclass(frozen=True)
class FitRelease:
    """The outcome of running a goodness-of-fit test on data.

    Guarantees: decision, statistic and pvalue together are epsilon-differentially private, being computed
    from the noisy statistic alone.

    Attributes:
        decision: "null" (the data look like P) or "alternative" (they come from some law away from P).
        statistic: the noisy excess over its mean under P, for each record; 0 is expected under P, and large
            values, of the size of the distance at most, speak against P.
        pvalue: probability, were P true, of a statistic as large as this one.
        epsilon: privacy loss of this release.
        n: number of records, which is public.
        test: the method, "binomial", "direct", "uniformity" or "grains".
        neighbours: which pairs of data sets the guarantee compares.
        simulated: True when the randomness came from a generator of the caller's: such a release is not private.
        receipt: what the ledger noted beside it, with a fingerprint to keep; None without a ledger.
    """

    decision: Decision
    statistic: float
    pvalue: float
    epsilon: float
    n: int
    test: str
    neighbours: str = "replace"
    simulated: bool = False
    receipt: Receipt | None = field(default=None, compare=False, repr=False)

    @property
    def replayed(self) -> Receipt | None:
        """The receipt, where this is an answer recorded earlier: nothing was charged, the data given were not read."""
        return self.receipt if self.receipt is not None and self.receipt.replayed else None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds: randomness from the operating system."""
        return not self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "private": self.private, **markup.receipt_document(self.receipt)}

    @classmethod
    def from_dict(cls, document: dict[str, Any]) -> FitRelease:
        """The release that :meth:`to_dict` wrote."""
        kept = {one.name: document[one.name] for one in fields(cls) if one.name != "receipt"}
        return cls(**kept, receipt=Receipt.from_dict(document.get("receipt")))

    def _repr_html_(self) -> str:
        return markup.release_table("Goodness of fit", self)

    def __str__(self) -> str:
        kept = "SIMULATED, not private"
        if self.private:
            kept = f"{self.epsilon:g}-differentially private ({self.neighbours})"
        text = f"decision: {self.decision}; statistic {self.statistic:.6g}, p-value {self.pvalue:.4g}; {kept}"
        return f"{text}; {self.replayed.note}" if self.replayed else text


FORMAT = "privatest/fit/1"

# How many of the alternatives that the normal approximation calls hardest are looked at exactly: it is a good guide
# with many symbols, where a look costs more.
MANY_SYMBOLS = 100
LOOKED_AT = {False: 5, True: 2}


@dataclass(frozen=True, eq=False)
class FitTest:
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

    def run(
        self,
        data: Any,
        *,
        column: str | None = None,
        ledger: Any = None,
        dataset: str | None = None,
        request: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> FitRelease:
        """Run the test once on data of exactly n records.

        Args:
            data: array, list, pandas/polars/pyarrow column, a data frame, file, SQL table or Spark DataFrame together
                with ``column``.
            column: which column holds the records.
            ledger, dataset, request: charge epsilon to the data set's budget before anything is computed. The same
                request again returns the same release, free of charge.
            rng: only for simulations: a seeded generator in place of the operating system's randomness. The
                release then says that it is simulated, and is not private.
        """
        charge = self.charge(ledger, dataset, request, column, simulated=rng is not None, data=data)
        if (earlier := replayed(charge, FitRelease.from_dict)) is not None:
            return earlier
        return self.run_on(engines.open_for(engines.Need(), data, column=column), charge, rng=rng)

    def charge(
        self,
        ledger: Any,
        dataset: str | None,
        request: str | None,
        column: str | None,
        *,
        simulated: bool,
        data: Any = None,
    ) -> Charge | None:
        """What a run on that column charges; None without a ledger."""
        return make_charge(
            ledger,
            dataset,
            request,
            epsilon=self.noise.epsilon,
            design=lambda: {"fit": self.to_dict(), "column": column},
            simulated=simulated,
            data=data,
        )

    def run_on(
        self, records: engines.Records, charge: Charge | None = None, *, rng: np.random.Generator | None = None
    ) -> FitRelease:
        """:meth:`run` on records that are open already."""
        check_promise(records.promise, engines.Need())
        records.check(counter(self.domain.cells))
        check_count(records.count(), self.n)
        source = system_source if rng is None else seeded_source(rng)

        def released() -> FitRelease:
            counts = histogram(records, self.domain.cells, self.odd_symbol)
            if self.candidate.grains is not None:
                counts = self.candidate.grains.draw(counts, source)
            noisy = self.candidate.excess.of(counts) + self.noise.draw(source)
            return self.release(noisy, simulated=rng is not None)

        return charged(charge, released, FitRelease.from_dict)

    def release(self, noisy: Fraction, *, simulated: bool = False) -> FitRelease:
        """Decision, statistic and p-value from a noisy T: post-processing, which costs no privacy."""
        return FitRelease(
            decision="alternative" if noisy > self.cutoff else "null",
            statistic=(float(noisy) - self.null_law.mean) / (self.candidate.excess.width * self.n),
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

    def _repr_html_(self) -> str:
        facts = (
            ("P", self.domain.null + (f" ({self.domain.bins})" if self.domain.bins else "")),
            ("distance", self.distance),
            ("epsilon", self.epsilon),
            ("records n", self.n),
            ("type I error alpha", self.alpha),
            ("type II error beta", self.beta),
            ("hardest alternative", self.hardest_alternative),
            ("neighbours", "replace"),
        )
        return markup.fact_table(f"Goodness-of-fit test {self.method!r}", facts)

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
    def from_dict(cls, document: dict[str, Any]) -> FitTest:
        """The test that :meth:`to_dict` wrote; refuses one that is not private at its declared epsilon."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else type(document).__name__
            raise InvalidDocument(f"Not a fit test this version can read: format {found!r}, expected {FORMAT!r}.")
        try:
            method, bins = str(document["method"]), document["bins"]
            n, distance = document["n"], float(document["distance"])
            p = np.array(document["probabilities"], dtype=np.float64)
            if p.ndim != 1 or not np.all(p >= 0) or not abs(math.fsum(p.tolist()) - 1) < 1e-9:
                raise InvalidDocument("The probabilities of the null do not sum to 1.")
            if type(n) is not int or n < 1 or not 0 < distance < 1:
                raise InvalidDocument(f"n={shown(n)} must be at least 1 and distance={shown(distance)} lie in (0, 1).")
            if method not in ("binomial", "direct", "uniformity", "grains"):
                raise InvalidDocument(f"Unknown method {method!r}.")
            noise = noise_from_dict(document["noise"])
            if not isinstance(noise, Tulap):
                raise InvalidDocument("The noise of a goodness-of-fit test must be of kind 'tulap'.")
            excess = Excess.from_dict(document["statistic"])
            candidate = Candidate(method, excess, Grains.of(p) if method == "grains" else None)
            cells = domain_cells_from_dict(document["cells"])
            domain = Domain(cells, p, str(document["null"]), None if bins is None else str(bins))
            return cls(candidate, domain, noise, Fraction(document["cutoff"]), distance, n)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            if isinstance(error, InvalidDocument):
                raise
            raise InvalidDocument(f"The test cannot be read: {error}") from None

    def to_json(self) -> str:
        """JSON text from which :meth:`from_json` restores the test exactly."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> FitTest:
        """The test that :meth:`to_json` wrote."""
        return cls.from_dict(document_from_json(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FitTest):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.method, self.cutoff, self.noise, self.distance, self.n))

    def __repr__(self) -> str:
        bins = f" ({self.domain.bins})" if self.domain.bins else ""
        return (
            f"FitTest({self.method!r}, null={self.domain.null}{bins}, symbols={len(self.domain.probabilities)}, "
            f"distance={self.distance:g}, epsilon={self.epsilon:g}, n={self.n}, width={self.candidate.excess.width}, "
            f"cutoff={float(self.cutoff):g}, neighbours='replace')"
        )
