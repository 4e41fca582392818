"""The certified quality of a finished release."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; workers fill it when the release ends."""
    op.execute("ALTER TABLE release ADD COLUMN quality jsonb")
    op.execute("GRANT UPDATE (quality) ON release TO scrim_app")


def downgrade() -> None:
    """Forget it; the certificates still state it."""
    op.execute("ALTER TABLE release DROP COLUMN quality")
