"""Routes of the API: the key is checked before a body is read, and a read is one transaction."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import partial, wraps
from json import JSONDecodeError
from typing import Any, ClassVar, cast

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from service.bodies import SMALL, allow_body, is_large, parse_json
from service.data.context import Context
from service.keys.access import AccessGuard, Claim
from service.keys.schemas import Caller

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ApiRoute(APIRoute):
    """A route whose endpoint may depend on a guard; `body_bytes` is the most it reads."""

    body_bytes: ClassVar[int] = SMALL

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Wrap the endpoint if it is a read that answers with JSON."""
        answers_json = isinstance(options.get("response_class"), DefaultPlaceholder | None)
        is_read = set(options.get("methods") or ()) == {"GET"}
        self._is_one_step = is_read and answers_json and not inspect.iscoroutinefunction(endpoint)
        super().__init__(
            path, self._reading(endpoint) if self._is_one_step else endpoint, **options
        )

    def get_route_handler(self) -> Handler:
        """Verify the caller, then read the body, then continue as FastAPI does."""
        handle = super().get_route_handler()
        guard = next(
            (
                each.call
                for each in self.dependant.dependencies
                if isinstance(each.call, AccessGuard)
            ),
            None,
        )
        if self._is_one_step or guard is None:
            return handle

        async def handled(request: Request) -> Response:
            request.state.caller = await run_in_threadpool(_verify_alone, guard.claim(request))
            if self.body_field is None:
                return await handle(request)
            allow_body(request, self.most_bytes(request))
            slots = cast(asyncio.Semaphore, request.app.state.large_bodies)
            async with slots if is_large(request.scope) else nullcontext():
                return await handle(await self._read(request))

        return handled

    def most_bytes(self, request: Request) -> int:
        """The largest body that this route reads."""
        return self.body_bytes

    def _reading(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        """The endpoint as one step in a thread, if it has a guard."""

        @wraps(endpoint)
        async def read(**values: Any) -> Any:
            claims = {name: each for name, each in values.items() if isinstance(each, Claim)}
            if not claims:
                return await run_in_threadpool(endpoint, **values)
            app = next(iter(claims.values())).request.app
            step = partial(self._answer, endpoint, values, claims)
            return await asyncio.get_running_loop().run_in_executor(app.state.readers, step)

        return read

    def _answer(
        self, endpoint: Callable[..., Any], values: dict[str, Any], claims: dict[str, Claim]
    ) -> Response:
        """Verify the claims and call the endpoint in one transaction; return the response as JSON."""
        context = next(iter(claims.values())).context
        with context.transaction() as work:
            values |= {name: claim.verify(work.session) for name, claim in claims.items()}
            if "context" in values:
                values["context"] = context.within(work)
            answer = endpoint(**values)
        # Without another validation: the endpoint returned an instance of its declared model.
        assert self.response_field is not None
        return Response(self.response_field.serialize_json(answer), media_type="application/json")

    async def _read(self, request: Request) -> Request:
        content = await request.body()
        if len(content) <= SMALL:
            return _JsonRequest(request, content)
        return _JsonRequest(request, content, await run_in_threadpool(self._validated, content))

    def _validated(self, content: bytes) -> Any:
        """Validate a large body as the endpoint's model, which FastAPI then uses unchanged."""
        assert self.body_field is not None
        try:
            body = parse_json(content)
        except JSONDecodeError as error:
            fault = {"type": "json_invalid", "loc": ("body", 0), "msg": error.msg}
            raise RequestValidationError([fault]) from None
        value, errors = self.body_field.validate(body, {}, loc=("body",))
        if errors:
            raise RequestValidationError(errors, body=body)
        return value


class SchemaRoute(ApiRoute):
    """A route that reads schemas, which may list many categories."""

    def most_bytes(self, request: Request) -> int:
        """The operator's limit."""
        return cast(Context, request.app.state.context).settings.max_body_bytes


class _JsonRequest(Request):
    """A request whose body was read already, and perhaps validated."""

    def __init__(self, request: Request, content: bytes, value: Any = None) -> None:
        super().__init__(request.scope, request.receive)
        self._content = content
        self._value = value

    async def body(self) -> bytes:
        return self._content

    async def json(self) -> Any:
        return parse_json(self._content) if self._value is None else self._value


def _verify_alone(claim: Claim) -> Caller:
    """Verify a claim in a transaction of its own."""
    with claim.context.transaction() as work:
        return claim.verify(work.session)
