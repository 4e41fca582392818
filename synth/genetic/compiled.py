"""Compiled functions, and when what is kept of them on disk is out of date.

Numba compiles a function again when its own file changes, but not when one that it calls does. So only
one function is kept on disk (synth/genetic/evolution.py), and its key has the sources of all. Its
arguments are plain tuples and arrays, since an index that names a class cannot be read without it.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


WITHOUT_ENTRY: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of numba: without an entry from Python or C, a function is compiled in half the time."""


def compiled(function: Function) -> Function:
    """A function that only compiled functions call."""
    return cast(Function, njit(nogil=True, **WITHOUT_ENTRY)(function))


def fingerprint() -> str:
    """Tells apart states of this package's sources."""
    digest = sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
