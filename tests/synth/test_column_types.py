"""Every type of column, and several kinds of missing values, in every mechanism and every query class."""

import io
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
import torch

from scrim.spec.columns import LabelledColumn
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.two_level import LevelTable, TwoLevelSchema
from synth.genetic.evaluation import evaluate
from synth.genetic.measured_features import measured_features_of
from synth.missing import kinds_in
from synth.models.relaxed import RelaxedRows
from synth.queries import QuerySet, compile_workload
from synth.run import run
from synth.table import Table, draw_values, read_csv, write_csv
from synth.table.encoding import attribute_codec
from synth.table.linking import link, unlink
from tests.scrim.column_types import DECLARED, SCHEMA
from tests.support import ADD_REMOVE, release
from tests.synth.mechanism_settings import CONTRACT

pytestmark = pytest.mark.random

ROWS = 60
DELTA = 1e-9
TYPES = ("pain", "smoker", "cost", "born", "diagnosis")
SMALL = Schema.model_validate({"columns": [c for c in DECLARED if c["name"] in TYPES]})
EVERYTHING: list[dict[str, Any]] = [
    {"type": "marginals", "k": 1},
    {"type": "binary_tree", "attributes": [["ward", "born"], ["pain"], ["cost"]], "levels": 2},
    {"type": "ranges", "k": 2, "count": 20, "seed": 1},
    {
        "type": "ranges",
        "queries": [
            {"pain": ["none", "mild"], "diagnosis": "B*"},
            {"pain": "other", "ward": "refused"},
            {"born": ["1970-01-01", "2000-01-01"], "smoker": "yes"},
            {"born": "unknown", "cost": "refused"},
            {"admitted": None},
        ],
    },
    {"type": "prefixes", "count": 20, "seed": 2},
    {"type": "halfspaces", "count": 10, "seed": 3},
]
BINNED = ["gaussian", "pep", "gem", "rap", "aim"]
SPECS = {each["name"]: each for each in reversed(CONTRACT.values())}


def table(schema: Schema, rows: int = ROWS) -> Table:
    rng = np.random.default_rng(7)
    codes = {column.name: rng.integers(column.size, size=rows) for column in schema.attributes}
    return Table(schema, [draw_values(schema, codes, rng)])


def queries() -> QuerySet:
    return compile_workload(release({"name": "gaussian"}, workload=EVERYTHING).workload, SCHEMA)


def labels_of(compiled: QuerySet) -> list[str]:
    return [label for block in compiled.blocks for label in block.labels(SCHEMA)]


def check(schema: Schema, mechanism: dict[str, Any], workload: list[dict[str, Any]]) -> None:
    spec = release(mechanism, workload=workload)
    done = run(spec, table(schema), protection=ADD_REMOVE, delta=DELTA)
    assert done.answers is not None and np.isfinite(done.answers.fractions).all()
    if done.rows is None:
        return
    for column in schema.attributes:
        codec, stored = attribute_codec(column), done.rows[column.name]
        assert codec.decode(stored).null_count == (codec.kinds(stored) > 0).sum()
        codes = codec.discretise(stored)
        assert codes.min() >= 0 and codes.max() < column.size


@pytest.mark.parametrize("name", BINNED)
def test_mechanisms_on_bins(name: str) -> None:
    check(SMALL, SPECS[name], [{"type": "marginals", "k": 2}])


@pytest.mark.parametrize("name", ["private_gsd", "rap_plus_plus"])
def test_mechanisms_on_numbers(name: str) -> None:
    check(SCHEMA, SPECS[name], EVERYTHING)


def test_labels_name_values_dates_and_kinds() -> None:
    assert {
        "pain=mild",
        "pain=other",
        "pain=refused",
        "born=[1970-01-01, 2000-01-01)",
        "admitted=missing",
        "smoker=yes",
        "diagnosis=B*",
        "pain from none to mild & diagnosis=B*",
        "pain is other & ward is refused",
        "born in [1970-01-01, 2000-01-01) & smoker=yes",
        "born is unknown & cost is refused",
        "admitted is missing",
    } <= set(labels_of(queries()))


def test_every_form_of_rows_has_the_counts_of_the_table() -> None:
    """Candidates of a search, and relaxed rows with hard edges, agree with the true counts."""
    counted, compiled = table(SCHEMA), queries()
    counts = compiled.count(counted)
    [(_, numbers)] = counted.read(codes=(), numbers=SCHEMA.names)
    values = np.stack([numbers[name].astype(np.float64) for name in SCHEMA.names], axis=1)
    features = measured_features_of(compiled, counts / ROWS, np.full(compiled.size, 0.1), SCHEMA)
    evaluation = evaluate(values, features, SCHEMA)
    np.testing.assert_array_equal(evaluation.query_counts.counts / ROWS, features.values)
    soft = QuerySet(
        [block for block in compiled.blocks if block.is_whole or "half" not in block.name]
    )
    found = soft.on_relaxed(relaxed(numbers)).numpy()
    np.testing.assert_allclose(found, soft.count(counted) / ROWS, atol=1e-9)


