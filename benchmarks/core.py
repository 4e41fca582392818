"""`make bench-core`: counting, product answers, one MWEM round, and accuracy on ADULT reduced."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.data import DataSet, adult, adult_reduced
from benchmarks.report import print_table, seconds
from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from synth.journal import MemoryJournal
from synth.models.product import ProductMixture
from synth.queries import Marginal, QuerySet, compile_workload
from synth.run import run
from synth.table import Chunk, Table

REPLACE_ONE = Protection(relation="replace_one")


def three_way(data: DataSet) -> QuerySet:
    """All 3-way marginals."""
    return QuerySet(Marginal.of(names, data.domain) for names in combinations(data.domain.names, 3))


def count_against_pandas() -> None:
    """Count all 286 three-way marginals of ADULT with our code and with pandas groupby."""
    data = adult()
    queries = three_way(data)
    frame = pd.DataFrame(data.codes)

    def by_pandas() -> list[pd.Series]:
        return [frame.groupby(list(names)).size() for names in combinations(frame.columns, 3)]

    ours = seconds(lambda: queries.count(data.table))
    theirs = seconds(by_pandas, repeats=3)
    assert sum(int(s.sum()) for s in by_pandas()) == int(queries.count(data.table).sum())
    print_table(
        f"Counting {len(queries.blocks)} three-way marginals ({queries.size:,} queries) of ADULT",
        ["", "seconds", "times as fast"],
        [["pandas groupby", theirs, 1.0], ["scrim", ours, theirs / ours]],
    )


def count_many_rows() -> None:
    """Count the same workload on tables resampled from ADULT: time grows with rows, memory does not."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (1_000_000, 10_000_000):
            path = Path(folder) / f"{rows}.arrow"
            child = [sys.executable, "-m", "benchmarks.core"]
            subprocess.run([*child, "resample", str(path), str(rows)], check=True)
            done = subprocess.run([*child, "count", str(path)], check=True, capture_output=True)
            took, program, peak = json.loads(done.stdout)
            found.append([f"{rows:,} rows", took, rows / took / 1e6, program, peak - program])
    print_table(
        "Counting the same marginals on resampled tables, read from disk",
        ["", "seconds", "million rows/s", "memory MB before", "more at the peak"],
        found,
    )


def resample(path: Path, rows: int) -> None:
    """Write a table of rows drawn from ADULT, chunk by chunk."""
    data = adult()
    source = {name: column.astype(np.uint8) for name, column in data.codes.items()}

    class Resampled:
        def __iter__(self) -> Iterator[Chunk]:
            rng = np.random.default_rng(0)
            for start in range(0, rows, 2**18):
                drawn = rng.integers(0, data.rows, min(2**18, rows - start))
                yield {name: column[drawn] for name, column in source.items()}

    Table(data.schema, Resampled()).save(path)


def count_saved(path: Path) -> None:
    """Count the marginals of a saved table; print seconds, private memory before, and its peak."""
    from threading import Event, Thread

    def memory() -> float:
        status = Path("/proc/self/status").read_text()
        anonymous = next(line for line in status.splitlines() if line.startswith("RssAnon"))
        return int(anonymous.split()[1]) / 1000

    data = adult()
    before, stop = memory(), Event()
    peak = [before]

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], memory())

    watcher = Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    three_way(data).count(Table.open(path, data.schema))
    took = time.perf_counter() - start
    stop.set()
    watcher.join()
    print(json.dumps([took, before, peak[0]]))


def product_answers() -> None:
    """All 3-way queries on 1,000 product distributions: matrix products compared with gathering."""
    data = adult()
    queries, domain = three_way(data), data.domain
    blocks = [torch.rand(1000, size) for size in domain.sizes]
    mixture = ProductMixture(domain, torch.cat([b / b.sum(1, keepdim=True) for b in blocks], dim=1))
    starts = dict(zip(domain.names, np.cumsum([0, *domain.sizes]), strict=False))
    index = torch.from_numpy(
        np.concatenate(
            [
                np.stack(
                    [
                        starts[name] + code.ravel()
                        for name, code in zip(
                            names, np.indices(domain.project(names).sizes), strict=True
                        )
                    ],
                    axis=1,
                )
                for names in (block.attributes for block in queries.blocks)
            ]
        )
    )

    def gathered() -> torch.Tensor:
        parts = [mixture.probabilities[:, batch].prod(2).mean(0) for batch in index.split(10_000)]
        return torch.cat(parts)

    torch.testing.assert_close(gathered(), queries.on_product(mixture), atol=1e-5, rtol=1e-3)
    ours, theirs = seconds(lambda: queries.on_product(mixture)), seconds(gathered, repeats=2)
    print_table(
        f"Answers of {queries.size:,} queries on a mixture of 1,000 products",
        ["", "seconds", "times as fast"],
        [["gather and multiply", theirs, 1.0], ["scrim", ours, theirs / ours]],
    )


