r"""Verify that a mechanism is private by enumeration: all data sets, all neighbours, all outputs.

A mechanism is a function from a data set, a tuple of records, to the probabilities of its outputs. For two neighbouring
data sets with output laws p and q, a notion of privacy is a condition on every event. The condition is the hardest for
the events :math:`\{o : q(o)/p(o) \ge c\}` (Neyman and Pearson), so only these are examined:

=================  ========================================================================================
notion             what is measured, the largest over neighbours
=================  ========================================================================================
``pure(eps)``      the logarithm of q(o)/p(o)
``approx(eps, d)`` the sum of q(o) - e^eps p(o) over the outputs where it is positive
``tv(eta)``        the same with eps = 0
``gdp(mu)``        the quantile of q(event) less that of p(event)
``zcdp(rho)``      the Renyi divergence of q from p over its order, all orders above 1
``renyi(a, c)``    the Renyi divergence of order a
``kl(eta)``        the divergence of Kullback and Leibler
=================  ========================================================================================

If all probabilities are whole numbers or fractions, ``pure``, ``approx`` and ``tv`` are decided exactly: e^eps is
enclosed between rationals as closely as the comparison needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from privatest import numbers
from privatest.errors import InvalidInput, shown
from privatest.facts import Described, Fact
from privatest.numbers import Number
from privatest.privacy.divergences import golden_maximum, quantile
from privatest.privacy.notion import Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp, make_notion
from privatest.progress_events import part

Records = tuple[Any, ...]
Places = tuple[int, ...]
Outputs = tuple[Hashable, ...]
Law = Mapping[Hashable, Any]
"""Output -> probability, all of them fractions or all floats."""
Mechanism = Callable[[Records], Any]

MOST_DATA_SETS = 200_000
MOST_PAIRS = 5_000_000
# The number of data sets on which the mechanism is called again, and in another order if that must not matter.
CALLED_AGAIN = 100
ROUNDING = 1e-9
"""The relative amount by which a measured number may exceed the allowed one if probabilities are floats."""
# The rounding error of adding up floats, for each output.
_LAST_DIGITS = 1e-14
_ALIKE = 1 - 1e-12
# Rounding may keep floats from adding up to 1 by this much. A larger gap could hide an output.
SUMS_TO_ONE = 1e-12


@dataclass(frozen=True)
class Witness:
    """Two neighbours, and an event that is much more likely on the first than on the second.

    Attributes:
        data, neighbour: the data sets.
        outputs: the event, a tuple of outputs.
        probability, neighbour_probability: the probability of the event on either.
    """

    data: Records
    neighbour: Records
    outputs: tuple[Hashable, ...]
    probability: Any
    neighbour_probability: Any

    def __str__(self) -> str:
        likely, unlikely = (f"{float(p):.6g}" for p in (self.probability, self.neighbour_probability))
        event = ", ".join(_short(output) for output in self.outputs[:4]) + (", ..." if len(self.outputs) > 4 else "")
        return f"{{{event}}} has probability {likely} on {_short(self.data)} and {unlikely} on {_short(self.neighbour)}"


@dataclass(frozen=True)
class Verification(Described):
    """The result of :func:`verify_privacy`.

    Guarantees: ``private`` says whether this mechanism meets the notion on data sets of this domain and size. It says
    nothing about other domains, about more records, or about how the mechanism draws its outputs.

    Attributes:
        privacy: the notion that the mechanism was to meet.
        measured: the smallest budget of that kind that the mechanism meets; infinite if none is enough.
        allowed: the budget of the notion.
        private: whether measured is at most allowed.
        exact: whether that was decided by exact arithmetic.
        witness: the neighbours at which it is measured; None if the data make no difference at all.
        data_sets, pairs: the number of data sets and of pairs of neighbours that were looked at.
        neighbours: which data sets were compared: "replace" or "add-remove".
    """

    privacy: Notion
    measured: float
    allowed: float
    private: bool
    exact: bool
    witness: Witness | None
    neighbours: str
    data_sets: int
    pairs: int

    @property
    def violation(self) -> float:
        """The amount by which ``measured`` exceeds ``allowed``; 0 if it does not."""
        return 0.0 if self.private else max(self.measured - self.allowed, 0.0)

    def __bool__(self) -> bool:
        return self.private

    @property
    def title(self) -> str:
        """The verdict."""
        return f"{'Private' if self.private else 'NOT private'}: {self.privacy}, {self.neighbours} one record"

    def facts(self) -> list[Fact]:
        """Return the two numbers, how they were compared, and where the measured one was found."""
        how = "exactly, in fractions" if self.exact else "in floating-point numbers"
        return [
            Fact("private", self.private, f"compared {how}"),
            Fact("measured", self.measured, MEASURES[type(self.privacy)]),
            Fact("allowed", self.allowed, "by the notion"),
            Fact("violation", self.violation, "by how much it is exceeded"),
            Fact("data_sets", self.data_sets, "all of them"),
            Fact("pairs", self.pairs, "of neighbours, all of them"),
            Fact("witness", None if self.witness is None else str(self.witness)),
        ]


MEASURES: dict[type[Notion], str] = {
    Pure: "epsilon: largest log ratio of the probabilities of an output",
    Approx: "delta at this epsilon",
    Tv: "largest change of the probability of an event",
    Gdp: "mu: largest difference of normal quantiles",
    Zcdp: "rho: largest Renyi divergence over its order",
    Renyi: "largest Renyi divergence of this order",
    Kl: "largest divergence of Kullback and Leibler",
}


def verify_privacy(
    mechanism: Mechanism,
    *,
    domain: Iterable[Any],
    n: int,
    epsilon: Number | None = None,
    privacy: Any = None,
    neighbours: str = "replace",
    ordered: bool = True,
) -> Verification:
    """Verify that a mechanism is private by its laws on all neighbouring data sets of n records of the domain.

    Args:
        mechanism: a function of a tuple of n records that returns the probabilities of its outputs: a mapping from
            output to probability, or a sequence of probabilities (of the outputs 0, 1, ...). Lump far tails together.
        domain: the records that may occur; a few that stand for all.
        n: number of records.
        epsilon, privacy: the promise, as one of the two: a number, ``pt.zcdp(0.5)`` or "zcdp(0.5)".
        neighbours: "replace" one record, or "add-remove": data sets of up to n records, each with and without one.
        ordered: False if the mechanism does not look at the order of records, which leaves far fewer data sets.

    Guarantees: exact if the mechanism returns fractions and the notion is pure, approx or tv; else a measured number
    may exceed what is allowed by one part in 10^9. A mechanism is refused if its probabilities do not add up to 1
    (what is left out could tell everything), if it raises an error, if it returns two laws for one data set (because it
    draws, or keeps a state) or if it looks at the order although ``ordered`` is False. The last two are looked for on a
    hundred data sets.

    >>> def respond(data):
    ...     return {data[0]: Fraction(3, 4), 1 - data[0]: Fraction(1, 4)}
    >>> result = verify_privacy(respond, domain=[0, 1], n=1, epsilon=1.1)
    >>> result.private, round(result.measured, 6), verify_privacy(respond, domain=[0, 1], n=1, epsilon=1).private
    (True, 1.098612, False)
    """
    notion = make_notion(epsilon, privacy)
    if not callable(mechanism):
        raise InvalidInput(f"mechanism={shown(mechanism)} must be a function from a data set to output probabilities.")
    n = numbers.positive_integer(n=n)
    if not isinstance(ordered, bool):
        raise InvalidInput(f"ordered={shown(ordered)} must be True or False.")
    numbers.choice(("replace", "add-remove"), neighbours=neighbours)
    records = _domain(domain, least=2 if neighbours == "replace" else 1)
    sizes = range(n, n + 1) if neighbours == "replace" else range(n + 1)
    _check_pairs(len(records), n, neighbours, ordered)
    sets = [data for size in sizes for data in data_sets(len(records), size, ordered=ordered)]

    def law_on(data: Places) -> dict[Hashable, Any]:
        return _law(mechanism, tuple(records[i] for i in data))

    laws = {data: law_on(data) for data in sets}
    for data in sets[:: -(-len(sets) // CALLED_AGAIN)]:
        _check_same(law_on(data), laws[data], records, data, data)
        if not ordered:
            _check_same(law_on(data[::-1]), laws[data], records, data, data[::-1])
    fractions = all(isinstance(value, Fraction) for law in laws.values() for value in law.values())
    if not fractions:
        laws = {data: {output: _float(value) for output, value in law.items()} for data, law in laws.items()}
    best: tuple[Any, Places, Places, Outputs] | None = None
    pairs = 0
    with part("pairs of neighbours", len(sets)) as tell:
        for done, data in enumerate(sets):
            tell(done)
            for other in neighbouring(data, len(records), neighbours=neighbours, ordered=ordered):
                pairs += 1
                for first, second in ((data, other), (other, data)):
                    size, outputs = measure(notion, laws[first], laws[second])
                    if best is None or size * _ALIKE > best[0] or (fractions and size > best[0]):
                        best = size, first, second, outputs
    assert best is not None, "there are neighbours"
    size, first, second, outputs = best
    chances = [sum(laws[data].get(output, 0) for output in outputs) for data in (first, second)]
    names = [tuple(records[i] for i in data) for data in (first, second)]
    witness = Witness(names[0], names[1], outputs, chances[0], chances[1])
    exact = fractions and isinstance(notion, Pure | Approx | Tv)
    return Verification(
        privacy=notion,
        measured=_number(notion, size),
        allowed=float(notion.exact[-1]),
        private=_within(notion, size, laws[first], laws[second], exact=exact),
        exact=exact,
        witness=witness if outputs and chances[0] != chances[1] else None,
        neighbours=neighbours,
        data_sets=len(sets),
        pairs=pairs,
    )


def data_sets(records: int, size: int, *, ordered: bool = True) -> list[Places]:
    """All data sets of ``size`` records, as places in the domain; if not ``ordered``, only the sorted ones."""
    count = records**size if ordered else math.comb(records + size - 1, size)
    if count > MOST_DATA_SETS:
        raise InvalidInput(_too_many(records, size, count, f"data sets, more than {MOST_DATA_SETS:,}", ordered))
    places = range(records)
    if ordered:
        return list(itertools.product(places, repeat=size))
    return list(itertools.combinations_with_replacement(places, size))


def _check_pairs(records: int, n: int, neighbours: str, ordered: bool) -> None:
    """Refuse more pairs of neighbours than can be looked at, which a large domain has already at n = 1."""
    count = 0
    if neighbours == "replace" and n <= MOST_DATA_SETS:
        count = records**n * n if ordered else records * math.comb(records + n - 2, n - 1)
        count = count * (records - 1) // 2
    for size in range(n + 1) if neighbours != "replace" else ():
        count += size * records**size if ordered else math.comb(records + size - 1, size)
        if count > MOST_PAIRS:
            break
    if count > MOST_PAIRS or n > MOST_DATA_SETS:
        count = max(count, n)
        raise InvalidInput(_too_many(records, n, count, f"pairs of neighbours, more than {MOST_PAIRS:,}", ordered))


def _too_many(records: int, n: int, count: int, what: str, ordered: bool) -> str:
    number = f"{count:,}" if count < 10**18 else f"about 10^{math.log10(count):.0f}"
    remedy = " If the mechanism does not look at their order, say ordered=False." if ordered else ""
    sizes = f"n={n} records of a domain of {records} make at least {number}"
    return f"{sizes} {what} to look at. Take fewer of either.{remedy}"


def neighbouring(data: Places, records: int, *, neighbours: str = "replace", ordered: bool = True) -> Iterator[Places]:
    """The neighbours of a data set with one record replaced by a later one of the domain, or with one record removed.

    So each pair of neighbours occurs once.
    """
    seen = set()
    for place, record in enumerate(data):
        changed: Iterable[Places] = (
            [data[:place] + data[place + 1 :]]
            if neighbours == "add-remove"
            else [(*data[:place], other, *data[place + 1 :]) for other in range(record + 1, records)]
        )
        for other in changed:
            neighbour = other if ordered else tuple(sorted(other))
            if neighbour not in seen:
                seen.add(neighbour)
                yield neighbour


def measure(notion: Notion, law: Law, other: Law) -> tuple[Any, Outputs]:
    """Return the number by which ``law`` exceeds ``other`` in the sense of the notion, and the event where it does.

    For ``pure`` it is the largest ratio (a fraction if the laws are), for any other notion the number that it bounds.
    """
    zero = Fraction(0) if all(isinstance(q, Fraction) for q in law.values()) else 0.0
    both = [(output, q, other.get(output, zero)) for output, q in law.items() if q > 0]
    if isinstance(notion, Pure):
        ratios = [q / p if p > 0 else math.inf for _, q, p in both]
        top = max(ratios)
        # The most likely one of the outputs whose ratios differ by rounding alone.
        output = max((q, i) for i, (_, q, _) in enumerate(both) if ratios[i] >= top * _ALIKE)[1]
        return ratios[output] if top == math.inf else top, (both[output][0],)
    if isinstance(notion, Approx | Tv):
        exact = all(isinstance(value, Fraction | int) for _, q, p in both for value in (q, p))  # 0 where there is none
        factor = _factor(notion, exact=exact)
        event = [(output, q - factor * p) for output, q, p in both if q > factor * p]
        return sum(excess for _, excess in event), tuple(output for output, _ in event)
    if isinstance(notion, Renyi | Kl | Zcdp):
        chances = [(q, p) for _, q, p in both]
        top = max(both, key=lambda row: row[1] / row[2] if row[2] > 0 else math.inf)
        return _divergence(notion, chances), (top[0],)
    return _quantiles(law, other)


def _divergence(notion: Notion, chances: Sequence[tuple[Any, Any]]) -> float:
    """Return the divergence of one law from another, from a list of both probabilities of every output."""
    if any(p <= 0 for _, p in chances):
        return math.inf
    logs = [(float(q), _log(q) - _log(p)) for q, p in chances]
    base = max(math.fsum(q * log for q, log in logs), 0.0)
    if isinstance(notion, Kl):
        return base
    if isinstance(notion, Renyi):
        return _of_order(float(notion.order), logs)
    largest = max(log for _, log in logs)
    if base <= 0 or largest <= 0:
        return 0.0
    # No divergence exceeds the largest log ratio: beyond largest/base its ratio to the order is below that at 1.
    most = math.log(max(largest / base, 1.0) + 1.0)
    return max(base, golden_maximum(lambda s: _of_order(1 + math.exp(s), logs) / (1 + math.exp(s)), -9.0, most))


def _log(chance: Any) -> float:
    """Return the logarithm of a probability, also of a fraction that is too small for a double."""
    if isinstance(chance, Fraction):
        return math.log(chance.numerator) - math.log(chance.denominator)
    return math.log(chance)


def _of_order(order: float, logs: Sequence[tuple[float, float]]) -> float:
    """Return the Renyi divergence, from a list of probabilities and their log-ratios."""
    top = max((order - 1) * log for _, log in logs)
    return (top + math.log(math.fsum(q * math.exp((order - 1) * log - top) for q, log in logs))) / (order - 1)


def _quantiles(law: Law, other: Law) -> tuple[float, Outputs]:
    """Return the largest difference of normal quantiles over the events by decreasing ratio."""
    alone = tuple(output for output, q in law.items() if q > 0 and not other.get(output, 0) > 0)
    if alone:  # however rare
        return math.inf, alone
    outputs = sorted(
        {*law, *other},
        key=lambda output: -(law.get(output, 0) / other[output] if other.get(output, 0) > 0 else math.inf),
    )
    q = [float(law.get(output, 0)) for output in outputs]
    p = [float(other.get(output, 0)) for output in outputs]
    best, event = 0.0, 0
    for count in range(1, len(outputs) + 1):
        here, there = math.fsum(q[:count]), math.fsum(p[:count])
        rest_here, rest_there = math.fsum(q[count:]), math.fsum(p[count:])
        if rest_here <= 0 < rest_there:
            size = math.inf
        elif there <= 0 or rest_here <= 0:
            continue
        else:
            size = quantile(here, rest_here) - quantile(there, rest_there)
        if size > best:
            best, event = size, count
    return best, tuple(outputs[:event])


def _number(notion: Notion, size: Any) -> float:
    """Return the measured number that users see: for ``pure`` the logarithm of the ratio."""
    if not isinstance(notion, Pure) or size == math.inf:
        return float(size)
    return _log(size)


def _within(notion: Notion, size: Any, law: Law, other: Law, *, exact: bool) -> bool:
    """Whether the size is allowed: exactly, or up to rounding."""
    if not exact or size == math.inf:
        return _number(notion, size) <= float(notion.exact[-1]) * (1 + ROUNDING) + _LAST_DIGITS * (1 + len(law))
    if isinstance(notion, Tv):
        return bool(size <= notion.eta)
    if notion.epsilon == math.inf:
        return True
    digits = 60
    while True:
        # e^epsilon is no fraction (or 1, where both bounds are), so that close enough bounds decide.
        low, high = _exp_bounds(notion.exact[0], digits)
        if isinstance(notion, Approx):
            allowed = notion.delta
            least, most = (_excess(law, other, factor) for factor in (high, low))
        else:
            allowed = 1
            least, most = size / high, size / low
        if most <= allowed or least > allowed:
            return bool(most <= allowed)
        digits *= 2


def _excess(law: Law, other: Law, factor: Fraction) -> Fraction:
    """Return the sum of q - factor p over the outputs where it is positive."""
    parts = (q - factor * other.get(output, 0) for output, q in law.items())
    return sum((part for part in parts if part > 0), Fraction(0))


def _exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Two fractions with about ``digits`` common digits between which e^x lies; both are 1 at 0."""
    if x == 0:
        return Fraction(1), Fraction(1)
    with localcontext() as context:
        context.prec = digits + 10
        middle = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    slack = middle / Fraction(10) ** digits * (1 + abs(x))
    return middle - slack, middle + slack


