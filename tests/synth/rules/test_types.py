"""Rules over every type of column, for private rows and for released ones."""

from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.released import ReleasedModel
from synth.models.support import Support
from synth.rules.reading import following_rules
from synth.table import Chunk, Table
from synth.table.encoding import attribute_codec
from tests.synth.rules.problems import random_chunk

MONTHS = {"type": "date", "resolution": "month", "bins": {"count": 5}}
THIN = {"A1": 0.0, "A2": 0.0, "B1": 1.0}
COLUMNS: list[dict[str, Any]] = [
    {"name": "born", "lower": "1950-01-01", "upper": "2020-12-31", **MONTHS},
    {"name": "seen", "lower": "2000-01-01", "upper": "2022-12-31", **MONTHS},
    {
        "name": "level",
        "type": "ordinal",
        "values": ["none", "school", "degree"],
        "other": "unknown",
    },
    {
        "name": "smokes",
        "type": "boolean",
        "true": ["yes", "1"],
        "false": ["no"],
        "missing": {"": "blank", "?": "refused"},
    },
    {"name": "cause", "type": "code", "values": [*THIN], "levels": [1], "reference": THIN},
    {
        "name": "price",
        "type": "real",
        "lower": 0.0,
        "upper": 9.0,
        "decimals": 1,
        "bins": {"count": 4},
        "missing": {"-1": "free", "": "blank"},
    },
]
RULES: list[dict[str, Any]] = [
    {"compare": ["born", "<=", "seen"]},
    {"when": {"born": {"min": "2010-01-01"}}, "then": {"level": ["none"], "smokes": [False]}},
    {"never": {"level": {"min": "school"}, "cause": ["A1", "A2"]}},
    {
        "when": {"smokes": {"missing": True}},
        "then": {"price": {"min": 0.3, "max": 2.5, "missing": True}},
    },
]


def with_rules(*rules: dict[str, Any]) -> Schema:
    return Schema.model_validate({"columns": COLUMNS, "rules": list(rules)}, strict=False)


def is_broken(row: dict[str, Any]) -> bool:
    born, seen, price = row["born"], row["seen"], row["price"]
    return (
        (None not in (born, seen) and born > seen)
        or (born is not None and born >= date(2010, 1, 1) and row["level"] != "none")
        or (born is not None and born >= date(2010, 1, 1) and row["smokes"] is not False)
        or (row["level"] in ("school", "degree") and row["cause"] in ("A1", "A2"))
        or (row["smokes"] is None and price is not None and not 0.3 <= price <= 2.5)
    )


def declared_rows(chunk: Chunk, schema: Schema) -> list[dict[str, Any]]:
    columns = {
        c.name: attribute_codec(c).decode(chunk[c.name]).to_pylist() for c in schema.attributes
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_rows_of_every_type_follow_rules() -> None:
    schema = with_rules(*RULES)
    chunk = random_chunk(schema, 2000)
    assert any(map(is_broken, declared_rows(chunk, schema)))
    mapped = next(following_rules(Table(schema, [chunk])).chunks())
    for old, new in zip(declared_rows(chunk, schema), declared_rows(mapped, schema), strict=True):
        assert not is_broken(new)
        if not is_broken(old):
            assert new == old
    model = Support.of(Table(schema.model_copy(update={"rules": []}), [chunk]))
    assert model.domain == Domain.of(schema)
    drawn = ReleasedModel(schema, 2000, model).sample(3000, seed=1)
    assert not any(map(is_broken, declared_rows(drawn, schema)))


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"never": {"born": {"max": "in May"}}}, "dates in ISO 8601"),
        ({"never": {"level": ["college"]}}, "no such value"),
        ({"never": {"smokes": ["perhaps"]}}, "not one of its values"),
        ({"never": {"cause": ["A1"]}}, "list all codes of the group"),
        ({"compare": ["born", "<=", "price"]}, "cannot be compared"),
    ],
)
def test_conditions_that_do_not_fit_a_type_are_refused(rule: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        with_rules(rule)