def release_of(mechanism: Mapping[str, object]) -> ReleaseSpec:
    """All 3-way marginals at epsilon 1."""
    return ReleaseSpec.model_validate(
        {
            "workload": [{"type": "marginals", "k": 3}],
            "mechanism": mechanism,
            "budget": {"epsilon": 1.0},
            "outputs": {"answers": True},
        }
    )


def mwem_round() -> None:
    """One round of MWEM on 336,000 cells, compared with numpy code that scans all cells per query."""
    data = adult_reduced()
    queries, domain = three_way(data), data.domain
    cells = dict(
        zip(domain.names, np.unravel_index(np.arange(domain.cells), domain.sizes), strict=True)
    )
    weights = np.full(domain.cells, 1 / domain.cells)
    true = queries.count(data.table) / data.rows
    conditions = [
        list(zip(block.attributes, cell, strict=True))
        for block in queries.blocks
        for cell in np.ndindex(domain.project(block.attributes).sizes)
    ]

    def satisfied(query: int) -> np.ndarray:
        found: np.ndarray = np.logical_and.reduce(
            [cells[name] == code for name, code in conditions[query]]
        )
        return found

    def plain_round() -> None:
        answers = np.array([weights[satisfied(q)].sum() for q in range(queries.size)])
        noisy = np.abs(true - answers) + np.random.gumbel(scale=0.01, size=queries.size)
        chosen = int(np.argmax(noisy))
        updated = weights * np.exp(satisfied(chosen) * (true[chosen] - answers[chosen]) / 2)
        updated /= updated.sum()

    def our_round() -> None:
        spec = release_of({"name": "mwem", "rounds": 1, "passes": 1})
        run(spec, data.table, MemoryJournal(), protection=REPLACE_ONE, delta=1 / data.rows**2)

    ours, theirs = seconds(our_round), seconds(plain_round, repeats=1)
    print_table(
        f"One MWEM round, {domain.cells:,} cells, {queries.size:,} queries (ours: a whole release)",
        ["", "seconds", "times as fast"],
        [["numpy, scan per query", theirs, 1.0], ["scrim", ours, theirs / ours]],
    )


def accuracy() -> None:
    """Errors of whole releases on ADULT reduced: all 35 three-way marginals, epsilon 1."""
    data = adult_reduced()
    queries = compile_workload(release_of({"name": "pep"}).workload, data.schema)
    true = queries.count(data.table) / data.rows
    found = []
    for mechanism in ({"name": "pep"}, {"name": "mwem"}, {"name": "gaussian"}):
        worst, mean, took = [], [], []
        for seed in range(5):
            start = time.perf_counter()
            done = run(
                release_of(mechanism),
                data.table,
                protection=REPLACE_ONE,
                delta=1 / data.rows**2,
                seed=seed,
            )
            took.append(time.perf_counter() - start)
            assert done.answers is not None
            error = np.abs(done.answers.fractions - true)
            worst.append(error.max())
            mean.append(error.mean())
        spread = float(np.std(worst, ddof=1) / np.sqrt(5))
        found.append(
            [
                mechanism["name"],
                float(np.mean(worst)),
                spread,
                float(np.mean(mean)),
                float(np.mean(took)),
            ]
        )
    print_table(
        "ADULT reduced, 35 three-way marginals, epsilon 1, delta 1/n^2, replace-one, mean of 5 runs",
        ["", "max error", "standard error", "mean error", "seconds"],
        found,
    )


def main() -> None:
    """Run all benchmarks, or the part that a child process was started for."""
    match sys.argv[1:]:
        case ["resample", path, rows]:
            resample(Path(path), int(rows))
        case ["count", path]:
            count_saved(Path(path))
        case _:
            count_against_pandas()
            count_many_rows()
            product_answers()
            mwem_round()
            accuracy()


if __name__ == "__main__":
    main()
