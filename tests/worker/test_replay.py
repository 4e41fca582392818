"""T7 from the upload on: with the same draws, neighbouring uploads give the same release, bit by bit.

Both uploads take the whole way: they are ingested, limited to their bounds and linked. One secret
decides for both which rows are kept, because a neighbour differs in one unit and in nothing else.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args
from uuid import UUID

import numpy as np
import pytest

from scrim.spec.population import Protection
from scrim.spec.schema import Schema
from scrim.spec.two_level import LinkedSchema, TwoLevelSchema
from scrim.spec.workload import NUMBER_OF_GROUPS, NUMBER_OF_INDIVIDUALS, expand
from service.datasets import service as datasets
from synth.door import Certified
from synth.journal import MemoryJournal
from synth.models.support import Support
from synth.planning.subject import Subject, subject_of
from synth.privacy.vault import Vault
from synth.queries import QuerySet, compile_blocks, compile_workload
from synth.table import Table, draw_values
from tests.support import release
from tests.synth.replay import Draw, Seen, check_replay, unpriced, watch
from tests.worker.neighbours import CASES, Case, Tables
from tests.worker.support import Stack
from tests.worker.test_ingest import state_of, stored
from worker import reporting
from worker.ingest import ingest_dataset
from worker.jobs import ReleaseJob
from worker.models import ModelCache
from worker.releases import run_release

# What is checked holds whatever is drawn.
pytestmark = pytest.mark.random

UNITS = 10**12


@pytest.fixture(autouse=True)
def one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every dataset has the same key, which decides which rows of a unit are kept."""
    monkeypatch.setattr(datasets, "new_data_key", lambda: bytes(range(32)))


def ingested(stack: Stack, case: Case, population: UUID, tables: Tables) -> UUID:
    """A dataset that was uploaded and made ready by a worker."""
    dataset = stack.dataset(population, case.schema)
    for name in tables:
        table = None if name == "rows" else name
        stack.upload(dataset, case.csv(tables, name), table=table)
    ingest_dataset(stack.context, dataset)
    assert state_of(stack, dataset) == ("ready", None)
    return dataset


def subject(case: Case, table: str) -> Subject:
    """How a release of that table reads and protects it."""
    is_two_level = "groups" in case.base
    declared = TwoLevelSchema if is_two_level else Schema
    protection = Protection.model_validate(case.population)
    mechanism = {"name": "h_mwem" if table == "linked" else "mwem"}
    workload = [{"type": "hierarchical" if table == "linked" else "marginals", "k": 1}]
    alone = {"table": table} if table in {"groups", "individuals"} else {}
    spec = release(mechanism, workload=workload, **alone)
    return subject_of(spec, declared.model_validate(case.schema), protection)


def every_operation(about: Subject, table: Table) -> list[str]:
    """Ask the door for everything it offers; returns what was asked."""
    journal = MemoryJournal()
    vault = Vault(table, protection=about.protection, budget=10**18, journal=journal)
    schema = about.schema
    if isinstance(schema, LinkedSchema):
        items = [{"type": "hierarchical", "k": k} for k in (1, 2)]
        asked = release({"name": "h_mwem"}, workload=[*items, {"type": "group_sizes"}]).workload
        counted = [NUMBER_OF_GROUPS, NUMBER_OF_INDIVIDUALS, *expand(asked, schema)]
        queries = compile_blocks(counted, schema)
    else:
        vault.count_rows(budget=UNITS)
        columns = range(1, len(schema.attributes) + 1)
        asked = release(
            {"name": "mwem"}, workload=[{"type": "marginals", "k": k} for k in columns]
        ).workload
        queries = compile_workload(asked, schema)
        vault.best_mixture(queries, public_support(schema), rows=9, budget=UNITS)
    for block in queries.blocks:
        vault.measure(block, budget=UNITS)
    ask_of_all(vault, queries)
    return [f"{operation.kind} {operation.asked}" for operation in journal.operations()]


def public_support(schema: Schema) -> Support:
    """A few public rows of the schema."""
    rng = np.random.default_rng(5)
    codes = {column.name: rng.integers(column.size, size=9) for column in schema.attributes}
    return Support.of(Table(schema, [draw_values(schema, codes, rng)]))


def ask_of_all(vault: Vault, queries: QuerySet) -> None:
    """The operations that compare all queries with a model."""
    expected = np.linspace(0, 5, queries.size)
    vault.select(queries, expected, budget=UNITS)
    vault.select(queries, expected, budget=UNITS, among="queries", k=2)
    vault.hedge_draw(queries, expected / 9, rows=9, rate=0.1, past=3, draws=2)
    for certified in get_args(Certified):
        vault.certify(
            queries,
            np.arange(queries.size),
            released_rows=queries.size,
            rows=9,
            budget=UNITS,
            certified=certified,
        )


@pytest.mark.parametrize("name", CASES)
def test_no_neighbouring_upload_moves_an_operation_beyond_its_price(
    stack: Stack, name: str
) -> None:
    """Every table that a release may be about, also where units have more rows than their bound."""
    case = CASES[name]
    population = stack.population(**case.population)
    first = ingested(stack, case, population, case.base)

    def watched(dataset: UUID, table: str, played: Sequence[Draw] | None = None) -> Seen:
        about = subject(case, table)
        rows = Table(about.schema, stored(stack, dataset, table))
        return watch(partial(every_operation, about, rows), played)

    recorded = {table: watched(first, table) for table in case.read}
    leaks = []
    for label, neighbour in case.neighbours.items():
        second = ingested(stack, case, population, neighbour.tables)
        for table in set(case.read) & set(neighbour.read):
            before = recorded[table]
            after = watched(second, table, before.draws)
            assert isinstance(before.shown, list) and before.shown == after.shown
            leaks += [
                f"{table}, {label}, {before.shown[position]}: {moved}"
                for position, moved in unpriced(before.draws, after.draws).items()
            ]
    assert leaks == []


