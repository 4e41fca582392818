"""A release whose mechanism was left to choose runs and resumes as if it had been named."""

import pytest

from scrim.spec.release import AskedRelease
from synth.journal import MemoryJournal
from synth.planning.choice import resolve
from synth.run import run
from tests.support import ADD_REMOVE, coded_schema, coded_table, random_rows

SIZES = {"a": 2, "b": 3, "c": 2}
SCHEMA = coded_schema(SIZES)
TABLE = coded_table(SCHEMA, random_rows(SIZES, 300))
NEIGHBOUR = coded_table(SCHEMA, random_rows(SIZES, 300)[1:])


@pytest.mark.random
def test_what_is_chosen_runs_and_is_resumed_without_the_rows() -> None:
    asked = AskedRelease.model_validate(
        {
            "workload": [{"type": "marginals", "k": 2}],
            "mechanism": {"name": "auto"},
            "budget": {"rho": 5.0},
            "outputs": {"rows": 50},
        }
    )
    journal = MemoryJournal()
    done = [
        run(
            resolve(asked, SCHEMA, ADD_REMOVE, 1e-9, public=SCHEMA).release,
            table,
            journal,
            protection=ADD_REMOVE,
            delta=1e-9,
            public=TABLE,
        )
        for table in (TABLE, NEIGHBOUR)
    ]
    assert done[0].certificate["release"]["mechanism"]["name"] == "generative_network_pub"
    assert done[0].certificate == done[1].certificate
    assert done[0].model.to_bytes() == done[1].model.to_bytes()
