"""Columns of hierarchical codes, such as ICD-10, NACE, NUTS or municipalities.

Rare ("thin") codes drown in noise, so they are measured together with the other thin codes of their group,
and released rows draw a code of the group from public shares. Which codes are thin is declared, never
found in the private rows.
"""

from collections import defaultdict
from functools import cached_property
from math import fsum
from typing import Annotated, Literal

from pydantic import Field

from scrim.spec.columns.attribute import LabelledColumn
from scrim.spec.columns.categorical import Value, Values, refuse_repeated
from scrim.spec.columns.declared import MAX_CODES, Declared

MAX_PREFIXES = 20
Share = Annotated[float, Field(ge=0, le=1e100)]
Prefixes = Annotated[
    list[Annotated[int, Field(ge=1, le=1000)]], Field(min_length=1, max_length=MAX_PREFIXES)
]
Levels = Prefixes | Annotated[dict[Value, Value], Field(min_length=1, max_length=MAX_CODES)]


class ListedCode(Declared):
    """A line of a code list."""

    code: Value
    """The code, as in the uploaded file."""
    group: Value | None = None
    """The group to which it belongs."""
    share: Share | None = None
    """Its public share, or any number in proportion to it, such as a national count."""


class CodeColumn(LabelledColumn):
    """A column of codes from a public list, in groups. Give either `values` or `code_list`."""

    type: Literal["code"]
    """Always `code`."""
    values: Values | None = None
    """All codes, as text."""
    code_list: (
        Annotated[list[ListedCode], Field(min_length=1, max_length=MAX_CODES, fail_fast=True)]
        | None
    ) = None
    """All codes with their groups and public shares, instead of `values`, `levels` and `reference`."""
    levels: Levels | None = None
    """Lengths of the prefixes that make groups, shortest first, such as `[1, 3]` for ICD-10; or the group
    of each code."""
    reference: Annotated[dict[Value, Share] | None, Field(max_length=MAX_CODES)] = None
    """A public distribution: the share of each code, or any numbers in proportion, such as national
    counts. A code without one has share 0. Never taken from private rows."""
    thin_below: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Codes with a smaller reference share are measured in their group. Without a reference, every code
    that has a group is."""
    other: Value = "other"
    """The category for all undeclared codes. One of the codes, or a category added to them."""
    nullable: bool = True
    """Whether a missing value is kept as missing; if not, it becomes `other`."""

    def refuse_faults(self) -> None:
        """Require one list of distinct codes, and consistent groups."""
        if (self.values is None) == (self.code_list is None):
            raise ValueError("give either values or code_list")
        if self.code_list is not None and (self.levels, self.reference) != (None, None):
            raise ValueError("code_list holds groups and shares; leave out levels and reference")
        refuse_repeated(self.codes, "codes")
        if isinstance(self.levels, list) and sorted(set(self.levels)) != self.levels:
            raise ValueError("the prefix lengths in levels must increase")
        known = set(self.codes)
        for field, named in (("levels", self._groups), ("reference", self.shares)):
            if unknown := named.keys() - known:
                raise ValueError(f"{field} names {min(unknown)!r}, which is not one of the codes")
        if self.shares and not fsum(self.shares.values()):
            raise ValueError("the public shares must not all be 0")
        refuse_repeated(self.labels, "codes and groups")
        self.refuse_missing()

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """All declared codes."""
        if self.code_list is not None:
            return tuple(each.code for each in self.code_list)
        return tuple(self.values or ())

    @cached_property
    def shares(self) -> dict[str, float]:
        """The public share of each code, not normalised; empty if none are declared."""
        if self.code_list is not None:
            return {each.code: each.share for each in self.code_list if each.share is not None}
        return self.reference or {}

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of every released value except missing ones."""
        return self.codes if self.other in self.codes else (*self.codes, self.other)

    @property
    def other_code(self) -> int:
        """The position of undeclared codes in `texts`."""
        return self.texts.index(self.other)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What is measured: codes, and groups of thin ones."""
        return tuple(self._cells)

    @cached_property
    def cell_of_text(self) -> tuple[int, ...]:
        """The measured cell of each code in `texts`."""
        cell = {code: i for i, codes in enumerate(self._cells.values()) for code in codes}
        return tuple(cell[text] for text in self.texts)

    @property
    def is_grouped(self) -> bool:
        """Whether some codes are measured in groups."""
        return len(self.labels) < len(self.texts)

    @cached_property
    def _groups(self) -> dict[str, str]:
        if self.code_list is not None:
            return {each.code: each.group for each in self.code_list if each.group is not None}
        return self.levels if isinstance(self.levels, dict) else {}

    @cached_property
    def _cells(self) -> dict[str, list[str]]:
        """The codes of each measured cell, in the order of their first codes."""
        group = self._group_of_thin
        cells: dict[str, list[str]] = defaultdict(list)
        for code in self.codes:
            cells[group.get(code, code)].append(code)
        if self.other not in self.codes:
            cells[self.other].append(self.other)
        # A group of one code is that code.
        return {codes[0] if len(codes) == 1 else name: codes for name, codes in cells.items()}

    @cached_property
    def _group_of_thin(self) -> dict[str, str]:
        """The group of each thin code: the finest one that is not thin itself, else the coarsest."""
        total = fsum(self.shares.values())
        least = self.thin_below * total
        left = [code for code in self.codes if not total or self.shares.get(code, 0.0) < least]
        found: dict[str, str] = {}
        steps = self._steps()
        for number, step in enumerate(steps, start=1):
            members: dict[str, list[str]] = defaultdict(list)
            for code in left:
                if code in step:
                    members[step[code]].append(code)
            for group, codes in members.items():
                weight = fsum(self.shares.get(code, 0.0) for code in codes)
                if number == len(steps) or weight >= least:
                    found |= dict.fromkeys(codes, group)
            left = [code for code in left if code not in found]
        return found

    def _steps(self) -> list[dict[str, str]]:
        """The group of each code at each level, finest first; shorter codes have none."""
        if isinstance(self.levels, list):
            return [
                {
                    code: f"{code[:length]}*" if len(code) > length else code
                    for code in self.codes
                    if len(code) >= length
                }
                for length in reversed(self.levels)
            ]
        return [self._groups]
