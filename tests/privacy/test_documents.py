"""Parameters and documents: what is accepted, exactly; what is refused, by name."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from privatest.errors import InvalidDocument
from privatest.privacy import Noise, NoNoise, noise_from_dict
from tests.privacy import reference

EVERY = [*reference.NOISES, NoNoise()]


@pytest.mark.parametrize("noise", EVERY, ids=reference.name)
def test_documents_round_trip_exactly(noise: Noise) -> None:
    document = json.loads(json.dumps(noise.to_dict()))
    again = noise_from_dict(document)
    assert again == noise
    assert type(again) is type(noise)
    assert hash(again) == hash(noise)
    assert again.to_dict() == document
    assert pickle.loads(pickle.dumps(noise)) == noise


BAD: list[tuple[Any, str]] = [
    (None, "must be an object"),
    ([], "must be an object"),
    ("tulap", "must be an object"),
    ({}, "kind=None"),
    ({"kind": 3}, "kind=3"),
    ({"kind": "tulip", "epsilon": "1/2", "width": 3}, "Did you mean 'tulap'"),
    ({"kind": "cauchy"}, "must be one of "),
    ({"kind": "tulap", "epsilon": "1/2"}, "'width' is missing"),
    ({"kind": "tulap", "width": 3}, "'epsilon' is missing"),
    ({"kind": "tulap", "epsilon": "1/2", "width": 3, "delta": "0/1"}, "Unknown field 'delta'"),
    ({"kind": "none", "scale": "1/2"}, "Unknown field 'scale'"),
    ({"kind": "tulap", "epsilon": "1/2", "width": 3.0}, "width=3.0 must be a whole number"),
    ({"kind": "tulap", "epsilon": "1/2", "width": True}, "width=True must be a whole number"),
    ({"kind": "tulap", "epsilon": "1/2", "width": "3"}, "width='3' must be a whole number"),
    ({"kind": "tulap", "epsilon": "1/2", "width": 0}, "width=0"),
    ({"kind": "tulap", "epsilon": 0.5, "width": 3}, "epsilon=0.5"),
    ({"kind": "laplace", "scale": None}, "scale=None"),
    *(({"kind": "laplace", "scale": text}, "scale=") for text in ["0.5", "1e3", "-1/2", "0/1", "1/0", "1/2\n"]),
    ({"kind": "laplace", "scale": "1" * 1001 + "/1"}, "scale="),
    ({"kind": "laplace", "scale": "1" * 200 + "/1"}, "scale="),
]


@pytest.mark.parametrize(("document", "message"), BAD)
def test_bad_documents_are_refused(document: Any, message: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        noise_from_dict(document)
    assert message in str(caught.value)
