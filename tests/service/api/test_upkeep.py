"""The operator's commands: caps, keys, and databases that are not the newest ones."""

import io
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import make_url, text

from scrim.spec.budget import rho_of_units
from service.__main__ import main
from service.data.config import Settings
from service.data.context import open_context
from service.data.crypto import WrongMasterKey
from service.data.db import open_engine
from service.data.ledger import repository as ledger
from service.data.ledger.errors import AnchorMissing, DatabaseBehind
from service.data.logging import build_logger
from service.data.master_key import check_master_key
from service.embedded import PostgresServer, ValkeyServer
from tests.databases import create_database

from .support import (
    Api,
    problem,
    random_key,
    read_back,
    release_body,
    serving,
    settings_for,
)


def environment_of(settings: Settings) -> dict[str, str]:
    """The variables from which a process reads these settings."""
    values = {name: getattr(settings, name) for name in type(settings).model_fields}
    return {
        f"SCRIM_{name.upper()}": (
            value.get_secret_value() if isinstance(value, SecretStr) else str(value)
        )
        for name, value in values.items()
        if value is not None
    }


@dataclass(frozen=True)
class Installation:
    """An installation whose parts can be stopped and started."""

    owner_url: Any
    settings: Settings
    folder: Path

    @contextmanager
    def started(self) -> Iterator[Api]:
        with serving(self.settings, self.folder) as api:
            yield api

    def changed(self, **keys: str) -> "Installation":
        """The same with other keys."""
        secrets = {name: SecretStr(key) for name, key in keys.items()}
        return replace(self, settings=self.settings.model_copy(update=secrets))

    @property
    def anchor(self) -> Path:
        return self.folder / "anchor.json"

    def check(self) -> None:
        """The check of the anchor that every process makes first."""
        with open_context(self.settings, build_logger(io.StringIO())) as context:
            context.check_anchor()

    def check_master_key(self) -> None:
        """The check of the master key that the service and its workers make when they start."""
        engine = open_engine(str(self.settings.database_url))
        try:
            check_master_key(engine, self.settings.master_key_bytes)
        finally:
            engine.dispose()

    def backed_up(self) -> "Installation":
        """The same with a copy of the database as it is now."""
        copy = make_url(self.owner_url).set(database=f"copy_{uuid.uuid4().hex}")
        engine = open_engine(make_url(self.owner_url).set(database="postgres"))
        with engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(
                text(f"CREATE DATABASE {copy.database} TEMPLATE {self.owner_url.database}")
            )
        engine.dispose()
        settings = settings_for(copy, str(self.settings.broker_url), self.folder)
        same = {name: getattr(self.settings, name) for name in ("master_key", "signing_key")}
        return replace(self, owner_url=copy, settings=settings.model_copy(update=same))


@pytest.fixture
def installation(
    postgres_server: PostgresServer, valkey_server: ValkeyServer
) -> Iterator[Installation]:
    """One of its own for each test, with nothing in it."""
    with tempfile.TemporaryDirectory(prefix="scrim-test-") as folder:
        owner_url = create_database(postgres_server.url)
        settings = settings_for(owner_url, valkey_server.url, Path(folder))
        yield Installation(owner_url, settings, Path(folder))


