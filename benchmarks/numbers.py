"""Numbers with only bounds declared: python -m benchmarks.numbers [sets] [--runs N] [--bins KINDS].

Each set is released at epsilon 1 and delta 1e-9 with all two-way marginals, with adaptive bins and with equal
ones. Errors are those of the released rows. `adult-raw` and `contacts` (generated) are for tuning;
`credit-default` only judges.
"""

import argparse
import csv
import gzip
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.data import find
from benchmarks.report import print_table
from scrim.spec.columns import CategoricalColumn, IntegerColumn
from scrim.spec.population import Protection
from scrim.spec.release import AskedRelease
from scrim.spec.schema import Schema
from synth.journal import MemoryJournal
from synth.planning.choice import resolve
from synth.run import run
from synth.table import Chunk, Table
from synth.table.encoding import attribute_codec

Numbers = NDArray[np.float64]
Texts = Mapping[str, list[str]]
DELTA, EPSILON, BINS = 1e-9, 1.0, 32
ADULT_BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_500),
    "hours-per-week": (1, 99),
}
CREDIT_BOUNDS = {
    "LIMIT_BAL": (0, 1_000_000),
    "AGE": (18, 100),
    **{f"PAY_{month}": (-2, 9) for month in (0, 2, 3, 4, 5, 6)},
    **{f"BILL_AMT{month}": (-400_000, 2_000_000) for month in range(1, 7)},
    **{f"PAY_AMT{month}": (0, 2_000_000) for month in range(1, 7)},
}
CREDIT_CATEGORIES = {
    "SEX": ["1", "2"],
    "EDUCATION": ["0", "1", "2", "3", "4", "5", "6"],
    "MARRIAGE": ["0", "1", "2", "3"],
    "default.payment.next.month": ["0", "1"],
}
CONTACTS_BOUNDS = {
    "age": (18, 100),
    "balance": (-10_000, 200_000),
    "duration": (0, 5_000),
    "campaign": (1, 100),
    "pdays": (-1, 1_000),
    "previous": (0, 300),
}


