"""`scrim release`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from client.client import Client
from client.commands.session import AsJson, FriendlyGroup, check, connected, find, read_json
from client.display import note, notes, progress_bar, show_json, show_table
from client.records import Preview, Release
from synth.spec.release import ReleaseRequest

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Releases and their files.")

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="JSON file with the release's body.")]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="Id or name of the dataset, if not in SPEC.")
]
ReleaseId = Annotated[str, typer.Argument(metavar="ID")]


@app.command()
def preview(spec: Spec, dataset: DatasetOption = None, as_json: AsJson = False) -> None:
    """What a release would cost; touches neither data nor budget (needs a curator key)."""
    with connected() as client:
        found = client.releases.preview(_body(client, spec, dataset))
    if as_json:
        show_json(found)
        return
    _show_preview(found)


@app.command()
def submit(
    spec: Spec,
    dataset: DatasetOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    timeout: Annotated[float | None, typer.Option(help="Longest wait in seconds.")] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Show it to analysts.")] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeat the command with it, and nothing is made twice.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Queue a release (needs a curator key)."""
    with connected() as client:
        body = _body(client, spec, dataset) | ({"publish": True} if publish else {})
        release = client.releases.submit(body, idempotency_key=idempotency_key)
        if wait:
            note(f"Release {release.id} is {release.state}.")
            release = _await(client, release.id, timeout)
    if as_json:
        show_json(release)
        return
    note(f"Release is {release.state}, {release.rho_spent:.6g} rho spent:")
    typer.echo(release.id)


@app.command()
def wait(
    release_id: ReleaseId,
    timeout: Annotated[float | None, typer.Option(help="Longest wait in seconds.")] = None,
) -> None:
    """Wait until a release has ended, and show its progress."""
    with connected() as client:
        release = _await(client, release_id, timeout)
    note(f"Release is {release.state}, {release.rho_spent:.6g} rho spent.")


@app.command("list")
def list_releases(as_json: AsJson = False) -> None:
    """The releases that your key may see."""
    with connected() as client:
        releases = list(client.releases.list())
    if as_json:
        show_json(releases)
        return
    show_table(["id", "state", "progress", "rho spent", "published", "files"], map(_row, releases))


@app.command()
def show(release_id: ReleaseId) -> None:
    """One release, as JSON."""
    with connected() as client:
        show_json(client.releases.get(release_id))


@app.command()
def download(
    release_id: ReleaseId,
    folder: Annotated[Path, typer.Option("--output", help="Folder for the files.")] = Path(),
    name: Annotated[
        list[str] | None, typer.Option(help="Only this file; give it several times for more.")
    ] = None,
) -> None:
    """Download the files of a release and check their digests."""
    with connected() as client, notes().status("Downloading"):
        paths = client.releases.download(release_id, folder, names=name or None)
    for path in paths.values():
        typer.echo(path)


@app.command()
def cancel(release_id: ReleaseId) -> None:
    """Give a release up; what it has not spent returns (needs a curator key)."""
    with connected() as client:
        release = client.releases.cancel(release_id)
    stopping = "" if release.is_over else "; it stops at its next step"
    note(f"Release is {release.state}{stopping}.")


@app.command()
def publish(release_id: ReleaseId) -> None:
    """Make a release visible to analysts (needs a curator key)."""
    with connected() as client:
        client.releases.publish(release_id)
    note("Release is published.")


@app.command()
def sample(
    release_id: ReleaseId,
    rows: Annotated[int, typer.Option(help="How many rows; groups, for two-level data.")],
) -> None:
    """Draw more rows from the released model, as CSV, free (needs an analyst key)."""
    with connected() as client:
        typer.echo(client.releases.samples(release_id, rows), nl=False)


def _body(client: Client, spec: Path, dataset: str | None) -> dict[str, Any]:
    """The body in a file, with the dataset that was named beside it."""
    body = read_json(spec)
    if dataset is not None:
        body["dataset_id"] = find(dataset, client.datasets.list(), what="dataset").id
    check(body, ReleaseRequest, spec)
    return body


def _await(client: Client, release_id: str, timeout: float | None) -> Release:
    with progress_bar("Working") as move:
        return client.releases.wait(release_id, progress=move, timeout=timeout)


def _row(release: Release) -> tuple[object, ...]:
    progress = f"{release.progress.done}/{release.progress.total}"
    files = " ".join(artifact.name for artifact in release.artifacts)
    published = "yes" if release.published else "no"
    return (release.id, release.state, progress, release.rho_spent, published, files)


def _show_preview(found: Preview) -> None:
    show_table(
        ["rho", "epsilon", "rho left after", "queries", "operations"],
        [(found.rho, found.epsilon, found.rho_left_after, found.queries, found.operations)],
    )
    show_table(
        ["item", "queries", "noise (sigma, counts)", "expected error (counts)"],
        ((each.item, each.queries, each.sigma, each.expected_error) for each in found.items),
    )
    for warning in found.warnings:
        note(f"Note: {warning}")
