"""Who may see which page, and whose forms are accepted."""

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select, update

from service.console.route import PAGE_HEADERS
from service.console.routes import PARTS
from service.console.sessions import COOKIE
from service.data.db import open_engine
from service.data.models import ConsoleSession, KeyRow
from service.embedded import wait_until
from service.keys.schemas import Scope
from tests.patience import PATIENCE
from tests.service.api.support import Api, serving
from tests.service.console.support import TOKEN, Visitor, visitor

ROLES = ("admin", "curator", "analyst")
ANY = set(ROLES)
NOBODY = uuid.UUID(int=0)
A_DAY_AGO = datetime.now(UTC) - timedelta(days=1)

# method, path, scopes that may see it
ROUTES: list[tuple[str, str, set[str]]] = [
    ("GET", "", ANY),
    ("GET", "/{rest:path}", ANY),
    ("POST", "/sign-out", ANY),
    ("GET", "/populations", ANY),
    ("GET", "/populations/new", {"admin"}),
    ("POST", "/populations/new", {"admin"}),
    ("GET", "/populations/{population_id}", ANY),
    ("GET", "/populations/{population_id}/verify", {"curator"}),
    ("GET", "/datasets", {"curator"}),
    ("GET", "/datasets/new", {"curator"}),
    ("POST", "/datasets/new", {"curator"}),
    ("GET", "/datasets/{dataset_id}", {"curator"}),
    ("GET", "/datasets/{dataset_id}/state", {"curator"}),
    ("POST", "/datasets/{dataset_id}/content", {"curator"}),
    ("POST", "/datasets/{dataset_id}/delete", {"curator"}),
    ("GET", "/schemas", {"curator"}),
    ("GET", "/schemas/{schema_id}", {"curator"}),
    ("POST", "/schemas", {"curator"}),
    ("GET", "/releases", {"curator", "analyst"}),
    ("GET", "/releases/new", {"curator"}),
    ("POST", "/releases/new", {"curator"}),
    ("POST", "/releases/preview", {"curator"}),
    ("GET", "/releases/{release_id}", {"curator", "analyst"}),
    ("GET", "/releases/{release_id}/events", {"curator", "analyst"}),
    ("POST", "/releases/{release_id}/publish", {"curator"}),
    ("POST", "/releases/{release_id}/cancel", {"curator"}),
    ("POST", "/releases/{release_id}/resume", {"admin"}),
    ("GET", "/releases/{release_id}/artifacts/{name}", {"curator", "analyst"}),
    ("GET", "/releases/{release_id}/answers", {"analyst"}),
    ("POST", "/releases/{release_id}/samples", {"analyst"}),
    ("GET", "/keys", {"admin"}),
    ("POST", "/keys", {"admin"}),
    ("POST", "/keys/{key_id}/revoke", {"admin"}),
]
OPEN = {("GET", "/sign-in"), ("POST", "/sign-in"), ("GET", "/static/{name}"), ("GET", "/docs")}
each_route = pytest.mark.parametrize(("method", "path", "allowed"), ROUTES)


def address(path: str) -> str:
    names = ("key_id", "population_id", "dataset_id", "release_id", "schema_id")
    plain = path.replace("{rest:path}", "somewhere")
    return plain.format(**dict.fromkeys(names, NOBODY), name="synthetic.csv")


