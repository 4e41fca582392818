"""GEM-Pub: a generator network pretrained on public data.

Paper: Liu, Vietri, Wu (2021), Iterative Methods for Private Synthetic Data, appendix E.
Algorithm: train the network on the public rows' answers to the workload, without noise, since they
are public; then run GEM from there. Public data may lack columns; the network learns those that exist.
Departures: those of `gem`; each public answer is fitted only to within its own sampling error, so that
training does not fit sampling noise of the public rows.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from io import BytesIO
from itertools import cycle

import numpy as np
import torch

from scrim.spec.mechanism import GemPub
from synth.domain import Domain
from synth.mechanisms.adaptive import SMOOTHED, adaptive_measurements
from synth.mechanisms.base import Job
from synth.mechanisms.gem import GenerativeLearner, new_network
from synth.mechanisms.projection import FitTargets, NoiseBand, descend, new_optimiser
from synth.models.generators import GeneratorNetwork
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.planning.memory import BLOCKS_PER_STEP
from synth.planning.spending import Rounds
from synth.queries import QuerySet
from synth.table import Table


def run(job: Job[Rounds], spec: GemPub) -> ProductMixture:
    """Train on the public rows, then run GEM on the private ones."""
    assert job.public is not None
    network = pretrained(job, spec, job.public)
    learner = GenerativeLearner(network, job, spec, known=Domain.of(job.public.schema).names)
    adaptive_measurements(job, spec, learner, noise_power=SMOOTHED)
    return learner.released()


def pretrained(job: Job[Rounds], spec: GemPub, table: Table) -> GeneratorNetwork:
    """Return a network trained on the public rows, from the cache if it was trained before."""
    network = new_network(job, spec).to(job.device)
    public = Support.of(table)
    lessons = _lessons(job, public)
    rows = sum(len(next(iter(chunk.values()))) for chunk in table.chunks())
    key = _key(network, spec, lessons, public, rows=rows)
    stored = None if job.cache is None else job.cache.get(key)
    if stored is not None:
        # Another worker may have trained it on a device that this machine lacks.
        weights = torch.load(BytesIO(stored), weights_only=True, map_location=job.device)
        network.load_state_dict(weights)
        return network
    network.start(_one_way_shares(public, network.domain).to(job.device))
    for lesson in lessons:
        _train(network, spec, [_measured(queries, public, rows, job.device) for queries in lesson])
    if job.cache is not None:
        buffer = BytesIO()
        torch.save(network.state_dict(), buffer)
        job.cache.put(key, buffer.getvalue())
    return network


def _lessons(job: Job[Rounds], public: Support) -> list[list[QuerySet]]:
    """Return the queries to pretrain on: first the candidates, which are few; then the workload.

    Each lesson is split into random batches; otherwise the network would favour the last batch.
    """
    known = public.domain.size_of.keys()
    lessons = []
    for queries in (job.candidates, job.queries):
        blocks = [block for block in queries.blocks if known >= set(block.attributes)]
        random.Random(0).shuffle(blocks)
        batches = range(0, len(blocks), BLOCKS_PER_STEP)
        lessons.append([QuerySet(blocks[i : i + BLOCKS_PER_STEP]) for i in batches])
    return [lesson for lesson in lessons if lesson]


def _train(network: GeneratorNetwork, spec: GemPub, batches: Sequence[FitTargets]) -> None:
    """Cycle through the batches until all are met or the steps are used up."""
    optimiser = new_optimiser(network, spec.learning_rate)
    met = 0
    for _, measured in zip(range(spec.pretraining_steps), cycle(batches), strict=False):
        loss = NoiseBand(measured).loss(measured.answers(network.fitted()))
        met = met + 1 if loss is None else 0
        if met == len(batches):
            return
        if loss is not None:
            descend(network, optimiser, loss)


def _one_way_shares(public: Support, domain: Domain) -> torch.Tensor:
    """Return the nonzero share of every code among the public rows; uniform for columns they lack."""
    shares = [
        public.marginal([name]) + 1e-4 if name in public.codes else torch.ones(size)
        for name, size in zip(domain.names, domain.sizes, strict=True)
    ]
    return torch.cat([share / share.sum() for share in shares]).float()


def _measured(queries: QuerySet, public: Support, rows: int, device: torch.device) -> FitTargets:
    """Return the public answers with the sampling error of `rows` random rows."""
    shares = queries.on_support(public).numpy()
    noise = np.sqrt(np.maximum(shares * (1 - shares), 1 / rows) / rows)
    return FitTargets(queries, shares, noise, device)


def _key(
    network: GeneratorNetwork,
    spec: GemPub,
    lessons: list[list[QuerySet]],
    public: Support,
    *,
    rows: int,
) -> str:
    """Hash everything that determines the result: the rows, the queries and the training settings."""
    digest = hashlib.sha256()
    settings = [
        *(spec.pretraining_steps, spec.learning_rate, spec.components, spec.latent, spec.hidden),
        *(network.domain.names, network.domain.sizes, public.domain.names, rows),
        [[block.name for queries in lesson for block in queries.blocks] for lesson in lessons],
    ]
    digest.update(json.dumps(settings).encode())
    for name in public.domain.names:
        digest.update(public.codes[name].numpy().tobytes())
    digest.update(public.weights.numpy().tobytes())
    return digest.hexdigest()
