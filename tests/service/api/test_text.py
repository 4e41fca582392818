"""Texts and numbers that cannot be stored are refused anywhere in a body."""

from typing import Any

import httpx
import pytest

from .support import SCHEMA, Api, release_body


def refused(answer: httpx.Response) -> None:
    assert answer.status_code in {404, 422}, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.fixture(scope="module")
def dataset(api: Api) -> str:
    return api.ready_dataset(api.population())


@pytest.mark.parametrize("text", ["\0", "a\0b"])
@pytest.mark.parametrize("field", ["values", "other", "name"])
def test_nul_in_a_schema(api: Api, field: str, text: str) -> None:
    column = SCHEMA["columns"][0] | {field: [text] if field == "values" else text}
    body = {
        "name": "table",
        "visibility": "public",
        "provenance": "p",
        "disjoint_from_population": True,
        "schema": {"columns": [column]},
    }
    refused(api.all.post("/v1/datasets", json=body))


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset_id": "\0"},
        {"public_dataset_id": "\0", "mechanism": {"name": "pmw_pub"}},
        {"workload": [{"type": "ranges", "queries": [{"sex": "\0"}]}]},
        {"workload": [{"type": "ranges", "queries": [{"\0": "F"}]}]},
        {"workload": [{"type": "marginals", "attributes": [["\0"]]}]},
        {"mechanism": {"name": "\0"}},
    ],
    ids=str,
)
def test_nul_in_a_release(api: Api, dataset: str, changes: dict[str, Any]) -> None:
    body = release_body(dataset, **{"mechanism": {"name": "gaussian"}} | changes)
    refused(api.create(body))
    refused(api.all.post("/v1/releases/preview", json=body))


@pytest.mark.parametrize(
    "content",
    [
        b'{"name": "p", "delta": 1e-9, "cap": {"rho": ' + b"9" * 5000 + b"}}",
        b"[" * 5000,
        b'{"name": "\\ud800", "cap": {"rho": 1}, "delta": 1e-9}',
        b'{"name": "p\\u0000", "cap": {"rho": 1}, "delta": 1e-9}',
    ],
    ids=["huge number", "nested", "half a character", "nul"],
)
def test_bodies_that_no_program_writes(api: Api, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    refused(api.all.post("/v1/populations", content=content, headers=headers))


@pytest.mark.parametrize("path", ["populations", "datasets", "releases", "keys"])
@pytest.mark.parametrize("cursor", ["\0", "IlwwIg==", "OTk5" * 40, "[" * 200])
def test_cursors_that_are_none(api: Api, path: str, cursor: str) -> None:
    refused(api.all.get(f"/v1/{path}", params={"cursor": cursor}))
