"""Bringing a database to the newest schema."""

from pathlib import Path

from sqlalchemy import URL

from service.data.db.engine import open_engine

_SCRIPTS = Path(__file__).resolve().parents[3] / "migrations"


def migrate(url: str | URL, *, target: str = "head") -> None:
    """Move the database to revision `target`, up or down; safe to call from several processes."""
    # Only here: whoever opens a database that exists already need not load all this.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            if target == "head":
                command.upgrade(config, target)
            else:
                command.downgrade(config, target)
    finally:
        engine.dispose()
