"""Why a job ends early without having failed.

JobStopped
├── LeaseLost    another worker took over, or the service closed the job: say nothing, do nothing
├── Cancelled    somebody asked for it
├── OutOfMemory  the job needs more memory than it may use: it is resumed a few times
└── Abandoned    something we depend on failed: the reaper has the job resumed from its journal
"""

import obstore.exceptions
from redis.exceptions import RedisError
from sqlalchemy import exc

from service.data.ledger.errors import AnchorError

OUTAGES: tuple[type[Exception], ...] = (
    exc.OperationalError,
    exc.InterfaceError,
    # It can be reached, but not be written to (after a failover), or has ended an idle session.
    exc.InternalError,
    exc.TimeoutError,
    obstore.exceptions.BaseError,
    OSError,
    RedisError,
    # The database is older than its anchor: nothing may be released until that is mended.
    AnchorError,
)
"""Failures of what we depend on, not of the job: it may succeed when it is tried again."""


class JobStopped(Exception):
    """The job ends here, and has not failed."""


class LeaseLost(JobStopped):
    """Another worker took over, or the service closed the job."""


class Cancelled(JobStopped):
    """Somebody asked for it."""


class OutOfMemory(JobStopped):
    """The job needs more memory than it may use."""


class Abandoned(JobStopped):
    """Something we depend on failed."""


RESUMED: tuple[type[Exception], ...] = (Abandoned, OutOfMemory, *OUTAGES)
"""After these the reaper has the job tried again."""
STOPPED: tuple[type[Exception], ...] = (LeaseLost, *RESUMED)
"""These end an attempt, and not the release."""
