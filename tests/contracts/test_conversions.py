"""What a guarantee is worth in another notion, and for several records, against formulas written apart to 40 digits.

Nothing here is shared with the package: the formulas are those of the literature, or the definition of a notion on two
outcomes. A guarantee that is found is never stronger than the exact one, and weaker by the stated slack at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import privatest as pt
from privatest.decision.private_test import _opendp_measure as _measure
from privatest.privacy import Approx, Gdp, Kl, Notion, Pure, Renyi, TruncatedTulap, Tv, Zcdp
from privatest.privacy.canonical_noise import loss_range
from privatest.privacy.notion import per_row, replaced

LOSSES = (0.01, 0.3, 1.0, 3.7)
SLACK = 3e-9
"""By how much more than the exact parameter one may be, relatively: what is rounded up, to twelve digits."""


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mpmath.workdps(40):
        yield


def mp(value: Any) -> Any:
    exact = Fraction(value) if not isinstance(value, float) else Fraction(repr(value))
    return mpmath.mpf(exact.numerator) / exact.denominator


def phi(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def solved(increasing: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Where an increasing function is 0, by halving: 90 bits."""
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) <= 0 else (low, middle)
    return low


# Randomised response, which is pure(e) and nothing less: Pr[yes] is e^e/(1 + e^e) here, and 1/(1 + e^e) there.


def response_delta(e: Any, delta: Any, epsilon: Any) -> Any:
    """Of randomised response that with probability delta tells all: what is left at another epsilon below e."""
    return delta + (1 - delta) * max(mpmath.exp(e) - mpmath.exp(epsilon), mpmath.mpf(0)) / (1 + mpmath.exp(e))


def response_renyi(e: Any, order: Any) -> Any:
    yes = mpmath.exp(e) / (1 + mpmath.exp(e))
    return mpmath.log(yes * mpmath.exp((order - 1) * e) + (1 - yes) * mpmath.exp(-(order - 1) * e)) / (order - 1)


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """Balle and Wang 2018, theorem 8."""
    return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def coins_renyi(p: Any, q: Any, order: Any) -> Any:
    """The larger divergence of that order of two coins, by definition; order 1 is that of Kullback and Leibler."""
    found = []
    for a, b in ((p, q), (q, p)):
        pairs = ((a, b), (1 - a, 1 - b))
        if order == 1:
            found.append(sum(x * mpmath.log(x / y) for x, y in pairs))
        else:
            found.append(mpmath.log(sum(x**order * y ** (1 - order) for x, y in pairs)) / (order - 1))
    return max(found)


def largest(allowed: Callable[[Any, Any], Any], factor: Any) -> Any:
    """The largest q - factor p over coins that are allowed (where that is at most 0), on a grid of p."""
    best = mpmath.mpf(0)
    for k in range(-36, 9):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(k) / 4))
        q = solved(lambda q, p=p: allowed(p, q), p, 1 - mpmath.mpf(10) ** -12)
        best = max(best, q - factor * p)
    return best


def conversions() -> Iterator[tuple[Notion, str, dict[str, Any], Callable[[], Any], float]]:
    """A notion, what it is converted into, the exact parameter, and how much more may be found, relatively."""
    for loss in LOSSES[1:3]:
        e, half = mp(loss), mp(loss) / 2
        one = Pure(loss)
        yield one, "tv", {}, lambda e=e: mpmath.tanh(e / 2), SLACK
        yield one, "kl", {}, lambda e=e: e * mpmath.tanh(e / 2), SLACK
        yield one, "gdp", {}, lambda e=e: mpmath.sqrt(8) * mpmath.erfinv(mpmath.tanh(e / 2)), SLACK
        # rho = e^2/2 is what is known of all of pure(e); e tanh(e/2), the order 1, is what response has at least.
        yield one, "zcdp", {}, lambda e=e: e * mpmath.tanh(e / 2), float(half / mpmath.tanh(half)) - 1 + SLACK
        yield one, "renyi", {"order": 1.5}, lambda e=e: response_renyi(e, mp(1.5)), SLACK
        yield one, "approx", {"epsilon": loss / 2}, lambda e=e: response_delta(e, mp(0), e / 2), SLACK
        both, d = Approx(loss, 0.05), mp(0.05)
        yield both, "tv", {}, lambda e=e, d=d: response_delta(e, d, mp(0)), SLACK
        yield both, "approx", {"epsilon": loss / 2}, lambda e=e, d=d: response_delta(e, d, e / 2), SLACK
        mu, one = mp(loss), Gdp(loss)
        yield one, "tv", {}, lambda mu=mu: mpmath.erf(mu / mpmath.sqrt(8)), SLACK
        yield one, "zcdp", {}, lambda mu=mu: mu**2 / 2, 0.0
        yield one, "renyi", {"order": 3}, lambda mu=mu: 3 * mu**2 / 2, 0.0
        yield one, "kl", {}, lambda mu=mu: mu**2 / 2, 0.0
        yield one, "approx", {"epsilon": 0.5}, lambda mu=mu: gaussian_delta(mu, mp(0.5)), SLACK
    yield Tv(0.2), "approx", {"epsilon": 0.7}, lambda: mp(0.2), 0.0
    for bound in (0.1, 1.5):
        b = mp(bound)
        kinds: list[tuple[Notion, Callable[[Any, Any], Any]]] = [
            (Renyi(5, bound), lambda p, q, b=b: coins_renyi(p, q, 5) - b),
            (Kl(bound), lambda p, q, b=b: coins_renyi(p, q, 1) - b),
        ]
        for notion, allowed in kinds:
            # Of all events two coins say everything: the largest difference is where they are mirrored.
            yield notion, "tv", {}, lambda f=allowed: 2 * solved(lambda t: f(0.5 - t, 0.5 + t), mp(0), mp(0.5)), SLACK
            yield notion, "approx", {"epsilon": 0.3}, lambda f=allowed: largest(f, mpmath.exp(mp(0.3))), 0.05
        yield Renyi(3, bound), "kl", {}, lambda b=b: b, 0.0
        yield Renyi(3, bound), "renyi", {"order": 2}, lambda b=b: b, 0.0
        yield Zcdp(bound), "renyi", {"order": 4}, lambda b=b: 4 * b, 0.0
        yield Zcdp(bound), "kl", {}, lambda b=b: b, 0.0


