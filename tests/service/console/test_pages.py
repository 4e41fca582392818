"""What visitors see and do, in a browser without scripts."""

import json
import re
import uuid
from html import unescape
from typing import Any

import pytest

from service.data import ingest, progress
from service.data.ledger import repository as ledger
from service.embedded import PostgresServer, ValkeyServer
from tests.databases import create_database
from tests.service.api.support import (
    CSV,
    SCHEMA,
    TWO_LEVEL,
    Api,
    read_back,
    serving,
    settings_for,
)
from tests.service.console.support import REPEAT, Visitor, visitor

HOSTILE = "<script>alert(1)</script>\"'&"
COLUMNS = {
    "c0.name": "sex",
    "c0.type": "categorical",
    "c0.values": "F\nM",
    "c1.name": "age",
    "c1.type": "integer",
    "c1.lower": "0",
    "c1.upper": "99",
    "c1.bins": "width",
    "c1.bins_value": "10",
}
DDI = """<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="age" intrvl="contin">
<valrng><range min="0" max="99"/></valrng><invalrng><item VALUE="999"/></invalrng>
</var></dataDscr></codeBook>"""
ANSWERS = (
    b"item,query,value,count,standard_error,count_standard_error,basis\n"
    b"sex,sex=F,0.4,40.0,0.01,0.7,measured\nsex,sex=M,0.6,60.0,0.01,0.7,measured\n"
)


def release_fields(dataset: str, **changes: str) -> dict[str, str]:
    fields = {
        "dataset_id": dataset,
        "w0.type": "marginals",
        "w0.k": "2",
        "mechanism": "mwem",
        "m.rounds": "3",
        "budget_kind": "rho",
        "budget": "0.1",
        "formats": "csv",
        "answers": "yes",
        "action": "submit",
    }
    return fields | changes


def field(text: str, name: str) -> str:
    """The value of a field on a page."""
    found = re.search(rf'name="{re.escape(name)}"[^>]*?\svalue="([^"]*)"', text)
    assert found, f"no field {name}"
    return unescape(found[1])


@pytest.fixture
def population(api: Api) -> str:
    return api.population()


@pytest.fixture
def dataset(api: Api, population: str) -> str:
    return api.ready_dataset(population)


@pytest.fixture(scope="module")
def published(api: Api) -> str:
    """A release that analysts see."""
    release = api.release(api.ready_dataset(api.population()), publish=True)
    api.finish(release, {"answers.csv": ANSWERS, "synthetic.csv": CSV})
    return release


def test_the_quality_of_a_release_is_at_the_top_of_its_page(everybody: Visitor, api: Api) -> None:
    release = api.release(api.ready_dataset(api.population()))
    summary = "On average, a table you asked for is off by 2.9% of the rows."
    item = {
        "item": "all 2-way marginals",
        "tables": 1,
        "mean_total_variation": 0.1,
        "estimate": 0.05,
    }
    column = {"name": "age", "total_variation": 0.1, "estimate": 0.05}
    quality = {
        "summary": summary,
        "confidence": 0.95,
        "max_error": 0.1,
        "mean_total_variation": 0.1,
        "estimate": 0.05,
        "items": [item],
        "columns": [column],
        "left_out_columns": [],
        "share_of": "rows",
    }
    api.finish(release, quality=quality)
    text = everybody.get(f"/releases/{release}").text
    assert text.index(summary) < text.index("Left in the population")
    assert api.all.get(f"/v1/releases/{release}").json()["quality"] == quality


