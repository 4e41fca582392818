"""The report among the files of a release: listed, signed, and the same when a job is resumed."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from scrim.verify import verify
from service.data.ledger import repository as ledger
from tests.databases import ledger_in_the_past
from tests.worker.report.support import Page
from tests.worker.support import Stack
from tests.worker.test_interruptions import at, stop
from worker.releases import run_release
from worker.report import Balance, balance_before, texts

pytestmark = pytest.mark.random

CERTIFIED = {"rows": 60, "certify": {}}


def test_every_release_has_a_signed_report(stack: Stack, dataset: UUID, tmp_path: Path) -> None:
    release = stack.submit(dataset, outputs=CERTIFIED)
    run_release(stack.context, release)
    (listed,) = [
        each for each in stack.release(release)["artifacts"] if each["name"] == "report.html"
    ]
    content = stack.artifact(release, "report.html")
    assert listed["media_type"] == "text/html; charset=utf-8"
    assert listed["sha256"] == hashlib.sha256(content).hexdigest()
    for name in ("certificate.json", "report.html"):
        (tmp_path / name).write_bytes(stack.artifact(release, name))
    assert verify(tmp_path / "certificate.json", [tmp_path / "report.html"]).ok
    certificate = json.loads((tmp_path / "certificate.json").read_bytes())["certificate"]
    text = Page(content).text
    for fact in (
        *("table", "people", str(release), certificate["software"], "mwem"),
        *(certificate["artifacts"][name]["sha256"] for name in ("synthetic.csv", "model")),
        f"{60} synthetic rows",
    ):
        assert fact in text
    answer = stack.http.get(f"/v1/releases/{release}/artifacts/report.html")
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_a_resumed_job_writes_the_same_report(
    stack: Stack, population: UUID, dataset: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if others have spent, reserved and raised the cap meanwhile."""
    release = stack.submit(dataset, outputs=CERTIFIED)
    at("after-artifacts-before-finish", stop, monkeypatch)
    run_release(stack.context, release)
    written = stack.objects("artifacts/")
    other, waiting = stack.submit(dataset), stack.submit(dataset)
    run_release(stack.context, other)
    with stack.context.transaction() as work:
        ledger.set_cap(work.session, population, cap_units=11 * 10**12)
    stack.expire_lease(release)
    run_release(stack.context, release)
    (report,) = [
        each["sha256"]
        for each in stack.release(release)["artifacts"]
        if each["name"] == "report.html"
    ]
    assert any(path.name == report for path in written)
    stack.cancel(waiting)


def test_the_balance_is_that_of_the_midnight_before(
    stack: Stack, population: UUID, dataset: UUID
) -> None:
    """So a report does not reveal other releases of the same day."""
    first = stack.submit(dataset)
    run_release(stack.context, first)
    spent = stack.reservation(first).spent_units
    with ledger_in_the_past(stack.owner, population, timedelta(days=2)):
        begun = datetime.now(UTC).date()
        with stack.context.transaction() as work:
            ledger.set_cap(work.session, population, cap_units=2 * 10**13)
        second = stack.submit(dataset)
        run_release(stack.context, second)
        third = stack.submit(dataset)
        assert _before(stack, population, first) == Balance(10**13, 0)
        assert _before(stack, population, second) == Balance(2 * 10**13, spent)
        if datetime.now(UTC).date() == begun:
            assert _before(stack, population, third) == Balance(2 * 10**13, spent)
    text = Page(stack.artifact(second, "report.html")).text
    assert texts.rho_spent(spent, aligned=True) in text
    assert texts.rho_left(2 * 10**13 - spent, aligned=True) in text
    stack.cancel(third)


def _before(stack: Stack, population: UUID, release: UUID) -> Balance:
    return balance_before(stack.context.engine, population, release)


def test_a_dry_run_says_so(stack: Stack, population: UUID) -> None:
    release = stack.submit(stack.dataset(population), dry_run=True)
    run_release(stack.context, release)
    assert "This is a dry run" in Page(stack.artifact(release, "report.html")).text
