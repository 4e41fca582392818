"""Schemas from what is public: a public sample, or a code book. Never from private rows.

Bounds and categories taken from private rows reveal information about individuals: the largest income
belongs to one person. No noise covers them, so a sample needs the statement that it is public.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from scrim.errors import UnusableInput
from scrim.frames import Frame, require
from scrim.importers import Imported, from_csvw_eo, from_mbi_domain, from_smartnoise
from scrim.samples import read_sample
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema

CodeBook = Literal["csvw", "smartnoise", "mbi"]
"""CSVW metadata with its eyes-off extension, metadata of SmartNoise or Lomas, a domain of mbi."""

REVIEW = (
    "Bounds and categories come from the sample alone: review every one of them. Private values "
    "outside are clamped, or become `other`, and Scrim does not report how many."
)


@dataclass(frozen=True)
class Proposal:
    """A proposed schema, and notes for its review."""

    schema: Schema
    left_out: dict[str, str]
    """Columns that were not declared, and why."""
    notes: tuple[str, ...]
    """What to review."""


def propose(sample: "str | PathLike[str] | Frame", *, sample_is_public: bool = False) -> Proposal:
    """Propose a schema for tables like a public sample, which is a file or a data frame."""
    if not sample_is_public:
        raise UnusableInput(
            "a schema may be proposed from a public sample only: bounds and categories of private rows "
            "reveal individuals, and no noise protects them. State that this sample is public "
            "(sample_is_public=True; --i-state-this-sample-is-public), or declare the schema from what "
            "is known without the rows: a code book, a form, a law"
        )
    profiles = read_sample(sample)
    declared, left_out, notes = [], {}, [REVIEW]
    for profile in profiles:
        if reason := profile.why_not():
            left_out[profile.name] = reason
            continue
        column, note = profile.declare()
        declared.append(column)
        notes.append(f"{profile.name}: {note}")
    if not declared:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out.items())
        raise UnusableInput(f"no column of this sample can be declared: {reasons or 'it has none'}")
    schema = Schema.model_validate_json(json.dumps({"columns": declared}))
    return Proposal(schema, left_out, tuple(notes))


def from_code_book(
    document: "str | PathLike[str] | Mapping[str, Any]",
    format: CodeBook,
    *,
    table: str | None = None,
) -> Imported:
    """Import the schema that a code book declares, and its protection if declared.

    `table` picks one of several tables of SmartNoise metadata.
    """
    content = document if isinstance(document, Mapping) else _read(Path(document), format)
    try:
        if format == "csvw":
            return from_csvw_eo(content)
        if format == "mbi":
            return Imported(from_mbi_domain(content), None)
        return from_smartnoise(content, table=table)
    except SpecError as error:
        raise UnusableInput(f"this code book cannot be imported: {error}") from error


def _read(path: Path, format: CodeBook) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{path} cannot be read ({type(error).__name__})") from None
    if format == "smartnoise" and path.suffix.lower() != ".json":
        yaml: Any = require("yaml")
        try:
            content = yaml.safe_load(text)
        except yaml.YAMLError:
            raise UnusableInput(f"{path} is not YAML") from None
    else:
        try:
            content = json.loads(text)
        except ValueError as error:
            raise UnusableInput(f"{path} is not JSON: {error}") from None
    if not isinstance(content, Mapping):
        raise UnusableInput(f"{path} must hold named fields")
    return content
