"""Saved schemas, as the service is asked for them, in Python and by the command."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from scrim import UnusableInput
from scrim.cli import app
from scrim.records import SavedSchema
from tests.scrim.support import DATASET, POPULATION, SCHEMA, TWO_LEVEL, Script, answer, page

ID = str(UUID(int=7))
LISTED = {"id": ID, "name": "visits", "version": 2, "created_at": "2026-01-02T00:00:00Z"}
SAVED = LISTED | {"schema": SCHEMA}
EARLIER = LISTED | {"id": str(UUID(int=6)), "version": 1}


def run(
    script: Script, monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    monkeypatch.setenv("SCRIM_KEY", "secret")
    monkeypatch.setattr("scrim.commands.session.Client", lambda url, key: script.client(key))
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.usefixtures("both_ways")
class TestClient:
    def test_saving_can_be_repeated(self) -> None:
        script = Script(answer(SAVED, 201))
        made = script.client().schemas.save("visits", SCHEMA)
        assert (made.version, made.declared_schema) == (2, SCHEMA)
        assert script.bodies == [{"name": "visits", "schema": SCHEMA}]
        assert script.requests[0].headers["idempotency-key"]

    def test_a_name_means_its_newest_version(self) -> None:
        script = Script(page(LISTED, following="x"), page(EARLIER), answer(SAVED))
        assert script.client().schemas.find("visits").declared_schema == SCHEMA
        asked = [dict(request.url.params) for request in script.requests]
        assert asked == [{"name": "visits"}, {"name": "visits", "cursor": "x"}, {}]

    def test_a_version_can_be_chosen(self) -> None:
        script = Script(page(LISTED, EARLIER), answer(EARLIER | {"schema": SCHEMA}), page(LISTED))
        client = script.client()
        assert client.schemas.find("visits", version=1).version == 1
        with pytest.raises(UnusableInput, match="no saved schema 'visits' of version 4"):
            client.schemas.find("visits", version=4)

    def test_a_dataset_names_a_saved_schema(self) -> None:
        script = Script(answer(DATASET, 201), answer(DATASET, 201))
        client, saved = script.client(), SavedSchema.model_validate(SAVED)
        client.datasets.create("table", saved, population_id="p1")
        client.datasets.create_public("table", saved, provenance="a census")
        assert all(body["schema_id"] == ID and "schema" not in body for body in script.bodies)


class TestCommand:
    def test_save(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(SCHEMA))
        found = run(Script(answer(SAVED, 201)), monkeypatch, "schema", "save", "visits", path)
        assert found[:2] == (0, f"{ID}\n") and "version 2" in found[2]
        path.write_text('{"columns": []}')
        script = Script()
        assert run(script, monkeypatch, "schema", "save", "visits", path)[0] == 2
        assert script.requests == []

    def test_list_and_show(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        script = Script(page(LISTED), answer(SAVED), page(LISTED), answer(SAVED))
        assert "visits" in run(script, monkeypatch, "schema", "list")[1]
        shown = run(script, monkeypatch, "schema", "show", ID, "--json")[1]
        assert json.loads(shown)["schema"] == SCHEMA
        path = tmp_path / "again.json"
        run(script, monkeypatch, "schema", "show", "visits@2", "--output", path)
        assert json.loads(path.read_text()) == SCHEMA

    @pytest.mark.parametrize("wanted", [ID, "visits", "visits@2"])
    def test_upload_with_a_saved_schema(
        self, wanted: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = tmp_path / "table.csv"
        path.write_text("sex\nF\n")
        found: list[Any] = [answer(SAVED)] if wanted == ID else [page(LISTED), answer(SAVED)]
        made = [answer(DATASET, 201), answer(DATASET, 202), answer(DATASET)]
        script = Script(*found, page(POPULATION), *made)
        arguments = ("dataset", "upload", path, "--schema-id", wanted, "--population", "p1")
        assert run(script, monkeypatch, *arguments)[:2] == (0, "d1\n")
        assert json.loads(script.requests[-3].content)["schema_id"] == ID

    def test_a_saved_schema_of_two_tables_needs_both(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        path = tmp_path / "table.csv"
        path.write_text("sex\nF\n")
        arguments = ("dataset", "upload", path, "--population", "p1")
        script = Script(answer(LISTED | {"schema": TWO_LEVEL}))
        code, _, told = run(script, monkeypatch, *arguments, "--schema-id", ID)
        assert code == 2 and "schema 'visits' declares groups and individuals" in told
        assert run(Script(), monkeypatch, *arguments)[0] == 2
