"""The `scrim` command: what it prints, what it asks for, and how it fails."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from scrim import ScrimError, __version__
from scrim.cli import app
from scrim.spec.columns import CategoricalColumn
from scrim.spec.schema import Schema
from scrim.transport import ATTEMPTS
from scrim.values import parse_schema
from tests.e2e.support import SCRIM
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
    page,
    problem,
)

ERRORS = {"mean_absolute_error": 0.001, "mean_total_variation": 0.05, "max_error": 0.01}
EXPECTED = {**ERRORS, "mean_absolute_rows": 50.5, "max_rows": 500.0, "low": ERRORS, "high": ERRORS}
PREVIEW = {
    "rho": 0.1,
    "epsilon": 1.0,
    "rho_left_after": 0.65,
    "queries": 2,
    "operations": 2,
    "items": [
        {"item": 0, "queries": 2, "sigma": 3.25, "expected_error": 2.5, "expected": EXPECTED}
    ],
    "expected": EXPECTED,
    "warnings": [{"type": "/warnings/gap", "detail": "mind the [gap]"}],
}

Play = Callable[..., Script]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Connect the commands to a scripted service."""
    monkeypatch.setenv("SCRIM_KEY", "secret")
    monkeypatch.setenv("SCRIM_URL", "http://scrim.test")

    def prepare(*steps: Any) -> Script:
        script = Script(*steps)
        monkeypatch.setattr("scrim.commands.session.Client", lambda url, key: script.client(key))
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
        message = "cap: give exactly one of rho and epsilon"
        fields = [{"loc": ["body", "cap"], "message": message}]
        play(problem(422, "invalid", "the request is invalid", errors=fields))
        code, out, err = run("population", "create", "people", "--epsilon", "1")
        assert (code, out) == (1, "")
        assert err.startswith(f"Error: the request is invalid\n  - {message}\n")
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
        assert err.splitlines() == [
            f"Error: {spec} is not valid",
            "  - budget: give exactly one of rho and epsilon",
            '  - "dataset_id" is required',
            '  - unknown field "colour"; remove it or check its name',
        ]
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

    def test_a_key_may_expire(self, play: Play) -> None:
        script = play(answer({"id": "k", "name": "n", "scopes": ["curator"], "key": "s3"}, 201))
        run("key", "create", "n", "--scope", "curator", "--expires", "2030-01-31")
        assert script.bodies[0]["expires_at"] == "2030-01-31T00:00:00+00:00"

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
        yesterday = POPULATION["budget"] | {"as_of": "2026-03-01T00:00:00Z"}
        play(page(POPULATION), page(POPULATION), page(POPULATION | {"budget": yesterday}))
        code, out, noted = run("population", "list")
        assert (code, noted) == (0, "") and "0.75" in out
        assert json.loads(run("population", "list", "--json")[1])[0]["id"] == "p1"
        assert "Balances as of 2026-03-01 00:00 UTC" in run("population", "list")[2]


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
        assert 'a: "type" must be one of: categorical, ordinal' in err
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

    def test_public_rows_have_no_population(self, play: Play, table: tuple[Path, Path]) -> None:
        script = play(answer(DATASET, 201), answer(DATASET, 202), answer(DATASET))
        arguments = ("dataset", "upload", table[0], "--schema", table[1])
        assert run(*arguments, "--provenance", "a census")[0] == 0
        assert json.loads(script.requests[0].content)["provenance"] == "a census"
        assert run(*arguments)[0] == 2

    def test_a_name_must_identify_one_population(
        self, play: Play, table: tuple[Path, Path]
    ) -> None:
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

    def test_a_preview_says_what_draws_add(self, play: Play, spec: Path) -> None:
        cost = {"sets": 2, "fits": 3, "memory_bytes": 2**21, "storage_bytes": 2**20}
        play(answer(PREVIEW | {"draws": cost}))
        _, _, err = run("release", "preview", spec)
        assert "3 models are fitted" in err and "2 MiB of memory, 1.0 MiB of storage" in err

    def test_budgets_are_compared(self, play: Play, spec: Path) -> None:
        curve = [{"epsilon": 0.5, "rho": 0.0125, "expected": EXPECTED}]
        found = PREVIEW | {"curve": curve, "needed": {"epsilon": 0.75, "rho": 0.02}}
        script = play(answer(found))
        wanted = ("--epsilon", 0.5, "--mean-total-variation", 0.03)
        code, out, err = run("release", "plan", spec, *wanted)
        assert code == 0
        assert "0.0125" in out
        assert "epsilon 0.75" in err
        assert script.bodies[0]["budgets"] == [{"epsilon": 0.5}]
        assert script.bodies[0]["target"] == {"mean_total_variation": 0.03}

    def test_an_accuracy_out_of_reach_is_explained(self, play: Play, spec: Path) -> None:
        play(answer(PREVIEW | {"needed": None, "needed_reason": "it takes more than is left"}))
        assert "takes more than is left" in run("release", "plan", spec, "--max-error", 0.001)[2]

    def test_a_submitted_release_has_warnings(self, play: Play, spec: Path) -> None:
        play(answer(RELEASE | {"warnings": PREVIEW["warnings"]}, 202))
        code, out, err = run("release", "submit", spec)
        assert (code, out) == (0, "r1\n")
        assert "mind the [gap]" in err

    def test_submit_with_preview_spends_nothing(self, play: Play, spec: Path) -> None:
        script = play(answer(PREVIEW))
        code, out, _ = run("release", "submit", spec, "--preview")
        assert code == 0
        assert "3.25" in out and "0.65" in out
        assert [request.url.path for request in script.requests] == ["/v1/releases/preview"]

    def test_a_dry_run(self, play: Play, spec: Path) -> None:
        script = play(answer(RELEASE, 202))
        run("release", "submit", spec, "--dry-run")
        assert script.bodies[0]["dry_run"] is True

    def test_events(self, play: Play) -> None:
        stream = events((1, "state", {"state": "running"}), (2, "progress", {"done": 1}))
        script = play(stream, stream)
        assert run("release", "events", "r1")[1].splitlines()[0] == '1 state {"state": "running"}'
        lines = run("release", "events", "r1", "--after", 7, "--json")[1].splitlines()
        assert [json.loads(line)["id"] for line in lines] == [1, 2]
        assert script.requests[1].headers["Last-Event-ID"] == "7"

    def test_a_model_is_asked(self, play: Play, spec: Path) -> None:
        item = {"item": "sex", "query": "sex=F", "value": 0.5, "count": 10.0}
        item |= {"standard_error": 0.25, "count_standard_error": 2.5, "basis": "model"}
        script = play(answer({"items": [item], "next": None}))
        line = run("release", "answers", "r1", spec)[1].splitlines()[1]
        assert line.split() == ["sex=F", "0.5", "0.25", "10", "2.5", "model"]
        assert script.bodies == [{"workload": SPEC["workload"]}]
        spec.write_text("{}")
        assert run("release", "answers", "r1", spec)[0] == 2

    def test_a_choice_is_explained(self, play: Play, spec: Path) -> None:
        passed_over = [{"mechanism": "gem", "reason": "it errs more"}]
        choice = {"reasons": ["it errs least"], "passed_over": passed_over}
        chosen = {"mechanism": {"name": "mwem"}, "choice": choice}
        play(answer(PREVIEW | chosen), answer(RELEASE | chosen, 202))
        out = run("release", "preview", spec)[1]
        assert re.search(r"mwem +it errs least", out) and re.search(r"gem +it errs more", out)
        code, out, err = run("release", "submit", spec)
        assert (code, out) == (0, "r1\n")
        assert "Chosen by auto: mwem." in err

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

    def test_a_release_begins_with_its_quality(self, play: Play) -> None:
        numbers = {
            "confidence": 0.95,
            "max_error": 0.1,
            "mean_total_variation": 0.1,
            "estimate": 0.1,
        }
        quality = {"summary": "Off by 3%.", "items": [], "columns": [], **numbers}
        play(answer(RELEASE | {"quality": quality}))
        assert run("release", "show", "r1")[1].startswith("Off by 3%.\n")

    def test_download_prints_the_files(self, play: Play, tmp_path: Path) -> None:
        digest = hashlib.sha256(b"1").hexdigest()
        listed = {"name": "a.csv", "size": 1, "sha256": digest, "media_type": "text/csv"}
        play(answer(RELEASE | {"artifacts": [listed]}), httpx.Response(200, content=b"1"))
        code, out, _ = run("release", "download", "r1", "--output", tmp_path / "new")
        assert (code, out) == (0, f"{tmp_path / 'new' / 'a.csv'}\n")

    def test_resume(self, play: Play) -> None:
        seen = play(answer(RELEASE | {"state": "queued"}), answer(RELEASE | {"state": "queued"}))
        assert "Release is queued" in run("release", "resume", "r1")[2]
        assert json.loads(run("release", "resume", "r1", "--json")[1])["state"] == "queued"
        assert {request.url.path for request in seen.requests} == {"/v1/releases/r1/resume"}

    def test_cancel_publish_and_sample(self, play: Play) -> None:
        play(answer(RELEASE | {"state": "running"}), answer(RELEASE), httpx.Response(200, text="x"))
        assert "stops within seconds" in run("release", "cancel", "r1")[2]
        assert run("release", "publish", "r1")[0] == 0
        assert run("release", "sample", "r1", "--rows", 1)[1] == "x"
        play(httpx.Response(200, text="sex,age\nF,3\n"))
        drawn = json.loads(run("release", "sample", "r1", "--rows", 1, "--json")[1])
        assert drawn == {"rows": [{"sex": "F", "age": "3"}]}


