"""Mechanisms: one file each, with a function `run(job, spec)` that returns a model."""

from collections.abc import Callable
from typing import Any

from scrim.spec.mechanism import (
    Aim,
    DualQuery,
    Fem,
    Gaussian,
    Gem,
    GemPlus,
    GemPub,
    GenerativeNetwork,
    HierarchicalGem,
    HierarchicalMwem,
    MechanismSpec,
    Mwem,
    Pep,
    PepPub,
    PgmEm,
    PmwPub,
    PrivateGsd,
    QueryGan,
    Rap,
    RapPlusPlus,
    RapSoftmax,
    RelaxedProjection,
)
from synth.mechanisms import (
    aim,
    dual_query,
    fem,
    gaussian,
    gem,
    gem_plus,
    gem_pub,
    generative_network,
    h_gem,
    h_mwem,
    mwem,
    pep,
    pep_pub,
    pgm_em,
    pmw_pub,
    private_gsd,
    query_gan,
    rap,
    rap_plus_plus,
    rap_softmax,
    relaxed_projection,
)
from synth.mechanisms.base import Job
from synth.models.base import Model

RUNNERS: dict[type[MechanismSpec], Callable[[Job, Any], Model]] = {
    Gaussian: gaussian.run,
    Mwem: mwem.run,
    Pep: pep.run,
    Gem: gem.run,
    GemPlus: gem_plus.run,
    Rap: rap.run,
    RapSoftmax: rap_softmax.run,
    RelaxedProjection: relaxed_projection.run,
    GenerativeNetwork: generative_network.run,
    PgmEm: pgm_em.run,
    Aim: aim.run,
    PmwPub: pmw_pub.run,
    PepPub: pep_pub.run,
    GemPub: gem_pub.run,
    PrivateGsd: private_gsd.run,
    RapPlusPlus: rap_plus_plus.run,
    DualQuery: dual_query.run,
    Fem: fem.run,
    QueryGan: query_gan.run,
    HierarchicalMwem: h_mwem.run,
    HierarchicalGem: h_gem.run,
}
"""Which function runs which specification."""
