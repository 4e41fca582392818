"""Noisy answers to every query class: unbiased, with true standard errors, and kept with the model."""

from typing import Any

import numpy as np
import pytest

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.models.released import ReleasedModel
from synth.planning.plan import plan
from synth.queries import QuerySet, compile_workload
from synth.run import FinishedRelease, run
from synth.table import Table, store_numbers
from tests.support import ADD_REMOVE, REPLACE_ONE
from tests.synth.linked import household, linked_table, random_households, two_level_schema

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {
                "name": "sex",
                "type": "categorical",
                "values": ["F", "M"],
                "other": "M",
                "nullable": False,
            },
            {"name": "pay", "type": "real", "lower": 0, "upper": 8, "nullable": False},
            {
                "name": "age",
                "type": "integer",
                "lower": 0,
                "upper": 7,
                "nullable": False,
                "bins": {"width": 2},
            },
        ]
    }
)
ROWS = 2000
EVERY_CLASS: list[dict[str, Any]] = [
    {"type": "marginals", "attributes": [["sex"], ["sex", "age"]]},
    {"type": "ranges", "k": 2, "count": 6, "seed": 1},
    {"type": "binary_tree", "attributes": [["pay"]], "levels": 3},
    {"type": "prefixes", "count": 5, "seed": 2, "categorical": 1, "numeric": 1},
    {"type": "halfspaces", "count": 5, "seed": 3},
]
LINKED = two_level_schema({"town": 3}, {"sex": 2, "age": 3}, 3).linked
EVERY_LEVEL: list[dict[str, Any]] = [
    {"type": "hierarchical", "k": 2},
    {"type": "hierarchical", "attributes": [["sex"]], "levels": ["individual"]},
    {"type": "group_sizes"},
]


def table() -> Table:
    rng = np.random.default_rng(4)
    columns = {
        "sex": rng.integers(0, 2, ROWS).astype(np.float64),
        "pay": rng.uniform(0, 8, ROWS),
        "age": rng.integers(0, 8, ROWS).astype(np.float64),
    }
    return Table(SCHEMA, [store_numbers(SCHEMA, columns)])


def households() -> Table:
    return linked_table(LINKED, random_households(LINKED, 500, seed=1))


def spec(workload: list[dict[str, Any]], **changes: Any) -> ReleaseSpec:
    body = {"workload": workload, "mechanism": {"name": "gaussian"}, "budget": {"rho": 0.5}}
    return ReleaseSpec.model_validate(body | changes)


def finished(asked: ReleaseSpec, private: Table, protection: Protection) -> FinishedRelease:
    return run(asked, private, protection=protection, delta=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("workload", "private", "protection"),
    [
        (EVERY_CLASS, table(), ADD_REMOVE),
        (EVERY_CLASS, table(), REPLACE_ONE),
        (EVERY_LEVEL, households(), household(3)),
        (EVERY_LEVEL, households(), household(3, "replace_one")),
    ],
    ids=["rows", "rows, public size", "households", "households, public number"],
)
def test_standard_errors_are_true(
    workload: list[dict[str, Any]], private: Table, protection: Protection
) -> None:
    """Over many releases, errors divided by their standard error have variance one."""
    asked = spec(workload)
    queries = compile_workload(asked.workload, private.schema)
    true_counts = queries.count(private)
    of_all = 500 if private.schema.is_linked else ROWS
    of_block = [
        of_all if block.whole is None else int(QuerySet([block.whole]).count(private)[0])
        for block in queries.blocks
    ]
    fractions = true_counts / np.repeat(of_block, np.diff(queries.offsets))
    scores = []
    for _ in range(100):
        answers = finished(asked, private, protection).answers
        assert answers is not None and answers.standard_errors is not None
        assert answers.count_standard_errors is not None
        # Public numbers have no error, and are exact.
        noisy = answers.standard_errors > 0
        np.testing.assert_allclose(answers.fractions[~noisy], fractions[~noisy])
        error = answers.fractions - fractions
        scores.append(
            np.divide(error, answers.standard_errors, out=np.zeros_like(error), where=noisy)
        )
    variance, mean = np.square(scores).mean(axis=0), np.mean(scores, axis=0)
    is_noisy = variance > 0
    # At most 100 values in each of four cases, 100 runs: some variance is beyond its limits with chance 2e-8
    # (chi-square with 100 degrees of freedom), some mean, six standard deviations off, with chance 8e-7.
    assert is_noisy.sum() > 20
    assert np.all((variance[is_noisy] > 0.35) & (variance[is_noisy] < 2.2))
    assert np.all(np.abs(mean) < 6 / np.sqrt(100))
    # Ten standard deviations, if a third of the values were independent.
    assert abs(variance[is_noisy].mean() - 1) < 0.3


@pytest.mark.random
def test_the_model_answers_what_was_measured_and_refuses_the_rest() -> None:
    asked = spec(EVERY_CLASS)
    done = finished(asked, table(), ADD_REMOVE)
    kept = ReleasedModel.from_bytes(done.model.to_bytes())
    assert done.answers is not None
    np.testing.assert_array_equal(kept.answer(asked.workload).counts, done.answers.counts)
    assert set(done.answers.bases) == set(kept.answer(asked.workload).bases) == {"measured"}
    other = spec([{"type": "prefixes", "count": 5, "seed": 9, "categorical": 1, "numeric": 1}])
    with pytest.raises(SpecError, match="was not measured"):
        kept.answer(other.workload)


def test_the_preview_knows_the_standard_errors() -> None:
    planned = plan(spec(EVERY_CLASS), SCHEMA, REPLACE_ONE, 10**12)
    assert set(planned.asked.others) <= set(planned.measured)


def test_what_is_named_to_be_measured_must_cover_what_is_asked() -> None:
    named = {"name": "gaussian", "measure": EVERY_CLASS[:1]}
    with pytest.raises(SpecError, match=r"add it to mechanism\.measure"):
        plan(spec(EVERY_CLASS, mechanism=named), SCHEMA, REPLACE_ONE, 10**12)
    of_people = {"name": "gaussian", "measure": EVERY_LEVEL}
    with pytest.raises(SpecError, match=r"add it to mechanism\.measure"):
        plan(spec(EVERY_LEVEL, mechanism=of_people), LINKED, household(3), 10**12)


@pytest.mark.parametrize(
    ("item", "schema", "protection"),
    [(EVERY_CLASS[0], LINKED, household(3)), (EVERY_LEVEL[2], SCHEMA, ADD_REMOVE)],
    ids=["marginals of groups", "sizes of one table"],
)
def test_each_kind_of_table_has_its_own_items(
    item: dict[str, Any], schema: Schema, protection: Protection
) -> None:
    with pytest.raises(SpecError, match=r"; about .*, ask for"):
        plan(spec([item]), schema, protection, 10**12)
