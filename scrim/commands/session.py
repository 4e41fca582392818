"""Shared code of all commands: service and key from the environment, input files, errors."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from scrim.client import Client
from scrim.display import show_error
from scrim.errors import ScrimError, UnusableInput
from scrim.records import Dataset, Population

NOT_VERIFIED = 5
"""Exit code if files, a certificate or a ledger are not as released."""
DEFAULT_URL = "http://127.0.0.1:8000"

Named = TypeVar("Named", Population, Dataset)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class FriendlyGroup(typer.core.TyperGroup):
    """Commands that print expected errors as sentences and exit with a code for each kind."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and print expected errors."""
        try:
            return super().invoke(ctx)
        except ScrimError as error:
            show_error(error)
            raise typer.Exit(error.exit_code) from None


@contextmanager
def connected() -> Iterator[Client]:
    """A client for SCRIM_URL with the key in SCRIM_KEY."""
    key = os.environ.get("SCRIM_KEY", "").strip()
    if not key:
        raise UnusableInput(
            "set SCRIM_KEY to your API key; the first one is in admin.key of the data folder, and "
            "`scrim key create` makes others"
        )
    if not key.isascii() or not key.isprintable():
        raise UnusableInput("SCRIM_KEY is not an API key")
    with Client(os.environ.get("SCRIM_URL") or DEFAULT_URL, key) as client:
        yield client


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise UnusableInput(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise UnusableInput(f"{path} must hold a JSON object")
    return content


def check(content: dict[str, Any], model: type[BaseModel], path: Path) -> None:
    """Check the content before anything is sent."""
    try:
        model.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise UnusableInput.of(str(path), error, content) from None


def find(wanted: str, things: Iterable[Named], *, what: str) -> Named:
    """Find a resource by its id, or by its name if the name is unique."""
    listed = list(things)
    found = [thing for thing in listed if wanted == thing.id]
    found = found or [thing for thing in listed if wanted == thing.name]
    if len(found) > 1:
        raise UnusableInput(f"{len(found)} {what}s are called {wanted!r}; give the id instead")
    if not found:
        raise UnusableInput(f"there is no {what} {wanted!r}; see `scrim {what} list`")
    return found[0]
