"""The servers of the operators' page, and events in its installation between two commands."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
from sqlalchemy import make_url

from scrim.spec.budget import Budget
from service.data.config import Settings
from service.embedded import PostgresServer, ValkeyServer
from service.embedded.binaries import find_postgres
from service.embedded.postgres import DATABASE
from service.upkeep import commands
from tests.e2e.pages import Surroundings
from tests.service.api.support import serving


@contextmanager
def operating(folder: Path) -> Iterator[Surroundings]:
    """A database server without a database, a broker, and a folder for the rest."""
    folder.mkdir()
    with (
        PostgresServer(folder, durable=False) as postgres,
        ValkeyServer(folder, durable=False) as valkey,
    ):
        drop_database(postgres)
        yield surroundings(folder / "srv", postgres, valkey)


def drop_database(postgres: PostgresServer) -> None:
    """Drop the database, which the page creates."""
    server = postgres.dsn.removesuffix(DATABASE) + "postgres"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {DATABASE}")


def surroundings(home: Path, postgres: PostgresServer, valkey: ValkeyServer) -> Surroundings:
    """Replace the page's addresses by those of our servers, and add its populations."""
    owner = make_url(postgres.dsn)
    replacements = {
        "/srv/scrim": str(home),
        "scrim_owner:...@db.example": f"{owner.username}:{owner.password}@{owner.host}:{owner.port}",
        "db.example": f"{owner.host}:{owner.port}",
        "redis://:...@broker.example:6379/0": valkey.url,
    }

    def open_populations() -> None:
        """Open two populations; one stays unchanged until the page changes it."""
        with serving(Settings(), home) as api:
            replacements["POPULATION_ID"] = api.population(name="kept")
            replacements["CHANGED"] = api.population(name="changed")

    def change_one() -> None:
        """Change one population after the backup, so that restoring it loses an entry."""
        commands.set_cap(UUID(replacements["CHANGED"]), Budget(rho=0.5), may_rise=False)

    return Surroundings(
        environment={
            "PATH": f"{find_postgres()}:{os.environ['PATH']}",
            "PGHOST": str(owner.host),
            "PGPORT": str(owner.port),
            "PGUSER": str(owner.username),
            "PGPASSWORD": str(owner.password),
        },
        replacements=replacements,
        interludes={
            "pg_dump": open_populations,
            "pg_restore": change_one,
            "--database-is-newest": (home / "anchor.json").unlink,
        },
    )
