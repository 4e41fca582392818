"""One stack for all pages, started when the first one needs it."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.e2e.installation import operating
from tests.e2e.pages import ADDRESS, Ran, Surroundings, run_page
from tests.e2e.support import Up, running, scratch

OPERATIONS = ROOT / "docs" / "operations.md"


@pytest.fixture(scope="session")
def pages_stack() -> Iterator[Up]:
    """A stack that all pages share."""
    with scratch() as folder, running(folder / "data", OMP_NUM_THREADS="1") as up:
        yield up


@pytest.fixture(scope="session")
def page(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Ran]]:
    """Carries out a page, unless that was done already."""
    with scratch() as folder:
        done: dict[Path, Ran] = {}

        def carried_out(document: Path) -> Ran:
            if document not in done:
                done[document] = in_its_place(document)
            return done[document]

        def in_its_place(document: Path) -> Ran:
            place = Path(tempfile.mkdtemp(dir=folder)) / "page"
            if document == OPERATIONS:
                with operating(place.with_name("installation")) as surroundings:
                    return run_page(document, place, surroundings)
            if needs_service(document):
                up = request.getfixturevalue("pages_stack")
                return run_page(document, place, beside(up))
            return run_page(document, place, Surroundings())

        yield carried_out


def needs_service(document: Path) -> bool:
    """Whether a page reads the key of a running service."""
    return "admin.key" in document.read_text()


def beside(up: Up) -> Surroundings:
    """As if `scrim up` ran where the pages start it."""
    return Surroundings(
        environment={"SCRIM_URL": up.url},
        replacements={ADDRESS: up.url, "scrim-data": str(up.data_dir)},
    )
