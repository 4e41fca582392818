"""Check of the configured master key against the stored data keys.

The database holds one data key that belongs to no dataset, so a wrong master key is detected before
there is a dataset. It is created at the first start; without it, the datasets' keys are checked.
"""

from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from service.data import datasets
from service.data.crypto import Unreadable, WrongMasterKey, new_data_key, unwrap_key, wrap_key
from service.data.models import MasterKeyCheck
from service.data.work import unit_of_work

NO_DATASET = UUID(int=0)


def check_master_key(engine: Engine, master_key: bytes) -> None:
    """Raise WrongMasterKey unless this key unwraps the stored data keys."""
    with unit_of_work(engine) as work:
        try:
            if work.session.get(MasterKeyCheck, NO_DATASET) is None:
                _remember(work.session, master_key)
            known = work.session.get_one(MasterKeyCheck, NO_DATASET)
            unwrap_key(known.wrapped_key, NO_DATASET, master_key=master_key)
        except Unreadable:
            raise WrongMasterKey(
                "SCRIM_MASTER_KEY is not the master key of this installation: it does not unwrap "
                "the stored data keys; set the right key, or restore it from a backup"
            ) from None


def _remember(session: Session, master_key: bytes) -> None:
    dataset = datasets.newest_with_key(session)
    if dataset is not None:
        assert dataset.wrapped_key is not None
        unwrap_key(dataset.wrapped_key, dataset.id, master_key=master_key)
    wrapped = wrap_key(new_data_key(), NO_DATASET, master_key=master_key)
    # If several processes start at once, the first one's row is kept.
    session.execute(
        insert(MasterKeyCheck)
        .values(id=NO_DATASET, wrapped_key=wrapped)
        .on_conflict_do_nothing(index_elements=[MasterKeyCheck.id])
    )
