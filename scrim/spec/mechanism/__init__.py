"""Mechanisms and their parameters: one class each, told apart by `name`.

A class also says what the catalogue shows: the paper, the query types it supports and whether it
releases rows. To add a mechanism, write its class in this package and add it to both lists below, and
to the ranking from which `auto` chooses (scrim/spec/ranking.py), if it is the best somewhere.
"""

from typing import Annotated

from scrim.spec.base import ToldApartBy
from scrim.spec.mechanism.adaptive import DEFAULT_ROUNDS, AdaptiveSpec
from scrim.spec.mechanism.auto import Auto
from scrim.spec.mechanism.base import (
    MAX_CELLS,
    AnnealedRounds,
    Draws,
    MechanismSpec,
    NamedSpec,
    OneShot,
    OneShotSpec,
    Plan,
    Rounds,
    Setting,
)
from scrim.spec.mechanism.game import DualQuery, Fem, QueryGan
from scrim.spec.mechanism.gaussian import Gaussian
from scrim.spec.mechanism.graphical import Aim, PgmEm
from scrim.spec.mechanism.histogram import (
    EntropyProjectionSpec,
    MultiplicativeWeightsSpec,
    Mwem,
    Pep,
)
from scrim.spec.mechanism.product import (
    Gem,
    GemPlus,
    GenerativeNetwork,
    GenerativeSpec,
    MixtureSpec,
    OneShotMixtureSpec,
    Rap,
    RapSoftmax,
    RelaxedProjection,
)
from scrim.spec.mechanism.public import GemPub, PepPub, PmwPub, PublicDataSpec, Screen
from scrim.spec.mechanism.rows import PrivateGsd, RapPlusPlus
from scrim.spec.mechanism.two_level import HierarchicalGem, HierarchicalMwem

__all__ = [
    "CATALOGUE",
    "DEFAULT_ROUNDS",
    "MAX_CELLS",
    "MECHANISMS",
    "AdaptiveSpec",
    "Aim",
    "AnnealedRounds",
    "AskedMechanism",
    "Auto",
    "Draws",
    "DualQuery",
    "EntropyProjectionSpec",
    "Fem",
    "Gaussian",
    "Gem",
    "GemPlus",
    "GemPub",
    "GenerativeNetwork",
    "GenerativeSpec",
    "HierarchicalGem",
    "HierarchicalMwem",
    "Mechanism",
    "MechanismSpec",
    "MixtureSpec",
    "MultiplicativeWeightsSpec",
    "Mwem",
    "NamedSpec",
    "OneShot",
    "OneShotMixtureSpec",
    "OneShotSpec",
    "Pep",
    "PepPub",
    "PgmEm",
    "Plan",
    "PmwPub",
    "PrivateGsd",
    "PublicDataSpec",
    "QueryGan",
    "Rap",
    "RapPlusPlus",
    "RapSoftmax",
    "RelaxedProjection",
    "Rounds",
    "Screen",
    "Setting",
]

Mechanism = Annotated[
    Gaussian
    | Mwem
    | Pep
    | Gem
    | GemPlus
    | Rap
    | RapSoftmax
    | RelaxedProjection
    | GenerativeNetwork
    | PgmEm
    | Aim
    | PmwPub
    | PepPub
    | GemPub
    | PrivateGsd
    | RapPlusPlus
    | DualQuery
    | Fem
    | QueryGan
    | HierarchicalMwem
    | HierarchicalGem,
    ToldApartBy("name"),
]
"""A mechanism with its parameters."""

AskedMechanism = Annotated[Auto | Mechanism, ToldApartBy("name")]
"""What a release may ask for: a mechanism, or the choice of one."""

MECHANISMS: tuple[type[MechanismSpec], ...] = (
    Gaussian,
    Mwem,
    Pep,
    Gem,
    GemPlus,
    Rap,
    RapSoftmax,
    RelaxedProjection,
    GenerativeNetwork,
    PgmEm,
    Aim,
    PmwPub,
    PepPub,
    GemPub,
    PrivateGsd,
    RapPlusPlus,
    DualQuery,
    Fem,
    QueryGan,
    HierarchicalMwem,
    HierarchicalGem,
)
"""Every mechanism, in the order of the catalogue."""

CATALOGUE: tuple[type[NamedSpec], ...] = (Auto, *MECHANISMS)
"""Everything that a release may name."""
