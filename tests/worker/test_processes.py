"""Real workers and a real reaper, killed at critical points: jobs end, and nothing is charged twice."""

import csv
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
import redis
from sqlalchemy import text

from service.data.task_queue import RUN
from service.embedded import Command
from tests.worker.support import (
    H_GEM,
    HOUSEHOLDS,
    OWNED_SCHEMA,
    TWO_LEVEL,
    Stack,
    await_that,
    csv_rows,
    households,
    running_stack,
)

pytestmark = [pytest.mark.e2e, pytest.mark.random]

MOST_SECONDS_TO_CANCEL = 5.0
FINAL = {"succeeded", "failed", "cancelled"}
# The worker's first child dies of each of these in turn; each time a fresh one takes over.
# A worker as it is, but with everything imported (not run) before it forks: that saves seconds
# whenever a child is replaced.
WORKER = (
    "-c",
    "import worker.ingest, worker.models, worker.turns, worker.__main__ as main; main.main()",
)
LABELS = (
    "during-ingest,before-claim,before-commit,after-commit,before-artifacts,after-draw,"
    "after-artifacts-before-finish"
)
LINKING = "during-linking"


class Live:
    """An installation with workers."""

    def __init__(self, stack: Stack, broker: "redis.Redis", held: ExitStack) -> None:
        self.stack = stack
        self.broker = broker
        self._held = held

    def start(self, name: str, *arguments: str, **changes: str) -> Command:
        process = self.stack.process(name, *arguments, **changes)
        process.start()
        self._held.callback(process.stop)
        return process

    def await_end(self, release: UUID) -> dict[str, Any]:
        shown: dict[str, Any] = {}

        def has_ended() -> bool:
            shown.update(self.stack.release(release))
            return shown["state"] in FINAL

        await_that(has_ended, "end of a release")
        return shown

    def await_ready(self, dataset: UUID) -> None:
        def is_ready() -> bool:
            state = self.stack.show("datasets", dataset)["state"]
            assert state != "rejected"
            return bool(state == "ready")

        await_that(is_ready, "ingest of a dataset")


def marks(place: Path) -> list[Path]:
    """The marks that keep a worker alive, because another one was killed already."""
    return [mark(place, label) for label in LABELS.split(",")]


def mark(place: Path, label: str) -> Path:
    return place / f"crashed-{label}"


@pytest.fixture(scope="module")
def live(postgres_url: str, valkey_url: str, folder: Path) -> Iterator[Live]:
    place = folder / "live"
    place.mkdir()
    for each in (*marks(place), mark(place, LINKING)):
        each.touch()
    broker_url = valkey_url.removesuffix("/0") + "/1"
    with ExitStack() as held:
        stack = held.enter_context(
            running_stack(
                postgres_url,
                broker_url,
                place,
                SCRIM_LEASE_SECONDS="1.5",
                SCRIM_REAPER_SECONDS="0.1",
                SCRIM_RESEND_SECONDS="1",
                SCRIM_RETRY_SECONDS="0.1",
                # On a busy machine leases of 1.5 seconds are lost, and each loss is an attempt.
                SCRIM_MAX_ATTEMPTS="1000",
                SCRIM_MODEL_TIMEOUT_SECONDS="60",
            )
        )
        broker = held.enter_context(redis.Redis.from_url(broker_url))
        live = Live(stack, broker, held)
        live.start("reaper", "-m", "worker.reaper")
        live.start("worker", *WORKER, "--concurrency=3", SCRIM_CRASH_AT=f"{LABELS},{LINKING}")
        yield live
        stack.check()


