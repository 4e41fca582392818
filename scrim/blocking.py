"""Every call is written once, as a coroutine, and made in two ways.

The coroutines wait for nothing but their wire (`scrim/wire.py`). An asynchronous wire suspends them
like any other. A blocking wire never does, so that a coroutine on it runs from its start to its end
in one go: an ordinary call, which needs no event loop and may be made beside a running one.
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
    """The same method of an object that has the calls, on a blocking wire, as `_calls`."""

    @wraps(method)
    def call(self: Any, /, *args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        return finish(method(self._calls, *args, **options))

    return call


def blocking_each(
    method: Callable[Concatenate[Any, Arguments], AsyncGenerator[Answer, None]],
) -> Callable[Concatenate[Any, Arguments], Iterator[Answer]]:
    """As `blocking`, for methods that yield one thing after the other."""

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
    """A method that takes an id, as one of a thing that knows its id and where it is kept."""

    @wraps(method)
    def call(self: Any, /, *args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        return method(self._home, self.id, *args, **options)

    return call
