"""Notions of privacy, and noise on a lattice that meets them: exact draws, known laws. Arguments: proof.md.

A new noise is a file with a subclass of :class:`Noise`, and its name in ``NOISES``.

==================  ===============================================  ==================================
class               law                                              what uses it
==================  ===============================================  ==================================
``Tulap``           width * two-sided geometric + uniform            the tight test under ``pure``
``TruncatedTulap``  Tulap with tails that end                        the tight test under ``approx``
``Uniform``         uniform                                          the tight test under ``tv``
``Gaussian``        normal, rounded to integers                      the tight test under other notions
``Stair``           width * two-sided geometric                      a decision and its level, ``pure``
``Chain``           width * the chain of a notion                    a decision under any other notion
``Laplace``         continuous Laplace, rounded to half integers     ncLLR
``Logistic``        continuous logistic, rounded to half integers    scLLR, sLLR
``NoNoise``         0                                                LLR, not private
==================  ===============================================  ==================================
"""

from __future__ import annotations

from collections.abc import Mapping

from privatest import numbers
from privatest.errors import InvalidDocument, shown
from privatest.privacy.adaptive import AdaptiveLevel, adaptive_level
from privatest.privacy.canonical import canonical_noise
from privatest.privacy.chain import Chain
from privatest.privacy.gaussian import Gaussian
from privatest.privacy.noise import Laplace, Logistic, Noise, NoNoise, Uniform
from privatest.privacy.notions import (
    NOTIONS,
    Approx,
    Gdp,
    Kl,
    Notion,
    Pure,
    Renyi,
    Tv,
    Zcdp,
    as_notion,
    make_notion,
)
from privatest.privacy.randomness import RandomSource, seeded_source, system_source
from privatest.privacy.tulap import Stair, TruncatedTulap, Tulap

__all__ = [
    "NOISES",
    "NOTIONS",
    "AdaptiveLevel",
    "Approx",
    "Chain",
    "Gaussian",
    "Gdp",
    "Kl",
    "Laplace",
    "Logistic",
    "NoNoise",
    "Noise",
    "Notion",
    "Pure",
    "RandomSource",
    "Renyi",
    "Stair",
    "TruncatedTulap",
    "Tulap",
    "Tv",
    "Uniform",
    "Zcdp",
    "adaptive_level",
    "as_notion",
    "canonical_noise",
    "make_notion",
    "noise_from_dict",
    "seeded_source",
    "system_source",
]

_ALL = (Tulap, Logistic, Laplace, NoNoise, Stair, TruncatedTulap, Uniform, Gaussian, Chain)
NOISES: dict[str, type[Noise]] = {noise.kind: noise for noise in _ALL}


def noise_from_dict(document: Mapping[str, object]) -> Noise:
    """Read a noise that ``Noise.to_dict`` wrote. Raises InvalidDocument for anything else.

    Guarantees: ``noise_from_dict(noise.to_dict()) == noise``, exactly.

    >>> noise_from_dict({"kind": "laplace", "scale": "5/2"})
    Laplace(scale=Fraction(5, 2))
    """
    if not isinstance(document, Mapping):
        raise InvalidDocument(f"A noise document must be an object, not {type(document).__name__}.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in NOISES:
        listed = ", ".join(repr(known) for known in NOISES)
        close = numbers.suggestion(str(kind), NOISES)
        raise InvalidDocument(f"Noise kind={shown(kind)} must be one of {listed}.{close}")
    return NOISES[kind].from_dict(document)
