"""T4: true values change by no more than their price covers, over all neighbours.

The vault runs for real on every dataset of a tiny domain and on every neighbour of it; only the
samplers are replaced, by ones that record the true numbers and the sensitivity they were priced for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.workload import BinaryTree, Halfspaces, Prefixes, Ranges
from synth.domain import Domain
from synth.door import Certified, TotalError
from synth.journal import MemoryJournal
from synth.privacy import noise
from synth.privacy.noise import FIXED_POINT
from synth.privacy.vault import Vault
from synth.queries import Marginal, QueryBlock, QuerySet, Single, compile_workload
from synth.table import Table, store_numbers
from tests.support import PROTECTIONS, coded_schema, coded_table

SIZES = {"a": 2, "b": 3}
SCHEMA = coded_schema(SIZES)
DOMAIN = Domain.of(SCHEMA)
A, B, AB = (Marginal.of(names, DOMAIN) for names in (["a"], ["b"], ["a", "b"]))
ALL = Marginal((), ())
"""One cell, which has all rows: under replace-one it moves less far than the cells of the others."""
TREE, TREES, RANGES, PREFIXES, HALFSPACES = compile_workload(
    [
        BinaryTree(type="binary_tree", attributes=[["b"]], levels=2),
        BinaryTree(type="binary_tree", attributes=[["a", "b"]], levels=3),
        Ranges(
            type="ranges",
            queries=[{"b": [0, 0.5]}, {"b": [0, 1.5]}, {"a": [0, 0.5], "b": [0, 1.5]}],
        ),
        Prefixes(type="prefixes", count=4, seed=1, categorical=0, numeric=1),
        Halfspaces(type="halfspaces", count=3, seed=83),
    ],
    SCHEMA,
).blocks
CELLS = [(a, b) for a in range(2) for b in range(3)]
Rows = tuple[tuple[int, int], ...]


@dataclass
class Recorder:
    """Replaces the noise and records its inputs."""

    values: list[np.ndarray] = field(default_factory=list)
    l2_squared: int = 0
    linf: int = 0

    def gaussian(self, l2_squared: int, *, budget: int) -> noise.Sampler:
        self.l2_squared = l2_squared
        return noise.Sampler(1.0, 0, self._keep)

    def noisy_top(self, linf: int, k: int, *, budget: int) -> noise.Sampler:
        self.linf = linf
        return noise.Sampler(1.0, 0, self._keep)

    def gumbel_draws(self, linf: int, scale: float, draws: int) -> noise.Sampler:
        self.linf = linf
        return noise.Sampler(scale, 0, self._keep)

    def _keep(self, values: np.ndarray) -> np.ndarray:
        self.values.append(values)
        return np.zeros(1, dtype=np.int64)


def neighbours(
    rows: tuple[Any, ...], protection: Protection, cells: Sequence[Any] = CELLS
) -> Iterator[tuple[Any, ...]]:
    """Every dataset that differs by one unit; a unit that is present owns 1 to `most` rows."""
    # As declared, not as the code under test derives it.
    most = {"row": 1, "person": 2, "household": 3}[protection.unit]
    units = [u for m in range(1, most + 1) for u in combinations_with_replacement(cells, m)]
    if protection.relation == "add_remove":
        yield from (rows + unit for unit in units)
        return
    for size in range(1, min(len(rows), most) + 1):
        yield from (rows[size:] + unit for unit in units)


def by_total(weights: list[int]) -> TotalError:
    """A score with these weights, and offsets that no count has."""
    return TotalError(np.array(weights), 0.7 + np.arange(len(weights), dtype=np.float64))


def certify_far_rows(certified: Certified, *blocks: QueryBlock) -> Callable[[Vault], object]:
    """Certify seven rows that are all in one cell: a row that leaves it increases all errors."""
    queries = QuerySet(blocks)
    released = queries.count(coded_table(SCHEMA, [CELLS[-1]] * 7))
    return lambda v: v.certify(
        queries, released, released_rows=7, rows=3, budget=1, certified=certified
    )


Operation = Callable[[Vault], object]
EXPECTED = np.array([1.5, 0.25, 0.0, 2.0, 0.5, 0.75])
FAR = np.array([9.5, 0.0, 0.0, 9.5, 0.0])
"""More rows than there are, in one cell of each marginal: leaving it increases two errors."""
OPERATIONS: dict[str, Operation] = {
    "rows": lambda v: v.count_rows(budget=1),
    "measure a marginal": lambda v: v.measure(AB, budget=1),
    "measure one query": lambda v: v.measure(Single(AB, 4), budget=1),
    "select a marginal": lambda v: v.select(QuerySet([A, B]), np.zeros(5), budget=1),
    "select two": lambda v: v.select(QuerySet([AB, B]), np.zeros(9), budget=1, k=2),
    "select a query": lambda v: v.select(QuerySet([AB]), EXPECTED, budget=1, among="queries"),
    "select a marginal by total error": lambda v: v.select(
        QuerySet([A, B]), FAR, budget=1, score=by_total([3, 2])
    ),
    "select a tree or a range by total error": lambda v: v.select(
        QuerySet([TREE, RANGES]), np.zeros(9), budget=1, score=by_total([1, 1, 1, 5])
    ),
    "hedge": lambda v: v.hedge_draw(QuerySet([AB]), EXPECTED, rows=3, rate=0.1, past=4, draws=2),
    "measure a tree": lambda v: v.measure(TREES, budget=1),
    "measure a range": lambda v: v.measure(Single(RANGES, 2), budget=1),
    "select a tree or a prefix": lambda v: v.select(
        QuerySet([PREFIXES, TREE]), np.zeros(10), budget=1
    ),
    "select a halfspace": lambda v: v.select(QuerySet([HALFSPACES]), EXPECTED[:3], budget=1),
    "hedge over ranges": lambda v: v.hedge_draw(
        QuerySet([RANGES]), EXPECTED[:3], rows=3, rate=0.1, past=4, draws=2
    ),
    "certify halfspaces": lambda v: v.certify(
        QuerySet([HALFSPACES]), np.array([7, 0, 0]), released_rows=7, rows=3, budget=1
    ),
    "certify": lambda v: v.certify(
        QuerySet([AB, A]), np.array([7, 0, 0, 0, 0, 0, 7, 0]), released_rows=7, rows=3, budget=1
    ),
    # The least sensitive block comes first, then last: it must not set the sensitivity of others.
    "certify unlike blocks": lambda v: v.certify(
        QuerySet([ALL, AB, ALL]),
        np.array([7, 7, 0, 0, 0, 0, 0, 7]),
        released_rows=7,
        rows=3,
        budget=1,
    ),
    "certify a total": certify_far_rows("total error", AB),
    "certify a total of two marginals": certify_far_rows("total error", A, AB),
    "certify a total of a marginal and a tree": certify_far_rows("total error", AB, TREES),
    "certify a total of ranges": certify_far_rows("total error", RANGES),
    "certify a total of unlike blocks": certify_far_rows("total error", ALL, AB, ALL),
    "certify the totals of columns": certify_far_rows("total errors", A, B),
    "hedge over unlike blocks": lambda v: v.hedge_draw(
        QuerySet([ALL, B, ALL]), EXPECTED[:5], rows=3, rate=0.1, past=4, draws=2
    ),
    "select among unlike blocks": lambda v: v.select(
        QuerySet([ALL, A, ALL]), np.zeros(4), budget=1
    ),
    "select among unlike blocks by total error": lambda v: v.select(
        QuerySet([ALL, A, ALL]), np.array([0, 9.5, 0, 0]), budget=1, score=by_total([1, 1, 1])
    ),
}


@cache
def table_of(rows: Rows) -> Table:
    """A table, which is only read."""
    return coded_table(SCHEMA, rows)


BY_COMPOSITION = {"certify a total of unlike blocks"}
"""No unit moves the cells of a marginal and the number of rows by their largest distances at once."""


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_neighbour_moves_an_operation_by_more_than_its_price_covers(
    name: str, protection: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = OPERATIONS[name]
    recorder = Recorder()
    for function in ("gaussian", "noisy_top", "gumbel_draws"):
        monkeypatch.setattr(noise, function, getattr(recorder, function))

    @cache
    def entering(rows: Rows) -> np.ndarray:
        operation(Vault(table_of(rows), protection=protection, budget=0, journal=MemoryJournal()))
        return recorder.values.pop()

    moves = np.stack(
        [
            entering(tuple(sorted(other))) - entering(rows)
            for n in range(4)
            for rows in combinations_with_replacement(CELLS, n)
            for other in neighbours(rows, protection)
        ]
    )
    largest_l2 = int((moves**2).sum(axis=1).max())
    largest_linf = int(np.abs(moves).max())
    # Covered, and attained: a price for more than can happen would be wrong as well.
    if recorder.linf:
        assert largest_linf == recorder.linf
    elif name in BY_COMPOSITION and protection.relation == "replace_one":
        assert largest_l2 <= recorder.l2_squared
    else:
        assert largest_l2 == recorder.l2_squared


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
@pytest.mark.parametrize(
    "block",
    [
        *(A, B, AB, Single(AB, 2), Marginal(("c",), (1,))),
        *(TREE, TREES, Single(TREES, 3), RANGES, PREFIXES, HALFSPACES, Single(HALFSPACES, 1)),
    ],
    ids=lambda g: g.name,
)
def test_declared_sensitivities_are_attained(
    block: QueryBlock | Single, protection: Protection
) -> None:
    sizes = {**SIZES, "c": 1}
    schema = coded_schema(sizes)

    @cache
    def sorted_counts(rows: Rows) -> np.ndarray:
        table = coded_table(schema, [(*row, 0) for row in rows])
        if isinstance(block, Single):
            return QuerySet([block.block]).count(table)[[block.index]]
        return QuerySet([block]).count(table)

    moves = np.stack(
        [
            sorted_counts(tuple(sorted(other))) - sorted_counts(rows)
            for n in range(4)  # as many rows as the largest unit may own
            for rows in combinations_with_replacement(CELLS, n)
            for other in neighbours(rows, protection)
        ]
    )
    declared = block.sensitivity(protection)
    assert np.abs(moves).sum(axis=1).max() == declared.l1
    assert (moves**2).sum(axis=1).max() == declared.l2_squared
    assert np.abs(moves).max() == declared.linf


def numeric_schema(columns: int, *, nullable: bool) -> Schema:
    """Real numbers between 0 and 1."""
    numbers = {"type": "real", "lower": 0.0, "upper": 1.0, "nullable": nullable}
    return Schema.model_validate(
        {"columns": [{"name": f"x{i}", **numbers} for i in range(columns)]}
    )


@pytest.mark.parametrize("protection", PROTECTIONS, ids=lambda p: f"{p.unit}-{p.relation}")
@pytest.mark.parametrize(
    ("columns", "numbers"),
    [
        (1, [(0.0,), (0.25,), (0.5,), (1.0,)]),
        (1, [(0.1,), (0.5,), (np.nan,)]),
        (2, [(0.0, 0.5), (0.5, 0.5), (0.75, 1.0)]),
        (2, [(0.5, np.nan), (np.nan, np.nan), (0.2, 0.2)]),
    ],
    ids=["one number", "one number or missing", "two numbers", "two numbers or missing"],
)
def test_numbers_on_the_edges_of_a_tree_are_in_one_cell_of_each_level(
    columns: int, numbers: list[tuple[float, ...]], protection: Protection
) -> None:
    """sqrt(2 L^r) for replaced rows, sqrt(L^r) for added ones; closed cells would have more."""
    levels = 2
    schema = numeric_schema(columns, nullable=bool(np.isnan(numbers).any()))
    names = [column.name for column in schema.attributes]
    tree = BinaryTree(type="binary_tree", attributes=[names], levels=levels)
    queries = compile_workload([tree], schema)
    cells = range(len(numbers))

    @cache
    def counts(rows: tuple[int, ...]) -> np.ndarray:
        matrix = np.array([numbers[row] for row in rows]).reshape(-1, columns)
        values = {name: matrix[:, i] for i, name in enumerate(names)}
        return queries.count(Table(schema, [store_numbers(schema, values)]))

    moves = [
        counts(tuple(sorted(other))) - counts(rows)
        for n in range(4)
        for rows in combinations_with_replacement(cells, n)
        for other in neighbours(rows, protection, cells)
    ]
    rows = {"row": 1, "person": 2, "household": 3}[protection.unit]
    moved = 2 if protection.relation == "replace_one" else 1
    expected = moved * levels**columns * rows**2
    assert queries.blocks[0].sensitivity(protection).l2_squared == expected
    assert max(int((move**2).sum()) for move in moves) == expected
    assert max(int(np.abs(move).sum()) for move in moves) == moved * levels**columns * rows
    assert max(int(np.abs(move).max()) for move in moves) == rows


@pytest.mark.parametrize("protection", PROTECTIONS[:2], ids=lambda p: p.relation)
def test_stacked_marginals_cost_the_sum_of_their_squares(protection: Protection) -> None:
    blocks = [A, B, AB]
    stacked = QuerySet(blocks)

    def counts(rows: Rows) -> np.ndarray:
        return stacked.count(coded_table(SCHEMA, rows))

    largest = max(
        int(((counts(other) - counts(rows)) ** 2).sum())
        for n in range(3)
        for rows in combinations_with_replacement(CELLS, n)
        for other in neighbours(rows, protection)
    )
    assert largest == sum(block.sensitivity(protection).l2_squared for block in blocks)


def test_scores_are_exact_whole_numbers() -> None:
    """A fraction of a row that no double can hold must not blur the sensitivity."""
    recorder = Recorder()
    table = coded_table(SCHEMA, [(0, 0)] * 5)
    vault = Vault(table, protection=PROTECTIONS[0], budget=0, journal=MemoryJournal())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "noisy_top", recorder.noisy_top)
        vault.select(QuerySet([A]), np.array([1 / 3, 0.1]), budget=1, among="queries")
    (scores,) = recorder.values
    assert scores.dtype == np.int64
    assert scores.tolist() == [5 * FIXED_POINT - round(FIXED_POINT / 3), round(FIXED_POINT * 0.1)]
