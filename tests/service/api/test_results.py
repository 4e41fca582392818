"""Results of a release: events, artifacts, and a model that answers."""

import base64
import hashlib
import json
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import redis
from celery import Celery

from service.data import progress
from service.data.task_queue import ANSWER, FAST, SAMPLE
from service.embedded import ValkeyServer
from tests.patience import PATIENCE

from .support import Api, pages, problem

CONTENT = bytes(range(256)) * 40
celery_is_behind = pytest.mark.filterwarnings("ignore:Call to deprecated setex")


@pytest.fixture(scope="module")
def finished(api: Api) -> str:
    """A published release with one artifact."""
    release = api.release(api.ready_dataset(api.population()), publish=True)
    api.finish(release, {"synthetic.csv": CONTENT, "empty": b""})
    return release


def events_of(text: str) -> list[tuple[int, str, dict[str, Any]]]:
    found = []
    for block in text.strip().split("\n\n"):
        if block.startswith(":"):
            continue
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def test_events_of_a_finished_release(api: Api, finished: str) -> None:
    answer = api.role("curator").get(f"/v1/releases/{finished}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    assert [seq for seq, _, _ in events] == [1, 2, 3, 4]
    assert [kind for _, kind, _ in events] == ["state", "state", "progress", "state"]
    assert [data.get("state") for _, _, data in events] == ["queued", "running", None, "succeeded"]
    assert events[2][2].keys() == {"done", "total", "rho_spent", "at"}


def test_analysts_are_told_no_time_of_day(api: Api, finished: str) -> None:
    """How long a job took can depend on the rows: neither a release nor its events reveal it."""
    other = api.release(api.ready_dataset(api.population()), publish=True)
    api.finish(other)
    analyst, curator = api.role("analyst"), api.role("curator", "analyst")
    listed = analyst.get("/v1/releases", params={"limit": "1"})
    path = f"/v1/releases/{finished}"
    answers = [listed, *(analyst.get(each) for each in (path, f"{path}/events"))]
    told = [re.findall(r"\d{4}-\d\d-\d\d(T[\d:.]+)", answer.text) for answer in answers]
    assert all(set(times) == {"T00:00:00"} for times in told), told
    assert "T" not in base64.b64decode(listed.json()["next"], altchars=b"-_").decode()
    shown, known = answers[1].json(), curator.get(path).json()
    assert (shown["started_at"], shown["finished_at"]) == (None, None)
    assert known["created_at"].startswith(shown["created_at"].partition("T")[0])
    assert known["created_at"] < known["started_at"] <= known["finished_at"]
    events = events_of(curator.get(f"{path}/events").text)
    assert not any(data["at"].endswith("T00:00:00+00:00") for _, _, data in events)


def test_pages_of_an_analyst_are_complete_and_in_order(api: Api, finished: str) -> None:
    api.finish(api.release(api.ready_dataset(api.population()), publish=True))
    everything = api.role("analyst").get("/v1/releases", params={"limit": "200"}).json()["items"]
    found = pages(api.role("analyst"), "/v1/releases", limit=1)
    assert [each["id"] for page in found for each in page] == [each["id"] for each in everything]
    assert len(found) > 1


def test_events_resume_where_they_broke_off(api: Api, finished: str) -> None:
    path = f"/v1/releases/{finished}/events"
    answer = api.role("curator").get(path, headers={"Last-Event-ID": "2"})
    assert [seq for seq, _, _ in events_of(answer.text)] == [3, 4]
    for wrong in ("x", "-1", str(2**63)):
        problem(api.all.get(path, headers={"Last-Event-ID": wrong}), 422, "invalid")


def test_events_arrive_while_the_release_runs(api: Api) -> None:
    release = api.release(api.ready_dataset(api.population()))
    release_id = uuid.UUID(release)
    seen: list[str] = []
    with api.role("curator").stream("GET", f"/v1/releases/{release}/events") as answer:
        for line in answer.iter_lines():
            if not line.startswith("data:"):
                continue
            seen.append(line)
            with api.session() as session, session.begin():
                if len(seen) == 1:
                    progress.start(session, release_id)
                elif len(seen) == 2:
                    progress.report(session, release_id, done=1, total=1, spent_units=0)
                elif len(seen) == 3:
                    progress.finish(session, release_id, "succeeded")
    assert len(seen) == 4 and "succeeded" in seen[-1]


def test_artifact_whole_and_known(api: Api, finished: str) -> None:
    listed = api.role("analyst").get(f"/v1/releases/{finished}").json()["artifacts"]
    digest = hashlib.sha256(CONTENT).hexdigest()
    assert listed[1] == {
        "name": "synthetic.csv",
        "size": len(CONTENT),
        "sha256": digest,
        "media_type": "text/csv",
    }
    path = f"/v1/releases/{finished}/artifacts/synthetic.csv"
    answer = api.role("analyst").get(path)
    assert answer.status_code == 200 and answer.content == CONTENT
    assert answer.headers["etag"] == f'"{digest}"'
    assert answer.headers["content-length"] == str(len(CONTENT))
    for known in (f'"{digest}"', f'W/"{digest}"', f'"x", "{digest}"', "*"):
        again = api.role("analyst").get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == f'"{digest}"'
    assert api.role("analyst").get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    empty = api.role("analyst").get(f"/v1/releases/{finished}/artifacts/empty")
    assert (empty.status_code, empty.content) == (200, b"")


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=10-", 10, len(CONTENT)),
        ("bytes=-5", len(CONTENT) - 5, len(CONTENT)),
        ("bytes=-999999", 0, len(CONTENT)),
        (f"bytes=5-{10**9}", 5, len(CONTENT)),
    ],
)
def test_artifact_in_part(api: Api, finished: str, asked: str, start: int, end: int) -> None:
    path = f"/v1/releases/{finished}/artifacts/synthetic.csv"
    answer = api.role("analyst").get(path, headers={"Range": asked})
    assert answer.status_code == 206 and answer.content == CONTENT[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"


def test_ranges_that_are_not_one_part(api: Api, finished: str) -> None:
    path = f"/v1/releases/{finished}/artifacts/synthetic.csv"
    analyst = api.role("analyst")
    for ignored in ("bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=9-3", "nonsense"):
        answer = analyst.get(path, headers={"Range": ignored})
        assert (answer.status_code, answer.content) == (200, CONTENT)
    for beyond in (f"bytes={len(CONTENT)}-", "bytes=-0"):
        answer = analyst.get(path, headers={"Range": beyond})
        problem(answer, 416, "range-not-satisfiable")
        assert answer.headers["content-range"] == f"bytes */{len(CONTENT)}"
    stale = analyst.get(path, headers={"Range": "bytes=0-1", "If-Range": '"old"'})
    assert (stale.status_code, stale.content) == (200, CONTENT)


def test_artifacts_that_are_not_there(api: Api, finished: str) -> None:
    path = f"/v1/releases/{finished}/artifacts"
    problem(api.all.get(f"{path}/model"), 404, "not-found")
    problem(api.all.get(f"{path}/Weird%00Name"), 422, "invalid")


@contextmanager
def worker(broker_url: str, answers: dict[str, Any]) -> Iterator[list[list[Any]]]:
    """Answers one question, as Celery would, and keeps what it was asked."""
    asked: list[list[Any]] = []
    backend = Celery("worker", broker=broker_url, backend=broker_url, set_as_current=False)

    def serve() -> None:
        with redis.Redis.from_url(broker_url) as broker:
            found = broker.blpop([FAST], timeout=PATIENCE)
            assert found is not None
            message = json.loads(found[1])
            headers = message["headers"]
            asked.append(json.loads(base64.b64decode(message["body"]))[0])
            result = answers[headers["task"]]
            if isinstance(result, Exception):
                backend.backend.mark_as_failure(headers["id"], result)
            else:
                backend.backend.mark_as_done(headers["id"], result)

    thread = threading.Thread(target=serve)
    thread.start()
    yield asked
    thread.join()
    backend.close()


@celery_is_behind
def test_answers_come_from_a_worker(api: Api, finished: str, valkey_server: ValkeyServer) -> None:
    row = {
        "item": "sex",
        "query": "sex=F",
        "value": 0.5,
        "count": 1.0,
        "standard_error": 0.5,
        "count_standard_error": 0.25,
        "basis": "measured",
    }
    workload = [{"type": "marginals", "attributes": [["sex"]]}]
    with worker(valkey_server.url, {ANSWER: [row]}) as asked:
        answer = api.role("analyst").post(
            f"/v1/releases/{finished}/answers", json={"workload": workload}
        )
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"items": [row], "next": None}
    assert asked == [[finished, workload]]


