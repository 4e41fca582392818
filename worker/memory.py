"""How much memory a job may use, and how one that ran out of it is recognised."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HEADROOM_BYTES = 2**28
"""What libraries allocate at their first use: stacks of threads, buffers, compiled code."""

_STATUS = Path("/proc/self/status")
# What torch says when it cannot allocate on the CPU; there is no exception of its own for that.
_TORCH_REFUSAL = "can't allocate memory"


@contextmanager
def limited_memory(limit_bytes: int | None) -> Iterator[None]:
    """Let this process allocate that much more memory, and some headroom, while the block runs.

    Beyond it, allocations fail in this process alone. The limit counts private writable memory
    (RLIMIT_DATA), not address space, of which torch maps far more than it uses. There is no such
    limit elsewhere than on Linux.
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
    """Whether memory ran out: that of the process, or that of a device."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and _TORCH_REFUSAL in str(error)


def _private_bytes() -> int:
    """What counts against the limit already."""
    (line,) = (each for each in _STATUS.read_text().splitlines() if each.startswith("VmData:"))
    return int(line.split()[1]) * 1024
