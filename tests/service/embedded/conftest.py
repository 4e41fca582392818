"""A data folder for the tests of one file."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def used_dir() -> Iterator[Path]:
    """A data folder that several tests share, as initialising a new one takes long."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        yield Path(folder)
