"""`scrim schema save`, `list` and `show`"""

import json
import re
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from scrim.client import Client
from scrim.commands.schemas import app
from scrim.commands.session import AsJson, connected, read_json
from scrim.display import note, show_json, show_record, show_table
from scrim.records import SavedSchema
from scrim.values import parse_schema

__all__ = ["app", "find_saved"]

_VERSION = re.compile(r"(?P<name>.+)@(?P<version>[1-9][0-9]{0,8})")

Wanted = Annotated[str, typer.Argument(metavar="SCHEMA", help="Its id, its name, or name@version.")]


@app.command()
def save(
    name: Annotated[str, typer.Argument(help="Name; in use, it gets its next version.")],
    schema: Annotated[Path, typer.Argument(help="JSON file that declares the columns.")],
    as_json: AsJson = False,
) -> None:
    """Save a schema in the service, so that datasets can reuse it (needs a curator key)."""
    declared = read_json(schema)
    parse_schema(declared, what=str(schema))
    with connected() as client:
        saved = client.schemas.save(name, declared)
    if as_json:
        show_json(saved)
        return
    note(f"Schema {saved.name!r}, version {saved.version}:")
    typer.echo(saved.id)


@app.command("list")
def list_schemas(
    name: Annotated[str | None, typer.Option(help="Only versions of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Saved schemas, newest first (needs a curator key)."""
    with connected() as client:
        found = list(client.schemas.list(name))
    if as_json:
        show_json(found)
        return
    rows = ((each.id, each.name, each.version, each.created_at) for each in found)
    show_table(["id", "name", "version", "saved"], rows)


@app.command()
def show(
    wanted: Wanted,
    output: Annotated[
        Path | None, typer.Option(help="Write the schema alone here, ready for an upload.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """One saved schema with its columns (needs a curator key)."""
    with connected() as client:
        saved = find_saved(client, wanted)
    if output is None:
        show_record(saved, as_json=as_json)
        return
    content = json.dumps(saved.declared_schema, indent=2, ensure_ascii=False)
    output.write_text(content + "\n", encoding="utf-8")
    note(f"{saved.name!r}, version {saved.version}, written to {output}.")
    if as_json:
        show_json(saved)


def find_saved(client: Client, wanted: str) -> SavedSchema:
    """A saved schema by its id, by its name (the newest version), or by name@version."""
    if _is_id(wanted):
        return client.schemas.get(wanted)
    if found := _VERSION.fullmatch(wanted):
        return client.schemas.find(found["name"], version=int(found["version"]))
    return client.schemas.find(wanted)


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
