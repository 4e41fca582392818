"""Compiled functions work where nothing can be kept on disk."""

from collections.abc import Callable
from typing import Any

import pytest

from synth import compiled as module


@pytest.mark.parametrize("may_write", [True, False])
def test_compiled_functions_need_no_folder(
    may_write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def njit(*, nogil: bool, cache: bool = False) -> Callable[[Any], Any]:
        tried.append(cache)
        if cache and not may_write:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(module, "njit", njit)

    @module.kept_on_disk
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert tried == ([True] if may_write else [True, False])