@dataclass(frozen=True)
class NumberSet:
    """A table with numbers of which only the bounds are declared."""

    schema: Schema
    chunk: Chunk
    is_exact: Callable[[Mapping[str, NDArray[Any]]], NDArray[np.bool_]] | None = None
    """Whether each row keeps a relation that all rows of the table keep."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.chunk.values())))

    def with_bins(self, bins: Mapping[str, int]) -> Schema:
        """The schema with these bins for every column of numbers that has more values."""
        return self.schema.model_copy(
            update={"columns": [_binned(column, bins) for column in self.schema.columns]}
        )


def _binned(column: Any, bins: Mapping[str, int]) -> Any:
    if not isinstance(column, IntegerColumn):
        return column
    few = column.upper - column.lower < BINS
    declared = {"width": 1} if few else bins
    return type(column).model_validate({**column.model_dump(), "bins": declared})


def _from_texts(
    texts: Texts, bounds: Mapping[str, tuple[int, int]], categories: Mapping[str, list[str]]
) -> NumberSet:
    columns: list[dict[str, Any]] = []
    for name in texts:
        if name in bounds:
            low, high = bounds[name]
            column = {"type": "integer", "lower": low, "upper": high}
        elif name in categories or len(set(texts[name])) < 100:
            values = categories.get(name, sorted(set(texts[name])))
            column = {"type": "categorical", "values": values, "other": values[0]}
        else:
            continue
        columns.append({"name": name, "nullable": False, **column})
    schema = Schema.model_validate({"columns": columns})
    chunk = {c.name: attribute_codec(c).encode(pa.array(texts[c.name])) for c in schema.attributes}
    return NumberSet(schema, chunk)


def _read(file: str) -> Texts:
    with gzip.open(find(file), "rt") as stream:
        lines = [line for line in csv.reader(stream, skipinitialspace=True) if line]
    return {name: [line[i] for line in lines[1:]] for i, name in enumerate(lines[0])}


def adult_raw() -> NumberSet:
    """ADULT with 15 columns, 6 of them numbers."""
    return _from_texts(_read("adult/raw_train.csv.gz"), ADULT_BOUNDS, {})


def credit_default() -> NumberSet:
    """Defaults of credit cards: 24 columns, 20 of them numbers. Only for judging."""
    return _from_texts(_read("more/credit-default.csv.gz"), CREDIT_BOUNDS, CREDIT_CATEGORIES)


def contacts() -> NumberSet:
    """A generated marketing table: skewed balances, and -1 days since the last contact for "unknown"."""
    rng, rows = np.random.default_rng(20), 36_000
    job = rng.choice(8, rows, p=[0.22, 0.2, 0.17, 0.12, 0.1, 0.08, 0.06, 0.05])
    age = np.clip(np.round(rng.gamma(9, 3, rows) + 16 + 2.5 * (job == 5)), 18, 100)
    housing = rng.random(rows) < 1 / (1 + np.exp((age - 42) / 9))
    wealth = np.exp(rng.normal(6.2 + 0.012 * age + 0.1 * job, 1.5, rows)) - 250 * housing
    balance = np.where(rng.random(rows) < 0.08, 0, np.round(wealth))
    duration = np.round(np.exp(rng.normal(5.2, 0.9, rows)))
    campaign = rng.geometric(0.36, rows)
    known = rng.random(rows) < 0.12 + 0.1 * (wealth > 1500)
    outcome = np.where(known, rng.choice(3, rows, p=[0.6, 0.25, 0.15]) + 1, 0)
    pdays = np.where(known, np.round(rng.gamma(4, 55, rows)), -1)
    previous = np.where(known, rng.geometric(0.3, rows), 0)
    logit = -4 + 0.004 * np.clip(duration, 0, 1500) + 1.5 * (outcome == 3) - 0.5 * housing
    answer = rng.random(rows) < 1 / (1 + np.exp(-logit))
    numbers = {
        "age": age,
        "balance": balance,
        "duration": duration,
        "campaign": campaign,
        "pdays": pdays,
        "previous": previous,
    }
    codes = {"job": job, "housing": housing, "outcome": outcome, "answer": answer}
    names = {"outcome": ["unknown", "failure", "other", "success"]}
    texts = {name: [str(int(v)) for v in values] for name, values in numbers.items()}
    for name, values in codes.items():
        labels = names.get(name, [f"{name} {code}" for code in range(8)])
        texts[name] = [labels[int(code)] for code in values]
    made = _from_texts(texts, CONTACTS_BOUNDS, {})
    unknown = made.schema.attribute("outcome")
    assert isinstance(unknown, CategoricalColumn)
    code = unknown.labels.index("unknown")
    return NumberSet(
        made.schema, made.chunk, lambda rows: (rows["pdays"] == -1) == (rows["outcome"] == code)
    )


SETS: Mapping[str, Callable[[], NumberSet]] = {
    "adult-raw": adult_raw,
    "contacts": contacts,
    "credit-default": credit_default,
}
FINE = [digits * 10**power for power in range(7) for digits in (1, 1.5, 2, 3, 5, 7)]


def fine_edges(low: int, high: int) -> Numbers:
    """The public grid on which pairs are compared: single numbers, or steps of a logarithmic scale."""
    if high - low < 200:
        return np.arange(low, high + 2, dtype=float)
    inner = sorted({sign * step for step in (0, *FINE) for sign in (-1, 1)})
    return np.array([low, *(step for step in inner if low < step < high), high + 1], float)


def values_of(schema: Schema, chunk: Chunk) -> dict[str, NDArray[Any]]:
    """Numbers as numbers, categories as codes."""
    return {c.name: attribute_codec(c).numbers(chunk[c.name]) for c in schema.attributes}


@dataclass(frozen=True)
class Found:
    """Errors of one release."""

    mechanism: str
    pairs: float
    """Mean total variation over all pairs of columns on the fine public grid."""
    distances: Mapping[str, float]
    """The Kolmogorov-Smirnov distance of each number."""
    kept: float | None
    seconds: float


def released(
    data: NumberSet, schema: Schema, mechanism: str, share: float | None, seed: int
) -> Found:
    """Release the table once, and compare."""
    asked = {
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": mechanism},
        "bins_share": share,
        "budget": {"epsilon": EPSILON},
        "outputs": {"rows": data.rows, "answers": False},
        "expected_rows": data.rows,
    }
    table = Table(schema, [data.chunk])
    resolved = resolve(AskedRelease.model_validate(asked), schema, Protection(), DELTA)
    start = time.perf_counter()
    done = run(
        resolved.release, table, MemoryJournal(), protection=Protection(), delta=DELTA, seed=seed
    )
    assert done.rows is not None
    true, drawn = values_of(schema, data.chunk), values_of(schema, done.rows)
    return Found(
        resolved.release.mechanism.name,
        mean_variation(schema, true, drawn),
        {
            column.name: distance(true[column.name], drawn[column.name])
            for column in schema.attributes
            if isinstance(column, IntegerColumn)
        },
        None if data.is_exact is None else float(data.is_exact(drawn).mean()),
        time.perf_counter() - start,
    )


def distance(true: Numbers, drawn: Numbers) -> float:
    """The largest difference of two distribution functions."""
    places = np.unique(np.concatenate([true, drawn]))
    shares = [
        np.searchsorted(np.sort(each), places, side="right") / len(each) for each in (true, drawn)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def mean_variation(
    schema: Schema, true: Mapping[str, Numbers], drawn: Mapping[str, Numbers]
) -> float:
    """Mean total variation over all pairs of columns, numbers divided by the fine public grid."""
    found = []
    cells: dict[str, list[NDArray[np.int64]]] = {}
    for column in schema.attributes:
        both: list[NDArray[Any]] = [true[column.name], drawn[column.name]]
        if isinstance(column, IntegerColumn):
            inner = fine_edges(column.lower, column.upper)[1:-1]
            both = [np.searchsorted(inner, each, side="right") for each in both]
        cells[column.name] = [each.astype(np.int64) for each in both]
    for a, b in combinations(cells.values(), 2):
        width = 1 + max(int(each.max()) for each in b)
        size = width * (1 + max(int(each.max()) for each in a))
        shares = [
            np.bincount(one * width + other, minlength=size) / len(one)
            for one, other in zip(a, b, strict=True)
        ]
        found.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=["adult-raw", "contacts"], choices=[*SETS, []])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--mechanism", default="auto")
    parser.add_argument("--share", type=float, help="bins_share; by default that of the product")
    parser.add_argument("--bins", nargs="*", default=["adaptive", "count"])
    given = parser.parse_args()
    lines = []
    for name in given.sets:
        data = SETS[name]()
        for kind in given.bins:
            runs = [
                released(data, data.with_bins({kind: BINS}), given.mechanism, given.share, seed)
                for seed in range(given.runs)
            ]
            far = [d for found in runs for d in found.distances.values()]
            kept = [found.kept for found in runs if found.kept is not None]
            lines.append(
                [
                    name,
                    kind,
                    runs[0].mechanism,
                    float(np.mean([found.pairs for found in runs])),
                    float(np.mean(far)),
                    float(np.max(far)),
                    float(np.min(kept)) if kept else "-",
                    float(np.mean([found.seconds for found in runs])),
                ]
            )
            worst = {
                column: max(found.distances[column] for found in runs)
                for column in runs[0].distances
            }
            print(name, kind, {c: round(d, 4) for c, d in worst.items()}, flush=True)
    print_table(
        f"all pairs, epsilon {EPSILON:g}, delta {DELTA:g}, {BINS} bins, {given.runs} runs",
        ["set", "bins", "mechanism", "pairs", "mean KS", "worst KS", "kept", "seconds"],
        lines,
    )


if __name__ == "__main__":
    main()
