"""The catalogue describes every mechanism."""

import json
from typing import get_args

import pytest

from scrim.spec.catalogue import CatalogueEntry, catalogue
from scrim.spec.mechanism import MECHANISMS, Auto
from scrim.spec.workload import WorkloadItem

ITEMS = get_args(get_args(WorkloadItem)[0])
ENTRIES = catalogue()


def test_every_mechanism_once_and_in_order() -> None:
    names = [mechanism.catalogue_name() for mechanism in MECHANISMS]
    assert [entry.name for entry in ENTRIES] == ["auto", *names]


def test_auto_takes_whatever_some_mechanism_takes() -> None:
    known = {kind for mechanism in MECHANISMS for kind in mechanism.query_types}
    assert set(Auto.query_types) == known
    assert len(Auto.query_types) == len(known)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_says_everything(entry: CatalogueEntry) -> None:
    assert entry.summary.endswith(".") and "\n" not in entry.summary
    assert entry.name == "auto" or "20" in entry.paper
    assert entry.query_types
    assert entry.needs_public_data == entry.name.endswith("_pub")
    assert entry.takes_public_data == (entry.needs_public_data or entry.name == "auto")
    assert entry.one_level != entry.name.startswith("h_")
    assert entry.two_level == (entry.name in ("auto", "gaussian") or not entry.one_level)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_parameters_are_a_json_schema(entry: CatalogueEntry) -> None:
    parameters = entry.parameters
    assert parameters["properties"]["name"]["const"] == entry.name
    assert parameters["required"] == ["name"]
    assert parameters["additionalProperties"] is False
    assert "measure" in parameters["properties"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_query_types_are_types_of_workload_items(entry: CatalogueEntry) -> None:
    known = {get_args(item.model_fields["type"].annotation)[0] for item in ITEMS}
    assert known.issuperset(entry.query_types)


def test_only_noisy_answers_release_no_rows() -> None:
    assert [entry.name for entry in ENTRIES if not entry.releases_rows] == ["gaussian"]


def test_entries_survive_json() -> None:
    for entry in ENTRIES:
        assert CatalogueEntry.model_validate(json.loads(entry.model_dump_json())) == entry
