"""Parts of marginals: counted by their definition, and exact in 64 bits."""

from itertools import combinations, product

import numpy as np
import pytest

from scrim.spec.workload import PartBlock
from synth.domain import Domain
from synth.models.relaxed import RelaxedRows
from synth.queries import Marginal, MarginalPart, QuerySet, compile_blocks
from synth.queries.marginal_part import part_of
from tests.support import PROTECTIONS, coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3, "c": 4, "one": 1}
SCHEMA = coded_schema(SIZES)
ROWS = random_rows(SIZES, 70)
COLUMN_SETS = [names for k in (1, 2, 3, 4) for names in combinations(SIZES, k)]
PARTS = compile_blocks([PartBlock(names) for names in COLUMN_SETS], SCHEMA)


def by_definition(names: tuple[str, ...]) -> list[int]:
    """The sum over all rows of the product of size - 1, or of -1, one row at a time."""
    axes = [list(SIZES).index(name) for name in names]
    found = []
    for cell in product(*(range(SIZES[name]) for name in names)):
        value = 0
        for row in ROWS:
            moved = 1
            for code, axis, name in zip(cell, axes, names, strict=True):
                moved *= SIZES[name] - 1 if row[axis] == code else -1
            value += moved
        found.append(value)
    return found


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
def test_counts_follow_the_definition(chunk_rows: int) -> None:
    counted = PARTS.split(PARTS.count(coded_table(SCHEMA, ROWS, chunk_rows=chunk_rows)))
    for names, counts in zip(COLUMN_SETS, counted, strict=True):
        assert counts.dtype == np.int64
        assert counts.tolist() == by_definition(names)


def test_a_marginal_is_the_sum_of_its_parts() -> None:
    table = coded_table(SCHEMA, ROWS)
    total = np.full((2, 3, 4), len(ROWS) / 24)
    for names, counts in zip(COLUMN_SETS, PARTS.split(PARTS.count(table)), strict=True):
        if "one" not in names:
            shape = [SIZES[name] if name in names else 1 for name in ("a", "b", "c")]
            total += counts.reshape(shape) / 24
    marginal = QuerySet([Marginal.of(["a", "b", "c"], Domain.of(SCHEMA))]).count(table)
    np.testing.assert_allclose(total.ravel(), marginal, atol=1e-9)


def test_the_largest_tables_are_exact() -> None:
    """2^22 cells and 2^41 - 1 rows, all in one cell: in 64 bits as in Python's integers."""
    sizes, rows = (2**11, 2**11), 2**41 - 1
    table = np.zeros(sizes, np.int64)
    table[5, 7] = rows
    found = part_of(table)
    assert int(found[5, 7]) == rows * (2**11 - 1) ** 2
    assert int(found[0, 7]) == int(found[5, 0]) == -rows * (2**11 - 1)
    assert int(found[0, 0]) == rows


def test_the_public_contract_tells_sizes_and_sensitivities() -> None:
    for names, part in zip(COLUMN_SETS, PARTS.blocks, strict=True):
        block = PartBlock(names)
        assert (block.attributes, block.size(SCHEMA)) == (part.attributes, part.size)
        for protection in PROTECTIONS[::2]:
            assert block.sensitivity(SCHEMA, protection) == part.sensitivity(protection)
        labels = list(part.labels(SCHEMA))
        assert len(set(labels)) == part.size
    names_of_all = [part.name for part in (*PARTS.blocks, Marginal(("a",), (2,)))]
    assert len(set(names_of_all)) == len(names_of_all)


def test_models_do_not_answer_parts() -> None:
    part = MarginalPart(("a",), (2,))
    with pytest.raises(TypeError, match="not answered"):
        part.features(SCHEMA)
    rows = RelaxedRows(SCHEMA, {}, {}, {}, 1.0)
    with pytest.raises(TypeError, match="not answered"):
        QuerySet([part]).on_relaxed(rows)