class TestPopulations:
    FIELDS = {"name": "people", "unit": "row", "relation": "add_remove", "cap": "2"}

    def test_one_is_made_as_the_api_makes_it(self, everybody: Visitor) -> None:
        fields = {**self.FIELDS, "cap_kind": "rho", "delta": "1e-9"}
        answer = everybody.post("/populations/new", fields)
        identifier = answer.url.path.rpartition("/")[2]
        made = everybody.api.all.get(f"/v1/populations/{identifier}").json()
        assert (made["cap"], made["delta"]) == ({"rho": 2.0, "epsilon": None}, 1e-9)
        assert made["budget"]["rho_cap"] == 2.0

    def test_persons_need_a_bound(self, everybody: Visitor) -> None:
        fields = {**self.FIELDS, "unit": "person", "delta": "1e-9"}
        answer = everybody.post("/populations/new", fields)
        assert answer.status_code == 422
        assert "needs max_rows_per_person" in answer.text
        assert field(answer.text, "name") == "people", "what was typed stays"
        answer = everybody.post("/populations/new", {**fields, "bound": "4"})
        assert "Protects each person with up to 4 rows" in answer.text

    def test_a_wrong_number_is_shown_beside_its_field(self, everybody: Visitor) -> None:
        answer = everybody.post("/populations/new", {**self.FIELDS, "cap": "lots", "delta": "2"})
        assert answer.status_code == 422
        found = unescape(answer.text)
        assert 'id="cap-fault">"cap.epsilon" must be a number<' in found
        assert 'id="delta-fault">"delta" must be at most 0.001<' in found
        assert re.search(r'id="cap"[^>]*aria-invalid="true"', answer.text)

    def test_a_second_click_makes_no_second_one(self, everybody: Visitor) -> None:
        page = everybody.get("/populations/new").text
        found = REPEAT.search(page)
        assert found
        fields = {**self.FIELDS, "delta": "1e-9", "repeat_key": found[1]}
        one, other = (everybody.post("/populations/new", fields) for _ in range(2))
        assert one.url.path == other.url.path
        changed = everybody.post("/populations/new", {**fields, "name": "others"})
        assert changed.status_code == 409
        found_again = REPEAT.search(changed.text)
        assert found_again and found_again[1] != found[1]

    def test_the_ledger_is_paged_and_verified(self, everybody: Visitor, dataset: str) -> None:
        api = everybody.api
        population = api.all.get(f"/v1/datasets/{dataset}").json()["population_id"]
        for _ in range(15):
            release = api.release(dataset, budget={"rho": 0.01})
            assert api.all.post(f"/v1/releases/{release}/cancel").status_code == 200
        text = everybody.get(f"/populations/{population}").text
        seen = re.findall(r'<code class="hash" title="([0-9a-f]{64})"', text)
        following = re.search(r'href="([^"]*cursor=[^"]*)" rel="next"', text)
        assert following
        more = everybody.http.get(unescape(following[1])).text
        seen += re.findall(r'<code class="hash" title="([0-9a-f]{64})"', more)
        assert len(seen) == len(set(seen)) == 31
        verified = everybody.get(f"/populations/{population}/verify").text
        assert "All 31 entries" in verified

    def test_analysts_see_budgets_and_no_ledger(self, api: Api, population: str) -> None:
        with visitor(api, "analyst") as ana:
            text = ana.get(f"/populations/{population}").text
            assert "Left" in text
            assert "Ledger" not in text
            assert "New dataset" not in text
            for path in ("/populations", f"/populations/{population}"):
                assert "Balances as of midnight (UTC)" in ana.get(path).text
        with visitor(api, "curator") as carla:
            assert "Balances as of" not in carla.get("/populations").text


