"""The limits of a release that its curator was warned about when it was submitted."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The application's role may read and insert whole releases, so it needs no further grant."""
    op.execute("ALTER TABLE release ADD COLUMN warnings jsonb NOT NULL DEFAULT '[]'")


def downgrade() -> None:
    """Forget them; a preview of the same request gives them again."""
    op.execute("ALTER TABLE release DROP COLUMN warnings")
