"""H-MWEM: multiplicative weights over every kind of group.

Paper: Liu, Wu (2022), section 4.1 and appendix A.2.1, algorithms 1 and 2.
Algorithm: A(x) <- A(x) exp(q(x) (m_q - q(A)) / 2), normalised, for each measured query q, with q
divided by M where a group of M individuals may count M times.
Departures: those of `mwem`. A kind of group is its columns and the multiset of its individuals: no
query tells sequences of the same individuals apart, and there are far fewer multisets. All sizes
start equally often. One step updates all cells of a table; a group may be in several of them, so
the step is divided by how many, and by the largest answer, which keeps it from overshooting. Counts
are measured and compared per group; ratios to the number of individuals are formed afterwards.
"""

from synth.mechanisms import mwem
from synth.mechanisms.adaptive import Target
from synth.mechanisms.base import Job
from synth.models.group_types import GroupTypes
from synth.queries import GroupSizes, Hierarchical
from synth.spec.mechanism import HierarchicalMwem
from synth.spec.workload.hierarchical import as_linked


def run(job: Job, spec: HierarchicalMwem) -> GroupTypes:
    """Learn weights of kinds of groups over the columns that are asked about or measured."""
    used = {*job.queries.attributes, *job.candidates.attributes}
    start = GroupTypes.uniform(as_linked(job.schema), used)
    return mwem.taught(job, spec, GroupWeights(start, spec, job.rows))


class GroupWeights(mwem.Reweighting[GroupTypes]):
    """Weights of kinds of groups, which may be in several cells of a table."""

    def step(self, target: Target) -> bool:
        """Algorithm 2, on all measured cells of a table at once."""
        model, group = self.distribution, target.group
        if isinstance(group, Hierarchical):
            of_groups = group.of_groups
            membership = model.membership(group.level, group.of_individuals)
        else:
            assert isinstance(group, GroupSizes)
            of_groups, membership = (), model.size_membership()
        answers = membership.total(model.summed(of_groups)).T
        # No answer is off by more than a group can count, however large the noise.
        error = (target.values.view_as(answers) - answers).clamp(-membership.most, membership.most)
        error = error.where(target.measured.view_as(answers), 0.0)
        if not (error.abs() > target.noise.view_as(answers)).any():
            return False
        # With e the errors, a(c) the answers and v(x) the sum of e over the cells of x, a step of eta
        # lowers the relative entropy by eta |e|^2 - eta^2 var(v) / 2 to second order, and var(v) is at
        # most `most` times the sum of a(c) e(c)^2: always a gain, at an eta of half of what cancels it.
        step = 1 / (2 * membership.most * answers.max().clamp(min=1.0))
        model.reweight(of_groups, membership.spread((error * step).T))
        return True
