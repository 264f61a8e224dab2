"""Tests under every notion: all data sets of few records, all events; what does not meet its notion is refused."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import engines
from privatest.errors import InvalidInput
from privatest.privacy import canonical_noise
from tests.privacy.test_asked import worst

NOTIONS = [
    "pure(1)",
    "approx(1, 0.001)",
    "approx(0.5, 0.05)",
    "tv(0.2)",
    "gdp(1)",
    "zcdp(0.5)",
    "renyi(2, 0.5)",
    "kl(0.5)",
]
P, Q = {"a": 0.2, "b": 0.3, "c": 0.5}, {"a": 0.5, "b": 0.3, "c": 0.2}
each_notion = pytest.mark.parametrize("text", NOTIONS)


def laws(test: pt.PrivateTest, n: int) -> dict[tuple[str, ...], np.ndarray]:
    """The law of the noisy total for every data set (in order of records, as only the total counts)."""
    one = {label: engines.open_for(engines.Need(rows=1), [label]).total(test.score) for label in P}
    reach = int(test.noise.reach(40)) + n * test.score.width + 2
    x = np.arange(-reach, reach + 1) + float(test.noise.offset)
    return {data: test.noise.pmf(x - sum(one[label] for label in data)) for data in itertools.product(P, repeat=n)}


@each_notion
@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_neighbours_meet_the_notion(text: str, n: int) -> None:
    test = pt.design(P, Q, privacy=text, n=n)
    assert test.privacy == pt.as_notion(text)
    found = laws(test, n)
    largest = -math.inf
    for data in itertools.combinations_with_replacement(P, n):
        for place, label in itertools.product(range(n), P):
            other = (*data[:place], label, *data[place + 1 :])
            if label != data[place]:
                largest = max(largest, worst(test.privacy, found[data], found[other]))
    assert largest <= 1e-12


@each_notion
def test_half_the_noise_is_refused_and_seen(text: str) -> None:
    test = pt.design(P, Q, privacy=text, n=2)
    half = canonical_noise(test.privacy, test.score.width // 2)
    with pytest.raises(InvalidInput, match=r"The noise (meets|allows)"):
        dataclasses.replace(test, noise=half)
    document: Any = json.loads(test.to_json())
    document["noise"] = half.to_dict()
    with pytest.raises(InvalidInput):
        pt.PrivateTest.from_dict(document)
    object.__setattr__(test, "noise", half)  # as if nobody had looked
    found = laws(test, 1)
    assert max(worst(test.privacy, found[a], found[b]) for a in found for b in found if a != b) > 1e-4


@each_notion
def test_documents_and_releases_say_the_notion(text: str) -> None:
    test = pt.design(P, Q, privacy=text, n=20)
    again = pt.PrivateTest.from_json(test.to_json())
    assert again == test
    assert again.privacy == test.privacy
    release = test.run(list("abccc" * 4))
    assert release.private
    if text.startswith("pure"):
        assert release.privacy is None
        return
    assert release.privacy == pt.as_notion(text).text
    assert release.privacy in str(release)
    assert release.to_dict()["privacy"] == release.privacy
    assert pt.Release.from_dict(release.to_dict()) == release
    assert f"privacy={pt.as_notion(text)}" in repr(test)


@each_notion
def test_two_ways_to_the_error_rates(text: str) -> None:
    test = pt.design(P, Q, privacy=text, n=4)
    one = {label: engines.open_for(engines.Need(rows=1), [label]).total(test.score) for label in P}
    alpha = beta = 0.0
    for data in itertools.product(P, repeat=4):
        null = float(test.noise.sf(float(test.cutoff) - sum(one[label] for label in data)))
        alpha += math.prod(P[label] for label in data) * (1 - null)
        beta += math.prod(Q[label] for label in data) * null
    assert (test.alpha, test.beta) == pytest.approx((alpha, beta), abs=1e-13)


def test_the_paper_s_tests_are_for_epsilon() -> None:
    with pytest.raises(InvalidInput, match=r"test='scllr' is for epsilon="):
        pt.design(P, Q, privacy="gdp(1)", n=10, test="scllr")
    with pytest.raises(InvalidInput, match="both given"):
        pt.design(P, Q, epsilon=1, privacy="gdp(1)", n=10)
    with pytest.raises(InvalidInput, match="epsilon is missing"):
        pt.design(P, Q, n=10)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_persons_and_those_who_come_and_go(neighbours: str) -> None:
    test = pt.design(
        "normal(0, 1)", "normal(1, 1)", privacy="zcdp(0.5)", n=40, max_rows_per_unit=2, neighbours=neighbours
    )
    assert test.noise.meets(pt.zcdp(0.5), test.sensitivity)
    assert not test.noise.meets(pt.zcdp(0.49), test.sensitivity)