def test_public_data_through_real_workers(live: Live) -> None:
    """Both tables are uploaded; the synthetic rows are public rows with learned weights."""
    stack = live.stack
    dataset, public = stack.uploaded(), stack.dataset(None)
    stack.upload(public, csv_rows(300, seed=1))
    for each in (dataset, public):
        live.await_ready(each)
    release = stack.submit(
        dataset,
        public_dataset_id=str(public),
        mechanism={"name": "pmw_pub", "rounds": 2, "screen": {"max_error": 1.0}},
        budget={"rho": 5.0},
    )
    shown = live.await_end(release)
    assert shown["state"] == "succeeded", shown
    rows = list(csv.DictReader(stack.artifact(release, "synthetic.csv").decode().splitlines()))
    assert len(rows) == 60 and {row["town"] for row in rows} <= {"a", "b"}
    assert [each.kind for each in stack.journal(release)][1] == "best_mixture"


def test_killed_at_every_point(live: Live) -> None:
    """One worker after the other dies; the job ends as if none had."""
    stack = live.stack
    for each in marks(stack.folder):
        each.unlink()
    population = stack.population()
    dataset = stack.uploaded(population)
    live.await_ready(dataset)
    release = stack.submit(dataset, outputs={"rows": 60, "certify": {}, "draws": 2})
    shown = live.await_end(release)
    assert shown["state"] == "succeeded", shown
    assert all(each.exists() for each in marks(stack.folder))
    # Rows, three rounds of two operations, certify (the largest error, the item's total, those of columns):
    # each journaled once, by any worker.
    journal = stack.journal(release)
    kinds = ["rows", *["select", "measure"] * 3, *["certify"] * 3]
    assert [each.kind for each in journal] == kinds
    spent = sum(each.price_units for each in journal)
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0)
    assert shown["rho_spent"] == spent / 1e12
    # Five of the seven deaths held a lease of the release, and then it was finished; on a busy
    # machine a lease may be lost besides.
    assert stack.reservation(release).lease_epoch >= len(LABELS.split(",")) - 1
    for name in ("synthetic.csv", "synthetic_1.csv", "synthetic_2.csv"):
        lines = stack.artifact(release, name).decode().splitlines()
        assert len(list(csv.reader(lines))) == 61
    check_that_one_ingest_is_left(stack, dataset)


def check_that_one_ingest_is_left(stack: Stack, dataset: UUID) -> None:
    """Check that the killed ingest left nothing behind."""
    # Uploads are deleted after the dataset has become ready.
    uploads = f"datasets/{dataset}/uploads"
    await_that(lambda: not stack.objects(uploads), "end of the uploads")
    tables = stack.folder / "objects" / "datasets" / str(dataset) / "tables"
    epochs = {path.relative_to(tables).parts[0] for path in stack.objects(f"datasets/{dataset}")}
    assert len(epochs) == 1 and epochs != {"1"}


def test_killed_while_groups_are_linked(live: Live) -> None:
    stack = live.stack
    mark(stack.folder, LINKING).unlink()
    dataset = stack.dataset(stack.population(**HOUSEHOLDS), TWO_LEVEL)
    for table, content in zip(("groups", "individuals"), households(100), strict=True):
        stack.upload(dataset, content, table=table)
    live.await_ready(dataset)
    assert mark(stack.folder, LINKING).exists()
    check_that_one_ingest_is_left(stack, dataset)
    release = stack.submit(dataset, **H_GEM)
    shown = live.await_end(release)
    assert shown["state"] == "succeeded", shown
    lines = stack.artifact(release, "synthetic_groups.csv").decode().splitlines()
    assert len(lines) == 61


def test_answers_and_samples(live: Live) -> None:
    stack = live.stack
    dataset = stack.uploaded()
    live.await_ready(dataset)
    release = stack.submit(dataset)
    assert live.await_end(release)["state"] == "succeeded"
    asked = {"workload": [{"type": "marginals", "attributes": [["sex"]]}]}
    answer = stack.http.post(f"/v1/releases/{release}/answers", json=asked)
    assert answer.status_code == 200, answer.text
    assert sum(each["value"] for each in answer.json()["items"]) == pytest.approx(1)
    drawn = stack.http.post(f"/v1/releases/{release}/samples", json={"rows": 7})
    assert drawn.status_code == 200, drawn.text
    assert len(drawn.text.splitlines()) == 8
    # Answers do not stay in the broker, and jobs never leave one there.
    assert not live.broker.keys("celery-task-meta-*")


