"""Models are fitted on the available device, with the same result."""

from typing import Any

import numpy as np
import pytest
import torch

from synth.device import choose_device
from synth.journal import MemoryJournal
from synth.run import FinishedRelease, run
from tests.support import ADD_REMOVE, coded_schema, coded_table, public_table, random_rows, release

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = coded_schema(SIZES)
TABLE = coded_table(SCHEMA, random_rows(SIZES, 500))
SMALL = {"components": 20, "steps": 20}
NETWORK = {"latent": 4, "hidden": [8]}
MECHANISMS: list[dict[str, Any]] = [
    {"name": "relaxed_projection", **SMALL},
    {"name": "generative_network", **SMALL, **NETWORK},
    # One round selects all marginals, so that rounding cannot change which ones are measured.
    {"name": "rap", "rounds": 1, "per_round": 3, **SMALL},
    {"name": "gem_pub", "rounds": 1, "per_round": 3, "pretraining_steps": 5, **SMALL, **NETWORK},
]


def accelerators() -> list[Any]:
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is None:
        skipped = pytest.mark.skip(reason="this machine has no accelerator")
        return [pytest.param("an accelerator", marks=skipped)]
    return [f"{found.type}:{index}" for index in range(torch.accelerator.device_count())]


class Remembered(dict[str, bytes]):
    """A cache in memory."""

    def put(self, key: str, content: bytes) -> None:
        self[key] = content


def fit(mechanism: dict[str, Any], device: str, **options: Any) -> FinishedRelease:
    if mechanism["name"] == "gem_pub":
        options["public"] = public_table(SCHEMA)
    spec = release(mechanism)
    return run(spec, TABLE, protection=ADD_REMOVE, delta=1e-9, device=device, **options)


@pytest.mark.parametrize("device", accelerators())
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism["name"])
def test_an_accelerator_fits_what_the_processor_fits(
    mechanism: dict[str, Any], device: str
) -> None:
    journal, learnt = MemoryJournal(), Remembered()
    first = fit(mechanism, device, journal=journal, cache=learnt)
    # The network trained on public data on one device is used on the other.
    second = fit(
        mechanism, "cpu", journal=MemoryJournal(journal.operations()), cache=Remembered(learnt)
    )
    assert first.answers is not None and second.answers is not None
    np.testing.assert_allclose(first.answers.fractions, second.answers.fractions, atol=1e-3)


def test_auto_takes_an_accelerator_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")


def test_a_named_device_is_taken_at_its_word() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda", 1)
