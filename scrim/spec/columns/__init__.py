"""The types of columns that a schema declares, one module for each kind."""

from scrim.spec.columns.bins import MAX_EDGES, Bins
from scrim.spec.columns.categorical import CategoricalColumn
from scrim.spec.columns.declared import MAX_CODES, STORED, Declared
from scrim.spec.columns.identifier import IdentifierColumn
from scrim.spec.columns.numeric import LARGEST_INTEGER, IntegerColumn, RealColumn

__all__ = [
    "LARGEST_INTEGER",
    "MAX_CODES",
    "MAX_EDGES",
    "STORED",
    "Bins",
    "CategoricalColumn",
    "Declared",
    "IdentifierColumn",
    "IntegerColumn",
    "RealColumn",
]
