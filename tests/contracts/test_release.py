"""What leaves a run: the decision, the noisy statistic, the p-value, and nothing else."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

import privatest as pt
from privatest.errors import InvalidData, InvalidDocument, InvalidInput
from privatest.privacy import Tulap

P, Q = "normal(0, 1)", "normal(1, 1)"


def test_wrong_n_and_wrong_type_fail_before_any_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    test = pt.design(P, Q, epsilon=1, n=3, clamp="paper")
    monkeypatch.setattr(Tulap, "draw", lambda *_: pytest.fail("drew noise"))
    for data in ([0.0, 1.0], [], np.zeros(4), np.array(["a", "b", "c"]), np.zeros((3, 2))):
        with pytest.raises(InvalidData):
            test.run(data)


@pytest.mark.parametrize("kind", ["tight", "scllr", "ncllr"])
def test_decision_statistic_and_pvalue_tell_one_story(kind: str) -> None:
    test = pt.design(P, Q, epsilon=1, n=20, test=kind)
    rng = np.random.default_rng(4)
    for shift in (0.0, 0.5, 1.0):
        release = test.run(rng.normal(shift, 1, 20), rng=rng)
        assert release.statistic is not None
        assert release.pvalue is not None
        assert (release.decision == "alternative") == (release.statistic <= test.threshold + 1e-9)
        assert (release.pvalue <= test.alpha + 1e-12) == (release.decision == "alternative")
        assert release.simulated
        assert not release.private


def test_pvalues_are_valid_exactly() -> None:
    """Pr[p-value <= u] <= u under P, by enumeration of the noisy total."""
    test = pt.design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=3, clamp="paper")
    total = test.null_total
    lattice = [Fraction(k) + test.noise.offset for k in range(-3000, 5000, 97)]
    for t in lattice:
        u = total.cdf(t)
        # the event {p <= u} is {T <= t}
        assert test.release(t).pvalue == pytest.approx(u, rel=1e-12)


def test_nothing_raw_is_in_a_release() -> None:
    """A total that nobody would produce by chance does not show anywhere in what comes back."""
    test = pt.design(P, Q, epsilon=1, n=1000, clamp="paper")
    data = np.full(1000, 0.123456)
    raw = int(test.score.of_numbers(data).sum())
    release = test.run(data, rng=np.random.default_rng(1))  # whose digits spell it by no chance
    for text in (repr(release), str(release), json.dumps(release.to_dict()), repr(test), test.to_json()):
        assert str(raw) not in text
        assert "0.123456" not in text
    assert {f.name for f in dataclasses.fields(release)} == set(release.__dict__)


def test_tampered_documents_are_refused() -> None:
    good = pt.design([0.6, 0.4], [0.4, 0.6], epsilon=1, n=5, clamp="paper").to_dict()

    def tampered(**changes: object) -> str:
        return json.dumps({**good, **changes})

    width = good["noise"]["width"]
    bad = [
        tampered(privacy="pure(-1)"),
        tampered(privacy="pure(0.5)"),  # the noise is too small for it
        tampered(n=0),
        tampered(n="5"),
        tampered(format="privatest/test/99"),
        tampered(noise={**good["noise"], "width": width // 2}),
        tampered(noise={"kind": "none"}),
        tampered(score={**good["score"], "null_law": [0.5, 0.6]}),
        tampered(score={**good["score"], "table": [[0, 1], [10 * width, 1], [3, 1]]}),
        tampered(score={**good["score"], "step": "0"}),
        tampered(cutoff="1/0"),
        tampered(neighbours="anyone"),
        json.dumps(good)[:-20],
        "[]",
        "",
        "null",
    ]
    for text in bad:
        with pytest.raises(InvalidInput):
            pt.results.PrivateTest.from_json(text)
    with pytest.raises(InvalidDocument):
        pt.results.PrivateTest.from_json(b"\xff\xfe")
