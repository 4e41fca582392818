"""The memory limit of a job, and detection of a job that ran out of memory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEADROOM_BYTES = 2**28
"""Memory that libraries allocate at their first use: thread stacks, buffers, compiled code."""

_STATUS = Path("/proc/self/status")
# Torch's message when it cannot allocate on the CPU; it has no exception class for that.
_TORCH_REFUSAL = "can't allocate memory"


@contextmanager
def limited_memory(limit_bytes: int | None) -> Iterator[None]:
    """Limit the memory that this process may allocate while the block runs: `limit_bytes` and headroom.

    Beyond it, allocations fail in this process alone. The limit counts private writable memory
    (RLIMIT_DATA), not address space, of which torch maps far more than it uses. On
    systems other than Linux there is no limit.
    """
    if limit_bytes is None or sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _private_bytes() + HEADROOM_BYTES + limit_bytes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the process or a device ran out of memory."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and _TORCH_REFUSAL in str(error)


def _private_bytes() -> int:
    """Memory that already counts against the limit."""
    (line,) = (each for each in _STATUS.read_text().splitlines() if each.startswith("VmData:"))
    return int(line.split()[1]) * 1024
