"""What Postgres itself refuses, for every role."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from service.data.db import APP_ROLE
from service.data.ledger.repository import reservation

from .support import HASH, Ledger, charge

TABLES = ["account", "reservation", "operation", "outcome", "audit"]
APPEND_ONLY = ["operation", "outcome", "audit"]
OWNERS = ["scrim_ledger", "scrim_owner"]
FORBIDDEN, NO_PRIVILEGE, CHECK, FOREIGN_KEY = "SC000", "42501", "23514", "23503"
COLUMN = {
    "account": "cap_units",
    "reservation": "lease_holder",
    "operation": "kind",
    "outcome": "values",
    "audit": "kind",
}


@contextmanager
def refused(sqlstate: str) -> Iterator[None]:
    with pytest.raises(DBAPIError) as refusal:
        yield
    assert getattr(refusal.value.orig, "sqlstate", None) == sqlstate


@contextmanager
def acting_as(ledger: Ledger, role: str) -> Iterator[Connection]:
    with ledger.owner.begin() as connection:
        connection.execute(text(f"SET LOCAL ROLE {role}"))
        yield connection


@pytest.fixture
def release(ledger: Ledger) -> UUID:
    """A running release."""
    release = ledger.reserve(ledger.open_account(1000), 600)
    ledger.commit(release, ledger.claim(release), charge(0, 100))
    return release


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ledger.{table} SELECT * FROM ledger.{table}",
        'UPDATE ledger.{table} SET "{column}" = "{column}"',
        "DELETE FROM ledger.{table}",
        "TRUNCATE ledger.{table} CASCADE",
        "SELECT FROM ledger.{table} FOR UPDATE",
        "ALTER TABLE ledger.{table} DISABLE TRIGGER ALL",
    ],
)
def test_application_only_reads(ledger: Ledger, statement: str, table: str) -> None:
    with refused(NO_PRIVILEGE), ledger.app.begin() as connection:
        connection.execute(text(statement.format(table=table, column=COLUMN[table])))


def test_application_executes_the_way_in_and_nothing_else(ledger: Ledger) -> None:
    with ledger.owner.connect() as connection:
        allowed = connection.scalars(
            text(
                "SELECT proname FROM pg_proc WHERE pronamespace = CAST('ledger' AS regnamespace)"
                " AND has_function_privilege(:role, oid, 'EXECUTE') ORDER BY proname"
            ),
            {"role": APP_ROLE},
        ).all()
    assert allowed == [
        "claim",
        "close_unclaimed",
        "commit_operation",
        "finish",
        "heartbeat",
        "journal",
        "open_account",
        "reopen",
        "reserve",
        "set_cap",
    ]


def test_functions_belong_to_a_plain_role_and_pin_their_search_path(ledger: Ledger) -> None:
    with ledger.owner.connect() as connection:
        functions = connection.execute(
            text(
                "SELECT proname, rolname, rolsuper, rolcanlogin, prosecdef, proconfig,"
                " prosqlbody IS NOT NULL AS bound_when_created"
                " FROM pg_proc JOIN pg_roles ON pg_roles.oid = proowner"
                " WHERE pronamespace = CAST('ledger' AS regnamespace)"
            )
        ).all()
    for function in functions:
        assert function.rolname == "scrim_ledger"
        assert not function.rolsuper and not function.rolcanlogin
        pinned = function.proconfig == ["search_path=pg_catalog, pg_temp"]
        assert pinned or (function.bound_when_created and not function.prosecdef)


@pytest.mark.parametrize("role", OWNERS)
@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("where", ["", " WHERE false"])
def test_append_only_even_for_owners(
    ledger: Ledger, release: UUID, role: str, table: str, where: str
) -> None:
    column = COLUMN[table]
    for statement in (
        f'UPDATE ledger.{table} SET "{column}" = "{column}"{where}',
        f"DELETE FROM ledger.{table}{where}",
        f"TRUNCATE ledger.{table} CASCADE",
    ):
        with refused(FORBIDDEN), acting_as(ledger, role) as connection:
            connection.execute(text(statement))


@pytest.mark.parametrize("role", OWNERS)
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM ledger.account",
        "DELETE FROM ledger.reservation",
        "TRUNCATE ledger.reservation CASCADE",
        "UPDATE ledger.account SET unit = 'household'",
        "UPDATE ledger.account SET relation = 'replace_one'",
        "UPDATE ledger.account SET rows_per_unit = 1",
        "UPDATE ledger.account SET delta_units = 1",
        "UPDATE ledger.account SET population_id = gen_random_uuid()",
        "UPDATE ledger.account SET spent_units = spent_units - 1",
        "UPDATE ledger.account SET spent_units = spent_units + 1",
        "UPDATE ledger.account SET reserved_units = reserved_units - 1",
        "UPDATE ledger.account SET reserved_units = 0",
        "UPDATE ledger.reservation SET amount_units = 601",
        "UPDATE ledger.reservation SET spent_units = 0",
        "UPDATE ledger.reservation SET spent_units = spent_units + 1",
        "UPDATE ledger.reservation SET dataset_hash = sha256('')",
        "UPDATE ledger.reservation SET spec_hash = sha256('')",
        "UPDATE ledger.reservation SET lease_epoch = 0",
    ],
)
def test_balances_and_identities_even_for_owners(
    ledger: Ledger, release: UUID, role: str, statement: str
) -> None:
    with refused(FORBIDDEN), acting_as(ledger, role) as connection:
        connection.execute(text(statement))


@pytest.mark.parametrize("table", ["account", "reservation"])
def test_spent_budget_comes_back_from_no_trigger_either(
    ledger: Ledger, release: UUID, table: str
) -> None:
    """Triggers change balances, so they must not be able to undo a charge."""
    give_back = f"UPDATE ledger.{table} SET spent_units = spent_units - 1 WHERE spent_units > 0"
    with refused(FORBIDDEN), ledger.owner.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TEMPORARY TABLE refund (units integer);"
            "CREATE FUNCTION pg_temp.refund() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" BEGIN {give_back}; RETURN NULL; END $$;"
            "CREATE TRIGGER refunded AFTER INSERT ON refund"
            " FOR EACH ROW EXECUTE FUNCTION pg_temp.refund()"
        )
        connection.execute(text("INSERT INTO refund VALUES (1)"))


def test_truncating_everything_is_refused_even_for_superusers(
    ledger: Ledger, release: UUID
) -> None:
    """Only superusers get that far: the cascade reaches tables that the ledger's owner does not own."""
    with refused(FORBIDDEN), ledger.owner.begin() as connection:
        connection.execute(text("TRUNCATE ledger.account CASCADE"))


