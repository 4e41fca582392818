"""The journal of a release, kept by the ledger: charge and outcome in one short transaction."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from sqlalchemy import Engine

from service.data.ledger import records
from service.data.ledger import repository as ledger
from service.data.ledger.errors import StaleLease
from synth.journal import Operation
from worker.crash import crash_at
from worker.errors import OUTAGES, Abandoned, LeaseLost

_STORED = np.dtype("<i8")


class LedgerJournal:
    """The journal of a release under one lease. Implements `synth.journal.Journal`.

    If the result of a commit is lost, the worker cannot tell whether it happened. It abandons the
    attempt and never uses the outcome; the next attempt reads the truth from the ledger.
    """

    def __init__(self, engine: Engine, release_id: UUID, *, epoch: int) -> None:
        self._engine = engine
        self._release_id = release_id
        self._epoch = epoch
        self._committed = 0

    def operations(self) -> Sequence[Operation]:
        """Every committed operation, in order."""
        with self._engine.connect() as connection:
            found = ledger.journal(connection, self._release_id)
        self._committed = len(found)
        return tuple(_read(record) for record in found)

    def commit(self, operation: Operation) -> None:
        """Charge the operation and store its outcome, or stop the job."""
        crash_at("before-commit")
        record = _written(self._committed, operation)
        try:
            with self._engine.begin() as connection:
                ledger.commit_operation(
                    connection, self._release_id, epoch=self._epoch, operation=record
                )
        except StaleLease as error:
            raise LeaseLost from error
        except OUTAGES as error:
            raise Abandoned from error
        self._committed += 1
        crash_at("after-commit")


def _written(sequence: int, operation: Operation) -> records.LedgerOperation:
    return records.LedgerOperation(
        sequence=sequence,
        kind=operation.kind,
        asked=operation.asked,
        scale=operation.scale,
        price_units=operation.price,
        values=operation.values.astype(_STORED).tobytes(),
    )


def _read(record: records.LedgerOperation) -> Operation:
    assert isinstance(record.asked, str)
    return Operation(
        kind=record.kind,
        asked=record.asked,
        scale=record.scale,
        price=record.price_units,
        values=np.frombuffer(record.values, _STORED).astype(np.int64),
    )
