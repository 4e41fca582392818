"""A column of every type, with cells as people write them."""

from typing import Any

from scrim.spec.schema import Schema

TYPES = (
    "categorical",
    "ordinal",
    "boolean",
    "integer",
    "real",
    "date",
    "datetime",
    "code",
    "identifier",
)
KINDS = {"NA": "refused", "?": "unknown"}

DECLARED: list[dict[str, Any]] = [
    {"name": "ward", "type": "categorical", "values": ["east", "west"], "missing": KINDS},
    {"name": "pain", "type": "ordinal", "values": ["none", "mild", "severe"], "missing": KINDS},
    {"name": "smoker", "type": "boolean", "true": ["yes", "Y"], "false": ["no", "N"]},
    {
        "name": "pressure",
        "type": "integer",
        "lower": 80,
        "upper": 200,
        "bins": {"width": 40},
        "missing": {"-9": "refused", "999": "unknown"},
    },
    {
        "name": "cost",
        "type": "real",
        "lower": 0,
        "upper": 500,
        "decimals": 2,
        "bins": {"count": 4},
        "missing": {"-9": "refused", "999": "unknown"},
    },
    {
        "name": "born",
        "type": "date",
        "lower": "1940-01-01",
        "upper": "2020-12-31",
        "resolution": "month",
        "bins": {"edges": ["1940-01-01", "1970-01-01", "2000-01-01", "2020-12-01"]},
        "missing": KINDS,
    },
    {
        "name": "admitted",
        "type": "datetime",
        "lower": "2024-01-01",
        "upper": "2024-12-31T23:00",
        "resolution": "hour",
        "format": "%d.%m.%Y %H:%M",
        "bins": {"count": 4},
    },
    {
        "name": "diagnosis",
        "type": "code",
        "values": ["A00", "A01", "B20", "B21", "C50"],
        "levels": [1],
        "reference": {"A00": 90, "A01": 3, "B20": 1, "B21": 5, "C50": 900},
        "thin_below": 0.05,
    },
]
SCHEMA = Schema.model_validate({"missing": ["", "n/a"], "columns": DECLARED})

CSV = """\
ward,pain,smoker,pressure,cost,born,admitted,diagnosis
east,none,yes,120,12.50,1969-05-17,17.05.2024 14:45,A00
west,mild,N,999,480.00,1999-12-31,31.12.2024 23:59,B21
NA,?,n/a,-9,-9,NA,n/a,
?,NA,,200,999,?,1.2.2024 00:00,C50
 west ,terrible,maybe,1000,-3,1800-01-01,tomorrow,Z99
"""
"""Rows of all types: the last one is outside the declaration wherever it can be."""
RELEASED = """\
ward,pain,smoker,pressure,cost,born,admitted,diagnosis
east,none,yes,120,12.50,1969-05-01,17.05.2024 14:00,A00
west,mild,no,999,480.00,1999-12-01,31.12.2024 23:00,B21
NA,?,,-9,-9,NA,,
?,NA,,200,999,?,01.02.2024 00:00,C50
west,other,,200,0.00,1940-01-01,,other
"""
"""The same rows, mapped into the declaration and written as in a release."""
