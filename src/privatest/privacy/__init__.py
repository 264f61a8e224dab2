"""Noise on a lattice: exact draws, known laws. The noise is the stability notion. Arguments: proof.md.

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

from privatest.privacy.document import noise_from_dict
from privatest.privacy.laplace import Laplace
from privatest.privacy.logistic import Logistic
from privatest.privacy.noise import Noise, NoNoise
from privatest.privacy.randomness import Source, seeded_source, system_source
from privatest.privacy.tulap import Tulap

__all__ = [
    "Laplace",
    "Logistic",
    "NoNoise",
    "Noise",
    "Source",
    "Tulap",
    "noise_from_dict",
    "seeded_source",
    "system_source",
]
