"""Artifacts whose stored bytes are damaged or missing: a problem and an alarm, never a result."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.data.errors import ArtifactDamaged
from service.data.task_queue import ANSWER
from service.embedded import ValkeyServer

from .support import Api, problem
from .test_results import CONTENT, celery_is_behind, worker

ALARMS = 'scrim_alarms_total{problem="artifact-damaged"}'


@pytest.fixture
def release(api: Api) -> str:
    """A published release with one artifact."""
    made = api.release(api.ready_dataset(api.population()), publish=True)
    # Unique content: equal contents share one object.
    api.finish(made, {"synthetic.csv": CONTENT + made.encode()})
    return made


def object_of(api: Api, release: str) -> Path:
    (found,) = [path for path in api.objects() if path.read_bytes() == CONTENT + release.encode()]
    return found


def alarms(api: Api) -> float:
    lines = api.role("admin").get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(ALARMS))


def logged(api: Api, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, api.log.getvalue().splitlines())
    return [line for line in lines if line["event"] == event]


@pytest.mark.parametrize("damage", ["changed", "cut short", "missing"])
@pytest.mark.parametrize("part", [{}, {"Range": "bytes=0-9"}], ids=["whole", "range"])
@pytest.mark.parametrize("known", [False, True], ids=["unread", "read before"])
def test_a_damaged_artifact_is_never_sent(
    api: Api, release: str, damage: str, part: dict[str, str], known: bool
) -> None:
    address = f"/v1/releases/{release}/artifacts/synthetic.csv"
    if known:
        assert api.role("analyst").get(address).status_code == 200
    path = object_of(api, release)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        # Far after the requested range.
        path.write_bytes(content[:-1] + (b"!" if damage == "changed" else b""))
    before = alarms(api)
    answer = api.role("analyst").get(address, headers=part)
    told = problem(answer, 500, "artifact-damaged")
    assert "synthetic.csv" in told["detail"]
    assert alarms(api) == before + 1
    last = logged(api, "artifact_damaged")[-1]
    assert (last["level"], last["release_id"], last["artifact"]) == (
        "error",
        release,
        "synthetic.csv",
    )


def test_it_is_sent_again_when_it_is_mended(api: Api, release: str) -> None:
    address = f"/v1/releases/{release}/artifacts/synthetic.csv"
    path = object_of(api, release)
    content = path.read_bytes()
    path.unlink()
    assert api.role("analyst").get(address).status_code == 500
    path.write_bytes(content)
    answer = api.role("analyst").get(address)
    assert (answer.status_code, answer.content) == (200, content)


@celery_is_behind
def test_a_model_that_a_worker_found_damaged(
    api: Api, release: str, valkey_server: ValkeyServer
) -> None:
    before = alarms(api)
    workload = [{"type": "marginals", "attributes": [["sex"]]}]
    with worker(valkey_server.url, {ANSWER: ArtifactDamaged("model")}):
        answer = api.role("analyst").post(
            f"/v1/releases/{release}/answers", json={"workload": workload}
        )
    problem(answer, 500, "artifact-damaged")
    assert alarms(api) == before + 1