class TestDatasets:
    def fields(self, population: str, **changes: str) -> dict[str, str]:
        common = {"name": "table", "visibility": "private", "population_id": population}
        return {**common, "mode": "rows", "action": "create", **COLUMNS, **changes}

    def test_one_is_declared_column_by_column(self, everybody: Visitor, population: str) -> None:
        answer = everybody.post("/datasets/new", self.fields(population))
        assert answer.status_code == 200
        identifier = answer.url.path.rpartition("/")[2]
        made = everybody.api.all.get(f"/v1/datasets/{identifier}").json()
        assert [column["name"] for column in made["schema"]["columns"]] == ["sex", "age"]
        assert made["schema"]["columns"][1]["bins"] == {"width": 10.0}
        assert made["schema"]["columns"][0]["nullable"] is False

    def test_columns_are_added_without_scripts(self, everybody: Visitor, population: str) -> None:
        text = everybody.post("/datasets/new", self.fields(population, action="add")).text
        assert field(text, "c1.name") == "age"
        assert field(text, "c2.name") == ""
        text = everybody.post("/datasets/new", self.fields(population, action="remove:0")).text
        assert field(text, "c0.name") == "age"
        assert 'name="c1.name"' not in text

    def test_rows_become_json_and_rows_again(self, everybody: Visitor, population: str) -> None:
        text = everybody.post("/datasets/new", self.fields(population, action="to_json")).text
        area = re.search(r"<textarea id=\"schema_json\"[^>]*>(.*?)</textarea>", text, re.S)
        assert area
        written = unescape(area[1])
        assert [column["name"] for column in json.loads(written)["columns"]] == ["sex", "age"]
        fields = self.fields(population, action="to_rows", mode="json", schema_json=written)
        assert field(everybody.post("/datasets/new", fields).text, "c1.upper") == "99"

    def test_two_tables_are_declared_column_by_column(self, everybody: Visitor) -> None:
        homes = {
            "name": "homes",
            "unit": "household",
            "max_household_size": 4,
            "cap": {"rho": 1.0},
            "delta": 1e-9,
        }
        population = everybody.api.all.post("/v1/populations", json=homes).json()["id"]
        linked = {
            "levels": "two",
            "group_key": "home",
            "individual_key": "home",
            "order": "age",
            "max_group_size": "4",
            "c0.table": "groups",
            "c1.table": "individuals",
        }
        wrong = everybody.post(
            "/datasets/new", self.fields(population, **linked | {"max_group_size": "0"})
        )
        assert 'id="max_group_size-fault">"schema.max_group_size" must be at least 1<' in unescape(
            wrong.text
        )
        upper = self.fields(population, **linked | {"c1.upper": "ninety"})
        shown = everybody.post("/datasets/new", upper).text
        assert 'id="c1.upper-fault">age: "to" must be a whole number<' in unescape(shown)
        answer = everybody.post("/datasets/new", self.fields(population, **linked))
        assert answer.status_code == 200, answer.text
        assert "File of groups" in answer.text
        assert "File of individuals" in answer.text
        identifier = answer.url.path.rpartition("/")[2]
        made = everybody.api.all.get(f"/v1/datasets/{identifier}").json()["schema"]
        assert made["groups"]["key"] == "home"
        assert [column["name"] for column in made["individuals"]["columns"]] == ["age"]
        assert made["max_group_size"] == 4

    def test_json_is_declared_too(self, everybody: Visitor, population: str) -> None:
        fields = self.fields(population, mode="json", schema_json=json.dumps(TWO_LEVEL))
        refused = everybody.post("/datasets/new", fields)
        assert refused.status_code == 422, "columns of the two tables have the same names"
        fields["schema_json"] = json.dumps(SCHEMA)
        assert everybody.post("/datasets/new", fields).status_code == 200

    @pytest.mark.parametrize(
        ("pasted", "found"),
        [
            ("pid;age;ward\n1;31;surgery", {"c0.name": "pid", "c1.name": "age", "c2.name": "ward"}),
            (json.dumps({"schema": SCHEMA}), {"c0.name": "sex", "c1.upper": "99"}),
            ('{"age": 85}', {"c0.name": "age", "c0.upper": "84"}),
            (DDI, {"c0.name": "age", "c0.upper": "99", "c0.missing": "999"}),
        ],
        ids=["header", "json", "mbi", "ddi"],
    )
    def test_a_pasted_text_fills_the_grid(
        self, everybody: Visitor, population: str, pasted: str, found: dict[str, str]
    ) -> None:
        fields = {"population_id": population, "action": "paste", "pasted": pasted}
        answer = everybody.post("/datasets/new", fields)
        assert answer.status_code == 200
        assert {name: field(answer.text, name) for name in found} == found
        assert "surgery" not in answer.text, "rows are never used"

    @pytest.mark.parametrize(
        "pasted", ["", "<!DOCTYPE x><codeBook/>", "{", '{"tables": []}', "a,a"]
    )
    def test_what_is_no_schema_is_refused_beside_the_form(
        self, everybody: Visitor, pasted: str
    ) -> None:
        answer = everybody.post("/datasets/new", {"action": "paste", "pasted": pasted})
        assert answer.status_code == 422 and "data-problem" in answer.text

    def test_a_schema_is_saved_listed_and_reused(self, everybody: Visitor, dataset: str) -> None:
        name = uuid.uuid4().hex
        fields = {"dataset_id": dataset, "name": name}
        saved = everybody.post("/schemas", fields)
        assert saved.status_code == 200 and "Version 1" in saved.text
        identifier = saved.url.path.rpartition("/")[2]
        assert name in everybody.get("/schemas").text
        for source in (f"schema:{identifier}", f"dataset:{dataset}"):
            begun = everybody.get(f"/datasets/new?source={source}").text
            assert f'value="{source}"' in begun and field(begun, "c1.upper") == "99"
            copied = everybody.post("/datasets/new", {"action": "copy", "source": source}).text
            assert field(copied, "c1.upper") == "99"
        assert everybody.post("/datasets/new", {"action": "copy"}).status_code == 422
        assert everybody.post("/schemas", fields | {"dataset_id": "x"}).status_code == 422
        with visitor(everybody.api, "analyst") as ana:
            assert ana.get("/schemas").status_code == 403

    def test_broken_json_stays_in_its_box(self, everybody: Visitor, population: str) -> None:
        for action in ("create", "to_rows"):
            fields = self.fields(population, mode="json", schema_json='{"a', action=action)
            answer = everybody.post("/datasets/new", fields)
            assert answer.status_code == 422
            assert "The JSON cannot be read; check its quotes" in answer.text
            assert "{&#34;a</textarea>" in answer.text

    def test_a_wrong_bound_is_shown_beside_its_column(
        self, everybody: Visitor, population: str
    ) -> None:
        wrong = self.fields(population, **{"c1.upper": "ninety"})
        answer = everybody.post("/datasets/new", wrong)
        assert answer.status_code == 422
        found = unescape(answer.text)
        assert 'id="c1.upper-fault">age: "to" must be a whole number<' in found
        swapped = self.fields(population, **{"c1.lower": "200"})
        expected = 'age: "from" must not be larger than "to"'
        assert expected in unescape(everybody.post("/datasets/new", swapped).text)

    def test_a_file_is_uploaded_from_a_form(self, everybody: Visitor, population: str) -> None:
        dataset = everybody.api.dataset(population)
        answer = self.upload(everybody, dataset, "Rows.CSV", CSV)
        assert answer.url.path == f"/console/datasets/{dataset}"
        assert "ingesting" in answer.text
        assert read_back(everybody.api, dataset) == CSV
        again = self.upload(everybody, dataset, "rows.csv", CSV)
        assert again.status_code == 409
        part = everybody.get(f"/datasets/{dataset}/state").text
        assert 'data-state="ingesting"' in part
        assert "<html" not in part

    @pytest.mark.parametrize(
        ("name", "content", "status"),
        [("rows.xlsx", b"x", 415), ("rows.csv", b"", 422), ("", b"", 422)],
    )
    def test_other_files_are_refused(
        self, everybody: Visitor, population: str, name: str, content: bytes, status: int
    ) -> None:
        dataset = everybody.api.dataset(population)
        answer = self.upload(everybody, dataset, name, content)
        assert answer.status_code == status
        asked = self.upload(everybody, dataset, name, content, Accept="application/problem+json")
        assert asked.json()["status"] == status
        shown = everybody.api.all.get(f"/v1/datasets/{dataset}").json()
        assert shown["state"] == "awaiting_content"

    def upload(
        self, visiting: Visitor, dataset: str, name: str, content: bytes, **headers: str
    ) -> Any:
        return visiting.http.post(
            f"/console/datasets/{dataset}/content",
            data={"token": visiting.token(), "table": "rows"},
            files={"file": (name, content)},
            headers=headers,
        )

    def test_what_is_too_large_is_refused(
        self, postgres_server: PostgresServer, valkey_server: ValkeyServer, tmp_path: Any
    ) -> None:
        owner_url = create_database(postgres_server.url)
        settings = settings_for(
            owner_url, valkey_server.url, tmp_path, max_upload_bytes=100, max_body_bytes=5000
        )
        with serving(settings, tmp_path) as small, visitor(small, "admin", "curator") as carla:
            dataset = small.dataset(small.population())
            answer = self.upload(carla, dataset, "rows.csv", b"x" * 101)
            assert answer.status_code == 413
            long = carla.post("/populations/new", {"name": "x" * 6000})
            assert long.status_code == 413

    def test_rows_are_destroyed(self, everybody: Visitor, dataset: str) -> None:
        answer = everybody.post(f"/datasets/{dataset}/delete")
        assert answer.url.path == "/console/datasets"
        shown = everybody.get(f"/datasets/{dataset}").text
        assert 'data-state="deleted"' in shown
        assert "Upload" not in shown

    def test_a_rejection_is_explained(self, everybody: Visitor, population: str) -> None:
        """The key that declared the dataset sees the reason; others are referred to it."""
        api = everybody.api
        answer = everybody.post("/datasets/new", self.fields(population))
        dataset = answer.url.path.rpartition("/")[2]
        assert api.upload(dataset).status_code == 202
        with api.session() as session, session.begin():
            epoch = ingest.claim(session, uuid.UUID(dataset), lease_seconds=60)
            assert epoch is not None
            reason = "The column age is missing"
            ingest.settle(session, uuid.UUID(dataset), epoch=epoch, state="rejected", reason=reason)
        shown = everybody.get(f"/datasets/{dataset}").text
        assert reason in shown
        again = re.search(r'href="(/console/datasets/new\?retry=[^"]+)"', shown)
        assert again
        form = everybody.http.get(again[1]).text
        assert (field(form, "name"), field(form, "c1.upper")) == ("table", "99")
        assert f'<option value="{population}" selected' in form
        with visitor(api, "curator") as another:
            text = another.get(f"/datasets/{dataset}").text
        assert "was rejected" in text and reason not in text
        assert "Only the key that declared this dataset" in text


