"""A browser without scripts: keeps cookies, follows redirects and sends the tokens of its pages."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from typing import Any

import httpx

from service.keys.schemas import Scope
from tests.patience import PATIENCE
from tests.service.api.support import Api

TOKEN = re.compile(r'name="token" value="([^"]+)"')
REPEAT = re.compile(r'name="repeat_key" value="([^"]+)"')
Pairs = Mapping[str, Any]


class Visitor:
    """A visitor of the console."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.http = httpx.Client(base_url=api.url, timeout=PATIENCE, follow_redirects=True)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(f"/console{path}", **options)

    def token(self, path: str = "/populations") -> str:
        found = TOKEN.search(self.get(path).text)
        assert found, f"no form on {path}"
        return unescape(found[1])

    def post(self, path: str, fields: Pairs | None = None, **options: Any) -> httpx.Response:
        """Send a form with a token of this session, unless the fields have one."""
        given = dict(fields or {})
        data = given if "token" in given else {"token": self.token(), **given}
        return self.http.post(f"/console{path}", data=data, **options)

    def sign_in(self, key: str, **fields: str) -> httpx.Response:
        data = {"token": self.token("/sign-in"), "key": key, **fields}
        return self.http.post("/console/sign-in", data=data)


@contextmanager
def visitor(api: Api, *scopes: Scope) -> Iterator[Visitor]:
    """A visitor who is signed in with these scopes; without scopes, not signed in."""
    visiting = Visitor(api)
    with visiting.http:
        if scopes:
            answer = visiting.sign_in(api.new_key(*scopes))
            assert answer.status_code == 200, answer.text
        yield visiting
