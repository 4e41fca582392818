"""T4 for groups of individuals: counts change by no more than their price covers.

Two tables are uploaded, so neighbours differ there. The real code runs: individuals are limited for
each person, then for each group by a keyed hash, linked to their groups, and counted.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest

from scrim.spec.population import Protection
from scrim.spec.sensitivity import Sensitivity
from scrim.spec.two_level import LevelTable, TwoLevelSchema, protection_of_table
from scrim.spec.workload import GroupSizesBlock, HierarchicalBlock
from synth.domain import Domain
from synth.journal import MemoryJournal
from synth.privacy import noise
from synth.privacy.vault import Vault
from synth.queries import HierarchicalQueries, Marginal, QueryBlock, QuerySet, compile_blocks
from synth.table import Table, limit_rows
from synth.table.encoding import codec_of
from synth.table.linking import link
from tests.synth.linked import coded_columns, household, linked_table
from tests.synth.privacy.test_sensitivity import Recorder

KEY = b"a key of the service"
ORPHANED = -1
"""Stands for the column's value of a household without a row of its own."""

Individual = tuple[int, int, int]
"""An individual: its identifier, its household, and its own column."""
Dataset = tuple[tuple[tuple[int, int], ...], tuple[Individual, ...]]
"""Households (which one, and its column), and individuals."""


def new_schema(kinds: int, size: int) -> TwoLevelSchema:
    """One column of households, and one of individuals, who have an identifier."""
    return TwoLevelSchema.model_validate(
        {
            "groups": {"key": "id", "columns": coded_columns({"g": 2}, nullable=True)},
            "individuals": {
                "group_key": "home",
                "columns": [
                    {"name": "person", "type": "identifier"},
                    *coded_columns({"a": kinds}),
                ],
            },
            "max_group_size": size,
        }
    )


def queries_of(schema: TwoLevelSchema) -> QuerySet:
    names = [column.name for column in schema.linked.attributes]
    tables = [
        HierarchicalBlock(chosen, level)
        for k in range(3)
        for chosen in combinations(names, k)
        for level in ("group", "individual")
    ]
    return compile_blocks([*tables, GroupSizesBlock(())], schema.linked)


class Counting:
    """Uploaded rows on their way to the counts, remembered."""

    def __init__(self, kinds: int, size: int, rows_of_a_person: int | None = None) -> None:
        self.schema = new_schema(kinds, size)
        self._rows_of_a_person = rows_of_a_person
        self.queries = queries_of(self.schema)
        self.counts = cache(self._counts)

    def alone(self, dataset: Dataset, name: LevelTable) -> Table:
        """One of the two tables as it is stored: at most one row a group, and bounded people."""
        groups, individuals = dataset
        if name == "groups":
            described = self._table("groups", [(key, column) for key, column in groups])
            return limit_rows(described, "id", 1, KEY)
        people = self._table("individuals", [(home, who, own) for who, home, own in individuals])
        if self._rows_of_a_person is not None:
            return limit_rows(people, "person", self._rows_of_a_person, KEY, group="home")
        return limit_rows(people, "home", self.schema.max_group_size, KEY)

    def _counts(self, dataset: Dataset) -> np.ndarray:
        described = self.alone(dataset, "groups")
        people = limit_rows(
            self.alone(dataset, "individuals"), "home", self.schema.max_group_size, KEY
        )
        linked = link(next(described.chunks()), next(people.chunks()), self.schema)
        return self.queries.count(Table(self.schema.linked, [linked]))

    def _table(self, name: LevelTable, rows: Sequence[tuple[int, ...]]) -> Table:
        schema = self.schema.table(name)
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), len(schema.columns))
        encoded = {
            column.name: codec_of(column).encode(pa.array(matrix[:, i].astype(str)))
            for i, column in enumerate(schema.columns)
        }
        return Table(schema, [encoded])

    def largest(self, pairs: Iterable[tuple[Dataset, Dataset]]) -> list[Sensitivity]:
        """How far any of these neighbours are apart, for each table of queries."""
        moves = np.unique([self.counts(a) - self.counts(b) for a, b in pairs], axis=0)
        return [
            Sensitivity(
                int(np.abs(move).sum(1).max()), int((move**2).sum(1).max()), int(np.abs(move).max())
            )
            for move in (
                moves[:, a:b]
                for a, b in zip(self.queries.offsets, self.queries.offsets[1:], strict=False)
            )
        ]


