"""Which columns a release contains, and how those that it only names are measured."""

from typing import Any

import pytest
from pydantic import ValidationError

from scrim.spec.errors import SpecError
from scrim.spec.mechanism import Gaussian
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from scrim.spec.workload import MAX_ITEMS, expand
from service.data.canonical import canonical_sha256
from synth.planning.choice import Resolved, resolve
from synth.planning.columns import complete
from synth.planning.forecast import forecast
from synth.planning.subject import Subject
from synth.queries import compile_blocks
from synth.run import run
from tests.support import (
    ADD_REMOVE,
    coded_schema,
    coded_table,
    public_table,
    random_rows,
    release,
)
from tests.synth.linked import household, two_level_schema

SIZES = {f"c{i}": 2 + i % 3 for i in range(10)}
SCHEMA = coded_schema(SIZES)
LINKED = two_level_schema({"g": 2, "h": 3}, {"i": 2, "j": 3}, 3, order="j").linked
ASKED = [{"type": "marginals", "attributes": [["c1", "c0"]]}]
MIXED = Schema.model_validate(
    {
        "columns": [
            {"name": "pid", "type": "identifier"},
            {"name": "sex", "type": "categorical", "values": ["F", "M"]},
            {"name": "age", "type": "integer", "lower": 0, "upper": 99, "bins": {"width": 10}},
            {"name": "pay", "type": "real", "lower": 0, "upper": 1},
        ]
    }
)
SEX = [{"type": "marginals", "attributes": [["sex"]]}]


def asked(*columns: str, mechanism: dict[str, Any] | None = None, **changes: Any) -> ReleaseSpec:
    """A release that names more columns."""
    outputs = {"columns": list(columns)} if columns else {}
    return release(
        mechanism or {"name": "mwem"}, **{"workload": ASKED, "outputs": outputs} | changes
    )


def resolved(
    spec: ReleaseSpec, schema: Schema = SCHEMA, protection: Protection = ADD_REMOVE
) -> Resolved:
    return resolve(spec, schema, protection, 1e-9)


def names_of(found: Resolved) -> list[tuple[str, ...]]:
    return [block.attributes for block in found.plan.asked]


def test_columns_are_those_of_workload_and_measurements_in_the_order_of_the_schema() -> None:
    found = resolved(asked()).plan
    assert found.schema.names == ["c0", "c1"]
    assert found.left_out == [f"c{i}" for i in range(2, 10)]
    measure = [{"type": "marginals", "attributes": [["c7"], ["c0"]]}]
    found = resolved(asked(mechanism={"name": "mwem", "measure": measure})).plan
    assert found.schema.names == ["c0", "c1", "c7"]
    assert resolved(release({"name": "gem"})).plan.left_out == []


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.random
def test_random_choices_do_not_depend_on_the_released_columns(k: int) -> None:
    spec = asked(workload=[{"type": "marginals", "k": k, "count": 2, "seed": 3}])
    wanted = expand(spec.workload, SCHEMA)
    found = resolved(spec).plan
    assert found.asked == wanted
    assert 2 <= len(found.schema.names) < 10
    table = coded_table(SCHEMA, random_rows(SIZES, 40))
    done = run(spec, table, protection=ADD_REMOVE, delta=1e-9)
    assert done.answers is not None and done.rows is not None
    assert list(dict.fromkeys(done.answers.items)) == [
        block.name for block in compile_blocks(wanted, SCHEMA).blocks
    ]
    assert list(done.rows) == found.schema.names


@pytest.mark.parametrize(
    "item",
    [
        {"type": "ranges", "k": 2, "count": 9, "seed": 1},
        {"type": "prefixes", "count": 9, "seed": 1, "categorical": 0},
        {"type": "prefixes", "count": 9, "seed": 1, "numeric": 1},
        {"type": "binary_tree", "k": 1, "levels": 2},
        {"type": "ranges", "queries": [{"sex": "F", "pay": [0, 0.5]}]},
    ],
)
def test_queries_are_the_same_among_fewer_columns(item: dict[str, Any]) -> None:
    found = resolved(release({"name": "private_gsd"}, workload=[item]), MIXED).plan
    some, every = (compile_blocks(found.asked, schema) for schema in (found.schema, MIXED))
    for block, same in zip(some.blocks, every.blocks, strict=True):
        assert list(block.labels(found.schema)) == list(same.labels(MIXED))


def test_named_columns_are_asked_about_once() -> None:
    found = resolved(asked("c5", "c0", "c3"))
    assert names_of(found) == [("c0", "c1"), ("c5",), ("c3",)]
    assert found.plan.schema.names == ["c0", "c1", "c3", "c5"]
    (rounds,) = [found.plan.spending]
    assert [block.attributes for block in rounds.opened] == [("c5",), ("c3",)]  # type: ignore[union-attr]
    assert complete(found.release, SCHEMA) == found.release
    items = forecast(found, Subject("rows", SCHEMA, ADD_REMOVE)).items
    assert [item.queries for item in items] == [6, 4 + 2]


def test_named_columns_are_measured_beside_what_is_named_to_be_measured() -> None:
    mechanism = {
        "name": "gaussian",
        "measure": ASKED,
        "weights": [3.0],
    }
    found = resolved(asked("c5", mechanism=mechanism))
    assert [block.attributes for block in found.plan.measured] == [("c0", "c1"), ("c5",)]
    assert isinstance(found.release.mechanism, Gaussian)
    assert found.release.mechanism.weights == [3.0, 1.0]


