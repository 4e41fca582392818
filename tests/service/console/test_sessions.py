"""Sessions: sealed, bounded in time, out of reach of scripts."""

import time
from uuid import UUID, uuid4

import pytest
from fastapi import Request, Response
from hypothesis import given
from hypothesis import strategies as st

from service.console.sessions import (
    COOKIE,
    SECONDS,
    Session,
    begin,
    keep,
    seal,
    session_of,
    unseal,
)

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))


def request(scheme: str = "http", cookie: str | None = None) -> Request:
    headers = [] if cookie is None else [(b"cookie", f"{COOKIE}={cookie}".encode())]
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/console",
            "query_string": b"",
            "headers": headers,
            "scheme": scheme,
            "server": ("scrim.example", 443),
        }
    )


@given(st.none() | st.uuids(), st.text(), st.integers(0, 2**40))
def test_what_is_sealed_can_be_read_again(key_id: UUID | None, token: str, ends_at: int) -> None:
    session = Session(key_id, token, ends_at)
    assert unseal(seal(session, master_key=KEY), master_key=KEY) == session


def test_a_cookie_reveals_nothing() -> None:
    session = begin(uuid4())
    cookies = {seal(session, master_key=KEY) for _ in range(10)}
    assert len(cookies) == 10
    assert not any(str(session.id) in cookie or session.token in cookie for cookie in cookies)


def test_another_key_opens_nothing() -> None:
    assert unseal(seal(begin(uuid4()), master_key=KEY), master_key=OTHER_KEY) is None


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_cookie_is_none(place: int, change: int) -> None:
    cookie = bytearray(seal(begin(uuid4()), master_key=KEY).encode())
    # Not in the last character, some bits of which are unused.
    cookie[place % (len(cookie) - 4)] ^= change
    assert unseal(cookie.decode("latin-1"), master_key=KEY) is None


@given(st.text())
def test_nonsense_is_none(cookie: str) -> None:
    assert unseal(cookie, master_key=KEY) is None


def test_a_session_ends() -> None:
    lasting = begin(uuid4())
    assert 0 < lasting.ends_at - time.time() <= SECONDS
    for session, known in [(lasting, True), (Session(uuid4(), "t", int(time.time())), False)]:
        found = session_of(request(cookie=seal(session, master_key=KEY)), master_key=KEY)
        assert (found is not None) == known
    assert session_of(request(), master_key=KEY) is None


def test_forms_of_other_sessions_are_refused() -> None:
    one, other = begin(), begin()
    assert one.accepts(one.token)
    for token in (other.token, "", None, one.token + "x", one.token[:-1], "é"):
        assert not one.accepts(token)


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie_stays_with_the_browser(scheme: str, secure: bool) -> None:
    response = Response()
    keep(response, begin(uuid4()), request(scheme), master_key=KEY)
    value, *attributes = response.headers["set-cookie"].split("; ")
    assert value.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "Path=/console", "SameSite=lax", f"Max-Age={SECONDS}"} <= set(attributes)
    assert ("Secure" in attributes) == secure
