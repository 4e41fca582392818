"""The embedded Valkey keeps its data and its password."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from service.embedded import ValkeyServer

from .support import needs_linux


@contextmanager
def client_of(server: ValkeyServer) -> Iterator[redis.Redis]:
    """A client that is closed at the end."""
    client = redis.Redis.from_url(server.url)
    try:
        yield client
    finally:
        client.close()


class TestValkey:
    """ValkeyServer on its own."""

    def test_keeps_its_data_over_a_kill_and_a_restart(self, data_dir: Path) -> None:
        with ValkeyServer(data_dir) as server:
            with client_of(server) as client:
                client.set("kept", "yes")
            server.kill()
            server.start()
            server.stop()
            server.start()
            with client_of(server) as client:
                assert client.get("kept") == b"yes"

    def test_writes_nothing_when_thrown_away(self, valkey_server: ValkeyServer) -> None:
        with client_of(valkey_server) as client:
            client.set("kept", "no")
        assert list((valkey_server.folder / "data").iterdir()) == []

    @pytest.mark.parametrize("password", ["wrong", None])
    def test_refuses_a_wrong_or_missing_password(
        self, valkey_server: ValkeyServer, password: str | None
    ) -> None:
        once = Retry(NoBackoff(), 0)
        client = redis.Redis("127.0.0.1", valkey_server.port, password=password, retry=once)
        with pytest.raises(redis.AuthenticationError):
            client.ping()
        client.close()

    @needs_linux
    def test_keeps_its_password_out_of_the_process_list(self, valkey_server: ValkeyServer) -> None:
        password = (valkey_server.folder / "password").read_text().strip()
        assert password not in " ".join(psutil.Process(valkey_server.pid).cmdline())
