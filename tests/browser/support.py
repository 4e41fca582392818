"""A real Chromium, and actions of a user in it."""

import os
import re
import shutil
from importlib.util import find_spec
from typing import Any

import pytest

PATIENCE = 120_000
"""Timeout in milliseconds for something that must happen."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find_chromium() -> str:
    """Find the program; fail the test if there is none."""
    named = os.environ.get("SCRIM_CHROMIUM")
    found = next(
        (path for name in (named, *PROGRAMS) if name and (path := shutil.which(name))), None
    )
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        pytest.fail(
            "playwright or axe-playwright-python is not installed: run `make setup-browser`"
        )
    if found is None:
        pytest.fail("there is no Chromium: run `make setup-browser`, or name one in SCRIM_CHROMIUM")
    return found


def flags() -> list[str]:
    """Arguments of the program; root needs --no-sandbox."""
    return [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else list(FLAGS)


class Person:
    """A user of a browser, who records everything that the browser's console shows."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self.addresses: set[str] = set()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._hear)
        page.on("request", lambda request: self.addresses.add(request.url))

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"} and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def open(self, path: str) -> Any:
        """A page of the console."""
        return self.page.goto(f"{self.url}/console{path}")

    def open_reference(self) -> Any:
        """The reference of the API."""
        return self.page.goto(f"{self.url}/docs")

    def sign_in(self, key: str) -> None:
        self.open("/sign-in")
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(re.compile(r"/console/(releases|populations)$"))

    def sign_out(self) -> None:
        self.page.get_by_role("button", name="Sign out").click()
        self.page.wait_for_url("**/console/sign-in")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def follow(self, name: str) -> None:
        self.page.get_by_role("link", name=name, exact=True).first.click()

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)

    def overflows(self) -> bool:
        """Whether the page is wider than the window."""
        return bool(
            self.page.evaluate(
                "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            )
        )

    def check(self) -> None:
        """Check that the browser logged no error, and requested only pages and their files."""
        assert self.complaints == []
        own = (f"{self.url}/console", f"{self.url}/docs")
        assert {each for each in self.addresses if not each.startswith(own)} == set()