class Operator:
    """Calls `python -m service` as a process with the settings of an installation would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def call(self, installation: Installation, *arguments: str, **environment: str) -> str:
        """What a command printed."""
        with self._monkeypatch.context() as patch:
            for name, value in (environment_of(installation.settings) | environment).items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["service", *arguments])
            main()
        return self._capsys.readouterr().out

    def refused(self, installation: Installation, *arguments: str, **environment: str) -> str:
        """What a command that must fail printed, and why it failed."""
        with pytest.raises(SystemExit) as ending:
            self.call(installation, *arguments, **environment)
        assert ending.value.code not in {0, None}
        return self._capsys.readouterr().out + str(ending.value.code)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operator:
    return Operator(monkeypatch, capsys)


class TestCap:
    def test_a_lower_cap_holds_at_once_and_is_in_the_ledger(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
            dataset = api.ready_dataset(population)
            assert "was 1 rho and is now 0.15 rho" in operator.call(
                installation, "set-cap", population, "--rho", "0.15"
            )
            assert api.budget(population)["rho_cap"] == 0.15
            api.release(dataset)
            problem(api.create(release_body(dataset)), 409, "budget-exhausted")
            path = f"/v1/populations/{population}/ledger"
            entries = api.all.get(path).json()["items"]
            assert [(entry["kind"], entry["rho"]) for entry in entries[:2]] == [
                ("open_account", 1.0),
                ("set_cap", 0.15),
            ]
            assert api.all.get(f"{path}/verify").json()["ok"] is True

    def test_a_cap_in_epsilon_is_converted_at_the_delta_of_the_population(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population, same = api.population(), api.population(cap={"epsilon": 0.5})
            operator.call(installation, "set-cap", population, "--epsilon", "0.5")
            assert api.budget(population)["rho_cap"] == api.budget(same)["rho_cap"]

    def test_a_higher_cap_must_be_confirmed(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
            wanted = ("set-cap", population, "--rho", "2")
            assert "higher than the present one" in operator.refused(installation, *wanted)
            assert api.budget(population)["rho_cap"] == 1.0
            operator.call(installation, *wanted, "--raise")
            assert api.budget(population)["rho_cap"] == 2.0

    @pytest.mark.parametrize(
        ("amount", "reason"),
        [("0.05", "spent and reserved"), ("1e-13", "smallest amount"), ("nan", "rho")],
    )
    def test_what_cannot_be_a_cap(
        self, installation: Installation, operator: Operator, amount: str, reason: str
    ) -> None:
        with installation.started() as api:
            population = api.population()
            api.release(api.ready_dataset(population))
            assert reason in operator.refused(installation, "set-cap", population, "--rho", amount)
            assert api.budget(population)["rho_cap"] == 1.0

    def test_there_must_be_such_a_population(
        self, installation: Installation, operator: Operator
    ) -> None:
        unknown = str(uuid.uuid4())
        assert "NotFound" in operator.refused(installation, "set-cap", unknown, "--rho", "1")

    def test_a_restored_backup_cannot_forget_a_lower_cap(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
        backup = installation.backed_up()
        operator.call(installation, "set-cap", population, "--rho", "0.5")
        assert "DatabaseBehind" in operator.refused(backup, "set-cap", population, "--rho", "0.9")
        with pytest.raises(DatabaseBehind):
            backup.check()


class TestMasterKey:
    def test_rows_are_read_with_the_new_one_and_not_with_the_old_one(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
            dataset = api.dataset(population)
            assert api.upload(dataset, b"sex,age\nF,31\n").status_code == 202
            deleted = api.dataset(population)
            assert api.all.delete(f"/v1/datasets/{deleted}").status_code == 204
        new = random_key()
        printed = operator.call(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=new)
        assert printed.startswith("1 data keys")
        assert new not in printed
        with installation.changed(master_key=new).started() as api:
            assert read_back(api, dataset) == b"sex,age\nF,31\n"
        again = operator.refused(
            installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=random_key()
        )
        assert "Unreadable" in again, "the old master key must open nothing"

    def test_all_or_none(self, installation: Installation, operator: Operator) -> None:
        with installation.started() as api:
            population = api.population()
            # They are wrapped again in this order, so the second one fails.
            first, second = sorted(api.dataset(population) for _ in range(2))
        engine = open_engine(installation.owner_url)
        with engine.begin() as connection:
            foreign = "UPDATE dataset SET wrapped_key = sha256('') WHERE id = :id"
            connection.execute(text(foreign), {"id": second})
        engine.dispose()
        operator.refused(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=random_key())
        with installation.started() as api:
            assert api.upload(first).status_code == 202

    def test_a_second_call_catches_up_with_a_part_that_was_not_stopped(
        self, installation: Installation, operator: Operator
    ) -> None:
        new = random_key()
        with installation.started() as api:
            population = api.population()
            api.dataset(population)
            operator.call(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=new)
            late = api.dataset(population)
        printed = operator.call(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=new)
        assert printed.startswith("1 data keys")
        with installation.changed(master_key=new).started() as api:
            assert api.upload(late).status_code == 202

    def test_the_new_one_is_the_right_one_from_then_on(
        self, installation: Installation, operator: Operator
    ) -> None:
        installation.check_master_key()
        new = random_key()
        operator.call(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=new)
        installation.changed(master_key=new).check_master_key()
        with pytest.raises(WrongMasterKey):
            installation.check_master_key()

    def test_a_wrong_one_is_noticed_from_the_first_day(self, installation: Installation) -> None:
        installation.check_master_key()
        with pytest.raises(WrongMasterKey):
            installation.changed(master_key=random_key()).check_master_key()
        installation.check_master_key()

    def test_databases_that_are_older_than_the_check_are_recognised_by_their_datasets(
        self, installation: Installation
    ) -> None:
        with installation.started() as api:
            api.dataset(api.population())
        with pytest.raises(WrongMasterKey):
            installation.changed(master_key=random_key()).check_master_key()
        installation.check_master_key()

    @pytest.mark.parametrize("part", [["service", "serve", "--port", "0"], ["worker"]])
    def test_no_part_starts_with_a_wrong_one(
        self, installation: Installation, part: list[str]
    ) -> None:
        installation.check_master_key()
        wrong = installation.changed(master_key=random_key())
        ended = subprocess.run(
            [sys.executable, "-m", *part],
            env={"PATH": os.environ["PATH"]} | environment_of(wrong.settings),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ended.returncode == 1
        (sentence,) = ended.stderr.splitlines()
        assert sentence.startswith("WrongMasterKey: SCRIM_MASTER_KEY is not the master key")

    @pytest.mark.parametrize("key", ["", "A" * 43 + "="])
    def test_keys_that_are_none(
        self, installation: Installation, operator: Operator, key: str
    ) -> None:
        refusal = operator.refused(installation, "rotate-master-key", SCRIM_NEW_MASTER_KEY=key)
        assert "new_master_key" in refusal


class TestSigningKey:
    def test_the_anchor_is_signed_anew(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            api.population()
        new = random_key()
        operator.call(installation, "rotate-signing-key", SCRIM_NEW_SIGNING_KEY=new)
        with installation.changed(signing_key=new).started() as api:
            assert api.all.get("/readyz").status_code == 200
        forged = operator.refused(
            installation, "rotate-signing-key", SCRIM_NEW_SIGNING_KEY=random_key()
        )
        assert "AnchorForged" in forged

    def test_it_is_no_way_to_accept_an_old_database(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started():
            pass
        backup = installation.backed_up()
        with installation.started() as api:
            api.population()
        before = installation.anchor.read_bytes()
        refusal = operator.refused(backup, "rotate-signing-key", SCRIM_NEW_SIGNING_KEY=random_key())
        assert "DatabaseBehind" in refusal
        assert installation.anchor.read_bytes() == before


class TestReanchoring:
    def test_nothing_to_do(self, installation: Installation, operator: Operator) -> None:
        with installation.started() as api:
            api.population()
        before = installation.anchor.read_bytes()
        for flags in ([], ["--close-populations"], ["--database-is-newest"]):
            assert "nothing to do" in operator.call(installation, "reanchor", *flags)
        assert installation.anchor.read_bytes() == before

    def test_a_lost_anchor_needs_a_confirmation(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
        installation.anchor.unlink()
        for flags in ([], ["--close-populations"]):
            assert "no anchor" in operator.refused(installation, "reanchor", *flags)
        with pytest.raises(AnchorMissing):
            installation.check()
        operator.call(installation, "reanchor", "--database-is-newest")
        with installation.started() as api:
            assert api.budget(population)["rho_left"] == 1.0

    def test_populations_that_lost_entries_are_closed_and_others_are_not(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            hurt, spared = api.population(), api.population()
            dataset, other = api.ready_dataset(hurt), api.ready_dataset(spared)
            waiting = api.release(dataset)
        with installation.started():
            pass
        backup = installation.backed_up()
        with installation.started() as api:
            api.release(dataset)
            unknown = api.population()
        before = installation.anchor.read_bytes()
        for flags in ([], ["--database-is-newest"]):
            refusal = operator.refused(backup, "reanchor", *flags)
            assert hurt in refusal and unknown in refusal and spared not in refusal
            assert "NOT THE NEWEST" in refusal
        assert installation.anchor.read_bytes() == before
        with pytest.raises(DatabaseBehind):
            backup.check()

        printed = operator.call(backup, "reanchor", "--close-populations")
        assert "CLOSED" in printed
        with backup.started() as api:
            assert api.budget(hurt)["rho_left"] == rho_of_units(1)
            assert api.budget(hurt)["rho_reserved"] == 0
            assert api.all.get(f"/v1/releases/{waiting}").json()["state"] == "cancelled"
            problem(api.create(release_body(dataset)), 409, "budget-exhausted")
            assert api.create(release_body(other)).status_code == 202
            assert api.all.get(f"/v1/populations/{hurt}/ledger/verify").json()["ok"] is True
            problem(api.all.get(f"/v1/populations/{unknown}"), 404, "not-found")

    def test_a_database_that_went_on_without_its_anchor_is_found_too(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
            dataset = api.ready_dataset(population)
        backup = installation.backed_up()
        with installation.started() as api:
            api.release(dataset)
        with installation.started():
            pass
        # As long as the anchored chain, but different: the number of entries is the same.
        engine = open_engine(str(backup.settings.database_url))
        with engine.begin() as connection:
            for cap in (10**12 - 1, 10**12 - 2):
                ledger.set_cap(connection, uuid.UUID(population), cap_units=cap)
        engine.dispose()
        assert population in operator.refused(backup, "reanchor")
        operator.call(backup, "reanchor", "--close-populations")
        with backup.started() as api:
            assert api.budget(population)["rho_left"] == rho_of_units(1)

    def test_a_running_worker_prevents_closing(
        self, installation: Installation, operator: Operator
    ) -> None:
        with installation.started() as api:
            population = api.population()
            release = uuid.UUID(api.release(api.ready_dataset(population)))
            with api.session() as session, session.begin():
                ledger.claim(session, release, holder="worker", lease_seconds=60)
        backup = installation.backed_up()
        operator.call(installation, "set-cap", population, "--rho", "0.5")
        refusal = operator.refused(backup, "reanchor", "--close-populations")
        assert "LeaseHeld" in refusal
        with pytest.raises(DatabaseBehind):
            backup.check()


def test_the_commands_are_those_of_the_module(installation: Installation) -> None:
    """Run once as a separate process, to check that the other tests call what operators call."""
    environment = {"PATH": "/usr/bin:/bin", **environment_of(installation.settings)}
    done = subprocess.run(
        [sys.executable, "-m", "service", "reanchor"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("There is no anchor")
