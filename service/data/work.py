"""The unit of work: one transaction, and callbacks to run after its commit.

Services add to it and never commit. A callback is lost if the process dies right after the
commit, so it must do something that is repaired elsewhere, such as send a message to the workers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session


class UnitOfWork:
    """A session, and callbacks to run after its commit."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._later: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run this callback if, and only if, the transaction is committed."""
        self._later.append(action)

    def run_later(self) -> None:
        """Run the callbacks in order."""
        for action in self._later:
            action()


@contextmanager
def unit_of_work(engine: Engine) -> Iterator[UnitOfWork]:
    """One transaction: committed at the end of the block, rolled back by an exception."""
    with Session(engine, expire_on_commit=False) as session:
        work = UnitOfWork(session)
        with session.begin():
            yield work
    work.run_later()
