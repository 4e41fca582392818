"""Migration of a database to the newest schema."""

from pathlib import Path

from sqlalchemy import URL

import service
from service.data.db.engine import open_engine

_SERVICE = Path(service.__file__).resolve().parent


def scripts_folder() -> Path:
    """Return the folder of the migrations: inside this package in a wheel, beside it in a checkout."""
    packaged = _SERVICE / "migrations"
    return packaged if packaged.is_dir() else _SERVICE.parent / "migrations"


def migrate(url: str | URL, *, target: str = "head") -> None:
    """Move the database to revision `target`, up or down; safe to call from several processes."""
    # Alembic loads slowly, and most processes never migrate.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
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
