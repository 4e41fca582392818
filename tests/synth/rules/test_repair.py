"""Changing rows that break a rule: as few columns as possible, and always to rows that follow it."""

from typing import Any

import numpy as np
import pytest

from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.models.histogram import Histogram
from synth.models.released import ReleasedModel
from synth.rules.drawing import change_to_valid, draw_valid
from synth.rules.exchange import exchange
from synth.rules.exclusion import excluding
from synth.rules.groups import GroupRules, draw_valid_groups
from synth.rules.reading import following_rules
from synth.rules.row_rules import RowRules
from synth.table import Table
from synth.table.encoding import attribute_codec
from synth.table.linking import starts_of_groups
from tests.synth.rules.problems import (
    LINKED,
    SCHEMA,
    breaks_by_hand,
    random_chunk,
    random_groups,
)


def declared_rows(chunk: Any) -> list[dict[str, Any]]:
    """Rows of declared values."""
    columns = {
        column.name: attribute_codec(column).decode(chunk[column.name]).to_pylist()
        for column in SCHEMA.attributes
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_rows_that_break_a_rule_are_those_found_by_hand() -> None:
    chunk = random_chunk(SCHEMA, 2000)
    by_hand = [breaks_by_hand(row) for row in declared_rows(chunk)]
    assert RowRules(SCHEMA).broken(chunk).tolist() == by_hand


def test_mapped_rows_follow_the_rules_and_change_as_little_as_possible() -> None:
    table = Table(SCHEMA, [random_chunk(SCHEMA, 2000)])
    before = declared_rows(next(table.chunks()))
    after = declared_rows(next(following_rules(table).chunks()))
    for old, new in zip(before, after, strict=True):
        assert not breaks_by_hand(new)
        changed = [name for name in old if old[name] != new[name]]
        about_people = bool(changed) and breaks_by_hand({**old, "start": None})
        about_times = bool(changed) and breaks_by_hand({**old, "rel": None})
        assert len(changed) == about_people + about_times


def test_the_map_takes_what_rules_name_first() -> None:
    rows = [
        {"sex": 0, "rel": 0, "age": 30, "start": 1, "end": 0},  # a female husband
        {"sex": 1, "rel": 3, "age": 40, "start": 7, "end": 2},  # ends before it starts
        {"sex": 1, "rel": 0, "age": 5, "start": 1, "end": 8},  # a husband of five years
    ]
    chunk = {
        name: np.array([row[name] for row in rows], RowRules(SCHEMA).codecs[name].dtype)
        for name in SCHEMA.names
    }
    mapped = declared_rows(next(following_rules(Table(SCHEMA, [chunk])).chunks()))
    assert mapped[0]["sex"] == "M"
    assert (mapped[1]["start"], mapped[1]["end"]) == (7, 7)
    assert mapped[2]["rel"] == "Child"


@pytest.mark.statistical
def test_numbers_are_drawn_in_their_bins_given_the_rules() -> None:
    """Start and end in one bin: of all ordered pairs, each is equally likely, and the bin keeps its share."""
    bins = {"type": "integer", "lower": 0, "upper": 7, "bins": {"width": 4}, "nullable": False}
    schema = Schema.model_validate(
        {
            "columns": [{"name": "start", **bins}, {"name": "end", **bins}],
            "rules": [{"compare": ["start", "<=", "end"]}],
        },
        strict=False,
    )
    model = excluding(Histogram.uniform(Domain.of(schema)), schema)
    drawn = ReleasedModel(schema, 100, model).sample(60_000, seed=1)
    start, end = drawn["start"].astype(int), drawn["end"].astype(int)
    assert (start <= end).all()
    # Of the four cells of bins, the one of late starts and early ends is impossible.
    both_early = (start < 4) & (end < 4)
    assert abs(both_early.mean() - 1 / 3) < 0.01
    pairs = np.bincount(4 * start[both_early] + end[both_early], minlength=16).reshape(4, 4)
    shares = pairs[np.triu_indices(4)] / both_early.sum()
    assert np.abs(shares - 0.1).max() < 0.015


def test_exchanges_keep_the_values_of_every_column() -> None:
    chunk = random_chunk(SCHEMA, 2000)
    rules = RowRules(SCHEMA)
    columns = {name: chunk[name].copy() for name in SCHEMA.names}
    exchange(columns, lambda some, rows: rules.broken(some), np.random.default_rng(0))
    assert rules.broken(columns).sum() < 0.5 * rules.broken(chunk).sum()
    for name, values in columns.items():
        assert sorted(values.tolist()) == sorted(chunk[name].tolist())


def test_groups_that_no_draw_gives_are_still_made() -> None:
    """A model of groups that all break the rules about groups in the same way."""
    rules = GroupRules(LINKED)
    everything = random_groups(400)

    def without_heads(groups: int) -> Any:
        chunk = random_groups(groups, seed=groups)
        return {**chunk, "rel": np.ones_like(chunk["rel"])}

    rng = np.random.default_rng(0)
    drawn = draw_valid_groups(LINKED, without_heads, groups=300, rng=rng)
    assert not rules.broken(drawn).any()
    assert len(starts_of_groups(drawn[LINKED.key])) == 300

    def of_toddlers(groups: int) -> Any:
        chunk = without_heads(groups)
        return {
            **chunk,
            "age": np.zeros_like(chunk["age"]),
            "oldest": np.zeros_like(chunk["oldest"]),
        }

    drawn = draw_valid_groups(LINKED, of_toddlers, groups=50, rng=rng)
    assert not rules.broken(drawn).any()
    assert rules.broken(everything).any()


def test_strict_comparisons_leave_room_where_an_interval_ends_between_two_numbers() -> None:
    schema = Schema.model_validate(
        {
            "columns": [
                {
                    "name": n,
                    "type": "real",
                    "lower": 0,
                    "upper": 2,
                    "decimals": 0,
                    "nullable": False,
                    "bins": {"width": 1},
                }
                for n in ("a", "b")
            ],
            "rules": [{"compare": ["a", "<", "b"]}, {"never": {"b": {"min": 2.0}}}],
        },
        strict=False,
    )
    numbers = np.array([0.0, 0.4, 1.0, 1.9, 2.0])
    chunk = {"a": np.repeat(numbers, 5), "b": np.tile(numbers, 5)}
    (mapped,) = following_rules(Table(schema, [chunk])).chunks()
    assert (mapped["a"] == 0).all() and (mapped["b"] == 1).all()
    rng = np.random.default_rng(0)
    for drawn in (
        change_to_valid(schema, chunk, rng),
        draw_valid(schema, {name: rng.integers(0, 2, 200) for name in "ab"}, rng),
    ):
        assert not RowRules(schema).broken(drawn).any()