def _factor(notion: Notion, *, exact: bool) -> Any:
    """e^epsilon to 60 digits, or as a float; 1 for ``tv``."""
    if isinstance(notion, Tv):
        return Fraction(1) if exact else 1.0
    return _exp_bounds(notion.exact[0], 60)[0] if exact else math.exp(min(notion.epsilon, 700.0))


def _domain(domain: Iterable[Any], least: int) -> list[Any]:
    """Return the records of the domain, checked."""
    try:
        records = list(domain)
    except TypeError:
        raise InvalidInput(f"domain={shown(domain)} must be a list of the records there are.") from None
    if len(records) < least:
        what = "nothing can be replaced" if least > 1 else "nothing can be added"
        raise InvalidInput(f"domain has {len(records)} record(s): {what}. Give at least {least}.")
    return records


def _check_same(again: Law, law: Law, records: Sequence[Any], data: Places, turned: Places) -> None:
    """Refuse a mechanism that returned two laws for one data set, or for two orders of it."""
    if all(abs(again.get(output, 0) - law.get(output, 0)) <= 1e-9 for output in {*again, *law}):
        return
    names = [_short(tuple(records[i] for i in places)) for places in (data, turned)]
    if data != turned or names[0] != names[1]:
        raise InvalidInput(
            f"The mechanism looks at the order of records: its probabilities on {names[0]} are not those on "
            f"{names[1]}. Leave ordered=False out."
        )
    raise InvalidInput(
        f"The mechanism returned other probabilities when asked about {names[0]} a second time. It must return the "
        "probabilities of its outputs, not draw one of them, and remember nothing between calls."
    )


