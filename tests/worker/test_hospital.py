"""A hospital table of 60 columns, from CSV to a published release: by command and by console."""

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from typer.testing import CliRunner

from scrim.cli import app
from service.keys.service import create_key
from tests.hospital import FREE_TEXT, ICD, IDENTIFIERS, write_hospital
from tests.worker.support import Stack
from worker.ingest import ingest_dataset
from worker.releases import run_release

pytestmark = pytest.mark.random

ROWS = 300
FORMATS = {
    "birth_date": "%d.%m.%Y",
    "admission_date": "%Y-%m-%d",
    "surgery_date": "%m/%d/%Y",
    "last_visit": "%Y-%m-%dT%H:%M",
}
REQUEST = {
    "workload": [{"type": "marginals", "k": 1}],
    "mechanism": {"name": "auto"},
    "budget": {"epsilon": 4.0},
    "outputs": {"rows": 50},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A private table, and a public one of the same form."""
    folder = tmp_path_factory.mktemp("hospital")
    return {
        "private": write_hospital(folder / "private.csv", ROWS, seed=1),
        "public": write_hospital(folder / "public.csv", ROWS, seed=2),
        "schema": folder / "schema.json",
        "request": folder / "request.json",
    }


@pytest.fixture
def proposed(files: dict[str, Path]) -> dict[str, Any]:
    """The schema that the command proposes from the public table, as it is."""
    told = command(
        *("schema", "propose", "--public-sample", files["public"], "--output", files["schema"]),
        "--i-state-this-sample-is-public",
    )
    assert all(f"Left out: {name} holds free text" in told.stderr for name in FREE_TEXT)
    schema: dict[str, Any] = json.loads(files["schema"].read_text())
    return schema


def command(*arguments: object) -> Any:
    """A command that must succeed."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


def key_of(stack: Stack) -> str:
    with stack.context.transaction() as work:
        return create_key(work.session, "the curator", ["curator", "analyst"])[1]


def ran(stack: Stack, release: UUID) -> None:
    run_release(stack.context, release)
    shown = stack.release(release)
    assert shown["state"] == "succeeded", shown["error"]
    assert len(shown["columns"]) == 60 - len(IDENTIFIERS) - len(FREE_TEXT)


def check_rows(content: bytes) -> None:
    """Dates are dates in their format, codes are codes, and nothing messy is left."""
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert len(rows) == 50 and not {*IDENTIFIERS, *FREE_TEXT} & rows[0].keys()
    for row in rows:
        for name, form in FORMATS.items():
            if row[name] not in ("", "?", "N/A"):
                assert 1900 < datetime.strptime(row[name], form).year < 2030
        assert row["icd_main"] in {*ICD, "other", ""}
        assert row["systolic"] in ("", "99999") or 40 <= int(row["systolic"]) <= 260
        assert re.fullmatch(r"(\d+\.\d\d)?|NA", row["cost"])
        assert row["severity"] in ("mild", "moderate", "severe", "other", "")


def test_by_command(
    stack: Stack,
    population: UUID,
    files: dict[str, Path],
    proposed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SCRIM_URL", str(stack.http.base_url))
    monkeypatch.setenv("SCRIM_KEY", key_of(stack))
    checked = command("schema", "check", files["private"], "--schema", files["schema"])
    assert "The service would accept the table." in checked.stdout
    saved = command("schema", "save", f"hospital {population}", files["schema"]).stdout.strip()
    uploaded = command(
        *("dataset", "upload", files["private"], "--schema-id", saved, "--no-wait"),
        *("--population", population),
    )
    dataset = UUID(uploaded.stdout.strip())
    ingest_dataset(stack.context, dataset)
    files["request"].write_text(json.dumps(REQUEST))
    submitted = command("release", "submit", files["request"], "--dataset", dataset, "--publish")
    release = UUID(submitted.stdout.strip())
    ran(stack, release)
    command("release", "download", release, "--output", tmp_path)
    check_rows((tmp_path / "synthetic.csv").read_bytes())
    assert proposed == stack.show("datasets", dataset)["schema"]


class FormReader(HTMLParser):
    """The fields of one form of a page, as a browser would send them."""

    def __init__(self, page: str, action: str) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self._action = action
        self._is_inside = self._is_first = False
        self._select = self._area = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._is_inside = found.get("action") == self._action
        elif not self._is_inside:
            return
        elif tag == "input" and found.get("name"):
            if found.get("type") not in ("checkbox", "radio") or "checked" in found:
                self.pairs.append((found["name"], found.get("value", "")))
        elif tag == "select":
            self._select, self._is_first = found["name"], True
            self.pairs.append((self._select, ""))
        elif tag == "option" and (self._is_first or "selected" in found):
            self.pairs[-1], self._is_first = (self._select, found.get("value", "")), False
        elif tag == "textarea":
            self._area = found["name"]
            self.pairs.append((self._area, ""))

    def handle_data(self, data: str) -> None:
        if self._area and self._is_inside:
            self.pairs[-1] = (self._area, self.pairs[-1][1] + data.lstrip("\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""


@contextmanager
def console(stack: Stack) -> Iterator[httpx.Client]:
    """A signed-in browser without scripts."""
    with httpx.Client(base_url=stack.http.base_url, follow_redirects=True, timeout=120) as browser:
        fields = FormReader(browser.get("/console/sign-in").text, "/console/sign-in").pairs
        sent(browser, "/console/sign-in", fields, key=key_of(stack))
        yield browser


def sent(
    browser: httpx.Client, path: str, fields: list[tuple[str, str]], **changes: str
) -> httpx.Response:
    """Send a form with some fields filled in."""
    kept = [pair for pair in fields if pair[0] not in changes]
    content = httpx.QueryParams([*kept, *changes.items()])
    answer = browser.post(
        path,
        content=str(content),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 200, answer.text
    return answer


def test_by_console(
    stack: Stack, population: UUID, files: dict[str, Path], proposed: dict[str, Any]
) -> None:
    with console(stack) as browser:
        new = "/console/datasets/new"
        fields = FormReader(browser.get(new).text, new).pairs
        page = sent(browser, new, fields, action="paste", pasted=json.dumps(proposed)).text
        fields = FormReader(page, new).pairs
        made = sent(
            browser, new, fields, action="create", name="visits", population_id=str(population)
        )
        dataset = UUID(made.url.path.rpartition("/")[2])
        assert stack.show("datasets", dataset)["schema"] == proposed
        content = f"/console/datasets/{dataset}/content"
        token = dict(FormReader(made.text, content).pairs)["token"]
        with files["private"].open("rb") as file:
            data = {"token": token, "table": "rows"}
            browser.post(content, data=data, files={"file": ("visits.csv", file)})
        ingest_dataset(stack.context, dataset)
        new = "/console/releases/new"
        fields = FormReader(browser.get(f"{new}?dataset={dataset}").text, new).pairs
        asked = {"w0.k": "1", "budget": "4", "budget_kind": "epsilon", "rows": "50"}
        submitted = sent(browser, new, fields, action="submit", **asked)
        release = UUID(submitted.url.path.rpartition("/")[2])
        ran(stack, release)
        page = browser.get(f"/console/releases/{release}").text
        publish = f"/console/releases/{release}/publish"
        sent(browser, publish, FormReader(page, publish).pairs)
        assert stack.release(release)["published"]
        check_rows(stack.artifact(release, "synthetic.csv"))
