"""Reject datasets whose rows were bounded by a rule that is not private.

Where a person is the unit, neighbours replace one person, and tables are linked, the rows that a
person keeps used to be chosen by their content. A changed value could then move a row to another
group, and group sizes are released exactly (docs/privacy.md, section 3.1).
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_REASON = (
    "an earlier version chose which rows of a person are kept in a way that does not protect them; "
    "create another dataset and upload the files again"
)


def upgrade() -> None:
    """Keep the datasets out of releases. Budget that was spent on them stays spent.

    Ingests that an earlier version has begun lose their lease, and are done again.
    """
    op.execute("""
        UPDATE dataset SET lease_epoch = lease_epoch + 1, lease_until = NULL WHERE state = 'ingesting'
    """)
    op.execute(f"""
        UPDATE dataset SET state = 'rejected', reason = '{_REASON}'
        FROM population
        WHERE dataset.population_id = population.id AND dataset.state = 'ready'
            AND population.unit = 'person' AND population.relation = 'replace_one'
            AND dataset.schema ? 'groups'
    """)


def downgrade() -> None:
    """Leave them rejected: the rows are still the same."""
