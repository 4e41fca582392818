"""The page for curators of households, typed command by command into a real stack."""

import csv
import io
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from client.comparison import read_rows
from client.verify import verify
from tests.e2e.support import environment, running, scratch

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "households.md"
COMMANDS = re.compile(r"^```sh\n(.*?)^```\n", re.M | re.S)
PAGE_SECONDS = 300
HOMES, LARGEST = 1000, 5
"""How many groups are released, and individuals in a group, as the page has it."""


@dataclass(frozen=True)
class Released:
    """What the commands left behind, and what they printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def released() -> Iterator[Released]:
    """One run of all commands of the page."""
    with scratch() as folder:
        command = folder / ".venv" / "bin" / "scrim"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m client.cli "$@"\n')
        command.chmod(0o755)
        with running(folder / "data", OMP_NUM_THREADS="1") as up:
            done = subprocess.run(
                ["sh", "-euc", "".join(COMMANDS.findall(PAGE.read_text()))],
                cwd=folder,
                env=environment(SCRIM_URL=up.url, SCRIM_DATA=str(up.data_dir)),
                capture_output=True,
                text=True,
                timeout=PAGE_SECONDS,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        yield Released(folder / "released", done.stdout)


def test_every_individual_has_its_group(released: Released) -> None:
    groups = read_rows(released.folder / "synthetic_groups.csv")
    individuals = read_rows(released.folder / "synthetic_individuals.csv")
    assert [row["home"] for row in groups] == [str(1 + number) for number in range(HOMES)]
    members = Counter(row["home"] for row in individuals)
    assert members.keys() == {row["home"] for row in groups}
    assert set(members.values()) <= set(range(1, LARGEST + 1))


def test_individuals_come_in_the_declared_order(released: Released) -> None:
    known = [row for row in read_rows(released.folder / "synthetic_individuals.csv") if row["age"]]
    places = [(int(row["home"]), int(row["age"])) for row in known]
    assert places == sorted(places)


def test_the_certificate_is_about_both_files(released: Released) -> None:
    report = verify(released.folder / "certificate.json", released.folder.iterdir())
    assert report.ok and report.unchecked == ()
    assert report.certificate is not None
    assert report.certificate["protection"]["unit"] == "household"
    names = set(report.certificate["artifacts"])
    assert {"synthetic_groups.csv", "synthetic_individuals.csv"} <= names


def test_a_sample_has_a_row_for_each_individual(released: Released) -> None:
    _, found, sample = released.printed.rpartition("home,tenure,rooms,sex,age\n")
    rows = list(csv.DictReader(io.StringIO(found + sample)))
    assert {row["home"] for row in rows} == {"1", "2", "3"}
    assert len({(row["home"], row["tenure"], row["rooms"]) for row in rows}) == 3
