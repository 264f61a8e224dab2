"""A test as a measurement of OpenDP, and its privacy-loss distribution for dp_accounting.

OpenDP counts records that come and go (the symmetric distance), so that replacing one record is a distance of two. By
group privacy the guarantee for one record, or for all rows of one person, extends to k of them: epsilon grows k times,
rho k squared times, and delta is summed over the steps in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from privatest.errors import InvalidInput, MissingExtra
from privatest.numbers import rounded_up
from privatest.privacy.notions import Approx, Notion, Pure, Zcdp, converted
from privatest.scores import LabelCells, Score


def make_measurement(test: Any) -> Any:
    """Return an ``opendp.mod.Measurement`` from a list of records to the release's document.

    Guarantees: its privacy map is the test's guarantee, rounded up. The records are summed and the noise is drawn by
    this package alone, from the operating system's randomness.
    """
    try:
        # An extra.
        import opendp.prelude as dp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opendp":
            raise
        raise MissingExtra.of("A measurement needs OpenDP.", "opendp") from None
    if not isinstance(getattr(test, "score", None), Score) or not hasattr(test, "cutoff"):
        raise InvalidInput(f"A {test.KIND} cannot be made a measurement of OpenDP: only a test of two hypotheses can.")
    if test.privacy.price is None:
        raise InvalidInput("A test that is not private (epsilon=inf) is no measurement.")
    if test.max_rows_per_unit != 1:
        raise InvalidInput(
            f"max_rows_per_unit={test.max_rows_per_unit}: OpenDP's lists have no column of persons. Design a test of "
            "one row each."
        )
    dp.enable_features("contrib", "honest-but-curious")
    labels = isinstance(test.score.cells, LabelCells)
    records = dp.atom_domain(T=str) if labels else dp.atom_domain(T=float, nan=True)
    replacing = test.neighbours == "replace"
    measure, guarantee = _measure(dp, test.privacy)
    return dp.m.make_user_measurement(
        dp.vector_domain(records, size=test.n) if replacing else dp.vector_domain(records),
        dp.symmetric_distance(),
        measure,
        lambda data: test.run(list(data)).to_dict(),
        lambda distance: guarantee(-(-distance // 2) if replacing else distance),
    )


def losses_of(design: Any) -> Any:
    """The privacy-loss distribution of a design's release.

    It follows from the exact law of the noise where the release is one noisy total, else from the pair of
    distributions that dominates the design's notion.
    """
    # Needs an extra.
    from privatest.privacy.composition import loss_distribution, noise_distribution

    noise, move = getattr(design, "noise", None), getattr(design, "sensitivity", None)
    if design.privacy.price is None:
        raise InvalidInput("A design that is not private (epsilon=inf) has no privacy-loss distribution.")
    if noise is None or move is None:
        return loss_distribution(design.privacy)
    return noise_distribution(noise, move)


def _measure(dp: Any, notion: Notion) -> tuple[Any, Callable[[int], Any]]:
    """OpenDP's measure of a notion, and a function from a number of records to the guarantee in that measure."""
    if isinstance(notion, Pure):
        return dp.max_divergence(), lambda records: rounded_up(records * notion.loss)
    if isinstance(notion, Approx):

        def both(records: int) -> tuple[float, float]:
            steps = sum(math.exp(step * notion.epsilon) for step in range(1, records)) * (1 + 1e-12)
            return rounded_up(records * notion.loss), min(rounded_up(notion.delta * (1 + Fraction(steps))), 1.0)

        return dp.approximate(dp.max_divergence()), both
    found = converted(notion, Zcdp(1))
    if found is None:
        raise InvalidInput(f"privacy={notion} has no measure in OpenDP, which knows pure, approx and zcdp.")
    return dp.zero_concentrated_divergence(), lambda records: rounded_up(records**2 * found.exact[0])