with mpmath.workdps(40):
    CONVERSIONS = list(conversions())


def found(notion: Notion, kind: str, given: dict[str, Any]) -> Any:
    """The parameter that was looked for: the last one, and for a chosen delta the first."""
    exact = notion.into(kind, **given).exact
    return mp(exact[0] if "delta" in given else exact[-1])


@pytest.mark.parametrize(
    "index", range(len(CONVERSIONS)), ids=lambda i: f"{CONVERSIONS[i][0].text}-{CONVERSIONS[i][1]}"
)
def test_a_conversion_is_never_stronger_than_the_exact_one(index: int) -> None:
    notion, kind, given, exact, slack = CONVERSIONS[index]
    here, there = found(notion, kind, given), exact()
    assert there <= here * (1 + mpmath.mpf(10) ** -25)
    assert here <= there * (1 + slack) * (1 + mpmath.mpf(10) ** -12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_an_epsilon_for_a_chosen_delta_is_never_too_small(loss: float, delta: float) -> None:
    """At the epsilon that is found the exact delta is at most the chosen one, and nearly all of it."""
    wide = (
        (Gdp(loss), lambda x: gaussian_delta(mp(loss), x)),
        (Pure(loss), lambda x: response_delta(mp(loss), mp(0), x)),
    )
    for notion, exact in wide:
        at = found(notion, "approx", {"delta": delta})
        assert exact(at) <= mp(delta)
        assert at == 0 or exact(at * (1 - mp(1e-6))) >= mp(delta) * (1 - mp(1e-4))


# Groups: what holds of one record, of k of them.


def group_delta(e: Any, delta: Any, records: int) -> Any:
    """delta (1 + e^e + ... + e^((k-1) e)), summed as the geometric series that it is."""
    return delta * records if e == 0 else delta * (mpmath.exp(records * e) - 1) / (mpmath.exp(e) - 1)


@pytest.mark.parametrize("records", [1, 2, 5])
@pytest.mark.parametrize("loss", [0, 0.01, 1.3])
def test_delta_of_a_group_has_all_its_terms(loss: float, records: int) -> None:
    delta = 1e-8
    exact, one = group_delta(mp(loss), mp(delta), records), Approx(loss, delta)
    told: dict[str, tuple[Any, Any]] = {}
    if (whole := one.grouped(records)) is not None:
        told["grouped"] = whole.exact
    if loss:
        rows = TruncatedTulap(one.loss, one.delta, 3).scattered(records)
        assert rows is not None
        told["scattered"] = rows.exact
    if records == 2:
        twice = replaced(one)
        assert twice is not None
        told["replaced"] = twice.exact
    if loss:
        dp = pytest.importorskip("opendp.prelude")
        told["opendp"] = _measure(dp, one)[1](records)
    for name, (epsilon, grown) in told.items():
        assert mp(Fraction(epsilon)) >= records * mp(loss), name
        assert exact * (1 - mpmath.mpf(10) ** -25) <= mp(Fraction(grown)) <= exact * (1 + mp(SLACK)), name
    # The other way round: what one row may cost.
    row = per_row(one, records)
    back = group_delta(mp(row.exact[0]), mp(row.exact[1]), records)
    assert mp(delta) * (1 - mp(SLACK)) <= back <= mp(delta) * (1 + mpmath.mpf(10) ** -25)
    assert records * row.exact[0] == one.loss


@pytest.mark.parametrize("records", [1, 2, 3, 7])
def test_probabilities_of_a_group_follow_record_by_record(records: int) -> None:
    """h of so many records, against the definitions: the likeliest that k neighbours make of a probability p."""
    for p in (1e-9, 0.01, 0.3, 0.8):
        at = mp(p)
        quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * at - 1)
        exact: dict[Notion, Any] = {
            Gdp(0.4): phi(quantile + records * mp(0.4)),
            Tv(0.07): min(at + records * mp(0.07), mp(1)),
        }
        for notion in (Pure(0.6), Approx(0.6, 1e-3)):
            value, d = at, mp(notion.exact[1]) if isinstance(notion, Approx) else mp(0)
            for _ in range(records):
                grow = mpmath.exp(mp(0.6))
                value = min(grow * value + d, 1 - (1 - value - d) / grow, mp(1))
            exact[notion] = value
        for notion, value in exact.items():
            assert float(notion.h(p, records)) == pytest.approx(float(value), rel=1e-11), notion
    for notion, whole in ((Pure(0.6), Pure(1.2)), (Gdp(0.4), Gdp(0.8)), (Zcdp(0.3), Zcdp(1.2)), (Tv(0.07), Tv(0.14))):
        assert replaced(notion) == whole
    for notion, part in (
        (Pure(0.6), 1),
        (Tv(0.07), 1),
        (Gdp(0.4), 1),
        (Zcdp(0.3), 2),
        (Renyi(3, 0.3), 2),
        (Kl(0.3), 2),
    ):
        assert per_row(notion, records).exact[-1] * records**part == notion.exact[-1]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("text", ["pure(0.7)", "approx(0.7, 1e-6)", "gdp(0.7)", "zcdp(0.3)"])