new_counting = cache(Counting)


def with_household(base: Dataset, column: int, members: Sequence[int]) -> Dataset:
    """One household more; it has no row of its own where its column is ORPHANED."""
    groups, individuals = base
    row = () if column == ORPHANED else ((7, column),)
    return (*groups, *row), (*individuals, *((70 + i, 7, own) for i, own in enumerate(members)))


OTHERS: Dataset = ((1, 0), (2, 1)), ((1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 3, 1))
"""Two households and an individual without one."""
NOBODY: Dataset = (), ()


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("kinds", "size"), [(1, 2), (2, 1), (2, 3), (3, 3)])
def test_a_household_moves_what_it_is_priced_for(kinds: int, size: int, relation: str) -> None:
    """Of any size, so that larger ones are truncated; with or without a row of its own."""
    counting = new_counting(kinds, size)
    households = [
        with_household(base, column, members)
        for base in (NOBODY, OTHERS)
        for column in (0, 1, ORPHANED)
        for count in range(1, size + 2)
        for members in combinations_with_replacement(range(kinds), count)
    ]
    half = len(households) // 2
    if relation == "add_remove":
        pairs = [
            (h, base) for h, base in zip(households, [NOBODY] * half + [OTHERS] * half, strict=True)
        ]
    else:
        pairs = [
            pair for some in (households[:half], households[half:]) for pair in product(some, some)
        ]
    declared = [block.sensitivity(household(size, relation)) for block in counting.queries.blocks]
    assert counting.largest(pairs) == declared


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["groups", "individuals"])
def test_in_one_table_alone_a_household_may_own_no_row(
    name: LevelTable, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty households and orphans: the number of rows moves by all that a household may own."""
    size = 2
    counting = new_counting(2, size)
    alone = protection_of_table(household(size, relation), counting.schema, name)
    column = Marginal.of(["g" if name == "groups" else "a"], Domain.of(counting.schema.table(name)))
    recorder = Recorder()
    monkeypatch.setattr(noise, "gaussian", recorder.gaussian)

    def entering(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
        table = counting.alone(dataset, name)
        vault = Vault(table, protection=alone, budget=0, journal=MemoryJournal())
        vault.count_rows(budget=1)
        vault.measure(column, budget=1)
        rows, counts = recorder.values
        recorder.values.clear()
        return rows, counts

    households = [
        with_household(OTHERS, column, members)
        for column in (0, 1, ORPHANED)
        for count in range(size + 2)
        for members in combinations_with_replacement(range(2), count)
        if count or column != ORPHANED
    ]
    pairs = (
        [(OTHERS, each) for each in households]
        if relation == "add_remove"
        else list(combinations(households, 2))
    )
    moves = [
        [after - before for before, after in zip(entering(a), entering(b), strict=True)]
        for a, b in pairs
    ]
    assert max(abs(int(rows[0])) for rows, _ in moves) == alone.row_count_sensitivity
    assert alone.row_count_sensitivity == (1 if name == "groups" else size)
    declared = column.sensitivity(alone)
    assert max(int((counts**2).sum()) for _, counts in moves) == declared.l2_squared


def test_an_empty_household_is_nobodys() -> None:
    counting = Counting(2, 2)
    groups, individuals = OTHERS
    assert (counting.counts(OTHERS) == counting.counts(((*groups, (7, 1)), individuals))).all()


def person(rows: int, relation: str) -> Protection:
    return Protection.model_validate(
        {"unit": "person", "relation": relation, "max_rows_per_person": rows}
    )


def people_in(kinds: int, size: int, *, truncated: bool) -> Iterable[Dataset]:
    """Other people in two households: the same in both, or none in the second."""
    for count in range(size + 1 + truncated):
        for members in combinations_with_replacement(range(kinds), count):
            for homes in ((1, 2), (1,)):
                yield (
                    ((1, 0), (2, 0)),
                    tuple(
                        (10 * home + i, home, own)
                        for home in homes
                        for i, own in enumerate(members)
                    ),
                )


def owning(base: Dataset, rows: Sequence[tuple[int, int]], who: int = 99) -> Dataset:
    """One person more, with rows in some homes."""
    groups, individuals = base
    return groups, (*individuals, *((who, home, own) for home, own in rows))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("kinds", "size", "rows"),
    [(1, 2, 1), (2, 1, 1), (3, 2, 1), (2, 3, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2)],
)
def test_a_person_moves_what_their_rows_are_priced_for(
    kinds: int, size: int, rows: int, relation: str
) -> None:
    """Own rows alone: a replaced person stays in the same homes, whatever their identifier.

    People may have uploaded more rows than they may own, in one home or in several.
    """
    counting = new_counting(kinds, size, rows)
    pairs = []
    for base in people_in(kinds, size, truncated=True):
        for count in range(1, rows + 2):
            for homes in combinations_with_replacement((1, 2), count):
                lives = [
                    owning(base, list(zip(homes, own, strict=True)))
                    for own in product(range(kinds), repeat=count)
                ]
                lives.append(owning(base, [(home, 0) for home in homes], who=98))
                if relation == "add_remove":
                    pairs += [(life, base) for life in lives]
                else:
                    pairs += combinations(lives, 2)
    for block, most in zip(counting.queries.blocks, counting.largest(pairs), strict=True):
        bound = block.sensitivity(person(rows, relation))
        assert most.l1 <= bound.l1 and most.l2_squared <= bound.l2_squared, block.name
        assert most.linf <= bound.linf, block.name
        assert most == bound or is_conservative(block, kinds, size, relation), block.name


def is_conservative(block: QueryBlock, kinds: int, size: int, relation: str) -> bool:
    """Where the price covers more than can happen (docs/privacy.md, section 3).

    With two kinds, a kind that is new in a group appears only if all others are of the other kind, and
    if there are several of those, one stays.
    """
    counts_kinds = (
        isinstance(block, HierarchicalQueries) and block.level == "group" and block.of_individuals
    )
    return bool(counts_kinds) and relation == "add_remove" and kinds == 2 and size > 1


def test_whoever_joins_a_full_household_takes_anothers_place() -> None:
    """Why a person changes two cells under add/remove: in a full group, one is added and one is removed."""
    counting = Counting(3, 2, 1)
    table = next(g for g in counting.queries.blocks if g.name == "individuals by a")
    start = int(counting.queries.offsets[counting.queries.blocks.index(table)])
    moves = [
        counting.counts(owning(base, [(1, own)])) - counting.counts(base)
        for base in people_in(3, 2, truncated=False)
        for own in range(3)
    ]
    of_table = {tuple(sorted(move[start : start + 3])) for move in moves}
    assert of_table == {(0, 0, 1), (-1, 0, 1), (0, 0, 0)}
    assert table.sensitivity(person(1, "add_remove")).l2_squared == 2


def test_a_person_who_belongs_to_many_homes_is_limited_before_the_homes_are() -> None:
    """In the other order, a person who joins would displace others into homes where they displace more."""
    counting = Counting(2, 1, 1)
    chain = tuple((10 + i, home, 0) for i in range(4) for home in (i, i + 1))
    base: Dataset = tuple((home, 0) for home in range(6)), chain
    bound = {g: g.sensitivity(person(1, "add_remove")) for g in counting.queries.blocks}
    for home, own in product(range(6), range(2)):
        found = counting.largest([(owning(base, [(home, own)]), base)])
        for block, most in zip(counting.queries.blocks, found, strict=True):
            assert most.l2_squared <= bound[block].l2_squared


def far_off(queries: QuerySet) -> np.ndarray:
    """Released counts that are wrong about individuals of the first kind, more than about others."""
    names = [block.name for block in queries.blocks]
    released = np.zeros(queries.size, np.int64)
    released[queries.offsets[names.index("individuals by a")]] = 100
    return released


BOTH_LEVELS: dict[str, Callable[[Vault, QuerySet], object]] = {
    "select": lambda v, q: v.select(q, np.zeros(q.size), budget=1),
    "hedge": lambda v, q: v.hedge_draw(q, np.zeros(q.size), rows=2, rate=0.1, past=4, draws=1),
    "certify": lambda v, q: v.certify(q, far_off(q), released_rows=5, rows=2, budget=1),
}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("operation", BOTH_LEVELS)
@pytest.mark.parametrize("first", ["groups", "individuals"])
def test_both_levels_together_are_priced_for_the_one_that_moves_farther(
    first: str, operation: str, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A household moves groups by one and individuals by three, whichever table comes first."""
    counting = new_counting(2, 3)
    tables = sorted(counting.queries.blocks[2:], key=lambda g: not g.name.startswith(first))
    assert tables[0].name.startswith(first)
    queries, recorder = QuerySet(tables), Recorder()
    for sampler in ("gaussian", "noisy_top", "gumbel_draws"):
        monkeypatch.setattr(noise, sampler, getattr(recorder, sampler))

    def entering(households: Sequence[tuple[int, ...]]) -> np.ndarray:
        rows = [((0,), tuple((own,) for own in members)) for members in households]
        table = linked_table(counting.schema.linked, rows)
        vault = Vault(table, protection=household(3, relation), budget=0, journal=MemoryJournal())
        BOTH_LEVELS[operation](vault, queries)
        return recorder.values.pop()

    kinds = [own for size in (1, 2, 3) for own in product(range(2), repeat=size)]
    before = [[(0,)]] if relation == "add_remove" else [[(0,), own] for own in kinds]
    moves = [entering(other) - entering([(0,), own]) for other in before for own in kinds]
    farthest = max(int(np.abs(move).max()) for move in moves)
    assert farthest == (recorder.linf or math.isqrt(recorder.l2_squared))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    ("names", "is_attained"),
    [
        (["groups by a", "individuals by a"], True),
        (["individuals by g,a", "groups by g"], True),
        # A household that leaves all its kinds of individuals has one kind; this table has two.
        (["groups by g,a", "groups by a", "individuals by g,a"], False),
    ],
    ids=lambda value: " + ".join(value) if isinstance(value, list) else "",
)
def test_a_total_over_both_levels_is_priced_for_what_each_table_moves(
    names: list[str], is_attained: bool, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A household moves each table by its own L1, not by that of the first or the largest one."""
    counting = new_counting(2, 3)
    tables = {block.name: block for block in counting.queries.blocks}
    queries, recorder = QuerySet(tables[name] for name in names), Recorder()
    monkeypatch.setattr(noise, "gaussian", recorder.gaussian)
    # Wrong about households like the first one, so that replacing it increases all errors.
    far = queries.count(linked_table(counting.schema.linked, [((0,), ((0,),) * 3)] * 9))

    def entering(column: int, members: tuple[int, ...]) -> int:
        rows = [((0,), ((0,),)), ((column,), tuple((own,) for own in members))][: 1 + bool(members)]
        table = linked_table(counting.schema.linked, rows)
        vault = Vault(table, protection=household(3, relation), budget=0, journal=MemoryJournal())
        released = np.zeros_like(far) if relation == "add_remove" else far
        vault.certify(queries, released, released_rows=5, rows=2, budget=1, certified="total error")
        return int(recorder.values.pop()[0])

    present = [(g, own) for g in range(2) for m in (1, 2, 3) for own in product(range(2), repeat=m)]
    before = [(0, ())] if relation == "add_remove" else present
    farthest = max(abs(entering(*a) - entering(*b)) for a in before for b in present)
    declared = sum(block.sensitivity(household(3, relation)).l1 for block in queries.blocks)
    assert recorder.l2_squared == (5 * declared) ** 2
    assert farthest == 5 * declared if is_attained else farthest <= 5 * declared
