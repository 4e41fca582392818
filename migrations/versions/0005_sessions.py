"""Sessions of the console, so that signing out ends them, and a value that identifies the master key."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, and let the application's role do what it needs with them."""
    op.execute("""
        CREATE TABLE console_session (
            id      uuid        PRIMARY KEY,
            key_id  uuid        NOT NULL REFERENCES api_key,
            ends_at timestamptz NOT NULL
        )
    """)
    op.execute("CREATE INDEX console_session_end ON console_session (ends_at)")
    op.execute("GRANT SELECT, INSERT, DELETE ON console_session TO scrim_app")
    # One row: a data key of no dataset, wrapped by the master key.
    op.execute("""
        CREATE TABLE master_key_check (
            id          uuid  PRIMARY KEY CHECK (id = '00000000-0000-0000-0000-000000000000'),
            wrapped_key bytea NOT NULL
        )
    """)
    op.execute("GRANT SELECT, INSERT, UPDATE (wrapped_key) ON master_key_check TO scrim_app")


def downgrade() -> None:
    """End all sessions, and forget which master key is the right one."""
    op.execute("DROP TABLE master_key_check")
    op.execute("DROP TABLE console_session")
