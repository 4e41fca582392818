"""The codec of columns of categories."""

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from scrim.spec.columns import BooleanColumn, CodeColumn
from scrim.spec.schema import Labelled
from synth.table.cells import is_boolean, plain, texts_of
from synth.table.chunk import Array, smallest_unsigned
from synth.table.matching import Matching

Codes = npt.NDArray[np.integer[Any]]


class LabelledCodec:
    """Texts as their index; a kind of missing values as an index past the last text, or as `other`.

    Grouped codes are stored one by one, and read as the cell in which they are measured.
    """

    def __init__(self, column: Labelled) -> None:
        self.column = column
        texts = column.texts
        self.dtype = smallest_unsigned(len(texts) + len(column.kinds) - 1)
        self.labels = pa.array(texts, pa.string())
        self.is_boolean = isinstance(column, BooleanColumn)
        self.arrow_type = pa.bool_() if self.is_boolean else pa.dictionary(pa.int32(), pa.string())
        self._other = column.other_code
        self._missing = len(texts) if column.kinds else self._other
        self._matching = Matching(self._meanings(), other=self._other, missing=self._missing)
        self._cells = self._cells_of_texts()

    def _meanings(self) -> dict[str, int]:
        """The stored value of each known text; a declared value is never missing."""
        column = self.column
        found = {text: code for code, text in enumerate(column.texts)}
        if isinstance(column, BooleanColumn):
            found = dict.fromkeys(column.true, 0) | dict.fromkeys(column.false, 1)
        for spelling, kind in column.kind_of_spelling.items():
            found.setdefault(spelling, self.stored_kind(kind))
        return found

    def _cells_of_texts(self) -> Array | None:
        if not isinstance(self.column, CodeColumn) or not self.column.is_grouped:
            return None
        cells, labels = self.column.cell_of_text, len(self.column.labels)
        found = [*cells, *range(labels, self.column.size)]
        return np.array(found, smallest_unsigned(self.column.size - 1))

    def stored_kind(self, kind: str) -> int:
        """The stored value of a kind of missing values."""
        kinds = self.column.kinds
        return self._missing + (kinds.index(kind) if kind in kinds else 0)

    def encode(self, cells: Any) -> Array:
        """Codes of the cells: an exact match, else a match after trimming, else `other`."""
        cells = plain(cells)
        if self.is_boolean and is_boolean(cells):
            codes = pc.if_else(cells, 0, 1)
            return np.asarray(pc.fill_null(codes, self._missing), self.dtype)
        texts = texts_of(cells, column=self.column.name)
        return self._matching.codes(texts).astype(self.dtype)

    def decode(self, stored: Array) -> Any:
        """Labels as an Arrow dictionary array, or booleans; missing as null."""
        if self.is_boolean:
            return pa.array(stored == 0, pa.bool_(), mask=stored >= len(self.labels))
        return self.as_texts(stored)

    def as_texts(self, stored: Array) -> Any:
        """Labels as an Arrow dictionary array, missing as null."""
        missing = stored >= len(self.labels)
        codes = pa.array(stored.astype(np.int32), mask=missing)
        return pa.DictionaryArray.from_arrays(codes, self.labels)

    def kinds(self, stored: Array) -> Array:
        """For each cell 0, or 1 plus the position of its kind of missing values."""
        return np.maximum(stored.astype(np.int64) - len(self.labels) + 1, 0)

    def writer(self, quoted: Callable[[str], str]) -> Callable[[Array], Any]:
        """Write stored values as cells of a CSV file; an empty spelling of missing is not quoted."""
        spelled = [quoted(text) if text else "" for text in self.column.spellings]
        labels = [quoted(label) for label in self.column.texts]
        cells = pa.array([*labels, *spelled], pa.large_string())
        return lambda stored: cells.take(pa.array(stored))

    def discretise(self, stored: Array) -> Array:
        """The codes that are measured."""
        return stored if self._cells is None else np.take(self._cells, stored)

    def numbers(self, stored: Array) -> Array:
        """The measured codes, which are a category's only numbers."""
        return self.discretise(stored)

    def from_numbers(self, numbers: Array) -> Array:
        """Convert the output of `numbers` back to stored values; codes of a group are drawn."""
        codes = np.clip(np.rint(numbers), 0, self.column.size - 1).astype(np.int64)
        # Not a choice about private rows, so the seed may be public.
        seed = blake2b(self.column.name.encode(), digest_size=8).digest()
        return self.draw(codes, np.random.default_rng(int.from_bytes(seed, "big")))

    def draw(self, codes: Codes, rng: np.random.Generator) -> Array:
        """The codes themselves, or codes of their groups drawn from the public shares."""
        if self._cells is None:
            return codes.astype(self.dtype)
        first, limits, members = self._draws
        # Each cell has the interval from its number to the next one, divided by its shares.
        places = np.searchsorted(limits, codes + rng.random(len(codes)), side="right")
        last = np.append(first[1:], len(members)) - 1
        return members[np.clip(places, first[codes], last[codes])].astype(self.dtype)

    @cached_property
    def _draws(self) -> tuple[Array, Array, Array]:
        """The first member of each cell, the upper end of each member's interval, and the members."""
        assert self._cells is not None and isinstance(self.column, CodeColumn)
        members = np.argsort(self._cells, kind="stable")
        cells = self._cells[members].astype(np.int64)
        shares = self.column.shares
        weights = np.zeros(len(self._cells))
        weights[: len(self.labels)] = [shares.get(text, 0.0) for text in self.column.texts]
        totals = np.bincount(cells, weights[members], minlength=self.column.size)
        # Uniform, if the public shares say nothing about a group.
        weights = np.where(totals[self._cells] > 0, weights, 1.0)[members]
        totals = np.bincount(cells, weights, minlength=self.column.size)
        first = np.searchsorted(cells, np.arange(self.column.size))
        within = np.cumsum(weights) - np.append(0.0, np.cumsum(weights))[first][cells]
        return first, cells + within / totals[cells], members
