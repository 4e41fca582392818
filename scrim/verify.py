"""An offline check of a certificate: its signature, and the files it lists."""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ALGORITHM = "ed25519"
PIECE_BYTES = 2**20
"""Size of the pieces in which files are read."""
_METHODS = {
    "exact_gaussian": " by the exact curve of its Gaussian noise",
    "zcdp": " by conversion from zCDP",
}
"""How epsilon was computed; certificates of older versions do not say."""


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    subject: str
    ok: bool
    finding: str


@dataclass(frozen=True)
class Report:
    """The results of all checks, and the certificate if its signature is valid."""

    checks: tuple[Check, ...]
    certificate: dict[str, Any] | None = None
    public_key: str | None = None
    unchecked: tuple[str, ...] = ()
    """Files that the certificate lists but the caller did not pass."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.ok for check in self.checks)

    @property
    def guarantee(self) -> str | None:
        """The guarantee of the release, and what it spent; None if the certificate does not state it."""
        try:
            content = self.certificate or {}
            delta = f"{content['population']['delta']:g}"
            promised = _amount(content["rho_reserved"], content["epsilon_reserved"][delta])
            spent = _amount(content["rho"], content["epsilon"][delta])
            method = _METHODS.get(str(content.get("accounting")), "")
        except (KeyError, TypeError, ValueError):
            return None
        return f"{promised} at delta {delta}{method}, of which {spent} was spent"


class Unsound(ValueError):
    """The document is not a valid certificate; the message is the reason."""


def verify(path: Path, files: Iterable[Path] = (), *, public_key: str | None = None) -> Report:
    """Check `certificate.json` and the files beside it.

    A forged certificate could be signed with another key: give the service's `public_key`, in base64, to know
    that it was the service.
    """
    try:
        document = _read(path.read_bytes())
        certificate, signer = _check_signature(document)
        listed = _artifacts(certificate)
    except Unsound as fault:
        return Report((Check("signature", False, str(fault)),))
    checks = [Check("signature", True, f"made by the key {signer}")]
    if public_key is not None:
        checks.append(_check_signer(signer, public_key))
    given = [file for file in files if file.resolve() != path.resolve()]
    checks += [_check_file(file, listed) for file in given]
    seen = {check.subject for check in checks}
    return Report(
        checks=tuple(checks),
        certificate=certificate,
        public_key=signer,
        unchecked=tuple(name for name in listed if name not in seen),
    )


def canonical(certificate: dict[str, Any]) -> bytes:
    """The bytes that are signed."""
    text = json.dumps(certificate, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def _read(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise Unsound(f"not a readable JSON document ({error})") from None
    if not isinstance(document, dict) or not isinstance(document.get("certificate"), dict):
        raise Unsound("there is no certificate in this document")
    return document


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # With duplicate names, a reader might see one entry while the signature covers the other.
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _check_signature(document: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The certificate and the key that signed it."""
    if document.get("algorithm") != ALGORITHM:
        raise Unsound(f"the signature must be {ALGORITHM}")
    signer = document.get("public_key")
    key = _decoded(signer, "public_key", length=32)
    signature = _decoded(document.get("signature"), "signature", length=64)
    certificate: dict[str, Any] = document["certificate"]
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, canonical(certificate))
    except (InvalidSignature, UnicodeEncodeError):
        raise Unsound("the certificate is not what was signed: it was changed") from None
    return certificate, base64.b64encode(key).decode()


def _check_signer(signer: str, expected: str) -> Check:
    try:
        wanted = _decoded(expected.strip(), "the public key", length=32)
    except Unsound as fault:
        return Check("public key", False, str(fault))
    if base64.b64decode(signer) == wanted:
        return Check("public key", True, "the expected one")
    return Check("public key", False, "signed by another key than the expected one")


def _artifacts(certificate: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The released files by name, each with at least its size and hash."""
    listed = certificate.get("artifacts")
    if not isinstance(listed, dict) or not all(map(_is_artifact, listed.values())):
        raise Unsound("the certificate lists no artifacts")
    return listed


def _is_artifact(about: Any) -> bool:
    return isinstance(about, dict) and {"size", "sha256"} <= about.keys()


def _check_file(file: Path, listed: dict[str, dict[str, Any]]) -> Check:
    """Compare a file with the artifact of the same name or, if it was renamed, the same content."""
    try:
        size, digest = file.stat().st_size, _sha256(file)
    except OSError as error:
        return Check(file.name, False, f"cannot be read: {error.strerror}")
    if (named := listed.get(file.name)) is not None:
        same = (named["size"], named["sha256"]) == (size, digest)
        return Check(file.name, same, "as released" if same else "differs from the released file")
    for name, artifact in listed.items():
        if artifact["sha256"] == digest:
            return Check(file.name, True, f"the released {name} under another name")
    return Check(file.name, False, "not a file of this release")


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _amount(rho: float, epsilon: float) -> str:
    """Format an amount; epsilon is rounded up."""
    return f"rho {rho:.6g} (epsilon {math.ceil(epsilon * 1000) / 1000:.3f})"


def _decoded(text: Any, what: str, *, length: int) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        content = b""
    if len(content) != length:
        raise Unsound(f"{what} must be {length} bytes in base64")
    return content
