"""Mechanisms and their parameters: one class each, told apart by `name`.

A class also says what the catalogue shows: the paper, the query types it supports and whether it
releases rows. To add a mechanism, write its class in this package and add it to both lists below.
"""

from typing import Annotated

from synth.spec.base import ToldApartBy
from synth.spec.mechanism.adaptive import DEFAULT_ROUNDS, AdaptiveSpec
from synth.spec.mechanism.base import MAX_CELLS, MechanismSpec, OneShot, OneShotSpec, Rounds
from synth.spec.mechanism.gaussian import Gaussian
from synth.spec.mechanism.histogram import Mwem, Pep
from synth.spec.mechanism.product import RelaxedProjection

__all__ = [
    "DEFAULT_ROUNDS",
    "MAX_CELLS",
    "MECHANISMS",
    "AdaptiveSpec",
    "Gaussian",
    "Mechanism",
    "MechanismSpec",
    "Mwem",
    "OneShot",
    "OneShotSpec",
    "Pep",
    "RelaxedProjection",
    "Rounds",
]

Mechanism = Annotated[Gaussian | Mwem | Pep | RelaxedProjection, ToldApartBy("name")]
"""A mechanism with its parameters."""

MECHANISMS: tuple[type[MechanismSpec], ...] = (Gaussian, Mwem, Pep, RelaxedProjection)
"""Every mechanism, in the order of the catalogue."""
