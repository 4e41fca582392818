"""Every page: accessible, of any width, in light and dark, and without scripts."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.keys.schemas import Scope
from tests.browser.conftest import World
from tests.browser.support import Person

pytestmark = [pytest.mark.browser, pytest.mark.random]

NOBODY = "00000000-0000-0000-0000-000000000000"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

# name, role, path
PAGES: list[tuple[str, str, Callable[[World], str]]] = [
    ("populations", "admin", lambda world: "/populations"),
    ("population-new", "admin", lambda world: "/populations/new"),
    ("keys", "admin", lambda world: "/keys"),
    ("refused", "admin", lambda world: "/datasets"),
    ("population", "curator", lambda world: f"/populations/{world.population}"),
    ("population-verified", "curator", lambda world: f"/populations/{world.population}/verify"),
    ("datasets", "curator", lambda world: "/datasets"),
    ("dataset-new", "curator", lambda world: f"/datasets/new?population={world.population}"),
    ("dataset-new-linked", "curator", lambda world: "/datasets/new?levels=two"),
    ("dataset-new-wide", "curator", lambda world: f"/datasets/new?source=dataset:{world.wide}"),
    ("schemas", "curator", lambda world: "/schemas"),
    ("schema", "curator", lambda world: f"/schemas/{world.saved}"),
    ("dataset-waiting", "curator", lambda world: f"/datasets/{world.waiting}"),
    ("dataset", "curator", lambda world: f"/datasets/{world.dataset}"),
    ("releases", "curator", lambda world: "/releases"),
    ("release-new", "curator", lambda world: f"/releases/new?dataset={world.dataset}"),
    ("release", "curator", lambda world: f"/releases/{world.release}"),
    ("dry-run", "curator", lambda world: f"/releases/{world.unpublished}"),
    ("nothing", "curator", lambda world: f"/releases/{NOBODY}"),
    ("published", "analyst", lambda world: "/releases"),
    ("answers", "analyst", lambda world: f"/releases/{world.release}/answers?column=sex"),
]


@pytest.mark.parametrize(
    ("size", "scheme"),
    [(DESKTOP, "light"), (PHONE, "dark")]
    if "SCRIM_SCREENSHOTS" not in os.environ
    else [(size, scheme) for size in (DESKTOP, PHONE) for scheme in ("light", "dark")],
    ids=lambda value: value if isinstance(value, str) else str(value["width"]),
)
def test_every_page_is_accessible_and_fits(
    visit: Any, world: World, size: dict[str, int], scheme: str
) -> None:
    faults: dict[str, str] = {}
    roles: tuple[Scope | None, ...] = (None, "admin", "curator", "analyst")
    for role in roles:
        with visit(viewport=size, color_scheme=scheme) as person:
            if role is None:
                person.open("/sign-in")
                faults |= inspected(person, "sign-in", size, scheme)
                person.open_reference()
                faults |= inspected(person, "reference", size, scheme)
                continue
            person.sign_in(world.keys[role])
            for name, who, path in PAGES:
                if who == role:
                    person.open(path(world))
                    faults |= inspected(person, name, size, scheme)
    assert faults == {}


def inspected(person: Person, name: str, size: dict[str, int], scheme: str) -> dict[str, str]:
    """The accessibility violations of the open page."""
    from axe_playwright_python.sync_playwright import Axe

    folder = os.environ.get("SCRIM_SCREENSHOTS")
    if folder:
        place = Path(folder) / f"{name}-{size['width']}-{scheme}.png"
        person.page.screenshot(path=place, full_page=True)
    # Collapsed sections are inspected as well.
    person.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = Axe().run(person.page)
    faults = {
        f"{name}, {each['id']}": ", ".join(node["html"] for node in each["nodes"])
        for each in found.response["violations"]
    }
    return faults | ({f"{name}, width": "wider than the window"} if person.overflows() else {})


def test_the_reference_shows_the_api_and_loads_nothing_from_elsewhere(visit: Any) -> None:
    with visit() as person:
        answer = person.open_reference()
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        operation = person.page.locator("summary", has_text="Queue a release")
        assert "POST /v1/releases" in " ".join(operation.inner_text().split())
        assert not person.page.get_by_text("Example of Queue").is_visible()
        operation.click()
        opened = person.page.locator("details[open]")
        opened.locator("pre").wait_for()
        opened.get_by_role("link", name="ReleaseRequest").click()
        person.page.wait_for_url("**/docs#schema-ReleaseRequest")
        assert person.page.locator("#schema-ReleaseRequest").is_visible()
        hosts = {address.split("/")[2] for address in person.addresses}
        assert hosts == {person.url.split("/")[2]}


def test_a_header_is_dropped_and_the_grid_filled(visit: Any, world: World) -> None:
    with visit() as person:
        person.sign_in(world.keys["curator"])
        person.open("/datasets/new")
        person.page.get_by_text("Begin with a header").click()
        person.page.evaluate(
            """() => {
                const data = new DataTransfer();
                data.items.add(new File(["pid,age,ward\\n7,31,secret"], "table.csv"));
                const drop = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
                document.querySelector("#pasted").dispatchEvent(drop);
            }"""
        )
        person.page.locator("#c1\\.upper").wait_for()
        assert person.page.locator("#c1\\.type").input_value() == "integer"
        # Only the header left the machine.
        assert "secret" not in person.page.content()
        person.page.locator("#c1\\.upper").fill("99")
        person.page.keyboard.press("Tab")
        assert person.page.evaluate("document.activeElement.id") == "c1.missing"


class TestWithoutScripts:
    @pytest.fixture
    def person(self, visit: Any, world: World) -> Any:
        with visit(java_script_enabled=False) as person:
            person.sign_in(world.keys["curator"])
            yield person

    def test_columns_are_added(self, person: Person) -> None:
        person.open("/datasets/new")
        person.page.locator("#c0\\.name").fill("sex")
        person.press("Add a column")
        assert person.page.locator("#c3\\.name").count() == 1
        assert person.page.locator("#c0\\.name").input_value() == "sex"
        person.page.locator("#c1\\.type").select_option("real")
        person.page.get_by_role("button", name="Update the form").first.click()
        assert person.page.locator("#c1\\.decimals").count() == 1

    def test_a_release_is_previewed_and_submitted(self, person: Person, world: World) -> None:
        person.open(f"/releases/new?dataset={world.dataset}")
        person.page.locator("#mechanism").select_option("mwem")
        person.page.locator("#budget_kind").select_option("rho")
        person.page.locator("#budget").fill("0.25")
        person.page.locator("#dry_run").check()
        person.page.locator("noscript button[value=preview]").click()
        assert person.page.locator("#preview .big").first.inner_text() == "0.25"
        assert person.page.locator("#dry_run").is_checked()
        person.press("Submit the release")
        person.page.wait_for_url(re.compile(r"/console/releases/[0-9a-f-]{36}$"))
        # The page renews itself until the release has ended.
        person.page.locator(".state-succeeded").wait_for()


class TestForms:
    def test_a_fault_is_read_out_and_stands_beside_its_field(
        self, visit: Any, world: World
    ) -> None:
        with visit() as person:
            person.sign_in(world.keys["curator"])
            person.open("/datasets/new")
            person.page.locator("#name").fill("t")
            person.page.get_by_label("About").select_option(index=1)
            person.page.locator("#c0\\.name").fill("age")
            person.page.locator("#c0\\.type").select_option("integer")
            person.page.locator("#c0\\.lower").fill("9")
            person.page.locator("#c0\\.upper").fill("1")
            person.press("Declare the dataset")
            person.page.get_by_text("must not be larger than").first.wait_for()
            # The problem has the focus, so screen readers announce it first.
            assert person.page.evaluate("document.activeElement.hasAttribute('data-problem')")

    def test_the_return_key_removes_nothing(self, visit: Any, world: World) -> None:
        with visit() as person:
            person.sign_in(world.keys["curator"])
            person.open("/datasets/new")
            person.page.locator("#c0\\.name").fill("age")
            person.page.keyboard.press("Enter")
            person.page.locator("[data-problem]").wait_for()
            assert person.page.locator("#c0\\.name").input_value() == "age"

    def test_everything_is_reached_by_keyboard(self, visit: Any, world: World) -> None:
        with visit() as person:
            person.sign_in(world.keys["curator"])
            person.open("/releases")
            person.page.keyboard.press("Tab")
            assert person.page.evaluate("document.activeElement.innerText") == "Skip to content"
            person.page.keyboard.press("Enter")
            person.page.keyboard.press("Tab")
            assert person.page.evaluate("document.activeElement.innerText") == "New release"

    def test_the_key_is_nowhere_in_reach_of_scripts(self, visit: Any, world: World) -> None:
        with visit() as person:
            key = world.keys["curator"]
            person.sign_in(key)
            reach = person.page.evaluate(
                "document.cookie + JSON.stringify([{...localStorage}, {...sessionStorage}])"
                " + document.documentElement.outerHTML + location.href"
            )
            assert key not in reach
            (cookie,) = person.page.context.cookies()
            assert cookie["httpOnly"]
            assert key not in cookie["value"]
            assert "scrim_session" not in reach
