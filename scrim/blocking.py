"""Every call is written once, as a coroutine, for both clients.

The coroutines await only their wire (`scrim/wire.py`). An asynchronous wire suspends them.
A blocking wire never does, so a coroutine on it runs from start to end like an ordinary call. It needs
no event loop, and can be used while one is running.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def finish(call: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine whose wire blocks."""
    try:
        call.send(None)
    except StopIteration as ended:
        answer: Answer = ended.value
        return answer
    call.close()
    raise AssertionError("a call on a blocking wire was suspended")


def blocking(
    method: Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[Any, Arguments], Answer]:
    """Turn a coroutine method into a blocking one of an object whose `_calls` use a blocking wire."""

    @wraps(method)
    def call(self: Any, /, *args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        return finish(method(self._calls, *args, **options))

    return call


def blocking_each(
    method: Callable[Concatenate[Any, Arguments], AsyncGenerator[Answer, None]],
) -> Callable[Concatenate[Any, Arguments], Iterator[Answer]]:
    """As `blocking`, for asynchronous generators."""

    @wraps(method)
    def call(self: Any, /, *args: Arguments.args, **options: Arguments.kwargs) -> Iterator[Answer]:
        things = method(self._calls, *args, **options)
        try:
            while True:
                yield finish(things.asend(None))
        except StopAsyncIteration:
            return
        finally:
            finish(things.aclose())

    return call


def of_its_own(
    method: Callable[Concatenate[Any, str, Arguments], Answer],
) -> Callable[Concatenate[Any, Arguments], Answer]:
    """Turn a method that takes an id into a method of a record that has that id."""

    @wraps(method)
    def call(self: Any, /, *args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        return method(self._home, self.id, *args, **options)

    return call
