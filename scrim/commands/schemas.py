"""`scrim schema`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from scrim import schema as schemas
from scrim.commands.session import AsJson, FriendlyGroup, read_json
from scrim.display import note, show_json, show_table
from scrim.spec.schema import Schema
from scrim.values import parse_schema

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Declarations of tables.")

Output = Annotated[
    Path | None, typer.Option("--output", help="Write the schema here, not to standard output.")
]


@app.command()
def propose(
    public_sample: Annotated[
        Path, typer.Option(help="A public table like yours: .csv, .csv.gz or .parquet.")
    ],
    i_state_this_sample_is_public: Annotated[
        bool,
        typer.Option(
            "--i-state-this-sample-is-public",
            help="Required: bounds and categories of private rows would reveal individuals.",
        ),
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema from a public sample, never from private rows. Review it before use."""
    proposal = schemas.propose(public_sample, sample_is_public=i_state_this_sample_is_public)
    for text in proposal.notes:
        note(text)
    for name, reason in proposal.left_out.items():
        note(f"Left out: {name} {reason}.")
    found = {"left_out": proposal.left_out, "notes": list(proposal.notes)}
    _write(proposal.schema, output, found if as_json else None)


@app.command("import")
def import_code_book(
    file: Annotated[Path, typer.Argument(help="The code book: JSON, or YAML of SmartNoise.")],
    format: Annotated[
        schemas.CodeBook, typer.Option(help="Its format: csvw, smartnoise (also Lomas) or mbi.")
    ],
    table: Annotated[
        str | None, typer.Option(help="The table, if the code book has several.")
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Import a schema from a code book; nothing is added to what it declares."""
    imported = schemas.from_code_book(file, format, table=table)
    protection = imported.protection and imported.protection.model_dump(exclude_none=True)
    if protection:
        note(f"It protects: {json.dumps(protection)}; create the population with the same.")
    _write(imported.schema, output, {"protection": protection} if as_json else None)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="JSON file with a schema.")], as_json: AsJson = False
) -> None:
    """Check a schema without a service, and show how many codes each column has."""
    declared = parse_schema(read_json(file), what=str(file))
    flat = declared.linked
    if as_json:
        show_json({"ok": True, "codes": flat.sizes})
        return
    show_table(
        ["column", "type", "codes"],
        ((each.name, each.type, flat.sizes.get(each.name)) for each in flat.columns),
    )


def _write(schema: Schema, output: Path | None, found: dict[str, Any] | None) -> None:
    """Write the schema, ready for an upload; `found` is added to the JSON output."""
    content = schema.model_dump(mode="json", exclude_none=True)
    if output is None:
        show_json(content if found is None else {"schema": content} | found)
        return
    output.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    note(f"Written to {output}.")
    if found is not None:
        show_json({"file": str(output)} | found)