def test_every_distance_of_opendp_is_a_group(text: str, neighbours: str) -> None:
    """So many records come or go; where one is replaced, that is two of them, begun ones included."""
    pytest.importorskip("opendp.prelude")
    notion = pt.notions.parse(text)
    measurement = pt.design(
        "bernoulli(0.2)", "bernoulli(0.8)", n=20, clamp="paper", privacy=notion, neighbours=neighbours
    ).to_opendp()
    for distance in range(1, 8):
        records = (distance + 1) // 2 if neighbours == "replace" else distance
        if isinstance(notion, Approx):
            loss, delta = mp(notion.loss), mp(notion.delta)
            exact = (records * loss, group_delta(loss, delta, records))
        elif isinstance(notion, Pure):
            exact = (records * mp(notion.loss),)
        else:
            exact = (records**2 * mp(notion.into("zcdp").exact[0]),)
        told = measurement.map(distance)
        for here, there in zip(told if isinstance(told, tuple) else (told,), exact, strict=True):
            assert there * (1 - mpmath.mpf(10) ** -25) <= mp(Fraction(here)) <= there * (1 + mp(SLACK))


def test_odds_of_a_range_meet_the_notion_and_hardly_more_would() -> None:
    """The exponential mechanism's range of log-odds: never longer than what was proved, by rounding or otherwise."""

    def approx(e: Any, notion: Approx) -> Any:
        """By how much odds that grow by a factor of e^e exceed delta, at the worst probability."""
        factor = mpmath.exp(mp(notion.loss))
        p = (mpmath.exp((e - mp(notion.loss)) / 2) - 1) / (mpmath.exp(e) - 1)
        return mpmath.exp(e) * p / (1 - p + mpmath.exp(e) * p) - factor * p - mp(notion.delta)

    for size in (0.01, 0.3, 2):
        x = mp(size)
        exact: dict[Notion, Any] = {
            Pure(size): x,
            Gdp(size): 2 * mpmath.log(phi(x / 2) / phi(-x / 2)),
            Zcdp(size): mpmath.sqrt(8 * x),
            Renyi(3, size): max(mpmath.sqrt(8 * x / 3), x),
            Kl(size): max(mpmath.sqrt(8 * x), x),
            Tv(size / 4): 4 * mpmath.atanh(x / 4),
        }
        for delta in (1e-6, 0.05):
            one = Approx(size, delta)
            exact[one] = solved(lambda e, one=one: approx(e, one), x, x + 4)
        for notion, longest in exact.items():
            found = mp(loss_range(notion))
            assert longest * (1 - mp(SLACK)) <= found <= longest * (1 + mpmath.mpf(10) ** -20), notion
