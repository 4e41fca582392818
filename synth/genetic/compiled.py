"""Compiled functions, and the invalidation of their cache on disk.

Numba recompiles a function when its own file changes, but not when the file of a function that it calls
does. So only one function is cached on disk (synth/genetic/evolution.py), and its key includes the sources
of all. Its arguments are plain tuples and arrays, because a cache index that names a class cannot be read
before the class is imported.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


WITHOUT_ENTRY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of numba: without entry points for Python or C, a function compiles in half the time."""


def compiled(function: Function) -> Function:
    """Compile a function that only compiled functions call."""
    return cast(Function, njit(nogil=True, **WITHOUT_ENTRY)(function))


def fingerprint() -> str:
    """A hash of this package's sources."""
    digest = sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
