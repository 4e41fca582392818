"""Interruptions of an ingest, and when it is tried again: none of them rejects the dataset."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, which releases have too."""
    op.execute("""
        ALTER TABLE dataset
            ADD COLUMN outages   integer NOT NULL DEFAULT 0 CHECK (outages >= 0),
            ADD COLUMN resume_at timestamptz -- the reaper sends no message before
    """)
    op.execute("GRANT UPDATE (outages, resume_at) ON dataset TO scrim_app")


def downgrade() -> None:
    """Forget them."""
    op.execute("ALTER TABLE dataset DROP COLUMN resume_at, DROP COLUMN outages")
