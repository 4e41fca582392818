"""The columns of a release: those that its queries mention or that it names."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Releases so far contain all columns of their table except identifiers and keys."""
    op.execute("ALTER TABLE release ADD COLUMN columns text[] NOT NULL DEFAULT '{}'")
    op.execute("""
        UPDATE release SET columns = ARRAY(
            SELECT declared ->> 'name'
            FROM dataset
            CROSS JOIN LATERAL (VALUES
                (1, 'rows', dataset.schema, NULL),
                (2, 'groups', dataset.schema -> 'groups', dataset.schema #>> '{groups,key}'),
                (3, 'individuals', dataset.schema -> 'individuals',
                    dataset.schema #>> '{individuals,group_key}')
            ) AS part (place, name, content, key)
            CROSS JOIN LATERAL jsonb_array_elements(coalesce(part.content -> 'columns', '[]'))
                WITH ORDINALITY AS listed (declared, position)
            WHERE dataset.id = release.dataset_id
                AND declared ->> 'type' <> 'identifier'
                AND declared ->> 'name' IS DISTINCT FROM part.key
                AND coalesce(release.spec ->> 'table', part.name) = part.name
            ORDER BY part.place, listed.position
        )
    """)


def downgrade() -> None:
    """Forget them; the files of each release still name their columns."""
    op.execute("ALTER TABLE release DROP COLUMN columns")
