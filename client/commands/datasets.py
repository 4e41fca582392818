"""`scrim dataset`"""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress as Bar

from client.client import media_type_of
from client.commands.session import AsJson, FriendlyGroup, check, connected, find, read_json
from client.display import note, notes, show_json, show_table
from client.errors import UnusableInput
from synth.spec.schema import Schema

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Declared tables.")


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(help="The table: .csv, .csv.gz or .parquet.")],
    schema: Annotated[Path, typer.Option(help="JSON file that declares the columns.")],
    population: Annotated[str, typer.Option(help="Id or name of the people it is about.")],
    name: Annotated[str | None, typer.Option(help="By default the file's name.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the rows are read.")] = True,
    as_json: AsJson = False,
) -> None:
    """Declare a dataset and upload its rows (needs a curator key)."""
    if not file.is_file():
        raise UnusableInput(f"{file} is not a file")
    media_type_of(file)
    declared = read_json(schema)
    check(declared, Schema, schema)
    with connected() as client:
        owner = find(population, client.populations.list(), what="population")
        dataset = client.datasets.create(name or file.name, declared, population_id=owner.id)
        with Bar(console=notes(), transient=True) as bar:
            task = bar.add_task(f"Uploading {file.name}", total=file.stat().st_size)
            dataset = client.datasets.upload(
                dataset.id, file, progress=lambda sent: bar.update(task, completed=sent)
            )
        if wait:
            with notes().status("Reading the rows against the schema"):
                dataset = client.datasets.wait(dataset.id)
    if as_json:
        show_json(dataset)
        return
    note(f"Dataset {dataset.name!r} is {dataset.state}:")
    typer.echo(dataset.id)


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """All datasets: never their rows, nor the number of rows."""
    with connected() as client:
        datasets = list(client.datasets.list())
    if as_json:
        show_json(datasets)
        return
    show_table(
        ["id", "name", "visibility", "state", "reason"],
        ((each.id, each.name, each.visibility, each.state, each.reason) for each in datasets),
    )


@app.command()
def delete(dataset_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Destroy the rows of a dataset. What was spent on them stays spent."""
    with connected() as client:
        client.datasets.delete(dataset_id)
    note(f"Dataset {dataset_id} is deleted.")
