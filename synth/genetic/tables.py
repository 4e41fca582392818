"""Cross tables; a row is in one cell of each."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synth.genetic.candidates import Candidates
from synth.genetic.columns import Columns
from synth.genetic.compiled import compiled
from synth.genetic.query_counts import JOINS, LEAVES, QueryCounts, move
from synth.genetic.ragged import Integers, fields_of, joined, starts
from synth.queries.reading import Reading

Codes = NDArray[np.int32]


class Tables(NamedTuple):
    """Tables by number, and by the readings on their axes."""

    cell_start: Integers
    """The first query of each table."""
    axis_start: Integers
    reading: Integers
    stride: Integers
    """The axes of each table: the reading of a column, and the stride between neighbouring codes."""
    reading_start: Integers
    """The first reading of each column; readings are numbered column by column."""
    code_start: Integers
    code_of_place: Integers
    """The code of each place of a column, for each reading."""
    use_start: Integers
    used_by: Integers
    used_stride: Integers
    """The tables that have each reading as an axis, and the stride of that axis."""
    codes: Codes
    """The code of each row in each reading."""


def new_tables(
    tables: Sequence[tuple[Reading, ...]],
    names: Sequence[str],
    columns: Columns,
    places: Integers,
) -> Tables:
    """Build tables of the named columns, whose cells are the first queries, and the codes of rows."""
    distinct = dict.fromkeys(joined(tables))
    by_column = [[reading for reading in distinct if reading.column == name] for name in names]
    readings = [(column, reading) for column, each in enumerate(by_column) for reading in each]
    number = {reading: i for i, (_, reading) in enumerate(readings)}
    axes = [_axes_of(table, number) for table in tables]
    uses: list[list[tuple[int, ...]]] = [[] for _ in readings]
    for table, listed in enumerate(axes):
        for reading_number, stride in listed:
            uses[reading_number].append((table, stride))
    codes_of_places = [_codes_of_places(reading, columns, column) for column, reading in readings]
    codes = np.zeros((len(places), len(readings)), np.int32)
    for index, (column, _) in enumerate(readings):
        codes[:, index] = codes_of_places[index][places[:, column]]
    reading_of, stride_of = fields_of(joined(axes), 2)
    used_by, used_stride = fields_of(joined(uses), 2)
    return Tables(
        cell_start=np.cumsum([0, *(table_size(table) for table in tables)], dtype=np.int64),
        axis_start=starts(axes),
        reading=reading_of,
        stride=stride_of,
        reading_start=starts(by_column),
        code_start=starts(codes_of_places),
        code_of_place=np.array(joined(codes_of_places), np.int64),
        use_start=starts(uses),
        used_by=used_by,
        used_stride=used_stride,
        codes=codes,
    )


def table_size(axes: Sequence[Reading]) -> int:
    """Number of cells of a cross table."""
    return int(np.prod([axis.size for axis in axes], dtype=np.int64))


def _axes_of(table: tuple[Reading, ...], number: dict[Reading, int]) -> list[tuple[int, ...]]:
    """Reading and stride of each axis; the last one varies fastest."""
    return [(number[axis], table_size(table[i + 1 :])) for i, axis in enumerate(table)]


def _codes_of_places(reading: Reading, columns: Columns, column: int) -> Integers:
    """The code of each place; every edge of the reading is a cut between places."""
    if reading.edges is None:
        return np.arange(reading.size)
    codes = np.searchsorted(reading.edges[1:-1], columns.cuts_of(column), side="right")
    return np.array([0, *codes, *range(len(reading.edges) - 1, reading.size)])


def count_in_tables(tables: Tables) -> Integers:
    """The number of rows in every cell."""
    counts = np.zeros(tables.cell_start[-1], np.int64)
    for (first, last), (start, end) in zip(
        pairwise(tables.axis_start), pairwise(tables.cell_start), strict=True
    ):
        cells = tables.codes[:, tables.reading[first:last]] @ tables.stride[first:last]
        counts[start:end] = np.bincount(cells, minlength=end - start)
    return counts


@compiled
def change_tables(
    tables: Tables,
    query_counts: QueryCounts,
    candidates: Candidates,
    start: int,
    end: int,
    is_kept: bool,
) -> None:
    """Move the row to another cell in every table with the changed column."""
    gains, codes = query_counts.gains, tables.codes
    for index in range(start, end):
        row, column = candidates.row[index], candidates.column[index]
        change = 0.0
        for reading in range(tables.reading_start[column], tables.reading_start[column + 1]):
            old = codes[row, reading]
            new = tables.code_of_place[tables.code_start[reading] + candidates.place[index]]
            if new == old:
                continue
            for use in range(tables.use_start[reading], tables.use_start[reading + 1]):
                left = _cell_of(tables, codes[row], tables.used_by[use])
                joined = left + tables.used_stride[use] * (new - old)
                change += gains[left, LEAVES] + gains[joined, JOINS]
                if is_kept:
                    move(query_counts, left, LEAVES)
                    move(query_counts, joined, JOINS)
            if is_kept:
                codes[row, reading] = new
        candidates.score[index] += change


@compiled
def _cell_of(tables: Tables, codes: Codes, table: int) -> int:
    """The query that counts a row with those codes."""
    cell = tables.cell_start[table]
    for axis in range(tables.axis_start[table], tables.axis_start[table + 1]):
        cell += tables.stride[axis] * codes[tables.reading[axis]]
    return int(cell)
