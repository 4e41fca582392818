"""Problems of failed releases, as shown to all callers."""

from typing import Any

_RESUMABLE = (
    "what it spent stays spent, and the rest was returned. An admin can resume it from its journal, at "
    "no further cost, with `scrim release resume`"
)


def problem(kind: str, detail: str) -> dict[str, Any]:
    """Build a problem in the service's format; it never contains a value of a row."""
    return {"type": f"/problems/{kind}", "detail": detail}


def gave_up(attempts: int) -> dict[str, Any]:
    """Too many workers were lost."""
    detail = f"{attempts} workers that started on this release were lost; {_RESUMABLE}"
    return problem("gave-up", detail)


def not_enough_memory(limit_bytes: int | None) -> dict[str, Any]:
    """The job ran out of memory repeatedly."""
    limit = "" if limit_bytes is None else f" ({limit_bytes / 2**20:,.0f} MiB for each job)"
    detail = f"this release needs more memory than its workers have{limit}; {_RESUMABLE}, once there is more"
    return problem("not-enough-memory", detail)


def time_limit(seconds: float) -> dict[str, Any]:
    """The job took too long."""
    detail = (
        f"this release took longer than {seconds:g} seconds, the limit for one job; {_RESUMABLE}"
    )
    return problem("time-limit", detail)
