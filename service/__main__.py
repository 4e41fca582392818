"""`python -m service`: serve over HTTP, migrate the database, create keys, and maintain the installation."""

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from uuid import UUID

from pydantic import ValidationError

from scrim.spec.budget import Budget
from scrim.spec.errors import SpecError
from service.data.config import Settings
from service.data.context import open_context
from service.data.crypto import CryptoError
from service.data.db import enable_app_login, migrate, open_engine
from service.data.errors import ServiceError
from service.data.ledger.errors import LedgerError
from service.data.logging import build_logger
from service.data.master_key import check_master_key
from service.keys.service import create_key
from service.upkeep import commands


def main() -> None:
    """Carry out one command."""
    given = _parser().parse_args()
    try:
        given.run(given)
    except (ServiceError, LedgerError, SpecError, CryptoError, ValidationError) as refusal:
        sys.exit(f"{type(refusal).__name__}: {refusal}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    parsers = parser.add_subparsers(required=True, metavar="COMMAND")

    serving = parsers.add_parser("serve", help="answer requests until asked to stop")
    serving.add_argument("--host", default="127.0.0.1")
    serving.add_argument("--port", type=int, default=8000)
    serving.set_defaults(run=_serve)

    migrating = parsers.add_parser(
        "migrate",
        help="bring SCRIM_MIGRATION_URL to the newest schema; SCRIM_APP_PASSWORD lets the "
        "application's role log in",
    )
    migrating.set_defaults(run=_migrate)

    making = parsers.add_parser("create-key", help="create an API key and print it once")
    making.add_argument("name")
    making.add_argument("--scope", action="append", choices=["admin", "curator", "analyst"])
    making.set_defaults(run=_create_key)

    capping = parsers.add_parser("set-cap", help="change the cap of a population")
    capping.add_argument("population", type=UUID, help="the population's id")
    amount = capping.add_mutually_exclusive_group(required=True)
    amount.add_argument("--rho", type=float)
    amount.add_argument("--epsilon", type=float, help="converted at the population's delta")
    capping.add_argument(
        "--raise", action="store_true", dest="may_rise", help="allow a higher cap than before"
    )
    capping.set_defaults(run=_set_cap)

    parsers.add_parser(
        "rotate-master-key",
        help="wrap all data keys with SCRIM_NEW_MASTER_KEY; stop everything else first",
    ).set_defaults(run=_rotate_master_key)
    parsers.add_parser(
        "rotate-signing-key",
        help="sign the anchor with SCRIM_NEW_SIGNING_KEY; stop everything else first",
    ).set_defaults(run=_rotate_signing_key)

    anchoring = parsers.add_parser(
        "reanchor", help="accept a database that is behind its anchor, or that has no anchor"
    )
    anchoring.add_argument(
        "--close-populations",
        action="store_true",
        help="the newest database is lost: stop all spending on the affected populations",
    )
    anchoring.add_argument(
        "--database-is-newest",
        action="store_true",
        help="the anchor is lost, and this is known to be the newest database",
    )
    anchoring.set_defaults(run=_reanchor)
    return parser


def _serve(given: argparse.Namespace) -> None:
    settings = Settings()
    _refuse_wrong_master_key(settings)
    with ExitStack() as held:
        if settings.processes > 1:
            # Where processes share their counters; prometheus_client reads this when it is imported.
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="scrim-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        # Imported only here: building all routes takes longer than most other commands.
        from service.processes import serve

        sys.exit(serve(settings, host=given.host, port=given.port))


def _refuse_wrong_master_key(settings: Settings) -> None:
    engine = open_engine(str(settings.database_url))
    try:
        check_master_key(engine, settings.master_key_bytes)
    finally:
        engine.dispose()


def _migrate(_given: argparse.Namespace) -> None:
    owner_url, password = os.environ["SCRIM_MIGRATION_URL"], os.environ.get("SCRIM_APP_PASSWORD")
    migrate(owner_url)
    if password:
        enable_app_login(owner_url, password=password)


def _create_key(given: argparse.Namespace) -> None:
    scopes = given.scope or ["admin"]
    with open_context(Settings(), build_logger()) as context, context.transaction() as work:
        _, secret = create_key(work.session, given.name, scopes)
    print(secret)


def _set_cap(given: argparse.Namespace) -> None:
    cap = Budget(rho=given.rho, epsilon=given.epsilon)
    commands.set_cap(given.population, cap, may_rise=given.may_rise)


def _rotate_master_key(_given: argparse.Namespace) -> None:
    commands.rotate_master_key()


def _rotate_signing_key(_given: argparse.Namespace) -> None:
    commands.rotate_signing_key()


def _reanchor(given: argparse.Namespace) -> None:
    commands.reanchor(
        close_populations=given.close_populations, database_is_newest=given.database_is_newest
    )


if __name__ == "__main__":
    main()
