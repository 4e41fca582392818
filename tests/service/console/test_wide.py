"""Wide tables and long lists of codes: pages stay small enough to use."""

from typing import Any

import pytest

from tests.service.api.support import Api
from tests.service.console.support import Visitor

CODES = [f"K{number:05}" for number in range(10_000)]
KINDS: list[dict[str, Any]] = [
    {"type": "categorical", "values": list("abcdefgh")},
    {"type": "integer", "lower": 0, "upper": 99, "bins": {"width": 5}, "missing": ["NA"]},
    {"type": "date", "lower": "2015-01-01", "upper": "2024-12-31", "bins": {"count": 10}},
]
WIDE: dict[str, Any] = {
    "columns": [
        *({"name": f"column {place}", **KINDS[place % 3]} for place in range(99)),
        {"name": "code", "type": "categorical", "values": CODES},
    ]
}
PAIRS = [
    [f"column {place % 99}", f"column {(place * 7 + place // 99 + 1) % 99}"]
    for place in range(1100)
]
ASKED = list({tuple(sorted(pair)): pair for pair in PAIRS if pair[0] != pair[1]}.values())[:1000]
KILOBYTE = 1000


@pytest.fixture(scope="module")
def dataset(api: Api) -> str:
    return api.ready_dataset(api.population(), WIDE)


def test_the_grid_has_a_few_kilobytes_for_each_column(everybody: Visitor, dataset: str) -> None:
    codes = len("\n".join(CODES))
    grid = len(everybody.get(f"/datasets/new?source=dataset:{dataset}").content)
    assert grid < codes + 300 * KILOBYTE
    shown = len(everybody.get(f"/datasets/{dataset}").content)
    # The codes are listed once, in the JSON.
    assert shown < 3 * codes + 60 * KILOBYTE


def test_a_thousand_marginals_fit_on_the_pages_of_a_release(
    everybody: Visitor, api: Api, dataset: str
) -> None:
    body = {"workload": [{"type": "marginals", "attributes": ASKED}], "mechanism": {"name": "auto"}}
    release = api.release(dataset, **body)
    form = everybody.get(f"/releases/new?dataset={dataset}")
    for page in (form, everybody.get(f"/releases/{release}"), everybody.get("/releases")):
        assert page.status_code == 200 and len(page.content) < 400 * KILOBYTE
        assert CODES[5000] not in page.text
