"""Binary trees: cells of all levels from the finest ones, and which bins can answer them."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike

from scrim.spec.columns import LabelledColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.workload import TreeBlock
from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.queries import QuerySet, TreeQueries, compile_blocks
from synth.queries.tree_levels import FinestTable, TreeFold
from synth.table import Table, store_numbers


def new_schema(**columns: dict[str, Any]) -> Schema:
    declared = [{"name": name, "nullable": False, **column} for name, column in columns.items()]
    return Schema.model_validate({"columns": declared})


SEX = {"type": "categorical", "values": ["F", "M"], "other": "M"}


def real(**changes: Any) -> dict[str, Any]:
    return {"type": "real", "lower": 0.0, "upper": 100.0, **changes}


def whole(lower: int, upper: int, **changes: Any) -> dict[str, Any]:
    return {"type": "integer", "lower": lower, "upper": upper, **changes}


def new_tree(schema: Schema, levels: int) -> TreeQueries:
    names = tuple(column.name for column in schema.attributes)
    return TreeQueries.of(TreeBlock(names, levels), schema)


def count(tree: TreeQueries, **numbers: ArrayLike) -> list[int]:
    chunk = store_numbers(tree.schema, {name: np.array(n) for name, n in numbers.items()})
    counts: list[int] = QuerySet([tree]).count(Table(tree.schema, [chunk])).tolist()
    return counts


def test_cells_are_half_open_and_the_last_is_closed() -> None:
    tree = new_tree(new_schema(age=real()), levels=2)
    numbers = [0.0, 24.9, 25.0, 50.0, 75.0, 100.0]
    assert count(tree, age=numbers) == [3, 3, 2, 1, 1, 2]


def test_missing_numbers_have_a_cell_at_every_level() -> None:
    tree = new_tree(new_schema(age=real(nullable=True)), levels=2)
    assert count(tree, age=[np.nan, 10.0]) == [1, 0, 1, 1, 0, 0, 0, 1]


def test_whole_numbers_that_are_fewer_than_the_cells() -> None:
    tree = new_tree(new_schema(rooms=whole(1, 3)), levels=3)
    halves, quarters, eighths = [2, 4], [0, 2, 1, 3], [0, 0, 2, 0, 0, 1, 0, 3]
    assert count(tree, rooms=[1, 1, 2, 3, 3, 3]) == [*halves, *quarters, *eighths]


def test_labels_are_readable() -> None:
    tree = new_tree(new_schema(sex=SEX, age=real(nullable=True)), levels=1)
    assert list(tree.labels(tree.schema)) == [
        "sex=F & age in [0, 50) (1 of 2)",
        "sex=F & age in [50, 100] (2 of 2)",
        "sex=F & age is missing (none of 2)",
        "sex=M & age in [0, 50) (1 of 2)",
        "sex=M & age in [50, 100] (2 of 2)",
        "sex=M & age is missing (none of 2)",
    ]
    assert tree.name == "tree(sex,age, 1 levels)"


def test_a_column_may_be_called_like_another_at_a_level() -> None:
    schema = new_schema(age=real(), **{"age/2": whole(0, 3), "age/4": SEX})
    tree = new_tree(schema, levels=2)
    assert tree.size == 6 * 6 * 2
    counts = count(tree, age=[60.0], **{"age/2": [1], "age/4": [1]})
    assert sum(counts) == 4


def test_all_levels_are_sums_of_the_finest_cells() -> None:
    """Trees of several shapes at once, against sums over explicit intervals."""
    shapes = [
        FinestTable(2, (4, 3), (True, False)),
        FinestTable(3, (9,), (True,)),
        FinestTable(2, (2, 5, 4), (False, True, True)),
        FinestTable(3, (3, 8, 2), (False, True, False)),
        FinestTable(1, (2,), (True,)),
    ]
    rng = np.random.default_rng(0)
    tables = [rng.integers(100, size=shape.sizes) for shape in shapes]
    folded = TreeFold(shapes).all_levels(
        torch.from_numpy(np.concatenate([t.ravel() for t in tables]))
    )
    expected = [
        cells
        for shape, table in zip(shapes, tables, strict=True)
        for cells in by_hand(shape, table)
    ]
    assert folded.tolist() == np.concatenate(expected).tolist()


def by_hand(shape: FinestTable, table: np.ndarray) -> list[np.ndarray]:
    numeric = [axis for axis, is_numeric in enumerate(shape.is_numeric) if is_numeric]
    found = []
    for levels in product(range(1, shape.levels + 1), repeat=len(numeric)):
        cells = table
        for axis, level in zip(numeric, levels, strict=True):
            cells = np.moveaxis(cells, axis, 0)
            numbers, missing = cells[: 2**shape.levels], cells[2**shape.levels :]
            merged = numbers.reshape(2**level, -1, *numbers.shape[1:]).sum(axis=1)
            cells = np.moveaxis(np.concatenate([merged, missing]), 0, axis)
        found.append(cells.ravel())
    return found


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (real(bins={"count": 4}), 2),
        (real(bins={"count": 32}), 2),
        (real(bins={"width": 12.5}), 3),
        (real(bins={"edges": [0.0, 7.0, 25.0, 50.0, 75.0, 90.0, 100.0]}), 2),
        (whole(0, 99, bins={"count": 8}), 3),
        (whole(0, 9, bins={"width": 1}), 5),
        (whole(0, 9, bins={"width": 5}), 1),
        (whole(5, 5, bins={"width": 1}), 3),
        (SEX, 3),
    ],
)
def test_bins_that_are_parts_of_the_cells(column: dict[str, Any], levels: int) -> None:
    for nullable in (False, True):
        schema = new_schema(age=real(bins={"count": 32}), x={**column, "nullable": nullable})
        tree = new_tree(schema, levels)
        assert TreeBlock(("age", "x"), levels).unaligned(schema) is None
        check_against_rows(tree)


def check_against_rows(tree: TreeQueries) -> None:
    """Every bin as a row that lies in it, counted, and as a product that puts all on it."""
    domain = Domain.of(tree.schema)
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(size, size=50) for name, size in domain.size_of.items()}
    numbers = {}
    for column in tree.schema.attributes:
        if isinstance(column, LabelledColumn):
            of_code = [float(code) for code in range(column.size)]
        else:
            of_code = [*column.edges[:-1], np.nan]
        numbers[column.name] = np.array(of_code, np.float64)[codes[column.name]]
    counted = count(tree, **numbers)
    one_hot = [np.eye(domain.size_of[name])[codes[name]] for name in domain.names]
    mixture = ProductMixture(domain, torch.from_numpy(np.concatenate(one_hot, axis=1)))
    answers = QuerySet([tree]).on_product(mixture)
    np.testing.assert_allclose(50 * answers.numpy(), counted, atol=1e-10)


@pytest.mark.parametrize(
    ("column", "remedy"),
    [
        (real(), "bins with count 8, or a multiple of it"),
        (real(bins={"count": 12}), "bins with count 8, or a multiple of it"),
        (real(bins={"count": 4}), "bins with count 8, or a multiple of it"),
        (whole(0, 99, bins={"width": 10}), "bins with count 8, or a multiple of it"),
        (whole(0, 6, bins={"width": 2}), "bins of width 1"),
        (whole(0, 6), "bins of width 1"),
    ],
)
def test_other_bins_are_refused_with_a_remedy(column: dict[str, Any], remedy: str) -> None:
    schema = new_schema(sex=SEX, x=column)
    block = TreeBlock(("sex", "x"), 3)
    problem = block.unaligned(schema)
    assert problem == (
        f"column 'x' has no bins that are parts of the 8 intervals of a binary tree of 3 levels; "
        f"declare {remedy}"
    )
    mixture = ProductMixture(Domain(("sex",), (2,)), torch.full((1, 2), 0.5))
    with pytest.raises(SpecError, match=remedy):
        compile_blocks([block], schema).on_product(mixture)


def test_remedies_help() -> None:
    assert TreeBlock(("x",), 3).unaligned(new_schema(x=real(bins={"count": 8}))) is None
    assert TreeBlock(("x",), 3).unaligned(new_schema(x=whole(0, 6, bins={"width": 1}))) is None
