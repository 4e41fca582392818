"""A certificate is valid for exactly the signed content and the released files."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from scrim.cli import app
from scrim.verify import Check, Report, canonical, verify

SERVICE = Ed25519PrivateKey.generate()
FILES = {"synthetic.csv": b"name\nJos\xc3\xa9\n", "answers.csv": b"item\n1\n", "model": b"\x00"}


def public(key: Ed25519PrivateKey) -> str:
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def certificate() -> dict[str, Any]:
    """A certificate, with letters and numbers that have several encodings."""
    return {
        "rho": 0.1,
        "epsilon": {"1e-09": 2.5},
        "population": {"name": "Bevölkerung"},
        "artifacts": {
            name: {
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
                "media_type": "text/csv",
            }
            for name, content in FILES.items()
        },
    }


def signed(content: dict[str, Any], key: Ed25519PrivateKey = SERVICE) -> dict[str, Any]:
    return {
        "certificate": content,
        "signature": base64.b64encode(key.sign(canonical(content))).decode(),
        "public_key": public(key),
        "algorithm": "ed25519",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A downloaded release."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "certificate.json").write_text(json.dumps(signed(certificate()), indent=1))
    return tmp_path


def check(folder: Path, *names: str, public_key: str | None = None) -> Report:
    files = [folder / name for name in names]
    return verify(folder / "certificate.json", files, public_key=public_key)


class TestSound:
    def test_everything_is_right(self, folder: Path) -> None:
        report = check(folder, *FILES, public_key=public(SERVICE))
        assert report.ok
        assert [check.subject for check in report.checks] == ["signature", "public key", *FILES]
        assert report.certificate == certificate()
        assert report.public_key == public(SERVICE)
        assert report.unchecked == ()

    def test_files_that_were_not_given_are_named(self, folder: Path) -> None:
        report = check(folder, "model")
        assert report.ok
        assert report.unchecked == ("synthetic.csv", "answers.csv")

    def test_the_certificate_itself_may_be_among_the_files(self, folder: Path) -> None:
        assert check(folder, "certificate.json", "model").ok

    def test_a_renamed_file_is_recognised(self, folder: Path) -> None:
        (folder / "synthetic.csv").rename(folder / "copy.csv")
        report = check(folder, "copy.csv")
        assert report.ok
        assert "synthetic.csv under another name" in report.checks[-1].finding

    def test_how_the_document_is_written_does_not_matter(self, folder: Path) -> None:
        document = json.loads((folder / "certificate.json").read_text())
        text = json.dumps(dict(reversed(document.items())), ensure_ascii=False)
        (folder / "certificate.json").write_text(text)
        assert check(folder).ok


class TestTampering:
    @pytest.mark.parametrize("name", FILES)
    def test_a_changed_byte(self, folder: Path, name: str) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(bytes(content))
        report = check(folder, *FILES)
        assert not report.ok
        assert [each.subject for each in report.checks if not each.ok] == [name]

    def test_two_files_exchanged(self, folder: Path) -> None:
        (folder / "synthetic.csv").write_bytes(FILES["answers.csv"])
        assert not check(folder, "synthetic.csv").ok

    def test_a_file_of_another_release(self, folder: Path) -> None:
        (folder / "more.csv").write_text("name\n")
        found = check(folder, "more.csv").checks[-1]
        assert found == Check("more.csv", False, "not a file of this release")

    def test_a_missing_file(self, folder: Path) -> None:
        (folder / "model").unlink()
        found = check(folder, "model").checks[-1]
        assert not found.ok
        assert found.finding.startswith("cannot be read")

    @pytest.mark.parametrize(
        "change",
        [
            lambda content: content.update(rho=0.01),
            lambda content: content["epsilon"].clear(),
            lambda content: content["artifacts"]["model"].update(sha256="0" * 64),
            lambda content: content["artifacts"].pop("model"),
            lambda content: content.update(extra=None),
            lambda content: content["population"].update(name="Bevolkerung"),
        ],
    )
    def test_a_changed_certificate(
        self, folder: Path, change: Callable[[dict[str, Any]], Any]
    ) -> None:
        document = signed(certificate())
        change(document["certificate"])
        (folder / "certificate.json").write_text(json.dumps(document))
        report = check(folder, *FILES)
        assert not report.ok
        assert report.certificate is None
        assert "was changed" in report.checks[0].finding

    def test_a_signature_by_another_key(self, folder: Path) -> None:
        forged = signed(certificate(), Ed25519PrivateKey.generate())
        (folder / "certificate.json").write_text(json.dumps(forged))
        assert check(folder).ok
        report = check(folder, public_key=public(SERVICE))
        assert not report.ok
        assert "another key" in report.checks[1].finding

    def test_an_expected_key_that_is_none(self, folder: Path) -> None:
        assert not check(folder, public_key="hello").ok


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "none"},
        {"algorithm": None},
        {"signature": "AAAA"},
        {"signature": None},
        {"signature": 7},
        {"public_key": "not base64"},
        {"public_key": base64.b64encode(bytes(31)).decode()},
        {"certificate": []},
        {"certificate": None},
    ],
)
def test_a_document_of_another_shape(folder: Path, change: dict[str, Any]) -> None:
    document = signed(certificate()) | change
    (folder / "certificate.json").write_text(json.dumps(document))
    assert not check(folder, *FILES).ok


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\xff", b"[" * 100_000, b'"a"'])
def test_a_document_that_is_none(folder: Path, content: bytes) -> None:
    (folder / "certificate.json").write_bytes(content)
    assert not check(folder, *FILES).ok


def test_a_name_that_occurs_twice(folder: Path) -> None:
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"rho"', '"rho": 9, "rho"', 1))
    assert "occurs twice" in check(folder).checks[0].finding


@pytest.mark.parametrize(
    "listed",
    [None, "files", [{"name": "a", "size": 1, "sha256": "0"}], {"a": 1}, {"a": {"size": 1}}],
)
def test_a_signed_certificate_without_a_list_of_files(folder: Path, listed: Any) -> None:
    document = signed(certificate() | {"artifacts": listed})
    (folder / "certificate.json").write_text(json.dumps(document))
    assert not check(folder).ok


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "rho 0.12 (epsilon 2.988) at delta 1e-09, of which rho 0.1 (epsilon 2.501) was spent"),
        (
            {"accounting": "exact_gaussian"},
            "rho 0.12 (epsilon 2.988) at delta 1e-09 by the exact curve of its Gaussian noise, of which "
            "rho 0.1 (epsilon 2.501) was spent",
        ),
        (
            {"accounting": "zcdp"},
            "rho 0.12 (epsilon 2.988) at delta 1e-09 by conversion from zCDP, of which rho 0.1 "
            "(epsilon 2.501) was spent",
        ),
        ({"rho_reserved": None}, None),
        ({"epsilon_reserved": {"1e-06": 2.0}}, None),
        ({"population": None}, None),
    ],
)
def test_the_guarantee_is_that_of_what_was_reserved(
    folder: Path, changes: dict[str, Any], expected: str | None
) -> None:
    """A certificate that does not state both amounts verifies, without a stated guarantee."""
    promise = {
        "rho_reserved": 0.12,
        "epsilon_reserved": {"1e-09": 2.9872},
        "epsilon": {"1e-09": 2.5001},
        "population": {"name": "Bevölkerung", "delta": 1e-9},
    }
    document = signed(certificate() | promise | changes)
    (folder / "certificate.json").write_text(json.dumps(document))
    assert check(folder).ok and check(folder).guarantee == expected
    shown = CliRunner().invoke(app, ["verify", str(folder / "certificate.json")]).stdout
    assert ("Guarantee: " in shown) == (expected is not None)
    assert (expected or "") in shown


class TestCommand:
    def run(self, *arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["verify", *map(str, arguments)])
        return result.exit_code, result.stdout

    def test_all_is_well(self, folder: Path) -> None:
        (folder / "signing.pub").write_text(public(SERVICE) + "\n")
        paths = [folder / name for name in ("certificate.json", *FILES)]
        code, out = self.run(*paths, "--public-key", folder / "signing.pub")
        assert code == 0
        assert out.count("ok ") == 2 + len(FILES)
        assert "Whose key it is" not in out

    def test_without_an_expected_key_it_says_what_that_means(self, folder: Path) -> None:
        code, out = self.run(folder / "certificate.json")
        assert code == 0
        assert "A certificate does not prove whose key signed it" in out
        assert "not given: synthetic.csv" in out

    def test_tampering_has_an_exit_code(self, folder: Path) -> None:
        (folder / "model").write_bytes(b"\x01")
        code, out = self.run(folder / "certificate.json", folder / "model")
        assert code == 5
        assert "BAD model" in out

    def test_other_programs_get_json(self, folder: Path) -> None:
        wrong = public(Ed25519PrivateKey.generate())
        code, out = self.run(folder / "certificate.json", "--public-key", wrong, "--json")
        assert code == 5
        assert json.loads(out)["ok"] is False
        assert json.loads(out)["certificate"] == certificate()

    def test_no_certificate(self, folder: Path) -> None:
        assert self.run(folder / "none.json")[0] == 2