class TestNewReleases:
    def test_the_form_comes_with_a_preview(self, everybody: Visitor, dataset: str) -> None:
        text = everybody.get(f"/releases/new?dataset={dataset}").text
        assert 'id="preview"' in text
        assert "Left after" in text

    def test_the_preview_is_the_api_s(self, everybody: Visitor, dataset: str) -> None:
        answer = everybody.post("/releases/preview", release_fields(dataset))
        assert answer.status_code == 200
        assert answer.text.startswith('<div id="preview"')
        assert '<span class="big">0.1</span> <small>ρ</small>' in answer.text
        shown = re.search(r"<pre[^>]*>(.*?)</pre>", answer.text, re.S)
        assert shown
        body = json.loads(unescape(shown[1]))
        known = everybody.api.all.post("/v1/releases/preview", json=body).json()
        assert f'<dd class="number">{known["queries"]}</dd>' in answer.text

    def test_more_columns_are_named_and_those_left_out_are_shown(
        self, everybody: Visitor, dataset: str
    ) -> None:
        fields = release_fields(dataset, **{"w0.k": "", "w0.attributes": "sex"})
        text = unescape(everybody.post("/releases/preview", fields).text)
        assert "Column age is not released" in text
        text = unescape(everybody.post("/releases/preview", fields | {"columns": "age, "}).text)
        assert "not released" not in text
        assert '"columns": [' in text
        text = everybody.post("/releases/preview", fields | {"columns": "agee"}).text
        assert "no such column" in text

    def test_a_choice_is_explained(self, everybody: Visitor, dataset: str) -> None:
        fields = release_fields(dataset, mechanism="auto")
        text = everybody.post("/releases/preview", fields).text
        assert "Chosen: <code>generative_network</code>" in text
        assert "times its noise" in text and "<code>relaxed_projection</code>" in text
        page = everybody.post("/releases/new", fields).text
        assert "Chosen by <code>auto</code>" in page and "times its noise" in page

    def test_what_cannot_work_is_explained(self, everybody: Visitor, dataset: str) -> None:
        fields = release_fields(dataset, **{"w0.k": "9"})
        answer = everybody.post("/releases/preview", fields)
        assert "9-way marginals need 9 columns" in answer.text
        answer = everybody.post("/releases/new", fields)
        assert answer.status_code == 422
        assert "The release was not submitted" in answer.text
        assert field(answer.text, "w0.k") == "9"

    def test_faults_stand_beside_their_fields(self, everybody: Visitor, dataset: str) -> None:
        fields = release_fields(dataset, **{"m.rounds": "0", "w0.k": "two", "budget": "-1"})
        text = everybody.post("/releases/new", fields).text
        for name in (r"m\.rounds", r"w0\.k", "budget"):
            assert re.search(rf'id="{name}-fault"', text), name

    def test_a_double_click_makes_one_release(self, everybody: Visitor, dataset: str) -> None:
        found = REPEAT.search(everybody.get(f"/releases/new?dataset={dataset}").text)
        assert found
        fields = release_fields(dataset, repeat_key=found[1])
        one, other = (everybody.post("/releases/new", fields) for _ in range(2))
        assert one.url.path == other.url.path
        identifier = one.url.path.rpartition("/")[2]
        known = everybody.api.all.get(f"/v1/releases/{identifier}").json()
        budget = everybody.api.budget(known["population_id"])
        assert budget["rho_reserved"] == pytest.approx(0.1)
        assert known["mechanism"]["rounds"] == 3

    def test_more_than_is_left_is_refused(self, everybody: Visitor, dataset: str) -> None:
        fields = release_fields(dataset, budget="5")
        preview = everybody.post("/releases/preview", fields).text
        assert "this release would be refused" in preview
        answer = everybody.post("/releases/new", fields)
        assert answer.status_code == 409
        assert "more than the population has left" in unescape(answer.text)

    def test_items_and_mechanisms_change_without_scripts(
        self, everybody: Visitor, dataset: str
    ) -> None:
        text = everybody.post("/releases/new", release_fields(dataset, action="add")).text
        assert 'name="w1.type"' in text
        changed = release_fields(dataset, action="update", mechanism="gem_pub")
        text = everybody.post("/releases/new", changed).text
        assert 'name="public_dataset_id"' in text
        assert 'name="m.pretraining_steps"' in text

    def test_nonsense_is_no_fault_of_ours(self, everybody: Visitor) -> None:
        for fields in (
            {},
            {"w0.type": "x", "mechanism": "y", "budget": "z", "action": "submit"},
            release_fields("no-id"),
            release_fields(str(uuid.uuid4())),
            {"w" + "9" * 30 + ".type": "marginals"},
        ):
            assert everybody.post("/releases/new", fields).status_code in {200, 404, 422}
            assert everybody.post("/releases/preview", fields).status_code == 200
        assert everybody.get("/releases/new?dataset=nonsense").status_code == 200
        assert everybody.get("/populations?cursor=nonsense").status_code == 422


