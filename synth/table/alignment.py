"""Converting a public table to a private schema."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scrim.spec.columns import RealColumn
from scrim.spec.errors import SpecError
from scrim.spec.schema import Attribute, Schema
from synth.planning.alignment import shared_schema
from synth.table.chunk import Array, Chunk
from synth.table.encoding import AttributeCodec, attribute_codec
from synth.table.labelled import LabelledCodec
from synth.table.table import Table


def align(public: Table, schema: Schema) -> Table:
    """Return the public rows in the codes of a private schema, with the columns that both have.

    Every cell is decoded and then ingested as a private cell would be: labels are matched as text,
    unknown ones become `other`, numbers are clamped, and missing values stay missing if the column
    allows them.
    """
    shared = shared_schema(schema, public.schema)
    if not any(len(next(iter(chunk.values()))) for chunk in public.chunks()):
        raise SpecError("the public dataset has no rows; use one with rows")
    codecs = {
        column.name: (
            _exact_codec(public.schema.attribute(column.name)),
            attribute_codec(column),
        )
        for column in shared.attributes
    }
    return Table(shared, _AlignedChunks(public, codecs))


def _exact_codec(column: Attribute) -> AttributeCodec:
    """Return a codec that decodes stored values without rounding to the declared decimals."""
    if isinstance(column, RealColumn):
        column = column.model_copy(update={"decimals": None})
    return attribute_codec(column)


@dataclass(frozen=True)
class _AlignedChunks:
    """The chunks of a public table; each iteration encodes them again."""

    public: Table
    codecs: dict[str, tuple[AttributeCodec, AttributeCodec]]

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in self.public.chunks():
            yield {
                name: _aligned(chunk[name], theirs, ours)
                for name, (theirs, ours) in self.codecs.items()
            }


def _aligned(stored: Array, theirs: AttributeCodec, ours: AttributeCodec) -> Array:
    aligned = ours.encode(_cells_of(stored, theirs, ours))
    kinds = theirs.kinds(stored)
    for position, kind in enumerate(theirs.column.kinds[1:], start=2):
        aligned[kinds == position] = ours.stored_kind(kind)
    return aligned


def _cells_of(stored: Array, theirs: AttributeCodec, ours: AttributeCodec) -> Any:
    """The public cells; booleans keep their spelling where ours are texts."""
    if isinstance(theirs, LabelledCodec) and ours.arrow_type != theirs.arrow_type:
        return theirs.as_texts(stored)
    return theirs.decode(stored)
