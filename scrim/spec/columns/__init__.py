"""The types of columns that a schema declares, one module for each kind."""

from scrim.spec.columns.bins import DEFAULT_ADAPTIVE, MAX_EDGES, Bins, Shape
from scrim.spec.columns.categorical import CategoricalColumn
from scrim.spec.columns.declared import MAX_CODES, STORED, Declared
from scrim.spec.columns.grid import Grid, NumberLine
from scrim.spec.columns.identifier import IdentifierColumn
from scrim.spec.columns.numeric import LARGEST_INTEGER, IntegerColumn, RealColumn

__all__ = [
    "DEFAULT_ADAPTIVE",
    "LARGEST_INTEGER",
    "MAX_CODES",
    "MAX_EDGES",
    "STORED",
    "Bins",
    "CategoricalColumn",
    "Declared",
    "Grid",
    "IdentifierColumn",
    "IntegerColumn",
    "NumberLine",
    "RealColumn",
    "Shape",
]