class TestLookingUp:
    """What can be read about populations, datasets and mechanisms."""

    def test_one_population(self, play: Play) -> None:
        play(page(POPULATION), answer(POPULATION))
        assert "rho_left" in run("population", "show", "people")[1]

    def test_a_ledger(self, play: Play) -> None:
        entry = {"seq": 1, "kind": "open_account", "rho": 1.0, "hash": "ab" * 32}
        steps = (page(POPULATION), page(entry | {"previous_hash": "00" * 32}))
        play(*steps, *steps)
        assert "open_account" in run("population", "ledger", "people")[1]
        assert json.loads(run("population", "ledger", "p1", "--json")[1])[0]["seq"] == 1

    @pytest.mark.parametrize(("ok", "code", "word"), [(True, 0, "ok"), (False, 5, "BROKEN")])
    def test_a_ledger_is_verified(self, play: Play, ok: bool, code: int, word: str) -> None:
        play(page(POPULATION), answer({"ok": ok, "entries": 3, "head": "ab"}))
        found = run("population", "ledger", "people", "--verify")
        assert found[:2] == (code, f"{word}\n")

    def test_a_dataset_with_its_schema(self, play: Play) -> None:
        play(answer(DATASET | {"schema": SCHEMA}))
        assert json.loads(run("dataset", "show", "d1", "--json")[1])["schema"] == SCHEMA

    def test_a_dataset_is_waited_for(self, play: Play) -> None:
        play(answer(DATASET | {"state": "ingesting"}), answer(DATASET))
        assert "ready" in run("dataset", "wait", "d1")[2]

    def test_mechanisms(self, play: Play) -> None:
        found = {"name": "gem", "summary": "s", "paper": "p", "parameters": {}, "query_types": []}
        play(page(found), page(found), page(found))
        assert "gem" in run("mechanism", "list")[1]
        assert json.loads(run("mechanism", "show", "gem", "--json")[1])["paper"] == "p"
        code, _, err = run("mechanism", "show", "jem")
        assert code == 2 and "there are gem" in err


