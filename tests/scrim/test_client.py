"""Keys, populations, datasets and releases, as the service is asked for them."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from scrim import DamagedDownload, DatasetRejected, ReleaseFailed, UnusableInput, WaitedTooLong
from scrim.events import EventReader
from scrim.records import Population, Progress
from scrim.spec.release import ReleaseRequest
from scrim.spec.schema import Schema
from scrim.spec.workload import Marginals, Ranges
from tests.scrim.support import (
    DATASET,
    POPULATION,
    RELEASE,
    SCHEMA,
    SPEC,
    TWO_LEVEL,
    Script,
    answer,
    events,
    problem,
)

pytestmark = pytest.mark.usefixtures("both_ways")

RUNNING = RELEASE | {"state": "running", "progress": {"done": 1, "total": 3}}


class TestCalls:
    def test_a_key_may_expire(self) -> None:
        script = Script(answer({"id": "k", "name": "n", "scopes": ["analyst"], "key": "s"}, 201))
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        script.client().keys.create("n", ["analyst"], expires_at=moment)
        assert script.bodies == [
            {"name": "n", "scopes": ["analyst"], "expires_at": "2030-01-01T00:00:00+00:00"}
        ]

    def test_a_population_is_sent_without_what_was_not_given(self) -> None:
        script = Script(answer(POPULATION, 201))
        made = script.client().populations.create("people", cap={"epsilon": 10.0}, delta=1e-9)
        assert made.budget.rho_left == 0.75
        assert script.bodies[0] == {
            "name": "people",
            "unit": "row",
            "relation": "add_remove",
            "cap": {"epsilon": 10.0},
            "delta": 1e-9,
        }

    def test_a_public_dataset_states_that_it_is_disjoint(self) -> None:
        script = Script(answer(DATASET | {"visibility": "public", "population_id": None}, 201))
        script.client().datasets.create_public("t", SCHEMA, provenance="a census")
        assert script.bodies[0]["disjoint_from_population"] is True
        assert script.bodies[0]["provenance"] == "a census"

    def test_a_model_is_asked(self) -> None:
        item = {
            "item": "sex",
            "query": "sex=F",
            "value": 0.5,
            "count": 10.0,
            "standard_error": 0.02,
            "count_standard_error": 0.1,
            "basis": "independent",
        }
        script = Script(answer({"items": [item], "next": None}))
        found = script.client().releases.answers("r1", SPEC["workload"])
        assert (found[0].query, found[0].value) == ("sex=F", 0.5)
        assert found[0].basis == "independent"
        assert (found[0].standard_error, found[0].count_standard_error) == (0.02, 0.1)
        assert script.bodies == [{"workload": SPEC["workload"]}]

    def test_rows_are_drawn_as_csv(self) -> None:
        script = Script(httpx.Response(200, text="sex\nF\n"))
        assert script.client().releases.samples("r1", 1) == "sex\nF\n"


class TestUpload:
    def test_a_file_is_streamed(self, tmp_path: Path) -> None:
        file = tmp_path / "table.csv"
        file.write_bytes(b"sex\n" + b"F\n" * 1_000_000)
        sent: list[Progress] = []
        script = Script(answer(DATASET | {"state": "ingesting"}, 202))
        script.client().datasets.upload_content("d1", file, progress=sent.append)
        request = script.requests[0]
        assert request.content == file.read_bytes()
        assert request.headers["Content-Type"] == "text/csv"
        assert request.headers["Content-Length"] == str(file.stat().st_size)
        assert "Transfer-Encoding" not in request.headers
        size = file.stat().st_size
        assert [(each.done, each.total) for each in sent] == [(2**20, size), (size, size)]

    def test_it_starts_anew_after_a_refusal_at_the_door(self, tmp_path: Path) -> None:
        file = tmp_path / "table.parquet"
        file.write_bytes(b"PAR1")
        script = Script(problem(429, "rate-limited"), answer(DATASET, 202))
        script.client().datasets.upload_content("d1", file, table="groups")
        assert [request.content for request in script.requests] == [b"PAR1", b"PAR1"]
        assert script.requests[1].url.params["table"] == "groups"

    def test_an_unknown_format_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "table.xlsx"
        file.touch()
        with pytest.raises(UnusableInput, match=r"\.parquet"):
            Script().client().datasets.upload_content("d1", file)

    def test_waiting_ends_when_the_rows_are_read(self) -> None:
        script = Script(answer(DATASET | {"state": "ingesting"}), answer(DATASET))
        assert script.client().datasets.wait("d1").state == "ready"
        assert len(script.pauses) == 1

    def test_a_rejected_dataset_is_an_error_with_the_reason(self) -> None:
        script = Script(answer(DATASET | {"state": "rejected", "reason": "no column 'sex'"}))
        with pytest.raises(DatasetRejected, match="no column 'sex'"):
            script.client().datasets.wait("d1")

    def test_waiting_has_an_end(self) -> None:
        script = Script(answer(DATASET | {"state": "ingesting"}))
        with pytest.raises(WaitedTooLong):
            script.client().datasets.wait("d1", timeout=-1)


class TestUploadInOneCall:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "table.csv"
        path.write_text("sex\nF\n")
        return path

    def steps(self, uploads: int = 1) -> list[httpx.Response]:
        awaiting = answer(DATASET | {"state": "awaiting_content"}, 201)
        sent = [answer(DATASET | {"state": "ingesting"}, 202)] * uploads
        return [awaiting, *sent, answer(DATASET | {"state": "ingesting"}), answer(DATASET)]

    def test_it_declares_sends_and_waits(self, file: Path) -> None:
        script = Script(*self.steps())
        owner = Population.model_validate(POPULATION)
        found = script.client().datasets.upload(file, schema=SCHEMA, population=owner)
        assert found.state == "ready"
        declared = json.loads(script.requests[0].content)
        assert declared == {
            "name": "table.csv",
            "population_id": "p1",
            "visibility": "private",
            "schema": SCHEMA,
        }
        assert script.requests[1].content == file.read_bytes()
        assert len(script.pauses) == 1

    def test_public_rows_say_where_they_are_from(self, file: Path) -> None:
        script = Script(*self.steps())
        script.client().datasets.upload(str(file), schema=SCHEMA, provenance="a census", name="t")
        declared = json.loads(script.requests[0].content)
        assert declared["visibility"] == "public" and declared["name"] == "t"
        assert declared["disjoint_from_population"] is True

    def test_groups_and_individuals_are_two_tables(self, file: Path) -> None:
        script = Script(*self.steps(uploads=2))
        tables = {"individuals": file, "groups": file}
        script.client().datasets.upload(tables, schema=TWO_LEVEL, population="p1")
        sent = [request.url.params["table"] for request in script.requests[1:3]]
        assert sent == ["groups", "individuals"]

    def test_waiting_is_left_out_if_asked(self, file: Path) -> None:
        script = Script(*self.steps()[:2])
        dataset = script.client().datasets.upload(file, schema=SCHEMA, population="p1", wait=False)
        assert dataset.state == "ingesting"

    @pytest.mark.parametrize("owners", [{}, {"population": "p1", "provenance": "a census"}])
    def test_rows_are_private_or_public(self, file: Path, owners: dict[str, str]) -> None:
        script = Script()
        with pytest.raises(UnusableInput, match="population= for private rows"):
            script.client().datasets.upload(file, schema=SCHEMA, **owners)

    def test_faults_are_found_before_anything_is_sent(self, file: Path) -> None:
        client = Script().client()
        with pytest.raises(UnusableInput, match="is not a file"):
            client.datasets.upload(file.with_name("none.csv"), schema=SCHEMA, population="p1")
        with pytest.raises(UnusableInput, match="groups and individuals"):
            client.datasets.upload({"groups": file}, schema=TWO_LEVEL, population="p1")
        with pytest.raises(UnusableInput, match="data frame of pandas"):
            client.datasets.upload([1, 2], schema=SCHEMA, population="p1")


class TestModels:
    """Everything may be given as models of scrim.spec."""

    def test_a_release(self) -> None:
        script = Script(answer(RELEASE, 202))
        request = ReleaseRequest.model_validate(SPEC | {"dataset_id": "d1"})
        script.client().releases.submit(request)
        assert ReleaseRequest.model_validate_json(script.requests[0].content) == request

    def test_parts_of_a_release(self) -> None:
        script = Script(answer(RELEASE, 202))
        items = [Marginals(type="marginals", k=1)]
        script.client().releases.submit(SPEC | {"dataset_id": "d1", "workload": items})
        sent = ReleaseRequest.model_validate_json(script.requests[0].content)
        assert list(sent.workload) == items

    def test_a_schema(self) -> None:
        script = Script(answer(DATASET, 201))
        schema = Schema.model_validate(SCHEMA)
        script.client().datasets.create("t", schema, population_id="p1")
        assert Schema.model_validate(script.bodies[0]["schema"]) == schema

    def test_a_question_about_missing_values_keeps_them(self) -> None:
        script = Script(answer({"items": [], "next": None}))
        asked = Ranges.model_validate({"type": "ranges", "queries": [{"sex": None}]})
        script.client().releases.answers("r1", [asked])
        assert script.bodies[0]["workload"][0]["queries"] == [{"sex": None}]


class TestWaiting:
    def test_progress_comes_from_events(self) -> None:
        stream = events(
            (1, "state", {"state": "running"}),
            (2, "progress", {"done": 1, "total": 3}),
            (3, "progress", {"done": 2, "total": 3}),
        )
        script = Script(stream, answer(RELEASE))
        seen: list[Progress] = []
        assert script.client().releases.wait("r1", progress=seen.append).state == "succeeded"
        assert [progress.done for progress in seen] == [1, 2, 3]

    def test_a_stream_that_broke_off_is_resumed(self) -> None:
        first = events((4, "progress", {"done": 1, "total": 3}))
        script = Script(first, answer(RUNNING), events(), answer(RELEASE))
        script.client().releases.wait("r1")
        asked = [request.headers.get("Last-Event-ID") for request in script.requests]
        assert asked == ["0", None, "4", None]

    def test_without_events_it_looks_by_itself(self) -> None:
        refused = problem(404, "not-found")
        script = Script(refused, answer(RUNNING), refused, answer(RELEASE))
        seen: list[Progress] = []
        script.client().releases.wait("r1", progress=seen.append)
        assert [progress.done for progress in seen] == [1, 3]

    def test_a_failed_release_is_an_error_with_the_reason(self) -> None:
        failed = RELEASE | {"state": "failed", "error": {"detail": "the workers died"}}
        with pytest.raises(ReleaseFailed, match="r1 failed: the workers died") as caught:
            Script(events(), answer(failed)).client().releases.wait("r1")
        assert caught.value.release.state == "failed"

    def test_a_cancelled_release_has_no_reason(self) -> None:
        script = Script(events(), answer(RELEASE | {"state": "cancelled"}))
        with pytest.raises(ReleaseFailed, match=r"r1 cancelled$"):
            script.client().releases.wait("r1")

    def test_waiting_has_an_end(self) -> None:
        with pytest.raises(WaitedTooLong):
            Script(events(), answer(RUNNING)).client().releases.wait("r1", timeout=-1)

    def test_waiting_ends_in_a_stream_that_says_nothing(self) -> None:
        silent = httpx.Response(200, text=": still here\n\n: still here\n\n")
        with pytest.raises(WaitedTooLong):
            Script(silent).client().releases.wait("r1", timeout=-1)

    def test_lines_that_are_no_events_are_passed_over(self) -> None:
        lines = [": still here", "", "event: state", "", "id: 7", "data:{}", "", "id: 8"]
        reader = EventReader()
        found = [event for line in lines if (event := reader.feed(line))]
        assert [(event.id, event.kind) for event in found] == [(7, "message")]


def artifact(name: str, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    return {"name": name, "size": len(content), "sha256": digest, "media_type": "text/csv"}


class TestDownload:
    def release(self, *artifacts: dict[str, object]) -> httpx.Response:
        return answer(RELEASE | {"artifacts": list(artifacts)})

    def test_files_are_written_and_checked(self, tmp_path: Path) -> None:
        script = Script(
            self.release(artifact("a.csv", b"1\n"), artifact("b.csv", b"2\n")),
            httpx.Response(200, content=b"1\n"),
            httpx.Response(200, content=b"2\n"),
        )
        paths = script.client().releases.download("r1", tmp_path / "new")
        assert {name: path.read_bytes() for name, path in paths.items()} == {
            "a.csv": b"1\n",
            "b.csv": b"2\n",
        }

    def test_other_content_is_refused_and_not_kept(self, tmp_path: Path) -> None:
        script = Script(self.release(artifact("a.csv", b"1\n")), httpx.Response(200, content=b"2"))
        with pytest.raises(DamagedDownload, match=r"a\.csv is not what"):
            script.client().releases.download("r1", tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_only_what_is_asked_for_is_fetched(self, tmp_path: Path) -> None:
        script = Script(
            self.release(artifact("a.csv", b"1\n"), artifact("b.csv", b"2\n")),
            httpx.Response(200, content=b"2\n"),
        )
        assert list(script.client().releases.download("r1", tmp_path, names=["b.csv"])) == ["b.csv"]

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        script = Script(self.release(artifact("a.csv", b"")))
        with pytest.raises(DamagedDownload, match=r"no artifact 'c\.csv'; it has a\.csv"):
            script.client().releases.download("r1", tmp_path, names=["c.csv"])

    @pytest.mark.parametrize("name", ["../a", "..", ".a", "a/b", "", "/etc/passwd"])
    def test_a_name_cannot_leave_the_folder(self, tmp_path: Path, name: str) -> None:
        script = Script(self.release(artifact(name, b"")))
        with pytest.raises(DamagedDownload, match="not the name of an artifact"):
            script.client().releases.download("r1", tmp_path)


def test_a_body_is_sent_as_it_is() -> None:
    script = Script(answer(RELEASE, 202))
    script.client().releases.submit(SPEC | {"dataset_id": "d1"})
    assert json.loads(script.requests[0].content) == SPEC | {"dataset_id": "d1"}
