"""An observer of the database: committed entries must never change or disappear."""

import threading
from collections.abc import Hashable
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import DBAPIError

PAUSE_SECONDS = 0.1

_OUTCOMES = text("""
    SELECT release_id, sequence, kind, asked::text, scale, price_units, sha256("values")
    FROM ledger.operation JOIN ledger.outcome USING (release_id, sequence)
""")
_ENDS = text("""
    SELECT r.id, r.state, r.error::text,
           (SELECT string_agg(a.name || encode(a.sha256, 'hex'), ' ' ORDER BY a.name)
            FROM artifact AS a WHERE a.release_id = r.id)
    FROM release AS r WHERE r.state IN ('succeeded', 'cancelled') -- a failed one may be resumed
""")
_WRONG_BALANCES = text("""
    SELECT population_id FROM ledger.account
    WHERE spent_units + reserved_units > cap_units OR spent_units <>
        (SELECT coalesce(sum(o.price_units), 0)
         FROM ledger.reservation AS r JOIN ledger.operation AS o USING (release_id)
         WHERE r.account = population_id)
""")


class Watcher:
    """Reads snapshots repeatedly, and remembers the first version of every entry."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(isolation_level="REPEATABLE READ")
        self._first_seen: dict[Hashable, Hashable] = {}
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.looks = 0
        self.outages = 0
        self.outcomes = 0
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        """Start watching."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop watching."""
        self._leaving.set()
        self._thread.join()

    def look(self) -> None:
        """Compare every committed entry with its first version."""
        with self._engine.connect() as connection:
            outcomes = _rows(connection, _OUTCOMES, key=2)
            seen = outcomes | _rows(connection, _ENDS, key=1)
            wrong = connection.execute(_WRONG_BALANCES).scalars().all()
        self.faults += [f"balance of {population}" for population in wrong]
        for key, value in self._first_seen.items():
            if seen.get(key) != value:
                self.faults.append(f"{key}: first {value}, now {seen.get(key)}")
        self._first_seen = seen | self._first_seen
        self.outcomes = len(outcomes)
        self.looks += 1

    def _watch(self) -> None:
        while not self._leaving.wait(PAUSE_SECONDS):
            try:
                self.look()
            except DBAPIError:
                # The database is down: what was seen before must be there when it is back.
                self.outages += 1


def _rows(connection: Connection, query: TextClause, *, key: int) -> dict[Hashable, Hashable]:
    """The rows of a query: the first `key` columns identify an entry, the others describe it."""
    found = connection.execute(query).all()
    return {tuple(row[:key]): tuple(row[key:]) for row in found}