class TestReleases:
    def test_progress_is_shown_and_followed(self, everybody: Visitor, dataset: str) -> None:
        api = everybody.api
        release = api.release(dataset)
        with api.session() as session, session.begin():
            progress.start(session, uuid.UUID(release))
            progress.report(session, uuid.UUID(release), done=3, total=7, spent_units=0)
        text = everybody.get(f"/releases/{release}").text
        assert "Step 3 of 7" in text
        assert f'data-events="/console/releases/{release}/events"' in text
        with api.session() as session, session.begin():
            problem = {"type": "/problems/failed", "detail": "the model did not fit"}
            progress.finish(session, uuid.UUID(release), "failed", error=problem)
        events = everybody.get(f"/releases/{release}/events")
        assert events.headers["content-type"].startswith("text/event-stream")
        assert "event: progress" in events.text
        resumed = everybody.get(f"/releases/{release}/events", headers={"Last-Event-ID": "3"})
        assert "event: progress" not in resumed.text
        failed = everybody.get(f"/releases/{release}").text
        assert "The model did not fit." in failed
        assert "data-events" not in failed

    def test_a_failed_one_is_resumed(self, everybody: Visitor, dataset: str) -> None:
        api = everybody.api
        release = api.release(dataset)
        action = f'action="/console/releases/{release}/resume"'
        assert action not in everybody.get(f"/releases/{release}").text
        with api.session() as session, session.begin():
            ledger.close_unclaimed(session, uuid.UUID(release))
            problem = {"type": "/problems/gave-up", "detail": "10 workers were lost"}
            progress.finish(session, uuid.UUID(release), "failed", error=problem)
        assert action in everybody.get(f"/releases/{release}").text
        everybody.post(f"/releases/{release}/resume")
        assert api.all.get(f"/v1/releases/{release}").json()["state"] == "queued"

    def test_one_is_published_and_cancelled(self, everybody: Visitor, dataset: str) -> None:
        api = everybody.api
        release = api.release(dataset)
        everybody.post(f"/releases/{release}/publish")
        assert api.all.get(f"/v1/releases/{release}").json()["published"]
        everybody.post(f"/releases/{release}/cancel")
        assert api.all.get(f"/v1/releases/{release}").json()["state"] == "cancelled"

    def test_files_are_downloaded(self, everybody: Visitor, published: str) -> None:
        address = f"/releases/{published}/artifacts/synthetic.csv"
        answer = everybody.get(address)
        assert answer.content == CSV
        assert answer.headers["content-disposition"].startswith("attachment")
        etag = answer.headers["etag"]
        assert everybody.get(address, headers={"If-None-Match": etag}).status_code == 304
        assert everybody.get(address, headers={"Range": "bytes=0-2"}).content == CSV[:3]

    def test_released_answers_are_drawn(self, everybody: Visitor, published: str) -> None:
        text = everybody.get(f"/releases/{published}").text
        assert text.count('class="bar"') == 2
        assert '<rect class="bar" width="98.36%"' in text
        assert 'class="reach"' in text

    def test_an_analyst_sees_what_is_published_and_nothing_else(
        self, api: Api, published: str, dataset: str
    ) -> None:
        hidden = api.release(dataset)
        with visitor(api, "analyst") as ana:
            listed = ana.get("/releases").text
            assert published in listed
            assert hidden not in listed
            assert "New release" not in listed
            assert ana.get(f"/releases/{hidden}").status_code == 404
            page = ana.get(f"/releases/{published}").text
            assert "Ask the model" in page
            assert "/datasets/" not in page
            assert "Publish" not in page
            assert "Requested" in page
            assert "at midnight (UTC) of" in page
            assert not re.search(r"\d\d:\d\d", page), "a time of day"

    def test_shares_and_counts_have_their_own_standard_errors(
        self, everybody: Visitor, published: str
    ) -> None:
        page = everybody.get(f"/releases/{published}").text
        (line,) = re.findall(r'<tr><th scope="row">sex=F</th>(.*?)</tr>', page)
        cells = re.findall(r"<td[^>]*>(.*?)</td>", line)
        assert cells == ["40.00&thinsp;%", "1.00 %", "40", "0.7", "measured"]

    def test_without_a_worker_questions_are_not_lost_in_silence(
        self, everybody: Visitor, published: str
    ) -> None:
        answer = everybody.get(f"/releases/{published}/answers?column=sex")
        assert answer.status_code == 503
        assert "The model could not answer" in answer.text
        unknown = everybody.get(f"/releases/{published}/answers?column=nothing")
        assert unknown.status_code == 422
        none = everybody.get(f"/releases/{published}/answers")
        assert none.status_code == 422
        many = everybody.post(f"/releases/{published}/samples", {"rows": "0"})
        assert many.status_code == 422


