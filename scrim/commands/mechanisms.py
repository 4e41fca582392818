"""`scrim mechanism`"""

from typing import Annotated

import typer

from scrim.commands.session import AsJson, FriendlyGroup, connected
from scrim.display import show_json, show_record, show_table
from scrim.errors import UnusableInput

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="How releases are computed.")


@app.command("list")
def list_mechanisms(as_json: AsJson = False) -> None:
    """Every mechanism that a release may name."""
    with connected() as client:
        mechanisms = client.mechanisms()
    if as_json:
        show_json(mechanisms)
        return
    show_table(
        ["name", "what it does", "answers"],
        ((each.name, each.summary, " ".join(each.query_types)) for each in mechanisms),
    )


@app.command()
def show(name: Annotated[str, typer.Argument(metavar="NAME")], as_json: AsJson = False) -> None:
    """One mechanism with its parameters, as JSON Schema."""
    with connected() as client:
        mechanisms = {each.name: each for each in client.mechanisms()}
    if name not in mechanisms:
        raise UnusableInput(f"there is no mechanism {name!r}; there are {', '.join(mechanisms)}")
    show_record(mechanisms[name], as_json=as_json)