class TestSchemas:
    def test_a_proposal_needs_the_statement(self, table: tuple[Path, Path]) -> None:
        code, out, err = run("schema", "propose", "--public-sample", table[0])
        assert (code, out) == (2, "")
        assert "--i-state-this-sample-is-public" in err

    def test_a_proposal_can_be_uploaded_as_it_is(
        self, table: tuple[Path, Path], tmp_path: Path
    ) -> None:
        table[0].write_text("sex,name\n" + "".join(f"F,n{i}\nM,m{i}\n" for i in range(60)))
        arguments = ("schema", "propose", "--public-sample", table[0])
        code, out, err = run(*arguments, "--i-state-this-sample-is-public")
        assert code == 0
        proposed = parse_schema(json.loads(out))
        assert isinstance(proposed, Schema)
        (sex,) = proposed.columns
        assert isinstance(sex, CategoricalColumn) and sex.values == ["F", "M"]
        assert "review every one" in err and "Left out: name has more than 100" in err
        written = tmp_path / "new.json"
        options = ("--i-state-this-sample-is-public", "--output", written, "--json")
        assert "name" in json.loads(run(*arguments, *options)[1])["left_out"]
        assert run("schema", "check", written)[0] == 0

    def test_a_code_book_is_taken_over(self, tmp_path: Path) -> None:
        book = tmp_path / "domain.json"
        book.write_text('{"age": 85}')
        code, out, _ = run("schema", "import", book, "--format", "mbi")
        assert code == 0 and json.loads(out)["columns"][0]["upper"] == 84
        assert run("schema", "import", book, "--format", "xls")[0] == 2

    def test_a_schema_is_checked_without_a_service(
        self, households: tuple[Path, Path, Path], table: tuple[Path, Path]
    ) -> None:
        assert json.loads(run("schema", "check", table[1], "--json")[1])["codes"] == {"sex": 4}
        assert json.loads(run("schema", "check", households[2], "--json")[1])["codes"]["town"] == 4
        table[1].write_text('{"columns": []}')
        assert run("schema", "check", table[1])[0] == 2


