"""The check finds what is there, by other ways to the same numbers, and nothing else."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidInput
from privatest.privacy import as_notion
from privatest.privacy.notion import Pure
from privatest.privacy.verification import measure, verify_privacy

NOTIONS = ["pure(0.9)", "approx(0.4, 0.1)", "tv(0.2)", "gdp(0.8)"]


def random_laws(seed: int, outputs: int = 4) -> tuple[dict[Any, float], dict[Any, float]]:
    rng = np.random.default_rng(seed)
    first, second = (rng.dirichlet(np.ones(outputs)) for _ in range(2))
    return dict(enumerate(first.tolist())), dict(enumerate(second.tolist()))


@pytest.mark.parametrize("text", NOTIONS)
def test_the_verdict_is_that_of_all_events(text: str) -> None:
    """All subsets of outputs, against h: a way that knows nothing of ratios."""
    notion = as_notion(text)
    seen = set()
    for seed in range(60):
        laws = random_laws(seed)
        # Between a law and one near it, so that both verdicts occur.
        share = (seed % 10) / 20
        laws = laws[0], {o: (1 - share) * laws[0][o] + share * laws[1][o] for o in laws[0]}
        found = verify_privacy(lambda data, laws=laws: laws[data[0]], domain=[0, 1], n=1, privacy=text)
        allowed = all(
            sum(b[o] for o in event) <= float(notion.h(min(sum(a[o] for o in event), 1.0))) + 1e-12
            for a, b in (laws, laws[::-1])
            for size in range(5)
            for event in itertools.combinations(range(4), size)
        )
        assert found.private == allowed
        seen.add(allowed)
    assert seen == {True, False}


@pytest.mark.parametrize("seed", range(5))
def test_divergences_are_those_of_their_formulas(seed: int) -> None:
    law, other = random_laws(seed)
    q, p = np.array(list(law.values())), np.array(list(other.values()))
    orders = 1 + np.geomspace(1e-4, 1e4, 4001)
    renyi = np.array([np.logaddexp.reduce(a * np.log(q) + (1 - a) * np.log(p)) / (a - 1) for a in orders])
    assert measure(pt.kl(1), law, other)[0] == pytest.approx(float(np.sum(q * np.log(q / p))), rel=1e-12)
    assert measure(pt.renyi(3, 1), law, other)[0] == pytest.approx(math.log(float(np.sum(q**3 / p**2))) / 2, rel=1e-12)
    assert measure(pt.zcdp(1), law, other)[0] == pytest.approx(float(np.max(renyi / orders)), rel=1e-4)


def respond(data: tuple[int, ...]) -> dict[int, Fraction]:
    return {data[0]: Fraction(3, 4), 1 - data[0]: Fraction(1, 4)}


def test_fractions_are_decided_to_the_last_digit() -> None:
    """log 3 = 1.09861228866810969139...: allowed a hair above it, refused a hair below."""
    above, below = Fraction("1.0986122886681096914"), Fraction("1.0986122886681096913")
    assert float(above) == float(below)
    assert verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.pure(above)).private
    found = verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.pure(below))
    assert not found.private
    assert found.exact
    assert verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.tv(Fraction(1, 2))).private
    assert not verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.tv(Fraction(1, 2) - Fraction(1, 10**30))).private
    delta = Fraction(3, 4) - Fraction("1.10517091807564762482") / 4  # e^0.1, rounded up
    assert not verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.approx(0.1, delta)).private
    assert verify_privacy(respond, domain=[0, 1], n=1, privacy=pt.approx(0.1, delta + Fraction(1, 10**19))).private


def test_floats_are_allowed_their_rounding_and_no_more() -> None:
    def almost(share: float) -> Callable[[tuple[int, ...]], list[float]]:
        return lambda data: [share, 1 - share] if data[0] else [1 - share, share]

    edge = math.e / (1 + math.e)
    found = verify_privacy(almost(edge), domain=[0, 1], n=1, epsilon=1)
    assert found.private
    assert not found.exact
    assert not verify_privacy(almost(edge + 1e-6), domain=[0, 1], n=1, epsilon=1).private


def test_the_witness_is_where_it_is_measured() -> None:
    def third_leaks(data: tuple[int, ...]) -> dict[str, Fraction]:
        share = Fraction(9, 10) if data[2] else Fraction(1, 2)
        return {"yes": share, "no": 1 - share}

    found = verify_privacy(third_leaks, domain=[0, 1], n=3, epsilon=1)
    assert not found.private
    witness = found.witness
    assert witness is not None
    assert [a == b for a, b in zip(witness.data, witness.neighbour, strict=True)] == [True, True, False]
    assert witness.outputs == ("no",)
    assert witness.probability / witness.neighbour_probability == 5
    assert found.measured == pytest.approx(math.log(5))
    assert found.violation == pytest.approx(math.log(5) - 1)
    assert "NOT private" in str(found)
    assert not found


def test_a_record_that_comes_and_goes() -> None:
    """The number of records is told: hidden by replacement, not by adding or removing one."""

    def size(data: tuple[int, ...]) -> dict[int, int]:
        return {len(data): 1}

    assert verify_privacy(size, domain=[0, 1], n=2, epsilon=0.1).private
    found = verify_privacy(size, domain=[0, 1], n=2, epsilon=0.1, neighbours="add-remove")
    assert found.measured == math.inf
    assert found.data_sets == 7


def test_without_an_order_the_same_is_found() -> None:
    def count(data: tuple[int, ...]) -> dict[str, Fraction]:
        share = Fraction(1 + sum(data), 2 + 2 * len(data))
        return {"yes": share, "no": 1 - share}

    for neighbours in ("replace", "add-remove"):
        one, other = (
            verify_privacy(count, domain=[0, 1, 2], n=4, epsilon=1, neighbours=neighbours, ordered=ordered)
            for ordered in (True, False)
        )
        assert one.measured == other.measured
        assert one.pairs > other.pairs


def test_a_designed_test_spends_its_epsilon() -> None:
    """Every notion of the same test that follows from pure: all meet it; a hundredth less does not."""
    test = pt.design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=3)

    def decide(data: tuple[int, ...]) -> dict[str, float]:
        total = sum(int(test.score.table[record]) for record in data)
        return {"null": float(test.noise.sf(away := float(test.cutoff - total))), "other": float(test.noise.cdf(away))}

    assert verify_privacy(decide, domain=[0, 1], n=3, epsilon=1).private
    assert not verify_privacy(decide, domain=[0, 1], n=3, epsilon=0.99).private
    for kind, given in [("approx", {"epsilon": 0.5}), ("tv", {}), ("gdp", {}), ("zcdp", {}), ("kl", {})]:
        assert verify_privacy(decide, domain=[0, 1], n=3, privacy=Pure(1).into(kind, **given)).private


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"domain": [0]}, "at least 2"),
    ({"domain": [], "neighbours": "add-remove"}, "at least 1"),
    ({"domain": 3}, "list of the records"),
    ({"domain": range(100), "n": 9}, "ordered=False"),
    ({"domain": range(10_000)}, "49,995,000 pairs"),
    ({"n": 5000}, r"about 10\^1509 pairs"),
    ({"n": 10**12, "neighbours": "add-remove", "ordered": False}, "Take fewer"),
    ({"mechanism": 0.5}, "must be a function"),
    ({"mechanism": lambda _: 0.5}, "mapping"),
    ({"mechanism": lambda _: iter([0.5, 0.5])}, "mapping"),
    ({"mechanism": lambda _: {"a": math.nan}}, "0 or more"),
    ({"mechanism": lambda _: {}}, "add up to 0"),
    ({"mechanism": lambda data: {"a": 1 / data[0]}}, "ZeroDivisionError"),
    ({"mechanism": lambda _: {"a": 1 - 1e-9}}, "left out could tell"),
    ({"mechanism": lambda _: {"a": 0.5, "b": 0.5, "c": Fraction(1, 10**400)}}, "0 among floats"),
    ({"mechanism": lambda _: {"a": 0.5, "b": 0.6}}, "add up to 1.1"),
    ({"mechanism": lambda _: {"a": Fraction(1, 2), "b": Fraction(1, 3)}}, "add up to"),
    ({"mechanism": lambda _: {"a": 1.5, "b": -0.5}}, "0 or more"),
    ({"mechanism": lambda _: {"a": "much"}}, "no number"),
    ({"neighbours": "swap"}, "neighbours"),
    ({"n": 0}, "n=0"),
    ({"privacy": "zcdp(1)"}, "both given"),
]


@pytest.mark.parametrize(("changed", "told"), REFUSED)
def test_what_makes_no_sense_is_refused(changed: dict[str, Any], told: str) -> None:
    given = {"mechanism": respond, "domain": [0, 1], "n": 1, "epsilon": 1, **changed}
    with pytest.raises(InvalidInput, match=told):
        verify_privacy(given.pop("mechanism"), **given)


def test_a_mechanism_that_draws_or_remembers_is_refused() -> None:
    coin = random.Random(1)

    def draws(_: tuple[int, ...]) -> dict[str, int]:
        return {coin.choice("abcdefgh"): 1}

    calls = []

    def remembers(_: tuple[int, ...]) -> dict[str, int]:
        calls.append(1)
        return {"a": 1} if len(calls) <= 2 else {"b": 1}

    for mechanism in (draws, remembers):
        with pytest.raises(InvalidInput, match="a second time"):
            verify_privacy(mechanism, domain=[0, 1], n=1, epsilon=1)


@pytest.mark.parametrize("text", [*NOTIONS, "zcdp(1)", "renyi(2, 1)", "kl(1)"])
def test_probabilities_that_no_double_can_tell_from_0(text: str) -> None:
    """Fractions far below 1e-308: an output that one data set alone has is seen, however rare."""
    tiny = Fraction(1, 10**400)

    def rare(data: tuple[int, ...]) -> dict[str, Fraction]:
        return {"a": 1 - tiny, "b": tiny} if data[0] else {"a": Fraction(1)}

    def twice(data: tuple[int, ...]) -> dict[str, Fraction]:
        share = tiny * (1 + data[0])
        return {"a": 1 - share, "b": share}

    bounds_rare_events = not text.startswith(("approx", "tv"))
    assert verify_privacy(rare, domain=[0, 1], n=1, privacy=text).private != bounds_rare_events
    assert verify_privacy(twice, domain=[0, 1], n=1, privacy="pure(0.7)").private
    assert not verify_privacy(twice, domain=[0, 1], n=1, privacy="pure(0.69)").private
