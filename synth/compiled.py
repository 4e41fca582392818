"""Functions compiled to machine code, kept on disk for other processes where there is a place."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_on_disk(function: Function) -> Function:
    """A function that Python calls, compiled once for all processes if there is a place to keep it.

    What is kept notices changes of the function's own file, and not of others that it calls.
    """
    try:
        return cast(Function, njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no folder that may be written
        return cast(Function, njit(nogil=True)(function))
