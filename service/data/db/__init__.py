"""The database: engines, migrations, the application's role."""

from service.data.db.engine import open_engine
from service.data.db.migrations import migrate, scripts_folder
from service.data.db.roles import APP_ROLE, enable_app_login

__all__ = ["APP_ROLE", "enable_app_login", "migrate", "open_engine", "scripts_folder"]
