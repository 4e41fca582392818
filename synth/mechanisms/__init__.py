"""Mechanisms: one module each, named after the mechanism, with `run(job, spec)` that returns a model."""

from importlib import import_module
from typing import Any, cast

from scrim.spec.mechanism import MechanismSpec
from synth.mechanisms.base import Job
from synth.models.base import Model


def run_mechanism(job: Job[Any], mechanism: MechanismSpec) -> Model:
    """Run the module named after the mechanism; it is imported on first use."""
    module = import_module(f"synth.mechanisms.{mechanism.catalogue_name()}")
    return cast(Model, module.run(job, mechanism))
