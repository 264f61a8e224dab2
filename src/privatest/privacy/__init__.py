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

from privatest.json_documents import reading, value_from_json
from privatest.privacy.adaptive_reuse import AdaptiveLevel as AdaptiveLevel
from privatest.privacy.adaptive_reuse import adaptive_level as adaptive_level
from privatest.privacy.canonical_noise import Gaussian as Gaussian
from privatest.privacy.canonical_noise import canonical_noise as canonical_noise
from privatest.privacy.decision_chain import Chain as Chain
from privatest.privacy.decision_chain import Stair as Stair
from privatest.privacy.noise import Laplace as Laplace
from privatest.privacy.noise import Logistic as Logistic
from privatest.privacy.noise import Noise as Noise
from privatest.privacy.noise import NoNoise as NoNoise
from privatest.privacy.notion import NOTIONS as NOTIONS
from privatest.privacy.notion import Approx as Approx
from privatest.privacy.notion import Gdp as Gdp
from privatest.privacy.notion import Kl as Kl
from privatest.privacy.notion import Notion as Notion
from privatest.privacy.notion import Pure as Pure
from privatest.privacy.notion import Renyi as Renyi
from privatest.privacy.notion import Tv as Tv
from privatest.privacy.notion import Zcdp as Zcdp
from privatest.privacy.notion import as_notion as as_notion
from privatest.privacy.notion import make_notion as make_notion
from privatest.privacy.randomness import RandomSource as RandomSource
from privatest.privacy.randomness import seeded_source as seeded_source
from privatest.privacy.randomness import system_source as system_source
from privatest.privacy.tulap import TruncatedTulap as TruncatedTulap
from privatest.privacy.tulap import Tulap as Tulap
from privatest.privacy.tulap import Uniform as Uniform

_ALL = (Tulap, Logistic, Laplace, NoNoise, Stair, TruncatedTulap, Uniform, Gaussian, Chain)
NOISES: dict[str, type[Noise]] = {noise.kind: noise for noise in _ALL}


def noise_from_dict(document: Mapping[str, object]) -> Noise:
    """Read a noise that ``Noise.to_dict`` wrote. Raises InvalidDocument for anything else.

    Guarantees: ``noise_from_dict(noise.to_dict()) == noise``, exactly.

    >>> noise_from_dict({"kind": "laplace", "scale": "5/2"})
    Laplace(scale=Fraction(5, 2))
    """
    with reading("the noise"):
        noise: Noise = value_from_json(Noise, document, "noise")
        return noise
