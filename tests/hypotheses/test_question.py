"""Questions are kept by what was said: the same words the same question, and never the one of other words."""

from __future__ import annotations

from typing import Any

import pytest

import privatest as pt
from privatest.hypotheses.parse import _cached_hypotheses, make_hypotheses


@pytest.mark.parametrize(
    "laws",
    [
        ("normal(0, 1)", "normal(1, 1)"),
        ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]),
        ({"a": 0.2, "b": 0.8}, {"a": 0.5, "b": 0.5}),
        ("normal(mean <= 0, sd=1)", "normal(mean >= 1, sd=1)"),
    ],
)
def test_the_same_words_are_the_same_question(laws: Any) -> None:
    found = make_hypotheses(*laws)
    assert make_hypotheses(*(type(law)(law) for law in laws)) is found
    assert make_hypotheses(found.null, found.alternative) is make_hypotheses(found.null, found.alternative)


def test_other_words_are_another_question() -> None:
    p, q = [0.25, 0.75], [0.75, 0.25]
    found = make_hypotheses(p, q)
    p[:] = [0.5, 0.5]
    other = make_hypotheses(p, q)
    assert (found.pair.total_variation, other.pair.total_variation) == (0.5, 0.25)
    kinds: list[Any] = [{1: 0.5, 0: 0.5}, {1.0: 0.5, 0.0: 0.5}, {"1": 0.5, "0": 0.5}]
    assert len({id(make_hypotheses(one, {next(iter(one)): 0.25, list(one)[1]: 0.75})) for one in kinds}) == 3


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.05}, {"clamp": "paper"}, {"neighbours": "add-remove"}])
def test_a_kept_question_has_the_answers_of_a_new_one(settings: dict[str, Any]) -> None:
    """Whatever was asked before of the same pair: other n, other goals, other tests."""
    laws = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]
    _cached_hypotheses.cache_clear()
    alone = pt.design(*laws, epsilon=1, n=20, **settings)
    for epsilon, words in ((1, {"n": 11}), (0.5, {"n": 20}), (1, {"n": 20, "test": "ncllr"}), (1, {"n": 20})):
        pt.design(*laws, epsilon=epsilon, **words)
    assert pt.design(*laws, epsilon=1, n=20, **settings) == alone
