"""Mechanisms and their parameters: one class each, in a module named after the mechanism.

A class also holds what the catalogue shows: the paper, the supported query types and whether it releases
rows. The module of the same name in synth/planning plans its budget, and the one in synth/mechanisms
runs it. CONTRIBUTING.md explains how to add a mechanism.
"""

from typing import Annotated, get_args

from scrim.spec.base import Discriminated
from scrim.spec.mechanism.adaptive import AdaptiveSpec
from scrim.spec.mechanism.aim import Aim
from scrim.spec.mechanism.auto import Auto
from scrim.spec.mechanism.base import MechanismSpec, NamedSpec
from scrim.spec.mechanism.dual_query import DualQuery
from scrim.spec.mechanism.fem import Fem
from scrim.spec.mechanism.game import BestResponseSpec
from scrim.spec.mechanism.gaussian import Gaussian
from scrim.spec.mechanism.gem import Gem
from scrim.spec.mechanism.gem_plus import GemPlus
from scrim.spec.mechanism.gem_pub import GemPub
from scrim.spec.mechanism.generative_network import GenerativeNetwork
from scrim.spec.mechanism.generative_network_pub import GenerativeNetworkPub
from scrim.spec.mechanism.graphical import GraphicalSpec
from scrim.spec.mechanism.h_gem import HierarchicalGem
from scrim.spec.mechanism.h_mwem import HierarchicalMwem
from scrim.spec.mechanism.mixture import (
    GenerativeSpec,
    MixtureSpec,
    NetworkSpec,
    OneShotMixtureSpec,
)
from scrim.spec.mechanism.mwem import Mwem
from scrim.spec.mechanism.pep import Pep
from scrim.spec.mechanism.pep_pub import PepPub
from scrim.spec.mechanism.pgm_em import PgmEm
from scrim.spec.mechanism.pmw_pub import PmwPub
from scrim.spec.mechanism.private_gsd import PrivateGsd
from scrim.spec.mechanism.public import PublicDataSpec, Screen
from scrim.spec.mechanism.query_gan import QueryGan
from scrim.spec.mechanism.rap import Rap
from scrim.spec.mechanism.rap_plus_plus import RapPlusPlus
from scrim.spec.mechanism.rap_softmax import RapSoftmax
from scrim.spec.mechanism.relaxed_projection import RelaxedProjection
from scrim.spec.mechanism.rows import RowsSpec
from scrim.spec.mechanism.weights import EntropyProjectionSpec, MultiplicativeWeightsSpec

__all__ = [
    "CATALOGUE",
    "MECHANISMS",
    "AdaptiveSpec",
    "Aim",
    "AskedMechanism",
    "Auto",
    "BestResponseSpec",
    "DualQuery",
    "EntropyProjectionSpec",
    "Fem",
    "Gaussian",
    "Gem",
    "GemPlus",
    "GemPub",
    "GenerativeNetwork",
    "GenerativeNetworkPub",
    "GenerativeSpec",
    "GraphicalSpec",
    "HierarchicalGem",
    "HierarchicalMwem",
    "Mechanism",
    "MechanismSpec",
    "MixtureSpec",
    "MultiplicativeWeightsSpec",
    "Mwem",
    "NamedSpec",
    "NetworkSpec",
    "OneShotMixtureSpec",
    "Pep",
    "PepPub",
    "PgmEm",
    "PmwPub",
    "PrivateGsd",
    "PublicDataSpec",
    "QueryGan",
    "Rap",
    "RapPlusPlus",
    "RapSoftmax",
    "RelaxedProjection",
    "RowsSpec",
    "Screen",
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
    | GenerativeNetworkPub
    | PrivateGsd
    | RapPlusPlus
    | DualQuery
    | Fem
    | QueryGan
    | HierarchicalMwem
    | HierarchicalGem,
    Discriminated("name"),
]
"""A mechanism with its parameters. The union lists all mechanisms, in the order of the catalogue."""

AskedMechanism = Annotated[Auto | Mechanism, Discriminated("name")]
"""The mechanism of a release request: a named one, or `auto`."""

MECHANISMS: tuple[type[MechanismSpec], ...] = get_args(get_args(Mechanism)[0])
"""Every mechanism, in the order of the catalogue."""

CATALOGUE: tuple[type[NamedSpec], ...] = (Auto, *MECHANISMS)
"""All mechanisms that a release may name, including `auto`."""
