"""What callers other than curators see: finished results, and balances as of the last midnight."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest

from service.data import progress
from service.data.db import open_engine
from service.data.ledger import repository as ledger
from service.data.ledger.records import LedgerOperation
from service.keys.schemas import Scope
from tests.databases import ledger_in_the_past
from tests.service.console.support import Visitor, visitor

from .support import LEASE_SECONDS, Api

ROUNDS = 3
PRICE = 10**10
"""Units of 1e-12 rho for each round."""
NOWHERE = str(UUID(int=0))


class Work:
    """What a worker does to a release, step by step, with real charges."""

    def __init__(self, api: Api, release: str) -> None:
        self.api = api
        self.release_id = UUID(release)
        self.epoch = 0

    def start(self) -> None:
        with self.api.session() as session, session.begin():
            self.epoch = ledger.claim(
                session, self.release_id, holder="test", lease_seconds=LEASE_SECONDS
            )
            progress.start(session, self.release_id)

    def commit(self, number: int) -> None:
        """One operation, and the progress that follows it."""
        operation = LedgerOperation(number, "measure", "columns", 2.5, PRICE, bytes(8))
        with self.api.session() as session, session.begin():
            ledger.commit_operation(session, self.release_id, epoch=self.epoch, operation=operation)
            spent = PRICE * (number + 1)
            progress.report(
                session, self.release_id, done=number + 1, total=ROUNDS, spent_units=spent
            )

    def end(self) -> None:
        with self.api.session() as session, session.begin():
            ledger.finish(session, self.release_id, epoch=self.epoch)
            stored = self.api.context.storage.write_content("artifacts", [b"sex,age\n"])
            progress.add_artifact(
                session, self.release_id, "synthetic.csv", stored=stored, media_type="text/csv"
            )
            progress.finish(session, self.release_id, "succeeded")

    def steps(self) -> Iterator[Callable[[], None]]:
        yield self.start
        for number in range(ROUNDS):
            yield partial(self.commit, number)
        yield self.end


def today() -> date:
    return datetime.now(UTC).date()


QUESTIONS = ("answers", "samples")


def addresses(api: Api, questions: Sequence[str]) -> list[tuple[str, str]]:
    """Every readable address of the API, and other calls that analysts may make."""
    paths = api.all.get("/openapi.json").json()["paths"]
    read = [("GET", path) for path, methods in paths.items() if "get" in methods]
    return read + [("POST", f"/v1/releases/{{release_id}}/{part}") for part in questions]


PAGES = (
    *("/populations", "/populations/{population_id}", "/datasets", "/keys", "/releases"),
    *("/releases/{release_id}", "/releases/{release_id}/events", "/releases/{release_id}/answers"),
    "/releases/{release_id}/artifacts/{name}",
)


def everything(
    api: Api, browser: Visitor, questions: Sequence[str] = QUESTIONS, **ids: str
) -> dict[str, Any]:
    """Every answer that an analyst can get, by address, without the date of the answer itself."""
    unknown = dict.fromkeys(("dataset_id", "key_id", "schema_id"), NOWHERE)
    ids = unknown | {"name": "synthetic.csv"} | ids
    request_id = {"X-Request-ID": "poll"}
    answers: dict[str, httpx.Response] = {}
    for method, path in addresses(api, questions):
        body: dict[str, Any] = {"rows": 1} if path.endswith("samples") else {"workload": []}
        answers[path] = api.role("analyst").request(
            method,
            path.format_map(ids),
            headers=request_id,
            json=body if method == "POST" else None,
        )
    for path in PAGES:
        answers[f"/console{path}"] = browser.get(path.format_map(ids), headers=request_id)
    return {
        path: (
            answer.status_code,
            {name: value for name, value in answer.headers.items() if name != "date"},
            answer.text,
        )
        for path, answer in answers.items()
    }


def test_nothing_changes_for_an_analyst_until_a_release_is_published(api: Api) -> None:
    """Polled before, during and after a release, every answer is the same."""
    with visitor(api, "analyst") as browser:
        while True:
            begun = today()
            population = api.population()
            dataset = api.ready_dataset(population)
            polls = [everything(api, browser, population_id=population, release_id=NOWHERE)]
            release = api.release(dataset)
            for step in Work(api, release).steps():
                step()
                polls.append(everything(api, browser, population_id=population, release_id=release))
            if today() == begun:  # at midnight the balance changes, as intended
                break
        first, *later = polls
        statuses = {path: answer[0] for path, answer in first.items()}
        assert statuses["/metrics"] == statuses["/v1/datasets"] == 403
        assert statuses["/v1/populations/{population_id}"] == 200
        assert len(later) == ROUNDS + 2
        for poll in later:
            assert poll.keys() == first.keys()
            for path, answer in poll.items():
                assert answer == first[path], path
        assert api.budget(population)["rho_spent"] == pytest.approx(ROUNDS * PRICE / 1e12)
        assert api.all.post(f"/v1/releases/{release}/publish").status_code == 200
        # Questions would now be sent to a worker.
        published = everything(
            api, browser, questions=(), population_id=population, release_id=release
        )
        changed = {path for path, answer in published.items() if answer != first[path]}
    assert changed >= {"/v1/releases", "/v1/releases/{release_id}", "/console/releases"}
    assert not changed & {"/v1/populations", "/v1/populations/{population_id}", "/metrics"}


def test_analysts_get_the_final_event_alone(api: Api) -> None:
    """Neither it nor its number depends on how many events there were."""
    found = []
    for rounds in (1, 3):
        release = api.release(api.ready_dataset(api.population()), publish=True)
        work = Work(api, release)
        work.start()
        for number in range(rounds):
            work.commit(number)
        work.end()
        answer = api.role("analyst").get(f"/v1/releases/{release}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        *lines, data = answer.text.strip().splitlines()
        told = json.loads(data.removeprefix("data: "))
        assert datetime.fromisoformat(told.pop("at")).timetz() == time(tzinfo=UTC)
        found.append((lines, told))
        resumed = {"Last-Event-ID": "1"}
        again = api.role("analyst").get(f"/v1/releases/{release}/events", headers=resumed)
        assert (again.status_code, again.text) == (200, "")
        assert api.role("curator").get(f"/v1/releases/{release}/events").text.count("id: ") > 3
    assert found == [(["id: 1", "event: state"], {"state": "succeeded"})] * 2


def test_others_than_curators_see_the_balance_of_the_last_midnight(
    api: Api, owner_url: Any
) -> None:
    """The spending of a job that ran at midnight counts as reserved."""
    population = api.population()
    dataset = api.ready_dataset(population)
    ended, work = Work(api, api.release(dataset)), Work(api, api.release(dataset))
    for each in (ended, work):
        each.start()
        each.commit(0)
    ended.end()
    owner = open_engine(owner_url)
    with ledger_in_the_past(owner, UUID(population), timedelta(days=2)):
        work.commit(1)
        work.end()
        shown = {role: _budget(api, role, population) for role in ("admin", "analyst", "curator")}
    owner.dispose()
    for role in ("admin", "analyst"):
        assert shown[role]["rho_spent"] == rho(PRICE)
        assert shown[role]["rho_reserved"] == rho(10**11)
        assert shown[role]["rho_left"] == rho(9 * 10**11 - PRICE)
        as_of = datetime.fromisoformat(shown[role]["as_of"])
        assert as_of.timetz() == time(tzinfo=UTC) and as_of <= datetime.now(UTC)
    assert shown["curator"]["as_of"] is None
    assert shown["curator"]["rho_spent"] == rho(3 * PRICE)
    assert shown["curator"]["rho_reserved"] == 0


def rho(units: int) -> Any:
    return pytest.approx(units / 1e12)


def _budget(api: Api, role: Scope, population: str) -> dict[str, Any]:
    """The budget in the list, which must be that of the page."""
    listed = api.role(role).get("/v1/populations", params={"limit": "200"}).json()["items"]
    (found,) = [each["budget"] for each in listed if each["id"] == population]
    assert found == api.role(role).get(f"/v1/populations/{population}").json()["budget"]
    budget: dict[str, Any] = found
    return budget
