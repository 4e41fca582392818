"""A query as a box holds for the same codes as the query itself."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from scrim.spec.schema import Schema
from scrim.spec.workload import Workload
from synth.domain import Domain
from synth.models.product import ProductMixture
from synth.models.support import Support
from synth.queries import QuerySet, compile_workload
from synth.queries.boxes import as_conditions, box_of
from synth.queries.conjunction_products import BinRows, ConjunctionProducts

SCHEMA = Schema.model_validate(
    {
        "columns": [
            {"name": "kind", "type": "categorical", "values": ["x", "y", "z"]},
            {
                "name": "age",
                "type": "integer",
                "lower": 0,
                "upper": 7,
                "bins": {"width": 1},
                "nullable": True,
            },
            {"name": "group", "type": "categorical", "values": ["p", "q"], "nullable": True},
        ]
    }
)
WORKLOADS: dict[str, Any] = {
    "marginals": [{"type": "marginals", "k": 2}],
    "ranges": [{"type": "ranges", "k": 2, "count": 40, "seed": 1}],
    "binary_tree": [{"type": "binary_tree", "k": 2, "levels": 2}],
    "prefixes": [{"type": "prefixes", "count": 40, "seed": 1, "categorical": 1, "numeric": 1}],
}


def compiled(name: str) -> QuerySet:
    return compile_workload(TypeAdapter(Workload).validate_python(WORKLOADS[name]), SCHEMA)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_row_is_in_the_box_of_exactly_the_queries_that_hold_for_it(name: str) -> None:
    queries, domain = compiled(name), Domain.of(SCHEMA)
    boxes = [box_of(queries, query, SCHEMA) for query in range(queries.size)]
    for record in product(*(range(size) for size in domain.sizes)):
        codes = dict(zip(domain.names, record, strict=True))
        support = Support.of_rows(domain, {n: np.array([c]) for n, c in codes.items()})
        inside = [all(codes[n] in wanted for n, wanted in box.items()) for box in boxes]
        assert support.answer(queries).values.round(9).tolist() == [float(i) for i in inside]


@pytest.mark.parametrize("name", WORKLOADS)
def test_mixtures_answer_boxes_as_they_answer_the_queries(name: str) -> None:
    queries, domain = compiled(name), Domain.of(SCHEMA)
    blocks = [torch.rand(5, size).softmax(1) for size in domain.sizes]
    mixture = ProductMixture(domain, torch.cat(blocks, dim=1))
    columns = SCHEMA.attributes
    conditions = as_conditions([box_of(queries, q, SCHEMA) for q in range(queries.size)], columns)
    answers = ConjunctionProducts(conditions).answers(
        BinRows(conditions, columns).probabilities(mixture)
    )
    np.testing.assert_allclose(answers, mixture.answer(queries).values, atol=1e-6)
