"""What answers are based on, from the names of what was measured alone."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from scrim.spec.schema import Schema
from scrim.spec.workload import Workload
from synth.basis import MeasuredQueries
from synth.queries import MarginalPart, QueryBlock, Single, compile_workload
from tests.synth.linked import two_level_schema

SCHEMA = Schema.model_validate(
    {
        "columns": [
            *(
                {"name": name, "type": "categorical", "values": ["x", "y"], "other": "y"}
                for name in "abcd"
            ),
            {"name": "n", "type": "integer", "lower": 0, "upper": 7, "bins": {"width": 1}},
            {"name": "pay", "type": "real", "lower": 0, "upper": 1},
        ]
    }
)
LINKED = two_level_schema({"g": 2, "h": 3}, {"i": 2, "j": 3}, 3).linked
TREE = {"type": "binary_tree", "levels": 3}
RANGES = {
    "type": "ranges",
    "queries": [{"a": "x", "b": "y"}, {"a": "x"}, {"c": "x", "d": "y"}, {"a": "x", "n": [0, 2]}],
}


def blocks_of(*items: dict[str, Any], schema: Schema = SCHEMA) -> Sequence[QueryBlock]:
    asked = TypeAdapter(Workload).validate_python(items)
    return compile_workload(asked, schema).blocks


def marginals(*names: str) -> dict[str, Any]:
    return {"type": "marginals", "attributes": [list(each) for each in names]}


def basis_of(known: MeasuredQueries, item: dict[str, Any], schema: Schema = SCHEMA) -> list[str]:
    """The bases of the queries of one block, each once, in order."""
    (block,) = blocks_of(item, schema=schema)
    return list(dict.fromkeys(known.bases(block, schema)))


@pytest.mark.parametrize(
    ("names", "basis"),
    [
        ("ab", "measured"),
        ("a", "measured"),
        ("c", "measured"),
        ("ac", "model"),
        ("abc", "model"),
        ("ad", "independent"),
        ("abd", "independent"),
        ("d", "model"),
        ("dn", "independent"),
    ],
)
def test_marginals_beside_measured_ones(names: str, basis: str) -> None:
    known = MeasuredQueries.of(blocks_of(marginals("ab", "bc")))
    assert basis_of(known, marginals(names)) == [basis]


def test_columns_that_a_chain_connects_are_not_independent() -> None:
    known = MeasuredQueries.of(blocks_of(marginals("ab", "cd", "bc")))
    assert basis_of(known, marginals("ad")) == ["model"]
    assert known.connected == (("a", "b", "c", "d"),)


def test_a_part_gives_the_sums_of_its_columns() -> None:
    parts = [MarginalPart(tuple(names), (3,) * len(names)) for names in ("a", "b", "ab")]
    assert basis_of(MeasuredQueries.of(parts), marginals("ab")) == ["measured"]


def test_nothing_measured_leaves_everything_to_the_model() -> None:
    known = MeasuredQueries.of([], public_columns=["a", "b"])
    assert basis_of(known, marginals("ab")) == ["model"]
    assert basis_of(known, marginals("cd")) == ["model"]


def test_public_rows_relate_their_columns() -> None:
    known = MeasuredQueries.of(blocks_of(marginals("a")), public_columns=["a", "b", "c"])
    assert basis_of(known, marginals("bc")) == ["model"]
    assert basis_of(known, marginals("cd")) == ["independent"]


def test_single_queries_are_measured_alone() -> None:
    (pair,) = blocks_of(marginals("ab"))
    known = MeasuredQueries.of([Single(pair, 2)])
    assert known.bases(pair, SCHEMA).count("measured") == 1
    assert known.bases(pair, SCHEMA)[2] == "measured"
    assert basis_of(known, marginals("a")) == ["model"]
    assert basis_of(known, marginals("ac")) == ["independent"]


def test_conjunctions_are_judged_one_by_one() -> None:
    known = MeasuredQueries.of(blocks_of(marginals("ab")))
    (ranges,) = blocks_of(RANGES)
    assert known.bases(ranges, SCHEMA) == ["measured", "measured", "independent", "independent"]
    known = MeasuredQueries.of([Single(ranges, 2), Single(ranges, 3)])
    assert known.bases(ranges, SCHEMA) == ["independent", "model", "measured", "measured"]
    # Single queries relate only their own columns.
    assert basis_of(known, marginals("cd")) == ["model"]
    assert basis_of(known, marginals("ac")) == ["independent"]


def test_intervals_are_sums_of_bins_only_where_bins_end() -> None:
    known = MeasuredQueries.of(blocks_of(marginals("an")))
    whole, cut = (
        {"type": "ranges", "queries": [{"pay" if is_cut else "n": bounds}]}
        for is_cut, bounds in ((False, [0, 2]), (True, [0, 0.5]))
    )
    assert basis_of(known, whole) == ["measured"]
    assert basis_of(known, cut) == ["model"]


def test_trees_and_tables() -> None:
    tree = TREE | {"attributes": [["a", "n"]]}
    known = MeasuredQueries.of(blocks_of(tree))
    assert basis_of(known, tree) == ["measured"]
    assert basis_of(known, TREE | {"attributes": [["n"]], "levels": 2}) == ["measured"]
    assert basis_of(known, TREE | {"attributes": [["n"]], "levels": 4}) == ["model"]
    assert basis_of(known, marginals("a")) == ["measured"]
    assert basis_of(known, marginals("n")) == ["model"]
    # Eight bins of width one are the intervals of three levels.
    known = MeasuredQueries.of(blocks_of({"type": "marginals", "attributes": [["a", "n"]]}))
    assert basis_of(known, tree) == ["measured"]
    assert basis_of(known, TREE | {"attributes": [["pay"]]}) == ["model"]


def test_halfspaces_are_measured_only_themselves() -> None:
    (planes,) = blocks_of({"type": "halfspaces", "count": 2, "seed": 0})
    known = MeasuredQueries.of([Single(planes, 1)])
    assert known.bases(planes, SCHEMA) == ["model", "measured"]


def test_counts_of_groups_add_up_over_columns_of_groups_only() -> None:
    def table(level: str, *names: str) -> dict[str, Any]:
        return {"type": "hierarchical", "attributes": [list(names)], "levels": [level]}

    def found(known: MeasuredQueries, level: str, *names: str) -> str:
        (basis,) = basis_of(known, table(level, *names), LINKED)
        return basis

    known = MeasuredQueries.of(blocks_of(table("group", "g", "i"), schema=LINKED))
    assert found(known, "group", "g", "i") == "measured"
    assert found(known, "group", "i") == "measured"
    assert found(known, "group", "g") == "model"
    assert found(known, "individual", "g", "i") == "model"
    assert found(known, "group", "g", "j") == "independent"
    known = MeasuredQueries.of(blocks_of(table("individual", "g", "i", "j"), schema=LINKED))
    assert found(known, "individual", "g") == "measured"
    assert found(known, "individual", "i", "j") == "measured"
    assert found(known, "group", "g") == "model"
    sizes = {"type": "group_sizes"}
    assert basis_of(known, sizes, LINKED) == ["model"]
    known = MeasuredQueries.of(blocks_of(sizes, schema=LINKED))
    assert basis_of(known, sizes, LINKED) == ["measured"]


def test_it_survives_being_stored() -> None:
    (pair, ranges) = blocks_of(marginals("ab"), RANGES)
    known = MeasuredQueries.of([pair, Single(ranges, 2)], public_columns=["d", "n"])
    assert MeasuredQueries.from_plain(json.loads(json.dumps(known.to_plain()))) == known
