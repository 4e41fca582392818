"""Why a release failed, as everybody may read it."""

from typing import Any


def problem(kind: str, detail: str) -> dict[str, Any]:
    """A problem, named as in the service's answers; it never holds a value of a row."""
    return {"type": f"/problems/{kind}", "detail": detail}
