"""`scrim dataset`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from scrim.commands.saved_schemas import find_saved
from scrim.commands.session import AsJson, FriendlyGroup, connected, find, read_json
from scrim.datasets import checked_file
from scrim.display import note, show_json, show_record, show_table
from scrim.errors import UnusableInput
from scrim.values import parse_schema

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Declared tables.")

Tables = Path | dict[str, Path]
DatasetId = Annotated[str, typer.Argument(metavar="ID")]


@app.command()
def upload(
    schema: Annotated[
        Path | None, typer.Option(help="JSON file that declares the columns.")
    ] = None,
    schema_id: Annotated[
        str | None,
        typer.Option(help="A saved schema instead: its id, its name, or name@version."),
    ] = None,
    population: Annotated[
        str | None, typer.Option(help="Id or name of the population, for private rows.")
    ] = None,
    provenance: Annotated[
        str | None,
        typer.Option(
            help="Where public rows were published; states that no protected person is in them."
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(help="The table: .csv, .csv.gz or .parquet.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="For two-level data: the table of groups.")
    ] = None,
    individuals: Annotated[
        Path | None, typer.Option(help="For two-level data: the table of individuals.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the dataset; by default the file's name (of the groups, for two files)."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the rows are read.")] = True,
    as_json: AsJson = False,
) -> None:
    """Declare a dataset and upload its rows (needs a curator key).

    Groups of individuals, such as households of people, are two files: --groups and --individuals.
    """
    files = _tables(file, groups, individuals)
    if (schema is None) == (schema_id is None):
        raise UnusableInput("give exactly one of --schema and --schema-id")
    declared = None if schema is None else read_json(schema)
    if declared is not None:
        _check_tables(declared, str(schema), files)
    if (population is None) == (provenance is None):
        raise UnusableInput("give --population for private rows, or --provenance for public ones")
    with connected() as client:
        saved = schema_id and find_saved(client, schema_id)
        if saved:
            _check_tables(saved.declared_schema or {}, f"schema {saved.name!r}", files)
        owner = population and find(population, client.populations.list(), what="population").id
        dataset = client.datasets.upload(
            files,
            schema=saved or declared or {},
            population=owner,
            provenance=provenance,
            name=name,
            wait=wait,
        )
    if as_json:
        show_json(dataset)
        return
    note(f"Dataset {dataset.name!r} is {dataset.state}:")
    typer.echo(dataset.id)


def _tables(file: Path | None, groups: Path | None, individuals: Path | None) -> Tables:
    """The only table, or the two of them by name."""
    if file is not None and groups is None and individuals is None:
        return file
    if file is None and groups is not None and individuals is not None:
        return {"groups": groups, "individuals": individuals}
    raise UnusableInput("give one FILE, or both --groups and --individuals")


def _check_tables(declared: dict[str, Any], what: str, files: Tables) -> None:
    """Check the files before anything is sent."""
    for file in [files] if isinstance(files, Path) else files.values():
        checked_file(file)
    is_two_level = parse_schema(declared, what=what).is_linked
    if is_two_level and isinstance(files, Path):
        raise UnusableInput(
            f"{what} declares groups and individuals; give their files as --groups and --individuals"
        )
    if not is_two_level and not isinstance(files, Path):
        raise UnusableInput(
            f"{what} declares one table; for --groups and --individuals it must have both, with their "
            "keys and max_group_size"
        )


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
def show(dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """One dataset with its declared schema."""
    with connected() as client:
        show_record(client.datasets.get(dataset_id), as_json=as_json)


@app.command()
def wait(
    dataset_id: DatasetId,
    timeout: Annotated[float, typer.Option(help="Longest wait in seconds.")] = 3600,
    as_json: AsJson = False,
) -> None:
    """Wait until the rows are read."""
    with connected() as client:
        dataset = client.datasets.wait(dataset_id, timeout=timeout)
    if as_json:
        show_json(dataset)
    note(f"Dataset {dataset.name!r} is {dataset.state}.")


@app.command()
def delete(dataset_id: DatasetId, as_json: AsJson = False) -> None:
    """Destroy the rows of a dataset. What was spent on them stays spent."""
    with connected() as client:
        client.datasets.delete(dataset_id)
    if as_json:
        show_json({"id": dataset_id, "state": "deleted"})
    note(f"Dataset {dataset_id} is deleted.")
