"""`scrim release`"""

import csv
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from scrim.client import Client
from scrim.commands.forecasts import show_curve, show_needed, show_preview, show_warnings
from scrim.commands.session import AsJson, FriendlyGroup, check, connected, find, read_json
from scrim.display import note, notes, show_json, show_record, show_table
from scrim.errors import UnusableInput
from scrim.records import Release
from scrim.spec.preview import PreviewRequest
from scrim.spec.release import ReleaseRequest

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Releases and their files.")

Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="JSON file with the release's body.")]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", help="Id or name of the dataset, if not in SPEC.")
]
ReleaseId = Annotated[str, typer.Argument(metavar="ID")]
COMPARED = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Epsilons that `scrim release plan` compares if none are given."""
Timeout = Annotated[float | None, typer.Option(help="Longest wait in seconds.")]


@app.command()
def preview(spec: Spec, dataset: DatasetOption = None, as_json: AsJson = False) -> None:
    """Show the cost of a release; uses neither data nor budget (needs a curator key)."""
    with connected() as client:
        found = client.releases.preview(_body(client, spec, dataset, PreviewRequest))
    show_preview(found, as_json=as_json)


@app.command()
def plan(
    spec: Spec,
    dataset: DatasetOption = None,
    epsilons: Annotated[
        list[float] | None, typer.Option("--epsilon", help="Epsilon to compare; repeat it.")
    ] = None,
    mean_total_variation: Annotated[
        float | None, typer.Option(help="Target: mean total variation of the asked tables.")
    ] = None,
    mean_absolute_error: Annotated[
        float | None,
        typer.Option(help="Target: mean error of all answers, as a share of the rows."),
    ] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Target: largest error, as a share of the rows.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare budgets, and find the one for an accuracy; uses no budget (needs a curator key)."""
    wanted = {
        "mean_total_variation": mean_total_variation,
        "mean_absolute_error": mean_absolute_error,
        "max_error": max_error,
    }
    target = {name: value for name, value in wanted.items() if value is not None}
    compared = [{"epsilon": epsilon} for epsilon in epsilons or COMPARED]
    with connected() as client:
        body = _body(client, spec, dataset, PreviewRequest) | {"budgets": compared}
        found = client.releases.preview(body | ({"target": target} if target else {}))
    if as_json:
        show_json(found)
        return
    show_curve(found)
    if target:
        show_needed(found)


@app.command()
def submit(
    spec: Spec,
    dataset: DatasetOption = None,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview", help="Show the cost and the expected accuracy, and submit nothing."
        ),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends.")] = False,
    timeout: Timeout = None,
    publish: Annotated[bool, typer.Option("--publish", help="Show it to analysts.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Run on rows generated from the schema: no data, no budget."
        ),
    ] = False,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="Idempotency key: a repeated command with it creates nothing new."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Queue a release (needs a curator key)."""
    flags = {"publish": publish, "dry_run": dry_run}
    with connected() as client:
        body = _body(client, spec, dataset) | {name: True for name, on in flags.items() if on}
        if preview:
            show_preview(client.releases.preview(body), as_json=as_json)
            return
        release = client.releases.submit(body, idempotency_key=idempotency_key)
        show_warnings(release.warnings)
        if release.choice is not None:
            note(f"Chosen by auto: {release.mechanism['name']}.")
        if wait:
            note(f"Release {release.id} is {release.state}.")
            known = release.warnings
            release = release.wait(timeout=timeout)
            show_warnings([each for each in release.warnings if each not in known])
    if as_json:
        show_json(release)
        return
    note(f"Release is {release.state}, {release.rho_spent:.6g} rho spent:")
    typer.echo(release.id)


@app.command()
def wait(release_id: ReleaseId, timeout: Timeout = None, as_json: AsJson = False) -> None:
    """Wait until a release has ended, and show its progress."""
    with connected() as client:
        release = client.releases.wait(release_id, timeout=timeout)
    if as_json:
        show_json(release)
    note(f"Release is {release.state}, {release.rho_spent:.6g} rho spent.")


@app.command()
def events(
    release_id: ReleaseId,
    after: Annotated[int, typer.Option(help="Only events after this number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Print the events of a release, one per line, until it ends."""
    with connected() as client:
        for event in client.releases.events(release_id, after=after):
            if as_json:
                typer.echo(event.model_dump_json())
            else:
                typer.echo(f"{event.id} {event.kind} {json.dumps(event.data)}")


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
def show(release_id: ReleaseId, as_json: AsJson = False) -> None:
    """One release: its request, progress, cost and results."""
    with connected() as client:
        release = client.releases.get(release_id)
    if release.quality is not None and not as_json:
        typer.echo(release.quality.summary)
    show_record(release, as_json=as_json)


