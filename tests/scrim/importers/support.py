"""Shared code of the importers' tests."""

from typing import Any

from hypothesis import strategies as st

from scrim.importers import Imported

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
"""Anything that a JSON document may hold, and NaN."""


def dumped(imported: Imported) -> list[dict[str, Any]]:
    """The columns, without fields at their defaults."""
    columns: list[dict[str, Any]] = imported.schema.model_dump(exclude_defaults=True)["columns"]
    return columns
