"""T4 for parts of marginals: brute force over all neighbours, and refusals before the rows are read."""

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.population import PartialProtection, Protection
from scrim.spec.sensitivity import MAX_PART_CELLS
from scrim.spec.workload import PartBlock
from synth.journal import MemoryJournal
from synth.privacy import noise
from synth.privacy.vault import Vault
from synth.queries import MarginalPart, QuerySet, Single, compile_blocks
from tests.support import PROTECTIONS, coded_schema, coded_table
from tests.synth.linked import household, two_level_schema
from tests.synth.privacy.test_sensitivity import CELLS, SCHEMA, Recorder, Rows, neighbours

ADDED = [p for p in PROTECTIONS if p.relation == "add_remove"]
REPLACED = [p for p in PROTECTIONS if p.relation == "replace_one"]
A, B, AB = compile_blocks([PartBlock(n) for n in (("a",), ("b",), ("a", "b"))], SCHEMA).blocks


@pytest.mark.parametrize("protection", ADDED, ids=lambda p: p.unit)
@pytest.mark.parametrize("query", [A, B, AB, Single(AB, 4)], ids=lambda q: q.name)
def test_no_neighbour_moves_a_part_by_more_than_its_price_covers(
    query: MarginalPart | Single, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real vault, on every table of at most three rows and on every neighbour of it."""
    recorder = Recorder()
    monkeypatch.setattr(noise, "gaussian", recorder.gaussian)

    @cache
    def entering(rows: Rows) -> np.ndarray:
        table = coded_table(SCHEMA, rows)
        vault = Vault(table, protection=protection, budget=0, journal=MemoryJournal())
        vault.measure(query, budget=1)
        return recorder.values.pop()

    moves = [
        entering(tuple(sorted(other))) - entering(rows)
        for n in range(4)
        for rows in combinations_with_replacement(CELLS, n)
        for other in neighbours(rows, protection)
    ]
    declared = query.sensitivity(protection)
    assert recorder.l2_squared == declared.l2_squared
    assert max(int((move**2).sum()) for move in moves) == declared.l2_squared
    assert max(int(np.abs(move).sum()) for move in moves) == declared.l1
    assert max(int(np.abs(move).max()) for move in moves) == declared.linf


SIZES = {"a": 2, "b": 3, "c": 4, "one": 1}
COLUMN_SETS = [("c",), ("a", "c"), ("b", "c"), ("a", "b", "c"), ("one",), ("b", "one")]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("names", COLUMN_SETS, ids=",".join)
def test_declared_sensitivities_are_attained_with_more_columns(
    names: tuple[str, ...], rows: int
) -> None:
    """All units of one or two rows that join an empty table, and one that is not empty."""
    schema, protection = coded_schema(SIZES), Protection(unit="person", max_rows_per_person=rows)
    (part,) = compile_blocks([PartBlock(names)], schema).blocks
    domain = list(product(*map(range, SIZES.values())))
    bases: list[list[tuple[int, ...]]] = [[], domain[3:20:4]]
    moves = []
    for base in bases:
        before = QuerySet([part]).count(coded_table(schema, base))
        for size in range(1, rows + 1):
            for unit in combinations_with_replacement(domain, size):
                after = QuerySet([part]).count(coded_table(schema, [*base, *unit]))
                moves.append(after - before)
    declared = part.sensitivity(protection)
    assert max(int(np.abs(move).sum()) for move in moves) == declared.l1
    assert max(int((move**2).sum()) for move in moves) == declared.l2_squared
    assert max(int(np.abs(move).max()) for move in moves) == declared.linf


@pytest.mark.parametrize("names", COLUMN_SETS, ids=",".join)
def test_every_row_has_the_declared_shifts(names: tuple[str, ...]) -> None:
    schema = coded_schema(SIZES)
    block = PartBlock(names)
    (part,) = compile_blocks([block], schema).blocks
    assert isinstance(part, MarginalPart)
    declared = part.shifts
    for row in product(*map(range, SIZES.values())):
        moved = QuerySet([part]).count(coded_table(schema, [row]))
        assert Counter(np.abs(moved).tolist()) == Counter(declared)
    assert block.shifts(schema) == declared
    one = part.sensitivity(Protection())
    assert sum(shift * cells for shift, cells in declared.items()) == one.l1
    assert sum(shift**2 * cells for shift, cells in declared.items()) == one.l2_squared
    assert max(declared) == one.linf


def test_the_part_of_no_columns_is_the_number_of_rows() -> None:
    for protection in (*ADDED, PartialProtection(unit="person", max_rows_per_person=2)):
        rows = protection.row_count_sensitivity
        assert MarginalPart((), ()).sensitivity(protection) == (rows, rows**2, rows)


@pytest.mark.parametrize("protection", REPLACED, ids=lambda p: p.unit)
def test_replace_one_is_refused_before_the_rows_are_read(protection: Protection) -> None:
    journal = MemoryJournal()
    unread = coded_table(SCHEMA, [(0, 0)])
    vault = Vault(unread, protection=protection, budget=10**12, journal=journal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Vault, "_true_all", lambda *_: pytest.fail("the rows were read"))
        with pytest.raises(SpecError, match="add_remove"):
            vault.measure(AB, budget=10**11)
    assert (vault.spent, list(journal.operations())) == (0, [])


def test_linked_tables_are_refused() -> None:
    schema = two_level_schema({"g": 2}, {"i": 3}, 2).linked
    with pytest.raises(SpecError, match="single table"):
        compile_blocks([PartBlock(("g",))], schema)
    with pytest.raises(SpecError, match="single table"):
        PartBlock(("g",)).sensitivity(schema, household(2))


def test_a_part_whose_values_could_exceed_64_bits_is_refused() -> None:
    size = math.isqrt(MAX_PART_CELLS)
    MarginalPart(("a", "b"), (size, size)).sensitivity(Protection())
    with pytest.raises(SpecError, match="more than the limit"):
        MarginalPart(("a", "b"), (size, size + 1)).sensitivity(Protection())