@app.command()
def download(
    release_id: ReleaseId,
    folder: Annotated[Path, typer.Option("--output", help="Folder for the files.")] = Path(),
    name: Annotated[
        list[str] | None, typer.Option(help="Only this file; repeat for several.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download the files of a release and check their digests."""
    with connected() as client, notes().status("Downloading"):
        paths = client.releases.download(release_id, folder, names=name or None)
    if as_json:
        show_json({name: str(path) for name, path in paths.items()})
        return
    for path in paths.values():
        typer.echo(path)


@app.command()
def cancel(release_id: ReleaseId, as_json: AsJson = False) -> None:
    """Cancel a release; its unspent budget is returned (needs a curator key)."""
    with connected() as client:
        release = client.releases.cancel(release_id)
    if as_json:
        show_json(release)
    stopping = "" if release.is_over else "; it stops within seconds"
    note(f"Release is {release.state}{stopping}.")


@app.command()
def resume(release_id: ReleaseId, as_json: AsJson = False) -> None:
    """Resume a failed release from its journal, at no further cost (needs an admin key)."""
    with connected() as client:
        release = client.releases.resume(release_id)
    if as_json:
        show_json(release)
    note(f"Release is {release.state}.")


@app.command()
def publish(release_id: ReleaseId, as_json: AsJson = False) -> None:
    """Make a release visible to analysts (needs a curator key)."""
    with connected() as client:
        release = client.releases.publish(release_id)
    if as_json:
        show_json(release)
    note("Release is published.")


@app.command()
def answers(
    release_id: ReleaseId,
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD", help='JSON file with {"workload": [...]}; a SPEC is one.'
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Ask the released model, at no cost (needs an analyst key)."""
    asked = read_json(workload).get("workload")
    if not isinstance(asked, list):
        raise UnusableInput(f"{workload} must hold a list called workload")
    with connected() as client:
        found = client.releases.answers(release_id, asked)
    if as_json:
        show_json(found)
        return
    show_table(
        ["query", "share", "standard error", "count", "standard error", "basis"],
        (
            (
                each.query,
                each.value,
                each.standard_error,
                each.count,
                each.count_standard_error,
                each.basis,
            )
            for each in found
        ),
    )


@app.command()
def sample(
    release_id: ReleaseId,
    rows: Annotated[int, typer.Option(help="Number of rows (of groups, for two-level data).")],
    as_json: AsJson = False,
) -> None:
    """Draw more rows from the released model, as CSV, at no cost (needs an analyst key)."""
    with connected() as client:
        drawn = client.releases.samples(release_id, rows)
    if as_json:
        show_json({"rows": list(csv.DictReader(io.StringIO(drawn)))})
        return
    typer.echo(drawn, nl=False)


def _body(
    client: Client,
    spec: Path,
    dataset: str | None,
    kind: type[ReleaseRequest] = ReleaseRequest,
) -> dict[str, Any]:
    """Read the body from a file, and add the dataset if it was given as an option."""
    body = read_json(spec)
    if dataset is not None:
        body["dataset_id"] = find(dataset, client.datasets.list(), what="dataset").id
    check(body, kind, spec)
    return body


def _row(release: Release) -> tuple[object, ...]:
    progress = f"{release.progress.done}/{release.progress.total}"
    files = " ".join(artifact.name for artifact in release.artifacts)
    published = "yes" if release.published else "no"
    return (release.id, release.state, progress, release.rho_spent, published, files)
