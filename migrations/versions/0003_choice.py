"""Why a release has the mechanism that it has, where that was not asked for by name."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The application's role may read and insert whole releases, so it needs no further grant."""
    op.execute("ALTER TABLE release ADD COLUMN choice jsonb")


def downgrade() -> None:
    """Forget the reasons; the mechanisms themselves stay in the specifications."""
    op.execute("ALTER TABLE release DROP COLUMN choice")
