"""The types of columns that a schema declares, one module for each kind."""

from scrim.spec.columns.attribute import AttributeColumn, LabelledColumn, NumberColumn
from scrim.spec.columns.bins import DEFAULT_ADAPTIVE, MAX_EDGES, Bins, BinShape
from scrim.spec.columns.boolean import BooleanColumn
from scrim.spec.columns.categorical import CategoricalColumn
from scrim.spec.columns.code import CodeColumn, ListedCode
from scrim.spec.columns.dates import DateBins, DateColumn, DatetimeColumn
from scrim.spec.columns.declared import MAX_CODES, STORED, Declared
from scrim.spec.columns.grid import Grid, NumberLine
from scrim.spec.columns.identifier import IdentifierColumn
from scrim.spec.columns.missing import Missing
from scrim.spec.columns.numeric import LARGEST_INTEGER, IntegerColumn, RealColumn
from scrim.spec.columns.ordinal import OrdinalColumn

__all__ = [
    "DEFAULT_ADAPTIVE",
    "LARGEST_INTEGER",
    "MAX_CODES",
    "MAX_EDGES",
    "STORED",
    "AttributeColumn",
    "BinShape",
    "Bins",
    "BooleanColumn",
    "CategoricalColumn",
    "CodeColumn",
    "DateBins",
    "DateColumn",
    "DatetimeColumn",
    "Declared",
    "Grid",
    "IdentifierColumn",
    "IntegerColumn",
    "LabelledColumn",
    "ListedCode",
    "Missing",
    "NumberColumn",
    "NumberLine",
    "OrdinalColumn",
    "RealColumn",
]
