"""Checks of what a page leaves behind, beyond those of its commands."""

import csv
import io
from collections import Counter
from collections.abc import Callable

from scrim.comparison import read_rows
from scrim.verify import verify
from tests.e2e.pages import Ran

HOMES, LARGEST = 1000, 5
"""The number of groups that the page about households releases, and the largest group size."""


def check_rows_of_the_library(ran: Ran) -> None:
    """The README's example releases as many rows as it says."""
    header, *rows = (ran.folder / "synthetic.csv").read_text().splitlines()
    assert header == "sex,age"
    assert len(rows) == 1000


def check_households(ran: Ran) -> None:
    """Two tables that join, a certificate about both, and a sample that has both."""
    released = ran.folder / "released"
    groups = read_rows(released / "synthetic_groups.csv")
    individuals = read_rows(released / "synthetic_individuals.csv")
    check_that_they_join(groups, individuals)
    check_order(individuals)
    report = verify(released / "certificate.json", released.iterdir())
    assert report.ok and report.unchecked == ()
    assert report.certificate is not None
    assert report.certificate["protection"]["unit"] == "household"
    assert {"synthetic_groups.csv", "synthetic_individuals.csv"} <= {
        *report.certificate["artifacts"]
    }
    check_sample(ran.printed)


def check_that_they_join(groups: list[dict[str, str]], individuals: list[dict[str, str]]) -> None:
    """Every individual has a group, and no group is empty."""
    assert [row["home"] for row in groups] == [str(1 + number) for number in range(HOMES)]
    members = Counter(row["home"] for row in individuals)
    assert members.keys() == {row["home"] for row in groups}
    assert set(members.values()) <= set(range(1, LARGEST + 1))


def check_order(individuals: list[dict[str, str]]) -> None:
    """Individuals come in the declared order."""
    places = [(int(row["home"]), int(row["age"])) for row in individuals if row["age"]]
    assert places == sorted(places)


def check_sample(printed: str) -> None:
    """A sample has a row for each individual, with the columns of its group."""
    _, found, sample = printed.rpartition("home,tenure,rooms,sex,age\n")
    rows = list(csv.DictReader(io.StringIO(found + sample)))
    assert {row["home"] for row in rows} == {"1", "2", "3"}
    assert len({(row["home"], row["tenure"], row["rooms"]) for row in rows}) == 3


LEFT_BEHIND: dict[str, Callable[[Ran], None]] = {
    "README.md": check_rows_of_the_library,
    "docs/households.md": check_households,
}
