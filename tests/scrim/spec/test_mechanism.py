"""Parameters of mechanisms."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scrim.spec.mechanism import (
    MECHANISMS,
    Mechanism,
    MechanismSpec,
)

adapter: TypeAdapter[Any] = TypeAdapter(Mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_name_alone_is_enough(mechanism: type[MechanismSpec]) -> None:
    parsed = adapter.validate_python({"name": mechanism.catalogue_name()})
    assert type(parsed) is mechanism


@pytest.mark.parametrize("name", ["MWEM", "", None, 1, ["mwem"]])
def test_an_unknown_name_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(ValidationError, match='"name" must be one of: gaussian, mwem, pep'):
        adapter.validate_python({"name": name})


@pytest.mark.parametrize(
    "fields",
    [
        {"rounds": 0},
        {"rounds": "5"},
        {"rounds": True},
        {"rounds": 5.0},
        {"rounds": 10_001},
        {"per_round": 0},
        {"selection_share": 0},
        {"selection_share": 1},
        {"selection_share": float("nan")},
        {"select": "cells"},
        {"measure": []},
        {"consistent": True},
    ],
)
def test_refused_parameters(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        adapter.validate_python({"name": "mwem", **fields})


def test_there_is_no_average_over_rounds_whose_number_nobody_knows() -> None:
    with pytest.raises(ValidationError, match="set average to false, or schedule to equal"):
        adapter.validate_python({"name": "gem", "schedule": "annealed", "average": True})
