"""Two tables become linked rows and two tables again; each group depends only on its own rows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from scrim.spec.schema import Schema
from scrim.spec.two_level import LevelTable, TwoLevelSchema
from synth.domain import SIZE
from synth.table import Table
from synth.table.chunk import Chunk
from synth.table.drawing import draw_rows
from synth.table.encoding import attribute_codec, codec_of
from synth.table.linking import draw_groups, groups_in, link, number_keys, starts_of_groups, unlink
from tests.synth.linked import coded_columns, two_level_schema

SCHEMA = TwoLevelSchema.model_validate(
    {
        "groups": {
            "key": "id",
            "columns": [
                {"name": "id", "type": "identifier"},
                {"name": "town", "type": "categorical", "values": ["no", "yes"]},
                {"name": "rent", "type": "real", "lower": 0.0, "upper": 10.0, "bins": {"count": 2}},
            ],
        },
        "individuals": {
            "group_key": "home",
            "columns": [
                {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 25}}
            ],
            "order": "age",
        },
        "max_group_size": 3,
    }
)
GROUPS = [("x", "yes", "1.5"), ("y", "no", "7"), ("empty", "yes", "2")]
INDIVIDUALS = [("y", "70"), ("nowhere", "30"), ("x", "20"), ("y", "10"), ("", "40")]


def encoded(table: LevelTable, rows: Sequence[tuple[str, ...]]) -> Chunk:
    schema = SCHEMA.table(table)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.columns)
    return {
        column.name: codec_of(column).encode(pa.array(cells, pa.string()))
        for column, cells in zip(schema.columns, columns, strict=True)
    }


def linked(groups: Sequence[tuple[str, ...]], individuals: Sequence[tuple[str, ...]]) -> Chunk:
    rows = link(encoded("groups", groups), encoded("individuals", individuals), SCHEMA)
    (checked,) = Table(SCHEMA.linked, [rows]).chunks()
    return checked


def households(rows: Chunk) -> dict[bytes, tuple[object, ...]]:
    """The content of each group, independent of the order of groups and individuals."""
    starts = starts_of_groups(rows["id"])
    found: dict[bytes, tuple[object, ...]] = {}
    for start, end in pairwise([*starts, len(rows["id"])]):
        town, rent = set(rows["town"][start:end].tolist()), set(map(str, rows["rent"][start:end]))
        assert len(town) == len(rent) == 1
        found[bytes(rows["id"][start])] = (town, rent, sorted(rows["age"][start:end].tolist()))
    assert len(found) == len(starts), "the rows of a group are not adjacent"
    return found


def test_individuals_get_the_columns_of_their_group_and_nobody_is_lost() -> None:
    found = sorted(households(linked(GROUPS, INDIVIDUALS)).values(), key=str)
    missing = ({3}, {"nan"})
    assert found == sorted(
        [({1}, {"1.5"}, [20]), ({0}, {"7.0"}, [10, 70]), (*missing, [30]), (*missing, [40])],
        key=str,
    )


def test_tables_without_rows_are_linked_too() -> None:
    assert len(linked(GROUPS, [])["id"]) == 0
    assert linked([], INDIVIDUALS)["town"].tolist() == [3] * len(INDIVIDUALS)


KEYS = st.sampled_from(["p", "q", "r", "s", ""])
GROUP_ROWS = st.lists(
    st.tuples(KEYS, st.sampled_from(["no", "yes", ""]), st.sampled_from(["1", "9", ""])),
    max_size=5,
    unique_by=lambda row: row[0],
)
INDIVIDUAL_ROWS = st.lists(st.tuples(KEYS, st.sampled_from(["5", "50", ""])), max_size=8)


@settings(max_examples=50)
@given(GROUP_ROWS, INDIVIDUAL_ROWS, INDIVIDUAL_ROWS, st.booleans(), st.data())
def test_what_one_group_brings_changes_no_other(
    groups: list[tuple[str, str, str]],
    individuals: list[tuple[str, str]],
    more: list[tuple[str, str]],
    described: bool,
    data: st.DataObject,
) -> None:
    newcomers = [("new", age) for _, age in more]
    shuffled = data.draw(st.permutations([*individuals, *newcomers]))
    row = [("new", "yes", "3")] if described else []
    with_new = households(linked([*groups, *row], shuffled))
    without = households(linked(groups, individuals))
    assert without.items() <= with_new.items()
    assert len(with_new) == len(without) + bool(newcomers)


def test_linked_rows_become_two_tables_with_keys_from_one_upwards() -> None:
    rows = linked(GROUPS, INDIVIDUALS)
    tables = unlink(rows, SCHEMA.linked)
    (group_schema, groups), (own_schema, individuals) = tables["groups"], tables["individuals"]
    assert [c.name for c in group_schema.columns] == ["id", "town", "rent"]
    assert [c.name for c in own_schema.columns] == ["home", "age"]
    for schema, chunk in tables.values():
        assert list(Table(schema, [chunk]).chunks()) == [chunk]
    keys = attribute_codec(group_schema.attribute("id")).decode(groups["id"]).to_pylist()
    homes = attribute_codec(own_schema.attribute("home")).decode(individuals["home"]).to_pylist()
    assert keys == [1, 2, 3, 4]
    for name in ("town", "rent"):
        again = groups[name][np.array(homes) - 1]
        np.testing.assert_array_equal(again, rows[name])
    np.testing.assert_array_equal(individuals["age"], rows["age"])


def test_numbers_of_a_group_are_drawn_once_and_individuals_are_sorted() -> None:
    sizes = np.array([3, 1, 2] * 50)
    rng = np.random.default_rng(0)
    codes = {"rent": rng.integers(3, size=150), "age": rng.integers(5, size=sizes.sum())}
    rows = draw_groups(SCHEMA.linked, codes, sizes=sizes, rng=rng)
    (checked,) = Table(SCHEMA.linked, [rows]).chunks()
    starts = starts_of_groups(checked["id"])
    np.testing.assert_array_equal(np.diff(starts, append=sizes.sum()), sizes)
    for name in ("town", "rent"):
        np.testing.assert_array_equal(np.repeat(checked[name][starts], sizes), checked[name])
    assert len(np.unique(checked["rent"][~np.isnan(checked["rent"])])) > 50
    for start, size in zip(starts, sizes, strict=True):
        ages = checked["age"][start : start + size]
        assert ages.tolist() == sorted(ages)
    assert set(np.unique(checked["town"])) == {0, 1, 2, 3}, "not asked about: any value"


def test_rows_are_drawn_as_their_schema_says() -> None:
    def rng() -> np.random.Generator:
        return np.random.default_rng(1)

    linked, sizes = SCHEMA.linked, np.array([2, 1])
    drawn = draw_rows(linked, {SIZE: sizes - 1}, rows=2, rng=rng())
    expected = draw_groups(linked, {}, sizes=sizes, rng=rng())
    assert drawn.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(drawn[name], values)
    flat = Schema.model_validate({"columns": coded_columns({"a": 3, "b": 4})})
    rows = draw_rows(flat, {"a": np.array([2, 0, 1])}, rows=3, rng=rng())
    assert rows["a"].tolist() == [2, 0, 1]
    np.testing.assert_array_equal(rows["b"], rng().integers(4, size=3))
    assert groups_in(rows, flat) is None
    starts = groups_in(drawn, linked)
    assert starts is not None and starts.tolist() == [0, 2]


def test_released_keys_are_nobodys() -> None:
    schema = two_level_schema({"g": 2}, {}, 2).linked
    rows = draw_groups(schema, {}, sizes=np.array([2, 1]), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(rows["id"], number_keys(np.array([0, 0, 1])))
