"""Releases whose mechanism is left to choose, from the request to the certificate."""

import json
from typing import Any
from uuid import UUID

import pytest

from synth.planning import choice
from tests.worker.support import Stack
from tests.worker.test_public_data import ready_public
from worker.releases import run_release

pytestmark = pytest.mark.random


def forget_how(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every further choice fail."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a mechanism is chosen once, when the release is asked for")

    monkeypatch.setattr(choice, "rank", refuse)


def test_from_the_request_to_the_certificate(
    stack: Stack, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = ready_public(stack)
    asked: dict[str, Any] = {"mechanism": {"name": "auto"}, "public_dataset_id": str(public)}
    release = stack.submit(dataset, **asked, budget={"rho": 5.0})
    queued = stack.release(release)
    assert (queued["mechanism"]["name"], queued["public_dataset_id"]) == (
        "generative_network_pub",
        str(public),
    )
    forget_how(monkeypatch)
    run_release(stack.context, release)
    assert stack.release(release)["state"] == "succeeded"
    assert [each.kind for each in stack.journal(release)][:2] == ["rows", "measure"]
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert certificate["release"]["mechanism"]["name"] == "generative_network_pub"
    assert certificate["mechanism_choice"] == queued["choice"]
    assert certificate["mechanism_choice"]["asked"]["name"] == "auto"
    report = stack.artifact(release, "report.html").decode()
    assert (
        "asked for <code>auto</code>" in report
        and "By <code>generative_network_pub</code>" in report
    )


def test_a_mechanism_that_was_named_was_not_chosen(stack: Stack, dataset: UUID) -> None:
    release = stack.submit(dataset)
    run_release(stack.context, release)
    certificate = json.loads(stack.artifact(release, "certificate.json"))["certificate"]
    assert certificate["mechanism_choice"] is None
    assert b"<code>auto</code>" not in stack.artifact(release, "report.html")
