"""`python -m service`: serve over HTTP, migrate the database, or make a first key."""

import argparse
import os

from service.config import Settings
from service.db import enable_app_login, migrate


def main() -> None:
    """Do one of the three."""
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="answer requests until asked to stop")
    serving.add_argument("--host", default="127.0.0.1")
    serving.add_argument("--port", type=int, default=8000)
    commands.add_parser(
        "migrate",
        help="bring SCRIM_MIGRATION_URL to the newest schema; SCRIM_APP_PASSWORD lets the "
        "application's role log in",
    )
    making = commands.add_parser("create-key", help="make an API key and print it once")
    making.add_argument("name")
    making.add_argument("--scope", action="append", choices=["admin", "curator", "analyst"])
    given = parser.parse_args()
    match given.command:
        case "serve":
            _serve(given.host, given.port)
        case "migrate":
            _migrate(os.environ["SCRIM_MIGRATION_URL"], os.environ.get("SCRIM_APP_PASSWORD"))
        case "create-key":
            _create_key(given.name, given.scope or ["admin"])


def _serve(host: str, port: int) -> None:
    from service.app import create_app
    from service.server import Server

    Server(create_app(Settings()), host=host, port=port).run()


def _migrate(owner_url: str, app_password: str | None) -> None:
    migrate(owner_url)
    if app_password:
        enable_app_login(owner_url, password=app_password)


def _create_key(name: str, scopes: list[str]) -> None:
    from service.context import open_context
    from service.keys.service import create_key
    from service.logging import build_logger

    with open_context(Settings(), build_logger()) as context, context.transaction() as work:
        _, secret = create_key(work.session, name, scopes)  # type: ignore[arg-type]
    print(secret)


if __name__ == "__main__":
    main()
