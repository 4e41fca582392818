"""Functions compiled to machine code and cached on disk for other processes, if possible."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_on_disk(function: Function) -> Function:
    """Compile a function that Python calls, and cache it on disk if a folder is writable.

    The cache detects changes of the function's own file, but not of functions that it calls.
    """
    try:
        return cast(Function, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no writable folder
        return cast(Function, njit(nogil=True)(function))