def test_messages_that_come_twice_or_not_at_all(live: Live) -> None:
    stack = live.stack
    population = stack.population()
    dataset = stack.uploaded(population)
    live.await_ready(dataset)
    twice = stack.submit(dataset)
    for _ in range(3):
        stack.context.task_queue.send(RUN, str(twice))
    assert live.await_end(twice)["state"] == "succeeded"
    assert len(stack.journal(twice)) == 7
    # The broker loses everything; the reaper sends the messages again.
    lost = stack.submit(dataset)
    live.broker.flushdb()
    assert live.await_end(lost)["state"] == "succeeded"
    spent = sum(each.price_units for job in (twice, lost) for each in stack.journal(job))
    assert stack.account(population).spent_units == spent


CANARY = "kanarienvogel"


def test_no_value_of_a_row_shows_anywhere(live: Live) -> None:
    """T8: values of rows appear nowhere, whatever happens to the file."""
    stack = live.stack
    population = stack.population(unit="person", max_rows_per_person=3)
    header = b"sex,age,town,pid,secret\n"
    rows = "".join(
        f"{CANARY}-{number},{CANARY},{CANARY} {number},{CANARY}.{number // 4},{CANARY}\n"
        for number in range(200)
    ).encode()
    ragged, unowned = header + rows + f"{CANARY},1\n".encode(), header + f"{CANARY},1,a,,".encode()
    responses: list[str] = []
    for content, state in ((header + rows, "ready"), (ragged, "rejected"), (unowned, "rejected")):
        dataset = stack.dataset(population, OWNED_SCHEMA)
        stack.upload(dataset, content)
        responses += follow(live, dataset, state)
    check_that_no_canary_is_kept(stack, responses)


def test_no_value_of_a_group_shows_anywhere(live: Live) -> None:
    """T8, where groups of individuals are linked: orphans, strays and groups that are too large."""
    stack = live.stack
    population = stack.population(**HOUSEHOLDS)
    groups = "hid,town,secret\n" + "".join(
        f"{CANARY}{number},{CANARY},{CANARY}\n" for number in range(40)
    )
    rows = "hid,sex,age\n" + "".join(
        f"{CANARY}{20 + number % 40},{CANARY},{CANARY}{number}\n" for number in range(200)
    )
    responses: list[str] = []
    for content, state in ((rows, "ready"), (f"{rows},{CANARY},1\n", "rejected")):
        dataset = stack.dataset(population, TWO_LEVEL)
        stack.upload(dataset, groups.encode(), table="groups")
        stack.upload(dataset, content.encode(), table="individuals")
        responses += follow(live, dataset, state, **H_GEM)
    check_that_no_canary_is_kept(stack, responses)


def follow(live: Live, dataset: UUID, state: str, **release: Any) -> list[str]:
    """All responses about a dataset, and about a release of it if the dataset is readable."""
    stack = live.stack
    await_that(lambda: stack.show("datasets", dataset)["state"] == state, state)
    responses = [json.dumps(stack.show("datasets", dataset))]
    if state != "ready":
        return responses
    outputs = {"rows": 60, "formats": ["csv", "parquet"]}
    released = stack.submit(dataset, **release | {"outputs": outputs})
    responses.append(json.dumps(live.await_end(released)))
    assert '"state": "succeeded"' in responses[-1]
    population = stack.show("datasets", dataset)["population_id"]
    return [
        *responses,
        stack.http.get(f"/v1/releases/{released}/events").text,
        stack.http.get(f"/v1/populations/{population}/ledger").text,
    ]


def check_that_no_canary_is_kept(stack: Stack, responses: list[str]) -> None:
    kept = list(everything(stack, responses))
    assert [name for name, content in kept if CANARY.encode() in content] == []
    # The search finds what is public: a declared name, in the database and in every kind of file.
    public = " ".join(name for name, content in kept if b"town" in content)
    assert all(part in public for part in ("responses", "dataset", "unpacked", "/artifacts/"))


