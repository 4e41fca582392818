"""Schemas from what is public: a public sample, a header, or a code book. Never from private rows.

Bounds and categories taken from private rows reveal information about individuals: the largest income
belongs to one person. No noise covers them, so a sample needs the statement that it is public.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

from scrim.errors import UnusableInput
from scrim.frames import Frame, require
from scrim.importers import Imported, from_csvw_eo, from_ddi, from_mbi_domain, from_smartnoise
from scrim.profiles import Profile, declare
from scrim.samples import read_sample
from scrim.spec.errors import SpecError
from scrim.spec.schema import Schema
from scrim.spec.skeleton import skeleton_of
from scrim.spec.two_level import MAX_GROUP_SIZE, TwoLevelSchema
from scrim.values import parse_schema

CodeBook = Literal["csvw", "ddi", "smartnoise", "mbi"]
"""CSVW metadata (also with its eyes-off extension), a DDI Codebook, metadata of SmartNoise or Lomas, a
domain of mbi."""

REVIEW = (
    "Bounds and categories come from the sample alone: review every one of them. Private values "
    "outside are clamped, or become `other`, and Scrim does not report how many."
)

Source: TypeAlias = "str | PathLike[str] | Frame"
"""A file, or a data frame."""


@dataclass(frozen=True)
class Proposal:
    """A proposed schema, and notes for its review."""

    schema: Schema | TwoLevelSchema
    left_out: dict[str, str]
    """Columns that were not declared, and why."""
    notes: tuple[str, ...]
    """What to review."""


def propose(sample: Source, *, sample_is_public: bool = False) -> Proposal:
    """Propose a schema for tables like a public sample, which is a file or a data frame."""
    _require_statement(sample_is_public)
    draft = _Draft.of(read_sample(sample).profiles)
    return draft.proposal({"columns": draft.columns})


def propose_two_level(
    groups: Source,
    individuals: Source,
    *,
    key: str | None = None,
    group_key: str | None = None,
    sample_is_public: bool = False,
) -> Proposal:
    """Propose a schema for groups and individuals like those of two public samples.

    `key` identifies a group, and `group_key` names the group of an individual; by default the only
    column that both tables have.
    """
    _require_statement(sample_is_public)
    tables = read_sample(groups), read_sample(individuals)
    key, group_key = _keys([table.names for table in tables], key, group_key)
    drafts = [
        _Draft.of([each for each in table.profiles if each.name != own])
        for table, own in zip(tables, (key, group_key), strict=True)
    ]
    size = min(tables[1].most_rows_with_one(group_key), MAX_GROUP_SIZE)
    content = {
        "groups": {"key": key, "columns": drafts[0].columns},
        "individuals": {"group_key": group_key, "columns": drafts[1].columns},
        "max_group_size": size,
    }
    draft = drafts[0].with_other(drafts[1])
    draft.notes.append(f"max_group_size: {size}, the largest group of the sample; review it")
    return draft.proposal(content)


def skeleton(header: str | Sequence[str]) -> dict[str, Any]:
    """A declaration to fill in, from a header line or its names."""
    names = next(csv.reader([header]), []) if isinstance(header, str) else header
    try:
        return skeleton_of(names)
    except SpecError as error:
        raise UnusableInput(str(error)) from None


def from_code_book(
    document: "str | PathLike[str] | Mapping[str, Any]",
    format: CodeBook,
    *,
    table: str | None = None,
) -> Imported:
    """Import the schema that a code book declares, and its protection if declared.

    `table` picks one of several tables of SmartNoise metadata, or one of several files of a DDI Codebook.
    """
    try:
        if format == "ddi":
            if isinstance(document, Mapping):
                raise UnusableInput("a DDI Codebook is XML; give its file")
            return from_ddi(_read_text(Path(document)), table=table)
        content = document if isinstance(document, Mapping) else _read(Path(document), format)
        if format == "csvw":
            return from_csvw_eo(content)
        if format == "mbi":
            return Imported(from_mbi_domain(content), None)
        return from_smartnoise(content, table=table)
    except SpecError as error:
        raise UnusableInput(f"this code book cannot be imported: {error}") from error


@dataclass
class _Draft:
    """The columns of a table as they are declared, with notes."""

    columns: list[dict[str, Any]]
    left_out: dict[str, str]
    notes: list[str]

    @classmethod
    def of(cls, profiles: Sequence[Profile]) -> "_Draft":
        draft = cls([], {}, [REVIEW])
        for profile in profiles:
            made = declare(profile)
            if made.column is None:
                draft.left_out[profile.name] = made.note
            else:
                draft.columns.append(made.column)
                draft.notes.append(f"{profile.name}: {made.note}")
        return draft

    def with_other(self, other: "_Draft") -> "_Draft":
        """The notes of both tables."""
        notes = [*self.notes, *other.notes[1:]]
        return _Draft([*self.columns, *other.columns], self.left_out | other.left_out, notes)

    def proposal(self, content: dict[str, Any]) -> Proposal:
        """Check the declaration as the service does."""
        if not any(column["type"] != "identifier" for column in self.columns):
            reasons = "; ".join(f"{name} {reason}" for name, reason in self.left_out.items())
            raise UnusableInput(
                f"no column of this sample can be declared: {reasons or 'it has none'}"
            )
        schema = parse_schema(content, what="the proposal")
        return Proposal(schema, self.left_out, tuple(self.notes))


def _require_statement(is_public: bool) -> None:
    if not is_public:
        raise UnusableInput(
            "a schema may be proposed from a public sample only: bounds and categories of private rows "
            "reveal individuals, and no noise protects them. State that this sample is public "
            "(sample_is_public=True; --i-state-this-sample-is-public), or declare the schema from what "
            "is known without the rows: a code book, a form, a law"
        )


def _keys(
    names: Sequence[Sequence[str]], key: str | None, group_key: str | None
) -> tuple[str, str]:
    """The columns that link the tables."""
    groups, individuals = names
    shared = [name for name in groups if name in individuals]
    if key is None and group_key is None and len(shared) != 1:
        raise UnusableInput(
            f"the tables share {len(shared)} columns; name the key of a group (key=; --key), and the "
            "column of the individuals that refers to it (group_key=; --group-key)"
        )
    key = key or group_key or shared[0]
    group_key = group_key or key
    for name, found, table in ((key, groups, "groups"), (group_key, individuals, "individuals")):
        if name not in found:
            raise UnusableInput(f"the table of {table} has no column {name!r}")
    return key, group_key


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableInput(f"{path} cannot be read ({type(error).__name__})") from None


def _read(path: Path, format: CodeBook) -> Mapping[str, Any]:
    text = _read_text(path)
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
