"""What all released columns have in common: a name, codes, and kinds of missing values.

There are two families. A column of labels (`LabelledColumn`) is a list of categories. A column of
numbers (`NumberColumn`) is a line of whole or real numbers (`line`), which is divided into bins. Everything
that computes asks the family. Only codecs and labels know the type.
"""

from abc import abstractmethod
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from scrim.spec.base import Name
from scrim.spec.columns.declared import Declared
from scrim.spec.columns.missing import Missing, kind_of_spelling, kinds_of

if TYPE_CHECKING:
    from scrim.spec.columns.numeric import IntegerColumn, RealColumn


class AttributeColumn(Declared):
    """A column that carries information and is released."""

    name: Name
    """The column's name in the uploaded file."""
    # Left out of the JSON if unset, so that the hash of a schema does not change.
    missing: Annotated[Missing | None, Field(exclude_if=lambda value: value is None)] = None
    """Cells that mean missing, besides empty ones. A list makes one kind; a mapping from the cell to the
    name of its kind keeps kinds apart. Missing values are released in the first spelling of their kind."""

    if TYPE_CHECKING:
        # Each column declares it, so that the order of fields in stored schemas does not change.
        nullable: bool

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of codes."""

    @property
    @abstractmethod
    def code_labels(self) -> list[str]:
        """A readable name of each code."""

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of missing values; each has a code after the values. None if not nullable."""
        return kinds_of(self.missing) if self.nullable else ()

    @property
    def name_of_kinds(self) -> str:
        """The name of the column that holds the kinds of missing values in Parquet, if there are several."""
        return f"{self.name}.missing"

    @cached_property
    def kind_of_spelling(self) -> dict[str, str]:
        """The kind of each cell that means missing."""
        return kind_of_spelling(self.missing)

    @cached_property
    def spellings(self) -> tuple[str, ...]:
        """The released spelling of each kind of missing values."""
        return tuple(
            next((s for s, each in self._declared_spellings if each == kind), "")
            for kind in self.kinds
        )

    @cached_property
    def _declared_spellings(self) -> list[tuple[str, str]]:
        """Declared spellings that cannot be confused with a value, with their kinds."""
        if self.missing is None:
            return []
        declared = self.kind_of_spelling
        order = self.missing if isinstance(self.missing, list) else declared
        return [(text, declared[text]) for text in order if not self.is_value(text)]

    @abstractmethod
    def is_value(self, text: str) -> bool:
        """Whether a cell with this text could be one of the column's values."""

    def refuse_missing(self) -> None:
        """Require kinds of missing values that can be told apart when they are released."""
        if self.missing is None:
            return
        if isinstance(self.missing, list) and len(set(self.missing)) < len(self.missing):
            raise ValueError('the spellings in "missing" must be distinct')
        if len(set(self.spellings)) < len(self.spellings):
            raise ValueError(
                'every kind in "missing" needs a spelling that is not a value of the column; give each '
                "kind another spelling, or narrow the bounds"
            )


class LabelledColumn(AttributeColumn):
    """A column of categories: every code is a label, or a kind of missing values."""

    @cached_property
    @abstractmethod
    def labels(self) -> tuple[str, ...]:
        """The text of every code except missing ones."""

    @property
    @abstractmethod
    def other_code(self) -> int:
        """The position in `texts` of undeclared values."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of every released value except missing ones."""
        return self.labels

    @cached_property
    def size(self) -> int:
        """Number of codes: labels, then one for each kind of missing values."""
        return len(self.labels) + len(self.kinds)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """The code of every label, and of every kind of missing values if there are several."""
        named = (*self.labels, *self.kinds) if len(self.kinds) > 1 else self.labels
        return {text: code for code, text in enumerate(named)}

    @property
    def code_labels(self) -> list[str]:
        """A readable name of each code."""
        return [*self.labels, *self.kinds]

    def is_value(self, text: str) -> bool:
        """Whether a cell with this text is one of the values."""
        return text in self.texts

    def refuse_missing(self) -> None:
        """Require kinds of missing values that can be told from each other and from labels."""
        super().refuse_missing()
        if len(self.kinds) > 1 and set(self.kinds) & set(self.labels):
            raise ValueError('the kinds in "missing" must have other names than the values')


class NumberColumn(AttributeColumn):
    """A column of numbers: `line` has bounds and bins; some codes, such as missing ones, are apart."""

    @property
    @abstractmethod
    def line(self) -> "IntegerColumn | RealColumn":
        """The numbers that stand for the values."""

    @abstractmethod
    def write(self, number: float) -> str:
        """The text of the value that a number stands for."""

    @abstractmethod
    def read(self, value: Any) -> float:
        """The number of a value in a declaration or a query; ValueError if it has none."""

    @property
    def apart(self) -> tuple[str, ...]:
        """Names of the codes that are not on the line, in order; they come after the bins."""
        return self.kinds

    @property
    def code_labels(self) -> list[str]:
        """A readable name of each code: `[a, b)` for a bin, `[a, b]` for the last one."""
        texts = [self.write(edge) for edge in self.line.edges]
        labels = [f"[{a}, {b})" for a, b in pairwise(texts)]
        labels[-1] = labels[-1][:-1] + "]"
        return [*labels, *self.apart]
