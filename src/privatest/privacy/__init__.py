"""Noise on a lattice: exact draws, known laws. The noise is the stability notion. Arguments: proof.md.

A new noise is a file with a subclass of :class:`Noise`, and its name in ``NOISES``.

=============  ===============================================  ==============================
class          law                                              test that uses it
=============  ===============================================  ==============================
``Tulap``      width * two-sided geometric + uniform            the tight test
``Laplace``    continuous Laplace, rounded to half integers     ncLLR
``Logistic``   continuous logistic, rounded to half integers    scLLR, sLLR
``NoNoise``    0                                                LLR, not private
=============  ===============================================  ==============================
"""

from __future__ import annotations

from collections.abc import Mapping

from privatest import _validate
from privatest.errors import InvalidDocument, shown
from privatest.privacy.adaptive import AdaptiveLevel, adaptive_level
from privatest.privacy.asked import approx, as_notion, gdp, kl, make_notion, pure, renyi, tv, zcdp
from privatest.privacy.laplace import Laplace
from privatest.privacy.logistic import Logistic
from privatest.privacy.noise import Noise, NoNoise
from privatest.privacy.notions import NOTIONS, Approx, Gdp, Kl, Notion, Pure, Renyi, Tv, Zcdp
from privatest.privacy.randomness import Source, seeded_source, system_source
from privatest.privacy.tulap import Tulap

__all__ = [
    "NOISES",
    "NOTIONS",
    "AdaptiveLevel",
    "Approx",
    "Gdp",
    "Kl",
    "Laplace",
    "Logistic",
    "NoNoise",
    "Noise",
    "Notion",
    "Pure",
    "Renyi",
    "Source",
    "Tulap",
    "Tv",
    "Zcdp",
    "adaptive_level",
    "approx",
    "as_notion",
    "gdp",
    "kl",
    "make_notion",
    "noise_from_dict",
    "pure",
    "renyi",
    "seeded_source",
    "system_source",
    "tv",
    "zcdp",
]

NOISES: dict[str, type[Noise]] = {noise.kind: noise for noise in (Tulap, Logistic, Laplace, NoNoise)}


def noise_from_dict(document: Mapping[str, object]) -> Noise:
    """The noise that ``Noise.to_dict`` described.

    Guarantees: ``noise_from_dict(noise.to_dict()) == noise``, exactly; anything else is an InvalidDocument.

    >>> noise_from_dict({"kind": "laplace", "scale": "5/2"})
    Laplace(scale=Fraction(5, 2))
    """
    if not isinstance(document, Mapping):
        raise InvalidDocument(f"A noise document must be an object, not {type(document).__name__}.")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in NOISES:
        listed = ", ".join(repr(known) for known in NOISES)
        close = _validate.suggestion(str(kind), NOISES)
        raise InvalidDocument(f"Noise kind={shown(kind)} must be one of {listed}.{close}")
    return NOISES[kind].from_dict(document)
