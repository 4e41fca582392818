"""`python -m benchmarks.console`: bytes and milliseconds of every page, on temporary servers."""

import re
import statistics
import time
from html import unescape

import httpx

from benchmarks.report import print_table
from benchmarks.service.measure import MEBIBYTE
from benchmarks.service.stack import Stack, running_stack

READS = 50
WIDE = {
    "columns": [
        {"name": f"column {number}", "type": "categorical", "values": list("abcdefgh")}
        for number in range(100)
    ]
}
_TOKEN = re.compile(r'name="token" value="([^"]+)"')


def main() -> None:
    """Measure every page of a small installation, and two pages with a schema of 100 columns."""
    with running_stack(max_upload_bytes=MEBIBYTE) as stack:
        population = stack.population(10.0)
        dataset = stack.settled_dataset(population)
        wide = stack.dataset(population, WIDE)
        release = _released(stack, dataset)
        paths = {
            "sign in": "/console/sign-in",
            "populations": "/console/populations",
            "population": f"/console/populations/{population}",
            "new population": "/console/populations/new",
            "datasets": "/console/datasets",
            "dataset": f"/console/datasets/{dataset}",
            "dataset of 100 columns": f"/console/datasets/{wide}",
            "new dataset": "/console/datasets/new",
            "the same from 100 columns": f"/console/datasets/new?source=dataset:{wide}",
            "saved schemas": "/console/schemas",
            "releases": "/console/releases",
            "release": f"/console/releases/{release}",
            "new release, with preview": f"/console/releases/new?dataset={dataset}",
            "the same, 100 columns": f"/console/releases/new?dataset={wide}",
            "keys": "/console/keys",
            "console.css": "/console/static/console.css",
            "console.js": "/console/static/console.js",
        }
        with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=60) as browser:
            _sign_in(browser, stack)
            rows = [[name, *_measured(browser, path)] for name, path in paths.items()]
    headings = ["", "bytes", "first", "median", "slowest"]
    print_table(f"Pages of the console, milliseconds of {READS} reads", headings, rows)


def _released(stack: Stack, dataset: str) -> str:
    """A queued release; no worker runs it."""
    body = {
        "dataset_id": dataset,
        "workload": [{"type": "marginals", "k": 2}],
        "mechanism": {"name": "mwem"},
        "budget": {"rho": 0.1},
    }
    return stack.create("/v1/releases", body)


def _sign_in(browser: httpx.Client, stack: Stack) -> None:
    found = _TOKEN.search(browser.get("/console/sign-in").text)
    assert found is not None
    fields = {"token": unescape(found[1]), "key": stack.key}
    browser.post("/console/sign-in", data=fields).raise_for_status()


def _measured(browser: httpx.Client, path: str) -> tuple[int, float, float, float]:
    """Bytes of a page, and its times: first, median and worst."""
    times, content = [], b""
    for _ in range(READS):
        start = time.perf_counter()
        answer = browser.get(path)
        times.append(1000 * (time.perf_counter() - start))
        answer.raise_for_status()
        content = answer.content
    return len(content), times[0], statistics.median(times), max(times)


if __name__ == "__main__":
    main()
