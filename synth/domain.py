"""The discrete domain of a table: its attributes and their numbers of codes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from scrim.spec.schema import Schema, is_discrete
from scrim.spec.two_level import LinkedSchema

SIZE = "\x1fsize"
"""The size of a group as an attribute; code m means m + 1 individuals. No column can have this name, nor
a name that `at_place` returns."""


@dataclass(frozen=True)
class Domain:
    """Names and sizes of discrete attributes, in order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """The domain of all attributes that are categorical or have bins."""
        discrete = [c for c in schema.attributes if is_discrete(c)]
        return cls(tuple(c.name for c in discrete), tuple(c.size for c in discrete))

    @cached_property
    def size_of(self) -> dict[str, int]:
        """Number of codes by name."""
        return dict(zip(self.names, self.sizes, strict=True))

    @property
    def cells(self) -> int:
        """Number of combinations."""
        return math.prod(self.sizes)

    def project(self, names: Iterable[str]) -> "Domain":
        """The domain of some attributes, kept in this domain's order."""
        wanted = set(names)
        kept = tuple(name for name in self.names if name in wanted)
        return Domain(kept, tuple(self.size_of[name] for name in kept))


def at_place(name: str, place: int) -> str:
    """The name of a column of individuals at one place of a group."""
    return f"{name}\x1f{place}"


def domain_of_groups(schema: LinkedSchema) -> Domain:
    """The domain of a whole group: its size, its columns, and an individual at every place."""
    of_groups = set(schema.group_attributes)
    sizes = {SIZE: schema.max_group_size}
    for name, size in schema.sizes.items():
        places = range(schema.max_group_size)
        names = [name] if name in of_groups else [at_place(name, place) for place in places]
        sizes |= dict.fromkeys(names, size)
    return Domain(tuple(sizes), tuple(sizes.values()))