@celery_is_behind
def test_samples_come_from_a_worker(api: Api, finished: str, valkey_server: ValkeyServer) -> None:
    with worker(valkey_server.url, {SAMPLE: "sex,age\nF,31\n"}) as asked:
        answer = api.role("analyst").post(f"/v1/releases/{finished}/samples", json={"rows": 1})
    assert answer.text == "sex,age\nF,31\n"
    assert answer.headers["content-type"].startswith("text/csv")
    assert asked == [[finished, 1]]


@celery_is_behind
def test_a_worker_that_fails_is_not_quoted(
    api: Api, finished: str, valkey_server: ValkeyServer
) -> None:
    with worker(valkey_server.url, {SAMPLE: ValueError("secret")}):
        answer = api.role("analyst").post(f"/v1/releases/{finished}/samples", json={"rows": 1})
    problem(answer, 503, "not-ready")
    assert "secret" not in answer.text


def test_questions_that_cannot_be_answered(api: Api, finished: str) -> None:
    analyst = api.role("analyst")

    def ask(release: str, part: str, body: Any) -> httpx.Response:
        return analyst.post(f"/v1/releases/{release}/{part}", json=body)

    problem(ask(finished, "samples", {"rows": 0}), 422, "invalid")
    problem(ask(finished, "samples", {"rows": 10**9}), 422, "invalid")
    unknown = {"workload": [{"type": "marginals", "attributes": [["height"]]}]}
    problem(ask(finished, "answers", unknown), 422, "cannot-work")
    dataset = api.ready_dataset(api.population())
    queued = api.release(dataset, publish=True)
    as_curator_too = api.all.post(f"/v1/releases/{queued}/samples", json={"rows": 1})
    problem(as_curator_too, 409, "release-not-finished")
    gaussian = api.release(dataset, publish=True, mechanism={"name": "gaussian"})
    api.finish(gaussian)
    problem(ask(gaussian, "samples", {"rows": 1}), 422, "cannot-work")


