"""H-MWEM: multiplicative weights over all kinds of groups.

Paper: Liu, Wu (2022), section 4.1 and appendix A.2.1, algorithms 1 and 2.
Algorithm: A(x) <- A(x) exp(q(x) (m_q - q(A)) / 2), normalised, for each measured query q, with q
divided by M where a group of M individuals may count M times.
Departures: those of `mwem`. A kind of group is its columns and the multiset of its individuals: no
query distinguishes orders of the same individuals, and there are far fewer multisets. At the start, all
sizes have equal weight. One step updates all cells of a table; a group may be in several of them, and
instead of dividing by M, the step size follows from the variance between groups. Counts are measured and
compared per group; ratios to the number of individuals are computed afterwards.
"""

import torch

from scrim.spec.mechanism import HierarchicalMwem
from scrim.spec.workload.hierarchical import as_linked
from synth.mechanisms import mwem
from synth.mechanisms.adaptive import Target
from synth.mechanisms.base import Job
from synth.models.group_types import GroupTypes
from synth.planning.spending import Rounds
from synth.queries import GroupSizeQueries, HierarchicalQueries
from synth.rules.exclusion import excluding


def run(job: Job[Rounds], spec: HierarchicalMwem) -> GroupTypes:
    """Learn weights of kinds of groups over all columns in the workload and the candidates."""
    used = {*job.queries.attributes, *job.candidates.attributes}
    start = excluding(GroupTypes.uniform(as_linked(job.schema), used), job.schema)
    return mwem.run_rounds(job, spec, GroupWeights(start, spec, job.estimated_rows))


class GroupWeights(mwem.Reweighting[GroupTypes]):
    """Weights of kinds of groups; a group may be in several cells of a table."""

    def step(self, target: Target) -> bool:
        """Algorithm 2, on all measured cells of a table at once."""
        model, block = self.distribution, target.block
        if isinstance(block, HierarchicalQueries):
            of_groups = block.of_groups
            membership = model.membership(block.level, block.of_individuals)
        else:
            assert isinstance(block, GroupSizeQueries)
            of_groups, membership = (), model.size_membership()
        answers = membership.total(model.summed(of_groups)).T
        # No error exceeds the largest count of one group, however large the noise is.
        error = (target.values.view_as(answers) - answers).clamp(-membership.most, membership.most)
        error = error.where(target.measured.view_as(answers), 0.0)
        if not (error.abs() > target.noise.view_as(answers)).any():
            return False
        pull = membership.spread(error.T)
        model.reweight(of_groups, _step(error, model.variance(of_groups, pull), pull) * pull)
        return True


def _step(error: torch.Tensor, variance: torch.Tensor, pull: torch.Tensor) -> torch.Tensor:
    """The step size of A(x) <- A(x) exp(step pull(x)), where pull(x) = sum of q(x) (m_q - q(A)).

    To second order, a step reduces the relative entropy to any distribution that fits by
    step |error|^2 - step^2 variance / 2. Half of the optimal step, limited so that no weight changes by
    more than a factor of e, always improves the fit.
    """
    best = error.square().sum() / variance.clamp(min=torch.finfo(variance.dtype).tiny)
    return torch.minimum(best / 2, 1 / pull.abs().max())
