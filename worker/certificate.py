"""The certificate of a release: a signed record of its request, population, cost and files.

`certificate.json` is {"certificate": {...}, "signature", "public_key", "algorithm": "ed25519"}, both
in base64. The signature covers the canonical form of the certificate (`canonical`).
"""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Engine, text

from service.data.views import day_of
from worker.artifacts import CSV_ESCAPING, Written
from worker.jobs import PublicRows, ReleaseJob

CERTIFICATE_FORMAT = "scrim.certificate/1"

_CERTIFIED_ENTRIES = text("""
    SELECT kind, operation, units AS rho_units, payload ->> 'digest' AS digest FROM ledger.audit
    WHERE account = :population_id AND release_id = :release_id
        AND kind IN ('reserve', 'operation') ORDER BY seq
""")


def ledger_entries(engine: Engine, population_id: UUID, release_id: UUID) -> list[dict[str, Any]]:
    """The ledger's entries about a release so far, with the same `digest` as in the ledger.

    Only reservations and charges: entries about interruptions would reveal how fast the job was.
    Numbers and hashes of entries are left out. A number reveals the activity of other releases.
    A hash covers the time of its entry and the previous hash, which another certificate may contain:
    from the two, the time can be found by trial.
    """
    parameters = {"population_id": population_id, "release_id": release_id}
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(_CERTIFIED_ENTRIES, parameters).mappings()]


def complete(
    content: Mapping[str, Any],
    job: ReleaseJob,
    *,
    entries: list[dict[str, Any]],
    artifacts: Mapping[str, Written],
) -> dict[str, Any]:
    """Complete the release's own record with what only the service knows."""
    return {
        **content,
        "format": CERTIFICATE_FORMAT,
        "release_id": str(job.release_id),
        "dry_run": job.is_dry_run,
        "mechanism_choice": None if job.choice is None else job.choice.model_dump(mode="json"),
        "population": {
            "id": str(job.population_id),
            "name": job.population_name,
            "delta": job.delta,
        },
        "dataset": {
            "id": str(job.dataset_id),
            # A dry run has read no rows of the dataset.
            "content_hash": None if job.chunk_store is None else job.chunk_store.content_hash.hex(),
        },
        "public_dataset": None if job.public is None else _public(job.public),
        "ledger": entries,
        "artifacts": {
            name: {
                "sha256": written.stored.sha256,
                "size": written.stored.size,
                "media_type": written.media_type,
            }
            for name, written in artifacts.items()
        },
        "csv_escaping": CSV_ESCAPING,
        # Only the day: an exact time, with that of the request, would reveal how long the job took.
        "issued_at": day_of(datetime.now(UTC)).isoformat(),
    }


def _public(public: PublicRows) -> dict[str, Any]:
    return {
        "id": str(public.dataset_id),
        "provenance": public.provenance,
        "content_hash": public.chunk_store.content_hash.hex(),
    }


def canonical(certificate: Mapping[str, Any]) -> bytes:
    """The bytes that are signed."""
    return json.dumps(
        certificate, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def sign(certificate: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The content of `certificate.json`."""
    document = {
        "certificate": certificate,
        "signature": base64.b64encode(key.sign(canonical(certificate))).decode(),
        "public_key": base64.b64encode(key.public_key().public_bytes_raw()).decode(),
        "algorithm": "ed25519",
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()
