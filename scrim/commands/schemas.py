"""`scrim schema propose`, `import` and `check`"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from scrim import schema as schemas
from scrim.commands.session import AsJson, FriendlyGroup, read_json
from scrim.display import note, show_json, show_table
from scrim.errors import UnusableInput
from scrim.form import FormReport, check_form
from scrim.spec.schema import Schema
from scrim.spec.two_level import TwoLevelSchema
from scrim.values import parse_schema

MISFIT = 2
"""Exit code of a check that found a file the service would reject."""
STAYS_HERE = (
    "The check runs on this machine and sends nothing. Counts and examples come from the rows: do not "
    "publish them."
)
FILL_IN = (
    "Fill in what is empty: the values of categories, the bounds of numbers and dates. Take them from what "
    "is public, never from private rows. Then run `scrim schema check` on this file."
)

app = typer.Typer(cls=FriendlyGroup, no_args_is_help=True, help="Declarations of tables.")

Output = Annotated[
    Path | None, typer.Option("--output", help="Write the schema here, not to standard output.")
]
Groups = Annotated[Path | None, typer.Option(help="For two-level data: the table of groups.")]
Individuals = Annotated[
    Path | None, typer.Option(help="For two-level data: the table of individuals.")
]


@app.command()
def propose(
    public_sample: Annotated[
        Path | None, typer.Option(help="A public table like yours: .csv, .csv.gz or .parquet.")
    ] = None,
    groups: Groups = None,
    individuals: Individuals = None,
    key: Annotated[
        str | None,
        typer.Option(help="The column that identifies a group; by default the shared one."),
    ] = None,
    group_key: Annotated[
        str | None, typer.Option(help="The column of the individuals that names their group.")
    ] = None,
    header: Annotated[
        str | None,
        typer.Option(help='A header line, such as "sex,age,ward": a declaration to fill in.'),
    ] = None,
    i_state_this_sample_is_public: Annotated[
        bool,
        typer.Option(
            "--i-state-this-sample-is-public",
            help="Required for samples: bounds and categories of private rows would reveal individuals.",
        ),
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Propose a schema from a public sample or a header, never from private rows. Review it before use.

    Groups of individuals are two samples: --groups and --individuals.
    """
    if header is not None and (public_sample, groups, individuals) == (None, None, None):
        note(FILL_IN)
        _write(schemas.skeleton(header), output, {"notes": [FILL_IN]} if as_json else None)
        return
    if header is not None or (public_sample is None) == (groups is None):
        raise UnusableInput(
            "give one of --public-sample, --header, or both --groups and --individuals"
        )
    if public_sample is not None and individuals is None:
        proposal = schemas.propose(public_sample, sample_is_public=i_state_this_sample_is_public)
    elif groups is not None and individuals is not None:
        proposal = schemas.propose_two_level(
            groups,
            individuals,
            key=key,
            group_key=group_key,
            sample_is_public=i_state_this_sample_is_public,
        )
    else:
        raise UnusableInput("give both --groups and --individuals")
    for text in proposal.notes:
        note(text)
    for name, reason in proposal.left_out.items():
        note(f"Left out: {name} {reason}.")
    found = {"left_out": proposal.left_out, "notes": list(proposal.notes)}
    _write(_plain(proposal.schema), output, found if as_json else None)


@app.command("import")
def import_code_book(
    file: Annotated[
        Path, typer.Argument(help="The code book: JSON, XML of DDI, or YAML of SmartNoise.")
    ],
    format: Annotated[
        schemas.CodeBook,
        typer.Option(help="Its format: csvw, ddi (Codebook), smartnoise (also Lomas) or mbi."),
    ],
    table: Annotated[
        str | None, typer.Option(help="The table or file, if the code book has several.")
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Import a schema from a code book; nothing is added to what it declares."""
    imported = schemas.from_code_book(file, format, table=table)
    protection = imported.protection and imported.protection.model_dump(exclude_none=True)
    if protection:
        note(f"It protects: {json.dumps(protection)}; create the population with the same.")
    _write(_plain(imported.schema), output, {"protection": protection} if as_json else None)


@app.command()
def check(
    file: Annotated[
        Path | None,
        typer.Argument(help="A table to compare with --schema; without it, a schema (JSON)."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="JSON file that declares the columns of the table.")
    ] = None,
    groups: Groups = None,
    individuals: Individuals = None,
    as_json: AsJson = False,
) -> None:
    """Check a schema, or a table against a schema, on this machine and without a service.

    The check of a table reads all rows, sends nothing, and says how many cells the service would change,
    with examples. Exit code 2: the service would reject the table.
    """
    if schema is None:
        if file is None or (groups, individuals) != (None, None):
            raise UnusableInput("give a schema (JSON), or a table and its --schema")
        _check_schema(file, as_json=as_json)
        return
    files: Path | dict[str, Path]
    if file is not None and (groups, individuals) == (None, None):
        files = file
    elif file is None and groups is not None and individuals is not None:
        files = {"groups": groups, "individuals": individuals}
    else:
        raise UnusableInput("give one table, or both --groups and --individuals")
    note(STAYS_HERE)
    declared = parse_schema(read_json(schema), what=str(schema))
    report = check_form(files, declared)
    if as_json:
        show_json(_as_dict(report))
    else:
        _show(report)
    if not report.fits:
        raise typer.Exit(MISFIT)


def _check_schema(file: Path, *, as_json: bool) -> None:
    """Check a schema alone, and show how many codes each column has."""
    flat = parse_schema(read_json(file), what=str(file)).linked
    if as_json:
        show_json({"ok": True, "codes": flat.sizes})
        return
    show_table(
        ["column", "type", "codes"],
        ((each.name, each.type, flat.sizes.get(each.name)) for each in flat.columns),
    )


def _show(report: FormReport) -> None:
    for table in report.tables:
        title = "" if table.name == "rows" else f"{table.name}: "
        for fault in table.faults:
            typer.echo(f"{title}would be rejected: {fault}.")
        if table.faults:
            continue
        typer.echo(f"{title}{table.rows:,} rows, {len(table.columns):,} declared columns.")
        if table.ignored:
            typer.echo(f"{title}ignored, not declared: {', '.join(table.ignored)}.")
        for text in [*table.remarks, *(s for each in table.columns for s in each.sentences())]:
            typer.echo(f"{title}{text}.")
    if report.fits:
        cells = "Every cell fits" if not report.outside else f"{report.outside:,} cells do not fit"
        typer.echo(f"The service would accept the table. {cells} the schema.")


def _as_dict(report: FormReport) -> dict[str, Any]:
    return {
        "fits": report.fits,
        "outside": report.outside,
        "tables": [
            {
                "table": table.name,
                "rows": table.rows,
                "ignored": table.ignored,
                "remarks": table.remarks,
                "faults": table.faults,
                "columns": [
                    {
                        "name": each.column.name,
                        "cells": dict(each.counts),
                        "examples": each.examples,
                    }
                    for each in table.columns
                ],
            }
            for table in report.tables
        ],
    }


def _plain(schema: Schema | TwoLevelSchema) -> dict[str, Any]:
    return schema.model_dump(mode="json", exclude_none=True)


def _write(content: dict[str, Any], output: Path | None, found: dict[str, Any] | None) -> None:
    """Write the schema, ready for an upload; `found` is added to the JSON output."""
    if output is None:
        show_json(content if found is None else {"schema": content} | found)
        return
    output.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    note(f"Written to {output}.")
    if found is not None:
        show_json({"file": str(output)} | found)
