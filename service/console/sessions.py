"""Sessions in a cookie: only the service has the key that seals them, so only it can read or create one.

The cookie names a row of the database, which names the API key and is deleted at sign-out: after that, a
copy of the cookie is useless. The secret itself is checked at sign-in and not stored. A visitor who
is not signed in has a cookie without such a row.
"""

import base64
import binascii
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from fastapi import Request, Response

COOKIE = "scrim_session"
PATH = "/console"
SECONDS = 8 * 60 * 60
"""How long a session lasts: a working day."""

_NONCE_BYTES = 12
_KEY_BYTES = 32
"""AES-256-GCM: the sizes of its nonce and its key."""
_PURPOSE = b"scrim-console-session-1"


@dataclass(frozen=True)
class Session:
    """The signed-in visitor, if any, and the token that their forms must carry."""

    id: UUID | None
    """The id of its row in the database; None if the visitor is not signed in."""
    token: str
    ends_at: int
    """Seconds since 1 January 1970 (UTC)."""

    def accepts(self, token: str | None) -> bool:
        """Whether a form came from one of this session's own pages."""
        return hmac.compare_digest(self.token.encode(), (token or "").encode())


def begin(session_id: UUID | None = None) -> Session:
    """A new session; with an id if the visitor is signed in."""
    return Session(session_id, secrets.token_urlsafe(24), int(time.time()) + SECONDS)


def session_of(request: Request, *, master_key: bytes) -> Session | None:
    """The session of a request, unless it has none or it has ended."""
    cookie = request.cookies.get(COOKIE)
    session = None if cookie is None else unseal(cookie, master_key=master_key)
    return None if session is None or session.ends_at <= time.time() else session


def keep(response: Response, session: Session, request: Request, *, master_key: bytes) -> None:
    """Set the session's cookie, which scripts and other sites cannot read."""
    response.set_cookie(
        COOKIE,
        seal(session, master_key=master_key),
        max_age=SECONDS,
        path=PATH,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


def forget(response: Response) -> None:
    """Delete the session's cookie."""
    response.delete_cookie(COOKIE, path=PATH)


def seal(session: Session, *, master_key: bytes) -> str:
    """Encode and encrypt a session as the text of a cookie."""
    session_id = None if session.id is None else str(session.id)
    plain = json.dumps([session_id, session.token, session.ends_at]).encode()
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = nonce + _cipher(master_key).encrypt(nonce, plain, _PURPOSE)
    return base64.urlsafe_b64encode(sealed).decode()


def unseal(cookie: str, *, master_key: bytes) -> Session | None:
    """Decrypt the session in a cookie; None if this service did not seal it."""
    try:
        sealed = base64.urlsafe_b64decode(cookie.encode())
        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        plain = _cipher(master_key).decrypt(nonce, rest, _PURPOSE)
    except (binascii.Error, ValueError, InvalidTag):
        return None
    session_id, token, ends_at = json.loads(plain)
    return Session(None if session_id is None else UUID(session_id), token, ends_at)


def _cipher(master_key: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE).derive(master_key))
