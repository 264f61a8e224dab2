"""A noisy share of odd records beside a test's release: how much of the data made no sense to the test.

A record that is missing, unreadable or outside both supports has a fixed score, so a release alone cannot show that the
whole column was of that kind. The number of odd records plus noise of its own shows it, at a price of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privatest import numbers
from privatest.charge import Draw
from privatest.decision.run import Besides
from privatest.errors import InvalidInput, shown
from privatest.numbers import Number
from privatest.privacy import Notion, RandomSource, Tulap
from privatest.privacy.composition import together

if TYPE_CHECKING:
    from privatest.engines import Records, Tallied


CONFIDENCE = 0.95


@dataclass(frozen=True)
class OddShare(Besides):
    """A noisy share of odd records that is released beside a test's own release.

    Guarantees: the noisy number is epsilon-differentially private. One person moves the exact number by at most
    ``noise.width``, the rows that count for one person, whether they are replaced or come and go. Together with the
    test's release it costs the sum of both prices, which is charged once.

    Attributes:
        noise: the noise that is added to the number of odd records.
        n: the number of records or, where that is not public, the expected number.
    """

    noise: Tulap
    n: int

    @classmethod
    def of(cls, test: Any, odd_epsilon: Number | None) -> OddShare | None:
        """The share that a run of the test releases besides; None without ``odd_epsilon``."""
        if odd_epsilon is None:
            return None
        epsilon = numbers.positive(odd_epsilon=odd_epsilon)
        if test.price is None:
            raise InvalidInput(
                f"odd_epsilon={shown(odd_epsilon)} cannot be given to a test that is not private: no noise hides "
                "single records in its release anyway. Count the odd ones with privatest.check."
            )
        return cls(Tulap(epsilon, test.max_rows_per_unit), test.n)

    @property
    def epsilon(self) -> Fraction:  # type: ignore[override]  # read-only here
        """The exact price."""
        return self.noise.epsilon

    @property
    def margin(self) -> float:
        """The largest distance of the share from the exact one, with probability 95%."""
        return min(self.noise.beyond((1 - CONFIDENCE) / 2) / self.n, 1.0)

    def question(self) -> dict[str, Any]:
        """The setting that distinguishes one request of a ledger from another."""
        return {"odd_epsilon": str(self.epsilon)}

    def prepared(self, records: Records) -> Tallied:
        """The records, with a count of the odd ones."""
        from privatest.engines import Tallied  # planning needs no engine

        return Tallied(records)

    def draw(self, design: Any, records: Any, source: RandomSource) -> Draw:
        """The test's draw, and the noisy number of odd records; both from one reading where no unit is named."""
        return [design.draw(records, source), str(records.odd(design.score) + self.noise.draw(source))]

    def release(self, design: Any, draw: Any, records: Callable[[], Any], *, simulated: bool) -> Any:  # noqa: ARG002
        """The test's release with the share added."""
        release, noisy = design.release(draw[0], simulated=simulated), Fraction(draw[1])
        cost = together(design.price, self.epsilon)
        return replace(
            release,
            epsilon=cost.epsilon if isinstance(cost, Notion) else float(cost),
            privacy=cost.text if isinstance(cost, Notion) else None,
            odd_share=float(min(max(noisy / self.n, Fraction(0)), Fraction(1))),
            odd_margin=self.margin,
            odd_epsilon=float(self.epsilon),
        )
