"""The unit of work: one transaction, and what is to be done once it is committed.

Services add to it and never commit. What waits for the commit is lost if the process dies in
between, so it must be something that is repaired elsewhere, such as a message to the workers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session


class UnitOfWork:
    """A session, and callbacks for after its commit."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._later: list[Callable[[], None]] = []

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do this when, and only when, the transaction is committed."""
        self._later.append(action)

    def run_later(self) -> None:
        """Do what waited for the commit, in order."""
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
