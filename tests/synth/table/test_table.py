import io
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import synth.table
from scrim.spec.schema import Schema
from synth.table import (
    Table,
    TableError,
    chunk_from_bytes,
    chunk_to_bytes,
    draw_values,
    limit_rows,
    people,
    read_csv,
)
from synth.table.chunk import Chunk
from tests.synth.table.strategies import CANARY, codes_of, rows_of, same_chunks, schemas

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
            {
                "name": "income",
                "type": "real",
                "lower": 0,
                "upper": 9,
                "bins": {"edges": [0, 1, 9]},
            },
            {"name": "weight", "type": "real", "lower": 0, "upper": 9},
            {"name": "id", "type": "identifier"},
        ]
    }
)


def chunk_of(rows: Sequence[tuple[str, ...]]) -> Chunk:
    lines = ["sex,age,income,weight,id", *(",".join(row) for row in rows)]
    (chunk,) = read_csv(io.BytesIO("\n".join(lines).encode()), SCHEMA)
    return chunk


ROWS = [("F", "7", "0.5", "1", "p"), ("M", "99", "9", "", "q"), ("", "", "", "3", "p")]


@pytest.fixture
def table() -> Table:
    return Table(SCHEMA, [chunk_of(ROWS), chunk_of(ROWS[:1])])


def declare(**changes: dict[str, Any]) -> Schema:
    """The schema with some fields of some columns declared differently."""
    columns = [c.model_dump(exclude_none=True) | changes.get(c.name, {}) for c in SCHEMA.columns]
    return Schema.model_validate({"columns": columns})


# The table


def test_all_names_are_public_and_sorted() -> None:
    assert synth.table.__all__ == sorted(synth.table.__all__)
    assert all(getattr(synth.table, name).__doc__ for name in synth.table.__all__)


def test_chunks_can_be_read_again(table: Table) -> None:
    assert table.schema is SCHEMA
    assert same_chunks(list(table.chunks()), list(table.chunks()))
    with pytest.raises(TypeError, match="re-iterable"):
        Table(SCHEMA, iter([chunk_of(ROWS)]))


def test_a_table_does_not_tell_its_length(table: Table) -> None:
    assert not hasattr(table, "__len__")
    public = [name for name in dir(table) if not name.startswith("_")]
    assert public == ["chunks", "codes", "open", "project", "read", "save", "schema", "use_bins"]
    assert repr(table).startswith("<synth.table.table.Table object")


def test_codes_are_bins_and_the_last_is_missing(table: Table) -> None:
    first, second = table.codes(["income", "sex", "age"])
    assert {name: codes.tolist() for name, codes in first.items()} == {
        "income": [0, 1, 2],
        "sex": [0, 1, 3],
        "age": [0, 9, 10],
    }
    assert all(codes.dtype == np.uint8 for codes in first.values())
    assert second["age"].tolist() == [0]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("weight", "column 'weight' has no bins"),
        ("id", "column 'id' is not an attribute"),
        ("none", "column 'none' is not an attribute"),
    ],
)
def test_codes_refuse_columns_before_anything_is_read(
    table: Table, name: str, problem: str
) -> None:
    with pytest.raises(TableError, match=problem):
        table.codes(["sex", name])


def test_chunks_must_fit_the_schema() -> None:
    good = dict(chunk_of(ROWS))
    bad: list[tuple[dict[str, Any], str]] = [
        ({**good, "more": good["age"]}, "exactly the declared columns"),
        ({name: good[name] for name in list(good)[1:]}, "exactly the declared columns"),
        ({**good, "age": good["age"].astype(np.int64)}, "'age' of a chunk has type int64"),
        ({**good, "age": good["age"][1:]}, "differ in length"),
    ]
    for chunk, problem in bad:
        with pytest.raises(TableError, match=problem):
            list(Table(SCHEMA, [chunk]).chunks())


# On disk


@settings(max_examples=40)
@given(st.data())
def test_saved_tables_and_chunks_come_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    schema = data.draw(schemas(identifiers=True))
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=3))
    rng = np.random.default_rng(0)
    chunks = [draw_values(schema, data.draw(codes_of(schema, rows=n)), rng) for n in sizes]
    path = tmp_path_factory.mktemp("saved") / "table.arrow"
    Table(schema, chunks).save(path)
    opened = Table.open(path, schema)
    for _ in range(2):
        assert same_chunks(list(opened.chunks()), chunks)
    assert same_chunks([chunk_from_bytes(chunk_to_bytes(chunk)) for chunk in chunks], chunks)


def test_columns_may_come_in_any_order_and_stride(tmp_path: Path) -> None:
    chunk = chunk_of(ROWS)
    mixed = {name: np.repeat(chunk[name], 2)[::2] for name in reversed(list(chunk))}
    Table(SCHEMA, [mixed]).save(tmp_path / "table.arrow")
    assert same_chunks(list(Table.open(tmp_path / "table.arrow", SCHEMA).chunks()), [chunk])


def test_opened_chunks_are_read_only_views(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "table.arrow")
    for chunk in Table.open(str(tmp_path / "table.arrow"), SCHEMA).chunks():
        for column in chunk.values():
            assert not column.flags.owndata
            assert not column.flags.writeable


def test_views_outlive_the_table(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "table.arrow")
    chunks = list(Table.open(tmp_path / "table.arrow", SCHEMA).chunks())
    (tmp_path / "table.arrow").unlink()
    assert same_chunks(chunks, list(table.chunks()))


