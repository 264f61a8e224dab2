"""A noisy share of odd records beside a release: how much of the data made no sense to the question.

A record that is missing, unreadable or outside of what a question is about has a fixed score, so a release alone cannot
show that the whole column was of that kind. The number of odd records plus noise of its own shows it, at a price of its
own, whatever the question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privatest import numbers
from privatest.charge_before_release import Draw
from privatest.decision.run import Besides
from privatest.errors import InvalidInput, shown
from privatest.numbers import Number
from privatest.privacy import Notion, RandomSource, Tulap
from privatest.privacy.composition import together

CONFIDENCE = 0.95


@dataclass(frozen=True)
class OddShare(Besides):
    """A noisy share of odd records that is released beside a design's own release.

    Guarantees: the noisy number is epsilon-differentially private. One person moves the exact number by at most
    ``noise.width``, the rows that count for one person, whether they are replaced or come and go. Together with the
    design's release it costs the sum of both prices, which is charged once.

    Attributes:
        noise: the noise that is added to the number of odd records.
    """

    noise: Tulap

    @classmethod
    def of(cls, design: Any, odd_epsilon: Number | None) -> OddShare | None:
        """The share that a run of the design releases besides; None without ``odd_epsilon``."""
        if odd_epsilon is None:
            return None
        epsilon = numbers.positive(odd_epsilon=odd_epsilon)
        if design.price is None:
            raise InvalidInput(
                f"odd_epsilon={shown(odd_epsilon)} cannot be given to a test that is not private: no noise hides "
                "single records in its release anyway. Count the odd ones with privatest.check."
            )
        return cls(Tulap(epsilon, design.need.rows))

    @property
    def epsilon(self) -> Fraction:  # type: ignore[override]  # read-only here
        """The exact price."""
        return self.noise.epsilon

    def margin(self, n: int) -> float:
        """The largest distance of the share of n records from the exact one, with probability 95%."""
        return min(self.noise.beyond((1 - CONFIDENCE) / 2) / n, 1.0)

    def question(self) -> dict[str, Any]:
        """The setting that distinguishes one request of a ledger from another."""
        return {"odd_epsilon": str(self.epsilon)}

    def prepared(self, design: Any, records: Any) -> Any:
        """The records with a count of the odd ones, of one reading with their total; a series is read once more."""
        from privatest.engines import Tallied  # planning needs no engine

        return records if design.need.ordered or hasattr(records, "both") else Tallied(records)

    def draw(self, design: Any, records: Any, source: RandomSource) -> Draw:
        """The noisy number of odd records, of both groups where there are two: a person is in one of them."""
        from privatest.engines import Tallied  # planning needs no engine
        from privatest.engines.records import counting_score  # likewise

        cells = counting_score(design.record_cells)
        odd = sum(Tallied(one).odd(cells) for one in getattr(records, "both", (records,)))
        return str(odd + self.noise.draw(source))

    def added(self, design: Any, outcome: Any, draw: Any, records: Callable[[], Any]) -> Any:  # noqa: ARG002 - drawn
        """The outcome with the share."""
        n = int(np.sum(design.n if outcome.n is None else outcome.n))  # hidden numbers: about the expected one
        cost = together(design.price, self.epsilon)
        return replace(
            outcome,
            epsilon=cost.epsilon if isinstance(cost, Notion) else float(cost),
            privacy=cost.text if isinstance(cost, Notion) else None,
            odd_share=float(min(max(Fraction(draw) / n, Fraction(0)), Fraction(1))),
            odd_margin=self.margin(n),
            odd_epsilon=float(self.epsilon),
        )