def update(ledger: Ledger, release: UUID, change: str) -> None:
    with ledger.owner.begin() as connection:
        connection.execute(
            text(f"UPDATE ledger.reservation SET {change} WHERE release_id = :release"),
            {"release": release},
        )


REOPENED = "state = 'open', lease_epoch = lease_epoch + 1, lease_until = NULL, lease_holder = NULL"


def test_closed_reservation_is_only_ever_reopened_whole(ledger: Ledger, release: UUID) -> None:
    ledger.finish(release, 1)
    for change in (
        "state = 'open'",
        "state = 'open', lease_epoch = 9",
        "state = 'open', lease_until = NULL, lease_holder = NULL",
        f"{REOPENED}, spent_units = 0",
        f"{REOPENED}, amount_units = 601",
        "lease_epoch = 9",
        "lease_until = now()",
    ):
        with refused(FORBIDDEN):
            update(ledger, release, change)


def test_reopening_by_hand_cannot_pass_the_cap(ledger: Ledger, release: UUID) -> None:
    ledger.finish(release, 1)
    with ledger.app.connect() as connection:
        population = reservation(connection, release).account
    other = ledger.reserve(population, 401)
    with refused(CHECK):
        update(ledger, release, REOPENED)
    ledger.close_unclaimed(other)
    update(ledger, release, REOPENED)
    assert ledger.balance(population) == (100, 500)


def test_cap_below_the_promised_is_refused_and_any_change_is_audited(
    ledger: Ledger, release: UUID
) -> None:
    change = text(
        "UPDATE ledger.account SET cap_units = :cap FROM ledger.reservation"
        " WHERE account = population_id AND release_id = :release"
    )
    with refused(CHECK), ledger.owner.begin() as connection:
        connection.execute(change, {"cap": 599, "release": release})
    with ledger.owner.begin() as connection:
        connection.execute(change, {"cap": 600, "release": release})
        newest = connection.execute(
            text(
                "SELECT audit.kind, units FROM ledger.audit JOIN ledger.reservation USING (account)"
                " WHERE reservation.release_id = :release ORDER BY seq DESC LIMIT 1"
            ),
            {"release": release},
        ).one()
    assert tuple(newest) == ("set_cap", 600)


def insert_operation(connection: Connection, release: UUID, sequence: int, price: int) -> None:
    connection.execute(
        text(
            "INSERT INTO ledger.operation VALUES (:release, :sequence, 'select', '{}', 1, :price)"
        ),
        {"release": release, "sequence": sequence, "price": price},
    )


def test_charge_without_outcome_does_not_commit(ledger: Ledger, release: UUID) -> None:
    with refused(FOREIGN_KEY), ledger.owner.begin() as connection:
        insert_operation(connection, release, 1, 10)


