"""`scrim key`"""

from datetime import UTC, datetime
from typing import Annotated

import typer

from scrim.commands.session import AsJson, FriendlyGroup, connected
from scrim.display import note, show_json, show_table

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="API keys (needs an admin key).")


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Who or what will use it.")],
    scope: Annotated[
        list[str], typer.Option(help="admin, curator or analyst; repeat for several.")
    ],
    expires: Annotated[
        datetime | None, typer.Option(help="When the key expires, in UTC; by default never.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a key. Its secret is printed only once."""
    moment = expires and expires.replace(tzinfo=UTC)
    with connected() as client:
        key = client.keys.create(name, scope, expires_at=moment)
    if as_json:
        show_json(key)
        return
    note(f"Key {key.id} for {name!r}; keep it, it is not shown again:")
    typer.echo(key.key)


@app.command("list")
def list_keys(as_json: AsJson = False) -> None:
    """All keys, without their secrets."""
    with connected() as client:
        keys = list(client.keys.list())
    if as_json:
        show_json(keys)
        return
    show_table(
        ["id", "name", "scopes", "state"],
        (
            (key.id, key.name, " ".join(key.scopes), "revoked" if key.revoked_at else "active")
            for key in keys
        ),
    )


@app.command()
def revoke(key_id: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Revoke a key. It stops working immediately."""
    with connected() as client:
        client.keys.revoke(key_id)
    if as_json:
        show_json({"id": key_id, "state": "revoked"})
    note(f"Key {key_id} is revoked.")