def everything(stack: Stack, responses: list[str]) -> Iterator[tuple[str, bytes]]:
    """Everything stored or sent: files, logs, responses, tables, and unpacked artifacts."""
    yield "responses", "".join(responses).encode()
    yield "logs", stack.logs()
    for path in stack.folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()
            if path.read_bytes().startswith(b"PAR1"):
                yield f"{path}, unpacked", str(pq.read_table(path).to_pydict()).encode()
    with stack.owner.connect() as connection:
        tables = connection.execute(
            text(
                "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables"
                " WHERE table_schema IN ('public', 'ledger') AND table_type = 'BASE TABLE'"
            )
        ).scalars()
        for table in tables.all():
            # Bytes as text, so that a canary inside them is found as well.
            rows = connection.execute(text(f"SELECT t::text FROM {table} AS t")).scalars().all()
            yield table, "\n".join(rows).encode()
            hexadecimal = "\n".join(rows)
            for chunk in re.findall(r"\\x((?:[0-9a-f]{2})+)", hexadecimal):
                yield f"{table}, decoded", bytes.fromhex(chunk)


def test_children_die_with_their_worker(live: Live) -> None:
    worker = live.start("short-lived", "-m", "worker", "--queue=fast")
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    await_that(lambda: bool(children.read_text().split()), "a child of the worker")
    pids = [int(pid) for pid in children.read_text().split()]
    # The guard is the first child of a worker that has one. It ends releases, and this one runs none.
    assert not any(b"worker.guard" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
    os.kill(worker.pid, signal.SIGKILL)

    def are_gone() -> bool:
        return not any(_is_alive(pid) for pid in pids)

    await_that(are_gone, "end of the children")


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


LONG_FIT: dict[str, Any] = {
    "mechanism": {"name": "gem", "rounds": 2, "steps": 100_000, "learning_rate": 1e-9},
    "budget": {"rho": 4.0},
}
"""A release whose first fit makes tiny steps for longer than any test waits."""


def await_first_fit(live: Live, release: UUID) -> None:
    """Wait until the job's first fit begins, which takes a long time."""
    await_that(lambda: len(live.stack.journal(release)) >= 3, "first measurement")


def test_cancelled_in_the_middle_of_a_long_fit(live: Live) -> None:
    stack = live.stack
    population = stack.population()
    dataset = stack.uploaded(population)
    live.await_ready(dataset)
    release = stack.submit(dataset, **LONG_FIT)
    await_first_fit(live, release)
    stack.cancel(release)
    assert live.await_end(release)["state"] == "cancelled"
    spent = sum(each.price_units for each in stack.journal(release))
    account = stack.account(population)
    assert (account.spent_units, account.reserved_units) == (spent, 0) and spent > 0
    # A dry run has no lease that names its process.
    dry = stack.submit(dataset, dry_run=True, **LONG_FIT)
    await_that(lambda: stack.release(dry)["state"] == "running", "start of a dry run")
    stack.cancel(dry)
    assert live.await_end(dry)["state"] == "cancelled"
    assert live.await_end(stack.submit(dataset))["state"] == "succeeded"


@pytest.mark.slow
def test_time_to_cancel_a_long_fit(live: Live) -> None:
    """Print the time from the request to cancel until the release is cancelled."""
    stack = live.stack
    dataset = stack.uploaded(stack.population())
    live.await_ready(dataset)
    for _ in range(5):
        release = stack.submit(dataset, **LONG_FIT)
        await_first_fit(live, release)
        start = time.monotonic()
        stack.cancel(release)
        assert live.await_end(release)["state"] == "cancelled"
        seconds = time.monotonic() - start
        print(f"{seconds:6.2f} s  from cancel to cancelled, in a fit of gem")
        assert seconds < MOST_SECONDS_TO_CANCEL
