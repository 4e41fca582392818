"""Settings of the service and its workers: built once, from SCRIM_* variables, and passed in."""

import base64
import binascii
import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PostgresDsn, SecretStr, UrlConstraints, field_validator
from pydantic_core import Url
from pydantic_settings import BaseSettings, SettingsConfigDict

KEY_BYTES = 32
"""AES-256 and Ed25519 both take 256 bits."""
MEBIBYTE = 2**20


def usable_cores() -> int:
    """The cores available to this process; a container may have fewer than its machine."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def decode_key(secret: SecretStr) -> bytes:
    """The bytes of a base64 key of 256 bits, in the common or the URL-safe alphabet."""
    text = secret.get_secret_value().strip().translate(str.maketrans("-_", "+/"))
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError("a key is 32 random bytes in base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError("a key is 32 random bytes in base64")
    return key


def _refuse_guessable(secret: SecretStr) -> SecretStr:
    # Random bytes have fewer than 16 distinct values with probability 1e-20; placeholders nearly always do.
    key = decode_key(secret)
    if len(set(key)) < KEY_BYTES // 2 or key == bytes(range(KEY_BYTES)):
        raise ValueError("this is a placeholder; make a key with `openssl rand -base64 32`")
    return secret


Key = Annotated[SecretStr, AfterValidator(_refuse_guessable)]
BrokerUrl = Annotated[Url, UrlConstraints(allowed_schemes=["redis", "rediss"])]
StorageUrl = Annotated[Url, UrlConstraints(allowed_schemes=["file", "s3"])]


class Settings(BaseSettings):
    """The operator's settings. Addresses and secrets have no defaults."""

    model_config = SettingsConfigDict(
        env_prefix="SCRIM_",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    database_url: PostgresDsn
    """The database, as the application's role."""
    migration_url: PostgresDsn | None = None
    """The database, as the role that may change its structure; only `migrate` needs it."""
    broker_url: BrokerUrl
    """Redis or Valkey: carries messages to the workers and counts requests."""
    storage_url: StorageUrl
    """`file:///folder`, or `s3://bucket/prefix` with the usual AWS_* variables."""
    data_dir: Path
    """A folder of this process, outside the database's backups, for encrypted temporary files."""
    anchor_url: StorageUrl | None = None
    """`file:///path` or `s3://bucket/key` of the ledger's anchor; `anchor.json` in `data_dir`."""

    master_key: Key
    """Wraps the data keys of all datasets: 32 random bytes in base64."""
    signing_key: Key
    """Ed25519 seed that signs certificates and the ledger's anchor: 32 random bytes in base64."""

    max_upload_bytes: Annotated[int, Field(gt=0)] = 2048 * MEBIBYTE
    """Largest upload of one table."""
    max_unpacked_bytes: Annotated[int, Field(gt=0)] = 65536 * MEBIBYTE
    """Largest unpacked size of a table uploaded as gzip or Parquet."""
    max_body_bytes: Annotated[int, Field(gt=0)] = 8 * MEBIBYTE
    """Largest body that declares a dataset; a schema may list many categories."""
    body_seconds: Annotated[float, Field(gt=0)] = 60.0
    """How long a caller may take to send a body, except an uploaded table."""
    header_seconds: Annotated[float, Field(gt=0)] = 10.0
    """How long a caller may take to send the headers of a request."""
    max_connections: Annotated[int, Field(ge=1)] = 1000
    """Open connections from callers to one service process."""
    max_requests_per_key: Annotated[int, Field(ge=1)] = 100
    """Requests with one API key that one service process answers at the same time."""
    processes: Annotated[int, Field(ge=1)] = Field(default_factory=usable_cores)
    """Service processes on this machine; by default one per core."""
    rate_limit: Annotated[float, Field(gt=0)] = 50.0
    """Requests per second that one API key may make in the long run."""
    rate_burst: Annotated[int, Field(ge=1)] = 200
    """Requests that one API key may make at once."""
    max_queued_releases: Annotated[int, Field(ge=1)] = 1000
    """Releases that one API key may have in the queue, dry runs not counted."""
    max_queued_dry_runs: Annotated[int, Field(ge=1)] = 20
    """Dry runs that one API key may have in the queue."""
    device: str = "auto"
    """Where workers fit models: `cpu`, `cuda`, `cuda:1`, `mps`; `auto` uses a GPU if there is one."""
    worker_memory_bytes: Annotated[int, Field(gt=0)] | None = None
    """Memory that one job may use in addition to an idle worker's. A release that is expected to
    need more is refused; a job that does need more fails without affecting others. Unset: no limit."""
    job_threads: Annotated[int, Field(ge=1)] | None = None
    """Most threads of one job; small models use one. Unset: the cores divided by the processes of the
    worker (`--concurrency`)."""
    job_seconds: Annotated[float, Field(ge=0)] = 86400.0
    """Time limit of one attempt at a release; 0: no limit."""
    retry_seconds: Annotated[float, Field(gt=0)] = 5.0
    """Pause before a job is retried after an outage; doubled each time, up to 5 minutes."""
    lease_seconds: Annotated[float, Field(gt=0, le=86400)] = 60.0
    """How long a worker may be silent before another one takes over."""
    model_timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    """How long to wait for a worker's answer from a released model."""
    event_poll_seconds: Annotated[float, Field(gt=0)] = 0.5
    """Interval between two reads of the events of followed releases."""
    max_event_streams_per_key: Annotated[int, Field(ge=1)] = 20
    """Event streams that one API key may have open, in each process of the service."""
    max_event_streams: Annotated[int, Field(ge=1)] = 500
    """Event streams that all keys together may have open, in each process of the service."""
    database_connections: Annotated[int, Field(ge=1)] = 10
    """Database connections of one process; the service answers this many requests at once."""

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, folder: Path) -> Path:
        return folder.expanduser().absolute()

    @field_validator("anchor_url")
    @classmethod
    def _names_a_document(cls, url: Url | None) -> Url | None:
        if url is not None and not (url.path or "").strip("/"):
            raise ValueError(
                "give the address of the anchor object, such as s3://bucket/anchor.json"
            )
        return url

    @property
    def anchor_location(self) -> str:
        """Where the ledger's anchor is kept."""
        return str(self.anchor_url or (self.data_dir / "anchor.json").as_uri())

    @property
    def master_key_bytes(self) -> bytes:
        """The master key itself."""
        return decode_key(self.master_key)

    @property
    def signing_key_bytes(self) -> bytes:
        """The Ed25519 seed itself."""
        return decode_key(self.signing_key)
