"""What the page for curators of households leaves behind."""

import csv
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from client.comparison import read_rows
from client.verify import verify
from tests.documents import ROOT
from tests.e2e.pages import Ran

pytestmark = pytest.mark.e2e

HOMES, LARGEST = 1000, 5
"""How many groups are released, and individuals in a group, as the page has it."""


@pytest.fixture
def page_of_households(page: Callable[[Path], Ran]) -> Ran:
    """One run of all commands of the page."""
    return page(ROOT / "docs" / "households.md")


@pytest.fixture
def released(page_of_households: Ran) -> Path:
    """Where the page puts the released files."""
    return page_of_households.folder / "released"


def test_every_individual_has_its_group(released: Path) -> None:
    groups = read_rows(released / "synthetic_groups.csv")
    individuals = read_rows(released / "synthetic_individuals.csv")
    assert [row["home"] for row in groups] == [str(1 + number) for number in range(HOMES)]
    members = Counter(row["home"] for row in individuals)
    assert members.keys() == {row["home"] for row in groups}
    assert set(members.values()) <= set(range(1, LARGEST + 1))


def test_individuals_come_in_the_declared_order(released: Path) -> None:
    known = [row for row in read_rows(released / "synthetic_individuals.csv") if row["age"]]
    places = [(int(row["home"]), int(row["age"])) for row in known]
    assert places == sorted(places)


def test_the_certificate_is_about_both_files(released: Path) -> None:
    report = verify(released / "certificate.json", released.iterdir())
    assert report.ok and report.unchecked == ()
    assert report.certificate is not None
    assert report.certificate["protection"]["unit"] == "household"
    names = set(report.certificate["artifacts"])
    assert {"synthetic_groups.csv", "synthetic_individuals.csv"} <= names


def test_a_sample_has_a_row_for_each_individual(page_of_households: Ran) -> None:
    _, found, sample = page_of_households.printed.rpartition("home,tenure,rooms,sex,age\n")
    rows = list(csv.DictReader(io.StringIO(found + sample)))
    assert {row["home"] for row in rows} == {"1", "2", "3"}
    assert len({(row["home"], row["tenure"], row["rooms"]) for row in rows}) == 3
