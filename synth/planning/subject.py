"""The subject of a release: a table of rows, one of two linked tables, or both."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from scrim.spec.two_level import LevelTable, TwoLevelSchema, protection_of_table
from synth.planning.binning import with_bins

StoredTable = Literal["rows", "linked"] | LevelTable
"""The tables of a dataset, as they are stored."""


@dataclass(frozen=True)
class Subject:
    """Which rows a release reads, and how they are protected."""

    table: StoredTable
    schema: Schema
    """Schema of these rows; a LinkedSchema if two tables are linked. Numbers that are read as cells, and
    declare no bins, have adaptive ones."""
    protection: Protection


def subject_of(
    release: AskedRelease,
    schema: Schema | TwoLevelSchema,
    protection: Protection,
    *,
    columns: Collection[str] | None = None,
) -> Subject:
    """Return the part of a dataset that a release reads.

    `columns` are the released columns, if they were already decided.
    """
    if isinstance(schema, Schema):
        if release.table is not None:
            raise SpecError(
                "`table` chooses one of two tables, but the dataset has only one; leave it out"
            )
        return Subject("rows", with_bins(release, schema, columns), protection)
    if release.table is None:
        return Subject("linked", schema.linked, protection)
    if release.table == "groups" and protection.unit == "person":
        raise SpecError(
            "the population protects each person, but the table of groups has no persons; leave `table` "
            "out to release both tables, or use a population whose unit is household"
        )
    alone = schema.table(release.table)
    if not alone.attributes:
        raise SpecError(
            f"the table of {release.table} has no columns to release; use the other table"
        )
    return Subject(
        release.table,
        with_bins(release, alone, columns),
        protection_of_table(protection, schema, release.table),
    )