def test_every_route_is_in_the_matrix() -> None:
    served = {
        (method, route.path.removeprefix("/console"))
        for part in PARTS
        for route in part.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert served == {(method, path) for method, path, _ in ROUTES} | OPEN


@pytest.fixture(scope="module", params=ROLES)
def someone(request: pytest.FixtureRequest, api: Api) -> object:
    with visitor(api, request.param) as visiting:
        yield request.param, visiting


@pytest.mark.parametrize(
    ("method", "path", "allowed"), [each for each in ROUTES if each[1] != "/sign-out"]
)
def test_matrix(someone: tuple[str, Visitor], method: str, path: str, allowed: set[str]) -> None:
    role, visiting = someone
    token = visiting.token()
    data = {"token": token} if method == "POST" else None
    answer = visiting.http.request(method, f"/console{address(path)}", data=data)
    if role in allowed:
        # The resource does not exist, or the form is invalid, but the visitor is authorised.
        assert answer.status_code in {200, 404, 422}, answer.text
    else:
        assert answer.status_code == 403
        assert "Scope missing" in answer.text


@each_route
def test_without_a_session_one_is_asked_to_sign_in(
    api: Api, method: str, path: str, allowed: set[str]
) -> None:
    with visitor(api) as stranger:
        # With a token of its own: a session alone is not enough.
        data = {"token": stranger.token("/sign-in")} if method == "POST" else None
        answer = stranger.http.request(
            method, f"/console{address(path)}", data=data, follow_redirects=False
        )
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/console/sign-in")


@pytest.mark.parametrize("path", [path for method, path, _ in ROUTES if method == "POST"])
@pytest.mark.parametrize("token", ["", "nonsense"])
def test_forms_from_elsewhere_change_nothing(everybody: Visitor, path: str, token: str) -> None:
    url = f"/console{address(path)}"
    if path.endswith("/content"):
        answer = everybody.http.post(url, data={"token": token}, files={"file": ("a.csv", b"x\n")})
    else:
        answer = everybody.http.post(url, data={"token": token})
    assert answer.status_code == 403
    assert "Form out of date" in answer.text
    assert everybody.get("/populations").status_code == 200, "the session goes on"


class TestSigningIn:
    def test_a_key_that_works(self, api: Api) -> None:
        with visitor(api, "curator") as carla:
            cookie = carla.http.cookies[COOKIE]
            assert "curator" in carla.get("/releases").text
            assert len(cookie) > 60

    def test_a_key_that_does_not(self, api: Api) -> None:
        with visitor(api) as stranger:
            for key in ("", "scrim_wrong", "x" * 10_000, "<script>"):
                answer = stranger.sign_in(key)
                assert answer.status_code == 401
                assert "unknown, expired or revoked" in answer.text
                assert "&lt;script&gt;" not in answer.text

    def test_another_site_cannot_sign_anybody_in(self, api: Api) -> None:
        with visitor(api) as stranger:
            answer = stranger.http.post("/console/sign-in", data={"key": api.new_key("admin")})
            assert answer.status_code == 403

    def test_it_begins_a_new_session(self, api: Api) -> None:
        with visitor(api) as visiting:
            before = visiting.token("/sign-in")
            visiting.sign_in(api.new_key("analyst"))
            assert visiting.token() != before

    @pytest.mark.parametrize(
        ("wanted", "reached"),
        [
            ("/console/populations", "/console/populations"),
            ("https://elsewhere.example/", "/console/releases"),
            ("//elsewhere.example/console/", "/console/releases"),
            ("/consolex", "/console/releases"),
            ("/v1/keys", "/console/releases"),
        ],
    )
    def test_it_leads_into_the_console_and_nowhere_else(
        self, api: Api, wanted: str, reached: str
    ) -> None:
        with visitor(api) as visiting:
            answer = visiting.sign_in(api.new_key("curator"), next=wanted)
            assert answer.url.path == reached
            assert answer.url.host == "127.0.0.1"

    def test_it_leads_to_the_page_that_was_asked_for(self, api: Api) -> None:
        with visitor(api) as visiting:
            answer = visiting.get("/datasets/new")
            assert answer.url.path == "/console/sign-in"
            assert 'value="/console/datasets/new"' in answer.text

    @pytest.mark.parametrize("role", ROLES)
    def test_signing_out_ends_the_session(self, api: Api, role: Scope) -> None:
        with visitor(api, role) as visiting:
            assert visiting.get("/populations").url.path == "/console/populations"
            answer = visiting.post("/sign-out")
            assert answer.url.path == "/console/sign-in"
            assert visiting.get("/populations").url.path == "/console/sign-in"


class TestSigningOut:
    def test_a_copy_of_the_cookie_is_of_no_use_afterwards(self, api: Api) -> None:
        with visitor(api, "curator") as carla, visitor(api) as thief:
            thief.http.cookies.set(COOKIE, carla.http.cookies[COOKIE], path="/console")
            assert thief.get("/datasets").url.path == "/console/datasets"
            carla.post("/sign-out")
            assert thief.get("/datasets").url.path == "/console/sign-in"

    def test_it_holds_for_every_process_and_after_a_restart(self, api: Api) -> None:
        with visitor(api, "curator") as carla:
            cookie = carla.http.cookies[COOKIE]
            with serving(api.context.settings, api.folder) as other, visitor(other) as elsewhere:
                elsewhere.http.cookies.set(COOKIE, cookie, path="/console")
                assert elsewhere.get("/datasets").url.path == "/console/datasets"
                carla.post("/sign-out")
                assert elsewhere.get("/datasets").url.path == "/console/sign-in"
            with serving(api.context.settings, api.folder) as later, visitor(later) as again:
                again.http.cookies.set(COOKIE, cookie, path="/console")
                assert again.get("/datasets").url.path == "/console/sign-in"

    def test_other_sessions_of_the_key_go_on(self, api: Api) -> None:
        secret = api.new_key("curator")
        with visitor(api) as one, visitor(api) as other:
            one.sign_in(secret)
            other.sign_in(secret)
            one.post("/sign-out")
            assert other.get("/datasets").url.path == "/console/datasets"

    def test_sessions_that_ended_by_themselves_are_forgotten(
        self, api: Api, owner_url: Any
    ) -> None:
        secret = api.new_key("curator")
        engine = open_engine(owner_url)
        with visitor(api) as carla, engine.connect() as connection:
            carla.sign_in(secret)
            of_key = select(KeyRow.id).where(KeyRow.prefix == secret[:14]).scalar_subquery()
            own = ConsoleSession.key_id == of_key
            with connection.begin():
                connection.execute(update(ConsoleSession).where(own).values(ends_at=A_DAY_AGO))
            assert carla.get("/datasets").url.path == "/console/sign-in"
            # The next sign-in deletes it.
            carla.sign_in(api.new_key("curator"))
            assert connection.execute(select(ConsoleSession.id).where(own)).all() == []
        engine.dispose()


class TestKeysThatEnd:
    def test_a_revoked_key_ends_its_sessions(self, api: Api) -> None:
        secret = api.new_key("curator")
        with visitor(api) as carla:
            carla.sign_in(secret)
            assert carla.get("/datasets").url.path == "/console/datasets"
            with api.session() as session, session.begin():
                row = session.query(KeyRow).filter_by(prefix=secret[:14]).one()
                row.revoked_at = datetime.now(UTC)
            assert carla.get("/datasets").url.path == "/console/sign-in"

    def test_so_does_one_that_expired(self, api: Api, owner_url: Any) -> None:
        secret = api.new_key("curator")
        engine = open_engine(owner_url)
        with visitor(api) as carla:
            carla.sign_in(secret)
            assert carla.get("/datasets").url.path == "/console/datasets"
            with engine.begin() as connection:
                connection.execute(
                    update(KeyRow)
                    .where(KeyRow.prefix == secret[:14])
                    .values(created_at=A_DAY_AGO, expires_at=A_DAY_AGO + timedelta(hours=1))
                )
            assert carla.get("/datasets").url.path == "/console/sign-in"
        engine.dispose()


class TestHeaders:
    @pytest.mark.parametrize(
        "path",
        [
            *("/console/sign-in", "/console/populations", "/console/nowhere", "/console/datasets"),
            "/docs",
        ],
    )
    def test_every_page_is_careful(self, everybody: Visitor, path: str) -> None:
        answer = everybody.http.get(path)
        for name, value in PAGE_HEADERS.items():
            assert answer.headers[name] == value
        assert answer.headers["cache-control"] == "no-store"

    def test_scripts_and_styles_are_files_of_ours(self, everybody: Visitor) -> None:
        policy = PAGE_HEADERS["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        text = everybody.get("/populations").text
        assert re.findall(r"<script(?! src=\"/console/static/)", text) == []
        assert "<style" not in text
        assert " style=" not in text
        assert re.findall(r"\son[a-z]+=", text) == []

    def test_files_are_kept_by_browsers(self, everybody: Visitor) -> None:
        for name in ("console.css", "console.js", "mark.svg"):
            answer = everybody.get(f"/static/{name}")
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
        assert everybody.get("/static/nothing.css").status_code == 404
        assert everybody.get("/static/..%2fpages.py").status_code == 404


def test_browsers_are_led_to_the_console_and_programs_are_not(api: Api) -> None:
    with visitor(api) as stranger:
        browser = stranger.http.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
        assert (browser.status_code, browser.headers["location"]) == (303, "/console")
        assert stranger.http.get("/", headers={"Accept": "*/*"}).status_code == 404


def test_requests_are_logged_by_route_and_key(everybody: Visitor) -> None:
    request_id = everybody.get(f"/populations/{NOBODY}").headers["x-request-id"]

    def lines() -> list[dict[str, Any]]:
        found = map(json.loads, everybody.api.log.getvalue().splitlines())
        return [line for line in found if line.get("request_id") == request_id]

    # The log line is written after the response was sent.
    wait_until(lambda: bool(lines()), timeout=PATIENCE, what="a line in the log")
    (line,) = lines()
    assert line["route"] == "/console/populations/{population_id}"
    assert line["key_id"]


def test_tokens_differ_between_sessions(api: Api) -> None:
    with visitor(api, "admin") as one, visitor(api, "admin") as other:
        assert one.token() != other.token()
        answer = one.post("/keys", {"token": other.token(), "name": "x", "scopes": "analyst"})
        assert answer.status_code == 403


def test_a_page_of_a_stranger_has_a_token_too(api: Api) -> None:
    with visitor(api) as stranger:
        assert TOKEN.search(stranger.get("/sign-in").text)
