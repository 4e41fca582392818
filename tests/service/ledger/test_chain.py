"""The chain check detects an edit anywhere in the ledger."""

import uuid
from uuid import UUID

import pytest
from sqlalchemy import text

from service.data.ledger.chain import verify_chain
from service.data.ledger.errors import UnknownEntry

from .support import Ledger, charge


@pytest.fixture
def population(ledger_of_module: Ledger) -> UUID:
    """An account with one finished release, one running release, and a changed cap."""
    ledger = ledger_of_module
    population = ledger.open_account(1000)
    for is_done in (True, False):
        release = ledger.reserve(population, 300)
        epoch = ledger.claim(release)
        for sequence in range(3):
            ledger.commit(release, epoch, charge(sequence, 50, sequence, -1))
        if is_done:
            ledger.finish(release, epoch)
    ledger.set_cap(population, 900)
    return population


def test_untouched_chain_is_sound(ledger: Ledger, population: UUID) -> None:
    report = verify_chain(ledger.app, population)
    assert (report.ok, report.entries, report.fault) == (True, 11, None)
    with ledger.app.connect() as connection:
        newest = connection.scalar(
            text("SELECT hash FROM ledger.audit WHERE account = :population AND seq = 11"),
            {"population": population},
        )
    assert report.head == newest


def test_unknown_population(ledger: Ledger) -> None:
    with pytest.raises(UnknownEntry):
        verify_chain(ledger.app, uuid.uuid4())


OURS = "release_id IN (SELECT release_id FROM ledger.reservation WHERE account = :population)"
ENTRY = "UPDATE ledger.audit SET {} WHERE account = :population AND seq = 4"


@pytest.mark.parametrize(
    "edit",
    [
        ENTRY.format("units = units - 1"),
        ENTRY.format("at = at + interval '1 microsecond'"),
        ENTRY.format("kind = 'close'"),
        ENTRY.format("operation = operation + 1"),
        ENTRY.format("release_id = gen_random_uuid()"),
        ENTRY.format("release_id = NULL"),
        ENTRY.format('payload = payload || \'{"kind": "select"}\''),
        ENTRY.format("previous_hash = sha256('')"),
        ENTRY.format("hash = sha256('')"),
        "DELETE FROM ledger.audit WHERE account = :population AND seq = 1",
        "DELETE FROM ledger.audit WHERE account = :population AND seq = 4",
        "DELETE FROM ledger.audit WHERE account = :population AND seq = 11",
        "DELETE FROM ledger.audit WHERE account = :population",
        "UPDATE ledger.account SET spent_units = 0 WHERE population_id = :population",
        "UPDATE ledger.account SET reserved_units = 0 WHERE population_id = :population",
        "UPDATE ledger.account SET cap_units = 901 WHERE population_id = :population",
        "UPDATE ledger.account SET rows_per_unit = 1 WHERE population_id = :population",
        "UPDATE ledger.account SET relation = 'replace_one' WHERE population_id = :population",
        f"UPDATE ledger.reservation SET spent_units = 0 WHERE {OURS}",
        f"UPDATE ledger.reservation SET state = 'closed' WHERE {OURS}",
        f"UPDATE ledger.reservation SET dataset_hash = sha256('') WHERE {OURS}",
        f"DELETE FROM ledger.reservation WHERE {OURS}",
        f"UPDATE ledger.operation SET price_units = 0 WHERE {OURS} AND sequence = 2",
        f"UPDATE ledger.operation SET scale = scale * 2 WHERE {OURS} AND sequence = 2",
        f"UPDATE ledger.operation SET asked = '{{}}' WHERE {OURS} AND sequence = 2",
        f"UPDATE ledger.operation SET kind = 'select' WHERE {OURS} AND sequence = 2",
        f"DELETE FROM ledger.operation WHERE {OURS} AND sequence = 2",
        f"UPDATE ledger.outcome SET \"values\" = '' WHERE {OURS} AND sequence = 2",
        f"DELETE FROM ledger.outcome WHERE {OURS} AND sequence = 2",
        "INSERT INTO ledger.operation SELECT release_id, 3, 'select', '{}', 1, 0"
        " FROM ledger.reservation WHERE account = :population",
        "INSERT INTO ledger.reservation SELECT gen_random_uuid(), account, 1, 0, 'closed',"
        " dataset_hash, spec_hash FROM ledger.reservation WHERE account = :population",
    ],
)
def test_tampering_is_found(ledger_of_module: Ledger, population: UUID, edit: str) -> None:
    ledger = ledger_of_module
    with ledger.tampering() as connection:
        assert connection.execute(text(edit), {"population": population}).rowcount > 0
    report = verify_chain(ledger.app, population)
    assert not report.ok
    assert report.fault


def test_rewritten_chain_that_gives_more_back_than_was_reserved_is_found(
    ledger_of_module: Ledger, population: UUID
) -> None:
    """The hashes are valid, because the attacker recomputed them. The sums are not."""
    ledger = ledger_of_module
    rewrite = """
        DO $$
        DECLARE
            entry ledger.audit;
            head  bytea := decode(repeat('00', 32), 'hex');
        BEGIN
            FOR entry IN SELECT * FROM ledger.audit
                WHERE account = '{population}' ORDER BY seq LOOP
                IF entry.kind = 'close' THEN
                    entry.units := entry.units + 50;
                END IF;
                entry.previous_hash := head;
                head := ledger.audit_hash(entry);
                UPDATE ledger.audit SET units = entry.units,
                    previous_hash = entry.previous_hash, hash = head
                    WHERE account = entry.account AND seq = entry.seq;
            END LOOP;
        END
        $$
    """
    with ledger.tampering() as connection:
        connection.exec_driver_sql(rewrite.format(population=population))
    report = verify_chain(ledger.app, population)
    assert report.fault == "entry 6 differs from what it is about"
