"""Failed releases can be resumed: reservations open again, and attempts are counted by their end."""

from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SQL = Path(__file__).resolve().parents[1] / "sql" / "0006_resume"
COLUMNS = ("lost_attempts", "outages", "memory_failures", "resume_at")


def upgrade() -> None:
    """Change the ledger as its owner, then the service's table."""
    op.execute("SET LOCAL ROLE scrim_ledger")
    op.get_bind().exec_driver_sql((SQL / "1_ledger.sql").read_text(encoding="utf-8"))
    op.execute("RESET ROLE")
    op.get_bind().exec_driver_sql((SQL / "2_service.sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    """Refuse while there are accounts, as the migration of the ledger does; it drops the rest."""
    if op.get_bind().scalar(text("SELECT EXISTS (SELECT FROM ledger.account)")):
        raise RuntimeError("the ledger holds accounts; dropping it would give their budget back")
    for name in COLUMNS:
        op.execute(f"ALTER TABLE release DROP COLUMN {name}")
    op.execute("DROP FUNCTION ledger.reopen")
