"""The baseline: each table is released separately, and individuals are assigned to groups at random.

Half of the budget releases the groups with gem, with their sizes as another column, and half releases
the individuals. Individuals of one group are independent of each other and of the group.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from benchmarks.data import DataSet
from benchmarks.households.data import Households
from benchmarks.households.sets import ORDER, TwoLevelProblem
from scrim.spec.budget import Budget, rho_of_units
from scrim.spec.columns import CategoricalColumn
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Column, Schema
from scrim.spec.two_level import TwoLevelSchema, protection_of_table
from synth.run import run
from synth.table import Chunk, Table
from synth.table.encoding import attribute_codec
from synth.table.linking import number_keys, starts_of_groups

NAME = "random_join"
SIZE = "SIZE"
"""The column of groups with their number of individuals."""


def random_join(
    problem: TwoLevelProblem, parameters: Mapping[str, object], *, epsilon: float, seed: int
) -> Chunk:
    """Linked rows of as many synthetic groups as there are private ones; the parameters are gem's."""
    private, schema, linked = problem.private, problem.private.schema, problem.private.schema.linked
    half = rho_of_units(Budget(epsilon=epsilon).units(problem.delta) // 2)
    release = partial(_release, parameters, rho=half, delta=problem.delta, seed=seed)
    groups = release(
        groups_alone(private),
        protection_of_groups(problem.protection, schema),
        rows=private.groups,
    )
    sizes = groups[SIZE].astype(np.int64) + 1
    individuals = release(
        individuals_alone(private),
        protection_of_table(problem.protection, schema, "individuals"),
        rows=int(sizes.sum()),
    )
    group = np.repeat(np.arange(private.groups), sizes)
    dealt = np.random.default_rng(seed).permutation(len(group))
    return {
        linked.key: number_keys(group),
        **{name: groups[name][group] for name in linked.group_attributes},
        **{name: individuals[name][dealt] for name in linked.individual_attributes},
    }


def groups_alone(private: Households) -> DataSet:
    """One row for each group, with its size beside its columns."""
    linked = private.schema.linked
    starts = starts_of_groups(private.rows[linked.key])
    values = [str(size) for size in range(1, linked.max_group_size + 1)]
    size = CategoricalColumn(
        name=SIZE, type="categorical", values=values, other=values[-1], nullable=False
    )
    columns: list[Column] = [size, *(linked.attribute(name) for name in linked.group_attributes)]
    codes = np.diff(starts, append=private.individuals) - 1
    rows = {
        SIZE: codes.astype(attribute_codec(size).dtype),
        **{name: private.rows[name][starts] for name in linked.group_attributes},
    }
    return _data_set(Schema(columns=columns), rows)


def individuals_alone(private: Households) -> DataSet:
    """One row for each individual, with nothing of its group."""
    linked = private.schema.linked
    columns: list[Column] = [linked.attribute(name) for name in linked.individual_attributes]
    rows = {name: private.rows[name] for name in linked.individual_attributes}
    return _data_set(Schema(columns=columns), rows)


def _data_set(schema: Schema, rows: Chunk) -> DataSet:
    return DataSet(schema, Table(schema, [rows]), len(next(iter(rows.values()))))


def protection_of_groups(protection: Protection, schema: TwoLevelSchema) -> Protection:
    """The protection of the population, applied to groups with their sizes.

    A person who joins a group changes its size: one row is removed and another is added. So adding or
    removing a person changes twice as many rows as in a table without sizes.
    """
    alone = protection_of_table(protection, schema, "groups")
    if alone.unit != "person" or alone.relation != "add_remove":
        return alone
    return alone.model_copy(update={"max_rows_per_person": 2 * alone.max_rows_per_unit})


def _release(
    parameters: Mapping[str, object],
    private: DataSet,
    protection: Protection,
    *,
    rows: int,
    rho: float,
    delta: float,
    seed: int,
) -> Chunk:
    """Synthetic rows of one table, by gem."""
    released = run(
        ReleaseSpec.model_validate(
            {
                "workload": [{"type": "marginals", "k": min(ORDER, len(private.domain.names))}],
                "mechanism": {"name": "gem", **parameters},
                "budget": {"rho": rho},
                "outputs": {"rows": rows, "answers": False},
                "expected_rows": private.rows,
            }
        ),
        private.table,
        protection=protection,
        delta=delta,
        seed=seed,
    ).rows
    assert released is not None
    return released
