"""A local S3 server for tests."""

import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from service.embedded import find_free_port, wait_until
from tests.patience import PATIENCE


@contextmanager
def running_s3() -> Iterator[str]:
    """Run a server during the block; yields its address."""
    port = find_free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{endpoint}/moto-api/").status_code < 500
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, timeout=PATIENCE, what="the S3 server")
        yield endpoint
    finally:
        process.terminate()
        process.wait()


def s3_settings(endpoint: str) -> dict[str, str]:
    """The environment variables that point programs to the server."""
    return {
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def create_bucket(endpoint: str) -> str:
    """Create a new bucket."""
    bucket = f"bucket-{uuid.uuid4().hex}"
    assert httpx.put(f"{endpoint}/{bucket}").status_code == 200
    return bucket