def commands() -> list[tuple[str, ...]]:
    """Every command, as it is typed."""
    top = typer.main.get_command(app)
    assert isinstance(top, TyperGroup)
    found: list[tuple[str, ...]] = []
    for name, command in top.commands.items():
        inside = getattr(command, "commands", None)
        found += [(name,)] if inside is None else [(name, each) for each in inside]
    return found


class TestEveryCommand:
    @pytest.mark.parametrize("words", commands(), ids=" ".join)
    def test_it_prints_json_if_asked(self, words: tuple[str, ...]) -> None:
        """Except commands that are interactive or start a server."""
        code, out, _ = run(*words, "--help")
        assert code == 0
        assert ("--json" in out) == (words not in {("up",), ("demo",)})

    def test_the_version_is_printed(self) -> None:
        assert run("--version") == (0, f"scrim {__version__}\n", "")

    def test_the_exit_codes_are_documented(self) -> None:
        told = " ".join(run("--help")[1].split())
        kinds: list[type[ScrimError]] = [ScrimError, *ScrimError.__subclasses__()]
        for code in {kind.exit_code for kind in kinds} | {0}:
            assert f"{code} " in told.partition("Exit codes:")[2]

    @pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
    def test_shell_completion_can_be_installed(self, tmp_path: Path) -> None:
        command = tmp_path / "scrim"
        command.write_text(f'#!/bin/sh\nexec {" ".join(SCRIM)} "$@"\n')
        command.chmod(0o755)
        script = """
            scrim --install-completion
            . "$HOME/.bash_completions/scrim.sh"
            COMP_WORDS=(scrim release su) COMP_CWORD=2
            _scrim_completion scrim
            echo "offered: ${COMPREPLY[*]}"
        """
        here = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, env=os.environ | here
        )
        assert done.stdout.splitlines()[-1] == "offered: submit", done.stderr

    @pytest.mark.parametrize(
        ("shell", "asked"),
        [
            ("bash", {"COMP_WORDS": "scrim rel", "COMP_CWORD": "1"}),
            ("zsh", {"_TYPER_COMPLETE_ARGS": "scrim rel"}),
            (
                "fish",
                {"_TYPER_COMPLETE_ARGS": "scrim rel", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            ),
        ],
    )
    def test_shells_are_offered_words(self, shell: str, asked: dict[str, str]) -> None:
        environment = os.environ | asked | {"_SCRIM_COMPLETE": f"complete_{shell}"}
        done = subprocess.run(SCRIM, capture_output=True, text=True, check=True, env=environment)
        assert "release" in done.stdout and "dataset" not in done.stdout


class TestHere:
    def test_up_becomes_the_stack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        became: list[tuple[Path, int]] = []
        monkeypatch.setattr("scrim.cli.become_stack", lambda *given: became.append(given))
        assert run("up", "--data-dir", "somewhere", "--port", 8123)[0] == 0
        assert became == [(Path("somewhere"), 8123)]

    def test_demo_takes_two_folders(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran: list[tuple[Path, Path]] = []
        monkeypatch.setattr(
            "scrim.cli.run_demo", lambda folder, data_dir: ran.append((folder, data_dir))
        )
        assert run("demo", "--output", "out", "--data-dir", "data")[0] == 0
        assert ran == [(Path("out"), Path("data"))]