class TestKeys:
    def test_a_key_is_shown_once(self, everybody: Visitor) -> None:
        fields = {"name": "ana", "scopes": "analyst", "expires_on": "2099-01-31"}
        answer = everybody.post("/keys", fields)
        assert answer.status_code == 201
        secret = re.search(r'id="made-key">(scrim_[\w-]+)<', answer.text)
        assert secret
        assert secret[1] not in everybody.get("/keys").text
        with visitor(everybody.api) as ana:
            assert ana.sign_in(secret[1]).status_code == 200
            listed = everybody.api.all.get("/v1/keys").json()["items"][0]
            everybody.post(f"/keys/{listed['id']}/revoke")
            assert ana.get("/releases").url.path == "/console/sign-in"

    def test_a_key_needs_scopes(self, everybody: Visitor) -> None:
        answer = everybody.post("/keys", {"name": "nobody"})
        assert answer.status_code == 422
        assert "The key was not created" in answer.text


class TestEscaping:
    def test_names_are_never_markup(self, everybody: Visitor) -> None:
        api = everybody.api
        population = api.population(name=HOSTILE)
        schema = {"columns": [{"name": HOSTILE, "type": "categorical", "values": [HOSTILE]}]}
        dataset = api.ready_dataset(population, schema)
        release = api.release(dataset, workload=[{"type": "marginals", "attributes": [[HOSTILE]]}])
        api.finish(release, {"answers.csv": ANSWERS})
        pages = [
            everybody.get(path).text
            for path in (
                "/populations",
                f"/populations/{population}",
                "/datasets/new",
                "/datasets",
                f"/datasets/{dataset}",
                "/releases",
                f"/releases/{release}",
            )
        ]
        pages.append(everybody.post("/datasets/new", {"name": HOSTILE, "c0.name": HOSTILE}).text)
        pages.append(everybody.post("/keys", {"name": HOSTILE}).text)
        assert all("<script>alert" not in text for text in pages)
        assert all(HOSTILE in unescape(text) for text in pages)

    def test_addresses_are_not_either(self, everybody: Visitor) -> None:
        for path in (f"/{HOSTILE}", f"/populations/{HOSTILE}", f"/sign-in?next={HOSTILE}"):
            assert "<script>alert" not in everybody.get(path).text