@pytest.mark.parametrize(
    "changes",
    [
        {"sex": {"values": ["M", "F"]}},
        {"sex": {"nullable": False}},
        {"age": {"lower": 1, "bins": None}},
        {"income": {"name": "salary"}},
        {"weight": {"upper": 99999999}},
    ],
)
def test_a_table_opens_only_with_the_schema_it_was_encoded_with(
    table: Table, tmp_path: Path, changes: dict[str, Any]
) -> None:
    table.save(tmp_path / "table.arrow")
    with pytest.raises(TableError, match="another schema"):
        Table.open(tmp_path / "table.arrow", declare(**changes))


def test_bins_may_be_declared_anew(table: Table, tmp_path: Path) -> None:
    table.save(tmp_path / "table.arrow")
    schema = declare(age={"bins": {"width": 50}}, weight={"decimals": 2, "bins": {"count": 3}})
    opened = Table.open(tmp_path / "table.arrow", schema)
    assert next(opened.codes(["age", "weight"]))["age"].tolist() == [0, 1, 2]


def test_damaged_storage_is_refused(table: Table, tmp_path: Path) -> None:
    path = tmp_path / "table.arrow"
    table.save(path)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], b"ARROW1", b"", CANARY.encode() * 9):
        path.write_bytes(data)
        with pytest.raises(TableError, match="not a saved table"):
            Table.open(path, SCHEMA)
    stored = chunk_to_bytes(chunk_of(ROWS))
    for data in (stored[:-200], stored[:5], b"", CANARY.encode(), pickle.dumps(stored)):
        with pytest.raises(TableError, match="damaged") as caught:
            chunk_from_bytes(data)
        assert caught.value.__context__ is None


def test_the_size_of_stored_chunks_does_not_depend_on_what_they_hold() -> None:
    same = chunk_of([ROWS[0]] * 500)
    mixed = chunk_of(
        [("FM"[i % 2], str(i % 99), str(i % 8), str(i % 7), str(i)) for i in range(500)]
    )
    assert len(chunk_to_bytes(same)) == len(chunk_to_bytes(mixed))


# People

KEY = b"a secret of sixteen"
PEOPLE = st.lists(
    st.tuples(
        st.sampled_from(["F", "M", ""]),
        st.sampled_from(["1", "2", "50"]),
        st.sampled_from(["0", ""]),
        st.sampled_from(["0.5", "7"]),
        st.sampled_from(["p", "q", "r", "s", ""]),
    ),
    min_size=1,
    max_size=25,
)


def kept_rows(rows: list[tuple[str, ...]], max_rows: int, cut: int = 5) -> list[Any]:
    chunks = [chunk_of(rows[i : i + cut]) for i in range(0, len(rows), cut)]
    return rows_of(list(limit_rows(Table(SCHEMA, chunks), "id", max_rows, KEY).chunks()))


def person_of(row: Any) -> Any:
    return row[sorted(c.name for c in SCHEMA.columns).index("id")]


@settings(max_examples=60)
@given(PEOPLE, st.integers(1, 4), st.sampled_from([1, 2**22]), st.randoms(use_true_random=False))
def test_no_one_changes_which_rows_of_another_person_are_kept(
    rows: list[tuple[str, ...]], max_rows: int, at_once: int, random: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "_RANKED_AT_ONCE", at_once)
        kept = Counter(kept_rows(rows, max_rows))
        owners: Counter[Any] = Counter(person_of(row) for row in kept.elements())
        owned = Counter(person_of(row) for row in rows_of([chunk_of(rows)]))
        assert owners == {person: min(n, max_rows) for person, n in owned.items()}

        gone = rows[0][-1]
        (gone_digest,) = {person_of(row) for row in rows_of([chunk_of([rows[0]])])}
        rest = [row for row in rows if row[-1] != gone]
        random.shuffle(rest)
        others = Counter({row: n for row, n in kept.items() if person_of(row) != gone_digest})
        assert Counter(kept_rows(rest, max_rows, cut=3) if rest else []) == others


def test_the_choice_depends_on_the_key_and_on_nothing_else() -> None:
    table = Table(SCHEMA, [chunk_of([("F", str(i), "", "", "p") for i in range(90)])])
    keys = [KEY, KEY, b"another key", b"k" * 200]
    chosen = [rows_of(list(limit_rows(table, "id", 5, key).chunks())) for key in keys]
    assert chosen[0] == chosen[1]
    assert len({tuple(rows) for rows in chosen}) == 3


def test_rows_are_chosen_evenly() -> None:
    rows = [("F", str(age), "", "", f"p{person}") for person in range(2000) for age in range(10)]
    kept = limit_rows(Table(SCHEMA, [chunk_of(rows)]), "id", 3, KEY)
    times = np.bincount(next(iter(kept.chunks()))["age"])
    # 600 each; six standard deviations are 123.
    assert np.all(np.abs(times - 600) < 123)


def test_limits_are_checked(table: Table) -> None:
    with pytest.raises(TableError, match="'age' is not declared as an identifier"):
        limit_rows(table, "age", 1, KEY)
    with pytest.raises(TableError, match="'age' is not declared as an identifier"):
        limit_rows(table, "id", 1, KEY, group="age")
    with pytest.raises(ValueError, match="max_rows"):
        limit_rows(table, "id", 0, KEY)
    with pytest.raises(ValueError, match="key"):
        limit_rows(table, "id", 1, b"")


def test_a_limited_table_reads_the_other_lazily() -> None:
    class Counted:
        reads = 0

        def __iter__(self) -> Any:
            for _ in range(4):
                self.reads += 1
                yield chunk_of(ROWS)

    source = Counted()
    limited = limit_rows(Table(SCHEMA, source), "id", 1, KEY)
    assert source.reads == 4
    next(limited.chunks())
    assert source.reads == 5
    assert len(rows_of(list(limited.chunks()))) == 2


def test_no_chunks_at_all() -> None:
    assert list(limit_rows(Table(SCHEMA, []), "id", 1, KEY).chunks()) == []
