"""No released row breaks a rule, whatever the mechanism."""

from typing import Any

import pytest

from scrim.spec.mechanism import MECHANISMS
from scrim.spec.release import ReleaseSpec
from synth.journal import MemoryJournal
from synth.models.released import ReleasedModel
from synth.run import FinishedRelease, run
from synth.table import Table
from synth.table.linking import starts_of_groups
from tests.support import ADD_REMOVE, release
from tests.synth.linked import household
from tests.synth.mechanism_settings import CONTRACT
from tests.synth.rules.problems import (
    LINKED,
    SCHEMA,
    broken,
    random_chunk,
    random_groups,
    random_table,
)

pytestmark = pytest.mark.random

ROWS, GROUPS = 100_000, 20_000
NAMES = [m.catalogue_name() for m in MECHANISMS if m.releases_rows]
FIRST = {each["name"]: each for each in reversed(CONTRACT.values())}
"""Small settings of each mechanism."""


def ask(name: str, **outputs: Any) -> ReleaseSpec:
    spec = next(m for m in MECHANISMS if m.catalogue_name() == name)
    workload = (
        [{"type": "marginals", "k": 2}]
        if spec.one_level
        else [{"type": "hierarchical", "k": 2}, {"type": "group_sizes"}]
    )
    return release(FIRST[name], workload=workload, outputs={"rows": 30, **outputs})


def carried_out(spec: ReleaseSpec) -> FinishedRelease:
    if spec.mechanism.works_on(linked=False):
        public = random_table(200, seed=5) if spec.mechanism.needs_public_data else None
        return run(
            spec, random_table(), MemoryJournal(), protection=ADD_REMOVE, delta=1e-9, public=public
        )
    table = Table(LINKED, [random_groups()])
    return run(spec, table, MemoryJournal(), protection=household(3), delta=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_no_row_breaks_a_rule(name: str) -> None:
    done = carried_out(ask(name))
    schema = done.model.schema
    assert done.rows is not None
    assert not broken(done.rows, schema).any()
    stored = ReleasedModel.from_bytes(done.model.to_bytes())
    number = GROUPS if schema.is_linked else ROWS
    drawn = stored.sample(number, seed=3)
    assert not broken(drawn, schema).any()
    keys = drawn[LINKED.key] if schema.is_linked else drawn["age"]
    assert number == (len(starts_of_groups(keys)) if schema.is_linked else len(keys))


def test_no_row_of_a_further_set_breaks_a_rule() -> None:
    done = carried_out(ask("aim", draws=2))
    assert done.redraws is not None
    assert not any(broken(rows, SCHEMA).any() for rows in done.redraws)


def test_the_checks_of_this_suite_find_rows_that_break_rules() -> None:
    assert broken(random_chunk(SCHEMA, 300), SCHEMA).mean() > 0.3
    assert broken(random_groups(), LINKED).mean() > 0.3


@pytest.mark.parametrize("name", ["gaussian", "generative_network", "mwem", "aim", "private_gsd"])
def test_answers_about_forbidden_cells_are_zero_without_an_error(name: str) -> None:
    spec = next(m for m in MECHANISMS if m.catalogue_name() == name)
    asked = ask(name) if spec.releases_rows else release(FIRST[name])
    answers = carried_out(asked).answers
    assert answers is not None
    found = {
        query: (value, count)
        for query, value, count in zip(
            answers.queries, answers.fractions, answers.counts, strict=True
        )
    }
    errors = answers.standard_errors
    assert errors is not None
    for query in ("sex=F & rel=Husband", "rel=Wife & age=[0, 10)"):
        assert found[query] == (0.0, 0.0)
        assert errors[answers.queries.index(query)] == 0.0
    # A start of 5 may end at 5, so this cell is possible.
    assert errors[answers.queries.index("start=[5, 9] & end=[2, 6)")] > 0.0
