"""The `scrim` command: what it prints, what it asks for, and how it fails."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from client.cli import app
from client.transport import ATTEMPTS
from tests.client.support import (
    DATASET,
    POPULATION,
    RELEASE,
    SCHEMA,
    SPEC,
    TWO_LEVEL,
    Script,
    answer,
    events,
    page,
    problem,
)

PREVIEW = {
    "rho": 0.1,
    "epsilon": 1.0,
    "rho_left_after": 0.65,
    "queries": 2,
    "operations": 2,
    "items": [{"item": 0, "queries": 2, "sigma": 3.25, "expected_error": 2.5}],
    "warnings": ["mind the [gap]"],
}

Play = Callable[..., Script]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Let the commands talk to a script."""
    monkeypatch.setenv("SCRIM_KEY", "secret")
    monkeypatch.setenv("SCRIM_URL", "http://scrim.test")

    def prepare(*steps: Any) -> Script:
        script = Script(*steps)
        monkeypatch.setattr("client.commands.session.Client", lambda url, key: script.client(key))
        return script

    return prepare


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC | {"dataset_id": "d1"}))
    return path


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, Path]:
    """A table and its schema."""
    file, schema = tmp_path / "table.csv", tmp_path / "schema.json"
    file.write_text("sex\nF\n")
    schema.write_text(json.dumps(SCHEMA))
    return file, schema


