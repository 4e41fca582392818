"""`scrim dataset`"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress as Bar
from rich.progress import TaskID

from client.client import media_type_of
from client.commands.session import AsJson, FriendlyGroup, check, connected, find, read_json
from client.display import note, notes, show_json, show_table
from client.errors import UnusableInput
from synth.spec.schema import Schema
from synth.spec.two_level import TwoLevelSchema

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Declared tables.")


@app.command()
def upload(
    schema: Annotated[Path, typer.Option(help="JSON file that declares the columns.")],
    population: Annotated[str, typer.Option(help="Id or name of the people it is about.")],
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
        str | None, typer.Option(help="By default the name of the file, or of that of the groups.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the rows are read.")] = True,
    as_json: AsJson = False,
) -> None:
    """Declare a dataset and upload its rows (needs a curator key).

    Groups of individuals, such as households of people, are two files: --groups and --individuals.
    """
    files = _tables(file, groups, individuals)
    declared = read_json(schema)
    _check_schema(declared, schema, files)
    with connected() as client:
        owner = find(population, client.populations.list(), what="population")
        title = name or next(iter(files.values())).name
        dataset = client.datasets.create(title, declared, population_id=owner.id)
        with Bar(console=notes(), transient=True) as bar:
            for table, path in files.items():
                task = bar.add_task(f"Uploading {path.name}", total=path.stat().st_size)
                dataset = client.datasets.upload(
                    dataset.id, path, table=table, progress=_mover(bar, task)
                )
        if wait:
            with notes().status("Reading the rows against the schema"):
                dataset = client.datasets.wait(dataset.id)
    if as_json:
        show_json(dataset)
        return
    note(f"Dataset {dataset.name!r} is {dataset.state}:")
    typer.echo(dataset.id)


def _tables(
    file: Path | None, groups: Path | None, individuals: Path | None
) -> dict[str | None, Path]:
    """The files by table; the only one has no name."""
    if file is not None and groups is None and individuals is None:
        files: dict[str | None, Path] = {None: file}
    elif file is None and groups is not None and individuals is not None:
        files = {"groups": groups, "individuals": individuals}
    else:
        raise UnusableInput("give one FILE, or both --groups and --individuals")
    for path in files.values():
        if not path.is_file():
            raise UnusableInput(f"{path} is not a file")
        media_type_of(path)
    return files


def _check_schema(declared: dict[str, Any], path: Path, files: dict[str | None, Path]) -> None:
    has_groups = not {"groups", "individuals"}.isdisjoint(declared)
    if has_groups and len(files) == 1:
        raise UnusableInput(
            f"{path} declares groups and individuals; give their files as --groups and --individuals"
        )
    if not has_groups and len(files) > 1:
        raise UnusableInput(
            f"{path} declares one table; for --groups and --individuals it must have both, with their "
            "keys and max_group_size"
        )
    check(declared, TwoLevelSchema if has_groups else Schema, path)


def _mover(bar: Bar, task: TaskID) -> Callable[[int], None]:
    return lambda sent: bar.update(task, completed=sent)


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
