"""The whole way in a real browser: from a new population to an analyst's answers."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import World
from tests.browser.support import PATIENCE, Person
from tests.worker.support import csv_rows

pytestmark = [pytest.mark.browser, pytest.mark.random]

POPULATION = "people of the whole way"


def test_from_a_population_to_an_answer(visit: Any, world: World, tmp_path: Path) -> None:
    with visit() as person:
        person.sign_in(world.keys["admin"])
        make_population(person)
        person.sign_out()

        person.sign_in(world.keys["curator"])
        declare_dataset(person)
        upload(person, tmp_path)
        submit_release(person)
        release = watch_and_publish(person)
        person.sign_out()

        person.sign_in(world.keys["analyst"])
        use_release(person, release)


def make_population(person: Person) -> None:
    person.follow("New population")
    person.fill("Name *", POPULATION)
    person.page.get_by_label("A person with several rows").check()
    person.fill("Largest number of rows per person, or of people per household", "4")
    person.fill("Amount *", "20")
    person.press("Create the population")
    person.page.get_by_role("heading", name=POPULATION).wait_for()
    assert "Protects each person with up to 4 rows" in person.page.inner_text("main")


def declare_dataset(person: Person) -> None:
    page = person.page
    person.follow("Datasets")
    person.follow("New dataset")
    person.fill("Name", "inhabitants")
    label = page.locator("#population_id option", has_text=POPULATION).inner_text()
    page.get_by_label("About").select_option(label=label)
    page.locator("#c0\\.name").fill("sex")
    page.locator("#c0\\.values").fill("F\nM")
    page.locator("#c1\\.name").fill("age")
    # The fields of a number appear at once, and earlier input is kept.
    page.locator("#c1\\.type").select_option("integer")
    page.locator("#c1\\.lower").fill("0")
    page.locator("#c1\\.upper").fill("99")
    page.locator("#c1\\.bins").select_option("width")
    page.locator("#c1\\.bins_value").fill("25")
    assert page.locator("#c0\\.values").input_value() == "F\nM"
    page.locator("#c2\\.name").fill("town")
    page.locator("#c2\\.values").fill("a\nb")
    person.press("Add a column")
    page.locator("#c3\\.name").wait_for()
    page.wait_for_function("document.activeElement.id === 'c3.name'")
    page.keyboard.type("pid")
    page.locator("#c3\\.type").select_option("identifier")
    page.get_by_text("It is never released").wait_for()
    person.press("Declare the dataset")
    page.get_by_role("heading", name="inhabitants").wait_for()


def upload(person: Person, folder: Path) -> None:
    page = person.page
    wrong = folder / "table.xlsx"
    wrong.write_bytes(b"no table")
    page.locator("input[type=file]").set_input_files(wrong)
    person.press("Upload")
    page.get_by_text("choose a file that ends in").wait_for()
    table = folder / "table.csv"
    table.write_bytes(csv_rows(400))
    page.locator("input[type=file]").set_input_files(table)
    person.press("Upload")
    # The page shows when it becomes ready, without a reload.
    page.locator("[data-state=ready]").wait_for(timeout=PATIENCE)
    person.follow("New release")


def submit_release(person: Person) -> None:
    page = person.page
    page.get_by_role("heading", name="New release").wait_for()
    cost = page.locator("#preview .big").first
    before = cost.inner_text()
    page.locator("#mechanism").select_option("mwem")
    page.get_by_text("Multiplicative weights over the whole domain").wait_for()
    page.get_by_text("Parameters").click()
    page.locator("#m\\.rounds").fill("4")
    page.locator("#budget").fill("5")
    page.wait_for_function(
        "before => document.querySelector('#preview .big')?.innerText !== before", arg=before
    )
    page.locator("#budget").fill("5000")
    page.locator("#preview [role=alert]").wait_for()
    page.locator("#budget").fill("5")
    page.locator("#preview .big").first.wait_for()
    page.locator("#w0\\.k").fill("1")
    page.locator("#rows").fill("300")
    # A double click creates only one release.
    page.get_by_role("button", name="Submit the release").dblclick()
    page.wait_for_url(re.compile(r"/console/releases/[0-9a-f-]{36}$"))


def watch_and_publish(person: Person) -> str:
    page = person.page
    address: str = page.url
    # The page follows the release without a reload.
    page.locator(".state-succeeded").wait_for(timeout=PATIENCE)
    page.get_by_role("link", name="synthetic.csv").wait_for()
    person.press("Publish")
    page.locator(".state-published").wait_for()
    person.follow("Releases")
    assert page.locator("tbody tr", has_text="inhabitants").count() == 1
    return address


def use_release(person: Person, address: str) -> None:
    page = person.page
    assert page.get_by_role("link", name="Datasets").count() == 0
    page.locator(f"a[href='{address.removeprefix(person.url)}']").click()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="synthetic.csv").click()
    rows = list(csv.DictReader(io.StringIO(Path(downloading.value.path()).read_text())))
    assert len(rows) == 300
    assert set(rows[0]) == {"sex", "age", "town"}

    page.locator(".chip", has_text="sex").click()
    page.locator(".chip", has_text="town").click()
    person.press("Ask")
    answers = page.get_by_role("region", name="Answers, as a table", exact=True)
    answers.wait_for()
    # F, M, other; a, b, other; and missing ones of each.
    assert answers.locator("tbody tr").count() == 4 * 4
    shares = [
        float(each.split()[0])
        for each in answers.locator("tbody td:nth-child(2)").all_inner_texts()
    ]
    assert sum(shares) == pytest.approx(100, abs=0.2)

    page.get_by_label("Draw more rows").fill("25")
    with page.expect_download() as downloading:
        person.press("Download a sample")
    assert len(Path(downloading.value.path()).read_text().splitlines()) == 26


def test_a_running_release_is_followed_and_cancelled(visit: Any, world: World) -> None:
    many = {"name": "mwem", "rounds": 5000}
    release = world.stack.submit(world.dataset, mechanism=many, budget={"rho": 0.1})
    with visit() as person:
        person.sign_in(world.keys["curator"])
        person.open(f"/releases/{release}")
        person.page.locator(".state-running").wait_for(timeout=PATIENCE)
        person.page.get_by_text(re.compile(r"^Step [1-9]\d* of [\d,]+$")).wait_for(timeout=PATIENCE)
        person.press("Cancel the release")
        person.page.locator(".state-cancelled").wait_for(timeout=PATIENCE)
        assert person.page.get_by_role("button", name="Publish").count() == 0
