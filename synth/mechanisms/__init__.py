"""Mechanisms: one file each, with a function `run(job, spec)` that returns a model."""

from collections.abc import Callable
from typing import Any

from synth.mechanisms import gaussian, mwem, pep, relaxed_projection
from synth.mechanisms.base import Job
from synth.models.base import Model
from synth.spec.mechanism import Gaussian, MechanismSpec, Mwem, Pep, RelaxedProjection

RUNNERS: dict[type[MechanismSpec], Callable[[Job, Any], Model]] = {
    Gaussian: gaussian.run,
    Mwem: mwem.run,
    Pep: pep.run,
    RelaxedProjection: relaxed_projection.run,
}
"""Which function runs which specification."""
