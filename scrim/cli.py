"""The `scrim` command."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from scrim import __version__
from scrim.commands import datasets, keys, mechanisms, populations, releases
from scrim.commands.saved_schemas import app as schemas_app
from scrim.commands.session import NOT_VERIFIED, AsJson, FriendlyGroup
from scrim.demo import run_demo
from scrim.display import output, show_json
from scrim.errors import UnusableInput
from scrim.stack import become_stack
from scrim.verify import Report
from scrim.verify import verify as verify_certificate

EPILOG = (
    "SCRIM_URL names the service (default http://127.0.0.1:8000), SCRIM_KEY holds your API key. "
    "Exit codes: 0 success, 1 refused, 2 invalid input, 3 service unreachable, 4 job ended without "
    "results, 5 files or certificate not as released."
)

app = typer.Typer(
    cls=FriendlyGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    help="Differentially private data release: synthetic data and noisy answers.",
    epilog=EPILOG,
)
app.add_typer(keys.app, name="key")
app.add_typer(populations.app, name="population")
app.add_typer(schemas_app, name="schema")
app.add_typer(datasets.app, name="dataset")
app.add_typer(mechanisms.app, name="mechanism")
app.add_typer(releases.app, name="release")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"scrim {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that come before every command."""


@app.command()
def up(
    data_dir: Annotated[Path, typer.Option(help="Folder for all data of the service.")] = Path(
        "scrim-data"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 8000,
) -> None:
    """Start the whole service on this machine, with its own Postgres and Valkey. Ctrl-C stops it."""
    become_stack(data_dir, port)


@app.command()
def demo(
    output_folder: Annotated[
        Path, typer.Option("--output", help="Folder for the released files.")
    ] = Path("demo-output"),
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the service's data in this folder; by default it is deleted."),
    ] = None,
) -> None:
    """Turn a fictional hospital table into certified synthetic data, in about a minute."""
    run_demo(output_folder, data_dir=data_dir)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="certificate.json of a release.")],
    files: Annotated[list[Path] | None, typer.Argument(help="Files of the release.")] = None,
    public_key: Annotated[
        str | None,
        typer.Option(help="The service's public key, in base64 or as a file that holds it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate and the files it lists, offline."""
    if not certificate.is_file():
        raise UnusableInput(f"{certificate} is not a file")
    expected = _read_key(public_key) if public_key else None
    report = verify_certificate(certificate, files or [], public_key=expected)
    if as_json:
        show_json(_as_dict(report))
    else:
        _show(report, is_pinned=expected is not None)
    if not report.ok:
        raise typer.Exit(NOT_VERIFIED)


def main() -> None:
    """Run the command."""
    app(prog_name="scrim")


def _read_key(given: str) -> str:
    """Return the given key, or the content of the file that it names."""
    path = Path(given)
    return path.read_text().strip() if path.is_file() else given


def _as_dict(report: Report) -> dict[str, object]:
    return {
        "ok": report.ok,
        "checks": [vars(check) for check in report.checks],
        "public_key": report.public_key,
        "unchecked": list(report.unchecked),
        "certificate": report.certificate,
    }


def _show(report: Report, *, is_pinned: bool) -> None:
    console = output()
    for check in report.checks:
        mark = "[green]ok [/]" if check.ok else "[bold red]BAD[/]"
        console.print(f"{mark} {escape(check.subject)}: {escape(check.finding)}", soft_wrap=True)
    if report.unchecked:
        console.print(f"[dim]not given: {escape(', '.join(report.unchecked))}[/]", soft_wrap=True)
    if report.ok and report.guarantee is not None:
        console.print(escape(f"Guarantee: {report.guarantee}"), soft_wrap=True)
    if report.ok and not is_pinned:
        console.print(
            "[dim]A certificate does not prove whose key signed it: compare the key with the service's, "
            "or give --public-key.[/]",
            soft_wrap=True,
        )


if __name__ == "__main__":
    main()