def relaxed(numbers: Mapping[str, np.ndarray]) -> RelaxedRows:
    """Rows that put all on their own categories and kinds, at their own places."""
    categories, places, missing = {}, {}, {}
    for column in SCHEMA.attributes:
        mine = numbers[column.name]
        if isinstance(column, LabelledColumn):
            categories[column.name] = torch.eye(column.size).double()[mine.astype(int)]
            continue
        kinds, line = kinds_in(mine, len(column.apart)), column.line
        present = np.where(kinds > 0, line.lower, mine)
        places[column.name] = torch.from_numpy((present - line.lower) / (line.upper - line.lower))
        one_hot = torch.eye(len(column.apart) + 1).double()[kinds]
        missing[column.name] = one_hot[:, 1:]
    return RelaxedRows(SCHEMA, categories, places, missing, 1e9)


def test_answers_of_rows_are_those_of_their_values() -> None:
    """Counts of every query class, from the codes and from values written out."""
    schema, rows = SCHEMA, 300
    counted = table(schema, rows)
    compiled = queries()
    counts = dict(zip(labels_of(compiled), compiled.count(counted), strict=True))
    [chunk] = list(counted.chunks())
    cells = {
        c.name: attribute_codec(c).writer(str)(chunk[c.name]).to_pylist() for c in schema.attributes
    }
    pain, diagnosis = cells["pain"], cells["diagnosis"]
    assert counts["pain from none to mild & diagnosis=B*"] == sum(
        p in ("none", "mild") and d in ("B20", "B21") for p, d in zip(pain, diagnosis, strict=True)
    )
    assert counts["pain is other & ward is refused"] == sum(
        p == "other" and w == "NA" for p, w in zip(pain, cells["ward"], strict=True)
    )
    assert counts["born in [1970-01-01, 2000-01-01) & smoker=yes"] == sum(
        "1970-01-01" <= b < "2000-01-01" and s == "yes"
        for b, s in zip(cells["born"], cells["smoker"], strict=True)
    )
    assert counts["born is unknown & cost is refused"] == sum(
        b == "?" and c == "-9" for b, c in zip(cells["born"], cells["cost"], strict=True)
    )
    assert counts["admitted is missing"] == cells["admitted"].count("")


class TestGroups:
    """Two tables with columns of all families."""

    SCHEMA = TwoLevelSchema.model_validate(
        {
            "groups": {
                "key": "hid",
                "columns": [
                    {"name": "built", "type": "date", "lower": "1900", "upper": "2019"}
                    | {"resolution": "year", "bins": {"width": 60}, "missing": {"NA": "unknown"}},
                    {"name": "owned", "type": "boolean", "true": ["yes"], "false": ["no"]},
                ],
            },
            "individuals": {
                "group_key": "hid",
                "columns": [column for column in DECLARED if column["name"] == "pain"],
                "order": "pain",
            },
            "max_group_size": 2,
        }
    )
    GROUPS = "hid,built,owned\na,1950,yes\nb,NA,no\nc,2020-05-01,\n"
    PEOPLE = "hid,pain\na,none\na,mild\nb,NA\nc,awful\nd,severe\n"

    def linked(self) -> Table:
        tables = {"groups": self.GROUPS, "individuals": self.PEOPLE}
        groups, people = (
            next(iter(read_csv(io.BytesIO(text.encode()), self.SCHEMA.table(name))))
            for name, text in ((cast(LevelTable, name), text) for name, text in tables.items())
        )
        return Table(self.SCHEMA.linked, [link(groups, people, self.SCHEMA)])

    def test_groups_of_all_types_are_released(self) -> None:
        workload = [{"type": "hierarchical", "k": 2}, {"type": "group_sizes"}]
        spec = release(SPECS["h_mwem"], workload=workload)
        unit = Protection(unit="household", max_household_size=2)
        done = run(spec, self.linked(), protection=unit, delta=DELTA)
        assert done.rows is not None and done.answers is not None
        tables = unlink(done.rows, self.SCHEMA.linked)
        files = {}
        for name, (schema, chunk) in tables.items():
            file = io.BytesIO()
            write_csv(file, schema, [chunk])
            files[name] = file.getvalue().decode().splitlines()
        assert files["groups"][0] == "hid,built,owned" and files["individuals"][0] == "hid,pain"
        built = {line.split(",")[1] for line in files["groups"][1:]}
        assert built <= {"", "NA", *(f"{year}-01-01" for year in range(1900, 2020))}
        pain = {line.split(",")[1] for line in files["individuals"][1:]}
        assert pain <= {"none", "mild", "severe", "other", "", "NA", "?"}

    def test_persons_without_a_group_have_missing_columns(self) -> None:
        [rows] = list(self.linked().chunks())
        schema = self.SCHEMA.linked
        cells = {
            name: attribute_codec(schema.attribute(name)).writer(str)(rows[name]).to_pylist()
            for name in schema.names
        }
        found = sorted(zip(cells["pain"], cells["built"], cells["owned"], strict=True))
        assert found == [
            ("NA", "NA", "no"),
            ("mild", "1950-01-01", "yes"),
            ("none", "1950-01-01", "yes"),
            ("other", "2019-01-01", ""),
            ("severe", "", ""),
        ]
