"""Schemas that are saved under a name, and the saved schema that a dataset was declared with."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Versions are never changed or deleted, so the application's role may only read and insert them."""
    op.execute("""
        CREATE TABLE saved_schema (
            id         uuid        PRIMARY KEY,
            name       text        NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
            version    integer     NOT NULL CHECK (version >= 1),
            schema     jsonb       NOT NULL,
            created_by uuid        NOT NULL REFERENCES api_key,
            created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            UNIQUE (name, version)
        )
    """)
    op.execute("CREATE INDEX saved_schema_page ON saved_schema (created_at, id)")
    op.execute("GRANT SELECT, INSERT ON saved_schema TO scrim_app")
    op.execute("ALTER TABLE dataset ADD COLUMN schema_id uuid REFERENCES saved_schema")


def downgrade() -> None:
    """Forget the names; each dataset keeps a copy of its schema."""
    op.execute("ALTER TABLE dataset DROP COLUMN schema_id")
    op.execute("DROP TABLE saved_schema")
