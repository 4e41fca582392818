"""Releases to report on, and a reader of their pages."""

from collections.abc import Iterator
from datetime import date
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np

from scrim.spec.population import Protection
from scrim.spec.release import ReleaseSpec
from scrim.spec.schema import Schema
from synth.domain import Domain
from synth.measurements import Measurement
from synth.models.released import ReleasedModel
from synth.models.rows import Rows
from synth.queries import Marginal
from synth.run import FinishedRelease
from synth.table import Chunk, draw_values
from tests.support import ADD_REMOVE
from worker.report import About, Balance, ReleasedFile

DELTA = 1e-9
VOID = {"meta", "br", "path", "rect", "polyline"}


def about(spec: ReleaseSpec, protection: Protection = ADD_REMOVE, **changes: Any) -> About:
    """A release charged to an account with earlier spending."""
    facts: dict[str, Any] = {
        "release_id": "00000000-0000-4000-8000-000000000000",
        "dataset": "admissions",
        "population": "patients 2026",
        "asked_on": date(2026, 3, 1),
        "spec": spec,
        "protection": protection,
        "delta": DELTA,
        "files": [ReleasedFile("synthetic.csv", 12_345, "ab" * 32)],
        "balance": Balance(cap=2 * 10**12, spent=3 * 10**11),
    }
    return About(**facts | changes)


def drawn_rows(schema: Schema, rows: int, seed: int = 0) -> Chunk:
    """Rows drawn evenly from a schema whose numbers have bins."""
    rng = np.random.default_rng(seed)
    codes = {c.name: rng.integers(c.size, size=rows) for c in schema.attributes}
    return draw_values(schema, codes, rng)


def made_release(schema: Schema, spec: ReleaseSpec, rows: int = 40) -> FinishedRelease:
    """A release of drawn rows with one measurement of every pair of neighbouring columns."""
    chunk = drawn_rows(schema, rows)
    names, domain = list(schema.sizes), Domain.of(schema)
    measurements = []
    for pair in pairwise(names):
        marginal = Marginal.of(pair, domain)
        measurements.append(Measurement(marginal, np.arange(marginal.size), 2.0))
    return FinishedRelease(
        rows=chunk,
        answers=None,
        model=ReleasedModel(schema, rows, Rows(schema, chunk)),
        measurements=measurements,
        certificate={
            "software": "scrim 0",
            "accounting": "zcdp",
            "rho_units_reserved": 12 * 10**10,
            "epsilon_reserved": {"1e-06": 2.358, "1e-09": 2.988},
            "rho_units": 10**11,
            "epsilon": {"1e-06": 2.142, "1e-09": 2.716},
            "operations": [
                {"kind": "rows", "asked": "", "scale": 7.0, "rho_units": 10**9},
                {"kind": "measure", "asked": "a,b", "scale": 2.0, "rho_units": 99 * 10**9},
            ],
            "summary": None,
            "quality": None,
            "certified_max_error": None,
            "public_data_screen": None,
        },
    )


class Page(HTMLParser):
    """A page as a browser takes it apart; elements must be closed in the order they were opened."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(content.decode())
        self.close()
        assert self._open == [], "every element is closed"

    @property
    def text(self) -> str:
        """All that is written on it, apart from the style sheet."""
        return " ".join(self.texts)

    @property
    def headings(self) -> Iterator[str]:
        """Sections by the names that links use."""
        return (value for tag, name, value in self.attributes if (tag, name) == ("section", "id"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)
        assert tag not in {"rect", "path", "polyline"} or "svg" in self._open
        if tag == "rect":  # one with a title in it
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
