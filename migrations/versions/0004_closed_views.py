"""What reads for other people need: the audit by time, and which key declared a dataset."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the audit by time. Record who declares a dataset, and recover it where it is known."""
    # Only the ledger's owner may add an index to its tables.
    op.execute("SET LOCAL ROLE scrim_ledger")
    op.execute("CREATE INDEX audit_at ON ledger.audit (account, at)")
    op.execute("RESET ROLE")
    op.execute("ALTER TABLE dataset ADD COLUMN created_by uuid REFERENCES api_key")
    op.execute(
        "UPDATE dataset SET created_by = request.key_id"
        " FROM idempotency AS request WHERE request.resource_id = dataset.id"
    )


def downgrade() -> None:
    """Drop the index and the column."""
    op.execute("ALTER TABLE dataset DROP COLUMN created_by")
    op.execute("SET LOCAL ROLE scrim_ledger")
    op.execute("DROP INDEX ledger.audit_at")
    op.execute("RESET ROLE")
