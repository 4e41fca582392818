"""Cells that no row can be in, compared with all rows of a small table."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
import torch

from scrim.spec.workload import NUMBER_OF_GROUPS, Ranges
from synth.domain import Domain
from synth.measurements import Measurement, weighted_average
from synth.mechanisms.adaptive import targets
from synth.models.group_types import GroupTypes
from synth.models.histogram import Histogram
from synth.queries import Marginal, QuerySet, Single, compile_blocks, compile_workload
from synth.rules.cells import CellRules
from synth.rules.exclusion import excluding
from synth.rules.groups import GroupRules
from synth.rules.row_rules import RowRules
from synth.table import Table, store_numbers
from synth.table.linking import draw_groups
from tests.synth.rules.problems import LINKED, SCHEMA, random_groups


@pytest.fixture(scope="module")
def possible() -> Table:
    """Every row that follows the rules."""
    values = [[0, 1], [0, 1, 2, 3], [*range(40), None], [*range(10), None], [*range(2, 10), None]]
    rows = np.array([[np.nan if v is None else v for v in row] for row in product(*values)])
    chunk = store_numbers(SCHEMA, {name: rows[:, i] for i, name in enumerate(SCHEMA.names)})
    kept = ~RowRules(SCHEMA).broken(chunk)
    return Table(SCHEMA, [{name: values[kept] for name, values in chunk.items()}])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_cells_are_those_without_a_possible_row(k: int, possible: Table) -> None:
    cells, domain = CellRules(SCHEMA), Domain.of(SCHEMA)
    for names in combinations(SCHEMA.names, k):
        block = Marginal.of(names, domain)
        impossible = QuerySet([block]).count(possible) == 0
        found = cells.zeros(block)
        assert (np.zeros(block.size, bool) if found is None else found).tolist() == (
            impossible.tolist()
        )


def test_ranges_are_zero_if_all_their_rows_are_impossible(possible: Table) -> None:
    asked: list[dict[str, Any]] = [
        {"sex": "F", "rel": "Husband"},
        {"rel": "Wife", "sex": "M", "age": [20, 30]},
        {"rel": "Wife", "age": [0, 10]},
        {"rel": "Wife", "age": [0, 20]},
    ]
    queries = compile_workload([Ranges(type="ranges", queries=asked)], SCHEMA)
    (block,) = queries.blocks
    zeros = CellRules(SCHEMA).zeros(block)
    assert zeros is not None
    assert zeros.tolist() == (queries.count(possible) == 0).tolist() == [True, True, True, False]
    assert CellRules(SCHEMA).zeros(compile_blocks([NUMBER_OF_GROUPS], LINKED).blocks[0]) is None


def test_a_histogram_starts_without_impossible_cells() -> None:
    start = Histogram.uniform(Domain.of(SCHEMA).project(["sex", "rel", "age"]))
    found = excluding(start, SCHEMA)
    impossible = CellRules(SCHEMA).of_columns(["sex", "rel", "age"])
    assert impossible is not None
    assert torch.equal(found.weights == 0, torch.from_numpy(impossible))
    assert float(found.weights.sum()) == pytest.approx(1.0)


def test_kinds_of_groups_without_possible_groups_are_excluded() -> None:
    model = excluding(GroupTypes.uniform(LINKED, set(LINKED.names)), LINKED)
    drawn = model.sample(3000, np.random.default_rng(0))
    sizes = drawn["\x1fsize"] + 1
    rows = draw_groups(LINKED, drawn, sizes=sizes, rng=np.random.default_rng(1))
    heads = np.add.reduceat(rows["rel"] == 0, np.cumsum(sizes) - sizes)
    assert (heads == 1).all()
    # What is left breaks rules inside bins alone.
    assert GroupRules(LINKED).broken(rows).mean() < 0.7
    assert GroupRules(LINKED).broken(random_groups(3000)).mean() > 0.8


def test_measurements_know_their_zeros() -> None:
    block = Marginal.of(["sex", "rel"], Domain.of(SCHEMA))
    zeros = CellRules(SCHEMA).zeros(block)
    assert zeros is not None
    first, second = (
        Measurement(block, np.full(8, value), sigma).with_zeros(zeros)
        for value, sigma in ((3, 2.0), (6, 2.0))
    )
    mean = weighted_average([Measurement(block, np.zeros(8), np.inf, zeros), first, second])
    assert mean.values.tolist() == np.where(zeros, 0.0, 4.5).tolist()
    assert mean.noise.tolist() == np.where(zeros, 0.0, 2**0.5).tolist()
    (target,) = targets([first], 10)
    assert torch.equal(target.noise == 0, torch.from_numpy(zeros))
    single = Measurement(Single(block, 0), np.array([5]), 2.0)
    assert CellRules(SCHEMA).zeros(single.query) == [True]
