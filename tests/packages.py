"""The two packages, built as `make dist` builds them."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "scrim", ROOT)
"""The folders of the two pyproject.toml: of `scrim`, and of `scrim-server`."""


def build(source: Path, folder: Path, *, target: str = "wheel") -> Path:
    """Build the wheel or the sdist of a source folder into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build"]
    done = subprocess.run(
        [*command, "--target", target, "--directory", str(folder)],
        cwd=source,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The last word on standard error is the path of the built file.
    return folder / Path(done.stderr.split()[-1]).name


def build_wheels(folder: Path) -> list[Path]:
    """Build the wheels of `scrim` and of `scrim-server`."""
    return [build(source, folder) for source in SOURCES]


def files_in(wheel: Path) -> dict[str, bytes]:
    """Read what a wheel installs, without its metadata."""
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name: archive.read(name) for name in names}


def metadata_of(wheel: Path, name: str) -> str:
    """Read one file of a wheel's metadata."""
    with ZipFile(wheel) as archive:
        (path,) = (each for each in archive.namelist() if each.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()
