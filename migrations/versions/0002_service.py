"""The service's tables: keys, populations, datasets, releases, and what belongs to them."""

from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SQL = Path(__file__).resolve().parents[1] / "sql" / "0002_service"
TABLES = (
    "idempotency",
    "artifact",
    "release_event",
    "release",
    "upload",
    "dataset",
    "population",
    "api_key",
)


def upgrade() -> None:
    """Create the tables, then say what the application's role may do with them."""
    for name in ("1_tables.sql", "2_grants.sql"):
        op.get_bind().exec_driver_sql((SQL / name).read_text(encoding="utf-8"))


def downgrade() -> None:
    """Drop the tables, unless they say whose budget the ledger's accounts are."""
    if op.get_bind().scalar(text("SELECT EXISTS (SELECT FROM population)")):
        raise RuntimeError("there are populations; without their names the ledger is of no use")
    op.execute("REVOKE SELECT ON alembic_version FROM scrim_app")
    for name in TABLES:
        op.execute(f"DROP TABLE {name}")
