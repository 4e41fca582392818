"""The privacy ledger: tables, guards, audit chain and the functions that are the only way in."""

from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SQL = Path(__file__).resolve().parents[1] / "sql" / "0001_ledger"


def upgrade() -> None:
    """Create roles and schema, then everything else as the schema's owner."""
    _run("1_roles.sql")
    op.execute("SET LOCAL ROLE scrim_ledger")
    for name in (
        "2_tables.sql",
        "3_guards.sql",
        "4_audit.sql",
        "5_postings.sql",
        "6_functions.sql",
        "7_grants.sql",
    ):
        _run(name)
    op.execute("RESET ROLE")


def downgrade() -> None:
    """Drop the schema, unless it holds spending. The roles stay: other databases may use them."""
    if op.get_bind().scalar(text("SELECT EXISTS (SELECT FROM ledger.account)")):
        raise RuntimeError("the ledger holds accounts; dropping it would give their budget back")
    op.execute("DROP SCHEMA ledger CASCADE")


def _run(name: str) -> None:
    # The driver takes a lone percent sign for the start of a parameter.
    op.get_bind().exec_driver_sql((SQL / name).read_text(encoding="utf-8").replace("%", "%%"))
