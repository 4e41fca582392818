"""A ledger for tests: a migrated database of its own, seen as the owner and as the application."""

import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection, make_url, text

from service.data.db import enable_app_login, open_engine
from service.data.ledger import repository
from service.data.ledger.chain import verify_chain
from service.data.ledger.records import LedgerOperation
from tests.databases import create_database, on_server

Answer = TypeVar("Answer")

HASH = bytes(range(32))
OTHER_HASH = bytes(32)
LONG_LEASE = 3600.0
CONNECTIONS = 12

# One row per broken invariant; the sums are recomputed from the operations.
_BROKEN = text("""
    WITH prices AS (
        SELECT release_id, sum(price_units) AS spent, count(*) AS operations,
               max(sequence) AS last
        FROM ledger.operation GROUP BY release_id
    ), reservations AS (
        SELECT r.*, coalesce(p.spent, 0) AS priced, p.operations, p.last,
               CASE r.state WHEN 'open' THEN r.amount_units - r.spent_units ELSE 0 END AS held
        FROM ledger.reservation AS r LEFT JOIN prices AS p USING (release_id)
    ), balances AS (
        SELECT account, sum(spent_units) AS spent, sum(held) AS held
        FROM reservations GROUP BY account
    )
    SELECT 'prices do not add up', release_id FROM reservations
        WHERE spent_units <> priced OR spent_units > amount_units
    UNION ALL
    SELECT 'gap in the journal', release_id FROM reservations WHERE last + 1 <> operations
    UNION ALL
    SELECT 'balance differs from reservations', population_id
        FROM ledger.account LEFT JOIN balances ON account = population_id
        WHERE spent_units <> coalesce(spent, 0) OR reserved_units <> coalesce(held, 0)
    UNION ALL
    SELECT 'over the cap', population_id FROM ledger.account
        WHERE spent_units + reserved_units > cap_units OR least(spent_units, reserved_units) < 0
    UNION ALL
    SELECT 'charge and outcome are not together', release_id
        FROM ledger.operation FULL JOIN ledger.outcome USING (release_id, sequence)
        WHERE price_units IS NULL OR "values" IS NULL
""")


def pack(*values: int) -> bytes:
    """Values as the ledger keeps them."""
    return struct.pack(f"<{len(values)}q", *values)


def charge(sequence: int, price: int, *values: int) -> LedgerOperation:
    """A plausible operation."""
    return LedgerOperation(
        sequence, "measure", {"marginal": ["age", "sex"]}, 2.5, price, pack(*values)
    )


def at_once(*actions: Callable[[], Answer]) -> list[Answer | Exception]:
    """Run every action in a thread of its own, all starting together; errors are returned as results."""
    start = Barrier(len(actions))

    def run(action: Callable[[], Answer]) -> Answer | Exception:
        start.wait()
        try:
            return action()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


class Ledger:
    """Every method is one committed transaction of the application's role, unless stated otherwise."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._unchecked: list[UUID] = []
        self.database = create_database(server_url).database
        self.attach()

    def attach(self) -> None:
        """Connect; also after a restart of the server, or with another database."""
        self.owner_url = make_url(self._server_url).set(database=self.database)
        self.owner = open_engine(self.owner_url)
        self.app = open_engine(
            enable_app_login(self.owner_url, password="correct horse"), pool_size=CONNECTIONS
        )

    def detach(self) -> None:
        """Close all connections."""
        self.owner.dispose()
        self.app.dispose()

    def drop(self) -> None:
        """Close all connections and remove the database."""
        self.detach()
        on_server(self._server_url, f"DROP DATABASE {self.database} WITH (FORCE)")

    def back_up(self) -> str:
        """Copy the whole database, page by page; returns the copy's name."""
        self.detach()
        copy = f"backup_{uuid.uuid4().hex}"
        on_server(self._server_url, f"CREATE DATABASE {copy} TEMPLATE {self.database}")
        return copy

    def open_account(self, cap: int) -> UUID:
        population = uuid.uuid4()
        with self.app.begin() as connection:
            repository.open_account(
                connection,
                population,
                unit="person",
                relation="add_remove",
                rows_per_unit=3,
                cap_units=cap,
                delta_units=10**9,
            )
        self._unchecked.append(population)
        return population

    def reserve(self, population: UUID, amount: int, release: UUID | None = None) -> UUID:
        release = release or uuid.uuid4()
        with self.app.begin() as connection:
            repository.reserve(
                connection,
                population,
                release_id=release,
                amount_units=amount,
                dataset_hash=HASH,
                spec_hash=HASH,
            )
        return release

    def claim(self, release: UUID, holder: str = "worker") -> int:
        with self.app.begin() as connection:
            return repository.claim(connection, release, holder=holder, lease_seconds=LONG_LEASE)

    def heartbeat(self, release: UUID, epoch: int) -> bool:
        with self.app.begin() as connection:
            return repository.heartbeat(connection, release, epoch=epoch, lease_seconds=LONG_LEASE)

    def commit(self, release: UUID, epoch: int, operation: LedgerOperation) -> None:
        with self.app.begin() as connection:
            repository.commit_operation(connection, release, epoch=epoch, operation=operation)

    def finish(self, release: UUID, epoch: int) -> int:
        with self.app.begin() as connection:
            return repository.finish(connection, release, epoch=epoch)

    def close_unclaimed(self, release: UUID) -> int:
        with self.app.begin() as connection:
            return repository.close_unclaimed(connection, release)

    def reopen(self, release: UUID) -> int:
        with self.app.begin() as connection:
            return repository.reopen(connection, release)

    def set_cap(self, population: UUID, cap: int) -> None:
        with self.app.begin() as connection:
            repository.set_cap(connection, population, cap_units=cap)

    def balance(self, population: UUID) -> tuple[int, int]:
        """Spent and reserved units."""
        with self.app.connect() as connection:
            account = repository.account(connection, population)
        return account.spent_units, account.reserved_units

    def journal(self, release: UUID) -> Sequence[LedgerOperation]:
        with self.app.connect() as connection:
            return repository.journal(connection, release)

    def expire_lease(self, release: UUID) -> None:
        """Expire a lease, as the owner."""
        with self.owner.begin() as connection:
            connection.execute(
                text(
                    "UPDATE ledger.reservation SET lease_until = now() - interval '1 second'"
                    " WHERE release_id = :release AND state = 'open' AND lease_holder IS NOT NULL"
                ),
                {"release": release},
            )

    @contextmanager
    def tampering(self) -> Iterator[Connection]:
        """A superuser's transaction in which no trigger fires."""
        with self.owner.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            yield connection

    def check(self) -> None:
        """Every invariant of every account, and the chains of those opened since the last check."""
        with self.owner.connect() as connection:
            assert connection.execute(_BROKEN).all() == []
        while self._unchecked:
            report = verify_chain(self.app, self._unchecked.pop())
            assert report.ok, report.fault
