"""Warnings that follow from numbers which a release paid for are added when it ends."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Workers add to the warnings of the preview."""
    op.execute("GRANT UPDATE (warnings) ON release TO scrim_app")


def downgrade() -> None:
    """Only the warnings of the preview, which are stored at submission."""
    op.execute("REVOKE UPDATE (warnings) ON release FROM scrim_app")