@celery_is_behind
def test_a_workload_of_too_many_queries_is_refused(api: Api, valkey_server: ValkeyServer) -> None:
    columns = [
        {"name": name, "type": "integer", "lower": 0, "upper": size - 1, "bins": {"width": 1}}
        | {"nullable": False}
        for name, size in (("wide", 1000), ("narrow", 100), ("flag", 2))
    ]
    dataset = api.ready_dataset(api.population(), schema={"columns": columns})
    release = api.release(dataset, publish=True, workload=[{"type": "marginals", "k": 1}])
    api.finish(release)

    def ask(*marginals: list[str]) -> httpx.Response:
        workload = [{"type": "marginals", "attributes": [each]} for each in marginals]
        return api.role("analyst").post(
            f"/v1/releases/{release}/answers", json={"workload": workload}
        )

    for refused in ([["wide", "narrow"], ["flag"]], [["wide", "narrow", "flag"]]):
        found = problem(ask(*refused), 422, "invalid")
        assert "100,000 queries" in found["detail"]
        assert found["errors"] == [{"loc": ["body", "workload"], "message": found["detail"]}]
    with worker(valkey_server.url, {ANSWER: []}):
        assert ask(["wide", "narrow"]).status_code == 200


def test_a_column_without_bins_has_no_cells(api: Api) -> None:
    columns = [
        {"name": "sex", "type": "categorical", "values": ["F", "M"]},
        {"name": "income", "type": "real", "lower": 0, "upper": 1000},
    ]
    dataset = api.ready_dataset(api.population(), schema={"columns": columns})
    workload = [{"type": "marginals", "attributes": [["sex"]]}]
    release = api.release(dataset, publish=True, workload=workload, mechanism={"name": "gaussian"})
    api.finish(release)
    asked = {"workload": [{"type": "marginals", "attributes": [["sex", "income"]]}]}
    answer = api.role("analyst").post(f"/v1/releases/{release}/answers", json=asked)
    detail = problem(answer, 422, "cannot-work")["detail"]
    assert "'income' is not part of this release" in detail and "outputs.columns" in detail
