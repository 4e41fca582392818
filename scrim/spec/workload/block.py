"""Blocks of counting queries, to which workload items expand; described without numpy."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.sensitivity import Sensitivity


@dataclass(frozen=True)
class Block(ABC):
    """Counting queries that belong together."""

    needs_bins: ClassVar[bool] = False
    """Whether numeric columns are read as their bins."""
    is_whole: ClassVar[bool] = True
    """Whether adaptive mechanisms select and measure it as a whole, because that costs little more than
    one of its queries; otherwise they select and measure single queries."""

    attributes: tuple[str, ...]
    """The columns that the queries read, in the schema's order."""

    @abstractmethod
    def size(self, schema: Schema) -> int:
        """Number of queries."""

    @abstractmethod
    def sensitivity(self, schema: Schema, protection: Protection) -> Sensitivity:
        """How much one privacy unit can change its counts."""

    def tables(self, schema: Schema) -> list[Mapping[str, int]]:
        """The cross tables that it consists of, if any: the size of each axis by name."""
        return []

    def table_count(self, schema: Schema) -> int:
        """The number of those tables, without listing them."""
        return 0

    def aligned_parts(self) -> Iterable["Block"]:
        """Blocks that models of discrete cells can answer exactly if they can answer this one."""
        return [self]

    def unaligned(self, schema: Schema) -> str | None:
        """Why models of discrete cells cannot answer it, and the fix; None if they can."""
        return None