def test_named_columns_of_groups_and_individuals_are_counted_at_their_level() -> None:
    workload = [{"type": "hierarchical", "attributes": [["g", "i"]]}]
    spec = release({"name": "h_mwem"}, workload=workload, outputs={"columns": ["j", "h"]})
    found = resolved(spec, LINKED, household(3))
    assert [str(getattr(block, "level", "")) for block in found.plan.asked] == [
        "group",
        "individual",
        "group",
        "individual",
    ]
    assert names_of(found)[2:] == [("h",), ("j",)]
    assert found.plan.left_out == []
    alone = resolved(release({"name": "h_mwem"}, workload=workload), LINKED, household(3)).plan
    assert alone.schema.is_linked and alone.schema.key == "id"
    assert alone.schema.names == ["g", "i"] and alone.left_out == ["h", "j"]
    # Individuals cannot be sorted by a column that is not released.
    assert alone.schema.model_dump()["order"] is None


def test_a_release_has_at_least_one_column() -> None:
    spec = release({"name": "h_mwem"}, workload=[{"type": "group_sizes"}])
    with pytest.raises(SpecError, match="no columns; ask about one"):
        resolved(spec, LINKED, household(3))


def test_numbers_without_bins_need_them_only_if_they_are_released() -> None:
    plain = release({"name": "mwem"}, workload=SEX)
    assert resolved(plain, MIXED).plan.left_out == ["age", "pay"]
    named = {"workload": SEX, "outputs": {"columns": ["pay"]}}
    binned = resolved(release({"name": "mwem"}, **named), MIXED)
    assert [item.type for item in binned.release.workload] == ["marginals", "marginals"]
    assert binned.plan.binning is not None and binned.plan.binning.columns == ["pay"]
    found = resolved(release({"name": "private_gsd"}, **named), MIXED)
    assert found.plan.schema.names == ["sex", "pay"]
    assert [item.type for item in found.release.workload] == ["marginals", "binary_tree"]
    assert found.plan.binning is None


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(SpecError, match=r"outputs\.columns names 'agee', but .* it has sex, age"):
        resolved(release({"name": "mwem"}, workload=SEX, outputs={"columns": ["agee"]}), MIXED)
    with pytest.raises(SpecError, match="'pid', which is an identifier"):
        resolved(release({"name": "mwem"}, workload=SEX, outputs={"columns": ["pid"]}), MIXED)
    with pytest.raises(ValidationError, match="the same column twice"):
        asked("c3", "c3")
    full = [{"type": "marginals", "attributes": [["c0"]]}] * MAX_ITEMS
    with pytest.raises(SpecError, match=r"outputs\.columns adds an item"):
        resolved(asked("c3", workload=full))


def test_a_warning_names_the_columns_that_are_left_out() -> None:
    (warning,) = forecast(resolved(asked()), Subject("rows", SCHEMA, ADD_REMOVE)).warnings
    assert warning.type == "/warnings/unasked-columns"
    assert warning.detail.startswith("Columns c2, c3, c4, c5, c6, c7, c8, c9 are not released")
    assert "outputs.columns" in warning.detail
    many = coded_schema(dict.fromkeys((f"c{i}" for i in range(13)), 2))
    (warning,) = forecast(resolved(asked(), many), Subject("rows", many, ADD_REMOVE)).warnings
    assert "c11 and 1 more are not" in warning.detail


def test_a_warning_names_the_marginals_that_are_too_large() -> None:
    wide = coded_schema({"a": 300, "b": 300, "c": 300, "d": 2})
    spec = asked(mechanism={"name": "gaussian"}, workload=[{"type": "marginals", "k": 3}])
    found = forecast(resolved(spec, wide), Subject("rows", wide, ADD_REMOVE)).warnings
    (warning,) = [each for each in found if each.type == "/warnings/tables-too-large"]
    assert (
        "more than 20,000,000 cells are left out: (a, b, c); declare wider bins" in warning.detail
    )


def test_a_request_without_named_columns_is_stored_as_before() -> None:
    """Reservations hold a hash of the request, also those of earlier versions."""
    assert "columns" not in asked().model_dump(mode="json")["outputs"]
    assert canonical_sha256(asked()) != canonical_sha256(asked("c3"))


@pytest.mark.random
def test_columns_that_were_decided_before_are_kept() -> None:
    """Those of a release that an earlier version queued: all of them."""
    table = coded_table(SCHEMA, random_rows(SIZES, 20))
    done = run(asked(), table, protection=ADD_REMOVE, delta=1e-9, columns=SCHEMA.names)
    assert done.model.schema == SCHEMA
    assert done.rows is not None and list(done.rows) == SCHEMA.names


@pytest.mark.random
def test_public_rows_are_used_only_for_the_released_columns() -> None:
    spec = asked("c2", mechanism={"name": "pmw_pub"})
    table, public = coded_table(SCHEMA, random_rows(SIZES, 20)), public_table(SCHEMA)
    done = run(spec, table, protection=ADD_REMOVE, delta=1e-9, public=public)
    assert done.model.schema.names == ["c0", "c1", "c2"]
    assert done.rows is not None and set(done.rows) == {"c0", "c1", "c2"}