def test_outcome_without_charge_is_refused(ledger: Ledger, release: UUID) -> None:
    with pytest.raises(DBAPIError), ledger.owner.begin() as connection:
        connection.execute(
            text("INSERT INTO ledger.outcome VALUES (:release, 7, '')"), {"release": release}
        )


def test_second_outcome_of_an_operation_is_refused(ledger: Ledger, release: UUID) -> None:
    with refused("23505"), ledger.owner.begin() as connection:
        connection.execute(
            text("INSERT INTO ledger.outcome VALUES (:release, 0, '')"), {"release": release}
        )


def test_owners_charge_is_summed_and_audited_like_any_other(ledger: Ledger, release: UUID) -> None:
    with ledger.owner.begin() as connection:
        insert_operation(connection, release, 1, 10)
        connection.execute(
            text("INSERT INTO ledger.outcome VALUES (:release, 1, '')"), {"release": release}
        )
    for sequence, price, sqlstate in ((1, 1, "SC008"), (3, 1, "SC004"), (2, 491, "SC001")):
        with refused(sqlstate), ledger.owner.begin() as connection:
            insert_operation(connection, release, sequence, price)


@pytest.mark.parametrize("balance", ["1, 0", "0, 1"])
def test_account_starts_empty(ledger: Ledger, balance: str) -> None:
    with refused(FORBIDDEN), ledger.owner.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO ledger.account (population_id, unit, relation, rows_per_unit,"
                " delta_units, cap_units, spent_units, reserved_units)"
                f" VALUES (gen_random_uuid(), 'row', 'add_remove', 1, 1, 9, {balance})"
            )
        )


def test_reservation_starts_open_and_unspent(ledger: Ledger) -> None:
    population = ledger.open_account(1000)
    for column, value in (("spent_units", 1), ("state", "closed"), ("lease_epoch", 1)):
        with refused(FORBIDDEN), ledger.owner.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO ledger.reservation"
                    f" (release_id, account, amount_units, dataset_hash, spec_hash, {column})"
                    " VALUES (gen_random_uuid(), :population, 10, :hash, :hash, :value)"
                ),
                {"population": population, "hash": HASH, "value": value},
            )


def test_commit_is_synchronous_even_if_the_transaction_turned_it_off(
    ledger: Ledger, release: UUID
) -> None:
    with ledger.owner.begin() as connection:
        connection.execute(text("SET LOCAL synchronous_commit = off"))
        connection.execute(text("SELECT ledger.finish(:release, 1)"), {"release": release})
        assert connection.scalar(text("SHOW synchronous_commit")) == "on"


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("commit_operation(NULL, 1, 1, 'select', '{}', 1, 1, '')", "SC006"),
        ("commit_operation(:release, NULL, 1, 'select', '{}', 1, 1, '')", "SC002"),
        ("commit_operation(:release, 1, NULL, 'select', '{}', 1, 1, '')", "23502"),
        ("commit_operation(:release, 1, 1, NULL, '{}', 1, 1, '')", "23502"),
        ("commit_operation(:release, 1, 1, 'select', NULL, 1, 1, '')", "23502"),
        ("commit_operation(:release, 1, 1, 'select', '{}', NULL, 1, '')", "SC007"),
        ("commit_operation(:release, 1, 1, 'select', '{}', 1, NULL, '')", "SC007"),
        ("commit_operation(:release, 1, 1, 'select', '{}', 1, 1, NULL)", "23502"),
        ("commit_operation(:release, 1, 1, 'select', '{}', 1, 1, 'seven b')", CHECK),
        ("commit_operation(:release, 1, 1, 'Not a kind', '{}', 1, 1, '')", CHECK),
        ("finish(:release, NULL)", "SC002"),
        ("finish(NULL, 1)", "SC006"),
        ("heartbeat(:release, 1, NULL)", "SC007"),
        ("claim(NULL, 'worker', 10)", "SC006"),
        ("close_unclaimed(NULL)", "SC006"),
        ("reserve(NULL, gen_random_uuid(), 1, sha256(''), sha256(''))", "SC006"),
        ("set_cap(NULL, 1)", "SC006"),
        ("open_account(gen_random_uuid(), 'row', 'add_remove', 1, NULL, 1)", "SC007"),
        ("open_account(gen_random_uuid(), 'row', 'add_remove', 2, 1, 1)", CHECK),
        ("open_account(gen_random_uuid(), 'county', 'add_remove', 1, 1, 1)", CHECK),
    ],
)
def test_missing_and_malformed_arguments_are_refused(
    ledger: Ledger, release: UUID, call: str, sqlstate: str
) -> None:
    with refused(sqlstate), ledger.app.begin() as connection:
        connection.execute(text(f"SELECT ledger.{call}"), {"release": release})
