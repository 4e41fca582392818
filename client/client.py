"""The client: `Client(url, key)`, with `keys`, `populations`, `datasets` and `releases`."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from client.errors import DatasetRejected, UnusableInput, WaitedTooLong
from client.records import Dataset, Key, LedgerEntry, Mechanism, Population, Verification
from client.releases import Releases
from client.transport import Transport, idempotent

POLL_SECONDS = 0.3
PIECE_BYTES = 2**20
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
}


class Client:
    """A connection to the service with one API key; what it may do is up to the key's scopes."""

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to `url`, such as `https://scrim.example.org`, when the first call is made."""
        self._transport = Transport(url, key, transport=transport, sleep=sleep)
        self.keys = Keys(self._transport)
        self.populations = Populations(self._transport)
        self.datasets = Datasets(self._transport, sleep)
        self.releases = Releases(self._transport, sleep)

    def mechanisms(self) -> list[Mechanism]:
        """Every mechanism that a release may name."""
        return list(self._transport.pages("/v1/mechanisms", Mechanism))

    def close(self) -> None:
        """Give the connections back."""
        self._transport.close()

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the connections back."""
        self.close()


class Keys:
    """API keys; for admins."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, name: str, scopes: Sequence[str], *, expires_at: datetime | None = None
    ) -> Key:
        """A new key, with its secret, which is shown this once."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if expires_at is not None:
            body["expires_at"] = expires_at.isoformat()
        # Not repeatable: every call makes another key.
        answer = self._transport.send("POST", "/v1/keys", json=body, repeatable=False)
        return Key.model_validate(answer.json())

    def list(self) -> Iterator[Key]:
        """All keys, the newest first, without their secrets."""
        return self._transport.pages("/v1/keys", Key)

    def revoke(self, key_id: str) -> None:
        """End a key."""
        self._transport.send("DELETE", f"/v1/keys/{key_id}")


class Populations:
    """Protected people and their budgets."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        cap: Mapping[str, float],
        delta: float,
        unit: str = "row",
        relation: str = "add_remove",
        max_rows_per_person: int | None = None,
        max_household_size: int | None = None,
        idempotency_key: str | None = None,
    ) -> Population:
        """A population with a cap such as `{"epsilon": 10.0}`; some units need a bound on rows."""
        body: dict[str, Any] = {
            "name": name,
            "unit": unit,
            "relation": relation,
            "cap": dict(cap),
            "delta": delta,
            "max_rows_per_person": max_rows_per_person,
            "max_household_size": max_household_size,
        }
        answer = self._transport.send(
            "POST",
            "/v1/populations",
            json={field: value for field, value in body.items() if value is not None},
            headers=idempotent(idempotency_key),
        )
        return Population.model_validate(answer.json())

    def list(self) -> Iterator[Population]:
        """All populations, the newest first."""
        return self._transport.pages("/v1/populations", Population)

    def get(self, population_id: str) -> Population:
        """One population with its budget."""
        return self._transport.get(f"/v1/populations/{population_id}", Population)

    def ledger(self, population_id: str) -> Iterator[LedgerEntry]:
        """Every change of the balance, the oldest first."""
        return self._transport.pages(f"/v1/populations/{population_id}/ledger", LedgerEntry)

    def verify_ledger(self, population_id: str) -> Verification:
        """Have the service recompute the chain."""
        path = f"/v1/populations/{population_id}/ledger/verify"
        return self._transport.get(path, Verification)


class Datasets:
    """Declared tables; for curators."""

    def __init__(self, transport: Transport, sleep: Callable[[float], None]) -> None:
        self._transport = transport
        self._sleep = sleep

    def create(
        self,
        name: str,
        schema: Mapping[str, Any],
        *,
        population_id: str,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declare a private dataset; its content is uploaded afterwards."""
        body = {"name": name, "population_id": population_id, "visibility": "private"}
        return self._create({**body, "schema": dict(schema)}, idempotency_key)

    def create_public(
        self,
        name: str,
        schema: Mapping[str, Any],
        *,
        provenance: str,
        idempotency_key: str | None = None,
    ) -> Dataset:
        """Declare a public dataset, and state that none of the protected people is in it."""
        body = {"name": name, "visibility": "public", "provenance": provenance}
        stated = {"disjoint_from_population": True, "schema": dict(schema)}
        return self._create({**body, **stated}, idempotency_key)

    def upload(
        self,
        dataset_id: str,
        path: Path,
        *,
        table: str | None = None,
        progress: Callable[[int], None] = lambda sent: None,
    ) -> Dataset:
        """Stream a CSV, gzip or Parquet file; `progress` is told how many bytes were sent.

        Two-level data is two files: `table` says whether it is the `groups` or the `individuals`.
        """
        headers = {
            "Content-Type": media_type_of(path),
            "Content-Length": str(path.stat().st_size),
        }
        answer = self._transport.send(
            "PUT",
            f"/v1/datasets/{dataset_id}/content",
            params={"table": table} if table else {},
            headers=headers,
            content=_Pieces(path, progress),
            # Once it has arrived, the dataset takes no other.
            repeatable=False,
        )
        return Dataset.model_validate(answer.json())

    def wait(self, dataset_id: str, *, timeout: float = 3600) -> Dataset:
        """Wait until the rows are read; DatasetRejected if they do not fit the schema."""
        deadline = time.monotonic() + timeout
        while (dataset := self.get(dataset_id)).state == "ingesting":
            if time.monotonic() > deadline:
                raise WaitedTooLong(f"dataset {dataset_id} is still being read; it goes on")
            self._sleep(POLL_SECONDS)
        if dataset.state != "ready":
            raise DatasetRejected(dataset)
        return dataset

    def list(self) -> Iterator[Dataset]:
        """All datasets, the newest first."""
        return self._transport.pages("/v1/datasets", Dataset)

    def get(self, dataset_id: str) -> Dataset:
        """One dataset."""
        return self._transport.get(f"/v1/datasets/{dataset_id}", Dataset)

    def delete(self, dataset_id: str) -> None:
        """Destroy the rows; what was spent on them stays spent."""
        self._transport.send("DELETE", f"/v1/datasets/{dataset_id}")

    def _create(self, body: dict[str, Any], idempotency_key: str | None) -> Dataset:
        headers = idempotent(idempotency_key)
        answer = self._transport.send("POST", "/v1/datasets", json=body, headers=headers)
        return Dataset.model_validate(answer.json())


def media_type_of(path: Path) -> str:
    """The format of a file, by the end of its name."""
    try:
        return MEDIA_TYPES[path.suffix.lower()]
    except KeyError:
        known = ", ".join(MEDIA_TYPES)
        raise UnusableInput(f"{path.name}: the name must end in one of {known}") from None


class _Pieces:
    """A file piece by piece, from its start each time it is sent."""

    def __init__(self, path: Path, progress: Callable[[int], None]) -> None:
        self._path = path
        self._progress = progress

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        with self._path.open("rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece
                sent += len(piece)
                self._progress(sent)