@pytest.fixture
def households(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A table of groups, one of individuals, and the schema of both."""
    groups, individuals = tmp_path / "homes.csv", tmp_path / "people.csv"
    groups.write_text("hid,town\n1,a\n")
    individuals.write_text("hid,sex\n1,F\n")
    schema = tmp_path / "two-level.json"
    schema.write_text(json.dumps(TWO_LEVEL))
    return groups, individuals, schema


def uploading(groups: Path, individuals: Path, schema: Path) -> list[object]:
    files = ["--groups", groups, "--individuals", individuals]
    return ["dataset", "upload", *files, "--schema", schema, "--population", "p1"]


class TestErrors:
    def test_a_problem_is_shown_with_its_fields(self, play: Play) -> None:
        fields = [{"loc": ["body", "cap"], "message": "give exactly one"}]
        play(problem(422, "invalid", "see errors", errors=fields))
        code, out, err = run("population", "create", "people", "--epsilon", "1")
        assert (code, out) == (1, "")
        assert "see errors" in err
        assert "body.cap: give exactly one" in err
        assert "request abc" in err

    def test_a_missing_scope_comes_with_advice(self, play: Play) -> None:
        play(problem(403, "scope-missing", "this call needs a key with the scope curator"))
        code, _, err = run("dataset", "list")
        assert code == 1
        assert "scrim key create" in err

    def test_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SCRIM_KEY", raising=False)
        code, _, err = run("dataset", "list")
        assert code == 2
        assert "SCRIM_KEY" in err

    def test_a_key_that_cannot_be_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCRIM_KEY", "schlüssel")
        assert run("dataset", "list")[0] == 2

    def test_no_service(self, play: Play) -> None:
        play(*[httpx.ConnectError("refused")] * ATTEMPTS)
        code, _, err = run("dataset", "list")
        assert code == 3
        assert "does not answer" in err

    def test_an_unknown_command_is_a_usage_error(self) -> None:
        assert run("releese")[0] == 2

    @pytest.mark.parametrize("content", ["{", "[]"])
    def test_a_spec_that_is_no_object(self, play: Play, spec: Path, content: str) -> None:
        play()
        spec.write_text(content)
        assert run("release", "preview", spec)[0] == 2

    def test_a_spec_is_checked_before_it_is_sent(self, play: Play, spec: Path) -> None:
        script = play()
        spec.write_text(json.dumps(SPEC | {"budget": {}, "colour": 1}))
        code, _, err = run("release", "submit", spec)
        assert code == 2
        assert "dataset_id: Field required" in err
        assert "colour" in err
        assert script.requests == []

    def test_a_file_that_is_not_there(self, play: Play, tmp_path: Path) -> None:
        play()
        assert run("release", "preview", tmp_path / "none.json")[0] == 2


class TestKeys:
    def test_the_secret_is_the_only_output(self, play: Play) -> None:
        script = play(answer({"id": "k", "name": "n", "scopes": ["curator"], "key": "s3"}, 201))
        code, out, err = run("key", "create", "n", "--scope", "curator", "--scope", "analyst")
        assert (code, out) == (0, "s3\n")
        assert "not shown again" in err
        assert script.bodies[0]["scopes"] == ["curator", "analyst"]

    def test_keys_are_listed_and_revoked(self, play: Play) -> None:
        play(page({"id": "k", "name": "n", "scopes": ["curator"]}), httpx.Response(204))
        assert "active" in run("key", "list")[1]
        assert run("key", "revoke", "k")[0] == 0


class TestPopulations:
    def test_the_id_is_the_only_output(self, play: Play) -> None:
        script = play(answer(POPULATION, 201))
        bound = ("--unit", "person", "--max-rows-per-person", 3)
        code, out, _ = run("population", "create", "people", "--rho", 1, *bound)
        assert (code, out) == (0, "p1\n")
        assert script.bodies[0]["cap"] == {"rho": 1.0}
        assert script.bodies[0]["max_rows_per_person"] == 3

    @pytest.mark.parametrize("caps", [[], ["--epsilon", "1", "--rho", "1"]])
    def test_one_cap_is_needed(self, play: Play, caps: list[str]) -> None:
        play()
        assert run("population", "create", "people", *caps)[0] == 2

    def test_they_are_listed(self, play: Play) -> None:
        play(page(POPULATION), page(POPULATION))
        assert "0.75" in run("population", "list")[1]
        assert json.loads(run("population", "list", "--json")[1])[0]["id"] == "p1"


class TestDatasets:
    @pytest.mark.parametrize("named", ["p1", "people"])
    def test_upload_declares_sends_and_waits(
        self, play: Play, table: tuple[Path, Path], named: str
    ) -> None:
        script = play(
            page(POPULATION | {"id": "p0", "name": "others"}, POPULATION),
            answer(DATASET | {"state": "awaiting_content"}, 201),
            answer(DATASET | {"state": "ingesting"}, 202),
            answer(DATASET),
        )
        code, out, err = run(
            "dataset", "upload", table[0], "--schema", table[1], "--population", named
        )
        assert (code, out) == (0, "d1\n")
        assert "ready" in err
        created = json.loads(script.requests[1].content)
        assert (created["population_id"], created["name"]) == ("p1", "table.csv")
        assert created["schema"] == SCHEMA
        assert script.requests[2].content == b"sex\nF\n"

    def test_a_rejected_table_has_its_own_exit_code(
        self, play: Play, table: tuple[Path, Path]
    ) -> None:
        rejected = DATASET | {"state": "rejected", "reason": "there is no column 'sex'"}
        play(page(POPULATION), answer(DATASET, 201), answer(DATASET, 202), answer(rejected))
        code, _, err = run(
            "dataset", "upload", table[0], "--schema", table[1], "--population", "p1"
        )
        assert code == 4
        assert "there is no column 'sex'" in err

    def test_a_schema_is_checked_before_it_is_sent(
        self, play: Play, table: tuple[Path, Path]
    ) -> None:
        script = play()
        table[1].write_text('{"columns": [{"name": "a", "type": "colour"}]}')
        code, _, err = run(
            "dataset", "upload", table[0], "--schema", table[1], "--population", "p1"
        )
        assert code == 2
        assert "columns.0: type must be one of" in err
        assert script.requests == []

    def test_groups_and_individuals_are_two_files_of_one_dataset(
        self, play: Play, households: tuple[Path, Path, Path]
    ) -> None:
        awaiting = DATASET | {"state": "awaiting_content"}
        script = play(
            page(POPULATION),
            answer(awaiting, 201),
            answer(awaiting),
            answer(DATASET | {"state": "ingesting"}, 202),
            answer(DATASET),
        )
        assert run(*uploading(*households))[:2] == (0, "d1\n")
        created = json.loads(script.requests[1].content)
        assert (created["schema"], created["name"]) == (TWO_LEVEL, "homes.csv")
        sent = {each.url.params["table"]: each.content for each in script.requests[2:4]}
        assert sent == {"groups": b"hid,town\n1,a\n", "individuals": b"hid,sex\n1,F\n"}

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ([], "give one FILE, or both"),
            (["--groups", "homes.csv"], "give one FILE, or both"),
            (["homes.csv", "--individuals", "people.csv"], "give one FILE, or both"),
            (["homes.csv"], "as --groups and --individuals"),
            (["--groups", "homes.csv", "--individuals", "none.csv"], "none.csv is not a file"),
        ],
    )
    def test_both_files_are_needed(
        self,
        play: Play,
        households: tuple[Path, Path, Path],
        monkeypatch: pytest.MonkeyPatch,
        given: list[str],
        told: str,
    ) -> None:
        script = play()
        monkeypatch.chdir(households[0].parent)
        declared = ("--schema", "two-level.json", "--population", "p1")
        code, _, err = run("dataset", "upload", *given, *declared)
        assert (code, script.requests) == (2, [])
        assert told in " ".join(err.split())

    def test_a_schema_of_one_table_takes_one_file(
        self, play: Play, households: tuple[Path, Path, Path], table: tuple[Path, Path]
    ) -> None:
        play()
        code, _, err = run(*uploading(*households[:2], table[1]))
        assert code == 2 and "declares one table" in err

    def test_a_name_must_tell_one_population(self, play: Play, table: tuple[Path, Path]) -> None:
        arguments = ("dataset", "upload", table[0], "--schema", table[1], "--population", "people")
        play(page(POPULATION, POPULATION | {"id": "p2"}))
        assert "give the id" in run(*arguments)[2]
        play(page())
        assert "there is no population 'people'" in run(*arguments)[2]

    def test_they_are_listed_and_deleted(self, play: Play) -> None:
        play(page(DATASET), httpx.Response(204))
        assert "ready" in run("dataset", "list")[1]
        assert run("dataset", "delete", "d1")[0] == 0


class TestReleases:
    def test_preview(self, play: Play, spec: Path) -> None:
        play(answer(PREVIEW), answer(PREVIEW))
        code, out, err = run("release", "preview", spec)
        assert code == 0
        assert "3.25" in out
        assert "mind the [gap]" in err
        assert json.loads(run("release", "preview", spec, "--json")[1])["queries"] == 2

    def test_submit_prints_the_id(self, play: Play, spec: Path) -> None:
        script = play(answer(RELEASE | {"state": "queued"}, 202))
        code, out, _ = run("release", "submit", spec, "--idempotency-key", "once", "--publish")
        assert (code, out) == (0, "r1\n")
        assert script.requests[0].headers["Idempotency-Key"] == "once"
        assert script.bodies[0] == SPEC | {"dataset_id": "d1", "publish": True}

    def test_the_dataset_may_be_named_beside_the_spec(self, play: Play, spec: Path) -> None:
        spec.write_text(json.dumps(SPEC))
        script = play(page(DATASET), answer(RELEASE, 202))
        run("release", "submit", spec, "--dataset", "table")
        assert json.loads(script.requests[1].content)["dataset_id"] == "d1"

    def test_submit_waits_if_asked(self, play: Play, spec: Path) -> None:
        stream = events((1, "progress", {"done": 1, "total": 3}))
        play(answer(RELEASE | {"state": "queued"}, 202), stream, answer(RELEASE))
        code, out, err = run("release", "submit", spec, "--wait")
        assert (code, out) == (0, "r1\n")
        assert "succeeded" in err

    def test_a_failed_release_has_its_own_exit_code(self, play: Play, spec: Path) -> None:
        failed = RELEASE | {"state": "failed", "error": {"detail": "it did not fit"}}
        play(answer(RELEASE | {"state": "queued"}, 202), events(), answer(failed))
        code, out, err = run("release", "submit", spec, "--wait", "--json")
        assert (code, out) == (4, "")
        assert "it did not fit" in err

    def test_wait(self, play: Play) -> None:
        play(events(), answer(RELEASE))
        assert run("release", "wait", "r1")[0] == 0

    def test_list_and_show(self, play: Play) -> None:
        play(page(RELEASE), page(RELEASE), answer(RELEASE), answer(RELEASE))
        assert "3/3" in run("release", "list")[1]
        assert json.loads(run("release", "list", "--json")[1])[0]["id"] == "r1"
        assert "succeeded" in run("release", "show", "r1")[1]
        assert json.loads(run("release", "show", "r1", "--json")[1])["state"] == "succeeded"

    def test_download_prints_the_files(self, play: Play, tmp_path: Path) -> None:
        digest = hashlib.sha256(b"1").hexdigest()
        listed = {"name": "a.csv", "size": 1, "sha256": digest, "media_type": "text/csv"}
        play(answer(RELEASE | {"artifacts": [listed]}), httpx.Response(200, content=b"1"))
        code, out, _ = run("release", "download", "r1", "--output", tmp_path / "new")
        assert (code, out) == (0, f"{tmp_path / 'new' / 'a.csv'}\n")

    def test_cancel_publish_and_sample(self, play: Play) -> None:
        play(answer(RELEASE | {"state": "running"}), answer(RELEASE), httpx.Response(200, text="x"))
        assert "stops at its next step" in run("release", "cancel", "r1")[2]
        assert run("release", "publish", "r1")[0] == 0
        assert run("release", "sample", "r1", "--rows", 1)[1] == "x"


class TestHere:
    def test_up_becomes_the_stack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        became: list[tuple[Path, int]] = []
        monkeypatch.setattr("client.cli.become_stack", lambda *given: became.append(given))
        assert run("up", "--data-dir", "somewhere", "--port", 8123)[0] == 0
        assert became == [(Path("somewhere"), 8123)]

    def test_demo_takes_two_folders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran: list[tuple[Path, Path]] = []
        monkeypatch.setattr(
            "client.cli.run_demo", lambda folder, data_dir: ran.append((folder, data_dir))
        )
        assert run("demo", "--output", "out", "--data-dir", "data")[0] == 0
        assert ran == [(Path("out"), Path("data"))]
