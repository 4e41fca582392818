"""Declaring, showing and deleting datasets."""

from uuid import UUID

from sqlalchemy.orm import Session

from scrim.spec.errors import SpecError
from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from service.data import datasets, populations, schemas
from service.data.crypto import new_data_key, wrap_key
from service.data.declared import content_of, schema_of, tables_of
from service.data.models import DatasetRow
from service.data.pagination import Page, Paging, page_of
from service.datasets.schemas import (
    DatasetSummary,
    DatasetView,
    NewPrivateDataset,
    NewPublicDataset,
)
from service.idempotency import Attempt, claim_id
from service.keys.schemas import Caller
from service.releases.cancellation import cancel_all_of

HIDDEN_REASON = "only the key that declared this dataset sees why it was rejected"


def create(
    session: Session,
    body: NewPrivateDataset | NewPublicDataset,
    attempt: Attempt,
    *,
    master_key: bytes,
) -> DatasetView:
    """Declare a dataset, with a new key for its rows."""
    dataset_id, is_known = claim_id(session, attempt, status=201)
    if is_known:
        return show(session, dataset_id, attempt.caller)
    declared = body.declared_schema
    if declared is None:
        assert body.schema_id is not None
        declared = schema_of(schemas.get(session, body.schema_id))
    if isinstance(body, NewPrivateDataset):
        population = populations.get(session, body.population_id)
        _refuse_unbounded(declared, population.protection)
    dataset = DatasetRow(
        id=dataset_id,
        **body.model_dump(exclude={"declared_schema"}),
        declared_schema=content_of(declared),
        wrapped_key=wrap_key(new_data_key(), dataset_id, master_key=master_key),
        created_by=attempt.caller.key_id,
    )
    session.add(dataset)
    session.flush()
    return view_of(session, dataset, attempt.caller)


def show(session: Session, dataset_id: UUID, caller: Caller) -> DatasetView:
    """One dataset, without fields that the caller may not see."""
    return view_of(session, datasets.get(session, dataset_id), caller)


def list_page(session: Session, paging: Paging, caller: Caller) -> Page[DatasetSummary]:
    """A page of datasets, without fields that the caller may not see."""
    return page_of(
        datasets.page(session, paging), paging, lambda dataset: _summary(dataset, caller)
    )


def delete(session: Session, dataset_id: UUID) -> None:
    """Destroy the key, and cancel the releases that need it.

    Spending stays with the population. The objects are removed after the commit; without the key
    they are unreadable anyway.
    """
    dataset = datasets.lock(session, dataset_id)
    if dataset.state == "deleted":
        return
    dataset.state, dataset.wrapped_key, dataset.lease_until = "deleted", None, None
    # A worker that is ingesting it loses the lease.
    dataset.lease_epoch += 1
    datasets.forget_uploads(session, dataset_id)
    session.flush()
    cancel_all_of(session, dataset_id)


def view_of(session: Session, dataset: DatasetRow, caller: Caller) -> DatasetView:
    """A dataset, without fields that the caller may not see."""
    missing: list[str] = []
    if dataset.state == "awaiting_content":
        arrived = {upload.table_name for upload in datasets.uploads(session, dataset.id)}
        missing = [name for name in tables_of(dataset) if name not in arrived]
    return DatasetView(
        **_summary(dataset, caller).model_dump(),
        schema=dataset.declared_schema,
        schema_id=dataset.schema_id,
        missing_tables=missing,
    )


def _summary(dataset: DatasetRow, caller: Caller) -> DatasetSummary:
    summary = DatasetSummary.model_validate(dataset, from_attributes=True)
    # The reason reveals something about the rows, so only the owner of the file sees it.
    if dataset.reason is None or dataset.created_by == caller.key_id:
        return summary
    return summary.model_copy(update={"reason": HIDDEN_REASON})


def _refuse_unbounded(schema: Schema | TwoLevelSchema, protection: Protection) -> None:
    """Refuse a schema that does not name the owner of each row, or does not bound the rows per unit."""
    if schema.is_linked:
        _refuse_unbounded_groups(schema.places, len(schema.owners), protection)
    elif protection.unit != "row" and len(schema.owners) != 1:
        raise SpecError(
            f"the population protects each {protection.unit}: declare exactly one identifier "
            f"column, which names the {protection.unit} of each row; the schema has {len(schema.owners)}"
        )


def _refuse_unbounded_groups(places: int, owners: int, protection: Protection) -> None:
    if protection.unit == "row":
        raise SpecError(
            "the population protects each row, which is not possible for linked groups and "
            "individuals; use a population whose unit is household or person"
        )
    bound = protection.max_household_size
    if bound is not None and places > bound:
        raise SpecError(
            f"max_group_size is {places}, but the population protects "
            f"households of at most {bound}; declare at most that"
        )
    if protection.unit == "person" and owners != 1:
        raise SpecError(
            "the population protects each person: declare exactly one identifier column among those "
            "of the individuals, beside the key of their group, which names the person of each row; "
            f"there are {owners}"
        )
