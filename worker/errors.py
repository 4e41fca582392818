"""Reasons for which an attempt at a job ends without a failure of the job.

JobStopped
├── LeaseLost    another worker took over, or the service closed the job: record nothing
├── Cancelled    a caller asked for it
├── OutOfMemory  the job needs more memory than it may use: it is retried a few times
└── Abandoned    a dependency failed: the job is resumed later from its journal
"""

import obstore.exceptions
from redis.exceptions import RedisError
from sqlalchemy import exc

from service.data.ledger.errors import AnchorError

OUTAGES: tuple[type[Exception], ...] = (
    exc.OperationalError,
    exc.InterfaceError,
    # The database is read-only (after a failover), or has ended an idle session.
    exc.InternalError,
    exc.TimeoutError,
    obstore.exceptions.BaseError,
    OSError,
    RedisError,
    # The database is older than its anchor: nothing may be released until that is fixed.
    AnchorError,
)
"""Failures of dependencies, not of the job: a later attempt may succeed."""


class JobStopped(Exception):
    """The attempt ends here; the job has not failed."""


class LeaseLost(JobStopped):
    """Another worker took over, or the service closed the job."""


class Cancelled(JobStopped):
    """A caller asked to cancel the job."""


class OutOfMemory(JobStopped):
    """The job needs more memory than it may use."""


class Abandoned(JobStopped):
    """A dependency failed."""


RESUMED: tuple[type[Exception], ...] = (Abandoned, OutOfMemory, *OUTAGES)
"""After these, the reaper sends the job again."""
STOPPED: tuple[type[Exception], ...] = (LeaseLost, *RESUMED)
"""These end an attempt, and not the release."""
