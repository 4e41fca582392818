"""Security headers of every console response, and errors shown as pages."""

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
        """Wrap the endpoint: errors become pages, and every response gets the security headers."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                response = await handle(request)
            except Exception as error:
                response = explain(request, error)
            response.headers.update(PAGE_HEADERS)
            # The next user of the same machine must not see pages of this visitor.
            response.headers.setdefault("Cache-Control", "no-store")
            return response

        return handled


def explain(request: Request, error: Exception) -> Response:
    """Return a page about an error, or a redirect to sign in."""
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
    """Return an expected error as a problem to show beside a form; re-raise any other."""
    return problem_of(answer_to(request, error))


def problem_of(answer: Response) -> ProblemDocument:
    """The problem in a response."""
    return ProblemDocument.model_validate(json.loads(bytes(answer.body)))
