"""A generative network blended with reweighted public rows, as far as the measurements support them.

Paper: none for the method. The aim is that of Fuentes, Mullins, McKenna, Miklau, Sheldon (2024), Joint
Selection (JAM-PGM): use public data only where they help.
Algorithm: measure every candidate once, as `generative_network` does. Fit a network to the measurements,
and fit weights of the public rows to the same measurements. Release both in the proportion with the
smallest squared error, as estimated from the measurements.
The proportion needs measurements that neither fit has seen. So noise is added to the measurements for one
more fit of each, and taken away from them, magnified, to compare the two fits: both halves then have
independent noise (data thinning). This is post-processing and costs no budget.
Departures: JAM-PGM chooses between measuring a marginal and taking it from the public data in rounds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from scrim.spec.mechanism import GenerativeNetworkPub
from synth.measurements import EXACT, Measurement, merge_repeated
from synth.mechanisms.base import Job, measure_once
from synth.mechanisms.one_shot import fit_members
from synth.mechanisms.public_weights import reweight_rows
from synth.models.blend import Blend
from synth.models.generators import GeneratorNetwork
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.planning.spending import OneShot
from synth.queries import QuerySet

HELD_OUT = 0.1
"""Variance of the added noise, relative to that of the measurements. The fits that are compared have 5%
more noise than the released ones; the measurements that compare them have 3.3 times the noise."""
THINNING_SEED = 0
"""Seed of the added noise. It is public; privacy does not depend on it."""


def run(job: Job[OneShot], spec: GenerativeNetworkPub) -> ProductMixture | Blend:
    """Measure all candidates, fit network and public rows, and blend them."""
    assert job.public is not None
    measurements = merge_repeated(measure_once(job))
    public = Support.of(job.public)
    kept, held = thin(measurements)
    quiet = replace(job, progress=lambda done, total: None)
    trial = _network(quiet, spec.model_copy(update={"members": 1}), kept)
    share = learn_share(
        trial,
        reweight_rows(public, kept, rows=job.estimated_rows),
        held,
        rows=job.estimated_rows,
    )
    job.note({"public_share": share})
    network = _network(job, spec, measurements)
    if share == 0.0:
        return network
    return Blend(network, reweight_rows(public, measurements, rows=job.estimated_rows), share)


def _network(
    job: Job[OneShot], spec: GenerativeNetworkPub, measurements: Sequence[Measurement]
) -> ProductMixture:
    network = partial(GeneratorNetwork, job.domain, latent=spec.latent, hidden=spec.hidden)
    return fit_members(job, spec, measurements, network)


def thin(measurements: Sequence[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Divide measurements into two sets with independent noise, the first with nearly all information."""
    random = np.random.default_rng(THINNING_SEED)
    kept, held = [], []
    for each in measurements:
        added = random.normal(0.0, each.sigma, len(each.values))
        more, less = (
            each.values + math.sqrt(HELD_OUT) * added,
            each.values - added / math.sqrt(HELD_OUT),
        )
        kept.append(
            replace(each, values=more, sigma=each.sigma * math.sqrt(1 + HELD_OUT)).with_zeros(
                each.zeros
            )
        )
        held.append(
            replace(each, values=less, sigma=each.sigma * math.sqrt(1 + 1 / HELD_OUT)).with_zeros(
                each.zeros
            )
        )
    return kept, held


def learn_share(
    network: ProductMixture, support: Support, held: Sequence[Measurement], *, rows: int
) -> float:
    """Estimate the share of the support with which the blend has the smallest squared error.

    Errors are in units of the noise. The estimate is unbiased before it is limited to [0, 1], because
    the fits do not depend on the noise of the held measurements.
    """
    queries = QuerySet(each.block for each in held)
    noise = np.concatenate([np.full(len(m.values), max(m.sigma, EXACT)) for m in held]) / rows
    answers = network.answer(queries).values
    missing = (np.concatenate([m.values for m in held]) / rows - answers) / noise
    moved = (support.answer(queries).values - answers) / noise
    energy = float(moved @ moved)
    return min(1.0, max(0.0, float(moved @ missing) / energy)) if energy > 0 else 0.0