def test_pages_are_small(everybody: Visitor, published: str, dataset: str) -> None:
    for path in (
        "/sign-in", "/populations", "/populations/new", "/datasets", "/datasets/new", "/releases",
        f"/datasets/{dataset}", f"/releases/new?dataset={dataset}", f"/releases/{published}", "/keys",
        "/static/console.css", "/static/console.js",
    ):  # fmt: skip
        assert len(everybody.get(path).content) < 100_000, path


def test_a_busy_key_is_told_to_wait(
    postgres_server: PostgresServer, valkey_server: ValkeyServer, tmp_path: Any
) -> None:
    owner_url = create_database(postgres_server.url)
    settings = settings_for(owner_url, valkey_server.url, tmp_path, rate_limit=0.001, rate_burst=3)
    with serving(settings, tmp_path) as slow, visitor(slow) as ana:
        ana.sign_in(slow.new_key("analyst"))
        answers = [ana.get("/populations") for _ in range(4)]
        assert answers[-1].status_code == 429
        assert "Too many requests" in answers[-1].text
        assert int(answers[-1].headers["retry-after"]) > 0


def test_a_release_with_damaged_answers_is_shown_without_them(api: Api, everybody: Visitor) -> None:
    release = api.release(api.ready_dataset(api.population()), publish=True)
    content = f"item,query,value,count\nsex,sex=F,0.5,{release}\n".encode()
    api.finish(release, {"answers.csv": content})
    (path,) = [each for each in api.objects() if each.read_bytes() == content]
    path.unlink()
    answer = everybody.get(f"/releases/{release}")
    assert answer.status_code == 500
    assert "Artifact damaged" in answer.text
    assert f"/console/releases/{release}/artifacts/answers.csv" in answer.text
    assert "sex=F" not in answer.text
