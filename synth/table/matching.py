"""Matching cells with declared texts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth.table.chunk import Array


class Matching:
    """The stored value of each declared text, of all other texts, and of null."""

    def __init__(self, meanings: Mapping[str, int], *, other: int, missing: int) -> None:
        self._exact = pa.array(list(meanings), pa.string())
        self._codes = np.array([*meanings.values(), other, missing], np.int64)
        # Blanks alone are not the empty text, unless that is a declared value.
        blank = meanings.get("", missing)
        self._is_blank_known = blank != missing

    def codes(self, texts: Any) -> Array:
        """Stored values of texts: an exact match, else a match after trimming, else `other`."""
        found = pc.index_in(texts, value_set=self._exact)
        unknown = pc.and_(pc.is_null(found), pc.is_valid(texts))
        if pc.any(unknown).as_py():
            trimmed = pc.utf8_trim_whitespace(texts.filter(unknown))
            matches = pc.index_in(trimmed, value_set=self._exact)
            if not self._is_blank_known:
                matches = pc.if_else(pc.equal(trimmed, ""), None, matches)
            found = pc.replace_with_mask(found, unknown, pc.fill_null(matches, -2))
        return np.asarray(self._codes[np.asarray(pc.fill_null(found, -1))])
