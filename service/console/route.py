"""What every answer of the console has: headers that keep a browser careful, and errors as pages."""

import json
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from service.console.access import SignInNeeded
from service.console.pages import page
from service.data.errors import ProblemDocument
from service.problems import answer_to

PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SIGN_IN = "/console/sign-in"


class ConsoleRoute(APIRoute):
    """A route of the console."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint, with errors turned into pages and all answers into careful ones."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                response = await handle(request)
            except Exception as error:
                response = explain(request, error)
            response.headers.update(PAGE_HEADERS)
            # What one visitor saw is not for the next one at the same machine.
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return handled


def explain(request: Request, error: Exception) -> Response:
    """A page about an error, or the way to sign in."""
    answer = answer_to(request, error)
    if "application/problem+json" in request.headers.get("accept", ""):
        return answer
    if isinstance(error, SignInNeeded):
        asked = f"?next={quote(request.url.path)}" if request.method == "GET" else ""
        return RedirectResponse(SIGN_IN + asked, status_code=303)
    found = page(request, "problem.html", status=answer.status_code, problem=problem_of(answer))
    for name in ("Retry-After",):
        if name in answer.headers:
            found.headers[name] = answer.headers[name]
    return found


def explained(request: Request, error: Exception) -> ProblemDocument:
    """A foreseen error as a problem, to be shown beside a form; any other is raised again."""
    return problem_of(answer_to(request, error))


def problem_of(answer: Response) -> ProblemDocument:
    """The problem in an answer."""
    return ProblemDocument.model_validate(json.loads(bytes(answer.body)))