MARGINALS: dict[str, Any] = {"workload": [{"type": "marginals", "k": 1}], "budget": {"rho": 1.0}}
CERTIFIED: dict[str, Any] = {"rows": 30, "formats": ["csv", "parquet"], "certify": {"share": 0.1}}
LINKED: dict[str, Any] = {
    "workload": [{"type": "hierarchical", "k": 1}, {"type": "group_sizes"}],
    "mechanism": {"name": "h_mwem", "rounds": 2, "passes": 5},
    "budget": {"rho": 1.0},
    "outputs": CERTIFIED,
}
PUBLIC = {"name": "pmw_pub", "rounds": 2}
RELEASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "certified": ("row, add_remove", "unknown", {**MARGINALS, "outputs": CERTIFIED}),
    "people": ("person, add_remove", "six rows", {**MARGINALS, "outputs": CERTIFIED}),
    "answers only": (
        "person, replace_one",
        "the same with other values",
        {**MARGINALS, "mechanism": {"name": "gaussian"}, "outputs": {}},
    ),
    "a game": (
        "household, replace_one",
        "six rows",
        {**MARGINALS, "mechanism": {"name": "dual_query", "rounds": 4, "samples": 3}},
    ),
    "households": ("two levels, household, add_remove", "five members", LINKED),
    "households replaced": ("two levels, household, replace_one", "five members", LINKED),
    "people in households": ("two levels, person with 2, add_remove", "many rows", LINKED),
    "people replaced in households": (
        *("two levels, person with 1, replace_one", "mixed"),
        {**LINKED, "workload": [*LINKED["workload"], {"type": "hierarchical", "k": 2}]},
    ),
    "individuals alone": (
        *("two levels, household, add_remove", "five members"),
        {**MARGINALS, "table": "individuals"},
    ),
    "public data": (
        *("row, add_remove", "plain"),
        {**MARGINALS, "mechanism": {**PUBLIC, "screen": {"share": 0.1, "max_error": 0.99}}},
    ),
    "public data that are too far": (
        *("row, replace_one", "plain"),
        {**MARGINALS, "mechanism": {**PUBLIC, "screen": {"share": 0.1, "max_error": 1e-9}}},
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_nothing_shows_which_of_two_neighbours_was_uploaded(
    stack: Stack, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Artifacts, their sizes, certificate, report, responses, events, logs and errors."""
    case_name, label, body = RELEASES[name]
    case = CASES[case_name]
    # The release's id determines which rows are drawn. The clock reports no progress.
    monkeypatch.setattr(ReleaseJob, "seed", 7)
    monkeypatch.setattr(reporting, "REPORT_SECONDS", 3600.0)
    if body.get("mechanism", {}).get("name") == "pmw_pub":
        body = body | {"public_dataset_id": str(public_dataset(stack, case))}

    def carried_out(tables: Tables) -> Callable[[], dict[str, Any]]:
        return lambda: everything_seen(stack, case, tables, body)

    seen = check_replay(carried_out(case.base), carried_out(case.neighbours[label].tables))
    assert seen.draws


def public_dataset(stack: Stack, case: Case) -> UUID:
    """A public dataset with the same columns."""
    dataset = stack.dataset(None, case.schema)
    stack.upload(dataset, case.csv({"rows": [("x", "1"), ("y", "7")]}, "rows"))
    ingest_dataset(stack.context, dataset)
    return dataset


def everything_seen(
    stack: Stack, case: Case, tables: Tables, body: dict[str, Any]
) -> dict[str, Any]:
    """Upload and release; returns everything that is visible, except ids, times and hashes."""
    log_start = len(stack.log.getvalue())
    population = stack.population(**case.population)
    dataset = ingested(stack, case, population, tables)
    release_id = stack.submit(dataset, publish=True, **body)
    run_release(stack.context, release_id)
    shown = stack.release(release_id)
    artifacts = {
        each["name"]: stack.artifact(release_id, each["name"]) for each in shown["artifacts"]
    }
    names = {str(population): "POPULATION", str(dataset): "DATASET", str(release_id): "RELEASE"}
    answers = ModelCache(stack.context).answer(release_id, body["workload"]) if artifacts else None
    pages = {
        path: stack.http.get(path).text
        for path in (
            f"/v1/releases/{release_id}",
            f"/v1/releases/{release_id}/events",
            f"/v1/datasets/{dataset}",
            f"/v1/populations/{population}",
            f"/v1/populations/{population}/ledger?limit=100",
        )
    }
    return {
        "state": shown["state"],
        "answers": answers,
        "pages": {plain(path, names): plain(text, names) for path, text in pages.items()},
        "artifacts": {
            name: plain(content.decode(), names) if name.endswith((".json", ".html")) else content
            for name, content in artifacts.items()
        },
        "logs": [plain(line, names) for line in of_the_worker(stack.log.getvalue()[log_start:])],
    }


def of_the_worker(log: str) -> list[str]:
    """Log lines, except those about requests, whose timing varies."""
    return [line for line in log.splitlines() if json.loads(line)["event"] != "request"]


def plain(text: str, names: dict[str, str]) -> str:
    """The text without what differs between any two releases: ids, times and their hashes."""
    for value, name in names.items():
        text = text.replace(value, name)
    text = re.sub(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00)?)?", "TIME", text)
    text = re.sub(r'"duration_ms": ?[\d.]+', "DURATION", text)
    text = re.sub(r"\b[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\b", "ID", text)
    text = re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{32})\b", "HASH", text)
    return re.sub(r'"signature": "[^"]+"', "SIGNATURE", text)
