"""Public tables that no rule or default was tuned on. docs/data.md says where to get them."""

from typing import Any

from benchmarks.data import DataSet, load, read
from scrim.spec.schema import Schema

FOLDER = "more"

STATUS = [str(code) for code in range(-2, 10)]
"""Months of delay, 1 to 9, and -1 for paid duly; -2 and 0 are used, but UCI does not describe them."""
CREDIT_CATEGORIES = {
    "SEX": ["1", "2"],
    "EDUCATION": [str(code) for code in range(7)],
    "MARRIAGE": [str(code) for code in range(4)],
    **dict.fromkeys(("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"), STATUS),
    "default.payment.next.month": ["0", "1"],
}
"""The codes that UCI describes, and those that are known to be in the file beside them: EDUCATION 0, 5
and 6, MARRIAGE 0, and two of the status of payments."""
LIMIT = [0, 20_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 1_000_000]
AGE = [20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80]
BILL = [
    *(-1_000_000, 0, 1, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000),
    2_000_000,
]
PAID = [0, 1, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 2_000_000]
CREDIT_EDGES = {
    "LIMIT_BAL": LIMIT,
    "AGE": AGE,
    **{f"BILL_AMT{month}": BILL for month in range(1, 7)},
    **{f"PAY_AMT{month}": PAID for month in range(1, 7)},
}
"""Edges of bins: NT dollars in round steps, zero by itself, and years of age."""


def coded(name: str) -> DataSet:
    """A table of integer codes with its domain file."""
    return load(f"{FOLDER}/{name}.csv.gz", f"{FOLDER}/{name}-domain.json")


def credit_default() -> DataSet:
    """Default of credit card clients (UCI), without the column ID: 24 columns."""
    return read(f"{FOLDER}/credit-default.csv.gz", credit_schema())


def credit_schema() -> Schema:
    """The columns as UCI describes them. Bounds and bins are our own, in round numbers."""
    categories: list[dict[str, Any]] = [
        {"name": name, "type": "categorical", "values": values, "other": values[0]}
        for name, values in CREDIT_CATEGORIES.items()
    ]
    numbers: list[dict[str, Any]] = [
        {
            "name": name,
            "type": "integer",
            "lower": edges[0],
            "upper": edges[-1],
            "bins": {"edges": edges},
        }
        for name, edges in CREDIT_EDGES.items()
    ]
    columns = [{**column, "nullable": False} for column in categories + numbers]
    return Schema.model_validate({"columns": columns})
