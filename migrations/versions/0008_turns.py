"""Which key asked for a release and when a worker last started on it: what fair turns need."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, fill them from the recorded requests, and index what waits and had a turn."""
    op.execute("ALTER TABLE release ADD COLUMN key_id uuid REFERENCES api_key")
    op.execute("ALTER TABLE release ADD COLUMN turn_at timestamptz")
    # A release cannot be created without an Idempotency-Key, so each one has its record.
    op.execute("""
        UPDATE release SET key_id = asked.key_id, turn_at = release.started_at
        FROM idempotency AS asked WHERE asked.resource_id = release.id
    """)
    op.execute("ALTER TABLE release ALTER COLUMN key_id SET NOT NULL")
    op.execute("GRANT UPDATE (turn_at) ON release TO scrim_app")
    op.execute("""
        CREATE INDEX release_waiting
        ON release (state, key_id, population_id, dry_run, created_at, id)
        WHERE state IN ('queued', 'running')
    """)
    op.execute("CREATE INDEX release_turn ON release (key_id, turn_at)")
    op.execute("CREATE INDEX release_population_turn ON release (key_id, population_id, turn_at)")


def downgrade() -> None:
    """Forget who asked; the indexes go with the column."""
    op.execute("ALTER TABLE release DROP COLUMN turn_at, DROP COLUMN key_id")