def _float(value: Any) -> float:
    """Return a probability as a float. Refuses one that would become 0, as if there were no such output."""
    if value > 0 and float(value) == 0:
        raise InvalidInput(
            f"The mechanism gives an output the probability {shown(value)}, which is 0 among floats. Return fractions "
            "everywhere."
        )
    return float(value)


def _law(mechanism: Mechanism, data: Records) -> dict[Hashable, Any]:
    """Return the law of a mechanism's output on a data set, checked."""
    where = f"The mechanism, on {_short(data)},"
    try:
        answer = mechanism(data)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{where} raised {type(error).__name__}: {error}. An error that some data cause is an output like any "
            "other: give it its probability."
        ) from error
    if isinstance(answer, Mapping):
        pairs = list(answer.items())
    elif isinstance(answer, str | bytes) or not hasattr(answer, "__len__") or not hasattr(answer, "__getitem__"):
        raise InvalidInput(
            f"{where} returned {shown(answer)}: it must return a mapping from output to probability, or a sequence "
            "of probabilities."
        )
    else:
        try:
            pairs = list(enumerate(answer))
        except TypeError:
            raise InvalidInput(f"{where} returned {shown(answer)}: no sequence of probabilities.") from None
    law: dict[Hashable, Any] = {}
    for output, value in pairs:
        try:
            chance = Fraction(value) if isinstance(value, int | Fraction) else float(value)
        except (TypeError, ValueError):
            raise InvalidInput(f"{where} gives {_short(output)} the probability {shown(value)}: no number.") from None
        if not chance >= 0 or chance == math.inf:
            raise InvalidInput(f"{where} gives {_short(output)} the probability {shown(value)}: it must be 0 or more.")
        law[output] = chance
    total = sum(law.values()) if all(isinstance(value, Fraction) for value in law.values()) else math.fsum(law.values())
    if total != 1 if isinstance(total, Fraction | int) else abs(total - 1) > SUMS_TO_ONE:
        raise InvalidInput(
            f"{where} returned probabilities that add up to {float(total):.15g}, not to 1: what is left out could "
            "tell. Lump what is far out together as one output."
        )
    return law


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
